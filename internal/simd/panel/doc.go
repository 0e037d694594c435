// Package panel multiplies with kernel matrices K = k(X, Y), n×M, that are never
// held: w = Kᵀg(Kv), Kv, Kᵀu, for float32 and float64, on the kernels of package
// simd. Random features cos(XW + q) are a case of it.
//
// A [Function] says what k is: a statistic of pairs and an element-wise function
// of it. [Pack] packs Y as columns once. A [Block] has a few rows of K at a time:
//
//	            columns, chunk by chunk (128 KiB, in L2)
//	          ┌─────────┬─────────┬────
//	6 rows    │ 64 tiles│→        │        each piece, 24 KiB in L1:
//	          ├─────────┼─────────┼────      statistic → function → t += piece·v
//	6 rows    │         │         │
//	          └─────────┴─────────┴────    then, with K in L2: w += Kᵀg(t)
//
// The height of a block ([Columns.Height]) makes K fill half of L2. Who shares the
// rows of X among workers is the caller: kernel.Operator for products with kernels.
//
// # Precision
//
// Inputs are float32 or float64, vectors float64. The panels are of type T. With
// T = float64 everything is. With T = float32 a tile and the sums over 64 tiles
// of columns, in 8 lanes, or over the rows of one block are float32; all longer
// sums are float64. The error of a product relative to |K||v| is then about
// 1e-7, whatever n and M. Inputs of distances are centred on the mean of the
// columns first, so that float32 spends no digits on what they have in common.
// Where K has to be more accurate than 1e-6, as in factorisations, T is float64.
//
// Equal inputs have distance 0 exactly, unless Function.Expand asks for speed. With
// Function.Reach it asks for it only where little is lost: a row beyond, and a tile of
// columns with one beyond, take direct differences, from columns that are packed a
// second time.
//
// # Invariants
//
//   - What is computed of a row depends on this row and the columns alone, not on
//     the rows beside it; sums over rows run in their order.
//   - No allocation in the steady state.
//   - Inputs are finite; a NaN or Inf reaches at least all results of its row.
//   - Shapes that do not match panic.
package panel
