//go:build cuda && cgo && linux

package cuda_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/internal/blocked"
	"github.com/bkbtuner/bkb/internal/gpu"
	"github.com/bkbtuner/bkb/internal/gpu/cudatest"
)

// gramian is AᵀA + shift·I for a random A of the given rank.
func gramian(rng *rand.Rand, n, rank int, shift float64) []float64 {
	a := make([]float64, rank*n)
	for i := range a {
		a[i] = rng.NormFloat64()
	}
	g := make([]float64, n*n)
	for i := range n {
		for j := range n {
			for l := range rank {
				g[i*n+j] += a[l*n+i] * a[l*n+j] / float64(n)
			}
		}
		g[i*n+i] += shift
	}
	return g
}

// requireFactor checks LLᵀ = PᵀAP, to tolerance.
func requireFactor(t *testing.T, what string, l, a []float64, n, rank int, perm []int, tolerance float64) {
	t.Helper()
	for i := range n {
		for j := range i + 1 {
			s := 0.0
			for k := range min(j+1, rank) {
				s += l[i*n+k] * l[j*n+k]
			}
			p, q := i, j
			if perm != nil {
				p, q = perm[i], perm[j]
			}
			if e := math.Abs(s - a[p*n+q]); !(e <= tolerance) {
				t.Fatalf("%s, n = %d: LLᵀ differs by %.3g at %d, %d", what, n, e, i, j)
			}
		}
	}
}

func TestFactor(t *testing.T) {
	cudatest.Use(t, "cuda:0")
	left := cudatest.Left(t, 0)
	for _, n := range []int{1, 2, 63, 64, 65, 200} {
		rng := rand.New(rand.NewPCG(1, uint64(n)))
		for _, c := range []struct {
			name  string
			pivot bool
			rank  int
			shift float64
		}{{"plain", false, n, 1}, {"pivoted", true, n, 0.1}, {"low rank", true, (n + 1) / 2, 0}} {
			a := gramian(rng, n, c.rank, c.shift)
			l, want := slices.Clone(a), slices.Clone(a)
			var perm, same []int
			if c.pivot {
				perm, same = make([]int, n), make([]int, n)
			}
			f, rank, done := gpu.NewFactor(l, n, 1e-10, perm)
			if !done || f == nil || rank != c.rank {
				t.Fatalf("%s, n = %d: rank %d, done %t, want rank %d", c.name, n, rank, done, c.rank)
			}
			requireFactor(t, c.name, l, a, n, rank, perm, 1e-9)
			for i := range n {
				for j := i + 1; j < n; j++ {
					if l[i*n+j] != a[i*n+j] {
						t.Fatalf("%s, n = %d: element %d, %d above the diagonal has changed", c.name, n, i, j)
					}
				}
			}
			if c.pivot {
				if r := blocked.PivotedCholesky(1, blocked.New(n, n, want), 1e-10, same); r != rank || !slices.Equal(perm[:rank], same[:rank]) {
					t.Errorf("%s, n = %d: pivots %v, those of package blocked are %v", c.name, n, perm[:rank], same[:r])
				}
			}
			triangle := blocked.NewTriangle(blocked.New(n, n, l).Sub(0, 0, rank, rank))
			for _, columns := range []int{1, 3, 16, 17, 70} {
				for _, trans := range []bool{false, true} {
					v := make([]float64, rank*columns)
					for i := range v {
						v[i] = rng.NormFloat64()
					}
					want := slices.Clone(v)
					triangle.Solve(1, trans, blocked.New(rank, columns, want))
					if err := f.Solve(v, columns, trans); err != nil {
						t.Fatal(err)
					}
					requireNear(t, fmt.Sprintf("%s, n = %d, %d columns, trans %t", c.name, n, columns, trans), v, want, 1e-9)
				}
			}
			checkGram(t, rng, f, l, n, rank)
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	left("in the end")
}

func requireNear(t *testing.T, what string, got, want []float64, tolerance float64) {
	t.Helper()
	largest := 1.0
	for _, v := range want {
		largest = max(largest, math.Abs(v))
	}
	for i := range want {
		if e := math.Abs(got[i] - want[i]); !(e <= tolerance*largest) {
			t.Fatalf("%s: element %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

func checkGram(t *testing.T, rng *rand.Rand, f gpu.Factor, l []float64, n, rank int) {
	t.Helper()
	const lambda = 0.3
	w := make([]float64, n)
	for i := range w {
		w[i] = rng.Float64()
	}
	a := make([]float64, rank*rank)
	for i := range rank {
		a[i*rank+i] = lambda
		for j := range rank {
			for k := max(i, j); k < n; k++ {
				a[i*rank+j] += l[k*n+i] * w[k] * l[k*n+j]
			}
		}
	}
	g := make([]float64, rank*rank)
	square, err := f.Gram(g, w, lambda)
	if err != nil || square == nil {
		t.Fatal(square, err)
	}
	requireFactor(t, "Gram", g, a, rank, rank, nil, 1e-9)
	if err := square.Close(); err != nil {
		t.Fatal(err)
	}
	if none, err := f.Gram(g, make([]float64, n), -1); none != nil || err != nil {
		t.Errorf("%v, %v: a matrix that is not positive definite has a factor", none, err)
	}
}

// Without a factor or memory, the matrix is as it was.
func TestNoFactor(t *testing.T) {
	cudatest.Use(t, "cuda:0")
	left := cudatest.Left(t, 0)
	a := gramian(rand.New(rand.NewPCG(1, 0)), 100, 100, 1)
	a[70*100+70] = -1
	old := slices.Clone(a)
	if f, rank, done := gpu.NewFactor(a, 100, 0, nil); f != nil || rank != 70 || !done || !slices.Equal(a, old) {
		t.Errorf("%v, rank %d, done %t, want no factor at 70", f, rank, done)
	}
	a[70*100+70] = math.NaN()
	if f, rank, done := gpu.NewFactor(a, 100, 0, nil); f != nil || rank != 70 || !done {
		t.Errorf("%v, rank %d, done %t of a NaN, want no factor at 70", f, rank, done)
	}
	left("in the end")
	cudatest.Fault(t, "FAKE_CUDA_FAIL_ALLOC", "0")
	perm := make([]int, 100)
	copy(a, old)
	for k := 1; k <= 4; k++ {
		os.Setenv("FAKE_CUDA_FAIL_ALLOC", fmt.Sprint(k))
		if f, _, done := gpu.NewFactor(a, 100, 0, perm); f != nil || done || !slices.Equal(a, old) {
			t.Errorf("allocation %d: %v, done %t", k, f, done)
		}
		left(fmt.Sprintf("allocation %d", k))
	}
	os.Setenv("FAKE_CUDA_FAIL_ALLOC", "")
	d, err := gpu.Registered().Open(0)
	if err != nil {
		t.Fatal(err)
	}
	cudatest.Fault(t, "FAKE_CUDA_MEMORY", "50000")
	var memory *gpu.MemoryError
	if _, _, err := d.NewFactor(a, 100, 0, nil); !errors.As(err, &memory) {
		t.Errorf("error %v, want a MemoryError", err)
	}
}

// A device that is lost in any copy leaves the matrix and the order as they were, so that the
// CPU finds the factor that it would have found alone.
func TestFactorLostInCopy(t *testing.T) {
	const n = 300 // L is copied back in two parts
	a := gramian(rand.New(rand.NewPCG(1, 2)), n, n, 1)
	for i := range n {
		for j := range i {
			a[i*n+j] = a[j*n+i]
		}
	}
	cudatest.Fault(t, "FAKE_CUDA_DEVICES", "40")
	gpu.OnWarning(func(string) {})
	defer gpu.OnWarning(nil)
	device := 10 // no other test uses these
	for _, fault := range []string{"FAKE_CUDA_LOSE_DOWN", "FAKE_CUDA_LOSE_UP"} {
		for _, pivot := range []bool{false, true} {
			copies := 0
			for done := false; !done; copies++ {
				cudatest.Use(t, fmt.Sprintf("cuda:%d", device))
				device++
				t.Setenv(fault, fmt.Sprint(copies+1))
				l := slices.Clone(a)
				var perm []int
				if pivot {
					perm = make([]int, n)
				}
				var f gpu.Factor
				f, _, done = gpu.NewFactor(l, n, 1e-10, perm)
				t.Setenv(fault, "")
				if done {
					if err := f.Close(); err != nil {
						t.Fatal(err)
					}
					break
				}
				if !slices.Equal(l, a) || slices.ContainsFunc(perm, func(p int) bool { return p != 0 }) {
					t.Errorf("%s, copy %d, pivoted %t: the matrix or the order has changed", fault, copies+1, pivot)
				}
			}
			if copies < 3 {
				t.Errorf("%s, pivoted %t: the device was lost in %d copies, want 3 or more", fault, pivot, copies)
			}
		}
	}
}
