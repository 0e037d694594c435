package papers

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bkbtuner/bkb/bench/experiment"
	"github.com/bkbtuner/bkb/bench/report"
	"github.com/bkbtuner/bkb/internal/datatest"
	"github.com/bkbtuner/bkb/internal/racetest"
)

// quick runs an experiment at Quick scale.
func quick(t *testing.T, name string, env experiment.Env) *report.Result {
	t.Helper()
	if testing.Short() && name != "regret" {
		t.Skip("repeats a figure: not in short tests, go test ./bench/papers does; regret stands for all")
	}
	e, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	env.Scale = experiment.Quick
	r, err := e.Run(context.Background(), &env)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := r.WriteText(&text, 0); err != nil {
		t.Fatal(err)
	}
	t.Logf("seed %d\n%s", env.Seed, text.String())
	for _, p := range r.Plots {
		if p.Empty() {
			t.Errorf("plot %s is empty", p.Name)
		}
	}
	return r
}

func table(t *testing.T, r *report.Result, name string) *report.Table {
	t.Helper()
	for _, at := range r.Tables {
		if at.Name == name {
			return at
		}
	}
	t.Fatalf("there is no table %s", name)
	return nil
}

// one returns the only number of a column where another column has a value.
func one(t *testing.T, from *report.Table, column, where string, is any) float64 {
	t.Helper()
	v := from.Where(where, is).Float(column)
	if len(v) != 1 {
		t.Fatalf("table %s has %d rows with %s = %v", from.Name, len(v), where, is)
	}
	return v[0]
}

// untimed returns the tables without the columns of times.
func untimed(r *report.Result) [][]any {
	var rows [][]any
	for _, t := range r.Tables {
		for _, row := range t.Rows {
			var kept []any
			for c, v := range row {
				if unit := t.Columns[c].Unit; unit != "s" && unit != "ms" {
					kept = append(kept, fmt.Sprint(v))
				}
			}
			rows = append(rows, kept)
		}
	}
	return rows
}

// In figure 5.1 all samplers come near the exact scores. Scores by leverage have narrower
// quantiles than those by as many uniform points. On blobs, here of about three rows,
// uniform sampling misses most, and the others few.
func TestAccuracyOfScores(t *testing.T) {
	r := quick(t, "fig5.1", experiment.Env{Seed: 3, Repeats: 3, Only: []string{"generator", "blobs"}})
	g := table(t, r, "generator")
	width := func(name string) float64 {
		return one(t, g, "95 %", "sampler", name) / one(t, g, "5 %", "sampler", name)
	}
	for i, m := range g.Float("mean") {
		if m < 0.95 || m > 1.5 {
			t.Errorf("%v: mean R-ACC %.2f", g.Rows[i][0], m)
		}
	}
	for _, name := range []string{"BLESS-R", "SQUEAK", "Recursive-RLS", "Two-Pass"} {
		if width(name) >= width("uniform") {
			t.Errorf("%s: R-ACC spreads %.2f, that of uniform %.2f", name, width(name), width("uniform"))
		}
	}
	b := table(t, r, "blobs")
	for i, missed := range b.Float("blobs missed") {
		if name := b.Rows[i][0]; name == "uniform" && missed < 8 || name != "uniform" && missed > 4 {
			t.Errorf("%v misses %.2f blobs", name, missed)
		}
	}
}

// The real rows, if there are any, have 8 features and both classes.
func TestSUSYRows(t *testing.T) {
	racetest.Alone(t)
	env := &experiment.Env{Data: datatest.Folder(t)}
	rows, err := susyRows(context.Background(), env, 300)
	if err != nil {
		t.Fatal(err)
	}
	y := rows.Targets()
	if rows.Len() != 300 || rows.Dim() != 8 || slices.Min(y) != -1 || slices.Max(y) != 1 {
		t.Errorf("%d×%d, targets %v to %v", rows.Len(), rows.Dim(), slices.Min(y), slices.Max(y))
	}
	var missing *experiment.DataError
	if _, err := susyRows(context.Background(), &experiment.Env{}, 300); !errors.As(err, &missing) {
		t.Errorf("without data: %v", err)
	}
	e, _ := Find("fig5.1")
	if _, err := e.Run(context.Background(), &experiment.Env{Scale: experiment.Quick, Only: []string{"susy"}}); !errors.As(err, &missing) {
		t.Errorf("susy asked for, without data: %v", err)
	}
}

// Figure 5.2 has every sampler at every n that was not predicted to take too long.
func TestTimesOfSamplers(t *testing.T) {
	r := quick(t, "fig5.2", experiment.Env{Seed: 1, Repeats: 1})
	times := table(t, r, "times")
	for _, name := range []string{"BLESS", "BLESS-R", "SQUEAK", "Recursive-RLS"} {
		if at := times.Where("sampler", name); len(at.Rows) < 2 { // the third may be predicted to take too long
			t.Errorf("%s: %d rows", name, len(at.Rows))
		} else if m := at.Float("M"); m[len(m)-1] > 3*m[0] {
			t.Errorf("%s: dictionaries of %v", name, m)
		}
	}
	if s := table(t, r, "slopes"); len(s.Rows) != 6 {
		t.Errorf("%d slopes", len(s.Rows))
	}
}

// Uniform centres miss far clusters, and RPCholesky finds them, which Automatic sees.
func TestCentersForError(t *testing.T) {
	r := table(t, quick(t, "bless", experiment.Env{Seed: 1, Only: []string{"rare-5-30"}}), "bless")
	plain, auto, rare := r.Float("plain ratio"), r.Float("auto ratio"), r.Float("rare ratio")
	if len(plain) != 2 || !(slices.Max(plain) < 0.95) || !(slices.Max(auto) < 0.95) || !(slices.Max(rare) < 0.8) {
		t.Errorf("the errors with RPCholesky are %.3f of those with uniform centres, with Automatic %.3f, on rare rows %.3f", plain, auto, rare)
	}
	sizes, errs := []float64{1, 2, 4}, []float64{0.8, 0.9, 0.2}
	for want, size := range map[float64]float64{0.9: 1, 0.4: 2 * math.Sqrt2, 0.2: 4, 0.1: 4} {
		if got := sizeForError(sizes, errs, want); math.Abs(got-size) > 1e-9 {
			t.Errorf("an error of %g takes the size %g, want %g", want, got, size)
		}
	}
}

// With a λ of its own the multinomial loss has no larger logarithmic loss than one against
// the rest. The difference is that of the rows.
func TestSoftmaxOrRest(t *testing.T) {
	result := quick(t, "softmax", experiment.Env{Seed: 1, Only: []string{"generator"}})
	r := table(t, result, "softmax")
	both, apart := r.Where("classes", "softmax").Float("log loss"), r.Where("classes", "one against the rest").Float("log loss")
	if len(both) != 1 || len(apart) != 1 {
		t.Fatalf("%d and %d rows", len(both), len(apart))
	}
	if !(both[0] > 0 && both[0] < 1.02*apart[0]) {
		t.Errorf("log loss %.4f, one against the rest %.4f", both[0], apart[0])
	}
	d := table(t, result, "differences").Float("log loss")
	if want := both[0] - apart[0]; len(d) != 1 || math.Abs(d[0]-want) > 1e-12 {
		t.Errorf("the difference is %v, want %v", d, want)
	}
}

// A descent ends after three values in a row without a gain, and then gains no more.
func TestDescent(t *testing.T) {
	d := descent{least: math.Inf(1)}
	for i, v := range []struct {
		value       float64
		falls, over bool
	}{{3, true, false}, {4, false, false}, {3, false, false}, {2, true, false}, {5, false, false}, {2, false, false}, {2.5, false, true}, {1, false, true}} {
		if falls := d.falls(v.value); falls != v.falls || d.over() != v.over {
			t.Errorf("value %d, %v: falls %v and over %v", i, v.value, falls, d.over())
		}
	}
}

func TestTenths(t *testing.T) {
	var v []float64
	for i := range 40 {
		v = append(v, float64((i*7)%40/2)) // each of 20 values twice
	}
	y := tenths(v)
	for i, x := range v {
		for c, got := range y[10*i:][:10] {
			if (got == 1) != (c == int(x)/2) {
				t.Fatalf("row %d with target %v has %v in class %d", i, x, got, c)
			}
		}
	}
	if a, b := pairedDifference([]float64{3, 5}, []float64{2, 2}); a != 2 || b != 1 {
		t.Errorf("the difference is %v ± %v, want 2 ± 1", a, b)
	}
}

func TestGrower(t *testing.T) {
	var g grower
	if g.next(10) != 0 {
		t.Error("something is foreseen from nothing")
	}
	g.took(10, 1)
	if got := g.next(100); math.Abs(got-10) > 1e-12 {
		t.Errorf("from one time: %v, want 10 (linear)", got)
	}
	g.took(100, 1000)
	if got := g.next(1000); math.Abs(got-1e6) > 1e-6 {
		t.Errorf("from two times: %v, want 1e6 (cubic)", got)
	}
}

// In table 5.1 the slopes of evaluations in n are those of theory. The counts do not depend
// on the number of workers.
func TestCostsOfSamplers(t *testing.T) {
	r := quick(t, "table5.1", experiment.Env{Seed: 2, Repeats: 2, Workers: 1})
	s := table(t, r, "slopes")
	for name, want := range map[string][2]float64{
		"exact RLS": {1.8, 2.2}, "Two-Pass": {0.6, 1.2}, "SQUEAK": {0.7, 1.3},
		"Recursive-RLS": {0.5, 1.3}, "BLESS": {-0.2, 0.3}, "BLESS-R": {-0.2, 0.3},
	} {
		if got := one(t, s, "in n", "sampler", name); got < want[0] || got > want[1] {
			t.Errorf("%s: slope %.2f in n, want %v", name, got, want)
		}
	}
	again := quick(t, "table5.1", experiment.Env{Seed: 2, Repeats: 2, Workers: 2})
	if diff := cmp.Diff(untimed(r), untimed(again)); diff != "" {
		t.Errorf("with other workers:\n%s", diff)
	}
}

// In figure 7.1, far from the data BKB's σ̃ is the prior's, and SoR's is almost 0. With t
// well above the number of features RFF is too certain everywhere.
func TestStarvation(t *testing.T) {
	r := quick(t, "fig7.1", experiment.Env{Seed: 5, Repeats: 4})
	all := table(t, r, "variances")
	for _, n := range []int{6, 63, 215} {
		at := all.Where("t", n)
		if low, high := one(t, at, "far: least", "posterior", "BKB"), one(t, at, "seen: least", "posterior", "BKB"); low < 0.95 || high < 0.8 {
			t.Errorf("t = %d: BKB's σ̃/σ falls to %.3f far away, %.3f near", n, low, high)
		}
		if m := one(t, at, "far: median", "posterior", "SoR"); m > 0.05 {
			t.Errorf("t = %d: SoR's σ̃/σ is %.3f far away: it does not starve", n, m)
		}
		if c := one(t, at, "far: covered", "posterior", "SoR"); c > 60 {
			t.Errorf("t = %d: SoR covers %.1f %% far away", n, c)
		}
	}
	at := all.Where("t", 215)
	if b, f := one(t, at, "seen: covered", "posterior", "BKB"), one(t, at, "seen: covered", "posterior", "RFF"); b < 98 || f > 90 {
		t.Errorf("BKB covers %.1f %%, RFF %.1f %%", b, f)
	}
}

// Policies are played in pairs, the same for any number of workers. BKB is about as good as
// GP-UCB even in a short run.
func TestRegrets(t *testing.T) {
	env := experiment.Env{Seed: 4, Repeats: 3, Only: []string{"branin", "ackley5"}, Workers: 1}
	r := quick(t, "regret", env)
	s := table(t, r, "summary")
	for _, name := range []string{"BKB", "BBKB"} {
		if g := one(t, s, "geometric mean", "policy", name); g < 0.6 || g > 1.5 {
			t.Errorf("%s: geometric mean %.3f", name, g)
		}
	}
	env.Workers = 2
	if diff := cmp.Diff(untimed(r), untimed(quick(t, "regret", env))); diff != "" {
		t.Errorf("with other workers:\n%s", diff)
	}
}

// Ratios of made-up regrets have the values of their construction.
func TestRatiosOfRegret(t *testing.T) {
	racetest.Alone(t)
	invented := func(name string, factor float64) *contest {
		c := &contest{name: name, played: map[string][]played{}}
		for i := range 20 {
			base := 10 + float64(i)
			c.played["GP-UCB"] = append(c.played["GP-UCB"], played{regret: []float64{1, base}})
			c.played["BKB"] = append(c.played["BKB"], played{regret: []float64{1, factor * base}})
			c.played["BBKB"] = append(c.played["BBKB"], played{regret: []float64{1, base + 3*float64(i%2)}})
		}
		return c
	}
	env, done := &experiment.Env{Seed: 1}, []*contest{invented("a", 1.2), invented("b", 1/1.2)}
	if v, low, high := geometric(env, done, "BKB"); math.Abs(v-1)+math.Abs(low-1)+math.Abs(high-1) > 1e-12 {
		t.Errorf("1.2 and 1/1.2 make %v in [%v, %v], want 1", v, low, high)
	}
	v, low, high := geometric(env, done, "BBKB")
	if want := 1 + 30/390.0; math.Abs(v-want) > 1e-12 || !(low < v && v < high) || high-low > 0.1 {
		t.Errorf("BBKB: %v in [%v, %v], want %v", v, low, high, want)
	}
	for _, c := range []struct {
		factors []float64
		want    string
	}{{[]float64{1.05, 1.1}, "yes"}, {[]float64{0.8, 1.35}, "no"}, {[]float64{1.15, 1.15}, "no"}} {
		r := &report.Result{}
		summariseRegret(env, r, []*contest{invented("a", c.factors[0]), invented("b", c.factors[1])}, 2)
		if got := r.Tables[0].Rows[0][5]; got != c.want {
			t.Errorf("ratios %v: %v, want %s", c.factors, got, c.want)
		}
	}
}

// An interrupted comparison keeps the seeds that all policies have played.
func TestRegretKeepsWholeSeeds(t *testing.T) {
	racetest.Alone(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	reports := 0
	env := &experiment.Env{Seed: 1, Scale: experiment.Quick, Repeats: 4, Only: []string{"branin"}, Progress: func(experiment.Progress) {
		if reports++; reports == 2*len(contestants)+2 { // within the third seed
			cancel()
		}
	}}
	r, err := regret.Run(ctx, env)
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	rows := table(t, r, "regret")
	if len(rows.Rows) != len(contestants) || slices.Max(rows.Float("seeds")) != 2 || slices.Min(rows.Float("seeds")) != 2 {
		t.Errorf("rows %v, want 2 seeds of each policy", rows.Rows)
	}
	if s := table(t, r, "summary"); len(s.Rows) != 2 {
		t.Errorf("%d rows of summary", len(s.Rows))
	}
}

// In a table of kernels, failed configurations are left out, and constant parameters are
// dropped.
func TestKernelTable(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "gpu_kernel_tuning"), 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		t.Helper()
		f, err := os.Create(filepath.Join(dir, "gpu_kernel_tuning", "x.json.gz"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		w := gzip.NewWriter(f)
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	env := &experiment.Env{Data: dir, Seed: 1}
	write(`{"tune_params_keys": ["block", "unroll", "fixed"], "cache": {
		"16,1,7": {"block": 16, "unroll": 1, "fixed": 7, "time": 2, "times": [2, 4]},
		"64,3,7": {"block": 64, "unroll": 3, "fixed": 7, "time": 1, "times": [1, 1]},
		"128,2,7": {"block": 128, "unroll": 2, "fixed": 7, "time": 8, "times": [8, 8, -1]},
		"256,2,7": {"block": 256, "unroll": 2, "fixed": 7, "time": "CompilationFailedConfig"}}}`)
	k, err := readKernelTable(env, "x")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"block", "unroll"}, k.names); diff != "" || k.failed != 1 {
		t.Errorf("%d failed, parameters %s", k.failed, diff)
	}
	want := []float64{1, 0.5, 0, 0, math.Log(4) / math.Log(8), 1} // 128, 16, 64
	for i, v := range want {
		if math.Abs(k.x[i]-v) > 1e-15 {
			t.Errorf("inputs %v, want %v", k.x, want)
			break
		}
	}
	a := k.arena("x", nil, 0, 1)
	if m, s := mean(a.env.Values), deviation(a.env.Values); math.Abs(m) > 1e-12 || math.Abs(s-1) > 1e-12 {
		t.Errorf("rewards have mean %v and deviation %v", m, s)
	}
	if best := a.env.Best; len(a.measured[best]) != 2 || a.measured[best][0] != a.env.Values[best] || a.arms.Dim() != 2 {
		t.Errorf("the best arm %d has rewards %v", best, a.measured[best])
	}
	for _, text := range []string{`{`, `{"cache": {"1": {"time": 1, "times": [1]}}}`} {
		write(text)
		if _, err := readKernelTable(env, "x"); err == nil {
			t.Errorf("%s was read", text)
		}
	}
}

// The real tables agree with the manifest.
func TestRealKernelTable(t *testing.T) {
	racetest.Alone(t)
	env := &experiment.Env{Data: datatest.Folder(t), Seed: 1}
	k, err := readKernelTable(env, tables["convolution"])
	if err != nil {
		t.Fatal(err)
	}
	if len(k.speed) != 4362-161 || k.failed != 161 || len(k.names) != 7 {
		t.Errorf("%d configurations, %d failed, parameters %v", len(k.speed), k.failed, k.names)
	}
	a := k.arena("convolution", nil, 0, 1)
	for step := range 3 {
		if v := a.reward(7, step); !slices.Contains(a.measured[7], v) || v != a.reward(7, step) {
			t.Errorf("reward %v is none that was measured", v)
		}
	}
}

// Steps has a row for every policy at every t.
func TestTimesOfSteps(t *testing.T) {
	r := quick(t, "steps", experiment.Env{Seed: 1})
	if rows := table(t, r, "steps"); len(rows.Rows) != 12 {
		t.Errorf("%d rows", len(rows.Rows))
	}
	a := table(t, r, "amortised")
	if slow, fast := one(t, a, "regret/chance", "policy", "from scratch"), one(t, a, "regret/chance", "policy", "BBKB"); fast > 1.5*slow {
		t.Errorf("BBKB's regret is %.3f, from scratch %.3f", fast, slow)
	}
}

// Ctrl-C ends each experiment soon, with its error and the partial result.
func TestInterrupted(t *testing.T) {
	for _, e := range All() {
		ctx, cancel := context.WithCancel(context.Background())
		reports := 0
		env := &experiment.Env{Seed: 1, Scale: experiment.Quick, Progress: func(experiment.Progress) {
			if reports++; reports == 1 {
				cancel()
			}
		}}
		r, err := e.Run(ctx, env)
		cancel()
		var missing *experiment.DataError // the only data set it has
		if !errors.Is(err, context.Canceled) && !errors.As(err, &missing) {
			t.Errorf("%s: %v after %d reports", e.Name, err, reports)
		}
		if r != nil {
			if err := r.WriteText(&bytes.Buffer{}, 80); err != nil {
				t.Errorf("%s: %v", e.Name, err)
			}
		}
	}
}
