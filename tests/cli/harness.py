# SPDX-License-Identifier: Apache-2.0
"""What the tests of the command line stand on.

A test is a function of a Box: a fresh home, workspace and state directory that belong to one identity,
and the program to drive as that identity. @test registers it for root, for an ordinary user, or both; run
by an ordinary user the root half is skipped. The two identities are tested side by side, each in a process
that adopts every orphan of its tests, so that nothing they start can hide.

Asserted after every test, without being asked for: no process of it is left, no mount, no directory of an
unnamed run, no control socket. Every test has a deadline, and the closing line is

    N passed, N failed, N skipped
"""

import ctypes
import fcntl
import json
import os
import pty
import pwd
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import ground  # noqa: E402
import reaper  # noqa: E402
from reaper import below, describe, reap  # noqa: E402, F401

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
TEST_USER = ground.TEST_USER
PR_SET_CHILD_SUBREAPER = 36
BUILT = Path(__file__).resolve().parent.parent.parent / "build" / "vitrine"

# The programs that `vitrine` finds beside itself.

tests = []
lasting = set()  # processes of the tests' own that outlive a test: a fake internet
engine = None  # --engine NAME: the same tests behind other walls
deadline = None  # of the test that runs now


class Skip(Exception):
    """The host lacks what the test needs."""


def test(fn=None, *, who=("root", "user"), timeout=15):
    def register(f):
        tests.append((f.__name__.strip("_"), f, who, timeout))
        return f
    return register(fn) if fn else register


# --------------------------------------------------------------------------------------------- claims


def eq(got, want, what=""):
    if got != want:
        raise AssertionError(f"{what + ': ' if what else ''}got {got!r}, want {want!r}")


def has(text, *needles):
    for n in needles:
        if n not in text:
            raise AssertionError(f"{n!r} is not in {text!r}")


def has_not(text, *needles):
    for n in needles:
        if n in text:
            raise AssertionError(f"{n!r} is in {text!r}")


def refused(result, *needles, rc=2):
    """Exactly one line of ours on stderr, nothing on stdout."""
    eq(result.rc, rc, result.err)
    eq(result.out, "", "stdout")
    if not re.fullmatch(r"vitrine: [^\n]+\n", result.err):
        raise AssertionError(f"not one line of ours: {result.err!r}")
    has(result.err, *needles)


def is_machine():
    return (engine or "").startswith("vm")


def slowness():
    """Of kernels in software."""
    return 4 if is_machine() else 2 if engine == "gvisor" else 1


class Patience:
    """So many seconds, in which a machine that stood still for a while is not held against the program."""

    STEP = 0.25

    def __init__(self, seconds):
        self.left, self.last = seconds * slowness(), time.monotonic()

    def is_over(self):
        now = time.monotonic()
        self.left -= min(now - self.last, self.STEP)
        self.last = now
        return self.left <= 0


def soon(claim, what, seconds=3.0):
    """Wait until claim() is true."""
    patience = Patience(seconds)
    while not claim():
        if patience.is_over():
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.01)


# ------------------------------------------------------------------------------------------------ box


class Result:
    def __init__(self, rc, out, err):
        self.rc, self.raw_out, self.raw_err = rc, out, err
        self.out, self.err = out.decode(errors="replace"), err.decode(errors="replace")

    @property
    def json(self):
        """The object `run --json` ends its stderr with."""
        return json.loads(self.err.splitlines()[-1])


class Box:
    def __init__(self, base, name, who, program):
        self.who, self.is_root = who, who == "root"
        self.program = program
        self.account = None
        if who == "user" and os.geteuid() == 0:
            self.account = pwd.getpwnam(TEST_USER)
        self.dir = base / name
        self.home = self.dir / "home"
        self.ws = self.home / "proj"
        self.config = self.dir / "config"
        self.ws.mkdir(parents=True)
        self.config.mkdir()
        self.own(self.dir)
        self.started = []

    @property
    def state(self):
        return self.dir / "state" / "vitrine"

    @property
    def engine(self):
        return engine or "native"

    def own(self, path):
        """Give a tree that the test made to the identity it tests."""
        if self.account:
            for p in [path, *path.rglob("*")]:
                os.chown(p, self.account.pw_uid, self.account.pw_gid, follow_symlinks=False)

    def write(self, rel, text, mode=0o644):
        p = self.ws / rel
        p.parent.mkdir(parents=True, exist_ok=True)
        p.write_bytes(text if isinstance(text, bytes) else text.encode())
        p.chmod(mode)
        self.own(self.ws / Path(rel).parts[0])
        return p

    def read(self, rel):
        return (self.ws / rel).read_text()

    def env(self, extra=None):
        env = {"PATH": PATH, "HOME": str(self.home), "LANG": "C.UTF-8", "TERM": "xterm-256color",
               "SHELL": "/bin/sh", "USER": self.account.pw_name if self.account else "tester",
               "XDG_STATE_HOME": str(self.dir / "state"), "XDG_CONFIG_HOME": str(self.config),
               "XDG_CACHE_HOME": str(self.dir / "cache")}
        for key in ("VITRINE_SABOTAGE", "ASAN_OPTIONS"):  # do nothing but in builds that are made for it
            if key in os.environ:
                env[key] = os.environ[key]
        if is_machine():
            env.update(self.machine())
        for key in ("XDG_RUNTIME_DIR", "DOCKER_HOST", "CONTAINER_HOST"):  # where a container engine finds its own things
            if engine in ("podman", "podman-remote", "docker") and key in os.environ:
                env[key] = os.environ[key]
        for key, value in (extra or {}).items():
            if value is None:
                env.pop(key, None)
            else:
                env[key] = value
        return env

    def machine(self):
        """A machine's kernel, and where it is kept once it has booted: one place for all tests of an identity."""
        env = {key: os.environ[key] for key in ("VITRINE_VM_KERNEL", "VITRINE_VM_MODULES") if key in os.environ}
        place = Path(os.environ["VITRINE_VM_DIR"]) / self.who
        place.mkdir(exist_ok=True)
        os.chown(place, self.account.pw_uid if self.account else -1, -1)
        return {**env, "VITRINE_VM_DIR": str(place)}

    def popen(self, argv, **kw):
        """Any program as this identity."""
        if self.account:
            kw.update(user=self.account.pw_uid, group=self.account.pw_gid, extra_groups=[])
        kw.setdefault("cwd", self.ws)
        kw["env"] = self.env(kw.pop("env", None))
        p = subprocess.Popen([str(a) for a in argv], **kw)
        self.started.append(p)
        return p

    def start(self, *args, **kw):
        if engine and args and args[0] in ("run", "create", "explain") and not {"--engine", "--help"} & set(args):
            args = (args[0], "--engine", engine, *args[1:])
        kw.setdefault("stdin", subprocess.DEVNULL)
        kw.setdefault("stdout", subprocess.PIPE)
        kw.setdefault("stderr", subprocess.PIPE)
        return self.popen([self.program, *args], **kw)

    def finish(self, p, input=None, timeout=60):
        out, err = p.communicate(input, timeout=timeout * slowness())
        return Result(p.returncode, out or b"", err or b"")

    def cli(self, *args, input=None, **kw):
        if input is not None:
            kw["stdin"] = subprocess.PIPE
        timeout = kw.pop("timeout", 60)
        return self.finish(self.start(*args, **kw), input, timeout)

    def run(self, *args, **kw):
        return self.cli("run", *args, **kw)

    def sh(self, script, *options, **kw):
        return self.cli("run", *options, "--", "sh", "-c", script, **kw)

    def ok(self, script, *options, **kw):
        """The output of a script that must succeed and about which nothing is to be said."""
        r = self.sh(script, *options, **kw)
        if r.rc != 0 or r.err:
            raise AssertionError(f"exit {r.rc}, stdout {r.out!r}, stderr {r.err!r}")
        return r.out

    def host(self, *argv, **kw):
        """A program outside any sandbox, as this identity; must succeed."""
        p = self.popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kw)
        r = self.finish(p)
        if r.rc != 0:
            raise AssertionError(f"{argv}: exit {r.rc}: {r.err}")
        return r.out

    def has_step(self, step):
        """Of the engine that is tested, by the table that refuses plans."""
        rows = json.loads(self.cli("engines", "--json", "--quick").out)["engines"] if engine else []
        return not engine or next(e for e in rows if e["name"] == engine)["steps"][step] == "yes"

    def needs_step(self, step):
        if not self.has_step(step):
            raise Skip(f"engine '{engine}' cannot honour: {step}")

    def needs_limit(self, name, value):
        """Of the engine that is tested: that the kernel holds it. Where it does not, a limit that must hold is refused."""
        said = json.loads(self.cli("explain", "--json", f"--{name}", f"{value},optional", "--", "true").out)["limits"][name]
        if engine and said["by"] != "kernel":
            refused(self.run(f"--{name}", value, "--", "true"), f"limit {name}", ",optional", rc=125)
            raise Skip(f"engine '{engine}' refuses --{name} without ',optional': {said['how']}")

    def needs_native(self, what):
        if engine not in (None, "native"):
            raise Skip(f"{what} is the native engine's (docs/ENGINES.md)")

    def needs(self, *programs):
        for p in programs:
            if shutil.which(p, path=PATH) is None:
                raise Skip(f"{p} is not installed")

    def named(self, name, script="echo up; exec sleep 30", **kw):
        """A named sandbox that is running when this returns."""
        p = self.start("run", "--name", name, "--", "sh", "-c", script, **kw)
        line = p.stdout.readline()
        if line != b"up\n":
            raise AssertionError(f"sandbox {name} did not start: {line!r} {p.stderr.read()!r}")
        return p

    def stop(self, p, sig=signal.SIGTERM):
        if p.poll() is None:
            p.send_signal(sig)
        return self.finish(p)

    def term(self, *args, **kw):
        if engine and args and args[0] == "run":
            args = (args[0], "--engine", engine, *args[1:])
        return Term(self, [self.program, *args], **kw)


class Term:
    """A program on a terminal of its own, as a shell would have started it."""

    def __init__(self, box, argv, rows=24, cols=80, stdout=None, env=None):
        self.master, slave = pty.openpty()
        self.resize(rows, cols)
        if box.account:
            os.fchown(slave, box.account.pw_uid, -1)
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.p = box.popen(argv, stdin=slave, stdout=slave if stdout is None else stdout, stderr=slave,
                           start_new_session=True, env=env,
                           preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.seen = b""

    def resize(self, rows, cols):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def send(self, text):
        os.write(self.master, text.encode())

    def fill(self, seconds):
        if select.select([self.master], [], [], seconds)[0]:
            try:
                self.seen += os.read(self.master, 65536)
            except OSError:
                return False
        return True

    def expect(self, pattern, seconds=6.0):
        """Wait for the pattern; what it matched and all before it is used up."""
        patience = Patience(seconds)
        while True:
            m = re.search(pattern.encode(), self.seen)
            if m:
                self.seen = self.seen[m.end():]
                return m
            if patience.is_over() or not self.fill(Patience.STEP):
                raise AssertionError(f"{pattern!r} did not come; there was {self.seen!r}")

    def wait(self, seconds=6.0):
        patience = Patience(seconds)
        while self.p.poll() is None:
            if patience.is_over():
                raise AssertionError(f"did not end; there was {self.seen!r}")
            self.fill(0.02)
        while select.select([self.master], [], [], 0)[0] and self.fill(0):
            pass
        return self.p.returncode

    def is_restored(self):
        return termios.tcgetattr(self.slave) == self.before

    def close(self):
        os.close(self.master)
        os.close(self.slave)


# ---------------------------------------------------------------------------------------------- accounts


FAKE = """
mount --make-rprivate / && cp /etc/passwd {dir}/passwd && sed -i '/^{user}:/d' {dir}/passwd &&
echo '{user}:x:{uid}:{gid}::{dir}/account:/bin/sh' >>{dir}/passwd && mount --bind {dir}/passwd /etc/passwd &&
cp /etc/group {dir}/group && echo '{group}' >>{dir}/group && mount --bind {dir}/group /etc/group && exec "$@"
"""


def account_home(box):
    home = box.dir / "account"
    (home / "proj").mkdir(parents=True, exist_ok=True)
    a = pwd.getpwnam(TEST_USER)
    for p in (home, home / "proj"):
        os.chown(p, a.pw_uid, a.pw_gid)
    return a, home


def as_account(box, argv, group=""):
    """The words that run argv as root, in a mount namespace of its own where the test account has a home, and a group besides."""
    a, _ = account_home(box)
    script = FAKE.format(dir=box.dir, user=TEST_USER, uid=a.pw_uid, gid=a.pw_gid, group=group)
    return ["unshare", "-m", "sh", "-c", script, "sh", *argv]


def with_account(box, *argv, env=None):
    """Runs it there; the account and the output."""
    a, home = account_home(box)
    return a, box.host(*as_account(box, argv), cwd=home / "proj", env=env)


# ------------------------------------------------------------------------------------------- leftovers


def children():
    found = [int(c) for c in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]
    return [c for c in found if c not in lasting]


def is_podmans(pid):
    """It keeps one process per user to hold its user namespace; nothing of a sandbox is in it."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip() == "podman pause"
    except OSError:
        return False


def check_processes():
    """What a dead client left to us must end by itself; then it is gone for good."""
    short, long = Patience(2), Patience(15)
    while True:
        reap()
        left = [pid for pid in children() if not is_podmans(pid)]
        is_over, is_long_over = short.is_over(), long.is_over()
        # Taking up journals steps back behind everybody else, so it may take a while here.
        if not left or is_long_over or (is_over and not all("vitrine-store ingest" in describe(pid) for pid in left)):
            break
        time.sleep(0.01)
    names = [f"{pid} {describe(pid)}" for pid in left]
    for pid in children():
        os.kill(pid, signal.SIGKILL)
    if left:
        time.sleep(0.2)
        reap()
        raise AssertionError(f"processes are left: {names}")


def check_leftovers(box):
    check_processes()
    mounts = [l for l in Path("/proc/self/mountinfo").read_text().splitlines() if str(box.dir) in l]
    eq(mounts, [], "mounts are left")
    sandboxes = box.state / "sandboxes"
    for d in sandboxes.iterdir() if sandboxes.exists() else []:
        if "run-" in d.name:
            raise AssertionError(f"a directory is left: {d}")
        if (d / "control").exists():
            raise AssertionError(f"a control socket is left: {d / 'control'}")
    quarantine = box.state / "quarantine"
    for d in quarantine.iterdir() if quarantine.exists() else []:
        if not any(d.iterdir()):
            raise AssertionError(f"an empty quarantine is left: {d}")


# ---------------------------------------------------------------------------------------------- running


def set_deadline(seconds):
    """By a clock that stands still with the machine. 0: none any more."""
    global deadline
    deadline = Patience(seconds) if seconds else None
    signal.signal(signal.SIGALRM, on_alarm)
    step = Patience.STEP if seconds else 0
    signal.setitimer(signal.ITIMER_REAL, step, step)


def on_alarm(_signo, _frame):
    global deadline
    if deadline and deadline.is_over():
        deadline = None
        raise TimeoutError("the deadline passed")


def run_one(box, fn, timeout):
    """None, or what went wrong."""
    set_deadline(timeout)
    wrong = None
    try:
        fn(box)
    except Skip:
        raise
    except AssertionError as e:
        where = traceback.extract_tb(e.__traceback__)
        line = next((f.lineno for f in where if f.name == fn.__name__), where[0].lineno)
        wrong = f"line {line}: {e}"
    except Exception as e:
        where = traceback.extract_tb(e.__traceback__)
        line = next((f.lineno for f in where if f.name == fn.__name__), where[0].lineno)
        wrong = f"line {line}: {type(e).__name__}: {e}"
    finally:
        set_deadline(0)
        for p in box.started:
            if wrong and p.poll() is None:
                p.kill()
                p.wait()
            for f in (p.stdin, p.stdout, p.stderr):
                if f and not f.closed:
                    f.close()
    try:
        check_leftovers(box)
    except AssertionError as e:
        wrong = f"{wrong}; and {e}" if wrong else str(e)
    return wrong


def run_identity(who, chosen, base, program, out):
    """All tests of one identity, in a process of its own."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    counts = {"ok": 0, "FAIL": 0, "SKIP": 0}
    if is_machine():  # it boots once, and not on the time of the first test
        box = Box(base, f"boot-{who}", who, program)
        box.run("--", "true", timeout=300)
        ground.remove_tree(box.dir)
    for name, fn, _, timeout in chosen:
        t0 = time.monotonic()
        box, why = Box(base, f"{name}-{who}", who, program), None
        try:
            why = run_one(box, fn, timeout)
            word = "FAIL" if why else "ok"
        except Skip as e:
            word, why = "SKIP", str(e)
        counts[word] += 1
        said = f" {why}" if why else ""
        out.write(f"{word} {name}@{who} {time.monotonic() - t0:.2f}s{said}\n")
        out.flush()
        ground.remove_tree(box.dir)
    out.write(json.dumps(counts) + "\n")
    out.flush()


def files(*argv):
    """cp or rm of a state: some of it is closed even to its owner, and a namespace of its own opens that."""
    return subprocess.run([*(["unshare", "-r"] if os.geteuid() else []), *argv], check=True)


def identities():
    return ["root", "user"] if os.geteuid() == 0 else ["user"]


def place_machines(base):
    """A kernel for them, and where they are kept once they have booted."""
    import guest
    if "VITRINE_VM_KERNEL" not in os.environ:
        words, lacking = guest.kernel()
        if lacking:
            sys.exit(lacking)
        os.environ.update(words)
    place = Path(os.environ.setdefault("VITRINE_VM_DIR", str(base / "vm")))
    place.mkdir(exist_ok=True)


def place_of(who, base):
    """tests/run may have a file system in memory for us: the user's boxes lie there and root's on the disk; with the
    containment suite it is the other way about."""
    memory = os.environ.get("VITRINE_TEST_MEMORY")
    if who != "user" or not memory:
        return base
    place = Path(memory) / base.name
    place.mkdir(mode=0o755, exist_ok=True)
    return place


def main():
    global engine
    reaper.enter()
    wanted = sys.argv[1:]
    if wanted[:1] == ["--engine"]:
        engine, wanted = wanted[1], wanted[2:]
    source = Path(os.environ.get("VITRINE", BUILT))
    with ground.account():
        return run_all(source, wanted)


def run_all(source, wanted):
    base = Path(tempfile.mkdtemp(prefix="vitrine-cli-" if tempfile.gettempdir() == "/tmp" else "c"))
    base.chmod(0o755)
    # A copy, so that building anew does not change what is being tested.
    program = base / "vitrine"
    # What it executes lies beside it; feed is a keeper for the tests of the store.
    beside = [p for p in source.parent.glob("vitrine-*") if p.is_file()]
    for p, copy in [(source, program)] + [(p, base / p.name) for p in beside + [source.parent / "tests/tools/feed"]]:
        if p.exists():
            shutil.copyfile(p, copy)
            copy.chmod(0o755)
    running, total = [], {"ok": 0, "FAIL": 0, "SKIP": 0}
    present = identities()
    if is_machine():
        place_machines(base)
    if engine in ("podman-remote", "docker", "nsjail", "systemd", "systemd-system"):
        present = [who for who in present if who == "user"]  # they do not map root's ids away
    for who in ("root", "user"):
        chosen = [t for t in tests if who in t[2] and (not wanted or t[0] in wanted)]
        if who not in present:
            for t in chosen:
                print(f"SKIP {t[0]}@{who} this identity cannot be had here")
                total["SKIP"] += 1
            continue
        r, w = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(r)
            code = 1
            try:
                with os.fdopen(w, "w") as out:
                    run_identity(who, chosen, place_of(who, base), program, out)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                os._exit(code)
        os.close(w)
        running.append((pid, r))
    for pid, r in running:
        with os.fdopen(r) as f:
            lines = f.read().splitlines()
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if status or not lines or not lines[-1].startswith("{"):
            print("\n".join(lines))
            print("FAIL the tests themselves broke off")
            total["FAIL"] += 1
            continue
        print("\n".join(lines[:-1]))
        for word, n in json.loads(lines[-1]).items():
            total[word] += n
    for place in {place_of(who, base) for who in present} | {base}:
        ground.remove_tree(place)
    # Without root there are scripts of which nothing can be tried.
    if not total["ok"] and not total["FAIL"] and (os.geteuid() == 0 or not total["SKIP"]):
        print("FAIL nothing was tested")
        total["FAIL"] += 1
    print(f"{total['ok']} passed, {total['FAIL']} failed, {total['SKIP']} skipped")
    return 1 if total["FAIL"] else 0
