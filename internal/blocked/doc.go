// Package blocked is dense linear algebra on row-major matrices of float32 or
// float64, built on the micro-kernels of package simd: products, triangular
// solutions, Cholesky factors, plain and with pivoting.
//
// # How
//
// Operands are copied into the panels of package simd, blocks of which stay in
// one level of the caches each, and every product of blocks is made of full
// tiles:
//
//	Gemm, Syrk   C_ij += A_il·B_lj, 120×256 of A in L2, 256×8 of B in L1
//	SolveLower   halves until 320 are left; then panels of 8 right-hand sides,
//	             6 rows at a time, solved in registers
//	Triangle     SolveLower again and again, the triangles on the diagonal packed
//	Cholesky     halves until 32 are left, which one kernel factors
//	Pivoted      32 columns at a time, then one Syrk for the rest
//	Symm         blocks of 192 on the diagonal, Gemm for the others
//	Gemv         nothing is packed: 6 rows at a time, as they lie
//
// so that nearly all operations are those of the micro-kernel: 2n³ for Gemm, n³
// for Syrk, n²m for m right-hand sides, n³/3 for Cholesky.
//
// # Invariants
//
//   - The number of workers, 1 or more, changes no bit of any result. Work is
//     shared so that each element is computed by one goroutine, in the order of
//     summation that the sizes of the matrices alone define.
//   - What is not said to be written is not: elements between rows (Stride >
//     Cols) and the other triangle.
//   - In the steady state, with one worker, nothing is allocated, but for n numbers
//     by PivotedCholesky; more workers cost a goroutine each. Packing memory, up to
//     about 3 MiB a goroutine, is kept in a sync.Pool.
//   - Shapes that do not match are a mistake of the programmer and panic.
//     Matrices that have no Cholesky factor are reported.
//   - NaN and Inf propagate as arithmetic has it; beta = 0 does not read c.
//
// Backward errors are those of the textbook: |LLᵀ − A| ≤ c·n·ε·|A| and so on,
// with smaller c than plain loops as sums are in blocks and fused.
//
// The algorithms are those of Goto and van de Geijn, Anatomy of high-performance
// matrix multiplication, 2008, the solution in panels of Van Zee and van de
// Geijn, BLIS, 2015, and the pivoting of Lucas, LAPACK-style codes for level 2
// and 3 pivoted Cholesky factorizations, 2004.
package blocked
