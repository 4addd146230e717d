# SPDX-License-Identifier: Apache-2.0
"""FW-110 to FW-114: what is protected does not depend on the list of a tree's directories (src/view/index.h).

A start takes directories that did not change from the list which the last sweep left. Each check makes one, then a change
that a list which is believed too readily would hide.
"""

import os
import struct
import time

from check_lc import keepers, kill_all
from harness import HELD, Ctx, check

DIRS = 90
HEAD, ENTRY = 136, struct.Struct("<Qqq10I")
TRUSTED, OLD_NS = 1, 20_000_000


def lists(c):
    """The lists in the state directory, without the marks of sandboxes."""
    folder = c.state / "vitrine" / "index"
    with c.host_edit():
        return [p for p in folder.iterdir() if not p.name.endswith(".live")] if folder.is_dir() else []


def listed(c, flags=()):
    """A tree with a list: made, grown old, and looked through by a sandbox."""
    for i in range(DIRS):
        c.plant(c.ws / f"t{i % 9}" / f"d{i}" / "file", "x")
    time.sleep(0.1)
    c.sandbox("true", flags=flags)
    c.need_control(c.wait_until(lambda: len(lists(c)) > 0, timeout=10.0), "no list was written")
    # The next one believes it.
    c.sandbox("true", flags=flags)


@check("FW-110", prio="P0", catches=("index-trust,set-id",), forms=("run",), timeout=60,
       title="names made inside in directories that a list knows are taken at the end")
def fw110(c: Ctx):
    listed(c)
    bad = ["t0/d0/.mcp.json", "t1/d1/new/.mcp.json", ".mcp.json", "t2/moved/.mcp.json"]
    script = ("cd t0/d0 && : > .mcp.json; cd ../..; mkdir t1/d1/new; : > t1/d1/new/.mcp.json; : > .mcp.json; "
              "mv t2/d2 t2/moved; : > t2/moved/.mcp.json; touch -d @1 t0/d0 t1/d1 t2 .")
    c.sandbox(script)
    left = [n for n in bad if (c.ws / n).exists()]
    c.must(not left, f"still there: {left}")
    return HELD


@check("FW-111", prio="P0", catches=("index-trust",), forms=("run",), timeout=60,
       title="what another sandbox or the host left in a listed tree is hidden and protected by the next start")
def fw111(c: Ctx):
    listed(c)
    word = c.uuid()
    # A sandbox of a directory below may leave what its own policy takes back.
    r = c.vitrine("run", "--", "sh", "-c", f"echo {word} > note; mkdir sub", cwd=c.ws / "t3" / "d3")
    c.need_control(r.ok, f"the other sandbox: {r}")
    c.plant(c.ws / "t3" / "d3" / ".env", word)
    c.plant(c.ws / "t4" / "d4" / ".mcp.json", "{}")
    c.mkdir(c.ws / "t5" / "prepared")
    c.plant(c.ws / "t5" / "prepared" / "in" / ".env", word)
    with c.host_edit():
        os.rename(c.ws / "t5" / "prepared", c.ws / "t6" / "d6" / "prepared")
    r = c.sandbox("cat t3/d3/.env t6/d6/prepared/in/.env; echo y > t4/d4/.mcp.json")
    c.must(word not in r.text, f"a hidden file was read: {r}")
    c.must((c.ws / "t4/d4/.mcp.json").read_text() == "{}", "a protected file was written")
    return HELD


@check("FW-112", prio="P0", catches=("index-rules",), forms=("run",), timeout=60,
       title="a list that was made for other rules does not count")
def fw112(c: Ctx):
    word = c.uuid()
    c.plant(c.ws / "t3" / "d3" / "plain.secret", word)
    listed(c)
    r = c.sandbox("cat t3/d3/plain.secret")
    c.need_control(word in r.text, f"without a rule it is not to be read either: {r}")
    r = c.sandbox("cat t3/d3/plain.secret", flags=("--hide", "*.secret"))
    c.must(word not in r.text, f"a hidden file was read: {r}")
    return HELD


@check("FW-113", prio="P1", catches=("index-young",), forms=("run",), timeout=120,
       title="a directory that changed just before it was looked at is not believed the next time")
def fw113(c: Ctx):
    listed(c)
    for i in range(25):
        old = {p: p.stat().st_ino for p in lists(c)}
        # Something that has grown old since, so that there is a new list, and something that is young.
        c.plant(c.ws / f"t{i % 9}" / f"more{i}", "x")
        time.sleep(0.05)
        c.sandbox(["touch", f"t7/d7/young{i}"])
        c.need_control(c.wait_until(lambda: any(old.get(p) != p.stat().st_ino for p in lists(c)), timeout=10.0),
                       "no new list was written")
        for path in lists(c):
            with c.host_edit():
                data, written = path.read_bytes(), path.stat().st_mtime_ns
            count = struct.unpack_from("<I", data, 12)[0]
            for k in range(count):
                _, sec, _, nsec, _, flags, *_ = ENTRY.unpack_from(data, HEAD + k * ENTRY.size)
                age = written - (sec * 1_000_000_000 + nsec)
                c.must(not flags & TRUSTED or age > OLD_NS, f"entry {k} is believed, {age / 1e6:.1f} ms old")
    return HELD


@check("FW-114", prio="P1", catches=("index-live",), forms=("run",), timeout=60,
       title="after a keeper that was killed the next start reads every directory")
def fw114(c: Ctx):
    listed(c)
    before = {p.name: p.stat().st_ino for p in lists(c)}
    p = c.start("echo made; read x", stdin=-1)
    c.need_control(p.wait_for("made", 20), f"the command did not run: {p.err!r}")
    found = keepers(c)
    c.need_control(found, "no keeper is to be found")
    kill_all(found)
    p.stop()
    r = c.start("echo made; read x", stdin=-1)
    c.need_control(r.wait_for("made", 20), f"the command did not run: {r.err!r}")
    after = {p.name: p.stat().st_ino for p in lists(c)}
    r.send("x\n")
    r.stop()
    c.must(not set(before.items()) & set(after.items()), f"the list of before the death is still there: {after}")
    return HELD
