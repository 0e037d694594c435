package data

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/cmd/tuner/record"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
)

// refusing is a service whose second call with many trials ends with an error.
type refusing struct {
	*engine.Engine
	calls int
	err   error
}

func (r *refusing) AddAll(ctx context.Context, name string, commands []study.Command) ([]int, error) {
	if r.calls++; r.calls < 2 {
		return r.Engine.AddAll(ctx, name, commands)
	}
	at := (*tuner.CommandError)(nil)
	if !errors.As(r.err, &at) {
		return nil, r.err
	}
	if _, err := r.Engine.AddAll(ctx, name, commands[:at.Index]); err != nil {
		return nil, err
	}
	return nil, r.err
}

// An import that ends early names a line if that is to blame, and says that it can
// go on if it can.
func TestImportRefused(t *testing.T) {
	const goesOn = "The same command continues with the others."
	for what, test := range map[string]struct {
		err       error
		note      string
		line, can bool
	}{
		"full":     {fmt.Errorf("commit: %w", store.ErrFull), "500 of 800 trials are imported.", false, true},
		"unknown":  {fmt.Errorf("commit: %w", store.ErrUnknownOutcome), "At least 500 of 800 trials are imported.", false, true},
		"deleted":  {&store.NotFoundError{Name: "s"}, "500 of 800 trials are imported.", false, false},
		"finished": {&tuner.CommandError{Index: 7, Err: &study.FinishedError{Reason: study.FinishedUser}}, "507 of 800 trials are imported.", true, false},
		"limit":    {&tuner.CommandError{Index: 7, Err: &study.BudgetError{MaxTrials: 507}}, "507 of 800 trials are imported.", true, false},
		"away":     {&tuner.CommandError{Index: 7, Err: &tuner.RemoteError{Code: tuner.Unavailable}}, "507 of 800 trials are imported.", false, true},
		"large":    {&store.LimitError{What: "commit", Size: 2, Limit: 1}, "500 of 800 trials are imported.", false, false},
	} {
		t.Run(what, func(t *testing.T) {
			rows := "config.x,value.loss\n" + strings.Repeat("0.5,1\n", 800)
			sp, err := space.New(space.NewFloat("x", 0, 1))
			if err != nil {
				t.Fatal(err)
			}
			svc := &refusing{Engine: engine.Open(memory.New(), engine.Options{}), err: test.err}
			defer svc.Close()
			spec := study.Spec{Space: sp, Objectives: []study.Objective{{Name: "loss", Direction: study.Minimize}}}
			if _, err := svc.CreateStudy(t.Context(), "s", study.Create{Spec: spec}); err != nil {
				t.Fatal(err)
			}
			var notes bytes.Buffer
			cmd := &cobra.Command{}
			cmd.SetErr(&notes)
			i := &importing{g: &cli.Globals{}, cmd: cmd, name: "s", file: "t.csv", data: []byte(rows), as: record.CSV}
			err = i.run(t.Context(), svc)
			want := test.err
			if at, ok := want.(*tuner.CommandError); ok {
				want = at.Err // the file has lines, and no trials[7]
			}
			if !errors.Is(err, want) || strings.Contains(err.Error(), "trials[") {
				t.Fatalf("error %v", err)
			}
			if line := "line 509: "; strings.Contains(err.Error(), "line ") != test.line || test.line && !strings.Contains(err.Error(), line) {
				t.Errorf("error %q, to name a line %t", err, test.line)
			}
			if got := notes.String(); !strings.Contains(got, test.note) || strings.Contains(got, goesOn) != test.can {
				t.Errorf("it says %q, want %q, to go on %t", got, test.note, test.can)
			}
		})
	}
}
