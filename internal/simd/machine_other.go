//go:build !amd64 || noasm

package simd

// machine returns the kernels in assembly: there are none here.
func machine[T Float]() []*Kernels[T] { return nil }
