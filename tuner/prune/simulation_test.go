package prune

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/tuner/study"
)

const simulatedSteps = 81

// learner is a learning curve. It follows a power law down to its final loss, with noise.
type learner struct {
	final, gap, speed float64
	r                 *rand.Rand
}

func newLearner(seed uint64, trial int) learner {
	r := stream.New(stream.Derive(seed, "learner", uint64(trial)))
	return learner{final: r.Float64(), gap: 0.5 + r.Float64(), speed: 0.5 + r.Float64(), r: r}
}

// at returns the loss at a step. Call it in order of steps.
func (l learner) at(step int64) float64 {
	return l.final + l.gap*math.Pow(float64(step), -l.speed) + 0.01*l.r.NormFloat64()
}

// simulation is the effect of a pruner on one study.
type simulation struct {
	spent  float64 // part of the steps that were run
	regret float64 // final loss of the best trial that ended, minus that of the best of all
}

// simulate runs trials on 8 workers that report each step in turn.
func simulate(t *testing.T, c study.Component, seed uint64, trials int) simulation {
	p := must(t, c)
	best, reached, steps := math.Inf(1), math.Inf(1), 0
	type run struct {
		trial study.Trial
		l     learner
	}
	var workers [8]*run
	for next, busy := 0, true; busy; {
		busy = false
		for w := range workers {
			if workers[w] == nil && next < trials {
				workers[w] = &run{study.Trial{Number: next, State: study.Running, Epoch: 1}, newLearner(seed, next)}
				best = min(best, workers[w].l.final)
				next++
			}
			r := workers[w]
			if r == nil {
				continue
			}
			busy = true
			step := int64(len(r.trial.Reports) + 1)
			r.trial.Reports = append(r.trial.Reports, study.Report{Epoch: 1, Step: step, Values: []study.NamedValue{{Name: "loss", Value: r.l.at(step)}}})
			steps++
			p.Update(r.trial)
			switch {
			case step == simulatedSteps:
				reached = min(reached, r.l.final)
				r.trial.State = study.Completed
			case p.Decide(r.trial.Number).Stop:
				r.trial.State = study.Pruned
			default:
				continue
			}
			p.Update(r.trial)
			workers[w] = nil
		}
	}
	return simulation{float64(steps) / float64(trials*simulatedSteps), reached - best}
}

// On 40 simulated studies of 150 trials each pruner saves the expected share of steps. A
// trial ends whose final loss (uniform in [0, 1]) is within 0.02 of the best, which is
// about the best four. A pruner that stopped trials at random and spent 5% (25%) of the
// steps would finish one of these four in 7 (27) of 40 studies on average. The seeds are
// fixed, so the test cannot fail by chance. The log shows the measured values, and the
// bounds leave a margin to them.
func TestPrunersKeepTheBestAndSave(t *testing.T) {
	for _, test := range []struct {
		c     study.Component
		spent float64 // at most, on average
		kept  int     // at least, of 40
	}{
		{study.Component{Name: Median}, 0.30, 35},
		{study.Component{Name: Percentile, Options: `{"percentile": 25}`}, 0.20, 32},
		{study.Component{Name: ASHA}, 0.06, 29},
		{study.Component{Name: ASHA, Options: `{"min_resource": 3, "reduction_factor": 3}`}, 0.12, 34},
		{study.Component{Name: Hyperband, Options: `{"max_resource": 81}`}, 0.25, 34},
	} {
		const studies = 40
		spent, kept := 0.0, 0
		for seed := range uint64(studies) {
			s := simulate(t, test.c, seed, 150)
			spent += s.spent / studies
			if s.regret <= 0.02 {
				kept++
			}
		}
		t.Logf("%s %s: %.0f%% of the steps, best kept in %d of %d", test.c.Name, test.c.Options, 100*spent, kept, studies)
		if spent > test.spent || kept < test.kept {
			t.Errorf("%s %s: %.0f%% of the steps, wanted at most %.0f%%; best kept in %d of %d, wanted %d",
				test.c.Name, test.c.Options, 100*spent, 100*test.spent, kept, studies, test.kept)
		}
	}
}
