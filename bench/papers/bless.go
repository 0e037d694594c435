package papers

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/bench/experiment"
	"github.com/bkbtuner/bkb/bench/report"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/dataset"
	"github.com/bkbtuner/bkb/learners/falkon"
	"github.com/bkbtuner/bkb/learners/training"
	"github.com/bkbtuner/bkb/sketch"
)

// blessParts are constructed sets, named by the per cent of rows in so many far clusters, and real
// ones of numbers.
var blessParts = []string{"rare-1-30", "rare-1-100", "rare-2-30", "rare-2-100", "rare-5-30", "rare-5-100", "kin40k", "protein", "bike", "keggdirected", "parkinsons", "airfoil", "concrete"}

// bless compares centres at equal M and at equal error.
var bless = experiment.Experiment{
	Name:   "bless",
	Title:  "FALKON with centres by RPCholesky and uniform ones, at equal M and at equal error",
	Source: "ours, Carratino (2020), §5.3",
	About: `All learn the same four fifths of the rows, 10,000 at most, with the Gaussian kernel
of the median distance, λ = 1e-6 and up to 40 iterations. They are measured on the rest.
M is n/20, between 50 and 400, and twice that. "plain" and "auto" are the geometric
means over the splits of the error with RPCholesky, and with the choice of
learners.Automatic, divided by that with uniform centres. "kept" is the share of splits
where that is RPCholesky. "centres" is the number of uniform centres that the error of
"auto" takes, divided by M, from errors at M/4 to 2M. "pivots" is the CPU time of
choosing by RPCholesky, divided by that of the fit, and "share" is that of
learners.Automatic. They are means over a tenth of a second at least. The parts rare-…
are constructed. Of the rows of rare-2-30, 2 % are in 30 far clusters with a level each.
"rare" and "rare auto" are the errors on these rows, and "rare ratio" is as "auto ratio".`,
	Parts:   blessParts,
	Repeats: 5,
	Measure: centersForError,
}

func centersForError(ctx context.Context, env *experiment.Env) (*report.Result, error) {
	r := &report.Result{}
	t := r.Table("bless", "Test error, RMSE of standardised targets, mean over splits", report.Column{Name: "data"}, report.Column{Name: "n"}, report.Column{Name: "M"},
		report.Column{Name: "uniform", Format: "%.4f"}, report.Column{Name: "auto", Format: "%.4f"}, report.Column{Name: "plain ratio", Format: "%.3f"},
		report.Column{Name: "auto ratio", Format: "%.3f"}, report.Column{Name: "kept", Format: "%.1f"}, report.Column{Name: "centres", Format: "%.2f"},
		report.Column{Name: "pivots", Format: "%.2f"}, report.Column{Name: "share", Format: "%.2f"}, report.Column{Name: "CPU", Unit: "s", Format: "%.2f"},
		report.Column{Name: "rare", Format: "%.3f"}, report.Column{Name: "rare auto", Format: "%.3f"}, report.Column{Name: "rare ratio", Format: "%.3f"})
	return r, eachPart(ctx, env, r, blessParts, func(at int, part string) error {
		for i, times := range []int{1, 2} {
			sum := centersRun{times: times}
			for rep := range env.Repeats {
				env.Report((2*at+i)*env.Repeats+rep, 2*len(blessParts)*env.Repeats, "%s, %d, split %d", part, times, rep+1)
				train, test, rare, err := blessData(ctx, env, part, rep)
				if err != nil {
					return err
				}
				if err := sum.add(ctx, env, train, test, rare, rep); err != nil {
					return err
				}
			}
			n := float64(env.Repeats)
			t.Add(part, sum.rows, sum.m, sum.uniform/n, sum.tried/n, math.Exp(sum.logPlain/n), math.Exp(sum.logTried/n), sum.kept/n,
				math.Exp(sum.logCenters/n), sum.plain/sum.fitted, sum.chosen/sum.fitted, sum.fitted/n,
				sum.rare/n, sum.rareTried/n, math.Exp(sum.logRare/n))
		}
		return nil
	})
}

// centersRun has sums over splits.
type centersRun struct {
	times                          int // M is so many times the usual one
	rows, m                        int
	uniform, tried, kept           float64
	logPlain, logTried, logCenters float64
	plain, chosen, fitted          float64 // CPU
	rare, rareTried, logRare       float64 // NaN where no rows are
}

func (s *centersRun) add(ctx context.Context, env *experiment.Env, train, test, rare *data.Memory, rep int) error {
	sigma, err := training.MedianDistance(ctx, train, env.Seed)
	if err != nil {
		return err
	}
	k, err := kernel.NewGaussian(sigma)
	if err != nil {
		return err
	}
	const lambda = 1e-6
	s.rows = train.Len()
	s.m = s.times * min(max(s.rows/20, 50), 400)
	o := learners.Options{Workers: env.Workers, Seed: env.Derive("bless", rep)}
	fit := func(m int, sampler sketch.Sampler) (learners.Model, error) {
		p := falkon.Params{Kernel: k, Lambda: lambda, Centers: m, Sampler: sampler, Iterations: 40}
		return p.Fit(ctx, train, o)
	}
	errorOf := func(m int, sampler sketch.Sampler) (all, few float64, err error) {
		model, err := fit(m, sampler)
		if err != nil {
			return 0, 0, err
		}
		if all, err = rmseOn(ctx, model, test); err != nil || rare == nil {
			return all, math.NaN(), err
		}
		few, err = rmseOn(ctx, model, rare)
		return all, few, err
	}
	plain, tried := sketch.RPCholesky{Workers: env.Workers}, learners.Automatic{}
	e, few, err := errorOf(s.m, tried)
	if err != nil {
		return err
	}
	p, _, err := errorOf(s.m, plain)
	if err != nil {
		return err
	}
	choose := func(sampler sketch.Sampler) (*learners.Centers, error) {
		return learners.ChooseCenters(ctx, k, train, learners.Sampling{Sampler: sampler, Most: s.m}.For(lambda, 1, s.m, s.rows), o.Seed)
	}
	c, err := choose(tried)
	if err != nil {
		return err
	}
	for _, part := range []struct {
		cpu *float64
		run func() error
	}{
		{&s.fitted, func() error { _, err := fit(s.m, tried); return err }},
		{&s.plain, func() error { _, err := choose(plain); return err }},
		{&s.chosen, func() error { _, err := choose(tried); return err }},
	} {
		cpu, err := meanCPU(part.run)
		if err != nil {
			return err
		}
		*part.cpu += cpu
	}
	if c.Dictionary.Residual > 0 { // uniform dictionaries do not tell it
		s.kept++
	}
	var errs, sizes []float64
	for _, share := range []float64{0.25, 0.5, 0.707, 1, 1.414, 2} {
		m := int(math.Round(share * float64(s.m)))
		u, other, err := errorOf(m, nil)
		if err != nil {
			return err
		}
		errs, sizes = append(errs, u), append(sizes, share)
		if share == 1 {
			s.uniform += u
			s.logTried += math.Log(e / u)
			s.logPlain += math.Log(p / u)
			s.rare += other
			s.rareTried += few
			s.logRare += math.Log(few / other)
		}
	}
	s.tried += e
	s.logCenters += math.Log(sizeForError(sizes, errs, e))
	return nil
}

// meanCPU returns the CPU seconds of run, as a mean over a tenth of a second at least. A run of
// a millisecond alone shows how cold the caches are.
func meanCPU(run func() error) (float64, error) {
	watch := experiment.StartWatch()
	for n := 1.0; ; n++ {
		if err := run(); err != nil {
			return 0, err
		}
		if cpu := watch.CPU(); cpu > 0.1 {
			return cpu / n, nil
		}
	}
}

// sizeForError returns the first size at which the running least error is at most want,
// between sizes in proportion of logarithms. It is the last size if none is enough.
func sizeForError(sizes, errs []float64, want float64) float64 {
	least := errs[0]
	if least <= want {
		return sizes[0]
	}
	for i := 1; i < len(sizes); i++ {
		if errs[i] <= want {
			share := math.Log(least/want) / math.Log(least/errs[i])
			return sizes[i-1] * math.Pow(sizes[i]/sizes[i-1], share)
		}
		least = min(least, errs[i])
	}
	return sizes[len(sizes)-1]
}

// blessData returns the parts of a split, and the rare rows of test if there are any.
func blessData(ctx context.Context, env *experiment.Env, part string, rep int) (train, test, rare *data.Memory, err error) {
	var share, groups int
	if n, _ := fmt.Sscanf(part, "rare-%d-%d", &share, &groups); n == 2 {
		all, far, err := withBlobs(env, env.Pick(4000, 10_000, 10_000), share, groups, rep)
		if err != nil {
			return nil, nil, nil, err
		}
		cut := all.Len() * 4 / 5
		if test, err = data.NewMemory(all.Rows().Slice(cut, all.Len()), all.Targets()[cut:], 1); err != nil {
			return nil, nil, nil, err
		}
		at, _ := slices.BinarySearch(far, cut)
		rare, err = chosenRows(all, far[at:])
		return first(all, cut), test, rare, err
	}
	seed := env.Derive("bless split", rep)
	n := env.Pick(600, 10_000, 40_000)
	table, err := env.Table(ctx, dataset.Options{Target: []string{"-1"}, Header: dataset.HeaderNo}, "uci/"+part+".data.csv.gz")
	if err != nil {
		return nil, nil, nil, err
	}
	defer table.Close()
	d, err := training.Prepare(ctx, table, training.Split{Test: 0.2, Seed: seed}, data.EncodingOptions{Task: data.Regression})
	if err != nil {
		return nil, nil, nil, err
	}
	if train, err = data.Load(ctx, d.Train); err != nil {
		return nil, nil, nil, err
	}
	if test, err = data.Load(ctx, d.Test); err != nil {
		return nil, nil, nil, err
	}
	train, err = someRows(train, n, env, rep)
	return train, test, nil, err
}

// withBlobs returns n rows in random order. Most are near 0 with a smooth target. A share of them in
// per cent, far, is in far groups with a level each.
func withBlobs(env *experiment.Env, n, share, groups, rep int) (all *data.Memory, far []int, err error) {
	const d = 3
	rng := env.Rand(fmt.Sprintf("blobs %d %d", share, groups), rep)
	center, level := make([]float64, groups*d), make([]float64, groups)
	for g := range level {
		level[g] = 3 * rng.NormFloat64()
		for c := range d {
			center[g*d+c] = 12 * rng.NormFloat64()
		}
	}
	x, y := kernel.NewPoints[float64](n, d, nil), make([]float64, n)
	for i := range n {
		row, g := x.Row(i), -1
		if rng.IntN(100) < share {
			g, far = rng.IntN(groups), append(far, i)
			y[i] = level[g]
		}
		for c := range row {
			row[c] = rng.NormFloat64()
			if g >= 0 {
				row[c] = center[g*d+c] + 0.3*row[c]
			}
		}
		if g < 0 {
			y[i] = math.Sin(2*row[0]) * math.Cos(row[1])
		}
		y[i] += 0.05 * rng.NormFloat64()
	}
	all, err = data.NewMemory(x, y, 1)
	return all, far, err
}
