#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the inside says of itself: telemetry, reports of tool calls and structured output become events.

The receiver by itself is the business of otlp.py; here real clients inside a sandbox send to it.
"""

import json
import os
import signal
import sys

from harness import below, describe, eq, has, has_not, main, soon, test
from otlp_wire import logs, proto_log

# An exporter: FILE TYPE PATH, told where by the environment alone; prints the status.
CLIENT = """
import os, sys, http.client
body, kind, path = open(sys.argv[1], "rb").read(), sys.argv[2], sys.argv[3]
host = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"].split("//")[1]
c = http.client.HTTPConnection(host, timeout=5)
c.request("POST", path, body, {"Content-Type": kind})
print(c.getresponse().status)
"""


def events(box, *args):
    r = box.cli("events", "--json", *args)
    eq(r.rc, 0, r.err)
    return [json.loads(line) for line in r.out.splitlines()]


def data(box, kind, *args):
    return [e["data"] for e in events(box, "--type", kind, *args)]


def put_client(box):
    box.write("client.py", CLIENT)
    box.write("logs.json", logs("from json"))
    box.write("logs.bin", proto_log("from protobuf"))


@test
def telemetry_is_kept(box):
    put_client(box)
    r = box.run("--telemetry", "--", "sh", "-c",
                "python3 client.py logs.json application/json /v1/logs && "
                "python3 client.py logs.bin application/x-protobuf /v1/logs; sleep 1.2")
    eq((r.rc, r.out, r.err), (0, "200\n200\n", ""), "nobody takes it for a server of the inside")
    got = data(box, "otel")
    eq([(d["signal"], d["body"]) for d in got], [("logs", "from json"), ("logs", "from protobuf")])


@test
def nobody_listens_unless_asked(box):
    """The same client, the same port: closed, and the environment names none."""
    put_client(box)
    r = box.run("--", "sh", "-c", "env | grep -c -e OTEL -e VITRINE_EVENTS; "
                "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 "
                "python3 client.py logs.json application/json /v1/logs 2>&1 | tail -1")
    has(r.out, "0\n", "refused")
    eq(data(box, "otel"), [])


@test
def with_a_network_too(box):
    """The proxy's variables do not lead around it."""
    put_client(box)
    r = box.run("--telemetry", "--allow", "example.org", "--", "sh", "-c",
                "curl -sS -o /dev/null -w '%{http_code}\\n' -H 'Content-Type: application/json' "
                "--data-binary @logs.json $OTEL_EXPORTER_OTLP_ENDPOINT/v1/logs")
    eq((r.rc, r.out), (0, "200\n"), r.err)
    eq([d["body"] for d in data(box, "otel")], ["from json"])


@test
def a_report_is_a_tool_call(box):
    put_client(box)
    box.write("call.json", json.dumps({"tool": "Bash", "call": "c1", "input": {"command": "ls"},
                                       "verdict": "allow", "rule": "r", "message": "\x1b[31mred"}))
    box.write("bad.json", json.dumps({"tool": "Bash", "type": "net.verdict"}))
    r = box.run("--telemetry", "--", "sh", "-c",
                "for f in call bad; do python3 client.py $f.json application/json /vitrine/v1/calls; done")
    eq((r.rc, r.out), (0, "200\n400\n"), r.err)
    calls, decisions = data(box, "tool.call"), data(box, "guard.decision")
    eq([(c["tool"], c["call"], json.loads(c["input"]), c["inside"]) for c in calls],
       [("Bash", "c1", {"command": "ls"}, True)])
    eq([(d["verdict"], d["rule"], d["inside"]) for d in decisions], [("allow", "r", True)])
    has_not(box.cli("events").out, "\x1b")


@test
def the_hook_tells_its_keeper(box):
    call = {"hook_event_name": "PreToolUse", "session_id": "s", "cwd": str(box.ws), "tool_name": "Bash",
            "tool_input": {"command": "rm -rf /"}}
    box.write("call.json", json.dumps(call))
    hook = f"{box.program} hook --agent claude < call.json"
    r = box.run("--telemetry", "--read", str(box.program), "--", "sh", "-c", hook)
    has(r.out, '"deny"')
    eq(r.err, "")
    eq([(d["verdict"], d["agent"], d["inside"]) for d in data(box, "guard.decision")], [("deny", "claude", True)])
    eq([(d["tool"], d["input"]) for d in data(box, "tool.call")], [("Bash", "rm -rf /")])


@test
def structured_output_tells_of_calls(box):
    lines = [{"type": "system"},
             {"type": "assistant", "message": {"content": [
                 {"type": "tool_use", "id": "a", "name": "Bash", "input": {"command": "make"}}]}},
             {"type": "result"}]
    box.write("out.jsonl", "\n".join(json.dumps(line) for line in lines))
    eq(box.run("--telemetry", "--name", "s", "--", "cat", "out.jsonl").rc, 0)
    got = events(box, "s", "--type", "tool.call")
    eq([(e["data"]["tool"], e["data"]["call"], e["data"]["inside"]) for e in got], [("Bash", "a", True)])
    has(got[0]["session"], "-1")
    # Text that only looks so further down is nobody's report.
    eq(box.run("--telemetry", "--name", "t", "--", "sh", "-c", "echo hello; cat out.jsonl").rc, 0)
    eq(events(box, "t", "--type", "tool.call"), [])


@test
def too_much_is_not_heard(box):
    (box.config / "vitrine").mkdir(exist_ok=True)
    (box.config / "vitrine" / "policy.jsonc").write_text('{"events": {"max_size": "64k"}}')
    box.own(box.config)
    box.write("client.py", CLIENT)
    box.write("many.json", logs(*["x" * 100] * 200))
    r = box.run("--telemetry", "--", "sh", "-c",
                "python3 client.py many.json application/json /v1/logs; "
                "python3 client.py many.json application/json /v1/logs || true")
    eq(r.rc, 0, r.err)
    notes = [d["message"] for d in data(box, "note")]
    eq(len([n for n in notes if "more than may be kept" in n]), 1, str(notes))
    kept = len(data(box, "otel"))
    if not 0 < kept < 200:
        raise AssertionError(f"{kept} records kept")


def receivers():
    return [p for p in below(os.getpid()) if describe(p).startswith("vitrine-otlp")]


@test
def a_killed_receiver_comes_back(box):
    put_client(box)
    eq(box.cli("create", "--telemetry", "--name", "k", "shell", ".").rc, 0)
    eq(box.cli("start", "k").rc, 0)
    send = ("exec", "k", "python3", "client.py", "logs.json", "application/json", "/v1/logs")
    eq(receivers(), [], "before anything was said")
    eq(box.cli(*send).out, "200\n")
    for pid in receivers():
        os.kill(pid, signal.SIGKILL)
    soon(lambda: not receivers(), "the receiver is gone")
    eq(box.cli(*send).out, "200\n")
    eq(box.cli("stop", "k").rc, 0)
    eq(len(data(box, "otel", "k")), 2)
    eq(len([d for d in data(box, "note", "k") if "receiver ended" in d["message"]]), 1)


@test
def your_own_collector_takes_its_place(box):
    has(box.cli("explain", "--telemetry", "--", "true").out, "telemetry  kept")
    r = box.cli("explain", "--telemetry", "--host-port", "4318", "--", "true")
    has(r.out, "not kept: the host's own port takes its place")
    has_not(r.out, "OTEL_")


@test
def a_project_file_cannot_ask_for_it(box):
    box.write(".vitrine.jsonc", '{"features": {"telemetry": true}}')
    r = box.run("--", "true")
    eq(r.rc, 2)
    has(r.err, "features.telemetry", "widen")


if __name__ == "__main__":
    sys.exit(main())
