package blocked

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// loops are the files in which sums of products stand in loops within loops, or
// inner products of vectors in loops, and why that is no product of matrices, or
// none for this package.
var loops = map[string]string{
	"bandit/recursion.go":               "a row of L⁻¹K and what it adds, as new points come one by one",
	"gp/cholesky.go":                    "row by row, to say at which a factorisation has failed",
	"gp/deferred.go":                    "a triangle times a vector, once for many updates",
	"gp/embedding.go":                   "one column of a factor with pivoting, as pivots come",
	"gp/exact.go":                       "means: one inner product beside the triangular solution of each row",
	"gp/extend.go":                      "one new inducing point",
	"gp/inducing.go":                    "one vector, beside a factorisation",
	"gp/sample.go":                      "a triangle times a vector for each sample, beside its factorisation",
	"gp/sparsepredict.go":               "means: one inner product beside the triangular solution of each row",
	"gp/exactarms.go":                   "means and variances of a block, a row of V after the other",
	"gp/fit.go":                         "starting points; running variances",
	"gp/mean.go":                        "a basis of a few functions",
	"gp/minimise.go":                    "as many unknowns as there are hyper-parameters",
	"gp/kernel/spline.go":               "a polynomial",
	"gp/kernel/statisticrow.go":         "the fallback for rows that have no panels",
	"gp/kernel/tile.go":                 "the fallback for kernels that have no panels",
	"learners/avgsgd/primal.go":         "sparse rows: a step is one row, and the next depends on it",
	"learners/avgsgd/study.go":          "a parabola through points",
	"learners/falkon/cg.go":             "sums over columns of vectors",
	"learners/falkon/preconditioner.go": "a triangle times a vector, once for each start from a model",
	"learners/krr/decomposition.go":     "diagonals: sums of squares with weights",
	"learners/linear.go":                "sparse rows",
	"learners/nystrom/cg.go":            "sums of vectors, output by output",
	"learners/power.go":                 "one inner product in each iteration",
	"sketch/dense.go":                   "projections of sparse rows",
}

// TestNoLoopsOfProducts looks for products that are written out as loops.
func TestNoLoopsOfProducts(t *testing.T) {
	const root = "../.."
	used, files := make(map[string]bool), 0
	for _, dir := range []string{"learners", "sketch", "bandit", "gp"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == "testdata" || strings.HasSuffix(d.Name(), "test")):
				return fs.SkipDir
			case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			set := token.NewFileSet()
			f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			files++
			name, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			name = filepath.ToSlash(name)
			for _, at := range productLoops(f) {
				used[name] = true
				if loops[name] == "" {
					t.Errorf("%s: a product in loops: see the list in this test", set.Position(at))
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 100 {
		t.Fatalf("only %d files", files)
	}
	for name := range loops {
		if !used[name] {
			t.Errorf("%s has no such loops any more: take it out of the list", name)
		}
	}
}

// productLoops returns where a loop within a loop has x += a·b, or x −= a·b, and
// where a loop calls an inner product or the sum of vectors.
func productLoops(f *ast.File) []token.Pos {
	var at []token.Pos
	var walk func(n ast.Node, depth int)
	walk = func(root ast.Node, depth int) {
		ast.Inspect(root, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ForStmt:
				walk(n.Body, depth+1)
				return false
			case *ast.RangeStmt:
				walk(n.Body, depth+1)
				return false
			case *ast.FuncLit: // called from we do not know where
				walk(n.Body, 0)
				return false
			case *ast.AssignStmt:
				sum := n.Tok == token.ADD_ASSIGN || n.Tok == token.SUB_ASSIGN
				if depth >= 2 && sum && isProduct(n.Rhs[0]) {
					at = append(at, n.Pos())
				}
			case *ast.CallExpr:
				if depth >= 1 && vectorCalls[called(n)] {
					at = append(at, n.Pos())
				}
			}
			return true
		})
	}
	walk(f, 0)
	return at
}

// isProduct tells whether e is a·b, and not the square of a variable.
func isProduct(e ast.Expr) bool {
	product, ok := e.(*ast.BinaryExpr)
	if !ok || product.Op != token.MUL {
		return false
	}
	x, isX := product.X.(*ast.Ident)
	y, isY := product.Y.(*ast.Ident)
	return !(isX && isY && x.Name == y.Name)
}

// vectorCalls are the names, in small letters, of products and sums of vectors.
var vectorCalls = map[string]bool{"dot": true, "ddot": true, "axpy": true, "daxpy": true, "addscaled": true}

func called(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return strings.ToLower(f.Name)
	case *ast.SelectorExpr:
		return strings.ToLower(f.Sel.Name)
	}
	return ""
}

// TestLoopsAreFound feeds productLoops what it must find, and what it must not.
func TestLoopsAreFound(t *testing.T) {
	for body, want := range map[string]int{
		"for i := range y { for j := range x { y[i] += a[i*n+j] * x[j] } }":          1,
		"for i := 0; i < n; i++ { for j, v := range x { s -= v * a[j] }; y[i] = s }": 1,
		"for i := range y { y[i] = blas64.Dot(a, x) }":                               1,
		"for i := range y { axpy(u[i], a[i], y); y[i] += 2 * y[i] }":                 1,
		"for i := range y { y[i] += a[i] * x[i] }":                                   0,
		"for i := range y { f := func() { y[i] += a[i] * x[i] }; f() }":              0,
		"y[0] = dot(a, x)": 0,
		"for i := range y { for _, v := range x { y[i] += v * v } }": 0,
		"for i := range y { for j := range x { y[i] += x[j] } }":     0,
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "x.go", fmt.Sprintf("package p\nfunc f() { %s }", body), 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(productLoops(f)); got != want {
			t.Errorf("%d found in %s, want %d", got, body, want)
		}
	}
}
