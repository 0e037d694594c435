package bandit

import (
	"cmp"
	"math"
	"slices"
)

// Hypervolume is the volume between a front and a reference that is worse in each objective, where
// larger is better. The space above the reference that the front leaves undominated is divided into
// boxes, so that the expected gain of a point whose objectives are independent and normal is a sum
// of products (Emmerich, Deutz and Klinkenberg, 2011; Yang, Emmerich, Deutz and Bäck, 2019).
type Hypervolume struct {
	front     [][]float64
	reference []float64
	edges     [][]float64 // of each objective, ascending from the reference to +Inf
	boxes     []int       // of each box and objective, the edges below and above
}

// A front has at most frontSize points, and fewer where these leave more than mostBoxes boxes, which
// take some 20 ms for 1,000 points.
const (
	frontSize = 256
	mostBoxes = 4096
)

// NewHypervolume returns the hypervolume of those points that no other dominates. Of too many it
// takes some that are far from each other.
func NewHypervolume(points [][]float64, reference []float64) *Hypervolume {
	var front [][]float64
	for _, p := range points {
		front = withPoint(front, p, len(reference))
	}
	front = scattered(front, min(len(front), frontSize))
	for n := len(front); ; n /= 2 {
		h := &Hypervolume{front: front[:n], reference: reference}
		if h.cut() || n <= 1 {
			return h
		}
	}
}

// withPoint returns a front with one more point, by the first k objectives.
func withPoint(front [][]float64, p []float64, k int) [][]float64 {
	if covered(front, p, k) {
		return front
	}
	return append(slices.DeleteFunc(slices.Clone(front), func(q []float64) bool { return Covers(p[:k], q) }), p)
}

// covered reports whether one of the points is at least p in the first k objectives.
func covered(points [][]float64, p []float64, k int) bool {
	return slices.ContainsFunc(points, func(q []float64) bool { return Covers(q[:k], p) })
}

// Covers reports whether p is at least q in each objective of p.
func Covers(p, q []float64) bool {
	for j, v := range p {
		if v < q[j] {
			return false
		}
	}
	return true
}

// scattered returns n of the points, each the farthest from those before it, in units of the range of
// each objective.
func scattered(points [][]float64, n int) [][]float64 {
	if n < 2 {
		return points[:n]
	}
	low, high := slices.Clone(points[0]), slices.Clone(points[0])
	for _, p := range points {
		for j, v := range p {
			low[j], high[j] = min(low[j], v), max(high[j], v)
		}
	}
	far := slices.Repeat([]float64{math.Inf(1)}, len(points))
	var out [][]float64
	for last := 0; len(out) < n; {
		out, far[last] = append(out, points[last]), 0
		next := last
		for i, p := range points {
			sum := 0.0
			for j, v := range p {
				if high[j] > low[j] {
					d := (v - out[len(out)-1][j]) / (high[j] - low[j])
					sum += d * d
				}
			}
			if far[i] = min(far[i], sum); far[i] > far[next] {
				next = i
			}
		}
		last = next
	}
	return out
}

// cut makes the edges and boxes. It returns false if the boxes are too many.
func (h *Hypervolume) cut() bool {
	var above [][]float64
	for _, p := range h.front {
		q := slices.Clone(p)
		for j, r := range h.reference {
			q[j] = max(q[j], r)
		}
		above = append(above, q)
	}
	for j, r := range h.reference {
		e := []float64{r, math.Inf(1)}
		for _, p := range above {
			e = append(e, p[j])
		}
		slices.Sort(e)
		h.edges = append(h.edges, slices.Compact(e))
	}
	return h.divide(above, len(h.reference)-1, make([]int, 2*len(h.reference)))
}

// divide adds the boxes above points in objectives 0 to j, within the given edges of the others. Along
// objective j the space is a pile of slabs, in each of which the same points matter.
func (h *Hypervolume) divide(points [][]float64, j int, box []int) bool {
	edge := func(p []float64) int {
		i, _ := slices.BinarySearch(h.edges[j], p[j])
		return i
	}
	box[2*j+1] = len(h.edges[j]) - 1
	if j == 0 {
		box[0] = 0
		for _, p := range points {
			box[0] = max(box[0], edge(p))
		}
		h.boxes = append(h.boxes, box...)
		return len(h.boxes) <= mostBoxes*len(box)
	}
	slab := func(matter [][]float64, low int) bool {
		upper := box[2*j+1]
		if low == upper {
			return true
		}
		box[2*j] = low
		fits := h.divide(matter, j-1, box)
		box[2*j+1] = low
		return fits
	}
	var matter [][]float64
	for _, p := range slices.SortedFunc(slices.Values(points), func(a, b []float64) int { return cmp.Compare(b[j], a[j]) }) {
		if covered(matter, p, j) {
			continue
		}
		if !slab(matter, edge(p)) {
			return false
		}
		matter = withPoint(matter, p, j)
	}
	return slab(matter, 0)
}

// LogGain returns the logarithm of the expected gain in hypervolume of points whose objectives have
// the given means and variances, [j][i] for objective j of point i. Where there is none it returns
// −700 less what all means lack at least of a gain.
func (h *Hypervolume) LogGain(mean, variance [][]float64) []float64 {
	k := len(h.reference)
	over := make([][]float64, k) // E[max(y − edge, 0)]
	for j, e := range h.edges {
		over[j] = make([]float64, len(e))
	}
	out := make([]float64, len(mean[0]))
	for i := range out {
		for j, e := range h.edges {
			sd := math.Sqrt(variance[j][i])
			for n, a := range e[:len(e)-1] {
				over[j][n] = exceeding(a, mean[j][i], sd)
			}
		}
		sum := 0.0
		for b := 0; b < len(h.boxes); b += 2 * k {
			v := 1.0
			for j := range k {
				v *= over[j][h.boxes[b+2*j]] - over[j][h.boxes[b+2*j+1]]
			}
			sum += v
		}
		if sum > 1e-290 {
			out[i] = math.Log(sum)
		} else {
			out[i] = -700 - h.lack(mean, i)
		}
	}
	return out
}

// exceeding returns E[max(y − a, 0)] of a normal y.
func exceeding(a, mean, sd float64) float64 {
	if sd == 0 {
		return max(mean-a, 0)
	}
	z := (mean - a) / sd
	return sd * max(math.Exp(-z*z/2)/math.Sqrt(2*math.Pi)+z*0.5*math.Erfc(-z/math.Sqrt2), 0)
}

// lack returns how much larger all means of point i would have to be for a gain.
func (h *Hypervolume) lack(mean [][]float64, i int) float64 {
	most := 0.0
	for j, r := range h.reference {
		most = max(most, r-mean[j][i])
	}
	for _, p := range h.front {
		least := math.Inf(1)
		for j, v := range p {
			least = min(least, v-mean[j][i])
		}
		most = max(most, least)
	}
	return most
}
