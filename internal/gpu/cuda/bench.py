"""Times in PyTorch what BenchmarkKernels and BenchmarkDeviceFit time, to compare.

Usage: python3 bench.py [rows inputs centres]. The default is the size of MillionSongs with
10,000 centres. K is computed a block of rows at a time, from expanded distances, as PyTorch
programs do. Products have no TF32. Without a GPU it runs on the CPU.
"""
import sys
import time

import torch

n, d, m = map(int, sys.argv[1:]) if len(sys.argv) > 1 else (463_715, 90, 10_000)
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.backends.cuda.matmul.allow_tf32 = False
BLOCK = 16_384
LOG2E = 1.4426950408889634


def timed(name, work, f):
    """Prints the least of three times of f, after one that does not count."""
    least = float("inf")
    for i in range(4):
        if device == "cuda":
            torch.cuda.synchronize()
        began = time.perf_counter()
        f()
        if device == "cuda":
            torch.cuda.synchronize()
        if i > 0:
            least = min(least, time.perf_counter() - began)
    print(f"torch {torch.__version__} {device} {name}: {1e3 * least:.4g} ms, {work / least / 1e9:.4g} Gflop/s", flush=True)


def gaussian(x, y):
    """Returns 2^-|x - y|^2."""
    s = torch.addmm((x * x).sum(1)[:, None] + (y * y).sum(1)[None, :], x, y.T, alpha=-2)
    return s.clamp_(min=0).neg_().exp2_()


torch.manual_seed(1)
for dtype in (torch.float32, torch.float64):
    x = torch.randn(n, d, device=device, dtype=dtype) / 10
    y = torch.randn(m, d, device=device, dtype=dtype) / 10
    v = torch.randn(m, 1, device=device, dtype=dtype)
    u = torch.randn(n, 1, device=device, dtype=dtype)
    name = str(dtype).removeprefix("torch.")
    work = 2.0 * n * m * d

    def forward():
        return torch.cat([gaussian(x[i : i + BLOCK], y) @ v for i in range(0, n, BLOCK)])

    def backward():
        out = torch.zeros(m, 1, device=device, dtype=dtype)
        for i in range(0, n, BLOCK):
            out.addmm_(gaussian(x[i : i + BLOCK], y).T, u[i : i + BLOCK])
        return out

    timed(f"{name} Kv", work, forward)
    timed(f"{name} Kᵀu", work, backward)

    del x, y, u, v


def falkon(iterations=20, penalty=1e-6):
    """Fits FALKON in float32, with factors in float64 and K in memory, to normal numbers."""
    x = torch.randn(n, d, device=device)
    t = (x.sum(1) / 10 + 0.1 * torch.randn(n, device=device))[:, None]
    x /= 0.63 * d**0.5 * (2 / LOG2E) ** 0.5
    y = x[torch.randperm(n, device=device)[:m]]
    kyy = gaussian(y.double(), y.double())
    kyy.diagonal().add_(1e-6 * m)
    low = torch.linalg.cholesky(kyy)
    del kyy
    inner = low.T @ low / m
    inner.diagonal().add_(penalty)
    outer = torch.linalg.cholesky(inner)
    del inner
    k = torch.empty(n, m, device=device)
    for i in range(0, n, BLOCK):
        k[i : i + BLOCK] = gaussian(x[i : i + BLOCK], y)
    solve = torch.linalg.solve_triangular

    def down(v):
        return solve(outer, solve(low, v, upper=False), upper=False)

    def up(v):
        return solve(low.T, solve(outer.T, v, upper=True), upper=True)

    r = down((k.T @ t).double() / n)
    beta, p, rr = torch.zeros_like(r), r.clone(), r.square().sum()
    for _ in range(iterations):
        v = solve(outer.T, p, upper=True)
        a = solve(low.T, v, upper=True)
        a = solve(low, (k.T @ (k @ a.float())).double() / n, upper=False) + penalty * v
        w = solve(outer, a, upper=False)
        step = rr / (p * w).sum()
        beta, r = beta + step * p, r - step * w
        rr, old = r.square().sum(), rr
        p = r + rr / old * p
    return up(beta).sum().item()


if device == "cuda":
    torch.cuda.empty_cache()
timed(f"FALKON {n} {d} {m}", 0, falkon)
y = torch.randn(m, d, device=device, dtype=torch.float64) / 10
a = gaussian(y, y)
a.diagonal().add_(1e-6 * m)
timed(f"float64 Cholesky of order {m}", m**3 / 3, lambda: torch.linalg.cholesky(a))
