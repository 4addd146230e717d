# SPDX-License-Identifier: Apache-2.0
"""Container engines of the tests' own: a docker daemon in a directory of its own, a podman service, and a place for podman.

    host = docker(dir)      starts dockerd; "unix://..." for DOCKER_HOST, that everybody may use; None: it cannot be had
    host = podman(dir, account)     starts `podman system service` as that account (None: the caller's); "unix://..." for
                            CONTAINER_HOST. cover: directories that are empty where it looks, as on another machine
    stop()                  ends what was started here
    stop_podman(dir)        ends the process that holds podman's user namespace, where podman kept its things below dir
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

started = []
# Shims of docker, monitors of podman and the process that holds its user namespace outlive their daemon.
# An ordinary account may be unable to read this folder, or a Python in root's home: it gets the text, and the system's Python.
REAPER = [shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin") or sys.executable, "-c",
          (Path(__file__).resolve().parent / "reaper.py").read_text()]


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
    if len(f"{base}/exec/containerd/containerd-debug.sock") > 107:
        raise ValueError(f"{base}: no socket of docker's can have so long a name")
    host = f"unix://{sock}"
    with log.open("wb") as f:
        p = subprocess.Popen([*REAPER, "dockerd", "--data-root", str(base / "data"), "--exec-root", str(base / "exec"), "-p",
                              str(base / "pid"), "-H", host, "--iptables=false", "--ip6tables=false", "--bridge=none"],
                             stdin=subprocess.DEVNULL, stdout=f, stderr=f, start_new_session=True)
    started.append(p)
    last = time.monotonic() + 60
    while time.monotonic() < last and p.poll() is None:
        if sock.exists() and answers(host):
            sock.chmod(0o666)
            return host
        time.sleep(0.05)
    end(p)
    return None


def podman(base, account=None, cover=()):
    """The directory's name must be short: podman's tidying up takes none over 50 characters."""
    if not shutil.which("podman"):
        return None
    base = Path(base)
    base.mkdir(parents=True, exist_ok=True)
    for name in ("run", "home", "data", "config"):
        (base / name).mkdir(mode=0o700)
    for path in (base, *base.iterdir()) if account else ():
        os.chown(path, account.pw_uid, account.pw_gid)
    host = f"unix://{base}/run/sock"
    env = {"PATH": os.environ["PATH"], "HOME": f"{base}/home", "XDG_RUNTIME_DIR": f"{base}/run",
           "XDG_DATA_HOME": f"{base}/data", "XDG_CONFIG_HOME": f"{base}/config"}
    argv = ["podman", "--cgroup-manager=cgroupfs", "--events-backend=none"]
    if os.geteuid() == 0 and account is None:  # whose is not looked for below its home
        argv += ["--storage-driver=vfs", f"--root={base}/data", f"--runroot={base}/run"]
    else:
        argv.append("--storage-driver=overlay")
    if os.path.ismount("/sys/fs/cgroup/unified"):  # crun does not start there
        argv.append("--runtime=runc")
    argv = [*REAPER, *argv, "system", "service", "--time=0", host]
    if account:
        argv = ["setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--init-groups", *argv]
    if cover:
        mounts = "mount --make-rprivate / && " + "".join(f"mount -t tmpfs -o mode=777 none {path} && " for path in cover)
        argv = ["unshare", "-m", "sh", "-c", mounts + 'exec "$@"', "sh", *argv]
    with (base / "log").open("wb") as f:
        p = subprocess.Popen(argv, env=env, cwd=base, stdin=subprocess.DEVNULL, stdout=f, stderr=f, start_new_session=True)
    started.append(p)
    last = time.monotonic() + 60
    while time.monotonic() < last and p.poll() is None:
        if ask_podman(host, "version").returncode == 0:
            return host
        time.sleep(0.05)
    end(p)
    return None


def ask_podman(host, *words):
    return subprocess.run(["podman", "--remote", "--url", host, *words], capture_output=True, text=True, timeout=30)


def end(p):
    started.remove(p)
    if p.poll() is None:
        p.send_signal(signal.SIGTERM)
        try:
            p.wait(20)
        except subprocess.TimeoutExpired:
            p.kill()
            p.wait()


def stop():
    while started:
        end(started[-1])


def stop_podman(base):
    for f in Path(base).rglob("pause.pid"):
        try:
            pid = int(f.read_text())
            if b"podman" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)
        except (OSError, ValueError):
            pass
