package main

import (
	"context"
	"math"

	"github.com/bkbtuner/bkb/figure"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// writePlots draws the history of a study with one objective, and a slice for each
// searched parameter, as PNG into a folder. It returns the files.
func writePlots(ctx context.Context, svc tuner.Service, view tuner.Study, best study.Trial, folder string) ([]string, error) {
	p := plotting{objective: view.Spec.Objectives[0]}
	for t, err := range allTrials(ctx, svc, view.Name, tuner.Filter{Reports: true}) {
		if err != nil {
			return nil, err
		}
		p.add(t)
	}
	p.history(best)
	for _, parameter := range view.Spec.Space.Parameters() {
		if parameter.Type != space.TypeConstant {
			p.slice(parameter, best)
		}
	}
	return p.result.WritePNGFiles(view.Name, folder)
}

// plotting makes plots of trials.
type plotting struct {
	objective study.Objective
	completed []study.Trial
	pruned    []study.Trial // that reported the objective
	result    figure.Result
}

func (p *plotting) add(t study.Trial) {
	if _, ok := p.value(t); !ok {
		return
	}
	if t.State == study.Completed {
		p.completed = append(p.completed, t)
	} else {
		p.pruned = append(p.pruned, t)
	}
}

// value is the result of a completed trial, and the last report of a pruned one.
func (p *plotting) value(t study.Trial) (x float64, ok bool) {
	switch t.State {
	case study.Completed:
		m, ok := t.Outcome.Metric(p.objective.Name)
		return m.Mean(), ok
	case study.Pruned:
		reports := t.CurrentReports()
		for i := len(reports) - 1; i >= 0; i-- {
			for _, v := range reports[i].Values {
				if v.Name == p.objective.Name {
					return v.Value, true
				}
			}
		}
	}
	return 0, false
}

// axis is that of the objective. It is logarithmic if the values span more than a decade.
func (p *plotting) axis() figure.Axis {
	low, high := math.Inf(1), math.Inf(-1)
	for _, t := range p.completed {
		x, _ := p.value(t)
		low, high = min(low, x), max(high, x)
	}
	return figure.Axis{Label: p.objective.Name, Log: low > 0 && high > 10*low}
}

// history draws the result of each trial and the best until then.
func (p *plotting) history(best study.Trial) {
	plot := p.result.Plot("history", "Results of the trials", figure.Axis{Label: "trial"}, p.axis())
	soFar := figure.Series{Name: "best so far", Style: figure.Line}
	for i, t := range p.completed {
		x, _ := p.value(t)
		if i > 0 && p.objective.Direction.Compare(soFar.Y[i-1], x) < 0 {
			x = soFar.Y[i-1]
		}
		soFar.X, soFar.Y = append(soFar.X, float64(t.Number)), append(soFar.Y, x)
	}
	number := func(t study.Trial) (float64, bool) { return float64(t.Number), true }
	plot.Add(p.points("completed", p.completed, number)).Add(p.points("pruned, last report", p.pruned, number)).
		Add(p.points("best", []study.Trial{best}, number)).Add(soFar)
}

// slice draws the objective over the values of a parameter.
func (p *plotting) slice(of space.Parameter, best study.Trial) {
	plot := p.result.Plot("slice-"+of.Name, "The objective over "+of.Name, figure.Axis{Label: of.Name, Log: of.Scale == space.Log}, p.axis())
	at := func(t study.Trial) (float64, bool) {
		v, ok := t.Config.Get(of.Name)
		if !ok {
			return 0, false // inactive
		}
		return v.Number()
	}
	if of.Type == space.TypeOrdinal || of.Type == space.TypeCategorical {
		index := map[space.Value]int{}
		for i, v := range of.Values {
			index[v] = i
			plot.Names = append(plot.Names, v.String())
		}
		at = func(t study.Trial) (float64, bool) {
			v, _ := t.Config.Get(of.Name)
			i, ok := index[v]
			return float64(i), ok
		}
	}
	plot.Add(p.points("completed", p.completed, at)).Add(p.points("pruned, last report", p.pruned, at)).
		Add(p.points("best", []study.Trial{best}, at))
}

// points places trials at the abscissas that a function returns.
func (p *plotting) points(name string, trials []study.Trial, at func(study.Trial) (float64, bool)) figure.Series {
	s := figure.Series{Name: name, Style: figure.Points}
	for _, t := range trials {
		if x, ok := at(t); ok {
			y, _ := p.value(t)
			s.X, s.Y = append(s.X, x), append(s.Y, y)
		}
	}
	return s
}
