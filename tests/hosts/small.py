#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Vitrine on another architecture: cross-built for arm64 and run by an emulated machine with Debian's kernel.

    tests/hosts/small.py

The root file system is an initramfs: busybox, the programs that link libc alone, the tests' probe. No script of a package
is run, so nothing of the other architecture needs to run here. Minutes the first time (cross build), then one. The guest
prints a line for each case; outside of the sandbox the probe's calls must be let through, or their refusal proves nothing.
"""

import gzip
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
OUT = ROOT / "build" / "hosts" / "arm64"
CC = "aarch64-linux-gnu-gcc"
PROGRAMS = ["vitrine", "vitrine-gate", "vitrine-broker", "vitrine-tools", "vitrine-loop", "vitrine-otlp"]
TOOLS = ("sh ls cat id mount mkdir cp switch_root poweroff su touch sleep true grep uname ip chmod chown tr head test sed").split()

CROSS = f"""[binaries]
c = '{CC}'
ar = 'aarch64-linux-gnu-ar'
strip = 'aarch64-linux-gnu-strip'
pkgconfig = 'false'
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
"""

# pivot_root does not leave an initramfs, so the first thing is a root of the ordinary kind.
INIT = """#!/bin/sh
mount -t proc proc /proc
mount -t tmpfs -o size=80% none /new
cp -a /bin /sbin /lib /usr /etc /root /home /vitrine /guest /new/
cd /new && mkdir -p proc sys dev tmp run var/tmp
exec switch_root /new /guest
"""


def cross_build():
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "cross.ini").write_text(CROSS)
    if not (OUT / "build" / "build.ninja").exists():
        subprocess.run(["meson", "setup", OUT / "build", "-Dservices=false", "--cross-file", OUT / "cross.ini"], cwd=ROOT, check=True,
                       stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", OUT / "build", "--quiet", *PROGRAMS], check=True)


def kernel():
    """Debian's packages, unpacked and no more."""
    tree = OUT / "debian"
    if not list(tree.glob("boot/vmlinuz-*")):
        shutil.rmtree(tree, ignore_errors=True)
        subprocess.run(["mmdebstrap", "--quiet", "--variant=extract", "--architectures=arm64", "--include=busybox-static,linux-image-cloud-arm64",
                        "trixie", tree], check=True, stdin=subprocess.DEVNULL, timeout=900)
    return next(tree.glob("boot/vmlinuz-*")), tree / "usr" / "bin" / "busybox"


def pack(top, to):
    """A cpio archive of this tree, everything root's."""
    with gzip.open(to, "wb", 1) as f:
        def entry(name, mode, data):
            head = "070701" + "".join(f"{v:08x}" for v in (0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0))
            f.write(head.encode() + name.encode() + b"\0" * (1 + -(len(head) + len(name) + 1) % 4) + data + b"\0" * (-len(data) % 4))

        for p in sorted(top.rglob("*")):
            st = p.lstat()
            data = os.readlink(p).encode() if p.is_symlink() else p.read_bytes() if stat.S_ISREG(st.st_mode) else b""
            entry(str(p.relative_to(top)), st.st_mode, data)
        entry("TRAILER!!!", 0, b"")


def initramfs(busybox, to):
    with tempfile.TemporaryDirectory(dir="/var/tmp") as work:
        top = Path(work)
        for d in ("usr/bin", "usr/sbin", "usr/lib", "etc", "root", "home/tester", "vitrine", "proc", "new"):
            (top / d).mkdir(parents=True)
        for link in ("bin", "sbin", "lib"):
            (top / link).symlink_to(f"usr/{link}")
        shutil.copy(busybox, top / "usr/bin/busybox")
        for t in TOOLS:
            (top / "usr/bin" / t).symlink_to("busybox")
        for p in PROGRAMS:
            subprocess.run(["aarch64-linux-gnu-strip", "-o", top / "vitrine" / p, OUT / "build" / p], check=True)
        subprocess.run([CC, "-O2", "-s", "-static", "-pthread", "-o", top / "vitrine/probe", ROOT / "tests/contain/probe.c"], check=True)
        (top / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\ntester:x:1000:1000:t:/home/tester:/bin/sh\n")
        (top / "etc/group").write_text("root:x:0:\ntester:x:1000:\n")
        (top / "init").write_text(INIT)
        shutil.copy(HERE / "small.sh", top / "guest")
        for p in ("init", "guest"):
            (top / p).chmod(0o755)
        pack(top, to)


def main():
    for tool in ("qemu-system-aarch64", CC, "mmdebstrap", "meson"):
        if not shutil.which(tool):
            sys.exit(f"tests/hosts: {tool} is missing (Debian: qemu-system-arm, gcc-aarch64-linux-gnu, libc6-dev-arm64-cross, mmdebstrap)")
    cross_build()
    image, busybox = kernel()
    initramfs(busybox, OUT / "initrd")
    console = OUT / "console.log"
    console.write_text("")
    argv = ["qemu-system-aarch64", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-M", "virt,gic-version=3",
            "-cpu", "max,pauth-impdef=on", "-accel", "tcg", "-m", "1024", "-kernel", image, "-initrd", OUT / "initrd",
            "-append", "console=ttyAMA0 panic=-1 loglevel=3", "-chardev", f"file,id=c,path={console}", "-serial", "chardev:c"]
    try:
        subprocess.run([str(a) for a in argv], stdin=subprocess.DEVNULL, timeout=600, check=True)
    except subprocess.TimeoutExpired:
        print("no end after 600 s")
    lines = [x for x in console.read_text(errors="replace").splitlines() if x.startswith(("ok ", "FAIL ", "== "))]
    print(*lines, sep="\n")
    passed, failed = (sum(x.startswith(w) for x in lines) for w in ("ok ", "FAIL "))
    failed += "== end" not in lines
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
