#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two builds of Vitrine side by side: is a start with the new one slower than with the old one?

    compare.py --old PATH --new PATH [--rounds N] [--only CASE,...] [--calls] [--limit PERCENT]

Both builds run /bin/true in the same workspaces, in turns that are shuffled for each round (spawn_bench.c), each with a
state directory of its own. As root both identities are measured, else only the caller. A row shows the 10th percentile
and the median of each build, the difference of the 10th percentiles, which other work on the machine blurs least, and
the median of the ratios per round with its 95 % interval. --calls adds the number of system calls of the client, the
keeper and everything inside, which depends on no load (needs strace).

Exit status: 0; with --limit 1 when the 10th percentile of the new build is above the old one's by more than that many
percent in any row.
"""

import argparse
import os
import sys

sys.dont_write_bytecode = True

import host
import measure
import stats

BOX = "compare-box"
TREE_FILES = 20000
BIG_FILES = 200000


def empty(h, who, ws):
    del h, who, ws


def repo(h, who, ws):
    host.run(["/bin/sh", "-c", "git init -q . && printf a >a"], who=who, cwd=ws, env=who.env())
    del h


def loose(h, who, ws):
    """A small repository with 254 of the 256 directories of loose objects, two objects in each."""
    script = ("git init -q . && for i in $(seq 0 253); do d=.git/objects/$(printf %02x $i); mkdir $d; "
              "for j in 1 2; do printf x >$d/$(printf %038x $j); done; done; printf a >a")
    host.run(["/bin/sh", "-c", script], who=who, cwd=ws, env=who.env())
    del h


def tree(h, who, ws):
    host.run([h.helper("make_tree"), ws, str(TREE_FILES), "10"], who=who)


def big(h, who, ws):
    host.run([h.helper("make_tree"), ws, str(BIG_FILES), "10"], who=who)


def named(h, who, ws):
    del h, who, ws


# What is made in the workspace, and the words before the command.
CASES = {
    "empty": (empty, ["run", "--"]),
    "repo": (repo, ["run", "--"]),
    "loose": (loose, ["run", "--"]),
    "tree": (tree, ["run", "--"]),
    "named": (named, ["run", "--name", BOX, "--"]),
    "big": (big, ["run", "--"]),
}
ASKED = {"big"}     # only with --only


def arguments():
    p = argparse.ArgumentParser(description="compares two builds of Vitrine")
    p.add_argument("--old", required=True, metavar="PATH")
    p.add_argument("--new", required=True, metavar="PATH")
    p.add_argument("--rounds", type=int, default=100)
    p.add_argument("--only", metavar="CASE,...", help="of: " + " ".join(CASES))
    p.add_argument("--who", metavar="LABEL", help="user or root; both when left out")
    p.add_argument("--calls", action="store_true", help="count system calls too")
    p.add_argument("--limit", type=float, metavar="PERCENT", help="fail when the new build is slower by more")
    a = p.parse_args()
    a.cases = a.only.split(",") if a.only else [c for c in CASES if c not in ASKED]
    for case in a.cases:
        if case not in CASES:
            p.error(f"no case named {case}")
    a.builds = {"old": os.path.abspath(a.old), "new": os.path.abspath(a.new)}
    for path in a.builds.values():
        if not os.access(path, os.X_OK):
            p.error(f"{path} is not a program")
    return a


def environment(who, build):
    return {**who.env(), "XDG_STATE_HOME": os.path.join(who.home, f"state-{build}")}


def calls(h, who, ws, argv, env):
    """System calls of one start, the fewest of three: a wait that is repeated counts once more."""
    counts = []
    for _ in range(3):
        # A folder that the identity may write to.
        out = os.path.join(who.home, "calls")
        host.run(["strace", "-f", "-qq", "-c", "-U", "calls,name", "-o", out, *argv], who=who, cwd=ws, env=env)
        with open(out, encoding="utf-8") as f:
            counts.append(next(int(line.split()[0]) for line in f if line.split()[1:] == ["total"]))
        os.unlink(out)
    del h
    return min(counts)


def one(h, who, args, case):
    make, words = CASES[case]
    ws = who.workspace(case)
    make(h, who, ws)
    argvs = {b: [path, *words, *measure.TRUE] for b, path in args.builds.items()}
    envs = {b: environment(who, b) for b in args.builds}
    entries = [measure.entry(b, argvs[b], ws, envs[b]) for b in args.builds]
    samples = measure.start_times(h, who, entries, args.rounds)
    ms = {b: [ns / 1e6 for ns in v.values()] for b, v in samples.items()}
    p10 = {b: stats.percentile(v, 10) for b, v in ms.items()}
    more = (p10["new"] / p10["old"] - 1) * 100
    ratio = stats.paired(samples["new"], samples["old"])
    text = (f"{case:6} {who.label:5} p10 {p10['old']:7.2f} {p10['new']:7.2f} ms  median {stats.median(ms['old']):7.2f} "
            f"{stats.median(ms['new']):7.2f} ms  p10 {more:+6.1f} %  paired {(ratio['median'] - 1) * 100:+6.1f} % "
            f"[{(ratio['low'] - 1) * 100:+.1f}, {(ratio['high'] - 1) * 100:+.1f}]")
    if args.calls:
        n = {b: calls(h, who, ws, argvs[b], envs[b]) for b in args.builds}
        text += f"  calls {n['old']} {n['new']}"
    print(text, flush=True)
    return more


def main():
    args = arguments()
    if os.geteuid() == 0 and not os.environ.get("VITRINE_BENCH_INNER"):
        # A mount namespace of our own, so that no mount outlives us.
        os.environ["VITRINE_BENCH_INNER"] = "1"
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable,
                              os.path.abspath(__file__), *sys.argv[1:]])
    h = host.Host()
    try:
        h.compile()
        names = [w for w in h.identities().values() if args.who in (None, w.label)]
        worst = max(one(h, who, args, case) for who in names for case in args.cases)
    except host.Unmeasurable as e:
        sys.exit(f"compare: {e}")
    finally:
        h.close()
    return 1 if args.limit is not None and worst > args.limit else 0


if __name__ == "__main__":
    sys.exit(main())
