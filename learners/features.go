package learners

import (
	"context"
	"fmt"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/inorder"
	"github.com/bkbtuner/bkb/sketch"
)

// MaxFrequencies limits how many numbers the frequencies of a feature map may take in a
// fit, which is 2 GiB.
const MaxFrequencies = 1 << 28

// NewFeatures returns the feature map of a fit, or a *ParameterError if its M×d frequencies are more
// than MaxFrequencies numbers, as for sparse rows with millions of coordinates.
func NewFeatures(ctx context.Context, algorithm string, spec sketch.FeatureSpec) (sketch.FeatureMap, error) {
	if m, d := spec.Features, spec.Dim; spec.Family != sketch.Fastfood && m > 0 && d > MaxFrequencies/m {
		return nil, Invalid(algorithm, "features", m, fmt.Sprintf(
			"at most %d: for %d coordinates the frequencies take %.3g GB, and %.3g are allowed; fastfood features take none",
			MaxFrequencies/d, d, 8e-9*float64(m)*float64(d), 8e-9*MaxFrequencies))
	}
	return sketch.NewFeaturesContext(ctx, spec)
}

// ApplyFeatures sets dst, n×M, to the features of the rows x. It uses at most workers
// goroutines, and each takes at least least rows.
func ApplyFeatures(phi sketch.FeatureMap, dst []float64, x kernel.Rows, least, workers int) error {
	n, m := x.Len(), phi.Features()
	share := max(least, (n+workers-1)/workers)
	return inorder.Blocks(n, share, workers, func(a, z int) error {
		return Shift(phi.Apply(dst[a*m:z*m], x.Slice(a, z)), a)
	})
}

// Unscaled returns the kernel without the factors before it.
func Unscaled(spec kernel.Spec) kernel.Spec {
	for spec.Name == "scaled" && len(spec.Parts) == 1 {
		spec = spec.Parts[0]
	}
	return spec
}

// SomeDim returns a number of coordinates that the kernel accepts.
func SomeDim(k kernel.Kernel) int { return max(1, len(Unscaled(k.Spec()).LengthScales)) }
