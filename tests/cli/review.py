#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Changes that wait in layers: looked at, taken over, thrown away, frozen, forked."""

import json
import os
import shutil
import subprocess
import sys
import time

from harness import Skip, eq, files, has, has_not, main, refused, test


def done(box, *args, rc=0):
    r = box.cli(*args)
    eq(r.rc, rc, f"{args}: {r.out} {r.err}")
    return r


def inside(box, script, name="box", *options):
    box.needs_step("layers")
    r = box.cli("run", "--name", name, "--mode", "review", *options, "--", "sh", "-c", script)
    eq(r.rc, 0, f"{script}: {r.err}")
    return r.out


def tree_of(box):
    out = {}
    for base, dirs, files in os.walk(box.ws):
        for name in dirs + files:
            p = os.path.join(base, name)
            st = os.lstat(p)
            what = os.readlink(p) if os.path.islink(p) else open(p, "rb").read() if os.path.isfile(p) else None
            out[os.path.relpath(p, box.ws)] = (oct(st.st_mode), what)
    return out


def fill(box):
    box.write("a.txt", "one\ntwo\n")
    box.write("dir/b", "b\n")
    box.write("dir/sub/c", "c\n")
    box.write("gone", "g\n")
    (box.ws / "link").symlink_to("a.txt")
    box.own(box.ws)


CHANGE = ("echo ONE > a.txt; rm gone; rm -r dir/sub; mkdir new; echo n > new/n; chmod 755 dir/b; "
          "mv link link2; printf 'a\\0b' > bin")


@test
def nothing_reaches_the_host_before_apply(box):
    box.needs_step("layers")
    fill(box)
    before = tree_of(box)
    inside(box, CHANGE)
    eq(tree_of(box), before)
    kinds = {c["path"]: c["kind"] for c in json.loads(done(box, "diff", "--json").out)["changes"]}
    eq(kinds, {"a.txt": "modified", "gone": "removed", "dir/sub/c": "removed", "new/n": "added", "dir/b": "mode",
               "link": "removed", "link2": "added", "bin": "added"})
    eq(inside(box, "cat a.txt; ls"), "ONE\na.txt\nbin\ndir\nlink2\nnew\n", "and it is there the next time")
    r = done(box, "apply", "--links")
    has(r.out, "left in the sandbox: 0")
    eq(box.read("a.txt"), "ONE\n")
    eq(sorted(os.listdir(box.ws)), ["a.txt", "bin", "dir", "link2", "new"])
    eq(os.stat(box.ws / "dir/b").st_mode & 0o777, 0o755)
    eq(done(box, "diff").out, "")
    box.write("a.txt", "host again\n")
    eq(inside(box, "cat a.txt"), "host again\n", "what was taken over is the host's from then on")


@test
def only_what_is_named(box):
    box.needs_step("layers")
    fill(box)
    inside(box, CHANGE)
    done(box, "apply", "--yes", "new", "a.txt")
    eq((box.read("a.txt"), box.read("new/n"), (box.ws / "gone").exists()), ("ONE\n", "n\n", True))
    done(box, "discard", "gone", "dir")
    names = done(box, "diff", "--name-only").out.split()
    eq(sorted(names), ["bin", "link", "link2"])
    done(box, "discard")
    eq(done(box, "diff").out, "")
    eq(inside(box, "cat a.txt gone dir/sub/c"), "ONE\ng\nc\n")
    listed = json.loads(done(box, "checkpoints", "box", "--json").out)["checkpoints"]
    done(box, "restore", "box", str(listed[-1]["checkpoint"]))
    has(done(box, "diff", "--name-only").out, "link2")


@test
def a_host_edit_is_a_conflict(box):
    box.needs_step("layers")
    fill(box)
    inside(box, "echo agent > a.txt; echo agent > dir/b; rm gone; echo x > fresh")
    box.write("a.txt", "host\n")
    box.write("gone", "host\n")
    box.write("fresh", "host\n")
    has(done(box, "diff", "--stat").out, "M a.txt  +1 -1  ! conflict")
    r = done(box, "apply", rc=1)
    has(r.err, "a.txt: edited on the host", "gone: edited on the host", "fresh: edited on the host")
    eq((box.read("a.txt"), box.read("gone"), box.read("fresh"), box.read("dir/b")),
       ("host\n", "host\n", "host\n", "agent\n"))
    inside(box, "true")
    done(box, "apply", rc=1)
    eq(box.read("a.txt"), "host\n", "still a conflict after another session")
    done(box, "apply", "--force", "a.txt")
    eq(box.read("a.txt"), "agent\n")


@test
def what_runs_code_is_named_and_taken_one_by_one(box):
    box.needs_step("layers")
    box.needs("git")
    box.host("git", "init", "-q", ".")
    box.write("f", "1")
    inside(box, "mkdir -p .vscode sub/.git/hooks; echo '{}' > .vscode/tasks.json; echo x > sub/.git/hooks/pre-commit;"
           "echo y > g; ln -s /etc/passwd l; mkfifo p")
    (layer,) = (box.state / "layers").glob("*/fs")
    os.chmod(layer / "g", 0o4755)
    text = done(box, "diff", "--stat").out
    has(text, "! git hook: programs on the host read or run this", "! protected by '.vscode'")
    r = done(box, "apply", rc=1)
    has(r.err, ".vscode/tasks.json: protected by '.vscode'", "sub/.git/hooks/pre-commit: git hook", "l: a symbolic link",
        "p: a pipe, socket or device")
    eq(sorted(os.listdir(box.ws)), [".git", "f", "g", "sub"] if (box.ws / "sub").exists() else [".git", "f", "g"])
    eq(os.stat(box.ws / "g").st_mode & 0o7777, 0o755, "no set-user-id bit comes out")
    done(box, "apply", ".vscode", rc=1)
    eq((box.ws / ".vscode/tasks.json").exists(), False, "not through its directory")
    done(box, "apply", ".vscode/tasks.json")
    eq(box.read(".vscode/tasks.json"), "{}\n")


@test
def what_is_closed_is_said(box):
    """A directory that the reviewer may not look into: named by diff, left by apply, and nothing of it is lost."""
    box.needs_step("layers")
    inside(box, "mkdir d; echo evil > d/f; chmod 0 d; echo a > a")
    if not box.is_root:
        has(done(box, "diff", "box").out, "closed: what is in it cannot be seen")
        r = box.cli("apply", "box")
        eq((r.rc, box.read("a"), (box.ws / "d").exists()), (1, "a\n", False), r.err)
        has(r.err, "d: a directory that is closed to you")
        eq(inside(box, "chmod 755 d; cat d/f; cp -r d e; rm -r d; mv e d"), "evil\n")
    else:
        has(done(box, "diff", "box").out, "+evil")
    done(box, "apply", "--yes", "box")
    eq(box.read("d/f"), "evil\n")


@test
def what_git_would_run_is_held_back_by_content(box):
    """A bare repository, and new files that the host's configuration names: as in place, not by name alone."""
    box.needs_step("layers")
    box.needs("git")
    for args in (("init", "-q", "."), ("config", "core.hooksPath", "ours"), ("config", "filter.x.clean", "tools/clean.sh"),
                 ("config", "include.path", "../more.cfg")):
        box.host("git", *args)
    box.write("keep", "1")
    box.own(box.ws)
    inside(box, "git init -q --bare b; printf '\\tfsmonitor = ./x\\n' >> b/config; echo x > b/hooks/post-checkout; git init -q fine;"
           "mkdir ours tools; echo x > ours/pre-push; echo x > tools/clean.sh; echo x > tools/other; echo x > more.cfg")
    has(done(box, "diff", "--stat").out, "b/config  +5 -0  ! git config key core.fsmonitor")
    r = done(box, "apply", rc=1)
    for path in ("b/config", "b/hooks/post-checkout", "ours/pre-push", "tools/clean.sh", "more.cfg"):
        has(r.err, f"not taken over: {path}: ")
        eq((box.ws / path).exists(), False, path)
    eq((box.ws / "fine/.git/config").exists(), True, "a repository that only describes comes out")
    eq((box.ws / "tools/other").exists(), True)
    done(box, "apply", "--yes", "tools/clean.sh")
    eq(box.read("tools/clean.sh"), "x\n", "its very path is the way in")


@test
def what_completes_a_repository_later(box):
    box.needs_step("layers")
    box.needs("git")
    inside(box, "mkdir -p b/refs b/objects; printf '[core]\n\tfsmonitor = ./x\n' > b/config; touch b/refs/x b/objects/x")
    done(box, "apply", "--yes")
    eq((box.ws / "b/config").exists(), True, "no repository yet")
    inside(box, "echo 'ref: refs/heads/main' > b/HEAD")
    has(done(box, "apply", "--yes", rc=1).err, "b/HEAD: a repository with 'b/config': git config key core.fsmonitor")
    eq((box.ws / "b/HEAD").exists(), False)


@test
def what_is_taken_over_was_shown(box):
    box.needs_step("layers")
    box.write("a.txt", "one\n")
    box.own(box.ws)
    inside(box, "echo shown > a.txt")
    has(done(box, "diff").out, "+shown")
    inside(box, "echo other > a.txt")
    r = box.cli("apply")
    eq(r.rc, 125, r.err)
    has(r.err, "1 changes in 'box' were not shown before")
    has(r.out, "+other")
    eq(box.read("a.txt"), "one\n")
    done(box, "apply")
    eq(box.read("a.txt"), "other\n", "shown by the refusal")
    inside(box, "echo two > a.txt; echo b > b")
    token = json.loads(done(box, "diff", "--json").out)["shown"]
    has(done(box, "diff", "--stat").err, token)
    part = json.loads(done(box, "diff", "--json", "b").out)["shown"]
    refused(box.cli("apply", "--shown", part), "is not what was shown", rc=125)
    done(box, "apply", "--shown", part, "b")
    eq((box.read("a.txt"), box.read("b")), ("other\n", "b\n"))
    refused(box.cli("apply", "--shown", token), "is not what was shown", rc=125)
    inside(box, "chmod 755 a.txt")
    has(box.cli("apply").err, "were not shown")
    done(box, "apply", "box")
    eq((box.read("a.txt"), os.stat(box.ws / "a.txt").st_mode & 0o777), ("two\n", 0o755))


@test
def hide_and_protect_hold_on_the_overlay(box):
    box.needs_step("layers")
    box.needs("git")
    box.host("git", "init", "-q", ".")
    box.write(".env", "SECRET")
    box.write("vendor/.env", "SECRET")
    out = inside(box, "cat .env vendor/.env 2>&1; mv vendor v2 2>&1; echo x >> .git/config 2>&1; rm .env 2>&1; "
                 "echo 1 > .git/hooks/pre-commit 2>&1; cat v2/.env 2>&1; true")
    has_not(out, "SECRET")
    eq(done(box, "diff", "--name-only").out.strip() in ("", ".git/index"), True, "nothing of it came through")
    layers = box.state / "layers"
    found = subprocess.run(["grep", "-r", "SECRET", layers], capture_output=True).stdout
    eq(found, b"", "the secret was not copied into a layer")


@test(who=("user",))
def a_file_of_another_group(box):
    """It cannot be changed in a layer, and a line says why; it can be read and replaced."""
    if not box.account:
        raise Skip("only root gives a file to another group")
    box.write("f", "host\n")
    os.chown(box.ws / "f", -1, 0)
    r = box.cli("run", "--name", "box", "--mode", "review", "--", "sh", "-c", "cat f; echo no >>f")
    eq((r.rc, r.out), (2, "host\n"))
    has(r.err, "another owner or group", "in place")
    eq(inside(box, "rm f; echo new >f; cat f"), "new\n")
    eq(box.ok("echo more >>f; cat f"), "host\nmore\n")


@test
def layers_are_not_visible_inside(box):
    box.needs_step("layers")
    fill(box)
    out = inside(box, "find /.vitrine 2>/dev/null | sort; ls /.vitrine/layers/0 /.vitrine/layers/1; cat /proc/mounts")
    has_not(out, "a.txt", str(box.state))


@test
def checkpoints_freeze_and_undo_goes_back(box):
    box.needs_step("layers")
    fill(box)
    inside(box, "echo 1 > n")
    done(box, "checkpoint", "box", "-m", "first")
    inside(box, "echo 2 > n; rm -r dir")
    done(box, "checkpoint", "box")
    inside(box, "rm -rf * ; echo 3 > n")
    done(box, "undo", "box")
    eq(inside(box, "cat n; ls"), "2\na.txt\ngone\nlink\nn\n")
    done(box, "restore", "box", "1")
    eq(inside(box, "cat n; ls"), "1\na.txt\ndir\ngone\nlink\nn\n")
    refused(box.cli("restore", "box", "99"), "no checkpoint 99", rc=125)


@test
def what_changed_since_a_checkpoint(box):
    box.needs_step("layers")
    box.write("keep", "keep\n")
    box.write("d/base", "base\n")
    box.write("gone", "gone\n")
    box.write("big/x", "x\n")
    inside(box, "echo one > new; echo changed > keep; rm gone; rm -r big; echo d1 > d/one")
    done(box, "checkpoint", "box")
    inside(box, "echo two >> new; rm d/one; echo gone > gone; mkdir big; echo y > big/y; rm -r d; mkdir d; echo 2 > d/two; "
                "echo moved content > m1")
    done(box, "checkpoint", "box")
    inside(box, "mv m1 m2; chmod 600 new")
    names = lambda n: sorted(done(box, "diff", "--name-only", "--since", str(n), "box").out.split())  # noqa: E731
    points = json.loads(done(box, "checkpoints", "--json", "box").out)
    manual = [p["checkpoint"] for p in points["checkpoints"] if p["kind"] == "manual"]
    eq(names(manual[0]), ["big/y", "d/base", "d/one", "d/two", "gone", "m2", "new"])
    text = done(box, "diff", "--since", str(manual[0]), "box").out
    has(text, "+two", "-base")
    has_not(text, "changed")
    eq(json.loads(done(box, "diff", "--json", "--since", str(manual[1]), "box").out)["changes"][0]["kind"], "renamed")
    has(done(box, "diff", "--stat", "--since", str(manual[0]), "box", "d").out, "d/two")
    refused(box.cli("diff", "--since", "99", "box"), "no checkpoint 99", rc=125)


@test(timeout=60)
def many_checkpoints_stay_few_layers(box):
    box.needs_step("layers")
    fill(box)
    inside(box, "echo 0 > n; rm gone; mkdir shut ~/shut; echo s > shut/f; ln shut/f shut/hard; echo h > ~/shut/f; chmod 0 shut ~/shut; "
                "mkdir -m 1777 all; head -c 8M /dev/urandom > ~/big")
    for i in range(1, 30):
        box.cli("checkpoint", "box")
        inside(box, f"echo {i} > ~/n{i}; rm -f ~/n{i - 1}; echo {i} > n{i}; rm -f n{i - 1}; mkdir -p d/{i}; echo {i} > d/{i}/f")
    top = json.loads((box.state / "sandboxes/box/layers.json").read_text())
    if len(top["ws"]) > 25 or len(top["home"]) > 25:
        raise AssertionError(f"{len(top['ws'])} and {len(top['home'])} layers")
    eq(inside(box, "ls d | wc -l; ls gone 2>/dev/null; echo n* ~/n*").split(), ["29", "n", "n29", f"{box.home}/n29"])
    disk = json.loads(done(box, "ls", "--size", "--json", "box").out)[0]["disk"]
    eq(8 << 20 <= disk < 12 << 20, True, f"{disk} bytes: a file of two layers is counted once")
    eq(inside(box, "stat -c %a shut ~/shut all; chmod 700 shut ~/shut; cat shut/hard ~/shut/f; [ shut/f -ef shut/hard ] && echo one"),
       "0\n0\n1777\ns\nh\none\n", "what is closed, or has bits, came along")
    done(box, "restore", "box", "5")
    eq(inside(box, "ls d | wc -l").strip(), "4")


@test
def a_fork_shares_and_then_differs(box):
    box.needs_step("layers")
    fill(box)
    inside(box, "echo w > w; echo h > ~/h")
    eq(done(box, "fork", "box", "two").out, "two\n")
    eq(inside(box, "cat w ~/h; echo two > w; echo two > ~/h", "two"), "w\nh\n")
    eq(inside(box, "cat w ~/h"), "w\nh\n")
    eq(inside(box, "cat w ~/h", "two"), "two\ntwo\n")
    refused(box.cli("fork", "box", "two"), "already", rc=125)
    refused(box.cli("fork", "none", "x"), "there is no sandbox", rc=125)
    refused(box.cli("fork", "box", "-x"), "option '-x' is not known")
    refused(box.cli("fork", "box", "a/x"), "cannot be a name")


@test
def fresh_begins_with_an_empty_home(box):
    box.needs_step("layers")
    fill(box)
    inside(box, "echo h > ~/h")
    eq(inside(box, "ls ~", "box", "--fresh").split(), ["proj"] if (box.ws.parent == box.home) else [])
    listed = json.loads(done(box, "checkpoints", "box", "--json").out)["checkpoints"]
    done(box, "restore", "box", str(listed[-1]["checkpoint"]))
    has(inside(box, "ls ~"), "h")


@test
def what_is_kept_is_shown_and_bounded(box):
    box.needs_step("layers")
    inside(box, "dd if=/dev/zero of=$HOME/big bs=1M count=3 2>/dev/null; dd if=/dev/zero of=w bs=1M count=2 2>/dev/null")
    done(box, "checkpoint", "box")
    row = json.loads(done(box, "ls", "--size", "--json", "box").out)[0]
    eq(5 << 20 <= row["disk"] < 6 << 20, True, row["disk"])
    eq(json.loads(done(box, "ls", "--json", "box").out)[0]["disk"], None)
    has(done(box, "ls", "-s").out, "DISK")
    start = ("run", "--name", "box", "--mode", "review", "--disk")
    (box.state / "sandboxes" / "box" / "disk").unlink(missing_ok=True)  # ten minutes later
    refused(box.cli(*start, "4m,optional", "--", "true"), "keeps 5 MiB", "limit is 4", rc=125)
    done(box, *start, "16m,optional", "--", "true")
    refused(box.cli(*start, "16m", "--", "true"), "where the keeper looks", rc=125)


@test(timeout=60)
def what_is_kept_is_bounded_while_it_runs(box):
    """Wherever it lies, and though its directory is closed; what was written stays, and the next start says how to go on."""
    box.needs_step("layers")
    grow = "dd if=/dev/zero of={0} bs=1M count=24 2>/dev/null; {1}; echo up; sleep 30"
    for name, mode, script in (("home", "direct", grow.format("$HOME/big", "true")),
                               ("shut", "direct", grow.format("$HOME/d/big", "chmod 000 $HOME/d")),
                               ("ws", "review", grow.format("big", "true")),
                               ("many", "direct", "i=0; while [ $i -lt 7000 ]; do : > $HOME/$i; i=$((i+1)); done; echo up; sleep 30")):
        if mode == "review" and not box.has_step("layers"):
            continue
        r = box.cli("run", "--name", name, "--mode", mode, "--disk", "16m,optional", "--json", "--", "sh", "-c", "mkdir -p ~/d; " + script,
                    timeout=30)
        eq((r.rc, r.json["reason"], r.json["limits"]["disk"]["by"]), (137, "disk", "watched"), f"{name}: {r.err}")
        hit = [json.loads(line) for line in done(box, "events", "--json", name).out.splitlines() if "limit.hit" in line]
        eq([h["data"]["limit"] for h in hit], ["disk"], name)
    refused(box.cli("run", "--name", "home", "--disk", "16m,optional", "--", "true"), "keeps 24 MiB", "make room", rc=125)
    done(box, "run", "--name", "home", "--disk", "1g,optional", "--", "sh", "-c", "rm ~/big")
    r = done(box, "run", "--name", "home", "--disk", "16m,optional", "--", "sh", "-c", "sleep 1.5; " + grow.format("$HOME/big", "true"), rc=137)
    eq(r.err, "vitrine: ended: it keeps more on the disk than it may; nothing of it was removed (limit 16m)\n")


@test
def removal_frees_what_only_it_used(box):
    """Closed directories and all; what a fork still uses stays."""
    box.needs_step("layers")
    fill(box)
    inside(box, "mkdir -p ~/x/y w; echo 1 > ~/x/y/z; echo 1 > w/f; chmod 000 w ~/x/y ~/x")
    done(box, "fork", "box", "two")
    inside(box, "echo more > more")
    done(box, "rm", "--force", "box")
    eq(inside(box, "chmod -R 700 ~/x w; cat ~/x/y/z w/f", "two"), "1\n1\n")
    done(box, "rm", "--force", "two")
    eq([p.name for p in (box.state / "layers").iterdir()], ["lock"])


@test
def a_running_sandbox_is_left_alone(box):
    box.needs_step("layers")
    fill(box)
    p = box.start("run", "--name", "box", "--mode", "review", "--", "sh", "-c", "echo w > w; echo up; exec sleep 30")
    eq(p.stdout.readline(), b"up\n")
    refused(box.cli("discard"), "is running", rc=125)
    refused(box.cli("restore", "box", "1"), "is running", rc=125)
    has(done(box, "diff", "--name-only").out, "w")
    done(box, "apply", "w")
    eq(box.read("w"), "w\n")
    box.stop(p)


@test
def review_needs_a_name(box):
    refused(box.cli("run", "--mode", "review", "--", "true"), "needs a sandbox that lasts")
    refused(box.cli("run", "--mode", "clone", "--", "true"), "needs a sandbox that lasts")
    refused(box.cli("apply"), "no changes wait", rc=125)


# ---- automatic checkpoints of a workspace that is written in place


@test
def a_start_saves_the_workspace(box):
    box.write("f", "mine")
    box.cli("run", "--name", "box", "--", "sh", "-c", "rm f; echo new > g")
    has(done(box, "checkpoints").out, "start", "before box")
    done(box, "undo")
    eq((box.read("f"), (box.ws / "g").exists()), ("mine", False))


@test
def later_host_edits_are_not_overwritten(box):
    box.write("f", "mine")
    box.write("g", "mine")
    box.cli("run", "--name", "box", "--", "sh", "-c", "echo agent > f; echo agent > g")
    time.sleep(0.05)
    box.write("f", "host, later")
    r = box.cli("undo")
    eq(r.rc, 125, r.err)
    has(r.err, "kept f: edited since the sandbox ended", "--leave", "--force")
    eq((box.read("f"), box.read("g")), ("host, later", "agent\n"), "nothing was changed")
    done(box, "undo", "--leave")
    eq((box.read("f"), box.read("g")), ("host, later", "mine"))
    done(box, "undo", "--force")
    eq(box.read("f"), "mine")


@test
def a_checkpoint_of_a_running_sandbox(box):
    """All inside stand still for the copy, and go on after it."""
    box.needs_step("layers")
    fill(box)
    p = box.start("run", "--name", "box", "--mode", "review", "--", "sh", "-c",
                  "echo first > a.txt; rm gone; echo h > ~/h; echo up; i=0; while [ ! -e stop ]; do i=$((i+1)); echo $i > n; "
                  "done; echo last > a.txt; rm ~/h; echo end")
    eq(p.stdout.readline(), b"up\n")
    r = json.loads(done(box, "checkpoint", "--json", "box").out)
    has(str(sorted(r)), "paused_ms")
    eq(box.cli("restore", "box", str(r["checkpoint"])).rc, 125, "going back needs it to stand")
    eq(box.cli("exec", "box", "--", "touch", "stop").rc, 0)
    eq(p.stdout.readline(), b"end\n", "it went on")
    box.finish(p)
    eq(inside(box, "cat a.txt; ls ~/h 2>/dev/null; true"), "last\n")
    done(box, "restore", "box", str(r["checkpoint"]))
    eq(inside(box, "cat a.txt ~/h; ls gone 2>/dev/null; ls stop 2>/dev/null; true"), "first\nh\n")


@test
def who_is_inside_asks_for_one(box):
    """vitrine-checkpoint saves, once in ten seconds, and is all that the door without rules does."""
    box.needs_step("host sockets")  # that is what the door is
    fill(box)
    r = box.cli("run", "--name", "box", "--", "sh", "-c", "echo mine > a.txt; vitrine-checkpoint 'it works' && echo broken > a.txt; "
                "vitrine-checkpoint; echo $?; vitrine-checkpoint --x; echo $?; cat /run/nothing 2>/dev/null; true")
    eq(r.rc, 0, r.err)
    eq(r.out.splitlines()[-2:], ["125", "2"])
    has(r.err, "seconds old", "usage: vitrine-checkpoint")
    listed = json.loads(done(box, "checkpoints", "box", "--json").out)["checkpoints"]
    eq([c["message"] for c in listed if c["kind"] == "inside"], ["asked for inside: it works"])
    has(done(box, "diff", "box").out, "-one", "+broken")
    done(box, "undo", "box")
    eq(box.read("a.txt"), "one\ntwo\n", "the host's own checkpoint, not the one that was asked for")
    done(box, "restore", "--force", "box", str([c["checkpoint"] for c in listed if c["kind"] == "inside"][0]))
    eq(box.read("a.txt"), "mine\n")
    inside(box, "echo kept > a.txt; vitrine-checkpoint && echo lost > a.txt", "rev")
    refused(box.cli("undo", "rev"), "has no checkpoint to go back to", rc=125)
    done(box, "restore", "rev", "1")
    eq(inside(box, "cat a.txt", "rev"), "kept\n")
    eq(box.cli("run", "--", "sh", "-c", "vitrine-checkpoint").rc, 127, "nobody could come back to it")


# ---- killed, and out of space


KILL = "signal=SIGKILL"
FULL = "error=ENOSPC"
CALLS = {KILL: "openat,renameat,renameat2,rename,unlinkat,write,fdatasync,mkdir,mkdirat,symlinkat,fchmod,syncfs",
         FULL: "openat,renameat,renameat2,rename,write,fdatasync,mkdir,mkdirat,symlinkat,syncfs"}
STRIDE = int(os.environ.get("VITRINE_KILL_STRIDE", "5"))    # 1: at every single call, as `make soak` does


def persist(act):
    """A keeper still writes its record when its client has gone: what it does at the same time is tried again."""
    for left in range(40, -1, -1):
        try:
            return act()
        except (OSError, subprocess.CalledProcessError):
            if not left:
                raise
            time.sleep(0.05)


def at_every_call(box, args, what, base, check):
    def trace(*more):
        log = box.dir / "strace.log"
        p = box.popen(["strace", "-f", "-qq", "-o", log, *more, box.program, *args], stdin=subprocess.DEVNULL,
                      stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        p.communicate(timeout=60)
        return p.returncode, log.read_text(errors="replace")

    def again():
        for p in box.ws.iterdir():
            shutil.rmtree(p) if p.is_dir() and not p.is_symlink() else p.unlink()
        persist(lambda: files("rm", "-r", box.state))
        subprocess.run(["cp", "-a", f"{base}/ws/.", box.ws], check=True)
        files("cp", "-a", f"{base}/state", box.state)

    again()
    _, log = trace("-e", "trace=" + CALLS[what])
    names = [line.split("(")[0].split()[-1] for line in log.splitlines() if "(" in line]
    tried = 0
    for call in sorted(set(names)):
        for nth in range(1, names.count(call) + 1, STRIDE):
            again()
            rc, log = trace("-e", f"trace={call}", "-e", f"inject={call}:{what}:when={nth}")
            if "INJECTED" not in log and "killed by SIGKILL" not in log:
                raise AssertionError(f"{call} number {nth} was not hit")
            check(f"{args[0]}: {what} in {call} number {nth}", rc)
            tried += 1
    if tried < (15 if STRIDE == 1 else 8):
        raise AssertionError(f"only {tried} faults were tried")


def keep_base(box):
    base = box.dir / "base"
    base.mkdir()
    subprocess.run(["cp", "-a", box.ws, base / "ws"], check=True)
    persist(lambda: files("rm", "-rf", base / "state") and files("cp", "-a", box.state, base / "state"))
    return base


CHANGED = ["a.txt", "gone", "new/n"]


def prepare(box):
    box.needs_step("layers")
    box.needs("strace")
    fill(box)
    inside(box, "echo ONE > a.txt; rm gone; mkdir new; echo n > new/n; echo h > ~/h")
    return keep_base(box)


def differ(box):
    return sorted(done(box, "diff", "--name-only", "box").out.split())


def newest(box):
    return str(json.loads(done(box, "checkpoints", "box", "--json").out)["checkpoints"][-1]["checkpoint"])


def apply_fault(box, what):
    """Each file is the old or the new one, and saying it again finishes it."""
    def seen():
        return box.read("a.txt"), (box.ws / "gone").exists(), (box.ws / "new/n").exists() and box.read("new/n")

    def check(where, rc):
        now = seen()
        if now[0] not in ("one\ntwo\n", "ONE\n") or now[2] not in (False, "n\n"):
            raise AssertionError(f"{where}: half a file: {now}")
        if rc == 0:
            eq(now, ("ONE\n", False, "n\n"), where + ": called a success")
        r = box.cli("apply", "--yes", "--force", "box")
        eq(r.rc, 0, f"{where}: {r.err}")
        eq(seen(), ("ONE\n", False, "n\n"), where)
        eq([n for n in os.listdir(box.ws) if n.startswith(".vitrine")], [], where)

    at_every_call(box, ["apply", "--yes", "--force", "box"], what, prepare(box), check)


def checkpoint_fault(box, what):
    """The changes are all there, and there is a checkpoint of them or none."""
    def check(where, rc):
        eq(inside(box, "cat a.txt new/n ~/h; ls gone 2>/dev/null; true"), "ONE\nn\nh\n", where)
        listed = [c for c in json.loads(done(box, "checkpoints", "box", "--json").out)["checkpoints"] if c["kind"] == "manual"]
        eq(len(listed) in ((1,) if rc == 0 else (0, 1)), True, f"{where}: {listed}")
        if listed:
            done(box, "restore", "box", str(listed[0]["checkpoint"]))
            eq(differ(box), CHANGED, where)

    at_every_call(box, ["checkpoint", "box"], what, prepare(box), check)


def discard_fault(box, what):
    """All of them are there, in front or as a checkpoint; never some of them."""
    def check(where, rc):
        names = differ(box)
        eq(names in (([],) if rc == 0 else ([], CHANGED)), True, f"{where}: {rc} {names}")
        if not names:
            done(box, "restore", "box", newest(box))
            eq(differ(box), CHANGED, where)

    at_every_call(box, ["discard", "box"], what, prepare(box), check)


def restore_fault(box, what):
    """The state of the checkpoint, or that before; the latter is not lost."""
    prepare(box)
    files("rm", "-rf", box.dir / "base")
    done(box, "checkpoint", "box")
    inside(box, "rm -r new; echo later > later; rm ~/h")
    base, later = keep_base(box), ["a.txt", "gone", "later"]

    def check(where, rc):
        names = differ(box)
        eq(names in ((CHANGED,) if rc == 0 else (CHANGED, later)), True, f"{where}: {rc} {names}")
        if names == CHANGED:
            done(box, "restore", "box", newest(box))
            eq(differ(box), later, where)

    at_every_call(box, ["restore", "box", "1"], what, base, check)


def fault_test(name, fn, what):
    def body(box):
        fn(box, what)

    body.__name__ = name
    test(timeout=900 if STRIDE == 1 else 120, who=("user",))(body)


for word, kind in (("killed", KILL), ("disk_full", FULL)):
    for act, fault in (("an_apply", apply_fault), ("a_checkpoint", checkpoint_fault), ("a_discard", discard_fault),
                       ("a_restore", restore_fault)):
        fault_test(f"{word}_during_{act}", fault, kind)


if __name__ == "__main__":
    sys.exit(main())
