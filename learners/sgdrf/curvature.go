package sgdrf

import (
	"context"
	"errors"
	"math"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/blocked"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/sketch"
)

const (
	// curvatureRows and curvatureElements limit the sample for the curvature to 4000
	// rows and 32 MiB of features, but at least 256 rows.
	curvatureRows     = 4000
	curvatureElements = 1 << 22
	// powerSteps and powerTolerance end the power iteration.
	powerSteps     = 100
	powerTolerance = 1e-4
)

// Curvature determines the largest stable step.
type Curvature struct {
	// Bound is β = max ‖φ(x)‖² over the sample.
	Bound float64
	// Largest is λ̂₁, the largest eigenvalue of ΦᵀΦ/m.
	Largest float64
}

// Estimate returns the curvature of the features of up to 4000 rows of src, drawn by
// seed. It costs one set of features and up to 100 products. With weights s of the rows,
// β is max s‖φ(x)‖², and λ̂₁ is that of ΦᵀSΦ/m.
func Estimate(ctx context.Context, phi sketch.FeatureMap, src kernel.Source, s []float64, seed uint64) (Curvature, error) {
	n, m := src.Len(), phi.Features()
	size := min(n, curvatureRows, max(256, curvatureElements/m))
	order := stream.NewPermutation(stream.Derive(seed, "sgdrf/curvature", 0), uint64(n))
	idx := make([]int, size)
	for i := range idx {
		idx[i] = int(order.At(uint64(i)))
	}
	x, err := kernel.Select(ctx, src, idx)
	if err != nil {
		return Curvature{}, err
	}
	features := make([]float64, size*m)
	if err := phi.Apply(features, x); err != nil {
		var bad *kernel.NonFiniteError
		if errors.As(err, &bad) {
			bad.Row = idx[bad.Row]
		}
		return Curvature{}, err
	}
	if s != nil {
		for i, row := range idx {
			root := math.Sqrt(s[row])
			for j := range m {
				features[i*m+j] *= root
			}
		}
	}
	return curvatureOf(features, size, m), nil
}

// curvatureOf is Estimate for given features, by the power iteration on ΦᵀΦ/n. It
// starts at the mean of the rows, because bounded features point that way.
func curvatureOf(phi []float64, n, m int) Curvature {
	var out Curvature
	v, u := make([]float64, m), make([]float64, n)
	for i := range n {
		sum := 0.0
		for j, a := range phi[i*m:][:m] {
			sum += a * a
			v[j] += a
		}
		out.Bound = max(out.Bound, sum)
		v[i%m] += 1e-3 * math.Sqrt(sum) // the mean may be 0
	}
	features := blocked.New(n, m, phi)
	for range powerSteps {
		if normalise(v) == 0 {
			return out
		}
		blocked.Gemv(1, false, features, v, 1, 0, u)
		blocked.Gemv(1, true, features, u, 1, 0, v)
		last := out.Largest
		out.Largest = 0
		for _, a := range u {
			out.Largest += a * a / float64(n) // the Rayleigh quotient
		}
		if out.Largest-last <= powerTolerance*out.Largest {
			break
		}
	}
	return out
}

func normalise(v []float64) float64 {
	sum := 0.0
	for _, a := range v {
		sum += a * a
	}
	norm := math.Sqrt(sum)
	if norm > 0 {
		for j := range v {
			v[j] /= norm
		}
	}
	return norm
}

// Step returns γ* = b/(β + (b−1)λ̂₁ + bλ). The mean square of the iterates of mini-batches of b
// rows converges up to 2γ* and diverges beyond. It is 0 if all features are 0.
func (k Curvature) Step(b int, lambda float64) float64 {
	B := float64(b)
	if d := k.Bound + (B-1)*k.Largest + B*lambda; d > 0 {
		return B / d
	}
	return 0
}
