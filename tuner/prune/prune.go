package prune

import (
	"fmt"
	"strings"

	"github.com/bkbtuner/bkb/tuner/study"
)

// Pruner decides which running trials of one study to stop. It is not safe for concurrent use.
type Pruner interface {
	// Update receives a trial as it stands. Call it after each change of a trial, that is when it
	// was started, reported values, expired, ended, or was added. Calling it again, or with other
	// trials in between, has no effect. A new Pruner that is updated with all trials of a study,
	// in any order, is equal to one that received every change. Trials only grow. A caller that
	// takes events back because a commit failed makes a new Pruner.
	Update(t study.Trial)
	// Decide judges a running trial by the updates so far. For a trial that is unknown or
	// not running, it does not stop.
	Decide(trial int) Verdict
}

// Verdict is the decision of a pruner about a trial.
type Verdict struct {
	Stop bool
	// Reason is a text for people, such as "loss 0.53 is worse than …". Without Stop it says
	// why a trial runs on that would be stopped otherwise, or is empty.
	Reason string
}

// The names that [New] knows.
const (
	None       = "none"
	Median     = "median"
	Percentile = "percentile"
	ASHA       = "asha"
	Hyperband  = "hyperband"
	Threshold  = "threshold"
	Patience   = "patience"
	Model      = "model"
)

// New returns the pruner that c names, with c's options, for a study with the given spec. It is
// nil for the names "none" and "". New ignores spec.Pruner. The error is a *[study.InvalidError].
func New(c study.Component, spec study.Spec) (Pruner, error) {
	o := study.ReadOptions("pruner.options", c.Options)
	var p Pruner
	switch c.Name {
	case "", None:
		c.Name = None
	case Median:
		p = newPercentile(o, spec, false)
	case Percentile:
		p = newPercentile(o, spec, true)
	case ASHA:
		p = newASHA(o, spec)
	case Hyperband:
		p = newHyperband(o, spec)
	case Threshold:
		p = newThreshold(o, spec)
	case Patience:
		p = newPatience(o, spec)
	case Model:
		p = newModel(o, spec)
	default:
		return nil, &study.InvalidError{
			Field: "pruner.name", Value: fmt.Sprintf("%.60q", c.Name),
			Rule: "there is no such pruner", Remedy: "use " + Listed(),
		}
	}
	if err := o.Finish(c.Name); err != nil {
		return nil, err
	}
	return p, nil
}

// Names lists the pruners, without [None].
func Names() []string {
	return []string{Median, Percentile, ASHA, Hyperband, Threshold, Patience, Model}
}

// Listed names all pruners in a sentence, [None] first.
func Listed() string {
	names := append([]string{None}, Names()...)
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// Options lists the options of a pruner.
func Options(name string) []string {
	return study.KnownOptions(name, func(c study.Component, spec study.Spec) error {
		_, err := New(c, spec)
		return err
	})
}
