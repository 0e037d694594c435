package sketch

import (
	"math"
	"math/rand/v2"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/stream"
)

// NewFastfood is [NewFourier] with frequencies in blocks of D = 2^⌈log₂d⌉ that are
// never written out. Before the length scales, W = (1/√D) S H G Π H B, with random
// signs B, a permutation Π, normals G, the Hadamard matrix H, and S = diag(χ_D)/‖G‖_F.
// Each frequency is N(0, I) by itself, so the mean is the Gaussian kernel, also scaled.
// The frequencies of a block depend on each other. An input costs O(M log d) instead of
// O(Md), which is worth it from d of a few hundred on. Memory is O(M). M must be even.
//
// The source is Le, Sarlós and Smola (2013), Fastfood. Its errors are those of NewFourier.
func NewFastfood(k kernel.Kernel, d, m int, seed uint64) (FeatureMap, error) {
	t, err := newPairs(Fastfood, k, d, m, seed, "gaussian")
	if err != nil {
		return nil, err
	}
	f := &fastfood{target: t, size: 1, inverse: make([]float64, d)}
	for f.size < d {
		f.size *= 2
	}
	for c := range f.inverse {
		f.inverse[c] = 1 / t.lengthScale(c)
	}
	for j := 0; j < m/2; j += f.size {
		f.blocks = append(f.blocks, newFastfoodBlock(f.size, t.rng(j/f.size)))
	}
	return f, nil
}

type fastfood struct {
	target
	size    int // D
	inverse []float64
	blocks  []fastfoodBlock
}

// fastfoodBlock is D frequencies.
type fastfoodBlock struct {
	sign  []float64 // B
	perm  []int     // Π, where (Πv)_i = v_perm[i]
	gauss []float64 // G
	scale []float64 // S/√D
}

func newFastfoodBlock(size int, rng *rand.Rand) fastfoodBlock {
	b := fastfoodBlock{
		sign: make([]float64, size), perm: rng.Perm(size),
		gauss: make([]float64, size), scale: make([]float64, size),
	}
	square := 0.0
	for i := range size {
		b.sign[i] = float64(1 - 2*rng.IntN(2))
		b.gauss[i] = rng.NormFloat64()
		square += b.gauss[i] * b.gauss[i]
	}
	for i := range size {
		chi := 2 * stream.Gamma(float64(size)/2, rng) // χ²_D
		b.scale[i] = math.Sqrt(chi / square / float64(size))
	}
	return b
}

// project sets s = Wv, with tmp as scratch memory, all of length D.
func (b *fastfoodBlock) project(s, tmp, v []float64) {
	for i, a := range v {
		tmp[i] = a * b.sign[i]
	}
	hadamard(tmp)
	for i, p := range b.perm {
		s[i] = b.gauss[i] * tmp[p]
	}
	hadamard(s)
	for i := range s {
		s[i] *= b.scale[i]
	}
}

// Apply computes the features in O(M log d) per row.
func (f *fastfood) Apply(dst []float64, x kernel.Rows) error {
	if err := f.checkApply(dst, x); err != nil {
		return err
	}
	memory := make([]float64, 3*f.size)
	v, s, tmp := memory[:f.size], memory[f.size:2*f.size], memory[2*f.size:]
	m, scale := f.Features(), f.scale(0.5)
	for i := range x.Len() {
		clear(v)
		kernel.CopyRow(v[:f.Dim()], x, i)
		for c, a := range f.inverse {
			v[c] *= a
		}
		row := dst[i*m:][:m]
		for j := range f.blocks {
			f.blocks[j].project(s, tmp, v)
			n := min(len(row), 2*f.size)
			writePairs(row[:n], s[:n/2], scale)
			row = row[n:]
		}
	}
	return nil
}

// hadamard sets v = Hv in place, with H_ij = (−1)^popcount(i∧j), in O(D log D). len(v)
// is a power of 2. H² = D·I.
func hadamard(v []float64) {
	for half := 1; half < len(v); half *= 2 {
		for i := 0; i < len(v); i += 2 * half {
			a, b := v[i:i+half], v[i+half:i+2*half]
			for j, x := range a {
				y := b[j]
				a[j], b[j] = x+y, x-y
			}
		}
	}
}
