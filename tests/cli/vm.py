#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A machine with a kernel of its own, in software: booted once, kept, and every start goes on from there.

The kernel is the newest of /boot, or the distribution's, unpacked once by tools/guest-kernel. All tests share the kept
machine (its name does not depend on where the state lies), so one of them boots and the others do not."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from far import net  # noqa: E402
from harness import PATH, Skip, eq, has, has_not, main, refused, test  # noqa: E402
from machine import inside, kept, machine, machine_folder  # noqa: E402
from tiny import tiny  # noqa: E402


def virtiofsd():
    """One of the system's places, or none."""
    return next((p for p in ("/usr/local/libexec/virtiofsd", "/usr/libexec/virtiofsd", "/usr/lib/virtiofsd",
                             "/usr/lib/qemu/virtiofsd", "/usr/local/bin/virtiofsd", "/usr/bin/virtiofsd")
                 if os.access(p, os.X_OK)), None)


@test(who=("user",), timeout=400)
def booted_once(box):
    """The first start boots and keeps; the second is a copy with random numbers and a clock of its own. Files are virtiofsd's
    where there is one."""
    env = machine(box)
    script = "uname -r; date +%s; head -c 16 /dev/urandom | od -An -tx1; cat /proc/sys/kernel/random/uuid; grep -E ' /(usr)? ' /proc/mounts"
    first = inside(box, env, script)
    eq(first.rc, 0, first.err)
    has(first.out, " /usr virtiofs ro," if virtiofsd() else " /usr 9p ro,", " / virtiofs " if virtiofsd() else " / 9p ")
    names = kept()
    eq(len(names), 1, names)
    eq(sorted(os.listdir(machine_folder() / names[0])), ["initrd", "ram", "state", "view", "words"])
    second = inside(box, env, script)
    eq((second.rc, kept()), (0, names), second.err)
    a, b = first.out.splitlines(), second.out.splitlines()
    eq(a[0], b[0])
    eq(a[0] == os.uname().release, False, "its own kernel")
    eq(abs(int(b[1]) - time.time()) < 60, True, "the clock")
    eq(a[2] != b[2] and a[3] != b[3], True, "random numbers")
    eq((machine_folder() / names[0] / "ram").stat().st_mode & 0o077 & 0o022, 0)


@test(timeout=400)
def same_walls(box):
    env = machine(box)
    box.write(".env", "SECRET=1\n")
    box.write(".vscode/tasks.json", "{}\n")
    r = inside(box, env, "cat; echo err >&2; id -u; cat .env; touch /usr/x; echo x >.vscode/tasks.json; echo made >made; "
               "cat /proc/net/dev; grep -E 'CapEff|CapBnd|Seccomp:' /proc/self/status; ls /sys/class/net 2>&1; exit 7",
               input=b"in\n")
    eq(r.rc, 7, r.err)
    uid = 1000 if box.is_root else box.account.pw_uid if box.account else os.getuid()
    has(r.out, f"in\n{uid}\n", "CapEff:\t0000000000000000",
        "CapBnd:\t0000000000000000", "Seccomp:\t2")
    has(r.err, "err\n")
    has_not(r.out, "SECRET", "eth0", "ens")
    eq(box.read("made"), "made\n")
    eq((box.ws / "made").stat().st_uid, box.ws.stat().st_uid)
    eq(box.read(".vscode/tasks.json"), "{}\n")


@test(who=("user",), timeout=400)
def the_gate_is_the_only_way(box):
    """No network card; over the link to the gate, for programs that know of a proxy and for those that do not."""
    env, far = machine(box), net()
    for words in ("curl", "curl --noproxy '*'"):
        far.clear()
        r = inside(box, env, f"{words} -sSf -m 100 http://ok.test/; {words} -sSf -m 100 -o /dev/null http://evil.test/",
                   "--allow", "ok.test")
        eq((len(far.hits("ok.test", 80)), len(far.hits("evil.test", 80))), (1, 0), f"{words}: {r.out!r} {r.err!r}")
        eq(r.rc != 0, True, words)
        has_not(r.err, "cannot redirect")


@test(who=("user",), timeout=400)
def exec_terminal_and_time(box):
    env = machine(box)
    p = box.start("run", "--engine", "vm-emulated", "--name", "m", "--", "sh", "-c", "echo up; exec sleep 300", env=env)
    eq(p.stdout.readline(), b"up\n")
    r = box.cli("exec", "m", "--", "sh", "-c", "echo inside; exit 9", timeout=100)
    eq((r.rc, r.out), (9, "inside\n"))
    r = box.cli("exec", "m", "--", "no-such-program", timeout=100)
    eq(r.rc, 127)
    box.stop(p)
    t = box.term("run", "--engine", "vm-emulated", "--", "sh", "-c", "stty size; read x; echo got $x", rows=31, cols=97,
                 env=env)
    t.expect("31 97", 100)
    t.send("hello\r")
    t.expect("got hello", 60)
    eq(t.wait(60), 0)
    t.close()
    r = inside(box, env, "sleep 300", "--time", "3s", "--json")
    eq((r.rc, r.json["reason"]), (124, "time"))


@test(who=("user",), timeout=400)
def a_template_is_the_guests_root(box):
    """Of a run without a name read-only; with a name what is written in /usr stays in a layer of the sandbox's, as with the
    native engine. All are copies of the one machine."""
    env = machine(box)
    eq(box.cli("template", "import", str(tiny(box)), "tiny", timeout=60).rc, 0)
    before = kept()
    script = "cat /etc/os-release /opt/own/f; ls /usr/bin; echo x >/usr/x; cat /proc/version"
    r = inside(box, env, script, "--template", "tiny")
    has(r.out, "NAME=Tiny\nown\n", "dash", "Linux version")
    has_not(r.out, "python3", os.uname().release)
    has(r.err, "Read-only")
    r = inside(box, env, "echo made >/usr/made; echo x >/etc/x", "--template", "tiny", "--name", "t")
    eq(r.rc != 0, True, "/etc is not its own")
    box.cli("stop", "t", timeout=60)
    eq(list(box.state.glob("templates/tiny/root/usr/made")), [], "the template is as it was")
    r = inside(box, env, "cat /usr/made", "--template", "tiny", "--name", "t")
    eq((r.rc, r.out), (0, "made\n"), r.err)
    box.cli("stop", "t", timeout=60)
    eq(box.sh("cat /usr/made", "--template", "tiny", "--name", "t", "--engine", "native").out, "made\n")
    eq(len(set(kept()) - set(before)) <= (not before), True, "one machine for all")


@test(who=("user",), timeout=400)
def reviewed(box):
    """What is written in the workspace goes to a layer, which is to be had in no other place; hidden and protected names are
    covered above it."""
    env = machine(box)
    box.write("a", "one\n")
    box.write(".env", "SECRET=1\n")
    box.write(".vscode/tasks.json", "{}\n")
    r = inside(box, env, "echo two >a; echo new >b; cat .env; echo x >.vscode/tasks.json; cat a .vscode/tasks.json; "
               "find /.vitrine/layers -type f | wc -l", "--mode", "review", "--name", "r")
    eq(r.out, "two\n{}\n0\n", r.err)
    box.cli("stop", "r", timeout=60)
    eq((box.read("a"), (box.ws / "b").exists()), ("one\n", False))
    has(box.cli("diff", "r").out, "-one", "+two", "+new")


@test(who=("user",), timeout=400)
def a_container_engine_inside(box):
    """podman as root of the machine's kernel; outside, the same files have the user's id. No other engine has that."""
    box.needs("podman", "crun", "busybox")
    env = machine(box)
    refused(box.run("--containers", "--", "true"), "native", "cannot honour: containers inside", rc=125)
    refused(box.run("--containers", "--engine", "bwrap", "--", "true"), "cannot honour: containers inside", rc=125)
    for name in ("bin", "proc", "sys", "dev", "etc"):
        (box.ws / "image" / name).mkdir(parents=True)
    shutil.copy(shutil.which("busybox", path=PATH), box.ws / "image" / "bin" / "sh")
    box.own(box.ws / "image")
    r = inside(box, env, "podman --cgroup-manager=cgroupfs run --rm --network none --runtime crun -v $PWD:/w "
               "--rootfs $PWD/image:O /bin/sh -c 'echo from a container; echo made >/w/made; echo $$'", "--containers")
    eq((r.rc, r.out), (0, "from a container\n1\n"), r.err)
    eq(box.read("made"), "made\n")
    eq((box.ws / "made").stat().st_uid, box.account.pw_uid if box.account else os.getuid())


def with_comm(name, below):
    """Processes of this name below that one."""
    found, todo = [], [str(below)]
    while todo:
        for path in Path(f"/proc/{todo.pop()}/task").glob("*/children"):
            try:
                for pid in path.read_text().split():
                    todo.append(pid)
                    if Path(f"/proc/{pid}/comm").read_text().strip() == name:
                        found.append(int(pid))
            except OSError:
                continue    # it has ended
    return found


def status_of(pid):
    return dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)


@test(who=("user",), timeout=400)
def files_by_virtiofs(box):
    """Served by virtiofsd, which has no rights and sees the view alone; the same walls; its end is the sandbox's."""
    if not virtiofsd():
        raise Skip("no virtiofsd")
    env = {**machine(box), "VITRINE_VM_SHARE": "virtiofs"}
    box.write(".env", "SECRET=1\n")
    box.write(".vscode/tasks.json", "{}\n")
    box.sh("true", "--engine", "vm-emulated", env=env, timeout=170)
    before = kept()
    p = box.start("run", "--engine", "vm-emulated", "--", "sh", "-c",
                  "cat .env; touch /usr/x; echo x >.vscode/tasks.json; echo made >made; mv made moved; ln -s moved link; mkdir d; "
                  "rmdir d; cat link; grep -c ' / virtiofs ' /proc/mounts; grep -c 9p /proc/mounts; id -u; date +%s; echo up; "
                  "exec sleep 300", env=env)
    said = []
    while said[-1:] != ["up"]:
        line = p.stdout.readline()
        eq(line != b"", True, said)
        said.append(line.decode().strip())
    eq(said[:4], ["made", "1", "0", str(box.account.pw_uid if box.account else os.getuid())])
    eq(abs(int(said[4]) - time.time()) < 60, True, "the clock")
    eq((box.read("moved"), os.readlink(box.ws / "link"), box.read(".vscode/tasks.json")), ("made\n", "moved", "{}\n"))
    eq((box.ws / "moved").stat().st_uid, box.account.pw_uid if box.account else os.getuid())
    servers = with_comm("virtiofsd", p.pid)
    eq(len(servers), 4, "the view's and /usr's: itself, and the first process of its namespace")
    eq(kept(), before, "a copy of the machine that was kept")
    for pid in servers:
        eq([status_of(pid)[c] for c in ("CapEff", "CapPrm", "CapBnd", "CapAmb")], ["0" * 16] * 4)
    status = status_of(servers[-1])
    eq((status["NoNewPrivs"], status["Seccomp"]), ("1", "2"))
    eq(os.path.exists(f"/proc/{servers[-1]}/root/proc/1"), False, "nothing but the view")
    for ns in ("mnt", "net", "pid"):
        eq(os.readlink(f"/proc/{servers[-1]}/ns/{ns}") != os.readlink(f"/proc/self/ns/{ns}"), True, ns)
    os.kill(servers[-1], 9)
    eq(p.wait(60), 125)
    eq([pid for pid in servers if os.path.exists(f"/proc/{pid}/root")], [])


FILES = """
import ctypes, mmap, os, socket, sqlite3
libc = ctypes.CDLL(None)
open("a", "w").write("a"); open("b", "w").write("b")
os.link("a", "hard"); assert os.path.samefile("a", "hard") and os.stat("a").st_nlink == 2
assert libc.renameat2(-100, b"a", -100, b"b", 2) == 0 and open("a").read() == "b"
os.setxattr("a", "user.x", b"v"); assert os.getxattr("a", "user.x") == b"v"
f = open("gone", "w+"); os.unlink("gone"); f.write("still"); f.flush(); f.seek(0); assert f.read() == "still"
f = open("m", "w+b"); f.truncate(8192); m = mmap.mmap(f.fileno(), 8192); m[5000:5003] = b"abc"; m.close(); f.close()
os.chmod("m", 0o751)
s = socket.socket(socket.AF_UNIX); s.bind("sock"); s.listen(); socket.socket(socket.AF_UNIX).connect("sock")
os.mkfifo("fifo")
d = sqlite3.connect("db"); d.execute("pragma journal_mode=wal"); d.execute("create table t(x)"); d.commit()
for name in ("security.capability", "trusted.x"):
    try: os.setxattr("a", name, b"\\1\\0\\0\\2" + bytes(16)); print("set", name)
    except OSError: pass
try: os.chown("a", 0, 0); print("given away")
except OSError: pass
print("ready", flush=True)
input()
print(open("host").read(), os.path.exists("appeared"), os.path.exists("m"))
"""


@test(who=("user",), timeout=400)
def virtiofs_has_what_files_have(box):
    """What programs rely on, the other side of it, and what the host changes meanwhile, within the second that is remembered."""
    if not virtiofsd():
        raise Skip("no virtiofsd")
    env = machine(box)
    box.write("files.py", FILES)
    box.write("host", "old")
    p = box.start("run", "--engine", "vm-emulated", "--", "python3", "files.py", stdin=subprocess.PIPE, env=env)
    eq(p.stdout.readline(), b"ready\n", p.stderr)
    eq(((box.ws / "m").read_bytes()[5000:5003], (box.ws / "m").stat().st_mode & 0o777), (b"abc", 0o751))
    eq((box.read("a"), os.getxattr(box.ws / "a", "user.x")), ("b", b"v"))
    box.write("host", "new")
    box.write("appeared", "")
    (box.ws / "m").unlink()
    time.sleep(1.1)
    p.stdin.write(b"\n")
    p.stdin.flush()
    eq(p.stdout.readline(), b"new True False\n")
    eq(p.wait(60), 0)


@test(who=("user",), timeout=60)
def virtiofs_is_asked_for_in_words(box):
    """What cannot be had is refused, and not replaced."""
    env = machine(box)
    for words, named in (({"VITRINE_VM_SHARE": "nfs"}, "'9p', 'virtiofs' or 'auto'"),
                         ({"VITRINE_VM_SHARE": "virtiofs", "VITRINE_VM_VIRTIOFSD": "/none"}, "no virtiofsd here")):
        r = inside(box, {**env, **words}, "true")
        eq(r.rc in (2, 125), True, r.err)
        has(r.err, named)
    r = inside(box, {**env, "VITRINE_VM_SHARE": "virtiofs"}, "true", "--containers")
    eq(r.rc, 125, r.err)
    has(r.err, "containers inside with files by virtiofs")
    r = inside(box, {**env, "VITRINE_VM_SHARE": "virtiofs", "VITRINE_VM_VIRTIOFSD": "/bin/false"}, "true")
    eq(r.rc, 125, r.err)
    has(r.err, "virtiofs")


@test(who=("user",), timeout=400)
def by_9p_where_there_is_no_virtiofsd(box):
    """Not said in words: what is there serves them. Kept as well, apart from the machine of the other way."""
    env = {**machine(box), "VITRINE_VM_VIRTIOFSD": "/none"}
    r = inside(box, env, "grep -c ' / 9p ' /proc/mounts; grep -c virtiofs /proc/mounts")
    eq(r.out, "1\n0\n", r.err)
    before = kept()
    r = inside(box, {**env, "VITRINE_VM_SHARE": "9p", "VITRINE_VM_VIRTIOFSD": ""}, "echo made >made")
    eq((r.rc, kept(), box.read("made")), (0, before, "made\n"), r.err)


@test(who=("user",), timeout=60)
def emulation_is_never_a_fallback(box):
    """Where this user may not use KVM, `vm` is refused and nothing slower is taken for it."""
    env = machine(box)
    if os.access("/dev/kvm", os.W_OK) and not box.account:
        raise Skip("this user may use KVM")
    refused(box.run("--engine", "vm", "--", "true", env=env), "/dev/kvm", "vm-emulated", rc=125)


@test(who=("user",), timeout=60)
def a_kernel_that_is_none(box):
    env = machine(box)
    env.update(VITRINE_VM_KERNEL="/dev/null", VITRINE_VM_KEEP="no")
    r = inside(box, env, "true")
    eq(r.rc, 125, r.err)


if __name__ == "__main__":
    sys.exit(main())
