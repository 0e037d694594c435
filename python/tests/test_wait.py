"""Waiting for trials, with futures of concurrent.futures and of dask."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

import bkb

SPACE = {"x": bkb.Float(0, 1)}


def test_seconds(shared: bkb.Client, name: str) -> None:
    study = shared.create_study(name, SPACE, minimize="loss", max_trials=2)
    trials = study.ask(2)
    begun = time.monotonic()
    with pytest.raises(bkb.NoTrialNow):
        study.ask(wait_for=0.3)
    assert time.monotonic() - begun >= 0.3
    threading.Timer(0.3, lambda: trials[0].tell(state="failed", reason="cancelled")).start()
    assert study.ask(wait_for=60).number == 2  # the place that the cancelled trial gave back
    study.pause()
    with pytest.raises(bkb.StudyPaused):
        study.ask(wait_for=0.1)
    with pytest.raises(bkb.InvalidRequest, match="wait_for is 'long' of type str, give a number"):
        study.ask(wait_for="long")


def test_futures(shared: bkb.Client, name: str) -> None:
    study = shared.create_study(name, SPACE, minimize="loss", max_trials=2)
    first, second = study.ask(2)
    futures: list[Future[None]] = [Future(), Future()]
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(lambda: study.ask(wait_for=futures))
        time.sleep(0.2)
        assert not asked.done()
        first.tell(state="failed", reason="cancelled")
        futures[0].set_result(None)
        assert asked.result(60).number == 2
        late = pool.submit(lambda: study.ask(wait_for=futures))
        second.tell(0.5)
        futures[1].set_result(None)
        with pytest.raises(bkb.NoTrialNow):  # all have ended, and another worker's trial runs
            late.result(60)


def square(trial: bkb.Trial) -> float:
    return float(trial["x"] ** 2)


def told(study: bkb.Study, trial: bkb.Trial) -> int:
    return study.tell(trial, square(trial)).number


def test_dask(own: bkb.Client) -> None:
    distributed: Any = pytest.importorskip(
        "distributed", reason="dask is not installed, make python-neighbours installs it"
    )
    study = own.create_study("dask", SPACE, minimize="loss", max_trials=12)
    with (
        distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        study.optimize(square, n_trials=6, n_jobs=2, executor=client)
        futures: list[Any] = []
        for _ in range(6):
            running = [f for f in futures if not f.done()]
            trial = study.ask(wait_for=running)
            futures.append(client.submit(told, study, trial, pure=False))
        assert sorted(client.gather(futures)) == [6, 7, 8, 9, 10, 11]
    assert study.status.completed == 12
    assert all(t.value == t.params["x"] ** 2 for t in study.trials)
