//go:build linux

package main

import (
	"log"
	"syscall"
	"unsafe"
)

// The clocks of clock_gettime.
const (
	wall      = 1 // CLOCK_MONOTONIC
	processor = 2 // CLOCK_PROCESS_CPUTIME_ID
	thread    = 3 // CLOCK_THREAD_CPUTIME_ID
)

// clock returns the seconds of a clock.
func clock(which uintptr) float64 {
	var ts syscall.Timespec
	if _, _, e := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, which, uintptr(unsafe.Pointer(&ts)), 0); e != 0 {
		log.Fatal(e)
	}
	return float64(ts.Sec) + 1e-9*float64(ts.Nsec)
}
