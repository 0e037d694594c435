package papers

import (
	"math/rand/v2"

	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/learners/data"
)

// The clusters of hardBlobs.
const (
	blobInputs   = 5
	farBlobCount = 20
	farShare     = 0.05 // of the rows
	farDistance  = 10
	blobSpread   = 0.1
)

// hardBlobs are normal clusters on which uniform sampling of landmarks fails. 95 % of the
// rows are in one, N(0, 0.1² I₅), and 5 % in 20 others, whose centres are uniform in
// [−10, 10]⁵. The target is the number of the cluster, from 0. A small uniform sample misses
// the far clusters. A sample by leverage scores does not.
type hardBlobs struct{ seed uint64 }

// Check returns nil.
func (hardBlobs) Check() error { return nil }

// Dim returns 5.
func (hardBlobs) Dim() int { return blobInputs }

// Sampler returns a sampler.
func (p hardBlobs) Sampler() data.Sampler {
	s := &blobSampler{seed: stream.Derive(p.seed, "blobs", 0), centers: make([]float64, farBlobCount*blobInputs)}
	s.r = rand.New(&s.pcg)
	s.pcg.Seed(stream.Derive(p.seed, "blob centers", 0), stream.Mix(0))
	for i := range s.centers {
		s.centers[i] = farDistance * (2*s.r.Float64() - 1)
	}
	return s
}

type blobSampler struct {
	pcg     rand.PCG
	r       *rand.Rand
	seed    uint64
	centers []float64
}

// At makes row i.
func (s *blobSampler) At(i uint64, x []float64) float64 {
	s.pcg.Seed(s.seed, stream.Mix(i))
	blob := 0
	if s.r.Float64() < farShare {
		blob = 1 + s.r.IntN(farBlobCount)
	}
	for c := range x {
		x[c] = blobSpread * s.r.NormFloat64()
		if blob > 0 {
			x[c] += s.centers[(blob-1)*blobInputs+c]
		}
	}
	return float64(blob)
}
