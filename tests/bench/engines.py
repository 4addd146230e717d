#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What Vitrine adds to another engine's start, and what its link carries.

    python3 tests/bench/engines.py [--vitrine build/vitrine] [--rounds 30] [--engines crun,gvisor] [--json]

The plain start is the tool's own call as Vitrine made it (same bundle, same options, same walls), with /bin/true in the
place of our init; both are taken in turns, each round in another order. Runs as the ordinary user of the other parts.
bench.py runs it as its part `engines`; podman and docker are measured where they can be had (docker: a daemon of our own,
when we are root).
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import host as machine
import stats
import streams

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import daemons  # noqa: E402

TRUE = "/bin/true"
ENOUGH, LONG = 5, 60
# podman, docker and runsc tidy up behind a call that has returned: what one call left is not to fall on the next.
REST = 0.3
MOST = {"crun": 1.3, "gvisor": 1.15, "podman": 1.1, "docker": 1.1}
TOOLS = {"crun": "crun", "gvisor": "runsc", "podman": "podman", "docker": "docker"}
STAGED = ("crun", "gvisor")
PIPE_MB = 200


class Engines:
    def __init__(self, vitrine, who, rounds, wanted=None):
        self.vitrine, self.who, self.rounds = os.path.abspath(vitrine), who, rounds
        self.wanted = wanted or list(MOST)
        self.dir = Path(tempfile.mkdtemp(prefix="engines-", dir=who.home))
        self.ws = self.dir / "work"
        # Podman's own tidying up fails where its place has a long name, and every call then takes seconds longer.
        self.run = Path(tempfile.mkdtemp(prefix="vb-", dir="/tmp"))
        self.ws.mkdir()
        self.env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(self.dir),
                    "LANG": "C.UTF-8", "XDG_STATE_HOME": str(self.dir / "state"), "XDG_RUNTIME_DIR": str(self.run)}
        self.count = 0
        self.stage = None
        if who.uid != os.geteuid():
            for p in (self.dir, self.ws, self.run):
                os.chown(p, who.uid, who.gid)

    # ---- what is run

    def call(self, argv, **kw):
        begin = time.monotonic()
        r = subprocess.run([str(w) for w in argv], cwd=self.ws, env=self.env, stdin=kw.pop("stdin", subprocess.DEVNULL),
                           capture_output=True, timeout=120, **self.who.drop(), **kw)
        took = (time.monotonic() - begin) * 1e3
        if r.returncode:
            raise machine.Unmeasurable(f"{argv[0]}: exit status {r.returncode} {r.stderr.decode(errors='replace')[-300:]}")
        return r.stdout, took

    def ours(self, name):
        return [self.vitrine, "run", "--engine", name, "--"]

    def start(self, name, *cmd, **kw):
        return subprocess.Popen([*self.ours(name), *cmd], cwd=self.ws, env=self.env, **self.who.drop(), **kw)

    def tool_call(self, name):
        """The tool's own words, from a sandbox that stands; its files are kept for the plain call."""
        p = self.start(name, "sh", "-c", "echo up; exec sleep 60", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.DEVNULL)
        try:
            if p.stdout.readline() != b"up\n":
                raise machine.Unmeasurable(f"{name} does not start")
            for pid in machine_below(p.pid):
                argv = cmdline(pid)
                if argv and os.path.basename(argv[0]) == TOOLS[name] and " run " in " ".join(argv):
                    place = next((self.dir / "state/vitrine/engine").iterdir())
                    kept = self.dir / f"kept-{name}"
                    kept.mkdir()
                    for f in place.glob("*.json"):
                        shutil.copy(f, kept / f.name)
                    return argv, place, kept
            raise machine.Unmeasurable(f"{name}: no process of its tool")
        finally:
            p.send_signal(signal.SIGTERM)
            p.wait(30)

    def plain(self, name):
        argv, place, kept = self.tool_call(name)
        config = kept / "config.json"
        if config.exists():
            bundle = json.loads(config.read_text())
            bundle["process"]["args"] = [TRUE]
            config.write_text(json.dumps(bundle))
        for p in [kept, *kept.iterdir()]:
            os.chown(p, self.who.uid, self.who.gid)
        words = [w.replace(str(place), str(kept)) for w in argv]

        def make():
            self.count += 1
            out = [w.replace(place.name, f"plain-{os.getpid()}-{self.count}") if w == place.name else w for w in words]
            out = [f"--entrypoint={TRUE}" if w.startswith("--entrypoint=") else w for w in out]
            return [*(self.in_stage() if name in STAGED else []), *out]
        return make

    def in_stage(self):
        """The user namespace that Vitrine starts such a tool in, made beforehand: entering it is the least it can cost."""
        if self.stage is None:
            script = "[ -d /sys/fs/cgroup/unified ] && mount -t tmpfs none /sys/fs/cgroup/unified; echo up; exec sleep 600"
            self.stage = subprocess.Popen(["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script], env=self.env,
                                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, **self.who.drop())
            self.stage.stdout.readline()
        return ["nsenter", "-t", str(self.stage.pid), "-U", "-m", "--preserve-credentials"]

    # ---- measurements

    def starts(self, name):
        plain, samples = self.plain(name), {"plain": {}, "vitrine": {}}
        begun = time.monotonic()
        for n in range(-2, self.rounds):
            if n >= ENOUGH and time.monotonic() - begun > LONG:
                break       # a tool that takes ten seconds for a call says as much in five rounds
            pair = [("plain", plain()), ("vitrine", [*self.ours(name), TRUE])]
            random.shuffle(pair)
            for key, argv in pair:
                took = self.call(argv)[1]
                if n >= 0:
                    samples[key][n] = int(took * 1e6)
                time.sleep(REST)
        return {"samples": samples, "rows": {k: stats.summary(v) for k, v in samples.items()},
                "ratio": stats.paired(samples["vitrine"], samples["plain"])}

    def stream(self, name):
        return streams.measure(lambda *cmd, **kw: self.start(name, *cmd, **kw), name, PIPE_MB)

    def measure(self):
        found = {"starts": {}, "stream": {}, "left_out": []}
        try:
            if "docker" in self.wanted:
                docker = daemons.docker(self.dir / "docker")
                if docker:
                    self.env["DOCKER_HOST"] = docker
                else:
                    self.wanted = [n for n in self.wanted if n != "docker"]
                    found["left_out"].append("docker: no daemon can be started")
            for name in self.wanted:
                try:
                    found["starts"][name] = self.starts(name)
                    found["stream"][name] = self.stream(name)
                except (machine.Unmeasurable, subprocess.TimeoutExpired, StopIteration) as e:
                    found["left_out"].append(f"{name}: {e}")
            if found["stream"]:
                found["stream"]["native"] = self.stream("native")
            return found
        finally:
            self.end()

    def end(self):
        daemons.stop()
        if self.stage:
            self.stage.kill()
            self.stage.wait()
        daemons.stop_podman(self.dir)
        for place in (self.dir, self.run):
            shutil.rmtree(place, ignore_errors=True)


def cmdline(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    except OSError:
        return []


def machine_below(pid):
    found, todo = [], [pid]
    while todo:
        kids = []
        for tasks in Path(f"/proc/{todo.pop(0)}/task").glob("*/children"):  # each thread has its own
            try:
                kids += tasks.read_text().split()
            except OSError:
                continue
        found += [int(k) for k in kids]
        todo += [int(k) for k in kids]
    return found


# ---------------------------------------------------------------------------------------------- the report


def judge(data, who):
    e = data.get("engines", {}).get(who)
    return [{"name": f"start with {name}, beside the tool's own call", "who": who, "want": f"at most {MOST[name]} times",
             "got": f"{row['ratio']['median']:.2f} times", "met": row["ratio"]["median"] <= MOST[name]}
            for name, row in (e["starts"] if e else {}).items()]


def document(data, table, names):
    out = ["## Other engines", "",
           "Start to end of /bin/true: the tool's own call with the same options and walls, and the same through Vitrine, "
           f"in turns, each round in another order, {REST} s after the one before (some tidy up behind a call that has returned); what "
           "the link carries for a command, over the pipes of the tool's own input and output, beside the native engine, which "
           "needs none.", ""]
    for who, e in data.get("engines", {}).items():
        rows = [[name, f"{r['rows']['plain']['median']:.1f}", f"{r['rows']['vitrine']['median']:.1f}",
                 f"{r['ratio']['median']:.2f}"] for name, r in e["starts"].items()]
        out += [f"As {names.get(who, who)}:", "", table(["engine", "its own call, ms", "with Vitrine, ms", "ratio"], rows), ""]
        out += [table(streams.HEAD, [streams.row(name, r) for name, r in e["stream"].items()]), ""]
        out += [f"Left out: {text}" for text in e["left_out"]]
    return "\n".join(out)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--vitrine", default="build/vitrine")
    p.add_argument("--rounds", type=int, default=30)
    p.add_argument("--engines")
    p.add_argument("--json", action="store_true")
    a = p.parse_args()
    h = machine.Host()
    try:
        who = h.identities()["user"]
        found = Engines(a.vitrine, who, a.rounds, a.engines.split(",") if a.engines else None).measure()
    finally:
        h.close()
    if a.json:
        print(json.dumps(found, indent=1))
    data = {"engines": {who.label: found}}
    for t in judge(data, who.label):
        print(t["name"], t["want"], t["got"], "reached" if t["met"] else "MISSED")
    for name, row in found["starts"].items():
        print(name, *(f"{k}: {v['median']:.1f} ms" for k, v in row["rows"].items()))
    for name, s in found["stream"].items():
        print(f"{name}: out {s['out']:.0f} MB/s, in {s['in']:.0f} MB/s, a byte there and back {s['echo']:.0f} µs")
    for text in found["left_out"]:
        print("left out:", text)


if __name__ == "__main__":
    main()
