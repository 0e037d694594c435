package main

import (
	"fmt"
	"math"
	"slices"
)

// program is an element-wise function in static single assignment. It describes operations
// on one vector, without registers. The emitter applies it to several vectors at once,
// instruction by instruction, to hide latencies.
type program struct {
	target
	p     precision
	nodes []node
}

// value is the index of the node that computes it.
type value int

// node is one operation.
type node struct {
	op   string // "x", "const", "param", or an instruction of emit
	args []value
	imm  int    // shift count, comparison, rounding, parameter number
	bits uint64 // of a constant

	table []uint64 // 64 bytes of numbers
}

func (g *program) add1(n node) value {
	g.nodes = append(g.nodes, n)
	return value(len(g.nodes) - 1)
}

func (g *program) constant(v float64) value { return g.raw(g.p.float(v)) }

// raw returns a constant given by its bits.
func (g *program) raw(bits uint64) value {
	for i, n := range g.nodes {
		if n.op == "const" && n.bits == bits {
			return value(i)
		}
	}
	return g.add1(node{op: "const", bits: bits})
}

// param returns the i-th parameter of the caller.
func (g *program) param(i int) value { return g.add1(node{op: "param", imm: i}) }

func (g *program) add(a, b value) value { return g.add1(node{op: "VADD", args: []value{a, b}}) }
func (g *program) sub(a, b value) value { return g.add1(node{op: "VSUB", args: []value{a, b}}) }
func (g *program) mul(a, b value) value { return g.add1(node{op: "VMUL", args: []value{a, b}}) }
func (g *program) div(a, b value) value { return g.add1(node{op: "VDIV", args: []value{a, b}}) }
func (g *program) sqrt(a value) value   { return g.add1(node{op: "VSQRT", args: []value{a}}) }
func (g *program) round(a value) value  { return g.add1(node{op: "VROUND", args: []value{a}}) }

// max and min return a if either is NaN.
func (g *program) max(a, b value) value { return g.add1(node{op: "VMAX", args: []value{a, b}}) }
func (g *program) min(a, b value) value { return g.add1(node{op: "VMIN", args: []value{a, b}}) }

// fma is a·b + c, fnma is c − a·b, both with one rounding.
func (g *program) fma(a, b, c value) value {
	return g.add1(node{op: "VFMADD", args: []value{a, b, c}})
}

func (g *program) fnma(a, b, c value) value {
	return g.add1(node{op: "VFNMADD", args: []value{a, b, c}})
}

// Bit operations.
func (g *program) and(a, b value) value { return g.add1(node{op: "VAND", args: []value{a, b}}) }
func (g *program) or(a, b value) value  { return g.add1(node{op: "VOR", args: []value{a, b}}) }
func (g *program) xor(a, b value) value { return g.add1(node{op: "VXOR", args: []value{a, b}}) }

// Integer operations on the bits.
func (g *program) iadd(a, b value) value { return g.add1(node{op: "VPADD", args: []value{a, b}}) }

func (g *program) shl(a value, n int) value {
	return g.add1(node{op: "VPSLL", args: []value{a}, imm: n})
}

func (g *program) shr(a value, n int) value {
	return g.add1(node{op: "VPSRL", args: []value{a}, imm: n})
}

// Operations of targets with masks.

// lookup returns the number of the table that the lowest bits of a are the index of.
func (g *program) lookup(table []uint64, a value) value {
	return g.add1(node{op: "VPERM", args: []value{a}, table: table})
}

// reduce returns x − n, with n the nearest multiple of 2^−bits.
func (g *program) reduce(x value, bits int) value {
	return g.add1(node{op: "VREDUCE", args: []value{x}, imm: bits<<4 | 8})
}

// iaddFrom is the integer sum a + b where x ≥ from, else 0.
func (g *program) iaddFrom(x, from, a, b value) value {
	return g.add1(node{op: "VPADDZ", args: []value{x, from, a, b}, imm: atLeast})
}

// Predicates of comparisons.
const (
	less     = 17 // ordered, quiet
	atLeast  = 29 // ordered, quiet
	notEqual = 4  // unordered, quiet
)

// compare returns all ones where a ? b holds.
func (g *program) compare(predicate int, a, b value) value {
	return g.add1(node{op: "VCMP", args: []value{a, b}, imm: predicate})
}

// choose returns a where the mask is set, else b.
func (g *program) choose(mask, a, b value) value {
	return g.add1(node{op: "VBLENDV", args: []value{mask, a, b}})
}

// poly evaluates Horner's scheme, with coefficients lowest power first.
func (g *program) poly(x value, c []float64) value {
	s := g.constant(c[len(c)-1])
	for i := len(c) - 2; i >= 0; i-- {
		s = g.fma(s, x, g.constant(c[i]))
	}
	return s
}

// inMemory reports whether a value is a constant of the function, read when needed.
func (n node) inMemory() bool { return n.op == "const" || n.op == "param" }

// allocation has the slot of each value. A slot is one register for each vector of the
// batch. A value without a slot is stored in memory.
type allocation struct {
	slot   []int
	dies   []int // last node that uses the value
	parked []int // node before which the value goes to memory, or never
	slots  int
}

const (
	nowhere = -1 // the slot of a constant, or of an unused value
	memory  = -2 // the slot of a value that goes to memory at once
	never   = math.MaxInt
)

// allocate is a linear scan over at most the given number of slots. A result may take the
// slot of an operand that is not used later. A fused multiply-add must do so, because it
// overwrites one of its operands. Without a free slot the value that is needed last goes to
// memory (Belady). There is room for one.
func (g *program) allocate(result value, most int) allocation {
	a := allocation{slot: make([]int, len(g.nodes)), dies: make([]int, len(g.nodes)), parked: make([]int, len(g.nodes))}
	for i, n := range g.nodes {
		a.slot[i], a.parked[i] = nowhere, never
		for _, arg := range n.args {
			a.dies[arg] = i
		}
	}
	a.dies[result] = len(g.nodes)
	var free []int
	room := 0 // first node at which the memory is free
	for i, n := range g.nodes {
		if n.inMemory() || a.dies[i] == 0 {
			continue
		}
		for k, arg := range n.args {
			if a.slot[arg] >= 0 && a.parked[arg] > i && a.dies[arg] == i && slices.Index(n.args, arg) == k {
				free = append(free, a.slot[arg])
			}
		}
		switch {
		case len(free) > 0:
			a.slot[i] = free[len(free)-1]
			free = free[:len(free)-1]
		case a.slots < most:
			a.slot[i] = a.slots
			a.slots++
		default:
			last := g.neededLast(a, i)
			if room > i {
				panic("two values for one place in memory")
			}
			room = a.dies[last]
			a.slot[i], a.parked[last] = a.slot[last], i
			if int(last) == i {
				a.slot[i] = memory
			}
		}
	}
	return a
}

// neededLast returns the value with the furthest next use among those that live at node i
// and are not its operands, and its result.
func (g *program) neededLast(a allocation, i int) value {
	next := func(v value) int {
		for j := i + 1; j < len(g.nodes); j++ {
			if slices.Contains(g.nodes[j].args, v) {
				return j
			}
		}
		return len(g.nodes)
	}
	best := value(i)
	for v := range value(i) {
		lives := a.slot[v] >= 0 && a.parked[v] == never && a.dies[v] > i
		if lives && !slices.Contains(g.nodes[i].args, v) && next(v) > next(best) {
			best = v
		}
	}
	return best
}

// emitter applies a program to a batch of vectors.
type emitter struct {
	*function
	g       *program
	a       allocation
	batch   int
	par     string             // register that points to the parameters
	vector  func(k int) string // source of vector k and memory for stored values
	parked  value              // the value that is stored there now
	cached  []value            // which constant each of the last registers holds
	next    int
	scratch int                      // first register for values that are parked at once
	at      func(slot, k int) string // the register of vector k in a slot
}

// scratch is the number of registers for constants and copies.
const scratch = 2

// newProgram returns a function as a program, and its result value.
func newProgram(t target, p precision, body func(g *program, x value) value) (g *program, result value) {
	g = &program{target: t, p: p}
	return g, body(g, g.add1(node{op: "x"}))
}

// vectorFunction emits func(x *T, n int, par *T). It runs the program in place on n > 0
// tiles at x.
func (f *file) vectorFunction(p precision, stem, doc string, body func(g *program, x value) value) {
	g, result := newProgram(f.target, p, body)
	fn := f.begin(p, stem, doc, param{"x", "*T"}, param{"n", "int"}, param{"par", "*T"})
	e := emitter{function: fn, g: g, a: g.allocate(result, never), par: "SI"}
	e.vector = func(k int) string { return mem("DI", f.width*k) }
	e.at = func(slot, k int) string { return f.r(slot*e.batch + k) }
	vectors := mr * piece / f.width // of a tile
	for _, b := range []int{6, 4, 3, 2, 1} {
		if vectors%b == 0 && b*e.a.slots+scratch <= f.count {
			e.batch = b
			break
		}
	}
	if e.batch == 0 {
		panic(fmt.Sprintf("%s: %d values alive at once", fn.name, e.a.slots))
	}
	e.cached = make([]value, min(f.count/4, f.count-e.batch*e.a.slots))
	fn.load("x", "DI")
	fn.load("n", "CX")
	fn.load("par", "SI")
	if calls := vectors / e.batch; calls > 1 {
		fn.i("IMULQ", calls, "CX")
	}
	fn.label("loop")
	e.loadVectors()
	e.apply()
	for k := range e.batch {
		fn.move(e.register(result, k), mem("DI", f.width*k))
	}
	fn.i("ADDQ", f.width*e.batch, "DI")
	fn.i("DECQ", "CX")
	fn.i("JNZ", "loop")
	fn.end()
}

// loadVectors reads the batch.
func (e *emitter) loadVectors() {
	e.parked = nowhere
	for k := range e.batch {
		e.move(e.vector(k), e.register(0, k))
	}
}

// apply emits all operations, with the batch in the registers of its slot.
func (e *emitter) apply() {
	for i := range e.cached {
		e.cached[i] = -1
	}
	e.parked = nowhere
	for i, n := range e.g.nodes {
		if n.op == "x" || n.inMemory() || e.a.slot[i] == nowhere {
			continue
		}
		for v, at := range e.a.parked {
			if at == i && v != i {
				for k := range e.batch {
					e.move(e.register(value(v), k), e.vector(k))
				}
				e.parked = value(v)
			}
		}
		e.node(value(i), n)
	}
}

// register returns the register with value v of vector k of the batch, or the memory where
// it is stored.
func (e *emitter) register(v value, k int) string {
	switch {
	case v == e.parked:
		return e.vector(k)
	case e.a.slot[v] == memory:
		return e.r(e.scratch + k%2)
	}
	return e.at(e.a.slot[v], k)
}

// source returns the memory operand of a constant or parameter.
func (e *emitter) source(v value) string {
	if n := e.g.nodes[v]; n.op == "param" {
		return mem(e.par, n.imm*e.p.size)
	}
	return e.constant(e.g.nodes[v].bits)
}

// fetch returns a register with constant v, from the last registers of all.
func (e *emitter) fetch(v value, not ...int) int {
	for i, c := range e.cached {
		if c == v {
			return e.count - 1 - i
		}
	}
	i := e.next % len(e.cached)
	for len(not) > 0 && e.count-1-i == not[0] {
		e.next++
		i = e.next % len(e.cached)
	}
	e.next++
	e.cached[i] = v
	e.bcast(e.source(v), e.r(e.count-1-i))
	return e.count - 1 - i
}

// node emits one operation for all vectors of the batch.
func (e *emitter) node(v value, n node) {
	if n.op == "VFMADD" || n.op == "VFNMADD" {
		e.fused(v, n)
		return
	}
	fixed := map[value]int{}
	var taken []int
	for _, a := range n.args {
		if _, ok := fixed[a]; e.g.nodes[a].inMemory() && !ok {
			fixed[a] = e.fetch(a, taken...)
			taken = append(taken, fixed[a])
		}
	}
	for k := range e.batch {
		arg := func(i int) string {
			if r, ok := fixed[n.args[i]]; ok {
				return e.r(r)
			}
			return e.register(n.args[i], k)
		}
		dst := e.register(v, k)
		switch n.op {
		case "VSQRT":
			e.v(n.op, arg(0), dst)
		case "VROUND": // to nearest, no exception
			if e.masks {
				e.v("VRNDSCALE", 8, arg(0), dst)
				break
			}
			e.v(n.op, 8, arg(0), dst)
		case "VREDUCE":
			e.v(n.op, n.imm, arg(0), dst)
		case "VPERM":
			e.v(n.op, e.numbers(n.table), arg(0), dst)
		case "VPADDZ":
			e.v("VCMP", n.imm, arg(1), arg(0), "K1")
			e.i(e.p.integer("VPADD")+".Z", arg(3), arg(2), "K1", dst)
		case "VPSLL", "VPSRL":
			e.i(e.p.integer(n.op), n.imm, arg(0), dst)
		case "VPADD":
			e.i(e.p.integer(n.op), arg(1), arg(0), dst)
		case "VMAX", "VMIN":
			e.v(n.op, arg(0), arg(1), dst) // with NaN, the first operand is returned
		case "VCMP":
			if e.masks {
				e.v(n.op, n.imm, arg(1), arg(0), "K1")
				e.i(e.p.integer("VPMOVM2"), "K1", dst)
				break
			}
			e.v(n.op, n.imm, arg(1), arg(0), dst)
		case "VBLENDV":
			if e.masks {
				e.i(e.p.integer("VPMOV")+"2M", arg(0), "K1")
				e.v("VBLENDM", arg(1), arg(2), "K1", dst)
				break
			}
			e.v(n.op, arg(0), arg(1), arg(2), dst)
		default:
			e.v(n.op, arg(1), arg(0), dst)
		}
		if e.a.slot[v] == memory {
			e.move(dst, e.vector(k))
		}
	}
	if e.a.slot[v] == memory {
		e.parked = v
	}
}

// fused emits a·b + c or c − a·b into an operand that dies, or a copy of one.
func (e *emitter) fused(v value, n node) {
	if e.a.slot[v] == memory {
		panic(fmt.Sprintf("%s: a multiply-add without registers", e.name))
	}
	a, b, c := n.args[0], n.args[1], n.args[2]
	in := func(w value) bool { return e.g.nodes[w].inMemory() }
	same := func(w value) bool { return !in(w) && w != e.parked && e.a.slot[w] == e.a.slot[v] }
	if same(b) || !same(a) && in(a) && !in(b) && in(c) {
		a, b = b, a
	}
	reg := func(w value, fixed, k int) string {
		if in(w) {
			return e.r(fixed)
		}
		return e.register(w, k)
	}
	switch {
	case same(a): // a = b·a + c
		fb, fc := -1, -1
		if in(b) {
			fb = e.fetch(b)
		}
		if in(c) {
			fc = e.fetch(c, fb)
		}
		for k := range e.batch {
			e.v(n.op+"213", reg(c, fc, k), reg(b, fb, k), e.register(v, k))
		}
	default: // the slot of v holds c, or is free for a copy of it
		fa, fb := -1, -1
		if in(a) {
			fa = e.fetch(a)
		}
		if in(b) {
			fb = e.fetch(b, fa)
		}
		if !same(c) {
			for k := range e.batch {
				if in(c) {
					e.bcast(e.source(c), e.register(v, k))
				} else {
					e.i("VMOVAPS", e.register(c, k), e.register(v, k))
				}
			}
		}
		for k := range e.batch {
			e.v(n.op+"231", reg(b, fb, k), reg(a, fa, k), e.register(v, k))
		}
	}
}

// Numbers that depend on the precision.

// magic is 1.5·2^m with m the bits of the fraction. Adding it rounds to the nearest
// integer, which is then in the lowest bits.
func (g *program) magic() float64 {
	if g.p.bits == 32 {
		return 1.5 * (1 << 23)
	}
	return 1.5 * (1 << 52)
}

// fraction and bias describe the format.
func (g *program) fraction() int {
	if g.p.bits == 32 {
		return 23
	}
	return 52
}

func (g *program) bias() float64 {
	if g.p.bits == 32 {
		return 127
	}
	return 1023
}

func (g *program) abs(x value) value { return g.and(x, g.raw(math.MaxUint64>>1>>(64-g.p.bits))) }
