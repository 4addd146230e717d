#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The n-th call fails, of every kind of call that a verb makes: the verb says so in one line or has done its work.

strace does it, and each time its log must show that it happened. What follows is what was before or what should be after,
the next command works, and what is on record is whole. The store and checkpoints have tests of their own for this.

VITRINE_FAIL_POINTS says how many calls of each kind are taken, evenly; the everyday set takes a few.
"""

import os
import re
import subprocess
import sys

from harness import eq, main, test

MOST = int(os.environ.get("VITRINE_FAIL_POINTS", "2"))
FAULTS = {"open": "EMFILE", "openat": "EIO", "read": "EIO", "write": "ENOSPC", "writev": "ENOSPC", "pwrite64": "ENOSPC",
          "mkdir": "ENOSPC", "mkdirat": "ENOSPC", "rename": "EIO", "renameat": "EIO", "renameat2": "EIO", "linkat": "ENOSPC",
          "unlinkat": "EIO", "fsync": "EIO", "fdatasync": "EIO", "flock": "ENOLCK", "getdents64": "EIO", "getrandom": "EAGAIN",
          "ftruncate": "EIO"}


def traced(box, argv, *options):
    log = box.dir / "log"
    log.unlink(missing_ok=True)
    p = box.popen(["strace", "-o", log, *options, box.program, *argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                  stderr=subprocess.PIPE)
    r = box.finish(p, timeout=25)
    return r, log.read_text(errors="replace")


def points(n):
    return range(1, n + 1) if n <= MOST else sorted({1 + round(i * (n - 1) / max(MOST - 1, 1)) for i in range(MOST)})


def each_failing(box, argv, before, after):
    """`before` makes the scene, `after` judges what came of it."""
    before()
    r, text = traced(box, argv, "-c")
    eq(r.rc, 0, r.err)
    made = {name: int(n) for n, name in re.findall(r"^ *[\d.]+ +[\d.]+ +\d+ +(\d+) +(?:\d+ +)?(\w+)$", text, re.M)}
    tried = 0
    for call, error in FAULTS.items():
        for when in points(made.get(call, 0)):
            before()
            r, text = traced(box, argv, "-e", f"trace={call}", "-e", f"inject={call}:error={error}:when={when}")
            what = f"{argv}: {call} {when} of {made[call]} fails with {error}"
            if "(INJECTED)" not in text:
                continue  # one less this time; counted below
            if r.rc != 0 and not re.match(r"vitrine: [^\n]+\n", r.err):
                raise AssertionError(f"{what}: exit {r.rc}, and not one line: {r.err!r}")
            eq(r.rc in (0, 1, 2, 125), True, f"{what}: exit {r.rc}")
            after(r.rc == 0, what)
            tried += 1
    eq(tried >= 8, True, f"{argv}: only {tried} calls failed")
    v = box.cli("events", "--verify")
    eq(v.rc, 0, v.out + v.err)


def names(box):
    return box.cli("ls", "-q").out.split()


def works(box, name, what):
    r = box.run(name, "--", "sh", "-c", "cat ~/kept 2>/dev/null; echo fine")
    eq((r.rc, r.out.endswith("fine\n")), (0, True), f"{what}: {r.err}")
    return r.out


def gone(box, *which):
    for name in which:
        if name in names(box):
            eq(box.cli("rm", "--force", name).rc, 0)


@test(who=("user",), timeout=180)
def create(box):
    box.needs("strace")

    def after(is_done, what):
        eq(names(box) in ([["box"]] if is_done else [[], ["box"]]), True, what)
        if names(box):
            works(box, "box", what)

    each_failing(box, ["create", "--name", "box", "shell"], lambda: gone(box, "box"), after)


@test(who=("user",), timeout=180)
def rename(box):
    box.needs("strace")

    def before():
        gone(box, "new")
        if "old" not in names(box):
            box.ok("echo kept >~/kept", "--name", "old")

    def after(is_done, what):
        there = names(box)
        eq(there in ([["new"]] if is_done else [["old"], ["new"]]), True, f"{what}: {there}")
        eq(works(box, there[0], what), "kept\nfine\n", what)

    each_failing(box, ["rename", "old", "new"], before, after)


@test(who=("user",), timeout=180)
def reset(box):
    box.needs("strace")

    def after(is_done, what):
        eq(works(box, "box", what) in (["fine\n"] if is_done else ["fine\n", "kept\nfine\n"]), True, what)

    each_failing(box, ["reset", "--force", "box"], lambda: box.ok("echo kept >~/kept", "--name", "box"), after)


@test(who=("user",), timeout=180)
def rm(box):
    box.needs("strace")

    def before():
        if "box" not in names(box):
            box.ok("echo kept >~/kept", "--name", "box")

    def after(is_done, what):
        eq(names(box) in ([[]] if is_done else [[], ["box"]]), True, what)
        if names(box):
            eq(works(box, "box", what), "kept\nfine\n", what)

    each_failing(box, ["rm", "box"], before, after)


@test(who=("user",), timeout=180)
def the_client_of_a_run(box):
    """Only the client: calls of the walls are those of SV-19, the keeper's journal is in store_fault.py."""
    box.needs("strace")

    def after(is_done, what):
        f = box.ws / "ran"
        n = len(f.read_text().splitlines()) if f.exists() else 0
        f.unlink(missing_ok=True)
        eq(n <= 1 and (n == 1 or not is_done), True, f"{what}: it ran {n} times")
        works(box, "box", what)

    box.ok("true")  # what only the first start here makes is not counted
    each_failing(box, ["run", "--name", "box", "--", "sh", "-c", "echo ran >>ran"], lambda: (box.ws / "ran").unlink(missing_ok=True), after)


if __name__ == "__main__":
    sys.exit(main())
