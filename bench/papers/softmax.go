package papers

import (
	"context"
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
)

// softmaxParts are problems of ten classes. A regression gives the tenths of its target.
var softmaxParts = []string{"generator", "mnist", "abalone", "kin40k", "protein", "parkinsons", "airfoil", "concrete"}

// softmax compares two ways to learn many classes.
var softmax = experiment.Experiment{
	Name:   "softmax",
	Title:  "Logistic FALKON for ten classes, by the multinomial loss and one against the rest",
	Source: "ours, Marteau-Ferey, Bach and Rudi (2019)",
	About: `Both learn the same three fifths of the rows, 3000 at most, with the same 300 centres
and Gaussian kernel. Each takes the λ of its least logarithmic loss on a fifth of the
rows, from 1e-1 to 1e-8 in steps of √10. It goes from the largest down and ends after
three in a row without a gain. Errors are those on the last fifth. "own" is the class
error with the λ of the least class error instead. "CPU" is that of the fit with the λ
of the logarithmic loss. "difference" is that of the multinomial loss from one against
the rest on the same splits, with its standard error. "time" is the ratio of the times.
The classes of the generator are noisy maxima of ten smooth functions. mnist is the test
file. The classes of the other data are the tenths of their target.`,
	Parts:   softmaxParts,
	Repeats: 5,
	Measure: softmaxOrRest,
}

// multiclassWays are compared.
var multiclassWays = []struct {
	name string
	way  falkon.Multiclass
}{{"softmax", falkon.SoftmaxLoss}, {"one against the rest", falkon.OneVsRest}}

func softmaxOrRest(ctx context.Context, env *experiment.Env) (*report.Result, error) {
	r := &report.Result{}
	t := r.Table("softmax", "Test errors and time, means over splits", report.Column{Name: "data"}, report.Column{Name: "n"}, report.Column{Name: "M"}, report.Column{Name: "classes"},
		report.Column{Name: "least λ", Format: "%.0e"}, report.Column{Name: "largest λ", Format: "%.0e"}, report.Column{Name: "class error", Format: "%.4f"}, report.Column{Name: "own", Format: "%.4f"}, report.Column{Name: "log loss", Format: "%.4f"},
		report.Column{Name: "calibration", Format: "%.4f"}, report.Column{Name: "CPU", Unit: "s", Format: "%.2f"})
	d := r.Table("differences", "The multinomial loss less one against the rest", report.Column{Name: "data"}, report.Column{Name: "class error", Format: "%+.4f"}, report.Column{Name: "± of that", Format: "%.4f"},
		report.Column{Name: "own", Format: "%+.4f"}, report.Column{Name: "± of own", Format: "%.4f"},
		report.Column{Name: "log loss", Format: "%+.4f"}, report.Column{Name: "± of this", Format: "%.4f"}, report.Column{Name: "time", Format: "%.2f"})
	return r, eachPart(ctx, env, r, softmaxParts, func(at int, part string) error {
		var runs [2][]multiclassRun // by way
		n, m := 0, env.Pick(50, 300, 500)
		for rep := range env.Repeats {
			train, judge, test, sigma, err := tenClasses(ctx, env, part, rep)
			if err != nil {
				return err
			}
			n = train.Len()
			k, err := kernel.NewGaussian(sigma)
			if err != nil {
				return err
			}
			for w, way := range multiclassWays {
				env.Report(at*env.Repeats+rep, len(softmaxParts)*env.Repeats, "%s, split %d, %s", part, rep+1, way.name)
				run, err := bestLambda(ctx, env, falkon.LogisticParams{Params: falkon.Params{Kernel: k, Centers: m}, Multiclass: way.way}, train, judge, test, env.Derive("softmax", rep))
				if err != nil {
					return err
				}
				runs[w] = append(runs[w], run)
			}
		}
		var times [2]float64
		for w, way := range multiclassWays {
			lambda := each(runs[w], func(r multiclassRun) float64 { return r.lambda })
			times[w] = mean(each(runs[w], func(r multiclassRun) float64 { return r.cpu }))
			t.Add(part, n, m, way.name, slices.Min(lambda), slices.Max(lambda), mean(each(runs[w], multiclassRun.classError)), mean(each(runs[w], multiclassRun.ownError)), mean(each(runs[w], multiclassRun.logLoss)),
				mean(each(runs[w], multiclassRun.calibration)), times[w])
		}
		wrong, wrongError := pairedDifference(each(runs[0], multiclassRun.classError), each(runs[1], multiclassRun.classError))
		own, ownError := pairedDifference(each(runs[0], multiclassRun.ownError), each(runs[1], multiclassRun.ownError))
		loss, lossError := pairedDifference(each(runs[0], multiclassRun.logLoss), each(runs[1], multiclassRun.logLoss))
		d.Add(part, wrong, wrongError, own, ownError, loss, lossError, times[0]/times[1])
		return nil
	})
}

// multiclassRun is the outcome of a split.
type multiclassRun struct {
	lambda, cpu float64
	errs        [3]float64 // by multiclassMeasures
	own         float64    // class error with the λ of the least one
}

var multiclassMeasures = [3]string{"class-error", "log-loss", "calibration-error"}

func (r multiclassRun) classError() float64  { return r.errs[0] }
func (r multiclassRun) ownError() float64    { return r.own }
func (r multiclassRun) logLoss() float64     { return r.errs[1] }
func (r multiclassRun) calibration() float64 { return r.errs[2] }

func each(runs []multiclassRun, of func(multiclassRun) float64) []float64 {
	var out []float64
	for _, r := range runs {
		out = append(out, of(r))
	}
	return out
}

// pairedDifference returns the mean of a − b and its standard error.
func pairedDifference(a, b []float64) (difference, standardError float64) {
	var v []float64
	for i := range a {
		v = append(v, a[i]-b[i])
	}
	return meanOf(v)
}

// bestLambda fits with λ falling from 0.1 and returns the outcome of the one with the least
// logarithmic loss on the rows of judge, and the class error of the one with the least there.
func bestLambda(ctx context.Context, env *experiment.Env, p falkon.LogisticParams, train, judge, test *data.Memory, seed uint64) (best multiclassRun, err error) {
	wrong, loss := descent{least: math.Inf(1)}, descent{least: math.Inf(1)}
	for half := 2; half <= 16 && !(wrong.over() && loss.over()); half++ {
		p.Lambda = math.Pow(10, -float64(half)/2)
		watch := experiment.StartWatch()
		model, err := p.Fit(ctx, train, learners.Options{Workers: env.Workers, Seed: seed})
		if err != nil {
			return best, err
		}
		cpu := watch.CPU()
		judged, err := multiclassErrors(ctx, model, judge)
		if err != nil {
			return best, err
		}
		fewer, less := wrong.falls(judged[0]), loss.falls(judged[1])
		if !fewer && !less {
			continue
		}
		errs, err := multiclassErrors(ctx, model, test)
		if err != nil {
			return best, err
		}
		if fewer {
			best.own = errs[0]
		}
		if less {
			best.lambda, best.cpu, best.errs = p.Lambda, cpu, errs
		}
	}
	return best, nil
}

// descent is a search for the least value that ends after three in a row without a gain.
type descent struct {
	least float64
	worse int
}

func (d *descent) over() bool { return d.worse >= 3 }

// falls reports whether a value is a gain, in a search that is not over.
func (d *descent) falls(v float64) bool {
	if d.over() {
		return false
	}
	if v >= d.least {
		d.worse++
		return false
	}
	d.least, d.worse = v, 0
	return true
}

// multiclassErrors returns the errors of a model on rows.
func multiclassErrors(ctx context.Context, m learners.Model, rows *data.Memory) (errs [3]float64, err error) {
	f, y := make([]float64, len(rows.Targets())), rows.Targets()
	if err := m.Predict(ctx, f, rows); err != nil {
		return errs, err
	}
	s := learners.Scoring{Link: learners.LinkOf(m)}
	for i, name := range multiclassMeasures {
		errs[i] = s.Measure(name)(f, y, 10)
	}
	return errs, nil
}

// tenClasses returns the parts of a split, for training, for the choice of λ and for the
// test, and a length scale.
func tenClasses(ctx context.Context, env *experiment.Env, part string, rep int) (train, judge, test *data.Memory, sigma float64, err error) {
	n := env.Pick(500, 5000, 10_000)
	var all *data.Memory
	switch part {
	case "generator":
		all, err = noisyMaxima(env, n, rep)
		sigma = 2
	case "mnist":
		all, err = digits(ctx, env, n)
		sigma = 5 * 255
	default:
		if all, err = tenthsOf(ctx, env, part, n, rep); err == nil {
			sigma, err = training.MedianDistance(ctx, all, env.Seed)
		}
	}
	if err != nil {
		return nil, nil, nil, 0, err
	}
	parts, err := data.Split(all.Len(), data.Classes(all.Targets(), 10), env.Derive("softmax split", rep), 0.6, 0.2, 0.2)
	if err != nil {
		return nil, nil, nil, 0, err
	}
	var out [3]*data.Memory
	for i, rows := range parts {
		if out[i], err = chosenRows(all, rows); err != nil {
			return nil, nil, nil, 0, err
		}
	}
	return out[0], out[1], out[2], sigma, nil
}

// tenthsOf returns up to n rows of a regression, with the tenths of the target as classes.
// Rows with equal targets have the same class.
func tenthsOf(ctx context.Context, env *experiment.Env, name string, n, rep int) (*data.Memory, error) {
	path := "uci/" + name + ".data.csv.gz"
	if name == "abalone" {
		path = "small_tabular/abalone.csv.gz"
	}
	table, err := env.Table(ctx, dataset.Options{Target: []string{"-1"}, Header: dataset.HeaderNo}, path)
	if err != nil {
		return nil, err
	}
	defer table.Close()
	d, err := training.Prepare(ctx, table, training.Split{}, data.EncodingOptions{Task: data.Regression})
	if err != nil {
		return nil, err
	}
	all, err := data.Load(ctx, d.Train)
	if err == nil {
		all, err = someRows(all, n, env, rep)
	}
	if err != nil {
		return nil, err
	}
	return data.NewMemory(all.Rows(), tenths(all.Targets()), 10)
}

// tenths returns ten columns of ±1 for the tenth of each target.
func tenths(targets []float64) []float64 {
	sorted := slices.Sorted(slices.Values(targets))
	y := slices.Repeat([]float64{-1}, 10*len(targets))
	for i, v := range targets {
		below, _ := slices.BinarySearch(sorted, v) // rows with a smaller target
		y[10*i+10*below/len(targets)] = 1
	}
	return y
}

// digits returns n rows of the test file of MNIST.
func digits(ctx context.Context, env *experiment.Env, n int) (*data.Memory, error) {
	o := dataset.Options{Float32: true, TargetPath: "mnist/t10k-labels-idx1-ubyte.gz"}
	table, err := env.Table(ctx, o, "mnist/t10k-images-idx3-ubyte.gz")
	if err != nil {
		return nil, err
	}
	defer table.Close()
	d, err := training.Prepare(ctx, table, training.Split{}, data.EncodingOptions{KeepInputs: true})
	if err != nil {
		return nil, err
	}
	all, err := data.Load(ctx, d.Train)
	if err != nil {
		return nil, err
	}
	return first(all, n), nil
}

// noisyMaxima returns n rows of ten classes.
func noisyMaxima(env *experiment.Env, n, rep int) (*data.Memory, error) {
	const d, c = 6, 10
	rng := env.Rand("noisy maxima", rep)
	direction := make([]float64, c*d)
	for i := range direction {
		direction[i] = rng.NormFloat64()
	}
	x, y := kernel.NewPoints[float64](n, d, nil), make([]float64, n*c)
	for i := range n {
		row := x.Row(i)
		for k := range row {
			row[k] = rng.NormFloat64()
		}
		best, most := 0, math.Inf(-1)
		for j := range c {
			dot := 0.0
			for k, v := range row {
				dot += direction[j*d+k] * v
			}
			if v := 4*math.Sin(dot/2+float64(j)) - math.Log(rng.ExpFloat64()); v > most {
				best, most = j, v
			}
			y[i*c+j] = -1
		}
		y[i*c+best] = 1
	}
	return data.NewMemory(x, y, c)
}
