# SPDX-License-Identifier: Apache-2.0
"""CR: credentials in the environment, in other processes, in the home."""

import os
import re
import shlex

from harness import HELD, Ctx, check

q = shlex.quote

SECRET_VARS = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "GITHUB_TOKEN", "GH_TOKEN",
               "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "DATABASE_URL", "NPM_TOKEN", "PGPASSWORD",
               "KUBECONFIG", "GOOGLE_APPLICATION_CREDENTIALS", "SSH_AUTH_SOCK", "MY_PRIVATE_THING", "SUDO_COMMAND",
               "XDG_SECRET", "VITRINE_SECRET"]


@check("CR-01", prio="P0", null=True, catches=("env",),
       title="variables of the caller stay outside unless named")
def cr01(c: Ctx):
    u = c.uuid()
    env = {n: f"{u}-{n}" for n in SECRET_VARS}
    c.need_control(c.control("env", env=env).text.count(u) == len(env), "outside too they are unset")
    r = c.sandbox("env; cat /proc/self/environ; set", env=env)
    c.must(not c.leaks(r, u), f"passed: {[n for n in SECRET_VARS if f'{u}-{n}' in r.text]}")
    if c.form == "run":
        v = c.uuid()
        r = c.sandbox("env", env={"WANTED": v, **env}, flags=["-e", "WANTED", "-e", "OTHER=plain"])
        c.need_control(f"WANTED={v}" in r.text and "OTHER=plain" in r.text, f"-e does not work: {r}")
        c.must(not c.leaks(r, u), "naming one variable let others pass")
    return HELD


@check("CR-02", prio="P0", null=True, catches=("proc", "pidns"),
       title="environments and command lines of all processes in sight")
def cr02(c: Ctx):
    e, a, launch = c.uuid(), c.uuid(), c.uuid()
    sentinel = c.start(["sh", "-c", "echo up; sleep 50; true", a], env={"VCF_SENTINEL": e}, sandboxed=False)
    c.need_control(sentinel.wait_for("up"), "the sentinel did not start")
    # Outside only the sentinel is looked at: what else runs there is nobody's business.
    r = c.control(f"cat /proc/{sentinel.pid}/environ /proc/{sentinel.pid}/cmdline")
    c.need_control(e in r.text and a in r.text, "outside too the sentinel shows nothing")
    r = c.sandbox("for p in /proc/[0-9]*; do cat $p/environ $p/cmdline $p/task/*/comm; done 2>/dev/null | "
                  "tr '\\0' '\\n' | grep -a canary; true", env={"VCF_LAUNCH": launch})
    for word, what in ((e, "the sentinel's environment"), (a, "the sentinel's arguments"),
                       (launch, "the caller's environment")):
        c.must(not c.leaks(r, word), f"{what} came out: {r}")
    c.must(sentinel.alive, "the sentinel is gone")
    return HELD


HOME_SECRETS = [".ssh/id_ed25519", ".aws/credentials", ".config/gcloud/credentials.db", ".azure/accessTokens.json",
                ".kube/config", ".docker/config.json", ".netrc", ".npmrc", ".pypirc", ".gnupg/secring.gpg",
                ".password-store/x.gpg", ".git-credentials", ".bash_history", ".mozilla/firefox/x/logins.json",
                ".config/google-chrome/Default/Login Data", ".env", ".claude/.credentials.json",
                ".codex/auth.json", ".cargo/credentials.toml", ".config/gh/hosts.yml"]


@check("CR-03", prio="P0", null=True, catches=("home",), catch_ident="user",
       title="20 credential files of the home are neither readable nor listed")
def cr03(c: Ctx):
    words, names = [], []
    for f in HOME_SECRETS:
        words.append(c.uuid())
        c.plant(c.home / f, words[-1] + "\n")
    names.append(c.uuid())
    c.plant(c.home / ".ssh" / f"key-{names[0]}", "x")
    every = " ".join(q(str(c.home / f)) for f in HOME_SECRETS)
    script = (f"cat {every} 2>/dev/null; ls -Ra {q(str(c.home))}; ls -Ra ~ ; cd; ls -Ra . .. ; "
              "cat ~/.netrc ~/.ssh/* ../*/.netrc; find / -path /proc -prune -o -name .netrc "
              "-exec cat {} + 2>/dev/null; true")
    r = c.control(script.replace("find / ", f"find {q(str(c.home))} "))
    c.need_control(all(w in r.text for w in words + names), "outside too they cannot be read")
    if c.cfg.sabotage:
        script = script.replace("find / ", f"find {q(str(c.home))} ")
    r = c.sandbox(script, timeout=40)
    hit = [f for f, w in zip(HOME_SECRETS, words) if c.leaks(r, w)]
    c.must(not hit, f"readable: {hit}")
    c.must(not c.leaks(r, names[0]), "names of the home are listed")
    return HELD


@check("CR-04", prio="P1", forms=("run",),
       title="HOME unset or changed, ~user, getpwuid: the real home stays out of sight")
def cr04(c: Ctx):
    u = c.uuid()
    c.plant(c.home / ".netrc", u + "\n")
    c.plant(c.out / "realssh" / "id", u + "\n")
    c.symlink(c.home / ".ssh", c.out / "realssh")
    home = q(str(c.home))
    script = (f"cat {home}/.netrc {home}/.ssh/id ~/.netrc ~/.ssh/id ~root/.netrc ~{c.account.name}/.netrc\n"
              "cat $XDG_CONFIG_HOME/x $XDG_STATE_HOME/vitrine/* 2>/dev/null; getent passwd; true")
    c.need_control(u in c.control(script).text, "outside too it cannot be read")
    other = c.mkdir(c.root / "otherhome")
    for env in ({"HOME": None}, {"HOME": str(other)}, {"HOME": ""}, {"HOME": "/"}, {"HOME": "relative"},
                {"XDG_STATE_HOME": None, "XDG_CONFIG_HOME": None, "HOME": str(other)}, {"HOME": str(c.ws)},
                {"XDG_STATE_HOME": "relative", "HOME": str(other)}):
        r = c.sandbox(script, env=env, refusal_ok=True)
        c.must(not c.leaks(r, u), f"the canary came out with {env}: {r}")
        c.note(f"{env}: {'ran' if r.began else 'refused: ' + r.errtext.strip()[:100]}")
    return HELD


@check("CR-06", prio="P0", null=True, catches=("home",), catch_ident="user",
       title="token stores of agents can neither be read nor written")
def cr06(c: Ctx):
    u = c.uuid()
    files = [".claude/.credentials.json", ".claude.json", ".codex/auth.json", ".gemini/oauth_creds.json",
             ".config/goose/secrets.yaml", ".local/share/opencode/auth.json"]
    for f in files:
        c.plant(c.home / f, u + "\n")
    every = " ".join(q(str(c.home / f)) for f in files)
    c.need_control(c.control(f"cat {every}").text.count(u) == len(files), "outside too they cannot be read")
    r = c.sandbox(f"cat {every}; for f in {every}; do mkdir -p $(dirname $f); echo x > $f; done; true")
    c.must(not c.leaks(r, u), f"a token came out: {r}")
    for f in files:
        c.must((c.home / f).read_text() == u + "\n", f"changed on the host: {f}")
    return HELD


@check("CR-12", prio="P2", forms=("run",),
       title="machine-id, DMI serial, kernel command line are not the host's")
def cr12(c: Ctx):
    def content(path):
        try:
            with open(path) as f:
                return f.read().strip()
        except OSError:
            return ""

    host = {p: content(p) for p in ("/etc/machine-id", "/sys/class/dmi/id/product_uuid",
                                    "/sys/class/dmi/id/product_serial", "/sys/class/net/eth0/address")}
    r = c.sandbox("cat /etc/machine-id /sys/class/dmi/id/* /sys/class/net/*/address 2>/dev/null; true")
    seen = [p for p, text in host.items() if len(text) > 4 and text in r.text]
    c.must(not seen, f"the host's own: {seen}")
    return HELD


# Every readable page of itself, but for what it was told to look for: that word comes in two halves.
SCAN = r"""
import re, sys
word = (sys.argv[1] + sys.argv[2]).encode()
hits = seen = 0
mem = open("/proc/self/mem", "rb", 0)
for line in open("/proc/self/maps"):
    m = re.match(r"([0-9a-f]+)-([0-9a-f]+) (r)", line)
    if not m or "[v" in line:
        continue
    a, b = int(m[1], 16), int(m[2], 16)
    try:
        mem.seek(a); data = mem.read(b - a)
    except (OSError, ValueError, OverflowError):
        continue
    seen += len(data)
    hits += data.count(word)
print("seen", seen >> 20, "hits", hits)
"""


@check("CR-10", prio="P1", title="nothing of the caller's or the keeper's memory is in what runs inside", catches=("env",))
def cr10(c: Ctx):
    u = c.uuid()
    c.plant(c.ws / "scan.py", SCAN)
    argv = ["/usr/bin/python3", "scan.py", u[:16], u[16:]]
    secret = {"VCF_TOKEN": u}
    ctl = re.search(r"seen (\d+) hits (\d+)", c.control(argv, env=secret).text)
    own = re.search(r"seen (\d+) hits (\d+)", c.control(argv).text)
    c.need_control(ctl and own and int(ctl[2]) > int(own[2]), f"it is not even found outside: {ctl} {own}")
    r = c.sandbox(argv, env=secret)
    got = re.search(r"seen (\d+) hits (\d+)", r.text)
    if not got or int(got[1]) < 1:
        c.inconclusive(f"no memory was seen: {r}")
    # The word itself, put together in there, is all that may be found.
    c.must(int(got[2]) <= int(own[2]), f"{got[2]} places hold it, {own[2]} without it around: {r}")
    return HELD
