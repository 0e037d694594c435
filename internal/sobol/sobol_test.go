package sobol

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/internal/stream"
)

// points returns points first … first+n−1.
func points(s *Sequence, first, n uint32) [][]float64 {
	out := make([][]float64, n)
	for i := range out {
		out[i] = make([]float64, s.dims)
		s.At(first+uint32(i), out[i])
	}
	return out
}

// The values are those of scipy 1.17.1, qmc.Sobol(1111, scramble=False, bits=32), an
// independent implementation with the same table.
func TestUnscrambledPointsAreThoseOfSciPy(t *testing.T) {
	s := NewUnscrambled(1111)
	columns := []int{0, 1, 2, 3, 9, 99, 999, 1109, 1110}
	for i, want := range map[uint32][]uint64{
		0:    {0, 0, 0, 0, 0, 0, 0, 0, 0},
		1:    {2147483648, 2147483648, 2147483648, 2147483648, 2147483648, 2147483648, 2147483648, 2147483648, 2147483648},
		2:    {3221225472, 1073741824, 1073741824, 1073741824, 3221225472, 3221225472, 3221225472, 1073741824, 3221225472},
		3:    {1073741824, 3221225472, 3221225472, 3221225472, 1073741824, 1073741824, 1073741824, 3221225472, 1073741824},
		5:    {3758096384, 3758096384, 536870912, 1610612736, 536870912, 1610612736, 2684354560, 1610612736, 1610612736},
		1000: {943718400, 415236096, 2227175424, 2906652672, 297795584, 801112064, 859832320, 4248829952, 1589641216},
		4095: {1048576, 4042260480, 1435500544, 3872391168, 1058013184, 4134535168, 1324351488, 3440377856, 1454374912},
	} {
		x := points(s, i, 1)[0]
		for k, j := range columns {
			if got := uint64(x[j] * (1 << 32)); got != want[k] {
				t.Errorf("point %d, coordinate %d: got %d/2³², want %d/2³²", i, j, got, want[k])
			}
		}
	}
	var fingerprint uint64 // Σ (1111·i + j + 1)·x_ij modulo 2⁶⁴, over 4096 points
	x := make([]float64, 1111)
	for i := range uint32(4096) {
		s.At(i, x)
		for j, v := range x {
			fingerprint += (uint64(i)*1111 + uint64(j) + 1) * uint64(v*(1<<32))
		}
	}
	if want := uint64(7279964250624229376); fingerprint != want {
		t.Errorf("fingerprint of 4096 points in 1111 dimensions: got %d, want %d", fingerprint, want)
	}
}

// Every row must meet the conditions of the construction. They are a primitive polynomial
// of its own, and odd initial numbers below 2ᵏ. There are 1110 primitive polynomials of
// degrees 1 to 13, so all of them are used.
func TestTableIsSound(t *testing.T) {
	seen := make(map[uint32]bool)
	for n, r := range rows(TableDims - 1) {
		if r.dim != uint32(n+2) {
			t.Fatalf("row %d is of dimension %d", n, r.dim)
		}
		polynomial := 1<<r.degree | r.a<<1 | 1
		if seen[polynomial] || !primitive(polynomial, r.degree) {
			t.Errorf("dimension %d: polynomial %b is not primitive, or there twice", r.dim, polynomial)
		}
		seen[polynomial] = true
		for k, m := range r.m {
			if used := k < int(r.degree); used && (m%2 == 0 || m >= 2<<k) || !used && m != 0 {
				t.Errorf("dimension %d: m_%d = %d", r.dim, k+1, m)
			}
		}
	}
}

// primitive reports whether the powers of x modulo p run through all 2ˢ−1 non-zero
// polynomials of lower degree.
func primitive(p, degree uint32) bool {
	x := uint32(1)
	for period := 1; ; period++ {
		if x <<= 1; x>>degree&1 == 1 {
			x ^= p
		}
		if x == 1 || period >= 1<<degree {
			return x == 1 && period == 1<<degree-1
		}
	}
}

func TestEveryIntervalOfEveryCoordinateGetsOnePoint(t *testing.T) {
	const dims = TableDims + 3
	for _, s := range []*Sequence{New(dims, 7), NewUnscrambled(dims)} {
		for _, m := range []int{0, 1, 2, 5, 9} {
			for _, block := range []uint32{0, 1, 5} {
				x := points(s, block<<m, 1<<m)
				for j := range dims {
					boxes := make([]bool, 1<<m)
					for i := range x {
						boxes[int(x[i][j]*float64(len(boxes)))] = true
					}
					if slices.Contains(boxes, false) {
						t.Fatalf("coordinate %d: an interval of length 2^-%d has no point of block %d", j, m, block)
					}
				}
			}
		}
	}
}

func TestFirstTwoCoordinatesAreANet(t *testing.T) {
	for seed := range uint64(20) {
		s := New(2, seed)
		const m = 8
		x := points(s, 0, 1<<m)
		for a := range m + 1 {
			boxes := make(map[[2]int]int)
			for _, p := range x {
				boxes[[2]int{int(p[0] * float64(int(1)<<a)), int(p[1] * float64(int(1)<<(m-a)))}]++
			}
			if len(boxes) != 1<<m {
				t.Errorf("seed %d: %d of %d boxes of 2^-%d × 2^-%d have a point", seed, len(boxes), 1<<m, a, m-a)
			}
		}
	}
}

// Scrambling must not undo the evenness of any projection. In m bits, the quality parameter
// t of a pair is the same with and without.
func TestScramblingKeepsThePropertiesOfNets(t *testing.T) {
	const m = 8
	plain, scrambled := points(NewUnscrambled(12), 0, 1<<m), points(New(12, 3), 0, 1<<m)
	for j := range 12 {
		for k := range j {
			if p, s := pairQuality(plain, j, k, m), pairQuality(scrambled, j, k, m); p != s {
				t.Errorf("coordinates %d and %d: t = %d unscrambled, %d scrambled", k, j, p, s)
			}
		}
	}
}

// pairQuality is the least t such that every box of volume 2^(t−m) has 2ᵗ points.
func pairQuality(x [][]float64, j, k, m int) int {
	for t := range m {
		if isNet(x, j, k, m, t) {
			return t
		}
	}
	return m
}

func isNet(x [][]float64, j, k, m, t int) bool {
	for a := range m - t + 1 {
		boxes := make(map[[2]int]int)
		for _, p := range x {
			boxes[[2]int{int(p[j] * float64(int(1)<<a)), int(p[k] * float64(int(1)<<(m-t-a)))}]++
		}
		for _, n := range boxes {
			if n != 1<<t {
				return false
			}
		}
	}
	return true
}

// A single scrambled point is uniform. Over seeds, the coordinates of points 0 and 77 have
// the mean and variance of the uniform distribution, every bit is a fair coin, and two
// coordinates are uncorrelated. Bounds are 5 standard deviations. The probability of a
// false alarm is 1 in 1.7 million per check, of which there are about 120.
func TestScrambledPointsAreUniformOverSeeds(t *testing.T) {
	const seeds = 20_000
	for _, i := range []uint32{0, 77} {
		var sum, squares, product float64
		var ones [52]int
		for seed := range uint64(seeds) {
			p := points(New(2, seed), i, 1)[0]
			sum += p[0] - 0.5
			squares += (p[0] - 0.5) * (p[0] - 0.5)
			product += (p[0] - 0.5) * (p[1] - 0.5)
			for b := range ones {
				ones[b] += int(uint64(p[0]*(1<<53)) >> (52 - b) & 1)
			}
		}
		root := math.Sqrt(seeds)
		near(t, "mean", sum/seeds, 0, 5*math.Sqrt(1.0/12)/root)
		near(t, "variance", squares/seeds, 1.0/12, 5*math.Sqrt(1.0/180)/root)
		near(t, "covariance", product/seeds, 0, 5.0/12/root)
		for b, n := range ones {
			near(t, fmt.Sprintf("bit %d", b), float64(n)/seeds, 0.5, 5*0.5/root)
		}
	}
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance {
		t.Errorf("%s: got %g, want %g ± %g", what, got, want, tolerance)
	}
}

// The L2 star discrepancies of scrambled points under 20 seeds are all below those of 20
// sets of random points. If the points were no better than random, that would happen with
// probability 1/(40 choose 20), below 1e-11.
func TestDiscrepancyIsBelowRandom(t *testing.T) {
	const n, seeds = 256, 20
	for _, dims := range []int{1, 2, 5, 8} {
		greatest, least := 0.0, math.Inf(1)
		for seed := range uint64(seeds) {
			greatest = max(greatest, squaredDiscrepancy(points(New(dims, seed), 0, n)))
			random := make([][]float64, n)
			r := stream.New(stream.Derive(seed, "test", uint64(dims)))
			for i := range random {
				random[i] = make([]float64, dims)
				for j := range random[i] {
					random[i][j] = r.Float64()
				}
			}
			least = min(least, squaredDiscrepancy(random))
		}
		if greatest >= least {
			t.Errorf("%d dimensions: D² up to %.3g, random points have as little as %.3g", dims, greatest, least)
		}
	}
}

// The values are those of scipy 1.17.1, `qmc.discrepancy(Sobol(8,
// scramble=False).random(256)[:, :d], method="L2-star")`.
func TestDiscrepancyOfUnscrambledPoints(t *testing.T) {
	for dims, want := range map[int]float64{1: 0.0022552744890178733, 2: 0.0033074703678268075, 5: 0.004787772148829876, 8: 0.004140549052641038} {
		got := math.Sqrt(squaredDiscrepancy(points(NewUnscrambled(dims), 0, 256)))
		near(t, fmt.Sprintf("%d dimensions", dims), got, want, 1e-9)
	}
}

func squaredDiscrepancy(x [][]float64) float64 {
	n, dims := float64(len(x)), len(x[0])
	single, pairs := 0.0, 0.0
	for _, p := range x {
		product := 1.0
		for _, v := range p {
			product *= 1 - v*v
		}
		single += product
		for _, q := range x {
			product := 1.0
			for j := range p {
				product *= 1 - max(p[j], q[j])
			}
			pairs += product
		}
	}
	return math.Pow(3, -float64(dims)) - math.Pow(2, 1-float64(dims))/n*single + pairs/n/n
}

// For integrals of smooth functions over 40 seeds, the variance of the mean of 1,024
// scrambled points is less than a hundredth of that of random ones. In theory it falls as
// n⁻³, and here it is about a thousandth.
func TestIntegrationBeatsRandom(t *testing.T) {
	const n, seeds, dims = 1024, 40, 4
	squared := func(point func(seed uint64, i uint32, dst []float64)) (total float64) {
		x := make([]float64, dims)
		for seed := range uint64(seeds) {
			mean := 0.0
			for i := range uint32(n) {
				point(seed, i, x)
				f := 1.0
				for _, v := range x {
					f *= 1 + (v - 0.5)
				}
				mean += f / n
			}
			total += (mean - 1) * (mean - 1)
		}
		return total
	}
	sequences := make([]*Sequence, seeds)
	for seed := range sequences {
		sequences[seed] = New(dims, uint64(seed))
	}
	even := squared(func(seed uint64, i uint32, dst []float64) { sequences[seed].At(i, dst) })
	random := squared(func(seed uint64, i uint32, dst []float64) {
		r := stream.New(stream.Derive(seed, "test", uint64(i)))
		for j := range dst {
			dst[j] = r.Float64()
		}
	})
	if even > random/100 {
		t.Errorf("squared error %.3g, of random points %.3g", even, random)
	}
}

// Padding is uncorrelated with everything else. The test takes 400 pairs of columns with
// 256 points each. With random points, correlations beyond 5.5/√256 would be a false alarm
// once in 60,000 runs. With even points they are smaller.
func TestPaddingIsIndependent(t *testing.T) {
	s := New(TableDims+20, 11)
	const n = 256
	x := points(s, 0, n)
	for j := TableDims; j < s.dims; j++ {
		for _, k := range append([]int{0, 1, 500}, rangeOf(TableDims, j)...) {
			sum := 0.0
			for i := range x {
				sum += 12 * (x[i][j] - 0.5) * (x[i][k] - 0.5) / n
			}
			near(t, fmt.Sprintf("correlation of coordinates %d and %d", j, k), sum, 0, 5.5/math.Sqrt(n))
		}
	}
}

func rangeOf(from, to int) (out []int) {
	for i := from; i < to; i++ {
		out = append(out, i)
	}
	return out
}

// This is the slow twin of the scramble, with one coin a node, each looked up separately.
func TestNestedFollowsTheTree(t *testing.T) {
	r := stream.New(1)
	for range 2000 {
		x, key := r.Uint32(), r.Uint64()
		var want uint32
		for k := range 32 {
			top := k / levels * levels
			hash := stream.Mix(key + (uint64(1)<<top|uint64(x)>>(32-top))*0x9e3779b97f4a7c15)
			within := k - top
			node := uint64(1)<<within | uint64(x)>>(32-k)&(1<<within-1)
			want |= (x>>(31-k)&1 ^ uint32(hash>>node)&1) << (31 - k)
		}
		if got := nested(x, key); got != want {
			t.Fatalf("nested(%#x, %#x) = %#x, want %#x", x, key, got, want)
		}
		other := x ^ 1<<r.IntN(32)
		shared := bits.LeadingZeros32(x ^ other)
		if got := bits.LeadingZeros32(nested(x, key) ^ nested(other, key)); got != shared {
			t.Fatalf("%#x and %#x share %d bits, their images %d", x, other, shared, got)
		}
	}
}

// Logged studies depend on these values, which must never change. They were recorded from
// this implementation.
func TestGoldenPoints(t *testing.T) {
	s := New(TableDims+1, 42)
	for i, want := range map[uint32][4]float64{
		0:       {0.08603245710440921, 0.01625098995008689, 0.2571117488838911, 0.3285363460773475},
		1:       {0.5835288580965439, 0.6090462316815572, 0.7623454738921066, 0.5657982695345686},
		1000000: {0.06461918733515748, 0.4860884065494905, 0.2375738594024236, 0.6460448670409052},
	} {
		x := points(s, i, 1)[0]
		if got := [4]float64{x[0], x[1], x[TableDims-1], x[TableDims]}; got != want {
			t.Errorf("point %d: got %v, want %v", i, got, want)
		}
	}
}

func TestEdges(t *testing.T) {
	New(0, 1).At(5, nil)
	x := points(New(3, 1), math.MaxUint32, 1)[0]
	for _, v := range x {
		if !(0 <= v && v < 1) {
			t.Errorf("the last point has the coordinate %g", v)
		}
	}
	for name, f := range map[string]func(){
		"wrong length":        func() { New(2, 0).At(0, make([]float64, 3)) },
		"negative dimensions": func() { New(-1, 0) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

func BenchmarkAt(b *testing.B) {
	for _, dims := range []int{1, 10, 1000} {
		b.Run(fmt.Sprintf("dims=%d", dims), func(b *testing.B) {
			s, x := New(dims, 1), make([]float64, dims)
			i := uint32(0)
			for b.Loop() {
				s.At(i, x)
				i++
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(dims), "ns/coordinate")
		})
	}
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		New(1000, 1)
	}
}
