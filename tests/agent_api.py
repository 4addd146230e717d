# SPDX-License-Identifier: Apache-2.0
"""The far end of coding agents: enough of the Anthropic Messages and OpenAI Responses APIs to play a model.

What the model does is said in the prompt, so that nothing has to be told to the process that plays it:

    SCRIPT [{"sh": "make"}, {"write": ["a.txt", "hello"]}, {"call": "mcp__x__y", "with": {}}, {"say": "done"}] END

Step N is played when N results of tools are in the conversation; behind the last one the turn ends with a text that
quotes the last result. answer() gets one request and returns the bytes of its answer and what to write to the log.
"""

import itertools
import json
import re

HOSTS = {"api.anthropic.com": "93.184.216.50", "api.openai.com": "93.184.216.51"}
MARK = re.compile(r"SCRIPT (\[.*?\]) END", re.S)
numbers = itertools.count(1)


def new_id(prefix):
    return f"{prefix}{next(numbers):024d}"


def flat(v):
    """All text of a message, however it is nested."""
    if isinstance(v, str):
        return v
    if isinstance(v, list):
        return "".join(flat(x) for x in v)
    if isinstance(v, dict):
        return flat(v.get("text", v.get("content", v.get("output", ""))))
    return ""


def script_of(text):
    found = MARK.findall(text)
    return json.loads(found[-1]) if found else []


def step_of(text, results):
    script = script_of(text)
    if len(results) < len(script):
        return script[len(results)]
    return {"say": "The end. " + (results[-1].strip() if results else "ok")}


# ------------------------------------------------------------------------------------------- Anthropic


def anthropic_block(step, tools):
    if "sh" in step and "Bash" in tools:
        return {"type": "tool_use", "id": new_id("toolu_"), "name": "Bash",
                "input": {"command": step["sh"], "description": "a scripted command"}}
    if "write" in step and "Write" in tools:
        return {"type": "tool_use", "id": new_id("toolu_"), "name": "Write",
                "input": {"file_path": step["write"][0], "content": step["write"][1]}}
    if "call" in step and tools:
        return {"type": "tool_use", "id": new_id("toolu_"), "name": step["call"], "input": step.get("with", {})}
    if "read" in step and "Read" in tools:
        return {"type": "tool_use", "id": new_id("toolu_"), "name": "Read", "input": {"file_path": step["read"]}}
    return {"type": "text", "text": step.get("say", "ok")}


def anthropic(body):
    messages = body.get("messages", [])
    results = [flat(c.get("content")) for m in messages if isinstance(m.get("content"), list)
               for c in m["content"] if isinstance(c, dict) and c.get("type") == "tool_result"]
    asked = "".join(flat(m.get("content")) for m in messages if m.get("role") == "user")
    block = anthropic_block(step_of(asked, results), [t.get("name") for t in body.get("tools", [])])
    stop = "tool_use" if block["type"] == "tool_use" else "end_turn"
    base = {"id": new_id("msg_"), "type": "message", "role": "assistant", "model": body.get("model", "m"),
            "stop_sequence": None, "usage": {"input_tokens": 100, "output_tokens": 20}}
    log = {"results": results, "asks": block.get("input") or block.get("text")}
    if not body.get("stream"):
        return "application/json", json.dumps({**base, "content": [block], "stop_reason": stop}).encode(), log
    is_text = block["type"] == "text"
    empty = {**block, "text": ""} if is_text else {**block, "input": {}}
    delta = {"type": "text_delta", "text": block["text"]} if is_text else \
        {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    events = [("message_start", {"message": {**base, "content": [], "stop_reason": None}}),
              ("content_block_start", {"index": 0, "content_block": empty}),
              ("content_block_delta", {"index": 0, "delta": delta}),
              ("content_block_stop", {"index": 0}),
              ("message_delta", {"delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 20}}),
              ("message_stop", {})]
    return "text/event-stream", sse(events), log


def sse(events):
    return "".join(f"event: {t}\ndata: {json.dumps({'type': t, **o})}\n\n" for t, o in events).encode()


# ---------------------------------------------------------------------------------------------- OpenAI

SHELLS = ("exec_command", "shell_command", "shell", "local_shell", "container.exec", "exec")


def openai_item(step, tools):
    by_name = {t.get("name") or t.get("type"): t for t in tools}
    name = next((s for s in SHELLS if s in by_name), None)
    command = step.get("sh")
    if "write" in step:
        path, text = step["write"]
        command = f"printf '%s' {json.dumps(text)} > {path}"
    if command is None or name is None:
        return {"type": "message", "id": new_id("msg_"), "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": step.get("say", "ok"), "annotations": []}]}
    call = {"id": new_id("fc_"), "call_id": new_id("call_"), "status": "completed"}
    if by_name[name].get("type") == "local_shell":
        return {"type": "local_shell_call", **call,
                "action": {"type": "exec", "command": ["bash", "-lc", command], "env": {}}}
    if by_name[name].get("type") == "custom":
        return {"type": "custom_tool_call", **call, "name": name,
                "input": f"const r = await tools.exec_command({{cmd: {json.dumps(command)}}}); text(r.output ?? JSON.stringify(r));"}
    arguments = {"exec_command": {"cmd": command, "yield_time_ms": 5000}, "shell_command": {"command": command}}
    return {"type": "function_call", **call, "name": name,
            "arguments": json.dumps(arguments.get(name, {"command": ["bash", "-lc", command]}))}


def openai(body):
    items = body.get("input") if isinstance(body.get("input"), list) else []
    results = [flat(i.get("output")) for i in items if str(i.get("type", "")).endswith("_call_output")]
    asked = "".join(flat(i.get("content")) for i in items if i.get("role") == "user")
    item = openai_item(step_of(asked, results), body.get("tools", []))
    response = {"id": new_id("resp_"), "object": "response", "created_at": 1, "status": "in_progress",
                "model": body.get("model", "m"), "output": []}
    usage = {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 20,
             "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 120}
    events = [("response.created", {"response": response}),
              ("response.output_item.added", {"output_index": 0, "item": {**item, "status": "in_progress"}}),
              ("response.output_item.done", {"output_index": 0, "item": item}),
              ("response.completed", {"response": {**response, "status": "completed", "output": [item], "usage": usage}})]
    return "text/event-stream", sse([(t, {"sequence_number": n, **o}) for n, (t, o) in enumerate(events)]), \
        {"results": results, "asks": item, "tools": [t.get("name") or t.get("type") for t in body.get("tools", [])]}


# ------------------------------------------------------------------------------------------------ both


def answer(host, head, body):
    """(status, type, bytes, log) for one request."""
    method, target, _ = head.split(b"\r\n")[0].decode("latin-1").split(" ")
    path = target.split("?")[0]
    fields = dict(line.decode("latin-1").split(": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
    fields = {k.lower(): v for k, v in fields.items()}
    log = {"host": host, "method": method, "path": path, "agent": fields.get("user-agent", ""),
           "key": fields.get("x-api-key") or fields.get("authorization", "").removeprefix("Bearer ")}
    try:
        asked = json.loads(body or b"{}")
    except ValueError:
        asked = {}
    if method == "POST" and path.endswith("/messages/count_tokens"):
        return 200, "application/json", b'{"input_tokens":10}', log
    if method == "POST" and path.endswith("/messages"):
        kind, out, more = anthropic(asked)
        return 200, kind, out, {**log, **more}
    if method == "POST" and path.endswith("/responses"):
        kind, out, more = openai(asked)
        return 200, kind, out, {**log, **more}
    if method == "GET" and path.endswith("/models"):
        return 200, "application/json", b'{"object":"list","data":[],"models":[]}', log
    return 404, "application/json", b'{"error":{"type":"not_found_error","message":"not played here"}}', log
