package surrogate

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/bkbtuner/bkb/tuner/study"
)

// NoModel says why a study has no model.
func (s State) NoModel(study string, missing int) error {
	switch s {
	case None:
		return fmt.Errorf("study %s has no model, because its space has no parameter that varies", study)
	case AtNextAsk:
		return fmt.Errorf("study %s has no model yet, because the next ask makes it; ask for a trial", study)
	}
	results := "results are"
	if missing == 1 {
		results = "result is"
	}
	return fmt.Errorf("study %s has no model yet, because %d more %s needed", study, missing, results)
}

func drawnBy(d Draw) string {
	switch d.Sampler {
	case "all":
		return "every different input"
	case "uniform":
		return "uniform sampling"
	}
	return strings.ToUpper(d.Sampler)
}

// shownScales is how many length scales are shown, the shortest first.
const shownScales = 10

// Rows returns the quantities of a diagnosis as text, each with its value and unit. The unit
// of the noise and the gap is the objective.
func (d Diagnosis) Rows(objective string) (rows [][3]string) {
	const deviations = "standard deviations of the model"
	row := func(show bool, name, unit, format string, values ...any) {
		if show {
			rows = append(rows, [3]string{name, fmt.Sprintf(format, values...), unit})
		}
	}
	row(true, "results", "trials", "%d", d.Results)
	row(!d.Capped, "inducing points", "points", "%d", d.InducingPoints)
	row(d.Capped, "inducing points", "points", "%d (capped)", d.InducingPoints)
	drawn, path := d.Draw, d.Draw.Path
	row(drawn.Sampler != "", "drawn by", "", "%s", drawnBy(drawn))
	row(drawn.Lambda > 0, "λ of the draw", "per row", "%.2g", drawn.Lambda)
	row(drawn.Lambda > 0, "rows read", "rows", "%d of %d", drawn.Read, drawn.Rows)
	if len(path) > 1 {
		row(true, "path of λ", "steps", "%d from %.2g", len(path), path[0].Lambda)
	}
	row(true, "effective dimension", "points", "%.3g", d.EffectiveDimension)
	row(true, "information gain", "nats (log det V)", "%.3g", d.InformationGain)
	row(true, "noise", objective+" (standard deviation)", "%.3g", d.Noise)
	row(true, "mean of the prior", objective+" (far from all results)", "%.4g", d.PriorMean)
	names := slices.Sorted(maps.Keys(d.LengthScales))
	level := 0.0
	for _, name := range names {
		level += math.Log(d.LengthScales[name]) / float64(len(names))
	}
	row(len(names) > 0, "length scales", "parts of a range (geometric mean)", "%.2g", math.Exp(level))
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(d.LengthScales[a], d.LengthScales[b]) })
	for _, name := range names[:min(len(names), shownScales)] {
		row(true, "  of "+name, "", "%.2g", d.LengthScales[name])
	}
	row(len(names) > shownScales, "  of others", "", "%d more, longer", len(names)-shownScales)
	row(true, "width of bounds", deviations, "%.3g", d.Beta)
	row(true, "width by theory", deviations, "%.3g", d.TheoryBeta)
	row(d.Predicted > 0, "coverage", "outcomes in 95 % intervals", "%d of %d", d.Covered, d.Predicted)
	row(d.Predicted > 0, "calibration", "of an interval's width", "%.2g", d.Calibration)
	row(d.Outliers > 0, "outliers", "results left out", "%d", d.Outliers)
	row(d.Failures > 0 && d.AvoidsFailures, "failures", "their places are avoided", "%d", d.Failures)
	row(d.Failures > 0 && !d.AvoidsFailures, "failures", "their places are not avoided", "%d", d.Failures)
	for _, m := range d.Metrics {
		row(true, m.Metric+" kept", "results", "%d of %d", m.Results-m.Broken, m.Results)
		row(m.Noise > 0, m.Metric+" noise", m.Metric+" (standard deviation)", "%.3g", m.Noise)
	}
	row(d.Stuck, "stuck for", "results", "%d", d.Idle)
	row(d.Gap != 0, "gap", objective+" (under the model)", "%.3g", d.Gap)
	row(d.Gap == 0, "gap", objective+" (under the model)", "-") // several objectives, or the model cannot say
	return rows
}

// Rows returns the prediction of each objective, of each metric with a limit, and of the
// probability to succeed, as text. A row is the name, the mean, its standard deviation and
// that of the noise.
func (p Prediction) Rows(objectives []study.Objective) (rows [][4]string) {
	row := func(name string, mean, sd, noise float64) {
		rows = append(rows, [4]string{name, fmt.Sprintf("%.4g", mean), fmt.Sprintf("%.2g", sd), fmt.Sprintf("%.2g", noise)})
	}
	for j, o := range objectives {
		row(o.Name, p.Mean[j], p.StdDev[j], p.Noise[j])
	}
	for _, m := range p.Metrics {
		row(m.Metric, m.Mean, m.StdDev, m.Noise)
	}
	if len(p.Metrics) > 0 || p.Feasible < 1 {
		rows = append(rows, [4]string{"feasible", fmt.Sprintf("%.3g", p.Feasible), "-", "-"})
	}
	return rows
}

// OutcomeText is a predicted value with the standard deviation of an outcome, from that
// of the mean and that of the noise.
func OutcomeText(mean, sd, noise float64) string {
	return fmt.Sprintf("%.4g±%.2g", mean, math.Hypot(sd, noise))
}
