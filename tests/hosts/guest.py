# SPDX-License-Identifier: Apache-2.0
"""What run.py runs in its virtual machine, as root, after the boot. One line a case goes to the port, and the totals last.

A case fails by an exception. `user` is a person who logs in (PAM, a session of logind, a manager of systemd's); `root` is
the machine's own service."""

import json
import os
import pwd
import re
import shlex
import subprocess
import sys
import time
import traceback
from pathlib import Path

PAYLOAD = Path("/payload")
V = PAYLOAD / "build" / "vitrine"
PROBE = PAYLOAD / "helpers" / "probe"
USER = "tester"
CASES = []
PROGRESS = print    # main() sends it through the port

# Checks of the containment suite that say most about another kernel and another host, and are cheap enough for emulation:
# files, descriptors, processes, capabilities, nested namespaces, system calls, network, terminal, memory, neighbours.
CONTAIN = "FR-0[13]|FW-0[129]|FD-01|PR-0[1357]|TT-01|IP-0[13]|KS-0[189]|KS-15|NT-0[13]|RX-02|SB-02|OK-04"


def case(fn):
    CASES.append(fn)
    return fn


class Result:
    def __init__(self, p, seconds):
        self.rc, self.out, self.err, self.seconds = p.returncode, p.stdout, p.stderr, seconds

    def __str__(self):
        return f"rc={self.rc} {self.seconds:.1f} s out={self.out[-600:]!r} err={self.err[-600:]!r}"


def sh(line, who="root", timeout=180):
    """A line for a shell; as the user by a login of his."""
    argv = ["sh", "-c", line] if who == "root" else ["su", "-l", USER, "-c", line]
    t0 = time.monotonic()
    p = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=timeout,
                       cwd="/root")
    return Result(p, time.monotonic() - t0)


def run(who, flags, *command, timeout=180, program=V):
    words = " ".join(shlex.quote(str(w)) for w in (program, "run", *flags, "--", *command))
    return sh(f"mkdir -p ~/w && cp -u {PROBE} ~/w/ && cd ~/w && {words}", who, timeout)


def must(ok, why=""):
    if not ok:
        raise AssertionError(str(why))


def doctor(who, program=V):
    r = sh(f"{program} doctor --json", who)
    found = json.loads(r.out)
    return found, {c["id"]: c for c in found["checks"]}


def last_json(r):
    return json.loads([line for line in r.err.splitlines() if line.startswith("{")][-1])


# ------------------------------------------------------------------------------------------------ the host


@case
def this_host(note):
    note(os.uname().release, Path("/sys/kernel/security/lsm").read_text(), sh("systemctl --version | head -1").out)
    must(Path("/sys/fs/cgroup/cgroup.controllers").exists(), "no control groups of version 2")
    must("session-" in sh("cat /proc/self/cgroup", "user").out, "su makes no session")


@case
def doctor_sees_control_groups(note):
    for who in ("user", "root"):
        found, checks = doctor(who)
        cg = checks["cgroup"]
        note(who, cg["detail"])
        must(found["can_run"], found)
        must(cg["state"] == "works", cg)
        for word in ("memory", "cpu", "pids"):
            must(word in cg["detail"].split("; not")[0], cg)


@case
def the_demo(note):
    for who in ("user", "root"):
        r = sh(f"mkdir -p ~/w && cd ~/w && {V} demo", who, 300)
        must(r.rc == 0, r)
        note(who, f"{r.seconds:.0f} s", r.out.strip().splitlines()[-1])


# ------------------------------------------------------------------------------------------------ limits


@case
def memory_is_the_kernels(note):
    for who in ("user", "root"):
        r = run(who, ["--memory", "64m", "--json"], "./probe", "touchmem", "128", "5")
        must(r.rc == 137 and last_json(r)["reason"] == "memory", r)
        r = sh(f"mkdir -p ~/w && cd ~/w && {V} explain --json --memory 64m -- true", who)
        limits = json.loads(r.out)["limits"]
        must(limits["memory"]["by"] == "kernel", limits)
        r = run(who, ["--memory", "64m"], "./probe", "touchmem", "16", "1")
        must(r.rc != 137, f"less than the limit was killed: {r}")


@case
def cpus_are_limited(note):
    burn = "t=$(date +%s%N); n=0; while [ $(( $(date +%s%N) - t )) -lt 4000000000 ]; do n=$((n+1)); done; times | head -1; echo $n"
    for who in ("user", "root"):
        full = int(run(who, [], "sh", "-c", burn).out.split()[-1])
        some = int(run(who, ["--cpus", "0.25"], "sh", "-c", burn).out.split()[-1])
        note(who, f"{full} rounds, with a quarter {some}")
        must(some < full * 0.6, f"{some} of {full} rounds with a quarter of a processor")


@case
def pids_are_limited(note):
    for who in ("user", "root"):
        r = run(who, ["--pids", "50"], "./probe", "forkloop", "200")
        made = int(re.search(r"^made (\d+)$", r.out, re.M)[1])
        must(20 <= made <= 50, r)


@case
def block_io_is_limited_or_refused(note):
    write = "dd if=/dev/zero of=f bs=256k count=16 oflag=direct 2>&1; rm -f f"
    r = run("root", ["--io-write", "1m"], "sh", "-c", write)
    must(r.rc == 0 and r.seconds > 2.5, f"4 MiB at 1 MiB a second: {r}")
    note("root", f"4 MiB at 1 MiB/s took {r.seconds:.1f} s")
    # systemd hands an ordinary user no block I/O unless the administrator says so.
    r = run("user", ["--io-write", "1m"], "sh", "-c", write)
    given = "io" in Path(f"/sys/fs/cgroup/user.slice/user-{uid()}.slice/user@{uid()}.service/cgroup.controllers").read_text().split()
    must(given or (r.rc == 125 and "io" in r.err), r)
    note("user", r.err.strip()[:200])


@case
def no_scope_stays(note):
    def left():
        return sh("systemctl --plain --no-legend list-units --all 'vitrine-[0-9]*'").out + sh(
            "systemctl --user --plain --no-legend list-units --all 'vitrine-[0-9]*'", "user").out
    end = time.monotonic() + 15
    while left() and time.monotonic() < end:
        time.sleep(0.5)
    must(not left(), left())
    must(not list(Path("/sys/fs/cgroup").rglob("vitrine-run-*")), "a group stays")


@case
def a_named_one_keeps_its_limits(note):
    r = sh(f"mkdir -p ~/w && cp -u {PROBE} ~/w/ && cd ~/w && {V} create --name kept --memory 64m && {V} start kept && {V} exec kept -- ./probe touchmem 128 5; "
           f"echo =$?; {V} exec kept -- true; echo =$?; {V} stop -t 0 kept; {V} rm -f kept", "user")
    must("=137" in r.out and "=0" in r.out, r)


def uid():
    return pwd.getpwnam(USER).pw_uid


@case
def the_end_of_a_login_is_told(note):
    conf = Path("/etc/systemd/logind.conf.d/test.conf")
    conf.parent.mkdir(exist_ok=True)
    must(doctor("user")[1]["logind"]["state"] == "works", "before")
    conf.write_text("[Login]\nKillUserProcesses=yes\n")
    c = doctor("user")[1]["logind"]
    must(c["state"] == "weaker" and "linger" in c["fix"], c)
    conf.unlink()


# ---------------------------------------------------------------------------------------------- AppArmor


def profile(text):
    f = Path("/etc/apparmor.d/vitrine-test")
    f.write_text(text)
    return sh(f"apparmor_parser -r -W {f}")


@case
def the_apparmor_profile(note):
    """It loads, attaches by path, and what it names may make user namespaces where others may not."""
    if "apparmor" not in Path("/sys/kernel/security/lsm").read_text():
        note("no AppArmor in this kernel")
        return
    sh(f"rm -rf /opt/v /opt/closed; cp -r {PAYLOAD}/build /opt/v; cp -r {PAYLOAD}/build /opt/closed")
    text = (PAYLOAD / "data" / "apparmor" / "vitrine").read_text()
    r = profile(re.sub(r"^@\{VITRINE\} = .*", "@{VITRINE} = /opt/v/vitrine", text, flags=re.M))
    if r.rc and "abi" in r.err:
        note("this AppArmor is older than the profile's language:", r.err.strip().splitlines()[0])
        return
    must(r.rc == 0, r)
    r = run("user", [], "cat", "/proc/self/attr/current", program="/opt/v/vitrine")
    must(r.rc == 0, r)
    note("inside:", r.out.strip())
    must("vitrine" in sh("cat /sys/kernel/security/apparmor/profiles").out, "not loaded")
    # What Ubuntu's restriction does to every program without a profile, done to this one.
    r = profile("abi <abi/4.0>,\ninclude <tunables/global>\n"
                "profile vitrine-closed /opt/closed/vitrine {\n  allow all,\n  audit deny userns,\n}\n")
    if r.rc:
        note("no way to close it for the comparison:", r.err.strip()[:200])
        return
    features = Path("/sys/kernel/security/apparmor/features/namespaces")
    note("namespaces:", {p.name: p.read_text().strip() for p in features.glob("*") if p.is_file()})
    r = run("user", [], "cat", "/proc/self/attr/current", program="/opt/closed/vitrine")
    note("closed:", r.out, r.err.strip()[:300])
    must(r.rc == 125, r)
    found, checks = doctor("user", "/opt/closed/vitrine")
    must(checks["namespaces"]["state"] == "missing", checks["namespaces"])
    must("vitrine-closed" in checks["namespaces"]["fix"], checks["namespaces"])


# --------------------------------------------------------------------------------------------- containment


@case
def the_containment_suite(note):
    tools = [w for p in (PAYLOAD / "helpers").iterdir() for w in ("--tool", f"{p.name}={p}")]
    argv = ["python3", "run.py", "--vitrine", V, *tools, "--only", f"^({CONTAIN})$", "--form", "run", "--jobs", "2", "-v"]
    p = subprocess.Popen([str(a) for a in argv], cwd=PAYLOAD / "tests" / "contain", stdin=subprocess.DEVNULL, text=True,
                         errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    held, last = 0, ""
    for line in p.stdout:                                  # as it comes: the machine may be slower than our patience
        word = line.split()[3:4]
        held += word == ["HELD"]
        last = line.strip() or last
        if word and word[0] in ("BREACH", "INCONCLUSIVE"):
            note(line.strip()[:600])
            PROGRESS(f"     {line.strip()[:300]}")
    note(f"{held} held;", last)
    must(p.wait() == 0 and held > 30, last)


# ------------------------------------------------------------------------------------------------- order


def main():
    out = open("/dev/virtio-ports/vitrine.results", "w", encoding="utf-8")

    def say(text):
        print(text, file=out, flush=True)
        print(text, flush=True)

    global PROGRESS
    PROGRESS = say
    only = (PAYLOAD / "only").read_text().split()
    passed = failed = 0
    # The boot is over when nothing waits but ourselves.
    end = time.monotonic() + 120
    while len(sh("systemctl --no-legend list-jobs").out.splitlines()) > 3 and time.monotonic() < end:
        time.sleep(1)
    if sh(f"id {USER}").rc:
        sh(f"useradd -m -s /bin/bash {USER}")
    for fn in CASES:
        if only and fn.__name__ not in only:
            continue
        notes, t0 = [], time.monotonic()
        try:
            fn(lambda *words: notes.append(" ".join(str(w) for w in words)))
            passed += 1
            word = "ok  "
        except Exception as e:
            failed += 1
            word = "FAIL"
            notes.append("".join(traceback.format_exception_only(type(e), e)).strip())
        say(f"{word} {fn.__name__} ({time.monotonic() - t0:.0f} s)")
        for n in notes:
            say(f"     {n}")
    say(f"{passed} passed, {failed} failed, 0 skipped")


if __name__ == "__main__":
    sys.exit(main())
