// Package sketchtest has the data sets on which samplers and learners are tested. They
// are deterministic stand-ins for the physics data of Carratino (2020), and a case in
// which uniform sampling fails.
package sketchtest

import (
	"math/rand/v2"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners/data"
)

// SUSY returns n rows of [data.SUSYLike]. It is an easy case for samplers, because the leverage
// scores are nearly flat. With a Gaussian kernel of length scale 4 and n = 6,000, d_eff is about
// 118 at λ = 1e-3.
func SUSY(n int, seed uint64) *kernel.Points[float64] {
	x, events := kernel.NewPoints[float64](n, data.SUSYLike{}.Dim(), nil), data.SUSYLike{Seed: seed}.Sampler()
	for i := range n {
		events.At(uint64(i), x.Row(i))
	}
	return x
}

// These are the number of coordinates of [Blobs], and of blobs beside the large one.
const (
	BlobsDim = 5
	BlobsFar = 20
)

// Blobs returns the hard case, n points in ℝ⁵ and the blob of each. 95 % are in N(0, 0.1²I), blob
// 0, and the others in 20 blobs N(c, 0.1²I) about centres c ~ N(0, 10²I). With a Gaussian kernel
// of length scale 1, n = 6,000 and λ = 1e-4, the effective dimension is about 49 but the largest
// score is 1,577/n. Uniform sampling of a few hundred points misses blobs.
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
