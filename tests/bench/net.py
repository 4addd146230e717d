#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the gate costs: the same client without a sandbox, inside Vitrine and, where it is installed, inside srt; taken
in turns, so that what else the machine does falls on all of them.

    python3 tests/bench/net.py [--vitrine build/vitrine] [--rounds 5] [--seconds 1] [--json]

bench.py runs it as its part `net`.
"""

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import host as machine

HERE = Path(__file__).resolve().parent
HOST = "127.0.0.1"
TUNNEL_RATIO, TUNNEL_SRT, RATE_SRT, PING_RATIO, START_MS = 0.4, 2, 10, 3, 1.5
NAMES = {"tunnel": "one CONNECT tunnel, MB/s", "rate": "new connections per second, 8 clients",
         "ping": "one byte there and back, µs"}
START_NAMES = {"closed": "no network", "open": "with a gate", "inspected": "with a gate that inspects a host"}


def free_port():
    with socket.create_server((HOST, 0)) as s:
        return s.getsockname()[1]


class Net:
    def __init__(self, vitrine, who, rounds, seconds=1.0):
        self.vitrine, self.who, self.rounds, self.seconds = os.path.abspath(vitrine), who, rounds, seconds
        self.srt = shutil.which("srt")
        self.dir = Path(tempfile.mkdtemp(prefix="net-", dir=who.home))
        self.ws = self.dir / "work"
        self.ws.mkdir()
        self.tool = self.ws / "net_bench"
        self.env = {"PATH": os.environ["PATH"], "HOME": str(self.dir), "LANG": "C.UTF-8",
                    "XDG_STATE_HOME": str(self.dir / "state")}

    def run(self, argv):
        # srt fails now and then without a word; what is measured is a run of it that works.
        for _ in range(5 if argv[0] == self.srt else 1):
            begin = time.monotonic()
            r = subprocess.run([str(w) for w in argv], cwd=self.ws, env=self.env, stdin=subprocess.DEVNULL,
                               capture_output=True, timeout=120, **self.who.drop())
            if r.returncode == 0:
                return r.stdout.decode(), (time.monotonic() - begin) * 1e3
        name = os.path.basename(str(argv[0]))
        raise machine.Unmeasurable(f"{name}: exit status {r.returncode} {r.stderr.decode(errors='replace')[-300:]}")

    def ways(self, port):
        settings = self.dir / "srt.json"
        settings.write_text(json.dumps({"network": {"allowedDomains": [HOST], "deniedDomains": []},
                                        "filesystem": {"denyRead": [], "allowWrite": [str(self.ws)], "denyWrite": []}}))
        ways = {"direct": lambda words: [self.tool, *words],
                "vitrine": lambda words: [self.vitrine, "run", "--allow", f"{HOST}:{port}", "--", self.tool, *words, "proxy"]}
        if self.srt:
            ways["srt"] = lambda words: [self.srt, "-s", settings, "-c", " ".join(map(str, [self.tool, *words, "proxy"]))]
        return ways

    def tunnels(self):
        port = free_port()
        server = subprocess.Popen([self.tool, "serve", str(port)], stdout=subprocess.PIPE, start_new_session=True,
                                  **self.who.drop())
        jobs = {"tunnel": ("send", HOST, port, 1000), "rate": ("rate", HOST, port, self.seconds, 8),
                "ping": ("ping", HOST, port, 5000)}
        try:
            server.stdout.readline()
            ways = self.ways(port)
            return {job: {way: sorted(x[way] for x in turns) for way in ways} for job, turns in (
                (job, [{way: float(self.run(make(words))[0]) for way, make in ways.items()} for _ in range(self.rounds)])
                for job, words in jobs.items())}
        finally:
            os.killpg(server.pid, 9)
            server.wait()

    def starts(self):
        flags = {"closed": [], "open": ["--allow", "example.org"],
                 "inspected": ["--allow", "example.org", "--inspect", "example.org"]}
        found = {k: [] for k in flags}
        for _ in range(max(20, 4 * self.rounds)):
            for k, words in flags.items():
                found[k].append(self.run([self.vitrine, "run", *words, "--", "/bin/true"])[1])
        return {k: sorted(v) for k, v in found.items()}

    def measure(self):
        try:
            subprocess.run(["cc", "-O2", "-static", "-o", self.tool, HERE / "net_bench.c"], check=True)
            if self.who.uid != os.geteuid():
                subprocess.run(["chown", "-R", f"{self.who.uid}:{self.who.gid}", self.dir], check=True)
            return {**self.tunnels(), "start": self.starts()}
        finally:
            shutil.rmtree(self.dir, ignore_errors=True)


def median(v):
    return v[len(v) // 2]


def judge(data, who):
    """The targets, as bench.py shows them."""
    found = data.get("net", {}).get(who)
    if not found:
        return []
    m = {job: {way: median(v) for way, v in found[job].items()} for job in (*NAMES, "start")}

    def target(name, want, got, met):
        return {"name": name, "who": who, "want": want, "got": got, "met": bool(met)}

    t, r, p, s = m["tunnel"], m["rate"], m["ping"], m["start"]
    out = [target("one tunnel through the gate", f"≥ {TUNNEL_RATIO} × direct",
                  f"{t['vitrine'] / t['direct']:.2f} × ({t['vitrine']:.0f} of {t['direct']:.0f} MB/s)",
                  t["vitrine"] >= TUNNEL_RATIO * t["direct"]),
           target("one byte through the gate", f"≤ {PING_RATIO} × direct",
                  f"{p['vitrine'] / p['direct']:.2f} × ({p['vitrine']:.0f} of {p['direct']:.0f} µs)",
                  p["vitrine"] <= PING_RATIO * p["direct"])]
    if "srt" in t:
        out += [target("one tunnel through the gate", f"≥ {TUNNEL_SRT} × srt", f"{t['vitrine'] / t['srt']:.1f} × ({t['srt']:.0f} MB/s)",
                       t["vitrine"] >= TUNNEL_SRT * t["srt"]),
                target("new connections per second", f"≥ {RATE_SRT} × srt",
                       f"{r['vitrine'] / r['srt']:.1f} × ({r['vitrine']:.0f} against {r['srt']:.0f})",
                       r["vitrine"] >= RATE_SRT * r["srt"])]
    for key in ("open", "inspected"):
        out.append(target(f"start {START_NAMES[key]}", f"≤ {START_MS} ms more", f"{s[key] - s['closed']:+.2f} ms",
                          s[key] - s["closed"] <= START_MS))
    return out


def document(data, table, who_names):
    text = "## The network\n\n"
    text += ("One client and one server on this machine's loopback, without a sandbox, through the gate and, where it is installed, "
             "through the proxy of srt, in turns; medians. The client asks for a tunnel with CONNECT; a new connection is connect, "
             "CONNECT, one byte there and back, close.\n\n")
    for who, found in data["net"].items():
        ways = [w for w in ("direct", "vitrine", "srt") if w in found["rate"]]
        rows = [[name, *[f"{median(found[job][w]):.1f}" for w in ways],
                 f"{median(found[job]['vitrine']) / median(found[job]['direct']):.2f}"] for job, name in NAMES.items()]
        starts = [[START_NAMES[k], f"{median(v):.2f}", f"{median(v) - median(found['start']['closed']):+.2f}"]
                  for k, v in found["start"].items()]
        text += f"As {who_names.get(who, who)}:\n\n" + table(["", *[w.replace("v", "V", 1) if w == "vitrine" else w for w in ways],
                                                             "Vitrine / direct"], rows)
        text += "\n" + table(["start of `/bin/true`", "ms", "more"], starts) + "\n"
    return text


class Caller:
    """Whoever runs this script, in a home of its own."""
    label, uid, gid = "caller", os.geteuid(), os.getegid()

    def __init__(self, home):
        self.home = home

    def drop(self):
        return {}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--vitrine", default=HERE.parent.parent / "build" / "vitrine")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=1)
    p.add_argument("--json", action="store_true")
    a = p.parse_args()
    with tempfile.TemporaryDirectory(prefix="vitrine-net-bench-") as tmp:
        found = {"net": {"caller": Net(a.vitrine, Caller(tmp), a.rounds, a.seconds).measure()}}
    if a.json:
        print(json.dumps(found["net"]["caller"]))
        return
    for job, ways in found["net"]["caller"].items():
        print(f"{job:8}" + "".join(f"{way:>12} {median(v):9.2f}" for way, v in ways.items()))
    for t in judge(found, "caller"):
        print(f"{'reached' if t['met'] else 'MISSED '}  {t['name']}: {t['want']}: {t['got']}")


if __name__ == "__main__":
    try:
        main()
    except machine.Unmeasurable as e:
        sys.exit(f"net: {e}")
