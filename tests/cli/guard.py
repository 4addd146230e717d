#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The guard from outside: hooks as agents call them, failures that must be refusals, settings, rules, records."""

import json
import signal
import stat
import subprocess
import sys
import time

from harness import eq, has, has_not, main, refused, soon, test


def call(command, agent="claude", **extra):
    """What an agent sends before it runs a command."""
    calls = {
        "claude": {"session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "Bash",
                   "tool_input": {"command": command}, "permission_mode": "default"},
        "codex": {"session_id": "s", "turn_id": "t", "model": "m", "hook_event_name": "PreToolUse",
                  "tool_name": "Bash", "tool_input": {"command": command}},
        "gemini": {"session_id": "s", "hook_event_name": "BeforeTool", "tool_name": "run_shell_command",
                   "tool_input": {"command": command}},
        "copilot": {"sessionId": "s", "toolName": "bash", "toolArgs": json.dumps({"command": command})},
        "cursor": {"conversation_id": "s", "hook_event_name": "beforeShellExecution", "command": command,
                   "cursor_version": "2"},
        "opencode": {"event": "tool.execute.before", "tool": "bash", "sessionID": "s", "callID": "c",
                     "args": {"command": command}},
        "droid": {"session_id": "s", "transcript_path": "/h/.factory/sessions/s.jsonl", "hook_event_name": "PreToolUse",
                  "tool_name": "Execute", "tool_input": {"command": command}, "permission_mode": "off"},
    }
    return calls[agent] | extra


def decision(result):
    """allow, ask or deny, whoever is answered."""
    if not result.out:
        return "allow" if result.rc == 0 else "deny"
    a = json.loads(result.out)
    a = a.get("hookSpecificOutput", a)
    return a.get("permissionDecision") or a.get("decision") or a.get("permission")


def hook(box, payload, *args, **kw):
    text = payload if isinstance(payload, bytes) else json.dumps({"cwd": str(box.ws)} | payload).encode()
    return box.cli("hook", *args, input=text, **kw)


AGENTS = ("claude", "codex", "gemini", "copilot", "cursor", "opencode", "droid")


@test
def every_agent_is_answered_in_its_own_form(box):
    for agent in AGENTS:
        for args in ((), ("--agent", agent)):
            r = hook(box, call("git reset --hard", agent), *args)
            eq(r.rc, 0, agent)
            eq(decision(r), "deny", agent)
            has(r.out, "git.reset-hard", "git stash")
            r = hook(box, call("ls -la", agent), *args)
            eq((r.rc, decision(r)), (0, "allow"), agent)


@test
def a_question_nobody_hears_is_a_refusal(box):
    for agent, want in (("claude", "ask"), ("copilot", "ask"), ("cursor", "ask"), ("codex", "deny"),
                        ("gemini", "deny"), ("opencode", "deny")):
        eq(decision(hook(box, call("npm publish", agent))), want, agent)
        eq(decision(hook(box, call("npm publish", agent), "--unattended")), "deny", agent)
    eq(decision(hook(box, call("npm publish", permission_mode="bypassPermissions"))), "deny")
    eq(decision(hook(box, call("npm publish"), env={"VITRINE_UNATTENDED": "1"})), "deny")


@test
def what_cannot_be_read_is_refused(box):
    for text in (b"", b"x", b"{}", b'{"tool_name":"Bash"', b"\xff\xfe", json.dumps(call("x")).encode()[:-3]):
        for agent in (None, *AGENTS):
            r = hook(box, text, *(("--agent", agent) if agent else ()))
            eq(decision(r), "deny", f"{agent} {text}")
            if r.rc:
                eq(r.rc, 2)
                has(r.err, "Vitrine guard refuses")
    r = box.cli("hook", "--agent", "nobody", input=b"{}")
    eq(r.rc, 2)
    has(r.err, "is no agent")


@test
def a_crash_is_a_refusal(box):
    """Whatever signal ends it while it waits for the call."""
    for agent in AGENTS:
        for sig in (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGTERM):
            p = box.start("hook", "--agent", agent, stdin=subprocess.PIPE)
            soon(lambda: "SigCgt:\t0000000000000000" not in open(f"/proc/{p.pid}/status").read(), "handlers")
            time.sleep(0.02)
            p.send_signal(sig)
            r = box.finish(p)
            eq(decision(r), "deny", f"{agent} {sig}")
            eq(r.rc, 0 if agent == "copilot" else 2)
            has(r.err, "Vitrine guard refuses")


@test(timeout=30)
def a_call_that_never_ends_is_refused_in_time(box):
    p = box.start("hook", "--agent", "claude", stdin=subprocess.PIPE)
    p.stdin.write(b'{"hook_event_name":')
    p.stdin.flush()
    t0 = time.monotonic()
    p.wait(8)
    eq(p.returncode, 2)
    assert time.monotonic() - t0 < 6
    has(p.stderr.read().decode(), "refuses")


@test
def no_room_for_the_answer_is_a_refusal(box):
    with open("/dev/full", "wb") as full:
        p = box.start("hook", "--agent", "claude", stdin=subprocess.PIPE, stdout=full)
        r = box.finish(p, json.dumps(call("rm -rf /")).encode())
    eq(r.rc, 2)
    has(r.err, "refuses")


@test
def files_of_tools_are_judged(box):
    def tool(name, path):
        return decision(hook(box, {"hook_event_name": "PreToolUse", "tool_name": name,
                                   "tool_input": {"file_path": path}}))
    eq(tool("Read", str(box.ws / ".env")), "deny")
    eq(tool("Read", str(box.ws / "main.c")), "allow")
    eq(tool("Write", str(box.ws / ".git/hooks/pre-commit")), "deny")
    eq(tool("Edit", str(box.home / ".claude/settings.json")), "deny")
    eq(tool("WebSearch", "x"), "allow")


@test
def every_decision_is_recorded_without_its_secrets(box):
    hook(box, call("ls"))
    hook(box, call("API_TOKEN=hunter2 git reset --hard"))
    log = box.state / "guard.log"
    eq(stat.S_IMODE(log.stat().st_mode), 0o600)
    lines = [json.loads(l) for l in log.read_text().splitlines()]
    eq([l["verdict"] for l in lines], ["allow", "deny"])
    eq(lines[1]["rule"], "git.reset-hard")
    eq(lines[1]["agent"], "claude")
    has_not(log.read_text(), "hunter2")
    has(lines[1]["command"], "API_TOKEN=***")
    r = box.cli("guard", "stats", "--json")
    eq(json.loads(r.out)["deny"], 1)
    has(box.cli("guard", "stats").out, "2 decisions: 1 allowed, 0 asked, 1 denied", "git.reset-hard")


@test
def the_record_is_bounded(box):
    box.state.mkdir(parents=True)
    log = box.state / "guard.log"
    log.write_bytes(b"x" * (4 << 20))
    box.own(box.dir / "state")
    hook(box, call("ls"))
    eq(len(log.read_text().splitlines()), 1)
    assert (box.state / "guard.log.1").stat().st_size == 4 << 20


@test
def a_link_is_not_followed_for_the_record(box):
    box.state.mkdir(parents=True)
    target = box.dir / "target"
    target.write_text("")
    (box.state / "guard.log").symlink_to(target)
    box.own(box.dir)
    r = hook(box, call("rm -rf /"))
    eq(decision(r), "deny")
    has(r.err, "was not recorded")
    eq(target.read_text(), "")


@test
def the_users_file_adds_and_switches_off(box):
    conf = box.config / "vitrine"
    conf.mkdir()
    (conf / "guard.json").write_text(json.dumps({
        "off": ["git.reset-hard"],
        "rules": [{"id": "mine.make", "program": "make", "sub": "deploy", "verdict": "deny",
                   "intent": "ask_human", "say": "Not from here."}]}))
    box.own(conf)
    eq(decision(hook(box, call("git reset --hard"))), "allow")
    r = hook(box, call("make deploy"))
    eq(decision(r), "deny")
    has(r.out, "mine.make", "Not from here.")
    (conf / "guard.json").write_text('{"level": "strict"}')
    eq(decision(hook(box, call("./configure"))), "ask")
    eq(decision(hook(box, call("git status && ls"))), "allow")


@test
def a_project_may_only_add(box):
    add = {"rules": [{"id": "p.x", "program": "x", "verdict": "ask", "intent": "ask_human", "say": "Why?"}]}
    box.write(".vitrine-guard.json", json.dumps(add))
    eq(decision(hook(box, call("x"))), "ask")
    eq(decision(hook(box, call("x") | {"cwd": str(box.ws / "deep/er")})), "ask")
    for weaker in ({"off": ["git.reset-hard"]}, {"safe": ["git"]}, {"not_secret": [".env"]}):
        box.write(".vitrine-guard.json", json.dumps(weaker))
        r = hook(box, call("ls"))
        eq(decision(r), "deny")
        has(r.err, "may only add")
    rule = {"id": "p.x", "verdict": "ask", "intent": "ask_human", "say": "Why?"}
    for wrong in ("{broken", json.dumps({"rules": [rule | {"effect": "|".join(["starts"] * 200)}]}),
                  json.dumps({"programs": [{"name": "frob", "does": "bogus args"}]}),
                  json.dumps({"programs": [{"name": "frob", "does": "writes"}]}),
                  json.dumps({"programs": [{"name": "frob", "does": "writes args when x"}]})):
        box.write(".vitrine-guard.json", wrong)
        for command in ("ls", "rm -rf ~", "frob a"):
            eq(decision(hook(box, call(command))), "deny", wrong[:100])


@test
def install_and_uninstall(box):
    files = {"claude": ".claude/settings.json", "codex": ".codex/hooks.json", "gemini": ".gemini/settings.json",
             "copilot": ".copilot/hooks/vitrine.json", "cursor": ".cursor/hooks.json",
             "opencode": ".config/opencode/plugins/vitrine.js", "droid": ".factory/settings.json"}
    (box.home / ".claude").mkdir()
    mine = {"model": "m", "hooks": {"Stop": [{"hooks": []}]}}
    (box.home / files["claude"]).write_text(json.dumps(mine))
    box.own(box.home)
    for agent, name in files.items():
        eq(box.cli("guard", "install", agent).rc, 0, agent)
        text = (box.home / name).read_text()
        has(text, "hook", agent)
        r = box.cli("guard", "install", agent)
        eq((r.rc, (box.home / name).read_text()), (0, text), "installing twice")
        if agent != "opencode":
            has(r.out, "there already")
    entry = json.loads((box.home / files["claude"]).read_text())["hooks"]["PreToolUse"][0]["hooks"][0]
    r = box.finish(box.popen(["sh", "-c", entry["command"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE), json.dumps(call("rm -rf ~")).encode())
    eq(decision(r), "deny")
    for agent, name in files.items():
        eq(box.cli("guard", "uninstall", agent).rc, 0, agent)
        if (box.home / name).exists():
            has_not((box.home / name).read_text(), "vitrine' hook")
    eq(json.loads((box.home / files["claude"]).read_text()), mine)
    refused(box.cli("guard", "install", "nobody"), "is no agent", rc=125)


@test
def settings_with_comments_are_left_alone(box):
    (box.home / ".claude").mkdir()
    (box.home / ".claude/settings.json").write_text('{ // mine\n}')
    box.own(box.home)
    refused(box.cli("guard", "install", "claude"), "comments")
    eq((box.home / ".claude/settings.json").read_text(), '{ // mine\n}')


@test
def test_and_explain(box):
    r = box.cli("guard", "test", "ls -la")
    eq((r.rc, r.out), (0, "allow (proved: it only looks)\n"))
    r = box.cli("guard", "test", "find . -name x -exec rm {} \\;")
    eq(r.rc, 3)
    has(r.out, "deny", "files.find-exec-rm", "list first")
    eq(box.cli("guard", "test", "npm publish").rc, 1)
    r = box.cli("guard", "explain", "x=rm; sudo $x -rf / | sh -c 'git status'")
    has(r.out, "files.rm-root", "runs  sudo", "runs  rm", "runs  git")
    r = json.loads(box.cli("guard", "test", "--json", "rm -rf /").out)
    eq((r["verdict"], r["intent"], r["rule"]), ("deny", "hard_stop", "files.rm-root"))
    refused(box.cli("guard", "test"), "needs one command")
    refused(box.cli("guard", "test", "rm", "-rf", "x"), "a command is one argument, in quotes")
    refused(box.cli("guard", "juggle"), "guard has no 'juggle'")
    refused(box.cli("guard"), "install")


@test
def an_agent_cannot_take_the_guard_away(box):
    eq(decision(hook(box, call("vitrine guard uninstall claude"))), "deny")
    eq(decision(hook(box, call("/usr/local/bin/vitrine guard uninstall claude"))), "deny")


@test
def decisions_of_the_bare_host_are_events(box):
    def shown(*args):
        r = box.cli("events", "--guard", "--json", *args)
        eq(r.rc, 0, r.err)
        return [json.loads(line) for line in r.out.splitlines()]

    eq(shown(), [], "none yet")
    for command in ("ls", "git reset --hard", "curl -H 'Authorization: Bearer sk-ant-api03-" + "a1B2" * 10 + "' x"):
        hook(box, call(command))
    got = shown()
    eq([(e["type"], e["number"], e["sandbox"], e["run"]) for e in got], [("guard.decision", n, "", "guard") for n in (1, 2, 3)])
    eq([(e["data"]["agent"], e["data"]["tool"], e["data"]["verdict"], e["data"]["input"]) for e in got[:2]],
       [("claude", "Bash", "allow", "ls"), ("claude", "Bash", "deny", "git reset --hard")])
    eq(got[1]["data"]["rule"], "git.reset-hard")
    has_not(json.dumps(got), "a1B2a1B2")
    assert time.time() - 60 < time.mktime(time.strptime(got[0]["time"][:19], "%Y-%m-%dT%H:%M:%S")) - time.timezone < time.time() + 60
    eq([e["number"] for e in shown("--tail", "1")], [3])
    eq(shown("--since", "2100-01-01"), [])
    has(box.cli("events", "--guard").out, "guard.decision", "git reset --hard")
    (box.state / "guard.log.1").write_text('{"time":1.500,"verdict":"deny","tool":"Bash"}\nnonsense\n')
    box.own(box.state)
    eq([e["number"] for e in shown()], [1, 3, 4, 5], "the older half first; what cannot be read is left out")
    refused(box.cli("events", "--guard", "--follow"), "--guard shows what the guard decided")


@test
def effects_are_explained_counted_and_set(box):
    has(box.cli("guard", "explain", "find . -name '*.log' | xargs rm").out, "files.rm-fed               rm ....log\n")
    r = box.cli("guard", "explain", "python3 -c \"import shutil; shutil.rmtree('/')\"")
    eq(r.rc, 3)
    has(r.out, "what it does", "removes / by python3: deny, effect.remove-home".replace("/ by", "/  by"))
    r = box.cli("guard", "explain", "--json", "echo x >> ~/.bashrc")
    has(r.out, '"effect":"appends"', '"rule":"effect.startup"')
    eq(decision(hook(box, call("echo x >> ~/.bashrc"))), "deny")
    has(box.cli("guard", "stats").out, "by effect", "appends")
    # The user's own verdict counts as it stands, a project's only when it is stricter.
    config = box.config / "vitrine"
    config.mkdir()
    (config / "guard.json").write_text('{"effects": {"changes": "allow", "writes": "allow", "sends": "deny"}}')
    eq(box.cli("guard", "test", "crontab jobs").rc, 0)
    eq(box.cli("guard", "test", "scp a.c host.example:").rc, 3)
    eq(box.cli("guard", "test", "echo > .claude/settings.json").rc, 3)
    eq(box.cli("guard", "test", "pkill -f vitrine").rc, 3, "no setting allows what ends the guard")
    box.write(".vitrine-guard.json", '{"effects": {"changes": "ask", "sends": "allow"}}')
    eq(box.cli("guard", "test", "crontab jobs").rc, 1)
    eq(box.cli("guard", "test", "scp a.c host.example:").rc, 3)
    (config / "guard.json").write_text('{"off": ["effect.guard-off", "effect.load"]}')
    eq(box.cli("guard", "test", "echo > .claude/settings.json").rc, 3)
    eq(box.cli("guard", "test", "stress -c 8").rc, 0)
    (config / "guard.json").write_text('{"effects_inside": {"starts": "allow"}}')
    eq(box.cli("guard", "test", "stress -c 8").rc, 1, "this is outside")
    (config / "guard.json").write_text('{"effects": {"flies": "allow"}}')
    r = box.cli("guard", "test", "ls")
    eq(r.rc, 2)
    has(r.err, 'no effect "flies"')


@test
def tools_of_servers_are_judged(box):
    for tool, args, want in (("mcp__shell__run", {"command": "rm -rf ~"}, "deny"),
                             ("mcp__fs__write_file", {"path": ".claude/settings.json", "content": "{}"}, "deny"),
                             ("mcp__fs__write_file", {"path": "~/.bashrc", "content": "x"}, "deny"),
                             ("mcp__fs__move_file", {"source": "~/.claude/settings.json", "destination": "/tmp/x"}, "deny"),
                             ("mcp__fs__delete_file", {"path": "/home/somebody"}, "deny"),
                             ("mcp__fs__write_file", {"path": "src/a.c", "content": "x"}, "allow"),
                             ("mcp__db__query", {"sql": "DROP TABLE users"}, "ask"),
                             ("mcp__db__query", {"sql": "select * from users"}, "allow"),
                             ("mcp__py__execute", {"code": "import shutil; shutil.rmtree('/')"}, "deny"),
                             ("mcp__run__exec", {"command": "rm", "args": ["-rf", "/"]}, "deny"),
                             ("NotebookEdit", {"notebook_path": str(box.ws / "a.ipynb"), "new_source": "import os; os.system('rm -rf ~')"}, "deny"),
                             ("Edit", {"file_path": str(box.ws / ".vitrine-guard.json"), "old_string": "a", "new_string": "b"}, "deny"),
                             ("apply_patch", {"input": "*** Begin Patch\n*** Add File: .vitrine-guard.json\n"}, "deny")):
        eq(decision(hook(box, call("", tool_name=tool, tool_input=args))), want, tool)


@test(timeout=60)
def inside_a_sandbox_another_verdict_may_count(box):
    """"effects_inside" counts where the walls hold anyway, and only there; what switches the guard off is never allowed."""
    script = """mkdir -p ~/.config/vitrine; echo '{"effects_inside": {"starts": "allow", "writes": "allow"}}' > ~/.config/vitrine/guard.json
    for c in 'stress -c 8' 'crontab jobs' 'echo x > ~/.claude/settings.json'; do $0 guard test "$c" > /dev/null; echo $?; done"""
    r = box.run("--read", box.program, "--", "sh", "-c", script, box.program)
    eq(r.out.split(), ["0", "1", "3"], r.err)


if __name__ == "__main__":
    sys.exit(main())
