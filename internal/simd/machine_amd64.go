//go:build !noasm

package simd

import "golang.org/x/sys/cpu"

// machine returns the kernels in assembly that this processor can run, and whose registers
// the operating system saves.
func machine[T Float]() (all []*Kernels[T]) {
	x := &cpu.X86
	if !x.HasAVX2 || !x.HasFMA {
		return nil
	}
	if x.HasAVX512F && x.HasAVX512DQ && x.HasAVX512BW && x.HasAVX512VL {
		all = append(all, of[T](avx512F32, avx512F64))
	}
	return append(all, of[T](avx2F32, avx2F64))
}

// of returns the kernels of one path for the type T.
func of[T Float](f32 func() *Kernels[float32], f64 func() *Kernels[float64]) *Kernels[T] {
	if k, ok := any(f32()).(*Kernels[T]); ok {
		return k
	}
	return any(f64()).(*Kernels[T])
}
