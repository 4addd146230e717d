# SPDX-License-Identifier: Apache-2.0
"""What the checks hold on the outside: verdicts of the probe, sentinels, traps, terminals, bounds.

Nothing here trusts the inside. A sentinel is a host process with a secret, a trap is a host
listener that remembers who came, a terminal is a pty whose session leader is ours, and a bound
keeps an exhausting check from hurting the machine even when the wall under test is gone.
"""

import ctypes
import os
import pty
import re
import resource
import secrets
import socket
import subprocess
import threading
import time
from contextlib import contextmanager
from pathlib import Path

from harness import has_lesser_kernel, needs_hosts_kernel

THROUGH, REFUSED, UNSURE = 0, 1, 2
CLONE_NEWNET = 0x40000000


# -------------------------------------------------------------------------------- the probe's words


def verdicts(result) -> dict:
    """"= WORD STATUS" lines of `probe each`."""
    return {m[1]: int(m[2]) for m in re.finditer(r"^= (\S+) (\d)$", result.text, re.M)}


def answers(result, word) -> list:
    """What the lines of this word say: ok, ENAME, SIGSYS."""
    return re.findall(rf"^{re.escape(word)} (\S+)$", result.text, re.M)


def reached(c, words) -> set:
    """The words that get through without a sandbox: as the identity, else as root of a user
    namespace, because the kernel asks some for a capability before anything else."""
    found = {w for w, v in verdicts(c.control(c.probe("each", *words))).items() if v == THROUGH}
    rest = [w for w in words if w not in found]
    if rest:
        r = c.control(c.probe("asroot", "each", *rest))
        found |= {w for w, v in verdicts(r).items() if v == THROUGH}
    return found


def attempts(c, words, **kw) -> dict:
    """All words inside; the probe must have come to its end."""
    r = c.sandbox(c.probe("each", *words), refusal_ok=True, **kw)
    got = verdicts(r)
    missing = [w for w in words if w not in got]
    if missing:
        c.inconclusive(f"no answer from inside for {missing}: {r}")
    return got


def inside(c, word, *rest, **kw):
    """One word inside. That it did not get through means something only if it was tried: without
    the probe's own answer there is no verdict."""
    r = c.sandbox(c.probe(word, *rest), refusal_ok=True, **kw)
    if not answers(r, word):
        c.inconclusive(f"no answer from inside for {word}: {r}")
    return r


def wall(c, words, *, privileged=(), absent=(), **kw):
    """Each word gets through outside and is refused inside. `privileged` can only be controlled as
    the host's root, `absent` are not in every kernel; both are still tried inside."""
    if has_lesser_kernel(c):  # it has no such door: a number is taken for a call of the other kind
        words = [w for w in words if not w.startswith(("int80_", "socketcall_"))]
        if not words:
            needs_hosts_kernel(c, "there is no 32-bit door")
    found = reached(c, list(words))
    excused = set(absent) | (set() if c.ident == "root" else set(privileged))
    lost = [w for w in words if w not in found and w not in excused]
    c.need_control(not lost, f"refused outside as well: {lost}")
    c.need_control(bool(found), "nothing gets through outside")
    got = attempts(c, list(words), **kw)
    through = [w for w in words if got[w] == THROUGH]
    c.must(not through, f"got through: {through}")
    unsure = [w for w in words if got[w] == UNSURE]
    if unsure:
        c.inconclusive(f"cannot say: {unsure}")


# ---------------------------------------------------------------------------------------- sentinels


class Sentinel:
    """A host process of the identity with a canary in its memory, arguments and environment."""

    def __init__(self, c):
        self.word = c.uuid()
        self.proc = c.start(c.probe("sentinel", self.word), sandboxed=False, stdin=subprocess.PIPE,
                            env={"SENTINEL_CANARY": self.word})
        if not self.proc.wait_for("addr", 5):
            c.inconclusive("the sentinel did not start")
        m = re.search(rb"pid (\d+) addr (\d+)", self.proc.out)
        self.pid, self.addr = int(m[1]), int(m[2])

    @property
    def running(self) -> bool:
        """Alive and neither stopped nor traced."""
        try:
            stat = Path(f"/proc/{self.pid}/stat").read_text()
        except OSError:
            return False
        return stat[stat.rindex(")") + 2] in "RSD"

    def stop(self):
        self.proc.stop()


# -------------------------------------------------------------------------------------------- traps


class Trap:
    """A listener that logs every connection or datagram and answers with a word of its own."""

    def __init__(self, family, address, kind=socket.SOCK_STREAM):
        self.word = "trap" + secrets.token_hex(8)
        self.log = []
        self.kind = kind
        self.sock = socket.socket(family, kind)
        if family == socket.AF_INET6:
            self.sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        self.sock.bind(address)
        self.address = self.sock.getsockname()
        if kind == socket.SOCK_STREAM:
            self.sock.listen(16)
        self.sock.settimeout(0.1)
        self.open = True
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    @property
    def port(self):
        return self.address[1]

    def _serve(self):
        while self.open:
            try:
                if self.kind == socket.SOCK_DGRAM:
                    data, who = self.sock.recvfrom(2048)
                    self.log.append(data)
                    continue
                conn, who = self.sock.accept()
            except (socket.timeout, OSError):
                continue
            with conn:
                self.log.append(b"connected")
                conn.settimeout(0.5)
                try:
                    self.log.append(conn.recv(2048))
                    conn.sendall(self.word.encode())
                except OSError:
                    pass

    def clear(self):
        """After the control: what comes now came from inside."""
        time.sleep(0.05)
        self.log.clear()

    def close(self):
        """The thread finds out at its next look; nobody needs to wait for that."""
        self.open = False
        self.sock.close()


def unix_trap(path, c=None) -> Trap:
    trap = Trap(socket.AF_UNIX, str(path))
    if c is not None:
        os.chmod(path, 0o777)
        c._own(path)
    return trap


def abstract_trap(name) -> Trap:
    return Trap(socket.AF_UNIX, "\0" + name)


# --------------------------------------------------------------------------------- a small internet


ADDRESSES4 = ("93.184.216.34", "10.0.0.5", "192.168.77.1", "169.254.169.254")
ADDRESSES6 = ("2001:db8::34", "fd00::5")


def fake_internet(c):
    """A network namespace for this check and all it starts: lo carries the addresses above. So a
    packet that leaves the sandbox arrives at a trap, and nothing ever leaves the machine."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET):
        c.inconclusive(f"no network namespace for the check: {os.strerror(ctypes.get_errno())}")
    script = ["link set lo up"]
    script += [f"addr add {a}/32 dev lo" for a in ADDRESSES4]
    script += [f"addr add {a}/128 dev lo nodad" for a in ADDRESSES6]
    r = subprocess.run(["ip", "-batch", "-"], input="\n".join(script).encode(), capture_output=True)
    c.need_control(r.returncode == 0, f"ip: {r.stderr!r}")


def packets() -> int:
    """Sent on the namespace's only interface since its birth."""
    for line in Path("/proc/thread-self/net/dev").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name.strip() == "lo":
            return int(rest.split()[9])
    raise RuntimeError("no lo")


# ---------------------------------------------------------------------------------------- terminals


class Terminal:
    """vitrine as the foreground job of a session leader of ours, on a pty of ours.

    report: what the session leader found after the job (see the probe's word ctty).
    screen: all that was written to the terminal."""

    def __init__(self, c, argv, flags=(), sandboxed=True, env=None):
        self.c = c
        self.master, slave = pty.openpty()
        os.fchown(slave, c.uid, c.gid)
        self.screen = b""
        self.report = {}
        keeper = None
        if sandboxed:
            c._seal()
            argv, keeper = self._argv(argv, list(flags))
            env = c._vitrine_env(env)
        self.got, give = os.pipe()
        argv = [*c.probe("ctty", give), *argv]
        popen = c._popen(argv, env=env, stdin=slave, stdout=slave, stderr=slave, pass_fds=(give,))
        os.close(give)
        os.close(slave)
        self.popen, self.keeper = popen, keeper
        self.lock = threading.Lock()
        self.thread = threading.Thread(target=self._drain, daemon=True)
        self.thread.start()

    def _argv(self, argv, flags):
        c = self.c
        if c.form != "exec":
            return c._argv(argv, flags, None, None, ())
        tty_flags = [f for f in flags if f in ("-t", "-i")]
        full, keeper = c._argv(argv, [f for f in flags if f not in tty_flags], None, None, ())
        return [full[0], "exec", *tty_flags, *full[2:]], keeper

    def _drain(self):
        while True:
            try:
                data = os.read(self.master, 65536)
            except OSError:
                return
            if not data:
                return
            with self.lock:
                self.screen += data

    def seen(self, word, timeout=8.0) -> bool:
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            with self.lock:
                if word in self.screen:
                    return True
            if self.popen.poll() is not None:
                time.sleep(0.1)
                return word in self.screen
            time.sleep(0.01)
        return False

    def type(self, data):
        os.write(self.master, data)

    def finish(self, timeout=10.0) -> dict:
        text = b""
        os.set_blocking(self.got, False)
        end = time.monotonic() + timeout
        while b"end\n" not in text and time.monotonic() < end:
            try:
                data = os.read(self.got, 4096)
                if not data:
                    break
                text += data
            except BlockingIOError:
                time.sleep(0.01)
        try:
            self.popen.wait(2.0)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
        if self.keeper:
            self.keeper.stop()
        time.sleep(0.02)
        for line in text.decode("utf-8", "replace").splitlines():
            key, _, value = line.partition(" ")
            self.report[key] = value
        os.close(self.master)
        os.close(self.got)
        return self.report


# ------------------------------------------------------------------------------------- outer bounds


def _controllers():
    base = Path("/sys/fs/cgroup")
    if (base / "memory").is_dir() and (base / "pids").is_dir():
        return [(base / "memory", "memory.limit_in_bytes"), (base / "pids", "pids.max")]
    return []


def _own_cgroup(controller):
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        if controller.name in names.split(","):
            return controller / path.lstrip("/")
    return controller


@contextmanager
def bounded(c, memory=512 << 20, pids=1500):
    """The check's own process, and so all that it starts, under limits that are not the product's:
    with the wall switched off an exhausting check ends here and not at the machine's limits."""
    made, before = [], []
    try:
        if os.geteuid() == 0:
            tag = f"vcontain.{secrets.token_hex(4)}"
            for (base, name), value in zip(_controllers(), (memory, pids)):
                here = base / tag
                here.mkdir()
                made.append(here)
                (here / name).write_text(str(value))
                before.append(_own_cgroup(base))
                (here / "cgroup.procs").write_text(str(os.getpid()))
        if not made:
            soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
            top = pids if hard == resource.RLIM_INFINITY else min(pids, hard)
            resource.setrlimit(resource.RLIMIT_NPROC, (top, hard))
        yield
    finally:
        _leave(c, made, before)


def _leave(c, made, before):
    for here, old in zip(made, before):
        end = time.monotonic() + 3.0
        while True:
            try:
                # Sentinels and sandboxes that live on until the check has ended go home with us.
                for pid in (here / "cgroup.procs").read_text().split():
                    (old / "cgroup.procs").write_text(pid)
            except OSError:
                pass                                       # it ended in between
            try:
                here.rmdir()
                break
            except OSError:
                if time.monotonic() > end:
                    c.note("left behind:", here)
                    break
                time.sleep(0.02)


def fork_latency() -> float:
    """How long the host takes to start a process just now, in seconds."""
    t0 = time.monotonic()
    subprocess.run(["/bin/true"], check=True)
    return time.monotonic() - t0
