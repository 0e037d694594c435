package autotune

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// These attributes of a study mark it as made by a tuning, and mark the trial that has
// theory's settings.
const (
	attributeAlgorithm = "autotune.algorithm"
	attributeData      = "autotune.data"
	attributeStart     = "autotune.start"
	attributeLimits    = "autotune.limits" // of the learner, for example batch-size=1..3600, see [Edges]
)

// These name the starting configurations.
const (
	startTheory  = "theory"
	startNear    = "near theory"
	startHalf    = "half the length scale"
	startLearned = "learned length scales"
	startMetric  = "full metric"
	startSpread  = "each kernel"
)

// spreadShare is how many trials a study needs for each starting configuration, if it has
// those of each kernel.
const spreadShare = 3

// MismatchError reports a study that does not belong to this tuning.
type MismatchError struct{ Study, What string }

func (e *MismatchError) Error() string {
	return fmt.Sprintf("study %s exists, %s; name another study", e.Study, e.What)
}

// Complete sets the fields of a spec that the tuning decides: the space, the objective, the
// attributes and, where none is named, the pruner, see doc.go.
func (t *Tuning) Complete(s study.Spec) study.Spec {
	s.Space = t.space
	s.Objectives = []study.Objective{{Name: t.Objective(), Direction: study.Minimize}}
	s.Attributes = study.Attributes{attributeAlgorithm: t.algorithm.Name, attributeData: t.print}
	if len(t.limits) > 0 {
		s.Attributes[attributeLimits] = strings.Join(t.limits, " ")
	}
	if s.Pruner.Name == "" {
		s.Pruner = study.Component{Name: "median", Options: fmt.Sprintf(`{"warmup_steps":%d}`, t.warmup())}
	}
	return s
}

// warmup is the first step at which trials can be compared, which is half of the steps where
// these regularise, the second of several folds, and the fit with few centres.
func (t *Tuning) warmup() int {
	switch {
	case len(t.folds) > 0:
		return min(2, len(t.folds))
	case t.stepsRegularise():
		return max(t.steps/2, 1)
	}
	return 1
}

// Check returns a *MismatchError if a study was not made by this tuning.
func (t *Tuning) Check(s tuner.Study) error { return t.check(s, (*space.Space).Equal) }

// CheckSource is Check for a study whose trials another study takes over. Its ranges may
// differ.
func (t *Tuning) CheckSource(s tuner.Study) error { return t.check(s, t.alike) }

func (t *Tuning) check(s tuner.Study, same func(a, b *space.Space) bool) error {
	have, mine := s.Spec.Attributes, s.Spec.Objectives
	switch {
	case have[attributeAlgorithm] == "":
		return &MismatchError{s.Name, "and was not made by tuner auto"}
	case have[attributeAlgorithm] != t.algorithm.Name:
		return &MismatchError{s.Name, "and tunes " + have[attributeAlgorithm] + ", not " + t.algorithm.Name}
	case len(mine) != 1 || mine[0].Name != t.Objective():
		return &MismatchError{s.Name, "and has another objective than " + t.Objective()}
	case have[attributeData] != t.print:
		return &MismatchError{s.Name, "with other data or weights, or another split, encoding, seed or number of folds, or of an earlier version"}
	case !same(s.Spec.Space, t.space):
		return &MismatchError{s.Name, "with another search space" + differs(s.Spec.Space, t.space)}
	}
	return nil
}

// alike reports whether spaces are equal except for their ranges.
func (t *Tuning) alike(a, b *space.Space) bool {
	return slices.EqualFunc(a.Parameters(), b.Parameters(), func(p, q space.Parameter) bool {
		return t.withoutRange(p).Equal(t.withoutRange(q))
	})
}

func (t *Tuning) withoutRange(p space.Parameter) space.Parameter {
	if p.Type == space.TypeConstant && p.Name == "centers" && p.Values[0] == space.Int(t.most) {
		p = space.NewInt(p.Name, 1, t.most).WithScale(space.Log).WithStep(space.Int(1)) // a range of one value
	}
	p.Low, p.High = space.Value{}, space.Value{}
	if p.Type == space.TypeOrdinal && p.Values[0].Kind() == space.KindInt {
		p.Values = nil
	}
	return p
}

// differs names the first hyper-parameter that is searched differently.
func differs(theirs, mine *space.Space) string {
	for _, p := range slices.Concat(mine.Parameters(), theirs.Parameters()) {
		there, here := searchedIn(theirs, p.Name), searchedIn(mine, p.Name)
		if there != here {
			return fmt.Sprintf(" (%s: %s there, %s here)", p.Name, there, here)
		}
	}
	return ""
}

// searchedIn describes briefly how a hyper-parameter is searched.
func searchedIn(s *space.Space, name string) string {
	p, ok := s.Lookup(name)
	switch n := len(p.Values); {
	case !ok:
		return "its default"
	case p.Type == space.TypeConstant:
		return p.Values[0].String()
	case n > 0:
		return fmt.Sprintf("%s…%s", p.Values[0], p.Values[n-1])
	}
	return fmt.Sprintf("%s…%s", p.Low, p.High)
}

// Study makes the study if there is none, checks it if there is one, and puts the starting
// configurations into its queue once.
func (t *Tuning) Study(ctx context.Context, svc tuner.Service, name string, spec study.Spec) (view tuner.Study, made bool, err error) {
	view, made, err = t.Continue(ctx, svc, name, spec)
	if err != nil || view.Status == study.StatusFinished {
		return view, made, err
	}
	for i, start := range t.starts {
		if most := view.Spec.MaxTrials; most > 0 && i >= most || start.name == startSpread && !t.spreads(view.Spec) {
			break
		}
		// The id makes repeated calls of any worker have no effect.
		_, err := svc.Enqueue(ctx, name, study.Enqueue{
			RequestID: fmt.Sprintf("autotune-start-%d", i), Config: start.config, Attributes: study.Attributes{attributeStart: start.name},
		})
		if err != nil {
			return view, made, err
		}
	}
	view, err = svc.Study(ctx, name)
	return view, made, err
}

// spreads reports whether a study is known to have enough trials to start with each kernel.
func (t *Tuning) spreads(s study.Spec) bool {
	if s.MaxTrials == 0 {
		return s.MaxCost == 0
	}
	return s.MaxTrials >= spreadShare*len(t.starts)
}

// Continue is Study for a study that takes over the trials of another. It puts nothing into
// the queue.
func (t *Tuning) Continue(ctx context.Context, svc tuner.Service, name string, spec study.Spec) (view tuner.Study, made bool, err error) {
	view, err = svc.Study(ctx, name)
	if tuner.CodeOf(err) == tuner.NotFound {
		var created tuner.Created
		created, err = svc.CreateStudy(ctx, name, study.Create{Spec: t.Complete(spec)})
		if view, made = created.Study, err == nil; tuner.CodeOf(err) == tuner.AlreadyExists { // another worker was faster
			view, err = svc.Study(ctx, name)
		}
	}
	if err != nil {
		return view, false, err
	}
	return view, made, t.Check(view)
}

// Default returns the trial with theory's settings. If it has not completed, ok is false.
// If there is no such trial, its State is empty.
func Default(ctx context.Context, svc tuner.Service, name string) (trial study.Trial, ok bool, err error) {
	trials, _, err := svc.Trials(ctx, name, tuner.Filter{Limit: 100})
	for _, trial := range trials {
		if trial.Attributes[attributeStart] == startTheory {
			return trial, trial.State == study.Completed, err
		}
	}
	return study.Trial{}, false, err
}

// Best returns the completed trial with the least error, and the first of equal ones, if there is
// one. All have the same rows and seed, so it needs no mean of a model as [tuner.Service.Best] does.
func (t *Tuning) Best(ctx context.Context, svc tuner.Service, name string) (best study.Trial, ok bool, err error) {
	least := 0.0
	err = t.completed(ctx, svc, name, func(trial study.Trial, x float64) {
		if !ok || x < least {
			best, least, ok = trial, x, true
		}
	})
	return best, ok, err
}

// completed calls f for each completed trial with its error, in the order of their numbers.
func (t *Tuning) completed(ctx context.Context, svc tuner.Service, name string, f func(trial study.Trial, x float64)) error {
	for filter := (tuner.Filter{States: []study.TrialState{study.Completed}}); ; {
		trials, more, err := svc.Trials(ctx, name, filter)
		if err != nil {
			return err
		}
		for _, trial := range trials {
			if m, measured := trial.Outcome.Metric(t.Objective()); measured {
				f(trial, m.Mean())
			}
			filter.First = trial.Number + 1
		}
		if !more {
			return nil
		}
	}
}
