package papers

import (
	"context"
	"math"

	"github.com/bkbtuner/bkb/bench"
	"github.com/bkbtuner/bkb/figure"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/dataset"
	"github.com/bkbtuner/bkb/learners/falkon"
	"github.com/bkbtuner/bkb/learners/training"
)

// softmaxParts are problems of ten classes.
var softmaxParts = []string{"generator", "mnist"}

// softmax compares two ways to learn many classes.
var softmax = bench.Experiment{
	Name:   "softmax",
	Title:  "Logistic FALKON for ten classes, by the multinomial loss and one against the rest",
	Source: "ours, Marteau-Ferey, Bach and Rudi (2019)",
	About: `Both learn the same four fifths of the rows, with the same centres, Gaussian kernel
and λ. The table has means over the splits of the class error, the logarithmic loss and
the calibration error on the rest, and of the CPU time of the fit. mnist is the 10,000
rows of the test file. The classes of the generator are noisy maxima of ten smooth
functions.`,
	Parts:   softmaxParts,
	Repeats: 5,
	Measure: softmaxOrRest,
}

func softmaxOrRest(ctx context.Context, env *bench.Env) (*figure.Result, error) {
	r := &figure.Result{}
	t := r.Table("softmax", "Test errors and time, means over splits", figure.Column{Name: "data"}, figure.Column{Name: "n"}, figure.Column{Name: "M"}, figure.Column{Name: "λ"}, figure.Column{Name: "classes"},
		figure.Column{Name: "class error", Format: "%.4f"}, figure.Column{Name: "log loss", Format: "%.4f"}, figure.Column{Name: "calibration", Format: "%.4f"}, figure.Column{Name: "CPU", Unit: "s", Format: "%.2f"})
	ways := []struct {
		name string
		way  falkon.Multiclass
	}{{"softmax", falkon.SoftmaxLoss}, {"one against the rest", falkon.OneVsRest}}
	lambdas := []float64{1e-4, 1e-6}
	return r, eachPart(ctx, env, r, softmaxParts, func(at int, part string) error {
		var sums [2][2][4]float64 // by λ and way
		n, m := 0, env.Pick(50, 500, 2000)
		for rep := range env.Repeats {
			env.Report(at*env.Repeats+rep, len(softmaxParts)*env.Repeats, "%s, split %d", part, rep+1)
			train, test, sigma, err := tenClasses(ctx, env, part, rep)
			if err != nil {
				return err
			}
			n = train.Len()
			k, err := kernel.NewGaussian(sigma)
			if err != nil {
				return err
			}
			for l, lambda := range lambdas {
				for w, way := range ways {
					p := falkon.LogisticParams{Kernel: k, Lambda: lambda, Centers: m, Multiclass: way.way}
					watch := bench.StartWatch()
					model, err := p.Fit(ctx, train, learners.Options{Workers: env.Workers, Seed: env.Derive("softmax", rep)})
					if err != nil {
						return err
					}
					cpu := watch.CPU()
					f, y := make([]float64, len(test.Targets())), test.Targets()
					if err := model.Predict(ctx, f, test); err != nil {
						return err
					}
					s := learners.Scoring{Link: learners.LinkOf(model)}
					for i, v := range []float64{s.Measure("class-error")(f, y, 10), s.Measure("log-loss")(f, y, 10), s.Measure("calibration-error")(f, y, 10), cpu} {
						sums[l][w][i] += v / float64(env.Repeats)
					}
				}
			}
		}
		for l, lambda := range lambdas {
			for w, way := range ways {
				v := sums[l][w]
				t.Add(part, n, m, lambda, way.name, v[0], v[1], v[2], v[3])
			}
		}
		return nil
	})
}

// tenClasses returns the parts of a split and a length scale.
func tenClasses(ctx context.Context, env *bench.Env, part string, rep int) (train, test *data.Memory, sigma float64, err error) {
	n := env.Pick(500, 10_000, 10_000)
	var all *data.Memory
	if part == "generator" {
		all, err = noisyMaxima(env, n, rep)
		sigma = 2
	} else {
		all, err = digits(ctx, env, n)
		sigma = 5 * 255
	}
	if err != nil {
		return nil, nil, 0, err
	}
	parts, err := data.StratifiedSplit(data.Classes(all.Targets(), 10), env.Derive("softmax split", rep), 0.8, 0.2)
	if err != nil {
		return nil, nil, 0, err
	}
	var out [2]*data.Memory
	for i, rows := range parts {
		src, err := data.Subset(all, rows)
		if err != nil {
			return nil, nil, 0, err
		}
		if out[i], err = data.Load(ctx, src); err != nil {
			return nil, nil, 0, err
		}
	}
	return out[0], out[1], sigma, nil
}

// digits returns n rows of the test file of MNIST.
func digits(ctx context.Context, env *bench.Env, n int) (*data.Memory, error) {
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
func noisyMaxima(env *bench.Env, n, rep int) (*data.Memory, error) {
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
