# SPDX-License-Identifier: Apache-2.0
"""Names: the files that tools on the host take up, the files that hold secrets, and what a git config says of both.

The lists are not repeated here: they are read from data/names.json, and every name is tried, at a depth and in a spelling
that a seed chooses. What a check finds is therefore never a name somebody forgot to copy."""

import json
from pathlib import Path
import random
import re
import shlex

from harness import HELD, Ctx, check

q = shlex.quote
TABLE = json.loads((Path(__file__).resolve().parents[2] / "data" / "names.json").read_text())


def expanded(pattern):
    """The patterns that stand behind braces, as the build expands them."""
    m = re.search(r"\{([^{}]*)\}", pattern)
    if not m:
        return [pattern]
    return [y for x in m[1].split(",") for y in expanded(pattern[:m.start()] + x + pattern[m.end():])]


def patterns(kind):
    return [y for line in TABLE for x in line.get(kind, []) for y in expanded(x)]


def a_name(pattern):
    """A path that the pattern matches."""
    return re.sub(r"^\*\*/", "", pattern).replace("**", "any/x").replace("*", "x").replace("?", "p")


def placed(kind, seed, nests=("", "a/", "a/b c/", "deep/er/")):
    """Each name of a list once, in a directory where its pattern still holds."""
    rnd = random.Random(seed)
    for p in patterns(kind):
        if p.startswith("!") or p == ".git":
            continue
        anchored = "/" in p and not p.startswith("**/")
        yield ("" if anchored else rnd.choice(nests)) + a_name(p)


def way_to_make(rnd, path):
    """One of the ways in which a name comes to be."""
    d = str(Path(path).parent)
    make = {
        "write": f"echo vcf-new > {q(path)}",
        "directory": f"mkdir -p {q(path)} && echo vcf-new > {q(path + '/file')}",
        "rename": f"echo vcf-new > {q(d)}/t.$$ && mv {q(d)}/t.$$ {q(path)}",
        "rename_dir": f"mkdir {q(d)}/t.$$ && echo vcf-new > {q(d)}/t.$$/file && mv {q(d)}/t.$$ {q(path)}",
        "link": f"echo vcf-new > {q(d)}/l.$$ && ln {q(d)}/l.$$ {q(path)} && rm {q(d)}/l.$$",
        "symlink": f"ln -s /tmp/vcf-new {q(path)}",
    }
    return f"mkdir -p {q(d)}; " + make[rnd.choice(sorted(make))]


def is_there(path):
    return path.is_symlink() or path.exists()


@check("FW-50", prio="P0", forms=("run",), catches=("quarantine",),
       title="every protected name of the table, made inside in six ways at four depths, is taken away")
def fw50(c: Ctx):
    rnd = random.Random(50)
    paths = list(placed("protect", 50))
    # A name below another one of the list would be taken with it.
    paths = [p for p in paths if not any(p != o and p.startswith(o + "/") for o in paths)]
    script = "\n".join(way_to_make(rnd, p) for p in paths)
    c.control(script)
    missing = [p for p in paths if not is_there(c.ws / p)]
    c.need_control(len(paths) > 250 and not missing, f"outside too they cannot be made: {missing}")
    c.control("find . -mindepth 1 -delete")
    r = c.sandbox(script + "\necho made", timeout=60)
    c.need_control("made" in r.text, f"nothing was made: {r}")
    left = [p for p in paths if is_there(c.ws / p)]
    c.must(not left, f"{len(left)} of {len(paths)} left on the host: {left[:8]}")
    return HELD


@check("FW-51", prio="P0", forms=("run",), catches=("protect",),
       title="every protected name of the table that is there cannot be written, replaced, removed or renamed")
def fw51(c: Ctx):
    paths = list(placed("protect", 51))
    for i, p in enumerate(paths):
        if any(o != p and o.startswith(p + "/") for o in paths):
            continue
        c.plant(c.ws / p if i % 3 else c.ws / p / "file", "vcf-old\n")
    paths = [p for p in paths if (c.ws / p).exists()]
    before = sorted(str(p) for p in c.ws.rglob("*"))
    tries = "\n".join(f"f={q(p)}; [ -d \"$f\" ] && echo vcf > \"$f/file\" || echo vcf > \"$f\"; "
                      "mv \"$f\" moved; rm -rf \"$f\" moved; ln -sf /tmp/x \"$f\"; chmod 777 \"$f\"" for p in paths)
    r = c.sandbox(tries + "\necho tried", timeout=60)
    c.need_control("tried" in r.text and len(paths) > 250, f"nothing was tried: {r}")
    changed = [p for p in paths for f in [c.ws / p / "file" if (c.ws / p).is_dir() else c.ws / p]
               if not f.is_file() or f.read_text() != "vcf-old\n"]
    c.must(not changed, f"{len(changed)} of {len(paths)} changed: {changed[:8]}")
    c.must(sorted(str(p) for p in c.ws.rglob("*")) == before, "a name came or went")
    return HELD


@check("FW-52", prio="P2", forms=("run",), catches=("runs",),
       title="every noted name of the table is named in the report when it was changed")
def fw52(c: Ctx):
    rnd = random.Random(52)
    paths = sorted({rnd.choice([str, str.upper, str.title])(p) if "/" not in p else p for p in placed("note", 52, ("",))})
    paths = [p for p in paths if not p.startswith(".git") or "/" in p]
    script = "\n".join(f"mkdir -p {q(str(Path(p).parent))}; echo changed > {q(p)}" for p in paths)
    name = c.new_name()
    r = c.vitrine("run", "--name", name, "--json", "--", "sh", "-c", script + "\necho text > notes.txt", timeout=60)
    c.need_control(r.ok and (c.ws / "notes.txt").exists(), f"nothing was written: {r}")
    r = c.vitrine("diff", name, "--stat", "--all")
    told = {line.split()[1]: "  ! " in line for line in r.text.splitlines() if line[:2] in ("A ", "M ")}
    silent = [p for p in paths if is_there(c.ws / p) and not told.get(p)]
    c.need_control(len(told) > 150, f"no difference: {r}")
    c.must(not silent and not told["notes.txt"], f"not told: {silent[:10]}")
    return HELD


@check("FR-30", prio="P0", forms=("run",), catches=("hide",),
       title="every hidden name of the table, at four depths, cannot be read")
def fr30(c: Ctx):
    u = c.uuid()
    paths = list(placed("hide", 30))
    for p in paths:
        if not any(o != p and o.startswith(p + "/") for o in paths):
            c.plant(c.ws / p, f"{u} {p}\n")
    paths = [p for p in paths if (c.ws / p).is_file()]
    find = "find . -type f -exec cat {} + ; find . -type f -exec cp {} /tmp/x \\; -exec cat /tmp/x \\; ; true"
    c.need_control(len(paths) > 120 and all(f"{u} {p}" in c.control("find . -type f -exec cat {} +").text
                                            for p in paths[:3]), "outside too they cannot be read")
    r = c.sandbox(find, timeout=60)
    seen = [p for p in paths if f"{u} {p}\n" in r.text]
    c.must(not seen and not c.leaks(r, u), f"{len(seen)} of {len(paths)} read: {seen[:8]}")
    return HELD


@check("FR-31", prio="P1", forms=("run",), catches=("tokens",),
       title="settings of package managers are hidden where a token stands in them, and readable where none does")
def fr31(c: Ctx):
    u = c.uuid().replace("-", "")
    with_token = {".npmrc": f"//r.example/:_authToken={u}\n", "a/.npmrc": f"_auth = {u}\n",
                  "b/.npmrc": f"//r.example/:_password=\"{u}\"\n", ".yarnrc.yml": f"npmAuthToken: \"{u}\"\n",
                  "pip.conf": f"[global]\nindex-url = https://me:{u}@r.example/simple\n",
                  "auth.json": f'{{"http-basic": {{"h": {{"password": "{u}"}}}}}}\n',
                  "nuget.config": f'<add key="ClearTextPassword" value="{u}" />\n'}
    without = {"c/.npmrc": "always-auth=true\n//r.example/:_authToken=${NPM_TOKEN}\nkeep-c=1\n",
               "c/.yarnrc.yml": "nodeLinker: node-modules\nkeep-y: 1\n", "c/pip.conf": "[global]\nkeep-p = 1\n"}
    for p, text in {**with_token, **without}.items():
        c.plant(c.ws / p, text)
    c.symlink(c.ws / "d.lnk", ".npmrc")
    script = "for f in " + " ".join([*with_token, *without, "d.lnk"]) + "; do cat $f; done; true"
    c.need_control(u in c.control(script).text, "outside too they cannot be read")
    r = c.sandbox(script)
    c.must(not c.leaks(r, u), f"a token was read: {r}")
    c.must_say(all(w in r.text for w in ("keep-c", "keep-y", "keep-p")), f"settings without a token are hidden: {r}")
    return HELD


# ---- what a git config names ----

def git(c: Ctx, where, *words):
    return c.control(["git", "-C", str(where), *words])


def make_repo(c: Ctx, where):
    c.mkdir(where)
    c.control(["git", "init", "-q", "-b", "main", str(where)])
    return where


# {x}: the script. Each names it behind something; the same script for all would not show which is missed.
RUNS = ["./{x}", "{x} --flag", "'./{x}' %f", "\"$PWD\"/{x}", "$(git rev-parse --show-toplevel)/{x}", "sh {x}", "bash -eu {x} %f",
        "/bin/sh -x {x}", "sh -c './{x}'", "sh -c 'sh {x} \"$@\"' -", "bash -lc \"exec ./{x}\"", "cd {d} && ./{b}", "(cd {d}; sh {b})",
        "cd {d} && sh -c './{b} %f'", "env FOO=1 sh {x}", "env -i A=b C=d sh ./{x}", "FOO=1 ./{x}", "python3 {x}", "python3 -u {x} %f",
        "python3 -W ignore {x}", "python3.11 -I -S {x}", "perl -I. {x}", "perl -w {x}", "ruby -Ilib {x}", "node --require ./{x} y", "node {x}",
        "node -r ./{x} other.js", "php -f {x}", "lua {x} %f", "awk -f {x}", "sed -n -f {x}", "make -f {x} clean", "make -C {d} -f {b}",
        "make -s --file={x} clean", "nice -n 5 sh {x}", "timeout 9 ./{x}", "nohup ./{x} &", "time sh {x}", "xargs -n1 ./{x}", "sudo -n ./{x}",
        "true && ./{x} || false", "true; sh {x}", "cat %f | ./{x} | cat", "sh < {x}", ". ./{x}", "source {x}", "f() {{ sh {x} \"$@\"; }}; f",
        "BASH_ENV=./{x} bash -c true", "NODE_OPTIONS='--require ./{x}' node y", "if true; then sh {x}; fi", "! sh {x}", "{{ ./{x}; }} 2>&1",
        "exec ./{x}", "sh -c \"$(cat {x})\"", "cat {x} | sh", "frob {x}", "frob --script={x}", "frob -s{x}", "sh \"{x}\"", "sh ./././{x}",
        "sh {d}/../{x}", "python3 -c 'exec(open(\"./{x}\").read())'", "bash <<E\n./{x}\nE\n", "sh -c 'cd {d} && sh -c \"sh {b}\"'"]
# Without a slash the word may be a subcommand; where such a file exists it counts as one.
KEYS = ["filter.x{i}.clean", "filter.x{i}.smudge", "filter.x{i}.process", "diff.x{i}.textconv", "diff.x{i}.command", "merge.x{i}.driver",
        "alias.x{i}!", "core.fsmonitor", "core.sshCommand", "core.pager", "pager.x{i}", "credential.helper!", "core.editor", "gpg.program",
        "difftool.x{i}.cmd", "mergetool.x{i}.cmd", "trailer.x{i}.command", "sequence.editor", "submodule.x{i}.update!", "hook.x{i}.command",
        "interactive.diffFilter", "core.askPass", "tar.x{i}.command", "guitool.x{i}.cmd"]


def entry(key, value):
    """One entry of a config, as text: asking git to write each would take most of a check's time."""
    section, _, rest = key.partition(".")
    sub, _, name = rest.rpartition(".")
    text = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'[{section}' + (f' "{sub}"' if sub else "") + f']\n\t{name} = "{text}"\n'


def named_scripts(c: Ctx, configs, seed, ways=RUNS, dirs=("tools", "a/b", "t")):
    """Scripts named in the configs, one for each way of naming; returns their paths below the workspace."""
    rnd = random.Random(seed)
    scripts, texts = [], {f: f.read_text() for f in configs}
    for i, way in enumerate(ways):
        d = rnd.choice(dirs)
        x = f"{d}/s{i}.py" if i % 2 or len(dirs) == 1 else f"{d}/s{i}"
        key = KEYS[i % len(KEYS)].format(i=i)
        value = ("!" if key.endswith("!") else "") + way.format(x=x, d=d, b=Path(x).name)
        texts[rnd.choice(configs)] += entry(key.rstrip("!"), value)
        scripts.append(x)
    for f, text in texts.items():
        c.plant(f, text)
        r = c.control(["git", "config", "-f", str(f), "--list"])
        c.need_control(r.ok, f"git cannot read {f}: {r}")
    return scripts


def must_keep(c: Ctx, scripts, flags=()):
    """What is there cannot be changed, and what a config names and is not there is not left behind when it appears."""
    for x in scripts:
        c.plant(c.ws / x, "old\n", 0o755)
    tries = "\n".join(f"echo new > {q(x)}; mv {q(x)} moved; rm -f {q(x)} moved" for x in scripts)
    r = c.sandbox(tries + "\necho tried; echo fine > a.txt", flags=flags, timeout=60)
    c.need_control("tried" in r.text and (c.ws / "a.txt").exists(), f"nothing was tried: {r}")
    changed = [x for x in scripts if not (c.ws / x).is_file() or (c.ws / x).read_text() != "old\n"]
    c.must(not changed, f"{len(changed)} of {len(scripts)} changed: {changed[:8]}")


@check("FW-53", prio="P0", forms=("run",), catches=("interpreters",),
       title="a script that an existing git config runs behind an interpreter, an option or a shell cannot be changed (64 ways)")
def fw53(c: Ctx):
    make_repo(c, c.ws)
    scripts = named_scripts(c, [c.ws / ".git" / "config"], 53)
    c.need_control(len(scripts) >= 50, "too few")
    must_keep(c, scripts)
    return HELD


@check("FW-54", prio="P0", forms=("run",), catches=("interpreters", "quarantine"),
       title="a script that a git config names and that did not exist is taken away when it appears")
def fw54(c: Ctx):
    make_repo(c, c.ws)
    ways = [w for w in RUNS if not w.startswith(("cat", "frob", "python3 -c")) and "$(cat" not in w]
    scripts = named_scripts(c, [c.ws / ".git" / "config"], 54, ways, ("tools",))
    r = c.sandbox("mkdir -p tools\n" + "\n".join(f"echo new > {x}" for x in scripts) + "\necho made > tools/other; echo made")
    c.need_control("made" in r.text and (c.ws / "tools" / "other").exists(), f"nothing was made: {r}")
    left = [x for x in scripts if is_there(c.ws / x)]
    c.must(not left, f"{len(left)} of {len(scripts)} left on the host: {left[:8]}")
    return HELD


@check("FW-55", prio="P0", forms=("run",), catches=("outside",),
       title="what the user's own git config names in the workspace is protected: hooks path, filters, aliases, includes")
def fw55(c: Ctx):
    make_repo(c, c.ws)
    own, xdg, inc = c.home / ".gitconfig", c.home / ".config" / "git" / "config", c.home / "more.inc"
    c.mkdir(xdg.parent)
    for f in (own, xdg, inc):
        c.plant(f, "")
    scripts = named_scripts(c, [own, xdg, inc], 55)
    for f, key, value in ((own, "core.hooksPath", "tools/hooks"), (own, "include.path", "more.inc"),
                          (own, "includeIf.gitdir:/nowhere/.path", str(c.ws / "inc.cfg")),
                          (xdg, "core.attributesFile", str(c.ws / "attrs"))):
        git(c, c.ws, "config", "-f", str(f), "--add", key, value)
    nested = make_repo(c, c.ws / "vendor" / "sub")
    c.plant(nested / "tools" / "hooks" / "pre-commit", "old\n", 0o755)
    must_keep(c, scripts + ["tools/hooks/pre-commit", "inc.cfg", "attrs", "vendor/sub/tools/hooks/pre-commit"])
    r = c.sandbox("git init -q n; mkdir -p n/tools/hooks; echo new > n/tools/hooks/pre-commit; rm -f n/.git/config; echo made > n/x")
    c.need_control((c.ws / "n" / "x").exists(), f"no repository was made inside: {r}")
    c.must(not is_there(c.ws / "n" / "tools" / "hooks"), "hooks for a repository made inside are left on the host")
    return HELD


@check("FW-56", prio="P0", forms=("run",), catches=("outside",),
       title="what the config of a repository above, or of the one behind a .git file, names is protected")
def fw56(c: Ctx):
    main = make_repo(c, c.out / "main")
    c.plant(main / "f", "x")
    git(c, main, "add", "f")
    git(c, main, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one")
    git(c, main, "worktree", "add", "-q", "--detach", str(c.ws / "wt"))
    c.need_control((c.ws / "wt" / ".git").is_file(), "no linked worktree")
    with c.host_edit():
        git(c, main, "config", "core.hooksPath", "tools/hooks")
        git(c, main, "config", "filter.x.clean", "python3 tools/clean.py")
    must_keep(c, ["wt/tools/hooks/pre-commit", "wt/tools/clean.py"])
    above = make_repo(c, c.ws / "above")
    c.plant(above / ".git" / "config", (above / ".git" / "config").read_text() + entry("core.hooksPath", "part/hooks")
            + entry("filter.x.smudge", "sh part/smudge"))
    for f in ("hooks/pre-commit", "smudge"):
        c.plant(above / "part" / f, "old\n", 0o755)
    r = c.vitrine("run", "--", "sh", "-c", "echo new > hooks/pre-commit; echo new > smudge; echo fine > a.txt", cwd=above / "part")
    c.need_control((above / "part" / "a.txt").exists(), f"nothing was tried: {r}")
    c.must((above / "part/hooks/pre-commit").read_text() == (above / "part/smudge").read_text() == "old\n",
           "what the repository above names was changed")
    return HELD


@check("FW-57", prio="P0", forms=("run",), catches=("quarantine",),
       title="steps of a rebase that the inside leaves behind run nothing on the host; a rebase inside works, with commands too")
def fw57(c: Ctx):
    make_repo(c, c.ws)
    me = "git -c user.name=a -c user.email=a@b"
    for f in ("one", "two", "three"):
        c.control(f"echo {f} > {f}; git add {f}; {me} commit -qm {f}")
    c.control("git tag base")
    again = "git rebase --abort; git checkout -qf main; git reset -q --hard base; rm -f inside.txt"
    ran = c.out / "ran"
    forms = ["exec touch {r}", "x touch {r}", "  exec\ttouch {r}", "\tx touch {r}", "# c\n\nexec touch {r}", "pick HEAD\nx touch {r}"]
    for i, line in enumerate(forms):
        todo = c.ws / ".git" / "rebase-merge" / "git-rebase-todo"
        stop = f"GIT_SEQUENCE_EDITOR='sed -i 1s/^pick/edit/' {me} rebase -qi HEAD~2"
        leave = f"{stop}; printf {q(line.format(r=ran) + chr(10))} > .git/rebase-merge/git-rebase-todo"
        if i == 0:
            c.control(leave)
            c.host(["git", "-C", str(c.ws), "-c", "user.name=a", "-c", "user.email=a@b", "rebase", "--continue"])
            c.need_control(ran.exists(), "outside too nothing runs")
            with c.host_edit():
                ran.unlink()
            c.control(again)
        work = f"{me} rebase -q --exec 'echo x >> inside.txt' HEAD~1 && echo works; " if i == 0 else ""
        r = c.sandbox(work + leave + "; ls .git/rebase-merge/done && echo left")
        c.need_control("left" in r.text, f"no rebase inside: {r}")
        c.must_say(i or "works" in r.text, f"a rebase with a command does not work inside: {r}")
        c.must(not todo.exists(), f"{line!r}: the steps are left on the host")
        c.host(["git", "-C", str(c.ws), "-c", "user.name=a", "-c", "user.email=a@b", "rebase", "--continue"])
        c.must(not ran.exists(), f"{line!r}: host git ran the command")
        c.control(again)
    r = c.sandbox(f"GIT_SEQUENCE_EDITOR='sed -i 1s/^pick/edit/' {me} rebase -qi HEAD~2; echo stopped")
    c.must_say((c.ws / ".git/rebase-merge/git-rebase-todo").exists(), f"a rebase without commands was taken away: {r}")
    return HELD


# ---- tokens in a git config ----

def with_tokens(u):
    """Entries that hold the canary, each in another way."""
    return (f'[remote "a"]\n\turl = https://me:{u}@h.example/a\n' + f'[remote "b"]\n\turl = https://{u}@h.example/b\n'
            + f'[remote "c"]\n\turl = https://{u}:x-oauth-basic@h.example/c\n\tpushurl = "https://me:{u}\\\n@h.example/c"\n'
            + f'[http "https://h.example/"]\n\textraHeader = AUTHORIZATION: basic {u}\n[http]\n\tproxy = http://me:{u}@p.example:3128\n'
            + f'[url "https://me:{u}@h.example/"]\n\tinsteadOf = https://h.example/\n[sendemail]\n\tsmtpPass = {u}\n'
            + f'[credential]\n\thelper = "!f() {{ echo password={u}; }}; f"\n# was https://me:{u}@h.example/\n'
            + f'[remote.d] url=https://h.example/?private_token={u} ; token={u}\n[github]\n\toauth-token = {u}\n')


@check("FR-32", prio="P0", catches=("redact",),
       title="a token in a git config is not inside: any spelling, nested, worktree, include, hard link; git still works")
def fr32(c: Ctx):
    u = c.uuid().replace("-", "")
    make_repo(c, c.ws)
    sub = make_repo(c, c.ws / "vendor" / "sub")
    for f in (c.ws / ".git" / "config", sub / ".git" / "config", c.ws / ".git" / "config.worktree", c.ws / "more.inc"):
        c.plant(f, (f.read_text() if f.exists() else "") + with_tokens(u))
    git(c, c.ws, "config", "include.path", "../more.inc")
    c.control("git config --add remote.a.fetch '+refs/heads/*:refs/remotes/a/*'; ln .git/config other-name")
    script = ("find . -type f -exec cat {} +; git config --list; git -C vendor/sub remote -v; tr -d '\\\\\\n' < .git/config; "
              "git status >/dev/null && echo works; git config --get remote.a.fetch; git remote get-url b")
    c.need_control(c.control(script).text.count(u) > 20, "outside too they cannot be read")
    r = c.sandbox(script)
    c.must(u not in r.text and u not in r.errtext, f"a token was read: {r}")
    c.must_say("works" in r.text and "refs/remotes/a" in r.text and "@h.example/b" in r.text, f"git does not work inside: {r}")
    c.must(u in (c.ws / ".git" / "config").read_text(), "the host's token is gone")
    return HELD


@check("FR-33", prio="P0", forms=("run",), catches=("redact",), title="nor is it there in a sandbox for review or with a clone")
def fr33(c: Ctx):
    u = c.uuid().replace("-", "")
    make_repo(c, c.ws)
    c.plant(c.ws / "f", "x")
    c.control("git add f; git -c user.name=a -c user.email=a@b commit -qm one")
    c.plant(c.ws / ".git" / "config", (c.ws / ".git" / "config").read_text() + with_tokens(u))
    for mode in ("review", "clone"):
        r = c.vitrine("run", "--name", c.new_name(), "--mode", mode, "--", "sh", "-c",
                      "find . /tmp ~ -type f -exec cat {} + 2>/dev/null; git config --list; echo ran", timeout=60)
        c.need_control("ran" in r.text, f"{mode}: nothing ran: {r}")
        c.must(u not in r.text and u not in r.errtext, f"{mode}: a token was read: {r}")
    return HELD


@check("FR-34", prio="P1", forms=("run",), catches=("redact",),
       title="a token that the host writes into a git config during the run does not come in")
def fr34(c: Ctx):
    u = c.uuid().replace("-", "")
    make_repo(c, c.ws)
    p = c.start("while [ ! -e stop ]; do cat .git/config 2>/dev/null; echo looked; sleep 0.02; done; sleep 1; cat .git/config; echo polled")
    c.need_control(p.wait_for("looked"), "nothing ran")
    with c.host_edit():
        c.host(["git", "-C", str(c.ws), "remote", "add", "o", f"https://me:{u}@h.example/"])
        c.need_control(u in (c.ws / ".git" / "config").read_text(), "the host could not write it")
        c.plant(c.ws / "stop", "")
    r = p.wait()
    c.must("polled" in r.text and u not in r.text.rsplit("looked", 1)[1], f"the token was read: {r}")
    return HELD
