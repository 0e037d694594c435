package model

import (
	"context"
	"encoding/binary"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/sketch"
	"github.com/bkbtuner/bkb/tuner/surrogate"
)

// Samplers of inducing points.
const (
	AutoSampler  = "auto"  // RLS, and BLESS where the history is long
	AllSampler   = "all"   // every different input, because there was room for all
	RLSSampler   = "rls"   // leverage scores of all results under the previous model
	BLESSSampler = "bless" // leverage scores of few results, from coarse to fine
)

// Sampling of dictionaries.
const (
	oversampling = 4.0  // q̄ of Algorithm 5 in Carratino (2020)
	bestAlways   = 24   // best results that are always inducing points
	longHistory  = 8192 // rows from which on BLESS draws
	// BLESS reads one row in rowShare, and at least fewestRows.
	rowShare   = 12
	fewestRows = 1024
)

// choose chooses the inducing points of a surface. It takes all different inputs while there is
// room. Otherwise it draws them by the option sampler. The best results are always among them, of a
// metric those nearest to its limit, and a quarter of the room is left for later results. Inducing
// points are drawn from outcomes first, because suggestions are about outcomes. Reports get the room
// that is left.
func (a *builder) choose(ctx context.Context, list []Result, q quantity, s, old *Surface) error {
	k, err := s.kernel(a.space)
	if err != nil {
		return err
	}
	h, limit := newHistory(list, q, s, k), a.options.Cap
	if different := h.distinct(h.members, limit+1); len(different) <= limit {
		s.setDictionary(list, different)
		p := newPosterior(k, s.Noise, s.Mean, limit, false, s.inputs(list, q), h.samples)
		for _, v := range p.leverage(h.samples) {
			s.Dimension += v
		}
		s.Gain, s.Draw = p.LogDet(), surrogate.Draw{Sampler: AllSampler, Rows: len(h.samples), Read: len(h.samples)}
		return nil
	}
	room := limit * 3 / 4
	always := h.best(list, q)
	if _, ok := q.limit(); ok {
		always = h.nearest(s)
	}
	chosen := h.distinct(always, room)
	s.Dimension = float64(len(chosen)) // each score is at most 1
	s.Draw = surrogate.Draw{Sampler: a.options.Sampler, Rows: len(h.samples)}
	if a.options.Sampler == AutoSampler {
		if s.Draw.Sampler = RLSSampler; len(h.samples) > longHistory {
			s.Draw.Sampler = BLESSSampler
		}
	}
	for _, coarse := range []bool{false, true} {
		rows := h.without(h.rows(coarse), chosen)
		if left := room - len(chosen); left > 0 && len(rows) > 0 {
			drawn, err := a.draw(ctx, list, h, rows, left, q, s, old)
			if err != nil {
				return err
			}
			chosen = h.distinct(append(chosen, drawn...), room)
		}
	}
	s.setDictionary(list, chosen)
	s.Capped = len(chosen) >= room || s.Draw.Coarse > 1+1e-9
	return nil
}

// draw draws up to limit of the given rows by the surface's sampler.
func (a *builder) draw(ctx context.Context, list []Result, h *history, rows []member, limit int, q quantity, s, old *Surface) ([]member, error) {
	name := "bkb dictionary"
	if h.coarse(rows[0]) {
		name = "bkb dictionary of reports"
	}
	rng := stream.New(stream.Derive(a.seed, name, uint64(len(list))))
	var sampler sketch.Sampler
	if s.Draw.Sampler == BLESSSampler {
		sampler = sketch.BLESS{MaxPoints: limit, MaxCandidates: max(len(rows)/rowShare, fewestRows), Bound: h.k.Bound()}
	} else {
		rows = h.distinct(rows, len(rows))
		sampler = h.leverage(a.before(list, h, q, s, old), list, rows, limit)
		s.Draw.Read = len(h.samples) // by the posterior that computes the variances
	}
	lambda := sketch.LambdaOfNoise(s.Noise, len(rows))
	found, err := sampler.Sample(ctx, h.k, kernel.FromRows(h.points(rows)), lambda, rng)
	if err != nil {
		return nil, err
	}
	s.Dimension += found.EffectiveDimension
	s.Draw.Lambda, s.Draw.Coarse = max(s.Draw.Lambda, found.Lambda), max(s.Draw.Coarse, found.Lambda/lambda)
	if s.Draw.Sampler == BLESSSampler {
		s.Draw.Read += found.Rows
	}
	if !h.coarse(rows[0]) {
		for _, l := range found.Path {
			s.Draw.Path = append(s.Draw.Path, surrogate.Step{Lambda: l.Lambda, Points: l.Len(), Dimension: l.EffectiveDimension})
		}
	}
	return pick(rows, found.Indices), nil
}

// before returns the posterior of all results on the inducing points of the previous event,
// or on random ones if there is none.
func (a *builder) before(list []Result, h *history, q quantity, s, old *Surface) *posterior {
	base := *s
	if old != nil {
		base.Dictionary, base.Rows, base.Epochs = old.Dictionary, old.Rows, old.Epochs
	} else {
		rng := stream.New(stream.Derive(a.seed, "bkb uniform", uint64(len(list))))
		var drawn []member
		for range a.options.Cap {
			drawn = append(drawn, h.members[rng.IntN(len(h.members))])
		}
		base.setDictionary(list, drawn)
	}
	return newPosterior(h.k, s.Noise, s.Mean, a.options.Cap, false, base.inputs(list, q), h.samples)
}

// history is all data of a surface, in order. It has the samples, and the results that they
// belong to.
type history struct {
	k       *kernel.Mixed
	samples []sample
	members []member
}

// member is one sample, the row-th of its result and the at-th of the history.
type member struct{ of, row, at int }

func newHistory(list []Result, q quantity, s *Surface, k *kernel.Mixed) *history {
	h := &history{k: k}
	for i := range list {
		for row, o := range s.samples(&list[i], q) {
			h.members = append(h.members, member{i, row, len(h.samples)})
			h.samples = append(h.samples, o)
		}
	}
	return h
}

func (h *history) coarse(m member) bool { return isReport(h.k, h.samples[m.at].x) }

// rows returns the members of outcomes, or with coarse those of reports.
func (h *history) rows(coarse bool) []member {
	return slices.DeleteFunc(slices.Clone(h.members), func(m member) bool { return h.coarse(m) != coarse })
}

// distinct returns those of the chosen with different inputs, at most limit of them.
func (h *history) distinct(chosen []member, limit int) []member {
	seen := make(map[string]struct{})
	var out []member
	for _, m := range chosen {
		key := pointKey(h.samples[m.at].x)
		if _, ok := seen[key]; ok {
			continue
		}
		seen[key] = struct{}{}
		if out = append(out, m); len(out) == limit {
			break
		}
	}
	return out
}

// without returns the rows whose inputs are not those of the chosen.
func (h *history) without(rows, chosen []member) []member {
	taken := make(map[string]struct{}, len(chosen))
	for _, m := range chosen {
		taken[pointKey(h.samples[m.at].x)] = struct{}{}
	}
	return slices.DeleteFunc(rows, func(m member) bool {
		_, ok := taken[pointKey(h.samples[m.at].x)]
		return ok
	})
}

// points are the inputs of members.
func (h *history) points(members []member) *kernel.Points[float64] {
	x := kernel.NewPoints[float64](len(members), h.k.Dim(), nil)
	for i, m := range members {
		copy(x.Row(i), h.samples[m.at].x)
	}
	return x
}

// leverage returns the sampler by ridge leverage scores under p (Algorithm 5 in Carratino,
// 2020) of rows with different inputs. Each row has the weight of all samples at its input.
func (h *history) leverage(p *posterior, list []Result, rows []member, limit int) sketch.Sampler {
	weight := make(map[string]float64, len(rows))
	for _, m := range h.members {
		o := &h.samples[m.at]
		weight[pointKey(o.x)] += p.NoiseVariance() / (p.NoiseVariance() + o.extra)
	}
	out := sketch.PosteriorVariance{Oversampling: oversampling, MaxPoints: limit}
	_, out.Variances = p.predict(h.points(rows))
	for _, m := range rows {
		out.Weights = append(out.Weights, weight[pointKey(h.samples[m.at].x)])
		out.Keys = append(out.Keys, list[m.of].key(m.row))
	}
	return out
}

// key seeds the random draw of the row-th sample of a result.
func (r *Result) key(row int) uint64 {
	k := stream.Mix(uint64(r.Trial) + uint64(row)<<48)
	if r.Epoch > 0 {
		k = stream.Derive(k, "late", uint64(r.Epoch))
	}
	return k
}

// best returns the bestAlways members with the largest outcomes.
func (h *history) best(list []Result, q quantity) []member {
	if q < 0 {
		return nil
	}
	var value []float64
	var measured []member
	for _, m := range h.members {
		if r := &list[m.of]; r.Y != nil && r.Feasible && m.row == 0 {
			measured, value = append(measured, m), append(value, r.Y[q].Value)
		}
	}
	return pick(measured, bandit.Largest(value, bestAlways))
}

// nearest returns the bestAlways members that are nearest to a limit of the surface.
func (h *history) nearest(s *Surface) []member {
	near := make([]float64, len(h.members))
	for i, m := range h.members {
		near[i] = -s.distance(h.samples[m.at].y)
	}
	return pick(h.members, bandit.Largest(near, bestAlways))
}

// pointKey identifies an encoded configuration.
func pointKey(x []float64) string {
	key := make([]byte, 0, 8*len(x))
	for _, v := range x {
		key = binary.LittleEndian.AppendUint64(key, math.Float64bits(v))
	}
	return string(key)
}

// setDictionary makes members the inducing points.
func (s *Surface) setDictionary(list []Result, members []member) {
	s.Dictionary, s.Rows, s.Epochs = nil, nil, nil
	lower := slices.ContainsFunc(members, func(m member) bool { return m.row > 0 })
	late := slices.ContainsFunc(members, func(m member) bool { return list[m.of].Epoch > 0 })
	for _, m := range members {
		s.Dictionary = append(s.Dictionary, list[m.of].Trial)
		if lower {
			s.Rows = append(s.Rows, m.row)
		}
		if late {
			s.Epochs = append(s.Epochs, list[m.of].Epoch)
		}
	}
}

// inputs returns the inputs of the dictionary.
func (s *Surface) inputs(list []Result, q quantity) [][]float64 {
	type source struct{ trial, epoch int }
	from := func(n int) source {
		if s.Epochs != nil {
			return source{s.Dictionary[n], s.Epochs[n]}
		}
		return source{s.Dictionary[n], 0}
	}
	at := make(map[source]*Result, len(s.Dictionary))
	for n := range s.Dictionary {
		at[from(n)] = nil
	}
	for i := range list {
		key := source{list[i].Trial, list[i].Epoch}
		if _, ok := at[key]; ok {
			at[key] = &list[i]
		}
	}
	var out [][]float64
	for n := range s.Dictionary {
		r, row := at[from(n)], 0
		if s.Rows != nil {
			row = s.Rows[n]
		}
		if r == nil {
			continue
		}
		if samples := s.samples(r, q); row < len(samples) {
			out = append(out, samples[row].x)
		}
	}
	return out
}
