// Dense algebra in float64 on row-major matrices, for the preconditioner of FALKON. The host
// puts the kernels together (see factor.go). Blocks have 256 threads.
#include "dev.h"

enum { EDGE = 64, DEPTH = 8 };

// update sets C = beta C + alpha A diag(w) B', where element (i, l) of A is a[i*ai + l*al] and so
// for B. It computes tiles of 64x64. If lower is set, tiles above the diagonal are left out. If
// lean is set, A' and B' are lower triangular and elements above their diagonals count as 0.
KERNEL void update(double *c, long cs, long rows, long columns, const double *a, long ai, long al, const double *b, long bi, long bl,
		const double *w, long depth, double alpha, double beta, long lower, long lean) {
	SHARED(double, as, DEPTH * EDGE, 0);
	SHARED(double, bs, DEPTH * EDGE, 1);
	int tx = THREAD & 15, ty = THREAD >> 4;
	long i0 = BLOCK_X * EDGE, j0 = BLOCK_Y * EDGE;
	if (lower && j0 > i0) return;
	double s[4][4];
#pragma unroll
	for (int i = 0; i < 4; i++)
#pragma unroll
		for (int j = 0; j < 4; j++) s[i][j] = 0;
	for (long l0 = lean ? i0 : 0; l0 < depth; l0 += DEPTH) {
		for (long e = THREAD; e < DEPTH * EDGE; e += 256) {
			long r = al == 1 ? e / DEPTH : e % EDGE, l = al == 1 ? e % DEPTH : e / EDGE;
			bool in = l0 + l < depth && !(lean && l0 + l < i0 + r);
			double v = in && i0 + r < rows ? a[(i0 + r) * ai + (l0 + l) * al] : 0;
			as[l * EDGE + r] = in && w ? v * w[l0 + l] : v;
			r = bl == 1 ? e / DEPTH : e % EDGE, l = bl == 1 ? e % DEPTH : e / EDGE;
			bs[l * EDGE + r] = l0 + l < depth && j0 + r < columns && !(lean && l0 + l < j0 + r) ? b[(j0 + r) * bi + (l0 + l) * bl] : 0;
		}
		barrier();
#pragma unroll
		for (int l = 0; l < DEPTH; l++) {
			double p[4], q[4];
#pragma unroll
			for (int i = 0; i < 4; i++) {
				p[i] = as[l * EDGE + ty + 16 * i];
				q[i] = bs[l * EDGE + tx + 16 * i];
			}
#pragma unroll
			for (int i = 0; i < 4; i++)
#pragma unroll
				for (int j = 0; j < 4; j++) s[i][j] += p[i] * q[j];
		}
		barrier();
	}
#pragma unroll
	for (int i = 0; i < 4; i++)
#pragma unroll
		for (int j = 0; j < 4; j++) {
			long r = i0 + ty + 16 * i, k = j0 + tx + 16 * j;
			if (r < rows && k < columns && !(lower && k > r)) {
				double *to = c + r * cs + k;
				*to = (beta == 0 ? 0 : beta * *to) + alpha * s[i][j];
			}
		}
}

// diagonal sets element (i, i) to d[i] + shift, or adds shift to it if d is null.
KERNEL void diagonal(double *a, long stride, long n, const double *d, double shift) {
	long i = BLOCK_X * 256 + THREAD;
	if (i < n) a[i * (stride + 1)] = (d ? d[i] : a[i * (stride + 1)]) + shift;
}

// factor_block factors the block of order n <= 64 on the diagonal. *status becomes first + the
// index of the first pivot that is not positive, if it was negative.
KERNEL void factor_block(double *a, long stride, long n, long first, long *status) {
	SHARED(double, l, EDGE * (EDGE + 1), 0);
	if (*status >= 0) return;
	for (long e = THREAD; e < n * n; e += 256) l[e / n * (EDGE + 1) + e % n] = a[e / n * stride + e % n];
	barrier();
	for (long k = 0; k < n; k++) {
		double d = l[k * (EDGE + 1) + k];
		barrier();
		if (!(d > 0)) {
			if (THREAD == 0) *status = first + k;
			return;
		}
		double r = root(d);
		if (THREAD < n - k) l[(k + THREAD) * (EDGE + 1) + k] = THREAD == 0 ? r : l[(k + THREAD) * (EDGE + 1) + k] / r;
		barrier();
		for (long e = THREAD; e < (n - k - 1) * (n - k - 1); e += 256) {
			long i = k + 1 + e / (n - k - 1), j = k + 1 + e % (n - k - 1);
			if (j <= i) l[i * (EDGE + 1) + j] -= l[i * (EDGE + 1) + k] * l[j * (EDGE + 1) + k];
		}
		barrier();
	}
	for (long e = THREAD; e < n * n; e += 256)
		if (e % n <= e / n) a[e / n * stride + e % n] = l[e / n * (EDGE + 1) + e % n];
}

// solve_block overwrites rows of X, 16 for each block, by X L'^-1, or by X L^-1 if trans is set.
// L is the block of order n <= 64. Element (r, j) of X is x[r*rs + j*js].
KERNEL void solve_block(const double *a, long stride, long n, double *x, long rs, long js, long rows, long trans, const long *status) {
	SHARED(double, l, EDGE * (EDGE + 1), 0);
	SHARED(double, b, 16 * (EDGE + 1), 1);
	if (*status >= 0) return;
	long r = BLOCK_X * 16 + (THREAD >> 4), t = THREAD & 15;
	double *own = b + (THREAD >> 4) * (EDGE + 1);
	for (long e = THREAD; e < n * n; e += 256)
		if (e % n <= e / n) l[e / n * (EDGE + 1) + e % n] = a[e / n * stride + e % n];
	for (long j = t; j < n; j += 16) own[j] = r < rows ? x[r * rs + j * js] : 0;
	barrier();
	for (long k = 0; k < n; k++) {
		long j = trans ? n - 1 - k : k;
		double v = own[j] / l[j * (EDGE + 1) + j];
		barrier();
		if (t == 0) own[j] = v;
		for (long i = t; i < n; i += 16)
			if (trans ? i < j : i > j) own[i] -= v * (trans ? l[j * (EDGE + 1) + i] : l[i * (EDGE + 1) + j]);
		barrier();
	}
	for (long j = t; j < n; j += 16)
		if (r < rows) x[r * rs + j * js] = own[j];
}

// pivot chooses the largest of left[j..n], the first of equals, and exchanges it with j. If
// none is above stop, *status becomes j. It runs in one block.
KERNEL void pivot(double *a, long stride, long n, long j, double stop, double *left, long *perm, long *status) {
	SHARED(double, most, 256, 0);
	SHARED(long, where, 256, 1);
	if (*status >= 0) return;
	double best = -1;
	long at = -1;
	for (long i = j + THREAD; i < n; i += 256)
		if (left[i] > stop && left[i] > 0 && left[i] > best) {
			best = left[i];
			at = i;
		}
	most[THREAD] = best;
	where[THREAD] = at;
	barrier();
	for (long half = 128; half > 0; half /= 2) {
		if (THREAD < half) {
			double v = most[THREAD + half];
			long i = where[THREAD + half];
			if (i >= 0 && (where[THREAD] < 0 || v > most[THREAD] || (v == most[THREAD] && i < where[THREAD]))) {
				most[THREAD] = v;
				where[THREAD] = i;
			}
		}
		barrier();
	}
	long k = where[0];
	if (k < 0) {
		if (THREAD == 0) *status = j;
		return;
	}
	if (k != j) { // exchange rows and columns j < k of the lower triangle
		for (long l = THREAD; l < n; l += 256) {
			double *p, *q;
			if (l < j) {
				p = a + j * stride + l;
				q = a + k * stride + l;
			} else if (l > j && l < k) {
				p = a + l * stride + j;
				q = a + k * stride + l;
			} else if (l > k) {
				p = a + l * stride + j;
				q = a + l * stride + k;
			} else {
				continue;
			}
			double v = *p;
			*p = *q;
			*q = v;
		}
		if (THREAD == 0) {
			long p = perm[j];
			perm[j] = perm[k];
			perm[k] = p;
			left[k] = left[j];
			// The diagonal of the part that is not factored is in left.
		}
	}
	if (THREAD == 0) {
		left[j] = most[0];
		a[j * stride + j] = root(most[0]);
	}
}

// column computes column j of L. The columns from first on are not yet subtracted.
KERNEL void column(double *a, long stride, long n, long first, long j, double *left, const long *status) {
	if (*status >= 0) return;
	long i = j + 1 + BLOCK_X * 256 + THREAD;
	if (i >= n) return;
	double v = a[i * stride + j];
	for (long l = first; l < j; l++) v -= a[i * stride + l] * a[j * stride + l];
	v /= a[j * stride + j];
	a[i * stride + j] = v;
	left[i] -= v * v;
}
