package learners

import (
	"context"
	"fmt"

	"github.com/bkbtuner/bkb/sketch"
)

// MaxFrequencies is how many numbers the frequencies of a feature map may take
// in a fit: 2 GiB.
const MaxFrequencies = 1 << 28

// NewFeatures returns the feature map of a fit, unless ctx ends. It returns a *ParameterError for
// a map whose M×d frequencies are more than MaxFrequencies numbers, as they are
// for thousands of features of sparse rows with millions of coordinates.
func NewFeatures(ctx context.Context, algorithm string, spec sketch.FeatureSpec) (sketch.FeatureMap, error) {
	if m, d := spec.Features, spec.Dim; spec.Family != sketch.Fastfood && m > 0 && d > MaxFrequencies/m {
		return nil, Invalid(algorithm, "features", m, fmt.Sprintf(
			"at most %d: for %d coordinates the frequencies take %.3g GB, and %.3g are allowed; fastfood features take none",
			MaxFrequencies/d, d, 8e-9*float64(m)*float64(d), 8e-9*MaxFrequencies))
	}
	return sketch.NewFeaturesContext(ctx, spec)
}
