#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Other walls: each engine that is here runs a command with its status, stdio, terminal, limits and exec, and what it
cannot honour it refuses by name. The other suites take --engine NAME; this one looks at every engine a little."""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from harness import TEST_USER, Skip, account_home, as_account, eq, has, lasting, main, refused, soon, test

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import daemons  # noqa: E402
import ground  # noqa: E402
from tiny import tiny  # noqa: E402

LOCAL = ("bwrap", "crun", "runc", "gvisor")
QUICK = ("bwrap", "crun")


def said(path):
    try:
        return path.read_text()
    except OSError:
        return ""


def is_below(proc, pid):
    """Is this process a descendant of that one?"""
    for _ in range(8):
        m = re.search(r"^PPid:\t(\d+)", said(proc / "status"), re.M)
        if not m or m[1] in ("0", "1"):
            return False
        if int(m[1]) == pid:
            return True
        proc = Path("/proc") / m[1]
    return False


def each(box, names=LOCAL):
    here = {e["name"]: e for e in json.loads(box.cli("engines", "--json", "--quick").out)["engines"]}
    found = [n for n in names if here[n]["here"]]
    if not found:
        raise Skip("no other engine is installed")
    return found


@test(who=("user",), timeout=60)
def status_and_stdio(box):
    for name in each(box):
        r = box.sh("cat; echo err >&2; exit 7", "--engine", name, input=b"in\n")
        eq((r.rc, r.out, r.err), (7, "in\n", "err\n"), name)
        eq(box.run("--engine", name, "--", "no-such-program").rc, 127, name)


@test(who=("user",), timeout=60)
def a_plan_that_does_not_fit_the_link_at_once(box):
    """The first command goes with the plan; when that is longer than may be on the way, it waits until all of it is out."""
    many = [w for i in range(40) for w in ("-e", f"V{i}=" + "x" * 4000)]
    for name in each(box):
        r = box.sh("echo ${#V0} ${#V39}; cat", "--engine", name, *many, input=b"in\n")
        eq((r.rc, r.out), (0, "4000 4000\nin\n"), f"{name}: {r.err}")


@test(who=("user",), timeout=60)
def same_walls(box):
    box.write(".env", "SECRET=1\n")
    for name in each(box):
        r = box.sh("id -u; cat .env; touch /usr/x; echo made >made; grep -c . /proc/net/dev; "
                   "grep -E 'CapEff|CapBnd|Seccomp:' /proc/self/status", "--engine", name)
        has(r.out, str(box.account.pw_uid if box.account else ""), "CapEff:\t0000000000000000")
        has(r.out, "CapBnd:\t0000000000000000", "Seccomp:\t2")
        if "SECRET" in r.out:
            raise AssertionError(f"{name}: the hidden file was read")
        eq(box.read("made"), "made\n", name)


@test(who=("user",), timeout=60)
def terminal_and_size(box):
    for name in each(box):
        t = box.term("run", "--engine", name, "--", "sh", "-c", "stty size; read x; echo got $x", rows=31, cols=97)
        t.expect("31 97", 12)
        t.send("hello\r")
        t.expect("got hello", 12)
        eq(t.wait(12), 0, name)
        t.close()


@test(who=("user",), timeout=60)
def listings_are_of_now(box):
    """Not of the last time that somebody inside looked: the first command is counted at once, and so is the second."""
    for name in each(box):
        p = box.start("run", "--engine", name, "--name", "l-" + name, "--", "sh", "-c", "echo up; sleep 60 & wait")
        eq(p.stdout.readline(), b"up\n", name)
        soon(lambda: json.loads(box.cli("ps", "--json").out)[0]["processes"] >= 1, f"{name}: it is counted", 0.4)
        e = box.start("exec", "l-" + name, "--", "sh", "-c", "sleep 60 & echo in; wait")
        eq(e.stdout.readline(), b"in\n", name)
        rows = json.loads(box.cli("ps", "--json").out)
        eq([r["processes"] >= 1 for r in rows], [True, True], f"{name}: {rows}")
        eq(json.loads(box.cli("stats", "--json").out)[0]["processes"] >= 4, True, name)
        box.stop(e)
        box.stop(p)


SIZES = """
import os, sys
print("up", flush=True)
while line := sys.stdin.readline():
    size = os.get_terminal_size(0)
    print(f"{line.strip()} {size.columns} {size.lines}.", flush=True)
"""


@test(who=("user",), timeout=60)
def the_size_is_there_before_what_was_typed(box):
    """Who types sets the size of the terminal; what reads the line finds it so, though both go over the link."""
    for name in each(box, QUICK):
        a = box.term("run", "--engine", name, "--name", "v-" + name, "--", "/usr/bin/python3", "-c", SIZES)
        a.expect("up", 12)
        b = box.term("attach", "v-" + name, rows=30, cols=100)
        b.expect("up", 12)
        for i in range(100):
            for who, size in ((b, "100 30"), (a, "80 24")):
                who.send(f"turn{i}\r")
                for t in (a, b):
                    eq(t.expect(rf"turn{i} ([0-9 ]+)\.")[1].decode(), size, f"{name}, turn {i}")
        a.send("\x04")
        eq((a.wait(12), b.wait(12)), (0, 0), name)
        a.close()
        b.close()


@test(who=("user",), timeout=60)
def exec_joins(box):
    for name in each(box):
        p = box.start("run", "--engine", name, "--name", "b-" + name, "--", "sh", "-c", "echo up; exec sleep 30")
        eq(p.stdout.readline(), b"up\n", name)
        r = box.cli("exec", "b-" + name, "--", "sh", "-c", "echo inside; exit 9")
        eq((r.rc, r.out), (9, "inside\n"), name)
        box.stop(p)


@test(who=("user",), timeout=60)
def time_is_over(box):
    for name in each(box):
        r = box.sh("sleep 30", "--engine", name, "--time", "1s", "--json")
        eq((r.rc, r.json["reason"]), (124, "time"), name)


@test(who=("user",), timeout=60)
def what_decodes_is_confined(box):
    """vitrine-link reads what comes from inside: no new privileges, a filter, and nothing of the host but its pipes."""
    p = box.start("run", "--engine", each(box)[0], "--", "sh", "-c", "echo up; exec sleep 30")
    eq(p.stdout.readline(), b"up\n")
    links = [q for q in Path("/proc").glob("[0-9]*") if said(q / "comm") == "vitrine-link\n" and is_below(q, p.pid)]
    eq(len(links), 1)
    status = said(links[0] / "status")
    has(status, "Seccomp:\t2", "NoNewPrivs:\t1")
    box.stop(p)


@test(who=("user",), timeout=60)
def replaced_on_the_host(box):
    """None of them can cover a name again: rather than leave it bare, the sandbox ends."""
    for name in [n for n in each(box) if n != "gvisor"]:
        box.write(".env", "one\n")
        p = box.start("run", "--engine", name, "--", "sh", "-c", "echo up; exec sleep 30")
        eq(p.stdout.readline(), b"up\n", name)
        box.host("sh", "-c", "sleep 0.3; echo two >.env.new && mv .env.new .env")
        r = box.finish(p)
        eq(r.rc, 125, name)
        has(r.err, "cannot cover it again")


@test(who=("user",), timeout=60)
def a_link_is_not_covered_but_refused(box):
    """A tool would follow it, and show inside what it leads to."""
    (box.dir / "outside").mkdir()
    (box.dir / "outside" / "secret").write_text("canary\n")
    (box.ws / ".vscode").symlink_to(box.dir / "outside")
    box.own(box.dir / "outside")
    for name in each(box):
        r = box.sh("cat .vscode/secret", "--engine", name)
        eq((r.rc, r.out), (125, ""), name)
        has(r.err, "symbolic link", name)


# Root's sandboxes have an id outside that nothing on any host belongs to, as behind the native engine. Podman's own place is
# then in memory, so that nothing has to be prepared for it.
FOR_ROOT = (*LOCAL, "podman")
OURS = {"vitrine-keeper", "vitrine-link", "vitrine-mind"}


def below(pid):
    """Every process that descends from this one, by its number: name and ids."""
    found = {}
    for q in Path("/proc").glob("[0-9]*"):
        if is_below(q, pid):
            found[int(q.name)] = (said(q / "comm").strip(), re.findall(r"^[UG]id:\t(.*)", said(q / "status"), re.M))
    return found


def is_alive(pid):
    return said(Path(f"/proc/{pid}/stat")).rpartition(")")[2][1:2] not in ("", "Z", "X")


def mounts(box):
    """Those of this test; others mount things meanwhile."""
    return [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(box.dir) in line or "vitrine" in line]


@test(who=("root",), timeout=60)
def root_is_somebody_else_inside(box):
    """As behind the native engine: uid 1000 inside and nobody outside, files that it makes are root's, what is hidden
    and protected is so, and root's other files are out of reach though what shows the view was started by root."""
    box.write(".env", "SECRET=1\n")
    box.write("vault/inner", "SECRET=2\n")
    box.write(".vscode/tasks.json", "{}\n")
    (box.home / "private").mkdir(mode=0o700)
    (box.home / "private" / "f").write_text("canary\n")
    (box.home / "granted").mkdir(mode=0o700)
    (box.home / "granted" / "f").write_text("granted\n")
    for name in each(box, FOR_ROOT):
        r = box.sh(f"id -u; cat .env vault/inner; chmod 755 vault; ls vault; cat {box.home}/private/f; "
                   f"echo x >.vscode/tasks.json; cat {box.home}/granted/f; "
                   f"echo x >{box.home}/granted/f; grep -E 'CapEff|CapBnd' /proc/self/status; cat; "
                   "mkdir -p d && echo made >d/made; exit 7",
                   "--engine", name, "--hide", "vault", "--read", str(box.home / "granted"), input=b"in\n")
        eq(r.rc, 7, f"{name}: {r.err}")
        has(r.out, "1000\ngranted\n", "CapEff:\t" + "0" * 16, "CapBnd:\t" + "0" * 16, "in\n")
        eq([w in r.out for w in ("SECRET", "inner\n", "canary")], [False] * 3, name)
        eq(box.read(".vscode/tasks.json"), "{}\n", name)
        made = [(p.stat().st_uid, p.stat().st_gid) for p in (box.ws / "d", box.ws / "d" / "made")]
        eq((made, box.read("d/made")), ([(0, 0), (0, 0)], "made\n"), name)
        box.host("rm", "-r", "d")


@test(who=("root",), timeout=60)
def nothing_of_roots_is_left_of_it(box):
    """No process behind the walls has an id of root's, the tool that makes them neither; the host's mounts are what they
    were; and who kills the keeper ends all of it."""
    for name in each(box, FOR_ROOT):
        before = mounts(box)
        p = box.start("run", "--engine", name, "--name", "r-" + name, "--", "sh", "-c", "echo up; exec sleep 60")
        eq(p.stdout.readline(), b"up\n", name)
        eq(box.cli("exec", "r-" + name, "--", "sh", "-c", "id -u; exit 9").out, "1000\n", name)
        all_ = below(p.pid)
        ours = [n for n, (comm, ids) in all_.items() if "0" in " ".join(ids).split()]
        eq({all_[n][0] for n in ours} <= OURS, True, f"{name}: {all_}")
        eq(any(re.fullmatch(r"(1888\d{6})(\s\1){7}", "\t".join(ids)) is not None for _, ids in all_.values()), True, f"{name}: {all_}")
        eq(mounts(box), before, name)
        link = next(n for n, (comm, _) in all_.items() if comm == "vitrine-link")
        keeper = int(re.search(r"^PPid:\t(\d+)", said(Path(f"/proc/{link}/status")), re.M)[1])
        box.host("kill", "-9", str(keeper))
        soon(lambda: not any(is_alive(n) for n in all_), f"{name}: nothing of it lives", 20)
        eq(mounts(box), before, name)
        box.stop(p)
        eq(box.cli("rm", "r-" + name).rc, 0, name)


@test(who=("root",))
def files_that_cannot_be_mapped(box):
    """As behind the native engine: refused, with what would help."""
    script = 'mount --make-rprivate / && mount -t ramfs none "$1" && cd "$1" && shift && exec "$@"'
    for name in [n for n in each(box, FOR_ROOT) if n in (*QUICK, "podman")]:
        p = box.popen(["unshare", "-m", "sh", "-c", script, "sh", box.ws, box.program, "run", "--engine", name, "--", "true"],
                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        refused(box.finish(p), "cannot map ids", "--user NAME", rc=125)


@test(who=("root",))
def whom_root_cannot_use_says_so(box):
    refused(box.run("--engine", "docker", "--", "true"), "docker", "root's ids mapped away", "--user NAME", rc=125)
    rows = {e["name"]: e for e in json.loads(box.cli("engines", "--json").out)["engines"]}
    for name, row in rows.items():
        if row["steps"]["root's ids mapped away"] != "yes":
            eq(row["works"], False, name)
    has(box.cli("engines").out, "not root: for an ordinary user, or for root with --user NAME")


DOCKERS = 55155  # a group that no host has


@test(who=("root",), timeout=120)
def what_root_is_told_works_with_docker(box):
    """--user NAME: the daemon's socket is for a group, as packages have it, and NAME is a member, or is not."""
    place = Path(tempfile.mkdtemp(prefix="v-"))  # sockets of its own lie deep below, and their names must be short
    place.chmod(0o755)
    host = daemons.docker(place)
    if host is None:
        ground.remove_tree(place)
        raise Skip("no docker daemon can be started")
    lasting.update(p.pid for p in daemons.started)
    a, home = account_home(box)
    sock = Path(host.removeprefix("unix://"))
    sock.chmod(0o660)
    os.chown(sock, 0, DOCKERS)
    argv = [box.program, "run", "--engine", "docker", "--user", TEST_USER, "--", "sh", "-c", "id -u; id -g; echo x >made"]

    def run(member):
        words = as_account(box, argv, f"dockers:x:{DOCKERS}:{member}")
        return box.finish(box.popen(words, cwd=home / "proj", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, env={"DOCKER_HOST": host}))

    try:
        refused(run("root"), "docker does not take the image", "does 'docker info' work?", rc=125)
        r = run(f"root,{TEST_USER}")
        eq((r.rc, r.out), (0, f"{a.pw_uid}\n{a.pw_gid}\n"), r.err)
        made = (home / "proj" / "made").stat()
        eq((made.st_uid, made.st_gid), (a.pw_uid, a.pw_gid))
        left = subprocess.run(["docker", "--host", host, "ps", "-aq"], capture_output=True, text=True).stdout
        eq(left, "", "containers that were not removed")
    finally:
        daemons.stop()
        ground.remove_tree(place)


@test(who=("user",), timeout=90)
def files_go_in_and_out(box):
    """Over the link, as bytes: whole trees, modes, inner links; what is no plain file stays where it is. lasting.py has
    the attacks, which run behind each engine with --engine."""
    out = box.home / "out"
    (out / "in" / "below").mkdir(parents=True)
    (out / "in" / "below" / "two").write_text("2\n")
    big = bytes(range(256)) * 12000
    (out / "in" / "big").write_bytes(big)
    (out / "in" / "big").chmod(0o750)
    box.own(box.home)
    for name in each(box):
        p = box.start("run", "--engine", name, "--name", "f-" + name, "--", "sh", "-c",
                      "ln -s /etc/passwd /tmp/away; : >/tmp/empty; echo up; exec sleep 60")
        eq(p.stdout.readline(), b"up\n", name)
        r = box.cli("cp", str(out / "in"), f"f-{name}:/tmp/in")
        eq((r.rc, r.err), (0, ""), name)
        r = box.cli("exec", "f-" + name, "--", "sh", "-c", "cat /tmp/in/below/two; wc -c </tmp/in/big; ln -s below/two /tmp/in/good")
        eq(r.out.split(), ["2", str(len(big))], name)
        eq(box.cli("cp", f"f-{name}:/tmp/in", str(out / name)).rc, 0, name)
        eq(((out / name / "big").read_bytes() == big, (out / name / "big").stat().st_mode & 0o777), (True, 0o750), name)
        eq(((out / name / "good").readlink().as_posix(), (out / name / "below" / "two").read_text()), ("below/two", "2\n"), name)
        eq(box.cli("cp", f"f-{name}:/tmp/empty", str(out / name)).rc, 0, name)
        eq((out / name / "empty").read_bytes(), b"", name)
        for path in ("/tmp/away", "/dev/null", "/proc/1/environ", "/no/such"):
            r = box.cli("cp", f"f-{name}:{path}", str(out / "bad"))
            eq((r.rc, (out / "bad").exists()), (125, False), f"{name} {path}")
        refused(box.cli("cp", str(out / "in" / "big"), f"f-{name}:/usr/x"), "big", rc=125)
        eq(box.cli("exec", "f-" + name, "--", "sh", "-c", "ls -a /tmp | grep -c vitrine-cp").out, "0\n", name)
        box.stop(p)


@test(who=("user",), timeout=60)
def no_room_for_a_copy(box):
    """What does not fit inside is said, and nothing half is left."""
    if "crun" not in each(box):
        raise Skip("there is no crun")
    p = box.start("run", "--engine", "crun", "--disk", "16m,optional", "--name", "full", "--", "sh", "-c", "echo up; exec sleep 60")
    eq(p.stdout.readline(), b"up\n")
    box.write("big", "x" * (8 << 20))
    refused(box.cli("cp", "big", "full:/tmp/big"), "No space left", rc=125)
    eq(box.cli("exec", "full", "--", "sh", "-c", "ls -A /tmp | grep -c vitrine-cp").out, "0\n")
    box.stop(p)


# What each verb does with a sandbox behind another engine: its words, the exit status, and what it says on either stream.
# NAME is the sandbox that runs, OTHER one that is stopped. What is not here has a test of its own below.
VERBS = (
    (("exec", "-e", "A=1", "-w", "/tmp", "NAME", "--", "sh", "-c", "echo $A; pwd; exit 3"), 3, "1\n/tmp\n"),
    (("exec", "-u", "root", "NAME", "--", "id"), 2, "one user"),
    (("ls",), 0, "NAME"),
    (("ps", "NAME"), 0, "sleep"),
    (("inspect", "NAME"), 0, '"--engine=ENGINE"'),
    (("logs", "NAME"), 0, "/tmp"),
    (("stats", "NAME"), 0, "NAME"),
    (("events", "NAME"), 0, "engine=ENGINE"),
    (("cp", "NAME:/tmp/made", "."), 0, ""),
    (("cp", "made", "NAME:/tmp/back"), 0, ""),
    (("exec", "NAME", "--", "cat", "/tmp/back"), 0, "made\n"),
    (("checkpoint", "NAME"), 0, "stood still"),
    (("checkpoints", "NAME"), 0, ""),
    (("diff", "NAME"), 0, ""),
    (("net", "rules", "NAME"), 0, "example.org"),
    (("net", "allow", "NAME", "example.com"), 0, ""),
    (("net", "test", "NAME", "example.com"), 0, "allow"),
    (("net", "deny", "NAME", "example.com"), 0, ""),
    (("net", "test", "NAME", "example.com"), 1, "deny"),
    (("net", "log", "NAME"), 0, ""),
    (("explain", "--engine", "ENGINE", "--", "true"), 0, "ENGINE"),
    (("run", "--engine", "ENGINE", "--telemetry", "--", "sh", "-c", "echo $OTEL_EXPORTER_OTLP_ENDPOINT"), 0, "4318"),
    (("fork", "OTHER", "twin"), 125, "cannot honour: layers; --engine native can"),
    (("create", "--engine", "ENGINE", "--name", "r", "--mode", "review", "."), 125, "layers; --engine native can"),
    (("run", "--engine", "ENGINE", "--containers", "--", "true"), 125, "containers inside; --engine vm can"),
    (("apply", "OTHER"), 125, "--mode review"),
    (("discard", "OTHER"), 125, "--mode review"),
    (("fetch", "OTHER"), 2, "--mode clone"),
    (("start", "OTHER"), 0, ""),
    (("exec", "OTHER", "--", "cat", "kept"), 0, "kept\n"),
    (("stop", "OTHER"), 0, ""),
    (("checkpoint", "OTHER"), 0, "the home of 'OTHER' is not part of it"),
    (("undo", "OTHER"), 0, ""),
    (("save", "OTHER", "image"), 0, "image"),
    (("run", "--name", "OTHER", "--fresh", "--", "true"), 125, "layers"),
    (("exec", "OTHER", "--", "true"), 0, ""),
    (("reset", "--force", "OTHER"), 0, ""),
    (("rename", "OTHER", "another"), 0, ""),
    (("rm", "another"), 0, ""),
)


@test(who=("user",), timeout=90)
def each_verb_works_or_is_refused_by_name(box):
    """One sandbox that runs, one that does not, and all the verbs that name one."""
    for name in [n for n in each(box) if n in QUICK]:
        each_verb(box, name)


def each_verb(box, name):
    box.write("kept", "kept\n")
    eq(box.run("--engine", name, "--name", "other", "--", "sh", "-c", "echo 1 >new").rc, 0)
    p = box.start("run", "--engine", name, "--name", "live", "--allow", "example.org", "--", "sh", "-c",
                  "echo made >/tmp/made; echo up; exec sleep 60")
    eq(p.stdout.readline(), b"up\n")
    for words, rc, says in VERBS:
        words = [w.replace("NAME", "live").replace("OTHER", "other").replace("ENGINE", name) for w in words]
        r = box.cli(*words)
        eq(r.rc, rc, f"{words}: {r.err}{r.out}")
        has(r.out + r.err, says.replace("NAME", "live").replace("OTHER", "other").replace("ENGINE", name))
    eq(box.cli("stop", "live").rc, 0)
    eq(box.finish(p).rc, 143)
    for path in ("new", "made"):
        (box.ws / path).unlink(missing_ok=True)
    eq(box.cli("rm", "live").rc, 0)


# A third of a second of processor, 48 MiB that are touched, and then the word.
WORK = """
import time
held = bytearray(b"x") * (48 << 20)
begin = time.process_time()
while time.process_time() - begin < 0.3:
    pass
print("up", flush=True)
"""


@test(who=("user",), timeout=90)
def usage_is_told(box):
    """What a command used, and what one that runs uses: the keeper has it from init's looks, and from its wait4()."""
    least, most, bytes_ = int(0.3e9), int(20e9), 48 << 20
    for name in [n for n in each(box) if n in QUICK]:
        r = box.run("--engine", name, "--json", "--", "python3", "-c", WORK)
        eq(r.rc, 0, r.err)
        used = r.json["used"]
        eq((least <= used["cpu_ns"] <= most, bytes_ <= used["max_rss"] <= 4 * bytes_, used["wall_ns"] >= least),
           (True, True, True), f"{name}: {used}")
        p = box.start("run", "--engine", name, "--name", "u-" + name, "--", "python3", "-c", WORK + "time.sleep(60)")
        eq(p.stdout.readline(), b"up\n", name)
        seen = {}

        def told():
            for verb in ("stats", "ps"):
                seen[verb] = json.loads(box.cli(verb, "--json", "u-" + name).out)[0]
            return all(v["cpu_ns"] >= least and v["memory"] >= bytes_ for v in seen.values())

        soon(told, f"{name}: stats and ps say what is used", 10)
        eq((seen["stats"]["memory_peak"] >= bytes_, seen["stats"]["processes"], seen["ps"]["processes"]), (True, 2, 1), name)
        eq(max(v["cpu_ns"] for v in seen.values()) <= most, True, seen)
        box.stop(p)
        eq(box.cli("rm", "u-" + name).rc, 0, name)


@test(who=("user",), timeout=60)
def a_limit_on_files_is_kept_or_refused(box):
    """bubblewrap bounds bytes and not files: who asks for a limit is told; crun's kernel keeps it."""
    found = each(box)
    if "bwrap" in found:
        refused(box.run("--engine", "bwrap", "--disk", "16m", "--", "true"), "limit disk", "number of files", ",optional",
                rc=125)
        eq(box.run("--engine", "bwrap", "--disk", "16m,optional", "--", "true").rc, 0)
    if "crun" in found:
        r = box.sh("cd /tmp; i=0; while [ $i -lt 6000 ]; do : >$i || exit 9; i=$((i+1)); done", "--engine", "crun", "--disk", "16m")
        eq(r.rc != 0, True, "more files than a limit of 16 MiB has room for")


@test(who=("user",), timeout=60)
def a_template_is_the_root(box):
    """Read-only for a run without a name; what a sandbox with a name writes in /usr needs layers, which they have not."""
    names = each(box)
    eq(box.cli("template", "import", str(tiny(box)), "tiny", timeout=30).rc, 0)
    for name in names:
        r = box.sh("cat /etc/os-release /opt/own/f; echo x >/usr/x", "--engine", name, "--template", "tiny")
        eq((r.rc != 0, r.out), (True, "NAME=Tiny\nown\n"), name)
        has(r.err, "Read-only")
    refused(box.run("--engine", names[0], "--template", "tiny", "--name", "n", "--", "true"), names[0],
            "cannot honour: layers", rc=125)


@test(who=("user",), timeout=60)
def gvisors_platform(box):
    if "gvisor" not in each(box):
        raise Skip("there is no runsc")
    r = box.run("--engine", "gvisor", "--", "echo", "up", env={"VITRINE_GVISOR_PLATFORM": "ptrace"})
    eq((r.rc, r.out), (0, "up\n"), r.err)
    refused(box.run("--engine", "gvisor", "--", "true", env={"VITRINE_GVISOR_PLATFORM": "host"}), "'ptrace', 'systrap' or 'kvm'",
            rc=2)


@test
def refusals(box):
    refused(box.run("--engine", "firejail", "--", "true"), "firejail", "cannot honour: mounts", rc=125)
    box.write(".vitrine.jsonc", '{ "isolation": "vm" }\n')
    refused(box.run("--", "true"), box.engine, 'isolation "vm"', rc=125)
    refused(box.run("--engine", "bwrap", "--", "true"), "bwrap", 'isolation "vm"', rc=125)


@test(who=("user",))
def auto_is_never_weaker(box):
    box.write(".vitrine.jsonc", '{ "isolation": "kernel" }\n')
    names = each(box)
    r = box.cli("explain", "--engine", "auto", "--", "true")
    if "gvisor" in names:
        eq(r.rc, 0, r.err)
        has(r.out, "gvisor")
    else:
        eq(r.rc, 125)


@test
def the_table(box):
    out = box.cli("engines").out
    has(out, "can honour", "re-mask", "ends", "user-space kernel")
    for e in json.loads(box.cli("engines", "--json", "--quick").out)["engines"]:
        eq(set(e["steps"].values()) <= {"yes", "no", "ends", "bytes", "watched"}, True, e["name"])
        eq(e["steps"]["disk limit"] == "bytes", e["name"] in ("bwrap", "gvisor", "podman", "podman-remote"), e["name"])
        eq(e["steps"]["pids limit"] == "watched", e["name"] == "gvisor", e["name"])


@test(who=("user",), timeout=90)
def measure(box):
    rows = json.loads(box.cli("engines", "--measure", "--json", "native", *LOCAL, timeout=80).out)["engines"]
    eq(all(0 < r["best_ms"] <= r["median_ms"] for r in rows), True, rows)
    has([r["name"] for r in rows], "native")


@test
def exports(box):
    box.write(".env", "x\n")
    box.write(".vscode/tasks.json", "{}\n")
    r = box.cli("export", "devcontainer")
    eq(r.rc, 0, r.err)
    text = box.read(".devcontainer/devcontainer.json")
    made = json.loads(re.sub(r"^//.*\n", "", text, flags=re.M))
    has(made["runArgs"], "--network=none", "--cap-drop=all", "--security-opt=no-new-privileges")
    has(" ".join(made["mounts"]), "/.env,readonly", "localWorkspaceFolder}/.vscode,", "/.vscode,readonly")
    refused(box.cli("export", "devcontainer"), "--force", rc=125)
    eq(box.cli("export", "devcontainer", "--force", "--gvisor").rc, 0)
    has(box.read(".devcontainer/devcontainer.json"), "--runtime=runsc")
    has(box.cli("export", "dockerfile").out, "FROM ")
    refused(box.cli("export", "boat"), "devcontainer")
    box.write("a,b/.env", "x\n")
    refused(box.cli("export", "devcontainer", "--force"), "a,b/.env", "cannot say so", rc=125)


if __name__ == "__main__":
    sys.exit(main())
