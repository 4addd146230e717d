#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""On a terminal: job control, sizes, colours, modes, and what is left of them afterwards."""

import os
import re
import signal
import subprocess
import sys
import time

from harness import Term, eq, has, has_not, main, soon, test

SHELL = ["bash", "--norc", "--noprofile", "-i"]


def shell(box, *options, **kw):
    """An interactive shell inside, at its prompt."""
    box.needs("bash")
    t = box.term("run", *options, "-e", "PS1=ready> ", "--", *SHELL, **kw)
    t.expect("ready> ")
    return t


def leave(t, status=0):
    t.send(f"exit {status}\n")
    eq(t.wait(), status)
    eq(t.is_restored(), True, "the terminal's modes are as they were")
    t.close()


@test
def its_own_terminal(box):
    t = box.term("run", "--", "sh", "-c", "tty; test -t 0 && test -t 1 && test -t 2 && echo all; readlink /proc/self/fd/0")
    t.expect(r"/dev/pts/0\r\n")
    t.expect(r"all\r\n")
    eq(t.wait(), 0)
    eq(t.is_restored(), True)
    t.close()


@test
def exit_status(box):
    for n in (0, 3, 255):
        t = box.term("run", "--", "sh", "-c", f"exit {n}")
        eq(t.wait(), n)
        t.close()


@test
def term_and_colours(box):
    script = r"echo $TERM; printf '\033[31mred\033[0m\n'; echo 'some text' | grep --color=auto text"
    t = box.term("run", "--", "sh", "-c", script)
    t.expect(r"xterm-256color\r\n")
    t.expect("\033\\[31mred\033\\[0m")
    t.expect("\033\\[[0-9;]*m(\033\\[K)?text")
    eq(t.wait(), 0)
    t.close()


@test
def interrupt(box):
    t = box.term("run", "--", "sh", "-c", "echo up; exec sleep 30")
    t.expect("up")
    t.send("\x03")
    eq(t.wait(), 130)
    eq(t.is_restored(), True)
    t.close()


@test
def interrupt_in_a_shell(box):
    t = shell(box)
    t.send("sleep 30\n")
    time.sleep(0.3)
    t.send("\x03")
    t.expect("ready> ")
    t.send("echo status=$?\n")
    t.expect(r"status=130\r")
    t.expect("ready> ")
    leave(t)


@test
def quit_key(box):
    t = box.term("run", "--", "sh", "-c", "ulimit -c 0; echo up; exec sleep 30")
    t.expect("up")
    t.send("\x1c")
    eq(t.wait(), 131)
    t.close()


@test
def end_of_input(box):
    box.needs_step("a terminal's ctrl-D")
    t = box.term("run", "--", "cat")
    t.send("hello\n")
    t.expect("hello\r\nhello\r\n")
    t.send("\x04")
    eq(t.wait(), 0)
    t.close()


@test
def stop_and_go(box):
    t = shell(box)
    t.send("sleep 30\n")
    time.sleep(0.3)
    t.send("\x1a")
    t.expect("Stopped")
    t.expect("ready> ")
    t.send("jobs\n")
    t.expect("Stopped.*sleep 30")
    t.expect("ready> ")
    t.send("bg; fg\n")
    time.sleep(0.3)
    t.send("\x03")
    t.expect("ready> ")
    t.send("echo $((6*7))\n")
    t.expect(r"42\r")
    t.expect("ready> ")
    leave(t, 4)


@test
def window_size(box):
    t = shell(box, rows=31, cols=97)
    t.send("stty size\n")
    t.expect(r"31 97\r")
    t.expect("ready> ")
    t.send("trap 'echo winch' WINCH\n")
    t.expect("ready> ")
    t.resize(44, 132)
    t.p.send_signal(signal.SIGWINCH)  # the kernel tells the foreground group of the terminal; that is our client
    time.sleep(0.2)
    t.send("stty size\n")
    t.expect(r"44 132\r")
    leave(t)


@test
def modes_are_restored(box):
    for ending in ("kill -9 $$", "kill -TERM $$", "exit 1"):
        t = box.term("run", "--", "sh", "-c", rf"stty raw -echo; printf '\033[?1049h\033[?25l'; {ending}")
        t.wait()
        eq(t.is_restored(), True, ending)
        t.close()


@test
def screen_is_restored(box):
    """A full-screen program that is killed cannot undo what it did to the screen; we can."""
    t = box.term("run", "--", "sh", "-c", r"printf '\033[?1049h\033[?25lUP'; kill -9 $$")
    eq(t.wait(), 137)
    has(t.seen, b"UP", b"\033[?1049l", b"\033[?25h")
    t.close()


@test
def only_what_was_set_is_reset(box):
    """The alternate screen is left only where it is on: leaving it moves the cursor. Reports and keyboards do not stay on."""
    t = box.term("run", "--", "sh", "-c", r"printf '\033[?1004h\033[?2031h\033[?2004h\033[>1u\033[?1000;1006hUP'; kill -9 $$")
    eq(t.wait(), 137)
    has(t.seen, b"\033[?1004l", b"\033[?2031l", b"\033[?2004l", b"\033[<1u", b"\033[?1000l", b"\033[?1006l")
    has_not(t.seen, b"1049")
    t.close()
    t = box.term("run", "--", "sh", "-c", "echo plain")
    eq(t.wait(), 0)
    eq(t.seen, b"plain\r\n", "nothing is written where nothing was set")
    t.close()


def shown(t, what):
    """It comes, and nothing is used up."""
    soon(lambda: t.fill(0.05) and what in t.seen, f"{what} comes")


QUERIES = r"\033[c\033[>c\033[6n\033[?996n\033[?u\033[>0q\033]11;?\007\033]10;?\033\\\033P+q544e\033\\\033[?2026$p\033[18t\005"


@test
def attach_repeats_no_query(box):
    """What a terminal answers would be typed into the command. The screen and its modes come all the same."""
    p = box.start("run", "-t", "--name", "asks", "-d", "--", "sh", "-c", rf"printf 'BEFORE {QUERIES}AFTER\033[?2004h\033[>1u'; exec cat >typed")
    box.finish(p)
    soon(lambda: "AFTER" in box.cli("logs", "asks").out, "the output is there")
    t = box.term("attach", "asks")
    shown(t, b"\033[?2004h")
    has(t.seen, b"BEFORE AFTER", b"\033[>1u")
    for q in (b"[c", b"[>c", b"6n", b"996n", b"[?u", b"[>0q", b"?\007", b"?\033\\", b"\033P", b"$p", b"18t", b"\005"):
        has_not(t.seen, q)
    t.send("\033[112;5u\033[112;5:3u\033[113;5u")
    eq(t.wait(), 0)
    has(t.seen, b"\033[?2004l", b"\033[<1u", b"left running")
    eq(t.is_restored(), True)
    eq(box.read("typed"), "", "the keys that leave are not typed")
    t.close()
    eq(box.cli("stop", "asks").rc, 0)


@test
def a_prompt_says_where_one_is(box):
    """The shell's preset: the sandbox's name, or what VITRINE_PS1 says."""
    box.needs("bash")
    t = box.term("run", "shell", ".", env={"HOME": str(box.home)})
    t.expect(rf"\(vitrine shell-{re.escape(box.ws.name)}\) ")
    t.send("echo in $VITRINE\n")
    t.expect(rf"in shell-{re.escape(box.ws.name)}\r")
    t.send("exit\n")
    eq(t.wait(), 0)
    t.close()
    t = box.term("run", "shell", ".", env={"HOME": str(box.home), "VITRINE_PS1": "mine:$VITRINE> "})
    t.expect(rf"mine:shell-{re.escape(box.ws.name)}> ")
    t.send("exit\n")
    eq(t.wait(), 0)
    t.close()


@test
def stop_is_told_to_those_attached(box):
    box.finish(box.start("run", "-t", "--name", "told", "-d", "--", "sh", "-c", r"printf '\033[?1049hUP'; exec sleep 60"))
    t = box.term("attach", "told")
    t.expect("UP")
    eq(box.cli("stop", "told").rc, 0)
    eq(t.wait() != 0, True)
    has(t.seen, b"\033[?1049l", b"ended: the sandbox was stopped")
    assert t.seen.index(b"\033[?1049l") < t.seen.index(b"ended: the sandbox"), "said on the screen that stays"
    t.close()


def suspended(box, command, stopped, after):
    """From a shell with job control: Ctrl-Z gives its prompt back, fg goes on."""
    box.needs("bash")
    box.needs_native("Ctrl-Z as a job of the caller's shell")
    t = Term(box, SHELL, env={"PS1": "outer> "})
    t.expect("outer> ")
    t.send(f"{box.program} run -- {command}\n")
    t.expect(r"up\r?\n", 15)
    time.sleep(0.2)
    t.send("\x1a")
    t.expect("Stopped", 10)
    t.expect("outer> ")
    t.send("echo still $((40+2))\n")
    t.expect(r"still 42\r")
    stopped(box)
    t.expect("outer> ")
    t.send("fg\n")
    after(t)
    t.expect("outer> ", 10)
    t.send("exit\n")
    t.wait()
    t.close()


@test(timeout=30)
def ctrl_z_suspends_the_run(box):
    """A command that has no handler for it, as any job."""
    def stands(box):
        before = box.read("ticks")
        time.sleep(0.4)
        eq(box.read("ticks"), before, "nothing goes on inside")

    def after(t):
        was = len(box.read("ticks"))
        soon(lambda: len(box.read("ticks")) > was, "it goes on")
        t.send("\x03")

    suspended(box, "python3 -c 'import time; open(\"ticks\", \"a\").write(\".\"); print(\"up\", flush=True)\nwhile True: open(\"ticks\", \"a\").write(\".\"); time.sleep(0.05)'", stands, after)


@test(timeout=30)
def a_program_that_stops_itself_suspends_the_run(box):
    """As full-screen programs do, which read the key themselves."""
    code = ("import os, signal, sys, termios, tty\n"
            "old = termios.tcgetattr(0); tty.setraw(0); print(\"up\", flush=True)\n"
            "k = os.read(0, 1); termios.tcsetattr(0, termios.TCSADRAIN, old); os.kill(0, signal.SIGSTOP)\n"
            "print(\"back\", k[0], flush=True)\n")
    box.write("tui.py", code)
    suspended(box, "python3 tui.py", lambda box: None, lambda t: t.expect("back 26"))


@test
def ctrl_z_stays_inside_where_it_is_handled(box):
    """A shell's prompt ignores it; without a shell outside there is nobody who could let the run go on."""
    t = shell(box)
    t.send("\x1a")
    t.send("echo $((6*7))\n")
    t.expect(r"42\r")
    t.expect("ready> ")
    leave(t)
    t = box.term("run", "--", "sh", "-c", "echo up; sleep 0.5; echo end")
    t.expect("up")
    t.send("\x1a")
    t.expect("end")
    eq(t.wait(), 0)
    t.close()


@test
def client_killed_by_term(box):
    t = box.term("run", "--", "sh", "-c", "echo up; exec sleep 30")
    t.expect("up")
    t.p.send_signal(signal.SIGTERM)
    eq(t.wait(), 143)
    eq(t.is_restored(), True)
    t.close()


@test
def output_to_a_pipe(box):
    """`vitrine run -- ls | less`: the keys are less's."""
    r, w = os.pipe()
    t = box.term("run", "--", "sh", "-c", "test -t 1 || echo piped; cat; echo end", stdout=w)
    os.close(w)
    t.send("for less\n")
    eq(t.wait(), 0)
    with os.fdopen(r) as f:
        eq(f.read(), "piped\nend\n")
    # What was typed is still there for whoever reads the terminal next.
    os.set_blocking(t.slave, False)
    eq(os.read(t.slave, 100), b"for less\n")
    t.close()


@test
def output_to_a_pipe_interactive(box):
    r, w = os.pipe()
    t = box.term("run", "-i", "--", "sh", "-c", "read x; echo got $x", stdout=w)
    os.close(w)
    t.send("typed\n")
    eq(t.wait(), 0)
    with os.fdopen(r) as f:
        eq(f.read(), "got typed\n")
    t.close()


@test
def tty_on_request(box):
    r = box.run("-t", "--", "sh", "-c", "tty; test -t 0 && test -t 1 && echo yes")
    eq(r.rc, 0, r.err)
    has(r.out, "/dev/pts/0", "yes")


@test
def tty_on_request_with_input(box):
    r = box.run("-it", "--", "sh", "-c", "read x; echo got $x", input=b"typed\n")
    eq(r.rc, 0, r.err)
    has(r.out, "got typed")


@test
def long_output(box):
    t = box.term("run", "--", "sh", "-c", "i=0; while [ $i -lt 5000 ]; do echo line $i; i=$((i+1)); done; echo END")
    t.expect(r"END\r\n", 10)
    eq(t.wait(), 0)
    t.close()


@test
def paste(box):
    """More than a terminal's buffer at once, none of it lost."""
    t = box.term("run", "--", "sh", "-c", "stty raw -echo; echo up; head -c 20000 | cksum")
    t.expect("up")
    data = bytes(33 + i % 90 for i in range(20000))
    sent = 0
    while sent < len(data):
        sent += os.write(t.master, data[sent:sent + 1000])
        t.fill(0.01)
    want = subprocess.run(["cksum"], input=data, capture_output=True, check=True).stdout.split()[0].decode()
    t.expect(f"{want} 20000")
    eq(t.wait(), 0)
    t.close()


@test
def second_session(box):
    p = box.named("box")
    t = box.term("exec", "-e", "PS1=ready> ", "box", "--", *SHELL, rows=20, cols=70)
    t.expect("ready> ")
    t.send("tty; stty size; echo $VITRINE\n")
    t.expect(r"/dev/pts/\d")
    t.expect(r"20 70\r")
    t.expect(r"box\r")
    t.expect("ready> ")
    t.send("sleep 30\n")
    time.sleep(0.2)
    t.send("\x03")
    t.expect("ready> ")
    leave(t, 9)
    eq(box.stop(p).rc, 143)


@test
def nobody_types_into_the_callers_terminal(box):
    """TIOCSTI would; the host's terminal is not inside, and what is inside is its own."""
    script = ("import fcntl, termios\n"
              "for fd in (0, 1, 2):\n"
              "    try:\n"
              "        fcntl.ioctl(fd, termios.TIOCSTI, b'x')\n"
              "        print('typed')\n"
              "    except OSError as e:\n"
              "        print('no', e.errno)\n")
    box.write("sti.py", script)
    t = box.term("run", "--", "/usr/bin/python3", "sti.py")
    t.expect("no|typed")
    eq(t.wait(), 0)
    os.set_blocking(t.slave, False)
    try:
        eq(os.read(t.slave, 10), b"")
    except BlockingIOError:
        pass
    t.close()


@test
def stopped_and_continued_from_outside(box):
    """Ctrl-Z of the caller's shell when the command has no terminal of its own: both stop, both go on."""
    p = box.start("run", "--", "sh", "-c", "echo up; for i in $(seq 30); do sleep 0.05; done; echo end")
    eq(p.stdout.readline(), b"up\n")
    p.send_signal(signal.SIGTSTP)
    soon(lambda: open(f"/proc/{p.pid}/stat").read().split(") ")[1][0] == "T", "the client stops")
    p.send_signal(signal.SIGCONT)
    r = box.finish(p)
    eq((r.rc, r.out), (0, "end\n"))


if __name__ == "__main__":
    sys.exit(main())
