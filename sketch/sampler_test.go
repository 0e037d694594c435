package sketch

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/internal/racetest"
)

// everySampler returns the samplers that need only data, with a number of workers.
func everySampler(workers int) []namedSampler {
	return []namedSampler{
		{"Uniform", Uniform{Points: 30}},
		{"ExactRLS", ExactRLS{}},
		{"TwoPass", TwoPass{Workers: workers}},
		{"RecursiveRLS", RecursiveRLS{Base: 20, Workers: workers}},
		{"SQUEAK", SQUEAK{Block: 50}},
		{"SQUEAK adaptive", SQUEAK{}},
		{"BLESS", BLESS{Workers: workers}},
		{"BLESSR", BLESSR{Workers: workers}},
		{"RPCholesky", RPCholesky{Workers: workers}},
	}
}

// checkDictionary checks the invariants of a Dictionary.
func checkDictionary(t rapid.TB, d *Dictionary, x kernel.Rows, lambda float64) {
	t.Helper()
	levels := slices.Concat(d.Path, []Level{d.Level})
	for h, l := range levels {
		if l.Len() != len(l.Weights) || l.Points.Len() != l.Len() {
			t.Fatalf("level %d: %d indices, %d weights, %d points", h, l.Len(), len(l.Weights), l.Points.Len())
		}
		if !reflect.DeepEqual(l.Points, x.Select(l.Indices)) {
			t.Fatalf("level %d: points are not the rows of the indices", h)
		}
		for j, i := range l.Indices {
			if i < 0 || i >= x.Len() || j > 0 && i <= l.Indices[j-1] {
				t.Fatalf("level %d: indices %v", h, l.Indices)
			}
			if !isPositive(l.Weights[j]) {
				t.Fatalf("level %d: weight %g", h, l.Weights[j])
			}
		}
		if h > 0 && h < len(d.Path) && l.Lambda >= levels[h-1].Lambda {
			t.Fatalf("level %d: λ = %g after %g", h, l.Lambda, levels[h-1].Lambda)
		}
	}
	if d.Len() == 0 || d.N != x.Len() || d.Lambda != lambda {
		t.Fatalf("%d points for n = %d at λ = %g", d.Len(), d.N, d.Lambda)
	}
}

// Dictionaries of all samplers keep their invariants on all kinds of rows, repeated
// ones included, for any λ, for one row and many. They are the same for any number of
// workers, and for a sequential source.
func TestSamplersOnAnyData(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{1, 2, 3, 10, 60, 150}).Draw(t, "n")
		seed := rapid.Uint64().Draw(t, "seed")
		lambda := math.Pow(10, float64(rapid.IntRange(-9, 4).Draw(t, "log λ")))
		x := kerneltest.Points(rand.New(rand.NewPCG(seed, 0)), n, 2)
		if rapid.Bool().Draw(t, "repeated rows") {
			for i := range n / 2 {
				copy(x.Row(i), x.Row(n-1))
			}
		}
		var rows kernel.Rows = x
		switch rapid.IntRange(0, 2).Draw(t, "type of rows") {
		case 1:
			rows = kernel.ConvertPoints[float32](x)
		case 2:
			rows = kernel.Sparse(x)
		}
		k := kerneltest.Gaussian(1)
		which := rapid.IntRange(0, len(everySampler(1))-1).Draw(t, "sampler")
		sample := func(workers int, src kernel.Source) *Dictionary {
			s := everySampler(workers)[which]
			d, err := s.Sample(background, k, src, lambda, rand.New(rand.NewPCG(seed, 1)))
			if err != nil {
				t.Fatalf("%s: %v", s.name, err)
			}
			return d
		}
		d := sample(1, kernel.FromRows(rows))
		checkDictionary(t, d, rows, lambda)
		if !reflect.DeepEqual(d, sample(3, kernel.FromRows(rows))) {
			t.Fatal("3 workers give another dictionary")
		}
		if !reflect.DeepEqual(d, sample(2, kerneltest.Sequential(rows))) {
			t.Fatal("a sequential source gives another dictionary")
		}
		for _, s := range must(d.Scores(background, k, kernel.FromRows(rows), 1)) {
			if !(s > 0 && s <= 1) {
				t.Fatalf("score %g", s)
			}
		}
	})
}

// At the ends of float64 there is a dictionary or an error, never a panic.
func TestExtremeLambda(t *testing.T) {
	racetest.Alone(t)
	x := kerneltest.Points(kerneltest.Seeded(t, 44), 30, 2)
	for _, s := range everySampler(1) {
		for _, lambda := range []float64{math.SmallestNonzeroFloat64, 1e-300, 1e300} {
			checkDictionary(t, must(s.Sample(background, kerneltest.Gaussian(1), kernel.FromRows(x), lambda, kerneltest.Seeded(t, 45))), x, lambda)
		}
		var parameter *ParameterError
		if _, err := s.Sample(background, kerneltest.Gaussian(1), kernel.FromRows(x), math.MaxFloat64, kerneltest.Seeded(t, 46)); !errors.As(err, &parameter) {
			t.Errorf("%s: λn overflows, but %v", s.name, err)
		}
	}
}

// Samplers read a sequential source as often as documented.
func TestPasses(t *testing.T) {
	x := kerneltest.Points(kerneltest.Seeded(t, 20), 3000, 2)
	for _, c := range []struct {
		namedSampler
		passes int
	}{{namedSampler{"Uniform", Uniform{}}, 1}, {namedSampler{"BLESS", BLESS{}}, 1}, {namedSampler{"BLESSR", BLESSR{}}, 1}, {namedSampler{"SQUEAK", SQUEAK{}}, 1}, {namedSampler{"TwoPass", TwoPass{}}, 3}} {
		src := kerneltest.Sequential(x)
		must(c.Sample(background, kerneltest.Gaussian(1), src, 0.01, kerneltest.Seeded(t, 21)))
		if src.Opened != c.passes || src.Closed != c.passes {
			t.Errorf("%s: %d passes opened, %d closed, want %d", c.name, src.Opened, src.Closed, c.passes)
		}
	}
}

// The estimate Σ A⁻¹ of n is unbiased for all samplers of a whole data set. For
// samplers by scores of a sample it is so to the accuracy of these.
func TestWeightsCountTheRows(t *testing.T) {
	racetest.Alone(t)
	const n, repeats = 200, 40
	x := kerneltest.Points(kerneltest.Seeded(t, 22), n, 2)
	for _, s := range everySampler(1) {
		var total, square float64
		for rep := range uint64(repeats) {
			d := must(s.Sample(background, kerneltest.Gaussian(0.5), kernel.FromRows(x), 3e-3, rand.New(rand.NewPCG(23, rep))))
			v := sum(d.InverseWeights())
			total, square = total+v/repeats, square+v*v/repeats
		}
		deviation := math.Sqrt(max(square-total*total, 0) / repeats)
		t.Logf("%-16s Σ 1/A = %.1f ± %.1f", s.name, total, deviation)
		if math.Abs(total-n) > 5*deviation+0.02*n {
			t.Errorf("%s: Σ 1/A = %.1f ± %.1f, want %d", s.name, total, deviation, n)
		}
	}
}

func TestFaults(t *testing.T) {
	x := kerneltest.Points(kerneltest.Seeded(t, 24), 40, 2)
	k, src := kerneltest.Gaussian(1), kernel.FromRows(x)
	linear := must(kernel.NewLinear(1))
	bad := kerneltest.Points(kerneltest.Seeded(t, 25), 40, 2)
	bad.Row(17)[1] = math.NaN()
	type call struct {
		k      kernel.Kernel
		src    kernel.Source
		lambda float64
	}
	parameter := func(name string) func(error) bool {
		return func(err error) bool {
			var e *ParameterError
			return errors.As(err, &e) && e.Parameter == name
		}
	}
	nan := func(err error) bool {
		var e *kernel.NonFiniteError
		return errors.As(err, &e) && e.Row == 17 && e.Col == 1
	}
	empty := func(err error) bool { return errors.As(err, new(*EmptyError)) }
	for _, s := range everySampler(1) {
		for what, c := range map[string]struct {
			call
			want func(error) bool
		}{
			"λ = 0":      {call{k, src, 0}, parameter("Lambda")},
			"λ < 0":      {call{k, src, -1}, parameter("Lambda")},
			"λ NaN":      {call{k, src, math.NaN()}, parameter("Lambda")},
			"λ Inf":      {call{k, src, math.Inf(1)}, parameter("Lambda")},
			"no rows":    {call{k, kernel.FromRows(x.Slice(0, 0)), 1}, empty},
			"wrong type": {call{k, kernel.FromRows(kernel.List[string]{"a"}), 1}, func(err error) bool { return errors.As(err, new(*kernel.TypeError)) }},
			"wrong dimension": {call{kerneltest.Gaussian(1, 1, 1), src, 1}, func(err error) bool {
				return errors.As(err, new(*kernel.DimensionError))
			}},
			"wrong dimension in order": {call{kerneltest.Gaussian(1, 1, 1), kerneltest.Sequential(x), 1}, func(err error) bool {
				return errors.As(err, new(*kernel.DimensionError))
			}},
		} {
			if _, err := s.Sample(background, c.k, c.src, c.lambda, kerneltest.Seeded(t, 26)); !c.want(err) {
				t.Errorf("%s, %s: error %v", s.name, what, err)
			}
		}
		if s.name == "Uniform" {
			continue // sees only 30 rows
		}
		for _, src := range []kernel.Source{kernel.FromRows(bad), kerneltest.Sequential(bad)} {
			if _, err := s.Sample(background, k, src, 1e-4, kerneltest.Seeded(t, 27)); !nan(err) {
				t.Errorf("%s: NaN gives error %v", s.name, err)
			}
		}
		canceled, cancel := context.WithCancel(background)
		cancel()
		if _, err := s.Sample(canceled, k, kerneltest.Sequential(x), 1e-4, kerneltest.Seeded(t, 27)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: canceled, but %v", s.name, err)
		}
	}
	for _, c := range []struct {
		s    Sampler
		k    kernel.Kernel
		want func(error) bool
	}{
		{BLESS{Step: 1}, k, parameter("Step")},
		{BLESS{Step: 0.5}, k, parameter("Step")},
		{BLESSR{Step: math.NaN()}, k, parameter("Step")},
		{BLESS{Oversampling: -1}, k, parameter("Oversampling")},
		{BLESS{Uniform: math.Inf(1)}, k, parameter("Uniform")},
		{BLESS{MaxPoints: -1}, k, parameter("MaxPoints")},
		{BLESS{}, linear, parameter("Bound")},
		{BLESSR{}, linear, parameter("Bound")},
		{TwoPass{}, linear, parameter("Bound")},
		{Uniform{}, linear, parameter("Bound")},
		{Uniform{Points: -1}, k, parameter("Points")},
		{RecursiveRLS{Base: -1}, k, parameter("Base")},
		{SQUEAK{Block: -1}, k, parameter("Block")},
		{ExactRLS{Oversampling: math.NaN()}, k, parameter("Oversampling")},
		{PosteriorVariance{}, k, func(err error) bool { return errors.As(err, new(*kernel.ShapeError)) }},
	} {
		if _, err := c.s.Sample(background, c.k, src, 1e-2, kerneltest.Seeded(t, 28)); !c.want(err) {
			t.Errorf("%T%+v: error %v", c.s, c.s, err)
		}
	}
}

// A kernel without bound needs the field Bound, and works with it.
func TestUnboundedKernel(t *testing.T) {
	x := kerneltest.Points(kerneltest.Seeded(t, 29), 200, 3)
	k := must(kernel.NewLinear(1))
	for _, s := range []Sampler{BLESS{Bound: 25}, BLESSR{Bound: 25}, TwoPass{Bound: 25}} {
		d := must(s.Sample(background, k, kernel.FromRows(x), 1e-3, kerneltest.Seeded(t, 30)))
		checkDictionary(t, d, x, 1e-3)
		if d.EffectiveDimension < 2 || d.EffectiveDimension > 6 {
			t.Errorf("%T: effective dimension %g of a kernel of rank 3", s, d.EffectiveDimension)
		}
	}
}

// Rows where the kernel is 0 have score 0, and there is still a dictionary.
func TestZeroKernel(t *testing.T) {
	x := kernel.NewPoints[float64](50, 2, nil)
	k := must(kernel.NewLinear(1))
	for _, s := range []Sampler{ExactRLS{}, BLESS{Bound: 1}, BLESSR{Bound: 1}, SQUEAK{}, RecursiveRLS{}} {
		d := must(s.Sample(background, k, kernel.FromRows(x), 0.1, kerneltest.Seeded(t, 31)))
		checkDictionary(t, d, x, 0.1)
		for _, v := range must(d.Scores(background, k, kernel.FromRows(x), 1)) {
			if v != 0 {
				t.Errorf("%T: score %g", s, v)
			}
		}
	}
}

// Merging repeated draws, 1/A = Σ 1/A_dup, changes no score.
func TestMergingChangesNoScore(t *testing.T) {
	x := kerneltest.Points(kerneltest.Seeded(t, 35), 60, 2)
	k := kerneltest.Gaussian(1)
	drawn, weights := []int{3, 3, 9, 3, 20, 9}, []float64{0.1, 0.1, 0.3, 0.1, 0.7, 0.3}
	apart := must(NewGenerator(k, x.Select(drawn), weights, 1e-3, 60))
	merged := must(NewGenerator(k, x.Select([]int{3, 9, 20}), []float64{0.1 / 3, 0.15, 0.7}, 1e-3, 60))
	requireClose(t, "scores", must(merged.Scores(background, kernel.FromRows(x), 1)), must(apart.Scores(background, kernel.FromRows(x), 1)), 1e-8)
}

// This compares the two conventions of λ. One is (5.3) with λ per sample, the other the
// variance of (7.1) with noise ξ² = λn, written out.
func TestRidgeConventions(t *testing.T) {
	const n = 40
	x := kerneltest.Points(kerneltest.Seeded(t, 36), n, 2)
	k, noise := kerneltest.Gaussian(1), 0.3
	lambda := LambdaOfNoise(noise, n)
	if math.Abs(Ridge(lambda, n)-noise) > 1e-16 {
		t.Errorf("ξ² = %g becomes %g", noise, Ridge(lambda, n))
	}
	sp := newSpectrum(k, x)
	variances := make([]float64, n) // k(x,x) − k(x)ᵀ(K + ξ²I)⁻¹k(x), by the spectrum
	for i := range variances {
		variances[i] = 1
		for q, s := range sp.s {
			u := sp.u.At(i, q)
			variances[i] -= u * u * s * s / (s + noise)
		}
	}
	scores := must(LeverageScores(background, k, kernel.FromRows(x), lambda))
	for i, v := range variances {
		requireClose(t, "score", []float64{scores[i], scores[i] * noise}, []float64{ScoreOfVariance(v, noise), v}, 1e-10)
	}
	byVariance := must(PosteriorVariance{Variances: variances, Oversampling: 3}.Sample(background, k, kernel.FromRows(x), lambda, kerneltest.Seeded(t, 37)))
	byScore := must(ExactRLS{}.Sample(background, k, kernel.FromRows(x), lambda, kerneltest.Seeded(t, 37)))
	if !slices.Equal(byVariance.Indices, byScore.Indices) {
		t.Errorf("by variance %v, by score %v", byVariance.Indices, byScore.Indices)
	}
	requireClose(t, "weights", byVariance.Weights, byScore.Weights, 1e-9)
}

// Counts are that many rows. One arm pulled n_i times is n_i equal rows, of which the
// dictionary knows the sum Σ A⁻¹ in the mean.
func TestPosteriorVarianceCounts(t *testing.T) {
	x := kerneltest.Points(kerneltest.Seeded(t, 38), 3, 1)
	s := PosteriorVariance{Variances: []float64{0.01, 0.002, 0.05}, Counts: []int{5, 40, 1}, Oversampling: 2}
	const repeats = 20_000
	rng := kerneltest.Seeded(t, 39)
	var total [3]float64
	for range repeats {
		d := must(s.Sample(background, kerneltest.Gaussian(1), kernel.FromRows(x), LambdaOfNoise(0.4, 46), rng))
		if d.N != 46 {
			t.Fatalf("N = %d", d.N)
		}
		for j, i := range d.Indices {
			total[i] += 1 / d.Weights[j] / repeats
		}
	}
	// P(none) = Π(1 − p_i) adds one draw of weight ∝ score, see Include.
	p := []float64{2 * 5 * 0.01 / 0.4, 2 * 40 * 0.002 / 0.4, 2 * 0.05 / 0.4}
	none := (1 - p[0]) * (1 - p[1]) * (1 - p[2])
	for i, want := range []float64{5, 40, 1} {
		want *= 1 + none
		if math.Abs(total[i]-want) > 0.05*want {
			t.Errorf("arm %d stands for %.2f pulls, want %.2f", i, total[i], want)
		}
	}
}

// TestSqueakLastResort checks that one point is drawn if a block leaves none, which is
// frequent at q₂d_eff = ½. That makes Σ 1/A, which is n on average without it, slightly
// larger.
func TestSqueakLastResort(t *testing.T) {
	racetest.Alone(t)
	const n, draws = 200, 800
	x := kernel.NewPoints[float64](n, 1, nil)
	for i := range n {
		x.Row(i)[0] = float64(i) / n
	}
	k, err := kernel.NewGaussian(5)
	if err != nil {
		t.Fatal(err)
	}
	total := 0.0
	for seed := range uint64(draws) {
		d, err := SQUEAK{Block: 20, Oversampling: 0.5}.Sample(context.Background(), k, kernel.FromRows(x), 1, rand.New(rand.NewPCG(seed, 3)))
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range d.InverseWeights() {
			total += a / draws
		}
	}
	t.Logf("Σ 1/A is %.3g n on average", total/n)
	if total < 0.9*n || total > 1.6*n {
		t.Errorf("Σ 1/A is %.3g on average, want %d and not much more", total, n)
	}
}

func TestNilKernelAndSource(t *testing.T) {
	x := kernel.FromRows(kerneltest.Points(kerneltest.Seeded(t, 1), 5, 2))
	for _, s := range everySampler(1) {
		for _, c := range []struct {
			k   kernel.Kernel
			src kernel.Source
		}{{nil, x}, {kerneltest.Gaussian(1), nil}} {
			var empty *EmptyError
			if _, err := s.Sample(context.Background(), c.k, c.src, 0.1, kerneltest.Seeded(t, 1)); !errors.As(err, &empty) {
				t.Errorf("%s: %v", s.name, err)
			}
		}
	}
	var empty *EmptyError
	if _, err := NewGenerator(nil, nil, nil, 0.1, 1); !errors.As(err, &empty) {
		t.Error(err)
	}
	g := must(NewGenerator(kerneltest.Gaussian(1), nil, nil, 0.1, 1))
	if _, err := g.Scores(context.Background(), nil, 1); !errors.As(err, &empty) {
		t.Error(err)
	}
}

// One path gives the scores of many λ, each as near to the exact ones as a path to that λ does,
// from fewer points at a larger λ.
func TestScoresOfManyLambda(t *testing.T) {
	const n = 600
	x := kerneltest.Points(kerneltest.Seeded(t, 77), n, 3)
	k, src := kerneltest.Gaussian(1), kernel.FromRows(x)
	lambdas := []float64{0.3, 1e-1, 1e-2, 1e-3}
	for _, s := range []namedSampler{{"BLESS", BLESS{}}, {"BLESS-R", BLESSR{}}, {"RecursiveRLS", RecursiveRLS{}}} {
		d := must(s.Sample(background, k, src, 1e-3, rand.New(rand.NewPCG(77, 1))))
		before := 0
		for _, lambda := range lambdas {
			exact := must(LeverageScores(background, k, src, lambda))
			near := 0
			for i, v := range must(d.ScoresAt(background, k, src, lambda, 1)) {
				if v >= exact[i]/2 && v <= 2*exact[i] {
					near++
				}
			}
			if near < n*9/10 {
				t.Errorf("%s, λ = %g: %d of %d scores within a factor of 2", s.name, lambda, near, n)
			}
			m := d.At(lambda).Len()
			if m < before || d.Path != nil && lambda > 0.05 && m > d.Len()/3 {
				t.Errorf("%s, λ = %g: %d points, %d at the λ before and %d at the end", s.name, lambda, m, before, d.Len())
			}
			before = m
		}
		if got := must(d.ScoresAt(background, k, src, d.Lambda, 1)); !slices.Equal(got, must(d.Scores(background, k, src, 1))) {
			t.Errorf("%s: other scores at its own λ", s.name)
		}
	}
}
