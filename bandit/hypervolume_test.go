package bandit

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// volumeBy returns the hypervolume of a front by inclusion and exclusion.
func volumeBy(front [][]float64, reference []float64) float64 {
	sum := 0.0
	for set := 1; set < 1<<len(front); set++ {
		v, sign := 1.0, -1.0
		for j, r := range reference {
			least := math.Inf(1)
			for i, p := range front {
				if set>>i&1 == 1 {
					least = min(least, p[j])
				}
			}
			v *= max(least-r, 0)
		}
		for i := range front {
			if set>>i&1 == 1 {
				sign = -sign
			}
		}
		sum += sign * v
	}
	return sum
}

// randomFront has up to eight points. Some are equal, dominated, in a line, or below the reference.
func randomFront(rng *rand.Rand, k int) (points [][]float64, reference []float64) {
	reference = make([]float64, k)
	for j := range reference {
		reference[j] = rng.NormFloat64()
	}
	kind := rng.IntN(4)
	for range rng.IntN(5) {
		p := make([]float64, k)
		for j := range p {
			switch kind {
			case 0: // ties in single objectives
				p[j] = reference[j] + float64(rng.IntN(3))
			case 1: // in a line, so that at most one matters
				p[j] = reference[j] + float64(len(points))
			default:
				p[j] = reference[j] + 1.5*rng.Float64() - 0.3
			}
		}
		points = append(points, p)
		if rng.IntN(4) == 0 {
			points = append(points, slices.Clone(p))
		}
	}
	return points, reference
}

// The gain of a point without noise is the difference of hypervolumes, and the expected gain is the
// mean gain of samples, on random and degenerate fronts.
func TestHypervolumeGain(t *testing.T) {
	const seed = 1
	rng := rand.New(rand.NewPCG(seed, 7))
	for n := range 48 {
		k := 2 + n%4
		points, reference := randomFront(rng, k)
		h, before := NewHypervolume(points, reference), volumeBy(points, reference)
		gain := func(y []float64) float64 { return volumeBy(append(slices.Clone(points), y), reference) - before }
		mean, variance, none := make([][]float64, k), make([][]float64, k), make([][]float64, k)
		u := make([]float64, k)
		for j := range k {
			u[j] = reference[j] + 2*rng.Float64() - 0.3
			sd := []float64{0, 0.3, 1}[rng.IntN(3)] * rng.Float64()
			mean[j], variance[j], none[j] = []float64{u[j]}, []float64{sd * sd}, []float64{0}
		}
		want := gain(u)
		if got := h.LogGain(mean, none)[0]; !close2(math.Exp(got), want, 1e-9) {
			t.Fatalf("seed %d, front %d: gain %v of %v above %v and %v, want %v", seed, n, math.Exp(got), u, reference, points, want)
		}
		const samples = 800
		sum, square, y := 0.0, 0.0, make([]float64, k)
		for range samples {
			for j := range y {
				y[j] = u[j] + math.Sqrt(variance[j][0])*rng.NormFloat64()
			}
			g := gain(y)
			sum, square = sum+g, square+g*g
		}
		want = sum / samples
		chance := 5*math.Sqrt(max(square/samples-want*want, 0)/samples) + 1e-4
		if got := math.Exp(h.LogGain(mean, variance)[0]); math.Abs(got-want) > chance {
			t.Errorf("seed %d, front %d of %d objectives: expected gain %v, of samples %v ± %v", seed, n, k, got, want, chance)
		}
	}
}

// A point without a gain scores less than any with one, and more the less it lacks, however far it is
// and for any length of the front.
func TestHypervolumeWithoutGain(t *testing.T) {
	const seed = 2
	rng := rand.New(rand.NewPCG(seed, 7))
	for k := 2; k <= 8; k++ {
		var points [][]float64
		for range 500 {
			p, square := make([]float64, k), 0.0
			for j := range p {
				p[j] = math.Abs(rng.NormFloat64())
				square += p[j] * p[j]
			}
			for j := range p {
				p[j] /= math.Sqrt(square)
			}
			points = append(points, p)
		}
		h := NewHypervolume(points, make([]float64, k))
		if n := len(h.boxes) / (2 * k); n > mostBoxes || len(h.front) < 2 {
			t.Errorf("%d objectives: %d boxes of %d points", k, n, len(h.front))
		}
		last, none := math.Inf(1), slices.Repeat([][]float64{{0}}, k)
		for _, level := range []float64{10, 1.1, 0.3 / float64(k), 0, -1, -1e3, -1e9} {
			mean := slices.Repeat([][]float64{{level}}, k)
			got := h.LogGain(mean, none)[0]
			if !(got < last) || math.IsInf(got, 0) {
				t.Errorf("seed %d, %d objectives: %v at level %v, %v above", seed, k, got, level, last)
			}
			last = got
		}
	}
}
