"""Run BKB and others on COCO's own BBOB suite, through COCO's own experiment and Python package.

    PYTHONPATH=python/src python bench/python/coco.py --tuner bin/tuner --out exdata
    PYTHONPATH=python/src python bench/python/coco.py --out exdata --shares
    python -m cocopp -o ppdata exdata/bkb exdata/tpe exdata/cmaes

It needs coco-experiment, and cocopp for the other lines; optuna for tpe and cma for cmaes. Each
optimiser has 50·d evaluations of each of the 24 functions in instances 1 to 5, knows the box
[-5, 5]^d and nothing else, and has its package's defaults. Each is seeded with the number of
the problem. A function in one dimension is a folder of --out, and a whole one is not repeated.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

Run = Callable[[Any, int, int], None]


def with_bkb(problem: Any, budget: int, seed: int) -> None:
    """The tuner's Python package, with a database in a file of its own."""
    import bkb

    space = {f"x{i}": bkb.Float(-5, 5) for i in range(problem.dimension)}
    with tempfile.TemporaryDirectory() as folder:
        client = bkb.open_file(os.path.join(folder, "tuner.db"))
        study = client.create_study("s", space, minimize="value", seed=seed, max_trials=budget)
        for _ in range(budget):
            trial = study.ask()
            trial.tell(problem([trial[name] for name in space]))
        client.server.stop()


def with_tpe(problem: Any, budget: int, seed: int) -> None:
    """TPE of Optuna, in memory."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))

    def objective(trial: Any) -> Any:
        return problem([trial.suggest_float(f"x{i}", -5, 5) for i in range(problem.dimension)])

    study.optimize(objective, n_trials=budget)


def with_cmaes(problem: Any, budget: int, seed: int) -> None:
    """pycma from a uniform point with a step of a fifth of the box, and IPOP restarts."""
    import cma
    import numpy

    random = numpy.random.RandomState(seed + 1)
    population = None
    while problem.evaluations < budget:
        options = {
            "bounds": [-5, 5],
            "seed": random.randint(1, 2**31 - 1),
            "verbose": -9,
            "verb_log": 0,
            "maxfevals": budget - problem.evaluations,
        }
        if population:
            options["popsize"] = population
        strategy = cma.CMAEvolutionStrategy(random.uniform(-5, 5, problem.dimension), 2, options)
        population = 2 * strategy.popsize
        while not strategy.stop():
            points = strategy.ask()[: budget - problem.evaluations]
            values = [problem(x) for x in points]
            if len(values) < strategy.popsize:
                return
            strategy.tell(points, values)


RUNS: dict[str, Run] = {"bkb": with_bkb, "tpe": with_tpe, "cmaes": with_cmaes}


def function(name: str, dimension: int, number: int, budget: int, out: Path) -> None:
    """Run one optimiser on the five instances of a function, into a folder of its own."""
    import cocoex

    folder = out / name / f"d{dimension:02}-f{number:03}"
    if folder.exists():
        return
    shutil.rmtree("exdata/part", ignore_errors=True)
    begun = time.process_time()
    suite = cocoex.Suite(
        "bbob", "", f"dimensions:{dimension} function_indices:{number} instance_indices:1-5"
    )
    observer = cocoex.Observer("bbob", f"algorithm_name:{name} result_folder:part")
    for seed, problem in enumerate(suite):
        problem.observe_with(observer)
        RUNS[name](problem, budget * dimension, 100 * number + seed)
        problem.free()
    folder.parent.mkdir(parents=True, exist_ok=True)
    shutil.move("exdata/part", folder)
    print(f"{name} f{number} d={dimension}: {time.process_time() - begun:.0f} s", flush=True)


def shares(names: list[str], out: Path) -> None:
    """Print the share of cocopp's 51 targets, 100 to 1e-8, that are reached within a budget."""
    import cocopp
    import numpy

    targets = 10 ** numpy.linspace(2, -8, 51)
    budgets = [5, 10, 20, 50]
    print("| d | optimiser | functions |" + "".join(f" {b}·d |" for b in budgets))
    print("|--:|---|--:|" + "--:|" * len(budgets))
    rows = []
    for name in names:
        with contextlib.redirect_stdout(io.StringIO()):
            found = cocopp.load(str(out / name))
        for d in {one.dim for one in found}:
            sets = [one.detEvals(targets) for one in found if one.dim == d]
            cells = (
                numpy.mean([numpy.mean(numpy.asarray(each) <= b * d) for each in sets])
                for b in budgets
            )
            row = f"| {d} | {name} | {len(sets)} |" + "".join(f" {cell:.3f} |" for cell in cells)
            rows.append((d, names.index(name), row))
    for _, _, row in sorted(rows):
        print(row)


def main() -> None:
    """Run what is not there yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tuner", help="the program (the package's own)")
    parser.add_argument("--out", type=Path, default=Path("exdata"), help="folder of the results")
    parser.add_argument("--optimizers", nargs="+", default=list(RUNS), choices=list(RUNS))
    parser.add_argument("--dimensions", nargs="+", type=int, default=[2, 3, 5, 10])
    parser.add_argument("--functions", nargs="+", type=int, default=list(range(1, 25)))
    parser.add_argument("--budget", type=int, default=50, help="evaluations for each dimension")
    parser.add_argument("--shares", action="store_true", help="print what was reached instead")
    arguments = parser.parse_args()
    if arguments.tuner:
        os.environ["BKB_TUNER"] = os.path.abspath(arguments.tuner)
    out = arguments.out.absolute()
    warnings.simplefilter("ignore")
    if arguments.shares:
        shares(arguments.optimizers, out)
        return
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # the observer writes here
        for dimension in arguments.dimensions:
            for number in arguments.functions:
                for name in arguments.optimizers:
                    function(name, dimension, number, arguments.budget, out)


if __name__ == "__main__":
    main()
