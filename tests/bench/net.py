#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the gate costs, against the same client without a sandbox; taken in turns, so that what else the machine does
falls on both.

    python3 tests/bench/net.py [--vitrine build/vitrine] [--rounds 5] [--seconds 1] [--json]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--vitrine", default=HERE.parent.parent / "build" / "vitrine")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=1)
    p.add_argument("--json", action="store_true")
    a = p.parse_args()
    with tempfile.TemporaryDirectory(prefix="vitrine-net-bench-") as tmp:
        work = Path(tmp, "home", "work")
        work.mkdir(parents=True)
        tool = work / "net_bench"
        subprocess.run(["cc", "-O2", "-static", "-o", tool, HERE / "net_bench.c"], check=True)
        env = {"PATH": os.environ["PATH"], "HOME": str(work.parent), "XDG_STATE_HOME": str(Path(tmp, "state"))}
        port = "18765"
        server = subprocess.Popen([tool, "serve", port], stdout=subprocess.PIPE, start_new_session=True)
        server.stdout.readline()
        host = "127.0.0.1"

        def outside(*words):
            r = subprocess.run([tool, *words], cwd=work, env=env, capture_output=True, timeout=120)
            return float(r.stdout)

        def inside(*words):
            argv = [a.vitrine, "run", "--allow", f"{host}:{port}", "--", tool, *words, "proxy"]
            r = subprocess.run(argv, cwd=work, env=env, capture_output=True, timeout=120, stdin=subprocess.DEVNULL)
            if r.returncode:
                sys.exit(f"{argv}: {r.stderr.decode()}")
            return float(r.stdout)

        found = {}
        try:
            for name, words in (("throughput_mb_s", ("send", host, port, "1000")),
                                ("connections_s", ("rate", host, port, str(a.seconds), "8")),
                                ("ping_us", ("ping", host, port, "5000"))):
                pairs = [(outside(*words), inside(*words)) for _ in range(a.rounds)]
                found[name] = {"direct": statistics.median(x for x, _ in pairs), "gate": statistics.median(y for _, y in pairs),
                               "ratio": round(statistics.median(y / x for x, y in pairs), 3)}
        finally:
            os.killpg(server.pid, 9)
            server.wait()
    if a.json:
        print(json.dumps(found))
    else:
        for name, v in found.items():
            print(f"{name:18} direct {v['direct']:10.1f}   gate {v['gate']:10.1f}   gate/direct {v['ratio']}")


if __name__ == "__main__":
    main()
