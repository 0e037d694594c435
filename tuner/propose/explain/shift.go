package explain

import (
	"math"
	"slices"

	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// cells is how many cells the range of a parameter has in [Shift], unless it has fewer values.
const cells = 32

// Sample is a completed trial with its encoded configuration.
type Sample struct {
	X      []float64
	Active []bool  // of each coordinate
	Value  float64 // the objective, not NaN
}

// Shift returns the importance of each coordinate of a space by the part of samples with the
// best values, as shares of the sum. It is 0 for all coordinates if there are fewer than ten
// samples or no shift. At least two samples count as best, and of equal values the first.
func Shift(sp *space.Space, samples []Sample, direction study.Direction, part float64) []float64 {
	axes := sp.Axes()
	out := make([]float64, len(axes))
	if len(samples) < 10 {
		return out
	}
	order := make([]int, len(samples))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return direction.Compare(samples[a].Value, samples[b].Value) })
	best := make([]bool, len(samples))
	for _, i := range order[:max(int(math.Round(part*float64(len(samples)))), 2)] {
		best[i] = true
	}
	sum := 0.0
	for j, a := range axes {
		n := cells
		if a.Levels > 0 && a.Levels < cells {
			n = int(a.Levels)
		}
		all, top := make([]float64, n), make([]float64, n)
		active := 0
		for i, s := range samples {
			if !s.Active[j] {
				continue
			}
			active++
			c := min(int(s.X[j]*float64(n)), n-1)
			all[c]++
			if best[i] {
				top[c]++
			}
		}
		if smooth := a.Ordered && n == cells; smooth {
			all, top = smoothed(all), smoothed(top)
		}
		out[j] = divergence(all, top) * float64(active) / float64(len(samples))
		sum += out[j]
	}
	for j := range out {
		if sum > 0 {
			out[j] /= sum
		}
	}
	return out
}

// divergence is the Pearson divergence of the distribution of counts top from that of all.
// One count, spread evenly, is added to each, so that an empty cell means little.
func divergence(all, top []float64) (d float64) {
	total := func(counts []float64) (t float64) {
		for _, c := range counts {
			t += c
		}
		return t + 1
	}
	ta, tt, n := total(all), total(top), float64(len(all))
	if tt == 1 {
		return 0 // none of the best has the parameter
	}
	for c := range all {
		pa, pt := (all[c]+1/n)/ta, (top[c]+1/n)/tt
		d += (pt/pa - 1) * (pt/pa - 1) * pa
	}
	return d
}

// smoothed spreads each count over its neighbours by a normal density, whose width is that
// of Scott's rule for the counts, but at least half a cell. The sum stays.
func smoothed(counts []float64) []float64 {
	n, mean, square := 0.0, 0.0, 0.0
	for c, k := range counts {
		n += k
		mean += k * float64(c)
	}
	if n == 0 {
		return counts
	}
	mean /= n
	for c, k := range counts {
		square += k * (float64(c) - mean) * (float64(c) - mean)
	}
	width := max(1.06*math.Sqrt(square/n)*math.Pow(n, -0.2), 0.5)
	out := make([]float64, len(counts))
	weights := make([]float64, len(counts))
	for c, k := range counts {
		if k == 0 {
			continue
		}
		sum := 0.0
		for at := range weights {
			z := float64(at-c) / width
			weights[at] = math.Exp(-z * z / 2)
			sum += weights[at]
		}
		for at, w := range weights {
			out[at] += k * w / sum
		}
	}
	return out
}
