#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does the harness itself notice? Tiny checks with a known answer, against null.sh and broken programs.

Every act here is harmless without walls: files in the check's own folder, processes of its own.
"""

import os
import re
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import ground                                              # noqa: E402
import harness                                             # noqa: E402
import run                                                 # noqa: E402
from harness import BREACH, HELD, INCONCLUSIVE, Check, Config    # noqa: E402

NULL = str(HERE / "null.sh")  # until main() has made a copy that every identity can read


def verdict(fn, base, program=None, form="run", timeout=20.0):
    """-> result of one check, through the real scheduler"""
    chk = Check("XX-00", "P0", fn.__name__, ("run",), ("user",), (), None, None, timeout, False, False, fn)
    got = []
    run.execute([(chk, Config(program or NULL, {}, base=base), "user", form)], 1, got.append)
    assert len(got) == 1
    return got[0]


def nothing(c):
    c.sandbox("true")
    return HELD


def no_verdict(c):
    c.sandbox("true")


def outside_written(c):
    c.sandbox(f"echo x > {c.out}/new")
    return HELD


def home_touched(c):
    c.plant(c.home / "f", "x")
    c.sandbox(f"touch -d '2001-01-01' {c.home}/f")
    return HELD


def own_edit(c):
    c.sandbox("true")
    c.plant(c.out / "late", "x")
    c.sandbox("true")
    return HELD


def edit_does_not_cover(c):
    """What the sandbox changed before the check's own edit is still found."""
    c.sandbox(f"echo x > {c.out}/new")
    c.plant(c.out / "late", "x")
    return HELD


def process_left(c):
    c.sandbox("setsid sleep 30 >/dev/null 2>&1 </dev/null &")
    return HELD


def leak_on_stdout(c):
    u = c.uuid()
    c.plant(c.out / "s", u)
    r = c.sandbox(f"cat {c.out}/s")
    c.must(not c.leaks(r, u), "leaked")
    return HELD


def leak_into_workspace(c):
    u = c.uuid()
    c.plant(c.ws / "hidden", u)
    r = c.sandbox("cp hidden copy")
    c.must(not c.leaks(r, u), "leaked")
    return HELD


def own_plant_is_no_leak(c):
    u = c.uuid()
    c.plant(c.ws / "hidden", u)
    r = c.sandbox("mv hidden moved")
    c.must(not c.leaks(r, u), "leaked")
    return HELD


def crash(c):
    raise KeyError("broken check")


def failed_control(c):
    c.need_control(c.control("false").ok, "the control fails")
    return HELD


def too_slow(c):
    time.sleep(60)
    return HELD


def slow_command(c):
    c.sandbox("sleep 30", timeout=0.5)
    return HELD


def list_argv(c):
    c.sandbox(["true"])
    return HELD


def status_kept(c):
    r = c.sandbox("exit 7")
    c.must(r.rc == 7, f"{r}")
    r = c.sandbox(["sh", "-c", "exit 9"])
    c.must(r.rc == 9, f"{r}")
    return HELD


CASES = [
    (nothing, HELD, {}),
    (no_verdict, INCONCLUSIVE, {}),
    (outside_written, BREACH, {}),
    (home_touched, BREACH, {}),
    (own_edit, HELD, {}),
    (edit_does_not_cover, BREACH, {}),
    (process_left, BREACH, {}),
    (leak_on_stdout, BREACH, {}),
    (leak_into_workspace, BREACH, {}),
    (own_plant_is_no_leak, HELD, {}),
    (crash, INCONCLUSIVE, {}),
    (failed_control, INCONCLUSIVE, {}),
    (too_slow, INCONCLUSIVE, {"timeout": 1.0}),
    (slow_command, INCONCLUSIVE, {}),
    (status_kept, HELD, {}),
    (status_kept, HELD, {"form": "grandchild"}),
    # A program that does nothing must never look like one that contains.
    (nothing, INCONCLUSIVE, {"program": "/bin/false"}),
    (nothing, INCONCLUSIVE, {"program": "/bin/true"}),
    (leak_on_stdout, INCONCLUSIVE, {"program": "/bin/true"}),
    (nothing, INCONCLUSIVE, {"program": "/nonexistent"}),
    (nothing, INCONCLUSIVE, {"program": "/bin/false", "form": "exec"}),
]


def once(c, act):
    """`act` the first time in this folder, then nothing."""
    mark = Path(c.cfg.base).parent / "done"
    if not mark.exists():
        mark.touch()
        act()
    return HELD


def unsteady_word(c):
    return once(c, lambda: c.must_say(False, "not said"))


def unsteady_wall(c):
    return once(c, lambda: c.must(False, "leaked"))


def steady_word(c):
    c.must_say(False, "never said")
    return HELD


# (check, its priority) -> what a matrix that contains it makes of it
LOOKS = [(unsteady_word, "P0", HELD), (unsteady_wall, "P0", BREACH), (unsteady_wall, "P2", HELD), (steady_word, "P0", BREACH)]


def looked_again(fn, prio, top, base):
    (Path(top) / "done").unlink(missing_ok=True)
    chk = Check("XX-00", prio, fn.__name__, ("run",), ("user",), (), None, None, 20.0, False, False, fn)
    jobs, results = [(chk, Config(NULL, {}, base=base), "user", "run")], {}
    run.execute(jobs, 1, lambda r: results.update({(r["id"], r["ident"], r["form"]): r}))
    run.look_again(jobs, results)
    r = results["XX-00", "user", "run"]
    assert (r["verdict"] == HELD) == bool(r.get("unsteady")), r
    return r["verdict"]


SWITCH = re.compile(r'(?:sabotaged\(|CLONE_NEW\w+, )\s*"([a-z-]+)"')


# Not a wall: a thing that goes wrong, made by the same means. The check that needs it asks for it.
FAULTS = {"clock", "hurry"}


def unclaimed_switches():
    """Walls that the sabotage build can leave out and that no check says it would miss; and the other way round."""
    source = HERE.parent.parent / "src"
    switches = {s for f in source.rglob("*.[ch]") for s in SWITCH.findall(f.read_text())}
    run.load_checks()
    claimed = {s for chk in harness.CHECKS.values() for group in chk.catches for s in group.split(",")}
    return sorted((switches - FAULTS) ^ claimed)


def main():
    harness.subreaper()
    if os.geteuid() == 0:
        harness.own_mounts()
    with ground.account():
        return run_cases()


def run_cases():
    global NULL
    failed = 0
    with tempfile.TemporaryDirectory(prefix="vcontain-self.", dir=os.environ.get("VITRINE_TEST_DIR", "/var/tmp")) as top:
        refuse = Path(top) / "refuse"
        refuse.write_text("#!/bin/sh\nexit 125\n")
        refuse.chmod(0o755)
        NULL = run.copy_program(NULL, top)
        base = Path(top) / "base"
        base.mkdir()
        for fn, want, kw in [*CASES, (list_argv, INCONCLUSIVE, {"program": str(refuse)})]:
            r = verdict(fn, str(base), **kw)
            good = r["verdict"] == want
            failed += not good
            print(f"{'ok' if good else 'FAILED'} {fn.__name__} {kw or ''}: {r['verdict']}"
                  + ("" if good else f", wanted {want}: {r['why']}"))
        for fn, prio, want in LOOKS:
            got = looked_again(fn, prio, top, str(base))
            failed += got != want
            print(f"{'ok' if got == want else 'FAILED'} {fn.__name__} {prio}, looked at again: {got}")
        left = os.listdir(base)
        is_taken_for_one = run.is_a_sandbox(NULL, "user", "")
    rest = harness.descendants(os.getpid())
    total = len(CASES) + len(LOOKS) + 5
    if odd := unclaimed_switches():
        failed += 1
        print(f"FAILED switches without a check, or checks without a switch: {odd}")
    if left:
        failed += 1
        print(f"FAILED folders left: {left}")
    if rest:
        failed += 1
        print(f"FAILED processes left: {rest}")
    if is_taken_for_one:
        failed += 1
        print("FAILED null.sh was taken for a sandbox")
    print(f"{total - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
