package space

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/bkbtuner/bkb/internal/racetest"
)

// hardRanges are the float ranges where an encoding fails first.
func hardRanges() [][2]float64 {
	const most, least = math.MaxFloat64, math.SmallestNonzeroFloat64
	return [][2]float64{
		{0, 1},
		{1e-5, 0.1},
		{0.9, 0.999},
		{1e-300, 1e300},
		{least, 1},
		{least, most},
		{-most, most},
		{0, least},
		{1e-320, 1},
		{least, 2 * least},
		{1e-310, 1e-308},
		{1e9, 1e9 + 1e-3},
		{1, math.Nextafter(1, 2)},
		{1, 1 + 1e-14},
		{1, 1 + 1e-13},
		{-1e-300, 1e300},
		{-least, 1e300},
		{most / 2, most},
		{1e-12, 1},
		{1e-16, 1},
		{0.1234567890123456, 0.9876543210987654},
		{9.5, 10.5},
		{1e15, 1e16},
		{1.0000000000001, 3e100},
		{1, math.Exp(255.9)},
		{1, math.Exp(256.1)},
		{1e-200, math.Exp(255) * 1e-200},
		{9.99, 10.01},
		{9.9999, 10.0001},
	}
}

// Every member of the lattice round-trips, and every other float goes to a neighbour on the
// lattice. All members next to the ends are tested, where clamping could merge two.
func TestContinuousLattice(t *testing.T) {
	rng, samples := rand.New(rand.NewPCG(1, 2)), racetest.Size(100, 5000)
	for _, r := range hardRanges() {
		for s := Linear; s <= ReverseLog; s++ {
			if s != Linear && r[0] <= 0 {
				continue
			}
			a := newContinuousAxis(r[0], r[1], s)
			members := []float64{r[0], r[1]}
			up, down := a.first, a.last
			for range racetest.Size(50, 200) {
				members = append(members, up, down)
				up, down = a.lattice.above(up), a.lattice.below(down)
			}
			for range samples {
				x, _ := a.decode(rng.Float64()).AsFloat()
				members = append(members, x, a.lattice.above(x), a.lattice.below(x))
			}
			for _, x := range members {
				if x != r[0] && x != r[1] && (x < a.first || x > a.last) {
					continue
				}
				u, ok := a.encode(Float(x))
				if !ok {
					t.Fatalf("%v %v: %v does not encode", r, s, x)
				}
				if y, _ := a.decode(u).AsFloat(); y != x {
					t.Fatalf("%v %v: %v encodes as %v and decodes as %v; lattice %+v", r, s, x, u, y, a.lattice)
				}
			}
			checkOffLattice(t, a, r, rng, samples/2)
		}
	}
}

func checkOffLattice(t *testing.T, a *continuousAxis, r [2]float64, rng *rand.Rand, samples int) {
	t.Helper()
	for range samples {
		x := a.warp.inverse(rng.Float64())
		if !(r[0] < x && x < r[1]) {
			continue
		}
		u, ok := a.encode(Float(x))
		y, _ := a.decode(u).AsFloat()
		least, most := max(min(a.lattice.below(x), a.last), r[0]), min(max(a.lattice.above(x), a.first), r[1])
		if !ok || y < least || y > most {
			t.Fatalf("%v %v: %v rounds to %v, outside its neighbours %v and %v", r, a.warp.scale, x, y, least, most)
		}
	}
}

// Decimals of up to 12 digits, as people type them, are on the lattice.
func TestTypedDecimalsAreExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	linear, log := newContinuousAxis(-1, 1, Linear), newContinuousAxis(1e-100, 1e10, Log)
	for range 20000 {
		fraction, _ := strconv.ParseFloat("0."+strconv.FormatUint(1+rng.Uint64N(1e11-1), 10), 64)
		digits, _ := strconv.ParseFloat(strconv.FormatUint(1+rng.Uint64N(1e12-1), 10)+"e-"+strconv.Itoa(2+rng.IntN(90)), 64)
		for a, x := range map[*continuousAxis]float64{linear: fraction, log: digits} {
			u, ok := a.encode(Float(x))
			if got := a.decode(u); !ok || got != Float(x) {
				t.Fatalf("%v decodes as %v", x, got)
			}
		}
	}
}

// Decoding is monotone, so that near coordinates are near values.
func TestDecodeIsMonotone(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	var axes []axis
	for _, r := range hardRanges() {
		axes = append(axes, newContinuousAxis(r[0], r[1], Linear))
		if r[0] > 0 {
			axes = append(axes, newContinuousAxis(r[0], r[1], Log), newContinuousAxis(r[0], r[1], ReverseLog))
		}
	}
	for _, r := range hardInts() {
		axes = append(axes, newIntAxis(r[0], r[1], 1), newIntAxis(r[0], r[1], 7))
		if r[0] > 0 {
			axes = append(axes, newLogIntAxis(r[0], r[1], false), newLogIntAxis(r[0], r[1], true))
		}
	}
	for _, a := range axes {
		for range 2000 {
			u, v := rng.Float64(), rng.Float64()
			if rng.IntN(2) == 0 {
				v = u + rng.Float64()*1e-12*(1-u)
			}
			x, y := a.decode(min(u, v)), a.decode(max(u, v))
			if less(y, x) {
				t.Fatalf("%+v: decodes %v to %v and %v to %v", a, min(u, v), x, max(u, v), y)
			}
		}
	}
}

func hardInts() [][2]int64 {
	const most, least = math.MaxInt64, math.MinInt64
	return [][2]int64{
		{0, 0},
		{0, 1},
		{16, 512},
		{1, 3},
		{least, most},
		{least, least + 9},
		{most - 9, most},
		{1, 1 << 62},
		{1, most},
		{0, 1e15 - 1},
		{0, 1e15},
		{0, 1e15 + 1},
		{-1e15, 1e16},
		{1e12, 3e12},
		{1e12 - 5, 1e12 + 5e10},
		{1e12 + 1, 9e18 - 1},
		{9e18 - 1, most},
		{1, 1e12},
		{1, 1e12 + 1},
		{999, 1000},
		{1000, 1001},
		{1000, 1002},
		{7, most - 1},
		{4e18 - 1, 9e18 + 7},
	}
}

// Ints are exact up to 1e15 cells (linear) and 1e12 (log). Beyond that, values that Decode
// returns and the ends are exact.
func TestIntsRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, r := range hardInts() {
		axes := []axis{newIntAxis(r[0], r[1], 1), newIntAxis(r[0], r[1], 3), newIntAxis(r[0], r[1], 1<<40), newIntAxis(r[0], r[1], 1<<63)}
		if r[0] > 0 {
			axes = append(axes, newLogIntAxis(r[0], r[1], false), newLogIntAxis(r[0], r[1], true))
		}
		for _, a := range axes {
			exact := true
			switch a := a.(type) {
			case *intAxis:
				exact = a.stride == 1
			case *logIntAxis:
				exact = r[1] <= maxExactLogInt
			}
			for range 5000 {
				n := a.decode(rng.Float64())
				if u, ok := a.encode(n); !ok || a.decode(u) != n {
					t.Fatalf("%+v: %v decodes as %v", a, n, a.decode(u))
				}
			}
			for _, n := range intsWithin(r, rng) {
				u, ok := a.encode(Int(n))
				if got := a.decode(u); ok && exact && got != Int(n) {
					t.Fatalf("%+v: %v decodes as %v", a, n, got)
				}
				if end := n == r[0] || n == r[1]; ok && end && a.decode(u) != Int(n) {
					t.Fatalf("%+v: the end %v decodes as %v", a, n, a.decode(u))
				}
			}
		}
	}
}

// intsWithin returns the ends of r, their neighbours and some in between.
func intsWithin(r [2]int64, rng *rand.Rand) []int64 {
	out := []int64{r[0], r[1]}
	width := uint64(r[1]) - uint64(r[0])
	for i := range min(width, 100) {
		out = append(out, r[0]+int64(i), r[1]-int64(i))
	}
	for range 2000 {
		if width < math.MaxUint64 {
			out = append(out, int64(uint64(r[0])+rng.Uint64N(width+1)))
		}
	}
	return out
}

// The int log scale gives k the measure of [k−½, k+½].
func TestLogIntCells(t *testing.T) {
	a := newLogIntAxis(1, 4, false)
	want := []float64{math.Log(3), math.Log(5) - math.Log(3), math.Log(7) - math.Log(5), math.Log(9) - math.Log(7)}
	var count [5]float64
	const n = 100000
	for i := range n {
		k, _ := a.decode((float64(i) + 0.5) / n).AsInt()
		count[k]++
	}
	for k, w := range want {
		if got := count[k+1] / n; math.Abs(got-w/math.Log(9)) > 1e-4 {
			t.Errorf("%d has measure %v, want %v", k+1, got, w/math.Log(9))
		}
	}
}

// Steps are decimal, so the points are the numbers that a person would write.
func TestStepsAreDecimal(t *testing.T) {
	for _, c := range []struct {
		low, high, step float64
		points          uint64
		k               uint64
		want            float64
	}{
		{0, 1, 0.1, 11, 3, 0.3},
		{0.1, 0.7, 0.1, 7, 5, 0.6},
		{-0.3, 0.3, 0.1, 7, 3, 0},
		{0, 1, 0.3, 4, 3, 0.9},
		{1e-300, 1, 0.25, 4, 2, 0.5},
		{1e22, 3e22, 1e22, 3, 2, 3e22},
		{0, 100000, 1e-7, 1000000000001, 3, 3e-7},
		{-math.MaxFloat64, math.MaxFloat64, 1e308, 4, 2, 0.2e308 + 1.5e292}, // checked below by round trip only
	} {
		g := newGridAxis(c.low, c.high, c.step)
		if g == nil || g.n != c.points {
			t.Errorf("%v … %v by %v: %+v, want %d points", c.low, c.high, c.step, g, c.points)
			continue
		}
		if got := g.at(c.k); got != c.want && c.high != math.MaxFloat64 {
			t.Errorf("%v + %d·%v = %v, want %v", c.low, c.k, c.step, got, c.want)
		}
		for k := range min(g.n, 20) {
			v := Float(g.at(k))
			if u, ok := g.encode(v); !ok || g.decode(u) != v {
				t.Errorf("%v … %v by %v: point %v decodes as %v", c.low, c.high, c.step, v, g.decode(u))
			}
		}
	}
	for _, c := range [][3]float64{{0, 1, 1e-16}, {1e16, 2e16, 0.5}, {0, 1e10, 1e-6}, {-math.MaxFloat64, math.MaxFloat64, 1e290}} {
		if g := newGridAxis(c[0], c[1], c[2]); g != nil {
			t.Errorf("%v: %d points, want none", c, g.n)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	benchmark(b, func(s *Space, u []float64, c Config) { _ = s.Encode(c, u) })
}

func BenchmarkDecode(b *testing.B) {
	benchmark(b, func(s *Space, u []float64, _ Config) { _, _ = s.Decode(u) })
}

func BenchmarkSnap(b *testing.B) {
	benchmark(b, func(s *Space, u []float64, _ Config) { _ = s.Snap(u) })
}

// benchmark runs f on a space of ten parameters, one of each kind and some
// conditional.
func benchmark(b *testing.B, f func(*Space, []float64, Config)) {
	s, err := New(NewFloat("lr", 1e-5, 0.1).WithScale(Log), NewFloat("x", 0, 1), NewFloat("beta", 0.9, 0.9999).WithScale(ReverseLog).Given("optimizer", String("adam")),
		NewFloat("drop", 0, 0.5).WithStep(Float(0.05)), NewInt("batch", 16, 512).WithScale(Log), NewInt("layers", 1, 8),
		NewOrdinal("size", String("s"), String("m"), String("l")), NewCategorical("optimizer", String("sgd"), String("adam")),
		NewBool("nesterov").Given("optimizer", String("sgd")), NewConstant("seed", Int(17)))
	if err != nil {
		b.Fatal(err)
	}
	u := make([]float64, s.Dim())
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range u {
		u[i] = rng.Float64()
	}
	c, _ := s.Decode(u)
	b.ReportAllocs()
	for b.Loop() {
		f(s, u, c)
	}
}
