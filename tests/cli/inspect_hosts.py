#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Inspected hosts, secrets and git rules with the whole program: policy, keeper, gate and seal.

own.test is a TLS server of this test at a public address of the fake internet's host; what it received is the
evidence. Without inspection the same requests arrive untouched, so each refusal is shown to be the inspection's."""

import base64
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness import Skip, below, describe, eq, has, has_not, lasting, main, refused, soon, test  # noqa: E402
from internet import OWN4  # noqa: E402
from own_server import OPEN, SECRET, there  # noqa: E402
from seal_upstream import RAW_KEY  # noqa: E402

def curl(box, w, *args, flags=OPEN + ("--inspect", "own.test"), **kw):
    return box.run(*flags, "--", "curl", "-sS", "-m", "8", *args, env=w.trust, **kw)


@test
def uninspected_is_untouched(box):
    w = there()
    r = curl(box, w, "-k", "-v", "https://own.test/a", flags=OPEN)
    has(r.err, "CN=Test Root")
    eq([q.target for q in w.server.seen], ["/a"])


@test
def the_callers_own_ca(box):
    """Certificates that the caller's variables name count inside: where nothing is inspected, and in the bundle where something is."""
    w = there()
    ca = box.write("../mine.pem", Path(w.trust["SSL_CERT_FILE"]).read_text())
    for var in ("SSL_CERT_FILE", "CURL_CA_BUNDLE"):
        r = box.sh("curl -sS https://own.test/c", *OPEN, env={"SSL_CERT_FILE": "", "CURL_CA_BUNDLE": "", var: str(ca)})
        eq((r.rc, r.err), (0, ""), var)
    eq([q.target for q in w.server.seen], ["/c", "/c"])
    ask = "python3 -c \"import os, ssl; print(len(ssl.create_default_context(cafile=os.environ['REQUESTS_CA_BUNDLE']).get_ca_certs()))\""
    one = int(box.ok(ask, *OPEN, env={"REQUESTS_CA_BUNDLE": str(ca)}))
    env = w.trust | {"REQUESTS_CA_BUNDLE": "", "NODE_EXTRA_CA_CERTS": ""}
    bundle = "grep -c BEGIN $SSL_CERT_FILE"
    without = int(box.ok(bundle, *OPEN, "--inspect", "own.test", env=env))
    eq(int(box.ok(bundle, *OPEN, "--inspect", "own.test", env=env | {"NODE_EXTRA_CA_CERTS": str(ca)})), without + one)


@test
def a_host_can_be_left_out(box):
    """inspect.never: its TLS passes untouched, also where everything else is inspected; a rule that would need more is refused."""
    w = there()
    policy = box.dir / "never.jsonc"
    policy.write_text(json.dumps({"network": {"mode": "gate", "allow": ["own.test", "claude.ai", f"{OWN4}/32"]},
                                  "inspect": {"hosts": ["own.test", "claude.ai"], "never": ["own.test"]}}))
    for url, issuer in (("https://own.test/n", "CN=Test Root"), ("https://claude.ai/n", "Vitrine sandbox CA")):
        r = curl(box, w, "-k", "-v", url, flags=("--policy", policy))
        has(r.err, issuer)
    refused(box.run("--policy", policy, "--allow", "GET own.test/x", "--", "true", env=w.trust), "own.test", "never")
    p = box.start("run", "--policy", policy, "--name", "nev", "--", "sh", "-c", SLAVE, stdin=subprocess.PIPE, env=w.trust)
    eq(say(p, "ca"), "2")
    refused(box.cli("net", "allow", "nev", "GET own.test/x"), "inspect.never")
    assert not (box.state / "sandboxes/nev/net").exists() or "own.test" not in (box.state / "sandboxes/nev/net").read_text()
    end(box, p)
    box.cli("rm", "-f", "nev")


@test
def inspected_is_trusted_inside_only(box):
    w = there()
    r = curl(box, w, "-v", "https://own.test/echo")
    has(r.out, "GET /echo HTTP/1.1")
    has(r.err, "Vitrine sandbox CA")
    r = box.sh("cat $SSL_CERT_FILE /etc/ssl/certs/ca-certificates.crt | grep -c BEGIN; test ! -w $SSL_CERT_FILE; "
               "python3 -c \"import urllib.request as u; print(u.urlopen('https://own.test/py').status)\"; "
               "cat /etc/vitrine/ca-bundle.pem | wc -l", *OPEN, "--inspect", "own.test", env=w.trust)
    has(r.out, "4\n200\n")
    has_not(Path("/etc/ssl/certs/ca-certificates.crt").read_text()[-3000:], "Vitrine")


GET_JAVA = """public class Get { public static void main(String[] a) throws Exception {
    System.out.println(new String(new java.net.URL("https://own.test/java").openStream().readAllBytes())); } }"""


@test(who=("user",), timeout=60)
def trusted_by_java(box):
    box.needs("java", "javac")
    w = there()
    box.write("Get.java", GET_JAVA)
    box.host("javac", "Get.java")
    r = box.run(*OPEN, "--inspect", "own.test", "--", "java", "-cp", ".", "Get", env=w.trust, timeout=50)
    has(r.out + r.err, "size 0")
    eq([q.target for q in w.server.seen], ["/java"], r.err)


@test(timeout=30)
def trusted_by_go(box):
    """The go command itself asks, with and without knowing of a proxy."""
    box.needs("go")
    w = there()
    for proxy in ([], ["-e", "HTTPS_PROXY=", "-e", "https_proxy="]):
        box.run(*OPEN, "--inspect", "own.test", *proxy, "-e", "GOPROXY=https://own.test/go", "-e", "GOFLAGS=-mod=mod", "-e", "GONOSUMDB=*",
                "--", "go", "list", "-m", "-versions", "example.org/x", env=w.trust)
        eq([q.target for q in w.server.seen], ["/go/example.org/x/@v/list"])
        w.server.seen.clear()


@test(timeout=30)
def trusted_by_cargo(box):
    box.needs("cargo")
    w = there()
    r = box.run(*OPEN, "--inspect", "own.test", "--", "/usr/bin/cargo", "search", "x", "--index", "https://own.test/index.git", env=w.trust)
    has(str([q.target for q in w.server.seen]) + r.err, "/index.git/info/refs")
    assert w.server.seen, r.err


@test
def without_proxy_variables(box):
    w = there()
    r = curl(box, w, "--noproxy", "*", "https://own.test/echo", "-v")
    has(r.out, "GET /echo")
    has(r.err, "Vitrine sandbox CA")
    r = curl(box, w, "--noproxy", "*", "http://own.test:443/plain")
    assert r.rc != 0
    r = curl(box, w, "http://own.test:443/plain", "-w", "%{http_code}")
    has(r.out, "403", "https")
    eq([q.target for q in w.server.seen], ["/echo"])


@test
def paths_are_judged(box):
    w = there()
    flags = ("--allow", f"{OWN4}/32", "--allow", "GET own.test/repos/me/**")
    eq(curl(box, w, "https://own.test/repos/me/x", flags=flags).out, "size 0\n")
    r = curl(box, w, "https://own.test/repos/you/x", flags=flags)
    has(r.out, "vitrine:", "no rule allows it", "GET own.test/repos/you/x")
    r = curl(box, w, "-d", "x", "https://own.test/repos/me/x", flags=flags)
    has(r.out, "no rule allows it")
    eq([q.target for q in w.server.seen], ["/repos/me/x"])


@test
def paths_change_while_it_runs(box):
    w = there()
    flags = ("--name", "live", "--allow", f"{OWN4}/32", "--allow", "GET own.test/repos/me/**")
    p = box.start("run", *flags, "--", "sh", "-c", SLAVE, stdin=subprocess.PIPE, env=w.trust)
    eq((say(p, "repos/me/x"), say(p, "other")), ("200", "403"))
    eq(box.cli("net", "allow", "live", "GET own.test/other").rc, 0)
    soon(lambda: say(p, "other") == "200", "the new rule")
    eq(box.cli("net", "deny", "live", "GET own.test/repos/me/secret").rc, 0)
    soon(lambda: say(p, "repos/me/secret") == "403", "the refusal")
    eq(say(p, "repos/me/x"), "200")
    refused(box.cli("net", "allow", "live", "get own.test/x"), "capitals")
    eq(box.cli("net", "allow", "live", "GET own.test/one", "GET own.test/two").rc, 0, "two at once")
    r = box.cli("net", "rules", "live")
    has(r.out, "inspect  own.test", "allow    GET own.test/repos/me/**", "allow    GET own.test/two", "deny     GET own.test/repos/me/secret")
    end(box, p)
    eq(sorted(box.cli("net", "rules", "live", env=w.trust).out.splitlines()), sorted(r.out.splitlines()), "of one that does not run")
    has((box.state / "sandboxes/live/net").read_text(), "--allow=GET own.test/other", "--deny=GET own.test/repos/me/secret")
    box.cli("rm", "-f", "live")


@test
def a_host_is_inspected_while_it_runs(box):
    """A path rule for a host that was not inspected: from then on it is, also for who is connected already."""
    w = there()
    for was_used in (False, True):  # seal sleeps, or serves
        flags = ("--name", "late", "--allow", f"{OWN4}/32", "--allow", "ok.test", "--allow", "claude.ai", "--inspect", "own.test")
        p = box.start("run", *flags, "--allow", "own.test", "--", "sh", "-c", LATE, stdin=subprocess.PIPE, env=w.trust)
        if was_used:
            eq(say(p, "own.test/x"), "200")
        eq(say(p, "claude.ai/other"), "200", "before the rule")
        eq(box.cli("net", "allow", "late", "GET claude.ai/only/**").rc, 0)
        soon(lambda: say(p, "claude.ai/other") == "403", "the rule")
        eq(say(p, "claude.ai/only/x"), "200")
        eq(say(p, "chatgpt.com/a"), "000", "a host that no rule names")
        eq(box.cli("net", "allow", "late", "GET chatgpt.com/a").rc, 0)
        soon(lambda: say(p, "chatgpt.com/a") == "200", "a host that was closed before")
        eq(say(p, "chatgpt.com/b"), "403")
        end(box, p)
        box.cli("rm", "-f", "late")
    p = box.start("run", "--name", "late", "--allow", "claude.ai", "--allow", f"{OWN4}/32", "--", "sh", "-c",
                  "echo up; " + LATE, stdin=subprocess.PIPE, env=w.trust)
    eq(p.stdout.readline(), b"up\n")
    r = box.cli("net", "allow", "late", "GET claude.ai/only/**")
    has(r.err, "is kept", "do not trust the sandbox's CA", "when it is started again")
    end(box, p)
    box.cli("rm", "-f", "late")


@test
def an_uninspected_connection_ends_with_the_rule(box):
    w = there()
    script = ("import ssl, socket, sys\n"
              "c = ssl.create_default_context()\n"
              "s = c.wrap_socket(socket.create_connection(('claude.ai', 443), 8), server_hostname='claude.ai')\n"
              "def ask(p):\n"
              "    s.sendall(b'GET /%s HTTP/1.1\\r\\nHost: claude.ai\\r\\n\\r\\n' % p)\n"
              "    return s.recv(4096).split(b' ')[1]\n"
              "print(ask(b'a').decode(), flush=True)\n"
              "sys.stdin.readline()\n"
              "try: print('open', ask(b'b'), flush=True)\n"
              "except Exception: print('closed', flush=True)\n")
    p = box.start("run", "--name", "cut", "--allow", f"{OWN4}/32", "--allow", "claude.ai", "--inspect", "own.test", "--", "python3",
                  "-c", script, stdin=subprocess.PIPE, env=w.trust)
    eq(p.stdout.readline(), b"200\n")
    eq(box.cli("net", "allow", "cut", "GET claude.ai/a").rc, 0)
    soon(lambda: "no longer allowed" in box.cli("net", "log", "cut").out, "the end of the connection")
    p.stdin.write(b"\n")
    p.stdin.flush()
    eq(p.stdout.readline(), b"closed\n")
    eq([q.target for q in w.server.seen], ["/a"])
    end(box, p)
    box.cli("rm", "-f", "cut")


@test
def secret_is_a_placeholder_inside(box):
    w = there()
    r = box.cli("secret", "set", "mine", "--env", "MY_KEY", "--host", "own.test", input=SECRET.encode() + b"\n")
    eq(r.rc, 0, r.err)
    r = box.sh("env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'; "
               "curl -sS -H \"X-Api-Key: $MY_KEY\" https://own.test/echo -i", *OPEN, "--secret", "mine", env=w.trust)
    q = w.server.seen[-1]
    eq(q.get("x-api-key"), SECRET, "what the server got")
    has(r.out, "MY_KEY=sk-proj-", "X-Api-Key: sk-proj-")
    has_not(r.out + r.err, SECRET)
    has_not(box.cli("secret", "ls", "--json").out, SECRET)
    has_not(box.cli("explain", *OPEN, "--secret", "mine", "--", "true").out, SECRET)
    eq(box.cli("secret", "rm", "mine").rc, 0)
    refused(box.run(*OPEN, "--secret", "mine", "--", "true"), "vitrine secret set mine", rc=125)


@test
def placeholders_differ_between_sandboxes(box):
    w = there()
    box.cli("secret", "set", "mine", "--env", "MY_KEY", "--host", "own.test", input=SECRET.encode())
    runs = [box.sh("echo $MY_KEY", *OPEN, "--secret", "mine", *name, env=w.trust)
            for name in (("--name", "one", "--rm"), ("--name", "one", "--rm"), ("--name", "two", "--rm"), ())]
    eq([r.rc for r in runs], [0, 0, 0, 0], str([r.err for r in runs]))
    seen = {r.out for r in runs}
    eq(len(seen), 3, "the same for a name, another for every other")
    other = seen.pop().strip()
    r = box.sh(f"curl -sS -H 'X-Api-Key: {other}' https://own.test/echo", *OPEN, "--secret", "mine", env=w.trust)
    eq(w.server.seen[-1].get("x-api-key"), other, "another sandbox's placeholder opens nothing")
    has_not(r.out, SECRET)


@test
def secrets_from_elsewhere(box):
    w = there()
    box.write("key.txt", SECRET + "\n")
    for n, source in enumerate((["--from-file", str(box.ws / "key.txt")], ["--from-env", "HOST_KEY"],
                                ["--from-command", f"echo {SECRET}"])):
        env = {**w.trust, "HOST_KEY": SECRET}
        eq(box.cli("secret", "set", f"s{n}", "--env", "K", "--host", "own.test", *source, env=env).rc, 0)
        r = box.sh("curl -sS -H \"X-Api-Key: $K\" https://own.test/echo", *OPEN, "--secret", f"s{n}", env=env)
        eq(r.rc, 0, r.err)
        eq(w.server.seen[-1].get("x-api-key"), SECRET, str(source))
    refused(box.run(*OPEN, "--secret", "s1", "--", "true", env=w.trust), "HOST_KEY is not set", rc=125)


KEYRING = r"""
printf pw | gnome-keyring-daemon --foreground --unlock --components=secrets >/dev/null & daemon=$!
trap 'kill $daemon; wait $daemon' EXIT
for i in $(seq 100); do secret-tool search application none >/dev/null 2>&1 && break; sleep 0.05; done
printf %s "$VALUE" | "$V" secret set mine --env K --host own.test
"$V" secret ls
secret-tool lookup application vitrine name mine; echo
"$V" run $FLAGS --secret mine -- sh -c 'curl -sS -o /dev/null -H "X-Api-Key: $K" https://own.test/ring'
"$V" secret rm mine
secret-tool lookup application vitrine name mine || echo gone
"""


@test(timeout=30)
def secret_in_the_keyring(box):
    box.needs("dbus-run-session", "gnome-keyring-daemon", "secret-tool")
    w = there()
    (box.home / "run").mkdir(mode=0o700)
    box.own(box.home / "run")
    r = box.finish(box.popen(["dbus-run-session", "--", "bash", "-c", KEYRING], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, env={**w.trust, "V": str(box.program), "VALUE": SECRET, "FLAGS": " ".join(OPEN),
                                                          "XDG_RUNTIME_DIR": str(box.home / "run")}), timeout=25)
    has(r.out + r.err, "kept in the desktop keyring", "keyring", SECRET + "\n", "gone\n")
    eq([q.get("x-api-key") for q in w.server.seen], [SECRET], r.err)
    for p in box.state.rglob("*"):
        if p.is_file():
            has_not(p.read_bytes().decode("latin-1"), SECRET)


def make_repos(w):
    if not w.repos.exists():
        for name in ("me/app", "you/app"):
            repo = w.repos / f"{name}.git"
            subprocess.run(["git", "init", "-q", "--bare", "-b", "main", repo], check=True)
            subprocess.run(["git", "-C", repo, "config", "http.receivepack", "true"], check=True)


@test(timeout=40)
def git_is_judged(box):
    box.needs("git")
    w = there()
    make_repos(w)
    flags = ("--allow", f"{OWN4}/32", "--git-fetch", "own.test/me/*",
             "--git-push", "own.test/me/app:refs/heads/agent/*")
    branch = f"agent/{box.who}"
    r = box.sh("cd /tmp; export GIT_CONFIG_GLOBAL=/tmp/gc; git config --global user.name t; "
               "git config --global user.email t@t; git clone -q https://own.test/me/app.git a; cd a; "
               f"git commit -q --allow-empty -m {box.who}; git push -q origin HEAD:refs/heads/{branch} && echo pushed; "
               "git push origin HEAD:main; git ls-remote https://own.test/you/app.git",
               *flags, env=w.trust, timeout=30)
    has(r.out + r.err, "pushed")
    has(r.err, "remote: vitrine: creating refs/heads/main", "! [remote rejected]", "remote: vitrine:",
        "fetching own.test/you/app is not listed")
    refs = subprocess.run(["git", "-C", w.repos / "me/app.git", "for-each-ref", "--format=%(refname)"],
                          capture_output=True, text=True).stdout.split()
    assert f"refs/heads/{branch}" in refs and "refs/heads/main" not in refs, refs
    r = box.sh("curl -sS -m 3 telnet://own.test:22", *flags, env=w.trust)
    assert r.rc != 0


def seals(p):
    return [c for c in below(p.pid) + below(os.getpid()) if describe(c).startswith("vitrine-seal")]


# Inside: a line in, a line out. "ca" counts certificates, everything else is a path to be fetched with $K.
SLAVE = r"""
while read -r word; do
    if test "$word" = ca; then grep -c BEGIN "$SSL_CERT_FILE"
    else curl -sS -m 8 -o /dev/null -w '%{http_code}\n' -H "X-Api-Key: $K" "https://own.test/$word" || echo failed; fi
done"""


LATE = "while read -r word; do curl -sS -m 8 -o /dev/null -w '%{http_code}\\n' \"https://$word\"; done"


def slave(box, w, *flags, **env):
    return box.start("run", *OPEN, "--inspect", "own.test", *flags, "--", "sh", "-c", SLAVE, stdin=subprocess.PIPE,
                     env={**w.trust, **env})


def say(p, word):
    p.stdin.write(word.encode() + b"\n")
    p.stdin.flush()
    return p.stdout.readline().decode().strip()


def end(box, p):
    p.stdin.close()
    p.stdin = None
    return box.finish(p).err


@test
def seal_starts_when_it_is_needed(box):
    w = there()
    p = slave(box, w)
    soon(lambda: any("vitrine-gate" in describe(c) for c in below(os.getpid())), "the gate")
    eq(seals(p), [], "nobody has needed it")
    eq(say(p, "ca"), "2", "whoever opens the bundle finds the CA in it")
    eq(len(set(seals(p))), 1)
    eq(say(p, "x"), "200")
    end(box, p)
    p = slave(box, w)
    eq(say(p, "y"), "200", "the first connection finds it too")
    end(box, p)
    eq([q.target for q in w.server.seen], ["/x", "/y"])


@test
def seal_is_started_once_more(box):
    w = there()
    p = slave(box, w)
    eq(say(p, "one"), "200")
    for word in ("200", "failed"):
        os.kill(seals(p)[0], 9)
        soon(lambda: say(p, "again") == word, f"after its end: {word}")
    has(end(box, p), "vitrine-seal ended and was started again", "inspected hosts are closed")


@test
def values_are_read_anew(box):
    w = there()
    key = box.write("key.txt", SECRET + "\n")
    other = SECRET.replace("0123", "9876") + "x"
    box.write("count.sh", f"echo x >> {box.ws}/count; test $(wc -l < {box.ws}/count) -gt 2 && echo {other} || echo {SECRET}\n")
    for n, source in enumerate((["--from-file", str(key)], ["--from-command", f"sh {box.ws}/count.sh", "--cache", "1s"])):
        eq(box.cli("secret", "set", f"r{n}", "--env", "K", "--host", "own.test", *source).rc, 0)
        p = slave(box, w, "--secret", f"r{n}")
        eq(say(p, "first"), "200")
        eq(w.server.seen[-1].get("x-api-key"), SECRET, str(source))
        key.write_text(other + "\n")
        soon(lambda: say(p, "next") == "200" and w.server.seen[-1].get("x-api-key") == other, f"the new value {source}", 8)
        has_not(end(box, p), other)


def jwt(**claims):
    return ".".join(base64.urlsafe_b64encode(p).decode().rstrip("=") for p in (
        b'{"alg":"none"}', json.dumps(claims).encode(), os.urandom(32)))


def put_login(box, rel, value):
    p = box.home / rel
    p.parent.mkdir(exist_ok=True)
    new = p.with_suffix(".new")
    new.write_text(json.dumps(value))
    box.own(p.parent)
    new.rename(p)


@test
def login_of_the_host(box):
    """A subscription: the host's token store is the source, inside lie placeholders, and a refresh outside is followed."""
    w = there()
    tokens = [{k: f"sk-ant-{k}-{n}-" + "Ab3" * 12 for k in ("oat01", "ort01")} for n in range(2)]
    put = [lambda t=t: put_login(box, ".claude/.credentials.json", {"claudeAiOauth": {
        "accessToken": t["oat01"], "refreshToken": t["ort01"], "expiresAt": 4000000000000, "scopes": ["user:inference"]}})
        for t in tokens]
    flags = ("--allow", "claude.ai", "--allow", f"{OWN4}/32")
    put[0]()
    script = ("echo $CLAUDE_CODE_OAUTH_TOKEN; cat ~/.claude/.credentials.json; while read x; do "
              "curl -sS -m 8 -H \"Authorization: Bearer $CLAUDE_CODE_OAUTH_TOKEN\" https://claude.ai/echo; echo; echo END; done")
    p = box.start("run", *flags, "--secret", "claude-login", "--", "sh", "-c", script, stdin=subprocess.PIPE, env=w.trust)
    holder, store = p.stdout.readline().decode().strip(), json.loads(p.stdout.readline())["claudeAiOauth"]
    eq(store["accessToken"], holder)
    eq(holder[:13], "sk-ant-oat01-")
    eq(store["scopes"], ["user:inference"])
    assert store["expiresAt"] > 4e12 and store["refreshToken"] != tokens[0]["ort01"], store

    def ask():
        p.stdin.write(b"\n")
        p.stdin.flush()
        while (line := p.stdout.readline().decode().strip()) != "END":
            has_not(line, tokens[0]["oat01"], tokens[1]["oat01"])
            assert p.poll() is None or line
        return w.server.seen[-1].get("authorization")

    eq(ask(), f"Bearer {tokens[0]['oat01']}")
    put[1]()
    soon(lambda: ask() == f"Bearer {tokens[1]['oat01']}", "the refreshed token", 6)
    end(box, p)
    refused(box.cli("secret", "rm", "claude-login"), "the agent's own", rc=125)
    has(box.cli("secret", "ls").out, "claude-login        login     CLAUDE_CODE_OAUTH_TOKEN")
    listed = json.loads(box.cli("secret", "ls", "--json").out)["secrets"]
    eq([(s["name"], s["source"]) for s in listed], [("claude-login", "login")])


@test
def login_is_renewed_outside(box):
    w = there()
    old = {"accessToken": "sk-ant-oat01-old-" + "Ab3" * 12, "refreshToken": "sk-ant-ort01-old-" + "Ab3" * 12}
    put_login(box, ".claude/.credentials.json", {"claudeAiOauth": {**old, "expiresAt": 1700000000000, "scopes": ["a"]}, "other": [1, None]})
    r = box.sh("cat ~/.claude/.credentials.json; curl -sS -m 8 -o /dev/null -H \"Authorization: Bearer $CLAUDE_CODE_OAUTH_TOKEN\" https://claude.ai/x",
               "--allow", "claude.ai", "--allow", f"{OWN4}/32", "--secret", "claude-login", env={**w.trust, "CURL_CA_BUNDLE": w.trust["SSL_CERT_FILE"]})
    eq(r.rc, 0, r.err)
    eq(w.server.renewed["refresh_token"], old["refreshToken"])
    eq([(q.target, q.get("authorization")) for q in w.server.seen if q.method == "GET"],
       [("/x", "Bearer sk-ant-oat01-fresh-" + "Cd4" * 12)])
    has_not(r.out, "-fresh-", "Ab3Ab3")
    p = box.home / ".claude/.credentials.json"
    store = json.loads(p.read_text())
    eq((store["claudeAiOauth"]["refreshToken"], store["claudeAiOauth"]["scopes"], store["other"]),
       ("sk-ant-ort01-fresh-" + "Ef5" * 12, ["a"], [1, None]))
    eq(p.stat().st_mode & 0o777, 0o600)
    w.server.seen.clear()
    put_login(box, ".codex/auth.json", {"tokens": {"id_token": jwt(a=1), "access_token": jwt(exp=1700000000), "refresh_token": "rt-old"}})
    r = box.sh("true", "--allow", "chatgpt.com", "--allow", f"{OWN4}/32", "--secret", "codex-login",
               env={**w.trust, "CURL_CA_BUNDLE": w.trust["SSL_CERT_FILE"]})
    eq((r.rc, w.server.renewed["refresh_token"]), (0, "rt-old"), r.err)
    has((box.home / ".codex/auth.json").read_text(), "sk-ant-oat01-fresh-")
    put_login(box, ".gemini/oauth_creds.json", {"access_token": "ya29.old" + "Ab3" * 12, "refresh_token": "1//0old/+" + "Ab3" * 12,
                                                "expiry_date": 1700000000000, "token_type": "Bearer"})
    r = box.sh("cat ~/.gemini/oauth_creds.json", "--allow", "cloudcode-pa.googleapis.com", "--allow", f"{OWN4}/32", "--secret", "gemini-login",
               env={**w.trust, "CURL_CA_BUNDLE": w.trust["SSL_CERT_FILE"]})
    eq((r.rc, w.server.renewed["refresh_token"], w.server.renewed["grant_type"]), (0, "1//0old/+" + "Ab3" * 12, "refresh_token"), r.err)
    has(w.server.renewed["client_id"], ".apps.googleusercontent.com")
    has_not(r.out, "-fresh-", "Ab3Ab3")
    store = json.loads((box.home / ".gemini/oauth_creds.json").read_text())
    eq((store["access_token"], store["token_type"]), ("sk-ant-oat01-fresh-" + "Cd4" * 12, "Bearer"))
    assert store["expiry_date"] > 1700000000000


ENDPOINTS = {"claude-login": ("platform.claude.com", "/v1/oauth/token", "claude.ai"),
             "codex-login": ("auth.openai.com", "/oauth/token", "chatgpt.com"),
             "gemini-login": ("oauth2.googleapis.com", "/token", "cloudcode-pa.googleapis.com"),
             "copilot-login": ("github.com", "/login/oauth/access_token", "api.githubcopilot.com")}

# Plays an agent: logs in, uses what it was given, refreshes it, uses that. Prints what it was given.
AGENT = """
import json, subprocess, sys
def post(body, kind):
    return json.loads(subprocess.run(["curl", "-sS", "-m", "8", "-H", "Content-Type: " + kind, "--data-binary", "@-", sys.argv[1]],
                      input=body, capture_output=True, text=True, check=True).stdout)
def use(t):
    subprocess.run(["curl", "-sS", "-m", "8", "-o", "/dev/null", "-H", "Authorization: Bearer " + t, sys.argv[2]], check=True)
if sys.argv[3] == "form":
    from urllib.parse import urlencode
    ask = lambda **q: post(urlencode(q), "application/x-www-form-urlencoded")
else:
    ask = lambda **q: post(json.dumps(q), "application/json")
first = ask(grant_type="authorization_code", code="c0de", chunked="1")
use(first["access_token"])
again = ask(grant_type="refresh_token", refresh_token=first["refresh_token"])
use(again["access_token"])
print(json.dumps([first, again]))
"""


def log_in_inside(box, w, name, given, form):
    door, path, host = ENDPOINTS[name]
    w.server.gives = given
    try:
        r = box.run("--allow", door, "--allow", host, "--allow", f"{OWN4}/32", "--secret", name, "--", "python3", "-c", AGENT,
                    f"https://{door}{path}", f"https://{host}/use", form, env=w.trust)
    finally:
        w.server.gives = None
    eq(r.rc, 0, r.err)
    return r, json.loads(r.out)


@test(timeout=60)
def login_made_inside_is_kept_outside(box):
    """The tokens never come inside; what comes instead works there, and the next sandbox is logged in."""
    w = there()
    kept = lambda name: box.state / "secrets" / f"{name}.login"
    for name, given, form in (
            ("claude-login", {"access_token": "sk-ant-oat01-" + "Gh6" * 30, "refresh_token": "sk-ant-ort01-" + "Jk7" * 30,
                              "expires_in": 28800, "scope": "user:inference user:profile", "account": {"uuid": "u-1"}}, "json"),
            ("codex-login", {"id_token": jwt(**{"https://api.openai.com/auth": {"chatgpt_account_id": "acc-9"}}),
                             "access_token": jwt(exp=4000000000), "refresh_token": "rt_" + "Lm8" * 20}, "json"),
            ("gemini-login", {"access_token": "ya29." + "Np9" * 30, "refresh_token": "1//0" + "Qr1" * 30, "expires_in": 3599,
                              "scope": "a b", "id_token": jwt(email="me@own.test")}, "form"),
            ("copilot-login", {"access_token": "gho_" + "St2" * 12, "refresh_token": "ghr_" + "Uv3" * 12, "token_type": "bearer",
                               "scope": "repo,gist"}, "form")):
        w.server.seen.clear()
        r, (first, again) = log_in_inside(box, w, name, given, form)
        real = [given[k] for k in ("access_token", "refresh_token", "id_token") if k in given]
        has_not(r.out + r.err, *real)
        for k in ("access_token", "refresh_token"):
            eq(len(first[k]), len(given[k]), k)
        eq(first.get("account"), given.get("account"), "the rest of the answer")
        eq([q.get("authorization") for q in w.server.seen if q.target == "/use"], [f"Bearer {given['access_token']}"] * 2)
        eq(w.server.renewed["refresh_token"], given["refresh_token"], "the real one refreshes")
        has(r.err, f"'{name}' is kept")
        eq(kept(name).stat().st_mode & 0o777, 0o600)
        has(kept(name).read_text(), *real)
        host = ENDPOINTS[name][2]
        file = {"claude-login": ".claude/.credentials.json", "codex-login": ".codex/auth.json", "gemini-login": ".gemini/oauth_creds.json"}.get(name)
        assert not file or not (box.home / file).exists(), "the host's own store is not ours to write"
        w.server.seen.clear()
        key = "accessToken" if name == "claude-login" else "access_token"
        read = (f"cat ~/{file}; t=$(grep -o '\"{key}\":\"[^\"]*' ~/{file} | cut -d'\"' -f4); " if file else
                "env; t=$COPILOT_GITHUB_TOKEN; ")
        script = (read +
                  f"curl -sS -m 8 -o /dev/null -H \"Authorization: Bearer $t\" https://{host}/next")
        r = box.sh(script, "--allow", host, "--allow", f"{OWN4}/32", "--secret", name, env=w.trust)
        eq(r.rc, 0, r.err)
        has_not(r.out, *real)
        eq([q.get("authorization") for q in w.server.seen], [f"Bearer {given['access_token']}"], "the next sandbox")
    eq(json.loads(kept("codex-login").read_text())["tokens"]["account_id"], "acc-9")
    eq(json.loads(kept("claude-login").read_text())["claudeAiOauth"]["scopes"], ["user:inference", "user:profile"])
    has(box.cli("net", "log").out, "the tokens of claude-login were taken out of the answer")
    for name in ENDPOINTS:
        eq(box.cli("secret", "rm", name).rc, 0)
        assert not kept(name).exists()


# Plays an agent that makes itself a key: logs in, asks for the key with the token, uses it at its host and at another.
KEY_MAKER = """
import json, subprocess, sys
def curl(*words):
    return subprocess.run(["curl", "-sS", "-m", "8", *words], capture_output=True, text=True, check=True).stdout
token = json.loads(curl("-H", "Content-Type: application/json", "-d", '{"grant_type": "authorization_code", "code": "c"}',
                        "https://platform.claude.com/v1/oauth/token"))["access_token"]
key = json.loads(curl("-X", "POST", "-H", "Authorization: Bearer " + token,
                      "https://api.anthropic.com/api/oauth/claude_cli/create_api_key"))["raw_key"]
for host in ("api.anthropic.com", "own.test"):
    curl("-H", "X-Api-Key: " + key, f"https://{host}/v1/messages")
print(key)
"""


@test
def a_key_made_inside_stays_outside(box):
    """The page that makes an API key of a Claude login: what comes inside is a placeholder that works for the login's hosts."""
    w = there()
    w.server.gives = {"access_token": "sk-ant-oat01-" + "Bc2" * 30, "refresh_token": "sk-ant-ort01-" + "De3" * 30, "expires_in": 28800,
                      "scope": "org:create_api_key user:profile"}
    try:
        r = box.run(*OPEN, "--allow", "platform.claude.com", "--allow", "api.anthropic.com", "--inspect", "own.test", "--secret", "claude-login",
                    "--", "python3", "-c", KEY_MAKER, env=w.trust)
    finally:
        given, w.server.gives = w.server.gives, None
    eq(r.rc, 0, r.err)
    key = r.out.strip()
    eq((len(key), key.startswith("sk-ant-api03-"), key == RAW_KEY), (len(RAW_KEY), True, False), "of the same shape")
    asked = {(q.get("host"), q.target): q for q in w.server.seen}
    eq(asked["api.anthropic.com", "/api/oauth/claude_cli/create_api_key"].get("authorization"), f"Bearer {given['access_token']}")
    eq(asked["api.anthropic.com", "/v1/messages"].get("x-api-key"), RAW_KEY)
    eq(asked["own.test", "/v1/messages"].get("x-api-key"), key, "nowhere else")
    for p in box.state.rglob("*"):
        if p.is_file():
            has_not(p.read_bytes().decode("latin-1"), RAW_KEY)


@test
def login_made_inside_replaces_none(box):
    """Who is inside can log in to an account of its own; the one of the host stays what every sandbox uses."""
    w = there()
    own = {"accessToken": "sk-ant-oat01-" + "St2" * 30, "refreshToken": "sk-ant-ort01-" + "Uv3" * 30, "expiresAt": 4000000000000}
    put_login(box, ".claude/.credentials.json", {"claudeAiOauth": own})
    given = {"access_token": "sk-ant-oat01-" + "Wx4" * 30, "refresh_token": "sk-ant-ort01-" + "Yz5" * 30, "expires_in": 1}
    r, _ = log_in_inside(box, w, "claude-login", given, "json")
    has_not(r.out, given["access_token"], given["refresh_token"])
    eq(json.loads((box.home / ".claude/.credentials.json").read_text())["claudeAiOauth"], own)
    assert not (box.state / "secrets" / "claude-login.login").exists()


@test
def login_with_claims(box):
    w = there()
    real = {"id_token": jwt(email="me@own.test"), "access_token": jwt(exp=4000000000), "refresh_token": "rt-" + "q7" * 20}
    put_login(box, ".codex/auth.json", {"OPENAI_API_KEY": None, "tokens": {**real, "account_id": "acc"}, "last_refresh": "2020-01-01T00:00:00Z"})
    script = ("cat ~/.codex/auth.json; test ! -w ~/.codex/auth.json || echo writable; t=$(python3 -c \"import json,os; print(json.load(open("
              "os.path.expanduser('~/.codex/auth.json')))['tokens']['access_token'])\"); "
              "curl -sS -m 8 -o /dev/null -H \"Authorization: Bearer $t\" https://chatgpt.com/backend-api/codex")
    r = box.sh(script, "--allow", "chatgpt.com", "--allow", f"{OWN4}/32", "--secret", "codex-login", env=w.trust)
    eq(r.rc, 0, r.err)
    inside = json.loads(r.out)
    for k, v in real.items():
        has_not(r.out, v)
        eq(inside["tokens"][k].split(".")[:-1], v.split(".")[:-1], "claims stay")
    eq((inside["tokens"]["account_id"], inside["OPENAI_API_KEY"]), ("acc", None))
    eq(w.server.seen[-1].get("authorization"), f"Bearer {real['access_token']}")


@test(who=("user",), timeout=40)
def a_loop_lists_what_was_pushed(box):
    """An iteration that was cut off behind its push is put back; the push cannot be, and is in its record."""
    box.needs("git")
    w = there()
    make_repos(w)
    prompt = box.dir / "prompt.sh"
    prompt.write_text("export GIT_CONFIG_GLOBAL=/tmp/gc; git config --global user.name t; git config --global user.email t@t; "
                      "git clone -q https://own.test/me/app.git /tmp/a; cd /tmp/a; git commit -q --allow-empty -m x; "
                      "git push -q origin HEAD:refs/heads/agent/loop && touch ~/pushed; sleep 30")
    prompt.chmod(0o644)
    p = box.start("loop", "shell", ".", "--prompt", prompt, "--max", "1", "--still", "0", "--", "--allow", f"{OWN4}/32",
                  "--git-fetch", "own.test/me/*", "--git-push", "own.test/me/app:refs/heads/agent/*", env=w.trust)
    name = f"loop-shell-{box.ws.name}"
    soon((w.repos / "me/app.git/refs/heads/agent/loop").exists, "the push", 15)
    soon(lambda: "git-receive-pack\",\"code\"" in box.cli("events", name, "--json").out, "its answer")
    p.kill()
    p.wait()
    prompt.write_text("ls ~/pushed; true")
    r = box.cli("loop", "--resume", name, "--json", env=w.trust, timeout=20)
    eq(r.rc, 0, r.err)
    record = json.loads(r.out)["runs"][0]
    eq((record["attempt"], record["said"]), (2, None), "its home was put back")
    assert any("push: own.test/me/app.git/git-receive-pack" in x for x in record["outside"]), record
    has(box.cli("loop", "report", name).out, "Done outside by an attempt that was cut off", "git-receive-pack")


@test
def refusals_before_the_start(box):
    w = there()
    refused(box.run("--allow", "get own.test/", "--", "true", env=w.trust), "capitals")
    refused(box.run("--git-push", "own.test/me", "--", "true", env=w.trust), "refs/")
    for words, why in ((("--env", "1K", "--host", "own.test"), "variable: '1K'"), (("--env", "K", "--host", "*.com"), "not a host"),
                       (("--env", "K"), "--host"), (("--env", "K", "--host", "own.test", "--in", "air"), "query or body"),
                       (("--env", "K", "--host", "own.test", "sk-1"), "never from the command line")):
        refused(box.cli("secret", "set", "mine", *words, input=b"value"), why)
    refused(box.run("--inspect", "UPPER", "--", "true", env=w.trust), "lower case")
    refused(box.run(*OPEN, "--inspect", "own.test", "--", "true", env={"SSL_CERT_FILE": "/nonexistent"}),
            "/nonexistent", rc=125)


if __name__ == "__main__":
    sys.exit(main())
