# SPDX-License-Identifier: Apache-2.0
"""KS - the kernel's attack surface: calls, numbers, doors and files that an agent never needs.

Nearly all of these are decided by where a call ends: at the filter or in the kernel (see probe.c).
"""

import os
from pathlib import Path

from harness import HELD, OWN_DEVICES, check, has_lesser_kernel, host_mounts
from outside import THROUGH, Sentinel, answers, attempts, inside, reached, verdicts, wall


def names_of_host():
    """What must not have moved: the host's name and clock, its modules."""
    modules = Path("/proc/modules")
    return (os.uname().nodename, modules.read_text() if modules.exists() else "")


@check("KS-01", prio="P0", title="io_uring cannot be set up, entered or registered",
       catches=("seccomp,verify",), null=True)
def ks01(c):
    wall(c, ["io_uring_setup", "io_uring_enter", "io_uring_register"])
    return HELD


@check("KS-02", prio="P0", title="bpf(2)", catches=("seccomp,verify",), null=True)
def ks02(c):
    wall(c, ["bpf"])
    return HELD


@check("KS-03", prio="P0", title="userfaultfd(2) and its device",
       catches=("seccomp,verify",), null=True)
def ks03(c):
    wall(c, ["userfaultfd"])
    got = attempts(c, ["open,/dev/userfaultfd"])
    c.must(got["open,/dev/userfaultfd"] != THROUGH, "/dev/userfaultfd can be opened")
    return HELD


@check("KS-04", prio="P0", title="perf_event_open(2)", catches=("seccomp,verify",), null=True)
def ks04(c):
    wall(c, ["perf_event_open"])
    return HELD


INT80 = ["mount", "umount2", "ptrace", "clone_newuser", "unshare", "setns", "pivot_root",
         "open_tree", "keyctl", "add_key", "bpf", "userfaultfd", "perf_event_open",
         "io_uring_setup", "open_by_handle_at", "tiocsti", "clock_settime", "socket_vsock"]


@check("KS-05", prio="P0", title="no call escapes the filter through the 32-bit door (int 0x80)",
       catches=("seccomp,verify", "seccomp-arch"), null=True)
def ks05(c):
    # The door itself may be open to harmless calls; what is refused by name is refused here too.
    wall(c, ["int80_" + w for w in INT80])
    return HELD


@check("KS-06", prio="P1", title="x32 numbers")
def ks06(c):
    wall(c, ["x32_getpid", "x32_mount", "x32_ptrace"])
    return HELD


@check("KS-07", prio="P1", title="socketcall(2) from the 32-bit door",
       catches=("seccomp,verify", "seccomp-arch"), null=True)
def ks07(c):
    wall(c, ["socketcall_inet", "socketcall_vsock", "socketcall_alg"], absent=("socketcall_alg",))
    return HELD


MOUNTS = ["mount", "umount2", "fsopen", "fsconfig", "fsmount", "fspick", "open_tree", "move_mount",
          "mount_setattr", "pivot_root"]


@check("KS-08", prio="P0", title="every way to change a mount",
       catches=("seccomp,verify",), null=True)
def ks08(c):
    before = host_mounts(c)
    wall(c, MOUNTS)
    c.must(host_mounts(c) == before, "the host's mounts changed")
    return HELD


NEW = ["newuser", "newns", "newpid", "newipc", "newuts", "newnet", "newcgroup"]


@check("KS-09", prio="P0", title="clone, clone3, unshare with each CLONE_NEW bit; setns",
       catches=("seccomp,verify", "seccomp-args,verify"), null=True)
def ks09(c):
    words = ["clone_" + w for w in NEW] + ["unshare_" + w for w in [*NEW, "newtime"]]
    wall(c, [*words, "setns", "clone3"])
    r = inside(c, "clone3")
    c.must("clone3 ENOSYS" in r.text, f"libc falls back from clone3 on ENOSYS only: {r.text!r}")
    return HELD


@check("KS-10", prio="P0", title="kexec and modules, nothing loaded on demand")
def ks10(c):
    words = ["kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module"]
    absent = [w for w in words if w not in reached(c, words)]
    before = names_of_host()
    # What autoloads: a socket family, a file system type. Both are tried for their side effect.
    got = attempts(c, words)
    c.must(not [w for w in words if got[w] == THROUGH], f"got through: {got}")
    c.sandbox("mount -t cramfs none /tmp; mount -t hfs none /tmp; true")
    attempts(c, ["sock_tipc", "sock_rds", "sock_can", "sock_bluetooth"])
    c.must(names_of_host() == before, "a module was loaded")
    c.need_control(len(absent) < len(words), "this kernel has none of the calls")
    return HELD


@check("KS-11", prio="P0", title="ptrace, process_vm, kcmp, pidfd_getfd, process_madvise outside",
       null=True)
def ks11(c):
    # No switch turns this red: the user namespace alone keeps us from tracing its outside.
    s = Sentinel(c)
    words = [f"ptrace,{s.pid}", f"readmem,{s.pid},{s.addr},32", f"writemem,{s.pid},{s.addr}",
             f"kcmp,{s.pid}", f"pidfd_getfd,{s.pid},0", f"process_madvise,{s.pid}"]
    found = {w for w, v in verdicts(c.control(c.probe("each", *words))).items() if v == THROUGH}
    # The last one asks for CAP_SYS_NICE, even of the process's owner.
    lost = [w for w in (words if c.ident == "root" else words[:-1]) if w not in found]
    c.need_control(not lost, f"refused outside as well: {lost}")
    got = attempts(c, words)
    c.must(THROUGH not in got.values(), f"got through: {got}")
    c.must(s.running, "the sentinel does not run any more")
    return HELD


@check("KS-12", prio="P2", title="personality(2) only with harmless values",
       catches=("seccomp,verify",), null=True)
def ks12(c):
    wall(c, ["personality,0x0400000", "personality,0x0040000"])
    got = attempts(c, ["personality,0xffffffff"])
    c.must(got["personality,0xffffffff"] == THROUGH, "the query of the personality is refused")
    return HELD


@check("KS-13", prio="P1", title="clock, host name, swap, accounting, quota, ports",
       catches=("seccomp,verify",), null=True)
def ks13(c):
    words = ["reboot", "swapon", "swapoff", "sethostname", "setdomainname", "clock_settime",
             "settimeofday", "adjtimex", "syslog", "acct", "quotactl", "iopl", "ioperm", "vhangup",
             "lookup_dcookie"]
    before = names_of_host()
    wall(c, words, privileged=("swapon", "swapoff", "adjtimex", "syslog", "acct", "vhangup"),
         absent=("iopl", "ioperm", "quotactl", "lookup_dcookie"))
    c.must(names_of_host() == before, "the host's name or modules changed")
    return HELD


def is_unknown(c, word, line):
    """Another kernel may not show it at all."""
    return has_lesser_kernel(c) and f" {word}=" not in line


def unprivileged(text, c, what):
    """Every task the probe saw has no capability, no way to gain one, and a filter."""
    tasks = [line for line in text.splitlines() if line.startswith("task ")]
    if not tasks:
        c.inconclusive(f"{what}: no task seen: {text[-300:]!r}")
    for line in tasks:
        for cap in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            c.must(f" {cap}=0000000000000000" in line or is_unknown(c, cap, line), f"{what}: {cap} not empty: {line}")
        c.must(" NoNewPrivs=1" in line or is_unknown(c, "NoNewPrivs", line), f"{what}: may gain privileges: {line}")
        c.must(" Seccomp=2" in line, f"{what}: unfiltered: {line}")


@check("KS-14", prio="P1", title="programs without a name stay confined (memfd, deleted, /dev/shm)",
       catches=("seccomp,verify", "caps,verify", "nnp,landlock,seccomp,verify"))
def ks14(c):
    words = ["io_uring_setup", "bpf", "mount"]
    gone = f"{c.ws}/gone"
    for argv in (["memexec"], ["goneexec", gone], ["goneexec", "/dev/shm/gone"]):
        ctl = c.control(c.probe(*argv, "each", *words))
        c.need_control(all(verdicts(ctl).get(w) == THROUGH for w in words), f"{argv}: {ctl}")
        c.sandbox(["/bin/rm", "-f", gone])
        r = c.sandbox(c.probe(*argv, "each", *words), refusal_ok=True)
        got = verdicts(r)
        if set(got) != set(words):
            # That it may not be started at all is as good; but then the probe says so itself.
            if got or not answers(r, argv[0]):
                c.inconclusive(f"{argv}: {r}")
            continue
        c.must(THROUGH not in got.values(), f"{argv}: got through: {got}")
        unprivileged(c.sandbox(c.probe(*argv, "ids")).text, c, " ".join(argv))
    return HELD


SYSCTLS = {
    "/proc/sys/kernel/core_pattern": "|/bin/false",
    "/proc/sys/kernel/modprobe": "/bin/false",
    "/proc/sys/kernel/hotplug": "/bin/false",
    "/proc/sys/vm/overcommit_memory": "1",
    "/proc/sys/vm/drop_caches": "0",
    "/proc/sys/kernel/randomize_va_space": "0",
    "/proc/sys/fs/file-max": "77777",
    "/proc/sys/fs/binfmt_misc/register": ":x:M::zz::/bin/false:",
    "/proc/sysrq-trigger": "\n",
    "/proc/1/oom_score_adj": "0",
}


def read_all(paths):
    found = {}
    for p in paths:
        try:
            found[p] = Path(p).read_text()
        except OSError as ex:
            found[p] = ex.errno
    return found


@check("KS-15", prio="P0", title="the kernel's settings below /proc",
       catches=())
def ks15(c):
    kept = [p for p in SYSCTLS if p.startswith("/proc/sys/")]
    before = read_all(kept)
    # Opening for writing changes nothing, so even the host's root may do it as a control.
    words = [f"open,{p},rw" for p in SYSCTLS if p != "/proc/1/oom_score_adj"]
    if c.ident == "root":
        w = f"open,{kept[0]},rw"
        ctl = c.control(c.probe("each", w))
        c.need_control(verdicts(ctl).get(w) == THROUGH, f"not writable outside: {ctl}")
    got = attempts(c, words)
    c.must(THROUGH not in got.values(), f"can be opened for writing: {got}")
    r = c.sandbox("\n".join(f"printf '%s' '{v}' > {p}" for p, v in SYSCTLS.items()
                            if p not in ("/proc/sysrq-trigger", "/proc/sys/vm/drop_caches"))
                  + "\ntrue")
    c.note(r.errtext[-200:])
    c.must(read_all(kept) == before, "a setting of the host changed")
    return HELD


SYS = ["/sys/kernel/uevent_helper", "/sys/power/state",
       "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/fs/cgroup/memory/release_agent",
       "/sys/fs/cgroup/memory/cgroup.procs",
       "/sys/module/kernel/parameters/panic", "/sys/kernel/tracing/trace", "/sys/kernel/debug",
       "/sys/firmware/efi/efivars", "/sys/kernel/security", "/sys/block", "/sys/class/net"]


@check("KS-16", prio="P0", title="the kernel's settings below /sys")
def ks16(c):
    there = [p for p in SYS if os.path.exists(p)]
    c.need_control(bool(there), "no /sys here")
    before = read_all([p for p in there if os.path.isfile(p) and "tracing" not in p])
    got = attempts(c, [f"open,{p}" + ("" if os.path.isdir(p) else ",rw") for p in SYS])
    files = {w: v for w, v in got.items() if w.endswith(",rw")}
    c.must(THROUGH not in files.values(), f"can be opened for writing: {files}")
    r = c.sandbox("find /sys -writable -type f 2>/dev/null | head -5")
    c.must(not r.text.strip() or has_lesser_kernel(c), f"writable: {r.text!r}")
    after = read_all(list(before))
    c.must({p: v for p, v in after.items() if "cgroup.procs" not in p} ==
           {p: v for p, v in before.items() if "cgroup.procs" not in p}, "changed on the host")
    return HELD


DEVICES = {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm", "fd", "stdin",
           "stdout", "stderr"}
OTHERS = ["kvm", "fuse", "net/tun", "mem", "kmem", "port", "kmsg", "loop-control", "loop0", "vda",
          "sda", "dri/card0", "vhost-net", "vhost-vsock", "vsock", "uinput", "snd/seq", "console",
          "tty0", "ttyS0", "mapper/control", "hpet", "userfaultfd"]


@check("KS-17", prio="P0", title="/dev holds the harmless nodes and nothing else",
       catches=("dev",), timeout=100)
def ks17(c):
    r = c.sandbox(["find", "/dev", "-mindepth", "1", "-maxdepth", "1", "-printf", "%f\\n"])
    names = set(r.text.split()) - (OWN_DEVICES if has_lesser_kernel(c) else set())
    if not names:
        c.inconclusive(f"no listing: {r}")
    # mqueue is a private IPC file system, not a device; it may be there.
    c.must(names <= DEVICES | {"mqueue", "console"}, f"more in /dev: {names - DEVICES}")
    # With a terminal of its own a console is that pty.
    if "console" in names:
        r = c.sandbox(["/bin/stat", "-c", "%t", "/dev/console"])
        c.must(r.text.strip() == "88", f"/dev/console is not a pty: {r.text!r}")
    c.must({"null", "zero", "urandom", "tty"} <= names, f"missing in /dev: {names}")
    got = attempts(c, [f"open,/dev/{d}" for d in OTHERS if d not in names
                       and not (has_lesser_kernel(c) and d.split("/")[0] in OWN_DEVICES)])
    c.must(THROUGH not in got.values(), f"can be opened: {got}")
    r = c.sandbox("find / -xdev \\( -type b -o -type c \\) 2>/dev/null; "
                  "find /dev /tmp /var/tmp /usr/lib /run -type b 2>/dev/null; true", timeout=60)
    c.must(not r.text.strip(), f"device nodes: {r.text!r}")
    return HELD


@check("KS-19", prio="P1", title="newest and unknown calls are refused by default",
       catches=("seccomp,verify",), null=True)
def ks19(c):
    new = ["statmount", "listmount", "open_tree_attr", "file_setattr", "lsm_set_self_attr"]
    unknown = [f"nr_{n}" for n in (470, 471, 472, 473, 474, 475, 1000)]
    wall(c, [*new, *unknown], absent=[*new, *unknown])
    r = c.sandbox(c.probe("each", *unknown), refusal_ok=True)
    for w in unknown:
        c.must(f"{w} ENOSYS" in r.text, f"unknown calls must look absent: {r.text!r}")
    return HELD


@check("KS-21", prio="P1", title="FUSE, overlay, loop and bind mounts by the tools of the system",
       catches=())
def ks21(c):
    ctl = c.control(["/usr/bin/unshare", "-Urm", "/bin/sh", "-c",
                     "mount -t tmpfs x /mnt && echo yes"])
    c.need_control("yes" in ctl.text, f"no mount in a user namespace: {ctl}")
    # The script below acts for real; it is let loose only where the calls themselves are refused.
    wall(c, MOUNTS)
    before = host_mounts(c)
    r = c.sandbox("""
        list() { cut -d' ' -f5- /proc/self/mountinfo; }
        for d in /*; do ls $d/ >/dev/null 2>&1; done  # virtiofs shows a mount of the view when it is first visited
        list > /tmp/before
        mkdir -p /tmp/a /tmp/b /tmp/w
        mount -t tmpfs x /tmp/a && echo THROUGH
        mount --bind /tmp/a /tmp/b && echo THROUGH
        mount -t overlay o -o lowerdir=/tmp/a,upperdir=/tmp/b,workdir=/tmp/w /tmp/a && echo THROUGH
        mount -o remount,rw /usr && echo THROUGH
        umount /proc && echo THROUGH
        losetup -f && echo THROUGH
        unshare -Urm mount -t tmpfs x /tmp/a && echo THROUGH
        unshare -Urmp --fork mount -t proc p /tmp/a && echo THROUGH
        list > /tmp/after
        cmp /tmp/before /tmp/after && echo SAME""")
    c.must("THROUGH" not in r.text, f"a mount: {r}")
    c.must("SAME" in r.text, f"the mounts inside changed: {r}")
    c.must(host_mounts(c) == before, "the host's mounts changed")
    return HELD


@check("KS-22", prio="P2", title="stacked Landlock layers and syscall dispatch open nothing",
       catches=("seccomp,verify",), null=True)
def ks22(c):
    words = ["io_uring_setup", "bpf", "mount", *([] if has_lesser_kernel(c) else ["int80_mount"]), "keyctl"]
    for prefix in (["layers", "16"], ["dispatch"]):
        ctl = c.control(c.probe(*prefix, "each", *words))
        c.need_control(all(verdicts(ctl).get(w) == THROUGH for w in words), f"{prefix}: {ctl}")
        r = c.sandbox(c.probe(*prefix, "each", *words), refusal_ok=True)
        got = verdicts(r)
        if set(got) != set(words):
            c.inconclusive(f"{prefix}: {r}")
        c.must(THROUGH not in got.values(), f"{prefix}: got through: {got}")
    return HELD
