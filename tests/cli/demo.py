#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`vitrine demo`: all is stopped, all is said, and nothing stays."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

from harness import eq, has, has_not, main, refused, soon, test


def nothing_is_left(box):
    eq((box.dir / "cache").exists(), False)
    for d in (box.home, box.dir / "state", box.config):
        left = [str(p) for p in d.rglob("*") if p not in (box.ws, box.home / ".ssh")] if d.exists() else []
        eq(left, [])
    eq([str(p) for p in Path("/tmp").glob("vitrine-demo-*")], [])


def keys(box):
    (box.home / ".ssh").mkdir(mode=0o700)
    box.own(box.home)


@test(timeout=25)
def table(box):
    keys(box)
    t0 = time.monotonic()
    r = box.cli("demo", timeout=20)
    took = time.monotonic() - t0
    eq((r.rc, r.err), (0, ""), r.out)
    has_not(r.out, "got out  ", "✗", "\033")
    for text in ("~/.ssh", ".env", "git hook", "network namespace", "process limit", "hidden file", "protected file",
                 "quarantine", "environment allowlist", "private /tmp", "system call filter", "0 got out"):
        has(r.out, text)
    if took > 10:
        raise AssertionError(f"took {took:.1f} s")
    nothing_is_left(box)


@test(who=("root",), timeout=25)
def without_git(box):
    """A bare machine has none: what needs git is not tried, and nothing counts as a way out."""
    hidden = "mount --make-rprivate / && mount --bind /dev/null /usr/bin/git && exec \"$@\""
    r = box.finish(box.popen(["unshare", "-m", "sh", "-c", hidden, "sh", box.program, "demo", "--json"], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    rows = {x["id"]: x["result"] for x in json.loads(r.out)["rows"]}
    eq((r.rc, [rows[name] for name in ("commit", "hook", "config")]), (0, ["not tried"] * 3), r.out)


@test(timeout=25)
def as_json(box):
    keys(box)
    r = box.cli("demo", "--json", timeout=20, env={"DEMO_OTHER_KEY": "x"})
    eq((r.rc, r.err), (0, ""), r.out)
    d = json.loads(r.out)
    eq((d["ok"], d["got_out"], d["failed"]), (True, 0, 0))
    rows = {x["id"]: x for x in d["rows"]}
    eq(sum(x["expected"] == "stopped" for x in rows.values()) >= 14, True)
    for x in rows.values():
        if x["result"] != "not tried":
            eq(x["result"], x["expected"], x["id"])
    for name in ("keys", "neighbour", "dotenv", "environment", "hook", "connect", "forks", "kill", "stay", "policy"):
        eq(rows[name]["result"], "stopped", name)
    for name in ("neighbour", "dotenv", "environment", "hook", "connect", "forks", "kill", "stay"):
        eq(rows[name]["judged_by"], "outside", name)
    eq(d["worked"] + d["stopped"] + d["not_tried"], len(rows))


@test(timeout=25)
def on_a_terminal(box):
    for env, coloured in (({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)):
        t = box.term("demo", env=env)
        t.expect("worked", 15)
        eq(t.wait(15), 0)
        eq(b"\033[3" in t.seen, coloured)
        t.close()


@test(timeout=25)
def interrupted(box):
    p = box.start("demo")
    made = "vitrine/demo-*/project/sum.txt"
    soon(lambda: list((box.dir / "cache").glob(made)) or p.poll() is not None, "the agent works", 10)
    if p.poll() is None:
        p.send_signal(signal.SIGTERM)
    eq(p.wait(10), 143)
    nothing_is_left(box)


@test
def no_place_for_it(box):
    blocked = box.dir / "blocked"
    blocked.write_text("")
    refused(box.cli("demo", env={"XDG_CACHE_HOME": str(blocked)}), "blocked", rc=125)


if __name__ == "__main__":
    sys.exit(main())
