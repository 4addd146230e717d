#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The gate behind other walls: the same rules, refusals and events, over the link instead of handed-out sockets.

Each engine that is here; the internet is the fake one of tests/internet.py, and what arrived there is the evidence."""

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness import Skip, eq, has, has_not, lasting, main, test  # noqa: E402
from internet import Internet  # noqa: E402

LOCAL = ("crun", "bwrap", "runc", "gvisor")
internet = None


def net():
    """One for all tests of an identity: its process has entered the namespaces."""
    global internet
    if os.geteuid() != 0:
        raise Skip("a fake internet needs root")
    if internet is None:
        internet = Internet()
        lasting.add(internet.pid)
    internet.clear()
    return internet


def here(box, *names):
    rows = {e["name"]: e for e in json.loads(box.cli("engines", "--json").out)["engines"]}
    found = [n for n in names or LOCAL if rows[n]["works"]]
    if not found:
        raise Skip("none of these engines is installed")
    return found


def sh(box, engine, script, *options, **kw):
    return box.run("--engine", engine, *(options or ("--allow", "ok.test")), "--", "sh", "-c", script, **kw)


@test(who=("user",), timeout=90)
def allowed_and_denied(box):
    n = net()
    for engine in here(box):
        n.clear()
        r = sh(box, engine, "curl -sS -m 8 http://ok.test/hello; curl -sS -m 8 -o /dev/null -w '%{http_code}' "
                            "http://evil.test/", timeout=30)
        has(r.out, "here is 93.184.216.34 /hello", "403")
        eq(len(n.hits("ok.test", 80)), 1, engine)
        eq(n.hits("evil.test"), [], engine)
        has(r.err, "evil.test")


if __name__ == "__main__":
    sys.exit(main())
