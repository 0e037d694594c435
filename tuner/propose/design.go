package propose

import (
	"context"
	"fmt"

	"github.com/bkbtuner/bkb/internal/sobol"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/tuner/propose/model"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// maxPassed is how many points are skipped for one suggestion, in the search for a
// configuration that the study does not have.
const maxPassed = 64

// design is a proposer that draws points of the cube, one after another.
type design struct {
	spec     study.Spec
	history  history
	sequence *sobol.Sequence // whose points are drawn in order, nil for the random numbers of each trial's own stream
	first    []float64       // in place of point 0 of the sequence, unless nil
	joins    bool            // added trials count as points of the sequence
}

func newSobol(spec study.Spec) *design {
	return &design{spec: spec, sequence: sobol.New(spec.Space.Dim(), spec.Seed)}
}

// newStart returns the design before there is a model. It is the center of the space, with the
// first value of each categorical parameter, and then Sobol' points. Added trials have taken the
// place of as many points, as in a study that goes on where another one stopped.
func newStart(spec study.Spec) *design {
	d := newSobol(spec)
	d.joins, d.first = true, make([]float64, spec.Space.Dim())
	for c, axis := range spec.Space.Axes() {
		if axis.Ordered {
			d.first[c] = 0.5
		}
	}
	return d
}

// points returns a function that draws the points for a trial and returns the seed of each, when
// next is the number of the point after the last one suggested.
func (d *design) points(trial int, next uint64) func(u []float64) uint64 {
	if d.sequence == nil {
		seed := stream.Derive(d.spec.Seed, "random", uint64(trial))
		rng := stream.New(seed)
		return func(u []float64) uint64 {
			for j := range u {
				u[j] = rng.Float64()
			}
			return seed
		}
	}
	return func(u []float64) uint64 {
		if d.sequence.At(uint32(next), u); next == 0 && d.first != nil { // begins anew after 2³² points
			copy(u, d.first)
		}
		next++
		return next - 1
	}
}

func (d *design) Propose(ctx context.Context, v View, n int) (Proposal, error) {
	d.history.follow(v)
	b, next, trial := d.history.batch(), d.history.next, v.Trials()
	if d.joins {
		next = max(next, d.history.added)
	}
	var p Proposal
	for range n {
		if err := ctx.Err(); err != nil {
			return Proposal{}, err
		}
		c, seed, err := d.fresh(b, d.points(trial, next))
		if err != nil {
			return Proposal{}, err
		}
		b.add(c)
		trial, next = trial+1, seed+1
		p.Suggestions = append(p.Suggestions, study.Suggestion{Config: c, Seed: seed, Seen: v.Position(), Phase: study.PhaseStart})
	}
	return p, nil
}

// maxOutside is how many points that break the space's constraints are skipped for one
// suggestion.
const maxOutside = 10_000

// fresh draws a configuration, and its seed. If the study has it, others are drawn with the same
// active parameters, so that a branch with few configurations keeps its share. If the study has
// all of them, the first one is repeated.
func (d *design) fresh(b batch, draw func(u []float64) uint64) (first space.Config, seed uint64, err error) {
	u, outside := make([]float64, d.spec.Space.Dim()), maxOutside
	for passed := 0; passed <= maxPassed; {
		at := draw(u)
		c, ok, err := d.spec.Space.Inside(u)
		if err == nil && !ok {
			if outside--; outside > 0 {
				continue
			}
			c, err = d.spec.Space.Decode(u) // near u
		}
		if err != nil {
			return c, 0, fmt.Errorf("decoding a point: %w", err)
		}
		if passed == 0 {
			first, seed = c, at
		}
		if sameBranch(first, c) && !b.has(c) {
			return c, at, nil
		}
		passed++
	}
	return first, seed, nil
}

// sameBranch reports whether two configurations have the same active parameters.
func sameBranch(a, b space.Config) bool {
	for name := range a.All() {
		if _, active := b.Get(name); !active {
			return false
		}
	}
	return a.Len() == b.Len()
}

// history is the digest of a View that a space-filling proposer needs.
type history struct {
	followed int                 // trials digested
	next     uint64              // number of the point or cell after the last one suggested
	added    uint64              // trials that were added
	seen     map[uint64]struct{} // fingerprints of all configurations
}

// follow digests the trials that are new in v.
func (h *history) follow(v View) {
	if h.seen == nil || v.Trials() < h.followed { // not the history that was digested, see Proposer
		*h = history{seen: make(map[uint64]struct{})}
	}
	for t := range v.All(h.followed) {
		switch {
		case t.Origin == study.OriginSuggested && t.Suggestion.Phase == study.PhaseStart:
			h.next = t.Suggestion.Seed + 1
		case t.Origin == study.OriginAdded:
			h.added++
		}
		h.seen[model.Fingerprint(t.Config)] = struct{}{}
	}
	h.followed = v.Trials()
}

// batch is what one Propose adds to a history. It is dropped if the caller drops the suggestions.
type batch struct {
	history *history
	added   map[uint64]struct{}
}

func (h *history) batch() batch { return batch{h, make(map[uint64]struct{})} }

// has reports whether c was suggested, enqueued or added before.
func (b batch) has(c space.Config) bool {
	f := model.Fingerprint(c)
	_, before := b.history.seen[f]
	_, now := b.added[f]
	return before || now
}

func (b batch) add(c space.Config) { b.added[model.Fingerprint(c)] = struct{}{} }
