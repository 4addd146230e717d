#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Standard input, output and error: every byte, in order, whatever they are connected to."""

import fcntl
import hashlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time

from harness import below, describe, eq, has, main, test

SIZE = 5 << 20


def binary():
    return os.urandom(SIZE)


def digest(data):
    return hashlib.sha256(data).hexdigest()


@test
def pipes(box):
    r = box.sh("cat; echo err >&2", input=b"in\n")
    eq((r.rc, r.out, r.err), (0, "in\n", "err\n"))


@test
def pipes_binary(box):
    data = binary()
    r = box.run("--", "cat", input=data)
    eq((r.rc, digest(r.raw_out)), (0, digest(data)))


@test
def files_binary(box):
    data = binary()
    source = box.write("in.bin", data)
    target = box.dir / "out.bin"
    with open(source, "rb") as i, open(target, "wb") as o:
        r = box.run("--", "cat", stdin=i, stdout=o)
    eq((r.rc, r.err), (0, ""))
    eq(digest(target.read_bytes()), digest(data))


@test
def file_appended(box):
    target = box.dir / "log"
    target.write_text("first\n")
    with open(target, "ab") as o:
        box.sh("echo second; echo third >&2", stdout=o, stderr=o)
    eq(target.read_text(), "first\nsecond\nthird\n")


@test
def file_offset(box):
    """A redirected file is read from where the caller stood, and may be shared with what follows."""
    f = box.write("lines", "one\ntwo\nthree\n")
    out = box.host("sh", "-c", f"(read x; echo $x; {box.program} run -- cat) <lines")
    eq(out, "one\ntwo\nthree\n")


@test
def one_file_for_both(box):
    target = box.dir / "both"
    with open(target, "wb") as o:
        box.sh("for i in 1 2 3 4 5; do echo out$i; echo err$i >&2; done", stdout=o, stderr=o)
    eq(target.read_text(), "".join(f"out{i}\nerr{i}\n" for i in range(1, 6)))


@test
def one_pipe_for_both(box):
    script = "for i in 1 2 3; do echo out$i; echo err$i >&2; done"
    p = box.start("run", "--", "sh", "-c", script, stderr=subprocess.STDOUT)
    eq(box.finish(p).out, "".join(f"out{i}\nerr{i}\n" for i in range(1, 4)))


@test
def null(box):
    r = box.sh("cat; echo x; echo y >&2", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    eq(r.rc, 0)
    eq(box.ok("cat | wc -c"), "0\n")


def with_closed(box, fds, script):
    closing = " ".join(f"{fd}>&-" for fd in fds)
    return box.host("bash", "-c", f"{box.program} run -- sh -c '{script}' {closing}; echo status $?")


@test
def closed(box):
    box.needs("bash")
    for fds in ([0], [1], [2], [0, 1], [1, 2], [0, 1, 2]):
        out = with_closed(box, fds, "echo made >made; cat; echo x; echo y >&2; exit 7")
        has(out, "status 7")
        eq(box.read("made"), "made\n")


@test
def sockets(box):
    """As inetd, ssh and node give them. They are relayed: inside there is no socket of the host."""
    near, far = socket.socketpair()
    p = box.start("run", "--", "sh", "-c", "cat; test -p /proc/self/fd/0 && test -p /proc/self/fd/1 && echo pipes",
                  stdin=far, stdout=far, stderr=far)
    far.close()
    near.sendall(b"over a socket\n")
    near.shutdown(socket.SHUT_WR)
    got = b""
    while chunk := near.recv(4096):
        got += chunk
    near.close()
    eq((p.wait(8), got), (0, b"over a socket\npipes\n"))


@test
def sockets_binary(box):
    data = binary()
    near, far = socket.socketpair()
    p = box.start("run", "--", "cat", stdin=far, stdout=far)
    far.close()

    def feed():
        near.sendall(data)
        near.shutdown(socket.SHUT_WR)

    t = threading.Thread(target=feed)
    t.start()
    got = b""
    while chunk := near.recv(65536):
        got += chunk
    t.join()
    near.close()
    eq((p.wait(8), digest(got)), (0, digest(data)))


@test
def reader_goes_away(box):
    """`vitrine run -- yes | head -1` ends, as it does without us."""
    for redirect in ("", "2>&1"):
        t0 = time.monotonic()
        out = box.host("bash", "-c", f"{box.program} run -- yes {redirect} | head -n 1; echo ${{PIPESTATUS[0]}}")
        eq(out, "y\n141\n")
        if time.monotonic() - t0 > 3:
            raise AssertionError("took too long")


@test
def slow_reader(box):
    """Nothing is lost, and nothing piles up without bound, when the reader takes its time."""
    p = box.start("run", "--", "sh", "-c", f"head -c {SIZE} /dev/zero; echo end")
    time.sleep(0.5)
    r = box.finish(p)
    eq((r.rc, len(r.raw_out)), (0, SIZE + 4))


@test
def slow_reader_of_a_socket(box):
    near, far = socket.socketpair()
    p = box.start("run", "--", "sh", "-c", f"head -c {SIZE} /dev/zero; echo end", stdout=far)
    far.close()
    time.sleep(0.5)
    n = 0
    while chunk := near.recv(1 << 20):
        n += len(chunk)
    near.close()
    eq((p.wait(8), n), (0, SIZE + 4))


@test
def late_input(box):
    p = box.start("run", "--", "sh", "-c", "read a; echo got $a; read b; echo got $b", stdin=subprocess.PIPE)
    for word in (b"one\n", b"two\n"):
        p.stdin.write(word)
        p.stdin.flush()
        eq(p.stdout.readline(), b"got " + word)
    eq(box.finish(p).rc, 0)


@test
def unread_input(box):
    """A command that ends without reading does not wait for the rest of its input."""
    p = box.start("run", "--", "true", stdin=subprocess.PIPE)
    eq(p.wait(5), 0)
    p.stdin.close()


@test
def background_keeps_nothing(box):
    """What the command leaves running ends with it, so the pipe is at its end."""
    t0 = time.monotonic()
    r = box.sh("sleep 20 & echo done")
    eq((r.rc, r.out), (0, "done\n"))
    if time.monotonic() - t0 > 3:
        raise AssertionError("the pipe stayed open")


@test
def keeper_keeps_nothing(box):
    """Nor does who reads to the end wait for the kernel to take the keeper apart: here that takes it five seconds more."""
    box.needs("strace")
    log = box.dir / "log"
    p = box.start("run", "--", "sh", "-c", "echo up; sleep 1; echo done", stderr=subprocess.STDOUT)
    eq(p.stdout.readline(), b"up\n")
    keeper = next(pid for pid in below(p.pid) if "vitrine keeper" in describe(pid))
    slow = box.popen(["strace", "-o", log, "-p", keeper, "-e", "trace=exit_group", "-e", "inject=exit_group:delay_enter=5s"],
                     stderr=subprocess.DEVNULL)
    t0 = time.monotonic()
    eq(p.stdout.read(), b"done\n")
    if time.monotonic() - t0 > 4:
        raise AssertionError("the pipe stayed open")
    eq((p.wait(5), slow.wait(10)), (0, 0))
    eq(time.monotonic() - t0 > 5, True, "the keeper ended later")


@test
def inherited_descriptors(box):
    """Nothing but the three goes in."""
    secret = box.write("secret", "hush\n")
    with open(secret, "rb") as f:
        os.set_inheritable(f.fileno(), True)
        r = box.sh("ls /proc/self/fd; cat <&9; true", pass_fds=[f.fileno()])
    fds = set(r.out.split())
    eq(fds - {"0", "1", "2", "3"}, set())
    eq("hush" in r.out, False)


@test
def non_blocking_output_of_the_caller(box):
    """We may not switch the caller's descriptor to non-blocking; it is shared with the shell."""
    r, w = os.pipe()
    p = box.start("run", "--", "echo", "x", stdout=w)
    eq(p.wait(8), 0)
    eq(fcntl.fcntl(w, fcntl.F_GETFL) & os.O_NONBLOCK, 0)
    os.close(w)
    eq(os.read(r, 10), b"x\n")
    os.close(r)


# ---- signals, without a terminal ----


@test
def interrupt(box):
    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        p = box.start("run", "--", "sh", "-c", "ulimit -c 0; echo up; exec sleep 20")
        eq(p.stdout.readline(), b"up\n")
        p.send_signal(sig)
        eq(p.wait(5), 128 + sig)


@test
def handled_signal(box):
    script = "trap 'echo got; exit 5' TERM; trap 'echo one' USR1; echo up; while :; do sleep 0.05; done"
    p = box.start("run", "--", "sh", "-c", script)
    eq(p.stdout.readline(), b"up\n")
    p.send_signal(signal.SIGUSR1)
    eq(p.stdout.readline(), b"one\n")
    p.send_signal(signal.SIGTERM)
    eq(p.stdout.readline(), b"got\n")
    eq(p.wait(5), 5)


if __name__ == "__main__":
    sys.exit(main())
