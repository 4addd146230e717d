# SPDX-License-Identifier: Apache-2.0
"""The fake internet (tests/internet.py) for the tests of one identity: its process has entered the namespaces."""

import functools
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness import Skip, lasting  # noqa: E402
from internet import Internet  # noqa: E402


@functools.cache
def internet():
    if os.geteuid() != 0:
        raise Skip("a fake internet needs root")
    made = Internet()
    lasting.add(made.pid)
    return made


def net():
    """The same for all of them, with nothing on record."""
    internet().clear()
    return internet()
