#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs work inside as outside: test suites of Debian's sources on both sides of the walls. `make test-compat`.

    tests/compat.py [--quick] [--unit PATTERN] [--list] [SUITE ...]      git git-workspace libuv cpython go; nothing said: all

The sources come by `apt-get source` from the host's own mirrors, with an apt configuration that lies below build/compat;
the machine's lists of sources and packages are not touched. Each suite is built once, then the same commands run the
same tests outside, and inside a plain `vitrine run`. Results are compared test by test. What differs is run again on both
sides, so that a test that fails now and then does not count; then it is looked up in tests/compat.json, which holds the
differences that are meant and the reason for each. The list is printed.

The exit status is 1 where a difference is not in that file, and where a whole run of a suite found an entry of the file
that explains nothing any more ("sometimes" excuses it from that: whether a name is taken before the next command
looks is a race). Outside and inside an ordinary account runs the tests: root starts this script, and the
account is made and removed (tests/ground.py). An hour, two gigabytes, and a network; --quick takes a part of each suite.
"""

import argparse
import fnmatch
import json
import os
import pwd
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import ground  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
BASE = ROOT / "build" / "compat"
MEANT = ROOT / "tests" / "compat.json"
PATH = "/usr/local/bin:/usr/bin:/bin"
JOBS = os.cpu_count() or 1
# A unit that takes longer has hung; the whole of one side has a bound of its own.
UNIT_SECONDS, SIDE_SECONDS = 1800, 7200


def say(text):
    print(text, flush=True)


class Failed(Exception):
    """The suite could not be had, built or started."""


# ---------------------------------------------------------------------------------------------- commands


class Ground:
    """Who runs the tests, and where."""

    def __init__(self, program):
        self.program = program
        self.account = pwd.getpwnam(ground.TEST_USER) if os.geteuid() == 0 else None
        BASE.mkdir(parents=True, exist_ok=True)
        for name in ("home", "state", "config"):
            (BASE / name).mkdir(exist_ok=True)
        self.own(BASE)

    def own(self, path):
        if self.account:
            subprocess.run(["chown", "-R", "-h", f"{self.account.pw_uid}:{self.account.pw_gid}", str(path)], check=True)

    def env(self):
        """The same outside and inside: what `vitrine run` would pass, and nothing of the caller's own."""
        return {"PATH": PATH, "HOME": str(BASE / "home"), "LANG": "C.UTF-8", "SHELL": "/bin/sh", "TERM": "dumb",
                "USER": self.account.pw_name if self.account else os.environ.get("USER", "tester"),
                "XDG_STATE_HOME": str(BASE / "state"), "XDG_CONFIG_HOME": str(BASE / "config"),
                "APT_CONFIG": str(BASE / "apt" / "apt.conf")}

    def run(self, argv, cwd, log, seconds):
        """-> the exit status; the output is in log"""
        who = {"user": self.account.pw_uid, "group": self.account.pw_gid, "extra_groups": []} if self.account else {}
        with open(log, "ab") as out:
            p = subprocess.Popen([str(a) for a in argv], cwd=cwd, env=self.env(), stdin=subprocess.DEVNULL, stdout=out,
                                 stderr=subprocess.STDOUT, start_new_session=True, **who)
            try:
                return p.wait(timeout=seconds)
            except subprocess.TimeoutExpired:
                os.killpg(p.pid, 15)
                p.wait(timeout=30)
                raise Failed(f"{argv[0]} ran for more than {seconds} s; its output is in {log}") from None

    def must(self, script, cwd, log, seconds=1800):
        if self.run(["sh", "-ec", script], cwd, log, seconds) != 0:
            tail = Path(log).read_text(errors="replace").splitlines()[-15:]
            raise Failed("\n".join([f"'{script}' failed; the end of {log}:", *tail]))


# ---------------------------------------------------------------------------------------------- sources


def deb_src():
    """The host's own mirrors of the distribution, as sources of source packages."""
    said = []
    for f in sorted(Path("/etc/apt").glob("sources.list.d/*.sources")):
        for part in f.read_text().split("\n\n"):
            rows = [line for line in part.splitlines() if line and not line.startswith("#")]
            if any(re.match(r"URIs:.*/(debian|debian-security|ubuntu)/?\s*$", r) for r in rows):
                said.append("\n".join("Types: deb-src" if r.startswith("Types:") else r for r in rows) + "\n")
    for f in [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt").glob("sources.list.d/*.list"))]:
        for line in f.read_text().splitlines() if f.exists() else []:
            m = re.match(r"deb\s+(?:\[(.*)\]\s+)?(\S+/(?:debian|debian-security|ubuntu)/?)\s+(\S+)\s+(.+)", line)
            if m:
                signed = re.search(r"signed-by=(\S+)", m.group(1) or "")
                said.append(f"Types: deb-src\nURIs: {m.group(2)}\nSuites: {m.group(3)}\nComponents: {m.group(4)}\n" +
                            (f"Signed-By: {signed.group(1)}\n" if signed else ""))
    return "\n".join(said)


def prepare_apt(place):
    apt = BASE / "apt"
    for d in ("state/lists/partial", "cache/archives/partial", "parts"):
        (apt / d).mkdir(parents=True, exist_ok=True)
    sources = deb_src()
    if not sources:
        raise Failed("this host has no mirror of a distribution in /etc/apt that sources could come from")
    (apt / "parts" / "compat.sources").write_text(sources)
    (apt / "apt.conf").write_text(
        f'Dir::State "{apt}/state";\nDir::State::status "/var/lib/dpkg/status";\nDir::Cache "{apt}/cache";\n'
        f'Dir::Etc::SourceList "/dev/null";\nDir::Etc::SourceParts "{apt}/parts";\nAcquire::Languages "none";\n'
        f'Acquire::Retries "3";\n')
    place.own(apt)
    place.must("apt-get -q update", apt, BASE / "apt.log", 300)


# ---------------------------------------------------------------------------------------------- suites


def tap(text):
    """-> {test: result} of one program's lines in the Test Anything Protocol"""
    found, seen, planned, ran = {}, Counter(), None, 0
    for line in text.splitlines():
        if m := re.match(r"1\.\.(\d+)(?:\s+#\s*skip\s*(.*))?", line, re.I):
            planned = int(m.group(1))
            if planned == 0:
                return {"(all)": "skip"}
        if not (m := re.match(r"(ok|not ok) (\d+)(.*)", line)):
            continue
        ran += 1
        rest = m.group(3)
        result = "pass" if m.group(1) == "ok" else "fail"
        if skip := re.match(r"\s*(?:-\s*)?(.*?)#\s*skip\s*(.*)", rest, re.I):
            result, rest = "skip", skip.group(1).strip() or re.sub(r"\s*\(missing [^)]*\)$", "", skip.group(2))
        elif "# TODO known breakage" in rest:
            result, rest = ("known breakage" if result == "fail" else "pass"), rest.split("# TODO")[0]
        name = re.sub(r"^\s*-\s*", "", rest).strip() or m.group(2)
        seen[name] += 1
        found[name if seen[name] == 1 else f"{name} ({seen[name]})"] = result
    if planned is None or ran < planned:
        found["(ends as planned)"] = "fail"
    return found


class Suite:
    """One program's own tests. A unit is what is run by one command: a script, a module, a package."""
    tree_of = None  # another suite that has the same tree

    def parse(self, out):
        """-> {unit: {test: result}}"""
        return {f.stem: tap(f.read_text(errors="replace")) for f in sorted(out.glob("*.tap"))}

    @staticmethod
    def each(units, command):
        """The units by as many processes as there are processors; $1 is the unit, $OUT where results go."""
        listed = "\n".join(units)
        each = f"timeout -k 10 {UNIT_SECONDS} {command}; true"
        return f"xargs -P{JOBS} -n1 sh -c {shlex.quote(each)} sh <<'END'\n{listed}\nEND\n"


class Git(Suite):
    name, package = "git", "git"
    # Without what only later chapters of the suite need, so that no library has to be installed for it.
    make = "NO_CURL=1 NO_EXPAT=1 NO_TCLTK=1 NO_GETTEXT=1 NO_PERL_CPAN_FALLBACKS=1 CFLAGS=-O1"
    build = f"make -j{JOBS} {make} all && make -C t {make} clean-except-prove-cache"
    quick = ("t000[0-9]*", "t1300*", "t140[0-4]*", "t1450*", "t150*")

    def units(self, tree):
        return sorted(f.name for f in (tree / "t").glob("t[01][0-9][0-9][0-9]-*.sh") if f.name < "t16")

    def script(self, units):
        """With repositories in /tmp, which is the sandbox's own: what is made in the workspace is watched (GitWorkspace)."""
        return "cd t\n" + self.each(units, './"$1" --root="/tmp/compat-$1" >"$OUT/$1.tap" 2>&1; rm -rf "/tmp/compat-$1"')


class GitWorkspace(Git):
    """Scripts that write git's own configuration, with their repositories in the workspace."""
    name, tree_of = "git-workspace", "git"
    quick = ("t0002*", "t1501*")

    def units(self, tree):
        wanted = ("t0001-", "t0002-", "t0003-", "t0008-", "t1300-", "t1450-", "t1501-")
        return [u for u in super().units(tree) if u.startswith(wanted)]

    def script(self, units):
        return "cd t\n" + self.each(units, './"$1" >"$OUT/$1.tap" 2>&1')


class Libuv(Suite):
    name, package = "libuv", "libuv1"
    build = f"cmake -S . -B out -DBUILD_TESTING=ON -DCMAKE_BUILD_TYPE=Release && cmake --build out -j{JOBS}"
    quick = ("fs_*", "pipe_*", "process_*", "spawn_*", "tcp_*", "udp_*")

    def units(self, tree):
        # What it lists; as root the program refuses to say even that.
        listed = (tree / "test/test-list.h").read_text()
        compiled = (tree / "out/uv_run_tests_a").read_bytes()
        names = set(re.findall(r"^\s*TEST_ENTRY(?:_CUSTOM)?\s*\((\w+)", listed, re.M))
        return sorted(n for n in names if n.encode() + b"\0" in compiled)

    def script(self, units):
        # One at a time: they share port numbers.
        listed = "\n".join(units)
        return f'while read -r unit; do timeout -k 10 60 out/uv_run_tests_a "$unit" >"$OUT/$unit.tap" 2>&1; done <<\'END\'\n{listed}\nEND\n'

    def parse(self, out):
        found = {}
        for f in sorted(out.glob("*.tap")):
            text = f.read_text(errors="replace")
            m = re.search(r"^(ok|not ok) 1 - \S+(.*)$", text, re.M)
            result = "fail" if not m or m.group(1) == "not ok" else "skip" if "# SKIP" in m.group(2) else "pass"
            if "No test with that name" not in text:  # the list is of all systems
                found[f.stem] = {"test": result}
        return found


class Cpython(Suite):
    name, package = "cpython", "python3.11"
    build = f"./configure -q && make -s -j{JOBS}"
    # What meets the system: files, processes, sockets, signals, terminals, time. The others compute.
    chosen = """asyncio builtin concurrent_futures curses dbm devpoll ensurepip epoll exceptions faulthandler fcntl file
        fileio filecmp fileinput fork1 ftplib functools getpass gettext glob grp gzip httplib httpservers import imaplib
        io ioctl json kqueue largefile locale logging mailbox memoryio mimetypes mmap multiprocessing_fork
        multiprocessing_forkserver multiprocessing_spawn netrc nntplib ntpath openpty os pathlib pickle pipes platform poll
        popen poplib posix posixpath pty pwd pydoc readline regrtest resource runpy sched select selectors shelve shutil
        signal site smtplib smtpnet socket socketserver spwd sqlite3 ssl stat startfile strtod subprocess support sys
        sysconfig syslog tarfile telnetlib tempfile thread threadedtempfile threading threadsignals time timeout tools
        tty unicode_file unicode_file_functions urllib urllib2 urllib2_localnet urllib_response urllibnet uuid venv
        wait3 wait4 wsgiref xmlrpc zipapp zipfile zipfile64 zipimport zoneinfo""".split()
    quick = ("test_os", "test_posix", "test_socket", "test_subprocess", "test_signal", "test_shutil", "test_fcntl", "test_pty")

    def units(self, tree):
        return [f"test_{n}" for n in self.chosen
                if (tree / f"Lib/test/test_{n}.py").exists() or (tree / f"Lib/test/test_{n}/__init__.py").exists()]

    def script(self, units):
        return self.each(units, './python -m test -v --timeout 300 "$1" >"$OUT/$1.log" 2>&1')

    def parse(self, out):
        """From what unittest says (the XML of the module regrtest needs a library): failures are listed at the end, and
        whatever a test prints in between, "skipped" stands before the next one's name."""
        found = {}
        for log in sorted(out.glob("*.log")):
            unit, text = found.setdefault(log.stem, {}), log.read_text(errors="replace")
            names = list(re.finditer(r"^(\w+ \(test\.[\w.]+\))", text, re.M))
            for at, m in enumerate(names):
                said = text[m.end():names[at + 1].start() if at + 1 < len(names) else len(text)]
                is_skip = re.search(r"\.\.\. skipped |^skipped ", said.split("\n=====")[0], re.M)
                unit[m.group(1)] = "skip" if is_skip else "pass"
            for m in re.finditer(r"^(?:FAIL|ERROR): (\w+ \(test\.[\w.]+\))", text, re.M):
                unit[m.group(1)] = "fail"
            unit["(module)"] = "pass" if re.search(r"^(Tests result|Result): SUCCESS", text, re.M) else \
                "skip" if re.search(r"^test_\w+ skipped", text, re.M) else "fail"
        return found


class Go(Suite):
    name, package = "go", "golang-1.19"
    # The tree lies in a repository that is not Go's own, whose state Go would ask for: it gets one of its own.
    build = "git init -q . && cd src && GOROOT_BOOTSTRAP=/usr/lib/go-1.19 ./make.bash"
    chosen = """archive/tar archive/zip bufio crypto/rand crypto/tls crypto/x509 database/sql debug/elf embed errors
        internal/fuzz internal/poll internal/singleflight internal/syscall/unix io io/fs io/ioutil log log/syslog mime mime/multipart
        net net/http net/http/cgi net/http/httptest net/http/httputil net/netip net/rpc net/smtp os os/exec os/signal
        os/user path/filepath plugin runtime runtime/debug runtime/pprof runtime/trace sync syscall testing
        text/template time""".split()
    quick = ("os*", "net", "syscall", "time", "path*")

    def units(self, tree):
        return [p for p in self.chosen if (tree / "src" / p).is_dir()]

    def script(self, units):
        # -count=1: a result of the other side must not be taken from the cache.
        go = 'export GOROOT="$PWD" GOCACHE="$PWD/cache" GOPROXY=off\ncd src\n'
        return go + self.each(units, '../bin/go test -count=1 -short -json "$1" >"$OUT/$(echo "$1" | tr / _).json" 2>&1')

    def parse(self, out):
        found = {}
        for f in sorted(out.glob("*.json")):
            unit = found.setdefault(f.stem, {"(package)": "fail"})
            for line in f.read_text(errors="replace").splitlines():
                try:
                    row = json.loads(line)
                except ValueError:
                    continue
                if row.get("Action") in ("pass", "fail", "skip"):
                    unit[re.sub(r"0x[0-9a-f]+", "0x", row.get("Test", "(package)"))] = row["Action"]  # addresses vary
        return found


SUITES = {s.name: s for s in (Git(), GitWorkspace(), Libuv(), Cpython(), Go())}


# ---------------------------------------------------------------------------------------------- both sides


def prepare(place, suite):
    """-> the built tree; what was built before is used again"""
    place_of = BASE / (suite.tree_of or suite.name)
    tree, log, mark = place_of / "tree", place_of / "build.log", place_of / "built"
    if mark.exists() and mark.read_text() == suite.build:
        return tree
    shutil.rmtree(place_of, ignore_errors=True)
    place_of.mkdir()
    place.own(place_of)
    prepare_apt(place)
    began = time.monotonic()
    say(f"{suite.name}: fetching the source of {suite.package} ...")
    # A mirror may list a version that it does not hold (any more): then the next older one.
    script = (f"for v in $(apt-cache showsrc --only-source {suite.package} | sed -n 's/^Version: //p' | sort -Vru); do "
              f"rm -f *.dsc *.xz *.gz; apt-get -q --only-source --download-only source {suite.package}=$v && exit 0; done; exit 1")
    place.must(script, place_of, log, 900)
    dsc = sorted(place_of.glob("*.dsc"))[0].name
    place.must(f"rm -rf tree; dpkg-source -x {shlex.quote(dsc)} tree", place_of, log)
    say(f"{suite.name}: building {dsc.removesuffix('.dsc')} ...")
    place.must(suite.build, tree, log)
    mark.write_text(suite.build)
    say(f"{suite.name}: fetched and built in {time.monotonic() - began:.0f} s")
    return tree


def version(suite):
    found = sorted((BASE / (suite.tree_of or suite.name)).glob("*.dsc"))
    return found[0].name.removesuffix(".dsc").replace("_", " ") if found else suite.package


def one_side(place, suite, tree, units, is_inside):
    """-> ({unit: {test: result}}, seconds)"""
    side = "inside" if is_inside else "outside"
    out = tree / f".compat-{side}"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    place.own(out)
    script = f"export OUT={shlex.quote(str(out))}\n{suite.script(units)}\nexit 0\n"
    argv = ["sh", "-c", script]
    if is_inside:
        argv = [place.program, "run", "--time", f"{SIDE_SECONDS}s", "--", *argv]
    began = time.monotonic()
    log = tree.parent / f"{suite.name}-{side}.log"
    rc = place.run(argv, tree, log, SIDE_SECONDS + 60)
    if rc != 0:
        raise Failed(f"{side} the runner ended with {rc}; its output is in {log}")
    return suite.parse(out), time.monotonic() - began


def differences(outside, inside):
    """-> [(unit, test, outside, inside)]"""
    found = []
    for unit in sorted(outside.keys() | inside.keys()):
        a, b = outside.get(unit, {}), inside.get(unit, {})
        found += [(unit, t, a.get(t, "absent"), b.get(t, "absent")) for t in sorted(a.keys() | b.keys())
                  if a.get(t, "absent") != b.get(t, "absent")]
    return found


def unit_names(suite, units, found):
    """The units of results: their names in files have no slashes."""
    wanted = {unit for unit, *_ in found}
    return [u for u in units if u in wanted or u.replace("/", "_") in wanted or Path(u).stem in wanted]


def explain(entries, row):
    unit, test, a, b = row
    for e in entries:
        if fnmatch.fnmatchcase(unit, e["unit"]) and fnmatch.fnmatchcase(test, e["test"]) and \
                e.get("outside", a) == a and e.get("inside", b) == b:
            return e
    return None


def count(results):
    return Counter(r for unit in results.values() for r in unit.values())


def totals(results):
    c = count(results)
    return ", ".join(f"{c[k]} {k}" for k in ("pass", "fail", "skip", "known breakage") if c[k])


def compare(place, suite, entries, options):
    """-> whether inside is as outside, but for what is meant"""
    tree = prepare(place, suite)
    units = suite.units(tree)
    if options.unit:
        units = [u for u in units if any(fnmatch.fnmatchcase(u, p) for p in options.unit)]
    elif options.quick:
        units = [u for u in units if any(fnmatch.fnmatchcase(u, p) for p in suite.quick)]
    if not units:
        raise Failed("no unit has that name")
    say(f"{version(suite)}: {len(units)} units")
    outside, out_s = one_side(place, suite, tree, units, False)
    say(f"  outside: {totals(outside)}; {out_s:.0f} s")
    if count(outside)["pass"] == 0:
        raise Failed(f"nothing passes outside; see {tree / '.compat-outside'}")
    inside, in_s = one_side(place, suite, tree, units, True)
    say(f"  inside:  {totals(inside)}; {in_s:.0f} s")
    found = differences(outside, inside)
    if found and (again := unit_names(suite, units, found)):
        say(f"  {len(found)} tests differ; {len(again)} units are run again on both sides")
        second_out, _ = one_side(place, suite, tree, again, False)
        second_in, _ = one_side(place, suite, tree, again, True)
        is_still = {(u, t) for u, t, _, _ in differences(second_out, second_in)}
        unsteady = [row for row in found if (row[0], row[1]) not in is_still]
        found = [row for row in found if (row[0], row[1]) in is_still]
        for unit in sorted({row[0] for row in unsteady}):
            some = [f"{t} ({a} outside, {b} inside)" for u, t, a, b in unsteady if u == unit]
            say(f"  not steady: {unit}: {len(some)} that were the same the second time: {'; '.join(some[:3])}{' ...' if len(some) > 3 else ''}")
    is_good, used = True, []
    for row in found:
        e = explain(entries, row)
        if e is None:
            is_good = False
            say(f"  DIFFERS  {row[0]}: {row[1]}: {row[2]} outside, {row[3]} inside")
        elif e not in used:
            used.append(e)
    for e in used:
        n = sum(explain(entries, row) is e for row in found)
        say(f"  meant    {e['unit']}: {e['test']} ({n} {'test' if n == 1 else 'tests'}): {e['why']}")
    if not options.unit and not options.quick:
        for e in entries:
            if e not in used and not e.get("sometimes"):
                is_good = False
                say(f"  STALE    {e['unit']}: {e['test']}: tests/compat.json explains a difference that is not there")
    say(f"  {suite.name}: " + ("inside as outside" if is_good else "FAILED") +
        f", {len(found)} differences, {sum(explain(entries, r) is not None for r in found)} of them meant")
    return is_good


def check_self():
    """A comparison that cannot object proves nothing: each form of a difference is shown to it first."""
    said = "ok 1 - a\nnot ok 2 - b\nok 3 # skip c (missing X)\nnot ok 4 - d # TODO known breakage\nok 5 - a\n"
    want = {"a": "pass", "b": "fail", "c": "skip", "d": "known breakage", "a (2)": "pass"}
    assert tap(said + "1..5\n") == want, tap(said + "1..5\n")
    assert tap(said) == tap(said + "1..6\n") == {**want, "(ends as planned)": "fail"}, "a script that broke off"
    assert tap("1..0 # SKIP nothing here\n") == {"(all)": "skip"}
    outside, inside = {"u": {"t": "pass", "s": "pass"}, "v": {"t": "pass"}}, {"u": {"t": "fail", "s": "pass"}}
    rows = differences(outside, inside)
    assert rows == [("u", "t", "pass", "fail"), ("v", "t", "pass", "absent")], rows
    entry = {"unit": "u", "test": "t*", "inside": "fail", "why": "x"}
    assert explain([entry], rows[0]) is entry and explain([entry], rows[1]) is None
    assert explain([{**entry, "inside": "skip"}], rows[0]) is None
    assert unit_names(None, ["a/b", "u.sh", "v"], [("a_b", 0, 0, 0), ("u.sh", 0, 0, 0)]) == ["a/b", "u.sh"]


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--vitrine", default=str(ROOT / "build" / "vitrine"))
    options.add_argument("--quick", action="store_true", help="a part of each suite")
    options.add_argument("--unit", action="append", help="only units of this name; * stands for anything")
    options.add_argument("--list", action="store_true", help="print the differences that are meant, and run nothing")
    options.add_argument("suites", nargs="*", metavar="SUITE", help=" ".join(SUITES))
    o = options.parse_args()
    if unknown := [s for s in o.suites if s not in SUITES]:
        options.error(f"no suite '{unknown[0]}'; there are {', '.join(SUITES)}")
    meant = json.loads(MEANT.read_text())
    check_self()
    if o.list:
        for e in meant:
            say(f"{e['suite']}  {e['unit']}: {e['test']}: {e['why']}")
        return 0
    bad = []
    with ground.account():
        place = Ground(o.vitrine)
        for name in o.suites or SUITES:
            try:
                if not compare(place, SUITES[name], [e for e in meant if e["suite"] == name], o):
                    bad.append(name)
            except Failed as e:
                say(f"{name}: {e}")
                bad.append(name)
    say("failed: " + ", ".join(bad) if bad else "every suite: inside as outside")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
