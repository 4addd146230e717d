# SPDX-License-Identifier: Apache-2.0
"""What agents pay: a decision of the guard, from the hook's start to its exit, and the iterations of a loop.

The hook is started as an agent starts it, with a call on its standard input; the commands are one that is let through
and one that is refused. What the reader alone takes, and the worst of the hostile texts, say the unit tests of the
guard, in processor time."""

import json
import os
import re
import subprocess
import time

import host
import measure
import stats

HOOK_MS = 4.0
PEER_MS = 250.0  # cc-safety-net, a program of Node, on the machine where it was measured
PEER_SHARE = 30
READ_US = 20.0
WORST_MS = 50.0
LOOP_S = 3.0
ITERATIONS = 30
CALLS = {"allowed": "cd src && npm run build 2>&1 | tail -20 && git add -A && git commit -m \"$(date)\"",
         "denied": "cd build && find . -name '*.o' -exec rm -rf {} +"}


class Call:
    """How spawn_bench gives a process its standard input."""

    def __init__(self, path):
        self.fds, self.every, self.lane = [(0, path)], 1, 0


def hook(h, who, vitrine, ws, rounds):
    entries = [measure.entry("true", measure.TRUE, ws, who.env())]
    for name, command in CALLS.items():
        path = os.path.join(h.base, f"call-{who.label}-{name}")
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "Bash", "cwd": ws,
                       "permission_mode": "default", "tool_input": {"command": command}}, f)
        os.chmod(path, 0o644)
        entries.append(measure.entry(name, [vitrine, "hook", "--agent", "claude"], ws, who.env(), Call(path)))
    samples = measure.start_times(h, who, entries, rounds)
    return {"samples": samples, "rows": {k: stats.summary(v) for k, v in samples.items()}}


def reader(vitrine):
    """The unit tests lie beside the program in a build; elsewhere there are none to ask."""
    program = os.path.join(os.path.dirname(os.path.realpath(vitrine)), "src", "guard", "limits_test")
    if not os.access(program, os.X_OK):
        return {}
    _, out, _ = host.run([program])
    found = re.search(r"read in ([\d.]+) us", out), re.search(r"128 KiB: ([\d.]+) ms", out)
    return {"read_us": float(found[0][1]), "worst_ms": float(found[1][1])} if all(found) else {}


def guard(h, who, vitrine, ws, rounds):
    return {**hook(h, who, vitrine, ws, rounds), **reader(vitrine)}


def one_loop(who, vitrine, ws, name):
    env = {**who.env(), "XDG_STATE_HOME": os.path.join(who.home, "loop-state")}
    argv = [vitrine, "loop", "shell", ws, "--name", name, "--prompt", "date >>log", "--max", str(ITERATIONS), "-q",
            "--json"]
    begin = time.monotonic()
    _, out, _ = host.run(argv, who=who, cwd=ws, env=env)
    took = time.monotonic() - begin
    if json.loads(out)["iterations"] != ITERATIONS:
        raise host.Unmeasurable("a loop ended early")
    host.run([vitrine, "rm", "--force", name], who=who, cwd=ws, env=env)
    return took


def loop(who, vitrine, rounds):
    ws = who.workspace("loop")
    state = os.path.join(who.home, "loop-state")
    try:
        took = sorted(one_loop(who, vitrine, ws, f"bench-{i}") for i in range(rounds))
    finally:
        subprocess.run(["rm", "-rf", state], check=False)
    return {"median": stats.median(took), "least": took[0], "n": rounds}


def judge(data, who):
    def target(name, want, got, met):
        return {"name": name, "who": who, "want": want, "got": got, "met": bool(met)}

    out = []
    if who in data.get("guard", {}):
        g = data["guard"][who]
        worst = max(g["rows"][k]["median"] for k in CALLS)
        most = min(HOOK_MS, PEER_MS / PEER_SHARE)
        out.append(target("guard: a decision, from start to exit", f"< {most:.0f} ms", f"{worst:.2f} ms", worst < most))
        if "read_us" in g:
            out.append(target("guard: a typical command is read", f"< {READ_US:.0f} µs", f"{g['read_us']:.1f} µs",
                              g["read_us"] < READ_US))
            out.append(target("guard: the worst text of 128 KiB", f"≤ {WORST_MS:.0f} ms", f"{g['worst_ms']:.1f} ms",
                              g["worst_ms"] <= WORST_MS))
    if who in data.get("loop", {}):
        d = data["loop"][who]
        out.append(target(f"loop: {ITERATIONS} iterations, all of it", f"< {LOOP_S:.0f} s", f"{d['median']:.2f} s",
                          d["median"] < LOOP_S))
    return out


def guard_document(data, table, names):
    text = ("## The guard\n\nA whole `vitrine hook`, in ms, from start to exit, with a call of Claude Code on its standard "
            "input; beside `/bin/true`.\n\n")
    for who, g in data["guard"].items():
        rows = [[k, s["n"], *(f"{s[x]:.2f}" for x in ("median", "p90", "min"))] for k, s in g["rows"].items()]
        text += f"As {names[who]}:\n\n" + table(["call", "n", "median", "p90", "least"], rows) + "\n"
    return text


def loop_document(data, table, names):
    text = (f"## Loops\n\n{ITERATIONS} iterations of a shell that appends a line, each with its checkpoint, session and "
            "records, in s.\n\n")
    rows = [[names[who], d["n"], f"{d['median']:.2f}", f"{d['least']:.2f}"] for who, d in data["loop"].items()]
    return text + table(["as", "n", "median", "least"], rows)
