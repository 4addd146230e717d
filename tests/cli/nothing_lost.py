#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Nothing is lost: what removes something says what waits there, and leaves it unless it is told otherwise."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness import below, eq, has, has_not, main, refused, soon, test

GIT = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main", "-c", "safe.directory=*"]


def git(box, *argv):
    return box.host("git", *GIT, *argv, cwd=box.ws)


def waits(box, name):
    return {r["name"]: r["waits"] for r in json.loads(box.cli("ls", "--json").out)}.get(name, "gone")


def review(box, name="box", script="echo new >a; mkdir d; echo b >d/b; rm gone"):
    box.write("gone", "x")
    return box.cli("run", "--name", name, "--mode", "review", "--", "sh", "-c", script)


# ---------------------------------------------------------------------------------------- review


@test
def changes_under_review(box):
    r = review(box)
    eq(r.rc, 0, r.err)
    eq(r.err, "vitrine: 'box' keeps 3 changes: 'vitrine diff box' shows them, 'vitrine apply box' takes them over\n")
    eq(waits(box, "box"), "3 changes")
    has(box.cli("ls").out, "WAITS", "3 changes")
    refused(box.cli("rm", "box"), "'box' was not removed: it holds 3 changes. 'vitrine diff box' shows them", "'vitrine apply box'",
            "'vitrine rm --force box' removes it with that work", rc=125)
    box.ok("true", "--name", "plain")
    r = box.cli("rm", "--all")
    eq((r.rc, r.out), (125, ""))
    has(r.err, "'box' was not removed")
    eq((waits(box, "box"), waits(box, "plain")), ("3 changes", "gone"))
    # prune says the same, asks in the same words, and takes what is left.
    box.ok("true", "--name", "plain")
    r = box.cli("prune", "--dry-run")
    eq((r.rc, r.out), (0, "plain\n"))
    has(r.err, "'box' was not removed: it holds 3 changes")
    refused(box.cli("prune"), "nothing removed", "--yes", "--force")
    r = box.cli("prune", "--yes")
    eq((r.rc, r.out), (0, "plain\n"))
    has(r.err, "'box' was not removed")
    eq(waits(box, "box"), "3 changes")
    # A reset empties the home and nothing else.
    eq(box.cli("reset", "--dry-run", "box").out, "box\n")
    eq(box.cli("reset", "--force", "box").rc, 0)
    eq(waits(box, "box"), "3 changes")
    eq(box.cli("diff", "--name-only", "box").out.split(), ["a", "d/b", "gone"])
    # What is taken over waits no longer.
    eq(box.cli("apply", "--yes", "box").rc, 0)
    eq(waits(box, "box"), None)
    eq((box.read("a"), (box.ws / "gone").exists()), ("new\n", False))
    r = box.cli("rm", "box")
    eq((r.rc, r.err), (0, ""))


@test
def force_removes_it(box):
    review(box)
    eq(box.cli("rm", "--dry-run", "--force", "box").out, "box\n")
    eq(waits(box, "box"), "3 changes")
    eq(box.cli("rm", "--force", "box").rc, 0)
    eq(waits(box, "box"), "gone")
    review(box)
    eq(box.cli("prune", "--force").out, "box\n")
    eq(waits(box, "box"), "gone")


@test
def an_option_behind_a_name(box):
    """It is no second name: nothing is removed before the words are understood."""
    review(box)
    box.ok("true", "--name", "plain")
    box.cli("rm", "plain", "--dry-run")
    eq(waits(box, "plain"), None, "it is there")
    box.cli("rm", "plain", "box", "--no-such-option")
    eq((waits(box, "plain"), waits(box, "box")), (None, "3 changes"))
    for words in ["rm", "plain", "--", "--dry-run"], ["rm", "--", "plain", "-n"], ["reset", "--force", "--", "plain", "--dry-run"]:
        refused(box.cli(*words), "begins with '-' and is no name of a sandbox", "nothing was done")
    eq((waits(box, "plain"), waits(box, "box")), (None, "3 changes"))


@test
def report_for_machines(box):
    r = box.cli("run", "--json", "--name", "box", "--mode", "review", "--", "sh", "-c", "echo 1 >a")
    eq(r.json["waits"], "1 change")
    eq(r.err.count("\n"), 1, "the object is the last line")
    eq(box.cli("run", "--json", "--name", "direct", "--", "sh", "-c", "echo 1 >b").json["waits"], None)


@test
def discarded_is_not_gone(box):
    review(box)
    r = box.cli("discard", "--dry-run", "box")
    eq((r.rc, r.out.split()), (0, ["a", "d/b", "gone"]), r.err)
    eq(waits(box, "box"), "3 changes")
    r = box.cli("discard", "box")
    eq(r.rc, 0)
    has(r.out, "'vitrine restore box ")
    eq(waits(box, "box"), None)
    words = r.out.split("'vitrine ")[1].split("'")[0].split()
    eq(box.cli(*words).rc, 0)
    eq(waits(box, "box"), "3 changes")


@test
def what_cannot_be_read_waits(box):
    """A broken definition, or a workspace that is gone: the changes may still be wanted."""
    review(box)
    f = box.state / "sandboxes" / "box" / "sandbox.json"
    f.write_text("{}")
    refused(box.cli("rm", "box"), "it holds work that cannot be listed (its definition is damaged)", "'vitrine inspect box'", rc=125)
    eq(box.cli("rm", "--force", "box").rc, 0)


@test
def undo_names_the_run(box):
    """Which run is taken back is said; a run without a name makes no checkpoint, and the README does not claim it."""
    box.write("a", "mine")
    box.ok("echo agent >a", "--name", "box")
    r = box.cli("undo")
    eq((r.rc, box.read("a")), (0, "mine"), r.err)
    has(r.out, "taken back: all since ", "'before box'")
    has_not(r.out, "skipped")


@test
def undo_skips_a_run_that_changed_nothing(box):
    """The run before it is taken back, and both are named; what a run without a name wrote is never lost silently."""
    box.write("a", "mine")
    box.ok("echo agent >a", "--name", "box")
    box.ok("true", "--name", "idle")
    r = box.cli("undo", "--json")
    eq((r.rc, box.read("a")), (0, "mine"), r.err)
    eq((json.loads(r.out)["checkpoint"], json.loads(r.out)["skipped"]), (1, 2))
    box.ok("echo agent >a", "--name", "box")
    box.ok("true", "--name", "idle")
    r = box.cli("undo")
    eq((r.rc, box.read("a")), (0, "mine"), r.err)
    has(r.out, "skipped: nothing changed since checkpoint ", "'before idle'", "taken back: all since ", "'before box'")
    box.ok("echo agent >a", "--name", "box")
    box.ok("echo unnamed >a")
    r = box.cli("undo")
    eq((r.rc, r.out, box.read("a")), (125, "", "unnamed\n"))
    has(r.err, "kept a: edited since the sandbox ended", "by a run without a name", "--force")
    r = box.cli("undo", "--force")
    eq((r.rc, box.read("a")), (0, "mine"), r.err)


# ------------------------------------------------------------------------------- quarantine, copies


PLANT = "mkdir .vscode; printf 'a\\033[2Jb' >.vscode/tasks.json; echo 'x=1' >.envrc; echo kept >plain"


@test
def quarantined_is_not_gone(box):
    r = box.cli("run", "--name", "box", "--", "sh", "-c", PLANT)
    eq(r.rc, 0)
    has(r.err, "quarantined .envrc", "'vitrine quarantine ls box' lists", "'vitrine quarantine restore box PATH'")
    rows = json.loads(box.cli("quarantine", "ls", "--json").out)
    eq(sorted((q["name"], q["path"], q["rule"]) for q in rows), [("box", ".envrc", ".envrc"), ("box", ".vscode", ".vscode")])
    eq(box.cli("quarantine", "show", "box", ".envrc").out, "x=1\n")
    has(box.cli("quarantine", "show", "box", ".vscode").out, ".vscode/tasks.json")
    # Never over something, never through a link, not while a sandbox would take it again.
    box.write(".envrc", "mine")
    refused(box.cli("quarantine", "restore", "box", ".envrc"), "there is something at '.envrc'", rc=125)
    eq(box.read(".envrc"), "mine")
    (box.ws / ".envrc").unlink()
    p = box.named("other")
    soon((box.state / "sandboxes" / "other" / "control").exists, "its door is open")
    for words in [], ["--workspace", "."], ["--workspace", str(box.home / "link")]:
        if words:
            (box.home / "link").unlink(missing_ok=True)
            (box.home / "link").symlink_to(box.ws)
        refused(box.cli("quarantine", "restore", *words, "box", ".envrc"), f"sandbox 'other' is running in '{box.ws}'",
                "'vitrine stop other' first", rc=125)
    box.stop(p)
    r = box.cli("quarantine", "restore", "box", ".envrc", ".vscode")
    eq(r.rc, 0, r.err)
    eq((box.read(".envrc"), (box.ws / ".vscode/tasks.json").exists()), ("x=1\n", True))
    eq(json.loads(box.cli("quarantine", "ls", "--json").out), [])
    refused(box.cli("quarantine", "restore", "box", ".envrc"), "is not in the quarantine", rc=125)
    refused(box.cli("quarantine", "ls", "nobody"), "nothing of 'nobody'", rc=125)
    refused(box.cli("quarantine", "show", "../sandboxes", "x"), "nothing of", rc=125)
    refused(box.cli("quarantine", "restore", "box"), "which?")


@test
def restored_while_others_run(box):
    """A run elsewhere is no reason to wait; one here is, whether it has a name or not. A removed sandbox has no workspace."""
    eq(box.cli("run", "--name", "box", "--", "sh", "-c", PLANT).rc, 0)
    away = box.home / "away"
    away.mkdir()
    box.own(away)
    for ws, is_here in (away, False), (box.ws, True):
        p = box.start("run", "--workspace", str(ws), "--", "sh", "-c", "echo up; exec sleep 30")
        eq(p.stdout.readline(), b"up\n")
        soon(lambda: box.cli("ls", "--all", "-q").out.startswith(("run-", "box\nrun-")), "it can be found")
        name = next(n for n in box.cli("ls", "--all", "-q").out.split() if n.startswith("run-"))
        r = box.cli("quarantine", "restore", "box", ".envrc" if not is_here else ".vscode")
        if is_here:
            refused(r, f"sandbox '{name}' is running in '{box.ws}'", f"'vitrine stop {name}' first", rc=125)
        else:
            eq((r.rc, r.out), (0, f"restored {box.ws}/.envrc; programs on this host can now execute it\n"), r.err)
        box.stop(p)
    eq(box.cli("rm", "box").rc, 0)
    refused(box.cli("quarantine", "restore", "box", ".vscode", cwd=away), "the workspace of 'box' is not known", "--workspace DIR")
    eq(list(away.iterdir()), [])
    eq(box.cli("quarantine", "restore", "--workspace", str(box.ws), "box", ".vscode", cwd=away).rc, 0)
    eq((box.ws / ".vscode/tasks.json").exists(), True)
    # The directory that the file lay in is gone.
    box.cli("run", "--name", "box", "--", "sh", "-c", "mkdir sub; echo 1 >sub/.envrc")
    (box.ws / "sub").rmdir()
    refused(box.cli("quarantine", "restore", "box", "sub/.envrc"), "'sub/.envrc' cannot be restored: its directory 'sub' does not exist",
            "create it first", rc=125)


@test
def quarantined_of_runs_without_a_name(box):
    r = box.cli("run", "--", "sh", "-c", "mkdir d; ln -s /etc d/link; mkdir sub; echo 1 >sub/.envrc")
    name = json.loads(box.cli("quarantine", "ls", "--json").out)[0]["name"]
    has(r.err, f"'vitrine quarantine restore {name} PATH'")
    (box.ws / "sub").rename(box.ws / "real")
    (box.ws / "sub").symlink_to("real")
    r = box.cli("quarantine", "restore", name, "sub/.envrc")
    eq((r.rc, r.out), (125, ""), r.err)
    eq((box.ws / "real/.envrc").exists(), False)
    (box.ws / "sub").unlink()
    (box.ws / "real").rename(box.ws / "sub")
    eq(box.cli("quarantine", "restore", name, "sub/.envrc").rc, 0)
    eq(box.read("sub/.envrc"), "1\n")
    box.cli("run", "--name", "two", "--", "sh", "-c", PLANT)
    eq(box.cli("quarantine", "rm", "two", ".vscode").rc, 0)
    eq([q["path"] for q in json.loads(box.cli("quarantine", "ls", "--json", "two").out)], [".envrc"])
    eq(box.cli("quarantine", "rm", "two").rc, 0)
    eq(json.loads(box.cli("quarantine", "ls", "--json").out), [])


@test
def what_is_left_running_says_it_when_it_is_stopped(box):
    """Nobody waits for the end of a detached run: `stop` says what was taken meanwhile, and not what was taken before."""
    eq(box.cli("run", "-d", "--name", "box", "--", "sh", "-c", f"{PLANT}; sleep 60").rc, 0)
    soon(lambda: len(json.loads(box.cli("quarantine", "ls", "--json").out)) == 2, "both are taken")
    r = box.cli("stop", "--time", "0s", "box")
    eq(r.rc, 0, r.err)
    has(r.err, "2 quarantined while 'box' ran: 'vitrine quarantine ls box'", "'vitrine quarantine restore box PATH'")
    time.sleep(1.1)
    eq(box.cli("run", "-d", "--name", "box", "--", "sleep", "60").rc, 0)
    r = box.cli("stop", "--time", "0s", "box")
    eq((r.rc, r.err), (0, ""))


@test
def what_a_killed_sandbox_left_can_be_had_back(box):
    """A file that was replaced while the keeper could not look, and then was killed: the next start takes it, and says how to have it back."""
    box.write(".envrc", "before\n")
    p = box.named("box", stdin=subprocess.PIPE)
    keeper = next(pid for pid in below(os.getpid()) if b"keeper" in Path(f"/proc/{pid}/cmdline").read_bytes())
    time.sleep(0.2)  # what is known is put on record in the first moments of a run
    os.kill(keeper, signal.SIGSTOP)
    box.write("new", "after\n")
    (box.ws / "new").rename(box.ws / ".envrc")
    os.kill(keeper, signal.SIGKILL)
    box.finish(p)
    r = box.sh("ls -A")
    has(r.err, "a sandbox was killed here: quarantined .envrc", "'vitrine quarantine restore found-later PATH'")
    eq([(q["name"], q["path"]) for q in json.loads(box.cli("quarantine", "ls", "--json").out)], [("found-later", ".envrc")])
    eq(box.cli("quarantine", "show", "found-later", ".envrc").out, "after\n")
    (box.ws / ".envrc").unlink()
    eq(box.cli("quarantine", "restore", "found-later", ".envrc").rc, 0)
    eq(box.read(".envrc"), "after\n")
    eq(box.cli("rm", "box").rc, 0)


@test
def copies_into_memory(box):
    """Into the /tmp of a sandbox that does not run: it would be gone when the copy ends."""
    box.needs_native("where /tmp lies")
    f = box.write("f", "hello")
    box.ok("true", "--name", "box")
    for to in ("/tmp/f", "/var/tmp/f", "/dev/shm/f"):
        refused(box.cli("cp", f, f"box:{to}"), f"'{to}' is on a temporary file system, and sandbox 'box' is not running",
                "'vitrine start box'", rc=125)
    eq(box.cli("cp", f, f"box:{box.home}/f").rc, 0)
    eq(box.cli("cp", f, f"box:{box.ws}/g").rc, 0)
    # A volume lasts, at the place it has inside; where it lies on the host there is nothing inside.
    with tempfile.TemporaryDirectory(dir="/tmp") as host:
        box.own(Path(host))
        eq(box.cli("create", "--name", "vol", "--volume", f"{host}:/tmp/inside", "shell", ".").rc, 0)
        refused(box.cli("cp", f, f"vol:{host}/f"), "is on a temporary file system", rc=125)
        r = box.cli("cp", f, "vol:/tmp/inside/f")
        eq((r.rc, (Path(host) / "f").read_text()), (0, "hello"), r.err)
    eq(box.cli("start", "box").rc, 0)
    eq(box.cli("cp", f, "box:/tmp/f").rc, 0)
    eq(box.cli("exec", "box", "--", "cat", "/tmp/f").out, "hello")
    eq(box.cli("stop", "box").rc, 0)


# ---------------------------------------------------------------------------------------- clone


def repository(box):
    box.needs("git")
    box.write("a", "one\n")
    git(box, "init", "-q")
    git(box, "add", "a")
    git(box, "commit", "-qm", "first")


COMMIT = "git -c user.name=a -c user.email=a@example.org commit -qam"


@test(timeout=40)
def commits_of_a_clone(box):
    repository(box)
    r = box.cli("run", "--name", "box", "--mode", "clone", "--", "true")
    eq((r.rc, r.err), (0, ""), "nothing new waits")
    eq(waits(box, "box"), None)
    r = box.cli("run", "box", "--", "sh", "-c", f"echo two >>a; {COMMIT} second")
    eq(r.rc, 0, r.err)
    has(r.err, "'box' keeps commits on main: 'vitrine fetch box'", "'git fetch vitrine/box'")
    refused(box.cli("rm", "box"), "'box' was not removed: it holds commits on main", "'git fetch vitrine/box'", rc=125)
    has(box.cli("prune", "--yes").err, "'box' was not removed")
    # Taken is what a ref of the repository names, loose or packed.
    git(box, "fetch", "-q", "vitrine/box")
    eq(waits(box, "box"), None)
    git(box, "pack-refs", "--all")
    eq(waits(box, "box"), None)
    # A session of exec does not fetch by itself, and other branches and no branch count too.
    for script, text in ((f"echo 3 >>a; {COMMIT} third", "commits on main"),
                         (f"git checkout -qb fix; echo 4 >>a; {COMMIT} fourth", "commits on fix, main"),
                         ("git pack-refs --all", "commits on fix, main"),
                         (f"git checkout -q --detach; echo 5 >>a; {COMMIT} fifth", "commits on HEAD, fix, main")):
        eq(box.cli("exec", "box", "--", "sh", "-c", script).rc, 0)
        eq(waits(box, "box"), text, script)
    eq(box.cli("fetch", "box").rc, 0)
    git(box, "fetch", "-q", "vitrine/box")
    eq(waits(box, "box"), "commits on HEAD")
    eq(box.cli("rm", "--force", "box").rc, 0)
    has_not(git(box, "remote"), "vitrine/box")


@test(timeout=40)
def refs_that_the_inside_made_up(box):
    """The clone's refs are foreign bytes: links, pipes, directories and rubbish among them neither hang nor lead anywhere."""
    repository(box)
    box.cli("run", "--name", "box", "--mode", "clone", "--", "true")
    r = box.cli("exec", "box", "--", "sh", "-c",
                "cd .git/refs/heads; ln -s /etc/passwd link; mkfifo pipe; printf '%0100000d' 7 >big; printf 'ref: x' >sym;"
                "mkdir -p a/b/c; printf '%040d' 5 | tr 5 z >notahex; printf '%040d\\n' 5 >\"$(printf 'e\\033[31m')\"")
    eq(r.rc, 0, r.err)
    text = waits(box, "box")
    has_not(text, "\x1b", "link", "pipe", "notahex")
    has(text, "commits on ")
    eq(box.cli("rm", "--force", "box").rc, 0)


if __name__ == "__main__":
    sys.exit(main())
