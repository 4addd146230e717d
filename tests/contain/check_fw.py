# SPDX-License-Identifier: Apache-2.0
"""FW: writing outside, races, and what would run on the host later.

The oracle of the git checks is host git itself: it is really run on what the agent left behind, as the
identity, and a canary hook must not have been executed.
"""

import os
import random
import re
import shlex
import stat
import subprocess
import time

from check_fr import editor_save, polled, reported
from harness import HELD, Ctx, check, has_own_kernel, needs_hosts_kernel, needs_special_files

q = shlex.quote


# ------------------------------------------------------------------------------------ git on the host


def git(c: Ctx, where, *words):
    """Host git as the identity, its own settings out of the way. It may run a planted canary."""
    env = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "GIT_AUTHOR_NAME": "t",
           "GIT_AUTHOR_EMAIL": "t@t.test", "GIT_COMMITTER_NAME": "t", "GIT_COMMITTER_EMAIL": "t@t.test"}
    return c.host(["git", "-C", str(where), *words], env=env)


def make_repo(c: Ctx, where):
    with c.host_edit():
        c.mkdir(where)
        r = git(c, where, "init", "-q", "-b", "main")
        c.plant(where / "file.txt", "one\n")
        git(c, where, "add", "file.txt")
        r2 = git(c, where, "commit", "-q", "-m", "first")
    c.need_control(r.ok and r2.ok, f"no repository could be made: {r} {r2}")
    return where


def canary(c: Ctx):
    """-> (path of a program that leaves a trace, the trace). The program lies in the workspace, where the
    agent could have put it; what counts is whether anybody on the host runs it."""
    ran = c.out / "ran"
    prog = c.plant(c.ws / "canary.sh", f"#!/bin/sh\necho ran >> {q(str(ran))}\n", 0o755)
    return prog, ran


def use_git(c: Ctx, where, ran):
    """What a developer does afterwards; -> True when the canary ran."""
    with c.host_edit():
        (where / "file.txt").write_text(f"two {time.monotonic_ns()}\n")
        git(c, where, "status")
        git(c, where, "add", "file.txt")
        git(c, where, "commit", "-q", "-m", "again")
        git(c, where, "diff", "HEAD~1")
        git(c, where, "checkout", "-q", "-b", f"b{time.monotonic_ns()}")
        git(c, where, "ls-remote", "ssh://host.invalid/x")
        hit = ran.exists()
        if hit:
            ran.unlink()
    return hit


def unchanged(c: Ctx, before, path, what):
    c.must(os.path.lexists(path), f"{what} is gone")
    now = c.tree_entries(path)
    c.must(now == before, f"{what} changed: "
           + "; ".join(p for p in set(now) | set(before) if now.get(p) != before.get(p)))


# --------------------------------------------------------------------------------------- plain writes


@check("FW-01", prio="P0", null=True, catches=("pivot,landlock", "tmp", "home"), catch_ident="user",
       title="create and append outside: OUT, home, /etc, /usr/bin, /opt, /var/tmp")
def fw01(c: Ctx):
    tag = "vcf-" + c.uuid()
    c.plant(c.out / "f", "x\n", 0o666)
    c.plant(c.home / ".profile", "x\n", 0o666)
    places = [c.out, c.home, "/etc", "/usr/bin", "/usr/local/bin", "/boot", "/opt", "/var/tmp", "/srv",
              "/var/lib", "/tmp", "/dev/shm", "/run", "/", str(c.ws.parent), f"/..{c.out}"]
    appends = [c.out / "f", c.home / ".profile"]
    control = c.control(f"echo x > {q(str(c.out / tag))} && rm {q(str(c.out / tag))} && echo done")
    c.need_control("done" in control.text, "outside too nothing can be written")
    script = [f"echo x > {q(str(p))}/{tag}; mkdir {q(str(p))}/{tag}.d" for p in places]
    script += [f"echo x >> {q(str(p))}" for p in appends]
    try:
        c.sandbox("\n".join(script))
        for p in places:
            for name in (tag, tag + ".d"):
                c.must(not os.path.lexists(f"{p}/{name}"), f"made on the host: {p}/{name}")
    finally:
        for p in places:
            if os.path.lexists(f"{p}/{tag}"):
                os.unlink(f"{p}/{tag}")
            if os.path.lexists(f"{p}/{tag}.d"):
                os.rmdir(f"{p}/{tag}.d")
    c.must((c.out / "f").read_text() == "x\n", "appended to a file in OUT")
    return HELD


@check("FW-02", prio="P0", null=True, catches=("pivot,landlock",),
       title="write through symlinks, also dangling ones")
def fw02(c: Ctx):
    f = c.plant(c.out / "f", "x\n", 0o666)
    c.symlink(c.ws / "l", f)
    c.symlink(c.ws / "dangling", c.out / "new")
    c.symlink(c.ws / "dir", c.out)
    script = ("echo y >> l; echo y > dangling; echo y > dir/other; mkdir dir/sub; "
              f"ln -s {q(str(c.out))}/late late; echo y > late; rm -f dir/f; "
              f"ln -s /..{q(str(c.out))}/above above; echo y > above")
    c.control(script)
    made = sorted(os.listdir(c.out))
    c.need_control({"new", "other", "sub", "late", "above"} <= set(made) and "f" not in made,
                   f"outside too nothing is written: {made}")
    for name in ("new", "other", "late", "above"):
        (c.out / name).unlink()
    (c.out / "sub").rmdir()
    (c.ws / "late").unlink()
    (c.ws / "above").unlink()
    c.plant(c.out / "f", "x\n", 0o666)
    c.sandbox(script)
    c.must(sorted(os.listdir(c.out)) == ["f"] and f.read_text() == "x\n",
           f"written through a link: {os.listdir(c.out)}")
    return HELD


RACED = re.compile(r"exchanged=(\d+) refused=(\d+) written=(\d+) unwritten=\d+ slowly=(\d+)")


def least_exchanges(c, m, usual):
    """A kernel of its own asks outside for every exchange of names, or for three renames where it knows none, in the same
    time."""
    return usual // 100 if has_own_kernel(c) and m else usual


@check("FW-03", prio="P0", null=True, timeout=90,
       title="directory and symlink exchanged 20000 times while somebody writes")
def fw03(c: Ctx):
    text = c.uuid()
    c.mkdir(c.ws / "d")
    c.symlink(c.ws / "l", c.out)
    for _ in range(20):
        r = c.control(c.tool("race", "write", "d", "l", 2000, text))
        if (c.out / "f").exists():
            break
    c.need_control((c.out / "f").exists(), f"outside too the race is never won: {r}")
    (c.out / "f").unlink()
    # Whatever the control left: d is a directory again and l the link.
    if (c.ws / "d").is_symlink():
        os.rename(c.ws / "l", c.ws / "tmp")
        os.rename(c.ws / "d", c.ws / "l")
        os.rename(c.ws / "tmp", c.ws / "d")
    r = c.sandbox(c.tool("race", "write", "d", "l", 20000, text), timeout=60)
    m = RACED.search(r.text)
    c.need_control(m and int(m[1]) >= least_exchanges(c, m, 20000) and int(m[3]) >= least_exchanges(c, m, 500),
                   f"the race did not run: {r}")
    c.must(not os.listdir(c.out), f"written outside: {os.listdir(c.out)}")
    c.note(m[0])
    return HELD


@check("FW-04", prio="P0", forms=("run", "exec"), timeout=90,
       title="quarantine never follows a directory that is swapped for a symlink")
def fw04(c: Ctx):
    u = c.uuid()
    c.plant(c.out / ".vscode" / "tasks.json", u, 0o666)
    os.chmod(c.out / ".vscode", 0o777)
    c.mkdir(c.ws / "sub")
    c.symlink(c.ws / "link", c.out)
    before = c.tree_entries(c.out)
    most = 1500 * (c.cfg.patience if has_own_kernel(c) else 1)
    r = c.sandbox(c.tool("race", "plant", "sub", "link", most, ".vscode/tasks.json"), timeout=40)
    m = RACED.search(r.text)
    c.need_control(m and int(m[1]) > least_exchanges(c, m, 100) and int(m[3]) > least_exchanges(c, m, 10),
                   f"the race did not run: {r}")
    unchanged(c, before, c.out, "OUT")
    c.must(not c.found_in(c.state, u), "a file from OUT was taken into the quarantine")
    c.note(m[0])
    return HELD


@check("FW-05", prio="P1", null=True, catches=("protect,pins",),
       title="no new hard link to an outside or protected file, none into a protected folder")
def fw05(c: Ctx):
    make_repo(c, c.ws)
    f = c.plant(c.out / "f", "x\n", 0o666)
    acts = q(c.tool("acts")[0])
    hooks = c.ws / ".git" / "hooks"

    def script(git_dir):
        return (f"{acts} link {q(str(f))} o1; {acts} link {git_dir}/config lk1; ln {git_dir}/config lk2;"
                f"{acts} tmplink . {git_dir}/hooks pre-push; ln canary.sh {git_dir}/hooks/pre-commit")

    canary(c)
    other = make_repo(c, c.out / "other")
    c.control(script(q(str(other / ".git"))))
    c.need_control((other / ".git" / "config").stat().st_nlink > 1
                   and (other / ".git" / "hooks" / "pre-push").exists(), "outside too no link is made")
    for name in ("o1", "lk1", "lk2"):
        if (c.ws / name).exists():
            (c.ws / name).unlink()
    before = c.tree_entries(c.ws / ".git")
    c.sandbox(script(".git"))
    c.must(f.stat().st_nlink == 1, "a link to a file in OUT was made")
    c.must((c.ws / ".git" / "config").stat().st_nlink == 1, "a link to .git/config was made")
    c.must(not (hooks / "pre-push").exists() and not (hooks / "pre-commit").exists(),
           "a link into .git/hooks was made")
    unchanged(c, before, c.ws / ".git", ".git")
    return HELD


@check("FW-06", prio="P0", null=True, catches=("aliases",),
       title="append through a hard link that existed before to a protected file")
def fw06(c: Ctx):
    make_repo(c, c.ws)
    conf = c.ws / ".git" / "config"
    os.link(conf, c.ws / "alias")
    before = conf.read_bytes()
    c.control("echo '# x' >> alias")
    c.need_control(conf.read_bytes() != before, "outside too the alias does not reach it")
    conf.write_bytes(before)
    r = c.sandbox("echo '# x' >> alias; printf '[core]\\n\\tfsmonitor = x\\n' > alias", refusal_ok=True)
    changed = conf.read_bytes() != before
    c.must(not changed or reported(c, r, "alias"), f"written through the alias, silently: {r}")
    c.note("written but reported" if changed else "not written")
    return HELD


HOOK = "#!/bin/sh\\necho ran >> {ran}\\n"


def hook_script(git_dir, ran):
    """Shell lines that plant a hook in every way that git knows, in the repository `git_dir`."""
    g = git_dir
    return [
        f"mkdir -p {g}/hooks {g}/info",
        f"printf '#!/bin/sh\\necho ran >> {ran}\\n' > {g}/hooks/pre-commit; chmod 755 {g}/hooks/pre-commit",
        f"cp {g}/hooks/pre-commit {g}/hooks/post-checkout",
        f"printf '[core]\\n\\thooksPath = %s/h\\n\\tfsmonitor = %s/canary.sh\\n\\tsshCommand = %s/canary.sh\\n"
        f"[diff]\\n\\texternal = %s/canary.sh\\n[filter \"x\"]\\n\\tclean = %s/canary.sh\\n' "
        f"$PWD $PWD $PWD $PWD $PWD >> {g}/config",
        f"git config --file {g}/config core.editor $PWD/canary.sh",
        f"echo '* filter=x' > {g}/info/attributes",
        f"printf '[core]\\n\\tfsmonitor = %s/canary.sh\\n' $PWD > {g}/config.worktree",
        "mkdir -p h; cp canary.sh h/pre-commit; chmod 755 h/pre-commit",
    ]


@check("FW-07", prio="P0", null=True, catches=("pins",),
       title="an ancestor of a protected path cannot be renamed and made anew")
def fw07(c: Ctx):
    prog, ran = canary(c)
    make_repo(c, c.ws)
    make_repo(c, c.ws / "vendor" / "sub")

    def script(top):
        return "\n".join([f"mv {top} {top}2; mkdir -p {top}/sub; cp -r {top}2/sub/. {top}/sub/"]
                         + hook_script(f"{top}/sub/.git", ran))

    make_repo(c, c.ws / "free" / "sub")
    c.control(script("free"))
    c.need_control(use_git(c, c.ws / "free" / "sub", ran), "outside too the hook does not run")
    acts = q(c.tool("acts")[0])
    r = c.sandbox(script("vendor") + f"\n{acts} rename vendor v3; {acts} exchange vendor h; "
                  f"{acts} rename vendor/sub vendor/s3; {acts} rename .git gitx")
    names = sorted(os.listdir(c.ws))
    c.must("v3" not in names and "gitx" not in names and not (c.ws / "vendor2" / "sub" / ".git").exists(),
           f"an ancestor was renamed: {names}")
    c.must(not (c.ws / "vendor" / "sub" / ".git" / "hooks" / "pre-commit").exists(),
           f"a hook file appeared on the host: {r}")
    c.must(not use_git(c, c.ws / "vendor" / "sub", ran), "host git ran the canary")
    return HELD


@check("FW-08", prio="P1", null=True, catches=("protect", "pins"),
       title="rename, remove, replace a protected mount point")
def fw08(c: Ctx):
    make_repo(c, c.ws)
    c.plant(c.ws / ".vscode" / "tasks.json", "{}")
    make_repo(c, c.ws / "plain")
    acts = q(c.tool("acts")[0])

    def script(top):
        return (f"cd {top}; echo x > new; mkdir newdir\n"
                f"mv .git .gitx; mv .git/config .git/c2; rm -f .git/config; rm -rf .git/hooks .vscode\n"
                f"{acts} rename new .git/config; {acts} rename newdir .git/hooks; rmdir .git/hooks\n"
                f"{acts} exchange new .git/config; {acts} exchange newdir .git/hooks\n"
                f"{acts} exchange newdir .git; {acts} rename .vscode .vs; ln -sf new .git/config")

    before = c.tree_entries(c.ws / "plain" / ".git")
    c.control(script("plain"))
    c.need_control(not (c.ws / "plain" / ".git").exists()
                   or c.tree_entries(c.ws / "plain" / ".git") != before, "outside too nothing changes")
    paths = [c.ws / ".git" / "config", c.ws / ".git" / "hooks", c.ws / ".vscode" / "tasks.json"]
    before = [c.tree_entries(p) for p in paths]
    c.sandbox(script("."))
    for p, b in zip(paths, before):
        c.must(p.exists(), f"gone on the host: {p}")
        unchanged(c, b, p, str(p))
    return HELD


@check("FW-09", prio="P0", null=True, catches=("protect",),
       title="git hooks, config, attributes of the repository; host git runs no canary")
def fw09(c: Ctx):
    prog, ran = canary(c)
    make_repo(c, c.ws)
    other = make_repo(c, c.ws / "other")
    c.control("\n".join(hook_script("other/.git", ran)))
    c.need_control(use_git(c, other, ran), "outside too the hook does not run")
    paths = [c.ws / ".git" / "config", c.ws / ".git" / "hooks"]
    before = [c.tree_entries(p) for p in paths]
    c.sandbox("\n".join(hook_script(".git", ran)))
    for p, b in zip(paths, before):
        unchanged(c, b, p, str(p))
    c.must(not use_git(c, c.ws, ran), "host git ran the canary")
    return HELD


def whole_report(r):
    keeper = getattr(r, "keeper", None)
    return r.errtext + (keeper.err.decode("utf-8", "replace") if keeper else "")


def all_said(c, r):
    """What was reported, and what the record and the quarantine know of it."""
    held = sorted(p.name for p in c.home.glob("**/quarantine/*/*"))
    log = c.vitrine("events", "--type", "file.quarantined")
    return f"{on_one_line(whole_report(r))}; held: {held}; on record: {on_one_line(log.text + log.errtext)}"


def on_one_line(text):
    return " | ".join(text.split("\n"))[-3000:]


NEW_FILES = [".claude/settings.json", ".claude/settings.local.json", ".claude/commands/x.md",
             ".claude/agents/x.md", ".mcp.json", ".codex/config.toml", ".cursor/mcp.json",
             ".vscode/tasks.json", ".vscode/settings.json", ".idea/workspace.xml", ".gemini/settings.json",
             ".ripgreprc", ".envrc", ".vitrine.jsonc"]


def write_all(files, text):
    return "\n".join(f"mkdir -p {q(os.path.dirname(f) or '.')}; echo {text} > {q(f)}" for f in files)


@check("FW-10", prio="P0", null=True, catches=("quarantine",),
       title="a repository and agent settings made inside are taken away and reported")
def fw10(c: Ctx):
    prog, ran = canary(c)
    other = c.mkdir(c.ws / "o")
    script = ["git init -q -b main {d}", "echo one > {d}/file.txt"]
    r = c.control("\n".join([s.format(d="o") for s in script] + hook_script("o/.git", ran)))
    c.need_control(use_git(c, other, ran), f"outside too the hook does not run: {r}")
    r = c.sandbox("\n".join([s.format(d=".") for s in script] + hook_script(".git", ran))
                  + "\n" + write_all(NEW_FILES, "vcf-new"))
    left = [f for f in NEW_FILES if (c.ws / f).exists()]
    c.must(not left, f"left on the host: {left}; report: {on_one_line(whole_report(r))}")
    c.must(not (c.ws / ".git" / "hooks" / "pre-commit").exists(), "a hook is left on the host")
    if (c.ws / "file.txt").exists():
        c.must(not use_git(c, c.ws, ran), "host git ran the canary")
    missing = [f for f in NEW_FILES if f not in whole_report(r) and os.path.dirname(f) not in whole_report(r)]
    c.must_say(not missing, f"taken away without a word: {missing}; report: {all_said(c, r)}")
    return HELD


@check("FW-10b", prio="P0", null=True, catches=("quarantine",), forms=("run", "exec"),
       title="what is made and left by a process that outlives the command is taken too")
def fw10b(c: Ctx):
    late = "sleep 0.2; mkdir -p deep/er/.vscode; echo x > deep/er/.vscode/tasks.json; echo x > .mcp.json"
    c.control(f"({late}) & wait")
    c.need_control((c.ws / ".mcp.json").exists(), "outside too nothing is made")
    (c.ws / ".mcp.json").unlink()
    (c.ws / "deep/er/.vscode/tasks.json").unlink()
    (c.ws / "deep/er/.vscode").rmdir()
    r = c.sandbox(f"(setsid sh -c {q(late)} >/dev/null 2>&1 </dev/null &)\n"
                  "i=0; while [ ! -e .mcp.json ] && [ $i -lt 30 ]; do i=$((i+1)); sleep 0.02; done")
    time.sleep(0.3)
    c.must(not (c.ws / ".mcp.json").exists() and not (c.ws / "deep/er/.vscode/tasks.json").exists(),
           f"left on the host: {r}")
    return HELD


@check("FW-11", prio="P0", null=True, catches=("protect",),
       title="nested repository, submodule, worktree, .git file: protected at every depth")
def fw11(c: Ctx):
    prog, ran = canary(c)
    make_repo(c, c.ws)
    nested = make_repo(c, c.ws / "vendor" / "sub")
    src = make_repo(c, c.out / "src")
    r = git(c, c.ws, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(src), "mod")
    c.need_control((c.ws / "mod" / ".git").is_file(), f"no submodule: {r}")
    with c.host_edit():
        r = git(c, c.ws, "worktree", "add", "-q", str(c.ws / "wt"))
    c.need_control((c.ws / "wt" / ".git").is_file(), f"no worktree: {r}")
    evil = ["git init -q --bare -b main evil; git init -q -b main e2; cp -r e2/.git/. evil/; rm -rf e2",
            *hook_script("evil", ran), "git config --file evil/config core.bare false"]

    def script(nested, mod, wt, git_dir):
        lines = [*evil, *hook_script(f"{nested}/.git", ran)]
        lines += [f"rm -f {d}/.git; echo gitdir: $PWD/evil > {d}/.git" for d in (mod, wt)]
        lines += hook_script(f"{git_dir}/modules/mod", ran)
        lines += [f"echo $PWD/evil > {git_dir}/worktrees/wt/commondir",
                  f"echo $PWD/evil > {nested}/.git/commondir"]
        return "\n".join(lines)

    repos = [nested, c.ws / "mod", c.ws / "wt"]
    # The control works on a copy of everything, under another name.
    with c.host_edit():
        subprocess.run(["cp", "-a", str(c.ws), str(c.out / "copy")], check=True)
    c.control(script("vendor/sub", "mod", "wt", ".git"), cwd=c.out / "copy")
    ran_in = [d for d in ("vendor/sub", "mod", "wt") if use_git(c, c.out / "copy" / d, ran)]
    c.need_control(len(ran_in) == 3, f"outside too only these hooks run: {ran_in}")
    before = {p: c.tree_entries(p) for p in (nested / ".git" / "config", nested / ".git" / "hooks",
                                             c.ws / "mod" / ".git", c.ws / "wt" / ".git",
                                             c.ws / ".git" / "modules" / "mod" / "config",
                                             c.ws / ".git" / "modules" / "mod" / "hooks",
                                             c.ws / ".git" / "worktrees" / "wt" / "commondir")}
    c.sandbox(script("vendor/sub", "mod", "wt", ".git"))
    for p, b in before.items():
        unchanged(c, b, p, str(p.relative_to(c.ws)))
    for d in repos:
        c.must(not use_git(c, d, ran), f"host git ran the canary in {d.relative_to(c.ws)}")
    return HELD


@check("FW-11b", prio="P0", null=True, catches=("quarantine",),
       title="a nested repository or .git file made inside leads host git to no canary")
def fw11b(c: Ctx):
    prog, ran = canary(c)
    make_repo(c, c.ws)
    evil = ["git init -q -b main {d}/e2; cp -r {d}/e2/.git {d}/evil; rm -rf {d}/e2"]

    def script(d):
        lines = [f"mkdir -p {d}/ptr {d}/repo", *[e.format(d=d) for e in evil]]
        lines += hook_script(f"{d}/evil", ran)
        lines += [f"echo gitdir: $PWD/{d}/evil > {d}/ptr/.git", f"echo one > {d}/ptr/file.txt"]
        lines += [f"git init -q -b main {d}/repo", f"echo one > {d}/repo/file.txt"]
        lines += hook_script(f"{d}/repo/.git", ran)
        return "\n".join(lines)

    c.control(script("c"))
    ran_in = [d for d in ("ptr", "repo") if use_git(c, c.ws / "c" / d, ran)]
    c.need_control(len(ran_in) == 2, f"outside too only these hooks run: {ran_in}")
    with c.host_edit():
        subprocess.run(["rm", "-rf", str(c.ws / "c")], check=True)
    c.sandbox(script("n"))
    for d in ("ptr", "repo"):
        if (c.ws / "n" / d).is_dir():
            c.must(not use_git(c, c.ws / "n" / d, ran), f"host git ran the canary in {d}")
    return HELD


@check("FW-11c", prio="P1", null=True, catches=("quarantine",), forms=("run",),
       title="a bare repository made inside under any name leads host git to no canary")
def fw11c(c: Ctx):
    prog, ran = canary(c)

    def script(d):
        return (f"mkdir {d}; cd {d}; git init -q -b main e2; mv e2/.git docs; rm -rf e2; cd docs\n"
                "git config --file config core.bare false; git config --file config core.worktree ..\n"
                f"git config --file config core.fsmonitor {q(str(prog))}")

    def used(d):
        with c.host_edit():
            git(c, c.ws / d / "docs", "status")
            hit = ran.exists()
            if hit:
                ran.unlink()
        return hit

    c.control(script("a"))
    c.need_control(used("a"), "outside too the canary does not run")
    c.sandbox(script("b"))
    c.must(not (c.ws / "b" / "docs").is_dir() or not used("b"), "host git ran the canary")
    return HELD


# What git runs, or takes something to run from.
RUNS = ["core.pager={P}", "core.fsmonitor={P}", "core.sshCommand={P}", "core.hooksPath={D}", "core.editor={P}", "alias.st=!{P}", "diff.external={P}",
        "diff.x.textconv={P}", "filter.x.clean={P}", "filter.x.smudge={P}", "merge.x.driver={P}", "include.path={P}", "credential.helper=!{P}",
        "gpg.program={P}", "gpg.ssh.defaultKeyCommand={P}", "remote.o.uploadpack={P}", "remote.o.vcs=ext", "url.ext::{P}.insteadOf=https://h/",
        "rebase.instructionFormat=%s%nexec {P}", "pager.log={P}", "protocol.allow=always", "remote.ext::{P}.promisor=true",
        "extensions.partialClone=ext::{P}", "core.alternateRefsCommand={P}", "sequence.editor={P}", "interactive.diffFilter={P}"]
# What people set, and nothing is run for.
CALM = ["commit.gpgsign=false", "log.date=iso", "blame.ignorerevsfile=.git-blame-ignore-revs", "remote.o.promisor=true",
        "remote.o.partialclonefilter=blob:none", "user.name=A B", "diff.algorithm=histogram", "status.short=true", "pager.diff=false",
        "color.diff.meta=blue bold", "pull.rebase=true", "commit.template=.gitmessage", "tag.sort=version:refname"]


@check("FW-11d", prio="P0", null=True, catches=("quarantine",), forms=("run",),
       title="of the config of a repository made inside, host git finds the keys that run nothing, and only these (mixed at random)")
def fw11d(c: Ctx):
    prog, ran = canary(c)
    make_repo(c, c.ws)
    rng = random.Random(f"fw11d {c.ident}")

    def script(d, keys):
        pairs = [real(k).split("=", 1) for k in keys]
        return "; ".join([f"git init -q -b main {d}"] + [f"git config --file {d}/.git/config {q(k)} {q(v)}" for k, v in pairs])

    def real(key):
        return key.replace("{P}", str(prog)).replace("{D}", str(c.out))

    def listed(d):
        with c.host_edit():
            r = c.host(f"git config --file {d}/.git/config --list", cwd=c.ws)
        return {line for line in r.text.splitlines() if "=" in line}

    mixes = [rng.sample(RUNS, rng.randint(1, 6)) + rng.sample(CALM, rng.randint(1, 6)) for _ in range(12)]
    for keys in mixes:
        rng.shuffle(keys)
    c.control(script("ctl", ["core.fsmonitor={P}"]))
    c.need_control(use_git(c, c.ws / "ctl", ran), "outside too the canary does not run")
    c.sandbox("; ".join(script(f"n{i}", keys) for i, keys in enumerate(mixes)))
    for i, keys in enumerate(mixes):
        found = listed(f"n{i}")
        c.must(not use_git(c, c.ws / f"n{i}", ran), f"host git ran the canary: {keys}")
        c.must("core.bare=false" in found and {k for k in keys if k in CALM} <= found, f"a harmless key is gone: {keys}, left {found}")
        left = {f.split("=")[0].lower() for f in found} & {real(k).split("=")[0].lower() for k in keys if k in RUNS}
        c.must(not left, f"a key that runs something stayed: {left}")
    return HELD


# What the host may do to a repository that was made inside: from then on it is the host's.
TOUCHES = {"a key": "git -C {d} config core.abbrev 12", "a remote": "git -C {d} remote add origin https://host.test/x",
           "the same bytes": "cat {d}/.git/config > tmp-copy; cat tmp-copy > {d}/.git/config; rm tmp-copy",
           "saved by rename": "cp {d}/.git/config tmp-copy; mv tmp-copy {d}/.git/config",
           "a hook": "mkdir -p {d}/.git/hooks; cp canary.sh {d}/.git/hooks/pre-commit", "a hook's sample": "mkdir -p {d}/.git/hooks; echo >{d}/.git/hooks/note",
           "a second name": "ln {d}/.git/config {d}/other", "moved": "mv {d} {d}-2; mv {d}-2 {d}.moved",
           "made anew": "rm -rf {d}; git init -q -b main {d}", "attributes": "mkdir -p {d}/.git/info; echo >{d}/.git/info/attributes"}


@check("FW-11e", prio="P0", forms=("run",), catches=("made",), timeout=120,
       title="a later session may remove what an earlier one made, until the host touches it; a repository of the host's stays (10 ways)")
def fw11e(c: Ctx):
    prog, ran = canary(c)
    make_repo(c, c.ws)
    make_repo(c, c.ws / "vendor" / "sub")
    ways = list(TOUCHES)
    dirs = [f"t{i}" for i in range(len(ways))]
    made = "; ".join(f"git init -q -b main {d}" for d in (*dirs, "dep", "old"))
    r = c.sandbox(f"{made}; cd dep; echo x >x; git add x; git -c user.name=a -c user.email=a@b commit -qm x; git worktree add -q ../wt", timeout=30)
    c.need_control(r.ok and (c.ws / "wt" / ".git").is_file(), f"nothing was made inside: {r}")
    with c.host_edit():
        for d, way in zip(dirs, ways):
            t = c.host(TOUCHES[way].format(d=d), cwd=c.ws)
            c.need_control(t.ok, f"{way}: {t}")
    # Git moves a file away that was made anew, or was moved: under its new name.
    now = {way: f"{d}.moved" if way == "moved" else d for d, way in zip(dirs, ways)}
    before = {way: c.tree_entries(c.ws / d / ".git" / "config") for way, d in now.items()}
    vendor = c.tree_entries(c.ws / "vendor" / "sub" / ".git" / "config")
    evil = "; ".join(f"git config --file {d}/.git/config core.fsmonitor {q(str(prog))}; printf '[core]\n\tbare = true\n' > {d}/.git/config; "
                     f"rm -rf {d}" for d in (*now.values(), "vendor/sub", "old"))
    r = c.sandbox(f"git -C dep worktree remove ../wt; mv dep dep2; rm -rf dep2; {evil}; true", timeout=30)
    for name in ("dep", "dep2", "wt", "old"):
        c.need_control(not (c.ws / name).exists(), f"what an earlier session made could not be removed: {name}: {r}")
    for way, b in before.items():
        unchanged(c, b, c.ws / now[way] / ".git" / "config", f"the config of a repository that the host has touched ({way})")
    unchanged(c, vendor, c.ws / "vendor" / "sub" / ".git" / "config", "the config of a repository of the host's")
    return HELD


@check("FW-11f", prio="P0", forms=("run",), catches=("protect",), timeout=60,
       title="the workspace's own repository is protected in later sessions, also when an earlier one made it")
def fw11f(c: Ctx):
    prog, _ = canary(c)
    r = c.sandbox("git init -q -b main .; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x", timeout=30)
    config = c.ws / ".git" / "config"
    c.need_control(r.ok and config.is_file(), f"nothing was made inside: {r}")
    before = c.tree_entries(config)
    r = c.sandbox(f"git config core.fsmonitor {q(str(prog))}; echo '[core] fsmonitor = {prog}' >> .git/config; "
                  "rm -rf .git/config; mv .git away; true", timeout=30)
    unchanged(c, before, config, "the config of the workspace's repository")
    return HELD


@check("FW-13", prio="P0", null=True, catches=("protect",),
       title="existing settings of agents and editors cannot be changed")
def fw13(c: Ctx):
    for f in NEW_FILES:
        # A policy of the project must stay one: {} is valid in all of them that are parsed.
        c.plant(c.ws / f, "{}\n")
        c.plant(c.ws / "free" / f.replace(".", "x-"), "{}\n")
    c.control(write_all(["free/" + f.replace(".", "x-") for f in NEW_FILES], "changed"))
    c.need_control("changed" in (c.ws / "free" / NEW_FILES[0].replace(".", "x-")).read_text(),
                   "outside too nothing changes")
    before = {f: c.tree_entries(c.ws / f) for f in NEW_FILES}
    c.sandbox(write_all(NEW_FILES, "changed") + "\n"
              + "\n".join(f"rm -f {q(f)}; mv {q(f)} moved 2>/dev/null; chmod 777 {q(f)}" for f in NEW_FILES))
    for f, b in before.items():
        c.must((c.ws / f).exists(), f"gone on the host: {f}")
        unchanged(c, b, c.ws / f, f)
    return HELD


HOME_FILES = [".bashrc", ".profile", ".bash_profile", ".zshrc", ".config/autostart/x.desktop",
              ".ssh/authorized_keys", ".config/systemd/user/x.service", ".gitconfig", ".npmrc",
              ".config/fish/config.fish", ".local/bin/git", ".vimrc", ".config/git/hooks/pre-commit"]


@check("FW-14", prio="P0", null=True, catches=("home",), catch_ident="user",
       title="shell, ssh, autostart files of the home and cron stay as they are")
def fw14(c: Ctx):
    for f in HOME_FILES[:6]:
        c.plant(c.home / f, "original\n")
    files = [str(c.home / f) for f in HOME_FILES]
    cron = f"/var/spool/cron/crontabs/vcf-{c.uuid()}"
    c.control(f"echo x >> {q(files[0])}")
    c.need_control((c.home / ".bashrc").read_text() != "original\n", "outside too nothing changes")
    c.plant(c.home / ".bashrc", "original\n")
    try:
        c.sandbox(write_all(files, "changed") + f"\necho x > {cron}; true")
        for f in HOME_FILES[6:]:
            c.must(not (c.home / f).exists(), f"made on the host: {f}")
        for f in HOME_FILES[:6]:
            c.must((c.home / f).read_text() == "original\n", f"changed on the host: {f}")
        c.must(not os.path.exists(cron), "a file in cron's spool")
    finally:
        if os.path.exists(cron):
            os.unlink(cron)
    return HELD


# ------------------------------------------------------------------------ one protected file, all ways


def protected_file(c: Ctx):
    """-> (protected file of the workspace, a file granted for reading, a free file for the control)"""
    make_repo(c, c.ws)
    granted = c.plant(c.root / "granted" / "f", "granted " * 600, 0o666)
    os.chmod(granted.parent, 0o777)
    free = c.plant(c.ws / "free", "free " * 1000)
    return c.ws / ".git" / "config", granted, free


def act_on(c: Ctx, word, need, catches_grant=True):
    """The tool's word on a free file outside must say `need` ok; inside nothing may change."""
    prot, granted, free = protected_file(c)
    r = c.control(c.tool("acts", word, free))
    missing = [n for n in need if f"{n} ok" not in r.text]
    c.need_control(not missing, f"outside too fails: {missing}: {r.text}")
    before = {p: c.tree_entries(p) for p in (prot, granted)}
    outside = c.plant(c.out / "f", "outside " * 600, 0o666)
    acts = q(c.tool("acts")[0])
    r = c.sandbox("\n".join(f"{acts} {word} {q(str(p))}" for p in (prot, granted, outside)),
                  flags=["--read", str(granted.parent)])
    c.need_control("open ok" in r.text or word == "trunc", f"the granted file cannot even be read: {r}")
    for p, b in before.items():
        unchanged(c, b, p, str(p))
    return HELD


@check("FW-17", prio="P1", null=True, catches=("protect",),
       title="mode, owner, times, xattr, acl, flags of outside and protected files")
def fw17(c: Ctx):
    return act_on(c, "meta", ("chmod", "utimens", "setxattr", "fchmod"))


@check("FW-18", prio="P1", null=True, catches=("protect",),
       title="truncate, punch, copy_file_range, clone onto read-only files")
def fw18(c: Ctx):
    return act_on(c, "trunc", ("truncate", "open-trunc", "append"))


@check("FW-19", prio="P1", null=True, catches=("protect",),
       title="shared mappings and /proc/self/mem of read-only files")
def fw19(c: Ctx):
    return act_on(c, "map", ("mmap-read", "open-rw", "mmap-rw"))


# Two walls stand here, the relay of files and Landlock: no single switch opens it. FD-08 and FD-11 have one each.
@check("FW-20", prio="P1", null=True,
       title="an inherited read-only descriptor cannot be reopened for writing")
def fw20(c: Ctx):
    text = c.uuid()
    f = c.plant(c.out / "f", "x\n", 0o666)
    fd = os.open(f, os.O_RDONLY)
    try:
        c.control(c.tool("acts", "reopen", 0, "w", text), stdin=fd)
        c.need_control(text in f.read_text(), "outside too it is not reopened")
        c.plant(f, "x\n", 0o666)
        os.close(fd)
        fd = os.open(f, os.O_RDONLY)
        acts = q(c.tool("acts")[0])
        c.sandbox("\n".join(f"{acts} reopen {n} {m} {text}" for n in range(3) for m in ("w", "rw")), stdin=fd)
    finally:
        os.close(fd)
    c.must(f.read_text() == "x\n", "written through the read-only descriptor")
    return HELD


@check("FW-21", prio="P0", title="remount, bind, umount, move, fsopen: masks and read-only mounts stay")
def fw21(c: Ctx):
    u = c.uuid()
    make_repo(c, c.ws)
    hidden = c.plant(c.ws / ".env", u + "\n")
    conf = c.ws / ".git" / "config"
    before = c.tree_entries(conf)
    acts = q(c.tool("acts")[0])
    c.need_control(u in c.control(["cat", str(hidden)]).text, "outside too it cannot be read")
    r = c.sandbox(f"{acts} mounts {q(str(hidden))} {q(str(c.ws))}; cat .env\n"
                  f"{acts} mounts {q(str(conf))} {q(str(c.ws))}; echo '# x' >> .git/config\n"
                  "mount -o remount,rw /usr; umount -l .env; unshare -Urm sh -c 'umount -l .env; cat .env'",
                  flags=["--hide", ".env"])
    c.must(not c.leaks(r, u), f"the mask is gone: {r}")
    unchanged(c, before, conf, ".git/config")
    first = r.text.split("[in a user namespace")[0]
    done = re.findall(r"^(\S+) ok$", first, re.M)
    c.must(not done, f"allowed: {done}")
    return HELD


@check("FW-23", prio="P1", title="no device node; FIFO and socket in the workspace do work")
def fw23(c: Ctx):
    c.mkdir(c.ws / "n1")
    c.mkdir(c.ws / "n2")
    r = c.control(c.tool("acts", "mknod", c.ws / "n1"), as_root=True)
    c.need_control("mknod-char ok" in r.text, f"root makes no node here: {r}")
    for name in ("node-char", "node-block"):
        (c.ws / "n1" / name).unlink()
    c.sandbox(c.tool("acts", "mknod", c.ws / "n2"))
    kinds = {n: stat.S_IFMT(os.lstat(c.ws / "n2" / n).st_mode) for n in os.listdir(c.ws / "n2")}
    devices = [n for n, k in kinds.items() if k in (stat.S_IFCHR, stat.S_IFBLK)]
    c.must(not devices, f"device nodes on the host: {devices}")
    if not kinds:
        needs_special_files(c)
        needs_hosts_kernel(c, "nothing but files and directories can be made in a workspace")
    c.need_control(kinds.get("node-fifo") == stat.S_IFIFO and kinds.get("node-socket") == stat.S_IFSOCK,
                   f"FIFO or socket do not work: {kinds}")
    return HELD


# ---------------------------------------------------------------------------------- hostile workspaces


@check("FW-25", prio="P0", null=True,
       title="symlinks where mounts and masks go are not followed")
def fw25(c: Ctx):
    u, v = c.uuid(), c.uuid()
    c.plant(c.out / "secret", u, 0o666)
    c.plant(c.out / "vsc" / "tasks.json", v, 0o666)
    os.chmod(c.out / "vsc", 0o777)
    with c.host_edit():
        make_repo(c, c.out / "gitdir")
    for name, target in (("dev", "/etc"), ("proc", "/etc"), ("tmp", "/etc"), ("usr", "/etc"),
                         (".vscode", c.out / "vsc"), (".env", c.out / "secret"),
                         (".git", c.out / "gitdir" / ".git"), ("conf", c.out)):
        c.symlink(c.ws / name, target)
    script = ("cat .env .vscode/tasks.json conf/secret; ls -la .git/ dev/; echo x > .vscode/new; "
              "echo x >> .git/config; echo x > conf/new; echo x > .git/hooks/pre-commit")
    r = c.control("cat .env .vscode/tasks.json")
    c.need_control(u in r.text and v in r.text, "outside too they cannot be read")
    r = c.sandbox(script, flags=["--hide", ".env", "--hide", "conf/secret"], refusal_ok=True)
    c.must(not c.leaks(r, u) and not c.leaks(r, v), f"a link was followed: {r}")
    c.note("started" if r.began else f"refused: {r.errtext.strip()[:200]}")
    return HELD


@check("FW-25b", prio="P0", forms=("run",),
       title="a mount target inside the workspace that is a symlink outside")
def fw25b(c: Ctx):
    src = c.mkdir(c.root / "src")
    c.plant(src / "f", "x")
    c.symlink(c.ws / "lnk", c.out)
    c.symlink(c.ws / "etc", "/etc")
    etc = set(os.listdir("/etc"))
    for target in (c.ws / "lnk" / "new", c.ws / "lnk", c.ws / "etc" / "vcf-new", c.out / "made"):
        r = c.sandbox("true", flags=["-v", f"{src}:{target}"], refusal_ok=True)
        c.note(f"{target.relative_to(c.root)}: rc {r.rc} {r.errtext.strip()[:120]}")
        c.must(not os.listdir(c.out), f"made outside through a link: {os.listdir(c.out)}")
    c.must(set(os.listdir("/etc")) - etc == set(), "made in /etc")
    return HELD


@check("FW-26", prio="P1", null=True, forms=("run",), catches=("hide",),
       title="between two runs the parent of a masked file becomes a symlink")
def fw26(c: Ctx):
    u, v = c.uuid(), c.uuid()
    c.plant(c.ws / "conf" / "a.env", u)
    c.plant(c.out / "conf" / "a.env", v, 0o666)
    r = c.sandbox(f"mv conf real; ln -s {q(str(c.out / 'conf'))} conf; ls -l")
    c.need_control((c.ws / "conf").is_symlink(), f"the first run could not even do it: {r}")
    c.need_control(u in c.control("cat real/a.env").text, "outside too it cannot be read")
    r = c.sandbox("cat conf/a.env; cat real/a.env", flags=["--hide", "conf/a.env", "--hide", "**/a.env"],
                  refusal_ok=True)
    c.must(not c.leaks(r, u) and not c.leaks(r, v), f"a canary came out: {r}")
    return HELD


@check("FW-27", prio="P1", null=True, catches=("tmp",),
       title="/tmp, /var/tmp and /dev/shm are private, both ways")
def fw27(c: Ctx):
    u, tag = c.uuid(), "vcf-" + c.uuid()
    places = ["/tmp", "/var/tmp", "/dev/shm"]
    planted = []
    try:
        for p in places:
            f = f"{p}/{tag}"
            with open(f, "w") as out:
                out.write(u)
            os.chmod(f, 0o644)
            planted.append(f)
        script = "\n".join(f"cat {p}/{tag}; echo x > {p}/{tag}.new; ln -s /etc {p}/{tag}.lnk" for p in places)
        c.need_control(c.control(f"cat /tmp/{tag}").text == u, "outside too it cannot be read")
        r = c.sandbox(script)
        made = [f"{p}/{tag}{e}" for p in places for e in (".new", ".lnk") if os.path.lexists(f"{p}/{tag}{e}")]
        planted += made
        c.must(not c.leaks(r, u), f"a file of the host's /tmp was read: {r}")
        c.must(not made, f"made on the host: {made}")
    finally:
        for f in planted:
            os.unlink(f)
    return HELD


# ------------------------------------------------------------------- the host edits during the run


@check("FW-29", prio="P0", null=True, catches=("remask",), forms=("run", "exec"),
       title="git config on the host during the run: protected again within 1 s")
def fw29(c: Ctx):
    make_repo(c, c.ws)
    conf = c.ws / ".git" / "config"
    text = "vcf" + c.uuid()
    script = f"while [ ! -e stop ]; do echo '# {text}' >> .git/config; sleep 0.03; done 2>/dev/null; echo polled"

    def change():
        with c.host_edit():
            r = git(c, c.ws, "config", "user.name", "somebody")
        c.need_control(r.ok, f"git config failed: {r}")

    early = []

    def change_and_settle():
        change()
        time.sleep(1.0)
        early.append(conf.read_bytes().count(text.encode()))

    polled(c, script, [], change_and_settle, settle=0.0, watch=0.5)
    count = conf.read_bytes().count(text.encode())
    c.must(count == early[0], f"written {count - early[0]} times later than 1 s after the replacement")
    c.note("writes within the first second:", early[0])
    c.need_control("somebody" in conf.read_text(), "the host's own change was lost")
    return HELD


@check("FW-30", prio="P0", null=True, catches=("remask",), forms=("run",),
       title="hooks folder replaced on the host during the run: protected again")
def fw30(c: Ctx):
    make_repo(c, c.ws)
    hooks = c.ws / ".git" / "hooks"
    script = "while [ ! -e stop ]; do echo x > .git/hooks/pre-push; sleep 0.03; done 2>/dev/null; echo polled"

    def change():
        with c.host_edit():
            c.host("mv .git/hooks .git/old; mkdir .git/hooks; rm -rf .git/old")
        time.sleep(1.0)
        if (hooks / "pre-push").exists():
            c.note("written within the first second")
            (hooks / "pre-push").unlink()

    polled(c, script, [], change, settle=0.0, watch=0.5)
    c.must(not (hooks / "pre-push").exists(), "written into the new hooks folder")
    return HELD


@check("FW-31", prio="P1", forms=("run",),
       title="a save on the host over a protected file is never lost: there, or in the quarantine and named; in place, it is left alone")
def fw31(c: Ctx):
    f = c.plant(c.ws / ".mcp.json", "{}\n")
    r = polled(c, "while [ ! -e stop ]; do echo x >> .mcp.json; sleep 0.03; done 2>/dev/null; echo polled", [],
               lambda: editor_save(c, f, '{"saved": 1}\n'))
    c.must(f.exists() and "x" not in f.read_text(), "written to inside")
    if '"saved"' not in f.read_text():
        c.must(c.found_in(c.state, '"saved"', planted=True), "the host's own save is lost")
        c.must(".mcp.json" in r.errtext, f"taken away without a word: {r}")
    (c.ws / "stop").unlink()
    r = polled(c, "while [ ! -e stop ]; do echo x >> .mcp.json; sleep 0.03; done 2>/dev/null; echo polled", [],
               lambda: f.write_text('{"in place": 1}\n'))
    c.must(f.read_text() == '{"in place": 1}\n' and "quarantined" not in r.errtext, f"a save in place was undone: {r}")
    return HELD


@check("FW-32", prio="P0", null=True, catches=("remask",), forms=("run", "exec"),
       title="a protected file saved by moving the old one aside: protected again within 1 s, and not lost")
def fw32(c: Ctx):
    f = c.plant(c.ws / ".mcp.json", "{}\n")
    text = "vcf" + c.uuid()
    early = []

    def lines():
        return f.read_text().count(text) if f.exists() else 0

    def change():
        c.host("mv .mcp.json .mcp.json~; echo '{\"saved\": 1}' > .mcp.json; rm -f .mcp.json~")
        time.sleep(1.0)
        early.append(lines())

    # The agent never makes the file anew: in the moment between the two steps it would rightly be taken away.
    r = polled(c, f"echo '# {text}' > line; while [ ! -e stop ]; do dd if=line of=.mcp.json conv=nocreat,notrunc "
               "oflag=append; sleep 0.03; done 2>/dev/null; echo polled", [], change, settle=0.0, watch=0.5)
    c.must(lines() == early[0], f"written {lines() - early[0]} times later than 1 s after the save")
    c.note("writes within the first second:", early[0])
    if not f.exists() or '"saved"' not in f.read_text():
        # Nobody can tell whose a file is that appears under a free name; then it must be kept and named.
        c.note("the host's own save was taken into the quarantine")
        c.must(c.found_in(c.state, '"saved"'), "the host's own save is lost")
        c.must(".mcp.json" in r.errtext or c.form == "exec", f"taken away without a word: {r}")
    return HELD


# ------------------------------------------------------------------------- changes that wait for review


@check("FW-28", prio="P0", forms=("run",), catches=("review", "layers"),
       title="review mode: the host's tree is untouched until apply, and hostile entries are not taken over")
def fw28(c: Ctx):
    c.plant(c.ws / "keep", "host\n")
    c.plant(c.ws / "gone", "host\n")
    c.plant(c.out / "target", "outside\n")
    before = c.tree_entries(c.ws)
    script = (f"echo agent > keep; rm gone; ln -s {q(str(c.out))} way; ln -s {q(str(c.out / 'target'))} l; mkfifo p; "
              "mkdir -p .git/hooks .vscode; echo x > .git/hooks/pre-commit; echo x > .vscode/tasks.json; echo new > new; "
              "ls /.vitrine/layers/*; cat /.vitrine/layers/*/keep 2>/dev/null; echo agent > /.vitrine/layers/1/keep; "
              "echo agent > /.vitrine/layers/0/fs/raw; true")
    r = c.sandbox(["sh", "-c", script], ["--name", "rev", "--mode", "review"])
    c.need_control(r.rc == 0, f"no sandbox in review mode: {r}")
    c.must("host" not in r.text.split(), "a layer can be read around the overlay")
    unchanged(c, before, c.ws, "before apply the workspace")
    c.must(not c.found_in(c.state, "agent\n") or "raw" not in c.vitrine("diff", "--name-only", "rev").text,
           "a layer can be written around the overlay")
    # The way turns into a directory with a file on the host's side: nothing may be written through it.
    a = c.vitrine("apply", "--yes", "rev")
    c.must(a.rc == 1, f"apply refused nothing: {a}")
    for name in ("way", "l", "p", ".git/hooks/pre-commit", ".vscode/tasks.json"):
        c.must(not os.path.lexists(c.ws / name), f"{name} was taken over unasked")
        c.must(name in a.errtext, f"{name} was left without a word")
    c.need_control((c.ws / "new").exists() and not (c.ws / "gone").exists(), f"apply took nothing over: {a}")
    c.must((c.out / "target").read_text() == "outside\n", "written through a link")
    return HELD


@check("FW-28b", prio="P0", forms=("run",), catches=("hide", "protect"),
       title="review mode: hidden stays hidden and protected stays protected on the overlay")
def fw28b(c: Ctx):
    make_repo(c, c.ws)
    secret = c.uuid()
    c.plant(c.ws / "a" / ".env", secret + "\n")
    before = c.tree_entries(c.ws)
    script = ("cat a/.env; cp a/.env copy; mv a b; cat b/.env; rm -f a/.env; cat a/.env; ln a/.env hard; cat hard; "
              "echo x > .git/hooks/pre-commit; echo '[core]' >> .git/config; true")
    r = c.sandbox(["sh", "-c", script], ["--name", "rev", "--mode", "review"])
    c.need_control(r.rc == 0, f"no sandbox in review mode: {r}")
    c.must(not c.leaks(r, secret), "a hidden file was read")
    c.must(not c.found_in(c.state / "vitrine" / "layers", secret), "a hidden file was copied into a layer")
    names = c.vitrine("diff", "--name-only", "rev").text
    c.must("hooks" not in names and ".git/config" not in names, f"a protected file was changed: {names}")
    unchanged(c, before, c.ws, "the workspace")
    return HELD


@check("FW-33", prio="P0", forms=("run",), catches=("clone",),
       title="clone mode: the host's tree is untouched, what the agent's repository configures runs nowhere but inside")
def fw33(c: Ctx):
    make_repo(c, c.ws)
    canary = c.out / "ran"
    before = c.tree_entries(c.ws)
    evil = f"touch {q(str(canary))}; touch ran-inside; cat"
    script = ("echo agent > keep; git add -A; git -c user.name=a -c user.email=a@b commit -qm agent; "
              "for k in core.fsmonitor core.hooksPath core.sshCommand uploadpack.packObjectsHook core.alternateRefsCommand "
              f"alias.fetch filter.x.clean core.pager; do git config $k {q(evil)}; done; "
              "mkdir -p .git/hooks; for h in reference-transaction post-checkout pre-push post-merge; do "
              f"printf '#!/bin/sh\\ntouch {canary}\\n' > .git/hooks/$h; chmod 755 .git/hooks/$h; done; "
              "echo '* filter=x diff=x' > .git/info/attributes; "
              "echo x > /vitrine/repo.git/refs/heads/evil; echo x > /vitrine/repo.git/config; "
              f"echo agent > /vitrine/repo.git/objects/info/alternates; echo {q(str(c.out))} > .git/commondir2; true")
    r = c.sandbox(["sh", "-c", script], ["--name", "cl", "--mode", "clone"])
    c.need_control(r.rc == 0, f"no sandbox in clone mode: {r}")
    ours = {str(c.ws / ".git"), str(c.ws / ".git/config")}  # where the remote is written
    after = {k: v for k, v in c.tree_entries(c.ws).items() if os.fspath(k) not in ours}
    c.must(after == {k: v for k, v in before.items() if os.fspath(k) not in ours}, "clone mode changed the workspace")
    c.must("hooksPath" not in (c.ws / ".git/config").read_text(), "the agent wrote the host's configuration")
    f = c.vitrine("fetch", "--json", "cl")
    c.must(not canary.exists(), f"something of the agent's repository ran on the host: {f}")
    repo = c.state / "vitrine" / "sandboxes" / "cl" / "repo.git"
    c.need_control('"commit"' in f.text, f"no commit came out: {f}")
    c.must("[core]" in (repo / "config").read_text() and not (repo / "objects/info/alternates").exists()
           and not (repo / "refs/heads/evil").exists(), "the repository outside was written from inside")
    return HELD


@check("FW-04b", prio="P0", forms=("run",),
       title="checkpoint, diff, undo and apply while the agent swaps directories for links to outside")
def fw04b(c: Ctx):
    secret = c.uuid()
    c.plant(c.out / "f", secret + "\n")
    c.plant(c.ws / "d" / "f", "inside\n")
    swap = (f"ln -s {q(str(c.out))} s; mkdir -p d; i=0; echo up; while [ ! -e stop ]; do mv -T d e; mv -T s d; mv -T d s; mv -T e d; "
            "echo $i > d/f; i=$((i+1)); done 2>/dev/null")
    p = c.start(["sh", "-c", swap], ["--name", "swap"])
    c.need_control(p.wait_for("up"), "the agent did not start")
    for _ in range(15):
        for words in (("checkpoint",), ("diff",), ("undo", "--force")):
            r = c.vitrine(*words)
            c.must(not c.leaks(r, secret), f"{words[0]} showed what lies outside")
    (c.ws / "stop").write_text("")
    p.stop()
    c.must((c.out / "f").read_text() == secret + "\n", "what lies outside was changed")
    c.must(not c.found_in(c.state, secret), "what lies outside was saved")
    return HELD


# What an agent may well do, and what will run with the user's rights later.
PLANTED = ["venv/bin/python", "node_modules/.bin/tool", "package.json", "sub/Makefile", "build.sh"]


@check("FW-16", prio="P2", forms=("run",), catches=("runs",),
       title="programs and build files that were changed are named in the report and in the difference")
def fw16(c: Ctx):
    c.plant(c.ws / PLANTED[0], "old", 0o755)
    c.plant(c.ws / "package.json", "{}")
    c.plant(c.ws / "same.sh", "#!/bin/sh\n", 0o755)
    write = "; ".join(f"mkdir -p $(dirname {f}); echo changed > {f}" for f in PLANTED)
    write += f"; chmod +x {PLANTED[0]} {PLANTED[1]} build.sh; echo text > notes.txt"
    name = c.new_name()
    r = c.vitrine("run", "--name", name, "--json", "--", "sh", "-c", write)
    c.need_control(r.ok and all((c.ws / f).exists() for f in PLANTED), f"not written: {r}")
    named = {x["path"] for x in r.json().get("runs", [])}
    c.must(named == set(PLANTED), f"the report names {sorted(named)}")
    r = c.vitrine("diff", name, "--stat", "--all")
    told = {line.split()[1]: "  ! " in line for line in r.text.splitlines() if line[:2] in ("A ", "M ")}
    c.need_control("notes.txt" in told, f"no difference: {r}")
    c.must(not told["notes.txt"] and "same.sh" not in told, f"told of what runs nothing: {r}")
    silent = [f for f in PLANTED if not told.get(f)]
    c.must(not silent, f"not told: {silent}: {r}")
    return HELD
