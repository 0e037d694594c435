// Package sketchtest has the data sets on which samplers and learners are tested. They
// are deterministic stand-ins for the physics data of Carratino (2020), and a case in
// which uniform sampling fails.
package sketchtest

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// SUSYDim is the number of features of [SUSY].
const SUSYDim = 18

// SUSY returns n points of 18 z-scored features and their classes y ∈ {0, 1}. The
// events have two leptons and missing energy, in 8 raw and 10 derived quantities. They
// resemble the SUSY data (Baldi, Sadowski, Whiteson, 2014) of Carratino (2020),
// sections 3.4, 4.10 and 5.5. It is an easy case for samplers, because the leverage
// scores are nearly flat. The positive rate is .374 and the Bayes error .146. With a
// Gaussian kernel of length scale 4 and n = 6,000, d_eff is about 118 at λ = 1e-3.
func SUSY(n int, rng *rand.Rand) (x *kernel.Points[float64], y []float64) {
	x, y = kernel.NewPoints[float64](n, SUSYDim, nil), make([]float64, n)
	for i := range n {
		y[i] = event(x.Row(i), rng)
	}
	standardize(x)
	return x, y
}

// event draws one event and its class.
func event(f []float64, rng *rand.Rand) float64 {
	pt1 := gamma(2, rng)
	pt2 := pt1 * distuv.Beta{Alpha: 2, Beta: 2, Src: rng}.Rand()
	eta1 := rng.NormFloat64()
	eta2 := 0.5*eta1 + 0.9*rng.NormFloat64()
	phi1 := angle(rng)
	phi2 := phi1 + vonMises(math.Pi, 1, rng)
	met, phiM := gamma(1.5, rng), angle(rng)

	cosDelta := math.Cos(phi1 - phi2)
	deltaEta := min(max(eta1-eta2, -4), 4)
	mll := math.Sqrt(2 * pt1 * pt2 * (math.Cosh(deltaEta) - cosDelta))
	mT := math.Sqrt(2 * pt1 * met * (1 - math.Cos(phi1-phiM)))
	copy(f, []float64{
		pt1, eta1, phi1, pt2, eta2, phi2, met, phiM,
		cosDelta, mll, mT, met * math.Cos(phiM-phi1), met / (math.Sqrt(pt1+pt2) + 0.1),
		math.Log1p(pt1 + pt2), min(mll, mT), math.Cos(phiM - phi1), math.Cos(phiM - phi2), math.Abs(eta1 - eta2),
	})
	score := 1.6*math.Tanh(met-1.5) + 1.2*math.Tanh(0.6*(mT-2)) + 0.8*math.Tanh(0.5*(mll-2.5)) +
		0.7*cosDelta*math.Tanh(pt1-2) - 0.25
	if rng.Float64() < 1/(1+math.Exp(-1.6*score)) {
		return 1
	}
	return 0
}

func gamma(shape float64, rng *rand.Rand) float64 {
	return distuv.Gamma{Alpha: shape, Beta: 1, Src: rng}.Rand()
}

func angle(rng *rand.Rand) float64 { return math.Pi * (2*rng.Float64() - 1) }

// vonMises draws from the von Mises distribution (Best and Fisher, 1979).
func vonMises(mean, kappa float64, rng *rand.Rand) float64 {
	tau := 1 + math.Sqrt(1+4*kappa*kappa)
	rho := (tau - math.Sqrt(2*tau)) / (2 * kappa)
	r := (1 + rho*rho) / (2 * rho)
	for {
		z := math.Cos(math.Pi * rng.Float64())
		f := (1 + r*z) / (r + z)
		c := kappa * (r - f)
		if u := 1 - rng.Float64(); c*(2-c) > u || math.Log(c/u)+1 >= c {
			return mean + math.Copysign(math.Acos(min(max(f, -1), 1)), rng.Float64()-0.5)
		}
	}
}

// standardize gives every column mean 0 and variance 1.
func standardize(x *kernel.Points[float64]) {
	n := float64(x.Len())
	for c := range x.Dim() {
		mean, square := 0.0, 0.0
		for i := range x.Len() {
			mean += x.Row(i)[c] / n
		}
		for i := range x.Len() {
			d := x.Row(i)[c] - mean
			square += d * d / n
		}
		for i := range x.Len() {
			x.Row(i)[c] = (x.Row(i)[c] - mean) / math.Sqrt(square)
		}
	}
}

// These are the number of coordinates of [Blobs], and of blobs beside the large one.
const (
	BlobsDim = 5
	BlobsFar = 20
)

// Blobs returns the hard case, n points in ℝ⁵ and the blob of each. 95 % are in N(0,
// 0.1²I), blob 0, and the others in 20 blobs N(c, 0.1²I) about centres c ~ N(0, 10²I).
// With a Gaussian kernel of length scale 1, n = 6,000 and λ = 1e-4, the effective
// dimension is about 49 but the largest score is 1,577/n. Uniform sampling of a few
// hundred points misses blobs.
func Blobs(n int, rng *rand.Rand) (x *kernel.Points[float64], blob []int) {
	var centers [BlobsFar + 1][BlobsDim]float64
	for b := 1; b <= BlobsFar; b++ {
		for c := range BlobsDim {
			centers[b][c] = 10 * rng.NormFloat64()
		}
	}
	x, blob = kernel.NewPoints[float64](n, BlobsDim, nil), make([]int, n)
	far := n / 20
	for i := range n {
		if i >= n-far {
			blob[i] = 1 + i%BlobsFar
		}
	}
	rng.Shuffle(n, func(i, j int) { blob[i], blob[j] = blob[j], blob[i] })
	for i := range n {
		for c := range BlobsDim {
			x.Row(i)[c] = centers[blob[i]][c] + 0.1*rng.NormFloat64()
		}
	}
	return x, blob
}

// CrowdedDim is the number of coordinates of [Crowded].
const CrowdedDim = 6

// Crowded returns n points of [0, 1]⁶ as in a long tuning run. 15 % are uniform, and
// the others are normal about one point, each with a standard deviation between 0.02
// and 0.1. With a Matérn-5/2 kernel of length scale 0.5 the leverage is in the 15 %.
func Crowded(n int, rng *rand.Rand) *kernel.Points[float64] {
	var center [CrowdedDim]float64
	for c := range center {
		center[c] = 0.3 + 0.4*rng.Float64()
	}
	x := kernel.NewPoints[float64](n, CrowdedDim, nil)
	for i := range n {
		spread := rng.Float64() < 0.15
		deviation := 0.02 + 0.08*rng.Float64()
		for c := range CrowdedDim {
			v := rng.Float64()
			if !spread {
				v = min(max(center[c]+deviation*rng.NormFloat64(), 0), 1)
			}
			x.Row(i)[c] = v
		}
	}
	return x
}
