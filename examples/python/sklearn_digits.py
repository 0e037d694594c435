"""Tunes a support vector machine of scikit-learn on its digits.

    pip install ../../python scikit-learn
    python sklearn_digits.py [TRIALS]

It maximises the mean accuracy of 3 folds. Their standard error goes with each result, so
that the tuner knows the noise. The study is in tuner.db, and the same command continues it.
"""

import math
import sys

from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

import bkb

trials = int(sys.argv[1]) if len(sys.argv) > 1 else 25
x, y = load_digits(return_X_y=True)
study = bkb.create_study(
    "sklearn-digits",
    {
        "kernel": bkb.Categorical(["linear", "rbf"]),
        "c": bkb.Float(1e-3, 1e3, log=True),
        "gamma": bkb.Float(1e-6, 1, log=True, when={"kernel": "rbf"}),
    },
    maximize="accuracy",
    max_trials=trials,
    exist_ok=True,
)

while study.status.state != "finished":
    with study.ask() as trial:
        model = SVC(kernel=trial["kernel"], C=trial["c"], gamma=trial.params.get("gamma", "scale"))
        folds = cross_val_score(model, x, y, cv=3)
        trial.tell(folds.mean(), std_err=folds.std(ddof=1) / math.sqrt(len(folds)))
        print(f"trial {trial.number}: {folds.mean():.4f}  {trial.params}")

best = study.best_trial
print(f"best: {best.value:.4f} with {best.params}")
