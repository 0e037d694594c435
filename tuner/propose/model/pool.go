package model

import (
	"math"

	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"gonum.org/v1/gonum/stat/distuv"
)

// Pool has the configurations that completed trials measured. Equal configurations are one.
type Pool struct {
	List    []Pooled // by the first trial
	Repeats Repeats  // among the measurements
}

// Pooled is a configuration with the means of its measurements, in which each replicate and
// each completed late result counts once.
type Pooled struct {
	Trial     int // the first completed one of those that break the limits least
	Config    space.Config
	Values    []float64 // of the objectives, where larger is better
	Violation float64   // of the limits, see [Violation]

	least   float64 // violation of the trial
	measure []moments
}

// NewPool reads the completed trials of v, without the measurements that left names by trial and
// epoch. The epoch of a trial's own outcome is 0.
func NewPool(v View, constraints []Constraint, left func(trial, epoch int) bool) *Pool {
	spec, p, at := v.Spec(), new(Pool), make(map[uint64]int)
	for t := range v.All(0) {
		if t.State != study.Completed || left != nil && left(t.Number, 0) {
			continue
		}
		key, least := Fingerprint(t.Config), Violation(constraints, t.Outcome)
		i, known := at[key]
		if !known {
			i = len(p.List)
			at[key] = i
			p.List = append(p.List, Pooled{Trial: t.Number, Config: t.Config, least: least, measure: make([]moments, len(spec.Objectives)+len(constraints))})
		}
		one := &p.List[i]
		if least < one.least {
			one.Trial, one.least = t.Number, least
		}
		p.add(one, key, spec.Objectives, constraints, t.Outcome)
		for _, l := range t.Late {
			if l.Outcome.State == study.Completed && (left == nil || !left(t.Number, l.Epoch)) {
				p.add(one, key, spec.Objectives, constraints, l.Outcome)
			}
		}
	}
	for i := range p.List {
		one := &p.List[i]
		for j := range spec.Objectives {
			one.Values = append(one.Values, one.measure[j].mean)
		}
		for j, c := range constraints {
			m := one.measure[len(spec.Objectives)+j]
			if m.count == 0 {
				m.mean = math.NaN()
			}
			one.Violation += c.violation(m.mean)
		}
		one.measure = nil
	}
	return p
}

// add adds the measurements of an outcome.
func (p *Pool) add(one *Pooled, key uint64, objectives []study.Objective, constraints []Constraint, o study.Outcome) {
	y := measures(objectives, o)
	if y == nil {
		return
	}
	for j, m := range y {
		one.measure[j].add(m)
	}
	for j, c := range constraints {
		if m, told := measured(o, c.metric); told {
			one.measure[len(y)+j].add(m)
		}
	}
	p.Repeats.add(key, y[0])
}

// add adds a measurement to a mean.
func (m *moments) add(o Measure) {
	n := float64(max(o.Count, 1))
	if m.count == 0 {
		*m = moments{n, o.Value}
		return
	}
	all := m.count + n
	m.count, m.mean = all, m.mean*(m.count/all)+o.Value*(n/all)
}

// Least returns the configurations that break the limits least, which are all that keep them if
// some do.
func (p *Pool) Least() []Pooled {
	least := math.Inf(1)
	for i := range p.List {
		least = min(least, p.List[i].Violation)
	}
	var out []Pooled
	for _, one := range p.List {
		if one.Violation == least {
			out = append(out, one)
		}
	}
	return out
}

// Repeats is what repeated measurements say about the noise of the first objective. They are
// replicates of a trial, told standard errors, and several results of one configuration.
type Repeats struct {
	Freedom int     // degrees of freedom, 0 if nothing was repeated
	Within  float64 // sum of squared deviations from the mean of each configuration

	seen map[uint64]moments // by configuration
}

// moments are those of the measurements of one configuration.
type moments struct{ count, mean float64 }

// add counts a measurement of a configuration.
func (r *Repeats) add(configuration uint64, m Measure) {
	if math.IsInf(m.Value, 0) {
		return
	}
	n := float64(max(m.Count, 1))
	if !math.IsNaN(m.StdErr) {
		r.Freedom, r.Within = r.Freedom+1, r.Within+n*m.StdErr*m.StdErr
	} else if m.Count > 1 {
		r.Freedom, r.Within = r.Freedom+m.Count-1, r.Within+m.Within
	}
	before, again := r.seen[configuration]
	if !again {
		if r.seen == nil {
			r.seen = make(map[uint64]moments)
		}
		r.seen[configuration] = moments{n, m.Value}
		return
	}
	all, d := before.count+n, m.Value-before.mean
	r.Freedom, r.Within = r.Freedom+1, r.Within+d*d*before.count*n/all
	r.seen[configuration] = moments{all, before.mean + d*n/all}
}

// unlikely is the probability that the noise exceeds [Repeats.Most].
const unlikely = 0.05

// Most returns an upper limit of the standard deviation of the noise, for normal noise, and
// +Inf if nothing was repeated.
func (r *Repeats) Most() float64 {
	if r.Freedom == 0 {
		return math.Inf(1)
	}
	return math.Sqrt(r.Within / distuv.ChiSquared{K: float64(r.Freedom)}.Quantile(unlikely))
}
