# SPDX-License-Identifier: Apache-2.0
"""The far end of coding agents: enough of four APIs (Anthropic Messages, OpenAI Responses and Chat,
Google's) to play a model, and of GitHub's to let Copilot ask one.

What the model does is said in the prompt, so that nothing has to be told to the process that plays it:

    SCRIPT [{"sh": "make"}, {"write": ["a.txt", "hello"]}, {"call": "mcp__x__y", "with": {}}, {"say": "done"}] END

Step N is played when N results of tools are in the conversation; behind the last one the turn ends with a text that
quotes the last result. A step with "unless" ends the turn where a result holds that text already. answer() gets one request and returns the bytes of its answer and what to write to the log.
"""

import itertools
import json
import re

HOSTS = {"api.anthropic.com": "93.184.216.50", "api.openai.com": "93.184.216.51",
         "generativelanguage.googleapis.com": "93.184.216.52", "api.github.com": "93.184.216.53",
         "api.githubcopilot.com": "93.184.216.54", "models.dev": "93.184.216.55", "models.opencode.ai": "93.184.216.59",
         "opencode.ai": "93.184.216.56", "app.factory.ai": "93.184.216.57", "api.factory.ai": "93.184.216.58", "mcp.test": "93.184.216.60"}
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
    if found and '{\\"' in found[-1]:  # OpenCode puts words with blanks into quotes
        found[-1] = found[-1].replace('\\"', '"')
    return json.loads(found[-1]) if found else []


def step_of(text, results):
    script = script_of(text)
    if len(results) < len(script) and not any(script[len(results)].get("unless", "\0") in r for r in results):
        return script[len(results)]
    return {"say": "The end. " + (results[-1].strip() if results else "ok")}


# The tools that agents offer for the same two acts, and what each wants to be told.
SHELL_TOOLS = {
    "Bash": lambda c: {"command": c, "description": "a scripted command"},
    "bash": lambda c: {"command": c, "description": "a scripted command"},
    "run_shell_command": lambda c: {"command": c, "description": "a scripted command"},
    "shell": lambda c: {"command": c},
    "run_commands": lambda c: {"commands": [c]},
    "Execute": lambda c: {"command": c, "riskLevel": "high", "riskLevelReason": "scripted", "timeout": 30},
}
WRITE_TOOLS = {
    "Write": lambda p, t: {"file_path": p, "content": t},
    "write": lambda p, t: {"filePath": p, "content": t},
    "write_file": lambda p, t: {"file_path": p, "content": t},
    "create": lambda p, t: {"path": p, "file_text": t},
    "Create": lambda p, t: {"file_path": p, "content": t},
}


def call_of(step, tools):
    """(name, arguments) of the tool that does this step; None where it is only said."""
    for kind, table in (("sh", SHELL_TOOLS), ("write", WRITE_TOOLS)):
        name = next((t for t in table if t in tools), None) if kind in step else None
        if name:
            said = step[kind] if isinstance(step[kind], list) else [step[kind]]
            return name, table[name](*said)
    shell = next((t for t in SHELL_TOOLS if t in tools), None)
    if "write" in step and shell:
        return shell, SHELL_TOOLS[shell](f"printf '%s' {json.dumps(step['write'][1])} > {step['write'][0]}")
    if "call" in step and tools:
        return step["call"], step.get("with", {})
    if "read" in step and "Read" in tools:
        return "Read", {"file_path": step["read"]}
    return None


# ------------------------------------------------------------------------------------------- Anthropic


def anthropic_block(step, tools):
    call = call_of(step, tools)
    if call:
        return {"type": "tool_use", "id": new_id("toolu_"), "name": call[0], "input": call[1]}
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
    log = {"results": results, "asks": block.get("input") or block.get("text"), "tools": [t.get("name") for t in body.get("tools", [])]}
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
    call = call_of(step, [n for n in by_name if n not in SHELLS])
    if call:
        return {"type": "function_call", "id": new_id("fc_"), "call_id": new_id("call_"), "status": "completed",
                "name": call[0], "arguments": json.dumps(call[1])}
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
              *[("response.output_text.delta", {"output_index": 0, "content_index": 0, "item_id": item["id"], "delta": c["text"]})
                for c in item.get("content", [])],
              ("response.output_item.done", {"output_index": 0, "item": item}),
              ("response.completed", {"response": {**response, "status": "completed", "output": [item], "usage": usage}})]
    return "text/event-stream", sse([(t, {"sequence_number": n, **o}) for n, (t, o) in enumerate(events)]), \
        {"results": results, "asks": item, "tools": [t.get("name") or t.get("type") for t in body.get("tools", [])]}


def chat(body):
    """Chat completions, the elder of OpenAI's two; GitHub's models speak it."""
    messages = body.get("messages", [])
    results = [flat(m.get("content")) for m in messages if m.get("role") == "tool"]
    asked = "".join(flat(m.get("content")) for m in messages if m.get("role") == "user")
    tools = [t.get("function", t).get("name") for t in body.get("tools") or []]
    step = step_of(asked, results)
    call = call_of(step, tools)
    text = None if call else step.get("say", "ok")
    calls = [{"index": 0, "id": new_id("call_"), "type": "function",
              "function": {"name": call[0], "arguments": json.dumps(call[1])}}] if call else None
    message = {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}
    end = "tool_calls" if calls else "stop"
    base = {"id": new_id("chatcmpl-"), "created": 1, "model": body.get("model", "m")}
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    log = {"results": results, "asks": call or text, "tools": tools}
    if not body.get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": end}
        return "application/json", json.dumps({**base, "object": "chat.completion", "choices": [choice], "usage": usage}).encode(), log
    base["object"] = "chat.completion.chunk"
    chunks = [{**base, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
              {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": end}], "usage": usage}]
    return "text/event-stream", b"".join(b"data: %s\n\n" % json.dumps(c).encode() for c in chunks) + b"data: [DONE]\n\n", log


# ---------------------------------------------------------------------------------------------- Google


def google(body, is_stream):
    contents = body.get("contents", [])
    parts = [p for c in contents for p in c.get("parts", [])]
    answers = [p["functionResponse"].get("response", {}) for p in parts if "functionResponse" in p]
    results = [flat(a) or str(a.get("error", "")) for a in answers]
    asked = "".join(p.get("text", "") for c in contents if c.get("role") == "user" for p in c.get("parts", []))
    tools = [f.get("name") for t in body.get("tools", []) for f in t.get("functionDeclarations", [])]
    step = step_of(asked, results)
    call = call_of(step, tools)
    part = {"functionCall": {"name": call[0], "args": call[1]}} if call else {"text": step.get("say", "ok")}
    if body.get("generationConfig", {}).get("responseMimeType") == "application/json":  # which model shall do this?
        part = {"text": json.dumps({"reasoning": "short", "model_choice": "flash", "complexity_reasoning": "short", "complexity_score": 1})}
    out = json.dumps({"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
                      "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120}}).encode()
    log = {"results": results, "asks": part, "tools": tools}
    return ("text/event-stream", b"data: %s\n\n" % out, log) if is_stream else ("application/json", out, log)


# ---------------------------------------------------------------------------------------------- GitHub

COPILOT_MODEL = {
    "id": "gpt-5-mini", "name": "A model", "object": "model", "vendor": "x", "version": "1", "preview": False,
    "model_picker_enabled": True, "policy": {"state": "enabled"}, "billing": {"is_premium": False, "multiplier": 0},
    "supported_endpoints": ["/chat/completions"],
    "capabilities": {"family": "gpt-5-mini", "object": "model_capabilities", "type": "chat", "tokenizer": "o200k_base",
                     "limits": {"max_context_window_tokens": 128000, "max_output_tokens": 16000, "max_prompt_tokens": 100000},
                     "supports": {"tool_calls": True, "streaming": True, "parallel_tool_calls": True}}}


REPOSITORY = {"id": "R_1", "name": "app", "nameWithOwner": "me/app", "owner": {"login": "me", "id": "U_1"}, "hasIssuesEnabled": True,
              "description": "", "isPrivate": False, "viewerPermission": "ADMIN", "parent": None, "isFork": False, "url": "https://github.com/me/app",
              "defaultBranchRef": {"name": "main"}, "mergeCommitAllowed": True, "rebaseMergeAllowed": True, "squashMergeAllowed": True,
              "hasWikiEnabled": False, "pullRequests": {"nodes": [], "totalCount": 0}, "pullRequestTemplates": [], "issueTemplates": []}


def graphql(asked):
    """As much as `gh pr create` asks."""
    query, given = asked.get("query", ""), asked.get("variables", {})
    if "createPullRequest" in query:
        return {"createPullRequest": {"pullRequest": {"id": "PR_7", "url": "https://github.com/me/app/pull/7"}}}, {"made": given["input"]}
    return {"repository": REPOSITORY, "repo_000": REPOSITORY, "viewer": {"login": "octo"}}, {"query": query, "given": given}


def github(host, path):
    """What Copilot asks about its user before it asks the model; None: not known."""
    if path == "/copilot_internal/user":
        return {"login": "octo", "copilot_plan": "individual", "access_type_sku": "free", "chat_enabled": True,
                "cli_enabled": True, "organization_list": [],
                "endpoints": {"api": "https://api.githubcopilot.com", "telemetry": "https://api.githubcopilot.com"}}
    if path == "/user":
        return {"login": "octo", "id": 1, "type": "User"}
    if path == "/models":
        return {"object": "list", "data": [COPILOT_MODEL]}
    if path == "/api/cli/whoami":
        return {"userId": "user_1", "orgId": "org_1"}
    return None


# ------------------------------------------------------------------------------------------------- MCP


def mcp(asked):
    """A remote server of one tool that gives back what it is told; None: a notification."""
    method, params = asked.get("method"), asked.get("params", {})
    if method == "initialize":
        result = {"protocolVersion": params.get("protocolVersion"), "capabilities": {"tools": {}},
                  "serverInfo": {"name": "far", "version": "1"}}
    elif method == "tools/list":
        schema = {"type": "object", "properties": {"text": {"type": "string"}}}
        result = {"tools": [{"name": "echo", "description": "says it again", "inputSchema": schema}]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": "from afar: " + params["arguments"]["text"]}]}
    else:
        result = {}
    return {"jsonrpc": "2.0", "id": asked["id"], "result": result} if "id" in asked else None


# ------------------------------------------------------------------------------------------------- all


def answer(host, head, body):
    """(status, type, bytes, log) for one request."""
    method, target, _ = head.split(b"\r\n")[0].decode("latin-1").split(" ")
    path = target.split("?")[0]
    fields = dict(line.decode("latin-1").split(": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
    fields = {k.lower(): v for k, v in fields.items()}
    log = {"host": host, "method": method, "path": path, "agent": fields.get("user-agent", ""),
           "key": (fields.get("authorization") or fields.get("x-goog-api-key") or fields.get("x-api-key") or "").split(" ")[-1]}
    try:
        asked = json.loads(body or b"{}")
    except ValueError:
        asked = {}
    if path == "/graphql":
        out, more = graphql(asked)
        return 200, "application/json", json.dumps({"data": out}).encode(), {**log, **more}
    if path == "/mcp":
        out = mcp(asked) if method == "POST" else None
        log = {**log, "call": asked.get("method", ""), "said": asked.get("params", {}).get("arguments")}
        return (200 if out else 202 if method == "POST" else 405), "application/json", json.dumps(out).encode() if out else b"", log
    if method == "POST" and path.endswith("/messages/count_tokens"):
        return 200, "application/json", b'{"input_tokens":10}', log
    if method == "POST" and path.endswith("/messages"):
        kind, out, more = anthropic(asked)
        return 200, kind, out, {**log, **more}
    if method == "POST" and path.endswith("/responses"):
        kind, out, more = openai(asked)
        return 200, kind, out, {**log, **more}
    if method == "POST" and path.endswith("/chat/completions"):
        kind, out, more = chat(asked)
        return 200, kind, out, {**log, **more}
    if method == "POST" and "GenerateContent" in path or path.endswith(":generateContent"):
        kind, out, more = google(asked, "stream" in path)
        return 200, kind, out, {**log, **more}
    if host.endswith(("github.com", "githubcopilot.com", "factory.ai")) and github(host, path):
        return 200, "application/json", json.dumps(github(host, path)).encode(), log
    if method == "GET" and path.endswith("/models"):
        return 200, "application/json", b'{"object":"list","data":[],"models":[]}', log
    return 404, "application/json", b'{"error":{"type":"not_found_error","message":"not played here"}}', log
