package engine

import (
	"errors"
	"fmt"
	"testing"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
)

// TestStudyQuota checks that a full study accepts no new trials or reports. Running
// trials can be told, and repeated requests get their answers.
func TestStudyQuota(t *testing.T) {
	for name, o := range map[string]Options{
		"bytes":   {MaxStudyBytes: 5_000},
		"reports": {MaxStudyReports: 5},
	} {
		t.Run(name, func(t *testing.T) {
			st := newFaulty()
			tn := Open(st, o)
			defer func() { tn.Close() }()
			if _, err := tn.CreateStudy(t.Context(), "s", study.Create{Spec: testSpec(t, nil)}); err != nil {
				t.Fatal(err)
			}
			asked, err := tn.Ask(t.Context(), "s", study.Ask{Count: 2, Worker: "w"})
			if err != nil {
				t.Fatal(err)
			}
			report := func(step int) error {
				_, err := tn.Report(t.Context(), "s", study.ReportValues{
					RequestID: fmt.Sprint("r", step), Trial: 0, Epoch: asked.Trials[0].Epoch,
					Reports: []study.Report{{Step: int64(step), Values: []study.NamedValue{{Name: "loss", Value: 1}}}},
				})
				return err
			}
			steps := 0
			for ; steps < 100 && err == nil; steps++ {
				err = report(steps)
			}
			quota := (*tuner.QuotaError)(nil)
			if !errors.As(err, &quota) || tuner.CodeOf(err) != tuner.Exhausted {
				t.Fatalf("after %d reports: %v", steps, err)
			}
			if name == "reports" && (steps != 6 || quota.Value != 6 || quota.Most != 5) {
				t.Errorf("refused report %d: %v", steps, err)
			}
			if err := report(0); err != nil {
				t.Errorf("a repeated report: %v", err)
			}
			again, err := tn.Ask(t.Context(), "s", study.Ask{Count: 1, Worker: "w"})
			if err != nil || again.Trials[0].Number != 0 {
				t.Errorf("the worker gets its trial back as %v, %v", again.Trials, err)
			}
			if _, err := tn.Tell(t.Context(), "s", study.Tell{Trial: 0, Epoch: 1, Outcome: study.Outcome{State: study.Infeasible}}); err != nil {
				t.Errorf("telling: %v", err)
			}
			if name == "bytes" {
				if _, err := tn.Ask(t.Context(), "s", study.Ask{New: true}); !errors.As(err, &quota) {
					t.Errorf("a new trial: %v", err)
				}
			}
			tn.Close()
			tn = Open(st, o) // stored events count
			if err := report(steps); tuner.CodeOf(err) != tuner.TrialState {
				t.Errorf("a report of a trial that is over: %v", err)
			}
			_, err = tn.Report(t.Context(), "s", study.ReportValues{Trial: 1, Reports: []study.Report{{Step: 1, Values: []study.NamedValue{{Name: "loss", Value: 1}}}}})
			if !errors.As(err, &quota) {
				t.Errorf("a report after a restart: %v", err)
			}
			tn.Close()
			tn = Open(st, Options{})
			if err := tn.SetAttributes(t.Context(), "s", study.SetAttributes{Trial: 1, Attributes: study.Attributes{"a": "b"}}); err != nil {
				t.Errorf("without a limit: %v", err)
			}
		})
	}
}
