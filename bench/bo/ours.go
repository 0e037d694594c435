package bo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// ErrEnded is returned by Ask when nothing is left to try.
var ErrEnded = errors.New("there is nothing left to try")

// ours has BKB with its defaults, and with one part of it changed at a time.
var ours = []Contestant{
	bkb("bkb", Ours, "BKB with defaults", ""),
	bkb("bkb-no-exploit", Ablation, "no suggestion exploits the posterior mean", `{"exploit_every": 0}`),
	bkb("bkb-wide", Ablation, "c = 0.15 in the width of the bounds", `{"width": 0.15}`),
	bkb("bkb-theory", Ablation, "the width of the bounds by theory", `{"beta": "theory"}`),
	bkb("bkb-cap32", Ablation, "32 inducing points at most", `{"cap": 32}`),
	parallel(4, bkb("bkb-workers4", Ablation, "BKB with four asynchronous workers", "")),
	parallel(8, bkb("bkb-workers8", Ablation, "BKB with eight asynchronous workers", "")),
}

// parallel lets a form of BKB with defaults run several trials at a time.
func parallel(workers int, k Contestant) Contestant {
	k.Workers, k.Base = workers, "bkb"
	return k
}

var baselines = []Contestant{
	service("random", Baseline, "uniform in the unit cube", study.Component{Name: propose.Random}),
	service("sobol", Baseline, "scrambled Sobol' points", study.Component{Name: propose.Sobol}),
}

func bkb(name string, kind Kind, title, options string) Contestant {
	return service(name, kind, title, study.Component{Name: propose.BKB, Options: options})
}

// Variant returns BKB with other options, a JSON object, under a name of its own. The
// errors are [*NameError] and [*study.InvalidError].
func Variant(name, options string) (Contestant, error) {
	if !contestantName.MatchString(name) || slices.Contains(ContestantNames(), name) {
		return Contestant{}, &NameError{name}
	}
	sp, err := space.New(space.NewFloat("x", 0, 1))
	if err != nil {
		return Contestant{}, err
	}
	spec := study.Spec{Space: sp, Objectives: []study.Objective{{Name: objective, Direction: study.Minimize}}}
	if _, err := propose.New(study.Component{Name: propose.BKB, Options: options}, spec); err != nil {
		return Contestant{}, err
	}
	return bkb(name, Ablation, "BKB with "+options, options), nil
}

var contestantName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// NameError reports a name that a contestant cannot have.
type NameError struct{ Name string }

func (e *NameError) Error() string {
	return fmt.Sprintf("an optimiser cannot be named %q; use lower-case letters, digits and hyphens, and a name that no other has", e.Name)
}

// service is a proposer of this module behind the service, as in real use.
func service(name string, kind Kind, title string, c study.Component) Contestant {
	return Contestant{
		Name: name, Kind: kind, Title: title,
		New:     func(ctx context.Context, s Setup) (Optimiser, error) { return newServed(ctx, s, c) },
		Version: func(context.Context, Setup) (string, error) { return Version(), nil },

		component: &c,
	}
}

// Version returns the version of this module, and the commit if the build has it.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return s.Value[:12]
		}
	}
	if info.Main.Version != "" {
		return info.Main.Version
	}
	return "devel"
}

// served is a study of a service over a store in memory.
type served struct {
	service *engine.Engine
	running []study.Trial // asked for and not told
	metrics []string      // that the proposer has limits on
	// mean and sd predict the outcome of the last trial asked for, where sd is 0 without a
	// model.
	mean, sd float64
}

var (
	_ Limiter   = (*served)(nil)
	_ Predictor = (*served)(nil)
)

const studyName, objective = "bench", "value"

func newServed(ctx context.Context, s Setup, c study.Component) (Optimiser, error) {
	var metrics []string
	if len(s.Metrics) > 0 && c.Name == propose.BKB {
		metrics = s.Metrics
		var err error
		if c.Options, err = withLimits(c.Options, metrics); err != nil {
			return nil, err
		}
	}
	// Time stands still, so that no lease expires and a busy machine does not cause random
	// suggestions as a fallback.
	t := engine.Open(memory.New(), engine.Options{ProposeTimeout: 24 * time.Hour, Now: func() time.Time { return stillTime }})
	spec := study.Spec{
		Space: s.Space, Objectives: []study.Objective{{Name: objective, Direction: study.Minimize}},
		Seed: s.Seed, Proposer: c,
	}
	if _, err := t.CreateStudy(ctx, studyName, study.Create{Spec: spec}); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return &served{service: t, metrics: metrics}, nil
}

// withLimits adds constraints to options of the proposer bkb. No metric may be above 0.
func withLimits(options string, metrics []string) (string, error) {
	all := make(map[string]any)
	if options != "" {
		if err := json.Unmarshal([]byte(options), &all); err != nil {
			return "", err
		}
	}
	limits := make(map[string]map[string]float64)
	for _, name := range metrics {
		limits[name] = map[string]float64{"max": 0}
	}
	all["constraints"] = limits
	out, err := json.Marshal(all)
	return string(out), err
}

// Ask implements [Optimiser].
func (o *served) Ask(ctx context.Context) (space.Config, error) {
	asked, err := o.service.Ask(ctx, studyName, study.Ask{Count: 1, New: true})
	if tuner.CodeOf(err) == tuner.Finished || tuner.CodeOf(err) == tuner.NoneLeft {
		return space.Config{}, ErrEnded
	} else if err != nil {
		return space.Config{}, err
	}
	trial := asked.Trials[0]
	if trial.Suggestion.Phase == "fallback" {
		return space.Config{}, fmt.Errorf("trial %d is a fallback: the proposer failed", trial.Number)
	}
	o.running = append(o.running, trial)
	if o.mean, o.sd = 0, 0; len(asked.Noise) > 0 && len(trial.Suggestion.Mean) > 0 {
		o.mean, o.sd = trial.Suggestion.Mean[0], math.Hypot(trial.Suggestion.StdDev[0], asked.Noise[0])
	}
	return trial.Config, nil
}

// Predicted implements [Predictor].
func (o *served) Predicted() (mean, sd float64, ok bool) { return o.mean, o.sd, o.sd > 0 }

// Tell implements [Optimiser].
func (o *served) Tell(ctx context.Context, c space.Config, value float64, ok bool) error {
	outcome := study.Outcome{State: study.Failed, Reason: study.FailedCrash}
	if ok {
		outcome = study.Measured(objective, value)
	}
	return o.put(ctx, c, outcome)
}

// TellLimited implements [Limiter].
func (o *served) TellLimited(ctx context.Context, c space.Config, value float64, metrics []float64) error {
	if o.metrics == nil {
		return o.Tell(ctx, c, value, keeps(metrics))
	}
	outcome := study.Measured(objective, value)
	for i, name := range o.metrics {
		outcome.Metrics = append(outcome.Metrics, study.Metric{Name: name, Values: metrics[i : i+1]})
	}
	slices.SortFunc(outcome.Metrics, func(a, b study.Metric) int { return strings.Compare(a.Name, b.Name) })
	return o.put(ctx, c, outcome)
}

// put tells the outcome of the running trial with the configuration, or adds a trial.
func (o *served) put(ctx context.Context, c space.Config, outcome study.Outcome) error {
	at := slices.IndexFunc(o.running, func(t study.Trial) bool { return t.Config.Equal(c) })
	if at < 0 {
		_, err := o.service.Add(ctx, studyName, study.Add{Config: c, Outcome: outcome})
		return err
	}
	n := o.running[at].Number
	o.running = slices.Delete(o.running, at, at+1)
	_, err := o.service.Tell(ctx, studyName, study.Tell{Trial: n, Outcome: outcome})
	return err
}

// Recommend implements [Recommender] with the best trial of the service.
func (o *served) Recommend(ctx context.Context) (c space.Config, ok bool, err error) {
	best, err := o.service.Best(ctx, studyName)
	if err != nil || len(best) == 0 {
		return c, false, err
	}
	return best[0].Config, true, nil
}

// Close implements [Optimiser].
func (o *served) Close() error { return o.service.Close() }
