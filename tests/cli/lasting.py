#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sandboxes that last: making, finding, leaving, coming back, listing, copying, removing."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from harness import below, describe, eq, has, has_not, main, refused, soon, test


def status(box, name):
    return {r["name"]: r["status"] for r in json.loads(box.cli("ls", "--json").out)}.get(name)


def stop(box, *names):
    r = box.cli("stop", "--time", "1s", *names)
    eq((r.rc, r.err), (0, ""))


# ----------------------------------------------------------------------------------------- which one


@test
def same_agent_and_directory(box):
    eq(box.run("shell", ".", "--", "-c", "echo one >~/note; pwd").out, f"{box.ws}\n")
    eq(box.run("shell", "--", "-c", "cat ~/note").out, "one\n")
    eq(box.run("shell", str(box.ws), "--", "cat", f"{box.home}/note").out, "one\n")
    eq(box.run("shell-proj", "--", "cat", f"{box.home}/note", cwd="/").out, "one\n")
    eq(box.cli("ls", "-q").out, "shell-proj\n")


@test
def same_name_elsewhere(box):
    other = box.home / "x" / "proj"
    other.mkdir(parents=True)
    box.own(box.home / "x")
    eq(box.run("shell", "--", "-c", "echo one >~/note").rc, 0)
    eq(box.run("shell", other, "--", "-c", "ls ~/note; pwd").out, f"{other}\n")
    names = box.cli("ls", "-q").out.split()
    eq((len(names), names[0], names[1][:11]), (2, "shell-proj", "shell-proj-"))
    eq(box.run("shell", cwd=other, input=b"pwd\n").out, f"{other}\n")
    eq(len(box.cli("ls", "-q").out.split()), 2)


@test
def words_that_mean_nothing(box):
    refused(box.run("nobody"), "'nobody' is no agent, no sandbox and no program here", rc=125)
    refused(box.run("shell", ".", "more"), "'more' is one word too many")
    refused(box.run("shell", "/no/such"), "/no/such")
    refused(box.run("--name", "run-x", "--", "true"), "--name")
    refused(box.run("--detach-keys", "ctrl-", "--", "true"), "--detach-keys")
    for verb in ("stop", "rm", "start", "inspect", "logs", "wait", "rename", "cp", "create"):
        refused(box.cli(verb), verb)
    for argv in (["stop", "nobody"], ["rm", "nobody"], ["start", "nobody"], ["inspect", "nobody"],
                 ["logs", "nobody"], ["wait", "nobody"], ["stats", "nobody"], ["ps", "nobody"], ["attach", "nobody"], ["rename", "nobody", "other"],
                 ["cp", "nobody:/x", "."], ["stop", "../up"], ["rm", "."]):
        r = box.cli(*argv)
        eq((r.rc, r.out), (125, ""), str(argv))
        has(r.err, "vitrine: ")


@test
def copies_obey_the_rules_of_writing(box):
    """What direct mode would quarantine is left out of a copy, both ways, and named; a file that is named itself comes."""
    out = box.dir / "out"
    out.mkdir()
    box.own(out)
    eq(box.cli("run", "--name", "cpj", "--mode", "review", "--", "sh", "-c",
               "mkdir -p ~/d/.vscode ~/d/n/.git/hooks ~/d/b/objects ~/d/b/refs; echo x > ~/d/.vscode/tasks.json; echo x > ~/d/plain;"
               "echo x > ~/d/n/.git/hooks/pre-commit; echo ref: refs/heads/main > ~/d/b/HEAD;"
               "printf '[core]\\n\\tfsmonitor = ./x\\n' > ~/d/b/config; touch ~/d/b/objects/x ~/d/b/refs/x").rc, 0)
    home = box.cli("exec", "cpj", "--", "sh", "-c", "echo ~").out.strip()
    r = box.cli("cp", f"cpj:{home}/d", str(out))
    eq(r.rc, 1, r.err)
    has(r.err, ".vscode': protected by", "pre-commit': git hook", "b/config': git config key core.fsmonitor")
    eq(sorted(str(p.relative_to(out)) for p in out.rglob("*") if p.is_file()), ["d/b/HEAD", "d/b/objects/x", "d/b/refs/x", "d/plain"])
    eq(box.cli("cp", f"cpj:{home}/d/b/config", str(out / "d/b/config")).rc, 0)
    eq((out / "d/b/config").exists(), True, "its very path is the way")
    # Into a workspace that is written in place.
    src = box.dir / "src"
    (src / "t/.vscode").mkdir(parents=True)
    (src / "t/.vscode/tasks.json").write_text("x")
    (src / "t/plain").write_text("x")
    (src / ".envrc").write_text("x")
    box.own(src)
    eq(box.cli("run", "--name", "cpi", "--", "true").rc, 0)
    r = box.cli("cp", str(src / "t"), f"cpi:{box.ws}/t")
    eq(r.rc, 1, r.err)
    has(r.err, "t/.vscode': protected by", "copy it there on the host")
    eq((box.read("t/plain"), (box.ws / "t/.vscode").exists()), ("x", False))
    r = box.cli("cp", str(src / ".envrc"), f"cpi:{box.ws}/.envrc")
    eq(r.rc, 1, r.err)
    has(r.err, ".envrc': protected by")
    eq([p for p in out.rglob("*") if p.name.startswith(".vitrine")], [])


@test
def create_keeps_its_flags(box):
    extra = box.dir / "extra"
    extra.mkdir()
    (extra / "f").write_text("from outside\n")
    box.own(extra)
    r = box.cli("create", "--read", "../../extra", "-e", "A=b", "--name", "box", "shell", ".")
    eq((r.rc, r.out, r.err), (0, "box\n", ""))
    eq(status(box, "box"), "stopped")
    eq(box.cli("run", "box", "--", "sh", "-c", f"cat {extra}/f; echo $A", cwd="/").out, "from outside\nb\n")
    has(box.cli("inspect", "box").out, f'"--read={extra}"', '"--env=A=b"')
    refused(box.cli("create", "--name", "box", "shell"), "exists already", rc=125)
    refused(box.run("--name", "box", "shell", "/usr"), "is for", rc=125)
    # For one run only, over what it has.
    eq(box.run("-e", "A=c", "--name", "box", "--", "sh", "-c", "echo $A").out, "c\n")
    eq(box.run("box", "--", "sh", "-c", "echo $A").out, "b\n")
    refused(box.cli("create", "--memory", "lots", "shell"), "--memory")
    eq(box.cli("ls", "-q").out, "box\n")


@test
def definition_that_is_broken(box):
    box.ok("true", "--name", "box")
    f = box.state / "sandboxes" / "box" / "sandbox.json"
    whole = f.read_text()
    for bad in ("", "{}", whole[:-10], whole.replace("[]", '["rm"]'), whole.replace('"version": 1', '"version": 9'),
                whole.replace(str(box.ws), "relative"), "[" * 100000):
        if bad == whole:  # an engine that was asked for by a word: there is no list without one
            continue
        f.write_text(bad)
        r = box.run("box", "--", "true")
        eq((r.rc, r.out), (2, ""), bad[:60])
        has(box.cli("ls", "-q").out, "box")
    eq(box.cli("rm", "box").rc, 0)
    eq(box.cli("ls", "-q").out, "")


# ---------------------------------------------------------------------------------- leaving, coming back


@test
def detach_and_attach(box):
    t = box.term("run", "shell", ".", "--", "sh", "-c", "echo on air; read x; echo got $x; read y; exit 7")
    t.expect("on air")
    t.send("\x10\x11")
    eq(t.wait(), 0)
    eq(t.is_restored(), True)
    t.expect("vitrine attach shell-proj")
    eq(status(box, "shell-proj"), "running")
    back = box.term("attach", "shell-proj")
    back.expect("on air")
    back.send("hello\r")
    back.expect("got hello")
    back.send("\r")
    eq(back.wait(), 7)
    t.close()
    back.close()


@test
def keys_that_only_begin(box):
    """What looks like the beginning of the sequence and is not goes to the command."""
    t = box.term("run", "shell", ".", "--", "sh", "-c", "stty raw -echo; echo ready; head -c 5 | od -An -c; sleep 1")
    t.expect("ready")
    t.send("\x10a\x10\x10b\x10")
    t.expect("020 +a +020 +020 +b")
    eq(t.wait(), 0)
    t.close()
    t = box.term("run", "--detach-keys", "ctrl-a,d", "shell", ".", "--", "sh", "-c", "echo ready; sleep 30")
    t.expect("ready")
    t.send("\x01d")
    eq(t.wait(), 0)
    t.close()
    stop(box, "shell-proj")


@test
def several_viewers(box):
    script = "echo first; while read x && [ $x != end ]; do echo said $x; stty size; done"
    a = box.term("run", "shell", ".", "--", "sh", "-c", script)
    a.expect("first")
    b = box.term("attach", rows=30, cols=100)
    b.expect("first")
    b.send("b\r")
    for t in (a, b):
        t.expect("said b")
        t.expect("30 100")
    a.send("a\r")
    for t in (a, b):
        t.expect("said a")
        t.expect("24 80")
    # The size is there before what was typed is read, however quickly they take turns.
    for i in range(20):
        for who, size in ((b, "30 100"), (a, "24 80")):
            who.send(f"turn{i}\r")
            for t in (a, b):
                t.expect(f"said turn{i}")
                eq(t.expect("([0-9]+ [0-9]+)\r\n")[1].decode(), size, f"turn {i}")
    c = box.term("attach", "--no-stdin", "shell-proj")
    c.expect("said a")
    c.send("c\r")
    a.send("d\r")
    c.expect("said d")
    has_not(c.seen.decode(), "said c")
    # One of them goes; the others notice nothing.
    b.p.kill()
    b.p.wait()
    c.send("\x10\x11")
    a.send("e\r")
    a.expect("said e")
    a.send("end\r")
    eq(a.wait(), 0)
    eq(c.p.wait(5) in (0, 125), True)
    for t in (a, b, c):
        t.close()


@test
def terminal_closed(box):
    t = box.term("run", "shell", ".", "--", "sh", "-c", "trap 'echo hup >hup' HUP; echo up; sleep 1.5; echo on >on")
    t.expect("up")
    os.close(t.slave)
    os.close(t.master)
    eq(t.p.wait(5) is not None, True)
    soon(lambda: (box.ws / "on").exists(), "it goes on without a terminal")
    eq((box.ws / "hup").exists(), False)


@test
def full_screen_program_is_painted_again(box):
    """A new viewer gets the modes the screen is in, though the ring has long forgotten them."""
    t = box.term("run", "shell", ".", "--", "sh", "-c",
                 r"printf '\033[?1049h\033[?25l'; i=0; while [ $i -lt 3000 ]; do echo line $i of many, many; "
                 r"i=$((i+1)); done; echo ready; sleep 30")
    t.expect("ready", 10)
    v = box.term("attach", "shell-proj")
    v.expect(r"\x1b\[\?1049h")
    v.expect("ready")
    v.close()
    v.p.wait(5)
    t.send("\x10\x11")
    eq(t.wait(), 0)
    t.close()
    stop(box, "shell-proj")


@test
def behind_the_scenes(box):
    r = box.run("-d", "--name", "box", "--", "sh", "-c", "echo out; echo err >&2; read x || echo no input; sleep 1; exit 6")
    eq((r.rc, r.out, r.err), (0, "box\n", ""))
    eq(box.cli("wait", "box", "1").out, "6\n")
    eq(box.cli("logs", "box").out, "out\nerr\nno input\n")
    r = box.run("-d", "--", "sleep", "30")
    name = r.out.strip()
    eq((r.rc, name[:4]), (0, "run-"))
    eq(box.cli("ls", "--all", "-q").out.split(), ["box", name])
    stop(box, name)
    eq(box.cli("exec", "-d", "box", "--", "sh", "-c", "echo later").out, "2\n")
    soon(lambda: box.cli("logs", "box", "2").out == "later\n", "it is recorded")


@test
def started_stays(box):
    box.cli("create", "--name", "box", "shell")
    eq(box.cli("start", "box").rc, 0)
    eq(status(box, "box"), "started")
    eq(box.cli("exec", "box", "--", "sh", "-c", "echo kept >/tmp/note").rc, 0)
    eq(box.run("box", "--", "cat", "/tmp/note").out, "kept\n")
    eq(status(box, "box"), "started")
    eq(box.cli("start", "box").rc, 0)
    stop(box, "box")
    eq(status(box, "box"), "stopped")
    # One that runs for a session can be told to stay.
    p = box.named("box", "echo up; read x", stdin=subprocess.PIPE)
    eq(box.cli("start", "box").rc, 0)
    p.stdin.close()
    eq(p.wait(5), 1)
    eq(status(box, "box"), "started")
    stop(box, "box")


# ------------------------------------------------------------------------------------------- stopping


@test
def stop_asks_first(box):
    p = box.named("box", "trap 'echo bye; exit 9' TERM; echo up; while :; do sleep 0.05; done")
    t0 = time.monotonic()
    eq(box.cli("stop", "box").rc, 0)
    eq(time.monotonic() - t0 < 3, True)
    r = box.finish(p)
    eq((r.rc, r.out), (9, "bye\n"))


@test
def stop_kills_at_last(box):
    p = box.named("box", "trap '' TERM HUP INT; echo up; while :; do sleep 0.05; done")
    t0 = time.monotonic()
    stop(box, "box")
    took = time.monotonic() - t0
    eq(0.8 < took < 4, True, took)
    eq(box.finish(p).rc, 143)
    stop(box, "box")


@test
def stop_of_a_shell(box):
    t = box.term("run", "shell", ".")
    t.send("echo $((6*7))\r")
    t.expect("42")
    t0 = time.monotonic()
    eq(box.cli("stop", "shell-proj").rc, 0)
    eq(time.monotonic() - t0 < 5, True)
    t.wait()
    t.close()


@test
def stop_of_a_keeper_that_hangs(box):
    p = box.named("box")
    keeper = [k for k in below(p.pid) if "keeper" in describe(k)][0]
    soon(lambda: box.cli("logs", "box").rc == 0, "it is on record")
    os.kill(keeper, signal.SIGSTOP)
    eq(box.cli("stop", "--time", "0", "box", timeout=10).rc, 0)
    eq(box.finish(p).rc, 125)
    eq(status(box, "box"), "lost")


@test
def lost_and_found(box):
    """A session whose keeper died is lost; what is known of it stays, and the next run is a good one."""
    p = box.named("box", "echo up; echo last words; exec sleep 30")
    keeper = [k for k in below(p.pid) if "keeper" in describe(k)][0]
    soon(lambda: "last words" in box.cli("logs", "box").out, "the output is recorded")
    os.kill(keeper, signal.SIGKILL)
    eq(box.finish(p).rc, 125)
    eq(status(box, "box"), "lost")
    past = json.loads(box.cli("inspect", "box").out)[0]["past"]
    eq([(s["id"], s["status"]) for s in past], [(1, "lost")])
    eq(box.cli("logs", "box", "1").out, "up\nlast words\n")
    eq(box.run("box", "--", "echo", "again").out, "again\n")
    past = json.loads(box.cli("inspect", "box").out)[0]["past"]
    eq([(s["id"], s["status"]) for s in past], [(2, "ended"), (1, "lost")])


@test
def slow_reader_holds_up_nobody_else(box):
    p = box.named("box")
    a, b = socket.socketpair()
    e = box.start("exec", "box", "--", "sh", "-c", "head -c 100000 /dev/zero; exit 3", stdout=a)
    a.close()
    time.sleep(0.4)
    t0 = time.monotonic()
    eq(box.cli("exec", "box", "--", "echo", "quick").out, "quick\n")
    eq(time.monotonic() - t0 < 1.0, True)
    got = 0
    while got < 100000:
        got += len(b.recv(65536))
    eq((e.wait(5), got), (3, 100000))
    b.close()
    box.stop(p)


# ------------------------------------------------------------------------------------------- removing


@test
def rm_and_force(box):
    box.ok("true", "--name", "a")
    p = box.named("b")
    refused(box.cli("rm", "b"), "'b' is running", "vitrine stop b", rc=125)
    r = box.cli("rm", "b", "a")
    eq(r.rc, 125)
    eq(box.cli("ls", "-q").out, "b\n")
    eq(box.cli("rm", "--force", "b").rc, 0)
    box.finish(p)
    eq(box.cli("ls", "-q").out, "")
    eq(list((box.state / "sandboxes").iterdir()), [])


@test
def rm_follows_no_link(box):
    victim = box.dir / "victim"
    victim.mkdir()
    (victim / "f").write_text("x")
    box.own(victim)
    box.ok(f"ln -s {victim} ~/link; ln -s {victim}/f ~/file; mkdir -p ~/a/b; chmod 0 ~/a; ln -s {box.ws} ~/ws", "--name", "box")
    box.write("keep", "me")
    eq(box.cli("rm", "box").rc, 0)
    eq((victim / "f").read_text(), "x")
    eq(box.read("keep"), "me")
    eq(list((box.state / "sandboxes").iterdir()), [])


@test
def rename_reset_prune(box):
    box.ok("echo n >~/note", "--name", "old")
    eq(box.cli("rename", "old", "new").rc, 0)
    eq(box.run("new", "--", "cat", f"{box.home}/note").out, "n\n")
    eq(json.loads((box.state / "sandboxes" / "new" / "sandbox.json").read_text())["name"], "new")
    box.ok("true", "--name", "other")
    refused(box.cli("rename", "new", "other"), "already", rc=125)
    refused(box.cli("rename", "new", "../x"), "cannot be a name")
    refused(box.cli("reset", "new"), "--force")
    eq(box.cli("reset", "--force", "new").rc, 0)
    eq(box.run("new", "--", "sh", "-c", "cat ~/note || echo gone").out, "gone\n")
    p = box.named("other")
    eq(box.cli("prune", "--dry-run").out, "new\n")
    eq(box.cli("prune", "--force", "--filter", "since=1h").out, "")
    eq(box.cli("prune", "--force").out, "new\n")
    eq(box.cli("ls", "-q").out, "other\n")
    box.stop(p)


@test
def rm_with_the_run(box):
    eq(box.run("--rm", "shell", ".", "--", "-c", "echo x >~/x; echo ok").out, "ok\n")
    eq(list((box.state / "sandboxes").iterdir()), [])


# ------------------------------------------------------------------------------------------- listings


@test
def listings(box):
    p = box.named("box")
    e = box.start("exec", "box", "--", "sh", "-c", "echo in; sleep 30; : \x1b[31m")
    eq(e.stdout.readline(), b"in\n")
    rows = json.loads(box.cli("ls", "--json").out)
    eq([(r["name"], r["agent"], r["status"], r["sessions"], r["workspace"]) for r in rows],
       [("box", "shell", "running", 2, str(box.ws))])
    # Behind other engines somebody looks once a second.
    soon(lambda: all(r["processes"] > 0 for r in json.loads(box.cli("ps", "--json").out)), "processes of both")
    rows = json.loads(box.cli("ps", "--json").out)
    eq([(r["name"], r["session"], r["tty"]) for r in rows], [("box", 1, False), ("box", 2, False)])
    has(rows[1]["command"], "sleep 30", "\x1b[31m")
    has_not(box.cli("ps").out, "\x1b")
    eq(all(r["processes"] > 0 for r in rows), True, str(rows))
    eq(box.cli("ps", "--format", "{{.Name}}/{{ .Session }}").out, "box/1\nbox/2\n")
    refused(box.cli("ls", "--format", "{{.Nothing}}"), "no field 'Nothing'")
    refused(box.cli("ls", "--format", "{{Name}}"), "{{.Name}}")
    rows = json.loads(box.cli("stats", "--json").out)
    eq([(r["name"], r["processes"] >= 3, r["memory"] > 0, r["net_in"]) for r in rows], [("box", True, True, None)])
    has(box.cli("stats").out, "SANDBOX", "box")
    d = json.loads(box.cli("inspect", "box").out)[0]
    eq((d["name"], d["status"], len(d["sessions"])), ("box", "running", 2))
    box.stop(e)
    box.stop(p)


@test
def used_is_told(box):
    r = box.run("--json", "--name", "box", "--", "sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done")
    used = r.json["used"]
    eq((used["cpu_ns"] > 10_000_000, used["wall_ns"] >= used["cpu_ns"] // 3, used["max_rss"] > 100_000), (True,) * 3,
       used)


@test
def logs_are_escaped_and_bounded(box):
    r = box.run("--name", "box", "--", "sh", "-c", r"printf 'a\033[31mb\n'; printf 'c\tD\r\n'")
    eq(r.rc, 0)
    eq(box.cli("logs", "box").raw_out, b"a\x1b[31mb\nc\tD\r\n")
    t = box.term("logs", "box")
    eq(t.wait(), 0)
    has(t.seen.decode(), "a\\x1b[31mb", "D\r\n")
    t.close()
    r = box.run("--name", "big", "--", "sh", "-c", "head -c 20000000 /dev/zero | tr '\\0' x; echo; echo the end",
                stdout=subprocess.DEVNULL)
    eq(r.rc, 0, r.err)
    size = sum(f.stat().st_size for f in (box.state / "sandboxes" / "big" / "sessions" / "1").glob("output*"))
    eq(4 << 20 <= size <= 8 << 20, True, size)
    eq(box.cli("logs", "--tail", "1", "big").out, "the end\n")


@test
def logs_follow(box):
    p = box.run("-d", "--name", "box", "--", "sh", "-c", "for i in 1 2 3; do echo $i; sleep 0.3; done")
    eq(p.rc, 0)
    eq(box.cli("logs", "-f", "box").out, "1\n2\n3\n")


# -------------------------------------------------------------------------------------------- copying


@test
def copies(box):
    out = box.home / "out"
    out.mkdir()
    box.own(out)
    box.ok("mkdir -p ~/d/e; echo 1 >~/d/one; echo 2 >~/d/e/two; chmod 755 ~/d/one; ln -s e/two ~/d/good", "--name", "box")
    eq(box.cli("cp", f"box:{box.home}/d/one", str(out)).rc, 0)
    eq(((out / "one").read_text(), (out / "one").stat().st_mode & 0o7777), ("1\n", 0o755))
    eq(box.cli("cp", f"box:{box.home}/d", str(out / "copy")).rc, 0)
    eq((out / "copy" / "e" / "two").read_text(), "2\n")
    eq(os.readlink(out / "copy" / "good"), "e/two")
    (out / "in").write_text("into\n")
    box.own(out)
    if box.engine == "native":
        box.cli("stop", "box")  # its keeper may still be ending
        refused(box.cli("cp", str(out / "in"), "box:/tmp/x"), "is on a temporary file system", rc=125)
    box.cli("start", "box")
    eq(box.cli("cp", str(out / "in"), "box:/tmp/x").rc, 0)
    eq(box.cli("exec", "box", "--", "cat", "/tmp/x").out, "into\n")
    eq(box.cli("cp", str(out / "copy"), "box:/tmp").rc, 1)
    eq(box.cli("exec", "box", "--", "cat", "/tmp/copy/e/two").out, "2\n")
    eq(box.cli("cp", str(out / "in"), "box:/usr/x").rc, 125)
    refused(box.cli("cp", "box:/a", "box:/b"), "by way of the host")
    refused(box.cli("cp", "a", "b"), "NAME:PATH")
    stop(box, "box")


@test
def copies_are_safe(box):
    """Whatever lies inside: nothing is written through a link, nothing blocks, nothing of init comes out."""
    out = box.home / "out"
    out.mkdir()
    victim = box.home / "victim"
    victim.write_text("untouched\n")
    box.own(box.home)
    box.ok(f"mkdir ~/d; ln -s {victim} ~/d/abs; ln -s ../../../victim ~/d/up; echo f >~/d/file; "
           f"ln -s {victim} ~/link; ln -s {victim} file2", "--name", "box")
    box.cli("start", "box")
    eq(box.cli("exec", "box", "--", "mkfifo", f"{box.home}/d/fifo").rc, 0)  # gVisor forgets one when it ends
    r = box.cli("cp", f"box:{box.home}/d", str(out))
    eq(r.rc, 1)
    has(r.err, "left out", "fifo", "abs", "up")
    eq(sorted(p.name for p in (out / "d").iterdir()), ["file"])
    for path in (f"{box.home}/link", f"{box.home}/d/fifo", "/dev/null", "/dev/ptmx", "/proc/1/environ", "/proc/self/maps",
                 "/proc/1/fd/0", "/etc/shadow", "/no/such"):
        r = box.cli("cp", f"box:{path}", str(out / "bad"))
        eq((r.rc, r.out, (out / "bad").exists()), (125, "", False), path)
    # The destination is a link that the agent planted, or lies behind one.
    (box.ws / "plain").write_text("x")
    r = box.cli("cp", f"box:{box.home}/d/file", "file2")
    refused(r, "is a link", rc=125)
    box.cli("exec", "box", "--", "ln", "-s", str(box.home / "out"), "way")
    r = box.cli("cp", f"box:{box.home}/d/file", "way/in")
    refused(r, "through a link in the workspace", rc=125)
    # And a source that the agent planted is not read on the host.
    r = box.cli("cp", "file2", "box:/tmp/leak")
    refused(r, "is a link", rc=125)
    r = box.cli("cp", "way/d", "box:/tmp/leak")
    refused(r, "through a link", rc=125)
    # A link at the destination inside is replaced, not followed.
    box.cli("exec", "box", "--", "sh", "-c", "echo old >/tmp/target; ln -s target /tmp/l")
    eq(box.cli("cp", "plain", "box:/tmp/l").rc, 0)
    eq(box.cli("exec", "box", "--", "sh", "-c", "cat /tmp/target; cat /tmp/l; test -L /tmp/l || echo plain").out,
       "old\nxplain\n")
    eq(victim.read_text(), "untouched\n")
    stop(box, "box")


@test
def words_of_docker_users(box):
    """Their flags do what they did there, or are refused in one line; nothing is taken and ignored."""
    eq(box.cli("create", "--quiet", "--name", "q", "shell", ".").out, "")
    eq(box.cli("ls", "-q").out, "q\n")
    eq(box.run("--detached", "--name", "d", "--", "true").out, "d\n")
    box.write("vars", "A=1\n# a comment\n\nB=two words")
    eq(box.cli("exec", "--env-file", "vars", "-e", "A=3", "q", "--", "sh", "-c", "echo $A $B").out, "3 two words\n")
    refused(box.cli("exec", "--env-file", "nowhere", "q", "--", "true"), "nowhere")
    inside = box.cli("exec", "q", "--", "id", "-un").out.strip()
    eq(box.cli("exec", "-u", inside, "q", "--", "id", "-un").out.strip(), inside)
    refused(box.cli("exec", "-u", "root", "q", "--", "true"), "has one user", inside)
    refused(box.cli("network", "proxy", "nope", "--policy", "deny"), "there is no sandbox", rc=125)
    refused(box.cli("ls", "--format", "{{.Nope}}"), "there are Name, Agent")
    for argv in (["stop", "q", "d"], ["reset", "--force"], ["inspect", "q"], ["rm", "--force", "q", "d"]):
        eq(box.cli(*argv).rc, 0, argv)


# ------------------------------------------------------------------------------------------ full disk


@test(who=["root"], timeout=60)
def disk_full(box):
    """State on a disk that is full at every size: a clear refusal or success, and all is well when there is room."""
    box.needs("unshare", "mount")
    state = box.dir / "state"
    state.mkdir(exist_ok=True)
    script = ("mount -t tmpfs -o size=$1k,nr_inodes=$2 tmpfs $XDG_STATE_HOME || exit 99; shift 2; "
              "\"$@\" create --name box shell >/dev/null; a=$?; \"$@\" run --name box -- sh -c 'echo ran'; b=$?; "
              "mount -o remount,size=64m,nr_inodes=100k $XDG_STATE_HOME; \"$@\" run --name box -- echo fine; echo $a $b $?")
    for size, inodes in [(8, 1000), (64, 1000), (96, 1000), (128, 1000), (192, 1000), (256, 1000), (4096, 8), (4096, 60),
                         (4096, 75), (4096, 80), (4096, 90)]:
        out = box.host("unshare", "-m", "--propagation", "private", "sh", "-c", script, "sh", str(size), str(inodes),
                       box.program).split()
        a, b, last = out[-3:]
        eq((a in ("0", "125"), b in ("0", "125"), last, out[-4]), (True, True, "0", "fine"), f"{size}k, {inodes}: {out}")
        eq("ran" in out, b == "0", f"{size}k, {inodes}: {out}")


FULL = """
v=$1 room=$2; shift 2
mount -t tmpfs -o size=8m,nr_inodes=2000 tmpfs $XDG_STATE_HOME || exit 99
"$v" run --name box -- sh -c 'echo kept >~/kept' || exit 98
case $1 in exec|stop|cp) "$v" start box || exit 97;; esac
head -c 8m /dev/zero >$XDG_STATE_HOME/fill 2>/dev/null
truncate -s -${room}k $XDG_STATE_HOME/fill
echo new >new
"$v" "$@"; a=$?
rm $XDG_STATE_HOME/fill
case $1 in exec|stop|cp) "$v" stop -t 0 box; "$v" run --name box -- cat /tmp/new 2>/dev/null;; esac
name=$("$v" ls -q)
echo "kept: $("$v" run --name "$name" -- sh -c 'cat ~/kept 2>/dev/null')"; b=$?
"$v" events --verify >/dev/null || exit 96
"$v" rm -f "$name" || exit 95
echo "$name $a $b"
"""


@test(who=["root"], timeout=60)
def disk_full_of_a_sandbox_that_is_there(box):
    """Whole under the old name or the new, with its home or with an empty one, and free again when there is room."""
    box.needs("unshare", "mount")
    (box.dir / "state").mkdir(exist_ok=True)
    said = {}
    for verb in (["rename", "box", "other"], ["reset", "--force", "box"], ["exec", "box", "--", "sh", "-c", "yes | head -c 200000"],
                 ["cp", "new", "box:/tmp/new"], ["stop", "-t", "0", "box"], ["checkpoint", "box"]):
        for room in (0, 4, 12, 64):
            r = box.finish(box.popen(["unshare", "-m", "--propagation", "private", "sh", "-c", FULL, "sh", box.program, str(room), *verb],
                                     stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
            what = f"{verb} with {room} KiB left: {r.rc} {r.out[-300:]} {r.err[-500:]}"
            eq(r.rc, 0, what)
            name, a, b = r.out.split()[-3:]
            kept = re.search(r"^kept: ?(.*)$", r.out, re.M).group(1)
            eq((a in ("0", "125"), b), (True, "0"), what)
            eq(name, "other" if verb[0] == "rename" and a == "0" else "box", what)
            eq(kept, "" if verb[0] == "reset" and a == "0" else "kept", what)
            if a != "0":
                has(r.err.lower(), "space")
            said.setdefault(verb[0], set()).add(a)
    eq(any("125" in s for s in said.values()), True, f"the disk was never full: {said}")


@test(who=["root"], timeout=30)
def a_start_counts_when_it_matters(box):
    """What runs too short to be counted is counted before the next start; with little change, one count does for many."""
    box.needs("unshare", "mount")
    (box.dir / "state").mkdir(exist_ok=True)
    script = """
        mount -t tmpfs -o size=64m tmpfs $XDG_STATE_HOME || exit 99
        note=$XDG_STATE_HOME/vitrine/sandboxes/box/disk
        run() { "$v" run --name box --disk 4m,optional -- sh -c "$1"; echo "rc $?"; }
        v=$1; run true
        for i in 1 2 3 4 5 6; do    # one that takes its time, on a busy machine, leaves no note
            run true; first=$(cksum <$note); run 'echo little >~/a'; test "$first" = "$(cksum <$note)" && break
        done >/dev/null 2>&1
        test "$first" = "$(cksum <$note)" && echo kept
        run 'head -c 3m /dev/zero >~/b'; run 'head -c 3m /dev/zero >~/c'; run 'echo ran'
        rm -r $XDG_STATE_HOME/vitrine/sandboxes/box/home/c; run 'echo again'
        run 'sleep 0.2' >/dev/null; test -e $note || echo none
    """
    r = box.finish(box.popen(["unshare", "-m", "--propagation", "private", "sh", "-c", script, "sh", box.program],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    eq(r.out.split("\n")[:-1], ["rc 0", "kept", "rc 0", "rc 0", "rc 125", "again", "rc 0", "none"], r.err)
    has(r.err, "keeps 6 MiB on the disk, and its limit is 4")


# ------------------------------------------------------------------------------------- control socket


@test
def socket_is_strict(box):
    """Whatever is sent to it that is not a message of ours ends that connection and nothing else."""
    p = box.named("box")
    path = box.state / "sandboxes" / "box" / "control"
    soon(path.exists, "its door is open")
    here = os.open(path.parent, os.O_PATH)
    for data in (b"", b"x", b"\xff" * 640, b"\0" * 4096, os.urandom(672), b"\x01" + b"\0" * 671):
        for n_fds in (0, 1, 4, 200):
            s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            s.connect(f"/proc/self/fd/{here}/control")
            fds = [os.open("/dev/null", os.O_RDONLY) for _ in range(n_fds)]
            try:
                socket.send_fds(s, [data or b"\0"], fds)
                s.settimeout(0.3)
                s.recv(4096)
            except OSError:
                pass
            for f in fds:
                os.close(f)
            s.close()
    os.close(here)
    keeper = [k for k in below(p.pid) if "keeper" in describe(k)][0]
    eq(len(os.listdir(f"/proc/{keeper}/fd")) < 40, True)
    eq(box.cli("exec", "box", "--", "echo", "fine").out, "fine\n")
    box.stop(p)


@test
def exec_is_recorded_without_a_terminal(box):
    eq(box.cli("create", "--name", "e", "shell").rc, 0)
    eq(box.cli("start", "e").rc, 0)
    eq(box.cli("exec", "e", "--", "sh", "-c", "echo out; echo err >&2; exit 3").rc, 3)
    out = box.cli("logs", "e").out
    eq(sorted(out.split()), ["err", "out"])
    past = json.loads(box.cli("inspect", "e").out)[0]["past"]
    eq((past[0]["exit"], past[0]["reason"]), (3, "exit"))
    # A running session's record stays, however many come after it.
    p = box.start("exec", "e", "--", "sh", "-c", "echo first; sleep 60")
    soon(lambda: "first" in box.cli("logs", "e", "2").out, "the record begins")
    for _ in range(64):
        eq(box.cli("exec", "e", "--", "true").rc, 0)
    eq(box.cli("logs", "e", "2").out, "first\n")
    eq(len(list((box.state / "sandboxes" / "e" / "sessions").iterdir())) <= 66, True)
    stop(box, "e")
    box.finish(p)


@test
def a_reader_that_leaves_ends_the_writer(box):
    """As in any pipe, as long as the client is there."""
    eq(box.cli("create", "--name", "p", "shell").rc, 0)
    for argv in (["run", "--name", "p", "--", "yes"], ["exec", "p", "--", "yes"]):
        eq(box.cli("start", "p").rc, 0)
        p = box.start(*argv)
        eq(p.stdout.read(2), b"y\n")
        p.stdout.close()
        p.stdout = None
        eq(box.finish(p).rc, 128 + signal.SIGPIPE)
    stop(box, "p")


@test
def a_stopped_sandbox_tells_how(box):
    box.run("--", "sh", "-c", "exit 7")
    box.run("--name", "n", "--", "sh", "-c", "kill -9 $$")
    lines = box.cli("events", "--json", "--type", "sandbox.stopped").out.splitlines()
    eq([(d["reason"], d["status"]) for d in (json.loads(l)["data"] for l in lines)], [("exit", 7), ("signal", 137)])


@test
def reset_knows_whom_before_it_asks(box):
    refused(box.cli("reset", "none"), "there is no sandbox 'none'", rc=125)


if __name__ == "__main__":
    sys.exit(main())
