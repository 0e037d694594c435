#!/usr/bin/env python3
"""Compares tuner auto with tuned learners of Python on real and generated data.

    learners.py --data FOLDER --tuner PROGRAM --out runs.csv [--sets a,b] [--splits 3] [--jobs 2]
    learners.py --report runs.csv

Every learner gets the same rows: 80 % of a random split train, at most --rows of them, and at
most 3000 of the others test. Ours is "tuner auto LEARNER" with its defaults, on one thread. KRR,
SVR, SVC, logistic regression on Nyström features, and gradient boosting (hgb, lightgbm) take the
best of --trials random configurations on five folds, or on a fifth of the rows from 2000 rows on,
and are fitted again to all of them. GP-ARD learns its length scales by evidence on up to 2000
rows, from one start. xRFM has the defaults of its package and a fifth of the rows for validation.
"nystroem" is logistic regression with C = 1 on 10√n Nyström features at the median distance, which
has the objective of "train log-falkon" at its defaults.

"train falkon" and "gp-gaussian" run only if --learners names them. They compare learned length
scales: "tuner train falkon --length-scale auto" with up to 2000 centres, 100 iterations and no
validation rows, against a Gaussian kernel with a length scale for each input and white noise by
evidence from one start, √d. The sets inputs40 (5 of 40 inputs matter) and kin40k-permuted (24 of
32 columns are permutations) are for them. The gradient of a process in scikit-learn forms an n×n×d
array. Here that sum is a matrix product, and each run checks that both agree to 1e-9 on 100 rows.

A line of the file is a run: set, split, training rows, learner, error, log loss, CPU seconds,
version, settings. The error is the RMSE over the standard deviation of the test targets, or the
share of wrong classes. Runs in the file are not done again.
"""
import argparse
import csv
import gzip
import json
import math
import multiprocessing
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import warnings

for _name in ("OMP", "OPENBLAS", "MKL"):
    os.environ[_name + "_NUM_THREADS"] = "1"
import numpy as np

TESTS, GP_ROWS, SPLIT_FROM = 3000, 2000, 2000
LEARNERS = {
    "regression": ["auto", "auto falkon metric=diagonal", "auto falkon metric=full", "auto falkon", "auto krr", "auto nystrom", "auto sgdrf", "krr", "svr", "gp-ard", "hgb", "lightgbm", "xrfm"],
    "classes": ["auto", "auto log-falkon", "auto falkon", "auto krr", "auto sgdrf", "svc", "logistic", "hgb", "lightgbm", "xrfm", "train log-falkon", "nystroem"],
}
OURS = re.compile("(auto|train)\\b")
OPTIONS = {
    "train falkon": ["--length-scale", "auto", "--centers", "2000", "--iterations", "100", "--validation", "0", "--workers", "1"],
    "train log-falkon": ["--workers", "1"],
}
SIZES = "yacht pendulum energy concrete airfoil ridges150 abalone parkinsons bike california kin40k protein keggdirected ridges50000 banknote phoneme susy higgs digits mixture30".split()


def table(path, drop=(), first=0):
    with gzip.open(path, "rt") as f:
        rows = list(csv.reader(f))[first:]
    keep = [c for c in range(len(rows[0])) if c not in drop]
    return [[r[c] for c in keep] for r in rows if all(r[c] != "" for c in keep)]


def ridges(n, d, seed):
    """A sum of four smooth ridge functions of normal inputs, with noise."""
    rng = np.random.default_rng(seed)
    x, w = rng.normal(size=(n, d)), rng.normal(size=(d, 4)) / math.sqrt(d)
    y = np.sin(2 * x @ w).sum(1) + 0.1 * rng.normal(size=n)
    return [[f"{v:.6g}" for v in (*a, b)] for a, b in zip(x, y)]


def rows_of(name, folder):
    """The kind of a set and its rows, with the target last."""
    labels_first = lambda rows: [[*r[1:], "c%d" % float(r[0])] for r in rows]
    labels_last = lambda rows: [[*r[:-1], "c" + r[-1]] for r in rows]
    if name in ("banknote", "phoneme"):
        file = {"banknote": "banknote_authentication"}.get(name, name)
        return "classes", labels_last(table(f"{folder}/small_tabular/{file}.csv.gz"))
    if name == "higgs":
        return "classes", labels_first(table(f"{folder}/higgs_h2o15k/higgs_train_10k.csv.gz"))
    if name == "susy":
        return "classes", labels_first(table(f"{folder}/susy_1k/SUSY_1K.csv.gz"))
    if name == "digits":  # means of squares of 4×4 pixels
        read = lambda what, skip: np.frombuffer(gzip.open(f"{folder}/mnist/t10k-{what}-ubyte.gz").read()[skip:], np.uint8)
        x = read("images-idx3", 16).reshape(-1, 7, 4, 7, 4).mean((2, 4)).reshape(-1, 49)
        return "classes", [[*map(str, a), f"c{b}"] for a, b in zip(x, read("labels-idx1", 8))]
    if name.startswith("mixture"):  # two normal groups for each class, in ten dimensions
        rng, k = np.random.default_rng(1), int(name[7:])
        means, group = 2 * rng.normal(size=(2 * k, 10)), rng.integers(2 * k, size=60 * k)
        x = means[group] + rng.normal(size=(len(group), 10))
        return "classes", [[*(f"{v:.6g}" for v in a), f"c{b % k}"] for a, b in zip(x, group)]
    if name.startswith("ridges"):
        n = int(name[6:])
        return "regression", ridges(n, 5 if n < 1000 else 8, n)
    if name == "inputs40":
        x = np.random.default_rng(1).normal(size=(25_000, 40))
        y = np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + np.cos(x[:, 3] + x[:, 4]) + 0.1 * np.random.default_rng(2).normal(size=len(x))
        return "regression", [[f"{v:.8g}" for v in (*a, b)] for a, b in zip(x, y)]
    if name.endswith("-permuted"):
        kind, rows = rows_of(name.removesuffix("-permuted"), folder)
        rng, columns = np.random.default_rng(1), list(zip(*rows))
        copies = [[c[i] for i in rng.permutation(len(rows))] for _ in range(3) for c in columns[:-1]]
        return kind, [list(r) for r in zip(*copies, *columns)]
    if name == "abalone":
        return "regression", [["MFI".index(r[0]), *r[1:]] for r in table(f"{folder}/small_tabular/abalone.csv.gz")]
    if name == "california":  # without bedrooms, which have blanks, and text
        return "regression", table(f"{folder}/california_housing/housing.csv.gz", (4, 9), 1)
    return "regression", table(f"{folder}/uci/{name}.data.csv.gz", (14, 15) if name == "bike" else ())


def deal(rows, split, most):
    order = np.random.default_rng(split).permutation(len(rows))
    cut = len(rows) * 4 // 5
    return [rows[i] for i in order[:cut][:most]], [rows[i] for i in order[cut:][:TESTS]]


def ours(args, learner, kind, train, test, split):
    with tempfile.TemporaryDirectory() as dir:
        for name, rows in (("train.csv", train), ("test.csv", test)):
            with open(f"{dir}/{name}", "w", newline="") as f:
                csv.writer(f).writerows(rows)

        def tuner(*command):
            return json.loads(subprocess.run([args.tuner, *command, "--header", "no", "-f", "json"], cwd=dir, check=True, capture_output=True, text=True).stdout)

        command, _, fixed = learner.partition(" metric=")
        options = OPTIONS.get(learner, ["--trials", str(args.trials), "-j", "1", "--threads", "1", "--db", "tuner.db", *(["--set", "metric=" + fixed] if fixed else [])])
        found = tuner(*command.split(), "--data", "train.csv", "--target", "-1", "--test", "0", "--seed", str(split),
                      "--device", "cpu", "-o", "best.model", "-q", *options)
        score = tuner("evaluate", "--model", "best.model", "--data", "test.csv")
        version = subprocess.run([args.tuner, "version"], capture_output=True, text=True).stdout.strip()
    error = score["rmse"] if kind == "regression" else score["class-error"]
    return error, score.get("log-loss", math.nan), version, {"learner": found["algorithm"], **found["best"]["values"]} if learner.startswith("auto") else {}


def peer(name, kind, x, y, trials, seed):
    """A fitted model, and what it chose."""
    import sklearn
    from scipy.spatial.distance import pdist
    from scipy.stats import loguniform, randint
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.gaussian_process.kernels import RBF, Matern
    from sklearn.kernel_approximation import Nystroem
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import KFold, RandomizedSearchCV, ShuffleSplit, train_test_split
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC, SVR

    version, d, classes = "scikit-learn " + sklearn.__version__, x.shape[1], kind == "classes"
    scaled = lambda model: make_pipeline(StandardScaler(), model)
    both = lambda model: TransformedTargetRegressor(scaled(model), transformer=StandardScaler())
    gamma = loguniform(0.01 / d, 10 / d)
    if name == "gp-ard":
        pick = np.random.default_rng(seed).permutation(len(y))[:GP_ROWS]
        process = gaussian_process(Matern(np.ones(d), (1e-2, 1e4), nu=2.5), seed, x[pick], y[pick])
        return both(process).fit(x[pick], y[pick]), version, {"rows": len(pick)}
    if name == "gp-gaussian":
        return both(gaussian_process(RBF(np.full(d, d**0.5), (1e-2, 1e4)), seed, x, y)).fit(x, y), version, {}
    if name == "nystroem":
        m = min(math.ceil(10 * math.sqrt(len(y))), len(y))
        z = StandardScaler().fit_transform(x)[np.random.default_rng(seed).permutation(len(y))[:1000]]
        gamma = 0.5 / np.median(pdist(z, "sqeuclidean"))
        return scaled(make_pipeline(Nystroem(gamma=gamma, n_components=m, random_state=seed), LogisticRegression(max_iter=1000))).fit(x, y), version, {"gamma": gamma}
    if name == "xrfm":
        import importlib.metadata
        import torch
        from xrfm import xRFM
        torch.set_num_threads(1)
        a, b, u, v = train_test_split(x, y, test_size=0.2, random_state=seed)
        scale, mean = StandardScaler().fit(a), 0 if classes else u.mean()
        model = xRFM(device="cpu", tuning_metric="brier" if classes else "mse")
        target = (lambda t: t.astype(np.int64)) if classes else (lambda t: ((t - mean) / u.std()).astype(np.float32)[:, None])
        model.fit(scale.transform(a).astype(np.float32), target(u), scale.transform(b).astype(np.float32), target(v))

        class Fitted:
            def predict(self, z):
                out = np.asarray(model.predict(scale.transform(z).astype(np.float32))).ravel()
                return out if classes else out * u.std() + mean

            if classes:
                def predict_proba(self, z):
                    return np.asarray(model.predict_proba(scale.transform(z).astype(np.float32)))
        return Fitted(), "xrfm " + importlib.metadata.version("xrfm"), {}
    boost = {"learning_rate": loguniform(0.01, 0.5), "min_samples_leaf": randint(2, 51), "max_leaf_nodes": randint(4, 64)}
    if name == "lightgbm":
        import lightgbm
        version = "lightgbm " + lightgbm.__version__
        model = (lightgbm.LGBMClassifier if classes else lightgbm.LGBMRegressor)(random_state=seed, n_jobs=1, verbose=-1)
        space = {"learning_rate": boost["learning_rate"], "min_child_samples": boost["min_samples_leaf"], "num_leaves": boost["max_leaf_nodes"],
                 "n_estimators": randint(50, 501), "reg_lambda": loguniform(1e-4, 1e1), "subsample": [0.7, 0.85, 1.0], "subsample_freq": [1], "colsample_bytree": [0.6, 0.8, 1.0]}
    elif name == "hgb":
        model = (HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor)(early_stopping=False, random_state=seed)
        space = {**boost, "max_iter": randint(50, 501), "l2_regularization": loguniform(1e-4, 1e1)}
    elif name == "svc":
        model = scaled(SVC(cache_size=500, max_iter=100_000))
        space = {"svc__gamma": gamma, "svc__C": loguniform(1e-1, 1e3)}
    elif name == "logistic":
        model = scaled(make_pipeline(Nystroem(n_components=min(600, len(y) * 3 // 5), random_state=seed), LogisticRegression(max_iter=500)))
        at = "pipeline__{}".format
        space = {at("nystroem__gamma"): gamma, at("logisticregression__C"): loguniform(1e-2, 1e4)}
    elif name == "krr":
        at = "regressor__kernelridge__{}".format
        model = both(KernelRidge())
        space = {at("kernel"): ["rbf", "laplacian"], at("gamma"): gamma, at("alpha"): loguniform(1e-8, 1e1)}
    else:
        at = "regressor__svr__{}".format
        model = both(SVR(cache_size=500, max_iter=100_000))
        space = {at("gamma"): gamma, at("C"): loguniform(1e-1, 1e2), at("epsilon"): loguniform(1e-3, 0.5)}
    cv = KFold(5, shuffle=True, random_state=seed) if len(y) < SPLIT_FROM else ShuffleSplit(1, test_size=0.2, random_state=seed)
    scoring = "neg_mean_squared_error" if not classes else "accuracy" if name == "svc" else "neg_log_loss"
    search = RandomizedSearchCV(model, space, n_iter=trials, cv=cv, scoring=scoring, random_state=seed).fit(x, y)
    return search, version, {k.split("__")[-1]: v for k, v in search.best_params_.items()}


def gaussian_process(base, seed, x, y):
    """A process with a gradient that needs no n×n×d array, checked against scikit-learn's."""
    from scipy.linalg import cho_solve, cholesky
    from scipy.linalg.lapack import dpotri
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    class Summed(GaussianProcessRegressor):
        def log_marginal_likelihood(self, theta=None, eval_gradient=False, clone_kernel=True):
            if not eval_gradient:
                return super().log_marginal_likelihood(theta, eval_gradient, clone_kernel)
            variance, lengths, noise = np.exp(theta[0]), np.exp(theta[1:-1]), np.exp(theta[-1])
            x, y = self.X_train_ / lengths, self.y_train_
            squares = (x**2).sum(1)
            distances = np.maximum(squares + squares[:, None] - 2 * x @ x.T, 0)
            np.fill_diagonal(distances, 0)
            if isinstance(base, Matern):  # ν = 5/2
                r = np.sqrt(5 * distances)
                slope = variance * (1 + r) * np.exp(-r)
                k, slope = slope + variance * r**2 / 3 * np.exp(-r), 5 / 3 * slope  # slope (x_i − x_j)² is the derivative
            else:
                k = slope = variance * np.exp(-0.5 * distances)
            try:
                a = cholesky(k + (noise + self.alpha) * np.eye(len(y)), lower=True, check_finite=False)
            except np.linalg.LinAlgError:
                return -np.inf, np.zeros_like(theta)
            w = cho_solve((a, True), y, check_finite=False)
            value = -0.5 * y @ w - np.log(np.diag(a)).sum() - len(y) / 2 * np.log(2 * np.pi)
            inverse = np.tril(dpotri(a, lower=1)[0])
            g = np.outer(w, w) - inverse - np.tril(inverse, -1).T
            trace = np.trace(g)
            by_variance = 0.5 * (g * k).sum()
            g *= slope  # of which the other gradients are weighted sums
            by_length = (x**2 * g.sum(1)[:, None] - x * (g @ x)).sum(0)  # ½ Σ g_ij (x_i − x_j)²
            return value, np.concatenate(([by_variance], by_length, [0.5 * noise * trace]))

    kernel = ConstantKernel(1, (1e-3, 1e4)) * base + WhiteKernel(0.1, (1e-8, 1e1))
    few = Summed(kernel, optimizer=None).fit(((x - x.mean(0)) / np.where(x.std(0) > 0, x.std(0), 1))[:100], ((y - y.mean()) / y.std())[:100])
    theta = few.kernel_.theta + np.random.default_rng(1).normal(0, 0.5, len(few.kernel_.theta))
    for got, want in zip(few.log_marginal_likelihood(theta, eval_gradient=True), GaussianProcessRegressor.log_marginal_likelihood(few, theta, eval_gradient=True)):
        if not np.allclose(got, want, rtol=1e-9, atol=1e-9 * np.max(np.abs(want))):
            raise ArithmeticError(f"the gradient is {got}, that of scikit-learn {want}")
    return Summed(kernel, random_state=seed)


def theirs(args, name, kind, train, test, split):
    classes = kind == "classes"
    labels = sorted({r[-1] for r in train})
    number = lambda rows: np.array([labels.index(r[-1]) if classes else float(r[-1]) for r in rows])
    inputs = lambda rows: np.array([[float(v) for v in r[:-1]] for r in rows])
    model, version, params = peer(name, kind, inputs(train), number(train), args.trials, split)
    z, y, loss = inputs(test), number(test), math.nan
    if classes and name != "svc":
        p = model.predict_proba(z)
        loss = float(-np.log(np.maximum(p[np.arange(len(y)), y], 1e-15)).mean())
        return float((p.argmax(1) != y).mean()), loss, version, params
    out = model.predict(z)
    return float((out != y).mean()) if classes else float(np.sqrt(((out - y) ** 2).mean())), loss, version, params


def run(task):
    args, name, split, learner = task
    warnings.simplefilter("ignore")  # optimisers that stop at a bound
    kind, rows = rows_of(name, args.data)
    train, test = deal(rows, split, args.rows)
    before = cpu()
    try:
        error, loss, version, params = (ours if OURS.match(learner) else theirs)(args, learner, kind, train, test, split)
    except Exception as e:
        text = getattr(e, "stderr", None) or repr(e)
        return [name, split, len(train), learner, math.nan, math.nan, cpu() - before, "failed", text[-300:]]
    if kind == "regression":
        error /= float(np.std([float(r[-1]) for r in test]))
    return [name, split, len(train), learner, f"{error:.6g}", f"{loss:.6g}", f"{cpu() - before:.1f}", version, json.dumps(params, default=float)]


def cpu():
    return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def report(path):
    """Prints a table for each kind, of the splits that auto has, and the ratios of its errors to those of the others.

    A set with several numbers of rows has a line for each.
    """
    runs = {}
    for r in csv.reader(open(path)):
        if r[7] != "failed":
            runs.setdefault((r[0], r[2]), {}).setdefault(r[3], {})[r[1]] = (float(r[4]), float(r[5]), float(r[6]))
    for kind, learners in LEARNERS.items():
        named = {n: of for n, of in runs.items() if ("auto log-falkon" in of or "train log-falkon" in of) == (kind == "classes")}
        learners = learners + [l for l in ("train falkon", "gp-gaussian") if kind == "regression"]
        learners = [l for l in learners if any(of.get(l, {}).keys() & of.get("auto", of.get(l, {})).keys() for of in named.values())]
        print(f"\n| data | rows | splits | {' | '.join(learners)} |\n|{' --- |' * (len(learners) + 3)}")
        for (name, rows), of in named.items():
            splits, cells = of.get("auto") or set().union(*of.values()), []
            for l in learners:
                got = [g for split, g in of.get(l, {}).items() if split in splits]
                mean = lambda i: statistics.fmean(g[i] for g in got)
                text = "-" if not got else f"{mean(0):.3g}" if kind == "regression" else f"{mean(0):.3f} / {mean(1):.3f}"
                cells.append(text + (f" / {mean(2):.0f}" if got else "") + (f" ({len(got)})" if 0 < len(got) < len(splits) else ""))
            print(f"| {name} | {rows} | {len(splits)} | {' | '.join(cells)} |")
        for i, measure in enumerate(("error", "log loss")[: 1 + (kind == "classes")]):
            print(f"\n{measure}: mean of auto over that of the other, on the splits of both, by sets")
            for l in learners[1:]:
                ratio = {}
                for name, of in named.items():
                    both = of.get("auto", {}).keys() & of.get(l, {}).keys()
                    ours, theirs = (statistics.fmean(of[x][s][i] for s in both) if both else math.nan for x in ("auto", l))
                    if theirs > 0 and ours == ours:
                        ratio[" ".join(name)] = ours / theirs
                if ratio:
                    print(f"{l}: {sum(r <= 1.005 for r in ratio.values())} of {len(ratio)} at most 1.005;", ", ".join(f"{n} {r:.3f}" for n, r in ratio.items()))


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--data", default=os.getenv("BKB_DATA"))
    p.add_argument("--tuner", default="tuner")
    p.add_argument("--out", default="learners.csv")
    p.add_argument("--sets", default=",".join(SIZES))
    p.add_argument("--learners", default="", help="of the kind of the sets")
    p.add_argument("--splits", type=int, default=3)
    p.add_argument("--rows", type=int, default=10_000)
    p.add_argument("--trials", type=int, default=60)
    p.add_argument("--jobs", type=int, default=1)
    p.add_argument("--report", metavar="FILE")
    args = p.parse_args()
    if args.report:
        return report(args.report)
    args.tuner = os.path.abspath(args.tuner)
    done = {tuple(r[:4]) for r in csv.reader(open(args.out))} if os.path.exists(args.out) else set()
    tasks = []
    for split in range(1, args.splits + 1):
        for name in args.sets.split(","):
            kind, rows = rows_of(name, args.data)
            rows = min(len(rows) * 4 // 5, args.rows)
            for learner in args.learners.split(",") if args.learners else LEARNERS[kind]:
                if (name, str(split), str(rows), learner) not in done:
                    tasks.append((args, name, split, learner))
    with multiprocessing.Pool(args.jobs, maxtasksperchild=1) as pool, open(args.out, "a", newline="") as f:
        for row in pool.imap_unordered(run, tasks):
            csv.writer(f).writerow(row)
            f.flush()
            print(*row[:7], file=sys.stderr)


if __name__ == "__main__":
    main()
