package bandit

import (
	"math"
	"slices"
)

// Evaluation is an input with its value, where larger is better.
type Evaluation struct {
	X []float64
	Y float64
}

const (
	// mostFull is the largest number of coordinates with products of two of them.
	mostFull = 8
	// mostUnexplained is the share of the variance that a quadratic may leave, leaving one out.
	mostUnexplained = 0.3
	// trustedMargin is how far beyond its results a quadratic is trusted, as a share of their range.
	trustedMargin = 0.25
	// ridge keeps a regression with repeated results solvable, as a share of the trace.
	ridge = 1e-10
)

// terms returns the number of terms of a quadratic of d coordinates, with products of two or
// without.
func terms(d int, full bool) int {
	if full {
		return (d + 1) * (d + 2) / 2
	}
	return 2*d + 1
}

// MostOfQuadratic is the largest number of results of a quadratic of d coordinates.
func MostOfQuadratic(d int) int { return 2 * terms(d, d <= mostFull) }

// FitQuadratic returns the quadratic that explains results best, of those with and without products and
// on so many of the best that there are 1.2 to 2 for each term. It is nil if none explains them.
func FitQuadratic(list []Evaluation) *Quadratic {
	var best *Quadratic
	if len(list) == 0 {
		return nil
	}
	d := len(list[0].X)
	for _, full := range []bool{false, true} {
		if full && d > mostFull {
			break
		}
		p := terms(d, full)
		for _, n := range []int{p + max(2, p/5), p + p/2, 2 * p} {
			if n > len(list) {
				break
			}
			if q := regress(list[:n], full); q != nil && q.left < mostUnexplained && (best == nil || q.left < best.left) {
				best = q
			}
		}
	}
	return best
}

// Quadratic is a regression of results on the coordinates z = (x − center)/scale, their squares
// and, if it is full, their products. The result at the center is 0, and the worst is −1.
type Quadratic struct {
	center, scale []float64
	low, high     []float64 // of z
	level         float64
	slope         []float64
	curve         [][]float64 // second derivatives
	left          float64     // share of the variance that is left, leaving one out
}

// regress returns the regression of results, the best of which is the first, by least squares. It
// is nil if the results are equal or differ too much.
func regress(list []Evaluation, full bool) *Quadratic {
	best, d := list[0], len(list[0].X)
	spread := best.Y - list[len(list)-1].Y
	if !(spread > 0 && spread <= math.MaxFloat64) {
		return nil
	}
	q := &Quadratic{center: best.X, scale: make([]float64, d), low: make([]float64, d), high: make([]float64, d), slope: make([]float64, d)}
	for c := range d {
		low, high := best.X[c], best.X[c]
		for _, r := range list {
			low, high = min(low, r.X[c]), max(high, r.X[c])
		}
		if low == high {
			return nil
		}
		q.scale[c] = high - low
		q.low[c] = (max(low-trustedMargin*q.scale[c], 0) - best.X[c]) / q.scale[c]
		q.high[c] = (min(high+trustedMargin*q.scale[c], 1) - best.X[c]) / q.scale[c]
		q.curve = append(q.curve, make([]float64, d))
	}
	p := terms(d, full)
	rows, y, mean := make([][]float64, len(list)), make([]float64, len(list)), 0.0
	gram, w := make([][]float64, p), make([]float64, p)
	for i := range gram {
		gram[i] = make([]float64, p)
	}
	trace := 0.0
	for k, r := range list {
		rows[k], y[k] = q.features(r.X, full), (r.Y-best.Y)/spread
		mean += y[k] / float64(len(list))
		for i, v := range rows[k] {
			w[i] += v * y[k]
			trace += v * v
			for j := range i + 1 {
				gram[i][j] += v * rows[k][j]
			}
		}
	}
	for i := range gram {
		gram[i][i] += ridge * trace
	}
	if !cholesky(gram) {
		return nil
	}
	solveL(gram, w)
	solveLT(gram, w)
	total := 0.0
	for k, row := range rows {
		r := y[k]
		for i, v := range row {
			r -= v * w[i]
		}
		solveL(gram, row)
		lever := 0.0
		for _, v := range row {
			lever += v * v
		}
		r /= max(1-lever, 1e-3)
		q.left += r * r
		total += (y[k] - mean) * (y[k] - mean)
	}
	if q.left /= total; !(q.left >= 0) {
		return nil
	}
	q.level, w = w[0], w[1:]
	for c := range d {
		q.slope[c], q.curve[c][c] = w[c], 2*w[d+c]
	}
	if w = w[2*d:]; full {
		for c := range d {
			for k := c + 1; k < d; k++ {
				q.curve[c][k], q.curve[k][c], w = w[0], w[0], w[1:]
			}
		}
	}
	return q
}

// features returns 1, z, the squares of z, and its products of two.
func (q *Quadratic) features(x []float64, full bool) []float64 {
	d := len(x)
	f := make([]float64, 1+2*d, terms(d, full))
	f[0] = 1
	z := f[1 : 1+d]
	for c := range z {
		z[c] = (x[c] - q.center[c]) / q.scale[c]
		f[1+d+c] = z[c] * z[c]
	}
	if full {
		for c := range z {
			for k := c + 1; k < d; k++ {
				f = append(f, z[c]*z[k])
			}
		}
	}
	return f
}

// At returns the value at x.
func (q *Quadratic) At(x []float64) float64 {
	v, z := q.level, q.features(x, false)[1:len(x)+1]
	for c, s := range z {
		v += s * q.slope[c]
		for k, t := range z {
			v += s * t * q.curve[c][k] / 2
		}
	}
	return v
}

// Top returns where the quadratic is largest, within bounds. That is the stationary point if it
// is a maximum within them. Otherwise it is a point that no single coordinate improves.
func (q *Quadratic) Top() []float64 {
	z := q.stationary()
	if z == nil {
		z = make([]float64, len(q.center))
		for range 200 {
			moved := 0.0
			for c := range z {
				to := q.along(c, z)
				moved, z[c] = max(moved, math.Abs(to-z[c])), to
			}
			if moved < 1e-9 {
				break
			}
		}
	}
	for c := range z {
		z[c] = min(max(q.center[c]+z[c]*q.scale[c], 0), 1)
	}
	return z
}

// stationary returns the maximum if it is within bounds, or nil.
func (q *Quadratic) stationary() []float64 {
	d := len(q.slope)
	h, z := make([][]float64, d), slices.Clone(q.slope)
	for c := range h {
		h[c] = make([]float64, d)
		for k := range c + 1 {
			h[c][k] = -q.curve[c][k]
		}
	}
	if !cholesky(h) {
		return nil
	}
	solveL(h, z)
	solveLT(h, z)
	for c, v := range z {
		if !(v >= q.low[c] && v <= q.high[c]) {
			return nil
		}
	}
	return z
}

// along returns the best value of one coordinate of z.
func (q *Quadratic) along(c int, z []float64) float64 {
	slope, bend := q.slope[c], q.curve[c][c]
	for k, v := range z {
		slope += v * q.curve[c][k]
	}
	if bend < 0 {
		return min(max(z[c]-slope/bend, q.low[c]), q.high[c])
	}
	gain := func(to float64) float64 { return (to - z[c]) * (slope + bend*(to-z[c])/2) }
	if gain(q.low[c]) > gain(q.high[c]) {
		return q.low[c]
	}
	return q.high[c]
}

// The algebra here is in plain loops, since a library may round differently with other vector
// instructions, and suggestions must not depend on these.

// cholesky factors a symmetric matrix, of which only the lower triangle is read, in place. It
// reports whether it is positive definite.
func cholesky(a [][]float64) bool {
	for j, row := range a {
		for _, v := range row[:j] {
			row[j] -= v * v
		}
		if !(row[j] > 0 && row[j] < math.MaxFloat64) {
			return false
		}
		row[j] = math.Sqrt(row[j])
		for _, below := range a[j+1:] {
			for k, v := range row[:j] {
				below[j] -= below[k] * v
			}
			below[j] /= row[j]
		}
	}
	return true
}

// solveL sets b to L⁻¹b.
func solveL(l [][]float64, b []float64) {
	for i, row := range l {
		for k, v := range row[:i] {
			b[i] -= v * b[k]
		}
		b[i] /= row[i]
	}
}

// solveLT sets b to L⁻ᵀb.
func solveLT(l [][]float64, b []float64) {
	for i := len(l) - 1; i >= 0; i-- {
		b[i] /= l[i][i]
		for k, v := range l[i][:i] {
			b[k] -= v * b[i]
		}
	}
}
