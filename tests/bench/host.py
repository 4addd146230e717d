# SPDX-License-Identifier: Apache-2.0
"""The place where the benchmark runs: accounts, folders, compiled helpers, facts about the machine.

Everything lies below one folder on the ordinary disk and is removed at the end. Workspaces are a
tmpfs, so that the speed of a disk does not blur what is measured; the home folder stays on the
disk, because that is where the state of a real user lies. As root the whole benchmark runs in a
private mount namespace (bench.py re-executes itself through unshare), so no mount can be left
behind, however it ends.
"""

import datetime
import os
import platform
import pwd
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import ground  # noqa: E402

STATIC = {"lstat_walk", "syscalls", "few_files"}
LIBS = {"make_filter": ["-lseccomp"]}
HELPERS = ["spawn_bench", "make_tree", "lstat_walk", "make_filter", "syscalls", "file_work", "few_files", "walls"]


class Unmeasurable(Exception):
    """Something that had to be measured could not be."""


class Who:
    """One identity the measurements are made under: account, home on disk, workspaces on tmpfs."""

    def __init__(self, label, entry, home, space):
        self.label = label
        self.name = entry.pw_name
        self.uid = entry.pw_uid
        self.gid = entry.pw_gid
        self.home = home
        self.space = space

    def env(self, extra_path=()):
        dirs = list(extra_path) + ["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"]
        return {
            "PATH": ":".join(dict.fromkeys(dirs)),
            "HOME": self.home,
            "USER": self.name,
            "LOGNAME": self.name,
            "LANG": "C.UTF-8",
        }

    def drop(self):
        """Arguments for subprocess that make the child this identity."""
        if os.geteuid() == self.uid:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def workspace(self, name):
        path = os.path.join(self.space, name)
        shutil.rmtree(path, ignore_errors=True)  # of a part that is measured again
        os.mkdir(path, 0o755)
        os.chown(path, self.uid, self.gid)
        return path


def run(argv, who=None, cwd=None, env=None, timeout=120, check=True):
    """Runs an untimed command and returns (status, stdout, stderr)."""
    more = who.drop() if who else {}
    try:
        p = subprocess.run(
            argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout,
            text=True, errors="replace", **more)
    except (OSError, subprocess.TimeoutExpired) as e:
        if check:
            raise Unmeasurable(f"{argv[0]}: {e}") from e
        return 127, "", str(e)
    if check and p.returncode:
        last = (p.stderr.strip() or "no message").splitlines()[-1]
        raise Unmeasurable(f"{os.path.basename(argv[0])} ended with {p.returncode}: {last}")
    return p.returncode, p.stdout, p.stderr


class Host:
    def __init__(self):
        self.is_root = os.geteuid() == 0
        self.account = ground.take_account()
        parent = os.environ.get("TMPDIR", "/var/tmp")
        if self.is_root and os.path.isdir("/home"):
            parent = "/home"
        self.base = tempfile.mkdtemp(prefix="vitrine-bench-", dir=parent)
        os.chmod(self.base, 0o755)
        self.bin = os.path.join(self.base, "bin")
        os.mkdir(self.bin, 0o755)
        self.shm = None
        self.names = {}

    def close(self):
        for who in self.names.values():
            if self.is_root:
                subprocess.run(["umount", "-l", who.space], check=False, capture_output=True)
        shutil.rmtree(self.base, ignore_errors=True)
        if self.shm:
            shutil.rmtree(self.shm, ignore_errors=True)
        ground.leave_account(self.account)

    def compile(self):
        cc = os.environ.get("CC", "cc").split()
        for name in HELPERS:
            source = os.path.join(HERE, name + ".c")
            target = os.path.join(self.bin, name)
            static = ["-static"] if name in STATIC else []
            run([*cc, "-std=gnu17", "-O2", *static, source, "-o", target, *LIBS.get(name, [])])
        self.filter = os.path.join(self.base, "filter.bpf")
        _, names, _ = run([self.helper("make_filter"), self.filter])
        self.filter_calls = names.split()
        self.filter_insns = os.path.getsize(self.filter) // 8

    def helper(self, name):
        return os.path.join(self.bin, name)

    def identities(self):
        """The ordinary user first, then root; without root only the caller."""
        if not self.is_root:
            me = pwd.getpwuid(os.geteuid())
            self.shm = tempfile.mkdtemp(prefix="vitrine-bench-", dir="/dev/shm")
            home = os.path.join(self.base, "home")
            os.mkdir(home, 0o700)
            self.names["user"] = Who("user", me, home, self.shm)
            return self.names
        for label, entry in (("user", pwd.getpwnam(ground.TEST_USER)), ("root", pwd.getpwuid(0))):
            self.names[label] = self.place(label, entry)
        return self.names

    def place(self, label, entry):
        """HOME on the disk, with the workspaces as a tmpfs below it, where projects usually lie."""
        home = os.path.join(self.base, label)
        space = os.path.join(home, "work")
        os.mkdir(home, 0o755)
        os.mkdir(space, 0o755)
        options = f"size=2g,mode=0755,uid={entry.pw_uid},gid={entry.pw_gid}"
        run(["mount", "-t", "tmpfs", "-o", options, "bench", space])
        os.chown(home, entry.pw_uid, entry.pw_gid)
        return Who(label, entry, home, space)


def first_line(argv):
    status, out, err = run(argv, check=False, timeout=20)
    text = (out or err).strip()
    return text.splitlines()[0] if status == 0 and text else None


def field(path, key):
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            name, _, value = line.partition(":" if "=" not in line else "=")
            if name.strip() == key:
                return value.strip().strip('"')
    return None


def busy_share(seconds=1.0):
    """How much of the machine others use just now, 0 to 1: how far to trust the figures."""
    def read():
        with open("/proc/stat", encoding="ascii") as f:
            v = [int(x) for x in f.readline().split()[1:9]]
        return sum(v), v[3] + v[4]

    total, idle = read()
    time.sleep(seconds)
    total2, idle2 = read()
    return 1 - (idle2 - idle) / max(1, total2 - total)


def cgroup_layout():
    if os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
        return "v2"
    return "v1 with a v2 mount" if os.path.ismount("/sys/fs/cgroup/unified") else "v1"


def facts():
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": field("/proc/cpuinfo", "model name") or platform.machine(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "kernel": platform.release(),
        "system": field("/etc/os-release", "PRETTY_NAME"),
        "cgroups": cgroup_layout(),
        "busy_before": busy_share(),
    }
