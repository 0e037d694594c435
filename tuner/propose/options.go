package propose

import (
	"fmt"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/tuner/propose/acquire"
	"github.com/bkbtuner/bkb/tuner/propose/model"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// BKBOptions are the options of the proposer "bkb", in JSON under the names that the
// fields give in parentheses.
type BKBOptions struct {
	Model  model.Options   // how results are modelled
	Choice acquire.Options // how suggestions and recommendations are chosen
}

// defaultStart is how many results there are before there is a model. Several objectives need more,
// because suggestions are nowhere near the most of the space.
func defaultStart(spec study.Spec) int64 {
	if len(spec.Objectives) > 1 {
		return min(int64(2*spec.Space.Dim()+4), 16)
	}
	return 4
}

// defaultWidth is c of the bounds (bench/docs/experiments.md, "Width of the confidence bounds"). With
// narrow bounds the search of a large table stays among the first good categories.
func defaultWidth(sp *space.Space) float64 {
	if n := sp.Cardinality(); n > acquire.MostListed && n <= finest {
		return 0.4
	}
	return 0.05
}

// branches reports whether some parameters of a space depend on others.
func branches(sp *space.Space) bool {
	return slices.ContainsFunc(sp.Parameters(), func(p space.Parameter) bool { return len(p.When) > 0 })
}

// finest is the number of configurations up to which a finite space is small, so that the start
// design and the bounds cover it.
const finest = 1e5

// evolveFrom is the default of evolve_from.
const evolveFrom = 200

// leastFar and mostFar are the numbers of ordered coordinates with which other basins need a model.
// In two it delays the search for the best of one, and Sobol' points find the basins. In more it has
// cost more than it gained.
const leastFar, mostFar = 3, 4

// low reports whether a large space has few ordered coordinates.
func low(sp *space.Space) bool {
	n := 0
	for _, a := range sp.Axes() {
		if a.Ordered {
			n++
		}
	}
	return n >= leastFar && n <= mostFar && sp.Cardinality() > finest
}

func parseBKBOptions(text string, spec study.Spec) (BKBOptions, error) {
	o := study.ReadOptions("proposer.options", text)
	var b BKBOptions
	m, c := &b.Model, &b.Choice
	m.Start = int(o.Whole("start", defaultStart(spec), 1, 10_000))
	m.Cap = int(o.Whole("cap", 256, 16, 2048))
	m.Sampler = o.Choice("sampler", model.AutoSampler, model.RLSSampler, model.BLESSSampler)
	c.Theory = o.Choice("beta", "practical", "theory") == "theory"
	c.Width = o.Number("width", defaultWidth(spec.Space))
	c.ExploitEvery = int(o.Whole("exploit_every", 4, 0, 1000))
	c.OnDuplicate = acquire.Duplicates(o.Choice("on_duplicate", string(acquire.Resample), string(acquire.Replicate), string(acquire.Reuse)))
	noise := o.Choice("noise", "learn", "none")
	c.Exact, c.Repeat = noise == "none", noise == "learn" && c.OnDuplicate == acquire.Resample
	far := o.Choice("far", "auto", "on", "off")
	m.Far = far == "on" || far == "auto" && (branches(spec.Space) || low(spec.Space))
	c.EvolveFrom = int(o.Whole("evolve_from", evolveFrom, 0, 1_000_000))
	c.Quadratic = o.Choice("quadratic", "on", "off") == "on"
	c.StopGap, c.StopAfter = o.Number("stop_gap", 0), 2*m.Start
	m.MinNoise = o.Number("min_noise", 1e-6)
	m.Constraints = model.ReadConstraints(o)
	m.IgnoreFailures = o.Choice("failures", "learn", "ignore") == "ignore"
	m.MaxStep = o.Whole("max_step", 0, 0, math.MaxInt64)
	m.IgnoreReports = o.Choice("reports", "learn", "ignore") == "ignore"
	cost := o.Choice("cost", "ignore", "told", "seconds")
	m.Cost = map[string]model.CostSource{"told": model.CostTold, "seconds": model.CostSeconds}[cost]

	evolves := c.EvolveFrom != evolveFrom && c.EvolveFrom > 0
	if evolves && !acquire.Evolvable(spec.Space) {
		o.Fail("proposer.options.evolve_from", fmt.Sprint(c.EvolveFrom), "needs 2 to 16 parameters that are always present, are continuous or have more than 64 values, and have no constraints", "leave it out")
	}
	for _, one := range []struct {
		name, value string
		asked       bool
	}{
		{"stop_gap", fmt.Sprint(c.StopGap), c.StopGap > 0},
		{"noise", noise, c.Exact},
		{"cost", cost, m.Cost != model.CostIgnored},
		{"evolve_from", fmt.Sprint(c.EvolveFrom), evolves},
	} {
		if one.asked && len(spec.Objectives) != 1 {
			o.Fail("proposer.options."+one.name, one.value, "is for studies with one objective", "leave it out")
		}
	}
	if !(c.StopGap >= 0) {
		o.Fail("proposer.options.stop_gap", fmt.Sprint(c.StopGap), "must be ≥ 0", "")
	}
	if !(c.Width > 0 && c.Width <= 100) {
		o.Fail("proposer.options.width", fmt.Sprint(c.Width), "must be > 0 and at most 100", "")
	}
	if !(m.MinNoise >= 1e-10 && m.MinNoise <= 1) {
		o.Fail("proposer.options.min_noise", fmt.Sprint(m.MinNoise), "must be 1e-10 to 1", "")
	}
	return b, o.Finish(BKB)
}
