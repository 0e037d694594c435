package model

import (
	"cmp"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/tuner/space"
)

// Sampling of dictionaries.
const (
	oversampling = 4.0  // q̄ of thesis Algorithm 5
	bestAlways   = 24   // best results that are always inducing points
	scored       = 8192 // results that get leverage scores; of more, a uniform sample
)

// dictionary chooses the inducing points of a surface, limit of them at most.
type dictionary struct {
	space *space.Space
	seed  uint64
	limit int
}

// choose takes all different configurations while there is room, and
// then draws them by ridge leverage scores (thesis Algorithm 5): p = q̄·σ²/ξ²
// under the posterior on the dictionary before. Of very many results a uniform
// sample stands for all, each with the weight of those it stands for, as in a
// step of BLESS (thesis Algorithm 4). A quarter of the room is left to results
// to come. Reports get what room those leave that were drawn of what trials came
// to, which is what suggestions are about.
func (d *dictionary) choose(list []Result, q quantity, s, old *Surface) error {
	k, err := s.covariance(d.space)
	if err != nil {
		return err
	}
	var all []member
	var samples []sample
	different := make(map[string]struct{})
	for i := range list {
		for n, o := range s.samples(&list[i], q) {
			samples = append(samples, o)
			if len(different) <= d.limit {
				different[pointKey(o.x)] = struct{}{}
			}
			all = append(all, member{i, n, len(all)})
		}
	}
	if len(different) <= d.limit {
		s.setDictionary(list, distinct(samples, all, nil))
		p := rebuilt(k, s.Noise, s.Mean, d.limit, false, s.inputs(list, q), samples)
		s.Dimension, s.Gain = dimension(p, samples), p.gain()
		return nil
	}
	// Probabilities under the old dictionary.
	base := *s
	if old != nil {
		base.Dictionary, base.Rows, base.Epochs = old.Dictionary, old.Rows, old.Epochs
	} else {
		rng := stream.New(stream.Derive(d.seed, "bkb uniform", uint64(len(list))))
		var drawn []member
		for range d.limit {
			drawn = append(drawn, all[rng.IntN(len(all))])
		}
		base.setDictionary(list, drawn)
	}
	best := bestOf(list, all, q)
	few := d.uniform(all, len(list))
	weight := float64(len(all)) / float64(len(few))
	p := rebuilt(k, s.Noise, s.Mean, d.limit, false, base.inputs(list, q), weighed(samples, few, s.Noise, weight))
	scores := leverage(p, weighed(samples, few, s.Noise, 1))
	for _, v := range scores {
		s.Dimension += v * weight
	}
	s.Gain = p.gain()
	// Order sampling: key = uniform/p; all with a key below 1, smallest first.
	type drawn struct {
		i      int
		report int // 0 for what a trial came to, else 1
		key    float64
	}
	var in []drawn
	seed := stream.Derive(d.seed, "bkb dictionary", uint64(len(list)))
	for i, v := range scores {
		u := float64(stream.Mix(seed^list[few[i].of].key(few[i].row))>>11) / (1 << 53)
		if key := u / min(1, oversampling*v*weight); key < 1 {
			in = append(in, drawn{few[i].at, map[bool]int{true: 1}[d.isReport(samples[few[i].at])], key})
		}
	}
	slices.SortFunc(in, func(a, c drawn) int { return cmp.Or(a.report-c.report, cmp.Compare(a.key, c.key), a.i-c.i) })
	chosen := slices.Clone(best)
	room := d.limit * 3 / 4
	for _, one := range in {
		chosen = append(chosen, all[one.i])
	}
	s.setDictionary(list, distinct(samples, chosen, func(n int) bool { return n < room }))
	s.Capped = len(s.Dictionary) >= room
	return nil
}

// isReport tells whether a sample is of a lower fidelity than an outcome.
func (d *dictionary) isReport(o sample) bool {
	n := d.space.Dim()
	return len(o.x) > n && o.x[n] > 0
}

// member is a sample of a result: the row-th of its own, the at-th of all.
type member struct{ of, row, at int }

// key is what the row-th sample of a result has chance by.
func (r *Result) key(row int) uint64 {
	k := stream.Mix(uint64(r.Trial) + uint64(row)<<48)
	if r.Epoch > 0 {
		k = stream.Derive(k, "late", uint64(r.Epoch))
	}
	return k
}

// uniform returns the members, or scored of them, drawn at random, ascending.
func (d *dictionary) uniform(members []member, results int) []member {
	if len(members) <= scored {
		return members
	}
	rng := stream.New(stream.Derive(d.seed, "bkb scored", uint64(results)))
	out := slices.Clone(members)
	for i := range scored {
		k := i + rng.IntN(len(out)-i)
		out[i], out[k] = out[k], out[i]
	}
	slices.SortFunc(out[:scored], func(a, c member) int { return a.at - c.at })
	return out[:scored]
}

// weighed are the samples of members, each as if observed so many times.
func weighed(samples []sample, members []member, noise, times float64) []sample {
	out := make([]sample, len(members))
	for i, m := range members {
		out[i] = samples[m.at]
		out[i].extra = (noise+out[i].extra)/times - noise
	}
	return out
}

// bestOf returns the members with the largest outcomes.
func bestOf(list []Result, all []member, q quantity) []member {
	if q < 0 {
		return nil
	}
	value := make([]float64, 0, len(all)) // of those that follow
	var measured []member
	for _, m := range all {
		if r := &list[m.of]; r.Y != nil && r.Feasible && m.row == 0 {
			measured, value = append(measured, m), append(value, r.Y[q].Value)
		}
	}
	var best []int // into measured, by value and then in order
	for i, v := range value {
		if len(best) == bestAlways && v <= value[best[bestAlways-1]] {
			continue
		}
		at, _ := slices.BinarySearchFunc(best, v, func(have int, v float64) int {
			if value[have] >= v {
				return -1
			}
			return 1
		})
		best = slices.Insert(best, at, i)[:min(len(best)+1, bestAlways)]
	}
	out := make([]member, len(best))
	for i, at := range best {
		out[i] = measured[at]
	}
	return out
}

// distinct returns the chosen members with different inputs, while more returns
// true for their number.
func distinct(samples []sample, chosen []member, more func(n int) bool) []member {
	seen := make(map[string]struct{}, len(chosen))
	var out []member
	for _, m := range chosen {
		key := pointKey(samples[m.at].x)
		if _, ok := seen[key]; ok {
			continue
		}
		if more != nil && !more(len(out)) {
			break
		}
		seen[key] = struct{}{}
		out = append(out, m)
	}
	return out
}

// leverage returns σ²ω of every sample, at most 1.
func leverage(p *posterior, samples []sample) []float64 {
	out := make([]float64, 0, len(samples))
	for from := 0; from < len(samples); from += chunk {
		part := samples[from:min(from+chunk, len(samples))]
		_, variance := p.predict(pointsOf(part, p.dim))
		for i, v := range variance {
			out = append(out, min(v*p.precision(part[i], 0), 1))
		}
	}
	return out
}

// dimension is the effective one: the sum of the leverage scores.
func dimension(p *posterior, samples []sample) float64 {
	sum := 0.0
	for _, v := range leverage(p, samples) {
		sum += v
	}
	return sum
}

// pointKey identifies an encoded configuration.
func pointKey(x []float64) string {
	key := make([]byte, 0, 8*len(x))
	for _, v := range x {
		w := math.Float64bits(v)
		key = append(key, byte(w), byte(w>>8), byte(w>>16), byte(w>>24), byte(w>>32), byte(w>>40), byte(w>>48), byte(w>>56))
	}
	return string(key)
}
