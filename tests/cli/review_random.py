#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random edits under review, checkpoints, restores and a final apply, against a plain directory that gets the same edits.

Every step is compared as the sandbox sees it; at the end the workspace itself must be what the plain directory is. A few
sequences are tried every day, VITRINE_SEQUENCES says how many; a failure names its seed.
"""

import json
import os
import random
import shutil
import subprocess
import sys

from harness import eq, main, test

SEQUENCES = int(os.environ.get("VITRINE_SEQUENCES", "2"))

# Runs inside, and outside on the model: the same edits from the same seed. No hard links: an overlay breaks them when it
# copies a file up, which is the kernel's and said in the manual of overlays.
EDIT = r'''
import os, random, shutil, stat, sys
NAMES = [b"a", b"b", b"c-d", b"\xff\xfe", b"new\nline", b" ", b"x.y", b".wh.a"]
rng = random.Random(int(sys.argv[1]))

def name():
    return b"/".join(rng.choice(NAMES) for _ in range(rng.randint(1, 3)))

def edit():
    what, a, b, text = rng.randrange(9), name(), name(), b"%d\n" % rng.randrange(50)
    if what in (0, 1):
        with os.fdopen(os.open(a, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o644), "wb") as f:
            f.write(text)
    elif what == 2:
        os.makedirs(a, 0o755)
    elif what == 3:
        shutil.rmtree(a) if os.path.isdir(a) and not os.path.islink(a) else os.unlink(a)
    elif what == 4:
        if not os.path.lexists(b) and not b.startswith(a + b"/") and os.path.isdir(os.path.dirname(b) or b"."):
            shutil.move(os.fsdecode(a), os.fsdecode(b))
    elif what == 5:
        os.symlink(b, a)
    elif what == 6:
        st = os.lstat(a)
        if not stat.S_ISLNK(st.st_mode):
            os.chmod(a, (0o700 if stat.S_ISDIR(st.st_mode) else 0o600) | rng.choice((0, 0o44, 0o55)))
    elif what == 7:
        os.unlink(a)
        os.mkdir(a)
    else:
        with os.fdopen(os.open(a, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW), "wb") as f:
            f.write(b"+")

os.umask(0o022)
for _ in range(int(sys.argv[2])):
    try:
        edit()
    except OSError:
        pass
def look(at):
    for e in sorted(os.scandir(at), key=lambda e: e.name):
        st = e.stat(follow_symlinks=False)
        if e.is_symlink():
            print(e.path, "link", os.readlink(e.path))
        elif e.is_dir():
            print(e.path, "dir", oct(st.st_mode & 0o7777))
            look(e.path)
        else:
            print(e.path, "file", oct(st.st_mode & 0o7777), open(e.path, "rb").read())
look(b".")
'''


def done(box, *args, rc=0):
    r = box.cli(*args, timeout=40)
    eq(r.rc, rc, f"{args}: {r.out} {r.err}")
    return r


class Pair:
    """The sandbox and its model."""

    def __init__(self, box, model):
        self.box, self.model, self.saved = box, model, {}

    def on_model(self, seed, n):
        return subprocess.run([sys.executable, "-c", EDIT, str(seed), str(n)], cwd=self.model, capture_output=True,
                              check=True, text=True, timeout=40).stdout

    def step(self, seed, n, what):
        r = done(self.box, "run", "--name", "box", "--mode", "review", "--", "python3", "-c", EDIT, str(seed), str(n))
        eq(r.out.splitlines(), self.on_model(seed, n).splitlines(), f"seed {seed}: {what}")

    def checkpoint(self, seed):
        number = json.loads(done(self.box, "checkpoint", "box", "--json").out)["checkpoint"]
        kept = self.model.with_name(f"model-{number}")
        subprocess.run(["cp", "-a", self.model, kept], check=True)
        self.saved[number] = kept

    def restore(self, rng):
        number = rng.choice(sorted(self.saved))
        done(self.box, "restore", "box", str(number))
        shutil.rmtree(self.model)
        subprocess.run(["cp", "-a", self.saved[number], self.model], check=True)


def sequence(box, seed):
    rng = random.Random(seed)
    for p in box.ws.iterdir():
        shutil.rmtree(p) if p.is_dir() and not p.is_symlink() else p.unlink()
    top = box.dir / f"seq-{seed}"
    top.mkdir()
    pair = Pair(box, top / "model")
    pair.model.mkdir()
    pair.on_model(seed, 40)
    subprocess.run(["cp", "-a", f"{pair.model}/.", box.ws], check=True)
    box.own(box.ws)
    for i in range(6):
        pair.step(seed * 100 + i, rng.randint(0, 25), f"step {i}")
        if rng.random() < 0.5:
            pair.checkpoint(seed)
        elif pair.saved and rng.random() < 0.6:
            pair.restore(rng)
            pair.step(seed * 100 + i, 0, f"after a restore at step {i}")
    done(box, "apply", "--yes", "--links", "--special", "--force", "box")
    seen = subprocess.run([sys.executable, "-c", EDIT, "0", "0"], cwd=box.ws, capture_output=True, check=True, text=True).stdout
    eq(seen.splitlines(), pair.on_model(0, 0).splitlines(), f"seed {seed}: what was taken over")
    eq(done(box, "diff", "--name-only", "box").out, "", f"seed {seed}")
    done(box, "rm", "--force", "box")
    shutil.rmtree(top)


@test(timeout=60 + 15 * SEQUENCES, who=("user",))
def random_edits_against_a_model(box):
    for seed in range(1, SEQUENCES + 1):
        sequence(box, seed)


if __name__ == "__main__":
    sys.exit(main())
