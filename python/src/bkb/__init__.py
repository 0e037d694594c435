"""Hyper-parameter tuning with BKB, budgeted kernelised bandits.

>>> import bkb
>>> study = bkb.create_study(
...     "quadratic", {"x": bkb.Float(-5, 5)}, minimize="loss", max_trials=20, exist_ok=True
... )
>>> study.optimize(lambda trial: (trial["x"] - 1) ** 2)
>>> study.status.completed
20

The studies are in the file ``tuner.db`` unless you give ``db=`` or set ``TUNER_DB``. A
server for it starts by itself. ``server=`` and ``TUNER_SERVER`` name a server on another machine.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._client import MAX_RETRIES, Client, Component, client_of, connect, open_file
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
from ._goals import Direction, Names
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
    minimize: Names | None = None,
    maximize: Names | None = None,
    objectives: Mapping[str, Direction] | None = None,
    directions: Sequence[Direction] | None = None,
    max_trials: int = 0,
    timeout: float | None = None,
    max_cost: float = 0.0,
    lease: float | None = None,
    max_retries: int = MAX_RETRIES,
    seed: int | None = None,
    proposer: Component | None = None,
    pruner: Component | None = None,
    attributes: Mapping[str, Any] | None = None,
    constraints: Sequence[str] = (),
    exist_ok: bool = False,
    warn: bool = True,
    db: str | os.PathLike[str] | None = None,
    server: str | None = None,
) -> Study:
    """Make a study in a file or on a server.

    Parameters
    ----------
    name : str
        Name of the study.
    space : dict, str or path, optional
        Search space. Without it the objective defines it with ``trial.suggest_float``,
        ``suggest_int`` and ``suggest_categorical``.
    minimize, maximize : str or list of str
        Names of the objectives. With both, outcomes are told by name.
    objectives : dict, optional
        Instead, the direction of each objective by name, in order.
    directions : list of str, optional
        Instead, directions of objectives that are called ``value``, or ``value0``,
        ``value1`` and so on.
    max_trials : int
        Trials after which the study finishes, 0 for no limit.
    timeout : float, optional
        Seconds after which it finishes.
    max_cost : float
        Sum of the told costs at which it finishes, 0 for no limit.
    lease : float, optional
        Seconds that a trial without heartbeats is kept, an hour if left out.
    max_retries : int
        How often a trial whose lease expired is handed out again.
    seed : int, optional
        Seed of the proposer. Without one the study gets a random seed, which
        ``study.spec()["seed"]`` says.
    proposer, pruner : str or (str, dict), optional
        Name, or name and options, of what proposes trials and of what stops them early.
    attributes : dict, optional
        Notes.
    constraints : list of str
        Limits of metrics, such as ``"latency <= 10"``. Those of parameters belong to
        the space.
    exist_ok : bool
        Whether to continue a study of this name with the same space and objectives.
        It keeps its other settings, and a warning names those that differ. What is
        left out or 0 is not compared, nor are attributes.
    warn : bool
        Whether to log warnings about the space and about settings that differ.
    db : path, optional
        The file.
    server : str, optional
        Address of a server, see `connect`. Without ``db`` and ``server`` the variables
        ``TUNER_SERVER`` and ``TUNER_DB`` say where studies are, else it is ``tuner.db``.

    """
    return client_of(db, server, make=True).create_study(
        name,
        space,
        minimize=minimize,
        maximize=maximize,
        objectives=objectives,
        directions=directions,
        max_trials=max_trials,
        timeout=timeout,
        max_cost=max_cost,
        lease=lease,
        max_retries=max_retries,
        seed=seed,
        proposer=proposer,
        pruner=pruner,
        attributes=attributes,
        constraints=constraints,
        exist_ok=exist_ok,
        warn=warn,
    )


def load_study(
    name: str, *, db: str | os.PathLike[str] | None = None, server: str | None = None
) -> Study:
    """Return the study of this name. See `create_study` for ``db`` and ``server``."""
    return client_of(db, server).load_study(name)


def delete_study(
    name: str, *, db: str | os.PathLike[str] | None = None, server: str | None = None
) -> None:
    """Delete a study with all its trials, for good. See `load_study`."""
    client_of(db, server).delete_study(name)


def studies(
    *, db: str | os.PathLike[str] | None = None, server: str | None = None
) -> Iterator[StudyStatus]:
    """Yield all studies in order of name. See `load_study`."""
    return client_of(db, server).studies()


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
