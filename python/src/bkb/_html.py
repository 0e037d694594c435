"""What notebooks show. It takes nothing from the network."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from ._goals import Goals
from ._views import StudyStatus, TrialView

WIDTH, HEIGHT, POINTS = 480, 120, 2000


def _table(rows: list[tuple[str, Any]]) -> str:
    cells = "".join(
        f"<tr><th style='text-align:left'>{escape(str(k))}</th><td>{escape(str(v))}</td></tr>"
        for k, v in rows
    )
    return f"<table>{cells}</table>"


def trial_html(study: str, number: int, params: Mapping[str, Any]) -> str:
    """Return a table of a trial's parameters."""
    title = f"<b>trial {number} of {escape(study)}</b>"
    return title + _table([(n, repr(v)) for n, v in params.items()])


def study_html(
    name: str, goals: Goals, s: StudyStatus, best: TrialView | None, trials: Iterable[TrialView]
) -> str:
    """Return a table of a study with the history of its trials."""
    rows: list[tuple[str, Any]] = [
        ("state", " ".join(x for x in (s.state, s.finish_reason) if x)),
        (
            "trials",
            f"{s.completed} completed, {s.running} running, {s.failed} failed, "
            f"{s.pruned} pruned, {s.infeasible} infeasible, {s.queued} queued",
        ),
    ]
    pairs = zip(goals.directions, goals.names, strict=True)
    rows.append(("objectives", ", ".join(f"{d} {n}" for d, n in pairs)))
    if best is not None:
        rows.append(("best", f"{best.value} in trial {best.number}"))
        rows += [(n, repr(v)) for n, v in best.params.items()]
    values = [(t.number, t.value) for t in trials if t.value is not None and math.isfinite(t.value)]
    history = _history(values, goals.directions[0] == "minimize")
    return f"<b>study {escape(name)}</b>" + _table(rows) + history


def _history(values: list[tuple[int, float]], minimize: bool) -> str:
    """Return points of the values and a line of the best so far, as SVG."""
    values = values[-POINTS:]
    if len(values) < 2:
        return ""
    xs, ys = [x for x, _ in values], [y for _, y in values]
    left, low = xs[0], min(ys)
    across, up = max(1, xs[-1] - left), (max(ys) - low) or 1.0

    def place(x: int, y: float) -> tuple[float, float]:
        return 4 + (WIDTH - 8) * (x - left) / across, 4 + (HEIGHT - 8) * (1 - (y - low) / up)

    dots, line, best = [], [], ys[0]
    for x, y in values:
        best = min(best, y) if minimize else max(best, y)
        px, py = place(x, y)
        dots.append(f"<circle cx='{px:.1f}' cy='{py:.1f}' r='2'/>")
        line.append("{:.1f},{:.1f}".format(*place(x, best)))
    return (
        f"<svg width='{WIDTH}' height='{HEIGHT}' role='img'><title>objective value by trial, "
        f"{low:.6g} to {max(ys):.6g}</title><g fill='gray'>{''.join(dots)}</g>"
        f"<polyline fill='none' stroke='steelblue' stroke-width='2' points='{' '.join(line)}'/>"
        "</svg>"
    )
