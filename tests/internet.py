# SPDX-License-Identifier: Apache-2.0
"""A small internet for tests: a network namespace of its own with a name server, web servers and traps.

    net = Internet(log_file)    enters a new network and mount namespace (this process and all it starts after)
    net.hits("evil.test")       what has arrived there
    net.queries()               the names that were asked for
    net.close()

The calling process becomes "the host": its only way out is a veth to the internet, /etc/resolv.conf names the fake name
server. Nothing leaves the machine. Everything that arrives anywhere is written to the log, by the internet's own
process, so a test looks at the far side and never trusts the inside.
"""

import base64
import ctypes
import json
import mmap
import os
import re
import select
import signal
import socket
import ssl
import struct
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import agent_api

CLONE_NEWNET, CLONE_NEWNS = 0x40000000, 0x00020000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000

SERVER4, HOST4 = "192.0.2.1", "192.0.2.2"
OWN4 = "93.184.217.2"  # of the host itself, and public
SERVER6, HOST6 = "2001:db8:1::1", "2001:db8:1::2"

NAMES = {
    "ok.test": ["93.184.216.34", "2606:2800:220:1::34"],
    "ok2.test": ["93.184.216.36"],
    "evil.test": ["93.184.216.35", "2606:2800:220:1::35"],
    "sub.ok.test": ["93.184.216.37"],
    "bad.ok.test": ["93.184.216.37"],
    "a.wild.test": ["93.184.216.37"],
    "b.a.wild.test": ["93.184.216.37"],
    "wild.test": ["93.184.216.35"],
    "v6.test": ["2606:2800:220:1::34"],
    "private.test": ["10.0.0.5"],
    "loop.test": ["127.0.0.1"],
    "meta.test": ["169.254.169.254"],
    "mixed.test": ["10.0.0.5", "93.184.216.34"],
    "own.test": [OWN4],
    "claude.ai": [OWN4],
    "platform.claude.com": [OWN4],
    "auth.openai.com": [OWN4],
    "chatgpt.com": [OWN4],
    "oauth2.googleapis.com": [OWN4],
    "cloudcode-pa.googleapis.com": [OWN4],
    "closed.test": ["93.184.216.99"],
    "proxy.test": ["93.184.216.40"],
    **{name: [address] for name, address in agent_api.HOSTS.items()},
}
APIS = {address: name for name, address in agent_api.HOSTS.items()}
CNAMES = {"alias.test": "ok.test", "inner.test": "private.test"}
ADDRESSES4 = sorted({a for v in NAMES.values() for a in v if ":" not in a} - {"127.0.0.1", OWN4})
ADDRESSES6 = sorted({a for v in NAMES.values() for a in v if ":" in a})
HTTP_PORTS = (80, 8080, 443, 8443, 22, 25, 5432, 3128)

libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags):
    if libc.unshare(flags):
        raise OSError(ctypes.get_errno(), "unshare")


def mount(source, target, flags):
    if libc.mount(source.encode(), target.encode(), None, flags, None):
        raise OSError(ctypes.get_errno(), f"mount {target}")


def ip(*lines):
    r = subprocess.run(["ip", "-batch", "-"], input="\n".join(lines).encode(), capture_output=True)
    if r.returncode:
        raise RuntimeError(f"ip: {r.stderr.decode()}")


def make_chain(d, hosts):
    """A certificate of these names, signed by d/trust.pem; the file for Internet(tls=)."""
    def openssl(*args):
        subprocess.run(["openssl", *args], cwd=d, check=True, capture_output=True)

    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl("req", "-x509", *new, "-days", "2", "-keyout", "root.key", "-out", "trust.pem", "-subj", "/CN=Test Root",
            "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign")
    (d / "ext").write_text("subjectAltName=" + ",".join("DNS:" + h for h in hosts))
    openssl("req", *new, "-keyout", "s.key", "-out", "csr", "-subj", "/CN=test")
    openssl("x509", "-req", "-in", "csr", "-CA", "trust.pem", "-CAkey", "root.key", "-CAcreateserial", "-days", "2",
            "-extfile", "ext", "-out", "s.pem")
    chain = d / "chain.pem"
    chain.write_text((d / "s.pem").read_text() + (d / "s.key").read_text())
    return chain


# ------------------------------------------------------------------------------ in the internet's process


class Far:
    """The servers. Each connection is one log line: where it arrived and what came."""

    def __init__(self, log, counter, tls=None):
        self.counter = counter
        self.tls = None
        if tls:
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(tls)
        self.log = open(log, "a", buffering=1)
        self.lock = threading.Lock()
        self.rebinds = 0

    def say(self, **what):
        with self.lock:
            self.log.write(json.dumps(what) + "\n")

    def answer(self, data):
        at, labels = 12, []
        while data[at]:
            labels.append(data[at + 1:at + 1 + data[at]].decode("latin-1"))
            at += data[at] + 1
        qtype = struct.unpack(">H", data[at + 1:at + 3])[0]
        name = ".".join(labels).lower()
        self.say(kind="dns", name=name, type=qtype)
        question, records = data[12:at + 5], []
        owner = b"\xc0\x0c"
        target = name
        if name in CNAMES:
            target = CNAMES[name]
            raw = b"".join(bytes([len(p)]) + p.encode() for p in target.split(".")) + b"\0"
            records.append(owner + struct.pack(">HHIH", 5, 1, 60, len(raw)) + raw)
            owner = raw
        addresses = NAMES.get(target)
        if name == "rebind.test":
            self.rebinds += qtype == 1
            addresses = ["93.184.216.34"] if self.rebinds <= 1 else ["127.0.0.1"]
        for a in addresses or []:
            if (":" in a) != (qtype == 28) or qtype not in (1, 28):
                continue
            raw = socket.inet_pton(socket.AF_INET6 if ":" in a else socket.AF_INET, a)
            records.append(owner + struct.pack(">HHIH", qtype, 1, 0 if name == "rebind.test" else 60, len(raw)) + raw)
        code = 0 if addresses is not None else 3
        return data[:2] + struct.pack(">HHHHH", 0x8180 | code, 1, len(records), 0, 0) + question + b"".join(records)

    def serve_dns(self, family, address):
        s = socket.socket(family, socket.SOCK_DGRAM)
        s.bind((address, 53))
        while True:
            data, who = s.recvfrom(4096)
            try:
                if b"\6silent\4test" not in data.lower():
                    s.sendto(self.answer(data), who)
            except (IndexError, struct.error, OSError):
                pass

    def http(self, conn, here, port):
        conn.settimeout(20)
        first = b""
        try:
            if self.tls and port in (443, 8443) and conn.recv(1, socket.MSG_PEEK) == b"\x16":
                conn = self.tls.wrap_socket(conn, server_side=True)
                self.say(kind="tls", at=here, port=port)
            while True:
                while b"\r\n\r\n" not in first:
                    more = conn.recv(65536)
                    if not more:
                        return
                    first += more
                    if not re.match(rb"[A-Z]{1,10}( |$)", first[:11]):
                        self.say(kind="bytes", at=here, port=port, data=first.decode("latin-1"))
                        conn.sendall(b"bytes:" + first)
                        first = b""
                head, _, first = first.partition(b"\r\n\r\n")
                self.say(kind="http", at=here, port=port, head=head.decode("latin-1"))
                first = self.reply(conn, here, head, first)
        except OSError:
            pass
        finally:
            self.say(kind="end", at=here, port=port)
            conn.close()

    def body(self, conn, head, rest):
        m = re.search(rb"(?im)^content-length: *(\d+)", head)
        want = int(m[1]) if m else 0
        got = 0
        while got + len(rest) < want:
            got += len(rest)
            rest = conn.recv(1 << 20)
            if not rest:
                raise OSError("cut off")
        return want, rest[want - got:]

    def reply(self, conn, here, head, rest):
        if here in APIS:
            return self.api(conn, APIS[here], head, rest)
        line = head.split(b"\r\n")[0].split(b" ")
        path = line[1].decode("latin-1")
        if b"expect: 100" in head.lower():
            conn.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        n, rest = self.body(conn, head, rest)
        if path.startswith("/big/"):
            size = int(path[5:])
            conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
            block = b"x" * (1 << 16)
            while size:
                size -= conn.send(block[:size])
            return rest
        if "/info/refs" in path:
            refs = b"0123456789012345678901234567890123456789\trefs/heads/main\n"
            conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % len(refs) + refs)
            return rest
        if path == "/chunked":
            conn.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nwiki\r\n5\r\npedia\r\n0\r\n\r\n")
            return rest
        if path.startswith("/redirect/"):
            conn.sendall(b"HTTP/1.1 302 Found\r\nLocation: http://%s/\r\nContent-Length: 0\r\n\r\n" % path[10:].encode())
            return rest
        if b"upgrade: websocket" in head.lower():
            conn.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
            while data := conn.recv(4096):
                conn.sendall(b"ws:" + data)
            raise OSError("done")
        if path == "/close":
            conn.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end")
            raise OSError("done")
        text = f"here is {here} {path} {n}\n".encode()
        conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(text) + text)
        return rest

    def api(self, conn, host, head, rest):
        """The models of coding agents."""
        if b"transfer-encoding: chunked" in head.lower():
            while not rest.endswith(b"0\r\n\r\n"):
                rest += conn.recv(1 << 20)
            body, at = b"", 0
            while size := int(rest[at:rest.index(b"\r\n", at)], 16):
                at = rest.index(b"\r\n", at) + 2
                body, at = body + rest[at:at + size], at + size + 2
            rest = b""
        else:
            m = re.search(rb"(?im)^content-length: *(\d+)", head)
            want = int(m[1]) if m else 0
            while len(rest) < want:
                rest += conn.recv(1 << 20)
            body, rest = rest[:want], rest[want:]
        status, kind, out, log = agent_api.answer(host, head, body)
        self.say(kind="api", **log)
        conn.sendall(b"HTTP/1.1 %d X\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n" % (status, kind.encode(), len(out)) + out)
        return rest

    def listen(self, family, address, port):
        s = socket.socket(family, socket.SOCK_STREAM)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        s.bind((address, port))
        s.listen(1024)
        return s

    def count(self, s):
        n = 0
        while True:
            try:
                data, where = s.recvfrom(64)
            except OSError:  # the host's end is gone
                return
            link, v6, is_icmp = where[1], data[14:15] != b"" and data[14] >> 4 == 6, data[20:21] == b":"
            multicast = data[0] & 1
            if where[2] == socket.PACKET_OUTGOING or link not in (0x0800, 0x86dd) or (v6 and (is_icmp or multicast)):
                continue
            n += 1
            if os.environ.get("SHOW_PACKETS"):
                self.say(kind="packet", data=data.hex())
            self.counter[:8] = struct.pack("Q", n)

    def run(self):
        sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        sniffer.bind(("in", 3))
        threading.Thread(target=self.count, args=(sniffer,), daemon=True).start()
        threading.Thread(target=self.serve_dns, args=(socket.AF_INET, SERVER4), daemon=True).start()
        listeners = {}
        for family, any_address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
            for port in HTTP_PORTS:
                listeners[self.listen(family, any_address, port)] = port
        print("up", flush=True)
        while True:
            for s in select.select(list(listeners), [], [])[0]:
                conn, _ = s.accept()
                here = conn.getsockname()[0]
                self.say(kind="connect", at=here, port=listeners[s])
                if here == "93.184.216.40":
                    threading.Thread(target=self.upstream, args=(conn, here, listeners[s]), daemon=True).start()
                else:
                    threading.Thread(target=self.http, args=(conn, here, listeners[s]), daemon=True).start()

    def upstream(self, conn, here, port):
        """proxy.test: an HTTP CONNECT and SOCKS5 proxy, as companies have them."""
        try:
            first = conn.recv(4096)
            login = None
            if first[:1] == b"\5" and 2 in first[2:]:
                conn.sendall(b"\5\2")
                words = conn.recv(4096)
                login = words[2:2 + words[1]].decode() + ":" + words[3 + words[1]:].decode()
                conn.sendall(b"\1\0")
            elif first[:1] == b"\5":
                conn.sendall(b"\5\0")
            if first[:1] == b"\5":
                request = conn.recv(4096)
                target = request[5:5 + request[4]].decode() + ":" + str(struct.unpack(">H", request[-2:])[0])
                ok = b"\5\0\0\1\0\0\0\0\0\0"
            else:
                target = first.split(b" ")[1].decode()
                basic = re.search(rb"(?i)\r\nproxy-authorization: basic (\S+)", first)
                login = base64.b64decode(basic[1]).decode() if basic else None
                ok = b"HTTP/1.1 200 OK\r\n\r\n"
            self.say(kind="proxied", at=here, port=port, target=target, login=login)
            host, _, to = target.rpartition(":")
            far = socket.create_connection((NAMES[host][0], int(to)), 5)
            conn.sendall(ok)
            while True:
                for s in select.select([conn, far], [], [])[0]:
                    data = s.recv(65536)
                    if not data:
                        return
                    (far if s is conn else conn).sendall(data)
        except (OSError, KeyError, IndexError, ValueError):
            pass
        finally:
            conn.close()


# ----------------------------------------------------------------------------------------- on the host's side


class Internet:
    def __init__(self, log=None, tls=None):
        """Must be called as root, in a process of its own: it changes the process's namespaces for good."""
        unshare(CLONE_NEWNET | CLONE_NEWNS)
        if log is None:
            fd, log = tempfile.mkstemp(prefix="vitrine-internet-")
            os.close(fd)
        self.log = Path(log)
        self.tls = tls
        self.log.touch()
        mount("none", "/", MS_REC | MS_PRIVATE)
        self.counter = mmap.mmap(-1, 4096)
        r, w = os.pipe()
        go_r, go_w = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            libc.prctl(1, signal.SIGKILL)
            try:
                unshare(CLONE_NEWNET)
                os.write(w, b"x")
                os.read(go_r, 1)
                os.dup2(w, 1)
                self._far_side()
            finally:
                os._exit(1)
        os.close(w)
        os.read(r, 1)
        ip("link set lo up", f"link add out type veth peer name in netns {self.pid}",
           f"addr add {HOST4}/24 dev out", f"addr add {OWN4}/32 dev out", f"addr add {HOST6}/64 dev out nodad", "link set out up",
           f"route add default via {SERVER4}", f"route add ::/0 via {SERVER6}")
        os.write(go_w, b"x")
        os.close(go_w)
        if b"up" not in os.read(r, 64):
            raise RuntimeError("the fake internet did not come up")
        os.close(r)
        self.resolv = tempfile.NamedTemporaryFile("w", prefix="vitrine-resolv-", delete=False)
        self.resolv.write(f"nameserver {SERVER4}\n")
        self.resolv.flush()
        os.chmod(self.resolv.name, 0o644)
        mount(self.resolv.name, os.path.realpath("/etc/resolv.conf"), MS_BIND)

    def _far_side(self):
        ip("link set lo up", f"addr add {SERVER4}/24 dev in", f"addr add {SERVER6}/64 dev in nodad", "link set in up",
           *(f"addr add {a}/32 dev lo" for a in ADDRESSES4), *(f"addr add {a}/128 dev lo nodad" for a in ADDRESSES6))
        Far(self.log, self.counter, self.tls).run()

    def lines(self):
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def hits(self, name=None, port=None, kind="connect"):
        at = set(NAMES[name]) if name else None
        return [line for line in self.lines() if line["kind"] == kind and (at is None or line["at"] in at)
                and (port is None or line["port"] == port)]

    def queries(self):
        return [line["name"] for line in self.lines() if line["kind"] == "dns"]

    def clear(self):
        time.sleep(0.05)
        self.log.write_text("")

    def packets(self):
        """IP packets from the host since the beginning, less what an IPv6 link says by itself."""
        return struct.unpack("Q", self.counter[:8])[0]

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        for path in (self.log, Path(self.resolv.name)):
            path.unlink(missing_ok=True)

