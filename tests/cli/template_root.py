#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Templates with ids of their own: sudo, dpkg, apt and npm work inside, what they install stays, and it can all be removed."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from harness import Skip, eq, has, has_not, main, refused, test

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "contain"))
from rooted import copy_program, make_root  # noqa: E402

TOOLS = ["cat", "chmod", "chown", "cp", "dash", "grep", "id", "ls", "mkdir", "mv", "rm", "rmdir", "sleep", "stat", "touch", "true"]
PACKAGING = ["dpkg", "dpkg-deb", "dpkg-query", "dpkg-split", "apt-get", "tar", "gzip", "xz", "zstd", "diff", "sed", "find",
             "ldconfig", "start-stop-daemon", "install", "ln", "mktemp", "sort", "tr", "head", "readlink"]


def done(box, *args, rc=0, **kw):
    r = box.cli(*args, timeout=40, **kw)
    eq(r.rc, rc, f"{args}: {r.out} {r.err}")
    return r


def rooted(box, tools=TOOLS, prepare=None):
    root = box.home / "tree"
    make_root(root, tools)
    if prepare:
        prepare(root)
    box.own(root)
    done(box, "template", "import", "--sudo", str(root), "rt")
    shutil.rmtree(root)


def sandbox(box, script, *flags, name="a", rc=0):
    return done(box, "run", "--name", name, "--template", "rt", *flags, "--", "sh", "-c", script, rc=rc)


@test(timeout=60)
def root_has_its_own_ids_and_what_it_does_stays(box):
    rooted(box)
    r = sandbox(box, "id -u; sudo id -u; sudo -n -u '#0' id -g; sudo mkdir -m 700 /var/d; sudo touch /var/d/f; "
                     "sudo chown 3:4 /var/d/f; sudo rm /usr/bin/mv; touch /etc/x || true")
    has(r.err, "Permission denied")
    eq(r.out.split()[1:], ["0", "0"])
    eq(sandbox(box, "sudo stat -c %u:%g /var/d/f; ls /usr/bin/mv", rc=2).out, "3:4\n")
    done(box, "fork", "a", "b")
    eq(sandbox(box, "sudo stat -c %u:%g /var/d/f", name="b").out, "3:4\n")
    sandbox(box, "sudo touch /var/e; sudo chown 3:4 /var/e; touch w", "--mode", "review", name="v")
    done(box, "checkpoint", "v")
    sandbox(box, "sudo rm /var/e; rm w", "--mode", "review", name="v")
    done(box, "undo", "v")
    eq(sandbox(box, "stat -c %u:%g /var/e", "--mode", "review", name="v").out, "3:4\n")
    eq(sandbox(box, "ls /var; ls /usr/bin/mv", "--fresh").out, "lib\ntmp\n/usr/bin/mv\n")
    # Another sandbox of the template, and one without a name, see nothing of it.
    eq(sandbox(box, "ls /var", name="c").out, "lib\ntmp\n")
    has(done(box, "run", "--template", "rt", "--", "sh", "-c", "ls /usr/bin/mv; sudo id || true").err, "no root in this sandbox")
    done(box, "rm", "a", "b", "c")
    done(box, "rm", "--force", "v")     # its changes wait to be applied
    eq(os.listdir(box.state / "layers"), ["lock"], "files of mapped ids went with their sandbox")
    done(box, "template", "rm", "rt")
    eq(os.listdir(box.state / "templates"), [])
    eq([p for p in os.listdir(box.state / "images") if p.startswith(".part")], [])


def package(box, name, files, script=""):
    """A .deb with these files: path -> (text, mode, uid, gid)."""
    tree = box.home / name
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN/control").write_text(f"Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: t <t@example.org>\n"
                                         "Description: t\n")
    if script:
        (tree / "DEBIAN/postinst").write_text("#!/bin/sh\nset -e\n" + script)
        (tree / "DEBIAN/postinst").chmod(0o755)
    for path, (text, mode) in files.items():
        p = tree / path
        p.parent.mkdir(parents=True, exist_ok=True)
        p.write_text(text)
        p.chmod(mode)
    deb = box.ws / f"{name}.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zgzip", "-b", str(tree), str(deb)], check=True, capture_output=True)
    box.own(deb)
    return deb.name


def with_packaging(root):
    done_ = set()
    for d in ("var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers", "var/lib/apt/lists/partial",
              "var/cache/apt/archives/partial", "var/log/apt", "etc/apt/apt.conf.d", "etc/apt/preferences.d", "etc/dpkg/dpkg.cfg.d"):
        (root / d).mkdir(parents=True, exist_ok=True)
    for f in ("status", "available"):
        (root / "var/lib/dpkg" / f).write_text("")
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n_apt:x:42:65534::/nonexistent:/usr/sbin/nologin\n")
    shutil.copytree("/usr/share/dpkg", root / "usr/share/dpkg")
    methods = Path("/usr/lib/apt/methods")
    for m in ("copy", "file", "store"):
        if (methods / m).exists():
            copy_program(root, str(methods / m), done_)


@test(timeout=90)
def packages_are_installed(box):
    box.needs("dpkg-deb")
    box.needs("apt-get")
    one = package(box, "one", {"usr/bin/one": ("#!/bin/sh\necho one\n", 0o755), "etc/one.conf": ("x\n", 0o600),
                               "var/lib/one/f": ("f\n", 0o640)}, "chown 42:42 /var/lib/one/f; touch /etc/configured\n")
    two = package(box, "two", {"usr/bin/two": ("#!/bin/sh\necho two\n", 0o755)})
    rooted(box, TOOLS + PACKAGING, with_packaging)
    sandbox(box, f"sudo dpkg -i ./{one} >&2")
    r = sandbox(box, "one; sudo stat -c '%u:%g %a' /var/lib/one/f /etc/one.conf; ls /etc/configured; dpkg-query -W one")
    eq(r.out, "one\n42:42 640\n0:0 600\n/etc/configured\none\t1\n")
    sandbox(box, f"sudo apt-get -q -y install ./{two} >&2")
    eq(sandbox(box, "two; sudo dpkg -r one >/dev/null 2>&1; one", rc=127).out, "two\n")
    # A package with a set-user-id program: only where nothing of the host's can be written.
    suid = package(box, "suid", {"usr/bin/suid": ("x\n", 0o4755)})
    sandbox(box, f"sudo dpkg -i ./{suid} >&2", rc=1)
    eq(sandbox(box, f"sudo dpkg -i ./{suid} >&2; stat -c %a /usr/bin/suid", "--mode", "review", name="r").out, "4755\n")


def with_node(root):
    copy_program(root, shutil.which("node"), set())
    for d in ("/usr/share/nodejs", "/usr/share/node_modules", "/usr/lib/node_modules"):
        if os.path.isdir(d):
            shutil.copytree(d, str(root) + d, symlinks=True)
    (root / "usr/bin/npm").symlink_to(os.path.realpath(shutil.which("npm")))


@test(timeout=90, who=("user",))
def npm_installs_for_all(box):
    box.needs("npm")
    if not os.path.realpath(shutil.which("npm")).startswith("/usr/"):
        raise Skip("npm is not the system's")
    pkg = box.ws / "pkg"
    pkg.mkdir()
    (pkg / "package.json").write_text('{"name":"hello-v","version":"1.0.0","bin":{"hello-v":"h.js"}}\n')
    (pkg / "h.js").write_text("#!/usr/bin/env node\nconsole.log('hello')\n")
    with tarfile.open(box.ws / "hello-v-1.0.0.tgz", "w:gz") as t:
        t.add(pkg, "package")
    box.own(box.ws / "pkg")
    box.own(box.ws / "hello-v-1.0.0.tgz")
    rooted(box, TOOLS + ["env", "uname"], with_node)
    sandbox(box, "sudo npm install -g --offline --no-audit --no-fund ./hello-v-1.0.0.tgz >&2")
    eq(sandbox(box, "hello-v").out, "hello\n")


@test(timeout=60)
def owners_come_with_archives_and_go_out_again(box):
    root = box.home / "tree"
    make_root(root, TOOLS)
    tar = box.home / "t.tar"

    def owner(info):
        info.uid, info.gid = (5, 6) if info.name.endswith("odd") else (0, 0)
        info.mode = 0o4711 if info.name.endswith("odd") else info.mode
        return info

    (root / "etc/odd").write_text("x")
    (root / "etc/huge").write_text("x")
    with tarfile.open(tar, "w") as t:
        t.add(root, ".", filter=owner)
    box.own(tar)
    done(box, "template", "import", "--sudo", str(tar), "rt")
    ask = "stat -c '%u:%g %a' /etc/odd; stat -c %u /usr/bin/cat"
    eq(sandbox(box, ask).out, "5:6 4711\n0\n")
    done(box, "template", "export", "rt", str(box.home / "out.tar"))
    done(box, "template", "import", "--sudo", str(box.home / "out.tar"), "again")
    eq(done(box, "run", "--name", "g", "--template", "again", "--", "sh", "-c", ask).out, "5:6 4711\n0\n")
    done(box, "template", "import", str(box.home / "out.tar"), "plain")
    eq((box.state / "templates/plain/root/etc/odd").stat().st_mode & 0o7777, 0o711, "a plain one has no such bits")
    eq((box.state / "templates/plain/root/etc/odd").stat().st_uid, box.account.pw_uid if box.account else os.geteuid())


def layers_of(tar):
    """The layers of an image: part -> {name: its entry}."""
    with tarfile.open(tar) as t:
        def blob(ref):
            return t.extractfile("blobs/sha256/" + ref["digest"].split(":")[1])
        index = json.load(t.extractfile("index.json"))
        found = {}
        for ref in json.load(blob(index["manifests"][0]))["layers"]:
            with tarfile.open(fileobj=blob(ref)) as inner:
                found[ref["annotations"]["org.vitrine.part"]] = {m.name: m for m in inner}
    return found


INSTALL = ("sudo mkdir -m 700 /var/d; sudo touch /var/d/f; sudo chown 3:4 /var/d/f; sudo rm -r /usr/bin/mv /usr/share/gone /usr/share/anew; "
           "sudo mkdir /usr/share/anew; sudo touch /usr/share/anew/new; "
           "sudo cp /usr/bin/cat /usr/bin/own; sudo chmod 4711 /usr/bin/own; sudo touch /etc/made; sudo chown 5:6 /var/lib; "
           "echo h > ~/h; echo x > ws; sudo sh -c \"echo r > $HOME/roots; chmod 600 $HOME/roots\"")
SEEN = ("sudo stat -c '%u:%g %a %n' /var/d /var/d/f /var/lib /usr/bin/own /etc/made; ls /usr/bin/mv /usr/share/gone /usr/share/anew 2>/dev/null; "
        "cat ~/h; sudo id -u; own ~/h")


@test(timeout=90)
def what_was_installed_is_saved(box):
    """save: the template, what was installed above it and the home are one image; load needs nothing else."""
    box.needs("skopeo", "umoci")

    def to_be_removed(root):
        for name in ("gone", "anew"):
            (root / "usr/share" / name).mkdir(parents=True)
            (root / "usr/share" / name / "old").write_text("old\n")

    rooted(box, prepare=to_be_removed)
    mode = ("--mode", "review")  # root's set-user-id files are allowed there
    install = INSTALL.rsplit("; sudo", 1)[0] if box.is_root else INSTALL  # that root cannot write in the home
    sandbox(box, install, *mode)
    want = sandbox(box, SEEN, *mode).out
    has(want, "3:4 644 /var/d/f", "5:6 755 /var/lib", "0:0 4711 /usr/bin/own", "h\n0\nh\n")
    tar = box.home / "a.tar"
    done(box, "save", "a", "a:1", "-o", str(tar))
    done(box, "save", "a", "kept")
    parts = layers_of(tar)
    eq(sorted(parts), ["home", "root", "system", "workspace"])
    new = parts["system"]
    eq([(new[n].uid, new[n].gid) for n in ("var/d", "var/d/f", "var/lib", "etc/made")], [(0, 0), (3, 4), (5, 6), (0, 0)])
    eq(oct(new["usr/bin/own"].mode), "0o4711")
    eq(sorted(n for n in new if ".wh." in n), ["usr/bin/.wh.mv", "usr/share/.wh.gone", "usr/share/anew/.wh.old"])
    eq([n for n in new if n in ("usr/bin/mv", "usr/bin/cat", "usr/share/gone")], [], "only what is new")
    own = {m.uid for n, m in parts["home"].items() if n.startswith(str(box.home)[1:] + "/")}
    eq(own, {int(sandbox(box, "id -u", *mode).out)}, "the home is its user's")
    if not box.is_root:
        has(" ".join(parts["home"]), "/roots")
    eq(parts["root"]["usr/bin/cat"].uid, 0)
    # Others read it, and see one system.
    eq(len(json.loads(box.host("skopeo", "inspect", f"oci-archive:{tar}"))["Layers"]), 4)
    rootless = [] if box.is_root else ["--rootless"]
    box.host("umoci", "unpack", *rootless, "--image", f"{box.state}/images/kept:kept", str(box.home / "un"))
    root = box.home / "un/rootfs"
    eq(((root / "usr/bin/mv").exists(), (root / "usr/bin/cat").exists(), (root / str(box.home)[1:] / "h").read_text()), (False, True, "h\n"))
    if box.is_root:
        st = (root / "var/d/f").stat()
        eq((st.st_uid, st.st_gid, oct((root / "usr/bin/own").stat().st_mode & 0o7777)), (3, 4, "0o4711"))
    box.host("rm", "-rf", str(box.home / "un"))
    # And so do we, without the template: twice the same one.
    done(box, "rm", "--force", "a")
    done(box, "template", "rm", "rt")
    eq(done(box, "load", str(tar), "b").out, "b\n")
    done(box, "load", "kept", "c")
    made = [t["name"] for t in json.loads(done(box, "template", "ls", "--json").out)]
    eq(len(made), 1, made)
    for name in "bc":
        eq(done(box, "run", "--name", name, "--", "sh", "-c", SEEN).out, want, name)
    eq(done(box, "run", "--name", "b", "--", "cat", "ws").out, "x\n")
    if not box.is_root:
        eq(done(box, "run", "--name", "b", "--", "cat", str(box.home / "roots")).out, "r\n", "it is the user's now")
    # What is installed in it is saved again, above what is there.
    done(box, "run", "--name", "b", "--", "sudo", "touch", "/var/more")
    done(box, "save", "b", "b:1", "-o", str(tar))
    has(str(layers_of(tar)["system"].keys()), "var/more")
    # It is a root for new sandboxes too.
    eq(done(box, "run", "--name", "n", "--template", made[0], "--", "sudo", "stat", "-c", "%u:%g", "/var/d/f").out, "3:4\n")
    done(box, "rm", "--force", "b", "c", "n")
    done(box, "template", "rm", made[0])
    eq([p for p in os.listdir(box.state / "images") if p != "kept" and p != ".lock"], [])


@test(timeout=60)
def a_checkpoint_while_it_runs_has_it_too(box):
    """With everything inside standing still, what was installed is copied: owners, bits, closed directories, marks."""
    rooted(box)
    mode = ("--mode", "review")
    own = done(box, "run", "--name", "own", "--template", "rt", *mode, "--", "sh", "-c", "echo h > ~/h; echo 1 > w; vitrine-checkpoint; "
               "echo $?; echo 2 > w; rm ~/h").out
    eq(own.split()[-1], "0", "asked for inside, where all of it is the user's")
    # What was asked for inside is named to go back to it: a plain undo goes by the host's own.
    listed = json.loads(done(box, "checkpoints", "own", "--json").out)["checkpoints"]
    done(box, "restore", "own", str(listed[-1]["checkpoint"]))
    eq(sandbox(box, "cat w ~/h", *mode, name="own").out, "1\nh\n")
    see = "sudo stat -c '%u:%g %a %n' /var/shut /var/shut/f /usr/bin/own; ls /usr/bin/mv 2>/dev/null; cat w"
    p = box.start("run", "--name", "a", "--template", "rt", *mode, "--", "sh", "-c",
                  "sudo mkdir -m 700 /var/shut; sudo touch /var/shut/f; sudo chown 7:8 /var/shut/f /var/shut; echo 1 > w; "
                  "sudo cp /usr/bin/cat /usr/bin/own; sudo chmod 4711 /usr/bin/own; sudo rm /usr/bin/mv; echo up; exec sleep 600")
    eq(p.stdout.readline(), b"up\n")
    if not box.is_root:  # confined, it cannot have those ids: it says so, and nothing was made
        r = box.cli("exec", "a", "--", "vitrine-checkpoint")
        eq(r.rc != 0, True)
        has(r.err, "what a root inside has written cannot be read")
    done(box, "checkpoint", "a", "-m", "live")
    done(box, "exec", "a", "--", "sh", "-c", "sudo rm -r /var/shut /usr/bin/own; echo 2 > w")
    done(box, "stop", "--time", "0", "a")
    box.finish(p)
    eq(sandbox(box, see, *mode).out, "2\n")
    done(box, "restore", "a", "live")
    eq(sandbox(box, see, *mode).out, "7:8 700 /var/shut\n7:8 644 /var/shut/f\n0:0 4711 /usr/bin/own\n1\n")


@test(timeout=60, who=("user",))
def a_reviewer_sees_what_root_did(box):
    """What root made or gave away in the workspace is the caller's when the run ends: to be seen, and to be taken over."""
    rooted(box)
    box.write("old", "old\n")
    sandbox(box, "sudo mkdir -m 700 hid; sudo sh -c 'echo x > hid/f; chmod 600 hid/f'; echo new > old; sudo chown 7:7 hid hid/f old", "--mode", "review")
    eq(done(box, "diff", "--name-only", "a").out.split(), ["hid/f", "old"])
    has(done(box, "diff", "a").out, "+x\n", "+new\n")
    done(box, "apply", "a")
    eq((box.read("hid/f"), box.read("old")), ("x\n", "new\n"))


@test(timeout=90)
def many_layers_become_one(box):
    """Every start freezes what was written. Before there are too many layers they are one, and show the same."""

    def prepare(root):
        (root / "usr/share/anew").mkdir(parents=True)
        (root / "usr/share/anew/old").write_text("old\n")

    rooted(box, TOOLS + ["ln", "find", "sort"], prepare)
    mode = ("--mode", "review")
    sandbox(box, "sudo rm -r /usr/share/anew /usr/bin/mv; sudo mkdir -m 2750 /usr/share/anew; sudo touch /usr/share/anew/new; "
            "sudo cp /usr/bin/cat /usr/bin/own; sudo chmod 4711 /usr/bin/own; sudo ln /usr/bin/own /usr/bin/two; "
            "sudo mkdir -m 700 /var/shut; sudo touch /var/shut/f; sudo chown -h 7:8 /var/shut/f /var/shut; "
            "mkdir ~/shut d; echo s > ~/shut/f; chmod 0 ~/shut; chmod 1777 d; echo 0 > w; echo 0 > gone", *mode)
    for i in range(1, 26):
        sandbox(box, f"sudo touch /var/f{i}; sudo chown {i}:{i} /var/f{i}; sudo rm -f /var/f{i - 1}; echo {i} > w; echo {i} > ~/f{i}; "
                     f"rm -f ~/f{i - 1}; [ {i} != 9 ] || rm gone", *mode)
    see = ("cd /; sudo find var usr/share usr/bin/own usr/bin/two -printf '%p %M %U:%G %l\n' | sort; ls usr/bin/mv 2>/dev/null; "
           f"cd {box.ws}; cat w; ls -A . ~; stat -c '%a %n' d ~/shut; chmod 700 ~/shut; cat ~/shut/f; chmod 0 ~/shut")
    seen = sandbox(box, see, *mode).out
    has(seen, "var/f25 -rw-r--r-- 25:25", "var/shut drwx------ 7:8", "usr/bin/two -rws--x--x 0:0", "usr/share/anew drwxr-s--- 0:0",
        "\n25\n", "1777 d", f"0 {box.home}/shut\ns\n")
    has_not(seen, "var/f24", "anew/old", "bin/mv", "gone")
    kept = json.loads((box.state / "sandboxes/a/layers.json").read_text())
    eq([n for n in ("ws", "home", "sys") if not 1 < len(kept[n]) < 24], [], {n: len(kept[n]) for n in ("ws", "home", "sys")})
    eq(sandbox(box, see, *mode).out, seen, "and so it stays")
    done(box, "checkpoints", "--keep", "1", "a")
    eq(sandbox(box, see, *mode).out, seen, "also when the old ones are gone")
    done(box, "rm", "--force", "a")
    eq(os.listdir(box.state / "layers"), ["lock"])


@test(timeout=60, who=("root",))
def podman_reads(box):
    box.needs("podman", "runc")
    rooted(box)
    sandbox(box, "sudo cp /usr/bin/cat /usr/bin/own; sudo chown 3:4 /usr/bin/own; sudo rm /usr/bin/mv")
    tar = box.home / "a.tar"
    done(box, "save", "a", "a:1", "-o", str(tar))
    store = ["--root", str(box.dir / "pr"), "--runroot", str(box.dir / "prr"), "--storage-driver", "vfs", "--cgroup-manager", "cgroupfs"]
    has(box.host("podman", *store, "load", "-q", "-i", str(tar)), "localhost/a:1")
    mounted = Path(box.host("podman", *store, "image", "mount", "localhost/a:1").strip())
    eq((os.stat(mounted / "usr/bin/own").st_uid, (mounted / "usr/bin/mv").exists(), (mounted / "usr/bin/ls").exists()), (3, False, True))
    box.host("podman", *store, "image", "unmount", "localhost/a:1")
    box.host("podman", *store, "rmi", "-a", "-f")


@test(timeout=40)
def an_image_cannot_lead_its_maker_out(box):
    """Links in the places that are written when it is made ready."""
    secret = box.home / "secret"
    secret.write_text("root:x:0:0::/:/bin/sh\n")
    box.own(secret)
    for what in ("etc/passwd", "etc/hosts", "usr/local/bin"):
        root = box.home / "evil"
        make_root(root, ["dash", "cat"])
        p = root / what
        p.parent.mkdir(parents=True, exist_ok=True)
        p.symlink_to(secret if "etc" in what else box.home)
        box.own(root)
        box.cli("template", "import", "--sudo", str(root), "evil", timeout=30)  # refused or made, as the case may be
        eq(secret.read_text(), "root:x:0:0::/:/bin/sh\n")
        eq((box.home / "sudo").exists(), False)
        box.cli("template", "rm", "evil", timeout=30)
        shutil.rmtree(root)


@test(timeout=40)
def refusals(box):
    refused(box.cli("run", "--as-root", "--name", "x", "--", "true"), "without a name")
    refused(box.cli("template", "agent", "--sudo", "--plain"), "contradict")
    rooted(box)
    r = box.cli("run", "--name", "a", "--template", "rt", "--pids", "50", "--", "true")
    refused(r, "limit pids", "optional", rc=125)
    # The same name, of the other kind: what root installed cannot be a plain one's /usr.
    sandbox(box, "sudo touch /var/x", name="k")
    done(box, "template", "export", "rt", str(box.home / "rt.tar"))
    done(box, "template", "rm", "rt")
    done(box, "template", "import", str(box.home / "rt.tar"), "rt")
    refused(box.cli("run", "--name", "k", "--", "true"), "before it was made anew", rc=125)
    done(box, "template", "rm", "rt")
    done(box, "template", "import", "--sudo", str(box.home / "rt.tar"), "rt")
    done(box, "run", "--fresh", "--name", "k", "--", "true")
    if box.is_root or os.geteuid() != 0:
        return
    # Ids that the account does not have any more.
    os.chown(box.state / "templates/rt/root", 300000, 300000)
    refused(box.cli("run", "--name", "a", "--template", "rt", "--", "true"), "other subordinate ids", rc=125)


@test
def as_root_is_root_of_nothing(box):
    """What makes templates: it cannot write the workspace, and what it owns is nobody's outside."""
    r = done(box, "run", "--as-root", "--", "sh", "-c", "id -u; touch x; grep NoNewPrivs /proc/self/status; cat /etc/shadow; "
             "ls /root", rc=2)
    has(r.out, "0\n", "NoNewPrivs:\t1")
    has(r.err, "Read-only")
    has_not(r.out, "root:")
    eq(os.listdir(box.ws), [])


if __name__ == "__main__":
    sys.exit(main())
