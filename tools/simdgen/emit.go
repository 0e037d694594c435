package main

import (
	"fmt"
	"math"
	"strings"
)

// precision is one of the two element types.
type precision struct {
	bits int // 32 or 64
	size int // bytes of an element
}

var (
	f32 = precision{32, 4}
	f64 = precision{64, 8}
)

func (p precision) typ() string { return fmt.Sprintf("float%d", p.bits) }

// op returns a packed instruction of the precision. For example op("VMUL") is VMULPS or
// VMULPD.
func (p precision) op(stem string) string {
	if p.bits == 32 {
		return stem + "PS"
	}
	return stem + "PD"
}

// broadcast returns the instruction that copies a scalar from memory to all lanes.
func (p precision) broadcast() string {
	if p.bits == 32 {
		return "VBROADCASTSS"
	}
	return "VBROADCASTSD"
}

// integer returns a packed integer instruction. For example integer("VPADD") is VPADDD or
// VPADDQ.
func (p precision) integer(stem string) string {
	if p.bits == 32 {
		return stem + "D"
	}
	return stem + "Q"
}

// float returns the bits of v.
func (p precision) float(v float64) uint64 {
	if p.bits == 32 {
		return uint64(math.Float32bits(float32(v)))
	}
	return math.Float64bits(v)
}

// target is a kind of machine. It has the registers and the forms of instructions that the
// text of a kernel is written with.
type target struct {
	name   string // of the path and of the files
	suffix string // of the functions, before their precision
	prefix string // of the vector registers
	width  int    // bytes of a vector register
	count  int    // number of vector registers
	panels int    // column panels that a tile takes side by side
	slots  int    // most registers that a vector takes while a tile is finished
	masks  bool   // whether comparisons set mask registers, and one instruction looks up a table
	l2     int    // KiB of second-level cache that all machines have that are worth it
}

var (
	avx2   = target{name: "avx2", prefix: "Y", width: 32, count: 16, panels: 1, slots: 2, l2: 512}
	avx512 = target{name: "avx512", suffix: "Z", prefix: "Z", width: 64, count: 32, panels: 4, slots: 4, masks: true, l2: 1024}
)

// r returns a vector register.
func (t target) r(i int) string { return fmt.Sprintf("%s%d", t.prefix, i) }

// file collects the assembly and the Go declarations for a target.
type file struct {
	target
	text, stubs, data strings.Builder
	constants         map[string]bool
}

// function is one assembly function under construction.
type function struct {
	*file
	p    precision
	name string
	args map[string]int // offset of each argument
}

// param is an argument, of type *T, T or int.
type param struct{ name, typ string }

// begin starts a function. Every type is 8 bytes, except a float32, which must come last.
// Types are "int", "*T" and "T".
func (f *file) begin(p precision, stem, doc string, params ...param) *function {
	return f.beginFrame(p, stem, 0, doc, params...)
}

// beginFrame is begin with so many bytes of local memory.
func (f *file) beginFrame(p precision, stem string, frame int, doc string, params ...param) *function {
	fn := &function{file: f, p: p, name: fmt.Sprintf("%s%sF%d", stem, f.suffix, p.bits), args: map[string]int{}}
	var decl []string
	size := 0
	for _, a := range params {
		fn.args[a.name] = size
		typ := strings.ReplaceAll(a.typ, "T", p.typ())
		decl = append(decl, a.name+" "+typ)
		if typ == "float32" {
			size += 4
		} else {
			size += 8
		}
	}
	fmt.Fprintf(&f.stubs, "\n// %s\n//\n//go:noescape\nfunc %s(%s)\n", doc, fn.name, strings.Join(decl, ", "))
	fmt.Fprintf(&f.text, "\n// func %s(%s)\nTEXT ·%s(SB), NOSPLIT, $%d-%d\n", fn.name, strings.Join(decl, ", "), fn.name, frame, size)
	return fn
}

// end returns to Go with clean upper halves.
func (f *function) end() {
	f.i("VZEROUPPER")
	f.i("RET")
}

// i writes one instruction, with operands in Go's order, destination last.
func (f *function) i(op string, operands ...any) {
	s := make([]string, len(operands))
	for i, o := range operands {
		switch o := o.(type) {
		case int:
			s[i] = fmt.Sprintf("$%d", o)
		default:
			s[i] = fmt.Sprint(o)
		}
	}
	fmt.Fprintf(&f.text, "\t%s %s\n", op, strings.Join(s, ", "))
}

// v writes a packed floating-point instruction, as in v("VMUL", …).
func (f *function) v(stem string, operands ...any) { f.i(f.p.op(stem), operands...) }

// move writes an unaligned load or store.
func (f *function) move(from, to any) { f.v("VMOVU", from, to) }

// bcast copies a scalar from memory to all lanes.
func (f *function) bcast(from, to any) { f.i(f.p.broadcast(), from, to) }

// load reads an argument into a general register.
func (f *function) load(arg, register string) {
	f.i("MOVQ", fmt.Sprintf("%s+%d(FP)", arg, f.args[arg]), register)
}

// arg returns an argument as a memory operand.
func (f *function) arg(name string) string { return fmt.Sprintf("%s+%d(FP)", name, f.args[name]) }

// lanes returns how many elements a vector register has.
func (f *function) lanes() int { return f.width / f.p.size }

// label writes a label. Its name is local to the function.
func (f *function) label(name string) { fmt.Fprintf(&f.text, "%s:\n", name) }

// constant returns a memory operand with the scalar of the given bits.
func (f *function) constant(bits uint64) string {
	width := f.p.size
	name := fmt.Sprintf("c%d_%0*x", f.p.bits, 2*width, bits)
	if !f.constants[name] {
		f.constants[name] = true
		fmt.Fprintf(&f.data, "DATA %s<>+0(SB)/%d, $0x%0*x\nGLOBL %s<>(SB), RODATA|NOPTR, $%d\n", name, width, 2*width, bits, name, width)
	}
	return name + "<>(SB)"
}

// numbers returns a memory operand with the scalars of the given bits, 64 bytes.
func (f *function) numbers(bits []uint64) string {
	width := f.p.size
	name := fmt.Sprintf("t%d_%0*x", f.p.bits, 2*width, bits[1])
	if !f.constants[name] {
		f.constants[name] = true
		for i, b := range bits {
			fmt.Fprintf(&f.data, "DATA %s<>+%d(SB)/%d, $0x%0*x\n", name, i*width, width, 2*width, b)
		}
		fmt.Fprintf(&f.data, "GLOBL %s<>(SB), RODATA|NOPTR, $%d\n", name, width*len(bits))
	}
	return name + "<>(SB)"
}

// mem returns a memory operand.
func mem(base string, offset int) string { return fmt.Sprintf("%d(%s)", offset, base) }

// zero clears registers from ≤ i < to.
func (f *function) zero(from, to int) {
	for i := from; i < to; i++ {
		f.i("VXORPS", f.r(i), f.r(i), f.r(i))
	}
}
