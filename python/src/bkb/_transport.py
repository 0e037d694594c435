"""Calls in JSON over HTTP/1.1, repeated by the rules of the Go client.

A call that cannot reach its server goes to the next one that the client knows.

Each thread has one connection. A child process after a fork makes its own.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from . import _errors
from ._codec import JSON, dumps
from ._errors import DOMAIN, Error, InvalidRequest

if TYPE_CHECKING:
    import http.client

    from ._line import Answer, Line

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 2.0
READ_TIMEOUT = 90.0  # the server ends an ask after 60 s
CONNECT_TIMEOUT = 10.0
PROBE_TIMEOUT = 2.0
SERVICE = "/tuner.v1.Tuner/"
VERSION = 0  # major version of the servers that this package works with


def new_request_id() -> str:
    """Return 128 random bits."""
    return os.urandom(16).hex()


class Endpoint:
    """Address of a server with the credentials for it."""

    def __init__(
        self,
        address: str,
        *,
        token: str | None = None,
        ca: str | None = None,
        cert: str | None = None,
        key: str | None = None,
    ) -> None:
        self.address, self.token, self.ca, self.cert, self.key = address, token, ca, cert, key
        self.path: str | None = None
        self.host, self.port, self.tls = "localhost", 0, False
        if (cert is None) != (key is None):
            raise InvalidRequest("cert and key belong together, give both or neither")
        if address.startswith("unix:"):
            self.path = address.removeprefix("unix:")
        else:
            self._parse_host(address)
        if not self.tls and (ca or cert):
            raise InvalidRequest(f"server {address!r} has no TLS, leave out ca, cert and key")
        if token and not (token.isascii() and token.isprintable() and " " not in token):
            raise InvalidRequest(
                "the token has a blank or a character outside of ASCII, give it without quotes "
                "and line ends"
            )
        if token and not self.tls and not self._local():
            raise InvalidRequest(
                f"server {address!r} is on another machine without TLS, "
                "a token is sent only over TLS, use https://"
            )

    def _parse_host(self, address: str) -> None:
        scheme, found, rest = address.partition("://")
        if not found:
            scheme, rest = "", address
        host, _, port = rest.rstrip("/").rpartition(":")
        if scheme not in ("", "http", "https") or not host or not port.isdigit():
            raise InvalidRequest(
                f"server is {address!r}, give host:port, http://host:port, "
                "https://host:port or unix:path"
            )
        self.host, self.port = host.strip("[]"), int(port)
        self.tls = scheme == "https" or not scheme and bool(self.ca or not self._local())

    def _local(self) -> bool:
        if self.path is not None or self.host == "localhost":
            return True
        import ipaddress

        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def connection(self, timeout: float, protocol: str = "http/1.1") -> http.client.HTTPConnection:
        """Make a connection, which connects at its first request."""
        # http.client imports ssl, which takes as long as the rest of this package.
        import http.client

        if self.path is not None:
            from ._unix import UnixConnection

            return UnixConnection(self.path, timeout)
        if not self.tls:
            return http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        import ssl

        context = ssl.create_default_context(cafile=self.ca)
        context.set_alpn_protocols([protocol])
        if self.cert is not None:
            context.load_cert_chain(self.cert, self.key)
        return http.client.HTTPSConnection(self.host, self.port, timeout=timeout, context=context)

    def speaks_grpc(self) -> bool:
        """Tell whether the port is one of gRPC, which has HTTP/2 only."""
        if self.tls:
            return self._accepts("h2") and not self._accepts("http/1.1")
        connection = self.connection(PROBE_TIMEOUT)
        try:
            connection.connect()
            begin = connection.sock.recv(9)  # such a server begins with its settings
        except OSError:
            return False
        finally:
            connection.close()
        return begin[3:] == b"\x04\0\0\0\0\0"  # type, flags and stream of the frame

    def _accepts(self, protocol: str) -> bool:
        import ssl

        connection = self.connection(PROBE_TIMEOUT, protocol)
        try:
            connection.connect()
            sock = connection.sock
            return isinstance(sock, ssl.SSLSocket) and sock.selected_alpn_protocol() == protocol
        except OSError:
            return False
        finally:
            connection.close()


class Dialer(Protocol):
    """Tells where the server is."""

    def endpoint(self, failed: Endpoint | None) -> Endpoint:
        """Return the server's endpoint. failed is one that could not be reached."""

    def describe(self) -> str:
        """Name the server in messages."""


class FixedDialer:
    """Dialer of servers that others run. It uses one until that one cannot be reached."""

    def __init__(self, *endpoints: Endpoint) -> None:
        self._endpoints = endpoints
        self._current = endpoints[0]

    def endpoint(self, failed: Endpoint | None) -> Endpoint:
        """Return an endpoint, the next one after the one that failed."""
        if failed is self._current:
            after = self._endpoints.index(failed) + 1
            self._current = self._endpoints[after % len(self._endpoints)]
        return self._current

    def describe(self) -> str:
        """Return the addresses."""
        return ",".join(e.address for e in self._endpoints)


class Failure(Exception):  # noqa: N818
    """One try of a call that did not succeed."""

    def __init__(
        self, code: int, reason: str, message: str, *, by_service: bool, sent: bool
    ) -> None:
        super().__init__(message)
        self.code, self.reason, self.message = code, reason, message
        self.by_service, self.sent = by_service, sent
        self.hopeless = False
        self.remedy = "give ca= the CA certificate that signed the server's"  # if hopeless
        self.stale = False  # an idle connection that the server had closed
        self.foreign = False  # an answer of something before the server
        self.details: list[JSON] = []

    @classmethod
    def unreachable(cls, e: BaseException, sent: bool) -> Failure:
        """Return the failure of a connection."""
        f = cls(14, "UNAVAILABLE", str(e) or type(e).__name__, by_service=False, sent=sent)
        f.hopeless = _certificate_fault(e)
        return f

    def blame_grpc(self) -> None:
        """Note that the port is one of gRPC, so that the request had no effect."""
        self.hopeless, self.sent = True, False
        self.remedy = "give the address of `tuner serve --http`"
        self.message = "that port speaks gRPC"

    @classmethod
    def answered(cls, status: int, body: bytes) -> Failure:
        """Return the failure that an answer describes."""
        foreign = False
        try:
            answer = json.loads(body)
            code = int(answer["code"])
            message = str(answer.get("message", ""))
            details = list(answer.get("details", []))
        except (ValueError, KeyError, TypeError):
            text = body[:200].decode(errors="replace").strip()
            code = 14 if status in (502, 503, 504) else 16 if status in (401, 403, 407) else 2
            if code == 2 and 400 <= status < 500:
                code = 12
            message = f"something before the server answered HTTP status {status}: {text}"
            details = []
            foreign = True
        info = next((d for d in details if d.get("domain") == DOMAIN and "reason" in d), None)
        reason = info["reason"] if info else _errors.BARE.get(code, "INTERNAL")
        f = cls(code, reason, message, by_service=info is not None, sent=True)
        f.details = details
        f.foreign = foreign
        return f

    def error(self) -> Error:
        """Return the exception for the caller."""
        kind = _errors.CLASSES.get(self.reason, Error)
        return kind(self.message, code=self.code, reason=self.reason, details=self.details)

    @property
    def retry_after(self) -> float:
        """Seconds that the answer asks to wait, or 0."""
        return self.error().retry_after or 0.0

    def retryable(self) -> bool:
        """Tell whether the same request, sent again, may fare better."""
        if self.reason == "UNAVAILABLE":
            return not self.hopeless
        return self.reason == "UNKNOWN" or self.reason == "EXHAUSTED" and self.retry_after > 0

    def settles(self) -> bool:
        """Tell whether the answer says that earlier tries had no effect either.

        Such an answer is about the request's content, which the service would not have
        judged again.
        """
        return not self.foreign and self.reason not in (
            "UNKNOWN",
            "UNAVAILABLE",
            "CANCELLED",
            "DEADLINE",
            "EXHAUSTED",
            "DENIED",
            "INTERNAL",
            "DAMAGED",
        )

    def may_have_happened(self) -> bool:
        """Tell whether the try may have had its effect."""
        if self.reason == "UNKNOWN":
            return self.by_service or self.sent
        return not self.by_service and self.sent and not self.settles()


def _certificate_fault(e: BaseException) -> bool:
    """Tell whether a connection failed for TLS. Waiting does not change that."""
    import sys

    ssl = sys.modules.get("ssl")
    return (
        ssl is not None
        and isinstance(e, ssl.SSLError)
        and not isinstance(e, (ssl.SSLEOFError, ssl.SSLZeroReturnError, TimeoutError))
    )


class _End:
    """Closes the connection of a thread when the thread or the program ends."""


class Transport:
    """Sends requests to one server at a time."""

    def __init__(self, dialer: Dialer, *, retry_for: float = 60.0) -> None:
        self.dialer = dialer
        self.retry_for = retry_for
        self._local = threading.local()
        self._checked = False
        self._probed = False
        self._cut: Endpoint | None = None  # where a stream was cut off

    def call(
        self, method: str, request: JSON, *, writes: bool = False, retry_for: float | None = None
    ) -> JSON:
        """Send a request with a request id until it is answered, and return the answer.

        Parameters
        ----------
        method : str
            Method of the service.
        request : dict
            Message in protojson. A change has its request id, or gets one here.
        writes : bool
            Whether the request changes something.
        retry_for : float
            Seconds for repetitions, 0 to send once.

        """
        if writes and "requestId" not in request:
            request = {"requestId": new_request_id(), **request}
        return self._call(method, request, writes, retry_for)

    def call_identified(self, method: str, request: JSON) -> JSON:
        """Send a change whose parts have their own request ids. See `call`."""
        return self._call(method, request, True, None)

    def _call(self, method: str, request: JSON, writes: bool, retry_for: float | None) -> JSON:
        body = dumps(request)
        until = time.monotonic() + (self.retry_for if retry_for is None else retry_for)
        longest = FIRST_PAUSE
        uncertain = False
        failed: Endpoint | None = None
        while True:
            try:
                return self._once(method, body, failed)
            except Failure as f:
                uncertain = uncertain or writes and f.may_have_happened()
                if f.stale:
                    failed = None
                    continue  # on a new connection
                failed = (
                    self._endpoint() if f.reason == "UNAVAILABLE" and not f.by_service else None
                )
                pause = self._pause(f, longest, until)
                if pause is None:
                    raise self._conclude(f, uncertain) from f.__cause__
                longest = min(2 * longest, LONGEST_PAUSE)
                time.sleep(pause)
            except _errors.Unavailable as e:  # no server could be started
                if not uncertain:
                    raise
                raise _errors.MayHaveHappened(
                    f"the change may or may not have happened, {e}"
                ) from e

    @staticmethod
    def _pause(f: Failure, longest: float, until: float) -> float | None:
        left = until - time.monotonic()
        if not f.retryable() or left <= 0 or f.retry_after > left:
            return None
        import random

        pause = max(random.random() * longest + longest / 8, f.retry_after)
        return min(pause, left)  # so that the last try is when the time is over

    def _conclude(self, f: Failure, uncertain: bool) -> Error:
        if f.reason == "UNAVAILABLE" and not f.by_service:
            remedy = f", {f.remedy}" if f.hopeless else ""
            f.message = f"cannot reach {self.dialer.describe()}, {f.message}{remedy}"
        elif f.reason == "DENIED" and not self._has_token():
            f.message += ", give token= or set TUNER_TOKEN"
        if uncertain and not f.settles():
            return _errors.MayHaveHappened(
                f"the change may or may not have happened, {f.message}",
                code=f.code,
                details=f.details,
            )
        return f.error()

    def _has_token(self) -> bool:
        e = self._endpoint()
        return e is not None and bool(e.token)

    def _endpoint(self) -> Endpoint | None:
        used: Endpoint | None = getattr(self._local, "endpoint", None)
        return used

    def _line(self, failed: Endpoint | None) -> tuple[Line, Endpoint]:
        local = self._local
        mine = getattr(local, "pid", None) == os.getpid()
        if mine and getattr(local, "line", None) is not None:
            return local.line, local.endpoint
        local.endpoint = None
        endpoint = self.dialer.endpoint(failed)
        from ._line import Line  # here, since http.client takes long to import

        local.pid, local.endpoint = os.getpid(), endpoint
        local.line = Line(endpoint.connection(CONNECT_TIMEOUT), endpoint.token)
        local.end = _End()
        import weakref  # here, since it takes long to import

        weakref.finalize(local.end, local.line.close)
        return local.line, endpoint

    def _drop(self) -> None:
        line = getattr(self._local, "line", None)
        self._local.line = None
        if line is not None:
            line.close()

    def close(self) -> None:
        """Close the connection of this thread. The next call makes a new one."""
        self._drop()

    def _once(self, method: str, body: bytes, failed: Endpoint | None) -> JSON:
        line, endpoint = self._line(failed)
        reused = line.opened
        sent = False
        try:
            if not reused:
                line.open(READ_TIMEOUT)
            sent = True
            answer = line.post(SERVICE + method, body)
        except BaseException as e:
            import http.client

            self._drop()
            if not isinstance(e, (OSError, http.client.HTTPException)):
                raise
            f = Failure.unreachable(e, sent)
            f.stale = reused and isinstance(e, ConnectionError)
            if sent and not (reused or self._checked or self._probed):
                self._probed = True
                if endpoint.speaks_grpc():
                    f.blame_grpc()
            raise f from e
        if not line.opened:
            self._drop()
        return self._read(answer)

    def _read(self, answer: Answer) -> JSON:
        data = answer.data
        if answer.fields.get("content-encoding") == "gzip":
            import gzip

            data = gzip.decompress(data)
        if not self._checked:
            self._check_version(answer.fields.get("tuner-version"))
        if answer.status != 200:
            raise Failure.answered(answer.status, data)
        try:
            message: JSON = json.loads(data)
        except ValueError as e:  # something before the server cut it off
            raise Failure.unreachable(e, True) from e
        return message

    def _check_version(self, version: str | None) -> None:
        """Refuse a server of another major version. Development builds have none."""
        major = (version or "").removeprefix("v").partition(".")[0]
        if major.isdigit() and int(major) != VERSION:
            older = "the server" if int(major) < VERSION else "the package bkb-tuner"
            raise _errors.Unsupported(
                f"{self.dialer.describe()} has version {version} and this package needs "
                f"major version {VERSION}, upgrade {older}"
            )
        self._checked = bool(version)

    def stream(self, method: str, request: JSON, timeout: float = 60.0) -> Iterator[JSON]:
        """Yield the messages of a stream, and raise a Failure when it is cut off.

        Use a connection of its own, so that calls go on beside it. The server sends an
        empty line every 15 s, so that a silence of timeout seconds is a broken connection.
        """
        import http.client

        cut, self._cut = self._cut, None
        endpoint = self.dialer.endpoint(cut)
        connection = endpoint.connection(CONNECT_TIMEOUT)
        try:
            headers = {"Content-Type": "application/json", "Accept-Encoding": "gzip"}
            if endpoint.token:
                headers["Authorization"] = "Bearer " + endpoint.token
            try:
                connection.connect()
                connection.sock.settimeout(timeout)
                connection.request("POST", SERVICE + method, dumps(request), headers)
                response = connection.getresponse()
            except (OSError, http.client.HTTPException) as e:
                self._cut = endpoint
                raise Failure.unreachable(e, False) from e
            if response.status != 200:
                raise Failure.answered(response.status, response.read())
            try:
                for line in response:
                    if not line.strip():
                        continue
                    message = json.loads(line)
                    if "error" in message:
                        raise Failure.answered(500, json.dumps(message["error"]).encode())
                    yield message["result"]
            except (OSError, http.client.HTTPException, ValueError) as e:
                self._cut = endpoint
                raise Failure.unreachable(e, False) from e
        finally:
            connection.close()
