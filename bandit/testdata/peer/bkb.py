#!/usr/bin/env python3
"""BKB on a finite set of arms by NumPy, to be timed beside package bandit.

    bkb.py ARMS D LENGTH_SCALE XI STEPS SEED

ARMS holds, in float64, A rows of D inputs and then A values. Matern-5/2 kernel
with unit amplitude, lambda = XI^2, b = sqrt(0.15 D log(2t + 1)), oversampling 4,
inducing points drawn anew when the sum of leverages exceeds 1, rank-one updates
in between. Prints one line of JSON: milliseconds of a step without a draw among
the last 300, median and 5 % quantile; of all steps; inducing points; and regret
relative to chance.
"""
import json
import sys
import time

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular


def matern52(x, y, scale):
    r2 = (x * x).sum(1)[:, None] + (y * y).sum(1) - 2 * (x @ y.T)
    a = np.sqrt(5 * np.maximum(r2, 0)) / scale
    return (1 + a + a * a / 3) * np.exp(-a)


class Posterior:
    def __init__(self, arms, scale, lam):
        self.x, self.scale, self.lam = arms, scale, lam
        self.count, self.total = np.zeros(len(arms)), np.zeros(len(arms))
        self.mean, self.var = np.zeros(len(arms)), np.ones(len(arms))

    def draw(self, dictionary):
        """O((A + u) m^2): everything for these inducing points."""
        xd = self.x[dictionary]
        k = matern52(xd, xd, self.scale) + 1e-10 * np.eye(len(xd))
        ld = cholesky(k, lower=True)
        self.z = np.ascontiguousarray(solve_triangular(ld, matern52(xd, self.x, self.scale), lower=True, check_finite=False).T)
        self.residual = np.maximum(1 - np.einsum("ij,ij->i", self.z, self.z), 0)
        pulled = np.flatnonzero(self.count)
        zp = self.z[pulled]
        v = zp.T @ (zp * self.count[pulled, None]) + self.lam * np.eye(len(xd))
        lv = cholesky(v, lower=True)
        self.vinv = cho_solve((lv, True), np.eye(len(xd)))
        self.w = self.vinv @ (zp.T @ self.total[pulled])
        self.mean = self.z @ self.w
        white = solve_triangular(lv, self.z.T, lower=True, check_finite=False)
        self.var = self.residual + self.lam * np.einsum("ij,ij->j", white, white)

    def observe(self, arm, y):
        """O(A m): a rank-one update."""
        self.count[arm] += 1
        self.total[arm] += y
        z = self.z[arm]
        h = self.vinv @ z
        den = 1 + z @ h
        g = self.z @ h
        self.vinv -= np.outer(h, h / den)
        e = (y - z @ self.w) / den
        self.w += e * h
        self.mean += e * g
        self.var -= (self.lam / den) * g * g

    def best(self, b):
        return int(np.argmax(self.mean + b * np.sqrt(self.var)))


def run(arms, value, scale, xi, steps, rng):
    d, lam = arms.shape[1], xi * xi
    p = Posterior(arms, scale, lam)
    arm, leverage, regret = int(rng.integers(len(arms))), 0.0, 0.0
    spent, plain = [], []
    for t in range(1, steps + 1):
        start = time.perf_counter()
        y = value[arm] + xi * rng.standard_normal()
        regret += value.max() - value[arm]
        leverage += p.var[arm] / lam
        redraw = leverage > 1
        if redraw:
            p.count[arm] += 1
            p.total[arm] += y
            pulled = np.flatnonzero(p.count)
            chance = np.minimum(1, 4 * p.count[pulled] * p.var[pulled] / lam)
            keep = pulled[rng.random(len(pulled)) < chance]
            p.draw(keep if len(keep) else pulled[:1])
            leverage = 0.0
        else:
            p.observe(arm, y)
        arm = p.best(np.sqrt(0.15 * d * np.log(2 * t + 3)))
        spent.append(time.perf_counter() - start)
        if not redraw and t > steps - 300:
            plain.append(spent[-1])
    chance = steps * (value.max() - value.mean())
    return {
        "step": 1e3 * float(np.median(plain)), "quick": 1e3 * float(np.quantile(plain, 0.05)), "all": 1e3 * sum(spent) / steps, "m": p.z.shape[1],
        "regret": regret / chance,
    }


def main():
    path, d, scale, xi, steps, seed = sys.argv[1:]
    d, scale, xi, steps = int(d), float(scale), float(xi), int(steps)
    data = np.fromfile(path)
    n = len(data) // (d + 1)
    arms, value = data[: n * d].reshape(n, d), data[n * d :]
    rng = np.random.default_rng(int(seed))
    out = run(arms, value, scale, xi, steps, rng)
    print(json.dumps(out))


main()
