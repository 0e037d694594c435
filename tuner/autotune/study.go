package autotune

import (
	"context"
	"fmt"

	"github.com/bkbtuner/bkb/learners/falkon"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// The attributes of a study by which a tuning knows it for its own, and of the
// trial that has theory's settings.
const (
	attributeAlgorithm = "autotune.algorithm"
	attributeData      = "autotune.data"
	attributeStart     = "autotune.start"
)

const startTheory = "theory"

// MismatchError is a study that is not of this tuning.
type MismatchError struct{ Study, What string }

func (e *MismatchError) Error() string {
	return fmt.Sprintf("study %s exists, %s; name another study", e.Study, e.What)
}

// Complete sets in a spec what the tuning decides: space, objective and
// attributes; and, where none is named, the pruner: the median rule, once half
// of the steps are done, and those that say nothing of a trial yet; see doc.go.
func (t *Tuning) Complete(s study.Spec) study.Spec {
	s.Space = t.space
	s.Objectives = []study.Objective{{Name: t.Objective(), Direction: study.Minimize}}
	s.Attributes = study.Attributes{attributeAlgorithm: t.algorithm.Name, attributeData: t.print}
	if s.Pruner.Name == "" {
		s.Pruner = study.Component{Name: "median", Options: fmt.Sprintf(`{"warmup_steps":%d}`, t.warmup())}
	}
	return s
}

// warmup is the step from which on trials can be compared. Logistic FALKON comes down
// to its λ from a larger one: until all λ of the space are reached, trials with a small
// one look no better than others, or worse, and are those that end best.
func (t *Tuning) warmup() int {
	steps := max(t.steps/2, 1)
	l, ok := t.estimator.(falkon.LogisticParams)
	if !ok {
		return steps
	}
	least := l.Lambda
	for _, p := range t.space.Parameters() {
		if low, ok := p.Low.AsFloat(); ok && p.Name == "lambda" && p.Type == space.TypeFloat {
			least = low
		}
	}
	if least == 0 { // auto
		least = 1 / float64(t.problem.Rows)
	}
	return max(steps, l.Descent(least, 1)+1)
}

// Check says why a study is not one of this tuning: a *MismatchError.
func (t *Tuning) Check(s tuner.Study) error {
	have, mine := s.Spec.Attributes, s.Spec.Objectives
	switch {
	case have[attributeAlgorithm] == "":
		return &MismatchError{s.Name, "and is not one of tuner auto"}
	case have[attributeAlgorithm] != t.algorithm.Name:
		return &MismatchError{s.Name, "and tunes " + have[attributeAlgorithm] + ", not " + t.algorithm.Name}
	case len(mine) != 1 || mine[0].Name != t.Objective():
		return &MismatchError{s.Name, "and has another objective than " + t.Objective()}
	case have[attributeData] != t.print:
		return &MismatchError{s.Name, "with other data, or another split, encoding or seed"}
	case !s.Spec.Space.Equal(t.space):
		return &MismatchError{s.Name, "with another search space"}
	}
	return nil
}

// Study makes the study if there is none, checks it if there is one, and sees to
// it that the configurations to begin with are in its queue, once.
func (t *Tuning) Study(ctx context.Context, svc tuner.Service, name string, spec study.Spec) (view tuner.Study, made bool, err error) {
	view, made, err = t.Continue(ctx, svc, name, spec)
	if err != nil || view.Status == study.StatusFinished {
		return view, made, err
	}
	for i, c := range t.starts {
		if spec := view.Spec; spec.MaxTrials > 0 && i >= spec.MaxTrials {
			break
		}
		what := startTheory
		if i > 0 {
			what = "half the length scale"
		}
		// The id makes it happen once, whoever comes first and however often.
		_, err := svc.Enqueue(ctx, name, study.Enqueue{
			RequestID: fmt.Sprintf("autotune-start-%d", i), Config: c, Attributes: study.Attributes{attributeStart: what},
		})
		if err != nil {
			return view, made, err
		}
	}
	view, err = svc.Study(ctx, name)
	return view, made, err
}

// Continue is Study for one that takes over the trials of another: nothing is put into
// its queue.
func (t *Tuning) Continue(ctx context.Context, svc tuner.Service, name string, spec study.Spec) (view tuner.Study, made bool, err error) {
	view, err = svc.Study(ctx, name)
	if tuner.CodeOf(err) == tuner.NotFound {
		created, err := svc.CreateStudy(ctx, name, study.Create{Spec: t.Complete(spec)})
		switch {
		case err == nil:
			view, made = created.Study, true
		case tuner.CodeOf(err) != tuner.AlreadyExists: // somebody else was faster
			return view, false, err
		default:
			if view, err = svc.Study(ctx, name); err != nil {
				return view, false, err
			}
		}
	} else if err != nil {
		return view, false, err
	}
	return view, made, t.Check(view)
}

// Default returns the trial with theory's settings; ok is false if it has not
// completed.
func Default(ctx context.Context, svc tuner.Service, name string) (trial study.Trial, ok bool, err error) {
	trials, _, err := svc.Trials(ctx, name, tuner.Filter{Limit: 100})
	for _, trial := range trials {
		if trial.Attributes[attributeStart] == startTheory {
			return trial, trial.State == study.Completed, err
		}
	}
	return study.Trial{}, false, err
}
