package main

import (
	"fmt"
	"slices"
)

// fused are the pairs of statistic and function whose tiles are finished before they leave
// the registers. They are Gaussian kernels, by inner products and by differences, random
// features, and Matérn-5/2 where there are 32 registers. Others take three steps, because
// most of their functions need more registers. The Laplace kernel's does not, and was not
// tried.
var fused = []struct {
	statistic, function string
	least               int // registers that a vector needs
}{
	{"dot", "decay2", 2},
	{"dot", "cosTurns", 2},
	{"squared", "fall2", 2},
	{"dot", "matern52", 4},
	{"squared", "matern52", 4},
}

// batch is the number of vectors that blocks applies a function to at once.
const batch = mr

// blocks emits tiles with a function and a product at their end, for panels of rows one
// after the other, while the column panels stay in L1.
func blocks(f *file, p precision, statistic, function string) {
	s := indexOf(statistic, len(statistics), func(i int) string { return statistics[i].name })
	phi := functions[indexOf(function, len(functions), func(i int) string { return functions[i].name })]
	g, result := newProgram(f.target, p, phi.body)
	fn := f.beginFrame(p, statistic+title(function), 32,
		fmt.Sprintf("out[p·step + t·6·nr + r·nr + c] = K = φ(ha[p][r] + hb[t][c] + %s over k), φ(x) = %s, u[p][r][lane] += Σ K·v[t][·], for n > 0 column panels t of nr columns and panels > 0 row panels p. step counts elements", statistics[s].doc, phi.doc),
		param{"k", "int"}, param{"a", "*T"}, param{"ha", "*T"}, param{"b", "*T"}, param{"hb", "*T"}, param{"out", "*T"}, param{"step", "int"},
		param{"n", "int"}, param{"panels", "int"}, param{"v", "*T"}, param{"u", "*T"}, param{"par", "*T"})
	for _, l := range [][2]string{{"k", "AX"}, {"b", "DI"}, {"hb", "DX"}, {"out", "R8"}, {"n", "CX"}, {"v", "R11"}} {
		fn.load(l[0], l[1])
	}
	fn.distance("AX", piece)
	fn.i("MOVQ", "R8", "out-8(SP)")
	a := g.allocate(result, f.slots)
	fn.passes("tile", f.panels, func(sh shape) {
		for _, l := range [][2]string{{"ha", "ha-16(SP)"}, {"u", "u-24(SP)"}, {"panels", "count-32(SP)"}} {
			fn.load(l[0], "R9")
			fn.i("MOVQ", "R9", l[1])
		}
		fn.load("a", "SI")
		fn.i("MOVQ", "out-8(SP)", "R8")
		var prefetch func(i int)
		if f.panels > 1 { // the next column panels
			fn.i("LEAQ", fmt.Sprintf("(DI)(R12*%d)", sh.panels), "BX")
			prefetch = func(i int) {
				fn.i("PREFETCHT1", mem("BX", 0))
				fn.i("ADDQ", piece, "BX")
			}
		}
		fn.label(sh.prefix + "panel")
		fn.i("MOVQ", "ha-16(SP)", "R9")
		fn.statistic(s, sh, "R9", prefetch)
		fn.i("MOVQ", "R9", "SI")
		fn.finish(sh, g, a, result)
		fn.i("ADDQ", mr*p.size, "ha-16(SP)")
		fn.i("ADDQ", f.width*mr, "u-24(SP)")
		fn.load("step", "R9")
		fn.i("IMULQ", p.size, "R9")
		fn.i("ADDQ", "R9", "R8")
		fn.back(sh)
		fn.i("DECQ", "count-32(SP)")
		fn.i("JNZ", sh.prefix+"panel")
		fn.i("LEAQ", fmt.Sprintf("(DI)(R12*%d)", sh.panels), "DI")
		fn.i("ADDQ", piece*sh.panels, "DX")
		fn.i("ADDQ", piece*sh.panels, "R11")
		fn.i("ADDQ", piece*mr*sh.panels, "out-8(SP)")
	})
	fn.end()
}

// back moves DI from the end of a statistic to its column panels.
func (f *function) back(sh shape) {
	f.i("SUBQ", "R12", "DI")
	if sh.panels > 1 {
		f.i("SUBQ", "R13", "DI")
	}
}

// finish applies a function to the sums of a tile, one batch of vectors after the other.
// It writes each to out, at R8, and adds its product with v, at R11, to u. The sums of the
// last batches are written to out first, to make room for what the function needs. A value
// without a register, such as an exponent or a factor, is stored in its vector's place in
// out. R9 and R10 are overwritten.
func (f *function) finish(sh shape, g *program, a allocation, result value) {
	sums := mr * sh.regs
	batches, aside := sums/batch, 0
	top := f.count - 2 // the end of the registers, without those of constants
	if slices.Contains(a.slot, memory) {
		top -= 2
	}
	for (batches-aside)*batch > top-(a.slots-1)*batch {
		aside++
	}
	e := emitter{function: f, g: g, a: a, batch: batch, par: "R9", cached: make([]value, 2), scratch: top}
	place := func(i int) string { return f.inTiles("R8", i/sh.regs, i%sh.regs) }
	for i := (batches - aside) * batch; i < sums; i++ {
		f.move(f.r(i), place(i))
	}
	f.i("MOVQ", "u-24(SP)", "R10")
	f.load("par", "R9")
	for h := range batches {
		first := h * batch
		e.vector = func(k int) string { return place(first + k) }
		base := first
		if h >= batches-aside {
			base = 0
		}
		e.at = func(slot, k int) string {
			if slot == 0 {
				return f.r(base + k)
			}
			return f.r(top - slot*batch + k)
		}
		if h >= batches-aside {
			e.loadVectors()
		}
		e.apply()
		sum := func(i int) string { // of the row of vector i, in a slot without the result
			return e.at((a.slot[result]+1)%a.slots, i/sh.regs-first/sh.regs)
		}
		for k := range batch {
			f.move(e.register(result, k), e.vector(k))
		}
		u := func(i int) string { return mem("R10", f.width*(i/sh.regs)) }
		rows := func(do func(i int)) {
			for i := first; i < first+batch; i++ {
				if i == first || i%sh.regs == 0 {
					do(i)
				}
			}
		}
		rows(func(i int) { f.move(u(i), sum(i)) })
		for k := range batch {
			f.v("VFMADD231", mem("R11", f.width*((first+k)%sh.regs)), e.register(result, k), sum(first+k))
		}
		rows(func(i int) { f.move(sum(i), u(i)) })
	}
}

func indexOf(name string, n int, at func(i int) string) int {
	for i := range n {
		if at(i) == name {
			return i
		}
	}
	panic("no " + name)
}

// title is s with a capital letter.
func title(s string) string { return string(s[0]-'a'+'A') + s[1:] }
