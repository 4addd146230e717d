#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""50,000 events a second: is one lost, and what does it cost the one who works beside it?

    tests/bench/events.py [--rate 50000] [--seconds 60] [--rounds 20] [--json FILE]

A keeper (tests/tools/feed.c) records at that rate while every processor is busy with a fixed amount of work, the
sandbox's part. Short rounds with and without the recording alternate, and one with it is compared with the two around
it, so that what else goes on here meets both alike; the median of those ratios is the slowdown. The keeper starts
`vitrine-store ingest` as it always does, so that is in it.
At the end every event must be there and every chain whole.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import stats

ROOT = Path(__file__).resolve().parent.parent.parent
RATE = 50000
WORK = "x = 1\nfor i in range(%d):\n    x = (x * 6364136223846793005 + i) & 0xffffffffffffffff\n"


def work(n):
    """Seconds until every processor has done n steps."""
    t0 = time.monotonic()
    all_ = [subprocess.Popen([sys.executable, "-c", WORK % n]) for _ in range(os.cpu_count())]
    for p in all_:
        p.wait()
    return time.monotonic() - t0


def calibrate(seconds):
    n = 500_000
    return int(n * seconds / work(n))


def feed(programs, state, rate, seconds):
    return subprocess.Popen([programs / "feed", state, "box", "named", f"events={int(rate * seconds)}",
                             f"rate={rate}", "text=/usr/bin/make"], stdout=subprocess.PIPE, text=True)


def settle(programs, env):
    """All of it taken up; what verify says."""
    subprocess.run([programs / "vitrine-store", "ingest", "--wait"], env=env, check=True)
    r = subprocess.run([programs / "vitrine", "events", "--verify", "--json"], env=env, capture_output=True, text=True)
    return r.returncode, json.loads(r.stdout.splitlines()[-1])


def one_round(programs, base, steps, rate, seconds):
    state = base / "state" / "vitrine"
    shutil.rmtree(base / "state", ignore_errors=True)
    (state / "sandboxes" / "box").mkdir(parents=True)
    env = {**os.environ, "XDG_STATE_HOME": str(base / "state"), "XDG_CONFIG_HOME": str(base / "config")}
    p = feed(programs, state, rate, seconds)
    took = work(steps)
    said = p.communicate()[0].split()
    fed = int(said[6]) / 1e9
    status, found = settle(programs, env)
    return {"work": took, "fed": fed, "acknowledged": int(said[2]), "cpu_ns": int(said[4]), "ok": status == 0,
            "events": found["events"]}


def measure(build, rate, seconds, rounds, say=lambda text: None):
    base = Path(tempfile.mkdtemp(prefix="vitrine-events-"))
    for p in (build / "vitrine", build / "vitrine-store", build / "tests" / "tools" / "feed"):
        shutil.copy(p, base / p.name)
    each = seconds / rounds
    steps = calibrate(each)
    plain, fed = [], []
    try:
        for i in range(rounds):
            plain.append(work(steps))
            fed.append(one_round(base, base, steps, rate, each))
            say(f"round {i + 1}: {plain[-1]:.2f} s alone, {fed[-1]['work']:.2f} s beside it")
        plain.append(work(steps))
    finally:
        shutil.rmtree(base, ignore_errors=True)
    ratios = [2 * r["work"] / (before + after) for before, r, after in zip(plain, fed, plain[1:])]
    low, high = stats.bootstrap(ratios)
    return {
        "rate": rate, "seconds": sum(r["fed"] for r in fed), "events": sum(r["events"] for r in fed),
        "lost": sum(r["acknowledged"] - r["events"] for r in fed), "verified": all(r["ok"] for r in fed),
        "reached": sum(r["acknowledged"] for r in fed) / sum(r["fed"] for r in fed),
        "slowdown": statistics.median(ratios) - 1, "slowdown_low": low - 1, "slowdown_high": high - 1,
        "keeper_cpu": sum(r["cpu_ns"] for r in fed) / 1e9 / sum(r["fed"] for r in fed),
    }


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--rate", type=int, default=RATE)
    a.add_argument("--seconds", type=float, default=60, help="of recording, all rounds together")
    a.add_argument("--rounds", type=int, default=20)
    a.add_argument("--build", type=Path, default=ROOT / "build")
    a.add_argument("--json", type=Path)
    o = a.parse_args()
    result = measure(o.build, o.rate, o.seconds, o.rounds, lambda text: print(text, flush=True))
    print(f"{result['events']} events at {result['reached']:.0f}/s: {result['lost']} lost, "
          f"{'every chain whole' if result['verified'] else 'CHAINS BROKEN'}\n"
          f"the work beside it took {100 * result['slowdown']:+.1f} % ({100 * result['slowdown_low']:+.1f} to "
          f"{100 * result['slowdown_high']:+.1f}); the keeper used {100 * result['keeper_cpu']:.2f} % of one processor")
    if o.json:
        o.json.write_text(json.dumps(result) + "\n")
    return 0 if result["lost"] == 0 and result["verified"] else 1


if __name__ == "__main__":
    sys.exit(main())
