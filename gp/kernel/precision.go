package kernel

// Precision is the type of number in which an [Operator] evaluates and stores K.
// Vectors and results are float64 in both cases.
//
// Float32 takes half the time or less. It rounds the inputs, once moved to the
// mean of the centres, every element of K, and v and u, which therefore must stay
// below 1e38. Sums are float32 inside a block of K and float64 beyond, so that the error does
// not grow with n and M. Relative to |K||v| and |K|ᵀ|u| one product is off by at most
//
//	1e-7·(1 + R),     R = max|x − mean|/ℓ
//
// for kernels of distances (TestFloat32Error). Factors of K and variances need Float64. Kernels
// and rows without panels are always evaluated in float64, and so is [NewHamming], because
// float32 might make two categories equal.
type Precision int

// These are the precisions. The zero value is Float64.
const (
	Float64 Precision = iota
	Float32
)
