package explain

import (
	"context"
	"math"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/sobol"
	"github.com/bkbtuner/bkb/tuner/propose/model"
	"github.com/bkbtuner/bkb/tuner/space"
)

// Share is the importance of one coordinate.
type Share struct {
	First, Total float64 // indices, in [0, 1] up to the error of the estimate
	// FirstError and TotalError are standard errors of the estimates.
	FirstError, TotalError float64
}

// Sobol returns the Sobol' indices of f on [0, 1]^dim, from n base points. f returns its
// values at rows of dim coordinates, which it must not keep. A constant f has shares of 0.
// The error is that of ctx or of f. Estimates outside [0, 1] are moved to the nearer end.
func Sobol(ctx context.Context, dim, n int, seed uint64, f func(rows [][]float64) ([]float64, error)) ([]Share, error) {
	points := sobol.New(2*dim, seed)
	a, b := make([][]float64, n), make([][]float64, n)
	for i := range n {
		row := make([]float64, 2*dim)
		points.At(uint32(i), row)
		a[i], b[i] = row[:dim:dim], row[dim:]
	}
	fa, err := f(a)
	if err != nil {
		return nil, err
	}
	fb, err := f(b)
	if err != nil {
		return nil, err
	}
	mean, variance := moments(append(append([]float64(nil), fa...), fb...))
	shares := make([]Share, dim)
	if variance <= 1e-24*mean*mean {
		return shares, nil
	}
	mixed := make([][]float64, n) // rows of a with one coordinate of b
	for i := range mixed {
		mixed[i] = make([]float64, dim)
	}
	first, total := make([]float64, n), make([]float64, n)
	for j := range dim {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for i := range mixed {
			copy(mixed[i], a[i])
			mixed[i][j] = b[i][j]
		}
		fm, err := f(mixed)
		if err != nil {
			return nil, err
		}
		for i := range fm {
			first[i] = (fb[i] - mean) * (fm[i] - fa[i]) / variance
			total[i] = (fa[i] - fm[i]) * (fa[i] - fm[i]) / (2 * variance)
		}
		s := &shares[j]
		s.First, s.FirstError = withError(first)
		s.Total, s.TotalError = withError(total)
		s.First, s.Total = min(max(s.First, 0), 1), min(max(s.Total, 0), 1)
	}
	return shares, nil
}

// moments returns mean and variance.
func moments(values []float64) (mean, variance float64) {
	n := float64(len(values))
	for _, v := range values {
		mean += v / n
	}
	for _, v := range values {
		variance += (v - mean) * (v - mean) / n
	}
	return mean, variance
}

// withError returns the mean and its standard error for independent values. The values of
// Sobol' points are not independent, and the true error is rather smaller.
func withError(values []float64) (mean, se float64) {
	mean, variance := moments(values)
	return mean, math.Sqrt(variance / float64(len(values)))
}

// BasePoints is the number of base points of [Model].
const BasePoints = 1024

// Model returns the Sobol' indices of the mean of an objective by a model, one for each
// coordinate of the space. The mean is that of the model's targets. In the objective's unit
// a few bad configurations would decide the variance of an objective with a long tail. Coordinates are independent and uniform, and those of inactive
// parameters have no effect.
func Model(ctx context.Context, f *model.Frozen, sp *space.Space, objective int) ([]Share, error) {
	const seed = 1
	sp = sp.Free()
	return Sobol(ctx, sp.Dim(), BasePoints, seed, func(rows [][]float64) ([]float64, error) {
		x := kernel.NewPoints[float64](len(rows), sp.Dim(), nil)
		for i, u := range rows {
			copy(x.Row(i), u)
			if err := sp.Snap(x.Row(i)); err != nil {
				return nil, err
			}
		}
		return f.Targets(objective, x), nil
	})
}
