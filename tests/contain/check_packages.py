# SPDX-License-Identifier: Apache-2.0
"""FR-45: the configuration of installed programs. dpkg's records and /etc are the cell's own: root's cells have their own mounts."""

import hashlib
import os
import random
import subprocess
from pathlib import Path

from harness import HELD, Ctx, check

STATUS = Path("/var/lib/dpkg/status")


def mount(c: Ctx, *words):
    r = subprocess.run(["mount", *map(str, words)], capture_output=True, text=True)
    if r.returncode:
        c.inconclusive(f"mount {words}: {r.stderr.strip()}")


def own_etc(c: Ctx):
    """An /etc above the host's and a copy of dpkg's list, for this cell alone."""
    if os.geteuid() != 0 or not STATUS.exists():
        c.inconclusive("only root can have an /etc and records of its own here")
    mem = Path("/mnt")
    mount(c, "-t", "tmpfs", "-o", "mode=755", "none", mem)
    for d in ("up", "work"):
        (mem / d).mkdir()
    mount(c, "-t", "overlay", "-o", f"lowerdir=/etc,upperdir={mem}/up,workdir={mem}/work", "none", "/etc")
    (mem / "status").write_bytes(STATUS.read_bytes())
    mount(c, "--bind", mem / "status", STATUS)


class Variation:
    """One conffile of a package: how it lies there, and whether it may be seen inside."""

    def __init__(self, rnd, number):
        self.text = f"vcf-conf-{number}-{rnd.getrandbits(64):016x}\n"
        self.dir = Path(f"/etc/vcf-prog{number}") / rnd.choice(["", "conf.d", "a/b"])
        self.path = self.dir / rnd.choice(["settings.xml", "m2.conf", "default-flags", "Rules"])
        self.listed, self.flag, self.state = str(self.path), "", "install ok installed"
        self.shown = self.text

    def plant(self, text=None, mode=0o644):
        self.dir.mkdir(parents=True, exist_ok=True)
        self.path.write_text(text or self.text)
        self.path.chmod(mode)

    def stanza(self):
        md5 = hashlib.md5(self.text.encode()).hexdigest()
        return f"\nPackage: vcf{self.dir.parts[2]}\nStatus: {self.state}\nConffiles:\n {self.listed} {md5}{self.flag}\n"


def good(v, c, rnd):
    v.plant(mode=rnd.choice([0o644, 0o755, 0o444]))


def edited(v, c, rnd):
    v.shown = v.text + "password = vcf-mine\n"
    v.plant(v.shown)


def closed_file(v, c, rnd):
    v.plant(mode=rnd.choice([0o640, 0o600, 0o000]))


def closed_dir(v, c, rnd):
    v.plant()
    rnd.choice([v.dir, Path(*v.dir.parts[:3])]).chmod(rnd.choice([0o750, 0o700]))


def writable(v, c, rnd):
    v.plant(mode=rnd.choice([0o666, 0o664]))


def anothers(v, c, rnd):
    v.plant()
    os.chown(rnd.choice([v.path, Path(*v.dir.parts[:3])]), 65534, 65534)


def link_out(v, c, rnd):
    secret = c.plant(c.out / f"secret-{rnd.getrandbits(32)}", v.text)
    v.dir.mkdir(parents=True, exist_ok=True)
    v.path.symlink_to(secret)


def dir_link_out(v, c, rnd):
    d = c.mkdir(c.out / f"dir-{rnd.getrandbits(32)}")
    c.plant(d / v.path.name, v.text)
    v.dir.parent.mkdir(parents=True, exist_ok=True)
    v.dir.symlink_to(d)


def secret_name(v, c, rnd):
    v.path = v.dir / rnd.choice(["api-token", "server.key", "db.passwd", "client_secret.json", "credentials", "id_rsa", "app.env"])
    v.listed = str(v.path)
    v.plant()


def secret_text(v, c, rnd):
    v.text = v.shown = v.text + rnd.choice(["-----BEGIN RSA PRIVATE KEY-----\nx\n", "token = ghp_0123456789abcdefghijklmnopqrstuvwxyz\n"])
    v.plant()


def directory(v, c, rnd):
    v.path.mkdir(parents=True)
    (v.path / "inner").write_text(v.text)


def way_out(v, c, rnd):
    v.plant()
    secret = c.plant(c.out / f"way-{rnd.getrandbits(32)}", v.text)
    v.path.unlink()
    v.listed = f"/etc/..{secret}"


def not_listed(v, c, rnd):
    v.flag, v.state = rnd.choice([(" obsolete", v.state), ("", "deinstall ok config-files"), ("", "install ok half-configured")])
    v.plant()


BAD = [edited, closed_file, closed_dir, writable, anothers, link_out, dir_link_out, secret_name, secret_text, directory, way_out, not_listed]


@check("FR-45", prio="P0", forms=("run",), catches=("conffiles",), timeout=90,
       title="below /etc: a package's own, readable by all, is shown; edited, closed, linked, secret ones are not (60 at random)")
def fr45(c: Ctx):
    own_etc(c)
    rnd = random.Random(f"fr45 {c.ident}")
    kinds = [good] * 12 + BAD * 4
    rnd.shuffle(kinds)
    made = []
    for number, kind in enumerate(kinds):
        v = Variation(rnd, number)
        kind(v, c, rnd)
        made.append((kind, v))
    with STATUS.open("a") as f:
        f.write("".join(v.stanza() for _, v in made))
    r = c.sandbox("grep -rhs . /etc/vcf-* ; find /etc -name 'vcf-*'; echo end", timeout=30)
    c.need_control(r.text.endswith("end\n"), f"not looked through: {r}")
    for kind, v in made:
        marker = v.text.split("\n")[0]
        if kind is good:
            c.need_control(marker in r.text, f"a package's own file is not shown: {v.listed}")
        else:
            c.must(marker not in r.text, f"{kind.__name__}: {v.listed} is shown inside")
    c.must("vcf-mine" not in r.text, "what was edited is shown inside")
    return HELD
