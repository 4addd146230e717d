# SPDX-License-Identifier: Apache-2.0
"""OpenTelemetry's export requests, as small as they can be, for the tests of its receiver."""

import json
import struct


def logs(*bodies, attributes=None):
    pairs = [{"key": k, "value": {"stringValue": v}} for k, v in (attributes or {}).items()]
    records = [{"timeUnixNano": "1700000000000000000", "body": {"stringValue": b}, "attributes": pairs}
               for b in bodies]
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "claude-code"}}]}
    return json.dumps({"resourceLogs": [{"resource": resource, "scopeLogs": [{"logRecords": records}]}]}).encode()


# protobuf, written by hand


def varint(n):
    out = b""
    while n >= 0x80:
        out += bytes([n & 0x7f | 0x80])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    if isinstance(value, str):
        value = value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


def proto_log(body):
    record = varint(1 << 3 | 1) + struct.pack("<Q", 77) + field(5, field(1, body))
    attribute = field(1, "service.name") + field(2, field(1, "codex"))
    return field(1, field(1, field(1, attribute)) + field(2, field(2, record)))
