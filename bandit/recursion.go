package bandit

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/inorder"
)

// recursion is the exact posterior of A arms after n pulls, by the rows v_1 … v_n of
// L⁻¹K(X, arms), where LLᵀ = K(X, X) + λI. A pull of arm a adds
//
//	l = (v_1[a], …, v_n[a]),  s = √(σ²[a] + λ),
//	v = (k(x_a, ·) − Σ_j l_j v_j)/s,  σ² −= v²,
//
// and its reward y then adds r = (y − m − Σ_j l_j r_j)/s, μ += r·v. A pull costs O(nA)
// in place of the O(n²A) of (6.3) and (6.4) in Carratino (2020).
//
// Pulls without a reward are the last rows. A reward for the first of them costs O(A).
// Another one is brought forward, and the rows in between are computed again.
type recursion struct {
	k       kernel.Kernel
	lambda  float64
	workers int
	rows    kernel.Rows
	prior   []float64
	m0      []float64

	v    []float64   // n×A
	l    [][]float64 // row i has L_i0 … L_ii
	at   []int       // the arm of every row
	r    []float64   // of the rows with a reward
	gain []float64   // log(1 + σ²/λ) of every row

	mean     []float64
	variance []float64
	settled  []float64 // variances without the pending rows
}

func newRecursion(cfg Config, arms kernel.Rows) (*recursion, error) {
	prior, err := kernel.Diagonal(cfg.Kernel, arms)
	if err != nil {
		return nil, err
	}
	probe, err := gp.NewExact(cfg.Kernel, gp.Data{}, gp.Options{NoiseVariance: cfg.NoiseVariance, Mean: cfg.Mean})
	if err != nil {
		return nil, err
	}
	m0, _, err := probe.Predict(arms)
	if err != nil {
		return nil, err
	}
	return &recursion{
		k: cfg.Kernel, lambda: cfg.NoiseVariance, workers: cfg.Workers, rows: arms, prior: prior, m0: m0,
		mean: slices.Clone(m0), variance: slices.Clone(prior), settled: slices.Clone(prior),
	}, nil
}

func (e *recursion) len() int     { return len(e.l) }
func (e *recursion) pending() int { return len(e.l) - len(e.r) }

// information returns Σ log(1 + σ²/λ) = log det(I + K/λ).
func (e *recursion) information() float64 {
	sum := 0.0
	for _, g := range e.gain {
		sum += g
	}
	return sum
}

// pendingGain is the part of the pending rows.
func (e *recursion) pendingGain() float64 {
	sum := 0.0
	for _, g := range e.gain[len(e.r):] {
		sum += g
	}
	return sum
}

// pull adds a row for an arm, at the end.
func (e *recursion) pull(arm int) error {
	n, count := e.len(), e.rows.Len()
	l := make([]float64, n+1)
	for j := range n {
		l[j] = e.v[j*count+arm]
	}
	variance := e.variance[arm]
	l[n] = math.Sqrt(variance + e.lambda)
	e.v = slices.Grow(e.v, count)[:(n+1)*count]
	if err := e.fill(n, arm, l); err != nil {
		e.v = e.v[:n*count]
		return err
	}
	if err := e.shrink(e.variance, n); err != nil {
		e.v = e.v[:n*count]
		e.restore()
		return err
	}
	e.l, e.at = append(e.l, l), append(e.at, arm)
	e.gain = append(e.gain, math.Log1p(variance/e.lambda))
	return nil
}

// fill computes row n of V for an arm with row l of L.
func (e *recursion) fill(n, arm int, l []float64) error {
	count := e.rows.Len()
	one := kernel.Prepare(e.k, e.rows.Slice(arm, arm+1))
	dst := e.v[n*count : (n+1)*count]
	return inorder.Blocks(count, armBlock, e.workers, func(i0, i1 int) error {
		out := dst[i0:i1]
		one.Fill(out, 1, e.rows, i0, i1, new(kernel.Scratch))
		for j, v := range out {
			if !finite(v) {
				return &kernel.NonFiniteError{What: "K", Row: i0 + j, Col: -1, Value: v}
			}
		}
		y := blas64.Vector{N: i1 - i0, Inc: 1, Data: out}
		if n > 0 {
			blas64.Gemv(blas.Trans, -1, blas64.General{Rows: n, Cols: i1 - i0, Stride: count, Data: e.v[i0:]},
				blas64.Vector{N: n, Inc: 1, Data: l[:n]}, 1, y)
		}
		blas64.Scal(1/l[n], y)
		return nil
	})
}

// shrink subtracts the square of row n from variances.
func (e *recursion) shrink(variance []float64, n int) error {
	count := e.rows.Len()
	for i, v := range e.v[n*count : (n+1)*count] {
		s := variance[i] - v*v
		if s < -1e-6*e.prior[i] {
			return &gp.NotPSDError{In: "bandit", What: "posterior variance of an arm", Row: i, Pivot: s}
		}
		variance[i] = max(s, 1e-12*e.prior[i])
	}
	return nil
}

// restore computes the variances from those without pending rows.
func (e *recursion) restore() {
	copy(e.variance, e.settled)
	for n := len(e.r); n < e.len(); n++ {
		_ = e.shrink(e.variance, n) // it was accepted before
	}
}

// resolve takes the reward of the oldest pending pull of an arm.
func (e *recursion) resolve(arm int, y float64) error {
	n, count := len(e.r), e.rows.Len()
	if j := e.find(arm); j != n {
		if err := e.bring(j); err != nil {
			return err
		}
	}
	l := e.l[n]
	r := y - e.m0[arm]
	for j, v := range e.r {
		r -= l[j] * v
	}
	r /= l[n]
	row := e.v[n*count : (n+1)*count]
	blas64.Axpy(r, blas64.Vector{N: count, Inc: 1, Data: row}, blas64.Vector{N: count, Inc: 1, Data: e.mean})
	e.r = append(e.r, r)
	return e.shrink(e.settled, n)
}

// find returns the first pending row of an arm, or −1 if there is none.
func (e *recursion) find(arm int) int {
	for j := len(e.r); j < e.len(); j++ {
		if e.at[j] == arm {
			return j
		}
	}
	return -1
}

// bring moves pending row j to the front of the pending ones.
func (e *recursion) bring(j int) error {
	first := e.at[j]
	rest := e.drop()
	k := j - len(e.r)
	return e.readd(append(append([]int{first}, rest[:k]...), rest[k+1:]...))
}

// cancel takes back the latest pending pull of an arm.
func (e *recursion) cancel(arm int) error {
	last := -1
	for j := len(e.r); j < e.len(); j++ {
		if e.at[j] == arm {
			last = j
		}
	}
	rest := e.drop()
	k := last - len(e.r)
	return e.readd(slices.Delete(rest, k, k+1))
}

// drop forgets the pending rows and returns their arms.
func (e *recursion) drop() []int {
	n := len(e.r)
	arms := slices.Clone(e.at[n:])
	e.l, e.at, e.gain, e.v = e.l[:n], e.at[:n], e.gain[:n], e.v[:n*e.rows.Len()]
	copy(e.variance, e.settled)
	return arms
}

func (e *recursion) readd(arms []int) error {
	for _, a := range arms {
		if err := e.pull(a); err != nil {
			return err
		}
	}
	return nil
}

// armBlock is the number of arms of one task.
const armBlock = 2048
