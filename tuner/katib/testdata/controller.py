"""Drives tuner katib as Katib's controller does, with the stubs of the package kubeflow-katib.

Usage: controller.py TUNER [SEED]

It runs an experiment of 1,000 trials in steps of 10. Answers are dropped at random and asked
for again, trials end in every condition, and the program is killed twice, once with the
loss of its file. Then it compares each trial of the study with the list of the controller.
It fails with the first difference.
"""

import atexit
import importlib.util
import json
import math
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
import types

import grpc


def stubs():
    """Loads the two modules without their package, which imports the client of Kubernetes."""
    folder = importlib.util.find_spec("kubeflow").submodule_search_locations[0] + "/katib"
    for name in ("kubeflow", "kubeflow.katib"):
        sys.modules[name] = types.ModuleType(name)
    for name in ("katib_api_pb2", "katib_api_pb2_grpc"):
        full = "kubeflow.katib." + name
        spec = importlib.util.spec_from_file_location(full, f"{folder}/{name}.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[full] = module
        setattr(sys.modules["kubeflow.katib"], name, module)
        spec.loader.exec_module(module)
        yield module


api, api_grpc = stubs()
T = api.TrialStatus

TRIALS, STEP = 1000, 10
SIZES, OPTIMIZERS = ["16", "32", "64", "128"], ["sgd", "adam", "16"]


def parameter(name, kind, **space):
    return api.ParameterSpec(name=name, parameter_type=kind, feasible_space=api.FeasibleSpace(**space))


def experiment(name="bowl", parameters=None, algorithm="bkb", settings=(), **objective):
    if parameters is None:
        parameters = [
            parameter("lr", api.DOUBLE, min="0.0001", max="1", distribution=api.LOG_UNIFORM),
            parameter("momentum", api.DOUBLE, min="0", max="0.99"),
            parameter("layers", api.INT, min="1", max="9"),
            parameter("size", api.DISCRETE, list=SIZES),
            parameter("optimizer", api.CATEGORICAL, list=OPTIMIZERS),
        ]
    objective = {"type": api.MINIMIZE, "objective_metric_name": "loss", "goal": 0.0001, **objective}
    return api.Experiment(
        name=name,
        spec=api.ExperimentSpec(
            parameter_specs=api.ExperimentSpec.ParameterSpecs(parameters=parameters),
            objective=api.ObjectiveSpec(**objective),
            algorithm=api.AlgorithmSpec(
                algorithm_name=algorithm,
                algorithm_settings=[api.AlgorithmSetting(name=n, value=v) for n, v in settings],
            ),
            parallel_trial_count=STEP,
            max_trial_count=TRIALS,
        ),
    )


def loss(values):
    return (
        (math.log10(float(values["lr"])) + 2) ** 2
        + float(values["momentum"])
        + abs(int(values["layers"]) - 4) / 4
        + abs(math.log2(float(values["size"])) - 6) / 4
        + OPTIMIZERS.index(values["optimizer"]) / 2
    )


class Service:
    """The program and a channel to it."""

    def __init__(self, tuner, db):
        self.tuner, self.db = tuner, db
        self.start()

    def start(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.process = subprocess.Popen(
            [self.tuner, "-q", "katib", "--db", self.db, "--listen", f"127.0.0.1:{self.port}"],
            env={k: v for k, v in os.environ.items() if not k.startswith("TUNER_")},
        )
        atexit.register(self.process.kill)  # has no effect on a process that has ended
        self.channel = grpc.insecure_channel(f"127.0.0.1:{self.port}")
        grpc.channel_ready_future(self.channel).result(timeout=30)
        self.stub = api_grpc.SuggestionStub(self.channel)

    def peak(self):
        with open(f"/proc/{self.process.pid}/status") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("VmHWM")) / 1024

    def end(self, how):
        self.channel.close()
        self.process.send_signal(how)
        return self.process.wait(30)

    def healthy(self, service):
        check = self.channel.unary_unary(
            "/grpc.health.v1.Health/Check", request_serializer=lambda s: bytes([10, len(s)]) + s.encode()
        )
        return check(service, timeout=10) == bytes([8, 1])


def refusals(stub):
    """Every fault of an experiment is INVALID_ARGUMENT with the field and the remedy."""
    x = parameter("x", api.DOUBLE, min="0", max="1")
    cases = [
        ([parameter("x", api.DOUBLE, min="0", max="1", distribution=api.LOG_UNIFORM)], {}, "must not touch zero"),
        ([parameter("x", api.DOUBLE, min="1", max="0")], {}, "x"),
        ([parameter("x", api.DOUBLE, min="0")], {}, "x"),
        ([parameter("x", api.DOUBLE, min="zero", max="1")], {}, "zero"),
        ([parameter("x", api.DOUBLE, min="0", max="1", list=["1"])], {}, "list"),
        ([parameter("x", api.DOUBLE, min="0", max="1", distribution=api.NORMAL)], {}, "prior"),
        ([parameter("x", api.DOUBLE, min="0", max="1", distribution=api.LOG_NORMAL)], {}, "prior"),
        ([parameter("x", api.INT, min="0.5", max="3")], {}, "0.5"),
        ([parameter("x", api.INT, min="3", max="1")], {}, "x"),
        ([parameter("x", api.DOUBLE, min="0", max="1", step="-1")], {}, "step"),
        ([parameter("x", api.DISCRETE)], {}, "list"),
        ([parameter("x", api.DISCRETE, list=["1", "b"])], {}, "categorical"),
        ([parameter("x", api.DISCRETE, list=["1", "2"], min="1")], {}, "min"),
        ([parameter("x", api.CATEGORICAL)], {}, "list"),
        ([parameter("x", api.CATEGORICAL, list=["a", "a"])], {}, "a"),
        ([parameter("x", api.UNKNOWN_TYPE, min="0", max="1")], {}, "types are double"),
        ([parameter("", api.DOUBLE, min="0", max="1")], {}, "name"),
        ([x, x], {}, "x"),
        ([], {}, "parameter"),
        ([x], {"type": api.UNKNOWN}, "minimize or maximize"),
        ([x], {"objective_metric_name": ""}, "objectives[0].name"),
        ([x], {"algorithm": "cmaes"}, "must be one of"),
        ([x], {"settings": [("acq", "EI")]}, "acq"),
        ([x], {"settings": [("random_state", "-1")]}, "random_state"),
        ([x], {"settings": [("start", "3"), ("start", "4")]}, "twice"),
        ([x], {"name": ""}, "name"),
        ([x], {"name": "two words"}, "two words"),
    ]
    for i, (parameters, other, want) in enumerate(cases):
        e = experiment(**{"name": f"bad-{i}", "parameters": parameters, **other})
        requests = [
            (stub.ValidateAlgorithmSettings, api.ValidateAlgorithmSettingsRequest(experiment=e)),
            (stub.GetSuggestions, api.GetSuggestionsRequest(experiment=e, current_request_number=1, total_request_number=1)),
        ]
        for call, request in requests:
            try:
                call(request, timeout=10)
            except grpc.RpcError as err:
                assert err.code() == grpc.StatusCode.INVALID_ARGUMENT, (i, err)
                assert want in err.details(), (i, want, err.details())
            else:
                raise AssertionError(f"case {i} was accepted: {e}")
    return len(cases)


def finish(trial, rng):
    """Gives a trial its last condition and returns what the study must have."""
    trial.status.completion_time = "2026-03-01T12:30:00Z"
    values = {a.name: a.value for a in trial.spec.parameter_assignments.assignments}
    y = loss(values)
    kind = rng.choices(["ok", "failed", "killed", "stopped", "lost", "unavailable", "nan"], [80, 5, 4, 5, 2, 2, 2])[0]
    observe = trial.status.observation.metrics
    if kind == "ok" or kind == "nan" or kind == "unavailable":
        trial.status.condition = T.SUCCEEDED
        text = {"ok": repr(y), "nan": "NaN", "unavailable": "unavailable"}[kind]
        observe.add(name="accuracy", value="unavailable" if y > 3 else "0.5")
        observe.add(name="loss", value=text)
        return ("completed", y) if kind == "ok" else ("failed", None)
    if kind == "stopped":
        trial.status.condition = T.EARLYSTOPPED
        observe.add(name="loss", value=repr(y))
        return "pruned", y
    if kind == "lost":  # Katib never sends these
        trial.status.condition = T.METRICSUNAVAILABLE
        return "running", None
    trial.status.condition = {"failed": T.FAILED, "killed": T.KILLED}[kind]
    return "failed", None


def main(tuner, seed):
    rng = random.Random(seed)
    db = os.path.join(tempfile.mkdtemp(prefix="katib"), "tuner.db")
    service = Service(tuner, db)
    assert service.healthy("manager.v1beta1.Suggestion")
    faults = refusals(service.stub)
    e = experiment(settings=[("random_state", "7"), ("start", "20")])
    for _ in range(2):
        service.stub.ValidateAlgorithmSettings(api.ValidateAlgorithmSettingsRequest(experiment=e), timeout=60)

    trials, want, waiting = [], {}, []
    dropped, peak, times, rebuilt = 0, 0, [], 0
    while len(trials) + len(waiting) < TRIALS or waiting:
        # A suggestion becomes a trial some time after the answer.
        for name, values in waiting:
            trial = api.Trial(name=name)
            for n, v in values:
                trial.spec.parameter_assignments.assignments.add(name=n, value=v)
            trials.append(trial)
        waiting = []
        for trial in trials:
            if trial.name in want:
                continue
            trial.status.condition = rng.choice([T.CREATED, T.RUNNING, T.UNKNOWN])
            if rng.random() < 0.7 or len(trials) >= TRIALS:
                want[trial.name] = finish(trial, rng)
        first = len(trials)
        if first == 400:
            peak = max(peak, service.peak())
            assert service.end(signal.SIGTERM) == 0
            service.start()
        if first == 700:
            peak = max(peak, service.peak())
            service.end(signal.SIGKILL)
            os.remove(db)
            service.start()
            # What Katib does not list is told as cancelled.
            for trial in trials:
                if trial.status.condition == T.METRICSUNAVAILABLE:
                    want[trial.name], rebuilt = ("failed", None), rebuilt + 1
        current = min(STEP, TRIALS - first)
        request = api.GetSuggestionsRequest(
            experiment=e,
            trials=[t for t in trials if t.status.condition != T.METRICSUNAVAILABLE],
            current_request_number=current,
            total_request_number=first + current,
        )
        reply = None
        while True:
            began = time.monotonic()
            again = service.stub.GetSuggestions(request, timeout=60)
            times.append(time.monotonic() - began)
            assert reply is None or reply == again, f"another answer from {first} on:\n{reply}\n{again}"
            reply = again
            if rng.random() > 0.3:
                break
            dropped += 1
            if rng.random() < 0.1:  # the program dies after its answer
                peak = max(peak, service.peak())
                service.end(signal.SIGKILL)
                service.start()
        assert len(reply.parameter_assignments) == current
        for i, a in enumerate(reply.parameter_assignments):
            assert a.trial_name == f"bowl-{first + i}", (a.trial_name, first + i)
            values = {x.name: x.value for x in a.assignments}
            assert sorted(values) == ["layers", "lr", "momentum", "optimizer", "size"], values
            assert 1e-4 <= float(values["lr"]) <= 1 and 0 <= float(values["momentum"]) <= 0.99, values
            assert 1 <= int(values["layers"]) <= 9 and values["size"] in SIZES and values["optimizer"] in OPTIMIZERS, values
            waiting.append((a.trial_name, [(x.name, x.value) for x in a.assignments]))
        if first == TRIALS:
            break
    peak = max(peak, service.peak())
    assert service.end(signal.SIGTERM) == 0

    have = subprocess.run([tuner, "--db", db, "trials", "katib.bowl", "-f", "json"], check=True, capture_output=True, text=True)
    have = json.loads(have.stdout)
    have = have if isinstance(have, list) else have["trials"]
    assert len(have) == TRIALS == len(want), (len(have), len(want))
    states = {}
    for trial, t in zip(trials, have):
        state, y = want[trial.name]
        assert t["state"] == state, (trial.name, t, state)
        value = t.get("values", {}).get("loss")
        assert y is None or value == y, (trial.name, t, y)
        listed = {a.name: a.value for a in trial.spec.parameter_assignments.assignments}
        if not (state == "failed" and trial.status.condition == T.METRICSUNAVAILABLE):
            got = t["config"]
            for n, v in listed.items():
                assert str(got[n]) == v or float(got[n]) == float(v), (trial.name, n, got[n], v)
        states[state] = states.get(state, 0) + 1
    best = min(y for state, y in want.values() if state == "completed")
    times.sort()
    print(
        f"{TRIALS} trials {states}, {faults} faults refused, {dropped} answers dropped, {rebuilt} not listed when the file was lost, "
        f"best {best:.4f}, call of {STEP} median {1000 * times[len(times) // 2]:.0f} ms and longest {1000 * times[-1]:.0f} ms, peak {peak:.0f} MiB"
    )
    assert peak < 100, f"{peak} MiB"
    assert best < 0.5, best


main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1)
