#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""save and load: images that other tools read, and archives that mean harm."""

import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

from harness import eq, has, has_not, main, refused, test

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tiny import tiny  # noqa: E402


def done(box, *args, rc=0, **kw):
    r = box.cli(*args, timeout=30, **kw)
    eq(r.rc, rc, f"{args}: {r.out} {r.err}")
    return r


CHANGE = ("echo A > a; rm gone; rm -r d; mkdir n; echo n > n/n; ln n/n n/hard; ln -s n s; mkfifo p; echo h > ~/h; "
          "truncate -s 8M ~/sparse; echo x >> ~/sparse; chmod 750 n; printf x > \"$(printf 'n/new\\nline\\377')\"")
LOOK = "find . ~ ! -name home -printf '%P %M %n %l\\n' | sort; cat a n/n ~/h; tail -c 2 ~/sparse"


def fill(box):
    box.write("a", "a\n")
    box.write("d/b", "b\n")
    box.write("gone", "g\n")
    r = box.cli("run", "--name", "box", "--mode", "review", "--", "sh", "-c", CHANGE)
    eq(r.rc, 0, r.err)


@test(timeout=30)
def there_and_back(box):
    fill(box)
    want = done(box, "run", "--name", "box", "--", "sh", "-c", LOOK).out
    diff = done(box, "diff", "box").out
    done(box, "save", "box", "box:1", "-o", str(box.home / "box.tar"))
    done(box, "save", "box", "kept")
    before = sorted(p.name for p in (box.state / "images/kept/blobs/sha256").iterdir())
    done(box, "save", "box", "kept")
    eq(sorted(p.name for p in (box.state / "images/kept/blobs/sha256").iterdir()), before, "the same state, the same image")
    done(box, "load", str(box.home / "box.tar"), "two")
    eq(done(box, "run", "--name", "two", "--", "sh", "-c", LOOK).out, want)
    eq(done(box, "diff", "two").out, diff, "what waited for review waits again")
    done(box, "load", "kept", "three")
    eq(done(box, "run", "--name", "three", "--", "cat", "a").out, "A\n")
    done(box, "apply", "--yes", "--links", "--special", "three")
    eq((box.read("a"), (box.ws / "gone").exists(), (box.ws / "d/b").exists()), ("A\n", False, False))
    eq([p for p in os.listdir(box.state / "images") if p.startswith(".part")], [])
    refused(box.cli("load", "kept", "two"), "already", rc=125)
    done(box, "save", "two", "my:1.2")
    (box.state / "images/.part-left.in").symlink_to("my:1.2")   # of one that was killed
    done(box, "load", "my:1.2", "four")
    eq(sorted(os.listdir(box.state / "images")), [".lock", "kept", "my:1.2"])
    eq((len(os.listdir(box.state / "images/my:1.2")), done(box, "run", "--name", "four", "--", "cat", "a").out), (3, "A\n"))
    refused(box.cli("save", "box", "../x"), "cannot be a tag")
    refused(box.cli("load", "nothing", "new"), "neither a file nor", rc=125)


@test(timeout=40)
def other_tools_read_it(box):
    box.needs("skopeo", "umoci")
    fill(box)
    tar = box.home / "box.tar"
    done(box, "save", "box", "box:1", "-o", str(tar))
    done(box, "save", "box", "kept")
    seen = json.loads(box.host("skopeo", "inspect", f"oci-archive:{tar}"))
    eq((seen["Os"], len(seen["Layers"]), seen["Labels"]["org.vitrine.agent"]), ("linux", 2, "shell"))
    layout = box.state / "images/kept"
    eq(box.host("umoci", "ls", "--layout", str(layout)).strip(), "kept")
    box.host("umoci", "unpack", "--rootless", "--image", f"{layout}:kept", str(box.home / "un"))
    root = box.home / "un/rootfs"
    eq((root / str(box.home)[1:] / "h").read_text(), "h\n")
    eq((root / str(box.ws)[1:] / "a").read_text(), "A\n")


@test(timeout=60, who=("root",))
def podman_loads_it(box):
    box.needs("podman")
    fill(box)
    tar = box.home / "box.tar"
    done(box, "save", "box", "box:1", "-o", str(tar))
    store = ["--root", str(box.dir / "pr"), "--runroot", str(box.dir / "r"), "--storage-driver", "vfs"]
    has(box.host("podman", *store, "load", "-q", "-i", str(tar)), "localhost/box:1")
    box.host("podman", *store, "rmi", "-a", "-f")


# ---- archives that mean harm


def layer(*entries):
    """A tar of (name, kind, text or target)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as t:
        for name, kind, text in entries:
            i = tarfile.TarInfo(name)
            i.type = kind
            i.mode = 0o6755 if name.endswith("suid") else 0o755 if kind == tarfile.DIRTYPE else 0o644
            if kind == tarfile.REGTYPE:
                i.size = len(text)
                t.addfile(i, io.BytesIO(text))
            else:
                i.linkname = text.decode() if text else ""
                i.devmajor, i.devminor = 1, 3
                t.addfile(i)
    return out.getvalue()


def image(path, layers, home="/h", lie=False, part="home"):
    """An image as `save` makes them, of these layers."""
    files, refs = {}, []

    def blob(data):
        name = hashlib.sha256(data).hexdigest()
        files["blobs/sha256/" + name] = data + (b"x" if lie else b"")
        return {"digest": "sha256:" + name, "size": len(data)}

    for data in layers:
        refs.append({"mediaType": "application/vnd.oci.image.layer.v1.tar", **blob(data),
                     "annotations": {"org.vitrine.part": part}})
    config = blob(json.dumps({"config": {"Labels": {"org.vitrine.home": home}}}).encode())
    manifest = blob(json.dumps({"schemaVersion": 2, "config": config, "layers": refs}).encode())
    files["index.json"] = json.dumps({"schemaVersion": 2, "manifests": [manifest]}).encode()
    with tarfile.open(path, "w") as t:
        for name, data in files.items():
            i = tarfile.TarInfo(name)
            i.size = len(data)
            t.addfile(i, io.BytesIO(data))
    os.chmod(path, 0o644)


REG, SYM, LNK, CHR, DIR = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE


@test(timeout=40)
def nothing_leaves_the_image(box):
    """Each of these would write, read or take something outside if it were believed."""
    outside = box.home / "outside"
    outside.write_text("mine\n")
    box.own(outside)
    tar = box.home / "bad.tar"
    refusals = {
        "..": [("h/../../../../x", REG, b"x")],
        "up": [("h/..", DIR, b"")],
        "link out": [("h/l", LNK, str(outside).encode())],
        "link up": [("h/l", LNK, b"../../outside")],
        "mark": [("h/.wh...", REG, b"")],
        "through a link": [("h/way", SYM, str(box.home).encode()), ("h/way/outside", REG, b"theirs")],
    }
    for what, entries in refusals.items():
        image(tar, [layer(*entries)])
        r = box.cli("load", str(tar), "bad")
        eq((r.rc, r.out), (125, ""), f"{what}: {r.err}")
        eq(box.cli("inspect", "bad").rc, 125, f"{what}: a sandbox was made")
    for what, entries in refusals.items():
        if what == "mark":
            continue
        image(tar, [layer(("usr", DIR, b""), *entries)], part="root")
        r = box.cli("load", str(tar), "bad")
        eq((r.rc, r.out), (125, ""), f"system, {what}: {r.err}")
    image(tar, [layer(("etc", DIR, b""))], part="system")
    has(box.cli("load", str(tar), "bad").err, "no root file system")
    eq((box.state / "templates").exists(), False, "a template was made")
    image(tar, [layer(("h/ok", REG, b"ok"))], part="what")
    has(box.cli("load", str(tar), "bad").err, "neither home nor")
    image(tar, [layer(("h/ok", REG, b"ok"))], lie=True)
    has(box.cli("load", str(tar), "bad").err, "not what its name says")
    for cut in (100, 3000):
        image(tar, [layer(("h/ok", REG, b"o" * 5000))])
        tar.write_bytes(tar.read_bytes()[:cut])
        eq(box.cli("load", str(tar), "bad").rc, 125, "cut off")
    tar.write_bytes(gzip.compress(b"\0" * 10000000))
    eq(box.cli("load", str(tar), "bad").rc, 125, "no image")
    eq(outside.read_text(), "mine\n")
    eq([p for p in os.listdir(box.state / "images") if p.startswith(".part")], [])


@test(timeout=40)
def what_is_taken_is_tamed(box):
    """Links stay what they are and nothing is written through them; no devices, no set-user-id."""
    outside = box.home / "outside"
    outside.write_text("mine\n")
    box.own(outside)
    tar = box.home / "odd.tar"
    image(tar, [layer(("/h/abs", REG, b"a"), ("h/way", SYM, str(box.home).encode()),
                      ("h/n/", DIR, b""), ("h/in", SYM, b"/n"), ("h/in/x", REG, b"x"), ("h/dev", CHR, b""), ("elsewhere/x", REG, b"x"), ("h/.wh.gone", REG, b""), ("h/suid", REG, b"x"))])
    done(box, "load", str(tar), "odd")
    eq(outside.read_text(), "mine\n")
    r = done(box, "run", "--name", "odd", "--", "sh", "-c", "cd ~ && cat abs && ls -A | grep -v '^[.]bash' && stat -c %a suid && readlink way && cat n/x")
    eq(r.out.split(), ["aabs", "in", "n", "proj", "suid", "way", "755", str(box.home), "x"])
    eq([str(p) for p in box.state.rglob("outside")], [], "it was written in our own state")


# ---- killed, and no space


CALLS = ("mkdir", "rename", "renameat2", "openat", "open", "unlinkat", "fsync", "mknodat", "chmod", "write")
ALL = os.environ.get("VITRINE_KILL_STRIDE") == "1"      # at every call, as `make soak` does; else at some


def faults(box, args, check, calls=CALLS):
    """The command killed, and without space, at its n-th call of each kind: check() after each; how many there were."""
    tried = 0
    for call in calls:
        for what in ("signal=SIGKILL", "error=ENOSPC"):
            for nth in range(1, 2000) if ALL else (1, 2, 4, 8):
                log = box.dir / "log"
                p = box.popen(["strace", "-qq", "-o", log, "-e", f"trace={call}", "-e",
                               f"inject={call}:{what}:when={nth}", box.program, *args], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                p.wait(timeout=60)
                text = log.read_text(errors="replace")
                check(f"{args} {call} {what} {nth}")
                if "INJECTED" not in text and "killed by SIGKILL" not in text:
                    break
                tried += 1
    return tried


@test(timeout=3600 if ALL else 120, who=("user",))
def killed_while_saving_or_loading(box):
    box.needs("strace")
    fill(box)
    tar = box.home / "box.tar"
    done(box, "save", "box", "box:1", "-o", str(tar))
    good = tar.read_bytes()

    def check(where):
        if "load" in where and box.cli("inspect", "two").rc == 0:
            eq(box.cli("run", "--name", "two", "--", "cat", "a").out, "A\n", where)
            done(box, "rm", "--force", "two")
        eq(tar.read_bytes(), good, f"{where}: the file is the old or the new one")

    tried = sum(faults(box, args, check) for args in
                (("save", "box", "kept"), ("save", "box", "box:1", "-o", str(tar)), ("load", str(tar), "two")))
    if tried < 40:
        raise AssertionError(f"only {tried} faults were tried")
    done(box, "save", "box", "kept")
    done(box, "load", "kept", "two")
    eq([p for p in os.listdir(box.state / "images") if p.startswith(".part")], [])


@test(timeout=3600 if ALL else 120, who=("user",))
def killed_while_loading_a_system(box):
    """There is a sandbox that works, or none; a template that was made already is found by the next who loads it."""
    box.needs("strace")
    done(box, "template", "import", str(tiny(box)), "tiny")
    done(box, "run", "--name", "box", "--template", "tiny", "--", "sh", "-c", "echo new > /usr/new")
    done(box, "save", "box", "kept")
    have = 0

    def check(where):
        nonlocal have
        if box.cli("inspect", "two").rc == 0:
            have += 1
            eq(box.cli("run", "--name", "two", "--", "cat", "/usr/new").out, "new\n", where)
            done(box, "rm", "--force", "two")
        names = done(box, "template", "ls", "-q").out.split()
        eq(names in (["tiny"], ["saved-" + names[0][6:], "tiny"]), True, f"{where}: {names}")
        if len(names) > 1:
            done(box, "template", "rm", names[0])

    tried = faults(box, ("load", "kept", "two"), check, ("mkdir", "rename", "unlinkat"))
    if tried < 12 or have < 2:
        raise AssertionError(f"only {tried} faults were tried, {have} of them too late")
    done(box, "load", "kept", "two")
    eq(done(box, "run", "--name", "two", "--", "cat", "/usr/new").out, "new\n")
    eq([p for p in os.listdir(box.state / "images") if p.startswith(".part")], [])


@test(timeout=3600 if ALL else 120, who=("user",))
def killed_while_removing(box):
    """A sandbox is there as it was, or it is gone; its layers go with it, at the latest when the next one does."""
    box.needs("strace")
    fill(box)
    done(box, "fork", "box", "spare")

    def check(where):
        if box.cli("inspect", "two").rc == 0:
            eq(box.cli("run", "--name", "two", "--", "cat", "a").out, "A\n", where)
        else:
            done(box, "fork", "box", "two")

    done(box, "fork", "box", "two")
    tried = faults(box, ("rm", "--force", "two"), check)
    if tried < 10:
        raise AssertionError(f"only {tried} faults were tried")
    eq(box.cli("run", "--name", "box", "--", "cat", "a").out, "A\n", "what the others share was left alone")
    for name in ("two", "box", "spare"):
        done(box, "rm", "--force", name)
    eq([n for n in os.listdir(box.state / "layers") if n not in ("lock", ".empty")], [])


if __name__ == "__main__":
    sys.exit(main())
