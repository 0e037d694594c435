#!/usr/bin/env python3
"""The other side of the comparison: NumPy and SciPy over OpenBLAS, one thread.

Reads a case name a line, runs it once, and answers with its CPU seconds. The
cases are those of main.go, on data of the same shape. Every case includes the
copy of its input that the Go side makes.
"""
import os
import sys
import time

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"
import numpy as np
from scipy.linalg import blas, lapack

rng = np.random.default_rng(0)
types = {"32": np.float32, "64": np.float64}


def gemm(t, m, n, k):
    a, b = rng.standard_normal((m, k)).astype(t), rng.standard_normal((k, n)).astype(t)
    c = np.empty((m, n), t)
    return lambda: np.dot(a, b, out=c)


def cholesky(t, n):
    g = rng.standard_normal((n, n + 10))
    a = np.asfortranarray((g @ g.T).astype(t))
    w = a.copy(order="F")
    f = lapack.dpotrf if t == np.float64 else lapack.spotrf

    def run():
        w[:] = a
        assert f(w, lower=1, overwrite_a=1, clean=0)[1] == 0

    return run


def trsm(t, n, m):
    # Row-major L·X = B is column-major Xᵀ·Lᵀ = Bᵀ, in place.
    l = np.tril(rng.standard_normal((n, n)) / np.sqrt(n)) + 2 * np.eye(n)
    l = np.asfortranarray(l.T.astype(t))  # upper
    b = np.asfortranarray(rng.standard_normal((m, n)).astype(t))
    w = b.copy(order="F")
    f = blas.dtrsm if t == np.float64 else blas.strsm

    def run():
        w[:] = b
        f(1.0, l, w, side=1, lower=0, overwrite_b=1)

    return run


def gram(t, n, m, d):
    x, c, v = (rng.standard_normal(s).astype(t) for s in ((n, d), (m, d), m))
    g, blk = 1 / (2 * d), 1000
    hx, hc = -t(g) * (x * x).sum(1), -t(g) * (c * c).sum(1)
    xs, ct, k = x * t(2 * g), c.T, np.empty((blk, m), t)

    def run():
        w = np.zeros(m, t)
        for i in range(0, n, blk):
            kb = k[: min(blk, n - i)]
            np.dot(xs[i : i + blk], ct, out=kb)
            kb += hx[i : i + blk, None]
            kb += hc
            np.exp(kb, out=kb)
            w += (kb @ v) @ kb

    return run


def matern52(t, n, m, d):
    x, c, v = (rng.standard_normal(s).astype(t) for s in ((n, d), (m, d), m))
    f, blk = t(np.sqrt(5 / d)), 1000
    hx, hc = (x * x).sum(1), (c * c).sum(1)
    xs, ct, k = x * t(-2), c.T, np.empty((blk, m), t)
    e = np.empty_like(k)

    def run():
        w = np.zeros(m, t)
        for i in range(0, n, blk):
            kb, eb = k[: min(blk, n - i)], e[: min(blk, n - i)]
            np.dot(xs[i : i + blk], ct, out=kb)
            kb += hx[i : i + blk, None]
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
    v, blk = rng.standard_normal(m).astype(t), 1000
    w /= t(np.sqrt(d))
    k = np.empty((blk, m), t)

    def run():
        out = np.zeros(m, t)
        for i in range(0, n, blk):
            kb = k[: min(blk, n - i)]
            np.dot(x[i : i + blk], w, out=kb)
            kb += q
            np.cos(kb, out=kb)
            out += (kb @ v) @ kb

    return run


def elementwise(t, name, n):
    x = -8 * rng.random(n).astype(t)
    y = np.empty_like(x)
    f = {"exp": np.exp, "cos": np.cos}[name]

    def run():
        for _ in range(1000):
            f(x, out=y)

    return run


def case(line):
    kind, bits, *rest = line.split()
    t = types[bits]
    if kind in ("exp", "cos"):
        return elementwise(t, kind, *map(int, rest))
    return globals()[kind](t, *map(int, rest))


cases = {}
for line in sys.stdin:
    line = line.strip()
    if line not in cases:
        cases[line] = case(line)
    cases[line]()  # untimed, so that what is short starts with warm caches
    start = time.process_time()
    cases[line]()
    print(time.process_time() - start, flush=True)
