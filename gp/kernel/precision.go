package kernel

import "fmt"

// Precision is the type of number in which an [Operator] evaluates and holds K.
// Vectors and results are float64 with either.
//
// Float32 takes half the time or less. It rounds the inputs, once moved to the
// mean of the centres, and every element of K and v. Sums are float32 inside a
// block of K, of up to 1024 columns in 8 lanes or of up to 96 rows, and float64
// beyond, so that the error does not grow with n and M. For one product,
// relative to |K||v| and |K|ᵀ|u|, it is about
//
//	1e-7 + 4e-8·R²     R = max|x − mean|/ℓ
//
// at most; TestFloat32Error measures it for R from 1 to 100. An entry of K
// that is off by that much acts like another λ of the same size: for
// FALKON, Float32 is for λ ≥ 1e-6 and R up to some 10, where its predictions
// are those of Float64 to 2e-5 (see docs/performance.md). Factors of K, and
// variances, take Float64.
//
// Kernels and rows that have no panels are evaluated in float64 with either:
// compound kernels, those of a caller, sparse rows; and [NewOverlap] and
// [NewHamming], as float32 might take two categories for one.
type Precision int

// The precisions; the zero value is Float64.
const (
	Float64 Precision = iota
	Float32
)

func (p Precision) String() string {
	switch p {
	case Float64:
		return "float64"
	case Float32:
		return "float32"
	}
	return fmt.Sprintf("Precision(%d)", int(p))
}
