package sketch

import (
	"context"
	"math/rand/v2"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// Sampler chooses a few rows of a source that represent all.
//
// Sample returns at least one point. λ > 0 is per sample, K + λnI. All random numbers come from
// rng, on the calling goroutine. Equal streams and equal sources give equal dictionaries, bit for
// bit. A Sampler is immutable and safe for concurrent use, but rng is not.
//
// Its errors are [*ParameterError] for λ and its own fields, [*EmptyError], [*kernel.TypeError],
// [*kernel.DimensionError], [*kernel.SourceError], [*FactorizationError] and ctx.Err(). Rows that
// were read may give a [*kernel.NonFiniteError].
type Sampler interface {
	Sample(ctx context.Context, k kernel.Kernel, src kernel.Source, lambda float64, rng *rand.Rand) (*Dictionary, error)
}

var (
	_ Sampler = BLESS{}
	_ Sampler = BLESSR{}
	_ Sampler = RPCholesky{}
	_ Sampler = Uniform{}
	_ Sampler = ExactRLS{}
	_ Sampler = TwoPass{}
	_ Sampler = RecursiveRLS{}
	_ Sampler = SQUEAK{}
	_ Sampler = PosteriorVariance{}
)

const (
	// defaultOversampling is q₂, the number of points drawn per unit of effective dimension.
	defaultOversampling = 3
	// defaultUniform is q₁, the number of uniform candidates per κ²/λ.
	defaultUniform = 2
	// defaultStep is q = λ_{h−1}/λ_h.
	defaultStep = 2
)

// checkSampling refuses arguments that no sampler accepts.
func checkSampling(what string, k kernel.Kernel, src kernel.Source, lambda float64) error {
	if k == nil {
		return &EmptyError{What: "kernel"}
	}
	if src == nil {
		return &EmptyError{What: "source"}
	}
	if err := checkLambda(what, lambda, max(src.Len(), 1)); err != nil {
		return err
	}
	if src.Len() == 0 {
		return &EmptyError{What: "source"}
	}
	if r, ok := src.(kernel.Resident); ok {
		return k.Check(r.Rows())
	}
	return nil
}

// boundOf returns κ², either given or the kernel's own.
func boundOf(what string, k kernel.Kernel, given float64) (float64, error) {
	bound := given
	if given == 0 {
		bound = k.Bound()
	}
	if !isPositive(bound) {
		return 0, parameterError(what, "Bound", bound, "κ² > 0 and finite; the kernel has no bound, so set the field to max k(x, x)")
	}
	return bound, nil
}

// dictionaryAt reads the points of a dictionary without path. Its Rows are those of the points.
func dictionaryAt(ctx context.Context, k kernel.Kernel, src kernel.Source, l Level) (*Dictionary, error) {
	var err error
	if l.Points, err = selectRows(ctx, k, src, l.Indices); err != nil {
		return nil, err
	}
	return &Dictionary{Level: l, N: src.Len(), Rows: l.Len()}, nil
}
