# SPDX-License-Identifier: Apache-2.0
"""The containment suite's harness: what makes a verdict trustworthy.

A check plants canaries on the host, proves with a control that the same act succeeds without a
sandbox, then does the act inside one and looks at the host, never at what the inside claims:

    HELD          the act had no effect outside and no canary came out
    BREACH        it had, or a canary came out
    INCONCLUSIVE  the control failed, the command never ran, or the check itself is broken

Absence of a canary only means something when the command really ran; sandbox() therefore marks every
shell script and calls the check INCONCLUSIVE when the mark does not come back.

Each (check, identity, form) runs in a process of its own which is the subreaper of all it starts, in a
directory of its own:

    ROOT/home/IDENT        the fake HOME          ROOT/out     outside every grant, writable by anybody
    ROOT/home/IDENT/proj   the workspace          ROOT/state, ROOT/config, ROOT/run   the XDG folders

Two assertions are made for every check without being asked for: HOME (less the workspace) and OUT are
the same before and after each sandboxed command, and no process is left when the check has ended.
"""

import ctypes
import hashlib
import fcntl
import json
import os
import pwd
import secrets
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import uuid as uuidlib
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

HELD = "HELD"
BREACH = "BREACH"
INCONCLUSIVE = "INCONCLUSIVE"

FORMS = ("run", "exec", "grandchild")
IDENTS = ("user", "root")
TEST_USER = os.environ.get("VITRINE_TEST_USER", "vitrine-test")
LAUNCH_PATH = "/usr/local/bin:/usr/bin:/bin"
PR_SET_CHILD_SUBREAPER = 36
CLONE_NEWNS = 0x00020000
MS_REC, MS_PRIVATE, MS_SHARED = 0x4000, 0x40000, 0x100000
# How much longer than the native engine one may take for a start, and with it for all that waits for one.
PATIENCE = {"podman": 4, "podman-remote": 4, "docker": 4, "gvisor": 6, "vm-emulated": 6}
# What an engine has outside of a check's own folders.
ENGINES_PLACES = ("XDG_RUNTIME_DIR", "DOCKER_HOST", "CONTAINER_HOST", "VITRINE_VM_KERNEL", "VITRINE_VM_MODULES", "VITRINE_VM_DIR",
                  "VITRINE_VM_SHARE")

# What a grandchild is: two shells between the first process and the command, the status kept.
GRANDCHILD = ["sh", "-c", "sh -c '\"$@\"; exit $?' x \"$@\"; exit $?", "x"]


class Breach(Exception):
    pass


class Unsaid(Breach):
    """The wall held, and what Vitrine says of it is not right."""


class Inconclusive(Exception):
    pass


# ---------------------------------------------------------------------------------------- registry


@dataclass(frozen=True)
class Check:
    id: str
    prio: str
    title: str
    forms: tuple
    idents: tuple
    catches: tuple
    catch_ident: str | None
    catch_form: str | None
    timeout: float
    alone: bool | str
    null: bool
    fn: object


CHECKS: dict[str, Check] = {}


def check(id, *, prio, title, forms=FORMS, idents=IDENTS, catches=(), catch_ident=None,
          catch_form=None, timeout=60.0, alone=False, null=False):
    """Register a check. `catches` names the sabotage switches that must turn it red; `alone` keeps
    other checks from running beside it (limits, timing), or, when it is a word, all but those of the
    same word. `null` says two things: the check turns red without any sandbox, and its acts may be
    done by the test account on the naked host, because all they change is undone. Never say it of a
    check that signals, exhausts or mounts."""
    assert not set(forms) - set(FORMS) and not set(idents) - set(IDENTS), id
    assert prio in ("P0", "P1", "P2"), id

    def register(fn):
        if id in CHECKS:
            raise RuntimeError(f"two checks are called {id}")
        CHECKS[id] = Check(id, prio, title, tuple(forms), tuple(idents), tuple(catches),
                           catch_ident, catch_form, timeout, alone, null, fn)
        return fn

    return register


@dataclass
class Config:
    vitrine: str
    tools: dict                     # name -> path of a static program
    sabotage: str = ""
    base: str = "/var/tmp"
    keep: bool = False
    engine: str = ""                # other walls than the native engine's
    roots: dict = field(default_factory=dict)   # identity -> folder of templates: every command is root inside
    warm: bool = False              # the workspace has a list of its directories (check_list.py) before the first start

    def place(self, ident) -> str:
        """tests/run may have a file system in memory for us: root's folders lie there and the user's on the disk; with the
        scripts of tests/cli it is the other way about."""
        return os.environ.get("VITRINE_TEST_MEMORY", self.base) if ident == "root" else self.base

    @property
    def patience(self) -> int:
        return PATIENCE.get(self.engine, 1)


# ----------------------------------------------------------------------------------------- results


@dataclass
class Result:
    rc: int
    out: bytes
    err: bytes
    argv: list = field(default_factory=list)
    timed_out: bool = False
    seconds: float = 0.0

    @property
    def text(self) -> str:
        return self.out.decode("utf-8", "replace")

    @property
    def errtext(self) -> str:
        return self.err.decode("utf-8", "replace")

    @property
    def both(self) -> bytes:
        return self.out + b"\n" + self.err

    @property
    def ok(self) -> bool:
        return self.rc == 0 and not self.timed_out

    @property
    def refused(self) -> bool:
        """Vitrine itself said no: bad input, or its own failure."""
        return self.rc in (2, 125)

    def has(self, word) -> bool:
        return _bytes(word) in self.both

    def json(self) -> dict:
        """The object that `run --json` writes as the last line of stderr."""
        lines = [line for line in self.errtext.splitlines() if line.strip()]
        for line in reversed(lines):
            try:
                found = json.loads(line)
            except ValueError:
                continue
            if isinstance(found, dict):
                return found
        raise Inconclusive(f"no JSON object on stderr: {self.errtext[-300:]!r}")

    def __str__(self):
        return (f"rc={self.rc}{' TIMEOUT' if self.timed_out else ''} "
                f"out={self.out[-400:]!r} err={self.err[-400:]!r}")


def _bytes(x):
    return x if isinstance(x, bytes) else str(x).encode()


class Proc:
    """A command in the background. Both outputs are collected by threads; stop() ends it."""

    def __init__(self, popen, argv, keeper=None, name=None, group=False, patience=1):
        self.popen = popen
        self.patience = patience
        self._group = group         # not sandboxed: its children are for us to end
        self.argv = argv
        self.name = name
        self._keeper = keeper
        self._bufs = {1: bytearray(), 2: bytearray()}
        self._lock = threading.Condition()
        self._threads = []
        for which, stream in ((1, popen.stdout), (2, popen.stderr)):
            if stream is not None:
                t = threading.Thread(target=self._pump, args=(which, stream), daemon=True)
                t.start()
                self._threads.append(t)

    def _pump(self, which, stream):
        while True:
            data = os.read(stream.fileno(), 65536)
            with self._lock:
                self._bufs[which] += data
                self._lock.notify_all()
            if not data:
                return

    @property
    def pid(self):
        return self.popen.pid

    @property
    def stdin(self):
        return self.popen.stdin

    @property
    def out(self) -> bytes:
        with self._lock:
            return bytes(self._bufs[1])

    @property
    def err(self) -> bytes:
        with self._lock:
            return bytes(self._bufs[2])

    @property
    def alive(self) -> bool:
        return self.popen.poll() is None

    def send(self, data):
        self.popen.stdin.write(_bytes(data))
        self.popen.stdin.flush()

    def wait_for(self, word, timeout=10.0) -> bool:
        """True when `word` has come out on stdout or stderr."""
        word = _bytes(word)
        end = time.monotonic() + timeout * self.patience
        with self._lock:
            while True:
                if word in self._bufs[1] or word in self._bufs[2]:
                    return True
                left = end - time.monotonic()
                if left <= 0:
                    return False
                self._lock.wait(min(left, 0.05))
                if self.popen.poll() is not None and not any(t.is_alive() for t in self._threads):
                    return word in self._bufs[1] or word in self._bufs[2]

    def wait(self, timeout=20.0) -> Result:
        timed_out = False
        try:
            self.popen.wait(timeout * self.patience)
        except subprocess.TimeoutExpired:
            timed_out = True
            self.popen.kill()
            self.popen.wait()
        for t in self._threads:
            t.join(1.0)
        if self._keeper:
            self._keeper.stop()
            self._keeper = None
        return Result(self.popen.returncode, self.out, self.err, self.argv, timed_out)

    def signal(self, sig):
        if self.popen.poll() is None:
            self.popen.send_signal(sig)

    def stop(self, timeout=5.0) -> Result:
        """Ask it to end, insist after `timeout`."""
        if self.popen.stdin and not self.popen.stdin.closed:
            try:
                self.popen.stdin.close()
            except OSError:
                pass
        if self._group:
            try:
                os.killpg(self.popen.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        elif self.popen.poll() is None:
            self.popen.terminate()
            try:
                self.popen.wait(timeout * self.patience)
            except subprocess.TimeoutExpired:
                self.popen.kill()
        return self.wait(timeout)


# --------------------------------------------------------------------------------------- processes


def subreaper():
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def own_mounts():
    """As root: a mount namespace for the suite alone, before anything is started, and one for each cell. A sandbox
    that fails to contain, a sabotaged one above all, lets its command mount over the folders of whoever started it;
    those must not be the host's. No mount of another process comes in, so any change of the table is the cell's own
    doing. Inside it all is shared again, as on most hosts, so that the product's own care not to propagate mounts is
    tested too."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS):
        raise OSError(ctypes.get_errno(), "unshare(CLONE_NEWNS)")
    for flags in (MS_REC | MS_PRIVATE, MS_REC | MS_SHARED):
        if libc.mount(b"none", b"/", None, ctypes.c_ulong(flags), None):
            raise OSError(ctypes.get_errno(), "mount propagation")


def process_table():
    """pid -> (ppid, state, name)"""
    table = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", "rb") as f:
                data = f.read()
        except OSError:
            continue
        close = data.rindex(b")")
        fields = data[close + 2:].split()
        name = data[data.index(b"(") + 1:close].decode("utf-8", "replace")
        table[int(entry)] = (int(fields[1]), fields[0].decode(), name)
    return table


def descendants(pid):
    """Everything below `pid` that is still running (zombies are not)."""
    table = process_table()
    below = {}
    for p, (pp, _, _) in table.items():
        below.setdefault(pp, []).append(p)
    found, todo = [], list(below.get(pid, ()))
    while todo:
        p = todo.pop()
        todo += below.get(p, ())
        if table[p][1] not in "ZX":
            found.append((p, table[p][2]))
    return found


def reap_all():
    """-> is nothing left below us? What loses its parent becomes a child of its subreaper's, of ours."""
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return False
        except ChildProcessError:
            return True


def kill_below(pid, but=()):
    """End all that `pid` has below it; only ever called for processes of our own."""
    for _ in range(50):
        reap = [(p, n) for p, n in descendants(pid) if p not in but]
        if not reap:
            return
        for p, _ in reap:
            try:
                os.kill(p, signal.SIGKILL)
            except OSError:
                pass
        time.sleep(0.02)
        if not but:
            reap_all()


# -------------------------------------------------------------------------------------- tree hashes


def tree_entries(path, skip=()):
    """One line per file: all that a program could change. Sorted, so that two lists can be compared.
    A directory's own size is left out because it is the file system's business."""
    skip = {os.fspath(s) for s in skip}
    lines = {}

    def visit(p):
        if p in skip:
            return
        st = os.lstat(p)
        what = [stat.filemode(st.st_mode), st.st_uid, st.st_gid, st.st_nlink, st.st_mtime_ns]
        if stat.S_ISREG(st.st_mode):
            with open(p, "rb", buffering=0) as f:
                what += [st.st_size, hashlib.sha256(f.read()).hexdigest()]
        elif stat.S_ISLNK(st.st_mode):
            what.append(os.readlink(p))
        elif stat.S_ISCHR(st.st_mode) or stat.S_ISBLK(st.st_mode):
            what.append(st.st_rdev)
        try:
            what += [(n, os.getxattr(p, n, follow_symlinks=False))
                     for n in sorted(os.listxattr(p, follow_symlinks=False))]
        except OSError:
            pass
        lines[p] = repr(what)
        if stat.S_ISDIR(st.st_mode):
            for name in sorted(os.listdir(p)):
                visit(os.path.join(p, name))

    visit(os.fspath(path))
    return lines


def tree_diff(before, after):
    gone = [f"gone: {p}" for p in before if p not in after]
    new = [f"new: {p}" for p in after if p not in before]
    changed = [f"changed: {p}: {before[p]} -> {after[p]}" for p in before
               if p in after and before[p] != after[p]]
    return gone + new + changed


def remove_tree(root):
    """Also what an ordinary user made unreadable for himself, and trees deeper than Python recurses."""
    for argv in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
        subprocess.run([*argv, "--", os.fspath(root)], stdin=subprocess.DEVNULL, capture_output=True, check=False)


# --------------------------------------------------------------------------------------- the context


@dataclass(frozen=True)
class Account:
    name: str
    uid: int
    gid: int
    groups: tuple


def account_of(ident) -> Account:
    """The identity's account; for root the test account, which ground.account() has made."""
    if os.geteuid() != 0:
        me = pwd.getpwuid(os.geteuid())
        return Account(me.pw_name, me.pw_uid, me.pw_gid, tuple(os.getgroups()))
    if ident == "root":
        return Account("root", 0, 0, (0,))
    pw = pwd.getpwnam(TEST_USER)
    return Account(pw.pw_name, pw.pw_uid, pw.pw_gid, (pw.pw_gid,))


class Ctx:
    def __init__(self, cfg: Config, ident: str, form: str):
        self.cfg = cfg
        self.ident = ident
        self.form = form
        self.account = account_of(ident)
        self.uid, self.gid = self.account.uid, self.account.gid
        self.notes: list[str] = []
        self._procs: list[Proc] = []
        self._planted: set[tuple] = set()
        self._sealed = None
        self._names = 0
        self._is_warm = not cfg.warm
        self.root = Path(tempfile.mkdtemp(prefix=f"vcontain.{os.getpid()}.", dir=cfg.place(ident)))
        self.root.chmod(0o755)
        self.home = self.mkdir(self.root / "home" / ident)
        self.ws = self.mkdir(self.home / "proj")
        self.out = self.mkdir(self.root / "out", 0o777)
        self.state = self.mkdir(self.root / "state", 0o700)
        self.config = self.mkdir(self.root / "config", 0o700)
        self.run_dir = self.mkdir(self.root / "run", 0o700)
        self.env = {
            "PATH": LAUNCH_PATH, "HOME": str(self.home), "USER": self.account.name,
            "LOGNAME": self.account.name, "SHELL": "/bin/sh", "LANG": "C.UTF-8", "TERM": "dumb",
            "XDG_STATE_HOME": str(self.state), "XDG_CONFIG_HOME": str(self.config),
            "XDG_RUNTIME_DIR": str(self.run_dir),
        }
        for i in range(80 if cfg.warm else 0):
            self.mkdir(self.ws / "listed" / str(i))

    # -- words for checks

    def uuid(self) -> str:
        return "canary" + uuidlib.uuid4().hex

    def note(self, *words):
        self.notes.append(" ".join(str(w) for w in words))

    def breach(self, why):
        raise Breach(str(why))

    def must(self, ok, why):
        """The wall: BREACH unless `ok`."""
        if not ok:
            raise Breach(str(why))

    def must_say(self, ok, why):
        """The word that goes with it: BREACH unless `ok`, as for the wall, but nothing was reached by it."""
        if not ok:
            raise Unsaid(str(why))

    def inconclusive(self, why):
        raise Inconclusive(str(why))

    def need_control(self, ok, why):
        if not ok:
            raise Inconclusive(f"control: {why}")

    # -- files of the host

    def mkdir(self, path, mode=0o755) -> Path:
        """A directory and its missing parents, owned by the identity."""
        path = Path(path)
        with self.host_edit():
            for p in reversed([path, *path.parents]):
                if not p.exists() and not p.is_symlink():
                    p.mkdir()
                    os.chmod(p, mode if p == path else 0o755)
                    self._own(p)
        return path

    def _own(self, path):
        if os.geteuid() == 0:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)

    def plant(self, path, text="", mode=0o644) -> Path:
        """A file of the identity. Readable by anybody unless told otherwise, so that it is the
        sandbox's walls that are tested and not an accident of ids."""
        with self.host_edit():
            path = Path(path)
            self.mkdir(path.parent)
            path.write_bytes(_bytes(text))
            path.chmod(mode)
            self._own(path)
            st = path.stat()
            self._planted.add((st.st_dev, st.st_ino))
        return path

    def symlink(self, path, target) -> Path:
        with self.host_edit():
            path = Path(path)
            self.mkdir(path.parent)
            path.symlink_to(target)
            self._own(path)
        return path

    def tree_entries(self, path, skip=()):
        return tree_entries(path, skip)

    def tree_hash(self, path, skip=()) -> str:
        """Names, types, modes, owners, link counts, times, contents, extended attributes."""
        lines = tree_entries(path, skip)
        return hashlib.sha256(repr(sorted(lines.items())).encode()).hexdigest()

    # -- HOME and OUT, before and after

    def _outside(self):
        lines = tree_entries(self.out)
        lines.update(tree_entries(self.home, skip=(self.ws,)))
        return lines

    def _seal(self):
        if self._sealed is None:
            self._sealed = self._outside()

    def _unseal(self):
        if self._sealed is None:
            return
        before, self._sealed = self._sealed, None
        changes = tree_diff(before, self._outside())
        if changes:
            raise Breach("changed outside the workspace: " + "; ".join(changes[:5]))

    @contextmanager
    def host_edit(self):
        """Around what a check itself changes in HOME or OUT after the first launch."""
        was = self._sealed is not None
        self._unseal()
        try:
            yield
        finally:
            if was:
                self._seal()

    # -- programs

    def tool(self, name, *words) -> list:
        """argv of a static helper, copied into the workspace so that it is visible inside."""
        src = self.cfg.tools.get(name)
        if not src:
            raise Inconclusive(f"no program '{name}' was given or built")
        dst = self.ws / name
        if not dst.exists():
            with self.host_edit():
                shutil.copyfile(src, dst)
                dst.chmod(0o755)
                self._own(dst)
        return [str(dst), *[str(w) for w in words]]

    def probe(self, *words) -> list:
        return self.tool("probe", *words)

    # -- launches

    def _popen(self, argv, *, env=None, stdin=None, pass_fds=(), cwd=None, stdout=None, stderr=None,
               start_new_session=True, as_root=False):
        kw = {}
        if os.geteuid() == 0 and not as_root:
            kw = {"user": self.uid, "group": self.gid, "extra_groups": list(self.account.groups)}
        full = dict(self.env)
        if self.cfg.engine and self.cfg.vitrine in argv[:1]:
            # With every verb: more than one starts a sandbox again.
            full.update({k: os.environ[k] for k in ENGINES_PLACES if k in os.environ})
            if argv[1:2] in (["run"], ["explain"]) and "--engine" not in argv:
                argv = [*argv[:2], "--engine", self.cfg.engine, *argv[2:]]
        for k, v in (env or {}).items():
            if v is None:
                full.pop(k, None)
            else:
                full[k] = str(v)
        return subprocess.Popen(
            [os.fspath(a) if not isinstance(a, bytes) else a for a in argv], env=full,
            cwd=os.fspath(cwd) if cwd is not None else self.ws,
            stdin=subprocess.DEVNULL if stdin is None else stdin,
            stdout=subprocess.PIPE if stdout is None else stdout,
            stderr=subprocess.PIPE if stderr is None else stderr, pass_fds=pass_fds,
            umask=0o022, start_new_session=start_new_session, **kw)

    def _finish(self, popen, argv, data, timeout) -> Result:
        t0 = time.monotonic()
        timed_out = False
        try:
            out, err = popen.communicate(data, timeout * self.cfg.patience)
        except subprocess.TimeoutExpired:
            timed_out = True
            below = [p for p, _ in descendants(popen.pid)]
            popen.terminate()
            try:
                out, err = popen.communicate(None, 3)
            except subprocess.TimeoutExpired:
                # Whoever still holds the pipes would make us wait for its end.
                popen.kill()
                ours = {p for p, _ in descendants(os.getpid())}
                for pid in ours.intersection(below):
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                out, err = popen.communicate()
        return Result(popen.returncode, out or b"", err or b"", argv, timed_out,
                      time.monotonic() - t0)

    @staticmethod
    def _stdin(stdin):
        """stdin may be None (/dev/null), bytes or str to feed, a descriptor or a file."""
        if isinstance(stdin, (bytes, str)):
            return subprocess.PIPE, _bytes(stdin)
        return stdin, None

    def host(self, argv, *, env=None, stdin=None, timeout=20, pass_fds=(), cwd=None,
             as_root=False) -> Result:
        """As the identity, without a sandbox; leaves the seal on HOME and OUT as it is. as_root is for
        controls of acts that no ordinary account may do."""
        if as_root and os.geteuid() != 0:
            raise Inconclusive("this control needs root")
        if isinstance(argv, str):
            argv = ["sh", "-c", argv]
        fd, data = self._stdin(stdin)
        popen = self._popen(argv, env=env, stdin=fd, pass_fds=pass_fds, cwd=cwd, as_root=as_root)
        return self._finish(popen, argv, data, timeout)

    def control(self, argv, **kw) -> Result:
        """The same act without a sandbox. It may change HOME and OUT; undo it before the sandbox."""
        self._unseal()
        return self.host(argv, **kw)

    def _vitrine_env(self, env):
        full = dict(env or {})
        if self.cfg.sabotage:
            full["VITRINE_SABOTAGE"] = self.cfg.sabotage
        return full

    def vitrine(self, *words, env=None, stdin=None, timeout=20, pass_fds=(), cwd=None) -> Result:
        """The product's command line as it is, no form: `c.vitrine("explain", "--", "true")`."""
        self._seal()
        argv = [self.cfg.vitrine, *words]
        fd, data = self._stdin(stdin)
        popen = self._popen(argv, env=self._vitrine_env(env), stdin=fd, pass_fds=pass_fds, cwd=cwd)
        return self._finish(popen, argv, data, timeout)

    def _warm_up(self):
        """Before the first start: what the check has made so far is in a list that the start believes."""
        if self._is_warm:
            return
        self._is_warm = True
        time.sleep(0.05)
        self.vitrine("run", "--", "true")
        folder = self.state / "vitrine" / "index"
        if not self.wait_until(lambda: folder.is_dir() and any("." not in p.name for p in folder.iterdir())):
            self.note("no list was written")

    def new_name(self) -> str:
        self._names += 1
        return f"t{self._names}-{secrets.token_hex(3)}"

    def keeper(self, flags=(), env=None, cwd=None, command=("sleep", "60"), name=None, stdin=None,
               pass_fds=(), timeout=10.0) -> Proc:
        """A named sandbox that stays up; .name is for `vitrine exec`. stop() ends it."""
        self._seal()
        name = name or self.new_name()
        argv = [self.cfg.vitrine, "run", "--name", name, *flags, "--", *command]
        fd = subprocess.PIPE if isinstance(stdin, (bytes, str)) else stdin
        popen = self._popen(argv, env=self._vitrine_env(env), stdin=fd, cwd=cwd, pass_fds=pass_fds)
        proc = Proc(popen, argv, name=name, patience=self.cfg.patience)
        self._procs.append(proc)
        most = timeout * self.cfg.patience
        end = time.monotonic() + most
        # `exec` of a sandbox that is known and does not run starts it: the keeper would be another's child.
        control = self.state / "vitrine" / "sandboxes" / name / "control"
        while not control.exists() and proc.alive and time.monotonic() < end - most / 2:
            time.sleep(0.01)
        while True:
            r = self.vitrine("exec", name, "--", "true", env=env, cwd=cwd, timeout=timeout)
            if r.ok:
                return proc
            if not proc.alive or time.monotonic() > end:
                last = proc.stop()
                raise Inconclusive(f"sandbox for exec did not come up: {last}; exec: {r}")
            time.sleep(0.02)

    def _link_templates(self):
        place = self.mkdir(self.state / "vitrine" / "templates", 0o700)
        for name in os.listdir(self.cfg.roots[self.ident]):
            if not (place / name).is_symlink():
                (place / name).symlink_to(Path(self.cfg.roots[self.ident]) / name)

    def _argv(self, argv, flags, env, cwd, pass_fds):
        """-> (argv of the launch, keeper or None)"""
        argv = list(argv)
        if self.cfg.roots:
            flags = [*flags, "--template", "rooted", *([] if "--name" in flags else ["--name", self.new_name()])]
            argv = ["sudo", "-E", "--", *argv]
            self._link_templates()
        if self.form == "exec":
            flags = [f for i, f in enumerate(flags) if f != "--name" and flags[i - 1:i] != ["--name"]] if self.cfg.roots \
                else flags
            keeper = self.keeper(flags, env, cwd, pass_fds=pass_fds)
            return [self.cfg.vitrine, "exec", keeper.name, "--", *argv], keeper
        if self.form == "grandchild":
            argv = [*GRANDCHILD, *argv]
        return [self.cfg.vitrine, "run", *flags, "--", *argv], None

    def sandbox(self, argv, flags=(), env=None, stdin=None, timeout=20, pass_fds=(), cwd=None,
                refusal_ok=False, timeout_ok=False) -> Result:
        """In a sandbox, in the current form. A str is a shell script. Unless told otherwise a launch
        that Vitrine refused, a script that never began and a timeout are INCONCLUSIVE."""
        token = None
        if isinstance(argv, str):
            token = "began-" + secrets.token_hex(8)
            argv = ["sh", "-c", f"echo {token}\n{argv}"]
        self._warm_up()
        self._seal()
        full, keeper = self._argv(argv, flags, env, cwd, pass_fds)
        fd, data = self._stdin(stdin)
        try:
            popen = self._popen(full, env=self._vitrine_env(env), stdin=fd, pass_fds=pass_fds,
                                cwd=cwd)
            result = self._finish(popen, full, data, timeout)
        finally:
            if keeper:
                keeper.stop()
        result.keeper = keeper
        began = not result.refused if token is None else _bytes(token) in result.out
        if token:
            result.out = result.out.replace(_bytes(token) + b"\n", b"", 1)
        if result.timed_out and not timeout_ok:
            raise Inconclusive(f"timed out: {result}")
        if not began and not refusal_ok:
            raise Inconclusive(f"the command did not run inside: {result}")
        result.began = began
        return result

    def start(self, argv, flags=(), env=None, stdin=None, pass_fds=(), cwd=None, sandboxed=True,
              stdout=None, stderr=None) -> Proc:
        """The same in the background; stdin=PIPE for .send(). Ended with the check at the latest."""
        if isinstance(argv, str):
            argv = ["sh", "-c", argv]
        keeper = None
        if sandboxed:
            self._warm_up()
            self._seal()
            argv, keeper = self._argv(argv, flags, env, cwd, pass_fds)
            env = self._vitrine_env(env)
        popen = self._popen(argv, env=env, stdin=stdin, pass_fds=pass_fds, cwd=cwd, stdout=stdout,
                            stderr=stderr)
        proc = Proc(popen, argv, keeper, keeper.name if keeper else None, not sandboxed, self.cfg.patience)
        self._procs.append(proc)
        return proc

    # -- oracles

    def leaks(self, result, uuid) -> bool:
        """Did the canary come out on stdout or stderr, or was it copied to a file of the workspace?
        Files that the check planted itself do not count, under whatever name."""
        word = _bytes(uuid)
        if result is not None:
            if word in _bytes(result.out) or word in _bytes(result.err):
                return True
        return bool(self.found_in(self.ws, word))

    def found_in(self, path, uuid, planted=False) -> list:
        """Files below `path` that hold the canary (in their name or in their bytes)."""
        word, hits = _bytes(uuid), []
        for top, dirs, files in os.walk(path):
            for name in dirs + files:
                p = os.path.join(top, name)
                try:
                    st = os.lstat(p)
                except FileNotFoundError:  # a keeper is still tidying up
                    continue
                if (st.st_dev, st.st_ino) in self._planted and not planted:
                    continue
                if word in os.fsencode(name):
                    hits.append(p)
                elif stat.S_ISREG(st.st_mode) and os.path.exists(p):
                    with open(p, "rb") as f:
                        if word in f.read():
                            hits.append(p)
        return hits

    def wait_until(self, claim, timeout=5.0, step=0.02) -> bool:
        end = time.monotonic() + timeout * self.cfg.patience
        while not claim():
            if time.monotonic() > end:
                return False
            time.sleep(step)
        return True

    # -- the end

    def close(self):
        """Everything started is ended; -> names of processes that would not go by themselves."""
        for proc in self._procs:
            try:
                proc.stop(3.0)
            except Exception as ex:                        # the verdict is already known
                self.note("stop:", ex)
        end = time.monotonic() + 3.0 * self.cfg.patience
        while not reap_all():
            is_over = time.monotonic() > end
            # Podman keeps one process per user to hold its user namespace; nothing of a sandbox is in it.
            if is_over or self.cfg.engine == "podman":
                left = [f"{name}({pid})" for pid, name in descendants(os.getpid())
                        if self.cfg.engine != "podman" or name != "podman pause"]
                if is_over or not left:
                    kill_below(os.getpid())
                    return left
            time.sleep(0.005)
        return []

    def remove(self):
        if self.cfg.keep:
            self.note("kept", self.root)
            return
        remove_tree(self.root)


# ----------------------------------------------------------------------------------- one check, run


def run_check(chk: Check, cfg: Config, ident: str, form: str) -> dict:
    """In a process of its own: verdict, reasons, time."""
    t0 = time.monotonic()
    why, verdict, left, ctx = "", INCONCLUSIVE, [], None
    by = "check"
    try:
        ctx = Ctx(cfg, ident, form)
        try:
            verdict = chk.fn(ctx)
            if verdict not in (HELD, BREACH, INCONCLUSIVE):
                verdict, why = INCONCLUSIVE, f"the check returned {verdict!r}"
        except Breach as ex:
            verdict, why = BREACH, str(ex)
            by = "word" if isinstance(ex, Unsaid) else by
        except Inconclusive as ex:
            verdict, why = INCONCLUSIVE, str(ex)
        left = ctx.close()
        try:
            ctx._unseal()
        except Breach as ex:
            if verdict != BREACH:
                verdict, why, by = BREACH, str(ex), "outside"
        if left and verdict == HELD:
            verdict, why, by = BREACH, "processes left: " + " ".join(left), "left"
    except Exception:
        verdict, why = INCONCLUSIVE, traceback.format_exc(limit=4)
    finally:
        if ctx:
            kill_below(os.getpid())
            ctx.remove()
    return {"id": chk.id, "prio": chk.prio, "title": chk.title, "ident": ident, "form": form,
            "verdict": verdict, "by": by, "why": why, "left": left,
            "notes": ctx.notes if ctx else [], "seconds": round(time.monotonic() - t0, 3)}


def spawn_check(chk, cfg, ident, form):
    """-> (pid, descriptor that will carry the result as JSON)"""
    r, w = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        os.close(w)
        return pid, r
    status = 1
    try:
        os.close(r)
        w = fcntl.fcntl(w, fcntl.F_DUPFD_CLOEXEC, 200)  # the low ones are the check's to use
        os.umask(0o022)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        subreaper()
        if os.geteuid() == 0 and not has_daemon():
            own_mounts()
        data = json.dumps(run_check(chk, cfg, ident, form)).encode()
        while data:
            data = data[os.write(w, data):]
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def has_daemon():
    """Containers are started by a daemon outside: it must see the same mounts as the cell."""
    return any(key in os.environ for key in ("DOCKER_HOST", "CONTAINER_HOST"))


def host_mounts(c):
    """All of the cell's own namespace. Where it has none, others mount things meanwhile, a daemon for its containers too:
    what is the cell's is below its folder or was mounted by its account through FUSE."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    if os.geteuid() == 0 and not has_daemon():
        return lines
    return [line for line in lines if str(c.root) in line or f"user_id={c.uid}," in line]


# ------------------------------------------------------------------- what the table of an engine says


DIRECT = "network without proxy variables"
USERNS = "a user namespace of its own"
OWN_DEVICES = {"fuse", "net"}  # of gVisor's kernel, in which nothing of the host stands behind them
COUNTS = "kernel objects counted apart"
rows = {}


def row(c):
    name = c.cfg.engine or "native"
    if name not in rows:
        rows.update({e["name"]: e for e in json.loads(c.vitrine("engines", "--json", "--quick").text)["engines"]})
    return rows[name]


def has_step(c, step):
    """Does this engine honour it, as its table has it?"""
    return row(c)["steps"][step] == "yes"


def has_own_kernel(c):
    """What gets through to that one has not got through to the host's, and what it shows of itself is its own affair."""
    return bool(c.cfg.engine) and row(c)["kernel"] != "shared kernel"


def has_lesser_kernel(c):
    """gVisor's: it shows less than Linux does, has no 32-bit door, and devices of its own that nothing stands behind."""
    return bool(c.cfg.engine) and row(c)["kernel"] == "user-space kernel"


def is_machine(c):
    """Commands stand in the first namespaces of a whole Linux that is theirs; the walls are around it."""
    return bool(c.cfg.engine) and row(c)["kernel"] == "own kernel"


def needs_hosts_kernel(c, what):
    if has_own_kernel(c):
        c.inconclusive(f"engine '{c.cfg.engine}' has a kernel of its own: {what}")


def needs_special_files(c):
    """Where QEMU itself serves a machine's files (VITRINE_VM_SHARE=9p), some of its versions make no FIFOs and sockets."""
    if is_machine(c) and "MADE" not in c.sandbox("mkfifo /tmp/fifo && echo MADE").text:
        needs_hosts_kernel(c, "QEMU, which serves its files, makes no FIFOs and sockets")


def needs_step(c, step):
    if not has_step(c, step):
        c.inconclusive(f"engine '{c.cfg.engine}' cannot honour: {step}")
