# SPDX-License-Identifier: Apache-2.0
"""RX - resource exhaustion: what is inside ends at its own limits and the host does not notice.

Every check here also runs under bounds of its own (bounded in outside.py) and the probe stops by
itself at the number it is given, so that a missing wall is a verdict and not an accident."""

import os
import re
import threading
import time
from pathlib import Path

from check_pr import insiders, supervisors
from harness import COUNTS, HELD, check, descendants, host_mounts, needs_step, process_table
from outside import THROUGH, Sentinel, bounded, fork_latency

MIB = 1 << 20


def number(result, key):
    m = re.search(rf"^{key} (\d+)$", result.text, re.M)
    return int(m[1]) if m else None


def rss(pids):
    """Resident memory of these processes together, in bytes."""
    total = 0
    for p in pids:
        try:
            total += int(Path(f"/proc/{p}/statm").read_text().split()[1]) * 4096
        except OSError:
            pass
    return total


@check("RX-01", prio="P0", title="a fork bomb ends at --pids and the host can still fork",
       catches=("pids",), alone=True)
def rx01(c):
    cap, want = 100, 400
    with bounded(c):
        ctl = c.control(c.probe("forkloop", want))
        c.need_control(number(ctl, "made") == want, f"not that many outside either: {ctl}")
        p = c.start(c.probe("forkloop", want, "1"), flags=["--pids", str(cap)])
        if not p.wait_for("forkloop", 10):
            c.inconclusive(f"no answer: {p.stop()}")
        latency = min(fork_latency() for _ in range(3))
        r = p.wait(15)
        made = number(r, "made")
        if made is None:
            c.inconclusive(f"no count: {r}")
        c.must(made <= cap, f"{made} processes under a cap of {cap}")
        c.must(made >= cap // 2, f"only {made} processes under a cap of {cap}")
        c.must(latency < 0.2, f"the host needs {latency:.3f} s to start a process")
        c.must(not r.timed_out, "did not end")
    return HELD


def memory_flags(c):
    """The kernel's limit where we may have it, else the keeper's watch."""
    return ["--memory", "64m" if c.ident == "root" else "64m,optional"]


@check("RX-02", prio="P0", title="twice the memory limit is killed, and nothing else is",
       forms=("run", "grandchild"), catches=("memory",), alone=True)
def rx02(c):
    with bounded(c):
        ctl = c.control(c.probe("touchmem", "128"))
        c.need_control(ctl.rc == THROUGH, f"not outside either: {ctl}")
        s = Sentinel(c)
        other = c.start(c.probe("sleep", "30"))
        r = c.sandbox(c.probe("touchmem", "128", "5"), flags=[*memory_flags(c), "--json"],
                      refusal_ok=True)
        c.must(r.rc != THROUGH and r.seconds < 5, f"128 MiB were used under a limit of 64: {r}")
        c.must(r.rc == 137, f"not the status of a killed command: {r}")
        # The control group is docker's, and it does not say what it killed.
        c.must(r.json().get("reason") == "memory" or c.cfg.engine == "docker", f"the reason is not told: {r.json()}")
        c.must(s.running, "the sentinel was hit")
        c.must(other.alive, "another sandbox was hit")
        other.stop()
    return HELD


@check("RX-03", prio="P0", title="private file systems end at --disk", catches=("disk",),
       forms=("run", "grandchild"), alone=True)
def rx03(c):
    with bounded(c):
        free = os.statvfs("/").f_bavail
        for place in ("/tmp", "/var/tmp", "/dev/shm", "$HOME"):
            r = c.sandbox(f"{c.probe()[0]} fill {place}/fill 128; rm -f {place}/fill",
                          flags=["--disk", "32m"], refusal_ok=True)
            got = number(r, "filled")
            if got is None:
                c.inconclusive(f"{place}: {r}")
            c.must(got <= 36, f"{place}: {got} MiB under a limit of 32")
            c.must("fallocate ok" not in r.text, f"{place}: 128 MiB could be reserved")
        c.must(os.statvfs("/").f_bavail > free - 256 * 256, "the host's disk was used")
    return HELD


@check("RX-03b", prio="P0", title="what a sandbox keeps on the disk ends at --disk, also behind a closed door", catches=("disk",),
       forms=("run",), alone="disk")
def rx03b(c):
    """Watched, not enforced by the kernel: the sandbox is ended soon after it has grown over its limit."""
    with bounded(c):
        name = c.new_name()
        r = c.sandbox("mkdir ~/shut; dd if=/dev/zero of=$HOME/shut/fill bs=1M count=48 2>/dev/null; chmod 000 ~/shut; sleep 20",
                      flags=["--name", name, "--disk", "32m,optional", "--json"], refusal_ok=True, timeout=60)
        if r.refused:
            return HELD
        said = r.json()
        c.must(said["limits"]["disk"]["by"] == "watched", f"not told: {said['limits']}")
        c.must(said["reason"] == "disk", f"48 MiB under a limit of 32: {said['reason']}")
    return HELD


@check("RX-04", prio="P1", title="empty files end at a cap, and leaving is quick",
       forms=("run", "grandchild"), catches=("disk",), alone=True)
def rx04(c):
    with bounded(c):
        t0 = time.monotonic()
        r = c.sandbox("d=$(mktemp -d /tmp/vcontain.XXXXXX) && " + c.probe()[0] +
                      " inodes $d 120000; rm -rf $d", flags=["--disk", "16m"], timeout=50)
        made = number(r, "made")
        if made is None:
            c.inconclusive(f"{r}")
        c.must(made < 120000, f"{made} files in a private /tmp of 16 MiB")
        c.must(time.monotonic() - t0 < 60 * c.cfg.patience, "too slow to end")
    return HELD


@check("RX-05", prio="P1", title="open files end at a limit; others still open theirs", alone=True)
def rx05(c):
    with bounded(c):
        r = c.sandbox(["/bin/sh", "-c", "ulimit -Hn"])
        c.must(r.text.strip().isdigit(), f"no limit on open files: {r.text!r}")
        hard = int(r.text)
        c.must(hard <= 1 << 20, f"the limit on open files is {hard}")
        p = c.start(["/bin/sh", "-c", f"ulimit -n {min(hard, 20000)};"
                     f"{c.probe()[0]} openfiles 30000; echo done"])
        if not p.wait_for("done", 10):
            c.inconclusive(f"{p.stop()}")
        c.must(b"openfiles EMFILE" in p.out, f"no end: {p.out!r}")
        with open("/dev/null"):
            pass
        c.must(c.sandbox(["/bin/true"]).ok, "a second run does not work")
        p.stop()
    return HELD


class Drain:
    """The reading end of a pipe: counts and throws away."""

    def __init__(self):
        self.r, self.w = os.pipe()
        self.bytes = 0
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while True:
            data = os.read(self.r, 1 << 16)
            if not data:
                return
            self.bytes += len(data)

    def close(self):
        os.close(self.w)
        self.thread.join(3)


def own_rss(c):
    """Of our own processes; what the tool of another engine takes for itself is its affair."""
    mine = supervisors()
    if c.cfg.engine:
        table = process_table()
        mine = [p for p in mine if p in table and table[p][2].startswith("vitrine")]
    return rss(mine)


@check("RX-06", prio="P0", title="floods of output end at --output; memory stays small",
       forms=("run", "grandchild"))
def rx06(c):
    with bounded(c):
        # The pipe is not a real file of ours: what is not read waits, what is read is thrown away.
        for flags, want in (([], 64 * MIB), (["--output", "4m", "--json"], 4 * MIB)):
            d = Drain()
            p = c.start(c.probe("out", 64 * MIB), flags=flags, stdout=d.w)
            peak = 0
            while p.alive:
                peak = max(peak, own_rss(c))
                time.sleep(0.01)
            r = p.wait(30)
            d.close()
            c.must(peak < 64 * MIB, f"the supervisor used {peak // MIB} MiB")
            if not flags:
                c.must(d.bytes == want, f"{d.bytes} of {want} bytes came out: {r}")
                continue
            c.must(d.bytes <= want + MIB, f"{d.bytes} bytes under a limit of {want}")
            c.must(r.json().get("reason") == "output" and r.rc != 0, f"the reason is not told: {r}")
    return HELD


@check("RX-07", prio="P1", title="spinning threads get the processor time of --cpus and no more",
       forms=("run",), alone=True)
def rx07(c):
    with bounded(c):
        r = c.sandbox(c.probe("spin", "16", "1000"), flags=["--cpus", "0.1"], refusal_ok=True)
        if r.refused and number(r, "cpu_ms") is None:
            c.must(c.ident == "user" and r.err.strip(), f"refused: {r}")
            return HELD
        ctl = c.control(c.probe("spin", "16", "1000"))
        c.need_control(number(ctl, "cpu_ms") > 300, f"not more outside either: {ctl}")
        c.must(number(r, "cpu_ms") < 200, f"{number(r, 'cpu_ms')} ms of processor time per second")
    return HELD


@check("RX-09", prio="P0", title="--time ends what ignores every signal",
       forms=("run", "grandchild"), catches=("time",))
def rx09(c):
    with bounded(c):
        t0 = time.monotonic()
        r = c.sandbox(c.probe("stubborn", "20"), flags=["--time", "2"], timeout=15, refusal_ok=True,
                      timeout_ok=True)
        took = time.monotonic() - t0
        left = insiders()
        c.must(took <= 7 and not left, f"alive after {took:.1f} s: {left}")
        c.must(took >= 1.9, f"ended after {took:.1f} s already: {r}")
        c.must(r.rc == 124, f"the status does not say so: {r}")
        c.must(r.err.strip(), "no word about the reason")
    return HELD


def host_can(c, words):
    return c.host(c.probe(*words)).rc == THROUGH


@check("RX-11", prio="P1", title="what is counted for each user is not used up from inside",
       forms=("run", "exec"), alone=True)
def rx11(c):
    needs_step(c, COUNTS)
    with bounded(c):
        for word, n in (("ptys", 6000), ("inotify", 400), ("timers", 100000)):
            c.need_control(host_can(c, [word, "1"]), f"{word}: not one outside")
            p = c.start(["/bin/sh", "-c", f"ulimit -n $(ulimit -Hn); {c.probe()[0]} {word} {n} 3"])
            if not p.wait_for(f"{word} ", 10):
                c.inconclusive(f"{word}: {p.stop()}")
            c.must(host_can(c, [word, "1"]), f"{word}: none left for the host's user: {p.out!r}")
            p.stop()
    return HELD


@check("RX-13", prio="P0", title="a limit that cannot be kept is refused, never dropped in silence",
       forms=("run",))
def rx13(c):
    with bounded(c):
        r = c.sandbox(["/bin/true"], flags=["--memory", "64m", "--json"], refusal_ok=True)
        if r.rc in (2, 125):
            c.must(c.ident == "user", f"refused although root may: {r}")
            c.must(r.err.strip() and b"memory" in r.err, f"refused without a reason: {r}")
        else:
            by = r.json().get("limits", {}).get("memory", {}).get("by")
            c.must(by == "kernel", f"not kept by the kernel and not refused: {r.json()}")
        r = c.sandbox(["/bin/true"], flags=["--memory", "64m,optional", "--json"])
        limit = r.json().get("limits", {}).get("memory", {})
        c.must(limit.get("by") in ("kernel", "watched", "none"), f"not told: {r.json()}")
        c.must(limit.get("by") != "none" or not limit.get("max"), f"a dropped limit: {limit}")
        # A home that is kept lies on the disk, where nothing bounds it.
        r = c.sandbox(["/bin/true"], flags=["--name", c.new_name(), "--disk", "32m", "--json"],
                      refusal_ok=True)
        if not r.refused:
            limit = r.json().get("limits", {}).get("disk", {})
            c.must(limit.get("by") == "kernel", f"a dropped limit: {limit}")
        for bad in ("64q", "-1", "", "0", "1e9", "99999999999999999999"):
            r = c.sandbox(["/bin/true"], flags=[f"--memory={bad}"], refusal_ok=True)
            c.must(r.rc in (2, 125) and r.err.strip(), f"--memory={bad!r}: {r}")
    return HELD


def left_groups():
    """Control groups of sandboxes whose keeper (the number at the end of the name) is gone. Those
    of runs that others have just now on this machine do not count."""
    found = []
    for top, dirs, _ in os.walk("/sys/fs/cgroup"):
        for d in dirs:
            pid = d.rpartition("-")[2]
            if d.startswith("vitrine-") and pid.isdigit() and not os.path.exists(f"/proc/{pid}"):
                found.append(os.path.join(top, d))
    return found


# What the other suites make, perhaps beside us; the program itself makes no such name.
OTHER_TESTS = ("vitrine-cli-", "vitrine-internet-", "vitrine-resolv-", "vitrine-engines-")


def leftovers(c):
    """What a run could leave on the host, by name: all of it ours; others may work beside us."""
    tops = (Path(d) for d in ("/tmp", "/var/tmp", "/dev/shm", "/run"))
    places = [p for d in tops for p in d.glob("*vitrine*") if not p.name.startswith(OTHER_TESTS)]
    # The record of what happened is meant to stay, and bounds itself.
    record = tuple(str(c.state / "vitrine" / n) for n in ("journal", "runs", "vitrine.db"))
    files = [p for d in (c.state, c.run_dir) for p in d.rglob("*") if not str(p).startswith(record)]
    mounts = host_mounts(c)
    sockets = [x for x in Path("/proc/net/unix").read_text().splitlines() if str(c.root) in x]
    return {"mounts": mounts, "groups": left_groups(), "files": files, "places": places,
            "sockets": sockets, "processes": descendants(os.getpid())}


@check("RX-16", prio="P0", title="a hundred runs leave nothing behind", forms=("run",), alone=True,
       timeout=600)
def rx16(c):
    runs = 1000 if os.environ.get("VITRINE_LONG") == "1" else 100
    for _ in range(3):                                     # what the first run makes may stay
        c.vitrine("run", "--", "sleep", "0.1")             # one that lives long enough to get a place
    before = leftovers(c)
    for i in range(runs):
        r = c.vitrine("run", "--", "/bin/true")
        c.must(r.ok, f"run {i}: {r}")

    def grown():
        now = leftovers(c)
        return {k: [str(x) for x in now[k] if x not in before[k]][:5] for k in now
                if len(now[k]) > len(before[k])}

    c.must(c.wait_until(lambda: not grown(), 3), f"left after {runs} runs: {grown()}")
    return HELD


# A directory that goes down `depth` names, made by a program that never holds the whole path.
DEEP = ("import os,sys\nos.makedirs(sys.argv[1], exist_ok=True); os.chdir(sys.argv[1])\n"
        "for i in range(int(sys.argv[2])):\n    os.mkdir('d'); os.chdir('d')\nopen('end', 'w').close()\nprint('deep')\n")


def told_or_done(c, r, what, most):
    """One of our own commands, on a tree that is meant to break it."""
    c.must(not r.timed_out and r.seconds < most, f"{what} takes {r.seconds:.1f} s")
    c.must(r.rc in (0, 1, 125), f"{what} ended by accident: {r}")


@check("RX-08", prio="P1", title="huge and deep directories: our own commands end, and in order", forms=("run",), timeout=240)
def rx08(c):
    wide, deep = (100000, 4000) if os.environ.get("VITRINE_LONG") == "1" else (20000, 2500)
    c.plant(c.ws / "deep.py", DEEP)
    name = c.new_name()
    r = c.vitrine("run", "--name", name, "--", "sh", "-c",
                  f"{c.probe()[0]} inodes wide {wide} || mkdir wide; python3 deep.py deep {deep}; python3 deep.py ~/deep {deep}; "
                  f"i=0; while [ $i -lt 50 ]; do i=$((i+1)); mount -t tmpfs x /tmp 2>/dev/null && echo mounted; done; echo over", timeout=60)
    c.need_control(r.text.count("deep") >= 2 and "over" in r.text, f"the trees were not made: {r}")
    c.must("mounted" not in r.text, "it can mount")
    for words in (["diff", name, "--stat"], ["checkpoint", name], ["diff", name, "--name-only"], ["run", "--name", name, "--", "true"],
                  ["undo", name], ["rm", "-f", name]):
        told_or_done(c, c.vitrine(*words, timeout=60), " ".join(words[:1]), 60)
    c.must(not list((c.state / "vitrine" / "sandboxes").glob(name)), "the sandbox's home was not removed")
    return HELD


@check("RX-14", prio="P1", title="a checkpoint of a terabyte of holes and many tiny files costs what is there", forms=("run",),
       catches=("holes",), timeout=180)
def rx14(c):
    tiny = 100000 if os.environ.get("VITRINE_LONG") == "1" else 5000
    name = c.new_name()
    r = c.vitrine("run", "--name", name, "--", "sh", "-c",
                  f"truncate -s 1T huge && echo end | dd of=huge bs=1 seek=500G conv=notrunc 2>/dev/null; "
                  f"mkdir tiny; cd tiny; seq {tiny} | xargs touch; echo over", timeout=60)
    c.need_control("over" in r.text and (c.ws / "huge").stat().st_size == 1 << 40, f"not made: {r}")
    free = os.statvfs(c.state).f_bavail * os.statvfs(c.state).f_frsize
    for words in (["checkpoint", "--all", name], ["checkpoint", name]):
        r = c.vitrine(*words, timeout=30)
        told_or_done(c, r, "a checkpoint", 20)
        c.note(words, f"{r.seconds:.1f} s", r.text.strip()[-200:], r.errtext.strip()[-200:])
    used = sum(p.stat().st_blocks * 512 for p in c.state.rglob("*") if p.is_file())
    c.must(used < 128 << 20, f"{used >> 20} MiB of state for nothing")
    c.must(free - os.statvfs(c.state).f_bavail * os.statvfs(c.state).f_frsize < 1 << 30, "the disk was filled")
    c.vitrine("rm", "-f", name)
    with c.host_edit():
        (c.ws / "huge").unlink()
    return HELD
