#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every command of ours that README.md and docs/ give as an example is run.

An example is a line of an indented block that begins with `vitrine`. The examples of a page are run one after the other, in
a project with a repository, a Makefile and what SECTIONS names; each section has sandboxes of its own; a stand-in plays the agents. A line that cannot run here says
so where a reader sees it: the paragraph above its block, or the line itself, has *Needs ...* in it. Of such a line, and of one
with a word for the reader to fill in (NAME, FILE, [--json], ...), the verb and the options must exist.
"""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

from harness import Result, main, test

TOP = Path(__file__).resolve().parent.parent.parent
EXAMPLE = re.compile(r"    (?:\$ )?(?:build/)?(vitrine(?: .*)?)")
FORM = re.compile(r"\b(NAME|FILE|CMD|ID|TOKEN|PATHS?|IMAGE|DIR|N)\b|\.\.\.|\[")
NEEDS = re.compile(r"\bNeeds? [^*\n]+")
FOLLOWS = re.compile(r" (-f|--watch|--follow)\b")  # ended by us
STATUS = {"vitrine guard test 'rm -rf \"$DIR\"/*'": (1, 3), "vitrine guard explain": (0, 1, 3), "vitrine net test": (0, 1),
          # a loop of the stand-in is over before the next line is typed
          "vitrine hint": (0, 125), "vitrine loop stop": (0, 125), "vitrine loop": (0, 3)}

# What a page takes for granted.
BOX = "vitrine run --name box --mode review -- sh -c 'mkdir -p src; echo new > src/new'"
SECTIONS = {
    "docs/NETWORK.md#While it runs": ["vitrine run -d --name box --allow other.example -- sleep 60"],
    "docs/UNDO.md#": ["vitrine checkpoint -m a", "vitrine checkpoint -m b"],
}
# What has just happened when this is typed.
BEFORE = {"vitrine undo": "vitrine run --name agent -- sh -c 'echo x > changed'"}


def examples(page):
    """Of each section: its title, and (line number, command, what the reader is told that it needs) of its examples."""
    said, sections, was_blank = "", [(f"{page}#", [])], True
    for n, line in enumerate((TOP / page).read_text().splitlines(), 1):
        m = EXAMPLE.fullmatch(line)
        if line.startswith("## "):
            sections.append((f"{page}#{line[3:]}", []))
            said = ""
        elif m:
            needs = NEEDS.search(line) or NEEDS.search(said)
            for part in re.split(r"\s{3,}(?=vitrine )", m.group(1)):
                sections[-1][1].append((n, part, needs and needs.group()))
        elif line.strip() and not line.startswith("    "):
            said = line if was_blank else said + " " + line
        was_blank = not line.strip()
    return sections


def command_of(text):
    """Without the words for the reader: behind # or three blanks."""
    return re.split(r"\s+# |\s{2,}(?=\S)", text)[0].strip().rstrip(";")


def pages():
    return ["README.md", *sorted(str(p.relative_to(TOP)) for p in (TOP / "docs").glob("*.md"))]


def prepare(box):
    d = box.config / "vitrine" / "agents"
    d.mkdir(parents=True)
    for name in ("claude", "codex"):
        (d / f"{name}.json").write_text(json.dumps({
            "summary": "a stand-in", "command": ["sh", "-c", "echo agent; true"], "free": [], "hook": name,
            "prompt": ["sh", "-c", "echo x >> log; true", "{prompt}"],
            "report": {"when": "type=result", "text": "r", "cost": "c", "tokens_in": "i", "tokens_out": "o"}}))
        (d / f"{name}.json").chmod(0o600)
    box.own(box.config)
    box.write("Makefile", "all test:\n\t@true\n")
    box.write("PROMPT.md", "Do it.\n")
    box.write("package.json", '{"name": "x", "version": "1.0.0", "scripts": {"test": "true"}}\n')
    for name in ("train.py", "agent", "server"):
        box.write(name, "#!/bin/sh\ntrue\n" if name != "train.py" else "print(1)\n", 0o755)
    for name in ("datasets", "cache"):
        (box.home / name).mkdir()
    box.own(box.home)
    box.host("git", "init", "-q", "-b", "main", ".")
    box.host("git", "-c", "user.name=t", "-c", "user.email=t@t", "add", "-A")
    box.host("git", "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "first")


def play(box, command):
    words = re.sub(r"^vitrine(?= |$)", '"$V"', command)
    words = re.sub(r"(; |&& )vitrine ", r'\1"$V" ', words)
    p = box.popen(["sh", "-c", words], env={"V": str(box.program)}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                  stderr=subprocess.PIPE, start_new_session=True)
    follows = FOLLOWS.search(command)
    try:
        out, err = p.communicate(timeout=0.7 if follows else 15)
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGTERM)
        out, err = p.communicate(timeout=10)
        return (0 if follows else 124), Result(0, out, err)
    return p.returncode, Result(p.returncode, out, err)


def wanted(command):
    return next((v for k, v in STATUS.items() if command.startswith(k)), (0,))


def check_form(box, command):
    """Its verb is one, and each of its options is in the verb's help."""
    words = re.findall(r"[^\s\[\]|]+", command)
    r = box.cli(words[1], "--help")
    if r.rc != 0:
        return f"no verb '{words[1]}'"
    head = command.split(" -- ")[0]
    lost = [o for o in re.findall(r"(?<!\S)\[?(--[a-z][a-z-]*)", head) if o not in r.out]
    return f"no option {lost}" if lost else None


@test(who=("user",), timeout=120)
def every_example_runs(box):
    wrong, n_run, n_needs, n_forms = [], 0, 0, 0
    only = sys.argv[2:] if len(sys.argv) > 2 and sys.argv[2].endswith(".md") else None
    prepare(box)
    base = box.cli("ls", "-q").out
    for title, found in (x for page in only or pages() for x in examples(page)):
        page = title.split("#")[0]
        before = SECTIONS.get(title, [])
        runs = [c for _, c, needs in found if not needs]
        if any(re.search(r"\bbox\b", c) for c in runs) and not any("--name box" in c for c in runs + before):
            before = [*before, BOX]
        for setup in before:
            rc, r = play(box, setup)
            assert rc == 0, (title, setup, r.out, r.err)
        for n, text, needs in found:
            command = command_of(text)
            if needs or FORM.search(shlex_free(command)):
                n_needs += bool(needs)
                n_forms += not needs
                why = check_form(box, command)
                if why:
                    wrong.append(f"{page}:{n}: {command}: {why}")
                continue
            if command in BEFORE:
                play(box, BEFORE[command])
            began = time.monotonic()
            rc, r = play(box, command)
            if os.environ.get("VITRINE_EXAMPLES_SHOWN"):
                print(f"{time.monotonic() - began:6.2f} s  {rc}  {page}:{n}: {command}", file=sys.stderr)
            n_run += 1
            if rc not in wanted(command):
                wrong.append(f"{page}:{n}: {command}: exit {rc}: {(r.err or r.out).strip()[-200:]}")
        for name in box.cli("ls", "-q").out.split() if found else []:
            box.cli("rm", "--force", name)
    assert base == "", base
    assert not wrong, "\n" + "\n".join(wrong)
    assert only or n_run > 40, n_run
    print(f"examples: {n_run} run, {n_forms} forms checked, {n_needs} need what is not here", file=sys.stderr)


def shlex_free(command):
    """Without quoted words, in which capitals are the reader's own text."""
    return " ".join(w for w in shlex.split(re.sub(r"'[^']*'|\"[^\"]*\"", "x", command), comments=True))


if __name__ == "__main__":
    sys.exit(main())
