package sgdrf

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/minibatch"
	"github.com/bkbtuner/bkb/sketch"
)

// Fit implements learners.Estimator. An iteration is a pass over the data. Its Objective is the
// weighted mean of the loss over the mini-batches of the pass, each before its own step. Iterates
// that grow without bound give a *learners.DivergenceError, with the best model before.
func (p Params) Fit(ctx context.Context, train data.Source, o learners.Options) (learners.Model, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	passes := cmp.Or(p.Passes, DefaultPasses)
	monitor, err := learners.NewMonitor(ctx, algorithm, passes, train, o)
	if err != nil {
		return nil, err
	}
	s, err := p.newDescent(ctx, train, passes, o)
	if err != nil {
		return nil, err
	}
	train = s.Source
	s.grad.phi.UseDevice(s.b, passes*((train.Len()+s.b-1)/s.b))
	defer s.grad.phi.Close()
	for pass := 1; pass <= passes; pass++ {
		rng := stream.New(stream.Derive(o.Seed, "sgdrf/pass", uint64(pass)))
		objective, err := s.pass(ctx, train, rng)
		if err != nil {
			return monitor.FinishWithin(ctx, err, s.now)
		}
		stop, err := monitor.Step(ctx, learners.Iterate{
			Iteration: pass, Passes: float64(s.rows) / float64(train.Len()), Rows: s.rows,
			Objective: objective, Residual: math.NaN(), Model: s.model,
		})
		if stop || err != nil {
			return monitor.Finish(err)
		}
	}
	return monitor.Finish(nil)
}

// descent is the state of a fit.
type descent struct {
	learners.Rows
	p      Params
	phi    sketch.FeatureMap
	c, b   int
	step   float64 // γ
	t      int     // steps so far
	passes int     // begun
	rows   int64   // processed
	w      []float64
	mean   *average
	grad   *gradient
	done   []float64 // the model after the last pass
}

func (p Params) newDescent(ctx context.Context, train data.Source, passes int, o learners.Options) (*descent, error) {
	rows, err := learners.CountRows(algorithm, train, o)
	if err != nil {
		return nil, err
	}
	train = rows.Source
	n, m := train.Len(), p.Features
	if m == 0 {
		m = DefaultFeatures(rows.Copies.Len())
	}
	b := min(p.BatchSize, n)
	if b == 0 {
		b = recommended(n).BatchSize
	}
	phi, err := p.newFeatures(ctx, train.Dim(), m, stream.Derive(o.Seed, "sgdrf/features", 0))
	if err != nil {
		return nil, err
	}
	s := &descent{p: p, Rows: rows, phi: phi, c: train.Outputs(), b: b, step: p.StepSize}
	if s.step == 0 {
		k, err := Estimate(ctx, phi, train, rows.Weights, o.Seed)
		if err != nil {
			return nil, err
		}
		scale := p.StepScale
		if scale == 0 {
			scale = DefaultStepScale(b, n)
		}
		s.step = scale * k.Step(b, p.Lambda)
	}
	s.w, s.done = make([]float64, m*s.c), make([]float64, m*s.c)
	s.mean = newAverage(p.averaging(passes), m*s.c)
	s.grad = newGradient(phi, p.loss(), s.c, b, learners.Workers(o.Workers))
	return s, nil
}

// pass makes the steps of one pass and returns the mean loss. It diverges if the loss
// is not a number, or far above the loss of the function 0.
func (s *descent) pass(ctx context.Context, train data.Source, rng *rand.Rand) (float64, error) {
	s.passes++
	total, zero, rows := 0.0, 0.0, 0
	err := s.p.settings().Batches(s.b).PassWeighted(ctx, train, s.Weights, rng, func(x kernel.Rows, y, weights []float64) error {
		loss, err := s.grad.at(s.w, x, y, weights)
		if err != nil {
			return err
		}
		if err := minibatch.CheckLoss(algorithm, s.passes, loss, math.Inf(1)); err != nil {
			return err
		}
		total += loss
		for i, v := range y {
			zero += weight(weights, i/s.c) * s.grad.value(v)
		}
		rows += x.Len()
		s.update(x.Len())
		return nil
	})
	s.rows += int64(rows)
	if err == nil {
		err = minibatch.CheckLoss(algorithm, s.passes, total, zero)
	}
	if err != nil {
		return 0, err
	}
	s.mean.of(s.done, s.w)
	return total / float64(rows), nil
}

// update makes the step w ← (1−γ_tλ)w − (γ_t/b)ΦᵀSψ(Φw − y). If the last mini-batch has
// n < b rows, its step is smaller in proportion, because γ_t would be too large for it.
func (s *descent) update(n int) {
	s.t++
	step := s.p.settings().Decayed(s.step, s.t)
	share := float64(n) / float64(s.b)
	keep, move := 1-step*share*s.p.Lambda, step/float64(s.b)
	for j, g := range s.grad.sum {
		s.w[j] = keep*s.w[j] - move*g
	}
	s.mean.add(s.w)
}

// now returns the function after the last step, nil before the first.
func (s *descent) now() (learners.Model, error) {
	if s.t == 0 {
		return nil, nil
	}
	s.mean.of(s.done, s.w)
	return s.model()
}

// model returns the function after the last complete pass.
func (s *descent) model() (learners.Model, error) {
	return learners.LinearIn(s.phi, slices.Clone(s.done), s.c, s.phi.Dim())
}
