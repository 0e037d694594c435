"""Run examples of Optuna with one changed line, and examples of other libraries' documentation.

    git clone https://github.com/optuna/optuna-examples
    PYTHONPATH=python/src python bench/python/examples.py --examples optuna-examples

The changed line is the one that creates the study, which gets a sampler. Each example runs with
three seeds, once with TPE and once with BKB, and --report prints the table of docs/migrate.md.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import gzip
import io
import math
import multiprocessing
import os
import random
import re
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bkb
import numpy as np
import optuna
from bkb.optuna import BKBSampler

SEEDS, MOST = (1, 2, 3), 30
FIELDS = ("example", "sampler", "seed", "trials", "best", "seconds")

# Files of optuna-examples at 2e0b10bc (July 2026), and what better is.
OPTUNA = {
    "basic/quadratic.py": "minimize",
    "basic/pruning.py": "maximize",
    "faq/enqueue_trial.py": "maximize",
    "faq/max_trials_callback.py": "minimize",
    "lightgbm/lightgbm_integration.py": "maximize",
    "lightgbm/lightgbm_simple.py": "maximize",
    "sklearn/sklearn_additional_args.py": "maximize",
    "sklearn/sklearn_simple.py": "maximize",
    "xgboost/xgboost_integration.py": "maximize",
    "xgboost/xgboost_simple.py": "maximize",
}


def skopt_bayesian(trial: Any) -> float:
    """Return the noisy function of scikit-optimize's page on Bayesian optimization."""
    x = trial.suggest_float("x", -2, 2)
    return math.sin(5 * x) * (1 - math.tanh(x**2)) + random.gauss(0, 0.1)


def bayes_opt_basic(trial: Any) -> float:
    """Return the black box of the basic tour of bayesian-optimization, negated."""
    x, y = trial.suggest_float("x", 2, 4), trial.suggest_float("y", -3, 3)
    return float(x**2 + (y - 1) ** 2 - 1)


def nevergrad_training(trial: Any) -> float:
    """Return the pretended training of Nevergrad's page on machine learning."""
    rate = trial.suggest_float("learning_rate", 0.001, 1.0, log=True)
    batch = trial.suggest_int("batch_size", 1, 12)
    architecture = trial.suggest_categorical("architecture", ["conv", "fc"])
    return float((rate - 0.2) ** 2 + (batch - 4) ** 2 + (0 if architecture == "conv" else 10))


def ax_booth(trial: Any) -> float:
    """Return the Booth function of Ax's page on its loop."""
    x, y = trial.suggest_float("x1", -10, 10), trial.suggest_float("x2", -10, 10)
    return float((x + 2 * y - 7) ** 2 + (2 * x + y - 5) ** 2)


def smac_svm(trial: Any) -> float:
    """Return the error of the support vector machine of SMAC's examples, on iris."""
    from sklearn import datasets, model_selection, svm

    kernel = trial.suggest_categorical("kernel", ["linear", "poly", "rbf", "sigmoid"])
    settings = {"kernel": kernel, "C": trial.suggest_float("C", 0.001, 1000, log=True)}
    settings["shrinking"] = trial.suggest_categorical("shrinking", [True, False])
    if kernel == "poly":
        settings["degree"] = trial.suggest_int("degree", 1, 5)
    if kernel in ("poly", "sigmoid"):
        settings["coef0"] = trial.suggest_float("coef0", 0, 10)
    if kernel != "linear":
        settings["gamma"] = "auto"
        if trial.suggest_categorical("gamma", ["auto", "value"]) == "value":
            settings["gamma"] = trial.suggest_float("gamma_value", 0.0001, 8, log=True)
    iris = datasets.load_iris()
    scores = model_selection.cross_val_score(
        svm.SVC(**settings, max_iter=100_000, random_state=0), iris.data, iris.target, cv=5
    )
    return 1 - float(np.mean(scores))


FUNCTIONS = (skopt_bayesian, bayes_opt_basic, nevergrad_training, ax_booth, smac_svm)
OTHERS = {f.__name__: f for f in FUNCTIONS}


def run_optuna(path: Path, sampler: Any) -> tuple[int, float]:
    """Run a file, and return how many trials its study has and the best value."""
    made: list[Any] = []
    create, optimize = optuna.create_study, optuna.Study.optimize

    def create_study(**options: Any) -> Any:
        made.append(create(**options))
        return made[-1]

    def capped(study: Any, objective: Any, n_trials: int = 0, **options: Any) -> None:
        options.pop("timeout", None)  # so that both samplers run as many trials
        options.pop("callbacks", None)  # which end a study early
        optimize(study, objective, min(n_trials, MOST - len(study.trials)), **options)

    text, count = re.subn(r"create_study\(", "create_study(sampler=SAMPLER, ", path.read_text())
    if count != 1:
        raise ValueError(f"{path} creates {count} studies")
    names = {"__name__": "__main__", "__file__": str(path), "SAMPLER": sampler}
    optuna.create_study, optuna.Study.optimize = create_study, capped
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(text, str(path), "exec"), names)
    finally:
        optuna.create_study, optuna.Study.optimize = create, optimize
    return len(made[0].trials), made[0].best_value


def run_other(objective: Callable[[Any], float], sampler: str, seed: int) -> tuple[int, float]:
    """Run an objective in a study of Optuna with TPE, or in one of bkb."""
    study: Any
    if sampler == "tpe":
        study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    else:
        study = bkb.create_study(objective.__name__, minimize="value", seed=seed, db="examples.db")
    values: list[float] = []

    def noted(trial: Any) -> float:
        values.append(objective(trial))
        return values[-1]

    study.optimize(noted, n_trials=MOST)
    if sampler == "bkb":
        bkb.delete_study(objective.__name__, db="examples.db")
    return len(values), min(values)


def run(job: tuple[str, str, int, Path]) -> tuple[Any, ...]:
    """Run an example in a folder of its own, and return a row of the results."""
    example, sampler, seed, folder = job
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    random.seed(seed)
    np.random.seed(seed)
    begun = time.process_time()
    with tempfile.TemporaryDirectory() as d:
        os.chdir(d)
        if example in OPTUNA:
            make = optuna.samplers.TPESampler if sampler == "tpe" else BKBSampler
            trials, best = run_optuna(folder / example, make(seed=seed))
        else:
            trials, best = run_other(OTHERS[example], sampler, seed)
        os.chdir("/")
    seconds = f"{time.process_time() - begun:.1f}"
    return example, sampler, seed, trials, f"{best:.6g}", seconds


def report(file: Path) -> None:
    """Print a table of the mean and spread of the best values."""
    with gzip.open(file, "rt") as f:
        rows = list(csv.DictReader(f))
    print("| example | better | TPE | BKB |\n|---|---|---|---|")
    for example in dict.fromkeys(r["example"] for r in rows):
        cells = []
        for sampler in ("tpe", "bkb"):
            best = [
                float(r["best"])
                for r in rows
                if r["example"] == example and r["sampler"] == sampler
            ]
            cells.append(f"{statistics.mean(best):.4g} ({min(best):.4g} to {max(best):.4g})")
        better = "more" if OPTUNA.get(example) == "maximize" else "less"
        print(f"| {example} | {better} | {cells[0]} | {cells[1]} |")


def main() -> None:
    """Run the examples, or print their table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=Path, help="clone of optuna-examples")
    parser.add_argument("--out", type=Path, default=Path("examples.csv.gz"))
    parser.add_argument("--jobs", type=int, default=1, help="examples at once")
    parser.add_argument("--report", action="store_true", help="print the table of --out")
    chosen = parser.parse_args()
    if chosen.report:
        report(chosen.out)
        return
    folder, out, rows = chosen.examples.resolve(), chosen.out.resolve(), []
    jobs = [(e, s, n, folder) for e in (*OTHERS, *OPTUNA) for n in SEEDS for s in ("tpe", "bkb")]
    with multiprocessing.get_context("spawn").Pool(chosen.jobs, maxtasksperchild=1) as pool:
        for row in pool.imap(run, jobs):
            rows.append(row)
            print(*row, file=sys.stderr, flush=True)
    with gzip.GzipFile(out, "wb", mtime=0) as raw, io.TextIOWrapper(raw, newline="") as f:
        csv.writer(f).writerows([FIELDS, *rows])


if __name__ == "__main__":
    main()
