"""Answers of HTTP that are plain, and those that are not."""

from __future__ import annotations

import contextlib
import gc
import http.client
import io
import os
import random
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bkb._errors import InvalidRequest, Unavailable
from bkb._line import Line, _plain
from bkb._transport import Endpoint, FixedDialer, Transport

BODY = b'{"name": "studies/a"}'
HOSTS = {"fe80::1%eth0": "[fe80::1]:80", "bücher.example": "xn--bcher-kva.example:80"}
PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 21\r\nTuner-Version: v0.1.0\r\n\r\n" + BODY


class Server:
    """Answers each request on one connection with the next of some bytes."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.requests: list[bytes] = []

    def answer(self, *answers: bytes, slowly: bool = False, stay: bool = True) -> None:
        """Begin to serve."""

        def serve() -> None:
            connection, _ = self.listener.accept()
            with connection:
                for a in answers:
                    self.requests.append(self.read(connection))
                    for piece in [a[i : i + 1] for i in range(len(a))] if slowly else [a]:
                        connection.sendall(piece)
                if stay:
                    connection.recv(1)

        threading.Thread(target=serve, daemon=True).start()

    @staticmethod
    def read(connection: socket.socket) -> bytes:
        data = b""
        while b"\r\n\r\n" not in data:
            data += connection.recv(65536)
        head, _, body = data.partition(b"\r\n\r\n")
        (length,) = [int(f[16:]) for f in head.split(b"\r\n") if f.startswith(b"Content-Length: ")]
        while len(body) < length:
            body += connection.recv(65536)
        return head + b"\r\n\r\n" + body


@pytest.fixture
def server() -> Iterator[Server]:
    s = Server()
    yield s
    s.listener.close()


@pytest.fixture
def line(server: Server) -> Iterator[Line]:
    made = Line(http.client.HTTPConnection("127.0.0.1", server.port, timeout=5), "secret")
    made.open(5)
    yield made
    made.close()


def test_the_request(server: Server, line: Line) -> None:
    server.answer(PLAIN)
    answer = line.post("/a", b"{}")
    assert (answer.status, answer.data) == (200, BODY)
    assert answer.fields["tuner-version"] == "v0.1.0"
    assert server.requests == [
        b"POST /a HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAccept-Encoding: gzip\r\n"
        b"Content-Type: application/json\r\nAuthorization: Bearer secret\r\n"
        b"Content-Length: 2\r\n\r\n{}" % server.port
    ]


@pytest.mark.parametrize("slowly", [False, True])
def test_answers_that_are_not_plain(server: Server, line: Line, slowly: bool) -> None:
    """Each comes between plain ones, so that no byte of one is taken for the next."""
    odd = [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n"
        + BODY[:5]
        + b"\r\n10;x=y\r\n"
        + BODY[5:]
        + b"\r\n0\r\nTrailer: a\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" + PLAIN,
        b"HTTP/1.1 200 OK\r\nVary: a\r\nVary: b\r\nContent-Length: 21\r\n\r\n" + BODY,
        b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 21\r\n\r\n" + BODY,
        b"HTTP/1.1 200 OK\r\nContent-Length: 21\r\nX: " + b"a" * 30000 + b"\r\n\r\n" + BODY,
    ]
    answers = [x for o in odd for x in (PLAIN, o)] + [PLAIN]
    server.answer(*answers, slowly=slowly)
    for _ in answers:
        answer = line.post("/a", b"{}")
        assert (answer.status, answer.data) == (200, BODY)
        assert line.opened


@pytest.mark.parametrize(
    "answer",
    [
        PLAIN.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"),
        PLAIN.replace(b"\r\n\r\n", b"\r\nConnection: Keep-Alive, Close\r\n\r\n"),
        PLAIN + b"HTTP/1.1 200 OK\r\n",
        PLAIN.replace(b"HTTP/1.1", b"HTTP/1.0"),
        b"HTTP/1.1 200 OK\r\n\r\n" + BODY,
    ],
)
def test_the_last_answer_of_a_connection(server: Server, line: Line, answer: bytes) -> None:
    server.answer(answer, stay=False)
    assert line.post("/a", b"{}").data == BODY
    assert not line.opened


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"", ConnectionResetError),
        (PLAIN[:-1], http.client.IncompleteRead),
        (b"SSH-2.0\r\n", http.client.BadStatusLine),
    ],
)
def test_no_answer(server: Server, line: Line, answer: bytes, error: type[Exception]) -> None:
    server.answer(answer, stay=False)
    with pytest.raises((error, ConnectionResetError)) as caught:
        line.post("/a", b"{}")
    # From Python 3.13 on, a response that is not closed complains when it is collected.
    found = [o for o in gc.get_objects() if type(o) is http.client.HTTPResponse]
    assert all(r.closed for r in found), caught


def test_a_refusal_before_the_body_was_read(server: Server, line: Line) -> None:
    def serve() -> None:
        connection, _ = server.listener.accept()
        connection.recv(10)
        connection.sendall(PLAIN.replace(b"200 OK", b"429 Too Many Requests"))
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(1 << 20):
            pass
        connection.close()

    threading.Thread(target=serve, daemon=True).start()
    assert line.post("/a", b"x" * (8 << 20)).status == 429


def test_plain_heads_are_read_as_the_standard_library_does() -> None:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    rng = random.Random(seed)
    statuses = ["1.1 200 OK", "1.1 404", "1.0 200 OK", "1.1 102", "1.1 204 No Content"]
    choices: list[Callable[[], bytes]] = [
        lambda: b"Content-Length: %d" % rng.randrange(4),
        lambda: b"content-length:%d " % rng.randrange(4),
        lambda: b"X-%d:\t a: b \t" % rng.randrange(3),
        lambda: rng.choice([b" folded", b"Transfer-Encoding: chunked", b"No colon", b": no name"]),
        lambda: b"Date: Sun, 22 Nov 2026 10:00:00 GMT",
    ]
    plain = 0
    for _ in range(3000):
        lines = [rng.choice(choices)() for _ in range(rng.randrange(1, 5))]
        status = f"HTTP/{rng.choice(statuses)}".encode()
        head = b"\r\n".join([status, *lines]) + b"\r\n\r\n"
        read = _plain(head + b"abcd")
        if read is None:
            continue
        plain += 1

        class Fake:
            def makefile(self, mode: str, head: bytes = head) -> Any:
                return io.BytesIO(head + b"abcd")

        response = http.client.HTTPResponse(Fake(), method="POST")  # type: ignore[arg-type]
        response.begin()
        skip, status_, fields = read
        assert skip == len(head)
        assert status_ == response.status
        assert response.read() == b"abcd"[: int(fields["content-length"])]
        for name, value in response.getheaders():
            assert fields[name.lower()] == value.strip(" \t")
    assert plain > 100


@pytest.mark.parametrize("token", ["a\nb", "a\n", "a b", "ä", "a\r\nX: y"])
def test_tokens_that_http_cannot_carry(token: str) -> None:
    with pytest.raises(InvalidRequest, match="token has a blank"):
        Endpoint("localhost:1", token=token)


def test_an_address_in_the_field_host() -> None:
    for host, written in HOSTS.items():
        line = Line(http.client.HTTPConnection(host, 8080), None)
        assert line._head.startswith(f"Host: {written}80\r\n")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_fork_while_another_thread_waits(server: Server) -> None:
    """The child closes the connections of threads that it does not have."""
    waiting = threading.Event()

    def serve() -> None:
        connection, _ = server.listener.accept()
        server.read(connection)
        connection.sendall(PLAIN)
        server.read(connection)
        waiting.set()
        connection.recv(1)

    threading.Thread(target=serve, daemon=True).start()
    endpoint = Endpoint(f"127.0.0.1:{server.port}")
    transport = Transport(FixedDialer(endpoint))

    def work() -> None:
        transport.call("Fast", {})
        with contextlib.suppress(Unavailable):
            transport.call("Slow", {}, retry_for=0)

    threading.Thread(target=work, daemon=True).start()
    assert waiting.wait(5)
    time.sleep(0.2)  # so that the thread reads
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    until = time.monotonic() + 10
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        if time.monotonic() > until:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            pytest.fail("the child hangs")
        time.sleep(0.01)
