#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Templates: root file systems to start from, from directories, archives and other tools' images."""

import json
import os
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
def a_template_that_was_made_anew(box):
    """What was installed above the old one is not put above the new one, nor above another."""
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


if __name__ == "__main__":
    sys.exit(main())
