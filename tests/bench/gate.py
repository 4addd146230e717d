#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two builds of the gate side by side: is a byte, a request or a connection dearer with the new one than with the old one?

    gate.py --old PATH --new PATH [--blocks N] [--minutes M] [--only JOB;...] [--limit PERCENT] [--calls]

As root. Both builds serve the same client in the small internet of the tests (tests/internet.py). A process keeps its layout in
memory for as long as it lives, and that alone makes one start of a build a few percent faster than another start of the same build. So
the work is done in blocks: each block starts a sandbox of either build anew, and does each job four times, old new new old or new old old
new, so that what else the machine does falls on both. A block gives one ratio for each row. A row shows the medians of both builds, and
the typical ratio of a block (Hodges-Lehmann) with its 95 % interval (Wilcoxon's signed ranks): one wild block does not move them.
`direct` is the client without a sandbox: the floor under all of it.

For each job there are two figures. The client's time is what throughput and latency are. The processor time of the gate's and seal's
own processes is the stricter one for work, because client and server, which are the same for both builds, have no part in it; but it does not see
waiting. --limit holds both to it.

--calls counts system calls of the gate and seal in place of times (strace), and instructions where the processor can count them (perf): they
do not depend on what else the machine does. Only jobs with a number of requests or connections are meaningful there: how many calls a
stream of bytes takes depends on who is faster.

Exit status: 0. With --limit: 0 only when the upper end of every interval is at most that many percent; 1 when the lower end of one is
above it (worse); 3 when neither is shown (more blocks, or a machine at rest).
"""

import argparse
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "cli"), str(HERE)]

import internet  # noqa: E402
import stats  # noqa: E402
from internet import OWN4, Internet  # noqa: E402
from seal_upstream import make_certs  # noqa: E402

CURL = "curl -fsS -o /dev/null -H \"X-Api-Key: $MY_KEY\""
# What the client does, and by how many it is divided: seconds per request, per connection or per MiB.
JOBS = {
    "tunnel, a MiB": ("./net_bench send {own} 9000 {n} {proxy} >/dev/null", 200),
    "tunnel, a connection": ("./net_bench count {own} 9000 {n} {proxy}", 300),
    "tunnel, a byte there and back": ("./net_bench ping {own} 9000 {n} {proxy} >/dev/null", 3000),
    "HTTP, a request": (CURL + " 'http://plain.test/small?[1-{n}]'", 400),
    "HTTP, a MiB": (CURL + " 'http://plain.test/big/{n}'", 64),
    "inspected, HTTP/1.1, a request": (CURL + " --http1.1 'https://own.test/small?[1-{n}]'", 400),
    "inspected, HTTP/1.1, a MiB": (CURL + " --http1.1 https://own.test/big/{n}", 64),
    "inspected, HTTP/2, a request": (CURL + " --http2 'https://own.test/small?[1-{n}]'", 400),
    "inspected, HTTP/2, a MiB": (CURL + " --http2 https://own.test/big/{n}", 64),
    "inspected, a connection": ("for i in $(seq {n}); do " + CURL + " --http1.1 https://own.test/small; done", 15),
}
FIGURES = ("client", "gate")
LEAST = 6  # blocks: with fewer the interval is no interval


def arguments():
    p = argparse.ArgumentParser(description="compares the gates of two builds of Vitrine")
    p.add_argument("--old", required=True, metavar="PATH")
    p.add_argument("--new", required=True, metavar="PATH")
    p.add_argument("--blocks", type=int, default=60, help="at most so many starts of both builds (60)")
    p.add_argument("--minutes", type=float, default=9.0, help="no block begins after so many minutes (9)")
    p.add_argument("--only", metavar="JOB;...", help="of: " + "; ".join(JOBS))
    p.add_argument("--limit", type=float, metavar="PERCENT", help="exit status 0 only when it is shown that the new build is not dearer by more")
    p.add_argument("--calls", action="store_true", help="count system calls, and instructions where the processor can, in place of times")
    a = p.parse_args()
    a.jobs = [j for j in JOBS if not a.only or any(w in j for w in a.only.split(";"))]
    a.builds = {"old": Path(a.old).resolve(), "new": Path(a.new).resolve()}
    for path in a.builds.values():
        if not os.access(path, os.X_OK):
            p.error(f"{path} is not a program")
    return a


def processes(top):
    """The gate's and seal's processes below this one."""
    parents, names = {}, {}
    for p in Path("/proc").iterdir():
        try:
            if p.name.isdigit():
                parents[int(p.name)] = int((p / "stat").read_text().rsplit(")", 1)[1].split()[1])
                names[int(p.name)] = os.readlink(p / "exe").rsplit("/", 1)[-1]
        except OSError:
            continue
    for pid, name in names.items():
        up = pid
        while up in parents and up != top:
            up = parents[up]
        if up == top and name in ("vitrine-gate", "vitrine-seal"):
            yield pid


def busy_ns(top):
    total = 0
    for pid in processes(top):
        try:
            total += int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])
        except OSError:
            continue
    return total


class Side:
    """A shell that does one job for each line that it is told: inside a sandbox of a build, or without one."""

    def __init__(self, work, env, program=None):
        words = [str(program), "run", "--allow", "own.test", "--allow", "plain.test", "--allow", f"{OWN4}/32:9000", "--allow", f"{OWN4}/32",
                 "--secret", "mine", "--"] if program else []
        self.proxy, self.is_sandbox = "proxy" if program else "", bool(program)
        self.p = subprocess.Popen([*words, "/bin/bash", "-c", "while read -r line; do eval \"$line\" || echo failed; echo done; done"], cwd=work,
                                  env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def do(self, job, part=1):
        text, count = JOBS[job]
        self.p.stdin.write(text.format(own=OWN4, proxy=self.proxy, n=max(1, count // part)) + "\n")
        said = self.p.stdout.readline()
        if said != "done\n":
            sys.exit(f"gate: {job}: {said!r}")

    def work(self, job):
        """Microseconds of the client, and of the gate's processor."""
        before = busy_ns(self.p.pid) if self.is_sandbox else 0
        begin = time.monotonic()
        self.do(job)
        took = time.monotonic() - begin
        busy = (busy_ns(self.p.pid) - before) / 1e3 if self.is_sandbox else 0
        return took * 1e6 / JOBS[job][1], busy / JOBS[job][1]

    def end(self):
        self.p.stdin.close()
        self.p.wait(20)


def block(args, start):
    """One start of either build: {job: {build: (client, gate)}}."""
    sides, found = {}, {}
    try:
        for name in random.sample(list(args.builds), 2):
            sides[name] = start(name)
        sides["direct"] = start("direct")
        for job in random.sample(args.jobs, len(args.jobs)):
            order = random.sample(list(args.builds), 2)
            for s in sides.values():
                s.do(job, 10)  # what is done once in a life is no part of it
            runs = [(b, sides[b].work(job)) for b in (*order, *reversed(order), "direct")]
            found[job] = {b: tuple(sum(t[i] for x, t in runs if x == b) / sum(x == b for x, _ in runs) for i in (0, 1)) for b in sides}
    finally:
        for s in sides.values():
            s.end()
    return found


def show(job, blocks):
    """A line, and the intervals in percent by figure."""
    text, intervals = f"{job:32}", {}
    for i, figure in enumerate(FIGURES):
        old, new = ([b[job][x][i] for b in blocks] for x in ("old", "new"))
        t = stats.typical([math.log(n / o) for n, o in zip(new, old) if n > 0 and o > 0])
        middle, low, high = ((math.exp(t[k]) - 1) * 100 for k in ("typical", "low", "high"))
        intervals[figure] = (low, high)
        text += f" {figure} {stats.median(old):9.1f} {stats.median(new):9.1f} µs {middle:+5.1f} % [{low:+.1f}, {high:+.1f}]  "
    print(f"{text} direct {stats.median([b[job]['direct'][0] for b in blocks]):8.1f} µs", flush=True)
    return intervals


def judge(rows, limit):
    """Exit status, with a sentence for each row that keeps it from being 0."""
    status = 0
    for job, intervals in rows.items():
        for figure, (low, high) in intervals.items():
            if low > limit:
                print(f"worse: {job}, {figure}: {low:+.1f} % at least, more than {limit:+.1f} %")
                status = 1
            elif high > limit:
                print(f"not shown: {job}, {figure}: up to {high:+.1f} %, more than {limit:+.1f} %")
                status = status or 3
    if status == 0:
        print(f"shown: no row is dearer by more than {limit:.1f} %, in the client's time and the gate's processor time")
    return status


def compare(args, start):
    blocks, end = [], time.monotonic() + args.minutes * 60
    while len(blocks) < args.blocks and (len(blocks) < LEAST or time.monotonic() < end):
        blocks.append(block(args, start))
    print(f"{len(blocks)} blocks, load {os.getloadavg()[0]:.1f}")
    rows = {job: show(job, blocks) for job in args.jobs}
    return judge(rows, args.limit) if args.limit is not None else 0


# ------------------------------------------------------------------------------------------------ counts


def traced(side, job):
    """System calls of the gate and seal during the job, for each request, connection or MiB."""
    with tempfile.NamedTemporaryFile("r", suffix=".calls") as out:
        pids = ",".join(str(p) for p in processes(side.p.pid))
        p = subprocess.Popen(["strace", "-f", "-c", "-U", "calls,name", "-o", out.name, "-p", pids], stderr=subprocess.PIPE, text=True)
        for _ in pids.split(","):
            p.stderr.readline()  # attached
        side.do(job)
        p.send_signal(2)
        p.wait(20)
        total = [line.split()[0] for line in out.read().splitlines() if line.endswith("total")]
    return int(total[-1]) / JOBS[job][1] if total else 0.0


def counted(side, job):
    """Instructions of the same; None where the processor does not count them for us."""
    if not shutil.which("perf"):
        return None
    pids = ",".join(str(p) for p in processes(side.p.pid))
    p = subprocess.Popen(["perf", "stat", "-x", ",", "-e", "instructions:u", "-p", pids], stderr=subprocess.PIPE, text=True)
    time.sleep(0.2)
    side.do(job)
    p.send_signal(2)
    number = p.communicate(timeout=20)[1].split(",")[0].strip()
    return int(number) / JOBS[job][1] if number.isdigit() else None


def count(args, start):
    sides = {b: start(b) for b in args.builds}
    try:
        for job in args.jobs:
            for s in sides.values():
                s.do(job, 10)
            calls = {b: stats.median([traced(s, job) for _ in range(5)]) for b, s in sides.items()}
            work = {b: counted(s, job) for b, s in sides.items()}
            text = f"{job:32} calls {calls['old']:8.2f} {calls['new']:8.2f} {(calls['new'] / calls['old'] - 1) * 100:+5.1f} %"
            if None not in work.values():
                text += f"   instructions {work['old']:11.0f} {work['new']:11.0f} {(work['new'] / work['old'] - 1) * 100:+5.1f} %"
            print(text, flush=True)
    finally:
        for s in sides.values():
            s.end()
    return 0


def prepare(work):
    make_certs(work)
    subprocess.run(["cc", "-O2", "-static", "-o", work / "net_bench", HERE / "net_bench.c"], check=True)
    for p in (work, *work.iterdir()):
        p.chmod(0o755)


def main():
    args = arguments()
    base = Path(tempfile.mkdtemp(prefix="vitrine-gate-bench-", dir="/var/tmp"))
    work = base / "work"
    work.mkdir()
    prepare(work)
    internet.NAMES["plain.test"] = [OWN4]  # nothing is held for it, so it is not looked into
    net = Internet()
    far = subprocess.Popen(["node", HERE / "gate_far.js", work, OWN4], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    echo = subprocess.Popen([work / "net_bench", "serve", "9000", OWN4], stdout=subprocess.PIPE, text=True,
                            start_new_session=True)
    try:
        if far.stdout.readline() != "up\n" or not echo.stdout.readline():
            sys.exit("gate: the far side does not come up")
        env = {"PATH": os.environ["PATH"], "HOME": str(base), "LANG": "C.UTF-8", "SSL_CERT_FILE": str(work / "trust.pem"),
               "CURL_CA_BUNDLE": str(work / "trust.pem")}
        envs = {b: {**env, "XDG_STATE_HOME": str(base / b)} for b in args.builds}
        for name, program in args.builds.items():
            subprocess.run([program, "secret", "set", "mine", "--env", "MY_KEY", "--host", "own.test"], env=envs[name], cwd=work, check=True,
                           input=b"sk-proj-0123456789abcdefABCDEF0123456789", stdout=subprocess.DEVNULL)

        def start(name):
            return Side(work, envs[name], args.builds[name]) if name in envs else Side(work, {**env, "MY_KEY": "x" * 40})

        return (count if args.calls else compare)(args, start)
    finally:
        far.stdin.close()
        far.wait(10)
        os.killpg(echo.pid, 9)
        echo.wait()
        net.close()
        shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
