// Package plots draws a study with the colours and words of the web page. It reads the
// study through the interface of the service.
package plots

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/figure"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// drawing is the plots of a study while they are drawn.
type drawing struct {
	svc        tuner.Service
	view       tuner.Study
	columns    tuner.Columns
	objectives []study.Objective
	// Of each objective, the values of completed trials, and the finite ones of those that may
	// be the best, by trial. Others are NaN. Trials that break a constraint count only if no
	// trial keeps them.
	values, results [][]float64
	drawn           figure.Plots
}

// newDrawing reads what the plots of a study need.
func newDrawing(ctx context.Context, svc tuner.Service, view tuner.Study) (*drawing, error) {
	p := &drawing{svc: svc, view: view, objectives: view.Spec.Objectives}
	var err error
	p.columns, err = svc.Columns(ctx, view.Name, tuner.ColumnQuery{Names: []string{"state", "feasible", "value/", "report/", "mean/", "parameter/"}})
	if err != nil {
		return nil, err
	}
	keeping := false
	for i := range p.columns.Rows {
		keeping = keeping || p.feasible(i)
	}
	for _, o := range p.objectives {
		column := p.columns.Find("value/" + o.Name)
		values, results := make([]float64, p.columns.Rows), make([]float64, p.columns.Rows)
		for i := range values {
			values[i] = math.NaN()
			if p.state(i) == study.Completed {
				values[i] = column.At(i)
			}
			results[i] = values[i]
			if keeping && !p.feasible(i) || math.IsInf(values[i], 0) {
				results[i] = math.NaN()
			}
		}
		p.values, p.results = append(p.values, values), append(p.results, results)
	}
	return p, nil
}

// state is that of a trial.
func (p *drawing) state(i int) study.TrialState {
	return study.TrialState(p.columns.Find("state").At(i))
}

// feasible reports whether a trial completed and keeps the constraints.
func (p *drawing) feasible(i int) bool { return p.columns.Find("feasible").At(i) == 1 }

// plot adds a plot with the name of the study.
func (p *drawing) plot(name, title string, x, y figure.Axis) *figure.Plot {
	plot := p.drawn.Plot(name, title, x, y)
	plot.Subtitle = p.view.Name
	return plot
}

// Kinds are the kinds of plots, in their order.
var Kinds = []string{"history", "slices", "parallel", "importance", "front", "curves", "model"}

// Draw draws kinds of plots of a study. Those for which it has no data are empty.
func Draw(ctx context.Context, svc tuner.Service, view tuner.Study, kinds ...string) (figure.Plots, error) {
	p, err := newDrawing(ctx, svc, view)
	if err != nil {
		return nil, err
	}
	for _, kind := range kinds {
		if err := p.draw(ctx, kind); err != nil {
			return nil, err
		}
	}
	return p.drawn, nil
}

func (p *drawing) draw(ctx context.Context, kind string) error {
	switch kind {
	case "slices":
		return p.slices(ctx)
	case "importance":
		return p.importance(ctx)
	case "curves":
		return p.curves(ctx)
	case "parallel":
		p.parallel()
	case "front":
		p.front()
	}
	for j := range p.objectives {
		switch kind {
		case "history":
			p.history(j)
		case "model":
			p.model(j)
		}
	}
	return nil
}

// name is that of a plot of an objective. The first objective needs no mention.
func (p *drawing) name(kind string, objective int) string {
	if objective == 0 {
		return kind
	}
	return kind + "-" + p.objectives[objective].Name
}

// axisOf is an axis for values of an objective, by the rule of the page. It is logarithmic if
// they are positive and span more than a decade. Otherwise it leaves out far values on the
// worse side, and its label counts them.
func axisOf(o study.Objective, values []float64) figure.Axis {
	axis := figure.Axis{Label: o.Name}
	values = slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
	n := len(values)
	if n == 0 {
		return axis
	}
	slices.Sort(values)
	low, high := values[0], values[n-1]
	axis.Log = low > 0 && high > 10*low
	if axis.Log || n <= 20 {
		return axis
	}
	quantile := values[int(0.98*float64(n-1))]
	far, near := high-quantile, quantile-low
	if o.Direction == study.Maximize {
		quantile = values[int(0.02*float64(n))]
		far, near = quantile-low, high-quantile
	}
	if far <= 2*near || near <= 0 {
		return axis
	}
	return upTo(axis, o.Direction, values, quantile, 0.1*near)
}

// upTo ends an axis some way on the worse side of a value. Its label counts the values beyond.
func upTo(axis figure.Axis, d study.Direction, sorted []float64, worst, way float64) figure.Axis {
	low, high, edge := sorted[0], min(worst+way, sorted[len(sorted)-1]), "upper"
	if d == study.Maximize {
		low, high, edge = max(worst-way, sorted[0]), sorted[len(sorted)-1], "lower"
	}
	beyond := 0
	for _, v := range sorted {
		if v < low || v > high {
			beyond++
		}
	}
	if beyond > 0 {
		axis.Min, axis.Max = low, high
		values := "values"
		if beyond == 1 {
			values = "value"
		}
		axis.Label = fmt.Sprintf("%s (%d far %s at the %s edge)", axis.Label, beyond, values, edge)
	}
	return axis
}

// points adds the trials to a plot, at abscissas. at returns NaN for a trial that has none.
func (p *drawing) points(plot *figure.Plot, objective int, at func(i int) float64) {
	breaking := figure.Series{Name: "it breaks a constraint", Style: figure.Points, Color: figure.Muted}
	completed := figure.Series{Name: "a trial", Style: figure.Points, Color: figure.Accent}
	for i, v := range p.values[objective] {
		s := &completed
		if !p.feasible(i) {
			s = &breaking
		}
		if x := at(i); !math.IsNaN(v) && !math.IsNaN(x) {
			s.X, s.Y = append(s.X, x), append(s.Y, v)
		}
	}
	plot.Add(breaking).Add(completed)
}

// history draws the result of each trial and the best until then. Pruned trials lie at their
// last report, and failed ones at the lower edge.
func (p *drawing) history(objective int) {
	o := p.objectives[objective]
	values := p.values[objective]
	plot := p.plot(p.name("history", objective), "Best so far", figure.Axis{Label: "trial"}, figure.Axis{})
	p.points(plot, objective, func(i int) float64 { return float64(i) })
	best := figure.Series{Name: "best so far", Style: figure.Stepped, Color: figure.Best}
	pruned := figure.Series{Name: "pruned, at its last report", Style: figure.Crosses, Color: figure.Muted}
	failed := figure.Series{Name: "failed", Style: figure.Crosses, Color: figure.Best}
	reported, least, last := p.columns.Find("report/"+o.Name), math.Inf(1), math.NaN()
	for i, v := range values {
		x := float64(i)
		if !math.IsInf(v, 0) && v < least {
			least = v
		}
		if r := p.results[objective][i]; !math.IsNaN(r) && o.Direction.Compare(r, last) < 0 {
			best.X, best.Y, last = append(best.X, x), append(best.Y, r), r
		}
		switch p.state(i) {
		case study.Pruned:
			pruned.X, pruned.Y = append(pruned.X, x), append(pruned.Y, reported.At(i))
		case study.Failed, study.Infeasible:
			failed.X = append(failed.X, x)
		}
	}
	if len(best.X) > 0 {
		best.X, best.Y = append(best.X, float64(len(values)-1)), append(best.Y, last)
		failed.Y = slices.Repeat([]float64{least}, len(failed.X))
		plot.Add(failed)
	}
	plot.Y = axisOf(o, slices.Concat(values, pruned.Y))
	plot.Add(pruned).Add(best)
}

// coordinate is a parameter as an axis of a plot.
type coordinate struct {
	space.Axis
	column *tuner.Column
	spread float64 // of equal values, to both sides
}

func (p *drawing) coordinate(a space.Axis) coordinate {
	c := coordinate{Axis: a, column: p.columns.Find("parameter/" + a.Parameter)}
	if q, _ := p.view.Spec.Space.Lookup(a.Parameter); a.Levels > 0 && a.Levels <= 32 && (q.Type == space.TypeCategorical || q.Type == space.TypeOrdinal) {
		c.spread = 0.3 / float64(a.Levels)
	}
	return c
}

// at returns the coordinate of a trial, NaN if the parameter is inactive.
func (c coordinate) at(i int) float64 {
	u := c.column.At(i)
	if u == tuner.InactiveCoordinate {
		return math.NaN()
	}
	return u / tuner.LargestCoordinate
}

// spreadAt is at, with values without numbers spread a little, so that trials do not hide each
// other.
func (c coordinate) spreadAt(i int) float64 {
	return c.at(i) + c.spread*(2*math.Mod(float64(i)*0.6180339887498949, 1)-1)
}

// marks are the ticks of an axis of coordinates.
func (c coordinate) marks() []figure.Mark {
	out := []figure.Mark{}
	for _, t := range c.column.Ticks {
		text := t.Value.String()
		if x, ok := t.Value.AsFloat(); ok {
			text = fmt.Sprintf("%.4g", x)
		}
		out = append(out, figure.Mark{At: t.At, Text: text})
	}
	return out
}

// slices draws the first objective over the values of each parameter, with the model through
// the recommended trial if there is one.
func (p *drawing) slices(ctx context.Context) error {
	axes := p.view.Spec.Space.Axes()
	points := min(tuner.DefaultSlicePoints, tuner.MaxPredictions/max(1, len(axes)))
	predicted, err := p.svc.Predict(ctx, p.view.Name, tuner.PredictQuery{Slices: &tuner.SliceQuery{Points: points}})
	if err != nil && tuner.CodeOf(err) != tuner.Unsupported {
		return err
	}
	through := "the recommended configuration"
	if len(p.objectives) > 1 {
		through = fmt.Sprintf("trial %d, the first of the front by the model", predicted.Trial)
	}
	values := p.values[0]
	y, least := axisOf(p.objectives[0], values), math.Inf(-1) // of a band
	if y.Log {
		least = slices.Min(slices.DeleteFunc(slices.Clone(values), math.IsNaN))
	}
	for _, a := range axes {
		c := p.coordinate(a)
		plot := p.plot("slice-"+a.Parameter, p.objectives[0].Name+" over "+a.Parameter, figure.Axis{Label: a.Parameter, Marks: c.marks()}, y)
		p.points(plot, 0, c.spreadAt)
		for _, s := range predicted.Slices {
			if s.Parameter != a.Parameter {
				continue
			}
			band := figure.Series{Name: "mean of the model ± 2 sd through " + through, Style: figure.Band, Color: figure.Best}
			mean := figure.Series{Style: figure.Line, Color: figure.Best}
			for k, x := range s.At {
				m, sd := s.Predictions[k].Mean[0], s.Predictions[k].StdDev[0]
				band.X, band.Low, band.High = append(band.X, x), append(band.Low, max(m-2*sd, least)), append(band.High, max(m+2*sd, least))
				mean.X, mean.Y = append(mean.X, x), append(mean.Y, m)
			}
			if !a.Ordered { // categories are apart
				band.Style, band.Y = figure.Points, mean.Y
				plot.Add(band)
				continue
			}
			plot.Add(band).Add(mean)
		}
	}
	return nil
}

// inactiveStrip is the share of an axis, below the values, for trials on which the parameter
// is inactive.
const inactiveStrip = 0.09

// markText is the most characters of a value beside an axis.
const markText = 14

// bestShare is how many of n trials are the best, as on the page.
func bestShare(n int) int {
	return min(n, max((n+99)/100, min(10, (n+3)/4)))
}

// parallel draws each completed trial as a line through its coordinates and its objectives,
// and the best of them, or the front, on top.
func (p *drawing) parallel() {
	plot := p.plot("parallel", "Parallel coordinates", figure.Axis{Marks: []figure.Mark{}}, figure.Axis{Marks: []figure.Mark{}})
	var axes []func(i int) float64
	axis := func(name string, at func(i int) float64) {
		x := float64(len(axes))
		axes = append(axes, at)
		plot.X.Marks = append(plot.X.Marks, figure.Mark{At: x, Text: name})
		plot.Add(figure.Series{Style: figure.Line, Color: figure.Muted, X: []float64{x, x}, Y: []float64{0, 1}})
	}
	text := func(y float64, s string) {
		plot.Texts = append(plot.Texts, figure.Text{X: float64(len(axes) - 1), Y: y, Text: space.Middle(s, markText)})
	}
	for _, a := range p.view.Spec.Space.Axes() {
		c, base := p.coordinate(a), 0.0
		if a.Conditional {
			base = inactiveStrip
		}
		axis(a.Parameter, func(i int) float64 {
			if u := c.at(i); !math.IsNaN(u) {
				return base + (1-base)*u
			}
			return 0
		})
		if a.Conditional {
			text(0, "inactive")
		}
		for k, m := range c.marks() {
			if len(c.column.Ticks) <= 6 || k%2 == 0 {
				text(base+(1-base)*m.At, m.Text)
			}
		}
	}
	for j, o := range p.objectives {
		values := p.values[j]
		scale := axisOf(o, values)
		f, inverse := scale.Within, func(u float64) float64 { return u }
		if scale.Log {
			f, inverse = math.Log, math.Exp
		}
		low, high := math.Inf(1), math.Inf(-1)
		for _, v := range values {
			if u := f(v); !math.IsNaN(u) && !math.IsInf(u, 0) {
				low, high = min(low, u), max(high, u)
			}
		}
		width := max(high-low, 1e-300)
		axis(scale.Label, func(i int) float64 { return (f(values[i]) - low) / width })
		for _, m := range scale.Ticks(inverse(low), inverse(high)) {
			if m.Text != "" {
				text((f(m.At)-low)/width, m.Text)
			}
		}
	}
	all := figure.Series{Name: "all trials", Style: figure.Bundle, Color: figure.Accent}
	best, chosen := p.best()
	top := figure.Series{Name: chosen, Style: figure.Bundle, Color: figure.Best}
	for i, v := range p.values[0] {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		line := make([]float64, len(axes))
		for k, at := range axes {
			line[k] = at(i)
		}
		all.Lines = append(all.Lines, line)
		if best[i] {
			top.Lines = append(top.Lines, line)
		}
	}
	if len(all.Lines) == 0 {
		p.drawn = p.drawn[:len(p.drawn)-1]
		return
	}
	plot.Add(all).Add(top)
}

// best returns the trials in red among all and what they are, as on the page.
func (p *drawing) best() (map[int]bool, string) {
	best := make(map[int]bool)
	if len(p.objectives) > 1 {
		for _, i := range p.measuredFront() {
			best[i] = true
		}
		return best, "the trials of the front"
	}
	var order []int
	for i := range p.columns.Rows {
		if !math.IsNaN(p.results[0][i]) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return p.objectives[0].Direction.Compare(p.results[0][a], p.results[0][b]) })
	n := bestShare(len(order))
	for _, i := range order[:n] {
		best[i] = true
	}
	return best, fmt.Sprintf("the best %d", n)
}

// measuredFront lists the trials that no other one beats by measured values, by the first
// objective.
func (p *drawing) measuredFront() (front []int) {
	better := func(a, b int) (c int) { // by the first objective in which they differ
		for j, o := range p.objectives {
			c = cmp.Or(c, o.Direction.Compare(p.results[j][a], p.results[j][b]))
		}
		return c
	}
	var order []int
	for i := range p.columns.Rows {
		if !p.lacking(i) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, better)
	for _, i := range order {
		beaten := slices.ContainsFunc(front, func(k int) bool {
			for j, o := range p.objectives {
				if o.Direction.Compare(p.results[j][k], p.results[j][i]) > 0 {
					return false
				}
			}
			return better(k, i) < 0
		})
		if !beaten {
			front = append(front, i)
		}
	}
	return front
}

// lacking tells whether a trial has no value of an objective that counts.
func (p *drawing) lacking(i int) bool {
	for j := range p.objectives {
		if math.IsNaN(p.results[j][i]) {
			return true
		}
	}
	return false
}

// importance draws the importance of the parameters, by the model if there is one.
func (p *drawing) importance(ctx context.Context) error {
	i, err := p.svc.Importance(ctx, p.view.Name, tuner.ImportanceQuery{})
	if err != nil {
		return err
	}
	label, of := "best trials: share by the places of the best tenth", func(q tuner.ParameterImportance) (x, se float64) { return q.Data, 0 }
	if slices.ContainsFunc(i.Parameters, func(q tuner.ParameterImportance) bool { return !math.IsNaN(q.Total) }) {
		label, of = "total: share of the variance of the model's mean", func(q tuner.ParameterImportance) (x, se float64) { return q.Total, q.TotalError }
	}
	list := slices.DeleteFunc(slices.Clone(i.Parameters), func(q tuner.ParameterImportance) bool { x, _ := of(q); return math.IsNaN(x) })
	slices.SortStableFunc(list, func(a, b tuner.ParameterImportance) int {
		x, _ := of(a)
		y, _ := of(b)
		return cmp.Compare(x, y)
	})
	plot := p.plot("importance", "Which parameters matter", figure.Axis{Label: label}, figure.Axis{Min: -0.5, Max: float64(len(list)) - 0.5, Marks: []figure.Mark{}})
	for k, q := range list { // the most important on top
		x, se := of(q)
		y := float64(k)
		plot.Y.Marks = append(plot.Y.Marks, figure.Mark{At: y, Text: q.Parameter})
		plot.Add(figure.Series{Style: figure.Bar, Color: figure.Accent, X: []float64{0, x}, Y: []float64{y, y}})
		plot.Add(figure.Series{Style: figure.Line, Color: figure.Muted, X: []float64{max(0, x-se), x + se}, Y: []float64{y, y}})
	}
	return nil
}

// front draws each pair of objectives, with the trials that no other one beats. Values far on
// the worse side of the front lie at the edge.
func (p *drawing) front() {
	if len(p.objectives) < 2 {
		return
	}
	front := p.measuredFront()
	axis := func(j int) figure.Axis {
		o := p.objectives[j]
		better := "less"
		if o.Direction == study.Maximize {
			better = "more"
		}
		out := figure.Axis{Label: fmt.Sprintf("%s, %s is better", o.Name, better)}
		sorted := slices.DeleteFunc(slices.Clone(p.values[j]), func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
		if len(front) == 0 || len(sorted) == 0 {
			return out
		}
		slices.Sort(sorted)
		out.Log = sorted[0] > 0 && sorted[len(sorted)-1] > 10*sorted[0]
		best, worst := p.values[j][front[0]], sorted[len(sorted)/2]
		for _, i := range front {
			if v := p.values[j][i]; o.Direction.Compare(v, best) < 0 {
				best = v
			} else if o.Direction.Compare(v, worst) > 0 {
				worst = v
			}
		}
		return upTo(out, o.Direction, sorted, worst, math.Abs(worst-best))
	}
	for j, a := range p.objectives {
		for k, b := range p.objectives[j+1:] {
			k += j + 1
			plot := p.plot("front-"+a.Name+"-"+b.Name, "Pareto front", axis(j), axis(k))
			p.points(plot, k, func(i int) float64 { return p.values[j][i] })
			best := figure.Series{Name: "the trials of the front", Style: figure.Points, Color: figure.Best}
			for _, i := range front {
				best.X, best.Y = append(best.X, p.values[j][i]), append(best.Y, p.values[k][i])
			}
			if len(p.objectives) == 2 {
				plot.Add(figure.Series{Style: figure.Stepped, Color: figure.Best, X: best.X, Y: best.Y})
			}
			plot.Add(best)
		}
	}
}

// mostBest and mostOthers are the largest numbers of curves of each kind.
const mostBest, mostOthers = 20, 10

// curves draws the reports of running, of the best completed, and of pruned trials.
func (p *drawing) curves(ctx context.Context) error {
	o := p.objectives[0]
	last := p.columns.Find("report/" + o.Name)
	byState := make(map[study.TrialState][]int)
	for i := p.columns.Rows - 1; i >= 0; i-- { // the last first
		if s := p.state(i); !math.IsNaN(last.At(i)) && (s != study.Completed || !math.IsNaN(p.results[0][i])) {
			byState[s] = append(byState[s], i)
		}
	}
	slices.SortStableFunc(byState[study.Completed], func(a, b int) int {
		return cmp.Or(o.Direction.Compare(p.results[0][a], p.results[0][b]), cmp.Compare(a, b))
	})
	plot := p.plot("curves", "Reported values", figure.Axis{Label: "step"}, figure.Axis{})
	var values []float64
	for _, kind := range []struct {
		state      study.TrialState
		from, most int
		series     figure.Series
	}{
		{study.Pruned, 0, mostOthers, figure.Series{Name: "pruned last", Style: figure.Dashed, Color: figure.Muted}},
		{study.Completed, 1, mostBest, figure.Series{Name: "the next best", Style: figure.Line, Color: figure.Accent}},
		{study.Completed, 0, 1, figure.Series{Name: "the best trial", Style: figure.Line, Color: figure.Best}},
		{study.Running, 0, mostOthers, figure.Series{Name: "running", Style: figure.LinePoints, Color: figure.Third}},
	} {
		list := byState[kind.state]
		for _, n := range list[min(kind.from, len(list)):min(kind.most, len(list))] {
			s := kind.series
			kind.series.Name = "" // of the others
			reports, _, err := p.svc.Reports(ctx, p.view.Name, n, 0, 0)
			if err != nil {
				return err
			}
			for _, r := range reports {
				for _, v := range r.Values {
					if v.Name == o.Name && r.Epoch == reports[len(reports)-1].Epoch {
						s.X, s.Y = append(s.X, float64(r.Step)), append(s.Y, v.Value)
					}
				}
			}
			values = append(values, s.Y...)
			plot.Add(s)
		}
	}
	plot.Y = axisOf(o, values)
	return nil
}

// model draws what the model predicted when it suggested a trial against what came out.
func (p *drawing) model(objective int) {
	name := p.objectives[objective].Name
	s := figure.Series{Name: "suggested trials", Style: figure.Points, Color: figure.Accent}
	low, high := math.Inf(1), math.Inf(-1)
	for i, v := range p.values[objective] {
		if m := p.columns.Find("mean/" + name).At(i); !math.IsNaN(v) && !math.IsNaN(m) && !math.IsInf(v, 0) {
			s.X, s.Y = append(s.X, m), append(s.Y, v)
			low, high = min(low, v), max(high, v)
		}
	}
	measured := axisOf(p.objectives[objective], s.Y)
	predicted := measured
	predicted.Label, measured.Label = "predicted "+name, "measured "+measured.Label
	plot := p.plot(p.name("model", objective), "Predicted before and measured", predicted, measured)
	if len(s.X) > 0 {
		plot.Add(s).Add(figure.Series{Name: "as predicted", Style: figure.Line, Color: figure.Best, X: []float64{low, high}, Y: []float64{low, high}})
	}
}
