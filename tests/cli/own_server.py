# SPDX-License-Identifier: Apache-2.0
"""own.test: a TLS server of the tests at a public address of the fake internet's host; what it received is the evidence."""

import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness import Skip, lasting  # noqa: E402
from internet import NAMES, OWN4, Internet  # noqa: E402
from seal_upstream import Server, make_certs  # noqa: E402

SECRET = "sk-proj-0123456789abcdefABCDEF0123456789"
world = None


class World:
    def __init__(self):
        NAMES["api.anthropic.com"] = [OWN4]  # this server plays it, not agent_api
        self.internet = Internet()
        lasting.add(self.internet.pid)
        self.d = Path(tempfile.mkdtemp(prefix="inspect-"))
        self.d.chmod(0o755)
        make_certs(self.d)
        self.repos = self.d / "repos"
        self.server = Server(self.d, repos=self.repos, address=OWN4, port=443)
        self.trust = {"SSL_CERT_FILE": str(self.d / "trust.pem")}


def there():
    global world
    if os.geteuid() != 0:
        raise Skip("a fake internet needs root")
    if world is None:
        world = World()
    world.server.seen.clear()
    return world


OPEN = ("--allow", "own.test", "--allow", f"{OWN4}/32")
