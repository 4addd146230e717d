# SPDX-License-Identifier: Apache-2.0
"""Machines for tests: a kernel for the guest, and the place where booted machines are kept between the tests of a script.

The kernel is the newest of /boot, or the distribution's, unpacked once by tools/guest-kernel."""

import os
import subprocess
from pathlib import Path

from harness import PATH, Skip

ROOT = Path(__file__).resolve().parent.parent
KERNEL = ROOT / "build" / "guest-kernel"
shared = None


def machine(box):
    """Words for the environment, and the place where booted machines are kept between tests."""
    global shared
    box.needs("qemu-system-x86_64")
    env = {}
    if not list(Path("/boot").glob("vmlinuz-*")):
        made = subprocess.run([ROOT / "tools" / "guest-kernel", KERNEL], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, timeout=100, env={**os.environ, "PATH": PATH})
        if made.returncode != 0:
            raise Skip("no kernel for a guest: " + made.stderr.decode()[-200:])
        env = {"VITRINE_VM_KERNEL": str(KERNEL / "vmlinuz"), "VITRINE_VM_MODULES": str(KERNEL / "modules")}
    if shared is None:
        shared = box.dir.parent / f"kept-{box.who}"  # goes with all the tests' folders
        shared.mkdir()
        box.own(shared)
    box.state.mkdir(parents=True)
    (box.state / "vm").symlink_to(shared)
    box.own(box.dir)
    return env


def inside(box, env, script, *options, **kw):
    return box.sh(script, "--engine", "vm-emulated", *options, env=env, timeout=170, **kw)


def kept():
    return sorted(p.name for p in shared.iterdir() if not p.name.startswith("."))


def machine_folder():
    return shared
