// Package simd has the innermost loops of all numeric work. They are tiles of pairs of
// vectors, element-wise functions, and the micro-kernels of matrix algebra, for float32 and
// float64, in assembly for AVX-512 and for AVX2 with FMA, and in portable Go.
//
// # Panels
//
// Operands are packed so that every load is of consecutive memory. With d coordinates, nr =
// 16 columns for float32 or 8 for float64:
//
//	rows, panels of 6               columns, panels of nr
//	a: ┌ x0[0] x1[0] … x5[0] ┐      b: ┌ y0[0] y1[0] … y(nr−1)[0] ┐
//	   │ x0[1] x1[1] … x5[1] │         │ y0[1] y1[1] … y(nr−1)[1] │
//	   └ …              d−1  ┘         └ …                    d−1 ┘
//
//	the tiles of one row panel, one after the other
//	out: ┌ 6×nr, row by row ┐┌ 6×nr ┐┌ 6×nr ┐ …
//
// A tile is 12 registers of AVX2, which keep the sums over coordinates. With AVX-512 it is 6
// registers, and four tiles of one row panel are computed side by side. Then one function
// is applied to the panel of tiles, and the panel is multiplied from the right
// ([Kernels].Multiply) or from the left (MultiplyT). For some kernels and random features,
// function and product from the right come before a tile leaves the registers (Blocks). Package
// panel chooses the number of tiles, so that they stay in the caches.
//
// [Squared] takes direct differences, so that equal vectors have distance 0 exactly. The other
// way, |x|² + |y|² − 2x·y through [Dot] and the starting values ha and hb, loses digits by
// cancellation.
//
// # Functions
//
// The functions of [Func] are right at 0, at ±Inf, and for subnormal arguments and results,
// and propagate NaN. Their constants state their accuracy in units in the last place (ulp,
// of the smallest normal number for smaller results). Functions that kernels are made of
// are cut to 0 where the result would leave the normal numbers, and never exceed 1 by
// rounding of a distance below 0.
//
// # Paths
//
// The implementation is chosen once, when the program starts. The tag noasm leaves out all
// assembly. BKB_SIMD=avx512, avx2 or portable in the environment chooses a path. A name of
// no path of this machine is an error of [Check], and programs that do not call it continue
// with the best path. On one path every result depends only on the operands. [Paths] lists
// them, and every test of this package runs on each. Where the machine lacks instructions, the
// tests interpret the assembly of that path (interpret_test.go), which also finds reads and
// writes outside of the operands.
//
// Portable Go agrees to a few ulp of its largest terms. The paths in assembly have the same
// bits, with two exceptions. The sums of Blocks over columns have as many lanes as a register,
// and Decay2 uses a table with AVX-512. Callers choose blocks by [Kernels].L2, so longer sums
// over rows may also differ. Matrix algebra and predictions of Gaussian processes, and thus
// suggestions, do not depend on the width of the registers.
//
// The scheduler cannot interrupt assembly, so callers limit the length of one call to well
// below 0.1 ms.
//
// # Adding a function
//
// Write it in tools/simdgen/functions.go with the operations of program.go beside it. Add it to the list at
// the end of that file, to the constants of Func and to scalars in portable.go. Add its
// values at the ends of the range to TestSpecial and its accuracy to TestCovariances or
// TestUlp. Then
//
//	go generate ./internal/simd
//
// writes the assembly of both paths and the tables of their kernels.
package simd
