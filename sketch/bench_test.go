package sketch

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/sketch/sketchtest"
)

// seconds times one sample, takes the best of repeats and returns its dictionary.
func seconds(b *testing.B, s Sampler, k kernel.Kernel, src kernel.Source, lambda float64, repeats int) (float64, *Dictionary) {
	best, d := 0.0, (*Dictionary)(nil)
	for rep := range repeats {
		start := time.Now()
		var err error
		if d, err = s.Sample(background, k, src, lambda, rand.New(rand.NewPCG(1, 1))); err != nil {
			b.Fatal(err)
		}
		if t := time.Since(start).Seconds(); rep == 0 || t < best {
			best = t
		}
	}
	return best, d
}

// BenchmarkPath is figure 5.2, with λ = 1e-3 on the stand-in for SUSY. For
// BLESS and BLESS-R it reports the slowest over the fastest n from 10⁴ to 10⁶, which
// should be 1. It also reports Recursive-RLS over each at n = 10⁵, which should be at
// least 10 for BLESS.
func BenchmarkPath(b *testing.B) {
	const lambda = 1e-3
	x := sketchtest.SUSY(1_000_000, 1)
	k := kerneltest.Gaussian(4)
	for _, s := range []namedSampler{{"BLESS", BLESS{}}, {"BLESSR", BLESSR{}}} {
		b.Run(s.name, func(b *testing.B) {
			for b.Loop() {
				var at []float64
				for _, n := range []int{10_000, 100_000, 1_000_000} {
					t, d := seconds(b, s, k, kernel.FromRows(x.Slice(0, n)), lambda, 5)
					at = append(at, t)
					b.ReportMetric(1000*t, fmt.Sprintf("ms/n=%.0e", float64(n)))
					b.ReportMetric(float64(d.Len()), fmt.Sprintf("points/n=%.0e", float64(n)))
				}
				b.ReportMetric(max(at[0], at[1], at[2])/min(at[0], at[1], at[2]), "slowest/fastest")
				rrls, _ := seconds(b, RecursiveRLS{}, k, kernel.FromRows(x.Slice(0, 100_000)), lambda, 1)
				b.ReportMetric(rrls/at[1], "RecursiveRLS/this")
			}
		})
	}
}

// BenchmarkBudget times BLESS with a budget of 192 points on a crowded log, with and
// without a limit of the rows. It compares with the time to score a uniform subset of
// 8,192 rows by a dictionary of 192 points.
func BenchmarkBudget(b *testing.B) {
	const points, subset = 192, 8192
	k := matern(0.5)
	for _, n := range []int{20_000, 100_000} {
		x := sketchtest.Crowded(n, rand.New(rand.NewPCG(1, 2)))
		src := kernel.FromRows(x)
		old := must(Uniform{Points: points}.Sample(background, k, src, 1e-3, rand.New(rand.NewPCG(1, 3))))
		few := kernel.FromRows(x.Select(choose(n, subset, rand.New(rand.NewPCG(1, 4)))))
		for _, candidates := range []int{0, 2048} {
			b.Run(fmt.Sprintf("n=%d/candidates=%d", n, candidates), func(b *testing.B) {
				var path, scores float64
				for b.Loop() {
					t, d := seconds(b, BLESS{MaxPoints: points, MaxCandidates: candidates}, k, src, 1e-6, 3)
					path += t
					b.ReportMetric(float64(d.Rows), "rows")
					b.ReportMetric(1e3*d.Lambda, "λ·1e3")
					for rep := range 3 {
						start := time.Now()
						must(old.Scores(background, k, few, 0))
						if t := time.Since(start).Seconds(); rep == 0 || t < scores {
							scores = t
						}
					}
				}
				b.ReportMetric(path/float64(b.N)/scores, "BLESS/subset")
			})
		}
	}
}

func BenchmarkSamplers(b *testing.B) {
	k, x := susy(20_000, 1)
	for _, s := range []namedSampler{{"Uniform", Uniform{}}, {"TwoPass", TwoPass{}}, {"RecursiveRLS", RecursiveRLS{}}, {"SQUEAK", SQUEAK{}}, {"BLESS", BLESS{}}, {"BLESSR", BLESSR{}}} {
		b.Run(s.name, func(b *testing.B) {
			for b.Loop() {
				must(s.Sample(background, k, kernel.FromRows(x), 1e-3, rand.New(rand.NewPCG(1, 1))))
			}
		})
	}
}

func BenchmarkExactScores(b *testing.B) {
	k, x := susy(2000, 1)
	for b.Loop() {
		must(LeverageScores(background, k, kernel.FromRows(x), 1e-3))
	}
}

// BenchmarkFeatures compares features of dense rows, in panels, with those of the same
// rows as sparse ones, which take plain loops and package math.
func BenchmarkFeatures(b *testing.B) {
	const n, m = 512, 2000
	for _, d := range []int{18, 90} {
		x := kerneltest.Points(rand.New(rand.NewPCG(1, 0)), n, d)
		plain := kernel.Sparse(x)
		for _, f := range []FeatureMap{must(NewFourier(kerneltest.Gaussian(5), d, m, 1)), must(NewFourierCosine(kerneltest.Gaussian(5), d, m, 1))} {
			b.Run(fmt.Sprintf("%s/d=%d", f.Spec().Family, d), func(b *testing.B) {
				dst := make([]float64, n*m)
				var slow, quick time.Duration
				for b.Loop() {
					start := time.Now()
					if err := f.Apply(dst, plain); err != nil {
						b.Fatal(err)
					}
					middle := time.Now()
					if err := f.Apply(dst, x); err != nil {
						b.Fatal(err)
					}
					slow, quick = slow+middle.Sub(start), quick+time.Since(middle)
				}
				b.ReportMetric(float64(slow)/float64(quick), "plain/panels")
				b.ReportMetric(float64(quick.Nanoseconds())/float64(b.N*n*m), "ns/feature")
			})
		}
	}
}

// BenchmarkFastfood compares Fastfood with frequencies that are written out. The ratio
// should grow as d/log d.
func BenchmarkFastfood(b *testing.B) {
	for _, d := range []int{32, 256, 1024} {
		b.Run(fmt.Sprint("d=", d), func(b *testing.B) {
			x := kerneltest.Points(rand.New(rand.NewPCG(1, 0)), 64, d)
			k := kerneltest.Gaussian(10)
			const m = 4096
			dense, fast := must(NewFourier(k, d, m, 1)), must(NewFastfood(k, d, m, 1))
			dst := make([]float64, 64*m)
			timeOf := func(f FeatureMap) float64 {
				best := 0.0
				for rep := range 3 {
					start := time.Now()
					if err := f.Apply(dst, x); err != nil {
						b.Fatal(err)
					}
					if t := time.Since(start).Seconds(); rep == 0 || t < best {
						best = t
					}
				}
				return best
			}
			for b.Loop() {
				slow, quick := timeOf(dense), timeOf(fast)
				b.ReportMetric(slow/quick, "dense/fastfood")
				b.ReportMetric(quick*1e9/64/m, "ns/feature")
			}
		})
	}
}

// BenchmarkManyLambda is the time of the scores of five λ by one path over that by one path for
// each, the least of each in the same run. Close together they share most of the paths. A decade
// apart the least λ has nearly all of the work.
func BenchmarkManyLambda(b *testing.B) {
	const least = 3e-4
	x := sketchtest.SUSY(5000, 1)
	k, src := kerneltest.Gaussian(4), kernel.FromRows(x)
	for _, step := range []float64{1.5, 3, 10} {
		b.Run(fmt.Sprintf("step=%g", step), func(b *testing.B) {
			times := map[bool]time.Duration{}
			for b.Loop() {
				for _, once := range []bool{false, true} {
					start := time.Now()
					var d *Dictionary
					for i, lambda := 0, least; i < 5; i, lambda = i+1, lambda*step {
						if d == nil || !once {
							d = must(BLESS{}.Sample(background, k, src, lambda, rand.New(rand.NewPCG(1, 1))))
						}
						must(d.ScoresAt(background, k, src, lambda, 0))
					}
					if t := time.Since(start); times[once] == 0 || t < times[once] {
						times[once] = t
					}
				}
			}
			b.ReportMetric(times[true].Seconds()/times[false].Seconds(), "once/apart")
		})
	}
}
