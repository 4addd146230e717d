#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Podman's client and a service elsewhere: a real `podman system service` of an ordinary user, reached over its socket only. The
same walls, verbs and ends as behind podman itself; and a service that is root's, or has other files, is refused."""

import os
import re
import signal
import sys
import tempfile
import time
from pathlib import Path

from harness import Skip, eq, has, has_not, lasting, main, refused, soon, test

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import daemons  # noqa: E402
import ground  # noqa: E402


class Service:
    """One for each test: nothing of one is found by the next."""

    def __init__(self, box, **kw):
        self.dir = Path(tempfile.mkdtemp(prefix="v-"))
        self.dir.chmod(0o755)
        self.host = daemons.podman(self.dir / "p", kw.pop("account", box.account), **kw)
        if self.host is None:
            self.end()
            raise Skip("no podman service can be started")
        lasting.update(p.pid for p in daemons.started)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        daemons.stop()
        ground.remove_tree(self.dir)

    def env(self, **more):
        return {"CONTAINER_HOST": self.host, **more}

    def left(self):
        return daemons.ask_podman(self.host, "ps", "-aq").stdout


def process(pattern):
    """The pids of those whose words have this, as they were started."""
    found = []
    for p in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if re.search(pattern, p.read_bytes().replace(b"\0", b" ").decode(errors="replace")):
                found.append(int(p.parent.name))
        except OSError:
            pass
    return found


@test(who=("user",), timeout=90)
def same_walls(box):
    """Status, stdio, ids, what is hidden and protected; and the container is gone afterwards."""
    box.write(".env", "SECRET=1\n")
    box.write(".vscode/tasks.json", "{}\n")
    with Service(box) as s:
        r = box.sh("cat; id -u; cat .env; echo x >.vscode/tasks.json; touch /usr/x; echo made >made; "
                   "grep -E 'CapEff|CapBnd|Seccomp:' /proc/self/status; cat /proc/self/uid_map; ls /sys/class/net; "
                   "for d in /tmp /var/tmp ~; do echo kept >$d/f && cat $d/f; done; exit 7",
                   "--engine", "podman", input=b"in\n", env=s.env())
        eq(r.rc, 7, r.err)
        has(r.out, f"in\n{box.ws.stat().st_uid}\n", "CapEff:\t" + "0" * 16, "CapBnd:\t" + "0" * 16, "Seccomp:\t2", "kept\n" * 3)
        has_not(r.out, "SECRET", "4294967295", "eth", "tap")
        eq((box.read("made"), box.read(".vscode/tasks.json")), ("made\n", "{}\n"))
        eq((box.ws / "made").stat().st_uid, box.ws.stat().st_uid)
        eq(box.run("--engine", "podman", "--", "no-such-program", env=s.env()).rc, 127)
        soon(lambda: s.left() == "", "no container is left")
        eq((box.state / "podman").exists(), False, "nothing of a podman here was made")


@test(who=("user",), timeout=90)
def every_way_to_name_a_service(box):
    """The two variables, and --engine podman-remote for the connection that the client takes by itself: a Podman machine's."""
    with Service(box) as s:
        conf = box.config / "containers" / "containers.conf"
        conf.parent.mkdir(parents=True)
        conf.write_text('[engine]\nactive_service = "there"\n[engine.service_destinations.there]\n'
                        f'uri = "{s.host}"\n[engine.service_destinations.nowhere]\nuri = "unix://{s.dir}/no"\n')
        box.own(box.config)
        for engine, env in (("podman", s.env()), ("podman", {"CONTAINER_CONNECTION": "there"}), ("podman-remote", {}),
                            ("podman-remote", s.env())):
            r = box.run("--engine", engine, "--json", "--", "echo", "up", env=env)
            eq((r.rc, r.out.split("\n")[0]), (0, "up"), f"{engine} {env}: {r.err}")
        has(box.cli("explain", "--engine", "podman", "--", "true", env=s.env()).out, "podman-remote")
        refused(box.run("--engine", "podman", "--", "true", env={"CONTAINER_CONNECTION": "nowhere"}), "podman --remote",
                "does 'podman --remote info' work?", rc=125)


@test(who=("user",), timeout=90)
def every_byte(box):
    """What is attached is bytes: also those that a terminal would take for "detach", one by one."""
    data = os.urandom(3 << 20)
    with Service(box) as s:
        r = box.sh("cat", "--engine", "podman", input=data, env=s.env())
        eq((r.rc, r.raw_out == data), (0, True), r.err)
        p = box.start("run", "--engine", "podman", "--", "od", "-An", "-tx1", stdin=-1, env=s.env())
        for byte in (b"\x10", b"\x11", b"\n"):
            p.stdin.write(byte)
            p.stdin.flush()
            time.sleep(0.3)
        eq(box.finish(p).out, " 10 11 0a\n")


@test(who=("user",), timeout=120)
def many_at_once_lose_nothing(box):
    """A busy service drops what is on its way when a container ends: ours ends when its last word was heard."""
    lines = "".join(f"line {i}\n" for i in range(1, 41))
    with Service(box) as s:
        eq(box.run("--engine", "podman", "--", "true", env=s.env()).rc, 0)
        for _ in range(4):
            started = [box.start("run", "--engine", "podman", "--", "sh", "-c", "for i in $(seq 1 40); do echo line $i; done; exit 3",
                                 env=s.env()) for _ in range(8)]
            for p in started:
                r = box.finish(p)
                eq((r.rc, r.out), (3, lines), r.err)


@test(who=("user",), timeout=90)
def terminal_exec_and_copies(box):
    with Service(box) as s:
        t = box.term("run", "--engine", "podman", "--", "sh", "-c", "stty size; read x; echo got $x", rows=31, cols=97, env=s.env())
        t.expect("31 97", 20)
        t.send("hello\r")
        t.expect("got hello", 12)
        eq(t.wait(12), 0)
        t.close()
        p = box.start("run", "--engine", "podman", "--name", "live", "--", "sh", "-c", "echo up; exec sleep 60", env=s.env())
        eq(p.stdout.readline(), b"up\n")
        r = box.cli("exec", "live", "--", "sh", "-c", "echo inside >/tmp/f; cat /tmp/f; exit 9")
        eq((r.rc, r.out), (9, "inside\n"))
        eq(box.cli("cp", "live:/tmp/f", "f").rc, 0)
        eq(box.read("f"), "inside\n")
        eq(box.cli("stop", "live").rc, 0)
        eq(box.finish(p).rc, 143)
        soon(lambda: s.left() == "", "no container is left")
        eq(box.cli("rm", "live").rc, 0)


@test(who=("user",), timeout=90)
def nothing_is_left_of_what_was_killed(box):
    """The keeper, whose end is told to the service even when nothing inside can hear of it; and the client, with whom the
    link ends."""
    with Service(box) as s:
        for name, victim, is_still in (("k", "keeper", False), ("q", "keeper", True), ("c", "client", False)):
            p = box.start("run", "--engine", "podman", "--name", name, "--", "sh", "-c", "echo up; exec sleep 6543", env=s.env())
            eq(p.stdout.readline(), b"up\n")
            soon(lambda: len(process(r"^sleep 6543 $")) == 1, "the shell has become it")
            inside = process(r"^sleep 6543 $")
            if is_still:
                init = int(re.search(r"^PPid:\t(\d+)", Path(f"/proc/{inside[0]}/status").read_text(), re.M)[1])
                box.host("kill", "-STOP", str(init))
            words = rf"^vitrine keeper {name}\s*$" if victim == "keeper" else rf"podman --remote run .*vitrine-{name}-"
            found = process(words)
            eq(len(found), 1, words)
            os.kill(found[0], signal.SIGKILL)
            soon(lambda: not Path(f"/proc/{inside[0]}").exists(), f"{name}: what was inside is dead", 20)
            soon(lambda: s.left() == "", f"{name}: no container is left", 20)
            box.stop(p)
            eq(box.cli("rm", name).rc, 0)


@test(who=("user",), timeout=90)
def replaced_on_the_host(box):
    box.write(".env", "one\n")
    with Service(box) as s:
        p = box.start("run", "--engine", "podman", "--", "sh", "-c", "echo up; exec sleep 30", env=s.env())
        eq(p.stdout.readline(), b"up\n")
        box.host("sh", "-c", "sleep 0.3; echo two >.env.new && mv .env.new .env")
        r = box.finish(p)
        eq(r.rc, 125)
        has(r.err, "cannot cover it again")


@test(who=("user",), timeout=90)
def limits_that_are_not_ours_to_keep(box):
    """Our control groups do not hold what a service starts: a limit is watched, where that is accepted, or refused."""
    eat = "import time; x = bytearray(b'x') * (200 << 20); time.sleep(20)"
    with Service(box) as s:
        refused(box.run("--engine", "podman", "--memory", "64m", "--", "true", env=s.env()), "limit memory",
                "not in our control groups", ",optional", rc=125)
        refused(box.run("--engine", "podman", "--cpus", "1", "--", "true", env=s.env()), "limit cpus", rc=125)
        r = box.run("--engine", "podman", "--memory", "64m,optional", "--json", "--", "python3", "-c", eat, env=s.env())
        eq(r.json["reason"], "memory", r.err)


@test(who=("user",), timeout=120)
def another_machine(box):
    """What the other side lacks is refused; and so is a directory that only has the same name."""
    if os.geteuid() != 0:
        raise Skip("another view of the files needs root")
    names = "must have this machine's files under the same names"
    for cover, says in ((box.dir, "no such file"), (box.ws.parent, "no such file"), (box.ws, "another directory")):
        with Service(box, cover=[cover]) as s:
            r = box.run("--engine", "podman", "--", "sh", "-c", "echo ran; touch made", env=s.env())
            eq((r.rc, r.out), (125, ""), f"{cover}: {r.err}")
            has(r.err, says, names)
            soon(lambda: s.left() == "", "no container is left")
    eq(list(box.ws.iterdir()), [])


@test(who=("user",), timeout=60)
def a_service_of_roots_is_refused(box):
    if os.geteuid() != 0:
        raise Skip("needs root")
    with Service(box, account=None) as s:
        os.chmod(s.dir / "p" / "run", 0o755)
        os.chmod(s.host.removeprefix("unix://"), 0o666)
        refused(box.run("--engine", "podman", "--", "true", env=s.env()), "cannot honour: mapped ids", "rootless", "false", rc=125)
        eq(daemons.ask_podman(s.host, "images", "-q").stdout, "", "nothing was loaded")


@test(who=("root",))
def root_is_told_what_to_do(box):
    """In docker's words: what a service shows is where it is, and no id-mapped tree of ours is."""
    refused(box.run("--engine", "podman", "--", "true", env={"CONTAINER_HOST": "unix:///nonexistent"}), "podman-remote",
            "root's ids mapped away", "--user NAME", rc=125)


if __name__ == "__main__":
    sys.exit(main())
