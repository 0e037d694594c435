package learners

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/learners"
)

// fitProgress follows a fit.
type fitProgress struct {
	*cli.StatusLine
	name, measure string
	began         time.Time
	last          learners.Progress
	best          float64 // validation error
	bestAt        int
	notes         []string
}

func newFitProgress(s *cli.StatusLine, name, measure string) *fitProgress {
	p := &fitProgress{StatusLine: s, name: name, measure: measure, began: time.Now(), best: math.NaN()}
	p.Draw(true, func() string { return name + ": starting" })
	return p
}

func (p *fitProgress) report(at learners.Progress) error {
	p.last = at
	for _, n := range at.Notes {
		if !slices.Contains(p.notes, n) {
			p.notes = append(p.notes, n)
		}
	}
	if at.Best || math.IsNaN(at.ValidationError) {
		p.best, p.bestAt = at.ValidationError, at.Iteration
	}
	p.Draw(at.Iteration == at.Iterations, func() string { return p.line(time.Since(p.began)) })
	return nil
}

// bestError is the least validation error, nil if there is none, or no finite one.
func (p *fitProgress) bestError() *float64 {
	if p.best-p.best != 0 {
		return nil
	}
	return &p.best
}

// line is the text of the line after some time. A narrow terminal cuts off its end, so
// the important parts come first.
func (p *fitProgress) line(elapsed time.Duration) string {
	var b strings.Builder
	at := p.last
	fmt.Fprintf(&b, "%s  %d/%d  %s", p.name, at.Iteration, at.Iterations, elapsed.Round(time.Second))
	if left := at.Iterations - at.Iteration; at.Iteration > 0 && left > 0 {
		each := elapsed / time.Duration(at.Iteration)
		b.WriteString(", about " + (each * time.Duration(left)).Round(time.Second).String() + " left")
	}
	if s := elapsed.Seconds(); s > 0 && at.Rows > 0 {
		fmt.Fprintf(&b, "  %.3g rows/s", float64(at.Rows)/s)
	}
	p.number(&b, p.measure, at.ValidationError)
	if !math.IsNaN(p.best) {
		fmt.Fprintf(&b, " (best %.4g)", p.best)
	}
	p.number(&b, "residual", at.Residual)
	p.number(&b, "objective", at.Objective)
	return b.String()
}

// number adds a number with its name, if there is one.
func (p *fitProgress) number(b *strings.Builder, name string, v float64) {
	if !math.IsNaN(v) {
		fmt.Fprintf(b, "  %s %.4g", name, v)
	}
}
