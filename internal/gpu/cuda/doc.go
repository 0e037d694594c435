// Package cuda is the backend of package gpu for GPUs of NVIDIA, through gorgonia.org/cu. It
// is in programs with the build tag cuda, on Linux with cgo. It needs nothing of CUDA to be
// built, and to run only the driver, which is opened when a device is first asked for.
//
// The kernels are kernels/*.cu. clang makes PTX of them, which is checked in and which the
// driver compiles for its device. A block of 256 threads computes a tile of K in registers,
// 128×128 in float32 and 64×64 in float64:
//
//	         panels of Y (columns of K)
//	        ┌────┬────┬────
//	panel   │tile│ →  │          tile → k → s += tile·v, float64 beyond one tile
//	of X    └────┴────┴────
//	         chunk 0   │ chunk 1   chunks are added in their order by a second kernel
//
// Kᵀu is the same with X and Y exchanged. If the memory of the device holds K, the first product
// writes it there and later ones read it. If not, the Gaussian kernel is computed again by each
// product in registers, and others a few panels at a time.
//
// Each device has a goroutine with a locked thread, on which its primary context is current.
package cuda
