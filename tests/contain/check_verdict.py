# SPDX-License-Identifier: Apache-2.0
"""SV where a verdict and what it allows lie apart in time: what was written down first, and who is still there.

The oracle is the far side of a fake internet; the control is the same request while nothing stands between."""

import json
import os
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from check_px import internet  # noqa: E402
from harness import HELD, Config, check, descendants  # noqa: E402

ASK = ["--allow", "ok2.test", "--ask"]


def keeper_of(c, p):
    below = descendants(p.pid)
    found = [pid for pid, name in below if name == "vitrine-keeper"]
    c.need_control(found, f"no keeper below {p.pid} ({'alive' if p.alive else 'ended'}): {below}; {p.out!r} {p.err!r}")
    return found[0]


def verdicts(c, name):
    rows = [json.loads(line) for line in c.vitrine("events", name, "--json").text.splitlines()]
    return [r["data"]["verdict"] for r in rows if r["type"] == "net.verdict" and r["data"].get("host") == "ok.test"]


def soon(fn, seconds=10.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if fn():
            return True
        time.sleep(0.05)
    return False


@check("SV-05", prio="P1", forms=("run",), catches=("keep-gone",),
       title="an answer that comes when who asked is dead opens nothing for whoever has its number now")
def sv05(c):
    """Killed while the question waits; its pid is taken by others, who have asked for nothing; then it is answered."""
    with internet(c) as net:
        for is_alive in (True, False):
            end = "true" if is_alive else "kill -9 $!; wait; for i in 1 2 3 4 5 6 7 8; do sleep 20 & done"
            b = c.keeper(flags=ASK, command=["sh", "-c", f"curl -sS -m {15 * c.cfg.patience} http://ok.test/x & "
                                             f"sleep {0.5 * c.cfg.patience}; {end}; echo up; wait"])
            c.need_control(b.wait_for("up") and not net.hits("ok.test"), "the question did not wait")
            c.need_control(c.vitrine("net", "allow", b.name, "ok.test").rc == 0, "the answer was not taken")
            if is_alive:
                c.need_control(soon(lambda: net.hits("ok.test")), "an answer opens nothing at all")
                net.clear()
            else:
                c.need_control(soon(lambda: "gone" in c.vitrine("net", "log", b.name).text or net.hits("ok.test"),
                                    10.0 * c.cfg.patience), f"neither refused nor connected: {c.vitrine('net', 'log', b.name)}")
                c.must(not net.hits("ok.test"), f"connected for nobody: {net.hits('ok.test')}")
            c.vitrine("stop", "-t", "0", b.name)
    return HELD


@check("SV-33", prio="P0", forms=("run",), catches=("gate-noted",),
       title="no connection leaves before its verdict is on record, whatever becomes of the keeper")
def sv32(c):
    with internet(c) as net:
        for is_still in (False, True):
            b = c.keeper(flags=["--allow", "ok.test"], command=["sh", "-c", "echo up; while :; do test -e go && exec curl -sS -m 20 "
                                                                "http://ok.test/x; sleep 0.05; done"])
            c.need_control(b.wait_for("up"), "the sandbox did not start")
            c.need_control(c.vitrine("exec", b.name, "--", "curl", "-sS", "-m", "8", "http://ok.test/known").rc == 0, "no way out")
            net.clear()
            keeper = keeper_of(c, b)
            if is_still:
                os.kill(keeper, signal.SIGSTOP)
            (c.ws / "go").touch()
            if is_still:
                time.sleep(0.6)
            else:
                c.need_control(soon(lambda: net.hits("ok.test")), "the request does not arrive")
            os.kill(keeper, signal.SIGKILL)
            (c.ws / "go").unlink()
            time.sleep(0.1)
            if is_still:
                c.must(not net.hits("ok.test"), "a connection that nobody wrote down")
            c.must(len(verdicts(c, b.name)) == (1 if is_still else 2), f"on record: {verdicts(c, b.name)}")
    return HELD


def with_faults(c, fault):
    """The build whose faults can be switched on; its state is the check's own."""
    here = Path(c.cfg.vitrine).resolve().parent
    program = next((p for p in (here / "sabotage" / "vitrine", here / "vitrine") if "sabotage" in str(p) and p.exists()), None)
    if program is None:
        c.inconclusive("the build with faults is not there ('make sabotage')")
    c.cfg = Config(str(program), c.cfg.tools, fault, c.cfg.base, c.cfg.keep, c.cfg.engine)


@check("SV-25", prio="P2", forms=("run",), title="a clock that is set back and forth changes neither the order of the record nor a time limit")
def sv25(c):
    """Every look at the clock is an hour off, forth or back."""
    with_faults(c, ",".join(x for x in (c.cfg.sabotage, "clock") if x))
    name = c.new_name()
    c.need_control(c.vitrine("run", "--", "true").ok, "it does not run at all")  # a machine is booted by its first run
    begin = time.monotonic()
    r = c.vitrine("run", "--name", name, "--time", "1s", "--", "sh", "-c", "echo a; exec sleep 30", timeout=25)
    took = time.monotonic() - begin
    for i in range(3):
        again = c.vitrine("run", "--name", name, "--", "true")
        c.need_control(again.rc == 0, f"it does not run: {again}")
    rows = [json.loads(line) for line in c.vitrine("events", name, "--json").text.splitlines()]
    times = [r["time"] for r in rows]
    c.need_control(len(rows) > 10 and times != sorted(times), f"the clock was not set: {times}")
    c.must(r.rc == 124 and 0.9 < took < 15, f"a limit of 1 s: exit {r.rc} after {took:.1f} s")
    runs = {}
    for row in rows:
        runs.setdefault(row["run"], []).append(row["number"])
    c.must(len(runs) == 4, f"{len(runs)} runs")
    for run, numbers in runs.items():
        c.must(all(a < b for a, b in zip(numbers, numbers[1:])), f"out of order: {numbers}")
    c.must(c.vitrine("events", "--verify").rc == 0, "the chains do not hold")
    return HELD
