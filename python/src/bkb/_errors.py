"""Exceptions, one class for each reason of the wire contract."""

from __future__ import annotations

from typing import Any


class Error(Exception):
    """Base class of all errors of BKB Tuner.

    Attributes
    ----------
    code : int
        Canonical gRPC code, 0 for an error that the client found itself.
    reason : str
        Reason of the wire contract, such as ``"NOT_FOUND"``. Empty if there is none.
    details : list of dict
        Further details of the server's answer, in JSON.

    """

    REASON = ""
    __module__ = "bkb"  # as users name it

    def __init_subclass__(cls) -> None:
        cls.__module__ = "bkb"

    def __init__(
        self,
        message: str,
        *,
        code: int = 0,
        reason: str = "",
        details: list[dict[str, Any]] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason or self.REASON
        self.details = details or []

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), str(self), self.__dict__)

    @property
    def retry_after(self) -> float | None:
        """Seconds until the server expects a repetition to succeed, if it said so."""
        for d in self.details:
            if d.get("@type", "").endswith("google.rpc.RetryInfo"):
                return float(str(d.get("retryDelay", "0s")).rstrip("s"))
        return None

    @property
    def index(self) -> int | None:
        """Position of the refused trial in a call of ``add_trials``, if the server named one."""
        for d in self.details:
            if "index" in d.get("metadata", {}):
                return int(d["metadata"]["index"])
        return None


def _rebuild(cls: type[Error], message: str, state: dict[str, Any]) -> Error:
    e = cls(message)
    e.__dict__.update(state)
    return e


class InvalidRequest(Error, ValueError):
    """A field breaks a rule. The message names the field, the value and the rule."""

    REASON = "INVALID"


class NotFound(Error, LookupError):
    """There is no such study or trial."""

    REASON = "NOT_FOUND"


class StudyExists(Error):
    """A study of this name exists."""

    REASON = "ALREADY_EXISTS"


class StudyFinished(Error):
    """The study has finished and hands out no more trials."""

    REASON = "FINISHED"


class StudyPaused(Error):
    """The study is paused and hands out no trials now."""

    REASON = "PAUSED"


class NoTrialNow(Error):
    """All trials are handed out and some still run. Ask later."""

    REASON = "NONE_LEFT"


class TrialNotRunning(Error):
    """The state of the trial does not allow the call."""

    REASON = "TRIAL_STATE"


class LeaseLost(Error):
    """The lease expired and another worker has the trial."""

    REASON = "LEASE_LOST"


class AlreadyTold(Error):
    """The trial is over and has another outcome."""

    REASON = "ALREADY_TOLD"


class Denied(Error, PermissionError):
    """The token or certificate is missing, unknown or does not permit the call."""

    REASON = "DENIED"


class LimitReached(Error):
    """A limit of the server is reached, or its disk is full. Retry later."""

    REASON = "EXHAUSTED"


class Unavailable(Error, ConnectionError):
    """The server cannot be reached or is stopping. Nothing happened."""

    REASON = "UNAVAILABLE"


class MayHaveHappened(Error):
    """The outcome of a change is unknown. It may or may not have happened."""

    REASON = "UNKNOWN"


class DataDamaged(Error):
    """Stored data are not what was written."""

    REASON = "DAMAGED"


class Unsupported(Error, NotImplementedError):
    """The server or its store does not support the call."""

    REASON = "UNSUPPORTED"


class ServerFault(Error):
    """The server has a fault. Its log says more under the id in the message."""

    REASON = "INTERNAL"


class Cancelled(Error):
    """The call was cancelled."""

    REASON = "CANCELLED"


class DeadlineExceeded(Error, TimeoutError):
    """The time limit of the call passed."""

    REASON = "DEADLINE"


class TrialPruned(Exception):  # noqa: N818
    """Raise this in an objective to end a trial as pruned."""

    __module__ = "bkb"


CLASSES: dict[str, type[Error]] = {c.REASON: c for c in Error.__subclasses__()}

# The reasons of answers without an ErrorInfo of the service, as in the Go client.
BARE = {
    1: "CANCELLED",
    2: "UNKNOWN",
    3: "INVALID",
    4: "DEADLINE",
    5: "NOT_FOUND",
    6: "ALREADY_EXISTS",
    7: "DENIED",
    8: "EXHAUSTED",
    9: "INVALID",
    11: "INVALID",
    12: "UNSUPPORTED",
    13: "INTERNAL",
    14: "UNAVAILABLE",
    15: "DAMAGED",
    16: "DENIED",
}

DOMAIN = "bkbtuner"
