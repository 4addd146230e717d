#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of a workspace: make, list, compare, go back; killed at every step; a full disk."""

import json
import os
import shutil
import subprocess
import sys

from harness import eq, files, has, has_not, main, refused, test


def state_of(box):
    """All names of the workspace with mode and content: what a restore must bring back."""
    out = {}
    for base, dirs, files in os.walk(os.fsencode(box.ws)):
        for name in dirs + files:
            p = os.path.join(base, name)
            st = os.lstat(p)
            if os.path.islink(p):
                what = os.readlink(p)
            elif os.path.isfile(p):
                with open(p, "rb") as f:
                    what = f.read()
            else:
                what = None
            out[os.path.relpath(p, os.fsencode(box.ws))] = (st.st_mode, what)
    return out


def done(box, *args, rc=0):
    r = box.cli(*args)
    eq(r.rc, rc, f"{args}: {r.err}")
    return r


def fill(box):
    box.write("a.txt", "one\ntwo\n")
    box.write("dir/b.sh", "#!/bin/sh\n", 0o755)
    box.write("dir/deep/c", b"\x00\x01")
    (box.ws / "link").symlink_to("a.txt")
    os.link(box.ws / "a.txt", box.ws / "hard")
    box.own(box.ws)


@test
def everything_comes_back(box):
    fill(box)
    before = state_of(box)
    has(done(box, "checkpoint", "-m", "good").out, "checkpoint 1: 5 files")
    box.ok("rm -rf a.txt dir link hard; mkdir a.txt; echo x > dir; echo new > new")
    has(done(box, "undo").out, "back at checkpoint 1", "'vitrine restore 2' takes this back")
    eq(state_of(box), before)
    eq(os.stat(box.ws / "hard").st_ino, os.stat(box.ws / "a.txt").st_ino, "one file, two names")
    done(box, "restore", "2")
    eq(box.read("new"), "new\n")
    eq((box.ws / "a.txt").is_dir(), True)


@test
def undo_again_goes_further_back(box):
    for text in ("1", "2", "3"):
        box.write("f", text)
        if text != "3":
            done(box, "checkpoint")
    done(box, "undo")
    eq(box.read("f"), "2")
    done(box, "undo")
    eq(box.read("f"), "1")
    refused(box.cli("undo"), "no checkpoint to go back to", rc=125)


@test
def diff_in_all_forms(box):
    fill(box)
    done(box, "checkpoint")
    box.write("a.txt", "one\n2\n")
    os.remove(box.ws / "hard")
    os.rename(box.ws / "dir/b.sh", box.ws / "moved.sh")
    box.write("odd\nname", "x")
    (box.ws / "dir/deep/c").write_bytes(b"\x00\x02")
    patch = done(box, "diff").out
    has(patch, "--- a/a.txt", "-two\n+2\n", "rename from dir/b.sh\nrename to moved.sh", '"b/odd\\nname"',
        "Binary files a/dir/deep/c and b/dir/deep/c differ", "deleted file mode 100644")
    names = done(box, "diff", "--name-only").out.splitlines()
    eq(sorted(names), sorted(["a.txt", "dir/deep/c", "hard", "moved.sh", '"odd\\nname"']))
    kinds = {c["path"]: c["kind"] for c in json.loads(done(box, "diff", "--json").out)["changes"]}
    eq(kinds, {"a.txt": "modified", "dir/deep/c": "modified", "hard": "removed", "moved.sh": "renamed",
               "odd\nname": "added"})
    has(done(box, "diff", "--stat", "a.txt").out, "M a.txt  +1 -1", "1 changed")
    refused(box.cli("diff", "--since", "9"), "no checkpoint 9", rc=125)
    refused(box.cli("diff", "/etc"), "is not in")


@test
def git_takes_the_patch(box):
    box.needs("git")
    fill(box)
    os.remove(box.ws / "hard")
    done(box, "checkpoint")
    shutil.copytree(box.ws, box.dir / "copy", symlinks=True)
    box.own(box.dir / "copy")
    box.write("a.txt", "one\nthree\nfour")
    box.write("dir/new", "n\n")
    os.chmod(box.ws / "a.txt", 0o755)
    os.remove(box.ws / "link")
    os.rename(box.ws / "dir/b.sh", box.ws / "dir/c.sh")
    patch = done(box, "diff").raw_out
    p = box.popen(["git", "apply", "-"], cwd=box.dir / "copy", stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    _, err = p.communicate(patch)
    eq(p.returncode, 0, err)
    for name in ("a.txt", "dir/new", "dir/c.sh"):
        eq((box.dir / "copy" / name).read_bytes(), (box.ws / name).read_bytes(), name)
    eq((box.dir / "copy" / "link").is_symlink(), False)


@test
def only_some_paths(box):
    box.write("a/x", "1")
    box.write("b/x", "1")
    done(box, "checkpoint")
    box.write("a/x", "2")
    box.write("b/x", "2")
    done(box, "restore", "1", "a")
    eq((box.read("a/x"), box.read("b/x")), ("1", "2"))


@test
def a_text_names_a_checkpoint(box):
    box.needs_step("layers")
    box.write("f", "1")
    done(box, "checkpoint", "-m", "tests pass")
    box.write("f", "2")
    has(done(box, "diff", "--since", "tests pass").out, "-1", "+2")
    done(box, "restore", "tests pass")
    eq(box.read("f"), "1")
    refused(box.cli("restore", "nothing"), "neither the number of a checkpoint nor the text", rc=125)
    refused(box.cli("diff", "--since", "nothing"), "neither the number", rc=125)
    done(box, "run", "--name", "box", "--mode", "review", "--", "sh", "-c", "echo 3 > f")
    done(box, "checkpoint", "box", "-m", "three")
    done(box, "run", "--name", "box", "--", "sh", "-c", "echo 4 > f")
    done(box, "restore", "box", "three")
    has(done(box, "diff", "box").out, "+3")


@test
def a_named_sandbox_comes_back_whole(box):
    """With its name a sandbox that works in place is meant with its home; without, the directory."""
    box.needs_step("layers")

    def inside(script):
        return done(box, "run", "--name", "box", "--", "sh", "-c", script).out

    box.write("f", "1")
    inside("echo home > ~/h; mkdir -m 0 ~/shut")
    has(done(box, "checkpoint", "box", "-m", "good").out, "with the home of 'box'")
    inside("rm -rf f ~/h; echo x > ~/x")
    r = done(box, "undo", "box")
    has(r.out, "the home is back too", "'vitrine restore box 3' takes this back")
    eq(inside("cat f ~/h; ls ~/x 2>/dev/null; stat -c %a ~/shut"), "1home\n0\n")
    # The files are the same: only the home differs.
    inside("rm ~/h")
    has(done(box, "undo", "box").out, "back at checkpoint 2: 0 written", "the home is back too")
    eq(inside("cat ~/h"), "home\n")
    done(box, "restore", "box", "3")
    eq(inside("ls f ~/h 2>/dev/null; cat ~/x"), "x\n", "and forward again")
    # The directory alone.
    has_not(done(box, "restore", "good").out, "home")
    eq(inside("cat f ~/x"), "1x\n")
    done(box, "checkpoints", "box", "--keep", "1")
    listed = json.loads((box.state / "sandboxes/box/layers.json").read_text())
    eq(listed["points"], [], "what nobody can go back to is not kept")


@test
def what_runs_stands_still_for_it(box):
    """Two files that are always written together are the same in every checkpoint."""
    p = box.start("run", "--name", "box", "--", "sh", "-c",
                  "echo up; i=0; while [ ! -e stop ]; do i=$((i+1)); echo $i > a; echo $i > b; done; echo end")
    eq(p.stdout.readline(), b"up\n")
    for i in range(6):
        r = json.loads(done(box, "checkpoint", *(["box"] if i % 2 else []), "--json").out)
        eq((r["paused_ms"] > 0, r["home"]), (True, False))
    eq(box.cli("exec", "box", "--", "touch", "stop").rc, 0)
    eq(p.stdout.readline(), b"end\n", "it went on")
    box.finish(p)
    eq(json.loads(done(box, "checkpoint", "--json").out)["paused_ms"], 0)
    for i in range(1, 7):
        done(box, "restore", str(i + 1), "--force")
        a, b = int(box.read("a") or 0), int(box.read("b") or 0)
        eq(not a or not b or a - b in (0, 1), True, f"{a} {b}: one of them went on")


@test
def a_slip_is_not_a_success(box):
    box.needs_step("layers")
    """A word that is neither a sandbox nor a path: nothing is done, and it is said."""
    box.write("f", "1")
    box.write("gone", "1")
    done(box, "checkpoint")
    box.write("f", "2")
    os.remove(box.ws / "gone")
    for args in (("undo", "slip"), ("restore", "1", "slip"), ("diff", "slip"), ("diff", "f", "slip")):
        refused(box.cli(*args), "'slip' is neither a sandbox nor a path here", rc=125)
    eq(len(json.loads(done(box, "checkpoints", "--json").out)["checkpoints"]), 1, "nothing was saved for nothing")
    done(box, "restore", "1", "gone")
    eq((box.read("gone"), box.read("f")), ("1", "2"))
    done(box, "run", "--name", "box", "--mode", "review", "--", "sh", "-c", "echo 3 > f; rm gone")
    for args in (("apply", "slip"), ("apply", "box", "slip"), ("discard", "box", "slip"), ("diff", "box", "slip")):
        refused(box.cli(*args), "'slip' is neither a sandbox nor a path here", rc=125)
    done(box, "discard", "box", "gone")
    done(box, "apply", "--yes", "box", "f")
    eq((box.read("f"), box.read("gone")), ("3\n", "1"))


def ids(box, kind=None):
    listed = json.loads(done(box, "checkpoints", "--json").out)["checkpoints"]
    return [c["checkpoint"] for c in listed if kind in (None, c["kind"])]


@test
def the_inside_does_not_choose(box):
    """A checkpoint that was asked for inside is gone back to by its number alone, and compared with only when named."""
    box.write("f", "1")
    done(box, "checkpoint", "-m", "good")
    box.write("f", "2")
    done(box, "checkpoint", "--inside", "-m", "good")
    box.write("f", "3")
    has(done(box, "diff").out, "-1", "+3")
    done(box, "restore", "good")
    eq(box.read("f"), "1", "the text of the inside's is not asked for")
    done(box, "restore", str(ids(box)[-1]))
    done(box, "undo")
    eq(box.read("f"), "1", "the host's own")
    done(box, "restore", str(ids(box, "inside")[0]))
    eq(box.read("f"), "2", "by its number")
    for n in range(3):
        done(box, "checkpoint", "--inside", "-m", str(n))
    done(box, "checkpoints", "--keep", "2")
    eq((len(ids(box, "inside")), len(ids(box)) - len(ids(box, "inside"))), (2, 2), "the host's are not pushed out")


@test
def an_old_record_of_the_inside(box):
    """A record of an earlier version says so in its text alone."""
    box.write("f", "1")
    done(box, "checkpoint")
    box.write("f", "2")
    done(box, "checkpoint", "-m", "asked for inside: x")
    box.write("f", "3")
    done(box, "undo")
    eq(box.read("f"), "1")


@test
def what_a_sandbox_may_have_written_is_judged(box):
    """What the quarantine takes does not come back with a checkpoint; the host's own does."""
    box.needs("git")
    box.host("git", "init", "-q", ".")
    box.write(".git/hooks/pre-commit", "mine\n", 0o755)
    box.write("f", "1")
    box.own(box.ws)
    done(box, "run", "--name", "box", "--", "true")
    # As the inside has it in the moment before it is taken away. This one, under review, takes nothing away.
    q = box.start("run", "--name", "other", "--mode", "review", "--", "sh", "-c", "echo up; exec sleep 60")
    eq(q.stdout.readline(), b"up\n")
    for path in ("b/refs/x", "b/objects/x", "b/HEAD"):
        box.write(path, "x")
    for path, text in ((".vscode/tasks.json", "x\n"), ("b/config", "[core]\n\tfsmonitor = ./x\n"), (".git/hooks/pre-push", "x\n")):
        box.write(path, text)
    box.own(box.ws)
    number = json.loads(done(box, "checkpoint", "--inside", "--json", "--workspace", str(box.ws)).out)["checkpoint"]
    box.stop(q)
    for path in (".vscode/tasks.json", "b/config", ".git/hooks/pre-push"):
        os.remove(box.ws / path)
    box.write(".git/hooks/pre-commit", "edited\n", 0o755)
    box.own(box.ws)
    r = done(box, "restore", "--force", str(number), rc=1)
    for path in (".vscode/tasks.json", "b/config", ".git/hooks/pre-push"):
        has(r.err, f"kept {path}: ")
        eq((box.ws / path).exists(), False, path)
    eq(box.read(".git/hooks/pre-commit"), "mine\n", "the same as the host had before the run")
    done(box, "restore", "--force", str(number), ".vscode/tasks.json")
    eq(box.read(".vscode/tasks.json"), "x\n", "its very path is the way in")
    os.remove(box.ws / ".git/hooks/pre-commit")
    done(box, "undo", "--force")
    eq(box.read(".git/hooks/pre-commit"), "mine\n", "a checkpoint of before the run is the host's own")


@test
def no_name_is_invisible(box):
    box.write("f", "1")
    done(box, "checkpoint")
    name = ".vitrine-tmp-0123456789abcdef"
    box.write(name, "x")
    box.write(".vitrine-tmp-dir/x", "x")
    has(done(box, "diff", "--name-only").out, name, ".vitrine-tmp-dir/x")
    done(box, "undo")
    eq(sorted(os.listdir(box.ws)), ["f"])


@test
def ignored_directories(box):
    box.write(".gitignore", "/node_modules\n")
    box.write("node_modules/m", "big")
    box.write("src/f", "1")
    has(done(box, "checkpoint").out, "1 directories left out")
    shutil.rmtree(box.ws / "src")
    box.write("node_modules/n", "more")
    done(box, "undo")
    eq((box.read("src/f"), box.read("node_modules/n")), ("1", "more"))
    has_not(done(box, "checkpoint", "--all").out, "left out")


@test
def thinning_out(box):
    for i in range(5):
        box.write("f", str(i) * 2000)
        done(box, "checkpoint", "-m", f"number {i}")
    has(done(box, "checkpoints", "--keep", "2").out, "removed 3 checkpoints")
    listed = json.loads(done(box, "checkpoints", "--json").out)["checkpoints"]
    eq([c["message"] for c in listed], ["number 3", "number 4"])
    box.write("f", "x")
    done(box, "restore", str(listed[0]["checkpoint"]))
    eq(box.read("f"), "3" * 2000)
    refused(box.cli("checkpoints", "--keep", "0"), "--keep")


@test
def nothing_of_the_repository_runs(box):
    """Hooks, filters and drivers that git would run are not ours to run."""
    box.needs("git")
    box.host("git", "init", "-q", ".")
    box.write(".gitattributes", "* filter=evil diff=evil\n")
    box.write(".git/config", "[filter \"evil\"]\n\tclean = touch ran\n\tsmudge = touch ran\n[diff \"evil\"]\n"
              "\ttextconv = touch ran\n[core]\n\tfsmonitor = touch ran\n")
    box.write("f", "1")
    done(box, "checkpoint")
    box.write("f", "2")
    done(box, "diff")
    done(box, "undo")
    eq((box.ws / "ran").exists(), False)


@test
def a_hostile_link_leads_nowhere(box):
    """A directory that became a link to outside is replaced, not followed."""
    outside = box.dir / "outside"
    outside.mkdir()
    (outside / "f").write_text("untouched")
    box.own(outside)
    box.write("d/f", "inside")
    done(box, "checkpoint")
    shutil.rmtree(box.ws / "d")
    (box.ws / "d").symlink_to(outside)
    box.own(box.ws)
    done(box, "undo")
    eq((outside / "f").read_text(), "untouched")
    eq((box.read("d/f"), (box.ws / "d").is_symlink()), ("inside", False))


# ---- killed, and out of space


def syscalls(box, args, calls):
    """How often a command makes these calls, by strace."""
    log = box.dir / "strace.log"
    p = box.popen(["strace", "-f", "-qq", "-o", log, "-e", "trace=" + calls, box.program, *args],
                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.communicate(timeout=30)
    names = [line.split("(")[0].split()[-1] for line in log.read_text(errors="replace").splitlines() if "(" in line]
    return names


STRIDE = int(os.environ.get("VITRINE_KILL_STRIDE", "3"))    # 1: at every single call, as `make soak` does
CALLS = "openat,renameat,renameat2,unlinkat,write,fdatasync,fsync,mkdirat,linkat,symlinkat,fchmod,syncfs"


def inject(box, args, call, nth, what):
    p = box.popen(["strace", "-f", "-qq", "-o", box.dir / "inject.log", "-e", f"trace={call}", "-e",
                   f"inject={call}:{what}:when={nth}", box.program, *args],
                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.communicate(timeout=30)
    return p.returncode, (box.dir / "inject.log").read_text(errors="replace")


def reset_tree(box, base):
    for p in box.ws.iterdir():
        shutil.rmtree(p) if p.is_dir() and not p.is_symlink() else p.unlink()
    files("rm", "-rf", box.state)
    shutil.copytree(base / "ws", box.ws, symlinks=True, dirs_exist_ok=True)
    files("cp", "-a", base / "state", box.state)
    box.own(box.ws)
    box.own(box.dir / "state")


def prepare_fault(box):
    """Checkpoint 1 of one tree, and another tree lying there now; kept to start every try from."""
    fill(box)
    old = state_of(box)
    done(box, "checkpoint")
    box.ok("rm -rf dir link; echo changed > a.txt; mkdir n; echo 1 > n/1; chmod 600 hard")
    new = state_of(box)
    base = box.dir / "base"
    shutil.copytree(box.ws, base / "ws", symlinks=True)
    files("cp", "-a", box.state, base / "state")
    return base, old, new


def at_every_call(box, args, what, check):
    """Fault number n of every kind of call, for all n the command makes; every injection must have happened."""
    base, old, new = prepare_fault(box)
    names = syscalls(box, args, CALLS)
    tried = 0
    for call in sorted(set(names)):
        for nth in range(1, names.count(call) + 1, STRIDE):
            reset_tree(box, base)
            rc, log = inject(box, args, call, nth, what)
            injected = "INJECTED" in log or "killed by SIGKILL" in log
            eq(injected, True, f"{call} number {nth} was not hit")
            check(call, nth, rc, old, new)
            tried += 1
    if tried < (20 if STRIDE == 1 else 10):
        raise AssertionError(f"only {tried} faults were tried")


@test
def a_restore_of_one_path_that_was_killed(box):
    """What comes after it does not restore the rest, which nobody asked for."""
    box.write("f", "1")
    box.write("g", "1")
    done(box, "checkpoint")
    box.write("f", "2")
    box.write("g", "2")
    inject(box, ["restore", "1", "f"], "syncfs", 1, "signal=SIGKILL")
    done(box, "checkpoints")
    eq((box.read("f"), box.read("g")), ("1", "2"))
    eq([n for n in os.listdir(box.ws) if n.startswith(".vitrine")], [])


@test(timeout=240, who=("user",))
def killed_during_a_checkpoint(box):
    box.needs("strace")

    def check(call, nth, rc, old, new):
        where = f"{call} number {nth}"
        eq(state_of(box), new, where + ": a checkpoint changes nothing")
        listed = json.loads(done(box, "checkpoints", "--json").out)["checkpoints"]
        if len(listed) not in (1, 2):
            raise AssertionError(f"{where}: {listed}")
        done(box, "restore", str(listed[-1]["checkpoint"]))
        eq(state_of(box), old if len(listed) == 1 else new, where)

    at_every_call(box, ["checkpoint"], "signal=SIGKILL", check)


@test(timeout=400, who=("user",))
def killed_during_a_restore(box):
    """Whenever it dies, the next command carries it to its end; what was there is saved."""
    box.needs("strace")

    def check(call, nth, rc, old, new):
        where = f"{call} number {nth}"
        r = done(box, "checkpoints", "--json")
        now = state_of(box)
        if now not in (old, new):
            raise AssertionError(f"{where}: neither old nor new: {sorted(now)}; {r.err}")
        listed = json.loads(r.out)["checkpoints"]
        if now == old:
            done(box, "restore", str(listed[-1]["checkpoint"]))
            eq(state_of(box), new, where + ": the present was saved")

    at_every_call(box, ["undo"], "signal=SIGKILL", check)


@test(timeout=400, who=("user",))
def disk_full_during_a_checkpoint_and_a_restore(box):
    """Every call that can say ENOSPC says it once. Either it worked, or it is as before, or it is finished later."""
    box.needs("strace")
    calls = "write,openat,renameat,fdatasync,fsync,mkdirat,linkat,symlinkat"
    base, old, new = prepare_fault(box)
    for args in (["checkpoint"], ["undo"]):
        names = syscalls(box, args, calls)
        for call in sorted(set(names)):
            for nth in range(1, names.count(call) + 1, STRIDE):
                reset_tree(box, base)
                rc, log = inject(box, args, call, nth, "error=ENOSPC")
                where = f"{args[0]}: {call} number {nth}"
                eq("INJECTED" in log, True, where + " was not hit")
                listed = done(box, "checkpoints", "--json")
                now = state_of(box)
                if args[0] == "checkpoint":
                    eq(now, new, where)
                elif now not in (old, new):
                    # A file that could not be written is named, and the present is saved.
                    if rc == 0:
                        raise AssertionError(f"{where}: half done and called a success")
                    done(box, "restore", str(json.loads(listed.out)["checkpoints"][-1]["checkpoint"]))
                    eq(state_of(box), new, where)


if __name__ == "__main__":
    sys.exit(main())
