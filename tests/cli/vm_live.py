#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A machine that can be saved while it works: its files come from vitrine-files, its private space is its own memory."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from machine import inside, machine  # noqa: E402
from harness import eq, has, has_not, main, refused, test  # noqa: E402


def live(box, env, script, *options, **kw):
    return inside(box, env, script, "--live", *options, **kw)


@test(who=("user",), timeout=400)
def its_files(box):
    """The same view as any machine's: read, written, renamed, linked, listed; hidden and protected names; walls."""
    env = machine(box)
    box.write(".env", "SECRET=1\n")
    box.write(".vscode/tasks.json", "{}\n")
    box.write("a/b/c", "deep\n")
    os.symlink("/etc/shadow", box.ws / "out")
    r = live(box, env, "cat a/b/c; cat .env; echo x >.vscode/tasks.json; touch /usr/x; "
             "mkdir -p new/dir && echo one >new/dir/f && echo two >>new/dir/f && mv new/dir/f new/g && ln new/g new/h && "
             "ln -s g new/l && cat new/l && ls new && chmod 755 new/g && rm new/h && rmdir new/dir; "
             "echo tmp >/tmp/t && cat /tmp/t; echo home >~/h && cat ~/h; stat -c %a /tmp; mknod dev c 1 3; "
             "seq 1 60000 >big; wc -c <big; grep -c . /proc/mounts >/dev/null; id -u; mount | grep -c trans=virtio; exit 3")
    eq(r.rc, 3, r.err)
    has(r.out, "deep\none\ntwo\ndir\ng\nh\nl\ntmp\nhome\n1777\n348894\n", str(box.account.pw_uid))
    eq(r.out.splitlines()[-1], "0", "nothing of QEMU's own")
    has_not(r.out, "SECRET")
    has(r.err, "dev")
    eq(box.read(".vscode/tasks.json"), "{}\n")
    eq((box.read("new/g"), os.readlink(box.ws / "new/l"), (box.ws / "new/g").stat().st_mode & 0o7777),
       ("one\ntwo\n", "g", 0o755))
    eq(sorted(os.listdir(box.ws / "new")), ["g", "l"])
    eq((box.ws / "new/g").stat().st_uid, box.account.pw_uid)
    eq(len(box.read("big")), 348894)


@test(who=("user",), timeout=60)
def no_other_engine(box):
    refused(box.run("--live", "--", "true"), "native", "cannot honour: saved while it works", rc=125)
    refused(box.run("--live", "--engine", "bwrap", "--", "true"), "cannot honour: saved while it works", rc=125)
    refused(box.run("--live", "--containers", "--engine", "vm-emulated", "--", "true"), "exclude each other", rc=125)


if __name__ == "__main__":
    sys.exit(main())
