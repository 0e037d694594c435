package engine

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/study"
)

// TestLateResultsTeach checks that a model learns from workers that tell their results
// after their leases were taken over. Suggestions are the same in one run, with
// restarts, and when prepared in the background. The log explains all of them.
func TestLateResultsTeach(t *testing.T) {
	const trials, lease = 24, time.Minute
	search := func(t *testing.T, o Options, restart, comeBack bool) (configs []string, results int) {
		st := newFaulty()
		tn := open(t, st, o, func(c *study.Spec) {
			c.Proposer, c.Lease, c.MaxRetries = study.Component{Name: propose.BKB, Options: `{"cap": 32}`}, lease, 2
		})
		value := func(trial study.Trial) float64 {
			x, _ := trial.Config.Get("x")
			v, _ := x.AsFloat()
			return v * v
		}
		late := func(trial study.Trial, epoch int) {
			if !comeBack {
				return
			}
			told, err := tn.Tell(t.Context(), "s", study.Tell{Trial: trial.Number, Epoch: epoch, Outcome: loss(value(trial) + 0.25)})
			if err != nil || !told.Late || len(told.Trial.Late) != epoch {
				t.Fatalf("told late: %+v, %v", told, err)
			}
		}
		for i := range trials {
			trial := ask(t, tn, study.Ask{})[0]
			configs = append(configs, fmt.Sprint(trial.Number, trial.Config, trial.Suggestion.Mean))
			if i%4 == 1 { // the worker sleeps, and another takes over
				time.Sleep(lease + 2*time.Second)
				if trial = ask(t, tn, study.Ask{})[0]; trial.Number != i || trial.Epoch != 2 {
					t.Fatalf("trial %d: %+v", i, trial)
				}
				if i%8 == 1 {
					late(trial, 1)
				}
			}
			tell(t, tn, i, loss(value(trial)))
			if i%8 == 5 {
				late(trial, 1)
			}
			synctest.Wait() // until preparation has finished
			if restart {
				tn.Close()
				tn = Open(st, o)
			}
		}
		report, err := tn.Replay(t.Context(), "s", nil)
		if err != nil || report.Suggestions != trials || report.Models == 0 || len(report.Differences)+len(report.ModelDifferences) > 0 {
			t.Errorf("replay: %+v, %v", report, err)
		}
		d, err := tn.Diagnose(t.Context(), "s")
		if err != nil {
			t.Error(err)
		}
		tn.Close()
		return configs, d.Results
	}
	same := func(t *testing.T, how string, got, want []string) {
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("%s: suggestion %d is %s and was %s", how, i, got[i], want[i])
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		straight, results := search(t, Options{}, false, true)
		if results != trials+trials/4 {
			t.Errorf("the model has heard of %d results", results)
		}
		restarted, _ := search(t, Options{}, true, true)
		same(t, "restarted", restarted, straight)
		long, _ := search(t, Options{LongLived: true}, false, true)
		same(t, "long-lived", long, straight)
		without, results := search(t, Options{}, false, false)
		if results != trials || fmt.Sprint(without) == fmt.Sprint(straight) {
			t.Errorf("without what came late: %d results, the same suggestions", results)
		}
	})
}
