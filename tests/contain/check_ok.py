# SPDX-License-Identifier: Apache-2.0
"""OK - what must still work: a wall that breaks the tools is a wall that people switch off.

Here a failure of the tool is the BREACH: of the promise that work can be done inside. The control
runs the same tool outside, so that one that is missing or broken on this host is not our fault."""

import hashlib
import json
import os
import shutil
import subprocess
import time
from pathlib import Path

from harness import HELD, check, has_lesser_kernel, needs_special_files


def works(c, script, want="DONE", timeout=30, control=True, flags=(), env=None):
    """The script prints `want` outside and inside."""
    if control:
        before = c.mkdir(c.root / "twin" / c.new_name())
        ctl = c.control(script, cwd=before, timeout=timeout, env=env)
        c.need_control(ctl.ok and want in ctl.text, f"does not work outside: {ctl}")
    r = c.sandbox(script, timeout=timeout, flags=flags)
    c.must(r.ok and want in r.text, f"does not work inside: {r}")
    return r


GIT = """set -e
git() { command git -c user.name=t -c user.email=t@t -c init.defaultBranch=main "$@"; }
git init -q repo; cd repo
echo one > a; git add a; git commit -qm one
git checkout -qb side; echo two > b; git add b; git commit -qm two
git checkout -q main; echo three > c; git add c; git commit -qm three
git rebase -q main side; git checkout -q main; git merge -q side
echo dirty >> a; echo new > untracked; git stash -qu; git stash pop -q
git commit -qam four; git rm -q b; git commit -qm five; git gc -q
git clone -q "file://$PWD" ../copy; git -C ../copy log --oneline | wc -l
git worktree add -q ../tree side; git -C ../tree status --porcelain; git worktree remove ../tree
git tag v1; git describe --tags; git fsck --strict; git log --oneline | wc -l
echo DONE
"""


@check("OK-01", prio="P0", title="git: init, commit, branch, rebase, stash, worktree, clone")
def ok01(c):
    works(c, GIT)
    # What was made inside is a repository for the host as well, and its files are the caller's.
    r = c.host(["git", "-C", str(c.ws / "repo"), "fsck", "--strict"])
    c.must(r.ok, f"the repository is broken on the host: {r}")
    c.must((c.ws / "repo" / "a").stat().st_uid == c.uid, "a file inside is not the caller's")
    # And one that was there before can be worked in.
    old = c.mkdir(c.ws / "old")
    for words in (["init", "-q"], ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q",
                                   "--allow-empty", "-m", "x"]):
        c.need_control(c.host(["git", *words], cwd=old).ok, "git does not work outside")
    r = c.sandbox("cd old && echo x > f && git add f && git -c user.name=t -c user.email=t@t commit"
                  " -qm y && git checkout -qb b && git status --porcelain && echo DONE")
    c.must("DONE" in r.text, f"work in an existing repository fails: {r}")
    r = c.host(["git", "log", "--oneline"], cwd=old)
    c.must(len(r.text.splitlines()) == 2, f"the commit did not arrive: {r}")
    return HELD


MAKE = """set -e
mkdir -p build && cd build
for i in 1 2 3 4 5 6; do printf 'int f%d(void) { return %d; }\\n' $i $i > f$i.c; done
printf 'int f1(void); int main(void) { return f1() - 1; }\\n' > main.c
printf 'O=main.o f1.o f2.o f3.o f4.o f5.o f6.o\\nprog: $(O)\\n\\tcc -o $@ $(O)\\n' > Makefile
make -s -j4 && ./prog && echo DONE
"""

PYTHON = """set -e
/usr/bin/python3 -m venv --without-pip venv
mkdir -p tests; cat > tests/test_x.py <<'END'
import unittest
class T(unittest.TestCase):
    def test(self): pass
END
venv/bin/python -m unittest -q tests/test_x.py
venv/bin/python -c 'import multiprocessing as m, tempfile, sqlite3, ssl, threading, asyncio
def f(x): return x * x
if __name__ == "__main__":
    with m.get_context("fork").Pool(2) as p: assert p.map(f, range(9)) == [x * x for x in range(9)]
    tempfile.NamedTemporaryFile().close(); sqlite3.connect("t.db").execute("create table t(x)")
    asyncio.run(asyncio.sleep(0))'
echo DONE
"""

NODE = """set -e
cat > n.js <<'END'
const cp = require('child_process');
const { Worker, isMainThread, parentPort } = require('worker_threads');
if (!isMainThread) { parentPort.postMessage(42); } else {
  if (cp.execFileSync('echo', ['x']).toString() !== 'x\\n') process.exit(1);
  require('fs').watch('.').close();
  new Worker(__filename).on('message', m => console.log(m === 42 ? 'DONE' : 'BAD'));
}
END
/usr/bin/node n.js
"""


NPM = """set -e
mkdir -p dep app
echo '{"name":"dep","version":"1.0.0"}' > dep/package.json
echo '{"name":"app","version":"1.0.0"}' > app/package.json
cd app
npm install --offline --no-audit --no-fund --silent ../dep
test -e node_modules/dep
echo DONE
"""


@check("OK-03", prio="P0", title="gcc and make -j4, a virtual environment, node", timeout=90)
def ok03(c):
    works(c, MAKE)
    if c.form != "run":
        return HELD
    works(c, PYTHON, timeout=40)
    if os.access("/usr/bin/node", os.X_OK):
        works(c, NODE)
    # npm alone takes seconds; once is enough.
    if os.access("/usr/bin/npm", os.X_OK) and (c.form, c.ident) == ("run", "user"):
        works(c, NPM, timeout=40)
    return HELD


@check("OK-04", prio="P0", title="pipes, socketpairs, ptys, job control, a multiplexer")
def ok04(c):
    needs_special_files(c)
    works(c, "seq 100000 | sort -n | tail -1 | grep -q 100000 && echo DONE")
    works(c, "mkfifo p && (cat p > got &) ; echo hi > p; sleep 0.1; grep -q hi got && echo DONE")
    r = works(c, "script -qec 'tty; stty size' /dev/null; echo DONE")
    c.must("/dev/pts/" in r.text, f"no pty of its own: {r}")
    works(c, "script -qec \"bash -ic 'sleep 0.2 & jobs; fg; echo back'\" /dev/null | grep back"
          " && echo DONE")
    if shutil.which("tmux", path="/usr/bin"):
        works(c, "t() { tmux -S ./t.sock -f /dev/null \"$@\"; }; t new-session -d 'sleep 5' &&"
              " t list-sessions && t kill-server && echo DONE", env={"TERM": "xterm"},
              flags=["-e", "TERM=xterm"])
    return HELD


LOOPBACK = r"""
import socket, threading
for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    s = socket.socket(family); s.bind((host, 0)); s.listen()
    threading.Thread(target=lambda: s.accept()[0].sendall(b"hello"), daemon=True).start()
    assert socket.create_connection(s.getsockname()[:2], 3).recv(5) == b"hello"
u = socket.socket(socket.AF_UNIX); u.bind("\0inside"); u.listen()
v = socket.socket(socket.AF_UNIX); v.connect("\0inside")
print(socket.getaddrinfo("localhost", 80)[0][4][0], socket.gethostname(), "DONE")
"""


@check("OK-05", prio="P1", title="server and client on the inside's own loopback")
def ok05(c):
    c.plant(c.ws / "loop.py", LOOPBACK)
    r = c.control(["/usr/bin/python3", "loop.py"])
    c.need_control("DONE" in r.text, f"{r}")
    r = c.sandbox(["/usr/bin/python3", "loop.py"])
    c.must(r.ok and "DONE" in r.text, f"does not work inside: {r}")
    return HELD


def pattern(size):
    """Every byte value, no period that a lost block could hide in."""
    unit = hashlib.shake_256(b"vitrine").digest(MIB)
    return (unit * (size // MIB + 1))[:size]


MIB = 1 << 20


@check("OK-06", prio="P0", title="100 MiB of bytes and all kinds of exit status come through")
def ok06(c):
    size = 100 * MIB if (c.form, c.ident) == ("run", "user") else 8 * MIB
    data = pattern(size) + b"\0\xff\n\r\x04\x1a"
    r = c.sandbox(["/bin/cat"], stdin=data, timeout=60, flags=["-i"] if c.form == "exec" else [])
    c.must(hashlib.sha256(r.out).digest() == hashlib.sha256(data).digest(),
           f"{len(data)} bytes went in, {len(r.out)} came out: {r.err[-200:]!r}")
    r = c.sandbox(["/bin/sh", "-c", "cat >&2"], stdin=data[:MIB + 7])
    c.must(r.err == data[:MIB + 7] and not r.out, f"{len(r.err)} bytes on stderr: {r}")
    codes = (0, 1, 2, 3, 42, 77, 124, 125, 126, 127, 128, 130, 137, 143, 254, 255)
    for code in codes if c.form == "run" else codes[::5]:
        r = c.sandbox(c.probe("exit", code), refusal_ok=True)
        c.must(r.rc == code, f"exit {code} became {r.rc}: {r.err!r}")
    for sig in (1, 6, 9, 11, 15):
        r = c.sandbox(["/bin/sh", "-c", f"kill -{sig} $$"], refusal_ok=True)
        c.must(r.rc == 128 + sig, f"signal {sig} became {r.rc}")
    for argv, want in ((["/no/such/program"], 127), (["/etc"], 126)):
        if c.form != "grandchild":
            r = c.sandbox(argv, refusal_ok=True)
            c.must(r.rc == want and r.err.strip(), f"{argv}: {r}")
    return HELD


@check("OK-07", prio="P1", title="a refusal names its object and its rule", forms=("run",))
def ok07(c):
    r = c.sandbox("mkdir -p .claude .git/hooks; echo x > .claude/settings.json;"
                  "echo x > .git/hooks/pre-commit; echo DONE", flags=["--json"])
    c.must("DONE" in r.text, f"{r}")
    listed = {q.get("path", ""): q.get("rule") for q in r.json().get("quarantined", [])}
    for name in (".claude/settings.json", ".git/hooks"):
        hit = [p for p in listed if name in p]
        c.must(hit and all(listed[p] for p in hit), f"{name} is not told with its rule: {listed}")
    r = c.sandbox("mkdir -p .vscode; echo x > .vscode/tasks.json; echo DONE")
    c.must(".vscode" in r.errtext, f"a person is not told: {r}")
    return HELD


JAVA = """cat > T.java <<'END'
class T {
    public static void main(String[] a) throws Exception {
        Thread t = new Thread(() -> System.out.println("DONE"));
        t.start();
        t.join();
    }
}
END
java T.java
"""


@check("OK-08", prio="P1", title="runtimes start: Java, Go, Rust, Node, Perl", forms=("run",),
       timeout=90)
def ok08(c):
    tools = {"java": "java -version", "go": "go version", "rustc": "rustc --version",
             "node": "node -e 'setTimeout(()=>console.log(1),1)'", "perl": "perl -e 'print 1'",
             "ruby": "ruby -e 'puts 1'", "php": "php -r 'echo 1;'"}
    found = [t for t in tools if os.access(f"/usr/bin/{t}", os.X_OK)]
    if not found:
        c.inconclusive("none of the runtimes is installed")
    for t in found:
        works(c, f"/usr/bin/{tools[t]} && echo DONE", timeout=40)
    if "java" in found and os.access("/usr/bin/javac", os.X_OK) and c.ident == "user":
        works(c, JAVA, timeout=60)
    c.note(*found)
    return HELD


FILES = r"""
import ctypes, os, resource
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.inotify_init1(0); assert fd >= 0
assert libc.inotify_add_watch(fd, b".", 0x100) >= 0
open("watched", "w").close(); assert b"watched" in os.read(fd, 4096)
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
n = min(hard, 10000); resource.setrlimit(resource.RLIMIT_NOFILE, (n, hard))
fds = [os.open("watched", os.O_RDONLY) for _ in range(n - 50)]
for f in fds: os.close(f)
os.symlink("watched", "link"); assert os.readlink("link") == "watched"; os.stat("link")
here = os.getcwd()
for i in range(40):
    os.mkdir("d" * 100); os.chdir("d" * 100)
open("deep", "w").write("x"); os.chdir(here)
try:
    os.setxattr("watched", "user.t", b"v"); assert os.getxattr("watched", "user.t") == b"v"
except OSError as ex:
    print("xattr", ex.errno)
open("n" * 255, "w").close()
os.mkfifo("fifo"); os.link("watched", "hard"); assert os.stat("hard").st_nlink == 2
with open("sparse", "wb") as f: f.truncate(1 << 30)
print("DONE")
"""


@check("OK-09", prio="P1", title="inotify, many files, links, long paths, attributes")
def ok09(c):
    needs_special_files(c)
    c.plant(c.ws / "files.py", FILES)
    twin = c.mkdir(c.root / "twin")
    ctl = c.control(["/usr/bin/python3", str(c.ws / "files.py")], cwd=twin)
    c.need_control("DONE" in ctl.text, f"{ctl}")
    r = c.sandbox(["/usr/bin/python3", "files.py"])
    c.must(r.ok and "DONE" in r.text, f"does not work inside: {r}")
    c.must(("xattr" in r.text) == ("xattr" in ctl.text) or has_lesser_kernel(c), f"attributes: {r.text!r}, {ctl.text!r}")
    return HELD


@check("OK-10", prio="P1", title="a start costs at most 100 ms more (95 of 100 times)",
       forms=("run",), alone=True, timeout=120)
def ok10(c):
    if c.cfg.engine:
        c.inconclusive(f"engine '{c.cfg.engine}' is not measured here: `make bench` compares it with the tool's own call")

    def times(argv, n):
        found = []
        for _ in range(n):
            t0 = time.monotonic()
            popen = c._popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            popen.wait()
            found.append(time.monotonic() - t0)
            c.must(popen.returncode == 0, f"{argv}: {popen.returncode}")
        return sorted(found)

    plain = times(["/bin/true"], 40)
    inside = times([c.cfg.vitrine, "run", "--", "/bin/true"], 100)
    p95 = inside[94] - plain[len(plain) // 2]
    c.note(f"plain median {plain[20] * 1e3:.1f} ms; inside median {inside[50] * 1e3:.1f},"
           f" p95 {inside[94] * 1e3:.1f} ms")
    c.must(p95 <= 0.1, f"a start costs {p95 * 1e3:.0f} ms")
    return HELD


CLAIMS = {
    # id of `doctor --json` -> is it so? Asked of the host or of a real run.
    "landlock": lambda c: "layers 1" in c.host(c.probe("layers", "1", "exit", "0")).text,
    "namespaces": lambda c: c.host(c.probe("asroot", "exit", "0")).rc == 0,
    "seccomp": lambda c: " Seccomp=2" in c.sandbox(c.probe("ids")).text,
    "cgroup": lambda c: limit_by(c, "--memory", "1g") == "kernel",
    "pid_max": lambda c: limit_by(c, "--pids", "400") == "kernel",
    "kvm": lambda c: c.host(["test", "-r", "/dev/kvm", "-a", "-w", "/dev/kvm"]).ok,
    "idmap": lambda c: c.sandbox(["/bin/true"]).ok,
    "proc": lambda c: "Name" in c.sandbox(["/bin/cat", "/proc/self/status"]).text,
    "state_dir": lambda c: c.host(["test", "-w", str(c.state)]).ok,
}


def limit_by(c, flag, value):
    r = c.sandbox(["/bin/true"], flags=["--engine", "native", flag, value, "--json"], refusal_ok=True)
    return None if r.refused else r.json().get("limits", {}).get(flag.strip("-"), {}).get("by")


@check("OK-11", prio="P0", title="what doctor claims is what is found", forms=("run",))
def ok11(c):
    r = c.vitrine("doctor", "--json")
    try:
        told = json.loads(r.text)
    except ValueError:
        c.breach(f"no JSON: {r}")
    c.must((r.rc == 0) == told["can_run"], f"status {r.rc} and can_run {told['can_run']}")
    c.must(told["can_run"] == c.sandbox(["/bin/true"], refusal_ok=True).ok, "can_run is not true")
    states = {x["id"]: x["state"] for x in told["checks"]}
    wrong = {}
    for name, is_so in CLAIMS.items():
        if name not in states:
            wrong[name] = "not told"
        elif (states[name] == "works") != is_so(c):
            wrong[name] = f"told as {states[name]}"
    for name, state in states.items():
        if name.startswith("tool_"):
            tool = "qemu-system-x86_64" if name == "tool_qemu" else name[len("tool_"):]
            found = shutil.which(tool, path=c.env["PATH"] + ":/usr/sbin:/sbin")
            if (state == "works") != bool(found):
                wrong[name] = f"told as {state}"
    c.must(not wrong, f"doctor and the host disagree: {wrong}")
    return HELD


def same(path):
    """What must be equal between a directory edited inside and its twin edited outside."""
    found = {}
    for top, dirs, files in os.walk(path):
        for name in dirs + files:
            p = os.path.join(top, name)
            st = os.lstat(p)
            body = os.readlink(p) if os.path.islink(p) else ""
            if os.path.isfile(p) and not body:
                body = hashlib.sha256(Path(p).read_bytes()).hexdigest()
            found[os.path.relpath(p, path)] = (st.st_mode, st.st_uid, st.st_gid, st.st_nlink, body)
    return found


EDITS = """set -e
mkdir -p a/b c; echo one > a/one; printf '\\0\\1\\2' > a/b/bin; seq 1000 > c/seq
mv a/one c/renamed; rm keep-not; chmod 751 c; chmod 600 c/seq
ln -s ../c/seq a/link; ln c/seq a/hard
sed -i s/500/XXX/ edit-me; printf more >> append-me; mkdir 'a b'; : > 'a b/new
line'; cp -a a copy; rm -r a/b; truncate -s 5 cut-me; touch -d 2001-01-01 dated
echo DONE
"""


@check("OK-12", prio="P1", title="edits, renames, deletions in the workspace arrive exactly")
def ok12(c):
    twin, here = c.mkdir(c.root / "twin"), c.mkdir(c.ws / "w")
    for d in (twin, here):
        for name in ("keep", "keep-not", "edit-me", "append-me", "cut-me", "dated"):
            c.plant(d / name, "".join(f"{i}\n" for i in range(1000)))
    ctl = c.control(EDITS, cwd=twin)
    c.need_control("DONE" in ctl.text, f"{ctl}")
    r = c.sandbox("cd w\n" + EDITS)
    c.must("DONE" in r.text, f"{r}")
    a, b = same(twin), same(here)
    diff = {k: (a.get(k), b.get(k)) for k in a.keys() | b.keys() if a.get(k) != b.get(k)}
    c.must(not diff, f"outside and inside differ: {dict(list(diff.items())[:3])}")
    c.must(os.stat(here / "dated").st_mtime == os.stat(twin / "dated").st_mtime, "times differ")
    return HELD
