package diagnose

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/figure"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/web"
	"github.com/spf13/cobra"
)

type studyPlots struct {
	svc     tuner.Service
	view    tuner.Study
	columns tuner.Columns
	best    []study.Trial // recommended
	keeping bool          // a completed trial keeps the constraints
	drawn   figure.Plots
}

// newStudyPlots reads what the plots of a study need.
func newStudyPlots(ctx context.Context, svc tuner.Service, view tuner.Study) (*studyPlots, error) {
	p := &studyPlots{svc: svc, view: view}
	var err error
	if p.best, err = svc.Best(ctx, view.Name); err != nil {
		return nil, err
	}
	p.columns, err = svc.Columns(ctx, view.Name, tuner.ColumnQuery{Names: []string{"state", "feasible", "value/", "report/", "mean/", "parameter/"}})
	if err != nil {
		return nil, err
	}
	for i := range p.columns.Rows {
		p.keeping = p.keeping || p.feasible(i)
	}
	return p, nil
}

// The most characters of a study in a title, and of a mark among the lines.
const titleName, markText = 32, 14

// plot adds a plot, with the study in its title.
func (p *studyPlots) plot(name, title string, x, y figure.Axis) *figure.Plot {
	return p.drawn.Plot(name, title+" · "+cli.Middle(p.view.Name, titleName), x, y)
}

// plotKinds are the kinds of plots, in their order.
var plotKinds = []string{"history", "slices", "parallel", "importance", "front", "curves", "model"}

func (p *studyPlots) draw(ctx context.Context, kind string) error {
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
	for j := range p.view.Spec.Objectives {
		switch kind {
		case "history":
			p.history(j)
		case "model":
			p.model(j)
		}
	}
	return nil
}

// value returns the objective of a completed trial, or the last report of a pruned one. It
// is NaN for others.
func (p *studyPlots) value(objective, i int) (v float64, s study.TrialState) {
	name := p.view.Spec.Objectives[objective].Name
	switch s = study.TrialState(p.columns.Find("state").At(i)); s {
	case study.Completed:
		return p.columns.Find("value/" + name).At(i), s
	case study.Pruned:
		return p.columns.Find("report/" + name).At(i), s
	default:
		return math.NaN(), s
	}
}

// feasible reports whether a trial completed and keeps the constraints.
func (p *studyPlots) feasible(i int) bool { return p.columns.Find("feasible").At(i) == 1 }

// result returns the objective of a trial that may be the best, or NaN. Trials that break a
// constraint count only if no trial keeps them.
func (p *studyPlots) result(objective, i int) float64 {
	v, s := p.value(objective, i)
	if s != study.Completed || p.keeping && !p.feasible(i) || math.IsInf(v, 0) {
		return math.NaN()
	}
	return v
}

// name is that of a plot of an objective. The first objective needs no mention.
func (p *studyPlots) name(kind string, objective int) string {
	if objective == 0 {
		return kind
	}
	return kind + "-" + p.view.Spec.Objectives[objective].Name
}

// axis is that of an objective, for the values of completed trials.
func (p *studyPlots) axis(objective int) figure.Axis {
	var values []float64
	for i := range p.columns.Rows {
		if v, s := p.value(objective, i); s == study.Completed {
			values = append(values, v)
		}
	}
	return axisOf(p.view.Spec.Objectives[objective], values)
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
	edge, quantile := "upper", values[int(0.98*float64(n-1))]
	far, near := high-quantile, quantile-low
	if o.Direction == study.Maximize {
		edge, quantile = "lower", values[int(0.02*float64(n))]
		far, near = quantile-low, high-quantile
	}
	if far <= 2*near || near <= 0 {
		return axis
	}
	if o.Direction == study.Maximize {
		low = quantile - 0.1*near
	} else {
		high = quantile + 0.1*near
	}
	beyond := 0
	for _, v := range values {
		if v < low || v > high {
			beyond++
		}
	}
	axis.Min, axis.Max = low, high
	axis.Label = fmt.Sprintf("%s (%d far values at the %s edge)", o.Name, beyond, edge)
	return axis
}

// points returns completed and pruned trials at abscissas, and the recommended ones. at
// returns NaN for a trial that has none.
func (p *studyPlots) points(objective int, at func(i int) float64) []figure.Series {
	completed := figure.Series{Name: "completed", Style: figure.Points, Color: 3}
	breaking := figure.Series{Name: "breaks a constraint", Style: figure.Points, Color: 2}
	pruned := figure.Series{Name: "pruned, last report", Style: figure.Points}
	best := figure.Series{Name: "best", Style: figure.Best}
	for i := range p.columns.Rows {
		v, s := p.value(objective, i)
		x := at(i)
		switch {
		case math.IsNaN(v) || math.IsNaN(x):
			continue
		case s == study.Completed && !p.feasible(i):
			breaking.X, breaking.Y = append(breaking.X, x), append(breaking.Y, v)
		case s == study.Completed:
			completed.X, completed.Y = append(completed.X, x), append(completed.Y, v)
		default:
			pruned.X, pruned.Y = append(pruned.X, x), append(pruned.Y, v)
		}
		if slices.ContainsFunc(p.best, func(t study.Trial) bool { return t.Number == i }) {
			best.X, best.Y = append(best.X, x), append(best.Y, v)
		}
	}
	return []figure.Series{completed, breaking, pruned, best}
}

// history draws the result of each trial and the best until then.
func (p *studyPlots) history(objective int) {
	plot := p.plot(p.name("history", objective), "Results of the trials", figure.Axis{Label: "trial"}, p.axis(objective))
	soFar := figure.Series{Name: "best so far", Style: figure.Line, Color: 4}
	direction := p.view.Spec.Objectives[objective].Direction
	last := math.NaN()
	for i := range p.columns.Rows {
		v := p.result(objective, i)
		if math.IsNaN(v) || direction.Compare(v, last) >= 0 {
			continue
		}
		if len(soFar.X) > 0 { // a step
			soFar.X, soFar.Y = append(soFar.X, float64(i)), append(soFar.Y, last)
		}
		soFar.X, soFar.Y, last = append(soFar.X, float64(i)), append(soFar.Y, v), v
	}
	if len(soFar.X) > 0 {
		soFar.X, soFar.Y = append(soFar.X, float64(p.columns.Rows-1)), append(soFar.Y, last)
	}
	for _, s := range p.points(objective, func(i int) float64 { return float64(i) }) {
		plot.Add(s)
	}
	plot.Add(soFar)
}

// coordinate is a parameter as an axis of a plot.
type coordinate struct {
	column *tuner.Column
	spread float64 // of equal values, to both sides
}

func (p *studyPlots) coordinate(a space.Axis) coordinate {
	c := coordinate{column: p.columns.Find("parameter/" + a.Parameter)}
	if q, _ := p.view.Spec.Space.Lookup(a.Parameter); a.Levels > 0 && a.Levels <= 32 && (q.Type == space.TypeCategorical || q.Type == space.TypeOrdinal) {
		c.spread = 0.3 / float64(a.Levels)
	}
	return c
}

// at returns the coordinate of a trial, NaN if the parameter is inactive. Values without
// numbers are spread a little, so that trials do not hide each other.
func (c coordinate) at(i int) float64 {
	u := c.column.At(i)
	if u == tuner.InactiveCoordinate {
		return math.NaN()
	}
	golden := math.Mod(float64(i)*0.6180339887498949, 1)
	return u/tuner.LargestCoordinate + c.spread*(2*golden-1)
}

// marks are the ticks of an axis of coordinates.
func (c coordinate) marks() (out []figure.Mark) {
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
func (p *studyPlots) slices(ctx context.Context) error {
	predicted, err := p.svc.Predict(ctx, p.view.Name, tuner.PredictQuery{Slices: &tuner.SliceQuery{}})
	if err != nil && tuner.CodeOf(err) != tuner.Unsupported {
		return err
	}
	y, least := p.axis(0), math.Inf(-1) // of a band
	if y.Log {
		least = math.Inf(1)
		for i := range p.columns.Rows {
			if v, s := p.value(0, i); s == study.Completed && v < least {
				least = v
			}
		}
	}
	for _, a := range p.view.Spec.Space.Axes() {
		c := p.coordinate(a)
		plot := p.plot("slice-"+a.Parameter, "The objective over "+a.Parameter, figure.Axis{Label: a.Parameter, Marks: c.marks()}, y)
		for _, s := range p.points(0, c.at) {
			plot.Add(s)
		}
		for _, s := range predicted.Slices {
			if s.Parameter != a.Parameter {
				continue
			}
			band := figure.Series{Name: "mean ± 2 sd through the best", Style: figure.Band}
			mean := figure.Series{Name: "", Style: figure.Line}
			for k, x := range s.At {
				m, sd := s.Predictions[k].Mean[0], s.Predictions[k].StdDev[0]
				band.X, band.Low, band.High = append(band.X, x), append(band.Low, max(m-2*sd, least)), append(band.High, max(m+2*sd, least))
				mean.X, mean.Y = append(mean.X, x), append(mean.Y, m)
			}
			if !a.Ordered { // categories are apart
				band.Style, band.Y, band.Color = figure.Points, mean.Y, 5
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

// bestShare is how many of n trials are the best, as on the page.
func bestShare(n int) int {
	return min(n, max((n+99)/100, min(10, (n+3)/4)))
}

// parallel draws each completed trial as a line through its coordinates and its objective,
// and the best of them on top.
func (p *studyPlots) parallel() {
	plot := p.plot("parallel", "Completed trials, best in red", figure.Axis{}, figure.Axis{})
	var axes []coordinate
	var bases []float64 // of the axes, above the strip for inactive parameters
	for i, a := range p.view.Spec.Space.Axes() {
		c := coordinate{column: p.columns.Find("parameter/" + a.Parameter)}
		axes, plot.Names = append(axes, c), append(plot.Names, a.Parameter)
		base := 0.0
		if a.Conditional {
			base = inactiveStrip
			plot.Ticks = append(plot.Ticks, figure.Tick{X: float64(i), Text: "inactive"})
		}
		bases = append(bases, base)
		for k, m := range c.marks() {
			if len(c.column.Ticks) <= 6 || k%2 == 0 {
				plot.Ticks = append(plot.Ticks, figure.Tick{X: float64(i), Y: base + (1-base)*m.At, Text: cli.Middle(m.Text, markText)})
			}
		}
	}
	objective := p.axis(0)
	scale := func(v float64) float64 {
		if objective.Log {
			return math.Log(v)
		}
		return objective.Within(v)
	}
	type trial struct {
		line  []float64
		value float64
		may   bool // be one of the best
	}
	var trials []trial
	low, high := math.Inf(1), math.Inf(-1)
	for i := range p.columns.Rows {
		v, s := p.value(0, i)
		if s != study.Completed || math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		t := trial{value: v, may: !math.IsNaN(p.result(0, i))}
		for k, c := range axes {
			u := c.at(i)
			if math.IsNaN(u) {
				u = 0
			} else {
				u = bases[k] + (1-bases[k])*u
			}
			t.line = append(t.line, u)
		}
		trials = append(trials, t)
		low, high = min(low, scale(v)), max(high, scale(v))
	}
	if len(trials) == 0 {
		return
	}
	width := max(high-low, 1e-300)
	plot.Names = append(plot.Names, p.view.Spec.Objectives[0].Name)
	if objective.Min < objective.Max {
		plot.X.Label = objective.Label
	}
	for k := range 5 {
		v := low + width*float64(k)/4
		if objective.Log {
			v = math.Exp(v)
		}
		plot.Ticks = append(plot.Ticks, figure.Tick{X: float64(len(axes)), Y: float64(k) / 4, Text: fmt.Sprintf("%.3g", v)})
	}
	direction := p.view.Spec.Objectives[0].Direction
	slices.SortStableFunc(trials, func(a, b trial) int {
		switch {
		case a.may == b.may:
			return direction.Compare(a.value, b.value)
		case a.may:
			return -1
		default:
			return 1
		}
	})
	may := 0
	all := figure.Series{Name: "all", Style: figure.Bundle}
	for _, t := range trials {
		all.Lines = append(all.Lines, append(t.line, (scale(t.value)-low)/width))
		if t.may {
			may++
		}
	}
	top := bestShare(may)
	best := figure.Series{Name: fmt.Sprintf("best %d", top), Style: figure.Bundle, Lines: all.Lines[:top]}
	plot.Add(all).Add(best)
}

// importance draws the importance of the parameters, by the model if there is one.
func (p *studyPlots) importance(ctx context.Context) error {
	i, err := p.svc.Importance(ctx, p.view.Name, tuner.ImportanceQuery{})
	if err != nil {
		return err
	}
	plot := p.plot("importance", "Which parameters matter", figure.Axis{}, figure.Axis{})
	byModel := slices.ContainsFunc(i.Parameters, func(q tuner.ParameterImportance) bool { return !math.IsNaN(q.Total) })
	plot.X.Label = "share of the best trials' shift"
	if byModel {
		plot.X.Label = "share of the variance of the model's mean, ± its standard error"
	}
	for _, q := range i.Parameters {
		b := figure.Bar{Name: q.Parameter, Value: q.Data}
		if byModel {
			b.Value, b.Err = q.Total, q.TotalError
		}
		if !math.IsNaN(b.Value) {
			plot.Bars = append(plot.Bars, b)
		}
	}
	slices.SortStableFunc(plot.Bars, func(a, b figure.Bar) int { return cmp.Compare(b.Value, a.Value) })
	return nil
}

// front draws each pair of objectives, with the recommended trials.
func (p *studyPlots) front() {
	objectives := p.view.Spec.Objectives
	for j := range objectives {
		for k := j + 1; k < len(objectives); k++ {
			plot := p.plot("front-"+objectives[j].Name+"-"+objectives[k].Name, "Trade-off of the objectives", p.axis(j), p.axis(k))
			for _, s := range p.points(k, func(i int) float64 {
				v, _ := p.value(j, i)
				return v
			}) {
				if s.Style == figure.Best {
					s.Name = "Pareto front"
				}
				plot.Add(s)
			}
		}
	}
}

// mostCurves is the largest number of curves of each kind.
const mostCurves = 20

// curves draws the reports of running, of the best completed, and of pruned trials.
func (p *studyPlots) curves(ctx context.Context) error {
	objective := p.view.Spec.Objectives[0]
	last := p.columns.Find("report/" + objective.Name)
	byState := make(map[study.TrialState][]int)
	for i := range p.columns.Rows {
		if !math.IsNaN(last.At(i)) {
			s := study.TrialState(p.columns.Find("state").At(i))
			byState[s] = append(byState[s], i)
		}
	}
	value := func(i int) float64 { return p.result(0, i) }
	byState[study.Completed] = slices.DeleteFunc(byState[study.Completed], func(i int) bool { return math.IsNaN(value(i)) })
	slices.SortStableFunc(byState[study.Completed], func(a, b int) int { return objective.Direction.Compare(value(a), value(b)) })
	slices.Reverse(byState[study.Pruned])
	plot := p.plot("curves", "Reports of the trials", figure.Axis{Label: "step"}, figure.Axis{Label: objective.Name})
	var values []float64
	for _, kind := range []struct {
		state study.TrialState
		name  string
		style figure.Style
		color int
	}{{study.Pruned, "pruned, latest", figure.Dashed, 1}, {study.Completed, "completed, best", figure.Line, 2}, {study.Running, "running", figure.LinePoints, 0}} {
		list := byState[kind.state]
		for k, n := range list[:min(mostCurves, len(list))] {
			s := figure.Series{Style: kind.style, Color: kind.color + 1}
			if k == 0 {
				s.Name = kind.name
			}
			reports, _, err := p.svc.Reports(ctx, p.view.Name, n, 0, 0)
			if err != nil {
				return err
			}
			for _, r := range reports {
				for _, v := range r.Values {
					if v.Name == objective.Name && r.Epoch == reports[len(reports)-1].Epoch {
						s.X, s.Y = append(s.X, float64(r.Step)), append(s.Y, v.Value)
					}
				}
			}
			values = append(values, s.Y...)
			plot.Add(s)
		}
	}
	plot.Y = axisOf(objective, values)
	return nil
}

// model draws what the model predicted when it suggested a trial against what came out.
func (p *studyPlots) model(objective int) {
	name := p.view.Spec.Objectives[objective].Name
	s := figure.Series{Name: "suggested trials", Style: figure.Points, Color: 3}
	low, high := math.Inf(1), math.Inf(-1)
	for i := range p.columns.Rows {
		m := p.columns.Find("mean/" + name).At(i)
		if v, state := p.value(objective, i); state == study.Completed && !math.IsNaN(m) && !math.IsInf(v, 0) {
			s.X, s.Y = append(s.X, m), append(s.Y, v)
			low, high = min(low, v), max(high, v)
		}
	}
	measured := axisOf(p.view.Spec.Objectives[objective], s.Y)
	predicted := measured
	predicted.Label, measured.Label = "predicted "+name, "measured "+measured.Label
	if beyond := len(slices.DeleteFunc(slices.Clone(s.X), func(m float64) bool { return predicted.Within(m) == m })); beyond > 0 {
		predicted.Label += fmt.Sprintf(" (%d far values at the edges)", beyond)
	}
	plot := p.plot(p.name("model", objective), "Predicted before and measured", predicted, measured)
	if len(s.X) > 0 {
		plot.Add(s).Add(figure.Series{Name: "as predicted", Style: figure.Line, X: []float64{low, high}, Y: []float64{low, high}})
	}
}

func newPlot(g *cli.Globals) *cobra.Command {
	var png, svg, page string
	var only []string
	cmd := &cobra.Command{
		Use:               "plot [STUDY]",
		Short:             "Draw a study",
		ValidArgsFunction: cli.Args(g.Studies),
		Long: `Plot draws a study into files named STUDY-PLOT.png or STUDY-PLOT.svg, by default
PNG files in the current folder.

Plots:
  history     result of each trial, and the best so far
  slices      objective over each parameter, with the model through the best
              trial
  parallel    parameters and objective of all completed trials, the best
              hundredth, or the best ten of few trials, in red
  importance  how much each parameter matters
  front       pairs of objectives with the Pareto front
  curves      reports of running, of the best and of pruned trials
  model       predicted before against measured

Plots for which the study has no data are left out. From 5,000 points on, plots
show the density of points.

With --html plot writes the web page of the study into one file. A browser opens it
without a server and without a network.`,
		Example: `  tuner plot digits --png plots
  tuner plot digits --svg plots --only history,slices
  tuner plot digits --html digits.html`,
		Args: cli.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			kinds := plotKinds
			if len(only) > 0 {
				kinds = only
			}
			for _, k := range kinds {
				if !slices.Contains(plotKinds, k) {
					return cli.Usagef("--only: there is no plot %q; use some of %s", k, strings.Join(plotKinds, ", "))
				}
			}
			if png == "" && svg == "" && page == "" {
				png = "."
			}
			if page != "" && len(only) > 0 && png == "" && svg == "" {
				return cli.Usagef("--only chooses among the plots of --png and --svg; leave it out, because --html has all of them")
			}
			return g.WithView(cmd, args, func(ctx context.Context, svc tuner.Service, view tuner.Study) error {
				if page != "" {
					if err := writePage(ctx, svc, view.Name, g.Connection(), page); err != nil {
						return err
					}
					g.Note(cmd, "Wrote %s.", page)
				}
				if png == "" && svg == "" {
					return nil
				}
				return DrawStudy(ctx, svc, view, g, cmd, kinds, png, svg)
			})
		},
	}
	cmd.Flags().StringVar(&png, "png", "", "`folder` for PNG files (default . without --svg and --html)")
	cmd.Flags().StringVar(&svg, "svg", "", "`folder` for SVG files")
	cmd.Flags().StringVar(&page, "html", "", "`file` for the page with all data")
	cmd.Flags().StringSliceVar(&only, "only", nil, "`plots` to draw, separated by commas (default all)")
	cli.Register(cmd, "only", cli.Words(plotKinds...))
	return cmd
}

func writePage(ctx context.Context, svc tuner.Service, name, connection, file string) error {
	var out bytes.Buffer
	if err := web.WriteFile(ctx, svc, name, connection, time.Now(), &out); err != nil {
		return err
	}
	if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
		return fmt.Errorf("--html %s cannot be written: %w", file, err)
	}
	return nil
}

// DrawStudy draws plots of a study as PNG and SVG into folders, where a name is given.
func DrawStudy(ctx context.Context, svc tuner.Service, view tuner.Study, g *cli.Globals, cmd *cobra.Command, kinds []string, png, svg string) error {
	p, err := newStudyPlots(ctx, svc, view)
	if err != nil {
		return err
	}
	for _, k := range kinds {
		if err := p.draw(ctx, k); err != nil {
			return err
		}
	}
	return p.write(g, cmd, png, svg)
}

// write writes the plots as PNG and SVG into folders, where a name is given.
func (p *studyPlots) write(g *cli.Globals, cmd *cobra.Command, png, svg string) error {
	var files []string
	study := p.view.Name
	if slices.ContainsFunc(plotKinds, func(kind string) bool { return strings.Contains(study, "-"+strings.TrimSuffix(kind, "s")) }) {
		study = strings.ReplaceAll(study, "-", "~") // else a-history and its plots could have files of study a
	}
	for _, form := range []struct {
		folder string
		write  func(name, folder string) ([]string, error)
	}{{png, p.drawn.WritePNGFiles}, {svg, p.drawn.WriteSVGFiles}} {
		if form.folder == "" {
			continue
		}
		written, err := form.write(study, form.folder)
		files = append(files, written...)
		if err != nil {
			return err
		}
	}
	for _, f := range files {
		g.Note(cmd, "Wrote %s.", f)
	}
	if len(files) == 0 {
		g.Note(cmd, "Study %s has nothing to draw yet.", p.view.Name)
	}
	return nil
}
