package sketch

import (
	"context"
	"errors"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/blocked"
)

// Generator approximates leverage scores at one λ from a weighted subset J, by (5.3).
//
//	ℓ̃_J(x, λ) = (k(x, x) − ‖L⁻¹k_J(x)‖²)/(λn),  LLᵀ = K_JJ + λnA.
//
// It is immutable and safe for concurrent use.
type Generator struct {
	k      kernel.Kernel
	points kernel.Rows // nil if J is empty
	m      int
	l      []float64
	ridge  float64
	jitter float64
}

// NewGenerator returns the generator of the points J with weights A, one per point, for
// scores of a matrix of n rows at λ. points may be nil if weights is empty. It costs
// M²/2 evaluations and M³/3 operations.
//
// Its errors are [*ParameterError], [*kernel.ShapeError], [*FactorizationError] and
// those of [kernel.Gramian].
func NewGenerator(k kernel.Kernel, points kernel.Rows, weights []float64, lambda float64, n int) (*Generator, error) {
	if k == nil {
		return nil, &EmptyError{What: "kernel"}
	}
	if n < 1 {
		return nil, parameterError("Generator", "n", float64(n), "≥ 1")
	}
	if err := checkLambda("Generator", lambda, n); err != nil {
		return nil, err
	}
	g := &Generator{k: k, m: len(weights), ridge: Ridge(lambda, n)}
	if points != nil && points.Len() != g.m || points == nil && g.m > 0 {
		return nil, &kernel.ShapeError{In: "sketch", What: "weights (one per point)", Got: g.m, Want: "the number of points"}
	}
	if g.m == 0 {
		return g, nil
	}
	var err error
	if g.l, err = kernel.Gramian(k, points); err != nil {
		return nil, err
	}
	g.points = points
	return g, g.factorize(weights)
}

// factorize overwrites l = K_JJ by the factor L.
func (g *Generator) factorize(weights []float64) (err error) {
	r := make([]float64, g.m)
	for j, a := range weights {
		if err := checkPositive("Generator", "Weights", a); err != nil {
			return err
		}
		r[j] = a * g.ridge
	}
	g.jitter, err = factorize(g.l, r)
	return err
}

// Scores returns ℓ̃_J(x, λ) for every row of src. It is in (0, 1], or 0 where k(x,
// x) = 0. workers is the number of goroutines, or 0 for one per processor. It changes
// no bit. n rows cost n·M evaluations and n·M² operations.
//
// Its errors are those of k.Check, [*kernel.NonFiniteError] for rows and scores,
// [*kernel.SourceError] and ctx.Err().
func (g *Generator) Scores(ctx context.Context, src kernel.Source, workers int) ([]float64, error) {
	if src == nil {
		return nil, &EmptyError{What: "source"}
	}
	return g.each(ctx, src, workers, func(residual, diag float64) float64 { return score(residual, diag, g.ridge) })
}

// Residual returns tr(K − K_nJ K_JJ⁻¹ K_Jn)/n, what the points J leave of the kernel on the n
// rows of src. Its costs and errors are those of [NewGenerator] and [Generator.Scores].
func Residual(ctx context.Context, k kernel.Kernel, src kernel.Source, points kernel.Rows) (float64, error) {
	tiny := slices.Repeat([]float64{0x1p-50}, points.Len())
	g, err := NewGenerator(k, points, tiny, 1, 1)
	if err != nil {
		return 0, err
	}
	left, err := g.each(ctx, src, 0, func(residual, _ float64) float64 { return max(residual, 0) })
	return sum(left) / float64(src.Len()), err
}

// each returns f of k(x, x) − ‖L⁻¹k_J(x)‖² and k(x, x) for every row of src.
func (g *Generator) each(ctx context.Context, src kernel.Source, workers int, f func(residual, diag float64) float64) ([]float64, error) {
	out := make([]float64, src.Len())
	columns := g.columns()
	err := eachBlock(ctx, g.k, src, blockRows(g.m), workers, func(w *workspace, row int, x kernel.Rows) error {
		dst := out[row:][:x.Len()]
		clear(dst)
		if !columns.addSquares(w, dst, x) {
			addSquares(dst, project(w, g.k, g.points, g.l, g.m, x))
		}
		defer w.Release(w.Mark())
		diag := w.Floats(len(dst))
		kernel.DiagonalTo(diag, g.k, x)
		for i, s := range dst {
			residual := diag[i] - s
			if residual-residual != 0 {
				return &kernel.NonFiniteError{What: "leverage score", Row: row + i, Col: -1, Value: residual}
			}
			dst[i] = f(residual, diag[i])
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// columns are the points in the layout of package blocked, in which triangular solutions take
// the least time. It has the bits of project.
type columns struct {
	fill     kernel.Prepared // nil if there are too many points
	triangle []float64
	m        int
}

func (g *Generator) columns() columns {
	if g.m == 0 || g.m > blocked.Direct {
		return columns{}
	}
	return columns{kernel.Prepare(g.k, g.points), blocked.PackTriangle(blocked.New(g.m, g.m, g.l)), g.m}
}

// addSquares adds ‖L⁻¹k_J(x)‖² to dst for the rows x. It returns false if it cannot do so.
func (c columns) addSquares(w *workspace, dst []float64, x kernel.Rows) bool {
	if c.fill == nil {
		return false
	}
	const lanes = 8
	size := blocked.Padded(c.m) * lanes
	n := (len(dst) + lanes - 1) / lanes
	panels := w.floats(n * size)
	defer w.Release(w.Mark())
	rows := w.Floats(len(dst) * c.m)
	c.fill.Fill(rows, c.m, x, 0, len(dst), &w.Scratch)
	blocked.PackPanels(panels, blocked.New(len(dst), c.m, rows))
	blocked.SolvePanels(c.triangle, c.m, panels)
	for i := range n {
		var sums [lanes]float64
		addSquares(sums[:], panels[i*size:][:c.m*lanes])
		for r := range dst[i*lanes : min((i+1)*lanes, len(dst))] {
			dst[i*lanes+r] += sums[r]
		}
	}
	return true
}

// blockRows is the number of rows whose columns of L⁻¹K_JU, M×rows, stay in the cache.
func blockRows(m int) int {
	rows := 256
	for rows > 32 && rows*m > 64<<10 {
		rows /= 2
	}
	return rows
}

// project returns L⁻¹K(J, X), M×x.Len().
func project(w *workspace, k kernel.Kernel, points kernel.Rows, l []float64, m int, x kernel.Rows) []float64 {
	cols := x.Len()
	out := w.floats(m * cols)
	if m == 0 || cols == 0 {
		return out
	}
	kernel.Prepare(k, x).Fill(out, cols, points, 0, m, &w.Scratch)
	solveLower(l, m, out, cols)
	return out
}

// scoresOf is Scores for rows idx of some source.
func (g *Generator) scoresOf(ctx context.Context, x kernel.Rows, idx []int, workers int) ([]float64, error) {
	scores, err := g.Scores(ctx, kernel.FromRows(x), workers)
	var bad *kernel.NonFiniteError
	if errors.As(err, &bad) {
		bad.Row = idx[bad.Row]
	}
	return scores, err
}

// LeverageScores returns the exact scores ℓ(i, λ) of the rows of src, (5.1). It costs
// n²/2 evaluations, 2n³/3 operations and n² numbers of memory, so n can be up to about
// ten thousand. Its errors are those of [Generator.Scores], [*ParameterError],
// [*EmptyError] and [*FactorizationError].
func LeverageScores(ctx context.Context, k kernel.Kernel, src kernel.Source, lambda float64) ([]float64, error) {
	if err := checkSampling("LeverageScores", k, src, lambda); err != nil {
		return nil, err
	}
	x, err := allRows(ctx, k, src)
	if err != nil {
		return nil, err
	}
	gram, err := kernel.Gramian(k, x)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return selfScores(gram, slices.Repeat([]float64{1}, x.Len()), Ridge(lambda, x.Len()))
}
