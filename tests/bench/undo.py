# SPDX-License-Identifier: Apache-2.0
"""Checkpoints, restores and forks beside what people do instead: git status, git stash, cp -a.

Every round times each of them once, one after the other, so that a busy moment of the machine hits all alike; the
figures are medians and tenths. The trees are made anew for each part and removed with the run.
"""

import json
import os
import random
import subprocess
import time

import host

FILES = 20000
CHANGED = 10
LAYER_FILES = 10000
LAYER_BYTES = 20000
HOME_FILES = 1024


def timed(who, argv, cwd, env):
    begin = time.monotonic()
    p = subprocess.run(argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, **who.drop())
    ms = (time.monotonic() - begin) * 1e3
    if p.returncode:
        raise host.Unmeasurable(f"{' '.join(argv)}: {p.stderr.decode(errors='replace')[-300:]}")
    return ms, p.stdout.decode(errors="replace")


def summary(samples):
    v = sorted(samples)
    return {"median": v[len(v) // 2], "p10": v[len(v) // 10], "n": len(v)}


class Undo:
    def __init__(self, vitrine, who, rounds):
        self.vitrine, self.who, self.rounds = vitrine, who, rounds
        self.env = {"PATH": os.environ["PATH"], "HOME": who.home, "LANG": "C.UTF-8",
                    "XDG_STATE_HOME": os.path.join(who.home, "undo-state"),
                    "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_AUTHOR_NAME": "b", "GIT_AUTHOR_EMAIL": "b@b",
                    "GIT_COMMITTER_NAME": "b", "GIT_COMMITTER_EMAIL": "b@b"}

    def ms(self, *argv, cwd):
        return timed(self.who, list(argv), cwd, self.env)[0]

    def ours(self, *argv, cwd):
        return timed(self.who, [self.vitrine, *argv], cwd, self.env)

    def own(self, path):
        subprocess.run(["chown", "-R", f"{self.who.uid}:{self.who.gid}", path], check=True)

    def workspace(self, name):
        """On disk, where people's projects are."""
        path = os.path.join(self.who.home, name)
        os.mkdir(path, 0o755)
        self.own(path)
        return path

    def tree(self, ws):
        rng = random.Random(1)
        for d in range(FILES // 50):
            path = os.path.join(ws, f"d{d % 20}", f"e{d}")
            os.makedirs(path)
            for f in range(50):
                with open(os.path.join(path, f"file{f}.c"), "w", encoding="ascii") as out:
                    out.write(f"line {rng.random()}\n" * rng.randint(10, 300))
        self.own(ws)
        for argv in (["git", "init", "-q", "."], ["git", "add", "-A"], ["git", "-c", "gc.auto=0", "commit", "-qm", "x"], ["git", "gc", "-q"]):
            timed(self.who, argv, ws, self.env)

    def touch(self, ws):
        for k in range(CHANGED):
            with open(os.path.join(ws, f"d{k}", f"e{k}", "file3.c"), "a", encoding="ascii") as f:
                f.write("x\n")

    def direct(self):
        ws = self.workspace("undo-direct")
        self.tree(ws)
        rows = {k: [] for k in ("git status", "checkpoint", "diff --stat", "undo", "git stash", "cp -a")}
        rows["first checkpoint"] = [self.ours("checkpoint", cwd=ws)[0]]
        time.sleep(0.1)
        self.ours("checkpoint", cwd=ws)
        for i in range(self.rounds):
            self.touch(ws)
            rows["git status"].append(self.ms("git", "status", cwd=ws))
            rows["checkpoint"].append(self.ours("checkpoint", cwd=ws)[0])
            rows["diff --stat"].append(self.ours("diff", "--stat", cwd=ws)[0])
            self.touch(ws)
            rows["undo"].append(self.ours("undo", cwd=ws)[0])
            if i < 3:
                rows["cp -a"].append(self.ms("cp", "-a", ws, ws + ".copy", cwd=ws))
                subprocess.run(["rm", "-rf", ws + ".copy"], check=True)
                rows["git stash"].append(self.ms("git", "stash", "-q", cwd=ws))
                timed(self.who, ["git", "stash", "pop", "-q"], ws, self.env)
        return {k: summary(v) for k, v in rows.items()}

    def layered(self):
        """10,000 files, 200 MB, written behind an overlay; frozen, thrown back, copied."""
        ws = self.workspace("undo-review")
        with open(os.path.join(ws, "keep"), "w", encoding="ascii") as f:
            f.write("x")
        self.own(ws)
        script = (f"import os\nfor d in range(100):\n os.makedirs('d%d'%d, exist_ok=True)\n"
                  f" for f in range({LAYER_FILES // 100}):\n  open('d%d/f%d'%(d,f),'wb').write(os.urandom({LAYER_BYTES}))\n")
        rows = {k: [] for k in ("checkpoint", "restore", "cp -a of the layer")}
        for i in range(max(3, self.rounds // 10)):
            self.ours("run", "--name", "layered", "--mode", "review", "--", "python3", "-c", script, cwd=ws)
            layers = json.load(open(os.path.join(self.env["XDG_STATE_HOME"], "vitrine/sandboxes/layered/layers.json"),
                                    encoding="utf-8"))
            top = os.path.join(self.env["XDG_STATE_HOME"], "vitrine/layers", layers["ws"][0], "fs")
            if i == 0:
                rows["cp -a of the layer"].append(self.ms("cp", "-a", top, ws + ".copy", cwd=ws))
                subprocess.run(["rm", "-rf", ws + ".copy"], check=True)
            ms, out = self.ours("checkpoint", "layered", "--json", cwd=ws)
            rows["checkpoint"].append(ms)
            self.ours("run", "--name", "layered", "--", "sh", "-c", "echo x > after", cwd=ws)
            rows["restore"].append(self.ours("restore", "layered", str(json.loads(out)["checkpoint"]), cwd=ws)[0])
        return {k: summary(v) for k, v in rows.items()}

    def fork(self):
        """A gigabyte in the home, forked."""
        ws = self.workspace("undo-fork")
        self.ours("run", "--name", "big", "--", "sh", "-c",
                  f"for i in $(seq {HOME_FILES}); do head -c 1048576 /dev/zero | tr '\\0' x > ~/f$i; done", cwd=ws)
        rows = {"fork": []}
        for i in range(max(3, self.rounds // 4)):
            rows["fork"].append(self.ours("fork", "big", f"fork{i}", cwd=ws)[0])
        return {k: summary(v) for k, v in rows.items()}

    def measure(self):
        try:
            return {"direct": self.direct(), "layers": self.layered(), "fork": self.fork()}
        finally:
            subprocess.run(["chmod", "-R", "u+rwx", self.env["XDG_STATE_HOME"]], check=False)
            subprocess.run(["rm", "-rf", self.env["XDG_STATE_HOME"]], check=False)


TARGETS = (
    ("direct", "checkpoint, 20,000 files with 10 changed", "≤ 2 × git status",
     lambda d: (d["checkpoint"]["median"] <= 2 * d["git status"]["median"],
                f"{d['checkpoint']['median']:.0f} ms against {d['git status']['median']:.0f} ms "
                f"({d['checkpoint']['median'] / d['git status']['median']:.2f} ×)")),
    ("layers", "checkpoint of 10,000 changed files, 200 MB, in review mode", "< 100 ms",
     lambda d: (d["checkpoint"]["median"] < 100, f"{d['checkpoint']['median']:.1f} ms")),
    ("layers", "restore of them", "< 50 ms", lambda d: (d["restore"]["median"] < 50, f"{d['restore']['median']:.1f} ms")),
    ("fork", "fork with 1 GiB of private layers", "< 50 ms",
     lambda d: (d["fork"]["median"] < 50, f"{d['fork']['median']:.1f} ms")),
)


def judge(data, who):
    out = []
    for part, name, want, fn in TARGETS:
        if who in data.get("undo", {}):
            met, got = fn(data["undo"][who][part])
            out.append({"name": name, "who": who, "want": want, "got": got, "met": bool(met)})
    return out


def document(data, table, names):
    text = "## Undo\n\n"
    text += ("Times in ms, each a whole command from start to exit; git's repository is packed. `undo` saves the "
             "present, compares and writes back ten files.\n\n")
    for who, parts in data["undo"].items():
        rows = []
        for part, label in (("direct", "20,000 files written in place"), ("layers", "10,000 files, 200 MB, in layers"),
                            ("fork", "1 GiB of home")):
            for name, s in parts[part].items():
                rows.append([label, name, f"{s['median']:.1f}", f"{s['p10']:.1f}", str(s["n"])])
        text += f"As {names[who]}:\n\n" + table(["tree", "command", "median", "p10", "runs"], rows) + "\n"
    return text
