#!/usr/bin/env python3
"""Optimisers of other projects, called peers, for `go -C bench run . bo`. Each is one class.

    peers.py NAME     one of PEERS at the end of this file

reads one message per line from stdin and answers each with a line on stdout, in JSON:

    {"op": "start", "space": {…}, "seed": 1, "trials": 200}  →  {"ok": true, "version": "optuna 4.9.0"}
    {"op": "ask"}                                            →  {"config": {…}, "seconds": 0.01}
    {"op": "tell", "config": {…}, "value": 1.5, "ok": true}  →  {"ok": true}

space has the format in tuner/space/doc.go. A failed trial has ok false and no value. On a
problem with limits a message tell also has "metrics": [0.2, -1], none of which may be
above 0, and a trial beyond a limit has ok false and a value. With several objectives start has
their number as "objectives", and value is a list. A
configuration that was never asked for may be told. A peer that cannot search the space
answers start with {"unsupported": "why"}, and one whose package is missing with
{"missing": "what"}. Any other error is answered with {"error": "what"}, a traceback on
stderr and exit status 1.

seconds is the processor time of this process since the ask before. It includes that
ask's tell, because some peers fit their model there. Everything runs on one thread.

bench/README.md describes how spaces and failures are encoded for each peer.
"""
import importlib.metadata
import json
import math
import os
import random
import signal
import sys
import time
import traceback
import warnings
from decimal import Decimal

for _name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB_MAXIMUM"):
    os.environ[_name + "_NUM_THREADS"] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["CUDA_VISIBLE_DEVICES"] = ""


class Unsupported(Exception):
    """The peer does not support a feature of the space."""


# ---- spaces ----------------------------------------------------------------------


class Parameter:
    """One parameter for the peers, with a coordinate of one of four kinds.

    real    a float between low and high, on a logarithmic scale if log
    whole   an int between low and high, on a logarithmic scale if log
    choice  an int between 0 and high without order
    fixed   no coordinate

    Stepped ranges and ordinals are whole, the number of the step or of the value.
    A reverse-log range is the mirror image of a logarithmic one.
    """

    def __init__(self, name, field):
        self.name, self.type = name, field["type"]
        self.when = [(parent, v if isinstance(v, list) else [v]) for parent, v in field.get("when", {}).items()]
        self.values = None  # by coordinate
        self.mirror = None  # value + coordinate
        self.low, self.log = 0, False
        if self.type == "constant":
            self.kind, self.values = "fixed", [field["value"]]
        elif "values" in field:
            self.kind, self.values = "choice" if self.type == "categorical" else "whole", field["values"]
        elif "step" in field:
            low, high, step = field["low"], field["high"], field["step"]
            self.kind, self.values = "whole", Grid(low, high, step) if self.type == "float" else range(low, high + 1, step)
        else:
            self.kind = "real" if self.type == "float" else "whole"
            self.low, self.high = field["low"], field["high"]
            self.log = field.get("scale", "linear") != "linear"
            if field.get("scale") == "reverse-log":
                self.mirror = self.low + self.high
            if self.low == self.high:
                self.kind, self.values = "fixed", [self.low]
        if self.values is not None:
            self.high = len(self.values) - 1
            if self.high == 0:
                self.kind = "fixed"

    def value(self, coordinate):
        """The value at a coordinate, which rounding may have moved just outside."""
        number = float if self.kind == "real" else round
        coordinate = min(max(number(coordinate), number(self.low)), number(self.high))
        if self.values is not None:
            return self.values[coordinate]
        if self.mirror is not None:
            coordinate = min(max(self.mirror - coordinate, self.low), self.high)
        return coordinate + 0  # -0.0 becomes 0.0

    def coordinate(self, value):
        if self.values is not None:
            if isinstance(self.values, list):
                return next(i for i, v in enumerate(self.values) if same(v, value))
            return self.values.index(value)
        return value if self.mirror is None else min(max(self.mirror - value, self.low), self.high)


class Grid:
    """The floats low, low + step, … ≤ high, computed in decimal. There may be 10¹⁵."""

    def __init__(self, low, high, step):
        self.low, self.step = Decimal(repr(low)), Decimal(repr(step))
        self.count = int((Decimal(repr(high)) - self.low) // self.step) + 1

    def __len__(self):
        return self.count

    def __getitem__(self, k):
        return float(self.low + k * self.step)

    def index(self, value):
        return round((Decimal(repr(value)) - self.low) / self.step)


def same(a, b):
    """Equal as JSON, where true is not 1."""
    return a == b and isinstance(a, bool) == isinstance(b, bool)


class Space:
    def __init__(self, form):
        self.parameters = [Parameter(name, field) for name, field in form["parameters"].items()]
        self.conditional = any(p.when for p in self.parameters)
        self.free = [p for p in self.parameters if p.kind != "fixed"]  # those with a coordinate
        done, self.order = set(), []  # parents before children
        while len(self.order) < len(self.parameters):
            for p in self.parameters:
                if p.name not in done and all(parent in done for parent, _ in p.when):
                    self.order.append(p)
                    done.add(p.name)

    def config(self, coordinate):
        """The configuration whose active parameters p have coordinate(p)."""
        out = {}
        for p in self.order:
            if active(p, out):
                out[p.name] = p.values[0] if p.kind == "fixed" else p.value(coordinate(p))
        return out

    def coordinates(self, config):
        """The coordinates of a configuration, by name."""
        return {p.name: p.coordinate(config[p.name]) for p in self.free if p.name in config}


def active(p, config):
    return all(parent in config and any(same(config[parent], v) for v in values) for parent, values in p.when)


# ---- common parts ----------------------------------------------------------------


class Peer:
    """One study of one optimiser. Values are to be minimized."""

    conditions = False  # can search spaces that have them
    limits = False  # learns from metrics that must not be above 0
    several = False  # has several objectives
    metrics = None  # of the trial being told

    def __init__(self, space, seed, trials, objectives):
        if space.conditional and not self.conditions:
            raise Unsupported("conditional parameters")
        if objectives > 1 and not self.several:
            raise Unsupported("several objectives")
        self.space, self.trials, self.objectives = space, trials, objectives
        self.seed = seed % 2**31  # accepted by all peers
        self.asked = {}  # JSON of configuration → second value of ask
        self.worst = None  # value told
        self.start()

    def start(self):
        """Makes the optimiser and sets self.version."""
        raise NotImplementedError

    def ask(self):
        """Returns a configuration, and a token for tell."""
        raise NotImplementedError

    def tell(self, token, config, value):
        """token is None for a configuration never asked for, value None for a failure."""
        raise NotImplementedError

    def end(self):
        """Removes all temporary files."""


class Imputing(Peer):
    """A peer without failures. A failed trial is told with the worst value so far.
    Failures before any success are told with 0, which the value of the first success
    then replaces."""

    def tell(self, token, config, value):
        first = self.worst is None and value is not None
        if value is not None:
            self.worst = value if first else max(value, self.worst)
        if first:
            self.replace(value)
        self.observe(token, config, value if value is not None else 0.0 if self.worst is None else self.worst, value is None)

    def observe(self, token, config, value, failed):
        raise NotImplementedError

    def replace(self, value):
        """Replaces all told values by value."""
        raise NotImplementedError


# ---- random ----------------------------------------------------------------------


class Random(Peer):
    """Python's own random numbers, uniform on each scale. It needs no package, so that
    the common parts can be tested anywhere."""

    conditions = True

    def start(self):
        self.version = "Python " + sys.version.split()[0]
        self.random = random.Random(self.seed)

    def ask(self):
        return self.space.config(self.draw), None

    def draw(self, p):
        margin = 0.5 if p.kind == "whole" else 0
        low, high = p.low - margin, p.high + margin
        if p.log:
            x = math.exp(self.random.uniform(math.log(low), math.log(high)))
            return x if p.kind == "real" else round(x)
        return self.random.uniform(low, high) if p.kind == "real" else self.random.randint(p.low, p.high)

    def tell(self, token, config, value):
        self.space.coordinates(config)


# ---- Optuna ----------------------------------------------------------------------


class Optuna(Peer):
    """Define by run. Only active parameters are suggested, parents first. A failed trial
    is told as FAIL, from which Optuna's samplers learn nothing."""

    conditions = True
    limits = True  # by set_constraint
    several = True

    def start(self):
        import optuna

        self.optuna = optuna
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.version = "optuna " + importlib.metadata.version("optuna")
        self.study = optuna.create_study(directions=["minimize"] * self.objectives, sampler=self.sampler(optuna.samplers))

    def distribution(self, p):
        d = self.optuna.distributions
        if p.kind == "choice":
            return d.CategoricalDistribution(range(len(p.values)))
        return (d.FloatDistribution if p.kind == "real" else d.IntDistribution)(p.low, p.high, log=p.log)

    def suggest(self, trial, p):
        if p.kind == "choice":
            return trial.suggest_categorical(p.name, range(len(p.values)))
        return (trial.suggest_float if p.kind == "real" else trial.suggest_int)(p.name, p.low, p.high, log=p.log)

    def ask(self):
        trial = self.study.ask()
        return self.space.config(lambda p: self.suggest(trial, p)), trial

    def tell(self, token, config, value):
        states = self.optuna.trial.TrialState
        state = states.FAIL if value is None else states.COMPLETE
        if token is not None:
            for i, metric in enumerate(self.metrics or []):
                token.set_constraint(f"c{i}", metric)
            self.study.tell(token, value, state)
            return
        at = self.space.coordinates(config)
        self.study.add_trial(self.optuna.trial.create_trial(
            state=state, value=value, params=at,
            distributions={p.name: self.distribution(p) for p in self.space.free if p.name in at}))


class OptunaTPE(Optuna):
    """The default sampler. Since Optuna 5 it is TPE of all parameters together, and of
    each conditional parameter by itself."""

    def sampler(self, samplers):
        return samplers.TPESampler(seed=self.seed)


class OptunaTPEUnivariate(Optuna):
    """TPE of each parameter by itself, the default up to Optuna 4."""

    def sampler(self, samplers):
        return samplers.TPESampler(seed=self.seed, multivariate=False)


class OptunaNSGA2(Optuna):
    """NSGA-II with its population of 50."""

    def sampler(self, samplers):
        return samplers.NSGAIISampler(seed=self.seed)


class OptunaGP(Optuna):
    """Conditional parameters would be sampled at random, so such spaces are refused."""

    conditions = False

    def sampler(self, samplers):
        import torch

        torch.set_num_threads(1)
        return samplers.GPSampler(seed=self.seed)


# ---- scikit-optimize -------------------------------------------------------------


class Skopt(Imputing):
    """gp_minimize's optimiser, with Matérn-5/2 and the hedge of EI, LCB and PI."""

    def start(self):
        import skopt

        self.version = "scikit-optimize " + importlib.metadata.version("scikit-optimize")
        self.optimizer = skopt.Optimizer([self.dimension(skopt.space, p) for p in self.space.free], "GP", random_state=self.seed)

    def dimension(self, types, p):
        if p.kind == "choice":
            return types.Categorical(list(range(len(p.values))))
        return (types.Real if p.kind == "real" else types.Integer)(p.low, p.high, prior="log-uniform" if p.log else "uniform")

    def ask(self):
        x = dict(zip((p.name for p in self.space.free), self.optimizer.ask()))
        return self.space.config(lambda p: x[p.name]), None

    def observe(self, token, config, value, failed):
        at = self.space.coordinates(config)
        self.optimizer.tell([at[p.name] for p in self.space.free], value)

    def replace(self, value):
        self.optimizer.yi = [value] * len(self.optimizer.yi)


# ---- HEBO ------------------------------------------------------------------------


class Hebo(Imputing):
    def start(self):
        import numpy
        import pandas
        import torch
        from hebo.design_space.design_space import DesignSpace
        from hebo.optimizers.hebo import HEBO

        torch.set_num_threads(1)
        torch.manual_seed(self.seed)
        numpy.random.seed(self.seed)
        self.numpy, self.pandas = numpy, pandas
        self.version = "HEBO " + importlib.metadata.version("HEBO")
        self.optimizer = HEBO(DesignSpace().parse([self.dimension(p) for p in self.space.free]), scramble_seed=self.seed)

    def dimension(self, p):
        if p.kind == "choice":
            return {"name": p.name, "type": "cat", "categories": list(range(len(p.values)))}
        kind = {"real": ("num", "pow"), "whole": ("int", "pow_int")}[p.kind][p.log]
        return {"name": p.name, "type": kind, "lb": p.low, "ub": p.high}

    def ask(self):
        row = self.optimizer.suggest(n_suggestions=1).iloc[0]
        return self.space.config(lambda p: row[p.name]), None

    def observe(self, token, config, value, failed):
        self.optimizer.observe(self.pandas.DataFrame([self.space.coordinates(config)]), self.numpy.array([[value]]))

    def replace(self, value):
        self.optimizer.y[:] = value


# ---- SMAC ------------------------------------------------------------------------


class Smac(Imputing):
    """The facade for hyper-parameters, with random forest and log EI. Failed trials are CRASHED."""

    conditions = True

    def start(self):
        import logging
        import tempfile

        import ConfigSpace
        import smac

        self.smac, self.types = smac, ConfigSpace
        self.version = "smac " + importlib.metadata.version("smac")
        self.folder, self.early = tempfile.TemporaryDirectory(), []
        scenario = smac.Scenario(
            self.configuration_space(), deterministic=True, n_trials=max(self.trials, 1), seed=self.seed, output_directory=self.folder.name)
        self.facade = self.facade_type(scenario, lambda config, seed=0: 0.0, overwrite=True, logging_level=logging.ERROR)

    @property
    def facade_type(self):
        return self.smac.HyperparameterOptimizationFacade

    def configuration_space(self):
        t = self.types
        cs = t.ConfigurationSpace(seed=self.seed)
        made = {p.name: self.hyperparameter(p) for p in self.space.free}
        cs.add(list(made.values()))
        for p in self.space.free:
            terms = [t.InCondition(made[p.name], made[parent], [self.parent(parent).coordinate(v) for v in values])
                     for parent, values in p.when if parent in made]
            if terms:
                cs.add(terms[0] if len(terms) == 1 else t.AndConjunction(*terms))
        return cs

    def parent(self, name):
        return next(p for p in self.space.free if p.name == name)

    def hyperparameter(self, p):
        t = self.types
        if p.kind == "choice":
            return t.CategoricalHyperparameter(p.name, list(range(len(p.values))))
        make = t.UniformFloatHyperparameter if p.kind == "real" else t.UniformIntegerHyperparameter
        return make(p.name, p.low, p.high, log=p.log)

    def ask(self):
        info = self.facade.ask()
        at = dict(info.config)
        return self.space.config(lambda p: at[p.name]), info

    def observe(self, token, config, value, failed):
        if token is None:
            at = self.types.Configuration(self.facade.scenario.configspace, values=self.space.coordinates(config))
            token = self.smac.runhistory.TrialInfo(at, seed=0)
        if failed and self.worst is None:
            self.early.append(token)
        else:
            self.report(token, value, failed)

    def replace(self, value):
        for token in self.early:
            self.report(token, value, True)

    def end(self):
        self.folder.cleanup()

    def report(self, token, value, failed):
        history = self.smac.runhistory
        status = history.StatusType.CRASHED if failed else history.StatusType.SUCCESS
        self.facade.tell(token, history.TrialValue(value, status=status))


class SmacBlackBox(Smac):
    """The facade for continuous spaces, with a GP and EI."""

    conditions = False

    @property
    def facade_type(self):
        return self.smac.BlackBoxFacade


# ---- CMA-ES ----------------------------------------------------------------------


class Cma(Peer):
    """pycma in the unit cube, from a uniform point with a step of a quarter. Where it stops by
    itself, it restarts from another point with twice the population (IPOP, Auger and Hansen,
    2005). Ints are rounded. A failed trial has the worst value so far when its
    generation ends, and 0 if none has succeeded."""

    def start(self):
        import cma
        import numpy

        if any(p.kind == "choice" for p in self.space.free):
            raise Unsupported("choices without order")
        self.cma, self.random = cma, numpy.random.RandomState(self.seed)
        self.version = "cma " + importlib.metadata.version("cma")
        self.population = None  # the default
        self.restart()

    def restart(self):
        d = len(self.space.free)
        options = {"bounds": [[0] * d, [1] * d], "seed": self.random.randint(1, 2**31 - 1), "verbose": -9, "verb_log": 0}
        if self.population is not None:
            options["popsize"] = self.population
        self.strategy = self.cma.CMAEvolutionStrategy(self.random.uniform(size=d), 0.25, options)
        self.population = 2 * self.strategy.popsize
        self.generation, self.values = [], []

    def span(self, p):
        margin = 0.5 if p.kind == "whole" else 0
        low, high = p.low - margin, p.high + margin
        return (math.log(low), math.log(high)) if p.log else (low, high)

    def ask(self):
        if not self.generation:
            self.generation = self.strategy.ask()
            self.values = []
        x = self.generation[len(self.values)]

        def coordinate(p):
            low, high = self.span(p)
            v = low + (high - low) * x[self.space.free.index(p)]
            return math.exp(v) if p.log else v

        return self.space.config(coordinate), True

    def tell(self, token, config, value):
        if token is None:
            return  # a strategy learns from its own samples only
        if value is not None:
            self.worst = value if self.worst is None else max(value, self.worst)
        self.values.append(value)
        if len(self.values) < len(self.generation):
            return
        bad = 0.0 if self.worst is None else self.worst
        self.strategy.tell(self.generation, [bad if v is None else v for v in self.values])
        self.generation, self.values = [], []
        if self.strategy.stop():
            self.restart()


# ---- Ax, on BoTorch --------------------------------------------------------------


class Ax(Peer):
    """Sobol, then the method of BoTorch that Ax chooses. Failed trials are FAILED."""

    several = True

    def start(self):
        import logging

        import torch
        from ax import ChoiceParameterConfig, Client, RangeParameterConfig

        torch.set_num_threads(1)
        logging.disable(logging.CRITICAL)
        self.version = f"ax-platform {importlib.metadata.version('ax-platform')}, botorch {importlib.metadata.version('botorch')}"

        def config(p):
            if p.kind == "choice":
                return ChoiceParameterConfig(name=p.name, values=list(range(len(p.values))), parameter_type="int", is_ordered=False)
            return RangeParameterConfig(
                name=p.name, bounds=(p.low, p.high), parameter_type="float" if p.kind == "real" else "int", scaling="log" if p.log else None)

        self.client = Client(random_seed=self.seed)
        self.client.configure_experiment(parameters=[config(p) for p in self.space.free])
        self.client.configure_optimization(objective=", ".join(f"-loss{j}" for j in range(self.objectives)))

    def ask(self):
        (index, at), = self.client.get_next_trials(max_trials=1).items()
        return self.space.config(lambda p: at[p.name]), index

    def tell(self, token, config, value):
        if token is None:
            token = self.client.attach_trial(parameters=self.space.coordinates(config))
        if value is None:
            self.client.mark_trial_failed(trial_index=token)
        else:
            values = value if self.objectives > 1 else [value]
            self.client.complete_trial(trial_index=token, raw_data={f"loss{j}": v for j, v in enumerate(values)})


# ---- Google Vizier ---------------------------------------------------------------


class Vizier(Peer):
    """The default designer of OSS Vizier, GP-UCB-PE, without the service around it.
    Failed trials are infeasible."""

    def start(self):
        import jax
        from vizier import algorithms
        from vizier import pyvizier as vz
        from vizier._src.algorithms.designers.gp_ucb_pe import VizierGPUCBPEBandit

        self.vz, self.algorithms = vz, algorithms
        self.version = "google-vizier " + importlib.metadata.version("google-vizier")
        problem = vz.ProblemStatement()
        root = problem.search_space.root
        for p in self.space.free:
            scale = vz.ScaleType.LOG if p.log else vz.ScaleType.LINEAR
            if p.kind == "choice":
                root.add_categorical_param(p.name, [str(i) for i in range(len(p.values))])
            elif p.kind == "real":
                root.add_float_param(p.name, p.low, p.high, scale_type=scale)
            else:
                root.add_int_param(p.name, p.low, p.high, scale_type=scale)
        problem.metric_information.append(vz.MetricInformation(name="loss", goal=vz.ObjectiveMetricGoal.MINIMIZE))
        self.designer = VizierGPUCBPEBandit(problem, rng=jax.random.PRNGKey(self.seed))
        self.count = 0

    def ask(self):
        suggestion, = self.designer.suggest(1)
        at = suggestion.parameters
        return self.space.config(lambda p: at[p.name].value), suggestion

    def tell(self, token, config, value):
        vz = self.vz
        self.count += 1
        if token is None:
            token = vz.TrialSuggestion({p.name: str(c) if p.kind == "choice" else c for p in self.space.free for c in [p.coordinate(config[p.name])]})
        trial = token.to_trial(self.count)
        if value is None:
            trial.complete(vz.Measurement(), infeasibility_reason="failed")
        else:
            trial.complete(vz.Measurement(metrics={"loss": value}))
        self.designer.update(self.algorithms.CompletedTrials([trial]), self.algorithms.ActiveTrials())


PEERS = {
    "python-random": Random,
    "optuna-tpe": OptunaTPE,
    "optuna-tpe-uni": OptunaTPEUnivariate,
    "optuna-nsga2": OptunaNSGA2,
    "optuna-gp": OptunaGP,
    "skopt": Skopt,
    "hebo": Hebo,
    "smac": Smac,
    "smac-bb": SmacBlackBox,
    "cma-es": Cma,
    "ax": Ax,
    "vizier": Vizier,
}


# ---- conversation ----------------------------------------------------------------


class Conversation:
    def __init__(self, kind):
        self.kind, self.peer, self.spent = kind, None, 0.0

    def answer(self, message):
        op, began = message["op"], time.process_time()
        try:
            return getattr(self, op)(message, began)
        finally:
            if op == "tell":
                self.spent += time.process_time() - began

    def start(self, message, _):
        try:
            self.peer = self.kind(Space(message["space"]), message["seed"], message["trials"], message.get("objectives", 1))
        except Unsupported as e:
            return {"unsupported": str(e)}
        except ImportError as e:
            traceback.print_exc()
            return {"missing": str(e)}
        return {"ok": True, "version": self.peer.version}

    def ask(self, _, began):
        config, token = self.peer.ask()
        seconds, self.spent = self.spent + time.process_time() - began, 0.0
        self.peer.asked[key(config)] = token
        return {"config": config, "seconds": seconds}

    def tell(self, message, _):
        limits = self.peer.limits and "metrics" in message
        config, value = message["config"], message.get("value") if message["ok"] or limits else None
        self.peer.metrics = message["metrics"] if limits else None
        self.peer.tell(self.peer.asked.pop(key(config), None), config, value)
        return {"ok": True}


def key(config):
    return json.dumps(config, sort_keys=True)


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in PEERS:
        sys.exit("usage: peers.py " + "|".join(PEERS))
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process ends this one
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # the output of libraries is not an answer
    conversation = Conversation(PEERS[sys.argv[1]])
    for line in sys.stdin:
        try:
            answer = conversation.answer(json.loads(line))
        except Exception as e:
            traceback.print_exc()
            answer = {"error": f"{type(e).__name__}: {e}"}
        out.write(json.dumps(answer) + "\n")
        out.flush()
        if "error" in answer:
            sys.exit(1)
    if conversation.peer is not None:
        conversation.peer.end()
    os._exit(0)  # skips the shutdown of libraries, which can take seconds


if __name__ == "__main__":
    main()
