#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every option of `run`: what it opens, and that it opens nothing else."""

import json
import os
import pwd
import re
import sys

from harness import TEST_USER, eq, has, has_not, main, refused, test, with_account


# ---- environment ----


@test
def env_value(box):
    eq(box.ok('echo "$A|$B|$C"', "-e", "A=1", "--env", "B=two words", "-eC=x=y"), "1|two words|x=y\n")
    eq(box.ok('echo "${A-unset}|${B+set}"', "-e", "B="), "unset|set\n")
    eq(box.ok('echo "$A"', "-e", "A=1", "-e", "A=2"), "2\n")


@test
def env_of_the_caller(box):
    give = {"MINE": "yes", "OTHER": "no", "API_KEY": "no"}
    eq(box.ok('echo "${MINE-}|${OTHER-}|${API_KEY-}"', "-e", "MINE", env=give), "yes||\n")
    eq(box.ok('echo "${ABSENT-unset}"', "-e", "ABSENT"), "unset\n")


@test
def env_allowlist(box):
    give = {"LC_TIME": "C", "EDITOR": "ed", "SSH_AUTH_SOCK": "/x", "DBUS_SESSION_BUS_ADDRESS": "x",
            "LD_PRELOAD": "", "AWS_SECRET_ACCESS_KEY": "x", "XDG_RUNTIME_DIR": "/x", "DISPLAY": ":0",
            "GIT_DIR": "/x", "VITRINE_ANY": "x"}
    inside = dict(l.split("=", 1) for l in box.ok("env", env=give).splitlines())
    eq({inside.get("LC_TIME"), inside.get("EDITOR")}, {"C", "ed"})
    allowed = {"PATH", "TERM", "LANG", "LC_TIME", "EDITOR", "USER", "LOGNAME", "SHELL", "HOME", "PWD", "container",
               "VITRINE", "OLDPWD", "_", "TMPDIR"}
    # Without network nobody is to try again.
    allowed |= {"npm_config_fetch_retries", "YARN_HTTP_RETRY", "PIP_RETRIES", "UV_HTTP_RETRIES", "CARGO_NET_RETRY", "BUNDLE_RETRY"}
    eq(set(inside) - allowed, set())
    eq(inside["HOME"], str(box.home))
    eq(inside["PWD"], str(box.ws))
    eq(inside["TERM"], "xterm-256color")


@test
def env_file(box):
    box.write("vars", "# a comment\n\nA=1\nB=two words\nMINE\n")
    eq(box.ok('echo "$A|$B|$MINE"', "--env-file", "vars", env={"MINE": "m"}), "1|two words|m\n")
    eq(box.ok('echo "$A"', "--env-file", "vars", "-e", "A=later"), "later\n")
    box.write("bad", "A=1\nnot a name=2\n")
    refused(box.run("--env-file", "bad", "--", "true"), "bad:2", "NAME=VALUE")


# ---- files ----


def other(box):
    """A directory outside home and workspace, with one file."""
    d = box.dir / "other"
    d.mkdir()
    (d / "file").write_text("from outside\n")
    box.own(d)
    return d


@test
def outside_is_absent(box):
    d = other(box)
    r = box.sh(f"cat {d}/file")
    eq((r.rc, r.out), (1, ""))
    (box.home / "letter").write_text("private\n")
    box.own(box.home / "letter")
    r = box.sh("cat ~/letter; ls -A ~")
    has_not(r.out, "private", "letter")


@test
def volume(box):
    d = other(box)
    eq(box.ok(f"cat {d}/file; echo new >{d}/new", "-v", str(d)), "from outside\n")
    eq((d / "new").read_text(), "new\n")
    eq(box.ok("cat /mnt/data/file; echo more >/mnt/data/more", "-v", f"{d}:/mnt/data"), "from outside\n")
    eq((d / "more").read_text(), "more\n")
    for form in (f"{d}:ro", f"{d}:{d}:ro"):
        r = box.sh(f"cat {d}/file; echo x >{d}/no", "-v", form)
        eq(r.out, "from outside\n")
        has(r.err, "Read-only")
        eq((d / "no").exists(), False)
    r = box.sh("cat /data/file; echo x >/data/no", "-v", f"{d}:/data:ro")
    eq(r.out, "from outside\n")
    eq((d / "no").exists(), False)


@test
def volume_relative_and_home(box):
    (box.home / "lib").mkdir()
    (box.home / "lib" / "a").write_text("a\n")
    box.own(box.home)
    eq(box.ok("cat ../lib/a", "-v", "../lib:ro"), "a\n")
    eq(box.ok("cat ~/lib/a", "-v", "~/lib:ro"), "a\n")


CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIBcert\n-----END CERTIFICATE-----\n"


@test
def certificates_of_the_caller(box):
    """The variable and the certificates come in; the rest of the file, its name and what is no certificate do not."""
    d = box.dir / "private"
    d.mkdir()
    (d / "all.pem").write_text(f"password = hush-1\n{CERTIFICATE}-----BEGIN PRIVATE KEY-----\nhush2\n-----END PRIVATE KEY-----\n")
    (d / "key.pem").write_text("-----BEGIN PRIVATE KEY-----\nhush3\n-----END PRIVATE KEY-----\n")
    (d / "link.pem").symlink_to("key.pem")
    box.own(d)
    r = box.sh("cat $NODE_EXTRA_CA_CERTS; echo x >$NODE_EXTRA_CA_CERTS; env; cat /proc/self/mountinfo; find /.vitrine -type f -exec cat {} +",
               env={"NODE_EXTRA_CA_CERTS": str(d / "all.pem")})
    has(r.out, CERTIFICATE, "NODE_EXTRA_CA_CERTS=/.vitrine/certificates/NODE_EXTRA_CA_CERTS.pem")
    has(r.err, "Read-only")
    has_not(r.out, "hush", str(d))
    for name in ("key.pem", "link.pem", "none.pem", "."):
        r = box.sh("env; find /.vitrine -type f -exec cat {} +; true", env={"SSL_CERT_FILE": str(d / name)})
        has(r.err, "SSL_CERT_FILE is not set inside", "no certificate in it" if name.endswith("y.pem") else "")
        has_not(r.out, "hush", "SSL_CERT_FILE")
    shown = "/etc/ssl/certs/ca-certificates.crt"
    eq(box.ok("echo $PIP_CERT", env={"PIP_CERT": shown}), shown + "\n")


@test
def volume_of_one_file(box):
    d = other(box)
    eq(box.ok("cat /srv/one; cd /srv; echo *", "-v", f"{d}/file:/srv/one:ro"), "from outside\none\n")


@test
def made_on_a_volume_belongs_to_the_caller(box):
    d = other(box)
    box.ok(f"echo x >{d}/made; mkdir {d}/dir", "-v", str(d))
    for p in (d / "made", d / "dir"):
        eq((p.stat().st_uid, p.stat().st_gid), (d.stat().st_uid, d.stat().st_gid), str(p))


@test
def read_and_write(box):
    d = other(box)
    r = box.sh(f"cat {d}/file; echo x >{d}/file", "--read", str(d))
    eq(r.out, "from outside\n")
    has(r.err, "Read-only")
    eq((d / "file").read_text(), "from outside\n")
    eq(box.ok(f"echo changed >{d}/file", "--write", str(d)), "")
    eq((d / "file").read_text(), "changed\n")


@test
def hide(box):
    box.write("secret.txt", "hush\n")
    box.write("deep/er/secret.txt", "hush\n")
    box.write("open.txt", "hello\n")
    box.write(".env", "hush\n")
    box.write(".env.example", "shared\n")
    box.write("vault/inner", "hush\n")
    r = box.sh("cat open.txt secret.txt deep/er/secret.txt .env .env.example vault/inner; cp secret.txt copy",
               "--hide", "secret.txt", "--hide", "vault")
    eq(r.out, "hello\nshared\n")
    has(r.err, "Permission denied")
    eq(box.read("secret.txt"), "hush\n")
    eq(box.ok("cat .env", "--hide", "!.env"), "hush\n")


@test
def hidden_cannot_be_replaced(box):
    box.write("deep/.env", "hush\n")
    r = box.sh("rm -f deep/.env; mv deep/.env x; mv deep y; echo mine >deep/.env; rm -rf deep; true")
    eq(r.rc, 0, r.err)
    eq(box.read("deep/.env"), "hush\n")


@test
def protect(box):
    box.write("build.cfg", "old\n")
    box.write("dir/f", "old\n")
    r = box.sh("cat build.cfg dir/f; echo new >build.cfg; echo new >dir/f; rm -f build.cfg; mv dir dir2; echo x >dir/g",
               "--protect", "build.cfg", "--protect", "dir")
    eq(r.out, "old\nold\n")
    eq((box.read("build.cfg"), box.read("dir/f"), (box.ws / "dir/g").exists()), ("old\n", "old\n", False))
    has(r.err, "Read-only")
    box.write(".envrc", "old\n")
    eq(box.ok("echo new >.envrc", "--protect", "!.envrc"), "")
    eq(box.read(".envrc"), "new\n")


@test
def quarantine(box):
    r = box.sh("mkdir .vscode && echo '{}' >.vscode/tasks.json; echo ok >fine; sleep 0.2", "--json")
    has([q["path"] for q in r.json["quarantined"]], ".vscode")
    eq((box.ws / ".vscode").exists(), False)
    eq(box.read("fine"), "ok\n")
    kept = list((box.state / "quarantine").rglob("*"))
    if not any("vscode" in p.name for p in kept):
        raise AssertionError(f"not kept: {kept}")
    r = box.sh("echo x >.envrc")
    eq(r.rc, 0)
    eq((box.ws / ".envrc").exists(), False)
    has(r.err, "vitrine: quarantined .envrc")


@test
def aliases_are_told(box):
    box.write(".env", "hush\n")
    os.link(box.ws / ".env", box.ws / "innocent")
    r = box.sh("cat innocent", "--json")
    has_not(r.out, "hush")
    eq(r.json["aliases"], ["innocent"])


@test
def workspace_and_workdir(box):
    box.write("sub/dir/f", "x\n")
    eq(box.ok("pwd"), f"{box.ws}\n")
    eq(box.ok("pwd; ls", "--workdir", str(box.ws / "sub")), f"{box.ws}/sub\ndir\n")
    eq(box.ok("pwd", "-w", "/usr"), "/usr\n")
    eq(box.ok("pwd; ls", "--workspace", str(box.ws / "sub"), cwd=box.ws / "sub" / "dir"), f"{box.ws}/sub/dir\nf\n")
    r = box.sh("ls ..", "--workspace", str(box.ws / "sub"), cwd=box.ws / "sub")
    has_not(r.out, "f\n")


@test
def workspace_with_odd_names(box):
    for name in ("with space", "quo'te\"s", "ünïcode", "new\nline", "-dash", "a:b", "$(id)", "tab\tx", "back\\slash"):
        d = box.ws / name
        d.mkdir()
        box.own(d)
        r = box.sh("echo made >it && cat it", cwd=d)
        eq((r.rc, r.out), (0, "made\n"), f"{name!r}: {r.err}")
        eq((d / "it").read_text(), "made\n")


@test
def workspace_by_a_link(box):
    real = box.home / "real"
    real.mkdir()
    (box.home / "link").symlink_to(real)
    box.own(box.home)
    eq(box.ok("pwd -P; echo x >f", "--workspace", str(box.home / "link"), cwd=box.home / "link"), f"{real}\n")
    eq((real / "f").read_text(), "x\n")


@test
def files_belong_to_the_caller(box):
    box.ok("echo x >made; mkdir -p d/e; ln -s made link; chmod 640 made; echo x >d/e/f")
    want = box.ws.stat()
    for p in box.ws.rglob("*"):
        st = p.lstat()
        eq((st.st_uid, st.st_gid), (want.st_uid, want.st_gid), str(p))
    eq((box.ws / "made").stat().st_mode & 0o777, 0o640)
    uid = box.ok("id -u; find made -printf %U").split()
    eq(uid[0], uid[1])


# ---- who ----


@test
def never_root(box):
    rows = dict(line.split() for line in box.ok("test $(id -u) -ne 0 && grep ^Cap /proc/self/status").splitlines())
    eq(set(rows) >= {"CapPrm:", "CapEff:", "CapBnd:"}, True, str(rows))  # a kernel may know of no others
    eq(set(rows.values()), {"0" * 16})


ID = "id -u; id -g; echo ~; echo x >made; cat /proc/self/status | grep -c '^Groups:.*[0-9]'; true"


@test(who=["root"])
def user_option(box):
    a, out = with_account(box, box.program, "run", "--user", TEST_USER, "--", "sh", "-c", ID,
                          env={"XDG_STATE_HOME": "/root/not-for-them", "LD_LIBRARY_PATH": "/x"})
    home = box.dir / "account"
    eq(out.split()[:3], [str(a.pw_uid), str(a.pw_gid), str(home)])
    eq((home / "proj" / "made").stat().st_uid, a.pw_uid)
    eq((home / ".local/state/vitrine").stat().st_uid, a.pw_uid)


@test(who=["root"], timeout=30)
def user_option_behind_other_walls(box):
    """What an engine that cannot map root's ids away tells root to do."""
    box.needs("crun", "bwrap")
    run = " && ".join(f"{box.program} run --engine {n} --user {TEST_USER} -- sh -c 'id -u; echo x >{n}'" for n in ("crun", "bwrap"))
    a, out = with_account(box, "sh", "-c", run)
    eq(out, f"{a.pw_uid}\n" * 2)
    eq([(box.dir / "account" / "proj" / n).stat().st_uid for n in ("crun", "bwrap")], [a.pw_uid] * 2)


SPY = """
"$@" & client=$!
i=0; while [ ! -e made ] && [ $i -lt 300 ]; do sleep 0.01; i=$((i+1)); done
for p in $client $(cat /proc/$client/task/$client/children); do
    echo process; setpriv --reuid {user} --regid {user} --clear-groups cat /proc/$p/environ 2>&1 | tr '\\0' '\\n'
done
wait $client
"""


@test(who=["root"])
def root_stays_closed_to_the_user(box):
    """Who root drops to must not find root's environment in the processes that dropped."""
    run = [box.program, "run", "--user", TEST_USER, "--", "sh", "-c", "echo x >made; sleep 1"]
    _, out = with_account(box, "sh", "-c", SPY.format(user=TEST_USER), "sh", *run, env={"ROOTS_KEY": "of-root-alone"})
    eq(out.count("process\n"), 2, "client and keeper")
    has_not(out, "of-root-alone")


@test(who=["root"])
def under_sudo(box):
    a, out = with_account(box, box.program, "run", "--", "sh", "-c", ID,
                          env={"SUDO_UID": str(pwd.getpwnam(TEST_USER).pw_uid), "SUDO_GID": "0"})
    eq(out.split()[:2], [str(a.pw_uid), str(a.pw_gid)])
    eq((box.dir / "account" / "proj" / "made").stat().st_uid, a.pw_uid)


# ---- the rest ----


@test
def json_line(box):
    r = box.sh("echo out; echo err >&2; exit 3", "--json", "--time", "1m", "--memory", "1g,optional", "--name", "j")
    eq((r.rc, r.out), (3, "out\n"))
    has(r.err, "err\n{")
    d = r.json
    eq((d["exit"], d["reason"], d["name"]), (3, "exit", "j"))
    eq(d["limits"]["time"]["max"], 60 * 10**9)
    eq(d["limits"]["memory"]["max"], 1 << 30)
    has(("kernel", "watched"), d["limits"]["memory"]["by"])
    eq((d["quarantined"], d["aliases"]), ([], []))
    eq(len(r.err.splitlines()), 2)


@test
def json_of_a_failure(box):
    d = box.run("--json", "--", "/no/such").json
    eq((d["exit"], d["reason"], d["error"]), (127, "error", "notfound"))


@test
def debug_lets_trace(box):
    box.needs("strace")
    has(box.sh("strace -f -o trace sh -c 'echo hi'; cat trace", "--debug").out, "hi\n", "write(1, \"hi\\n\"")
    r = box.sh("strace -o second echo hi; cat second; true")
    has_not(r.out + r.err, "write(1")


@test
def dashes(box):
    eq(box.run("--", "sh", "-c", "echo $0 $*", "a", "-e", "--memory", "x").out, "a -e --memory x\n")
    eq(box.run("sh", "-c", "echo $0 $*", "a", "-e", "--memory", "x").out, "a -e --memory x\n", "a program begins a command")
    eq(box.run("true").rc, 0)
    refused(box.run("--no-such", "sh", "-c", "echo"), "'--no-such' is not known")
    eq(box.run("--", "echo", "--", "-x").out, "-- -x\n")


@test
def many_arguments(box):
    words = ["x" * 1000] * 100 + ["", "a\nb", "\x01\xff"]
    r = box.run("--", "sh", "-c", 'printf "%s" "$#"', "sh", *words)
    eq((r.rc, r.out), (0, str(len(words))), r.err)


@test
def name_and_kept_home(box):
    eq(box.ok("echo kept >~/note; pwd", "--name", "box"), f"{box.ws}\n")
    eq(box.ok("cat ~/note", "--name", "box"), "kept\n")
    eq(box.sh("cat ~/note").rc, 1)
    eq(box.sh("cat ~/note", "--name", "box2").rc, 1)
    eq(box.ok("cat ~/note", "--name", "box", "--rm"), "kept\n")
    eq(box.sh("cat ~/note", "--name", "box").rc, 1)
    r = box.ok("echo $VITRINE", "--name", "my.box_1-x")
    eq(r, "my.box_1-x\n")


@test
def unnamed_home_is_gone(box):
    box.ok("echo x >~/note; echo x >/tmp/note; echo x >/dev/shm/note")
    eq(box.ok("find ~ /tmp /dev/shm /var/tmp -name note; true"), "")
    has_not([p.name for p in box.home.iterdir()], "note")


# ---- explain ----


@test
def explain_text(box):
    box.write(".env", "x\n")
    box.write(".envrc", "x\n")
    d = other(box)
    r = box.cli("explain", "--name", "box", "--read", str(d), "--time", "90s", "-e", "A=b", "--", "make", "test")
    eq((r.rc, r.err), (0, ""))
    for line in ("sandbox +box", f"engine +{box.engine}", f"workspace +{box.ws}", "command +make test", "network +none",
                 rf" hide +ro {box.ws}/\.env +", rf" protect +ro {box.ws}/\.envrc +", rf" bind +ro {d} ",
                 rf" bind +rw {box.ws} ", " time +90s? ", "  A=b", " private +rw /tmp ", " bind +ro /usr "):
        if not re.search(line, r.out.replace("1m30s", "90s")):
            raise AssertionError(f"no {line!r} in:\n{r.out}")
    eq(box.state.exists(), False, "explain left something")


@test
def explain_json(box):
    box.write(".env", "x\n")
    r = box.cli("explain", "--json", "--pids", "77,optional", "--", "echo", 'a"b\n')
    d = json.loads(r.out)
    eq(d["argv"], ["echo", 'a"b\n'])
    eq((d["engine"], d["network"], d["workspace"], d["cwd"]), (box.engine, "none", str(box.ws), str(box.ws)))
    eq(set(d["namespaces"]), {"user", "mount", "pid", "ipc", "uts", "cgroup", "net"})
    eq(d["limits"]["pids"]["max"], 77)
    hidden = [m["dst"] for m in d["mounts"] if m["kind"] == "hide"]
    has(hidden, str(box.ws / ".env"))
    uid_in, uid_out = d["ids"]["uid"]
    if box.is_root:
        eq(uid_in, 1000)
        if uid_out < 100000:
            raise AssertionError(f"uid {uid_out} outside")
    else:
        eq(uid_in, uid_out)
    for m in d["mounts"]:
        if m["dst"] in ("/usr", "/etc/ssl") and "ro" not in m["flags"]:
            raise AssertionError(m)


@test
def explain_matches_run(box):
    env = json.loads(box.cli("explain", "--json", "--name", "n", "--", "env").out)["env"]
    inside = [l for l in box.ok("env", "--name", "n").splitlines() if not l.startswith(("_=", "OLDPWD="))]
    eq(sorted(inside), sorted(env))


if __name__ == "__main__":
    sys.exit(main())
