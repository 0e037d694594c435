package bbob

import (
	"cmp"
	"math"
	"slices"
)

// schwefelOptimum is the argument where x·sin√|x| is largest within [−500, 500], divided by
// 100.
const schwefelOptimum = 4.2096874633

// schwefel is f20.
func schwefel(d int, seed int64) (func(x []float64) float64, []float64) {
	lambda, sign, opt := powers(math.Sqrt(10), d), make([]float64, d), make([]float64, d)
	for i, u := range uniforms(d, seed) {
		if sign[i] = 1; u < 0.5 {
			sign[i] = -1
		}
		opt[i] = sign[i] * schwefelOptimum / 2
	}
	return func(x []float64) float64 {
		sum, pen, before := 0.0, 0.0, 0.0
		for i, v := range x {
			v *= 2 * sign[i]
			shift := v - schwefelOptimum
			if i > 0 {
				shift += 0.25 * before
			}
			before = v - schwefelOptimum
			z := 100 * (lambda[i]*shift + schwefelOptimum)
			sum += z * math.Sin(math.Sqrt(math.Abs(z)))
			if over := math.Abs(z) - 500; over > 0 {
				pen += over * over
			}
		}
		return 0.01 * (418.9828872724339 - sum/float64(d) + pen)
	}, opt
}

// gallagher is f21 (101 peaks) and f22 (21 peaks).
func gallagher(peaks int) recipe {
	return func(d int, seed int64) (func(x []float64) float64, []float64) {
		r, g := rotation(d, seed), newPeaks(peaks, d, seed)
		turned := make([][]float64, peaks)
		for p, centre := range g.centres {
			turned[p] = r.times(centre)
		}
		return func(x []float64) float64 {
			highest, z := 0.0, r.times(x)
			for p, centre := range turned {
				distance := 0.0
				for i, w := range g.scales[p] {
					v := z[i] - centre[i]
					distance += w * v * v
				}
				highest = max(highest, g.heights[p]*math.Exp(-0.5/float64(d)*distance))
			}
			v := oscillate(10 - highest)
			return v*v + outside(x)
		}, g.centres[0]
	}
}

// peakSet is the peaks of f21 and f22, the global one first.
type peakSet struct {
	heights []float64
	centres [][]float64
	scales  [][]float64 // of squared distances along the rotated coordinates
}

// newPeaks draws peaks. The global one has height 10, the others 1.1 … 9.1 with
// conditions 1 … 1000 in random order.
func newPeaks(peaks, d int, seed int64) *peakSet {
	width, condition := 9.8, 1000.0 // of the global peak
	if peaks > 21 {
		width, condition = 10, math.Sqrt(1000)
	}
	g := &peakSet{heights: make([]float64, peaks), centres: make([][]float64, peaks), scales: make([][]float64, peaks)}
	order, places := ranking(uniforms(peaks-1, seed)), uniforms(peaks*d, seed)
	for p := range peaks {
		g.heights[p] = 10
		if p > 0 {
			g.heights[p] = 1.1 + 8*float64(p-1)/float64(peaks-2)
			condition = math.Pow(1000, float64(order[p-1])/float64(peaks-2))
		}
		g.scales[p], g.centres[p] = make([]float64, d), make([]float64, d)
		for i, rank := range ranking(uniforms(d, seed+int64(1000*p))) {
			g.scales[p][i] = math.Pow(condition, part(rank, d)-0.5)
			g.centres[p][i] = width*places[p*d+i] - width/2
			if p == 0 {
				g.centres[p][i] *= 0.8
			}
		}
	}
	return g
}

// ranking returns the indices of u in the order of its values.
func ranking(u []float64) []int {
	order := make([]int, len(u))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(u[a], u[b]) })
	return order
}

// katsuura is f23.
func katsuura(d int, seed int64) (func(x []float64) float64, []float64) {
	opt, power := place(d, seed), 10/math.Pow(float64(d), 1.2)
	m := sandwich(rotation(d, seed+turn), powers(10, d), rotation(d, seed))
	scale := 10 / float64(d*d)
	return func(x []float64) float64 {
		product := 1.0
		for i, v := range m.times(minus(x, opt)) {
			sum := 0.0
			for j := 1; j <= 32; j++ {
				b := math.Ldexp(1, j)
				sum += math.Abs(b*v-round(b*v)) / b
			}
			product *= 1 + float64(i+1)*sum
		}
		return scale*(math.Pow(product, power)-1) + outside(x)
	}, opt
}

// lunacek is f24.
func lunacek(d int, seed int64) (func(x []float64) float64, []float64) {
	const mu0 = 2.5
	n := float64(d)
	s := 1 - 0.5/(math.Sqrt(n+20)-4.1)
	mu1 := -math.Sqrt((mu0*mu0 - 1) / s)
	sign, opt := make([]float64, d), make([]float64, d)
	for i, v := range normals(d, seed) {
		if sign[i] = 1; v < 0 {
			sign[i] = -1
		}
		opt[i] = sign[i] * mu0 / 2
	}
	m := sandwich(rotation(d, seed+turn), powers(10, d), rotation(d, seed))
	return func(x []float64) float64 {
		near, far, z := 0.0, 0.0, make([]float64, d)
		for i, v := range x {
			v *= 2 * sign[i]
			z[i] = v - mu0
			near += z[i] * z[i]
			far += (v - mu1) * (v - mu1)
		}
		cosines := 0.0
		for _, v := range m.times(z) {
			cosines += math.Cos(2 * math.Pi * v)
		}
		return min(near, n+s*far) + 10*(n-cosines) + 1e4*outside(x)
	}, opt
}
