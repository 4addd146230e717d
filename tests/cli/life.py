#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Beginning and end: names, several sessions, and the death of every process that takes part."""

import os
import pwd
import signal
import subprocess
import sys
import time
from pathlib import Path

from harness import TEST_USER, below, children, describe, eq, has, has_not, is_podmans, main, refused, soon, test


def keeper_of(p):
    """The keeper is the client's child."""
    kids = [int(k) for k in Path(f"/proc/{p.pid}/task/{p.pid}/children").read_text().split()]
    kids = [k for k in kids if describe(k).startswith("vitrine keeper")]
    eq(len(kids), 1, "keepers")
    return kids[0]


def inside_of(p):
    return [pid for pid in below(p.pid) if not is_podmans(pid)]


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] not in "ZX"
    except OSError:
        return False


@test
def a_run_right_after_a_copy(box):
    """The sandbox that was started for the copy is just ending: the run waits for that and starts it again."""
    box.write("f", "x\n")
    eq(box.cli("run", "--name", "box", "--", "true").rc, 0)
    for i in range(30):
        eq(box.cli("cp", "f", f"box:{box.home}/f{i}").rc, 0)
        r = box.cli("run", "--name", "box", "--", "echo", "ran")
        eq((r.rc, r.out), (0, "ran\n"), f"round {i}: {r.err}")


@test
def exec_basics(box):
    p = box.named("box", "cd /tmp; echo mine >note; echo up; exec sleep 30")
    r = box.cli("exec", "box", "--", "sh", "-c", "pwd; cat /tmp/note; echo $VITRINE; id -u; exit 9")
    eq((r.rc, r.err), (9, ""))
    eq(r.out.split()[:3], [str(box.ws), "mine", "box"])
    eq(box.cli("exec", "box", "echo", "no dashes").out, "no dashes\n")
    eq(box.cli("exec", "box", "--", "sh", "-c", "cat", input=b"over a pipe\n").out, "over a pipe\n")
    eq(box.cli("exec", "-e", "A=1", "--env", "MINE", "box", "--", "sh", "-c", "echo $A $MINE",
               env={"MINE": "2"}).out, "1 2\n")
    eq(box.cli("exec", "-w", "/usr", "box", "--", "pwd").out, "/usr\n")
    r = box.cli("exec", "box", "--", "/no/such")
    eq(r.rc, 127)
    r = box.cli("exec", "-w", "/no/such", "box", "--", "true")
    eq(r.rc, 126)
    r = box.cli("exec", "box", "--", "sh", "-c", "kill -9 $$")
    eq(r.rc, 137)
    has(box.cli("exec", "box", "--", "sh", "-c", "grep -h . /proc/[0-9]*/comm").out, "sleep")
    eq(box.stop(p).rc, 143)


def policy_of(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()[38])


@test
def scheduling_policy(box):
    """Commands, keeper and gate have the caller's policy, also when the caller chose one."""
    inside = "cut -d' ' -f41 /proc/self/stat"
    for policy in (os.SCHED_OTHER, os.SCHED_BATCH):
        os.sched_setscheduler(0, policy, os.sched_param(0))
        try:
            eq(box.sh(inside).out, f"{policy}\n", "of a run")
            eq(box.sh(inside, "--allow", "localhost").out, f"{policy}\n", "of a run with a gate")
            p = box.start("run", "--name", "box", "--allow", "localhost", "--", "sh", "-c", "echo up; exec sleep 30")
            eq(p.stdout.readline(), b"up\n")
            eq(box.cli("exec", "box", "--", "sh", "-c", inside).out, f"{policy}\n", "of an exec")
            mine = [pid for pid in below(p.pid) if "vitrine" in describe(pid)]
            eq({describe(pid): policy_of(pid) for pid in mine}, {describe(pid): policy for pid in mine})
            box.stop(p)
            box.cli("rm", "box")
        finally:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


@test
def exec_is_behind_the_same_walls(box):
    box.write(".env", "hush\n")
    p = box.named("box")
    script = ("cat .env; grep -E 'Cap(Eff|Bnd)|Seccomp:' /proc/self/status; env; ls /proc/1/root; "
              "python3 -c 'import ctypes; print(\"no new privileges:\", ctypes.CDLL(None).prctl(39, 0, 0, 0, 0))'")
    r = box.cli("exec", "box", "--", "sh", "-c", script, env={"API_KEY": "k"})
    has_not(r.out, "hush", "API_KEY")
    has(r.out, "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "no new privileges: 1", "Seccomp:\t2")
    box.stop(p)


@test
def exec_unknown(box):
    refused(box.cli("exec", "nobody", "--", "true"), "nobody", rc=125)
    refused(box.cli("exec", "run-12345678", "--", "true"), "run-12345678", rc=125)


@test
def exec_wakes(box):
    """A sandbox that does not run is started for the time of the command."""
    box.ok("echo kept >~/note", "--name", "done")
    r = box.cli("exec", "done", "--", "cat", f"{box.home}/note")
    eq((r.rc, r.out, r.err), (0, "kept\n", ""))
    eq(box.cli("ls", "--format", "{{.Name}} {{.Status}}").out, "done stopped\n")


@test
def exec_many_at_once(box):
    p = box.named("box")
    runs = [box.start("exec", "box", "--", "sh", "-c", f"sleep 0.2; echo {i}; exit {i}") for i in range(12)]
    for i, r in enumerate(runs):
        got = box.finish(r)
        eq((got.rc, got.out), (i, f"{i}\n"), got.err)
    box.stop(p)


@test
def exec_ends_with_a_run(box):
    """A run without a name ends with its command, and takes along what joined it; whose end is heard of first is chance."""
    for _ in range(3):
        p = box.start("run", "--", "sh", "-c", "echo up; read x", stdin=subprocess.PIPE)
        eq(p.stdout.readline(), b"up\n")
        soon(lambda: box.cli("ls", "--all", "-q").out, "it can be found")
        name = box.cli("ls", "--all", "-q").out.strip()
        e = box.start("exec", name, "--", "sh", "-c", "echo in; exec sleep 30")
        eq(e.stdout.readline(), b"in\n")
        p.stdin.write(b"\n")
        p.stdin.close()
        eq(p.wait(5), 0)
        r = box.finish(e)
        eq(r.rc, 137)
        has(r.err, "vitrine: ended: ")
        soon(lambda: not box.cli("ls", "--all", "-q").out, "it is gone")


@test
def named_goes_on_with_its_last_session(box):
    p = box.named("box", "echo up; read x; exit 4", stdin=subprocess.PIPE)
    e = box.start("exec", "box", "--", "sh", "-c", "echo in; read x; echo out; exit 5", stdin=subprocess.PIPE)
    eq(e.stdout.readline(), b"in\n")
    p.stdin.write(b"\n")
    p.stdin.close()
    eq(p.wait(5), 4)
    eq(box.cli("ls", "--format", "{{.Name}} {{.Status}} {{.Sessions}}").out, "box running 1\n")
    r = box.finish(e, b"\n")
    eq((r.rc, r.out), (5, "out\n"))
    soon(lambda: box.cli("ls", "--format", "{{.Status}}").out == "stopped\n", "it ends with the last one")


@test
def second_run_joins(box):
    p = box.named("box")
    r = box.run("--name", "box", "--", "sh", "-c", "cat /proc/[0-9]*/comm; exit 3")
    eq((r.rc, "sleep" in r.out.split()), (3, True), r.err)
    r = box.run("--json", "--name", "box", "--", "true")
    eq((r.rc, r.json["reason"], r.json["name"], r.json["session"]), (0, "exit", "box", 3))
    r = box.run("--name", "box", "--read", "/opt", "--", "true")
    refused(r, "'--read=/opt'", "is running", "vitrine stop box", rc=125)
    eq(box.stop(p).rc, 143)


@test(timeout=60)
def name_is_free_at_once(box):
    for i in range(15):
        eq(box.ok(f"echo {i}", "--name", "box"), f"{i}\n")


@test
def race_for_a_name(box):
    """Whoever comes first starts it, the others join; all are in one sandbox."""
    runs = [box.start("run", "--name", "box", "--", "sh", "-c", "echo $$ >>~/pids; sleep 1; sort -n ~/pids | uniq -d")
            for _ in range(6)]
    for r in [box.finish(r) for r in runs]:
        eq((r.rc, r.out, r.err), (0, "", ""))
    eq(len(box.ok("cat ~/pids", "--name", "box").split()), 6)


@test
def side_by_side(box):
    """Two runs in one directory see each other's files and not each other's processes."""
    a = box.start("run", "--", "sh", "-c", "echo a >a; echo up; while [ ! -e b ]; do sleep 0.01; done; cat b; "
                  "set -- /proc/[0-9]*; echo $#")
    eq(a.stdout.readline(), b"up\n")
    eq(box.ok("cat a; echo b >b.new; mv b.new b; sleep 0.3"), "a\n")
    r = box.finish(a)
    eq(r.rc, 0, r.err)
    out = r.out.split()
    eq(out[0], "b")
    if int(out[1]) > 5:
        raise AssertionError(f"{out[1]} processes inside")


@test
def many_side_by_side(box):
    runs = [box.start("run", "--", "sh", "-c", f"echo {i} >f{i}; cat f{i}") for i in range(10)]
    for i, p in enumerate(runs):
        r = box.finish(p)
        eq((r.rc, r.out, r.err), (0, f"{i}\n", ""))


@test
def client_killed(box):
    """The session detaches: the command goes on, and can be reached by its name."""
    p = box.named("box", "echo up; i=0; while [ $i -lt 200 ]; do echo $i >tick; i=$((i+1)); sleep 0.05; done")
    p.send_signal(signal.SIGKILL)
    eq(p.wait(5), -9)
    soon(lambda: (box.ws / "tick").exists(), "the command works")
    before = box.read("tick")
    soon(lambda: (box.ws / "tick").read_text() not in ("", before), "the command goes on")
    eq(box.cli("exec", "box", "--", "echo", "reached").out, "reached\n")
    keeper = [c for c in children() if describe(c).startswith("vitrine keeper")]
    eq(len(keeper), 1)
    os.kill(keeper[0], signal.SIGTERM)
    soon(lambda: not is_alive(keeper[0]), "the keeper ends when asked")


@test
def client_killed_and_the_command_ends(box):
    p = box.named("box", "echo up; sleep 0.5; echo done >done")
    p.send_signal(signal.SIGKILL)
    p.wait(5)
    soon(lambda: (box.ws / "done").exists(), "the command ends by itself")


@test
def client_hung_up(box):
    """Without a name a hang-up is the command's to decide about; one that ignores it goes on."""
    p = box.start("run", "--", "sh", "-c", "trap '' HUP; echo up; for i in $(seq 30); do sleep 0.05; done; "
                  "echo late >late")
    eq(p.stdout.readline(), b"up\n")
    p.send_signal(signal.SIGHUP)
    eq(p.wait(8), 0)
    eq(box.read("late"), "late\n")


@test
def named_client_hung_up(box):
    """A sandbox that lasts goes on without its terminal; the command hears nothing of it."""
    p = box.named("box", "trap 'echo hup >hup' HUP; echo up; for i in $(seq 20); do sleep 0.05; done; echo late >late")
    p.send_signal(signal.SIGHUP)
    eq(p.wait(8), 0)
    eq((box.ws / "late").exists(), False)
    soon(lambda: (box.ws / "late").exists(), "the command goes on")
    eq((box.ws / "hup").exists(), False)


@test
def keeper_killed(box):
    """Everything inside is gone within a second, and the client says why."""
    p = box.named("box", "(setsid sleep 40 &) ; sleep 41 & echo up; exec sleep 42")
    soon(lambda: len(below(p.pid)) >= 5, "all of it runs")
    inside, keeper = inside_of(p), keeper_of(p)
    os.kill(keeper, signal.SIGKILL)
    soon(lambda: not any(is_alive(x) for x in inside), "everything inside is dead", 1.0)
    r = box.finish(p)
    eq(r.rc, 125)
    has(r.err, "keeper died")
    # The name is free again, and what the dead one left is no obstacle.
    eq(box.ok("echo again", "--name", "box"), "again\n")


@test
def keeper_killed_while_unnamed(box):
    p = box.start("run", "--", "sh", "-c", "echo up; exec sleep 40")
    eq(p.stdout.readline(), b"up\n")
    inside = inside_of(p)
    os.kill(keeper_of(p), signal.SIGKILL)
    soon(lambda: not any(is_alive(x) for x in inside), "everything inside is dead", 1.0)
    eq(box.finish(p).rc, 125)
    # What it could not clean up the next one does.
    eq(box.ok("echo next"), "next\n")


@test
def keeper_asked_to_end(box):
    p = box.named("box")
    os.kill(keeper_of(p), signal.SIGTERM)
    r = box.finish(p)
    eq(r.rc, 143)
    has(r.err, "the sandbox was stopped")


@test
def init_killed(box):
    p = box.named("box")
    init = [k for k in below(p.pid) if describe(k) in ("vitrine init", "/.vitrine/init")]
    if not init:  # it is a process of another kernel, and that one is a process here
        init = [k for k in below(p.pid) if describe(k).startswith(("runsc-sandbox ", "/usr/bin/qemu-system-x86_64 "))]
    eq(len(init), 1, str([describe(k) for k in below(p.pid)]))
    inside = below(init[0])
    os.kill(init[0], signal.SIGKILL)
    soon(lambda: not any(is_alive(x) for x in inside), "everything inside is dead", 1.0)
    eq(box.finish(p).rc, 125)


@test
def first_command_ends_the_rest(box):
    t0 = time.monotonic()
    r = box.sh("(setsid sh -c 'trap \"\" TERM HUP; sleep 40' &); sleep 41 & exit 6")
    eq(r.rc, 6)
    if time.monotonic() - t0 > 3:
        raise AssertionError("took too long")


@test
def secrets_are_not_on_the_command_line(box):
    """What others can read of our processes with ps says nothing of what they were told."""
    p = box.start("run", "--name", "box", "-e", "TOKEN=topsecret", "--", "sh", "-c", "echo up; exec sleep 30",
                  env={"CALLER_KEY": "callersecret"})
    eq(p.stdout.readline(), b"up\n")
    for pid in below(p.pid):
        if describe(pid).startswith("vitrine"):
            has_not(describe(pid), "topsecret")
            try:
                environ = Path(f"/proc/{pid}/environ").read_bytes()
            except PermissionError:
                continue
            has_not(environ.decode(errors="replace"), "callersecret", "topsecret")
    box.stop(p)


@test
def state_is_private(box):
    box.ok("true", "--name", "box")
    eq(box.cli("logs", "box").rc, 0)  # when it answers, all is written down
    for p in (box.state, box.state / "sandboxes", box.state / "journal"):
        eq(p.stat().st_mode & 0o077, 0, str(p))


@test(who=["root"])
def others_cannot_exec(box):
    """A sandbox is its user's alone, whatever the modes of the directories say."""
    p = box.named("box")
    for d in [box.dir / "state", *(box.dir / "state").rglob("*")]:
        if not d.is_symlink() and "skel" not in d.parts:
            os.chmod(d, 0o777)
    a = pwd.getpwnam(TEST_USER)
    for d in (box.dir, box.home, box.ws):
        os.chmod(d, 0o755)
    e = subprocess.run([str(box.program), "exec", "box", "--", "id"], env=box.env(), cwd=box.ws, user=a.pw_uid,
                       group=a.pw_gid, extra_groups=[], capture_output=True, text=True, timeout=10)
    eq((e.returncode != 0, e.stdout), (True, ""), e.stderr)
    box.stop(p)


@test
def no_control_group_is_left(box):
    name = f"cg{os.getpid()}"
    box.ok("true", "--name", name, "--memory", "256m,optional", "--cpus", "1,optional")
    eq([str(d) for d in Path("/sys/fs/cgroup").glob(f"**/vitrine-{name}-*")], [])


@test
def state_directory_unwritable(box):
    blocked = box.dir / "blocked"
    blocked.write_text("a file, not a directory\n")
    r = box.run("--", "true", env={"XDG_STATE_HOME": str(blocked)})
    refused(r, "blocked", rc=125)


@test
def strict_umask(box):
    """What the state directory holds for the inside is made for the inside, and the command keeps its umask."""
    argv = ["sh", "-c", "umask 077; exec \"$0\" run -- sh -c 'umask; mktemp; ls /etc >/dev/null'", str(box.program)]
    r = box.finish(box.popen(argv, env={"XDG_STATE_HOME": str(box.dir / "state3")}, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    eq((r.rc, r.out[:14]), (0, "0077\n/tmp/tmp."), r.err)


@test
def two_states(box):
    """Names are per state directory, that is: per user."""
    p = box.named("box")
    r = box.run("--name", "box", "--", "echo", "other", env={"XDG_STATE_HOME": str(box.dir / "state2")})
    eq((r.rc, r.out), (0, "other\n"), r.err)
    box.stop(p)


if __name__ == "__main__":
    sys.exit(main())
