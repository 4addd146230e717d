#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A machine that can be saved while it works: its files come from vitrine-files, its private space is its own memory."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from far import net  # noqa: E402
from harness import eq, has, has_not, main, refused, test  # noqa: E402
from machine import inside, machine  # noqa: E402

SMALL = ("--live", "--memory", "192m,optional")  # less to be written


def live(box, env, script, *options, **kw):
    return inside(box, env, script, *SMALL, *options, **kw)


@test(who=("user",), timeout=400)
def its_files(box):
    """The same view as any machine's: read, written, renamed, linked, listed; hidden and protected names; walls."""
    env = machine(box)
    box.write(".env", "SECRET=1\n")
    box.write(".vscode/tasks.json", "{}\n")
    box.write("a/b/c", "deep\n")
    os.symlink("/etc/shadow", box.ws / "out")
    r = live(box, env, "cat a/b/c; cat .env; echo x >.vscode/tasks.json; touch /usr/x; "
             "mkdir -p new/dir && echo one >new/dir/f && echo two >>new/dir/f && mv new/dir/f new/g && ln new/g new/h && "
             "ln -s g new/l && cat new/l && ls new && chmod 755 new/g && rm new/h && rmdir new/dir; "
             "echo tmp >/tmp/t && cat /tmp/t; echo home >~/h && cat ~/h; stat -c %a /tmp; mknod dev c 1 3; "
             "seq 1 60000 >big; wc -c <big; grep -c . /proc/mounts >/dev/null; id -u; mount | grep -c trans=virtio; exit 3")
    eq(r.rc, 3, r.err)
    has(r.out, "deep\none\ntwo\ndir\ng\nh\nl\ntmp\nhome\n1777\n348894\n", str(box.ws.stat().st_uid))
    eq(r.out.splitlines()[-1], "0", "nothing of QEMU's own")
    has_not(r.out, "SECRET")
    has(r.err, "dev")
    eq(box.read(".vscode/tasks.json"), "{}\n")
    eq((box.read("new/g"), os.readlink(box.ws / "new/l"), (box.ws / "new/g").stat().st_mode & 0o7777),
       ("one\ntwo\n", "g", 0o755))
    eq(sorted(os.listdir(box.ws / "new")), ["g", "l"])
    eq((box.ws / "new/g").stat().st_uid, box.ws.stat().st_uid)
    eq(len(box.read("big")), 348894)


@test(who=("user",), timeout=60)
def no_other_engine(box):
    refused(box.run("--live", "--", "true"), "native", "cannot honour: saved while it works", rc=125)
    refused(box.run("--live", "--engine", "bwrap", "--", "true"), "cannot honour: saved while it works", rc=125)
    refused(box.run("--live", "--containers", "--engine", "vm-emulated", "--", "true"), "exclude each other", rc=125)


COUNT = "exec 3>>log; i=0; while :; do i=$((i+1)); echo $i >&3; echo n $i; echo $i >/tmp/t; sleep 0.2; done"


def said(path):
    try:
        return path.read_text()
    except OSError:
        return ""


def numbers(box):
    return [int(n) for n in box.read("log").split()]


def until(what, seconds=100, nap=0.1):
    """Waits for a condition, not for a time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        got = what()
        if got:
            return got
        time.sleep(nap)
    raise AssertionError("it did not come to that")


def counts_on(box):
    n = len(numbers(box))
    until(lambda: len(numbers(box)) > n + 2)


def begin(box, env, *options):
    r = box.cli("run", "-d", "--engine", "vm-emulated", *SMALL, *options, "--name", "m", "--", "sh", "-c", COUNT, env=env, timeout=170)
    eq(r.rc, 0, r.err)
    until(lambda: (box.ws / "log").exists() and len(numbers(box)) > 3)


def folders(box):
    live = box.state / "sandboxes" / "m" / "live"
    return sorted(n for n in os.listdir(live) if n != "homes") if live.exists() else []


@test(who=("user",), timeout=400)
def saved_and_back(box):
    """A command counts in its memory, holds a file of the workspace open and has one in /tmp; another reads a terminal. Both are
    saved and go on; the files are changed. Restored, they go on from where they were, into the same file."""
    env, far = machine(box), net()
    begin(box, env, "--allow", "ok.test")
    r = box.cli("exec", "-d", "-t", "m", "--", "sh", "-c", "x=first; while read y; do echo $x then $y; x=$y; done", timeout=60)
    eq(r.rc, 0, r.err)
    box.write("other", "then\n")
    box.cli("exec", "m", "--", "sh", "-c", "echo then >~/mine", timeout=60)
    r = box.cli("checkpoint", "--live", "m", "-m", "at work", "--json", timeout=170)
    eq(r.rc, 0, r.err)
    saved = json.loads(r.out)
    eq((saved["live"]["commands"], saved["live"]["lost"], saved["live"]["bytes"] > 2**20), (2, 0, True), saved)
    point = str(saved["checkpoint"])
    memory = box.state / "sandboxes" / "m" / "live" / point / "memory"
    eq((folders(box), memory.stat().st_mode & 0o077, memory.parent.stat().st_mode & 0o077), ([point], 0, 0))
    has(box.cli("checkpoints", "m").out, " live ")
    counts_on(box)
    r = box.cli("exec", "m", "--", "sh", "-c", "echo inside; cat other; echo now >~/mine", timeout=100)
    eq((r.rc, r.out), (0, "inside\nthen\n"), r.err)
    refused(box.cli("restore", "m", point, env=env), "running", rc=125)

    box.cli("stop", "-t", "0", "m", timeout=60)
    refused(box.cli("checkpoint", "--live", "m"), "does not run", rc=125)
    later = numbers(box)
    box.write("other", "now\n")
    r = box.cli("restore", "--force", "m", point, env=env, timeout=170)
    eq(r.rc, 0, r.err)
    has(r.out, "the machine goes on from there")
    eq(box.read("other"), "then\n")
    before = len(numbers(box))
    counts_on(box)
    eq(numbers(box), list(range(1, len(numbers(box)) + 1)), "no number twice, none left out")
    r = box.cli("exec", "m", "--", "sh", "-c", "cat /tmp/t; cat other ~/mine; date +%s", timeout=100)
    got = r.out.split()
    eq((r.rc, int(got[0]) >= before, got[1:3]), (0, True, ["then", "then"]), r.err)
    eq(abs(int(got[3]) - time.time()) < 60, True, "the clock")
    far.clear()
    r = box.cli("exec", "m", "--", "curl", "-sSf", "-m", "100", "-o", "/dev/null", "http://ok.test/", timeout=120)
    eq((r.rc, len(far.hits("ok.test", 80))), (0, 1), r.err)
    sessions = {n["command"][:9]: n["session"] for n in json.loads(box.cli("ps", "--json", "m").out)}
    t = box.term("attach", "m", str(sessions["sh -c x=f"]))
    t.send("hello\r")
    t.expect("first then hello", 60)
    t.close()
    n = sessions["sh -c exe"]
    until(lambda: "n " in box.cli("logs", "m", str(n)).out)
    box.cli("stop", "-t", "0", "m", timeout=60)

    (memory.parent / "key").write_text((memory.parent / "key").read_text().replace("qemu", "other"))
    r = box.cli("restore", "--force", "m", point, env=env, timeout=170)
    refused(r, "another kind", "has changed since", rc=125)
    eq(box.cli("checkpoints", "m", "--keep", "1").rc, 0)
    eq(folders(box), [], "it goes with its checkpoint")
    eq(len(later) > 3, True)


def inner(box, script):
    r = box.cli("exec", "m", "--", "sh", "-c", script, timeout=100)
    eq(r.rc, 0, r.err)
    return r.out


def saved(box, *words):
    r = box.cli("checkpoint", "--live", "m", "--json", *words, timeout=170)
    eq(r.rc, 0, r.err)
    got = json.loads(r.out)
    eq((got["live"]["commands"], got["live"]["lost"], got["live"]["bytes"] > 2**20), (1, 0, True), got)
    return str(got["checkpoint"])


@test(who=("user",), timeout=400)
def saved_in_layers(box):
    """Changes wait in layers: they, the home, a file that is open without a name and the machine are one point, as often as it
    is gone back to; the host sees none of it. It goes with its point, and another with the same number has none."""
    env = machine(box)
    box.write("f", "host\n")
    count = ("exec 3>>log 4>gone 5<gone; rm gone; echo nameless >&4; i=0; while :; do i=$((i+1)); echo $i >&3; "
             "[ -e ask ] && rm ask && cat <&5 >answer; sleep 0.2; done")
    r = box.cli("run", "-d", "--engine", "vm-emulated", "--mode", "review", *SMALL, "--name", "m", "--", "sh", "-c", count,
                env=env, timeout=170)
    eq(r.rc, 0, r.err)
    inner(box, "while ! grep -qs 3 log; do sleep 0.1; done; echo then >f; echo then >~/mine")
    point = saved(box, "-m", "half way")
    has(box.cli("checkpoints", "m").out, " live ", "half way")
    for _ in range(2):
        inner(box, "n=$(wc -l <log); while [ $(wc -l <log) -le $n ]; do sleep 0.1; done; echo now >f; echo now >~/mine")
        box.cli("stop", "-t", "0", "m", timeout=60)
        r = box.cli("restore", "m", point, env=env, timeout=170)
        eq(r.rc, 0, r.err)
        has(r.out, "the machine goes on from there")
        got = inner(box, "n=$(wc -l <log); while [ $(wc -l <log) -le $n ]; do sleep 0.1; done; cat f ~/mine; cat log").split()
        eq(got[:2], ["then", "then"])
        eq([int(n) for n in got[2:]], list(range(1, len(got) - 1)), "no number twice, none left out")
    eq(inner(box, "touch ask; while ! grep -s . answer; do sleep 0.1; done"), "nameless\n")
    eq(box.read("f"), "host\n")
    eq(sorted(os.listdir(box.ws)), ["f"])
    box.cli("stop", "-t", "0", "m", timeout=60)
    eq(len(folders(box)), 1)
    eq(box.cli("checkpoints", "m", "--keep", "1").rc, 0)
    eq(folders(box), [], "it goes with its point")


@test(who=("user",), timeout=400)
def saved_with_a_home_in_layers(box):
    """A home that was checkpointed while nothing ran lies in layers from then on; before and after, it comes back with the
    machine."""
    env = machine(box)
    begin(box, env)
    inner(box, "echo plain >~/mine")
    plain = saved(box)
    box.cli("stop", "-t", "0", "m", timeout=60)
    eq(box.cli("checkpoint", "m").rc, 0)  # into layers
    r = box.cli("exec", "-d", "m", "--", "sh", "-c", COUNT, env=env, timeout=170)
    eq(r.rc, 0, r.err)
    counts_on(box)
    inner(box, "echo layered >~/mine; echo x >~/more")
    layered = saved(box)
    inner(box, "echo later >~/mine")
    for point, want in ((layered, "layered\nmine\nmore\n"), (plain, "plain\nmine\n"), (layered, "layered\nmine\nmore\n")):
        box.cli("stop", "-t", "0", "m", timeout=60)
        r = box.cli("restore", "--force", "m", point, env=env, timeout=170)
        eq(r.rc, 0, r.err)
        eq(inner(box, "cat ~/mine; cd; ls m*"), want)
        counts_on(box)
    box.cli("stop", "-t", "0", "m", timeout=60)


@test(who=("user",), timeout=400)
def cut_off_or_full(box):
    """Whoever saves it is killed, or the disk is full: there is no checkpoint of a machine, one line says why, and it goes on,
    with its network."""
    env, far = machine(box), net()
    begin(box, env, "--allow", "ok.test")
    live = box.state / "sandboxes" / "m" / "live"
    p = box.start("checkpoint", "--live", "m")
    until(lambda: (live / ".part" / "memory").exists() or p.poll() is not None)
    p.kill()
    p.wait()
    counts_on(box)
    eq([n for n in folders(box) if n != ".part"], [], "none of it is there")
    mounted = ["mount", "-t", "tmpfs", "-o", f"size=4m,uid={box.account.pw_uid},mode=0700", "none", live]
    if subprocess.run(mounted, stderr=subprocess.DEVNULL).returncode == 0:
        try:
            r = box.cli("checkpoint", "--live", "m", timeout=100)
            refused(r, "the machine was not saved", rc=125)
            eq(folders(box), [])
        finally:
            subprocess.run(["umount", "-l", live], check=True)
        counts_on(box)
    far.clear()
    r = box.cli("exec", "m", "--", "sh", "-c", "curl -sSf -m 100 -o /dev/null http://ok.test/ && echo inside", timeout=120)
    eq((r.rc, r.out, len(far.hits("ok.test", 80))), (0, "inside\n", 1), r.err)
    box.cli("stop", "-t", "0", "m", timeout=60)


def parent(pid):
    return int(re.search(r"^PPid:\t(\d+)", said(Path(f"/proc/{pid}/status")), re.M)[1])


def processes_of(keeper):
    """All below it, and itself."""
    found, todo = [], [keeper]
    while todo:
        found.append(todo.pop())
        for path in Path(f"/proc/{found[-1]}/task").glob("*/children"):
            todo += [int(pid) for pid in said(path).split()]
    return found


def lives(pid):
    return re.search(r"^State:\t[^ZX]", said(Path(f"/proc/{pid}/status")), re.M) is not None


@test(who=("user",), timeout=400)
def keeper_killed_while_it_is_saved(box):
    """Nothing runs on without it, nothing half written is offered, and what was saved before can be had."""
    env = machine(box)
    begin(box, env)
    r = box.cli("checkpoint", "--live", "m", "--json", timeout=170)
    eq(r.rc, 0, r.err)
    point = str(json.loads(r.out)["checkpoint"])
    counts_on(box)
    live = box.state / "sandboxes" / "m" / "live"
    server = next(int(q.name) for q in Path("/proc").glob("[0-9]*")
                  if said(q / "comm") == "vitrine-files\n" and str(box.dir) in said(q / "cmdline"))
    qemu = parent(server)
    keeper = parent(qemu)
    has(said(Path(f"/proc/{keeper}/cmdline")), "keeper")
    p = box.start("checkpoint", "--live", "m")
    until(lambda: (live / ".part").exists() or p.poll() is not None, nap=0.001)
    os.kill(qemu, signal.SIGSTOP)
    eq(p.poll(), None, "it is in the middle of it")
    below = processes_of(keeper)
    eq(len(below) > 4, True, "keeper, link, machine, two who serve its files")
    os.kill(keeper, 9)
    eq(p.wait(60), 125)
    refused_line = p.stderr.read().decode()
    has(refused_line, "vitrine: ")
    eq(refused_line.count("\n"), 1, refused_line)
    until(lambda: not any(lives(pid) for pid in below), 60)
    eq([n for n in folders(box) if n != ".part"], [point], "the one before, and nothing half written")
    points = json.loads(box.cli("checkpoints", "m", "--json").out)["checkpoints"]
    eq([str(c["checkpoint"]) for c in points if c.get("live")], [point])
    r = box.cli("restore", "--force", "m", point, env=env, timeout=170)
    eq(r.rc, 0, r.err)
    counts_on(box)
    box.cli("stop", "-t", "0", "m", timeout=60)
    r = inside(box, env, "echo again", *SMALL, "--name", "m")
    eq((r.rc, r.out), (0, "again\n"), r.err)
    box.cli("stop", "-t", "0", "m", timeout=60)


@test(who=("user",), timeout=400)
def who_serves_files(box):
    """vitrine-files: no new privileges, a filter, no capability; the sandbox ends with it."""
    env = machine(box)
    p = box.start("run", "--engine", "vm-emulated", *SMALL, "--name", "m", "--", "sh", "-c", "echo up; exec sleep 300", env=env)
    eq(p.stdout.readline(), b"up\n")
    servers = [q for q in Path("/proc").glob("[0-9]*") if said(q / "comm") == "vitrine-files\n"
               and str(box.dir) in said(q / "cmdline")]
    eq(len(servers), 2, "the view and the programs")
    for q in servers:
        has(said(q / "status"), "NoNewPrivs:\t1", "Seccomp:\t2", "CapEff:\t0000000000000000")
    os.kill(int(servers[0].name), 9)  # a machine without its files is no machine
    eq((p.wait(60), b"served the machine's files" in p.stderr.read()), (125, True))


if __name__ == "__main__":
    sys.exit(main())
