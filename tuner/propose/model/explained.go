package model

import (
	"math"
	"slices"

	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/stream"
)

// Failures teach suggestions as far as the parameters explain them. The gain of the model of success
// over a constant rate of failures is the difference of log-likelihoods, of leave-one-out predictions
// at a model event, and of predictions of the results since. The model counts while the gain is at
// least leastGain, because hyper-parameters are fitted to failures at random as well.

// leastGain is the logarithm of 20. Failures at random often have a small positive gain.
const leastGain = 3

// severalPower is the power of the probability of success with several objectives.
const severalPower = 4

func (e *Engine) labelPower() float64 {
	if e.builder.objectives > 1 {
		return severalPower
	}
	return 1
}

// explainedRows is how many results leave-one-out predictions are made for, for the sake of
// time (see toExplain).
const explainedRows = 160

// explained returns the gain of leave-one-out predictions, under the hyper-parameters of the
// surface of success.
func (a *builder) explained(list []Result, s *Surface) (float64, error) {
	at := a.toExplain(list)
	k, err := s.kernel(a.space)
	if err != nil {
		return 0, err
	}
	var samples []sample
	failures := 0
	for _, i := range at {
		samples = append(samples, s.samples(&list[i], success)...)
		if list[i].Failed {
			failures++
		}
	}
	data := (&posterior{k: k}).data(samples...)
	exact, err := gp.NewExact(k, gp.Data{X: data.X, Y: data.Y}, gp.Options{NoiseVariance: s.Noise, Mean: s.Mean})
	if err != nil {
		return 0, err
	}
	gain, others := 0.0, exact.LeaveOneOut()
	for row, i := range at {
		before := failures
		if list[i].Failed {
			before--
		}
		gain += gainOf(&list[i], others.Mean[row], max(others.Variance[row]-s.Noise, 0), before, len(at)-1)
	}
	return gain, nil
}

// toExplain returns the results that leave-one-out predictions are made for, ascending. If there
// are more than explainedRows, all failures are among them that fill at most a half, and the
// others are drawn by the study's seed.
func (a *builder) toExplain(list []Result) []int {
	var failed, others []int
	for i := range list {
		if list[i].Failed {
			failed = append(failed, i)
		} else {
			others = append(others, i)
		}
	}
	if len(list) > explainedRows {
		rng := stream.New(stream.Derive(a.seed, "bkb explained", uint64(len(list))))
		n := min(len(failed), max(explainedRows/2, explainedRows-len(others)))
		failed, others = drawn(rng, failed, 0, n), drawn(rng, others, 0, explainedRows-n)
	}
	at := slices.Concat(failed, others)
	slices.Sort(at)
	return at
}

// label returns the label of success.
func label(r *Result) float64 {
	if r.Failed {
		return -1
	}
	return 1
}

// gainOf returns the gain of one prediction of success, from the mean and the variance of its
// label, over the rate of failures among others.
func gainOf(r *Result, mean, variance float64, failures, of int) float64 {
	constant := rate(failures, of)
	if !r.Failed {
		constant = 1 - constant
	}
	return logNormal(label(r)*mean/math.Sqrt(variance+labelNoise)) - math.Log(constant)
}

// rate returns the rate of failures among a number of results.
func rate(failures, of int) float64 { return (float64(failures) + 0.5) / (float64(of) + 1) }

// hearSuccess adds the gain of the prediction of the last result followed, which the model of
// success has not received.
func (e *Engine) hearSuccess(r *Result) {
	if s := e.success(); s != nil {
		mean, variance := s.predict(kernel.NewPoints(1, len(r.X), r.X))
		e.gained += gainOf(r, mean[0], variance[0], e.failures, e.told)
	}
	e.count(r)
}

// count counts a result that failed.
func (e *Engine) count(r *Result) {
	if r.Failed {
		e.failures++
	}
	e.unfit = e.unfit || r.Unfit
}

// Failures returns the number of results that failed.
func (e *Engine) Failures() int { return e.failures }

// success returns the posterior of success, nil if there is none.
func (e *Engine) success() *posterior {
	if len(e.surfaces) > e.builder.objectives {
		return e.surfaces[e.builder.objectives]
	}
	return nil
}

// Blames reports whether parameters explain failures, so that suggestions avoid places like
// theirs. They do if a trial was told as infeasible, because that is said of its configuration.
// With several objectives they always do.
func (e *Engine) Blames() bool {
	return e.success() != nil && (e.unfit || e.builder.objectives > 1 || e.Event.Explained+e.gained >= leastGain)
}
