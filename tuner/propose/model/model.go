package model

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/surrogate"
)

// Model follows one study. It has the study's results, and the model event in effect with
// the results since. All of it is a digest of the last View.
type Model struct {
	Results *Results

	spec    study.Spec
	options *Options
	builder builder
	engine  *Engine
	made    made

	calibration Calibration
}

// made is the last model event that was computed.
type made struct {
	before, results int
	text            []byte
}

// New returns the model of a study without results.
func New(spec study.Spec, o Options) *Model {
	return &Model{
		Results: newResults(spec, &o), spec: spec, options: &o,
		builder: builder{space: spec.Space, seed: spec.Seed, objectives: len(spec.Objectives), options: &o},
	}
}

// At digests v and returns the engine in effect there, which is valid until the next call.
// It returns nil if there is no model yet.
func (m *Model) At(v View) (*Engine, error) {
	e, a, ok, err := m.inEffect(v)
	if err != nil {
		return nil, err
	}
	if err := m.Results.follow(v); err != nil {
		return nil, err
	}
	if !ok || m.spec.Space.Dim() == 0 {
		m.engine = nil
		return nil, nil
	}
	if m.engine == nil || !bytes.Equal(m.engine.text, a.Model) || m.engine.told > len(m.Results.List) {
		if m.engine, err = newEngine(m.builder, m.Results, e, m.Results.upTo(a.Seen)); err != nil {
			return nil, err
		}
		m.engine.text = a.Model
	}
	m.engine.Effective = a.Effective
	m.engine.follow()
	m.calibration.follow(v, m.Results, m.engine)
	m.engine.Calibration = &m.calibration
	return m.engine, nil
}

// State returns the state of the model at the View that [Model.At] digested last, and how
// many results it still needs.
func (m *Model) State() (s surrogate.State, missing int) {
	list := m.Results.List
	switch {
	case m.spec.Space.Dim() == 0:
		return surrogate.None, 0
	case m.engine != nil:
		return surrogate.Ready, 0
	case first(list, m.options.Start) > 0:
		return surrogate.AtNextAsk, 0
	}
	measured := 0
	for _, r := range list {
		if r.Y != nil {
			measured++
		}
	}
	return surrogate.Waiting, max(m.options.Start-len(list), leastMeasured-measured)
}

// Anchor returns the model event that is due at v, if one is.
func (m *Model) Anchor(ctx context.Context, v View) (study.Anchor, bool, error) {
	if m.spec.Space.Dim() == 0 {
		return study.Anchor{}, false, nil
	}
	if err := m.Results.follow(v); err != nil {
		return study.Anchor{}, false, err
	}
	before, _, _, err := m.inEffect(v)
	if err != nil {
		return study.Anchor{}, false, err
	}
	list := m.Results.List
	c := milestone(before.Results, list, m.options.Start)
	if c == 0 && before.blind(list, len(m.spec.Objectives)) {
		c = len(list)
	}
	if c == 0 {
		return study.Anchor{}, false, nil
	}
	if m.made.results != c || m.made.before != before.Results {
		text, err := m.write(context.WithoutCancel(ctx), before, c)
		if err != nil {
			return study.Anchor{}, false, err
		}
		m.made = made{before.Results, c, text}
	}
	return study.Anchor{Seen: list[c-1].End, Effective: v.Position() + 1, Model: m.made.text}, true, nil
}

// Remake returns the content that model event a should have, where v is the study just before a.
func (m *Model) Remake(ctx context.Context, v View, a study.Anchored) ([]byte, error) {
	e, err := Decode(a.Model)
	if err != nil {
		return nil, err
	}
	if err := m.Results.follow(v); err != nil {
		return nil, err
	}
	before, _, _, err := m.inEffect(v)
	if err != nil {
		return nil, err
	}
	c := min(e.Results, m.Results.upTo(a.Seen))
	if first := first(m.Results.List, m.options.Start); first == 0 || c < first {
		return nil, fmt.Errorf("a model event of %d results, which are too few for a model", c)
	}
	return m.write(ctx, before, c)
}

// write makes and encodes the model of the first c results.
func (m *Model) write(ctx context.Context, before Event, c int) ([]byte, error) {
	a := m.builder
	e, err := a.event(ctx, before, m.Results.List[:c])
	if err != nil {
		return nil, err
	}
	e.Version = modelVersion
	text, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encoding a model: %w", err)
	}
	return text, nil
}
