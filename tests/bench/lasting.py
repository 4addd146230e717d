# SPDX-License-Identifier: Apache-2.0
"""Sandboxes that last: exec into one, run one that is there, and many that stand idle."""

import os
import statistics
import subprocess
import time

import host
import measure
import stats
from host import Unmeasurable

BOX = "bench-box"


def call(peer, who, ws, *words):
    return host.run([peer.path, *words], who=who, cwd=ws, env=peer.env(who))


def times(h, who, entries, base, rounds):
    samples = measure.start_times(h, who, entries, rounds)
    return {"samples": samples, "rows": {k: stats.summary(v) for k, v in samples.items()},
            "ratio": {k: stats.paired(v, samples[base]) for k, v in samples.items() if k != base}}


def execs(h, who, peers, ws, rounds):
    """From the client's start to its end, in a sandbox that stands; beside the same program without one."""
    v = peers["vitrine"]
    call(v, who, ws, "create", "--name", BOX, "shell")
    call(v, who, ws, "start", BOX)
    try:
        entries = [measure.entry("bare", measure.TRUE, ws, who.env()),
                   measure.entry("exec", [v.path, "exec", BOX, "--", *measure.TRUE], ws, v.env(who))]
        return times(h, who, entries, "bare", rounds)
    finally:
        call(v, who, ws, "rm", "--force", BOX)


def named_starts(h, who, peers, ws, rounds):
    v, b = peers["vitrine"], peers["bwrap"]
    call(v, who, ws, "create", "--name", BOX, "shell")
    try:
        entries = [measure.entry("bwrap", b.argv(who, ws, measure.TRUE), ws, b.env(who), b),
                   measure.entry("named", [v.path, "run", "--name", BOX, "--", *measure.TRUE], ws, v.env(who))]
        return times(h, who, entries, "bwrap", rounds)
    finally:
        call(v, who, ws, "rm", "--force", BOX)


# --- density ------------------------------------------------------------------------------------


def start_all(who, ws, argvs, env, is_up):
    """Starts one after the other, each until it stands. Seconds for each."""
    took, children = [], []
    for argv, fds in argvs:
        begin = time.monotonic()
        child = subprocess.Popen(argv, cwd=ws, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL, pass_fds=fds, **who.drop())
        children.append(child)
        is_up(child)
        took.append(time.monotonic() - begin)
    return took, children


def wait_line(child):
    if child.stdout.readline() != b"up\n":
        raise Unmeasurable("a bubblewrap did not start")


def wait_end(child):
    if child.wait(20) != 0:
        raise Unmeasurable("a sandbox did not start")


def bwraps(who, peer, ws, n):
    fd = os.open(peer.fds[0][1], os.O_RDONLY)
    script = f'exec "$@" {peer.fds[0][0]}</proc/self/fd/{fd}'
    argv = ["/bin/sh", "-c", script, "sh", *peer.argv(who, ws, ["/bin/sh", "-c", "echo up; exec sleep 600"])]
    try:
        took, children = start_all(who, ws, [(argv, (fd,))] * n, peer.env(who), wait_line)
    finally:
        os.close(fd)
    for c in children:
        c.kill()
        c.wait()
        c.stdout.close()
    return took


def private_kib(before):
    """Of all processes that are here since: keepers and inits."""
    measure.reap(measure.below(measure.processes(), os.getpid()) - before, os.WNOHANG)
    mine = measure.below(measure.processes(), os.getpid()) - before
    return sum(measure.rollup(p)["private"] for p in mine), len(mine)


def density(who, peers, n):
    v, ws = peers["vitrine"], who.workspace("density")
    measure.adopt_orphans(True)
    before = measure.below(measure.processes(), os.getpid())
    names = [f"idle-{i}" for i in range(n)]
    try:
        theirs = bwraps(who, peers["bwrap"], ws, n)
        for name in names:
            call(v, who, ws, "create", "--name", name, "shell")
        ours, children = start_all(who, ws, [([v.path, "start", name], ()) for name in names], v.env(who), wait_end)
        for c in children:
            c.stdout.close()
        time.sleep(1)
        kib, processes = private_kib(before)
        if processes != 2 * n:
            raise Unmeasurable(f"{processes} processes for {n} sandboxes")
    finally:
        host.run([v.path, "rm", "--force", "--all"], who=who, cwd=ws, env=v.env(who), check=False, timeout=300)
        measure.reap(measure.below(measure.processes(), os.getpid()) - before, os.WNOHANG)
        measure.adopt_orphans(False)
    tenth = max(1, n // 10)
    return {"n": n, "seconds": sum(ours), "bwrap_seconds": sum(theirs), "private_kib": kib / n,
            "growth": statistics.median(ours[-tenth:]) / statistics.median(ours[:tenth])}
