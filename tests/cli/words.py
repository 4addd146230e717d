#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The words people type, and what they expect to work as at home: git's identity, registries, ports, no network."""

import json
import re
import shutil
import sys
import time

from harness import Term, eq, has, has_not, main, refused, slowness, test


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
        has(r.err, "ENOTFOUND", "vitrine: hint: '", "was looked up", "no network; --allow npm lets it")
        eq(r.err.count("vitrine: hint"), 1, "hints")
    if took[-1] > 2 * slowness():
        raise AssertionError(f"npm install without network took {took} s")


@test
def names_do_not_exist_without_network(box):
    box.ok("true")  # the first start here makes the skeleton
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


# ---- groups of hosts ----


@test
def groups_stand_for_hosts(box):
    groups = json.loads(box.cli("net", "groups", "--json").out)
    for name in ("npm", "pypi", "cargo", "go", "github", "debian", "node", "python", "code", "packages"):
        assert groups.get(name), name
    assert set(groups["npm"]) < set(groups["node"]) < set(groups["packages"])
    has(box.cli("net", "groups").out, "npm  packages of npm", "\n    **.npmjs.org\n")
    out = box.cli("explain", "--allow", "npm,cargo", "--allow", "a.example", "--json", "--", "true").out
    has(out, "allow **.npmjs.org", "allow **.crates.io", "allow a.example")
    has_not(out, "**.pypi.org")
    # Kept as the word, so that a later version's hosts hold; given and taken back while it is there.
    box.ok("true", "--name", "box", "--allow", "npm")
    has(box.cli("net", "rules", "box").out, "allow    **.npmjs.org\n")
    eq(box.cli("net", "allow", "box", "pypi").rc, 0)
    eq(box.cli("net", "deny", "box", "npm").rc, 0)
    out = box.cli("net", "rules", "box").out
    has(out, "allow    **.pypi.org\n", "deny     **.npmjs.org\n")
    eq(box.cli("net", "test", "box", "x.pypi.org").rc, 0)
    eq(box.cli("net", "test", "box", "x.npmjs.org").rc, 1)
    # In a policy file too; a project's own file may only take away.
    box.write(".vitrine.jsonc", '{ "network": { "allow": ["npm"] } }')
    refused(box.run("--", "true"), "network.allow would widen the policy")
    box.write(".vitrine.jsonc", '{ "network": { "deny": ["npm"] } }')
    eq(box.cli("net", "test", "x.npmjs.org").rc, 1)


@test
def ask_opens_the_gate(box):
    has(box.cli("explain", "--ask", "--json", "--", "true").out, '"gate"')
    eq(box.cli("net", "rules").out, "deny     everything else\n")
    box.ok("true", "--name", "box", "--ask")
    eq(box.cli("net", "rules", "box").out, "ask      everything else\n")


# ---- the words people type ----


STAND_IN = {"summary": "a stand-in", "command": ["stand-in", "--ui"], "free": ["--yes"], "prompt": ["stand-in", "-p", "{prompt}"],
            "begin": ["stand-in", "--yes", "-i", "{prompt}"], "secrets": ["anthropic"]}


def stand_in(box, name="mine", **more):
    """An agent that prints what it was started with, in a place that is seen inside."""
    d = box.config / "vitrine" / "agents"
    d.mkdir(parents=True, exist_ok=True)
    (d / f"{name}.json").write_text(json.dumps({**STAND_IN, **more}))
    (d / f"{name}.json").chmod(0o600)
    program = at_home(box, ".local/bin/stand-in", "#!/bin/sh\nprintf '<%s>' stand-in \"$@\"\necho\n")
    program.chmod(0o755)
    box.own(box.config)
    return {"PATH": f"{program.parent}:/usr/local/bin:/usr/bin:/bin"}


@test
def a_program_is_a_command(box):
    box.write("x.sh", "#!/bin/sh\necho x.sh \"$@\"\n", 0o755)
    for argv, out in ((["./x.sh", "-q", "a", "--memory"], "x.sh -q a --memory\n"),
                      (["-e", "A=1", "env", "-u", "HOME", "sh", "-c", "echo $A"], "1\n"),
                      (["printf", "%s\n", "--", "--name"], "--\n--name\n"),
                      (["--name", "box", "echo", "--json"], "--json\n")):
        r = box.run(*argv)
        eq((r.rc, r.out, r.err), (0, out, ""), str(argv))
    eq(box.cli("ls", "-q").out, "box\n", "only the one with a name lasts")
    # A sandbox, an agent and a directory come first; what is nothing of that is not there.
    box.ok("true", "--name", "echo")
    eq(box.run("echo", "--", "sh", "-c", "echo in $VITRINE").out, "in echo\n")
    box.write("folder/f", "x")
    eq(box.run("folder", "--", "pwd").rc, 125, "a word without a slash is no directory")
    eq(box.run("./folder", "--", "pwd").out, f"{box.ws}/folder\n")
    refused(box.run("no-such-word"), "no agent, no sandbox and no program", rc=125)
    refused(box.run("echo", "make"), "'make' is no directory", "vitrine run echo -- 'make'")
    eq(box.cli("explain", "env", "--bogus").rc, 0)


@test(who=("root",))
def user_behind_a_command_is_the_commands(box):
    eq(box.run("env", "-u", "HOME", "sh", "-c", "echo ${HOME-none}").out, "none\n")


@test
def an_agents_word_is_a_verb(box):
    env = stand_in(box)
    r = box.cli("mine", ".", env=env)
    eq((r.rc, r.out), (0, "<stand-in><--ui><--yes>\n"), r.err)
    eq(box.cli("mine", "--name", "other", "--", "-v", env=env).out, "<stand-in><--ui><--yes><-v>\n")
    eq(box.cli("shell", ".", "--", "-c", "echo $VITRINE").out, "shell-proj\n")
    refused(box.cli("nine"), "no verb and no agent 'nine'", "vitrine agents")


@test
def a_text_behind_the_dashes_is_a_prompt(box):
    env = stand_in(box)
    text = "Refactor the auth module"
    eq(box.run("mine", ".", "--", text, env=env).out, f"<stand-in><-p><{text}>\n", "nobody is there: it works and ends")
    eq(box.run("mine", ".", "--", text, "--model", "x", env=env).out, f"<stand-in><-p><{text}><--model><x>\n")
    t = Term(box, [box.program, "run", "mine", ".", "--", text], env=env)
    t.expect(f"<stand-in><--yes><-i><{text}>")
    eq(t.wait(), 0)
    t.close()
    stand_in(box, begin=["stand-in", "{prompt}"])
    eq(box.run("-t", "mine", ".", "--", text, env=env).out.strip(), f"<stand-in><{text}>")
    # A program whose path has a blank in it is one.
    box.write("my tool", "#!/bin/sh\necho tool\n", 0o755)
    eq(box.run("mine", ".", "--", "./my tool", env=env).out, "tool\n")
    eq(box.run("shell", ".", "--", "echo one; echo two words").out, "one\ntwo words\n")
    refused(box.run("mine", text), f"'{text}' is no directory", "behind '--'")


@test
def options_stand_anywhere(box):
    box.ok("echo one; echo two", "--name", "box")
    eq(box.cli("logs", "box", "-f").out, "one\ntwo\n")
    eq(box.cli("logs", "box", "-n", "1").out, "two\n")
    eq(box.cli("inspect", "box", "--format", "{{.Name}}").out, "box\n")
    eq(box.cli("exec", "box", "-e", "A=5", "--", "sh", "-c", "echo $A").out, "5\n")
    eq(box.cli("exec", "box", "printf", "%s\\n", "-e").out, "-e\n", "behind the name it is the command's own")
    eq(box.run("shell", ".", "--memory", "2g,optional", "--", "-c", "true").rc, 0)
    has(box.cli("policy", "--json", "show").out, '"workspace"')
    for argv in (["set", "mine", "--env", "K", "--host", "own.test"], ["set", "--env", "K", "mine", "--host", "own.test"]):
        eq(box.cli("secret", *argv, input=b"a long value\n").rc, 0, str(argv))
        eq(box.cli("secret", "ls", "-q").out, "mine\n")
        eq(box.cli("secret", "rm", "mine").rc, 0)
    has(box.cli("rm", "box", "--help").out, "usage: vitrine rm")
    refused(box.cli("rm", "box", "--froce"), "option '--froce' is not known; did you mean --force?")
    refused(box.cli("logs", "box", "--tail"), "option '--tail' needs a value")
    eq(box.cli("rm", "box", "-f").rc, 0)
    eq(box.cli("ls", "-q").out, "shell-proj\n")


@test
def create_in_dockers_words(box):
    eq(box.cli("create", "box", ".").out, "box\n")
    eq(box.cli("ls", "box", "--format", "{{.Name}} {{.Agent}} {{.Workspace}}").out, f"box shell {box.ws}\n")
    refused(box.cli("create", "box", "."), "exists already", rc=125)
    refused(box.cli("create", "nobody"), "'nobody'", rc=125)
    refused(box.cli("create", "other", "./no-such"), "no-such")
    eq(box.cli("ls", "-q").out, "box\n")


@test
def alone_it_says_where_one_stands(box):
    env = {**stand_in(box), "ANTHROPIC_API_KEY": "sk-ant-0123456789"}
    r = box.cli(env=env)
    eq((r.rc, r.err), (0, ""))
    has(r.out, "\n  mine            has the key in ANTHROPIC_API_KEY\n", "\nNext\n  vitrine run mine . ")
    has_not(r.out, "Running", "Waiting", "sk-ant")
    del env["ANTHROPIC_API_KEY"]
    eq(box.run("--name", "waiting", "--mode", "review", "--", "sh", "-c", "echo x >f").rc, 0)
    eq(box.run("-d", "--name", "long", "--", "sleep", "60").rc, 0)
    out = box.cli(env=env).out
    has(out, "\n  mine            no key or login yet\n", f"\nRunning\n  long            1 session, {box.ws}\n",
        "\nWaiting for you\n  waiting         1 change: 'vitrine diff waiting' shows them")
    eq(box.cli("stop", "--time", "1s", "long").rc, 0)
    # On a terminal too it prints and ends.
    t = Term(box, [box.program], env=env)
    t.expect("Next")
    eq(t.wait(), 0)
    t.close()


@test(who=("user",))
def help_has_every_verb_in_one_group(box):
    listed = box.cli("help", "--list").out.split()
    text = box.cli("help").out
    eq(re.findall(r"^([A-Z][a-z ]+)$", text, re.M), ["Run", "Look", "Take back", "Allow", "Set up"])
    shown = re.findall(r"^  ([a-z]+) +\S", text, re.M)
    eq(sorted(shown), sorted(listed))


if __name__ == "__main__":
    sys.exit(main())
