"""Write a study of Optuna as JSON for tuner import.

    python optuna_export.py digits sqlite:///optuna.db > optuna.json
    tuner import digits optuna.json

The file has the distributions of each trial. From them tuner import makes the search
space, also for a study whose parameters depend on each other (define-by-run).
"""

import json
import sys

import optuna

name, storage = sys.argv[1:]
study = optuna.load_study(study_name=name, storage=storage)
to_json = optuna.distributions.distribution_to_json
json.dump(
    {
        "study_name": study.study_name,
        "directions": [d.name.lower() for d in study.directions],
        "metric_names": study.metric_names or [],
        "trials": [
            {
                "number": t.number,
                "state": t.state.name,
                "params": t.params,
                "values": t.values,
                "user_attrs": t.user_attrs,
                "intermediate_values": t.intermediate_values,
                "distributions": {n: json.loads(to_json(d)) for n, d in t.distributions.items()},
            }
            for t in study.trials
        ],
    },
    sys.stdout,
)
