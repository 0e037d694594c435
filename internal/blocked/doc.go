// Package blocked is dense linear algebra on row-major matrices of float32 or float64. It
// has products, triangular solutions, and Cholesky factors, with and without pivoting, on the
// micro-kernels of package simd.
//
// Operands are copied into the panels of package simd. Each block stays in one level of the
// caches, and every product of blocks consists of full tiles:
//
//	Gemm, Syrk   C_ij += A_il·B_lj, 120×256 of A in L2, 256×1024 of B beyond
//	SolveLower   halves until 320 are left; then panels of 8 right-hand sides,
//	             6 rows at a time, solved in registers
//	Inverse      SolveLower without what is above the diagonal
//	SyrkLower    Syrk of a triangle, each 120 rows from their first column
//	Triangle     SolveLower again and again, the triangles on the diagonal packed
//	Cholesky     halves until 32 are left, which one kernel factors
//	Pivoted      32 columns at a time, then one Syrk for the rest
//	Symm         that of gonum
//	Gemv         nothing is packed: 6 rows at a time, as they lie
//
// # Invariants
//
//   - The number of workers, 1 or more, changes no bit of any result.
//   - Only documented elements are written. Elements between rows (Stride > Cols)
//     and the other triangle stay unchanged.
//   - In the steady state, with one worker, nothing is allocated, except n numbers
//     by PivotedCholesky. Packing memory, up to about 3 MiB a goroutine, is kept in a
//     sync.Pool.
//   - Shapes that do not match panic. Matrices without a Cholesky factor are reported.
//   - NaN and Inf propagate as in arithmetic. With beta = 0, c is not read.
//
// The algorithms are those of Goto and van de Geijn, Anatomy of high-performance matrix
// multiplication, 2008, the solution in panels of Van Zee and van de Geijn, BLIS, 2015, and the
// pivoting of Lucas, LAPACK-style codes for level 2 and 3 pivoted Cholesky factorizations, 2004.
package blocked
