package training

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
)

// raceRows is the number of training rows of a race, and raceExact the largest number of rows of
// data for which exact ridge regression takes part.
const raceRows, raceExact = 2000, 10_000

// raceKernel is the kernel with learned length scales.
const raceKernel = "matern52"

// Racers are the learners of a race. Where errors are alike, the first one wins.
func Racers() []Algorithm { return []Algorithm{logFalkon, falkonAlgorithm, ridgeRegression, sgdRF} }

// Contender is a learner in a race with its least error on validation rows.
type Contender struct {
	Name  string
	Error float64
}

// Race fits learners, of those that suit the data, at default settings and with learned length
// scales, with several λ, to up to 2000 training rows. It returns the errors on validation rows by the
// measure of r, and its name. Classes have the logarithmic loss, of calibrated probabilities where a
// learner has none. The first is the winner. It has less than 0.99 times the error of those that are
// simpler.
func Race(ctx context.Context, d *Data, r Run, enter []Algorithm) (ranked []Contender, measure string, err error) {
	rows, n := *d, d.Train.Len()
	if n > raceRows {
		some := make([]int, raceRows)
		for i := range some {
			some[i] = i * n / raceRows
		}
		if rows.Train, err = data.Subset(d.Train, some); err != nil {
			return nil, "", err
		}
		rows.Weights = data.Pick(d.Weights, some)
	}
	p, err := NewProblem(ctx, &rows, r.Options.Seed)
	if err != nil {
		return nil, "", err
	}
	weights, err := ClassWeights(ctx, r.Classes, d.Encoding, rows.Train, rows.Weights)
	if err != nil {
		return nil, "", &ClassError{err}
	}
	measure = r.Measure
	classes := p.Task == data.Classification
	if classes && measure == "" {
		measure = "log-loss"
	}
	learned := map[string]Problem{} // by the values that Learn reads
	failed := errors.New("no learner of the race takes these settings for a target of this kind; name a learner, as in tuner auto falkon")
	for _, a := range enter {
		if a.Name == logFalkon.Name && !classes || a.Name == ridgeRegression.Name && n > raceExact || r.Measure != "" && a.CheckMeasure(r.Measure) != nil {
			continue
		}
		least := math.Inf(1)
		for _, v := range []Values{{}, {"kernel": raceKernel, lengthScaleName: Auto}} {
			maps.Copy(v, r.Values)
			in := reader{&a, v}
			key := fmt.Sprint(in.text("kernel"), in.learns(), v[lengthScaleName] == "", in.text(metricName))
			with, ok := learned[key]
			if !ok {
				with = p
				err = a.Learn(ctx, v, rows.Train, weights, &with, r.Options.Seed, r.Options.Workers)
			}
			var e float64
			if err == nil {
				learned[key] = with
				measure, e, err = a.raced(ctx, v, &rows, weights, with, measure, r.Options)
			}
			if err == nil {
				err = a.walkRidge(v, with, func(v Values, gain float64) (bool, error) {
					_, x, err := a.raced(ctx, v, &rows, weights, with, measure, r.Options)
					if err != nil || !(x < gain*e) {
						return false, err
					}
					e = x
					return true, nil
				})
				least = min(least, e)
			}
			if ctx.Err() != nil {
				return nil, "", ctx.Err()
			} else if err != nil {
				failed, err = err, nil
				continue
			}
		}
		if least < math.Inf(1) {
			ranked = append(ranked, Contender{a.Name, least})
		}
	}
	if len(ranked) == 0 {
		return nil, "", failed
	}
	winner := 0
	for i, c := range ranked {
		if c.Error < leastGain*ranked[winner].Error {
			winner = i
		}
	}
	best := ranked[winner]
	return slices.Insert(slices.Delete(ranked, winner, winner+1), 0, best), measure, nil
}

// raced returns the error of one fit on the validation rows, and the name of the measure.
func (a *Algorithm) raced(ctx context.Context, v Values, d *Data, weights []float64, p Problem, measure string, o learners.Options) (string, float64, error) {
	e, err := a.Estimator(v, p)
	if err != nil {
		return measure, 0, err
	}
	m, err := e.Fit(ctx, d.Train, learners.Options{Seed: o.Seed, Workers: o.Workers, Weights: weights})
	if err != nil {
		return measure, 0, err
	}
	if learners.NeedsProbabilities(measure) && learners.LinkOf(m) == learners.Expected {
		if m, err = learners.Calibrate(ctx, m, m, d.Validation, d.ValidationWeights); err != nil {
			return measure, 0, err
		}
	}
	s := a.Scoring(v, p)
	s.Weights, s.Link = d.ValidationWeights, learners.LinkOf(m)
	name, f, err := MeasureNamed(measure, d.Encoding, s)
	if err != nil {
		return measure, 0, err
	}
	x, err := ErrorOn(ctx, m, d.Validation, f)
	return name, x, err
}
