package stream

import (
	"math"
	"slices"
	"testing"
)

// Logged studies depend on these values, which must never change. Those of Mix are the
// first outputs of SplitMix64 with state 0, published with Vigna's splitmix64.c and in the
// tests of many languages. The others were recorded from this implementation.
func TestGolden(t *testing.T) {
	var state, step uint64 = 0, golden
	for i, want := range []uint64{0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f, 0xf88bb8a8724c81ec} {
		state += step
		if got := Mix(state); got != want {
			t.Errorf("SplitMix64 output %d: got %#x, want %#x", i, got, want)
		}
	}
	check(t, "Derive(1, random, 0)", Derive(1, "random", 0), 0x7951fb3d5978468)
	check(t, "Derive(1, random, 1)", Derive(1, "random", 1), 0x9e6974f88b2d8882)
	check(t, "Derive(0, , 0)", Derive(0, "", 0), 0x568a9b0b1a2c05ec)
	r := New(12345)
	check(t, "Uint64", r.Uint64(), 0x313803499a1be635)
	check(t, "Float64", math.Float64bits(r.Float64()), 0x3fe5180bdb11d51c)
	check(t, "IntN(1000)", uint64(r.IntN(1000)), 0x23b)
	check(t, "NormFloat64", math.Float64bits(r.NormFloat64()), 0xbfece319c1fbde22)
	check(t, "ExpFloat64", math.Float64bits(r.ExpFloat64()), 0x3fdb3179489d8f71)
	var perm uint64
	for _, i := range r.Perm(10) {
		perm = 10*perm + uint64(i)
	}
	check(t, "Perm(10)", perm, 8907235461)
	p := NewPermutation(1, 10)
	perm = 0
	for i := range p.n {
		perm = 10*perm + p.At(i)
	}
	check(t, "NewPermutation(1, 10)", perm, 2530879146)
	check(t, "NewPermutation(1, 2⁵³).At(7)", NewPermutation(1, 1<<53).At(7), 0x48cc883a7b1ed)
}

func check(t *testing.T, what string, got, want uint64) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %#x, want %#x", what, got, want)
	}
}

// Streams of neighbouring trials, purposes and studies must look like one another's
// continuation. They are uniform, and uncorrelated in pairs. Bounds are 5 standard
// deviations. The probability of a false alarm is 1 in 1.7 million per check.
func TestNeighboursAreIndependent(t *testing.T) {
	const n = 20_000
	root := math.Sqrt(n)
	for what, seed := range map[string]func(i uint64) (a, b uint64){
		"trials":   func(i uint64) (a, b uint64) { return Derive(7, "random", i), Derive(7, "random", i+1) },
		"studies":  func(i uint64) (a, b uint64) { return Derive(i, "random", 7), Derive(i+1, "random", 7) },
		"purposes": func(i uint64) (a, b uint64) { return Derive(7, "a", i), Derive(7, "b", i) },
		"swapped":  func(i uint64) (a, b uint64) { return Derive(i, "a", i+1), Derive(i+1, "a", i) },
	} {
		var mean, square, product float64
		var buckets [16]float64
		for i := range uint64(n) {
			sa, sb := seed(i)
			a, b := New(sa).Float64(), New(sb).Float64()
			mean += a - 0.5
			square += (a - 0.5) * (a - 0.5)
			product += (a - 0.5) * (b - 0.5)
			buckets[int(a*16)]++
		}
		near(t, what+": mean", mean/n, 0, 5*math.Sqrt(1.0/12)/root)
		near(t, what+": variance", square/n, 1.0/12, 5*math.Sqrt(1.0/180)/root)
		near(t, what+": covariance", product/n, 0, 5.0/12/root)
		chi := 0.0
		for _, k := range buckets {
			chi += (k - n/16) * (k - n/16) / (n / 16)
		}
		if chi > 56 { // 15 degrees of freedom, exceeded once in a million
			t.Errorf("%s: χ² of 16 buckets is %.1f", what, chi)
		}
	}
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance {
		t.Errorf("%s: got %g, want %g ± %g", what, got, want, tolerance)
	}
}

func TestDerivedSeedsAreDistinct(t *testing.T) {
	seen := make(map[uint64]string)
	for study := range uint64(30) {
		for _, purpose := range []string{"", "a", "b", "ab", "ba", "random", "sobol", "\x00", "\x00\x00"} {
			for n := range uint64(100) {
				s := Derive(study, purpose, n)
				if other, twice := seen[s]; twice {
					t.Fatalf("study %d, purpose %q, number %d has the seed of %s", study, purpose, n, other)
				}
				seen[s] = purpose
			}
		}
	}
}

func TestPermutationIsOne(t *testing.T) {
	for n := range uint64(300) {
		p := NewPermutation(n, n)
		got := make([]uint64, n)
		for i := range got {
			got[i] = p.At(uint64(i))
		}
		slices.Sort(got)
		for i, x := range got {
			if x != uint64(i) {
				t.Fatalf("n = %d: %d is missing", n, i)
			}
		}
		if p.n != n || p.At(n) != n || p.At(math.MaxUint64) != math.MaxUint64 {
			t.Errorf("n = %d: numbers from n on are not left alone", n)
		}
	}
	for _, n := range []uint64{1 << 20, 1<<53 + 1, 1<<63 + 1, math.MaxUint64} {
		p, seen := NewPermutation(3, n), make(map[uint64]bool)
		for i := range uint64(1000) {
			x := p.At(n - 1 - i)
			if x >= n || seen[x] {
				t.Fatalf("n = %d: %d is not below n, or there twice", n, x)
			}
			seen[x] = true
		}
	}
}

// All 24 orders of 4 elements come up about equally often over seeds. With 23 degrees of
// freedom χ² exceeds 67 once in 300,000.
func TestPermutationsAreUniform(t *testing.T) {
	const seeds = 24_000
	count := make(map[[4]uint64]float64)
	for seed := range uint64(seeds) {
		p := NewPermutation(seed, 4)
		count[[4]uint64{p.At(0), p.At(1), p.At(2), p.At(3)}]++
	}
	chi := 0.0
	for _, k := range count {
		chi += (k - seeds/24) * (k - seeds/24) / (seeds / 24)
	}
	if len(count) != 24 || chi > 67 {
		t.Errorf("%d orders of 24, χ² = %.1f", len(count), chi)
	}
}

func BenchmarkDeriveAndNew(b *testing.B) {
	for i := uint64(0); b.Loop(); i++ {
		New(Derive(1, "random", i))
	}
}

func BenchmarkPermutation(b *testing.B) {
	p := NewPermutation(1, 1_000_003)
	for i := uint64(0); b.Loop(); i++ {
		p.At(i % p.n)
	}
}
