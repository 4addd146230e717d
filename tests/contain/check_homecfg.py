# SPDX-License-Identifier: Apache-2.0
"""FR-40..: settings of the user's home come inside, and no token among them."""

import random

from harness import HELD, Ctx, check

# Where a value may stand that the inside must not have. {u} is the canary; each is one spelling out of many.
GIT = ['[credential]\n\thelper = "!f() {{ echo password={u}; }}; f"', '[credential "https://h.example"]\n\tusername = {u}',
       '[github]\n\toauth-token = {u}', '[user]\n\tsigningKey = {u}', '[sendemail]\n\tsmtpPass = {u}',
       '[http]\n\textraHeader = AUTHORIZATION: basic {u}', '[http]\n\tproxy = http://me:{u}@p.example:3128',
       '[http "https://me:{u}@h.example/"]\n\tpostBuffer = 1', '[url "https://me:{u}@h.example/"]\n\tinsteadOf = https://h.example/',
       '[url "https://{u}@h.example/"]\n\tinsteadOf = gh:', '[URL "https://h.example/"]\n\tINSTEADOF = https://{u}:x@h.example/',
       '[alias]\n\tp = push https://me:{u}@h.example/', '[alias]\n\tx = "!curl -H token:{u} h.example"', '# token={u}',
       '[url "https://h.example/{u}/"]\n\tinsteadOf = https://o.example/', '[url "https://h.example/?t={u}"]\n\tinsteadOf = x:',
       '[remote "o"]\n\turl = https://{u}@h.example/', '[core]\n\taskPass = /x/{u}', '[include]\n\tpath = more-{n}']
NPM = ['//r.example/:_authToken={u}', '//r.example/:_auth={u}', '//r.example/:_password="{u}"', '_auth={u}', '_authToken = {u}',
       '_password={u}', 'registry=https://me:{u}@r.example/', 'registry=https://{u}@r.example/npm', '@corp:registry=https://x:{u}@r.example/',
       'registry=https://r.example/{u}/npm/', 'registry=https://r.example/?token={u}', 'registry=https://r.example/#{u}', 'https-proxy=http://me:{u}@p.example',
       'key="{u}"', 'otp={u}', '; {u}', 'email={u}', 'electron_mirror=https://me:{u}@m.example/', 'registry=https://r.example\\@{u}/', '[s]\nregistry={u}']
PIP = ['[global]\nindex-url = https://me:{u}@i.example/simple', '[global]\nindex_url: https://{u}@i.example/simple',
       '[install]\nextra-index-url =\n    https://a.example/simple\n    https://t:{u}@b.example/simple', '[global]\nproxy = me:{u}@p.example:1',
       '[global]\nclient-cert = /k/{u}', '[global]\nindex-url = https://i.example/{u}/simple', '[global]\nfind-links = https://f.example/?k={u}',
       '[global]\ntoken = {u}', '# {u}', '[{u}]\ntimeout = 1', '[global]\nextra-index-url = https://i.example/simple https://{u}:@j.example/']
CARGO = ['[registry]\ntoken = "{u}"', "[registries.corp]\nindex = 'https://r.example/i'\ntoken = '{u}'",
         '[registries]\ncorp = {{ index = "https://me:{u}@r.example/i", token = "{u}" }}', 'registry.token = "{u}"', '[env]\nTOKEN = "{u}"',
         '[env]\nX = {{ value = "{u}", force = true }}', '[http]\nproxy = "me:{u}@p.example:1"', '[source.m]\nregistry = "sparse+https://{u}@m.example/"',
         '[registries.corp]\ncredential-provider = ["cargo:token-from-stdout", "echo", "{u}"]', '# {u}', '[source."https://{u}@h.example"]\nreplace-with = "m"',
         '[registries.corp]\nsecret-key = "k3.secret.{u}"', '[registries.a]\nindex = "https://r.example/{u}/i"', '[[x]]\ntoken = "{u}"', 'x = """{u}"""',
         '[alias]\np = ["publish", "--token", "{u}"]']
FILES = ((".gitconfig", GIT), (".npmrc", NPM), (".pip/pip.conf", PIP), (".cargo/config.toml", CARGO))

# Everything that the inside has of it: files, what the tools make of them, the environment.
LOOK = ("cat ~/.gitconfig ~/.npmrc ~/.pip/pip.conf ~/.cargo/config.toml ~/.cargo/config ~/.config/pip/pip.conf; cat /etc/gitconfig /etc/npmrc /etc/pip.conf; "
        "find /etc /.vitrine ~ -type f -size -64k -exec cat {} + ; env; git config --list; echo looked")


def varied(rng, text):
    """The same setting as another hand would write it."""
    if rng.random() < 0.3:
        text = text.replace(" = ", rng.choice(("=", "  =  ", " =")))
    if rng.random() < 0.2:
        text = text.replace("\n", "\r\n")
    return ("\n" * rng.randrange(3)) + text + rng.choice(("", "\n", "\n\n", "\n# end\n"))


def plant_all(c, u, rng):
    """Each file with some of the spellings; in all runs together each of them occurs."""
    for name, forms in FILES:
        some = rng.sample(forms, rng.randrange(1, len(forms)))
        text = "\n".join(varied(rng, f.format(u=u, n=rng.randrange(9))) for f in some)
        c.plant(c.home / name, text + "\n")
    c.plant(c.home / "more-1", f"[user]\n\tname = {'x' * 5}\n[github]\n\ttoken = {u}\n")


@check("FR-40", prio="P0", forms=("run",), catches=("homecfg",),
       title="tokens in the user's git, npm, pip and cargo settings are not inside, in any spelling")
def fr40(c: Ctx):
    rng = random.Random(c.uuid())
    for turn in range(6):
        u = "tok" + c.uuid().replace("-", "")
        plant_all(c, u, rng)
        if turn == 0:  # all of them at once, one after the other
            for name, forms in FILES:
                c.plant(c.home / name, "\n".join(f.format(u=u, n=1) for f in forms) + "\n")
        c.need_control(u in c.control(LOOK).text, "outside too no token is read")
        r = c.sandbox(LOOK)
        c.need_control("looked" in r.text, f"nothing ran: {r}")
        c.must(not c.leaks(r, u), f"a token came inside: {[line for line in r.text.splitlines() if u in line][:5]}")
    return HELD


@check("FR-41", prio="P0", forms=("run",), catches=("homecfg",),
       title="each single spelling of a token in cargo's settings, which lie in a directory that is shown")
def fr41(c: Ctx):
    for form in CARGO:
        u = "tok" + c.uuid().replace("-", "")
        c.plant(c.home / ".cargo" / "config.toml", form.format(u=u) + "\n[source.m]\nregistry = 'https://m.example/'\n")
        c.plant(c.home / ".cargo" / "config", form.format(u=u) + "\n")
        r = c.sandbox("cat ~/.cargo/config.toml ~/.cargo/config; cat ~/.cargo/*; echo looked")
        c.need_control("looked" in r.text, f"nothing ran: {r}")
        c.must(not c.leaks(r, u), f"{form}: a token came inside: {r}")
    return HELD


@check("FR-42", prio="P1", forms=("run",), title="settings that come inside open no host and run nothing")
def fr42(c: Ctx):
    c.plant(c.home / ".npmrc", "registry=https://127.0.0.1/\n")
    c.plant(c.home / ".gitconfig", '[url "https://127.0.0.1/"]\n\tinsteadOf = gh:\n[alias]\n\tx = "!touch ran"\n[core]\n\tpager = touch ran\n'
            "\tfsmonitor = touch ran; false\n\thooksPath = /tmp\n")
    c.control("git init -q")
    r = c.sandbox("git x; git status; git --paginate log; env | grep -i -e proxy; ls ran; echo looked")
    c.need_control("looked" in r.text, f"nothing ran: {r}")
    c.must(not (c.ws / "ran").exists(), f"a command of the user's git settings ran inside: {r}")
    c.must("3128" not in r.text, f"a gate was opened by a setting: {r}")
    return HELD


# What an import takes, and where the inside could look for it. {u} is the token.
IMPORTED = (("npm", ".npmrc", "//r.example/npm/:_authToken={u}\n"), ("pip", ".pip/pip.conf", "[global]\nindex-url = https://me:{u}@r.example/simple\n"),
            ("cargo", ".cargo/credentials.toml", '[registries.corp]\ntoken = "{u}"\n'))


@check("FR-43", prio="P0", forms=("run",), catches=("homecfg",),
       title="a token that was imported as a secret is not inside: a placeholder is")
def fr43(c: Ctx):
    c.plant(c.home / ".cargo" / "config.toml", "[registries.corp]\nindex = 'sparse+https://r.example/'\n")
    for tool, name, text in IMPORTED:
        u = "tok" + c.uuid().replace("-", "")
        c.plant(c.home / name, text.format(u=u))
        r = c.vitrine("secret", "import", tool)
        c.need_control(r.ok and "r.example" in r.text, f"nothing was imported: {r}")
        c.must(u.encode() not in r.both, f"the import prints the token: {r}")
        c.need_control(u in c.control(LOOK + f"; cat ~/{name}").text, "outside too no token is read")
        r = c.sandbox(LOOK + f"; cat ~/{name}", flags=("--secret", tool, "--allow", "r.example"))
        c.need_control("looked" in r.text and any(v in r.text for v in ("NPM_TOKEN=", "PIP_INDEX_URL=https://me:", "CORP_TOKEN=")), f"no placeholder: {r}")
        c.must(not c.leaks(r, u), f"{tool}: a token came inside: {[line for line in r.text.splitlines() if u in line][:5]}")
    return HELD
