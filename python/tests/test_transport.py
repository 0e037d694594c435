"""The rules of repetition, against a server that answers what a test wants."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import bkb
from bkb import _transport
from bkb._binary import find_binary

Answer = Callable[[BaseHTTPRequestHandler, dict[str, Any]], None]


def status(
    code: int,
    reason: str | None = None,
    http: int = 503,
    retry: str = "",
) -> Answer:
    details: list[dict[str, Any]] = []
    if reason:
        kind = "type.googleapis.com/google.rpc.ErrorInfo"
        details.append({"@type": kind, "reason": reason, "domain": "bkbtuner"})
    if retry:
        details.append({"@type": "x/google.rpc.RetryInfo", "retryDelay": retry})
    body = {"code": code, "message": "as scripted", "details": details}
    return lambda h, _: reply(h, http, body)


def reply(h: BaseHTTPRequestHandler, code: int, body: Any, **headers: str) -> None:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    h.send_response(code)
    for k, v in headers.items():
        h.send_header(k.replace("_", "-"), v)
    h.send_header("Content-Length", str(len(data)))
    h.end_headers()
    h.wfile.write(data)


def ok(h: BaseHTTPRequestHandler, _: dict[str, Any]) -> None:
    reply(h, 200, {})


def cut(h: BaseHTTPRequestHandler, _: dict[str, Any]) -> None:
    h.close_connection = True
    h.connection.shutdown(socket.SHUT_RDWR)


class Scripted:
    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.seen: list[dict[str, Any]] = []
        self.headers: list[Any] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.seen.append(body)
                outer.headers.append(self.headers)
                (outer.answers.pop(0) if outer.answers else ok)(self, body)

            def log_message(self, *args: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.address = f"127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()


def certificate(folder: Path) -> tuple[str, str]:
    """Make a certificate for localhost, and return its file and that of its key."""
    cert, key = str(folder / "cert.pem"), str(folder / "key.pem")
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-days", "2", "-subj", "/CN=localhost", "-keyout", key, "-out", cert]
    command += ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run(command, check=True, capture_output=True)
    os.chmod(key, 0o600)
    return cert, key


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    s = Scripted()
    yield s
    s.http.shutdown()
    s.http.server_close()


def transport(s: Scripted, retry_for: float = 5.0) -> _transport.Transport:
    return bkb.connect(s.address, retry_for=retry_for).transport


@pytest.mark.parametrize(
    "first",
    [cut, status(14), status(14, "UNAVAILABLE"), status(2, "UNKNOWN", 500), status(2, http=500)],
)
def test_repeated_with_the_same_request_id(scripted: Scripted, first: Answer) -> None:
    scripted.answers = [first, first]
    assert transport(scripted).call("Tell", {"name": "n"}, writes=True) == {}
    assert len(scripted.seen) == 3
    assert len({m["requestId"] for m in scripted.seen}) == 1


@pytest.mark.parametrize("code, reason", [(3, "INVALID"), (5, "NOT_FOUND"), (9, "LEASE_LOST")])
def test_not_repeated(scripted: Scripted, code: int, reason: str) -> None:
    scripted.answers = [status(code, reason, 400)]
    with pytest.raises(bkb.Error) as e:
        transport(scripted).call("Tell", {}, writes=True)
    assert (e.value.reason, len(scripted.seen)) == (reason, 1)


def test_limits_are_waited_for_as_long_as_they_say(scripted: Scripted) -> None:
    scripted.answers = [status(8, "EXHAUSTED", 429, "0.01s")]
    assert transport(scripted).call("Ask", {}, writes=True) == {}
    scripted.answers = [status(8, "EXHAUSTED", 429)]
    with pytest.raises(bkb.LimitReached):
        transport(scripted).call("Ask", {}, writes=True)
    scripted.answers = [status(8, "EXHAUSTED", 429, "3600s")]
    with pytest.raises(bkb.LimitReached) as e:
        transport(scripted).call("Ask", {}, writes=True)
    assert e.value.retry_after == 3600


def test_what_the_exception_says_of_a_change(scripted: Scripted) -> None:
    t = transport(scripted, 0.05)
    cases: list[tuple[list[Answer], type[bkb.Error]]] = [
        ([status(14, "UNAVAILABLE")] * 50, bkb.Unavailable),  # nothing happened
        ([status(14)] * 50, bkb.MayHaveHappened),
        ([cut] + [status(14, "UNAVAILABLE")] * 50, bkb.MayHaveHappened),
        ([cut, status(5, "NOT_FOUND", 404)], bkb.NotFound),  # settles the first try too
    ]
    for answers, kind in cases:
        scripted.answers = list(answers)
        with pytest.raises(bkb.Error) as e:
            t.call("Tell", {}, writes=True)
        assert type(e.value) is kind, e.value
    scripted.answers = [cut] * 50
    with pytest.raises(bkb.Unavailable):
        t.call("GetStudy", {})  # reading changes nothing


def test_the_next_server_when_one_is_gone(scripted: Scripted) -> None:
    def dies(h: BaseHTTPRequestHandler, m: dict[str, Any]) -> None:
        first.http.shutdown()
        first.http.server_close()
        cut(h, m)

    first = Scripted()
    first.answers = [ok, dies]
    servers = f"{first.address}, {scripted.address}"
    t = bkb.connect(servers, retry_for=5.0).transport
    for _ in range(3):
        assert t.call("Tell", {"name": "n"}, writes=True) == {}
    assert (len(first.seen), len(scripted.seen)) == (2, 2)
    assert first.seen[1] == scripted.seen[0]  # the same request, with its id
    scripted.answers = [lambda h, _: reply(h, 200, {"result": {"uid": "1"}})]
    assert list(t.stream("Watch", {})) == [{"uid": "1"}]
    watching = bkb.connect(servers).transport
    scripted.answers = [lambda h, _: reply(h, 200, {"result": {"uid": "2"}})]
    with pytest.raises(_transport.Failure):
        list(watching.stream("Watch", {}))
    assert list(watching.stream("Watch", {})) == [{"uid": "2"}]
    again = bkb.connect(servers, retry_for=5.0)
    assert again.transport.call("Ask", {}, writes=True) == {}
    assert repr(again) == f"<bkb.Client of {first.address},{scripted.address}>"
    with pytest.raises(bkb.InvalidRequest, match="host:port"):
        bkb.connect(f"{first.address},nowhere")


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="Linux has this option")
def test_a_machine_without_power_is_noticed(scripted: Scripted) -> None:
    t = transport(scripted)
    t.call("GetStudy", {})
    sock = t._local.line._connection.sock
    assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 20_000
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
    assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 10


def test_no_server() -> None:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        client = bkb.connect(f"127.0.0.1:{s.getsockname()[1]}", retry_for=0.1)
        with pytest.raises(bkb.Unavailable, match="cannot reach 127.0.0.1"):
            client.create_study("s", {"x": bkb.Float(0, 1)}, minimize="loss")


@pytest.mark.parametrize("tls", [False, True])
def test_a_port_that_speaks_grpc(tmp_path: Path, tls: bool) -> None:
    if tls and shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    options, ca = [], None
    if tls:
        ca, key = certificate(tmp_path)
        tokens = str(tmp_path / "tokens.json")
        add = [find_binary(), "token", "add", "--tokens", tokens, "--scope", "admin"]
        subprocess.run(add, check=True, capture_output=True)
        options = ["--cert", ca, "--key", key, "--tokens", tokens]
    serve = [find_binary(), "--db", str(tmp_path / "t.db"), "serve", "--listen", "127.0.0.1:0"]
    serve += ["--until-eof", "--ready-file", str(tmp_path / "ready"), *options]
    server = subprocess.Popen(serve, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        while not (tmp_path / "ready").exists():
            assert server.poll() is None
            time.sleep(0.01)
        address = json.loads((tmp_path / "ready").read_text())["grpc"]
        client = bkb.connect(address, ca=ca)
        begin = time.monotonic()
        with pytest.raises(bkb.Unavailable, match="that port speaks gRPC, give .*serve --http"):
            client.create_study("s", {"x": bkb.Float(0, 1)}, minimize="loss")
        assert time.monotonic() - begin < 20  # and not retry_for, a minute
    finally:
        assert server.stdin is not None
        server.stdin.close()
        server.wait(30)


def test_connections_are_closed(tmp_path: Path) -> None:
    script = """
        import asyncio, gc, threading, bkb
        study = bkb.create_study("s", {"x": bkb.Float(0, 1)}, minimize="loss", db="t.db")
        study.optimize(lambda trial: trial["x"], n_trials=6, n_jobs=3)
        thread = threading.Thread(target=study.ask)
        thread.start()
        thread.join()
        gc.collect()
        asyncio.run(asyncio.to_thread(study.ask))
        print(study.status.completed)
    """
    done = subprocess.run(
        [sys.executable, "-W", "always::ResourceWarning", "-c", textwrap.dedent(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == ("6\n", "")


def test_idle_connection_that_the_server_closed(scripted: Scripted) -> None:
    def last(h: BaseHTTPRequestHandler, m: dict[str, Any]) -> None:
        ok(h, m)
        h.close_connection = True  # without a header that says so

    scripted.answers = [last]
    t = transport(scripted, 0.0)
    t.call("GetStudy", {})
    t.call("GetStudy", {})
    assert len(scripted.seen) == 2


def test_gzip_and_token(scripted: Scripted) -> None:
    big = gzip.compress(json.dumps({"a": "x" * 10000}).encode())
    scripted.answers = [lambda h, _: reply(h, 200, big, Content_Encoding="gzip")]
    client = bkb.connect(scripted.address, token="secret")
    assert client.transport.call("GetStudy", {}) == {"a": "x" * 10000}
    assert scripted.headers[0]["Authorization"] == "Bearer secret"
    assert scripted.headers[0]["Content-Type"] == "application/json"


def test_another_major_version_is_refused(scripted: Scripted) -> None:
    scripted.answers = [lambda h, _: reply(h, 200, {}, Tuner_Version="v7.1.0")]
    with pytest.raises(bkb.Unsupported, match="upgrade the package"):
        transport(scripted).call("GetStudy", {})
    scripted.answers = [lambda h, _: reply(h, 200, {}, Tuner_Version="(devel)")]
    transport(scripted).call("GetStudy", {})


@pytest.mark.parametrize(
    "address, options, said",
    [
        ("nowhere", {}, "host:port"),
        ("ftp://h:1", {}, "host:port"),
        ("http://example.org:80", {"token": "t"}, "TLS"),
        ("http://127.0.0.1:80", {"ca": "ca.pem"}, "no TLS"),
        ("https://h:1", {"cert": "c.pem"}, "belong together"),
    ],
)
def test_addresses_that_are_refused(address: str, options: dict[str, str], said: str) -> None:
    with pytest.raises(bkb.InvalidRequest, match=said):
        bkb.connect(address, **options)  # type: ignore[arg-type]


def test_tls_is_the_default_elsewhere() -> None:
    assert _transport.Endpoint("example.org:443").tls
    assert not _transport.Endpoint("127.0.0.1:7070").tls
    assert _transport.Endpoint("127.0.0.1:7070", ca="ca.pem").tls
    assert _transport.Endpoint("http://[::1]:80").host == "::1"


def test_each_thread_has_its_own_connection(scripted: Scripted) -> None:
    t = transport(scripted)
    used: list[object] = []  # kept, because an id may be that of an earlier object

    def work() -> None:
        t.call("GetStudy", {})
        used.append(t._local.line)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for th in threads:
        th.start()
    for th in threads:
        th.join()
    t.call("GetStudy", {})
    used.append(t._local.line)
    assert len(scripted.seen) == 4 and len({id(c) for c in used}) == 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_child_makes_its_own_connection(own: bkb.Client, name: str) -> None:
    study = own.create_study(name, {"x": bkb.Float(0, 1)}, minimize="loss", max_trials=12)
    children = []
    for _ in range(3):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                study.optimize(lambda trial: trial["x"], n_trials=3)
                status = 0
            finally:
                os._exit(status)
        children.append(pid)
    study.optimize(lambda trial: trial["x"], n_trials=3)
    assert [os.waitstatus_to_exitcode(os.waitpid(c, 0)[1]) for c in children] == [0, 0, 0]
    assert study.status.completed == 12


def test_a_file_that_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "t.db").write_bytes(b"not a store" * 1000)
    with pytest.raises(bkb.Unavailable, match="its log"):
        bkb.open_file(tmp_path / "t.db").load_study("s")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_tls(tmp_path: Path, name: str) -> None:
    cert, key = certificate(tmp_path)
    tokens = str(tmp_path / "tokens.json")
    program = find_binary()
    add = [program, "token", "add", "--tokens", tokens, "--scope", "admin"]
    token = subprocess.check_output(add, text=True).strip()
    serve = [program, "--db", str(tmp_path / "t.db"), "serve", "--listen", "127.0.0.1:0"]
    serve += ["--http", "127.0.0.1:0", "--cert", cert, "--key", key, "--tokens", tokens]
    serve += ["--until-eof", "--ready-file", str(tmp_path / "ready")]
    server = subprocess.Popen(serve, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        while not (tmp_path / "ready").exists():
            assert server.poll() is None
            time.sleep(0.01)
        address = json.loads((tmp_path / "ready").read_text())["http"]
        client = bkb.connect(address, ca=cert, token=token)
        study = client.create_study(name, {"x": bkb.Float(0, 1)}, minimize="loss")
        study.optimize(lambda trial: trial["x"], n_trials=3)
        assert next(study.watch()).position == 1
        # What waiting does not change is not tried again for retry_for.
        start = time.monotonic()
        with pytest.raises(bkb.Unavailable, match="give ca="):
            bkb.connect(f"https://{address}", token=token).load_study(name)
        with pytest.raises(bkb.Denied):
            bkb.connect(address, ca=cert, token="wrong").load_study(name)
        with pytest.raises(bkb.Unsupported, match="HTTPS"):
            bkb.connect(f"http://{address}").load_study(name)
        assert time.monotonic() - start < 30
    finally:
        assert server.stdin is not None
        server.stdin.close()
        server.wait(20)


def test_an_answer_cut_off_is_asked_for_again(scripted: Scripted) -> None:
    scripted.answers = [lambda h, _: reply(h, 200, b'{"na')]
    assert transport(scripted).call("Tell", {}, writes=True) == {}
    first, second = scripted.seen
    assert first == second


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no timers of signals")
def test_a_call_in_a_signal_handler(scripted: Scripted) -> None:
    """The call that it interrupts is sent again, as its connection is used."""
    t = transport(scripted)
    t.call("GetStudy", {})

    def slow(h: BaseHTTPRequestHandler, _: dict[str, Any]) -> None:
        time.sleep(0.5)
        reply(h, 200, {"slow": 1})

    scripted.answers = [slow]
    inside: list[Any] = []

    def handle(*_: Any) -> None:
        inside.append(t.call("GetStudy", {"in": "handler"}))

    before = signal.signal(signal.SIGALRM, handle)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        answer = t.call("GetStudy", {"in": "main"})
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert inside == [{}]
    assert answer in ({}, {"slow": 1})
