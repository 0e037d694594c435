// Package panel multiplies with kernel matrices K = k(X, Y), n×M, that are never stored. It
// computes w = Kᵀg(Kv), Kv and Kᵀu, for float32 and float64, on the kernels of package
// simd. Random features cos(XW + q) are a case of it.
//
// A [Function] defines k by a statistic of pairs and an element-wise function of it. [Pack]
// packs Y as columns once. A [Block] has a few rows of K at a time:
//
//	            columns, chunk by chunk (a quarter of L2)
//	          ┌─────────┬─────────┬────
//	6 rows    │ 64 tiles│→        │        each piece, 24 KiB in L1:
//	          ├─────────┼─────────┼────      statistic → function → t += piece·v
//	6 rows    │         │         │
//	          └─────────┴─────────┴────    then, with K in L2: w += Kᵀg(t)
//
// # Precision
//
// Inputs are float32 or float64, vectors float64. The panels are of type T. With T = float32 a
// tile, the sums of 128 columns in a lane of a register, and those over the rows of one block are
// float32. All longer sums are float64, so that the error of a product relative to |K||v| is
// about 1e-7 for any n and M. Inputs of distances are centred on the mean of the columns first.
//
// # Invariants
//
//   - The results of a row depend only on this row and the columns. Sums over rows run in
//     their order.
//   - No allocation in the steady state.
//   - Inputs are finite. A NaN or Inf reaches at least all results of its row.
//   - Shapes that do not match panic.
package panel
