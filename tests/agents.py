#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every coding agent of tests/agents_table.py in every mode, with the version that is named and with the newest one of the npm registry.

    tests/agents.py              install what is missing below build/, run every cell, print the matrix, write it into docs/AGENTS.md
    tests/agents.py qwen pi      some agents
    tests/agents.py --offline    only versions that are installed already
    tests/agents.py --again      only cells that did not pass when they ran last, with the same version
    tests/agents.py --table      run nothing: make the table from what ran before

Each version lies in a folder of its own below build/agents-each, except those that tools/deps installs for `make test`. The newest
version is the newest one that can be installed here and starts: where npm cannot install a version, the one before it is tried. The
results are kept in build/agents-matrix.json, so that the table can be made from several runs; it is written when no agent is missing.
"""

import argparse
import datetime
import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from agents_table import MODES, TABLE, No, is_tested

ROOT = Path(__file__).resolve().parent.parent
EACH = ROOT / "build" / "agents-each"
KEPT = ROOT / "build" / "agents-matrix.json"
MANUAL = ROOT / "docs" / "AGENTS.md"
BEGIN, END = "<!-- matrix: made by make test-agents -->", "<!-- end of matrix -->"
TITLES = ("agent", "version", "headless", "at a terminal", "resumed", "in a loop", "with the guard", "its own sandbox off")
TRIES = 10          # versions that are tried, newest first
AT_ONCE = 2


class Missing(Exception):
    """A version that cannot be had here, and why."""


def pins():
    """What tools/deps installs for `make test`: package, version."""
    lines = (ROOT / "tools" / "deps.d" / "npm").read_text().splitlines()
    return {line.split()[0]: line.split()[1] for line in lines if line and line[0] != "#"}


def npm(*words, home, seconds):
    env = {**os.environ, "npm_config_userconfig": str(Path.home() / ".npmrc"), "HOME": str(home)}
    env.setdefault("npm_config_cache", str(Path.home() / ".npm"))
    try:
        return subprocess.run(["npm", *words], env=env, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired as e:
        raise Missing(f"npm {words[0]} took longer than {seconds} s") from e


def versions(package):
    """What the registry has, newest first: `latest` and those before it. Versions that are not meant for everybody are left out."""
    r = npm("view", package, "--json", "versions", "dist-tags.latest", home=Path.home(), seconds=60)
    try:
        said = json.loads(r.stdout)
        all_, latest = said["versions"], said["dist-tags.latest"]
    except (ValueError, KeyError, TypeError) as e:
        raise Missing(f"{package} is not in the registry") from e
    all_ = [all_] if isinstance(all_, str) else all_
    plain = [v for v in all_ if "-" not in v] or all_
    return plain[plain.index(latest)::-1] if latest in plain else plain[::-1]


def why_not(said):
    """The line of npm's complaint that says what is wrong, without the names of hosts and folders."""
    lines = [re.sub(r"^npm (error|ERR!) (notarget )?", "", line).strip() for line in said.splitlines()]
    for word in ("No matching version", "getaddrinfo|ENOTFOUND|ECONNREFUSED|fetch failed", "[Ee]rror:", r"\bE[A-Z]{4,}\b"):
        found = next((line for line in lines if re.search(word, line)), None)
        if found:
            break
    found = found or (lines or ["npm gave no reason"])[0]
    return re.sub(r"(https?://|(?<![@\w])/)\S+", "...", found).rstrip(".")[:120]


def program_of(name, top):
    return top / "node_modules" / (TABLE[name].bin or ".bin") / (TABLE[name].program or name)


def starts(name, top):
    path = f"{top}/node_modules/.bin:{os.environ['PATH']}"
    try:
        r = subprocess.run([program_of(name, top), "--version"], env={**os.environ, "PATH": path, "HOME": str(top / "home")}, stdin=subprocess.DEVNULL,
                           capture_output=True, text=True, timeout=120)
    except (OSError, subprocess.TimeoutExpired) as e:
        raise Missing("its program is missing" if isinstance(e, OSError) else "it does not start within two minutes") from e
    if r.returncode:
        raise Missing(f"it does not start: {why_not(r.stderr or r.stdout)}")


def install(name, version, is_offline):
    """-> the folder"""
    agent = TABLE[name]
    if pins().get(agent.package) == version:
        top = ROOT / "build" / "agents"
        if not program_of(name, top).exists():
            raise Missing("tools/deps --test installs it")
        return top
    top = EACH / f"{name}-{version}"
    if (top / "ready").exists():
        return top
    if is_offline:
        raise Missing(f"{version} is not installed")
    shutil.rmtree(top, ignore_errors=True)
    (top / "home").mkdir(parents=True)
    (top / "package.json").write_text('{"private":true}\n')
    r = npm("install", "--prefix", str(top), "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error",
            f"{agent.package}@{version}", *agent.needs, home=top / "home", seconds=600)
    try:
        if r.returncode:
            raise Missing(why_not(r.stderr))
        starts(name, top)
    except Missing:
        shutil.rmtree(top, ignore_errors=True)
        raise
    (top / "ready").touch()
    return top


def newest(name, is_offline):
    """-> version, folder, what is said about newer ones"""
    passed_over = []
    if is_offline:
        found = sorted(EACH.glob(f"{name}-*/ready"), key=lambda p: p.stat().st_mtime)
        if not found:
            raise Missing("nothing is installed")
        return found[-1].parent.name[len(name) + 1:], found[-1].parent, ""
    for version in versions(TABLE[name].package)[:TRIES]:
        try:
            return version, install(name, version, False), told(passed_over)
        except Missing as e:
            passed_over.append((version, str(e)))
    raise Missing(told(passed_over))


def told(passed_over):
    """The versions that cannot be had, and why the newest of them cannot."""
    if not passed_over:
        return ""
    return f"{', '.join(v for v, _ in passed_over)} cannot be installed here ({passed_over[0][1]})"


# ------------------------------------------------------------------------------------------------ cells


def others(name):
    """Tests of this agent that are no cells; and whether all that its program asks about logins is known."""
    logins = ["endpoints_of_logins_are_those_of_the_agents"] if name in ("claude", "codex", "gemini", "copilot") else []
    text = (ROOT / "tests" / "cli" / "agents_real.py").read_text()
    return [n for n in re.findall(r"^def (\w+)\(box\):", text, re.M) if n.startswith(name + "_")] + logins


def run(name, top, wanted):
    """-> {test: [word, what it said]}"""
    env = {**os.environ, "VITRINE_TEST_AGENTS": str(top), "VITRINE": os.environ.get("VITRINE", str(ROOT / "build" / "vitrine"))}
    r = subprocess.run([sys.executable, ROOT / "tests" / "cli" / "agents_real.py", *wanted], env=env, stdin=subprocess.DEVNULL, capture_output=True,
                       text=True, timeout=7200)
    seen = {}
    for word, test, said in re.findall(r"^(ok|FAIL|SKIP) (\w+)@\w+ \S+ ?(.*)$", r.stdout, re.M):
        if seen.get(test, ["ok"])[0] != "FAIL":
            seen[test] = [word, said]
    for test in wanted:
        seen.setdefault(test, ["FAIL", f"was not run: {(r.stdout + r.stderr)[-300:]}"])
    return seen


def row(name, kind, options, kept):
    """One agent in one version: what is known of it, brought up to date."""
    agent = TABLE[name]
    old = kept.get(f"{name} {kind}", {})
    try:
        if kind == "pinned":
            version, note = agent.pinned or pins()[agent.package], ""
            top = install(name, version, options.offline)
        else:
            version, top, note = newest(name, options.offline)
    except Missing as e:
        return {"version": None, "note": str(e), "cells": {}}
    same = kept.get(f"{name} pinned", {})
    if kind == "newest" and same.get("version") == version:
        return {**same, "note": note}
    cells = dict(old.get("cells", {})) if options.again and old.get("version") == version else {}
    wanted = [t for t in [f"{name}_{mode}" for mode in MODES if is_tested(agent, mode)] + others(name) if cells.get(t, ["FAIL"])[0] != "ok"]
    if wanted:
        cells.update(run(name, top, wanted))
    for test in wanted:
        print(f"{cells[test][0]:4} {version:>24} {test} {cells[test][1] if cells[test][0] != 'ok' else ''}"[:1500], flush=True)
    return {"version": version, "note": note, "cells": cells}


def agent_rows(name, options, kept):
    for kind in ("pinned", "newest"):
        kept[f"{name} {kind}"] = row(name, kind, options, kept)


# ------------------------------------------------------------------------------------------------- table


def cell(name, mode, cells):
    word, value = cells.get(f"{name}_{mode}", ["-"])[0], getattr(TABLE[name], mode)
    if cells and not is_tested(TABLE[name], mode):
        return "no" if isinstance(value, No) else "has none"
    if word == "ok":
        return "no" if isinstance(value, No) else "yes"
    return {"FAIL": "FAILS", "SKIP": "skipped", "-": "-"}[word]


def table(kept):
    rows = []
    for name in TABLE:
        for kind in ("pinned", "newest"):
            r = kept.get(f"{name} {kind}")
            if r is None or (kind == "newest" and r["version"] == kept[f"{name} pinned"]["version"]):
                continue
            is_both = kind == "pinned" and kept.get(f"{name} newest", {}).get("version") == r["version"]
            said = f"{r['version']}, {'pinned and newest' if is_both else kind}" if r["version"] else f"none, {kind}"
            rows.append((name, said, *(cell(name, mode, r["cells"]) for mode in MODES)))
    return rows


def reasons(kept):
    said = []
    for name, agent in TABLE.items():
        noes = {m: getattr(agent, m).why for m in MODES if isinstance(getattr(agent, m), No)}
        for why in dict.fromkeys(noes.values()):
            modes = [TITLES[2 + MODES.index(m)] for m in noes if noes[m] == why]
            said.append(f"{name}, {'nothing' if len(modes) == len(MODES) else ', '.join(modes)}: {why}.")
        said += [f"{name}, {kind}: {kept[f'{name} {kind}']['note']}." for kind in ("pinned", "newest") if kept.get(f"{name} {kind}", {}).get("note")]
    return said


def write_manual(kept):
    text = MANUAL.read_text()
    lines = [BEGIN, f"As of {datetime.date.today().isoformat()}, on {os.uname().sysname} {os.uname().machine}:", "",
             "| " + " | ".join(TITLES) + " |", "|" + "---|" * len(TITLES)]
    lines += ["| " + " | ".join(r) + " |" for r in table(kept)]
    lines += ["", *(f"- {r}" for r in reasons(kept)), END]
    MANUAL.write_text(text[:text.index(BEGIN)] + "\n".join(lines) + text[text.index(END) + len(END):])


def show(kept):
    rows = [TITLES, *table(kept)]
    widths = [max(len(r[i]) for r in rows) for i in range(len(TITLES))]
    for r in rows:
        print("  ".join(c.ljust(w) for c, w in zip(r, widths)).rstrip())
    print("\n".join(reasons(kept)))


def main():
    p = argparse.ArgumentParser(description="Every coding agent in every mode, with models that are played")
    p.add_argument("agent", nargs="*", metavar="AGENT", help=" ".join(TABLE))
    p.add_argument("--offline", action="store_true", help="only versions that are installed")
    p.add_argument("--again", action="store_true", help="only what did not pass")
    p.add_argument("--table", action="store_true", help="run nothing: make the table from what ran before")
    options = p.parse_args()
    unknown = [a for a in options.agent if a not in TABLE]
    if unknown:
        p.error(f"no agent '{unknown[0]}'; there are: {' '.join(TABLE)}")
    if os.geteuid() != 0:
        sys.exit("tests/agents.py: the fake internet needs root")
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    chosen = [] if options.table else options.agent or list(TABLE)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda name: agent_rows(name, options, kept), chosen))
    KEPT.write_text(json.dumps(kept, indent=1) + "\n")
    show(kept)
    if all(f"{name} {kind}" in kept for name in TABLE for kind in ("pinned", "newest")):
        write_manual(kept)
    words = [c[0] for name in chosen for kind in ("pinned", "newest") for c in kept[f"{name} {kind}"]["cells"].values()]
    print(f"{words.count('ok')} passed, {words.count('FAIL')} failed, {words.count('SKIP')} skipped")
    return 1 if {"FAIL", "SKIP"} & set(words) or not (words or options.table) else 0


if __name__ == "__main__":
    sys.exit(main())
