#!/usr/bin/env python3
"""FALKON in PyTorch, Algorithm 1 of Carratino (2020). Products are in float32. All M×M
matrices and the conjugate gradients are in float64.

    falkon.py DIR d n M t lambda length-scale threads

reads x, y and the centres c that falkon.go wrote into DIR, fits the first n
rows, and prints its line of the table.
"""
import os
import resource
import sys
import time

folder, d, n, m, t, lam, scale, threads = sys.argv[1], *map(int, sys.argv[2:6]), *map(float, sys.argv[6:8]), int(sys.argv[8])
os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = str(threads)
import numpy as np
import torch

torch.set_num_threads(threads)
torch.set_grad_enabled(False)
BLOCK = 1000  # rows of K at a time

x = torch.from_numpy(np.fromfile(f"{folder}/x", np.float32).reshape(-1, d))
y = torch.from_numpy(np.fromfile(f"{folder}/y", np.float64))
c = torch.from_numpy(np.fromfile(f"{folder}/c", np.float32).reshape(-1, d))
m = len(c)  # fewer than M if some were dropped
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start, cpu = time.perf_counter(), time.process_time()

g = 1 / (2 * scale**2)
hc, ct = -g * (c * c).sum(1), c.t().contiguous()
buffer = torch.empty((BLOCK, m), dtype=x.dtype)


def block(rows):
    k = buffer[: len(rows)]
    torch.addmm(hc, rows, ct, alpha=2 * g, out=k)
    k -= g * (rows * rows).sum(1, keepdim=True)
    return k.exp_()


def product(v, u):
    """Kᵀ(Kv + u) of the training rows."""
    w = torch.zeros(m, dtype=torch.float64)
    v = v.float()
    for i in range(0, n, BLOCK):
        k = block(x[i : min(i + BLOCK, n)])
        r = k @ v
        if u is not None:
            r += u[i : min(i + BLOCK, n)]
        w += r @ k
    return w


def solve(a, b, transpose=False):
    """a⁻¹b for upper triangular a, or its transpose."""
    if transpose:
        return torch.linalg.solve_triangular(a.t(), b[:, None], upper=False)[:, 0]
    return torch.linalg.solve_triangular(a, b[:, None], upper=True)[:, 0]


c64 = c.double()
gram = torch.exp(-g * torch.cdist(c64, c64, compute_mode="donot_use_mm_for_euclid_dist").square_())
gram.diagonal().add_(1e-13 * m)
T = torch.linalg.cholesky(gram, upper=True)
del gram
A = T @ T.t() / m
A.diagonal().add_(lam)
A = torch.linalg.cholesky(A, upper=True)


def matrix(b):
    v = solve(A, b)
    w = solve(T, product(solve(T, v), None) / n, transpose=True)
    return solve(A, w + lam * v, transpose=True)


yf = y[:n].float()
r = solve(A, solve(T, product(torch.zeros(m), yf) / n, transpose=True), transpose=True)
beta, p, rr = torch.zeros_like(r), r.clone(), r @ r
for _ in range(t):
    q = matrix(p)
    a = rr / (p @ q)
    beta += a * p
    r -= a * q
    rr, old = r @ r, rr
    p = r + rr / old * p
alpha = solve(T, solve(A, beta)).float()

seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
out = torch.cat([block(rows) @ alpha for rows in x[n:].split(BLOCK)])
rmse = (out.double() - y[n:]).square().mean().sqrt().item()
print(f"| torch {torch.__version__}, float32 products | {seconds:.1f} | {cpu:.1f} | {(peak - before) >> 10} | {rmse:.5f} |")
