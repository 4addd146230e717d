# SPDX-License-Identifier: Apache-2.0
"""own.test: a TLS server of the tests at a public address of the fake internet's host; what it received is the evidence."""

import functools
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from far import internet  # noqa: E402
from internet import NAMES, OWN4  # noqa: E402
from seal_upstream import Server, make_certs  # noqa: E402

SECRET = "sk-proj-0123456789abcdefABCDEF0123456789"


@functools.cache
class World:
    def __init__(self):
        for name in ("api.anthropic.com", "github.com", "api.githubcopilot.com"):
            NAMES[name] = [OWN4]  # this server plays it, not agent_api
        self.internet = internet()
        self.d = Path(tempfile.mkdtemp(prefix="inspect-"))
        self.d.chmod(0o755)
        make_certs(self.d)
        self.repos = self.d / "repos"
        self.server = Server(self.d, repos=self.repos, address=OWN4, port=443)
        self.trust = {"SSL_CERT_FILE": str(self.d / "trust.pem")}


def there():
    World().server.seen.clear()
    return World()


OPEN = ("--allow", "own.test", "--allow", f"{OWN4}/32")
