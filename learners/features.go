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
		return nil, &ParameterError{algorithm, "features", m, fmt.Sprintf(
			"takes %.3g GB of frequencies for %d coordinates, more than %.3g; take fewer features, or those of fastfood, which takes none", 8e-9*float64(m)*float64(d), d, 8e-9*MaxFrequencies)}
	}
	return sketch.NewFeaturesContext(ctx, spec)
}
