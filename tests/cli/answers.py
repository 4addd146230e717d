#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""True answers: statuses of sessions that ended, names that mean nothing, what works here."""

import json
import os
import re
import signal
import socket
import sys
import time
from pathlib import Path

from harness import below, eq, has, has_not, main, refused, soon, test

# ---------------------------------------------------------------------------------------- wait


@test
def wait_after_the_end(box):
    """`run -d` then `wait` is no race, however short the command is."""
    for i in range(8):
        r = box.run("-d", "--name", "box", "--", "sh", "-c", f"exit {40 + i}")
        eq((r.rc, r.err), (0, ""))
        r = box.cli("wait", "box")
        eq((r.rc, r.out, r.err), (0, f"{40 + i}\n", ""), f"run {i}")
    eq(box.cli("wait", "box", "3").out, "42\n", "any session that is on record")
    eq(json.loads(box.cli("ls", "--json").out)[0]["exit"], 47)
    eq(box.cli("ls", "--format", "{{.Name}} {{.Exit}}").out, "box 47\n")
    refused(box.cli("wait", "box", "99"), "'box' has no session 99", rc=125)
    refused(box.cli("wait", "box", "0"), "0")
    eq(box.cli("create", "--name", "never", "shell", ".").rc, 0)
    refused(box.cli("wait", "never"), "'never' has run no session yet", rc=125)
    eq(json.loads(box.cli("ls", "--json", "never").out)[0]["exit"], None)


@test
def wait_of_runs_without_a_name(box):
    """The folder of such a run goes with it; how it ended stays."""
    for i in range(8):
        name = box.run("-d", "--", "sh", "-c", f"sleep 0.0{i}; exit {10 + i}").out.strip()
        r = box.cli("wait", name)
        eq((r.rc, r.out, r.err), (0, f"{10 + i}\n", ""), name)
        eq(box.cli("wait", name).out, f"{10 + i}\n", "and again")
    refused(box.cli("wait", "run-000000"), "there is no sandbox 'run-000000'", rc=125)
    refused(box.cli("wait", "../ended"), "there is no sandbox", rc=125)
    # One that is removed when it ends is answered as well, and nothing is kept of runs that somebody waited for.
    eq(box.run("-d", "--rm", "--name", "gone", "--", "sh", "-c", "exit 9").rc, 0)
    r = box.cli("wait", "gone")
    eq((r.out, r.err), ("9\n", ""))
    before = sorted(os.listdir(box.state / "runs" / "ended"))
    box.ok("true")
    eq(sorted(os.listdir(box.state / "runs" / "ended")), before)
    # They go after a week.
    old = box.state / "runs" / "ended" / before[0]
    os.utime(old, (time.time() - 8 * 86400,) * 2)
    name = box.run("-d", "--", "true").out.strip()
    eq(box.cli("wait", name).out, "0\n")
    soon(lambda: not old.exists(), "the record of a week ago goes")


@test
def wait_while_it_runs(box):
    eq(box.run("-d", "--name", "box", "--", "sh", "-c", "sleep 60; exit 5").rc, 0)
    p = box.start("wait", "box")
    time.sleep(0.2)
    eq(p.poll(), None, "it waits")
    eq(box.cli("stop", "--time", "1s", "box").rc, 0)
    eq(box.finish(p).out, "143\n")
    eq(box.cli("wait", "box").out, "143\n")
    # The newest session that runs is meant; one that ended is answered while the sandbox runs on.
    eq(box.cli("start", "box").rc, 0)
    eq(box.run("box", "--", "sh", "-c", "exit 4").rc, 4)
    eq(box.cli("wait", "box").out, "4\n")
    eq(box.cli("stop", "--time", "1s", "box").rc, 0)


@test
def wait_for_a_lost_one(box):
    eq(box.run("-d", "--name", "box", "--", "sleep", "60").rc, 0)
    os.kill(next(p for p in below(os.getpid()) if is_keeper(p, "box")), 9)
    soon(lambda: json.loads(box.cli("ls", "--json").out)[0]["status"] == "lost", "its keeper is dead")
    for words in ["box"], ["box", "1"]:
        refused(box.cli("wait", *words), "session 1 of 'box' has no exit status", "'vitrine inspect box'", rc=125)
    # A keeper that runs by then does not know the session.
    eq(box.cli("start", "box").rc, 0)
    for words in ["box"], ["box", "1"]:
        refused(box.cli("wait", *words), "session 1 of 'box' has no exit status", rc=125)
    eq(box.run("box", "--", "sh", "-c", "exit 4").rc, 4)
    eq(box.cli("wait", "box").out, "4\n")
    refused(box.cli("wait", "box", "1"), "session 1 of 'box' has no exit status", rc=125)
    eq(box.cli("stop", "--time", "1s", "box").rc, 0)


@test
def wait_while_it_is_stopped(box):
    """The command ignores SIGTERM for a while: the keeper no longer answers, and the status is known when it has ended."""
    script = "trap 'echo heard >heard; sleep 1; exit 6' TERM; echo up >up; while :; do sleep 0.05; done"
    eq(box.run("-d", "--name", "box", "--", "sh", "-c", script).rc, 0)
    soon((box.ws / "up").exists, "the command runs")
    stop = box.start("stop", "--time", "10s", "box")
    soon((box.ws / "heard").exists, "the sandbox is being stopped")
    r = box.cli("wait", "box")
    eq((r.rc, r.out, r.err), (0, "6\n", ""))
    eq(box.cli("wait", "box", "1").out, "6\n")
    eq(box.finish(stop).rc, 0)


def is_keeper(pid, name):
    try:
        return open(f"/proc/{pid}/cmdline").read().startswith(f"vitrine keeper {name}")
    except OSError:
        return False


# ---------------------------------------------------------------------------------------- names


# Every verb that takes a name of something that must be there, with one that is not.
NOBODY = [
    ["run", "nobody"], ["start", "nobody"], ["exec", "nobody", "--", "true"], ["attach", "nobody"],
    ["stop", "nobody"], ["stop", "run-000000"], ["rm", "nobody"], ["rm", "--force", "nobody"], ["rm", "run-000000"],
    ["reset", "--force", "nobody"], ["rename", "nobody", "other"], ["ls", "nobody"], ["ps", "nobody"], ["ps", "run-000000"],
    ["inspect", "nobody"], ["logs", "nobody"], ["logs", "box", "99"], ["stats", "nobody"], ["cp", "nobody:/x", "."],
    ["cp", "box:/no/such", "."], ["wait", "nobody"], ["wait", "box", "99"], ["events", "nobody"], ["checkpoint", "nobody"],
    ["checkpoints", "nobody"], ["restore", "nobody", "1"], ["restore", "box", "99"], ["restore", "box", "no such text"],
    ["undo", "nobody"], ["diff", "nobody"], ["diff", "box", "--since", "99"], ["fetch", "nobody"], ["apply", "nobody"],
    ["discard", "nobody"], ["fork", "nobody", "other"], ["net", "log", "nobody"], ["net", "rules", "nobody"],
    ["net", "test", "nobody", "example.org"], ["net", "allow", "nobody", "example.org"],
    ["network", "proxy", "nobody", "--policy", "deny"], ["save", "nobody", "x:1"], ["load", "nobody:1", "other"],
    ["template", "rm", "nobody"], ["template", "export", "nobody", "f"], ["run", "--template", "nobody", "--", "true"],
    ["secret", "rm", "nobody"], ["run", "--secret", "nobody", "--allow", "example.org", "--", "true"], ["loop", "nobody", "--prompt", "x"],
    ["loop", "--resume", "nobody"], ["loop", "report", "nobody"], ["loop", "stop", "nobody"], ["hint", "nobody", "text"],
    ["status", "nobody"], ["trash", "ls", "nobody"], ["trash", "empty", "nobody"], ["broker", "show", "nobody", "1"],
    ["create", "nobody"], ["engines", "--measure", "nobody"],
    ["guard", "install", "nobody"],
]


@test(timeout=60)
def names_that_mean_nothing(box):
    """One exit status for every name that is not there."""
    box.ok("true", "--name", "box")
    wrong = []
    for argv in NOBODY:
        r = box.cli(*argv)
        if r.rc != 125 or r.out != "" or not r.err.startswith("vitrine: ") or r.err.count("\n") != 1:
            wrong.append(f"{' '.join(argv)}: {r.rc} {r.out[:60]!r} {r.err[:150]!r}")
    eq(wrong, [], "\n".join(wrong))
    eq(box.cli("ls", "-q").out, "box\n")


# ---------------------------------------------------------------------------------------- engines


@test(who=("user",), timeout=120)
def engines_say_what_was_tried(box):
    """Works: it was started. Everything else says why not."""
    env = {"DOCKER_HOST": "unix:///nowhere/docker.sock", "CONTAINER_HOST": "unix:///nowhere/podman.sock"}
    rows = {e["name"]: e for e in json.loads(box.cli("engines", "--json", env=env, timeout=100).out)["engines"]}
    eq((rows["native"]["works"], rows["native"]["why"]), (True, None))
    for name, row in rows.items():
        eq(bool(row["why"]), not row["works"], f"{name}: {row}")
        if not row["here"]:
            eq(row["works"], False, name)
    for name in ("docker", "podman-remote"):
        if rows[name]["here"]:
            has(rows[name]["why"], "no daemon or service answers", "nowhere")
    if rows["systemd"]["here"] and "257" in rows["systemd"]["why"]:
        has(rows["systemd"]["why"], "257 is the least that it needs")
    if rows["bwrap"]["works"]:
        eq(box.run("--engine", "bwrap", "--", "true").rc, 0)
    # Remembered for an hour, and no longer; and --quick tries nothing.
    known = box.state / "engines.tried"
    before = known.read_text()
    has(before, "native ")
    box.cli("engines", "--json", env=env, timeout=100)
    eq(known.read_text(), before)
    known.write_text(re.sub(r" (\d+)\n", lambda m: f" {int(m[1]) - 3700}\n", before))
    quick = {e["name"]: e for e in json.loads(box.cli("engines", "--json", "--quick").out)["engines"]}
    eq((quick["native"]["works"], quick["native"]["here"]), (None, True))
    assert "native " in known.read_text()
    box.cli("engines", "--json", env=env, timeout=100)
    old = int(re.search(r"native .* (\d+)\n", before)[1])
    assert int(re.search(r"native .* (\d+)\n", known.read_text())[1]) >= old, "started again"


# ------------------------------------------------------------------------------------------ documents


ROOT = Path(__file__).resolve().parent.parent.parent


def verbs(box):
    """From the completion's own table: all that there are."""
    return set(re.findall(r"^  ([a-z-]+) ", box.cli("help").out, re.M)) | {"help"}


# Of the state directory, of agents and of other programs: what these two pages name besides our own.
STATE = ("sandboxes", "trees", "layers", "journal", "runs", "index", "templates", "libexec")
FOREIGN_FLAGS = {"--dangerously-skip-permissions", "--help"}


def is_a_path_of_ours(word):
    return re.fullmatch(r"[\w.-]+(/[\w.*-]+)*/?", word) and ("/" in word.rstrip("/") or word.endswith("/")
            or re.search(r"\.(c|h|py|md|json|jsonc|sh)$", word)) and word.split("/")[0] not in STATE


def is_there(word):
    """From the top, from src/, or a module of it without its ending."""
    name = word.rstrip("/")
    return any(any(ROOT.glob(f"{top}{name}{end}")) for top in ("", "src/", "docs/") for end in ("", ".c", ".h"))


def named_and_not_there(box, doc):
    """Between backquotes: files and folders, our programs, options. In lines of code: the same options."""
    text = (ROOT / doc).read_text()
    quoted = {w for part in re.findall(r"`([^`\n]+)`", text) for w in part.split()} - {"build/vitrine", "config.json"}
    words = quoted | {w for line in re.findall(r"^    (?:\$ )?(?:build/)?(vitrine .*)", text, re.M) for w in line.split("  ")[0].split()}
    help = "".join(box.cli("help", v).out for v in sorted(verbs(box)))
    options = set(re.findall(r"(--[a-z][a-z-]+)", help)) | FOREIGN_FLAGS
    wrong = [w for w in quoted if is_a_path_of_ours(w) and not is_there(w) and not w.startswith(".")]  # .name: of a project
    wrong += [w for w in words if re.fullmatch(r"--[a-z][a-z-]+", w.split("=")[0]) and w.split("=")[0] not in options]
    programs = " ".join(p.read_text() for p in (ROOT / "meson.build", *ROOT.glob("src/**/meson.build")))
    return wrong + [w for w in words if re.fullmatch(r"vitrine-[a-z]+", w) and f"'{w}'" not in programs]


@test(who=("user",))
def documents_name_what_exists(box):
    """Verbs that a document types, folders and files that it names."""
    known, wrong = verbs(box), []
    agents = set(box.cli("agents", "--format", "{{.Name}}").out.split())  # `vitrine claude` is `vitrine run claude`
    for doc in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        text = doc.read_text()
        # What is typed: behind `vitrine ` in a line of code or between backquotes.
        typed = re.findall(r"^    (?:\$ )?(?:build/)?vitrine ([a-z][a-z-]*)", text, re.M)
        typed += re.findall(r"`(?:build/)?vitrine ([a-z][a-z-]*)", text)
        wrong += [f"{doc.name}: vitrine {v}" for v in typed if v not in known | agents and doc.name != "CHANGES.md"]
        for link in re.findall(r"\]\(([\w./-]+)(?:#[\w-]*)?\)", text):
            if not (doc.parent / link).exists():
                wrong.append(f"{doc.name}: {link}")
        wrong += [f"{doc.name}: {p}" for p in re.findall(r"\b(src/[a-z]+/)", text) if not (ROOT / p).exists()]
        wrong += [f"{doc.name}: {p}" for p in re.findall(r"\b(tests/cli/\w+\.py)", text) if not (ROOT / p).exists()]
    listed = re.search(r"## 8\. Verbs\n\n(.*?)\n\n", (ROOT / "docs/ARCHITECTURE.md").read_text(), re.S).group(1)
    words = set(re.findall(r"[a-z]+", listed))
    wrong += [f"ARCHITECTURE.md: {w} is no verb" for w in words - known] + [f"ARCHITECTURE.md: {w} is missing" for w in known - words]
    wrong += [f"{doc}: {what}" for doc in ("README.md", "docs/ARCHITECTURE.md", "docs/WALKS.md") for what in named_and_not_there(box, doc)]
    for folder in re.findall(r"^    (src/[a-z]+/|[a-z]+/) ", (ROOT / "docs/ARCHITECTURE.md").read_text(), re.M):
        if not (ROOT / folder).exists():
            wrong.append(f"ARCHITECTURE.md: {folder}")
    eq(wrong, [])


@test(who=("user",))
def walks_name_what_is_there(box):
    """docs/WALKS.md: four lists of at most 15 files; each line names a file and functions or words that are in it."""
    walks, wrong = re.split(r"^## ", (ROOT / "docs/WALKS.md").read_text(), flags=re.M)[1:], []
    for walk in walks:
        steps = re.findall(r"^(\d+)\. `([^`]+)` ((?:`[^`]+`(?:, )?)+): ", walk, re.M)
        eq([int(n) for n, _, _ in steps], list(range(1, len(re.findall(r"^\d+\.", walk, re.M)) + 1)))
        if len(steps) > 15 or not steps:
            wrong.append(f"{walk.splitlines()[0]}: {len(steps)} files")
        for _, path, words in steps:
            text = (ROOT / path).read_text() if (ROOT / path).is_file() else ""
            for word in re.findall(r"`([^`]+)`", words):
                is_there = re.search(rf"^[a-z_].*\b{word[:-2]}\(", text, re.M) if word.endswith("()") else word in text
                wrong += [] if is_there else [f"{path}: {word}"]
    eq((len(walks), wrong), (4, []))


# ------------------------------------------------------------------------------- limits, ports, agents


@test
def processor_time_has_a_sentence(box):
    """The kernel kills the process that used it up; the run says which limit that was."""
    box.needs_native("a limit on processor time by the kernel")
    for options in ([], ["--name", "box"]):
        r = box.run(*options, "--cpu-time", "1s", "--", "sh", "-c", "while :; do :; done")
        eq(r.rc, 124, r.err)
        has(r.err, "ended: it used more processor time than it may (limit 1s)")
    r = box.run("--cpu-time", "1s", "--", "sh", "-c", "trap '' XCPU; while :; do :; done")
    eq(r.rc, 124, "a process that goes on is killed all the same")
    has(r.err, "ended: it used more processor time than it may")
    r = box.run("--cpu-time", "1s", "--", "sh", "-c", "kill -9 $$")
    eq((r.rc, r.err), (137, ""), "another SIGKILL is not that limit")


@test
def port_that_is_taken(box):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        port = s.getsockname()[1]
        for options in ([], ["--name", "box"]):
            refused(box.run(*options, "-p", f"{port}:8080", "--", "touch", "ran"), f"-p: host port {port} cannot be opened",
                    "in use", "'-p OTHER:8080'", rc=125)
        eq((box.ws / "ran").exists(), False)
        eq(box.cli("ls", "-q").out, "", "no sandbox is left")
    eq(box.run("--name", "box", "-p", f"{port}:8080", "--", "true").rc, 0)


@test
def agent_that_does_not_start(box):
    """It is a failed run, and the sandbox that was made for it goes again; one that was there stays."""
    presets = box.config / "vitrine" / "agents"
    presets.mkdir(parents=True)
    (presets / "ghost.json").write_text('{"summary": "x", "command": ["no-such-agent"], "install": "get ghost",'
                                        ' "prompt": ["no-such-agent", "{prompt}"]}')
    box.own(box.config)
    for argv, text in ((["ghost", "."], "no-such-agent"), (["--name", "box", "--", "no-such-program"], "no-such-program")):
        r = box.run(*argv)
        eq((r.rc, r.out), (127, ""), r.err)
        has(r.err, text)
        eq(box.cli("ls", "-q").out, "")
        eq(sorted(p.name for p in (box.state / "layers").glob("*")) if (box.state / "layers").exists() else [], [])
    box.ok("true", "--name", "box")
    eq(box.run("box", "--", "no-such-program").rc, 127)
    eq(box.cli("ls", "-q").out, "box\n")
    # Of a clone, which would be fetched from when it ends, and in which nothing waits.
    box.host("git", "init", "-q", "-b", "main", ".")
    box.host("git", "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "first", "--allow-empty")
    for more in [], ["--json"]:
        r = box.run("--name", "twin", "--mode", "clone", *more, "--", "no-such-program")
        eq((r.rc, r.out, r.err.count("\n")), (127, "", 1), r.err)
        has_not(r.err, "there is no sandbox")
        eq(box.cli("ls", "-q").out, "box\n")
    # A loop finds out before its first iteration.
    refused(box.cli("loop", "ghost", ".", "--prompt", "do it"), "the program 'no-such-agent' was not found in sandbox 'loop-ghost-proj'",
            "Install it on this host: get ghost", rc=125)
    eq(box.cli("ls", "-q").out, "box\n")


@test(timeout=60)
def loops_that_cannot_look_for_the_agent(box):
    """What fails is not taken for a program that is not there; Ctrl-C is Ctrl-C."""
    seen = box.home / "seen"
    seen.mkdir()
    box.own(seen)
    eq(box.cli("create", "--name", "box", "--read", str(seen), "shell", ".").rc, 0)
    seen.rmdir()
    refused(box.cli("loop", "shell", ".", "--name", "box", "--prompt", "echo x"), "could not be looked for in sandbox 'box'",
            str(seen), rc=125)
    eq(box.cli("ls", "-q").out, "box\n", "it was there before")
    # The keeper stands still, so the question inside is not answered.
    eq(box.cli("create", "--name", "still", "shell", ".").rc, 0)
    eq(box.cli("start", "still").rc, 0)
    keeper = next(p for p in below(os.getpid()) if is_keeper(p, "still"))
    os.kill(keeper, signal.SIGSTOP)
    try:
        p = box.start("loop", "shell", ".", "--name", "still", "--prompt", "echo x")
        time.sleep(0.5)
        r = box.stop(p, signal.SIGINT)
    finally:
        os.kill(keeper, signal.SIGCONT)
    eq((r.rc, r.out, r.err), (130, "", ""))
    eq(box.cli("stop", "--time", "1s", "still").rc, 0)


@test
def slash_commands_are_prompts(box):
    for text, rc in ("/review", 0), ("/no/such", 125), ("./none", 125), ("/none.md", 125):
        r = box.cli("loop", "shell", ".", "--name", "box", "--prompt", text, "--max", "1", "--json")
        if rc:
            refused(r, f"the file '{text}' does not exist", rc=rc)
        else:
            eq(json.loads(r.out)["iterations"], 1, r.err)


@test
def loops_that_reach_nothing(box):
    r = box.cli("loop", "shell", ".", "--prompt", "PROMPT.md")
    refused(r, "--prompt: the file 'PROMPT.md' does not exist", "a sentence with spaces", rc=125)
    refused(box.cli("loop", "shell", ".", "--prompt", "/no/such"), "'/no/such'", rc=125)
    eq(box.cli("ls", "-q").out, "")
    r = box.cli("loop", "shell", ".", "--prompt", "echo broken; exit 7", "--max", "2")
    eq(r.rc, 3, "every iteration failed")
    eq(r.err.count("failed in the same way"), 1)
    has(r.err, "'vitrine loop report loop-shell-proj' shows the output")
    has(box.cli("loop", "report", "loop-shell-proj").out, "    broken")
    logs = box.cli("loop", "logs", "loop-shell-proj").out
    eq((logs.count("failed in the same way"), logs.count("loop report")), (1, 1), logs)
    r = box.cli("loop", "shell", ".", "--prompt", "test $VITRINE_ITERATION = 2", "--max", "2", "--new")
    eq(r.rc, 0, "one worked")


if __name__ == "__main__":
    sys.exit(main())
