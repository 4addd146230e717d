# SPDX-License-Identifier: Apache-2.0
"""Another process made to try something: what could be done by whoever had taken it over.

    made_to_open(pid, path, flags)    what the kernel answers its openat(): 0, or the number of the error

It is stopped (ptrace), does the one call from where it waits, closes what it got, and goes on as if nothing had been.
Only root can; x86-64.
"""

import ctypes
import os
import time

ATTACH, DETACH, STEP, GET, SET = 16, 17, 9, 12, 13
ALL = 0x40000000
NAMES = ("r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss fs_base gs_base "
         "ds es fs gs").split()
OPENAT, CLOSE, AT_FDCWD = 257, 3, -100
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


class Regs(ctypes.Structure):
    _fields_ = [(n, ctypes.c_ulonglong) for n in NAMES]


def ptrace(what, pid, data=None):
    if libc.ptrace(what, pid, None, data) < 0:
        raise OSError(ctypes.get_errno(), f"ptrace {what}")


def call(pid, before, number, *args):
    """One system call; its answer."""
    regs = Regs.from_buffer_copy(before)
    regs.rip -= 2  # it waits in a call: once more
    regs.rax, regs.orig_rax = number, 2 ** 64 - 1
    for name, value in zip(("rdi", "rsi", "rdx", "r10"), args):
        setattr(regs, name, value % 2 ** 64)
    ptrace(SET, pid, ctypes.byref(regs))
    ptrace(STEP, pid)
    os.waitpid(pid, ALL)
    ptrace(GET, pid, ctypes.byref(regs))
    return ctypes.c_longlong(regs.rax).value


def stopped_in_a_call(pid, tries=400):
    """Its registers, when it is stopped where it waits; at another moment it goes on for a while."""
    for _ in range(tries):
        regs = Regs()
        ptrace(ATTACH, pid)
        os.waitpid(pid, ALL)
        ptrace(GET, pid, ctypes.byref(regs))
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as mem:
            mem.seek(regs.rip - 2)
            if regs.orig_rax < 2 ** 63 and mem.read(2) == b"\x0f\x05":
                return regs
        ptrace(DETACH, pid)
        time.sleep(0.02)
    raise OSError("it never waits")


def made_to_open(pid, path, flags):
    before = stopped_in_a_call(pid)
    try:
        place = before.rsp - 8192
        with open(f"/proc/{pid}/mem", "r+b", buffering=0) as mem:
            mem.seek(place)
            mem.write(os.fsencode(path) + b"\0")
        got = call(pid, before, OPENAT, AT_FDCWD, place, flags, 0o600)
        if got >= 0:
            call(pid, before, CLOSE, got)
        ptrace(SET, pid, ctypes.byref(before))
        return 0 if got >= 0 else -got
    finally:
        ptrace(DETACH, pid)
