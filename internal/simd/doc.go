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
// A tile is 12 registers of AVX2. With AVX-512 it is 6, and four tiles of one row panel are
// computed side by side. Then one function is applied to the panel of tiles, and the panel is
// multiplied from the right ([Kernels].Multiply) or from the left (MultiplyT). For some kernels
// and random features, both come before a tile leaves the registers (Blocks).
//
// The functions of [Func] are right at 0, at ±Inf, and for subnormal arguments and results,
// and propagate NaN. Functions that kernels are made of are cut to 0 where the result would
// leave the normal numbers, and never exceed 1 by rounding of a distance below 0.
//
// # Paths
//
// The implementation is chosen once, when the program starts. The tag noasm leaves out all
// assembly. BKB_SIMD=avx512, avx2 or portable in the environment chooses a path, see [Check].
// Every test of this package runs on each of [Paths]. Where the machine lacks instructions, the
// tests interpret the assembly (interpret_test.go), which also finds reads and writes outside of
// the operands.
//
// On one path every result depends only on the operands. Portable Go agrees to a few ulp of its
// largest terms. The paths in assembly have the same bits, except that the sums of Blocks over
// columns have as many lanes as a register, that Decay2 uses a table with AVX-512, and that
// callers choose blocks by [Kernels].L2. Matrix algebra and predictions of Gaussian processes,
// and thus suggestions, do not depend on the width of the registers.
//
// The scheduler cannot interrupt assembly, so callers limit the length of one call to well
// below 0.1 ms.
//
// To add a function, write it in tools/simdgen/functions.go, and add it to the list at the end of
// that file, to the constants of Func, to scalars in portable.go, and to TestSpecial and
// TestCovariances or TestUlp. Then run go generate ./internal/simd.
package simd
