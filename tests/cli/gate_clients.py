#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real programs through the gate, as people use them: with what they know of proxies, or nothing. What they get from real
servers is in gate_servers.py."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness import Skip, eq, has, lasting, main, test  # noqa: E402
from internet import Internet  # noqa: E402

internet = None
cert = None


def net():
    global internet, cert
    if os.geteuid() != 0:
        raise Skip("a fake internet needs root")
    if internet is None:
        cert = tempfile.NamedTemporaryFile(prefix="vitrine-cert-", suffix=".pem")
        key = cert.name + ".key"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key,
                        "-out", cert.name, "-days", "2", "-subj", "/CN=ok.test", "-addext", "subjectAltName=DNS:ok.test,DNS:evil.test"],
                       check=True, capture_output=True)
        both = Path(cert.name).read_text() + Path(key).read_text()
        os.unlink(key)
        chain = tempfile.NamedTemporaryFile("w", prefix="vitrine-chain-", suffix=".pem", delete=False)
        chain.write(both)
        chain.close()
        internet = Internet(tls=chain.name)
        os.unlink(chain.name)
        os.chmod(cert.name, 0o644)
        lasting.add(internet.pid)
    internet.clear()
    return internet


def ca(box):
    return box.write("ca.pem", Path(cert.name).read_text())


def arrived(n, port, kind="connect"):
    if not n.hits("ok.test", port, kind):
        raise AssertionError(f"nothing arrived at port {port}: {n.lines()}")
    eq(n.hits("evil.test"), [])


@test
def curl_https(box):
    n = net()
    pem = ca(box)
    for extra in ([], ["--noproxy", "*"]):
        n.clear()
        r = box.run("--allow", "ok.test", "--", "curl", "-sS", "-m", "8", "--cacert", pem, *extra, "https://ok.test/secure")
        has(r.out, "/secure")
        arrived(n, 443, "tls")
    r = box.run("--allow", "ok.test", "--", "curl", "-sS", "-m", "8", "--cacert", pem, "--connect-to", "evil.test:443:ok.test:443",
                "https://evil.test/fronted")
    eq(r.rc != 0, True, r.out)
    has(r.err, "TLS asks for evil.test")
    eq([h for h in n.hits(kind="http") if "fronted" in h["head"]], [])


@test
def wget(box):
    box.needs("wget")
    n = net()
    r = box.run("--allow", "ok.test", "--", "wget", "-qO-", "-T", "8", "http://ok.test/wget")
    has(r.out, "/wget")
    r = box.run("--allow", "ok.test", "--", "wget", "-qO-", "-T", "8", "--no-proxy", "--ca-certificate", ca(box), "https://ok.test/wget")
    has(r.out, "/wget")
    arrived(n, 443, "tls")


@test
def git_http(box):
    n = net()
    for extra in ([], ["-c", "http.proxy="]):
        r = box.run("--allow", "ok.test", "--", "git", *extra, "ls-remote", "http://ok.test/repo.git")
        has(r.out, "refs/heads/main")
    r = box.run("--allow", "ok.test", "-e", f"GIT_SSL_CAINFO={ca(box)}", "--", "git", "ls-remote", "https://ok.test/repo.git")
    has(r.out, "refs/heads/main")
    arrived(n, 443, "tls")


@test
def ssh(box):
    box.needs("ssh")
    n = net()
    box.run("--allow", "ok.test:22", "--", "ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5", "-o", "StrictHostKeyChecking=no",
            "ok.test", "true", timeout=15)
    arrived(n, 22, "bytes")
    has(n.hits("ok.test", 22, "bytes")[0]["data"], "SSH-2.0")


@test
def psql(box):
    box.needs("psql")
    n = net()
    box.run("--allow", "ok.test:5432", "--", "psql", "-w", "-h", "ok.test", "-U", "x", "-d", "y", "-c", "select 1",
            env={"PGCONNECT_TIMEOUT": "4"}, timeout=12)
    arrived(n, 5432, "bytes")


@test
def python_with_and_without_proxy(box):
    n = net()
    r = box.run("--allow", "ok.test", "--", "python3", "-c",
                "import os, urllib.request as u; print(u.urlopen('http://ok.test/a', timeout=8).read());"
                "[os.environ.pop(k) for k in list(os.environ) if 'proxy' in k.lower()];"
                "print(u.build_opener(u.ProxyHandler({})).open('http://ok.test/b', timeout=8).read())")
    has(r.out, "/a", "/b")
    arrived(n, 80)


@test(timeout=30)
def node_fetch(box):
    box.needs("node")
    n = net()
    r = box.run("--allow", "ok.test", "--", "node", "-e", "fetch('http://ok.test/node').then(r => r.text()).then(console.log)", timeout=25)
    has(r.out, "/node")
    arrived(n, 80)


@test(timeout=60)
def java(box):
    box.needs("java")
    n = net()
    box.write("Get.java", "public class Get { public static void main(String[] a) throws Exception {"
              "System.out.println(new String(new java.net.URL(\"http://ok.test/java\").openStream().readAllBytes())); } }")
    r = box.run("--allow", "ok.test", "--", "java", "Get.java", timeout=50)
    has(r.out + r.err, "/java")
    arrived(n, 80)


if __name__ == "__main__":
    sys.exit(main())
