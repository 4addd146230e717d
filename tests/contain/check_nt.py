# SPDX-License-Identifier: Apache-2.0
"""NT - the network when none is granted: no packet of any kind leaves.

Each check lives in a network namespace of its own whose lo carries public, private and link-local
addresses with traps on them (fake_internet in outside.py). Besides the traps, the interface's
packet counter must stand still while the inside tries."""

import re
import socket
import time
from pathlib import Path

from check_ks import names_of_host
from harness import HELD, check, has_lesser_kernel
from outside import (ADDRESSES4, ADDRESSES6, THROUGH, Trap, attempts, fake_internet, inside,
                     packets, reached, verdicts, wall)

V4, V6, DGRAM = socket.AF_INET, socket.AF_INET6, socket.SOCK_DGRAM


def silence(c, traps, act):
    """`act(run)` outside reaches every trap; inside none, and not one packet is sent."""
    act(c.control)
    time.sleep(0.15)
    deaf = [t.address for t in traps if not t.log]
    c.need_control(not deaf, f"not reached outside: {deaf}")
    for t in traps:
        t.clear()
    # The probe is copied on first use and a keeper may be needed: neither talks to the network, but
    # the count begins only when nothing of the control is under way.
    before = packets()
    r = act(c.sandbox)
    time.sleep(0.15)
    sent = packets() - before
    hit = [(t.address, t.log[:2]) for t in traps if t.log]
    for t in traps:
        t.close()
    c.must(not hit, f"reached from inside: {hit}")
    c.must(sent == 0, f"{sent} packets left")
    for t in traps:
        c.must(not c.leaks(r, t.word), f"{t.address} answered inside")
    return r


def tries(c, words):
    """The same words outside and inside; inside, each must have been answered."""
    def act(run):
        if run != c.sandbox:
            return run(c.probe("each", *words))
        r = run(c.probe("each", *words), refusal_ok=True)
        if set(verdicts(r)) != set(words):
            c.inconclusive(f"not all attempts were made inside: {r}")
        return r

    return act


@check("NT-01", prio="P0", title="no TCP over IPv4 to anywhere", catches=("netns",), null=True)
def nt01(c):
    fake_internet(c)
    traps = [Trap(V4, (a, 0)) for a in ADDRESSES4]
    words = [f"tcp,{t.address[0]},{t.port},hi" for t in traps]
    extra = Trap(V4, ("0.0.0.0", 0))
    words += [f"tcp,0.0.0.0,{extra.port},hi", f"fastopen,{traps[0].address[0]},{traps[0].port},hi",
              f"mptcp,{traps[0].address[0]},{traps[0].port},hi"]
    silence(c, [*traps, extra], tries(c, words))
    return HELD


@check("NT-02", prio="P0", title="no TCP over IPv6: global, ULA, ::1, mapped",
       catches=("netns",), null=True)
def nt02(c):
    fake_internet(c)
    traps = [Trap(V6, (a, 0)) for a in (*ADDRESSES6, "::1")]
    words = [f"tcp,{t.address[0]},{t.port},hi" for t in traps]
    mapped = Trap(V4, ("127.0.0.1", 0))
    words.append(f"tcp,::ffff:127.0.0.1,{mapped.port},hi")
    if not has_lesser_kernel(c):  # where this one waits for minutes, and nobody is there
        words.append(f"tcp,fe80::1%lo,{mapped.port},hi")
    silence(c, [*traps, mapped], tries(c, words))
    return HELD


@check("NT-03", prio="P0", title="no UDP: 53, 123, 443, 1900, both families",
       catches=("netns",), null=True)
def nt03(c):
    fake_internet(c)
    ports = (53, 123, 443, 1900)
    traps = [Trap(V4, (ADDRESSES4[0], p), DGRAM) for p in ports]
    traps += [Trap(V6, (ADDRESSES6[0], p), DGRAM) for p in ports]
    traps.append(Trap(V4, ("127.0.0.1", 5353), DGRAM))
    silence(c, traps, tries(c, [f"udp,{t.address[0]},{t.port},hi" for t in traps]))
    return HELD


RESOLVE = r"""
import os, socket, struct, sys
name, server = sys.argv[1:]
def ask(name):
    q = b"".join(bytes([len(p)]) + p.encode() for p in name.split(".")) + b"\0"
    return struct.pack(">HHHHHH", 7, 256, 1, 0, 0, 0) + q + b"\0\1\0\1"
servers = [server, "8.8.8.8", "127.0.0.53", "127.0.0.1"]
try:
    servers += [l.split()[1] for l in open("/etc/resolv.conf") if l.startswith("nameserver")]
except (OSError, IndexError):
    pass
for s in servers:
    for port in (53, 5353):
        try:
            u = socket.socket(socket.AF_INET6 if ":" in s else socket.AF_INET, socket.SOCK_DGRAM)
            u.sendto(ask(name), (s, port))
        except OSError:
            pass
    for port in (53, 853):
        try:
            t = socket.create_connection((s, port), 0.3)
            t.send(struct.pack(">H", len(ask(name))) + ask(name))
            t.close()
        except OSError:
            pass
# Only inside: outside, this would ask the host's own resolver.
if os.environ.get("LOOKUP"):
    try:
        print(socket.getaddrinfo(name, 80))
    except OSError as ex:
        print(ex)
"""


@check("NT-04", prio="P0", title="no name is asked for outside: UDP, TCP, DoT, resolver",
       catches=("netns",), null=True)
def nt04(c):
    fake_internet(c)
    label = c.uuid()
    name = f"{label}.evil.test"
    server = ADDRESSES4[0]
    traps = [Trap(V4, (server, 53), DGRAM), Trap(V4, (server, 53)), Trap(V4, (server, 853)),
             Trap(V4, ("127.0.0.53", 53), DGRAM), Trap(V4, ("127.0.0.1", 5353), DGRAM)]
    c.plant(c.ws / "resolve.py", RESOLVE)

    def act(run):
        kw = {"flags": ["-e", "LOOKUP=1"]} if run == c.sandbox else {}
        return run(["/usr/bin/python3", "resolve.py", name, server], timeout=30, **kw)

    silence(c, traps, act)
    return HELD


@check("NT-05", prio="P1", title="no ping, by ICMP socket or raw",
       catches=("netns,seccomp,verify",), null=True)
def nt05(c):
    fake_internet(c)
    words = [f"ping,{a}" for a in (ADDRESSES4[0], "127.0.0.1", ADDRESSES6[0], "::1")]
    # In this namespace everybody may ping, so that it is not the host's setting that is tested.
    Path("/proc/sys/net/ipv4/ping_group_range").write_text("0 2147483647")
    before = packets()
    c.control(c.probe("each", *words))
    c.need_control(packets() >= before + len(words), "no ping outside either")
    time.sleep(0.1)
    before = packets()
    attempts(c, words)
    c.sandbox(f"ping -c1 -W1 {ADDRESSES4[0]}; true")
    c.must(packets() == before, f"{packets() - before} packets left")
    return HELD


@check("NT-06", prio="P0", title="AF_PACKET and raw sockets cannot be made",
       catches=())
def nt06(c):
    wall(c, ["sock_packet", "sock_packet_dgram", "sock_packet_old", "sock_raw4", "sock_raw4_any",
             "sock_raw6"])
    return HELD


def links_inside(c):
    return c.sandbox("cat /proc/net/dev /proc/net/route /proc/net/fib_trie /proc/net/if_inet6").text


def addresses():
    net = Path("/proc/thread-self/net")
    return [(net / n).read_text() for n in ("fib_trie", "route", "if_inet6")]


@check("NT-07", prio="P1", title="netlink changes nothing; its dangerous families are closed",
       catches=("seccomp,verify",))
def nt07(c):
    fake_internet(c)
    ctl = c.control(c.probe("asroot", "nladdr", "10.9.8.7"))
    c.need_control(ctl.rc == THROUGH, f"no address can be added outside: {ctl}")
    before, was = addresses(), re.findall(r"\d+\.\d+\.\d+\.\d+", links_inside(c))
    got = attempts(c, ["nladdr,10.9.8.7", "ifup,lo,1400"])
    c.must(THROUGH not in got.values() or has_lesser_kernel(c), f"an interface was changed: {got}")
    c.sandbox("ip addr add 10.9.8.6/32 dev lo; ip link add d0 type dummy;"
              "ip route add default dev lo; nft add table inet x; true")
    c.must(addresses() == before, "the host's addresses changed")
    after = re.findall(r"\d+\.\d+\.\d+\.\d+", links_inside(c))
    c.must(after == was, f"addresses inside changed: {after}")
    wall(c, ["sock_nl_uevent", "sock_nl_audit", "sock_nl_xfrm", "sock_nl_netfilter",
             "sock_nl_generic", "sock_nl_connector", "sock_nl_crypto"],
         absent=("sock_nl_xfrm", "sock_nl_audit", "sock_nl_connector", "sock_nl_crypto"))
    return HELD


FAMILIES = ["vsock", "alg", "tipc", "rds", "can", "xdp", "smc", "bluetooth", "qipcrtr", "kcm",
            "key", "ax25", "x25", "llc", "ieee802154", "nfc", "phonet", "caif", "rxrpc", "pppox",
            "mctp", "appletalk"]


@check("NT-08", prio="P0", title="no rare socket family; nothing is loaded for them",
       catches=("seccomp,verify",), null=True)
def nt08(c):
    words = ["sock_" + f for f in FAMILIES]
    # First inside: outside, the control itself would load what is missing.
    before = names_of_host()
    attempts(c, words)
    c.must(names_of_host() == before, "a module was loaded from inside")
    found = reached(c, words)
    wall(c, words, absent=[w for w in words if w not in found])
    c.note("reached outside:", *sorted(found))
    return HELD


@check("NT-09", prio="P0", title="services on the host's loopback", catches=("netns",), null=True)
def nt09(c):
    fake_internet(c)
    traps = [Trap(V4, ("127.0.0.1", 0)), Trap(V6, ("::1", 0)), Trap(V4, ("127.9.9.9", 0))]
    words = [f"tcp,{t.address[0]},{t.port},hi" for t in traps]
    udp = [Trap(V4, ("127.0.0.1", 0), DGRAM), Trap(V6, ("::1", 0), DGRAM)]
    words += [f"udp,{t.address[0]},{t.port},hi" for t in udp]
    silence(c, [*traps, *udp], tries(c, words))
    return HELD


@check("NT-10", prio="P0", title="ports that proxies use, on other hosts",
       catches=("netns",), null=True)
def nt10(c):
    fake_internet(c)
    traps = [Trap(V4, (ADDRESSES4[1], p)) for p in (1080, 3128, 8080, 8888, 9050)]
    silence(c, traps, tries(c, [f"tcp,{t.address[0]},{t.port},hi" for t in traps]))
    return HELD


@check("NT-11", prio="P0", title="no ring to make sockets with",
       catches=("seccomp,verify",), null=True)
def nt11(c):
    wall(c, ["io_uring_setup", "io_uring_enter", "io_uring_register", "int80_io_uring_setup"])
    return HELD


@check("NT-12", prio="P1", title="SCTP, DCCP, UDP-Lite, MPTCP, reconnecting handed-in sockets",
       catches=("netns",), null=True)
def nt12(c):
    fake_internet(c)
    trap = Trap(V4, ("127.0.0.1", 0))
    host, port = ADDRESSES4[0], trap.port
    far = Trap(V4, (host, port))
    silence(c, [trap, far], tries(c, [f"mptcp,{host},{port},hi", f"fastopen,127.0.0.1,{port},hi",
                                      "sock_sctp", "sock_dccp", "sock_udplite"]))
    # A connected socket on stdin: breaking it and pointing it at the host's loopback must not work.
    # Whoever hands one in grants that one connection; so this is asked only for what we did not.
    trap, near = Trap(V4, ("127.0.0.1", 0)), Trap(V4, ("127.0.0.1", 0))
    with socket.create_connection(near.address) as s:
        ctl = c.control(c.probe("unspec", trap.port), pass_fds=(s.fileno(),))
        c.need_control("socket fd=" in ctl.text, f"the socket is not handed on outside: {ctl}")
    with socket.create_connection(near.address) as s:
        trap.clear()
        r = inside(c, "unspec", trap.port, pass_fds=(s.fileno(),))
        time.sleep(0.1)
        c.must(not trap.log, f"a handed-in socket reached the host's loopback: {r}")
        c.must("socket fd=" not in r.text, f"a socket was handed in: {r.text!r}")
    return HELD


CLIENTS = r"""
echo hi > /dev/tcp/$H/$P; echo hi > /dev/udp/$H/$P
timeout 2 ssh -o BatchMode=yes -o ConnectTimeout=1 -p $P x@$H true </dev/null
timeout 2 git clone -q git://$H:$P/x /tmp/x1
timeout 2 git -c http.lowSpeedTime=1 clone -q http://$H:$P/x /tmp/x2
timeout 2 curl -s -m 1 http://$H:$P/; timeout 2 curl -s -m 1 --noproxy '*' http://$H:$P/
timeout 2 python3 -c "import socket; socket.create_connection(('$H', $P), 1).send(b'py')"
timeout 2 perl -MIO::Socket::INET -e 'IO::Socket::INET->new("$ENV{H}:$ENV{P}")'
timeout 2 socat -T1 - TCP:$H:$P </dev/null
timeout 2 node -e 'const s = require("net").connect(process.env.P, process.env.H);
    s.on("error", () => 0).setTimeout(500, () => s.destroy())'
true
"""


@check("NT-14", prio="P0", title="the usual clients: /dev/tcp, ssh, git, curl, python, perl, node",
       catches=("netns",), null=True)
def nt14(c):
    fake_internet(c)
    traps = [Trap(V4, (ADDRESSES4[0], 0)), Trap(V4, ("127.0.0.1", 0))]
    if c.form != "run":
        traps.pop().close()

    def act(run):
        script = "".join(f"export H={t.address[0]} P={t.port}\n{CLIENTS}\n" for t in traps)
        return run(["/bin/bash", "-c", script], timeout=50)

    silence(c, traps, act)
    return HELD


@check("NT-15", prio="P2", title="no tun device, no named namespaces")
def nt15(c):
    got = attempts(c, [*([] if has_lesser_kernel(c) else ["open,/dev/net/tun,rw"]), "open,/run/netns", "open,/var/run/netns"])
    c.must(THROUGH not in got.values(), f"can be opened: {got}")
    r = c.sandbox("cut -d: -f1 /proc/net/dev | tail -n +3")
    c.must(r.text.split() == ["lo"], f"interfaces inside: {r.text.split()}")
    return HELD
