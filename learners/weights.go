package learners

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/learners/data"
)

// Rows are the training rows that count, which are those with a weight above 0. The others
// have no part in a fit.
type Rows struct {
	Source data.Source
	// Weights are divided by their mean, and nil if all are equal.
	Weights []float64
	// Copies are the rows as often as their weights say, of which defaults take the number.
	Copies *data.Copies

	all     data.Source
	numbers []int // of the rows in all, nil if none is left out
}

// CountRows returns the rows of train that count. It returns a *ParameterError unless there
// is a weight s_i ≥ 0 for each row of train, and one that is positive.
func CountRows(algorithm string, train data.Source, o Options) (Rows, error) {
	r, weights := Rows{Source: train, all: train}, o.Weights
	if weights == nil {
		r.Copies = data.NewCopies(nil, train.Len())
		return r, nil
	}
	if len(weights) != train.Len() {
		return r, Invalid(algorithm, "weights", fmt.Sprintf("%d numbers", len(weights)), fmt.Sprintf("%d, one for each row", train.Len()))
	}
	for i, s := range weights {
		if !(s >= 0) || math.IsInf(s, 0) {
			return r, Invalid(algorithm, fmt.Sprintf("weight of row %d", i+1), s, "≥ 0 and finite")
		}
	}
	if r.numbers = data.Counted(weights); r.numbers != nil {
		if len(r.numbers) == 0 {
			return r, Invalid(algorithm, "weights", "0 for all rows", "positive for a row at least")
		}
		var err error
		if r.Source, err = data.Subset(train, r.numbers); err != nil {
			return r, err
		}
		weights = data.Pick(weights, r.numbers)
	}
	r.Copies = data.NewCopies(weights, len(weights))
	largest := slices.Max(weights)
	if largest == slices.Min(weights) {
		return r, nil
	}
	sum := 0.0
	for _, s := range weights {
		sum += s / largest // the sum of the weights may overflow
	}
	mean := sum / float64(len(weights))
	r.Weights = make([]float64, len(weights))
	for i, s := range weights {
		r.Weights[i] = s / largest / mean
	}
	return r, nil
}

// Weight returns the weight of row i.
func (r *Rows) Weight(i int) float64 {
	if r.Weights == nil {
		return 1
	}
	return r.Weights[i]
}

// Restore returns outputs for all training rows, from those of the rows that count. The
// others get the outputs of the model that fit returns.
func (r *Rows) Restore(ctx context.Context, counted []float64, fit func() (Model, error)) ([]float64, error) {
	if r.numbers == nil {
		return counted, nil
	}
	m, err := fit()
	if err != nil {
		return nil, err
	}
	c := m.Outputs()
	out := make([]float64, r.all.Len()*c)
	if err := m.Predict(ctx, out, r.all); err != nil {
		return nil, err
	}
	for k, i := range r.numbers {
		copy(out[i*c:][:c], counted[k*c:][:c])
	}
	return out, nil
}

// CopyRows returns the rows of train as often as their weights say, for algorithms that take
// a row at a time. It returns a *ParameterError for weights that are neither equal nor whole.
func CopyRows(algorithm string, train data.Source, o Options) (data.Source, error) {
	r, err := CountRows(algorithm, train, o)
	if err != nil || o.Weights == nil {
		return r.Source, err
	}
	n, copies := r.Source.Len(), r.Copies.Len()
	can := copies <= mostCopied*n && !slices.ContainsFunc(o.Weights, func(s float64) bool { return s != math.Trunc(s) })
	switch {
	case r.Weights == nil && (!can || copies == n):
		return r.Source, nil
	case !can:
		return nil, Invalid(algorithm, "weights", "other numbers", fmt.Sprintf("whole numbers with a mean up to %d, because this algorithm takes copies of the rows; use falkon, log-falkon, krr, nystrom, landweber or sgdrf", mostCopied))
	}
	rows := make([]int, copies)
	for v := range rows {
		rows[v] = r.Copies.Row(v)
	}
	return data.Subset(r.Source, rows)
}

// mostCopied is the largest mean of the weights of CopyRows.
const mostCopied = 100
