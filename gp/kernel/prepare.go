package kernel

// Prepared holds M centres y, packed for one kernel. It is read-only and safe for
// concurrent use with one [Scratch] per goroutine. Faster evaluations implement it.
type Prepared interface {
	// Fill sets dst[(i−i0)·ld + j] = k(x_i, y_j) for i0 ≤ i < i1 and all
	// 0 ≤ j < M ≤ ld. Check must have accepted the rows x.
	Fill(dst []float64, ld int, x Rows, i0, i1 int, s *Scratch)
}

// PanelFiller is a [Prepared] that also writes the layout in which package gp
// solves triangular systems.
type PanelFiller interface {
	Prepared
	// FillPanels sets dst to k of rows i0 ≤ i < i1 of x. Each 8 of them make a panel of
	// padded×8, where padded is M rounded up to a multiple of 6. dst[j·8 + r] = k(x_r,
	// y_j) is the same number as that of Fill, and 0 where there is no row or centre.
	// It returns false if it cannot do so for these rows.
	FillPanels(dst []float64, x Rows, i0, i1 int, s *Scratch) bool
}

// Prepare packs the centres y for k by the fastest way that k offers. This is its own
// ([Preparer]), the tile machinery ([Elementwise]), or Eval for each pair. k.Check must
// have accepted y, and the caller must not change y any more.
func Prepare(k Kernel, y Rows) Prepared {
	switch k := k.(type) {
	case Preparer:
		return k.Prepare(y)
	case Elementwise:
		return prepareElementwise(k, y)
	default:
		return &pairwisePrepared{k: k, y: y}
	}
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

// prepareElementwise packs dense centres. Sparse ones stay as they are, since d may be
// too large to store their zeros.
func prepareElementwise(k Elementwise, y Rows) Prepared {
	e := elementwisePrepared{k: k, st: k.Statistic(), m: y.Len(), d: y.Dim()}
	rows := asNumeric(y)
	if e.st.Norms {
		e.yy = make([]float64, e.m)
		for j := range e.yy {
			v := rows.row(j)
			e.yy[j] = e.st.pair(v, v)
		}
	}
	if e.m > 0 && rows.row(0).sparse {
		return &sparsePrepared{elementwisePrepared: e, y: rows}
	}
	packed := make([]float64, e.m*e.d)
	for j := range e.m {
		v := rows.row(j)
		v.scatter(packed[j*e.d : (j+1)*e.d])
	}
	return preparePanels(k, &densePrepared{elementwisePrepared: e, y: packed})
}

type elementwisePrepared struct {
	k    Elementwise
	st   Statistic
	m, d int
	yy   []float64 // s(y_j, y_j), if the kernel needs it
}

// finish turns a row of statistics into one of kernel values.
func (e *elementwisePrepared) finish(s []float64, x vector) {
	xx := 0.0
	if e.st.Norms {
		xx = e.st.pair(x, x)
	}
	e.k.Map(s, xx, e.yy)
}

// densePrepared holds the centres as a packed M×d matrix of float64.
type densePrepared struct {
	elementwisePrepared
	y []float64
}

func (p *densePrepared) Fill(dst []float64, ld int, x Rows, i0, i1 int, s *Scratch) {
	rows := asNumeric(x)
	defer s.Release(s.Mark())
	wide := s.Floats(p.d)
	for i := i0; i < i1; i++ {
		v := rows.row(i)
		dense := v.f64
		if v.sparse || v.f32 != nil {
			v.scatter(wide)
			dense = wide
		}
		row := dst[(i-i0)*ld:][:p.m]
		p.st.fillRow(row, dense, p.y)
		p.finish(row, v)
	}
}

// sparsePrepared visits the stored elements of both sides of each pair.
type sparsePrepared struct {
	elementwisePrepared
	y numeric
}

func (p *sparsePrepared) Fill(dst []float64, ld int, x Rows, i0, i1 int, _ *Scratch) {
	rows := asNumeric(x)
	for i := i0; i < i1; i++ {
		v := rows.row(i)
		row := dst[(i-i0)*ld:][:p.m]
		for j := range row {
			row[j] = p.st.pair(v, p.y.row(j))
		}
		p.finish(row, v)
	}
}
