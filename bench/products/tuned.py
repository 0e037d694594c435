#!/usr/bin/env python3
"""Learners of scikit-learn, tuned on the rows that tuned.go wrote, for a comparison with
`tuner auto falkon`.

    tuned.py NAME TRAIN TEST TRIALS FOLDS SEED

NAME is krr, svr, gp-ard or hgb. TRAIN and TEST are CSV files without a header and with the
target last. krr, svr and hgb take the best of TRIALS random configurations, compared on
FOLDS folds, or on a fifth of the rows if FOLDS is 1, and fitted again to all rows. gp-ard
learns its length scales by evidence on up to GP_ROWS random rows, and TRIALS has no effect.
Inputs and targets are standardised by the training rows for krr, svr and gp-ard.

It prints one line of JSON with the test RMSE and the CPU seconds after imports.
"""
import json
import os
import sys
import time
import warnings

for _name in ("OMP", "OPENBLAS", "MKL"):
    os.environ[_name + "_NUM_THREADS"] = "1"
import numpy as np
import sklearn
from scipy.stats import loguniform, randint
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import KFold, RandomizedSearchCV, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

GP_ROWS = 2000  # as many as an exact GP with gradients fits in minutes


def standardised(model):
    return TransformedTargetRegressor(make_pipeline(StandardScaler(), model), transformer=StandardScaler())


def searches(d):
    """The models and the distributions of their hyper-parameters, for d inputs."""
    gamma = loguniform(0.01 / d, 10 / d)
    at = "regressor__{}__".format
    return {
        "krr": (standardised(KernelRidge()), {
            at("kernelridge") + "kernel": ["rbf", "laplacian"],
            at("kernelridge") + "gamma": gamma,
            at("kernelridge") + "alpha": loguniform(1e-8, 1e1),
        }),
        "svr": (standardised(SVR(cache_size=500, max_iter=100_000)), {
            at("svr") + "gamma": gamma,
            at("svr") + "C": loguniform(1e-1, 1e2),
            at("svr") + "epsilon": loguniform(1e-3, 0.5),
        }),
        "hgb": (HistGradientBoostingRegressor(early_stopping=False), {
            "learning_rate": loguniform(0.01, 0.5),
            "max_iter": randint(50, 501),
            "max_leaf_nodes": randint(4, 64),
            "min_samples_leaf": randint(2, 51),
            "l2_regularization": loguniform(1e-4, 1e1),
        }),
    }


def gp(x, seed):
    d = x.shape[1]
    kernel = ConstantKernel(1, (1e-3, 1e4)) * Matern(np.ones(d), (1e-2, 1e4), nu=2.5) + WhiteKernel(0.1, (1e-8, 1e1))
    return standardised(GaussianProcessRegressor(kernel, random_state=seed))


def fitted(name, x, y, trials, folds, seed):
    if name == "gp-ard":
        rows = np.random.default_rng(seed).permutation(len(y))[:GP_ROWS]
        return gp(x, seed).fit(x[rows], y[rows]), {"rows": len(rows)}
    model, space = searches(x.shape[1])[name]
    if name == "hgb":
        model.set_params(random_state=seed)
    cv = KFold(folds, shuffle=True, random_state=seed) if folds > 1 else ShuffleSplit(1, test_size=0.2, random_state=seed)
    search = RandomizedSearchCV(model, space, n_iter=trials, cv=cv, scoring="neg_mean_squared_error", random_state=seed)
    search.fit(x, y)
    return search, {k.split("__")[-1]: v for k, v in search.best_params_.items()}


def main():
    name, train, test, (trials, folds, seed) = *sys.argv[1:4], map(int, sys.argv[4:7])
    warnings.simplefilter("ignore")  # optimisers that stop at a bound
    train, test = (np.loadtxt(f, delimiter=",", ndmin=2) for f in (train, test))
    began, cpu = time.perf_counter(), time.process_time()
    model, params = fitted(name, train[:, :-1], train[:, -1], trials, folds, seed)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    rmse = float(np.sqrt(np.mean((model.predict(test[:, :-1]) - test[:, -1]) ** 2)))
    print(json.dumps({"rmse": rmse, "cpu": cpu, "seconds": seconds, "version": "scikit-learn " + sklearn.__version__, "params": params}, default=float))


if __name__ == "__main__":
    main()
