package blocked

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/internal/racetest"
)

// elsewhere are the files that multiply a matrix by one vector with gonum, and why they do
// not use this package, which packs its operands.
var elsewhere = map[string]string{
	"gp/cholesky.go":                   "one right-hand side",
	"learners/avgsgd/dual.go":          "a step is one row of K, and the next depends on it",
	"learners/avgsgd/primal.go":        "a step is one row, and the next depends on it",
	"learners/doublyonline/growing.go": "a step is one row of features, and the next depends on it",
	"sketch/orthogonal.go":             "Gram and Schmidt, once for each map",
}

var (
	ofMatrices = regexp.MustCompile(`\b(blas(32|64)\.(Gemm|Symm|Syrk|Syr2k|Trmm|Trsm)|\w+\.[SD](gemm|symm|syrk|syr2k|trmm|trsm|potrf|pstrf)|lapack64\.(Potrf|Pstrf|Pbtrf)|mat\.(Cholesky|PivotedCholesky|LU))\b`)
	ofVectors  = regexp.MustCompile(`\b(blas(32|64)\.(Gemv|Symv|Trmv|Trsv|Ger|Syr|Syr2)|\w+\.[SD](gemv|symv|trmv|trsv|ger|syr|syr2))\b`)
)

// TestNoSecondProduct checks that only this package, package simd and comparisons with
// other libraries multiply, solve with or factor matrices. Products with one vector
// elsewhere have a reason.
func TestNoSecondProduct(t *testing.T) {
	racetest.Alone(t)
	const root = "../.."
	files, used := 0, make(map[string]bool)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || len(d.Name()) > 2 && d.Name()[0] == '.') {
			return fs.SkipDir
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "bench/products/") || strings.HasPrefix(name, "internal/blocked/") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		if hit := ofMatrices.Find(text); hit != nil {
			t.Errorf("%s has %s: that is for internal/blocked", name, hit)
		}
		if hit := ofVectors.Find(text); hit != nil {
			used[name] = true
			if elsewhere[name] == "" {
				t.Errorf("%s has %s: see the list in this test", name, hit)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 100 {
		t.Fatalf("only %d files", files)
	}
	for name := range elsewhere {
		if !used[name] {
			t.Errorf("%s multiplies nothing any more: take it out of the list", name)
		}
	}
}

// TestSecondProductsAreFound gives the patterns code that they must find.
func TestSecondProductsAreFound(t *testing.T) {
	for _, text := range []string{"blas64.Gemm(trans, noTrans, 1, a, b, 0, c)", "impl.Dtrsm(blas.Left)", "lapack64.Potrf(a)", "var chol mat.Cholesky"} {
		if !ofMatrices.MatchString(text) {
			t.Errorf("%q is not found", text)
		}
	}
	for _, text := range []string{"blas64.Gemv(t, 1, a, x, 0, y)", "impl.Dger(m, n)"} {
		if !ofVectors.MatchString(text) || ofMatrices.MatchString(text) {
			t.Errorf("%q is not found, or is found twice", text)
		}
	}
	if text := "blas64.General{} lapack64.Geqrf(a) blas64.Dot(x, y)"; ofMatrices.MatchString(text) || ofVectors.MatchString(text) {
		t.Errorf("something is found in %q", text)
	}
}
