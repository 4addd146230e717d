#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The broker and real far ends: a real sshd with the user's ssh agent, a real gh against a mock of GitHub, and what does
not go through it: git-lfs objects and submodules.

All of it in a network and mount namespace of the test's own (internet.py)."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import agent_api  # noqa: E402
import internet  # noqa: E402
from broker import SHARE, brokered, git, rules, tip, upstream, user_policy  # noqa: E402
from harness import Skip, eq, has, has_not, lasting, main, soon, test, tests  # noqa: E402

tests.clear()  # those of broker.py are run by broker.py
TOKEN = "ghp_" + "canary0123456789" * 2 + "abcd"
UNPACKED = Path(__file__).resolve().parent.parent.parent / "build" / "unpacked"
net = None


def far_away():
    global net
    if os.geteuid() != 0:
        raise Skip("a fake internet needs root")
    if net is None:
        d = Path(tempfile.mkdtemp(prefix="far-"))
        d.chmod(0o755)
        net = internet.Internet(tls=str(internet.make_chain(d, agent_api.HOSTS)))
        net.trust = d / "trust.pem"
        lasting.add(net.pid)
    net.clear()
    return net


@contextmanager
def at_home(box):
    """ssh asks the password database where a home is, not the environment."""
    lines = Path("/etc/passwd").read_text().splitlines()
    fields = [line.split(":") for line in lines]
    text = "\n".join(":".join([*f[:5], str(box.home), f[6]]) if f[0] == box.account.pw_name else ":".join(f) for f in fields)
    copy = box.dir / "passwd"
    copy.write_text(text + "\n")
    copy.chmod(0o644)
    internet.mount(str(copy), "/etc/passwd", internet.MS_BIND)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", "/etc/passwd"], check=True)


class Sshd:
    """A real one, as an ordinary user: it lets in that user alone, by a key that only the agent has."""

    def __init__(self, box):
        self.box, self.d = box, box.dir / "sshd"
        program = shutil.which("sshd", path=f"{UNPACKED}/usr/sbin:/usr/sbin")
        if not program or not shutil.which("ssh-agent"):
            raise Skip("no sshd or no ssh-agent; tools/deps --test brings them")
        ssh = box.home / ".ssh"
        for d in (self.d, ssh):
            d.mkdir(mode=0o700)
            box.own(d)
        for name in ("host", "user"):
            box.host("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.d / name)
        self.private = (self.d / "user").read_text().splitlines()[2]
        s = socket.create_server(("127.0.0.1", 0))
        self.port = s.getsockname()[1]
        s.close()
        (self.d / "conf").write_text(f"""Port {self.port}
ListenAddress 127.0.0.1
HostKey {self.d}/host
AuthorizedKeysFile {self.d}/user.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
UseDNS no
LogLevel VERBOSE
""")
        (ssh / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {(self.d / 'host.pub').read_text()}")
        (ssh / "config").write_text(f"Host forge.test\n  HostName 127.0.0.1\n  Port {self.port}\n")
        box.own(ssh)
        self.socket = self.d / "agent"
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
        self.agent = box.popen(["ssh-agent", "-D", "-a", self.socket], stderr=subprocess.DEVNULL, **quiet)
        self.log = open(self.d / "log", "wb")
        self.daemon = box.popen([program, "-D", "-e", "-f", self.d / "conf"], stderr=self.log, **quiet,
                                env={"LD_LIBRARY_PATH": ":".join(str(p) for p in UNPACKED.glob("usr/lib/*"))})
        soon(self.is_answering, "the agent", 10)
        soon(lambda: b"Server listening" in (self.d / "log").read_bytes(), "sshd", 10)
        box.host("ssh-add", "-q", self.d / "user", env={"SSH_AUTH_SOCK": str(self.socket)})
        (self.d / "user").unlink()

    def is_answering(self):
        with socket.socket(socket.AF_UNIX) as s:
            return s.connect_ex(str(self.socket)) == 0

    def close(self):
        for p in (self.daemon, self.agent):
            p.terminate()
            p.wait()
        self.log.close()


@test(who=("user",), timeout=60)
def ssh_with_the_users_agent(box):
    """Push and fetch over a real ssh; key, agent and known hosts are the user's and are nowhere inside."""
    far_away()
    with at_home(box):
        with_sshd(box, Sshd(box))


def with_sshd(box, d):
    try:
        up = upstream(box)
        url = f"ssh://{box.account.pw_name}@forge.test{up}"
        git(box, "remote", "set-url", "origin", url)
        agent = {"SSH_AUTH_SOCK": str(d.socket)}
        flags = ("--broker-push", f"{url} refs/heads/agent/*", "--broker-fetch", url)
        r = box.sh(SHARE + f"""
            git checkout -q -b agent/x; echo two >> a.txt; git commit -qam two
            git push -q origin agent/x && git fetch -q origin && git rev-parse origin/agent/x
            git push origin agent/x:main
            ls -d {d.socket} {box.home}/.ssh; env; ssh-add -l
            cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'
        """, *flags, env=agent, timeout=40)
        eq(tip(box, up, "refs/heads/agent/x"), git(box, "rev-parse", "agent/x"), r.err)
        eq(r.out.split("\n")[0], git(box, "rev-parse", "agent/x"))
        has(r.err, "no rule of broker.push covers this ref", f"cannot access '{d.socket}'", f"cannot access '{box.home}/.ssh'")
        has_not(r.out, "SSH_AUTH_SOCK", "ssh-agent", d.private)
        has((d.d / "log").read_text(), "Accepted publickey")
        eq([(e["verdict"], e.get("status")) for e in brokered(box) if e["argv"][1] == "push"],
           [("allow", None), ("allow", 0), ("deny", None)])
        # The agent is what opened the door: without it nothing does.
        r = box.sh("git fetch origin", *flags, env={"SSH_AUTH_SOCK": None}, timeout=40)
        eq(r.rc, 128)
        has(r.err, "Permission denied (publickey)")
        # A far end that is not the one the user knows is not spoken to.
        (box.home / ".ssh/known_hosts").write_text("")
        r = box.sh("git fetch origin", *flags, env=agent, timeout=40)
        has(r.err, "Host key verification failed")
    finally:
        d.close()


@test(who=("user",), timeout=60)
def a_real_gh(box):
    """It speaks to api.github.com with the token of the secret, which is nowhere inside."""
    if not shutil.which("gh", path="/usr/bin"):
        raise Skip("no gh; tools/deps --test installs it")
    n = far_away()
    user_policy(box, gh=["me/app secret=forge"])
    trust = {"SSL_CERT_FILE": str(n.trust)}
    r = box.cli("secret", "set", "forge", "--host", "api.github.com", "--env", "FORGE_TOKEN", input=TOKEN.encode())
    eq(r.rc, 0, r.err)
    r = box.sh("gh pr create --title 'a title' --head agent/x --base main --body 'the body'; env", env=trust, timeout=40)
    has(r.out, "https://github.com/me/app/pull/7\n")
    has_not(r.out + r.err, TOKEN)
    calls = [c for c in n.lines() if c["kind"] == "api" and c["host"] == "api.github.com"]
    eq({c["key"] for c in calls}, {TOKEN}, "on the wire")
    made = [c["made"] for c in calls if c.get("made")]
    eq([(m["title"], m["body"], m["headRefName"], m["baseRefName"]) for m in made],
       [("a title", "the body", "agent/x", "main")])
    eq([(e["verdict"], e.get("status")) for e in brokered(box)], [("allow", None), ("allow", 0)])


def second(box, name):
    """Another repository, with one commit on main."""
    work, bare = box.dir / f"{name}-work", box.dir / f"{name}.git"
    work.mkdir()
    (work / "s.txt").write_text("s\n")
    box.own(work)
    git(box, "init", "-q", "--bare", "-b", "main", bare, cwd=box.dir)
    git(box, "init", "-q", "-b", "main", ".", cwd=work)
    git(box, "add", ".", cwd=work)
    git(box, "commit", "-qm", "s", cwd=work)
    git(box, "push", "-q", bare, "main", cwd=work)
    return bare


@test(who=("user",), timeout=60)
def submodules_are_repositories_of_their_own(box):
    """Each is fetched and pushed by its own rules; the link to its commit is carried as what it is."""
    up, sub = upstream(box), second(box, "sub")
    git(box, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", f"file://{sub}", "sub")
    git(box, "commit", "-qm", "with a submodule")
    git(box, "push", "-q", "origin", "main")
    shutil.rmtree(box.ws / "sub")
    shutil.rmtree(box.ws / ".git/modules")
    work = SHARE + """
        git submodule update -q --init && cat sub/s.txt
        cd sub && git checkout -q -b agent/x && echo more >> s.txt && git commit -qam more && cd ..
        git checkout -q -b agent/x && git commit -qam moved
    """
    only_up = rules(up, "refs/heads/agent/*")
    r = box.sh("git submodule update -q --init", *only_up, "--mode", "review", timeout=30)
    assert r.rc != 0 and not (box.ws / "sub/s.txt").exists(), r.out
    r = box.sh(work + "git push -q --recurse-submodules=on-demand origin agent/x", *only_up, *rules(sub, "refs/heads/agent/*"),
               timeout=40)
    eq((r.rc, r.out), (0, "s\n"), r.err)
    eq(tip(box, sub, "refs/heads/agent/x"), git(box, "rev-parse", "agent/x:sub"))
    eq(tip(box, up, "refs/heads/agent/x"), git(box, "rev-parse", "agent/x"))


@test(who=("user",), timeout=60)
def lfs_is_refused(box):
    """A pointer without its content would be a broken upstream."""
    if not shutil.which("git-lfs", path="/usr/bin"):
        raise Skip("no git-lfs; tools/deps --test installs it")
    up = upstream(box)
    r = box.sh(SHARE + """
        export GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0=filter.lfs.clean GIT_CONFIG_VALUE_0='git-lfs clean -- %f' \\
            GIT_CONFIG_KEY_1=filter.lfs.required GIT_CONFIG_VALUE_1=true
        git checkout -q -b agent/x && echo '*.bin filter=lfs -text' > .gitattributes && head -c 4000 /dev/zero > big.bin
        git add . && git commit -qm big && git cat-file -p HEAD:big.bin | head -1
        git push origin agent/x
    """, *rules(up, "refs/heads/agent/*"), timeout=40)
    eq((r.rc, r.out), (1, "version https://git-lfs.github.com/spec/v1\n"), r.err)
    has(r.err, "big.bin is a pointer of git-lfs, whose content does not go through the broker")
    eq(tip(box, up, "refs/heads/agent/x"), "")
    box.ok("git push -q origin agent/x", *rules(up, "refs/heads/agent/* no-scan"), timeout=30)
    eq(tip(box, up, "refs/heads/agent/x"), git(box, "rev-parse", "agent/x"))


if __name__ == "__main__":
    sys.exit(main())
