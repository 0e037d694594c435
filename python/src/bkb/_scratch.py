"""A file for studies that are not kept, and folders for data of a moment."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
import threading

from ._client import Client, open_file

MEMORY = "/dev/shm"
SPARE = 64 << 20  # bytes that stay free in memory
ROOM = 192 << 20  # bytes that a file of studies may take

_lock = threading.Lock()
_scratches: dict[int, Client] = {}  # by process, since a fork gets one of its own


def temporary_parent(size: int) -> str | None:
    """Return the folder in memory if so many bytes fit there, or None for the usual one."""
    if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= size + SPARE:
        return MEMORY
    return None


def scratch_client() -> Client:
    """Return the client of a temporary file, which is removed when this process ends."""
    pid = os.getpid()
    with _lock:
        if pid not in _scratches:
            folder = tempfile.mkdtemp(prefix="bkb-", dir=temporary_parent(ROOM))
            _scratches[pid] = client = open_file(os.path.join(folder, "tuner.db"))
            atexit.register(_end, pid, client, folder)
            util = sys.modules.get("multiprocessing.util")
            if util is not None:  # whose processes end without atexit
                util.Finalize(None, _end, args=(pid, client, folder), exitpriority=0)
        return _scratches[pid]


def _end(pid: int, client: Client, folder: str) -> None:
    if pid == os.getpid():  # and not a fork
        _scratches.pop(pid, None)
        if client.server is not None:
            client.server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
