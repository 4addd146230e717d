#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Events: what was put on record is there, as it was; what is missing or changed is found.

`feed` (tests/tools/feed.c) stands in for a keeper: it writes a journal exactly as one does.
"""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

from harness import eq, has, has_not, main, refused, soon, test

SCHEMA = Path(__file__).resolve().parent.parent.parent / "docs" / "events.schema.json"


def feed(box, name, *words, rc=0):
    """A keeper's whole life; the id of its run."""
    if "named" in words:
        place(box, name)
    p = box.popen([box.program.parent / "feed", box.state, name, *words], stdin=subprocess.DEVNULL,
                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    r = box.finish(p)
    eq(r.rc, rc, r.err)
    return r.out.split()[0]


def place(box, name):
    """The folder that makes a sandbox exist."""
    (box.state / "sandboxes" / name).mkdir(parents=True, exist_ok=True)
    box.own(box.dir / "state")


def events(box, *args, rc=0):
    r = box.cli("events", *args, "--json")
    eq(r.rc, rc, r.err)
    return [json.loads(line) for line in r.out.splitlines()]


def verify(box, *args):
    r = box.cli("events", "--verify", *args)
    return r.rc, r.out


def edit(box, source, sql, *values):
    """What somebody with an editor for databases does."""
    box.own(box.dir / "state")
    db = sqlite3.connect(box.state / source)
    db.execute(sql, values)
    db.commit()
    db.close()
    box.own(box.dir / "state")


# ------------------------------------------------------------------------------------------- listings


@test
def all_of_a_run(box):
    run = feed(box, "run-1", "sessions=2", "events=3")
    got = events(box)
    eq([e["number"] for e in got], list(range(11)))
    eq({e["run"] for e in got}, {run})
    eq(got[0]["type"], "sandbox.started")
    eq(got[0]["session"], None)
    eq(got[1]["data"]["argv"], ["make", "test"])
    eq(got[-1]["session"], f"{run}-1")
    eq(list((box.state / "journal").glob("[0-9a-f]*")), [], "journals are left")
    eq(box.state.joinpath("runs/events.db").stat().st_mode & 0o077, 0, "others may read it")


@test
def summaries_of_sessions(box):
    """How many events, and the hash of the last: they stay what they were, and tell an edit that the registry forgot."""
    eq((box.run("--name", "box", "--", "sh", "-c", "exit 3").rc, box.run("--name", "box", "--", "true").rc), (3, 0))
    first, second = reversed(events(box, "box", "--sessions"))
    for s in (first, second):
        eq(len(events(box, "--session", s["session"])), s["events"])
        eq(len(bytes.fromhex(s["head"])), 32)
    eq((first["status"], first["command"], first["state"], second["status"]), (3, "sh -c exit 3", "ended", 0))
    box.run("--name", "box", "--", "true")
    eq(events(box, "--sessions")[1:], [second, first])
    eq([s["session"] for s in events(box, "--sessions", "-n", "1")], box.cli("events", "--sessions", "-q", "-n", "1").out.split())
    has(box.cli("events", "--sessions").out, first["head"][:16])
    for words in (["--verify"], ["-f"], ["--type", "net"], ["--format", "x"]):
        refused(box.cli("events", "--sessions", *words), "--sessions lists summaries")


@test
def filters(box):
    run = feed(box, "run-1", "sessions=2", "events=3")
    feed(box, "box", "named", "events=1")
    eq(len(events(box)), 11 + 4)
    eq(len(events(box, "box")), 4)
    eq(len(events(box, "--type", "process.exec")), 7)
    eq(len(events(box, "--type", "session", "--type", "sandbox.started")), 6 + 2)
    eq(len(events(box, "--session", f"{run}-1")), 5)
    eq(len(events(box, "--session", run[:10])), len([e for e in events(box) if e["session"]
                                                     and e["run"].startswith(run[:10])]))
    eq(len(events(box, "--session", "1")), 5)
    eq(len(events(box, "--session", "sandbox")), 2)
    eq([e["number"] for e in events(box, "box", "--tail", "2")], [2, 3])
    eq(len(events(box, "--since", "1h")), 15)
    eq(len(events(box, "--since", "2999-01-01")), 0)
    eq(len(events(box, "--since", "2020-01-01T00:00Z", "box")), 4)


@test
def forms(box):
    run = feed(box, "run-1", "events=1")
    r = box.cli("events", "-q")
    eq(r.out.split(), [f"{run}:{i}" for i in range(4)])
    r = box.cli("events", "--format", "{{.Type}}|{{.Sandbox}}|{{.Session}}|{{.Number}}|{{.argv}}|{{.status}}")
    eq(r.out.splitlines()[1], f"session.started|run-1|{run}-0|1|make test|")
    eq(r.out.splitlines()[3], f"session.ended|run-1|{run}-0|3||0")
    has(box.cli("events").out, "run-1/0 session.ended status=0 reason=exit")


@test
def refusals(box):
    refused(box.cli("events", "--type", "session.begun"), "not known")
    refused(box.cli("events", "--type", "session.endde"), "did you mean 'session.ended'")
    refused(box.cli("events", "--since", "some day"), "is no time")
    refused(box.cli("events", "--format", "{{.nothing}}"), "is no field")
    refused(box.cli("events", "--format", "{{.time"), "is no {{.Field}}")
    refused(box.cli("events", "--verify", "-f"), "--verify")
    refused(box.cli("events", "a", "b"), "one too many")
    refused(box.cli("events", "../x"), "is not a name")
    refused(box.cli("events", "nobody"), "there is no sandbox 'nobody'", rc=125)
    refused(box.cli("events", "--tail", "0"), "--tail")


@test
def nothing_yet(box):
    eq(events(box), [])
    rc, out = verify(box)
    eq(rc, 0, out)


@test
def the_schema_fits(box):
    """Every line has what the schema requires, and no field it does not know."""
    schema = json.loads(SCHEMA.read_text())
    kinds = {t["properties"]["type"]["const"]: t["properties"]["data"] for t in schema["oneOf"]}
    feed(box, "run-1")
    feed(box, "run-2", "die", "open", rc=-signal.SIGKILL)
    for e in events(box):
        eq(set(e), set(schema["required"]))
        data = kinds[e["type"]]
        has(e["data"], *data["required"])
        eq(set(e["data"]) - set(data["properties"]), set(), e["type"])


# --------------------------------------------------------------------------------------- foreign text


@test
def what_comes_from_inside_is_escaped(box):
    text = 'x\x1b[2J\r\n{"type":"forged"}\u2028\u202e\x9b\x07\x7f'
    feed(box, "run-1", "events=3", "text=" + text)
    got = events(box, "--type", "process.exec")
    eq([e["data"]["exe"] for e in got], [text] * 3)
    for args in ([], ["--json"], ["--format", "{{.exe}}"]):
        r = box.cli("events", *args)
        lines = [l for l in r.out.split("\n") if l]
        eq(len(lines), 6 if args != ["--format", "{{.exe}}"] else 3, str(args))
        for c in "\x1b\r\u2028\u202e\x9b\x07\x7f":
            has_not(r.out, c)


@test
def invalid_utf8_and_long_texts(box):
    feed(box, "run-1", "events=1", b"text=\xff\xfe a".decode("utf-8", "surrogateescape"))
    feed(box, "run-2", "events=2", "bytes=100000")
    got = [e["data"]["exe"] for e in events(box, "--type", "process.exec")]
    eq(got[0], "\ufffd\ufffd a")
    eq(len(got), 3)
    has(got[1], "[+")
    eq(verify(box)[0], 0)


# -------------------------------------------------------------------------------------------- crashes


@test
def a_dead_keeper_is_found(box):
    run = feed(box, "box", "named", "sessions=2", "events=2", "open", "die", rc=-signal.SIGKILL)
    got = events(box, "box")
    eq([e["type"] for e in got[-2:]], ["session.lost", "sandbox.lost"])
    eq(got[-2]["session"], f"{run}-1")
    eq(got[-2]["data"]["reason"], "keeper died")
    eq(len(got), 1 + 4 + 3 + 2)
    eq(len(events(box, "box")), len(got), "said twice")
    eq(verify(box)[0], 0)


@test
def a_torn_journal_keeps_what_is_whole(box):
    run = feed(box, "run-1", "events=3", "die", rc=-signal.SIGKILL)
    path = box.state / "journal" / f"{run}.000000"
    path.write_bytes(path.read_bytes()[:-7])
    got = events(box)
    eq(len([e for e in got if e["type"] == "process.exec"]), 3)
    has([e["data"].get("reason") for e in got], "damaged")
    eq([e["type"] for e in got][-2:], ["session.lost", "sandbox.lost"])
    eq([p.name for p in (box.state / "journal" / "damaged").iterdir()], [path.name])
    eq(verify(box)[0], 0)


@test
def what_is_no_journal_harms_nobody(box):
    feed(box, "run-1", "events=3")
    journal = box.state / "journal"
    (journal / ("0" * 18 + ".000000")).write_bytes(b"VEV1" + os.urandom(4096))
    (journal / ("1" * 18 + ".000000")).write_bytes(b"")
    (journal / ("2" * 18 + ".000000")).symlink_to("/etc/passwd")
    (journal / "README").write_text("hello")
    box.own(journal)
    r = box.cli("events", "--json")
    eq(len(r.out.splitlines()), 6, r.err)
    eq(verify(box)[0], 0)
    eq((journal / "README").read_text(), "hello")


@test
def another_machines_boot(box):
    """A journal whose boot id is not ours: the host went down under it."""
    run = feed(box, "run-1", "open", "die", rc=-signal.SIGKILL)
    path = box.state / "journal" / f"{run}.000000"
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip().encode()
    text = path.read_bytes()
    has(text, boot)
    head = int.from_bytes(text[4:8], "little")
    frame = bytearray(text[:head].replace(boot, boot[:-1] + bytes([boot[-1] ^ 1])))
    frame[28:32] = sum_of(frame).to_bytes(4, "little")
    path.write_bytes(bytes(frame) + text[head:])
    eq(events(box, "--type", "session.lost")[0]["data"]["reason"], "host went down")


def sum_of(frame):
    h = 0xcbf29ce484222325
    for c in frame[:28] + frame[32:]:
        h = (h ^ c) * 0x100000001b3 & (2**64 - 1)
    return (h ^ h >> 32) & 0xffffffff


# ----------------------------------------------------------------------------------------------- live


def reader(box, *args):
    return box.start("events", "-f", "--json", *args)


@test
def follow(box):
    place(box, "box")
    feed(box, "run-0", "events=1")
    p = reader(box)
    for _ in range(4):
        json.loads(p.stdout.readline())
    f = box.popen([box.program.parent / "feed", box.state, "box", "named", "sessions=2", "events=2", "hold"],
                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    run = f.stdout.readline().decode().strip()
    got = [json.loads(p.stdout.readline()) for _ in range(9)]
    eq([(e["run"], e["number"]) for e in got], [(run, i) for i in range(9)])
    eq(len(events(box, "box")), 9, "the open journal is part of a listing")
    f.communicate(b"\n")
    p.kill()
    box.finish(p)
    eq(len(events(box, "box")), 9)


@test(timeout=60)
def follow_misses_nothing_while_others_ingest(box):
    """Parts are taken up and removed under the reader's eyes."""
    p = reader(box, "--type", "process.exec")
    f = box.popen([box.program.parent / "feed", box.state, "run-1", "events=30000", "bytes=200", "rate=40000"],
                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    numbers = []
    while len(numbers) < 30000:
        numbers.append(json.loads(p.stdout.readline())["number"])
        if len(numbers) % 6000 == 0:
            box.host(box.program.parent / "vitrine-store", "ingest", "--state", box.state)
    f.communicate()
    p.kill()
    box.finish(p)
    eq(numbers, list(range(2, 30002)))
    eq(verify(box)[0], 0)


@test
def follow_tells_of_a_death(box):
    p = reader(box, "--type", "session.lost")
    feed(box, "run-1", "open", "die", rc=-signal.SIGKILL)
    box.host(box.program.parent / "vitrine-store", "ingest", "--wait")
    eq(json.loads(p.stdout.readline())["type"], "session.lost")
    p.kill()
    box.finish(p)


@test
def follow_meets_a_database_that_is_only_being_made(box):
    """Its maker has opened the file and not come to the first table: there is nothing to read yet, and no mistake."""
    (box.state / "runs").mkdir(parents=True, mode=0o700)
    (box.state / "runs/events.db").touch(mode=0o600)
    box.own(box.dir / "state")
    p = reader(box, "--type", "session.lost")
    time.sleep(0.3)
    eq(p.poll(), None)
    feed(box, "run-1", "open", "die", rc=-signal.SIGKILL)
    box.host(box.program.parent / "vitrine-store", "ingest", "--wait")
    eq(json.loads(p.stdout.readline())["type"], "session.lost")
    p.kill()
    box.finish(p)
    eq(box.cli("events", "--sessions").rc, 0)


# --------------------------------------------------------------------------------------------- verify


def three_runs(box):
    runs = [feed(box, "run-1", "events=5"), feed(box, "run-2", "sessions=2", "events=5"), feed(box, "run-3")]
    rc, out = verify(box)
    eq(rc, 0, out)
    return runs


def found(box, *needles):
    rc, out = verify(box)
    eq(rc, 1, out)
    has(out, "WRONG", *needles)
    eq(box.cli("events", "--verify", "-q").rc, 1)
    last = json.loads(box.cli("events", "--verify", "--json").out.splitlines()[-1])
    eq(last["ok"], False)


STREAM = "(SELECT s.id FROM stream s JOIN run r ON s.run=r.id WHERE r.run=? AND s.session=?)"


@test
def verify_finds_an_edited_event(box):
    runs = three_runs(box)
    edit(box, "runs/events.db", f"UPDATE event SET frame=CAST(replace(frame, 'hello', 'hallo') AS BLOB) "
         f"WHERE nr=3 AND stream={STREAM}", runs[1], 1)
    found(box, f"{runs[1]}-1", "event 3")


@test
def verify_finds_an_edited_column(box):
    runs = three_runs(box)
    edit(box, "runs/events.db", f"UPDATE event SET time=time+1 WHERE nr=3 AND stream={STREAM}", runs[0], 0)
    found(box, f"{runs[0]}-0", "event 3 has columns")


@test
def verify_finds_a_missing_event(box):
    runs = three_runs(box)
    edit(box, "runs/events.db", f"DELETE FROM event WHERE nr IN (3, 4) AND stream={STREAM}", runs[1], 0)
    found(box, f"{runs[1]}-0", "events 3 to 4 are missing")


@test
def verify_finds_a_cut_off_end(box):
    runs = three_runs(box)
    edit(box, "runs/events.db", f"DELETE FROM event WHERE nr>5 AND stream={STREAM}", runs[1], 0)
    found(box, f"{runs[1]}-0", "cut off: 7 events were recorded, only 5 are there")


@test
def verify_finds_reordered_events(box):
    runs = three_runs(box)
    for nr, to in ((2, 900), (3, 2), (900, 3)):
        edit(box, "runs/events.db", f"UPDATE event SET nr={to} WHERE nr={nr} AND stream={STREAM}", runs[0], 0)
    found(box, f"{runs[0]}-0", "event 2 was edited or moved", "event 3 was edited or moved")


@test
def verify_finds_a_chain_that_was_made_anew(box):
    """Event, hash and head replaced together: only the registry still knows."""
    runs = three_runs(box)
    edit(box, "runs/events.db", f"DELETE FROM event WHERE nr=7 AND stream={STREAM}", runs[0], 0)
    edit(box, "runs/events.db", f"UPDATE stream SET events=6, head=(SELECT hash FROM event WHERE nr=6 AND "
         f"stream=stream.id) WHERE id={STREAM}", runs[0], 0)
    found(box, f"{runs[0]}-0", "the registry remembers 7 events, the database 6")
    # And taking up more does not make it forget.
    feed(box, "run-4")
    found(box, f"{runs[0]}-0", "the registry remembers 7 events")


@test
def verify_finds_a_missing_session(box):
    runs = three_runs(box)
    edit(box, "runs/events.db", f"DELETE FROM event WHERE stream={STREAM}", runs[1], 1)
    edit(box, "runs/events.db", f"DELETE FROM stream WHERE id={STREAM}", runs[1], 1)
    found(box, "1 sessions are missing as a whole", f"{runs[1]}-1: is in the registry but not in the database")


@test
def verify_finds_a_missing_database(box):
    feed(box, "box", "named")
    eq(verify(box)[0], 0)
    shutil.rmtree(box.state / "sandboxes" / "box")
    found(box, "sandboxes/box/events.db", "is missing")


@test
def verify_finds_rot(box):
    three_runs(box)
    path = box.state / "runs" / "events.db"
    with path.open("r+b") as f:
        f.seek(4096)
        f.write(os.urandom(8192))
    rc, out = verify(box)
    eq(rc, 1, out)


@test
def a_registry_is_made_anew(box):
    three_runs(box)
    for p in box.state.glob("vitrine.db*"):
        p.unlink()
    rc, out = verify(box)
    eq(rc, 0, out)
    has(out, "ok: ")


def garbled(path):
    with path.open("r+b") as f:
        f.write(b"\xff" * 8192)


def cut(path):
    os.truncate(path, path.stat().st_size // 2)


def garbled_inside(path):
    """All but the page with the header and the schema: it opens, and fails later."""
    with path.open("r+b") as f:
        f.seek(4096)
        f.write(os.urandom(path.stat().st_size - 4096))


@test
def a_damaged_registry_is_made_anew(box):
    for damage in (garbled, cut, garbled_inside):
        three_runs(box)
        want = set(json.loads(line)["run"] for line in box.cli("events", "--json").out.splitlines())
        damage(box.state / "vitrine.db")
        for p in box.state.glob("vitrine.db-*"):
            p.unlink()
        r = box.cli("events", "--sessions")
        eq(r.rc, 0, damage.__name__ + ": " + r.err)
        has(r.err, "the registry was damaged: it is kept as vitrine.db.damaged")
        eq(set(json.loads(line)["run"] for line in box.cli("events", "--json").out.splitlines()), want)
        rc, out = verify(box)
        eq(rc, 0, out)
        assert (box.state / "vitrine.db.damaged").exists(), "the damaged one was not kept"
        (box.state / "vitrine.db.damaged").unlink()


@test
def verify_says_when_there_was_nothing_to_compare_with(box):
    three_runs(box)
    garbled_inside(box.state / "vitrine.db")
    rc, out = verify(box)
    eq(rc, 1, out)
    eq(verify(box)[0], 0)


@test
def ingest_mends_the_registry(box):
    three_runs(box)
    garbled(box.state / "vitrine.db")
    feed(box, "run-4", "events=1")
    box.finish(box.popen([box.program.parent / "vitrine-store", "ingest", "--wait", "--state", box.state], stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    assert (box.state / "vitrine.db.damaged").exists(), "the damaged one was not kept"
    rc, out = verify(box)
    eq(rc, 0, out)


@test
def another_program_s_file_is_not_moved(box):
    three_runs(box)
    for p in box.state.glob("vitrine.db*"):
        p.unlink()
    other = sqlite3.connect(box.state / "vitrine.db")
    other.executescript("PRAGMA application_id=42; CREATE TABLE mine(x)")
    other.close()
    box.own(box.state)
    r = box.cli("events", "--sessions")
    assert r.rc != 0 and "is not" in r.err, r.err
    assert not (box.state / "vitrine.db.damaged").exists(), "it was moved"


# ------------------------------------------------------------------------------------------ retention


def policy(box, text):
    path = box.config / "vitrine" / "policy.jsonc"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    box.own(box.config)


@test
def old_sessions_go_and_it_is_told(box):
    runs = three_runs(box)
    edit(box, "runs/events.db", f"UPDATE stream SET started=1, ended=2 WHERE id={STREAM}", runs[0], 0)
    feed(box, "run-4", "events=1")
    got = events(box)
    told = [e["data"] for e in got if e["type"] == "events.dropped"]
    eq([(d["about"], d["count"], d["reason"]) for d in told], [(f"{runs[0]}-0", 7, "age")])
    eq([e for e in got if e["session"] == f"{runs[0]}-0"], [])
    rc, out = verify(box)
    eq(rc, 0, out)
    has(out, "7 dropped by policy")


@test
def too_much_goes_whole_sessions_first(box):
    policy(box, '{ "events": { "max_size": "64k" } }')
    place(box, "box")
    runs = [feed(box, "box", "named", "sessions=3", "events=100", "bytes=100") for _ in range(4)]
    got = events(box, "box")
    told = [e["data"] for e in got if e["type"] == "events.dropped"]
    eq({d["reason"] for d in told}, {"size"})
    kept = [e["session"] for e in got if e["session"]]
    for s in set(kept):
        eq(kept.count(s), 102, "a session is kept whole or not at all")
    every = [f"{run}-{i}" for run in runs for i in range(3)]
    eq(sorted(set(kept)), every[-len(set(kept)):], "the newest are kept")
    if not 1 <= len(set(kept)) <= 4:
        raise AssertionError(f"{len(set(kept))} sessions of 16 KiB are kept")
    rc, out = verify(box)
    eq(rc, 0, out)


@test
def one_session_too_large_loses_its_beginning(box):
    policy(box, '{ "events": { "max_size": "64k" } }')
    place(box, "box")
    f = box.popen([box.program.parent / "feed", box.state, "box", "named", "events=50000", "bytes=100", "hold"],
                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    f.stdout.readline()
    f.stdout.readline()
    got = events(box, "box", "--type", "events.dropped")
    if not got:
        raise AssertionError("nothing was dropped")
    f.communicate(b"\n")
    rc, out = verify(box)
    eq(rc, 0, out)


@test
def dropping_without_a_word_is_found(box):
    runs = three_runs(box)
    edit(box, "runs/events.db", f"UPDATE stream SET dropped=3, base=(SELECT hash FROM event WHERE nr=3 AND "
         f"stream=stream.id) WHERE id={STREAM}", runs[0], 0)
    edit(box, "runs/events.db", f"DELETE FROM event WHERE nr<=3 AND stream={STREAM}", runs[0], 0)
    found(box, "3 events are gone and no event says why")


@test
def a_project_does_not_decide_what_is_kept(box):
    box.write(".vitrine.jsonc", '{ "events": { "max_age": "1h" } }')
    r = box.cli("policy", "show")
    has(r.err, "a project file cannot choose what is kept on record")
    eq(r.rc, 2)


# --------------------------------------------------------------------------------------- moving about


@test
def a_copied_database_is_read_elsewhere(box):
    feed(box, "box", "named", "events=5")
    eq(len(events(box, "box")), 8)
    away = box.dir / "away"
    shutil.copytree(box.state / "sandboxes" / "box", away)
    box.own(away)
    shutil.rmtree(box.state)
    eq(len(events(box, "--file", str(away / "events.db"))), 8)
    r = box.cli("events", "--verify", "--file", str(away / "events.db"))
    eq(r.rc, 0, r.out)
    for p in away.glob("events.db-*"):
        p.unlink()
    (away / "events.db").chmod(0o400)
    away.chmod(0o500)
    try:
        eq(len(events(box, "--file", str(away / "events.db"))), 8)
    finally:
        away.chmod(0o700)


@test
def a_folder_moves_to_another_state(box):
    """Copied into another state directory it is one of its sandboxes, history included."""
    feed(box, "box", "named", "events=5")
    eq(len(events(box, "box")), 8)
    away = box.dir / "other" / "vitrine"
    shutil.copytree(box.state / "sandboxes" / "box", away / "sandboxes" / "moved")
    box.own(box.dir / "other")
    env = {"XDG_STATE_HOME": str(box.dir / "other")}
    r = box.cli("events", "moved", "-q", env=env)
    eq((r.rc, len(r.out.split())), (0, 8))
    r = box.cli("events", "--verify", env=env)
    eq(r.rc, 0, r.out + r.err)
    has(r.out, "ok: 8 events")


@test
def a_newer_schema_is_refused(box):
    feed(box, "run-1")
    events(box)
    edit(box, "runs/events.db", "PRAGMA user_version=99")
    r = box.cli("events", "--file", str(box.state / "runs/events.db"))
    refused(r, "made by a newer Vitrine", rc=125)


@test
def writers_and_readers_at_once(box):
    """Eight ingests and four readers while runs end: nothing is lost, nothing is there twice."""
    store = box.program.parent / "vitrine-store"
    helpers = []
    for i in range(30):
        feed(box, f"run-{i}", "events=20")
        if i % 4 == 0:
            helpers += [box.popen([store, "ingest", "--wait"], stderr=subprocess.PIPE) for _ in range(2)]
            helpers += [box.start("events", "-q")]
    for p in helpers:
        r = box.finish(p)
        eq((r.rc, r.err), (0, ""))
    got = events(box)
    eq(len(got), 30 * 23)
    eq(len({(e["run"], e["number"]) for e in got}), 30 * 23)
    eq(verify(box)[0], 0)


# -------------------------------------------------------------------------------------- real sandboxes


def is_engine(e):
    """That the tests themselves ask for another one is on record too."""
    return e["type"] == "policy.widened" and e["data"]["setting"] == "engine"


@test
def a_run_is_on_record(box):
    eq(box.sh("exit 3").rc, 3)
    got = events(box)
    got = [e for e in got if not is_engine(e)]
    eq([e["type"] for e in got], ["sandbox.started", "session.started", "session.ended", "sandbox.stopped"])
    assert {"cpu_ns", "memory_peak", "written"} <= got[2]["data"].keys(), got[2]
    eq(got[1]["data"]["argv"], ["sh", "-c", "exit 3"])
    eq(got[2]["data"]["status"], 3)
    eq(verify(box)[0], 0)


@test
def what_is_wider_is_on_record(box):
    """Each value, with its layer; of a variable only the name."""
    eq(box.run("--pids", "none", "--allow", "example.org", "-e", "TOKEN=hush", "--", "true").rc, 0)
    got = [(e["data"]["setting"], e["data"]["target"], e["data"]["layer"]) for e in events(box)
           if e["type"] == "policy.widened" and not is_engine(e)]
    eq(sorted(got), [("env.set", "TOKEN", "flags"), ("limits.pids", "none", "flags"),
                     ("network.allow", "example.org", "flags"), ("network.mode", "gate", "flags")])
    has_not(box.cli("events", "--json").out, "hush")


@test
def checkpoints_are_on_record(box):
    box.write("f", "one")
    eq(box.run("--name", "c", "--", "sh", "-c", "echo two >f").rc, 0)
    eq(box.cli("checkpoint").rc, 0)
    box.run("--name", "c", "--", "sh", "-c", "echo three >f")
    eq(box.cli("undo", "c").rc, 0)
    got = [(e["type"], e["data"]["checkpoint"]) for e in events(box) if e["type"].startswith("checkpoint.")]
    made = [c for t, c in got if t == "checkpoint.made"]
    eq(len(made) >= 2 and made[:2] == ["1", "2"], True, str(got))
    eq([t for t, _ in got][-1], "checkpoint.restored")


@test
def a_guess_at_a_wall_is_on_record(box):
    r = box.sh("echo 'cat: /etc/shadow: No such file or directory' >&2; exit 1", "--name", "h")
    has(r.err, "hint:")
    guess = [e["data"]["message"] for e in events(box) if e["type"] == "wall.hinted"]
    eq(len(guess), 1)
    has(r.err, guess[0])


@test
def programs_that_stay_are_seen(box):
    p = box.start("run", "--name", "s", "--", "sh", "-c", "sleep 30 & wait")
    soon(lambda: any(e["type"] == "process.exec" and e["data"]["argv"] == ["sleep", "30"] for e in events(box)),
         "the program is seen", 6)
    seen = [e for e in events(box) if e["type"] == "process.exec"]
    eq({e["session"] for e in seen} == {seen[0]["run"] + "-1"}, True, str(seen))
    eq(box.cli("stop", "--time", "0s", "s").rc, 0)
    box.finish(p)


@test
def the_record_is_out_of_reach(box):
    """From inside there is no journal, no database and no state directory at all."""
    feed(box, "run-0")
    events(box)
    r = box.sh(f"ls -d {box.state} {box.state}/runs/events.db {box.state}/journal; "
               f"echo x >>{box.state}/runs/events.db; rm -rf {box.state}; "
               "find / \\( -path /usr -o -path /proc \\) -prune -o -name '*.000000' -path '*journal*' -print")
    has_not(r.out, "events.db", "journal")
    eq((box.state / "runs" / "events.db").exists(), True, "outside it is there")
    eq(verify(box)[0], 0)
    told = [e["type"] for e in events(box, "--session", "sandbox") if not is_engine(e)]
    eq(len([t for t in told if t != "resource.sample"]), 1 + 2)


@test
def removing_and_renaming_are_told(box):
    eq(box.run("--name", "one", "--", "true").rc, 0)
    eq(box.run("--name", "two", "--", "true").rc, 0)
    eq(box.cli("rename", "one", "three").rc, 0)
    eq(box.cli("rm", "two").rc, 0)
    rc, out = verify(box)
    eq(rc, 0, out)
    told = {e["type"]: e["data"] for e in events(box) if e["type"].startswith("sandbox.re")}
    eq(told, {"sandbox.renamed": {"name": "one", "target": "three"}, "sandbox.removed": {"name": "two"}})
    eq(box.run("--name", "three", "--rm", "--", "true").rc, 0)
    rc, out = verify(box)
    eq(rc, 0, out)


@test(who=("user",), timeout=60)
def fifty_thousand_a_second(box):
    """Ten seconds of them, named, so that ingest runs beside it as it does in life. tests/bench/events.py measures."""
    place(box, "box")
    p = box.popen([box.program.parent / "feed", box.state, "box", "named", "events=500000", "rate=50000"],
                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    t0 = time.monotonic()
    r = box.finish(p, timeout=40)
    took = time.monotonic() - t0
    words = r.out.split()
    eq(int(words[2]), 500003)
    cpu = int(words[4]) / 1e9
    if cpu > 0.05 * 10:
        raise AssertionError(f"the keeper used {cpu:.2f} s of processor time for it")
    if took > 20:
        raise AssertionError(f"it took {took:.1f} s")
    store = box.program.parent / "vitrine-store"
    box.finish(box.popen([store, "ingest", "--wait"]), timeout=40)
    last = json.loads(box.cli("events", "--verify", "--json", timeout=40).out.splitlines()[-1])
    eq((last["ok"], last["events"]), (True, 500003))


if __name__ == "__main__":
    sys.exit(main())
