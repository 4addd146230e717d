#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many at once, and for long: clients that create, run, stop and remove, keepers that are killed meanwhile.

    tests/cli/crowd.py                  a bounded slice, as every test
    tests/cli/crowd.py --soak SECONDS   the same acts for so long; `make soak` does it for an hour

Whatever the order, each call ends in time with a status it may have, no process, mount, socket or folder is left
that nobody asked for, and a sandbox that was said to be there is there.
"""

import os
import random
import re
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness import below, describe, eq, main, soon, test, tests

MAY = {0, 125}  # done, or refused with a reason
SECONDS = 6.0


def quiet(box, *args, timeout=30, may=frozenset(MAY)):
    """One call; its status must be one that is documented, its story one line."""
    p = box.start(*args)
    box.started.remove(p)
    out, err = p.communicate(timeout=timeout)
    if p.returncode not in may or (p.returncode in (2, 125) and b"vitrine: " not in err):
        raise AssertionError(f"{args}: exit {p.returncode}: {err!r}")
    return p.returncode, out.decode(), err.decode()


@test(timeout=170)
def eight_clients_two_hundred_sandboxes(box):
    """Each client makes, runs, enters, stops and removes its own, all at the same time."""
    n = 200 if box.who == "user" else 40

    def life(i):
        name = f"box{i}"
        eq(quiet(box, "create", "--name", name, "shell")[0], 0)
        eq(quiet(box, "run", name, "--", "sh", "-c", f"echo {i} >~/mine; cat ~/mine")[1], f"{i}\n")
        if i % 4 == 0:
            eq(quiet(box, "start", name)[0], 0)
            eq(quiet(box, "exec", name, "--", "sh", "-c", "cat ~/mine")[1], f"{i}\n")
            eq(quiet(box, "stop", "--time", "1s", name)[0], 0)
        eq(quiet(box, "rm", name)[0], 0)

    with ThreadPoolExecutor(8) as pool:
        for r in pool.map(life, range(n)):
            pass
    eq(box.cli("ls", "-q").out, "")
    eq(list((box.state / "sandboxes").iterdir()), [])


@test(timeout=60)
def eight_clients_one_sandbox(box):
    """All want the same one, to run in it, stop it, remove it, rename it: defined answers only."""
    end = time.monotonic() + SECONDS
    ran, stopped = [], frozenset(MAY | {137, 143})  # by another client, in the middle

    def act(i):
        rng = random.Random(i)
        while time.monotonic() < end:
            what = rng.choice(["run", "run", "run", "exec", "stop", "rm", "ls", "ps", "start", "logs", "cp"])
            if what == "run":
                rc, out, err = quiet(box, "run", "--name", "one", "--", "sh", "-c", "echo $$", may=stopped)
                if rc == 0:
                    ran.append(int(out))
            elif what == "exec":
                quiet(box, "exec", "one", "--", "true", may=stopped)
            elif what == "stop":
                quiet(box, "stop", "--time", "0", "one")
            elif what == "rm":
                quiet(box, "rm", "--force", "one")
            elif what == "cp":
                quiet(box, "cp", "one:/etc/hostname", str(box.home / f"copy{i}"))
            elif what in ("ls", "ps"):
                quiet(box, what)
            else:
                quiet(box, what, "one")

    with ThreadPoolExecutor(8) as pool:
        for r in pool.map(act, range(8)):
            pass
    eq(len(ran) > 5, True, f"{len(ran)} runs")
    quiet(box, "rm", "--force", "one")
    eq(list((box.state / "sandboxes").iterdir()), [])


def keeper_of(box, name):
    """Who holds the lock of the sandbox."""
    lock = str(box.state / "sandboxes" / name / "lock")
    for pid in below(os.getpid()):
        try:
            if lock in [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]:
                return pid
        except OSError:
            continue  # it has just ended
    raise AssertionError(f"nobody keeps {name}")


def held_by(pid):
    """Descriptors, and private memory in KiB."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return len(os.listdir(f"/proc/{pid}/fd")), sum(int(n) for n in re.findall(r"^Private_\w+: +(\d+) kB", text, re.M))


def soak(box, seconds, seed):
    """Random acts of four clients, somebody who kills keepers, inits and clients, and one sandbox that nobody kills."""
    end = time.monotonic() + seconds
    said = {"acts": 0, "kills": 0, "entries": 0}
    lock = threading.Lock()

    def is_over():
        """In time, but not before it was worth it: the machine may have stood still."""
        late = time.monotonic() - end
        return late > 0 and (late > 40 or (said["acts"] > 20 and said["kills"] > 3 and said["entries"] > 10))

    eq(box.cli("create", "--name", "steady", "shell").rc, 0)
    eq(box.cli("start", "steady").rc, 0)
    steady = keeper_of(box, "steady")

    def enter():
        """Into the steady one, whose keeper must be at the end what it was when it had warmed up."""
        before = None
        while not is_over():
            p = box.start("exec", "steady", "--", "sh", "-c", "echo in")
            box.started.remove(p)
            eq(p.communicate(timeout=60), (b"in\n", b""))
            said["entries"] += 1
            if said["entries"] == 10:
                before = held_by(steady)
            time.sleep(0.05)
        soon(lambda: held_by(steady)[0] <= before[0] + 1, f"seed {seed}: the keeper closes what it opened: {before}", 10)
        eq(held_by(steady)[1] - before[1] < 1024, True, f"seed {seed}: KiB of a keeper, then and now: {before}, {held_by(steady)}")

    def act(i):
        rng = random.Random(seed + i)
        names = [f"s{i}a", f"s{i}b", "shared"]
        while not is_over():
            name = rng.choice(names)
            what = rng.randrange(10)
            argv = (["run", "--", "true"], ["run", "--name", name, "--", "sh", "-c", "sleep 0.0$((RANDOM % 9))"],
                    ["run", "-d", "--name", name, "--", "sleep", "0.3"], ["exec", name, "--", "true"],
                    ["start", name], ["stop", "--time", "0", name], ["rm", "--force", name], ["ls"],
                    ["stats"], ["logs", name])[what]
            p = box.start(*argv)
            box.started.remove(p)
            out, err = p.communicate(timeout=60)
            # Somebody may have killed what it talked to; then it says so.
            if p.returncode not in (0, 125, 137, 143, -9):
                raise AssertionError(f"seed {seed}: {argv}: exit {p.returncode}: {err!r}")
            with lock:
                said["acts"] += 1

    def kill():
        rng = random.Random(seed)
        while not is_over():
            time.sleep(rng.random() * 0.3)
            victims = [p for p in below(os.getpid()) if re.match(r"vitrine (?!exec steady)", describe(p))]
            spared = {steady, *below(steady)}
            victims = [p for p in victims if p not in spared]
            if victims:
                try:
                    os.kill(rng.choice(victims), signal.SIGKILL)
                    said["kills"] += 1
                except ProcessLookupError:
                    pass

    with ThreadPoolExecutor(6) as pool:
        jobs = [pool.submit(act, i) for i in range(4)] + [pool.submit(kill), pool.submit(enter)]
        for j in jobs:
            j.result()
    r = box.cli("events", "--verify", timeout=60)
    eq(r.rc, 0, f"seed {seed}: {r.out}{r.err}")
    eq(box.cli("stop", "steady").rc, 0)
    for name in box.cli("ls", "-q").out.split():
        eq(box.cli("rm", "--force", name).rc, 0, name)
    eq(box.cli("run", "--", "true").rc, 0)
    left = [p.name for p in (box.state / "sandboxes").iterdir()]
    eq(left, [])
    return said


@test(timeout=60)
def soak_slice(box):
    said = soak(box, SECONDS, 1)
    eq(said["acts"] > 20 and said["kills"] > 3 and said["entries"] > 10, True, said)


def soak_for(seconds):
    """Slices of a minute, each with a seed of its own that is printed; the first that fails is the last."""
    end, n, is_failed = time.monotonic() + seconds, 0, False

    def one(box):
        said = soak(box, min(60, max(5, end - time.monotonic())), n)
        print(f"soak {n}: {said}", flush=True)

    while not is_failed and time.monotonic() < end:
        tests[:] = [(f"soak{n}", one, ("user",), 400)]
        sys.argv[1:] = []
        is_failed = main() != 0
        n += not is_failed
    print(f"{n} passed, {int(is_failed)} failed, 0 skipped")
    return int(is_failed)


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--soak":
        sys.exit(soak_for(float(sys.argv[2])))
    sys.exit(main())
