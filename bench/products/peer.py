#!/usr/bin/env python3
"""The other side of the comparison: NumPy and SciPy, scikit-learn, PyTorch.

    peer.py THREADS

writes a line with its versions. Then it reads a library and a case per line, runs
the case once, and answers with its wall and CPU seconds, or with "none". The cases
are those of cases.go, on data of the same shape. run.prepare, if there is one, runs
before each case and is not timed.
"""
import os
import sys
import time

THREADS = sys.argv[1] if len(sys.argv) > 1 else "1"
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = THREADS
import numpy as np
import scipy
from scipy import linalg
from scipy.linalg import blas, lapack

try:
    import sklearn
    from sklearn.metrics.pairwise import rbf_kernel
except ImportError:
    sklearn = None
try:
    import torch

    torch.set_num_threads(int(THREADS))
    torch.set_grad_enabled(False)
except ImportError:
    torch = None

rng = np.random.default_rng(0)
types = {"32": np.float32, "64": np.float64}
BLOCK = 1000  # rows of K at a time
RIGHT_HAND_SIDES = 10  # of the case columns


def gemm(t, m, n, k):
    a, b = rng.standard_normal((m, k)).astype(t), rng.standard_normal((k, n)).astype(t)
    c = np.empty((m, n), t)
    return lambda: np.dot(a, b, out=c)


def cholesky(t, n):
    g = rng.standard_normal((n, n + 10))
    a = np.asfortranarray((g @ g.T).astype(t))
    w = a.copy(order="F")
    f = lapack.dpotrf if t == np.float64 else lapack.spotrf

    def prepare():
        w[:] = a

    def run():
        assert f(w, lower=1, overwrite_a=1, clean=0)[1] == 0

    run.prepare = prepare
    return run


def trsm(t, n, m):
    # Row-major L·X = B is column-major Xᵀ·Lᵀ = Bᵀ, in place.
    l = np.tril(rng.standard_normal((n, n)) / np.sqrt(n)) + 2 * np.eye(n)
    l = np.asfortranarray(l.T.astype(t))  # upper
    b = np.asfortranarray(rng.standard_normal((m, n)).astype(t))
    w = b.copy(order="F")
    f = blas.dtrsm if t == np.float64 else blas.strsm

    def prepare():
        w[:] = b

    def run():
        f(1.0, l, w, side=1, lower=0, overwrite_b=1)

    run.prepare = prepare
    return run


def data(t, n, m, d, columns=1):
    shapes = (n, d), (m, d), (m, columns) if columns > 1 else m
    return (rng.standard_normal(s).astype(t) for s in shapes)


def gram(t, n, m, d, columns=1):
    x, c, v = data(t, n, m, d, columns)
    g = 1 / (2 * d)
    hx, hc = -t(g) * (x * x).sum(1), -t(g) * (c * c).sum(1)
    xs, ct, k = x * t(2 * g), c.T, np.empty((BLOCK, m), t)

    def run():
        w = np.zeros_like(v)
        for i in range(0, n, BLOCK):
            kb = k[: min(BLOCK, n - i)]
            np.dot(xs[i : i + BLOCK], ct, out=kb)
            kb += hx[i : i + BLOCK, None]
            kb += hc
            np.exp(kb, out=kb)
            u = kb @ v
            w += kb.T @ u if columns > 1 else u @ kb

    return run


def gram_sklearn(t, n, m, d):
    x, c, v = data(t, n, m, d)

    def run():
        w = np.zeros(m, t)
        for i in range(0, n, BLOCK):
            k = rbf_kernel(x[i : i + BLOCK], c, gamma=1 / (2 * d))
            w += (k @ v) @ k

    return run


def gram_torch(t, n, m, d):
    x, c, v = (torch.from_numpy(a) for a in data(t, n, m, d))
    g = 1 / (2 * d)
    hx, hc, ct = -g * (x * x).sum(1), -g * (c * c).sum(1), c.t().contiguous()
    k = torch.empty((BLOCK, m), dtype=x.dtype)

    def run():
        w = torch.zeros(m, dtype=x.dtype)
        for i in range(0, n, BLOCK):
            kb = k[: min(BLOCK, n - i)]
            torch.addmm(hc, x[i : i + BLOCK], ct, alpha=2 * g, out=kb)
            kb += hx[i : i + BLOCK, None]
            kb.exp_()
            w += (kb @ v) @ kb

    return run


def features_torch(t, n, m, d):
    x, w, v = (torch.from_numpy(a) for a in data(t, n, m, d))
    wt, q = w.t().contiguous() / d**0.5, torch.rand(m, dtype=x.dtype)
    k = torch.empty((BLOCK, m), dtype=x.dtype)

    def run():
        out = torch.zeros(m, dtype=x.dtype)
        for i in range(0, n, BLOCK):
            kb = k[: min(BLOCK, n - i)]
            torch.addmm(q, x[i : i + BLOCK], wt, out=kb)
            kb.cos_()
            out += (kb @ v) @ kb

    return run


def matern52(t, n, m, d):
    x, c, v = (rng.standard_normal(s).astype(t) for s in ((n, d), (m, d), m))
    f = t(np.sqrt(5 / d))
    hx, hc = (x * x).sum(1), (c * c).sum(1)
    xs, ct, k = x * t(-2), c.T, np.empty((BLOCK, m), t)
    e = np.empty_like(k)

    def run():
        w = np.zeros(m, t)
        for i in range(0, n, BLOCK):
            kb, eb = k[: min(BLOCK, n - i)], e[: min(BLOCK, n - i)]
            np.dot(xs[i : i + BLOCK], ct, out=kb)
            kb += hx[i : i + BLOCK, None]
            kb += hc
            np.maximum(kb, 0, out=kb)
            np.sqrt(kb, out=kb)
            kb *= f
            np.negative(kb, out=eb)
            np.exp(eb, out=eb)
            kb *= kb * t(1 / 3) + t(1)
            kb += t(1)
            kb *= eb
            w += (kb @ v) @ kb
        return w

    return run


def features(t, n, m, d):
    x, w, q = (rng.standard_normal(s).astype(t) for s in ((n, d), (d, m), m))
    v = rng.standard_normal(m).astype(t)
    w /= t(np.sqrt(d))
    k = np.empty((BLOCK, m), t)

    def run():
        out = np.zeros(m, t)
        for i in range(0, n, BLOCK):
            kb = k[: min(BLOCK, n - i)]
            np.dot(x[i : i + BLOCK], w, out=kb)
            kb += q
            np.cos(kb, out=kb)
            out += (kb @ v) @ kb

    return run


def gaussian(a, b, scale=0.3):
    g = 1 / (2 * scale**2)
    k = (2 * g) * (a @ b.T)
    k -= g * (a * a).sum(1)[:, None]
    k -= g * (b * b).sum(1)
    return np.exp(k, out=k)


def bkb(t, arms, m, d):
    # Means and variances of arms from m inducing points and 1000 observations.
    x, c = rng.random((arms, d)).astype(t), rng.random((m, d)).astype(t)
    ld = linalg.cholesky(gaussian(c, c) + 1e-8 * np.eye(m), lower=True)
    z = linalg.solve_triangular(ld, gaussian(c, x[:1000]), lower=True)
    lv = linalg.cholesky(z @ z.T + 0.01 * np.eye(m), lower=True)
    alpha = rng.standard_normal(m).astype(t)

    def run():
        k = gaussian(c, x)
        mean = alpha @ k
        z = linalg.solve_triangular(ld, k, lower=True, overwrite_b=True, check_finite=False)
        variance = 1 - np.einsum("ij,ij->j", z, z)
        z = linalg.solve_triangular(lv, z, lower=True, overwrite_b=True, check_finite=False)
        variance += 0.01 * np.einsum("ij,ij->j", z, z)
        return mean, variance

    return run


def ucb(t, arms, n, d):
    # Means and variances of arms by an exact Gaussian process of n observations.
    x, s, y = rng.random((arms, d)).astype(t), rng.random((n, d)).astype(t), rng.standard_normal(n)
    k = gaussian(s, s) + 0.01 * np.eye(n)
    l, alpha = linalg.cholesky(k, lower=True), linalg.solve(k, y)

    def run():
        k = gaussian(s, x)
        mean = alpha @ k
        z = linalg.solve_triangular(l, k, lower=True, overwrite_b=True, check_finite=False)
        return mean, 1 - np.einsum("ij,ij->j", z, z)

    return run


def elementwise(t, name, n):
    x = -8 * rng.random(n).astype(t)
    y = np.empty_like(x)
    f = {"exp": np.exp, "cos": np.cos}[name]

    def run():
        for _ in range(1000):
            f(x, out=y)

    return run


# The function of each library for a case.
builders = {
    "numpy": {
        "gemm": gemm,
        "cholesky": cholesky,
        "trsm": trsm,
        "gram": gram,
        "direct": gram,
        "columns": lambda *s: gram(*s, columns=RIGHT_HAND_SIDES),
        "matern52": matern52,
        "features": features,
        "bkb": bkb,
        "ucb": ucb,
        "exp": lambda t, n: elementwise(t, "exp", n),
        "cos": lambda t, n: elementwise(t, "cos", n),
    },
    "sklearn": {"gram": gram_sklearn, "direct": gram_sklearn} if sklearn else {},
    "torch": {"gram": gram_torch, "direct": gram_torch, "features": features_torch} if torch else {},
}


def build(library, kind, bits, *sizes):
    make = builders[library].get(kind)
    return make and make(types[bits], *map(int, sizes))


# Below it, a case is run once untimed before. With two threads every case is, because a core
# that has been idle takes milliseconds to wake in a virtual machine.
SHORT = 5e-3 if THREADS == "1" else float("inf")


def main():
    print(f"numpy {np.__version__}, scipy {scipy.__version__}" + (f", scikit-learn {sklearn.__version__}" if sklearn else "") + (f", torch {torch.__version__}" if torch else ""), flush=True)
    cases, last = {}, {}
    for line in sys.stdin:
        key = tuple(line.split())
        if key not in cases:
            cases[key] = build(*key)
        run = cases[key]
        if run is None:
            print("none", flush=True)
            continue
        prepare = getattr(run, "prepare", lambda: None)
        if last.get(key, 0) < SHORT:
            prepare()
            run()
        prepare()
        wall, cpu = time.perf_counter(), time.process_time()
        run()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        last[key] = wall
        print(wall, cpu, flush=True)


main()
