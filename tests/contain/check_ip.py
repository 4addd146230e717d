# SPDX-License-Identifier: Apache-2.0
"""IP - keys, shared memory and the services of the host: the inside talks to none of them."""

import os
import re
import secrets
import subprocess
import time
from pathlib import Path

from harness import HELD, check
from outside import THROUGH, abstract_trap, attempts, inside, unix_trap, wall


def untouched(c, traps, act):
    """`act` runs the same words outside and inside; every trap hears the first, not the second."""
    act(c.control)
    time.sleep(0.1)
    deaf = [t.address for t in traps if not t.log]
    c.need_control(not deaf, f"not reached outside: {deaf}")
    for t in traps:
        t.clear()
    r = act(c.sandbox)
    time.sleep(0.1)
    hit = [(t.address, t.log[:2]) for t in traps if t.log]
    for t in traps:
        t.close()
    c.must(not hit, f"reached from inside: {hit}")
    for t in traps:
        c.must(not c.leaks(r, t.word), f"{t.address} answered inside")
    if not r.refused and len(re.findall(r"^(unix|abstract) \w+$", r.text, re.M)) < len(traps):
        c.inconclusive(f"not all attempts were made inside: {r}")
    return r


@check("IP-01", prio="P0", title="keys of the kernel cannot be read, searched or added",
       catches=("seccomp,verify",), null=True)
def ip01(c):
    word, name = c.uuid(), "vitrine-" + secrets.token_hex(4)
    ctl = c.control(c.probe("key_add", name, word))
    c.need_control(ctl.rc == THROUGH, f"no key can be added outside: {ctl}")
    ctl = c.control(c.probe("key_read", name))
    serial = re.findall(rf"^([0-9a-f]+) .*{name}", Path("/proc/keys").read_text(), re.M)
    c.need_control(word in ctl.text, f"the key cannot be read outside: {ctl}")
    for s in ("-1", *[str(int(x, 16)) for x in serial]):
        r = inside(c, "key_read", name, s)
        c.must(not c.leaks(r, word), "the key was read")
        c.must(r.rc != THROUGH, f"got through: {r}")
    wall(c, ["keyctl", "add_key", "request_key"])
    r = c.sandbox("cat /proc/keys; true")
    c.must(name not in r.text, "the key's name is visible in /proc/keys")
    return HELD


@check("IP-02", prio="P1", title="System V and POSIX objects of the host are invisible",
       catches=("ipcns",), null=True)
def ip02(c):
    word = c.uuid()
    key = str(0x76000000 + secrets.randbelow(1 << 20))
    queue = "/vitrine-" + secrets.token_hex(4)
    for argv, read in ((["shm_hold", key, word], ["shm_read", key]),
                       (["mq_hold", queue, word], ["mq_read", queue])):
        holder = c.start(c.probe(*argv), sandboxed=False, stdin=subprocess.PIPE)
        if not holder.wait_for(" ok", 5):
            c.inconclusive(f"{argv[0]}: {holder.stop()}")
        ctl = c.control(c.probe(*read)) if argv[0] == "shm_hold" else None
        if ctl:
            c.need_control(word in ctl.text, f"cannot be read outside: {ctl}")
        r = inside(c, *read)
        c.must(not c.leaks(r, word), f"{read[0]} read the host's object")
        c.must(r.rc != THROUGH, f"{read[0]} got through: {r}")
        if not ctl:
            # Reading takes the message away, so the control comes last.
            ctl = c.control(c.probe(*read))
            c.need_control(word in ctl.text, f"cannot be read outside: {ctl}")
        holder.stdin.close()
        holder.wait(5)
    return HELD


@check("IP-03", prio="P0", title="abstract unix sockets of the host",
       catches=("netns,landlock",), null=True)
def ip03(c):
    name = "vitrine-" + secrets.token_hex(8)
    untouched(c, [abstract_trap(name)],
              lambda run: run(c.probe("abstract", name, "hello")))
    return HELD


@check("IP-04", prio="P0", title="a socket behind a read-only grant is not reachable", null=True)
def ip04(c):
    shared = c.mkdir(c.root / "shared")
    sub = c.mkdir(shared / "sub")
    c.plant(shared / "file", "visible")
    traps = [unix_trap(shared / "s.sock", c), unix_trap(sub / "t.sock", c)]
    paths = [t.address for t in traps]

    def act(run):
        kw = {"flags": ["--read", str(shared)], "refusal_ok": True} if run == c.sandbox else {}
        script = "; ".join(" ".join(c.probe("unix", p, "hello")) for p in paths)
        return run(script + f"; cat {shared}/file", **kw)

    r = untouched(c, traps, act)
    # A refusal of the whole grant is as good, a silent loss of it is not.
    c.must("visible" in r.text or r.refused, f"the grant does not work: {r}")
    return HELD


def service_sockets(c, names, env, extra=()):
    """Listeners at the usual places below XDG_RUNTIME_DIR and HOME, and the variables that name
    them: neither may be usable inside."""
    traps = []
    with c.host_edit():
        for n in names:
            path = c.run_dir / n
            c.mkdir(path.parent)
            traps.append(unix_trap(path, c))
        for p in extra:
            c.mkdir(Path(p).parent)
            traps.append(unix_trap(p, c))
    env = {k: v.format(run=c.run_dir, home=c.home) for k, v in env.items()}

    def act(run):
        kw = {"env": env}
        script = "\n".join(" ".join(c.probe("unix", t.address, "hello")) for t in traps)
        return run(script + "\nenv", **kw)

    r = untouched(c, traps, act)
    named = [k for k in env if re.search(rf"^{k}=", r.text, re.M)]
    c.must(not named, f"set inside: {named}")
    with c.host_edit():
        for t in traps:
            os.unlink(t.address)


@check("IP-05", prio="P0", title="D-Bus: session bus, systemd's private socket",
       catches=("env",), null=True)
def ip05(c):
    service_sockets(c, ["bus", "systemd/private", "at-spi/bus_0"],
                    {"DBUS_SESSION_BUS_ADDRESS": "unix:path={run}/bus",
                     "DBUS_SYSTEM_BUS_ADDRESS": "unix:path={run}/bus",
                     "AT_SPI_BUS_ADDRESS": "unix:path={run}/at-spi/bus_0"})
    ran = c.out / "ran"
    r = c.sandbox(f"systemd-run --user touch {ran}; gio open {ran}; busctl --user list; true")
    c.must(not ran.exists(), f"a service of the host ran it: {r}")
    got = attempts(c, [f"unix,{p},x" for p in (
        "/run/dbus/system_bus_socket", "/var/run/dbus/system_bus_socket", "/run/systemd/private",
        "/run/systemd/journal/stdout")])
    c.must(THROUGH not in got.values(), f"reached: {got}")
    return HELD


@check("IP-06", prio="P0", title="container engines and their sockets", catches=("env",), null=True)
def ip06(c):
    named = {"CONTAINER_HOST": "unix://{run}/podman/podman.sock", "DOCKER_HOST": "unix://{run}/docker.sock"}
    # Not the one that the engine itself is found by; the one that is real must not be seen inside either.
    named.pop({"docker": "DOCKER_HOST", "podman": "CONTAINER_HOST", "podman-remote": "CONTAINER_HOST"}.get(c.cfg.engine), None)
    service_sockets(c, ["docker.sock", "podman/podman.sock", "containerd/containerd.sock"], named,
                    [c.home / ".docker/run/docker.sock", c.home / ".colima/docker.sock"])
    got = attempts(c, [f"unix,{p},x" for p in (
        "/var/run/docker.sock", "/run/docker.sock", "/run/podman/podman.sock",
        "/run/containerd/containerd.sock", "/run/libvirt/libvirt-sock", "/run/snapd.socket",
        "/var/lib/lxd/unix.socket", "/run/crio/crio.sock")])
    c.must(THROUGH not in got.values(), f"reached: {got}")
    r = c.sandbox("env")
    c.must("DOCKER_HOST" not in r.text and "CONTAINER_HOST" not in r.text, f"set inside: {r}")
    return HELD


@check("IP-07", prio="P0", title="ssh-agent and gpg-agent", catches=("env",), null=True)
def ip07(c):
    service_sockets(c, ["ssh-agent.sock", "gnupg/S.gpg-agent", "gnupg/S.gpg-agent.ssh",
                        "keyring/ssh"],
                    {"SSH_AUTH_SOCK": "{run}/ssh-agent.sock", "SSH_AGENT_PID": "1",
                     "GPG_AGENT_INFO": "{run}/gnupg/S.gpg-agent:0:1", "GNUPGHOME": "{home}/.gnupg"},
                    [c.home / ".gnupg/S.gpg-agent"])
    r = c.sandbox("ssh-add -l; true", env={"SSH_AUTH_SOCK": f"{c.run_dir}/x"})
    c.must("Could not open" in r.errtext or "not found" in r.errtext, f"ssh-add reached one: {r}")
    return HELD


@check("IP-08", prio="P1", title="displays and sound: X11, Wayland, PipeWire, Pulse",
       catches=("env", "netns,landlock"), null=True)
def ip08(c):
    name = "/tmp/.X11-unix/X" + str(700 + secrets.randbelow(10000))
    untouched(c, [abstract_trap(name)], lambda run: run(c.probe("abstract", name, "hello")))
    service_sockets(c, ["wayland-0", "pipewire-0", "pulse/native"],
                    {"DISPLAY": ":77", "WAYLAND_DISPLAY": "wayland-0",
                     "XAUTHORITY": "{home}/.Xauth", "PULSE_SERVER": "unix:{run}/pulse/native",
                     "PIPEWIRE_REMOTE": "pipewire-0"})
    return HELD


@check("IP-10", prio="P1", title="multiplexers and editors that would run commands outside",
       catches=("env",), null=True)
def ip10(c):
    service_sockets(c, ["vscode-ipc-1234.sock", "emacs/server", "tmux-1/default", "zellij/s"],
                    {"TMUX": "{run}/tmux-1/default,1,0", "TMUX_TMPDIR": "{run}", "STY": "1.x",
                     "VSCODE_IPC_HOOK_CLI": "{run}/vscode-ipc-1234.sock", "ZELLIJ": "0",
                     "EMACS_SERVER_FILE": "{run}/emacs/server", "NVIM": "{run}/nvim",
                     "KITTY_LISTEN_ON": "unix:{run}/kitty", "XDG_RUNTIME_DIR": "{run}"})
    return HELD


@check("IP-11", prio="P1", title="/dev/shm is private both ways", catches=("dev",), null=True)
def ip11(c):
    word, back = c.uuid(), c.uuid()
    seg = Path("/dev/shm") / ("vitrine-" + secrets.token_hex(6))
    seg.write_text(word)
    seg.chmod(0o666)
    try:
        ctl = c.control(["/bin/cat", seg])
        c.need_control(word in ctl.text, f"{ctl}")
        r = c.sandbox(f"cat {seg}; grep -rs {word[:20]} /dev/shm; find /dev/shm; echo {back} >"
                      f" /dev/shm/{back}; echo x > {seg}; find /dev/shm/{back}")
        c.must(not c.leaks(r, word) and seg.name not in r.text, "the host's segment is visible")
        c.must(seg.read_text() == word, "the host's segment was written")
        c.must(back in r.text, f"no segment can be made inside: {r}")
        c.must(not os.path.exists(f"/dev/shm/{back}"), "a segment from inside is on the host")
    finally:
        seg.unlink()
        Path(f"/dev/shm/{back}").unlink(missing_ok=True)
    return HELD


@check("IP-12", prio="P1", title="locks taken inside block neither Vitrine nor the host",
       forms=("run",))
def ip12(c):
    shared = c.mkdir(c.root / "shared")
    c.plant(shared / "file", "x")
    script = ("import fcntl, os, sys, time\n"
              "held = []\n"
              "for top in sys.argv[1:]:\n"
              "    for d, _, files in os.walk(top):\n"
              "        for f in files[:200]:\n"
              "            try:\n"
              "                fd = os.open(os.path.join(d, f), os.O_RDONLY)\n"
              "                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
              "                held.append(fd)\n"
              "            except OSError: pass\n"
              "print('locked', len(held), flush=True)\n"
              "time.sleep(15)\n")
    c.plant(c.ws / "lock.py", script)
    p = c.start(["/usr/bin/python3", "lock.py", str(shared), str(c.state), str(c.config),
                 str(c.ws), "/usr/lib/locale"], flags=["--read", str(shared)])
    if not p.wait_for("locked", 10):
        c.inconclusive(f"no locks: {p.stop()}")
    for words in (["run", "--", "/bin/true"], ["explain", "--", "/bin/true"], ["doctor"]):
        t0 = time.monotonic()
        r = c.vitrine(*words, timeout=10)
        took = time.monotonic() - t0
        c.must(not r.timed_out and took < 2.0, f"{words[0]} took {took:.1f} s: {r}")
        if words[0] == "run":
            c.must(r.ok, f"a second run fails: {r}")
    p.stop()
    return HELD


@check("IP-13", prio="P1", title="no socket of any kind is handed in; socketpairs work")
def ip13(c):
    r = inside(c, "unspec", "9")
    c.must("socket fd=" not in r.text, f"a socket was handed in: {r.text!r}")
    r = c.sandbox("find / -xdev -type s 2>/dev/null; find /run /tmp /var/tmp /dev -type s"
                  " 2>/dev/null; awk 'NR > 1' /proc/net/unix; true")
    c.must(not r.text.strip(), f"sockets inside: {r.text!r}")
    r = c.sandbox(["/usr/bin/python3", "-c", "import socket; a, b = socket.socketpair();"
                   "a.send(b'x'); print(b.recv(1))"])
    c.must("b'x'" in r.text, f"socketpair does not work: {r}")
    return HELD
