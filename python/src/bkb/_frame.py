"""Data frames of trials."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ._errors import InvalidRequest
from ._views import TrialView


def _row(t: TrialView) -> dict[str, Any]:
    row: dict[str, Any] = {"number": t.number, "state": t.state}
    values = t.values or (None,) * len(t.objectives)
    if len(t.objectives) == 1:
        row["value"] = values[0]
    else:
        row.update(zip((f"values_{n}" for n in t.objectives), values, strict=True))
    others = {n: v for n, v in t.metrics.items() if n not in t.objectives}
    row.update({f"metrics_{n}": math.fsum(v) / len(v) for n, v in others.items()})
    row.update({f"params_{n}": v for n, v in t.params.items()})
    row.update({f"user_attrs_{n}": v for n, v in t.attributes.items()})
    row.update({"start": t.started, "end": t.ended, "duration": t.duration})
    row.update({"feasible": t.feasible, "reason": t.reason, "message": t.message})
    row.update({"worker": t.worker, "cost": t.cost})
    s = t.suggestion
    many = len(t.objectives) > 1
    for i, name in enumerate(t.objectives):
        suffix = f"_{name}" if many else ""
        row["mean" + suffix] = s.mean[i] if s and s.mean else None
        row["std_dev" + suffix] = s.std_dev[i] if s and s.std_dev else None
    row["phase"] = s.phase if s else None
    return row


def to_dataframe(trials: Iterable[TrialView], backend: str) -> Any:
    """Return a data frame with a row for each trial."""
    rows = [_row(t) for t in trials]
    order = ["number", "state", "value", "values_", "metrics_", "params_", "user_attrs_"]
    order += ["feasible", "reason", "message", "worker", "cost", "start", "end", "duration"]
    order += ["mean", "std_dev", "phase"]

    def rank(column: str) -> int:
        return next(i for i, o in enumerate(order) if column == o or column.startswith(o))

    columns = sorted({c: None for row in rows for c in row}, key=rank)
    data = {c: [row.get(c) for row in rows] for c in columns}
    if backend == "pandas":
        import pandas

        return pandas.DataFrame(data, columns=columns)
    if backend == "polars":
        import polars

        return polars.DataFrame(data, strict=False)
    raise InvalidRequest(f"backend is {backend!r}, give 'pandas' or 'polars'")
