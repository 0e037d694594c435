// Package landweber implements gradient descent in the kernel's space with early
// stopping, also called L²-boosting. The number of iterations takes the place of λ.
//
// From c_0 = 0, with a step γ,
//
//	c_t = c_{t−1} − (γ/n)(K c_{t−1} − y),   f_t(x) = Σ_i k(x, x_i) c_{t,i},
//
// descends along the gradient of (1/2n)Σ(f(x_i) − y_i)² in the space of the
// kernel. After t iterations each eigenvalue s of K/n has been filtered by
//
//	c_t = (1/n) g_t(K/n) y,   g_t(s) = Σ_{i<t} γ(1 − γs)^i = (1 − (1 − γs)^t)/s,
//
// as if λ were about 1/(γt) (Carratino 2020, §2.4). It converges for 0 < γ < 2n/‖K‖,
// and then the error on the training rows never grows. The error on other rows falls
// and rises again, so Options.Validation and Patience choose t.
//
// In Carratino (2020), equation (2.35) has K² in place of K, but (2.37) to (2.39) are for the
// iteration above, and the sum of (2.36) must end at t − 1.
//
// With weights s_i of mean 1 the step is S(K c_{t−1} − y), and ‖S^½KS^½‖ takes the place of ‖K‖.
//
// # Costs
//
// An iteration evaluates K once, which is n² kernel values, in O(n) memory beside the data. Each
// validation row costs n values more. The default step takes 20 products with K.
package landweber
