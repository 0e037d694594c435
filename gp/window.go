package gp

import (
	"slices"

	"gonum.org/v1/gonum/floats"
)

// window has the embeddings of consecutive points, first … first + len − 1, and the
// data that a new inducing point needs of them. Older points are only in V and do not
// contribute to a new inducing point.
type window struct {
	first, stride int
	z             []float64 // rows of length m, stride apart
	omega, resid  []float64 // W and r of every point
	held          []float64 // W of its pending pulls, nil where there are none
	prior, res    []float64 // k(x, x), and k(x, x) − ‖z‖²
	xs            []float64 // inputs, where they are dense
	shared        bool      // with the posterior from which this one was forked
}

func (w *window) len() int { return len(w.omega) }

// row returns the embedding of the window's i-th point, with room behind it.
func (w *window) row(i int) []float64 { return w.z[i*w.stride : (i+1)*w.stride] }

// at returns the place of a point in the window.
func (w *window) at(point int) (i int, ok bool) {
	i = point - w.first
	return i, i >= 0 && i < w.len()
}

// unshare copies the window, so that it can be changed.
func (w *window) unshare() {
	if !w.shared {
		return
	}
	w.shared = false
	n := w.len()
	for _, v := range []*[]float64{&w.z, &w.omega, &w.resid, &w.prior, &w.res, &w.xs} {
		if n > 0 {
			*v = withRoom(*v, len(*v)/n*spareRows)
		}
	}
	w.held = slices.Clone(w.held)
}

// add puts the next point into the window.
func (w *window) add(z, x []float64, omega, resid, prior, res float64) {
	w.unshare()
	w.reserve(len(z))
	at := len(w.z)
	w.z = slices.Grow(w.z, w.stride)[:at+w.stride]
	clear(w.z[at:])
	copy(w.z[at:], z)
	w.xs = append(w.xs, x...)
	w.omega, w.resid = append(w.omega, omega), append(w.resid, resid)
	w.prior, w.res = append(w.prior, prior), append(w.res, res)
	if w.held != nil {
		w.held = append(w.held, 0)
	}
}

// set replaces weight and residual target of a point, if it is in the window.
func (w *window) set(point int, omega, resid float64) {
	if i, ok := w.at(point); ok {
		w.unshare()
		w.omega[i], w.resid[i] = omega, resid
	}
}

// hold replaces the weight of a point's pending pulls.
func (w *window) hold(point int, omega float64) {
	i, ok := w.at(point)
	if !ok {
		return
	}
	w.unshare()
	if w.held == nil {
		w.held = make([]float64, w.len())
	}
	w.held[i] = omega
}

// reserve makes room for embeddings of length m.
func (w *window) reserve(m int) {
	if m <= w.stride {
		return
	}
	stride := max(m, w.stride+w.stride/2, 16)
	z := make([]float64, w.len()*stride)
	for i := range w.len() {
		copy(z[i*stride:], w.row(i))
	}
	w.z, w.stride = z, stride
}

// dense returns rows i0 ≤ i < i1 without the room behind them, for m coordinates.
func (w *window) dense(i0, i1, m int) []float64 {
	out := make([]float64, 0, (i1-i0)*m)
	for i := i0; i < i1; i++ {
		out = append(out, w.row(i)[:m]...)
	}
	return out
}

// widen gives every embedding its coordinate m, given k(x, d) for a new inducing
// point d with embedding z and residual root², and returns
//
//	Σ ω z₊ z,  1 + Σ ω z₊²,  Σ ω r z₊
func (w *window) widen(column, z []float64, root float64) (border []float64, corner, sum float64) {
	m := len(z)
	w.unshare()
	w.reserve(m + 1)
	border, corner = make([]float64, m), 1
	for i, k := range column {
		at := w.row(i)
		v := (k - floats.Dot(at[:m], z)) / root
		at[m] = v
		w.res[i] = max(w.res[i]-v*v, 0)
		floats.AddScaled(border, w.omega[i]*v, at[:m])
		corner += w.omega[i] * v * v
		sum += w.omega[i] * v * w.resid[i]
	}
	return border, corner, sum
}
