"""Writes golden.json, the numbers of TestGolden in package learners.

    pip install numpy==2.4.6 scipy==1.17.1 && python golden.py > golden.json

Every number follows from a formula of the packages' documentation by NumPy and SciPy, in
another way than the Go code takes. Least squares are solved by QR instead of normal
equations or conjugate gradients, scores come from eigenvalues, and the losses of
classification are minimised by Newton's method with the full Hessian. Random features
repeat the streams of package internal/stream, which are ChaCha8 (C2SP chacha8rand) and
the ziggurat of math/rand/v2.
"""

import json
import math
import platform

import numpy as np
import scipy
from scipy.linalg import cholesky, eigh, lstsq, solve, solve_triangular

SEED = 20
N, TESTS, CENTERS, OUTPUTS = 40, 9, 11, 3
LAMBDA = 2e-3
LENGTHS = [0.9, 1.6]

rng = np.random.default_rng(SEED)
x = rng.uniform(-1.5, 1.5, (N, 2))
test = rng.uniform(-1.5, 1.5, (TESTS, 2))
y = np.stack([np.sin(2 * x[:, 0] + j) + x[:, 1] * np.cos(j) for j in range(OUTPUTS)], 1) + 0.2 * rng.standard_normal((N, OUTPUTS))
classes = np.argmax(y + 0.3 * rng.standard_normal(y.shape), 1)
weights = rng.exponential(size=N)
weights *= N / weights.sum()  # as in the fits
centers = np.sort(rng.choice(N, CENTERS, replace=False))
inclusion = rng.uniform(0.2, 1, CENTERS)  # A of a dictionary
signs = np.where(classes[:, None] == np.arange(OUTPUTS), 1.0, -1.0)


def gaussian(a, b):
    d = (a[:, None] - b[None]) / LENGTHS
    return np.exp(-(d**2).sum(-1) / 2)


def matern32(a, b):
    r = math.sqrt(3) * np.sqrt((((a[:, None] - b[None]) / LENGTHS) ** 2).sum(-1))
    return (1 + r) * np.exp(-r)


# Coordinates in which ‖f‖² is the square of the norm, for the centres.
factor = cholesky(gaussian(x[centers], x[centers]), lower=True)


def whitened(rows):
    return solve_triangular(factor, gaussian(x[centers], rows), lower=True).T


phi, phi_test = whitened(x), whitened(test)


def ridge(features, at, s, lambda_):
    """(1/n) Σ s_i (y_i − f(x_i))² + λ‖v‖² by QR of the stacked system."""
    root = np.sqrt(s)[:, None]
    left = np.vstack([root * features, math.sqrt(lambda_ * N) * np.eye(features.shape[1])])
    right = np.vstack([root * y, np.zeros((features.shape[1], OUTPUTS))])
    return at @ lstsq(left, right, lapack_driver="gelsy")[0]


def newton(loss, outputs):
    """(1/n) Σ s_i ℓ_i(f(x_i)) + (λ/2)‖v‖². loss returns ℓ, its slopes and second derivatives in f, for all rows."""
    q = CENTERS * outputs
    v = np.zeros((CENTERS, outputs))

    def at(v):
        value, slope, curve = loss(phi @ v)
        gradient = phi.T @ (weights[:, None] * slope) / N + LAMBDA * v
        hessian = np.einsum("i,ip,iq,ijk->pjqk", weights / N, phi, phi, curve).reshape(q, q) + LAMBDA * np.eye(q)
        return weights @ value / N + LAMBDA / 2 * (v**2).sum(), gradient, hessian

    for _ in range(200):
        value, gradient, hessian = at(v)
        if np.abs(gradient).max() < 1e-15:
            break
        step = solve(hessian, gradient.ravel(), assume_a="pos").reshape(v.shape)
        share = 1.0
        while at(v - share * step)[0] > value + 1e-14 * abs(value):
            share /= 2
        v = v - share * step
    assert np.abs(at(v)[1]).max() < 1e-13, np.abs(at(v)[1]).max()
    return phi_test @ v


def each(derivatives):
    """A loss of every output alone."""

    def loss(f):
        value, slope, curve = derivatives(f)
        return value.sum(1), slope, curve[:, :, None] * np.eye(f.shape[1])

    return loss


def logistic(f):
    p = 1 / (1 + np.exp(signs * f))
    return np.logaddexp(0, -signs * f), -signs * p, p * (1 - p)


def softmax(f):
    p = scipy.special.softmax(f, 1)
    value = scipy.special.logsumexp(f, 1) - f[np.arange(N), classes]
    return value, p - (signs > 0), p[:, :, None] * np.eye(OUTPUTS) - p[:, :, None] * p[:, None]


DELTA, QUANTILE, SMOOTHING = 0.4, 0.8, 0.1


def huber(f):
    r = f - y
    inner = np.clip(r, -DELTA, DELTA)
    return inner * (r - inner / 2), inner, (np.abs(r) <= DELTA).astype(float)


def quantile(f):
    r = y - f
    p = 1 / (1 + np.exp(r / SMOOTHING))
    return QUANTILE * r + SMOOTHING * np.logaddexp(0, -r / SMOOTHING), p - QUANTILE, p * (1 - p) / SMOOTHING


LANDWEBER = {"iterations": 60, "step": 1.3}
AVERAGED = {"passes": 3, "step": 0.25}


def landweber(s):
    """The filter (1 − (1 − γσ/n)^t)/σ of gradient descent, by eigenvalues σ of S^½KS^½."""
    root = np.sqrt(s)[:, None]
    values, vectors = eigh(root * matern32(x, x) * root.T)
    filtered = -np.expm1(LANDWEBER["iterations"] * np.log1p(-LANDWEBER["step"] * values / N)) / values
    return matern32(test, x) @ (root * ((vectors * filtered) @ vectors.T @ (root * y)))


def averaged():
    """θ_u = θ_{u−1} + γ(y_i − f(x_i)) k(x_i, ·) over the rows in turn, and the mean of all θ_u."""
    gram, c, total = matern32(x, x), np.zeros((N, OUTPUTS)), np.zeros((N, OUTPUTS))
    for i in np.tile(np.arange(N), AVERAGED["passes"]):
        c[i] += AVERAGED["step"] * (y[i] - gram[i] @ c)
        total += c
    return matern32(test, x) @ total / (N * AVERAGED["passes"])


def leave_one_out(gram):
    """(SK + λnI)a = Sy without row i, and its value there."""
    out = np.zeros((N, OUTPUTS))
    for i in range(N):
        rest = np.delete(np.arange(N), i)
        s = weights[rest, None]
        left = s * gram[np.ix_(rest, rest)] + LAMBDA * N * np.eye(N - 1)
        out[i] = gram[i, rest] @ np.linalg.solve(left, s * y[rest])
    return out


def leverage(gram):
    values, vectors = eigh(gram)
    return vectors**2 @ (values / (values + LAMBDA * N))


def dictionary_scores():
    """(k(x, x) − k_J(x)ᵀ(K_JJ + λnA)⁻¹k_J(x))/(λn), by (5.3) of Carratino (2020), and at most 1."""
    cross = gaussian(x, x[centers])
    inner = gaussian(x[centers], x[centers]) + LAMBDA * N * np.diag(inclusion)
    return np.minimum((1 - (cross * solve(inner, cross.T).T).sum(1)) / (LAMBDA * N), 1)


# The random numbers of Go, as 64-bit integers.
MASK = 2**64 - 1


def mix(v):
    v = (v ^ v >> 30) * 0xBF58476D1CE4E5B9 & MASK
    v = (v ^ v >> 27) * 0x94D049BB133111EB & MASK
    return v ^ v >> 31


def derive(seed, purpose, n):
    golden = 0x9E3779B97F4A7C15
    h = mix(seed + golden & MASK)
    for b in purpose.encode():
        h = mix((h ^ b) + golden & MASK)
    h = mix(h ^ len(purpose.encode()))
    return mix(h + (n + 1) * golden & MASK)


def chacha8(seed):
    """The first 32 numbers of the stream. Features need fewer."""
    key = list(np.frombuffer(seed.to_bytes(8, "little") + b"bkb stream 1".ljust(24, b"\0"), "<u4"))
    constants = np.frombuffer(b"expand 32-byte k", "<u4")
    rows = [np.full(4, w, np.uint32) for w in [*constants, *key]] + [np.arange(4, dtype=np.uint32)] + [np.zeros(4, np.uint32)] * 3
    b = [r.copy() for r in rows]

    def turn(v, by):
        return v << np.uint32(by) | v >> np.uint32(32 - by)

    for _ in range(4):
        for i, j, k, l in [(0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15), (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)]:
            for left, right in [(16, 12), (8, 7)]:
                b[i] = b[i] + b[j]
                b[l] = turn(b[l] ^ b[i], left)
                b[k] = b[k] + b[l]
                b[j] = turn(b[j] ^ b[k], right)
    for i in range(4, 12):  # the key is added, and nothing else
        b[i] = b[i] + rows[i]
    return iter(int(v) for v in np.stack(b).astype("<u4").ravel().view("<u8"))


def ziggurat():
    """The tables of Marsaglia and Tsang (2000) with 128 strips."""
    edge, area = 3.442619855899, 9.91256303526217e-3
    k, w, f = [0] * 128, [0.0] * 128, [0.0] * 128
    d, last = edge, edge
    q = area / math.exp(-d * d / 2)
    k[0], k[1] = int(d / q * 2**31), 0
    w[0], w[127] = q / 2**31, d / 2**31
    f[0], f[127] = 1.0, math.exp(-d * d / 2)
    for i in range(126, 0, -1):
        d = math.sqrt(-2 * math.log(area / d + math.exp(-d * d / 2)))
        k[i + 1], last = int(d / last * 2**31), d
        f[i], w[i] = math.exp(-d * d / 2), d / 2**31
    return k, [float(np.float32(v)) for v in w], [np.float32(v) for v in f]


STRIPS, WIDTHS, HEIGHTS = ziggurat()


def normal(stream):
    def uniform():
        return (next(stream) & 2**53 - 1) / 2**53

    while True:
        u = next(stream)
        j, i = (u & 0xFFFFFFFF ^ 1 << 31) - 2**31, u >> 32 & 0x7F
        v = j * WIDTHS[i]
        if abs(j) < STRIPS[i]:
            return v
        if i == 0:
            raise NotImplementedError("a number in the tail; use another seed")
        if HEIGHTS[i] + np.float32(uniform()) * (HEIGHTS[i - 1] - HEIGHTS[i]) < np.float32(math.exp(-v * v / 2)):
            return v


FEATURES, FEATURE_SEED = 20, 77
BATCH, PASSES, STEP, DECAY = 7, 4, 0.6, 0.25


def fourier(rows, seed):
    """√(2/M) (cos w_1ᵀx, sin w_1ᵀx, cos w_2ᵀx, …) with w ~ N(0, 1)/ℓ."""
    out = []
    for j in range(FEATURES // 2):
        stream = chacha8(derive(seed, "sketch/fourier", j))
        w = np.array([normal(stream) for _ in LENGTHS]) / LENGTHS
        out += [np.cos(rows @ w), np.sin(rows @ w)]
    return math.sqrt(2 / FEATURES) * np.stack(out, 1)


def descent():
    """w ← (1 − γ_tλ)w − (γ_t/b) Σ s_i φ(x_i)(φ(x_i)ᵀw − y_i), γ_t = γ t^−θ, over the rows in order. The last step of a pass has fewer rows."""
    seed = derive(FEATURE_SEED, "sgdrf/features", 0)
    z, w, t = fourier(x, seed), np.zeros((FEATURES, OUTPUTS)), 0
    for _ in range(PASSES):
        for first in range(0, N, BATCH):
            rows = slice(first, min(first + BATCH, N))
            t += 1
            step = STEP * t**-DECAY
            share = (rows.stop - first) / BATCH
            gradient = z[rows].T @ (weights[rows, None] * (z[rows] @ w - y[rows]))
            w = (1 - step * share * LAMBDA) * w - step / BATCH * gradient
    return fourier(test, seed) @ w


krr = matern32(test, x) @ solve(weights[:, None] * matern32(x, x) + LAMBDA * N * np.eye(N), weights[:, None] * y)
ones = np.ones(N)
outputs = {
    "krr": krr,
    "krr leave-one-out": leave_one_out(matern32(x, x)),
    "nystrom": ridge(phi, phi_test, ones, LAMBDA),
    "nystrom weighted": ridge(phi, phi_test, weights, LAMBDA),
    "nystrom unregularised": ridge(phi, phi_test, ones, 0),
    "logistic": newton(each(logistic), OUTPUTS),
    "softmax": newton(softmax, OUTPUTS),
    "huber": newton(each(huber), OUTPUTS),
    "quantile": newton(each(quantile), OUTPUTS),
    "leverage scores": leverage(gaussian(x, x)),
    "dictionary scores": dictionary_scores(),
    "features": fourier(test, FEATURE_SEED),
    "sgdrf": descent(),
    "landweber": landweber(ones),
    "landweber weighted": landweber(weights),
    "avgsgd": averaged(),
}
given = {"x": x, "y": y, "signs": signs, "weights": weights, "test": test, "centers": centers, "inclusion": inclusion}
print(
    json.dumps(
        {
            "origin": f"golden.py with Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}, and the seed {SEED} of numpy.random.default_rng",
            "outputs_per_row": OUTPUTS,
            "lambda": LAMBDA,
            "length_scales": LENGTHS,
            "huber": {"delta": DELTA},
            "quantile": {"quantile": QUANTILE, "smoothing": SMOOTHING},
            "sgdrf": {"features": FEATURES, "seed": FEATURE_SEED, "batch": BATCH, "passes": PASSES, "step": STEP, "decay": DECAY},
            "landweber": LANDWEBER,
            "avgsgd": AVERAGED,
            **{k: v.ravel().tolist() for k, v in given.items()},
            "want": {k: v.ravel().tolist() for k, v in outputs.items()},
        },
        indent=1,
    )
)
