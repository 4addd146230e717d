# SPDX-License-Identifier: Apache-2.0
"""SV: the keeper, its socket, its records, and what goes out through it."""

import ctypes
import errno
from contextlib import suppress
import json
import os
from pathlib import Path
import random
import shlex
import signal
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import guest  # noqa: E402
from check_pr import insiders, machines, ns_depth  # noqa: E402
from harness import HELD, Ctx, check, descendants, has_own_kernel  # noqa: E402
from puppet import made_to_open  # noqa: E402

q = shlex.quote
PTRACE_SEIZE, PTRACE_INTERRUPT = 0x4206, 0x4207
WALL = 0x40000000


def keepers(c: Ctx):
    """Init has the same name: it was forked from one. But it is in a namespace of its own."""
    mine = ns_depth(os.getpid())
    return [pid for pid, name in descendants(os.getpid()) if name == "vitrine-keeper" and ns_depth(pid) == mine]


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rsplit(b") ", 1)[-1][:1] not in (b"Z", b"X")
    except OSError:
        return False


def gone(pids, seconds=2.0, traced=()):
    """Whoever traces one must see its end before its parent can."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for pid in traced:
            with suppress(ChildProcessError):
                os.waitpid(pid, WALL | os.WNOHANG)
        alive = [p for p in pids if is_alive(p)]
        if not alive:
            return True
        time.sleep(0.01)
    return False


def holders(c: Ctx):
    """What is inside, seen from the host; of another kernel the process that is this kernel."""
    return machines() if has_own_kernel(c) else insiders()


@check("SV-02", prio="P0", forms=("run",), title="kill -9 of the keeper: everything inside is dead within two seconds")
def sv02(c: Ctx):
    b = c.keeper(command=["sh", "-c", "(setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 1; done' &) ; "
                          "echo ready; while :; do date >>tick; sleep 0.05; done"])
    c.need_control(b.wait_for("ready"), "the sandbox did not start")
    inside = holders(c)
    c.need_control(len(inside) >= (1 if has_own_kernel(c) else 3) and keepers(c), f"too few processes: {inside}")
    for k in keepers(c):
        os.kill(k, signal.SIGKILL)
    c.must(gone(inside, 2 * c.cfg.patience), f"still alive: {descendants(os.getpid())}")
    size = (c.ws / "tick").stat().st_size
    time.sleep(0.3)
    c.must((c.ws / "tick").stat().st_size == size, "something still writes")
    return HELD


NASTY = ["a\nb", '"}\n{"name":"forged","status":"x"}', "\x1b[31m\x1b]0;title\x07", "\u2028\u2029", "x" * 5000, "\x9b31m"]


@check("SV-07", prio="P0", forms=("run",), title="names, arguments and output from inside forge nothing in records and listings")
def sv07(c: Ctx):
    b = c.keeper(command=["sh", "-c", "echo ready; sleep 40", *NASTY])
    c.need_control(b.wait_for("ready"), "the sandbox did not start")
    rows = json.loads(c.vitrine("ps", "--json").out)
    c.must(len(rows) == 1 and rows[0]["name"] == b.name, f"forged rows: {rows}")
    rows = json.loads(c.vitrine("ls", "--json").out)
    c.must([r["name"] for r in rows] == [b.name], f"forged rows: {rows}")
    d = json.loads(c.vitrine("inspect", b.name).out)
    c.must(len(d) == 1 and len(d[0]["sessions"]) == 1, "forged sessions")
    for verb in ("ps", "ls", "stats"):
        text = c.vitrine(verb).out
        c.must(b"\x1b" not in text and b"\x9b3" not in text and b"\x07" not in text, f"{verb}: {text!r}")
        c.must(text.count(b"\n") == 2, f"{verb} has {text.count(10)} lines: {text!r}")
    files = [p for p in (c.state / "vitrine" / "sandboxes" / b.name / "sessions").rglob("session.json")]
    c.need_control(files, "no record of the session")
    c.must(all(json.loads(p.read_text())["id"] == int(p.parent.name) for p in files), "the record is forged")
    return HELD


@check("SV-08", prio="P0", forms=("run", "exec"), title="records, definition, lock and journal are out of reach inside")
def sv08(c: Ctx):
    name = c.new_name()
    b = c.keeper(name=name, command=["sh", "-c", "echo ready; sleep 40"])
    c.need_control(b.wait_for("ready"), "the sandbox did not start")
    time.sleep(0.2)
    top = c.state / "vitrine"
    # But for what keepers write at their end, whenever that is, and what podman writes of its own.
    mine = sorted(p for p in top.rglob("*") if p.is_file() and not {"skel", "journal"} & set(p.parts) and p.name != "seal"
                  and top / "podman" not in p.parents)
    c.need_control(any(p.name == "sandbox.json" for p in mine), f"nothing there: {mine}")
    before = {p: p.read_bytes() for p in mine}
    r = c.sandbox(f"find {q(str(top))} 2>&1; for f in {' '.join(q(str(p)) for p in mine)}; do cat $f; echo x >$f; "
                  f"rm -f $f; mv $f /tmp; done; rm -rf {q(str(top))}/sandboxes {q(str(top))}/journal; true")
    c.must(b"sandbox.json\n" not in r.out, f"it can be seen: {r}")
    for p, text in before.items():
        c.must(p.exists() and p.read_bytes() == text, f"{p} was changed")
    c.must(c.vitrine("exec", name, "--", "true").ok, "the sandbox does not answer any more")
    return HELD


@check("SV-13", prio="P0", forms=("run", "exec"), timeout=110, title="a process inside does not reach any control socket")
def sv13(c: Ctx):
    b = c.keeper(command=["sh", "-c", "echo ready; sleep 600"])
    c.need_control(b.wait_for("ready"), "the sandbox did not start")
    path = c.state / "vitrine" / "sandboxes" / b.name / "control"
    end = time.monotonic() + 3
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.02)
    c.need_control(path.exists(), "there is no control socket")
    r = c.sandbox(f"ls -la {q(str(path))} 2>&1; grep -a control /proc/net/unix; find / -name control -type s 2>/dev/null; true",
                  timeout=80)
    c.need_control(path.exists(), "it did not stay")
    c.must(b"srw" not in r.out and str(path).encode() not in r.out.replace(b"cannot access '" + str(path).encode(), b""),
           f"it can be seen: {r}")
    return HELD


@check("SV-14", prio="P0", forms=("run",), title="stop, rm and prune signal nobody when what they look for is long dead")
def sv14(c: Ctx):
    b = c.keeper(command=["sh", "-c", "echo ready; sleep 40"])
    c.need_control(b.wait_for("ready"), "the sandbox did not start")
    time.sleep(0.1)
    for k in keepers(c):
        os.kill(k, signal.SIGKILL)
    b.wait()
    sentinel = subprocess.Popen(["sleep", "30"])
    try:
        # Whatever number a stale file may hold is somebody else's now.
        folder = c.state / "vitrine" / "sandboxes" / b.name
        (folder / "pid").write_text(f"{sentinel.pid}\n")
        r = c.vitrine("stop", b.name)
        c.must(r.ok, f"stop: {r}")
        r = c.vitrine("ls", "--json")
        c.must(json.loads(r.out)[0]["status"] in ("lost", "stopped"), f"ls: {r}")
        r = c.vitrine("rm", "--force", b.name)
        c.must(r.ok and not folder.exists(), f"rm: {r}")
        c.must(c.vitrine("prune", "--force").ok, "prune")
        c.must(sentinel.poll() is None, "the sentinel was signalled")
    finally:
        sentinel.kill()
        sentinel.wait()
    return HELD


@check("SV-16", prio="P1", forms=("run",), title="a thousand signals to the keeper: it goes on or ends in order")
def sv16(c: Ctx):
    b = c.keeper(command=["sh", "-c", "echo ready; sleep 40"])
    c.need_control(b.wait_for("ready"), "the sandbox did not start")
    k = keepers(c)[0]
    rng = random.Random(16)
    for _ in range(1000):
        os.kill(k, rng.choice([signal.SIGHUP, signal.SIGPIPE, signal.SIGWINCH, signal.SIGCHLD, signal.SIGCONT]))
    c.must(c.vitrine("exec", b.name, "--", "true").ok, "the keeper does not answer after harmless signals")
    os.kill(k, signal.SIGTERM)
    c.must(gone([k], 5), "the keeper did not end when asked")
    c.must(c.vitrine("stop", b.name).ok, "and it cannot be stopped")
    return HELD


@check("SV-17", prio="P1", forms=("run", "exec"), title="thousands of orphans are reaped")
def sv17(c: Ctx):
    script = ("i=0; while [ $i -lt 3000 ]; do (true &); i=$((i+1)); done; sleep 0.5; "
              "grep -l '^State:.Z' /proc/[0-9]*/status 2>/dev/null | wc -l")
    r = c.sandbox(script, timeout=60)
    c.must(r.ok and int(r.text.split()[-1]) <= 5, f"zombies: {r}")
    return HELD


@check("SV-31", prio="P0", forms=("run",), catches=("cp",),
       title="cp hands out plain files only: no device, fifo, socket, link, nothing of /proc")
def sv31(c: Ctx):
    b = c.keeper(command=["sh", "-c", "mkfifo /tmp/fifo; ln -s /etc/passwd /tmp/link; echo plain >/tmp/plain; echo ready; sleep 40"])
    c.need_control(b.wait_for("ready"), "the sandbox did not start")
    dest = c.ws / "out"
    r = c.vitrine("cp", f"{b.name}:/tmp/plain", str(dest))
    c.need_control(r.ok and dest.read_text() == "plain\n", f"cp does not work at all: {r}")
    dest.unlink()
    for path in ("/tmp/fifo", "/tmp/link", "/dev/null", "/dev/zero", "/dev/ptmx", "/proc/1/environ", "/proc/self/status",
                 "/proc/1/cmdline"):
        r = c.vitrine("cp", f"{b.name}:{path}", str(dest))
        c.must(not r.ok and not os.path.lexists(dest), f"{path} came out: {r}")
    return HELD


@check("SV-04", prio="P0", forms=("run",), title="no decision is taken from memory of the inside: nobody listens for its system calls")
def sv04(c: Ctx):
    """Seccomp notifications would read pointers that a thread can change meanwhile; there are none to read."""
    b = c.keeper(command=["sh", "-c", "echo ready; sleep 40"])
    c.need_control(b.wait_for("ready"), "the sandbox did not start")
    ours = [pid for pid, name in descendants(os.getpid()) if name.startswith("vitrine")]
    c.need_control(any(name == "vitrine-keeper" for _, name in descendants(os.getpid())), "there is no keeper")
    for pid in ours:
        for fd in Path(f"/proc/{pid}/fd").glob("*"):
            try:
                what = os.readlink(fd)
            except OSError:
                continue
            c.must("seccomp" not in what, f"{pid} listens: {what}")
    r = c.sandbox("grep Seccomp /proc/self/status")
    c.must("Seccomp:\t2" in r.text, f"{r}")
    return HELD


@check("SV-09", prio="P1", forms=("run",), title="a record that was edited, cut, reordered or taken away is found, and where")
def sv09(c: Ctx):
    import sqlite3
    name = c.new_name()
    r = c.vitrine("run", "--name", name, "--", "sh", "-c", "true")
    c.need_control(r.ok, f"{r}")
    # The keeper writes its last words when nobody waits for them any more.
    c.need_control(c.wait_until(lambda: b"sandbox.stopped" in c.vitrine("events", name).out, 5), "nothing is on record")
    r = c.vitrine("events", "--verify")
    c.need_control(r.ok, f"an untouched record: {r}")
    path = next((c.state / "vitrine").rglob("events.db"))
    clean = path.read_bytes()
    acts = {
        "edited": "update event set frame = zeroblob(length(frame)) where id = (select max(id) - 1 from event)",
        "removed": "delete from event where id = (select min(id) + 1 from event)",
        "cut off": "delete from event where id = (select max(id) from event)",
    }
    for what, sql in acts.items():
        db = sqlite3.connect(path)
        changed = db.execute(sql).rowcount
        db.commit()
        db.close()
        c.need_control(changed == 1, f"{what}: {changed} rows")
        r = c.vitrine("events", "--verify")
        c.must(not r.ok, f"{what}, and nobody noticed: {r}")
        path.write_bytes(clean)
        for rest in path.parent.glob("events.db-*"):
            rest.unlink()
    c.must(c.vitrine("events", "--verify").ok, "put back as it was")
    return HELD


CONFINED = ("{ grep -E '^(Seccomp|NoNewPrivs|CapEff):' /proc/self/status; id -u; cat CANARY; } >ran 2>&1; true")
# Every call by which walls are made; each is made to fail at each of its turns.
CALLS = ["clone3", "fork", "unshare", "setns", "pivot_root", "mount", "umount2", "open_tree", "move_mount", "mount_setattr",
         "fsopen", "fsmount", "fsconfig", "seccomp", "prctl", "landlock_create_ruleset", "landlock_add_rule",
         "landlock_restrict_self", "capset", "setgroups", "setresuid", "setresgid", "sethostname", "prlimit64", "socketpair",
         "pipe2", "memfd_create", "mmap", "openat", "open", "recvmsg", "sendmsg"]
TURNS = 2


def injected(c, call, error, when):
    """One run in which that call fails at that turn in every process: what came of it; None: it was not made so often."""
    log = c.mkdir(c.root / "traces") / "log"
    r = c.host(["strace", "-f", "--quiet=all", "-o", str(log), "-e", f"trace={call}", "-e",
                f"inject={call}:error={error}:when={when}", c.cfg.vitrine, "run", "--", "sh", "-c", CONFINED.replace(
                    "CANARY", q(str(c.home / "canary")))], timeout=20)
    return r if b"(INJECTED)" in log.read_bytes() else None


def survives(c, call, error, when):
    ran = c.ws / "ran"
    r = injected(c, call, error, when)
    if r is None:
        return False
    text = ran.read_text() if ran.exists() else ""
    if text:
        # It failed where nothing depends on it: then every wall stands.
        c.must("Seccomp:\t2" in text and "NoNewPrivs:\t1" in text and "CapEff:\t0000000000000000" in text,
               f"{call} failed at {when} ({error}) and it ran like this: {text}")
        c.must(c.secret not in text, f"{call} failed at {when} and the home was seen")
        ran.unlink()
    elif ran.exists():
        ran.unlink()
    else:
        c.must(not r.ok, f"{call} failed at {when}: not run, and called a success: {r}")
    left = [p for p, n in descendants(os.getpid()) if n.startswith("vitrine")]
    c.must(gone(left, 5), f"{call} failed at {when}: left: {left}")
    return True


@check("SV-19", prio="P0", forms=("run",), null=True, title="whatever call fails while the walls are made, nothing runs without them")
def sv19(c: Ctx):
    c.secret = c.uuid()
    c.plant(c.home / "canary", c.secret)
    c.need_control(c.host(["strace", "-V"]).ok, "there is no strace")
    tried = 0
    for call in CALLS:
        for when in range(1, TURNS + 1):
            if not survives(c, call, "EPERM", when):
                break
            tried += 1
        survives(c, call, "EPERM", "1+")
    c.need_control(tried >= 20, f"only {tried} failures could be made")
    c.must(c.vitrine("run", "--", "true").ok, "the next run")
    return HELD


@check("SV-21", prio="P1", forms=("run",), title="a helper program that others could have written is not run")
def sv21(c: Ctx):
    import shutil
    place = c.mkdir(c.root / "programs")
    here = Path(c.cfg.vitrine).parent
    for p in [Path(c.cfg.vitrine), *here.glob("vitrine-*")]:
        if p.is_file():
            shutil.copyfile(p, place / p.name)
            (place / p.name).chmod(0o755)
    own = str(place / Path(c.cfg.vitrine).name)
    env = {"XDG_STATE_HOME": str(c.state)}
    c.need_control(c.host([own, "events"], env=env).ok, "it does not work from there at all")
    (place / "vitrine-store").chmod(0o757)
    r = c.host([own, "events"], env=env)
    c.must(not r.ok and b"could have written it" in r.err, f"{r}")
    (place / "vitrine-gate").chmod(0o757)
    r = c.host([own, "run", "--allow", "example.org", "--", "true"], env=env)
    c.must(b"could have written it" in r.err, f"a gate that anybody may write was started: {r}")
    return HELD


@check("SV-02b", prio="P0", forms=("run",), catches=("pdeathsig",),
       title="kill -9 of the keeper while init stands still: everything inside is dead all the same")
def sv02b(c: Ctx):
    b = c.keeper(command=["sh", "-c", "echo ready; while :; do date >>tick; sleep 0.05; done"])
    c.need_control(b.wait_for("ready"), "the sandbox did not start")
    inside = holders(c)
    init = inside[:1] if has_own_kernel(c) else [p for p in inside if first_inside(p)]
    c.need_control(len(init) == 1 and len(inside) >= (1 if has_own_kernel(c) else 2), f"init is not found: {inside}")
    # It hears nothing now; its own death must not depend on it. A mere SIGSTOP ends with its parent (an orphaned group is
    # continued), but it is all that somebody who may not trace has.
    libc = ctypes.CDLL(None)
    for pid in init:
        if libc.ptrace(PTRACE_SEIZE, pid, None, None) or libc.ptrace(PTRACE_INTERRUPT, pid, None, None):
            os.kill(pid, signal.SIGSTOP)
    for k in keepers(c):
        os.kill(k, signal.SIGKILL)
    c.must(gone(inside, 2 * c.cfg.patience, init), f"still alive: {descendants(os.getpid())}")
    return HELD


def first_inside(pid):
    """Is it pid 1 of a namespace of its own?"""
    try:
        line = [x for x in Path(f"/proc/{pid}/status").read_text().splitlines() if x.startswith("NSpid:")][0]
    except OSError:
        return False
    return len(line.split()) > 2 and line.split()[-1] == "1"


STRANGER = 65534


@check("SV-13b", prio="P0", forms=("run",), catches=("peercred",),
       title="another user who can reach the control socket is not let in")
def sv13b(c: Ctx):
    if os.geteuid() != 0:
        c.inconclusive("nobody else to be")
    b = c.keeper(command=["sh", "-c", "echo ready; sleep 40"])
    c.need_control(b.wait_for("ready"), "the sandbox did not start")
    folder = c.state / "vitrine" / "sandboxes" / b.name
    c.need_control(c.wait_until(lambda: (folder / "control").exists(), 10), "there is no control socket")
    # The folder's own mode is another wall; here it is gone.
    for d in (c.state, c.state / "vitrine", folder.parent, folder):
        os.chmod(d, 0o755)
    os.chmod(folder / "control", 0o666)

    def heard(uid):
        """How many bytes the keeper has for this user, or that it hung up: asked by a message that is none."""
        code = ("import socket,sys\ns=socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.settimeout(5)\n"
                f"s.connect({str(folder / 'control')!r})\ntry:\n    got=s.recv(65536)\nexcept TimeoutError:\n    got=b'waits'\n"
                "except OSError as e:\n    got=b''\nprint('heard', got[:5])\n")
        p = subprocess.run(["/usr/bin/python3", "-c", code], user=uid, group=uid, extra_groups=[], capture_output=True, text=True,
                           timeout=20)
        return p.stdout + p.stderr

    mine, other = heard(c.uid), heard(STRANGER)
    c.need_control("heard" in mine and "heard b''" not in mine, f"its own user is not let in either: {mine}")
    c.must("heard b''" in other, f"somebody else is: {other}")
    return HELD


@check("SV-11", prio="P0", forms=("run",), title="a policy that the agent leaves in the project widens nothing in the next run")
def sv11(c: Ctx):
    u = c.uuid()
    c.plant(c.out / "secret", u)
    text = json.dumps({"files": {"read": [str(c.out)]}, "network": {"allow": ["ok.test"]}})
    c.control(f"cat {q(str(c.out))}/secret")
    named = c.plant(c.home / "named.jsonc", text)
    r = c.vitrine("run", "--policy", str(named), "--", "cat", str(c.out / "secret"))
    c.need_control(u in r.text, f"such a policy does not work even where the user says it: {r}")
    for act in (f"printf %s {q(text)} > .vitrine.jsonc", f"mkdir -p sub; printf %s {q(text)} > sub/.vitrine.jsonc",
                f"printf %s {q(text)} > x; mv x .vitrine.jsonc; ln -sf .vitrine.jsonc vitrine.jsonc",
                f"mkdir -p ~/.config/vitrine; printf %s {q(text)} > ~/.config/vitrine/policy.jsonc"):
        c.sandbox(act + "; true")
        r = c.sandbox(f"cat {q(str(c.out))}/secret; true", refusal_ok=True)
        c.must(not c.leaks(r, u), f"{act.split(';')[0][:40]}: the next run obeys it: {r}")
    return HELD


BAD_POLICIES = [b"{", b"{}}", b'{"files":{"read":[]},"files":{}}', b'{"fils":{}}', b"\xef\xbb\xbf{,}", b'{"network":{"mode":"nne"}}',
                b'{"limits":{"memory":"99999999999999999999999g"}}', b'{"limits":{"pids":-1}}', b'{"files":{"hide":"x"}}', b"[" * 100000,
                b'{"a":' * 5000 + b"1" + b"}" * 5000, b'{"files":{"read":["\0"]}}', b'{"env":{"set":{"A":1}}} junk', b"\xff\xfe{}",
                b'{"files":' + b" " * (10 << 20) + b"{}}", b'{"engine":"none"}', b'{"network":{"allow":"*"}}', b"nothing\r\n"]


@check("SV-12", prio="P0", forms=("run",), title="a policy that is not one is refused with its place, and nothing runs")
def sv12(c: Ctx):
    good = c.plant(c.home / "good.jsonc", '{"files":{"hide":["*.key"]}} // all is well\r\n')
    r = c.vitrine("run", "--policy", str(good), "--", "touch", "ran")
    c.need_control(r.ok and (c.ws / "ran").exists(), f"a good one is refused too: {r}")
    (c.ws / "ran").unlink()
    for i, text in enumerate(BAD_POLICIES):
        bad = c.plant(c.home / f"bad{i}.jsonc", text)
        r = c.vitrine("run", "--policy", str(bad), "--", "touch", "ran")
        c.must(not (c.ws / "ran").exists(), f"{text[:40]!r} was taken: {r}")
        c.must(r.rc == 2 and r.err.count(b"\n") == 1 and b"bad" in r.err, f"{text[:40]!r}: not one line with its place: {r}")
    for where in (c.config / "vitrine" / "policy.jsonc", c.ws / ".vitrine.jsonc"):
        c.plant(where, BAD_POLICIES[3])
        r = c.vitrine("run", "--", "touch", "ran")
        c.must(not (c.ws / "ran").exists() and r.refused, f"{where.name}: {r}")
        with c.host_edit():
            where.unlink()
    return HELD


@check("SV-20", prio="P0", forms=("run",), title="a host that lacks a wall is refused, and doctor says the same")
def sv20(c: Ctx):
    v = q(c.cfg.vitrine)
    # An id namespace around us that allows no further one stands for a host that does.
    shut = "unshare -Ur sh -c 'echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"' x "
    r = c.control(f"{v} run -- touch ran")
    c.need_control(r.ok and (c.ws / "ran").exists(), f"it does not even run here: {r}")
    (c.ws / "ran").unlink()
    r = c.control(shut + "true")
    c.need_control(r.ok, f"no such host can be made: {r}")
    r = c.control(f"{shut} {v} run -- touch ran")
    c.must(not (c.ws / "ran").exists(), f"it ran without the wall: {r}")
    c.must(r.rc == 125 and r.err.count(b"\n") == 1 and b"doctor" in r.err, f"not one clear line: {r}")
    r = c.control(f"{shut} {v} doctor --json")
    found = {x["id"]: x for x in json.loads(r.text)["checks"]}
    c.must(not json.loads(r.text)["can_run"] and found["namespaces"]["state"] == "missing", f"doctor sees it otherwise: {r.text[:300]}")
    return HELD


@check("CR-14", prio="P1", forms=("run",), title="a keeper that crashes leaves no core")
def cr14(c: Ctx):
    b = c.keeper(command=["sh", "-c", "echo ready; sleep 40"])
    c.need_control(b.wait_for("ready") and keepers(c), "the sandbox did not start")
    for pid in keepers(c):
        limit = [x for x in Path(f"/proc/{pid}/limits").read_text().splitlines() if x.startswith("Max core")][0].split()
        c.must(limit[4] == "0", f"the keeper may leave a core: {limit}")
        os.kill(pid, signal.SIGSEGV)
    b.wait()
    c.must(not list(c.root.rglob("core*")), "there is a core")
    return HELD


@check("SV-40", prio="P0", forms=("run",), idents=("user",), catches=("link",),
       title="the program that speaks with another engine's init is locked in")
def sv40(c: Ctx):
    r = c.vitrine("run", "--engine", "bwrap", "--", "true")
    c.need_control(r.ok, f"no such engine here: {r}")
    b = c.keeper(["--engine", "bwrap"], command=["sh", "-c", "echo ready; sleep 40"])
    c.need_control(b.wait_for("ready"), f"the sandbox did not start: {b.err!r}")
    links = [p for p, name in descendants(os.getpid()) if name.startswith("vitrine-link")]
    c.need_control(links, f"there is none: {descendants(os.getpid())}")
    for p in links:
        status = dict(x.split(":\t", 1) for x in Path(f"/proc/{p}/status").read_text().splitlines() if ":\t" in x)
        c.must((status["Seccomp"], status["NoNewPrivs"]) == ("2", "1"), f"it is open: {status['Seccomp']} {status['NoNewPrivs']}")
        c.must(os.stat(f"/proc/{p}/mem").st_uid == 0, "it can be looked into")
    return HELD


def nine(kind, body, tag=1):
    """One message of 9P2000.L."""
    return struct.pack("<IBH", 7 + len(body), kind, tag) + body


def words(*names):
    return struct.pack("<H", len(names)) + b"".join(struct.pack("<H", len(n)) + n for n in names)


def ask(guest, kind, body):
    """The kind of the answer: the question's plus one, or 7 for a refusal."""
    guest.sendall(nine(kind, body))
    head = guest.recv(7, socket.MSG_WAITALL)
    size, answer, _ = struct.unpack("<IBH", head)
    guest.recv(size - 7, socket.MSG_WAITALL)
    return answer


@check("SV-41", prio="P0", forms=("run",), idents=("user",), catches=("files",),
       title="the program that serves a machine's files is locked in and leaves its directory by no name")
def sv41(c: Ctx):
    version, attach, walk, lopen, refused = 100, 104, 110, 12, 7
    c.plant(c.out / "f", "x\n", 0o666)
    c.symlink(c.ws / "l", c.out)
    guest, its = socket.socketpair()
    keeper, its_keeper = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    fds = (its.fileno(), its_keeper.fileno())
    become = ("import os, sys; a, b = int(sys.argv[1]), int(sys.argv[2]); os.dup2(a, 3); os.dup2(b, 4); "
              "os.execv(sys.argv[3], sys.argv[3:])")
    p = c._popen(["python3", "-c", become, str(fds[0]), str(fds[1]), Path(c.cfg.vitrine).parent / "vitrine-files", c.ws],
                 env=c._vitrine_env(None), pass_fds=fds)
    try:
        its.close()
        its_keeper.close()
        guest.settimeout(20)
        c.need_control(ask(guest, version, struct.pack("<I", 65536) + struct.pack("<H", 8) + b"9P2000.L") == version + 1,
                       "it does not answer")
        c.need_control(ask(guest, attach, struct.pack("<II", 0, 0xffffffff) + words()[:2] + words()[:2]
                           + struct.pack("<I", 0)) == attach + 1, "its directory cannot be had")
        c.need_control(ask(guest, walk, struct.pack("<II", 0, 1) + words(b"l")) == walk + 1, "the link cannot be seen")
        for what, kind, body in (
                ("through a link", walk, struct.pack("<II", 1, 2) + words(b"f")),
                ("a link opened", lopen, struct.pack("<II", 1, 0)),
                ("the parent", walk, struct.pack("<II", 0, 2) + words(b"..")),
                ("a path", walk, struct.pack("<II", 0, 2) + words(b"l/f")),
                ("nothing", walk, struct.pack("<II", 0, 2) + words(b""))):
            c.must(ask(guest, kind, body) == refused, f"out by {what}")
        status = dict(x.split(":\t", 1) for x in Path(f"/proc/{p.pid}/status").read_text().splitlines() if ":\t" in x)
        c.must((status["Seccomp"], status["NoNewPrivs"]) == ("2", "1"), f"it is open: {status['Seccomp']} {status['NoNewPrivs']}")
    finally:
        guest.close()
        keeper.close()
        p.wait(20)
        p.stdout.close()
        p.stderr.close()
    return HELD


@check("SV-42", prio="P0", forms=("run",), idents=("user",), catches=("machine",), timeout=150,
       title="whoever breaks out of a machine is a program that can open nothing of the host's but what the machine is made of")
def sv42(c: Ctx):
    words, lacking = guest.kernel()
    c.need_control(os.geteuid() == 0 and not lacking, lacking or "only root can make another process try something")
    c.plant(c.out / "f", "x\n", 0o666)
    env = {**words, "VITRINE_VM_KEEP": "no"}
    b = c.keeper(["--engine", "vm-emulated"], env=env, command=["sh", "-c", "echo ready; sleep 100"], timeout=100)
    c.need_control(b.wait_for("ready", timeout=60), f"the machine did not start: {b.err!r}")
    # The innermost: those above it wait for it.
    qemus = [p for p, name in descendants(b.popen.pid) if name.startswith("qemu-system")]
    c.need_control(qemus, f"there is none: {descendants(b.popen.pid)}")
    for p in qemus:
        c.need_control(made_to_open(p, "/usr/bin/env", os.O_RDONLY) == 0, "not even what it may open is opened")
        for path, flags in ((c.out / "f", os.O_RDONLY), (c.out / "f", os.O_WRONLY), (c.ws / "new", os.O_WRONLY | os.O_CREAT),
                            (c.ws, os.O_RDONLY), ("/etc/passwd", os.O_RDONLY), (c.home, os.O_RDONLY)):
            c.must(made_to_open(p, path, flags) == errno.EACCES, f"{path} could be opened ({flags:#o})")
    return HELD
