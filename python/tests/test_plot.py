"""Importances and charts."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

import bkb


@pytest.fixture(scope="module")
def study(shared: bkb.Client) -> bkb.Study:
    space = {"x": bkb.Float(0, 1), "y": bkb.Float(0, 1), "a<b": bkb.Categorical(["u", None])}
    made = shared.create_study("plotted", space, maximize="acc", seed=1)

    def objective(trial: bkb.Trial) -> float:
        for step in (2, 1, 5):
            trial.report(trial["x"] * step, step)
        return 3.0 * float(trial["x"]) + 0.1 * float(trial["y"])

    made.optimize(objective, n_trials=30)
    made.ask().tell(state="failed")
    return made


def test_importances(study: bkb.Study, shared: bkb.Client, name: str) -> None:
    shares = study.importances()
    assert list(shares)[0] == "x" and shares["x"] > 0.5 and set(shares) == {"x", "y", "a<b"}
    assert list(shares.values()) == sorted(shares.values(), reverse=True)
    with pytest.raises(bkb.InvalidRequest, match="objective"):
        study.importances("loss")
    empty = shared.create_study(name, {"x": bkb.Float(0, 1)}, minimize="loss")
    assert set(empty.importances().values()) <= {0.0}


def test_charts(study: bkb.Study, tmp_path: Path) -> None:
    trials = [t for t in study.trials if t.state == "completed"]
    history = study.plot.history()
    assert [v for _, v in history.dots] == [t.value for t in trials]
    best = [v for _, v in history.lines["best so far"]]
    assert best == sorted(best) and best[-1] == max(t.value or 0 for t in trials)
    assert [x for x, _ in study.plot.slice("x", "acc").dots] == [t.params["x"] for t in trials]
    by_choice = study.plot.slice("a<b")
    assert {x for x, _ in by_choice.dots} == {0, 1} and by_choice.x == "a<b (None, u)"
    lines = study.plot.reports().lines
    assert len(lines) == 30 and [s for s, _ in lines["trial 0"]] == [1, 2, 5]
    assert study.plot.importances().bars == study.importances()
    for chart in (history, by_choice, study.plot.reports(), study.plot.importances()):
        tree = ET.fromstring(chart.html)  # noqa: S314
        assert tree.tag == "svg" and "http" not in chart.html and chart._repr_html_() == chart.html
        chart.save(tmp_path / "chart.svg")
        assert ET.parse(tmp_path / "chart.svg").getroot().tag.endswith("}svg")  # noqa: S314
    assert len(re.findall("<circle", history.html)) == 30
    with pytest.raises(bkb.InvalidRequest, match="use history"):
        study.plot.pareto()
    with pytest.raises(bkb.InvalidRequest, match="objective is 'b', give one of acc"):
        study.plot.history("b")


def test_pareto_and_empty(shared: bkb.Client, name: str) -> None:
    goals: Any = {"a": "maximize", "b": "minimize"}
    study = shared.create_study(name, {"x": bkb.Float(0, 1)}, objectives=goals)
    assert study.plot.history().dots == [] and "<svg" in study.plot.history("b").html
    assert "<svg" in study.plot.importances().html
    study.optimize(lambda t: (t["x"], t["x"] ** 2), n_trials=5)
    assert study.plot.pareto().dots == [(t["x"], t["x"] ** 2) for t in map(params, study.trials)]
    assert study.plot.history("b").lines["best so far"][-1][1] == min(
        t["x"] ** 2 for t in map(params, study.trials)
    )


def params(t: bkb.TrialView) -> dict[str, float]:
    return dict(t.params)


def test_matplotlib(study: bkb.Study, tmp_path: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    matplotlib.use("agg")
    ax = study.plot.history().matplotlib()
    assert ax.get_xlabel() == "trial" and ax.get_ylabel() == "acc" and len(ax.lines) == 1
    assert len(ax.collections[0].get_offsets()) == 30
    assert len(study.plot.importances().matplotlib().patches) == 3
    assert len(study.plot.reports().matplotlib(ax).lines) == 31
    study.plot.slice("a<b").save(tmp_path / "slice.png")
    assert (tmp_path / "slice.png").read_bytes()[1:4] == b"PNG"
