# SPDX-License-Identifier: Apache-2.0
"""The six measurements. Each returns plain data for the report; nothing here judges.

Whatever is timed is timed by the C helpers; this file only writes their lists and reads their
lines.
"""

import ctypes
import io
import os
import random
import shutil
import signal
import subprocess
import tarfile
import time

import host
import peers as rows
import stats
from host import Unmeasurable

TRUE = ["/bin/true"]
TREE_FILES = 20000
TREE_REPOS = 10
WORK_FILES = 5000
MEMORY_LIMIT = 512 << 20
PIDS_LIMIT = 200
PR_SET_CHILD_SUBREAPER = 36


# --- starts -------------------------------------------------------------------------------------

def entry(name, argv, ws, env, peer=None):
    lines = [f"name {name}", f"cwd {ws}"]
    lines += [f"arg {a}" for a in argv]
    lines += [f"env {k}={v}" for k, v in env.items()]
    if peer:
        lines += [f"fd {n} {path}" for n, path in peer.fds]
        lines += [f"every {peer.every}", f"lane {peer.lane}"]
    return "\n".join(lines) + "\n"


def start_times(h, who, entries, rounds, gap_ms=0, warmup=5):
    """Runs the list; {name: {round: ns}}. A single failed start spoils the measurement."""
    path = os.path.join(h.base, "list")
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(entries))
    argv = [h.helper("spawn_bench"), "--rounds", str(rounds), "--warmup", str(warmup),
            "--gap-ms", str(gap_ms)]
    if who.uid != os.geteuid():
        argv += ["--user", who.name]
    _, out, _ = host.run([*argv, path], timeout=600)
    samples = {}
    for line in out.splitlines():
        number, name, ns, status = line.split()
        if status != "0":
            raise Unmeasurable(f"{name} as {who.label}: /bin/true ended with {status}")
        samples.setdefault(name, {})[int(number)] = int(ns)
    return samples


def starts(h, who, peers, ws, rounds, more=()):
    entries = [entry(p.key, p.argv(who, ws, TRUE), ws, p.env(who), p) for p in peers.values()]
    samples = start_times(h, who, [*entries, *more], rounds)
    result = {"samples": samples, "rows": {k: stats.summary(v) for k, v in samples.items()}}
    base = samples["bwrap"]
    result["ratio"] = {k: stats.paired(v, base) for k, v in samples.items() if k != "bwrap"}
    return result


def tree_starts(h, who, peers, rounds):
    ws = who.workspace("tree")
    host.run([h.helper("make_tree"), ws, str(TREE_FILES), str(TREE_REPOS)], who=who)
    walk = [h.helper("lstat_walk"), ws]
    _, count, _ = host.run(walk, who=who)
    if int(count) < TREE_FILES:
        raise Unmeasurable(f"the tree has only {count.strip()} files")
    result = starts(h, who, peers, ws, rounds, [entry("walk", walk, ws, who.env())])
    result["files"] = int(count)
    result["repos"] = TREE_REPOS
    return result


def check_limits(peer, who, ws):
    """A limit that is not in force costs nothing, so it is tried before it is timed.

    tail keeps a line without an end in memory; a shell that may not fork gives up. Both are bounded
    by themselves: 672 MiB and 260 processes that end after some seconds.
    """
    hog = f"head -c {MEMORY_LIMIT + (160 << 20)} /dev/zero | tail >/dev/null"
    forks = f"i=0; while [ $i -lt {PIDS_LIMIT + 60} ]; do sleep 3 & i=$((i+1)); done; exit 0"
    for limit, script in (("memory", hog), ("pids", forks)):
        status, _, _ = peer.run(who, ws, ["/bin/sh", "-c", script], check=False)
        if status == 0:
            raise Unmeasurable(f"{peer.label}: the {limit} limit is not in force")


def limited_starts(h, who, vitrine, crun, ws, rounds):
    """With cgroup limits, half a second of rest before each: joining is slow only after a rest."""
    entries = [entry(p.key, p.argv(who, ws, TRUE), ws, p.env(who), p) for p in (vitrine, crun)]
    samples = start_times(h, who, entries, rounds, gap_ms=500, warmup=1)
    return {"samples": samples, "rows": {k: stats.summary(v) for k, v in samples.items()},
            "ratio": {"vitrine": stats.paired(samples["vitrine"], samples["crun"])}}


# --- memory -------------------------------------------------------------------------------------

def processes():
    """{pid: (parent, name)} of everything that runs."""
    table = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
                text = f.read()
        except OSError:
            continue
        name = text[text.index("(") + 1:text.rindex(")")]
        table[int(pid)] = (int(text[text.rindex(")") + 1:].split()[1]), name)
    return table


def below(table, top):
    found = {top}
    grown = True
    while grown:
        more = {p for p, (parent, _) in table.items() if parent in found and p not in found}
        grown = bool(more)
        found |= more
    return found - {top}


def inner_pid(pid):
    """The pid a process has in its own pid namespace, or None if that is ours."""
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as f:
        for line in f:
            if line.startswith("NSpid:"):
                ids = line.split()[1:]
                return int(ids[-1]) if len(ids) > 1 else None
    return None


def rollup(pid):
    sums = {}
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii", errors="replace") as f:
        for line in f:
            words = line.split()
            if len(words) == 3 and words[2] == "kB":
                sums[words[0].rstrip(":")] = int(words[1])
    return {"private": sums["Private_Clean"] + sums["Private_Dirty"], "pss": sums["Pss"],
            "rss": sums["Rss"]}


def role(pid, client, name):
    if name == "sleep":
        return "workload"
    if pid == client:
        return "client"
    return "init" if inner_pid(pid) == 1 else "keeper"


def adopt_orphans(flag):
    """A keeper that leaves its client must stay findable: it becomes our child then."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, int(flag), 0, 0, 0)


def reap(pids, flags):
    """Collects those of our adopted children that have ended."""
    for pid in pids:
        try:
            os.waitpid(pid, flags)
        except OSError:
            pass


def memory(peer, who, ws):
    """Starts `sleep` inside, waits until it is there and settled, reads every process around it."""
    adopt_orphans(True)
    before = below(processes(), os.getpid())
    argv = peer.argv(who, ws, ["/bin/sleep", "20"])
    if peer.fds:
        number, path = peer.fds[0]
        argv = ["/bin/sh", "-c", f'exec "$@" {number}<"$0"', path, *argv]
    child = subprocess.Popen(argv, cwd=ws, env=peer.env(who), stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **who.drop())
    try:
        table, mine = wait_for_sleep(child, before, peer)
        return [{"name": table[p][1], "role": role(p, child.pid, table[p][1]), **rollup(p)}
                for p in sorted(mine)]
    except OSError as e:
        raise Unmeasurable(f"{peer.label}: {e}") from e
    finally:
        end(child, before)
        adopt_orphans(False)


def wait_for_sleep(child, before, peer):
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        table = processes()
        mine = below(table, os.getpid()) - before
        if any(table[p][1] == "sleep" for p in mine):
            time.sleep(0.5)
            table = processes()
            return table, below(table, os.getpid()) - before
        if child.poll() is not None:
            break
        time.sleep(0.02)
    raise Unmeasurable(f"{peer.label}: no sleep was seen inside")


def end(child, before):
    child.terminate()
    try:
        child.wait(5)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    deadline = time.monotonic() + 3
    while (rest := below(processes(), os.getpid()) - before) and time.monotonic() < deadline:
        reap(rest, os.WNOHANG)
        time.sleep(0.02)
    for pid in rest:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    reap(rest, 0)


# --- single system calls ------------------------------------------------------------------------

def copy_helper(h, who, ws, name):
    """Into the workspace, the one place that is at the same path inside and outside."""
    path = os.path.join(ws, name)
    shutil.copyfile(h.helper(name), path)
    os.chmod(path, 0o755)
    os.chown(path, who.uid, who.gid)
    return path


def calls_place(h, who, name):
    """Workspace, program and the file it opens."""
    ws = who.workspace(name)
    program = copy_helper(h, who, ws, "syscalls")
    data = os.path.join(ws, "data")
    with open(data, "wb") as f:
        f.write(b"x" * 4096)
    os.chown(data, who.uid, who.gid)
    return ws, program, data


def call_times(out):
    return [(name, float(ns)) for name, ns in map(str.split, out.splitlines())]


def keep_least(row, key, ns):
    row[key] = min(ns, row.get(key, float("inf")))


def system_calls(h, who, peers, runs):
    """{row: {peer: best ns}} over several interleaved runs of the same static program."""
    ws, program, data = calls_place(h, who, "calls")
    best = {}
    rng = random.Random(5)
    for _ in range(runs):
        for key in rng.sample(sorted(peers), len(peers)):
            # A sandbox's home is a tmpfs, and so is everything here: like is compared with like.
            home = who.space if key == "bare" else who.home
            _, out, _ = peers[key].run(who, ws, [program, data, home, "25"])
            for name, ns in call_times(out):
                keep_least(best.setdefault(name, {}), key, ns)
    for name, row in best.items():
        if set(row) != set(peers):
            raise Unmeasurable(f"system call {name}: not every row was measured")
    return best


FLOOR_ROWS = ("getpid", "open+close-workspace")
WALLS = {"nothing": "none", "a filter": "filter", "Landlock": "landlock", "a watch": "watch", "all three": "filter,landlock,watch"}


def call_floor(h, who, runs):
    """{walls: {row: best ns}}: what the least of each wall costs by itself, without a sandbox."""
    ws, program, data = calls_place(h, who, "floor")
    best = {}
    rng = random.Random(6)
    for _ in range(runs):
        for walls in rng.sample(sorted(WALLS), len(WALLS)):
            _, out, _ = rows.Walls(h, WALLS[walls]).run(who, ws, [program, data, who.space, "25"])
            for name, ns in call_times(out):
                keep_least(best.setdefault(walls, {}), name, ns)
    return {walls: best[walls] for walls in WALLS}


# --- file work ----------------------------------------------------------------------------------

WORK_WALLS = "filter,writes,watch"


def source_text(i, rng):
    lines = [f"/* file {i} */"]
    for k in range(rng.randint(5, 60)):
        lines.append(f"static int f{i}_{k}(int x) {{ return x * {rng.randint(1, 9999)} + {k}; }}")
    return "\n".join(lines) + "\n"


def make_archive(path):
    rng = random.Random(7)
    with tarfile.open(path, "w") as tar:
        for i in range(WORK_FILES):
            data = source_text(i, rng).encode()
            info = tarfile.TarInfo(f"d{i // 100:02}/s{i // 20 % 5}/f{i:04}.c")
            info.size = len(data)
            info.mtime = 1700000000
            tar.addfile(info, io.BytesIO(data))


def compile_unit():
    names = ("errno", "stdio", "stdlib", "string", "time", "unistd")
    head = "".join(f"#include <{n}.h>\n" for n in names)
    body = "".join(
        f"int g{i}(const char *s, char *d) {{ size_t n = strlen(s); int c = {i};\n"
        f"\tfor (size_t k = 0; k < n; k++) {{\n"
        f"\t\tc = c * 31 + s[k];\n\t\td[k] = (char)(c ^ s[n - k - 1]);\n\t}}\n"
        f"\tif (c % 7 == {i % 7}) printf(\"%d %s\\n\", c, d);\n\treturn c; }}\n" for i in range(24))
    return head + body


def work_place(h, who):
    """Archive, unpacked tree, repository and source, the same for both sides.

    Where the pages of a tree happen to lie makes up to a tenth of a difference, so two trees that are alike are not
    good enough. Git's index must not look at owners then: the two sides of a root run see different ones. The sandbox
    is gone again before the next turn outside: what it watches is watched for everybody.
    """
    ws = who.workspace("work")
    program = copy_helper(h, who, ws, "file_work")
    archive = os.path.join(ws, "files.tar")
    make_archive(archive)
    with open(os.path.join(ws, "unit.c"), "w", encoding="ascii") as f:
        f.write(compile_unit())
    for name in ("tree", "repo"):
        os.mkdir(os.path.join(ws, name))
        host.run(["tar", "--no-same-owner", "-xf", archive, "-C", os.path.join(ws, name)])
    host.run(["chown", "-R", f"{who.uid}:{who.gid}", ws])
    repo = os.path.join(ws, "repo")
    env = {**who.env(), "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    for words in (["init", "-q"], ["config", "core.checkStat", "minimal"], ["add", "."],
                  ["-c", "user.name=b", "-c", "user.email=b@localhost", "commit", "-qm", "all"]):
        host.run(["git", "-C", repo, *words], who=who, env=env)
    return ws, program


def one_turn(peer, who, place):
    """{job: ns} of all jobs on one side."""
    ws, program = place
    _, out, _ = peer.run(who, ws, [program, ws])
    return {name: int(ns) for name, ns in map(str.split, out.splitlines())}


def file_work(h, who, bare, vitrine, pairs):
    """Pairs of the same jobs outside and inside, in turn first, and now and then behind the least walls; {job: figures}."""
    place = work_place(h, who)
    least = rows.Walls(h, WORK_WALLS)
    samples = {}
    for r in range(-1, pairs):
        sides = [bare, vitrine] if r % 2 else [vitrine, bare]
        if r % 3 == 2:
            sides.insert(r % 2, least)
        for peer in sides:
            for name, ns in one_turn(peer, who, place).items():
                samples.setdefault(name, {}).setdefault(peer.key, {})[r] = ns
    return {name: work_figures(s) for name, s in samples.items()}


def work_figures(samples):
    for side in samples.values():
        del side[-1]  # the first turn finds nothing in memory yet
    return {"samples": samples, "bare": stats.summary(samples["bare"]),
            "vitrine": stats.summary(samples["vitrine"]),
            "ratio": stats.paired(samples["vitrine"], samples["bare"]),
            "least": stats.paired(samples["walls"], samples["bare"])}
