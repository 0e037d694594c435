package nystrom

import (
	"context"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/blocked"
	"github.com/bkbtuner/bkb/internal/inorder"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/minibatch"
)

// blockRows is the number of rows of K_nM that are held at a time.
const blockRows = 512

// direct solves (ZᵀZ + λnI)w = Zᵀy.
func (f *run) direct(m *learners.Monitor) error {
	s := &normal{basis: f.basis, c: f.c, kernel: f.Kernel}
	if err := s.accumulate(f.ctx, f); err != nil {
		return err
	}
	w, objective, residual := s.solve(f.Lambda*float64(f.n), f.n)
	_, err := m.Step(f.ctx, learners.Iterate{
		Iteration: 1, Passes: 1, Rows: int64(f.n), Objective: objective, Residual: residual,
		Notes: f.takeNotes(), Model: f.model(&w),
	})
	return err
}

// normal is the normal equations ZᵀZ w = Zᵀy.
type normal struct {
	basis  *basis
	kernel kernel.Kernel
	c      int
	gram   blocked.Matrix[float64] // ZᵀZ, lower triangle
	rhs    []float64               // Zᵀy, m×c
	size   float64                 // ‖y‖²
}

// accumulate reads the data once.
func (s *normal) accumulate(ctx context.Context, f *run) error {
	m, c, workers := s.basis.m, s.c, s.basis.workers
	s.gram, s.rhs = blocked.New[float64](m, m, nil), make([]float64, m*c)
	centers := kernel.Prepare(f.Kernel, s.basis.points)
	block := make([]float64, min(blockRows, f.n)*m)
	scratch := make([]kernel.Scratch, workers)
	plan := minibatch.Plan{Sampling: minibatch.Cycle, BatchSize: blockRows, Chunk: blockRows}
	return plan.PassWeighted(ctx, f.train, f.rows, nil, func(x kernel.Rows, y, weights []float64) error {
		if err := f.Kernel.Check(x); err != nil {
			return err
		}
		rows := x.Len()
		z := blocked.New(rows, m, block[:rows*m])
		fill(centers, z, x, scratch)
		if err := checkValues(z.Data, m); err != nil {
			return err
		}
		if weights != nil { // S^½Z and S^½y
			y = slices.Clone(y)
			roots(weights)
			scaleRows(z.Data, m, weights)
			scaleRows(y, c, weights)
		}
		blocked.SolveLowerRight(workers, true, *s.basis.l, z)
		blocked.Syrk(workers, true, z, 1, 1, s.gram)
		blocked.Gemm(workers, true, z, false, blocked.New(rows, c, y), 1, 1, blocked.New(m, c, s.rhs))
		for _, v := range y {
			s.size += v * v
		}
		return nil
	})
}

// scaleRows multiplies the rows of a, n×c, by s.
func scaleRows(a []float64, c int, s []float64) {
	for i, w := range s {
		for j := range c {
			a[i*c+j] *= w
		}
	}
}

// roots replaces weights by their square roots.
func roots(weights []float64) {
	for i, s := range weights {
		weights[i] = math.Sqrt(s)
	}
}

// fill sets z to the kernel values of the rows and all centres.
func fill(centers kernel.Prepared, z blocked.Matrix[float64], x kernel.Rows, scratch []kernel.Scratch) {
	// This is a multiple of the height of the panels of every kernel.
	const unit = 48
	each := (x.Len() + len(scratch) - 1) / len(scratch)
	each = (each + unit - 1) / unit * unit
	_ = inorder.Blocks(x.Len(), each, len(scratch), func(i0, i1 int) error { // it has no errors
		centers.Fill(z.Data[i0*z.Stride:], z.Stride, x, i0, i1, &scratch[i0/each])
		return nil
	})
}

// checkValues refuses kernel values that are not finite.
func checkValues(a []float64, m int) error {
	for i, v := range a {
		if v-v != 0 {
			return &kernel.NonFiniteError{What: "K_nM, in a block", Row: i / m, Col: i % m, Value: v}
		}
	}
	return nil
}

// solve returns the solution with a ridge, its objective and the largest relative
// residual of the outputs. It leaves out the directions of ZᵀZ + ridge·I that are
// rounding. It overwrites the lower triangle of gram.
func (s *normal) solve(ridge float64, n int) (w []float64, objective, residual float64) {
	m, c := s.basis.m, s.c
	diagonal := make([]float64, m)
	for i := range m { // above the diagonal, PivotedCholesky does not change the copy
		for j := range i {
			s.gram.Data[j*m+i] = s.gram.Data[i*m+j]
		}
		s.gram.Data[i*m+i] += ridge
		diagonal[i] = s.gram.Data[i*m+i]
	}
	perm := make([]int, m)
	r := blocked.PivotedCholesky(s.basis.workers, s.gram, spanTolerance(m), perm)
	part := make([]float64, r*c)
	for i, j := range perm[:r] {
		copy(part[i*c:][:c], s.rhs[j*c:][:c])
	}
	l := s.gram.Sub(0, 0, r, r)
	blocked.SolveLower(s.basis.workers, false, l, blocked.New(r, c, part))
	blocked.SolveLower(s.basis.workers, true, l, blocked.New(r, c, part))
	w = make([]float64, m*c)
	for i, j := range perm[:r] {
		copy(w[j*c:][:c], part[i*c:][:c])
	}
	objective, residual = s.judge(w, diagonal)
	return w, max(objective, 0) / float64(n), residual
}

// judge returns ‖Zw − y‖² + ridge‖w‖² and the largest relative residual. It uses the
// upper triangle of gram and diagonal, which includes the ridge.
func (s *normal) judge(w, diagonal []float64) (objective, residual float64) {
	m, c := s.basis.m, s.c
	aw := make([]float64, len(w))
	blocked.Symm(s.gram, diagonal, blocked.New(m, c, w), blocked.New(m, c, aw))
	objective = s.size
	num, den := make([]float64, c), make([]float64, c)
	for i, v := range aw {
		e := s.rhs[i] - v
		objective -= w[i] * (s.rhs[i] + e)
		num[i%c] += e * e
		den[i%c] += s.rhs[i] * s.rhs[i]
	}
	return objective, relative(num, den)
}

// relative returns the largest √(num/den) of the outputs, 0 where den is 0.
func relative(num, den []float64) float64 {
	largest := 0.0
	for o, v := range num {
		if den[o] > 0 {
			largest = max(largest, math.Sqrt(v/den[o]))
		}
	}
	return largest
}
