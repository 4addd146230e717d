# SPDX-License-Identifier: Apache-2.0
"""FW-7x, RX-3x: what the host concludes from what the inside made, and what that may cost it.

A look at a tree says "unchanged" of most files. The inside chooses how it writes, so each way of writing is tried after
each kind of look. Set-user-id and set-group-id bits must not outlive a run. Whatever the inside makes, a command of the
host ends soon and leaves no process behind."""

import itertools
import os
import shutil
import signal
import stat
import subprocess
import time
from pathlib import Path

from harness import HELD, check, descendants, needs_hosts_kernel

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


# ------------------------------------------------------------------- cost: what the inside made, and its bound

MOST = 30.0  # seconds that one command of the host may take; the slowest of these took 4 s beside others

# Each makes something in the current directory.
SHAPES = {
    "hole": "os.truncate(new('hole'), 8 << 40)",
    "end": "os.truncate(new('end'), 8 << 40); poke('end', 8000 << 30)",
    "tera": "os.truncate(new('tera'), 1 << 40); poke('tera', 1000 << 30)",
    "teras": "[os.truncate(new(f't{i}'), 1 << 40) for i in range(20)]",
    "comb": "[poke(new('comb'), i << 20) for i in range(300)]",
    "links": "new('first'); [os.link('first', f'l{i}') for i in range(1500)]",
    "stars": "open('.gitignore', 'w').write(stars); [os.mkdir('a' * 240 + str(i)) for i in range(450)]",
    "everywhere": "open('.gitignore', 'w').write(stars); [(os.mkdir(f'e{i}'), os.link('.gitignore', f'e{i}/.gitignore')) for i in range(100)]",
    "ignored": "open('.gitignore', 'w').write('i*\\n'); [os.mkdir(f'i{i}') for i in range(1500)]",
    "long": "open('.gitignore', 'w').write('x' * 300000); os.mkdir('sub'); new('sub/f')",
}
MAKER = r"""
import os, sys
stars = ("*" + "a" * 119 + "b\n") * 2100
def new(f): os.close(os.open(f, os.O_WRONLY | os.O_CREAT, 0o644)); return f
def poke(f, at): fd = os.open(f, os.O_WRONLY); os.pwrite(fd, b"x", at); os.close(fd)
os.mkdir(sys.argv[1])
for where in (sys.argv[1], os.path.expanduser("~")):
    os.chdir(where)
    exec(sys.argv[2])
print("made")
"""

# What the host does with it: words behind the program's name; N is the sandbox, T another name, F a file outside.
VERBS = {"direct": [["checkpoint", "N"], ["checkpoint", "--all", "N"], ["diff", "N", "--stat"], ["save", "N", "T"], ["undo", "N"]],
         "review": [["diff", "N", "--stat"], ["save", "N", "T", "-o", "F"]]}


def command_of(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return ""


def is_there(pid):
    """Alive, and not only waiting to be collected."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


@check("RX-30", prio="P0", forms=("run",), catches=("holes,lengths", "ignore"), timeout=240,
       title="ten shapes that are cheap to make and dear to read: seven commands of the host end in order with each")
def rx30(c):
    slow = []
    for mode, (shape, make) in itertools.product(("direct", "review"), SHAPES.items()):
        name = c.new_name()
        r = c.vitrine("run", "--name", name, "--mode", mode, "--", "python3", "-c", MAKER, shape, make, timeout=60)
        c.need_control("made" in r.text, f"{shape} was not made: {r}")
        for words in VERBS[mode]:
            words = [{"N": name, "T": "t-" + name, "F": str(c.state / (name + ".tar"))}.get(w, w) for w in words]
            r = c.vitrine(*words, timeout=MOST)
            if r.timed_out or r.rc is None or r.rc < 0 or r.rc == 139:
                slow.append(f"{shape} {mode}: {words[0]}: {r}")
                break
            elif not r.ok:
                c.must_say(r.errtext.strip() or r.text.strip(), f"{shape}: {words[0]} failed without a word")
        c.vitrine("rm", "-f", name)
        with c.host_edit():
            shutil.rmtree(c.ws / shape, ignore_errors=True)
        (c.state / (name + ".tar")).unlink(missing_ok=True)
        if slow:
            break
    c.must(not slow, "; ".join(slow))
    c.note(f"{len(SHAPES) * sum(map(len, VERBS.values()))} shapes x commands")
    return HELD


@check("RX-31", prio="P0", forms=("run",), catches=("tied",), timeout=60,
       title="the worker of a command that is killed dies with it")
def rx31(c):
    name = c.new_name()
    r = c.vitrine("run", "--name", name, "--", "sh", "-c", "head -c 60M /dev/zero | tr '\\0' x >~/big; echo made", timeout=60)
    c.need_control("made" in r.text, f"not made: {r}")
    popen = c._popen([c.cfg.vitrine, "save", name, "tag"], env=c._vitrine_env(None))
    worker = []

    def found():
        worker[:] = [pid for pid, _ in descendants(popen.pid) if command_of(pid).startswith("/vitrine-image")]
        return worker
    c.need_control(c.wait_until(found, 20, 0.005), "no worker was seen")
    os.kill(worker[-1], signal.SIGSTOP)  # it cannot end by itself now
    below = [pid for pid, _ in descendants(popen.pid)]
    popen.kill()
    popen.wait()
    gone = c.wait_until(lambda: not any(is_there(x) for x in below), 5)
    left = [f"{x} {command_of(x)}" for x in below if is_there(x)]
    for x in below:
        if is_there(x):
            os.kill(x, signal.SIGKILL)
    c.must(gone, f"still there: {left}")
    r = c.vitrine("save", name, "tag", timeout=30)
    c.must_say(r.ok, f"the next one does not work: {r}")
    c.vitrine("rm", "-f", name)
    return HELD


# --------------------------------------------------------------- set-user-id and set-group-id bits

# Ways to make a file with bits of its mode, places for it, and what becomes of it then. All of it is tried; what the inside
# has when it is done is printed.
BITS = r'''
import ctypes, itertools, os, struct, sys
os.umask(0)
libc = ctypes.CDLL(None, use_errno=True)
call = lambda *a: libc.syscall(*[ctypes.c_long(x) if isinstance(x, int) else x for x in a])
def b(f): return ctypes.c_char_p(os.fsencode(f))
def plain(f):
    with open(f, "w") as x: x.write("#!/bin/sh\nid\n")
def w_chmod(f, m): plain(f); os.chmod(f, m)
def w_fchmod(f, m): plain(f); fd = os.open(f, os.O_RDONLY); os.fchmod(fd, m); os.close(fd)
def w_fchmodat(f, m): plain(f); call(268, -100, b(f), m)
def w_fchmodat2(f, m): plain(f); call(452, -100, b(f), m, 0)
def w_open(f, m): os.close(os.open(f, os.O_CREAT | os.O_WRONLY, m))
def w_creat(f, m): call(85, b(f), m)
def w_openat2(f, m): call(437, -100, b(f), ctypes.c_char_p(struct.pack("QQQ", os.O_CREAT | os.O_WRONLY, m, 0)), 24)
def w_mknod(f, m): call(133, b(f), 0o100000 | m, 0)
def w_mknodat(f, m): call(259, -100, b(f), 0o100000 | m, 0)
def w_tmpfile(f, m):
    fd = os.open(os.path.dirname(f), os.O_TMPFILE | os.O_RDWR, m & 0o777); os.write(fd, b"x"); os.fchmod(fd, m)
    os.link(f"/proc/self/fd/{fd}", f, follow_symlinks=True); os.close(fd)
def w_mapped(f, m):
    import mmap
    w_open(f, 0o755); os.truncate(f, 4096); os.chmod(f, m & ~0o4000 | 0o2000); fd = os.open(f, os.O_RDWR); x = mmap.mmap(fd, 4096); x[:2] = b"#!"; os.close(fd)
def t_stays(f): pass
def t_moved(f): os.rename(f, f + ".moved")
def t_linked(f): os.link(f, f + ".link")
def t_closed(f): os.mkdir(f + ".d"); os.rename(f, f + ".d/x"); os.chmod(f + ".d", 0o011)
def t_listed(f): os.mkdir(f + ".r"); os.rename(f, f + ".r/x"); os.chmod(f + ".r", 0o455)
ways = [v for k, v in sorted(globals().items()) if k.startswith("w_")]
turns = [v for k, v in sorted(globals().items()) if k.startswith("t_")]
for place in sys.argv[1:]:
    os.makedirs(place, exist_ok=True)
    for w, m, t in itertools.product(ways, (0o4755, 0o2755, 0o6711), turns):
        f = f"{place}/{w.__name__}.{m:o}.{t.__name__}"
        try:
            w(f, m)
            if os.path.exists(f) and os.stat(f).st_mode & 0o6000: print("has", f, flush=True)
            t(f)
        except OSError: pass
os.makedirs("shared", exist_ok=True); os.chmod("shared", 0o2775)
print("done", flush=True)
sys.stdin.readline()
'''


def with_bits(*roots):
    """Regular files with such a bit. We are root here, or their owner."""
    found = []
    for root in roots:
        for d, _, files in os.walk(root):
            found += [f"{d}/{f}" for f in files if os.lstat(f"{d}/{f}").st_mode & 0o6000 and stat.S_ISREG(os.lstat(f"{d}/{f}").st_mode)]
    return found


@check("FW-72", prio="P0", forms=("run",), catches=("set-id", "notice"), timeout=120,
       title="no way of making a set-user-id or set-group-id file outlives the run; each is reported; directories keep theirs")
def fw72(c):
    needs_hosts_kernel(c, "files of the host")
    grant = c.mkdir(c.root / "grant")
    own = c.plant(c.ws / "own", "the host's\n")
    own.chmod(0o4755)
    c.plant(c.ws / "bits.py", BITS)
    # So many that several processes look at them, in directories that nothing else changes.
    for i in range(100):
        for j in range(45):
            c.plant(c.ws / f"old/{i}/{j}", "#!/bin/sh\n")
    changed = [str(c.ws / f"old/{i}/{i % 45}") for i in range(0, 100, 7)]
    time.sleep(1.3)  # what the host made long before stays
    name = c.new_name()
    c.vitrine("run", "--name", name, "--", "true")
    r = c.vitrine("run", "--json", "--", "chmod", "g+s", *changed)
    left = [f for f in with_bits(c.ws) if f != str(own)]
    c.must(not left, f"the host's own files got a bit and keep it: {left[:5]} {r}")
    told = {x["path"] for x in r.json().get("unprivileged", [])}
    c.must_say(told == set(changed), f"{len(changed)} were changed, and reported are {sorted(told)}")
    p = c.start(["python3", "bits.py", str(c.ws / "a/b"), str(c.ws / ".git/objects"), str(c.ws), str(grant)],
                flags=["--name", name, "--write", str(grant), "--json"], stdin=subprocess.PIPE)
    if not p.wait_for("done", 30):
        c.inconclusive(f"not done: {p.stop()}")
    r = c.vitrine("checkpoint", name)
    c.need_control(r.ok and "checkpoint" in r.text, f"no checkpoint: {r}")
    k = r.text.split()[1].rstrip(":")
    p.send(b"\n")
    r = p.wait(30)
    made = [x for x in r.text.split("\n") if x.startswith("has ")]
    c.need_control(len(made) > 100, f"only {len(made)} were made inside: {r}")
    left = [f for f in with_bits(c.ws, grant) if f != str(own)]
    c.must(not left, f"{len(left)} of {len(made)} are left: {left[:5]}")
    told = r.json().get("unprivileged", [])
    c.must_say(len(told) == 100 and all(x["rule"] and x["path"] for x in told), f"{len(told)} are reported, which should be the first 100")
    c.must_say((c.ws / "shared").stat().st_mode & 0o2000, "a directory lost its set-group-id bit")
    if "tmpfs" not in fs_of(c.ws):
        c.must_say(own.stat().st_mode & 0o4000, "a file that the host had made long before lost its bit")
    r = c.vitrine("restore", "--force", name, k)
    left = [f for f in with_bits(c.ws) if f != str(own)]
    c.must(not left, f"restore of a checkpoint that was made meanwhile brought {len(left)} back: {left[:5]}")
    c.vitrine("rm", "-f", name)
    return HELD


def fs_of(path):
    return subprocess.run(["stat", "-f", "-c", "%T", str(path)], capture_output=True, text=True, check=False).stdout


@check("FW-73", prio="P1", forms=("run",), idents=("root",), catches=("set-id",), timeout=60,
       title="on a file system in memory a host's own set-user-id file loses its bit: a mapping may have changed it")
def fw73(c):
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m,mode=755", "none", str(c.ws)], check=False).returncode != 0:
        c.inconclusive("no file system in memory can be mounted")
    try:
        own = c.plant(c.ws / "own", "the host's".ljust(4096))
        own.chmod(0o4755)
        time.sleep(1.3)
        r = c.sandbox("python3 -c 'import mmap,os; m=mmap.mmap(os.open(\"own\",os.O_RDWR),0); m[0]; m[:4]=b\"evil\"'")
        c.need_control(own.read_bytes().startswith(b"evil"), f"it was not changed: {r}")
        c.must(not own.stat().st_mode & 0o6000, "changed by the inside, and still set-user-id")
    finally:
        subprocess.run(["umount", "-l", str(c.ws)], check=False)
    return HELD
