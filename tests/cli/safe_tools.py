#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Safe tools: the ordinary call is the real program's, the dangerous one is softened or refused with advice."""

import os
import sys

from harness import eq, has, has_not, main, refused, test

ON = ("--tools", "always")


@test
def first_on_path_where_wanted(box):
    eq(box.ok("which rm git find", *ON), "/.vitrine/tools/rm\n/.vitrine/tools/git\n/.vitrine/tools/find\n")
    has_not(box.ok("command -v rm; echo $PATH"), "/.vitrine/tools")
    eq(box.ok("command -v rm", "--name", "a"), "/.vitrine/tools/rm\n")
    has_not(box.ok("command -v rm", "--name", "b", "--tools", "never"), "/.vitrine/tools")
    # Whoever set PATH, and read-only for all.
    eq(box.ok("command -v rm; echo x 2>/dev/null > /.vitrine/tools/rm || echo no", *ON, "-e", "PATH=/usr/bin:/bin"),
       "/.vitrine/tools/rm\nno\n")
    d = box.config / "vitrine"
    d.mkdir()
    (d / "policy.jsonc").write_text('{"tools": {"use": "always", "off": ["rm"]}}')
    box.own(d)
    has_not(box.ok("command -v rm"), "/.vitrine/tools")
    eq(box.ok("command -v git"), "/.vitrine/tools/git\n")


@test
def ordinary_calls_are_the_real_thing(box):
    box.write("a.txt", "one\n")
    r = box.sh("""
        find . -name a.txt; echo a.txt | xargs cat; chmod 600 a.txt; dd if=a.txt 2>/dev/null; mv a.txt b.txt
        rm nothing; echo $?; rm -f nothing; echo $?; find . -nonsense 2>/dev/null; echo $?; rm --version | head -1
        rm -i b.txt < /dev/null; ls
    """, *ON)
    eq(r.out.split("\n")[:6], ["./a.txt", "one", "one", "1", "0", "1"])
    has(r.out, "rm (GNU coreutils)", "b.txt")
    has(r.err, "rm: cannot remove 'nothing'")


@test
def rm_keeps_what_it_removes(box):
    box.write("a.txt", "one\n")
    box.write("src/deep/f.c", "int x;\n", 0o640)
    box.write("node_modules/m.js", "x\n")
    r = box.sh("ln -s a.txt src/link; rm a.txt; rm -r src node_modules; ls -A; trash ls", "--name", "t")
    eq(r.rc, 0, r.err)
    lines = r.out.strip().split("\n")
    eq(len(lines), 2, r.out)
    has(lines[0], str(box.ws / "a.txt"))
    has(lines[1], str(box.ws / "src") + "/")
    eq(list(box.ws.iterdir()), [])
    has(box.cli("trash", "ls", "t").out, str(box.ws / "a.txt"))
    eq(box.cli("trash", "restore", "t", "src").out, f"restored {box.ws / 'src'}\n")
    eq(box.read("src/deep/f.c"), "int x;\n")
    eq((box.ws / "src/deep/f.c").stat().st_mode & 0o777, 0o640)
    eq((box.ws / "src/link").is_symlink(), True)
    number = box.cli("trash", "ls", "t").out.split()[0]
    box.write("a.txt", "newer\n")
    r = box.cli("trash", "restore", "t", number)
    eq(r.rc, 1)
    has(r.err, "exists")
    (box.ws / "a.txt").unlink()
    eq(box.cli("trash", "restore", "t", number).rc, 0)
    eq(box.read("a.txt"), "one\n")
    box.sh("rm a.txt", "--name", "t")
    eq(box.cli("trash", "empty", "t").rc, 0)
    eq(box.cli("trash", "ls", "t").out, "")
    eq(box.cli("trash", "restore", "t", "a.txt").rc, 1)
    refused(box.cli("trash", "ls"), "trash ls NAME")
    refused(box.cli("trash", "ls", "nobody"), "there is no sandbox 'nobody'", rc=125)
    eq(box.cli("ls", "-q").out, "t\n", "looking makes none")


@test(who=("user",))
def overwriting_keeps_the_old(box):
    box.write("log", "precious\n")
    box.write("img", "image\n")
    r = box.sh("truncate -s 0 log; echo new > n; dd if=n of=img 2>/dev/null; trash restore x 2>/dev/null; rm log img; trash ls; "
               "rm -rf n; cat $HOME/.local/share/vitrine-trash/*/data", *ON)
    has(r.out, "precious", "image")


@test
def refusals_say_what_to_do(box):
    box.needs("git")
    r = box.sh("""
        git init -q . 2>/dev/null
        for c in 'rm -rf .' 'rm -rf /' 'rm -rf .git' 'find . -delete' 'git push --force' 'git clean -fdx' 'chmod -R 777 .' \
                 'dd if=x of=/dev/sda' 'curl -k https://x' 'shred a' 'mv a /dev/null' 'git stash drop'; do
            $c; echo "$? $c"
        done
        test -d .git && echo .git
    """, *ON)
    lines = r.out.strip().split("\n")
    eq([line.split()[0] for line in lines[:-1]], ["126"] * 12, r.err)
    eq(lines[-1], ".git")
    said = [line for line in r.err.split("\n") if line]
    eq(len(said), 12, r.err)
    for line in said:
        has(line, "vitrine: ")


@test
def git_keeps_uncommitted_work(box):
    box.needs("git")
    r = box.sh("""
        export GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=n@x GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=n@x
        git init -q . && echo one > a && git add a && git commit -qm one && echo work > a
        git reset -q --hard; cat a
        git stash apply -q $(git for-each-ref --format='%(refname)' refs/vitrine/saved) && cat a
    """, *ON)
    eq(r.out, "one\nwork\n", r.err)
    has(r.err, "uncommitted changes are kept")


@test
def a_protected_configuration_is_explained(box):
    box.needs("git")
    box.host("git", "init", "-q", ".")
    script = "git remote add a b; echo $?; git -C . config user.name x; echo $?; git config --get core.bare; git status -s"
    r = box.sh(script, *ON, env={"VITRINE_NO_FUSE": "1"})
    eq(r.out, "126\n126\nfalse\n", r.err)
    has(r.err, "configuration is protected", "git -c KEY=VALUE")
    # Where .git is served, git may write it.
    if os.access("/dev/fuse", os.W_OK) and box.who == "root":
        eq(box.sh(script, *ON).out, "0\n0\nfalse\n")


@test(who=("user",))
def they_start_in_no_time(box):
    """A thousand calls: what the tool costs beside the real program."""
    box.needs_native("what a call costs")
    loop = "i=0; while [ $i -lt 300 ]; do {} -f /tmp/none; i=$((i+1)); done"
    r = box.run(*ON, "--", "sh", "-c", "PATH=/usr/bin:/bin; command -v rm >/dev/null; s=$(date +%s%N); " + loop.format("/usr/bin/rm") +
                "; m=$(date +%s%N); " + loop.format("/.vitrine/tools/rm") + "; e=$(date +%s%N); echo $((m-s)) $((e-m))")
    real, tool = (int(n) for n in r.out.split())
    extra = (tool - real) / 300 / 1000
    print(f"    {extra:.0f} us beside {real / 300 / 1000:.0f} us of the real rm")
    eq(extra < 5000, True, f"{extra} us")


if __name__ == "__main__":
    sys.exit(main())
