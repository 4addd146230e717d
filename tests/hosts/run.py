#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Vitrine on hosts that this machine is not: a whole Debian in a virtual machine, with systemd, control groups v2,
AppArmor and logins, and the program that was just built running in it as root and as an ordinary user.

    tests/hosts/run.py                       `make test-hosts`: the current stable release on this machine's architecture
    tests/hosts/run.py --suite bookworm      another release: an older kernel, an older systemd
    tests/hosts/run.py --only limits -v      some of guest.py's cases

Everything comes from Debian's own packages: mmdebstrap makes the root file system (once; it is kept in build/hosts), its
kernel is booted by QEMU. With a KVM that works `--accel kvm` makes it quick; the default is emulation, which needs a few
minutes. The program, the tests and their helpers are on a second disk, made anew for each run. The results come back
through a port of their own; what the console said is in build/hosts/NAME/console.log.
"""

import argparse
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
OUT = ROOT / "build" / "hosts"
MIRROR = os.environ.get("VITRINE_MIRROR", "")    # where mmdebstrap looks; empty: where it looks by itself

# What a small server or desktop has of the things we meet: a login manager, a bus, control groups, AppArmor.
PACKAGES = ("systemd-sysv dbus dbus-user-session libpam-systemd apparmor kmod udev initramfs-tools zstd python3 git procps "
            "iproute2 curl ca-certificates sudo login passwd util-linux libssl3 libsqlite3-0 libnghttp2-14 zlib1g gcc libc6-dev").split()
# A tree of packages as their maintainers built them, and not one file of documentation.
LEAN = ["/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*"]

MACHINES = {
    "amd64": {"qemu": "qemu-system-x86_64", "machine": ["-M", "q35", "-cpu", "max"], "console": "ttyS0",
              "kernel": "linux-image-cloud-amd64"},
    "arm64": {"qemu": "qemu-system-aarch64", "machine": ["-M", "virt,gic-version=3", "-cpu", "max,pauth-impdef=on"],
              "console": "ttyAMA0", "kernel": "linux-image-cloud-arm64"},
}

UNIT = """[Unit]
After=multi-user.target systemd-user-sessions.service systemd-logind.service
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'mkdir -p /payload && mount -o ro LABEL=payload /payload && exec python3 /payload/tests/hosts/guest.py'
ExecStopPost=/usr/bin/systemctl --no-block poweroff
TimeoutStartSec=infinity
StandardOutput=journal+console
[Install]
WantedBy=graphical.target
"""


def say(*words, **kw):
    print(*words, flush=True, **kw)


def host_arch():
    return {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]


# ------------------------------------------------------------------------------------------------ disks


def packages_of(args):
    more = ["libarchive13"] if args.suite == "bookworm" else ["libarchive13t64"]
    return PACKAGES + more + [MACHINES[args.arch]["kernel"]]


def base(args):
    """The root file system, its kernel and initrd; made once for one list of packages."""
    recipe = repr((args.suite, args.arch, packages_of(args), LEAN, UNIT))
    here = OUT / f"{args.suite}-{args.arch}"
    stamp = here / "recipe"
    if stamp.exists() and stamp.read_text() == hashlib.sha256(recipe.encode()).hexdigest():
        return here
    say(f"making a Debian {args.suite} for {args.arch} ...")
    shutil.rmtree(here, ignore_errors=True)
    here.mkdir(parents=True)
    with tempfile.TemporaryDirectory(dir="/var/tmp") as work:
        os.chmod(work, 0o777)    # whoever is root in the hooks' user namespace writes here
        (Path(work) / "unit").write_text(UNIT)
        # The hooks see /proc and /sys mounted in the tree; a bind mount that is not recursive does not.
        hook = (f'set -e; cd {work}; install -m 644 unit "$1/etc/systemd/system/vitrine-test.service"; '
                'wants="$1/etc/systemd/system/graphical.target.wants"; mkdir -p "$wants"; ln -s ../vitrine-test.service "$wants/"; '
                'find "$1/etc/apparmor.d" -maxdepth 1 -type f -delete; '    # minutes of compiling, and none of them ours
                'echo vitrine-host >"$1/etc/hostname"; cp "$1"/boot/vmlinuz-* vmlinuz; cp "$1"/boot/initrd.img-* initrd; '
                'mkdir tree; mount --bind "$1" tree; mke2fs -q -t ext4 -L root -d tree disk 3G; umount tree')
        argv = ["mmdebstrap", f"--mode={'root' if os.geteuid() == 0 else 'unshare'}", "--variant=minbase", "--quiet",
                f"--architectures={args.arch}", "--include=" + ",".join(packages_of(args)),
                *[f"--dpkgopt=path-exclude={p}" for p in LEAN], f"--customize-hook={hook}", args.suite, "/dev/null"]
        argv += [MIRROR] if MIRROR else []
        subprocess.run(argv, check=True, timeout=1800, stdin=subprocess.DEVNULL)
        for name in ("vmlinuz", "initrd", "disk"):
            shutil.copyfile(f"{work}/{name}", here / name)
    stamp.write_text(hashlib.sha256(recipe.encode()).hexdigest())
    return here


def payload(args, to):
    """What was built, the tests, and the tests' helpers, which need no compiler in there."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as work:
        top = Path(work) / "p"
        (top / "build").mkdir(parents=True)
        for f in args.build.glob("vitrine*"):
            if f.is_file():
                shutil.copy(f.resolve(), top / "build" / f.name)
        for d in ("tests/contain", "tests/hosts", "tests/cli", "data", "agents", "docs"):
            shutil.copytree(ROOT / d, top / d, ignore=shutil.ignore_patterns("__pycache__"))
        for f in (ROOT / "tests").glob("*.py"):
            shutil.copy(f, top / "tests")
        (top / "helpers").mkdir()
        for src in (ROOT / "tests" / "contain").glob("*.c"):
            subprocess.run([args.cc, "-O2", "-static", "-pthread", "-o", top / "helpers" / src.stem, src], check=True)
        (top / "only").write_text("\n".join(args.only))
        subprocess.run(["mke2fs", "-q", "-t", "ext4", "-L", "payload", "-d", top, to, "400M"], check=True)


# ---------------------------------------------------------------------------------------------- the machine


def boot(args, here, disk):
    """Runs until the guest has switched itself off. -> what came through the port"""
    m = MACHINES[args.arch]
    results, console = here / "results", here / "console.log"
    results.write_text("")
    argv = [m["qemu"], "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", *m["machine"],
            "-accel", args.accel, "-smp", str(args.cpus), "-m", "2048", "-kernel", here / "vmlinuz", "-initrd", here / "initrd",
            "-append", f"root=/dev/vda rw console={m['console']} panic=-1 mitigations=off loglevel=4 {args.append}",
            "-drive", f"file={here}/disk,format=raw,if=virtio,snapshot=on",
            "-drive", f"file={disk},format=raw,if=virtio,read-only=on",
            "-chardev", f"file,id=console,path={console}", "-serial", "chardev:console",
            "-device", "virtio-serial", "-chardev", f"file,id=results,path={results}",
            "-device", "virtserialport,chardev=results,name=vitrine.results"]
    p = subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL)
    try:
        p.wait(args.timeout)
    except subprocess.TimeoutExpired:
        say(f"no end after {args.timeout} s")
    finally:
        if p.poll() is None:
            p.kill()
            p.wait()
    return results.read_text(errors="replace")


def main():
    p = argparse.ArgumentParser(description="Vitrine in a virtual machine")
    p.add_argument("--suite", default="trixie", choices=["bookworm", "trixie"])
    p.add_argument("--arch", default=host_arch(), choices=sorted(MACHINES))
    p.add_argument("--accel", default="tcg,thread=multi")
    p.add_argument("--cpus", type=int, default=2)
    p.add_argument("--build", type=Path, default=ROOT / "build", help="where vitrine and its programs are")
    p.add_argument("--cc", default="cc", help="makes the tests' helpers")
    p.add_argument("--append", default="", help="more for the kernel's command line")
    p.add_argument("--timeout", type=int, default=1500)
    p.add_argument("only", nargs="*", help="only guest.py's cases of these names")
    args = p.parse_args()
    for tool in (MACHINES[args.arch]["qemu"], "mmdebstrap", "mke2fs"):
        if not shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin:/sbin"):
            sys.exit(f"tests/hosts: {tool} is missing; tools/deps installs it")
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    here = base(args)
    with tempfile.TemporaryDirectory(dir="/var/tmp") as work:
        disk = Path(work) / "payload"
        payload(args, disk)
        say(f"booting Debian {args.suite} for {args.arch} ...")
        text = boot(args, here, disk)
    lines = text.splitlines()
    say(*lines, sep="\n")
    if not lines or not lines[-1].endswith("skipped"):
        say(f"the guest did not finish; see {here / 'console.log'}", "0 passed, 1 failed, 0 skipped", sep="\n")
        return 1
    return 0 if ", 0 failed," in lines[-1] else 1


if __name__ == "__main__":
    sys.exit(main())
