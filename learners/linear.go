package learners

import (
	"context"
	"fmt"
	"sync"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/blocked"
	"github.com/bkbtuner/bkb/sketch"
)

// Linear is f(x) = φ(x)ᵀw with weights w ∈ ℝᴹˣᶜ, for a feature map φ or for φ(x) = x.
type Linear struct {
	spec     *sketch.FeatureSpec               // nil for x itself
	features func() (sketch.FeatureMap, error) // makes φ once
	d, m     int
	w        []float64 // M×c
	c        int
	link     Link
}

var _ Linked = (*Linear)(nil)

// NewLinear returns the function of inputs of d coordinates with the weights w, M×c
// row-major. It keeps w, which the caller must not change any more. spec is the feature
// map, which is made when it is first needed. If it is nil, φ is x itself and M = d. It returns the
// errors of kernel.New, a *kernel.DimensionError, a *kernel.ShapeError or a
// *kernel.NonFiniteError. Predict returns those of the family of the features.
func NewLinear(spec *sketch.FeatureSpec, d int, w []float64, c int) (*Linear, error) {
	if spec == nil {
		return newLinear(nil, nil, d, d, w, c)
	}
	if _, err := kernel.New(spec.Kernel, nil); err != nil {
		return nil, err
	}
	own := *spec
	later := sync.OnceValues(func() (sketch.FeatureMap, error) { return sketch.NewFeatures(own) })
	return newLinear(&own, later, d, spec.Features, w, c)
}

// LinearIn is NewLinear with a feature map that exists already.
func LinearIn(features sketch.FeatureMap, w []float64, c, d int) (*Linear, error) {
	spec := features.Spec()
	made := func() (sketch.FeatureMap, error) { return features, nil }
	return newLinear(&spec, made, d, features.Features(), w, c)
}

func newLinear(spec *sketch.FeatureSpec, features func() (sketch.FeatureMap, error), d, m int, w []float64, c int) (*Linear, error) {
	if spec != nil && spec.Dim != d {
		return nil, &kernel.DimensionError{What: "the feature map", Got: spec.Dim, Want: d}
	}
	if d < 1 || c < 1 || len(w)/c != m || len(w)%c != 0 {
		return nil, &kernel.ShapeError{In: "learners", What: "weights (M×c)", Got: len(w), Want: fmt.Sprintf("M·c = %d·%d, both at least 1", m, c)}
	}
	if err := checkFinite("weights", w, c); err != nil {
		return nil, err
	}
	return &Linear{spec: spec, features: features, d: d, m: m, w: w, c: c}, nil
}

// WithLink returns the function with outputs of another meaning.
func (l *Linear) WithLink(link Link) *Linear {
	with := *l
	with.link = link
	return &with
}

// Dim returns d.
func (l *Linear) Dim() int { return l.d }

// Outputs returns c.
func (l *Linear) Outputs() int { return l.c }

// Link says what the outputs mean.
func (l *Linear) Link() Link { return l.link }

// Spec describes φ. It is nil for x itself.
func (l *Linear) Spec() *sketch.FeatureSpec { return l.spec }

// Weights returns w, M×c row-major, which the caller must not change.
func (l *Linear) Weights() []float64 { return l.w }

// Predict sets dst, n×c, to f(x_i). Each processor needs memory for a block of rows, and with a
// feature map for a copy of w and a tile of features.
func (l *Linear) Predict(ctx context.Context, dst []float64, x kernel.Source) error {
	if err := checkPredict(l, dst, x); err != nil {
		return err
	}
	var phi sketch.FeatureMap
	if l.features != nil {
		var err error
		if phi, err = l.features(); err != nil {
			return err
		}
	}
	products := sync.Pool{New: func() any { return sketch.NewFeatureOperator(phi, 1) }}
	return EachBlock(ctx, x, BlockRows(l.m), 0, func(row int, x kernel.Rows) error {
		out := dst[row*l.c:][:x.Len()*l.c]
		if phi == nil {
			if err := MulRows(out, x, l.w, l.c); err != nil {
				return err
			}
		} else {
			op := products.Get().(*sketch.FeatureOperator)
			defer products.Put(op)
			if err := op.Apply(out, x, l.w); err != nil {
				return err
			}
		}
		return Shift(checkFinite("outputs", out, l.c), row)
	})
}

// MulRows sets dst, n×c, to X·w for dense or sparse rows, where w is d×c.
func MulRows(dst []float64, x kernel.Rows, w []float64, c int) error {
	switch x := x.(type) {
	case *kernel.Points[float64]:
		mulDense(dst, x, w, c)
	case *kernel.Points[float32]:
		mulDense(dst, x, w, c)
	case *kernel.CSR[float64]:
		mulSparse(dst, x, w, c)
	case *kernel.CSR[float32]:
		mulSparse(dst, x, w, c)
	default:
		return &kernel.TypeError{Kernel: "linear", Got: fmt.Sprintf("%T", x), Want: "dense or sparse rows"}
	}
	return nil
}

// mulDense multiplies rows of float64 in place and copies of rows of other types.
func mulDense[T kernel.Float](dst []float64, x *kernel.Points[T], w []float64, c int) {
	const most = 128 // rows of a copy
	d, n := x.Dim(), x.Len()
	if data, ok := any(x.Data()).([]float64); ok {
		mulBlock(dst, blocked.Matrix[float64]{Rows: n, Cols: d, Stride: d, Data: data}, w, c)
		return
	}
	data := make([]float64, min(n, most)*d)
	for i0 := 0; i0 < n; i0 += most {
		i1 := min(i0+most, n)
		for i := i0; i < i1; i++ {
			row := data[(i-i0)*d:][:d]
			for k, v := range x.Row(i) {
				row[k] = float64(v)
			}
		}
		mulBlock(dst[i0*c:i1*c], blocked.New(i1-i0, d, data[:(i1-i0)*d]), w, c)
	}
}

func mulBlock(dst []float64, x blocked.Matrix[float64], w []float64, c int) {
	if c == 1 {
		blocked.Gemv(1, false, x, w, 1, 0, dst)
		return
	}
	blocked.Gemm(1, false, x, false, blocked.New(x.Cols, c, w), 1, 0, blocked.New(x.Rows, c, dst))
}

func mulSparse[T kernel.Float](dst []float64, x *kernel.CSR[T], w []float64, c int) {
	clear(dst)
	for i := range x.Len() {
		col, val := x.Row(i)
		out := dst[i*c:][:c]
		for k, j := range col {
			addScaled(out, float64(val[k]), w[int(j)*c:][:c])
		}
	}
}

func addScaled(dst []float64, a float64, x []float64) {
	for j, v := range x {
		dst[j] += a * v
	}
}
