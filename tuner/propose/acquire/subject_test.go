package acquire

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/sobol"
	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/propose/model"
	"github.com/bkbtuner/bkb/tuner/study"
)

// subject is a study with its model and chooser, and Sobol' points for the start.
type subject struct {
	*labtest.Lab
	model   *model.Model
	chooser *Chooser
}

// newSubject returns a study with default options, which tweak may change.
func newSubject(t labtest.Fataler, spec study.Spec, tweak func(m *model.Options, o *Options)) *subject {
	m := model.Options{Start: 4, Cap: 256, MinNoise: 1e-6}
	o := Options{Width: 0.05, ExploitEvery: 4, OnDuplicate: Resample, StopAfter: 2 * m.Start}
	if tweak != nil {
		tweak(&m, &o)
	}
	return &subject{labtest.New(t, spec), model.New(spec, m), New(spec, o)}
}

// anchor puts the model event that is due into the log.
func (s *subject) anchor() {
	s.T.Helper()
	a, due, err := s.model.Anchor(context.Background(), s.S)
	if err != nil {
		s.T.Fatalf("anchor: %v", err)
	}
	if due {
		s.Do(a)
	}
}

// at returns the engine of the study at its present position, nil if there is none.
func (s *subject) at() *model.Engine {
	s.T.Helper()
	e, err := s.model.At(s.S)
	if err != nil {
		s.T.Fatalf("no model: %v", err)
	}
	return e
}

// propose makes n suggestions, after the model event that is due.
func (s *subject) propose(n int) Proposal {
	s.T.Helper()
	s.anchor()
	e := s.at()
	if e == nil {
		return s.begin(n)
	}
	p, err := s.chooser.Propose(context.Background(), e, s.S.Trials(), s.S.Position(), n)
	if err != nil {
		s.T.Fatalf("propose: %v", err)
	}
	for _, g := range p.Suggestions {
		if err := s.S.Spec().Space.Validate(g.Config); err != nil {
			s.T.Fatalf("a suggestion: %v", err)
		}
		for _, v := range slices.Concat(g.Mean, g.StdDev) {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				s.T.Fatalf("a suggestion predicts %v ± %v", g.Mean, g.StdDev)
			}
		}
	}
	return p
}

func (s *subject) begin(n int) Proposal {
	spec, u := s.S.Spec(), make([]float64, s.S.Spec().Space.Dim())
	var p Proposal
	for i := range n {
		sobol.New(len(u), spec.Seed).At(uint32(s.S.Trials()+i), u)
		p.Suggestions = append(p.Suggestions, study.Suggestion{Config: s.Decode(u...), Phase: study.PhaseStart})
	}
	return p
}

// step proposes one trial and starts it.
func (s *subject) step() (trial study.Trial) {
	s.T.Helper()
	s.Start(s.propose(1).Suggestions...)
	trial, _ = s.S.Trial(s.S.Trials() - 1)
	return trial
}

// ahead returns an acquisition like that of the next suggestion.
func (s *subject) ahead() *acquisition {
	e := s.at()
	return s.chooser.on(e, e.Outlook())
}

// worked returns a study of n told trials on a square, and the engine after them.
func worked(t labtest.Fataler, tweak func(m *model.Options, o *Options), objectives, n int, value func(u []float64, rng *rand.Rand) []float64) (*subject, *model.Engine) {
	t.Helper()
	spec := labtest.SpecOf(labtest.Parse(t, labtest.Square), 7)
	for i := 1; i < objectives; i++ {
		spec.Objectives = append(spec.Objectives, study.Objective{Name: fmt.Sprint("o", i), Direction: study.Minimize})
	}
	s := newSubject(t, spec, tweak)
	s.Scatter(n, value)
	s.anchor()
	return s, s.at()
}

// row returns one point, to predict at.
func row(u ...float64) *kernel.Points[float64] { return kernel.NewPoints(1, len(u), u) }

func close2(a, b, tolerance float64) bool {
	return math.Abs(a-b) <= tolerance*(1+math.Abs(a)+math.Abs(b))
}

// recommended returns the best trials by the model.
func (s *subject) recommended() []int {
	return s.chooser.Recommend(s.S, s.at())()
}
