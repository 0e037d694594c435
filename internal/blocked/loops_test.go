package blocked

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// loops counts, by file, the sums of products in loops within loops, and the inner products
// of vectors in loops. The reason says why they are no product of matrices, or none for
// this package.
var loops = map[string]struct {
	count int
	why   string
}{
	"bandit/cmaes.go":                {3, "covariances and samples in the dimension of the space"},
	"bandit/quadratic.go":            {7, "features and values of a quadratic, one input at a time, and its system, with one unknown for each coefficient"},
	"gp/deferred.go":                 {1, "a triangle times a vector, once for many updates"},
	"gp/embedding.go":                {1, "a sample of the remainder of a pivoted factorisation"},
	"gp/exact.go":                    {1, "means, with one inner product beside the triangular solution of each row"},
	"gp/inducing.go":                 {1, "one vector, beside a factorisation"},
	"gp/panels.go":                   {1, "the last rows of a panel, after groups of 4"},
	"gp/probe.go":                    {2, "the gradient at one input"},
	"gp/sparsepredict.go":            {2, "means, with one inner product beside the triangular solution of each row"},
	"gp/update.go":                   {2, "one vector of sums beside the products of blocks"},
	"gp/window.go":                   {2, "one new inducing point"},
	"gp/fit.go":                      {1, "starting points and running variances"},
	"gp/minimise.go":                 {8, "one unknown for each hyper-parameter"},
	"gp/kernel/loggrad.go":           {3, "weighted squares of inputs, beside the product of matrices"},
	"gp/kernel/statistic.go":         {4, "the fallback for rows that have no panels"},
	"learners/average.go":            {5, "sums of a few models, with one unknown for each"},
	"learners/avgsgd/primal.go":      {3, "sparse rows, where a step is one row and the next depends on it"},
	"learners/falkon/cg.go":          {1, "sums over columns of vectors"},
	"learners/falkon/leaveoneout.go": {2, "diagonals, and corrections of single rows"},
	"learners/falkon/losses.go":      {1, "the mean over the classes of one row"},
	"learners/calibrate.go":          {2, "a line through scores, with two unknowns"},
	"learners/linear.go":             {1, "sparse rows"},
	"learners/nystrom/cg.go":         {2, "sums of vectors, output by output"},
	"learners/training/learn.go":     {1, "one random sum of outputs"},
	"learners/training/metric.go":    {2, "differences of pairs of rows, with a slope for each"},
	"learners/power.go":              {1, "one inner product in each iteration"},
	"sketch/dense.go":                {1, "projections of sparse rows"},
	"sketch/rpcholesky.go":           {1, "64 proposals, each accepted by what the ones before leave"},
}

// TestNoLoopsOfProducts searches for products that are written out as loops.
func TestNoLoopsOfProducts(t *testing.T) {
	const root = "../.."
	seen := make(map[string]bool)
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
			name, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			name = filepath.ToSlash(name)
			seen[name] = true
			found := productLoops(f)
			if got, want := len(found), loops[name].count; got != want {
				t.Errorf("%s: %d products in loops, want %d: see the list in this test", name, got, want)
				for _, at := range found {
					t.Log(set.Position(at))
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) < 100 {
		t.Fatalf("only %d files", len(seen))
	}
	for name := range loops {
		if !seen[name] {
			t.Errorf("%s is no more: take it out of the list", name)
		}
	}
}

// productLoops returns where a loop within a loop adds a product to a sum, and where a loop
// calls an inner product or the sum of vectors. A function that is passed to a call, or
// called at once, has the depth of the call. A function that is stored starts at depth 0.
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
			case *ast.FuncLit: // its callers are unknown
				walk(n.Body, 0)
				return false
			case *ast.AssignStmt:
				if depth >= 2 && addsProduct(n) {
					at = append(at, n.Pos())
				}
			case *ast.CallExpr:
				if depth >= 1 && vectorCalls[called(n)] {
					at = append(at, n.Pos())
				}
				for _, e := range append([]ast.Expr{n.Fun}, n.Args...) {
					if lit, ok := ast.Unparen(e).(*ast.FuncLit); ok {
						walk(lit.Body, depth)
					} else {
						walk(e, depth)
					}
				}
				return false
			}
			return true
		})
	}
	walk(f, 0)
	return at
}

// addsProduct reports whether an assignment is x += a·b or x = x + a·b, or the same with −,
// or one of a fused sum.
func addsProduct(n *ast.AssignStmt) bool {
	for i, e := range n.Rhs {
		switch e = ast.Unparen(e); {
		case called(e) == "fma":
			return true
		case n.Tok == token.ADD_ASSIGN, n.Tok == token.SUB_ASSIGN:
			if hasProduct(e) {
				return true
			}
		case n.Tok == token.ASSIGN && len(n.Lhs) == len(n.Rhs):
			if terms := sum(e); len(terms) > 1 && slices.ContainsFunc(terms, equals(n.Lhs[i])) && slices.ContainsFunc(terms, hasProduct) {
				return true
			}
		}
	}
	return false
}

// sum returns the terms of e.
func sum(e ast.Expr) []ast.Expr {
	e = ast.Unparen(e)
	if b, ok := e.(*ast.BinaryExpr); ok && (b.Op == token.ADD || b.Op == token.SUB) {
		return append(sum(b.X), sum(b.Y)...)
	}
	return []ast.Expr{e}
}

// equals returns a function that reports whether an expression is e.
func equals(e ast.Expr) func(ast.Expr) bool {
	text := types.ExprString(e)
	return func(o ast.Expr) bool { return types.ExprString(o) == text }
}

// hasProduct reports whether a term of e is a product a·b, or has one among its factors.
// The square of a single variable and a product with a number do not count.
func hasProduct(e ast.Expr) bool {
	return slices.ContainsFunc(sum(e), func(e ast.Expr) bool {
		f := factors(e)
		return len(f) > 1 && (len(f) != 2 || !isName(f[0]) || !equals(f[0])(f[1]))
	})
}

// factors returns the multiplied factors of e that are no numbers, without signs and
// divisors.
func factors(e ast.Expr) []ast.Expr {
	switch e := ast.Unparen(e).(type) {
	case *ast.BinaryExpr:
		switch e.Op {
		case token.MUL:
			return append(factors(e.X), factors(e.Y)...)
		case token.QUO:
			return factors(e.X)
		}
		return []ast.Expr{e}
	case *ast.UnaryExpr:
		return factors(e.X)
	case *ast.BasicLit:
		return nil
	default:
		return []ast.Expr{e}
	}
}

func isName(e ast.Expr) bool {
	_, ok := e.(*ast.Ident)
	return ok
}

// vectorCalls are the lower-case names of products and sums of vectors.
var vectorCalls = map[string]bool{"dot": true, "ddot": true, "axpy": true, "daxpy": true, "addscaled": true}

func called(e ast.Expr) string {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return ""
	}
	switch f := ast.Unparen(call.Fun).(type) {
	case *ast.Ident:
		return strings.ToLower(f.Name)
	case *ast.SelectorExpr:
		return strings.ToLower(f.Sel.Name)
	case *ast.IndexExpr:
		return called(&ast.CallExpr{Fun: f.X})
	}
	return ""
}

// TestLoopsAreFound gives productLoops loops that it must find, and others that it must
// not.
func TestLoopsAreFound(t *testing.T) {
	for body, want := range map[string]int{
		"for i := range y { for j := range x { y[i] += a[i*n+j] * x[j] } }":                     1,
		"for i := 0; i < n; i++ { for j, v := range x { s -= v * a[j] }; y[i] = s }":            1,
		"for i := range y { y[i] = blas64.Dot(a, x) }":                                          1,
		"for i := range y { axpy(u[i], a[i], y); y[i] += 2 * y[i] }":                            1,
		"for i := range y { for j := range x { y[i] = y[i] + a[j] * x[j] } }":                   1,
		"for i := range y { for j := range x { s = a[j] * x[j] + (s) } }":                       1,
		"for i := range y { for j := range x { s = math.FMA(a[j], x[j], s) } }":                 1,
		"for i := range y { for j := range x { s += (a[j] * x[j]) } }":                          1,
		"for i := range y { for j := range x { s -= alpha * a[j] / b } }":                       1,
		"for i := range y { for j := range x { s += v * v * w } }":                              1,
		"for i := range y { for j := range x { s += -a[j] * x[j] + 1 } }":                       1,
		"for i := range y { forBlocks(func(j int) { for k := range x { s += a[k] * x[k] } }) }": 1,
		"for i := range y { for j := range x { func() { s += a[j] * x[j] }() } }":               1,
		"for i := range y { f := func() { for j := range x { s += a[j] * x[j] } }; f() }":       0,
		"for i := range y { for j := range x { s = t + a[j] * x[j] } }":                         0,
		"for i := range y { y[i] += a[i] * x[i] }":                                              0,
		"for i := range y { f := func() { y[i] += a[i] * x[i] }; f() }":                         0,
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
