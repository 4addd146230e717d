#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The programs agents use, doing their ordinary work inside, without a network."""

import base64
import hashlib
import os
import shutil
import sys
import tarfile
import zipfile
from pathlib import Path

from harness import PATH, Skip, eq, has, main, test

IDENTITY = ["-e", "GIT_AUTHOR_NAME=A", "-e", "GIT_AUTHOR_EMAIL=a@example.invalid", "-e", "GIT_COMMITTER_NAME=A",
            "-e", "GIT_COMMITTER_EMAIL=a@example.invalid"]


def repository(box):
    """One made on the host, as a user's is."""
    box.needs("git")
    box.write("a.txt", "one\n")
    git = ["git", "-c", "user.name=H", "-c", "user.email=h@example.invalid"]
    box.host("git", "init", "-q", "-b", "main")
    box.host("git", "add", "-A")
    box.host(*git, "commit", "-q", "-m", "first")


def log(box):
    return box.host("git", "log", "--format=%s").splitlines()


@test
def git_commit(box):
    repository(box)
    box.ok("echo two >>a.txt && echo new >b.txt && git add -A && git commit -q -m second", *IDENTITY)
    eq(log(box), ["second", "first"])
    eq(box.host("git", "status", "--porcelain"), "")


@test
def git_stash_and_branches(box):
    repository(box)
    out = box.ok("""set -e
        echo x >>a.txt; echo y >new
        git stash -q -u; git status --porcelain; git stash pop -q; git status --porcelain
        git checkout -q -b side; git commit -q -am side; git checkout -q main
        git merge -q --no-edit side; git log --format=%s""", *IDENTITY)
    eq(out, " M a.txt\n?? new\nside\nfirst\n")
    eq(log(box), ["side", "first"])


@test
def git_clone_and_worktree(box):
    repository(box)
    box.ok("git clone -q . copy && cd copy && echo z >z && git add -A && git commit -q -m third", *IDENTITY)
    eq((box.ws / "copy" / "z").read_text(), "z\n")
    out = box.ok("""git worktree add -q -b side tree && cat tree/a.txt && git worktree remove tree &&
        git branch --list side""", *IDENTITY)
    has(out, "one", "side")


@test
def git_init_inside(box):
    box.needs("git")
    r = box.sh("""git init -q -b main r && cd r && echo x >x && git add -A && git commit -q -m made &&
        git log --format=%s""", *IDENTITY)
    eq((r.rc, r.out), (0, "made\n"), r.err)
    eq(box.host("git", "-C", "r", "log", "--format=%s"), "made\n")


@test
def git_rebase_and_housekeeping(box):
    repository(box)
    out = box.ok("""set -e
        for i in 1 2 3; do echo $i >f$i; git add -A; git commit -q -m $i; done
        git rebase -q --onto HEAD~2 HEAD~1; git log --format=%s; git blame -s a.txt | wc -l
        git gc -q; git fsck --no-dangling; git diff HEAD~1 --stat | tail -n 1
        git tag v1; git describe --tags; git reset -q --hard HEAD~1""", *IDENTITY)
    has(out, "3\n1\nfirst\n1\n", "1 file changed", "v1")
    eq(log(box), ["1", "first"])


@test
def make_and_gcc(box):
    box.needs("make", "gcc")
    box.write("Makefile", "all: hello\n\t./hello\nhello: hello.o util.o\n\tgcc -o $@ $^\n"
              "%.o: %.c\n\tgcc -O1 -Wall -c -o $@ $<\n")
    box.write("hello.c", "#include <stdio.h>\nint util(void);\n"
              "int main(void) { printf(\"%d\\n\", util()); return 0; }\n")
    box.write("util.c", "int util(void) { return 42; }\n")
    has(box.ok("make -j2"), "42\n")
    eq(box.host(str(box.ws / "hello")), "42\n")


@test
def node(box):
    box.needs("node")
    box.write("t.js", "const fs = require('fs'); const { execSync } = require('child_process');\n"
              "const { Worker, isMainThread } = require('worker_threads');\n"
              "if (isMainThread) { new Worker(__filename).on('exit', () => {\n"
              "fs.writeFileSync('out', String(execSync('echo child')));\n"
              "console.log([1, 2, 3].map(x => x * 2).join()); }); }\n")
    eq(box.ok("node t.js"), "2,4,6\n")
    eq(box.read("out"), "child\n")


@test
def node_listens_on_loopback(box):
    box.needs("node")
    box.write("s.js", "const http = require('http'); const s = http.createServer((q, r) => r.end('served'));\n"
              "s.listen(0, '127.0.0.1', () => http.get({ port: s.address().port, host: '127.0.0.1' }, r =>\n"
              "r.on('data', d => { console.log(String(d)); s.close(); })));\n")
    eq(box.ok("node s.js"), "served\n")


@test(timeout=40)
def npm_install(box):
    box.needs("npm", "node")
    package = box.dir / "package"
    package.mkdir()
    (package / "package.json").write_text(
        '{ "name": "small", "version": "1.0.0", "main": "index.js", "bin": { "small": "index.js" } }')
    (package / "index.js").write_text("#!/usr/bin/env node\nmodule.exports = () => 'small package';\n"
                                      "if (require.main === module) console.log('ran');\n")
    with tarfile.open(box.ws / "small-1.0.0.tgz", "w:gz") as t:
        t.add(package, "package")
    box.write("package.json", '{ "name": "app", "version": "1.0.0", "scripts": { "test": "small" } }')
    box.own(box.ws)
    r = box.sh("""npm install --offline --no-audit --no-fund ./small-1.0.0.tgz &&
        node -e "console.log(require('small')())" && npm test""", timeout=35)
    eq(r.rc, 0, r.out + r.err)
    has(r.out, "small package", "ran")
    eq((box.ws / "node_modules" / "small").exists(), True)


def wheel(path):
    """A wheel is a zip file with three files of metadata."""
    files = {"tinymod.py": b"def answer():\n    return 42\n",
             "tinymod-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: tinymod\nVersion: 1.0\n",
             "tinymod-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\n"
                                            b"Tag: py3-none-any\n"}
    record = "tinymod-1.0.dist-info/RECORD,,\n"
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    with zipfile.ZipFile(path, "w") as z:
        for name, data in files.items():
            z.writestr(name, data)
        z.writestr("tinymod-1.0.dist-info/RECORD", record)


@test(timeout=60)
def python_venv_and_pip(box):
    box.needs("python3")
    wheel(box.ws / "tinymod-1.0-py3-none-any.whl")
    box.own(box.ws)
    r = box.sh("""python3 -m venv v &&
        v/bin/pip install -q --no-index --disable-pip-version-check ./tinymod-1.0-py3-none-any.whl &&
        v/bin/python -c 'import tinymod; print(tinymod.answer())'""", timeout=55)
    eq((r.rc, r.out), (0, "42\n"), r.err)


@test
def python_multiprocessing(box):
    """Needs named semaphores in /dev/shm, and pipes, and fork."""
    box.needs("python3")
    box.write("m.py", "import multiprocessing as m, socket, sqlite3, tempfile, threading\n"
              "def f(x):\n    return x * x\n"
              "if __name__ == '__main__':\n"
              "    with m.Pool(3) as p:\n        print(sum(p.map(f, range(10))))\n"
              "    s = socket.create_server(('127.0.0.1', 0))\n"
              "    socket.create_connection(s.getsockname()).close()\n"
              "    t = threading.Thread(target=print, args=('thread',)); t.start(); t.join()\n")
    eq(box.ok("python3 m.py"), "285\nthread\n")


@test
def sqlite(box):
    box.needs("sqlite3")
    out = box.ok("""sqlite3 db 'pragma journal_mode=wal; create table t (x); insert into t values (1), (2);
        select sum(x) from t;'""")
    eq(out, "wal\n3\n")
    eq(box.host("sqlite3", "db", "select count(*) from t"), "2\n")


@test(timeout=40)
def java(box):
    box.needs("javac", "java")
    box.write("T.java", "public class T { public static void main(String[] a) throws Exception {\n"
              "Thread t = new Thread(() -> System.out.println(\"thread\")); t.start(); t.join();\n"
              "System.out.println(6 * 7); } }\n")
    r = box.sh("javac T.java && java -cp . T", timeout=35)
    eq((r.rc, r.out), (0, "thread\n42\n"), r.err)


@test(who=["root"], timeout=60)
def cargo(box):
    """rustup's toolchain lies below the home it was installed for; it is shown there read-only."""
    home = Path(os.path.expanduser("~"))
    if not (home / ".cargo/bin/cargo").exists() and shutil.which("cargo", path=PATH) is None:
        raise Skip("cargo is not installed")
    place = home / f".vitrine-cli-{os.getpid()}"
    (place / "crate" / "src").mkdir(parents=True)
    try:
        (place / "crate" / "Cargo.toml").write_text('[package]\nname = "tiny"\nversion = "0.1.0"\n')
        (place / "crate" / "src" / "main.rs").write_text('fn main() { println!("{}", 6 * 7); }\n')
        r = box.sh("cargo --version >/dev/null 2>&1 || exit 99; cargo run -q --offline",
                   cwd=place / "crate", env={"HOME": str(home), "PATH": f"{home}/.cargo/bin:{PATH}"}, timeout=55)
        if r.rc == 99 and os.system("cargo --version >/dev/null 2>&1") != 0:
            raise Skip("cargo does not work on the host either")
        eq((r.rc, r.out), (0, "42\n"), r.err)
    finally:
        shutil.rmtree(place)


@test(who=["root"], timeout=60)
def go(box):
    box.needs("go")
    box.write("go.mod", "module tiny\n\ngo 1.18\n")
    box.write("main.go", "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(6 * 7) }\n")
    r = box.sh("GOFLAGS=-mod=mod GOPROXY=off go run .", timeout=55)
    eq((r.rc, r.out), (0, "42\n"), r.err)


@test
def shell_tools(box):
    """The rest of a working day: pipes, archives, links, permissions, locks, dates, big files."""
    out = box.ok("""set -e
        mkdir -p d/e; echo x >d/e/f; tar czf t.tgz d; rm -r d; tar xzf t.tgz; cat d/e/f
        ln d/e/f hard; ln -s hard soft; cat soft; chmod 600 hard; find hard -printf '%m\\n'
        find . -name f | xargs grep -c x; seq 1 100000 | sort -rn | head -n 1
        truncate -s 1G big; find big -printf '%s\\n'; mktemp >/dev/null
        (flock 9; echo locked) 9>lock; mkfifo p; (echo fifo >p &); cat p
        sed -i s/x/y/ d/e/f; cat d/e/f; diff d/e/f d/e/f; touch -d 2001-01-01 old""")
    has(out, "x\nx\n600\n1\n100000\n1073741824\nlocked\nfifo\ny\n")


if __name__ == "__main__":
    sys.exit(main())
