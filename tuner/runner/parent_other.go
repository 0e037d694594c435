//go:build unix && !linux

package runner

import "syscall"

// endWithParent does nothing, as this system has no such signal.
func endWithParent(*syscall.SysProcAttr) {}
