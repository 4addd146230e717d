#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Templates: root file systems to start from, from directories, archives and other tools' images."""

import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness import Skip, eq, has, has_not, main, refused, soon, test  # noqa: E402
from tiny import tiny  # noqa: E402

UNPACKED = Path(__file__).resolve().parent.parent.parent / "build" / "unpacked"


def done(box, *args, rc=0, **kw):
    r = box.cli(*args, timeout=30, **kw)
    eq(r.rc, rc, f"{args}: {r.out} {r.err}")
    return r


def names(box):
    return done(box, "template", "ls", "-q").out.split()


@test(timeout=60)
def in_dockers_words(box):
    """-t IMAGE, tags, slashes; what `save` kept is a template."""
    done(box, "template", "import", str(tiny(box)), "tiny:1")
    eq(done(box, "run", "-t", "tiny:1", "--", "cat", "/opt/own/f").out, "own\n")
    eq(done(box, "run", "-t", "tiny:1", "cat", "/opt/own/f").out, "own\n")
    (box.state / "templates/tiny:1").rename(box.state / "templates/reg.example-team-tiny:1")
    eq(done(box, "run", "-t", "reg.example/team/tiny:1", "--", "cat", "/opt/own/f").out, "own\n")
    (box.state / "templates/reg.example-team-tiny:1").rename(box.state / "templates/small")
    eq(done(box, "run", "-t", "small", "--", "cat", "/opt/own/f").out, "own\n", "a template that is here")
    eq(done(box, "run", "-t", "cat", "/dev/null").rc, 0, "else a terminal is meant")
    refused(box.cli("run", "-t", "no-such:1", "--", "true"), "no template 'no-such:1'", "'vitrine template pull no-such:1'",
            "--load-local-template", rc=125)
    # A sandbox of a template, and one of the host's system.
    done(box, "run", "--name", "a", "-t", "small", "--mode", "review", "--", "sh", "-c", "echo x > ~/mine; echo y > changed")
    done(box, "save", "a", "kept:1")
    done(box, "run", "--name", "h", "--", "sh", "-c", "echo home > ~/mine")
    done(box, "save", "h", "host:1")
    for name in ("a", "h"):
        done(box, "rm", "--force", name)
    refused(box.cli("run", "-t", "kept:1", "--", "true"), "a sandbox that was saved", "--name NAME -t kept:1")
    for _ in range(2):
        eq(done(box, "run", "--name", "b", *(() if _ else ("-t", "kept:1")), "--", "sh", "-c", "cat ~/mine changed /opt/own/f").out, "x\ny\nown\n")
        eq(done(box, "run", "--name", "c", *(() if _ else ("--template", "host:1")), "--", "sh", "-c", "cat ~/mine; test ! -e /opt/own").out, "home\n")
    eq(done(box, "ls", "b", "--format", "{{.Waits}}").out, "1 change\n")
    has(names(box), "kept:1")
    has_not(names(box), "host:1")


@test(timeout=40)
def from_a_directory_and_an_archive(box):
    root = tiny(box)
    eq(done(box, "template", "import", str(root), "tiny").out, "tiny\n")
    look = ["--", "sh", "-c", "cat /etc/os-release /opt/own/f; ls /usr/bin; echo x > /usr/x"]
    r = done(box, "run", "--template", "tiny", *look, rc=2)
    has(r.out, "NAME=Tiny\nown\n", "dash")
    has(r.err, "Read-only")
    has_not(r.out, "python3")
    kept = box.state / "templates/tiny/root/usr/bin/cat"
    eq(oct(kept.stat().st_mode & 0o7777), "0o755", "no set-user-id bit came along")
    with tarfile.open(box.home / "plain.tar", "w") as t:
        t.add(root, ".")
    box.own(box.home / "plain.tar")
    done(box, "template", "import", str(box.home / "plain.tar"), "plain")
    done(box, "template", "export", "tiny", str(box.home / "out.tar"))
    done(box, "template", "import", str(box.home / "out.tar"), "again")
    for name in ("plain", "again"):
        eq(done(box, "run", "--template", name, "--", "cat", "/opt/own/f").out, "own\n")
    names = [t["name"] for t in json.loads(done(box, "template", "ls", "--json").out)]
    eq(names, ["again", "plain", "tiny"])
    done(box, "template", "rm", "plain")
    refused(box.cli("run", "--template", "plain", "--", "true"), "no template 'plain'", rc=125)
    refused(box.cli("template", "import", str(root), "tiny"), "already", rc=125)
    refused(box.cli("template", "import", str(box.ws), "none"), "no root file system", rc=125)
    refused(box.cli("template", "import", str(root), "../x"), "a name has")
    refused(box.cli("template", "what"), "one of ls")
    refused(box.cli("template", "debian", "x", "--packages", "a;b"), "names of packages")


@test(timeout=40)
def what_is_installed_stays(box):
    """In a sandbox with a name /usr can be written, by its one user, and nobody else sees it."""
    box.needs_step("layers")
    done(box, "template", "import", str(tiny(box)), "tiny")
    done(box, "run", "--name", "a", "--template", "tiny", "--", "sh", "-c", "mkdir -p /usr/local/bin; echo 'echo new' > "
         "/usr/local/bin/tool; rm /usr/bin/ls")
    r = done(box, "run", "--name", "a", "--", "sh", "-c", "sh /usr/local/bin/tool; ls", rc=127)
    eq(r.out, "new\n")
    eq((box.state / "templates/tiny/root/usr/local").exists(), False, "the template is as it was")
    eq((box.state / "templates/tiny/root/usr/bin/ls").exists(), True)
    done(box, "run", "--name", "b", "--template", "tiny", "--", "ls", "/usr/bin")
    done(box, "fork", "a", "c")
    eq(done(box, "run", "--name", "c", "--", "sh", "/usr/local/bin/tool").out, "new\n")
    has(box.cli("run", "--name", "a", "--", "sh", "-c", "echo x > /etc/x").err, "Read-only")
    done(box, "checkpoint", "a")
    done(box, "run", "--name", "a", "--", "rm", "/usr/local/bin/tool")
    done(box, "undo", "a")
    eq(done(box, "run", "--name", "a", "--", "sh", "/usr/local/bin/tool").out, "new\n", "and comes back")


@test(timeout=40)
def what_is_installed_is_saved(box):
    """One that belongs to one user: its /usr is in the image, and needs no template where it is loaded."""
    box.needs_step("layers")
    done(box, "template", "import", str(tiny(box)), "tiny")
    done(box, "run", "--name", "a", "--template", "tiny", "--", "sh", "-c", "mkdir -p /usr/local/bin; echo 'echo new' > "
         "/usr/local/bin/tool; rm /usr/bin/ls; echo h > ~/h")
    tar = str(box.home / "a.tar")
    done(box, "save", "a", "a:1", "-o", tar)
    done(box, "template", "rm", "tiny")
    refused(box.cli("save", "a", "a:2"), "not there any more", rc=125)
    done(box, "rm", "a")
    done(box, "load", tar, "b")
    r = done(box, "run", "--name", "b", "--", "sh", "-c", "sh /usr/local/bin/tool; cat ~/h /opt/own/f /etc/os-release; ls", rc=127)
    eq(r.out, "new\nh\nown\nNAME=Tiny\n")
    done(box, "template", "import", tar, "whole")  # home and all, as any tool would see it
    eq(done(box, "run", "--template", "whole", "--", "sh", "/usr/local/bin/tool").out, "new\n")


@test(timeout=40)
def a_template_that_was_made_anew(box):
    """What was installed above the old one is not put above the new one, nor above another."""
    box.needs_step("layers")
    tree = str(tiny(box))
    done(box, "template", "import", tree, "tiny")
    done(box, "template", "import", tree, "other")
    done(box, "run", "--name", "a", "--template", "tiny", "--", "sh", "-c", "echo mine > /usr/mine")
    refused(box.cli("run", "--name", "a", "--template", "other", "--", "true"), "lies above another template", "--fresh", rc=125)
    done(box, "template", "rm", "tiny")
    refused(box.cli("run", "--name", "a", "--", "true"), "no template 'tiny'", rc=125)
    done(box, "template", "import", tree, "tiny")
    refused(box.cli("run", "--name", "a", "--", "true"), "made anew", "--fresh", rc=125)
    eq(done(box, "run", "--fresh", "--name", "a", "--", "sh", "-c", "ls /usr/mine 2>/dev/null; echo new > /usr/new").out, "")
    eq(done(box, "run", "--name", "a", "--", "cat", "/usr/new").out, "new\n")
    done(box, "fork", "a", "b")
    eq(done(box, "run", "--name", "b", "--", "cat", "/usr/new").out, "new\n")


@test(timeout=60)
def images_of_other_tools(box):
    box.needs("skopeo")
    done(box, "template", "import", str(tiny(box)), "tiny")
    archive = box.home / "docker.tar"
    done(box, "template", "push", "tiny", f"docker-archive:{archive}:tiny:1")
    done(box, "template", "import", str(archive), "docker")
    done(box, "template", "push", "tiny", f"oci:{box.home}/layout:x")
    done(box, "template", "import", str(box.home / "layout"), "layout")
    done(box, "template", "pull", f"oci:{box.home}/layout:x", "pulled")
    for name in ("docker", "layout", "pulled"):
        eq(done(box, "run", "--template", name, "--", "cat", "/opt/own/f").out, "own\n", name)
    left = [p for p in os.listdir(box.state / "images") if p.startswith(".part")]
    eq(left, [])


STAND_IN = """#!/bin/sh
printf '%s\\n' "$@" >"$0.said"
[ ! -e "$0.fails" ] || { echo 'E: no such package' >&2; exit 25; }
for word; do case $word in *.tar) cp "$0.tar" "$word" ;; esac; done
"""


@test(timeout=40)
def debian_as_mmdebstrap_is_asked(box):
    """What it is told, and what becomes of what it makes; `make test-templates` runs the real one."""
    tool = box.dir / "bin/mmdebstrap"
    tool.parent.mkdir()
    tool.write_text(STAND_IN)
    tool.chmod(0o755)
    with tarfile.open(f"{tool}.tar", "w") as t:
        t.add(tiny(box), ".", filter=lambda i: (setattr(i, "uid", 0), setattr(i, "gid", 0), i)[2])
    box.own(tool.parent)
    env = {"PATH": f"{tool.parent}:/usr/bin:/bin"}

    def said():
        return Path(f"{tool}.said").read_text().split("\n")[:-1]

    done(box, "template", "debian", "one", "--suite", "bookworm", "--packages", "jq,less", "--plain", env=env)
    words = said()
    eq(words[:4], ["--variant=minbase", "--format=tar", "--include=jq,less", "bookworm"])
    eq(words[4].startswith(str(box.state / "images/.part-")), True, words)
    for sources in words[5:]:
        eq(os.path.getsize(sources) > 0, True, "packages come from where the host's own come from")
    eq(done(box, "run", "--template", "one", "--", "cat", "/opt/own/f").out, "own\n")
    done(box, "template", "agent", env=env)
    eq({"git", "gh", "nodejs", "npm", "python3", "golang-go", "ripgrep", "jq", "build-essential"} - set(said()[2][10:].split(",")), set())
    # A root inside is the native engine's, whatever the rest is tested behind.
    r = done(box, "run", "--engine", "native", "--name", "a", "--template", "agent", "--", "sh", "-c", "sudo cat /opt/own/f")
    eq(r.out, "own\n", "it has ids of its own")
    done(box, "template", "debian", "db", "--packages", "@agent,postgresql-client", env=env)
    has(said()[2], "git,", ",postgresql-client")
    refused(box.cli("template", "debian", "x", "--suite", "a b", env=env), "name of a release")
    refused(box.cli("template", "debian", "x", "--packages", "a,,b", env=env), "names of packages")
    refused(box.cli("template", "debian", "one", env=env), "already", rc=125)
    refused(box.cli("template", "debian", env=env), "NAME")
    refused(box.cli("template", "debian", "x", "--plain", env={"PATH": "/nonexistent"}), "needs 'mmdebstrap'", rc=125)
    Path(f"{tool}.fails").write_text("")
    r = box.cli("template", "debian", "x", env=env)
    eq((r.rc, r.out), (125, ""))
    eq(r.err.splitlines()[-1], "vitrine: 'mmdebstrap' failed")
    eq(names(box), ["agent", "db", "one"])
    eq([p for p in os.listdir(box.state / "images") if p.startswith(".part")], [])


@contextlib.contextmanager
def registry(box, *, tls=True):
    """A real one on loopback -> its "localhost:PORT"; with TLS its authority is where skopeo looks for it."""
    program = shutil.which("docker-registry", path=f"{UNPACKED}/usr/bin:/usr/bin")
    if not program:
        raise Skip("no docker-registry; tools/deps --test brings it")
    d, runtime = box.dir / f"registry-{'tls' if tls else 'plain'}", box.dir / "run"
    for new in (d, runtime):
        new.mkdir(mode=0o700)
        box.own(new)
    env = box.env
    box.env = lambda extra=None: env({"XDG_RUNTIME_DIR": str(runtime), **(extra or {})})  # skopeo's logins
    if tls:
        box.host("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                 "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", d / "key.pem", "-out", d / "ca.crt")
    crypt = f", tls: {{certificate: {d}/ca.crt, key: {d}/key.pem}}" if tls else ""
    (d / "conf.yml").write_text(f"version: 0.1\nstorage: {{filesystem: {{rootdirectory: {d}/data}}}}\n"
                                f"http: {{addr: '127.0.0.1:0', secret: s{crypt}}}\n")
    log = d / "log"
    with log.open("wb") as out:
        p = box.popen([program, "serve", d / "conf.yml"], stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        soon(lambda: re.search(r"listening on 127\.0\.0\.1:\d+", log.read_text()) or p.poll() is not None, "the registry listens", 20)
        at = "localhost:" + re.search(r"listening on 127\.0\.0\.1:(\d+)", log.read_text())[1]
        if tls:
            trusted = box.home / ".config/containers/certs.d" / at
            trusted.mkdir(parents=True)
            shutil.copy(d / "ca.crt", trusted / "ca.crt")
            box.own(box.home / ".config")
        yield at
    finally:
        p.terminate()
        p.wait()


@test(timeout=60)
def through_a_registry(box):
    box.needs("skopeo", "openssl")
    done(box, "template", "import", str(tiny(box)), "tiny")
    with registry(box) as at:
        done(box, "template", "push", "tiny", f"{at}/team/tiny:1")
        done(box, "template", "rm", "tiny")
        done(box, "template", "pull", f"{at}/team/tiny:1", "again")
        eq(done(box, "run", "--template", "again", "--", "cat", "/opt/own/f").out, "own\n")
        seen = json.loads(box.host("skopeo", "inspect", f"docker://{at}/team/tiny:1"))
        eq(len(seen["Layers"]), 1, "and others find it there")
        refused(box.cli("template", "pull", f"{at}/team/tiny:2", "x"), "no such image or tag", f"{at}/team/tiny:2", rc=125)
        refused(box.cli("template", "pull", f"{at}/nobody/else", "x"), "no such image", rc=125)
        refused(box.cli("template", "pull", f"{at}/team/tiny:1", "again"), "already", rc=125)
        shutil.rmtree(box.home / ".config/containers/certs.d")
        refused(box.cli("template", "pull", f"{at}/team/tiny:1", "x"), "certificate is not trusted", rc=125)
    refused(box.cli("template", "pull", f"{at}/team/tiny:1", "x"), "cannot be reached", rc=125)
    refused(box.cli("template", "push", "again", f"{at}/team/tiny:1"), "cannot be reached", rc=125)
    refused(box.cli("template", "pull", "UPPER!", "x"), "must be lowercase", rc=125)
    refused(box.cli("template", "push", "none", f"{at}/x"), "no template 'none'", rc=125)
    for words in (("pull", f"{at}/x", "x"), ("push", "again", f"{at}/x")):
        refused(box.cli("template", *words, env={"PATH": "/nonexistent"}), "needs 'skopeo'", rc=125)
    eq(names(box), ["again"])
    eq([p for p in os.listdir(box.state / "images") if p.startswith(".part")], [])


@test(timeout=60, who=("user",))
def through_a_registry_without_tls(box):
    """Refused, until the user's own configuration of registries says that it is meant."""
    box.needs("skopeo")
    done(box, "template", "import", str(tiny(box)), "tiny")
    with registry(box, tls=False) as at:
        refused(box.cli("template", "push", "tiny", f"{at}/tiny"), "speaks no TLS", "registries.conf", rc=125)
        conf = box.home / ".config/containers/registries.conf"
        conf.parent.mkdir(parents=True)
        conf.write_text(f'[[registry]]\nlocation = "{at}"\ninsecure = true\n')
        box.own(box.home / ".config")
        done(box, "template", "push", "tiny", f"{at}/tiny")
        done(box, "template", "pull", f"{at}/tiny:latest", "again")
    eq(done(box, "run", "--template", "again", "--", "cat", "/opt/own/f").out, "own\n")


def builds(box, tool):
    box.needs(tool)
    root = tiny(box)
    ctx = box.home / "ctx"
    ctx.mkdir()
    with tarfile.open(ctx / "root.tar", "w") as t:
        t.add(root, ".")
    (ctx / "Dockerfile").write_text("FROM scratch\nADD root.tar /\nRUN cat /proc/net/dev > /opt/net && rm /opt/own/f\n")
    box.own(ctx)
    env = {"XDG_RUNTIME_DIR": str(box.dir / "run")}
    (box.dir / "run").mkdir(mode=0o700)
    box.own(box.dir / "run")
    r = box.cli("template", "build", "--with", tool, str(ctx / "Dockerfile"), "made", timeout=100, env=env)
    eq(r.rc, 0, r.err)
    eq(r.out, "made\n")
    seen = done(box, "run", "--template", "made", "--", "sh", "-c", "cat /opt/net; ls /opt/own")
    has(seen.out, "lo:")
    eq(len(seen.out.splitlines()), 3, "its steps had no network but their own loopback")
    refused(box.cli("template", "build", str(box.ws / "none"), "x"), "No such file")
    refused(box.cli("template", "build", "--with", "make", str(ctx / "Dockerfile"), "x"), "--with takes")


@test(timeout=120, who=("user",))
def dockerfiles_are_built_by_buildah(box):
    builds(box, "buildah")


@test(timeout=120, who=("root",))
def dockerfiles_are_built_by_podman(box):
    builds(box, "podman")


@test
def the_hosts_own_system_names_the_command(box):
    r = box.sh("echo 'E: Could not open lock file /var/lib/dpkg/lock-frontend - open (2: No such file or directory)' >&2; "
               "echo 'E: are you root?' >&2; exit 100")
    has(r.err, "vitrine template")


MAKER = """#!/bin/sh
# Stands for mmdebstrap: writes a part of the archive, and hangs.
for word; do case $word in *.tar) head -c 5000000 /dev/zero >"$word"; echo $$ >"%s" ;; esac; done
exec sleep 60
"""


def parts(box):
    return [p.name for p in (box.state / "images").glob(".part-*")]


@test(timeout=60)
def killed_commands_leave_nothing_half_made(box):
    """Whatever ends the command: what it had written is gone a moment later, without another command."""
    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        tools, pid = box.dir / f"tools-{sig}", box.dir / f"pid-{sig}"
        tools.mkdir()
        (tools / "mmdebstrap").write_text(MAKER % pid)
        (tools / "mmdebstrap").chmod(0o755)
        box.own(tools)
        pid.touch()
        box.own(pid)
        p = box.start("template", "debian", "x", "--packages", "hello", env={"PATH": f"{tools}:/usr/bin:/bin"})
        soon(lambda: pid.read_text().strip(), "the maker writes", 10)
        eq(len(parts(box)) >= 2, True, "a directory and an archive in the making")
        p.send_signal(sig)
        box.finish(p)  # its output ends: the maker has ended with it
        soon(lambda: not parts(box), f"nothing half-made is left after {sig.name}", 12)
    # A file of the user's own choice.
    done(box, "run", "--name", "box", "--", "sh", "-c", "head -c 200000000 /dev/urandom >~/big")
    p = box.start("save", "box", "box:1", "-o", str(box.home / "box.tar"))
    half = box.home / "box.tar.part"
    soon(lambda: half.exists() or p.poll() is not None, "the archive is begun", 10)
    p.send_signal(signal.SIGKILL)
    box.finish(p)
    soon(lambda: not half.exists() and not parts(box), "nothing half-made is left", 12)


@test
def what_a_power_cut_left_is_found(box):
    """doctor counts it, prune removes it; while a command works there, it is nobody's business."""
    done(box, "template", "import", str(tiny(box)), "tiny")

    def row():
        return next(c for c in json.loads(box.cli("doctor", "--json").out)["checks"] if c["id"] == "left")

    eq(row()["state"], "works")
    left = box.state / "images" / ".part-0123456789abcdef"
    (left / "deep").mkdir(parents=True)
    (left / "deep" / "f").write_bytes(bytes(3 << 20))
    (box.state / "images" / ".part-link").symlink_to(box.home)
    box.own(box.state / "images")
    c = row()
    eq(c["state"], "weaker")
    has(c["detail"], "2 templates or images of commands that were cut off, 3 MiB")
    has(c["fix"], "vitrine prune")
    with open(box.state / "images" / ".lock", "r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        eq(row()["state"], "works", "somebody works there")
        has_not(box.cli("prune", "--yes").err, "half-made")
    r = box.cli("prune", "--dry-run")
    has(r.err, "2 half-made templates or images of commands that were cut off would go, 3 MiB")
    eq(left.exists(), True)
    r = box.cli("prune", "--yes")
    has(r.err, "are gone, 3 MiB")
    eq((left.exists(), parts(box), box.home.exists(), row()["state"]), (False, [], True, "works"))


if __name__ == "__main__":
    sys.exit(main())
