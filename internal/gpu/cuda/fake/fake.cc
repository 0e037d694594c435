// A stand-in for libcuda.so.1 in tests. Memory of a device is memory of the process, with guards
// around each allocation. The kernels are those of ../kernels, compiled for the host, with a
// fibre for each thread of a block. The environment sets devices and faults:
//
//	FAKE_CUDA_DEVICES=2         number of devices (1)
//	FAKE_CUDA_MEMORY=1000000    bytes of each device (1 GiB)
//	FAKE_CUDA_CAPABILITY=61     compute capability (90)
//	FAKE_CUDA_RATIO=64          float32 over float64 speed (2)
//	FAKE_CUDA_VERSION=10020     version of the driver (12040)
//	FAKE_CUDA_INIT=100          result of cuInit (0)
//	FAKE_CUDA_FAIL_ALLOC=3      the allocation, counted from now, that finds no memory
//	FAKE_CUDA_LOSE=5            the launch, counted from now, after which the device is lost
//	FAKE_CUDA_LOSE_DOWN=5       the copy to the host, counted from now, in which the device is lost
//	FAKE_CUDA_LOSE_UP=5         the copy to the device, counted from now, in which it is lost
//	FAKE_CUDA_BYTES=1000000     bytes that can be copied from now, in both directions, before it is lost
#define DEV_HOST 1
#include "../kernels/product.cu"
#include "../kernels/algebra.cu"

#include <stdint.h>
#include <stdlib.h>
#include <ucontext.h>

#include <mutex>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

thread_local index3 dev_thread, dev_block, dev_grid;

namespace {

enum { OK = 0, INVALID = 1, NO_MEMORY = 2, BAD_DEVICE = 101, BAD_IMAGE = 200, BAD_PTX = 218, NOT_FOUND = 500, ILLEGAL_ADDRESS = 700, LAUNCH_FAILED = 719 };

long setting(const char *name, long usual) {
	const char *text = getenv(name);
	return text && *text ? atol(text) : usual;
}

// count takes one from a setting, and tells whether it was the last.
bool count(const char *name) {
	long left = setting(name, 0);
	if (left <= 0) return false;
	char text[32];
	snprintf(text, sizeof text, "%ld", left - 1);
	setenv(name, text, 1);
	return left == 1;
}

// spend takes bytes from a setting, and tells whether there were too few.
bool spend(const char *name, size_t bytes) {
	long left = setting(name, -1) - (long)bytes;
	if (setting(name, -1) < 0) return false;
	char text[32];
	snprintf(text, sizeof text, "%ld", left > 0 ? left : 0);
	setenv(name, text, 1);
	return left < 0;
}

std::mutex lock;
struct block { size_t bytes; int device; };
std::unordered_map<uintptr_t, block> blocks;
size_t used[256];
bool lost[256];
thread_local int current;

const size_t guard = 256;
const unsigned char mark = 0xA5;

bool whole(uintptr_t p, size_t bytes) {
	for (size_t i = 0; i < guard; i++)
		if (((unsigned char *)p)[-1 - (long)i] != mark || ((unsigned char *)p)[bytes + i] != mark) return false;
	return true;
}

// inside tells whether bytes from p on are in one block of the current device.
bool inside(unsigned long long p, size_t bytes) {
	std::lock_guard<std::mutex> hold(lock);
	for (auto &b : blocks)
		if (p >= b.first && p + bytes <= b.first + b.second.bytes) return b.second.device == current;
	return false;
}

struct fibre { ucontext_t context; bool done; };
thread_local ucontext_t scheduler;
thread_local fibre *running;
typedef void (*wrapper)(void **);
thread_local wrapper kernel;
thread_local void **arguments;
thread_local char *shared[4];

template <class... A, size_t... I> void spread(void (*f)(A...), void **p, std::index_sequence<I...>) { f(*(A *)p[I]...); }
template <class... A> void call(void (*f)(A...), void **p) {
	static_assert(((sizeof(A) == 8) && ...), "package cu copies 8 bytes for each parameter");
	spread(f, p, std::index_sequence_for<A...>{});
}

#define ENTRY(name) {#name, [](void **p) { call(name, p); }}
struct entry { const char *name; wrapper run; } entries[] = {
#define PRODUCT_ENTRIES(name) ENTRY(name##_float_1), ENTRY(name##_float_4), ENTRY(name##_double_1), ENTRY(name##_double_4)
	PRODUCT_ENTRIES(fused), PRODUCT_ENTRIES(rows), PRODUCT_ENTRIES(columns),
	ENTRY(fill_float), ENTRY(fill_double), ENTRY(collect),
	ENTRY(update), ENTRY(diagonal), ENTRY(factor_block), ENTRY(solve_block), ENTRY(pivot), ENTRY(column), ENTRY(invert), ENTRY(solve),
};

void body() {
	kernel(arguments);
	running->done = true;
	swapcontext(&running->context, &scheduler);
}

void run_block(unsigned threads) {
	const size_t stack = 64 << 10;
	static thread_local std::vector<fibre> fibres;
	static thread_local std::vector<char> stacks;
	if (fibres.size() < threads) {
		fibres = std::vector<fibre>(threads);
		stacks = std::vector<char>(stack * threads);
	}
	for (unsigned i = 0; i < threads; i++) {
		getcontext(&fibres[i].context);
		fibres[i].done = false;
		fibres[i].context.uc_stack.ss_sp = &stacks[stack * i];
		fibres[i].context.uc_stack.ss_size = stack;
		fibres[i].context.uc_link = nullptr;
		makecontext(&fibres[i].context, body, 0);
	}
	for (bool any = true; any;) {
		any = false;
		for (unsigned i = 0; i < threads; i++) {
			if (fibres[i].done) continue;
			dev_thread = {i, 0, 0};
			running = &fibres[i];
			swapcontext(&scheduler, &fibres[i].context);
			any = any || !fibres[i].done;
		}
	}
}

} // namespace

void dev_barrier() {
	fibre *me = running;
	swapcontext(&me->context, &scheduler);
}

void *dev_shared(int slot) {
	if (!shared[slot]) shared[slot] = (char *)aligned_alloc(64, 48 << 10);
	return shared[slot];
}

#define LIVE if (lost[current]) return LAUNCH_FAILED

extern "C" {

int cuInit(unsigned) { return setting("FAKE_CUDA_INIT", 0); }
int cuDriverGetVersion(int *v) { *v = setting("FAKE_CUDA_VERSION", 12040); return OK; }
int cuDeviceGetCount(int *n) { *n = setting("FAKE_CUDA_DEVICES", 1); return OK; }
int cuDeviceGet(int *d, int ordinal) { *d = ordinal; return ordinal < setting("FAKE_CUDA_DEVICES", 1) ? OK : BAD_DEVICE; }
int cuDeviceGetName(char *s, int n, int d) { snprintf(s, n, "stand-in %d", d); return OK; }
int cuDeviceTotalMem_v2(size_t *bytes, int) { *bytes = setting("FAKE_CUDA_MEMORY", 1 << 30); return OK; }

int cuDeviceGetAttribute(int *v, int attribute, int) {
	switch (attribute) {
	case 75: *v = setting("FAKE_CUDA_CAPABILITY", 90) / 10; return OK;
	case 76: *v = setting("FAKE_CUDA_CAPABILITY", 90) % 10; return OK;
	case 87: *v = setting("FAKE_CUDA_RATIO", 2); return OK;
	}
	return INVALID;
}

int cuDevicePrimaryCtxRetain(void **c, int d) { *c = (void *)(intptr_t)(d + 1); return OK; }
int cuDevicePrimaryCtxRelease_v2(int) { return OK; }
int cuCtxSetCurrent(void *c) { current = (int)(intptr_t)c - 1; return OK; }
int cuCtxSynchronize() { LIVE; return OK; }

int cuMemGetInfo_v2(size_t *free, size_t *total) {
	LIVE;
	std::lock_guard<std::mutex> hold(lock);
	*total = setting("FAKE_CUDA_MEMORY", 1 << 30);
	*free = *total > used[current] ? *total - used[current] : 0;
	return OK;
}

int cuMemAlloc_v2(unsigned long long *p, size_t bytes) {
	LIVE;
	if (bytes == 0) return INVALID;
	std::lock_guard<std::mutex> hold(lock);
	if (count("FAKE_CUDA_FAIL_ALLOC") || used[current] + bytes > (size_t)setting("FAKE_CUDA_MEMORY", 1 << 30)) return NO_MEMORY;
	char *raw = (char *)aligned_alloc(256, (bytes + 2 * guard + 255) / 256 * 256);
	if (!raw) return NO_MEMORY;
	memset(raw, mark, bytes + 2 * guard);
	*p = (unsigned long long)(raw + guard);
	memset(raw + guard, 0xFF, bytes); // NaN
	blocks[*p] = {bytes, current};
	used[current] += bytes;
	return OK;
}

int cuMemFree_v2(unsigned long long p) {
	std::lock_guard<std::mutex> hold(lock);
	auto found = blocks.find(p);
	if (found == blocks.end()) return INVALID;
	bool fine = whole(p, found->second.bytes);
	used[found->second.device] -= found->second.bytes;
	blocks.erase(found);
	free((char *)p - guard);
	return fine ? OK : ILLEGAL_ADDRESS;
}

int cuMemcpyHtoD_v2(unsigned long long d, const void *s, size_t n) {
	if (count("FAKE_CUDA_LOSE_UP") || spend("FAKE_CUDA_BYTES", n)) lost[current] = true;
	LIVE;
	if (!inside(d, n)) return INVALID;
	memcpy((void *)d, s, n);
	return OK;
}

int cuMemcpyDtoH_v2(void *d, unsigned long long s, size_t n) {
	if (count("FAKE_CUDA_LOSE_DOWN") || spend("FAKE_CUDA_BYTES", n)) lost[current] = true;
	LIVE;
	if (!inside(s, n)) return INVALID;
	memcpy(d, (void *)s, n);
	return OK;
}

int cuMemsetD32_v2(unsigned long long d, unsigned v, size_t n) {
	LIVE;
	if (!inside(d, 4 * n)) return INVALID;
	for (size_t i = 0; i < n; i++) ((unsigned *)d)[i] = v;
	return OK;
}

int cuModuleLoadData(void **m, const void *image) {
	LIVE;
	if (!strstr((const char *)image, ".version")) return BAD_PTX;
	*m = (void *)1;
	return OK;
}

int cuModuleUnload(void *) { return OK; }

#ifndef FAKE_WITHOUT_FUNCTIONS
int cuModuleGetFunction(void **f, void *, const char *name) {
	for (auto &e : entries)
		if (!strcmp(e.name, name)) { *f = (void *)&e; return OK; }
	return NOT_FOUND;
}
#endif

int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned, void *, void **p, void **) {
	LIVE;
	if (count("FAKE_CUDA_LOSE")) lost[current] = true;
	LIVE;
	if (by != 1 || bz != 1 || gz != 1 || !gx || !gy || gy > 65535 || !bx || bx > 1024) return INVALID;
	kernel = ((entry *)f)->run;
	arguments = p;
	dev_grid = {gx, gy, 1};
	for (unsigned y = 0; y < gy; y++)
		for (unsigned x = 0; x < gx; x++) {
			dev_block = {x, y, 0};
			memset(dev_shared(0), 0xFF, 48 << 10); // shared memory has no defined content
			memset(dev_shared(1), 0xFF, 48 << 10);
			memset(dev_shared(2), 0xFF, 48 << 10);
			run_block(bx);
		}
	return OK;
}

int cuEventCreate(void **e, unsigned) { *e = (void *)1; return OK; }
int cuEventDestroy_v2(void *) { return OK; }
int cuEventRecord(void *, void *) { return OK; }
int cuEventSynchronize(void *) { return OK; }
int cuEventElapsedTime(float *ms, void *, void *) { *ms = 1; return OK; }

} // extern "C"
