//go:build cuda && cgo && linux

package driver

/*
#cgo CFLAGS: -I${SRCDIR}/include
#cgo LDFLAGS: -L${SRCDIR}/lib -ldl
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"fmt"
	"unsafe"
)

// Open loads the driver library and initialises it. Once it has succeeded, functions of
// gorgonia.org/cu work. It must not run twice at the same time.
func Open(path string) error {
	p := C.CString(path)
	defer C.free(unsafe.Pointer(p))
	var result C.int
	reason := C.shim_open(p, &result)
	switch {
	case reason == nil:
		return nil
	case result == -1:
		return fmt.Errorf("no CUDA driver: %s", C.GoString(reason))
	case result == noDevice:
		return fmt.Errorf("no CUDA device: the driver %s finds none", path)
	}
	return fmt.Errorf("the CUDA driver %s does not start: cuInit returned %d", path, int(result))
}

// noDevice is CUDA_ERROR_NO_DEVICE.
const noDevice = 100

// Lacks returns the symbols that the driver does not have.
func Lacks(symbols ...string) (missing []string) {
	for _, s := range symbols {
		name := C.CString(s)
		if C.shim_has(name) == 0 {
			missing = append(missing, s)
		}
		C.free(unsafe.Pointer(name))
	}
	return missing
}
