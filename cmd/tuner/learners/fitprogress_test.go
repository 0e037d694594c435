package learners

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/learners"
)

// What 80 columns leave of the line has the time left and the speed, though the
// names are long.
func TestProgressOfAFitFitsEightyColumns(t *testing.T) {
	p := &fitProgress{name: "log-falkon", best: math.NaN()}
	p.StatusLine = &cli.StatusLine{}
	_ = p.report(learners.Progress{
		Iteration: 12, Iterations: 2000, Rows: 123_456_789,
		Objective: 1.2345e-5, Residual: 9.8765e-7, ValidationError: 0.12345, Best: true,
	})
	line := cli.Short(p.line(90*time.Second), 79)
	for _, want := range []string{"log-falkon  12/2000  1m30s, about 4h8m30s left", "1.37e+06 rows/s", "validation 0"} {
		if !strings.Contains(line, want) {
			t.Errorf("%q lacks %q", line, want)
		}
	}
	if full := p.line(90 * time.Second); !strings.Contains(full, "(best 0.1235)  residual 9.876e-07  objective 1.234e-05") {
		t.Errorf("%q lacks residual and objective", full)
	}
}
