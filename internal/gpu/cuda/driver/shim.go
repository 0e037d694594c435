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
	"errors"
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
	case result == notOpened:
		return fmt.Errorf("%w: %s", ErrNoLibrary, C.GoString(reason))
	case result == noDevice:
		return fmt.Errorf("%w: the driver %s finds none", ErrNoDevice, path)
	case result < 0:
		return fmt.Errorf("the CUDA driver %s cannot be used: %s", path, C.GoString(reason))
	}
	return fmt.Errorf("the CUDA driver %s does not start: cuInit returned %d", path, int(result))
}

// The errors of a machine without a driver library and of one without a device.
var (
	ErrNoLibrary = errors.New("no CUDA driver")
	ErrNoDevice  = errors.New("no CUDA device")
)

const (
	notOpened = -1
	noDevice  = 100 // CUDA_ERROR_NO_DEVICE
)

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
