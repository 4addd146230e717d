# SPDX-License-Identifier: Apache-2.0
"""PX - on the ports of HTTP only HTTP passes."""

import itertools
import json

from check_px import ALLOW, PROXY, RUN, internet, served, talk, ways
from harness import HELD, check

CONNECT = "CONNECT ok.test:{} HTTP/1.1\r\nHost: ok.test:{}\r\n\r\n"


def odd_requests():
    """What a forgiving server takes for a request for evil.test: fronts x methods x separators x versions, less what is one by
    the book."""
    fronts = ["", "\n", "\r\n", "\r\n\r\n", " ", "\t", "\0", "\v", "\x0c", "\xef\xbb\xbf", "\x16", "\x80"]
    lines = ["GET /evil HTTP/1.1", "GET\t/evil HTTP/1.1", "GET  /evil HTTP/1.1", "G-T /evil HTTP/1.1", "GET1 /evil HTTP/1.1", "/evil",
             "GET evil HTTP/1.1", "GET HTTP://evil.test/evil HTTP/1.1", "GET /evil", "GET\v/evil HTTP/1.1"]
    for front, line in itertools.product(fronts, lines):
        yield f"{front}{line}\r\nHost: evil.test\r\nConnection: close\r\n\r\n"


# Many connections, one after the other: each sends one request and prints how many were answered or closed; nothing else is asked of them.
MANY = r"""
import json, socket, sys
asks = [bytes.fromhex(x) for x in json.loads(open(sys.argv[1]).read())]
target = sys.argv[2:4]
connect = bytes.fromhex(sys.argv[4])
ended = late = 0
for ask in asks:
    try:
        s = socket.create_connection((target[0], int(target[1])), 5)
        s.settimeout(0.4)
        if connect:
            s.sendall(connect)
            s.recv(4096)
        s.sendall(ask)
        while s.recv(4096):
            pass
        ended += 1
    except TimeoutError:
        late += 1 # it was passed on, and the far side waits for more: what arrived there decides
        if late == 8:
            break
    except OSError:
        ended += 1
print(ended, flush=True)
"""


@check("PX-41", prio="P0", title="on a port of HTTP nothing passes that is not HTTP by the book", forms=RUN, catches=("gate-sniff",))
def px41(c):
    with internet(c) as net:
        served(c, net)
        asks = list(odd_requests())
        c.plant(c.ws / "many.py", MANY)
        c.plant(c.ws / "asks.json", json.dumps([a.encode("latin-1").hex() for a in asks]))
        for port in (80, 8080):
            connect = CONNECT.format(port, port).encode().hex()
            r = c.sandbox(["/usr/bin/python3", "many.py", "asks.json", *map(str, PROXY), connect], flags=ALLOW, timeout=150)
            c.need_control(r.text.strip().isdigit(), f"not all was asked: {r}")
            c.must(not net.hits(kind="bytes"), f"passed on as bytes: {net.hits(kind='bytes')[:2]}")
            seen = [h for h in net.hits(kind="http") if "evil.test" in h["head"]]
            c.must(not seen, f"another host was asked for: {seen[:2]}")
        log = c.vitrine("net", "log", "--json")
        c.must("not HTTP on port 80" in log.text, f"not on record: {log.text[-300:]}")
    return HELD


@check("PX-42", prio="P1", title="a rule that says /raw opens the port of HTTP to other protocols, and no other rule does", forms=RUN)
def px42(c):
    with internet(c) as net:
        asks = ways(c, [(PROXY, CONNECT.format(80, 80), b"\1binary"), (("ok.test", 80), b"\1binary")])
        talk(c, asks, ["--allow", "ok.test:80/raw"])
        c.need_control(len(net.hits("ok.test", 80, "bytes")) == len(asks), "/raw opens nothing")
        net.clear()
        talk(c, asks, ["--allow", "ok.test:80"])
        c.must(not net.hits(kind="bytes"), f"passed on: {net.hits(kind='bytes')[:1]}")
        # On a port that is not HTTP's other protocols pass; empty lines in front of a request do not.
        talk(c, ways(c, [(PROXY, CONNECT.format(25, 25), b"\1binary")]), ALLOW)
        c.need_control(len(net.hits("ok.test", 25, "bytes")) == 1, "another port carries HTTP only")
        net.clear()
        evil = "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n"
        talk(c, ways(c, [(PROXY, CONNECT.format(25, 25), "\n" + evil), (PROXY, CONNECT.format(25, 25), "\r\n", evil),
                         (("ok.test", 25), " ", "\n" + evil)]), ALLOW)
        c.must(not net.hits(kind="bytes") and not net.hits(kind="http"), f"passed on: {net.lines()[-2:]}")
    return HELD
