# SPDX-License-Identifier: Apache-2.0
"""PR-30 to PR-39, RX-20 to RX-29: what is stopped stays stopped, and pools that the kernel counts for a user or for the
whole machine are not used up from inside.

The variations of each class are made here, from the class's own sentence and a fixed seed."""

import mmap
import os
import random
import signal
import socket
import struct
import time
from contextlib import contextmanager, suppress

from check_pr import insiders
from harness import HELD, Ctx, check, descendants
from outside import bounded

SEED = 20
KEEP_PAUSE, KEEP_DONE, KEEP_BYTES = 13, 23, 624  # keep/keep.h

# ------------------------------------------------------------------------------- stopped is stopped

WAYS = ("none", "timer", "timer_tid", "lease", "dnotify", "fifo", "kid", "orphan", "tty", "peer")
MANNERS = ("default", "handled", "blocked", "ignored")
SHAPES = ("plain", "thread", "threads", "child", "vfork", "undumpable")


def variations(n):
    """n of all combinations, each way and each shape among them."""
    every = [(w, m, s) for w in WAYS for m in MANNERS for s in SHAPES]
    rest = random.Random(SEED).sample(every, len(every))
    first = [next(v for v in rest if v[0] == w and v[2] == s) for w in WAYS for s in SHAPES]
    return (first + [v for v in rest if v not in first])[:n]


class Slots:
    """A file in the workspace in which each of the processes inside counts."""

    def __init__(self, c, n):
        self.path, self.n = c.plant(c.ws / "slots", b"\0" * 65536, mode=0o666), n
        with open(self.path, "r+b") as f:
            self.map = mmap.mmap(f.fileno(), 65536)

    def read(self, field=0):
        return [struct.unpack_from("<Q", self.map, 64 * i + 8 * field)[0] for i in range(self.n)]


@contextmanager
def paused(c: Ctx, name):
    """All inside stand still, as for a checkpoint, for as long as this lasts."""
    here = os.open(c.state / "vitrine" / "sandboxes" / name, os.O_PATH)
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    uid = os.geteuid()
    try:
        os.seteuid(c.uid)  # the keeper talks to its own user only
        s.connect(f"/proc/self/fd/{here}/control")
        s.settimeout(15 * c.cfg.patience)
        began = time.monotonic()
        s.send(struct.pack("<I", KEEP_PAUSE).ljust(KEEP_BYTES, b"\0"))
        said = s.recv(4096)
        c.need_control(said[:4] == struct.pack("<I", KEEP_DONE), f"no pause: {said[:4]!r} {said[180:400]!r}")
        yield time.monotonic() - began
    finally:
        s.close()
        os.seteuid(uid)
        os.close(here)


def poke(where):
    """What the host does beside its sandbox: it opens files, writes into pipes, makes names."""
    for p in where.iterdir():
        kind = p.name.partition(".")[0]
        with suppress(OSError):
            if kind == "dir":
                (p / "new").touch()
            else:
                fd = os.open(p, (os.O_RDWR if kind == "fifo" else os.O_RDONLY) | os.O_NONBLOCK)
                if kind == "fifo":
                    os.write(fd, b"x")
                os.close(fd)


def needs_freeze(c: Ctx):
    """Behind another engine's walls processes are stopped by SIGSTOP, and nothing is promised."""
    if c.cfg.engine:
        c.inconclusive(f"engine '{c.cfg.engine}' stops processes by a signal")


def inside_all(c, slots, where, lines):
    probe = c.probe()[0]
    script = "\n".join(f"{probe} wake {slots.path} {i} {where} {w} {m} {s} &" for i, (w, m, s) in enumerate(lines))
    c.plant(c.ws / "wake.sh", script + "\nwait\n", mode=0o755)
    return ["sh", str(c.ws / "wake.sh")]


def stands_still(c: Ctx, lines, flags=(), may_die=()):
    """Each of these runs, stands still while it shall, and runs again; `may_die`: ways that may be ended instead."""
    needs_freeze(c)
    slots, where = Slots(c, len(lines)), c.mkdir(c.ws / "wake")
    where.chmod(0o777)
    p = c.keeper(command=inside_all(c, slots, where, lines), flags=flags)
    if not c.wait_until(lambda: all(slots.read()), 20):
        c.inconclusive(f"not all began: {[v for v, n in zip(lines, slots.read(), strict=True) if not n]} {p.stop()}")
    idle = [v for v, n in zip(lines, slots.read(2), strict=True) if n]
    c.note("could not be set up:", idle)
    c.need_control(len(idle) <= len(lines) // 5, f"too many could not be set up: {idle}")
    with paused(c, p.name) as took:
        before = slots.read()
        for _ in range(5):
            poke(where)
            time.sleep(0.1)
        went_on = [v for v, a, b in zip(lines, before, slots.read(), strict=True) if a != b]
    c.note(f"stopped after {took * 1000:.1f} ms")
    c.must(not went_on, f"{len(went_on)} went on while all were to stand still: {went_on}")
    after = slots.read()

    def still():
        return [v for v, a, b in zip(lines, after, slots.read(), strict=True) if a == b and v[0] not in may_die]

    c.must(c.wait_until(lambda: not still(), 10), f"do not go on afterwards: {still()}")
    return p


@check("PR-30", prio="P0", forms=("run",), catches=("freeze",), alone=True, timeout=120,
       title="what is stopped from outside stays stopped, whoever sends SIGCONT: 60 variations")
def pr30(c: Ctx):
    stands_still(c, variations(60)).stop()
    return HELD


@check("PR-31", prio="P0", forms=("run",), catches=("freeze",), alone=True, timeout=120,
       title="what traces itself, forks, executes or makes threads without end is stopped all the same")
def pr31(c: Ctx):
    chase = [(w, "default", s) for w in ("fork", "sibling", "thread", "exec") for s in ("plain", "undumpable")]
    stands_still(c, chase, flags=["--pids", "200"]).stop()
    traced = [(w, m, s) for w in ("traced", "mutual") for m in MANNERS[:2] for s in ("plain", "threads", "child")]
    stands_still(c, traced, flags=["--debug"], may_die=("mutual",)).stop()
    return HELD


@check("PR-32", prio="P1", forms=("run",), catches=("freeze",), title="nothing is started while all inside stand still, and a stopped job stays one")
def pr32(c: Ctx):
    needs_freeze(c)
    slots = Slots(c, 1)
    c.plant(c.ws / "job.sh", f"{c.probe()[0]} wake {slots.path} 0 . none default plain & echo $! > pid; wait\n")
    p = c.keeper(command=["sh", "job.sh"])
    c.need_control(c.wait_until(lambda: slots.read()[0] > 0, 10), "it did not begin")
    r = c.vitrine("exec", p.name, "--", "sh", "-c", "kill -STOP $(cat pid) && echo stopped")
    c.need_control("stopped" in r.text, f"not stopped: {r}")
    time.sleep(0.05)
    job = slots.read()[0]
    with paused(c, p.name):
        late = c.start([c.cfg.vitrine, "exec", p.name, "--", "touch", "late"], sandboxed=False)
        time.sleep(0.5)
        c.must(not (c.ws / "late").exists(), "a command was started while all inside were to stand still")
    r = late.wait(10)
    c.must(r.rc == 0 and (c.ws / "late").exists(), f"and not afterwards: {r}")
    time.sleep(0.1)
    c.must(slots.read()[0] == job, "a job that was stopped before goes on")
    r = c.vitrine("exec", p.name, "--", "sh", "-c", "kill -CONT $(cat pid)")
    c.must(c.wait_until(lambda: slots.read()[0] != job, 5), f"the job does not go on when it may: {r}")
    p.stop()
    return HELD


def named(name):
    return [pid for pid, n in descendants(os.getpid()) if n == name]


@check("PR-33", prio="P0", forms=("run",), catches=("exitkill",), title="whoever dies while all inside stand still, nothing goes on: the helper, the keeper")
def pr33(c: Ctx):
    needs_freeze(c)
    for who in ("vitrine-freezer", "vitrine-keeper"):
        slots = Slots(c, 1)
        p = c.keeper(command=c.probe("wake", slots.path, "0", ".", "timer", "blocked", "threads"))
        c.need_control(c.wait_until(lambda s=slots: s.read()[0] > 0, 10), "it did not begin")
        outside = set(named(who)) - set(insiders())
        with paused(c, p.name):
            found = (set(named(who)) - set(insiders())) if who == "vitrine-freezer" else outside
            c.need_control(len(found) == 1, f"{who}: {found}")
            before = slots.read()[0]
            os.seteuid(0) if os.getuid() == 0 else None
            os.kill(found.pop(), signal.SIGKILL)
            c.must(c.wait_until(lambda: not insiders(), 3), f"alive after the death of {who}: {insiders()}")
            c.must(slots.read()[0] == before, f"went on after the death of {who}: {slots.read()[0] - before}")
        c.must(c.wait_until(lambda: not named("vitrine-freezer"), 3), "a helper is left")
        p.stop()
    return HELD


# ------------------------------------------------------------------------------------- shared pools

# kind -> (ways of using it up, what somebody else then needs one of)
POOLS = {
    "inflight": (("stream", "dgram", "seqpacket", "single", "nested"), "stream"),
    "pipes": (("plain", "big"), "whole"),
    "aio": (("big", "small"), "small"),
    "ptys": (("ptmx", "pts"), "ptmx"),
    "mqueues": (("big", "small"), "small"),
    "signals": (("timers", "queued"), "timers"),
    "locked": (("sysv",), "sysv"),
    "inotify": (("instances", "watches"), "instances"),
}
MOST = {"inflight": 70000, "pipes": 20000, "aio": 65536, "ptys": 4096, "signals": 100000, "locked": 1000, "mqueues": 1000, "inotify": 1000}
# docs/SECURITY.md says why. Inside nobody gets aio or a message queue; what the kernel counts for an id, whatever namespaces
# there are, a sandbox shares with its user, unless that is root, whose sandboxes have ids of their own.
NEVER = {("aio", "sibling"), ("mqueues", "sibling")}
SHARED = {("inflight", "host"), ("inflight", "sibling"), ("pipes", "host"), ("pipes", "sibling")}


def suffers(c: Ctx, kind, way, processes=1):
    """Who gets none of it while one sandbox has as much as it can get: the user's processes, another sandbox, Vitrine."""
    one = c.probe("pool", kind, POOLS[kind][1], "1", "0")
    p = c.start(c.probe("pool", kind, way, MOST[kind], "30", processes))
    if not p.wait_for("pool ", 15):
        c.inconclusive(f"{kind} {way}: no answer {p.stop()}")
    found = set()
    r = c.vitrine("run", "--", *one)
    if r.rc != 0:
        found.add("sibling" if "made" in r.text else "vitrine")
    h = c.host(one)
    if h.rc != 0:
        found.add("host")
    c.note(kind, way, processes, p.out.split(b"\n")[0].decode(), "host:", h.text.strip()[:40], "sibling:", r.text.strip()[:40], r.errtext.strip()[:120])
    p.stop()
    return found


@check("RX-20", prio="P0", forms=("run",), catches=("seccomp,verify", "ptys", "locked", "inflight"), alone=True, timeout=180,
       title="what the kernel counts for a user or the machine is not used up from inside: pools, ways, who suffers")
def rx20(c: Ctx):
    with bounded(c):
        # Tools that mount a devpts of their own without a bound, and those whose root is no id of a sandbox's own.
        excused = NEVER | (SHARED if c.ident != "root" or c.cfg.engine else set())
        if c.cfg.engine and c.cfg.engine not in ("crun", "runc", "nsjail"):
            excused |= {("ptys", "sibling")}
        bad = []
        for kind, (ways, _) in POOLS.items():
            for way in ways:
                for processes in (1, 8):
                    bad += [(kind, way, processes, v) for v in suffers(c, kind, way, processes) if (kind, v) not in excused]
        c.must(not bad, f"somebody else gets none: {bad}")
    return HELD


MEMORY = ("memfd", "memfd_one", "memfd_map", "sysv", "sysv_left", "anonymous", "shm", "shm_deleted", "tmp")


@check("RX-21", prio="P0", forms=("run",), catches=("shared",), alone=True, timeout=120,
       title="a limit on memory counts what is no process's own: memfd, System V, /dev/shm, /tmp, shared mappings")
def rx21(c: Ctx):
    """As an ordinary user the limit is watched; root's is the kernel's."""
    with bounded(c):
        through = []
        for way, processes in [(w, 1) for w in MEMORY] + [(w, 4) for w in ("memfd", "sysv_left", "anonymous")]:
            r = c.sandbox(c.probe("pool", "memory", way, 256 // processes, "3", processes), refusal_ok=True,
                          flags=["--memory", "64m,optional", "--disk", "2g,optional", "--json"])
            c.note(way, processes, f"{r.seconds:.2f} s", r.json().get("reason"), r.text.strip()[:40])
            if r.json().get("reason") != "memory":
                through.append((way, processes))
        c.must(not through, f"256 MiB under a limit of 64: {through}")
        # What many have mapped is there once: eleven processes that share 24 MiB do not use 160.
        r = c.sandbox(["python3", "-c", "import mmap,os,time\nm=mmap.mmap(-1,24<<20)\nm.write(b'x'*(24<<20))\n"
                       "for i in range(10):\n  if not os.fork():\n    n=sum(m[j] for j in range(0,24<<20,4096)); time.sleep(1); os._exit(0)\n"
                       "time.sleep(1.2); print('shared')"], flags=["--memory", "160m,optional", "--json"])
        c.must("shared" in r.text or r.rc == 127, f"counted more than once: {r}")  # 127: a system without Python
    return HELD
