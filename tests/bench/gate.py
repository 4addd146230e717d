#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two builds of the gate side by side: is a byte, a request or a connection dearer with the new one than with the old one?

    gate.py --old PATH --new PATH [--rounds N] [--only JOB;...] [--limit PERCENT]

As root. Both builds serve the same client in turns, shuffled for each round, in the small internet of the tests
(tests/internet.py), so that what else the machine does falls on both. For each job two figures are taken: the time that the
client sees, and the processor time of the gate's and seal's own processes, which other work on the machine and the slowness of
client and server blur less. A row shows the medians of both builds, and the median of the ratios per round with its 95 % interval. `direct` is the client without
a sandbox: the floor under all of it.

Exit status: 0; with --limit 1 when a ratio is above that many percent with its whole interval, in the client's time as well as
in the processor's.
"""

import argparse
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
    "tunnel, a MiB": ("./net_bench send {own} 9000 200 {proxy} >/dev/null", 200),
    "tunnel, a connection": ("./net_bench count {own} 9000 300 {proxy}", 300),
    "tunnel, a byte there and back": ("./net_bench ping {own} 9000 3000 {proxy} >/dev/null", 3000),
    "HTTP, a request": (CURL + " 'http://plain.test/small?[1-400]'", 400),
    "HTTP, a MiB": (CURL + " 'http://plain.test/big/64'", 64),
    "inspected, HTTP/1.1, a request": (CURL + " --http1.1 'https://own.test/small?[1-400]'", 400),
    "inspected, HTTP/1.1, a MiB": (CURL + " --http1.1 https://own.test/big/64", 64),
    "inspected, HTTP/2, a request": (CURL + " --http2 'https://own.test/small?[1-400]'", 400),
    "inspected, HTTP/2, a MiB": (CURL + " --http2 https://own.test/big/64", 64),
    "inspected, a connection": ("for i in $(seq 15); do " + CURL + " --http1.1 https://own.test/small; done", 15),
}


def arguments():
    p = argparse.ArgumentParser(description="compares the gates of two builds of Vitrine")
    p.add_argument("--old", required=True, metavar="PATH")
    p.add_argument("--new", required=True, metavar="PATH")
    p.add_argument("--rounds", type=int, default=15)
    p.add_argument("--only", metavar="JOB;...", help="of: " + "; ".join(JOBS))
    p.add_argument("--limit", type=float, metavar="PERCENT", help="fail when the new build is dearer by more")
    a = p.parse_args()
    a.jobs = [j for j in JOBS if not a.only or any(w in j for w in a.only.split(";"))]
    a.builds = {"old": Path(a.old).resolve(), "new": Path(a.new).resolve()}
    for path in a.builds.values():
        if not os.access(path, os.X_OK):
            p.error(f"{path} is not a program")
    return a


def busy_ns(folder):
    """Processor time of the gate's and seal's processes that are of this build."""
    total = 0
    for p in Path("/proc").iterdir():
        try:
            exe = os.readlink(p / "exe") if p.name.isdigit() else ""
            if exe.startswith(str(folder)) and exe.rsplit("/", 1)[-1] in ("vitrine-gate", "vitrine-seal"):
                total += int((p / "schedstat").read_text().split()[0])
        except OSError:
            continue
    return total


class Side:
    """A shell that does one job for each line that it is told: inside a sandbox of a build, or without one."""

    def __init__(self, work, env, program=None):
        self.folder = program.parent.resolve() if program else None
        words = [str(program), "run", "--allow", "own.test", "--allow", "plain.test", "--allow", f"{OWN4}/32:9000", "--allow", f"{OWN4}/32",
                 "--secret", "mine", "--"] if program else []
        self.proxy = "proxy" if program else ""
        self.p = subprocess.Popen([*words, "/bin/bash", "-c", "while read -r line; do eval \"$line\" || echo failed; echo done; done"], cwd=work,
                                  env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def work(self, job):
        text, count = JOBS[job]
        before = busy_ns(self.folder) if self.folder else 0
        begin = time.monotonic()
        self.p.stdin.write(text.format(own=OWN4, proxy=self.proxy) + "\n")
        said = self.p.stdout.readline()
        took = time.monotonic() - begin
        if said != "done\n":
            sys.exit(f"gate: {job}: {said!r}")
        busy = (busy_ns(self.folder) - before) / 1e3 if self.folder else 0
        return took * 1e6 / count, busy / count

    def end(self):
        self.p.stdin.close()
        self.p.wait(20)


def show(job, found):
    client = {b: [t for t, _ in v] for b, v in found.items()}
    own = {b: [c for _, c in v] for b, v in found.items()}
    pairs = [stats.paired(dict(enumerate(x["new"])), dict(enumerate(x["old"]))) for x in (client, own)]

    def percent(r):
        return f"{(r['median'] - 1) * 100:+5.1f} % [{(r['low'] - 1) * 100:+.1f}, {(r['high'] - 1) * 100:+.1f}]"

    print(f"{job:32} client {stats.median(client['old']):9.1f} {stats.median(client['new']):9.1f} µs {percent(pairs[0])}   "
          f"gate {stats.median(own['old']):8.1f} {stats.median(own['new']):8.1f} µs {percent(pairs[1])}   direct {stats.median(client['direct']):8.1f} µs", flush=True)
    return min((r["low"] - 1) * 100 for r in pairs)


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
    sides = {}
    try:
        if far.stdout.readline() != "up\n" or not echo.stdout.readline():
            sys.exit("gate: the far side does not come up")
        env = {"PATH": os.environ["PATH"], "HOME": str(base), "LANG": "C.UTF-8", "SSL_CERT_FILE": str(work / "trust.pem"),
               "CURL_CA_BUNDLE": str(work / "trust.pem")}
        for name, program in args.builds.items():
            own = {**env, "XDG_STATE_HOME": str(base / name)}
            subprocess.run([program, "secret", "set", "mine", "--env", "MY_KEY", "--host", "own.test"], env=own, cwd=work, check=True,
                           input=b"sk-proj-0123456789abcdefABCDEF0123456789", stdout=subprocess.DEVNULL)
            sides[name] = Side(work, own, program)
        sides["direct"] = Side(work, {**env, "MY_KEY": "x" * 40})
        worst = -100.0
        for job in args.jobs:
            found = {b: [] for b in sides}
            for n in range(args.rounds + 1):
                for b in random.sample(list(sides), len(sides)):
                    figures = sides[b].work(job)
                    if n > 0:  # the first one warms up
                        found[b].append(figures)
            worst = max(worst, show(job, found))
    finally:
        for s in sides.values():
            s.end()
        far.stdin.close()
        far.wait(10)
        os.killpg(echo.pid, 9)
        echo.wait()
        net.close()
        shutil.rmtree(base, ignore_errors=True)
    return 1 if args.limit is not None and worst > args.limit else 0


if __name__ == "__main__":
    sys.exit(main())
