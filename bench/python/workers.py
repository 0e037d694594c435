"""Compare one process with several that share a study of Optuna, all with BKBSampler.

    PYTHONPATH=python/src python bench/python/workers.py --tuner bin/tuner

The processes share a journal storage, as Optuna's documentation recommends for one machine. A
run is a line of JSON in --out, and runs that are there are not repeated. Delete the file after
a change of the program. Trials have no seeds, because the order of several processes has none.

The regret is counted without noise, in units of the median of random points, and regrets below
1e-6 count as that. Two trials are equal if all their parameters are. They are near if they
began within a second and each parameter differs by less than 1e-6 of its range.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fidelity import ackley, branin, hartmann

FLOOR = 1e-6  # of the regret of random points, below which nothing counts
NEAR = 1e-6  # of a range
AGREED = 1.1  # regret of several processes in units of one's


@dataclass
class Function:
    """A function of the unit cube, with its least value."""

    name: str
    dim: int
    value: Callable[[list[float]], float]
    best: float
    noise: float = 0

    def scale(self) -> float:
        """Return the median regret of random points."""
        rng = random.Random(1)
        points = [[rng.random() for _ in range(self.dim)] for _ in range(2000)]
        return statistics.median(self.value(u) for u in points) - self.best


def rosenbrock(u: list[float]) -> float:
    x = [15 * v - 5 for v in u]
    return sum(100 * (b - a * a) ** 2 + (1 - a) ** 2 for a, b in zip(x, x[1:]))


def functions() -> list[Function]:
    exact = [
        Function("branin", 2, branin, 0.39788735772973816),
        Function("hartmann 6", 6, hartmann, -3.3223680114155147),
        # The faces of the cube lie on its grid of minima.
        Function("ackley 5", 5, lambda u: ackley(u, -32, 80), 0),
        Function("rosenbrock 4", 4, rosenbrock, 0),
    ]
    return exact + [Function(f"{f.name}, noise", f.dim, f.value, f.best, 1e-3 * f.scale()) for f in exact]


# ---- a worker ----------------------------------------------------------------------


def work(path: str, name: str, trials: int) -> None:
    """Run trials of the study in a journal until it has enough."""
    import optuna
    from bkb.optuna import BKBSampler

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    f = next(f for f in functions() if f.name == name)
    study = optuna.load_study(study_name="s", storage=storage(path), sampler=BKBSampler())

    def objective(trial: Any) -> float:
        value = f.value([trial.suggest_float(f"x{i}", 0, 1) for i in range(f.dim)])
        return value + random.gauss(0, f.noise)

    study.optimize(objective, callbacks=[optuna.study.MaxTrialsCallback(trials)])


def storage(path: str) -> Any:
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    return JournalStorage(JournalFileBackend(path))


# ---- runs --------------------------------------------------------------------------


def run(f: Function, workers: int, trials: int) -> dict[str, Any]:
    """Run a study with a number of processes."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "journal")
        study = optuna.create_study(study_name="s", storage=storage(path))
        command = [sys.executable, __file__, "--worker", path, "--functions", f.name, "--trials", str(trials)]
        processes = [subprocess.Popen(command) for _ in range(workers)]
        if any([p.wait() for p in processes]):
            raise SystemExit(f"a worker of {f.name} failed, see above")
        done = [t for t in study.trials if t.value is not None][:trials]
    points = [[t.params[f"x{i}"] for i in range(f.dim)] for t in done]
    begun = [t.datetime_start.timestamp() for t in done]
    pairs = [(i, j) for i in range(len(done)) for j in range(i)]
    apart = {(i, j): max(abs(a - b) for a, b in zip(points[i], points[j])) for i, j in pairs}
    corners = sum(all(min(v, 1 - v) < NEAR for v in u) for u in points)
    best = min(done, key=lambda t: t.value)
    return {
        "function": f.name,
        "workers": workers,
        "trials": len(done),
        "regret": f.value([best.params[f"x{i}"] for i in range(f.dim)]) - f.best,
        "equal": len(points) - len({tuple(u) for u in points}),
        "near": sum(0 < apart[i, j] < NEAR and abs(begun[i] - begun[j]) < 1 for i, j in pairs),
        "close": sum(any(apart[i, j] < NEAR for j in range(i)) for i in range(len(done))),
        "corners": corners,
    }


def report(some: list[Function], runs: list[dict[str, Any]], workers: int) -> None:
    """Print regrets, repetitions, and the ratio of regrets with its spread."""
    print("| function | studies | median regret of 1 | of several | ratio | equal | near | close | in corners |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    logs, spreads = [], []
    for f in some:
        scale = f.scale()
        sides = [[r for r in runs if r["function"] == f.name and r["workers"] == n] for n in (1, workers)]
        if not all(sides):
            continue
        parts = [[math.log(max(r["regret"] / scale, FLOOR)) for r in side] for side in sides]
        log = statistics.mean(parts[1]) - statistics.mean(parts[0])
        errors = [statistics.variance(p) / len(p) if len(p) > 1 else math.nan for p in parts]
        logs.append(log)
        spreads.append(sum(errors))
        medians = " | ".join(f"{statistics.median(r['regret'] for r in side):.3g}" for side in sides)
        counts = " | ".join(
            ", ".join(str(sum(r[kind] for r in side)) for side in sides) for kind in ("equal", "near", "close", "corners")
        )
        print(f"| {f.name} | {len(sides[0])}, {len(sides[1])} | {medians} | {math.exp(log):.2f} | {counts} |")
    if logs:
        mean, error = statistics.mean(logs), math.sqrt(sum(spreads)) / len(logs)
        print(
            f"\nThe geometric mean of the ratios is {math.exp(mean):.2f}"
            f" ({math.exp(mean - error):.2f} to {math.exp(mean + error):.2f} by the standard error)."
            f" At most {AGREED} is wanted."
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tuner", default="bin/tuner", help="the program")
    parser.add_argument("--out", default="workers.jsonl")
    parser.add_argument("--studies", type=int, default=10, help="of each function and number of processes")
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--functions", default="", help="names, separated by ;")
    parser.add_argument("--report", action="store_true", help="report on what is there")
    parser.add_argument("--worker", default="", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        return work(args.worker, args.functions, args.trials)
    os.environ["BKB_TUNER"] = os.path.abspath(args.tuner)
    wanted = [w.strip() for w in args.functions.split(";") if w.strip()]
    unknown = set(wanted) - {f.name for f in functions()}
    if unknown:
        names = "; ".join(f.name for f in functions())
        parser.error(f"--functions {'; '.join(sorted(unknown))}: there are {names}")
    some = [f for f in functions() if not wanted or f.name in wanted]
    runs = []
    if os.path.exists(args.out):
        with open(args.out) as file:
            runs = [r for r in map(json.loads, file) if r["trials"] == args.trials]
    for study in range(args.studies if not args.report else 0):
        for f in some:
            for workers in (1, args.workers):
                if sum(r["function"] == f.name and r["workers"] == workers for r in runs) > study:
                    continue
                r = run(f, workers, args.trials)
                runs.append(r)
                with open(args.out, "a") as file:
                    file.write(json.dumps(r) + "\n")
                print(f"{f.name}, {workers}: {r['regret']:.3g}", file=sys.stderr)
    report(some, runs, args.workers)


if __name__ == "__main__":
    main()
