# SPDX-License-Identifier: Apache-2.0
"""Container engines of the tests' own: a docker daemon in a directory of its own, and a place for podman.

    host = docker(dir)      starts dockerd; "unix://..." for DOCKER_HOST, that everybody may use; None: it cannot be had
    stop()                  ends what was started here
    stop_podman(dir)        ends the process that holds podman's user namespace, where podman kept its things below dir
"""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

started = []


def answers(host):
    return subprocess.run(["docker", "version"], env={**os.environ, "DOCKER_HOST": host}, capture_output=True,
                          timeout=30).returncode == 0


def docker(base):
    """With no network of its own: the sandboxes get none, and nothing of the machine's is changed."""
    if os.geteuid() != 0 or not shutil.which("dockerd") or not shutil.which("docker"):
        return None
    base = Path(base)
    base.mkdir(parents=True, exist_ok=True)
    sock, log = base / "sock", base / "log"
    host = f"unix://{sock}"
    with log.open("wb") as f:
        p = subprocess.Popen(["dockerd", "--data-root", str(base / "data"), "--exec-root", str(base / "exec"), "-p",
                              str(base / "pid"), "-H", host, "--iptables=false", "--ip6tables=false", "--bridge=none"],
                             stdin=subprocess.DEVNULL, stdout=f, stderr=f, start_new_session=True)
    started.append(p)
    end = time.monotonic() + 60
    while time.monotonic() < end and p.poll() is None:
        if sock.exists() and answers(host):
            sock.chmod(0o666)
            return host
        time.sleep(0.05)
    stop()
    return None


def stop():
    while started:
        p = started.pop()
        if p.poll() is None:
            p.send_signal(signal.SIGTERM)
            try:
                p.wait(20)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()


def stop_podman(base):
    for f in Path(base).rglob("pause.pid"):
        try:
            pid = int(f.read_text())
            if b"podman" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)
        except (OSError, ValueError):
            pass
