#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The gate from outside: what gets through, by which way, and what is said to what does not.

The internet is a fake one (tests/internet.py); what arrived there is the evidence."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from far import net  # noqa: E402
from harness import Skip, below, describe, eq, has, has_not, main, refused, soon, test  # noqa: E402

DIRECT = "network without proxy variables"


def curl(box, url, *args, flags=("--allow", "ok.test"), **kw):
    return box.run(*flags, "--", "curl", "-sS", "-m", "8", *args, url, **kw)


def arrives(box, r, n, name="ok.test", port=80):
    eq(r.rc, 0, r.err)
    eq(len(n.hits(name, port)), 1, "connections there")


@test
def proxy_variable(box):
    n = net()
    r = curl(box, "http://ok.test/hello")
    arrives(box, r, n)
    has(r.out, "93.184.216.34 /hello")
    has_not(str(n.lines()), "Proxy-")


@test
def without_proxy(box):
    box.needs_step(DIRECT)
    n = net()
    r = curl(box, "http://ok.test/direct", "--noproxy", "*")
    arrives(box, r, n)


@test
def without_proxy_v6(box):
    box.needs_step(DIRECT)
    n = net()
    r = curl(box, "http://ok.test/direct", "--noproxy", "*", "-6")
    arrives(box, r, n)


@test
def v6_only_host(box):
    n = net()
    r = curl(box, "http://v6.test/", flags=("--allow", "v6.test"))
    arrives(box, r, n, "v6.test")


@test
def socks(box):
    n = net()
    r = curl(box, "http://ok.test/", "-x", "socks5h://127.0.0.1:3128")
    arrives(box, r, n)
    r = curl(box, "http://evil.test/", "-x", "socks5h://127.0.0.1:3128")
    eq(r.rc, 97, r.err)
    eq(n.hits("evil.test"), [])


@test
def connect(box):
    n = net()
    r = curl(box, "http://ok.test:8080/t", "-p", "-x", "http://127.0.0.1:3128")
    arrives(box, r, n, port=8080)
    r = curl(box, "http://evil.test/t", "-p", "-x", "http://127.0.0.1:3128")
    has(r.err, "403")
    eq(n.hits("evil.test"), [])


@test
def a_program_that_knows_no_proxy(box):
    box.needs_step(DIRECT)
    n = net()
    script = ("import socket; s = socket.create_connection(('ok.test', 5432), 5); s.sendall(b'\\0\\1 hello');"
              "print(s.recv(100))")
    r = box.run("--allow", "ok.test:5432", "--", "python3", "-c", script)
    has(r.out, "bytes:")
    arrives(box, r, n, port=5432)


@test
def refusals_say_what_would_help(box):
    n = net()
    r = curl(box, "http://evil.test/")
    has(r.out, "no rule allows evil.test:80", "--allow evil.test")
    r = curl(box, "http://evil.test/", "-H", "Accept: application/json")
    said = json.loads(r.out)
    eq((said["host"], said["port"], said["rule"]), ("evil.test", 80, None))
    has(said["message"], "no rule allows evil.test:80", "vitrine net allow", "--allow evil.test")
    r = curl(box, "http://evil.test/", "-H", "Accept: application/json", flags=("--net", "open", "--deny", "*.test", "--deny", "evil.test:80"))
    eq(json.loads(r.out)["rule"], "deny evil.test:80", "the most specific of them")
    r = curl(box, "http://93.184.216.35/")
    has(r.out, "no rule allows 93.184.216.35:80")
    r = curl(box, "http://evil.test/", flags=("--net", "open", "--deny", "evil.test"))
    has(r.out, "deny evil.test")
    r = curl(box, "http://evil.test/", "--noproxy", "*")
    eq(r.rc, 6, r.err)
    eq(n.hits("evil.test"), [])
    eq([q for q in n.queries() if "evil" in q], [])
    box.needs_step(DIRECT)
    r = curl(box, "http://93.184.216.35/", "--noproxy", "*")
    has(r.out, "no rule allows 93.184.216.35:80")


@test
def ports(box):
    n = net()
    r = curl(box, "http://ok.test:8080/", flags=("--allow", "ok.test:443"))
    has(r.out, "no rule allows ok.test:8080")
    r = curl(box, "http://ok.test:8080/", flags=("--allow", "ok.test:8000-8099"))
    arrives(box, r, n, port=8080)


@test
def closed_ranges(box):
    n = net()
    for name, word in (("private.test", "private"), ("loop.test", "loopback"), ("meta.test", "link-local"),
                       ("own.test", "loopback"), ("inner.test", "private")):
        r = curl(box, f"http://{name}/", flags=("--net", "open"))
        has(r.out, word, "closed unless named")
    eq(n.hits(), [])
    r = curl(box, "http://private.test/", flags=("--allow", "private.test", "--allow", "10.0.0.0/8"))
    arrives(box, r, n, "private.test")
    r = curl(box, "http://mixed.test/", flags=("--allow", "mixed.test"))
    has(r.out, "93.184.216.34")


@test
def keep_alive_and_bodies(box):
    n = net()
    r = box.run("--allow", "ok.test", "--allow", "ok2.test", "--", "curl", "-sS", "-m", "8", "http://ok.test/1",
                "http://ok.test/2", "http://ok2.test/3", "http://ok.test/chunked", "http://ok.test/close")
    eq(r.rc, 0, r.err)
    has(r.out, "/1", "/2", "93.184.216.36 /3", "wikipedia", "until the end")
    eq(len(n.hits("ok.test")), 2, "one connection for the first two")
    r = box.run("--allow", "ok.test", "--", "sh", "-c",
                "curl -sS -m 8 http://ok.test/big/20000000 | wc -c; head -c 2000000 /dev/zero |"
                "curl -sS -m 8 --data-binary @- http://ok.test/up")
    has(r.out, "20000000", "/up 2000000")


@test
def host_port(box):
    net()
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
        if os.fork() == 0:
            for _ in range(1):
                c, _ = s.accept()
                c.sendall(b"the host's own\n")
                c.close()
            os._exit(0)
        script = f"import socket; print(socket.create_connection(('127.0.0.1', {port}), 5).recv(100).decode())"
        r = box.run("--host-port", str(port), "--", "python3", "-c", script)
        has(r.out, "the host's own")
        r = box.run("--allow", "ok.test", "--", "python3", "-c", script)
        has(r.err, "refused")


@test
def published_port(box):
    net()
    p = box.start("run", "-p", "18080:8000", "--", "python3", "-u", "-m", "http.server", "--bind", "127.0.0.1", "8000")

    def answer():
        try:
            with socket.create_connection(("127.0.0.1", 18080), 2) as s:
                s.sendall(b"GET / HTTP/1.0\r\n\r\n")
                return s.recv(100)
        except OSError:
            return b""
    soon(lambda: b"200 OK" in answer(), "the published port answers", 8)
    for _ in range(20):
        has(answer().decode(), "200 OK")
    box.stop(p)


@test(timeout=40)
def published_ports_come_back(box):
    """With the sandbox that is started again, without saying so again, and with a gate that is."""
    net()
    listen = ("--", "python3", "-u", "-c", "import socket; s = socket.create_server(('127.0.0.1', 8000)); print('up')\n"
              "while True: c, _ = s.accept(); c.sendall(b'inside'); c.close()")

    def answer():
        try:
            with socket.create_connection(("127.0.0.1", 18081), 2) as s:
                return s.recv(100)
        except OSError:
            return b""
    for flags in (("-p", "18081:8000"), ()):
        p = box.start("run", "--name", "shop", *flags, *listen)
        eq(p.stdout.readline(), b"up\n")
        soon(lambda: answer() == b"inside", "the published port", 8)
        if not flags:
            front = [k for k in below(p.pid) + below(os.getpid()) if describe(k).startswith("vitrine-gate front")]
            os.kill(front[0], signal.SIGKILL)
            soon(lambda: answer() == b"inside", "the published port of the gate's second life", 8)
        box.cli("stop", "-t", "0", "shop")
        box.finish(p)
        soon(lambda: answer() == b"", "the end of it")
    box.cli("rm", "-f", "shop")


def with_fault(box, fault, *words):
    """The build in which things can be made to go wrong, where a box may run it."""
    built = Path(__file__).resolve().parent.parent.parent / "build" / "sabotage"
    if not (built / "vitrine").exists():
        raise Skip("make sabotage")
    if not (box.dir / "other").exists():
        (box.dir / "other").mkdir()
        for p in built.glob("vitrine*"):
            if p.is_file():
                shutil.copy(p, box.dir / "other" / p.name)
        box.own(box.dir / "other")
    return box.finish(box.popen([box.dir / "other/vitrine", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, env={"VITRINE_SABOTAGE": fault}))


@test(timeout=30)
def where_the_kernel_cannot_redirect(box):
    """Names have addresses of their own, and the usual ports and those that rules name lead to the gate; a note says so."""
    n = net()
    script = ("for u in http://ok.test/usual http://ok.test:8080/named http://ok.test:8443/other http://evil.test/ http://93.184.216.35/; do "
              "curl -sS -m 6 --noproxy '*' $u; done")
    r = with_fault(box, "redirect", "run", "--allow", "ok.test", "--allow", "ok.test:8080", "--", "sh", "-c", script)
    has(r.out, "/usual", "/named")
    has_not(r.out, "/other")
    has(r.err, "this kernel cannot redirect connections")
    eq((len(n.hits("ok.test", 80)), len(n.hits("ok.test", 8080)), n.hits("evil.test")), (1, 1, []))
    has(with_fault(box, "redirect", "doctor").out, "at listed ports only")


@test
def what_listens_is_hinted_at(box):
    box.needs_native("a hint at what listens")
    net()
    script = "python3 -m http.server 3000 >/dev/null 2>&1 & python3 -m http.server 3001 >/dev/null 2>&1 & sleep 1.7"
    r = box.sh(script, "-p", "33001:3001")
    eq(r.rc, 0, r.err)
    has(r.err, "something inside listens on port 3000; -p 3000 would publish it")
    has_not(r.err, "port 3001")
    eq(r.err.count("port 3000;"), 1)


@test(timeout=30)
def a_hint_waits_for_the_end_of_a_full_screen(box):
    """A program that draws the whole screen does not know about our line and would leave it there."""
    box.needs_native("a hint at what listens")
    net()
    for begin, is_at_once in ((r"\033[?1049h", False), ("", True)):
        t = box.term("run", "--", "sh", "-c", rf"printf '{begin}'; python3 -m http.server 3000 >/dev/null 2>&1 & sleep 2; printf 'BYE\033[?1049l'")
        eq(t.wait(20), 0)
        has(t.seen, b"BYE", b"listens on port 3000")
        eq(t.seen.index(b"listens on port 3000") < t.seen.index(b"BYE"), is_at_once, str(t.seen))
        t.close()


@test
def no_host_socket_inside(box):
    """The descriptors of every process inside: none is a socket but what the command made itself."""
    net()
    r = box.run("--allow", "ok.test", "--", "sh", "-c", "for p in /proc/[0-9]*; do ls -l $p/fd 2>/dev/null; done",
                stdin=-3)
    has_not(r.out, "socket:")


@test
def upstream_proxy(box):
    n = net()
    for url in ("http://93.184.216.40:3128", "socks5://proxy.test:8080"):
        n.clear()
        policy = box.dir / "up.jsonc"
        policy.write_text(json.dumps({"network": {"mode": "gate", "allow": ["ok.test"], "upstream": [url]}}))
        r = box.run("--policy", policy, "--", "curl", "-sS", "-m", "8", "http://ok.test/up")
        has(r.out, "/up")
        eq([h["target"] for h in n.hits(kind="proxied")], ["ok.test:80"])
        r = box.run("--policy", policy, "--", "curl", "-sS", "-m", "8", "http://evil.test/up")
        has(r.out, "no rule allows")


@test
def upstream_proxy_of_the_caller(box):
    """With a name and a password, as companies want them; neither is shown, and one that cannot be used is not gone around."""
    n = net()
    policy = box.dir / "up.jsonc"
    policy.write_text(json.dumps({"network": {"mode": "gate", "allow": ["ok.test"], "upstream": ["env"]}}))
    for url in ("http://me:p%40ss%3Aword@proxy.test:3128", "socks5://me:p%40ss%3Aword@93.184.216.40:8080/"):
        n.clear()
        r = box.run("--policy", policy, "--", "sh", "-c", "env; curl -sS -m 8 http://ok.test/up", env={"HTTPS_PROXY": url})
        has(r.out, "/up")
        has_not(r.out, "p%40ss", "p@ss")
        eq([(h["target"], h["login"]) for h in n.hits(kind="proxied")], [("ok.test:80", "me:p@ss:word")])
        for how in ((), ("--json",)):
            r = box.cli("explain", *how, "--policy", policy, "--", "true", env={"HTTPS_PROXY": url})
            has(r.out, "://***@")
            has_not(r.out, "p%40ss", "p@ss")
    refused(box.run("--policy", policy, "--", "true", env={"HTTPS_PROXY": "https://proxy.test:1"}), "HTTPS_PROXY")
    policy.write_text(json.dumps({"network": {"mode": "gate", "upstream": ["http://me:pw@proxy.test:3128"]}}))
    refused(box.run("--policy", policy, "--", "true"), "does not belong into a policy")


def dial(box, host):
    """Connects s to port 5432 of the host, which speaks no protocol of the gate's: directly, or with a word to the proxy."""
    if box.has_step(DIRECT):
        return f"s = socket.create_connection(('{host}', 5432), 5); "
    return ("s = socket.create_connection(('127.0.0.1', 3128), 5); "
            f"s.sendall(b'CONNECT {host}:5432 HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n'); assert b' 200 ' in s.recv(1000); ")


def inside(box, name, url, *args):
    return box.cli("exec", name, "--", "curl", "-sS", "-m", "6", *args, url)


@test(timeout=30)
def rules_change_while_it_runs(box):
    n = net()
    p = box.start("run", "--allow", "ok.test", "--name", "live", "--", "sh", "-c", "echo up; exec sleep 60")
    eq(p.stdout.readline(), b"up\n")
    has(inside(box, "live", "http://evil.test/").out, "no rule allows")
    eq(box.cli("net", "test", "live", "evil.test:80").rc, 1)
    eq(box.cli("net", "allow", "live", "evil.test").rc, 0)
    has(inside(box, "live", "http://evil.test/").out, "93.184.216.35")
    r = box.cli("net", "test", "live", "evil.test:80")
    eq(r.rc, 0, r.err)
    has(r.out, "allow evil.test:80", "allow evil.test")
    # What is connected ends when it is no longer allowed.
    slow = box.start("exec", "live", "--", "python3", "-c",
                     "import socket; " + dial(box, "evil.test") + "s.sendall(b'\\0hi');"
                     "print(s.recv(100), flush=True); print(s.recv(100), flush=True)")
    has(slow.stdout.readline().decode(), "bytes:")
    eq(box.cli("net", "deny", "live", "evil.test").rc, 0)
    r = box.finish(slow)
    has(r.out + r.err, "b''") if r.rc == 0 else has(r.err, "reset")
    has(inside(box, "live", "http://evil.test/").out, "deny evil.test")
    r = box.cli("net", "rules", "live")
    has(r.out, "allow    ok.test", "deny     evil.test", "deny     everything else")
    has_not(r.out, "allow    evil.test")
    refused(box.cli("net", "allow", "live", "127.1"), "spelling")
    box.cli("stop", "-t", "1", "live")
    box.finish(p)
    eq(box.cli("net", "rules", "live").out, r.out, "the rules of one that does not run")
    eq(box.cli("net", "test", "live", "ok.test:80").rc, 0)
    # Kept with the sandbox.
    r = box.run("--name", "live", "--", "curl", "-sS", "-m", "6", "http://evil.test/")
    has(r.out, "deny evil.test")
    box.cli("rm", "-f", "live")


@test(timeout=30)
def asked(box):
    n = net()
    p = box.start("run", "--allow", "ok2.test", "--ask", "--name", "asks", "--", "sh", "-c",
                  "echo up; curl -sS -m 12 http://ok.test/asked; curl -sS -m 12 http://evil.test/asked")
    eq(p.stdout.readline(), b"up\n")
    time.sleep(0.7)
    eq(n.hits("ok.test"), [], "before the answer")
    r = box.cli("net", "test", "asks", "evil.test:80")
    has(r.out, "ask   evil.test:80")
    eq(box.cli("net", "allow", "asks", "ok.test").rc, 0)
    has(p.stdout.readline().decode(), "93.184.216.34 /asked")
    time.sleep(0.5)
    eq(box.cli("net", "deny", "asks", "evil.test").rc, 0)
    r = box.finish(p)
    has(r.out, "deny evil.test")
    eq(n.hits("evil.test"), [])
    box.cli("rm", "-f", "asks")


@test(timeout=30)
def no_answer_is_a_refusal(box):
    """The minute that a question waits is a second here."""
    n = net()
    r = with_fault(box, "hurry", "run", "--allow", "ok2.test", "--ask", "--name", "silent", "--", "sh", "-c",
                   "curl -sS -m 20 -w '%{http_code}' http://ok.test/asked; curl -sS -m 20 http://ok2.test/after")
    has(r.out, "403", "/after")
    eq(n.hits("ok.test"), [])
    has(box.cli("net", "log", "silent").out, "nobody answered the question")
    box.cli("rm", "-f", "silent")


@test(timeout=30)
def an_answer_for_the_dead_opens_nothing(box):
    """Who asked is killed while the question waits; others take its number; then it is answered."""
    n = net()
    p = box.start("run", "--allow", "ok2.test", "--ask", "--name", "late", "--", "sh", "-c",
                  "curl -sS -m 12 http://ok.test/late & echo $!; sleep 0.7; kill -9 $!; wait; "
                  "for i in 1 2 3 4 5 6 7 8; do sleep 5 & done; echo up; wait")
    eq(p.stdout.readline().strip().isdigit(), True)
    eq(p.stdout.readline(), b"up\n")
    eq(n.hits("ok.test"), [], "before the answer")
    eq(box.cli("net", "allow", "late", "ok.test").rc, 0)
    soon(lambda: "who asked for it is gone" in box.cli("net", "log", "late").out, "the refusal in the log", 5)
    eq(n.hits("ok.test"), [], "a connection for nobody")
    box.cli("stop", "-t", "0", "late")
    box.finish(p)
    box.cli("rm", "-f", "late")


@test(timeout=30)
def asked_on_the_terminal(box):
    n = net()
    script = ("stty -echo; while read -r h && [ $h != end ]; do "
              "echo $(curl -s -m 9 -o /dev/null -w %{http_code} http://$h/) got; done")
    t = box.term("run", "--name", "asked", "--allow", "ok2.test", "--ask", "--", "sh", "-c", script)

    def ask(host, key, answer, code):
        t.send(f"{host}\n")
        t.expect(rf"may it reach {host}:80\?.*n no ")
        t.send("a")  # typed at once: it was meant for the program below
        time.sleep(0.5)
        t.send(f"zz{key}")
        t.expect(answer)
        t.expect(f"{code} got")

    try:
        time.sleep(0.5)
        ask("ok.test", "o", "once", 200)
        ask("ok.test", "n", "no", 403)
        ask("ok.test", "s", "this session", 200)
        t.send("ok.test\n")
        t.expect("200 got")
        ask("evil.test", "a", "always", 200)
        eq((len(n.hits("ok.test")), len(n.hits("evil.test"))), (3, 1))
        t.send("end\n")
        eq(t.wait(), 0)
    finally:
        t.close()
    has((box.state / "sandboxes/asked/net").read_text(), "--allow=evil.test:80")
    has_not((box.state / "sandboxes/asked/net").read_text(), "ok.test")
    box.cli("rm", "-f", "asked")


@test
def log(box):
    net()
    r = box.run("--name", "logs", "--allow", "ok.test", "--", "sh", "-c",
                "curl -sS -m 6 http://ok.test/path?secret=1; curl -sS -m 6 http://evil.test/; curl -sS -m 6 https://evil.test/")
    has(r.err, "network: no rule allows evil.test:80", "evil.test:443")
    r = box.cli("net", "log", "--json", "logs")
    events = [json.loads(line) for line in r.out.splitlines()]
    types = [e["type"] for e in events]
    for t in ("net.verdict", "net.request", "net.connect"):
        if t not in types:
            raise AssertionError(f"no {t} in {r.out} {r.err}")
    has_not(r.out, "secret")
    request = next(e for e in events if e["type"] == "net.request")["data"]
    eq((request["host"], request["method"], request["request"], request["code"]), ("ok.test", "GET", "/path", 200))
    assert request["bytes_in"] > 0 and request["duration_ns"] > 0, request
    verdicts = [e for e in events if e["type"] == "net.verdict"]
    eq([(e["data"]["host"], e["data"]["verdict"], e["data"]["rule"]) for e in verdicts[:2]],
       [("ok.test", "allow", "allow ok.test"), ("evil.test", "deny", "")])
    assert all(e["session"].endswith("-1") for e in events), events
    # A process that is gone before the kernel can be asked stays unnamed.
    assert any(e["data"].get("pid", 0) > 1 and e["data"].get("exe", "").endswith("/curl") for e in events), events
    closed = next(e for e in events if e["type"] == "net.connect")["data"]
    eq((closed["address"], closed["port"], closed["bytes_in"] > 0), ("93.184.216.34", 80, True))
    r = box.cli("net", "log", "--denied", "logs")
    has(r.out, "evil.test:80", "no rule allows evil.test")
    has_not(r.out, "ok.test:80")
    denied = [e for e in verdicts if e["data"]["verdict"] == "deny"]
    eq(box.cli("net", "log", "--denied", "--format", "{{.Host}}:{{.port}}\\n.", "logs").out,
       "".join(f"{e['data']['host']}:{e['data']['port']}\n.\n" for e in denied))
    ids = box.cli("net", "log", "-q", "logs").out.splitlines()
    eq(len(ids), len(events))
    some = box.cli("net", "log", "--denied", "-q", "logs").out.splitlines()
    eq((len(some), set(some) < set(ids)), (len(denied), True), f"{some} {ids}")
    box.cli("rm", "-f", "logs")


@test
def open_is_said_aloud(box):
    for flags in (("--net", "open"), ("--net", "open", "--json")):
        has(box.run(*flags, "--", "true").err, "everything public is open")
    has_not(box.run("--net", "balanced", "--", "true").err, "open")


@test(timeout=30)
def words_of_docker(box):
    n = net()
    r = box.cli("create", "--name", "dock", "shell", ".")
    eq(r.rc, 0, r.err)
    r = box.cli("network", "proxy", "dock", "--policy", "deny", "--allow-host", "ok.test", "--block-cidr", "10.0.0.0/8")
    eq(r.rc, 0, r.err)
    r = box.run("--name", "dock", "--", "curl", "-sS", "-m", "6", "http://ok.test/d")
    has(r.out, "/d")
    r = box.run("--name", "dock", "--", "curl", "-sS", "-m", "6", "http://evil.test/d")
    has(r.out, "no rule allows")
    has(box.cli("network", "log", "dock").out, "evil.test:80")
    # While it runs, at once; what is listed stays when the rest closes, also at the next start.
    p = box.start("run", "--name", "dock", "--", "sh", "-c", "echo up; exec sleep 60")
    eq(p.stdout.readline(), b"up\n")
    eq(box.cli("network", "proxy", "dock", "--policy", "allow", "--block-host", "ok2.test").rc, 0)
    has(inside(box, "dock", "http://evil.test/open").out, "/open")
    has(inside(box, "dock", "http://ok2.test/").out, "deny ok2.test")
    eq(box.cli("network", "proxy", "dock", "--policy", "deny").rc, 0)
    has(inside(box, "dock", "http://evil.test/").out, "no rule allows")
    has(inside(box, "dock", "http://ok.test/still").out, "/still")
    box.cli("stop", "-t", "0", "dock")
    box.finish(p)
    has(box.run("--name", "dock", "--", "curl", "-sS", "-m", "6", "http://ok.test/again").out, "/again")
    box.cli("rm", "-f", "dock")
    r = box.cli("create", "--name", "dock", "--allow", "ok.test", "shell", ".")
    eq(box.cli("network", "proxy", "dock", "--policy", "deny").rc, 0)
    has(box.run("--name", "dock", "--", "curl", "-sS", "-m", "6", "http://ok.test/listed").out, "/listed")
    box.cli("rm", "-f", "dock")
    refused(box.cli("network", "proxy", "dock", "--policy", "deny"), "no sandbox 'dock'", rc=125)


@test(timeout=50)
def too_many_connections(box):
    """(open files - 64) / 2 of them are held, one more is closed at once, and that is on record."""
    net()
    script = ("import socket\nheld = 0\nfor i in range(130):\n s = socket.create_connection(('127.0.0.1', 3128), 5); s.settimeout(0.04)\n"
              " try:\n  s.recv(1)\n except TimeoutError:\n  held += 1\n except OSError:\n  pass\n globals()['s%d' % i] = s\n"
              " if held + 2 < i + 1: break\nprint(held)")
    p = box.popen(["sh", "-c", f"ulimit -n 192; exec {box.program} run --name many --allow ok.test -- python3 -c \"$0\"", script],
                  stdin=-3, stdout=-1, stderr=-1)
    r = box.finish(p, timeout=40)
    eq(r.out.strip(), "64", r.err)
    has(r.err, "more than 64 connections")
    box.cli("rm", "-f", "many")


# Clients that are refused in every way there is and never close, more than there are places; then one that is served.
STUBBORN = r"""
import socket, time
refused = [b"CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n", b"GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
           b"nonsense\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\nX: " + b"x" * 40000,
           b"\5\1\2", b"\4\1\0\x50\0\0\0\1x\0ok.test\0", b"\5\1\0\5\2\0\1\1\1\1\1\0\x50", b"\5\1\0\5\1\0\3\x09evil.test\0\x50"]
held = []
for i in range(80):
    s = socket.create_connection(("127.0.0.1", 3128), 5)
    s.settimeout(5)
    s.sendall(refused[i % len(refused)])
    try:
        s.recv(1)
    except OSError:
        pass
    held.append(s)
t0 = time.monotonic()
s = socket.create_connection(("127.0.0.1", 3128), 5)
s.settimeout(5)
s.sendall(b"GET http://ok.test/served HTTP/1.1\r\nHost: ok.test\r\nConnection: close\r\n\r\n")
try:
    print(s.recv(64).split(b"\r")[0].decode(), round(time.monotonic() - t0, 2), flush=True)
except OSError as e:
    print(type(e).__name__, flush=True)
time.sleep(3.5)
left = 0
for s in held:
    s.setblocking(False)
    try:
        while s.recv(4096):
            pass
    except BlockingIOError:
        left += 1
    except OSError:
        pass
    try:
        s.setblocking(True)
        s.settimeout(1)
        s.send(b"x")
        s.send(b"x")
        time.sleep(0.002)
        s.send(b"x")
    except OSError:
        continue
    left += 1
print("left", left, flush=True)
"""


@test(timeout=60)
def whoever_was_refused_gives_its_place_back(box):
    """64 places, 80 clients that were refused and do not close: another one is served at once, and all of them are gone after
    a moment."""
    net()
    p = box.popen(["sh", "-c", f"ulimit -n 192; exec {box.program} run --allow ok.test -- python3 -c \"$0\"", STUBBORN],
                  stdin=-3, stdout=-1, stderr=-1)
    r = box.finish(p, timeout=50)
    has(r.out, "HTTP/1.1 200 OK", "left 0")


@test(timeout=30)
def a_silent_name_server_is_a_refusal_within_five_seconds(box):
    net()
    r = box.run("--allow", "silent.test", "--", "curl", "-sS", "-m", "20", "-w", "%{time_total}", "http://silent.test/")
    has(r.out, "vitrine: silent.test: no name server answered")
    took = float(r.out.splitlines()[-1])  # of the request, without the start
    eq(3.5 < took < 5.0, True, f"{took:.1f} s")


@test(timeout=40)
def verdicts_are_on_record_before_the_connection(box):
    """A keeper that stands still has written nothing down, so nothing is connected; one that is killed as soon as a
    connection arrives has."""
    n = net()
    for is_stopped in (True, False):
        name = "first" if is_stopped else "then"
        p = box.start("run", "--allow", "ok.test", "--name", name, "--", "sh", "-c",
                      "echo up; read x; exec curl -sS -m 20 http://ok.test/early", stdin=subprocess.PIPE)
        eq(p.stdout.readline(), b"up\n")
        # The names are known by then: only the connection is left to be made.
        has((r := inside(box, name, "http://ok.test/known")).out + r.err, "/known")
        n.clear()
        keeper = [k for k in below(p.pid) if "keeper" in describe(k)][0]
        if is_stopped:
            os.kill(keeper, signal.SIGSTOP)
        p.stdin.write(b"\n")
        p.stdin.flush()
        if is_stopped:
            time.sleep(0.6)
        else:
            soon(lambda: n.hits("ok.test"), "the connection", 10)
        os.kill(keeper, signal.SIGKILL)
        box.finish(p)
        told = [e for e in map(json.loads, box.cli("events", name, "--json").out.splitlines()) if e["type"] == "net.verdict"]
        if is_stopped:
            eq(n.hits("ok.test"), [], "connections without a record")
            eq(len(told), 1, "on record is what was asked before")
        else:
            eq([e["data"]["verdict"] for e in told], ["allow", "allow"])
        box.cli("rm", "-f", name)


@test
def bytes_of_what_is_open(box):
    """A connection that lasts is counted while it does, and not twice when it ends."""
    n = net()
    script = ("import socket, sys; " + dial(box, "ok.test") + "s.sendall(b'\\0' * 70000); print(s.recv(9), flush=True);"
              "sys.stdin.readline(); s.close(); print('over', flush=True); sys.stdin.readline()")
    p = box.start("run", "--allow", "ok.test:5432", "--name", "counts", "--", "python3", "-c", script, stdin=subprocess.PIPE)
    has(p.stdout.readline().decode(), "bytes:")

    def out():
        row = json.loads(box.cli("stats", "--json", "counts").out)
        return (row[0] if isinstance(row, list) else row)["net_out"]
    soon(lambda: out() == 70000, "the bytes of an open connection", 8)
    p.stdin.write(b"\n")
    p.stdin.flush()
    eq(p.stdout.readline(), b"over\n")
    soon(lambda: "net.connect" in box.cli("events", "counts", "--json").out, "the end of it")
    eq(out(), 70000, "counted once")
    box.finish(p)
    box.cli("rm", "-f", "counts")


@test
def the_gate_ends(box):
    """Killed once it comes back; killed twice the network is closed, and the sandbox lives on."""
    net()
    p = box.start("run", "--allow", "ok.test", "--name", "dies", "--", "sh", "-c", "echo up; exec sleep 60")
    eq(p.stdout.readline(), b"up\n")

    def gates():
        found = []
        for d in Path("/proc").glob("[0-9]*"):
            try:
                words = (d / "cmdline").read_bytes().split(b"\0")
                if words[0] == b"vitrine-gate" and str(box.program.parent) in os.readlink(d / "exe") and \
                        os.stat(d / "ns/net").st_ino == os.stat("/proc/self/ns/net").st_ino:
                    found.append(int(d.name))
            except OSError:
                pass
        return found
    for again in (True, False):
        has((r := inside(box, "dies", "http://ok.test/x")).out + r.err, "/x")
        os.kill(gates()[0], 9)
        if again:
            soon(lambda: len(gates()) == 2, "started again")
    soon(lambda: not gates(), "both gone")
    r = inside(box, "dies", "http://ok.test/x")
    has(r.err, "onnect")
    eq(box.cli("exec", "dies", "--", "echo", "alive").out, "alive\n")
    box.cli("stop", "-t", "1", "dies")
    box.finish(p)
    box.cli("rm", "-f", "dies")


@test
def wrong_rules_are_refused(box):
    for flag, value, word in (("--allow", "*", "open"), ("--allow", "http://a.test", "names the host alone"), ("--allow", "127.1", "spelling"),
                              ("--net", "opne", "open"), ("-p", "0", "65535"), ("--host-port", "x", "65535")):
        refused(box.run(flag, value, "--", "true"), word)


if __name__ == "__main__":
    sys.exit(main())
