package sketch

import "github.com/bkbtuner/bkb/gp/kernel"

// NewReLU returns the features of a random layer of rectified units,
//
//	φ(x) = √(2/M) (max(0, w_1ᵀx), …, max(0, w_Mᵀx)),  w ~ N(0, diag ℓ^−2),
//
// for the arc-cosine kernel of order 1, also scaled. Append a constant to the inputs
// for units with a bias. The features are unbounded, as they grow with ‖x‖. Costs O(Md)
// per input. The source is Cho and Saul (2009), and Carratino (2020), §3.1. Its errors
// are [*ParameterError] and [*FeatureError].
func NewReLU(k kernel.Kernel, d, m int, seed uint64) (FeatureMap, error) {
	t, err := newTarget(ReLU, k, d, m, seed, "arc_cosine")
	if err != nil {
		return nil, err
	}
	return newDense(t, m).finish(rectify, t.scale(0.5)), nil
}
