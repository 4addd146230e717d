# SPDX-License-Identifier: Apache-2.0
"""FD: leaked descriptors, working directory, the program itself, arguments."""

import array
import glob
import hashlib
import os
import secrets
import shlex
import socket
import subprocess
import time

from harness import HELD, Ctx, check, has_lesser_kernel

q = shlex.quote


def secret(c: Ctx):
    u = c.uuid()
    return u, c.plant(c.out / "secret", u + "\n", 0o666)


def inherit(fd, want):
    """The descriptor under a fixed high number, which is what a careless caller hands down."""
    if fd != want:
        os.dup2(fd, want)
        os.close(fd)
    os.set_inheritable(want, True)
    return want


@check("FD-01", prio="P0", null=True, title="descriptors of the caller do not come along", catches=("fds",))
def fd01(c: Ctx):
    u, s = secret(c)
    fds = (inherit(os.open(c.out, os.O_RDONLY), 9), inherit(os.open(s, os.O_RDWR), 10))
    r = c.control(c.tool("acts", "fds"), pass_fds=fds)
    c.need_control(r.text.count(u) >= 2, f"outside too nothing comes out: {r}")
    acts = q(c.tool("acts")[0])
    r = c.sandbox(f"{acts} fds; cat /proc/self/fd/9/secret /dev/fd/10; cat <&9; ls -l /proc/*/fd/",
                  pass_fds=fds)
    c.must(not c.leaks(r, u), f"the canary came out: {r}")
    more = [line for line in r.text.splitlines() if line.startswith("fd ") and int(line.split()[1]) > 2]
    c.must(not more, f"more than 0, 1, 2: {more}")
    return HELD


@check("FD-02", prio="P0", forms=("run",),
       title="working directory outside, through a descriptor, or deleted")
def fd02(c: Ctx):
    u, s = secret(c)
    fd = inherit(os.open(c.out, os.O_RDONLY), 7)
    tries = "pwd; cat secret ../secret ../out/secret /proc/self/cwd/secret /proc/self/cwd/../out/secret; true"
    c.need_control(u in c.control(tries, cwd=c.out).text, "outside too nothing comes out")
    here = ["--workspace", str(c.ws)]
    notes = []
    for flags in ([], ["--workdir", "/proc/self/fd/7"], ["--workdir", "/proc/self/fd/7/.."],
                  ["--workdir", str(c.out)], ["--workdir", "/proc/1/cwd"], ["--workdir", "../../../out"],
                  ["--workdir", "/proc/self/cwd"]):
        r = c.sandbox(tries, flags=[*here, *flags], cwd=c.out, pass_fds=(fd,), refusal_ok=True)
        c.must(not c.leaks(r, u), f"the canary came out with {flags}: {r}")
        notes.append(f"{flags}: rc {r.rc} {r.text.split()[:1]} {r.errtext.strip()[:80]}")
    gone = c.mkdir(c.root / "gone")
    for flags in (here, []):
        if not gone.exists():
            c.mkdir(gone)
        argv = [c.cfg.vitrine, "run", *flags, "--", "sh", "-c", tries]
        r = c.host(["sh", "-c", 'cd "$0" && rmdir "$0" && exec "$@"', str(gone), *argv],
                   env=c._vitrine_env({}))
        c.must(not c.leaks(r, u), f"the canary came out of a deleted directory: {r}")
        notes.append(f"deleted {flags[:1]}: rc {r.rc} {r.errtext.strip()[:80]}")
    c.notes += notes
    os.close(fd)
    return HELD


def program_files(c: Ctx):
    """The program and what lies beside it and is executable: all that Vitrine could be run from."""
    top = os.path.dirname(c.cfg.vitrine)
    files = [p for p in glob.glob(f"{top}/*") if os.path.isfile(p) and os.access(p, os.X_OK)]
    return {p: hashlib.sha256(open(p, "rb").read()).hexdigest() for p in files}


@check("FD-03", prio="P0", title="the program itself cannot be opened for writing through /proc/*/exe")
def fd03(c: Ctx):
    before = program_files(c)
    c.need_control(c.cfg.vitrine in before, "the program under test is not there")
    acts = q(c.tool("acts")[0])
    c.plant(c.ws / "self", "#!/proc/self/exe\n", 0o755)
    prog = q(c.cfg.vitrine)
    r = c.sandbox(f"for p in /proc/[0-9]* /proc/self; do {acts} open w $p/exe; done 2>/dev/null\n"
                  f"{acts} open w {prog}; echo x >> {prog}; echo x > {prog}\n"
                  "for p in /proc/[0-9]*; do for f in $p/fd/*; do case $(readlink $f) in "
                  f"*vitrine*) {acts} open w $f;; esac; done; done 2>/dev/null; true")
    own = [line for line in r.text.splitlines() if line.startswith("opened")]
    if has_lesser_kernel(c):  # may let a program be written that runs: this one is the workspace's own
        own = [line for line in own if not line.endswith("/proc/self/exe")]
    c.must(not own, f"opened for writing: {own}")
    for n in range(3):
        # A script whose interpreter is the process that executes it: the program would run itself inside.
        c.sandbox([str(c.ws / "self")], refusal_ok=True)
    c.must(program_files(c) == before, "the program on the host was changed")
    return HELD


@check("FD-04", prio="P0", forms=("exec",), catches=("dumpable",),
       title="a session that joins shows no descriptor, environment or directory of the host")
def fd04(c: Ctx):
    u, s = secret(c)
    v, w = c.uuid(), c.uuid()
    fd = inherit(os.open(c.out, os.O_RDONLY), 9)
    watcher = c.keeper(command=c.tool("acts", "watch", 3))
    c.need_control(watcher.wait_for("watching"), f"the watcher did not start: {watcher.err!r}")
    joined = 0
    for _ in range(25):
        r = c.vitrine("exec", watcher.name, "--", "true", env={"VCF_CANARY": v, "AWS_SECRET_ACCESS_KEY": w},
                      pass_fds=(fd,), cwd=c.out)
        joined += r.ok
    watcher.wait(12)
    r = watcher.wait(1)
    os.close(fd)
    c.need_control(joined >= 20, f"only {joined} of 25 sessions joined")
    c.need_control(b"rounds=" in r.out, f"the watcher did not end well: {r}")
    for word, what in ((u, "a file"), (v, "an environment"), (w, "an environment"),
                       (str(c.out), "a path of the host"), (c.cfg.vitrine, "the program's path"),
                       (str(c.state), "the state directory")):
        where = r.out.find(word.encode())
        c.must(where < 0, f"a joining process showed {what}: {r.out[max(0, where - 200):where + 200]!r}")
    c.note(r.out[r.out.rfind(b"rounds="):].decode().strip())
    return HELD


@check("FD-05", prio="P1", null=True, title="no socket inside yields a descriptor", catches=("fds",))
def fd05(c: Ctx):
    u, s = secret(c)

    def loaded():
        a, b = socket.socketpair()
        f = os.open(s, os.O_RDONLY)
        a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [f]))])
        os.close(f)
        inherit(b.detach(), 9)
        return a

    a = loaded()
    r = c.control(c.tool("acts", "recvfds"), pass_fds=(9,))
    c.need_control(u in r.text, f"outside too nothing arrives: {r}")
    a.close()
    a = loaded()
    r = c.sandbox(c.tool("acts", "recvfds"), pass_fds=(9,))
    a.close()
    c.must(not c.leaks(r, u) and "received" not in r.text, f"a descriptor arrived: {r}")
    return HELD


@check("FD-07", prio="P1", forms=("run",),
       title="started with 0, 1 or 2 closed: nothing internal lands there")
def fd07(c: Ctx):
    bad = []
    for mask in range(1, 8):
        out = c.ws / f"fds{mask}"
        closes = " ".join(f"{n}{'<' if n == 0 else '>'}&-" for n in range(3) if mask & 1 << n)
        argv = [c.cfg.vitrine, "run", "--", "sh", "-c",
                f"for n in 0 1 2; do echo $n $(readlink /proc/$$/fd/$n) >> fds{mask}; done; echo end >> fds{mask}; "
                "echo noi''se; echo noi''se >&2"]  # the record holds the command line
        r = c.host(["sh", "-c", f'exec "$@" {closes}', "x", *argv], env=c._vitrine_env({}))
        if not out.exists():
            c.must(r.refused, f"with {closes} it neither ran nor was refused: {r}")
            c.note(f"{closes}: refused")
            continue
        for line in out.read_text().splitlines():
            words = line.split()
            if len(words) == 2 and mask & 1 << int(words[0]) and not words[1].startswith(("/dev/null", "pipe:")):
                bad.append(f"{closes}: {line}")
    c.must(not bad, f"something else in place of a closed descriptor: {bad}")
    # Nothing that was printed may have gone to a file of ours which had taken the number.
    hits = [f for f in c.found_in(c.state, "noise") if os.path.basename(f) not in ("events.db",)]
    c.must(not hits, f"output landed in the state: {hits}")
    return HELD


@check("FD-08", prio="P2", null=True, catches=("stdio",),
       title="stdout is a file with earlier content: it cannot be read or cut")
def fd08(c: Ctx):
    u = c.uuid()

    def attempt(sandboxed):
        f = c.plant(c.root / "logs" / "log", u + "\n", 0o666)
        fd = os.open(f, os.O_RDWR | os.O_APPEND)
        acts = q(c.tool("acts")[0])
        script = (f"exec 3>&1; timeout 0.3 cat /proc/self/fd/3 > got; {acts} reopen 3 r x >&2; {acts} rewind 3 >&2; "
                  f"{acts} reopen 3 rw x >&2; echo normal")
        try:
            r = c.start(script, sandboxed=sandboxed, stdout=fd).wait()
        finally:
            os.close(fd)
        return r, f.read_text()

    r, text = attempt(False)
    c.need_control(u.encode() in r.err and not text.startswith(u), f"outside too it holds: {r} {text!r}")
    (c.ws / "got").unlink()
    r, text = attempt(True)
    c.need_control("normal" in text, f"the command's output did not arrive: {r} {text!r}")
    c.must(text.startswith(u), f"earlier content was cut: {text!r}")
    c.must(not c.leaks(r, u), f"earlier content was read: {r}")
    return HELD


@check("FD-09", prio="P1", null=True, catches=("env",),
       title="descriptor and socket variables of the caller are unset")
def fd09(c: Ctx):
    names = ["LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "NOTIFY_SOCKET", "WATCHDOG_USEC", "BASH_XTRACEFD",
             "MAKEFLAGS", "JOURNAL_STREAM", "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "GPG_AGENT_INFO",
             "DOCKER_HOST", "XAUTHORITY", "VITRINE_CONTROL_FD", "BASH_ENV", "ENV_FILE", "LD_PRELOAD",
             "LD_LIBRARY_PATH", "PYTHONSTARTUP", "GIT_DIR", "NODE_OPTIONS"]
    u = c.uuid()
    env = {n: f"/nonexistent/{u}-{n}" for n in names if n != "LD_PRELOAD" and (n, c.cfg.engine) != ("DOCKER_HOST", "docker")}
    c.need_control(c.control("env", env=env).text.count(u) >= 10, "outside too they are unset")
    r = c.sandbox("env; tr '\\0' '\\n' < /proc/self/environ; cat /proc/*/environ", env=env)
    c.must(not c.leaks(r, u), f"passed: {[n for n in names if f'{u}-{n}' in r.text]}")
    fdvars = [line for line in r.text.splitlines() if line.split("=")[0].endswith(("_FD", "_FDS", "_SOCKET", "_SOCK"))]
    c.must(not fdvars, f"internal descriptors named inside: {fdvars}")
    return HELD


@check("FD-10", prio="P1", title="arguments arrive byte for byte and are never taken for options")
def fd10(c: Ctx):
    c.tool("acts")
    args = ["--help", "-c", "--", "-e", "X=1", "", "two words", "line\nbreak", "tab\t'q'\"d\"", "$HOME `x` \\",
            "--name", "--policy=/x", "\xff".encode("latin-1"), "é", "x" * 131071, "*", "-v", "/:/host"]
    r = c.sandbox([*c.tool("acts", "argv"), *args])
    want = [(a if isinstance(a, bytes) else a.encode()).hex() for a in args]
    got = [line[4:] for line in r.text.splitlines() if line.startswith("arg")]
    diff = [i for i in range(max(len(want), len(got))) if want[i:i + 1] != got[i:i + 1]]
    c.must(not diff, f"different at {diff[:5]}: wanted {[want[i][:60] for i in diff[:3] if i < len(want)]}, "
           f"got {[got[i][:60] for i in diff[:3] if i < len(got)]}; {r.rc} {r.err[-300:]!r}")
    for name in ("--help", "-c", "--version"):
        mark = "mark-" + secrets.token_hex(6)
        c.plant(c.ws / name, f"#!/bin/sh\necho {mark} \"$@\"\n", 0o755)
        r = c.sandbox([f"./{name}", "--help"])
        c.must(r.text.strip() == f"{mark} --help", f"a command called {name} was not run: {r}")
    if c.form == "run":
        # A command that does not exist but looks like an option: not found, and no help text.
        r = c.vitrine("run", "--", "--help")
        c.must(r.rc == 127 and b"usage" not in r.out.lower(), f"taken for an option: {r}")
    return HELD


@check("FD-11", prio="P0", null=True, catches=("stdio,landlock",),
       title="a named FIFO outside the view given as stdin cannot be opened again")
def fd11(c: Ctx):
    text = c.uuid()
    fifo = c.out / "fifo"
    os.mkfifo(fifo)
    os.chmod(fifo, 0o666)
    c._own(fifo)
    end = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)

    def drained():
        try:
            return os.read(end, 65536).decode()
        except BlockingIOError:
            return ""

    try:
        stdin = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        c.control(c.tool("acts", "reopen", 0, "w", text), stdin=stdin)
        c.need_control(text in drained(), "outside too it cannot be opened again")
        acts = q(c.tool("acts")[0])
        r = c.sandbox(f"{acts} reopen 0 w {text}; {acts} reopen 0 rw {text}; echo {text} > /dev/stdin; "
                      f"echo {text} > /proc/self/fd/0; true", stdin=stdin)
        os.close(stdin)
        got = drained()
    finally:
        os.close(end)
    c.must(text not in got, f"written back through the reader's end: {r}")
    return HELD
