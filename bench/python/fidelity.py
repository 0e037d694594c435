"""Compare multi-fidelity methods on learning curves: BKB with its pruners, Optuna's TPE with
Hyperband and the median rule, and SMAC's multi-fidelity facade.

    PYTHONPATH=python/src python bench/python/fidelity.py --tuner bin/tuner --data ../shared/data

Costs are counted in steps of training, and a budget is a number of full trainings. What is
trained again to a higher step costs only the steps that are new, and a training that has
diverged costs nothing more. The result of a method is
the value of the best configuration that it trained to the last step, without noise where
that is known. A run is a line of JSON in --out, and runs that are there are not repeated,
whatever their version. Delete the file after a change of a program or of this script.
Methods whose package is missing are left out and named. Random search always runs, because
the report is in its units.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import importlib.metadata
import json
import math
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass
class Range:
    low: float
    high: float
    log: bool = False
    whole: bool = False


class Spent(Exception):
    """The budget is spent."""


class Task:
    """A task has a space, the steps of its reports, and the loss at a step."""

    name: str
    space: dict[str, Range]
    steps: list[int]
    best: float | None = None  # the least final loss, if known

    def loss(self, params: dict[str, float], step: int, seed: int) -> float:
        """Return what a worker measures."""
        raise NotImplementedError

    def final(self, params: dict[str, float], seed: int) -> float:
        """Return the loss after the last step, without noise where that is known."""
        return self.loss(params, self.steps[-1], seed)


# ---- generated curves ------------------------------------------------------------


class Generated(Task):
    """Curves final + gap·(s/81)^−speed, shifted to end in final, with noise.

    Slow learners may end best where gap and speed depend on the parameters.
    """

    def __init__(
        self,
        name: str,
        dim: int,
        best: float,
        final: Callable[[list[float]], float],
        gap: Callable[[list[float]], float],
        speed: Callable[[list[float]], float],
        noise: float,
    ) -> None:
        self.name, self.best, self.noise = name, best, noise
        self.space = {f"x{i}": Range(0, 1) for i in range(dim)}
        self.steps = list(range(1, 82))
        self.end, self.gap, self.speed = final, gap, speed

    def final(self, params: dict[str, float], seed: int) -> float:
        return self.end(list(params.values()))

    def loss(self, params: dict[str, float], step: int, seed: int) -> float:
        u = list(params.values())
        p = self.speed(u)
        left = ((step / 81) ** -p - 1) / (81**p - 1)
        text = f"{sorted(params.items())} {step} {seed}"
        noise = random.Random(hashlib.sha256(text.encode()).digest()).gauss(0, self.noise) if self.noise else 0
        return self.end(u) + self.gap(u) * left + noise


def branin(u: list[float]) -> float:
    x, y = 15 * u[0] - 5, 15 * u[1]
    return (
        (y - 5.1 * x * x / (4 * math.pi**2) + 5 * x / math.pi - 6) ** 2
        + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x)
        + 10
    )


HARTMANN_A = [
    [10, 3, 17, 3.5, 1.7, 8],
    [0.05, 10, 17, 0.1, 8, 14],
    [3, 3.5, 1.7, 10, 17, 8],
    [17, 8, 0.05, 10, 0.1, 14],
]
HARTMANN_P = [
    [1312, 1696, 5569, 124, 8283, 5886],
    [2329, 4135, 8307, 3736, 1004, 9991],
    [2348, 1451, 3522, 2883, 3047, 6650],
    [4047, 8828, 8732, 5743, 1091, 381],
]


def hartmann(u: list[float]) -> float:
    return -sum(
        c * math.exp(-sum(a * (x - p / 1e4) ** 2 for a, p, x in zip(A, P, u)))
        for c, A, P in zip([1, 1.2, 3, 3.2], HARTMANN_A, HARTMANN_P)
    )


def ackley(u: list[float], low: float = -34.068, width: float = 65.536) -> float:
    x = [low + width * v for v in u]
    return (
        -20 * math.exp(-0.2 * math.sqrt(sum(v * v for v in x) / len(x)))
        - math.exp(sum(math.cos(2 * math.pi * v) for v in x) / len(x))
        + 20
        + math.e
    )


def generated() -> list[Task]:
    return [
        Generated("branin, equal curves", 2, 0.39788735772973816, branin, lambda u: 100, lambda u: 0.5, 0),
        Generated(
            "branin, crossing curves",
            2,
            0.39788735772973816,
            branin,
            lambda u: 40 + 160 * u[0],
            lambda u: 0.2 + 0.8 * u[1],
            1,
        ),
        Generated("hartmann, equal curves", 6, -3.3223680114155147, hartmann, lambda u: 3, lambda u: 0.7, 0.02),
        Generated(
            "hartmann, crossing curves",
            6,
            -3.3223680114155147,
            hartmann,
            lambda u: 1 + 4 * u[0],
            lambda u: 0.3 + u[3],
            0.02,
        ),
        Generated("ackley, crossing curves", 5, 0, ackley, lambda u: 3 + 10 * u[2], lambda u: 0.3 + 0.7 * u[1], 0.1),
    ]


# ---- a bundled learner on real data ----------------------------------------------


class Learner(Task):
    """SGD with random features, by the passes over 3,000 rows. The loss is the RMSE on 1,000."""

    def __init__(self, name: str, data: str, tuner: str) -> None:
        self.name, self.tuner = f"sgdrf on {name}", tuner
        self.folder = tempfile.TemporaryDirectory()
        with gzip.open(os.path.join(data, "uci", f"{name}.data.csv.gz"), "rt") as f:
            rows = list(csv.reader(f))
        random.Random(1).shuffle(rows)
        self.space = {
            "length_scale": Range(0.1, 10, log=True),
            "frequencies": Range(16, 1024, log=True, whole=True),
            "batch_size": Range(1, 512, log=True, whole=True),
            "step_scale": Range(0.01, 1.9, log=True),
            "step_decay": Range(0, 0.9),
            "lambda": Range(1e-9, 0.1, log=True),
        }
        self.steps = [1, 3, 9, 27]
        self.known: dict[str, float] = {}
        for part, some in (("train", rows[:3000]), ("valid", rows[3000:4000])):
            with open(os.path.join(self.folder.name, part + ".csv"), "w", newline="") as f:
                out = csv.writer(f)
                out.writerow([*(f"x{i}" for i in range(len(rows[0]) - 1)), "y"])
                out.writerows(some)

    def loss(self, params: dict[str, float], step: int, seed: int) -> float:
        key = json.dumps([params, step, seed], sort_keys=True)
        if key not in self.known:
            at = self.folder.name
            values = {**params, "random_features": 2 * params["frequencies"]}  # a cosine and a sine of each
            del values["frequencies"]
            flags = [f"--{k.replace('_', '-')}={v!r}" for k, v in values.items()]
            model = os.path.join(at, "model")
            run = [
                self.tuner,
                "train",
                "sgdrf",
                "--data",
                f"{at}/train.csv",
                "--target",
                "y",
                "--passes",
                str(step),
                "--averaging",
                "none",
                "--seed",
                str(seed),
                "--workers",
                "1",
                "--out",
                model,
                *flags,
            ]
            if os.path.exists(model):
                os.remove(model)
            done = subprocess.run(run, capture_output=True, text=True)
            if done.returncode:
                if "diverge" not in done.stderr and "finite" not in done.stderr:
                    raise RuntimeError(done.stderr)
                self.known[key] = math.inf
            else:
                shown = subprocess.run(
                    [self.tuner, "evaluate", "--model", model, "--data", f"{at}/valid.csv", "--format", "json"],
                    capture_output=True,
                    text=True,
                    check=True,
                )
                self.known[key] = float(json.loads(shown.stdout)["rmse"])
        return self.known[key]


# ---- runs ------------------------------------------------------------------------


class Run:
    """Counts steps, and keeps the best final loss at each number of steps."""

    def __init__(self, task: Task, seed: int, trainings: int) -> None:
        self.task, self.seed = task, seed
        self.budget = trainings * task.steps[-1]
        self.spent, self.best = 0, math.inf
        self.path: list[tuple[int, float]] = []
        self.trained: dict[str, int] = {}
        self.diverged: dict[str, int] = {}  # the step at which a training was not finite

    def train(self, params: dict[str, float], step: int) -> float:
        """Train to a step. What was trained before is not paid again, nor what follows a divergence."""
        key = json.dumps(params, sort_keys=True)
        if step >= self.diverged.get(key, math.inf):
            return math.inf
        new = max(0, step - self.trained.get(key, 0))
        if self.spent + new > self.budget:
            raise Spent
        self.spent += new
        self.trained[key] = max(step, self.trained.get(key, 0))
        loss = self.task.loss(params, step, self.seed)
        if not math.isfinite(loss):
            self.diverged[key] = step
            return math.inf
        if step == self.task.steps[-1]:
            final = self.task.final(params, self.seed)
            if final < self.best:
                self.best = final
                self.path.append((self.spent, final))
        return loss

    def curve(self, params: dict[str, float]) -> Iterator[tuple[int, float]]:
        for step in self.task.steps:
            yield step, self.train(params, step)


def finite(x: float) -> float:
    return x if math.isfinite(x) else 1e6


def run_random(run: Run) -> None:
    rng = random.Random(run.seed)
    while True:
        params = {}
        for name, r in run.task.space.items():
            x = math.exp(rng.uniform(math.log(r.low), math.log(r.high))) if r.log else rng.uniform(r.low, r.high)
            params[name] = round(x) if r.whole else x
        for _ in run.curve(params):
            pass


def run_bkb(pruner: object) -> Callable[[Run], None]:
    def go(run: Run) -> None:
        import bkb

        space = {
            name: bkb.Int(int(r.low), int(r.high), log=r.log) if r.whole else bkb.Float(r.low, r.high, log=r.log)
            for name, r in run.task.space.items()
        }
        last = run.task.steps[-1]
        rule = pruner(last) if callable(pruner) else pruner
        with tempfile.TemporaryDirectory() as folder:
            client = bkb.open_file(os.path.join(folder, "tuner.db"))
            try:
                study = client.create_study(
                    "s", space, minimize="loss", seed=run.seed, **({"pruner": rule} if rule else {})
                )
                while True:
                    trial = study.ask()
                    value = math.nan
                    for step, value in run.curve(dict(trial.params)):
                        if not math.isfinite(value):
                            break
                        trial.report(value, step)
                        if step < last and trial.should_prune():
                            trial.tell(state="pruned")
                            break
                    else:
                        trial.tell(value)
                    if not math.isfinite(value):
                        trial.tell(state="infeasible")
            finally:
                client.server.stop()

    return go


def run_tpe(pruner: str) -> Callable[[Run], None]:
    def go(run: Run) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        last = run.task.steps[-1]
        rules = {
            "hyperband": lambda: optuna.pruners.HyperbandPruner(min_resource=1, max_resource=last, reduction_factor=3),
            "median": optuna.pruners.MedianPruner,
        }
        study = optuna.create_study(
            study_name=f"seed {run.seed}",  # Hyperband takes brackets by the name, which is random otherwise
            sampler=optuna.samplers.TPESampler(seed=run.seed),
            pruner=rules[pruner](),
        )
        while True:
            trial = study.ask()
            params = {
                name: trial.suggest_int(name, int(r.low), int(r.high), log=r.log)
                if r.whole
                else trial.suggest_float(name, r.low, r.high, log=r.log)
                for name, r in run.task.space.items()
            }
            value = math.nan
            for step, value in run.curve(params):
                value = finite(value)
                trial.report(value, step)
                if step < last and trial.should_prune():
                    study.tell(trial, state=optuna.trial.TrialState.PRUNED)
                    break
            else:
                study.tell(trial, value)

    return go


def run_smac(run: Run) -> None:
    import ConfigSpace
    import smac

    space = ConfigSpace.ConfigurationSpace(seed=run.seed)
    for name, r in run.task.space.items():
        kind = ConfigSpace.UniformIntegerHyperparameter if r.whole else ConfigSpace.UniformFloatHyperparameter
        space.add(
            kind(name, lower=int(r.low) if r.whole else r.low, upper=int(r.high) if r.whole else r.high, log=r.log)
        )
    last = run.task.steps[-1]

    with tempfile.TemporaryDirectory() as folder:
        scenario = smac.Scenario(
            space,
            deterministic=True,
            n_trials=10**6,
            min_budget=1,
            max_budget=last,
            seed=run.seed,
            output_directory=folder,
        )
        facade = smac.MultiFidelityFacade
        optimizer = facade(
            scenario,
            lambda config, seed=0, budget=0: 0.0,
            overwrite=True,
            logging_level=60,
            intensifier=facade.get_intensifier(scenario, eta=3),
        )
        while True:
            info = optimizer.ask()
            params = {
                name: (int(info.config[name]) if r.whole else float(info.config[name]))
                for name, r in run.task.space.items()
            }
            budget = max((s for s in run.task.steps if s <= round(info.budget)), default=run.task.steps[0])
            value = finite(run.train(params, budget))
            optimizer.tell(info, smac.runhistory.TrialValue(cost=value))


METHODS: dict[str, Callable[[Run], None]] = {
    "random": run_random,
    "bkb": run_bkb(None),
    "bkb, median": run_bkb("median"),
    "bkb, asha": run_bkb(("asha", {"reduction_factor": 3})),
    "bkb, hyperband": run_bkb(lambda last: ("hyperband", {"max_resource": last})),
    "bkb, model": run_bkb("model"),
    "tpe, median": run_tpe("median"),
    "tpe, hyperband": run_tpe("hyperband"),
    "smac, hyperband": run_smac,
}


def at(path: list[tuple[int, float]], spent: float) -> float:
    return min((v for s, v in path if s <= spent), default=math.inf)


def version(method: str, tuner: str) -> str:
    """Return the version of what runs a method."""
    if method.startswith("bkb"):
        return subprocess.run([tuner, "version"], capture_output=True, text=True, check=True).stdout.strip()
    for prefix, package in (("tpe", "optuna"), ("smac", "smac")):
        if method.startswith(prefix):
            return f"{package} {importlib.metadata.version(package)}"
    return f"python {platform.python_version()}"


FLOOR, CAP = 1e-4, 10.0  # of the regret in units of random search's, beyond which nothing counts


def regret(value: float, best: float, base: float) -> float:
    """Return the regret in units of random search's, which ends with base."""
    if value <= best:
        return FLOOR
    if not math.isfinite(value) or base <= best:
        return CAP
    return min(CAP, max(FLOOR, (value - best) / (base - best)))  # FLOOR where random search has no result


def report(
    tasks: list[Task], runs: dict[tuple[str, str, int], dict[str, Any]], seeds: list[int], budgets: list[int]
) -> None:
    """Print medians for each task, and ranks over the tasks and seeds that all methods have."""
    methods = [m for m in METHODS if any(m == known for _, known, _ in runs)]
    columns = " | ".join(f"{b} trainings" for b in budgets)
    rule = "---:|" * (len(budgets) + 1)
    ranks: dict[tuple[str, int], list[float]] = {(m, b): [] for m in methods for b in budgets}
    logs: dict[tuple[str, int], list[float]] = {(m, b): [] for m in methods for b in budgets}
    for task in tasks:
        whole = [s for s in seeds if all((task.name, m, s) in runs for m in methods)]
        if not whole or "random" not in methods:
            continue
        last = task.steps[-1]
        paths = {m: [runs[task.name, m, s]["path"] for s in whole] for m in methods}
        best = (
            task.best
            if task.best is not None
            else min((v for some in paths.values() for p in some for _, v in p), default=math.inf)
        )
        base = statistics.median(at(p, budgets[-1] * last) for p in paths["random"])
        print(f"\n### {task.name}\n\nThe least known loss is {best:.5g}, and random search ends with {base:.5g}.\n")
        print(f"| method | runs | {columns} | trainings to random's end |\n|---|---:|---:|{rule}")
        for m in methods:
            cells = [f"{statistics.median(at(p, b * last) for p in paths[m]):.5g}" for b in budgets]
            reached = [next((s / last for s, v in p if v <= base), math.inf) for p in paths[m]]
            print(f"| {m} | {len(whole)} | {' | '.join(cells)} | {statistics.median(reached):.3g} |")
        for b in budgets:
            for i in range(len(whole)):
                regrets = {m: regret(at(paths[m][i], b * last), best, base) for m in methods}
                for m, r in regrets.items():
                    below = sum(v < r for v in regrets.values())
                    equal = sum(v == r for v in regrets.values())
                    ranks[m, b].append(below + (equal + 1) / 2)
                    logs[m, b].append(math.log10(r))
    print("\n### All\n\nThe mean rank, and the mean of log10 of the regret in units of random search's at the end.\n")
    print(f"| method | runs | {columns} |\n|---|{rule}")
    for m in methods:
        cells = [
            f"{statistics.mean(ranks[m, b] or [math.nan]):.2f}, {statistics.mean(logs[m, b] or [math.nan]):+.2f}"
            for b in budgets
        ]
        print(f"| {m} | {len(ranks[m, budgets[0]])} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tuner", default="bin/tuner", help="the program")
    parser.add_argument("--data", default=os.environ.get("BKB_DATA", "../shared/data"))
    parser.add_argument("--out", default="fidelity.jsonl")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--methods", default="", help="parts of names, separated by ; (random always runs)")
    parser.add_argument("--tasks", default="", help="parts of names, separated by ;")
    parser.add_argument("--trainings", type=int, nargs="+", default=[15, 30], help="budgets, ascending")
    parser.add_argument("--report", action="store_true", help="report on what is there")
    args = parser.parse_args()
    if args.trainings[0] < 1 or any(a >= b for a, b in zip(args.trainings, args.trainings[1:])):
        given = " ".join(map(str, args.trainings))
        parser.error(f"--trainings {given}: budgets are at least 1 and ascend; give the least first, as in 15 30")
    os.environ["BKB_TUNER"] = os.path.abspath(args.tuner)
    warnings.simplefilter("ignore")
    tasks = generated()
    for name in ("kin40k", "protein"):
        if os.path.exists(os.path.join(args.data, "uci", f"{name}.data.csv.gz")):
            tasks.append(Learner(name, args.data, os.path.abspath(args.tuner)))
        else:
            print(f"no data for {name} in {args.data}", file=sys.stderr)
    wanted = lambda text, some: not some or any(w.strip() and w.strip() in text for w in some.split(";"))
    seeds = list(range(args.first, args.first + args.seeds))
    runs = {}
    if os.path.exists(args.out):
        with open(args.out) as f:
            for line in f:
                r = json.loads(line)
                if r["trainings"] >= args.trainings[-1]:
                    runs[r["task"], r["method"], r["seed"]] = r
    missing = set()
    for seed in seeds if not args.report else []:
        for task in tasks:
            for method, go in METHODS.items():
                if (
                    (task.name, method, seed) in runs
                    or method in missing
                    or not wanted(task.name, args.tasks)
                    or not (method == "random" or wanted(method, args.methods))
                ):
                    continue
                run = Run(task, seed, args.trainings[-1])
                try:
                    go(run)
                except Spent:
                    pass
                except ImportError as e:
                    missing.add(method)
                    print(f"{method}: {e}", file=sys.stderr)
                    continue
                r = {
                    "task": task.name,
                    "method": method,
                    "seed": seed,
                    "trainings": args.trainings[-1],
                    "path": run.path,
                    "trained": len(run.trained),
                    "version": version(method, os.environ["BKB_TUNER"]),
                }
                runs[task.name, method, seed] = r
                with open(args.out, "a") as f:
                    f.write(json.dumps(r) + "\n")
                print(
                    f"{task.name}, {method}, seed {seed}: {run.best:.5g}, {len(run.trained)} configurations",
                    file=sys.stderr,
                )
    if not any(method == "random" for _, method, _ in runs):
        parser.error(f"--out {args.out}: the report needs runs of random; run without --report first")
    report(tasks, runs, seeds, args.trainings)


if __name__ == "__main__":
    main()
