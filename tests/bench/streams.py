# SPDX-License-Identifier: Apache-2.0
"""What one command's streams carry out of a sandbox and into it, and how long one byte takes there and back."""

import subprocess
import time

from host import Unmeasurable

ECHOES = 400
# A command that answers each byte.
ECHO = "import os\nwhile True:\n d = os.read(0, 1)\n if not d: break\n os.write(1, d)"


def timed(start, name, cmd, source=0):
    """Seconds from the first byte to the end."""
    p = start("sh", "-c", 'echo up; exec "$@"' + (" >/dev/null" if source else ""), "sh", *cmd,
              stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    if p.stdout.read(3) != b"up\n":
        raise Unmeasurable(f"{name}: no stream")
    begin, block = time.monotonic(), bytes(1 << 20)
    while source > 0:
        source -= p.stdin.write(block[:source])
    p.stdin.close()
    while p.stdout.read(1 << 20):
        pass
    p.wait(60)
    return time.monotonic() - begin


def echo(start, name):
    """The median, µs."""
    p = start("python3", "-c", ECHO, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    took = []
    for _ in range(ECHOES):
        begin = time.monotonic()
        p.stdin.write(b"x")
        if p.stdout.read(1) != b"x":
            raise Unmeasurable(f"{name}: the echo ended: {p.wait(30)}")
        took.append((time.monotonic() - begin) * 1e6)
    p.stdin.close()
    p.wait(30)
    return sorted(took)[len(took) // 2]


def measure(start, name, mib):
    """start(*cmd, **popen's) starts a command inside. MB/s out and in, µs there and back."""
    size = mib << 20
    return {"out": size / 1e6 / timed(start, name, ["dd", "if=/dev/zero", "bs=1M", f"count={mib}", "status=none"]),
            "in": size / 1e6 / timed(start, name, ["cat"], source=size),
            "echo": echo(start, name)}


HEAD = ["a command's streams", "out, MB/s", "in, MB/s", "a byte there and back, µs"]


def row(name, s):
    return [name, f"{s['out']:.0f}", f"{s['in']:.0f}", f"{s['echo']:.0f}"]
