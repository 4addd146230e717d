#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A machine that has never seen Vitrine: `make test-fresh`. As root; half an hour for each account, and a network.

    tests/fresh.py              the two commands of the README, `make run` and `make test`, as root and as an ordinary user
    tests/fresh.py --slice      as root: `make run`, the packages of the tests, and some of the tests; what CI does
    tests/fresh.py --if-changed only where one of the files in JUDGED is not what it was at the last green whole run

A bare Debian (mmdebstrap's smallest, with make and sudo) is entered with namespaces of its own for processes, mounts, IPC
and the host's name; the network, the package mirror and the certificates are the host's. Accounts, processes, mounts,
temporary files and homes are written down before and after each command and compared. Packages that were downloaded once are
kept in build/fresh/archives; nothing else goes from one run into the next.

A whole run that is green writes the hash of the judged files to tests/fresh.sha256.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "build" / "fresh"
RECORD = ROOT / "tests" / "fresh.sha256"
JUDGED = ["Makefile", "tools/deps", "tools/guest-kernel", "tools/deps.d/apt", "tools/deps.d/npm", "tests/run", "tests/ground.py",
          "tests/reaper.py", "tests/daemons.py", "tests/fresh.py", "tests/skips.json"]
SLICE = "layers harness cli --scripts stdio,flags,life,demo,old_state,podman_remote,gate_clients,broker_remote"
INCLUDE = ["make", "sudo", "ca-certificates"]
SOURCES = ("/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list")
# How the host reaches mirrors, and whom it believes: without these no package manager works on some networks.
PASSED = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "npm_config_registry")
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"

# Process 1 of the bare system. There is no Python in it yet.
INSIDE = r"""
set -u
snap() {
	to=/fresh/$1
	mkdir -p "$to"
	for f in passwd group shadow gshadow subuid subgid; do
		[ ! -e "/etc/$f" ] || sort "/etc/$f"
	done >"$to/accounts"
	for p in /proc/[0-9]*; do
		pid=${p#/proc/}
		# A process without a command line has ended, and was not waited for yet.
		[ "$pid" = 1 ] || [ ! -s "$p/cmdline" ] && continue
		tr '\0' ' ' <"$p/cmdline" 2>/dev/null && echo
	done | grep -v '^tr ' >"$to/processes"
	awk '{ $1 = $2 = ""; print }' /proc/self/mountinfo | sort >"$to/mounts"
	# What sudo and package managers keep is theirs.
	find /tmp /var/tmp /dev/shm /run /root /home -xdev \
		\( -path /run/sudo -o -path "$HOME_OF/vitrine" -o -path "$HOME_OF/.npm" -o -path /run/adduser -o -name 'hsperfdata_*' \) -prune -o -print | sort >"$to/files"
}
as() {
	if [ "$WHO" = root ]; then
		(cd "$HOME_OF/vitrine" && HOME=/root exec "$@")
	else
		(cd "$HOME_OF/vitrine" && exec runuser -u dev -- env HOME=/home/dev USER=dev "$@")
	fi
}
step() { # NAME COMMAND...
	name=$1; shift
	snap "$name-before"
	as "$@" </dev/null >"/fresh/$name.log" 2>&1
	echo $? >"/fresh/$name.status"
	sleep 1
	snap "$name-after"
}
"""


def say(text):
    print(f"fresh: {text}", flush=True)


class NoMirror(Exception):
    """There is no bare system to be had here."""


def hash_of_judged():
    h = hashlib.sha256()
    for name in JUDGED:
        h.update(f"{name}\0".encode() + (ROOT / name).read_bytes() + b"\0")
    return h.hexdigest()


def is_changed():
    return not RECORD.exists() or RECORD.read_text().split()[:1] != [hash_of_judged()]


# ---------------------------------------------------------------------------------------------- the bare system


def suite():
    words = dict(line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line)
    return words.get("VERSION_CODENAME", "bookworm") if words.get("ID") == "debian" else "bookworm"


def base():
    """-> an archive of the bare system, made once"""
    sources = [s for s in SOURCES if os.path.exists(s)] if suite() in "".join(
        Path(s).read_text() for s in SOURCES if os.path.exists(s)) else []
    recipe = hashlib.sha256(repr((suite(), INCLUDE, sources)).encode()).hexdigest()[:16]
    tar = OUT / f"base-{recipe}.tar"
    if not tar.exists():
        say(f"making a bare Debian {suite()} ...")
        OUT.mkdir(parents=True, exist_ok=True)
        made = subprocess.run(["mmdebstrap", "--mode=root", "--variant=minbase", "--quiet", "--include=" + ",".join(INCLUDE),
                               suite(), f"{tar}.part", *sources, "--format=tar"], timeout=900, stdin=subprocess.DEVNULL)
        if made.returncode != 0:
            raise NoMirror
        os.rename(f"{tar}.part", tar)
    return tar


def copy_source(to):
    """The working tree as git sees it: what is ignored is not on a fresh machine either."""
    names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True,
                           capture_output=True).stdout
    to.mkdir(parents=True, exist_ok=True)
    with subprocess.Popen(["tar", "-c", "--null", "--no-recursion", "--ignore-failed-read", "-T", "-"], cwd=ROOT,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as pack, \
            subprocess.Popen(["tar", "-x", "-C", str(to), "--no-same-owner"], stdin=pack.stdout) as unpack:
        pack.stdin.write(names)
        pack.stdin.close()
        unpack.wait()


def home_of(who):
    return "root" if who == "root" else "home/dev"


def furnish(tree, who):
    """What the host must lend: names of hosts, the way to mirrors, certificates; and for the user an account with sudo."""
    for name in ("/etc/resolv.conf", "/etc/hosts"):
        if os.path.exists(name):
            shutil.copyfile(os.path.realpath(name), f"{tree}{name}")
    for conf in Path("/etc/apt/apt.conf.d").glob("*"):
        if any(w in conf.read_text(errors="replace") for w in ("Proxy", "Acquire::Retries", "Acquire::http")):
            shutil.copyfile(conf, tree / "etc/apt/apt.conf.d" / conf.name)
    (tree / "etc/apt/apt.conf.d/99keep").write_text('Binary::apt-get::APT::Keep-Downloaded-Packages "1";\n')
    if os.path.exists(CERTIFICATES):
        shutil.copyfile(CERTIFICATES, tree / "etc/ssl/host.crt")
    if who == "user":
        subprocess.run(["chroot", tree, "useradd", "--create-home", "--shell", "/bin/bash", "dev"], check=True)
        (tree / "etc/sudoers.d/dev").write_text("dev ALL=(ALL) NOPASSWD: ALL\n")
        (tree / "etc/sudoers.d/dev").chmod(0o440)


def put_source(tree, who):
    copy_source(tree / home_of(who) / "vitrine")
    if who == "user":
        subprocess.run(["chroot", tree, "chown", "-R", "dev:dev", "/home/dev"], check=True)


# pivot_root rather than chroot: no user namespace can be made below a chroot.
ENTER = r"""
set -eu
tree=$1 fresh=$2 archives=$3
mount --bind "$tree" "$tree"
mkdir -p "$tree/fresh"
mount --bind "$fresh" "$tree/fresh"
mount --bind "$archives" "$tree/var/cache/apt/archives"
mount -t proc proc "$tree/proc"
mount --rbind /sys "$tree/sys"
mount --rbind /dev "$tree/dev"
mount -t tmpfs -o mode=1777 tmpfs "$tree/dev/shm"
mount -t tmpfs -o mode=755 tmpfs "$tree/run"
mkdir -m 1777 "$tree/run/lock"
hostname fresh
cd "$tree"
mkdir -p .old
pivot_root . .old
umount -l /.old
rmdir /.old
exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 sh /fresh/inside
"""


def environment(npm):
    words = {k: os.environ[k] for k in PASSED if k in os.environ}
    if npm:
        words["npm_config_registry"] = npm
    if os.path.exists(CERTIFICATES):
        words.update(NODE_EXTRA_CA_CERTS="/etc/ssl/host.crt", npm_config_cafile="/etc/ssl/host.crt")
    return words


def registry():
    """The host's; its name is asked for and never written down."""
    if not shutil.which("npm"):
        return ""
    return subprocess.run(["npm", "config", "get", "registry"], capture_output=True, text=True).stdout.strip()


def play(who, steps, seconds, again=False):
    """-> a folder of logs and snapshots"""
    tree, fresh, archives = OUT / f"tree-{who}", OUT / who, OUT / "archives"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    (archives / "partial").mkdir(parents=True, exist_ok=True)
    if not again:
        remove(tree)
        tree.mkdir()
        subprocess.run(["tar", "-x", "-f", base(), "-C", tree, "--numeric-owner", "--xattrs"], check=True)
        furnish(tree, who)
    put_source(tree, who)
    words = "".join(f"export {k}='{v}'\n" for k, v in environment(registry()).items())
    (fresh / "inside").write_text(f"WHO={who} HOME_OF=/{home_of(who)}\n{words}{INSIDE}\n{steps}\n")
    say(f"as {who} ...")
    try:
        subprocess.run(["unshare", "--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child", "--propagation", "private",
                        "sh", "-c", ENTER, "sh", tree, fresh, archives], stdin=subprocess.DEVNULL, timeout=seconds)
    except subprocess.TimeoutExpired:
        say(f"as {who}: no end after {seconds} s")
    return fresh


def remove(tree):
    if tree.exists():
        subprocess.run(["rm", "-rf", "--one-file-system", "--", tree], check=False)


# ---------------------------------------------------------------------------------------------- judgement


class Verdict:
    def __init__(self):
        self.passed = self.failed = 0

    def claim(self, ok, what, more=()):
        self.passed += bool(ok)
        self.failed += not ok
        print(f"{'ok' if ok else 'FAIL'} {what}", flush=True)
        for line in list(more)[:30] if not ok else ():
            print(f"      {line}", flush=True)


def lines(path):
    return path.read_text(errors="replace").splitlines() if path.exists() else ["(nothing was written down)"]


# Packages bring accounts of their own, and these places.
OF_PACKAGES = ("/run/", "/root/.ssh")


def judge(verdict, who, fresh, name, same):
    """One command: it succeeded, and what must be the same afterwards is."""
    status = fresh / f"{name}.status"
    verdict.claim(status.exists() and status.read_text().strip() == "0", f"{name}@{who} succeeds", lines(fresh / f"{name}.log")[-30:])
    for kind in same:
        before, after = (lines(fresh / f"{name}-{when}" / kind) for when in ("before", "after"))
        if name != "test":
            after = [x for x in after if x in before or not x.startswith(OF_PACKAGES)]
        diff = [f"+ {x}" for x in after if x not in before] + [f"- {x}" for x in before if x not in after]
        verdict.claim(not diff and len(before) == len(after), f"{name}@{who} leaves {kind} as they were", diff)


ALL = ("accounts", "processes", "mounts", "files")
STEPS = """
step run make run
step deps tools/deps --test {deps}
step test {test}
"""


def parse_args():
    p = argparse.ArgumentParser(description="Vitrine on a bare Debian")
    p.add_argument("--slice", action="store_true", help="as root, and some of the tests; without the agents of npm")
    p.add_argument("--if-changed", action="store_true", help="only when a judged file changed since the last green whole run")
    p.add_argument("--who", action="append", choices=("root", "user"))
    p.add_argument("--tests", default="", help="words for tests/run instead of all tests")
    p.add_argument("--seconds", type=int, default=7200, help="for each account")
    p.add_argument("--keep", action="store_true", help="leave the trees in build/fresh")
    p.add_argument("--again", action="store_true", help="enter the trees that --keep left once more: quick, and no longer bare")
    return p.parse_args()


def main():
    args = parse_args()
    if os.geteuid() != 0 or not shutil.which("mmdebstrap"):
        print("SKIP fresh needs root and mmdebstrap\n0 passed, 0 failed, 1 skipped")
        return 0
    if args.if_changed and not is_changed():
        say(f"none of {' '.join(JUDGED)} changed since the last whole run")
        print("1 passed, 0 failed, 0 skipped")
        return 0
    try:
        base()
    except (NoMirror, subprocess.TimeoutExpired):
        print("SKIP fresh: mmdebstrap reaches no mirror here\n0 passed, 0 failed, 1 skipped")
        return 0
    people = args.who or (["root"] if args.slice else ["root", "user"])
    words = args.tests or (SLICE if args.slice else "")
    steps = STEPS.format(deps="--no-agents" if args.slice else "", test=f"tests/run {words}" if words else "make test")
    verdict, began = Verdict(), time.monotonic()
    for who in people:
        fresh = play(who, steps, args.seconds, args.again)
        judge(verdict, who, fresh, "run", ALL[1:])
        judge(verdict, who, fresh, "deps", ALL[1:])
        judge(verdict, who, fresh, "test", ALL)
        for line in lines(fresh / "test.log")[-4:]:
            say(f"{who}: {line}")
        if not args.keep:
            remove(OUT / f"tree-{who}")
    say(f"{time.monotonic() - began:.0f} s")
    if not verdict.failed and people == ["root", "user"] and not words and not args.again:
        RECORD.write_text(hash_of_judged() + "\n")
        say(f"written: {RECORD.relative_to(ROOT)}")
    print(f"{verdict.passed} passed, {verdict.failed} failed, 0 skipped")
    return 1 if verdict.failed else 0


if __name__ == "__main__":
    sys.exit(main())
