#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The completions that the program prints, asked in the shells they are for."""

import os
import subprocess
import sys

from harness import eq, has, has_not, main, test

BASH = r"""
. "$1"; line=$2
read -ra COMP_WORDS <<<"$line"; case $line in *' ') COMP_WORDS+=('') ;; esac
COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMP_LINE=$line; COMP_POINT=${#line}
_vitrine vitrine "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
printf '%s\n' "${COMPREPLY[@]}"
"""

FISH = 'source $argv[1]; complete -C $argv[2] | string replace -r "\\t.*" ""; true'

# zsh completes only on a terminal, so it is given one; what compadd is offered is what would be shown.
ZSH = r"""
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z "PS1= ; unsetopt zle_bracketed_paste 2>/dev/null; fpath=(${1:h} \$fpath); autoload -U compinit; compinit -u -D; \
zstyle ':completion:*' list-prompt ''; zstyle ':completion:*' menu no; \
compadd () { local -a got; builtin compadd -O got \"\$@\"; (( \$#got )) && print -rl -- \$got >>\$OFFERED; builtin compadd \"\$@\" }"
zpty -w z "print be''gun"
while zpty -r z out; do [[ $out = *begun* ]] && break; done
zpty -w -n z "$2"$'\t'
for i in {1..100}; do [[ -s $OFFERED ]] && break; sleep 0.05; done
sleep 0.1
zpty -d z
"""


def as_user(box):
    return {"user": box.account.pw_uid, "group": box.account.pw_gid, "extra_groups": []} if box.account else {}


def ask(box, shell, line):
    """-> the words that are offered for this line"""
    file = box.home / {"bash": "vitrine.bash", "zsh": "_vitrine", "fish": "vitrine.fish"}[shell]
    if not file.exists():
        file.write_text(box.cli("completion", shell).out)
    bin = box.home / "bin"
    if not bin.exists():
        bin.mkdir()
        (bin / "vitrine").symlink_to(box.program)
    env = {**box.env(None), "PATH": f"{bin}:/usr/bin:/bin", "HOME": str(box.home), "TERM": "dumb", "OFFERED": ""}
    if shell == "zsh":
        offered = box.home / "offered"
        offered.write_text("")
        box.own(offered)
        p = subprocess.run(["zsh", "-f", "-c", ZSH, "zsh", file, line], env={**env, "OFFERED": str(offered)}, capture_output=True,
                           text=True, timeout=30, cwd=box.home, **as_user(box))
        return offered.read_text().split()
    argv = ["bash", "-c", BASH, "bash", file, line] if shell == "bash" else ["fish", "--no-config", "-c", FISH, file, line]
    p = subprocess.run([str(a) for a in argv], env=env, capture_output=True, text=True, timeout=30, cwd=box.home, **as_user(box))
    eq((p.returncode, p.stderr), (0, ""), f"{shell}: {line}")
    return p.stdout.split()


def each(box, line, *want, without=()):
    for shell in ("bash", "zsh", "fish"):
        got = [w.rstrip("=") for w in ask(box, shell, line)]
        for w in want:
            has(got, w)
        for w in without:
            has_not(got, w)


@test(who=("user",), timeout=60)
def verbs(box):
    each(box, "vitrine check", "checkpoint", "checkpoints", without=("run",))


@test(who=("user",), timeout=60)
def options_of_a_verb(box):
    each(box, "vitrine run --mem", "--memory", without=("--stat",))
    each(box, "vitrine diff --st", "--stat", without=("--memory",))


@test(who=("user",), timeout=60)
def words_of_a_verb(box):
    each(box, "vitrine completion ", "bash", "zsh", "fish")
    each(box, "vitrine policy s", "show")


@test(who=("user",), timeout=90)
def names_that_are_known_here(box):
    box.ok("true", "--name", "my-box", "--allow", "here.example")
    each(box, "vitrine stop my", "my-box")
    each(box, "vitrine run --engine gv", "gvisor", without=("native",))
    each(box, "vitrine run --mode re", "review")
    each(box, "vitrine run --allow py", "pypi", "python", without=("npm",))
    each(box, "vitrine run --allow her", "here.example")
    each(box, "vitrine run clau", "claude")
    eq(box.cli("completion", "--words", "sandboxes", "modes").out, "my-box\ndirect\nreview\nclone\n")
    eq(box.cli("completion", "--words", "nonsense").rc, 2)


@test(who=("user",), timeout=60)
def every_line_is_understood(box):
    """No shell finds fault with what it reads."""
    for shell, check in (("bash", ["bash", "-n"]), ("zsh", ["zsh", "-n"]), ("fish", ["fish", "--no-execute"])):
        file = box.home / f"c.{shell}"
        file.write_text(box.cli("completion", shell).out)
        p = subprocess.run([*check, str(file)], capture_output=True, text=True, timeout=30)
        eq((p.returncode, p.stderr), (0, ""), shell)


if __name__ == "__main__":
    sys.exit(main())
