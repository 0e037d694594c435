package gp

import (
	"slices"

	"gonum.org/v1/gonum/blas/blas64"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// exactArms holds A inputs with the columns L⁻¹k(x_a) of the exact posterior, as the
// rows of an n×A matrix V. A new observation adds one row (GP-UCB, Carratino 2020,
// §6.4). A step costs O(tA) in place of the O(t²A) of (6.3) and (6.4).
//
//	v = (k(x_t, ·) − Vᵀl)/l_tt,  μ += v r_t,  σ² −= v²
//
// where l, l_tt is the new row of L and r = L⁻¹(y − m).
type exactArms struct {
	rows     kernel.Rows
	v        []float64 // n×A
	prior    []float64
	mean     []float64
	variance []float64
}

// SetArms keeps means and variances of the rows up to date from now on, in place of any
// previous arms. If rows is nil, there are no arms. The rows must not change any more.
// It takes n·A numbers of memory. It costs O(n²A) now and where Append refactors, and
// O(nA) for each observation appended. Its errors are those of [Exact.Predict].
func (g *Exact) SetArms(rows kernel.Rows) error {
	if rows == nil {
		g.arms = nil
		if g.shadow != nil {
			g.shadow.arms = nil
		}
		return nil
	}
	if err := g.checkQuery(rows); err != nil {
		return err
	}
	prior, err := kernel.Diagonal(g.k, rows)
	if err != nil {
		return err
	}
	next := *g
	a := &exactArms{rows: rows, prior: prior}
	if next.arms, err = a.grown(g, 0); err != nil {
		return err
	}
	if next.shadow, err = next.withPending(g.open); err != nil {
		return err
	}
	*g = next
	return nil
}

// Arms returns the arms, or nil if there are none.
func (g *Exact) Arms() kernel.Rows {
	if g.arms == nil {
		return nil
	}
	return g.arms.rows
}

// ArmMeans returns μ of every arm, as a view that the caller must not change.
func (g *Exact) ArmMeans() []float64 { return g.needArms().mean }

// ArmVariances returns σ² of every arm, as a view that the caller must not change.
func (g *Exact) ArmVariances() []float64 { return g.ahead().needArms().variance }

func (g *Exact) needArms() *exactArms {
	if g.arms == nil {
		panic("gp: precondition: no arms; call SetArms first")
	}
	return g.arms
}

// grown returns the arms with the rows of V from row on, for the posterior g.
// The old arms stay valid, but must not grow again.
func (a *exactArms) grown(g *Exact, row int) (*exactArms, error) {
	n, count := g.obs.len(), a.rows.Len()
	next := *a
	if row == 0 {
		next.v = make([]float64, n*count)
	} else {
		next.v = slices.Grow(a.v, (n-row)*count)[:n*count]
	}
	for i := row; i < n; i++ {
		if err := next.fill(g, i); err != nil {
			return nil, err
		}
	}
	r := append([]float64(nil), g.resid...)
	g.chol.SolveL(r)
	if row == 0 { // from the prior
		row = 0
		next.mean, next.variance = constant(a.rows.Len(), g.opts.Mean), slices.Clone(a.prior)
	} else {
		next.mean, next.variance = slices.Clone(a.mean), slices.Clone(a.variance)
	}
	return &next, next.add(r, row, g.opts.Workers)
}

// fill computes row i of V.
func (a *exactArms) fill(g *Exact, i int) error {
	count := a.rows.Len()
	one, dst := kernel.Prepare(g.k, g.obs.x.Slice(i, i+1)), a.v[i*count:(i+1)*count]
	return forBlocks(count, armBlock, g.opts.Workers, func(i0, i1 int, s *kernel.Scratch) error {
		one.Fill(dst[i0:i1], 1, a.rows, i0, i1, s)
		if err := checkKernel(dst[i0:i1], 1, i0); err != nil {
			return err
		}
		a.eliminate(g.chol, i, i0, i1)
		return nil
	})
}

// eliminate turns row i of V from kernel values to those of L⁻¹K.
func (a *exactArms) eliminate(l *Cholesky, i, i0, i1 int) {
	count := a.rows.Len()
	li, dst := l.row(i), a.v[i*count+i0:i*count+i1]
	if i > 0 {
		blas64.Gemv(trans, -1, blas64.General{Rows: i, Cols: i1 - i0, Stride: count, Data: a.v[i0:]},
			vec(li[:i]), 1, vec(dst))
	}
	blas64.Scal(1/li[i], vec(dst))
}

// add updates means and variances by the rows of V from row on, given r = L⁻¹(y − m).
func (a *exactArms) add(r []float64, row, workers int) error {
	count := a.rows.Len()
	return forBlocks(count, armBlock, workers, func(i0, i1 int, _ *kernel.Scratch) error {
		mean, variance := a.mean[i0:i1], a.variance[i0:i1]
		for i := row; i < len(r); i++ {
			for j, v := range a.v[i*count+i0 : i*count+i1] {
				mean[j] += r[i] * v
				variance[j] -= v * v
			}
		}
		for j := range variance {
			v, err := clampVariance("posterior variance of an arm", i0+j, variance[j], a.prior[i0+j])
			if err != nil {
				return err
			}
			variance[j] = v
		}
		return nil
	})
}
