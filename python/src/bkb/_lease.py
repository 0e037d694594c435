"""The thread that renews the leases of all open trials of this process."""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from typing import Protocol

from . import _errors

log = logging.getLogger("bkb")

LEASE = 60.0  # seconds, of a trial with heartbeats


class Leased(Protocol):
    """What holds a lease."""

    def renew(self, lease: float, *, once: bool) -> None:
        """Renew the lease."""

    def lost(self, reason: str) -> None:
        """Take note that the trial should stop."""


class Heartbeats:
    """Renews leases a third of their time before they end. The thread is a daemon."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._open: dict[int, tuple[Leased, float, float]] = {}  # lease, next time
        self._thread: threading.Thread | None = None
        self._wakes = 0.0  # when the thread looks again, unless it is notified

    def add(self, holder: Leased, lease: float, *, now: bool = False) -> None:
        """Begin to renew a lease. now says that the present lease may be another."""
        with self._changed:
            due = time.monotonic() + (0 if now else lease / 3)
            self._open[id(holder)] = (holder, lease, due)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="bkb-leases", daemon=True)
                self._thread.start()
            if due < self._wakes:
                self._changed.notify()

    def remove(self, holder: Leased) -> None:
        """End it."""
        with self._changed:
            self._open.pop(id(holder), None)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._wakes = math.inf
                if not self._open and not self._changed.wait_for(lambda: self._open, 10.0):
                    self._thread = None
                    return
                key = min(self._open, key=lambda k: self._open[k][2])
                holder, lease, due = self._open[key]
                wait = due - time.monotonic()
                if wait > 0:
                    self._wakes = due
                    self._changed.wait(wait)
                    continue
            pause = self._renew(holder, lease)
            with self._changed:
                if key in self._open and self._open[key][0] is holder:
                    if pause is None:
                        del self._open[key]
                    else:
                        self._open[key] = (holder, lease, time.monotonic() + pause)

    @staticmethod
    def _renew(holder: Leased, lease: float) -> float | None:
        """Renew a lease, and return the pause to the next time, or None if it is lost."""
        try:
            holder.renew(lease, once=True)
        except (
            _errors.LeaseLost,
            _errors.AlreadyTold,
            _errors.TrialNotRunning,
            _errors.NotFound,
        ) as e:
            holder.lost(str(e))
            return None
        except Exception as e:  # the network or the server, which may come back
            log.warning("the heartbeat of a trial failed and is repeated, %s", e)
            return min(1.0, lease / 10)
        return lease / 3


heartbeats = Heartbeats()


def _after_fork() -> None:
    heartbeats.__init__()  # type: ignore[misc]  # the parent keeps its trials


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
