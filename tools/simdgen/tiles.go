package main

import (
	"fmt"
	"slices"
	"strings"
)

// mr is the number of rows of a tile.
const mr = 6

// piece is the bytes of a row of a column panel. They fill two registers, or one.
const piece = 64

// shape is the part of a kernel's work that its registers hold, 6 rows of a few column
// panels.
type shape struct {
	panels int
	regs   int    // registers of a row
	prefix string // of labels
}

func (t target) shape(panels int, prefix string) shape {
	return shape{panels, panels * piece / t.width, prefix}
}

// acc returns the accumulator of row r, register h of the row.
func (f *function) acc(s shape, r, h int) string { return f.r(s.regs*r + h) }

// place returns the column panel of register h of a row, and its offset there.
func (t target) place(h int) (panel, offset int) { return h * t.width / piece, h * t.width % piece }

// inTiles returns register h of row r of tiles at base, one after the other.
func (t target) inTiles(base string, r, h int) string {
	panel, offset := t.place(h)
	return mem(base, piece*mr*panel+piece*r+offset)
}

// apart returns register h of a row of column panels that start at an offset from base. The
// panels are as many bytes apart as the register one has, and three has three times that.
func (t target) apart(base string, offset, h int, one, three string) string {
	panel, at := t.place(h)
	return mem(base, offset+at) + [...]string{"", "(" + one + "*1)", "(" + one + "*2)", "(" + three + "*1)"}[panel]
}

// inPanels returns register h of step i of column panels at base, which are R12 bytes
// apart. R13 is three times R12.
func (t target) inPanels(base string, i, h int) string {
	return t.apart(base, piece*i, h, "R12", "R13")
}

// distance loads R12 with the distance of column panels, n·size bytes, and R13 with three
// times that.
func (f *function) distance(n string, size int) {
	f.i("IMUL3Q", size, n, "R12")
	f.i("LEAQ", "(R12)(R12*2)", "R13")
}

// passes emits body for the panels that CX counts, at most the given number side by side,
// and one by one for the rest.
func (f *function) passes(label string, most int, body func(s shape)) {
	most = min(most, f.panels)
	if most > 1 {
		f.i("SUBQ", most, "CX")
		f.i("JLT", "rest")
		f.label("many")
		body(f.shape(most, "many"))
		f.i("SUBQ", most, "CX")
		f.i("JGE", "many")
		f.label("rest")
		f.i("ADDQ", most, "CX")
		f.i("JZ", "done")
	}
	f.label(label)
	body(f.shape(1, ""))
	f.i("DECQ", "CX")
	f.i("JNZ", label)
	if most > 1 {
		f.label("done")
	}
}

// kLoop emits step for k = 0 … n−1, four at a time. It overwrites the register counter,
// which has the count. The function step(i) works at offset i from the pointers, which
// advance moves. The prefix is that of the labels.
func (f *function) kLoop(prefix, n, counter string, step func(i int), advance func(by int)) {
	f.i("MOVQ", n, counter)
	f.i("SHRQ", 2, counter)
	f.i("JZ", prefix+"remainder")
	f.label(prefix + "four")
	for i := range 4 {
		step(i)
	}
	advance(4)
	f.i("DECQ", counter)
	f.i("JNZ", prefix+"four")
	f.label(prefix + "remainder")
	f.i("MOVQ", n, counter)
	f.i("ANDQ", 3, counter)
	f.i("JZ", prefix+"summed")
	f.label(prefix + "one")
	step(0)
	advance(1)
	f.i("DECQ", counter)
	f.i("JNZ", prefix+"one")
	f.label(prefix + "summed")
}

// statistics are the sums over coordinates of a tile, in the order of
// simd.Statistic. Each gets the row's element in a register x, a register t and
// the column's vector b, in a register or in memory, and adds to sum.
// The last register of all holds the constant, if there is one.
var statistics = []struct {
	name, doc string
	constant  func(p precision) uint64 // nil if there is none
	term      func(f *function, x, t, b, sum string)
}{
	{"dot", "Σ a·b", nil, func(f *function, x, _, b, sum string) {
		f.v("VFMADD231", x, b, sum)
	}},
	{"squared", "Σ (a − b)²", nil, func(f *function, x, t, b, sum string) {
		f.v("VSUB", b, x, t)
		f.v("VFMADD231", t, t, sum)
	}},
	{
		"manhattan", "Σ |a − b|", func(p precision) uint64 { return 1<<(p.bits-1) - 1 },
		func(f *function, x, t, b, sum string) {
			f.v("VSUB", b, x, t)
			f.v("VAND", f.r(f.count-1), t, t)
			f.v("VADD", t, sum, sum)
		},
	},
	{
		"mismatches", "Σ [a ≠ b]", func(p precision) uint64 { return p.float(1) },
		func(f *function, x, t, b, sum string) {
			if f.masks {
				f.v("VCMP", notEqual, b, x, "K1")
				f.v("VADD", f.r(f.count-1), sum, "K1", sum)
				return
			}
			f.v("VCMP", notEqual, b, x, t)
			f.v("VAND", f.r(f.count-1), t, t)
			f.v("VADD", t, sum, sum)
		},
	},
}

// tile emits one row panel against n column panels. For each it computes the statistics of
// 6×NR pairs.
func tile(f *file, p precision, s int) {
	st := statistics[s]
	fn := f.begin(p, st.name, fmt.Sprintf("out[t·step + r·nr + c] = ha[r] + hb[t][c] + %s over k, for n > 0 column panels t of nr columns. step counts elements", st.doc),
		param{"k", "int"}, param{"a", "*T"}, param{"ha", "*T"}, param{"b", "*T"}, param{"hb", "*T"}, param{"out", "*T"}, param{"step", "int"}, param{"n", "int"})
	for _, l := range [][2]string{{"k", "AX"}, {"a", "SI"}, {"ha", "BX"}, {"b", "DI"}, {"hb", "DX"}, {"out", "R8"}, {"step", "R11"}, {"n", "CX"}} {
		fn.load(l[0], l[1])
	}
	fn.i("IMULQ", p.size, "R11")
	fn.distance("AX", piece)
	fn.constantOf(s)
	fn.passes("tile", f.panels, func(sh shape) {
		fn.statistic(s, sh, "BX", nil)
		fn.i("LEAQ", "(R11)(R11*2)", "R9")
		for r := range mr {
			for h := range sh.regs {
				fn.move(fn.acc(sh, r, h), f.apart("R8", piece*r, h, "R11", "R9"))
			}
		}
		fn.i("ADDQ", piece*sh.panels, "DX")
		fn.i("LEAQ", fmt.Sprintf("(R8)(R11*%d)", sh.panels), "R8")
	})
	fn.end()
}

// constantOf loads the constant of a statistic.
func (f *function) constantOf(s int) {
	if c := statistics[s].constant; c != nil {
		f.bcast(f.constant(c(f.p)), f.r(f.count-1))
	}
}

// statistic emits the sums of a tile. AX is k, SI points to the row panel, and DI to the
// column panels, which it advances past. The register ha and DX point to ha and hb. R9 and
// R10 are overwritten, and SI is kept. After each step it emits also(i), with the
// offset i, if that is not nil.
func (f *function) statistic(s int, sh shape, ha string, also func(i int)) {
	st, p := statistics[s], f.p
	// The sums come first. The columns follow, as many as leave two registers and the
	// constant. The others stay in memory.
	free := f.count - mr*sh.regs
	if st.constant != nil {
		free--
	}
	held := min(sh.regs, free-2)
	first := mr*sh.regs + held
	b := func(i, h int) string {
		if h < held {
			return f.r(mr*sh.regs + h)
		}
		return f.inPanels("DI", i, h)
	}
	for r := range mr {
		x := f.r(first)
		f.bcast(mem(ha, r*p.size), x)
		for h := range sh.regs {
			f.v("VADD", mem("DX", f.width*h), x, f.acc(sh, r, h))
		}
	}
	f.i("MOVQ", "SI", "R9")
	f.kLoop(sh.prefix, "AX", "R10", func(i int) {
		for h := range held {
			f.move(f.inPanels("DI", i, h), b(i, h))
		}
		for r := range mr {
			x := f.r(first)
			if st.name == "dot" { // rows in flight
				x = f.r(first + r%(free-held))
			}
			f.bcast(mem("R9", (i*mr+r)*p.size), x)
			for h := range sh.regs {
				st.term(f, x, f.r(first+1+h%(free-held-1)), b(i, h), f.acc(sh, r, h))
			}
		}
		if also != nil {
			also(i)
		}
	}, func(by int) {
		f.i("ADDQ", by*mr*p.size, "R9")
		f.i("ADDQ", by*piece, "DI")
	})
	if sh.panels > 1 {
		f.i("ADDQ", "R13", "DI")
	}
}

// product adds a·b over k to the accumulators, or subtracts it. It advances a past the row
// panel and b past the first column panel. After each step it emits also(), if that is not
// nil.
func (f *function) product(instruction string, sh shape, k, counter, a, b string, also func()) {
	column := func(h int) string { return f.r(mr*sh.regs + h) }
	first := (mr + 1) * sh.regs
	f.kLoop(sh.prefix, k, counter, func(i int) {
		for h := range sh.regs {
			f.move(f.inPanels(b, i, h), column(h))
		}
		for r := range mr {
			x := f.r(first + r%(f.count-first))
			f.bcast(mem(a, (i*mr+r)*f.p.size), x)
			for h := range sh.regs {
				f.v(instruction, x, column(h), f.acc(sh, r, h))
			}
		}
		if also != nil {
			also()
		}
	}, func(by int) {
		f.i("ADDQ", by*mr*f.p.size, a)
		f.i("ADDQ", by*piece, b)
	})
}

// gemm emits the micro-kernel of matrix products.
func gemm(f *file, p precision) {
	fn := f.begin(p, "gemm", "c[r·ldc + j] = alpha·Σ a[l][r]·b[l][j] over k for one row panel and n > 0 column panels, plus the old value if keep is not 0. ldc counts elements. A column panel that is needed later is at next",
		param{"k", "int"}, param{"a", "*T"}, param{"b", "*T"}, param{"next", "*T"}, param{"c", "*T"}, param{"ldc", "int"}, param{"n", "int"}, param{"keep", "int"}, param{"alpha", "T"})
	for _, l := range [][2]string{{"k", "AX"}, {"b", "DI"}, {"c", "DX"}, {"ldc", "R8"}, {"n", "CX"}, {"keep", "R11"}} {
		fn.load(l[0], l[1])
	}
	fn.i("IMULQ", p.size, "R8")
	fn.distance("AX", piece)
	fn.passes("tile", f.panels, func(sh shape) {
		fn.load("a", "SI")
		fn.zero(0, mr*sh.regs)
		fn.i("MOVQ", "DX", "R9")
		for range mr {
			for line := range sh.panels {
				fn.i("PREFETCHT0", mem("R9", piece*line))
			}
			fn.i("PREFETCHT0", mem("R9", piece*sh.panels-8)) // if it ends in another line
			fn.i("ADDQ", "R8", "R9")
		}
		var prefetch func()
		if f.panels > 1 {
			fn.load("next", "BX")
			prefetch = func() {
				fn.i("PREFETCHT1", mem("BX", 0))
				fn.i("ADDQ", piece, "BX")
			}
		}
		fn.product("VFMADD231", sh, "AX", "R10", "SI", "DI", prefetch)
		if sh.panels > 1 {
			fn.i("ADDQ", "R13", "DI")
		}
		alpha := mr * sh.regs
		fn.bcast(fn.arg("alpha"), f.r(alpha))
		fn.i("MOVQ", "DX", "R9")
		fn.i("TESTQ", "R11", "R11")
		fn.i("JZ", sh.prefix+"fresh")
		for r := range mr {
			for h := range sh.regs {
				old := f.r(alpha + 1 + h%(f.count-alpha-1))
				fn.move(mem("R9", f.width*h), old)
				fn.v("VFMADD231", fn.acc(sh, r, h), f.r(alpha), old)
				fn.move(old, mem("R9", f.width*h))
			}
			fn.i("ADDQ", "R8", "R9")
		}
		fn.i("JMP", sh.prefix+"written")
		fn.label(sh.prefix + "fresh")
		for r := range mr {
			for h := range sh.regs {
				fn.v("VMUL", f.r(alpha), fn.acc(sh, r, h), fn.acc(sh, r, h))
				fn.move(fn.acc(sh, r, h), mem("R9", f.width*h))
			}
			fn.i("ADDQ", "R8", "R9")
		}
		fn.label(sh.prefix + "written")
		fn.i("ADDQ", piece*sh.panels, "DX")
	})
	fn.end()
}

// trsm emits one step of the solution of L·Y = B for panels of columns.
func trsm(f *file, p precision) {
	fn := f.begin(p, "trsm", "c = L⁻¹(c − Σ a[l]·b[l]) over k, in place on 6 rows of n > 0 column panels; L follows a, its diagonal inverted. b and c of the next panel are step elements further",
		param{"k", "int"}, param{"a", "*T"}, param{"b", "*T"}, param{"c", "*T"}, param{"step", "int"}, param{"n", "int"})
	for _, l := range [][2]string{{"k", "AX"}, {"b", "R8"}, {"c", "DX"}, {"step", "R9"}, {"n", "CX"}} {
		fn.load(l[0], l[1])
	}
	fn.distance("R9", p.size)
	fn.passes("panel", f.panels, func(sh shape) {
		at := func(r, h int) string { return f.inPanels("DX", r, h) }
		fn.load("a", "SI")
		fn.i("MOVQ", "R8", "DI")
		for r := range mr {
			for h := range sh.regs {
				fn.move(at(r, h), fn.acc(sh, r, h))
			}
		}
		fn.product("VFNMADD231", sh, "AX", "R10", "SI", "DI", nil)
		free := mr * sh.regs
		for c := range mr {
			fn.bcast(mem("SI", (c*mr+c)*p.size), f.r(free))
			for h := range sh.regs {
				fn.v("VMUL", f.r(free), fn.acc(sh, c, h), fn.acc(sh, c, h))
				fn.move(fn.acc(sh, c, h), at(c, h))
			}
			for r := c + 1; r < mr; r++ {
				x := f.r(free + (r-c)%4)
				fn.bcast(mem("SI", (c*mr+r)*p.size), x)
				for h := range sh.regs {
					fn.v("VFNMADD231", x, fn.acc(sh, c, h), fn.acc(sh, r, h))
				}
			}
		}
		for _, pointer := range []string{"R8", "DX"} {
			fn.i("LEAQ", fmt.Sprintf("(%s)(R12*%d)", pointer, sh.panels), pointer)
		}
	})
	fn.end()
}

// multiply emits the product of a row panel of K with a vector.
func multiply(f *file, p precision) {
	fn := f.begin(p, "multiply", "u[r][lane] += Σ over n > 0 tiles of k[t][r][·]·v[t][·], in lanes of 32 bytes that are still to be added up",
		param{"k", "*T"}, param{"v", "*T"}, param{"u", "*T"}, param{"n", "int"})
	for _, l := range [][2]string{{"k", "SI"}, {"v", "DX"}, {"u", "DI"}, {"n", "CX"}} {
		fn.load(l[0], l[1])
	}
	fn.rowSums("tile", "DX", func(r, h int) string { return f.inTiles("SI", r, h) }, func(panels int) {
		fn.i("ADDQ", piece*panels, "DX")
		fn.i("ADDQ", piece*mr*panels, "SI")
	})
}

// rowSums emits sums over the lanes of 6 rows of the products with the vector at v. The
// function at returns register h of row r, and advance moves on by one panel. DI points to
// the sums in memory, 32 bytes for a row. Either half of a tile has its own sum, in a
// register or in half of one, so that the results are the same to the bit on every target.
func (f *function) rowSums(loop, v string, at func(r, h int) string, advance func(panels int)) {
	sh := f.shape(1, "")
	for r := range mr {
		f.move(mem("DI", avx2.width*r), f.narrow(f.acc(sh, r, 0)))
		for h := 1; h < sh.regs; h++ {
			f.i("VXORPS", f.acc(sh, r, h), f.acc(sh, r, h), f.acc(sh, r, h))
		}
	}
	f.label(loop)
	for h := range sh.regs {
		f.move(mem(v, f.width*h), f.r(mr*sh.regs+h))
	}
	for r := range mr {
		for h := range sh.regs {
			f.v("VFMADD231", at(r, h), f.r(mr*sh.regs+h), f.acc(sh, r, h))
		}
	}
	advance(1)
	f.i("DECQ", "CX")
	f.i("JNZ", loop)
	for r := range mr {
		low, high := f.narrow(f.acc(sh, r, 0)), avx2.r(mr*sh.regs)
		if sh.regs == 1 {
			f.i("VEXTRACTF64X4", 1, f.acc(sh, r, 0), high)
		} else {
			high = f.acc(sh, r, 1)
		}
		f.v("VADD", high, low, low)
		f.move(low, mem("DI", avx2.width*r))
	}
	f.end()
}

// narrow returns the lower half of a wide register.
func (t target) narrow(register string) string {
	return avx2.prefix + strings.TrimPrefix(register, t.prefix)
}

// multiplyT emits the product of a transposed row panel of K with 6 numbers.
func multiplyT(f *file, p precision) {
	fn := f.begin(p, "multiplyT", "w[t][c] += Σ_r k[t][r][c]·u[r] for n > 0 tiles t",
		param{"k", "*T"}, param{"u", "*T"}, param{"w", "*T"}, param{"n", "int"})
	for _, l := range [][2]string{{"k", "SI"}, {"u", "DX"}, {"w", "DI"}, {"n", "CX"}} {
		fn.load(l[0], l[1])
	}
	fn.columnSums("tile", "DX", mr, func(r, h int) string { return f.inTiles("SI", r, h) }, func(panels int) {
		fn.i("ADDQ", piece*panels, "DI")
		fn.i("ADDQ", piece*mr*panels, "SI")
	})
}

// columnSums emits the sums of rows times factors, which are at u. DI points to the sums in
// memory, and at and advance are those of rowSums.
func (f *function) columnSums(loop, u string, rows int, at func(r, h int) string, advance func(panels int)) {
	const factors = 10 // the first register of the factors
	for r := range rows {
		f.bcast(mem(u, r*f.p.size), f.r(factors+r))
	}
	f.passes(loop, f.panels, func(sh shape) {
		for h := range sh.regs {
			f.move(mem("DI", f.width*h), f.r(h))
		}
		for r := range rows {
			for h := range sh.regs {
				f.v("VFMADD231", at(r, h), f.r(factors+r), f.r(h))
			}
		}
		for h := range sh.regs {
			f.move(f.r(h), mem("DI", f.width*h))
		}
		advance(sh.panels)
	})
	f.end()
}

// rowAt returns the addresses of 6 rows, R8 bytes apart. SI points to the first, and DX to
// the fourth.
func rowAt(r, offset int) string {
	return fmt.Sprintf("%d%s", offset, [mr]string{"(SI)", "(SI)(R8*1)", "(SI)(R8*2)", "(DX)", "(DX)(R8*1)", "(DX)(R8*2)"}[r])
}

// rows loads the address of the first row and the distance of the others.
func (f *function) rows(a, step string) {
	f.load(a, "SI")
	f.load(step, "R8")
	f.i("IMULQ", f.p.size, "R8")
	f.i("LEAQ", "(SI)(R8*2)", "DX")
	f.i("ADDQ", "R8", "DX")
}

// multiplyRows emits the product of 6 rows of a matrix, in place, with a vector.
func multiplyRows(f *file, p precision) {
	fn := f.begin(p, "multiplyRows", "u[r][lane] += Σ over n > 0 pieces of 64 bytes of a[r·step + ·]·v[·] for 6 rows r, in lanes of 32 bytes that are still to be added up",
		param{"a", "*T"}, param{"step", "int"}, param{"v", "*T"}, param{"u", "*T"}, param{"n", "int"})
	fn.rows("a", "step")
	for _, l := range [][2]string{{"v", "BX"}, {"u", "DI"}, {"n", "CX"}} {
		fn.load(l[0], l[1])
	}
	fn.rowSums("piece", "BX", func(r, h int) string { return rowAt(r, f.width*h) }, func(panels int) {
		for _, pointer := range []string{"BX", "SI", "DX"} {
			fn.i("ADDQ", piece*panels, pointer)
		}
	})
}

// addRows emits the sum of rows of a matrix, 6 or 1, in place, with factors.
func addRows(f *file, p precision, stem string, rows int) {
	fn := f.begin(p, stem, fmt.Sprintf("w[·] += Σ_r a[r·step + ·]·u[r] for n > 0 pieces of 64 bytes and rows r < %d", rows),
		param{"a", "*T"}, param{"step", "int"}, param{"u", "*T"}, param{"w", "*T"}, param{"n", "int"})
	fn.rows("a", "step")
	for _, l := range [][2]string{{"u", "BX"}, {"w", "DI"}, {"n", "CX"}} {
		fn.load(l[0], l[1])
	}
	fn.columnSums("piece", "BX", rows, func(r, h int) string { return rowAt(r, f.width*h) }, func(panels int) {
		for _, pointer := range []string{"DI", "SI", "DX"} {
			fn.i("ADDQ", piece*panels, pointer)
		}
	})
}

// squares emits the sums of squares of the columns of a column panel.
func squares(f *file, p precision) {
	fn := f.begin(p, "squares", "s[c] += Σ b[l][c]² over k", param{"k", "int"}, param{"b", "*T"}, param{"s", "*T"})
	for _, l := range [][2]string{{"k", "AX"}, {"b", "DI"}, {"s", "DX"}} {
		fn.load(l[0], l[1])
	}
	regs := f.shape(1, "").regs
	fn.zero(0, 4*regs) // four sums for each column
	fn.kLoop("", "AX", "R10", func(i int) {
		for h := range regs {
			x := f.r(4*regs + regs*i + h)
			fn.move(mem("DI", piece*i+f.width*h), x)
			fn.v("VFMADD231", x, x, f.r(regs*i+h))
		}
	}, func(by int) { fn.i("ADDQ", by*piece, "DI") })
	for h := range regs {
		sum := func(i int) string { return f.r(regs*i + h) }
		fn.v("VADD", sum(1), sum(0), sum(0))
		fn.v("VADD", sum(3), sum(2), sum(2))
		fn.v("VADD", sum(2), sum(0), sum(0))
		fn.v("VADD", mem("DX", f.width*h), sum(0), sum(0))
		fn.move(sum(0), mem("DX", f.width*h))
	}
	fn.end()
}

// drain emits the end of a float32 sum.
func drain(f *file) {
	fn := f.begin(f32, "drain", "w += x, x = 0, for n > 0 groups of 16",
		param{"w", "*float64"}, param{"x", "*T"}, param{"n", "int"})
	fn.load("w", "DI")
	fn.load("x", "SI")
	fn.load("n", "CX")
	fn.zero(8, 9)
	fn.label("loop")
	for i := range 2 * piece / f.width {
		fn.i("VCVTPS2PD", mem("SI", f.width/2*i), f.r(i))
		fn.i("VADDPD", mem("DI", f.width*i), f.r(i), f.r(i))
		fn.i("VMOVUPD", f.r(i), mem("DI", f.width*i))
	}
	for i := range piece / f.width {
		fn.i("VMOVUPS", f.r(8), mem("SI", f.width*i))
	}
	fn.i("ADDQ", 64, "SI")
	fn.i("ADDQ", 128, "DI")
	fn.i("DECQ", "CX")
	fn.i("JNZ", "loop")
	fn.end()
}

// transpose emits the interleaving of 4 rows, the core of all packing.
func transpose(f *file, p precision) {
	fn := f.begin(p, "transpose", "dst[l·step + r] = src[r·ld + l] for 4 rows r and 4n columns l, n > 0",
		param{"dst", "*T"}, param{"step", "int"}, param{"src", "*T"}, param{"ld", "int"}, param{"n", "int"})
	for _, l := range [][2]string{{"dst", "DI"}, {"step", "R8"}, {"src", "SI"}, {"ld", "R9"}, {"n", "CX"}} {
		fn.load(l[0], l[1])
	}
	fn.i("IMULQ", p.size, "R8")
	fn.i("IMULQ", p.size, "R9")
	fn.i("LEAQ", "(SI)(R9*2)", "DX") // rows 2 and 3
	reg, width := func(i int) string { return fmt.Sprintf("X%d", i) }, 16
	if p.bits == 64 {
		reg, width = avx2.r, 32
	}
	fn.label("loop")
	for r, at := range []string{"(SI)", "(SI)(R9*1)", "(DX)", "(DX)(R9*1)"} {
		fn.move(at, reg(r))
	}
	if p.bits == 64 { // pairs within halves of a register, then halves
		for i := range 2 {
			fn.i("VUNPCKLPD", reg(2*i+1), reg(2*i), reg(4+2*i))
			fn.i("VUNPCKHPD", reg(2*i+1), reg(2*i), reg(5+2*i))
		}
		for i, half := range []int{0x20, 0x31} {
			fn.i("VPERM2F128", half, reg(6), reg(4), reg(2*i))
			fn.i("VPERM2F128", half, reg(7), reg(5), reg(2*i+1))
		}
	} else {
		for i := range 2 { // (r0c0 r1c0 r0c1 r1c1), (… c2 … c3)
			fn.i("VUNPCKLPS", reg(2*i+1), reg(2*i), reg(4+2*i))
			fn.i("VUNPCKHPS", reg(2*i+1), reg(2*i), reg(5+2*i))
		}
		for i := range 2 {
			fn.i("VUNPCKLPD", reg(6+i), reg(4+i), reg(2*i))
			fn.i("VUNPCKHPD", reg(6+i), reg(4+i), reg(2*i+1))
		}
	}
	for i := range 4 {
		fn.move(reg(i), "(DI)")
		fn.i("ADDQ", "R8", "DI")
	}
	fn.i("ADDQ", width, "SI")
	fn.i("ADDQ", width, "DX")
	fn.i("DECQ", "CX")
	fn.i("JNZ", "loop")
	fn.end()
}

// rows4 loads the operands of dots and steps.
func (fn *function) rows4(vector, other string) {
	for _, l := range [][2]string{{"a", "SI"}, {"step", "R8"}, {vector, "BX"}, {other, "DI"}, {"n", "CX"}} {
		fn.load(l[0], l[1])
	}
	fn.i("IMULQ", fn.p.size, "R8")
	fn.i("LEAQ", "(SI)(R8*2)", "DX") // rows 2 and 3
}

// next4 ends the loop over groups of 4 columns.
func (fn *function) next4(pointer string) {
	for _, p := range []string{pointer, "SI", "DX"} {
		fn.i("ADDQ", 32, p)
	}
	fn.i("DECQ", "CX")
	fn.i("JNZ", "loop")
}

// inRows4 are the places of a column in 4 rows.
var inRows4 = [...]string{"(SI)", "(SI)(R8*1)", "(DX)", "(DX)(R8*1)"}

// dots emits the products of 4 rows of a matrix with a vector.
func dots(f *file) {
	fn := f.begin(f64, "dots", "s[r][c] += Σ a[r·step + 4l + c]·x[4l + c] for 4 rows r over n > 0 groups l of 4 columns c, each product rounded",
		param{"a", "*T"}, param{"step", "int"}, param{"x", "*T"}, param{"s", "*T"}, param{"n", "int"})
	fn.rows4("x", "s")
	for r := range inRows4 {
		fn.move(mem("DI", 32*r), fn.r(r))
	}
	fn.label("loop")
	fn.move("(BX)", fn.r(4))
	for r, at := range inRows4 {
		fn.v("VMUL", at, fn.r(4), fn.r(5+r))
	}
	for r := range inRows4 {
		fn.v("VADD", fn.r(5+r), fn.r(r), fn.r(r))
	}
	fn.next4("BX")
	for r := range inRows4 {
		fn.move(fn.r(r), mem("DI", 32*r))
	}
	fn.end()
}

// steps emits the sum of a vector and 4 rows of a matrix with factors.
func steps(f *file) {
	fn := f.begin(f64, "steps", "y[j] += u[r]·a[r·step + j] for the rows r = 3, 2, 1, 0 in turn and n > 0 groups of 4 columns j, each product rounded",
		param{"a", "*T"}, param{"step", "int"}, param{"u", "*T"}, param{"y", "*T"}, param{"n", "int"})
	fn.rows4("u", "y")
	for r := range inRows4 {
		fn.bcast(mem("BX", 8*r), fn.r(r))
	}
	fn.label("loop")
	fn.move("(DI)", fn.r(4))
	for r := len(inRows4) - 1; r >= 0; r-- {
		fn.v("VMUL", inRows4[r], fn.r(r), fn.r(5+r))
		fn.v("VADD", fn.r(5+r), fn.r(4), fn.r(4))
	}
	fn.move(fn.r(4), "(DI)")
	fn.next4("DI")
	fn.end()
}

// columnDots emits the products of the columns of a column panel with a vector, or with
// themselves.
func columnDots(f *file, stem string, squares bool) {
	doc, params, factor := "b[4l + i][c]·w[4l + i]", []param{{"n", "int"}, {"b", "*T"}, {"w", "*T"}, {"s", "*T"}}, "its factor"
	if squares {
		doc, params, factor = "b[4l + i][c]²", slices.Delete(params, 2, 3), "itself"
	}
	fn := f.begin(f64, stem, "s[i][c] += Σ "+doc+" for 4 rows i over n > 0 groups l of 4 rows, each product of a number and "+factor+" rounded", params...)
	fn.load("n", "CX")
	fn.load("b", "SI")
	fn.load("s", "DI")
	if !squares {
		fn.load("w", "BX")
	}
	regs := f.shape(1, "").regs
	sum := func(i, h int) string { return f.r(i*regs + h) }
	each := func(do func(i, h int)) {
		for i := range 4 {
			for h := range regs {
				do(i, h)
			}
		}
	}
	each(func(i, h int) { fn.move(mem("DI", piece*i+f.width*h), sum(i, h)) })
	x := func(h int) string { return f.r(4*regs + h) }
	fn.label("loop")
	for i := range 4 {
		if !squares {
			fn.bcast(mem("BX", 8*i), f.r(5*regs))
		}
		for h := range regs {
			at := mem("SI", piece*i+f.width*h)
			if squares {
				fn.move(at, x(h))
				fn.v("VMUL", x(h), x(h), x(h))
			} else {
				fn.v("VMUL", at, f.r(5*regs), x(h))
			}
			fn.v("VADD", x(h), sum(i, h), sum(i, h))
		}
	}
	fn.i("ADDQ", 4*piece, "SI")
	if !squares {
		fn.i("ADDQ", 32, "BX")
	}
	fn.i("DECQ", "CX")
	fn.i("JNZ", "loop")
	each(func(i, h int) { fn.move(sum(i, h), mem("DI", piece*i+f.width*h)) })
	fn.end()
}

// pieces emits copies of the width of a tile.
func pieces(f *file, p precision) {
	fn := f.begin(p, "pieces", "copies n > 0 pieces of 64 bytes; the next is step elements further",
		param{"dst", "*T"}, param{"dstStep", "int"}, param{"src", "*T"}, param{"srcStep", "int"}, param{"n", "int"})
	for _, l := range [][2]string{{"dst", "DI"}, {"dstStep", "R8"}, {"src", "SI"}, {"srcStep", "R9"}, {"n", "CX"}} {
		fn.load(l[0], l[1])
	}
	fn.i("IMULQ", p.size, "R8")
	fn.i("IMULQ", p.size, "R9")
	fn.label("loop")
	regs := f.shape(1, "").regs
	for h := range regs {
		fn.move(mem("SI", f.width*h), f.r(h))
	}
	for h := range regs {
		fn.move(f.r(h), mem("DI", f.width*h))
	}
	fn.i("ADDQ", "R9", "SI")
	fn.i("ADDQ", "R8", "DI")
	fn.i("DECQ", "CX")
	fn.i("JNZ", "loop")
	fn.end()
}

// leaf is the order of the largest Cholesky factor made without blocking.
const leaf = 32

// cholesky emits the factorisation of one leaf, upper triangle, by rows. Row j divided by
// its root stays in registers while it is subtracted below.
func cholesky(f *file, p precision) {
	fn := f.begin(p, "cholesky", "Cholesky factor of the 32×32 matrix u, u = UᵀU, in place in its upper triangle. The part below is overwritten. ok is set to the number of positive pivots",
		param{"u", "*T"}, param{"ok", "*int"})
	fn.load("u", "DI")
	fn.load("ok", "DX")
	row := leaf * p.size
	vectors := leaf / fn.lanes()
	fn.i("XORQ", "AX", "AX") // j
	fn.i("MOVQ", "DI", "SI") // row j
	fn.i("VXORPS", "X15", "X15", "X15")
	fn.bcast(fn.constant(p.float(1)), f.r(14))
	scalar := "SS"
	if p.bits == 64 {
		scalar = "SD"
	}
	compare := "VUCOMISS"
	if p.bits == 64 {
		compare = "VUCOMISD"
	}
	for first := range vectors { // vectors before it are left of the diagonal
		pivot, below := fmt.Sprintf("pivot%d", first), fmt.Sprintf("below%d", first)
		fn.label(pivot)
		diagonal := fmt.Sprintf("(SI)(AX*%d)", p.size)
		fn.i("VMOV"+scalar, diagonal, "X12")
		fn.i(compare, "X15", "X12")
		fn.i("JLS", "done") // not above 0, or NaN
		fn.i("VSQRT"+scalar, "X12", "X12", "X12")
		fn.i("VDIV"+scalar, "X12", "X14", "X13")
		fn.i("VBROADCAST"+scalar, "X13", f.r(13))
		for v := first; v < vectors; v++ {
			fn.v("VMUL", mem("SI", f.width*v), f.r(13), f.r(v))
			fn.move(f.r(v), mem("SI", f.width*v))
		}
		fn.i("VMOV"+scalar, "X12", diagonal)
		fn.i("INCQ", "AX")
		fn.i("MOVQ", "AX", "CX")           // k
		fn.i("LEAQ", mem("SI", row), "R8") // row k
		fn.i("CMPQ", "CX", fmt.Sprintf("$%d", leaf))
		fn.i("JGE", "done")
		fn.label(below)
		fn.bcast(fmt.Sprintf("(SI)(CX*%d)", p.size), f.r(12))
		for v := first; v < vectors; v++ {
			t := f.r(8 + v%4)
			fn.move(mem("R8", f.width*v), t)
			fn.v("VFNMADD231", f.r(v), f.r(12), t)
			fn.move(t, mem("R8", f.width*v))
		}
		fn.i("ADDQ", row, "R8")
		fn.i("INCQ", "CX")
		fn.i("CMPQ", "CX", fmt.Sprintf("$%d", leaf))
		fn.i("JLT", below)
		fn.i("ADDQ", row, "SI")
		fn.i("TESTQ", fmt.Sprintf("$%d", fn.lanes()-1), "AX")
		fn.i("JNZ", pivot)
	}
	fn.label("done")
	fn.i("MOVQ", "AX", "(DX)")
	fn.end()
}

// peak emits a loop of independent multiply-adds only, for comparison.
func peak(f *file, p precision) {
	fn := f.begin(p, "peak", "12n multiply-adds of vectors, as fast as they go", param{"n", "int"})
	fn.load("n", "CX")
	fn.zero(0, 14)
	fn.label("loop")
	for i := range 12 {
		fn.v("VFMADD231", f.r(12), f.r(13), f.r(i))
	}
	fn.i("DECQ", "CX")
	fn.i("JNZ", "loop")
	fn.end()
}
