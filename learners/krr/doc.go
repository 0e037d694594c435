// Package krr implements exact kernel ridge regression. The approximating learners are
// compared with it.
//
// It minimises (1/n)Σ(f(x_i) − y_i)² + λ‖f‖² over the functions of the kernel's
// space. The minimum is f(x) = Σ_i k(x, x_i) c_i with
//
//	(K + λnI) c = y                                              (Carratino 2020, §2.3)
//
// for each column of y separately. λ is per sample, and f is the mean of the Gaussian
// process with noise variance λn.
//
// With weights s_i of mean 1 the loss is (1/n)Σ s_i(f(x_i) − y_i)². Then c = S^½z with
// (S^½KS^½ + λnI) z = S^½y. Rows of weight 0 are left out.
//
// Solve factors K + λnI by Cholesky, and Params is the Estimator around it.
//
// # Invariants
//
//   - Every addition to the diagonal beyond λn is reported.
//   - Repeated rows, constant targets and λ = 0 are allowed. With λ = 0 the function
//     interpolates as far as K allows.
//   - No bit depends on the number of workers.
//
// # Costs
//
// Solve takes n²/2 kernel evaluations, n³/3 operations and n² numbers of memory, which
// is 0.8 GB for n = 10,000. Params refuses more than MaxRows rows.
package krr
