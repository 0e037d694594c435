package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
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
	if status, _, stderr := do(t.Context(), "create-study", "s", "--space", space, "--minimize", "loss"); status != cli.ExitOK {
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
		if status == cli.ExitOK {
			break
		}
		if status != cli.ExitInterrupted {
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
