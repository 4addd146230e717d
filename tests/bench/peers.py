# SPDX-License-Identifier: Apache-2.0
"""The programs that are compared, each as the command line that gives it the same walls.

bubblewrap is compared with the same mounts: those of the plan that `vitrine explain` prints. It has a row
more with fewer, as people write it by hand, where all of /etc is one mount and nothing below /proc is
covered. Where exactly equal walls cannot be had, the other program gets the cheaper ones: so does crun, and the
files that Vitrine makes in /etc nobody else has. walls() then looks from inside, so the report shows what each row
really had.
"""

import json
import os
import shutil

import host

SECCOMP_FD = 9
LINKS = [n for n in ("bin", "lib", "lib32", "lib64", "libx32", "sbin") if os.path.islink("/" + n)]
SPACES = ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup"]


class Peer:
    """One row: how a command is wrapped. For `every` and `lane` see spawn_bench.c."""

    key = "bare"
    label = "bare (no sandbox)"
    every = 1
    lane = 0
    extra_path = ()
    fds = ()

    def argv(self, who, ws, cmd):
        return list(cmd)

    def version(self):
        return None

    def env(self, who):
        return who.env(self.extra_path)

    def run(self, who, ws, cmd, timeout=120, check=True):
        """One untimed run. A descriptor is passed as the list would pass it."""
        argv = self.argv(who, ws, cmd)
        if self.fds:
            number, path = self.fds[0]
            argv = ["/bin/sh", "-c", f'exec "$@" {number}<"$0"', path, *argv]
        return host.run(argv, who=who, cwd=ws, env=self.env(who), timeout=timeout, check=check)


class Walls(Peer):
    """Single walls without a sandbox, each the least of its kind (walls.c)."""

    key = "walls"
    label = "the least walls"

    def __init__(self, h, walls):
        self.program, self.walls = h.helper("walls"), walls

    def argv(self, who, ws, cmd):
        return [self.program, self.walls, ws, *cmd]


class Bubblewrap(Peer):
    """With the mounts of Vitrine's own plan for that workspace."""

    key = "bwrap"
    label = "bubblewrap"

    def __init__(self, path, filter_path, vitrine):
        self.path = path
        self.fds = ((SECCOMP_FD, filter_path),)
        self.vitrine = vitrine
        self.seen = {}

    def version(self):
        return host.first_line([self.path, "--version"])

    def mounts(self, who, ws):
        if (who.label, ws) not in self.seen:
            _, text, _ = host.run([self.vitrine, "explain", "--json", "--", "/bin/true"], who=who, cwd=ws, env=who.env())
            self.seen[who.label, ws] = [w for m in json.loads(text)["mounts"] for w in bwrap_mount(m)]
        return self.seen[who.label, ws]

    def argv(self, who, ws, cmd):
        links = [w for n in LINKS for w in ("--symlink", os.readlink("/" + n).lstrip("/"), "/" + n)]
        return [
            self.path, "--unshare-all", "--unshare-user", "--die-with-parent", "--new-session",
            "--dev", "/dev", *links, *self.mounts(who, ws), "--chdir", ws, "--cap-drop", "ALL",
            "--seccomp", str(SECCOMP_FD), "--", *cmd]


class ShortBubblewrap(Bubblewrap):
    key = "bwrap-short"
    label = "bubblewrap, fewer mounts"

    def version(self):
        return None

    def mounts(self, who, ws):
        return ["--ro-bind", "/usr", "/usr", "--ro-bind", "/etc", "/etc", "--proc", "/proc", "--tmpfs", "/tmp",
                "--tmpfs", who.home, "--bind", ws, ws]


def bwrap_mount(m):
    """bubblewrap's words for one mount of a plan. What --dev makes is not said twice, and what a scan of the workspace found
    not at all: that is work nobody else does."""
    dst = m["dst"]
    if m["kind"] in ("device", "pts", "pin", "protect") or dst == "/dev/shm":
        return []
    if m["kind"] == "proc":
        return ["--proc", dst]
    if m["kind"] == "private":
        return ["--tmpfs", dst]
    if m["kind"] == "hide":
        return ["--tmpfs", dst] if m["src"] == "dir" else ["--ro-bind", "/dev/null", dst]
    if m["kind"] == "bind":
        return ["--ro-bind" if "ro" in m["flags"] else "--bind", m["src"], dst]
    raise host.Unmeasurable(f"bubblewrap has no mount like {m['kind']} on {dst}")


class Vitrine(Peer):
    key = "vitrine"
    label = "Vitrine"

    def __init__(self, path, options=()):
        self.path = path
        self.options = list(options)

    def version(self):
        return host.first_line([self.path, "version"])

    def argv(self, who, ws, cmd):
        return [self.path, "run", *self.options, "--", *cmd]


class Srt(Peer):
    key = "srt"
    label = "sandbox-runtime (srt)"
    every = 10

    def __init__(self, path, base):
        self.path = path
        self.base = base
        node = shutil.which("node")
        self.extra_path = [os.path.dirname(p) for p in (path, node) if p]

    def version(self):
        return host.first_line([self.path, "--version"])

    def argv(self, who, ws, cmd):
        settings = os.path.join(self.base, f"srt-{who.label}-{os.path.basename(ws)}.json")
        if not os.path.exists(settings):
            with open(settings, "w", encoding="utf-8") as f:
                json.dump({"network": {"allowedDomains": [], "deniedDomains": []},
                           "filesystem": {"denyRead": [], "allowWrite": [ws], "denyWrite": []}}, f)
            os.chmod(settings, 0o644)
        return [self.path, "-s", settings, "-c", " ".join(cmd)]


class Crun(Peer):
    """An OCI bundle whose root has only mount points; the host's /usr and /etc are bound in."""

    key = "crun"
    label = "crun (OCI bundle, user namespace)"

    def __init__(self, path, base, calls, limits=None):
        self.path = path
        self.base = base
        self.calls = calls
        self.limits = limits
        self.bundles = {}
        self.lane = 1 if os.path.ismount("/sys/fs/cgroup/unified") else 0

    def version(self):
        return host.first_line([self.path, "--version"])

    def argv(self, who, ws, cmd):
        key = (who.label, ws, tuple(cmd))
        if key not in self.bundles:
            self.bundles[key] = self.make_bundle(who, ws, cmd)
        manager = "cgroupfs" if self.limits else "disabled"
        bundle = self.bundles[key]
        return [self.path, "--root", os.path.join(bundle, "state"), f"--cgroup-manager={manager}",
                "run", "-b", bundle, os.path.basename(bundle)]

    def run(self, who, ws, cmd, timeout=120, check=True):
        """crun refuses a hybrid cgroup layout; in a mount namespace without the v2 part it runs."""
        if not self.lane:
            return super().run(who, ws, cmd, timeout, check)
        become = [] if who.uid == os.geteuid() else [
            "setpriv", f"--reuid={who.uid}", f"--regid={who.gid}", "--clear-groups"]
        script = 'umount -l /sys/fs/cgroup/unified && exec "$@"'
        argv = ["unshare", "-m", "/bin/sh", "-c", script, "sh", *become, *self.argv(who, ws, cmd)]
        return host.run(argv, cwd=ws, env=self.env(who), timeout=timeout, check=check)

    def make_bundle(self, who, ws, cmd):
        kind = "limits" if self.limits else "plain"
        name = f"{os.path.basename(self.base)}-{who.label}-{kind}-{len(self.bundles)}"
        bundle = os.path.join(self.base, name)
        root = os.path.join(bundle, "rootfs")
        for path in ("/usr", "/etc", "/proc", "/dev", "/tmp", who.home, ws):
            os.makedirs(root + path, exist_ok=True)
        for name in LINKS:
            os.symlink(os.readlink("/" + name), os.path.join(root, name))
        os.mkdir(os.path.join(bundle, "state"), 0o755)
        with open(os.path.join(bundle, "config.json"), "w", encoding="utf-8") as f:
            json.dump(self.config(who, ws, cmd, name), f)
        host.run(["chown", "-R", f"{who.uid}:{who.gid}", bundle])
        return bundle

    def config(self, who, ws, cmd, name):
        def bind(path, *flags):
            return {"destination": path, "type": "none", "source": path,
                    "options": ["bind", *flags]}

        def tmpfs(path, mode):
            return {"destination": path, "type": "tmpfs", "source": "tmpfs",
                    "options": ["nosuid", "nodev", f"mode={mode}"]}

        linux = {
            "namespaces": [{"type": t} for t in
                           ("user", "mount", "pid", "network", "ipc", "uts", "cgroup")],
            "uidMappings": [{"containerID": 0, "hostID": who.uid, "size": 1}],
            "gidMappings": [{"containerID": 0, "hostID": who.gid, "size": 1}],
            "seccomp": {"defaultAction": "SCMP_ACT_ERRNO",
                        "syscalls": [{"names": self.calls, "action": "SCMP_ACT_ALLOW"}]},
        }
        if self.limits:
            linux["resources"] = self.limits
            linux["cgroupsPath"] = "/" + name
        return {
            "ociVersion": "1.0.0",
            "process": {
                "terminal": False, "user": {"uid": 0, "gid": 0}, "args": list(cmd), "cwd": ws,
                "env": [f"{k}={v}" for k, v in who.env().items()],
                "capabilities": {k: [] for k in
                                 ("bounding", "effective", "inheritable", "permitted", "ambient")},
                "noNewPrivileges": True},
            "root": {"path": "rootfs", "readonly": True},
            "hostname": "bench",
            "mounts": [
                bind("/usr", "ro"), bind("/etc", "ro"),
                {"destination": "/proc", "type": "proc", "source": "proc"},
                tmpfs("/dev", "755"),
                {"destination": "/dev/pts", "type": "devpts", "source": "devpts",
                 "options": ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"]},
                tmpfs("/tmp", "1777"), tmpfs(who.home, "700"), bind(ws, "rw")],
            "linux": linux}


def find(vitrine, h, log):
    """All peers of this machine in the order of the report, and why others are left out."""
    peers = {"bare": Peer()}
    left_out = []
    bwrap = shutil.which("bwrap")
    if not bwrap:
        raise host.Unmeasurable("bubblewrap (bwrap) is not installed")
    for kind in (Bubblewrap, ShortBubblewrap):
        peers[kind.key] = kind(bwrap, h.filter, vitrine)
    srt = shutil.which("srt")
    if srt:
        peers["srt"] = Srt(srt, h.base)
    else:
        left_out.append("srt: `srt` is not in PATH (npm package @anthropic-ai/sandbox-runtime)")
    crun = shutil.which("crun")
    if not crun:
        left_out.append("crun: not installed")
    elif not h.is_root:
        left_out.append("crun: needs root here")
    else:
        peers["crun"] = Crun(crun, h.base, h.filter_calls)
    peers["vitrine"] = Vitrine(vitrine)
    for text in left_out:
        log("left out: " + text)
    return peers, left_out


def probe_script():
    spaces = " ".join(SPACES)
    return (f"for n in {spaces}; do echo $n=$(readlink /proc/self/ns/$n); done; "
            "while read -r k v r; do case $k in Seccomp:|NoNewPrivs:|CapEff:) echo $k=$v;; esac; "
            "done < /proc/self/status")


def walls(peer, who, ws):
    """What the peer puts around a command, seen from inside."""
    script = os.path.join(ws, "probe.sh")
    with open(script, "w", encoding="ascii") as f:
        f.write(probe_script() + "\n")
    os.chmod(script, 0o755)
    try:
        _, out, _ = peer.run(who, ws, ["/bin/sh", script])
    finally:
        os.unlink(script)
    seen = dict(line.split("=", 1) for line in out.splitlines() if "=" in line)
    missing = [k for k in SPACES if k not in seen]
    if missing:
        raise host.Unmeasurable(f"{peer.label}: the probe inside saw no {missing[0]} namespace")
    return {
        "namespaces": [n for n in SPACES if seen[n] != os.readlink(f"/proc/self/ns/{n}")],
        "seccomp": seen.get("Seccomp:") == "2",
        "no_new_privs": seen.get("NoNewPrivs:") == "1",
        "no_caps": int(seen.get("CapEff:", "1"), 16) == 0}
