package sketch

import "github.com/bkbtuner/bkb/gp/kernel"

// NewGaussianSketch returns random projections of the inputs,
//
//	φ(x) = (1/√M) Wx,  W_jc ~ N(0, 1/ℓ_c²),
//
// for the linear kernel, also scaled. They are fewer numbers than d for inputs of many
// coordinates, above all for sparse ones. With M ≥ d, x itself is better. Costs O(Md)
// per input, or O(M) per stored element. The source is Carratino (2020), §3.1 (Example
// 1, where variance and factor need care), after Halko, Martinsson and Tropp (2011).
// Its errors are [*ParameterError] and [*FeatureError].
func NewGaussianSketch(k kernel.Kernel, d, m int, seed uint64) (FeatureMap, error) {
	t, err := newTarget(GaussianSketch, k, d, m, seed, "linear")
	if err != nil {
		return nil, err
	}
	return newDense(t, m).finish(plain, t.scale(1)), nil
}
