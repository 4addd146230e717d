#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real programs through the gate to real servers: what was asked for really arrives and works.

sshd and PostgreSQL are the ones of the distribution; the registries of npm, pip, go and cargo are one TLS server that
serves packages made here, inspected, so that each client has to find the sandbox's CA by itself. All of it listens at
own.test, a public address of the host in the fake internet."""

import base64
import functools
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from far import internet  # noqa: E402
from harness import Skip, eq, has, has_not, main, soon, test  # noqa: E402
from internet import OWN4  # noqa: E402
from seal_upstream import Server, make_certs  # noqa: E402

UNPACKED = Path(__file__).resolve().parent.parent.parent / "build" / "unpacked"
SSH, SQL = 2222, 15432
HOST = ("--allow", f"{OWN4}/32")
INSPECTED = (*HOST, "--allow", "own.test:443", "--inspect", "own.test")


class Registry(Server):
    def __init__(self, d):
        self.files = {}
        super().__init__(d, repos=d / "repos", address=OWN4, port=443)

    def answer(self, s, f, q):
        path = q.target.split("?")[0]
        if path in self.files:
            kind, body = self.files[path]
            return self.reply(s, body, fields=[("Content-Type", kind)], head_only=q.method == "HEAD")
        if path.startswith(("/npm/", "/simple/", "/go/")):
            return self.reply(s, b"not here\n", "404 Not Found")
        return super().answer(s, f, q)


@functools.cache
class World:
    def __init__(self):
        internet()
        self.d = Path(tempfile.mkdtemp(prefix="servers-"))
        self.d.chmod(0o755)
        make_certs(self.d)
        self.registry = Registry(self.d)
        self.trust = {"SSL_CERT_FILE": str(self.d / "trust.pem")}


def there():
    World().registry.seen.clear()
    return World()


@contextmanager
def daemon(box, words, log, ready, **kw):
    """A server in the foreground, until the block ends."""
    with open(log, "wb") as f:
        p = box.popen(words, stdin=subprocess.DEVNULL, stdout=f, stderr=f, **kw)
    try:
        soon(lambda: ready in log.read_bytes() or p.poll() is not None, f"{words[0]}", 20)
        eq(p.poll(), None, log.read_text(errors="replace"))
        yield
    finally:
        p.terminate()
        p.wait()


@contextmanager
def sshd(box):
    program = shutil.which("sshd", path=f"{UNPACKED}/usr/sbin:/usr/sbin")
    if program is None:
        raise Skip("sshd is not installed; tools/deps --test brings it")
    d = box.dir / "sshd"
    d.mkdir(mode=0o700)
    box.own(d)
    for name in ("host", "user"):
        box.host("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", d / name)
    (d / "conf").write_text(f"Port {SSH}\nListenAddress {OWN4}\nHostKey {d}/host\nAuthorizedKeysFile {d}/user.pub\nPidFile none\n"
                            "StrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nUseDNS no\n")
    libraries = {"LD_LIBRARY_PATH": ":".join(str(p) for p in UNPACKED.glob("usr/lib/*"))}
    with daemon(box, [program, "-D", "-e", "-f", d / "conf"], d / "log", b"Server listening", env=libraries):
        key = box.write("k", (d / "user").read_text())
        os.chmod(key, 0o600)
        known = box.write("known", f"[own.test]:{SSH} {(d / 'host.pub').read_text()}")
        yield f"ssh -F none -i {key} -o UserKnownHostsFile={known} -o BatchMode=yes -o ConnectTimeout=8"


@test(who=("user",), timeout=60)
def ssh_and_git_over_ssh(box):
    """A command, a clone and a push; the server's key is verified, so nobody stands in between."""
    box.needs("ssh", "git")
    w = there()
    me = box.account.pw_name
    up = box.dir / "up.git"
    box.host("git", "init", "-q", "--bare", "-b", "main", up)
    with sshd(box) as ssh:
        allow = (*HOST, "--allow", f"own.test:{SSH}")
        r = box.sh(f"{ssh} -p {SSH} {me}@own.test 'echo came from $SSH_CONNECTION' </dev/null", *allow)
        has(r.out, "came from")
        r = box.sh(f"export GIT_SSH_COMMAND='{ssh}' GIT_CONFIG_GLOBAL=/tmp/gc; cd /tmp; git config --global user.name t; "
                   f"git config --global user.email t@t; git clone -q ssh://{me}@own.test:{SSH}{up} a; cd a; echo x > f; git add f; "
                   "git commit -qm one; git push -q origin HEAD:main && echo pushed; git ls-remote origin", *allow, timeout=40)
        has(r.out, "pushed", "refs/heads/main")
        has(box.host("git", "-C", up, "log", "--format=%s", "main"), "one")
        r = box.sh(f"{ssh} -p {SSH} {me}@own.test true </dev/null", *HOST, "--allow", "own.test:22")
        eq(r.rc, 255, r.err)
    log = (box.dir / "sshd" / "log").read_text()
    eq(log.count("Accepted publickey"), 4, "a command, a clone, a push, a list; not what was refused")
    has_not(str(w.registry.seen), "ssh")


@contextmanager
def postgres(box):
    # The client alone has such a directory, too.
    found = [*UNPACKED.glob("usr/lib/postgresql/*/bin/postgres"), *Path("/usr/lib/postgresql").glob("*/bin/postgres")]
    bin_dir = Path(found[0] if found else shutil.which("postgres") or "none").parent
    if not (bin_dir / "initdb").exists():
        raise Skip("PostgreSQL is not installed; tools/deps --test brings it")
    d = box.dir / "sql"
    password = box.write("pw", "hunter2")
    box.host(bin_dir / "initdb", "-D", d, "-U", "me", "-A", "scram-sha-256", "--pwfile", password, "--no-sync", "--no-instructions")
    with open(d / "pg_hba.conf", "a") as f:
        f.write("host all all all scram-sha-256\n")
    with daemon(box, [bin_dir / "postgres", "-D", d, "-h", OWN4, "-p", str(SQL), "-k", d, "-F"], box.dir / "sql.log",
                b"ready to accept connections"):
        yield


@test(who=("user",), timeout=90)
def psql(box):
    box.needs("psql")
    there()
    with postgres(box):
        ask = ("-e", "PGPASSWORD=hunter2", "-e", "PGCONNECT_TIMEOUT=8", "--", "psql", "-h", "own.test", "-p", str(SQL), "-U", "me", "-d",
               "postgres", "-Atc", "create table t (n int); insert into t select generate_series(1, 1000); select sum(n) from t")
        r = box.run(*HOST, "--allow", f"own.test:{SQL}", *ask)
        has(r.out, "500500")
        r = box.run(*HOST, "--allow", "own.test:5432", *ask)
        eq(r.rc, 2, r.err)


def tarball(**files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as t:
        for name, text in files.items():
            info = tarfile.TarInfo(f"package/{name}")
            info.size = len(text)
            t.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


def zipped(files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        for name, text in files.items():
            z.writestr(name, text)
    return out.getvalue()


@test(timeout=60)
def npm(box):
    box.needs("npm", "node")
    w = there()
    tgz = tarball(**{"package.json": '{"name": "leftover", "version": "1.0.0", "main": "i.js"}', "i.js": "module.exports = 'left over';"})
    dist = {"tarball": "https://own.test/npm/leftover-1.0.0.tgz", "integrity": "sha512-" + base64.b64encode(hashlib.sha512(tgz).digest()).decode()}
    text = json.dumps({"name": "leftover", "dist-tags": {"latest": "1.0.0"},
                       "versions": {"1.0.0": {"name": "leftover", "version": "1.0.0", "main": "i.js", "dist": dist}}})
    w.registry.files = {"/npm/leftover": ("application/json", text.encode()), "/npm/leftover-1.0.0.tgz": ("application/octet-stream", tgz)}
    r = box.sh("cd /tmp; npm install leftover --registry https://own.test/npm/ --no-audit --no-fund --no-update-notifier --fetch-retries=0 && "
               "node -p \"require('leftover')\"", *INSPECTED, env=w.trust, timeout=50)
    has(r.out, "left over")
    eq([q.target for q in w.registry.seen], ["/npm/leftover", "/npm/leftover-1.0.0.tgz"])


@test(timeout=60)
def pip(box):
    w = there()
    if "pip" not in box.host("sh", "-c", "/usr/bin/python3 -m pip --version || true"):
        raise Skip("pip is not installed")
    wheel = zipped({"wheely.py": "word = 'on wheels'", "wheely-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: wheely\nVersion: 1.0\n",
                    "wheely-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
                    "wheely-1.0.dist-info/RECORD": "wheely.py,,\n"})
    name = "wheely-1.0-py3-none-any.whl"
    page = f'<a href="/simple/files/{name}#sha256={hashlib.sha256(wheel).hexdigest()}">{name}</a>'
    w.registry.files = {"/simple/wheely/": ("text/html", page.encode()), f"/simple/files/{name}": ("application/octet-stream", wheel)}
    r = box.sh("/usr/bin/python3 -m pip install -q --retries 0 --disable-pip-version-check --target /tmp/t --index-url https://own.test/simple wheely && "
               "PYTHONPATH=/tmp/t python3 -c 'import wheely; print(wheely.word)'", *INSPECTED, env=w.trust, timeout=50)
    has(r.out, "on wheels")


@test(who=("user",), timeout=60)
def go(box):
    box.needs("go")
    w = there()
    at = "/go/example.org/x/@v/"
    mod = b"module example.org/x\n"
    w.registry.files = {at + "list": ("text/plain", b"v1.0.0\n"), at + "v1.0.0.mod": ("text/plain", mod),
                        at + "v1.0.0.info": ("application/json", b'{"Version": "v1.0.0", "Time": "2020-01-01T00:00:00Z"}'),
                        at + "v1.0.0.zip": ("application/zip", zipped({"example.org/x@v1.0.0/go.mod": mod.decode(),
                                                                      "example.org/x@v1.0.0/x.go": "package x // gopher\n"}))}
    r = box.sh("cd /tmp; go mod download example.org/x@v1.0.0; cat ~/go/pkg/mod/example.org/x@v1.0.0/x.go", *INSPECTED,
               "-e", "GOPROXY=https://own.test/go", "-e", "GOSUMDB=off", "-e", "GOFLAGS=-modcacherw", env=w.trust, timeout=50)
    has(r.out, "gopher")


@test(who=("user",), timeout=60)
def cargo(box):
    """A dependency out of a git repository over HTTPS, which cargo fetches by itself."""
    box.needs("cargo", "git")
    w = there()
    repo, tree = w.d / "repos" / "me" / "dep.git", w.d / "dep"
    (tree / "src").mkdir(parents=True)
    (tree / "Cargo.toml").write_text('[package]\nname = "dep"\nversion = "1.0.0"\nedition = "2021"\n')
    (tree / "src/lib.rs").write_text("// crustacean\n")
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@t", "-C", str(tree)]
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "one"], ["clone", "-q", "--bare", ".", str(repo)]):
        subprocess.run([*git, *words], check=True)
    box.write("Cargo.toml", '[package]\nname = "mine"\nversion = "1.0.0"\nedition = "2021"\n[dependencies]\n'
              'dep = { git = "https://own.test/me/dep.git", branch = "main" }\n')
    box.write("src/lib.rs", "")
    r = box.sh("/usr/bin/cargo fetch; cat ${CARGO_HOME:-~/.cargo}/git/checkouts/dep-*/*/src/lib.rs", *INSPECTED, env=w.trust, timeout=50)
    has(r.out, "crustacean")


if __name__ == "__main__":
    sys.exit(main())
