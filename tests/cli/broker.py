#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The broker: what is run outside on request, and that nothing else is.

Real git on both sides. The upstream is a bare repository on this machine, or the same behind git's own HTTP backend.
"""

import base64
import http.server
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

from harness import eq, has, has_not, main, refused, soon, test

WHO = {"GIT_AUTHOR_NAME": "n", "GIT_AUTHOR_EMAIL": "n@x", "GIT_COMMITTER_NAME": "n", "GIT_COMMITTER_EMAIL": "n@x",
       "GIT_CONFIG_NOSYSTEM": "1"}
SHARE = "export GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=n@x GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=n@x\n"


def git(box, *words, cwd=None, rc=0):
    p = box.popen(["git", *words], cwd=cwd or box.ws, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                  stderr=subprocess.PIPE, env=WHO)
    r = box.finish(p)
    if rc is not None and r.rc != rc:
        raise AssertionError(f"git {words}: {r.err}")
    return r.out.strip()


def upstream(box):
    """A bare repository with one commit on main, and the workspace as a clone of it."""
    box.needs("git")
    up = box.dir / "up.git"
    git(box, "init", "-q", "--bare", "-b", "main", up, cwd=box.dir)
    git(box, "init", "-q", "-b", "main", ".")
    box.write("a.txt", "one\n")
    git(box, "add", ".")
    git(box, "commit", "-qm", "one")
    git(box, "remote", "add", "origin", up)
    git(box, "push", "-q", "origin", "main")
    return up


def tip(box, up, ref):
    return git(box, "rev-parse", "--verify", "-q", ref, cwd=up, rc=None)


def rules(up, *push):
    out = ["--broker-fetch", str(up)]
    for p in push:
        out += ["--broker-push", f"{up} {p}"]
    return out


def brokered(box):
    return [json.loads(line)["data"] for line in box.cli("events", "--json").out.splitlines() if "broker.ran" in line]


@test(timeout=40)
def pushes_what_the_policy_lists(box):
    up = upstream(box)
    r = box.sh(SHARE + """
        git checkout -q -b agent/x && echo two >> a.txt && git commit -qam two
        git push origin agent/x && echo pushed
        git push origin agent/x:main || echo no main
        git push origin agent/x:refs/tags/v1 || echo no tag
        git commit -q --amend -m other
        git push origin agent/x || echo no rewind
        git push --force origin agent/x || echo no force
        git push origin :agent/x || echo no delete
    """, *rules(up, "refs/heads/agent/*"), timeout=35)
    eq(r.out.split("\n")[:-1], ["pushed", "no main", "no tag", "no rewind", "no force", "no delete"], r.err)
    has(r.err, "agent/x -> main (no rule of broker.push covers this ref)", "(non-fast-forward)",
        "[remote rejected] agent/x -> agent/x (force push refused: the policy allows none here", "deleting refused")
    eq(git(box, "log", "-1", "--format=%s", "agent/x", cwd=up), "two")
    eq(tip(box, up, "refs/tags/v1"), "")
    verdicts = [(e["verdict"], e["argv"][1], e.get("status")) for e in brokered(box) if e["argv"][1] == "push"]
    eq(verdicts.count(("allow", "push", None)), 1)
    eq(verdicts.count(("allow", "push", 0)), 1)
    eq(len([v for v in verdicts if v[0] == "deny"]), 4)


@test(who=("user",), timeout=30)
def force_and_delete_where_allowed(box):
    up = upstream(box)
    r = box.sh(SHARE + """
        git checkout -q -b free && echo two >> a.txt && git commit -qam two && git push -q origin free
        git commit -q --amend -m other && git push -q --force origin free && git push -q origin free:refs/tags/t-1
    """, *rules(up, "refs/heads/free create force delete", "refs/tags/t-* create"), timeout=25)
    eq((r.rc, r.err), (0, ""))
    eq(git(box, "log", "-1", "--format=%s", "free", cwd=up), "other")
    eq(tip(box, up, "refs/tags/t-1"), tip(box, up, "refs/heads/free"))
    box.ok("git push -q origin :free", *rules(up, "refs/heads/free delete"), timeout=25)
    eq(tip(box, up, "refs/heads/free"), "")


@test(who=("user",), timeout=30)
def safe_tools_ask_it_about_force(box):
    """Where there is a broker the tool in front of git hands a forced push on, and the rules decide."""
    up = upstream(box)
    r = box.sh(SHARE + """
        git checkout -q -b free && echo two >> a.txt && git commit -qam two && git push -q origin free free:agent/x
        git commit -q --amend -m other && git push -q --force origin free && echo forced
        git push --force origin free:agent/x || echo no force
    """, *rules(up, "refs/heads/free create force", "refs/heads/agent/*"), "--tools", "always", timeout=25)
    eq(r.out, "forced\nno force\n", r.err)
    has(r.err, "force push refused")
    eq(git(box, "log", "-1", "--format=%s", "free", cwd=up), "other")
    eq(git(box, "log", "-1", "--format=%s", "agent/x", cwd=up), "two")
    r = box.sh("git push --force origin free", "--tools", "always")
    eq(r.rc, 126, "and without one it is refused: " + r.err)


@test(timeout=30)
def fetches_and_pulls(box):
    up = upstream(box)
    other = box.dir / "other"
    git(box, "clone", "-q", up, other, cwd=box.dir)
    (other / "b.txt").write_text("theirs\n")
    box.own(other)
    git(box, "add", ".", cwd=other)
    git(box, "commit", "-qm", "theirs", cwd=other)
    git(box, "push", "-q", "origin", "HEAD:main", cwd=other)
    r = box.sh(SHARE + "git ls-remote origin | cut -f2; git pull -q origin main && cat b.txt", *rules(up), timeout=25)
    eq(r.out, "HEAD\nrefs/heads/main\ntheirs\n", r.err)
    r = box.sh("git fetch origin", "--broker-push", f"{up} refs/heads/x")
    eq(r.rc, 128)
    has(r.err, "may push to", "but not fetch")
    r = box.sh("ls " + str(up), *rules(up))
    eq(r.rc, 2, "the upstream itself is not inside")


@test(who=("user",), timeout=40)
def a_secret_is_not_pushed(box):
    up = upstream(box)
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    r = box.sh(SHARE + f"""
        git checkout -q -b agent/x && echo 'TOKEN = "{token}"' > conf.py && git add . && git commit -qm conf
        git rm -q conf.py && git commit -qm gone
        git push origin agent/x
    """, *rules(up, "refs/heads/agent/*"), timeout=30)
    eq(r.rc, 1)
    has(r.err, "secret found: something like a GitHub token in conf.py")
    eq(tip(box, up, "refs/heads/agent/x"), "")
    box.ok("git push -q origin agent/x", *rules(up, "refs/heads/agent/* no-scan"), timeout=25)
    eq(tip(box, up, "refs/heads/agent/x"), git(box, "rev-parse", "agent/x"))
    # What the upstream has already is not new.
    box.ok(SHARE + "git commit -q --allow-empty -m more && git push -q origin agent/x", *rules(up, "refs/heads/agent/*"),
           timeout=25)


def pending(box):
    return json.loads(box.cli("broker", "ls", "--json").out)


@test(who=("user",), timeout=50)
def a_person_is_asked(box):
    up = upstream(box)
    box.ok(SHARE + "git checkout -q -b agent/x; echo 'from inside' > n.txt; git add .; git commit -qm two")
    for word, rc in (("deny", 1), ("approve", 0)):
        p = box.start("run", "--name", "asks", *rules(up, "refs/heads/agent/* approve"), "--", "git", "push", "origin", "agent/x")
        soon(lambda: pending(box), "a question", 20)
        q = pending(box)[0]
        eq((q["sandbox"], q["title"]), ("asks", f"push to {up}, refs/heads/agent/x"))
        if word == "approve":    # what was not shown, or is another question, is not approved
            refused(box.cli("broker", "approve", "--shown", "0" * 64, "asks", q["id"]), "is not what was shown", rc=125)
            r = box.cli("broker", "approve", "asks", q["id"])
            eq(r.rc, 125, r.err)
            has(r.out, "+from inside")
            has(r.err, "was not shown before")
        shown = box.cli("broker", "show", "asks", q["id"])
        has(shown.out, "+from inside", "n.txt | 1 +")
        has(shown.err, "broker approve --shown ")
        eq(tip(box, up, "refs/heads/agent/x"), "")
        eq(box.cli("broker", word, "asks", q["id"]).rc, 0)
        r = box.finish(p)
        eq(r.rc, rc, r.err)
        eq(pending(box), [])
        box.cli("stop", "asks")
    has(r.err, "waits for a person")
    eq(tip(box, up, "refs/heads/agent/x"), git(box, "rev-parse", "agent/x"))
    p = box.start("run", "--name", "asks", *rules(up, "refs/heads/agent/* approve"), "--", "sh", "-c",
                  "git commit -q --allow-empty -m three; git push origin HEAD:refs/heads/agent/y")
    soon(lambda: pending(box), "a question", 20)
    (box.state / "sandboxes/asks/broker/pending" / (pending(box)[0]["id"] + ".allow")).write_text("0" * 64)
    r = box.finish(p)
    has(r.err, "what was approved is another question")
    eq(tip(box, up, "refs/heads/agent/y"), "")
    refused(box.cli("broker", "approve", "asks", "00000000"), "nothing waits", rc=125)
    refused(box.cli("broker", "approve"), "broker ls")


def shown(box, up, *words, rule="refs/heads/agent/* create update force approve"):
    """What a person is shown of this push, which is then denied."""
    p = box.start("run", "--name", "asks", *rules(up, rule), "--", "git", "push", *words)
    soon(lambda: pending(box) or p.poll() is not None, "a question", 30)
    eq(p.poll(), None, box.finish(p).err if p.poll() is not None else "")
    id = pending(box)[0]["id"]
    out = box.cli("broker", "show", "asks", id).out
    eq(box.cli("broker", "deny", "asks", id).rc, 0)
    box.finish(p)
    box.cli("stop", "asks")
    return out


@test(who=("user",), timeout=90)
def a_person_is_shown_what_would_be_pushed(box):
    """The agent's work and not the repository; each commit as well as the sum; and a page also where the diff is huge."""
    up = upstream(box)
    box.write("old.txt", "an old line of the repository\n" * 50)
    git(box, "add", ".")
    git(box, "commit", "-qm", "history")
    git(box, "push", "-q", "origin", "main")
    box.ok(SHARE + "git checkout -q -b agent/x; echo 'a line that comes and goes' > gone.txt; git add .; git commit -qm 'add it';"
           "git rm -q gone.txt; echo stays > stays.txt; git add .; git commit -qm 'remove it again'")
    out = shown(box, up, "origin", "agent/x")
    has(out, "New commits: 2", "add it", "remove it again", "+a line that comes and goes", "+stays", "1 file changed, 1 insertion(+)",
        "the merge base with the upstream's default branch")
    has_not(out, "an old line of the repository")
    box.ok(SHARE + "seq 1 900000 > big.txt; git add .; git commit -qm 'a large file'; echo small > z-last.txt; git add .; git commit -qm 'a small file'")
    out = shown(box, up, "origin", "agent/x")
    has(out, "New commits: 4", "a large file", "a small file", "900002 insertions(+)", "z-last.txt | ", "cut here")
    # A side branch that was merged is shown commit by commit too.
    box.ok(SHARE + "git checkout -q -b side HEAD~2; echo 'from the side' > side.txt; git add .; git commit -qm 'on the side'; git rm -q side.txt;"
           "git commit -qm 'off the side'; git checkout -q -b agent/y agent/x~2; git merge -q --no-ff -m merged side")
    out = shown(box, up, "origin", "agent/y")
    has(out, "on the side", "off the side", "+from the side")
    # What a rewritten branch loses is named.
    git(box, "push", "-q", "origin", "agent/x~2:refs/heads/agent/z")
    box.ok(SHARE + "git checkout -q -b agent/z main; echo other > other.txt; git add .; git commit -qm 'another history'")
    out = shown(box, up, "-f", "origin", "agent/z")
    has(out, "REWRITES HISTORY", "Commits that the branch loses", "remove it again", "another history")


@test(who=("user",), timeout=60)
def nothing_of_a_page_is_left_out(box):
    """A zero byte far inside a file, where git still takes it for text, ends neither the page nor the list of commits; the text of a tag is shown."""
    up = upstream(box)
    git(box, "push", "-q", "origin", "main")
    box.ok(SHARE + "git checkout -q -b agent/n; { seq 1 9000; printf 'a\\0b\\n'; echo behind the zero; } > a-first.txt; git add .; git commit -qm zero;"
           "echo 'a later line' > z-last.txt; git add .; git commit -qm later; git tag -m 'what the tag says' note; git -c advice.nestedTag=false tag -m 'and the outer one' outer note")
    out = shown(box, up, "origin", "agent/n")
    has(out, "behind the zero", "+a later line", "Each commit by itself", "z-last.txt")
    eq(out.count("+a later line"), 2, "in the sum, and by itself")
    out = shown(box, up, "origin", "outer", rule="refs/tags/* create approve")
    has(out, "what the tag says", "and the outer one")


# ------------------------------------------------------------------------------------------ over the network


class Web(http.server.BaseHTTPRequestHandler):
    """git http-backend behind a check of the token."""

    def do(self):
        self.server.seen.append(self.headers.get("Authorization"))
        if self.headers.get("Authorization") != self.server.want:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="x"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        path, _, query = self.path.partition("?")
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while n := int(self.rfile.readline(), 16):
                body += self.rfile.read(n)
                self.rfile.readline()
            self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        env = {"PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": str(self.server.root), "GIT_HTTP_EXPORT_ALL": "1",
               "PATH_INFO": path, "QUERY_STRING": query, "REQUEST_METHOD": self.command, "REMOTE_USER": "agent",
               "CONTENT_TYPE": self.headers.get("Content-Type", ""), "CONTENT_LENGTH": str(len(body)),
               "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
               "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""), "GIT_CONFIG_COUNT": "1",
               "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
        out = subprocess.run(["git", "http-backend"], input=body, env=env, capture_output=True, timeout=20).stdout
        head, _, rest = out.partition(b"\r\n\r\n")
        lines = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.send_response(int(lines.pop("Status", "200").split()[0]))
        for k, v in lines.items():
            self.send_header(k, v)
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        self.wfile.write(rest)

    do_GET = do_POST = do

    def log_message(self, *args):
        pass


@test(who=("user",), timeout=60)
def https_tokens_stay_outside(box):
    up = upstream(box)
    git(box, "config", "http.receivepack", "true", cwd=up)
    web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Web)
    web.root, web.seen = box.dir, []
    web.want = "Basic " + base64.b64encode(b"x-access-token:canary-token-1234").decode()
    threading.Thread(target=web.serve_forever, daemon=True).start()
    url = f"http://localhost:{web.server_port}/up.git"
    try:
        r = box.cli("secret", "set", "forge", "--host", "localhost", "--env", "FORGE_TOKEN",
                    input=b"canary-token-1234\n")
        eq(r.rc, 0, r.err)
        r = box.sh(SHARE + f"""
            git checkout -q -b agent/x; echo two >> a.txt; git commit -qam two
            git push -q {url} agent/x && git fetch -q {url} && echo done
            env; cat /etc/gitconfig; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'
        """, "--broker-push", f"{url} refs/heads/agent/* secret=forge", "--broker-fetch", url, timeout=40)
        has(r.out, "done\n")
        has_not(r.out, "canary-token", base64.b64encode(b"x-access-token:canary").decode()[:20])
        eq(tip(box, up, "refs/heads/agent/x"), git(box, "rev-parse", "agent/x"))
        eq(set(web.seen), {web.want})
        r = box.sh(f"git ls-remote {url}", "--broker-fetch", url, timeout=40)
        eq(r.rc, 128, "without the secret the server says no")
        box.cli("secret", "set", "other", "--host", "forge.test", "--env", "X_TOKEN", input=b"canary-token-1234\n")
        r = box.sh(f"git ls-remote {url}", "--broker-fetch", url + " secret=other", timeout=40)
        eq(r.rc, 128)
        has(r.err, "secret 'other': it is not for localhost")
    finally:
        web.shutdown()


# ---------------------------------------------------------------------------------------------------- commands


def user_policy(box, **broker):
    d = box.config / "vitrine"
    d.mkdir(exist_ok=True)
    (d / "policy.jsonc").write_text(json.dumps({"broker": broker}))
    box.own(d)


def program(box, name, text):
    d = box.dir / "bin"
    d.mkdir(exist_ok=True)
    (d / name).write_text("#!/bin/sh\n" + text)
    (d / name).chmod(0o755)
    box.own(d)
    return d / name


@test(timeout=30)
def commands_of_the_user(box):
    p = program(box, "say", 'echo "$# $*"; pwd; ls -A; env; echo oops >&2; exit 7\n')
    user_policy(box, commands={"say": f"{p} --to agent/* [--loud]"})
    r = box.sh("broker say --to agent/x --loud; echo $?; env", env={"SSH_AUTH_SOCK": "/run/canary-agent", "CANARY": "1"})
    inner, _, inside = r.out.partition("\n7\n")
    lines = inner.split("\n")
    eq(lines[0], "3 --to agent/x --loud")
    has(lines[1], "/broker/desk-")
    has(inner, "SSH_AUTH_SOCK=/run/canary-agent", f"HOME={box.home}")
    has_not(inner, "CANARY", "VITRINE", "a.txt")
    has_not(inside, "canary-agent")
    has(r.err, "oops")
    for bad in ("say", "say --to main", "say --to agent/x --evil", "say --to agent/x --loud more", "other", "say -h",
                "say --to agent/../main", "say --to agent/x/../../main", "say --to agent/.."):
        r = box.sh(f"broker {bad}")
        eq(r.rc, 125, bad)
        has(r.err, "vitrine: ")
    eq(len([e for e in brokered(box) if e["verdict"] == "deny"]), 9)


@test(timeout=30)
def commands_are_confined(box):
    where = box.home / "planted"
    p = program(box, "plant", f'touch {where} && echo planted; touch here && echo here\n')
    eq(box.host(p, cwd=box.dir), "planted\nhere\n", "outside it works")
    where.unlink()
    loud = program(box, "loud", "head -c 300000 /dev/zero | tr '\\0' x\n")
    user_policy(box, commands={"plant": str(p), "loud": str(loud)})
    eq(box.sh("broker plant").out, "here\n")
    eq(where.exists(), False)
    r = box.sh("broker loud")
    eq((r.rc, r.out), (125, ""))
    has(r.err, "says too much")


@test(who=("user",), timeout=30)
def commands_reach_no_network_unless_they_say_so(box):
    with socket.create_server(("127.0.0.1", 0)) as server:
        ask = f"import socket; socket.create_connection(('127.0.0.1', {server.getsockname()[1]}), 5); print('reached')"
        p = program(box, "ask", f'exec python3 -c "{ask}"\n')
        user_policy(box, commands={"quiet": str(p), "asks": f"network {p}"})
        r = box.sh("broker quiet")
        eq((r.rc, r.out), (1, ""))
        has(r.err, "PermissionError")
        eq(box.sh("broker asks").out, "reached\n")
    q = program(box, "serve", "exec python3 -c \"import socket; socket.create_server(('127.0.0.1', 0))\"\n")
    user_policy(box, commands={"serve": f"network {q}"})
    has(box.sh("broker serve").err, "PermissionError")


@test(who=("user",), timeout=30)
def what_the_agent_can_change_is_not_run(box):
    p = box.write("tool", "#!/bin/sh\necho ran\n", 0o755)
    user_policy(box, commands={"tool": str(p)})
    refused(box.run("--", "true"), "where what runs inside can write", rc=2)
    link = box.dir / "link"
    link.symlink_to(p)
    user_policy(box, commands={"tool": str(link)})
    r = box.sh("broker tool")
    eq(r.rc, 125)
    has(r.err, "lies where what runs inside can write")
    # A project cannot declare anything, trusted or not.
    user_policy(box)
    box.write(".vitrine.jsonc", '{"broker": {"commands": {"x": "/usr/bin/id"}}}')
    refused(box.run("--", "true"), "only your own policy file and flags", rc=2)
    box.cli("trust", ".")
    refused(box.run("--", "true"), "only your own policy file and flags", rc=2)


@test(who=("user",), timeout=40)
def a_command_on_an_approved_commit(box):
    upstream(box)
    p = program(box, "release", 'cat a.txt; ls -A; test -L link || echo no link\n')
    box.ok(SHARE + "echo three > a.txt; ln -s /etc/passwd link; git add .; git commit -qm three; echo later > a.txt")
    user_policy(box, commands={"release": f"checkout {p}"})
    eq(box.sh("broker release").rc, 125)
    run = box.start("run", "--name", "rel", "--", "broker", "--commit", "HEAD", "release")
    soon(lambda: pending(box), "a question", 20)
    has(box.cli("broker", "show", "rel", pending(box)[0]["id"]).out, "+three")
    box.cli("broker", "approve", "rel", pending(box)[0]["id"])
    r = box.finish(run)
    eq((r.rc, r.out), (0, "three\na.txt\nlink\nno link\n"), r.err)
    box.cli("stop", "rel")


@test(who=("user",), timeout=30)
def gh_pr_create(box):
    p = program(box, "gh", 'for a; do echo "<$a>"; done; echo "token $GH_TOKEN"; ls -A; echo https://forge/pull/1\n')
    user_policy(box, gh=[f"me/app secret=forge program={p}"])
    r = box.cli("secret", "set", "forge", "--host", "api.github.com", "--env", "FORGE_TOKEN",
                input=b"canary-token-1234\n")
    eq(r.rc, 0, r.err)
    r = box.sh("gh pr create --title 'a b' --head agent/x --body '--web' -d")
    eq(r.out.split("\n")[:-1], ["<pr>", "<create>", "<--repo>", "<me/app>", "<--head>", "<agent/x>", "<--title>", "<a b>",
                                "<--body>", "<--web>", "<--draft>", "token canary-token-1234", "https://forge/pull/1"], r.err)
    for bad in ("auth token", "api user", "pr create --title x --head y --web", "pr create -t x -H y -R other/app",
                "pr create -t x -H y -F /etc/passwd", "pr merge 1"):
        eq(box.sh(f"gh {bad}").rc, 125, bad)


# ------------------------------------------------------------------------------------------------------- attacks


@test(timeout=30)
def nonsense_is_hung_up_on(box):
    up = upstream(box)
    r = box.sh("""python3 - <<'E'
import os, socket, struct
def ask(data):
    s = socket.socket(socket.AF_UNIX); s.settimeout(5); s.connect("/.vitrine/broker")
    try:
        s.sendall(data); s.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: s.recv(65536), b""))
    except OSError:
        return b""
def words(*w):
    b = b"".join(x + b"\\0" for x in w)
    return b"VBR1" + struct.pack("<I", len(b)) + b
for d in (b"", b"x", b"VBR1\\xff\\xff\\xff\\xff", b"VBR2" + b"\\0" * 40, b"VBR1\\5\\0\\0\\0abcde", words(b"a\\x1bb"), os.urandom(5000)):
    assert b"X\\0\\1\\0\\0" not in ask(d), d
for w in ((b"git-push", b"UP", b"--", b"--upload-pack=x:refs/heads/agent/x"), (b"git-push", b"UP", b"--", b"HEAD:refs/heads/agent/x"),
          (b"git-push", b"UP", b"--"), (b"git-push", b"ext::sh -c id", b"--", b":refs/heads/agent/x"), (b"git-fetch", b"--help"),
          (b"git-list", b"-u"), (b"run",), (b"gh",), (b"nothing",), (b"git-push", b"UP", b"--", b":refs/heads/../../x"),
          (b"git-push", b"UP", b"--", b"0" * 40 + b":refs/heads/agent/x\\n")):
    a = ask(words(*(x.replace(b"UP", UP) for x in w)))
    assert a.endswith(b"X\\0\\1\\0\\x7d") or b"error" in a, (w, a)
print("fine")
E""".replace("UP)", f"{str(up).encode()!r})"), *rules(up, "refs/heads/agent/*"), timeout=25)
    eq((r.out, r.err), ("fine\n", ""))


@test(who=("user",), timeout=40)
def a_lying_git_inside(box):
    up = upstream(box)
    before = git(box, "for-each-ref", cwd=up)
    r = box.sh(SHARE + """
        git checkout -q -b agent/x && echo two >> a.txt && git commit -qam two
        mkdir /tmp/bin && printf '#!/bin/sh\\ncase "$*" in *upload-pack*) head -c 300000 /dev/urandom; exit;; esac\\nexec /usr/bin/git "$@"\\n' > /tmp/bin/git
        chmod +x /tmp/bin/git; printf 'push HEAD:refs/heads/agent/x\\n\\n' |
        PATH=/.vitrine/tools:/tmp/bin:$PATH timeout 20 git-remote-vitrine origin UP; echo "status $?"
    """.replace("UP", str(up)), *rules(up, "refs/heads/agent/*"), timeout=35)
    has_not(r.out, "status 0", "ok refs")
    has(r.err, "not taken")
    eq(git(box, "for-each-ref", cwd=up), before)


def setups(canary, tool):
    """Name, what an attacker puts into a repository, and the command that runs it where host git is used on it."""
    run = f"{canary}.sh"
    fsm = f"[core]\n\tfsmonitor = {run}\n"
    attr = "*.txt diff=x filter=x merge=x\n"

    def config(text):
        return lambda d: (d / ".git/config").open("a").write(text)

    def hook(name, where=".git/hooks"):
        def put(d):
            (d / where).mkdir(exist_ok=True)
            shutil.copy(run, d / where / name)
            (d / where / name).chmod(0o755)
        return put

    def both(*fns):
        return lambda d: [f(d) for f in fns]

    def put(rel, text):
        def write(d):
            (d / rel).parent.mkdir(parents=True, exist_ok=True)
            (d / rel).write_text(text)
        return write

    def gitfile(d):
        (d / ".git").rename(d / "elsewhere")
        (d / "elsewhere/config").open("a").write(fsm)
        (d / ".git").write_text("gitdir: elsewhere\n")

    def embedded(d):
        b = d / "sub"
        shutil.copytree(d / ".git", b)
        (b / "config").write_text(f"[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = {d}\n" + fsm)

    def submodule(d):
        shutil.copytree(d / ".git", d / "s/.git")
        (d / ".gitmodules").write_text('[submodule "s"]\n\tpath = s\n\turl = UP\n')
        config(f'[submodule "s"]\n\turl = UP\n\tactive = true\n\tupdate = !{run}\n')(d)
        box_git(d, "update-index", "--add", "--cacheinfo", "160000," + box_git(d, "rev-parse", "HEAD~1") + ",s")

    box_git = tool
    change = put("a.txt", "changed\n")
    driver = both(config(f'[diff "x"]\n\ttextconv = {run}\n'), put(".gitattributes", attr), change)
    filters = '[filter "x"]\n\t{} = ' + run + "\n"
    ext = f"ext::{run}"
    for name, fn in (("config", config(fsm)), ("include", both(config("[include]\n\tpath = x\n"), put(".git/x", fsm))),
                     ("includeIf", both(config('[includeIf "gitdir:**"]\n\tpath = x\n'), put(".git/x", fsm))),
                     ("config.worktree", both(config("[extensions]\n\tworktreeConfig = true\n"), put(".git/config.worktree", fsm))),
                     ("gitfile", gitfile)):
        yield f"fsmonitor by {name}", fn, ["status"]
        yield f"fsmonitor by {name}, diff", both(fn, change), ["diff"]
    yield "fsmonitor in an embedded repository", embedded, ["-C", "sub", "status"]
    yield "post-checkout", hook("post-checkout"), ["checkout", "-b", "y"]
    yield "pre-push", hook("pre-push"), ["push", "UP", "HEAD:refs/heads/host"]
    yield "pre-commit", hook("pre-commit"), ["commit", "--allow-empty", "-m", "x"]
    yield "hooksPath", both(config("[core]\n\thooksPath = h\n"), hook("pre-commit", "h")), ["commit", "--allow-empty", "-m", "x"]
    yield "reference-transaction", hook("reference-transaction"), ["fetch", "UP", "main:other"]
    yield "post-index-change", both(hook("post-index-change"), change), ["add", "a.txt"]
    yield "sshCommand, fetch", config(f"[core]\n\tsshCommand = {run}\n"), ["fetch", "ssh://x/y"]
    yield "sshCommand, push", config(f"[core]\n\tsshCommand = {run}\n"), ["push", "ssh://x/y", "HEAD"]
    yield "gitProxy", config(f"[core]\n\tgitProxy = {run}\n"), ["fetch", "git://x/y"]
    yield "ext url, fetch", config(f'[remote "evil"]\n\turl = {ext}\n[protocol "ext"]\n\tallow = always\n'), ["fetch", "evil"]
    yield "ext url, push", config(f'[remote "evil"]\n\turl = {ext}\n[protocol "ext"]\n\tallow = always\n'), ["push", "evil", "HEAD"]
    yield "insteadOf", config(f'[url "{ext}"]\n\tinsteadOf = UP\n[protocol "ext"]\n\tallow = always\n'), ["fetch", "UP"]
    yield "remote.vcs", config(f'[remote "evil"]\n\tvcs = ext\n\turl = {run}\n[protocol "ext"]\n\tallow = always\n'), ["fetch", "evil"]
    yield "diff.external", both(config(f"[diff]\n\texternal = {run}\n"), change), ["diff"]
    yield "textconv, diff", driver, ["diff"]
    yield "textconv, log -p", driver, ["log", "-p", "-1"]
    yield "diff command", both(config(f'[diff "x"]\n\tcommand = {run}\n'), put(".gitattributes", attr), change), ["diff"]
    yield "clean, add", both(config(filters.format("clean")), put(".gitattributes", attr), change), ["add", "a.txt"]
    yield "clean, diff", both(config(filters.format("clean")), put(".git/info/attributes", attr), change), ["diff"]
    yield "smudge", both(config(filters.format("smudge")), put(".git/info/attributes", attr), lambda d: (d / "a.txt").unlink()), ["checkout", "--", "a.txt"]
    yield "process", both(config(filters.format("process")), put(".gitattributes", attr), change), ["add", "a.txt"]
    yield "merge driver", both(config(f'[merge "x"]\n\tdriver = {run}\n'), put(".git/info/attributes", attr)), ["merge", "side"]
    yield "remote.uploadpack", config(f'[remote "o"]\n\turl = UP\n\tuploadpack = {run}\n'), ["fetch", "o"]
    yield "remote.receivepack", config(f'[remote "o"]\n\turl = UP\n\treceivepack = {run}\n'), ["push", "o", "HEAD:refs/heads/host"]
    yield "alias", config(f"[alias]\n\tst = !{run}\n"), ["st"]
    yield "trailer", config(f'[trailer "x"]\n\tcommand = {run}\n'), ["commit", "--allow-empty", "-m", "x", "--trailer", "x=y"]
    yield "sequence.editor", config(f"[sequence]\n\teditor = {run}\n"), ["rebase", "-i", "HEAD~1"]
    yield "submodule", submodule, ["submodule", "update"]
    yield "man", config(f'[man]\n\tviewer = x\n[man "x"]\n\tcmd = {run}\n'), ["help", "-m", "git"]
    yield "gpg.program", config(f"[gpg]\n\tprogram = {run}\n"), ["commit", "--allow-empty", "-S", "-m", "x"]
    yield "core.editor", config(f"[core]\n\teditor = {run}\n"), ["commit", "--allow-empty"]


@test(who=("user",), timeout=150)
def no_attack_on_host_git_runs_through_the_broker(box):
    """Each must run its payload where host git is used on the repository, and none when the broker takes from it."""
    up = upstream(box)
    git(box, "checkout", "-q", "-b", "side")
    box.write("a.txt", "side\n")
    git(box, "commit", "-qam", "side")
    git(box, "checkout", "-q", "main")
    box.write("a.txt", "two\n")
    git(box, "commit", "-qam", "two")
    canary = box.dir / "canary"
    payload = Path(f"{canary}.sh")
    payload.write_text(f"#!/bin/sh\necho ran >> {canary}\nexit 1\n")
    payload.chmod(0o755)
    names = []
    template = box.dir / "template"
    shutil.copytree(box.ws, template, symlinks=True)
    for i, (name, plant, words) in enumerate(setups(canary, lambda d, *w: git(box, *w, cwd=d))):
        d, host = box.ws / f"r{i}", box.dir / f"h{i}"
        for where in (d, host):
            shutil.copytree(template, where, symlinks=True)
            box.own(where)
            plant(where)
            config = where / ".git/config"
            if config.is_file():
                config.write_text(config.read_text().replace("UP", str(up)))
            box.own(where)
        git(box, *[w.replace("UP", str(up)) for w in words], cwd=host, rc=None)
        eq(canary.exists(), True, f"the payload of '{name}' does not work even where it must")
        canary.unlink()
        names.append((f"r{i}", name))
    eq(len(names) >= 42, True, f"{len(names)} attacks")
    # Read by the host's own git nothing of this would be safe, so it is only ever used inside.
    r = box.sh(SHARE + "for d in r*; do (cd $d; git push -q " + f"{up} +HEAD:refs/heads/agent/$d; "
               f"git fetch -q {up}) </dev/null >/dev/null 2>&1; done; echo over",
               *rules(up, "refs/heads/agent/*"), "--protect", "!.git", timeout=140)
    eq(r.out, "over\n", r.err)
    eq(canary.exists(), False, "a payload ran on the host")
    taken = git(box, "for-each-ref", "--format=%(refname:lstrip=3)", "refs/heads/agent", cwd=up).split()
    eq(len(taken) >= 30, True, f"only {taken} got through")


if __name__ == "__main__":
    sys.exit(main())
