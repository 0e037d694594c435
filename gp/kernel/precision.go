package kernel

// Precision is the type of number in which an [Operator] evaluates and stores K.
// Vectors and results are float64 in both cases.
//
// Float32 takes half the time or less. It rounds the inputs, once moved to the
// mean of the centres, every element of K, and v and u, which therefore must stay
// below 1e38. Sums are float32 inside a block of K, of up to 1024 columns in 8
// lanes or of up to 96 rows, and float64 beyond, so that the error does not grow
// with n and M. Relative to |K||v| and |K|ᵀ|u| one product is off by at most
//
//	1e-7·(1 + R),     R = max|x − mean|/ℓ
//
// for kernels of distances (TestFloat32Error), with R in the norm of the distance. For
// others it is about 1e-7 relative to the sums of |x_c y_c|. bench/docs/performance.md has
// the effect on FALKON for λ = 1e-4 … 1e-9. Factors of K and variances need Float64.
//
// Kernels and rows without panels are always evaluated in float64. These are sums,
// products, kernels of a caller and sparse rows, and also [NewOverlap] and
// [NewHamming], because float32 might make two categories equal.
type Precision int

// These are the precisions. The zero value is Float64.
const (
	Float64 Precision = iota
	Float32
)
