#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Workspace mode clone: a private clone inside, commits come out through a repository of ours."""

import json
import os
import re
import subprocess
import sys
import zlib
from hashlib import sha1

from harness import eq, has, has_not, main, refused, test

WHO = ["-c", "user.name=t", "-c", "user.email=t@t"]


def repo(box, files=(("a", "1\n"),)):
    box.needs("git")
    box.host("git", "init", "-q", "-b", "main", ".")
    for name, text in files:
        box.write(name, text)
    box.host("git", "add", "-A")
    box.host("git", *WHO, "commit", "-qm", "first")


def inside(box, script, rc=0, name="box", options=()):
    r = box.cli("run", "--name", name, "--mode", "clone", *options, "--", "sh", "-c", script)
    eq(r.rc, rc, f"{script}: {r.err}")
    return r


COMMIT = "git -c user.name=agent -c user.email=a@a commit -qm agent"


@test
def what_commits_bring_is_named(box):
    """A checkout would bring what direct mode quarantines: named, and held back until that very commit is asked for."""
    repo(box)
    r = inside(box, "mkdir -p .vscode b/objects b/refs; echo x > .vscode/tasks.json; echo ref: refs/heads/main > b/HEAD;"
               "echo x > b/config; touch b/objects/x b/refs/x; echo p > plain; git add -f .; " + COMMIT)
    has(r.err, ".vscode/tasks.json: protected by '.vscode'", "b/config: git config", "2 paths in these commits", "'main' is held back")
    has_not(r.err, "plain")
    eq(box.host("git", "ls-remote", "vitrine/box", "refs/heads/*", "refs/waiting/*"), "", "nothing came")
    head = re.search(r"--commit main=([0-9a-f]{40}) box", r.err).group(1)
    eq(box.cli("fetch", "box").out, "no commits were taken; 1 branch is held back\n")
    has(box.cli("rm", "box").err, "main")  # what is held back waits, and is not lost by a word
    r = inside(box, f"git checkout -q -b good/one HEAD~1; echo g > g; git add g; {COMMIT}; git checkout -q main")
    has(r.err, "'main' is held back")
    has(box.host("git", "ls-remote", "vitrine/box"), "refs/heads/good/one")
    has_not(box.host("git", "ls-remote", "vitrine/box"), "refs/heads/main")
    got = json.loads(box.cli("fetch", "--json", "box").out)
    eq([(b["branch"], b["held"]) for b in got["branches"]], [("good/one", False), ("main", True)])
    inside(box, f"echo q > plain; git add .; {COMMIT}")
    refused(box.cli("fetch", "--commit", "old=" + "1" * 40, "box"), "the commits were not taken", rc=125)
    refused(box.cli("fetch", "--commit", "main=abc", "box"), "whole id")
    r = box.cli("fetch", "--commit", f"old={head}", "box")
    eq(r.rc, 0, r.err)
    has(r.err, ".vscode/tasks.json")
    has(r.out, head + "  old")
    eq(box.host("git", "ls-remote", "vitrine/box", "refs/heads/old").split()[0], head)
    # A branch where a directory was, and many that bring such a path.
    r = inside(box, f"git branch -D good/one -q; git branch good HEAD~2; for i in $(seq 90); do git branch n$i; done", 0)
    has(box.host("git", "ls-remote", "vitrine/box"), "refs/heads/good\n")
    has_not(box.host("git", "ls-remote", "vitrine/box"), "refs/heads/n")


@test
def commits_come_out_as_a_remote(box):
    repo(box)
    before = sorted(os.listdir(box.ws))
    r = inside(box, f"cat a; git branch --show-current; git status -s; echo 2 > b; git add b; {COMMIT}; echo wip > c")
    eq(r.out, "1\nmain\n")
    has(r.err, "git fetch vitrine/box")
    eq(sorted(os.listdir(box.ws)), before, "nothing reaches the workspace")
    box.host("git", "fetch", "-q", "vitrine/box")
    eq(box.host("git", "log", "--format=%s", "vitrine/box/main").strip(), "agent\nfirst")
    eq(box.host("git", "show", "vitrine/box/main:b"), "2\n")
    eq(inside(box, "cat c; git log --format=%s").out, "wip\nagent\nfirst\n", "and it is there the next time")
    got = json.loads(box.cli("fetch", "--json", "box").out)
    eq([(b["branch"], b["changed"]) for b in got["branches"]], [("main", False)])
    box.write("h", "host\n")
    box.host("git", "add", "-A")
    box.host("git", *WHO, "commit", "-qm", "second")
    eq(inside(box, "git fetch -q host && git -c user.name=a -c user.email=a@a merge -q -m m host/main && cat h").out, "host\n", "the host's commits are there")
    inside(box, "git checkout -q -b topic; git branch -D main -q")
    box.host("git", "fetch", "-q", "--prune", "vitrine/box")
    eq(box.host("git", "branch", "-r").split(), ["vitrine/box/topic"])
    eq(box.cli("rm", "box").rc, 0)
    has_not((box.ws / ".git/config").read_text(), "vitrine/box")


@test
def back_and_fork(box):
    repo(box)
    inside(box, f"echo 2 > b; git add b; {COMMIT}")
    eq(box.cli("checkpoint", "box").rc, 0)
    inside(box, "/bin/rm -rf .git a b", 0)
    eq(box.cli("undo", "box").rc, 0)
    eq(inside(box, "git status -s; cat a b").out, "1\n2\n")
    eq(box.cli("fork", "box", "two").rc, 0)
    eq(box.cli("rm", "--force", "box").rc, 0)
    eq(inside(box, "git fsck --no-progress && git log --format=%s", name="two").out, "agent\nfirst\n")
    refused(box.cli("diff", "two"), "fetch two")
    refused(box.cli("apply", "two"), "fetch two")
    refused(box.cli("save", "two", "tag"), "which borrows objects", "fetch two", rc=125)


@test
def what_cannot_be_a_clone_is_refused(box):
    refused(box.cli("run", "--name", "box", "--mode", "clone", "--", "true"), "needs a git repository")
    repo(box)
    refused(box.cli("run", "--mode", "clone", "--", "true"), "--name")
    eq(box.cli("run", "--name", "rev", "--mode", "review", "--", "touch", "x").rc, 0)
    refused(box.cli("run", "--name", "rev", "--mode", "clone", "--", "true"), "keeps it")
    refused(box.cli("fetch", "rev"), "does not work in a clone")
    # A .git file that leads to a repository which knows nothing of it: another project's content.
    other = box.home / "other"
    other.mkdir()
    box.own(other)
    subprocess.run(["git", "-C", str(other), "init", "-q"], check=True)
    box.own(other)
    subprocess.run(["mv", str(box.ws / ".git"), str(box.ws / "was")], check=True)
    box.write(".git", f"gitdir: {other}/.git\n")
    r = box.cli("run", "--name", "box", "--mode", "clone", "--", "true")
    eq(r.rc, 125, r.err)
    has(r.err, "does not know this worktree")


@test
def a_linked_worktree_works(box):
    repo(box)
    box.host("git", "worktree", "add", "-q", "-b", "side", str(box.home / "side"))
    box.own(box.home / "side")
    box.own(box.ws)
    r = box.cli("run", "--name", "w", "--mode", "clone", "--workspace", str(box.home / "side"), "--", "git", "branch",
                "--show-current")
    eq((r.rc, r.out), (0, "side\n"), r.err)


@test
def the_workspaces_own_configuration_runs_nothing(box):
    """An earlier sandbox, or anybody, may have written it."""
    repo(box)
    canary = box.home / "ran"
    for key in ("core.fsmonitor", "uploadpack.packObjectsHook", "core.alternateRefsCommand", "core.sshCommand"):
        box.host("git", "config", key, f"touch {canary}; cat")
    (box.ws / ".git/hooks").mkdir(exist_ok=True)
    for hook in ("reference-transaction", "post-checkout", "post-upload-pack"):
        box.write(f".git/hooks/{hook}", f"#!/bin/sh\ntouch {canary}\n", 0o755)
    inside(box, f"echo 2 > b; git add b; {COMMIT}")
    eq(box.cli("fetch", "box").rc, 0)
    eq(canary.exists(), False, "it ran on the host")


BAD_TREE = b"100644 .git/config\0" + bytes.fromhex("e69de29bb2d1d6434b8b29ae775ad8c2e48c5391")


@test
def objects_are_checked(box):
    """What git on the host would stumble over does not come out: a tree that names .git/config."""
    repo(box)
    raw = b"tree %d\0" % len(BAD_TREE) + BAD_TREE
    tree = sha1(raw).hexdigest()
    packed = zlib.compress(raw).hex()
    inside(box, "git hash-object -w --stdin </dev/null; "
           f"mkdir -p .git/objects/{tree[:2]}; python3 -c \"import sys;open('.git/objects/{tree[:2]}/{tree[2:]}','wb')"
           f".write(bytes.fromhex('{packed}'))\"; "
           f"c=$(git -c user.name=a -c user.email=a@a commit-tree {tree} -m bad -p HEAD) && git branch bad $c")
    r = box.cli("fetch", "box")
    eq(r.rc, 125, r.out)
    has(r.err, "were not taken")
    bare = box.state / "sandboxes/box/repo.git"
    eq((bare / "refs/heads/bad").exists(), False)
    inside(box, "git branch -q -D bad; git branch good")
    eq(box.cli("fetch", "box").rc, 0)
    eq((bare / "refs/heads/good").exists(), True)


@test
def a_repository_that_was_tampered_with_is_refused(box):
    repo(box)
    inside(box, "true")
    bare = box.state / "sandboxes/box/repo.git"
    (bare / "objects/info/alternates").write_text("/elsewhere\n")
    r = box.cli("fetch", "box")
    eq(r.rc, 125, r.out)
    has(r.err, "another repository's objects")


if __name__ == "__main__":
    sys.exit(main())
