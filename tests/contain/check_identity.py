# SPDX-License-Identifier: Apache-2.0
"""FW-80 to FW-89, SV-50 to SV-59: paths that were decided once, what is granted, linked worktrees, and Vitrine's own folders.

Each class has a generator: ways times kinds, made from the sentence in docs/SECURITY.md and not from the holes that were
found. None of its variations may get through, and each must be refused with a sentence that names the path.
"""

import itertools
import os
import shlex
import shutil

from harness import HELD, Ctx, check

q = shlex.quote


# ------------------------------------------------------------------- a path is that directory, not that name


def aside(path):
    os.rename(path, f"{path}.aside")


def link_to(path, target):
    aside(path)
    os.symlink(target, path)


def chain(path, target):
    aside(path)
    os.symlink(target, f"{path}.hop")
    os.symlink(os.path.basename(path) + ".hop", path)


def fresh(path, is_dir):
    if is_dir:
        os.mkdir(path)
    else:
        path.write_text("other\n")


def remade(path, is_dir):
    shutil.rmtree(path)
    fresh(path, is_dir)


# name -> (what is done to base/mid/target, for directories alone); `secret` has the same last two names as the path
WAYS = {
    "link": (lambda p, s, d: link_to(p, s), False),
    "relative link": (lambda p, s, d: link_to(p, os.path.relpath(s, p.parent)), False),
    "link with dots": (lambda p, s, d: link_to(p, f"{s.parent}/../{s.parent.name}/{s.name}"), False),
    "chain of links": (lambda p, s, d: chain(p, s), False),
    "link to itself moved": (lambda p, s, d: link_to(p, f"{p}.aside"), False),
    "parent is a link": (lambda p, s, d: link_to(p.parent, s.parent), False),
    "parent is a relative link": (lambda p, s, d: link_to(p.parent, os.path.relpath(s.parent, p.parent.parent)), False),
    "grandparent is a link": (lambda p, s, d: link_to(p.parent.parent, s.parent.parent), False),
    "another kind of file": (lambda p, s, d: (aside(p), fresh(p, not d)), False),
    "another directory": (lambda p, s, d: (aside(p), fresh(p, True)), True),
    "a sibling renamed over it": (lambda p, s, d: (fresh(p.parent / "sib", True), aside(p), os.rename(p.parent / "sib", p)),
                                  True),
    "made anew": (lambda p, s, d: remade(p, True), True),
    "parent made anew": (lambda p, s, d: (aside(p.parent), os.mkdir(p.parent), fresh(p, True)), True),
}
# name -> (is a directory, flags for the path)
KINDS = {
    "workspace": (True, None),
    "--read": (True, lambda p: ["--read", p]),
    "--write": (True, lambda p: ["--write", p]),
    "-v": (True, lambda p: ["-v", f"{p}:/mnt/seen"]),
    "-v ro": (True, lambda p: ["-v", f"{p}:/mnt/seen:ro"]),
    "--read file": (False, lambda p: ["--read", p]),
    "--env-file": (False, lambda p: ["--env-file", p]),
    "--policy": (False, lambda p: ["--policy", p]),
}
LOOK = "cat id target /mnt/seen/id 2>/dev/null; cat \"$0\" \"$0\"/id 2>/dev/null; env; echo looked"


def secret_tree(c: Ctx, canary):
    """-> {is_dir: a path ending in mid/target that no sandbox was given}"""
    found = {}
    for is_dir in (True, False):
        top = c.home / ("keys-d" if is_dir else "keys-f") / "mid" / "target"
        c.plant(top / "id" if is_dir else top, f"{{}} // SECRET={canary}\n" if not is_dir else canary)
        found[is_dir] = top
    return found


def own(c: Ctx, top):
    for d, dirs, files in os.walk(top):
        for n in (".", *dirs, *files):
            c._own(os.path.join(d, n))


def prepare(c: Ctx, i, kind):
    """-> (sandbox's name, path that will be swapped); the sandbox is made."""
    is_dir, flags = KINDS[kind]
    path = c.ws / f"v{i}" / "g" / "mid" / "target"
    if is_dir:
        c.plant(path / "mine", "mine\n")
    else:
        c.plant(path, "{}\n" if kind == "--policy" else "A=b\n")
    work = path if flags is None else c.mkdir(c.ws / f"v{i}" / "work")
    name = f"swap{i}"
    r = c.vitrine("create", "--name", name, *([str(w) for w in flags(path)] if flags else []), "shell", str(work))
    c.need_control(r.ok, f"{kind}: not created: {r}")
    return name, path


@check("FW-80", prio="P0", forms=("run",), catches=("places",), timeout=240,
       title="workspace, grants and files of a named sandbox swapped between two starts: every way, every kind of path")
def fw80(c: Ctx):
    canary = c.uuid()
    secret = secret_tree(c, canary)
    # Without a swap it starts, and so it does when an editor has replaced a file.
    for i, kind in enumerate(("workspace", "--write", "--env-file")):
        name, path = prepare(c, f"ok{i}", kind)
        if not KINDS[kind][0]:
            (path.parent / "new").write_text("A=c\n")
            c._own(path.parent / "new")
            os.rename(path.parent / "new", path)
        for _ in range(2):
            r = c.vitrine("run", name, "--", "sh", "-c", LOOK, str(path))
            c.need_control(r.ok and "looked" in r.text, f"{kind}: it does not start: {r}")
    n = 0
    for i, (kind, way) in enumerate(itertools.product(KINDS, WAYS)):
        swap, dirs_only = WAYS[way]
        is_dir = KINDS[kind][0]
        if dirs_only and not is_dir:
            continue
        name, path = prepare(c, i, kind)
        with c.host_edit():
            swap(path, secret[is_dir], is_dir)
            own(c, c.ws / f"v{i}")
        verb = (["run", name, "--"], ["exec", name, "--"])[i % 2]
        r = c.vitrine(*verb, "sh", "-c", LOOK, str(path))
        c.must(not r.has(canary), f"{kind}, {way}: the canary came out: {r}")
        c.must("looked" not in r.text and r.refused, f"{kind}, {way}: it ran all the same: {r}")
        c.must_say(r.has("target") or r.has("mid"), f"{kind}, {way}: the sentence does not name the path: {r}")
        n += 1
        if kind != "workspace":
            continue
        for words in (["checkpoint", name], ["undo", name], ["diff", name]):
            r = c.vitrine(*words)
            c.must(not r.ok and not r.has(canary), f"{' '.join(words)}, {way}: {r}")
    c.need_control(n >= 80, f"only {n} variations")
    c.note(n, "variations")
    return HELD


@check("FW-81", prio="P0", forms=("run",), catches=("places",),
       title="a sandbox that may write the parent swaps another's workspace from inside; --accept-moved takes it, once said")
def fw81(c: Ctx):
    canary = c.uuid()
    keys = c.plant(c.home / ".ssh" / "id", canary).parent
    mine = c.plant(c.ws / "mine" / "file", "x\n").parent
    c.need_control(c.vitrine("run", "--name", "victim", "--workspace", str(mine), "--", "true").ok, "no sandbox")
    r = c.sandbox(f"mv mine was && ln -s {q(str(keys))} mine && echo swapped")
    c.need_control("swapped" in r.text, f"the swap failed: {r}")
    c.need_control(canary in c.control(f"cat {q(str(mine))}/id").text, "the link does not lead there")
    for words in (["run", "victim", "--", "cat", "id"], ["exec", "victim", "--", "cat", "id"], ["start", "victim"]):
        r = c.vitrine(*words)
        c.must(not r.ok and not c.leaks(r, canary), f"{words[0]}: {r}")
        c.must_say(r.has(str(keys)) and r.has("--accept-moved"), f"{words[0]} does not say what changed: {r}")
    # The user moves it back as another directory, and says so.
    with c.host_edit():
        mine.unlink()
        shutil.copytree(c.ws / "was", mine)
        own(c, mine)
    r = c.vitrine("run", "victim", "--", "cat", "file")
    c.must(not r.ok, f"another directory was taken for the old one: {r}")
    r = c.vitrine("run", "victim", "--accept-moved", "--", "cat", "file")
    c.must_say(r.ok and r.text == "x\n", f"--accept-moved: {r}")
    r = c.vitrine("run", "victim", "--", "cat", "file")
    c.must_say(r.ok, f"it has to be said twice: {r}")
    return HELD
