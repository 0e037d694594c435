package krr

import (
	"cmp"
	"context"
	"fmt"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
)

const algorithm = "krr"

// DefaultMaxRows is the default of MaxRows, which takes 3.2 GB.
const DefaultMaxRows = 20_000

// Params are the hyper-parameters.
type Params struct {
	Kernel kernel.Kernel
	// Lambda is λ ≥ 0, per sample.
	Lambda float64
	// MaxRows is the largest accepted n, or 0 for DefaultMaxRows. K takes 8n² bytes.
	MaxRows int
}

var _ learners.Estimator = Params{}

// SizeError reports more rows than MaxRows.
type SizeError struct{ Rows, MaxRows int }

func (e *SizeError) Error() string {
	gib := func(n int) float64 { return 8 * float64(n) * float64(n) / (1 << 30) }
	return fmt.Sprintf("krr: %d rows take %.1f GiB for the kernel matrix, more than the %.1f GiB of max rows = %d; use nystrom or falkon, fewer rows, or a larger max rows",
		e.Rows, gib(e.Rows), gib(e.MaxRows), e.MaxRows)
}

// Validate returns a *learners.ParameterError for the first hyper-parameter out of range.
func (p Params) Validate() error {
	return cmp.Or(
		learners.CheckKernel(algorithm, p.Kernel),
		learners.NotNegative(algorithm, "lambda", p.Lambda),
		learners.AtLeast(algorithm, "max rows", p.MaxRows, 0),
	)
}

// Fit solves for all outputs at once, in one iteration. It reads train into memory. The objective
// is that of the package, summed over outputs. Its errors include *SizeError and *NotPSDError.
func (p Params) Fit(ctx context.Context, train data.Source, o learners.Options) (learners.Model, error) {
	rows, data, err := p.prepare(ctx, train, o)
	if err != nil {
		return nil, err
	}
	m, err := learners.NewMonitor(ctx, algorithm, 1, train, o)
	if err != nil {
		return nil, err
	}
	s, err := Solve(ctx, p.Kernel, data.Rows(), data.Targets(), rows.Weights, data.Outputs(), p.Lambda, o.Workers)
	if err != nil {
		return nil, err
	}
	it := learners.Iterate{
		Iteration: 1, Passes: 1, Rows: int64(data.Len()), Objective: s.Objective, Residual: s.Residual,
		Model: func() (learners.Model, error) {
			return learners.NewExpansion(p.Kernel, data.Rows(), s.Coefficients, data.Outputs())
		},
	}
	if s.Jitter > 0 {
		it.Notes = []string{fmt.Sprintf("K + λnI was not positive definite in floating point; %.3g was added to its diagonal, as if λ were %.3g", s.Jitter, p.Lambda+s.Jitter/float64(data.Len()))}
	}
	_, err = m.Step(ctx, it)
	return m.Finish(err)
}

// prepare checks parameters and data, and returns the rows that count, also in memory.
func (p Params) prepare(ctx context.Context, train data.Source, o learners.Options) (rows learners.Rows, m *data.Memory, err error) {
	if err := cmp.Or(p.Validate(), learners.Check(train, o)); err != nil {
		return rows, nil, err
	}
	if rows, err = learners.CountRows(algorithm, train, o); err != nil {
		return rows, nil, err
	}
	most := cmp.Or(p.MaxRows, DefaultMaxRows)
	if n := rows.Source.Len(); n > most {
		return rows, nil, &SizeError{n, most}
	}
	m, err = learners.InMemory(ctx, rows.Source)
	return rows, m, err
}
