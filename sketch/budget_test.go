package sketch

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/sketch/sketchtest"
)

// budgeted returns the samplers with a path, limited to m points and c candidates.
func budgeted(m, c int) []namedSampler {
	return []namedSampler{{"BLESS", BLESS{MaxPoints: m, MaxCandidates: c}}, {"BLESSR", BLESSR{MaxPoints: m, MaxCandidates: c}}}
}

func matern(lengthScale float64) kernel.Kernel { return must(kernel.NewMatern52(lengthScale)) }

func TestMaxPointsEndsThePath(t *testing.T) {
	racetest.Alone(t)
	k, x := susy(1000, 32)
	src := kernel.FromRows(x)
	for i, s := range budgeted(100, 0) {
		full := must(budgeted(0, 0)[i].Sample(background, k, src, 1e-3, kerneltest.Seeded(t, 33)))
		short := must(s.Sample(background, k, src, 1e-3, kerneltest.Seeded(t, 33)))
		h := len(short.Path) - 1
		if short.Len() < 95 || short.Len() > 100 || short.Lambda <= 1e-3 || len(short.Path) >= len(full.Path) {
			t.Errorf("%s, budget 100: %d points at λ = %g, %d levels of %d", s.name, short.Len(), short.Lambda, len(short.Path), len(full.Path))
		}
		if !reflect.DeepEqual(short.Path[:h], full.Path[:h]) {
			t.Errorf("%s: the levels before the last are others with a budget", s.name)
		}
		if last := short.Path[h]; !(last.Lambda >= full.Path[h].Lambda && last.Lambda < full.Path[h-1].Lambda) || !reflect.DeepEqual(last, short.Level) {
			t.Errorf("%s: the last level is of λ = %g, between %g and %g", s.name, last.Lambda, full.Path[h].Lambda, full.Path[h-1].Lambda)
		}
		if short.Rows >= full.Rows || short.Rows < short.Len() || full.Rows > 1000 {
			t.Errorf("%s: %d rows read, %d without a budget", s.name, short.Rows, full.Rows)
		}
		wide := must(budgeted(full.Len()+60, 0)[i].Sample(background, k, src, 1e-3, kerneltest.Seeded(t, 33)))
		if !reflect.DeepEqual(wide, full) {
			t.Errorf("%s: a budget that does not bind gives another dictionary", s.name)
		}
	}
}

// For any data, budget and limit of candidates, the invariants of a dictionary hold and
// no limit is exceeded. A source in order, several goroutines and an equal stream give
// the same bits.
func TestBudgetsOnAnyData(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{1, 2, 10, 60, 150, 400}).Draw(t, "n")
		seed := rapid.Uint64().Draw(t, "seed")
		lambda := math.Pow(10, float64(rapid.IntRange(-9, 4).Draw(t, "log λ")))
		most := rapid.SampledFrom([]int{1, 2, 7, 40, 150, 200, 210}).Draw(t, "MaxPoints")
		candidates := rapid.SampledFrom([]int{0, 1, 20, 80, 500}).Draw(t, "MaxCandidates")
		which := rapid.IntRange(0, 1).Draw(t, "sampler")
		x := kerneltest.Points(rand.New(rand.NewPCG(seed, 0)), n, 2)
		switch rapid.IntRange(0, 2).Draw(t, "rows") {
		case 1: // all equal
			for i := range n {
				copy(x.Row(i), x.Row(0))
			}
		case 2: // a blob and some others
			for i := range n / 2 {
				for c := range 2 {
					x.Row(i)[c] *= 0.01
				}
			}
		}
		s := budgeted(most, candidates)[which]
		sample := func(src kernel.Source) *Dictionary {
			return must(s.Sample(background, kerneltest.Gaussian(0.5), src, lambda, rand.New(rand.NewPCG(seed, 1))))
		}
		d := sample(kernel.FromRows(x))
		if !(d.Lambda >= lambda) {
			t.Fatalf("λ = %g where %g was asked for", d.Lambda, lambda)
		}
		checkDictionary(t, d, x, d.Lambda)
		if d.Len() > most || d.Rows < d.Len() || d.Rows > n {
			t.Fatalf("%d points for a budget of %d, %d rows read", d.Len(), most, d.Rows)
		}
		if d.Lambda > lambda && float64(d.Len()) < full*float64(most)-1 {
			t.Fatalf("the path ends at λ = %g with %d of %d points", d.Lambda, d.Len(), most)
		}
		if candidates > 0 && d.Rows > candidates {
			t.Fatalf("%d rows read with a limit of %d", d.Rows, candidates)
		}
		for range 2 {
			if !reflect.DeepEqual(d, sample(kernel.FromRows(x))) {
				t.Fatal("an equal stream gives another dictionary")
			}
		}
		if !reflect.DeepEqual(d, sample(kerneltest.Sequential(x))) {
			t.Fatal("a sequential source gives another dictionary")
		}
	})
}

// A tiny λ cannot be reached, and the budget is filled to at least 95 %. A huge λ needs
// one point or two.
func TestBudgetAtTheEnds(t *testing.T) {
	x := sketchtest.Crowded(2000, kerneltest.Seeded(t, 60))
	for _, s := range budgeted(64, 0) {
		d := must(s.Sample(background, matern(0.5), kernel.FromRows(x), 1e-12, kerneltest.Seeded(t, 61)))
		if d.Len() < 61 || d.Len() > 64 || d.Lambda < 1e-5 {
			t.Errorf("%s: %d points at λ = %g", s.name, d.Len(), d.Lambda)
		}
		d = must(s.Sample(background, matern(0.5), kernel.FromRows(x), 1e3, kerneltest.Seeded(t, 61)))
		if d.Len() > 2 || d.Lambda != 1e3 {
			t.Errorf("%s: %d points at λ = %g", s.name, d.Len(), d.Lambda)
		}
	}
}

// At the λ that a budget reports, the sampler without a budget draws as many points, on
// average.
func TestBudgetLambda(t *testing.T) {
	racetest.Alone(t)
	const n, most, repeats = 1500, 120, 12
	_, su := susy(n, 62)
	for _, c := range []struct {
		name string
		k    kernel.Kernel
		x    *kernel.Points[float64]
	}{{"susy", kerneltest.Gaussian(4), su}, {"crowded", matern(0.5), sketchtest.Crowded(n, kerneltest.Seeded(t, 63))}} {
		for i, s := range budgeted(most, 0) {
			var points, sizes, lambdas float64
			for rep := range uint64(repeats) {
				d := must(s.Sample(background, c.k, kernel.FromRows(c.x), 1e-9, rand.New(rand.NewPCG(64, rep))))
				points, lambdas = points+float64(d.Len())/repeats, lambdas+math.Log(d.Lambda)/repeats
			}
			for rep := range uint64(repeats) {
				d := must(budgeted(0, 0)[i].Sample(background, c.k, kernel.FromRows(c.x), math.Exp(lambdas), rand.New(rand.NewPCG(65, rep))))
				sizes += float64(d.Len()) / repeats
			}
			t.Logf("%-7s %-6s budget %d: %.1f points at λ = %.2g, where no budget gives %.1f", c.name, s.name, most, points, math.Exp(lambdas), sizes)
			if math.Abs(sizes/points-1) > 0.12 {
				t.Errorf("%s, %s: out of band", c.name, s.name)
			}
		}
	}
}

// If the number of draws is a power of λ, the λ that a level reaches is the one that asks for
// its draws.
func TestReached(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 81))
	for range 1000 {
		power, walked := 0.1+rng.Float64(), math.Exp(-10*rng.Float64()) // walked is λ_{h−1}
		ask := func(lambda float64) float64 { return 100 * math.Pow(lambda, -power) }
		goal := walked * math.Exp(-6*rng.Float64()-0.01)
		end := walked * math.Pow(goal/walked, 0.06+0.88*rng.Float64())
		before := &drawn{want: ask(walked), got: ask(walked)}
		before.Lambda, before.Indices = walked, make([]int, 50)
		level := &drawn{want: ask(goal), got: ask(end)}
		p := &path{lambdas: []float64{walked, goal}}
		if got := p.reached(1, before, level); math.Abs(math.Log(got/end)) > 1e-9 || got < goal*(1-1e-12) {
			t.Errorf("λ = %g from %g to %g, want %g", got, walked, goal, end)
		}
		level.got = level.want
		if got := p.reached(1, before, level); got != goal {
			t.Errorf("a whole draw reaches %g, want %g", got, goal)
		}
	}
}

// Weights count the rows without bias when a budget ends the path, and when few rows
// are candidates.
func TestBudgetWeightsCountTheRows(t *testing.T) {
	racetest.Alone(t)
	const n, repeats = 400, 400
	x := sketchtest.Crowded(n, kerneltest.Seeded(t, 66))
	half := func(d *Dictionary) (all, part float64) {
		for j, w := range d.InverseWeights() {
			all += w
			if d.Indices[j] < n/2 {
				part += w
			}
		}
		return all, part
	}
	for _, candidates := range []int{0, 120} {
		for _, s := range budgeted(30, candidates) {
			var all, part, square float64
			for rep := range uint64(repeats) {
				a, p := half(must(s.Sample(background, matern(0.5), kernel.FromRows(x), 1e-9, rand.New(rand.NewPCG(67, rep)))))
				all, part, square = all+a/repeats, part+p/repeats, square+a*a/repeats
			}
			deviation := math.Sqrt(max(square-all*all, 0) / repeats)
			t.Logf("%-6s %3d candidates: Σ 1/A = %.1f ± %.1f, %.1f of the first half", s.name, candidates, all, deviation, part)
			if math.Abs(all-n) > 4*deviation+0.02*n || math.Abs(part-n/2) > 4*deviation+0.02*n {
				t.Errorf("%s: Σ 1/A = %.1f ± %.1f, want %d", s.name, all, deviation, n)
			}
		}
	}
}

// In a log of 20,000 trials that crowd around one point, less than a tenth of the rows
// fill a budget of 192 points. The dictionary reports how many rows it read.
func TestBudgetReadsFewRows(t *testing.T) {
	racetest.Alone(t)
	const n, most, candidates = 20_000, 192, 1900
	x := sketchtest.Crowded(n, kerneltest.Seeded(t, 71))
	for _, s := range budgeted(most, candidates) {
		d := must(s.Sample(background, matern(0.5), kernel.FromRows(x), 1e-6, kerneltest.Seeded(t, 72)))
		t.Logf("%s: %d points at λ = %.2g, d_eff %.1f, %d of %d rows, %d levels", s.name, d.Len(), d.Lambda, d.EffectiveDimension, d.Rows, n, len(d.Path))
		if d.Rows >= n/10 || d.Len() < 183 || d.Len() > most {
			t.Errorf("%s: %d points from %d rows", s.name, d.Len(), d.Rows)
		}
	}
	rows := newLine(n)
	k, _ := counting(1e-3)
	d := must(BLESS{MaxPoints: most, MaxCandidates: candidates}.Sample(background, k, kernel.FromRows(rows), 1e-6, kerneltest.Seeded(t, 73)))
	if touched := rows.different(); touched != d.Rows {
		t.Errorf("%d rows were selected, %d reported", touched, d.Rows)
	}
}

// On uneven data, the Nyström approximation with points of BLESS is better than with as
// many uniform points, on average and in the worst row. This holds also if candidates
// are limited.
func TestBudgetBeatsUniform(t *testing.T) {
	racetest.Alone(t)
	const n, most = 4000, 200
	seeds := float64(racetest.Size(1, 5))
	rng := kerneltest.Seeded(t, 74)
	blobs, _ := sketchtest.Blobs(n, rng)
	for _, c := range []struct {
		name string
		k    kernel.Kernel
		x    *kernel.Points[float64]
	}{{"crowded", matern(0.5), sketchtest.Crowded(n, rng)}, {"blobs", kerneltest.Gaussian(1), blobs}} {
		residuals := func(s Sampler) (mean, largest float64) {
			for seed := range uint64(seeds) {
				d := must(s.Sample(background, c.k, kernel.FromRows(c.x), 1e-9, rand.New(rand.NewPCG(75, seed))))
				e := must(NewEmbedding(c.k, d.Points, 0, 1))
				z, residual := make([]float64, n*e.Rank()), make([]float64, n)
				if err := e.Apply(background, z, residual, kernel.FromRows(c.x), 0); err != nil {
					t.Fatal(err)
				}
				mean, largest = mean+sum(residual)/n/seeds, largest+slices.Max(residual)/seeds
			}
			return mean, largest
		}
		mean, largest := residuals(Uniform{Points: most})
		t.Logf("%-7s uniform               mean residual %.4f, largest %.3f", c.name, mean, largest)
		for _, candidates := range []int{0, 1500} {
			for _, s := range append(budgeted(most, candidates), namedSampler{"RPCholesky", RPCholesky{Points: most, Rows: candidates}}) {
				m, l := residuals(s)
				t.Logf("%-7s %-6s %4d candidates mean residual %.4f, largest %.3f", c.name, s.name, candidates, m, l)
				if m >= mean || l >= largest {
					t.Errorf("%s, %s: no better than uniform", c.name, s.name)
				}
			}
		}
	}
}
