# SPDX-License-Identifier: Apache-2.0
"""FW-7x, RX-3x: what the host concludes from what the inside made, and what that may cost it.

A look at a tree says "unchanged" of most files. The inside chooses how it writes, so each way of writing is tried after
each kind of look. Set-user-id and set-group-id bits must not outlive a run. Whatever the inside makes, a command of the
host ends soon and leaves no process behind."""

import itertools
import subprocess
import time

from harness import HELD, check

# ------------------------------------------------------------------------- time: between two looks

# Each way is two functions: before() is called before the look, after() behind it. Both get a path. A file has 3 pages.
WAYS = r'''
import ctypes, mmap, os, sys
P = 4096
keep = []
def opened(f, flags=os.O_RDWR):
    return os.open(f, flags)
def mapped(f, close=True, prot=mmap.PROT_READ | mmap.PROT_WRITE, length=0):
    fd = opened(f); m = mmap.mmap(fd, length, mmap.MAP_SHARED, prot)
    if close: os.close(fd)
    keep.append(m); return m
def put(m, at=0): m[at:at+1] = bytes([m[at] ^ 1])
def back(f, t): os.utime(f, ns=t)
def times(f): s = os.stat(f); return (s.st_atime_ns, s.st_mtime_ns)
def later(m, at=0): return lambda: put(m, at)

def dirty(f): m = mapped(f); put(m); return later(m)
def dirty_open(f): m = mapped(f, False); put(m); return later(m)
def only_read(f): m = mapped(f); m[0]; return later(m)
def untouched(f): m = mapped(f); return later(m)
def other_page(f): m = mapped(f); put(m); m[P]; return later(m, P)
def msync_first(f): m = mapped(f); put(m); m.flush(); put(m); return later(m)
def msynced(f): m = mapped(f); put(m); m.flush(); return later(m)
def second_map(f):
    a = mapped(f); b = mapped(f); put(a); b[0]; return later(b)
def made_writable(f):
    m = mapped(f, prot=mmap.PROT_READ | mmap.PROT_WRITE); put(m)
    a = ctypes.addressof(ctypes.c_char.from_buffer(m)); c = ctypes.CDLL(None, use_errno=True)
    c.mprotect(ctypes.c_void_p(a), 3 * P, 1)
    return lambda: (c.mprotect(ctypes.c_void_p(a), 3 * P, 3), put(m))
def by_child(f):
    m = mapped(f); put(m); r, w = os.pipe(); r2, w2 = os.pipe()
    if os.fork() == 0:
        os.read(r, 1); put(m); os.write(w2, b"x"); os.read(r, 1); os._exit(0)
    m.close(); keep.remove(m)
    return lambda: (os.write(w, b"x"), os.read(r2, 1))
def other_name(f):
    os.link(f, f + ".name"); m = mapped(f + ".name"); put(m); return later(m)
def renamed(f):
    m = mapped(f); put(m); os.rename(f, f + ".away"); os.rename(f + ".away", f); return later(m)
def by_mem(f):
    m = mapped(f); put(m); a = ctypes.addressof(ctypes.c_char.from_buffer(m))
    def go():
        fd = os.open("/proc/self/mem", os.O_RDWR); os.pwrite(fd, bytes([m[0] ^ 1]), a); os.close(fd)
    return go
def by_read(f):
    m = mapped(f); put(m); r, w = os.pipe()
    return lambda: (os.write(w, bytes([m[0] ^ 1])), os.readv(r, [memoryview(m)[:1]]))
def hole(f):
    os.truncate(f, P); os.truncate(f, 3 * P); m = mapped(f); m[P]; return later(m, P)
def written_back(f):
    t = times(f); fd = opened(f)
    return lambda: (os.pwrite(fd, b"Z", 0), back(f, t))
def appended(f):
    t = times(f); fd = opened(f, os.O_WRONLY | os.O_APPEND)
    return lambda: (os.write(fd, b"more"), os.truncate(f, 3 * P), os.pwrite(fd, b"", 0), back(f, t))
def replaced(f):
    t = times(f)
    def go():
        s = open(f, "rb").read(); open(f + ".n", "wb").write(b"Y" + s[1:]); os.rename(f + ".n", f); back(f, t)
    return go
def advised(f):
    m = mapped(f); put(m); m.madvise(mmap.MADV_DONTNEED); m[0]; return later(m)
def moved_map(f):
    m = mapped(f); put(m)
    if hasattr(m, "resize"):
        try: m.resize(2 * P)
        except Exception: pass
    return later(m)
ways = [dirty, dirty_open, only_read, untouched, other_page, msync_first, msynced, second_map, made_writable, by_child, other_name,
        renamed, by_mem, by_read, hole, written_back, appended, replaced, advised, moved_map]
'''

TURNS = r'''
groups = {}
def go(g):
    for fn in groups.pop(g): fn()
print("up", flush=True)
for line in sys.stdin:
    word, g = line.split()
    if word == "ready": groups[g] = [w(f"{w.__name__}.{g}") for w in ways]
    else: go(g)
    print(word, g, flush=True)
'''


def contents(ws):
    """What lies there, seen by the host."""
    return {p.name: p.read_bytes() for p in ws.iterdir() if p.is_file() and p.suffix not in (".py",)}


def ask(c, p, word, group):
    p.send(f"{word} {group}\n".encode())
    if not p.wait_for(f"{word} {group}", 10):
        c.inconclusive(f"no answer to {word} {group}: {p.stop()}")


def write_after_looks(c):
    """-> {number of a checkpoint: what the host saw then}. Groups: a store after the look at the start; after one look while it
    runs; after two, the second of which read nothing; after one of everything."""
    names = [w for w in WAYS.rsplit("ways = [", 1)[1].split("]")[0].replace("\n", " ").replace(" ", "").split(",")]
    groups = ["start", "once", "twice", "all"]
    for w, g in itertools.product(names, groups):
        c.plant(c.ws / f"{w}.{g}", f"{w}{g}".ljust(64, "-") * 192)
    c.plant(c.ws / "ways.py", WAYS + TURNS)
    time.sleep(0.05)  # what was changed just now is read again anyway
    name = c.new_name()
    at = {1: contents(c.ws)}
    p = c.start(["python3", "ways.py"], flags=["--name", name], stdin=subprocess.PIPE)
    if not p.wait_for("up", 20):
        c.inconclusive(f"did not start: {p.stop()}")
    for g in groups:
        ask(c, p, "ready", g)
    ask(c, p, "store", "start")

    def look(n, *words):
        time.sleep(0.05)
        at[n] = contents(c.ws)
        r = c.vitrine("checkpoint", *words, name)
        c.need_control(r.ok and f"checkpoint {n}:" in r.text, f"no checkpoint {n}: {r}")
    look(2)
    ask(c, p, "store", "once")
    look(3)
    look(4)
    ask(c, p, "store", "twice")
    look(5, "--all")
    ask(c, p, "store", "all")
    end = contents(c.ws)
    p.stdin.close()
    p.wait(10)
    c.need_control(end == contents(c.ws), "it changed after its end")
    return name, at, end, len(names) * len(groups)


def check_looks(c):
    name, at, end, n = write_after_looks(c)
    missed = set()
    for k in sorted(at, reverse=True):
        r = c.vitrine("diff", name, "--since", str(k), "--name-only")
        c.need_control(r.ok, f"diff since {k}: {r}")
        shown = set(r.text.split("\n"))
        missed |= {f"{f} (diff since {k})" for f in end if f in at[k] and end[f] != at[k][f] and f not in shown}
    for k in sorted(at, reverse=True):
        r = c.vitrine("restore", "--force", name, str(k))
        c.need_control(r.ok, f"restore {k}: {r}")
        now = contents(c.ws)
        missed |= {f"{f} (restore {k})" for f in at[k] if now.get(f) != at[k][f]}
    c.must(not missed, f"{len(missed)} changes were not seen, of {n} ways to make them: {sorted(missed)[:6]}")
    c.note(f"{n} ways x looks")
    c.vitrine("rm", "-f", name)
    return n


@check("FW-70", prio="P0", forms=("run",), catches=("writers",), timeout=120,
       title="every way of writing after every kind of look is seen by diff and taken back by restore")
def fw70(c):
    check_looks(c)
    return HELD


@check("FW-71", prio="P0", forms=("run",), idents=("root",), catches=("writers",), timeout=120,
       title="the same on a file system in memory, whose times say nothing")
def fw71(c):
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m,mode=755", "none", str(c.ws)], check=False).returncode != 0:
        c.inconclusive("no file system in memory can be mounted")
    try:
        check_looks(c)
    finally:
        subprocess.run(["umount", "-l", str(c.ws)], check=False)
    return HELD
