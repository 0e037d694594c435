//go:build cuda && cgo && linux

/* The functions of the CUDA driver, which forward to a library that is opened later. */
#include <cuda.h>
#include <dlfcn.h>
#include <string.h>
#include "shim.h"

#define HIDDEN __attribute__((visibility("hidden")))

enum {
#define FORWARD(name, params, args) I_##name,
#include "forward.h"
#undef FORWARD
	COUNT
};

static const char *const names[] = {
#define FORWARD(name, params, args) #name,
#include "forward.h"
#undef FORWARD
};

static void *library;
static void *table[COUNT];

/* Package cu calls cuInit before main and ends the process if it fails. shim_open calls
   the driver's. */
HIDDEN CUresult cuInit(unsigned int flags) { (void)flags; return CUDA_SUCCESS; }

#define FORWARD(name, params, args) \
	HIDDEN CUresult name params { \
		__typeof__(&name) real = (__typeof__(&name))table[I_##name]; \
		if (!real) return library ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_NOT_INITIALIZED; \
		return real args; \
	}
#include "forward.h"
#undef FORWARD

const char *shim_open(const char *path, int *result) {
	*result = -1;
	void *opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!opened) return dlerror();
	*result = -2;
	CUresult (*init)(unsigned int) = (CUresult (*)(unsigned int))dlsym(opened, "cuInit");
	if (!init) return "the library has no function cuInit";
	*result = (int)init(0);
	if (*result != 0) return "cuInit failed";
	for (int i = 0; i < COUNT; i++) table[i] = dlsym(opened, names[i]);
	library = opened;
	return NULL;
}

int shim_has(const char *symbol) {
	for (int i = 0; i < COUNT; i++)
		if (!strcmp(names[i], symbol)) return table[i] != NULL;
	return 0;
}
