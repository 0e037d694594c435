package autotune

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/theory"
	"github.com/bkbtuner/bkb/learners/training"
	"github.com/bkbtuner/bkb/tuner/space"
)

// maxSteps is the maximum number of values of an ordinal that stands for theory's range of
// counts. leastRatio is the least ratio of neighbours beyond that range.
const (
	maxSteps   = 33
	leastRatio = 1.1
)

// dimensions returns those of theory, and the relevance of inputs where length scales can
// be learned. It learns them, which all trials share.
func (t *Tuning) dimensions(ctx context.Context) ([]theory.Dimension, error) {
	dims, err := theory.Space(t.algorithm.Name, theory.Data{Rows: t.problem.Rows, MedianDistance: t.problem.MedianDistance})
	if err != nil {
		return nil, err
	}
	a, fixed := t.algorithm, t.options.Fixed
	rows, weights := t.data.Train, t.single.weights
	if t.alone {
		rows, weights = t.known, t.weights
	}
	if err = a.Learn(ctx, fixed, rows, weights, &t.problem, t.options.Seed, t.options.goroutines()); err != nil {
		return nil, err
	}
	_, scaled := fixed["length-scale"]
	_, related := fixed["relevance"]
	searched := !(scaled || related || fixed["metric"] == "full" || t.problem.Dim < 2 || rows.Len() < leastLearnt || t.problem.Outputs == 0)
	learn := func(kernel string) (*training.Learned, error) {
		l, err := training.Learn(ctx, kernel, rows, weights, t.problem, t.options.Seed, t.options.goroutines())
		if refused := (*training.LearnError)(nil); errors.As(err, &refused) {
			return nil, nil // the kernel or the inputs do not allow it
		}
		return l, err
	}
	if searched {
		if t.problem.Learned, err = learn(cmp.Or(fixed["kernel"], learntKernel)); err != nil {
			return nil, err
		}
	}
	if t.problem.Learned != nil && fixed["kernel"] == "" && fixed["metric"] != "full" {
		if t.problem.Laplace, err = learn(training.LaplaceKernel); err != nil {
			return nil, err
		}
	}
	if !searched || t.problem.Learned == nil {
		return dims, nil
	}
	if err := t.learnMetric(ctx, rows, weights); err != nil {
		return nil, err
	}
	if t.problem.Metric != nil {
		dims = append(dims, theory.Dimension{Name: "metric", Scale: theory.Choice, Choices: []string{"diagonal", "full"}})
	}
	return append(dims, theory.Dimension{Name: "relevance", Scale: theory.Choice, Choices: []string{"equal", "learned"}}), nil
}

// learnMetric learns a full metric where that is worth a hyper-parameter. The rows that judge trials
// have no part in it where they are apart. Where each row is left out, the rows that judge the metric
// say whether trials may have it.
func (t *Tuning) learnMetric(ctx context.Context, rows data.Source, weights []float64) error {
	_, given := t.options.Fixed["metric"]
	has := slices.ContainsFunc(t.algorithm.Parameters, func(p training.Parameter) bool { return p.Name == "metric" })
	if given || !has || t.options.Folds > 1 && !t.alone || rows.Len() < max(leastMetric, rows.Dim()) {
		return nil
	}
	m, err := training.LearnMetric(ctx, cmp.Or(t.options.Fixed["kernel"], learntKernel), rows, weights, t.problem, t.options.Seed, t.options.goroutines())
	if refused := (*training.LearnError)(nil); errors.As(err, &refused) {
		return nil
	} else if err != nil || m.Gain < leastMetricGain {
		return err
	}
	t.problem.Metric = m
	return nil
}

// learntKernel is the kernel whose length scales are learned. Their proportions suit the other
// functions of the Euclidean distance too. leastLearnt is the least number of rows for that.
const (
	learntKernel = "matern52"
	leastLearnt  = 20
)

// leastMetric is the least number of training rows for a full metric, beside that of inputs, and
// leastMetricGain the share of the error of held-out rows that it must take away before trials
// try it.
const leastMetric, leastMetricGain = 100, 0.05

// build makes the space and the starting configurations.
func (t *Tuning) build(dims []theory.Dimension) error {
	var parameters []space.Parameter
	start := map[string]space.Value{}
	for _, d := range dims {
		if _, fixed := t.options.Fixed[d.Name]; fixed {
			continue
		}
		p, v := parameterOf(d, t.searched(d))
		if d.Name == "relevance" && t.problem.Metric != nil {
			p = p.Given("metric", space.String("diagonal"))
		}
		_, ranged := t.options.Ranges[d.Name]
		if d.Name == "centers" {
			t.most, t.whole = int64(min(d.Most, d.High)), !ranged && !t.samples()
		}
		switch {
		case d.Name == "centers" && t.whole:
			v = space.Int(t.most)
			p = space.NewConstant(d.Name, v)
		case d.Fidelity:
			t.counted, t.steps = d.Name, int(d.High)
		case limited(d):
			t.limits = append(t.limits, fmt.Sprintf("%s=%s", d.Name, Range{max(d.Least, d.Floor), min(d.Most, math.MaxInt32)}))
		}
		parameters, start[d.Name] = append(parameters, p), v
	}
	for _, p := range t.algorithm.Parameters {
		if text, fixed := t.options.Fixed[p.Name]; fixed {
			v := fixedValue(p, text)
			parameters, start[p.Name] = append(parameters, space.NewConstant(p.Name, v)), v
		}
	}
	if t.steps == 0 {
		t.counted, t.steps = t.iterations()
	}
	var err error
	if t.space, err = space.New(parameters...); err != nil {
		return err
	}
	t.start(start, startTheory)
	if t.moved {
		t.starts[0].name = startNear
	}
	number := func(values map[string]space.Value, name string, x float64) {
		p, ok := t.space.Lookup(name)
		if !ok || p.Type != space.TypeFloat {
			return
		}
		low, _ := p.Low.AsFloat()
		high, _ := p.High.AsFloat()
		values[name] = space.Float(min(max(rounded(x), low), high))
	}
	if x, ok := start["length-scale"].AsFloat(); ok {
		half := maps.Clone(start)
		number(half, "length-scale", x/2)
		t.start(half, startHalf)
	}
	kernel, _ := t.space.Lookup("kernel")
	var learned []map[string]space.Value // starts with them, of functions of the Euclidean distance
	if p, ok := t.space.Lookup("relevance"); ok && p.Type == space.TypeCategorical {
		for _, l := range []*training.Learned{t.problem.Learned, t.problem.Laplace} {
			if l == nil {
				continue
			}
			values := maps.Clone(start)
			values["relevance"] = space.String("learned")
			if t.ridge() { // gradients converge slowly with such long length scales
				number(values, "length-scale", t.problem.MedianDistance/l.MedianDistance)
				number(values, "lambda", l.Ridge/float64(t.problem.Rows))
			}
			if slices.Contains(kernel.Values, space.String(l.Kernel)) {
				values["kernel"] = space.String(l.Kernel)
			}
			t.start(values, startLearned)
			if l == t.problem.Learned {
				learned = append(learned, values)
			}
		}
	}
	if m := t.problem.Metric; m != nil && t.options.Fixed["metric"] == "" {
		values := maps.Clone(start)
		values["metric"] = space.String("full")
		delete(values, "relevance")
		number(values, "length-scale", t.problem.MedianDistance)
		number(values, "lambda", m.Lambda)
		if slices.Contains(kernel.Values, space.String(learntKernel)) {
			values["kernel"] = space.String(learntKernel)
		}
		t.start(values, startMetric)
		learned = append(learned, values)
	}
	switch {
	case t.options.Folds <= 1 && (t.ridge() || t.algorithm.Name == "log-falkon"):
		// A search may end beside the best kernel, of which the starts have a few.
		for _, from := range learned {
			t.spread(from, []map[string]space.Value{{}})
		}
	case t.alone:
		delete(start, "relevance")
		for _, at := range spreadAt {
			number(start, "length-scale", at.length*t.problem.MedianDistance)
			number(start, "lambda", at.lambda)
			t.spread(start, t.kinds())
		}
	}
	return nil
}

// samples reports whether a fixed hyper-parameter asks for a sampler by leverage scores, which
// finds the number of centres itself.
func (t *Tuning) samples() bool {
	name, named := t.options.Fixed["sampler"]
	return named && training.FindsCenters(name)
}

// spreadAt are settings at which each kernel can be compared with the others, the length scale
// in median distances and λ in units of κ².
var spreadAt = []struct{ length, lambda float64 }{{1, 1e-7}, {15, 1e-10}}

// kinds are the values beside the kernel that are compared in closed form. They are each relevance, or
// learned relevance and the full metric.
func (t *Tuning) kinds() []map[string]space.Value {
	relevance, ok := t.space.Lookup("relevance")
	switch {
	case !ok:
		return []map[string]space.Value{{}}
	case t.problem.Metric != nil:
		return []map[string]space.Value{{"metric": space.String("diagonal"), "relevance": space.String("learned")}, {"metric": space.String("full")}}
	}
	var kinds []map[string]space.Value
	for _, r := range relevance.Values {
		kinds = append(kinds, map[string]space.Value{"relevance": r})
	}
	return kinds
}

// spread adds the configuration with each kernel of each kind. The Laplace kernel with learned relevance has a
// start of its own.
func (t *Tuning) spread(from map[string]space.Value, kinds []map[string]space.Value) {
	kernel, _ := t.space.Lookup("kernel")
	if len(kernel.Values) < 2 {
		return
	}
	for _, k := range kernel.Values {
		for _, kind := range kinds {
			values := maps.Clone(from)
			maps.Copy(values, kind)
			values["kernel"] = k
			if t.problem.Laplace != nil && k == space.String(training.LaplaceKernel) && values["relevance"] == space.String("learned") {
				continue
			}
			t.start(values, startSpread)
		}
	}
}

// start adds a starting configuration that none equals.
func (t *Tuning) start(values map[string]space.Value, name string) {
	var list []space.Assignment
	for name, v := range values {
		list = append(list, space.Assignment{Name: name, Value: v})
	}
	c := space.NewConfig(list...)
	if !slices.ContainsFunc(t.starts, func(s starting) bool { return s.config.Equal(c) }) {
		t.starts = append(t.starts, starting{c, name})
	}
}

// ridge reports whether λ is that of the squared loss.
func (t *Tuning) ridge() bool {
	return slices.Contains([]string{"falkon", "krr", "nystrom"}, t.algorithm.Name)
}

// iterations returns the name and the fixed or default number of steps of a learner that
// has steps.
func (t *Tuning) iterations() (name string, n int) {
	all := t.algorithm.Resolve(t.options.Fixed)
	for _, name := range []string{"passes", "iterations"} {
		if n, err := strconv.Atoi(all[name]); err == nil {
			return name, n
		}
	}
	return "", 0
}

// parameterOf returns a dimension of theory, searched in the range of d, as a parameter
// with its starting value.
func parameterOf(theirs, d theory.Dimension) (space.Parameter, space.Value) {
	switch {
	case d.Scale == theory.Choice:
		values := make([]space.Value, len(d.Choices))
		for i, c := range d.Choices {
			values[i] = space.String(c)
		}
		if d.Ordered {
			return space.NewOrdinal(d.Name, values...), values[0]
		}
		return space.NewCategorical(d.Name, values...), values[0]
	case d.Fidelity:
		v := space.Int(int64(d.High))
		return space.NewConstant(d.Name, v), v
	case d.Step > 0:
		return stepped(theirs, d)
	case d.Integer:
		return space.NewInt(d.Name, int64(d.Low), int64(d.High)).WithScale(space.Log), space.Int(int64(d.Start))
	}
	return space.NewFloat(d.Name, d.Low, d.High).WithScale(space.Log), space.Float(d.Start)
}

// stepped returns counts that are multiples of a step as an ordinal with its starting
// value. The values are the ends of d, and between them theory's geometric progression,
// which continues beyond theory's ends. A wider range therefore contains all values of a
// narrower one.
func stepped(theirs, d theory.Dimension) (space.Parameter, space.Value) {
	counts := []float64{d.Low, d.Start, d.High}
	add := func(x float64) {
		if x = d.Step * math.Round(x/d.Step); d.Low < x && x < d.High {
			counts = append(counts, x)
		}
	}
	whole := theirs.High / theirs.Low
	for i := range maxSteps - 2 {
		add(theirs.Low * math.Pow(whole, float64(i)/float64(maxSteps-3)))
	}
	ratio := max(math.Pow(whole, 1/float64(maxSteps-3)), leastRatio)
	for x := theirs.Low / ratio; x > d.Low; x /= ratio {
		add(x)
	}
	for x := theirs.High * ratio; x < d.High; x *= ratio {
		add(x)
	}
	slices.Sort(counts)
	var values []space.Value
	for _, x := range slices.Compact(counts) {
		values = append(values, space.Int(int64(x)))
	}
	if len(values) == 1 {
		return space.NewConstant(d.Name, values[0]), values[0]
	}
	return space.NewOrdinal(d.Name, values...), space.Int(int64(d.Start))
}

// fixedValue returns the value of a hyper-parameter that is not searched. The text has been
// checked.
func fixedValue(p training.Parameter, text string) space.Value {
	switch p.Kind {
	case training.Count:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return space.Int(n)
		}
	case training.Real:
		if x, err := strconv.ParseFloat(text, 64); err == nil {
			return space.Float(x)
		}
	}
	return space.String(text)
}

// rounded rounds to four significant digits, because people read ranges too.
func rounded(x float64) float64 {
	y, err := strconv.ParseFloat(strconv.FormatFloat(x, 'e', 3, 64), 64)
	if err != nil || y == 0 {
		return x
	}
	return y
}
