#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vitrine loop, hint and status. A shell plays the agent; one test drives presets that report cost and tokens.

VITRINE_LOOP_KILLS=50 makes the test that kills at random as long as that."""

import json
import os
import random
import signal
import sys
import time

from harness import eq, has, has_not, main, refused, soon, test

APPEND = "echo $VITRINE_ITERATION >> log"


def loop(box, *args, rc=0, **kw):
    r = box.cli("loop", *args, "--json", **kw)
    eq(r.rc, rc, r.out + r.err)
    return json.loads(r.out)


def inside(box, name, path):
    r = box.cli("exec", name, "--", "cat", str(box.ws / path))
    eq(r.rc, 0, r.err)
    return r.out


def name_of(box, agent="shell"):
    return f"loop-{agent}-{box.ws.name}"


def loops(box, name=None):
    return box.state / "sandboxes" / (name or name_of(box)) / "loops"


def preset(box, **more):
    d = box.config / "vitrine" / "agents"
    d.mkdir(parents=True, exist_ok=True)
    (d / "mine.json").write_text(json.dumps({
        "summary": "mine", "command": ["sh"], "free": [], "prompt": ["sh", "agent.sh", "{prompt}"], "busy": ["come back later"],
        "report": {"when": "type=result", "text": "result", "cost": "cost", "tokens_in": "in", "tokens_out": "out", "failed": "bad"},
        **more}))
    (d / "mine.json").chmod(0o600)
    box.own(box.config)


@test
def iterations_and_records(box):
    s = loop(box, "shell", ".", "--prompt", APPEND + "; echo said $VITRINE_ITERATION; echo oops >&2", "--max", "3")
    eq((s["reason"], s["iterations"], s["failed"], s["mode"]), ("max", 3, 0, "review"))
    eq([(r["iteration"], r["outcome"], r["changed"], r["files"], r["said"]) for r in s["runs"]],
       [(n, "ok", 1, ["log"], f"said {n}") for n in (1, 2, 3)])
    assert not (box.ws / "log").exists(), "nothing reaches the workspace before somebody says so"
    eq(inside(box, s["name"], "log"), "1\n2\n3\n")
    eq(box.cli("apply", "--yes", s["name"]).rc, 0)
    eq(box.read("log"), "1\n2\n3\n")
    run = loops(box) / "1" / "runs" / "0002"
    eq((run / "output.txt").read_text(), "said 2\n")
    has((run / "errors.txt").read_text(), "oops")
    has((run / "prompt.txt").read_text(), APPEND)
    eq(json.loads((run / "record.json").read_text())["checkpoint"], s["runs"][1]["checkpoint"])
    eq(oct(run.stat().st_mode & 0o777), "0o700")
    text = box.cli("loop", "report", s["name"]).out
    has(text, "# Loop of shell", "## Iteration 3 (try 3): ok", "    said 3", "**that was the last")
    # Any iteration can be gone back to.
    eq(box.cli("restore", s["name"], str(s["runs"][1]["checkpoint"])).rc, 0)
    eq(inside(box, s["name"], "log"), "1\n")


@test
def direct_mode(box):
    s = loop(box, "shell", ".", "--prompt", APPEND, "--max", "2", "--mode", "direct")
    eq([r["files"] for r in s["runs"]], [["log"], ["log"]])
    eq(box.read("log"), "1\n2\n")


COMMIT = "git -c user.name=a -c user.email=a@a commit -q"


@test(timeout=60)
def clone_mode(box):
    """In a clone of its own: nothing reaches the workspace, commits come out by fetch, a cut-off iteration is put back."""
    box.needs("git")
    box.host("git", "init", "-q", "-b", "main", ".")
    box.write("old", "1\n")
    box.host("git", "add", "-A")
    box.host("git", "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "first")
    before = sorted(p.name for p in box.ws.iterdir())
    prompt = box.dir / "prompt.sh"
    prompt.write_text(f"{APPEND}; test $VITRINE_ITERATION = 1 || rm -f old; git add -A; {COMMIT} -m n$VITRINE_ITERATION; "
                      "test $VITRINE_ITERATION != 3 || sleep 20")
    prompt.chmod(0o644)
    p = box.start("loop", "shell", ".", "--prompt", prompt, "--max", "3", "--mode", "clone", "--json")
    third = loops(box) / "1" / "runs" / "0003"
    soon((third / "begin.json").exists, "the third iteration", 20)
    soon(lambda: json.loads(box.cli("ls", "--json").out)[0]["status"] == "running", "its session", 20)
    soon(lambda: "n3" in box.cli("exec", name_of(box), "--", "git", "log", "--format=%s").out, "its commit", 20)
    r = box.stop(p, signal.SIGTERM)
    eq((r.rc, json.loads(r.out)["reason"]), (143, "signal"))
    prompt.write_text("cat log; git log --format=%s; : > third")
    s = loop(box, "--resume", name_of(box))
    eq((s["mode"], s["iterations"]), ("clone", 3))
    eq([sorted(f for f in x["files"] if not f.startswith(".git/")) for x in s["runs"]], [["log"], ["log", "old"], ["third"]])
    assert all(any(f.startswith(".git/refs/heads/") for f in x["files"]) for x in s["runs"][:2]), s["runs"]
    eq(s["runs"][2]["said"].split(), ["1", "2", "n2", "n1", "first"], "what the third did before it was cut off is gone")
    eq(sorted(p.name for p in box.ws.iterdir()), before, "nothing reaches the workspace")
    box.host("git", "fetch", "-q", f"vitrine/{name_of(box)}")
    eq(box.host("git", "log", "--format=%s", f"vitrine/{name_of(box)}/main").split(), ["n2", "n1", "first"])


@test(who=("user",), timeout=60)
def pushes_of_a_cut_off_iteration_are_listed(box):
    """What the broker did for it cannot be put back; the record and the report say so."""
    box.needs("git")
    up = box.dir / "up.git"
    box.host("git", "init", "-q", "--bare", "-b", "main", up)
    box.host("git", "init", "-q", "-b", "main", ".")
    box.host("git", "remote", "add", "origin", up)
    prompt = box.dir / "prompt.sh"
    prompt.write_text(f"{APPEND}; git add -A; {COMMIT} -m n; git push -q origin HEAD:agent/x; sleep 20")
    prompt.chmod(0o644)
    p = box.start("loop", "shell", ".", "--prompt", prompt, "--max", "1", "--json", "--", "--broker-push", f"{up} refs/heads/agent/*")
    soon((up / "refs/heads/agent/x").exists, "the push", 30)
    soon(lambda: '"status":0' in box.cli("events", name_of(box), "--json", "--type", "broker").out, "its end on record", 20)
    eq(box.stop(p, signal.SIGTERM).rc, 143)
    pushed = box.host("git", "-C", up, "rev-parse", "refs/heads/agent/x").strip()
    prompt.write_text("git log --format=%s; : > second")
    s = loop(box, "--resume", name_of(box))
    eq((s["runs"][-1]["attempt"], s["runs"][-1]["said"]), (2, None), "the commit was put back, the push was not")
    has("\n".join(s["runs"][-1]["outside"]), f"git push {up} {pushed}:refs/heads/agent/x")
    has(box.cli("loop", "report", s["name"]).out, "Done outside by an attempt that was cut off", "refs/heads/agent/x")


@test(who=("user",), timeout=60)
def watched(box):
    """status --watch shows the loop again and again, with its tasks, and ends with it."""
    box.write("TODO.md", "- [ ] one\n- [ ] two\n")
    p = box.start("loop", "shell", ".", "--prompt", "until test -e go.$VITRINE_ITERATION; do sleep 0.05; done; "
                  "sed -i '0,/\\[ \\]/s//[x]/' TODO.md", "--max", "2", "--mode", "direct", "--json")
    soon((loops(box) / "1" / "runs" / "0001" / "begin.json").exists, "the first iteration", 20)
    log = box.dir / "watched"
    with open(log, "wb") as out:
        w = box.start("status", "--watch", "--tasks", name_of(box), stdout=out)
        soon(lambda: "tasks: 0 done, 2 open" in log.read_text(), "the first look", 20)
        box.write("go.1", "")
        soon(lambda: "tasks: 1 done, 1 open" in log.read_text(), "the second iteration", 20)
        eq(w.poll(), None, "it goes on")
        box.write("go.2", "")
        eq(box.finish(p).rc, 0)
        eq(w.wait(20), 0, "it ends with the loop")
    has(log.read_text(), "tasks: 2 done, 0 open")


@test(who=("user",), timeout=200)
def thirty_iterations(box):
    """All that a loop adds, walls included: under three seconds, or where the machine is busy, no more than the plain runs
    of the same sandbox take at that moment, three times over."""
    took = []
    for name in ("a", "b"):
        from_ = time.monotonic()
        s = loop(box, "shell", ".", "--name", name, "--prompt", APPEND, "--max", "30", timeout=60)
        took.append(time.monotonic() - from_)
        eq(s["iterations"], 30)
        if took[-1] < 3:
            return
        from_ = time.monotonic()
        for _ in range(10):
            eq(box.run("--engine", "native", name, "--", "true").rc, 0)  # the loop's own
        if took[-1] < 3 * 3 * (time.monotonic() - from_):
            return
    raise AssertionError(f"30 iterations took {took} s")


@test
def stops_for_a_reason(box):
    for n, (args, reason, count, rc) in enumerate((
            (["--prompt", APPEND + "; test $VITRINE_ITERATION != 2 || echo ALL-DONE", "--marker", "ALL-DONE"], "marker", 2, 0),
            (["--prompt", APPEND, "--until", "test $(wc -l < log) = 3"], "check", 3, 0),
            (["--prompt", "echo nothing"], "still", 3, 3),
            (["--prompt", APPEND + "; echo at $(date +%N) it broke; exit 7", "--still", "0"], "failing", 3, 3),
            (["--prompt", APPEND + "; echo ALL-DONE", "--marker", "ALL-DONE", "--until", "false", "--max", "2"], "max", 2, 3),
            (["--prompt", APPEND, "--time", "1ms"], "time", 1, 3))):
        s = loop(box, "shell", ".", "--name", f"box{n}", *args, rc=rc)
        eq((s["reason"], s["iterations"]), (reason, count), str(args))
    eq([r["check_status"] for r in loop_of(box, "box1")["runs"]], [1, 1, 0])
    has(box.cli("status").out, "box2: shell, still;")


def loop_of(box, name):
    r = box.cli("loop", "report", name, "--json")
    eq(r.rc, 0, r.err)
    return json.loads(r.out)


@test
def a_check_runs_inside(box):
    """Its command sees what the agent sees, and touches nothing of the host's."""
    canary = box.home / "canary"
    script = f"touch {canary}; id -un > who; test -e /.vitrine || test -n \"$VITRINE\""
    loop(box, "shell", ".", "--prompt", APPEND, "--until", script)
    assert not canary.exists() and not (box.ws / "who").exists()
    box.host("sh", "-c", f"touch {canary}")  # outside the same command does it
    assert canary.exists()


@test
def budgets_from_reports(box):
    preset(box)
    box.write("agent.sh", 'echo $VITRINE_ITERATION >> log; '
              'echo \'{"type":"result","result":"I did ALL-DONE? no","cost":0.25,"in":100,"out":20,"bad":false}\'\n')
    s = loop(box, "mine", ".", "--prompt", "work", "--cost", "0.6", "--name", "cost", rc=3)
    eq((s["reason"], s["iterations"], s["cost_usd"], s["tokens_in"]), ("cost", 3, 0.75, 300))
    s = loop(box, "mine", ".", "--prompt", "work", "--tokens", "240", "--name", "tokens", rc=3)
    eq((s["reason"], s["iterations"]), ("tokens", 2))
    eq(s["runs"][0]["said"], "I did ALL-DONE? no")
    has((loops(box, "tokens") / "1" / "runs" / "0001" / "prompt.txt").read_text(), "work")


@test
def an_agent_is_told_the_marker(box):
    preset(box)
    box.write("agent.sh", 'echo $VITRINE_ITERATION >> log; printf %s "$1" > asked; '
              'echo \'{"type":"result","result":"XYZZY"}\'\n')
    s = loop(box, "mine", ".", "--prompt", "work", "--marker", "XYZZY")
    eq((s["reason"], s["iterations"]), ("marker", 1))
    has(inside(box, s["name"], "asked"), "work\n\nWhen everything is done", "XYZZY")


@test
def busy_services_are_waited_for(box):
    """Such a try is not counted, and the next one comes later."""
    preset(box)
    box.write("agent.sh", 'test -e ~/n || echo 0 > ~/n; n=$(($(cat ~/n) + 1)); echo $n > ~/n\n'
              'test $n -gt 2 || { echo "error: come back later"; exit 1; }\n'
              'echo $VITRINE_ITERATION >> log; echo \'{"type":"result","result":"DONE"}\'\n')
    from_ = time.monotonic()
    s = loop(box, "mine", ".", "--prompt", "work", "--marker", "DONE", "--backoff", "150ms")
    eq([(r["outcome"], r["iteration"]) for r in s["runs"]], [("limited", 1), ("limited", 1), ("ok", 1)])
    eq((s["iterations"], s["tries"], s["reason"]), (1, 3, "marker"))
    assert time.monotonic() - from_ > 0.45, "150 ms, then 300 ms"


@test(timeout=120)
def resumed_when_the_service_is_free_again(box):
    """Twelve busy answers end the loop; --resume tries again, and a hint for that is taken."""
    preset(box)
    box.write("agent.sh", 'test -e ~/n || echo 0 > ~/n; n=$(($(cat ~/n) + 1)); echo $n > ~/n\n'
              'test $n -gt 13 || { echo "error: come back later"; exit 1; }\n'
              'echo $VITRINE_ITERATION >> log; echo \'{"type":"result","result":"DONE"}\'\n')
    s = loop(box, "mine", ".", "--prompt", "work", "--marker", "DONE", "--backoff", "0s", rc=3)
    eq((s["reason"], s["tries"], s["iterations"]), ("busy", 12, 0))
    r = box.cli("hint", s["name"], "take your time")
    eq(r.rc, 0, r.err)
    s = loop(box, "--resume", s["name"])
    eq((s["reason"], s["tries"], s["iterations"]), ("marker", 14, 1))
    has((loops(box, s["name"]) / "1" / "runs" / "0013" / "prompt.txt").read_text(), "take your time")


@test
def a_hint_reaches_the_next_iteration(box):
    p = box.start("loop", "shell", ".", "--prompt", APPEND + "; until test -e ~/go; do sleep 0.02; done", "--max", "2", "--json")
    soon(lambda: (loops(box) / "1" / "runs" / "0001" / "begin.json").exists(), "the first iteration")
    eq(box.cli("hint", name_of(box), "look at", "line 7").rc, 0)
    r = box.cli("status", "--json", name_of(box))
    state = json.loads(r.out)[0]
    eq((state["state"], state["running"]["iteration"]), ("running", 1))
    refused(box.cli("loop", "shell", ".", "--prompt", "x"), "a loop runs in", rc=125)
    soon(lambda: box.cli("exec", name_of(box), "--", "sh", "-c", "touch ~/go").rc == 0, "the sandbox")
    r = box.finish(p)
    eq(r.rc, 0, r.err)
    first, second = ((loops(box) / "1" / "runs" / n / "prompt.txt").read_text() for n in ("0001", "0002"))
    has_not(first, "line 7")
    has(second, "# Hint: look at line 7")
    eq(list((loops(box) / "1" / "hints").iterdir()), [], "it is used up")
    refused(box.cli("hint", "nobody", "x"), "there is no sandbox 'nobody'", rc=125)
    refused(box.cli("hint", name_of(box), "x"), "has ended (max), so nobody would be told", rc=125)


@test
def asked_to_stop(box):
    p = box.start("loop", "shell", ".", "--prompt", APPEND + "; sleep 0.1", "--max", "100", "--json")
    soon(lambda: (loops(box) / "1" / "runs" / "0001" / "record.json").exists(), "the first iteration")
    eq(box.cli("loop", "stop", name_of(box)).rc, 0)
    r = box.finish(p)
    s = json.loads(r.out)
    eq((r.rc, s["reason"]), (3, "stopped"))
    refused(box.cli("loop", "stop", name_of(box)), "does not run", rc=125)
    r = box.cli("hint", name_of(box), "later")
    eq(r.rc, 0)
    has(r.err, "it is told when 'vitrine loop --resume")
    p = box.start("loop", "--resume", name_of(box), "--json")
    soon(lambda: (loops(box) / "1" / "runs" / f"{s['tries'] + 1:04}" / "record.json").exists(), "it goes on")
    box.cli("loop", "stop", name_of(box))
    again = json.loads(box.finish(p).out)
    assert again["iterations"] > s["iterations"]
    eq(inside(box, s["name"], "log"), "".join(f"{n}\n" for n in range(1, again["iterations"] + 1)))


@test
def a_signal_and_resume(box):
    """The iteration that ran is put back and run again."""
    prompt = box.dir / "prompt.sh"
    prompt.write_text(APPEND + "; sleep 20")
    prompt.chmod(0o644)
    p = box.start("loop", "shell", ".", "--prompt", prompt, "--max", "2", "--json")
    soon((loops(box) / "1" / "runs" / "0001" / "begin.json").exists, "the first iteration")
    soon(lambda: json.loads(box.cli("ls", "--json").out)[0]["status"] == "running", "its session", 10)
    soon(lambda: box.cli("exec", name_of(box), "--", "test", "-s", str(box.ws / "log")).rc == 0, "its change")
    r = box.stop(p, signal.SIGTERM)
    eq((r.rc, json.loads(r.out)["reason"]), (143, "signal"))
    refused(box.cli("loop", "--resume", name_of(box), "--max", "7"), "with the options it was begun with", "'vitrine loop --new ...'")
    for more in ["--mode", "direct"], ["--new"], ["--until", "true"]:
        refused(box.cli("loop", "--resume", name_of(box), *more), "with the options it was begun with")
    prompt.write_text(APPEND)
    s = loop(box, "--resume", name_of(box))
    eq([x["attempt"] for x in s["runs"]], [2, 1], "the second attempt")
    eq(inside(box, s["name"], "log"), "1\n2\n", "what the first one wrote was put back")


@test
def a_new_loop_leaves_an_interrupted_one(box):
    """Neither its files nor its records: it goes on where it was, whatever was begun meanwhile."""
    args = ("shell", ".", "--prompt", APPEND + "; test $VITRINE_ITERATION != 2 || test -e go || sleep 20", "--max", "2")
    p = box.start("loop", *args, "--json")
    soon((loops(box) / "1" / "runs" / "0002" / "begin.json").exists, "the second iteration", 10)
    eq(box.stop(p, signal.SIGTERM).rc, 143)
    for more in (), ("--name", name_of(box)), ("--name", name_of(box), "--new"):
        refused(box.cli("loop", *args, *more), "was interrupted", f"--resume {name_of(box)}",
                "choose another --name" if more else "'vitrine loop --new ...' starts a separate loop", rc=125)
    other = loop(box, *args[:2], "--prompt", "echo other > log", "--max", "1", "--new")
    assert other["name"] != name_of(box), other["name"]
    eq(inside(box, other["name"], "log"), "other\n")
    eq(loop(box, *args[:2], "--prompt", "echo more >> log", "--max", "1", "--new")["name"], other["name"], "it has ended: used again")
    box.write("go", "")
    s = loop(box, "--resume")
    eq((s["name"], s["loop"], s["iterations"], s["reason"]), (name_of(box), 1, 2, "max"), "the only one to go on with")
    eq(inside(box, s["name"], "log"), "1\n2\n")
    eq(loop(box, *args)["name"], name_of(box), "and it is in nobody's way now")


def states(box):
    return {r["name"]: r["state"] for r in json.loads(box.cli("loop", "ls", "--json").out)}


@test(timeout=40)
def behind_the_scenes(box):
    """loop -d outlives the terminal that began it; ls, logs, attach and stop are for it."""
    t = box.term("loop", "-d", "shell", ".", "--prompt", f"echo now $VITRINE_ITERATION; printf 'a\\033[2Jb\\n'; {APPEND}; sleep 0.3",
                 "--max", "4")
    t.expect(name_of(box) + "\r\n", 20)
    eq(t.wait(10), 0)
    t.close()
    eq(states(box), {name_of(box): "running"})
    r = box.cli("loop", "attach", name_of(box))
    eq(r.rc, 0, r.err)
    for n in range(1, 5):
        has(r.out, f"now {n}\n", f"iteration {n} ok")
    has(r.out, "a\\x1b[2Jb", "stopped: that was the last iteration")
    has_not(r.out, "\033")
    eq(states(box), {name_of(box): "max"})
    logs = box.cli("loop", "logs", name_of(box))
    eq((logs.rc, logs.out.count("iteration"), "now 1" in logs.out), (0, 5, False), logs.out)
    has(box.cli("loop", "ls").out, "SANDBOX", name_of(box), "max")
    eq(box.cli("loop", "ls", "-q").out.split(), [name_of(box)])
    eq(json.loads(box.cli("loop", "--json", "ls").out)[0]["name"], name_of(box))
    eq(box.cli("loop", "-q", "ls").out.split(), [name_of(box)])
    eq(json.loads(box.cli("loop", "-d", "--json", "shell", ".", "--prompt", "true", "--max", "1").out), {"name": name_of(box), "loop": 2})
    eq(box.cli("loop", "attach", name_of(box)).rc, 0)


@test(timeout=40)
def ended_behind_the_scenes(box):
    long = ("shell", ".", "--prompt", APPEND + "; sleep 0.2", "--max", "100")
    r = box.cli("loop", "-d", *long)
    eq((r.rc, r.out), (0, name_of(box) + "\n"), r.err)
    refused(box.cli("loop", "-d", *long), "runs in", rc=125)
    refused(box.cli("loop", "-d", "--resume", name_of(box)), "running already", rc=125)
    soon(lambda: "iteration 1" in box.cli("loop", "logs", name_of(box)).out, "the first iteration")
    p = box.start("loop", "attach", name_of(box))
    eq(p.stdout.readline().split()[:4], [b"loop", name_of(box).encode() + b":", b"iteration", b"1"])
    r = box.stop(p, signal.SIGINT)
    eq(r.rc, 0, r.err)
    has(r.err, "the loop goes on")
    eq(box.cli("loop", "stop", name_of(box)).rc, 0)
    r = box.cli("loop", "attach", name_of(box))
    eq(r.rc, 3, r.out)
    has(r.out, "it was asked to stop")
    eq(box.cli("loop", "-d", "--resume", name_of(box)).out, name_of(box) + "\n")
    eq(states(box), {name_of(box): "running"})
    eq(box.cli("loop", "stop", "--now", name_of(box)).rc, 0)
    soon(lambda: states(box) == {name_of(box): "signal"}, "its end", 10)
    has(box.cli("loop", "logs", "-f", name_of(box)).out, "it was interrupted", "--resume")
    refused(box.cli("loop", "stop", "--now", name_of(box)), "does not run", rc=125)
    refused(box.cli("loop", "logs"), "which loop?")
    refused(box.cli("loop", "attach", "nobody"), "there is no sandbox", rc=125)


@test(timeout=60)
def somebody_is_told(box):
    """--notify: facts on standard input, nothing of them in a word of the command; kept over --resume."""
    told = box.dir / "told"
    told.mkdir()
    box.own(told)
    command = f"cat >>{told}/facts; echo $# \"$0\" >>{told}/words; echo said"

    def facts():
        return [json.loads(x) for x in (told / "facts").read_text().splitlines()] if (told / "facts").exists() else []
    preset(box)
    box.write("agent.sh", "test -e again || { touch again; echo come back later; exit 1; }; "
              'echo \'{"type":"result","result":"$(touch /tmp/no)","cost":0.25,"in":1,"out":1}\'')
    r = box.cli("loop", "mine", ".", "--prompt", "x", "--max", "1", "--backoff", "10ms", "--notify", command, "--mode", "direct", "-q")
    eq(r.rc, 0, r.err)
    first, last = facts()
    eq((first["what"], first["reason"]), ("limit", "busy"))
    eq((last["what"], last["reason"], last["name"], last["iterations"], last["cost_usd"]), ("end", "max", name_of(box, "mine"), 1, 0.25))
    eq((told / "words").read_text(), "0 /bin/sh\n" * 2)
    p = box.start("loop", "shell", ".", "--prompt", "sleep 20", "--notify", command)
    soon((loops(box) / "1" / "runs" / "0001" / "begin.json").exists, "an iteration", 10)
    box.stop(p, signal.SIGTERM)
    eq(facts()[-1]["reason"], "signal")
    box.cli("loop", "-d", "--resume", name_of(box))
    eq(box.cli("loop", "stop", "--now", name_of(box)).rc, 0)
    soon(lambda: len(facts()) == 4, "told again", 20)
    has(box.cli("loop", "logs", "-f", name_of(box)).out, "said")
    # --resume takes another command, and keeps it.
    p = box.start("loop", "--resume", name_of(box), "--notify", f"cat >>{told}/other")
    time.sleep(0.3)
    box.stop(p, signal.SIGTERM)
    eq(json.loads((told / "other").read_text())["reason"], "signal")
    eq(json.loads((loops(box) / "1" / "loop.json").read_text())["notify"], f"cat >>{told}/other")
    eq(len(facts()), 4)
    r = box.cli("loop", "shell", ".", "--name", "bad", "--prompt", "true", "--max", "1", "--notify", "exit 7")
    eq(r.rc, 0)
    has(r.err, "--notify: the command failed (exit 7)")
    # A project has no say in it.
    box.write(".vitrine.jsonc", '{"notify": "touch /tmp/no"}')
    r = box.cli("trust", ".")
    assert r.rc != 0 and 'unknown key "notify"' in r.err, r.err
    box.write(".vitrine.jsonc", '{"loop": {"notify": "touch /tmp/no"}}')
    assert 'unknown key "loop"' in box.cli("trust", ".").err
    refused(box.cli("loop", "shell", ".", "--prompt", "x", "--notify", ""), "--notify is empty")


@test(who=("user",), timeout=60)
def a_question_is_told(box):
    box.needs("git")
    up, told = box.dir / "up.git", box.dir / "told"
    box.host("git", "init", "-q", "--bare", "-b", "main", up)
    box.host("git", "init", "-q", "-b", "main", ".")
    box.host("git", "remote", "add", "origin", up)
    prompt = f"{APPEND}; git add -A; {COMMIT} -m n; git push -q origin HEAD:agent/x; echo answered; sleep 3"
    slow = f"cat >>{told}; sleep 4; echo x >>{told}.end"
    p = box.start("loop", "shell", ".", "--prompt", prompt, "--max", "1", "--json", "--notify", slow, "--",
                  "--broker-push", f"{up} refs/heads/agent/* create approve")
    soon(lambda: told.exists() and told.read_text().endswith("\n"), "the question", 30)
    q = json.loads(told.read_text().splitlines()[0])
    eq(q["what"], "question")
    eq(json.loads(box.cli("broker", "ls", "--json").out)[0]["id"], q["reason"])
    has(q["sentence"], f"vitrine broker show {name_of(box)} {q['reason']}")
    has("\n".join(x["what"] for x in since(box)["waits"]), "the question")
    eq(box.cli("broker", "deny", name_of(box), q["reason"]).rc, 0)
    output = loops(box) / "1" / "runs" / "0001" / "output.txt"
    soon(lambda: "answered" in output.read_text(), "the output")
    eq((box.dir / "told.end").exists(), False, "the output is read while the command runs")
    box.finish(p)
    eq([json.loads(x)["what"] for x in told.read_text().splitlines()], ["question", "end"])
    eq((box.dir / "told.end").read_text(), "x\nx\n", "both commands were waited for")


def since(box, *words):
    r = box.cli("status", "--since", *(words or ("yesterday",)), "--json")
    eq(r.rc, 0, r.err)
    return json.loads(r.out)


@test(timeout=60)
def the_morning_after(box):
    """What ran, what was done, what was refused, what waits, what it cost: over loops and runs."""
    box.needs("git")
    r = box.cli("status", "--since", "yesterday")
    eq(r.rc, 0, r.err)
    has(r.out, "What ran\n  nothing", "What was refused\n  nothing", "What waits for you\n  nothing", "no agent said what it spent")
    box.host("git", "init", "-q", "-b", "main", ".")
    box.host("git", "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "before the night", "--allow-empty")
    time.sleep(1.1)  # git's log counts seconds
    preset(box)
    box.write("agent.sh", f"echo $VITRINE_ITERATION >> made; git add made; {COMMIT} -m \"night $VITRINE_ITERATION\"; "
              "curl -sS http://refused.example/ 2>/dev/null; "
              'echo \'{"type":"result","result":"ok","cost":0.25,"in":100,"out":10}\'')
    eq(box.cli("loop", "mine", ".", "--prompt", "x", "--max", "2", "-q", "--", "--allow", "allowed.example").rc, 0)
    box.run("--name", "other", "--", "sh", "-c", "exit 3")
    box.run("--", "sh", "-c", f"echo x > direct; git add direct; {COMMIT} -m 'by a run'")
    p = box.start("loop", "shell", ".", "--prompt", "sleep 20", "--json")
    soon((loops(box) / "1" / "runs" / "0001" / "begin.json").exists, "an iteration", 10)
    box.stop(p, signal.SIGTERM)
    s, name = since(box), name_of(box, "mine")
    ran = {x["name"]: x["what"] for x in s["ran"]}
    has(ran[name], "loop of mine (max): 2 iterations")
    has(ran["other"], "1 session, 1 failed: sh -c exit 3")
    has(ran[f"in {box.ws}"], "a run: sh -c echo x")
    done = [(x["name"], x["what"].split(" ", 2)[2]) for x in s["done"] if x["what"].startswith("commit ")]
    eq(sorted(done), sorted([(name, "night 1"), (name, "night 2"), (f"in {box.ws}", "by a run")]), "and nobody else's")
    eq([x["what"] for x in s["done"] if x["name"] == name][0], "1 file changed: made")
    eq([(x["name"], x["what"]) for x in s["refused"]], [(name, "network: refused.example:80")])
    eq(s["refused"][0]["count"], 2)
    eq([x["command"] for x in s["waits"] if x["what"] == "an interrupted loop"], [f"vitrine loop --resume {name_of(box)}"])
    eq(s["cost"], {"known": True, "usd": 0.5, "tokens_in": 200, "tokens_out": 20})
    text = box.cli("status", "--since", "1h").out
    has(text, "commit ", "night 2", "network: refused.example:80 (2 times)", "$0.5000, 200 tokens in, 20 out")
    eq(since(box, "2000-01-01T00:00Z")["cost"]["usd"], 0.5)
    time.sleep(1.1)
    late = since(box, "0s")
    eq((late["ran"], late["done"], late["refused"], late["cost"]["known"]), ([], [], [], False))
    refused(box.cli("status", "--since", "yesterday", "other"), "everything that happened")
    refused(box.cli("status", "--since", "some day"), "is no time")
    has(box.cli("status", "--since", "1970-01-01T00:00Z").out, "What was done", "commit ")


@test
def iterations_see_no_records(box):
    """Neither of other loops nor of their own: the state directory does not exist inside."""
    state = box.state
    look = f"ls -d {state} {state}/sandboxes {state}/sandboxes/*/loops/*/runs/* 2>&1; find {box.dir} /run /var -name record.json 2>/dev/null; true"
    s = loop(box, "shell", ".", "--prompt", f"{look}; {APPEND}", "--max", "2")
    for r in s["runs"]:
        has_not(r["said"] or "", "record.json", "/runs/0")
        has(r["said"], "No such file")
    has(box.host("sh", "-c", look), "/runs/0001", "record.json")  # outside they are there
    other = loop(box, "shell", ".", "--name", "other", "--prompt", "cat ~/mark; echo other > ~/mark; " + APPEND, "--max", "1")
    eq(other["runs"][0]["said"] or "", "", "another loop has another home")


@test
def a_prompt_that_becomes_a_link(box):
    """The agent points the prompt at what it cannot read; the loop does not read it for the agent."""
    (box.home / "key").write_text("a private key")
    box.write("PROMPT.md", f"{APPEND}; rm PROMPT.md; ln -s {box.home}/key PROMPT.md")
    box.own(box.home)
    r = box.cli("loop", "shell", ".", "--prompt", "PROMPT.md", "--mode", "direct", "--max", "3")
    eq(r.rc, 125, r.err)
    has_not("".join(p.read_text() for p in loops(box).rglob("prompt.txt")), "a private key")
    eq((box.ws / "PROMPT.md").read_text(), "a private key")  # it is what the link leads to, for who may follow it
    eq(box.read("log"), "1\n")


@test
def tasks_of_the_project(box):
    box.write("TODO.md", "- [ ] one\n- [ ] two\n- [x] three\n")
    s = loop(box, "shell", ".", "--prompt", "sed -i 's/\\[ \\] one/[x] one/' TODO.md", "--max", "1")
    t = json.loads(box.cli("status", s["name"], "--tasks", "--json").out)[0]["tasks"]
    eq((t["open"], t["done"]), (1, 2), "as the sandbox has it")
    has(box.cli("status", "--tasks", s["name"]).out, "tasks: 2 done, 1 open", "[ ] two")
    eq(box.read("TODO.md")[:9], "- [ ] one", "the host's is as it was")
    issue = '{"id":"b-%d","title":"%s","status":"%s"}\n'
    box.write(".beads/issues.jsonl", issue % (1, "four", "open") + issue % (2, "five", "closed"))
    s = loop(box, "shell", ".", "--name", "beads", "--prompt", "rm TODO.md; sed -i s/open/closed/ .beads/issues.jsonl", "--max", "1")
    has(box.cli("status", "--tasks", "beads").out, "tasks: 2 done, 0 open")
    has(box.read(".beads/issues.jsonl"), '"open"')


@test
def wrong_words(box):
    refused(box.cli("loop"), "which agent?")
    refused(box.cli("loop", "nobody", ".", "--prompt", "x"), "'nobody' is no agent", rc=125)
    refused(box.cli("loop", "shell", "."), "--prompt FILE or TEXT")
    refused(box.cli("loop", "shell", ".", "--prompt", "x", "--max", "0"), "at least 1")
    refused(box.cli("loop", "shell", ".", "--prompt", "x", "--cost", "much"), "no amount")
    refused(box.cli("loop", "shell", ".", "--prompt", "x", "--cost", "1"), "so --cost cannot be enforced", "Use --time")
    refused(box.cli("loop", "codex", ".", "--prompt", "x", "--cost", "1"), "or --tokens, which this agent reports")
    refused(box.cli("loop", "shell", ".", "--prompt", "x", "--tokens", "1"), "does not report its tokens")
    refused(box.cli("loop", "shell", ".", "--prompt", "x", "--mode", "sideways"), "review, direct or clone")
    refused(box.cli("loop", "shell", "/none", "--prompt", "x"), "/none")
    refused(box.cli("loop", "--resume"), "no loop was interrupted", rc=125)
    refused(box.cli("loop", "report", "nobody"), "there is no sandbox", rc=125)
    refused(box.cli("loop", "--resum"), "--resume")
    r = box.cli("loop", "shell", ".", "--prompt", "x", "--", "--allow", "no such host")
    eq(r.rc, 2, r.err)
    has(r.err, "--allow")


@test(who=("user",), timeout=200)
def killed_at_random(box):
    """No finished iteration is lost or repeated; one that was cut off is put back and run again."""
    kills, seed = int(os.environ.get("VITRINE_LOOP_KILLS", "8")), int(os.environ.get("VITRINE_LOOP_SEED", str(os.getpid())))
    dice, done, args = random.Random(seed), 0, ("shell", ".", "--prompt", APPEND + "; sleep 0.03; echo x >> log.$VITRINE_ITERATION")
    p = box.start("loop", *args, "--max", str(kills * 3), "-q")
    for n in range(kills):
        time.sleep(dice.uniform(0.005, 0.25))
        if p.poll() is not None:
            break
        p.send_signal(signal.SIGKILL)
        p.wait()
        done += 1
        p = box.start("loop", "--resume", name_of(box), "-q") if loops(box).exists() and list(loops(box).glob("*/loop.json")) \
            else box.start("loop", *args, "--max", str(kills * 3), "-q")
    r = box.finish(p, timeout=120)
    eq(r.rc, 0, f"seed {seed}: {r.out} {r.err}")
    assert done > kills / 2, f"only {done} kills"
    s = loop_of(box, name_of(box))
    eq(s["iterations"], kills * 3, f"seed {seed}")
    eq(inside(box, s["name"], "log").split(), [str(i) for i in range(1, kills * 3 + 1)], f"seed {seed}: each once, in order")
    each = box.cli("exec", s["name"], "--", "sh", "-c", "cd " + str(box.ws) + "; cat log.* | wc -l").out.strip()
    eq(each, str(kills * 3), f"seed {seed}")


if __name__ == "__main__":
    sys.exit(main())
