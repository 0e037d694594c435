// Dense algebra in float64 on row-major matrices, for the preconditioner of FALKON. The host
// puts the kernels together (see factor.go). Blocks have 256 threads.
#include "dev.h"

enum { EDGE = 64, HEIGHT = 128, DEPTH = 8 };

// part is a slab of a matrix of which each thread holds N elements, of 32N rows and DEPTH columns.
template <int N> struct part {
	const double *a;
	long rs, cs, rows, depth, i0;
	bool lean; // elements (i, l) with l < i count as 0
	double v[N];

	// Threads side by side have elements side by side in memory.
	DEVICE_MEMBER int row(int e) const { return cs == 1 ? THREAD / DEPTH + 32 * e : THREAD % 64 + e % (N / 2) * 64; }
	DEVICE_MEMBER int column(int e) const { return cs == 1 ? THREAD % DEPTH : THREAD / 64 + e / (N / 2) * 4; }

	DEVICE_MEMBER void take(long l0, const double *w) {
#pragma unroll
		for (int e = 0; e < N; e++) {
			long i = i0 + row(e), l = l0 + column(e);
			v[e] = i < rows && l < depth && !(lean && l < i) ? a[i * rs + l * cs] : 0;
			if (w && l < depth) v[e] *= w[l];
		}
	}
	DEVICE_MEMBER void put(double *to, int stride) const {
#pragma unroll
		for (int e = 0; e < N; e++) to[column(e) * stride + row(e)] = v[e];
	}
};

// two reads N elements, pairs of them 32 apart.
template <int N> DEVICE void two(double (&to)[N], const double *from) {
#pragma unroll
	for (int i = 0; i < N; i += 2) {
		pair v = *(const pair *)(from + 16 * i);
		to[i] = v.v[0];
		to[i + 1] = v.v[1];
	}
}

// update sets C = beta C + alpha A diag(w) B', where element (i, l) of A is a[i*ai + l*al] and so
// for B. A block computes HEIGHTxEDGE elements and a thread 8x4 of them. If lower is set, elements
// above the diagonal are left out. If lean is set, A' and B' are lower triangular and elements
// above their diagonals count as 0. Nothing is done after a factorisation that has ended.
KERNEL BOUNDS(2) void update(double *c, long cs, long rows, long columns, const double *a, long ai, long al, const double *b, long bi, long bl,
		const double *w, long depth, double alpha, double beta, long lower, long lean, const long *status) {
	enum { AS = HEIGHT + 2, BS = EDGE + 2 }; // so that few threads store to one bank
	SHARED(double, as, 2 * DEPTH * AS, 0);
	SHARED(double, bs, 2 * DEPTH * BS, 1);
	int tx = THREAD & 15, ty = THREAD >> 4;
	long i0 = BLOCK_X * HEIGHT, j0 = BLOCK_Y * EDGE, from = lean ? i0 : 0;
	if (*status >= 0 || (lower && j0 >= i0 + HEIGHT)) return;
	part<HEIGHT / 32> pa = {a, ai, al, rows, depth, i0, lean != 0};
	part<EDGE / 32> pb = {b, bi, bl, columns, depth, j0, lean != 0};
	double s[8][4];
#pragma unroll
	for (int i = 0; i < 8; i++)
#pragma unroll
		for (int j = 0; j < 4; j++) s[i][j] = 0;
	pa.take(from, w);
	pb.take(from, nullptr);
	int now = 0;
	for (long l0 = from; l0 < depth; l0 += DEPTH, now ^= 1) { // the next slab is read while one is used
		double *am = as + now * DEPTH * AS, *bm = bs + now * DEPTH * BS;
		pa.put(am, AS);
		pb.put(bm, BS);
		barrier();
		if (l0 + DEPTH < depth) {
			pa.take(l0 + DEPTH, w);
			pb.take(l0 + DEPTH, nullptr);
		}
#pragma unroll
		for (int l = 0; l < DEPTH; l++) {
			double x[8], y[4];
			two(x, am + l * AS + 2 * ty);
			two(y, bm + l * BS + 2 * tx);
#pragma unroll
			for (int i = 0; i < 8; i++)
#pragma unroll
				for (int j = 0; j < 4; j++) s[i][j] += x[i] * y[j];
		}
	}
#pragma unroll
	for (int i = 0; i < 8; i++)
#pragma unroll
		for (int j = 0; j < 4; j++) {
			long r = i0 + i / 2 * 32 + 2 * ty + i % 2, k = j0 + j / 2 * 32 + 2 * tx + j % 2;
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

// candidate is the largest of left that a block has seen, the first of equals.
struct candidate {
	double most;
	long at; // -1 if there is none
};

DEVICE candidate better(candidate a, candidate b) {
	return b.at >= 0 && (a.at < 0 || b.most > a.most || (b.most == a.most && b.at < a.at)) ? b : a;
}

// most returns the best candidate of the threads of a block.
DEVICE candidate most(candidate own, double *values, long *at) {
	values[THREAD] = own.most;
	at[THREAD] = own.at;
	barrier();
	for (long half = 128; half > 0; half /= 2) {
		if (THREAD < half) {
			candidate a = {values[THREAD], at[THREAD]}, b = {values[THREAD + half], at[THREAD + half]};
			a = better(a, b);
			values[THREAD] = a.most;
			at[THREAD] = a.at;
		}
		barrier();
	}
	candidate first = {values[0], at[0]};
	return first;
}

DEVICE candidate candidate_of(double left, long i, double stop) {
	candidate c = {left, left > stop && left > 0 ? i : -1};
	return c;
}

// pivot chooses the largest of the candidates for column j, of which each 256 rows have one, and
// exchanges its row with row j. The first column has no candidates, so that left is searched. If
// no pivot is above stop, *status becomes j. It runs in one block. *chosen becomes the pivot.
KERNEL void pivot(double *a, long stride, long n, long j, double stop, double *left, long *perm, const candidate *best, long *chosen, long *status) {
	SHARED(double, values, 256, 0);
	SHARED(long, at, 256, 1);
	if (*status >= 0) return;
	candidate own = {0, -1};
	if (j == 0)
		for (long i = THREAD; i < n; i += 256) own = better(own, candidate_of(left[i], i, stop));
	else
		for (long i = THREAD; i < (n - j + 255) / 256; i += 256) own = better(own, best[i]);
	own = most(own, values, at);
	long k = own.at;
	if (k < 0) {
		if (THREAD == 0) *status = j;
		return;
	}
	if (k != j)
		for (long l = THREAD; l < j; l += 256) {
			double v = a[j * stride + l];
			a[j * stride + l] = a[k * stride + l];
			a[k * stride + l] = v;
		}
	if (THREAD == 0) {
		long p = perm[j];
		perm[j] = perm[k];
		perm[k] = p;
		left[k] = left[j]; // the diagonal of the part that is not factored is in left
		left[j] = own.most;
		a[j * stride + j] = root(own.most);
		*chosen = k;
	}
}

// column exchanges columns j and *chosen of the rows below j, in the lower triangle, and computes
// column j of L. The columns from first on are not yet subtracted. best[BLOCK_X] becomes the
// candidate of these rows for the next column.
KERNEL void column(double *a, long stride, long n, long first, long j, double stop, double *left, candidate *best, const long *chosen, const long *status) {
	SHARED(double, values, 256, 0);
	SHARED(long, at, 256, 1);
	if (*status >= 0) return;
	long i = j + 1 + BLOCK_X * 256 + THREAD, k = *chosen;
	candidate own = {0, -1};
	if (i < n) {
		double v = a[i * stride + j];
		if (k != j && i != k) {
			double *other = i < k ? a + k * stride + i : a + i * stride + k, w = *other;
			*other = v;
			v = w;
		}
#pragma unroll 8
		for (long l = first; l < j; l++) v -= a[i * stride + l] * a[j * stride + l];
		v /= a[j * stride + j];
		a[i * stride + j] = v;
		double rest = left[i] - v * v;
		left[i] = rest;
		own = candidate_of(rest, i, stop);
	}
	own = most(own, values, at);
	if (THREAD == 0) best[BLOCK_X] = own;
}

// invert sets the inverse of each block of order EDGE on the diagonal of L, of order n, padded
// with zeros. Thread t computes column t.
KERNEL void invert(const double *a, long stride, long n, double *inverse) {
	SHARED(double, l, EDGE * (EDGE + 1), 0);
	long i0 = BLOCK_X * EDGE, m = n - i0 < EDGE ? n - i0 : EDGE;
	for (long e = THREAD; e < EDGE * EDGE; e += 256) {
		long i = e / EDGE, j = e % EDGE;
		l[i * (EDGE + 1) + j] = j <= i && i < m ? a[(i0 + i) * stride + i0 + j] : 0;
	}
	barrier();
	long t = THREAD;
	if (t >= EDGE) return;
	double *to = inverse + BLOCK_X * EDGE * EDGE + t;
	for (long i = 0; i < EDGE; i++) {
		double v = i == t ? 1 : 0;
		for (long k = t; k < i; k++) v -= l[i * (EDGE + 1) + k] * to[k * EDGE];
		to[i * EDGE] = i < t || i >= m ? 0 : v / l[i * (EDGE + 1) + i];
	}
}

// solve sets x, of c columns, to L^-1 b, or to L'^-1 b if trans is set. All bits of x are 1 at
// first, which no result has, so that blocks can wait for elements of others. They take rows in
// the order of their tickets, and so wait only for blocks that are running.
KERNEL void solve(const double *a, long stride, long n, const double *inverse, const double *b, double *x, long c, long trans, long *tickets) {
	SHARED(double, sums, 16 * (EDGE + 1), 0);
	SHARED(double, rest, EDGE, 1);
	SHARED(long, turn, 1, 2);
	long q = BLOCK_Y, blocks = (n + EDGE - 1) / EDGE;
	if (THREAD == 0) turn[0] = __atomic_fetch_add(tickets + q, 1, __ATOMIC_RELAXED);
	barrier();
	long t = turn[0], i = trans ? blocks - 1 - t : t;
	// Thread (u, w) has the elements (w + 16g, u + 16h) of a tile. It multiplies along its
	// rows, or along its columns for the transpose, and the sums of 16 threads are added.
	int u = THREAD & 15, w = THREAD >> 4, along = trans ? w : u, across = trans ? u : w;
	double sum[4] = {0, 0, 0, 0}, tile[4][4], next[4][4], last[4][4];
	const double *own = inverse + i * EDGE * EDGE;
#pragma unroll
	for (int g = 0; g < 4; g++)
#pragma unroll
		for (int h = 0; h < 4; h++) last[g][h] = own[(w + 16 * g) * EDGE + u + 16 * h];
	for (long s = -1; s < t; s++) {
		if (s + 1 < t) { // the next tile is read before this one waits
			long j = trans ? blocks - 2 - s : s + 1, r0 = (trans ? j : i) * EDGE, k0 = (trans ? i : j) * EDGE;
#pragma unroll
			for (int g = 0; g < 4; g++)
#pragma unroll
				for (int h = 0; h < 4; h++) next[g][h] = r0 + w + 16 * g < n ? a[(r0 + w + 16 * g) * stride + k0 + u + 16 * h] : 0;
		}
		if (s >= 0) {
			long j = trans ? blocks - 1 - s : s;
			double y[4];
#pragma unroll
			for (int h = 0; h < 4; h++) {
				long r = j * EDGE + along + 16 * h;
				y[h] = r < n ? wait_for(x + r * c + q) : 0;
			}
#pragma unroll
			for (int g = 0; g < 4; g++)
#pragma unroll
				for (int h = 0; h < 4; h++) sum[g] += (trans ? tile[h][g] : tile[g][h]) * y[h];
		}
#pragma unroll
		for (int g = 0; g < 4; g++)
#pragma unroll
			for (int h = 0; h < 4; h++) tile[g][h] = next[g][h];
	}
#pragma unroll
	for (int g = 0; g < 4; g++) sums[along * (EDGE + 1) + across + 16 * g] = sum[g];
	barrier();
	long row = i * EDGE + THREAD;
	if (THREAD < EDGE) {
		double v = row < n ? b[row * c + q] : 0;
		for (int l = 0; l < 16; l++) v -= sums[l * (EDGE + 1) + THREAD];
		rest[THREAD] = row < n ? v : 0;
	}
	barrier();
#pragma unroll
	for (int g = 0; g < 4; g++) {
		double v = 0;
#pragma unroll
		for (int h = 0; h < 4; h++) v += (trans ? last[h][g] : last[g][h]) * rest[along + 16 * h];
		sums[along * (EDGE + 1) + across + 16 * g] = v;
	}
	barrier();
	if (THREAD < EDGE && row < n) {
		double v = 0;
		for (int l = 0; l < 16; l++) v += sums[l * (EDGE + 1) + THREAD];
		publish(x + row * c + q, v);
	}
}
