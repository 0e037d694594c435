package simd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unsafe"
)

// The generated assembly can be interpreted. Machines without its instructions run the same
// tests on it in that way. The interpreter knows the extent of every operand, so it also
// finds reads and writes outside of them. It does not see how instructions are encoded.

// assembly is a parsed file.
type assembly struct {
	path     string
	routines map[string]*routine
	symbols  map[string][]byte
}

type routine struct {
	name  string
	frame int
	code  []instruction
}

type instruction struct {
	op   string
	size int // of an element, for packed and scalar instructions
	args []operand
	line string
	jump int // index of the instruction that follows a jump

	zeroing bool // where the mask is 0
}

// operand is a number, a register or memory.
type operand struct {
	kind        byte // '$', 'R', 'X', 'Y', 'Z', 'K', or 'M'
	n           int  // the number, the register, or the offset
	base, index int  // general registers, or −1
	scale       int
	symbol      string // "FP", "SP", or the name of a constant
}

// width returns the bytes of a vector register.
func (o operand) width() int { return map[byte]int{'X': 16, 'Y': 32, 'Z': 64}[o.kind] }

var general = []string{"AX", "BX", "CX", "DX", "SI", "DI", "R8", "R9", "R10", "R11", "R12", "R13"}

// parse reads the assembly of a path.
func parse(path string) (*assembly, error) {
	text, err := os.ReadFile(path + "_amd64.s")
	if err != nil {
		return nil, err
	}
	return parseText(path, string(text))
}

func parseText(path, text string) (*assembly, error) {
	a := &assembly{path: path, routines: map[string]*routine{}, symbols: map[string][]byte{}}
	var r *routine
	labels := map[string]int{}
	finish := func() error {
		for i := 0; r != nil && i < len(r.code); i++ {
			in := &r.code[i]
			to, ok := labels[in.line]
			if in.op[0] == 'J' && !ok {
				return fmt.Errorf("%s: no label %s", r.name, in.line)
			}
			in.jump = to
		}
		clear(labels)
		return nil
	}
	for _, line := range strings.Split(text, "\n") {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0 || strings.HasPrefix(line, "//") || line[0] == '#' || fields[0] == "GLOBL":
		case fields[0] == "DATA":
			name, _, _ := strings.Cut(fields[1], "<>")
			bits, err := strconv.ParseUint(strings.TrimPrefix(fields[2], "$0x"), 16, 64)
			if err != nil {
				return nil, err
			}
			size := 8
			if strings.HasSuffix(fields[1], "/4,") {
				size = 4
			}
			a.symbols[name] = append(a.symbols[name], binary.LittleEndian.AppendUint64(nil, bits)[:size]...)
		case fields[0] == "TEXT":
			if err := finish(); err != nil {
				return nil, err
			}
			name := strings.TrimSuffix(strings.TrimPrefix(fields[1], "·"), "(SB),")
			frame, _, _ := strings.Cut(strings.TrimPrefix(fields[3], "$"), "-")
			n, err := strconv.Atoi(frame)
			if err != nil {
				return nil, err
			}
			r = &routine{name: name, frame: n}
			a.routines[name] = r
		case line[0] != '\t':
			labels[strings.TrimSuffix(line, ":")] = len(r.code)
		default:
			in, err := decode(strings.TrimSpace(line))
			if err != nil {
				return nil, err
			}
			r.code = append(r.code, in)
		}
	}
	return a, finish()
}

func decode(line string) (instruction, error) {
	op, rest, _ := strings.Cut(line, " ")
	in := instruction{op: op, line: line}
	if strings.HasPrefix(op, "J") {
		in.line = strings.TrimSpace(rest)
		return in, nil
	}
	if rest = strings.TrimSpace(rest); rest != "" {
		for _, s := range strings.Split(rest, ", ") {
			o, err := decodeOperand(s)
			if err != nil {
				return in, fmt.Errorf("%s: %w", line, err)
			}
			in.args = append(in.args, o)
		}
	}
	if strings.HasPrefix(op, "V") {
		in.size = 8
		if strings.HasSuffix(op, "S") || slices.Contains([]string{"VPADDD.Z", "VPSLLD", "VPSRLD", "VPADDD", "VPMOVM2D", "VPMOVD2M"}, op) {
			in.size = 4
		}
		if op, masked := strings.CutSuffix(in.op, ".Z"); masked {
			in.op, in.zeroing = op, true
		}
		for _, suffix := range []string{"PS", "PD"} {
			in.op = strings.TrimSuffix(in.op, suffix)
		}
	}
	return in, nil
}

func decodeOperand(s string) (operand, error) {
	o := operand{base: -1, index: -1, scale: 1}
	if i := slices.Index(general, s); i >= 0 {
		o.kind, o.n = 'R', i
		return o, nil
	}
	var err error
	if s[0] == '$' || strings.IndexByte("XYZK", s[0]) >= 0 {
		o.kind = s[0]
		o.n, err = strconv.Atoi(s[1:])
		return o, err
	}
	o.kind = 'M'
	offset, inside, _ := strings.Cut(s, "(")
	if offset != "" {
		if i := strings.LastIndexAny(offset, "+-"); i > 0 {
			o.symbol, offset = offset[:i], offset[i:]
		} else if name, ok := strings.CutSuffix(offset, "<>"); ok {
			o.symbol, offset = name, "0"
		}
		if o.n, err = strconv.Atoi(offset); err != nil {
			return o, err
		}
	}
	parts := strings.Split(strings.TrimSuffix(inside, ")"), ")(")
	if parts[0] == "FP" || parts[0] == "SP" {
		o.symbol = parts[0]
		return o, nil
	}
	if parts[0] == "SB" {
		return o, nil
	}
	for i, part := range parts {
		name, scale, scaled := strings.Cut(part, "*")
		at := slices.Index(general, name)
		switch {
		case at < 0:
			return o, fmt.Errorf("no register %s", name)
		case scaled:
			o.index = at
			if o.scale, err = strconv.Atoi(scale); err != nil {
				return o, err
			}
		case i == 0:
			o.base = at
		default:
			return o, errors.New("two bases")
		}
	}
	return o, nil
}

// span is an operand of a call, and what the callee may do with it.
type span struct {
	at       unsafe.Pointer
	size     int
	writable bool
}

func reads[T any](p *T, n int) span {
	return span{unsafe.Pointer(p), n * int(unsafe.Sizeof(*p)), false}
}

func writes[T any](p *T, n int) span {
	return span{unsafe.Pointer(p), n * int(unsafe.Sizeof(*p)), true}
}

// region is memory that a routine may use.
type region struct {
	base     uint64
	data     []byte
	writable bool
}

// processor is the state of a machine.
type processor struct {
	a                 *assembly
	r                 *routine
	in                *instruction
	general           [16]uint64
	vector            [32][64]byte
	mask              [8]uint64
	zero, less, below bool // equal to 0, below 0, and not above for floats
	regions           []region
}

// fault is an access outside of the operands, or an instruction that is not known.
type fault string

func (p *processor) fault(format string, args ...any) {
	panic(fault(fmt.Sprintf("%s: %s: %s", p.r.name, p.in.line, fmt.Sprintf(format, args...))))
}

func (p *processor) memory(at uint64, size int, write bool) []byte {
	for _, g := range p.regions {
		if at >= g.base && at+uint64(size) <= g.base+uint64(len(g.data)) && (g.writable || !write) {
			return g.data[at-g.base:][:size]
		}
	}
	for _, g := range p.regions {
		if at+uint64(size) > g.base && at < g.base+uint64(len(g.data)) {
			p.fault("%d bytes at offset %d of an operand of %d bytes, write %v", size, int64(at-g.base), len(g.data), write)
		}
	}
	p.fault("%d bytes outside of all operands, write %v", size, write)
	return nil
}

const (
	frameBase = 1 << 20
	argsBase  = 2 << 20
	dataBase  = 3 << 20
)

func (p *processor) address(o operand) uint64 {
	at := uint64(int64(o.n))
	switch {
	case o.symbol == "FP":
		return argsBase + at
	case o.symbol == "SP":
		return frameBase + uint64(p.r.frame) + at
	case o.symbol != "":
		return p.constant(o.symbol) + at
	}
	if o.base >= 0 {
		at += p.general[o.base]
	}
	if o.index >= 0 {
		at += p.general[o.index] * uint64(o.scale)
	}
	return at
}

func (p *processor) constant(name string) uint64 {
	data, ok := p.a.symbols[name]
	if !ok {
		p.fault("no constant %s", name)
	}
	p.regions = append(p.regions, region{dataBase, data, false})
	return dataBase
}

// vectorOf returns the bytes of a source.
func (p *processor) vectorOf(o operand, size int) []byte {
	if o.kind == 'M' {
		before := len(p.regions)
		b := p.memory(p.address(o), size, false)
		p.regions = p.regions[:before]
		return b
	}
	return p.vector[o.n][:size]
}

// set writes a register, and clears what is above.
func (p *processor) set(o operand, b []byte) {
	clear(p.vector[o.n][copy(p.vector[o.n][:], b):])
}

func (p *processor) integer(o operand) uint64 {
	switch o.kind {
	case '$':
		return uint64(int64(o.n))
	case 'R':
		return p.general[o.n]
	}
	return binary.LittleEndian.Uint64(p.memory(p.address(o), 8, false))
}

// setInteger writes a result and the flags of it.
func (p *processor) setInteger(o operand, v uint64) {
	if o.kind == 'R' {
		p.general[o.n] = v
	} else {
		binary.LittleEndian.PutUint64(p.memory(p.address(o), 8, true), v)
	}
	p.zero, p.less = v == 0, int64(v) < 0
}

// call runs a routine. Arguments are int, float32, float64 and span.
func (a *assembly) call(name string, args ...any) {
	r, ok := a.routines[name]
	if !ok {
		panic(fault("no routine " + name))
	}
	p := &processor{a: a, r: r}
	var block []byte
	for _, arg := range args {
		switch arg := arg.(type) {
		case int:
			block = binary.LittleEndian.AppendUint64(block, uint64(arg))
		case float32:
			block = binary.LittleEndian.AppendUint32(block, math.Float32bits(arg))
		case float64:
			block = binary.LittleEndian.AppendUint64(block, math.Float64bits(arg))
		case span:
			block = binary.LittleEndian.AppendUint64(block, uint64(uintptr(arg.at)))
			if arg.size > 0 {
				p.regions = append(p.regions, region{uint64(uintptr(arg.at)), unsafe.Slice((*byte)(arg.at), arg.size), arg.writable})
			}
		}
	}
	p.regions = append(p.regions, region{frameBase, make([]byte, r.frame), true}, region{argsBase, block, false})
	// A routine must not depend on what it finds in registers and flags.
	for i := range p.vector {
		for j := range p.vector[i] {
			p.vector[i][j] = 0xff
		}
	}
	for i := range p.general {
		p.general[i] = 0xdead_beef_dead_beef
	}
	for i := range p.mask {
		p.mask[i] = 0xaaaa_aaaa_aaaa_aaaa
	}
	p.zero, p.less, p.below = true, true, true
	for pc := 0; ; {
		p.in = &r.code[pc]
		if p.in.op == "RET" {
			return
		}
		pc++
		if p.in.op[0] == 'J' {
			if p.jumps() {
				pc = p.in.jump
			}
			continue
		}
		p.step()
	}
}

func (p *processor) jumps() bool {
	switch p.in.op {
	case "JMP":
		return true
	case "JZ":
		return p.zero
	case "JNZ":
		return !p.zero
	case "JLT":
		return p.less
	case "JGE":
		return !p.less
	case "JLS":
		return p.below
	}
	p.fault("not known")
	return false
}

func (p *processor) step() {
	in := p.in
	arg := func(i int) operand { return in.args[i] }
	last := len(in.args) - 1
	switch in.op {
	case "PREFETCHT0", "PREFETCHT1":
	case "VZEROUPPER":
		for i := range 16 {
			clear(p.vector[i][16:])
		}
	case "MOVQ":
		flags := [2]bool{p.zero, p.less}
		p.setInteger(arg(1), p.integer(arg(0)))
		p.zero, p.less = flags[0], flags[1]
	case "LEAQ":
		p.general[arg(1).n] = p.address(arg(0))
	case "ADDQ":
		p.setInteger(arg(1), p.integer(arg(1))+p.integer(arg(0)))
	case "SUBQ":
		p.setInteger(arg(1), p.integer(arg(1))-p.integer(arg(0)))
	case "ANDQ":
		p.setInteger(arg(1), p.integer(arg(1))&p.integer(arg(0)))
	case "XORQ":
		p.setInteger(arg(1), p.integer(arg(1))^p.integer(arg(0)))
	case "SHRQ":
		p.setInteger(arg(1), p.integer(arg(1))>>p.integer(arg(0)))
	case "IMULQ":
		p.setInteger(arg(1), p.integer(arg(1))*p.integer(arg(0)))
	case "IMUL3Q":
		p.setInteger(arg(2), p.integer(arg(1))*p.integer(arg(0)))
	case "INCQ":
		p.setInteger(arg(0), p.integer(arg(0))+1)
	case "DECQ":
		p.setInteger(arg(0), p.integer(arg(0))-1)
	case "CMPQ":
		d := int64(p.integer(arg(0))) - int64(p.integer(arg(1)))
		p.zero, p.less = d == 0, d < 0
	case "TESTQ":
		d := p.integer(arg(0)) & p.integer(arg(1))
		p.zero, p.less = d == 0, int64(d) < 0
	case "VMOVU", "VMOVA", "VMOVSS", "VMOVSD":
		p.move()
	case "VBROADCASTSS", "VBROADCASTSD":
		x := slices.Clone(p.vectorOf(arg(0), in.size))
		p.set(arg(1), slices.Repeat(x, arg(1).width()/in.size))
	case "VUCOMISS", "VUCOMISD":
		x, y := p.scalar(arg(1)), p.scalar(arg(0))
		p.below = !(x > y)
	case "VSQRTSS", "VSQRTSD", "VDIVSS", "VDIVSD":
		out := slices.Clone(p.vectorOf(arg(1), 16))
		if in.op[:5] == "VSQRT" {
			p.put(out, 0, math.Sqrt(p.scalar(arg(0))))
		} else {
			p.put(out, 0, p.scalar(arg(1))/p.scalar(arg(0)))
		}
		p.set(arg(2), out)
	case "VPMOVM2D", "VPMOVM2Q":
		out := make([]byte, arg(1).width())
		for i := range len(out) / in.size {
			if p.mask[arg(0).n]>>i&1 == 1 {
				copy(out[i*in.size:][:in.size], "\xff\xff\xff\xff\xff\xff\xff\xff")
			}
		}
		p.set(arg(1), out)
	case "VPMOVD2M", "VPMOVQ2M":
		x := p.vector[arg(0).n][:arg(0).width()]
		p.mask[arg(1).n] = 0
		for i := range len(x) / in.size {
			p.mask[arg(1).n] |= uint64(x[(i+1)*in.size-1]>>7) << i
		}
	case "VEXTRACTF64X4":
		p.set(arg(2), slices.Clone(p.vector[arg(1).n][32*arg(0).n:][:32]))
	case "VPERM2F128":
		both := append(slices.Clone(p.vector[arg(2).n][:32]), p.vector[arg(1).n][:32]...)
		select1, select2 := arg(0).n&3, arg(0).n>>4&3
		p.set(arg(3), append(slices.Clone(both[16*select1:][:16]), both[16*select2:][:16]...))
	case "VCVTPS2": // PD
		w := arg(1).width()
		out, x := make([]byte, w), p.vectorOf(arg(0), w/2)
		for i := range w / 8 {
			v := math.Float32frombits(binary.LittleEndian.Uint32(x[4*i:]))
			binary.LittleEndian.PutUint64(out[8*i:], math.Float64bits(float64(v)))
		}
		p.set(arg(1), out)
	case "VCVTPD2PSY":
		out, x := make([]byte, 16), p.vectorOf(arg(0), 32)
		for i := range 4 {
			v := math.Float64frombits(binary.LittleEndian.Uint64(x[8*i:]))
			binary.LittleEndian.PutUint32(out[4*i:], math.Float32bits(float32(v)))
		}
		p.set(arg(1), out)
	case "VUNPCKL", "VUNPCKH":
		p.unpack()
	default:
		p.lanes(arg(last))
	}
}

// move is a load, a store, or a copy of a register. Scalars leave zeros above.
func (p *processor) move() {
	from, to, size := p.in.args[0], p.in.args[1], p.in.size
	if p.in.op == "VMOVU" || p.in.op == "VMOVA" {
		size = max(from.width(), to.width())
	}
	if to.kind == 'M' {
		copy(p.memory(p.address(to), size, true), p.vector[from.n][:size])
		return
	}
	p.set(to, slices.Clone(p.vectorOf(from, size)))
}

// unpack interleaves the halves of two registers, 16 bytes at a time.
func (p *processor) unpack() {
	in := p.in
	b, a, size := p.vector[in.args[0].n], p.vector[in.args[1].n], in.size
	var out []byte
	for at := 0; at < in.args[2].width(); at += 16 {
		from := at
		if in.op == "VUNPCKH" {
			from += 8
		}
		for i := from; i < from+8; i += size {
			out = append(append(out, a[i:i+size]...), b[i:i+size]...)
		}
	}
	p.set(in.args[2], out)
}

func (p *processor) scalar(o operand) float64 { return p.get(p.vectorOf(o, p.in.size), 0) }

// get returns element i of a vector.
func (p *processor) get(b []byte, i int) float64 {
	if p.in.size == 4 {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
}

// put rounds v to element i of a vector.
func (p *processor) put(b []byte, i int, v float64) {
	if p.in.size == 4 {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(float32(v)))
		return
	}
	binary.LittleEndian.PutUint64(b[8*i:], math.Float64bits(v))
}

// lanes executes an instruction that works on elements by themselves.
func (p *processor) lanes(to operand) {
	in, w := p.in, to.width()
	var imm int
	var mask *uint64
	var src [][]byte
	for _, o := range in.args[:len(in.args)-1] {
		switch o.kind {
		case '$':
			imm = o.n
		case 'K':
			mask = &p.mask[o.n]
		default:
			if to.kind == 'K' {
				w = max(w, o.width())
			}
			src = append(src, p.vectorOf(o, max(w, o.width())))
		}
	}
	if to.kind == 'K' { // a comparison
		p.mask[to.n] = 0
		for i := range w / in.size {
			if p.compare(imm, p.get(src[1], i), p.get(src[0], i)) {
				p.mask[to.n] |= 1 << i
			}
		}
		return
	}
	old := p.vector[to.n]
	out := make([]byte, w)
	for i := range w / in.size {
		at := i * in.size
		if mask != nil && in.op != "VBLENDM" && *mask>>i&1 == 0 {
			if !in.zeroing {
				copy(out[at:][:in.size], old[at:])
			}
			continue
		}
		switch in.op {
		case "VAND", "VOR", "VXOR", "VPADDD", "VPADDQ", "VPSLLD", "VPSLLQ", "VPSRLD", "VPSRLQ":
			p.bits(out[at:], src, at, imm)
		case "VPERM":
			index := binary.LittleEndian.Uint32(src[1][at:]) % uint32(w/in.size)
			copy(out[at:][:in.size], src[0][int(index)*in.size:])
		case "VREDUCE":
			p.reduce(out, src[0], i, imm)
		case "VBLENDM":
			copy(out[at:][:in.size], src[1-int(*mask>>i&1)][at:])
		case "VBLENDV":
			copy(out[at:][:in.size], src[2-int(src[0][at+in.size-1]>>7)][at:])
		case "VCMP":
			if p.compare(imm, p.get(src[1], i), p.get(src[0], i)) {
				copy(out[at:][:in.size], "\xff\xff\xff\xff\xff\xff\xff\xff")
			}
		case "VROUND", "VRNDSCALE":
			if imm != 8 { // to the nearest, and ties to even
				p.fault("rounding %d", imm)
			}
			p.arithmetic(out, src, i, old[:])
		default:
			p.arithmetic(out, src, i, old[:])
		}
	}
	p.set(to, out)
}

// reduce subtracts the nearest multiple of a power of two from element i.
func (p *processor) reduce(out, src []byte, i, imm int) {
	if imm&15 != 8 { // to the nearest, and ties to even
		p.fault("rounding %d", imm)
	}
	x, v := p.get(src, i), 0.0 // for ±Inf and integers
	if !(math.Abs(x) >= 1<<53) {
		v = x - math.Ldexp(math.RoundToEven(math.Ldexp(x, imm>>4)), -(imm>>4))
	}
	p.put(out, i, v)
}

// compare has the predicates less, ordered, at least, and not equal.
func (p *processor) compare(predicate int, x, y float64) bool {
	switch predicate {
	case 17:
		return x < y
	case 29:
		return x >= y
	case 4:
		return !(x == y)
	}
	p.fault("predicate %d", predicate)
	return false
}

// bits executes an operation on the bits of one element.
func (p *processor) bits(out []byte, src [][]byte, at, n int) {
	get := func(i int) uint64 {
		if p.in.size == 4 {
			return uint64(binary.LittleEndian.Uint32(src[i][at:]))
		}
		return binary.LittleEndian.Uint64(src[i][at:])
	}
	var v uint64
	switch p.in.op {
	case "VAND":
		v = get(0) & get(1)
	case "VOR":
		v = get(0) | get(1)
	case "VXOR":
		v = get(0) ^ get(1)
	case "VPADDD", "VPADDQ":
		v = get(0) + get(1)
	case "VPSLLD", "VPSLLQ":
		v = get(0) << n
	default:
		v = get(0) >> n
	}
	copy(out[:p.in.size], binary.LittleEndian.AppendUint64(nil, v))
}

// arithmetic executes a floating-point operation on element i.
func (p *processor) arithmetic(out []byte, src [][]byte, i int, old []byte) {
	x := func(k int) float64 { return p.get(src[k], i) }
	var v float64
	switch p.in.op {
	case "VADD": // one rounding to 53 bits and one to 24 are one to 24, for all but fma
		v = x(1) + x(0)
	case "VSUB":
		v = x(1) - x(0)
	case "VMUL":
		v = x(1) * x(0)
	case "VDIV":
		v = x(1) / x(0)
	case "VSQRT":
		v = math.Sqrt(x(0))
	case "VROUND", "VRNDSCALE":
		v = math.RoundToEven(x(0))
	case "VMAX":
		if v = x(0); x(1) > x(0) {
			v = x(1)
		}
	case "VMIN":
		if v = x(0); x(1) < x(0) {
			v = x(1)
		}
	case "VFMADD213":
		v = p.fma(x(1), p.get(old, i), x(0))
	case "VFMADD231":
		v = p.fma(x(0), x(1), p.get(old, i))
	case "VFNMADD213":
		v = p.fma(-x(1), p.get(old, i), x(0))
	case "VFNMADD231":
		v = p.fma(-x(0), x(1), p.get(old, i))
	default:
		p.fault("not known")
	}
	p.put(out, i, v)
}

// fma is a·b + c with one rounding. For float32 the product is exact in float64. The sum is
// rounded to odd, so that the second rounding is right.
func (p *processor) fma(a, b, c float64) float64 {
	if p.in.size == 8 {
		return math.FMA(a, b, c)
	}
	product := a * b
	s := product + c
	t := s - product
	lost := (product - (s - t)) + (c - t)
	if lost == 0 || math.IsNaN(lost) || math.Float64bits(s)&1 == 1 {
		return s
	}
	return math.Nextafter(s, math.Inf(int(math.Copysign(1, lost))))
}

// load parses the paths in assembly once.
var load = sync.OnceValues(func() (all []*assembly, err error) {
	for _, path := range []string{"avx512", "avx2"} {
		a, err := parse(path)
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
})

// These are the names of routines, in the order of Statistic and of Func.
var (
	statisticNames = []string{"dot", "squared", "manhattan", "mismatches"}
	functionNames  = []string{
		"affine", "expScaled", "decay2", "fall2", "matern12", "matern32", "matern52", "rationalQuadratic",
		"power", "arcCosine", "cosTurns",
	}
)

// interpreted returns kernels that interpret the assembly of a path. The extents of the
// operands are those that the fields of Kernels promise.
func interpreted[T Float](a *assembly) *Kernels[T] {
	nr, tile, width := Columns[T](), TileSize[T](), 32
	suffix := fmt.Sprintf("F%d", 8*Size[T]())
	if a.path == "avx512" {
		suffix, width = "Z"+suffix, 64
	}
	k := &Kernels[T]{Path: "interpreted " + a.path, Lanes: width / Size[T](), Panels: width * width / 1024, L2: 512 << 10}
	call := func(stem string, args ...any) { a.call(stem+suffix, args...) }
	for s, statistic := range statisticNames {
		k.Tile[s] = func(depth int, a, ha, b, hb, out *T, step, n int) {
			call(statistic, depth, reads(a, depth*Rows), reads(ha, Rows), reads(b, n*depth*nr), reads(hb, n*nr), writes(out, (n-1)*step+tile), step, n)
		}
		for f, function := range functionNames {
			name := statistic + strings.ToUpper(function[:1]) + function[1:]
			if a.routines[name+suffix] == nil {
				continue
			}
			k.Blocks[s][f] = func(depth int, a, ha, b, hb, out *T, step, n, panels int, v, u, par *T) {
				call(name, depth, reads(a, panels*depth*Rows), reads(ha, panels*Rows), reads(b, n*depth*nr), reads(hb, n*nr),
					writes(out, (panels-1)*step+n*tile), step, n, panels, reads(v, n*nr), writes(u, panels*Rows*k.Lanes), reads(par, len(Params[T]{})))
			}
		}
	}
	for f, function := range functionNames {
		k.Func[f] = func(x *T, n int, par *T) { call(function, writes(x, n*tile), n, reads(par, len(Params[T]{}))) }
	}
	lanes := Rows * Lanes[T]()
	k.Multiply = func(m, v, u *T, n int) { call("multiply", reads(m, n*tile), reads(v, n*nr), writes(u, lanes), n) }
	k.MultiplyT = func(m, u, w *T, n int) { call("multiplyT", reads(m, n*tile), reads(u, Rows), writes(w, n*nr), n) }
	k.MultiplyRows = func(m *T, step int, v, u *T, n int) {
		call("multiplyRows", reads(m, (Rows-1)*step+n*nr), step, reads(v, n*nr), writes(u, lanes), n)
	}
	k.AddRows = func(m *T, step int, u, w *T, n int) {
		call("addRows", reads(m, (Rows-1)*step+n*nr), step, reads(u, Rows), writes(w, n*nr), n)
	}
	k.AddRow = func(m *T, step int, u, w *T, n int) {
		call("addRow", reads(m, n*nr), step, reads(u, 1), writes(w, n*nr), n)
	}
	k.Squares = func(depth int, b, s *T) { call("squares", depth, reads(b, depth*nr), writes(s, nr)) }
	k.Gemm = func(depth int, a, b, next, c *T, ldc, n, keep int, alpha T) {
		call("gemm", depth, reads(a, depth*Rows), reads(b, n*depth*nr), reads(next, 0), writes(c, (Rows-1)*ldc+n*nr), ldc, n, keep, any(alpha))
	}
	k.Trsm = func(depth int, a, b, c *T, step, n int) {
		size := (n-1)*step + depth*nr
		if depth == 0 {
			size = 0
		}
		call("trsm", depth, reads(a, (depth+Rows)*Rows), reads(b, size), writes(c, (n-1)*step+tile), step, n)
	}
	k.Pieces = func(dst *T, dstStep int, src *T, srcStep, n int) {
		call("pieces", writes(dst, (n-1)*dstStep+nr), dstStep, reads(src, (n-1)*srcStep+nr), srcStep, n)
	}
	k.Cholesky = func(u *T, ok *int) { call("cholesky", writes(u, Leaf*Leaf), writes(ok, 1)) }
	k.Drain = drain[T]
	if Size[T]() == 4 {
		k.Drain = func(w *float64, x *T, n int) { call("drain", writes(w, 16*n), writes(x, 16*n), n) }
	}
	if Size[T]() == 8 && a.path == "avx2" { // which other paths use
		k.Dots = func(m *T, step int, x, s *T, n int) {
			call("dots", reads(m, 3*step+4*n), step, reads(x, 4*n), writes(s, 16), n)
		}
		k.Steps = func(m *T, step int, u, y *T, n int) {
			call("steps", reads(m, 3*step+4*n), step, reads(u, 4), writes(y, 4*n), n)
		}
		k.ColumnDots = func(n int, b, w, s *T) { call("columnDots", n, reads(b, 4*n*nr), reads(w, 4*n), writes(s, 4*nr)) }
		k.ColumnSquares = func(n int, b, s *T) { call("columnSquares", n, reads(b, 4*n*nr), writes(s, 4*nr)) }
	}
	k.Transpose = transpose[T]
	if a.path == "avx2" { // which other paths use
		k.Transpose = func(dst *T, step int, src *T, ld, n int) {
			call("transpose", writes(dst, (4*n-1)*step+4), step, reads(src, 3*ld+4*n), ld, n)
		}
	}
	return k
}

// TestInterpreter compares the interpreter with the processor, to the bit, on the paths that
// this machine has.
func TestInterpreter(t *testing.T) {
	t.Run("float64", testInterpreter[float64])
	t.Run("float32", testInterpreter[float32])
}

func testInterpreter[T Float](t *testing.T) {
	all, err := load()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		i := slices.IndexFunc(Paths[T](), func(k *Kernels[T]) bool { return k.Path == a.path })
		if i < 0 {
			t.Logf("this machine has no %s, so its interpreter is not compared with it", a.path)
			continue
		}
		real, k := Paths[T]()[i], interpreted[T](a)
		if k.Lanes != real.Lanes || k.Panels != real.Panels {
			t.Errorf("%s: %d lanes and %d panels, want %d and %d", k.Path, k.Lanes, k.Panels, real.Lanes, real.Panels)
		}
		for s := range k.Blocks {
			for f := range k.Blocks[s] {
				if (k.Blocks[s][f] == nil) != (real.Blocks[s][f] == nil) {
					t.Errorf("%s: blocks of statistic %d and function %d on one side only", k.Path, s, f)
				}
			}
		}
		compareKernels(t, k, real, 0)
		compareTrsm(t, k, real, 0)
		compareFunctions(t, k, real)
		compareCholesky(t, k, real)
		testBlocks(t, k)
	}
}

// loadN is the instruction that reads how many panels, rows or steps a routine takes.
var loadN = regexp.MustCompile(`(?m)^\tMOVQ n\+.*, CX$`)

// TestInterpreterFindsFaults lets routines take one panel, one row or one step too many.
func TestInterpreterFindsFaults(t *testing.T) {
	for _, path := range []string{"avx512", "avx2"} {
		text, err := os.ReadFile(path + "_amd64.s")
		if err != nil {
			t.Fatal(err)
		}
		a, err := parseText(path, loadN.ReplaceAllString(string(text), "$0\n\tINCQ CX"))
		if err != nil {
			t.Fatal(err)
		}
		k := interpreted[float64](a)
		x := make([]float64, 4096)
		p := &x[0]
		calls := map[string]func(){
			"tile":         func() { k.Tile[Dot](3, p, p, p, p, p, TileSize[float64](), 4) },
			"blocks":       func() { k.Blocks[Squared][Fall2](3, p, p, p, p, p, 5*TileSize[float64](), 4, 2, p, p, p) },
			"function":     func() { k.Func[Affine](p, 2, p) },
			"multiply":     func() { k.Multiply(p, p, p, 3) },
			"multiplyT":    func() { k.MultiplyT(p, p, p, 3) },
			"multiplyRows": func() { k.MultiplyRows(p, 24, p, p, 3) },
			"addRows":      func() { k.AddRows(p, 24, p, p, 3) },
			"gemm":         func() { k.Gemm(3, p, p, p, p, 40, 4, 0, 1) },
			"trsm":         func() { k.Trsm(3, p, p, p, 100, 4) },
			"pieces":       func() { k.Pieces(p, 8, p, 8, 3) },
		}
		if k.Dots != nil {
			calls["dots"] = func() { k.Dots(p, 12, p, p, 3) }
			calls["steps"] = func() { k.Steps(p, 12, p, p, 3) }
			calls["columnDots"] = func() { k.ColumnDots(1, p, p, p) }
			calls["columnSquares"] = func() { k.ColumnSquares(1, p, p) }
		}
		for name, call := range calls {
			if !faults(call) {
				t.Errorf("%s: %s does one step too many without a fault", path, name)
			}
		}
	}
}

// faults reports whether f ends in a fault of the interpreter.
func faults(f func()) (found bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, found = r.(fault); !found {
				panic(r)
			}
		}
	}()
	f()
	return false
}
