"""Charts of trials, as SVG or with matplotlib. They take nothing from the network."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from ._errors import InvalidRequest
from ._goals import Goals
from ._views import TrialView, last_epoch

WIDTH, HEIGHT, MARGIN, POINTS = 480, 120, 4, 2000
SVG = "http://www.w3.org/2000/svg"

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Chart:
    """A chart, which a notebook shows.

    Attributes
    ----------
    title, x, y : str
        Title, and what the axes have.
    dots : list of pairs
        Points.
    lines : dict
        Points of each line by its label.
    bars : dict
        Length of each bar by its label, instead of points.

    """

    title: str
    x: str
    y: str
    dots: Points = ()
    lines: Mapping[str, Points] = field(default_factory=dict)
    bars: Mapping[str, float] = field(default_factory=dict)

    def _repr_html_(self) -> str:
        return self.html

    @property
    def html(self) -> str:
        """The chart as SVG, which HTML may hold."""
        shapes = self._bars() if self.bars else self._points()
        return (
            f"<svg width='{WIDTH}' height='{HEIGHT}' role='img'>"
            f"<title>{escape(self.title)}</title>{shapes}</svg>"
        )

    def _bars(self) -> str:
        tall, most = HEIGHT / len(self.bars), max(self.bars.values()) or 1.0
        shapes = []
        for i, (name, v) in enumerate(self.bars.items()):
            wide, y = WIDTH / 2 * v / most, i * tall
            shapes.append(
                f"<rect y='{y:.1f}' width='{wide:.1f}' height='{0.8 * tall:.1f}' fill='steelblue'/>"
                f"<text x='{wide + MARGIN:.1f}' y='{y + 0.6 * tall:.1f}' "
                f"font-size='{min(12.0, tall):.0f}'>{escape(name)} {v:.2f}</text>"
            )
        return "".join(shapes)

    def _points(self) -> str:
        given = [*self.dots, *(p for line in self.lines.values() for p in line)]
        if not given:
            return ""
        (left, right), (low, high) = ((min(v), max(v)) for v in zip(*given, strict=True))

        def place(p: tuple[float, float]) -> tuple[float, float]:
            across, up = (p[0] - left) / (right - left or 1), (p[1] - low) / (high - low or 1)
            wide, tall = WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN
            return MARGIN + wide * across, MARGIN + tall * (1 - up)

        dots = "".join(
            "<circle cx='{:.1f}' cy='{:.1f}' r='2'/>".format(*place(p)) for p in self.dots
        )
        paths = [
            " ".join("{:.1f},{:.1f}".format(*place(p)) for p in v) for v in self.lines.values()
        ]
        style = "fill='none' stroke='steelblue' stroke-width='2'"
        lines = "".join(f"<polyline {style} points='{path}'/>" for path in paths)
        return f"<g fill='gray'>{dots}</g>{lines}"

    def matplotlib(self, ax: Any = None) -> Any:
        """Draw the chart with matplotlib, and return the axes."""
        if ax is None:
            from matplotlib import pyplot

            ax = pyplot.subplots()[1]
        if self.bars:
            names = list(self.bars)[::-1]
            ax.barh(names, [self.bars[n] for n in names])
        if self.dots:
            ax.scatter(*zip(*self.dots, strict=True), s=12, color="gray")
        for label, line in self.lines.items():
            ax.plot(*zip(*line, strict=True), label=label)
        ax.set(title=self.title, xlabel=self.x, ylabel=self.y)
        return ax

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the chart to a file. matplotlib writes what is neither .svg nor .html."""
        name = os.fspath(path)
        if name.endswith((".svg", ".html")):
            with open(name, "w", encoding="utf-8") as f:
                f.write(self.html.replace("<svg", f"<svg xmlns='{SVG}'", 1))
        else:
            self.matplotlib().figure.savefig(name)


class Plots:
    """Charts of the trials of a study.

    Each method returns a `Chart`, which a notebook shows, which ``html`` has as SVG, and which
    ``matplotlib()`` draws.
    """

    def __init__(
        self,
        goals: Goals,
        trials: Iterable[TrialView],
        importances: Callable[[], Mapping[str, float]],
    ) -> None:
        self._goals, self._trials, self._importances = goals, list(trials), importances

    def _objective(self, name: str | None) -> int:
        names = self._goals.names
        if name is not None and name not in names:
            raise InvalidRequest(f"objective is {name!r}, give one of {', '.join(names)}")
        return 0 if name is None else names.index(name)

    def _values(self, i: int) -> list[tuple[TrialView, float]]:
        found = [(t, t.values[i]) for t in self._trials if t.state == "completed" and t.values]
        return [(t, v) for t, v in found if math.isfinite(v)][-POINTS:]

    def history(self, objective: str | None = None) -> Chart:
        """Return the objective value of each trial, and the best so far."""
        i = self._objective(objective)
        name, better = self._goals.names[i], max
        if self._goals.directions[i] == "minimize":
            better = min
        dots: list[tuple[float, float]] = []
        line: list[tuple[float, float]] = []
        for t, v in self._values(i):
            dots.append((float(t.number), v))
            line.append((float(t.number), better(line[-1][1], v) if line else v))
        values = [v for _, v in dots]
        seen = f", {min(values):.6g} to {max(values):.6g}" if values else ""
        title = f"{name} by trial{seen}"
        return Chart(title, "trial", name, dots, {"best so far": line} if line else {})

    def slice(self, parameter: str, objective: str | None = None) -> Chart:
        """Return the objective value by the value of a parameter."""
        i = self._objective(objective)
        pairs = [(t.params[parameter], v) for t, v in self._values(i) if parameter in t.params]
        numbers = all(isinstance(x, (int, float)) and not isinstance(x, bool) for x, _ in pairs)
        texts = sorted({str(x) for x, _ in pairs})
        dots = [(float(x) if numbers else float(texts.index(str(x))), v) for x, v in pairs]
        shown = parameter if numbers else f"{parameter} ({', '.join(texts)})"
        return Chart(f"{self._goals.names[i]} by {parameter}", shown, self._goals.names[i], dots)

    def reports(self, objective: str | None = None) -> Chart:
        """Return the intermediate values of each trial."""
        name = self._goals.names[self._objective(objective)]
        lines = {}
        for t in self._trials:
            reports = sorted(last_epoch(t.reports), key=lambda r: r.step)
            line = [(float(r.step), r.values[name]) for r in reports if name in r.values]
            if line:
                lines[f"trial {t.number}"] = line
        return Chart(f"{name} by step", "step", name, lines=lines)

    def pareto(self) -> Chart:
        """Return the values of the first two objectives."""
        if len(self._goals.names) < 2:
            raise InvalidRequest("the study has one objective, use history")
        x, y = self._goals.names[:2]
        dots = [(t.values[0], t.values[1]) for t, _ in self._values(0) if t.values]
        return Chart(f"{y} by {x}", x, y, dots)

    def importances(self) -> Chart:
        """Return how much each parameter matters. See `Study.importances`."""
        return Chart("importances", "share", "parameter", bars=self._importances())
