#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The first ten minutes, and the first night played in seconds: typed into a shell on a terminal, as a new user would.

What the terminal shows is held against tests/golden/first_ten.txt, with times, ids and places of this run made the same. A
stand-in plays the agent: what it prints and does is the script below; the real ones are driven by agents_real.py.
VITRINE_GOLDEN=write writes the file anew, to be looked at."""

import difflib
import json
import os
import re
import sys
import time
from pathlib import Path

from harness import Patience, Term, main, test

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "first_ten.txt"
AGENT = """#!/bin/sh
echo "working on: $1"
echo "$1" >> work.txt
git add work.txt
git commit -q -m "agent: $1"
test -z "$VITRINE_ITERATION" || curl -s -m 2 http://not-allowed.example/ >/dev/null
echo '{"type":"result","result":"done","cost":0.125,"in":1000,"out":50}'
exit 0
"""

# What is typed, and what happens then: None: the command ends by itself.
STEPS = [
    ("vitrine agents | grep '^mine'", None),
    ("vitrine run --name first . -- sh agent.sh 'Greet the user'", None),
    ("git log --format=%s", None),
    ("vitrine undo", None),
    ("vitrine run --name looked-at --mode review -- sh -c 'echo hello > greeting.txt'", None),
    ("vitrine diff looked-at", None),
    ("vitrine apply --yes looked-at", None),
    ("cat greeting.txt", None),
    ("vitrine run --name long -- sh -c 'echo begun; read x; echo heard $x'", "detach"),
    ("vitrine attach long", "answer"),
    ("vitrine loop -d mine . --prompt 'Work through the list' --max 3 --cost 5 -- --allow allowed.example", None),
    ("vitrine loop attach loop-mine-proj", None),
    ("vitrine loop ls --format '{{.Name}} {{.State}} {{.Iterations}} {{.Cost}}'", None),
    ("vitrine status --since today", None),
]

SAME = [
    (r"\x1b\][^\x07\x1b]*(\x07|\x1b\\)|\x1b\[[0-9;?<>=!]*[ -/]*[@-~]|\x1b[()][A-Z0-9]|\x1b[=>78\\]|[\r\x0f]", ""),
    (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?", "DATE"),
    (r"\b[0-9a-f]{12,40}\b", "ID"),
    (r"\b[0-9a-f]{7}\.\.[0-9a-f]{7}\b", "ID..ID"),
    (r"\b\d+(\.\d+)? ?(ms|us|s)\b", "TIME"),
    (r"\d+m TIME", "TIME"),
    (r"\b\d+ (files changed|changes|written|removed)\b", r"N \1"),
    (r"(?<=\S) {3,}", "  "),
    (r"\n {6,}", "\n      "),
    (r"[ \t]+\n", "\n"),
]


def same(text, box):
    text = text.replace(str(box.ws), "~/proj").replace(str(box.home), "~")
    for pattern, word in SAME:
        text = re.sub(pattern, word, text)
    return text


def prepare(box):
    d = box.config / "vitrine" / "agents"
    d.mkdir(parents=True)
    (d / "mine.json").write_text(json.dumps({
        "summary": "a stand-in", "command": ["sh", "agent.sh", "by hand"], "free": [], "prompt": ["sh", "agent.sh", "{prompt}"],
        "report": {"when": "type=result", "text": "result", "cost": "cost", "tokens_in": "in", "tokens_out": "out"}}))
    (d / "mine.json").chmod(0o600)
    (box.home / "bin").mkdir()
    (box.home / "bin" / "vitrine").symlink_to(box.program)
    box.own(box.config)
    box.own(box.home)
    box.write("agent.sh", AGENT.replace("git commit", "git -c user.name=agent -c user.email=agent@example.org commit"))
    box.host("git", "init", "-q", "-b", "main", ".")
    box.host("git", "add", "-A")
    box.host("git", "-c", "user.name=you", "-c", "user.email=you@example.org", "commit", "-qm", "the beginning")
    time.sleep(1.1)  # git's log counts seconds


def until(t, text, seconds=20):
    """What came up to and with this."""
    patience = Patience(seconds)
    while text not in t.seen:
        assert not patience.is_over() and t.fill(Patience.STEP), f"{text!r} did not come: {t.seen!r}"
    at = t.seen.index(text) + len(text)
    got, t.seen = t.seen[:at], t.seen[at:]
    return got


@test(who=("user",), timeout=90)
def the_first_ten_minutes(box):
    prepare(box)
    t = Term(box, ["/bin/sh", "-i"], rows=50, cols=120,
             env={"PS1": "@> ", "ENV": "", "PATH": f"{box.home}/bin:/usr/local/bin:/usr/bin:/bin", "TZ": "UTC", "NO_COLOR": "1", "GIT_PAGER": "cat"})
    until(t, b"@> ")
    screens = []
    for command, act in STEPS:
        t.send(command + "\n")
        shown = b""
        if act == "detach":
            shown += until(t, b"begun\r\n")
            t.send("\x10\x11")
        elif act == "answer":
            time.sleep(0.3)
            t.send("you\n")
            shown += until(t, b"heard you")
        shown += until(t, b"@> ", 40)
        screens.append("$ " + same(shown[:-3].decode(errors="replace"), box).strip("\n") + "\n")
    t.send("exit\n")
    t.wait()
    t.close()
    got = "\n".join(screens)
    if os.environ.get("VITRINE_GOLDEN") == "write":
        GOLDEN.write_text(got)
    want = GOLDEN.read_text()
    assert got == want, "\n" + "\n".join(difflib.unified_diff(want.splitlines(), got.splitlines(), "golden", "here", lineterm=""))


if __name__ == "__main__":
    sys.exit(main())
