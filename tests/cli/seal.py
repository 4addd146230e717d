#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vitrine-seal with real clients and real servers on loopback.

    tests/cli/seal.py [--build DIR] [NAME...]

seal-drive plays keeper, front and dial; curl, git, node and python are the clients. Every claim about what went out
is checked at the server.
"""

import argparse
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

from seal_upstream import PLAYED, H2Server, Server, make_certs

ROOT = Path(__file__).resolve().parent.parent.parent
SECRET = "sk-real-0123456789abcdefABCDEF0123456789"
HOLDER = "sk-hold-9876543210fedcbaFEDCBA9876543210"
RULES = {
    "allow": ["GET api.test/repos/me/**", "POST api.test/repos/me/app/pulls"],
    "deny": ["* api.test/repos/me/secret/**"],
    "git": {"fetch": ["git.test/me/*"], "push": ["git.test/me/app:refs/heads/agent/*"]},
    "secrets": [
        {"name": "key", "placeholder": HOLDER, "hosts": ["ok.test", "h2.test", "git.test"], "in": ["header", "query"]},
        {"name": "bodily", "placeholder": HOLDER[::-1], "hosts": ["ok.test", "h2.test"], "in": ["body"]},
    ],
}
MEGABYTES = 64
tests = []


def test(fn):
    tests.append(fn)
    return fn


def eq(got, want, what=""):
    assert got == want, f"{what}: got {got!r}, want {want!r}"


def has(text, *needles):
    for n in needles:
        assert n in text, f"{n!r} is not in {text!r}"


def has_not(text, *needles):
    for n in needles:
        assert n not in text, f"{n!r} is in {text!r}"


class World:
    """One seal, its servers, its clients."""

    def __init__(self, build, rules=RULES, env=None):
        self.d = Path(tempfile.mkdtemp(prefix="seal-"))
        make_certs(self.d)
        self.repos = self.d / "repos"
        self.server = Server(self.d, repos=self.repos)
        self.wrong, self.selfsigned = Server(self.d, "wrong"), Server(self.d, "self")
        self.h2 = H2Server(self.d)
        lines = {"ok.test:443": self.server.port, "api.test:443": self.server.port, "git.test:443": self.server.port,
                 "other.test:443": self.server.port, "h2.test:443": self.h2.port, "ok.test:8443": self.wrong.port,
                 "ok.test:9443": self.selfsigned.port}
        (self.d / "map").write_text("".join(f"{k} 127.0.0.1:{v}\n" for k, v in lines.items()))
        (self.d / "rules.json").write_text(json.dumps(rules))
        self.p = subprocess.Popen([build / "tests" / "tools" / "seal-drive", build / "vitrine-seal", self.d, f"key={SECRET}",
                                   f"bodily={SECRET[::-1]}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                  env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0", **(env or {})})
        eq(self.p.stdout.readline(), "ready\n", "seal")
        _, port, _, pid = self.p.stdout.readline().split()
        self.port, self.pid = int(port), int(pid)
        self.lines = []
        threading.Thread(target=self.collect, daemon=True).start()

    def collect(self):
        for line in self.p.stdout:
            self.lines.append(line.rstrip("\n"))

    @property
    def events(self):
        time.sleep(0.15)
        return [json.loads(l) for l in self.lines if l.startswith("{\"event\"")]

    def commit(self, rules):
        (self.d / "rules.json").write_text(json.dumps(rules))
        n = len(self.lines)
        self.p.stdin.write("commit\n")
        self.p.stdin.flush()
        end = time.monotonic() + 5
        while time.monotonic() < end:
            for l in self.lines[n:]:
                if l == "ready" or l.startswith("failed"):
                    return l
            time.sleep(0.02)
        raise AssertionError("no answer to a commit")

    def change(self, name, value):
        """Another value of a secret, as the keeper sends one that changed."""
        self.p.stdin.write(f"value {name}={value}\n")
        self.p.stdin.flush()
        time.sleep(0.3)

    def env(self, **more):
        proxy = f"http://127.0.0.1:{self.port}"
        bundle = str(self.d / "bundle.pem")
        return {"PATH": os.environ["PATH"], "HOME": str(self.d), "https_proxy": proxy, "HTTPS_PROXY": proxy,
                "SSL_CERT_FILE": bundle, "CURL_CA_BUNDLE": bundle, "NODE_EXTRA_CA_CERTS": str(self.d / "ca.pem"),
                "GIT_SSL_CAINFO": bundle, "REQUESTS_CA_BUNDLE": bundle, **more}

    def run(self, *argv, timeout=30, **kw):
        return subprocess.run(argv, env=self.env(), capture_output=True, text=True, timeout=timeout, **kw)

    def curl(self, *args, version="--http1.1", **kw):
        return self.run("curl", "-sS", version, "--max-time", "20", *args, **kw)

    def tls(self, host="ok.test", port=443, sni=None, alpn=None):
        """A raw TLS connection through the proxy."""
        s = socket.create_connection(("127.0.0.1", self.port), timeout=10)
        s.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        answer = s.recv(1024)
        assert b" 200 " in answer, answer
        ctx = ssl.create_default_context(cafile=self.d / "ca.pem")
        if sni:
            ctx.check_hostname = False
        if alpn:
            ctx.set_alpn_protocols(alpn)
        return ctx.wrap_socket(s, server_hostname=sni or host)

    def raw(self, data, host="ok.test"):
        """Bytes in, everything out until the end."""
        with self.tls(host) as s:
            s.sendall(data)
            out = b""
            try:
                while chunk := s.recv(65536):
                    out += chunk
            except (ssl.SSLError, socket.timeout, OSError):
                pass
            return out

    def end(self):
        self.p.stdin.close()
        self.p.wait(10)
        self.h2.end()
        shutil.rmtree(self.d, ignore_errors=True)


# ------------------------------------------------------------------------------------------- plain use


@test
def curl_http1(w):
    r = w.curl("https://ok.test/echo", "-d", "hello")
    has(r.stdout, "POST /echo HTTP/1.1", "hello")
    e = [x for x in w.events if x["host"] == "ok.test"][-1]
    eq((e["method"], e["request"], e["code"], e["verdict"], e["bytes_out"]), ("POST", "/echo", 200, "allow", 5))


@test
def many_on_one_connection(w):
    r = w.curl(*[f"https://ok.test/?{i}" for i in range(5)], "-w", "%{num_connects}\n")
    eq(r.stdout.split("\n")[1::2][:5], ["1", "0", "0", "0", "0"], r.stdout + r.stderr)


@test
def large_both_ways(w):
    (w.d / "big").write_bytes(b"y" * (50 << 20))
    r = w.curl("https://ok.test/up", "-H", "Expect:", "--data-binary", f"@{w.d}/big")
    has(r.stdout + r.stderr, f"size {50 << 20}")
    e = [x for x in w.events if x.get("request") == "/up"][-1]
    eq(e["bytes_out"], 50 << 20, "bytes on record")
    r = w.curl("https://ok.test/big", "-o", str(w.d / "out"), "-w", "%{size_download}")
    eq(r.stdout, str(32 << 20), r.stderr)
    r = w.curl("https://ok.test/up", "-H", "Transfer-Encoding: chunked", "--data-binary", f"@{w.d}/big")
    has(r.stdout, f"size {50 << 20}")


@test
def until_close_and_head(w):
    eq(w.curl("https://ok.test/close").stdout, "until the end")
    r = w.curl("-I", "https://ok.test/x")
    has(r.stdout, "200 OK", "Content-Length: 7")
    has_not(r.stdout.lower(), "alt-svc")


@test
def server_sent_events_are_not_held(w):
    p = subprocess.Popen(["curl", "-sSN", "--http1.1", "https://ok.test/events"], env=w.env(), stdout=subprocess.PIPE)
    times = []
    for line in p.stdout:
        if line.startswith(b"data"):
            times.append(time.monotonic())
    p.wait(10)
    eq(len(times), 3)
    assert times[1] - times[0] > 0.2 and times[2] - times[1] > 0.2, times


@test
def python_and_node(w):
    code = "import urllib.request; print(urllib.request.urlopen('https://ok.test/echo').read().decode())"
    has(w.run(sys.executable, "-c", code).stdout, "GET /echo HTTP/1.1")
    code = "import requests; print(requests.get('https://ok.test/echo', headers={'X-A': 'b'}).text)"
    r = w.run(sys.executable, "-c", code)
    if "ModuleNotFoundError" not in r.stderr:
        has(r.stdout, "GET /echo HTTP/1.1", "X-A: b")
    code = f"""
const net = require('net'), tls = require('tls'), https = require('https');
const s = net.connect({w.port}, '127.0.0.1', () => s.write('CONNECT ok.test:443 HTTP/1.1\\r\\nHost: ok.test:443\\r\\n\\r\\n'));
s.once('data', () => https.get({{createConnection: () => tls.connect({{socket: s, servername: 'ok.test'}}),
  host: 'ok.test', path: '/echo', headers: {{Host: 'ok.test'}}}}, r => r.pipe(process.stdout)));
"""
    r = w.run("node", "-e", code)
    has(r.stdout, "GET /echo HTTP/1.1")


@test
def websocket(w):
    with w.tls() as s:
        s.sendall(b"GET /ws HTTP/1.1\r\nHost: ok.test\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"
                  b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n")
        head = b""
        while b"\r\n\r\n" not in head:
            head += s.recv(1)
        has(head, b"101 Switching", b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
        for kind, message in ((1, b"HELLO"), (2, b"\x00\xff" * 30000), (1, b"s"), (9, b"ping")):
            n = len(message)
            size = bytes([n]) if n < 126 else b"\x7e" + n.to_bytes(2, "big")
            s.sendall(bytes([0x80 | kind, 0x80 | size[0]]) + size[1:] + b"\0\0\0\0" + message)
            want, got = bytes([0x80 | kind]) + size + message, b""
            while len(got) < len(want) and (more := s.recv(65536)):
                got += more
            eq(got, want)
    e = [x for x in w.events if x.get("request") == "/ws"][-1]
    eq((e["code"], e["bytes_in"]), (101, 60020))


# ------------------------------------------------------------------------------------------------ HTTP/2


@test
def curl_http2(w):
    r = w.curl("https://h2.test/echo", "-d", "hello", "-w", "v%{http_version}", version="--http2")
    has(r.stdout, '":path":"/echo"', "hello", "v2")
    e = [x for x in w.events if x["host"] == "h2.test"][-1]
    eq((e["method"], e["request"], e["code"], e["bytes_out"]), ("POST", "/echo", 200, 5))


@test
def http2_large_and_parallel(w):
    r = w.curl("https://h2.test/big", "-o", str(w.d / "out"), "-w", "%{size_download}", version="--http2")
    eq(r.stdout, str(8 << 20), r.stderr)
    (w.d / "big").write_bytes(b"y" * (8 << 20))
    r = w.curl("https://h2.test/up", "--data-binary", f"@{w.d}/big", version="--http2")
    has(r.stdout, f"size {8 << 20}")
    args = []
    for i in range(30):
        args += ["-o", f"{w.d}/p{i}", "https://h2.test/" + ("big" if i % 10 == 0 else f"x{i}")]
    r = w.run("curl", "-sS", "--http2", "--max-time", "25", "-Z", "--parallel-max", "30", *args)
    eq(r.returncode, 0, r.stderr)
    eq(len(list(w.d.glob("p*"))), 30)
    sizes = {(w.d / f"p{i}").stat().st_size: f"p{i}" for i in range(30)}
    eq(set(sizes), {8 << 20, 7}, (w.d / sizes[min(sizes)]).read_text()[:200] + (w.d / sizes[sorted(sizes)[1]]).read_text()[:200])


@test
def http2_events_trailers_resets(w):
    p = subprocess.Popen(["curl", "-sSN", "--http2", "https://h2.test/events"], env=w.env(), stdout=subprocess.PIPE)
    times = [time.monotonic() for line in p.stdout if line.startswith(b"data")]
    p.wait(10)
    assert len(times) == 3 and times[2] - times[0] > 0.4, times
    code = f"""
const net = require('net'), tls = require('tls'), http2 = require('http2');
const s = net.connect({w.port}, '127.0.0.1', () => s.write('CONNECT h2.test:443 HTTP/1.1\\r\\nHost: h2.test:443\\r\\n\\r\\n'));
s.once('data', () => {{
  const c = http2.connect('https://h2.test', {{createConnection: () => tls.connect({{socket: s, servername: 'h2.test', ALPNProtocols: ['h2']}})}});
  c.on('error', e => console.log('session ' + e));
  const q = c.request({{':path': '/trailers', 'x-api-key': '{HOLDER}'}});
  q.on('trailers', t => console.log('trailers ' + JSON.stringify(t)));
  q.on('data', d => console.log('data ' + d));
  q.on('end', () => {{
    const z = c.request({{':path': '/reset'}});
    z.on('error', e => console.log('error ' + e));
    z.on('close', () => {{ console.log('reset ' + z.rstCode); c.close(); }});
    z.resume();
  }});
}});
"""
    r = w.run("node", "-e", code)
    has(r.stdout, "data body", '"grpc-status":"0"', f'"x-key":"{HOLDER}"', "reset 2")


@test
def http2_secret_and_host(w):
    r = w.curl("https://h2.test/echo", "-H", f"x-api-key: {HOLDER}", "-H", "Accept-Encoding: gzip", "-i",
               version="--http2")
    has(r.stdout, f"x-echo: {HOLDER}", f'"x-api-key":"{HOLDER}"', '"accept-encoding":"identity"')
    has_not(r.stdout, SECRET)
    e = [x for x in w.events if x["host"] == "h2.test"][-1]
    eq(e["secrets"], ["key"])
    r = w.curl("https://h2.test/echo", "-H", "Host: ok.test", "-w", "%{http_code}", version="--http2")
    has(r.stdout, "421")


@test
def http2_only_when_the_server_has_it(w):
    r = w.curl("https://ok.test/echo", "-w", "v%{http_version}", version="--http2")
    has(r.stdout, "GET /echo HTTP/1.1", "v1.1")


# ------------------------------------------------------------------------------------------------- rules


@test
def paths_and_methods(w):
    def code(url, *args):
        return w.curl("-o", str(w.d / "o"), "-w", "%{http_code}", "--path-as-is", url, *args).stdout

    eq(code("https://api.test/repos/me/app"), "200")
    n = len(w.server.seen)
    eq(code("https://api.test/repos/you/app"), "403")
    has((w.d / "o").read_text(), "api.test/repos/you/app", "would")
    eq(code("https://api.test/repos/me/app", "-X", "DELETE"), "403")
    eq(code("https://api.test/repos/me/secret/x"), "403")
    for bad in ("/repos/me/../you", "/repos/me/%2e%2e/you", "/repos/me/%252e", "/repos/me//x", "/repos/me/x;y"):
        eq(code("https://api.test" + bad), "400", bad)
    eq(len(w.server.seen), n, "requests that reached the server")
    eq(code("https://api.test/repos/me/app/pulls", "-d", "x"), "200")
    r = w.curl("https://api.test/no", "-H", "Accept: application/json")
    eq(json.loads(r.stdout)["error"], "denied")


@test
def rules_change_live(w):
    eq(w.commit({**RULES, "allow": ["GET api.test/elsewhere"]}), "ready")
    eq(w.curl("-o", "/dev/null", "-w", "%{http_code}", "https://api.test/repos/me/app").stdout, "403")
    has(w.commit({"allow": ["nonsense"]}), "failed", "nonsense")
    eq(w.curl("-o", "/dev/null", "-w", "%{http_code}", "https://api.test/elsewhere").stdout, "200")
    eq(w.commit(RULES), "ready")


@test
def inner_host_must_match(w):
    n = len(w.server.seen)
    for first in (b"", b"GET / HTTP/1.1\r\nHost: ok.test\r\n\r\n"):
        out = w.raw(first + b"GET /x HTTP/1.1\r\nHost: other.test\r\n\r\n")
        has(out, b"421")
    eq([q.get("host") for q in w.server.seen[n:]], ["ok.test"], "what reached the server")
    for bad in (b"GET / HTTP/1.1\r\nHost: ok.test\r\nHost: ok.test\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n",
                b"GET / HTTP/1.1\r\nHost: ok.test, x\r\n\r\n", b"GET / HTTP/1.1\r\nHost: ok.test\r\n x\r\n\r\n"):
        has(w.raw(bad), b" 400 ")
    for bad in (b"https://other.test/", b"https://ok.test/", b"//x", b"/./x", b"/x/../y", b"/%78", b"/x;y", b"/x\\y"):
        has(w.raw(b"GET %s HTTP/1.1\r\nHost: ok.test\r\n\r\n" % bad), b" 400 ")
    has(w.raw(b"GET /echo HTTP/1.1\r\nHost: ok.test\r\nContent-Length: 1\r\n\r\nx"), b" 400 ", b"has no body")
    has(w.raw(b"CONNECT other.test:443 HTTP/1.1\r\nHost: ok.test\r\n\r\n"), b" 405 ")
    has(w.raw(b"TRACE / HTTP/1.1\r\nHost: ok.test\r\n\r\n"), b" 405 ")
    eq(len(w.server.seen), n + 1, "requests that reached the server")


@test
def smuggling(w):
    n = len(w.server.seen)
    base = b"POST /s HTTP/1.1\r\nHost: ok.test\r\n"
    for bad in (base + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                base + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
                base + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
                base + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
                base + b"Content-Length: -1\r\n\r\n", base + b"Content-Length: 99999999999999999999\r\n\r\n",
                b"GET / HTTP/1.1\nHost: ok.test\n\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                b"GET / HTTP/1.1\r\nHost: ok.test\r\nX: " + b"y" * 40000 + b"\r\n\r\n"):
        out = w.raw(bad)
        assert out.startswith(b"HTTP/1.1 4"), (bad[:80], out)
    eq(len(w.server.seen), n, "requests that reached the server")
    has(w.curl("https://ok.test/smuggle", "-i").stdout, "502")


@test
def sni_must_match(w):
    try:
        w.tls("ok.test", sni="other.test")
        raise AssertionError("a handshake for another name went through")
    except ssl.SSLError:
        pass
    eq([e["reason"] for e in w.events if "reason" in e][-1], "sni_mismatch")


@test
def server_is_verified(w):
    for port, why in ((8443, "hostname mismatch"), (9443, "self-signed")):
        r = w.curl(f"https://ok.test:{port}/", "-H", f"X-Api-Key: {HOLDER}")
        has(r.stdout, "vitrine", why)
    eq(w.wrong.seen + w.selfsigned.seen, [], "requests to servers that are not who they say")


@test
def pinned_client_is_told_of(w):
    r = w.run("curl", "-sS", "--cacert", str(w.d / "trust.pem"), "https://ok.test/")
    has(r.stderr, "certificate")
    e = [x for x in w.events if x.get("reason") == "client_refused_certificate"]
    assert e, w.events
    has(e[-1]["message"], "uninspected")


# ------------------------------------------------------------------------------------------------ secrets


@test
def secret_only_to_its_host(w):
    r = w.curl("https://ok.test/echo", "-i", "-H", f"X-Api-Key: {HOLDER}", "-H", f"Authorization: Bearer {HOLDER}")
    q = w.server.seen[-1]
    eq((q.get("x-api-key"), q.get("authorization")), (SECRET, f"Bearer {SECRET}"))
    eq(q.get("accept-encoding"), "identity")
    has(r.stdout, f"X-Echo: {HOLDER}", f"X-Api-Key: {HOLDER}")
    has_not(r.stdout, SECRET)
    w.curl("https://other.test/echo", "-H", f"X-Api-Key: {HOLDER}")
    eq(w.server.seen[-1].get("x-api-key"), HOLDER)
    e = w.events
    eq([x.get("secrets") for x in e if x["host"] == "ok.test"][-1], ["key"])
    eq([x.get("placeholders_elsewhere") for x in e if x["host"] == "other.test"][-1], ["key"])
    has_not(json.dumps(e), SECRET)


@test
def secret_in_basic(w):
    r = w.curl("-u", f"me:{HOLDER}", "https://ok.test/echo")
    import base64
    real, holder = (base64.b64encode(f"me:{x}".encode()).decode() for x in (SECRET, HOLDER))
    eq(w.server.seen[-1].get("authorization"), f"Basic {real}")
    has(r.stdout, holder[:-4])  # the last letter is made of what follows the value, too
    has_not(r.stdout, real, real[20:40], SECRET)
    w.curl("-u", f"x:{HOLDER}", "https://ok.test/store")
    eq(base64.b64decode(w.server.seen[-1].get("authorization")[6:]).decode(), f"x:{SECRET}")


@test
def secret_places(w):
    w.curl(f"https://ok.test/q?key={HOLDER}")
    eq(w.server.seen[-1].target, f"/q?key={SECRET}")
    w.curl("https://ok.test/b", "-d", f"{HOLDER} {HOLDER[::-1]}")
    q = w.server.seen[-1]
    eq(q.body.decode(), f"{HOLDER} {SECRET[::-1]}", "only what is meant for bodies is swapped there")
    w.curl("https://ok.test/p", "-H", f"X-A: {HOLDER[::-1]}")
    eq(w.server.seen[-1].get("x-a"), HOLDER[::-1], "a secret for bodies is not swapped in headers")


def sent_body(w, version, path, data, *args):
    """What the server got of a request with this body: status inside, Content-Length, body."""
    file = w.d / "body"
    file.write_bytes(data)
    if version == "--http1.1":
        n = len(w.server.seen)
        r = w.curl(f"https://ok.test{path}", "-o", "-", "-w", "\n%{http_code}", "--data-binary", f"@{file}", *args)
        q = w.server.seen[-1] if len(w.server.seen) > n else None
        length, body = (q.get("content-length"), q.body) if q else (None, None)
    else:
        (w.d / "summed").unlink(missing_ok=True)
        r = w.curl(f"https://h2.test/sum{path}", "-o", "-", "-w", "\n%{http_code}", "--data-binary", f"@{file}", *args, version=version)
        summed = w.d / "summed"
        length, body = (summed.read_bytes().split(b"\n", 1) if summed.exists() else (None, None))
        length = length.decode() or None if length is not None else None
    return r.stdout, length, body


@test
def a_value_of_another_length_in_bodies(w):
    """A value that changed while programs run has another length and beginning than its placeholder: bodies get it all the same."""
    holder = HOLDER[::-1].encode()
    unsized = ["-H", "Transfer-Encoding: chunked"], ["-H", "Content-Length:"]
    fill = b"x" * 100_000
    try:
        for value in (b"new/" + b"Ab3" * 40, b"short-01", b"quote\"+&%back\\slash-0123456789012345678901"):
            w.change("bodily", value.decode())
            for version, without_length in zip(("--http1.1", "--http2"), unsized):
                for data in (b"one " + holder + b" two " + holder, holder, fill + holder + fill, fill + holder[:-1], b"none"):
                    said, length, body = sent_body(w, version, "/b", data, "-H", "Content-Type: text/plain")
                    want = data.replace(holder, value)
                    eq((said[-3:], body, length), ("200", want, str(len(want))), f"{version} {value[:9]} {len(data)}")
                    said, length, body = sent_body(w, version, "/c", data, "-H", "Content-Type: text/plain", *without_length)
                    eq((said[-3:], body), ("200", want), f"{version} {value[:9]} {len(data)} without a length")
                # Written as its kind of body writes it.
                from urllib.parse import parse_qs
                _, _, body = sent_body(w, version, "/f", b"a=1&key=" + holder + b"&b=2")
                eq(parse_qs(body.decode())["key"], [value.decode()])
                _, _, body = sent_body(w, version, "/j", b'{"key": "' + holder + b'"}', "-H", "Content-Type: application/json")
                eq(json.loads(body), {"key": value.decode()})
                # Longer than what is held: in the first part it is swapped, behind it the request is refused.
                long = holder + fill * 8
                said, length, body = sent_body(w, version, "/l", long, "-H", "Content-Type: text/plain")
                eq((said[-3:], length, body), ("200", str(len(long) - len(holder) + len(value)), value + fill * 8), version)
                said, length, body = sent_body(w, version, "/m", fill * 8 + holder, "-H", "Content-Type: text/plain")
                has(said, "the value of a secret has another length than its placeholder")
                eq(said[-3:], "413", version)
                # The server gets no such request, or one that breaks off before the placeholder.
                assert body is None or len(body) < int(length) and holder[:9] not in body, f"{version}: {len(body)} of {length}"
            e = [x for x in w.events if x.get("request", "").endswith("/b")][-3:]
            eq([x.get("secrets") for x in e], [["bodily"], None, None], "the record names the secret")
    finally:
        w.change("bodily", SECRET[::-1])


@test
def secrets_that_make_a_head_too_long(w):
    """A value much longer than its placeholder, many times: refused, not left out."""
    try:
        w.change("key", "k" * 16000)
        for version, host in (("--http1.1", "ok.test"), ("--http2", "h2.test")):
            n = len(w.server.seen)
            for args in (["-H", f"X-Api-Key: {HOLDER * 9}"], [a for i in range(9) for a in ("-H", f"X-{i}: {HOLDER}")], ["-u", f"me:{HOLDER * 9}"]):
                r = w.curl(f"https://{host}/echo", "-w", "%{http_code}", *args, version=version)
                has(r.stdout, "431", "too long")
            r = w.curl(f"https://{host}/echo?{HOLDER * 9}", "-w", "%{http_code}", version=version)
            has(r.stdout, "431", "too long")
            eq(len(w.server.seen), n)
    finally:
        w.change("key", SECRET)


@test
def redirect_is_judged_anew(w):
    w.curl("-L", "https://ok.test/redirect", "-H", f"X-Api-Key: {HOLDER}")
    q = w.server.seen[-1]
    eq((q.get("host"), q.get("x-api-key")), ("other.test", HOLDER))


@test
def reflection_across_cuts(w):
    r = w.curl("https://ok.test/slow-secret", "-H", f"X-Api-Key: {HOLDER}")
    has_not(r.stdout, SECRET[3:])
    eq(len(r.stdout), len(SECRET))


@test
def compressed_answer_is_refused(w):
    r = w.curl("https://ok.test/gzip", "-H", f"X-Api-Key: {HOLDER}", "-w", "%{http_code}")
    has(r.stdout, "502", "compressed")
    # Whatever the request carries: a value that another request stored could be in it.
    r = w.curl("https://ok.test/gzip", "--compressed", "-w", "%{http_code}")
    has(r.stdout, "502", "compressed")


@test
def nothing_in_memory_dumps_or_arguments(w):
    status = Path(f"/proc/{w.pid}/status").read_text()
    has(status, "Seccomp:\t2", "NoNewPrivs:\t1")
    has_not(Path(f"/proc/{w.pid}/cmdline").read_text(), SECRET)
    limits = Path(f"/proc/{w.pid}/limits").read_text()
    line = next(l for l in limits.splitlines() if l.startswith("Max core file size"))
    eq(line.split()[4:6], ["0", "0"])
    if os.getuid() != 0:
        try:
            Path(f"/proc/{w.pid}/environ").read_text()
            raise AssertionError("seal can be looked into by its own user")
        except PermissionError:
            pass


# ---------------------------------------------------------------------------------------------------- git


def make_repos(w):
    if w.repos.exists():
        return
    for name in ("me/app", "me/lib", "you/app"):
        repo = w.repos / f"{name}.git"
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", repo], check=True)
        subprocess.run(["git", "-C", repo, "config", "http.receivepack", "true"], check=True)
    seed = w.d / "seed"
    git(w, "init", "-q", "-b", "main", str(seed), cwd=w.d)
    (seed / "file").write_text("one\n")
    git(w, "add", "file", cwd=seed)
    git(w, "commit", "-qm", "one", cwd=seed)
    for name in ("me/app", "me/lib", "you/app"):
        subprocess.run(["git", "push", "-q", w.repos / f"{name}.git", "main"], cwd=seed, check=True,
                       capture_output=True)


def git(w, *args, cwd=None):
    return subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *args], cwd=cwd or w.d, env=w.env(
        GIT_TERMINAL_PROMPT="0", GIT_CONFIG_NOSYSTEM="1"), capture_output=True, text=True, timeout=60)


@test
def git_fetch(w):
    make_repos(w)
    for version in ("0", "1", "2"):
        r = git(w, "-c", f"protocol.version={version}", "clone", "-q", "https://git.test/me/app.git", f"c{version}")
        eq(r.returncode, 0, r.stderr)
    r = git(w, "clone", "-q", "https://git.test/you/app.git", "no")
    assert r.returncode != 0
    has(r.stderr, "remote: vitrine:", "git.test/you/app", "git.fetch")


@test
def git_push(w):
    make_repos(w)
    git(w, "clone", "-q", "https://git.test/me/app.git", "work")
    work = w.d / "work"
    (work / "more").write_text("more\n")
    git(w, "add", "more", cwd=work)
    git(w, "commit", "-qm", "more", cwd=work)
    r = git(w, "push", "origin", "HEAD:refs/heads/agent/one", cwd=work)
    eq(r.returncode, 0, r.stderr)
    r = git(w, "push", "origin", "HEAD:main", cwd=work)
    assert r.returncode != 0
    has(r.stderr, "remote: vitrine: updating refs/heads/main", "would allow it", "! [remote rejected]",
        "refused by the sandbox's git rules")
    r = git(w, "push", "origin", ":refs/heads/agent/one", cwd=work)
    has(r.stderr, "deleting refs/heads/agent/one", "! [remote rejected]")
    r = git(w, "push", "origin", "HEAD:refs/heads/agent/two", "HEAD:refs/heads/other", cwd=work)
    has(r.stderr, "creating refs/heads/other", "refused with the others")
    r = git(w, "push", "https://git.test/me/lib.git", "HEAD:refs/heads/agent/x", cwd=work)
    has(r.stderr, "remote: vitrine:", "git.test/me/lib", "git.push")
    refs = subprocess.run(["git", "-C", w.repos / "me/app.git", "for-each-ref", "--format=%(refname)"],
                          capture_output=True, text=True).stdout.split()
    eq(sorted(refs), ["refs/heads/agent/one", "refs/heads/main"], "what is on the server")


@test
def git_large_and_chunked_push(w):
    make_repos(w)
    git(w, "clone", "-q", "https://git.test/me/app.git", "large")
    work = w.d / "large"
    (work / "noise").write_bytes(os.urandom(5 << 20))
    git(w, "add", "noise", cwd=work)
    git(w, "commit", "-qm", "noise", cwd=work)
    r = git(w, "push", "origin", "HEAD:refs/heads/agent/large", cwd=work)
    eq(r.returncode, 0, r.stderr)
    assert any(q.get("transfer-encoding") == "chunked" for q in w.server.seen if q.method == "POST")
    r = git(w, "push", "origin", "HEAD:refs/heads/main", cwd=work)
    has(r.stderr, "updating refs/heads/main", "! [remote rejected]")


@test
def git_hidden_push(w):
    """The commands of a push behind gzip, in one-byte chunks, and behind codings nobody can look through."""
    import gzip
    make_repos(w)
    main = subprocess.run(["git", "-C", w.repos / "me/app.git", "rev-parse", "main"], capture_output=True,
                          text=True).stdout.strip()
    line = f"{main} {'0' * 40} refs/heads/main\0 report-status delete-refs"
    body = b"%04x" % (len(line) + 4) + line.encode() + b"0000"
    n = len(w.server.seen)

    def push(fields, data):
        return w.raw(b"POST /me/app.git/git-receive-pack HTTP/1.1\r\nHost: git.test\r\n"
                     b"Content-Type: application/x-git-receive-pack-request\r\n" + fields + b"\r\n" + data, "git.test")

    def chunked(data, size):
        return b"".join(b"%x\r\n%s\r\n" % (len(data[i:i + size]), data[i:i + size])
                        for i in range(0, len(data), size)) + b"0\r\n\r\n"

    packed = gzip.compress(body)
    for fields, data in ((b"Content-Length: %d\r\n" % len(body), body),
                         (b"Transfer-Encoding: chunked\r\n", chunked(body, 1)),
                         (b"Content-Encoding: gzip\r\nContent-Length: %d\r\n" % len(packed), packed),
                         (b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", chunked(packed, 3))):
        has(push(fields, data), b"ng refs/heads/main")
    for coding in (b"br", b"gzip, gzip", b"deflate"):
        has(push(b"Content-Encoding: %s\r\nContent-Length: %d\r\n" % (coding, len(body)), body), b" 415 ")
    for path in (b"/me/app.git/%67it-receive-pack", b"/me//app.git/git-receive-pack", b"/me/app.git/git-receive-pack?x"):
        out = w.raw(b"POST %s HTTP/1.1\r\nHost: git.test\r\nContent-Length: %d\r\n\r\n" % (path, len(body)) + body,
                    "git.test")
        has(out, b" 400 " if b"?" not in path else b" 403 ")
    eq(len(w.server.seen), n, "requests that reached the server")


@test
def secret_of_a_git_host_is_for_reading(w):
    make_repos(w)
    r = w.curl("https://git.test/api/x", "-H", f"X-Api-Key: {HOLDER}", "-w", "%{http_code}")
    has(r.stdout, "403", "its other pages are closed")
    eq(w.commit({**RULES, "allow": RULES["allow"] + ["GET git.test/api/x"]}), "ready")
    w.curl("https://git.test/api/x", "-H", f"X-Api-Key: {HOLDER}")
    eq(w.server.seen[-1].get("x-api-key"), SECRET)
    eq(w.commit(RULES), "ready")
    r = w.curl("https://ok.test/api/x", "-H", f"X-Api-Key: {HOLDER}", "-d", "write", "-w", "%{http_code}")
    has(r.stdout, "403", "for reading")
    eq(w.commit({**RULES, "allow": RULES["allow"] + ["POST,GET ok.test/api/x"]}), "ready")
    w.curl("https://ok.test/api/x", "-H", f"X-Api-Key: {HOLDER}", "-d", "write")
    eq(w.server.seen[-1].get("x-api-key"), SECRET)
    eq(w.commit(RULES), "ready")


# ------------------------------------------------------------------------------------------------- bounds


@test
def slow_and_idle_clients_harm_nobody(w):
    idle = [w.tls() for _ in range(20)]
    for s in idle[:10]:
        s.sendall(b"GET / HTTP/1.1\r\nHost: ok")
    t = time.monotonic()
    has(w.curl("https://ok.test/echo").stdout, "GET /echo")
    assert time.monotonic() - t < 2
    for s in idle:
        s.close()
    rss = int(next(l for l in Path(f"/proc/{w.pid}/status").read_text().splitlines()
                   if l.startswith("VmRSS")).split()[1])
    print(f"      resident: {rss} KiB")


# ------------------------------------------------------------------------------- package managers, gh


@test
def npm_installs(w):
    """A scoped package, whose name npm writes with an encoded slash; npm checks the tarball's hash."""
    import base64
    import hashlib
    import io
    import tarfile
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as t:
        for name, text in (("package/package.json", json.dumps({"name": "@me/pkg", "version": "1.2.3"})), ("package/index.js", "module.exports = 42\n" + "// x\n" * 9999)):
            info = tarfile.TarInfo(name)
            info.size = len(text)
            t.addfile(info, io.BytesIO(text.encode()))
    body = out.getvalue()
    dist = {"tarball": "https://ok.test/@me/pkg/-/pkg-1.2.3.tgz", "integrity": "sha512-" + base64.b64encode(hashlib.sha512(body).digest()).decode()}
    about = {"name": "@me/pkg", "dist-tags": {"latest": "1.2.3"}, "versions": {"1.2.3": {"name": "@me/pkg", "version": "1.2.3", "dist": dist}}}
    w.server.files.update({"/@me%2fpkg": ("application/json", json.dumps(about).encode()), "/@me/pkg/-/pkg-1.2.3.tgz": ("application/octet-stream", body)})
    d = w.d / "npm"
    d.mkdir()
    (d / "package.json").write_text("{}")
    (d / ".npmrc").write_text(f"registry=https://ok.test/\n//ok.test/:_authToken={HOLDER}\naudit=false\nfund=false\nupdate-notifier=false\n")
    r = subprocess.run(["npm", "install", "--no-progress", "@me/pkg"], cwd=d, env=w.env(npm_config_cafile=str(w.d / "bundle.pem")), capture_output=True, text=True, timeout=60)
    eq(r.returncode, 0, r.stderr[-600:])
    assert (d / "node_modules/@me/pkg/index.js").read_text().startswith("module.exports = 42"), "what was installed"
    eq({q.get("authorization") for q in w.server.seen if q.target.startswith("/@me")}, {f"Bearer {SECRET}"}, "on the wire")


@test
def pip_downloads(w):
    """pip checks the hash of what it gets."""
    import hashlib
    import io
    import zipfile
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("mine/__init__.py", "x = 1\n" * 5000)
        z.writestr("mine-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
        z.writestr("mine-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        z.writestr("mine-1.0.dist-info/RECORD", "")
    name = "mine-1.0-py3-none-any.whl"
    page = f'<html><body><a href="/files/{name}#sha256={hashlib.sha256(out.getvalue()).hexdigest()}">{name}</a></body></html>'
    w.server.files.update({"/simple/mine/": ("text/html", page.encode()), f"/files/{name}": ("application/octet-stream", out.getvalue())})
    r = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-cache-dir", "--disable-pip-version-check", "--no-deps", "-d", w.d / "pip",
                        "-i", f"https://me:{HOLDER}@ok.test/simple/", "mine"], env=w.env(PIP_CERT=str(w.d / "bundle.pem")), capture_output=True, text=True, timeout=60)
    if "No module named pip" in r.stderr:
        return
    eq(r.returncode, 0, r.stderr[-600:])
    eq((w.d / "pip" / name).read_bytes(), out.getvalue(), "what was downloaded")


@test
def gh_calls(w):
    """GitHub's own client, with a placeholder for a token."""
    if not shutil.which("gh"):
        return
    w.server.files["/api/v3/repos/me/app"] = ("application/json; charset=utf-8", json.dumps({"full_name": "me/app", "text": "ä" * 3000}).encode())
    r = subprocess.run(["gh", "api", "repos/me/app"], env=w.env(GH_HOST="ok.test", GH_ENTERPRISE_TOKEN=HOLDER, GH_PROMPT_DISABLED="1"), capture_output=True, text=True, timeout=30)
    eq((r.returncode, json.loads(r.stdout or "{}").get("text")), (0, "ä" * 3000), r.stderr)
    eq(w.server.seen[-1].get("authorization"), f"token {SECRET}")


# --------------------------------------------------------------------------------------- a great deal of it


def look_alikes():
    """What models write: keys of every kind, placeholders, and all but the last letter of what is masked."""
    import base64
    import random
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
    random.seed(7)
    for n in range(4000):
        word = "".join(random.choices(letters, k=random.randint(8, 90)))
        near = SECRET[:-1] + "8"
        yield random.choice(["sk-ant-api03-", "sk-ant-oat01-", "sk-proj-", "sk-", "gho_", "ghp_", "github_pat_", "ya29.", "1//0", "eyJhbGciOi", "rt_", ""]) + word
        yield random.choice([HOLDER, near, SECRET[1:], SECRET[:20] + " " + SECRET[20:], SECRET[::-1][1:], near[:-1] * 2,
                             base64.b64encode(("me:" + near[:-2]).encode()).decode(), word])


def make_plays(d):
    """One file for each kind of PLAYED, a few megabytes of the real thing."""
    import io
    import tarfile
    repo = d / "packed"
    env = {"PATH": os.environ["PATH"], "HOME": str(d), "GIT_CONFIG_NOSYSTEM": "1"}
    tracked = subprocess.run(["git", "-C", ROOT, "ls-files", "src", "docs"], capture_output=True, text=True).stdout.split()
    files = [ROOT / f for f in tracked] or sorted((ROOT / "src").rglob("*.c"))
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=1) as t:
        for f in files:
            t.add(f, f.relative_to(ROOT))
    (d / "tarball").write_bytes(out.getvalue())
    shutil.copytree(ROOT / "src", repo, ignore=shutil.ignore_patterns("*.o"))
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "all"], ["repack", "-adq"]):
        subprocess.run(["git", "-C", repo, *words], env=env, check=True, capture_output=True)
    (d / "pack").write_bytes(b"0008NAK\n" + next(repo.glob(".git/objects/pack/*.pack")).read_bytes())
    words = list(look_alikes())
    (d / "events").write_text("".join(f"event: content_block_delta\ndata: {json.dumps({'delta': {'text': ' '.join(words[i:i + 5])}})}\n\n" for i in range(0, len(words), 5)))
    (d / "model").write_text(json.dumps({"content": [{"type": "text", "text": w} for w in words]}) + "\n")
    (d / "page").write_text("<p>" + "</p>\n<p>".join(words) + "</p>")


LOGIN = {"name": "l", "hosts": ["ok.test", "h2.test"], "endpoints": ["ok.test/oauth/token", "h2.test/oauth/token"], "tokens": ["access_token"],
         "closed": ["ok.test/oauth", "h2.test/oauth"], "pages": [], "marks": ["sk-ant-", "gho_", "eyJhbGciOi", "rt_", "1//0"], "texts": ["* ok.test/v1/**", "* h2.test/v1/**"]}


@test
def great_answers_come_unchanged(w):
    """Packs, tarballs, streams, models' words with all that looks like a token, on hosts with a secret and a login: byte for byte."""
    import hashlib
    make_plays(w.d)
    eq(w.commit({**RULES, "logins": [LOGIN]}), "ready")
    w.curl("https://ok.test/x", "-H", f"X-Api-Key: {HOLDER}")
    # Only models' words need a path of theirs: everything else that is not JSON passes on any path.
    ways = [("ok.test", "--http1.1", "/play"), ("ok.test", "--http1.1", "/chunked/play"), ("h2.test", "--http2", "/play")]
    each, total, began = (MEGABYTES << 20) // (len(ways) * len(PLAYED)), 0, time.monotonic()
    for kind in PLAYED:
        data = (w.d / kind).read_bytes()
        times = max(1, each // len(data))
        want = hashlib.sha256()
        for _ in range(times):
            want.update(data)
        for host, version, path in ways:
            p = subprocess.Popen(["curl", "-sS", version, "--max-time", "300", f"https://{host}{'/v1' if kind == 'model' else ''}{path}/{kind}/{times}"], env=w.env(), stdout=subprocess.PIPE)
            got = hashlib.sha256()
            while piece := p.stdout.read(1 << 20):
                got.update(piece)
                total += len(piece)
            eq((p.wait(10), got.hexdigest()), (0, want.hexdigest()), f"{kind} from {host}{path}")
    eq(w.commit(RULES), "ready")
    print(f"      {total >> 20} MiB in {time.monotonic() - began:.1f} s")


def main():
    global MEGABYTES
    a = argparse.ArgumentParser()
    a.add_argument("--build", default=str(ROOT / "build" / "services"))
    a.add_argument("--megabytes", type=int, default=MEGABYTES, help="how much great_answers_come_unchanged sends (1024: all of it)")
    a.add_argument("name", nargs="*")
    options = a.parse_args()
    MEGABYTES = options.megabytes
    passed, failed = 0, 0
    w = World(Path(options.build))
    try:
        for fn in tests:
            if options.name and fn.__name__ not in options.name:
                continue
            try:
                fn(w)
                passed += 1
                print(f"ok   {fn.__name__}", flush=True)
            except Exception:
                failed += 1
                traceback.print_exc()
                print(f"FAIL {fn.__name__}", flush=True)
                if w.p.poll() is not None:
                    w = World(Path(options.build))
    finally:
        w.end()
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
