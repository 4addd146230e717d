# SPDX-License-Identifier: Apache-2.0
"""Judges the figures against the targets and writes the document, whose prose is all here."""

import agents
import engines
import measure
import net
import undo
import vm

START_RATIO = 0.6
WALK_EXTRA_MS = 4.0
CALL_RATIO = 1.15
WORK_RATIO = 1.08
MEMORY_MIB = 3.0
EXEC_RATIO, EXEC_EXTRA_MS = 1.5, 1.0
NAMED_RATIO = 0.9
DENSITY_RATIO, DENSITY_MIB = 2.0, 3.0
EVENTS_SLOWDOWN = 0.05

CALL_NAMES = {
    "getpid": "getpid",
    "open+close-workspace": "open + close, file in the workspace",
    "open+close-usr": "open + close, file in /usr",
    "stat-workspace": "stat, file in the workspace",
    "stat-usr": "stat, file in /usr",
    "stat-missing-root": "stat, missing, below a missing folder of /",
    "stat-missing-usr": "stat, missing in /usr/lib",
    "stat-missing-workspace": "stat, missing in the workspace",
    "stat-missing-home": "stat, missing in the home",
    "pread": "pread of 64 bytes",
    "write-null": "write to /dev/null",
    "pipe-round-trip": "pipe, one byte in and out",
    "socketpair-ping": "socket pair, one byte in and out",
    "mmap+touch+munmap": "mmap, touch 16 pages, munmap",
    "fork+wait": "fork + wait",
}
WHO_NAMES = {"user": "ordinary user", "root": "root"}


def helpers_kib(rows):
    """Private memory of keeper and init; without a keeper of its own, the client counts as one."""
    chosen = [r for r in rows if r["role"] in ("keeper", "init")]
    if not any(r["role"] == "keeper" for r in rows):
        chosen += [r for r in rows if r["role"] == "client"]
    return sum(r["private"] for r in chosen)


def target(name, who, want, got, met):
    return {"name": name, "who": who, "want": want, "got": got, "met": bool(met)}


def beside_bwrap(name, who, part, key, most):
    """By the ratio within a round: what else went on in that moment met both."""
    ours, theirs = (part["rows"][k]["median"] for k in (key, "bwrap"))
    ratio = part["ratio"][key]["median"]
    return target(name, who, f"≤ {most} × bubblewrap", f"{ratio:.3f} × per round ({ours:.2f} against {theirs:.2f} ms)",
                  ratio <= most)


def judge_starts(data, who):
    out = []
    if who in data.get("start", {}):
        out.append(beside_bwrap("start of `/bin/true`", who, data["start"][who], "vitrine", START_RATIO))
    if who in data.get("tree", {}):
        ours, walk = (data["tree"][who]["rows"][k]["median"] for k in ("vitrine", "walk"))
        out.append(target("start with 20,000 files", who,
                          f"≤ lstat walk + {WALK_EXTRA_MS:.0f} ms",
                          f"walk {ours - walk:+.2f} ms ({ours:.2f} against {walk:.2f} ms)",
                          ours - walk <= WALK_EXTRA_MS))
    return out


def judge_running(data, who):
    out = []
    if who in data.get("memory", {}):
        mib = helpers_kib(data["memory"][who]["vitrine"]) / 1024
        out.append(target("memory of keeper and init", who, f"< {MEMORY_MIB:.0f} MiB private",
                          f"{mib:.2f} MiB", mib < MEMORY_MIB))
    if who in data.get("calls", {}):
        worst, r = max(((n, v["vitrine"] / v["bare"]) for n, v in data["calls"][who].items()),
                       key=lambda x: x[1])
        out.append(target("single system calls, the worst", who, f"≤ {CALL_RATIO} × bare",
                          f"{r:.2f} × ({CALL_NAMES.get(worst, worst)}{least_of_call(data, who, worst)})", r <= CALL_RATIO))
    if who in data.get("work", {}):
        worst, r = max(((n, v["ratio"]["high"]) for n, v in data["work"][who].items()),
                       key=lambda x: x[1])
        out.append(target("file work, the worst upper 95 % bound", who, f"≤ {WORK_RATIO} × bare",
                          f"{r:.3f} × ({worst}; the least walls alone {data['work'][who][worst]['least']['high']:.3f} ×)",
                          r <= WORK_RATIO))
    return out


def least_of_call(data, who, name):
    floor = data.get("floor", {}).get(who)
    return f"; the least walls alone {floor['all three'][name] / floor['nothing'][name]:.2f} ×" if floor else ""


def judge_lasting(data, who):
    out = []
    if who in data.get("exec", {}):
        ours, bare = (data["exec"][who]["rows"][k]["median"] for k in ("exec", "bare"))
        out.append(target("`exec` of `/bin/true` in a running sandbox", who,
                          f"≤ {EXEC_RATIO} × bare + {EXEC_EXTRA_MS:.0f} ms",
                          f"{ours:.2f} ms, bare {bare:.2f} ms", ours <= EXEC_RATIO * bare + EXEC_EXTRA_MS))
    if who in data.get("named", {}):
        out.append(beside_bwrap("`run` of a named sandbox that is there", who, data["named"][who], "named", NAMED_RATIO))
    if who in data.get("density", {}):
        d = data["density"][who]
        out.append(target(f"{d['n']} idle sandboxes, time to start", who,
                          f"≤ {DENSITY_RATIO:.0f} × as many bubblewraps",
                          f"{d['seconds'] / d['bwrap_seconds']:.2f} × ({d['seconds']:.2f} of "
                          f"{d['bwrap_seconds']:.2f} s)", d["seconds"] <= DENSITY_RATIO * d["bwrap_seconds"]))
        out.append(target(f"{d['n']} idle sandboxes, private memory of each", who, f"< {DENSITY_MIB:.0f} MiB",
                          f"{d['private_kib'] / 1024:.2f} MiB", d["private_kib"] < DENSITY_MIB * 1024))
        out.append(target("the last tenth of them against the first", who, "≤ 1.5 ×",
                          f"{d['growth']:.2f} ×", d["growth"] <= 1.5))
    if who in data.get("events", {}):
        e = data["events"][who]
        out.append(target(f"{e['rate']:,} events a second for {e['seconds']:.0f} s", who, "none lost",
                          f"{e['lost']} of {e['events'] + e['lost']:,} at {e['reached']:,.0f} a second",
                          e["lost"] == 0 and e["verified"] and e["reached"] >= 0.98 * e["rate"]))
        out.append(target("work beside them", who, f"≤ {100 * EVENTS_SLOWDOWN:.0f} % slower",
                          f"{100 * e['slowdown']:+.1f} % ({100 * e['slowdown_low']:+.1f} to {100 * e['slowdown_high']:+.1f})",
                          e["slowdown"] <= EVENTS_SLOWDOWN))
    return out


def judge_walls(data, who):
    """A faster start with fewer walls would prove nothing."""
    ours, theirs = (data["walls"][who][k] for k in ("vitrine", "bwrap"))
    lacking = [n for n in theirs["namespaces"] if n not in ours["namespaces"]]
    lacking += [k for k in ("seccomp", "no_new_privs", "no_caps") if theirs[k] and not ours[k]]
    return [target("walls, seen from inside", who, "all that bubblewrap has",
                   "without " + ", ".join(lacking) if lacking else "all", not lacking)]


def judge(data):
    out = []
    for who in data["identities"]:
        if {"vitrine", "bwrap"} <= set(data["walls"].get(who, {})):
            out += judge_walls(data, who)
        out += judge_starts(data, who)
        if who in data.get("limits", {}):
            ours, crun = (data["limits"][who]["rows"][k]["median"] for k in ("vitrine", "crun"))
            out.append(target("start with memory and process limits, after rest", who, "≤ crun",
                              f"{ours:.2f} ms against {crun:.2f} ms", ours <= crun))
        out += judge_running(data, who) + judge_lasting(data, who) + undo.judge(data, who) + net.judge(data, who)
        out += engines.judge(data, who) + vm.judge(data, who) + agents.judge(data, who)
    return out


def table(head, rows):
    align = ["---"] + ["---:"] * (len(head) - 1)
    lines = [head, align, *rows]
    return "\n".join("| " + " | ".join(str(c) for c in line) + " |" for line in lines) + "\n"


def text_table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(c) for c in line) + " |" for line in lines) + "\n"


def targets_part(data):
    rows = [[t["name"], WHO_NAMES[t["who"]], t["want"], t["got"],
             "reached" if t["met"] else "**MISSED**"] for t in data["targets"]]
    text = "## Must reach\n\n" + text_table(["what", "as", "target", "measured", "result"], rows)
    for line in data["repeated"]:
        text += f"\nMeasured a second time: {line}\n"
    for line in data["errors"]:
        text += f"\n**Could not be measured:** {line}\n"
    if data["mode"] == "quick":
        text += "\nThis was a quick run: few samples, wide bounds; a single result means little.\n"
    return text


def machine_part(data):
    m = data["machine"]
    lines = [
        f"- {m['date']}; {data['mode']} run, {data['seconds']:.0f} s",
        f"- {m['cpu']}, {m['cores']} cores, {m['memory_gib']} GiB; {m['system']}, "
        f"Linux {m['kernel']}, cgroups {m['cgroups']}",
        f"- the machine was {m['busy_before'] * 100:.0f} % busy with other work just before and "
        f"{m['busy_after'] * 100:.0f} % just after",
        f"- workspaces on tmpfs, home on {m['home_fs']}",
    ]
    lines += [f"- {k}: {v}" for k, v in data["versions"].items()]
    lines += [f"- left out: {t}" for t in data["left_out"]]
    return "## Machine and versions\n\n" + "\n".join(lines) + "\n"


def walls_part(data):
    rows = []
    for who, peers in data["walls"].items():
        for key, w in peers.items():
            rows.append([data["labels"][key], WHO_NAMES[who], " ".join(w["namespaces"]) or "none",
                         yes(w["seccomp"]), yes(w["no_new_privs"]), yes(w["no_caps"])])
    text = "## The walls that were compared\n\n"
    text += "Seen from inside by a probe before anything was timed.\n\n"
    head = ["", "as", "own namespaces", "filter", "no new privileges", "no capabilities"]
    text += text_table(head, rows)
    text += (f"\nThe filter given to the others allows {data['filter']['calls']} calls in "
             f"{data['filter']['insns']} BPF instructions, as a binary tree. bubblewrap has the mounts "
             "of Vitrine's own plan, and a row more with the fewer that people write by hand; there and with "
             "crun all of /etc is one mount, which is less work than a chosen part of it.\n\n```\n")
    text += "\n".join(f"{k}: {v}" for k, v in data["commands"].items()) + "\n```\n"
    return text


def yes(flag):
    return "yes" if flag else "no"


def times(s):
    return [s["n"], *(f"{s[k]:.2f}" for k in ("median", "p90", "min"))]


def span(ratio):
    return f"{ratio['median']:.2f} ({ratio['low']:.2f} to {ratio['high']:.2f})"


def start_rows(data, part):
    names = {**data["labels"], "walk": "bare lstat walk of the tree"}
    rows = []
    for key, s in part["rows"].items():
        ratio = part["ratio"].get(key)
        rows.append([names[key], *times(s), span(ratio) if ratio else "1"])
    order = ["bare (no sandbox)", names["walk"]]
    return sorted(rows, key=lambda r: (order.index(r[0]) if r[0] in order else 9, float(r[2])))


START_HEAD = ["", "n", "median ms", "p90 ms", "least ms", "× bubblewrap, per round (95 %)"]


def start_part(data):
    text = "## 1. Start to exit of /bin/true\n\n"
    text += ("Empty workspace. Every round starts each program once, in shuffled order, from a C "
             "launcher that already is the user; the ratio is formed per round, the figure is the "
             "median of those ratios.\n")
    for who, part in data["start"].items():
        text += f"\nAs {WHO_NAMES[who]}:\n\n" + table(START_HEAD, start_rows(data, part))
    return text


def tree_part(data):
    text = "## 2. The same in a workspace of 20,000 files\n\n"
    first = next(iter(data["tree"].values()))
    text += (f"{first['files']} files, {first['repos']} nested git repositories. The walk is a "
             "static C program of its own: open each directory, list it, lstat each entry. The "
             "target compares whole start-to-exit times strictly: Vitrine here ≤ walk + "
             f"{WALK_EXTRA_MS:.0f} ms.\n")
    for who, part in data["tree"].items():
        text += f"\nAs {WHO_NAMES[who]}:\n\n" + table(START_HEAD, start_rows(data, part))
        if who in data.get("start", {}):
            empty = data["start"][who]["rows"]["vitrine"]["median"]
            extra = part["rows"]["vitrine"]["median"] - empty
            walk = part["rows"]["walk"]["median"]
            text += (f"\nThe files cost Vitrine {extra:.2f} ms over the empty workspace; "
                     f"the walk alone takes {walk:.2f} ms.\n")
    return text


def limits_part(data):
    text = "## 3. Start with limits\n\n"
    text += (f"Memory {measure.MEMORY_LIMIT >> 20} MiB and {measure.PIDS_LIMIT} processes, both "
             "tried and found in force before; half a second of rest before each start, because "
             "joining a cgroup is slow only after a rest.\n")
    for who, part in data["limits"].items():
        rows = [[data["labels"][k], *times(s)] for k, s in part["rows"].items()]
        text += f"\nAs {WHO_NAMES[who]}:\n\n" + table(START_HEAD[:-1], rows)
        text += f"\nVitrine to crun, per round: {span(part['ratio']['vitrine'])}\n"
    return text


def sizes(procs):
    return [sum(p[f] for p in procs) for f in ("private", "pss", "rss")]


def memory_part(data):
    text = "## 4. Memory while `sleep` runs inside\n\n"
    text += ("KiB of each process of the sandbox except the workload, from smaps_rollup; private = "
             "Private_Clean + Private_Dirty. The client is the command the user typed; it is not "
             "part of the target.\n")
    for who, peers in data["memory"].items():
        rows = []
        for key, procs in peers.items():
            label = data["labels"][key]
            shown = [p for p in procs if p["role"] != "workload"]
            for p in shown[:6]:
                part = "helper" if p["role"] == "keeper" and key != "vitrine" else p["role"]
                rows.append([f"{label}: {part} ({p['name']})", *sizes([p])])
            if len(shown) > 6:
                rows.append([f"{label}: {len(shown) - 6} more processes", *sizes(shown[6:])])
            rows.append([f"**{label}: all {len(shown)}**", *sizes(shown)])
        text += f"\nAs {WHO_NAMES[who]}:\n\n" + table(["process", "private", "PSS", "RSS"], rows)
    return text


def calls_part(data):
    text = "## 5. Single system calls\n\n"
    text += ("Nanoseconds per call, the best of many loops of one millisecond over several "
             "interleaved runs of the same static program. Workspace and home are tmpfs in every "
             "row. (A disk remembers that a name is missing and a tmpfs does not: in a home on a "
             "disk such a look-up takes a third of what it takes here, outside only.)\n")
    for who, calls in data["calls"].items():
        keys = [k for k in data["labels"] if k in next(iter(calls.values()))]
        rows = [[CALL_NAMES.get(n, n), *(f"{v[k]:.0f}" for k in keys),
                 *(f"{v[k] / v['bare']:.2f}" for k in ("bwrap", "vitrine"))]
                for n, v in calls.items()]
        head = ["", *(data["labels"][k] for k in keys), "bubblewrap / bare", "Vitrine / bare"]
        text += f"\nAs {WHO_NAMES[who]}:\n\n" + table(head, rows)
    return text


def floor_part(data):
    text = "### What a wall costs by itself\n\n"
    text += ("The same program outside, with the least of each wall put on itself: a filter that lets everything pass but one "
             "call, Landlock with one right on one directory, one inotify watch on the file's directory. Nanoseconds. No "
             "sandbox that has these can be below the last row.\n")
    for who, rows in data["floor"].items():
        bare = rows["nothing"]
        out = [[walls, *(f"{v[n]:.0f} ({v[n] / bare[n]:.3f} ×)" for n in measure.FLOOR_ROWS)] for walls, v in rows.items()]
        text += f"\nAs {WHO_NAMES[who]}:\n\n" + table(["", *(CALL_NAMES.get(n, n) for n in measure.FLOOR_ROWS)], out)
    return text


def work_part(data):
    text = "## 6. File work\n\n"
    text += ("Timed inside, 0.2 s after the start, so neither that nor the keeper's first look through the "
             "workspace is in it; pairs of the same jobs outside and inside, "
             f"alternating, in the same directory. {measure.WORK_FILES} files each: unpack them with tar, grep -r through "
             "them, git status of a repository of them; and gcc -O1 -c of one source. The interval "
             "is that of the median ratio. At every opening for writing Landlock, the second wall, looks at each "
             "directory from the file up to the workspace. The last columns are the same jobs outside, in every third "
             "round, with no more than the least of each wall: the filter and the watch of above, and Landlock with the one "
             "right to write below the workspace. No sandbox that has these can be below them.\n")
    for who, works in data["work"].items():
        rows = [[n, w["ratio"]["n"], f"{w['bare']['median']:.1f}", f"{w['vitrine']['median']:.1f}",
                 *(text for r in ("ratio", "least")
                   for text in (f"{w[r]['median']:.3f}", f"{w[r]['low']:.3f} to {w[r]['high']:.3f}"))]
                for n, w in works.items()]
        head = ["", "pairs", "bare ms", "Vitrine ms", "Vitrine / bare", "95 %", "least walls / bare", "95 %"]
        text += f"\nAs {WHO_NAMES[who]}:\n\n" + table(head, rows)
    return text


def document(data):
    text = "# Benchmarks\n\n"
    text += ("Written by `make bench` (tests/bench/bench.py) from one run on one machine; do not "
             "edit. To have figures of your own machine, run it there.\n\n")
    parts = [targets_part(data), machine_part(data)]
    for key, part in (("walls", walls_part), ("start", start_part), ("tree", tree_part),
                      ("limits", limits_part), ("memory", memory_part), ("calls", calls_part),
                      ("floor", floor_part),
                      ("work", work_part),
                      ("undo", lambda d: undo.document(d, table, WHO_NAMES)),
                      ("net", lambda d: net.document(d, table, WHO_NAMES)),
                      ("engines", lambda d: engines.document(d, table, WHO_NAMES)),
                      ("vm", lambda d: vm.document(d, table, WHO_NAMES)),
                      ("guard", lambda d: agents.guard_document(d, table, WHO_NAMES)),
                      ("loop", lambda d: agents.loop_document(d, table, WHO_NAMES))):
        if data.get(key):
            parts.append(part(data))
    return text + "\n".join(parts)
