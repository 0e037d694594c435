package sketch

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/bkbtuner/bkb/gp/kernel"
)

var background = context.Background()

// must returns v of a (v, error) pair.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// spectrum is K = U diag(s) Uᵀ of some rows, the oracle for scores at every λ.
type spectrum struct {
	n int
	s []float64
	u *mat.Dense
}

func newSpectrum(k kernel.Kernel, x kernel.Rows) spectrum {
	n := x.Len()
	gram := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			gram.SetSym(i, j, k.Eval(x, i, x, j))
		}
	}
	var eig mat.EigenSym
	if !eig.Factorize(gram, true) {
		panic("no convergence")
	}
	sp := spectrum{n: n, s: eig.Values(nil), u: new(mat.Dense)}
	eig.VectorsTo(sp.u)
	for i, v := range sp.s {
		sp.s[i] = max(v, 0)
	}
	return sp
}

// scores returns ℓ(i, λ) = Σ_q U_iq² s_q/(s_q + λn).
func (sp spectrum) scores(lambda float64) []float64 {
	out := make([]float64, sp.n)
	for i := range out {
		for q, s := range sp.s {
			u := sp.u.At(i, q)
			out[i] += u * u * s / (s + Ridge(lambda, sp.n))
		}
	}
	return out
}

// whitened returns ‖(C + λn)^−½(Σ_j A_j⁻¹φ_jφ_jᵀ − C)(C + λn)^−½‖ with C = Σ_i φ_iφ_iᵀ.
// It computes the equal B(W − I)B with B² = K(K + λn)⁻¹.
func (sp spectrum) whitened(lambda float64, indices []int, weights []float64) float64 {
	w := make([]float64, sp.n)
	for i := range w {
		w[i] = -1
	}
	for j, i := range indices {
		w[i] += 1 / weights[j]
	}
	b := mat.NewDense(sp.n, sp.n, nil)
	b.Apply(func(_, q int, u float64) float64 {
		return u * math.Sqrt(sp.s[q]/(sp.s[q]+Ridge(lambda, sp.n)))
	}, sp.u)
	var wb, e mat.Dense
	wb.Apply(func(i, _ int, v float64) float64 { return w[i] * v }, b)
	e.Mul(b.T(), &wb)
	v := symmetricEigenvalues(&e)
	return max(-v[0], v[len(v)-1])
}

// symmetricEigenvalues returns the eigenvalues of (a + aᵀ)/2, increasing.
func symmetricEigenvalues(a *mat.Dense) []float64 {
	n, _ := a.Dims()
	sym := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			sym.SetSym(i, j, (a.At(i, j)+a.At(j, i))/2)
		}
	}
	var eig mat.EigenSym
	if !eig.Factorize(sym, false) {
		panic("no convergence")
	}
	return eig.Values(nil)
}

// accuracy is the distribution of ℓ̃/ℓ, R-ACC of figure 5.1.
type accuracy struct{ mean, low, high, worst float64 }

func accuracyOf(approximate, exact []float64) accuracy {
	r := make([]float64, len(exact))
	a := accuracy{}
	for i := range r {
		r[i] = approximate[i] / exact[i]
		a.mean += r[i] / float64(len(r))
		a.worst = max(a.worst, r[i], 1/r[i])
	}
	slices.Sort(r)
	a.low, a.high = r[len(r)/20], r[len(r)-1-len(r)/20]
	return a
}

// spread is the width of the 5–95 % band as a factor.
func (a accuracy) spread() float64 { return a.high / a.low }

func requireClose(t testing.TB, what string, got, want []float64, relative float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= relative*math.Abs(want[i])) {
			t.Fatalf("%s: value %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

// line is n points of [0, 1) that are computed when needed. Row i is a hash of i. It
// counts the rows that were ever selected.
type line struct {
	n        int
	selected *atomic.Int64
	rows     *sync.Map // the numbers of these rows
}

func newLine(n int) line { return line{n, new(atomic.Int64), new(sync.Map)} }

func (l line) Len() int { return l.n }
func (l line) Dim() int { return kernel.NoDim }
func (l line) Row(i int) float64 {
	const golden = 0x9e3779b97f4a7c15
	return float64(uint64(i)*golden>>11) / (1 << 53)
}

func (l line) Select(idx []int) kernel.Rows {
	l.selected.Add(int64(len(idx)))
	out := make(kernel.List[float64], len(idx))
	for j, i := range idx {
		out[j] = l.Row(i)
		l.rows.Store(i, nil)
	}
	return out
}

// different returns the number of different rows that were selected.
func (l line) different() int {
	n := 0
	l.rows.Range(func(any, any) bool { n++; return true })
	return n
}

func (l line) Slice(i, j int) kernel.Rows {
	return l.Select(upTo(j)[i:])
}

func (l line) Concat(...kernel.Rows) (kernel.Rows, error) { panic("not needed") }

// counting returns a Gaussian kernel on numbers, and the count of its
// evaluations.
func counting(lengthScale float64) (kernel.Kernel, *atomic.Int64) {
	n := new(atomic.Int64)
	return &kernel.Pairwise[float64]{Name: "counting", Sup: 1, Func: func(x, y float64) float64 {
		n.Add(1)
		r := (x - y) / lengthScale
		return math.Exp(-r * r / 2)
	}}, n
}
