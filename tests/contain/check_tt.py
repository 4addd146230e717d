# SPDX-License-Identifier: Apache-2.0
"""TT - the terminal: what is inside cannot type for you, take your terminal or leave it in pieces.

Every check owns a pty and the session leader on it (see Terminal in outside.py); the verdict is
what that session leader finds afterwards."""

import os
import re
import signal
import time
from pathlib import Path

from check_pr import insiders
from check_px import internet, reaches_outside
from harness import HELD, check
from outside import Terminal, wall


def pushed(c, word, flags):
    """Input that appears on the terminal while the probe pushes a key into it."""
    t = Terminal(c, c.probe(word, "Z"), flags)
    report = t.finish()
    if "queued" not in report:
        c.inconclusive(f"no report from the session leader: {report} {t.screen[-300:]!r}")
    if word.encode() not in t.screen:
        c.inconclusive(f"the probe did not run: {report} {t.screen[-300:]!r}")
    c.must("5a" not in report["queued"], f"a key arrived: {report}")
    # A pty of the sandbox's own echoes a key pushed into it; that one is its own business.
    if "-t" not in flags:
        c.must(b"Z" not in t.screen.replace(b"Z\r\n", b""), f"a key was echoed: {t.screen!r}")


def pushes_outside(c, word):
    t = Terminal(c, c.probe(word, "Z"), sandboxed=False)
    report = t.finish()
    c.need_control("5a" in report.get("queued", ""), f"no key arrives outside either: {report}")


@check("TT-01", prio="P0", title="TIOCSTI types nothing into the caller's terminal",
       catches=("seccomp,verify",), catch_ident="root", null=True)
def tt01(c):
    pushes_outside(c, "tiocsti")
    for flags in ([], ["-t"], ["-i"]):
        pushed(c, "tiocsti", flags)
    wall(c, ["ioctl_tiocsti", "int80_tiocsti"])
    return HELD


@check("TT-02", prio="P0", title="TIOCSTI with garbage in the upper half of the request",
       catches=("seccomp,verify", "seccomp-args,verify"), catch_ident="root", null=True)
def tt02(c):
    pushes_outside(c, "tiocsti_high")
    for flags in ([], ["-t"]):
        pushed(c, "tiocsti_high", flags)
    wall(c, ["ioctl_tiocsti_high", "ioctl_tioclinux_high"])
    return HELD


@check("TT-03", prio="P1", title="TIOCLINUX, TIOCCONS, TIOCSETD, KDSKBENT; the terminal stays ours",
       catches=("seccomp,verify", "pty"), null=True)
def tt03(c):
    wall(c, ["ioctl_tioclinux", "ioctl_tioccons", "ioctl_tiocsetd", "ioctl_kdskbent"])
    for flags in ([], ["-t"]):
        t = Terminal(c, c.probe("each", "steal_tty"), flags)
        report = t.finish()
        if b"steal_tty" not in t.screen:
            c.inconclusive(f"the probe did not run: {report} {t.screen[-300:]!r}")
        c.must(report.get("foreground") == "kept" and report.get("regained") == "yes",
               f"the terminal is no longer the caller's: {report}")
        # What is on 0 inside is a pty of the sandbox's own: its devpts is not the host's.
        t = Terminal(c, ["/usr/bin/stat", "-L", "-c", "dev=%d.", "/proc/self/fd/0"], flags)
        t.finish()
        m = re.search(rb"dev=(\d+)\.", t.screen)
        if not m:
            c.inconclusive(f"no terminal inside: {t.screen[-300:]!r}")
        c.must(int(m[1]) != os.stat("/dev/pts").st_dev, f"{flags}: the caller's terminal is inside")
    return HELD


HOSTILE = "\x1b]52;c;ZXZpbA==\x07\x1b[21t\x9b31m\x90q\x9c\r\b"


def control_bytes(data):
    """What a terminal would obey: C0 without newline and tab, DEL, C1 alone and in UTF-8."""
    text = data.decode("utf-8", "surrogateescape")
    return [x for x in text if (x < " " and x not in "\n\t") or "\x7f" <= x <= "\x9f"
            or "\udc80" <= x <= "\udc9f"]


PLANT = r"""#!/bin/sh
exec 2>/dev/null
mkdir -p .git/hooks .claude "$1/.git/hooks" "$1/.vscode"
printf x > ".git/hooks/$1"; printf x > .claude/settings.json
printf x > "$1/.git/hooks/pre-commit"; printf x > "$1/.mcp.json"
exit 0  # a folder may be taken away before there is a file in it
"""


@check("TT-04", prio="P0", title="Vitrine's own messages carry no escape sequence of anybody's",
       forms=("run",))
def tt04(c):
    hook = c.plant(c.ws / "plant", PLANT, 0o755)
    shown = {}
    for flags in ([], ["--json"]):
        r = c.sandbox([hook, HOSTILE], flags=flags)
        c.must(r.err.strip(), "nothing was taken into quarantine")
        shown[f"messages of a run {flags}"] = r.err
    for words in (["explain", "--", HOSTILE, HOSTILE], ["explain", "--json", "--", HOSTILE],
                  ["run", "--", "/bin/" + HOSTILE], ["run", "--name", HOSTILE, "--", "/bin/true"],
                  ["run", "--read", "/" + HOSTILE, "--", "/bin/true"],
                  ["run", "--workspace", "/" + HOSTILE, "--", "/bin/true"],
                  ["run", "--memory", HOSTILE, "--", "/bin/true"],
                  ["run", "--policy", HOSTILE, "--", "/bin/true"],
                  ["run", "--user", HOSTILE, "--", "/bin/true"],
                  ["run", "--" + HOSTILE, "--", "id"], ["run", "-e", HOSTILE, "--", "/bin/true"],
                  ["exec", HOSTILE, "--", "id"], ["policy", "check", HOSTILE], [HOSTILE]):
        r = c.vitrine(*words)
        shown["vitrine " + " ".join(words[:2]).replace(HOSTILE, "X")] = r.out + r.err
    bad = c.mkdir(c.home / HOSTILE)
    r = c.vitrine("explain", "--", "/bin/true", cwd=bad)
    shown["a workspace with a hostile name"] = r.out + r.err
    c.plant(c.ws / ".vitrine.jsonc", '{"' + HOSTILE + '": 1}')
    r = c.vitrine("run", "--", "/bin/true")
    shown["a hostile policy"] = r.out + r.err
    dirty = [k for k, v in shown.items() if control_bytes(v)]
    c.must(not dirty, f"{len(dirty)} of {len(shown)} pass control characters: {dirty}; the first: "
           f"{shown[dirty[0]][-200:] if dirty else b''!r}")
    return HELD


@check("TT-05", prio="P1", title="modes of the terminal are restored when the inside is killed",
       catches=())
def tt05(c):
    t = Terminal(c, c.probe("ttymess", "20"), ["-t"])
    if not t.seen(b"\x1b[?1049h") or not t.seen(b"ttymess"):
        c.inconclusive(f"the probe did not run: {t.finish(2)} {t.screen[-300:]!r}")
    victims = [p for p in insiders() if cmdline(p).startswith(os.fsencode(c.probe("ttymess")[0]))]
    if not victims:
        c.inconclusive("the probe inside was not found")
    for p in victims:
        os.kill(p, signal.SIGKILL)
    report = t.finish()
    c.must(report.get("modes") == "same", f"the terminal's modes are not as before: {report}")
    c.must(report.get("regained") == "yes", f"the terminal is lost: {report}")
    if c.form == "grandchild":
        return HELD                                        # its shell ended in good order
    tail = t.screen[t.screen.rindex(b"\x1b[?1049h"):]
    for name, code in (("alternate screen", b"1049l"), ("mouse", b"1000l"),
                       ("bracketed paste", b"2004l"), ("cursor", b"25h")):
        c.must(re.search(rb"\x1b\[\?[0-9;]*" + code, tail), f"{name} was left on: {tail[-200:]!r}")
    return HELD


def cmdline(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@check("TT-08", prio="P2", title="foreground tricks and a storm of window sizes")
def tt08(c):
    for flags in ([], ["-t"]):
        t = Terminal(c, c.probe("fgsteal", "1000"), flags)
        report = t.finish()
        if b"fgsteal" not in t.screen:
            c.inconclusive(f"the probe did not run: {report} {t.screen[-300:]!r}")
        c.must(report.get("regained") == "yes", f"the shell cannot take its terminal: {report}")
        c.must(report.get("modes") == "same", f"modes changed: {report}")
        c.must(int(report.get("status", 255)) < 124, f"vitrine broke: {report}")
    return HELD


# Its own question, in the words and colours of the real one, then the connection that makes the real one come.
LURE = r"""
stty -echo
printf '\r\n\033[0m\033[7m vitrine %s \033[0m may it reach ok.test:80?  o once  s this session  a always  n no  ' "$VITRINE"
while [ ! -e go ]; do sleep 0.02; done
curl -s -m 20 -o /dev/null http://evil.test/lured
echo; echo over
"""
ASKED = b"may it reach evil.test:80?"
TYPED_FOR = 0.3      # seconds; less than the real question is deaf for


def answered(c, keys, flags):
    """Types `keys` at the false question until shortly after the real one may have come. -> (terminal, was it typed in
    time): the real one cannot be older than the file that lets the inside go on."""
    go = c.ws / "go"
    t = Terminal(c, ["sh", "-c", LURE], flags)
    if not t.seen(b"may it reach ok.test:80?", 20):
        c.inconclusive(f"the script did not begin: {t.finish(1)} {t.screen[-300:]!r}")
    c.plant(go)
    began = time.monotonic()
    while keys and time.monotonic() < began + TYPED_FOR:
        t.type(keys)
        time.sleep(0.01)
    in_time = time.monotonic() < began + TYPED_FOR + 0.08
    if not t.seen(ASKED, 20):
        c.inconclusive(f"nobody asked: {t.finish(1)} {t.screen[-300:]!r}")
    go.unlink()
    return t, in_time


@check("TT-07", prio="P0", catches=("deaf",), timeout=120,
       title="keys typed at a false question, or ahead, do not answer the real one")
def tt07(c):
    flags = ["-t", "-i", "--allow", "ok.test", "--ask"]
    with internet(c) as net:
        reaches_outside(c, net, "evil.test")
        for tries in range(4):
            t, in_time = answered(c, b"oas", flags)
            if not in_time:                                # we ourselves were kept waiting
                t.type(b"\x03")
                t.finish(1)
                net.clear()
                continue
            time.sleep(0.7)
            c.must(not net.hits("evil.test"), f"keys typed ahead opened it: {t.screen[-400:]!r}")
            c.must(f"vitrine {t.keeper.name} ".encode() in t.screen if t.keeper else b"vitrine run-" in t.screen,
                   f"it does not say which run asks: {t.screen[-300:]!r}")
            t.type(b"n")
            c.must(t.seen(b"over", 20), f"a no is not taken: {t.screen[-300:]!r}")
            t.finish()
            break
        else:
            c.inconclusive("never typed in time")
        c.must(not net.hits("evil.test"), "a no opened it")
        # The same question, read first and then answered: the wall is about when, not about what.
        t, _ = answered(c, b"", flags)
        time.sleep(0.7)
        t.type(b"o")
        c.need_control(t.seen(b"over", 20) and net.hits("evil.test"), f"a yes is not taken either: {t.screen[-300:]!r}")
        t.finish()
    return HELD
