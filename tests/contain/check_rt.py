# SPDX-License-Identifier: Apache-2.0
"""RT - a root inside: what is promised of it, and of those who have none."""

import json
import os
import re
import shutil
from pathlib import Path

import rooted
from harness import HELD, USERNS, check, has_lesser_kernel, has_step, is_machine
from outside import THROUGH, bounded

CAPS = 0xfb         # chown, dac_override, fowner, fsetid, kill, setgid, setuid
ROOT_FROM = 1888065536


def make(c, flags=(), tools=("dash", "cat", "chmod", "chown", "grep", "id", "ls", "mkdir", "touch", "ln", "mv", "cp", "sleep", "kill")):
    """A template with ids of its own, and what a script of its sandbox's user says."""
    root = c.out / "root"
    rooted.make_root(root, tools)
    shutil.copy(c.cfg.tools["probe"], root / "usr/bin/probe")
    if os.geteuid() == 0:
        for p in [root, *root.rglob("*")]:
            os.chown(p, c.uid, c.gid, follow_symlinks=False)
    r = c.vitrine("template", "import", "--sudo", str(root), "rt", timeout=40)
    c.need_control(r.ok, f"no template with ids of its own: {r}")
    with c.host_edit():
        shutil.rmtree(root)

    def run(script, *more):
        r = c.vitrine("run", "--name", "rt", "--template", "rt", *flags, *more, "--", "sh", "-c", "echo began; " + script)
        c.need_control("began" in r.text, f"it did not run: {r}")
        return r

    return run


def status(text, name):
    return [int(x, 16) for x in re.findall(rf"^{name}:\s*([0-9a-f]+)$", text, re.M)]


@check("RT-01", prio="P0", forms=("run",), catches=("caps,verify",),
       title="a root inside has seven capabilities and no way to an eighth; who is not root has none")
def rt01(c):
    run = make(c)
    show = "grep -E '^(Cap|Seccomp:|Uid)' /proc/self/status"
    user, root = run(show), run(f"sudo {show}; sudo sudo {show}; sudo -u '#1' id -u")
    for name in ("CapPrm", "CapEff", "CapInh", "CapAmb"):
        c.must(status(user.text, name) == [0], f"the user has {name}: {user.text}")
    effective = status(root.text, "CapEff")
    c.need_control(len(effective) == 2 and all(x & CAPS == CAPS for x in effective), f"there is no root: {root}")
    c.must(effective == [CAPS, CAPS], f"root has more: {root.text}")
    for r in (user, root):
        c.must(all(b == CAPS for b in status(r.text, "CapBnd")), f"more than that can be had: {r.text}")
        c.must(all(s == 2 for s in status(r.text, "Seccomp")), f"there is no filter: {r.text}")
    return HELD


@check("RT-02", prio="P0", forms=("run",),
       title="its ids are not the host's: the map holds the account's range and itself, host root never")
def rt02(c):
    run = make(c)
    rows = [tuple(map(int, line.split())) for line in run("cat /proc/self/uid_map /proc/self/gid_map").text.splitlines()[1:]]
    c.need_control(len(rows) in (2, 6), f"not a map: {rows}")
    own = ROOT_FROM if c.ident == "root" else None
    for inside, outside, count in rows:
        if c.ident == "root":
            c.must((inside, outside, count) == (0, own, 65536), f"not the range: {rows}")
        else:
            c.must((outside == c.uid and inside == c.uid and count == 1) or outside >= 65536, f"ids of the host: {rows}")
    return HELD


@check("RT-03", prio="P0", forms=("run",), catches=("sysctl",), catch_ident="user",
       title="neither settings of the kernel nor those of its own namespaces can be written by a root inside")
def rt03(c):
    run = make(c)
    names = ("net/ipv4/ip_forward", "net/ipv4/ip_unprivileged_port_start", "kernel/hostname", "kernel/core_pattern",
             "user/max_user_namespaces", "kernel/shmmax", "fs/suid_dumpable")
    script = "; ".join(f"sudo sh -c 'echo 1 > /proc/sys/{n}' 2>/dev/null && echo wrote {n}" for n in names)
    r = run(script + "; true")
    c.must("wrote" not in r.text, f"settings were written: {r.text}")
    return HELD


@check("RT-04", prio="P0", forms=("run",),
       title="set-user-id files can be made where nobody else on the host sees them, and not in a workspace written in place")
def rt04(c):
    mine = "cp /usr/bin/id x; chmod 4755 x; sudo cp /usr/bin/id y; sudo chown 1:1 y; sudo chmod 6755 y; true"
    r = make(c)(mine)
    bits = [oct(p.stat().st_mode) for p in (c.ws / "x", c.ws / "y") if p.exists() and p.stat().st_mode & 0o4000]
    c.must(not bits, f"a set-user-id file lies in the workspace: {bits} {r}")
    r = c.vitrine("run", "--name", "rv", "--template", "rt", "--mode", "review", "--", "sh", "-c",
                  "sudo cp /usr/bin/id /usr/bin/mine; sudo chmod 4755 /usr/bin/mine && ls -l /usr/bin/mine; " + mine)
    c.need_control("-rwsr-xr-x" in r.text, f"under review none can be made at all: {r}")
    c.vitrine("apply", "--yes", "--force", "rv")
    bits = [p for p in c.ws.rglob("*") if p.stat().st_mode & 0o6000]
    c.must(not bits, f"a set-user-id file came out by apply: {bits}")
    return HELD


@check("RT-05", prio="P0", forms=("run",),
       title="set-user-id counts for files of the template only: not in the workspace, the home or /tmp")
def rt05(c):
    run = make(c, flags=("--mode", "review"))
    places = (".", "$HOME", "/tmp", "/dev/shm", "/run", "/var/tmp")
    each = "; ".join(f"sudo cp /usr/bin/id {p}/s; sudo chown 0:0 {p}/s; sudo chmod 6755 {p}/s; echo at $({p}/s -u)" for p in places)
    r = run(f"sudo cp /usr/bin/id /usr/bin/s; sudo chmod 4755 /usr/bin/s; echo template $(/usr/bin/s -u); {each}; true")
    c.need_control("template 0" in r.text, f"it does not count in the template either: {r}")
    c.must(not re.search(r"^at 0$", r.text, re.M), f"it counts elsewhere: {r.text}")
    return HELD


@check("RT-06", prio="P0", forms=("run",),
       title="an ordinary run of the same template, and any run without one, has no root, no capability and no_new_privs")
def rt06(c):
    make(c)
    show = ["sh", "-c", "grep -E '^(Cap|NoNewPrivs)' /proc/self/status; cat /proc/self/uid_map; sudo -n id -u"]
    for flags in (["--template", "rt"], [], ["--name", "plain"]):
        r = c.vitrine("run", *flags, "--", *show)
        c.need_control("CapBnd" in r.text, f"it did not run: {r}")
        c.must(status(r.text, "CapBnd") == [0] and status(r.text, "CapEff") == [0], f"{flags}: capabilities: {r.text}")
        c.must("NoNewPrivs:\t1" in r.text or (has_lesser_kernel(c) and "NoNewPrivs" not in r.text), f"{flags}: no_new_privs is off")
        c.must(re.search(r"^\s+\d+\s+\d+\s+1$", r.text, re.M) or not has_step(c, USERNS) or is_machine(c), f"{flags}: {r}")
        c.must(not re.search(r"^0$", r.text, re.M), f"{flags}: {r}")
    return HELD


@check("RT-07", prio="P0", forms=("run",),
       title="what a root inside leaves in the workspace is the caller's; outside it has touched nothing")
def rt07(c):
    run = make(c)
    c.plant(c.ws / "mine", "x")
    run("sudo touch made; sudo mkdir -m 700 d; sudo touch d/f; sudo chown 5:5 mine; sudo chmod 000 mine; true")
    for p in [c.ws, *c.ws.rglob("*")]:
        st = p.lstat()
        c.must((st.st_uid, st.st_gid) == (c.uid, c.gid), f"{p} belongs to {st.st_uid}:{st.st_gid}")
    for p in (c.state, c.home):
        c.must(p.stat().st_uid == c.uid, f"{p} is not the caller's any more")
    c.must(c.vitrine("rm", "rt").ok and not [d for d in os.listdir(c.state / "vitrine/layers") if d != "lock"],
           "layers of mapped ids are left")
    c.must(c.vitrine("template", "rm", "rt").ok and not os.listdir(c.state / "vitrine/templates"), "the template is left")
    left = [p for p in Path(c.state / "vitrine").rglob("*") if p.lstat().st_uid not in (c.uid,)]
    c.must(not left, f"files of mapped ids are left: {left[:3]}")
    return HELD


@check("RT-08", prio="P0", forms=("run",),
       title="init and the keeper cannot be signalled or looked into by a root inside; everything ends with the run")
def rt08(c):
    run = make(c)
    r = run("sudo kill -9 1; sudo kill -TERM 1; echo alive; sudo cat /proc/1/environ /proc/1/maps 2>/dev/null | grep -c . ; "
            "sudo ls -l /proc/1/root /proc/1/fd 2>&1 | grep -c denied")
    c.must("alive" in r.text, f"pid 1 was killed: {r}")
    lines = r.text.split()
    c.must(lines[-2] == "0", f"init was looked into: {r.text}")
    # Those of root end as well, though whoever ends them is not root.
    r = c.vitrine("run", "--name", "rt", "--", "sh", "-c", "sudo sleep 600 & sleep 0.2; echo left", timeout=20)
    c.must("left" in r.text and not r.timed_out, f"it does not end: {r}")
    return HELD


@check("RT-09", prio="P0", forms=("run",), catches=("disk",), alone="disk",
       title="a root inside cannot hide files from --disk: not in directories of other ids that are closed to all others")
def rt09(c):
    run = make(c, flags=("--disk", "32m,optional", "--json"), tools=("dash", "chown", "dd", "mkdir", "sleep"))
    fill = "sudo mkdir -m 700 {0}; sudo dd if=/dev/zero of={0}/fill bs=1M count={1} 2>/dev/null; sudo chown 7:7 {0}/fill {0}; "
    with bounded(c):
        small = run(fill.format("/var/small", 4))
        c.need_control(small.json()["reason"] == "exit", f"4 MiB are too many: {small.json()}")
        shut = [p.stat() for p in (c.state / "vitrine/layers").glob("*/fs/var/small")]
        c.need_control(len(shut) == 1 and shut[0].st_mode & 0o077 == 0 and shut[0].st_uid != c.uid, f"it is open: {shut}")
        listed = json.loads(c.vitrine("ls", "--size", "--json", "rt").text)[0]["disk"]
        c.must(listed >= 4 << 20, f"'ls' sees {listed} bytes of 4 MiB")
        r = run(fill.format("/var/shut", 48) + "sleep 10")
        c.must(r.json()["reason"] == "disk", f"48 MiB under a limit of 32: {r.json()['reason']}")
        again = c.vitrine("run", "--name", "rt", "--template", "rt", "--disk", "32m,optional", "--", "sh", "-c", "echo began")
        c.must("its limit is" in again.errtext and "began" not in again.text, f"it was started again: {again}")
    return HELD
