package plots

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/figure"
	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// plotsOf draws plots of a study whose trials have these outcomes. The constraint is
// size ≤ 1.
func plotsOf(t *testing.T, outcomes []study.Outcome, kinds ...string) *drawing {
	t.Helper()
	sp, err := space.New(space.NewFloat("x", 0, 1), space.NewCategorical("kind", space.String("a"), space.String("b")), space.NewFloat("rate", 0, 1).Given("kind", space.String("b")))
	if err != nil {
		t.Fatal(err)
	}
	svc := engine.Open(memory.New(), engine.Options{})
	t.Cleanup(func() { svc.Close() })
	created, err := svc.CreateStudy(t.Context(), "s", study.Create{Spec: study.Spec{
		Space: sp, Objectives: []study.Objective{{Name: "loss", Direction: study.Minimize}},
		Proposer: study.Component{Name: propose.BKB, Options: `{"constraints": {"size": {"max": 1}}}`},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range outcomes {
		config := space.NewConfig(
			space.Assignment{Name: "x", Value: space.Float(float64(i) / float64(len(outcomes)))},
			space.Assignment{Name: "kind", Value: space.String("a")},
		)
		if _, err := svc.Add(t.Context(), "s", study.Add{Config: config, Outcome: o}); err != nil {
			t.Fatal(err)
		}
	}
	p, err := newDrawing(t.Context(), svc, created.Study)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds {
		if err := p.draw(t.Context(), k); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// sized is the outcome of a trial with the metric of the constraint.
func sized(loss, size float64) study.Outcome {
	return study.Outcome{State: study.Completed, Metrics: []study.Metric{{Name: "loss", Values: []float64{loss}}, {Name: "size", Values: []float64{size}}}}
}

// seriesOf returns a series of the first plot.
func seriesOf(t *testing.T, p *drawing, name string) figure.Series {
	t.Helper()
	for _, s := range p.drawn[0].Series {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("there is no series %q", name)
	return figure.Series{}
}

// TestPlotsKeepConstraints checks that only a completed trial that keeps the constraints
// is the best, unless none does.
func TestPlotsKeepConstraints(t *testing.T) {
	other := func(s study.TrialState) study.Outcome {
		o := study.Outcome{State: s, Metrics: sized(0.1, 0).Metrics}
		if s == study.Failed {
			o.Reason = study.FailedCrash
		}
		return o
	}
	all := []study.Outcome{sized(5, 0), sized(1, 3), other(study.Pruned), other(study.Failed), other(study.Infeasible), sized(4, 1), sized(0.5, 2)}
	p := plotsOf(t, all, "history")
	if got, want := fmt.Sprint(seriesOf(t, p, "best so far").Y), "[5 4 4]"; got != want {
		t.Errorf("best so far: %s, want %s", got, want)
	}
	if got := seriesOf(t, p, "it breaks a constraint").Y; fmt.Sprint(got) != "[1 0.5]" {
		t.Errorf("trials that break a constraint: %v", got)
	}
	if got := seriesOf(t, p, "a trial").Y; fmt.Sprint(got) != "[5 4]" {
		t.Errorf("completed: %v", got)
	}
	p = plotsOf(t, all, "parallel")
	var ticks []string
	for _, m := range p.drawn[0].Texts {
		if m.X == 3 {
			ticks = append(ticks, m.Text)
		}
	}
	if got := fmt.Sprint(ticks); got != "[2 4]" {
		t.Errorf("the objective has the marks %s, want round ones", got)
	}
	best := seriesOf(t, p, "the best 1").Lines
	if len(best) != 1 || math.Abs(best[0][0]-5.0/7) > 1e-4 {
		t.Errorf("best lines: %v, want that of trial 5", best)
	}
	if n := len(seriesOf(t, p, "all trials").Lines); n != 4 {
		t.Errorf("%d lines, want those of 4 completed trials", n)
	}
	p = plotsOf(t, []study.Outcome{sized(1, 3), sized(0.5, 2)}, "history")
	if got := seriesOf(t, p, "best so far").Y; fmt.Sprint(got) != "[1 0.5 0.5]" {
		t.Errorf("best so far where all break a constraint: %v", got)
	}
}

// TestBestShare checks the number of trials in red.
func TestBestShare(t *testing.T) {
	var got []string
	for _, n := range []int{0, 1, 3, 8, 37, 40, 1000, 1001, 20_000} {
		got = append(got, fmt.Sprint(bestShare(n)))
	}
	if want := "0 1 1 2 10 10 10 11 200"; strings.Join(got, " ") != want {
		t.Errorf("the best are %v, want %s", got, want)
	}
}

// TestPlotsFarValues checks that far values lie at the edge of an axis that counts them, as
// on the page.
func TestPlotsFarValues(t *testing.T) {
	values := func(n int, first ...float64) []float64 {
		for i := len(first); i < n; i++ {
			first = append(first, float64(i)/float64(n)-0.5)
		}
		return first
	}
	for name, c := range map[string]struct {
		direction study.Direction
		values    []float64
		want      string
		log       bool
	}{
		"worse":       {study.Minimize, values(400, 1e4, 2e4), "loss (2 far values at the upper edge)", false},
		"not finite":  {study.Minimize, values(400, 1e4, 2e4, math.NaN(), math.Inf(1)), "loss (2 far values at the upper edge)", false},
		"better":      {study.Minimize, values(400, -1e4, -2e4), "loss", false},
		"maximize":    {study.Maximize, values(400, -1e4, -2e4), "loss (2 far values at the lower edge)", false},
		"few":         {study.Minimize, values(20, 1e4), "loss", false},
		"near":        {study.Minimize, values(400, 1), "loss", false},
		"logarithmic": {study.Minimize, []float64{1, 11}, "loss", true},
		"none":        {study.Minimize, nil, "loss", false},
	} {
		axis := axisOf(study.Objective{Name: "loss", Direction: c.direction}, c.values)
		if axis.Label != c.want || axis.Log != c.log || (axis.Min < axis.Max) != (c.want != "loss") {
			t.Errorf("%s: %+v, want %s", name, axis, c.want)
		}
		if axis.Min < axis.Max && (axis.Min < -0.7 || axis.Max > 0.7) {
			t.Errorf("%s: the axis is from %g to %g", name, axis.Min, axis.Max)
		}
	}
}

// TestPlotsInactive checks that a parallel line passes below the values of an inactive
// parameter.
func TestPlotsInactive(t *testing.T) {
	p := plotsOf(t, []study.Outcome{sized(5, 0), sized(4, 0)}, "parallel")
	for _, line := range seriesOf(t, p, "all trials").Lines {
		if len(line) != 4 || line[2] != 0 {
			t.Errorf("the line is %v, want 0 at the inactive parameter", line)
		}
	}
	low := math.Inf(1)
	for _, tick := range p.drawn[0].Texts {
		if tick.X == 2 && tick.Text != "inactive" {
			low = min(low, tick.Y)
		}
	}
	if low < inactiveStrip {
		t.Errorf("a value of the parameter lies at %g, in the strip for inactive ones", low)
	}
}

// TestPlotsCategories checks that the model of categories is marks with bars, and that of
// numbers a line.
func TestPlotsCategories(t *testing.T) {
	var outcomes []study.Outcome
	for i := range 60 {
		outcomes = append(outcomes, sized(float64(i%7), 0))
	}
	p := plotsOf(t, outcomes)
	if _, err := p.svc.Ask(t.Context(), "s", study.Ask{}); err != nil {
		t.Fatal(err)
	}
	if err := p.draw(t.Context(), "slices"); err != nil {
		t.Fatal(err)
	}
	for i, want := range []figure.Style{figure.Band, figure.Points} {
		at := slices.IndexFunc(p.drawn[i].Series, func(s figure.Series) bool { return strings.HasPrefix(s.Name, "mean") })
		if at < 0 {
			t.Fatalf("plot %s has no model", p.drawn[i].Name)
		}
		s := p.drawn[i].Series[at]
		if s.Style != want || s.Style == figure.Points && (len(s.X) != 2 || len(s.Low) != 2) {
			t.Errorf("plot %s: style %d with %d points, want style %d", p.drawn[i].Name, s.Style, len(s.X), want)
		}
	}
}
