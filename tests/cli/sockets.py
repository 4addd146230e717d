#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Unix sockets of the host that the policy names: bytes pass, nothing else does."""

import array
import os
import socket
import sys
import threading

from harness import eq, has, has_not, main, refused, test

ASK = """
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(sys.argv[2].encode())
s.shutdown(socket.SHUT_WR)
print(b"".join(iter(lambda: s.recv(65536), b"")).decode(), end="")
"""

GIVE = """
import array, os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0]))])
_, anc, _, _ = s.recvmsg(16, 4096)
print("got", len(anc))
"""


class Server:
    """Answers every connection with what it said, in capitals, and remembers what came along."""

    def __init__(self, box, path, gives=False):
        self.path, self.gives, self.ancillary, self.seen = path, gives, 0, []
        self.s = socket.socket(socket.AF_UNIX)
        self.s.bind(str(path))
        os.chmod(path, 0o666)
        box.own(path)
        self.s.listen(64)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                c, _ = self.s.accept()
            except OSError:
                return
            threading.Thread(target=self.answer, args=(c,), daemon=True).start()

    def answer(self, c):
        with c:
            said = b""
            while True:
                data, anc, _, _ = c.recvmsg(65536, 4096)
                self.ancillary += len(anc)
                said += data
                if self.gives and data:
                    c.sendmsg([b"y"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0]))])
                if not data:
                    break
            self.seen.append(said)
            c.sendall(said.upper())

    def done(self):
        self.s.close()


def ask(box, path, text, *options):
    return box.run(*options, "--", "/usr/bin/python3", "-c", ASK, path, text)


@test
def bytes_pass(box):
    box.needs_step("host sockets")
    path = box.dir / "service.sock"
    server = Server(box, path)
    eq(ask(box, path, "hello", "--socket", path).out, "HELLO")
    big = "abc" * 30000
    eq(ask(box, path, big, "--socket", path).out, big.upper())
    eq(len(server.seen), 2)
    # Without the word it is not there.
    r = ask(box, path, "hello")
    has(r.err, "FileNotFoundError")
    server.done()
    eq(sorted(p.name for p in (box.state / "sandboxes").iterdir()), [])


@test
def by_policy_and_in_the_workspace(box):
    box.needs_step("host sockets")
    path = box.ws / "in.sock"
    server = Server(box, path)
    r = ask(box, path, "hello")
    has_not(r.out, "HELLO")
    d = box.config / "vitrine"
    d.mkdir(exist_ok=True)
    (d / "policy.jsonc").write_text('{ "sockets": ["%s"] }' % path)
    box.own(d)
    eq(ask(box, path, "hello").out, "HELLO")
    has(box.cli("explain", "--", "true").out, str(path))
    server.done()


@test
def descriptors_do_not_pass(box):
    box.needs_step("host sockets")
    path = box.dir / "service.sock"
    server = Server(box, path, gives=True)
    r = box.run("--socket", path, "--", "/usr/bin/python3", "-c", GIVE, path)
    eq(r.out, "got 0\n")
    eq(server.ancillary, 0)
    server.done()


@test
def a_service_may_restart(box):
    box.needs_step("host sockets")
    path = box.dir / "service.sock"
    server = Server(box, path)
    p = box.start(
        "run", "--socket", path, "--", "sh", "-c", f"""echo up; read x; exec /usr/bin/python3 -c '{ASK}' {path} again""",
        stdin=-1)
    eq(p.stdout.readline(), b"up\n")
    server.done()
    path.unlink()
    server = Server(box, path)
    out, _ = p.communicate(b"go\n", timeout=10)
    eq(out, b"AGAIN")
    server.done()


@test
def an_agent_of_ssh(box):
    box.needs_step("host sockets")
    box.needs("ssh-agent", "ssh-add", "ssh-keygen")
    path = box.dir / "agent.sock"
    agent = box.popen(["ssh-agent", "-D", "-a", path], stdout=-3, stderr=-3)
    key = box.dir / "key"
    for _ in range(200):
        if path.exists():
            break
        threading.Event().wait(0.01)
    box.host("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "the key", "-f", key)
    env = {"SSH_AUTH_SOCK": str(path)}
    p = box.popen(["ssh-add", key], env=env, stdout=-3, stderr=-3)
    p.wait(10)
    r = box.run("--socket", path, "-e", f"SSH_AUTH_SOCK={path}", "--", "ssh-add", "-l")
    has(r.out, "the key")
    agent.kill()
    agent.wait()
    # Nobody answers any more: the command sees a connection that ends, and the sandbox goes on.
    r = box.run("--socket", path, "-e", f"SSH_AUTH_SOCK={path}", "--", "sh", "-c", "ssh-add -l; echo on")
    has(r.out, "on\n")


@test
def wrong_ones_are_refused(box):
    refused(box.run("--socket", box.dir / "none.sock", "--", "true"), "host socket", "No such file")
    (box.dir / "file").write_text("")
    refused(box.run("--socket", box.dir / "file", "--", "true"), "not a socket")
    (box.dir / "link").symlink_to("service.sock")
    server = Server(box, box.dir / "service.sock")
    refused(box.run("--socket", box.dir / "link", "--", "true"), "a link")
    refused(box.run("--socket", "service.sock", "--", "true"), "--socket")
    server.done()


if __name__ == "__main__":
    sys.exit(main())
