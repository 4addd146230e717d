#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Templates made by the real mmdebstrap from the host's own mirror: `make test-templates`. Minutes, and a network.

What takes seconds is in tests/cli/template.py (which words mmdebstrap is given) and tests/cli/template_root.py (sudo, dpkg,
apt and npm in a small root). Here is the rest: a Debian, and the recipe `agent` with all that it promises.
"""

import os
import re
import socket
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "cli"))
from harness import Skip, eq, has, main, test  # noqa: E402

SOURCES = ("/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list.d/ubuntu.sources", "/etc/apt/sources.list")
# What the recipe promises, by how each says that it works.
PROMISED = ("git --version", "gh --version", "node --version", "npm --version", "python3 --version", "python3 -m venv v",
            "go version", "rg --version", "jq --version", "gcc --version", "make --version", "curl --version", "ssh -V")


def made(box, *words, seconds):
    began = time.monotonic()
    r = box.cli("template", *words, timeout=seconds)
    eq(r.rc, 0, f"{words}: {r.err[-2000:]}")
    size = box.host("du", "-sm", str(box.state / "templates")) if box.is_root else "?"
    print(f"  template {' '.join(words)}: {time.monotonic() - began:.0f} s, {size.split()[0]} MiB", flush=True)


def done(box, *words, rc=0, seconds=600):
    r = box.cli(*words, timeout=seconds)
    eq(r.rc, rc, f"{words}: {r.out[-1000:]} {r.err[-2000:]}")
    return r.out


def mirrors():
    """The hosts that packages come from."""
    text = "".join(Path(p).read_text() for p in SOURCES if os.path.exists(p))
    found = {h for line in text.splitlines() if not line.startswith("#") for h in re.findall(r"https?://([^/\s:]+)", line)}
    if not found:
        raise Skip("this host has no sources of packages")
    return sorted(found)


def proxy():
    """apt's own, where the host has one: there is no other way out then."""
    return [p for p in Path("/etc/apt/apt.conf.d").glob("*") if "Proxy" in p.read_text(errors="replace")] \
        if os.path.isdir("/etc/apt/apt.conf.d") else []


def net():
    """A mirror of one's own may lie in a range that is closed unless named."""
    words = ["--net", "balanced"]
    for h in mirrors():
        for at in [h, *sorted({i[4][0] for i in socket.getaddrinfo(h, 80, socket.AF_INET, socket.SOCK_STREAM)})]:
            words += ["--allow", at]
    return words


@test(timeout=900)
def a_debian(box):
    """The smallest; packages said when it is made are there, and others can be installed in a sandbox of it."""
    box.needs("mmdebstrap")
    mirrors()
    made(box, "debian", "small", "--packages", "hello", seconds=600)
    eq(done(box, "run", "--template", "small", "--", "hello"), "Hello, world!\n")
    has(done(box, "run", "--name", "a", "--template", "small", "--", "sh", "-c", "cat /etc/debian_version; dpkg-query -W hello; sudo id -u"),
        "hello\t", "\n0\n")
    if not proxy():
        install = "sudo apt-get -q update >&2 && sudo apt-get -q -y --no-install-recommends install less >&2"
        done(box, "run", "--name", "a", *net(), "--", "sh", "-c", install, seconds=240)
        has(done(box, "run", "--name", "a", "--", "less", "--version"), "less ")
        tar = str(box.home / "a.tar")
        done(box, "save", "a", "a:1", "-o", tar)
        done(box, "rm", "a")
        done(box, "template", "rm", "small")
        done(box, "load", tar, "b")
        has(done(box, "run", "--name", "b", "--", "sh", "-c", "less --version; dpkg-query -W less"), "less ", "less\t")
    r = box.cli("template", "debian", "x", "--packages", "no-such-package-at-all", timeout=600)
    eq((r.rc, r.out, r.err.splitlines()[-1]), (125, "", "vitrine: 'mmdebstrap' failed"))
    eq([p for p in os.listdir(box.state / "images") if p.startswith(".part")], [], "half of one is left")


@test(timeout=1800, who=("user",))
def the_recipe(box):
    box.needs("mmdebstrap")
    mirrors()
    made(box, "agent", seconds=1500)
    missing = done(box, "run", "--name", "a", "--template", "agent", "--", "sh", "-c",
                   "; ".join(f"{p} >/dev/null 2>&1 || echo '{p}'" for p in PROMISED))
    eq(missing, "", "not there")
    out = done(box, "run", "--name", "a", "--", "sh", "-c",
               "printf 'int main(void){return 0;}' > m.c && cc m.c -o m && ./m && echo built; "
               "mkdir p && cd p && printf '{\"name\":\"h-v\",\"version\":\"1.0.0\",\"bin\":{\"h-v\":\"h.js\"}}' > package.json && "
               "printf '#!/usr/bin/env node\\nconsole.log(\"installed\")\\n' > h.js && npm pack >/dev/null 2>&1 && "
               "sudo npm install -g --offline --no-audit --no-fund ./h-v-1.0.0.tgz >&2 && h-v", seconds=240)
    eq(out, "built\ninstalled\n")
    done(box, "rm", "a")
    done(box, "template", "rm", "agent")


if __name__ == "__main__":
    sys.exit(main())
