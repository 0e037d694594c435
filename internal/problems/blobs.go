package problems

import (
	"fmt"
	"math"
)

// Blobs are normal clusters of unequal size. With probability 1 − Share a row is in the
// first, which lies at the origin. Otherwise it is in one of Far others with equal
// probability, whose centres are uniform in [−Distance, Distance]^Inputs. The standard
// deviation within a cluster is Spread per coordinate. The target is the number of the
// cluster, from 0. A small uniform sample of landmarks misses the far clusters. A sample by
// leverage scores does not.
type Blobs struct {
	Inputs   int
	Far      int
	Share    float64 // of the rows in far clusters
	Distance float64
	Spread   float64
	Seed     uint64
}

// HardBlobs are blobs on which uniform sampling fails. 95 % of the rows are in one blob
// N(0, 0.1² I₅), and 5 % in 20 far ones.
func HardBlobs(seed uint64) Blobs {
	return Blobs{Inputs: 5, Far: 20, Share: 0.05, Distance: 10, Spread: 0.1, Seed: seed}
}

// Check requires at least one input, a share in [0, 1] and finite distances ≥ 0.
func (p Blobs) Check() error {
	finite := func(v float64) bool { return v >= 0 && v <= math.MaxFloat64 }
	if p.Inputs < 1 || p.Far < 0 || !(p.Share >= 0 && p.Share <= 1) || !finite(p.Distance) || !finite(p.Spread) {
		return fmt.Errorf("problems: blobs %+v; want Inputs ≥ 1, Far ≥ 0, 0 ≤ Share ≤ 1, Distance and Spread ≥ 0", p)
	}
	return nil
}

// Dim returns Inputs.
func (p Blobs) Dim() int { return p.Inputs }

// Sampler returns a sampler.
func (p Blobs) Sampler() Sampler {
	s := &blobSampler{p: p, g: newRNG(p.Seed, "blobs"), centers: make([]float64, p.Far*p.Inputs)}
	r := newRNG(p.Seed, "blob centers").row(0)
	for i := range s.centers {
		s.centers[i] = p.Distance * (2*r.Float64() - 1)
	}
	return s
}

type blobSampler struct {
	p       Blobs
	g       *rng
	centers []float64
}

func (s *blobSampler) At(i uint64, x []float64) float64 {
	r := s.g.row(i)
	blob := 0
	if s.p.Far > 0 && r.Float64() < s.p.Share {
		blob = 1 + r.IntN(s.p.Far)
	}
	for c := range x {
		x[c] = s.p.Spread * r.NormFloat64()
		if blob > 0 {
			x[c] += s.centers[(blob-1)*s.p.Inputs+c]
		}
	}
	return float64(blob)
}
