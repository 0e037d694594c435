package training

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/dataset"
)

// The gradient outer product is that of central differences of predictions, for each radial kernel
// and several outputs.
func TestGradientProductAgainstDifferences(t *testing.T) {
	const d, m, n, c, scale, h = 3, 7, 5, 2, 1.7, 1e-5
	rng := stream.New(11)
	draw := func(n int) []float64 {
		out := make([]float64, n)
		for i := range out {
			out[i] = rng.NormFloat64()
		}
		return out
	}
	centers, coef, x := draw(m*d), draw(m*c), draw(n*d)
	for _, name := range radial {
		k, err := newKernel(name, []float64{scale}, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		e, err := learners.NewExpansion(k, kernel.NewPoints(m, d, centers), coef, c)
		if err != nil {
			t.Fatal(err)
		}
		want := make([]float64, d*d)
		for i := range n {
			var gradient [d][]float64 // of all outputs
			for j := range d {
				var moved []float64
				for _, step := range []float64{h, -h} {
					row := slices.Clone(x[i*d:][:d])
					row[j] += step
					moved = append(moved, row...)
				}
				f := make([]float64, 2*c)
				if err := e.Predict(t.Context(), f, kernel.FromRows(kernel.NewPoints(2, d, moved))); err != nil {
					t.Fatal(err)
				}
				for u := range c {
					gradient[j] = append(gradient[j], (f[u]-f[c+u])/(2*h))
				}
			}
			for a := range d {
				for b := range d {
					for u := range c {
						want[a*d+b] += gradient[a][u] * gradient[b][u] / n
					}
				}
			}
		}
		for i, v := range GradientProduct(e, kernel.NewPoints(n, d, x), scale) {
			if math.Abs(v-want[i]) > 1e-6*(1+math.Abs(want[i])) {
				t.Errorf("%s: element %d is %g, by differences %g", name, i, v, want[i])
			}
		}
	}
	// A row that is a centre has no slope of its own there.
	k, _ := newKernel("matern12", []float64{scale}, 0, 0)
	e, err := learners.NewExpansion(k, kernel.NewPoints(1, d, centers[:d]), []float64{1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if g := GradientProduct(e, kernel.NewPoints(1, d, centers[:d]), scale); slices.Max(g) != 0 {
		t.Errorf("at a centre: %v", g)
	}
}

// rotated is a table of rows with d inputs, of which the target takes two directions, or none.
func rotated(t *testing.T, n, d int, signal float64) *Data {
	t.Helper()
	rng := stream.New(23)
	w := make([]float64, 2*d)
	for i := range w {
		w[i] = rng.NormFloat64() / math.Sqrt(float64(d))
	}
	var b strings.Builder
	for j := range d {
		fmt.Fprintf(&b, "x%d,", j)
	}
	b.WriteString("y\n")
	for range n {
		var u, v float64
		for j := range d {
			x := rng.NormFloat64()
			u, v = u+w[j]*x, v+w[d+j]*x
			b.WriteString(num(x) + ",")
		}
		b.WriteString(num(signal*(math.Sin(2*u)+v*u)+0.1*rng.NormFloat64()) + "\n")
	}
	out, err := Prepare(t.Context(), open(t, b.String(), dataset.Options{}), Split{Validation: 0.2, Test: 0.3, Seed: 1}, data.EncodingOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Where the target takes a few directions that are no inputs, the full metric has less than 0.7 of
// the error on test rows. Where it takes none, the model is that of the diagonal metric or no
// worse on validation rows.
func TestFullMetric(t *testing.T) {
	for _, name := range []string{"krr", "falkon"} {
		a, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, signal := range []float64{1, 0} {
			d := rotated(t, 400, 6, signal)
			fit := func(metric string) (*Trained, float64) {
				f, err := a.Train(t.Context(), d, Run{Values: Values{"metric": metric}, Options: learners.Options{Seed: 1}})
				if err != nil {
					t.Fatal(err)
				}
				scores, err := Evaluate(t.Context(), f.Model, d.Encoding, d.Test, learners.Scoring{})
				if err != nil {
					t.Fatal(err)
				}
				return f, scores[0].Value
			}
			full, with := fit(fullMetric)
			plain, without := fit(diagonal)
			if full.Error > plain.Error {
				t.Errorf("%s, signal %g: a validation error of %g, without %g", name, signal, full.Error, plain.Error)
			}
			if signal > 0 && (with > 0.7*without || full.Values[metricName] != fullMetric) {
				t.Errorf("%s: an error of %g with a %s metric, of %g with the diagonal one", name, with, full.Values[metricName], without)
			}
			if !strings.Contains(strings.Join(full.Notes, " "), "a full metric, learned from ") {
				t.Errorf("%s: notes %v", name, full.Notes)
			}
		}
	}
}

// Categories are coordinates of the full metric like others, one for each level. Where two of four
// levels act alike, and a direction of the numbers counts, it has less than 0.7 of the error with one
// length scale and less than 0.9 of that with learned ones, and puts these levels together.
func TestFullMetricOfCategories(t *testing.T) {
	rng := stream.New(31)
	var b strings.Builder
	b.WriteString("kind,p,q,r,y\n")
	for range 500 {
		kind, sum := rng.IntN(4), 0.0
		b.WriteString(string("abcd"[kind]) + ",")
		for range 3 {
			x := rng.NormFloat64()
			sum += x
			b.WriteString(num(x) + ",")
		}
		b.WriteString(num(math.Sin(sum+2*float64(kind/2))+0.1*rng.NormFloat64()) + "\n")
	}
	d, err := Prepare(t.Context(), open(t, b.String(), dataset.Options{}), Split{Validation: 0.2, Test: 0.4, Seed: 1}, data.EncodingOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a, e := ridgeRegression, map[string]float64{}
	for name, v := range map[string]Values{"full": {"metric": "full"}, "lengths": {"length-scale": Auto}, "median": {}} {
		f, err := a.Train(t.Context(), d, Run{Values: v, Options: learners.Options{Seed: 1}})
		if err != nil {
			t.Fatal(err)
		}
		scores, err := Evaluate(t.Context(), f.Model, d.Encoding, d.Test, learners.Scoring{})
		if err != nil {
			t.Fatal(err)
		}
		e[name] = scores[0].Value
		if name != "full" {
			continue
		}
		apart := func(i, j int) (square float64) { // levels i and j
			l, width := f.Problem.Metric.L, d.Train.Dim()
			for c := range width {
				square += (l[i*width+c] - l[j*width+c]) * (l[i*width+c] - l[j*width+c])
			}
			return square
		}
		if d.Train.Dim() != 7 || !(apart(0, 1) < 0.1*apart(0, 2) && apart(2, 3) < 0.1*apart(1, 3)) {
			t.Errorf("%d coordinates, where alike levels are %g and %g apart, others %g and %g", d.Train.Dim(), apart(0, 1), apart(2, 3), apart(0, 2), apart(1, 3))
		}
	}
	if !(e["full"] < 0.7*e["median"] && e["full"] < 0.9*e["lengths"]) {
		t.Errorf("errors %v", e)
	}
}

// A model with a map predicts what one of mapped rows does, from memory, from a stream, and after a
// file.
func TestMapsAreInModels(t *testing.T) {
	src := relevant(t, 120, 5, 0.1, stream.New(5), nil)
	l := make([]float64, 25)
	for i := range l {
		l[i] = math.Sin(float64(i + 1))
	}
	p := problemOf(t, src)
	p.Metric = &Metric{L: l}
	a := ridgeRegression
	fit := func(v Values, src data.Source) *learners.Expansion {
		e, err := a.Estimator(v, p)
		if err != nil {
			t.Fatal(err)
		}
		m, err := e.Fit(t.Context(), src, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return m.(*learners.Expansion)
	}
	inputs := src.Rows().(*kernel.Points[float64])
	product := make([]float64, inputs.Len()*5)
	for i := range inputs.Len() {
		for j := range 5 {
			for k, x := range inputs.Row(i) {
				product[i*5+j] += x * l[k*5+j]
			}
		}
	}
	mappedRows := kernel.FromRows(kernel.NewPoints(inputs.Len(), 5, product))
	memory, err := data.NewMemory(mappedRows.Rows(), src.Targets(), 1)
	if err != nil {
		t.Fatal(err)
	}
	outputs := func(m learners.Model, x kernel.Source) []float64 {
		out := make([]float64, x.Len())
		if err := m.Predict(t.Context(), out, x); err != nil {
			t.Fatal(err)
		}
		return out
	}
	want := outputs(fit(Values{}, memory), mappedRows)
	model := fit(Values{"metric": "full"}, src)
	var b bytes.Buffer
	if err := (&learners.File{Model: model}).Write(&b); err != nil {
		t.Fatal(err)
	}
	again, err := learners.Read(&b, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string][]float64{
		"memory": outputs(model, src), "stream": outputs(model, streamed{src}), "file": outputs(again.Model, src),
		"a fit to a stream": outputs(fit(Values{"metric": "full"}, streamed{src}), src),
	} {
		for i, v := range got {
			if math.Abs(v-want[i]) > 1e-9 {
				t.Errorf("%s: output %d is %g, want %g", name, i, v, want[i])
				break
			}
		}
	}
}

// streamed is a source that is not known to be in memory.
type streamed struct{ data.Source }

func TestFullMetricIsRefused(t *testing.T) {
	d := rotated(t, 60, 3, 1)
	for _, v := range []Values{{"kernel": "laplace"}, {"length-scale": "1,2,3"}, {"length-scale": Auto}, {"relevance": "learned"}} {
		v["metric"] = "full"
		a := ridgeRegression
		_, err := a.Train(t.Context(), d, Run{Values: v, Options: learners.Options{Seed: 1}})
		learn, value := (*LearnError)(nil), (*ValueError)(nil)
		if !errors.As(err, &learn) && !errors.As(err, &value) {
			t.Errorf("%v: %v", v, err)
		}
	}
}

// The rows that judge have no part in learning: neither other copies of them, nor those that are held
// out where there are no validation rows. Otherwise noise teaches a metric with almost no ridge.
func TestMetricIsJudgedOnOtherRows(t *testing.T) {
	d := rotated(t, 300, 4, 0)
	p := problemOf(t, d.Train)
	m, err := LearnMetric(t.Context(), "gaussian", d.Train, slices.Repeat([]float64{4}, d.Train.Len()), p, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	if m.Lambda < 1e-4 || m.Rows != d.Train.Len() {
		t.Errorf("copies of %d rows: λ = %g from %d rows", d.Train.Len(), m.Lambda, m.Rows)
	}
	all := &Data{Encoding: d.Encoding, Train: d.Train}
	for metric, v := range map[string]Values{"full": {"metric": "full"}, "lengths": {"length-scale": Auto}} {
		a := ridgeRegression
		f, err := a.Train(t.Context(), all, Run{Values: v, Options: learners.Options{Seed: 1}})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.Join(f.Notes, " "), "validation rmse") || f.Rows != d.Train.Len() {
			t.Errorf("%s: %d rows, notes %v", metric, f.Rows, f.Notes)
		}
		if m := f.Problem.Metric; m != nil && m.Rows != d.Train.Len()*9/10 {
			t.Errorf("learned from %d of %d rows, of which a tenth judges", m.Rows, d.Train.Len())
		}
	}
}

// A training with a full metric is never worse on validation rows than one with learned length scales,
// here where only five of fifteen inputs matter, one by one.
func TestFullMetricAgainstLengthScales(t *testing.T) {
	for _, seed := range []uint64{1, 2, 3} {
		rows := relevant(t, 150, 15, 0.1, stream.New(seed), nil)
		var b strings.Builder
		b.WriteString("a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,y\n")
		for i, y := range rows.Targets() {
			for _, x := range rows.Rows().(*kernel.Points[float64]).Row(i) {
				b.WriteString(num(x) + ",")
			}
			b.WriteString(num(y) + "\n")
		}
		d, err := Prepare(t.Context(), open(t, b.String(), dataset.Options{}), Split{Validation: 0.3, Seed: 1}, data.EncodingOptions{})
		if err != nil {
			t.Fatal(err)
		}
		train := func(v Values) *Trained {
			a := falkonAlgorithm
			f, err := a.Train(t.Context(), d, Run{Values: v, Options: learners.Options{Seed: seed}})
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
		full, lengths := train(Values{"metric": "full"}), train(Values{"length-scale": Auto})
		if full.Error > lengths.Error {
			t.Errorf("seed %d: an error of %g, with learned length scales %g: %v", seed, full.Error, lengths.Error, full.Notes)
		}
	}
}

// Targets of any size teach a metric or are refused: also where a fit diverges, where an output is not
// finite, and where only its square is not.
func TestMetricNeedsFiniteFunctions(t *testing.T) {
	rows := relevant(t, 60, 5, 0.1, stream.New(7), nil)
	p, rng := problemOf(t, rows), stream.New(3)
	for _, size := range []float64{1, 1e150, 1e152, 1e153, 1e154, 1e160, 1e300, 3e307, 1e308, math.MaxFloat64} {
		y := slices.Clone(rows.Targets())
		for i := range y {
			y[i] *= size / 10
			if size > 1e300 {
				y[i] = math.Copysign(size, rng.NormFloat64())
			}
		}
		src, err := data.NewMemory(rows.Rows(), y, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"gaussian", "matern12"} {
			m, err := LearnMetric(t.Context(), name, src, nil, p, 1, 1)
			refused := (*LearnError)(nil)
			if size <= 1e150 && (err != nil || len(m.L) != 25) || size >= 1e160 && (!errors.As(err, &refused) || refused.Reason != "no function is finite") ||
				err != nil && !errors.As(err, &refused) {
				t.Errorf("%s, targets of %g: %v, %v", name, size, m, err)
			}
		}
	}
}

// times is the map that multiplies d coordinates by a number.
func times(d int, x float64) []float64 {
	l := make([]float64, d*d)
	for c := range d {
		l[c*d+c] = x
	}
	return l
}
