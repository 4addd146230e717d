# SPDX-License-Identifier: Apache-2.0
"""LC: beginnings, ends and crashes leave nothing behind (tests/cli/killed.py kills at every step)."""

import json
import os
import random
import signal
import time
from pathlib import Path

from check_sv import gone, holders, keepers
from harness import HELD, Ctx, check, descendants, has_own_kernel


def kill_all(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:  # it ended by itself
            pass


def mounts(c):
    return [l for l in Path("/proc/self/mountinfo").read_text().splitlines() if str(c.root) in l]


@check("LC-01", prio="P0", forms=("run",), title="keepers killed at random moments leave nothing once the next command has run")
def lc01(c: Ctx):
    rng = random.Random(1)
    before = mounts(c)
    for i in range(12):
        p = c.start("echo began; sleep 20", flags=["--name", "box"] if i % 2 else [])
        time.sleep(rng.random() * 0.05)
        ks = keepers(c)
        inside = [pid for pid, _ in descendants(p.pid)]
        kill_all(ks)
        if not ks:
            p.stop()
        p.wait(5)
        c.must(gone(inside, 3), f"round {i}: left: {descendants(os.getpid())}")
    r = c.vitrine("run", "--", "true")
    c.must(r.ok, f"the next run: {r}")
    left = sorted(p.name for p in (c.state / "vitrine" / "sandboxes").iterdir())
    c.must(left in ([], ["box"]), f"left: {left}")
    c.must(mounts(c) == before, "mounts are left")
    return HELD


@check("LC-08", prio="P0", forms=("run",), title="after a crash a sandbox is shown as what it is, and works again")
def lc08(c: Ctx):
    b = c.keeper(command=["sh", "-c", "echo kept >~/note; echo ready; sleep 40"])
    c.need_control(b.wait_for("ready"), "the sandbox did not start")
    time.sleep(0.3)
    kill_all(keepers(c))
    b.wait()
    rows = json.loads(c.vitrine("ls", "--json").out)
    c.must([(r["name"], r["status"]) for r in rows] == [(b.name, "lost")], f"{rows}")
    control = c.state / "vitrine" / "sandboxes" / b.name / "control"
    # The kernel may still be taking the keeper apart.
    c.must(c.wait_until(lambda: c.vitrine("ls", "-q") and not control.exists(), 3), "its socket is left")
    r = c.vitrine("run", b.name, "--", "sh", "-c", "cat ~/note")
    c.must(r.text == "kept\n", f"{r}")
    return HELD


@check("LC-10", prio="P1", forms=("run", "grandchild"), title="a command that ends while its grandchildren hold its output ends")
def lc10(c: Ctx):
    t0 = time.monotonic()
    r = c.sandbox("(setsid sh -c 'trap \"\" TERM HUP; sleep 30' &); echo main; exit 7")
    c.must(r.rc == 7 and time.monotonic() - t0 < 8, f"{r}")
    return HELD


@check("LC-14", prio="P1", forms=("run", "exec"), title="when memory runs out the agent goes before its keeper")
def lc14(c: Ctx):
    ours = int(Path("/proc/self/oom_score_adj").read_text())
    if has_own_kernel(c):  # the host's sees the process that is this kernel
        b = c.keeper(command=["sh", "-c", "echo up; sleep 60"])
        c.need_control(b.wait_for("up") and holders(c) and keepers(c), f"it did not start: {b.err!r}")
        inside, outside = ([int(Path(f"/proc/{p}/oom_score_adj").read_text()) for p in pids] for pids in (holders(c), keepers(c)))
        c.must(min(inside) > ours >= min(outside), f"{inside}, {outside} against {ours}")
        return HELD
    r = c.sandbox("cat /proc/self/oom_score_adj")
    c.must(int(r.text.split()[-1]) > ours, f"{r} against {ours}")
    return HELD


@check("LC-18", prio="P0", forms=("run",), title="rm while the workspace is mounted inside removes nothing of the workspace")
def lc18(c: Ctx):
    c.plant(c.ws / "deep" / "f", c.uuid())
    b = c.keeper(command=["sh", "-c", f"ln -s {c.ws} ~/ws; mkdir -p ~/d; echo ready; sleep 40"])
    c.need_control(b.wait_for("ready"), "the sandbox did not start")
    before = c.tree_entries(c.ws)
    r = c.vitrine("rm", b.name)
    c.must(not r.ok, f"a running one was removed: {r}")
    r = c.vitrine("rm", "--force", b.name)
    c.must(r.ok, f"{r}")
    c.must(c.tree_entries(c.ws) == before, "the workspace was changed")
    c.must(not (c.state / "vitrine" / "sandboxes" / b.name).exists(), "it is still there")
    return HELD


@check("LC-06", prio="P0", forms=("run",), title="calls that fail once or for good: an error that is told, or the work is done")
def lc06(c: Ctx):
    """Of the client, which reads and writes what there is to know of a sandbox; the store has tests of its own."""
    c.need_control(c.host(["strace", "-V"]).ok, "there is no strace")
    log = c.mkdir(c.root / "traces") / "log"
    tried = 0
    for call, error in (("openat", "EIO"), ("open", "EMFILE"), ("read", "EIO"), ("write", "ENOSPC"), ("writev", "EIO"),
                        ("mkdirat", "ENOSPC"), ("renameat", "EIO"), ("renameat2", "EIO"), ("flock", "EINTR"),
                        ("fsync", "EIO"), ("getdents64", "EIO"), ("pwrite64", "ENOSPC")):
        for when in ("1", "2", "1+"):
            name = c.new_name()
            t0 = time.monotonic()
            r = c.host(["strace", "-f", "--quiet=all", "-o", str(log), "-e", f"trace={call}", "-e",
                        f"inject={call}:error={error}:when={when}", c.cfg.vitrine, "create", "--name", name, "shell"])
            if b"(INJECTED)" not in log.read_bytes():
                c.vitrine("rm", "--force", name)
                break
            tried += 1
            c.must(time.monotonic() - t0 < 10, f"{call} {error} {when}: it hangs")
            names = c.vitrine("ls", "-q").text.split()
            c.must((name in names) == r.ok or (not r.ok and name in names and c.vitrine("inspect", name).ok),
                   f"{call} {error} {when}: said {r.rc}, and there is {names}: {r}")
            if name in names:
                c.must(c.vitrine("run", name, "--", "true").ok, f"{call} {error} {when}: it was made and does not work")
                r = c.vitrine("rm", "--force", name)
                c.must(r.ok, f"{call} {error} {when}: rm: {r}")
    c.need_control(tried >= 8, f"only {tried} failures could be made")
    left = [str(p) for p in (c.state / "vitrine" / "sandboxes").rglob("*")]
    c.must(c.wait_until(lambda: not list((c.state / "vitrine" / "sandboxes").iterdir()), 3) or not left, f"left: {left}")
    return HELD


@check("LC-07", prio="P0", forms=("run",), title="rm, exec, logs, checkpoint, stop and start of one sandbox at once: defined ends only")
def lc07(c: Ctx):
    name = c.new_name()
    acts = [("exec", name, "--", "true"), ("logs", name), ("stop", "--time", "0s", name), ("rm", "--force", name),
            ("start", name), ("checkpoint", name), ("run", "--name", name, "--", "true"), ("inspect", name), ("stats", name)]
    rng = random.Random(7)
    for i in range(12):
        c.vitrine("create", "--name", name, "shell")
        procs = [c._popen([c.cfg.vitrine, *rng.choice(acts)], env=c._vitrine_env(None)) for _ in range(6)]
        for p in procs:
            out, err = p.communicate(timeout=20)
            c.must(p.returncode in (0, 1, 2, 3, 4, 5, 124, 125, 126, 127, 137, 143), f"round {i}: {p.args}: {p.returncode} {err!r}")
            c.must(b"bug" not in err and b"Sanitizer" not in err, f"round {i}: {p.args}: {err!r}")
    c.vitrine("rm", "--force", name)
    c.must(gone(keepers(c), 5), "a keeper is left")
    return HELD


@check("LC-13", prio="P2", forms=("run",), timeout=150, title="many runs: each has its own id, and listing them stays quick")
def lc13(c: Ctx):
    n = 150
    for i in range(n):
        r = c.vitrine("run", "--", "true")
        c.must(r.ok, f"run {i}: {r}")
    c.must(c.wait_until(lambda: not keepers(c), 5), "a keeper is left")
    rows = [json.loads(l) for l in c.vitrine("events", "--json", "--type", "sandbox.stopped", timeout=30).text.splitlines()]
    c.must(len({r["sandbox"] for r in rows}) == len({r["run"] for r in rows}) == n, f"{len(rows)} ends of {n} runs")
    t0 = time.monotonic()
    c.must(c.vitrine("ls").ok and c.vitrine("prune", "--force").ok, "ls, prune")
    c.must(time.monotonic() - t0 < 1, f"ls and prune took {time.monotonic() - t0:.1f} s")
    return HELD


@check("LC-15", prio="P1", forms=("run",), title="no process, no descriptor, no memory at the start: a clean error, and nothing is left")
def lc15(c: Ctx):
    c.need_control(c.host(["strace", "-V"]).ok, "there is no strace")
    log = c.mkdir(c.root / "traces") / "log"
    before, tried = mounts(c), 0
    for call, error in (("fork", "EAGAIN"), ("clone3", "ENOMEM"), ("pipe2", "EMFILE"), ("socketpair", "ENFILE"),
                        ("memfd_create", "EMFILE"), ("open_tree", "EMFILE"), ("mmap", "ENOMEM")):
        for when in ("1", "2", "1+"):
            r = c.host(["strace", "-f", "--quiet=all", "-o", str(log), "-e", f"trace={call}", "-e",
                        f"inject={call}:error={error}:when={when}", c.cfg.vitrine, "run", "--", "true"])
            if b"(INJECTED)" not in log.read_bytes():
                break
            tried += 1
            c.must(r.ok or (r.rc > 0 and r.err), f"{call} {error} {when}: {r}")
            c.must(gone(keepers(c), 5), f"{call} {error} {when}: a keeper is left")
    c.need_control(tried >= 8, f"only {tried} failures could be made")
    c.must(mounts(c) == before, "mounts are left")
    c.must(c.vitrine("run", "--", "true").ok, "the next run")
    there = c.state / "vitrine" / "sandboxes"  # who is quick enough never makes it
    c.must(c.wait_until(lambda: not there.exists() or not list(there.iterdir()), 3), "a folder is left")
    return HELD
