#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Policy files: where they are found, what they may do, and what is said about them."""

import json
import re
import sys

from harness import eq, has, has_not, main, refused, test

PROJECT = ".vitrine.jsonc"


def user_policy(box, text, mode=0o644):
    d = box.config / "vitrine"
    d.mkdir(exist_ok=True)
    f = d / "policy.jsonc"
    f.write_text(text)
    f.chmod(mode)
    box.own(d)
    return f


@test
def user_file(box):
    user_policy(box, """{
        // comments and a last comma are fine
        "limits": { "open_files": 77 },
        "env": { "pass": ["MINE"], "set": { "FIXED": "value" } },
        "files": { "hide": ["*.secret"], "protect": ["Makefile"] },
    }""")
    box.write("a.secret", "hush\n")
    box.write("Makefile", "all:\n")
    r = box.sh('ulimit -n; echo "$MINE|$FIXED"; cat a.secret; echo x >>Makefile', env={"MINE": "m"})
    eq(r.out, "77\nm|value\n")
    eq(box.read("Makefile"), "all:\n")
    eq(box.ok("ulimit -n", "--open-files", "99"), "99\n")


@test
def reading_can_be_checked_too(box):
    user_policy(box, '{ "features": { "check_reads": true } }')
    has(box.cli("explain", "--", "true").out, "changes, programs and reading")
    box.write("in", "text\n")
    eq(box.ok("cat in; find /usr -maxdepth 1 >/dev/null && cat /etc/passwd >/dev/null && : >out && truncate -s 5 out && "
              "wc -c <out"),
       "text\n5\n")
    # It tightens, so a project may ask for it but not take it back.
    box.write(PROJECT, '{ "features": { "check_reads": false } }')
    refused(box.run("--", "true"), "features.check_reads", "widen")


@test
def user_file_of_others(box):
    user_policy(box, "{}", 0o666)
    refused(box.run("--", "true"), "can be written by others", "chmod")


@test
def named_file(box):
    user_policy(box, '{ "limits": { "open_files": 77 } }')
    f = box.dir / "other.jsonc"
    f.write_text('{ "limits": { "open_files": 55 } }')
    box.own(f)
    eq(box.ok("ulimit -n", "--policy", str(f)), "55\n")
    # One that lies in the workspace is the agent's to write, so it may only tighten.
    box.write("mine.jsonc", '{ "files": { "read": ["/var/log"] } }')
    refused(box.run("--policy", "mine.jsonc", "--", "true"), "mine.jsonc:1:", "files.read", "widen")


@test
def project_tightens(box):
    box.write(PROJECT, '{ "limits": { "open_files": 44, "time": "20s" }, "files": { "hide": ["notes"] } }')
    box.write("notes", "hush\n")
    r = box.sh("ulimit -n; cat notes")
    eq(r.out, "44\n")
    has(r.err, "Permission denied")


WIDER = [
    ('{ "files": { "read": ["/var/log"] } }', "files.read"),
    ('{ "files": { "write": ["/var/tmp"] } }', "files.write"),
    ('{ "files": { "hide": ["!.env"] } }', "files.hide"),
    ('{ "files": { "protect": ["!.git"] } }', "files.protect"),
    ('{ "limits": { "pids": 100000 } }', "limits.pids"),
    ('{ "limits": { "pids": "none" } }', "limits.pids"),
    ('{ "env": { "pass": ["API_KEY"] } }', "env.pass"),
    ('{ "features": { "debug": true } }', "features.debug"),
    ('{ "network": { "mode": "gate" } }', "network.mode"),
]


@test
def project_cannot_widen(box):
    for text, what in WIDER:
        box.write(PROJECT, text)
        r = box.run("--", "true")
        refused(r, PROJECT, what, "widen", "vitrine trust")
        if not re.search(r"\.vitrine\.jsonc:1:\d+: ", r.err):
            raise AssertionError(r.err)


@test
def trust_flow(box):
    log = box.dir / "log"
    log.write_text("entry\n")
    box.own(log)
    box.write(PROJECT, json.dumps({"files": {"read": [str(log)]}}))
    refused(box.sh(f"cat {log}"), "vitrine trust")
    r = box.cli("trust")
    eq((r.rc, r.err), (0, ""))
    has(r.out, str(box.ws / PROJECT), "trusted", "files.read", str(log), "widens")
    eq(box.ok(f"cat {log}"), "entry\n")
    has(box.cli("trust", "--list").out, str(box.ws / PROJECT))
    # Any change ends it, also one that means nothing; and the same content back is trusted again.
    text = box.read(PROJECT)
    box.write(PROJECT, text + " ")
    refused(box.sh(f"cat {log}"), "vitrine trust")
    box.write(PROJECT, text)
    eq(box.ok(f"cat {log}"), "entry\n")
    has(box.cli("trust", "--remove").out, "no longer trusted")
    refused(box.sh(f"cat {log}"), "vitrine trust")
    has(box.cli("trust", "--remove").out, "was not trusted")
    eq(box.cli("trust", "--list").out, "")


@test
def trust_is_of_one_place(box):
    box.write(PROJECT, '{ "limits": { "pids": "100000,optional" } }')
    eq(box.cli("trust").rc, 0)
    box.write("sub/" + PROJECT, box.read(PROJECT))
    refused(box.run("--", "true", cwd=box.ws / "sub"), "vitrine trust")
    eq(box.run("--", "true").rc, 0)


@test
def agent_cannot_trust_itself(box):
    """What the agent leaves behind is not there for the next run."""
    r = box.sh(f"echo '{{ \"limits\": {{ \"pids\": 8 }} }}' >{PROJECT}; vitrine trust; true")
    eq((box.ws / PROJECT).exists(), False)
    has(r.err, "quarantined " + PROJECT)
    box.write(PROJECT, '{ "limits": { "open_files": 44 } }')
    box.sh(f"echo '{{}}' >{PROJECT}; rm -f {PROJECT}; mv {PROJECT} x; true")
    eq(box.ok("ulimit -n"), "44\n")


@test
def project_file_as_link(box):
    (box.ws / PROJECT).symlink_to("/etc/hostname")
    refused(box.run("--", "true"), PROJECT, "symbolic link")


@test
def named_workspace_in_a_project_is_refused(box):
    box.write(PROJECT, '{ "workspace": { "path": "/usr" } }')
    r = box.run("--", "true")
    eq(r.rc, 2, r.err)
    has(r.err, "workspace")


BAD_FILES = [
    ("{\n  // why\n  \"limits\": { \"memry\": \"2g\" },\n}\n", "3:15", "memry", 'did you mean "memory"'),
    ("{ \"limits\": { \"memory\": \"2q\" } }", "1:25", "2q", "512m"),
    ("{ \"limits\": { \"memory\": 1.5 } }", "1:25", "limits.memory", ""),
    ("{ \"limts\": {} }", "1:3", "limts", "limits"),
    ("{ \"files\": { \"hide\": \"x\" } }", "1:22", "files.hide", "list"),
    ("{ \"files\": { \"hide\": [\"[\"] } }", "1:23", "files.hide", ""),
    ("{ \"files\": { \"home\": \"shared\" } }", "1:22", "shared", "private"),
    ("{ \"network\": { \"mode\": \"nnoe\" } }", "1:24", "nnoe", "none"),
    ("{ \"env\": { \"set\": { \"A B\": \"x\" } } }", "1:", "env.set", ""),
    ("{ \"files\": { \"read\": [\"relative\"] } }", "1:23", "files.read", ""),
    ("{ \"limits\": {}, \"limits\": {} }", "1:17", "duplicate", "1:3"),
    ("{ \"limits\": { } ", "1:", "ends", ""),
    ("[]", "1:1", "object", ""),
    ("", "1:1", "", ""),
    ("{ \"a\u202eb\": 1 }", "1:", "", ""),
    ("{ \"a\\u0000\": 1 }", "1:", "", ""),
]


@test
def check_names_the_place(box):
    for text, place, *needles in BAD_FILES:
        f = box.write("p.jsonc", text)
        r = box.cli("policy", "check", str(f))
        try:
            refused(r, f"{f}:{place}", *needles)
        except AssertionError as e:
            raise AssertionError(f"{text!r}: {e}") from None


@test
def check_of_good_files(box):
    a = box.write("a.jsonc", "{}")
    b = box.write("b.jsonc", '{ "limits": { "memory": "2g,optional", "time": "10m" } } // end\n')
    r = box.cli("policy", "check", str(a), str(b))
    eq((r.rc, r.err), (0, ""))
    eq(r.out, f"{a}: ok\n{b}: ok\n")
    bad = box.write("c.jsonc", "{")
    r = box.cli("policy", "check", str(a), str(bad))
    eq(r.rc, 2)
    has(r.out, f"{a}: ok")
    p = box.write(PROJECT, '{ "limits": { "pids": 100000 } }')
    r = box.cli("policy", "check", str(p))
    eq(r.rc, 0)
    has(r.out, "ok", "note:", "widen")


@test
def bad_user_file_stops_a_run(box):
    f = user_policy(box, '{ "limits": { "memry": "2g" } }')
    refused(box.run("--", "true"), f"{f}:1:15", "memory")
    refused(box.cli("policy", "show"), f"{f}:1:15")
    refused(box.cli("explain", "--", "true"), f"{f}:1:15")


@test
def show_origins(box):
    user_policy(box, '{ "limits": { "pids": 300 }, "files": { "hide": ["*.secret"] } }')
    box.write(PROJECT, '{ "limits": { "time": "5m" }, "files": { "protect": ["ci.yml"] } }')
    r = box.cli("policy", "show")
    eq((r.rc, r.err), (0, ""))
    for line in (r"limits\.pids +300 +user", r"limits\.time +5m +project", r"limits\.disk +4g,optional +built-in",
                 r"files\.hide +\*\.secret +user", r"files\.protect +ci\.yml +project", r"files\.hide +\.env +built-in",
                 r"env\.pass +PATH +built-in"):
        if not re.search(line, r.out):
            raise AssertionError(f"no {line!r} in:\n{r.out}")


@test
def show_json(box):
    user_policy(box, '{ "limits": { "pids": 300 } }')
    r = box.cli("policy", "show", "--json")
    eq((r.rc, r.err), (0, ""))
    text = json.dumps(json.loads(r.out))
    has(text, "user", "built-in", "pids")
    has_not(text, '"origin": "project"')


@test
def hidden_from_the_inside(box):
    """The agent reads neither the user's policy nor the trust list."""
    f = user_policy(box, '{ "limits": { "open_files": 77 } }')
    r = box.sh(f"cat {f} {box.config}/vitrine/*; ls {box.config} {box.state}")
    eq(r.out, "")


if __name__ == "__main__":
    sys.exit(main())
