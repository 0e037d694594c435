package bench

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/problems"
	"github.com/bkbtuner/bkb/internal/stream"
)

// kernelTable is a space of GPU kernels of which every configuration has been
// compiled and timed, many times each (Kernel Tuner's cache files).
type kernelTable struct {
	names  []string
	x      []float64   // n×d, in the unit cube
	speed  [][]float64 // for each configuration −log(time/ms), timing by timing
	failed int         // configurations that did not compile or run
}

// kernelEntry is a configuration in such a file. Where it failed, its time is a
// word.
type kernelEntry struct {
	params map[string]float64
	times  []float64
}

func (e *kernelEntry) UnmarshalJSON(text []byte) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	e.params = map[string]float64{}
	for name, raw := range all {
		var v float64
		if json.Unmarshal(raw, &v) == nil {
			e.params[name] = v
		}
	}
	if _, ok := e.params["time"]; !ok {
		return nil
	}
	return json.Unmarshal(all["times"], &e.times)
}

// readKernelTable reads a table of folder gpu_kernel_tuning. Configurations that
// failed are left out and counted; the others come in the order of their names.
// Parameters that are the same everywhere are dropped; positive ones that span a
// factor of 8 or more are taken by their logarithms; all are scaled to [0, 1].
func readKernelTable(env *Env, name string) (*kernelTable, error) {
	path, err := env.File("gpu_kernel_tuning/" + name + ".json.gz")
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var file struct {
		Keys  []string               `json:"tune_params_keys"`
		Cache map[string]kernelEntry `json:"cache"`
	}
	if err := json.NewDecoder(unzipped).Decode(&file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	t := &kernelTable{}
	var kept []kernelEntry
	for _, config := range slices.Sorted(maps.Keys(file.Cache)) {
		e := file.Cache[config]
		speed := speeds(e.times)
		if len(speed) == 0 {
			t.failed++
			continue
		}
		kept, t.speed = append(kept, e), append(t.speed, speed)
	}
	if len(kept) < 2 {
		return nil, fmt.Errorf("%s: %d configurations that ran, 2 or more wanted", path, len(kept))
	}
	var columns [][]float64
	for _, key := range file.Keys {
		if column := unitColumn(kept, key); column != nil {
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

// speeds returns −log of the times, without those that are none.
func speeds(times []float64) []float64 {
	var out []float64
	for _, v := range times {
		if v > 0 && !math.IsInf(v, 0) {
			out = append(out, -math.Log(v))
		}
	}
	return out
}

// unitColumn returns a parameter scaled to [0, 1], nil if it never varies.
func unitColumn(entries []kernelEntry, key string) []float64 {
	out := make([]float64, len(entries))
	for i, e := range entries {
		out[i] = e.params[key]
	}
	low, high := slices.Min(out), slices.Max(out)
	if low == high {
		return nil
	}
	logarithm := low > 0 && high/low >= 8
	for i, v := range out {
		if logarithm {
			out[i] = math.Log(v/low) / math.Log(high/low)
		} else {
			out[i] = (v - low) / (high - low)
		}
	}
	return out
}

// arena makes a bandit problem of the table: rewards are −log time, standardised
// over the configurations, and a pull draws one of the timings. The seed decides
// on the draws and on the order of the arms.
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
func (t *kernelTable) fit(ctx context.Context, env *Env, name string, points int) (kernel.Kernel, float64, error) {
	rng, shuffled := env.Rand("kernel fit "+name, 0), t.arena(name, nil, 0, env.Derive("kernel fit "+name, 1))
	points = min(points, len(t.speed))
	y := make([]float64, points)
	for i := range y {
		y[i] = shuffled.measured[i][rng.IntN(len(shuffled.measured[i]))]
	}
	return fitted(ctx, shuffled.arms.Slice(0, points), y, env.Workers)
}
