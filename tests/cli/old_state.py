#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The state that an earlier build left is read and used by this one: sandboxes of every mode, kept grants, checkpoints, records,
loops, templates, secrets, policy, trust, guard.

tests/state/0.1.0.tar.gz was made by tests/state/make. Checkpoints and journals hold absolute paths, so every test unpacks the
fixture into its own folder and lays that folder at /mnt, in a mount namespace of the tests' own.
"""

import ctypes
import json
import os
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from harness import Skip, eq, has, has_not, main, test

FIXTURE = Path(__file__).resolve().parent.parent / "state" / "0.1.0.tar.gz"
CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
MS_BIND, MS_REC, MS_PRIVATE, MNT_DETACH = 0x1000, 0x4000, 0x40000, 2
LIBC = ctypes.CDLL(None, use_errno=True)
HOME = Path("/mnt/home")
PROJ = HOME / "proj"
NAMES = ["cl", "direct", "loop-shell-proj", "rev"]
is_apart = False


def go_apart():
    """A mount namespace for this process and all that it starts; for an ordinary user in a user namespace, as himself."""
    global is_apart
    uid, gid = os.geteuid(), os.getegid()
    if is_apart:
        return
    if LIBC.unshare(CLONE_NEWNS | (CLONE_NEWUSER if uid else 0)):
        raise Skip("no mount namespace of its own can be had")
    if uid:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    mount("none", "/", MS_REC | MS_PRIVATE)
    is_apart = True


def mount(what, where, flags):
    """By this process itself: a program that is executed by an ordinary user has no capability, in his own namespace neither."""
    if LIBC.mount(os.fsencode(what), os.fsencode(where), None, ctypes.c_ulong(flags), None):
        raise OSError(ctypes.get_errno(), f"mount {where}")


@contextmanager
def laid(box):
    """The old home at its old place."""
    go_apart()
    top = box.dir / "mnt"
    top.mkdir()
    subprocess.run(["tar", "-xzf", FIXTURE, "-C", top, "--xattrs", "--xattrs-include=*", "--no-same-owner", "-p"], check=True)
    (top / "bin").mkdir()
    for p in box.program.parent.glob("vitrine*"):
        if p.is_file():
            (top / "bin" / p.name).symlink_to(p)
    box.own(top / "home")
    mount(top, "/mnt", MS_BIND)
    try:
        yield
    finally:
        LIBC.umount2(b"/mnt", MNT_DETACH)


def done(box, *args, rc=0, **kw):
    r = box.cli(*args, cwd=kw.pop("cwd", PROJ), env={"HOME": str(HOME), "XDG_STATE_HOME": None, "XDG_CONFIG_HOME": None, "XDG_CACHE_HOME": None}, **kw)
    if r.rc not in (rc if isinstance(rc, tuple) else (rc,)):
        raise AssertionError(f"{args}: exit {r.rc}, want {rc}: {r.out} {r.err}")
    return r


def restore(box, point):
    """1: the git configuration, to which the clone's remote was added since, is protected and stays as it is."""
    return done(box, "restore", "--force", point, rc=(0, 1)).out


def text(name):
    return (PROJ / name).read_text()


@test
def everything_is_listed(box):
    with laid(box):
        rows = json.loads(done(box, "ls", "--json").out)
        eq(sorted(r["name"] for r in rows), NAMES)
        eq({(r["workspace"], r["status"]) for r in rows}, {(str(PROJ), "stopped")})
        for name in NAMES:
            eq(json.loads(done(box, "inspect", name).out)[0]["name"], name)
        has(done(box, "checkpoints").out, "three lines", "before direct")
        has(done(box, "secret", "ls").out, "mine", "MY_TOKEN", "api.example.org")
        has(done(box, "trust", "--list").out, str(PROJ))
        has(done(box, "policy", "show").out, "private.txt", "/mnt/home/other")
        has(done(box, "template", "ls").out, "small")
        has(done(box, "loop", "report", "loop-shell-proj").out, "# Loop of shell", "said 2")
        has(done(box, "status").out, "loop-shell-proj")
        eq(box.cli("guard", "test", "make deploy", cwd=PROJ, env={"HOME": str(HOME), "XDG_CONFIG_HOME": None}).rc, 1)
        has(done(box, "logs", "direct").out, "")


@test
def records_are_read_and_hold(box):
    """What the old build had put into the database, and what still lay in its journal."""
    with laid(box):
        has(done(box, "events", "direct").out, "echo three", "echo four")
        has(done(box, "events", "rev").out, "echo review")
        every = done(box, "events").out
        has(every, "echo unnamed", "echo last")
        done(box, "events", "--verify")


@test
def direct_goes_on(box):
    """With the grants it was made with, its home, and the policy and the trust of that time."""
    with laid(box):
        before = text("a.txt")
        r = done(box, "run", "direct", "--", "sh", "-c",
                 "cat ~/kept /mnt/home/data/f /mnt/home/other/f; echo more >/mnt/home/out/more; echo five >>a.txt; echo $FROM_POLICY; cat private.txt .env || :")
        eq(r.out, "kept\ngranted\nby a trusted project\nyes\n")
        eq((text("a.txt"), (HOME / "out/more").read_text()), (before + "five\n", "more\n"))
        has(done(box, "diff", "direct").out, "+five")
        done(box, "undo")
        eq(text("a.txt"), before)
        done(box, "start", "direct")
        eq(done(box, "exec", "direct", "--", "cat", "/mnt/home/data/f").out, "granted\n")
        done(box, "stop", "direct")
        eq(done(box, "run", "direct", "--", "sh", "-c", "echo x >/mnt/home/data/f; cat /mnt/home/data/f").out, "granted\n")


@test
def its_checkpoints_are_gone_back_to(box):
    with laid(box):
        said = restore(box, "three lines")
        eq((text("a.txt"), text("gone.txt"), (PROJ / "d").exists()), ("one\ntwo\nthree\n", "goes\n", False))
        eq(os.readlink(PROJ / "link"), "a.txt")
        restore(box, re.search(r"'vitrine restore (\d+)' takes this back", said)[1])
        has(text("a.txt"), "four\nunnamed\nlast\n")
        eq((PROJ / "gone.txt").exists(), False)
        done(box, "undo", "--force", rc=(0, 1))
        restore(box, "1")
        eq(text("a.txt"), "one\ntwo\n")
        has(done(box, "checkpoint", "-m", "by this build").out, "checkpoint")
        has(done(box, "checkpoints").out, "three lines", "by this build")


@test
def review_is_shown_and_applied(box):
    with laid(box):
        shown = done(box, "diff", "rev").out
        has(shown, "a.txt", "new.txt", "src/a.c", "src/b.c")
        eq(done(box, "exec", "rev", "--", "sh", "-c", "cat ~/kept new.txt; ls src; echo by-this-build >>new.txt").out, "kept\nnew\nagain\nb.c\n")
        done(box, "stop", "rev")
        eq((PROJ / "new.txt").exists(), False)
        has(done(box, "diff", "rev").out, "+by-this-build")
        # The files of the fixture have other inodes than those that the sandbox began with.
        done(box, "apply", "--force", "rev", "new.txt", "src")
        eq((text("new.txt"), text("src/b.c"), (PROJ / "src/a.c").exists()), ("new\nagain\nby-this-build\n", "b\n", False))
        done(box, "discard", "rev")
        eq(done(box, "diff", "rev").out, "")
        has_not(text("a.txt"), "review")


@test
def clone_is_fetched(box):
    box.needs("git")
    with laid(box):
        eq(done(box, "run", "cl", "--", "sh", "-c", "cat wip; git log --format=%s").out, "wip\nagent\nfirst\n")
        branches = json.loads(done(box, "fetch", "--json", "cl").out)["branches"]
        eq([b["branch"] for b in branches], ["main"])
        box.host("git", "fetch", "-q", "vitrine/cl", cwd=PROJ, env={"HOME": str(HOME)})
        log = box.host("git", "log", "--format=%s", "vitrine/cl/main", cwd=PROJ, env={"HOME": str(HOME)})
        eq(log, "agent\nfirst\n")


@test
def a_loop_is_taken_over_and_goes_on(box):
    with laid(box):
        s = json.loads(done(box, "loop", "shell", ".", "--prompt", "echo $VITRINE_ITERATION >>log", "--max", "1", "--new", "--json").out)
        eq((s["iterations"], s["name"]), (1, "loop-shell-proj"))
        done(box, "apply", "loop-shell-proj")
        eq(text("log"), "1\n2\n1\n")


@test
def a_copy_a_name_and_an_image(box):
    with laid(box):
        done(box, "fork", "rev", "other")
        eq(done(box, "run", "other", "--", "cat", "new.txt").out, "new\nagain\n")
        done(box, "rename", "direct", "renamed")
        eq(done(box, "run", "renamed", "--", "cat", "/mnt/home/data/f").out, "granted\n")
        done(box, "reset", "--force", "renamed")
        eq(done(box, "run", "renamed", "--", "sh", "-c", "ls ~/kept || echo empty").out, "empty\n")


@test
def everything_can_be_removed(box):
    with laid(box):
        done(box, "rm", "--force", *NAMES)
        eq(json.loads(done(box, "ls", "--json").out), [])
        state = HOME / ".local/state/vitrine"
        eq((sorted(p.name for p in (state / "sandboxes").iterdir()), [p.name for p in (state / "layers").iterdir() if p.is_dir()]), ([], []))
        done(box, "template", "rm", "small")
        done(box, "secret", "rm", "mine")
        done(box, "trust", "--remove")
        eq(done(box, "trust", "--list", "-q").out, "")
        has_not(box.host("git", "remote", cwd=PROJ, env={"HOME": str(HOME)}), "vitrine")


if __name__ == "__main__":
    sys.exit(main())
