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

// maxPassed is how many configurations that the study already has are skipped for one
// suggestion.
const maxPassed = 64

// design is a proposer that draws points of the cube, one after another.
type design struct {
	spec        study.Spec
	history     history
	cardinality float64
	source      source
}

// source produces the points of a design.
type source interface {
	// at starts the suggestion for a trial, when next is the number of the point
	// after the last one suggested.
	at(trial int, next uint64)
	// draw writes the next point.
	draw(u []float64)
	// seed returns the seed of the last point.
	seed() uint64
}

func newDesign(spec study.Spec, s source) *design {
	return &design{spec: spec, history: newHistory(spec.Space), cardinality: spec.Space.Cardinality(), source: s}
}

// Propose implements [Proposer].
func (d *design) Propose(ctx context.Context, v View, n int) (Proposal, error) {
	d.history.follow(v)
	b, next, trial := d.history.batch(), d.history.next, v.Trials()
	var p Proposal
	for range n {
		if err := ctx.Err(); err != nil {
			return Proposal{}, err
		}
		d.source.at(trial, next)
		c, err := d.fresh(b)
		if err != nil {
			return Proposal{}, err
		}
		seed := d.source.seed()
		b.add(c)
		trial, next = trial+1, seed+1
		p.Suggestions = append(p.Suggestions, study.Suggestion{Config: c, Seed: seed, Seen: v.Position(), Phase: PhaseStart})
	}
	return p, nil
}

// maxOutside is how many points that break the space's constraints are skipped for one
// suggestion.
const maxOutside = 10_000

// fresh draws until it finds a configuration that the study does not have, up to a limit.
func (d *design) fresh(b batch) (space.Config, error) {
	u := make([]float64, d.spec.Space.Dim())
	passes, outside := maxPassed, maxOutside
	if b.distinct() >= d.cardinality {
		passes = 0
	}
	for {
		d.source.draw(u)
		c, ok, err := d.spec.Space.Inside(u)
		if err == nil && !ok {
			if outside--; outside > 0 {
				continue
			}
			c, err = d.spec.Space.Decode(u) // near u
		}
		if err != nil {
			return c, fmt.Errorf("decoding a point: %w", err)
		}
		if passes == 0 || !b.has(c) {
			return c, nil
		}
		passes--
	}
}

// sobolSource draws the points of one sequence in order.
type sobolSource struct {
	sequence *sobol.Sequence
	next     uint64
	first    []float64 // in place of point 0, unless nil
}

func newSobol(spec study.Spec) Proposer {
	return newDesign(spec, &sobolSource{sequence: sobol.New(spec.Space.Dim(), spec.Seed)})
}

// newStart returns the design before there is a model. It is the center of the space, with the
// first value of each categorical parameter, and then Sobol' points.
func newStart(spec study.Spec) *design {
	center := make([]float64, spec.Space.Dim())
	for c, axis := range spec.Space.Axes() {
		if axis.Ordered {
			center[c] = 0.5
		}
	}
	d := newDesign(spec, &sobolSource{sequence: sobol.New(spec.Space.Dim(), spec.Seed), first: center})
	if c, err := spec.Space.Decode(center); err == nil { // it is often enqueued or imported
		d.history.first = model.Fingerprint(c)
	}
	return d
}

func (s *sobolSource) at(_ int, next uint64) { s.next = next }

func (s *sobolSource) draw(u []float64) {
	if s.sequence.At(uint32(s.next), u); s.next == 0 && s.first != nil { // begins anew after 2³² points
		copy(u, s.first)
	}
	s.next++
}

func (s *sobolSource) seed() uint64 { return s.next - 1 }

// randomSource draws the points of each trial from the trial's own stream.
type randomSource struct {
	study, trial uint64
	float        func() float64
}

func newRandom(spec study.Spec) Proposer {
	return newDesign(spec, &randomSource{study: spec.Seed})
}

func (s *randomSource) at(trial int, _ uint64) {
	s.trial = stream.Derive(s.study, "random", uint64(trial))
	s.float = stream.New(s.trial).Float64
}

func (s *randomSource) draw(u []float64) {
	for j := range u {
		u[j] = s.float()
	}
}

func (s *randomSource) seed() uint64 { return s.trial }
