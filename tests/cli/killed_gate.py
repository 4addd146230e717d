#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kill -9 of the gate's processes and of the broker at every step (see killed.py).

After each kill: nothing of it lives, nothing went out that the policy does not let out and no secret came in, the
record is whole, and the next run has its network, its secret and its broker."""

import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness import eq, has, has_not, main, test  # noqa: E402
from killstep import STRIDE, each_step, whole  # noqa: E402
from own_server import OPEN, SECRET, there  # noqa: E402

LONG = 150 if STRIDE > 1 else 3000
FEW = 1 if STRIDE == 1 else 47    # their first hundreds of calls are a library's


def try_gate(box, who):
    w = there()
    ask = "curl -sS -m 4 http://ok.test/x; curl -sS -m 4 http://evil.test/; true"

    def after():
        eq(w.internet.hits("evil.test"), [], "what came out")
        r = box.run("--name", "box", "--allow", "ok.test", "--", "curl", "-sS", "-m", "8", "http://ok.test/after")
        has(r.out, "/after")
        whole(box)

    each_step(box, who, after, "run", "--name", "box", "--allow", "ok.test", "--", "sh", "-c", ask, before=w.internet.clear)


@test(timeout=LONG, who=["root"])
def front_killed(box):
    try_gate(box, "vitrine-gate front")


@test(timeout=LONG, who=["root"])
def dial_killed(box):
    try_gate(box, "vitrine-gate dial")


@test(timeout=LONG, who=["root"])
def seal_killed(box):
    w = there()
    flags = [*OPEN, "--secret", "mine", "--name", "box"]
    ask = 'curl -sS -m 4 -H "X-Api-Key: $MY_KEY" https://own.test/echo -i'
    eq(box.cli("secret", "set", "mine", "--env", "MY_KEY", "--host", "own.test", input=SECRET.encode()).rc, 0)

    def after():
        seen = [q.get("x-api-key") for q in w.server.seen]
        eq([k for k in seen if k != SECRET], [], "a request without it")
        r = box.run(*flags, "--", "sh", "-c", ask, env=w.trust)
        has_not(r.out + r.err + box.cli("logs", "box").out, SECRET)
        eq(w.server.seen[-1].get("x-api-key"), SECRET, "what the server got")
        whole(box)

    each_step(box, "vitrine-seal", after, "run", *flags, "--", "sh", "-c", ask, before=w.server.seen.clear, stride=FEW, env=w.trust)


def git(box, *words, cwd=None):
    r = box.finish(box.popen(["git", *words], cwd=cwd or box.ws, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    eq(r.rc, 0, r.err)
    return r.out.strip()


@test(timeout=LONG, who=["root"])
def broker_killed(box):
    """Pushed or not, never half; and pushed by the next."""
    up = box.dir / "up.git"
    rules = ["--name", "box", "--broker-push", f"{up} refs/heads/agent/*"]
    me = "git -c user.name=n -c user.email=n@x"
    git(box, "init", "-q", "--bare", "-b", "main", up, cwd=box.dir)
    git(box, "init", "-q", "-b", "main", ".")
    git(box, "remote", "add", "origin", up)
    tips = lambda: git(box, "for-each-ref", "--format=%(objectname)", cwd=up).split()  # noqa: E731

    def after():
        git(box, "fsck", "--strict", cwd=up)
        eq(len(tips()) <= 1, True)
        r = box.run(*rules, "--", "sh", "-c", f"{me} commit -q --allow-empty -m after && git push -q origin HEAD:agent/x", timeout=12)
        eq((r.rc, tips()), (0, [git(box, "rev-parse", "HEAD")]), r.err)
        whole(box)

    each_step(box, "vitrine-broker", after, "run", *rules, "--", "sh", "-c",
              f"{me} commit -q --allow-empty -m one && git push -q origin HEAD:agent/x", stride=min(STRIDE, 5))


if __name__ == "__main__":
    sys.exit(main())
