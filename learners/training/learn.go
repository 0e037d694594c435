package training

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/learners/data"
)

// Learned are length scales that were fitted to training rows, see [Learn].
type Learned struct {
	// Kernel is the kernel by name, and Lengths has its length scale for each input.
	Kernel  string
	Lengths []float64
	// Ridge is λn, the noise variance over the variance of the function. Half the noise
	// variance is a smaller λ for twice the rows.
	Ridge float64
	// MedianDistance is the median distance of rows that are divided by Lengths.
	MedianDistance float64
	// Relevance is the spread of each input in length scales, over the largest. An input
	// with a relevance near 0 has no effect on the kernel.
	Relevance []float64
	// Rows is the number of rows of the last fit.
	Rows int
}

// Effect is the least relevance of an input that has an effect.
const Effect = 0.02

// learnFit is a fit of Learn to some rows, which starts from the result of the fit before.
type learnFit struct{ rows, iterations int }

// learnFits follow a first fit to learnStart rows. An iteration of the last one takes as long as eight
// of the one before.
var learnFits = []learnFit{{1000, 30}, {2000, 10}}

const (
	learnStart     = 250
	learnTolerance = 0.05 // the rise of the log evidence that ends a fit
	// learnReach is the largest length scale that the second fit starts from, in standard
	// deviations of the input. Beyond, the evidence is almost flat.
	learnReach  = 10
	learnInputs = 2000 // the most
)

// learnable are the kernels that Learn accepts. Others have parameters beside the length
// scales, or inputs whose scale is not a length.
var learnable = familyNames(func(f kernel.Family) bool { return f.Points && f.Spectrum != nil && f.Params == nil })

// LearnError reports length scales that cannot be learned.
type LearnError struct{ Reason, Remedy string }

func (e *LearnError) Error() string {
	return fmt.Sprintf("length scales or a metric cannot be learned: %s; %s", e.Reason, e.Remedy)
}

// Learn fits a length scale for each input and λ to rows of src, by gradients of the evidence
// of a Gaussian process with kernel s²k, noise ξ² and λn = ξ²/s². A fit to 250 rows starts from the
// median distance. Fits to 1000, with length scales of at most 10 standard deviations at first, so
// that it finds inputs missed before, and to 2000 follow. An evaluation on m rows costs O(m³ + m²d).
//
// Of several outputs it fits one random combination, in which all classes differ. weights are those
// of the rows of src, or nil, and it takes copies of rows, see [data.Copies]. Ridge is for the rows of p.
func Learn(ctx context.Context, kernelName string, src data.Source, weights []float64, p Problem, seed uint64, workers int) (*Learned, error) {
	switch d := src.Dim(); {
	case !slices.Contains(learnable, kernelName):
		return nil, &LearnError{fmt.Sprintf("the kernel is %s", kernelName), fmt.Sprintf("use one of %v, or give length scales", learnable)}
	case d > learnInputs:
		return nil, &LearnError{fmt.Sprintf("there are %d inputs, more than %d", d, learnInputs), "use the median distance"}
	case src.Outputs() == 0:
		return nil, &LearnError{"there is no target", "name a column as target"}
	}
	l := learning{start: learnStart, fits: learnFits, name: kernelName, seed: seed, workers: workers}
	copies := data.NewCopies(weights, src.Len())
	out, err := l.learn(ctx, src, copies, p)
	if err == nil && copies.Len() != p.Rows { // such as weights of classes
		out.Ridge *= float64(p.Rows) / float64(copies.Len())
	}
	return out, err
}

// learning is a call of Learn.
type learning struct {
	start   int
	fits    []learnFit
	name    string
	seed    uint64
	workers int
}

func (l *learning) learn(ctx context.Context, src data.Source, copies *data.Copies, p Problem) (*Learned, error) {
	rows, err := l.sample(ctx, src, copies, min(copies.Len(), l.fits[len(l.fits)-1].rows))
	if err != nil {
		return nil, err
	}
	out := &Learned{Kernel: l.name, Rows: min(rows.len(), l.start)}
	start := slices.Repeat([]float64{p.MedianDistance}, src.Dim())
	fit, err := l.fit(ctx, rows.part(out.Rows), start, 1, gp.FitOptions{Starts: 2})
	if err != nil {
		return nil, err
	}
	for i, next := range l.fits {
		if rows.len() == out.Rows {
			break
		}
		out.Rows = min(rows.len(), next.rows)
		factor, lengths := parts(fit)
		if i == 0 {
			for c, s := range spreads(rows) {
				if s > 0 {
					lengths[c] = min(lengths[c], learnReach*s)
				}
			}
		}
		o := gp.FitOptions{Starts: 1, MaxIterations: next.iterations, NoiseVariance: fit.NoiseVariance}
		if fit, err = l.fit(ctx, rows.part(out.Rows), lengths, factor, o); err != nil {
			return nil, err
		}
	}
	factor, lengths := parts(fit)
	out.Lengths, out.Ridge = lengths, fit.NoiseVariance/factor
	return out, out.measure(ctx, rows, l.seed)
}

// Notes describe the fit and the inputs without effect, of which names has the names.
func (l *Learned) Notes(names []string) []string {
	notes := []string{fmt.Sprintf("learned %d length scales from %d rows", len(l.Lengths), l.Rows)}
	if idle := l.Idle(names); len(idle) > 0 {
		notes = append(notes, fmt.Sprintf("%d of %d inputs have little effect: %s", len(idle), len(l.Lengths), Few(idle)))
	}
	return notes
}

// Few lists the first names and counts the others.
func Few(names []string) string {
	if few := 8; len(names) > few {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
	}
	return strings.Join(names, ", ")
}

// Idle returns the names of the inputs with a relevance below [Effect]. Without names they
// are numbered from 1.
func (l *Learned) Idle(names []string) []string {
	var idle []string
	for c, r := range l.Relevance {
		switch {
		case r >= Effect:
		case c < len(names):
			idle = append(idle, names[c])
		default:
			idle = append(idle, fmt.Sprint(c+1))
		}
	}
	return idle
}

// Learn sets p.Learned and p.Metric where the hyper-parameters need them. Use it before Estimator. A
// metric starts from learned length scales, which are in p too if no length scale is given.
func (a *Algorithm) Learn(ctx context.Context, v Values, src data.Source, weights []float64, p *Problem, seed uint64, workers int) error {
	if err := a.Check(v); err != nil {
		return err
	}
	r := reader{a, v}
	full := r.text(metricName) == fullMetric && !r.learns()
	if !full && !r.learns() {
		return nil
	}
	from := *p
	var err error
	from.Learned, err = Learn(ctx, r.text("kernel"), src, weights, *p, seed, workers)
	if refused := (*LearnError)(nil); err != nil && !(full && errors.As(err, &refused)) {
		return err
	}
	if _, given := v[lengthScaleName]; r.learns() || !given {
		p.Learned = from.Learned
	}
	if full {
		p.Metric, err = LearnMetric(ctx, r.text("kernel"), src, weights, from, seed, workers)
	}
	return err
}

// scalar are rows with one target.
type scalar struct {
	x *kernel.Points[float64]
	y []float64
}

func (s scalar) len() int { return s.x.Len() }

// part returns the first n rows.
func (s scalar) part(n int) scalar { return scalar{s.x.Slice(0, n).(*kernel.Points[float64]), s.y[:n]} }

// draw returns the rows of n different copies once each, and where the rows of these copies are among
// them, in random order, of which the first ones are a sample too.
func (l *learning) draw(ctx context.Context, src data.Source, copies *data.Copies, n int) (m *data.Memory, at []int, err error) {
	order := stream.NewPermutation(stream.Derive(l.seed, "training/learn", 0), uint64(copies.Len()))
	idx, at := make([]int, n), make([]int, n)
	for i := range idx {
		idx[i] = copies.Row(int(order.At(uint64(i))))
	}
	sorted := slices.Compact(slices.Sorted(slices.Values(idx)))
	sub, err := data.Subset(src, sorted)
	if err != nil {
		return nil, nil, err
	}
	for i, row := range idx {
		at[i], _ = slices.BinarySearch(sorted, row)
	}
	m, err = data.Load(ctx, sub)
	return m, at, err
}

// sample returns different copies of rows with one target, see draw.
func (l *learning) sample(ctx context.Context, src data.Source, copies *data.Copies, n int) (scalar, error) {
	m, at, err := l.draw(ctx, src, copies, n)
	if err != nil {
		return scalar{}, err
	}
	c := m.Outputs()
	weights := slices.Repeat([]float64{1}, c)
	if rng := stream.New(stream.Derive(l.seed, "training/learn", 1)); c > 1 {
		for j := range weights {
			weights[j] = rng.NormFloat64()
		}
	}
	y := make([]float64, n)
	for i := range y {
		for j, w := range weights {
			y[i] += w * m.Targets()[at[i]*c+j]
		}
	}
	return scalar{dense(m.Rows().Select(at)), y}, nil
}

// dense returns rows of numbers as packed float64.
func dense(x kernel.Rows) *kernel.Points[float64] {
	n, d := x.Len(), x.Dim()
	out := make([]float64, n*d)
	for i := range n {
		kernel.CopyRow(out[i*d:][:d], x, i)
	}
	return kernel.NewPoints(n, d, out)
}

// fit fits factor·k with these length scales.
func (l *learning) fit(ctx context.Context, rows scalar, lengths []float64, factor float64, o gp.FitOptions) (*gp.FitResult, error) {
	base, err := newKernel(l.name, lengths, 0, 0)
	if err != nil {
		return nil, err
	}
	k, err := kernel.NewScaled(factor, base)
	if err != nil {
		return nil, err
	}
	o.Workers, o.Tolerance = l.workers, learnTolerance
	fit, err := gp.Fit(ctx, k, gp.Data{X: rows.x, Y: rows.y}, o)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, gp.ErrFit):
		return nil, &LearnError{err.Error(), "use the median distance, or give length scales"}
	case err != nil:
		return nil, err
	}
	return fit, nil
}

// parts returns the factor and the length scales of a fit.
func parts(fit *gp.FitResult) (factor float64, lengths []float64) {
	spec := fit.Kernel.Spec()
	return spec.Params["factor"], spec.Parts[0].LengthScales
}

// measure sets the median distance and the relevance.
func (l *Learned) measure(ctx context.Context, rows scalar, seed uint64) error {
	n, d := rows.len(), len(l.Lengths)
	divided := make([]float64, 0, n*d)
	for i := range n {
		for c, v := range rows.x.Row(i) {
			divided = append(divided, v/l.Lengths[c])
		}
	}
	l.Relevance = spreads(rows)
	for c := range l.Relevance {
		l.Relevance[c] /= l.Lengths[c]
	}
	if largest := slices.Max(l.Relevance); largest > 0 {
		for c := range l.Relevance {
			l.Relevance[c] /= largest
		}
	}
	var err error
	l.MedianDistance, err = MedianDistance(ctx, kernel.FromRows(kernel.NewPoints(n, d, divided)), seed)
	return err
}

// spreads returns the standard deviation of each input.
func spreads(rows scalar) []float64 {
	spread, column := make([]float64, rows.x.Dim()), make([]float64, rows.len())
	for c := range spread {
		for i := range column {
			column[i] = rows.x.Row(i)[c]
		}
		spread[c] = stat.PopStdDev(column, nil)
	}
	return spread
}
