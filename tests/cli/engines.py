#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Other walls: each engine that is here runs a command with its status, stdio, terminal, limits and exec, and what it
cannot honour it refuses by name. The other suites take --engine NAME; this one looks at every engine a little."""

import json
import re
import sys
from pathlib import Path

from harness import Skip, eq, has, main, refused, test

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tiny import tiny  # noqa: E402

LOCAL = ("bwrap", "crun", "runc", "gvisor")


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


def each(box):
    here = {e["name"]: e for e in json.loads(box.cli("engines", "--json").out)["engines"]}
    found = [n for n in LOCAL if here[n]["works"]]
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


@test(who=("root",))
def root_is_refused_by_name(box):
    for name in each(box):
        refused(box.run("--engine", name, "--", "true"), name, "root's ids mapped away", "--user NAME", rc=125)


@test(who=("user",), timeout=60)
def no_files_are_handed_out(box):
    """Another engine's init has no descriptors to give: cp says so, and what works instead."""
    name = each(box)[0]
    p = box.start("run", "--engine", name, "--name", "files", "--", "sh", "-c", "echo up; exec sleep 30")
    eq(p.stdout.readline(), b"up\n")
    refused(box.cli("cp", "files:/etc/passwd", "."), "hands out no files", "vitrine exec", rc=125)
    box.stop(p)


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


@test
def refusals(box):
    refused(box.run("--engine", "firejail", "--", "true"), "firejail", "cannot honour: mounts", rc=125)
    box.write(".vitrine.jsonc", '{ "isolation": "vm" }\n')
    refused(box.run("--", "true"), "native", 'isolation "vm"', rc=125)
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
    for e in json.loads(box.cli("engines", "--json").out)["engines"]:
        eq(set(e["steps"].values()) <= {"yes", "no", "ends"}, True, e["name"])


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
