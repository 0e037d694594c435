package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"

	"github.com/bkbtuner/bkb/tuner/space"
)

// problem has objectives to minimise, over the unit cube or over levels.
type problem struct {
	name      string
	d, k      int
	levels    []int  // nil for continuous
	cat       []bool // by coordinate
	f         func(x []float64) []float64
	noise     float64
	limit     func(x []float64) float64 // at most 0
	fails     bool                      // where it breaks the limit it crashes
	flaky     float64                   // share of trials that crash anywhere
	reference []float64
	best      float64
}

func (p *problem) space() *space.Space {
	var all []space.Parameter
	for i := range p.d {
		name := fmt.Sprintf("x%d", i)
		switch {
		case p.levels == nil:
			all = append(all, space.NewFloat(name, 0, 1))
		case p.cat[i]:
			var v []space.Value
			for l := range p.levels[i] {
				v = append(v, space.String(fmt.Sprintf("v%d", l)))
			}
			all = append(all, space.NewCategorical(name, v...))
		default:
			all = append(all, space.NewInt(name, 0, int64(p.levels[i]-1)))
		}
	}
	sp, err := space.New(all...)
	if err != nil {
		panic(err)
	}
	return sp
}

func zdt(k, d int) problem {
	f := func(x []float64) []float64 {
		g := 0.0
		for _, v := range x[1:] {
			g += v
		}
		g = 1 + 9*g/float64(len(x)-1)
		r := x[0] / g
		h := 1 - math.Sqrt(r)
		switch k {
		case 2:
			h = 1 - r*r
		case 3:
			h -= r * math.Sin(10*math.Pi*x[0])
		}
		return []float64{x[0], g * h}
	}
	ref := []float64{1.1, 1.1}
	var front [][]float64
	x := make([]float64, d)
	for i := range 10001 {
		x[0] = float64(i) / 10000
		front = append(front, f(x))
	}
	return problem{name: fmt.Sprintf("zdt%d", k), d: d, k: 2, f: f, reference: ref, best: map[int]float64{1: .876667, 2: .543333, 3: hypervolume(front, ref)}[k]}
}

func dtlz2(name string, d, m int) problem {
	f := func(x []float64) []float64 {
		g := 0.0
		for _, v := range x[m-1:] {
			g += (v - .5) * (v - .5)
		}
		var o []float64
		for i := range m {
			v := 1 + g
			for j := range m - 1 - i {
				v *= math.Cos(x[j] * math.Pi / 2)
			}
			if i > 0 {
				v *= math.Sin(x[m-1-i] * math.Pi / 2)
			}
			o = append(o, v)
		}
		return o
	}
	p := problem{name: name, d: d, k: m, f: f, reference: make([]float64, m), best: 1.331 - math.Pi/6}
	for i := range p.reference {
		p.reference[i] = 1.1
	}
	if m == 2 {
		p.best = 1.21 - math.Pi/4
	}
	return p
}

// fonseca has noise. Its hypervolume is that of the true values.
func fonseca() problem {
	const d = 4
	f := func(x []float64) []float64 {
		a, b := 0.0, 0.0
		for _, v := range x {
			v = 4*v - 2
			a += (v - 0.5) * (v - 0.5)
			b += (v + 0.5) * (v + 0.5)
		}
		return []float64{1 - math.Exp(-a), 1 - math.Exp(-b)}
	}
	p := problem{name: "noisy", d: d, k: 2, f: f, noise: 0.05, reference: []float64{1.1, 1.1}}
	var front [][]float64
	for i := range 2001 {
		v := -0.5 + float64(i)/2000
		x := (v + 2) / 4
		front = append(front, f([]float64{x, x, x, x}))
	}
	p.best = hypervolume(front, p.reference)
	return p
}

// table is a made-up search for an architecture, error against latency. 5,760 cells.
func table() problem {
	levels, cat := []int{6, 8, 3, 4, 10}, []bool{false, false, true, true, false}
	rng := rand.New(rand.NewPCG(77, 5))
	rough := make([]float64, 6*8*3*4*10)
	for i := range rough {
		rough[i] = rng.NormFloat64()
	}
	act := []float64{0, .02, .05, .03}
	f := func(x []float64) []float64 {
		n := 0
		for i, v := range x {
			n = n*levels[i] + int(v)
		}
		depth, width, kern, a, drop := x[0]+1, 8*math.Pow(1.5, x[1]), []float64{1, 3, 5}[int(x[2])], int(x[3]), x[4]/10
		params := depth * width * width * kern * kern
		fit := .08 + .9*math.Pow(params, -.22) + act[a]*(1+.3*math.Sin(depth))
		over := .05 * math.Pow(math.Log10(params)/5, 2) * math.Pow(drop-.1*math.Sqrt(depth), 2) * 10
		e := fit + over + .006*rough[n]
		lat := math.Log10(1 + .002*params*[]float64{1, 1.3, 1, 1.1}[a] + 2*depth)
		return []float64{e, lat}
	}
	p := problem{name: "table", d: 5, k: 2, levels: levels, cat: cat, f: f}
	var all [][]float64
	x := make([]float64, 5)
	var walk func(i int)
	walk = func(i int) {
		if i == 5 {
			all = append(all, f(x))
			return
		}
		for l := range levels[i] {
			x[i] = float64(l)
			walk(i + 1)
		}
	}
	walk(0)
	fr := pareto(all)
	lo, hi := []float64{math.Inf(1), math.Inf(1)}, []float64{math.Inf(-1), math.Inf(-1)}
	for _, v := range fr {
		for j := range 2 {
			lo[j], hi[j] = min(lo[j], v[j]), max(hi[j], v[j])
		}
	}
	p.reference = []float64{hi[0] + .1*(hi[0]-lo[0]), hi[1] + .1*(hi[1]-lo[1])}
	p.best = hypervolume(fr, p.reference)
	return p
}

func problems() []problem {
	return []problem{zdt(1, 6), zdt(2, 6), zdt(3, 6), dtlz2("dtlz2", 6, 3), dtlz2("dtlz2m2", 6, 2), dtlz2("dtlz2m3", 8, 3), fonseca(), table(), sparse(), noisy2(), limited("limited", false), limited("failing", true), flaky()}
}

func pareto(y [][]float64) [][]float64 {
	var out [][]float64
	for i, a := range y {
		ok := true
		for k, b := range y {
			le, lt := true, false
			for j := range a {
				le = le && b[j] <= a[j]
				lt = lt || b[j] < a[j]
			}
			if le && (lt || k < i) {
				ok = false
				break
			}
		}
		if ok {
			out = append(out, a)
		}
	}
	return out
}

// hypervolume is the hypervolume of points to minimise.
func hypervolume(y [][]float64, ref []float64) float64 {
	var in [][]float64
	for _, v := range y {
		ok := true
		for j := range v {
			ok = ok && v[j] < ref[j]
		}
		if ok {
			in = append(in, v)
		}
	}
	if len(in) == 0 {
		return 0
	}
	if len(ref) == 2 {
		sort.Slice(in, func(i, k int) bool { return in[i][0] < in[k][0] })
		h, last := 0.0, ref[1]
		for _, v := range in {
			if v[1] < last {
				h += (ref[0] - v[0]) * (last - v[1])
				last = v[1]
			}
		}
		return h
	}
	sort.Slice(in, func(i, k int) bool { return in[i][2] < in[k][2] })
	h := 0.0
	for i := range in {
		top := ref[2]
		if i+1 < len(in) {
			top = in[i+1][2]
		}
		if top > in[i][2] {
			part := make([][]float64, i+1)
			for k := range part {
				part[k] = in[k][:2]
			}
			h += (top - in[i][2]) * hypervolume(part, ref[:2])
		}
	}
	return h
}

// sparse is the problem of Fonseca and Fleming in 3 of 12 coordinates, off centre, where the
// others hardly matter.
func sparse() problem {
	const d = 12
	f := func(x []float64) []float64 {
		a, b, c := 0.0, 0.0, 0.0
		for i, v := range x {
			if i%4 != 1 {
				c += 0.01 * math.Sin(6*v) * math.Sin(6*v)
				continue
			}
			v = 4*v - 1.6 - 0.4*float64(i/4)
			a += (v - 0.577) * (v - 0.577)
			b += (v + 0.577) * (v + 0.577)
		}
		return []float64{1 - math.Exp(-a) + c, 1 - math.Exp(-b) + c}
	}
	p := problem{name: "sparse", d: d, k: 2, f: f, reference: []float64{1.1, 1.1}}
	var front [][]float64
	x := make([]float64, d)
	for i := range 2001 {
		v := -0.577 + 1.154*float64(i)/2000
		for j := range x {
			if x[j] = 0; j%4 == 1 {
				x[j] = (v + 1.6 + 0.4*float64(j/4)) / 4
			}
		}
		front = append(front, f(x))
	}
	p.best = hypervolume(front, p.reference)
	return p
}

func noisy2() problem {
	p := dtlz2("noisy2", 5, 2)
	p.noise = 0.1
	return p
}

// limited is DTLZ2 with two objectives, of which a band of the front is left out and a region
// of the distance variables.
func limited(name string, fails bool) problem {
	p := dtlz2(name, 5, 2)
	p.fails = fails
	p.limit = func(x []float64) float64 {
		return max(0.12-math.Abs(x[0]-0.5), 0.55-x[1]-0.3*x[2])
	}
	var front [][]float64
	for i := range 2001 {
		a := float64(i) / 2000
		x := []float64{a, .5, .5, .5, .5}
		if p.limit(x) <= 0 {
			front = append(front, p.f(x))
		}
	}
	p.best = hypervolume(front, p.reference)
	return p
}

// flaky is DTLZ2 with two objectives, of which a quarter of the trials crashes anywhere.
func flaky() problem {
	p := dtlz2("flaky", 5, 2)
	p.flaky = 0.25
	return p
}
