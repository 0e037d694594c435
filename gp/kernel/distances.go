package kernel

import "github.com/bkbtuner/bkb/internal/simd/panel"

// Distances says how an [Operator] computes r² = Σ_c (x_c − y_c)²/ℓ_c² of dense rows.
// It changes only the rounding and the time. The time changes by up to a quarter for
// many coordinates, and by half on processors that cannot add and multiply at the same
// time.
//
// Direct differences lose nothing to cancellation. Equal inputs are at distance 0
// exactly, and k(x, x) = κ². Expanded, r² = |x|² + |y|² − 2x·y for inputs that are
// moved to the mean of the centres and divided by ℓ. Results below 0 count as 0. Let R
// be the largest distance of an input from that mean in length scales, and u = 2⁻⁵³, or
// 2⁻²⁴ for Float32. Then the error of r² is, to first order, at most
//
//	6(d + 8)·u·R²
//
// The relative error of k is that times the largest −d log k/dr². This is ½ for the
// Gaussian and rational quadratic kernels, 5/6 for Matérn-5/2 and 3/2 for Matérn-3/2.
// In measurements for R ≤ 5 and d ≤ 300 it is at most 3e-15·(1 + R²) of κ²
// (TestExpandedError), and k(x, x) is as far below κ². K(X, X) stays symmetric to the
// bit. Direct differences have the same error of k where r² ≈ 4R², but there k is
// small.
//
// Some kernels and rows always have direct differences. These are kernels with an
// infinite slope at r² = 0, kernels of other distances or of inner products, compound
// kernels, and rows that are not dense. For Matérn-½ an error ε of r² would be one of
// √ε.
type Distances int

// These are the ways to compute distances. The zero value is AutoDistances.
const (
	// AutoDistances expands where R ≤ 5 (R ≤ 3 for Float32). That keeps the error bound
	// of Float32 in [Precision], and does not change the result of FALKON for λ down to
	// 1e-9 (bench/docs/performance.md). It takes direct differences for each row that is
	// farther out, and for the few centres that are farther out. If many centres are,
	// it takes them for all. The treatment of a row does not depend on other rows.
	AutoDistances Distances = iota
	// DirectDistances takes direct differences always.
	DirectDistances
	// ExpandedDistances expands wherever the kernel allows it, for any R.
	ExpandedDistances
)

// These are the largest R² of AutoDistances.
const (
	reach64 = 5 * 5
	reach32 = 3 * 3
)

// expand returns the function of p with the wanted distances, if it has one.
func (p *panelPrepared) expand(d Distances, reach float64) panel.Function {
	f := p.f
	if d == DirectDistances || !f.Expandable() {
		return f
	}
	f.Expand = true
	if d == AutoDistances {
		f.Reach = reach * p.unit
	}
	return f
}
