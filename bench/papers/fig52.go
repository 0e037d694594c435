package papers

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/bench/experiment"
	"github.com/bkbtuner/bkb/bench/report"
	"github.com/bkbtuner/bkb/figure"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/sketch"
)

// fig52 is figure 5.2 of Carratino (2020).
var fig52 = experiment.Experiment{
	Name:   "fig5.2",
	Title:  "Time of leverage score sampling against n",
	Source: "Carratino (2020), figure 5.2",
	About: `Each sampler chooses a dictionary from n rows of the SUSY-like generator, which are in
memory. The kernel is Gaussian with σ = 4, and λ is fixed at 1e-3, as in Carratino
(2020). The times are medians over the repeats, of which there are fewer if one takes
longer than a second. Slopes are those of log CPU time over log n from n = 10⁴ on. A
slope is 1 if the time is linear in n, and 0 if it does not depend on n. A sampler is
not run for larger n once it has taken more than a minute and a half (with --full, four
minutes).`,
	Repeats: 7,
	Measure: timesOfSamplers,
}

func timesOfSamplers(ctx context.Context, env *experiment.Env) (*report.Result, error) {
	const lambda = 1e-3
	r := &report.Result{}
	sizes := [][]int{{300, 1000, 3000}, {1e3, 3e3, 1e4, 3e4, 1e5, 1e6}, {1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 1e6}}[env.Scale-experiment.Quick]
	largest := sizes[len(sizes)-1]
	env.Report(0, 0, "generating %d rows", largest)
	data, err := generate(ctx, data.SUSYLike{Seed: env.Derive("fig5.2", 0)}, largest)
	if err != nil {
		return nil, err
	}
	k, err := gaussian(4)
	if err != nil {
		return nil, err
	}
	t := r.Table("times", fmt.Sprintf("Time to choose a dictionary, λ = %g", lambda),
		report.Column{Name: "sampler"}, report.Column{Name: "n"}, report.Column{Name: "M", Format: "%.0f"},
		report.Column{Name: "CPU", Unit: "s"}, report.Column{Name: "wall", Unit: "s"}, report.Column{Name: "runs"})
	defer func() { summariseTimes(r, t) }()
	limit := float64(env.Pick(2, 90, 240))
	samplers := []namedSampler{
		{"BLESS", sketch.BLESS{Workers: env.Workers}},
		{"BLESS-R", sketch.BLESSR{Workers: env.Workers}},
		{"SQUEAK", sketch.SQUEAK{}},
		{"Recursive-RLS", sketch.RecursiveRLS{Workers: env.Workers}},
		{"Two-Pass", sketch.TwoPass{Workers: env.Workers}},
		{"exact RLS", sketch.ExactRLS{}},
	}
	for i, s := range samplers {
		grows := grower{}
		for j, n := range sizes {
			if grows.next(float64(n)) > limit {
				break
			}
			env.Report(i*len(sizes)+j, len(samplers)*len(sizes), "%s, n = %d", s.name, n)
			at, err := timeSampler(ctx, env, s, k, kernel.FromRows(data.Rows().Slice(0, n)), lambda)
			if err != nil {
				return r, err
			}
			t.Add(s.name, n, at.points, at.cpu, at.wall, at.runs)
			grows.took(float64(n), at.cpu)
		}
	}
	return r, nil
}

// timing is a running time.
type timing struct {
	points, cpu, wall float64
	runs              int
}

// timeSampler returns the median time of several samples. There are as many as repeats, but
// no more once they have taken a second each.
func timeSampler(ctx context.Context, env *experiment.Env, s namedSampler, k kernel.Kernel, src kernel.Source, lambda float64) (timing, error) {
	var points, cpu, wall []float64
	for rep := range env.Repeats {
		watch := experiment.StartWatch()
		d, err := s.Sample(ctx, k, src, lambda, env.Rand("fig5.2 "+s.name, rep))
		if err != nil {
			return timing{}, err
		}
		points, cpu, wall = append(points, float64(d.Len())), append(cpu, watch.CPU()), append(wall, watch.Wall())
		if sum(wall) > float64(env.Repeats) {
			break
		}
	}
	return timing{median(points), median(cpu), median(wall), len(cpu)}, nil
}

// grower predicts times from the two sizes before.
type grower struct{ n, time []float64 }

func (g *grower) took(n, time float64) { g.n, g.time = append(g.n, n), append(g.time, time) }

// next returns about the time for n, 0 if it cannot be predicted.
func (g *grower) next(n float64) float64 {
	last := len(g.n) - 1
	if last < 0 {
		return 0
	}
	power := 1.0
	if last > 0 {
		power = max(0, math.Log(g.time[last]/g.time[last-1])/math.Log(g.n[last]/g.n[last-1]))
	}
	return g.time[last] * math.Pow(n/g.n[last], power)
}

// summariseTimes adds slopes, the ratios that are promised, and the plot.
func summariseTimes(r *report.Result, t *report.Table) {
	p := r.Plot("times", "Choosing a dictionary, λ = 0.001", figure.Axis{Label: "n", Log: true}, figure.Axis{Label: "CPU time [s]", Log: true})
	s := r.Table("slopes", "Slope of log CPU time over log n, and longest over shortest time, from n = 10⁴ on (all n where there are none)",
		report.Column{Name: "sampler"}, report.Column{Name: "from n"}, report.Column{Name: "to n"}, report.Column{Name: "slope", Format: "%.2f"}, report.Column{Name: "longest/shortest", Format: "%.2f"})
	at := map[string]map[int]float64{}
	for i, row := range t.Rows {
		name := row[0].(string)
		if at[name] != nil {
			continue
		}
		at[name] = map[int]float64{}
		rows := (&report.Table{Columns: t.Columns, Rows: t.Rows[i:]}).Where("sampler", name)
		n, cpu := rows.Float("n"), rows.Float("CPU")
		for j := range n {
			at[name][int(n[j])] = cpu[j]
		}
		p.Add(figure.Series{Name: name, X: n, Y: cpu})
		if from := slices.IndexFunc(n, func(v float64) bool { return v >= 1e4 }); from > 0 && from < len(n)-1 {
			n, cpu = n[from:], cpu[from:]
		}
		s.Add(name, int(n[0]), int(n[len(n)-1]), slope(n, cpu), slices.Max(cpu)/slices.Min(cpu))
	}
	for _, name := range []string{"BLESS", "BLESS-R"} {
		if mine, theirs := at[name][1e5], at["Recursive-RLS"][1e5]; mine > 0 && theirs > 0 {
			r.Note("At n = 100000 Recursive-RLS takes %.1f times as long as %s.", theirs/mine, name)
		}
	}
}
