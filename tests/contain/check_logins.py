# SPDX-License-Identifier: Apache-2.0
"""PX - what a server that understands too much gives away: endpoints of logins, secrets in answers, git without its protocol.

The far side is forgiving.js: it takes every spelling of a path for the plain one, sends whatever it is asked to, and remembers
what it was sent. Everything is asked over HTTP/1.1 and over HTTP/2 (asker.js). The oracle is what came inside, and what the far
side was asked."""

import base64
import itertools
import json
import re
import shutil
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, unquote

sys.path.append(str(Path(__file__).resolve().parent.parent / "cli"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import internet  # noqa: E402
from harness import HELD, check  # noqa: E402
from internet import OWN4, Internet  # noqa: E402
from seal_upstream import make_certs  # noqa: E402

HERE = Path(__file__).resolve().parent
RUN = ("run",)
VERSIONS = ("1", "2")
SECRET = "sk-proj-0123456789abcdefABCDEF0123456789"
NEXT = "sk-proj-abcdefABCDEF01234567890123456789"
# name: how its tokens look; the endpoints; requests below the same prefixes that the agent makes; others that nobody makes.
LOGINS = {
    "claude-login": ("sk-ant-oat01-" + "Gh6" * 20,
                     ["platform.claude.com/v1/oauth/token", "console.anthropic.com/v1/oauth/token",
                      "api.anthropic.com/api/oauth/claude_cli/create_api_key"],
                     [("GET", "api.anthropic.com/api/oauth/profile"), ("GET", "api.anthropic.com/api/oauth/claude_cli/roles")],
                     [("POST", "api.anthropic.com/api/oauth/claude_cli/create_key"), ("GET", "platform.claude.com/v1/oauth/keys"),
                      ("GET", "platform.claude.com/v1/oauth/token"), ("DELETE", "api.anthropic.com/api/oauth/profile")]),
    "codex-login": ("sk-proj-" + "Jk7" * 20, ["auth.openai.com/oauth/token"],
                    [("POST", "auth.openai.com/api/accounts/deviceauth/usercode")],
                    [("POST", "auth.openai.com/oauth/tokens"), ("GET", "auth.openai.com/oauth/token"),
                     ("POST", "auth.openai.com/api/accounts/keys")]),
    "gemini-login": ("ya29." + "Np9" * 20, ["oauth2.googleapis.com/token", "www.googleapis.com/oauth2/v4/token"],
                     [("GET", "www.googleapis.com/oauth2/v2/userinfo")],
                     [("POST", "www.googleapis.com/oauth2/v3/token"), ("GET", "oauth2.googleapis.com/token"),
                      ("POST", "oauth2.googleapis.com/device/code/x")]),
    "copilot-login": ("gho_" + "Qr1" * 12, ["github.com/login/oauth/access_token"], [("POST", "github.com/login/device/code")],
                      [("GET", "github.com/login/oauth/access_token"), ("POST", "github.com/login/oauth/other"),
                       ("GET", "api.github.com/copilot_internal/v2/token"), ("GET", "api.github.com/copilot_internal%2Fv2/token")]),
}


class World:
    def __init__(self, c, token, endpoints):
        self.c, self.token = c, token
        self.dir = c.root / "far"
        self.dir.mkdir(mode=0o755)
        make_certs(self.dir)
        (self.dir / "asked").touch()
        self.trust = {"SSL_CERT_FILE": str(self.dir / "trust.pem"), "NODE_EXTRA_CA_CERTS": str(self.dir / "trust.pem")}
        self.p = subprocess.Popen(["node", HERE / "forgiving.js", self.dir, OWN4, "443", token,
                                   *[e[e.index("/"):] for e in endpoints]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.p.stdout.readline() != "up\n":
            c.inconclusive("the far server does not come up")

    def asked(self, keep=False):
        found = [json.loads(line) for line in (self.dir / "asked").read_text().splitlines()]
        if not keep:
            (self.dir / "asked").write_text("")
        return found

    def end(self):
        self.p.stdin.close()
        self.p.wait(10)


@contextmanager
def far(c):
    """The internet, once for a check."""
    if not shutil.which("node"):
        c.inconclusive("no node")
    for _, ends, pages, others in LOGINS.values():
        for host in {e.split("/")[0] for e in [*ends, *[p for _, p in [*pages, *others]]]}:
            internet.NAMES[host] = [OWN4]
    net = Internet()
    try:
        yield
    finally:
        net.close()


@contextmanager
def served(c, name):
    """A far server that gives out the tokens of this login."""
    w = World(c, *LOGINS[name][:2])
    try:
        yield w
    finally:
        w.end()
        shutil.rmtree(w.dir)


@contextmanager
def world(c, name="claude-login"):
    with far(c), served(c, name) as w:
        yield w


def flags_for(w, name, *more):
    hosts = {x.split("/")[0] for x in LOGINS[name][1]} | {p.split("/")[0] for _, p in LOGINS[name][2] + LOGINS[name][3]}
    return [*itertools.chain(*[("--allow", h) for h in sorted(hosts)]), "--allow", f"{OWN4}/32", "--secret", name, *more]


def ask(c, w, version, asks, flags, timeout=60):
    """Each of asks (host, method, path, head, body) inside, over that version of HTTP: [{status, text}]."""
    c.plant(c.ws / "asker.js", (HERE / "asker.js").read_text())
    c.plant(c.ws / "asks", "\n".join(json.dumps(a) for a in asks))
    r = c.sandbox(["/usr/bin/node", "asker.js", version, "asks"], flags=flags, env=w.trust, timeout=timeout)
    got = [json.loads(line) for line in r.text.splitlines()]
    if len(got) != len(asks):
        c.inconclusive(f"not all was asked: {r}")
    return got


def split(place):
    host, _, path = place.partition("/")
    return host, "/" + path


# ------------------------------------------------------------------------------------------ spellings


def at_letter(path, i):
    ch, a, b = path[i], path[:i], path[i + 1:]
    code = f"{ord(ch):02X}"
    yield f"{a}%{code}{b}"
    yield f"{a}%{code.lower()}{b}"
    yield f"{a}%25{code}{b}"
    if ch.isalpha():
        yield a + ch.swapcase() + b
    # What Unicode folds to the letter, and an encoding of it that is too long.
    for odd in (chr(ord(ch) + 0xfee0), {"k": "\u212a", "s": "\u017f"}.get(ch, "")):
        if odd:
            yield a + quote(odd) + b
    yield f"{a}%C{0 | ord(ch) >> 6:X}%{0x80 | ord(ch) & 0x3f:02X}{b}"
    if ch == "/":
        for s in ("//", "///", "/./", "/x/../", "/%2e/", "/%2E%2E/x/../", "/x/%2e%2e/", "/.;/", ";a=b/", "\\", "%5c", "%2f%2f", "/;x/", "/%252e/",
                  "./", "%20/", "/%20", ".%20/"):
            yield a + s + b


ENDS = ("", "/", "//", "/.", "/./", ";x", ";a=b;c", "%2f", "?", "?a=/b", "/x/..", "/%2e", "%2F.", "\\", "/;", ".", "%20")


def spellings(path, most=540):
    """Ways to write the path anew, each different from it, in an order that has all kinds near the front."""
    once = [s for i in range(len(path)) for s in at_letter(path, i)]
    found = dict.fromkeys(once + [path + e for e in ENDS if e and not e.startswith("?")])
    for k, (s, e) in enumerate(itertools.product(once, ENDS)):
        if len(found) >= most * 3:
            break
        found[s + e] = None
    for i, j in itertools.combinations(range(0, len(path), 2), 2):
        for a in at_letter(path, j):
            for b in at_letter(a, i):
                if len(found) >= most * 4:
                    break
                found[b] = None
    every = [s for s in found if s.split("?")[0] != path]
    return every[::max(1, len(every) // most)][:max(most, 500)]


def try_spellings(c, name):
    with world(c, name) as w:
        token, endpoints, _, _ = LOGINS[name]
        flags = flags_for(w, name)
        for version in VERSIONS:
            for place in endpoints:
                host, path = split(place)
                odd = spellings(path)
                c.need_control(len(set(odd)) >= 500, f"only {len(odd)} spellings of {place}")
                asks = [[host, "POST", p, {"Content-Type": "application/json"}, "{}"] for p in odd]
                asks += [[host, m, path, {}, None] for m in ("GET", "HEAD", "OPTIONS", "SEARCH", "get", "GETS")]
                asks += [[host, m, path, {"Content-Type": "application/json"}, "{}"] for m in ("GET", "PUT", "PATCH", "DELETE", "QUERY", "post")]
                if version == "1":
                    asks += [[host, "POST", f"https://{host}{path}", {}, "{}"], [host, "POST", f"HTTPS://{host}/{path}", {}, "{}"]]
                plain = [[host, "POST", path, {"Content-Type": "application/json"}, "{}"], [host, "POST", path + "?a=b", {}, "{}"]]
                got = ask(c, w, version, asks + plain, flags, timeout=100)
                inside = [(a[1:3], g) for a, g in zip(asks + plain, got) if token in g["text"]]
                c.must(not inside, f"HTTP/{version}: a token came inside: {inside[:2]}")
                asked = [q for q in w.asked() if q["is_endpoint"]]
                others = [(q["method"], q["path"]) for q in asked if (q["method"], q["path"].split("?")[0]) != ("POST", path)]
                c.must(not others, f"HTTP/{version}: reached the endpoint: {others[:3]}")
                c.need_control(len(asked) == 2 and all(q["version"] == version for q in asked),
                               f"HTTP/{version}: the plain request does not work: {got[-2:]} {asked}")
                c.need_control(all(token[:4] in g["text"] and g["status"] == 200 for g in got[-2:]), f"no placeholder: {got[-2:]}")
    return HELD


@check("PX-43", prio="P0", title="no spelling of an endpoint of Claude's login gives a token", forms=RUN, idents=("user",), timeout=400.0)
def px43(c):
    return try_spellings(c, "claude-login")


@check("PX-44", prio="P0", title="no spelling of the endpoint of Codex's login gives a token", forms=RUN, catches=("seal-canonical",), timeout=200.0)
def px44(c):
    return try_spellings(c, "codex-login")


@check("PX-45", prio="P0", title="no spelling of an endpoint of Gemini's login gives a token", forms=RUN, idents=("user",), timeout=300.0)
def px45(c):
    return try_spellings(c, "gemini-login")


@check("PX-46", prio="P0", title="no spelling of the endpoint of Copilot's login gives a token", forms=RUN, idents=("user",), timeout=200.0)
def px46(c):
    return try_spellings(c, "copilot-login")


# ------------------------------------------------------------------------------------------ logins


@check("PX-47", prio="P0", title="where a login lives only the requests that its agent is known to make pass", forms=RUN, idents=("user",),
       catches=("seal-login",), timeout=200.0)
def px47(c):
    with far(c):
        for name, version in itertools.product(LOGINS, VERSIONS):
            with served(c, name) as w:
                _, _, pages, others = LOGINS[name]
                known = [[*split(p)[:1], m, split(p)[1], {}, "{}" if m == "POST" else None] for m, p in pages]
                odd = [[*split(p)[:1], m, split(p)[1], {}, "{}" if m == "POST" else None] for m, p in others]
                got = ask(c, w, version, known + odd, flags_for(w, name))
                paths = [q["path"] for q in w.asked()]
                c.must(sorted(paths) == sorted(a[2] for a in known), f"{name}, HTTP/{version}: asked for {paths}: {got}")
                c.must(all(g["status"] in (400, 403) for g in got[len(known):]), f"not refused: {got}")
    return HELD


T = '{"a":[{"b":"{T}"}]}'
# What an answer of the endpoint can look like: the token in any status, field, interim answer, nesting and key.
PLAYS = [
    {"status": 400, "body": '{"error":"{T}"}'}, {"status": 500, "body": "oops {T}"}, {"status": 201, "body": T}, {"status": 302, "head": {"location": "/?t={T}"}, "body": ""},
    {"head": {"x-token": "{T}"}, "body": "{}"}, {"head": {"set-cookie": "s={T}; Path=/"}, "body": "{}"}, {"early": {"link": "</{T}>; rel=preload"}, "body": "{}"},
    {"trailers": {"x-token": "{T}"}, "body": "{}"}, {"body": '{"x":"{\\"access_token\\":\\"{T}\\"}"}'}, {"body": '{"x":{"y":[[{"other_name":"{T}"}]]}}'},
    {"body": '"{T}"'}, {"body": "access_token={T}&token_type=bearer"}, {"body": '{"access_token":"{T}"'}, {"body": "{T}", "type": "text/html"},
    {"body": '{"access_token":"{T}"}', "pieces": 3}, {"body": '{"access_token":"{T}"}', "cut": 40}, {"body": '{"url":"https://x/?t={T}"}'},
    {"body": 'data: {"access_token":"{T}"}\n\n', "type": "text/event-stream"}, {"status": 206, "body": T, "head": {"content-range": "bytes 0-9/10"}},
    {"body": T, "coding": "gzip", "head": {"content-encoding": "gzip"}}, {"body": '{"{T}":1}'},
    # Escapes, other letters, two types, parts, and an end inside the token.
    {"body": '{"u":"see {TJ}"}'}, {"body": '{"access_token":"{TJ}"}'}, {"status": 400, "body": '{"u":"/?t={TU}"}'}, {"status": 302, "head": {"location": "/?t={TU}"}, "body": ""},
    {"status": 500, "body": "oops {T}", "wide": "said"}, {"status": 500, "body": "oops {T}", "wide": "silent"}, {"status": 500, "body": "{TU}", "type": "text/html"},
    {"body": '--x\r\nContent-Type: application/json\r\n\r\n{"access_token":"{T}"}\r\n--x--', "type": "multipart/mixed; boundary=x"},
]


def plain(text):
    """The text, and what a reader makes of it who knows escapes, of JSON and of addresses, and wide letters."""
    found = [text, text.replace("\0", "")]
    for _ in range(3):
        found.append(re.sub(r"\\u([0-9a-fA-F]{4})", lambda m: chr(int(m[1], 16)), found[-1]).replace("\\/", "/").replace("\\\\", "\\"))
        found.append(unquote(found[-1]))
    return "\n".join(found)


@check("PX-48", prio="P0", title="a login's token comes inside in no status, field, interim answer, trailer, nesting or key", forms=RUN,
       idents=("user",), catches=("seal-login", "seal-escape"), timeout=200.0)
def px48(c):
    with far(c):
        for name, version in itertools.product(LOGINS, VERSIONS):
            with served(c, name) as w:
                host, path = split(LOGINS[name][1][0])
                asks = [[host, "POST", path, {"x-play": json.dumps(p)}, "{}"] for p in PLAYS]
                got = ask(c, w, version, asks, flags_for(w, name))
                asked = w.asked()
                c.need_control(len(asked) == len(PLAYS), f"not all reached the endpoint: {len(asked)}: {got}")
                inside = [(p, g) for p, g in zip(PLAYS, got) if w.token in plain(g["text"]) or w.token[len(w.token) // 2:] in plain(g["text"])]
                c.must(not inside, f"{name}, HTTP/{version}: {inside[:2]}")
    return HELD


CLOSED_HOSTS = {"oauth2.googleapis.com"}  # all of it is a login's


@check("PX-49", prio="P1", title="another JSON answer of a login's host with a token in it is refused; models' words, streams and packs pass as they are",
       forms=RUN, idents=("user",), catches=("seal-watch",), timeout=200.0)
def px49(c):
    """Models write what looks like a token: such texts come through whole."""
    with far(c):
        with served(c, "claude-login") as w:
            host = "api.anthropic.com"
            flags = flags_for(w, "claude-login")
            stream = "".join(f"data: {json.dumps({'text': 'sk-ant-api03-' + 'Ab1' * n})}\n\n" for n in range(40))
            whole = [("/v1/messages", {"body": T, "type": "application/json"}), ("/v1/messages", {"body": stream, "type": "text/event-stream", "pieces": 700}),
                     ("/pack", {"body": "PACK{T}" + "\x00\xff" * 500, "type": "application/x-git-upload-pack-result"}),
                     ("/page", {"body": "<b>{T}</b>", "type": "text/html"}),
                     ("/api/x", {"body": '{"say":"a key begins with sk-ant-api03-..."}', "type": "application/json"})]
            closed = [("/api/x", {"body": T, "type": "application/json"}), ("/api/x", {"body": T, "type": "application/problem+JSON"}),
                      ("/api/oauth/profile", {"body": T, "type": "text/json; charset=x"}), ("/api/x", {"body": '{"u":"https://h/?k={T}"}', "type": "application/json"}),
                      ("/api/x", {"body": T, "type": "application/json", "pieces": 5}), ("/api/x", {"head": {"x-t": "{T}"}, "body": "x"}),
                      ("/api/x", {"body": '{"a":"{TJ}"}', "type": "application/json"}), ("/api/x", {"body": '{"u":"/?k={TU}"}', "type": "application/json"}),
                      ("/api/x", {"body": "access_token={T}", "type": "application/x-www-form-urlencoded"}), ("/api/x", {"head": {"location": "/?k={TU}"}, "body": "x"}),
                      ("/api/x", {"body": "--x\r\n\r\n" + T, "type": "multipart/mixed; boundary=x"}), ("/v1/environments/bridge", {"body": T, "type": "application/json"}),
                      ("/v1/code/sessions/s1/bridge", {"body": T, "type": "application/json"}), ("/api/x", {"body": '{"a":"{T}', "cut": 24, "type": "application/json"})]
            for version in VERSIONS:
                got = ask(c, w, version, [[host, "GET", p, {"x-play": json.dumps(q)}, None] for p, q in whole + closed], flags)
                for (p, q), g in zip(whole, got):
                    want = q["body"].replace("{T}", w.token)
                    text = g["text"].partition("\r\n\r\n" if version == "1" else "\n")[2]
                    if "chunked" in g["text"].partition("\r\n\r\n")[0].lower():
                        text = re.sub(r"(?:^|\r\n)[0-9a-f]+\r\n", "", text).removesuffix("\r\n")
                    c.must(g["status"] == 200 and text == want, f"HTTP/{version}: {p} was touched: {text[:300]!r}")
                inside = [(p, g) for (p, _), g in zip(closed, got[len(whole):]) if w.token in plain(g["text"]) or w.token[:14] in plain(g["text"])]
                c.must(not inside, f"HTTP/{version}: a token in another answer: {inside[:2]}")
                c.need_control(len(w.asked()) == len(whole) + len(closed), "not all was asked")
            log = c.vitrine("events", "--json").text
            c.must("begins like a token" in log and w.token not in log, "the refusal is not on record, or the token is")
        for name, version in itertools.product([n for n in LOGINS if n != "claude-login"], VERSIONS):
            with served(c, name) as w:
                asks = [[h, "GET", "/somewhere/x", {"x-play": json.dumps(q)}, None] for h in sorted({split(e)[0] for e in LOGINS[name][1]} - CLOSED_HOSTS)
                        for p, q in closed if p == "/api/x"]
                got = ask(c, w, version, [*asks, [asks[0][0], "GET", "/somewhere/y", {"x-play": json.dumps(whole[3][1])}, None]], flags_for(w, name))
                inside = [(a[3], g) for a, g in zip(asks, got) if w.token in plain(g["text"]) or w.token[:14] in plain(g["text"])]
                c.must(not inside, f"{name}, HTTP/{version}: a token in another answer: {inside[:2]}")
                c.must(got[-1]["status"] == 200 and w.token in got[-1]["text"], f"{name}, HTTP/{version}: a page was touched: {got[-1]}")
                c.need_control(len(w.asked()) == len(asks) + 1, f"{name}, HTTP/{version}: not all was asked")
    return HELD


# ------------------------------------------------------------------------------------------ secrets


OWN = ["--allow", "own.test", "--allow", f"{OWN4}/32"]


def set_secret(c, w, *words, stdin=SECRET, name="mine"):
    r = c.vitrine("secret", "set", name, "--env", "MY_KEY", "--host", "own.test", *words, stdin=stdin, env=w.trust)
    c.need_control(r.ok, f"no secret: {r}")


def holder(c, w, flags):
    return c.sandbox("echo $MY_KEY", flags=flags, env=w.trust).text.strip()


ASKED_FOR = {"Accept-Encoding": "gzip, br, deflate", "Range": "bytes=0-9", "If-Range": "x", "A-IM": "feed", "TE": "gzip", "Accept-Charset": "utf-16"}
# Forms that nobody asked for: each would hide a value from who masks it.
UNASKED = [{"head": {"content-encoding": "gzip"}, "coding": "gzip"}, {"head": {"content-encoding": "x-gzip"}, "coding": "gzip"},
           {"head": {"content-encoding": "identity, gzip"}}, {"status": 206}, {"status": 206, "head": {"content-range": "bytes 0-9/99"}},
           {"status": 200, "head": {"content-range": "bytes 0-9/99"}}, {"status": 226}, {"wide": "said"}]
UPGRADE = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version": "13"}


@check("PX-50", prio="P0", title="on a secret's host no compression, range or extension is asked for, and none that comes is passed on", forms=RUN,
       catches=("seal-form",), timeout=120.0)
def px50(c):
    with world(c) as w:
        set_secret(c, w)
        flags = ["--name", "px50", *OWN, "--secret", "mine"]
        key = holder(c, w, flags)
        for version in VERSIONS:
            wanted = ASKED_FOR if version == "1" else {k: v for k, v in ASKED_FOR.items() if k != "TE"}
            asks = [["own.test", "GET", "/a", wanted, None], ["own.test", "POST", "/b", {**wanted, "x-api-key": key}, "x"]]
            asks += [["own.test", "GET", "/c", {"x-api-key": key, "x-play": json.dumps({"body": "value {S}", **q})}, None] for q in UNASKED]
            if version == "1":
                asks += [["own.test", "GET", "/ws", {**UPGRADE, "Sec-WebSocket-Extensions": "permessage-deflate"}, None],
                         ["own.test", "GET", "/ws2", {**UPGRADE, "x-play": json.dumps({"head": {"Sec-WebSocket-Extensions": "permessage-deflate"}})}, None]]
            got = ask(c, w, version, asks, flags)
            asked = w.asked()
            c.need_control(len(asked) == len(asks) and any(q["head"].get("x-api-key") == SECRET for q in asked), f"not all was asked: {got}")
            for q in asked:
                h = q["head"]
                bad = {k: h[k] for k in ("range", "if-range", "a-im", "te", "accept-charset", "sec-websocket-extensions") if k in h}
                c.must(h.get("accept-encoding") == "identity" and not bad, f"HTTP/{version}: negotiated: {h.get('accept-encoding')} {bad}")
            odd = [g for a, g in zip(asks, got) if a[2] in ("/c", "/ws2")]
            c.must(all(g["status"] == 502 for g in odd), f"HTTP/{version}: passed on: {[g for g in odd if g['status'] != 502][:2]}")
            c.must(not [g for g in got if SECRET in g["text"]], "it came back")
    short = c.vitrine("secret", "set", "short", "--env", "K", "--host", "own.test", stdin="1234567")
    c.must(not short.ok and "8" in short.text + short.errtext, f"a value that cannot be masked was taken: {short}")
    return HELD


DUMB = ["/you/app.git/HEAD", "/you/app.git/info/refs", "/you/app.git/objects/info/packs", "/you/app.git/objects/pack/pack-1.pack", "/you/app.git/packed-refs",
        "/me/app.git/objects/01/2345", "/me/app.git/info/refs?service=git-upload-archive", "/me/app.git/HEAD", "/me/app.git/config", "/pages/../you/app.git/HEAD"]


@check("PX-51", prio="P0", title="git rules: no spelling of the dumb protocol or of another repository is passed on", forms=RUN, idents=("user",),
       catches=("seal-git",), timeout=200.0)
def px51(c):
    with world(c) as w:
        flags = ["--allow", f"{OWN4}/32", "--git-fetch", "own.test/me/*", "--allow", "GET own.test/pages/**"]
        fine = ["/me/app.git/info/refs?service=git-upload-pack", "/me/app/info/refs?service=git-upload-pack", "/pages/a/b"]
        odd = [s for d in DUMB for s in spellings(d, 60)[:60]] + DUMB
        odd += [s + q for s in spellings("/you/app.git/info/refs", 120) for q in ("?service=git-upload-pack", "")]
        odd = [s for s in odd if not s.lower().startswith("/pages/a")]
        for version in VERSIONS:
            got = ask(c, w, version, [["own.test", "GET", p, {}, None] for p in fine + odd], flags, timeout=80)
            asked = [q["path"] for q in w.asked()]
            c.need_control(set(fine) <= set(asked), f"HTTP/{version}: what is listed does not pass: {got[:3]}")
            more = sorted(set(asked) - set(fine))
            c.must(not more, f"HTTP/{version}: passed on: {more[:4]}")
    return HELD


def came_back(texts, *values):
    """Of any of the values, as it is or within Basic, more than its first three letters."""
    forms = list(values)
    for v in values:
        for before in ("", ":", "::"):
            forms.append(base64.b64encode((before + v).encode()).decode()[4:-4])
    return [t for t in texts for f in forms if f in t]


# The tell of a long answer: another request makes the far side say there what it was sent since.
@check("PX-52", prio="P0", title="every value that a secret had stays masked: rotated, stored by one request and fetched by another, in an answer that began before",
       forms=RUN, idents=("user",), catches=("seal-former", "seal-mask"), timeout=150.0)
def px52(c):
    with world(c) as w:
        file = c.plant(c.home / "key", SECRET)
        set_secret(c, w, "--from-file", str(file), stdin=None)
        flags = [*OWN, "--secret", "mine"]
        box = c.keeper(flags, env=w.trust, command=["sh", "-c", "echo key $MY_KEY; exec sleep 120"])
        c.need_control(box.wait_for("key "), f"no placeholder: {box.err!r}")
        key = re.search(rb"key (\S+)", box.out)[1].decode()
        basic = lambda user: "Basic " + base64.b64encode(f"{user}:{key}".encode()).decode()
        c.plant(c.ws / "asker.js", (HERE / "asker.js").read_text())

        def asks(version, *all_of, tag=""):
            file = c.plant(c.ws / f"asks{tag}{version}", "\n".join(json.dumps(a) for a in all_of))
            r = c.vitrine("exec", box.name, "--", "env", "LANES=1", "IDLE=30000", "/usr/bin/node", str(c.ws / "asker.js"), version, str(file),
                          env=w.trust, timeout=40)
            got = [json.loads(x) for x in r.text.splitlines()]
            c.need_control(len(got) == len(all_of), f"not all was asked: {r}")
            return [g["text"] for g in got]

        def get(path, play=None, **head):
            return ["own.test", "GET", path, {**head, **({"x-play": json.dumps(play)} if play else {})}, None]

        every = {"body": "newest {S} oldest {O} basic {B} first {P} end", "head": {"x-a": "{S} {O} {B} {P}"}, "trailers": {"x-b": "{O} {P}"}}
        texts = []
        for version in VERSIONS:
            for user in ("m", "me", "mee"):
                texts += asks(version, get("/store", **{"x-api-key": key, "Authorization": basic(user)}), get("/fetch", every), get("/fetch", {**every, "pieces": 3}))
        c.need_control(SECRET in {q["head"].get("x-api-key") for q in w.asked()}, f"it was not sent: {texts[:1]}")
        c.must(not came_back(texts, SECRET), f"came back: {came_back(texts, SECRET)[:2]}")
        # Answers that began before the value changed, and go on when it was sent.
        late = [threading.Thread(target=lambda v=v: texts.extend(asks(v, get(f"/hold{v}", {"hold": 1}), tag="held"))) for v in VERSIONS]
        for x in late:
            x.start()
        end = time.monotonic() + 15
        while sum(q["path"].startswith("/hold") for q in w.asked(keep=True)) < 2 and time.monotonic() < end:
            time.sleep(0.1)
        with c.host_edit():
            file.write_text(NEXT)
        end = time.monotonic() + 15
        while time.monotonic() < end:
            texts += asks("1", get("/use", **{"x-api-key": key, "Authorization": basic("me")}))
            if NEXT in {q["head"].get("x-api-key") for q in w.asked()}:
                break
            time.sleep(0.3)
        else:
            c.inconclusive("the new value was never used")
        before = len(texts)
        texts += asks("1", get("/tell", {"tell": "said {S} {O} {B} {P} end"}))
        for x in late:
            x.join(30)
        c.need_control(sum("said " in x for x in texts[before:]) == 2, f"the long answers did not go on: {texts[before:]}")
        for version in VERSIONS:
            texts += asks(version, get("/fetch", every), get("/fetch", {**every, "pieces": 2}), get("/fetch", {**every, "status": 404}))
        c.must(not came_back(texts, SECRET, NEXT), f"came back: {came_back(texts, SECRET, NEXT)[:2]}")
        box.stop()
    return HELD


@check("PX-53", prio="P0", title="a value is masked across fragments of WebSocket, and where an answer or a message ends inside it", forms=RUN,
       idents=("user",), catches=("seal-frames", "seal-cut"), timeout=120.0)
def px53(c):
    with world(c) as w:
        set_secret(c, w)
        flags = ["--name", "px53", *OWN, "--secret", "mine"]
        key = holder(c, w, flags)
        n = len(SECRET)
        store = ["own.test", "GET", "/store", {"x-api-key": key}, None]
        ws = [["own.test", "GET", "/ws", {**UPGRADE, "x-play": json.dumps({"body": "a {S} b", "pieces": k, **more})}, None]
              for k in (1, 2, 3, 7, 20, 60) for more in ({}, {"ping": 1}, {"cut": 1})]
        ends = [["own.test", "GET", "/cut", {"x-play": json.dumps({"body": "{S}", "cut": k, **more})}, None]
                for k in (8, 20, n - 1) for more in ({}, {"pieces": 1})]
        ends += [["own.test", "GET", "/end", {"x-play": json.dumps({"body": "{S}", "pieces": k})}, None] for k in (1, 5)]
        for version in VERSIONS:
            got = ask(c, w, version, [store], flags) + ask(c, w, version, ends + (ws if version == "1" else []), flags)
            c.need_control(any(q["head"].get("x-api-key") == SECRET for q in w.asked()), f"it was not sent: {got[:1]}")
            for g in got:
                text = re.sub(r"[\x00-\x1f\x80-\x8f]|\r\n[0-9a-f]+\r\n", "", g["text"])
                longest = max((k for k in range(4, n + 1) for s in range(0, n - k + 1, 4) if SECRET[s:s + k] in text and SECRET[s:s + k] not in key), default=0)
                c.must(longest < 9, f"HTTP/{version}: {longest} letters of it came back: {g['text'][-200:]!r}")
            c.need_control(version == "2" or all(g["status"] == 101 for g in got[1 + len(ends):]), f"no WebSocket: {got[-1]}")
    return HELD


# ------------------------------------------------------------------------------------------ the same, said beside the path


@check("PX-54", prio="P0", title="no field that means another method, path, host or framing to a server goes with a request that was judged", forms=RUN,
       idents=("user",), catches=("seal-override",), timeout=120.0)
def px54(c):
    """The far side believes such fields. Of a login's host, and of a host with a rule for a path."""
    with world(c) as w:
        host, path = split(LOGINS["claude-login"][1][2])
        page = "/api/oauth/profile"
        fields = {"X-Original-URL": path, "X-Rewrite-URL": path, "X-Forwarded-Uri": path, "X_Original_URL": path, "X-HTTP-Method-Override": "POST",
                  "x-http-method": "POST", "X-Method-Override": "POST", "X_HTTP_Method_Override": "POST", "X-Forwarded-Host": "evil.test",
                  "Forwarded": "host=evil.test", "X-Host": "evil.test", "X-Original-Host": "evil.test"}
        framing = [[host, "POST", "/v1/messages", {"Transfer_Encoding": "chunked"}, "{}"], [host, "POST", "/v1/messages", {"Content_Length": "0"}, "{}"]]
        for version in VERSIONS:
            asks = [[host, "GET", page, {k: v}, None] for k, v in fields.items()] + framing
            got = ask(c, w, version, [*asks, [host, "GET", page, {"X-Other": path}, None]], flags_for(w, "claude-login"))
            asked = w.asked()
            c.must(not [q for q in asked if q["is_endpoint"] or q.get("other") or "transfer_encoding" in q["head"] or "content_length" in q["head"]],
                   f"HTTP/{version}: it arrived: {[(q['path'], q['head']) for q in asked][:2]}")
            c.must(not [g for g in got if w.token in g["text"]], f"HTTP/{version}: a token: {got}")
            c.must(all(g["status"] == 400 for g in got[:-1]), f"HTTP/{version}: not refused: {[g for g in got[:-1] if g['status'] != 400][:2]}")
            c.need_control([q["path"] for q in asked] == [page], f"HTTP/{version}: an ordinary request does not pass: {asked}")
            flags = ["--allow", f"{OWN4}/32", "--allow", "GET own.test/pages/**"]
            got = ask(c, w, version, [["own.test", "GET", "/pages/a", {k: v}, None] for k, v in fields.items()] + [["own.test", "GET", "/pages/b", {}, None]], flags)
            c.must([q["path"] for q in w.asked()] == ["/pages/b"], f"HTTP/{version}: where a rule names a path: {got[:2]}")
    return HELD


SLASHED = "1//0real+Secret/value=0123456789abc"


@check("PX-55", prio="P0", title="a value with a slash is masked as addresses and JSON write it, and where a field or a control frame ends inside it", forms=RUN,
       idents=("user",), catches=("seal-writing", "seal-cut"), timeout=90.0)
def px55(c):
    with world(c) as w:
        set_secret(c, w, stdin=SLASHED)
        flags = ["--name", "px55", *OWN, "--secret", "mine"]
        key = holder(c, w, flags)
        plays = [{"head": {"location": "/?t={SU}"}, "status": 302}, {"body": '{"t":"{SJ}"}'}, {"body": "t={SU}&x", "pieces": 3}, {"body": '{"t":"{SJ}"}', "pieces": 2},
                 {"head": {"x-cut": SLASHED[:-1]}}, {"body": SLASHED[:-3]}]
        ping = [["own.test", "GET", "/ws", {**UPGRADE, "x-play": json.dumps({"body": "fine", "ping": SLASHED[:-1]})}, None]]
        for version in VERSIONS:
            got = ask(c, w, version, [["own.test", "GET", "/store", {"x-api-key": key}, None]], flags)
            c.need_control(any(q["head"].get("x-api-key") == SLASHED for q in w.asked()), f"it was not sent: {got}")
            asks = [["own.test", "GET", "/fetch", {"x-play": json.dumps(p)}, None] for p in plays] + (ping if version == "1" else [])
            got = ask(c, w, version, asks, flags)
            c.need_control(all(g["status"] in (200, 302, 101) for g in got), f"not answered: {got}")
            for a, g in zip(asks, got):
                text = plain(re.sub(r"\r\n[0-9a-f]+\r\n", "", g["text"]))
                c.must("Secret" not in text and "value=0123" not in text, f"HTTP/{version}: {a[3]}: {g['text'][-300:]!r}")
    return HELD


@check("PX-56", prio="P0", title="a value that changes to one of another length is put into bodies of requests whole, with the right length, or the request is refused",
       forms=RUN, idents=("user",), catches=("seal-length",), timeout=120.0)
def px56(c):
    """Never does the far side get the placeholder, which it would take for the value."""
    with world(c) as w:
        file = c.plant(c.home / "key", SECRET)
        set_secret(c, w, "--from-file", str(file), "--in", "body", stdin=None)
        box = c.keeper([*OWN, "--secret", "mine"], env=w.trust, command=["sh", "-c", "echo key $MY_KEY; exec sleep 120"])
        c.need_control(box.wait_for("key "), f"no placeholder: {box.err!r}")
        key = re.search(rb"key (\S+)", box.out)[1].decode()
        c.plant(c.ws / "asker.js", (HERE / "asker.js").read_text())

        def post(version, body, **head):
            asks = c.plant(c.ws / f"asks{version}", json.dumps(["own.test", "POST", "/store", {"Content-Type": "text/plain", **head}, body]))
            r = c.vitrine("exec", box.name, "--", "/usr/bin/node", str(c.ws / "asker.js"), version, str(asks), env=w.trust, timeout=40)
            c.need_control(r.ok and r.text, f"not asked: {r}")
            return json.loads(r.text.splitlines()[0]), [q for q in w.asked() if q["path"] == "/store"]

        for value in (SECRET, "ghp_" + "Ab3" * 30, "short-0123"):
            with c.host_edit():
                file.write_text(value)
            end = time.monotonic() + 15
            while True:
                _, asked = post("1", f"a {key} b")
                if (asked and asked[0]["body"] == f"a {value} b") or time.monotonic() > end:
                    break
                time.sleep(0.3)
            for version in VERSIONS:
                for text in ("{k}", "one {k} two {k}", "x" * 200_000 + "{k}", "x" * 600_000 + "{k}"):
                    got, asked = post(version, text.replace("{k}", key))
                    want = text.replace("{k}", value)
                    c.must(not [q for q in asked if key in q["body"]], f"HTTP/{version}: the placeholder arrived for a value of {len(value)}")
                    swapped = got["status"] == 200 and [q["body"] for q in asked] == [want]
                    refused = got["status"] == 413 and "another length" in got["text"] and len(text) > 500_000 and len(value) != len(SECRET)
                    c.must(swapped or refused, f"HTTP/{version}: {len(value)} letters, {len(text)} of body: {got['status']} {got['text'][-200:]!r}")
                    length = asked[0]["head"].get("content-length") if asked else None
                    c.must(not swapped or length in (None, str(len(want))), f"HTTP/{version}: it is {len(want)} long, and said to be {length}")
        box.stop()
    return HELD
