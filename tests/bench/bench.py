#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures Vitrine beside a bare start, bubblewrap, srt and crun, and writes the document about it.

    bench.py --vitrine PATH [--quick] [--doc FILE] [--json FILE] [--only PART,...] [--check]

Exit status: 0 when everything was measured, whatever the figures; 1 when something could not be
measured, and with --check also when a target was missed. Best run as root on an idle machine: root
measures both as an ordinary account (vitrine-test, made where it is missing) and as root. Without root only
the caller is measured.
"""

import argparse
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True

import agents
import engines
import events
import host
import lasting
import measure
import net
import peers as peers_mod
import report
import undo
import vm

PARTS = ["start", "tree", "limits", "memory", "calls", "floor", "work", "exec", "named", "density", "events", "undo", "net", "engines", "vm", "guard", "loop"]
FULL = {"rounds": 200, "limit_rounds": 20, "call_runs": 15, "pairs": 120, "boxes": 200, "events": (60, 20), "undo": 30, "net": 9, "engines": 30, "vm": 5, "loop": 5}
QUICK = {"rounds": 40, "limit_rounds": 6, "call_runs": 3, "pairs": 6, "boxes": 40, "events": (4, 2), "undo": 5, "net": 3, "engines": 5, "vm": 2, "loop": 2}
INNER = "VITRINE_BENCH_INNER"


def log(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def arguments():
    p = argparse.ArgumentParser(description="benchmark of Vitrine")
    p.add_argument("--vitrine", required=True, metavar="PATH")
    p.add_argument("--quick", action="store_true", help="few samples, under a minute")
    p.add_argument("--doc", metavar="FILE", help="write the document here")
    p.add_argument("--json", metavar="FILE", help="write all samples here")
    p.add_argument("--only", metavar="PART,...", help="of: " + " ".join(PARTS))
    p.add_argument("--check", action="store_true", help="a missed target is a failure")
    a = p.parse_args()
    a.parts = a.only.split(",") if a.only else PARTS
    for part in a.parts:
        if part not in PARTS:
            p.error(f"no part named {part}")
    a.vitrine = os.path.abspath(a.vitrine)
    if not os.access(a.vitrine, os.X_OK):
        p.error(f"{a.vitrine} is not a program")
    return a


def private_mounts():
    """As root, start again in a mount namespace of our own, so that no mount outlives us."""
    if os.geteuid() or os.environ.get(INNER):
        return
    os.environ[INNER] = "1"
    os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable,
                          os.path.abspath(__file__), *sys.argv[1:]])


class Bench:
    def __init__(self, args, h):
        self.args = args
        self.h = h
        self.size = QUICK if args.quick else FULL
        self.data = {"mode": "quick" if args.quick else "full", "errors": [], "repeated": [], "walls": {},
                     "commands": {}}

    def attempt(self, part, who, what):
        """Runs one measurement, once more when it failed; a failure is kept for the report and the others go on."""
        begin = time.monotonic()
        for kept in ("repeated", "errors"):
            try:
                self.data.setdefault(part, {})[who.label] = what()
                log(f"{part} as {who.label}: {time.monotonic() - begin:.1f} s")
                return
            except host.Unmeasurable as e:
                self.data[kept].append(f"{part} as {who.label}: {e}")
                log(self.data[kept][-1])

    def set_up(self):
        self.h.compile()
        self.names = self.h.identities()
        self.peers, left_out = peers_mod.find(self.args.vitrine, self.h, log)
        if not self.h.is_root:
            left_out.append("rows as root, and starts with limits: not run as root")
        self.data["identities"] = list(self.names)
        self.data["left_out"] = left_out
        self.data["labels"] = {k: p.label for k, p in self.peers.items()}
        self.data["filter"] = {"calls": len(self.h.filter_calls), "insns": self.h.filter_insns}
        self.data["machine"] = {**host.facts(), "home_fs": self.home_fs()}
        self.data["versions"] = {p.label: p.version() for p in self.peers.values() if p.version()}
        for tool in ("gcc", "git", "tar", "grep"):
            self.data["versions"][tool] = host.first_line([tool, "--version"])

    def home_fs(self):
        return host.first_line(["findmnt", "-n", "-o", "FSTYPE", "-T", self.h.base]) or "unknown"

    def usable(self, who, ws):
        """The peers that work under this identity; bubblewrap and Vitrine must."""
        good = {}
        for key, peer in self.peers.items():
            try:
                peer.run(who, ws, measure.TRUE)
                self.data["walls"].setdefault(who.label, {})[key] = peers_mod.walls(peer, who, ws)
                good[key] = peer
            except host.Unmeasurable as e:
                if key in ("bare", "bwrap", "vitrine"):
                    raise host.Unmeasurable(f"{peer.label}: {e}") from e
                self.data["left_out"].append(f"{peer.label} as {who.label}: {e}")
                log(f"left out: {peer.label} as {who.label}: {e}")
        return good

    def one_identity(self, who):
        ws = who.workspace("empty")
        try:
            good = self.usable(who, ws)
        except host.Unmeasurable as e:
            self.data["errors"].append(f"everything as {who.label}: {e}")
            log(self.data["errors"][-1])
            return
        self.note_commands(who, good, ws)
        three = {k: good[k] for k in ("bare", "bwrap", "vitrine")}
        h, n = self.h, self.size
        jobs = {
            "start": lambda: measure.starts(h, who, good, ws, n["rounds"]),
            "tree": lambda: measure.tree_starts(h, who, self.tree_peers(good), n["rounds"]),
            "limits": lambda: self.limits(who, ws),
            "memory": lambda: {k: measure.memory(good[k], who, ws)
                               for k in ("bwrap", "srt", "vitrine") if k in good},
            "calls": lambda: measure.system_calls(h, who, three, n["call_runs"]),
            "floor": lambda: measure.call_floor(h, who, n["call_runs"]),
            "work": lambda: measure.file_work(h, who, good["bare"], good["vitrine"], n["pairs"]),
            "exec": lambda: lasting.execs(h, who, good, ws, n["rounds"]),
            "named": lambda: lasting.named_starts(h, who, good, ws, n["rounds"]),
            "density": lambda: lasting.density(who, good, n["boxes"]),
            "events": lambda: events.measure(Path(self.args.vitrine).resolve().parent, events.RATE, *n["events"]),
            "undo": lambda: undo.Undo(self.args.vitrine, who, n["undo"]).measure(),
            "net": lambda: net.Net(self.args.vitrine, who, n["net"]).measure(),
            "engines": lambda: engines.Engines(self.args.vitrine, who, n["engines"]).measure(),
            "vm": lambda: vm.Vm(self.args.vitrine, who, n["vm"], h).measure(),
            "guard": lambda: agents.guard(h, who, self.args.vitrine, ws, n["rounds"]),
            "loop": lambda: agents.loop(who, self.args.vitrine, n["loop"]),
        }
        for part in self.args.parts:
            # Where it is the same for everybody, once.
            is_first = who is next(iter(self.names.values()))
            # Not all of them map root's ids away: as the ordinary user.
            if part in ("engines", "vm") and who.uid == 0:
                continue
            if (part != "limits" or (who.label == "root" and "crun" in good)) and (part != "events" or is_first):
                self.attempt(part, who, jobs[part])

    def tree_peers(self, good):
        """In a quick run without srt, which alone would take as long as all the others."""
        return {k: p for k, p in good.items() if k != "srt" or not self.args.quick}

    def limits(self, who, ws):
        options = ["--memory", f"{measure.MEMORY_LIMIT >> 20}m", "--pids", str(measure.PIDS_LIMIT)]
        vitrine = peers_mod.Vitrine(self.args.vitrine, options)
        crun = peers_mod.Crun(
            self.peers["crun"].path, self.h.base, self.h.filter_calls,
            {"memory": {"limit": measure.MEMORY_LIMIT}, "pids": {"limit": measure.PIDS_LIMIT}})
        for peer in (vitrine, crun):
            peer.run(who, ws, measure.TRUE)
            measure.check_limits(peer, who, ws)
        return measure.limited_starts(self.h, who, vitrine, crun, ws, self.size["limit_rounds"])

    def note_commands(self, who, good, ws):
        """The command lines for the document, without the names of this machine's folders."""
        if self.data["commands"]:
            return
        for key, peer in good.items():
            argv = peer.argv(who, ws, measure.TRUE)
            words = " ".join([os.path.basename(argv[0]), *argv[1:]])
            for path, name in ((ws, "$WORKSPACE"), (who.home, "$HOME"), (self.h.base, "$BENCH"),
                               (os.path.basename(self.h.base), "bench")):
                words = words.replace(path, name)
            self.data["commands"][peer.label] = words

    def write(self):
        self.data["targets"] = report.judge(self.data)
        if self.args.json:
            save(self.args.json, json.dumps(self.data, indent=1) + "\n")
        if self.args.doc:
            save(self.args.doc, report.document(self.data))
        for t in self.data["targets"]:
            mark = "reached" if t["met"] else "MISSED "
            print(f"{mark}  {t['name']}, as {t['who']}: {t['want']}: {t['got']}")
        for text in self.data["errors"]:
            print(f"FAILED   {text}")

    def main(self):
        begin = time.monotonic()
        self.set_up()
        for who in self.names.values():
            self.one_identity(who)
        self.data["machine"]["busy_after"] = host.busy_share()
        self.data["seconds"] = time.monotonic() - begin
        self.write()
        missed = self.args.check and any(not t["met"] for t in self.data["targets"])
        return 1 if self.data["errors"] or missed else 0


def save(path, text):
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path + ".new", "w", encoding="utf-8") as f:
        f.write(text)
    os.replace(path + ".new", path)


def main():
    args = arguments()
    private_mounts()
    if not shutil.which(os.environ.get("CC", "cc").split()[0]):
        log("no C compiler")
        return 1
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    h = host.Host()
    try:
        return Bench(args, h).main()
    except host.Unmeasurable as e:
        log(str(e))
        return 1
    finally:
        h.close()


if __name__ == "__main__":
    sys.exit(main())
