# SPDX-License-Identifier: Apache-2.0
"""FR: reading what was not granted. Canaries lie in OUT and HOME; they must not come out."""

import os
from pathlib import Path
import shlex
import time

from harness import HELD, OWN_DEVICES, Ctx, check, has_lesser_kernel

q = shlex.quote


def secret(c: Ctx):
    """OUT/secret with a canary in it."""
    u = c.uuid()
    return u, c.plant(c.out / "secret", u + "\n")


def reads_nothing(c: Ctx, script, u, flags=(), each=True, **kw):
    """Every line of the script prints the canary outside and none does inside."""
    lines = script if isinstance(script, list) else [script]
    for line in lines if each else ["\n".join(lines)]:
        c.need_control(u in c.control(line).text, f"outside too nothing comes out of: {line}")
    r = c.sandbox("\n".join(lines), flags=flags, **kw)
    c.must(not c.leaks(r, u), f"the canary came out: {r}")
    return r


@check("FR-01", prio="P0", null=True, catches=("pivot,landlock",),
       title="read outside by absolute path, ../ chain, /proc/self/cwd")
def fr01(c: Ctx):
    u, s = secret(c)
    up = os.path.relpath(s, c.ws)
    # A root that was left mounted over the new one is reached by going up from "/".
    reads_nothing(c, [f"cat {q(str(s))}", f"cat {q(up)}", f"cat {q('/proc/self/cwd/' + up)}",
                      f"cd {q(str(c.ws))} && cd ../../.. && cat out/secret",
                      f"cat {q('/..' + str(s))}", f"cat {q('../' * 40 + str(s)[1:])}"], u)
    return HELD


@check("FR-02", prio="P0", null=True, catches=("pivot,landlock",),
       title="read outside through symlinks made before and during the run")
def fr02(c: Ctx):
    u, s = secret(c)
    rel = os.path.relpath(s, c.ws)
    c.symlink(c.ws / "abs", s)
    c.symlink(c.ws / "rel", rel)
    c.symlink(c.ws / "chain1", "chain2")
    c.symlink(c.ws / "chain2", "rel")
    c.symlink(c.ws / "dir", c.out)
    reads_nothing(c, ["cat abs", "cat rel", "cat chain1", "cat dir/secret",
                      f"ln -sf {q(str(s))} new-abs; cat new-abs",
                      f"ln -sf {q(rel)} new-rel; cat new-rel",
                      "ln -sfn new-abs new-chain; cat new-chain",
                      "ln -sf /proc/self/cwd/dir/secret magic; cat magic",
                      f"ln -sf {q('/..' + str(s))} above; cat above"], u)
    return HELD


@check("FR-03", prio="P0", null=True, title="read outside through /proc/*/root", catches=("pivot,landlock",))
def fr03(c: Ctx):
    u, s = secret(c)
    tries = [f"cat /proc/self/root{q(str(s))}", f"cat /proc/self/root/..{q(str(s))}", f"cat /proc/thread-self/root{q(str(s))}",
             f"cat /proc/$$/root{q(str(s))}", f"cat /proc/$$/task/$$/root{q(str(s))}"]
    more = [f"cat /proc/$PPID/root{q(str(s))}", f"for p in /proc/[0-9]*; do cat $p/root{q(str(s))}; done"]
    for line in tries:
        c.need_control(u in c.control(line).text, f"outside too nothing comes out of: {line}")
    r = c.sandbox("\n".join(tries + more))
    c.must(not c.leaks(r, u), f"the canary came out: {r}")
    return HELD


@check("FR-04", prio="P1", null=True, title="links below /proc/PID lead nowhere outside")
def fr04(c: Ctx):
    u, s = secret(c)
    up = os.path.relpath(s, c.ws)
    script = ("for p in PIDS; do\n"
              "  for l in $p/cwd $p/exe $p/root $p/fd/* $p/map_files/*; do readlink $l; done\n"
              f"  cat $p/root{q(str(s))} $p/cwd/{q(up)} $p/cwd/secret\n"
              "done 2>/dev/null; readlink /proc/self/exe")
    # Outside our own process must do: what else runs there is nobody's business.
    control = c.control(script.replace("PIDS", "/proc/$$ /proc/self"))
    c.need_control(u in control.text, "outside too nothing comes out")
    r = c.sandbox(script.replace("PIDS", "/proc/[0-9]* /proc/self"))
    c.must(not c.leaks(r, u), f"the canary came out: {r}")
    c.need_control("readlink" in r.text, f"no link could be read at all: {r}")
    for word, what in ((c.out, "OUT"), (c.state, "the state directory"), (c.cfg.vitrine, "our program")):
        c.must(str(word) not in r.text, f"a link shows {what}: {r.text}")
    return HELD


@check("FR-05", prio="P1", null=True, catches=("home",), catch_ident="user",
       title="a grant of ~/proj is no grant of ~/proj-secret")
def fr05(c: Ctx):
    u, v, w = c.uuid(), c.uuid(), c.uuid()
    a = c.plant(c.home / "proj-secret" / "x", u)
    b = c.plant(c.home / ".ssh" / "x", v)
    d = c.plant(c.home / "proj.bak", w)
    ok = c.plant(c.home / ".sshfoo" / "x", "granted-file\n")
    script = f"cat {q(str(a))} {q(str(b))} {q(str(d))}; cat {q(str(ok))}"
    r = c.control(script)
    c.need_control(all(x in r.text for x in (u, v, w)), "outside too they cannot be read")
    r = c.sandbox(script, flags=["--read", str(c.home / ".sshfoo")])
    c.need_control("granted-file" in r.text, f"the grant itself does not work: {r}")
    c.must(not any(c.leaks(r, x) for x in (u, v, w)), f"a canary came out: {r}")
    return HELD


HIDE_TRIES = ["cat conf/a.env", "cp conf/a.env copy; cat copy", "dd if=conf/a.env", "cat < conf/a.env",
              "ln conf/a.env conf/hard; cat conf/hard", "ln -s conf/a.env soft; cat soft",
              "mv conf/a.env conf/a.txt; cat conf/a.txt", "mv conf conf2; cat conf2/a.env conf2/a.txt",
              "cat /proc/self/cwd/conf*/a.*", "tar cf - conf*", "cat conf/../conf/a.env"]


@check("FR-06", prio="P1", null=True, catches=("hide",),
       title="hidden by glob: cat, copy, link, rename it or its parent, read again")
def fr06(c: Ctx):
    u = c.uuid()
    c.plant(c.ws / "conf" / "a.env", f"{u}\n")
    r = c.control("cat conf/a.env; cp conf/a.env x; cat x; rm x")
    c.need_control(r.text.count(u) == 2, "outside too it cannot be read")
    r = c.sandbox("\n".join(HIDE_TRIES), flags=["--hide", "**/*.env"])
    c.must(not c.leaks(r, u), f"the canary came out: {r}")
    return HELD


@check("FR-06b", prio="P1", null=True, catches=("pins",),
       title="a hidden file's parent cannot be renamed away for the next run")
def fr06b(c: Ctx):
    u = c.uuid()
    c.plant(c.ws / "a" / "conf" / "key", f"{u}\n")
    r = c.control("mv a b && cat b/conf/key && mv b a")
    c.need_control(u in r.text, "outside too the parent cannot be renamed")
    flags = ["--hide", "a/conf/key"]
    r1 = c.sandbox("mv a b; mv a/conf a/c2; mv b/conf b/c2", flags=flags)
    r2 = c.sandbox("cat a/conf/key b/conf/key a/c2/key b/c2/key; true", flags=flags)
    c.must(not c.leaks(r1, u) and not c.leaks(r2, u), f"the canary came out: {r2}")
    c.must((c.ws / "a" / "conf" / "key").exists(), "the parent of a hidden file was renamed")
    return HELD


@check("FR-07", prio="P2", forms=("run", "exec"),
       title="a file that appears under a hidden name during the run: as docs/SECURITY.md says, not hidden")
def fr07(c: Ctx):
    """Who made it cannot be told: it may be the agent's own. So hiding is decided at the start, the document says so,
    and this check fails when either of the two changes without the other."""
    u = c.uuid()
    c.plant(c.ws / "conf" / "a.env", "early\n")
    poll = "while [ ! -e stop ]; do cat conf/new.env conf/a.env 2>/dev/null; sleep 0.05; done; echo polled"
    r = polled(c, poll, ["--hide", "**/*.env"], lambda: c.plant(c.ws / "conf" / "new.env", u + "\n"))
    text = (Path(__file__).resolve().parents[2] / "docs" / "SECURITY.md").read_text()
    documented = "hidden name that did not exist at the start" in text
    c.must(documented == (u.encode() in r.late), f"documented: {documented}, found: {r}")
    c.must(b"early" not in r.out, f"a name that was there was readable: {r}")
    return HELD


def polled(c: Ctx, script, flags, change, settle=1.0, watch=0.5):
    """Run the polling script, make the change on the host, and keep apart what was printed before it
    (Result.before) and later than `settle` seconds after it (Result.late). In between lies the window in which
    the kernel has dropped the mask together with the old name and nobody has put it back yet."""
    p = c.start(f"echo polling; {script}", flags=flags)
    if not p.wait_for("polling"):
        c.inconclusive(f"the reader did not start: {p.stop()}")
    time.sleep(0.15)
    c.need_control(p.alive, f"the reader ended at once: {p.out!r} {p.err!r}")
    before = p.out
    change()
    time.sleep(settle)
    seen = len(p.out)
    time.sleep(watch * c.cfg.patience)  # a slow reader comes by less often
    alive = p.alive
    c.plant(c.ws / "stop")
    r = p.wait()
    c.need_control(alive and b"polled" in r.out, f"the reader ended early: {r}")
    # What the pipe still held belongs to the time before: one reading may straddle the border.
    r.late = r.out[seen:].split(b"\n", 1)[-1]
    r.before = before
    return r


def editor_save(c: Ctx, path, text):
    """As editors and git do it: a new file, then a rename over the old name."""
    tmp = c.plant(path.with_name(path.name + ".tmp~"), text)
    os.rename(tmp, path)


@check("FR-16", prio="P0", null=True, catches=("remask",), forms=("run", "exec"),
       title="a hidden file replaced on the host by rename is masked again within 1 s")
def fr16(c: Ctx):
    u = c.uuid()
    target = c.plant(c.ws / ".env", "old\n")
    script = "while [ ! -e stop ]; do cat .env 2>/dev/null; sleep 0.03; done; echo polled"
    r = polled(c, script, ["--hide", ".env"], lambda: editor_save(c, target, u + "\n"))
    c.must(b"old" not in r.before, f"it was readable before: {r}")
    c.must(u.encode() not in r.late, f"readable again after a save on the host: {r}")
    c.note("lines seen within the first second:", r.out.count(u.encode()))
    # Twice, because the watch on the name must survive its own work.
    u2 = c.uuid()
    os.unlink(c.ws / "stop")
    r = polled(c, script, ["--hide", ".env"], lambda: (editor_save(c, target, "second\n"),
                                                       time.sleep(0.3),
                                                       editor_save(c, target, u2 + "\n")))
    c.must(u2.encode() not in r.late, f"readable after the second save: {r}")
    return HELD


def remade(c: Ctx, target, change):
    r = polled(c, "while [ ! -e stop ]; do cat d/.env 2>/dev/null; sleep 0.03; done; echo polled",
               ["--hide", "**/.env"], change)
    c.must(b"old" not in r.before, f"it was readable before: {r}")
    return r


@check("FR-17", prio="P0", null=True, catches=("remask",), forms=("run", "exec"),
       title="a hidden file saved by moving the old one aside is masked again within 1 s")
def fr17(c: Ctx):
    u = c.uuid()
    target = c.plant(c.ws / "d" / ".env", "old\n")

    def change():
        backup = target.with_name(".env~")
        os.rename(target, backup)
        c.plant(target, u + "\n")
        os.unlink(backup)

    r = remade(c, target, change)
    c.must(u.encode() not in r.late, f"readable after a save on the host: {r}")
    return HELD


@check("FR-18", prio="P1", null=True, catches=("remask",), forms=("run",),
       title="a hidden file deleted and later made anew on the host is masked within 1 s")
def fr18(c: Ctx):
    u = c.uuid()
    target = c.plant(c.ws / "d" / ".env", "old\n")

    def change():
        os.unlink(target)
        time.sleep(0.2)
        c.plant(target, u + "\n")

    r = remade(c, target, change)
    c.must(u.encode() not in r.late, f"readable after it was made anew: {r}")
    return HELD


@check("FR-08", prio="P1", title="open_by_handle_at reaches no file of the workspace's file system")
def fr08(c: Ctx):
    u, s = secret(c)
    c.tool("acts")
    handles = []
    for path in (s, c.out, c.root):
        h = c.host(c.tool("acts", "handle", path), as_root=True)
        c.need_control(h.ok, f"no file handle: {h}")
        handles.append(h.text.strip())
    r = c.control(c.tool("acts", "openhandle", c.ws, handles[0]), as_root=True)
    c.need_control(u in r.text, f"root cannot open by handle: {r}")
    places = [str(c.ws), "/", "/usr", "/etc", "/tmp", str(c.home)]
    tool = q(str(c.ws / "acts"))
    r = c.sandbox("\n".join(f"{tool} openhandle {q(p)} {h}" for h in handles for p in places))
    c.must(not c.leaks(r, u), f"the canary came out: {r}")
    c.must("openhandle ok" not in r.text, f"a handle was opened: {r}")
    return HELD


@check("FR-09", prio="P1", null=True, catches=("pivot,landlock",),
       title="names outside cannot be listed, found or guessed by globs")
def fr09(c: Ctx):
    u, v = c.uuid(), c.uuid()
    c.plant(c.out / f"vcf-{u}", "x")
    c.plant(c.home / f"vcf-{v}", "x")
    script = [f"ls -a {q(str(c.out))}", f"ls -Ra {q(str(c.root))}", f"echo /..{q(str(c.out))}/vcf-*",
              f"find / -path /usr -prune -o -path /proc -prune -o -path /sys -prune -o "
              f"-path '*/vcontain.*' -name 'vcf-*' -print"]
    for line in script[:3]:
        c.need_control(u in c.control(line).text, f"outside too nothing comes out of: {line}")
    if c.cfg.sabotage:
        script = script[:3]                                # the whole host is no place to search
    r = c.sandbox("\n".join(script), timeout=40)
    c.must(not c.leaks(r, u) and not c.leaks(r, v), f"a name came out: {r}")
    return HELD


DEV_ALLOWED = {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm", "fd", "stdin",
               "stdout", "stderr", "console", "mqueue", "core"}


@check("FR-10", prio="P1", title="no device but the harmless ones; no kernel log", catches=("dev",))
def fr10(c: Ctx):
    # Read-only opens of a few: some devices (a watchdog) act on being opened.
    hosts = ["/dev/kmsg", "/dev/mem", "/dev/vda", "/dev/sda", "/dev/nvme0n1", "/dev/loop0"]
    r = c.host(c.tool("acts", "open", "r", "/dev/kmsg", "/dev/mem"), as_root=True)
    c.need_control("opened /dev/" in r.text, f"root opens no device here: {r}")
    tool = q(str(c.ws / "acts"))
    r = c.sandbox(f"{tool} open r {' '.join(hosts)}\n"
                  "dmesg 2>/dev/null | head -c 200\necho LIST; find /dev -mindepth 1 -maxdepth 1 -printf '%f\\n'")
    before, _, listing = r.text.partition("LIST\n")
    c.must("opened" not in before, f"a device was opened: {before}")
    c.must(not before.strip(), f"the kernel log came out: {before}")
    names = set(listing.split()) - (OWN_DEVICES if has_lesser_kernel(c) else set())
    c.need_control("null" in names, f"/dev could not be listed: {r}")
    c.must(names <= DEV_ALLOWED, f"more than the minimal /dev: {sorted(names - DEV_ALLOWED)}")
    return HELD


@check("FR-11", prio="P2", null=True, catches=("pivot",),
       title="paths that mountinfo gives away cannot be opened")
def fr11(c: Ctx):
    u = c.uuid()
    for place in (c.out, c.home, c.state, c.config, c.root / "home"):
        c.plant(place / f"vcf-{u}", u)
    r = c.sandbox("cat /proc/self/mountinfo; echo MOUNTS; cat /proc/mounts")
    c.need_control("MOUNTS" in r.text and " / " in r.text, f"no mountinfo: {r}")
    # A second mount at "/" would be the host's own root, left over the new one.
    roots = [line for line in r.text.split("MOUNTS")[0].splitlines() if line.split()[4:5] == ["/"]]
    c.must(len(roots) == 1, f"more than one root: {roots}")
    paths = {str(c.out), str(c.state), str(c.root)}
    for word in r.text.replace(",", " ").replace("=", " ").replace(":", " ").split():
        if word.startswith("/") and not word.startswith(str(c.ws)):
            paths.add(word)
    paths = sorted(p for p in paths if not p.startswith(("/usr", "/proc")))
    each = " ".join(map(q, paths))
    script = f"for p in {each}; do ls -A \"$p\" \"$p/..\"; cat \"$p\"/vcf-* \"$p\"/../vcf-*; done 2>/dev/null"
    c.need_control(u in c.control(script).text, "outside too nothing comes out")
    r = c.sandbox(script + "; true")
    c.must(not c.leaks(r, u), f"a path from mountinfo leads outside: {r}")
    return HELD


def reported(c: Ctx, r, name):
    """Did Vitrine itself name the file, on stderr or in the JSON report?"""
    text = r.errtext + (r.keeper.err.decode("utf-8", "replace") if getattr(r, "keeper", None) else "")
    return name in text


@check("FR-12", prio="P1", null=True, catches=("aliases",),
       title="hard link in the workspace to a hidden file is denied or reported")
def fr12(c: Ctx):
    u = c.uuid()
    target = c.plant(c.ws / ".env", u + "\n")
    os.link(target, c.ws / "notes.txt")
    c.need_control(u in c.control("cat notes.txt").text, "outside too it cannot be read")
    r = c.sandbox("cat notes.txt", flags=["--hide", ".env"], refusal_ok=True)
    c.must(not c.leaks(r, u) or reported(c, r, "notes.txt"), f"read through the alias, silently: {r}")
    c.note("readable" if u in r.text else "denied")
    return HELD


@check("FR-13", prio="P1", null=True, title="workspace renamed on the host during the run: '..' leads nowhere")
def fr13(c: Ctx):
    u, s = secret(c)
    script = ("exec 3< . ; echo polling\n"
              "i=0; while [ ! -e go ] && [ $i -lt 200 ]; do i=$((i+1)); sleep 0.05; done\n"
              "cat /proc/self/cwd/../secret ../secret /dev/fd/3/../secret /proc/self/fd/3/../secret\n"
              "cd .. ; cat secret; cd /proc/self/fd/3/.. && cat secret; echo ended")

    def attempt(sandboxed):
        p = c.start(script, sandboxed=sandboxed)
        c.need_control(p.wait_for("polling"), f"did not start: {p.err!r}")
        moved = c.out / "moved"
        with c.host_edit():
            os.rename(c.ws, moved)
        try:
            c.plant(moved / "go")
            p.wait_for("ended")
        finally:
            with c.host_edit():
                os.rename(moved, c.ws)
            r = p.wait()
            (c.ws / "go").unlink()
        c.need_control(b"ended" in r.out, f"did not end: {r}")
        return r

    c.need_control(u in attempt(False).text, "outside too nothing comes out")
    r = attempt(True)
    c.must(not c.leaks(r, u), f"the canary came out: {r}")
    return HELD


KERNEL_FILES = ["/proc/kcore", "/proc/timer_list", "/proc/sched_debug", "/proc/kmsg", "/proc/vmcore",
                "/proc/kpageflags", "/proc/iomem"]
KERNEL_WRITES = ["/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe",
                 "/proc/sys/vm/drop_caches", "/proc/sys/fs/binfmt_misc/register", "/proc/irq/default_smp_affinity",
                 "/sys/kernel/uevent_helper"]


@check("FR-15", prio="P1", title="kernel internals in /proc and /sys: no address, no memory, no switch")
def fr15(c: Ctx):
    control = c.host(c.tool("acts", "open", "r", *KERNEL_FILES), as_root=True)
    c.need_control("readable /proc/" in control.text, f"root reads none of them here: {control}")
    tool = q(str(c.ws / "acts"))
    r = c.sandbox(f"{tool} open r {' '.join(KERNEL_FILES)}; {tool} open w {' '.join(KERNEL_WRITES)}\n"
                  "echo SYMBOLS; cat /proc/kallsyms 2>/dev/null | cut -c1-16 | grep -v '^0*$' | head -3\n"
                  "echo SYS; ls -A /sys/kernel/debug /sys/firmware /sys/kernel/tracing 2>/dev/null; true")
    opened, _, rest = r.text.partition("SYMBOLS\n")
    symbols, _, sysfs = rest.partition("SYS\n")
    bad = [line for line in opened.splitlines() if line.startswith("readable")]
    # /proc/iomem can be read by anybody; without capabilities it holds zeros only, as outside.
    bad = [line for line in bad if not line.endswith("/proc/iomem")]
    c.must(not bad, f"readable: {bad}")
    writable = [line for line in opened.splitlines() if line.split()[-1] in KERNEL_WRITES]
    c.must(not writable, f"open for writing: {writable}")
    c.must(not symbols.strip(), f"kernel addresses: {symbols}")
    entries = [line for line in sysfs.splitlines() if line.strip() and not line.endswith(":")]
    c.must(not entries, f"kernel folders: {entries}")
    return HELD
