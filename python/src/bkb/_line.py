"""One connection of HTTP/1.1, on which requests follow each other.

The standard library opens the connection, and reads every answer that is not plain. Its
parser of headers is that of e-mail, which took a third of a call's CPU, so plain answers are
read here.
"""

from __future__ import annotations

import contextlib
import http.client
import io
import socket
from collections.abc import Mapping
from typing import NamedTuple

BUFFER = 1 << 16

# A machine that is gone, as without power, is noticed within 20 s, as the Go client notices it.
DEAD = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 2, "TCP_USER_TIMEOUT": 20_000}


class Answer(NamedTuple):
    """Answer to a request. The names of its fields are in lower case."""

    status: int
    fields: Mapping[str, str]
    data: bytes


class Line:
    """Connection that sends the requests of one thread."""

    def __init__(self, connection: http.client.HTTPConnection, token: str | None) -> None:
        self.opened = self._busy = False
        self._connection = connection
        self._reader: io.BufferedReader | None = None
        authorization = f"Authorization: Bearer {token}\r\n" if token else ""
        self._head = (
            f"Host: {_authority(connection)}\r\nAccept-Encoding: gzip\r\n"
            f"Content-Type: application/json\r\n{authorization}Content-Length: "
        )

    def open(self, timeout: float) -> None:
        """Connect. A later request that takes longer than timeout seconds fails."""
        self._connection.connect()
        sock = self._connection.sock
        sock.settimeout(timeout)
        if sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for option, value in DEAD.items():
                if hasattr(socket, option):
                    sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
        self.opened = True

    def close(self) -> None:
        """Close the connection, which cannot be used again."""
        self.opened = False
        if self._reader is not None:
            # Closing the reader itself waits for a thread that reads, or forever in a child
            # process, which does not have that thread.
            self._reader.raw.close()
        self._connection.close()

    def post(self, path: str, body: bytes) -> Answer:
        """Send a request and return its answer.

        Raise OSError or http.client.HTTPException if there is none, and
        http.client.CannotSendRequest in a signal handler that interrupted a request.
        """
        if self._busy:
            raise http.client.CannotSendRequest("a signal handler made a call during a call")
        self._busy = True
        try:
            return self._post(path, body)
        finally:
            self._busy = False

    def _post(self, path: str, body: bytes) -> Answer:
        head = f"POST {path} HTTP/1.1\r\n{self._head}{len(body)}\r\n\r\n".encode("latin-1")
        # A server that refuses a request may answer before it read all of the body.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._connection.sock.sendall(head + body)
        reader = self._reader
        if reader is None:
            reader = io.BufferedReader(self._connection.sock.makefile("rb", 0), BUFFER)
        read = reader.peek()
        plain = _plain(read)
        if plain is None:
            self._reader = None
            return self._other(reader)
        self._reader = reader
        skip, status, fields = plain
        length = int(fields["content-length"])
        reader.read(skip)
        data = reader.read(length)
        if len(data) < length:
            raise http.client.IncompleteRead(data, length - len(data))
        if "close" in fields.get("connection", "").lower() or len(read) > skip + length:
            self.close()  # bytes after the answer belong to no request
        return Answer(status, fields, data)

    def _other(self, reader: io.BufferedReader) -> Answer:
        """Read an answer with the standard library, which closes the reader."""
        with http.client.HTTPResponse(_Read(reader), method="POST") as response:  # type: ignore[arg-type]
            response.begin()
            fields = {name.lower(): value for name, value in response.getheaders()}
            answer = Answer(response.status, fields, response.read())
        if response.will_close:
            self.close()
        return answer


class _Read:
    """Socket whose input has a reader already."""

    def __init__(self, reader: io.BufferedReader) -> None:
        self._reader = reader

    def makefile(self, mode: str) -> io.BufferedReader:
        """Return the reader."""
        return self._reader


def _authority(connection: http.client.HTTPConnection) -> str:
    """Return the server's host and port for the field Host."""
    host, port = connection.host, connection.port
    host = f"[{host.partition('%')[0]}]" if ":" in host else host.encode("idna").decode("ascii")
    return host if port == connection.default_port else f"{host}:{port}"


def _plain(read: bytes) -> tuple[int, int, dict[str, str]] | None:
    """Return the length, status and fields of an answer's head that has nothing special.

    A plain head came as a whole and is that of the final answer. It has each field once, in
    one line, and says how long the answer is.
    """
    head, found, _ = read.partition(b"\r\n\r\n")
    if not found or head[:9] != b"HTTP/1.1 ":
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    status = first[9:12]
    parts = [line.partition(":") for line in lines]
    fields = {name.lower(): value.strip(" \t") for name, _, value in parts}
    plain = (
        all(colon and name[:1] not in ("", " ", "\t") for name, colon, _ in parts)
        and status.isdecimal()
        and int(status) >= 200
        and status not in ("204", "304")
        and len(fields) == len(lines)
        and "transfer-encoding" not in fields
        and fields.get("content-length", "").isdecimal()
        and len(fields["content-length"]) < 19
    )
    return (len(head) + 4, int(status), fields) if plain else None
