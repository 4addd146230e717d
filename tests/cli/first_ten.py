#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The first ten minutes, and the first night played in seconds: typed into a shell on a terminal, as a new user would.

What the terminal shows is held against tests/golden/first_ten.txt, with times, ids and places of this run made the same. The agent is
a stand-in with a prompt of its own, and its model a service on this host's loopback that says which command to run next: both are below.
The real agents are driven by agents_real.py. VITRINE_GOLDEN=write writes the file anew, to be looked at."""

import difflib
import json
import os
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from harness import Patience, Term, main, test

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "first_ten.txt"

# Asks the service what to do with a prompt until it has no more commands. With -p once, for a loop; else it goes on asking the person.
AGENT = r"""#!/usr/bin/python3
import json, subprocess, sys, urllib.request
is_alone = sys.argv[1] == "-p"

def work(prompt):
    print("* " + prompt)
    for step in range(9):
        asked = json.dumps({"prompt": prompt, "step": step}).encode()
        answer = json.load(urllib.request.urlopen("http://127.0.0.1:@PORT@/", asked, timeout=10))
        if "say" in answer:
            break
        print("  $ " + answer["sh"])
        sys.stdout.flush()
        subprocess.run(["sh", "-c", answer["sh"]], stdin=subprocess.DEVNULL)
    if is_alone:
        print(json.dumps({"type": "result", "result": answer["say"], "cost": 0.125, "in": 1000, "out": 50}))
    else:
        print(answer["say"])

work(sys.argv[-1])
while not is_alone:
    try:
        prompt = input("you> ")
    except EOFError:
        break
    if prompt == "exit":
        break
    work(prompt)
"""

# What the model does with a prompt.
MODEL = {
    "Write a greeting and commit it": ["echo hello > greeting.txt", "git add greeting.txt && git commit -q -m 'Add a greeting'"],
    "Make it friendlier": ["echo 'hello, friend' > greeting.txt"],
    "Work through TODO.md": ["echo item >> work.txt", "git add work.txt && git commit -q -m 'Work on the list'",
                             "curl -s -m 2 http://not-allowed.example/ > /dev/null; true"],
}


class Service(BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        steps = MODEL.get(asked["prompt"], [])
        answer = {"sh": steps[asked["step"]]} if asked["step"] < len(steps) else {"say": "Done: " + asked["prompt"]}
        text = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args):
        pass


# What is typed at the shell, and what then, each when the words in front of it have come.
STEPS = [
    ("vitrine",),
    ('vitrine run mine . -- "Write a greeting and commit it"', "you> ", "exit\n"),
    ("git log --format='%an: %s'",),
    ("vitrine undo",),
    ("git log --format='%an: %s'",),
    ('vitrine run mine . --name careful --mode review -- "Write a greeting and commit it"', "you> ", "Make it friendlier\n", "you> ", "exit\n"),
    ("vitrine diff careful greeting.txt",),
    ("vitrine apply careful greeting.txt",),
    ("cat greeting.txt",),
    ('vitrine run mine . -- "Say something"', "you> ", "\x10\x11"),
    ("vitrine ls --format '{{.Name}} {{.Status}} {{.Exit}} {{.Waits}}'",),
    ("vitrine attach mine-proj", "you> ", "exit\n"),
    ("vitrine loop -d mine . --prompt 'Work through TODO.md' --max 3 --cost 5",),
    ("vitrine loop attach loop-mine-proj",),
    ("vitrine loop ls --format '{{.Name}} {{.State}} {{.Iterations}} {{.Cost}}'",),
    ("vitrine status --since today",),
    ("vitrine",),
]

SAME = [
    (r"\x1b\][^\x07\x1b]*(\x07|\x1b\\)|\x1b\[[0-9;?<>=!]*[ -/]*[@-~]|\x1b[()][A-Z0-9]|\x1b[=>78\\]|[\r\x0f]", ""),
    (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?", "DATE"),
    (r"\b[0-9a-f]{12,40}\b", "ID"),
    (r"\b[0-9a-f]{7}\.\.[0-9a-f]{7}\b", "ID..ID"),
    (r"\b\d+(\.\d+)? ?(ms|us|s)\b", "TIME"),
    (r"\d+m TIME", "TIME"),
    (r"\b\d+ (files changed|changes|written|removed)\b", r"N \1"),
    (r"left in the sandbox: [1-9]\d*", "left in the sandbox: N"),
    (r"(?<=\S) {3,}", "  "),
    (r"\n {6,}", "\n      "),
    (r"[ \t]+\n", "\n"),
]


def same(text, box):
    text = text.replace(str(box.ws), "~/proj").replace(str(box.home), "~")
    # Other agents may be installed on this host.
    text = re.sub(r"^  (?!mine )[a-z-]+ +(has the|no key or login|ready).*\n", "", text, flags=re.M)
    for pattern, word in SAME:
        text = re.sub(pattern, word, text)
    return text


def prepare(box, port):
    d = box.config / "vitrine" / "agents"
    d.mkdir(parents=True)
    (d / "mine.json").write_text(json.dumps({
        "summary": "a stand-in", "command": ["mine"], "free": [], "prompt": ["mine", "-p", "{prompt}"], "begin": ["mine", "{prompt}"],
        "policy": {"network": {"mode": "gate", "host_ports": [str(port)]}},
        "report": {"when": "type=result", "text": "result", "cost": "cost", "tokens_in": "in", "tokens_out": "out"}}))
    (d / "mine.json").chmod(0o600)
    for folder in ("bin", ".local/bin"):
        (box.home / folder).mkdir(parents=True, exist_ok=True)
    (box.home / "bin" / "vitrine").symlink_to(box.program)
    (box.home / ".local" / "bin" / "mine").write_text(AGENT.replace("@PORT@", str(port)))
    (box.home / ".local" / "bin" / "mine").chmod(0o755)
    (box.home / ".gitconfig").write_text("[user]\n\tname = Ada\n\temail = ada@example.org\n")
    box.own(box.config)
    box.own(box.home)
    box.write("TODO.md", "- [ ] one\n")
    box.host("git", "init", "-q", "-b", "main", ".")
    box.host("git", "add", "-A")
    box.host("git", "commit", "-qm", "The beginning")
    time.sleep(1.1)  # git's log counts seconds


def until(t, text, seconds=20):
    """What came up to and with this."""
    patience = Patience(seconds)
    while text not in t.seen:
        assert not patience.is_over() and t.fill(Patience.STEP), f"{text!r} did not come: {t.seen!r}"
    at = t.seen.index(text) + len(text)
    got, t.seen = t.seen[:at], t.seen[at:]
    return got


@test(who=("user",), timeout=90)
def the_first_ten_minutes(box):
    server = HTTPServer(("127.0.0.1", 0), Service)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    prepare(box, server.server_port)
    t = Term(box, ["/bin/sh", "-i"], rows=50, cols=120,
             env={"PS1": "@> ", "ENV": "", "PATH": f"{box.home}/bin:{box.home}/.local/bin:/usr/local/bin:/usr/bin:/bin", "TZ": "UTC",
                  "NO_COLOR": "1", "GIT_PAGER": "cat"})
    until(t, b"@> ")
    screens = []
    for command, *acts in STEPS:
        t.send(command + "\n")
        shown = b""
        for wanted, typed in zip(acts[::2], acts[1::2]):
            shown += until(t, wanted.encode())
            time.sleep(0.3)  # a person reads before typing; what is typed while the terminal is handed over is echoed twice
            t.send(typed)
        shown += until(t, b"@> ", 40)
        screens.append("$ " + same(shown[:-3].decode(errors="replace"), box).strip("\n") + "\n")
    t.send("exit\n")
    t.wait()
    t.close()
    got = "\n".join(screens)
    if os.environ.get("VITRINE_GOLDEN") == "write":
        GOLDEN.write_text(got)
    want = GOLDEN.read_text()
    assert got == want, "\n" + "\n".join(difflib.unified_diff(want.splitlines(), got.splitlines(), "golden", "here", lineterm=""))


if __name__ == "__main__":
    sys.exit(main())
