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

import typing as _typing

from ._client import (
    Client,
    connect,
    create_study,
    delete_study,
    load_study,
    open_file,
    set_verbosity,
    studies,
)
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
from ._space import Categorical, Constant, Float, Int, Ordinal, Parameter, Space
from ._study import Study, Trial
from ._views import Artifact, Diagnosis, Event, Report, StudyStatus, Suggestion, TrialView

__all__ = [
    "AlreadyTold",
    "Artifact",
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

if _typing.TYPE_CHECKING:
    __version__: str
else:

    def __getattr__(name: str) -> str:
        if name != "__version__":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib.metadata import PackageNotFoundError, version  # take as long as the rest

        try:
            return version("bkb-tuner")
        except PackageNotFoundError as e:  # run from the source
            raise AttributeError("bkb-tuner is not installed, so it has no version") from e
