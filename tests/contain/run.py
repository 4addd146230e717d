#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run the containment suite: every check x identity x form, or the sabotage proof.

    run.py --vitrine build/vitrine                          the whole matrix
    run.py --vitrine build/vitrine --only 'FW-0[1-9]' -v    some of it, with reasons
    run.py --vitrine build/vitrine --engine bwrap --ident user   behind other walls (engines.py: all of them)
    run.py --sabotage build-sabotage/vitrine                each wall removed in turn must be noticed

Passed means HELD. BREACH and INCONCLUSIVE fail (without root, which many controls need, INCONCLUSIVE is a skip,
but not in CI); an INCONCLUSIVE check is skipped otherwise only when its id stands
in not_testable.json and the probe command given there proves, here and now, that this host lacks what
the check needs. Exit status 0: nothing failed; 1: something did; 2: bad usage.

A BREACH of a P0 wall is one, if it was seen once among a thousand. All else that fails in a few cells may be the
machine's fault, which was busy with the other cells: these are looked at five times more, alone, and count as held when
they hold each time. They are named as UNSTEADY, with what was seen, here and in the JSON.
"""

import argparse
import hashlib
import importlib
import json
import os
import platform
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import ground                                              # noqa: E402
import harness                                             # noqa: E402
import rooted                                              # noqa: E402
from harness import BREACH, CHECKS, FORMS, HELD, IDENTS, INCONCLUSIVE    # noqa: E402

UNSTEADY_CELLS, LOOKS = 5, 5
# They begin with those that take longest, so that none of these is what everybody waits for at the end.
LONGEST = ["RX-14", "SV-19", "RX-09", "SV-42", "RX-08", "SV-13b", "PX-18", "PX-13", "LC-07", "OK-06", "OK-03", "FR-16"]
SHORT = {HELD: "ok", BREACH: "BREACH", INCONCLUSIVE: "?"}


def load_checks():
    for path in sorted(HERE.glob("check_*.py")):
        importlib.import_module(path.stem)


def build_tools(given, keep_in):
    """A C helper that was not given is compiled here, so that the suite also runs by hand."""
    tools = {}
    for src in sorted(HERE.glob("*.c")):
        name = src.stem
        if given.get(name):
            tools[name] = os.path.abspath(given[name])
            continue
        out = Path(keep_in) / name
        cc = os.environ.get("CC", "cc")
        r = subprocess.run([cc, "-O2", "-static", "-pthread", "-o", str(out), str(src)],
                           capture_output=True, text=True)
        if r.returncode:
            print(f"cannot build {src.name}: {r.stderr.strip()[-2000:]}", file=sys.stderr)
            continue
        tools[name] = str(out)
    for name, path in given.items():
        tools.setdefault(name, os.path.abspath(path))
    return tools


def copy_program(binary, to):
    """The program and those that it finds beside itself, where every identity can read them: the repository may lie in
    root's home. Building anew does not change what is being tested either."""
    build = Path(binary).resolve().parent
    to = Path(to) / build.name
    to.mkdir(mode=0o755)
    to.parent.chmod(0o755)
    copy_files([Path(binary), *build.glob("vitrine-*")], to)
    # Some checks need the build whose faults can be switched on (check_verdict.py).
    if (build / "sabotage" / "vitrine").is_file():
        (to / "sabotage").mkdir(mode=0o755)
        copy_files((build / "sabotage").glob("vitrine*"), to / "sabotage")
    return str(to / Path(binary).name)


def copy_files(files, to):
    for p in files:
        if p.is_file():
            shutil.copyfile(p, to / p.name)
            (to / p.name).chmod(0o755)


def not_testable():
    path = HERE / "not_testable.json"
    return json.loads(path.read_text()) if path.exists() else {}


def lacks(entry, cache={}):
    """The excuse must be true: its probe command exits 0 only where the feature is missing."""
    cmd = entry["probe"]
    if cmd not in cache:
        try:
            cache[cmd] = subprocess.run(["sh", "-c", cmd], capture_output=True,
                                        timeout=20).returncode == 0
        except subprocess.TimeoutExpired:
            cache[cmd] = False
    return cache[cmd]


def is_a_sandbox(binary, ident, engine):
    """The checks' acts are only contained by the program under test. One that has no walls at all (a broken
    build, null.sh) is not let loose on them: the least is that namespaces inside are not ours."""
    kinds = ("mnt", "pid", "user", "net", "ipc")
    ctx = harness.Ctx(harness.Config(binary, {}, engine=engine), ident, "run")
    try:
        r = ctx.vitrine("run", "--", "readlink", *[f"/proc/self/ns/{k}" for k in kinds])
        inside = r.text.split()
        if engine == "docker":      # its containers are in the host's user namespace, without any capability
            kinds = [k for k in kinds if k != "user"]
            inside = [i for i in inside if not i.startswith("user:")]
        ours = [os.readlink(f"/proc/self/ns/{k}") for k in kinds]
        if r.ok and len(inside) == len(kinds) and not set(inside) & set(ours):
            return True
        # A kernel of its own has namespaces of its own numbering, or none to show.
        version = ctx.vitrine("run", "--", "cat", "/proc/version")
        if engine in ("gvisor", "vm-emulated") and version.ok and version.text != Path("/proc/version").read_text():
            return True
        print(f"run.py: as {ident} this is no sandbox: {r}", file=sys.stderr)
        return False
    finally:
        ctx.close()
        ctx.remove()


def rooted_templates(cfg, ident, tools_dir):
    os.chmod(tools_dir, 0o755)
    ctx = harness.Ctx(cfg, ident, "run")
    try:
        return rooted.prepare(ctx, tools_dir)
    finally:
        ctx.close()
        ctx.remove()


# ------------------------------------------------------------------------------------- the scheduler


class Running:
    def __init__(self, job, pid, fd, deadline):
        self.job, self.pid, self.fd, self.deadline = job, pid, fd, deadline
        self.data = b""
        self.t0 = time.monotonic()


def harvest(run, timed_out):
    """The worker is done or out of time: its result, or one that says why there is none."""
    chk, cfg, ident, form = run.job
    os.close(run.fd)
    if timed_out:
        os.kill(run.pid, signal.SIGKILL)
    os.waitpid(run.pid, 0)
    try:
        return json.loads(run.data)
    except ValueError:
        why = f"no verdict within {chk.timeout * cfg.patience:g} s" if timed_out else "the check's process died"
        return {"id": chk.id, "prio": chk.prio, "title": chk.title, "ident": ident, "form": form,
                "verdict": INCONCLUSIVE, "by": "check", "why": why, "left": [], "notes": [],
                "seconds": round(time.monotonic() - run.t0, 3)}


def turn(job):
    chk = job[0]
    return chk.alone is not False, str(chk.alone), LONGEST.index(chk.id) if chk.id in LONGEST else len(LONGEST)


def may_join(chk, active):
    return all(r.job[0].alone == chk.alone and chk.alone is not True for r in active.values())


def execute(jobs, width, done):
    """Run all jobs, at most `width` at a time; a job that is `alone` has the machine to itself and those of its word."""
    queue = sorted(jobs, key=turn)
    active = {}
    while queue or active:
        while queue and len(active) < width:
            if not may_join(queue[0][0], active):
                break
            job = queue.pop(0)
            pid, fd = harness.spawn_check(job[0], job[1], job[2], job[3])
            active[fd] = Running(job, pid, fd, time.monotonic() + job[0].timeout * job[1].patience)
        ready, _, _ = select.select(list(active), [], [], 0.2)
        ended = []
        for fd in ready:
            data = os.read(fd, 65536)
            active[fd].data += data
            if not data:
                ended.append((fd, False))
        now = time.monotonic()
        ended += [(fd, True) for fd, r in active.items()
                  if now > r.deadline and (fd, False) not in ended]
        for fd, timed_out in ended:
            run = active.pop(fd)
            result = harvest(run, timed_out)
            # What a killed worker leaves behind comes to us, its subreaper's parent.
            if timed_out:
                workers = {r.pid for r in active.values()}
                for r in list(workers):
                    workers |= {p for p, _ in harness.descendants(r)}
                harness.kill_below(os.getpid(), but=workers)
                for root in Path(run.job[1].place(run.job[2])).glob(f"vcontain.{run.pid}.*"):
                    harness.remove_tree(root)
            done({**result, "switch": run.job[1].sabotage})


# ------------------------------------------------------------------------------------------ reports


def cell(results, chk, ident, form):
    r = results.get((chk.id, ident, form))
    if r is None:
        return "-"
    return "skip" if r.get("skipped") else SHORT[r["verdict"]]


def print_table(results, ran):
    head = f"{'id':8} {'prio':4} "
    head += " ".join(f"{i}: {'run':6} {'exec':6} {'grandch':7}" for i in IDENTS) + "  title"
    print(head)
    print("-" * len(head))
    for chk in ran:
        row = f"{chk.id:8} {chk.prio:4} "
        for ident in IDENTS:
            cells = [cell(results, chk, ident, f) for f in FORMS]
            row += f"{'':{len(ident) + 1}} {cells[0]:6} {cells[1]:6} {cells[2]:7} "
        print(row + " " + chk.title)


def print_reasons(results, verbose):
    for r in results.values():
        if r.get("unsteady"):
            print(f"\nUNSTEADY {r['id']} as {r['ident']}, {r['form']}: once {r['unsteady']}; held {LOOKS} times alone")
        if r["verdict"] == HELD and not verbose:
            continue
        word = "SKIPPED" if r.get("skipped") else r["verdict"]
        print(f"\n{word} {r['id']} as {r['ident']}, {r['form']} ({r['seconds']} s): {r['why']}")
        for n in r["notes"]:
            print(f"    {n}")


def identity_of(path):
    data = Path(path).read_bytes()
    v = subprocess.run([path, "version"], capture_output=True, text=True, timeout=20)
    return {"sha256": hashlib.sha256(data).hexdigest(), "version": v.stdout.strip()}


def may_be_unsteady(r):
    if r["verdict"] == HELD or r.get("skipped"):
        return False
    return r["verdict"] == INCONCLUSIVE or r["by"] == "word" or r["prio"] != "P0"


def look_again(jobs, results):
    """Few cells failed in a way that a busy machine can be the cause of: each several times, with nothing beside it."""
    bad = [r for r in results.values() if r["verdict"] != HELD and not r.get("skipped")]
    if not bad or len(bad) > UNSTEADY_CELLS or not all(may_be_unsteady(r) for r in bad):
        return
    by_key = {(chk.id, ident, form): (chk, cfg, ident, form) for chk, cfg, ident, form in jobs}
    for r in bad:
        key = (r["id"], r["ident"], r["form"])
        seen = []
        execute([by_key[key]] * LOOKS, 1, seen.append)
        if all(s["verdict"] == HELD for s in seen):
            results[key] = {**seen[-1], "unsteady": f"{r['verdict']}: {r['why']}"}


def run_matrix(args, cfg, chosen, idents):
    excuses, results = not_testable(), {}
    t0 = time.monotonic()

    def done(r):
        entry = excuses.get(r["id"])
        if r["verdict"] == INCONCLUSIVE and entry and lacks(entry):
            r["skipped"] = entry["reason"]
        if r["verdict"] == INCONCLUSIVE and os.geteuid() != 0 and os.environ.get("CI") != "true":
            r["skipped"] = "its control needs root"
        key = (r["id"], r["ident"], r["form"])
        if key not in results or results[key]["verdict"] == HELD:      # of several runs the worst
            results[key] = r
        if args.verbose:
            print(f"{r['id']:8} {r['ident']:4} {r['form']:10} {r['verdict']:12} "
                  f"{r['seconds']:6.2f}  {r['why'][:400]}", flush=True)

    jobs = [(chk, cfg, ident, form) for chk in chosen for ident in chk.idents for form in chk.forms
            if ident in idents and (not args.form or form in args.form)
            and not (args.root and ident == "root" and re.fullmatch(rooted.NOT_ROOTS, chk.id))]
    execute(jobs * args.repeat, args.jobs, done)
    look_again(jobs, results)
    print_table(results, chosen)
    print_reasons(results, False)
    skipped = sum(1 for r in results.values() if r.get("skipped"))
    passed = sum(1 for r in results.values() if r["verdict"] == HELD)
    failed = len(results) - skipped - passed
    seconds = round(time.monotonic() - t0, 1)
    if args.json:
        Path(args.json).parent.mkdir(parents=True, exist_ok=True)
        Path(args.json).write_text(json.dumps(
            {"vitrine": identity_of(cfg.vitrine), "kernel": platform.release(),
             "seconds": seconds, "passed": passed, "failed": failed, "skipped": skipped,
             "results": list(results.values())}, indent=1) + "\n")
    print(f"\n{len(chosen)} checks, {len(results)} cells, {seconds} s")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


# ------------------------------------------------------------------------------------------ sabotage


def sabotage_jobs(cfg, chosen, idents, only):
    """For each switch the checks that claim to catch it, each in its cheapest form. The same cell must
    be HELD without the switch: a check that is always red proves nothing."""
    switches, jobs = {}, []
    for chk in chosen:
        for s in chk.catches:
            if only and not re.search(only, s):
                continue
            ident = chk.catch_ident or next((i for i in chk.idents if i in idents), None)
            if ident not in idents:
                continue
            form = chk.catch_form or chk.forms[0]
            switches.setdefault(s, []).append(chk)
            for value in ("", s):
                c = harness.Config(cfg.vitrine, cfg.tools, value, cfg.base, cfg.keep, cfg.engine, cfg.roots)
                job = (chk, c, ident, form)
                if not any(j[0] is chk and j[1].sabotage == value for j in jobs):
                    jobs.append(job)
    return switches, jobs


def run_sabotage(args, cfg, chosen, idents):
    switches, jobs = sabotage_jobs(cfg, chosen, idents, args.switch)
    results = {}

    def done(r):
        results[(r["switch"], r["id"])] = r
        if args.verbose:
            print(f"{r['switch'] or '(none)':14} {r['id']:8} {r['ident']:4} {r['form']:10} "
                  f"{r['verdict']:12} {r['why'][:300]}", flush=True)

    execute(jobs, args.jobs, done)
    # What a busy machine spoilt is done again with nothing beside it.
    again = {s for s in switches if not noticed_by(s, switches[s], results)[0]}
    if len(again) <= UNSTEADY_CELLS:
        execute([j for j in jobs if any(j[0] in switches[s] and j[1].sabotage in ("", s) for s in again)], 1, done)
    missed = []
    print(f"{'switch':14} {'noticed':8} by")
    print("-" * 60)
    for s in sorted(switches):
        caught, silent = noticed_by(s, switches[s], results)
        missed += [] if caught else [s]
        print(f"{s:14} {'yes' if caught else 'NO':8} {' '.join(caught)}"
              + (f"   silent: {' '.join(silent)}" if silent else "") + ("   in a second look" if caught and s in again else ""))
    if args.json:
        Path(args.json).parent.mkdir(parents=True, exist_ok=True)
        Path(args.json).write_text(json.dumps(
            list(results.values()), indent=1) + "\n")
    for s in missed:
        why = "; ".join(f"{r['id']} {r['verdict']}: {r['why'][:300]}" for (switch, _), r in results.items() if switch == s)
        print(f"FAIL {s}: {why}")
    print(f"\n{len(switches) - len(missed)} passed, {len(missed)} failed, 0 skipped")
    return 1 if missed or not switches else 0


def noticed_by(switch, checks, results):
    """The checks that hold with the wall and not without it, and the others."""
    caught, silent = [], []
    for chk in checks:
        plain, broken = results[("", chk.id)], results[(switch, chk.id)]
        # A process left over is not what a check claims to notice, unless it says so by itself.
        hit = broken["verdict"] == BREACH and broken["by"] != "left"
        if hit and plain["verdict"] == HELD:
            caught.append(chk.id)
        else:
            silent.append(f"{chk.id}({plain['verdict']}->{broken['verdict']})")
    return caught, silent


# ---------------------------------------------------------------------------------------------- null


def run_null(args, cfg, chosen):
    """Against no sandbox at all every wall is missing: a check that holds there is worthless. Only as
    the test account, and only checks that call themselves harmless: their acts really happen."""
    results = {}

    def done(r):
        results[(r["id"], r["ident"])] = r
        if args.verbose:
            print(f"{r['id']:8} {r['ident']:4} {r['verdict']:12} {r['why'][:400]}", flush=True)

    jobs = [(chk, cfg, "user", chk.forms[0]) for chk in chosen if chk.null and "user" in chk.idents]
    execute(jobs, args.jobs, done)
    bad = [r for r in results.values() if r["verdict"] != BREACH]
    for r in bad:
        print(f"{r['id']:8} {r['ident']:4} {r['verdict']:12} {r['why'][:300]}")
    print(f"\n{len(results) - len(bad)} passed, {len(bad)} failed, 0 skipped")
    return 1 if bad or not results else 0


# ---------------------------------------------------------------------------------------------- main


def parse_args():
    p = argparse.ArgumentParser(description="Vitrine's containment suite")
    p.add_argument("--vitrine", help="the program under test")
    p.add_argument("--sabotage", help="a program built with -Dsabotage=true: prove that the suite notices")
    p.add_argument("--null", action="store_true",
                   help="prove that every check turns red without any sandbox")
    p.add_argument("--switch", help="sabotage: only switches that match this expression")
    p.add_argument("--probe", help="the built probe program (default: compiled here)")
    p.add_argument("--tool", action="append", default=[], metavar="NAME=PATH",
                   help="another built helper")
    p.add_argument("--only", help="only checks whose id matches this expression")
    p.add_argument("--prio", help="only this priority, e.g. P0")
    p.add_argument("--ident", action="append", choices=IDENTS)
    p.add_argument("--engine", default="", help="behind these walls instead of the native engine's")
    p.add_argument("--root", action="store_true", help="with a root inside: a template with ids of its own, by its sudo")
    p.add_argument("--form", action="append", choices=FORMS)
    p.add_argument("--json", help="write the results here")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--warm", action="store_true",
                   help="each workspace has many directories, and a list of them from an earlier run")
    p.add_argument("--repeat", type=int, default=1)
    p.add_argument("--base", default=os.environ.get("VITRINE_TEST_DIR", "/var/tmp"),
                   help="where temporary folders go; not /tmp, which is private inside")
    p.add_argument("--keep", action="store_true", help="leave the temporary folders")
    p.add_argument("--list", action="store_true")
    p.add_argument("-v", "--verbose", action="store_true")
    return p.parse_args()


def main():
    args = parse_args()
    load_checks()
    chosen = [c for c in sorted(CHECKS.values(), key=lambda c: c.id)
              if (not args.only or re.search(args.only, c.id))
              and (not args.prio or c.prio == args.prio)
              and not (args.root and re.fullmatch(rooted.NOT_HERE, c.id))]
    if args.list:
        for c in chosen:
            print(f"{c.id:8} {c.prio} {'/'.join(c.idents):9} {'/'.join(c.forms):20} {c.title}"
                  + (f"  [{' '.join(c.catches)}]" if c.catches else ""))
        return 0
    binary = str(HERE / "null.sh") if args.null else args.sabotage or args.vitrine
    if not binary or not os.access(binary, os.X_OK):
        print("run.py: --vitrine PATH (or --sabotage PATH) of a program is needed", file=sys.stderr)
        return 2
    if not chosen:
        print("run.py: no check matches", file=sys.stderr)
        return 2
    idents = args.ident or list(IDENTS)
    if os.geteuid() != 0:
        if args.null or args.sabotage:
            print("run.py: without walls the checks' acts are real; --null and --sabotage need root, to do "
                  f"them as the account {harness.TEST_USER}\nSKIP {'null' if args.null else 'sabotage'}\n"
                  "0 passed, 0 failed, 1 skipped")
            return 0 if os.environ.get("CI") != "true" else 2
        idents = ["user"]
    else:
        harness.own_mounts()
    harness.subreaper()
    with ground.account():
        return run_chosen(args, binary, chosen, idents)


def run_chosen(args, binary, chosen, idents):
    tools_dir = tempfile.mkdtemp(prefix="vcontain-tools.", dir=args.base)
    try:
        given = dict(t.split("=", 1) for t in args.tool)
        if args.probe:
            given["probe"] = args.probe
        cfg = harness.Config(copy_program(binary, tools_dir), build_tools(given, tools_dir),
                             base=args.base, keep=args.keep, engine=args.engine, warm=args.warm)
        if args.null:
            return run_null(args, cfg, chosen)
        if not all([is_a_sandbox(cfg.vitrine, ident, cfg.engine) for ident in idents]):
            return 1
        if args.root:
            cfg.roots = {i: rooted_templates(cfg, i, tools_dir) for i in idents}
        if args.sabotage:
            return run_sabotage(args, cfg, chosen, idents)
        return run_matrix(args, cfg, chosen, idents)
    finally:
        shutil.rmtree(tools_dir, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
