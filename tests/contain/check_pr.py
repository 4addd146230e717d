# SPDX-License-Identifier: Apache-2.0
"""PR - processes, privileges, namespaces: what runs inside reaches nothing that runs outside."""

import dataclasses
import os
import re
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

from check_ks import unprivileged
from harness import HELD, USERNS, check, descendants, has_own_kernel, has_step, is_machine, needs_hosts_kernel, process_table
from outside import THROUGH, Sentinel, attempts, inside, reached, verdicts

SPARE_GID = 54321


def supervisors():
    """Host pids of vitrine's outer half, wherever it hangs in the tree: all that this check started
    is below its own process, which is a subreaper."""
    mine = ns_depth(os.getpid())
    return [p for p, name in descendants(os.getpid()) if ns_depth(p) == mine and name != "probe"]


def machines():
    """Of another kernel, the process that is this kernel."""
    found = []
    for pid, _ in descendants(os.getpid()):
        with suppress(OSError):
            if Path(f"/proc/{pid}/cmdline").read_bytes().startswith((b"runsc-sandbox", b"/usr/bin/qemu")):
                found.append(pid)
    return found


def insiders():
    """Host pids of what this check started in a pid namespace of its own: the innermost, for a tool may stand in one too."""
    mine = ns_depth(os.getpid())
    depths = {p: ns_depth(p) for p, _ in descendants(os.getpid())}
    found = [p for p, d in depths.items() if mine < d == max(depths.values())]
    return found if found or not {"DOCKER_HOST", "CONTAINER_HOST"} & set(os.environ) else of_a_daemon(mine)


def of_a_daemon(mine):
    """They are nobody's children here, but they have this check's folder in sight."""
    found = []
    for pid in process_table():
        with suppress(OSError):
            if ns_depth(pid) > mine and f"/vcontain.{os.getpid()}." in Path(f"/proc/{pid}/mountinfo").read_text():
                found.append(pid)
    return found


def ns_depth(pid):
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return -1
    m = re.search(r"^NSpid:\t(.*)$", text, re.M)
    return len(m[1].split()) if m else -1


@check("PR-01", prio="P0", title="no signal leaves the sandbox",
       catches=("pidns,landlock",))
def pr01(c):
    s = Sentinel(c)
    ctl = c.control(c.probe("signal", "0", s.pid))
    c.need_control(ctl.rc == THROUGH, f"the sentinel cannot be signalled outside: {ctl}")
    bystander = c.start(["/bin/sh", "-c", "echo up; sleep 20"])
    if not bystander.wait_for("up", 8):
        c.inconclusive(f"the other sandbox did not come up: {bystander.stop()}")
    targets = [s.pid, bystander.pid, *supervisors(), os.getpid()]
    for sig in (0, signal.SIGSTOP, signal.SIGTERM, signal.SIGKILL):
        # Not this process: with the wall gone that would end the check instead of failing it.
        victims = targets[:-1] if sig else targets
        r = inside(c, "signal", int(sig), *victims)
        c.must(s.running, f"signal {int(sig)} reached the sentinel: {r}")
        c.must(bystander.alive, f"signal {int(sig)} reached another sandbox's supervisor")
        c.must(r.rc != THROUGH, f"signal {int(sig)} was accepted: {r}")
    # With the wall gone "all processes" of root would be the host: then signal 0 has to do.
    sig = "0" if c.ident == "root" or "pidns" in c.cfg.sabotage else "9"
    c.sandbox(c.probe("signal_all", sig), refusal_ok=True)
    c.must(s.running and bystander.alive, "kill -1 reached the outside")
    return HELD


@check("PR-02", prio="P0", title="no memory outside can be read or written",
       null=True)
def pr02(c):
    # No switch turns this red: the user namespace alone keeps us from tracing its outside.
    s = Sentinel(c)
    read = ["readmem", s.pid, s.addr, len(s.word)]
    ctl = c.control(c.probe(*read))
    c.need_control(s.word in ctl.text, f"memory cannot be read outside: {ctl}")
    for words in (read, ["ptrace", s.pid], ["writemem", s.pid, s.addr], ["pidfd_getfd", s.pid, 0]):
        r = inside(c, *words)
        c.must(not c.leaks(r, s.word), f"{words[0]} read the sentinel")
        c.must(r.rc != THROUGH, f"{words[0]} got through: {r}")
    with open(f"/proc/{s.pid}/mem", "rb") as f:
        f.seek(s.addr)
        c.must(f.read(len(s.word)) == s.word.encode(), "the sentinel's memory was written")
    c.must(s.running, "the sentinel does not run any more")
    return HELD


@check("PR-03", prio="P0", title="no process of the host is visible",
       catches=("pidns", "proc"), null=True)
def pr03(c):
    s = Sentinel(c)
    script = "ps axww; cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ | tr '\\0' ' '"
    ctl = c.control(script)
    c.need_control(s.word in ctl.text, "the sentinel cannot be seen outside")
    r = c.sandbox(script)
    c.must(not c.leaks(r, s.word), "the sentinel is visible")
    r = c.sandbox("ls /proc | grep -c '^[0-9]'")
    c.must(int(r.text.split()[-1]) < 16, f"{r.text.strip()} processes are visible")
    return HELD


@check("PR-04", prio="P0", title="supervisor and helpers cannot be looked into",
       catches=("pidns",), forms=("run", "exec"))
def pr04(c):
    word = c.uuid()
    # The canary is in the environment of vitrine itself; a look at itself proves that look works.
    p = c.start(["/bin/sh", "-c", "echo up; sleep 15"], env={"OUTER_CANARY": word})
    if not p.wait_for("up", 8):
        c.inconclusive(f"did not come up: {p.stop()}")
    pids = supervisors()
    ctl = c.control(c.probe("look", *pids))
    c.need_control(word in ctl.text, f"cannot be looked at outside: {pids} {ctl}")
    host = [e for e in os.listdir("/proc") if e.isdigit()]
    r = inside(c, "look", *range(1, 64), *host[-200:], env={"OUTER_CANARY": word})
    c.must(not c.leaks(r, word), "the environment of a supervisor came out")
    # Small numbers are the inside's own processes.
    r = inside(c, "look", *[p for p in pids if p > 1000])
    c.must(r.rc != THROUGH, f"a supervisor is visible: {r.text[:300]!r}")
    p.stop()
    return HELD


@check("PR-05", prio="P0", title="every task inside: no capability, no_new_privs, filtered",
       catches=("caps,verify", "nnp,landlock,seccomp,verify", "seccomp,verify"), null=True)
def pr05(c):
    r = c.sandbox(c.probe("status"))
    unprivileged(r.text, c, c.form)
    init = re.search(r"^task pid=1 tid=1 ", r.text, re.M)
    if c.cfg.engine.startswith("vm"):  # a machine's /proc shows nobody who may not be looked into, and init may not
        c.must(not init, f"pid 1 was seen: {r.text!r}")
    else:
        c.must(init, f"pid 1 was not seen: {r.text!r}")
    return HELD


@check("PR-06", prio="P0", title="no program raises privileges (setuid, file capabilities)",
       catches=("nnp,landlock,seccomp,verify",))
def pr06(c):
    if os.geteuid() != 0:
        c.inconclusive("only root can plant a set-uid program of another user")
    other = 65534 if c.ident == "root" else 0
    probe = Path(c.probe("ids")[0])
    suid, caps = c.ws / "suid", c.ws / "filecaps"
    for path in (suid, caps):
        c.plant(path, probe.read_bytes(), 0o755)
    os.chown(suid, other, other)
    suid.chmod(0o6755)
    # cap_setuid,cap_sys_admin=ep: struct vfs_cap_data, revision 2, effective.
    os.setxattr(caps, "security.capability", bytes.fromhex("0100000280002000" "00000000" * 2)[:20])
    ctl = c.control([suid, "ids"])
    want = f"uid {c.uid} {other} {other}"
    c.need_control(want in ctl.text, f"set-uid has no effect outside: {ctl}")
    before = c.sandbox(c.probe("ids")).text
    plain = re.search(r"^uid .*\ngid .*$", before, re.M)[0]
    for path in (suid, caps):
        r = c.sandbox([path, "ids"])
        if r.rc == 126 and not r.out and path == caps:  # rights that nobody inside can have: the kernel does not start it
            continue
        c.must(plain in r.text, f"{path.name}: ids changed: {r}")
        unprivileged(r.text, c, path.name)
    r = inside(c, "setids")
    c.must(r.rc != THROUGH, f"ids can be set: {r}")
    r = c.sandbox("for t in 'sudo -n id -u' 'su -c id' 'pkexec id -u' 'newuidmap 1 0 0 1'; do"
                  " timeout 3 $t </dev/null && echo THROUGH; done; true")
    c.must("THROUGH" not in r.text, f"a tool raised privileges: {r}")
    return HELD


@check("PR-07", prio="P0", title="no user namespace below ours",
       catches=("userns,seccomp,verify",), null=True)
def pr07(c):
    words = ["newuser", "newuser_clone", "newuser_clone3"]
    c.need_control(reached(c, words) == set(words), "no user namespaces outside either")
    got = attempts(c, words)
    c.must(THROUGH not in got.values(), f"got through: {got}")
    r = c.sandbox("unshare -Ur true && echo THROUGH; unshare -U true && echo THROUGH; "
                  "cat /proc/self/uid_map")
    c.must("THROUGH" not in r.text, f"unshare worked: {r}")
    return HELD


@check("PR-08", prio="P1", title="the limits on user namespaces cannot be raised from inside")
def pr08(c):
    knob = Path("/proc/sys/user/max_user_namespaces")
    before = knob.read_text()
    # Writing is for real; so first ask whether the door is open at all.
    opens = f"open,{knob},rw"
    c.must(attempts(c, [opens])[opens] != THROUGH, "the limit can be opened for writing")
    r = c.sandbox("echo 1000 > /proc/sys/user/max_user_namespaces && echo WROTE;"
                  "echo deny > /proc/self/setgroups && echo WROTE;"
                  "echo allow > /proc/self/setgroups && echo WROTE;"
                  "echo '0 0 1' > /proc/self/uid_map && echo WROTE;"
                  "echo '0 0 4294967295' > /proc/self/gid_map && echo WROTE; true")
    c.note(r.errtext[-300:])
    got = attempts(c, ["newuser", "newuser_clone"])
    c.must(THROUGH not in got.values(), f"a user namespace after the writes: {got}")
    c.must(knob.read_text() == before, "the host's limit changed")
    c.must("WROTE" not in r.text, f"a write was accepted: {r}")
    return HELD


BOOT_ID = "/proc/sys/kernel/random/boot_id"
NAMESPACES = ("user", "mnt", "pid", "ipc", "uts", "cgroup", "net")


@check("PR-09", prio="P1", title="all namespaces are our own and no other can be entered",
       catches=("pidns", "ipcns", "utsns", "cgroupns", "netns"), null=True)
def pr09(c):
    host = {n: os.readlink(f"/proc/self/ns/{n}") for n in NAMESPACES}
    ctl = c.control(c.probe("nsids"))
    c.need_control(all(v in ctl.text for v in host.values()), f"{ctl}")
    r = c.sandbox(c.probe("nsids"))
    found = dict(re.findall(r"^ns ((\w+):\[\d+\])$", r.text, re.M))
    found = {v: k for k, v in found.items()}
    if set(found) != set(NAMESPACES):
        needs_hosts_kernel(c, "it knows no such namespaces")
        c.inconclusive(f"not all namespaces are shown: {r}")
    same = [n for n in NAMESPACES if found[n] == host[n] and (n != "user" or has_step(c, USERNS))]
    if has_own_kernel(c):  # the first of each kind has the same number in every Linux: it is another one that counts here
        same = [n for n in (BOOT_ID,) if c.sandbox(["cat", n]).text in ("", Path(n).read_text())]
    c.must(not same, f"shared with the host: {same}")
    r = inside(c, "setns_all")
    c.must(r.rc != THROUGH, f"setns got through: {r}")
    return HELD


@check("PR-10", prio="P1", title="no way up by chroot, pivot_root or an older directory",
       catches=())
def pr10(c):
    secret = c.plant(c.out / "secret", word := c.uuid())
    ctl = c.control(c.probe("asroot", "chroot_walk", secret))
    c.need_control(word in ctl.text, f"the walk does not work outside: {ctl}")
    r = inside(c, "chroot_walk", secret)
    c.must(not c.leaks(r, word), "walked out")
    c.must(r.rc != THROUGH, f"chroot got through: {r}")
    return HELD


@check("PR-11", prio="P1", title="supplementary groups of the caller do not work inside",
       idents=("root",), catches=("groups",))
def pr11(c):
    # Only where the caller may drop them: an unprivileged caller's groups stay with its processes.
    c.account = dataclasses.replace(c.account, groups=(0, SPARE_GID))
    ctl = c.control(c.probe("ids"))
    c.need_control(f" {SPARE_GID}" in ctl.text, f"the group is not effective outside: {ctl}")
    canary = c.plant(c.ws / "group-file", "before", 0o060)
    os.chown(canary, 65534, SPARE_GID)
    p = c.start(["/bin/sh", "-c", f"echo after > {canary}; echo up; sleep 10"])
    if not p.wait_for("up", 8):
        c.inconclusive(f"did not come up: {p.stop()}")
    c.must(canary.read_text() == "before", "written by the group's right")
    seen = insiders()
    if not seen:
        c.inconclusive("no process inside was found from outside")
    for pid in seen:
        text = Path(f"/proc/{pid}/status").read_text()
        groups = re.search(r"^Groups:\s*(.*)$", text, re.M)[1].split()
        c.must(str(SPARE_GID) not in groups and "0" not in groups, f"groups of {pid}: {groups}")
    p.stop()
    return HELD


def limits_of(pid):
    return (Path(f"/proc/{pid}/limits").read_text(), os.getpriority(os.PRIO_PROCESS, pid),
            os.sched_getaffinity(pid))


@check("PR-12", prio="P2", title="limits and priority of processes outside",
       catches=("pidns",), null=True)
def pr12(c):
    victim = Sentinel(c)
    ctl = c.control(c.probe("limits", victim.pid))
    c.need_control(ctl.rc == THROUGH, f"nothing changed outside: {ctl}")
    s = Sentinel(c)
    before = limits_of(s.pid)
    r = inside(c, "limits", s.pid)
    c.must(limits_of(s.pid) == before, "the sentinel's limits changed")
    c.must(r.rc != THROUGH, f"accepted: {r}")
    return HELD


@check("PR-14", prio="P1", title="--user takes a name and nothing that looks like one",
       forms=("run",), idents=("user", "root"))
def pr14(c):
    ran = c.ws / "ran"
    for bad in ("1000x", "-1", "4294967295", "4294967296", "", "0x0", "root:", ":0", "root\n",
                "no-such-user-here", "../root", " root", "+0"):
        r = c.sandbox(["/bin/sh", "-c", f"id -u > {ran}"], flags=[f"--user={bad}"], refusal_ok=True)
        c.must(not ran.exists(), f"--user {bad!r} ran as {ran.exists() and ran.read_text()!r}")
        c.must(r.rc in (2, 125), f"--user {bad!r} gave {r}")
        c.must(r.err.strip(), f"--user {bad!r} was refused without a word")
    if c.ident == "user":
        r = c.sandbox(["/bin/sh", "-c", f"id -u > {ran}"], flags=["--user", "root"],
                      refusal_ok=True)
        c.must(r.rc in (2, 125) and not ran.exists(), f"an ordinary user may name another: {r}")
    return HELD


CANARY_LIB = r"""
#include <fcntl.h>
#include <unistd.h>
__attribute__((constructor)) static void ran(void)
{
	char path[512];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	int fd = open(OUT, O_WRONLY | O_CREAT | O_APPEND, 0666);

	if (fd >= 0 && n > 0 && write(fd, path, (size_t)n) > 0 && write(fd, "\n", 1) > 0)
		close(fd);
}
"""


@check("PR-15", prio="P0", title="LD_PRELOAD, BASH_ENV and their like are not obeyed by helpers",
       forms=("run", "exec"), catches=("env",))
def pr15(c):
    ran, lib = c.out / "ran", c.ws / "canary.so"
    r = subprocess.run(["cc", "-shared", "-fPIC", f'-DOUT="{ran}"', "-o", lib, "-x", "c", "-"],
                       input=CANARY_LIB.encode(), capture_output=True)
    c.need_control(r.returncode == 0, f"cannot build the canary: {r.stderr!r}")
    script = c.plant(c.ws / "startup", f"echo started >> {ran}\n", 0o755)
    env = {"LD_PRELOAD": lib, "LD_AUDIT": lib, "LD_LIBRARY_PATH": c.ws, "GCONV_PATH": c.ws,
           "BASH_ENV": script, "ENV": script, "PYTHONSTARTUP": script, "PYTHONPATH": c.ws,
           "NODE_OPTIONS": f"--require {script}", "GIT_SSH_COMMAND": script, "GIT_EDITOR": script,
           "GIT_EXEC_PATH": c.ws, "PERL5OPT": f"-I{c.ws}", "GIT_CONFIG_COUNT": "0"}
    c.plant(c.ws / ".env", "".join(f"{k}={v}\n" for k, v in env.items()))
    ctl = c.control(["/bin/true"], env={"LD_PRELOAD": lib})
    c.need_control(ran.exists(), f"the library is not loaded outside: {ctl}")
    with c.host_edit():
        ran.unlink()
    r = c.sandbox(c.probe("env"), env=env)
    names = {bytes.fromhex(x).split(b"=")[0].decode()
             for x in re.findall(r"^env ([0-9a-f]*)$", r.text, re.M)}
    c.must(not names & set(env), f"passed inside: {sorted(names & set(env))}")
    who = ran.read_text().split() if ran.exists() else []
    # The loader obeys the caller for the caller's own command; nothing further may.
    helpers = [w for w in who if w != c.cfg.vitrine]
    if ran.exists():
        ran.unlink()
    c.must(not helpers, f"the canary ran in {helpers}")
    return HELD


def real_engines(c, env):
    """Podman keeps images in its user's home. An ordinary user's leaves a process that holds its user namespace, too, and
    writes down which."""
    own = c.mkdir(c.root / "podman", 0o700)
    c.vitrine("engines", env={**env, "HOME": str(own), "XDG_RUNTIME_DIR": str(own)}, timeout=60)
    for pid in own.rglob("pause.pid"):
        os.kill(int(pid.read_text()), signal.SIGKILL)


@check("PR-16", prio="P0", title="the workspace in PATH brings no helper of its own to run",
       forms=("run",))
def pr16(c):
    ran = c.out / "ran"
    names = ("git", "sh", "bash", "bwrap", "ip", "mount", "umount", "newuidmap", "newgidmap",
             "vitrine-init", "vitrine-gate", "iptables", "nft", "id", "stty", "tput", "uname", "loginctl",
             "nsjail", "firejail", "systemd-run", "crun", "runc", "runsc", "podman", "podman-remote", "docker",
             "qemu-system-x86_64", "virtiofsd")
    for n in names:
        c.plant(c.ws / n, f"#!/bin/sh\necho {n} >> {ran}\n", 0o755)
    ctl = c.control([c.ws / "git"])
    c.need_control(ran.exists(), f"{ctl}")
    with c.host_edit():
        ran.unlink()
    env = {"PATH": f"{c.ws}:.:{c.env['PATH']}"}
    for words in (["run", "--", "/bin/true"], ["run", "--memory", "1g,optional", "--", "/bin/true"], ["run", "-d", "--", "/bin/true"],
                  ["explain", "--", "/bin/true"], ["doctor"], ["engines", "--quick"]):
        c.vitrine(*words, env=env)
        c.must(not ran.exists(), f"{words[0]} ran {ran.exists() and ran.read_text().split()}")
    real_engines(c, env)
    c.must(not ran.exists(), f"engines ran {ran.exists() and ran.read_text().split()}")
    return HELD


@check("PR-17", prio="P2", title="a crash leaves no core file on the host")
def pr17(c):
    if Path("/proc/sys/kernel/core_pattern").read_text().startswith("|"):
        c.inconclusive("this host pipes its cores")

    def cores():
        return [p for d in (c.out, c.home) for p in d.rglob("core*") if p.is_file()]

    c.control("ulimit -c unlimited; " + " ".join(c.probe("crash")))
    c.need_control(bool(cores()), "no core outside either")
    for p in cores():
        p.unlink()
    r = c.sandbox("ulimit -c unlimited; " + " ".join(c.probe("crash")))
    c.must("core 0\n" in r.text, f"the hard limit is not 0: {r}")
    c.must(not cores(), f"left: {cores()}")
    return HELD


@check("PR-19", prio="P1", title="seen from the host: every task inside is filtered and powerless",
       catches=("seccomp,verify", "caps,verify", "nnp,landlock,seccomp,verify"))
def pr19(c):
    if not is_machine(c):
        needs_hosts_kernel(c, "the tasks that the host sees are the tool's")
    wanted = ["CapEff:\t0000000000000000", "CapPrm:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"]
    p = c.start(["/bin/sh", "-c", "echo up; sleep 10 & sleep 10"])
    if not p.wait_for("up", 8):
        c.inconclusive(f"did not come up: {p.stop()}")
    if is_machine(c):  # what the host sees of it, and what somebody who breaks out of it is
        seen = machines()
        c.need_control(len(seen) == 1, f"machines: {seen}")
        same = [n for n in ("user", "mnt", "net", "ipc", "uts")
                if os.readlink(f"/proc/{seen[0]}/ns/{n}") == os.readlink(f"/proc/self/ns/{n}")]
        c.must(not same, f"the machine shares with the host: {same}")
    else:
        seen, wanted = insiders(), [*wanted, "CapBnd:\t0000000000000000"]
        if len(seen) < 2:
            c.inconclusive(f"fewer processes inside than were started: {seen}")
    for pid in seen:
        for task in os.listdir(f"/proc/{pid}/task"):
            text = Path(f"/proc/{pid}/task/{task}/status").read_text()
            for want in wanted:
                c.must(want in text, f"{pid}/{task} {text.split()[1]}: not {want!r}")
    p.stop()
    return HELD


def ids_of(pid):
    with suppress(OSError):
        return set(" ".join(re.findall(r"^(?:Uid|Gid|Groups):(.*)$", Path(f"/proc/{pid}/status").read_text(), re.M)).split())
    return set()


@check("PR-21", prio="P0", forms=("run",), idents=("root",), catches=("mapped-ids",),
       title="behind another engine neither root's sandbox nor the tool that makes its walls has an id of root's")
def pr21(c):
    p = c.start(["/bin/sh", "-c", "echo up; sleep 30"], flags=["--engine", "crun"])
    if not p.wait_for("up", 15):
        c.inconclusive(f"did not come up: {p.stop()}")
    mine = {pid: name for pid, name in descendants(os.getpid()) if not name.startswith("vitrine") or name == "vitrine-init"}
    c.need_control(len(mine) >= 3, f"tool, init and command were not found: {mine}")
    for pid, name in mine.items():
        c.must("0" not in ids_of(pid), f"{name} has an id of root's: {ids_of(pid)}")
    p.stop()
    return HELD


@check("PR-20", prio="P1", title="sandboxes inside the sandbox weaken nothing", forms=("run",))
def pr20(c):
    inner = c.plant(c.ws / "inner", Path(c.cfg.vitrine).read_bytes(), 0o755)
    words = ["newuser", "mount", "bpf", "io_uring_setup", "keyctl"]
    r = c.sandbox([inner, "run", "--", *c.probe("each", *words)], refusal_ok=True)
    got = verdicts(r)
    c.must(THROUGH not in got.values(), f"got through in the inner one: {got}")
    c.must(got or r.rc != 0, f"it neither ran nor refused: {r}")
    ctl = c.control(["/usr/bin/bwrap", "--unshare-all", "--ro-bind", "/", "/", "/bin/true"])
    c.need_control(ctl.ok, f"bwrap does not work outside: {ctl}")
    r = c.sandbox(["/usr/bin/bwrap", "--unshare-all", "--ro-bind", "/", "/", "/bin/true"],
                  refusal_ok=True)
    c.must(r.rc != 0, "bwrap made a sandbox inside")
    return HELD
