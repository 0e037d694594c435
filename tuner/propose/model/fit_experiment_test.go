package model

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/tuner/propose/labtest"
)

// TestFitExperiment compares ways to fit hyper-parameters to many results, half of them
// uniform and half near the optimum. It judges the exact posterior of all results on
// similar points. Set BKB_EXPERIMENT_FIT to the number of seeds to run it.
func TestFitExperiment(t *testing.T) {
	seeds, err := strconv.Atoi(os.Getenv("BKB_EXPERIMENT_FIT"))
	if err != nil {
		t.Skip("takes a minute a seed: BKB_EXPERIMENT_FIT=2 go test -v -run TestFitExperiment ./tuner/propose/model runs it over so many seeds")
	}
	const n, others = 600, 200
	for _, k := range labtest.Tasks(t) {
		if !slices.Contains([]string{"hartmann6", "rosenbrock5", "levy8"}, k.Name) {
			continue
		}
		scores, seconds := make(map[string]float64), make(map[string]float64)
		for seed := range seeds {
			rng := rand.New(rand.NewPCG(uint64(seed), 9))
			d := k.Space.Dim()
			x, y := kernel.NewPoints[float64](n+others, d, nil), make([]float64, n+others)
			top := make([]float64, d)
			least := math.Inf(1)
			for i := range y {
				row := x.Row(i)
				for c := range row {
					row[c] = rng.Float64()
					if i%2 == 1 {
						row[c] = min(max(top[c]+0.1*rng.NormFloat64(), 0), 1)
					}
				}
				c, err := k.Space.Decode(row)
				if err != nil {
					t.Fatal(err)
				}
				v := k.Value(c)
				if y[i] = -v; v < least && i < n {
					least = v
					copy(top, row)
				}
			}
			target := newTarget(y[:n], false, true)
			for i, v := range y {
				y[i] = target.Of(v)
			}
			all := gp.Data{X: x.Slice(0, n), Y: y[:n]}
			subset := func(size, best int) []int {
				order := make([]int, n)
				for i := range order {
					order[i] = i
				}
				slices.SortFunc(order, func(i, j int) int { return map[bool]int{true: -1, false: 1}[y[i] > y[j]] })
				rng.Shuffle(n-best, func(i, j int) { order[best+i], order[best+j] = order[best+j], order[best+i] })
				return order[:size]
			}
			pick := func(rows []int) gp.Data {
				out := gp.Data{X: kernel.NewPoints[float64](len(rows), d, nil)}
				for i, r := range rows {
					copy(out.X.(*kernel.Points[float64]).Row(i), x.Row(r))
					out.Y = append(out.Y, y[r])
				}
				return out
			}
			opts := gp.DimensionScaled(d)
			opts.Starts, opts.MaxIterations, opts.MinNoise, opts.NoiseVariance = 2, fitIterations, 1e-6, 0.01
			for _, v := range []struct {
				name string
				data gp.Data
				o    gp.FitOptions
			}{
				{"160, best third", pick(subset(160, 53)), opts},
				{"160, any", pick(subset(160, 0)), opts},
				{"300, best third", pick(subset(300, 100)), opts},
			} {
				begin := labtest.CPUTime()
				fit, err := gp.Fit(context.Background(), priorKernel(k.Space), v.data, v.o)
				took := labtest.CPUTime() - begin
				if err != nil {
					t.Fatal(v.name, err)
				}
				theta := fit.Kernel.(*kernel.Mixed).Theta()
				theta[0] *= fit.Scale * fit.Scale
				c, err := fit.Kernel.(*kernel.Mixed).WithTheta(theta)
				if err != nil {
					t.Fatal(err)
				}
				noise := fit.NoiseVariance * fit.Scale * fit.Scale
				p, err := gp.NewExact(c, all, gp.Options{NoiseVariance: noise, Mean: fit.Shift})
				if err != nil {
					t.Fatal(err)
				}
				mean, variance, err := p.Predict(x.Slice(n, n+others))
				if err != nil {
					t.Fatal(err)
				}
				for i := range mean {
					s := variance[i] + noise
					scores[v.name] += (math.Log(2*math.Pi*s) + math.Pow(y[n+i]-mean[i], 2)/s) / 2 / float64(others*seeds)
				}
				seconds[v.name] += took.Seconds() / float64(seeds)
			}
		}
		for name, s := range scores {
			t.Logf("%-12s %-16s log loss %7.3f a result, %5.2f s", k.Name, name, s, seconds[name])
		}
	}
}
