package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/internal/record"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
)

// An import that is interrupted again and again keeps what it has done, and in the
// end every trial is there once and in order.
func TestImportInterrupted(t *testing.T) {
	trials := 1700
	if testing.Short() {
		trials = 600 // which is more than one batch
	}
	dir := t.TempDir()
	db, file, space := filepath.Join(dir, "t.db"), filepath.Join(dir, "t.csv"), filepath.Join(dir, "space.json")
	var rows strings.Builder
	rows.WriteString("config.x,value.loss\n")
	for i := range trials {
		fmt.Fprintf(&rows, "%v,%d\n", float64(i)/float64(trials), i)
	}
	for name, text := range map[string]string{file: rows.String(), space: `{"x": {"type": "float", "low": 0, "high": 1}}`} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	do := func(ctx context.Context, args ...string) (status int, stdout, stderr string) {
		var out, errs bytes.Buffer
		status = run(ctx, append([]string{"--db", db}, args...), strings.NewReader(""), &out, &errs)
		return status, out.String(), errs.String()
	}
	if status, _, stderr := do(t.Context(), "create-study", "s", "--space", space, "--minimize", "loss"); status != exitOK {
		t.Fatal(stderr)
	}
	// Each is stopped a little later than the one before.
	interrupted, said := 0, false
	for wait := time.Duration(0); ; wait += 50 * time.Millisecond {
		ctx, cancel := context.WithCancel(t.Context())
		if wait > 0 {
			time.AfterFunc(wait, cancel)
		} else {
			cancel()
		}
		status, _, stderr := do(ctx, "import", "s", file)
		cancel()
		if status == exitOK {
			break
		}
		if status != exitInterrupted {
			t.Fatalf("status %d: %s", status, stderr)
		}
		interrupted++
		said = said || strings.Contains(stderr, fmt.Sprintf("of %d trials are imported. The same command continues", trials))
	}
	t.Logf("%d interruptions, some in the middle: %t", interrupted, said)
	if interrupted == 0 {
		t.Error("nothing was interrupted")
	}
	_, stdout, _ := do(t.Context(), "export", "s", "-f", "csv")
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if len(lines) != trials+1 {
		t.Fatalf("%d trials, want %d", len(lines)-1, trials)
	}
	for i, line := range lines[1:] {
		if !strings.HasPrefix(line, fmt.Sprintf("%d,completed,,,%v,%d,", i, float64(i)/float64(trials), i)) {
			t.Fatalf("trial %d is %s", i, line)
		}
	}
}

// refusing is a service whose second call with many trials ends with an error.
type refusing struct {
	*tuner.Tuner
	calls int
	err   error
}

func (r *refusing) AddAll(ctx context.Context, name string, commands []study.Command) ([]int, error) {
	if r.calls++; r.calls < 2 {
		return r.Tuner.AddAll(ctx, name, commands)
	}
	at := (*tuner.CommandError)(nil)
	if !errors.As(r.err, &at) {
		return nil, r.err
	}
	if _, err := r.Tuner.AddAll(ctx, name, commands[:at.Index]); err != nil {
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
			svc := &refusing{Tuner: tuner.Open(memory.New(), tuner.Options{}), err: test.err}
			defer svc.Close()
			spec := study.Spec{Space: sp, Objectives: []study.Objective{{Name: "loss", Direction: study.Minimize}}}
			if _, err := svc.CreateStudy(t.Context(), "s", study.Create{Spec: spec}); err != nil {
				t.Fatal(err)
			}
			var notes bytes.Buffer
			cmd := &cobra.Command{}
			cmd.SetErr(&notes)
			i := &importing{g: &globals{}, cmd: cmd, name: "s", file: "t.csv", data: []byte(rows), as: record.CSV}
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
