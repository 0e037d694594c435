package kernel_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
)

// values returns numeric rows row by row, as an independent reader would.
func values(x kernel.Rows) [][]float64 {
	out := make([][]float64, x.Len())
	for i := range out {
		out[i] = make([]float64, x.Dim())
		switch x := x.(type) {
		case *kernel.Points[float64]:
			copy(out[i], x.Row(i))
		case *kernel.Points[float32]:
			for c, v := range x.Row(i) {
				out[i][c] = float64(v)
			}
		case *kernel.CSR[float64]:
			cols, vals := x.Row(i)
			for k, c := range cols {
				out[i][c] = vals[k]
			}
		}
	}
	return out
}

func requireRows(t rapid.TB, what string, got kernel.Rows, want [][]float64) {
	t.Helper()
	rows := values(got)
	if len(rows) != len(want) {
		t.Fatalf("%s: %d rows, want %d", what, len(rows), len(want))
	}
	for i := range want {
		for c := range want[i] {
			if rows[i][c] != want[i][c] {
				t.Fatalf("%s: row %d is %v, want %v", what, i, rows[i], want[i])
			}
		}
	}
}

// Slice, Select and Concat have the same effect on all types of rows as on [][]float64.
func TestRowsAgainstSlices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, n := rapid.IntRange(0, 5).Draw(t, "d"), rapid.IntRange(1, 40).Draw(t, "n")
		gen := rapid.SampledFrom([]kerneltest.Gen{
			gaussianRows(d), float32Rows(gaussianRows(d)), sparseRows(gaussianRows(d)),
		}).Draw(t, "rows")
		x := gen(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)), n)
		want := values(x)
		i := rapid.IntRange(0, n).Draw(t, "i")
		j := rapid.IntRange(i, n).Draw(t, "j")
		part := x.Slice(i, j)
		requireRows(t, "Slice", part, want[i:j])
		idx := rapid.SliceOf(rapid.IntRange(0, n-1)).Draw(t, "idx")
		var picked [][]float64
		for _, i := range idx {
			picked = append(picked, want[i])
		}
		requireRows(t, "Select", x.Select(idx), picked)
		both, err := x.Select(idx).Concat(part, x)
		if err != nil {
			t.Fatal(err)
		}
		requireRows(t, "Concat", both, append(append(picked, want[i:j]...), want...))
		for _, src := range []kernel.Source{kernel.FromRows(x), kerneltest.Sequential(x)} {
			chosen, err := kernel.Select(context.Background(), src, idx)
			if err != nil {
				t.Fatal(err)
			}
			requireRows(t, "kernel.Select", chosen, values(x.Select(idx)))
		}
	})
}

// Centres are gathered in one pass, across blocks, in the given order.
func TestSelectFromSequentialSource(t *testing.T) {
	x := gaussianRows(2)(rand.New(rand.NewPCG(1, 0)), 5000)
	src := kerneltest.Sequential(x)
	idx := []int{4999, 0, 1023, 1024, 0, 3000}
	got, err := kernel.Select(background, src, idx)
	if err != nil {
		t.Fatal(err)
	}
	requireRows(t, "Select", got, values(x.Select(idx)))
	if src.Opened != 1 || src.Closed != 1 {
		t.Errorf("%d passes opened, %d closed, want 1", src.Opened, src.Closed)
	}
	var index *kernel.IndexError
	if _, err := kernel.Select(background, src, []int{1, 5000}); !errors.As(err, &index) || index.Index != 5000 {
		t.Errorf("index out of range: %v", err)
	}
	src.Err, src.ErrAt = errors.New("unreadable"), 2000
	if _, err := kernel.Select(background, src, idx); !errors.Is(err, src.Err) {
		t.Errorf("source error: %v", err)
	}
	ctx, cancel := context.WithCancel(background)
	cancel()
	if _, err := kernel.Select(ctx, src, idx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestListRows(t *testing.T) {
	x := kernel.List[string]{"a", "b", "c"}
	joined, err := x.Select([]int{2, 0, 2}).Concat(x.Slice(1, 2))
	if err != nil {
		t.Fatal(err)
	}
	if got := joined.(kernel.List[string]); len(got) != 4 || got[0] != "c" || got[3] != "b" || x.Dim() != kernel.NoDim {
		t.Errorf("rows are %v", got)
	}
	if _, err := x.Concat(kernel.List[int]{1}); err == nil {
		t.Error("rows of two types were joined")
	}
	got, err := kernel.Select(background, kerneltest.Sequential(x), []int{1})
	if err != nil || got.(kernel.List[string])[0] != "b" {
		t.Errorf("Select: %v, %v", got, err)
	}
}

func TestConcatRefuses(t *testing.T) {
	p := kernel.NewPoints[float64](1, 2, nil)
	var dim *kernel.DimensionError
	if _, err := p.Concat(kernel.NewPoints[float64](1, 3, nil)); !errors.As(err, &dim) {
		t.Errorf("dense: %v", err)
	}
	if _, err := kernel.Sparse(p).Concat(kernel.Sparse(kernel.NewPoints[float64](1, 3, nil))); !errors.As(err, &dim) {
		t.Errorf("sparse: %v", err)
	}
	if _, err := p.Concat(kernel.Sparse(p)); err == nil {
		t.Error("dense and sparse rows were joined")
	}
}

func TestNewCSRRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		ptr []int
		col []int32
		val []float64
	}{
		"too few pointers":   {[]int{0, 1}, []int32{0}, []float64{1}},
		"decreasing pointer": {[]int{0, 1, 0}, []int32{0}, []float64{1}},
		"beyond the values":  {[]int{0, 1, 2}, []int32{0}, []float64{1}},
		"negative pointer":   {[]int{-1, 0, 1}, []int32{0}, []float64{1}},
		"columns ≠ values":   {[]int{0, 1, 1}, []int32{0, 1}, []float64{1}},
		"column too large":   {[]int{0, 1, 1}, []int32{3}, []float64{1}},
		"negative column":    {[]int{0, 1, 1}, []int32{-1}, []float64{1}},
		"repeated column":    {[]int{0, 2, 2}, []int32{1, 1}, []float64{1, 2}},
		"decreasing columns": {[]int{0, 2, 2}, []int32{1, 0}, []float64{1, 2}},
	} {
		if _, err := kernel.NewCSR(2, 3, c.ptr, c.col, c.val); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := kernel.NewCSR(2, 3, []int{0, 2, 2}, []int32{0, 2}, []float32{1, 2}); err != nil {
		t.Error(err)
	}
}

func TestCheckFinite(t *testing.T) {
	csr, err := kernel.NewCSR(2, 9, []int{0, 1, 2}, []int32{4, 7}, []float32{1, float32(math.Inf(1))})
	if err != nil {
		t.Fatal(err)
	}
	requireNonFinite(t, kernel.CheckFinite("sparse", csr), "sparse", 1, 7)
	single := kernel.NewPoints(2, 2, []float32{1, 2, 3, float32(math.NaN())})
	requireNonFinite(t, kernel.CheckFinite("single", single), "single", 1, 1)
	if err := kernel.CheckFinite("words", kernel.List[string]{"a"}); err != nil {
		t.Error(err)
	}
}

func TestPreconditionsPanic(t *testing.T) {
	p := kernel.NewPoints[float64](3, 2, nil)
	k := must(kernel.NewGaussian(1))
	for name, f := range map[string]func(){
		"short data":      func() { kernel.NewPoints(3, 2, make([]float64, 5)) },
		"negative n":      func() { kernel.NewPoints[float64](-1, 2, nil) },
		"row too large":   func() { p.Row(3) },
		"slice too large": func() { p.Slice(1, 4) },
		"select negative": func() { p.Select([]int{-1}) },
		"unchecked rows":  func() { k.Eval(kernel.List[string]{"a"}, 0, p, 0) },
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
