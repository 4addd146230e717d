# SPDX-License-Identifier: Apache-2.0
"""What the inside makes never switches protection off: no shelter, nothing unreadable, too deep or held is harmless.

FW-40 is made by a generator from that sentence: kinds of place x kinds of payload x depth x ways to close it.
"""

import json
import os
import stat

from check_fw import canary, git, make_repo, whole_report
from harness import HELD, Ctx, check, needs_hosts_kernel

# Runs inside: makes every variation of the list that it is given, as far as it is let, and says so.
MAKER = r'''
import json, os, sys

def make(path, text=""):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)

def repo(d, head="ref: refs/heads/m\n"):
    make(f"{d}/HEAD", head)
    os.makedirs(f"{d}/objects", exist_ok=True)
    os.makedirs(f"{d}/refs", exist_ok=True)

def place(kind, d):
    """-> the directory that is taken for data of git, or is odd in another way."""
    if kind.startswith("fake-"):            # looks like a repository
        repo(d, "x")
    elif kind.startswith("bare-"):          # is one
        repo(d)
    elif kind.startswith("dotgit-"):
        d += "/.git"
        repo(d)
    elif kind == "program":                 # git asks for the right to pass, not for a directory
        make(f"{d}/HEAD", "ref: refs/heads/m\n")
        os.makedirs(f"{d}/objects", exist_ok=True)
        make(f"{d}/refs"); os.chmod(f"{d}/refs", 0o755)
        return d
    elif kind == "headlink":
        os.makedirs(f"{d}/objects", exist_ok=True); os.makedirs(f"{d}/refs/heads", exist_ok=True)
        os.symlink("refs/heads/m", f"{d}/HEAD")
        return d
    elif kind == "linked":                  # both parts are links
        os.makedirs(f"{d}-parts", exist_ok=True)
        make(f"{d}/HEAD", "0123456789" * 4 + "\n")
        os.symlink(f"../{os.path.basename(d)}-parts", f"{d}/objects")
        os.symlink(f"../{os.path.basename(d)}-parts", f"{d}/refs")
        return d
    elif kind == "worktree":
        repo(d)
        make(f"{d}/worktrees/w/HEAD", "ref: refs/heads/m\n")
        make(f"{d}/worktrees/w/commondir", "../..\n")
        return f"{d}/worktrees/w"
    else:
        os.makedirs(d, exist_ok=True)
        return d
    return f"{d}/{kind.split('-', 1)[1]}"

def payload(kind, d):
    if kind == "mcp":
        make(f"{d}/.mcp.json", "{}"); return f"{d}/.mcp.json"
    if kind == "tasks":
        make(f"{d}/.vscode/tasks.json", "{}"); return f"{d}/.vscode/tasks.json"
    if kind == "config":
        make(f"{d}/r/.git/HEAD", "ref: refs/heads/m\n")
        make(f"{d}/r/.git/config", "[core]\n\tfsmonitor = ./x\n"); return f"{d}/r/.git/config"
    if kind == "hook":
        os.makedirs(f"{d}/r/.git/objects", exist_ok=True)
        make(f"{d}/r/.git/hooks/pre-commit", "#!/bin/sh\n"); os.chmod(f"{d}/r/.git/hooks/pre-commit", 0o755)
        return f"{d}/r/.git/hooks/pre-commit"
    if kind == "barehook":
        repo(f"{d}/b"); make(f"{d}/b/hooks/pre-commit", "#!/bin/sh\n")
        os.chmod(f"{d}/b/hooks/pre-commit", 0o755)
        return f"{d}/b/hooks/pre-commit"
    if kind == "owncfg":                    # of the place itself, where that is a repository
        make(f"{d}/config", "[core]\n\tfsmonitor = ./x\n"); return f"{d}/config"
    if kind == "attributes":
        repo(f"{d}/b"); make(f"{d}/b/info/attributes", "* filter=x\n"); return f"{d}/b/info/attributes"

made, close = {}, []
for i, (where, what, depth, how) in enumerate(json.load(open(sys.argv[1]))):
    top = f"{sys.argv[2]}/{i}"
    try:
        d = place(where, f"{top}/p")
        d = d + "/d" * depth
        made[i] = payload(what, d)
        at = {"none": None, "parent": os.path.dirname(made[i]), "place": d, "top": top}[how[0]]
        if at:
            close.append((at, how[1]))
    except OSError as e:
        print("variation", i, e, file=sys.stderr)
for at, mode in sorted(close, key=lambda x: -len(x[0])):
    try:
        os.chmod(at, mode)
    except OSError:
        pass
json.dump(made, open(sys.argv[2] + "/made.json", "w"))
'''

DATA = ["objects", "refs", "logs", "lfs", "objects/aa", "objects/pack"]
PLACES = ["plain", "worktree"] + [f"{k}-{d}" for k in ("fake", "bare", "dotgit") for d in DATA]
OWN = ["program", "headlink", "linked"]
PAYLOADS = ["mcp", "tasks", "config", "hook", "barehook", "attributes"]
CLOSINGS = [("none", 0), ("parent", 0), ("parent", 0o311), ("parent", 0o444), ("place", 0), ("place", 0o111), ("top", 0)]


def variations():
    """Every pair of place and payload; depth and closing run along, so that each value meets each other one."""
    out = []
    for i, where in enumerate(PLACES):
        for j, what in enumerate(PAYLOADS):
            out.append((where, what, (0, 1, 4, 30)[(i + j) % 4], CLOSINGS[(i * 5 + j) % len(CLOSINGS)]))
    for i, where in enumerate(OWN):
        for j, what in enumerate(["owncfg", "owncfg", "owncfg", "mcp"]):
            out.append((where, what, 0, CLOSINGS[(2 * i + j) % len(CLOSINGS)]))
    return out


def open_up(path):
    for top, dirs, _ in os.walk(path):
        for d in dirs:
            p = os.path.join(top, d)
            if not os.path.islink(p):
                os.chmod(p, stat.S_IMODE(os.lstat(p).st_mode) | 0o700)


@check("FW-40", prio="P0", null=True, catches=("quarantine",), forms=("run",), timeout=90,
       title="132 places x payloads x depths x ways to close them: none is left on the host")
def fw40(c: Ctx):
    want = variations()
    c.plant(c.ws / "maker.py", MAKER)
    c.plant(c.ws / "list.json", json.dumps(want))
    for d in ("ctl", "new"):
        c.mkdir(c.ws / d)
    r = c.control(["python3", "maker.py", "list.json", "ctl"])
    made = json.loads((c.ws / "ctl" / "made.json").read_text())
    open_up(c.ws / "ctl")
    short = [i for i in range(len(want)) if str(i) not in made or not (c.ws / made[str(i)]).exists()]
    c.need_control(not short, f"outside too these are not made: {short}: {r}")
    with c.host_edit():
        c.host(["rm", "-rf", "ctl"], cwd=c.ws)
    # The keeper may take a name while the next is made beside it: what is not made is not left either.
    r = c.sandbox(["python3", "maker.py", "list.json", "new"], timeout=60)
    open_up(c.ws / "new")
    left = [(want[int(i)], p) for i, p in made.items() if (c.ws / p.replace("ctl/", "new/", 1)).exists()]
    c.note(len(want), "variations")
    c.must(not left, f"{len(left)} left on the host, for example {left[:3]}; rc {r.rc}: {r.errtext[-300:]}")
    return HELD


@check("FW-41", prio="P0", null=True, catches=("shelter",),
       title="what lies where an earlier run left a shelter is hidden and protected in the next")
def fw41(c: Ctx):
    u = c.uuid()
    spots = [c.ws / "store" / d for d in DATA] + [c.ws / ".git" / d for d in DATA]
    for top in (c.ws / "store", c.ws / ".git"):
        c.plant(top / "HEAD", "ref: refs/heads/m\n")
        for d in ("objects", "refs"):
            c.mkdir(top / d)
    for s in spots:
        c.plant(s / ".env", f"KEY={u}\n")
        c.plant(s / "x" / ".git" / "config", "[core]\n\tbare = false\n")
    names = " ".join(str(s.relative_to(c.ws)) for s in spots)
    read = f"for d in {names}; do cat $d/.env; done"
    c.need_control(c.control(read).text.count(u) == len(spots), "outside too they cannot be read")
    before = {s: c.tree_entries(s / "x" / ".git" / "config") for s in spots}
    r = c.sandbox(f"{read}; for d in {names}; do echo '[core] fsmonitor = x' >> $d/x/.git/config; done")
    c.must(not c.leaks(r, u), f"a hidden file was read: {r}")
    changed = [str(s) for s in spots if c.tree_entries(s / "x" / ".git" / "config") != before[s]]
    c.must(not changed, f"written: {changed}")
    return HELD


@check("FW-42", prio="P0", null=True, catches=("loosen",), catch_ident="user", forms=("run", "grandchild"),
       title="chmod 000 or 311 of the workspace as the last act: the end of the run takes all it would take")
def fw42(c: Ctx):
    c.mkdir(c.ws / "d")
    for mode in ("000", "311", "444"):
        files = [c.ws / ".mcp.json", c.ws / "d" / ".mcp.json", c.ws / "d" / "e" / ".vscode" / "tasks.json"]
        script = ("mkdir -p d/e/.vscode; for f in .mcp.json d/.mcp.json d/e/.vscode/tasks.json; do echo x > $f; done; "
                  f"chmod {mode} d/e d .")
        c.control(script)
        os.chmod(c.ws, 0o755)
        open_up(c.ws)
        c.need_control(all(f.exists() for f in files), "outside too nothing is made")
        for f in files:
            f.unlink()
        (c.ws / "d" / "e" / ".vscode").rmdir()
        c.sandbox(script)
        os.chmod(c.ws, 0o755)
        open_up(c.ws)
        left = [str(f) for f in files if f.exists()]
        c.must(not left, f"left with mode {mode}: {left}")
    return HELD


@check("FW-43", prio="P0", catches=("left",), forms=("run",),
       title="what could not be taken away ends the run with an error that names it")
def fw43(c: Ctx):
    c.sandbox("echo x > .mcp.json")
    (c.ws / ".mcp.json").unlink(missing_ok=True)
    dirs = [p for p in c.state.glob("**/quarantine") if p.is_dir()]
    c.need_control(len(dirs) == 1, f"no quarantine was made: {dirs}")
    with c.host_edit():
        c.host(["mv", str(dirs[0]), str(dirs[0]) + ".old"])
        c.plant(dirs[0], "no directory")
    try:
        r = c.sandbox("mkdir d; echo x > d/.mcp.json")
    finally:
        with c.host_edit():
            dirs[0].unlink()
    c.must(r.rc == 125, f"the run ended with {r.rc}")
    c.must("d/.mcp.json" in whole_report(r), f"what is left is not named: {r.errtext}")
    return HELD


LEASE = r'''
import fcntl, sys, time
f = open(sys.argv[1], "r+")
try:
    fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    import signal; signal.signal(signal.SIGIO, signal.SIG_IGN)
    print("held", flush=True)
except OSError as e:
    print("refused", e, flush=True)
time.sleep(float(sys.argv[2]))
'''


def may_open(path):
    try:
        os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))
        return True
    except BlockingIOError:
        return False


@check("FW-44", prio="P1", null=True, catches=("seccomp-args,verify",), forms=("run", "exec"),
       title="no lease from inside: the host opens a file of the workspace without waiting")
def fw44(c: Ctx):
    needs_hosts_kernel(c, "the file is the host's")
    c.plant(c.ws / "lease.py", LEASE)
    f = c.plant(c.ws / "file", "x")
    for inside in (False, True):
        p = c.start(["python3", "lease.py", "file", "20"], sandboxed=inside, cwd=None if inside else c.ws)
        said = p.wait_for("held", 3) or p.wait_for("refused", 10)
        free = may_open(f)
        p.stop()
        if not inside:
            c.need_control(not free, f"a lease holds nobody here: {p.out!r}")
        else:
            c.need_control(said, f"nothing was tried inside: {p.out!r} {p.err!r}")
            c.must(free, "the host has to wait for a lease of the inside")
    return HELD


@check("FW-45", prio="P0", null=True, catches=("unseen",), forms=("run",),
       title="a git config that a process holds with a lease is not taken for harmless")
def fw45(c: Ctx):
    needs_hosts_kernel(c, "a lease is the host's")
    make_repo(c, c.ws)
    c.plant(c.ws / "lease.py", LEASE)
    hook = c.plant(c.ws / "tools" / "pre-commit", "#!/bin/sh\n", 0o755)
    git(c, c.ws, "config", "core.hooksPath", "tools")
    before = c.tree_entries(hook)
    c.control(f"echo exit >> {hook}")
    c.need_control(c.tree_entries(hook) != before, "outside too it cannot be written")
    before = c.tree_entries(hook)
    p = c.start(["python3", "lease.py", str(c.ws / ".git" / "config"), "30"], sandboxed=False)
    c.need_control(p.wait_for("held", 10), f"no lease: {p.out!r}")
    r = c.sandbox("echo exit >> tools/pre-commit", refusal_ok=True)
    p.stop()
    c.must(c.tree_entries(hook) == before, f"the hook was written: {r}")
    c.must_say(r.began or "lease" in r.errtext, f"refused without the reason: {r}")
    r = c.sandbox("echo exit >> tools/pre-commit")
    c.must(c.tree_entries(hook) == before, f"the hook was written without a lease: {r}")
    return HELD


@check("FW-46", prio="P1", null=True, catches=("late",), forms=("run",), timeout=90,
       title="names made in the first milliseconds are taken while the run goes on, in a tree of 6000 directories")
def fw46(c: Ctx):
    c.mkdir(c.ws / "t")
    r = c.control("cd t && for i in 0 1 2 3 4 5; do mkdir $i; (cd $i && seq 1000 | xargs mkdir); done")
    names = [".mcp.json", "t/0/1/.mcp.json", "t/5/999/.mcp.json", "t/3/500/deep/.mcp.json"]
    script = ("mkdir -p t/3/500/deep; for f in " + " ".join(names) + "; do echo x > $f; done; echo made; ")
    c.control(script)
    c.need_control(all((c.ws / n).exists() for n in names), f"outside too they are not made: {r}")
    for n in names:
        (c.ws / n).unlink()
    (c.ws / "t/3/500/deep").rmdir()
    p = c.start(script + "read x", stdin=-1)
    c.need_control(p.wait_for("made", 20), f"the command did not run: {p.err!r}")
    gone = c.wait_until(lambda: not any((c.ws / n).exists() for n in names), timeout=8.0)
    left = [n for n in names if (c.ws / n).exists()]
    alive = p.alive
    p.send("x\n")
    p.stop()
    c.need_control(alive, "the command ended before its time")
    c.must(gone, f"still there while the command runs: {left}")
    return HELD


@check("FW-47", prio="P0", null=True, catches=("quarantine",), forms=("run",),
       title="what git takes for a repository is one: refs as a program, HEAD as a link, parts behind links")
def fw47(c: Ctx):
    prog, ran = canary(c)

    def script(d):
        head = f"mkdir -p {d}/a {d}/b/refs/heads {d}/b/objects {d}/c {d}/parts; "
        for k, lines in (("a", "echo 'ref: refs/heads/m' > HEAD; mkdir objects; : > refs; chmod 755 refs"),
                         ("b", "ln -s refs/heads/m HEAD"),
                         ("c", "echo 0123456789012345678901234567890123456789 > HEAD; ln -s ../parts objects; "
                               "ln -s ../parts refs")):
            head += (f"(cd {d}/{k}; {lines}; git config --file config core.bare false; git config --file config "
                     f"core.worktree ..; git config --file config core.sshCommand {prog}); ")
        return head

    def used(d):
        hits = []
        for k in "abc":
            with c.host_edit():
                git(c, c.ws / d / k, "ls-remote", "ssh://host.invalid/x")
                if ran.exists():
                    ran.unlink()
                    hits.append(k)
        return hits

    c.control(script("o"))
    hits = used("o")
    c.need_control(hits == ["a", "b", "c"], f"outside too the canary runs in {hits} only")
    c.sandbox(script("n"))
    hits = used("n")
    c.must(not hits, f"host git ran the canary in {hits}")
    return HELD
