# SPDX-License-Identifier: Apache-2.0
"""Machines: a bare QEMU, our cold start and our warm start of the same kernel, side by side, and file work.

Emulated in software unless this account may use /dev/kvm; only ratios mean anything, and only those of figures taken in
turn, in one run. Bare is QEMU with the same board, memory and kernel and an init of one instruction: from its exec to
that init's first byte. Ours is from the exec of `vitrine run` to the first byte of the command. File work is timed
inside, beside the same program without a sandbox. Files are virtiofsd's where there is one, as by default; by 9p they are
QEMU's."""

import os
import shutil
import statistics
import subprocess
import time
from pathlib import Path

import host
import streams

ROOT = Path(__file__).resolve().parent.parent.parent
INIT = r"""
#include <unistd.h>
#include <fcntl.h>
int main(void) { int fd = open("/dev/console", O_WRONLY); (void)!write(fd, "up\n", 3); for (;;) pause(); }
"""
QEMU = ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-monitor", "none", "-no-reboot",
        "-m", "2048"]
WORDS = "quiet panic=-1 reboot=t no_timer_check mitigations=off cryptomgr.notests rdinit=/init"
FILES = 300
STREAM_MB = 20
BY_9P = "the machine, its files by 9p"


def cpio(entries):
    out = b""
    for name, mode, rdev, data in entries:
        fields = (0, mode, 0, 0, 1, 0, len(data), 0, 0, rdev[0], rdev[1], len(name) + 1, 0)
        part = ("070701" + "".join(f"{x:08x}" for x in fields) + name + "\0").encode()
        part += b"\0" * (-len(part) % 4) + data
        out += part + b"\0" * (-len(part) % 4)
    return out


class Vm:
    def __init__(self, vitrine, who, rounds, h):
        if not shutil.which(QEMU[0]):
            raise host.Unmeasurable("qemu-system-x86_64 is not installed")
        self.vitrine, self.who, self.rounds, self.base, self.h = vitrine, who, rounds, h.base, h
        kvm = Path("/dev/kvm")
        self.is_kvm = kvm.exists() and who.uid == kvm.stat().st_uid and os.environ.get("VITRINE_BENCH_KVM") == "1"
        self.engine = "vm" if self.is_kvm else "vm-emulated"
        self.kernel = self.find_kernel()
        self.env = {**who.env(), **self.kernel, "XDG_STATE_HOME": os.path.join(who.home, "vm-state")}
        self.ws = who.workspace("vm")

    def find_kernel(self):
        here = sorted(Path("/boot").glob("vmlinuz-*"))
        if here:
            version = here[-1].name.removeprefix("vmlinuz-")
            return {"VITRINE_VM_KERNEL": str(here[-1]), "VITRINE_VM_MODULES": f"/lib/modules/{version}"}
        made = ROOT / "build" / "guest-kernel"
        host.run([str(ROOT / "tools" / "guest-kernel"), str(made)], timeout=200)
        return {"VITRINE_VM_KERNEL": str(made / "vmlinuz"), "VITRINE_VM_MODULES": str(made / "modules")}

    def bare_init(self):
        source, program = os.path.join(self.base, "bare.c"), os.path.join(self.base, "bare-init")
        Path(source).write_text(INIT)
        host.run([os.environ.get("CC", "cc"), "-static", "-O1", "-o", program, source])
        entries = [("dev", 0o40755, (0, 0), b""), ("dev/console", 0o20600, (5, 1), b""),
                   ("init", 0o100755, (0, 0), Path(program).read_bytes()), ("TRAILER!!!", 0, (0, 0), b"")]
        path = os.path.join(self.base, "bare-initrd")
        Path(path).write_bytes(cpio(entries))
        return path

    def first_byte(self, argv, env):
        """Milliseconds from the exec to the first byte of output; then it is ended."""
        begin = time.monotonic()
        p = subprocess.Popen(argv, cwd=self.ws, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, **self.who.drop())
        try:
            byte = p.stdout.read(1)
            ms = (time.monotonic() - begin) * 1e3
            if not byte:
                raise host.Unmeasurable(f"{argv[0]}: {p.stderr.read().decode(errors='replace')[-300:]}")
            return ms
        finally:
            if "qemu" in argv[0]:
                p.kill()
            p.communicate(timeout=120)

    def bare(self, initrd):
        board = ["-M", "microvm,accel=kvm,pit=off,pic=off", "-cpu", "host", "-smp", "2"] if self.is_kvm else \
            ["-M", "q35,accel=tcg,usb=off,vmport=off", "-cpu", "max", "-smp", "1"]
        words = f"console=ttyS0 {WORDS}" + ("" if self.is_kvm else " lpj=4600000")
        return [*QEMU, *board, "-serial", "stdio", "-kernel", self.kernel["VITRINE_VM_KERNEL"], "-initrd", initrd,
                "-append", words]

    def ours(self, *command, engine=None):
        return [self.vitrine, "run", "--engine", engine or self.engine, "--", *command]

    def starts(self):
        initrd, samples = self.bare_init(), {"bare": [], "cold": [], "warm": [], "warm, files by 9p": []}
        by_9p = {**self.env, "VITRINE_VM_SHARE": "9p"}
        cold = {**self.env, "VITRINE_VM_KEEP": "no"}
        for env in (self.env, by_9p):  # boots what is kept
            self.first_byte(self.ours("echo", "up"), env)
        for _ in range(self.rounds):
            samples["bare"].append(self.first_byte(self.bare(initrd), self.env))
            samples["cold"].append(self.first_byte(self.ours("echo", "up"), cold))
            samples["warm"].append(self.first_byte(self.ours("echo", "up"), self.env))
            samples["warm, files by 9p"].append(self.first_byte(self.ours("echo", "up"), by_9p))
        return {k: {"median": statistics.median(v), "best": min(v), "samples": v} for k, v in samples.items()}

    def files(self):
        program = os.path.join(self.ws, "few_files")
        shutil.copy(self.h.helper("few_files"), program)
        os.chmod(program, 0o755)
        place = os.path.join(self.ws, "files")
        os.mkdir(place)
        os.chown(place, self.who.uid, self.who.gid)
        rows, argv = {}, [program, place, str(FILES)]
        for name in ("bare", "native", "gvisor", self.engine, BY_9P):
            engine = self.engine if name == BY_9P else name
            words = argv if name == "bare" else self.ours(*argv, engine=engine)
            env = {**self.env, "VITRINE_VM_SHARE": "9p"} if name == BY_9P else self.env
            rc, out, err = host.run(words, who=self.who, cwd=self.ws, env=env, check=False, timeout=300)
            if rc == 0:
                rows[name] = {w: float(us) for w, us in (line.split() for line in out.splitlines())}
        return rows

    def start(self, *cmd, **kw):
        return subprocess.Popen(self.ours(*cmd), cwd=self.ws, env=self.env, stderr=subprocess.DEVNULL, **self.who.drop(), **kw)

    def measure(self):
        return {"accelerator": "kvm" if self.is_kvm else "software", "starts": self.starts(), "files": self.files(),
                "stream": streams.measure(self.start, self.engine, STREAM_MB)}


def judge(data, who):
    got = data.get("vm", {}).get(who)
    if not got:
        return []
    s = got["starts"]
    cold, warm = s["cold"]["best"] / s["bare"]["best"], s["warm"]["best"] / s["cold"]["best"]
    return [{"name": f"vm ({got['accelerator']}): cold start", "who": who, "want": "at most 1.2 x a bare QEMU",
             "got": f"{cold:.2f} ({s['cold']['best']:.0f} / {s['bare']['best']:.0f} ms)", "met": cold <= 1.2},
            {"name": f"vm ({got['accelerator']}): warm start", "who": who, "want": "at most 0.4 x cold",
             "got": f"{warm:.2f} ({s['warm']['best']:.0f} / {s['cold']['best']:.0f} ms)", "met": warm <= 0.4}]


def document(data, table, names):
    out = []
    for who, got in data.get("vm", {}).items():
        rows = [[k, f"{v['best']:.0f}", f"{v['median']:.0f}"] for k, v in got["starts"].items()]
        out += [f"## Machines, as {names.get(who, who)}\n\n" + __doc__.split("\n\n", 1)[1].strip() +
                f"\n\nAccelerator: {got['accelerator']}. To the first byte, ms:\n", table(["", "best", "median"], rows)]
        works = list(next(iter(got["files"].values())))
        rows = [[k, *(f"{v[w]:.1f}" for w in works)] for k, v in got["files"].items()]
        out += [f"\nFile work, {FILES} files of 4 KiB in the workspace, microseconds a file:\n", table(["", *works], rows)]
        out += ["\nThe link, over a virtio port:\n", table(streams.HEAD, [streams.row("the machine", got["stream"])])]
    return "\n".join(out)
