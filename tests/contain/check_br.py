# SPDX-License-Identifier: Apache-2.0
"""The broker: what it runs outside is confined, and is only what the user's rules name."""

import json
import os

from harness import HELD, check

RUN = ("run",)


def tool(c, text):
    path = c.home / "bin" / "tool"
    c.plant(path, "#!/bin/sh\n" + text)
    os.chmod(path, 0o755)
    rules = c.home / "broker.jsonc"
    c.plant(rules, json.dumps({"broker": {"commands": {"tool": str(path)}}}))
    return path, ["--policy", str(rules)]


@check("BR-01", prio="P0", title="a program the broker runs writes in its own place only", forms=RUN,
       catches=("broker-confine",))
def br01(c):
    mark = c.out / "planted"
    path, flags = tool(c, f"touch {mark}\ntouch here && echo here\n")
    c.control(f"cd {c.out} && {path}")
    c.need_control(mark.exists(), "outside too it cannot write there")
    with c.host_edit():
        mark.unlink()
    r = c.sandbox("broker tool", flags=flags)
    c.need_control("here" in r.text, f"it did not run: {r}")
    c.must(not mark.exists(), "it wrote elsewhere")
    return HELD


@check("BR-04", prio="P0", title="a command of the user's own has no network unless its rule says so", forms=RUN,
       catches=("broker-net",))
def br04(c):
    mark = c.out / "got"
    path, flags = tool(c, f"python3 -c 'import socket; socket.socket()' 2>/dev/null && echo got && touch {mark}\necho ran\n")
    c.control(str(path))
    c.need_control(mark.exists(), "outside too it gets no socket")
    r = c.sandbox("broker tool", flags=flags)
    c.need_control("ran" in r.text, f"it did not run: {r}")
    c.must("got" not in r.text, "it got a socket")
    return HELD


@check("BR-02", prio="P0", title="the broker runs nothing that no rule names", forms=RUN)
def br02(c):
    mark = c.out / "ran"
    path, flags = tool(c, f"touch {mark}\n")
    c.control(str(path))
    c.need_control(mark.exists(), "outside too it does not run")
    with c.host_edit():
        mark.unlink()
    r = c.sandbox(f"broker {path}; broker ./tool; broker tool extra; broker sh -c {path}; broker --commit HEAD tool; "
                  f"gh {path}; git ls-remote 'vitrine::ext::{path}'; echo over", flags=flags)
    c.need_control("over" in r.text, f"it did not run: {r}")
    c.must(not mark.exists(), "it ran")
    return HELD


@check("BR-03", prio="P0", title="git outside that works on the inside's objects has no network", forms=RUN,
       catches=("broker-net",))
def br03(c):
    """A hook of the upstream is the one program of ours that host git can be made to run; it asks for a socket."""
    up = c.mkdir(c.root / "up") / "up.git"
    c.control(f"git init -q --bare -b main {up} && git init -q -b main . && git remote add origin {up} && "
              "git -c user.name=n -c user.email=n@x commit -q --allow-empty -m one")
    hook, ran, got = up / "hooks" / "post-receive", up / "ran", up / "got"
    c.plant(hook, f"#!/bin/sh\ntouch {ran}\npython3 -c 'import socket; socket.socket()' && touch {got}\n", 0o755)
    c.control("git push -q origin main:refs/heads/control")
    c.need_control(ran.exists() and got.exists(), "outside too the hook gets no socket")
    ran.unlink()
    got.unlink()
    r = c.sandbox("git push origin main:refs/heads/agent/x 2>&1; echo over", flags=["--broker-push", f"{up} refs/heads/agent/*"])
    c.need_control("over" in r.text and ran.exists(), f"it was not pushed: {r}")
    c.must(not got.exists(), "it got a socket")
    return HELD
