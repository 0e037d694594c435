package sketch

import (
	"math"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// NewFourier returns M/2 random frequencies, each with its cosine and sine,
//
//	φ(x) = √(2/M) (cos w_1ᵀx, sin w_1ᵀx, cos w_2ᵀx, …),
//
// for the Gaussian, Laplace, Matérn and rational quadratic kernels, also scaled. M must
// be even. Then ‖φ(x)‖² = k(x, x) up to rounding, and the error is smaller than that of
// [NewFourierCosine]. An input costs O(Md), and memory is O(Md).
//
// The source is Rahimi and Recht (2007), Random Features for Large-Scale Kernel Machines, and
// Carratino (2020), §3.1, with errata. Its errors are [*ParameterError] and [*FeatureError].
func NewFourier(k kernel.Kernel, d, m int, seed uint64) (FeatureMap, error) {
	t, err := newPairs(Fourier, k, d, m, seed, stationary()...)
	if err != nil {
		return nil, err
	}
	return newDense(t, m/2).finish(pairs, t.scale(0.5)), nil
}

// newPairs is newTarget for maps of cosines and sines.
func newPairs(family Family, k kernel.Kernel, d, m int, seed uint64, families ...string) (target, error) {
	if m%2 != 0 {
		return target{}, parameterError(string(family), "Features", float64(m), "even, for a cosine and a sine of each frequency")
	}
	return newTarget(family, k, d, m, seed, families...)
}

// NewFourierCosine returns M random frequencies, each with a random phase b ~ U[0, 2π),
//
//	φ(x) = √(2/M) (cos(w_1ᵀx + b_1), …, cos(w_Mᵀx + b_M)),
//
// for the kernels of [NewFourier]. ‖φ(x)‖² varies between 0 and 2k(x, x), so that
// κ² = 2 in step sizes. Carratino (2020) prints Example 1 without √2, for which the
// limit is k/2. Costs and errors as NewFourier.
func NewFourierCosine(k kernel.Kernel, d, m int, seed uint64) (FeatureMap, error) {
	t, err := newTarget(FourierCosine, k, d, m, seed, stationary()...)
	if err != nil {
		return nil, err
	}
	f := newDense(t, m)
	f.phase = make([]float64, m)
	w := make([]float64, d)
	for j := range f.phase {
		rng := t.rng(j)
		t.frequency(w, rng) // the phase comes after the frequency in the stream
		f.phase[j] = 2 * math.Pi * rng.Float64()
	}
	return f.finish(cosines, t.scale(0.5)), nil
}
