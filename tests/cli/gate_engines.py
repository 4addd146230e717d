#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The gate behind other walls: the same rules, refusals and events, over the link instead of handed-out sockets.

Each engine that is here; the internet is the fake one of tests/internet.py, and what arrived there is the evidence."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import daemons  # noqa: E402
import ground  # noqa: E402
from far import net  # noqa: E402
from harness import Skip, below, children, describe, eq, has, has_not, lasting, main, soon, test  # noqa: E402

LOCAL = ("crun", "bwrap", "runc", "gvisor")


def rows(box):
    return {e["name"]: e for e in json.loads(box.cli("engines", "--json", "--quick").out)["engines"]}


def here(box, *names):
    found = [n for n in names or LOCAL if rows(box)[n]["works"] is not False]
    if not found:
        raise Skip("none of these engines is installed")
    return found


def sh(box, engine, script, *options, **kw):
    return box.run("--engine", engine, *(options or ("--allow", "ok.test")), "--", "sh", "-c", script, **kw)


def ask(url, *flags):
    return " ".join(("curl -sS -m 8 -w '[%{http_code}]'", *flags, url + ";"))


def allowed_and_denied(box, n, engine, **kw):
    n.clear()
    r = sh(box, engine, ask("http://ok.test/hello") + ask("http://evil.test/"), timeout=40, **kw)
    has(r.out, "here is 93.184.216.34 /hello", "[403]")
    has(r.err, "no rule allows evil.test:80")
    eq(len(n.hits("ok.test", 80)), 1, engine)
    eq(n.hits("evil.test"), [], engine)


@test(who=("user",), timeout=120)
def by_the_proxy_variables(box):
    n = net()
    for engine in here(box):
        allowed_and_denied(box, n, engine)


def reap_conmon(over):
    """Podman waits until its monitor is gone for good, and what it leaves behind is left to us."""
    while not over.wait(0.05):
        for pid in children():
            try:
                if Path(f"/proc/{pid}/comm").read_text() == "conmon\n":
                    os.waitpid(pid, os.WNOHANG)
            except OSError:
                pass


def its_own_and_nothing_left(box, engine, env):
    """Places to write, a control group namespace and both addresses of the loopback; then the container is gone."""
    r = box.sh("for d in /tmp /var/tmp ~; do echo kept >$d/f && cat $d/f; done; readlink /proc/self/ns/cgroup; "
               "python3 -c \"import socket; socket.create_server(('::1', 0), family=socket.AF_INET6)\"",
               "--engine", engine, env=env)
    eq((r.rc, r.out.split("\n")[:3]), (0, ["kept"] * 3), f"{engine}: {r.err}")
    has_not(r.out, os.readlink("/proc/self/ns/cgroup"))
    if engine == "docker":
        left = subprocess.run(["docker", "ps", "-aq"], env={**os.environ, **env}, capture_output=True, text=True).stdout
        eq(left, "", "containers that were not removed")
    elif engine == "podman-remote":
        host = env["CONTAINER_HOST"]
        soon(lambda: daemons.ask_podman(host, "ps", "-aq").stdout == "", "containers that were not removed")
    else:
        kept = list(box.state.glob("podman/data/containers/storage/*-containers/containers.json"))
        eq([f.read_text() for f in kept], ["[]"] * len(kept), "containers that were not removed")


@test(who=("user",), timeout=120)
def containers(box):
    """Podman, and a podman service and a docker of our own, where they can be had."""
    n = net()
    run = Path(tempfile.mkdtemp(prefix="v-"))  # podman's tidying up takes no name over 50 characters
    far = run / "far"
    box.own(run)
    places = {"podman": {"XDG_RUNTIME_DIR": str(run)}}
    over = threading.Event()
    reaper = threading.Thread(target=reap_conmon, args=(over,))
    reaper.start()
    try:
        host, service = daemons.docker(box.dir / "docker"), daemons.podman(far, box.account)
        lasting.update(p.pid for p in daemons.started)
        if host:
            places["docker"] = {"DOCKER_HOST": host}
        if service:
            places["podman-remote"] = {"CONTAINER_HOST": service}
        for engine in here(box, *places):
            allowed_and_denied(box, n, engine, env=places[engine])
            its_own_and_nothing_left(box, engine, places[engine])
    finally:
        over.set()
        reaper.join()
        daemons.stop()
        daemons.stop_podman(run)
        ground.remove_tree(run)


@test(who=("user",), timeout=60)
def without_proxy_variables(box):
    """Where the table says so, what knows no proxy gets through by name; elsewhere it gets nowhere."""
    n = net()
    script = ask("http://ok.test/direct", "--noproxy '*'") + ask("http://93.184.216.35/", "--noproxy '*'") + \
        ask("http://evil.test/", "--noproxy '*'")
    for name in here(box, "crun", "bwrap"):
        n.clear()
        r = sh(box, name, script)
        may = rows(box)[name]["steps"]["network without proxy variables"] == "yes"
        eq(may, name == "crun")
        eq("/direct" in r.out, may, name)
        eq(len(n.hits("ok.test")), int(may), name)
        eq(n.hits("evil.test"), [], name)


@test(who=("user",), timeout=60)
def a_refused_connection_is_broken_off(box):
    """Not ended: silence would be taken for an empty answer."""
    net()
    script = ("import socket\ns = socket.create_connection(('93.184.216.35', 5432), 5)\n"
              "try:\n s.sendall(b'\\0\\0\\0\\x08'); print('got', s.recv(10))\nexcept OSError as e: print(e)")
    r = box.run("--engine", here(box, "crun")[0], "--allow", "ok.test", "--", "python3", "-c", script)
    has(r.out, "reset by peer")


@test(who=("user",), timeout=60)
def both_ends_of_a_connection(box):
    """What the client closes it may still be answered to; much goes both ways; a reader that stops stops nobody else."""
    n = net()
    script = """
import socket, threading
def dial():
    return socket.create_connection(("ok.test", 5432), 8)
half = dial()
half.sendall(b"last words")
half.shutdown(socket.SHUT_WR)
print("half", half.recv(100), half.recv(100))
deaf = [socket.create_connection(("ok.test", 80), 8) for _ in range(40)]
for s in deaf:
    s.sendall(b"GET /big/3000000 HTTP/1.1\\r\\nHost: ok.test\\r\\n\\r\\n")
got = []
def ask():
    s = dial(); s.sendall(b"x" * 100000); left = 100000 + 6
    while left > 0:
        d = s.recv(65536)
        if not d: break
        left -= len(d)
    got.append(left <= 6)
ts = [threading.Thread(target=ask) for _ in range(20)]
[t.start() for t in ts]; [t.join(20) for t in ts]
print("loud", sum(got))
n = 0
while n < 3000000:
    d = deaf[7].recv(1 << 20)
    if not d: break
    n += len(d)
print("late", n >= 3000000)
"""
    r = box.run("--engine", here(box, "crun")[0], "--allow", "ok.test", "--", "python3", "-c",
                script.replace("\\\\", "\\"), timeout=50)
    eq((r.rc, r.out), (0, "half b'bytes:last words' b''\nloud 20\nlate True\n"), r.err)


CROWD = """
import socket
s = [socket.create_connection(("127.0.0.1", 3128), 20) for _ in range(1000)]
for x in s: x.sendall(b"GET http://ok.test/ HTTP/1.1\\r\\nHo")
print("done"); raise SystemExit(7)
"""


@test(who=("user",), timeout=60)
def a_crowd_of_connections(box):
    """More at once than the keeper has read of: none of it is lost, and the status of the command is its own."""
    for engine in here(box, "crun", "bwrap"):
        r = box.run("--engine", engine, "--allow", "ok.test", "--", "/usr/bin/python3", "-c", CROWD, timeout=40)
        eq((r.rc, r.out), (7, "done\n"), f"{engine}: {r.err}")


@test(who=("user",), timeout=60)
def ports_both_ways(box):
    """A port of the host's loopback that was granted, and one of the inside that is published."""
    net()
    name = here(box, "crun")[0]
    with socket.create_server(("127.0.0.1", 0)) as host:
        port = host.getsockname()[1]
        script = (f"import socket\nprint(socket.create_connection(('127.0.0.1', {port}), 8).recv(9), flush=True)\n"
                  "s = socket.create_server(('127.0.0.1', 8000))\nprint('up', flush=True)\n"
                  "c, _ = s.accept()\nc.sendall(b'inside')\nc.close()\nc, _ = s.accept()\n")
        p = box.start("run", "--engine", name, "--host-port", str(port), "-p", "18180:8000", "--", "python3", "-c", script)
        host.settimeout(20)
        c, _ = host.accept()
        c.sendall(b"host")
        c.close()
        eq(p.stdout.readline(), b"b'host'\n")
        eq(p.stdout.readline(), b"up\n")
        with socket.create_connection(("127.0.0.1", 18180), 8) as s:
            s.settimeout(8)
            eq(s.recv(10), b"inside")
        box.stop(p)
    r = box.run("--engine", name, "--allow", "ok.test", "--", "python3", "-c", script)
    has(r.err, "refused")


@test(who=("user",), timeout=60)
def who_it_was_is_on_record(box):
    """Init sees which process connects, and says so ahead of the connection; with two sessions each has its own."""
    net()
    fetch = "curl -sS -m 8 -o /dev/null http://ok.test/"
    for name in here(box, "crun", "bwrap"):
        p = box.start("run", "--engine", name, "--allow", "ok.test", "--name", "w-" + name, "--", "sh", "-c",
                      f"{fetch}; {fetch}; echo up; exec sleep 60")
        eq(p.stdout.readline(), b"up\n", name)
        eq(box.cli("exec", "w-" + name, "--", "sh", "-c", fetch + "/from-exec").rc, 0, name)
        events = [json.loads(line) for line in box.cli("events", "--json", "w-" + name).out.splitlines()]
        got = [e for e in events if e["type"] == "net.verdict"]
        eq([os.path.basename(e["data"].get("exe", "")) for e in got], ["curl"] * 3, f"{name} {got}")
        eq([e["session"].rsplit("-", 1)[-1] for e in got], ["1", "1", "2"], name)
        eq(all(e["data"]["pid"] > 1 for e in got), True, name)
        box.stop(p)


@test(who=("user",), timeout=60)
def the_gate_ends(box):
    """Killed, it is started once more and the link finds the new one; the second time the network is closed."""
    n = net()
    p = box.start("run", "--engine", here(box, "crun")[0], "--allow", "ok.test", "--", "sh", "-c",
                  "for i in 1 2 3; do echo ready; read x; curl -sS -m 8 -o /dev/null -w '%{http_code}\\n' http://ok.test/; done",
                  stdin=subprocess.PIPE)
    said = []
    for i in range(3):
        eq(p.stdout.readline(), b"ready\n")
        if i > 0:
            gate = [q for q in below(p.pid) if describe(q).startswith("vitrine-gate")]
            for q in gate:  # one goes with the other
                with contextlib.suppress(ProcessLookupError):
                    os.kill(q, signal.SIGKILL)
            soon(lambda: not set(gate) & set(below(p.pid)), "the gate is gone")
        p.stdin.write(b"\n")
        p.stdin.flush()
        said.append(p.stdout.readline())
    eq(said, [b"200\n", b"200\n", b"000\n"])
    r = box.finish(p)
    has(r.err, "started again", "network is closed")
    eq(len(n.hits("ok.test", 80)), 2)


if __name__ == "__main__":
    sys.exit(main())
