#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The words people type, and what they expect to work as at home: git's identity, registries, ports, no network."""

import json
import shutil
import sys
import time

from harness import eq, has, has_not, main, refused, slowness, test


def at_home(box, rel, text):
    p = box.home / rel
    p.parent.mkdir(parents=True, exist_ok=True)
    p.write_text(text)
    box.own(box.home / p.relative_to(box.home).parts[0])
    return p


# ---- git works as at home ----


@test
def git_commits_with_the_users_name(box):
    at_home(box, ".gitconfig", "[user]\n\tname = Ada L\n\temail = ada@example.org\n[init]\n\tdefaultBranch = trunk\n"
            "[alias]\n\tst = status -s\n\tevil = !echo ran\n[credential]\n\thelper = store\n")
    out = box.ok("git init -q && echo x >f && git add f && git commit -qm one && git log --format='%an %ae' && "
                 "git branch --show-current && echo y >>f && git st; git config --get credential.helper || echo none")
    eq(out, "Ada L ada@example.org\ntrunk\n M f\nnone\n")
    has(box.sh("git evil").err, "'evil' is not a git command")


@test
def git_identity_of_the_place_counts(box):
    at_home(box, ".gitconfig", "[user]\n\tname = Ada\n\temail = home@example.org\n"
            f'[includeIf "gitdir:{box.home}/proj/"]\n\tpath = work.inc\n')
    at_home(box, "work.inc", "[user]\n\temail = work@example.org\n")
    eq(box.ok("git config user.email"), "work@example.org\n")


@test
def a_named_sandbox_sees_the_settings_of_today(box):
    at_home(box, ".gitconfig", "[user]\n\tname = One\n")
    eq(box.ok("git config user.name", "--name", "box"), "One\n")
    at_home(box, ".gitconfig", "[user]\n\tname = Two\n")
    eq(box.ok("git config user.name", "--name", "box"), "Two\n")


@test
def settings_that_cannot_be_read_are_named(box):
    at_home(box, ".gitconfig", "[user\n\tname = One\n")
    r = box.sh("git config user.name || echo none")
    eq(r.out, "none\n")
    has(r.err, ".gitconfig", "cannot be read with certainty")


@test
def registries_come_without_tokens(box):
    at_home(box, ".npmrc", "registry=https://me:hush@r.example/npm/\n//r.example/npm/:_authToken=hush\n")
    at_home(box, ".pip/pip.conf", "[global]\nindex-url = https://me:hush@i.example/simple\n")
    at_home(box, ".cargo/config.toml", '[source.crates-io]\nreplace-with = "m"\n[source.m]\nregistry = "https://m.example/"\n'
            '[registry]\ntoken = "hush"\n')
    out = box.ok("npm config get registry; pip config list; cat ~/.cargo/config.toml; cat /etc/npmrc")
    has(out, "https://r.example/npm/\n", "'https://i.example/simple'\n", '"https://m.example/"')
    has_not(out, "hush")


def describe(box, name):
    return json.loads((box.state / "secrets" / f"{name}.json").read_text())


@test
def tokens_become_secrets_when_said_so(box):
    """An import keeps each token for the host that the file names; inside, a placeholder stands where the tool looks."""
    npmrc = at_home(box, ".npmrc", "registry=https://r.example/npm/\n//r.example/npm/:_authToken=npm_RealTokenRealToken01\n"
                    "//s.example/:_authToken=${CORP_TOKEN}\n//t.example/:_password=cGFzcw==\n")
    before = npmrc.read_text()
    env = {"CORP_TOKEN": "corp-RealTokenRealToken02"}
    r = box.cli("secret", "import", "npm", env=env)
    eq(r.rc, 0, r.err)
    has(r.out, "npm: for r.example; inside as NPM_TOKEN", "npm-s-example: for s.example; inside as NPM_TOKEN_2; fetched at every start",
        "vitrine run --secret npm --allow r.example --secret npm-s-example --allow s.example -- npm")
    has(r.err, "left: //t.example/:_password")
    has_not(r.out + r.err, "RealToken")
    eq(npmrc.read_text(), before)
    eq((describe(box, "npm")["hosts"], describe(box, "npm-s-example")["source"]), (["r.example"], "variable"))
    # Again: the same secrets, not more of them.
    eq(box.cli("secret", "import", "npm", env=env).rc, 0)
    eq(len(list((box.state / "secrets").glob("*.json"))), 2)
    r = box.run("--secret", "npm", "--allow", "r.example", "--", "sh", "-c",
                "npm config get registry; cat /etc/npmrc; printenv NPM_TOKEN")
    eq(r.rc, 0, r.err)
    has(r.out, "https://r.example/npm/\n", "//r.example/npm/:_authToken=${NPM_TOKEN}\n", "\nnpm_")
    has_not(r.out, "RealToken", "s.example")
    # Without the secret no line names a variable that is not there.
    has_not(box.ok("cat /etc/npmrc"), "_authToken")


@test
def tokens_of_pip_and_cargo_become_secrets(box):
    at_home(box, ".pip/pip.conf", "[global]\nindex-url = https://me:PipRealToken0123456789@i.example:8443/simple\n")
    r = box.cli("secret", "import", "pip")
    eq(r.rc, 0, r.err)
    has(r.out, "pip: for i.example; inside as PIP_INDEX_URL")
    r = box.run("--secret", "pip", "--allow", "i.example", "--", "sh", "-c", "printenv PIP_INDEX_URL; pip config list")
    eq(r.rc, 0, r.err)
    has(r.out, "https://me:", "@i.example:8443/simple")
    has_not(r.out, "RealToken")
    at_home(box, ".cargo/config.toml", '[registries.corp]\nindex = "sparse+https://c.example/index/"\n')
    at_home(box, ".cargo/credentials.toml", '[registry]\ntoken = "cargoRealToken0123456789"\n[registries.corp]\ntoken = "corpRealToken0123456789"\n')
    r = box.cli("secret", "import", "cargo")
    eq(r.rc, 0, r.err)
    has(r.out, "cargo: for c.example; inside as CARGO_REGISTRIES_CORP_TOKEN")
    has(r.err, "left: registry: no host is named for it; say it with --host")
    r = box.run("--secret", "cargo", "--allow", "c.example", "--", "sh", "-c", "printenv CARGO_REGISTRIES_CORP_TOKEN; cat ~/.cargo/cred*")
    has_not(r.out, "RealToken")
    eq(len(r.out.splitlines()[0]), len("corpRealToken0123456789"))


@test
def an_import_that_finds_nothing_says_so(box):
    refused(box.cli("secret", "import"), "secret import npm | pip | cargo")
    refused(box.cli("secret", "import", "gem"), "secret import npm | pip | cargo")
    refused(box.cli("secret", "import", "npm"), "npm has no settings here", rc=125)
    at_home(box, ".npmrc", "registry=https://r.example/\n")
    refused(box.cli("secret", "import", "npm"), "no token was taken from '", rc=125)
    at_home(box, ".npmrc", "//r.example/:_authToken=short\n")
    refused(box.cli("secret", "import", "npm"), "fewer than 8 characters")
    at_home(box, ".npmrc", "//r.example/:_authToken=${NOT_SET}\n")
    r = box.cli("secret", "import", "npm")
    eq((r.rc != 0, r.out), (True, ""), r.err)
    has(r.err, "NOT_SET")
    eq(list((box.state / "secrets").glob("*.json")), [])


# ---- without network ----


@test(timeout=30)
def npm_without_network_fails_at_once(box):
    box.needs("npm")
    box.write("package.json", '{"name": "x", "version": "1.0.0"}')
    took = []
    while len(took) < 3 and (not took or took[-1] > 2):  # the best of three: other tests run beside this one
        shutil.rmtree(box.home / ".npm", ignore_errors=True)
        begin = time.monotonic()
        r = box.run("--", "npm", "install", "left-pad")
        took.append(time.monotonic() - begin)
        has(r.err, "ENOTFOUND", "vitrine: hint: '", "was looked up", "no network")
        eq(r.err.count("vitrine: hint"), 1, "hints")
    if took[-1] > 2 * slowness():
        raise AssertionError(f"npm install without network took {took} s")


@test
def names_do_not_exist_without_network(box):
    begin = time.monotonic()
    r = box.sh("getent hosts a.example b.example; echo $?; python3 -c 'import socket\ntry: socket.create_connection((\"192.0.2.1\", 80), 5)\n"
               "except OSError as e: print(e)'")
    eq(r.out, "2\n[Errno 101] Network is unreachable\n")
    if time.monotonic() - begin > 1 * slowness():
        raise AssertionError("it took too long")


@test
def the_hint_comes_while_the_command_runs(box):
    p = box.start("run", "--", "sh", "-c", "getent hosts one.example; getent hosts two.example; read x; echo over",
                  stdin=-1)
    line = p.stderr.readline().decode()
    has(line, "hint: 'one.example' was looked up")
    p.stdin.write(b"go\n")
    r = box.finish(p)
    eq(r.out, "over\n")
    has_not(r.err, "hint")


@test
def a_resolver_that_asks_for_nonsense_is_not_answered(box):
    """Datagrams that are no questions are dropped, and the next question is answered."""
    out = box.ok("python3 - <<'E'\n"
                 "import os, socket\n"
                 "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(('127.0.0.1', 53)); s.settimeout(5)\n"
                 "for n in list(range(0, 40)) * 5: s.send(os.urandom(n))\n"
                 "s.send(b'\\x12\\x34\\x01\\0\\0\\x01\\0\\0\\0\\0\\0\\0\\x01-\\x01-\\0\\0\\x01\\0\\x01')\n"
                 "while True:\n"
                 "    a = s.recv(2000)\n"
                 "    if a[:2] == b'\\x12\\x34': break\n"
                 "print(a[3] & 15)\nE")
    eq(out, "3\n")


# ---- ports ----


@test
def ports_below_1024_work(box):
    eq(box.ok("python3 -c 'import socket\nfor p in (80, 443, 1): socket.create_server((\"\", p))\nprint(\"ok\")'"), "ok\n")


@test
def a_published_port_may_lead_to_80(box):
    server = ("python3 -c 'import socket\ns = socket.create_server((\"\", 80)); print(\"up\", flush=True)\n"
              "c, _ = s.accept(); c.sendall(b\"hello\"); c.close()'")
    import socket
    s = socket.create_server(("127.0.0.1", 0))
    port = s.getsockname()[1]
    s.close()
    p = box.start("run", "-p", f"{port}:80", "--", "sh", "-c", server)
    eq(p.stdout.readline(), b"up\n")
    with socket.create_connection(("127.0.0.1", port), 5) as c:
        eq(c.recv(100), b"hello")
    eq(box.finish(p).rc, 0)


if __name__ == "__main__":
    sys.exit(main())
