"""Hyper-parameter tuning with BKB, budgeted kernelised bandits.

>>> import bkb
>>> study = bkb.create_study(
...     "quadratic", {"x": bkb.Float(-5, 5)}, minimize="loss", max_trials=20, exist_ok=True
... )
>>> study.optimize(lambda trial: (trial["x"] - 1) ** 2)
>>> study.status.completed
20

The studies are in the file ``tuner.db`` unless you give ``db=`` or set ``TUNER_DB``. A
server for it starts by itself. `connect` is for a server on another machine.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ._client import Client, connect, open_file
from ._errors import (
    AlreadyTold,
    Cancelled,
    DataDamaged,
    DeadlineExceeded,
    Denied,
    Error,
    InvalidRequest,
    LeaseLost,
    LimitReached,
    MayHaveHappened,
    NotFound,
    NoTrialNow,
    ServerFault,
    StudyExists,
    StudyFinished,
    StudyPaused,
    TrialNotRunning,
    TrialPruned,
    Unavailable,
    Unsupported,
)
from ._space import Categorical, Constant, Float, Int, Ordinal, Parameter, Space, SpaceLike
from ._study import Study
from ._trial import Trial
from ._views import Diagnosis, Event, Report, StudyStatus, Suggestion, TrialView

__all__ = [
    "AlreadyTold",
    "Cancelled",
    "Categorical",
    "Client",
    "Constant",
    "DataDamaged",
    "DeadlineExceeded",
    "Denied",
    "Diagnosis",
    "Error",
    "Event",
    "Float",
    "Int",
    "InvalidRequest",
    "LeaseLost",
    "LimitReached",
    "MayHaveHappened",
    "NoTrialNow",
    "NotFound",
    "Ordinal",
    "Parameter",
    "Report",
    "ServerFault",
    "Space",
    "Study",
    "StudyExists",
    "StudyFinished",
    "StudyPaused",
    "StudyStatus",
    "Suggestion",
    "Trial",
    "TrialNotRunning",
    "TrialPruned",
    "TrialView",
    "Unavailable",
    "Unsupported",
    "connect",
    "create_study",
    "delete_study",
    "load_study",
    "open_file",
    "set_verbosity",
    "studies",
]

if TYPE_CHECKING:
    __version__: str
else:

    def __getattr__(name: str) -> Any:
        if name != "__version__":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib.metadata import PackageNotFoundError, version  # take as long as the rest

        try:
            return version("bkb-tuner")
        except PackageNotFoundError as e:  # run from the source
            raise AttributeError("bkb-tuner is not installed, so it has no version") from e


def create_study(
    name: str,
    space: SpaceLike | None = None,
    *,
    db: str | os.PathLike[str] | None = None,
    **options: Any,
) -> Study:
    """Make a study in a file.

    Parameters
    ----------
    name : str
        Name of the study.
    space : dict, str or path, optional
        Search space. Without it the objective defines it with ``trial.suggest_float``,
        ``suggest_int`` and ``suggest_categorical``.
    db : path, optional
        The file, ``TUNER_DB`` or ``tuner.db`` if left out.
    **options
        Arguments of `Client.create_study`, such as ``minimize`` and ``max_trials``.

    """
    return open_file(db).create_study(name, space, **options)


def load_study(name: str, *, db: str | os.PathLike[str] | None = None) -> Study:
    """Return the study of this name in a file."""
    return open_file(db).load_study(name)


def delete_study(name: str, *, db: str | os.PathLike[str] | None = None) -> None:
    """Delete a study with all its trials from a file, for good."""
    open_file(db).delete_study(name)


def studies(*, db: str | os.PathLike[str] | None = None) -> Iterator[StudyStatus]:
    """Yield all studies of a file in order of name."""
    return open_file(db).studies()


def set_verbosity(level: int | str) -> None:
    """Write log messages of this level and above to stderr.

    Examples
    --------
    >>> set_verbosity("INFO")  # a line for each trial
    >>> set_verbosity("WARNING")

    """
    log = logging.getLogger("bkb")
    log.setLevel(level)
    if all(isinstance(h, logging.NullHandler) for h in log.handlers):
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        log.addHandler(handler)
