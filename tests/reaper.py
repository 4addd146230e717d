#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run a command so that no process of it outlives it, whoever kills whom.

    reaper.enter()          of a script: see below
    reaper.py COMMAND...    runs a daemon. When the daemon ends, when the reaper receives SIGTERM, and when the process that
                            started the reaper ends in any way (SIGKILL too), every process below the reaper is ended.

A daemon's children leave its process group and its session, so a signal to a group misses them. The reaper is their
subreaper: orphans become its children, and it can find them all. The same functions serve tests/run (ground.py).
"""

import ctypes
import os
import signal
import sys
import time
from pathlib import Path

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
REAPED = "VITRINE_TEST_REAPED"
PATIENCE = 15  # seconds that a daemon has to end by itself after SIGTERM


def prctl(option, value):
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def adopt_orphans():
    prctl(PR_SET_CHILD_SUBREAPER, 1)


def end_with_parent(parent, signo):
    """This process receives `signo` when its parent ends; at once if the parent has ended already."""
    prctl(PR_SET_PDEATHSIG, signo)
    if os.getppid() != parent:
        os.kill(os.getpid(), signo)


def threads(path):
    try:
        return os.listdir(path)
    except OSError:
        return []  # the process has just ended


def below(pid):
    """All processes below pid."""
    found, todo = [], [pid]
    while todo:
        kids, top = [], f"/proc/{todo.pop()}/task"
        for thread in threads(top):  # each has children of its own
            try:
                kids += Path(top, thread, "children").read_text().split()
            except OSError:
                continue
        found += [int(k) for k in kids]
        todo += [int(k) for k in kids]
    return found


def describe(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return "?"


def reap():
    """Wait for every child that has ended. -> their (pid, status)"""
    ended = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended.append((pid, status))


def send(pid, signo):
    try:
        os.kill(pid, signo)
    except (ProcessLookupError, PermissionError):
        pass


def end_all(seconds=20):
    """Kill every process below this one. A process that was started meanwhile is found in the next round."""
    last = time.monotonic() + seconds
    while time.monotonic() < last:
        reap()
        pids = below(os.getpid())
        if not pids:
            return
        for pid in pids:
            send(pid, signal.SIGKILL)
        time.sleep(0.01)


def enter():
    """Run this script again below a reaper, unless it or tests/run has done so."""
    if REAPED not in os.environ:
        os.environ[REAPED] = "1"
        os.execv(sys.executable, [sys.executable, __file__, sys.executable, *sys.argv])


def main():
    parent = os.getppid()
    adopt_orphans()
    me = os.getpid()
    daemon = os.fork()
    if daemon == 0:
        end_with_parent(me, signal.SIGKILL)
        try:
            os.execvp(sys.argv[1], sys.argv[1:])
        finally:
            os._exit(127)

    def on_term(*_):
        send(daemon, signal.SIGTERM)
        signal.alarm(PATIENCE)

    for signo in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(signo, on_term)
    signal.signal(signal.SIGALRM, lambda *_: send(daemon, signal.SIGKILL))
    end_with_parent(parent, signal.SIGTERM)
    while True:
        pid, status = os.wait()
        if pid == daemon:
            break
    for signo in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(signo, signal.SIG_IGN)
    signal.alarm(0)
    end_all()
    return max(0, os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    sys.exit(main())
