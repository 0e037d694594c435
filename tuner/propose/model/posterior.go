package model

import (
	"math"
	"runtime"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/blocked"
	"gonum.org/v1/gonum/floats"
)

// posterior is a sparse posterior (thesis (7.1), as in gp.Sparse) that can be
// given further inducing points one by one. With Ω the precisions of the
// observations, 1/(ξ² + own variance), and residuals counted in where fitc:
//
//	z(u) = L_D⁻¹k_D(u),  V = Σ ω_i z_i z_iᵀ + I = L_V L_Vᵀ,  w = V⁻¹ Σ ω_i r_i z_i
//	μ(u) = m + z(u)ᵀw,   σ²(u) = k(u, u) − ‖z(u)‖² + ‖L_V⁻¹z(u)‖²
//
// A new inducing point borders L_D and L_V, which are else as they were. For
// that the embeddings of observations are kept in a window; of those older than
// it nothing is kept but their part of V, and what they would tell about a new
// inducing point is given up. While all observations are in the window and all
// points are inducing, it is the exact posterior.
//
// All is a function, to the bit, of the sequence of calls.
type posterior struct {
	k     *covariance
	noise float64 // ξ²
	mean  float64 // m
	limit int     // m at most
	fitc  bool

	dim    int
	points []float64 // inducing, m×dim
	prep   kernel.Prepared
	ld, lv []float64 // limit×limit, lower
	b, w   []float64 // length m
	fresh  bool      // w is V⁻¹b
	frozen bool      // pulls without outcome: b and w stay

	xs    []float64 // inputs of the window, dim a row
	z     []float64 // their embeddings, limit a row
	omega []float64
	resid []float64

	room *embedding // shared by copies: one of them is at work at a time
}

// Tolerances of new inducing points: the conditional variance in units of the
// prior variance, and in units of the noise. Below, a point is as good as a
// combination of the others.
const (
	dependent     = 1e-10
	insignificant = 1e-3
)

// sample is one observation.
type sample struct {
	x     []float64
	y     float64
	extra float64 // own variance
	// inferred says that the model itself made y of what was measured elsewhere.
	inferred bool
}

func newPosterior(k *covariance, noise, mean float64, limit int, fitc bool) *posterior {
	return &posterior{
		k: k, noise: noise, mean: mean, limit: limit, fitc: fitc, dim: k.dim(),
		ld: make([]float64, limit*limit), lv: make([]float64, limit*limit), room: new(embedding),
	}
}

// rank is m.
func (p *posterior) rank() int { return len(p.b) }

func (p *posterior) lower(l []float64) blocked.Matrix[float64] {
	m := p.rank()
	return blocked.Matrix[float64]{Rows: m, Cols: m, Stride: p.limit, Data: l}
}

func (p *posterior) rows() *kernel.Points[float64] {
	return kernel.NewPoints(p.rank(), p.dim, p.points)
}

// solveL replaces x by L⁻¹x.
func (p *posterior) solveL(l, x []float64) {
	for i := range x {
		row := l[i*p.limit:]
		x[i] = (x[i] - floats.Dot(row[:i], x[:i])) / row[i]
	}
}

// solveLT replaces x by L⁻ᵀx.
func (p *posterior) solveLT(l, x []float64) {
	for i := len(x) - 1; i >= 0; i-- {
		row := l[i*p.limit:]
		x[i] /= row[i]
		floats.AddScaled(x[:i], -x[i], row[:i])
	}
}

// lift returns an input with all coordinates: one without a fidelity is at the
// full one, 0.
func (p *posterior) lift(u []float64) []float64 {
	if len(u) == p.dim {
		return u
	}
	return append(slices.Clone(u), 0)
}

// liftRows does so with every row.
func (p *posterior) liftRows(x *kernel.Points[float64]) *kernel.Points[float64] {
	if x.Dim() == p.dim {
		return x
	}
	out := kernel.NewPoints[float64](x.Len(), p.dim, nil)
	for i := range x.Len() {
		copy(out.Row(i), x.Row(i))
	}
	return out
}

// embed returns z(u) and the residual k − ‖z‖² ≥ 0.
func (p *posterior) embed(u []float64) (z []float64, res float64) {
	z = make([]float64, p.rank(), p.rank()+1)
	for j := range z {
		z[j] = p.k.factor * p.k.nearness(u, p.points[j*p.dim:][:p.dim])
	}
	p.solveL(p.ld, z)
	return z, max(p.k.factor-floats.Dot(z, z), 0)
}

// precision is ω of an observation with a residual.
func (p *posterior) precision(o sample, res float64) float64 {
	v := p.noise + o.extra
	if p.fitc || p.rank() >= p.limit || p.isReport(o.x) {
		v += res
	}
	return 1 / v
}

// isReport tells whether an input is of a lower fidelity than outcomes.
func (p *posterior) isReport(x []float64) bool {
	d := len(p.k.inverse)
	return len(x) > d && x[d] > 0
}

// grow makes u an inducing point if there is room and it is not a combination of
// the others; z and res are its embedding, and the new one is returned.
func (p *posterior) grow(u, z []float64, res float64) ([]float64, float64) {
	m := p.rank()
	if m >= p.limit || res <= dependent*p.k.factor || res <= insignificant*p.noise {
		return z, res
	}
	root := math.Sqrt(res)
	row := p.ld[m*p.limit:]
	copy(row, z)
	row[m] = root
	// The window's embeddings get a coordinate, and V a row.
	border, corner, sum := make([]float64, m), 1.0, 0.0
	for i, w := range p.omega {
		at := p.z[i*p.limit:]
		v := (p.k.factor*p.k.nearness(u, p.xs[i*p.dim:][:p.dim]) - floats.Dot(at[:m], z)) / root
		at[m] = v
		floats.AddScaled(border, w*v, at[:m])
		corner += w * v * v
		sum += w * v * p.resid[i]
	}
	p.points = append(p.points, u...)
	p.prep = nil
	p.solveL(p.lv, border)
	last := p.lv[m*p.limit:]
	copy(last, border)
	last[m] = math.Sqrt(max(corner-floats.Dot(border, border), 1))
	p.b = append(p.b, sum)
	p.w = append(p.w, 0)
	p.fresh = false
	return append(z, root), 0
}

// observe adds an observation, as an inducing point where there is room. A quarter
// of the room is not for reports: what trials come to is worth more.
func (p *posterior) observe(s sample) {
	s.x = p.lift(s.x)
	z, res := p.embed(s.x)
	if p.rank() < p.limit*3/4 || !p.isReport(s.x) {
		z, res = p.grow(s.x, z, res)
	}
	omega, r := p.precision(s, res), s.y-p.mean
	p.remember(s.x, z, omega, r)
	p.rankOne(z, omega)
	floats.AddScaled(p.b, omega*r, z)
	p.fresh = false
}

// remember puts an observation into the window, while inducing points may come.
func (p *posterior) remember(x, z []float64, omega, r float64) {
	if p.rank() >= p.limit {
		return
	}
	p.xs = append(p.xs, x...)
	at := len(p.z)
	p.z = slices.Grow(p.z, p.limit)[:at+p.limit]
	clear(p.z[at:])
	copy(p.z[at:], z)
	p.omega, p.resid = append(p.omega, omega), append(p.resid, r)
}

// pull adds a trial whose outcome is not known: variances shrink as by an
// observation, means stay. No outcome can be added afterwards.
func (p *posterior) pull(x []float64) {
	p.settle()
	p.frozen = true
	x = p.lift(x)
	z, res := p.embed(x)
	z, res = p.grow(x, z, res)
	omega := p.precision(sample{x: x}, res)
	p.remember(x, z, omega, 0)
	p.rankOne(z, omega)
}

// rankOne replaces L_V by the factor of V + ω z zᵀ, by Givens rotations. A row
// goes through the rotations of all rows above it, one after another; four rows
// go side by side.
func (p *posterior) rankOne(z []float64, omega float64) {
	m := len(z)
	c, s := make([]float64, m), make([]float64, m)
	root := math.Sqrt(omega)
	var t [4]float64
	for i := 0; i < m; i += len(t) {
		n := min(len(t), m-i)
		for r := range n {
			t[r] = root * z[i+r]
		}
		if n == len(t) {
			p.rotate(i, c[:i], s[:i], &t)
		}
		for r := range n {
			row := p.lv[(i+r)*p.limit:][:i+r+1]
			from := i
			if n < len(t) {
				from = 0
			}
			v := t[r]
			for k := from; k < i+r; k++ {
				l := row[k]
				row[k] = c[k]*l + s[k]*v
				v = c[k]*v - s[k]*l
			}
			last := row[i+r]
			h := math.Sqrt(last*last + v*v)
			c[i+r], s[i+r] = last/h, v/h
			row[i+r] = h
		}
	}
}

// rotate applies the rotations c, s of the first rows to rows i … i + 3.
func (p *posterior) rotate(i int, c, s []float64, t *[4]float64) {
	n := len(c)
	s = s[:n]
	r0, r1 := p.lv[i*p.limit:][:n], p.lv[(i+1)*p.limit:][:n]
	r2, r3 := p.lv[(i+2)*p.limit:][:n], p.lv[(i+3)*p.limit:][:n]
	t0, t1, t2, t3 := t[0], t[1], t[2], t[3]
	for k, ck := range c {
		sk := s[k]
		l0, l1, l2, l3 := r0[k], r1[k], r2[k], r3[k]
		r0[k], r1[k] = ck*l0+sk*t0, ck*l1+sk*t1
		r2[k], r3[k] = ck*l2+sk*t2, ck*l3+sk*t3
		t0, t1 = ck*t0-sk*l0, ck*t1-sk*l1
		t2, t3 = ck*t2-sk*l2, ck*t3-sk*l3
	}
	*t = [4]float64{t0, t1, t2, t3}
}

// settle computes w.
func (p *posterior) settle() {
	if p.fresh || p.frozen {
		return
	}
	copy(p.w, p.b)
	p.solveL(p.lv, p.w)
	p.solveLT(p.lv, p.w)
	p.fresh = true
}

// clone returns a copy that shares nothing that changes.
func (p *posterior) clone() *posterior {
	q := *p
	q.points, q.b, q.w = slices.Clone(p.points), slices.Clone(p.b), slices.Clone(p.w)
	q.xs, q.omega, q.resid = slices.Clone(p.xs), slices.Clone(p.omega), slices.Clone(p.resid)
	q.z = slices.Clone(p.z)
	used := p.rank() * p.limit
	q.ld, q.lv = make([]float64, len(p.ld)), make([]float64, len(p.lv))
	copy(q.ld, p.ld[:used])
	copy(q.lv, p.lv[:used])
	return &q
}

// chunk is how many rows are embedded at a time, and fewRows how few go one by
// one.
const (
	chunk   = 512
	fewRows = 4
)

// embedding is room for what embedRows returns.
type embedding struct {
	scratch kernel.Scratch
	z, res  []float64
}

// embedRows returns z of every row, m a row, and the residuals, until it is
// called again. So many goroutines work on it.
func (p *posterior) embedRows(x *kernel.Points[float64], workers int) (z []float64, res []float64) {
	n, m, s := x.Len(), p.rank(), p.room
	s.z, s.res = slices.Grow(s.z[:0], n*m)[:n*m], slices.Grow(s.res[:0], n)[:n]
	z, res = s.z, s.res
	for i := range res {
		res[i] = p.k.factor
	}
	if m == 0 {
		return z, res
	}
	if p.prep == nil {
		p.prep = p.k.Prepare(p.rows())
	}
	p.prep.Fill(z, m, x, 0, n, &s.scratch)
	blocked.SolveLowerRight(workers, true, p.lower(p.ld), blocked.New(n, m, z))
	for i := range res {
		row := z[i*m:][:m]
		res[i] = max(res[i]-floats.Dot(row, row), 0)
	}
	return z, res
}

// worthSharing is how many multiplications there have to be for others to take a part
// of them. An ask of 200 inducing points solves a dozen times for a millisecond or
// less; with two goroutines it took a sixth more processor time and a tenth more on
// the wall (BenchmarkAsk).
const worthSharing = 1 << 26

// workers is how many goroutines embed or predict n rows. It changes no bit.
func (p *posterior) workers(n int) int {
	if n*p.rank()*p.rank() < worthSharing {
		return 1
	}
	return runtime.GOMAXPROCS(0)
}

// predict returns μ and σ² of every row of x.
func (p *posterior) predict(x *kernel.Points[float64]) (mean, variance []float64) {
	p.settle()
	x = p.liftRows(x)
	n, m := x.Len(), p.rank()
	mean, variance = make([]float64, n), make([]float64, n)
	if n <= fewRows {
		t := newProbe(p)
		for i := range n {
			m, sd := t.value(x.Row(i))
			mean[i], variance[i] = m, sd*sd
		}
		return mean, variance
	}
	workers := p.workers(n)
	for from := 0; from < n; from += chunk {
		to := min(from+chunk, n)
		part := x.Slice(from, to).(*kernel.Points[float64])
		z, res := p.embedRows(part, workers)
		for i := range res {
			mean[from+i] = p.mean
			if m > 0 {
				mean[from+i] += floats.Dot(z[i*m:][:m], p.w)
			}
		}
		if m > 0 {
			blocked.SolveLowerRight(workers, true, p.lower(p.lv), blocked.New(to-from, m, z))
		}
		for i, r := range res {
			row := z[i*m:][:m]
			if m > 0 {
				r += floats.Dot(row, row)
			}
			variance[from+i] = max(r, 1e-12*p.k.factor)
		}
	}
	return mean, variance
}

// gain is log det V, the information that the observations have of the process.
func (p *posterior) gain() float64 {
	sum := 0.0
	for i := range p.b {
		sum += 2 * math.Log(p.lv[i*p.limit+i])
	}
	return sum
}
