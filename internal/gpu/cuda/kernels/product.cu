// Products with K = K(X, Y), where X and Y are panels on the device.
//
// A panel has SIDE rows. Element k of row r of panel p is at (p*depth + k)*SIDE + r. Rows
// and coordinates that do not exist are 0. A block of 256 threads takes one panel of X and
// one of Y at a time. Each thread has RxR elements of K in registers.
#include "dev.h"

// spec is the function of the pairs. The host writes it (see spec in matrix.go).
struct spec {
	long statistic, function, power;
	double p0, p1, factor;
	double reach; // of expanded distances: < 0 never, 0 always, else for norms up to it
};

enum { SQUARED, MANHATTAN, DOT };
enum { DECAY, MATERN12, MATERN32, MATERN52, POWER, COSINE };

enum { SLAB = 8 }; // coordinates in shared memory at a time

template <class T> struct shape;
template <> struct shape<float> { enum { R = 8, G = 4, SIDE = 128 }; };
template <> struct shape<double> { enum { R = 4, G = 2, SIDE = 64 }; };

// place is the index in a panel of element a of thread t of 16. Threads side by side
// read 16 bytes side by side.
template <class T> DEVICE int place(int t, int a) {
	enum { G = shape<T>::G };
	return a / G * 16 * G + t * G + a % G;
}

template <class T> DEVICE T at(const spec *f, T s) {
	switch (f->function) {
	case DECAY:
		return exp2_of(-s);
	case MATERN12:
		return exp2_of(root(s) * (T)-1.44269504088896340736);
	case MATERN32: {
		T a = root(s);
		return ((T)1 + a) * exp2_of(a * (T)-1.44269504088896340736);
	}
	case MATERN52: {
		T a = root(s);
		return ((T)1 + a + s * (T)(1.0 / 3)) * exp2_of(a * (T)-1.44269504088896340736);
	}
	case COSINE:
		return cos2pi_of(s);
	}
	T base = (T)f->p0 * s + (T)f->p1, v = 1;
	for (long n = f->power; n > 0; n >>= 1) {
		if (n & 1) v *= base;
		base *= base;
	}
	return v;
}

template <class T, int STATISTIC> DEVICE void coordinates(T (&s)[shape<T>::R][shape<T>::R], const T *xs, const T *ys) {
	enum { R = shape<T>::R, G = shape<T>::G, SIDE = shape<T>::SIDE };
	typedef typename wide<T>::type W;
	int tx = THREAD & 15, ty = THREAD >> 4;
#pragma unroll
	for (int k = 0; k < SLAB; k++) {
		T a[R], b[R];
#pragma unroll
		for (int g = 0; g < R / G; g++) {
			W va = *(const W *)(xs + k * SIDE + place<T>(ty, g * G)), vb = *(const W *)(ys + k * SIDE + place<T>(tx, g * G));
#pragma unroll
			for (int i = 0; i < G; i++) {
				a[g * G + i] = va.v[i];
				b[g * G + i] = vb.v[i];
			}
		}
#pragma unroll
		for (int i = 0; i < R; i++)
#pragma unroll
			for (int j = 0; j < R; j++) {
				if (STATISTIC == DOT) {
					s[i][j] += a[i] * b[j];
				} else {
					T t = a[i] - b[j];
					s[i][j] += STATISTIC == SQUARED ? t * t : t < 0 ? -t : t;
				}
			}
	}
}

// take and put copy 16 bytes. Without a struct, clang keeps them in registers through a loop.
template <class T> DEVICE void take(T (&to)[shape<T>::G], const T *from) {
	typename wide<T>::type w = *(const typename wide<T>::type *)from;
#pragma unroll
	for (int i = 0; i < shape<T>::G; i++) to[i] = w.v[i];
}

template <class T> DEVICE void put(T *to, const T (&from)[shape<T>::G]) {
	typename wide<T>::type w;
#pragma unroll
	for (int i = 0; i < shape<T>::G; i++) w.v[i] = from[i];
	*(typename wide<T>::type *)to = w;
}

// statistic adds up s over the coordinates of two panels, a slab of them in shared memory at a
// time. The threads hold the next slab, 16 bytes of each panel, while this one is used.
template <class T, int STATISTIC> DEVICE void statistic(T (&s)[shape<T>::R][shape<T>::R], T *xs, T *ys, const T *x, const T *y, long depth) {
	enum { G = shape<T>::G, SIDE = shape<T>::SIDE };
	int now = 0;
	long own = THREAD * G;
	T a[G], b[G];
	take<T>(a, x + own);
	take<T>(b, y + own);
	for (long k = 0; k < depth; k += SLAB, now ^= 1) {
		T *xk = xs + now * SLAB * SIDE, *yk = ys + now * SLAB * SIDE;
		put<T>(xk + own, a);
		put<T>(yk + own, b);
		barrier();
		if (k + SLAB < depth) {
			take<T>(a, x + (k + SLAB) * SIDE + own);
			take<T>(b, y + (k + SLAB) * SIDE + own);
		}
		coordinates<T, STATISTIC>(s, xk, yk);
	}
	barrier();
}

// side is X or Y. The norms are |x|^2 for distances and phases for cosines.
template <class T> struct side {
	const T *data, *norms, *most; // most is the largest norm of a panel
};

template <class T> DEVICE void zero(T (&s)[shape<T>::R][shape<T>::R]) {
#pragma unroll
	for (int a = 0; a < shape<T>::R; a++)
#pragma unroll
		for (int b = 0; b < shape<T>::R; b++) s[a][b] = 0;
}

// distances sets s to the argument of a function of distances, expanded or not.
template <class T> DEVICE void distances(T (&s)[shape<T>::R][shape<T>::R], const spec *f, T *xs, T *ys, side<T> x, long i, side<T> y, long j, long depth) {
	enum { R = shape<T>::R, SIDE = shape<T>::SIDE };
	int tx = THREAD & 15, ty = THREAD >> 4;
	const T *xp = x.data + i * depth * SIDE, *yp = y.data + j * depth * SIDE;
	T reach = (T)f->reach;
	zero<T>(s);
	if (!(reach == 0 || (x.most[i] <= reach && y.most[j] <= reach))) {
		statistic<T, SQUARED>(s, xs, ys, xp, yp, depth);
		return;
	}
	statistic<T, DOT>(s, xs, ys, xp, yp, depth);
#pragma unroll
	for (int a = 0; a < R; a++)
#pragma unroll
		for (int b = 0; b < R; b++) {
			T q = x.norms[i * SIDE + place<T>(ty, a)] + y.norms[j * SIDE + place<T>(tx, b)] - 2 * s[a][b];
			s[a][b] = q < 0 ? (T)0 : q; // NaN stays
		}
}

// stored sets s to elements of K in memory from one on, with rows stride apart.
template <class T> DEVICE void stored(T (&s)[shape<T>::R][shape<T>::R], const T *from, long stride) {
	enum { R = shape<T>::R, G = shape<T>::G };
	typedef typename wide<T>::type W;
	int tx = THREAD & 15, ty = THREAD >> 4;
#pragma unroll
	for (int a = 0; a < R; a++)
#pragma unroll
		for (int g = 0; g < R; g += G) {
			W w = *(const W *)(from + place<T>(ty, a) * stride + place<T>(tx, g));
#pragma unroll
			for (int l = 0; l < G; l++) s[a][g + l] = w.v[l];
		}
}

enum { FUSED, ROWS, COLUMNS };

// product computes C columns of K v from column q on. K is a function DECAY of distances, which is
// not stored, or it is in memory, or its transpose is. Blocks in y take parts of the columns of K.
// part[(BLOCK_Y*C + c)*rows + row] is the sum of one part, in float64 beyond one panel. The order
// of the sums is the same in all three.
template <class T, int C, int FROM> DEVICE void product(const spec *f, side<T> x, side<T> y, long depth, const T *k, long stride, long rows, long panels, const double *v, long width, long q, double *part) {
	enum { R = shape<T>::R, SIDE = shape<T>::SIDE };
	SHARED(T, xs, 2 * SLAB * SIDE, 0);
	SHARED(T, ys, 2 * SLAB * SIDE, 1);
	SHARED(double, red, SIDE * 17, 2);
	int to = FROM == COLUMNS ? THREAD & 15 : THREAD >> 4, from = FROM == COLUMNS ? THREAD >> 4 : THREAD & 15;
	long i = BLOCK_X;
	double sum[C][R];
#pragma unroll
	for (int c = 0; c < C; c++)
#pragma unroll
		for (int a = 0; a < R; a++) sum[c][a] = 0;
	for (long j = panels * BLOCK_Y / GRID_Y; j < panels * (BLOCK_Y + 1) / GRID_Y; j++) {
		T s[R][R];
		if (FROM == FUSED) {
			distances<T>(s, f, xs, ys, x, i, y, j, depth);
#pragma unroll
			for (int a = 0; a < R; a++)
#pragma unroll
				for (int b = 0; b < R; b++) s[a][b] = exp2_of(-s[a][b]) * (T)f->factor;
		} else {
			stored<T>(s, FROM == ROWS ? k + (i * stride + j) * SIDE : k + (j * stride + i) * SIDE, stride);
		}
#pragma unroll
		for (int c = 0; c < C; c++) {
			T u[R];
#pragma unroll
			for (int b = 0; b < R; b++) u[b] = q + c < width ? (T)v[(j * SIDE + place<T>(from, b)) * width + q + c] : (T)0;
#pragma unroll
			for (int a = 0; a < R; a++) {
				T t = 0;
#pragma unroll
				for (int b = 0; b < R; b++) t = multiply_add(FROM == COLUMNS ? s[b][a] : s[a][b], u[b], t);
				sum[c][a] += t;
			}
		}
	}
#pragma unroll
	for (int c = 0; c < C; c++) {
		barrier();
#pragma unroll
		for (int a = 0; a < R; a++) red[place<T>(to, a) * 17 + from] = sum[c][a];
		barrier();
		if (THREAD < SIDE) {
			double t = 0;
			for (int l = 0; l < 16; l++) t += red[THREAD * 17 + l];
			part[(BLOCK_Y * C + c) * rows + i * SIDE + THREAD] = t;
		}
	}
}

// fill writes K of one panel of X and one of Y, where row i0 of K is the first in memory.
template <class T> DEVICE void fill(const spec *f, side<T> x, side<T> y, long depth, long i0, T *k, long stride) {
	enum { R = shape<T>::R, G = shape<T>::G, SIDE = shape<T>::SIDE };
	typedef typename wide<T>::type W;
	SHARED(T, xs, 2 * SLAB * SIDE, 0);
	SHARED(T, ys, 2 * SLAB * SIDE, 1);
	int tx = THREAD & 15, ty = THREAD >> 4;
	long i = i0 + BLOCK_X, j = BLOCK_Y;
	T s[R][R];
	if (f->statistic == SQUARED) {
		distances<T>(s, f, xs, ys, x, i, y, j, depth);
	} else {
		const T *xp = x.data + i * depth * SIDE, *yp = y.data + j * depth * SIDE;
		zero<T>(s);
		if (f->statistic == DOT)
			statistic<T, DOT>(s, xs, ys, xp, yp, depth);
		else
			statistic<T, MANHATTAN>(s, xs, ys, xp, yp, depth);
	}
	T *to = k + BLOCK_X * SIDE * stride + j * SIDE;
#pragma unroll
	for (int a = 0; a < R; a++)
#pragma unroll
		for (int g = 0; g < R; g += G) {
			W w;
#pragma unroll
			for (int l = 0; l < G; l++) w.v[l] = s[a][g + l];
			*(W *)(to + place<T>(ty, a) * stride + place<T>(tx, g)) = w;
		}
	// Each thread reads its own elements again, 16 bytes at a time. Unrolled, the functions would
	// be half a megabyte of code.
#pragma unroll 1
	for (int e = 0; e < R * R; e += G) {
		int row = place<T>(ty, e / R), column = place<T>(tx, e % R);
		W w = *(const W *)(to + row * stride + column);
#pragma unroll
		for (int l = 0; l < G; l++) {
			T q = w.v[l];
			if (f->function == COSINE) q += x.norms[i * SIDE + row] + y.norms[j * SIDE + column + l];
			w.v[l] = at(f, q) * (T)f->factor;
		}
		*(W *)(to + row * stride + column) = w;
	}
}

#define PRODUCT(NAME, T, C, FROM) \
	KERNEL BOUNDS(C == 1 ? 2 : 1) void NAME##_##T##_##C(const spec *f, const T *x, const T *xn, const T *xm, const T *y, const T *yn, const T *ym, long depth, const T *k, long stride, \
		long rows, long panels, const double *v, long width, long q, double *part) { \
		side<T> sx = {x, xn, xm}, sy = {y, yn, ym}; \
		product<T, C, FROM>(f, sx, sy, depth, k, stride, rows, panels, v, width, q, part); \
	}
#define PRODUCTS(T, C) PRODUCT(fused, T, C, FUSED) PRODUCT(rows, T, C, ROWS) PRODUCT(columns, T, C, COLUMNS)
PRODUCTS(float, 1)
PRODUCTS(float, 4)
PRODUCTS(double, 1)
PRODUCTS(double, 4)

#define FILL(T) \
	KERNEL BOUNDS(2) void fill_##T(const spec *f, const T *x, const T *xn, const T *xm, const T *y, const T *yn, const T *ym, long depth, long i0, T *k, long stride) { \
		side<T> sx = {x, xn, xm}, sy = {y, yn, ym}; \
		fill<T>(f, sx, sy, depth, i0, k, stride); \
	}
FILL(float)
FILL(double)

// collect adds the parts of a product in their order. It sets columns q to q+c of dst, or
// adds to them.
KERNEL void collect(double *dst, const double *part, long parts, long c, long rows, long n, long width, long q, long add) {
	long row = BLOCK_X * 256 + THREAD;
	if (row >= n) return;
	for (long l = 0; l < c && q + l < width; l++) {
		double t = add ? dst[row * width + q + l] : 0;
		for (long p = 0; p < parts; p++) t += part[(p * c + l) * rows + row];
		dst[row * width + q + l] = t;
	}
}
