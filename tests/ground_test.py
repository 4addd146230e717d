#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does a run of the tests leave the machine as it was, whichever of its processes is killed? (ground.py, reaper.py)

Each case is a run of its own below this one, with an account of its own name. Its work starts a daemon as daemons are
started here (daemons.py), which starts a process that leaves its session and its parent.
"""

import os
import pwd
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAME = f"vitrine-t{os.getpid()}"
FILES = ("/etc/passwd", "/etc/group", "/etc/shadow", "/etc/gshadow", "/etc/subuid", "/etc/subgid")

RUN = """
import os, subprocess, sys, time
sys.path.insert(0, os.environ["TESTS"])
import daemons, ground
def work():
    end, out = sys.argv[1], os.environ["SEEN"]
    # The daemon's own child is an orphan in a session of its own.
    subprocess.Popen([*daemons.REAPER, "sh", "-c", "setsid sleep 300 & sleep 300"], start_new_session=True)
    if end == "orphan":
        subprocess.run(["sh", "-c", "setsid sleep 300 >/dev/null 2>&1 &"])
    if end == "file":
        open(os.path.join(os.environ["TMPDIR"], "forgotten"), "w").close()
    if end == "raise":
        raise SystemExit("broken")
    while len(ground.reaper.below(os.getpid())) < 4 and end != "raise":   # the reaper, sh, and two of sleep
        time.sleep(0.01)
    with open(out + ".part", "w") as f:
        f.write(f"{os.getppid()} {os.getpid()} {os.environ['VITRINE_TEST_PLACES']} ")
        f.write(" ".join(map(str, ground.reaper.below(os.getpid()))))
    os.rename(out + ".part", out)
    if end in ("orphan", "file", "green"):
        for pid in ground.reaper.below(os.getpid())[:1]:
            os.kill(pid, 15)
        return 3, 0, 1
    time.sleep(60)
ground.LINGER = 1
sys.exit(ground.guarded(work))
"""


def accounts():
    """All lines of the account of these cases; other runs have accounts of their own."""
    return [f"{path}: {row}" for path in FILES if os.access(path, os.R_OK)
            for row in Path(path).read_text().splitlines() if row.split(":")[0] == NAME]


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def wait_for(claim, seconds, what):
    last = time.monotonic() + seconds
    while not claim():
        assert time.monotonic() < last, what
        time.sleep(0.02)


def start(case, seen, **more):
    env = {**os.environ, "TESTS": str(HERE), "SEEN": str(seen), "VITRINE_TEST_USER": NAME, **more}
    return subprocess.Popen([sys.executable, "-c", RUN, case], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, start_new_session=True)


def play(case, kill=None, signo=signal.SIGKILL):
    """-> (exit status, what it printed), after everything of the run has been proved gone"""
    before = accounts()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as top:
        seen = Path(top) / "seen"
        p = start(case, seen)
        if case != "raise":
            wait_for(lambda: seen.exists() or p.poll() is not None, 30, "the run did not begin")
        assert case == "raise" or seen.exists(), p.stdout.read()
        words = seen.read_text().split() if seen.exists() else []
        minder, work = (int(w) for w in words[:2]) if words else (0, 0)
        if kill:
            if os.geteuid() == 0:
                pwd.getpwnam(NAME)
            os.kill({"front": p.pid, "minder": minder, "work": work}[kill], signo)
        said, _ = p.communicate(timeout=60)
        pids = [int(w) for w in words[5:]]
        assert not words or len(pids) >= 4, f"the daemon was not there: {words}"
        wait_for(lambda: not any(map(is_alive, [minder, work, *pids] if words else [])), 30,
                 f"still there: {[(x, is_alive(x)) for x in pids]}")
        wait_for(lambda: not any(map(os.path.exists, words[2:5])), 10, f"folders are left: {words[2:5]}")
    wait_for(lambda: accounts() == before, 10, "an account is left")
    return p.returncode, said


def ends_green():
    status, said = play("green")
    assert (status, said.splitlines()[-1]) == (0, "3 passed, 0 failed, 1 skipped"), said


def an_orphan_is_a_failure():
    status, said = play("orphan")
    assert status == 1 and "left behind: process" in said and said.splitlines()[-1] == "3 passed, 1 failed, 1 skipped", said


def a_file_is_named_and_removed():
    status, said = play("file")
    assert status == 0 and "/forgotten" in said and said.splitlines()[-1] == "3 passed, 0 failed, 1 skipped", said


def a_run_that_breaks_off_is_red():
    status, said = play("raise")
    assert status == 1 and said.splitlines()[-1] == "0 passed, 1 failed, 0 skipped", said


def stopped_or_killed():
    for kill, signo in (("front", signal.SIGTERM), ("front", signal.SIGINT), ("front", signal.SIGKILL),
                        ("minder", signal.SIGKILL), ("work", signal.SIGKILL)):
        status, said = play("wait", kill, signo)
        assert status != 0, (kill, signo)
        if (kill, signo) != ("front", signal.SIGKILL):
            assert said.splitlines()[-1] == "0 passed, 1 failed, 0 skipped", said


def an_account_that_was_there_stays():
    subprocess.run(["useradd", "--no-create-home", "--home-dir", "/nonexistent", NAME], check=True)
    try:
        play("green")
        play("wait", "work")
        assert pwd.getpwnam(NAME).pw_gecos == ""
    finally:
        subprocess.run(["userdel", NAME], check=True)


def an_account_that_a_killed_run_left_goes():
    """All processes of a run killed at once: its mark says to the next run whose the account is."""
    subprocess.run(["useradd", "--no-create-home", "--home-dir", "/nonexistent", "--comment", "made by tests of Vitrine", NAME], check=True)
    try:
        with tempfile.TemporaryDirectory(dir="/var/tmp") as top:
            p = start("green", Path(top) / "seen")
            said, _ = p.communicate(timeout=60)
        assert p.returncode == 0, said
        assert accounts() == []
    finally:
        subprocess.run(["userdel", NAME], check=False, capture_output=True)


def a_repository_in_a_closed_directory_can_be_used():
    """As below /root: in the run's mount namespace the other account reads it, outside nobody else does."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as top:
        inner = Path(top) / "closed" / "repository"
        inner.mkdir(parents=True)
        (inner / "file").write_text("read\n")
        (Path(top) / "closed" / "beside").write_text("also\n")
        os.chmod(inner.parent, 0o700)
        os.chmod(top, 0o755)
        read = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "cat", str(inner / "file")]
        assert subprocess.run(read, capture_output=True).returncode != 0
        program = ("import ctypes, pathlib, subprocess, sys; sys.path.insert(0, sys.argv[1]); import ground\n"
                   "ctypes.CDLL(None).unshare(0x20000); subprocess.run(['mount', '--make-rprivate', '/'], check=True)\n"
                   "ground.open_way(pathlib.Path(sys.argv[2])); sys.exit(subprocess.run(sys.argv[3:]).returncode)")
        r = subprocess.run([sys.executable, "-c", program, str(HERE), str(inner), *read], capture_output=True, text=True)
        assert (r.returncode, r.stdout) == (0, "read\n"), r.stderr
        assert subprocess.run(read, capture_output=True).returncode != 0
        assert (inner.parent / "beside").read_text() == "also\n"


def two_runs_share_the_account():
    with tempfile.TemporaryDirectory(dir="/var/tmp") as top:
        long = start("wait", Path(top) / "long")
        wait_for((Path(top) / "long").exists, 30, "the first run did not begin")
        short = start("green", Path(top) / "short")
        said, _ = short.communicate(timeout=60)
        assert short.returncode == 0, said
        pwd.getpwnam(NAME)
        long.terminate()
        long.communicate(timeout=60)
    assert accounts() == []


CASES = [ends_green, an_orphan_is_a_failure, a_file_is_named_and_removed, a_run_that_breaks_off_is_red, stopped_or_killed]
ROOTS = [an_account_that_was_there_stays, an_account_that_a_killed_run_left_goes, a_repository_in_a_closed_directory_can_be_used, two_runs_share_the_account]


def main():
    failed = 0
    sys.path.insert(0, str(HERE))
    import ground
    os.environ["PATH"] = ground.path()
    cases = CASES + (ROOTS if os.geteuid() == 0 else [])
    for case in cases:
        try:
            case()
            print(f"ok {case.__name__}", flush=True)
        except (AssertionError, KeyError, subprocess.SubprocessError) as e:
            failed += 1
            print(f"FAIL {case.__name__}: {type(e).__name__}: {e}", flush=True)
    print(f"{len(cases) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
