# SPDX-License-Identifier: Apache-2.0
"""What the tests need from the machine, made before the first test and taken away after the last.

    with account():         the ordinary account that tests run by root drive the program as
    guarded(work)           runs work() with that account and with folders of its own, and ends every process it left

guarded() starts two processes: tests/run is the front, which forwards signals; below it is the minder, in a session of its
own, which adopts every orphan; below the minder work() runs. Whichever of the three is killed, another one ends all processes
and removes account and folders. Whatever was left at the end of a run that was not stopped is a failure of that run.

The account is made where it is missing, with a range of subordinate ids, and removed when its last user leaves. A comment in
/etc/passwd marks an account that was made here: an account that somebody made by hand is used and stays. The mark also
lets the next run remove what a run left that was killed with SIGKILL.
"""

import ctypes
import fcntl
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from contextlib import contextmanager
from pathlib import Path

import reaper

ROOT = Path(__file__).resolve().parent.parent
TEST_USER = os.environ.get("VITRINE_TEST_USER", "vitrine-test")
MARK = "made by tests of Vitrine"
# Several runs at a time share the account: each holds a shared lock, and the one that can have the lock alone is the last.
LOCK = f"/run/{TEST_USER}.lock"
RANGE = 65536


def path():
    """Where the tests look for programs: also where an ordinary user of Debian does not look, and mke2fs and dockerd lie.
    Never in root's home: the other account cannot use what lies there, and the next machine does not have it."""
    home = os.path.realpath(os.environ.get("HOME", "/root"))
    found = [d for d in os.environ.get("PATH", "").split(":")
             if d and not (os.geteuid() == 0 and home != "/" and Path(os.path.realpath(d)).is_relative_to(home))]
    return ":".join(dict.fromkeys([*found, "/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/bin", "/bin"]))


def find_account():
    try:
        return pwd.getpwnam(TEST_USER)
    except KeyError:
        return None


def is_ours(account):
    return account is not None and account.pw_gecos == MARK


def system(*argv):
    """A command of the account tools, which lie where root's PATH may not look."""
    done = subprocess.run(argv, env={**os.environ, "PATH": path()}, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr.strip() or done.returncode}")


def ranges(path):
    """-> [(owner, first, count)]"""
    try:
        rows = [line.split(":") for line in Path(path).read_text().splitlines()]
    except FileNotFoundError:
        return []
    return [(r[0], int(r[1]), int(r[2])) for r in rows if len(r) == 3]


def give_range(path, option):
    """useradd gives one only where the file exists already."""
    found = ranges(path)
    if not any(owner == TEST_USER for owner, _, _ in found):
        first = max([100000, *(start + count for _, start, count in found)])
        system("usermod", option, f"{first}-{first + RANGE - 1}", TEST_USER)


def make_account():
    system("useradd", "--no-create-home", "--home-dir", "/nonexistent", "--shell", "/bin/sh", "--comment", MARK, TEST_USER)
    give_range("/etc/subuid", "--add-subuids")
    give_range("/etc/subgid", "--add-subgids")


def processes_of(uid):
    found = []
    for p in Path("/proc").glob("[0-9]*"):
        try:
            if p.stat().st_uid == uid:
                found.append(int(p.name))
        except OSError:
            continue
    return found


def remove_account(account):
    """With every process that still runs as it: userdel refuses otherwise, and the id may be given to somebody else."""
    last = time.monotonic() + 10
    while processes_of(account.pw_uid) and time.monotonic() < last:
        for pid in processes_of(account.pw_uid):
            reaper.send(pid, signal.SIGKILL)
        time.sleep(0.02)
    system("userdel", TEST_USER)


def open_lock():
    return os.open(LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def lock_as(lock, how):
    """-> the descriptor, or a new one where the last user has removed the file meanwhile"""
    while True:
        fcntl.flock(lock, how)
        if os.fstat(lock).st_nlink:
            return lock
        os.close(lock)
        lock = open_lock()


def take_account():
    """-> a descriptor that holds the account in use; None for an ordinary user, who tests as himself"""
    if os.geteuid() != 0:
        return None
    lock = open_lock()
    while True:
        lock = lock_as(lock, fcntl.LOCK_SH)
        if find_account() is not None:
            return lock
        # Changing the lock gives it up first, so another run may make the account, or remove it again, in between.
        lock = lock_as(lock, fcntl.LOCK_EX)
        if find_account() is None:
            make_account()


def leave_account(lock):
    if lock is None:
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return  # another run still uses the account, and will remove it
    account = find_account()
    if is_ours(account):
        remove_account(account)
    if os.fstat(lock).st_nlink:
        os.unlink(LOCK)
    os.close(lock)


@contextmanager
def account():
    lock = take_account()
    try:
        yield
    finally:
        leave_account(lock)


def left_of_account():
    """What is still on the machine of an account that tests made; every line of it is a failure."""
    said, known = [], find_account()
    if is_ours(known):
        said.append(f"/etc/passwd: {TEST_USER}")
    if known is None:
        for path in ("/etc/group", "/etc/shadow", "/etc/gshadow", "/etc/subuid", "/etc/subgid"):
            try:
                rows = Path(path).read_text().splitlines()
            except OSError:
                continue
            said += [f"{path}: {TEST_USER}" for row in rows if row.split(":")[0] == TEST_USER]
    return said


# ------------------------------------------------------------------------------------------- folders

CLONE_NEWNS = 0x20000
MS_BIND, MS_REC = 0x1000, 0x4000


def remove_tree(path):
    """Also what an ordinary user has closed to himself, and files of his subordinate ids, which rootless containers make."""
    shutil.rmtree(path, ignore_errors=True)
    if not os.path.exists(path):
        return
    ways = [["chmod", "-R", "u+rwx"], ["rm", "-rf"]]
    if os.geteuid() != 0:
        ways.append(["unshare", "--map-root-user", "--map-auto", "rm", "-rf"])
    for argv in ways:
        subprocess.run([*argv, "--", path], stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if not os.path.exists(path):
            return


def replace(top, more=0):
    """In a mount namespace of ours: a directory in memory in place of this one, with all that is in it now."""
    top = Path(top)
    held = os.open(top, os.O_PATH | os.O_DIRECTORY)
    names, mode = os.listdir(top), os.stat(top).st_mode & 0o7777 | more
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"mode={mode:o}", "tmpfs", top], check=True)
    for name in names:
        old, new = Path(f"/proc/self/fd/{held}") / name, top / name
        if old.is_symlink():
            new.symlink_to(os.readlink(old))
            continue
        new.mkdir() if old.is_dir() else new.touch()
        # The program mount would look up the old name by its path, which is covered now.
        if ctypes.CDLL(None).mount(os.fsencode(old), os.fsencode(new), None, ctypes.c_ulong(MS_BIND | MS_REC), None):
            raise OSError(f"{new} cannot be mounted")
    os.close(held)


def open_way(path):
    """For the other account: the repository may lie in root's home, which is closed. Each closed directory above it is replaced
    by one that can be passed through."""
    for top in reversed(path.parents):
        if not os.stat(top).st_mode & 0o001:
            replace(top, 0o011)


class Places:
    """Folders that all temporary files of a run lie in. Names of sockets are short, so the names of these are."""

    def __init__(self):
        self.tmp = tempfile.mkdtemp(prefix="v", dir="/tmp" if os.geteuid() == 0 else None)
        self.disk = tempfile.mkdtemp(prefix="v", dir="/var/tmp")
        self.memory = tempfile.mkdtemp(prefix="v", dir="/var/tmp")
        self.inside, self.mounted = self.all(), []    # where the run finds them, and what is laid over the host's
        for path in self.all():
            os.chmod(path, 0o1777)
        # As root these lie in a mount namespace of the run. An ordinary user's podman leaves them, whatever TMPDIR says.
        uid = os.geteuid()
        self.podman = [p for p in (f"/tmp/podman-run-{uid}", f"/tmp/containers-user-{uid}", f"/dev/shm/libpod_rootless_lock_{uid}")
                       if uid and not os.path.lexists(p)]

    def all(self):
        return self.tmp, self.disk, self.memory

    def use(self):
        os.environ.update({"VITRINE_TEST_PLACES": " ".join(self.all()), "TMPDIR": self.tmp, "VITRINE_TEST_DIR": self.disk, reaper.REAPED: "1"})
        tempfile.tempdir = None
        if self.mount():
            os.environ["VITRINE_TEST_MEMORY"] = self.memory

    def mount(self):
        """As root: a file system in memory for half of what the tests make, in a mount namespace of ours, so that the host
        sees nothing of it. Both kinds are tested then, and in half of the time: ext4 looks at every inode that was freed in
        the last five seconds before it gives out one, and tests free thousands. Where it cannot be had all lies on the disk."""
        if os.geteuid() != 0 or ctypes.CDLL(None).unshare(CLONE_NEWNS):
            return False
        try:
            subprocess.run(["mount", "--make-rprivate", "/"], check=True)
            open_way(ROOT)
            # Container engines and Java leave files there, whatever TMPDIR says.
            replace("/run")
            self.mounted = ["/run", "/dev/shm", "/tmp"]
            subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", "/dev/shm"], check=True)
            subprocess.run(["mount", "--bind", self.tmp, "/tmp"], check=True)
            self.inside = ("/tmp", self.disk, self.memory)
            os.environ["TMPDIR"] = "/tmp"
            subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=1777,size=6g", "tmpfs", self.memory], check=True)
            os.setxattr(self.memory, "user.test", b"1")   # layers of an ordinary user need them; Linux 6.6
        except (OSError, subprocess.CalledProcessError):
            return False
        return True

    def forgotten(self):
        return [f"{path}/{name}" for path in self.inside for name in sorted(os.listdir(path))]

    def remove(self):
        """-> what could not be removed"""
        for path in (*self.mounted, self.memory):
            subprocess.run(["umount", "-l", path], check=False, capture_output=True)
        for path in (*self.all(), *self.podman):
            remove_tree(path)
        return [path for path in self.all() if os.path.exists(path)]


# --------------------------------------------------------------------------------------------- guard

STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LINGER = 15  # seconds in which a process that is about to end may end by itself


class Stopped(BaseException):
    pass


def stop(signo, _frame):
    for s in STOPS:
        signal.signal(s, signal.SIG_IGN)
    raise Stopped(signo)


def guarded(work):
    """-> the exit status. work() -> (passed, failed, skipped); its last line is printed here, when everything is gone."""
    places, front = Places(), os.getpid()
    sys.stdout.flush()
    minder = os.fork()
    if minder == 0:
        status = 1
        try:
            status = mind(work, places, front)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(status)
    for s in STOPS:
        signal.signal(s, lambda *_: reaper.send(minder, signal.SIGTERM))
    status = os.waitstatus_to_exitcode(os.waitpid(minder, 0)[1])
    if status < 0:
        # The minder was killed; the run below it, which holds the account too, is ended by its parent's death.
        time.sleep(0.5)
        places.remove()
        if os.geteuid() == 0:
            leave_account(open_lock())
        print("tests/run: its minder was killed\n0 passed, 1 failed, 0 skipped")
        return 1
    return status


def mind(work, places, front):
    os.setsid()
    reaper.adopt_orphans()
    totals, left, lock = [0, 1, 0], [], None
    try:
        for s in STOPS:
            signal.signal(s, stop)
        reaper.end_with_parent(front, signal.SIGTERM)
        lock = take_account()
        places.use()
        totals = run_below(work)
        left = [f"process {pid} {name}" for pid, name in lingering()]
        for path in places.forgotten():
            print(f"      forgotten by a test, and removed: {path}")
    except Stopped:
        print("stopped")
    except RuntimeError as e:
        print(f"tests/run: {e}")
    for s in STOPS:
        signal.signal(s, signal.SIG_IGN)
    reaper.end_all()
    left += [f"file {path}" for path in places.remove()]
    leave_account(lock)
    left += [f"account {line}" for line in left_of_account()] if lock is not None and is_last() else []
    for line in left:
        print(f"FAIL  left behind: {line}")
    passed, failed, skipped = totals
    failed += len(left)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


def run_below(work):
    """work() in a process of its own. -> its totals"""
    r, w = os.pipe()
    minder = os.getpid()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(r)
            for s in STOPS:
                signal.signal(s, signal.SIG_DFL)
            reaper.end_with_parent(minder, signal.SIGKILL)
            with os.fdopen(w, "w") as out:
                json.dump(work(), out)
            status = 0
        finally:
            sys.stdout.flush()
            os._exit(status)
    os.close(w)
    while os.waitpid(-1, 0)[0] != pid:
        pass  # an orphan of the run
    with os.fdopen(r) as f:
        text = f.read()
    if not text:
        raise RuntimeError("the run broke off")
    return json.loads(text)


def lingering():
    """-> (pid, name) of each process that does not end by itself"""
    last = time.monotonic() + LINGER
    while True:
        reaper.reap()
        found = [(pid, " ".join(reaper.describe(pid).split())[:100]) for pid in reaper.below(os.getpid())]
        if not found or time.monotonic() > last:
            return found
        time.sleep(0.05)


def is_last():
    """Whether no other run uses the account."""
    return not os.path.exists(LOCK)
