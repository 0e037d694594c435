package main

import "fmt"

// fused are the pairs of statistic and function whose tiles are finished before they leave
// the registers. They are Gaussian kernels, by inner products and by differences, and
// random features. Others take three steps, because most of their functions need more
// registers. The Laplace kernel's does not, and was not tried.
var fused = []struct{ statistic, function string }{
	{"dot", "decay2"},
	{"dot", "cosTurns"},
	{"squared", "fall2"},
}

// fusedTile emits a tile with a function and a product at its end. When the sums are
// complete, half of the tile, 6 vectors, is written to out. The function is applied to the
// other half with 6 more registers and 4 for constants. Its result is written to out and,
// times v, added to u. The first half follows in the same way. A value without a register,
// such as an exponent or a factor, is stored in its vector's place in out.
func fusedTile(f *file, p precision, statistic, function string) {
	s := indexOf(statistic, len(statistics), func(i int) string { return statistics[i].name })
	phi := functions[indexOf(function, len(functions), func(i int) string { return functions[i].name })]
	g, result := newProgram(p, phi.body)
	fn := f.begin(p, statistic+title(function),
		fmt.Sprintf("out[t][r][c] = K = φ(ha[r] + hb[t][c] + %s over k), φ(x) = %s, u[r][lane] += Σ K[t][r][·]·v[t][·], for n > 0 column panels t", statistics[s].doc, phi.doc),
		param{"k", "int"}, param{"a", "*T"}, param{"ha", "*T"}, param{"b", "*T"}, param{"hb", "*T"}, param{"out", "*T"},
		param{"n", "int"}, param{"v", "*T"}, param{"u", "*T"}, param{"par", "*T"})
	for _, l := range [][2]string{
		{"k", "AX"}, {"a", "SI"}, {"ha", "BX"}, {"b", "DI"}, {"hb", "DX"}, {"out", "R8"}, {"n", "CX"}, {"v", "R11"}, {"u", "R12"}, {"par", "R13"},
	} {
		fn.load(l[0], l[1])
	}
	const half = mr // vectors
	e := emitter{function: fn, g: g, a: g.allocate(result, 2), batch: half, par: "R13", cached: make([]value, 2), scratch: 12}
	fn.label("tile")
	sh := f.shape(1, "")
	fn.statistic(s, sh, "BX", nil)
	for k := range half {
		fn.move(f.r(half+k), mem("R8", f.width*(half+k)))
	}
	for h := range 2 {
		e.vector = func(k int) string { return mem("R8", f.width*(half*h+k)) }
		if h > 0 {
			e.loadVectors()
		}
		e.apply()
		slot := e.a.slot[result]
		sum := func(i int) string { return f.r(half*(1-slot) + i) }
		fn.move(mem("R11", 0), f.r(12))
		fn.move(mem("R11", 32), f.r(13))
		for k := range half {
			fn.move(e.register(result, k), e.vector(k))
		}
		for i := range half / 2 {
			fn.move(mem("R12", f.width*(half/2*h+i)), sum(i))
		}
		for c := range 2 {
			for i := range half / 2 {
				fn.v("VFMADD231", e.register(result, 2*i+c), f.r(12+c), sum(i))
			}
		}
		for i := range half / 2 {
			fn.move(sum(i), mem("R12", f.width*(half/2*h+i)))
		}
	}
	fn.i("ADDQ", 64, "DX")
	fn.i("ADDQ", 64, "R11")
	fn.i("ADDQ", 64*mr, "R8")
	fn.i("DECQ", "CX")
	fn.i("JNZ", "tile")
	fn.end()
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
