#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The power goes: what was acknowledged before is there afterwards, and everything still opens.

The state lies on an ext4 file system of its own, in a file. Its shutdown call, without flushing its log, makes of it what
a machine's disk is at the instant the power goes: what was synced is there, and all that the kernel only held in memory
is not. Options make it a strict one: no commit by itself, and no help for who renames without syncing. Every cut is
shown to have happened: writing fails, and a file that was written without syncing is mostly empty or gone afterwards.

VITRINE_CUTS says how many cuts at random moments there are; the everyday set has a few, `make soak` hundreds.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import random
import signal
import sqlite3
import struct
import subprocess
import sys
import time
from pathlib import Path

from harness import Skip, below, eq, main, reap, soon, test

CUTS = int(os.environ.get("VITRINE_CUTS", "8"))
SHUTDOWN = 0x8004587D  # EXT4_IOC_SHUTDOWN
WITHOUT_LOG = 2
OPTIONS = ("data=ordered", "data=writeback", "data=ordered,nodelalloc", "data=journal")
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 0x40000
libc = ctypes.CDLL(None, use_errno=True)


class Disk:
    """One that the power can be taken from. Its mounts are in a namespace of this process, and go with it."""

    def __init__(self, box):
        box.needs("mkfs.ext4", "mount", "umount")
        self.top, self.file, self.n, self.lost = box.dir / "state", box.dir / "disk", 0, 0
        if libc.unshare(CLONE_NEWNS) < 0 or libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) < 0:
            raise Skip("no mount namespace of its own can be had")
        self.top.mkdir()
        with self.file.open("wb") as f:
            f.truncate(96 << 20)
        subprocess.run(["mkfs.ext4", "-q", "-F", "-m", "0", self.file], check=True, timeout=60)
        self.on()

    def on(self):
        options = f"loop,commit=300,noauto_da_alloc,{OPTIONS[self.n % len(OPTIONS)]}"
        r = subprocess.run(["mount", "-t", "ext4", "-o", options, self.file, self.top], capture_output=True, text=True,
                           timeout=60)
        if r.returncode and not self.n:
            raise Skip(f"no file system can be mounted from a file here: {r.stderr.strip()}")
        eq(r.returncode, 0, r.stderr)

    def cut(self):
        """All processes and all that was not synced go at once."""
        (self.top / "canary").write_text("not synced")
        fd = os.open(self.top, os.O_RDONLY)
        fcntl.ioctl(fd, SHUTDOWN, struct.pack("I", WITHOUT_LOG))
        os.close(fd)
        for pid in below(os.getpid()):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            (self.top / "after").write_text("must not be possible")
            raise AssertionError("the power is still on")
        except OSError:
            pass
        self.n += 1
        self.off()
        self.on()
        # Somebody's sync in the last instant may have taken it along.
        canary = self.top / "canary"
        self.lost += not canary.exists() or canary.read_text() == ""
        canary.unlink(missing_ok=True)

    def check_cuts(self, n):
        eq(self.n, n, "cuts")
        eq(self.lost > n // 2, True, f"of {n} canaries {self.lost} were lost: is the power really cut?")

    def off(self):
        """Mount namespaces of what was killed hold it until they are gone, a moment later."""
        def is_unmounted():
            reap()
            return not self.top.is_mount() or \
                subprocess.run(["umount", self.top], capture_output=True, timeout=60).returncode == 0

        def is_free():
            reap()
            return str(self.file) not in [f.read_text().strip() for f in Path("/sys/block").glob("loop*/loop/backing_file")]

        soon(is_unmounted, "the disk is unmounted", 30)
        soon(is_free, "the disk is let go", 30)


class Known:
    """What was acknowledged."""

    def __init__(self):
        self.boxes, self.points, self.events = set(), set(), []


def names(box):
    return set(box.cli("ls", "-q").out.split())


def points(box):
    r = box.cli("checkpoints", "--json")
    eq(r.rc, 0, r.err)
    return {str(c["checkpoint"]) for c in json.loads(r.out)["checkpoints"]}


def ids(box):
    r = box.cli("events", "-q")
    eq(r.rc, 0, r.err)
    return r.out.split()


def taken_up(box):
    """The events that are in databases; those of a running keeper's journal are shown as well, and may be lost."""
    found = []
    for path in [*box.state.glob("sandboxes/[!.]*/events.db"), *box.state.glob("runs/events.db")]:
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            found += [f"{run}:{n}" for run, n in db.execute(
                "SELECT r.run, e.number FROM event e JOIN stream s ON e.stream=s.id JOIN run r ON s.run=r.id")]
    return found


def act(box, rng, known, n):
    """One call; what it may have made of the sandboxes and the checkpoints when it did not come to its end."""
    word = rng.choice(["create", "create", "run", "run", "rename", "rm", "checkpoint", "checkpoint", "events", "start", "reset"])
    some = rng.choice(sorted(known.boxes) or ["none"])
    new = f"box{n}"
    boxes = known.boxes
    if word == "create":
        return ["create", "--name", new, "shell"], boxes | {new}
    if word == "rename" and boxes:
        return ["rename", some, new], (boxes - {some}) | {new}
    if word == "rm" and len(boxes) > 2:
        return ["rm", "--force", some], boxes - {some}
    if word == "start" and boxes:
        return ["start", some], boxes
    if word == "reset" and boxes:
        return ["reset", "--force", some], boxes
    if word == "checkpoint":
        box.write(f"file{n % 7}", f"content {n}\n" * (1 + rng.randrange(2000)))
        return ["checkpoint", "-m", new], boxes
    if word == "events":
        return ["events", "-q"], boxes
    return ["run", "--name", some if boxes else new, "--", "sh", "-c", "echo $$ >~/mine"], boxes | {some if boxes else new}


def check(box, known, may, what):
    """Everything opens; of the sandboxes those that were there or, for the call that was cut off, should be."""
    there = names(box)
    eq(there in (known.boxes, may), True, f"{what}: acknowledged {sorted(known.boxes)} or {sorted(may)}, there {sorted(there)}")
    known.boxes = there
    r = box.cli("events", "--verify")
    eq(r.rc, 0, f"{what}: {r.out}{r.err}")
    now = ids(box)
    eq(set(known.events) - set(now), set(), f"{what}: events were taken up and are lost")
    eq(len(now), len(set(now)), f"{what}: events are there twice")
    known.events = taken_up(box)
    have = points(box)
    recent = set(sorted(known.points, key=int)[-20:])  # older ones are thinned out
    eq(recent - have, set(), f"{what}: checkpoints were acknowledged and are lost")
    known.points = have
    for verb in (["ps"], ["stats"], ["ls", "--json"], *(["inspect", b] for b in sorted(there)[:2]),
                 *(["logs", b] for b in sorted(there)[:2])):
        r = box.cli(*verb)
        if r.rc != 0 and "no record of any session" not in r.err:
            raise AssertionError(f"{what}: {verb}: exit {r.rc}: {r.err}")
    r = box.cli("run", "--name", sorted(there)[0] if there else "first", "--", "echo", "fine")
    eq((r.rc, r.out), (0, "fine\n"), f"{what}: {r.err}")
    known.boxes |= {"first"} if not there else set()


def restores(box, known):
    """What is listed can be gone back to."""
    if known.points:
        p = max(known.points, key=int)
        r = box.cli("restore", p)
        eq(r.rc, 0, f"checkpoint {p}: {r.err}")
        known.points = points(box)


def acknowledge(box, known, argv, boxes):
    """One call to its end: what it says is acknowledged."""
    r = box.cli(*argv)
    eq(r.rc, 0, f"{argv}: {r.err}")
    known.boxes = boxes
    if argv[0] == "checkpoint":
        known.points |= {r.out.split()[1].rstrip(":")}
    if argv[0] == "events":
        known.events = taken_up(box)
    if argv[0] == "rm":
        known.events = []  # they go with their sandbox


def do(box, rng, known, n):
    argv, boxes = act(box, rng, known, n)
    acknowledge(box, known, argv, boxes)
    return argv


@test(who=("root",), timeout=120)
def after_every_acknowledgement(box):
    """Each verb that changes something, and the power goes the moment it has said that it is done."""
    disk, known = Disk(box), Known()
    try:
        acts = [(["create", "--name", "a", "shell"], {"a"}),
                (["create", "--name", "b", "--read", "/opt", "shell"], {"a", "b"}),
                (["rename", "a", "c"], {"b", "c"}),
                (["run", "--name", "d", "--", "sh", "-c", "echo x >~/x"], {"b", "c", "d"}),
                (["rm", "c"], {"b", "d"}),
                (["checkpoint", "-m", "one"], {"b", "d"}),
                (["start", "b"], {"b", "d"}),
                (["reset", "--force", "d"], {"b", "d"}),
                (["events", "-q"], {"b", "d"}),
                (["checkpoint", "-m", "two"], {"b", "d"})]
        for i, (argv, boxes) in enumerate(acts):
            box.write("file", f"{i}\n")
            acknowledge(box, known, argv, boxes)
            disk.cut()
            check(box, known, boxes, f"cut {disk.n}, after {argv}")
        disk.check_cuts(len(acts))
        eq(len(known.points) >= 2 and len(known.events) > 10, True, (known.points, len(known.events)))
        restores(box, known)
    finally:
        box.cli("stop", "--all", "--time", "0")
        disk.off()


@test(who=("root",), timeout=max(120, CUTS * 10))
def at_any_moment(box):
    """A few calls to their end, then one in the middle of which the power goes."""
    disk, known, n = Disk(box), Known(), 0
    seed = int(os.environ.get("VITRINE_SEED", "1"))
    try:
        for i in range(CUTS):
            rng = random.Random(seed * 100000 + i)
            done = []
            for _ in range(rng.randrange(3)):
                n += 1
                done.append(do(box, rng, known, n))
            n += 1
            argv, may = act(box, rng, known, n)
            p = box.start(*argv)
            time.sleep(rng.random() ** 2 * 0.06)
            is_done = p.poll() == 0
            disk.cut()
            p.communicate()
            if argv[0] == "rm":
                known.events = []
            if is_done:
                known.boxes = may
            check(box, known, may, f"cut {i} of seed {seed}, after {done}, in {argv}")
        disk.check_cuts(CUTS)
        restores(box, known)
    finally:
        box.cli("stop", "--all", "--time", "0")
        disk.off()


if __name__ == "__main__":
    sys.exit(main())
