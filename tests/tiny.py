# SPDX-License-Identifier: Apache-2.0
"""A root file system small enough to be made by every test that needs one."""

import os
import shutil
import subprocess


def tiny(box):
    """A root that can run sh, ls and cat, and says that it is not the host's."""
    root = box.home / "tiny"
    for d in ("usr/bin", "usr/lib64", "etc", "opt/own"):
        (root / d).mkdir(parents=True)
    for name, to in (("bin", "usr/bin"), ("lib", "usr/lib"), ("lib64", "usr/lib64")):
        (root / name).symlink_to(to)
    libs = set()
    for name in ("dash", "ls", "cat", "rm", "mkdir"):
        shutil.copy(f"/usr/bin/{name}", root / "usr/bin" / name)
        for line in subprocess.run(["ldd", f"/usr/bin/{name}"], capture_output=True, text=True, check=True).stdout.splitlines():
            libs |= {w for w in line.split() if w.startswith("/")}
    for lib in libs:
        to = root / ("usr" + lib if not lib.startswith("/usr") else lib[1:])
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(os.path.realpath(lib), to)
    (root / "usr/bin/sh").symlink_to("dash")
    (root / "usr/bin/cat").chmod(0o4755)
    (root / "etc/os-release").write_text("NAME=Tiny\n")
    (root / "opt/own/f").write_text("own\n")
    box.own(root)
    return root
