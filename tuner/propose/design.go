package propose

import (
	"context"
	"fmt"

	"github.com/bkbtuner/bkb/internal/sobol"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// maxPassed is how many points are skipped for one suggestion, in the search for a
// configuration that the study does not have.
const maxPassed = 64

// design is a proposer that draws points of the cube, one after another.
type design struct {
	spec    study.Spec
	history history
	source  source
	joins   bool // added trials count as points of the sequence
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

// Propose implements [Proposer].
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
		d.source.at(trial, next)
		c, seed, err := d.fresh(b)
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
func (d *design) fresh(b batch) (first space.Config, seed uint64, err error) {
	u, outside := make([]float64, d.spec.Space.Dim()), maxOutside
	for passed := 0; passed <= maxPassed; {
		d.source.draw(u)
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
			first, seed = c, d.source.seed()
		}
		if sameBranch(first, c) && !b.has(c) {
			return c, d.source.seed(), nil
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

// sobolSource draws the points of one sequence in order.
type sobolSource struct {
	sequence *sobol.Sequence
	next     uint64
	first    []float64 // in place of point 0, unless nil
}

func newSobol(spec study.Spec) Proposer {
	return &design{spec: spec, source: &sobolSource{sequence: sobol.New(spec.Space.Dim(), spec.Seed)}}
}

// newStart returns the design before there is a model. It is the center of the space, with the
// first value of each categorical parameter, and then Sobol' points. Added trials have taken the
// place of as many points, as in a study that goes on where another one stopped.
func newStart(spec study.Spec) *design {
	center := make([]float64, spec.Space.Dim())
	for c, axis := range spec.Space.Axes() {
		if axis.Ordered {
			center[c] = 0.5
		}
	}
	return &design{spec: spec, joins: true, source: &sobolSource{sequence: sobol.New(spec.Space.Dim(), spec.Seed), first: center}}
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
	return &design{spec: spec, source: &randomSource{study: spec.Seed}}
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
