"""Shows the trials on stdin, a JSON object a line, with optuna-dashboard on a port."""

import json
import sys

import optuna
import optuna_dashboard
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

SPACE = {
    "lr": FloatDistribution(1e-5, 0.1, log=True),
    "wd": FloatDistribution(1e-6, 0.01, log=True),
    "dropout": FloatDistribution(0, 0.6),
    "batch": IntDistribution(16, 512, log=True),
    "depth": IntDistribution(2, 12),
    "width": IntDistribution(32, 512, step=32),
    "optimizer": CategoricalDistribution(["sgd", "adam", "rmsprop"]),
    "momentum": FloatDistribution(0.5, 0.99),
}

optuna.logging.set_verbosity(optuna.logging.WARNING)
storage = optuna.storages.InMemoryStorage()
study = optuna.create_study(storage=storage, study_name="big")
for line in sys.stdin:
    trial = json.loads(line)
    study.add_trial(optuna.trial.create_trial(
        state=optuna.trial.TrialState.COMPLETE if "loss" in trial else optuna.trial.TrialState.FAIL,
        value=trial.get("loss"),
        params=trial["config"],
        distributions={name: SPACE[name] for name in trial["config"]},
    ))
print(optuna_dashboard.__version__, flush=True)
optuna_dashboard.run_server(storage, host="127.0.0.1", port=int(sys.argv[1]))
