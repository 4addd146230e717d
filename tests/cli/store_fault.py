#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The store when everything goes wrong: killed at every step, every call failing once, a full disk.

strace does the injecting, and each time its log must show that it happened; a fault that was not injected proves
nothing. Afterwards one ingest without faults must find everything: each event once, every chain whole.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from harness import Skip, eq, has, main, test

FEED_TIMEOUT = 20


def tool(box, name):
    return box.program.parent / name


def feed(box, name, *words):
    p = box.popen([tool(box, "feed"), box.state, name, *words], stdin=subprocess.DEVNULL,
                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return box.finish(p)


def ingest(box):
    p = box.popen([tool(box, "vitrine-store"), "ingest", "--wait", "--state", box.state],
                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return box.finish(p)


def traced(box, inject, argv, **kw):
    """The program under strace with one fault; what it said, its status, and whether the fault came."""
    log = box.dir / "strace.log"
    log.unlink(missing_ok=True)
    what = inject.split(":")[0]
    p = box.popen(["strace", "-f", "-o", log, "-e", f"trace={what}", "-e", f"inject={inject}", *argv],
                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kw)
    r = box.finish(p, timeout=FEED_TIMEOUT)
    text = log.read_text(errors="replace")
    return r, "(INJECTED)" in text or "+++ killed by SIGKILL" in text


def calls_of(box, argv):
    """How often it makes each call."""
    log = box.dir / "count.log"
    p = box.popen(["strace", "-f", "-c", "-o", log, *argv], stdin=subprocess.DEVNULL,
                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    r = box.finish(p, timeout=FEED_TIMEOUT)
    eq(r.rc, 0, r.err)
    found = re.findall(r"^ *[\d.]+ +[\d.]+ +\d+ +(\d+) +(?:\d+ +)?(\w+)$", log.read_text(), re.M)
    return {name: int(n) for n, name in found}


def fewest_calls_of(box, argv):
    """One keeper in sixteen, by chance, looks how many journals lie about: the others make a call less."""
    counts = [calls_of(box, argv) for _ in range(4)]
    return {name: min(c.get(name, 0) for c in counts) for name in counts[0]}


def ids(box):
    r = box.cli("events", "-q")
    eq((r.rc, r.err), (0, ""))
    return r.out.split()


def check_whole(box, want, what):
    r = box.cli("events", "--verify")
    eq(r.rc, 0, f"{what}: {r.out}{r.err}")
    got = ids(box)
    eq(len(got), len(set(got)), f"{what}: an event is there twice")
    eq(sorted(got), want, what)
    left = [p.name for p in (box.state / "journal").iterdir() if p.name != ".lock"]
    eq(left, [], f"{what}: journals are left")


def scene(box):
    """A store with a past, and journals of every kind in front of it. What must come of it."""
    box.needs("strace")
    (box.state / "sandboxes" / "box").mkdir(parents=True)
    box.own(box.dir / "state")
    feed(box, "run-0", "events=5")
    eq(ingest(box).rc, 0)
    feed(box, "run-1", "events=20", "sessions=2")
    feed(box, "run-2", "events=3", "open", "die")
    # Not "named" while it ends: that would start an ingest at once.
    p = box.popen([tool(box, "feed"), box.state, "box", "named", "events=10", "die"], stdin=subprocess.DEVNULL,
                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    box.finish(p)
    save(box)
    eq(ingest(box).rc, 0)
    want = sorted(ids(box))
    eq(len(want), 8 + 45 + 5 + 2 + 13 + 1)
    check_whole(box, want, "without any fault")
    return want


def save(box):
    shutil.copytree(box.state, box.dir / "saved", dirs_exist_ok=True)


def restore(box):
    shutil.rmtree(box.state)
    shutil.copytree(box.dir / "saved", box.state)
    box.own(box.state)


def points(n, most):
    """At most so many of 1..n, evenly, with both ends."""
    if n <= most:
        return range(1, n + 1)
    return sorted({1 + round(i * (n - 1) / (most - 1)) for i in range(most)})


def everywhere(box, want, faults):
    """Each (call, fault, most points)."""
    argv = [tool(box, "vitrine-store"), "ingest", "--state", box.state]
    restore(box)
    count = calls_of(box, argv)
    done = 0
    for call, fault, most in faults:
        for when in points(count.get(call, 0), most):
            restore(box)
            r, is_injected = traced(box, f"{call}:{fault}:when={when}", argv)
            what = f"{call} {when} of {count[call]}, {fault}"
            eq(is_injected, True, f"{what}: nothing was injected")
            # The first calls are the loader's, which speaks for itself.
            if "KILL" not in fault and r.rc != 0 and "loading shared libraries" not in r.err and \
                    not re.fullmatch(r"vitrine: [^\n]+\n", r.err):
                raise AssertionError(f"{what}: exit {r.rc} without one clear line: {r.err!r}")
            again = ingest(box)
            eq(again.rc, 0, f"{what}: afterwards: {again.err}")
            check_whole(box, want, what)
            done += 1
    if done < 10:
        raise AssertionError(f"only {done} faults were injected")


@test(who=("user",), timeout=420)
def ingest_killed_at_every_step(box):
    kill = "signal=KILL"
    everywhere(box, scene(box), [
        ("pwrite64", kill, 40), ("fdatasync", kill, 20), ("openat", kill, 20), ("unlinkat", kill, 10),
        ("unlink", kill, 10), ("ftruncate", kill, 10), ("mkdir", kill, 5), ("flock", kill, 10), ("close", kill, 15)])


@test(who=("user",), timeout=420)
def every_call_of_ingest_fails_once(box):
    everywhere(box, scene(box), [
        ("pwrite64", "error=ENOSPC", 25), ("pwrite64", "error=EIO", 15), ("fdatasync", "error=EIO", 15),
        ("openat", "error=EMFILE", 12), ("openat", "error=ENOSPC", 12), ("ftruncate", "error=EIO", 5),
        ("unlinkat", "error=EIO", 5), ("mkdir", "error=ENOSPC", 3), ("flock", "error=ENOLCK", 4),
        ("pread64", "error=EIO", 15), ("read", "error=EIO", 10), ("getdents64", "error=EIO", 3)])


# ------------------------------------------------------------------------------------------- the journal


def acknowledged(r):
    return [int(n) for n in re.findall(r"^ok (\d+)$", r.out, re.M)]


def check_acknowledged(box, r, what):
    """Whatever was called done is there; what was not may be."""
    run = r.out.split()[0]
    r2 = box.cli("events", "--type", "process.exec", "--format", "{{.Run}} {{.pid}}")
    eq(r2.rc, 0, r2.err)
    there = [int(l.split()[1]) for l in r2.out.splitlines() if l.startswith(run)]
    missing = set(acknowledged(r)) - set(there)
    eq(missing, set(), f"{what}: acknowledged and lost")
    eq(there, sorted(set(there)), f"{what}: twice or out of order")
    v = box.cli("events", "--verify")
    eq(v.rc, 0, f"{what}: {v.out}")


def keeper_faults(box, fault, calls):
    box.needs("strace")
    argv = [tool(box, "feed"), box.state, "run-1", "events=8", "ack"]
    count = fewest_calls_of(box, argv)
    done = 0
    for call in calls:
        for when in points(count.get(call, 0), 12):
            shutil.rmtree(box.state, ignore_errors=True)
            r, is_injected = traced(box, f"{call}:{fault}:when={when}", argv)
            what = f"{call} {when} of {count[call]}, {fault}"
            eq(is_injected, True, f"{what}: nothing was injected")
            if r.out:
                check_acknowledged(box, r, what)
            done += 1
    if done < 10:
        raise AssertionError(f"only {done} faults were injected")


@test(who=("user",), timeout=120)
def a_keeper_killed_at_every_step(box):
    keeper_faults(box, "signal=KILL", ["pwrite64", "openat", "open", "rename", "renameat2", "flock", "mkdir", "write"])


@test(who=("user",), timeout=120)
def every_call_of_a_keeper_fails_once(box):
    keeper_faults(box, "error=ENOSPC", ["pwrite64", "openat", "open", "rename", "renameat2", "mkdir"])
    keeper_faults(box, "error=EIO", ["pwrite64", "flock", "ftruncate"])


# --------------------------------------------------------------------------------------------- disk full


def on_small_disk(box, kib, script):
    """A shell script with the state directory on a tmpfs of that size; it may make it larger."""
    text = f"""set -u
    mkdir -p {box.dir}/state && mount -t tmpfs -o size={kib}k,mode=700 none {box.dir}/state || exit 99
    mkdir -p {box.state}/sandboxes/box
    {script}"""
    p = box.popen(["unshare", "--mount", "--propagation", "private", "sh", "-c", text], stdin=subprocess.DEVNULL,
                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    r = box.finish(p, timeout=30)
    if r.rc == 99:
        raise Skip(f"no tmpfs can be mounted here: {r.err.strip()}")
    return r


GROW = "mount -o remount,size=64m"


@test(who=("root",), timeout=120)
def the_disk_fills_while_a_keeper_writes(box):
    feed_path, vitrine = tool(box, "feed"), box.program
    was_full = 0
    for kib in (8, 16, 24, 40, 64, 100, 160):
        r = on_small_disk(box, kib, f"""
            {feed_path} {box.state} run-1 events=200 bytes=500 ack >{box.dir}/said
            {GROW} {box.dir}/state || exit 98
            {vitrine} events --type process.exec --format '{{{{.pid}}}}' >{box.dir}/there || exit 97
            {vitrine} events --type journal.lost --format '{{{{.count}}}}' >{box.dir}/lost || exit 97
            {vitrine} events --verify""")
        eq(r.rc, 0, f"{kib} KiB: {r.out}{r.err}")
        said = [int(n) for n in re.findall(r"^ok (\d+)$", (box.dir / "said").read_text(), re.M)]
        there = [int(n) for n in (box.dir / "there").read_text().split()]
        eq(set(said) - set(there), set(), f"{kib} KiB: acknowledged and lost")
        was_full += len(said) < 200
    if was_full < 3:
        raise AssertionError("the disk was never full")


@test(who=("root",), timeout=240)
def the_disk_fills_during_ingest(box):
    feed_path, vitrine, store = tool(box, "feed"), box.program, tool(box, "vitrine-store")
    was_full = 0
    for kib in list(range(48, 400, 32)) + [500, 700]:
        r = on_small_disk(box, kib, f"""
            {feed_path} {box.state} run-1 events=100 bytes=100 >/dev/null || exit 96
            {feed_path} {box.state} run-2 events=100 bytes=100 die >/dev/null 2>&1
            {store} ingest --state {box.state} 2>{box.dir}/said
            echo $? >{box.dir}/status
            {GROW} {box.dir}/state || exit 98
            {vitrine} events -q >{box.dir}/there || exit 97
            {vitrine} events --verify""")
        eq(r.rc, 0, f"{kib} KiB: {r.out}{r.err}")
        there = (box.dir / "there").read_text().split()
        eq((len(there), len(set(there))), (103 + 104, 103 + 104), f"{kib} KiB")
        said = (box.dir / "said").read_text()
        if (box.dir / "status").read_text().strip() != "0":
            was_full += 1
            has(said, "vitrine: ")
            eq(said.count("\n"), 1, said)
            has(said.lower(), "full" if "isk" in said else "space")
    if was_full < 3:
        raise AssertionError("the disk was never full")


if __name__ == "__main__":
    sys.exit(main())
