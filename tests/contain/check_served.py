# SPDX-License-Identifier: Apache-2.0
"""FW-90 to FW-95: the moments in which a mask is gone, because the host replaced the file that it lay on.

A mask goes with its file. Until it is back the inside can write to the new one, and what it wrote must not stay: not at any
name, not when the host saves twice, not at the end of the run, not when the keeper dies. A save of the host's that cannot
be told from the inside's is kept in the quarantine and named.

All of this is about masks. Where .git is served by name (check_gitdir.py) there is no such moment for what lies in it, so
here that is switched off."""
import itertools
import os
import random
import shlex
import signal
import time

from check_fw import canary, git, make_repo
from harness import HELD, Ctx, check

q = shlex.quote
MASKED = {"VITRINE_NO_FUSE": "1"}
ENV = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}


def attack(c: Ctx, jobs, flags=(), env=MASKED):
    """Starts one writer for each (how, text, dir, name), inside; they go on until there is a file "stop"."""
    words = [" ".join(q(str(w)) for w in c.tool("race", "bare", *job)) for job in jobs]
    p = c.start("echo polling; " + " & ".join(words) + " & wait; echo polled", flags=flags, env=env)
    if not p.wait_for("polling"):
        c.inconclusive(f"nobody attacks: {p.stop()}")
    time.sleep(0.2)
    c.need_control(p.alive, f"the attack ended at once: {p.out!r} {p.err[-400:]!r} {p.out!r}")
    return p


def end(c: Ctx, p, timeout=20.0):
    c.plant(c.ws / "stop")
    r = p.wait(timeout)
    (c.ws / "stop").unlink()
    c.need_control(b"polled" in r.out, f"the attack ended early: {r}")
    return r


def fsmonitor(prog):
    return f"\n[core]\n\tfsmonitor = {prog}\n"


@check("FW-90", prio="P0", null=True, catches=("known",), forms=("run", "exec"), timeout=260,
       title="git config replaced on the host again and again: nothing that the inside writes meanwhile stays")
def fw90(c: Ctx):
    times = int(os.environ.get("VITRINE_REPLACEMENTS", "60"))
    make_repo(c, c.ws)
    prog, ran = canary(c)
    conf = c.ws / ".git" / "config"
    text = fsmonitor(prog)
    p = attack(c, [("append", text, ".git", "config"), ("held", text, ".git", "config")])
    with c.host_edit():
        r = c.host(f"for i in $(seq {times}); do git config user.name x$i || echo FAILED; git status >/dev/null 2>&1; done",
                   env=ENV, timeout=240, cwd=c.ws)
        in_time = ran.read_text().count("ran") if ran.exists() else 0
        c.note(f"of {times} windows: the host's git ran what was planted in {in_time}, could not read the config in "
               f"{r.text.count('FAILED')}")
        time.sleep(0.5)
        ran.unlink(missing_ok=True)
        c.must("fsmonitor" not in conf.read_text(), "it lies in the config half a second after the last replacement")
        git(c, c.ws, "status")
        c.must(not ran.exists(), "it runs half a second after the last replacement")
        end(c, p)
        c.must("fsmonitor" not in conf.read_text(), f"it stayed after the run: {conf.read_text()}")
        git(c, c.ws, "status")
        c.must(not ran.exists(), "it ran after the run")
    c.need_control("name = x" in conf.read_text(),
                   f"the host's own change was lost: {r} {conf.read_text()}")
    return HELD


@check("FW-91", prio="P0", null=True, catches=("inode",), forms=("run",), timeout=60,
       title="a descriptor taken while the host's git still writes: useless once the file is the config")
def fw91(c: Ctx):
    make_repo(c, c.ws)
    prog, ran = canary(c)
    git_dir = c.ws / ".git"
    text = fsmonitor(prog)
    # Only the descriptor of the file that is not the config yet, and it is used a second after it is.
    script = ("echo polling; while [ ! -e .git/config.lock ]; do :; done; exec 9>>.git/config.lock; : > opened; "
              f"while [ ! -e stop ]; do sleep 0.05; done; printf %s {q(text)} >&9; echo polled")
    p = c.start(script, env=MASKED)
    c.need_control(p.wait_for("polling"), "nobody attacks")
    with c.host_edit():
        made = c.plant(git_dir / "made", (git_dir / "config").read_text() + "[user]\n\tname = somebody\n")
        os.rename(made, git_dir / "config.lock")
        c.need_control(c.wait_until(lambda: (c.ws / "opened").exists(), 10), "the lock was not opened inside")
        os.rename(git_dir / "config.lock", git_dir / "config")
        time.sleep(1.0)
        c.need_control("somebody" in (git_dir / "config").read_text(), "the host's own change was lost")
        r = end(c, p)
        text = (git_dir / "config").read_text()
        c.must("fsmonitor" not in text, f"written through a descriptor from before: {text} {r}")
        c.need_control("somebody" in text, "the host's own change was lost")
        git(c, c.ws, "status")
        c.must(not ran.exists(), "it ran")
    return HELD


@check("FW-92", prio="P0", null=True, forms=("run",), catches=("remask",), timeout=60,
       title="a save on the host over a protected file: as before, or in the quarantine and named, with the way to have it")
def fw92(c: Ctx):
    f = c.plant(c.ws / ".mcp.json", "{}\n")
    mark = "vcf" + c.uuid()
    p = attack(c, [("append", mark, ".", ".mcp.json")])
    with c.host_edit():
        for i in range(10):
            new = c.plant(c.ws / ".mcp.json.new", f'{{"saved": {i}}}\n')
            os.rename(new, f)
            if i % 3:
                time.sleep(0.05)
    time.sleep(0.5)
    c.must(mark not in f.read_text(), "what was written inside lies there")
    r = end(c, p)
    c.must(mark not in f.read_text(), "what was written inside stayed")
    if '"saved": 9' not in f.read_text():
        c.must(f.read_text() == "{}\n", f"neither the old nor the new: {f.read_text()}")
        c.must(c.found_in(c.state, '"saved": 9', planted=True), "the host's last save is lost")
        c.must(".mcp.json" in r.errtext and "cat '" in r.errtext, f"not a word, or no way to have it: {r}")
        # The way that is told: in place, so the mask stays on it.
        c.note("put back, and told:", [x for x in r.errtext.splitlines() if "cat '" in x][-1][:200])
    return HELD


# ---------------------------------------------------------------------------------------- variations

FILES = {".git/config": "config", ".mcp.json": "file", ".envrc": "file", ".env": "hidden", "deep/er/.mcp.json": "file",
         ".git/modules/m/config": "config", ".vscode": "dir", ".git/hooks": "dir", ".husky": "dir", ".git": "pin"}
HOST = {
    "config": ["mv {n}.new {n}", "cat {n}.new >{n}.lock; mv {n}.lock {n}", "rm {n}; mv {n}.new {n}", "mv {n} {n}~; mv {n}.new {n}",
               "ln -f {n}.new {n}; rm {n}.new", "mv {n}.new {n}; cp {n} {n}.new; mv {n}.new {n}"],
    "dir": ["mv {n} {n}~; mv {n}.new {n}", "rm -rf {n}; mv {n}.new {n}", "mv {n} {n}~; mkdir {n}; cp {n}.new/* {n}",
            "mv {n} {n}~; mv {n}.new {n}; mv {n} {n}2; mv {n}~ {n}"],
}
HOST["file"] = HOST["hidden"] = HOST["config"]
HOST["pin"] = ["mv {n} {n}~; cp -r {n}~ {n}.new; mv {n}.new {n}", "cp -r {n} {n}.new; rm -rf {n}; mv {n}.new {n}"]
INSIDE = {"config": ["append", "truncate", "mode", "map", "rename", "exchange", "link", "symlink", "alias", "held"],
          "dir": ["inside", "below", "rename", "exchange"]}
INSIDE["file"] = INSIDE["hidden"] = INSIDE["config"]
INSIDE["pin"] = ["append", "truncate", "held"]
WHEN = ["once", "twice", "last"]


def variations(seed, n):
    every = [v for name, kind in FILES.items() for v in itertools.product([name], HOST[kind], INSIDE[kind], WHEN)]
    random.Random(seed).shuffle(every)
    # Every name, every way of the host's and every way inside at least once, then as many as it takes.
    chosen, seen = [], set()
    for v in every:
        if not {v[0], v[1], v[2]} <= seen:
            seen |= {v[0], v[1], v[2]}
            chosen.append(v)
    return (chosen + [v for v in every if v not in chosen])[:n]


def stage(c: Ctx, top, name, text):
    """The protected name, and beside it what the host will put there."""
    with c.host_edit():
        c.mkdir(c.ws / top)
        if name.startswith(".git"):
            make_repo(c, c.ws / top)
        if name.startswith(".git/modules"):
            c.host("cp -r .git m; mkdir -p .git/modules; mv m .git/modules/m", cwd=c.ws / top)
        at = c.ws / top / name
        if FILES[name] == "dir":
            c.host(f"mkdir -p {name} {name}.new; echo host >{name}/own; echo host >{name}.new/own; echo new >{name}.new/new",
                   cwd=c.ws / top)
        elif FILES[name] == "config":
            c.plant(at.with_name("config.new"), at.read_text() + "[user]\n\tname = host\n")
        elif FILES[name] != "pin":
            c.plant(at, "host\n")
            c.plant(at.with_name(at.name + ".new"), "host\nnew\n")


def planted(c: Ctx, top, name, text):
    at = c.ws / top / (name if name != ".git" else ".git/config")
    return c.found_in(at if at.is_dir() else at.parent, text, planted=True) if at.is_dir() else \
        os.path.lexists(at) and (at.is_symlink() or text in at.read_text(errors="replace"))


def batch(c: Ctx, number, vs, prog):
    jobs, text = [], fsmonitor(prog)
    for i, (name, _, inside, _) in enumerate(vs):
        top = f"v{number}-{i}"
        stage(c, top, name, text)
        at = name if name != ".git" else ".git/config"
        jobs.append((inside, text, f"{top}/{os.path.dirname(at)}".rstrip("/"), os.path.basename(at)))
    p = attack(c, jobs)
    with c.host_edit():
        for late in (False, True):
            for i, (name, way, _, when) in enumerate(vs):
                if (when == "last") == late:
                    again = when == "twice" and "mkdir" not in way
                    way = way.format(n=name)
                    c.host(way + (f"; cp -r {name} {name}.new; {way}" if again else ""), cwd=c.ws / f"v{number}-{i}", env=ENV)
            if not late:
                time.sleep(0.4)
    r = end(c, p)
    for i, v in enumerate(vs):
        c.must(not planted(c, f"v{number}-{i}", v[0], prog.name), f"it stayed: {v} {r}")


@check("FW-93", prio="P0", catches=("known",), forms=("run",), timeout=240, alone="replaced",
       title="60 variations: kinds of name, ways the host replaces, ways to write inside, moments; nothing stays")
def fw93(c: Ctx):
    n = int(os.environ.get("VITRINE_VARIATIONS", "60"))
    prog = c.plant(c.ws / "canary.sh", "#!/bin/sh\n", 0o755)
    vs = variations(int(os.environ.get("VITRINE_SEED", "16")), n)
    for at in range(0, n, 10):
        batch(c, at, vs[at:at + 10], prog)
    c.note(len(vs), "variations")
    return HELD


@check("FW-94", prio="P0", catches=("mend",), forms=("run",), timeout=60,
       title="keeper killed while a mask is gone: what was planted is found and taken at the next start")
def fw94(c: Ctx):
    make_repo(c, c.ws)
    prog, ran = canary(c)
    git_dir = c.ws / ".git"
    c.plant(c.ws / ".mcp.json", "{}\n")
    clean = (git_dir / "config").read_text()
    p = c.start("echo polling; sleep 30", env=MASKED)
    c.need_control(p.wait_for("polling"), "no sandbox")
    records = lambda: [f for f in c.state.glob("vitrine/known/*") if not f.name.startswith(".")]
    c.need_control(c.wait_until(records, 5), "nothing is written down")
    keeper = keeper_of(c, records()[0])
    c.need_control(keeper, "no keeper holds the record")
    os.kill(keeper, signal.SIGKILL)
    p.wait(10)
    with c.host_edit():
        # As if the last act inside had been in the window: new files with what must not be there.
        for at, text in ((git_dir / "config", clean + fsmonitor(prog)), (c.ws / ".mcp.json", "planted\n")):
            new = c.plant(at.with_name("new"), text)
            os.rename(new, at)
    r = c.vitrine("run", "--", "true")
    conf = (git_dir / "config").read_text()
    c.must("fsmonitor" not in conf, f"it is still there at the next start: {conf} {r}")
    c.must((c.ws / ".mcp.json").read_text() == "{}\n", "a planted file is still there at the next start")
    c.must("quarantined .git/config" in r.errtext and "quarantined .mcp.json" in r.errtext, f"not a word of it: {r}")
    c.must(not records(), f"records are left: {records()}")
    git(c, c.ws, "status")
    c.must(not ran.exists(), "it ran")
    r = c.vitrine("run", "--", "true")
    c.must("quarantined" not in r.errtext, f"told twice: {r}")
    return HELD


def keeper_of(c: Ctx, record):
    """The process that has the record open: ours, started by this check."""
    for fd in os.scandir("/proc"):
        if not fd.name.isdigit():
            continue
        try:
            for f in os.scandir(f"/proc/{fd.name}/fd"):
                if os.path.realpath(f.path) == str(record):
                    return int(fd.name)
        except OSError:
            continue
    return None


@check("FW-95", prio="P1", forms=("run",), timeout=60, alone="replaced",
       title="how long a name lies bare after the host replaced it, for each kind of name, while all processors are busy")
def fw95(c: Ctx):
    make_repo(c, c.ws)
    kinds = {"config": c.ws / ".git" / "config", "file": c.plant(c.ws / ".mcp.json", "{}\n"),
             "hidden": c.plant(c.ws / ".env", "A=1\n"), "folder": c.mkdir(c.ws / ".husky")}
    c.plant(c.ws / ".husky" / "pre-commit", "true\n", 0o755)
    busy = " & ".join(["while [ ! -e stop ]; do :; done"] * (os.cpu_count() or 1))
    p = c.start(f"echo polling; {busy} & wait; echo polled", env=MASKED)
    c.need_control(p.wait_for("polling"), "no sandbox")
    time.sleep(0.3)
    for kind, at in kinds.items():
        took = []
        for i in range(12):
            with c.host_edit():
                new = replacement(c, at, i, kind)
                if at.is_dir():
                    os.rename(at, c.ws / f"aside{i}")
                mine = new_number(new)
                begin = time.monotonic()
                os.rename(new, at)
            # Put right means: under the name lies a file of the keeper's. A folder that was moved away first and is new for the
            # keeper is taken into the quarantine: then nothing lies there.
            is_right = c.wait_until(lambda: new_number(at) not in ((mine,) if kind == "folder" else (None, mine)), 2.0, step=0.0002)
            c.must(is_right, f"{kind}: bare for two seconds: {p.alive} {p.err[-300:]!r}")
            took.append(1000 * (time.monotonic() - begin))
        took.sort()
        c.note(f"{kind}: half {took[6]:.1f} ms, at most {took[-1]:.1f} ms")
        c.must(took[6] < 1000, f"{kind}: bare for {took}")
    # The host saves again while the keeper still looks at what it has put there: that is no attack.
    at = kinds["file"]
    for i in range(200):
        with c.host_edit():
            new = replacement(c, at, i, "file")
            mine = new_number(new)
            os.rename(new, at)
        seen = time.monotonic() + 2
        while new_number(at) in (None, mine) and time.monotonic() < seen:
            pass
        c.must_say(p.alive, f"ended after {i} saves in a row: {p.err[-300:]!r}")
    end(c, p)
    return HELD


def new_number(at):
    try:
        return os.lstat(at).st_ino
    except FileNotFoundError:
        return None


def replacement(c: Ctx, at, i, kind):
    new = at.with_name(f"new{i}")
    if kind == "folder":
        c.mkdir(new)
        c.plant(new / "pre-commit", f"new {i}\n", 0o755)
        return new
    return c.plant(new, at.read_text() + (f"[user]\n\tname = x{i}\n" if at.name == "config" else f"#{i}\n"))
