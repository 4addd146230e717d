# SPDX-License-Identifier: Apache-2.0
"""The same checks with a root inside: a template with ids of its own, and every command run by its sudo.

What is promised of the walls does not depend on who the inside is. Checks that say the contrary of this kind of
sandbox (no capability, no set-user-id program) are not run here; check_rt.py has what is promised instead.
"""

import os
import shutil
import subprocess
from pathlib import Path

NAME = "rooted"
TOOLS = """bash cat chgrp chmod chown cp cut dash date dd df du echo env expr false find getent git grep head hostname id ipcs
           kill ln ls mkdir mkfifo mknod mount mv perl ps readlink rm rmdir sed seq setpriv sleep sort stat sync tail tee test
           timeout touch tr true tty umount uname unshare wc xargs""".split()
# What is said of the plain kind only, or needs what this root does not have.
NOT_HERE = ("PR-05|PR-06|PR-19|KS-14|"          # no capability, no set-user-id program
            "FD-03|"                            # "#!/proc/self/exe": sudo would be its own interpreter, for ever
            "IP-12|IP-13|NT-19|NT-20|KS-21|TT-04")

# A root inside a sandbox of the host's root has no id in the workspace, which is mapped for one user: acts that need to
# write there first do not begin.
NOT_ROOTS = "FW-04|FW-23|FW-26|FW-28"


def copy_program(root, path, done):
    """The program and the libraries it loads."""
    for f in [path, *(w for line in subprocess.run(["ldd", path], capture_output=True, text=True).stdout.splitlines()
                      for w in line.split() if w.startswith("/"))]:
        to = root / (f if f.startswith("/usr") else "/usr" + f).lstrip("/")
        if str(to) not in done:
            done.add(str(to))
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(os.path.realpath(f), to)


def make_root(root, tools=TOOLS):
    for d in ("usr/bin", "usr/lib64", "usr/sbin", "etc", "opt", "var/lib"):
        (root / d).mkdir(parents=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")
    done = set()
    for name in tools:
        path = shutil.which(name)
        if path:
            copy_program(root, path, done)
    (root / "usr/bin/sh").unlink(missing_ok=True)
    (root / "usr/bin/sh").symlink_to("dash")


def prepare(ctx, base):
    """-> the folder of templates of this identity."""
    root = Path(base) / f"root-{ctx.ident}"
    make_root(root)
    if os.geteuid() == 0:
        for p in [root, *root.rglob("*")]:
            os.chown(p, ctx.uid, ctx.gid, follow_symlinks=False)
    r = ctx.vitrine("template", "import", "--sudo", str(root), NAME, timeout=60)
    if not r.ok:
        raise SystemExit(f"run.py: no root inside for {ctx.ident}: {r}")
    kept = Path(base) / f"templates-{ctx.ident}"
    os.rename(ctx.state / "vitrine" / "templates", kept)
    shutil.rmtree(root)
    return str(kept)
