package papers

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/bkbtuner/bkb/bench/experiment"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/problems"
	"github.com/bkbtuner/bkb/internal/stream"
)

// kernelTable is a space of GPU kernels of which every configuration has been compiled and
// timed many times (Kernel Tuner's cache files).
type kernelTable struct {
	names  []string
	x      []float64   // n×d, in the unit cube
	speed  [][]float64 // for each configuration −log(time/ms), timing by timing
	failed int         // configurations that did not compile or run
}

// readKernelTable reads a table of directory gpu_kernel_tuning. Failed configurations are
// left out and counted. The others come in the order of their names. Constant parameters
// are dropped. Positive ones that span a factor of 8 or more are replaced by their
// logarithms. All are scaled to [0, 1].
func readKernelTable(env *experiment.Env, name string) (*kernelTable, error) {
	file, err := env.KernelCache(name)
	if err != nil {
		return nil, err
	}
	t := &kernelTable{}
	var kept []experiment.KernelRun
	for _, run := range file.Runs {
		speed := speeds(run.Times)
		if len(speed) == 0 {
			t.failed++
			continue
		}
		kept, t.speed = append(kept, run), append(t.speed, speed)
	}
	if len(kept) < 2 {
		return nil, fmt.Errorf("%s: %d configurations ran, and at least 2 are needed", name, len(kept))
	}
	var columns [][]float64
	for i, key := range file.Parameters {
		column, err := unitColumn(kept, i)
		if err != nil {
			return nil, fmt.Errorf("%s, parameter %s: %w", name, key, err)
		}
		if column != nil {
			t.names, columns = append(t.names, key), append(columns, column)
		}
	}
	t.x = make([]float64, 0, len(kept)*len(columns))
	for i := range kept {
		for _, c := range columns {
			t.x = append(t.x, c[i])
		}
	}
	return t, nil
}

// speeds returns −log of the valid times.
func speeds(times []float64) []float64 {
	var out []float64
	for _, v := range times {
		if v > 0 && !math.IsInf(v, 0) {
			out = append(out, -math.Log(v))
		}
	}
	return out
}

// unitColumn returns parameter p scaled to [0, 1], nil if it never varies.
func unitColumn(runs []experiment.KernelRun, p int) ([]float64, error) {
	out := make([]float64, len(runs))
	for i, run := range runs {
		var err error
		if out[i], err = strconv.ParseFloat(run.Values[p], 64); err != nil {
			return nil, err
		}
	}
	low, high := slices.Min(out), slices.Max(out)
	if low == high {
		return nil, nil
	}
	logarithm := low > 0 && high/low >= 8
	for i, v := range out {
		if logarithm {
			out[i] = math.Log(v/low) / math.Log(high/low)
		} else {
			out[i] = (v - low) / (high - low)
		}
	}
	return out, nil
}

// arena makes a bandit problem from the table. Rewards are −log time, standardised over the
// configurations, and a pull draws one of the timings. The seed determines the draws and
// the order of the arms.
func (t *kernelTable) arena(name string, k kernel.Kernel, noise float64, seed uint64) *arena {
	n, d := len(t.speed), len(t.names)
	order := stream.NewPermutation(stream.Derive(seed, "bench order of arms", 0), uint64(n))
	env := &problems.Environment{Dim: d, Points: make([]float64, 0, n*d), Values: make([]float64, n), Seed: seed}
	shift, scale := t.moments()
	measured := make([][]float64, n)
	for i := range n {
		at := int(order.At(uint64(i)))
		env.Points = append(env.Points, t.x[at*d:(at+1)*d]...)
		for _, v := range t.speed[at] {
			measured[i] = append(measured[i], (v-shift)/scale)
		}
		if env.Values[i] = mean(measured[i]); env.Values[i] > env.Values[env.Best] {
			env.Best = i
		}
	}
	return &arena{name: name, env: env, arms: kernel.NewPoints(n, d, env.Points), kernel: k, noise: noise, measured: measured}
}

// moments returns mean and standard deviation of the mean rewards.
func (t *kernelTable) moments() (shift, scale float64) {
	means := make([]float64, len(t.speed))
	for i, v := range t.speed {
		means[i] = mean(v)
	}
	return mean(means), deviation(means)
}

// noise returns the pooled variance of timings of one configuration, in the units
// of the rewards.
func (t *kernelTable) noise() float64 {
	_, scale := t.moments()
	square, free := 0.0, 0
	for _, v := range t.speed {
		s := deviation(v)
		square += s * s * float64(len(v)-1)
		free += len(v) - 1
	}
	return square / float64(max(free, 1)) / (scale * scale)
}

// fit fits a kernel to one timing of each of some configurations chosen at random.
func (t *kernelTable) fit(ctx context.Context, env *experiment.Env, name string, points int) (kernel.Kernel, float64, error) {
	rng, shuffled := env.Rand("kernel fit "+name, 0), t.arena(name, nil, 0, env.Derive("kernel fit "+name, 1))
	points = min(points, len(t.speed))
	y := make([]float64, points)
	for i := range y {
		y[i] = shuffled.measured[i][rng.IntN(len(shuffled.measured[i]))]
	}
	return fitted(ctx, shuffled.arms.Slice(0, points), y, env.Workers)
}
