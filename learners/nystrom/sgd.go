package nystrom

import (
	"math"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/blocked"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/minibatch"
)

// sgd descends along the gradients of mini-batches, in a new random order in every pass.
func (f *run) sgd(m *learners.Monitor) error {
	gamma := f.StepSize
	if gamma == 0 {
		s, beta, err := f.curvature()
		if err != nil {
			return err
		}
		b := float64(f.BatchSize)
		gamma = reciprocal((beta + (b-1)*s) / b)
	}
	d := &stochastic{
		run: f, gamma: gamma, centers: kernel.Prepare(f.Kernel, f.basis.points),
		w: make([]float64, f.basis.m*f.c), scratch: make([]kernel.Scratch, f.basis.workers),
		block: make([]float64, f.BatchSize*f.basis.m), error: make([]float64, f.BatchSize*f.c),
	}
	w := slices.Clone(d.w) // after the last complete pass
	plan := minibatch.Plan{Sampling: minibatch.Reshuffle, BatchSize: f.BatchSize}
	for t := 1; t <= f.Iterations; t++ {
		d.sum = 0
		rng := stream.New(stream.Derive(f.o.Seed, "nystrom sgd", uint64(t)))
		if err := plan.PassWeighted(f.ctx, f.train, f.rows, rng, d.step); err != nil {
			return err
		}
		if !(d.sum <= 100*d.targets/float64(t)) {
			return f.diverged(t)
		}
		w = slices.Clone(d.w)
		stop, err := m.Step(f.ctx, learners.Iterate{
			Iteration: t, Passes: float64(t), Rows: int64(t) * int64(f.n),
			Objective: d.sum / float64(f.n), Residual: math.NaN(), Notes: f.takeNotes(), Model: f.model(&w),
		})
		if stop || err != nil {
			return err
		}
	}
	return nil
}

// stochastic is the state of stochastic gradient descent.
type stochastic struct {
	*run
	gamma   float64
	centers kernel.Prepared
	w       []float64
	scratch []kernel.Scratch
	block   []float64 // K of a mini-batch
	error   []float64 // its outputs minus its targets
	sum     float64   // of squared errors, in this pass
	targets float64   // of squared targets, in all passes
}

// step is w ← w − γ(Pᵀ K_bᵀS_b(K_b P w − y_b)/b + λPᵀK_MM P w).
func (d *stochastic) step(x kernel.Rows, y, weights []float64) error {
	if err := d.Kernel.Check(x); err != nil {
		return err
	}
	rows, m, c, workers := x.Len(), d.basis.m, d.c, d.basis.workers
	k := blocked.New(rows, m, d.block[:rows*m])
	fill(d.centers, k, x, d.scratch)
	if err := checkValues(k.Data, m); err != nil {
		return err
	}
	e := blocked.New(rows, c, d.error[:rows*c])
	coef := d.basis.coefficients(d.w, c)
	blocked.Gemm(workers, false, k, false, blocked.New(m, c, coef), 1, 0, e)
	for i, v := range y {
		s := 1.0
		if weights != nil {
			s = weights[i/c]
		}
		e.Data[i] -= v
		d.sum += s * e.Data[i] * e.Data[i]
		d.targets += s * v * v
		e.Data[i] *= s
	}
	gradient := blocked.New(m, c, coef)
	blocked.Gemm(workers, true, k, false, e, 1/float64(rows), 0, gradient)
	d.basis.pull(gradient.Data, c)
	d.basis.addPenalty(gradient.Data, d.w, d.Lambda, c)
	for i, g := range gradient.Data {
		d.w[i] -= d.gamma * g
	}
	return nil
}
