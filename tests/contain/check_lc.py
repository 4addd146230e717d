# SPDX-License-Identifier: Apache-2.0
"""LC: beginnings, ends and crashes leave nothing behind (tests/cli/killed.py kills at every step)."""

import json
import os
import random
import signal
import time
from pathlib import Path

from check_sv import gone, keepers
from harness import HELD, Ctx, check, descendants


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
    r = c.sandbox("cat /proc/self/oom_score_adj")
    ours = int(Path("/proc/self/oom_score_adj").read_text())
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
