#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Presets: what an agent's word does to command, policy, home and secrets. A shell script plays each agent."""

import json
import os
import sys

from harness import eq, has, has_not, main, refused, test

KEY = "sk-ant-api03-0123456789abcdefABCDEF0123456789"
MINE = {"summary": "mine", "command": ["sh", "agent.sh"], "free": ["--free"], "prompt": ["sh", "agent.sh", "{prompt}"],
        "share": ["~/.mine/skills", "~/.mine/none"], "seed": {".mine/settings.json": {"at": "{workspace}"}, ".minerc": ["a", "b"]},
        "policy": {"env": {"set": {"MINE": "1"}}, "limits": {"pids": "100"}}}


def preset(box, name="mine", **more):
    d = box.config / "vitrine" / "agents"
    d.mkdir(parents=True, exist_ok=True)
    p = d / f"{name}.json"
    p.write_text(json.dumps({**MINE, **more}))
    p.chmod(0o600)
    box.own(box.config)
    return p


@test
def list_of_agents(box):
    preset(box)
    r = box.cli("agents", "--json")
    eq(r.rc, 0, r.err)
    found = {a["name"]: a for a in json.loads(r.out)}
    eq(sorted(found), ["aider", "amp", "claude", "cline", "codex", "copilot", "crush", "cursor", "docker-agent", "droid", "gemini", "goose",
                       "kiro", "mine", "opencode", "pi", "qwen", "shell"])
    eq(found["mine"]["installed"], "yes")
    has(found["mine"]["origin"], "/agents/mine.json")
    eq(found["aider"]["origin"], "built-in")
    assert found["claude"]["guard"] and not found["shell"]["guard"]
    has(found["claude"]["install"], "claude-code")
    has(box.cli("agents", "-q").out, "mine\n", "shell\n")
    refused(box.cli("agents", "x"), "takes no arguments")


@test
def command_and_words(box):
    preset(box)
    box.write("agent.sh", 'echo "[$*] $MINE"\n')
    eq(box.run("mine", ".").out, "[--free] 1\n")
    eq(box.run("mine", ".", "--", "-p", "x").out, "[--free -p x] 1\n")
    eq(box.run("mine", ".", "--dsp", "--", "-p", "x", "--yolo").out, "[--free -p x] 1\n")
    eq(box.run("mine", ".", "--", "sh", "agent.sh", "--dsp", "x").out, "[--free x] 1\n")
    eq(box.run("mine", ".", "--", "echo", "other").out, "other\n")
    refused(box.run("shell", ".", "--dsp"), "'shell' is no agent")
    refused(box.run("--yolo", "--", "true"), "said to an agent")


@test
def not_installed(box):
    preset(box, command=["no-such-agent"], install="make agent")
    r = box.run("mine")
    eq(r.rc, 127)
    has(r.err, "cannot run 'no-such-agent --free'", "'make agent' installs it")


@test
def layers_in_their_order(box):
    """built-in < user < preset < project < flags"""
    preset(box)
    (box.config / "vitrine" / "policy.jsonc").write_text('{"limits": {"pids": "200", "open_files": "300"}}')
    box.own(box.config)
    box.write("agent.sh", "")

    def limits(*more):
        r = box.cli("explain", "mine", ".", "--json", *more)
        eq(r.rc, 0, r.err)
        return {k: v["max"] for k, v in json.loads(r.out)["limits"].items()}

    eq((limits()["pids"], limits()["open_files"]), (100, 300))
    box.write(".vitrine.jsonc", '{"limits": {"pids": "50"}}')
    eq(limits()["pids"], 50)
    eq(limits("--pids", "70")["pids"], 70)
    box.write(".vitrine.jsonc", '{"limits": {"pids": "150"}}')
    refused(box.cli("explain", "mine", "."), ".vitrine.jsonc:1:21", "would widen", rc=2)


@test
def home_is_seeded_once(box):
    preset(box)
    box.write("agent.sh", "cat ~/.mine/settings.json ~/.minerc; echo mine > ~/.minerc; rm ~/.mine/settings.json; mkdir ~/.mine/settings.json")
    eq(box.run("mine", ".").out, f'{{"at":"{box.ws}"}}\na\nb\n')
    box.write("agent.sh", "ls -d ~/.mine/settings.json/; cat ~/.minerc")
    has(box.run("mine", ".").out, "settings.json/\nmine\n")
    box.write("agent.sh", "cat ~/.minerc")
    eq(box.run("mine", ".", "--fresh").out, "a\nb\n", "a home that is empty again")


@test
def seeds_go_through_no_link(box):
    """What runs inside points its own settings at the host's files; the next start writes nothing there."""
    preset(box)
    target = box.home / "victim"
    target.mkdir()
    box.own(box.home)
    box.write("agent.sh", f"rm -r ~/.mine ~/.minerc; ln -s {target} ~/.mine; ln -s {target}/new ~/.minerc")
    eq(box.run("mine", ".").rc, 0)
    box.write("agent.sh", "readlink ~/.mine ~/.minerc")
    r = box.run("mine", ".")
    eq(r.out, f"{target}\n{target}/new\n")
    eq(list(target.iterdir()), [])


@test
def guard_is_wired(box):
    preset(box, hook="claude", seed={".claude/settings.json": {"mine": True}})
    call = json.dumps({"hook_event_name": "PreToolUse", "tool_name": "Bash", "cwd": str(box.ws), "session_id": "s",
                       "transcript_path": "", "tool_input": {"command": "rm -rf ~"}})
    box.write("agent.sh", f"cat ~/.claude/settings.json; echo; echo =; echo '{call}' | /.vitrine/vitrine hook --agent claude; "
                          "test -w /.vitrine/vitrine && echo writable")
    text, answer = box.run("mine", ".").out.split("=\n")
    settings = json.loads(text)
    eq(settings["mine"], True)
    has(settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"], "/.vitrine/vitrine", "hook --agent claude")
    eq(json.loads(answer)["hookSpecificOutput"]["permissionDecision"], "deny")


@test
def shared_by_choice(box):
    preset(box)
    (box.home / ".mine" / "skills").mkdir(parents=True)
    (box.home / ".mine" / "skills" / "a.md").write_text("a skill")
    (box.home / ".mine" / "credentials").write_text("a credential")
    box.own(box.home)
    box.write("agent.sh", "cat ~/.mine/skills/a.md ~/.mine/credentials; touch ~/.mine/skills/x")
    r = box.run("mine", ".", "--name", "shared", "--share")
    has(r.out, "a skill")
    has_not(r.out, "a credential")
    has(r.err, "Read-only")
    r = box.run("mine", ".", "--name", "plain")
    has_not(r.out, "a skill")
    refused(box.run("shell", ".", "--share"), "names nothing to share")


@test
def secret_of_a_variable(box):
    """The caller's key is a secret without being asked for; inside there is a placeholder."""
    preset(box, secrets=["anthropic", "openai"], policy={"network": {"mode": "gate", "allow": ["api.anthropic.com"]}})
    box.write("agent.sh", "env; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'")
    r = box.run("mine", ".", env={"ANTHROPIC_API_KEY": KEY})
    eq(r.rc, 0, r.err)
    has(r.out, "ANTHROPIC_API_KEY=sk-ant-api03-")
    has_not(r.out, KEY, "OPENAI_API_KEY")
    r = box.run("mine", ".")
    eq(r.rc, 0, "it is used where it is there: " + r.err)
    has_not(r.out, "ANTHROPIC_API_KEY")
    for f in box.state.rglob("*"):
        if f.is_file() and os.access(f, os.R_OK) and KEY.encode() in f.read_bytes():
            raise AssertionError(f"the key lies in {f}")


# What the maker of each says about it; a program of its name records how it is started.
BUILT_IN = {
    "cursor": {
        "runs": ["cursor-agent", "--yolo", "-m", "x"],
        "prompt": ["cursor-agent", "--yolo", "-p", "do it", "--output-format", "stream-json"],
        "key": ("CURSOR_API_KEY", "key_0123456789abcdefABCDEF0123456789abcdef"),
        "env": {},
        "files": {".cursor/cli-config.json": '"useHttp1ForAgent":true', ".cursor/hooks.json": "hook --agent cursor"},
        "hosts": ["api2.cursor.sh", "cursor.com"], "closed": ["downloads.cursor.com"]},
    "kiro": {
        "runs": ["kiro-cli", "chat", "--trust-all-tools", "-m", "x"],
        "prompt": ["kiro-cli", "chat", "--no-interactive", "--trust-all-tools", "do it"],
        "key": ("KIRO_API_KEY", "ksk_0123456789abcdefABCDEF0123456789"),
        "env": {"KIRO_DISABLE_TELEMETRY": "1", "Q_DISABLE_TELEMETRY": "1", "KIRO_NO_AUTO_UPDATE": "1"},
        "files": {".kiro/settings/cli.json": '"app.disableAutoupdates":true'},
        "hosts": ["runtime.us-east-1.kiro.dev", "q.us-east-1.amazonaws.com"], "closed": ["s3.us-east-1.amazonaws.com"]},
    "aider": {
        "runs": ["aider", "--yes-always", "-m", "x"],
        "prompt": ["aider", "--yes-always", "--no-stream", "--message", "do it"],
        "key": ("OPENAI_API_KEY", "sk-proj-0123456789abcdefABCDEF0123456789"),
        "env": {"AIDER_CHECK_UPDATE": "false", "AIDER_ANALYTICS": "false"},
        "files": {},
        "hosts": ["api.openai.com", "api.anthropic.com"], "closed": ["us.i.posthog.com"]},
    "docker-agent": {
        "runs": ["docker-agent", "run", "--yolo", "-m", "x"],
        "prompt": ["docker-agent", "run", "--exec", "--yolo", "default", "do it"],
        "key": ("ANTHROPIC_API_KEY", KEY),
        "env": {"TELEMETRY_ENABLED": "false"},
        "files": {},
        "hosts": ["api.anthropic.com", "openrouter.ai"], "closed": ["api.docker.com"]},
}
STAND_IN = """#!/usr/bin/python3
import json, os, sys
files = [os.path.join(d, f) for d, _, names in os.walk(os.environ["HOME"]) for f in names]
files = {os.path.relpath(f, os.environ["HOME"]): open(f, errors="replace").read() for f in files if os.path.isfile(f)}
out = {"argv": [os.path.basename(sys.argv[0]), *sys.argv[1:]], "env": dict(os.environ), "files": files}
open("told.json", "w").write(json.dumps(out))
"""


@test(timeout=60)
def those_that_cannot_be_installed_here(box):
    """Agents that the tests have no copy of: what each is started with, finds in its home and reaches."""
    bin = box.dir / "bin"
    bin.mkdir()
    for name, want in BUILT_IN.items():
        (bin / want["runs"][0]).write_text(STAND_IN)
        (bin / want["runs"][0]).chmod(0o755)
        box.own(bin)
        variable, key = want["key"]
        env = {"PATH": f"{bin}:/usr/bin:/bin", variable: key}
        r = box.run(name, ".", "--read", bin, "--", "-m", "x", env=env)
        eq(r.rc, 0, r.err)
        told = json.loads(box.read("told.json"))
        eq(told["argv"], want["runs"])
        eq({k: told["env"].get(k) for k in want["env"]}, want["env"], name)
        eq((told["env"][variable][:3], len(told["env"][variable])), (key[:3], len(key)), "a placeholder of its shape")
        has_not(json.dumps(told), key)
        for file, text in want["files"].items():
            has(told["files"].get(file, ""), text)
        sandbox = f"{name}-{box.ws.name}"
        eq(box.cli("start", sandbox, env=env).rc, 0)
        for hosts, rc in ((want["hosts"], 0), (want["closed"], 1)):
            for host in hosts:
                eq(box.cli("net", "test", sandbox, host).rc, rc, f"{name}: {host}")
        eq(box.cli("stop", sandbox).rc, 0)
        r = box.cli("loop", name, ".", "--prompt", "do it", "--max", "1", "--mode", "direct", "-q", "--", "--read", bin,
                    env=env)
        eq(r.rc, 0, r.err)
        eq(json.loads(box.read("told.json"))["argv"], want["prompt"])
        (box.ws / "told.json").unlink()


@test
def wrong_presets(box):
    p = preset(box, polcy={})
    r = box.run("mine", ".")
    refused(r, f"{p}:1:", 'unknown key "polcy"', 'did you mean "policy"')
    preset(box, policy={"network": {"alow": []}})
    refused(box.run("mine", "."), f"{p}:1:", 'unknown key "alow" in network')
    preset(box, hook="nobody")
    box.write("agent.sh", "")
    has(box.run("mine", ".").err, "no hooks are known for 'nobody'")
    preset(box).chmod(0o666)
    refused(box.run("mine", "."), "can be written by others")
    preset(box, name="claude", summary="my claude")
    r = box.cli("agents")
    has(r.out, "my claude")
    has(r.err, "can be written by others")


if __name__ == "__main__":
    sys.exit(main())
