// The dialect of the kernels, which needs no headers of CUDA. The same source becomes PTX
// through clang's NVPTX back end, and, with DEV_HOST, C++ for the driver of the tests.
#pragma once

struct alignas(16) quad { float v[4]; };
struct alignas(16) pair { double v[2]; };
template <class T> struct wide; // 16 bytes
template <> struct wide<float> { typedef quad type; };
template <> struct wide<double> { typedef pair type; };

#ifdef DEV_HOST
#include <math.h>
#include <string.h>
struct index3 { unsigned x, y, z; };
extern thread_local index3 dev_thread, dev_block, dev_grid;
void dev_barrier();
void *dev_shared(int slot);
#define KERNEL extern "C"
#define BOUNDS(blocks)
#define DEVICE static inline
#define DEVICE_MEMBER inline
#define SHARED(type, name, n, slot) type *name = (type *)dev_shared(slot)
#define THREAD ((long)dev_thread.x)
#define BLOCK_X ((long)dev_block.x)
#define BLOCK_Y ((long)dev_block.y)
#define GRID_Y ((long)dev_grid.y)
DEVICE void barrier() { dev_barrier(); }
DEVICE float exp2_fast(float x) { return exp2f(x); }
DEVICE float root(float x) { return sqrtf(x); }
DEVICE double root(double x) { return sqrt(x); }
DEVICE float nearest(float x) { return rintf(x); }
DEVICE double nearest(double x) { return rint(x); }
DEVICE double from_bits(long b) { double x; memcpy(&x, &b, 8); return x; }
DEVICE long to_bits(double x) { long b; memcpy(&b, &x, 8); return b; }
#else
#define KERNEL extern "C" __attribute__((global))
#define BOUNDS(blocks) __attribute__((launch_bounds(256, blocks))) // of 256 threads on a multiprocessor
#define DEVICE_MEMBER __attribute__((device)) __attribute__((always_inline)) inline
#define DEVICE static DEVICE_MEMBER
#define SHARED(type, name, n, slot) static __attribute__((shared, aligned(16))) type name[n]
#define THREAD ((long)__nvvm_read_ptx_sreg_tid_x())
#define BLOCK_X ((long)__nvvm_read_ptx_sreg_ctaid_x())
#define BLOCK_Y ((long)__nvvm_read_ptx_sreg_ctaid_y())
#define GRID_Y ((long)__nvvm_read_ptx_sreg_nctaid_y())
DEVICE void barrier() { __nvvm_bar_sync(0); }
DEVICE float exp2_fast(float x) { return __nvvm_ex2_approx_ftz_f(x); }
DEVICE float root(float x) { return __nvvm_sqrt_rn_f(x); }
DEVICE double root(double x) { return __nvvm_sqrt_rn_d(x); }
DEVICE float nearest(float x) { return __builtin_rintf(x); }
DEVICE double nearest(double x) { return __builtin_rint(x); }
DEVICE double from_bits(long b) { return __nvvm_bitcast_ll2d(b); }
DEVICE long to_bits(double x) { return __nvvm_bitcast_d2ll(x); }
#endif

// multiply_add is ab + c, rounded once.
DEVICE float multiply_add(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
DEVICE double multiply_add(double a, double b, double c) { return __builtin_fma(a, b, c); }

// publish writes an element for which other blocks wait, and wait_for reads it when its bits are
// no longer all 1.
DEVICE void publish(double *p, double v) { *(volatile double *)p = v == v ? v : from_bits(0x7ff8l << 48); }
DEVICE double wait_for(const double *p) {
	for (;;) {
		double v = *(const volatile double *)p;
		if (to_bits(v) != -1) return v;
	}
}

// exp2_of is 2^x for x <= 0, and 0 below the normal numbers.
DEVICE float exp2_of(float x) { return exp2_fast(x); }
DEVICE double exp2_of(double x) {
	if (!(x > -1022.0)) return x == x ? 0.0 : x;
	double n = nearest(x), t = (x - n) * 0.693147180559945309417;
	double p = 1.0 / 6227020800; // the series of e^t, |t| <= 0.35
	const double c[] = {1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
		1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1.0, 1.0};
#pragma unroll
	for (int i = 0; i < 13; i++) p = p * t + c[i];
	return p * from_bits(((long)n + 1023) << 52);
}

// cos2pi_of is cos(2 pi t).
template <class T> DEVICE T cos2pi_of(T t) {
	T r = t - nearest(t);
	r = r < 0 ? -r : r; // in [0, 1/2]
	bool low = r > (T)0.25;
	T a = low ? (T)0.5 - r : r; // in [0, 1/4], the cosine changes its sign
	bool far = a > (T)0.125;
	T x = (far ? (T)0.25 - a : a) * (T)6.28318530717958647693, y = x * x;
	T c = (T)(1.0 / 20922789888000), s = (T)(1.0 / 355687428096000);
	const double cs[] = {-1.0 / 87178291200, 1.0 / 479001600, -1.0 / 3628800, 1.0 / 40320, -1.0 / 720, 1.0 / 24, -0.5, 1.0};
	const double ss[] = {-1.0 / 1307674368000, 1.0 / 6227020800, -1.0 / 39916800, 1.0 / 362880, -1.0 / 5040, 1.0 / 120, -1.0 / 6, 1.0};
#pragma unroll
	for (int i = 0; i < 8; i++) {
		c = c * y + (T)cs[i];
		s = s * y + (T)ss[i];
	}
	T v = far ? s * x : c;
	return low ? -v : v;
}
