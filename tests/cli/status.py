#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exit statuses, and what is said about bad input."""

import json
import signal
import sys
import time

from harness import eq, has, has_not, main, refused, test


@test(timeout=60)
def own_status(box):
    for n in (0, 1, 2, 3, 42, 123, 124, 125, 126, 127, 128, 255):
        r = box.sh(f"exit {n}")
        eq((r.rc, r.out, r.err), (n, "", ""))


@test
def by_signal(box):
    for sig in (signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGSEGV, signal.SIGPIPE):
        r = box.sh(f"ulimit -c 0; kill -{int(sig)} $$", "--json")
        eq((r.rc, r.json["exit"], r.json["reason"]), (128 + sig, 128 + sig, "signal"))


@test
def not_found(box):
    for program in ("no-such-program-here", "/no/such/program"):
        refused(box.run("--", program), "No such file", rc=127)


@test
def not_executable(box):
    box.write("plain.txt", "echo hello\n")
    refused(box.run("--", "./plain.txt"), "Permission denied", rc=126)
    eq(box.run("--", "./").rc, 126)


@test
def missing_interpreter(box):
    box.write("odd", "#!/no/such/interpreter\n", 0o755)
    eq(box.run("--", "./odd").rc, 127)


@test
def script_without_interpreter_line(box):
    box.write("plain", "echo started\n", 0o755)
    r = box.run("--", "./plain")
    # As execve says it: no shell is guessed.
    eq(r.rc, 126, r.err)


@test
def workdir_missing(box):
    r = box.run("--workdir", str(box.ws / "nowhere"), "--", "true")
    eq(r.rc, 126)
    has(r.err, "working directory", "No such file")


@test
def time_limit(box):
    t0 = time.monotonic()
    r = box.run("--json", "--time", "300ms", "--", "sleep", "20")
    eq((r.rc, r.json["reason"]), (124, "time"))
    if not 0.25 < time.monotonic() - t0 < 3:
        raise AssertionError(f"took {time.monotonic() - t0:.2f} s")
    r = box.run("--time", "100ms", "--", "sleep", "20")
    eq(r.rc, 124)
    eq(r.err, "vitrine: ended: the time is over (limit 100ms)\n")


@test
def idle_limit(box):
    r = box.run("--json", "--idle", "300ms", "--", "sleep", "20")
    eq((r.rc, r.json["reason"]), (124, "idle"))
    r = box.sh("for i in 1 2 3 4 5; do echo $i; sleep 0.2; done", "--idle", "700ms")
    eq((r.rc, r.out), (0, "1\n2\n3\n4\n5\n"), r.err)


@test
def output_limit(box):
    r = box.sh("yes", "--json", "--output", "1m")
    eq((r.rc, r.json["reason"]), (137, "output"))
    # Give or take what a relay moves before it looks: four buffers of 64 KiB.
    if abs(len(r.raw_out) - (1 << 20)) > 256 << 10:
        raise AssertionError(f"{len(r.raw_out)} bytes came out")
    r = box.sh("echo hello", "--output", "1k")
    eq((r.rc, r.out), (0, "hello\n"), r.err)


@test
def cpu_time_limit(box):
    r = box.sh("while :; do :; done", "--json", "--cpu-time", "300ms,optional")
    eq((r.rc, r.json["reason"]), (124, "cpu_time"))


@test
def memory_limit(box):
    use = "import sys\nx = b'x' * (300 << 20)\nprint(len(x))"
    r = box.run("--json", "--memory", "64m,optional", "--", "/usr/bin/python3", "-c", use)
    eq(r.out, "")
    eq((r.rc, r.json["reason"], r.json["limits"]["memory"]["max"]), (137, "memory", 64 << 20))
    r = box.run("--memory", "1g,optional", "--", "/usr/bin/python3", "-c", "print(len(b'x' * (30 << 20)))")
    eq((r.rc, r.out), (0, "31457280\n"), r.err)


@test
def pids_limit(box):
    box.needs_limit("pids", "20")
    script = "i=0; while [ $i -lt 60 ]; do sleep 3 & i=$((i+1)); done; echo all"
    has_not(box.sh(script, "--pids", "20").out, "all")
    has(box.sh(script.replace("sleep 3", "sleep 0.1"), "--pids", "200").out, "all")


def disk(box, size):
    """As it may be said to this engine: where it bounds the bytes only, that has to be accepted."""
    if box.has_step("disk limit"):
        return size
    refused(box.run("--disk", size, "--", "true"), "limit disk", "number of files", ",optional", rc=125)
    return size + ",optional"


@test
def disk_limit(box):
    limit = disk(box, "8m")
    r = box.sh("dd if=/dev/zero of=/tmp/x bs=1M count=20 status=none", "--disk", limit)
    eq(r.rc, 1)
    has(r.err, "No space left")
    eq(box.sh("dd if=/dev/zero of=/tmp/x bs=1M count=2 status=none", "--disk", limit).rc, 0)


@test
def open_files_limit(box):
    eq(box.ok("ulimit -n; ulimit -Hn", "--open-files", "99"), "99\n99\n")


@test
def limits_of_other_words(box):
    eq(box.ok("echo hi", "--pids", "none", "--disk", "none", "--time", "none"), "hi\n")
    box.needs_limit("pids", "100")
    eq(box.ok("echo hi", "--pids=100", f"--disk={disk(box, '64mib')}", "--time=1h"), "hi\n")


@test(who=["user"])
def limit_that_cannot_be_enforced(box):
    """Without a control group of one's own a memory limit is watched at best, and that must be said."""
    r = box.run("--json", "--memory", "1g,optional", "--", "true")
    eq(r.rc, 0)
    if r.json["limits"]["memory"]["by"] == "kernel":
        return
    eq(r.json["limits"]["memory"]["by"], "watched")
    refused(box.run("--memory", "1g", "--", "true"), "memory", "optional", rc=125)


BAD_LIMITS = [
    (["--memory", "2q"], ["--memory", "'2q'", "512m"]),
    (["--memory", "1.5g"], ["--memory", "1.5g"]),
    (["--memory", "1k"], ["--memory", "4m.."]),
    (["--memory=0"], ["--memory", "4m.."]),
    (["--memory=-1"], ["--memory", "-1"]),
    (["--memory", ""], ["--memory"]),
    (["--memory", "2g,maybe"], ["--memory", "maybe"]),
    (["--cpus", "two"], ["--cpus", "0.5"]),
    (["--cpus", "0"], ["--cpus", "0.01"]),
    (["--cpu-time", "3 s"], ["--cpu-time", "90s"]),
    (["--pids", "3"], ["--pids", "4.."]),
    (["--pids", "1e3"], ["--pids", "1e3"]),
    (["--pids", "99999999999999999999"], ["--pids"]),
    (["--disk", "100"], ["--disk", "1m.."]),
    (["--time", "1y"], ["--time", "10m"]),
    (["--time", "0"], ["--time"]),
    (["--idle", "x"], ["--idle"]),
    (["--output", "0"], ["--output"]),
    (["--open-files", "1"], ["--open-files", "16.."]),
    (["--io-read", "many"], ["--io-read"]),
]


@test
def bad_limits(box):
    for words, needles in BAD_LIMITS:
        refused(box.run(*words, "--", "true"), *needles)


BAD_CALLS = [
    (["rnu"], ["did you mean 'run'"]),
    (["xyzzy"], ["vitrine help"]),
    (["run"], ["no command"]),
    (["run", "--"], ["no command"]),
    (["run", "--memry", "2g", "--", "true"], ["--memry", "did you mean --memory"]),
    (["run", "--xyzzy", "--", "true"], ["--xyzzy"]),
    (["run", "-Z", "--", "true"], ["-Z"]),
    (["run", "--memory"], ["--memory", "needs a value"]),
    (["run", "--json=yes", "--", "true"], ["--json", "takes no value"]),
    (["run", "--name", "../up", "--", "true"], ["--name", "letters"]),
    (["run", "--name", "", "--", "true"], ["--name"]),
    (["run", "--name", "-x", "--", "true"], ["--name"]),
    (["run", "--name", "a" * 65, "--", "true"], ["--name", "64"]),
    (["run", "-e", "1x=2", "--", "true"], ["1x=2", "NAME=VALUE"]),
    (["run", "-e", "=x", "--", "true"], ["NAME=VALUE"]),
    (["run", "--env-file", "/no/such", "--", "true"], ["--env-file", "/no/such"]),
    (["run", "-v", "a:b:c", "--", "true"], ["HOST[:INSIDE][:ro]"]),
    (["run", "-v", "", "--", "true"], ["HOST[:INSIDE][:ro]"]),
    (["run", "-v", "/usr:relative", "--", "true"], ["not an absolute path"]),
    (["run", "-v", "/no/such", "--", "true"], ["/no/such", "No such file"]),
    (["run", "--read", "/no/such", "--", "true"], ["--read", "/no/such"]),
    (["run", "--write", "/no/such", "--", "true"], ["--write", "/no/such"]),
    (["run", "--read", "", "--", "true"], ["--read"]),
    (["run", "--hide", "[", "--", "true"], ["--hide"]),
    (["run", "--protect", "", "--", "true"], ["--protect"]),
    (["run", "--engine", "warp", "--", "true"], ["warp", "bwrap"]),
    (["run", "--policy", "/no/such", "--", "true"], ["policy", "/no/such"]),
    (["run", "--workspace", "/no/such", "--", "true"], ["workspace", "/no/such"]),
    (["run", "--workspace", "/etc/passwd", "--", "true"], ["workspace", "Not a directory"]),
    (["exec"], ["which sandbox"]),
    (["exec", "x"], ["no command"]),
    (["exec", "../x", "--", "true"], ["which sandbox"]),
    (["exec", "--tyt", "x", "--", "true"], ["--tyt", "--tty"]),
    (["policy"], ["check FILE", "show"]),
    (["policy", "chekc"], ["did you mean 'check'"]),
    (["policy", "check"], ["needs a file"]),
    (["policy", "check", "/no/such"], ["/no/such"]),
    (["policy", "show", "extra"], ["no arguments"]),
    (["trust"], [".vitrine.jsonc"]),
    (["trust", "a", "b"], ["one path"]),
    (["trust", "--list", "--remove"], ["do not go together"]),
    (["completion", "tcsh"], ["tcsh", "fish"]),
    (["help", "nope"], ["nope"]),
    (["doctor", "x"], ["no arguments"]),
    (["demo", "x"], ["no arguments"]),
    (["engines", "--jsn"], ["did you mean --json"]),
]


@test(timeout=30)
def bad_calls(box):
    for words, needles in BAD_CALLS:
        try:
            refused(box.cli(*words), *needles)
        except AssertionError as e:
            raise AssertionError(f"{words}: {e}") from None


@test
def foreign_bytes_are_escaped(box):
    r = box.cli("run", "--x\033[31m\nvitrine: all is well", "--", "true")
    refused(r)
    has_not(r.err, "\033")


@test(who=["user"])
def user_needs_root(box):
    refused(box.run("--user", "root", "--", "true"), "--user needs root")


@test(who=["root"])
def user_unknown(box):
    refused(box.run("--user", "no-such-user", "--", "true"), "no-such-user")
    refused(box.run("--user", "root", "--", "true"), "root")


@test
def workspace_refusals(box):
    (box.dir / "state" / "vitrine").mkdir(parents=True)
    box.own(box.dir / "state")
    cases = [("/", "whole machine"), (str(box.home), "home directory"), (str(box.dir), "home directory"),
             (str(box.state), "state"), (str(box.dir / "state"), "state"), ("/usr", "system"),
             ("/usr/bin", "/usr"), ("/tmp", "")]
    for path, why in cases:
        t0 = time.monotonic()
        try:
            refused(box.run("--workspace", path, "--", "true"), path, "cannot be a workspace", why)
            refused(box.run("--", "true", cwd=path), "cannot be a workspace", why)
        except AssertionError as e:
            raise AssertionError(f"{path}: {e}") from None
        # Refused for what it is, not after all of it was looked through.
        if time.monotonic() - t0 > 2:
            raise AssertionError(f"{path}: took {time.monotonic() - t0:.1f} s")


@test
def home_by_a_link(box):
    link = box.dir / "link"
    link.symlink_to(box.home)
    refused(box.run("--workspace", str(link), "--", "true"), "cannot be a workspace", "home directory")


@test
def vanished_directory(box):
    gone = box.ws / "gone"
    gone.mkdir()
    box.own(gone)
    r = box.host("sh", "-c", f"cd gone && rmdir ../gone && {box.program} run -- true 2>&1; echo status $?")
    has(r, "does not exist any more", "--workspace", "status 2")


@test
def texts(box):
    for words in (["help"], ["--help"], ["-h"]):
        r = box.cli(*words)
        eq((r.rc, r.err), (0, ""))
        has(r.out, "usage: vitrine", "run", "exec", "demo")
    verbs = box.cli("help", "--list").out.split()
    has(verbs, "run", "exec", "explain", "policy", "trust", "engines", "doctor", "demo", "version")
    for verb in verbs:
        for words in ([verb, "--help"], ["help", verb]):
            r = box.cli(*words)
            eq((r.rc, r.err), (0, ""), verb)
            has(r.out, f"usage: vitrine {verb}")
        man = box.cli("help", "--man", verb)
        eq(man.rc, 0)
        has(man.out, ".TH")
    eq(box.cli("--version").out, box.cli("version").out)
    for shell in ("bash", "zsh", "fish"):
        r = box.cli("completion", shell)
        eq((r.rc, r.err), (0, ""))
        has(r.out, "vitrine", "--memory" if shell == "bash" else "memory")


@test
def engines_and_doctor(box):
    r = box.cli("engines", "--quick")
    eq(r.rc, 0)
    has(r.out, "native")
    json.loads(box.cli("engines", "--json", "--quick").out)
    r = box.cli("doctor", "--json")
    eq(r.rc, 0, r.out)
    d = json.loads(r.out)
    eq(d["can_run"], True)
    for c in d["checks"]:
        if c["needed"]:
            eq(c["state"], "works", c["id"])


# Every listing: the words, its first field, and what -q must print (None: whatever --format prints of that field).
LISTINGS = [
    ("ls", "Name", ["loop", "rev", "t"]),
    ("ps", "Name", []),
    ("stats", "Name", []),
    ("events t --type session", "Run", None),
    ("net log t", "Run", None),
    ("net log --denied t", "Run", []),
    ("network log t", "Run", None),
    ("net rules t", "Rule", ["ok.test"]),
    ("net presets", "Name", None),
    ("net groups", "Name", None),
    ("checkpoints", "Checkpoint", None),
    ("checkpoints rev", "Checkpoint", None),
    ("engines", "Name", None),
    ("template ls", "Name", ["small"]),
    ("secret ls", "Name", ["mine"]),
    ("agents", "Name", None),
    ("status", "Name", ["loop"]),
    ("broker ls", "Id", ["0123abcd"]),
    ("trash ls t", "Id", None),
    ("trust --list", "Path", None),
]


def some_of_everything(box):
    """At least one row for each of them, but for what only runs."""
    box.write(".vitrine.jsonc", "{}")
    box.write("a.txt", "one\n")
    for words in (["trust"], ["checkpoint", "-m", "first"], ["run", "--name", "t", "--allow", "ok.test", "--", "rm", "a.txt"],
                  # Layers, whatever the rest is made behind.
                  ["run", "--engine", "native", "--name", "rev", "--mode", "review", "--", "touch", "b"], ["checkpoint", "rev"],
                  ["loop", "shell", ".", "--name", "loop", "--prompt", "true", "--max", "1", "--mode", "direct", "--json"]):
        r = box.cli(*words)
        eq(r.rc, 0, f"{words}: {r.err}")
    eq(box.cli("secret", "set", "mine", "--env", "K", "--host", "own.test", input=b"a long value\n").rc, 0)
    (box.state / "templates/small").mkdir(parents=True)
    pending = box.state / "sandboxes/t/broker/pending"
    pending.mkdir(parents=True)
    (pending / "0123abcd").write_text("push to \033[31mthere\n\nmore\n")
    box.own(box.state)


@test(timeout=90)
def every_listing(box):
    """--json, -q and --format work on each; a wrong field is told, with those that there are."""
    some_of_everything(box)
    for words, field, want in LISTINGS:
        words = words.split()
        said = {form: box.cli(*words, *form.split(), *(["--quick"] if words == ["engines"] else [])) for form in ("", "--json", "-q", "--format {{.%s}}|" % field)}
        for form, r in said.items():
            eq((r.rc, r.err), (0, ""), f"{words} {form}")
            has_not(r.out, "\033")
        is_lines = words[0] == "events" or "log" in words
        for text in said["--json"].out.splitlines() if is_lines else [said["--json"].out]:
            json.loads(text)
        quiet, rows = said["-q"].out.split(), said["--format {{.%s}}|" % field].out.splitlines()
        eq([r[-1:] for r in rows], ["|"] * len(rows), words)
        firsts = [r[:-1] for r in rows]
        if words == ["agents"]:  # -q means those that are installed
            eq(set(quiet) <= set(firsts) and "shell" in quiet, True, f"{quiet} {firsts}")
        elif is_lines:
            eq([q.split(":")[0] for q in quiet], firsts, words)
        else:
            eq(quiet, firsts, words)
        if want is not None:
            eq(sorted(quiet), want, words)
        elif words != ["net", "log", "t"] and words != ["network", "log", "t"]:
            eq(bool(quiet), True, f"{words}: nothing is listed")
        refused(box.cli(*words, "--format", "{{.Nothing}}"), "Nothing", "EVENTS.md" if is_lines else field)


@test(timeout=60)
def listings_say_more_than_names(box):
    some_of_everything(box)
    for words, format, want in (("checkpoints", "{{.Kind}} {{.Files}} {{.Message}}", "manual 2 first\n"),
                                ("checkpoints rev", "{{.Kind}} {{.Files}}", "manual -\n"),
                                ("trash ls t", "{{.Bytes}} {{.Directory}} {{.Path}}", f"4 B no {box.ws}/a.txt\n"),
                                ("broker ls", "{{.Sandbox}}:{{.Title}}", "t:push to \\x1b[31mthere\n"),
                                ("secret ls", "{{.Source}} {{.Variable}} {{.Hosts}}", "stored K own.test\n"),
                                ("status loop", "{{.Agent}} {{.Iterations}}/{{.Max}} {{.Mode}}", "shell 1/1 direct\n"),
                                ("net rules t", "{{.Verdict}} {{.Rule}}", "allow ok.test\n")):
        has(box.cli(*words.split(), "--format", format).out, want)
    eq(json.loads(box.cli("trash", "ls", "t", "--json").out)[0]["path"], f"{box.ws}/a.txt")
    eq(json.loads(box.cli("broker", "ls", "--json").out)[0]["title"], "push to \033[31mthere")
    refused(box.cli("trash", "empty", "t", "-q"), "belong to 'trash ls'")
    refused(box.cli("trash", "-q", "empty", "t"), "belong to 'trash ls'")
    refused(box.cli("trust", "-q"), "belong to 'trust --list'")


@test
def full_output(box):
    with open("/dev/full", "wb") as full:
        for words in (["help"], ["doctor"], ["policy", "show"], ["explain", "--", "true"]):
            r = box.cli(*words, stdout=full)
            if r.rc == 0:
                raise AssertionError(f"{words}: exit 0, yet nothing could be written")


if __name__ == "__main__":
    sys.exit(main())
