"""Measure what an ask and a tell cost, from Python with the embedded server.

Run it on a quiet machine: python bench/python/ask.py. With Optuna installed its TPE and its
RandomSampler do the same. Wall times are in milliseconds. CPU is that of this process and of the
server. With --random the parameters are random, so that the rest is what calls cost. A loop of ask
and tell makes two calls for each trial, and optimize ("random run") makes one. Optuna's
RandomSampler then has a storage in memory, and one in a file of SQLite. So does Rustuna's TPE. With
--pause only asks are timed, which come so many seconds after the tell before.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import bkb

DIMENSIONS = 8


def cpu(pid: int | None) -> tuple[float, float, float]:
    """CPU seconds of this process, of another one, and of the kernel for the latter."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    user = kernel = 0.0
    if pid is not None:
        with open(f"/proc/{pid}/stat") as f:
            fields = f.read().rpartition(")")[2].split()
        user, kernel = (
            int(ticks) / os.sysconf("SC_CLK_TCK") for ticks in fields[11:13]
        )
    return own.ru_utime + own.ru_stime, user + kernel, kernel


def value(params: dict[str, float]) -> float:
    """Return a noisy bowl."""
    return sum((x - 0.3) ** 2 for x in params.values()) + random.gauss(0, 0.01)


def loop(step: Callable[[], None], rounds: int, pid: int | None) -> dict[str, float]:
    """Time rounds of an ask and a tell."""
    step()
    ends = [time.perf_counter()]

    def run() -> None:
        for _ in range(rounds):
            step()
            ends.append(time.perf_counter())

    return measured(run, ends, pid)


def measured(
    run: Callable[[], None], ends: list[float], pid: int | None
) -> dict[str, float]:
    """Measure a run that notes the time at the end of each round, after that of a first one."""
    before = cpu(pid)
    run()
    after = cpu(pid)
    times = [1e3 * (b - a) for a, b in itertools.pairwise(ends)]
    rounds = len(times)
    own, server, kernel = (
        1e3 * (a - b) / rounds for a, b in zip(after, before, strict=True)
    )
    times.sort()
    return {
        "p50": statistics.median(times),
        "p99": times[min(len(times) - 1, round(0.99 * len(times)))],
        "cpu": own + server,
        "own": own,
        "kernel": kernel,
    }


def with_bkb(
    n: int, rounds: int, proposer: str = "bkb", run: bool = False, pause: float = 0
) -> dict[str, float]:
    """Time the tuner after n trials, in a loop of ask and tell or in a run of optimize.

    With a pause after each tell, only asks are timed.
    """
    with tempfile.TemporaryDirectory() as folder:
        client = bkb.open_file(os.path.join(folder, "tuner.db"))
        space = {f"x{i}": bkb.Float(0, 1) for i in range(DIMENSIONS)}
        study = client.create_study("s", space, minimize="loss", proposer=proposer)
        trials = [
            {f"x{i}": random.random() for i in range(DIMENSIONS)} for _ in range(n)
        ]
        if trials:
            study.add_trials({"params": p, "value": value(p)} for p in trials)

        def step() -> None:
            trial = study.ask()
            trial.tell(objective(trial))

        def ask() -> float:
            began = time.perf_counter()
            trial = study.ask()
            waited = time.perf_counter() - began
            trial.tell(objective(trial))
            time.sleep(pause)
            return 1e3 * waited

        ends: list[float] = []

        def objective(trial: bkb.Trial) -> float:
            ends.append(time.perf_counter())
            return value({f"x{i}": trial[f"x{i}"] for i in range(DIMENSIONS)})

        assert client.server is not None
        try:
            if pause:
                waits = sorted(ask() for _ in range(rounds))
                return {
                    "p50": statistics.median(waits),
                    "p99": waits[round(0.99 * (rounds - 1))],
                }
            if not run:
                return loop(step, rounds, client.server.pid)
            study.optimize(objective, n_trials=1)
            more = partial(study.optimize, objective, n_trials=rounds)
            return measured(more, ends, client.server.pid)
        finally:
            client.server.stop()


def with_optuna(
    n: int, rounds: int, sampler: str = "TPESampler", storage: str | None = None
) -> dict[str, float]:
    """Time a sampler of Optuna after n trials, which are in memory without a storage."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    made = getattr(optuna.samplers, sampler)(seed=1)
    study = optuna.create_study(sampler=made, storage=storage)
    unit = optuna.distributions.FloatDistribution(0, 1)
    ranges: dict[str, Any] = {f"x{i}": unit for i in range(DIMENSIONS)}
    for _ in range(n):
        p = {name: random.random() for name in ranges}
        study.add_trial(
            optuna.create_trial(params=p, distributions=ranges, value=value(p))
        )

    def step() -> None:
        trial = study.ask(ranges)
        study.tell(trial, value(trial.params))

    return loop(step, rounds, None)


def with_rustuna(n: int, rounds: int, file: str | None = None) -> dict[str, float]:
    """Time the TPE of Rustuna after n trials, which are in memory without a file of SQLite."""
    import rustuna  # type: ignore[import-not-found,unused-ignore]

    storage = rustuna.storages.SQLite3Storage(file) if file else None
    study = rustuna.create_study(storage=storage, sampler=rustuna.samplers.TPESampler())

    def step() -> None:
        trial = study.ask()
        result = value(
            {f"x{i}": trial.suggest_float(f"x{i}", 0, 1) for i in range(DIMENSIONS)}
        )
        study.tell(trial.number, result)

    for _ in range(n):
        step()
    return loop(step, rounds, None)


def process(code: str, rounds: int = 20) -> float:
    """CPU milliseconds of Python with some code, the least of several."""
    least = float("inf")
    # An installed package has bytecode, so that the first round may write it.
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    for _ in range(rounds):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True, env=env)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        least = min(least, 1e3 * used)
    return least


def start(rounds: int = 11) -> float:
    """Milliseconds from the first call until its answer, with the start of the server."""
    times = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            client = bkb.open_file(os.path.join(folder, "tuner.db"))
            begun = time.perf_counter()
            list(client.studies())
            times.append(1e3 * (time.perf_counter() - begun))
            assert client.server is not None
            client.server.stop()
    return statistics.median(times)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--rounds", type=int, default=100, help="asks and tells for each size"
    )
    parser.add_argument("--sizes", type=int, nargs="*", default=[0, 100, 1000, 10000])
    parser.add_argument("--json", action="store_true", help="one object in JSON")
    parser.add_argument(
        "--pause", type=float, help="seconds after each tell, to time asks made ahead"
    )
    parser.add_argument("--random", action="store_true", help="random parameters only")
    arguments = parser.parse_args()
    random.seed(1)
    result: dict[str, Any] = {
        "python": process(""),
        "import": process("import bkb"),
        "start": start(),
    }
    sides: dict[str, Callable[[int, int], dict[str, float]]] = {
        "bkb": with_bkb,
        "tpe": with_optuna,
    }
    if arguments.pause:
        sides = {"bkb": partial(with_bkb, pause=arguments.pause)}
    folder = tempfile.TemporaryDirectory()
    if arguments.random:
        sqlite = f"sqlite:///{folder.name}/optuna.db"
        sides = {
            "random": partial(with_bkb, proposer="random"),
            "random run": partial(with_bkb, proposer="random", run=True),
            "optuna": partial(with_optuna, sampler="RandomSampler"),
            "optuna sqlite": partial(
                with_optuna, sampler="RandomSampler", storage=sqlite
            ),
            "rustuna": with_rustuna,
            "rustuna sqlite": partial(with_rustuna, file=f"{folder.name}/rustuna.db"),
        }
    for name, measure in sides.items():
        module = name.partition(" ")[0].replace("tpe", "optuna")
        if module not in ("bkb", "random") and importlib.util.find_spec(module) is None:
            continue
        result[name] = {}
        for n in arguments.sizes:
            rounds = min(arguments.rounds, 20) if name == "tpe" else arguments.rounds
            result[name][str(n)] = measure(n, rounds)
    folder.cleanup()
    if arguments.json:
        print(json.dumps(result))
        return
    print(
        f"import {result['import']:.0f} ms of CPU, {result['python']:.0f} of it Python's, "
        f"start {result['start']:.0f} ms"
    )
    columns = {"p50": "p50 ms", "p99": "p99 ms", "cpu": "CPU ms", "own": "of Python"}
    columns["kernel"] = "of the server's kernel"
    print(f"{'':14} {'trials':>7}", *(f"{c:>9}" for c in columns.values()))
    for name in (s for s in sides if s in result):
        for n, r in result[name].items():
            print(f"{name:14} {n:>7}", *(f"{r[c]:9.2f}" for c in columns if c in r))


if __name__ == "__main__":
    main()
