package main

import "fmt"

// mr is the number of rows of a tile. Its columns fill two registers.
const mr = 6

// acc is the accumulator of row r, half h, which is Y0 … Y11.
func acc(r, h int) string { return y(2*r + h) }

// kLoop emits step for k = 0 … n−1, four at a time. It overwrites the register counter,
// which has the count. The function step(i) works at offset i from the pointers, which
// advance moves.
func (f *function) kLoop(n, counter string, step func(i int), advance func(by int)) {
	f.i("MOVQ", n, counter)
	f.i("SHRQ", 2, counter)
	f.i("JZ", "remainder")
	f.label("four")
	for i := range 4 {
		step(i)
	}
	advance(4)
	f.i("DECQ", counter)
	f.i("JNZ", "four")
	f.label("remainder")
	f.i("MOVQ", n, counter)
	f.i("ANDQ", 3, counter)
	f.i("JZ", "summed")
	f.label("one")
	step(0)
	advance(1)
	f.i("DECQ", counter)
	f.i("JNZ", "one")
	f.label("summed")
}

// statistics are the sums over coordinates of a tile, in the order of
// simd.Statistic. Each gets the row's element in a register x, a register t and
// the column's vector b, in a register or in memory, and adds to sum.
// Y15 holds the constant, if there is one.
var statistics = []struct {
	name, doc string
	constant  func(p precision) uint64 // nil if there is none, and then t is Y15
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
			f.v("VAND", "Y15", t, t)
			f.v("VADD", t, sum, sum)
		},
	},
	{
		"mismatches", "Σ [a ≠ b]", func(p precision) uint64 { return p.float(1) },
		func(f *function, x, t, b, sum string) {
			f.v("VCMP", notEqual, b, x, t)
			f.v("VAND", "Y15", t, t)
			f.v("VADD", t, sum, sum)
		},
	},
}

// tile emits one row panel against n column panels. For each it computes the statistics of
// 6×NR pairs, stored one after the other at out.
func tile(f *file, p precision, s int) {
	st := statistics[s]
	fn := f.begin(p, st.name, fmt.Sprintf("out[t][r][c] = ha[r] + hb[t][c] + %s over k, for n > 0 column panels t", st.doc),
		param{"k", "int"}, param{"a", "*T"}, param{"ha", "*T"}, param{"b", "*T"}, param{"hb", "*T"}, param{"out", "*T"}, param{"n", "int"})
	for _, l := range [][2]string{{"k", "AX"}, {"a", "SI"}, {"ha", "BX"}, {"b", "DI"}, {"hb", "DX"}, {"out", "R8"}, {"n", "CX"}} {
		fn.load(l[0], l[1])
	}
	if st.constant != nil {
		fn.bcast(fn.constant(st.constant(p)), "Y15")
	}
	fn.label("tile")
	fn.statistic(s)
	for r := range mr {
		for h := range 2 {
			fn.move(acc(r, h), mem("R8", 64*r+32*h))
		}
	}
	fn.i("ADDQ", 64, "DX")
	fn.i("ADDQ", 64*mr, "R8")
	fn.i("DECQ", "CX")
	fn.i("JNZ", "tile")
	fn.end()
}

// statistic emits the sums of a tile. AX is k, SI points to the row panel, and DI to the
// column panel, which it advances past. BX and DX point to ha and hb. R9 and R10 are
// overwritten.
func (f *function) statistic(s int) {
	st, p := statistics[s], f.p
	// With a constant in a register, the second half of b stays in memory.
	var halves [2]func(i int) string
	b := func(i, h int) string { return mem("DI", 64*i+32*h) }
	halves[0] = func(int) string { return "Y12" }
	halves[1] = func(int) string { return "Y13" }
	x, t := "Y14", "Y15"
	if st.constant != nil {
		halves[1] = func(i int) string { return b(i, 1) }
		x, t = "Y13", "Y14"
	}
	for r := range mr {
		f.bcast(mem("BX", r*p.size), x)
		for h := range 2 {
			f.v("VADD", mem("DX", 32*h), x, acc(r, h))
		}
	}
	f.i("MOVQ", "SI", "R9")
	f.kLoop("AX", "R10", func(i int) {
		f.move(b(i, 0), "Y12")
		if st.constant == nil {
			f.move(b(i, 1), "Y13")
		}
		for r := range mr {
			row, tmp := x, t
			if st.name == "dot" && r%2 == 1 {
				row = t // two rows in flight
			}
			f.bcast(mem("R9", (i*mr+r)*p.size), row)
			for h := range 2 {
				st.term(f, row, tmp, halves[h](i), acc(r, h))
			}
		}
	}, func(by int) {
		f.i("ADDQ", by*mr*p.size, "R9")
		f.i("ADDQ", by*64, "DI")
	})
}

// product adds a·b over k to the accumulators, or subtracts it.
func (f *function) product(instruction, k, counter, a, b string) {
	f.kLoop(k, counter, func(i int) {
		f.move(mem(b, 64*i), "Y12")
		f.move(mem(b, 64*i+32), "Y13")
		for r := range mr {
			x := y(14 + r%2)
			f.bcast(mem(a, (i*mr+r)*f.p.size), x)
			f.v(instruction, x, "Y12", acc(r, 0))
			f.v(instruction, x, "Y13", acc(r, 1))
		}
	}, func(by int) {
		f.i("ADDQ", by*mr*f.p.size, a)
		f.i("ADDQ", by*64, b)
	})
}

// gemm emits the micro-kernel of matrix products.
func gemm(f *file, p precision) {
	fn := f.begin(p, "gemm", "c[r·ldc + j] = alpha·Σ a[l][r]·b[l][j] over k for a full tile, plus the old value if keep is not 0. ldc counts elements",
		param{"k", "int"}, param{"a", "*T"}, param{"b", "*T"}, param{"c", "*T"}, param{"ldc", "int"}, param{"keep", "int"}, param{"alpha", "T"})
	for _, l := range [][2]string{{"k", "AX"}, {"a", "SI"}, {"b", "DI"}, {"c", "DX"}, {"ldc", "R8"}} {
		fn.load(l[0], l[1])
	}
	fn.i("IMULQ", p.size, "R8")
	fn.zero(0, 12)
	fn.i("MOVQ", "DX", "R9")
	for range mr {
		fn.i("PREFETCHT0", mem("R9", 0))
		fn.i("PREFETCHT0", mem("R9", 56))
		fn.i("ADDQ", "R8", "R9")
	}
	fn.product("VFMADD231", "AX", "R10", "SI", "DI")
	fn.bcast(fn.arg("alpha"), "Y12")
	fn.load("keep", "AX")
	fn.i("TESTQ", "AX", "AX")
	fn.i("JZ", "fresh")
	for r := range mr {
		for h := range 2 {
			fn.move(mem("DX", 32*h), y(13+h))
			fn.v("VFMADD231", acc(r, h), "Y12", y(13+h))
			fn.move(y(13+h), mem("DX", 32*h))
		}
		fn.i("ADDQ", "R8", "DX")
	}
	fn.end()
	fn.label("fresh")
	for r := range mr {
		for h := range 2 {
			fn.v("VMUL", "Y12", acc(r, h), acc(r, h))
			fn.move(acc(r, h), mem("DX", 32*h))
		}
		fn.i("ADDQ", "R8", "DX")
	}
	fn.end()
}

// trsm emits one step of the solution of L·Y = B for one panel of columns.
func trsm(f *file, p precision) {
	fn := f.begin(p, "trsm", "c = L⁻¹(c − Σ a[l]·b[l]) over k, in place on 6 rows of a panel; L follows a, its diagonal inverted",
		param{"k", "int"}, param{"a", "*T"}, param{"b", "*T"}, param{"c", "*T"})
	for _, l := range [][2]string{{"k", "AX"}, {"a", "SI"}, {"b", "DI"}, {"c", "DX"}} {
		fn.load(l[0], l[1])
	}
	for r := range mr {
		for h := range 2 {
			fn.move(mem("DX", 64*r+32*h), acc(r, h))
		}
	}
	fn.product("VFNMADD231", "AX", "R10", "SI", "DI")
	for c := range mr {
		fn.bcast(mem("SI", (c*mr+c)*p.size), "Y12")
		for h := range 2 {
			fn.v("VMUL", "Y12", acc(c, h), acc(c, h))
			fn.move(acc(c, h), mem("DX", 64*c+32*h))
		}
		for r := c + 1; r < mr; r++ {
			x := y(12 + (r-c)%4)
			fn.bcast(mem("SI", (c*mr+r)*p.size), x)
			for h := range 2 {
				fn.v("VFNMADD231", x, acc(c, h), acc(r, h))
			}
		}
	}
	fn.end()
}

// multiply emits the product of a row panel of K with a vector.
func multiply(f *file, p precision) {
	fn := f.begin(p, "multiply", "u[r][lane] += Σ over n > 0 tiles of k[t][r][·]·v[t][·], in lanes that are still to be added up",
		param{"k", "*T"}, param{"v", "*T"}, param{"u", "*T"}, param{"n", "int"})
	for _, l := range [][2]string{{"k", "SI"}, {"v", "DX"}, {"u", "DI"}, {"n", "CX"}} {
		fn.load(l[0], l[1])
	}
	for r := range mr {
		fn.move(mem("DI", 32*r), acc(r, 0))
		fn.i("VXORPS", acc(r, 1), acc(r, 1), acc(r, 1))
	}
	fn.label("tile")
	fn.move(mem("DX", 0), "Y12")
	fn.move(mem("DX", 32), "Y13")
	for r := range mr {
		for h := range 2 {
			fn.v("VFMADD231", mem("SI", 64*r+32*h), y(12+h), acc(r, h))
		}
	}
	fn.i("ADDQ", 64, "DX")
	fn.i("ADDQ", 64*mr, "SI")
	fn.i("DECQ", "CX")
	fn.i("JNZ", "tile")
	for r := range mr {
		fn.v("VADD", acc(r, 1), acc(r, 0), acc(r, 0))
		fn.move(acc(r, 0), mem("DI", 32*r))
	}
	fn.end()
}

// multiplyT emits the product of a transposed row panel of K with 6 numbers.
func multiplyT(f *file, p precision) {
	fn := f.begin(p, "multiplyT", "w[t][c] += Σ_r k[t][r][c]·u[r] for n > 0 tiles t",
		param{"k", "*T"}, param{"u", "*T"}, param{"w", "*T"}, param{"n", "int"})
	for _, l := range [][2]string{{"k", "SI"}, {"u", "DX"}, {"w", "DI"}, {"n", "CX"}} {
		fn.load(l[0], l[1])
	}
	for r := range mr {
		fn.bcast(mem("DX", r*p.size), y(10+r))
	}
	fn.label("tile")
	for h := range 2 {
		fn.move(mem("DI", 32*h), y(h))
	}
	for r := range mr {
		for h := range 2 {
			fn.v("VFMADD231", mem("SI", 64*r+32*h), y(10+r), y(h))
		}
	}
	for h := range 2 {
		fn.move(y(h), mem("DI", 32*h))
	}
	fn.i("ADDQ", 64, "DI")
	fn.i("ADDQ", 64*mr, "SI")
	fn.i("DECQ", "CX")
	fn.i("JNZ", "tile")
	fn.end()
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
	fn := f.begin(p, "multiplyRows", "u[r][lane] += Σ over n > 0 pieces of 64 bytes of a[r·step + ·]·v[·] for 6 rows r, in lanes that are still to be added up",
		param{"a", "*T"}, param{"step", "int"}, param{"v", "*T"}, param{"u", "*T"}, param{"n", "int"})
	fn.rows("a", "step")
	for _, l := range [][2]string{{"v", "BX"}, {"u", "DI"}, {"n", "CX"}} {
		fn.load(l[0], l[1])
	}
	for r := range mr {
		fn.move(mem("DI", 32*r), acc(r, 0))
		fn.i("VXORPS", acc(r, 1), acc(r, 1), acc(r, 1))
	}
	fn.label("piece")
	fn.move(mem("BX", 0), "Y12")
	fn.move(mem("BX", 32), "Y13")
	for r := range mr {
		for h := range 2 {
			fn.v("VFMADD231", rowAt(r, 32*h), y(12+h), acc(r, h))
		}
	}
	for _, pointer := range []string{"BX", "SI", "DX"} {
		fn.i("ADDQ", 64, pointer)
	}
	fn.i("DECQ", "CX")
	fn.i("JNZ", "piece")
	for r := range mr {
		fn.v("VADD", acc(r, 1), acc(r, 0), acc(r, 0))
		fn.move(acc(r, 0), mem("DI", 32*r))
	}
	fn.end()
}

// addRows emits the sum of rows of a matrix, 6 or 1, in place, with factors.
func addRows(f *file, p precision, stem string, rows int) {
	fn := f.begin(p, stem, fmt.Sprintf("w[·] += Σ_r a[r·step + ·]·u[r] for n > 0 pieces of 64 bytes and rows r < %d", rows),
		param{"a", "*T"}, param{"step", "int"}, param{"u", "*T"}, param{"w", "*T"}, param{"n", "int"})
	fn.rows("a", "step")
	for _, l := range [][2]string{{"u", "BX"}, {"w", "DI"}, {"n", "CX"}} {
		fn.load(l[0], l[1])
	}
	for r := range rows {
		fn.bcast(mem("BX", r*p.size), y(10+r))
	}
	fn.label("piece")
	for h := range 2 {
		fn.move(mem("DI", 32*h), y(h))
	}
	for r := range rows {
		for h := range 2 {
			fn.v("VFMADD231", rowAt(r, 32*h), y(10+r), y(h))
		}
	}
	for h := range 2 {
		fn.move(y(h), mem("DI", 32*h))
	}
	for _, pointer := range []string{"DI", "SI", "DX"} {
		fn.i("ADDQ", 64, pointer)
	}
	fn.i("DECQ", "CX")
	fn.i("JNZ", "piece")
	fn.end()
}

// squares emits the sums of squares of the columns of a column panel.
func squares(f *file, p precision) {
	fn := f.begin(p, "squares", "s[c] += Σ b[l][c]² over k", param{"k", "int"}, param{"b", "*T"}, param{"s", "*T"})
	for _, l := range [][2]string{{"k", "AX"}, {"b", "DI"}, {"s", "DX"}} {
		fn.load(l[0], l[1])
	}
	fn.zero(0, 8) // four sums for each column
	fn.kLoop("AX", "R10", func(i int) {
		for h := range 2 {
			fn.move(mem("DI", 64*i+32*h), y(8+2*i+h))
			fn.v("VFMADD231", y(8+2*i+h), y(8+2*i+h), y(2*i+h))
		}
	}, func(by int) { fn.i("ADDQ", by*64, "DI") })
	for h := range 2 {
		fn.v("VADD", y(2+h), y(h), y(h))
		fn.v("VADD", y(6+h), y(4+h), y(4+h))
		fn.v("VADD", y(4+h), y(h), y(h))
		fn.v("VADD", mem("DX", 32*h), y(h), y(h))
		fn.move(y(h), mem("DX", 32*h))
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
	for i := range 4 {
		fn.i("VCVTPS2PD", mem("SI", 16*i), y(i))
		fn.i("VADDPD", mem("DI", 32*i), y(i), y(i))
		fn.i("VMOVUPD", y(i), mem("DI", 32*i))
	}
	fn.i("VMOVUPS", "Y8", mem("SI", 0))
	fn.i("VMOVUPS", "Y8", mem("SI", 32))
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
		reg, width = y, 32
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
	for h := range 2 {
		fn.move(mem("SI", 32*h), y(h))
	}
	for h := range 2 {
		fn.move(y(h), mem("DI", 32*h))
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
	vectors := leaf / p.lanes
	fn.i("XORQ", "AX", "AX") // j
	fn.i("MOVQ", "DI", "SI") // row j
	fn.i("VXORPS", "X15", "X15", "X15")
	fn.bcast(fn.constant(p.float(1)), "Y14")
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
		fn.i("VBROADCAST"+scalar, "X13", "Y13")
		for v := first; v < vectors; v++ {
			fn.v("VMUL", mem("SI", 32*v), "Y13", y(v))
			fn.move(y(v), mem("SI", 32*v))
		}
		fn.i("VMOV"+scalar, "X12", diagonal)
		fn.i("INCQ", "AX")
		fn.i("MOVQ", "AX", "CX")           // k
		fn.i("LEAQ", mem("SI", row), "R8") // row k
		fn.i("CMPQ", "CX", fmt.Sprintf("$%d", leaf))
		fn.i("JGE", "done")
		fn.label(below)
		fn.bcast(fmt.Sprintf("(SI)(CX*%d)", p.size), "Y12")
		for v := first; v < vectors; v++ {
			t := y(8 + v%4)
			fn.move(mem("R8", 32*v), t)
			fn.v("VFNMADD231", y(v), "Y12", t)
			fn.move(t, mem("R8", 32*v))
		}
		fn.i("ADDQ", row, "R8")
		fn.i("INCQ", "CX")
		fn.i("CMPQ", "CX", fmt.Sprintf("$%d", leaf))
		fn.i("JLT", below)
		fn.i("ADDQ", row, "SI")
		fn.i("TESTQ", fmt.Sprintf("$%d", p.lanes-1), "AX")
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
	fn.zero(0, 16)
	fn.label("loop")
	for i := range 12 {
		fn.v("VFMADD231", "Y12", "Y13", y(i))
	}
	fn.i("DECQ", "CX")
	fn.i("JNZ", "loop")
	fn.end()
}
