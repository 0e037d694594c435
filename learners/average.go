package learners

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// Average is f(x) = Σ_m w_m f_m(x) of members with the weights w_m. The members have the same
// inputs and outputs.
type Average struct {
	members []Model
	weights []float64
}

var _ Model = (*Average)(nil)

// mostMembers is the largest number of members.
const mostMembers = 64

// NewAverage returns the average of 1 to 64 models with the squared loss, each with a finite
// weight. It keeps both slices, and the caller must not change them any more. It returns a
// *kernel.ShapeError if the shapes differ, a *kernel.NonFiniteError, and a *DataError for an
// output with another meaning than E[y | x], of which an average has no meaning.
func NewAverage(members []Model, weights []float64) (*Average, error) {
	if n := len(members); n < 1 || n > mostMembers || len(weights) != n {
		return nil, &kernel.ShapeError{In: "learners", What: "weights of members", Got: len(weights), Want: fmt.Sprintf("one for each of 1 to %d members, of which there are %d", mostMembers, n)}
	}
	first := members[0]
	for i, m := range members {
		for _, c := range []struct {
			what      string
			got, want int
		}{{"inputs", m.Dim(), first.Dim()}, {"outputs", m.Outputs(), first.Outputs()}} {
			if c.got != c.want {
				return nil, &kernel.ShapeError{
					In: "learners", What: fmt.Sprintf("%s of member %d", c.what, i), Got: c.got, Want: fmt.Sprintf("%d, as of the first", c.want),
				}
			}
		}
		if LinkOf(m) != Expected {
			return nil, &DataError{Data: fmt.Sprintf("member %d", i), Reason: "it has probabilities, and only outputs of the squared loss have an average"}
		}
	}
	if err := checkFinite("weights of members", weights, 1); err != nil {
		return nil, err
	}
	return &Average{members, weights}, nil
}

// Dim returns d.
func (a *Average) Dim() int { return a.members[0].Dim() }

// Outputs returns c.
func (a *Average) Outputs() int { return a.members[0].Outputs() }

// Members returns the models, which the caller must not change.
func (a *Average) Members() []Model { return a.members }

// Weights returns the weights of the members, which the caller must not change.
func (a *Average) Weights() []float64 { return a.weights }

// Predict sets dst, n×c, to f(x_i). It reads x once for each member. Its errors are those of
// the members.
func (a *Average) Predict(ctx context.Context, dst []float64, x kernel.Source) error {
	if err := checkPredict(a, dst, x); err != nil {
		return err
	}
	sum, part := make([]float64, len(dst)), dst
	for i, m := range a.members {
		if err := m.Predict(ctx, part, x); err != nil {
			return err
		}
		for j, f := range part {
			sum[j] += a.weights[i] * f
		}
	}
	copy(dst, sum)
	return nil
}

// averageTolerance is the decrease of the objective of AverageWeights, relative to the
// objective, below which a step ends it. averageSteps is its largest number of steps.
const (
	averageTolerance = 1e-12
	averageSteps     = 10_000
)

// AverageWeights returns weights w ≥ 0 with the sum 1 of models whose residuals on rows that
// they were not fitted to are given, those of a model in one slice. They minimise
//
//	Σ_i s_i (Σ_m w_m r_mi)² + ρ T ‖w‖²,   T = min_m Σ_i s_i r_mi²
//
// This is stacking (Breiman, 1996) with a penalty that draws the weights of good models to each
// other. s are the weights of the residuals, or nil. It exchanges weight between two models at a
// time, by an exact line search. A weight below least is then 0, and the others are found again.
func AverageWeights(residuals [][]float64, s []float64, rho, least float64) []float64 {
	k := len(residuals)
	gram := make([]float64, k*k)
	best := math.Inf(1)
	for i, a := range residuals {
		for j, b := range residuals[:i+1] {
			sum := 0.0
			for t, v := range a {
				if s == nil {
					sum += v * b[t]
				} else {
					sum += s[t] * v * b[t]
				}
			}
			gram[i*k+j], gram[j*k+i] = sum, sum
		}
		best = math.Min(best, gram[i*k+i])
	}
	for i := range k {
		gram[i*k+i] += rho * best
	}
	used := make([]int, k)
	for i := range used {
		used[i] = i
	}
	w := make([]float64, k)
	for {
		exchange(w, gram, used)
		kept := slices.DeleteFunc(slices.Clone(used), func(i int) bool { return w[i] < least })
		if len(kept) == len(used) || len(kept) == 0 {
			return w
		}
		used = kept
	}
}

// exchange minimises wᵀGw over the weights of the used models, with the sum 1.
func exchange(w, gram []float64, used []int) {
	k := len(w)
	clear(w)
	for _, i := range used {
		w[i] = 1 / float64(len(used))
	}
	slope := make([]float64, k) // half the gradient
	for range averageSteps {
		value := 0.0
		for i := range k {
			slope[i] = 0
			for j, v := range w {
				slope[i] += gram[i*k+j] * v
			}
			value += w[i] * slope[i]
		}
		up, down := -1, -1
		for _, i := range used {
			if up < 0 || slope[i] < slope[up] {
				up = i
			}
			if w[i] > 0 && (down < 0 || slope[i] > slope[down]) {
				down = i
			}
		}
		gain := slope[down] - slope[up]
		if !(gain > averageTolerance*value) {
			return
		}
		curvature := gram[up*k+up] + gram[down*k+down] - 2*gram[up*k+down]
		step := w[down]
		if curvature > 0 {
			step = math.Min(step, gain/curvature)
		}
		w[up] += step
		w[down] -= step
	}
}
