#!/usr/bin/env python3
"""The Gaussian process of scikit-learn with a length scale for each input, on the rows that
ard.go wrote, for a comparison with `tuner train falkon --length-scale auto`.

    ard.py gp-ard TRAIN TEST TRIALS FOLDS SEED

The arguments are those of tuned.py. TRIALS and FOLDS have no effect. The kernel is a
constant times a Gaussian plus white noise. Evidence is maximised from one start, on all
rows, standardised. It starts from the length scale √d, because at 1 all rows of 40 inputs
are far from each other and the gradient is 0. Scikit-learn forms an n×n×d array for the
gradient. Here the sum over that array is a matrix product. On up to 100 of the rows both
must agree to 1e-9.

It prints one line of JSON as tuned.py does.
"""
import sys

import tuned  # sets the number of threads before NumPy starts
import numpy as np
from scipy.linalg import cho_solve, cholesky
from scipy.linalg.lapack import dpotri
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel


class Summed(GaussianProcessRegressor):
    """The process with a gradient that needs no n×n×d array."""

    def log_marginal_likelihood(self, theta=None, eval_gradient=False, clone_kernel=True):
        if not eval_gradient:
            return super().log_marginal_likelihood(theta, eval_gradient, clone_kernel)
        variance, lengths, noise = np.exp(theta[0]), np.exp(theta[1:-1]), np.exp(theta[-1])
        x, y = self.X_train_ / lengths, self.y_train_
        n = len(y)
        squares = (x**2).sum(1)
        k = x @ x.T
        k *= -2
        k += squares
        k += squares[:, None]
        np.fill_diagonal(k, 0)
        np.maximum(k, 0, out=k)
        k *= -0.5
        np.exp(k, out=k)
        k *= variance
        a = k.copy()
        a[np.diag_indices(n)] += noise + self.alpha
        try:
            a = cholesky(a, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            return -np.inf, np.zeros_like(theta)
        w = cho_solve((a, True), y, check_finite=False)
        value = -0.5 * y @ w - np.log(np.diag(a)).sum() - n / 2 * np.log(2 * np.pi)
        inverse, failed = dpotri(a, lower=1, overwrite_c=1)
        if failed:
            return -np.inf, np.zeros_like(theta)
        inverse = np.tril(inverse)
        g = -inverse
        g -= inverse.T
        g[np.diag_indices(n)] += np.diag(inverse)  # counted twice
        g += np.outer(w, w)
        trace = np.trace(g)
        g *= k  # W ∘ K, of which every gradient is a weighted sum
        by_length = (x**2 * g.sum(1)[:, None] - x * (g @ x)).sum(0)  # ½ Σ g_ij (x_i − x_j)²
        return value, np.concatenate(([0.5 * g.sum()], by_length, [0.5 * noise * trace]))


def check(model, x, y):
    """Compares value and gradient with those of scikit-learn."""
    few = Summed(model.kernel, optimizer=None).fit(x[:100], y[:100])
    theta = few.kernel_.theta + np.random.default_rng(1).normal(0, 0.5, len(few.kernel_.theta))
    own = few.log_marginal_likelihood(theta, eval_gradient=True)
    theirs = GaussianProcessRegressor.log_marginal_likelihood(few, theta, eval_gradient=True)
    for got, want in zip(own, theirs):
        if not np.allclose(got, want, rtol=1e-9, atol=1e-9 * np.max(np.abs(want))):
            raise ArithmeticError(f"the gradient is {got}, that of scikit-learn {want}")


def fitted(name, x, y, trials, folds, seed):
    if name != "gp-ard":
        raise ValueError(f"there is no {name!r}, only gp-ard")
    d = x.shape[1]
    kernel = ConstantKernel(1, (1e-3, 1e4)) * RBF(np.full(d, d**0.5), (1e-2, 1e4)) + WhiteKernel(0.1, (1e-8, 1e1))
    process = Summed(kernel, random_state=seed)
    check(process, (x - x.mean(0)) / np.where(x.std(0) > 0, x.std(0), 1), (y - y.mean()) / y.std())
    model = tuned.standardised(process).fit(x, y)
    gp = model.regressor_[-1]
    theta = np.exp(gp.kernel_.theta)
    return model, {"variance": theta[0], "lengths": list(theta[1:-1]), "noise": theta[-1], "evidence": gp.log_marginal_likelihood_value_}


if __name__ == "__main__":
    tuned.fitted = fitted
    tuned.main()
