package learners

import (
	"fmt"
	"math"

	"github.com/bkbtuner/bkb/learners/data"
)

// RowWeights returns o.Weights divided by their mean, so that a sum over rows divided by
// n is a mean. It is nil if all rows count alike. It returns a *ParameterError unless
// there is a weight s_i ≥ 0 for each row of train, and one that is positive.
func RowWeights(algorithm string, train data.Source, o Options) ([]float64, error) {
	if o.Weights == nil {
		return nil, nil
	}
	if len(o.Weights) != train.Len() {
		return nil, Invalid(algorithm, "weights", fmt.Sprintf("%d numbers", len(o.Weights)), fmt.Sprintf("%d, one for each row", train.Len()))
	}
	sum, largest := 0.0, 0.0
	for i, s := range o.Weights {
		if !(s >= 0) || math.IsInf(s, 0) {
			return nil, Invalid(algorithm, fmt.Sprintf("weight of row %d", i+1), s, "≥ 0 and finite")
		}
		largest = max(largest, s)
	}
	if largest == 0 {
		return nil, Invalid(algorithm, "weights", "0 for all rows", "positive for a row at least")
	}
	for _, s := range o.Weights {
		sum += s / largest // the sum of the weights may overflow
	}
	mean := sum / float64(len(o.Weights))
	out := make([]float64, len(o.Weights))
	for i, s := range o.Weights {
		out[i] = s / largest / mean
	}
	return out, nil
}

// Unweighted returns a *ParameterError if there are weights of rows. It is for
// algorithms that cannot use them.
func Unweighted(algorithm string, o Options) error {
	if o.Weights == nil {
		return nil
	}
	return Invalid(algorithm, "weights", fmt.Sprintf("%d numbers", len(o.Weights)), "none, because this algorithm counts all rows alike; use falkon, log-falkon, krr, nystrom or sgdrf")
}
