package krr

import (
	"context"

	"github.com/bkbtuner/bkb/internal/blocked"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
)

// LeaveOneOut returns the outputs f_{−i}(x_i) for the n rows of train, n×c, where f_{−i} is
// fitted to all rows except i with the same ridge λn. It is
//
//	f_{−i}(x_i) = y_i − c_i/G_ii,   G = (K + λnI)⁻¹,   c = Gy,
//
// and takes 2n³/3 operations, twice those of a fit. Its errors are those of Fit.
func (p Params) LeaveOneOut(ctx context.Context, train data.Source, o learners.Options) ([]float64, error) {
	o.Validation = nil
	counted, m, err := p.prepare(ctx, train, o)
	if err != nil {
		return nil, err
	}
	rows := counted.Weights
	n, c, workers := m.Len(), m.Outputs(), learners.Workers(o.Workers)
	f, err := factor(ctx, p.Kernel, m.Rows(), m.Targets(), rows, c, p.Lambda, workers)
	if err != nil {
		return nil, err
	}
	coefficients := f.coefficients
	root := blocked.New[float64](n, n, nil)
	blocked.Inverse(workers, f.a, root)
	inverse := make([]float64, n) // the diagonal of G
	for i := range n {
		for j, v := range root.Data[i*n:][:i+1] {
			inverse[j] += v * v
		}
	}
	for i := range coefficients {
		coefficients[i] /= inverse[i/c]
	}
	if rows != nil {
		inverses := make([]float64, n)
		for i, s := range rows {
			inverses[i] = 1 / s
		}
		scaleRows(coefficients, c, inverses)
	}
	out := append([]float64(nil), m.Targets()...)
	for i, r := range coefficients {
		out[i] -= r
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return counted.Restore(ctx, out, func() (learners.Model, error) { return p.Fit(ctx, train, o) })
}
