#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kill -9 of client, keeper and init at every step of starting, entering, stopping, renaming, emptying, copying, removing.

Every kill is asserted to have happened where it was meant to. After each one: nothing of it lives two seconds later,
the command ran at most once, the sandbox is there as it was before or as it should be after, and the next command works
and cleans up. Normally every STRIDE-th system call is taken; VITRINE_KILL_STRIDE=1 takes them all.
"""

import sys

from harness import check_processes, eq, main, test
from killstep import STRIDE, clean, each_step, kill_at, whole


def ran(box):
    f = box.ws / "ran"
    n = f.read_text().count("ran\n") if f.exists() else 0
    f.unlink(missing_ok=True)
    return n


def try_run(box, who):
    def after():
        eq(ran(box) <= 1, True, "it ran more than once")
        r = box.run("--name", "box", "--", "sh", "-c", "cat ~/kept; echo again")
        eq((r.rc, r.out), (0, "kept\nagain\n"), r.err)
        eq(list((box.state / "sandboxes" / "box").glob(".new*")), [])
        clean(box)

    box.ok("echo kept >~/kept", "--name", "box")
    each_step(box, who, after, "run", "--name", "box", "--", "sh", "-c", "echo ran >>ran")


@test(timeout=150 if STRIDE > 1 else 1500)
def run_client_killed(box):
    try_run(box, "client")


@test(timeout=150 if STRIDE > 1 else 1500)
def run_keeper_killed(box):
    try_run(box, "keeper")


@test(timeout=150 if STRIDE > 1 else 1500, who=["root"])
def run_init_killed(box):
    """Only root may follow init, which is not to be looked into."""
    try_run(box, "init")


@test(timeout=150 if STRIDE > 1 else 1500)
def unnamed_keeper_killed(box):
    each_step(box, "keeper", lambda: (eq(ran(box) <= 1, True), clean(box)), "run", "--", "sh", "-c", "echo ran >>ran")


@test(timeout=100 if STRIDE > 1 else 1500)
def create_killed(box):
    def after():
        names = box.cli("ls", "-q").out.split()
        eq(names in ([], ["box"]), True, names)
        r = box.run("--name", "box", "--", "echo", "fine")
        eq((r.rc, r.out), (0, "fine\n"), r.err)
        eq(box.cli("rm", "box").rc, 0)
        eq([p.name for p in (box.state / "sandboxes").iterdir()], [])

    each_step(box, "client", after, "create", "--name", "box", "--read", "/opt", "shell")


@test(timeout=100 if STRIDE > 1 else 1500)
def rm_killed(box):
    """Whole or gone, never in between."""
    def before():
        if not (box.state / "sandboxes" / "box" / "sandbox.json").exists():
            box.ok("mkdir -p ~/a/b; for i in 1 2 3 4 5 6 7 8 9; do echo $i >~/a/$i; done", "--name", "box")

    def after():
        if box.cli("ls", "-q").out.split() == ["box"]:
            eq(box.run("box", "--", "sh", "-c", "cat ~/a/* 2>/dev/null | wc -l").out.strip(), "9")
        clean(box)
        whole(box)

    each_step(box, "client", after, "rm", "box", before=before)


@test(timeout=100 if STRIDE > 1 else 1500)
def rename_killed(box):
    def before():
        if (box.state / "sandboxes" / "new").exists():
            eq(box.cli("rename", "new", "old").rc, 0)

    def after():
        names = box.cli("ls", "-q").out.split()
        eq(names in (["old"], ["new"]), True, names)
        eq(box.run(names[0], "--", "sh", "-c", "cat ~/kept").out, "kept\n")
        whole(box)

    box.ok("echo kept >~/kept", "--name", "old")
    each_step(box, "client", after, "rename", "old", "new", before=before)


@test(timeout=100 if STRIDE > 1 else 1500)
def reset_killed(box):
    """A home is there whole or empty, and what was begun can be done."""
    def before():
        box.ok("mkdir -p ~/a; for i in 1 2 3 4 5 6 7 8 9; do echo $i >~/a/$i; done", "--name", "box")

    def after():
        eq(box.run("box", "--", "sh", "-c", "cat ~/a/* 2>/dev/null | wc -l").out.strip() in ("0", "9"), True)
        eq(box.cli("reset", "--force", "box").rc, 0)
        eq(box.run("box", "--", "sh", "-c", "ls ~/a 2>/dev/null").out, "")
        eq([p.name for p in (box.state / "sandboxes" / "box").glob(".rm-*")], [])

    each_step(box, "client", after, "reset", "--force", "box", before=before)


@test(timeout=100 if STRIDE > 1 else 1500)
def cp_killed(box):
    """In and out: the old file or the new one, whole."""
    p = box.named("box", "echo old >/tmp/f; echo up; exec sleep 1400")
    box.write("new", "new\n" * 5000)
    box.write("there", "old\n")

    def went_in():
        got = box.cli("exec", "box", "--", "sh", "-c", "sort -u /tmp/f; wc -l </tmp/f").out
        eq(got in ("old\n1\n", "new\n5000\n"), True, got)

    def went_out():
        eq((box.ws / "there").read_text() in ("old\n", "new\n" * 5000, "big\n" * 5000), True)

    def each(after, *argv):
        n, step = 0, 1
        while kill_at(box, "client", step, "cp", *argv) is not None:
            after()
            n, step = n + 1, step + STRIDE
        eq(n > 2, True, f"{n} steps were tried")
        r = box.cli("cp", *argv)
        eq(r.rc, 0, r.err)

    each(went_in, box.ws / "new", "box:/tmp/f")
    eq(box.cli("exec", "box", "--", "sh", "-c", "yes big | head -n 5000 >/tmp/big").rc, 0)
    each(went_out, "box:/tmp/big", box.ws / "there")
    eq((box.ws / "there").read_text(), "big\n" * 5000)
    box.stop(p)


@test(timeout=100 if STRIDE > 1 else 1500)
def exec_client_killed(box):
    p = box.named("box")
    n, step = 0, 1
    while kill_at(box, "client", step, "exec", "box", "--", "sh", "-c", "echo ran >>ran") is not None:
        eq(ran(box) <= 1, True)
        eq(box.cli("exec", "box", "--", "echo", "fine").out, "fine\n")
        n, step = n + 1, step + STRIDE
    eq(n > 2, True)
    box.stop(p)


@test(timeout=100 if STRIDE > 1 else 1500)
def stop_killed(box):
    """A stop that was begun may be heard or not; the sandbox runs or it does not, and can be stopped."""
    n, step = 0, 1
    box.cli("create", "--name", "box", "shell")
    while True:
        eq(box.cli("start", "box").rc, 0)
        if kill_at(box, "client", step, "stop", "--time", "0", "box") is None:
            break
        eq(box.cli("stop", "--time", "0", "box").rc, 0)
        check_processes()
        n, step = n + 1, step + STRIDE
    eq(n > 2, True)
    eq(box.cli("stop", "--time", "0", "box").rc, 0)


if __name__ == "__main__":
    sys.exit(main())
