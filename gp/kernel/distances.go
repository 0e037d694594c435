package kernel

import (
	"fmt"

	"github.com/bkbtuner/bkb/internal/simd/panel"
)

// Distances is how an [Operator] computes r² = Σ_c (x_c − y_c)²/ℓ_c² of dense rows.
// It changes nothing but the rounding, and the time: up to a quarter for many
// coordinates, half on processors that do not add beside multiplying.
//
// Direct differences lose nothing to cancellation: equal inputs are at distance 0
// exactly, and k(x, x) = κ². Expanded, r² = |x|² + |y|² − 2x·y of inputs that are
// moved to the mean of the centres and divided by ℓ, with what comes out below 0
// counted as 0. With R the largest distance of an input from that mean in length
// scales and u = 2⁻⁵³ (Float32: 2⁻²⁴), r² is then off, to first order, by at most
//
//	6(d + 8)·u·R²
//
// and k by half as much of itself for the Gaussian and rational quadratic kernels,
// 5/6 for Matérn-5/2, 3/2 for Matérn-3/2 (the largest −d log k/dr²); measured for
// R ≤ 5 and d ≤ 300 it is 3e-15·(1 + R²) of κ² at most (TestExpandedError), and k(x, x)
// is as far below κ². K(X, X) stays symmetric to the bit. Direct differences
// are off by as much of k where r² ≈ 4R², but there k is small.
//
// Kernels with an infinite slope at r² = 0 (Matérn-½: an error ε of r² would be one of
// √ε), of other distances or of inner products, compound ones and rows that are not
// dense know direct differences only.
type Distances int

// The ways to compute distances; the zero value is AutoDistances.
const (
	// AutoDistances expands where R ≤ 5 (Float32: R ≤ 3), which keeps what
	// [Precision] says of Float32, and leaves what FALKON reaches unchanged for λ
	// down to 1e-9 (docs/performance.md). It takes direct differences for each row
	// that is further out, for the few centres beside one that is, and for all if
	// many are: what is done with a row does not depend on other rows.
	AutoDistances Distances = iota
	// DirectDistances takes direct differences always.
	DirectDistances
	// ExpandedDistances expands wherever the kernel allows it, however large R is.
	ExpandedDistances
)

func (d Distances) String() string {
	switch d {
	case AutoDistances:
		return "AutoDistances"
	case DirectDistances:
		return "DirectDistances"
	case ExpandedDistances:
		return "ExpandedDistances"
	}
	return fmt.Sprintf("Distances(%d)", int(d))
}

// The largest R² of AutoDistances.
const (
	reach64 = 5 * 5
	reach32 = 3 * 3
)

// expand returns the function of p with distances as wanted, if it has any.
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
