//go:build !amd64 || noasm

package simd

// machine returns the kernels in assembly. This machine has none.
func machine[T Float]() []*Kernels[T] { return nil }
