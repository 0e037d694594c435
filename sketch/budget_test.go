package sketch

import (
	"errors"
	"fmt"
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

// filling are budgeted and BLESS as learners use it.
func filling(m, c int) []namedSampler {
	return append(budgeted(m, c), namedSampler{"BLESS, leaping", BLESS{MaxCandidates: c}.Budget(m)})
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
		if same := must(full.Truncate(full.Len())); same != full {
			t.Error("Truncate changed a dictionary within the budget")
		}
		if cut := must(full.Truncate(100)); cut.Len() > 100 || !reflect.DeepEqual(cut.Level, full.Path[len(cut.Path)-1]) || full.Path[len(cut.Path)].Len() <= 100 {
			t.Errorf("%s: Truncate gives %d points", s.name, cut.Len())
		}
		wide := must(budgeted(full.Len()+60, 0)[i].Sample(background, k, src, 1e-3, kerneltest.Seeded(t, 33)))
		if !reflect.DeepEqual(wide, full) {
			t.Errorf("%s: a budget that does not bind gives another dictionary", s.name)
		}
	}
	var budget *BudgetError
	d := must(Uniform{Points: 10}.Sample(background, k, src, 1e-3, kerneltest.Seeded(t, 34)))
	if _, err := d.Truncate(9); !errors.As(err, &budget) || budget.Points != 10 {
		t.Errorf("no path: %v", err)
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
		which := rapid.IntRange(0, 2).Draw(t, "sampler")
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
		s := filling(most, candidates)[which]
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

// A leap ends the path after fewer levels, at a larger λ. From leapBudget on, each level before
// the last has at most leapLevel of the budget. A λ that needs less than the budget is reached.
func TestLeap(t *testing.T) {
	racetest.Alone(t)
	const n = 500
	blobs, _ := sketchtest.Blobs(n, kerneltest.Seeded(t, 76))
	_, su := susy(n, 77)
	shorter := 0
	for _, c := range []struct {
		name string
		k    kernel.Kernel
		x    *kernel.Points[float64]
	}{{"susy", kerneltest.Gaussian(4), su}, {"crowded", matern(0.5), sketchtest.Crowded(n, kerneltest.Seeded(t, 78))}, {"blobs", kerneltest.Gaussian(1), blobs}} {
		src, sp := kernel.FromRows(c.x), newSpectrum(c.k, c.x)
		for _, most := range []int{leapBudget / 2, leapBudget} {
			name, counted := fmt.Sprintf("%s, %d points", c.name, most), 0.0
			for seed := range uint64(4) {
				leapt := must(BLESS{}.Budget(most).Sample(background, c.k, src, 1e-10, rand.New(rand.NewPCG(79, seed))))
				walked := must(BLESS{Step: budgetStep}.Budget(most).Sample(background, c.k, src, 1e-10, rand.New(rand.NewPCG(79, seed))))
				exact := sp.dimension(leapt.Lambda)
				t.Logf("%-7s seed %d: %d points at λ = %.2g by %d levels, %d at %.2g by %d; d_eff %.1f of %.1f", name, seed,
					leapt.Len(), leapt.Lambda, len(leapt.Path), walked.Len(), walked.Lambda, len(walked.Path), leapt.EffectiveDimension, exact)
				if leapt.Len() < most*19/20 || leapt.Len() > most || len(leapt.Path) > len(walked.Path) {
					t.Errorf("%s: %d points, %d and %d levels", name, leapt.Len(), len(leapt.Path), len(walked.Path))
				}
				if most < leapBudget && len(leapt.Path) < len(walked.Path) {
					shorter++
				}
				if r := leapt.EffectiveDimension / exact; r < 0.75 || r > 1.25 {
					t.Errorf("%s: d_eff is %.2f times the exact one", name, r)
				}
				counted += sum(leapt.InverseWeights()) / 4
				for _, l := range leapt.Path[:len(leapt.Path)-1] {
					if most >= leapBudget && float64(l.Len()) > leapLevel*float64(most) {
						t.Errorf("%s: a level before the last has %d points", name, l.Len())
					}
				}
				for h, l := range leapt.Path[1:] {
					if !(l.Lambda < leapt.Path[h].Lambda) {
						t.Errorf("%s: λ goes from %g to %g", name, leapt.Path[h].Lambda, l.Lambda)
					}
				}
				enough := 4.0 / float64(most)
				if d := must(BLESS{}.Budget(most).Sample(background, c.k, src, enough, rand.New(rand.NewPCG(80, seed)))); d.Lambda != enough || d.Len() >= most {
					t.Errorf("%s: %d points at λ = %g, where %g needs fewer", name, d.Len(), d.Lambda, enough)
				}
			}
			if math.Abs(counted/n-1) > 0.1 {
				t.Errorf("%s: the weights count %.0f rows of %d", name, counted, n)
			}
		}
	}
	if shorter == 0 {
		t.Error("no small budget ends the path after fewer levels")
	}
}

// If the number of draws is a power of λ, the λ that a level reaches is the one that asks for
// its draws. The level before a leap may have ended early, so that λ falls by less than the
// path would, or not at all.
func TestReached(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 81))
	above := 0
	for range 1000 {
		power, walked := 0.1+rng.Float64(), math.Exp(-10*rng.Float64()) // walked is λ_{h−1}
		ask := func(lambda float64) float64 { return 100 * math.Pow(lambda, -power) }
		early := walked * math.Exp(5*rng.Float64()) // where the level before ended
		goal := early * math.Exp(-6*rng.Float64()-0.01)
		end := early * math.Pow(goal/early, 0.06+0.94*rng.Float64())
		if goal > walked {
			above++
		}
		before := &drawn{want: ask(walked), got: ask(early)}
		before.Lambda, before.Indices = early, make([]int, 50)
		level := &drawn{want: ask(goal), got: ask(end)}
		p := &path{lambdas: []float64{walked, goal}, leapt: true}
		if got := p.reached(1, before, level); math.Abs(math.Log(got/end)) > 1e-9 || got < goal*(1-1e-12) {
			t.Errorf("λ = %g from %g to %g, want %g", got, early, goal, end)
		}
		level.got = level.want
		if got := p.reached(1, before, level); got != goal {
			t.Errorf("a whole draw reaches %g, want %g", got, goal)
		}
	}
	if above < 100 {
		t.Errorf("%d leaps of 1000 end above the path", above)
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
	const n, most, seeds = 4000, leapBudget, 5
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
			for _, s := range filling(most, candidates) {
				m, l := residuals(s)
				t.Logf("%-7s %-6s %4d candidates mean residual %.4f, largest %.3f", c.name, s.name, candidates, m, l)
				if m >= mean || l >= largest {
					t.Errorf("%s, %s: no better than uniform", c.name, s.name)
				}
			}
		}
	}
}

// Without effective dimensions all else is the same.
func TestNoDimension(t *testing.T) {
	x, _ := sketchtest.Blobs(900, kerneltest.Seeded(t, 82))
	src, k := kernel.FromRows(x), kerneltest.Gaussian(1)
	draw := func(s Sampler) *Dictionary {
		return must(s.Sample(background, k, src, 1e-4, rand.New(rand.NewPCG(83, 1))))
	}
	for name, s := range map[string][2]Sampler{
		"BLESS":         {BLESS{}, BLESS{NoDimension: true}},
		"BLESS, budget": {BLESS{}.Budget(90), BLESS{NoDimension: true}.Budget(90)},
		"BLESSR":        {BLESSR{}, BLESSR{NoDimension: true}},
	} {
		with, without := draw(s[0]), draw(s[1])
		if len(with.Path) != len(without.Path) || with.Rows != without.Rows {
			t.Fatalf("%s: %d levels of %d rows, and %d of %d without dimensions", name, len(with.Path), with.Rows, len(without.Path), without.Rows)
		}
		for h, l := range without.Path {
			w := with.Path[h]
			if l.Lambda != w.Lambda || !slices.Equal(l.Indices, w.Indices) || !slices.Equal(l.Weights, w.Weights) {
				t.Errorf("%s: level %d differs", name, h)
			}
			if l.EffectiveDimension != 0 || w.EffectiveDimension == 0 && w.Len() > 0 {
				t.Errorf("%s: level %d has the dimension %v, and %v", name, h, w.EffectiveDimension, l.EffectiveDimension)
			}
		}
	}
}
