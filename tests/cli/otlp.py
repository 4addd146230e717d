#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The OTLP receiver: what an exporter sends becomes frames for the keeper, and nothing else comes through.

The test plays the keeper: it makes the listening socket and the socketpair and starts vitrine-otlp on them, as
receiver_spawn() does.
"""

import json
import os
import socket
import struct
import subprocess
import sys
import time

from harness import eq, has, main, soon, test
from otlp_wire import logs, proto_log

TEXT, U64 = 1, 2
SIGNAL, SERVICE, TITLE, BODY, ATTRIBUTES, WHEN = 48, 49, 51, 52, 57, 58


class Receiver:
    def __init__(self, box):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setblocking(False)
        self.events, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.events.settimeout(5)
        self.port = self.listener.getsockname()[1]
        fds = [self.listener.fileno(), theirs.fileno()]

        def place():
            a, b = os.dup(fds[0]), os.dup(fds[1])
            high = [os.dup(a), os.dup(b)]
            for fd in high:
                os.set_inheritable(fd, True)
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.p = box.popen([box.program.parent / "vitrine-otlp"], stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=place, close_fds=False)
        theirs.close()
        self.box = box

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=5)

    def post(self, path, body, kind="application/json", s=None, extra=""):
        own = s is None
        s = s or self.connect()
        s.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\n{extra}"
                  f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = s.recv(65536)
        if own:
            s.close()
        return answer

    def frame(self):
        return decode(self.events.recv(1 << 17))

    def end(self):
        self.events.close()
        eq(self.box.finish(self.p).rc, 0)
        self.listener.close()


def decode(frame):
    eq(frame[:4], b"VEV1")
    length, kind = struct.unpack_from("<IH", frame, 4)
    eq(length, len(frame))
    eq(kind, 83)
    fields, at = {}, 32
    while at < len(frame):
        key, what = struct.unpack_from("<HB", frame, at)
        if what == TEXT:
            n, = struct.unpack_from("<H", frame, at + 3)
            fields[key] = frame[at + 5:at + 5 + n].decode()
            at += 5 + n
        else:
            eq(what, U64)
            fields[key], = struct.unpack_from("<Q", frame, at + 3)
            at += 11
    return fields


@test
def logs_in_both_encodings(box):
    r = Receiver(box)
    answer = r.post("/v1/logs", logs("hello", "again", attributes={"tool_name": "Bash"}))
    has(answer.decode(), "HTTP/1.1 200 OK", "application/json", "{}")
    f = r.frame()
    eq((f[SIGNAL], f[SERVICE], f[BODY], f[WHEN]), ("logs", "claude-code", "hello", 1700000000000000000))
    eq(json.loads(f[ATTRIBUTES]), {"tool_name": "Bash"})
    eq(r.frame()[BODY], "again")
    answer = r.post("/v1/logs", proto_log("from protobuf"), kind="application/x-protobuf")
    has(answer.decode(), "HTTP/1.1 200 OK", "application/x-protobuf", "Content-Length: 0")
    f = r.frame()
    eq((f[SERVICE], f[BODY], f[WHEN]), ("codex", "from protobuf", 77))
    r.end()


@test
def many_requests_on_one_connection(box):
    r = Receiver(box)
    s = r.connect()
    for i in range(50):
        has(r.post("/v1/logs", logs(f"n{i}"), s=s).decode(), "200 OK")
        eq(r.frame()[BODY], f"n{i}")
    # Two at once, and one in pieces.
    body = logs("x")
    one = (f"POST /v1/logs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
           f"Content-Length: {len(body)}\r\n\r\n").encode() + body
    s.sendall(one + one)
    for _ in range(2):
        eq(r.frame()[BODY], "x")
    for i in range(0, len(one), 7):
        s.sendall(one[i:i + 7])
    eq(r.frame()[BODY], "x")
    s.close()
    r.end()


@test
def chunks(box):
    r = Receiver(box)
    body, s = logs("in chunks"), r.connect()
    s.sendall(b"POST /v1/logs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
              b"Transfer-Encoding: chunked\r\n\r\n")
    for i in range(0, len(body), 50):
        part = body[i:i + 50]
        s.sendall(f"{len(part):x}\r\n".encode() + part + b"\r\n")
    s.sendall(b"0\r\n\r\n")
    has(s.recv(4096).decode(), "200 OK")
    eq(r.frame()[BODY], "in chunks")
    s.close()
    r.end()


@test
def refusals(box):
    r = Receiver(box)
    has(r.post("/v1/other", b"{}").decode(), " 404 ")
    has(r.post("/v1/logs", b"not json").decode(), " 400 ")
    has(r.post("/v1/logs", b"\xff\xff", kind="application/x-protobuf").decode(), " 400 ")
    has(r.post("/v1/logs", b"{}", kind="text/plain").decode(), " 415 ")
    has(r.post("/v1/logs", b"{}", extra="Content-Encoding: gzip\r\n").decode(), " 415 ")
    s = r.connect()
    s.sendall(b"GET /v1/logs HTTP/1.1\r\nHost: x\r\n\r\n")
    has(s.recv(4096).decode(), " 405 ")
    s.close()
    s = r.connect()
    s.sendall(b"POST /v1/logs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 99999999\r\n\r\n")
    has(s.recv(4096).decode(), " 413 ")
    s.close()
    has(r.post("/v1/logs", logs("still alive")).decode(), "200 OK")
    eq(r.frame()[BODY], "still alive")
    r.end()


@test
def hostile_bytes(box):
    """Random, cut off, dripped, too many connections: it stays, and serves the next one."""
    r = Receiver(box)
    left = []
    for i in range(60):
        s = r.connect()
        left.append(s)
        try:
            s.sendall([os.urandom(5000), b"POST /v1/logs HTTP/1.1\r\n", b"P", b"\0" * 100][i % 4])
        except OSError:
            pass
    for s in left:
        s.close()
    has(r.post("/v1/logs", logs("x" * 100000)).decode(), "200 OK")
    text = r.frame()[BODY]
    has(text, "[+")
    if len(text) > 16384:
        raise AssertionError("a field is longer than a field may be")
    has(open(f"/proc/{r.p.pid}/status").read(), "Seccomp:\t2", "NoNewPrivs:\t1")
    r.end()


@test
def a_keeper_that_does_not_read(box):
    """Nothing is dropped: the exporter is told to try again."""
    r = Receiver(box)
    body = logs(*["y" * 15000] * 200)
    answer = r.post("/v1/logs", body)
    has(answer.decode(), " 503 ")
    n = 0
    r.events.settimeout(0.3)
    try:
        while r.frame():
            n += 1
    except TimeoutError:
        pass
    if not 1 <= n < 200:
        raise AssertionError(f"{n} frames")
    r.events.settimeout(5)
    has(r.post("/v1/logs", logs("again")).decode(), "200 OK")
    eq(r.frame()[BODY], "again")
    r.end()


@test
def it_ends_with_the_keeper(box):
    r = Receiver(box)
    r.events.close()
    soon(lambda: r.p.poll() is not None, "it is still there")
    eq(r.p.returncode, 0)
    r.listener.close()


@test
def alone_it_does_nothing(box):
    p = box.popen([box.program.parent / "vitrine-otlp"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                  stderr=subprocess.PIPE)
    result = box.finish(p)
    eq(result.rc, 2)
    has(result.err, "started by the keeper")


if __name__ == "__main__":
    sys.exit(main())
