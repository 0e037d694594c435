package propose

import (
	"context"

	"github.com/bkbtuner/bkb/tuner/propose/acquire"
	"github.com/bkbtuner/bkb/tuner/propose/model"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/surrogate"
)

// bkb is the proposer "bkb". It has a model of the results, a chooser that uses it, and a
// design for as long as there is no model.
type bkb struct {
	*model.Model
	spec    study.Spec
	options BKBOptions
	chooser *acquire.Chooser
	design  *design
}

func newBKB(spec study.Spec, o BKBOptions) Modeler {
	return &bkb{model.New(spec, o.Model), spec, o, acquire.New(spec, o.Choice), newStart(spec)}
}

func (b *bkb) Propose(ctx context.Context, v View, n int) (Proposal, error) {
	e, err := b.At(v)
	if err != nil {
		return Proposal{}, err
	}
	if e == nil {
		return b.begin(ctx, v, n)
	}
	return b.chooser.Propose(ctx, e, v.Trials(), v.Position(), n)
}

// begin makes suggestions without a model.
func (b *bkb) begin(ctx context.Context, v View, n int) (Proposal, error) {
	p, err := b.design.Propose(ctx, v, n)
	if b.spec.Space.Dim() > 0 {
		p.UsefulWorkers = max(b.options.Model.Start-len(b.Results.List), 1)
	}
	return p, err
}

// Recommend implements [Modeler]. Without a model it recommends none.
func (b *bkb) Recommend(_ context.Context, v View) (func() []int, error) {
	e, err := b.At(v)
	if err != nil {
		return nil, err
	}
	if e == nil {
		return func() []int { return nil }, nil
	}
	return b.chooser.Recommend(v, e), nil
}

func (b *bkb) Freeze(_ context.Context, v View) (*Frozen, surrogate.State, int, error) {
	e, err := b.At(v)
	if err != nil {
		return nil, 0, 0, err
	}
	state, missing := b.State()
	if e == nil {
		return nil, state, missing, nil
	}
	return e.Freeze(), state, missing, nil
}

func (b *bkb) Listens() bool { return !b.options.Model.IgnoreReports }

// Forecast implements [Modeler]. The incumbent is the trial with the best mean among the
// 32 best results.
func (b *bkb) Forecast(_ context.Context, v View, trial int, width float64) (Forecast, bool, error) {
	e, err := b.At(v)
	if e == nil || err != nil {
		return Forecast{}, false, err
	}
	best, ok := b.chooser.Incumbent(e)
	if !ok {
		return Forecast{}, false, nil
	}
	f, ok := e.Forecast(trial, width)
	if ok {
		f.Incumbent = best
	}
	return f, ok, nil
}

func (b *bkb) Diagnose(_ context.Context, v View) (surrogate.Diagnosis, error) {
	e, err := b.At(v)
	if err != nil {
		return surrogate.Diagnosis{}, err
	}
	if e == nil {
		state, missing := b.State()
		return surrogate.Diagnosis{State: state, Missing: missing}, nil
	}
	return b.chooser.Diagnose(e, v.Trials()), nil
}
