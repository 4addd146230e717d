# SPDX-License-Identifier: Apache-2.0
"""SB: two sandboxes side by side, or one after the other, know nothing of each other."""

import json
import os
import secrets
import shlex
import time

from harness import HELD, Ctx, check, descendants, needs_special_files

q = shlex.quote


def neighbour(c: Ctx, script, flags=()):
    """B: a sandbox with a workspace of its own beside ours; ready when it says so."""
    ws = c.mkdir(c.home / "proj2")
    p = c.keeper(flags=flags, cwd=ws, command=["sh", "-c", f"{script}\necho ready; sleep 40"])
    c.need_control(p.wait_for("ready"), f"the neighbour did not start: {p.err!r}")
    return ws, p


@check("SB-01", prio="P0", forms=("run", "exec"),
       title="a run reads and writes nothing of its neighbour: workspace, tmp, home, state")
def sb01(c: Ctx):
    u = c.uuid()
    ws2 = c.mkdir(c.home / "proj2")
    c.plant(ws2 / "src", u + "\n", 0o666)
    os.chmod(ws2, 0o777)
    fill = "; ".join(f"cp src {p}/vcf-b" for p in ("/tmp", "/var/tmp", "/dev/shm", "$HOME"))
    ws2, b = neighbour(c, fill)
    r = c.vitrine("exec", b.name, "--", "cat", "/tmp/vcf-b", "/dev/shm/vcf-b", cwd=ws2)
    c.need_control(r.text.count(u) == 2, f"B itself cannot read its files: {r}")
    c.need_control(u in c.host(["cat", str(ws2 / "src")]).text, "outside too B's workspace cannot be read")
    before = c.tree_entries(ws2)
    r = c.sandbox(f"cat {q(str(ws2))}/src /tmp/vcf-b /var/tmp/vcf-b /dev/shm/vcf-b $HOME/vcf-b\n"
                  f"for p in /proc/[0-9]*; do cat $p/root/tmp/vcf-b $p/cwd/src; done\n"
                  f"ls -R {q(str(c.state))} {q(str(c.run_dir))}; cat {q(str(c.state))}/vitrine/*\n"
                  f"echo x > {q(str(ws2))}/new; echo x > {q(str(c.state))}/new; rm -rf {q(str(c.state))}/vitrine; true")
    c.must(not c.leaks(r, u), f"B's canary came out: {r}")
    c.must(c.tree_entries(ws2) == before, "B's workspace was changed")
    c.must(not (c.state / "new").exists(), "the state directory was written")
    r = c.vitrine("exec", b.name, "--", "cat", "/tmp/vcf-b", cwd=ws2)
    c.must(u in r.text, f"B's file or B itself is gone: {r}")
    return HELD


@check("SB-02", prio="P0", forms=("run", "exec"), catches=("pidns",), catch_ident="user",
       title="a run neither sees nor signals nor traces the processes of its neighbour")
def sb02(c: Ctx):
    mark = "vcf-" + c.uuid()
    ws2, b = neighbour(c, f"sh -c 'trap \"echo caught\" TERM HUP INT USR1; while :; do sleep 0.1; done' {mark} &")
    pids = [p for p, name in descendants(os.getpid()) if p != b.pid]
    c.need_control(pids, "B has no processes")
    # Only B's own numbers, as the host knows them: whatever happens nobody else is hit.
    numbers = " ".join(map(str, pids))
    r = c.sandbox(f"cat /proc/[0-9]*/cmdline | tr '\\0' '\\n' | grep -a vcf; for p in {numbers}; do "
                  "kill -USR1 $p; kill -TERM $p; done; ps ax 2>/dev/null | grep vcf; true")
    c.must(not c.leaks(r, mark), f"B's process is listed: {r}")
    time.sleep(0.3)
    c.must(b"caught" not in b.out + b.err, f"B was signalled: {r}")
    c.must(b.alive, f"B has ended: {b.out!r} {b.err!r}")
    r = c.vitrine("exec", b.name, "--", "true", cwd=ws2)
    c.must(r.ok, f"B does not answer any more: {r}")
    return HELD


@check("SB-03", prio="P0", forms=("run", "exec"), catches=("netns",),
       title="a run reaches no server of its neighbour: loopback, abstract, path")
def sb03(c: Ctx):
    needs_special_files(c)
    name = "vcf-" + secrets.token_hex(8)
    port = 20000 + secrets.randbelow(20000)
    ws2 = c.mkdir(c.home / "proj2")
    acts = c.tool("acts")[0]
    with c.host_edit():
        os.link(acts, ws2 / "acts")
    where = ["tcp", str(port), "abstract", name, "path", f"/tmp/{name}"]
    b = c.keeper(cwd=ws2, command=["./acts", "serve", "40", *where])
    c.need_control(b.wait_for("serving"), f"B does not serve: {b.out!r} {b.err!r}")
    r = c.vitrine("exec", b.name, "--", "./acts", "connect", *where, cwd=ws2)
    c.need_control(r.text.count(" ok") == 3, f"B's servers do not even answer B: {r}")
    time.sleep(0.2)
    own = b.out.count(b"reached")
    r = c.sandbox(c.tool("acts", "connect", *where))
    time.sleep(0.2)
    c.must(b.out.count(b"reached") == own, f"B was reached: {r}")
    c.must(" ok" not in r.text, f"something answered: {r}")
    return HELD


CACHES = [".npm/_cacache/x", ".cache/pip/x", ".cargo/registry/x", ".cache/ccache/x", ".cache/go-build/x",
          ".cache/uv/x", ".m2/repository/x", ".gradle/caches/x"]


@check("SB-05", prio="P1", null=True, forms=("run",), catches=("home",), catch_ident="user",
       title="what a run leaves in package caches the next one does not find")
def sb05(c: Ctx):
    u = c.uuid()
    word = c.plant(c.ws / "word", u)
    fill = "; ".join(f"mkdir -p $(dirname ~/{f}); cp word ~/{f}" for f in CACHES)
    r = c.sandbox(f"{fill}; cat ~/{CACHES[0]}")
    c.need_control(u in r.text, f"the first run could not write its own cache: {r}")
    word.unlink()
    ws2 = c.mkdir(c.home / "proj2")
    every = " ".join(f"~/{f}" for f in CACHES)
    for where in (ws2, c.ws):
        r = c.sandbox(f"cat {every}; grep -rl canary ~ /tmp /var/tmp 2>/dev/null; cat ~/.npm/*/*", cwd=where)
        c.must(not c.leaks(r, u), f"the next run found it: {r}")
    return HELD


@check("SB-08", prio="P1", null=True, forms=("run", "grandchild"), catches=("tmp", "ipcns"),
       title="tmp, shm, queues, home of an ended run are gone for the next")
def sb08(c: Ctx):
    u = c.uuid()
    queue = "/vcf-" + secrets.token_hex(8)
    tool = c.tool("acts")
    acts = q(tool[0])
    places = ["/tmp", "/var/tmp", "/dev/shm", "$HOME"]
    files = " ".join(f"{p}/{queue[1:]}" for p in places)
    word = c.plant(c.ws / "word", u)
    try:
        with c.host_edit():
            r = c.sandbox(f"for f in {files}; do cp word $f; done; {acts} shm put {u}; {acts} mq put {queue} {u}; "
                          f"cat {files}")
        # Message queues may be closed altogether; then there is nothing to outlive the run.
        c.need_control(r.text.count(u) == 4 and "shmget ok" in r.text,
                       f"the first run could not leave anything: {r}")
        word.unlink()
        r = c.sandbox(f"cat {files}; {acts} shm find canary; {acts} mq get {queue} x; cat /dev/mqueue/*; true")
        c.must(not c.leaks(r, u), f"the next run found it: {r}")
        r = c.host([*tool, "shm", "find", u])
        c.must(u not in r.text, "shared memory was left on the host")
    finally:
        # Without walls all of it would be the host's.
        c.host([*tool, "shm", "remove", u])
        c.host([*tool, "mq", "remove", queue, "x"])
        for p in ("/tmp", "/var/tmp", "/dev/shm", str(c.home)):
            if os.path.lexists(p + queue):
                os.unlink(p + queue)
    return HELD


@check("SB-07", prio="P1", forms=("run",), timeout=120,
       title="checkpoints and applies of two sandboxes in one directory do not mix")
def sb07(c: Ctx):
    """Files are replaced as a whole all the time, so a checkpoint is right when every file in it is whole, and a later
    one of the same file is not older. Two reviews of one directory are applied at once: each file is one side's."""
    turn = ("i=0; while [ ! -e stop ]; do i=$((i+1)); for f in a b c; do (echo $i; seq 2000; echo $i) > .$f.$ME; mv .$f.$ME $ME-$f; done; "
            "[ $i = 1 ] && echo turning; done")
    names = [c.new_name(), c.new_name()]
    live = []
    for n in names:
        live.append(c.keeper(["-e", f"ME={n}"], command=["sh", "-c", turn], name=n))
        c.need_control(live[-1].wait_for("turning", 20), f"no writer: {live[-1].err!r}")
    # Beside each other, again and again.
    for _ in range(4):
        for p in [c.start([c.cfg.vitrine, "checkpoint", n], sandboxed=False) for n in names]:
            r = p.wait(30)
            c.must(r.rc in (0, 1) and not r.timed_out, f"no defined end: {r}")
            c.must(r.rc == 0 or r.err.count(b"\n") == 1, f"not one clear line: {r}")
    c.plant(c.ws / "stop")
    for p in live:
        p.wait(20)
    saved = [x["checkpoint"] for x in json.loads(c.vitrine("checkpoints", "--json").text)["checkpoints"]]
    c.need_control(len(saved) >= 6, f"too few checkpoints: {saved}")
    for at in saved[-3:]:
        r = c.vitrine("restore", "--force", str(at))
        # What was half written when it was looked at is not saved, and that is said. Those have other names.
        c.must(all(line.startswith("kept .") for line in r.errtext.splitlines()), f"{at} cannot be restored: {r}")
        for f in c.ws.glob("t?-*-[abc]"):
            lines = f.read_text().splitlines()
            c.must(len(lines) == 2002 and lines[0] == lines[-1], f"{at}: {f.name} is a mixture")
    return HELD
