# SPDX-License-Identifier: Apache-2.0
"""kill -9 at every step, for the tests that do it: killstep.c, and what must hold after each kill.

Normally every STRIDE-th system call is taken; VITRINE_KILL_STRIDE=1 takes them all."""

import os
import re
import subprocess
from pathlib import Path

from harness import Skip, check_processes, eq

STRIDE = int(os.environ.get("VITRINE_KILL_STRIDE", "17"))


def tool(box):
    if os.uname().machine != "x86_64":
        raise Skip("the tracer knows x86-64 only")
    box.needs("cc")
    path = box.dir / "killstep"
    if not path.exists():
        source = Path(__file__).with_name("killstep.c")
        subprocess.run(["cc", "-O1", "-w", "-o", path, source], check=True, timeout=60)
        path.chmod(0o755)
    return path


def kill_at(box, who, step, *argv, env=None):
    """Runs it; where it was killed, or None when there were not so many steps."""
    out = box.dir / "killed"
    out.unlink(missing_ok=True)
    p = box.popen([tool(box), out, who, step, box.program, *argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                  stderr=subprocess.PIPE, env=env)
    box.started.remove(p)
    p.communicate(timeout=20)
    said = out.read_text() if out.exists() else ""
    if said.startswith("not reached"):
        return None
    m = re.fullmatch(rf"killed {who} at {step} in (\d+)\n", said)
    if not m:
        raise AssertionError(f"{who} at {step}: the injection did not happen: {said!r}")
    return int(m.group(1))


def each_step(box, who, after, *argv, before=lambda: None, offset=1, stride=STRIDE, env=None):
    n, step = 0, offset
    while True:
        before()
        at = kill_at(box, who, step, *argv, env=env)
        if at is None:
            break
        try:
            check_processes()
            after()
        except AssertionError as e:
            raise AssertionError(f"{who} killed at step {step} (call {at}) of {argv}: {e}") from e
        n += 1
        step += stride
    eq(n > 2, True, f"{who}: {n} steps were tried")
    return n


def clean(box):
    """Nothing but sandboxes lies among the sandboxes once the next command has run."""
    eq(box.cli("run", "--", "true").rc, 0)
    there = box.state / "sandboxes"
    left = [p.name for p in (there.iterdir() if there.exists() else []) if not (p / "sandbox.json").exists()]
    eq([n for n in left if n.startswith(("run-", ".rm-"))], [])


def whole(box):
    """What is on record is, too."""
    r = box.cli("events", "--verify")
    eq(r.rc, 0, r.out + r.err)
