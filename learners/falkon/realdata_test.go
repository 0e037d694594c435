package falkon

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/internal/datatest"
	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/dataset"
	"github.com/bkbtuner/bkb/learners/krr"
	"github.com/bkbtuner/bkb/sketch"
)

// encoded opens two files of the same columns, with z-scores by the first.
func encoded(t testing.TB, dir, train, test, trainTargets, testTargets, target string) (data.Source, data.Source) {
	t.Helper()
	open := func(path, targets string) *dataset.Table {
		o := dataset.Options{}
		if targets != "" {
			o.TargetPath = filepath.Join(dir, targets)
		} else {
			o.Target = []string{target}
		}
		return must(dataset.Open(background, o, filepath.Join(dir, path)))
	}
	first := open(train, trainTargets)
	e := must(first.FitEncoding(background, nil, data.EncodingOptions{Task: data.Classification}))
	return must(first.Encode(background, e)), must(open(test, testTargets).Encode(background, e))
}

func higgs(t testing.TB) (train, test data.Source) {
	return encoded(t, datatest.Folder(t), "higgs_h2o15k/higgs_train_10k.csv.gz", "higgs_h2o15k/higgs_test_5k.csv.gz", "", "", "1")
}

func susy(t testing.TB) (train, test data.Source) {
	return encoded(t, datatest.Folder(t), "susy_10k/susy_10Kn_train.csv.gz", "susy_10k/susy_10Kn_test.csv.gz",
		"susy_10k/susy_10Kn_train_label.csv.gz", "susy_10k/susy_10Kn_test_label.csv.gz", "")
}

func susyLike(t testing.TB) (train, test data.Source) {
	t.Helper()
	p := data.SUSYLike{Seed: 9}
	return must(data.Load(background, must(data.Generate[float64](p, 0, 10_000)))),
		must(data.Load(background, must(data.Generate[float64](p, 1<<40, 3_000))))
}

// trace holds AUC, objective and residual on test data after each iteration.
type trace struct{ auc, objective, residual []float64 }

func traceOf(t testing.TB, e learners.Estimator, train, test data.Source, seed uint64) (trace, learners.Model) {
	t.Helper()
	var out trace
	m, err := e.Fit(background, train, learners.Options{
		Seed: seed, Validation: test,
		Measure: func(f, y []float64, c int) float64 {
			out.auc = append(out.auc, learners.AUC(f, y, c))
			return -float64(len(out.auc)) // the last iterate is the model
		},
		Progress: func(p learners.Progress) error {
			out.objective = append(out.objective, p.Objective)
			out.residual = append(out.residual, p.Residual)
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return out, m
}

// meanAUC returns the mean AUC of FALKON-BLESS after 5 iterations and of FALKON with as
// many uniform centres after 8, and the centres of the last seed.
func meanAUC(t testing.TB, train, test data.Source, k kernel.Kernel, blessLambda, lambda float64, seeds uint64) (bless, uniform float64, centers int) {
	t.Helper()
	for seed := range seeds {
		b, m := traceOf(t, Params{Kernel: k, Lambda: lambda, SamplerLambda: blessLambda, Sampler: sketch.BLESS{}, Iterations: 5}, train, test, seed)
		centers = m.(*learners.Expansion).Centers().Len()
		u, _ := traceOf(t, Params{Kernel: k, Lambda: lambda, Centers: centers, Iterations: 8}, train, test, seed)
		bless += b.auc[4] / float64(seeds)
		uniform += u.auc[7] / float64(seeds)
	}
	return bless, uniform, centers
}

// This is figures 5.4 and 5.5 in small. On HIGGS and on data like SUSY, FALKON-BLESS
// after 5 iterations is at least as good as FALKON with as many uniform centres after
// 8. It is so where λ is small, 10⁻³ of BLESS's λ or less. Near BLESS's λ both are done
// by then.
func TestBLESSSavesIterations(t *testing.T) {
	racetest.Alone(t)
	for _, c := range []struct {
		name                 string
		data                 func(testing.TB) (train, test data.Source)
		width, bless, lambda float64
	}{
		{"like SUSY", susyLike, 4, 2e-4, 1e-8},
		{"HIGGS", higgs, 10, 1e-3, 1e-6},
		{"SUSY", susy, 3, 2e-4, 1e-7},
	} {
		t.Run(c.name, func(t *testing.T) {
			train, test := c.data(t)
			bless, uniform, m := meanAUC(t, train, test, kerneltest.Gaussian(c.width), c.bless, c.lambda, 1)
			t.Logf("AUC %.4f after 5 iterations with BLESS, %.4f after 8 with uniform centres (M = %d)", bless, uniform, m)
			if bless < uniform {
				t.Error("BLESS saves no iterations")
			}
		})
	}
}

// FALKON and logistic FALKON learn SUSY and HIGGS with the errors in the manifest of
// the data, or better.
func TestRealClasses(t *testing.T) {
	racetest.Alone(t)
	for _, c := range []struct {
		name  string
		data  func(testing.TB) (train, test data.Source)
		width float64
		error float64
	}{
		{"SUSY", susy, 3, 0.22},
		{"HIGGS", higgs, 7, 0.345},
	} {
		t.Run(c.name, func(t *testing.T) {
			train, test := c.data(t)
			k := kerneltest.Gaussian(c.width)
			y := must(learners.Targets(background, test))
			for name, e := range map[string]learners.Estimator{
				"squared":  Params{Kernel: k, Lambda: 1e-4, Centers: 400},
				"logistic": LogisticParams{Params: Params{Kernel: k, Lambda: 1e-4, Centers: 400}},
			} {
				m := must(e.Fit(background, train, learners.Options{}))
				f := make([]float64, len(y))
				if err := m.Predict(background, f, test); err != nil {
					t.Fatal(err)
				}
				err := learners.ClassError(f, y, 1)
				t.Logf("%s loss: class error %.4f, AUC %.4f, log loss %.4f", name, err, learners.AUC(f, y, 1), (learners.Scoring{Link: learners.LinkOf(m)}).Measure("log-loss")(f, y, 1))
				if err > c.error {
					t.Errorf("%s loss: class error %.4f", name, err)
				}
			}
		})
	}
}

// Both have the same rows, split and tuning over a path of λ. The test error of FALKON
// is within 2 % of that of exact kernel ridge regression, with half as many centres as
// rows, and fewer. M is in the log.
func TestAsGoodAsExactRidge(t *testing.T) {
	racetest.Alone(t)
	dir := datatest.Folder(t)
	lambdas := []float64{1e-2, 1e-3, 1e-4, 1e-5, 1e-6}
	for _, c := range []struct {
		name    string
		centers int
	}{{"concrete", 400}, {"airfoil", 600}, {"energy", 350}} {
		t.Run(c.name, func(t *testing.T) {
			table := must(dataset.Open(background, dataset.Options{}, filepath.Join(dir, "uci", c.name+".data.csv.gz")))
			parts := must(data.Split(table.Len(), nil, 1, 0.7, 0.15, 0.15))
			e := must(table.FitEncoding(background, parts[0], data.EncodingOptions{Task: data.Regression}))
			all := must(table.Encode(background, e))
			var part [3]data.Source
			for i := range part {
				part[i] = must(data.Subset(all, parts[i]))
			}
			k := kerneltest.Gaussian(float64(all.Dim()) / 3)
			best := func(of func(lambda float64) learners.Estimator) (best learners.Model) {
				least := math.Inf(1)
				for _, lambda := range lambdas {
					m := must(of(lambda).Fit(background, part[0], learners.Options{}))
					if v := errorOf(t, m, part[1]); v < least {
						best, least = m, v
					}
				}
				return best
			}
			falkon := best(func(lambda float64) learners.Estimator {
				return Params{Kernel: k, Lambda: lambda, Centers: c.centers, Iterations: 50}
			})
			exact := best(func(lambda float64) learners.Estimator { return krr.Params{Kernel: k, Lambda: lambda} })
			f, r := errorOf(t, falkon, part[2]), errorOf(t, exact, part[2])
			t.Logf("n = %d, M = %d: RMSE %.4f of FALKON, %.4f of exact ridge regression (%+.1f %%)", part[0].Len(), c.centers, f, r, 100*(f/r-1))
			if f > 1.02*r {
				t.Error("FALKON is more than 2 % behind")
			}
		})
	}
}

// errorOf is the RMSE of m on src.
func errorOf(t testing.TB, m learners.Model, src data.Source) float64 {
	t.Helper()
	y := must(learners.Targets(background, src))
	f := make([]float64, len(y))
	if err := m.Predict(background, f, src); err != nil {
		t.Fatal(err)
	}
	return learners.RMSE(f, y, src.Outputs())
}
