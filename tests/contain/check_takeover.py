# SPDX-License-Identifier: Apache-2.0
"""FW-60 ...: taking back and taking over obey the same rules as writing.

apply, undo, restore, cp, fork, load and fetch bring files from a sandbox to the host, as a write in place does. The payloads
of the generator (FW-69) are made from the class's own sentence: what a program on the host runs because of where it lies,
or because a configuration names it.
"""

import json
import os
import random
import shlex
import time

from check_fw import canary, git, make_repo
from harness import HELD, Ctx, check, needs_step

q = shlex.quote
BAD_CONFIG = "[core]\\n\\tfsmonitor = {prog}\\n"


def done(c: Ctx, *words, rc=0, **more):
    r = c.vitrine(*words, **more)
    c.need_control(r.rc == rc, f"{words}: {r}")
    return r


def waits(c: Ctx, script, name="rev"):
    """A run under review that makes files."""
    needs_step(c, "layers")
    return done(c, "run", "--name", name, "--mode", "review", "--", "sh", "-c", script)


def bare(path, config):
    return (f"mkdir -p {path}/objects {path}/refs {path}/hooks; echo x > {path}/objects/x; echo x > {path}/refs/x; "
            f"echo 'ref: refs/heads/main' > {path}/HEAD; printf '{config}' > {path}/config; ")


def git_runs(c: Ctx, ran, *places):
    """Host git where a developer would type it; True: it ran the canary."""
    with c.host_edit():
        for p in places:
            if (c.ws / p).is_dir():
                for words in (("status",), ("log", "-1"), ("checkout", "-q", "-b", f"b{time.monotonic_ns()}"), ("add", "-A", ".")):
                    git(c, c.ws / p, *words)
        hit = ran.exists()
        if hit:
            ran.unlink()
    return hit


# ------------------------------------------------------------------------------------ apply


@check("FW-60", prio="P0", forms=("run",), catches=("outcome",),
       title="apply: a bare repository, what the host's git configuration names and what completes a repository stay inside")
def fw60(c: Ctx):
    make_repo(c, c.ws)
    prog, ran = canary(c)
    with c.host_edit():
        for key, value in (("core.hooksPath", "ours"), ("filter.x.clean", "tools/clean.sh"), ("include.path", "../more.cfg")):
            git(c, c.ws, "config", key, value)
    config = BAD_CONFIG.format(prog=prog)
    waits(c, bare("b", config) + f"cp {q(str(prog))} b/hooks/post-checkout; mkdir ours tools; cp canary.sh ours/post-checkout;"
          f"cp canary.sh tools/clean.sh; printf '{config}' > more.cfg; mkdir -p h/objects h/refs; echo x > h/objects/x;"
          f"echo x > h/refs/x; printf '{config}' > h/config; echo plain > plain")
    a = c.vitrine("apply", "--yes", "rev")
    c.must(a.rc == 1, f"apply refused nothing: {a}")
    for name in ("b/config", "b/hooks/post-checkout", "ours/post-checkout", "tools/clean.sh", "more.cfg"):
        c.must(not os.path.lexists(c.ws / name), f"{name} was taken over unasked")
        c.must_say(name in a.errtext, f"{name} was left without a word: {a}")
    c.need_control((c.ws / "plain").exists() and (c.ws / "h/config").exists(), f"apply took nothing over: {a}")
    waits(c, "echo 'ref: refs/heads/main' > h/HEAD")
    a = c.vitrine("apply", "--yes", "rev")
    c.must(not (c.ws / "h/HEAD").exists(), f"what completes a repository came out: {a}")
    c.must(not git_runs(c, ran, ".", "b", "h"), "host git ran the canary")
    return HELD


# ------------------------------------------------------------------------------------ undo, restore


def as_if_inside(c: Ctx, script):
    """A checkpoint that holds what the quarantine would take a moment later: it is made while a sandbox runs that takes
    nothing away. -> its number; the files are gone again."""
    needs_step(c, "layers")
    p = c.start(["sh", "-c", "echo up; exec sleep 60"], ["--name", "runs", "--mode", "review"])
    c.need_control(p.wait_for("up"), "no sandbox runs beside it")
    before = {str(x) for x in c.ws.rglob("*")}
    with c.host_edit():
        c.host(["sh", "-c", script], cwd=c.ws)
    made = sorted({str(x) for x in c.ws.rglob("*")} - before, reverse=True)
    number = json.loads(done(c, "checkpoint", "--inside", "--json", "--workspace", str(c.ws)).text)["checkpoint"]
    p.stop()
    with c.host_edit():
        for x in made:
            os.rmdir(x) if os.path.isdir(x) and not os.path.islink(x) else os.remove(x)
    return number


@check("FW-61", prio="P0", forms=("run",), catches=("outcome",),
       title="restore does not write back what the quarantine takes; the host's own hooks it does")
def fw61(c: Ctx):
    make_repo(c, c.ws)
    prog, ran = canary(c)
    own = c.plant(c.ws / ".git/hooks/pre-push", "#!/bin/sh\nexit 0\n", 0o755)
    done(c, "run", "--name", "box", "--", "true")
    number = as_if_inside(c, bare("b", BAD_CONFIG.format(prog=prog)) + "cp canary.sh .git/hooks/post-checkout; mkdir .vscode;"
                          "echo x > .vscode/tasks.json; echo plain > plain")
    with c.host_edit():
        own.unlink()
    r = c.vitrine("restore", "--force", str(number), cwd=c.ws)
    c.must(r.rc == 1, f"restore refused nothing: {r}")
    for name in ("b/config", ".git/hooks/post-checkout", ".vscode/tasks.json"):
        c.must(not os.path.lexists(c.ws / name), f"{name} was written back")
        c.must_say(name in r.errtext, f"{name} was left without a word: {r}")
    c.need_control((c.ws / "plain").exists(), f"restore brought nothing back: {r}")
    c.must(not git_runs(c, ran, ".", "b"), "host git ran the canary")
    c.must_say(own.exists(), f"the host's own hook did not come back: {r}")
    with c.host_edit():
        own.unlink()
    r = c.vitrine("undo", "--force", "box")
    c.must_say(own.exists(), f"the host's own hook did not come back by undo: {r}")
    return HELD


@check("FW-62", prio="P0", forms=("run",), catches=("undo-target",),
       title="undo and diff go by the host's checkpoints, not by one that the inside asked for")
def fw62(c: Ctx):
    needs_step(c, "host sockets")
    c.plant(c.ws / "f", "host\n")
    r = done(c, "run", "--name", "box", "--", "sh", "-c", "echo agent > f; vitrine-checkpoint good && echo later > f")
    listed = json.loads(done(c, "checkpoints", "--json", "box").text)["checkpoints"]
    c.need_control("inside" in [x["kind"] for x in listed], f"none was asked for inside: {r} {listed}")
    d = c.vitrine("diff", "box")
    c.must("-host" in d.text, f"what the agent did before its checkpoint is not shown: {d}")
    done(c, "undo", "box")
    c.must((c.ws / "f").read_text() == "host\n", "undo went to the agent's checkpoint")
    return HELD


# ------------------------------------------------------------------------------------ what was shown


@check("FW-63", prio="P0", forms=("run",), catches=("shown",),
       title="what is applied is what was shown, also while the sandbox writes on")
def fw63(c: Ctx):
    needs_step(c, "layers")
    c.plant(c.ws / "f", "host\n")
    flip = "echo up; while :; do echo shown > f.n; mv f.n f; echo other > f.n; mv f.n f; done"
    waits(c, "echo shown > f")
    token = json.loads(done(c, "diff", "--json", "rev").text)["shown"]
    waits(c, "echo other > f")
    for words in (("apply", "--shown", token, "rev"), ("apply", "rev")):
        a = c.vitrine(*words)
        c.must((c.ws / "f").read_text() == "host\n", f"{words} took over what was not shown")
        c.must(a.rc == 125, f"{words} did not refuse: {a}")
    c.must_say("+other" in a.text, f"apply did not show what is new: {a}")
    p = c.start(["sh", "-c", flip], ["--name", "rev", "--mode", "review"])
    c.need_control(p.wait_for("up"), "it does not run")
    tried = 0
    for _ in range(40):
        d = c.vitrine("diff", "--json", "rev", "f")
        if d.rc:
            continue    # it was written to while it was shown
        tried += 1
        s = c.vitrine("diff", "rev", "f")
        said = "shown" if "+shown" in s.text else "other" if "+other" in s.text else None
        shown = s.errtext.partition("--shown ")[2].split(" ")[0]
        if s.rc or said is None:
            continue
        a = c.vitrine("apply", "--force", "--shown", shown, "rev", "f")
        now = (c.ws / "f").read_text()
        c.must(a.rc != 0 or now == said + "\n", f"'{said}' was shown, '{now}' was taken over: {a}")
    p.stop()
    c.need_control(tried > 0, "nothing was ever shown")
    return HELD


# ------------------------------------------------------------------------------------ reports


@check("FW-64", prio="P1", forms=("run",), catches=("count",),
       title="everything that was quarantined is counted and listed, and no name is invisible to diff and undo")
def fw64(c: Ctx):
    n = 130
    r = c.vitrine("run", "--json", "--name", "box", "--", "sh", "-c",
                  f"i=0; while [ $i -lt {n} ]; do mkdir d$i; echo x > d$i/.envrc; i=$((i+1)); done")
    got = json.loads(r.errtext.strip().splitlines()[-1])["quarantined"]
    c.must_say(len({x["path"] for x in got}) == n, f"{len(got)} of {n} are named")
    lists = list(c.state.rglob("names.jsonl"))
    c.must_say(len(lists) == 1 and len(lists[0].read_text().splitlines()) == n, f"the list is not whole: {lists}")
    r = c.vitrine("run", "--name", "box", "--", "sh", "-c", f"rm -rf d*; i=0; while [ $i -lt {n} ]; do mkdir d$i; echo x > d$i/.envrc; i=$((i+1)); done")
    c.must_say(f"quarantined in all: {n} names" in r.errtext, f"the number is not said: {r.errtext[-300:]}")
    done(c, "checkpoint", "--workspace", str(c.ws))
    names = (".vitrine-tmp-0123456789abcdef", ".vitrine-tmp-x/y", ".vitrine-cp-0123456789abcdef")
    done(c, "run", "--", "sh", "-c", f"mkdir .vitrine-tmp-x; for n in {' '.join(names)}; do echo x > $n; done")
    d = c.vitrine("diff", "--name-only", "--workspace", str(c.ws))
    done(c, "undo", "--force", "--workspace", str(c.ws))
    for name in names:
        c.must(name in d.text, f"{name} is invisible to diff")
        c.must(not (c.ws / name).exists(), f"{name} is invisible to undo")
    return HELD


# ------------------------------------------------------------------------------------ cp, fetch


@check("FW-65", prio="P0", forms=("run",), catches=("cp-judge", "outcome"),
       title="cp out of a sandbox and into its workspace leaves out what direct mode quarantines, and names it")
def fw65(c: Ctx):
    prog, ran = canary(c)
    config = BAD_CONFIG.format(prog=prog)
    done(c, "run", "--name", "box", "--", "sh", "-c", "mkdir ~/d; cd ~/d; " + bare("b", config)
         + "mkdir .vscode; echo x > .vscode/tasks.json; echo x > .envrc; echo x > plain; pwd > ~/where; cat ~/where")
    where = c.vitrine("exec", "box", "--", "cat", f"{c.home}/where").text.strip() or f"{c.home}/d"
    dest = c.mkdir(c.ws / "dest")
    r = c.vitrine("cp", f"box:{where}", str(dest))
    c.must(r.rc == 1, f"nothing was left out: {r}")
    for name in ("b/config", ".vscode/tasks.json", ".envrc"):
        c.must(not (dest / "d" / name).exists(), f"{name} came out")
        c.must_say(name.split("/tasks")[0] in r.errtext, f"{name} was left without a word: {r}")
    c.need_control((dest / "d/plain").exists(), f"nothing was copied: {r}")
    c.must(not git_runs(c, ran, "dest/d/b"), "host git ran the canary")
    src = c.plant(c.out / "src/.envrc", "x").parent
    c.plant(src / "plain2", "x")
    r = c.vitrine("cp", str(src), f"box:{c.ws}/in")
    c.must_say(r.rc == 1 and ".envrc" in r.errtext, f"a protected name was dropped without a word: {r}")
    c.need_control((c.ws / "in/plain2").exists(), f"nothing was copied in: {r}")
    return HELD


@check("FW-66", prio="P0", forms=("run",), catches=("outcome", "fetch-hold"),
       title="fetch holds back commits whose checkout would bring what direct mode quarantines, and names it")
def fw66(c: Ctx):
    needs_step(c, "layers")
    make_repo(c, c.ws)
    r = c.vitrine("run", "--name", "cl", "--mode", "clone", "--", "sh", "-c",
                  "mkdir .vscode; echo x > .vscode/tasks.json; " + bare("b", "[core]\\n\\tfsmonitor = x\\n") + "echo x > plain; "
                  "git add -f .; git -c user.name=a -c user.email=a@a.test commit -qm x && echo made", timeout=60)
    c.need_control("made" in r.text, f"no commit: {r}")
    for name in (".vscode/tasks.json", "b/config"):
        c.must(f"{name}: " in r.errtext, f"{name} came out without a word: {r}")
    c.must_say("plain: " not in r.errtext, f"plain data was named: {r}")
    branches = c.state / "vitrine/sandboxes/cl/repo.git/refs/heads"
    c.need_control(branches.is_dir(), f"no repository: {branches}")
    came = [str(x) for x in branches.rglob("*") if x.is_file()]
    c.must(not came, f"the commits came out: {came}")
    return HELD


@check("FW-67", prio="P0", forms=("run",), catches=("approve-shown",),
       title="the broker takes a yes to another question for a no, and approve shows what was not shown")
def fw67(c: Ctx):
    needs_step(c, "host sockets")
    up = c.mkdir(c.root / "up") / "up.git"
    c.control(f"git init -q --bare -b main {up} && git init -q -b main . && git remote add origin {up} && "
              "git -c user.name=n -c user.email=n@x commit -q --allow-empty -m one")
    p = c.start(["sh", "-c", "git push origin main:refs/heads/agent/x; echo over $?"],
                ["--name", "asks", "--broker-push", f"{up} refs/heads/agent/* approve"])

    def waiting():
        return json.loads(c.vitrine("broker", "ls", "--json").text or "[]")

    c.need_control(c.wait_until(waiting, 15), f"nothing waits: {p.err}")
    number = waiting()[0]["id"]
    for words in (("--shown", "0" * 64, "asks", number), ("asks", number)):
        r = c.vitrine("broker", "approve", *words)
        c.must(r.rc == 125, f"approved without having been shown: {r}")
    c.must_say("refs/heads/agent/x" in r.text, f"approve did not show it: {r}")
    (answer,) = c.state.rglob(f"pending/{number}")
    c.plant(answer.with_name(number + ".allow"), "0" * 64)
    c.need_control(p.wait_for("over", 15), f"it did not end: {p.err}")
    r = c.host(["git", "-C", str(up), "for-each-ref"])
    c.must(not r.text.strip(), f"a yes to another question was taken for one: {r}")
    p.stop()
    return HELD


# ------------------------------------------------------------------------------------ the generator

KEYS = ("core.fsmonitor", "core.sshCommand", "core.editor", "core.hooksPath", "core.gitProxy", "filter.x.clean", "filter.x.process",
        "diff.x.textconv", "diff.external", "merge.x.driver", "alias.st", "credential.helper", "include.path",
        "uploadpack.packObjectsHook", "gpg.program", "core.askPass", "sequence.editor", "remote.x.vcs")
HOOKS = ("pre-commit", "post-checkout", "pre-push", "post-index-change", "reference-transaction", "fsmonitor-watchman")


class Payloads:
    """Files in directories of random names and depths; `bad` must not come out."""

    def __init__(self, c: Ctx, seed):
        self.rng, self.lines, self.bad, self.heads = random.Random(seed), [], [], []
        self.dirs, self.programs = set(), []
        self.c, self.n = c, 0

    def dir(self):
        self.n += 1
        return "/".join([f"p{self.n}"] + [self.rng.choice("abcxyz") * self.rng.randint(1, 3) for _ in range(self.rng.randint(0, 2))])

    def file(self, path, text, mode=None, is_bad=False):
        self.dirs.add(os.path.dirname(path) or ".")
        self.lines.append(f"printf %s {q(text)} > {q(path)}")
        if mode:
            self.programs.append(path)
        if is_bad:
            self.bad.append(path)

    def link(self, path, target, is_bad=True):
        self.dirs.add(os.path.dirname(path) or ".")
        self.lines.append(f"ln -s {q(target)} {q(path)}")
        if is_bad:
            self.bad.append(path)

    def repo(self, config="[core]\n\tbare = true\n", is_bad=False):
        """A git dir in one of its forms. -> its path"""
        d, form = self.dir(), self.rng.choice(("bare", "dotgit", "module", "plain.git"))
        g = {"bare": d, "dotgit": f"{d}/.git", "module": f"{d}/.git/modules/m", "plain.git": f"{d}/r.git"}[form]
        for name in ("objects/x", "refs/x"):
            self.file(f"{g}/{name}", "x")
        self.file(f"{g}/HEAD", "ref: refs/heads/main\n")
        self.file(f"{g}/config", config, is_bad=is_bad)
        if is_bad:
            self.heads.append(g)
        return g

    def all(self, patterns, named, share=1):
        """A script that makes them; share 3: a third of them."""
        for key in KEYS[::share]:
            section, _, name = key.rpartition(".")
            head, _, sub = section.partition(".")
            self.repo(f"[{head}{chr(32) + chr(34) + sub + chr(34) if sub else ''}]\n\t{name} = ./canary.sh\n", is_bad=True)
        for hook in HOOKS[::share]:
            self.file(f"{self.repo()}/hooks/{hook}", "#!/bin/sh\n", "755", True)
        g = self.repo()
        self.link(f"{g}/hooks", "../h")
        for name, text in (("info/attributes", "* filter=x\n"), ("info/grafts", "x\n"), ("objects/info/alternates", "/etc\n"),
                           ("commondir", "/etc\n"), ("gitdir", "/etc/.git\n"), ("config.worktree", "[core]\n\tpager = x\n")):
            self.file(f"{self.repo()}/{name}", text, is_bad=True)
        self.file(f"{self.dir()}/.git", "gitdir: /etc/x\n", is_bad=True)
        self.link(f"{self.dir()}/.git", "../elsewhere")
        for p in patterns[::share]:
            self.file(f"{self.dir()}/{p}", "x", is_bad=True)
        for p in named:
            self.file(p, "#!/bin/sh\n", "755", True)
        self.rng.shuffle(self.bad)
        words = lambda paths: " ".join(q(p) for p in sorted(paths))
        return "\n".join([f"mkdir -p {words(self.dirs)}", *self.lines, f"chmod 755 {words(self.programs)}", "echo planted"]) + "\n"


def literal_patterns(c: Ctx, rng):
    """Names of the protect list that stand for themselves, some of them."""
    listed = [x["value"] for x in json.loads(done(c, "policy", "show", "--json", cwd=c.ws).text)["files"]["protect"]]
    plain = [p.removeprefix("**/") for p in listed if not set("*?[!") & set(p.removeprefix("**/")) and ".git" != p and not p.startswith("/")]
    plain = [p for p in plain if p.count("/") == 0]
    return rng.sample(plain, min(12, len(plain)))


def named_by_host(c: Ctx):
    names = ("hk/pre-commit", "flt/clean.sh", "inc/more.cfg")
    with c.host_edit():
        for key, value in (("core.hooksPath", "hk"), ("filter.x.clean", "flt/clean.sh"), ("include.path", "../inc/more.cfg")):
            git(c, c.ws, "config", key, value)
    return names


def none_came(c: Ctx, p, way, r, top):
    """-> how many variations stayed away"""
    for path in p.bad:
        c.must(not os.path.lexists(top / path), f"{way}: {path} came out: {r}")
        parts = path.split("/")
        c.must_say(any("/".join(parts[:i]) in r.errtext for i in range(2, len(parts) + 1)), f"{way}: {path} was left without a word")
    return len(p.bad)


def clear(c: Ctx, keep=(".git", "file.txt", "plant.sh")):
    with c.host_edit():
        names = [x for x in os.listdir(c.ws) if x not in keep]
        c.host(["rm", "-rf", "--", *names], cwd=c.ws)


def by_apply(c, p, n, *words):
    r = c.vitrine("apply", "--yes", "--links", *words)
    n += none_came(c, p, f"apply {words}", r, c.ws)
    c.must(not git_runs(c, c.out / "ran", *p.heads[:6]), f"apply {words}: host git ran something")
    clear(c)
    return n


@check("FW-69", prio="P0", forms=("run",), catches=("outcome",),
       title="generated payloads by every way out: apply, fork, load, restore, cp out, cp in; none comes out unnamed")
def fw69(c: Ctx):
    needs_step(c, "layers")
    seed = 20261118
    make_repo(c, c.ws)
    p = Payloads(c, seed)
    script = p.all(literal_patterns(c, p.rng), named_by_host(c))
    c.plant(c.ws / "plant.sh", script)
    tried = 0
    # Waiting for review: all of it, by directories, of a fork, of an image.
    r = waits(c, "sh plant.sh")
    c.need_control("planted" in r.text, f"nothing was made: {r}")
    done(c, "fork", "rev", "forked")
    done(c, "save", "rev", "-o", str(c.run_dir / "i.tar"), "i:1", timeout=60)
    done(c, "load", str(c.run_dir / "i.tar"), "loaded", cwd=c.ws, timeout=60)
    tops = sorted({x.split("/")[0] for x in p.bad})
    tried = by_apply(c, p, tried, "forked")
    tried = by_apply(c, p, tried, "loaded")
    tried = by_apply(c, p, tried, "rev", *tops)
    # In two steps: the parts first, as data, what makes a repository of them later.
    waits(c, "sh plant.sh; rm -f " + " ".join(q(f"{g}/HEAD") for g in p.heads), "late")
    done(c, "apply", "--yes", "late", rc=1)
    waits(c, "; ".join(f"mkdir -p {q(g)}; echo 'ref: refs/heads/main' > {q(g)}/HEAD" for g in p.heads), "late")
    r = c.vitrine("apply", "--yes", "late")
    for g in p.heads:
        whole = (c.ws / g / "HEAD").exists() and (c.ws / g / "config").exists()
        c.must(not whole, f"in two steps: {g} is a repository now: {r}")
        tried += 1
    clear(c)
    # From a checkpoint that was saved while a sandbox ran.
    done(c, "run", "--name", "box", "--", "true")
    number = as_if_inside(c, "sh plant.sh")
    r = c.vitrine("restore", "--force", str(number), cwd=c.ws)
    tried += none_came(c, p, "restore", r, c.ws)
    clear(c)
    # Copied out, and in to a workspace that is written in place. What the configuration there names means nothing elsewhere.
    few = Payloads(c, seed + 1)
    c.plant(c.ws / "plant.sh", few.all(literal_patterns(c, few.rng), (), share=3))
    done(c, "run", "--name", "box", "--", "sh", "-c", "mkdir -p ~/t; cd ~/t; sh $OLDPWD/plant.sh")
    dest = c.mkdir(c.ws / "dest")
    r = c.vitrine("cp", f"box:{c.home}/t", str(dest), timeout=60)
    tried += none_came(c, few, "cp out", r, dest / "t")
    with c.host_edit():
        c.host(["mkdir", str(c.out / "src")])
        c.host(["sh", str(c.ws / "plant.sh")], cwd=c.out / "src")
    clear(c)
    r = c.vitrine("cp", str(c.out / "src"), f"box:{c.ws}/in", timeout=60)
    tried += none_came(c, few, "cp in", r, c.ws / "in")
    with c.host_edit():
        c.host(["rm", "-rf", str(c.out / "src")])
    c.note(f"{tried} variations of {len(p.bad) + len(few.bad)} payloads, seed {seed}")
    c.need_control(tried >= 50, f"only {tried} variations were tried")
    return HELD
