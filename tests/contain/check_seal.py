# SPDX-License-Identifier: Apache-2.0
"""PX and CR where TLS is looked into: inspected hosts, secrets on the wire, git rules, and the processes that do it.

own.test is a TLS server of the check itself, at an address of the fake internet's host. The oracle is what it received;
the control is the same request without a sandbox, or without inspection, which arrives."""

import base64
import json
import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "cli"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness import DIRECT, HELD, check, needs_step  # noqa: E402
from internet import OWN4, Internet  # noqa: E402
from seal_upstream import Server, make_certs  # noqa: E402

RUN = ("run",)
SECRET = "sk-proj-0123456789abcdefABCDEF0123456789"
OPEN = ["--allow", "own.test", "--allow", "ok.test", "--allow", f"{OWN4}/32"]
INSPECT = [*OPEN, "--inspect", "own.test"]


class World:
    def __init__(self, c, net, cert):
        self.net = net
        self.dir = c.root / "far"
        self.dir.mkdir(mode=0o755)
        make_certs(self.dir)
        self.server = Server(self.dir, cert, repos=self.dir / "repos", address=OWN4, port=443)
        self.trust = {"SSL_CERT_FILE": str(self.dir / "trust.pem"), "CURL_CA_BUNDLE": str(self.dir / "trust.pem")}

    def seen(self):
        found = list(self.server.seen)
        self.server.seen.clear()
        return found


@contextmanager
def world(c, cert="server"):
    net = Internet()
    try:
        yield World(c, net, cert)
    finally:
        net.close()


# Requests through the tunnel of one name, inside TLS that asks for one: (name of TLS, [bytes...]) for each connection.
CLIENT = r"""
import json, re, socket, ssl, sys
ctx = ssl.create_default_context()
ctx.check_hostname = False
for sni, *requests in json.loads(sys.argv[1]):
    got = []
    try:
        s = socket.create_connection(("127.0.0.1", 3128), 5)
        s.sendall(b"CONNECT own.test:443 HTTP/1.1\r\nHost: own.test:443\r\n\r\n")
        assert b" 200 " in s.recv(4096)
        s = ctx.wrap_socket(s, server_hostname=sni)
        s.settimeout(5)
        for r in requests:
            s.sendall(r.encode("latin-1"))
            text = ""
            while more := s.recv(65536).decode("latin-1"):
                text += more
                head, _, body = text.partition("\r\n\r\n")
                n = re.search(r"Content-Length: (\d+)", head)
                if n and len(body) >= int(n[1]):
                    break
            got.append(text)
    except (OSError, AssertionError) as e:
        got.append("[" + type(e).__name__ + "]")
    print(json.dumps(got))
"""


def talk(c, w, asks, flags):
    c.plant(c.ws / "client.py", CLIENT)
    r = c.sandbox(["/usr/bin/python3", "client.py", json.dumps(asks)], flags=flags, env=w.trust, timeout=15 + 5 * len(asks))
    answers = [json.loads(line) for line in r.text.splitlines()]
    if len(answers) != len(asks):
        c.inconclusive(f"not all was asked: {r}")
    return answers


def get(path, host="own.test", extra="", method="GET"):
    return f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n{extra}\r\n"


def served(c, w, flags=INSPECT):
    a = talk(c, w, [["own.test", get("/served")]], flags)
    c.need_control(" 200 " in a[0][0] and [q.target for q in w.seen()] == ["/served"], f"what is allowed is not served: {a}")


def secret(c, w, *words, name="mine"):
    r = c.vitrine("secret", "set", name, "--env", "MY_KEY", "--host", "own.test", *words, stdin=SECRET, env=w.trust)
    c.need_control(r.ok, f"no secret: {r}")


@check("PX-14", prio="P0", title="inspected: another host inside the connection, first or later", forms=RUN, catches=("seal-host",))
def px14(c):
    with world(c) as w:
        served(c, w)
        evil = get("/evil", "evil.test")
        a = talk(c, w, [["own.test", evil], ["own.test", get("/1"), evil], ["own.test", get("https://evil.test/abs")],
                        ["own.test", get("/two", extra="Host: evil.test\r\n")], ["own.test", get("/port", "own.test:444")]], INSPECT)
        seen = w.seen()
        c.must([q.target for q in seen] == ["/1"] and seen[0].get("host") == "own.test", f"forwarded: {[q.raw for q in seen]}: {a}")
        c.must(all(re.match(r"HTTP/1.1 4(21|00)", x[-1]) for x in a), f"not refused: {a}")
    return HELD


@check("PX-17", prio="P0", title="inspected: TLS that asks for another name", forms=RUN, catches=("seal-sni",))
def px17(c):
    with world(c) as w:
        served(c, w)
        a = talk(c, w, [["evil.test", get("/sni")], ["x.own.test", get("/sub")]], INSPECT)
        c.must(all(x[-1].startswith("[") for x in a), f"a handshake for another name was finished: {a}")
        c.must(not w.seen(), "forwarded")
    return HELD


@check("PX-31", prio="P0", title="inspected: a server that is not who it should be hears nothing", forms=RUN, catches=("seal-verify",))
def px31(c):
    with world(c, "wrong") as w:
        Server(w.dir, "self", address=OWN4, port=8443).seen = w.server.seen
        secret(c, w)
        urls = "https://own.test/secret https://own.test:8443/secret"
        r = c.control(f"for u in {urls}; do curl -k -sS -m 5 $u; done", env=w.trust)
        c.need_control(len(w.seen()) == 2, f"not reached outside either: {r}")
        r = c.sandbox(f"for u in {urls}; do curl -sS -m 5 -w '%{{http_code}}\\n' -H \"X-Api-Key: $MY_KEY\" $u; done; true",
                      flags=[*OPEN, "--secret", "mine"], env=w.trust)
        c.must(not w.seen(), f"sent all the same: {r}")
        c.must(r.text.count("502") == 2, f"not refused: {r}")
    return HELD


PATHS = ["/repos/you/x", "/repos/me/../you/x", "/repos/me/%2e%2e/you/x", "/repos/me/%252e%252e/you/x", "/repos/me/..%2fyou/x",
         "/repos//me/x", "/repos/me/;x", "/repos/me\\..\\you", "/repos/me/.", "/repos", "/repos/mee/x", "/REPOS/me/x"]


@check("PX-32", prio="P2", title="inspected: methods and paths that no rule lists", forms=RUN, catches=("seal-path",))
def px32(c):
    with world(c) as w:
        flags = ["--allow", f"{OWN4}/32", "--allow", "GET own.test/repos/me/**"]
        a = talk(c, w, [["own.test", get("/repos/me/x")]], flags)
        c.need_control([q.target for q in w.seen()] == ["/repos/me/x"], f"what is allowed is not served: {a}")
        a = talk(c, w, [["own.test", get(p)] for p in PATHS] +
                 [["own.test", get("/repos/me/x", method=m, extra="Content-Length: 0\r\n")] for m in ("POST", "PUT", "DELETE", "PATCH")], flags)
        c.must(not w.seen(), f"forwarded: {a}")
        c.must(all(re.match(r"HTTP/1.1 40[03]", x[0]) for x in a), f"not refused: {a}")
    return HELD


def make_repos(c, w):
    for name in ("me/app", "you/app"):
        repo = w.dir / "repos" / f"{name}.git"
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", repo], check=True)
        subprocess.run(["git", "-C", repo, "config", "http.receivepack", "true"], check=True)


def refs(w, name):
    return subprocess.run(["git", "-C", w.dir / "repos" / f"{name}.git", "for-each-ref", "--format=%(refname)"],
                          capture_output=True, text=True).stdout.split()


GIT = ["--allow", f"{OWN4}/32", "--git-fetch", "own.test/me/*", "--git-push", "own.test/me/app:refs/heads/agent/*"]
COMMIT = ("cd /tmp; export GIT_CONFIG_GLOBAL=/tmp/gc; git config --global user.name t; git config --global user.email t@t; "
          "rm -rf a; git init -q a; cd a; git commit -q --allow-empty -m x; ")


@check("PX-35", prio="P0", title="git: only the listed repositories and refs are fetched and pushed", forms=RUN, catches=("seal-git",),
       timeout=60.0)
def px35(c):
    with world(c) as w:
        make_repos(c, w)
        r = c.sandbox(COMMIT + "git push -q https://own.test/me/app.git HEAD:refs/heads/agent/x; "
                      "for r in HEAD:main HEAD:refs/heads/agentx HEAD:refs/tags/v1 :refs/heads/agent/x; do "
                      "git push https://own.test/me/app.git $r; done; git push https://own.test/you/app.git HEAD:refs/heads/agent/x; "
                      "git push https://own.test/me/app.git HEAD:refs/heads/agent/y HEAD:refs/heads/other; "
                      "git ls-remote https://own.test/you/app.git; curl -sS https://own.test/you/app.git/info/refs; true",
                      flags=GIT, env=w.trust, timeout=40)
        c.must(set(refs(w, "me/app")) <= {"refs/heads/agent/x"}, f"pushed: {refs(w, 'me/app')}: {r}")
        c.need_control("refs/heads/agent/x" in refs(w, "me/app"), f"what is listed is not pushed, or was deleted: {r}")
        c.must(refs(w, "you/app") == [], f"pushed: {refs(w, 'you/app')}")
        c.must(not [q.target for q in w.seen() if q.target.startswith("/you/")], f"another repository was asked: {r}")
    return HELD


@check("PX-36", prio="P0", title="git rules: the other pages of that host are closed, to the secret too", forms=RUN, catches=("seal-write",))
def px36(c):
    with world(c) as w:
        secret(c, w)
        ask = "curl -sS -m 5 -o /dev/null -H \"X-Api-Key: $MY_KEY\" https://own.test"
        r = c.sandbox(f"{ask}/read", flags=[*OPEN, "--secret", "mine"], env=w.trust)
        seen = w.seen()
        c.need_control(seen and seen[0].get("x-api-key") == SECRET, f"reading does not work without git rules either: {r}")
        c.sandbox(f"{ask}/read; {ask}/repos/me/app/keys -d x; {ask}/graphql -X DELETE; {ask}/x -X PUT -d y; true",
                  flags=[*GIT, "--secret", "mine"], env=w.trust)
        more = [(q.method, q.target) for q in w.seen()[len(seen):]]
        c.must(not more, f"asked for: {more}")
    return HELD


@check("CR-07", prio="P0", title="a secret reaches its own hosts over TLS, and nothing else", forms=RUN)
def cr07(c):
    with world(c) as w:
        secret(c, w)
        flags = [*OPEN, "--allow", "alias.test", "--secret", "mine"]
        r = c.sandbox("for u in https://own.test/tls http://own.test:443/plain http://ok.test/other http://own.test:80/http; do "
                      "curl -sS -m 4 -H \"X-Api-Key: $MY_KEY\" -u \"me:$MY_KEY\" $u; done; "
                      "curl -sS -m 4 --connect-to ok.test:443:own.test:443 -H \"X-Api-Key: $MY_KEY\" https://ok.test/x; "
                      "env; tr '\\0' '\\n' < /proc/1/environ; true", flags=flags, env=w.trust)
        seen = w.seen()
        c.need_control(seen and seen[0].get("x-api-key") == SECRET, f"its own host does not get it: {r}")
        c.need_control(base64.b64encode(f"me:{SECRET}".encode()).decode() in seen[0].get("authorization"), "not within Basic")
        c.must([q.target for q in seen] == ["/tls"], f"forwarded: {[q.target for q in seen]}")
        far = json.dumps(w.net.hits(kind="http"))
        c.need_control("sk-proj-" in far, f"the other host was not reached: {far[:300]}")
        c.must(SECRET not in far, "another host got it")
        c.must(SECRET not in r.text + r.errtext, f"it is inside: {r}")
        other = c.sandbox("echo $MY_KEY", flags=flags, env=w.trust).text.strip()
        c.sandbox(f"curl -sS -m 4 -H 'X-Api-Key: {other}' https://own.test/foreign", flags=flags, env=w.trust)
        c.must([q.get("x-api-key") for q in w.seen()] == [other], "another sandbox's placeholder opens it")
    return HELD


@check("SB-04", prio="P0", title="what another sandbox holds (placeholder, gate, sockets) opens nothing from here", catches=("seed",))
def sb04(c):
    """There is no token to steal but the placeholder; the gate and the broker know a sandbox by the socket it comes from."""
    with world(c) as w:
        secret(c, w)
        flags = [*OPEN, "--secret", "mine"]
        ws2 = c.mkdir(c.home / "proj2")
        b = c.keeper(flags, env=w.trust, cwd=ws2, command=["sh", "-c", "echo key $MY_KEY; exec sleep 60"])
        c.need_control(b.wait_for("key "), f"B has no placeholder: {b.err!r}")
        theirs = re.search(rb"key (\S+)", b.out)[1].decode()
        use = f"curl -sS -m 8 -o /dev/null -H 'X-Api-Key: {theirs}' https://own.test/"
        c.vitrine("exec", b.name, "--", "sh", "-c", use + "own", env=w.trust, cwd=ws2)
        c.need_control([q.get("x-api-key") for q in w.seen()] == [SECRET], "it does not open anything for B either")
        sockets = " ".join(str(p) for p in c.state.rglob("*") if p.is_socket())
        c.need_control(sockets, "B has no sockets")
        reach = f"for s in {sockets}; do curl -sS -m 3 --unix-socket $s http://own.test/socket && echo reached $s; done; {use}stolen; true"
        for these in (flags, [*OPEN, "--inspect", "own.test"]):
            r = c.sandbox(reach, flags=these, env=w.trust, timeout=40)
            seen = w.seen()
            c.need_control([q.target for q in seen] == ["/stolen"], f"A's own request did not arrive: {r}")
            c.must(seen[0].get("x-api-key") == theirs, "B's placeholder was swapped for A")
            c.must("reached" not in r.text, f"a socket of B's answered: {r}")
            c.must(SECRET not in r.text + r.errtext, f"it is inside: {r}")
        log = c.vitrine("events", "--json").text
        c.need_control("own.test" in log, f"no record: {log[-200:]}")
    return HELD


@check("CR-08", prio="P2", title="a host that sends the secret back is masked", forms=RUN, catches=("seal-mask",))
def cr08(c):
    with world(c) as w:
        secret(c, w)
        r = c.sandbox("for p in echo slow-secret; do curl -sS -m 8 -i -H \"X-Api-Key: $MY_KEY\" -u \"me:$MY_KEY\" https://own.test/$p; "
                      "curl -sS -m 8 --http1.0 -i -H \"X-Api-Key: $MY_KEY\" https://own.test/$p; done; true",
                      flags=[*OPEN, "--secret", "mine"], env=w.trust)
        seen = w.seen()
        c.need_control(len(seen) >= 2 and all(q.get("x-api-key") == SECRET for q in seen), f"not sent: {r}")
        c.must(SECRET not in r.text, f"it came back: {r.text[:300]}")
        c.must(base64.b64encode(f"me:{SECRET}".encode()).decode() not in r.text, "it came back within Basic")
        log = c.vitrine("events", "--json")
        c.must(SECRET not in log.text, "it is in the record")
    return HELD


@check("CR-20", prio="P1", title="a login that is made inside leaves its tokens outside", forms=RUN, catches=("seal-login",))
def cr20(c):
    """The answer of the endpoint, asked from inside; what it gave out opens the door only through the wall."""
    flags = ["--allow", "platform.claude.com", "--allow", "claude.ai", "--allow", f"{OWN4}/32", "--secret", "claude-login"]
    token = "sk-ant-oat01-fresh-" + "Cd4" * 12
    ask = ("curl -sS -m 8 -H 'Content-Type: application/json' -d '{}' https://platform.claude.com/v1/oauth/token | tee answer; "
           "t=$(grep -o 'sk-ant-oat01-[^\"]*' answer); curl -sS -m 8 -o /dev/null -H \"Authorization: Bearer $t\" https://claude.ai/use")
    with world(c) as w:
        r = c.host(["sh", "-c", ask], env={**os.environ, **w.trust})
        seen = w.seen()
        c.need_control(token in r.text and seen[-1].get("authorization") == f"Bearer {token}", f"outside there is no token: {r}")
        r = c.sandbox(ask, flags=flags, env=w.trust)
        seen = w.seen()
        c.need_control(seen and seen[0].target == "/v1/oauth/token", f"the endpoint was not asked: {r}")
        c.must(token not in r.text + (c.ws / "answer").read_text(), f"the token is inside: {r.text[:300]}")
        c.must(seen[-1].get("authorization") == f"Bearer {token}", f"what stands for it does not work: {r}")
        c.must(token not in c.vitrine("events", "--json").text, "it is in the record")
    return HELD


def gate_processes():
    """Of the gate in this network: role -> folder in /proc."""
    here, found = os.stat("/proc/self/ns/net").st_ino, {}
    for d in Path("/proc").glob("[0-9]*"):
        try:
            words = (d / "cmdline").read_bytes().split(b"\0")
            if words[0] in (b"vitrine-gate", b"vitrine-seal") and os.stat(d / "ns/net").st_ino == here:
                found[(words[1] or words[0]).decode()] = d
        except OSError:
            pass
    return found


@check("PX-37", prio="P0", title="front, dial and seal are locked in and leave no trace", forms=RUN, catches=("gate-confine",))
def px37(c):
    with world(c) as w:
        p = c.start("curl -sS -m 5 -o /dev/null https://own.test/x && echo up; sleep 20", flags=INSPECT, env=w.trust)
        c.need_control(p.wait_for("up", 15), f"not served: {p.err[-300:]}")
        found = gate_processes()
        c.need_control(sorted(found) == ["dial", "front", "vitrine-seal"], f"not all are there: {sorted(found)}")
        for role, d in found.items():
            status = (d / "status").read_text()
            word = {k: re.search(rf"^{k}:\s+(\S+)", status, re.M)[1] for k in ("Seccomp", "NoNewPrivs")}
            c.must(word == {"Seccomp": "2", "NoNewPrivs": "1"}, f"{role}: {word}")
            c.must(os.stat(d / "mem").st_uid == 0, f"{role} can be looked into")
            files = [os.readlink(f) for f in (d / "fd").iterdir()]
            c.must(all(re.match(r"socket:|/dev/null|anon_inode:|pipe:", f) for f in files), f"{role} holds {files}")
        core = re.search(r"Max core file size\s+(\S+)", (found["vitrine-seal"] / "limits").read_text())[1]
        c.must(core == "0", f"seal may leave a core: {core}")
        p.stop()
    return HELD


# Eight requests in flight when the last process inside ends: what was sent on is on record, the rest never left.
LAST = r"""
import os, socket, ssl
ctx = ssl.create_default_context()
held = [ctx.wrap_socket(socket.create_connection(("own.test", 443), 20), server_hostname="own.test") for i in range(8)]
for i, s in enumerate(held):
    s.sendall(b"GET /last/%d HTTP/1.1\r\nHost: own.test\r\n\r\n" % i)
held[0].recv(1)
os._exit(0)
"""


@check("PX-38", prio="P1", title="inspected: what a run asked for in its last instant is on record", forms=RUN, catches=("seal-last",), timeout=90.0)
def px38(c):
    needs_step(c, DIRECT)
    with world(c) as w:
        c.plant(c.ws / "last.py", LAST)
        for i in range(4):
            r = c.sandbox(["/usr/bin/python3", "last.py"], flags=["--name", f"last{i}", *INSPECT], env=w.trust, timeout=40)
            log = [json.loads(line) for line in c.vitrine("net", "log", "--json", f"last{i}").text.splitlines()]
            told = {e["data"]["request"] for e in log if e["type"] == "net.request"}
            time.sleep(0.1)  # for what was on its way to the server
            asked = {q.target for q in w.seen()}
            c.need_control(len(asked) > 0, f"nothing was asked: {r}")
            c.must(asked <= told, f"asked, and not on record: {sorted(asked - told)}")
    return HELD


@check("CR-05", prio="P1", title="credential helpers of the host are not asked", forms=RUN)
def cr05(c):
    word = c.uuid()
    log = c.out / "asked"
    helper = c.plant(c.home / "bin" / "helper", f"#!/bin/sh\necho $@ >> {log}\necho password={word}\n")
    os.chmod(c.home / "bin" / "helper", 0o755)
    c.plant(c.home / ".gitconfig", f"[credential]\n\thelper = {c.home}/bin/helper\n")
    c.plant(c.home / ".git-credentials", f"https://me:{word}@own.test\n")
    c.plant(c.home / ".config" / "gh" / "hosts.yml", f"github.com:\n  oauth_token: {word}\n")
    script = ("printf 'protocol=https\\nhost=own.test\\n\\n' | GIT_TERMINAL_PROMPT=0 git credential fill; gh auth token; "
              f"cat ~/.git-credentials ~/.config/gh/hosts.yml; {c.home}/bin/helper get; "
              "secret-tool search --all application vitrine; true")
    r = c.control(script)
    c.need_control(word in r.text and log.exists(), f"outside too it does not work: {r} {helper}")
    with c.host_edit():
        log.unlink()
    r = c.sandbox(script, flags=["--allow", "own.test"])
    c.must(not c.leaks(r, word), f"a credential came out: {r}")
    c.must(not log.exists(), "the helper ran")
    return HELD
