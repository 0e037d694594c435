package falkon_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/falkon"
	"github.com/bkbtuner/bkb/learners/krr"
	"github.com/bkbtuner/bkb/learners/learnerstest"
)

// Every output is that of the solution without its row and without a centre there. The
// oracle solves the normal equations.
func TestLeaveOneOutIsAFitWithoutTheRow(t *testing.T) {
	const n, c, lambda = 40, 2, 1e-4
	train := learnerstest.Data(t, n, c, 3, false)
	k, err := kernel.NewMatern32(1.5)
	if err != nil {
		t.Fatal(err)
	}
	gram, err := kernel.Gramian(k, train.Rows())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []int{n, 25} {
		for _, how := range []falkon.Factorization{falkon.FactorPivoted, falkon.FactorCholesky} {
			t.Run(fmt.Sprintf("%d centres, %q", m, how), func(t *testing.T) {
				p := falkon.Params{Kernel: k, Lambda: lambda, Centers: m, Factorization: how}
				learnerstest.LeaveOneOut(t, p, train, 1e-6, func(s []float64, i int) []float64 {
					var counted []int
					var weights []float64 // of mean 1 among the rows that count
					for j, w := range s {
						if w > 0 {
							counted = append(counted, j)
						}
					}
					if len(counted) < n {
						for _, j := range counted {
							weights = append(weights, s[j]*float64(len(counted))/n)
						}
					}
					src, err := data.Subset(train, counted)
					if err != nil {
						t.Fatal(err)
					}
					chosen, err := learners.ChooseCenters(t.Context(), k, src, learners.Sampling{Most: m, Weights: weights}, 1)
					if err != nil {
						t.Fatal(err)
					}
					centers := slices.DeleteFunc(data.Pick(counted, chosen.Indices), func(j int) bool { return j == i })
					return without(t, gram, s, train.Targets(), c, i, centers, lambda, 0)
				})
			})
		}
	}
}

// The part of K_MM that counts as 0 is that of a fit, also where all rows are centres. The
// Cholesky factorization adds it to the diagonal, and the oracle does too.
func TestLeaveOneOutHasTheEpsilonOfAFit(t *testing.T) {
	const n, lambda = 40, 1e-4
	train := learnerstest.Data(t, n, 1, 3, false)
	k, err := kernel.NewMatern32(1.5)
	if err != nil {
		t.Fatal(err)
	}
	gram, err := kernel.Gramian(k, train.Rows())
	if err != nil {
		t.Fatal(err)
	}
	rows := make([]int, n)
	for i := range rows {
		rows[i] = i
	}
	usual, err := krr.Params{Kernel: k, Lambda: lambda}.LeaveOneOut(t.Context(), train, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		p       falkon.Params
		epsilon float64
	}{
		{falkon.Params{Epsilon: 1e-2}, 1e-2},
		{falkon.Params{Epsilon: 1e-5}, 1e-5},
		{falkon.Params{Precision: kernel.Float32}, 1e-6},
	} {
		c.p.Kernel, c.p.Lambda, c.p.Centers, c.p.Factorization = k, lambda, n, falkon.FactorCholesky
		got, err := c.p.LeaveOneOut(t.Context(), train, learners.Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			others := slices.Delete(slices.Clone(rows), i, i+1)
			want := without(t, gram, slices.Repeat([]float64{1}, n), train.Targets(), 1, i, others, lambda, n*c.epsilon)[0]
			if far := math.Abs(usual[i] - want); math.Abs(got[i]-want) > 1e-9+0.01*far {
				t.Errorf("ε = %g, row %d: %.12g, a solution without it %.12g, that without ε %.12g", c.epsilon, i, got[i], want, usual[i])
			}
		}
	}
}

// without returns the outputs at row i of the solution for all other rows. K_MM has a jitter.
func without(t *testing.T, gram, s, y []float64, c, i int, centers []int, lambda, jitter float64) []float64 {
	t.Helper()
	n, m := len(s), len(centers)
	h, b, a := mat.NewDense(m, m, nil), mat.NewDense(m, c, nil), mat.NewDense(m, c, nil)
	for p, u := range centers {
		for q, v := range centers {
			sum := lambda * float64(n) * gram[u*n+v]
			if u == v {
				sum += lambda * float64(n) * jitter
			}
			for r := range n {
				if r != i {
					sum += s[r] * gram[r*n+u] * gram[r*n+v]
				}
			}
			h.Set(p, q, sum)
		}
		for j := range c {
			sum := 0.0
			for r := range n {
				if r != i {
					sum += s[r] * gram[r*n+u] * y[r*c+j]
				}
			}
			b.Set(p, j, sum)
		}
	}
	if err := a.Solve(h, b); err != nil {
		t.Fatal(err)
	}
	out := make([]float64, c)
	for p, u := range centers {
		for j := range c {
			out[j] += gram[i*n+u] * a.At(p, j)
		}
	}
	return out
}

// If a row has a copy among the centres, leaving it out leaves the centre. The oracle has the
// different centres of the other rows.
func TestLeaveOneOutKeepsTheCentreOfACopy(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 1))
	const n, lambda = 30, 1e-4
	x, y := kernel.NewPoints[float64](n, 1, nil), make([]float64, n)
	for i := range n {
		x.Row(i)[0] = float64(i/2) / 15
		if i >= 20 {
			x.Row(i)[0] = float64(i) / 30 // the last 10 rows have no copies
		}
		y[i] = math.Sin(6*x.Row(i)[0]) + 0.3*rng.NormFloat64()
	}
	train, err := data.NewMemory(x, y, 1)
	if err != nil {
		t.Fatal(err)
	}
	k, err := kernel.NewGaussian(0.02)
	if err != nil {
		t.Fatal(err)
	}
	gram, err := kernel.Gramian(k, x)
	if err != nil {
		t.Fatal(err)
	}
	s := slices.Repeat([]float64{1}, n)
	for _, how := range []falkon.Factorization{falkon.FactorPivoted, falkon.FactorCholesky} {
		p := falkon.Params{Kernel: k, Lambda: lambda, Centers: n, Factorization: how}
		got, err := p.LeaveOneOut(t.Context(), train, learners.Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			var centers []int
			for j := range n {
				if j != i && !slices.ContainsFunc(centers, func(l int) bool { return x.Row(l)[0] == x.Row(j)[0] }) {
					centers = append(centers, j)
				}
			}
			if want := without(t, gram, s, y, 1, i, centers, lambda, 0)[0]; math.Abs(got[i]-want) > 1e-6 {
				t.Errorf("%q, row %d: %.9g, a solution without it %.9g", how, i, got[i], want)
			}
		}
	}
}

// Other losses and paths do not take the closed form of the squared loss.
func TestLeaveOneOutIsOfTheSquaredLossAlone(t *testing.T) {
	k, err := kernel.NewGaussian(1)
	if err != nil {
		t.Fatal(err)
	}
	train, err := data.NewMemory(kernel.NewPoints(3, 1, []float64{0, 1, 2}), []float64{0, 1, 0}, 1)
	if err != nil {
		t.Fatal(err)
	}
	p := falkon.Params{Kernel: k, Lambda: 0.1}
	e := falkon.RobustParams{Params: p, Loss: learners.QuantileLoss}
	parameter := (*learners.ParameterError)(nil)
	if out, err := e.LeaveOneOut(t.Context(), train, learners.Options{}); !errors.As(err, &parameter) {
		t.Errorf("%v, %v", out, err)
	}
}

// Faults of parameters and data are those of a fit, and an interruption ends it.
func TestLeaveOneOutRefuses(t *testing.T) {
	k, err := kernel.NewGaussian(1)
	if err != nil {
		t.Fatal(err)
	}
	train, err := data.NewMemory(kernel.NewPoints(2, 1, []float64{0, 1}), []float64{0, 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	parameter := (*learners.ParameterError)(nil)
	if _, err := (falkon.Params{}).LeaveOneOut(t.Context(), train, learners.Options{}); !errors.As(err, &parameter) {
		t.Errorf("no kernel: %v", err)
	}
	if _, err := (falkon.Params{Kernel: k}).LeaveOneOut(t.Context(), train, learners.Options{Weights: []float64{1}}); !errors.As(err, &parameter) {
		t.Errorf("one weight: %v", err)
	}
	diverged := (*learners.DivergenceError)(nil)
	if _, err := (falkon.Params{Kernel: k, Lambda: 1e-17}).LeaveOneOut(t.Context(), train, learners.Options{}); !errors.As(err, &diverged) {
		t.Errorf("no residual in floating point: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (falkon.Params{Kernel: k}).LeaveOneOut(ctx, train, learners.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}
