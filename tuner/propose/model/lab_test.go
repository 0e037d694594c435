package model

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/study"
)

// lab is a study with its model.
type lab struct {
	*labtest.Lab
	m *Model
}

// newLab returns a study with default options, which tweak may change.
func newLab(t labtest.Fataler, spec study.Spec, tweak func(o *Options)) *lab {
	o := Options{Start: min(max(spec.Space.Dim()+2, 4), 16), Cap: 256, MinNoise: 1e-6, Sampler: AutoSampler}
	if tweak != nil {
		tweak(&o)
	}
	return &lab{labtest.New(t, spec), New(spec, o)}
}

// anchor puts the model event that is due into the log, and checks that it can be remade.
func (l *lab) anchor() {
	l.T.Helper()
	a, due, err := l.m.Anchor(context.Background(), l.S)
	if err != nil {
		l.T.Fatalf("anchor: %v", err)
	}
	if !due {
		return
	}
	view := l.S.Snapshot()
	l.Do(a)
	again, err := New(l.S.Spec(), *l.m.options).Remake(context.Background(), view, study.Anchored(a))
	if err != nil || string(again) != string(a.Model) {
		l.T.Fatalf("a model came out otherwise (%v):\n%s\n%s", err, a.Model, again)
	}
}

// ready returns the engine of the study at its present position.
func (l *lab) ready() *Engine {
	l.T.Helper()
	e, err := l.m.At(l.S)
	if err != nil || e == nil {
		l.T.Fatalf("no model: %v", err)
	}
	return e
}

// run starts a trial at a point, and returns its number.
func (l *lab) run(u ...float64) int {
	l.T.Helper()
	l.Start(study.Suggestion{Config: l.Decode(u...)})
	return l.S.Trials() - 1
}

// worked returns a study of n told trials on a square, and the engine after them.
func worked(t labtest.Fataler, tweak func(o *Options), objectives, n int, value func(u []float64, rng *rand.Rand) []float64) (*lab, *Engine) {
	t.Helper()
	spec := labtest.SpecOf(labtest.Parse(t, labtest.Square), 7)
	for i := 1; i < objectives; i++ {
		spec.Objectives = append(spec.Objectives, study.Objective{Name: fmt.Sprint("o", i), Direction: study.Minimize})
	}
	l := newLab(t, spec, tweak)
	l.Scatter(n, value)
	l.anchor()
	return l, l.ready()
}

// at returns one point, to predict at.
func at(u ...float64) *kernel.Points[float64] { return kernel.NewPoints(1, len(u), u) }

// another returns a new copy of the engine, to be kept while e continues.
func (l *lab) another(e *Engine) *Engine {
	l.T.Helper()
	f, err := newEngine(e.builder, e.Results, e.Event, e.Event.Results)
	if err != nil {
		l.T.Fatalf("%v", err)
	}
	f.follow()
	return f
}
