#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The containment suite behind every engine that is here, and the matrix in docs/ENGINES.md.

    engines.py --vitrine build/vitrine                       all engines that `vitrine engines` finds here
    engines.py --vitrine build/vitrine --engines bwrap,crun  some of them
    ... --write docs/ENGINES.md                              put the matrix between its marks in that file

A docker daemon and a podman service of our own are started unless DOCKER_HOST and CONTAINER_HOST name one, podman gets a place of its own unless
XDG_RUNTIME_DIR does, and machines a kernel and a place where booted ones are kept unless VITRINE_VM_KERNEL and
VITRINE_VM_DIR do. As an ordinary user only: root's sandboxes are such a user's to the tool (run.py --ident root looks at
them). An engine whose checks take longer than --most (machines in software: four times that) is left out with a word;
--only and --json put together what was run in parts. Exit status 1: a P0 check was breached somewhere, or an engine was
not finished.
"""

import argparse
import json
import os
import pwd
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import daemons  # noqa: E402
import ground  # noqa: E402
import guest  # noqa: E402
import harness  # noqa: E402

VM, REMOTE = "vm-emulated", "podman-remote"
BEGIN, END = "<!-- matrix -->", "<!-- /matrix -->"
# Said by the engine itself: it ends the sandbox rather than leave a name bare.
ENDS = "cannot cover it again"
# So are these: what it cannot honour it refuses by name, before anything runs.
REFUSED = ("cannot honour: ", "the kernel cannot enforce it here", "needs the native engine")
# Nothing that is said here of walls.
NOT_HERE = ("is not measured here", "has a kernel of its own: ")
WORDS = {"HELD": "held", "BREACH": "**BREACH**", "INCONCLUSIVE": "?"}


def engines_here(vitrine):
    rows = json.loads(subprocess.run([vitrine, "engines", "--json", "--quick"], capture_output=True, text=True).stdout)
    return [e["name"] for e in rows["engines"] if e["here"] and (e["name"] == VM or not e.get("untested"))]


def env_of(name):
    """Podman itself would go elsewhere with it."""
    return {k: v for k, v in os.environ.items() if k != "CONTAINER_HOST" or name == REMOTE}


def run_engine(args, name):
    """id -> (prio, title, word, why)"""
    most = args.most * (4 if name == VM else 1)
    with tempfile.NamedTemporaryFile(suffix=".json") as f:
        cmd = [sys.executable, str(HERE / "run.py"), "--vitrine", args.vitrine, "--ident", "user", "--form", "run",
               "--json", f.name, "--jobs", str(args.jobs)]
        cmd += ["--engine", name] if name != "native" else []
        cmd += ["--only", args.only] if args.only else []
        said = f"{args.json}.{name}.log" if args.json else os.devnull
        with open(said, "w") as log:
            p = subprocess.Popen([*cmd, "--verbose"], stdout=log, stderr=sys.stderr, start_new_session=True,
                                 env=env_of(name))
        try:
            p.wait(most)
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGTERM)
            try:
                p.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(p.pid, signal.SIGKILL)
                p.wait()
            print(f"{name}: not finished within {most} s", file=sys.stderr)
            return {}
        text = Path(f.name).read_text()
    out = {}
    for r in json.loads(text)["results"] if text else []:
        word = "n/a" if r.get("skipped") or any(w in r["why"] for w in NOT_HERE) else "ends" if ENDS in r["why"] else WORDS[r["verdict"]]
        if word == "?" and any(w in r["why"] for w in REFUSED):
            word = "refused"
        out[r["id"]] = (r["prio"], r["title"], word, r["why"])
    return out


def place_of_user(path):
    path.mkdir(mode=0o700)
    if os.geteuid() == 0:
        who = harness.account_of("user")
        os.chown(path, who.uid, who.gid)
    return str(path)


def places(names, tmp):
    """What engines need outside; those that cannot be had are left out."""
    tmp.chmod(0o755)
    if "podman" in names and "XDG_RUNTIME_DIR" not in os.environ:
        os.environ["XDG_RUNTIME_DIR"] = place_of_user(tmp / "run")
    if VM in names:
        words, lacking = ({}, "") if "VITRINE_VM_KERNEL" in os.environ else guest.kernel()
        if lacking:
            print(f"{VM}: {lacking}: left out", file=sys.stderr)
            names = [n for n in names if n != VM]
        os.environ.update(words)
        # Every check has a state of its own; the machine that the first of them boots is for all.
        if "VITRINE_VM_DIR" not in os.environ:
            os.environ["VITRINE_VM_DIR"] = place_of_user(tmp / "vm")
    if "docker" in names and "DOCKER_HOST" not in os.environ:
        host = daemons.docker(tmp / "docker")
        if host is None:
            print("docker: no daemon can be started: left out", file=sys.stderr)
            names = [n for n in names if n != "docker"]
        else:
            os.environ["DOCKER_HOST"] = host
    if REMOTE in names and "CONTAINER_HOST" not in os.environ:
        host = daemons.podman(tmp / "far", pwd.getpwnam(harness.TEST_USER) if os.geteuid() == 0 else None)
        if host is None:
            print(f"{REMOTE}: no service can be started: left out", file=sys.stderr)
            return [n for n in names if n != REMOTE]
        os.environ["CONTAINER_HOST"] = host
    return names


def matrix(results):
    names, ids = list(results), sorted({i for r in results.values() for i in r})
    lines = ["| engine | checks | held | ends | refused | n/a | not decided | breached |", "|---|" + "---|" * 7]
    for n in names:
        words = [w for _, _, w, _ in results[n].values()]
        breached = " ".join(sorted(i for i, r in results[n].items() if "BREACH" in r[2])) or "none"
        lines.append(f"| {n} | {len(words)} | {words.count('held')} | {words.count('ends')} | {words.count('refused')} | "
                     f"{words.count('n/a')} | "
                     f"{words.count('?')} | {breached} |")
    lines += ["", "Checks that do not hold everywhere:", "", "| check | " + " | ".join(names) + " | what |",
              "|---|" + "---|" * (len(names) + 1)]
    for i in ids:
        cells = [results[n].get(i, ("", "", "-", ""))[2] for n in names]
        if all(c == "held" for c in cells):
            continue
        title = next(r[i][1] for r in results.values() if i in r)
        lines.append(f"| {i} | " + " | ".join(cells) + f" | {title} |")
    return "\n".join(lines) + "\n"


def write_into(path, text):
    doc = path.read_text()
    a, b = doc.index(BEGIN) + len(BEGIN), doc.index(END)
    path.write_text(doc[:a] + "\n" + text + doc[b:])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--vitrine", required=True)
    p.add_argument("--engines")
    p.add_argument("--only")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--most", type=int, default=1200, metavar="SECONDS", help="for one engine")
    p.add_argument("--write", type=Path)
    p.add_argument("--json", type=Path, help="keep the results, and take from there those of engines, and with --only of checks, not run now")
    args = p.parse_args()
    args.vitrine = os.path.abspath(args.vitrine)
    kept = json.loads(args.json.read_text()) if args.json and args.json.exists() else {}
    names = args.engines.split(",") if args.engines else engines_here(args.vitrine)
    with ground.account(), tempfile.TemporaryDirectory(prefix="vitrine-engines-", ignore_cleanup_errors=True) as tmp:
        try:
            names = places(names, Path(tmp))
            for name in names:
                now = run_engine(args, name)
                kept[name] = {**kept.get(name, {}), **now} if args.only and now else now
                if args.json:
                    args.json.write_text(json.dumps(kept))
        finally:
            daemons.stop()
            daemons.stop_podman(tmp)
    unfinished = [n for n in names if not kept[n]]
    kept = {n: r for n, r in kept.items() if r}
    text = matrix(kept)
    print(text)
    if args.write:
        write_into(args.write, text)
    p0 = [(n, i) for n, r in kept.items() for i, v in r.items() if v[0] == "P0" and "BREACH" in v[2]]
    for n, i in p0:
        print(f"P0 breached: {n} {i}: {kept[n][i][3][:300]}")
    return 1 if p0 or unfinished else 0


if __name__ == "__main__":
    sys.exit(main())
