# SPDX-License-Identifier: Apache-2.0
"""Machines for tests: a kernel for the guest (guest.py), and the place where booted machines are kept between the tests
of a script."""

import guest
from harness import Skip

shared = None


def machine(box):
    """Words for the environment, and the place where booted machines are kept between tests."""
    global shared
    box.needs("qemu-system-x86_64")
    env, lacking = guest.kernel()
    if lacking:
        raise Skip(lacking)
    if shared is None:
        shared = box.dir.parent / f"kept-{box.who}"  # goes with all the tests' folders
        shared.mkdir()
        box.own(shared)
    return {**env, "VITRINE_VM_DIR": str(shared)}


def inside(box, env, script, *options, **kw):
    return box.sh(script, "--engine", "vm-emulated", *options, env=env, timeout=170, **kw)


def kept():
    return sorted(p.name for p in shared.iterdir() if not p.name.startswith("."))


def machine_folder():
    return shared
