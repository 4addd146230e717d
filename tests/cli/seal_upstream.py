# SPDX-License-Identifier: Apache-2.0
"""The internet of the seal tests: a CA, certificates, an HTTP/1.1 server over TLS and one that speaks HTTP/2.

Everything listens on loopback. The HTTP/1.1 server keeps what it received in `seen`, exactly as it came.
"""

import base64
import gzip
import hashlib
import json
import os
import socket
import ssl
import subprocess
import threading
import time
from pathlib import Path
from urllib.parse import parse_qsl

NAMES = ["ok.test", "api.test", "git.test", "other.test", "h2.test", "own.test", "claude.ai", "api.anthropic.com", "platform.claude.com", "auth.openai.com", "chatgpt.com",
         "oauth2.googleapis.com", "cloudcode-pa.googleapis.com", "console.anthropic.com", "www.googleapis.com", "github.com", "api.github.com",
         "api.githubcopilot.com"]

# Kinds of large answers: a file in the server's directory, and the type under which it is sent.
PLAYED = {"pack": "application/x-git-upload-pack-result", "events": "text/event-stream", "model": "application/json", "tarball": "application/octet-stream",
          "page": "text/html"}

RAW_KEY = "sk-ant-api03-" + "Za1" * 30  # what the page gives that makes a key of a login


def openssl(*args, cwd):
    subprocess.run(["openssl", *args], cwd=cwd, check=True, capture_output=True, timeout=30)


def make_certs(d):
    """trust.pem, and server.pem/server.key for all NAMES; wrong.pem for another name; self.pem trusted by nobody."""
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
            "-keyout", "root.key", "-out", "trust.pem", "-subj", "/CN=Test Root",
            "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign", cwd=d)
    for name, names in (("server", NAMES), ("wrong", ["wrong.test"])):
        (d / "ext").write_text("subjectAltName=" + ",".join("DNS:" + n for n in names))
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}.key",
                "-out", "csr", "-subj", "/CN=test", cwd=d)
        openssl("x509", "-req", "-in", "csr", "-CA", "trust.pem", "-CAkey", "root.key", "-CAcreateserial",
                "-days", "2", "-extfile", "ext", "-out", f"{name}.pem", cwd=d)
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
            "-keyout", "self.key", "-out", "self.pem", "-subj", "/CN=ok.test",
            "-addext", "subjectAltName=DNS:ok.test", cwd=d)


class Request:
    def __init__(self, method, target, fields, body, raw):
        self.method, self.target, self.fields, self.body, self.raw = method, target, fields, body, raw

    def get(self, name):
        found = [v for k, v in self.fields if k.lower() == name]
        return found[0] if found else None


class Server:
    def __init__(self, d, cert="server", repos=None, address="127.0.0.1", port=0):
        ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        ctx.load_cert_chain(d / f"{cert}.pem", d / f"{cert}.key")
        self.dir, self.ctx, self.repos, self.seen, self.gives = d, ctx, repos, [], None
        self.files = {}  # target: (type, bytes)
        self.sock = socket.create_server((address, port), backlog=128)
        self.port = self.sock.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                raw, _ = self.sock.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(raw,), daemon=True).start()

    def serve(self, raw):
        try:
            s = self.ctx.wrap_socket(raw, server_side=True)
            f = s.makefile("rb")
            while True:
                q = self.read(f)
                if q is None or not self.answer(s, f, q):
                    break
            s.unwrap()
            s.close()
        except (OSError, ValueError):
            raw.close()

    def read(self, f):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = f.readline()
            if not line:
                return None
            head += line
        lines = head.decode("latin-1").split("\r\n")[:-2]
        method, target, _ = lines[0].split(" ")
        fields = [tuple(x.strip() for x in l.split(":", 1)) for l in lines[1:]]
        q = Request(method, target, fields, b"", head)
        if q.get("transfer-encoding") == "chunked":
            parts = []
            while (n := int(f.readline(), 16)) > 0:
                parts.append(f.read(n))
                f.readline()
            f.readline()
            q.body = b"".join(parts)
        else:
            q.body = f.read(int(q.get("content-length") or 0))
        self.seen.append(q)
        return q

    @staticmethod
    def reply(s, body, status="200 OK", fields=(), head_only=False):
        head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n"
        head += "".join(f"{k}: {v}\r\n" for k, v in fields) + "\r\n"
        s.sendall(head.encode() + (b"" if head_only else body))
        return True

    def answer(self, s, f, q):
        path = q.target.split("?")[0]
        if self.repos and (".git/" in path):
            return self.git(s, q)
        if path in self.files:
            kind, body = self.files[path]
            return self.reply(s, body, fields=[("Content-Type", kind)], head_only=q.method == "HEAD")
        if path == "/events":
            s.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
            for i in range(3):
                text = b"data: %d\n\n" % i
                s.sendall(b"%x\r\n%s\r\n" % (len(text), text))
                time.sleep(0.3)
            s.sendall(b"0\r\n\r\n")
            return True
        if path == "/slow-secret":
            text = (q.get("x-api-key") or "").encode()
            s.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            for c in text:
                s.sendall(b"1\r\n%c\r\n" % c)
                time.sleep(0.002)
            s.sendall(b"0\r\n\r\n")
            return True
        if path.endswith(("/oauth/token", "/oauth/access_token")) or path == "/token":
            is_json = (q.get("content-type") or "").startswith("application/json")
            self.renewed = json.loads(q.body) if is_json else dict(parse_qsl(q.body.decode()))
            body = json.dumps(self.gives or {"access_token": "sk-ant-oat01-fresh-" + "Cd4" * 12, "token_type": "Bearer",
                                             "refresh_token": "sk-ant-ort01-fresh-" + "Ef5" * 12, "expires_in": 3600}).encode()
            if self.renewed.get("chunked"):
                s.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                s.sendall(b"".join(b"1\r\n%c\r\n" % c for c in body) + b"0\r\n\r\n")
                return True
            return self.reply(s, body, fields=[("Content-Type", "application/json")])
        if path.endswith("/create_api_key"):
            return self.reply(s, json.dumps({"raw_key": RAW_KEY}).encode(), fields=[("Content-Type", "application/json")])
        if path == "/close":
            s.sendall(b"HTTP/1.1 200 OK\r\n\r\nuntil the end")
            return False
        if path == "/gzip":
            return self.reply(s, gzip.compress(b"hello"), fields=[("Content-Encoding", "gzip")])
        if path == "/redirect":
            return self.reply(s, b"", "302 Found", [("Location", "https://other.test/" + (q.target.split("?") + [""])[1])])
        if path == "/big":
            return self.reply(s, b"x" * (32 << 20))
        if "/play/" in path:  # DIR/KIND as many times as asked, as one answer
            kind, times = path.split("/")[-2:]
            data, chunked = (self.dir / kind).read_bytes(), "chunked" in path
            length = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(data) * int(times)}"
            s.sendall(f"HTTP/1.1 200 OK\r\nContent-Type: {PLAYED[kind]}\r\n{length}\r\n\r\n".encode())
            for i in range(int(times)):
                step = 5000 + 977 * i if chunked else 1 << 20
                for at in range(0, len(data), step):
                    piece = data[at:at + step]
                    s.sendall(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
            if chunked:
                s.sendall(b"0\r\n\r\n")
            return True
        if path == "/smuggle":
            s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
            return True
        if path == "/ws" and q.get("upgrade"):
            return self.websocket(s, f, q)
        body = q.raw + q.body if path == "/echo" else b"size %d\n" % len(q.body)
        return self.reply(s, body, fields=[("X-Echo", q.get("x-api-key") or "-"), ("Alt-Svc", 'h3=":443"')],
                          head_only=q.method == "HEAD")

    @staticmethod
    def websocket(s, f, q):
        """The handshake, then the payload of every frame back, in one frame of the same kind."""
        key = q.get("sec-websocket-key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        s.sendall(f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                  f"Sec-WebSocket-Accept: {accept}\r\n\r\n".encode())
        while len(head := f.read(2)) == 2:
            n = head[1] & 127
            if n >= 126:
                n = int.from_bytes(f.read(2 if n == 126 else 8), "big")
            key, data = f.read(4), f.read(n)
            data = bytes(b ^ key[i % 4] for i, b in enumerate(data))
            size = bytes([n]) if n < 126 else b"\x7e" + n.to_bytes(2, "big")
            s.sendall(head[:1] + size + data)
        return False

    def git(self, s, q):
        path, _, query = q.target.partition("?")
        env = {"PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": str(self.repos), "GIT_HTTP_EXPORT_ALL": "1",
               "REQUEST_METHOD": q.method, "PATH_INFO": path, "QUERY_STRING": query, "REMOTE_USER": "me",
               "REMOTE_ADDR": "127.0.0.1", "CONTENT_TYPE": q.get("content-type") or "",
               "CONTENT_LENGTH": str(len(q.body)), "HTTP_CONTENT_ENCODING": q.get("content-encoding") or "",
               "GIT_PROTOCOL": q.get("git-protocol") or "", "HOME": str(self.repos)}
        p = subprocess.run(["git", "http-backend"], env=env, input=q.body, capture_output=True, timeout=30)
        head, _, body = p.stdout.partition(b"\r\n\r\n")
        fields = [tuple(x.strip() for x in l.split(":", 1)) for l in head.decode().split("\r\n") if l]
        status = next((v for k, v in fields if k == "Status"), "200 OK")
        return self.reply(s, body, status, [f for f in fields if f[0] not in ("Status", "Content-Length")])


H2_SERVER = r"""
const http2 = require('http2'), fs = require('fs');
const s = http2.createSecureServer({maxSessionMemory: 500, cert: fs.readFileSync(process.argv[2]), key: fs.readFileSync(process.argv[3])});
s.on('error', () => {});
s.on('sessionError', () => {});
s.on('stream', (st, h) => {
  st.on('error', () => {});
  const path = h[':path'].split('?')[0];
  if (path === '/big') { st.respond({':status': 200}); st.end(Buffer.alloc(8 << 20, 'x')); return; }
  if (path.includes('/play/')) {
    const [kind, times] = path.split('/').slice(-2), data = fs.readFileSync(`${process.argv[4]}/${kind}`);
    st.respond({':status': 200, 'content-type': JSON.parse(process.argv[5])[kind]});
    let i = 0; const more = () => { while (i < Number(times)) { i++; if (!st.write(data)) { st.once('drain', more); return; } } st.end(); };
    more(); return;
  }
  if (path === '/events') {
    st.respond({':status': 200, 'content-type': 'text/event-stream'});
    let n = 0; const t = setInterval(() => { st.write(`data: ${n}\n\n`); if (++n == 3) { clearInterval(t); st.end(); } }, 300);
    return;
  }
  if (path === '/trailers') {
    st.respond({':status': 200, 'content-type': 'application/grpc'}, {waitForTrailers: true});
    st.on('wantTrailers', () => st.sendTrailers({'grpc-status': '0', 'x-key': h['x-api-key'] || '-'}));
    st.end('body'); return;
  }
  if (path.startsWith('/sum')) {  // what came, for the test to read: an echo would be masked
    const all = []; st.on('data', d => all.push(d));
    st.on('end', () => {
      if (st.aborted || st.destroyed) return;
      fs.writeFileSync(`${process.argv[4]}/summed`, Buffer.concat([Buffer.from((h['content-length'] || '') + '\n'), ...all]));
      st.respond({':status': 200}); st.end('summed');
    });
    return;
  }
  if (path === '/reset') { st.respond({':status': 200}); st.write('part'); setTimeout(() => st.destroy(new Error('x')), 50); return; }
  const parts = []; let n = 0;
  st.on('data', d => { n += d.length; if (n < 1 << 16) parts.push(d); });
  st.on('end', () => {
    st.respond({':status': 200, 'content-type': 'text/plain', 'x-echo': h['x-api-key'] || '-'});
    const body = path === '/echo' ? JSON.stringify(h) + '\n' + Buffer.concat(parts) : `size ${n}\n`;
    for (let i = 0; i < body.length; i += 7) st.write(body.slice(i, i + 7));
    st.end();
  });
});
s.listen(0, '127.0.0.1', () => console.log(s.address().port));
process.stdin.resume(); process.stdin.on('end', () => process.exit(0));
"""


class H2Server:
    def __init__(self, d):
        (d / "h2.js").write_text(H2_SERVER)
        self.p = subprocess.Popen(["node", d / "h2.js", d / "server.pem", d / "server.key", d, json.dumps(PLAYED)], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        self.port = int(self.p.stdout.readline())

    def end(self):
        self.p.stdin.close()
        self.p.wait(10)
