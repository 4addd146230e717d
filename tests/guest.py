# SPDX-License-Identifier: Apache-2.0
"""A kernel for the machines of tests: the newest of /boot, or the distribution's, unpacked once by tools/guest-kernel."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KERNEL = ROOT / "build" / "guest-kernel"
SBIN = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def kernel():
    """-> (words for the environment, what stands against it)"""
    if list(Path("/boot").glob("vmlinuz-*")):
        return {}, ""
    made = subprocess.run([ROOT / "tools" / "guest-kernel", KERNEL], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, timeout=100, env={**os.environ, "PATH": SBIN})
    if made.returncode != 0:
        return {}, "no kernel for a guest: " + made.stderr.decode()[-200:]
    return {"VITRINE_VM_KERNEL": str(KERNEL / "vmlinuz"), "VITRINE_VM_MODULES": str(KERNEL / "modules")}, ""
