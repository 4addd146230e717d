# SPDX-License-Identifier: Apache-2.0
"""FW-80 to FW-89, SV-50 to SV-59: paths that were decided once, what is granted, linked worktrees, and Vitrine's own folders.

Each class has a generator: ways times kinds, made from the sentence in docs/SECURITY.md and not from the holes that were
found. None of its variations may get through, and each must be refused with a sentence that names the path.
"""

import itertools
import os
import pwd
import random
import shlex
import shutil
import threading
import time

from check_fw import canary, git, make_repo, use_git
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


# ------------------------------------------------------------------- what is granted is protected as the workspace is


# What an agent would do in a directory it may write, each with what a program on the host would run afterwards. R: top of a work
# tree (or parent of one), G: its git dir; P: the canary program. A name that is not there before is made.
ACTS = {
    "hook written": 'printf "#!/bin/sh\\n$P\\n" >"$G/hooks/pre-commit" && chmod +x "$G/hooks/pre-commit"',
    "hooks replaced": 'mv "$G/hooks" "$G/h2" && mkdir "$G/hooks" && cp "$P" "$G/hooks/post-checkout"',
    "pager in config": 'printf "[core]\\n\\tpager = $P\\n" >>"$G/config"',
    "config renamed over": 'cp "$G/config" "$G/c2" && printf "[core]\\n\\tfsmonitor = $P\\n" >>"$G/c2" && mv -f "$G/c2" "$G/config"',
    "config linked over": 'cp "$G/config" "$G/c3"; printf "[core]\\n\\tsshCommand = $P\\n" >>"$G/c3"; ln -f "$G/c3" "$G/config"',
    "hooks path": 'git --git-dir="$G" config core.hooksPath "$R"',
    "worktree config": 'printf "[core]\\n\\tfsmonitor = $P\\n" >"$G/config.worktree"; git --git-dir="$G" config extensions.worktreeConfig true',
    "attributes": 'mkdir -p "$G/info" && echo "* filter=x" >"$G/info/attributes"',
    "alternates": 'mkdir -p "$G/objects/info" && echo /nowhere >"$G/objects/info/alternates"',
    "submodule's hook": 'git init -q --bare "$G/modules/m" && mkdir -p "$G/modules/m/hooks" && cp "$P" "$G/modules/m/hooks/post-checkout"',
    "editor's tasks": 'mkdir -p "$R/.vscode" && echo "{}" >"$R/.vscode/tasks.json"',
    "editor's tasks deep down": 'mkdir -p "$R/a/b/.vscode" && echo "{}" >"$R/a/b/.vscode/tasks.json"',
    "agent's hooks": 'mkdir -p "$R/.claude" && echo "{}" >"$R/.claude/settings.json"',
    "tool servers": 'echo "{}" >"$R/.mcp.json"',
    "tool servers deep down": 'mkdir -p "$R/c" && echo "{}" >"$R/c/.mcp.json"',
    "environment": 'echo "$P" >"$R/.envrc"',
    "own policy": 'echo "{}" >"$R/.vitrine.jsonc"',
    "new repository": 'git init -q "$R/new" && cp "$P" "$R/new/.git/hooks/post-checkout"',
}
# name -> (flags, the work tree and the git dir as they are seen inside); g: what is granted
GRANTS = {
    "--write of a work tree": lambda t: (["--write", t], t, t / ".git"),
    "--write of the parent": lambda t: (["--write", t.parent], t, t / ".git"),
    "--write of .git": lambda t: (["--write", t / ".git"], t / ".git", t / ".git"),
    "-v at its place": lambda t: (["-v", t], t, t / ".git"),
    "-v elsewhere": lambda t: (["-v", f"{t}:/mnt/w"], "/mnt/w", "/mnt/w/.git"),
    "-v of .git elsewhere": lambda t: (["-v", f"{t}/.git:/mnt/g"], "/mnt/g", "/mnt/g"),
}
LEFT = ("hooks/pre-commit", "hooks/post-checkout", "config.worktree", "info/attributes", "objects/info/alternates",
        "modules/m/hooks/post-checkout")


def left_behind(tree):
    """What a program on the host would act on, below a granted work tree."""
    found = [str(tree / ".git" / n) for n in LEFT if (tree / ".git" / n).exists()]
    for top, dirs, files in os.walk(tree):
        found += [os.path.join(top, n) for n in dirs + files
                  if n in (".vscode", ".mcp.json", ".envrc", ".vitrine.jsonc") or (n == "settings.json" and ".claude" in top)
                  or (n == "post-checkout" and "/hooks" in top)]
    return found


@check("FW-82", prio="P0", forms=("run", "exec"), catches=("grants",), timeout=120,
       title="directories granted with --write and -v: hooks, config, editor and agent files at every depth, every way to grant")
def fw82(c: Ctx):
    prog, ran = canary(c)
    n = 0
    for i, (kind, of) in enumerate(GRANTS.items()):
        tree = make_repo(c, c.root / "granted" / f"r{i}" / "w")
        flags, r_in, g_in = of(tree)
        before = (tree / ".git" / "config").read_text()
        hooks = sorted(os.listdir(tree / ".git" / "hooks"))
        acts = "\n".join(f"( {act} ) 2>/dev/null" for act in ACTS.values())
        r = c.sandbox(f"R={q(str(r_in))} G={q(str(g_in))} P={q(str(prog))}\n{acts}\n"
                      f"echo plain >\"$R/plain\" && echo wrote", flags=[str(f) for f in flags])
        left = left_behind(tree)
        c.must(not left, f"{kind}: left behind: {left} ({r})")
        c.must((tree / ".git" / "config").read_text() == before, f"{kind}: the config was changed")
        c.must(sorted(os.listdir(tree / ".git" / "hooks")) == hooks, f"{kind}: the hooks were changed")
        c.must_say("wrote" in r.text, f"{kind}: a plain file cannot be written: {r}")
        c.must(not use_git(c, tree, ran), f"{kind}: host git ran the canary")
        n += len(ACTS)
    c.note(n, "variations")
    return HELD


@check("FW-83", prio="P0", forms=("run",), catches=("grants",),
       title="grants that are, or lie in, what is protected are refused with what would allow them")
def fw83(c: Ctx):
    tree = make_repo(c, c.root / "granted" / "r")
    bare = c.root / "granted" / "b"
    with c.host_edit():
        c.need_control(git(c, tree, "clone", "-q", "--bare", str(tree), str(bare)).ok, "no bare repository")
        for n in ("info", "modules", "worktrees"):
            c.mkdir(tree / ".git" / n)
    for p in (".vscode/tasks.json", "a/.idea/x", ".claude/hooks/h", ".husky/pre-commit", ".config/git/config"):
        c.plant(tree / p, "{}\n")
    bad = [tree / ".git" / n for n in ("hooks", "config", "info", "modules", "worktrees", "objects", "refs")]
    bad += [bare / "hooks", bare / "config", bare / "objects"]
    bad += [tree / ".vscode", tree / ".vscode/tasks.json", tree / "a/.idea", tree / ".claude/hooks", tree / ".husky",
            tree / ".husky/pre-commit", tree / ".config/git", c.plant(c.home / ".bashrc", "x\n"), c.plant(c.home / ".gitconfig")]
    for path in bad:
        for flags in (["--write", path], ["-v", path], ["-v", f"{path}:/mnt/x"]):
            r = c.vitrine("run", *[str(f) for f in flags], "--", "true")
            c.must(not r.ok and r.refused, f"{flags}: {r}")
            c.must_say(r.has(str(path)) and (r.has("--protect") or r.has("whole")), f"{flags}: says not what would allow it: {r}")
        r = c.vitrine("run", "--read", str(path), "--", "true")
        c.must_say(r.ok, f"--read {path}: {r}")
    r = c.vitrine("run", "--write", str(tree / ".vscode"), "--protect", "!.vscode", "--", "touch", str(tree / ".vscode/x"))
    c.must_say(r.ok and (tree / ".vscode/x").exists(), f"taken back: {r}")
    return HELD


@check("FW-84", prio="P0", forms=("run",), catches=("grants", "remask"),
       title="in a granted directory too: what the host replaces is covered again, what appears is taken away while it runs")
def fw84(c: Ctx):
    tree = make_repo(c, c.root / "granted" / "r")
    b = c.keeper(flags=["-v", f"{tree}:/mnt/w"])
    with c.host_edit():
        c.need_control(git(c, tree, "config", "user.name", "host").ok, "the host cannot replace the config")
    text = (tree / ".git/config").read_text()
    end = time.monotonic() + c.cfg.patience
    while time.monotonic() < end and c.vitrine("exec", b.name, "--", "sh", "-c", "test -w /mnt/w/.git/config").ok:
        time.sleep(0.05)
    c.vitrine("exec", b.name, "--", "sh", "-c", "echo '[core] pager = x' >>/mnt/w/.git/config")
    c.must((tree / ".git/config").read_text() == text, "the replaced config can be written")
    c.vitrine("exec", b.name, "--", "sh", "-c", "echo x >/mnt/w/.envrc; mkdir -p /mnt/w/d; sleep 0.3; echo x >/mnt/w/d/.envrc")
    c.must(c.wait_until(lambda: not (tree / ".envrc").exists() and not (tree / "d/.envrc").exists()),
           "a protected name that appeared is still there")
    b.stop()
    return HELD


# ------------------------------------------------------------------- our own ground


PARTS = ("sandboxes", "journal", "trees", "layers", "quarantine", "skel", "secrets", "runs", "vitrine.db", ".")


def move_and_link(p):
    aside(p)
    os.symlink(f"{p}.aside", p)


# what is done to a part of the state directory; None: only as root
TAMPER = {
    "a link": move_and_link,
    "a link outside": lambda p: (aside(p), os.symlink("/", p)),
    "a dangling link": lambda p: (aside(p), os.symlink("/nonexistent/x", p)),
    "writable by all": lambda p: os.chmod(p, 0o777),
    "writable by the group": lambda p: os.chmod(p, 0o770),
    "another owner": lambda p: os.chown(p, 12345, -1),
}


@check("SV-50", prio="P0", forms=("run",), catches=("own",), timeout=240,
       title="the state directory, the way to it and every part of it: links, other writers, other owners are refused by name")
def sv50(c: Ctx):
    c.need_control(c.vitrine("run", "--name", "box", "--", "true").ok, "no sandbox")
    real = c.state / "vitrine"
    n = 0
    for part in PARTS:
        for way, do in TAMPER.items():
            if way == "another owner" and os.geteuid() != 0:
                continue
            place = c.root / f"st{n}"
            shutil.copytree(real, place / "up" / "vitrine", symlinks=True,
                            ignore=shutil.ignore_patterns("control", "broker-socket", "skel"))
            if part != "." and not (place / "up" / "vitrine" / part).exists():
                (place / "up" / "vitrine" / part).mkdir(mode=0o700)
            own(c, place)
            c._own(place)
            target = place / "up" if part == "." and n % 2 else place / "up" / "vitrine" / part
            target = place / "up" / "vitrine" if part == "." and target != place / "up" else target
            do(target)
            if target.is_symlink():
                c._own(target)
            env = {"XDG_STATE_HOME": str(place / "up")}
            n += 1
            # A directory on the way that a group of one's own may write is the user's affair.
            if part == "." and way == "writable by the group" and target == place / "up":
                continue
            words = (["run", "--", "echo", "ran"], ["ls"], ["exec", "box", "--", "echo", "ran"])[n % 3]
            r = c.vitrine(*words, env=env)
            c.must(not r.ok and "ran" not in r.text, f"{part}, {way}: {words[0]} went on: {r}")
            c.must_say(r.has(str(place)), f"{part}, {way}: {words[0]} does not name it: {r}")
    c.need_control(n >= 50, f"only {n} variations")
    c.note(n, "variations")
    return HELD


@check("SV-51", prio="P1", forms=("run",), title="HOME empty, '/', relative, with a slash too many: the account's home or a refusal")
def sv51(c: Ctx):
    passwd = pwd.getpwuid(c.uid).pw_dir
    tries = ["", "/", "//", "///", ".", "..", "./", "~", "rel", "rel/", "a/b", "./a", "../a", "/.", "/..", "/./", "//tmp", "/a//b",
             f"{c.home}/", f"{c.home}//", f"{c.home}/.", f"{c.home}/..", f"{c.home}/./", f"{c.home}/x/..", f"{c.home}//proj",
             f"/../{c.home}", f".{c.home}", " ", " /", f" {c.home}", "\t", "$HOME", "~root", f"~{c.account.name}", "-", "--", "*",
             "\\", ":", "a:b", "\n", "\x01", "é", "/.//", "/../..", "/..//.", f"{c.home}/../", f"{c.home}/.//", "./../", "rel/.."]
    c.need_control(len(tries) >= 50, f"only {len(tries)}")
    env = {"XDG_STATE_HOME": None, "XDG_CONFIG_HOME": None}
    before = set(os.listdir("/")) | set(os.listdir("/home")) | set(os.listdir(c.ws))
    for home in tries:
        r = c.vitrine("explain", "--json", "--", "true", env={**env, "HOME": home})
        if r.ok:
            c.must(f'"HOME={passwd}"' in r.text, f"HOME={home!r}: another folder is the home: {r.text[-600:]}")
        else:
            c.must_say(r.has("HOME") or r.has("home"), f"HOME={home!r}: {r}")
    after = set(os.listdir("/")) | set(os.listdir("/home")) | set(os.listdir(c.ws))
    c.must(after == before, f"made: {after - before}")
    return HELD


@check("SV-52", prio="P0", forms=("run",), catches=("own",),
       title="the user's policy file may be a link, but not to where a sandbox or others may write")
def sv52(c: Ctx):
    text = '{"files": {"read": ["%s"]}}\n' % c.plant(c.home / "data" / "f", "x\n").parent
    conf = c.mkdir(c.config / "vitrine")
    dots = c.plant(c.home / "dotfiles" / "policy.jsonc", text).parent
    link = c.symlink(conf / "policy.jsonc", dots / "policy.jsonc")
    see = ["run", "--workspace", str(c.mkdir(c.home / "other")), "--", "ls", str(c.home / "data")]
    r = c.vitrine(*see)
    c.need_control(r.ok and "f" in r.text, f"a linked policy is not read: {r}")

    def refused(what, *words):
        r = c.vitrine(*words)
        c.must(not r.ok, f"{what}: {r}")
        c.must_say(r.has("policy") or r.has(str(dots)), f"{what}: {r}")

    refused("the workspace holds it", "run", "--workspace", str(dots), "--", "true")
    refused("a grant holds it", "run", "--write", str(dots), "--", "true")
    refused("a volume holds it", "run", "-v", f"{dots}:/mnt/d", "--", "true")
    with c.host_edit():
        dots.chmod(0o777)
    refused("others may write there", *see)
    with c.host_edit():
        dots.chmod(0o755)
        link.unlink()
    for i, flags in enumerate((["--workspace", str(dots)], ["--write", str(dots)], ["-v", f"{dots}:/mnt/d"])):
        name = f"writer{i}"
        r = c.vitrine("create", "--name", name, *flags, *([] if i == 0 else ["--workspace", str(c.mkdir(c.home / f"w{i}"))]))
        c.need_control(r.ok, f"no sandbox: {r}")
        c.symlink(link, dots / "policy.jsonc")
        refused(f"another sandbox may write there: {flags}", *see)
        refused(f"--policy: {flags}", "run", "--policy", str(dots / "policy.jsonc"), *see[1:])
        c.need_control(c.vitrine("rm", name).ok, "not removed")
        with c.host_edit():
            link.unlink()
    return HELD


@check("SV-53", prio="P1", forms=("run",), alone=True, catches=("closing",), timeout=120,
       title="run, exec, start, stop and rm of one sandbox at once: every failure ends in a sentence that is true")
def sv53(c: Ctx):
    """Nobody kills a keeper here, so none died; and nothing is said to be running, missing or stopped without its name."""
    work = str(c.mkdir(c.ws / "w"))
    rng = random.Random(53)
    verbs = (["run", "--name", "b", "--workspace", work, "--", "sleep", "0.02"], ["exec", "b", "--", "sleep", "0.02"],
             ["stop", "b"], ["stop", "--time", "0", "b"], ["start", "b"], ["rm", "b"], ["rm", "-f", "b"], ["ps", "b"])
    order = [[rng.choice(verbs) for _ in range(14)] for _ in range(4)]
    said = []

    def worker(todo):
        for words in todo:
            said.append((words[0], c.vitrine(*words, timeout=40)))

    threads = [threading.Thread(target=worker, args=(todo,)) for todo in order]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for verb, r in said:
        if r.ok or r.rc in (143, 137):
            continue
        c.must_say(not r.timed_out and r.errtext.startswith("vitrine: ") and len(r.errtext) > 20, f"{verb}: {r}")
        c.must_say("No error information" not in r.errtext and "keeper died" not in r.errtext
                   and "does not answer" not in r.errtext and "Success" not in r.errtext, f"{verb}: {r}")
    c.vitrine("rm", "-f", "b")
    c.note(len(said), "commands")
    return HELD


# ------------------------------------------------------------------- linked worktrees


def make_worktree(c: Ctx, main, place, branch):
    with c.host_edit():
        r = git(c, main, "worktree", "add", "-q", "-b", branch, str(place))
    c.need_control(r.ok, f"no worktree: {r}")
    return place


IDENTITY = "export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@t GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@t\n"


@check("FW-85", prio="P0", forms=("run", "exec"), catches=("repository",), timeout=60,
       title="a linked worktree works without a flag: status, commit, log, stash; of its repository only its branch and stash change")
def fw85(c: Ctx):
    prog, ran = canary(c)
    main = make_repo(c, c.root / "granted" / "main")
    with c.host_edit():
        for words in (["branch", "other"], ["pack-refs", "--all"], ["branch", "third"]):
            c.need_control(git(c, main, *words).ok, "no branches")
    wt = make_worktree(c, main, c.ws / "wt", "feature/x")
    g, x = main / ".git", main / ".git/worktrees/wt"
    fixed = ("config", "hooks", "info", "packed-refs", "HEAD", "refs/heads/third", "worktrees/wt/gitdir", "worktrees/wt/commondir")
    before = {n: c.tree_entries(g / n) for n in fixed}
    refs = git(c, main, "for-each-ref", "refs/heads").text
    r = c.sandbox(IDENTITY + "git status && echo two >>file.txt && git commit -qam two && git log --oneline && "
                  "echo three >>file.txt && git stash && git stash list && git stash pop && echo four >>file.txt && "
                  f"git stash && echo worked\n"
                  f"cd {q(str(g))}\n"
                  "git update-ref refs/heads/third feature/x; git update-ref refs/heads/other feature/x; git branch new feature/x\n"
                  f"for f in config hooks/pre-commit info/attributes objects/info/alternates worktrees/wt/gitdir "
                  f"worktrees/wt/commondir worktrees/wt/config.worktree packed-refs HEAD commondir; do cp {q(str(prog))} $f; done 2>/dev/null; true",
                  flags=["--workspace", str(wt)], cwd=wt)
    c.must_say("worked" in r.text, f"git does not work in the worktree: {r}")
    after = {n: c.tree_entries(g / n) for n in fixed}
    c.must(after == before, f"changed in the repository: {[n for n in fixed if after[n] != before[n]]}")
    for n in ("objects/info/alternates", "worktrees/wt/config.worktree", "commondir"):
        c.must(not (g / n).exists(), f"left behind: {n}")
    now = git(c, main, "for-each-ref", "refs/heads").text
    c.must([line for line in now.splitlines() if "feature/x" not in line]
           == [line for line in refs.splitlines() if "feature/x" not in line], f"other refs changed: {now}")
    log = git(c, wt, "log", "--oneline", "-2").text
    c.must_say(" two" in log and "stash@{0}" in git(c, wt, "stash", "list").text, f"the host does not see the commit: {log}")
    c.must_say(git(c, wt, "status", "--porcelain").text == "" and git(c, main, "fsck").ok, "the repository is not whole")
    c.must(not use_git(c, main, ran), "host git ran the canary")
    # What the host did meanwhile is not undone.
    b = c.keeper(flags=["--workspace", str(wt)], cwd=wt)
    r = c.vitrine("exec", b.name, "--", "sh", "-c", IDENTITY + "git commit -q --allow-empty -m inside && echo ok")
    c.must_say("ok" in r.text, f"no commit in a named one: {r}")
    with c.host_edit():
        git(c, wt, "commit", "-q", "--allow-empty", "-m", "outside")
    c.vitrine("stop", b.name)
    b.stop()
    top = git(c, wt, "log", "-1", "--format=%s").text.strip()
    c.must(top == "outside", f"the host's commit was taken back: {top}")
    return HELD


# What the .git file of a hostile clone says of a victim's repository; O: a worktree's directory in it, V: the victim
POINTERS = ("gitdir: {O}\n", "gitdir: {O}", "gitdir: {O}/\n", "gitdir: {V}/.git\n", "gitdir: {V}/.git/worktrees\n",
            "gitdir: {V}/.git/worktrees/../worktrees/x\n", "gitdir: {V}/.git/worktrees/x/.\n", "gitdir: /{O}\n", "gitdir:{O}\n",
            "gitdir: {O}\r\n", "gitdir: {O}\ngitdir: {O}\n", "gitdir: link/.git/worktrees/x\n", "gitdir: {H}/link/.git/worktrees/x\n",
            "gitdir: {H}/own/worktrees/x\n")
# What the victim's worktree says of where it is; H: the hostile clone
BACKS = (None, "{other}/.git\n", "{H}\n", "{H}2/.git\n", "../.git\n", "{H}/.git\n{H}/.git\n", "", "{L}/.git\n", "{H}/.git/\n")


@check("FW-86", prio="P0", forms=("run",), catches=("worktree",), timeout=120,
       title="a hostile clone whose .git file names another repository: every form of it, every answer of that repository")
def fw86(c: Ctx):
    word = "canary" + c.uuid()
    victim = make_repo(c, c.root / "granted" / "victim")
    with c.host_edit():
        git(c, victim, "commit", "-q", "--allow-empty", "-m", word)
    other = make_worktree(c, victim, c.root / "granted" / "x", "x")
    own_dir = victim / ".git/worktrees/x"
    config = victim / ".git/config"
    text = config.read_text()
    see = f"git log --all; cat {q(str(config))} {q(str(own_dir))}/HEAD; ls {q(str(victim))}/.git; echo looked; echo x >{q(str(own_dir))}/y"
    n = 0
    for i, (pointer, back) in enumerate(itertools.product(POINTERS, BACKS)):
        if i > 2 * len(BACKS) and i % 2:
            continue
        h = c.mkdir(c.ws / f"h{i}")
        link = c.ws / f"l{i}"
        link.symlink_to(h)
        (h / "link").symlink_to(victim)
        c.plant(h / "own/worktrees/x/commondir", f"{victim}/.git\n")
        c.plant(h / "own/worktrees/x/gitdir", f"{h}/.git\n")
        c.plant(h / "own/worktrees/x/HEAD", "ref: refs/heads/x\n")
        words = {"O": own_dir, "V": victim, "H": h, "L": link, "other": other}
        c.plant(h / ".git", pointer.format(**words))
        if back is None:
            (own_dir / "gitdir").unlink(missing_ok=True)
        else:
            c.plant(own_dir / "gitdir", back.format(**words))
        r = c.sandbox(see, cwd=h, flags=["--workspace", str(h)])
        c.must(word not in r.text and "repositoryformatversion" not in r.text and "refs/heads" not in r.text,
               f"{pointer!r}, {back!r}: the repository was shown: {r}")
        c.must(not (own_dir / "y").exists() and config.read_text() == text, f"{pointer!r}, {back!r}: it was written")
        n += 1
    # The right answer, and another's hand in it: the owner, and a sandbox that may write there.
    h = c.mkdir(c.ws / "right")
    c.plant(h / ".git", f"gitdir: {own_dir}\n")
    c.plant(own_dir / "gitdir", f"{h}/.git\n")
    c.need_control(word in c.sandbox("git log --all", cwd=h, flags=["--workspace", str(h)]).text, "the right one is not opened")
    c.need_control(c.vitrine("create", "--name", "writer", "--write", str(victim), "--workspace", str(c.mkdir(c.home / "w"))).ok, "none")
    r = c.sandbox("git log --all", cwd=h, flags=["--workspace", str(h)])
    c.must(word not in r.text, f"a sandbox may write there: {r}")
    c.must_say(r.has("writer"), f"it does not say who: {r}")
    c.vitrine("rm", "writer")
    if os.geteuid() == 0:
        os.chown(own_dir, 12345, -1)
        r = c.sandbox("git log --all", cwd=h, flags=["--workspace", str(h)])
        c.must(word not in r.text, f"another owner's was opened: {r}")
        c._own(own_dir)
    c.note(n, "variations")
    return HELD
