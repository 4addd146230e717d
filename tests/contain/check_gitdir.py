# SPDX-License-Identifier: Apache-2.0
"""FW-96 to FW-102: the workspace's .git, served by name (vitrine-dir).

The server is the only way from inside to the top level of .git, and judges by name: no moment in which the host replaces a
file is one in which the inside can write to it. It needs /dev/fuse. Where only root may open that, the ordinary user gets a
device node of the cell's own, in the cell's own mount namespace."""
import ctypes
import os
import re
import shlex
import signal
import subprocess
import time

from check_fw import canary, git, make_repo
from check_served import ENV, attack, end, fsmonitor
from harness import HELD, Ctx, check

q = shlex.quote
# git's own settings inside are those of nobody.
INSIDE = "export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@t.test GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@t.test; "


def need_fuse(c: Ctx):
    """/dev/fuse for this identity: the machine's own is not touched."""
    if os.geteuid() != 0 or c.ident == "root":
        c.need_control(os.access("/dev/fuse", os.R_OK | os.W_OK), "/dev/fuse cannot be opened here")
        return
    c.need_control(os.readlink("/proc/self/ns/mnt") != os.readlink(f"/proc/{os.getppid()}/ns/mnt"), "no mount namespace of our own")
    place = c.root / "fuse"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755,size=4k", "tmpfs", str(place)], check=True)
    os.mknod(place / "node", 0o020666, os.makedev(10, 229))
    os.chmod(place / "node", 0o666)
    subprocess.run(["mount", "--bind", str(place / "node"), "/dev/fuse"], check=True)


def served_repo(c: Ctx):
    need_fuse(c)
    make_repo(c, c.ws)
    r = c.sandbox("grep -c 'vitrine-dir .*/.git fuse' /proc/mounts")
    c.need_control("1" in r.text, f".git is not served: {r}")
    return c.ws / ".git"


@check("FW-96", prio="P0", catches=("served",), forms=("run",), timeout=580, alone="replaced",
       title="served .git: the config replaced on the host again and again, ten kinds of attackers; nothing ran, nothing stays")
def fw96(c: Ctx):
    times = int(os.environ.get("VITRINE_REPLACEMENTS", "60"))
    git_dir = served_repo(c)
    prog, ran = canary(c)
    conf = git_dir / "config"
    ways = ["append", "create", "truncate", "mode", "rename", "exchange", "noreplace", "link", "lock", "held", "judged"]
    p = attack(c, [(w, fsmonitor(prog), ".git", "config") for w in ways], env={})
    with c.host_edit():
        # The lock is one for both sides: who does not get it tries again.
        r = c.host(f"for i in $(seq {times}); do n=0; until git config user.name x$i 2>/dev/null; do n=$((n+1)); "
                   "[ $n -lt 500 ] || { echo FAILED; break 2; }; done; git status >/dev/null 2>&1 || echo BROKEN; "
                   f"[ ! -e {q(str(ran))} ] || break; done",
                   env=ENV, timeout=540, cwd=c.ws)
        c.need_control(not r.timed_out, f"the host did not get through: {r}")
        c.must(not ran.exists(), "the host's git ran what was planted")
        text = conf.read_text() if conf.is_file() else ""
        e = end(c, p, 60)
        c.must(conf.is_file() and not conf.is_symlink(), "the config is gone, or a link")
        c.must("fsmonitor" not in text + conf.read_text(), f"it lies in the config: {conf.read_text()}")
        git(c, c.ws, "status")
        c.must(not ran.exists(), "it ran after the run")
    c.must("FAILED" not in r.text and "BROKEN" not in r.text, f"the host's git was hindered: {r}")
    c.need_control(f"name = x{times}" in conf.read_text(), f"the host's own change was lost: {conf.read_text()}")
    done = {w: int(n) for w, n in re.findall(r"bare (\w+): (\d+)", e.text)}
    for w in ways[:9]:
        c.must(done.get(w) == 0, f"{w} succeeded: {done}")
    c.note(f"{times} replacements; accepted of those rewritten while judged: {done.get('judged')}")
    return HELD


WORK = """git status; git add a; git commit -qm a; git checkout -qb side; git stash; git stash pop; git commit -qam b
git checkout -q main; git commit -q --allow-empty -m c; git rebase -q side; GIT_SEQUENCE_EDITOR=true git rebase -qi --exec true HEAD~1
git gc -q; git repack -qad; git worktree add -q wt; git worktree list; git worktree remove wt; git init -q --bare -b main /tmp/up.git
git remote add up /tmp/up.git; git push -q -u up main; git fetch -q up; git pull -q up main; git branch -m side side2
git config user.name someone; git config --unset user.name; git remote rename up upstream; git remote remove upstream
git tag -a -m t t1; git fsck; git reset -q --hard; git cherry-pick --allow-empty --keep-redundant-commits side2; git bisect start
git bisect reset; git notes add -m n; git maintenance run; git clean -nq; git clone -q . /tmp/copy
git -c protocol.file.allow=always submodule add -q /tmp/up.git sub; git commit -qm sub
git -c protocol.file.allow=always submodule update -q; git -C sub config user.name z; mkdir -p d; git sparse-checkout set d
git sparse-checkout disable; sed -i s/x/y/ .git/description; git branch config; git branch hooks/x; git commit -q --allow-empty -m last"""
REFUSED = """git config core.fsmonitor x; git config core.hooksPath x; git config core.pager x; git config alias.x '!id'
git -C sub config core.pager x; git config --file .git/config include.path x; echo x >>.git/config; : >.git/config
mv .git/config .git/x; rm -f .git/config; ln .git/config .git/x; chmod 777 .git/config; ln -sf x .git/config
touch .git/hooks/pre-commit; mkdir .git/modules/sub/hooks; echo x >.git/hooks/y; mv .git/hooks .git/h; rm -rf .git/hooks
printf '[alias]\\n\\tx = !id\\n' >.git/mine && mv .git/mine .git/config; cp .git/config .git/CONFIG; mv .git g; umount -l .git
ln -s /etc .git/link; printf '[core]\\n\\tpager = x\\n' >.git/config.lock && mv .git/config.lock .git/config
rm .git/config.lock; mkdir -p .git/modules/new && printf '[core]\\n\\tpager = x\\n' >.git/modules/new/config"""


@check("FW-97", prio="P0", catches=("served",), forms=("run", "exec"), timeout=120,
       title="served .git: what git must be able to do inside, and what it must not")
def fw97(c: Ctx):
    git_dir = served_repo(c)
    split = lambda text: [w.strip() for line in text.splitlines() for w in line.split("; ")]
    script = INSIDE + "echo a >a; echo b >>file.txt; "
    script += "".join(f"({w}) >/tmp/o 2>&1 || echo CANNOT {q(w)} $(tail -n 2 /tmp/o); " for w in split(WORK))
    script += "rm -f .git/config.lock; "
    for w in split(REFUSED):
        script += f"({w}) >/tmp/o 2>&1 && echo WENT {q(w)}; "
    script += "git config core.pager x; rm -f .git/config.lock; echo done"
    before = (git_dir / "hooks").is_dir() and c.tree_entries(git_dir / "hooks")
    r = c.sandbox(script, timeout=100)
    c.must(r.text.rstrip().endswith("done"), f"it did not get to its end: {r}")
    # One of them succeeds on purpose: it takes away the inside's own lock.
    went = [x for x in r.text.splitlines() if x.startswith("WENT") and "rm .git/config.lock" not in x]
    c.must(not went, f"accepted: {went}")
    c.must(c.tree_entries(git_dir / "hooks") == before if before else True, "the hooks were changed")
    c.must("could not write config file .git/config: Operation not permitted" in r.errtext, f"not git's own sentence: {r}")
    if c.form == "run": # notes go to who started the sandbox
        c.must_say("core.pager" in r.errtext, f"not a word of the key: {r}")
    c.need_control("CANNOT" not in r.text, f"git was refused something that it needs: {[x for x in r.text.splitlines() if 'CANNOT' in x]}")
    return HELD


@check("FW-98", prio="P0", catches=("served-end",), forms=("run",), timeout=60,
       title="served .git: its server is killed: nothing inside opens .git any more, and the run ends with a sentence")
def fw98(c: Ctx):
    served_repo(c)
    before = c.tree_entries(c.ws / ".git")
    p = c.start("echo ready; while :; do echo x >>.git/hooks/pre-commit; echo x >>.git/config; "
                "umount -l .git; mv .git g; done 2>/dev/null & sleep 20; echo survived")
    c.need_control(p.wait_for("ready"), "no sandbox")
    # It becomes itself while the command begins.
    c.need_control(c.wait_until(lambda: server_of(c), 10), "no server")
    server = server_of(c)
    os.kill(server, signal.SIGKILL)
    r = p.wait(10)
    c.must(r.rc == 125 and "survived" not in r.text, f"the run goes on: {r}")
    c.must_say("vitrine-dir" in r.errtext, f"no sentence: {r}")
    c.must(c.tree_entries(c.ws / ".git") == before, "something was written")
    return HELD


@check("FW-102", prio="P0", catches=("dir-confine",), forms=("run",), timeout=60,
       title="served .git: its server is locked in, without capabilities, and holds nothing but the repository")
def fw102(c: Ctx):
    served_repo(c)
    p = c.start("git status >/dev/null; echo ready; sleep 20")
    c.need_control(p.wait_for("ready"), "no sandbox")
    c.need_control(c.wait_until(lambda: server_of(c), 10), "no server")
    d = f"/proc/{server_of(c)}"
    with open(f"{d}/status") as f:
        status = dict(line.split(":", 1) for line in f)
    word = {k: status[k].strip() for k in ("Seccomp", "NoNewPrivs", "CapEff", "CapPrm")}
    c.must(word == {"Seccomp": "2", "NoNewPrivs": "1", "CapEff": "0" * 16, "CapPrm": "0" * 16}, f"not locked in: {word}")
    # The device by its number: its path is of another mount namespace.
    held = {os.readlink(f"{d}/fd/{n}") for n in os.listdir(f"{d}/fd") if os.stat(f"{d}/fd/{n}").st_rdev != os.makedev(10, 229)}
    own = (str(c.ws / ".git"), "/dev/null", "socket:", "pipe:", "anon_inode:")
    c.must(all(f.startswith(own) for f in held), f"it holds {held}")
    p.stop()
    return HELD


def server_of(c: Ctx):
    """The server of this check: the one that has this repository, below this very process."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            name = open(f"/proc/{pid}/comm").read().strip()
            if name == "vitrine-dir" and os.readlink(f"/proc/{pid}/fd/4") == str(c.ws / ".git") and is_below(int(pid), os.getpid()):
                return int(pid)
        except OSError:
            continue
    return None


def is_below(pid, top):
    while pid > 1:
        if pid == top:
            return True
        try:
            with open(f"/proc/{pid}/stat", "rb") as f:
                pid = int(f.read().rsplit(b")", 1)[1].split()[1])
        except OSError:
            return False
    return False


@check("FW-99", prio="P0", catches=("redact",), forms=("run",), timeout=60,
       title="served .git: a token in the config is a placeholder inside; unchanged it is the token again, changed it is refused")
def fw99(c: Ctx):
    need_fuse(c)
    make_repo(c, c.ws)
    token = "ghp_" + c.uuid().replace("-", "") + "abcd"
    url = f"https://me:{token}@host.invalid/x.git"
    with c.host_edit():
        git(c, c.ws, "remote", "add", "origin", url)
    conf = c.ws / ".git" / "config"
    r = c.sandbox("cat .git/config; git remote add two https://two.invalid/y; git remote -v; wc -c <.git/config; cat .git/config | wc -c; "
                  "git config remote.origin.url https://me:vitrine-hidden-1@evil.invalid/x; echo rc $?")
    c.must(not r.has(token), f"the token came in: {r}")
    c.must("vitrine-hidden-1" in r.text, f"no placeholder: {r}")
    c.must("rc 0" not in r.text, f"the placeholder was moved to another host: {r}")
    text = conf.read_text()
    c.must(url in text and "vitrine-hidden" not in text, f"the user's own value was lost: {text}")
    c.need_control("two.invalid" in text, f"the remote was not added: {text} {r}")
    sizes = [x for x in r.text.splitlines() if x.strip().isdigit()]
    c.must(len(sizes) == 2 and sizes[0] == sizes[1], f"size and content differ: {r}")
    return HELD


def exchange(a, b):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(-100, os.fsencode(a), -100, os.fsencode(b), 2):
        raise OSError(ctypes.get_errno(), "renameat2(RENAME_EXCHANGE)")


@check("FW-100", prio="P0", catches=("remask",), forms=("run",), timeout=90, alone="replaced",
       title="served .git: the host replaces .git itself: from there on masks hold what the server held before")
def fw100(c: Ctx):
    served_repo(c)
    prog, ran = canary(c)
    conf = c.ws / ".git" / "config"
    other = c.home / "other"
    with c.host_edit():
        c.host(["cp", "-a", str(c.ws), str(other)])
    # Before anybody inside has looked into it: then there is no server yet.
    p = c.start(f"echo ready; read x; printf '[core]\\n\\tfsmonitor = {prog}\\n' >>.git/config; git status; echo done",
                stdin=subprocess.PIPE)
    c.need_control(p.wait_for("ready"), "no sandbox")
    c.must_say(server_of(c) is None, "a server that nobody needs")
    with c.host_edit():
        exchange(c.ws / ".git", other / ".git")
        time.sleep(0.5)
        p.send(b"\n")
        r = p.wait(20)
        c.must_say(r.rc == 0 and "done" in r.text, f"the run did not go on: {r}")
        for d in (c.ws, other):
            c.must("fsmonitor" not in (d / ".git" / "config").read_text(), f"it lies in the config of {d}: {r}")
        exchange(c.ws / ".git", other / ".git")
    p = attack(c, [(w, fsmonitor(prog), ".git", "config") for w in ("append", "truncate", "held")], env={})
    text = lambda: conf.read_text() if conf.exists() else ""
    with c.host_edit():
        git(c, c.ws, "config", "user.name", "before")
        time.sleep(0.2)
        exchange(c.ws / ".git", other / ".git")
        time.sleep(0.5)
        c.must("fsmonitor" not in text(), f"it lies in the new config: {text()}")
        c.need_control(git(c, c.ws, "config", "user.name", "after").ok, "the host cannot write its own config")
        time.sleep(0.5)
        c.must("fsmonitor" not in text(), f"it lies in the new config: {text()}")
        # Moved away and made again it is new, and may be taken: as with masks alone.
        c.host("mv .git old; cp -a old .git; rm -rf old", cwd=c.ws)
        c.must(c.wait_until(lambda: "fsmonitor" not in text(), 5), f"it lies in the third config: {text()}")
        r = end(c, p)
        c.must("fsmonitor" not in text(), f"it stayed: {text()} {r}")
        git(c, c.ws, "status")
        c.must(not ran.exists(), "it ran")
        c.must("name = before" in (other / ".git" / "config").read_text(), "the first one was changed")
        c.host(["rm", "-rf", str(other)])
    return HELD


@check("FW-101", prio="P1", forms=("run",), timeout=300, alone="replaced",
       title="served .git: host and inside add to one index at the same time; nothing is lost")
def fw101(c: Ctx):
    n = int(os.environ.get("VITRINE_ADDS", "40"))
    served_repo(c)
    for i in range(n):
        c.plant(c.ws / f"h{i}", "h\n")
        c.plant(c.ws / f"i{i}", "i\n")
    loop = ("i=0; while [ $i -lt %d ]; do t=0; until git add %s$i 2>/dev/null; do t=$((t+1)); [ $t -lt 3000 ] || exit 9; done; "
            "i=$((i+1)); done; echo added")
    p = c.start("echo ready; while [ ! -e go ]; do :; done; " + loop % (n, "i"))
    c.need_control(p.wait_for("ready"), "no sandbox")
    with c.host_edit():
        c.plant(c.ws / "go")
        r = c.host(loop % (n, "h"), env=ENV, timeout=250, cwd=c.ws)
        e = p.wait(250)
        c.need_control("added" in r.text and "added" in e.text, f"somebody gave up: {r} {e}")
        listed = git(c, c.ws, "ls-files").text.split()
    c.must(len([f for f in listed if re.fullmatch(r"[hi]\d+", f)]) == 2 * n, f"lost: {2 * n} were added, {len(listed)} are there")
    return HELD
