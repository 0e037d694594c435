"""The embedded server, which all processes of a user share that use the same file.

The first process that needs the server starts it. The lock on the file decides between
processes that start one at the same time. The server stops when the process that started
it ends. The next call of another process then starts a new one.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import stat
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from ._binary import find_binary
from ._errors import InvalidRequest, Unavailable
from ._transport import Endpoint

if TYPE_CHECKING:
    import subprocess

START_TIMEOUT = 30.0
STOP_TIMEOUT = 10.0
LOCKED = 20  # exit status of tuner when another process has the file
LONGEST_PATH = 103  # of a Unix socket on macOS


def _temporary() -> str:
    import tempfile  # which takes long, and is needed only without other folders

    return tempfile.gettempdir()


def _private_directory() -> str:
    """Return the folder for sockets, which only this user can enter."""
    if os.name == "nt":
        base = os.path.join(os.environ.get("LOCALAPPDATA") or _temporary(), "bkb", "run")
        os.makedirs(base, exist_ok=True)
        return base
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    base = f"{runtime}/bkb" if runtime else f"{_temporary()}/bkb-{os.getuid()}"
    with contextlib.suppress(FileExistsError):
        os.mkdir(base, 0o700)
    s = os.lstat(base)
    if not stat.S_ISDIR(s.st_mode) or s.st_uid != os.getuid() or s.st_mode & 0o077:
        raise Unavailable(
            f"{base} must be a folder with mode 0700 that belongs to you, "
            "remove it or set XDG_RUNTIME_DIR to another folder"
        )
    return base


def _log_directory() -> str:
    if os.name == "nt":
        base = os.path.join(os.environ.get("LOCALAPPDATA") or _temporary(), "bkb", "log")
    else:
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        base = os.path.join(cache, "bkb")
    os.makedirs(base, exist_ok=True)
    return base


def _read(path: str) -> bytes:
    with open(path, "rb") as f:
        return f.read()


def _has_unix_sockets() -> bool:
    import socket  # at the first use, as all that is not cheap to import

    return hasattr(socket, "AF_UNIX") and os.name != "nt"


class EmbeddedServer:
    """Dialer that starts the server of a file if none runs."""

    def __init__(self, db: str) -> None:
        self.db = db
        import hashlib

        name = hashlib.sha256(os.fsencode(db)).hexdigest()[:16]
        self._directory = _private_directory()
        self._ready = os.path.join(self._directory, f"{name}.json")
        self._socket = os.path.join(self._directory, f"{name}.sock")
        self._grpc = os.path.join(self._directory, f"{name}.grpc")
        self._unix = _has_unix_sockets() and len(os.fsencode(self._socket)) <= LONGEST_PATH
        self._name = name
        self._lock = threading.Lock()
        self._endpoint: Endpoint | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._files: list[str] = []  # of tokens, to remove at the end

    @property
    def log(self) -> str:
        """File with the messages of the server."""
        return os.path.join(_log_directory(), f"{self._name}.log")

    @property
    def pid(self) -> int | None:
        """Process id of the server, if this process started it."""
        p = self._process
        return p.pid if p is not None and p.poll() is None else None

    def describe(self) -> str:
        """Name the server in messages."""
        return f"the embedded server of {self.db}"

    def endpoint(self, failed: Endpoint | None) -> Endpoint:
        """Return the endpoint of the running server, and start one if there is none."""
        with self._lock:
            if self._endpoint is None or self._endpoint is failed:
                self._endpoint = None  # a start may fail
                self._endpoint = self._running() or self._start()
            return self._endpoint

    def forget(self) -> None:
        """Leave the server to the parent, in a child process after a fork."""
        self._lock = threading.Lock()
        p, self._process = self._process, None
        if p is not None and p.stdin is not None:
            with contextlib.suppress(OSError):
                p.stdin.close()
            p.returncode = 0  # the parent waits for it
        self._files = []

    def stop(self) -> None:
        """Stop the server if this process started it."""
        with self._lock:
            p, self._process, self._endpoint = self._process, None, None
        if p is None or p.stdin is None:
            return
        import subprocess

        p.stdin.close()
        try:
            p.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            p.kill()
            p.wait()
        self._remove_files()

    def _remove_files(self) -> None:
        while self._files:
            with contextlib.suppress(OSError):
                os.unlink(self._files.pop())

    def _running(self) -> Endpoint | None:
        """Return the endpoint in the ready file if a server answers there."""
        try:
            ready: dict[str, Any] = json.loads(_read(self._ready))
            address = str(ready["http"])
            token = None
            if not address.startswith("unix:"):
                token = _read(self._token_file(int(ready["pid"]))).decode().strip()
        except (OSError, ValueError, KeyError):
            return None
        endpoint = Endpoint(address, token=token)
        connection = endpoint.connection(1.0)
        try:
            connection.connect()
        except OSError:
            return None
        finally:
            connection.close()
        return endpoint

    def _token_file(self, pid: int) -> str:
        return os.path.join(self._directory, f"{self._name}-{pid}.token")

    def _start(self) -> Endpoint:
        deadline = time.monotonic() + START_TIMEOUT
        locked = Unavailable(
            f"another process has the file {self.db}, stop it, or connect to its server with "
            "bkb.connect. On a network file system start `tuner serve` on one machine and "
            "connect to it"
        )
        seen = False
        while True:
            process, offset = self._launch()
            while process.poll() is None:
                endpoint = self._running_as(process.pid)
                if endpoint is not None:
                    self._process = process
                    return endpoint
                if time.monotonic() > deadline:
                    process.kill()
                    process.wait()
                    if seen:
                        raise locked
                    raise Unavailable(self._trouble("did not start in time", offset))
                time.sleep(0.002)
            if process.stdin is not None:
                process.stdin.close()
            self._remove_files()
            if process.returncode != LOCKED:
                what = f"ended with exit status {process.returncode}"
                raise Unavailable(self._trouble(what, offset))
            # Another process has the file. It is a server that starts, or one that stops.
            seen = True
            pause = time.monotonic() + 0.2
            while time.monotonic() < pause:
                endpoint = self._running()
                if endpoint is not None:
                    return endpoint
                time.sleep(0.01)
            if time.monotonic() > deadline:
                raise locked

    def _running_as(self, pid: int) -> Endpoint | None:
        try:
            if json.loads(_read(self._ready)).get("pid") != pid:
                return None
        except (OSError, ValueError):
            return None
        return self._running()

    def _launch(self) -> tuple[subprocess.Popen[bytes], int]:
        """Start a server, and return it with the size of its log before."""
        import subprocess

        program = find_binary()
        if not os.path.isdir(os.path.dirname(self.db)):
            raise InvalidRequest(f"db is {self.db!r}, make its folder first")
        # Otherwise its log would have a line for each call.
        command = [program, "--quiet", "--db", self.db, "--lock-timeout", "50ms", "serve"]
        command += ["--rate", "-1", "--until-eof", "--ready-file", self._ready]
        token = ""
        if self._unix:
            command += ["--listen", f"unix:{self._grpc}", "--http", f"unix:{self._socket}"]
        else:
            # Others on this machine can connect to the loopback, so it takes a token.
            name = f"{self._name}-{os.getpid()}-{time.monotonic_ns()}.tokens"
            tokens = os.path.join(self._directory, name)
            added = subprocess.run(
                [program, "token", "add", "--tokens", tokens, "--scope", "admin"],
                capture_output=True,
                text=True,
                check=False,
            )
            if added.returncode != 0:
                raise Unavailable(f"{program} token add failed, {added.stderr.strip()}")
            self._files.append(tokens)
            token = added.stdout.strip()
            command += ["--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"]
            command += ["--tokens", tokens]
        with open(self.log, "ab") as log:
            offset = log.tell()
            if sys.platform == "win32":
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=log,
                    creationflags=subprocess.CREATE_NEW_PROCESS_GROUP,
                )
            else:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=log,
                    start_new_session=True,  # so that Ctrl-C does not reach it
                )
        if token:
            path = self._token_file(process.pid)
            new = path.removesuffix(".token") + ".new"
            opener = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with open(opener, "w") as f:
                f.write(token)
            os.replace(new, path)  # whole, for other processes
            self._files.append(path)
        return process, offset

    def _trouble(self, what: str, offset: int) -> str:
        with open(self.log, "rb") as f:
            f.seek(offset)
            said = f.read().decode(errors="replace").strip()
        return f"{self.describe()} {what}, its log {self.log} says\n{said[-2000:]}"


_servers: dict[str, EmbeddedServer] = {}
_servers_lock = threading.Lock()


def embedded(db: str | os.PathLike[str] | None) -> EmbeddedServer:
    """Return the one dialer of this process for a file."""
    path = os.path.realpath(os.fspath(db) if db else os.environ.get("TUNER_DB") or "tuner.db")
    with _servers_lock:
        if path not in _servers:
            _servers[path] = EmbeddedServer(path)
        return _servers[path]


def _stop_all() -> None:
    for server in list(_servers.values()):
        server.stop()


def _after_fork() -> None:
    global _servers_lock
    _servers_lock = threading.Lock()
    for server in _servers.values():
        server.forget()


atexit.register(_stop_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
