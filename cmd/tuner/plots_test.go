package main

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/figure"
	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// plotsOf draws plots of a study whose trials have these outcomes. The constraint is
// size ≤ 1.
func plotsOf(t *testing.T, outcomes []study.Outcome, kinds ...string) *studyPlots {
	t.Helper()
	sp, err := space.New(space.NewFloat("x", 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	svc := tuner.Open(memory.New(), tuner.Options{})
	t.Cleanup(func() { svc.Close() })
	created, err := svc.CreateStudy(t.Context(), "s", study.Create{Spec: study.Spec{
		Space: sp, Objectives: []study.Objective{{Name: "loss", Direction: study.Minimize}},
		Proposer: study.Component{Name: propose.BKB, Options: `{"constraints": {"size": {"max": 1}}}`},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range outcomes {
		config := space.NewConfig(space.Assignment{Name: "x", Value: space.Float(float64(i) / float64(len(outcomes)))})
		if _, err := svc.Add(t.Context(), "s", study.Add{Config: config, Outcome: o}); err != nil {
			t.Fatal(err)
		}
	}
	p, err := newStudyPlots(t.Context(), svc, created.Study)
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
func seriesOf(t *testing.T, p *studyPlots, name string) figure.Series {
	t.Helper()
	for _, s := range p.drawn.Plots[0].Series {
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
	if got, want := fmt.Sprint(seriesOf(t, p, "best so far").Y), "[5 5 4 4]"; got != want {
		t.Errorf("best so far: %s, want %s", got, want)
	}
	if got := seriesOf(t, p, "breaks a constraint").Y; fmt.Sprint(got) != "[1 0.5]" {
		t.Errorf("trials that break a constraint: %v", got)
	}
	if got := seriesOf(t, p, "completed").Y; fmt.Sprint(got) != "[5 4]" {
		t.Errorf("completed: %v", got)
	}
	p = plotsOf(t, all, "parallel")
	best := seriesOf(t, p, "best 1").Lines
	if len(best) != 1 || math.Abs(best[0][0]-5.0/7) > 1e-4 {
		t.Errorf("best lines: %v, want that of trial 5", best)
	}
	if n := len(seriesOf(t, p, "all").Lines); n != 4 {
		t.Errorf("%d lines, want those of 4 completed trials", n)
	}
	p = plotsOf(t, []study.Outcome{sized(1, 3), sized(0.5, 2)}, "history")
	if got := seriesOf(t, p, "best so far").Y; fmt.Sprint(got) != "[1 1 0.5 0.5]" {
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
