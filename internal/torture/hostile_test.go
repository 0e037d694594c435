package torture

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/prune"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// hostileValues are histories that have broken other optimisers.
var hostileValues = map[string]func(i int) float64{
	"all equal":          func(int) float64 { return 1 },
	"far apart":          func(i int) float64 { return []float64{1e-300, 1e300}[i%2] },
	"range overflows":    func(i int) float64 { return []float64{-math.MaxFloat64, math.MaxFloat64}[i%2] },
	"smallest":           func(i int) float64 { return 5e-324 * float64(i%3) },
	"infinite":           func(i int) float64 { return []float64{math.Inf(1), 1}[i%2] },
	"nothing but bad":    func(int) float64 { return math.Inf(1) },
	"not numbers":        func(i int) float64 { return []float64{math.NaN(), math.NaN(), float64(i)}[i%3] },
	"nothing but NaN":    func(int) float64 { return math.NaN() },
	"minus zero":         func(i int) float64 { return math.Copysign(0, float64(i%2)-0.5) },
	"huge and one small": func(i int) float64 { return []float64{1e308, 1e308, 1e308, -1e308}[i%4] },
}

var hostilePruners = []study.Component{
	{Name: prune.Median},
	{Name: prune.ASHA},
	{Name: prune.Hyperband, Options: `{"max_resource": 3}`},
	{Name: prune.Patience, Options: `{"patience_steps": 2}`},
	{Name: prune.None},
}

// hostileSpaces returns spaces with extreme parameters.
func hostileSpaces(t *testing.T) map[string]*space.Space {
	t.Helper()
	choices := make([]space.Value, 1000)
	for i := range choices {
		choices[i] = space.Int(int64(i))
	}
	spaces := make(map[string]*space.Space)
	for name, parameters := range map[string][]space.Parameter{
		"plain":        {space.NewFloat("x", 0, 1)},
		"wide":         {space.NewFloat("x", -math.MaxFloat64/4, math.MaxFloat64/4), space.NewFloat("y", 1e-300, 1e300).WithScale(space.Log)},
		"whole":        {space.NewInt("n", -1<<53, 1<<53), space.NewInt("m", 3, 3)},
		"many choices": {space.NewCategorical("c", choices...)},
		"one point":    {space.NewInt("n", 5, 5)},
	} {
		sp, err := space.New(parameters...)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		spaces[name] = sp
	}
	return spaces
}

// TestHostileNumbers runs each proposer and pruner on histories and spaces that have
// broken other optimisers. Every suggestion is in the space, and no call fails with an
// internal error.
func TestHostileNumbers(t *testing.T) {
	racetest.Alone(t)
	asks, fallbacks := 0, 0
	for spaceName, sp := range hostileSpaces(t) {
		for valueName, value := range hostileValues {
			for i, proposer := range []string{propose.Sobol, propose.Random, propose.BKB} {
				pruner := hostilePruners[(i+len(valueName)+len(spaceName))%len(hostilePruners)]
				s := study.Spec{
					Space: sp, Objectives: []study.Objective{{Name: "loss", Direction: study.Minimize}}, Seed: 3,
					Proposer: study.Component{Name: proposer}, Pruner: pruner,
				}
				a, f, err := survive(s, value, 14)
				if err != nil {
					t.Errorf("%s and %s on the space %q with values %q: %v", proposer, pruner.Name, spaceName, valueName, err)
				}
				asks, fallbacks = asks+a, fallbacks+f
			}
		}
	}
	figures(t, "%d suggestions over %d hostile histories in %d spaces, all valid; %d were fallbacks", asks, len(hostileValues), len(hostileSpaces(t)), fallbacks)
}

// survive runs a study with hostile results.
func survive(spec study.Spec, value func(int) float64, trials int) (asks, fallbacks int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	tn := engine.Open(memory.New(), engine.Options{})
	defer tn.Close()
	if _, err := tn.CreateStudy(ctx, "s", study.Create{Spec: spec}); err != nil {
		return 0, 0, err
	}
	for i := range trials {
		asked, err := tn.Ask(ctx, "s", study.Ask{})
		if code := tuner.CodeOf(err); code == tuner.Finished { // the space is used up
			return asks, fallbacks, nil
		} else if err != nil {
			return asks, fallbacks, err
		}
		trial := asked.Trials[0]
		if err := spec.Space.Validate(trial.Config); err != nil {
			return asks, fallbacks, err
		}
		if asks++; trial.Suggestion.Phase == "fallback" {
			fallbacks++
		}
		for step := range int64(3) {
			if _, err := tn.Report(ctx, "s", study.ReportValues{Trial: trial.Number, Reports: []study.Report{{Step: step, Values: []study.NamedValue{{Name: "loss", Value: value(i + int(step))}}}}}); err != nil {
				return asks, fallbacks, err
			}
		}
		o := study.Outcome{State: study.Completed, Metrics: []study.Metric{{Name: "loss", Values: []float64{value(i)}}}}
		if _, err := tn.Tell(ctx, "s", study.Tell{Trial: trial.Number, Outcome: o}); err != nil {
			return asks, fallbacks, err
		}
	}
	_, err = tn.Best(ctx, "s")
	return asks, fallbacks, err
}
