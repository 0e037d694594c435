package kernel

import "github.com/bkbtuner/bkb/internal/simd/panel"

// Prepared holds M centres y, packed for one kernel. It is read-only and safe for
// concurrent use with one [Scratch] per goroutine. Faster evaluations implement it.
type Prepared interface {
	// Fill sets dst[(i−i0)·ld + j] = k(x_i, y_j) for i0 ≤ i < i1 and all
	// 0 ≤ j < M ≤ ld. Check must have accepted the rows x.
	Fill(dst []float64, ld int, x Rows, i0, i1 int, s *Scratch)
}

// Prepare packs the centres y for k in its own way ([Preparer]), or evaluates pair by pair.
// k.Check must have accepted y, and the caller must not change y any more.
func Prepare(k Kernel, y Rows) Prepared {
	if p, ok := k.(Preparer); ok {
		return p.Prepare(y)
	}
	return &pairwisePrepared{k: k, y: y}
}

// pairwisePrepared evaluates pair by pair.
type pairwisePrepared struct {
	k Kernel
	y Rows
}

func (p *pairwisePrepared) Fill(dst []float64, ld int, x Rows, i0, i1 int, _ *Scratch) {
	m := p.y.Len()
	for i := i0; i < i1; i++ {
		row := dst[(i-i0)*ld:][:m]
		for j := range row {
			row[j] = p.k.Eval(x, i, p.y, j)
		}
	}
}

// mappedPrepared changes the rows of another Prepared of m centres.
type mappedPrepared struct {
	Prepared
	m   int
	row func(row []float64)
}

func (p *mappedPrepared) Fill(dst []float64, ld int, x Rows, i0, i1 int, s *Scratch) {
	p.Prepared.Fill(dst, ld, x, i0, i1, s)
	for i := range i1 - i0 {
		p.row(dst[i*ld:][:p.m])
	}
}

// basePrepared are centres of a Base kernel. Dense ones are packed as M×d numbers. Sparse
// ones stay as they are, since d may be too large to store their zeros.
type basePrepared struct {
	k      *Base
	m, d   int
	packed []float64
	sparse numeric   // or nil
	yy     []float64 // s(y_j, y_j), if the kernel needs it
}

// Prepare implements [Preparer]. Dense centres go through the vector kernels, if these have k.
func (k *Base) Prepare(y Rows) Prepared {
	p, rows := &basePrepared{k: k, m: y.Len(), d: y.Dim()}, asNumeric(y)
	if k.st.norms {
		p.yy = make([]float64, p.m)
		for j := range p.yy {
			v := rows.row(j)
			p.yy[j] = k.st.pair(v, v)
		}
	}
	if p.m > 0 && rows.row(0).sparse {
		p.sparse = rows
		return p
	}
	p.packed = make([]float64, p.m*p.d)
	for j := range p.m {
		v := rows.row(j)
		v.scatter(p.packed[j*p.d : (j+1)*p.d])
	}
	if f, unit, ok := k.function(p.d); ok {
		return newPanelPrepared(p, f, unit, panel.Rows[float64]{Data: p.packed, N: p.m, D: p.d})
	}
	return p
}

func (p *basePrepared) Fill(dst []float64, ld int, x Rows, i0, i1 int, s *Scratch) {
	rows, st := asNumeric(x), &p.k.st
	defer s.Release(s.Mark())
	var wide []float64
	if p.sparse == nil {
		wide = s.Floats(p.d)
	}
	for i := i0; i < i1; i++ {
		v, row, xx := rows.row(i), dst[(i-i0)*ld:][:p.m], 0.0
		switch {
		case p.sparse != nil:
			for j := range row {
				row[j] = st.pair(v, p.sparse.row(j))
			}
		case v.sparse || v.f32 != nil:
			v.scatter(wide)
			st.fillRow(row, wide, p.packed)
		default:
			st.fillRow(row, v.f64, p.packed)
		}
		if st.norms {
			xx = st.pair(v, v)
		}
		p.k.mapRow(row, xx, p.yy)
	}
}
