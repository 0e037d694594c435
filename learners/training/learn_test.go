package training

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/dataset"
)

// With 5 relevant inputs of 40, learned length scales find them, and the error falls to half of
// that of one length scale at most.
func TestLearnFindsRelevantInputs(t *testing.T) {
	const d = 40
	train := relevant(t, 300, d, 0.1, stream.New(1), nil)
	test := relevant(t, 500, d, 0, stream.New(2), nil)
	a, err := Find("falkon")
	if err != nil {
		t.Fatal(err)
	}
	p := problemOf(t, train)
	p.Dim = d
	rmse := func(v Values) float64 {
		if err := a.Learn(t.Context(), v, train, nil, &p, 1, 0); err != nil {
			t.Fatal(err)
		}
		m := fitted(t, a, v, p, &Data{Train: train})
		return learners.RMSE(outputs(t, m, &Data{Train: test}), test.Targets(), 1)
	}
	one := rmse(Values{"centers": "300"})
	learned := rmse(Values{"centers": "300", "length-scale": "auto"})
	if !(learned < one/2) {
		t.Errorf("the error is %.3g with learned length scales and %.3g with one", learned, one)
	}
	var names []string
	for c := range 5 {
		names = append(names, "x"+num(float64(c+1)))
	}
	idle := p.Learned.Idle(names)
	if len(idle) < 30 || slices.ContainsFunc(idle, func(s string) bool { return strings.HasPrefix(s, "x") }) {
		t.Errorf("inputs without effect are %v, of relevance %.2g", idle, p.Learned.Relevance)
	}
	if notes := p.Learned.Notes(names); len(notes) != 2 || !strings.HasPrefix(notes[0], "learned 40 length scales from 300 rows") {
		t.Errorf("notes %q", notes)
	}
}

// Rows of the weight 0 have no effect on length scales, and whole weights are copies. λ is that
// of the rows that count.
func TestLearnFromTheRowsThatCount(t *testing.T) {
	const n = 120
	train := relevant(t, n, 6, 0.1, stream.New(6), nil)
	weights, y := make([]float64, n), slices.Clone(train.Targets())
	var copies []int
	for i := range n {
		weights[i] = float64(i % 4)
		copies = append(copies, slices.Repeat([]int{i}, i%4)...)
		if i%4 == 0 {
			y[i] = 1e3 * float64(i%8)
		}
	}
	wrong, err := data.NewMemory(train.Rows(), y, 1)
	if err != nil {
		t.Fatal(err)
	}
	alone, err := data.Subset(train, copies)
	if err != nil {
		t.Fatal(err)
	}
	p := problemOf(t, train)
	learn := func(src data.Source, weights []float64, rows int) *Learned {
		p.Rows = rows
		l, err := Learn(t.Context(), "gaussian", src, weights, p, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	want := learn(alone, nil, len(copies))
	for name, got := range map[string]*Learned{"weights": learn(train, weights, len(copies)), "wrong rows": learn(wrong, weights, len(copies))} {
		if !slices.Equal(got.Lengths, want.Lengths) || got.Ridge != want.Ridge {
			t.Errorf("%s: %v with ridge %v, and of copies %v with ridge %v", name, got.Lengths, got.Ridge, want.Lengths, want.Ridge)
		}
	}
	// In a problem of other rows, λ is still that of the rows that count.
	if got, want := learn(train, weights, n).Ridge/n, want.Ridge/float64(len(copies)); math.Abs(got-want) > 1e-12*want {
		t.Errorf("λ is %v, and of copies %v", got, want)
	}
}

// Of many rows a random sample is fitted. No bit depends on the number of workers.
func TestLearnFromManyRows(t *testing.T) {
	const n = 600
	train := relevant(t, n, 6, 0.3, stream.New(4), nil)
	p := problemOf(t, train)
	learn := func(workers int) *Learned {
		l := learning{start: 100, fits: []learnFit{{200, 30}, {300, 5}}, name: "matern52", seed: 1, workers: workers}
		out, err := l.learn(t.Context(), train, data.NewCopies(nil, train.Len()), p)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	l, again := learn(1), learn(3)
	if l.Rows != 300 {
		t.Errorf("%d rows", l.Rows)
	}
	if r := l.Relevance[5]; r > 0.1 {
		t.Errorf("the irrelevant input has relevance %v of %v", r, l.Relevance)
	}
	if !slices.Equal(l.Lengths, again.Lengths) || l.Ridge != again.Ridge {
		t.Errorf("with three workers %v, want %v", again, l)
	}
}

// A fit to 80 rows misses some of five relevant inputs among 40. The fit to 300 rows must find
// them. Without a limit on the length scales that it starts from, five of 15 stay lost here, and
// 10 of 40 on eight seeds.
func TestLearnFindsInputsMissedBefore(t *testing.T) {
	for seed := range uint64(3) {
		train := relevant(t, 300, 40, 0.1, stream.New(seed+10), nil)
		l := learning{start: 80, fits: []learnFit{{300, 30}}, name: "gaussian", seed: seed}
		out, err := l.learn(t.Context(), train, data.NewCopies(nil, train.Len()), problemOf(t, train))
		if err != nil {
			t.Fatal(err)
		}
		for c, r := range out.Relevance[:5] {
			if r < Effect {
				t.Errorf("seed %d: input %d has the relevance %.2g", seed, c+1, r)
			}
		}
	}
}

// The last fit has up to 2000 rows. One iteration of each, with a quarter of the rows, is
// enough to tell.
func TestLearnedRows(t *testing.T) {
	fits := slices.Clone(learnFits)
	if last := fits[len(fits)-1].rows; last != 2000 {
		t.Errorf("the last fit has up to %d rows", last)
	}
	for i := range fits {
		fits[i].iterations = 1
		fits[i].rows /= 4
	}
	racetest.Alone(t)
	for n, want := range map[int]int{200: 200, 300: 300, 800: 500} {
		train := relevant(t, n, 5, 0.3, stream.New(4), nil)
		l := learning{start: learnStart, fits: fits, name: "gaussian", seed: 1}
		out, err := l.learn(t.Context(), train, data.NewCopies(nil, train.Len()), problemOf(t, train))
		if err != nil {
			t.Fatal(err)
		}
		if out.Rows != want {
			t.Errorf("of %d rows %d are used, want %d", n, out.Rows, want)
		}
	}
}

// Kernel ridge regression with the learned length scales and λ is the posterior mean of the
// process.
func TestLearnedRidgeIsTheNoise(t *testing.T) {
	train := relevant(t, 150, 6, 0.2, stream.New(5), nil)
	p := problemOf(t, train)
	a, err := Find("krr")
	if err != nil {
		t.Fatal(err)
	}
	v := Values{"length-scale": "auto"}
	if err := a.Learn(t.Context(), v, train, nil, &p, 1, 0); err != nil {
		t.Fatal(err)
	}
	got := outputs(t, fitted(t, a, v, p, &Data{Train: train}), &Data{Train: train})
	k, err := kernel.NewGaussian(p.Learned.Lengths...)
	if err != nil {
		t.Fatal(err)
	}
	process, err := gp.NewExact(k, gp.Data{X: train.Rows(), Y: train.Targets()}, gp.Options{NoiseVariance: p.Learned.Ridge})
	if err != nil {
		t.Fatal(err)
	}
	want, _, err := process.Predict(train.Rows())
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range got {
		if math.Abs(f-want[i]) > 1e-8 {
			t.Fatalf("row %d has %v, want %v", i, f, want[i])
		}
	}
	// The evidence has a maximum there.
	at := func(ridge, factor float64) float64 {
		lengths := slices.Clone(p.Learned.Lengths)
		lengths[0] *= factor
		k, err := kernel.NewGaussian(lengths...)
		if err != nil {
			t.Fatal(err)
		}
		// The best variance of the function has a closed form, yᵀA⁻¹y/n.
		g, err := gp.NewExact(k, gp.Data{X: train.Rows(), Y: centred(train.Targets())}, gp.Options{NoiseVariance: ridge})
		if err != nil {
			t.Fatal(err)
		}
		n := float64(train.Len())
		e := g.LogEvidence()
		half, err := gp.NewExact(k, gp.Data{X: train.Rows(), Y: make([]float64, train.Len())}, gp.Options{NoiseVariance: ridge})
		if err != nil {
			t.Fatal(err)
		}
		none := half.LogEvidence() // −½ log det A − ½n log 2π
		return none - n/2*math.Log(2*(none-e)/n)
	}
	best := at(p.Learned.Ridge, 1)
	for _, c := range [][2]float64{{1.3, 1}, {0.7, 1}, {1, 1.1}, {1, 0.9}} {
		if v := at(c[0]*p.Learned.Ridge, c[1]); v > best {
			t.Errorf("the evidence is %v with λ times %v and the first length scale times %v, and %v as learned", v, c[0], c[1], best)
		}
	}
}

func centred(y []float64) []float64 {
	mean := 0.0
	for _, v := range y {
		mean += v / float64(len(y))
	}
	out := make([]float64, len(y))
	for i, v := range y {
		out[i] = v - mean
	}
	return out
}

// Relevance keeps the proportions of the learned length scales, and the median distance in
// units of a length scale.
func TestRelevance(t *testing.T) {
	train := relevant(t, 200, 6, 0.1, stream.New(6), nil)
	p := problemOf(t, train)
	a, err := Find("sgdrf")
	if err != nil {
		t.Fatal(err)
	}
	v := Values{"relevance": "learned"}
	if err := a.Learn(t.Context(), v, train, nil, &p, 1, 0); err != nil {
		t.Fatal(err)
	}
	lengths, err := reader{&a, v}.lengths(p)
	if err != nil {
		t.Fatal(err)
	}
	divided := make([]float64, 0, 1200)
	for i := range 200 {
		for c, x := range train.Rows().(*kernel.Points[float64]).Row(i) {
			divided = append(divided, x/lengths[c])
			if ratio := lengths[c] / lengths[0] / (p.Learned.Lengths[c] / p.Learned.Lengths[0]); math.Abs(ratio-1) > 1e-12 {
				t.Errorf("input %d has length scale %v, in another proportion than %v", c, lengths, p.Learned.Lengths)
			}
		}
	}
	median, err := MedianDistance(t.Context(), kernel.FromRows(kernel.NewPoints(200, 6, divided)), 1)
	if err != nil || math.Abs(median-1) > 1e-9 {
		t.Errorf("the median distance is %v length scales (%v), want 1", median, err)
	}
	v["length-scale"] = "1,2,3,4,5,6"
	if _, err := a.Estimator(v, p); err == nil || !strings.Contains(err.Error(), "one number, median or auto where relevance is learned") {
		t.Errorf("a list with learned relevance: %v", err)
	}
}

// Classes and sparse rows are learned too.
func TestLearnFromClasses(t *testing.T) {
	rng := stream.New(8)
	var b strings.Builder
	for range 300 {
		x := rng.NormFloat64()
		b.WriteString([]string{"0", "1", "2"}[min(int(math.Abs(2*x)), 2)])
		b.WriteString(" 1:" + num(x) + " 2:" + num(rng.NormFloat64()) + "\n")
	}
	table := openAs(t, "data.libsvm", b.String(), dataset.Options{})
	d, err := Prepare(t.Context(), table, Split{}, data.EncodingOptions{Task: data.Classification})
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewProblem(t.Context(), d, 1)
	if err != nil {
		t.Fatal(err)
	}
	l, err := Learn(t.Context(), "gaussian", d.Train, nil, p, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	if p.Outputs != 3 || l.Relevance[0] != 1 || l.Relevance[1] > 0.2 {
		t.Errorf("%d outputs, relevance %v", p.Outputs, l.Relevance)
	}
}

func TestLearnRefuses(t *testing.T) {
	train := relevant(t, 20, 6, 0.1, stream.New(6), nil)
	p := problemOf(t, train)
	for kernel, want := range map[string]string{
		"linear":             "the kernel is linear; use one of [gaussian",
		"rational-quadratic": "the kernel is rational-quadratic",
	} {
		_, err := Learn(t.Context(), kernel, train, nil, p, 1, 0)
		if refused := (*LearnError)(nil); !errors.As(err, &refused) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", kernel, err)
		}
	}
	wide, err := data.FromSlices([][]float64{make([]float64, learnInputs+1)}, []float64{1})
	if err != nil {
		t.Fatal(err)
	}
	none, err := data.FromSlices([][]float64{{1}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for want, src := range map[string]data.Source{"there are 2001 inputs, more than 2000": wide, "there is no target": none} {
		if _, err := Learn(t.Context(), "gaussian", src, nil, p, 1, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Learn(ctx, "gaussian", train, nil, p, 1, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
