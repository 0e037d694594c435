// Package gpu lets products with kernel matrices run on a GPU. It has no cgo, and a program
// without a backend runs everything on the CPU. Package cuda is the backend, which programs
// with the build tag cuda have.
//
// [Use] chooses the devices of the process. [NewMatrix] holds K = K(X, Y) on them, by rows of
// X where there are several:
//
//	X ── rows, in multiples of 128 ──► device 0: K₀   Kv   = (K₀v, K₁v)
//	                                   device 1: K₁   Kᵀu  = K₀ᵀu₀ + K₁ᵀu₁
//
// # Invariants
//
//   - The same product on the same devices gives the same bits, whether K is stored or not.
//     No sum depends on the order in which blocks of threads run. Kv has the same bits on
//     any number of devices of one model. Kᵀu is the sum of one part for each device, so
//     that its bits depend on their number.
//   - The memory that a matrix needs is known before it is made. If a device has less,
//     there is a [*MemoryError] and nothing is left on the device.
//   - After an error of a device, the caller computes on the CPU. [Warn] reports one such
//     error for each process.
package gpu
