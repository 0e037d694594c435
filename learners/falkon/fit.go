package falkon

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/blocked"
	"github.com/bkbtuner/bkb/internal/gpu"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/krr"
)

var _ learners.Estimator = Params{}

// Fit learns from the n rows of train, see [learners.Estimator]. It reads train once
// for the centres, unless it is in memory, once for K_nMᵀy and once per iteration. Where all
// rows are centres, most of a sample of them are independent, and nothing says how to iterate, it is
// [krr.Params.Fit] on a CPU, with one factorisation in place of three. Its errors are *learners.ParameterError,
// *learners.DataError, *learners.DivergenceError, and those of the Sampler and of
// kernel.Operator.
func (p Params) Fit(ctx context.Context, train data.Source, o learners.Options) (learners.Model, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	monitor, err := learners.NewMonitor(ctx, algorithm, cmp.Or(p.Iterations, defaultIterations), train, o)
	if err != nil {
		return nil, err
	}
	f, err := newFit(ctx, p, train, o)
	if err != nil {
		return nil, err
	}
	if f.isDirect(ctx, o.Seed) {
		m, err := f.ridge().Fit(ctx, train, o)
		if indefinite := (*krr.NotPSDError)(nil); !errors.As(err, &indefinite) {
			return m, err
		}
	}
	defer f.close()
	if err := f.open(ctx, o.Seed); err != nil {
		return nil, err
	}
	return monitor.Finish(f.run(ctx, monitor))
}

// isDirect reports whether Fit solves without iterations. A device factors three times in less time
// than the CPU once. Pivoting ends early where K has a small rank, as for a kernel without a bound, and
// then the model has few centres.
func (f *fit) isDirect(ctx context.Context, seed uint64) bool {
	size := gpu.Rows{N: f.train.Len(), D: f.train.Dim()}
	return f.isRidge() && !math.IsInf(f.Kernel.Bound(), 0) && f.Solver == ConjugateGradient && f.Factorization == FactorPivoted &&
		f.Iterations == defaultIterations && f.Tolerance == defaultTolerance && !gpu.Wanted(gpu.Problem{X: size, Y: size}) &&
		f.isIndependent(ctx, seed)
}

// isIndependent reports whether more than half of a random fourth of the rows are linearly independent in
// the kernel's space, to ε. It costs n²/32 kernel evaluations, n³/192 operations and n²/16 numbers. Rows
// that have an error count as independent, because krr names them.
func (f *fit) isIndependent(ctx context.Context, seed uint64) bool {
	n := f.train.Len()
	some, order := make([]int, (n+3)/4), stream.NewPermutation(stream.Derive(seed, "falkon/rank", 0), uint64(n))
	for i := range some {
		some[i] = int(order.At(uint64(i)))
	}
	slices.Sort(some)
	x, err := kernel.Select(ctx, f.train, some)
	if err != nil {
		return true
	}
	gram, err := kernel.LargeGramian(f.Kernel, x)
	if err != nil || ctx.Err() != nil {
		return true
	}
	m := len(some)
	return 2*blocked.PivotedCholesky(f.workers, blocked.New(m, m, gram), f.epsilon, make([]int, m)) > m
}

// fit is the state of a Fit.
type fit struct {
	Params // with defaults filled in
	learners.Rows
	train   data.Source // those rows
	targets targets
	workers int
	kappaSq float64

	centers *learners.Centers
	epsilon float64
	sys     *system
	points  kernel.Rows // the centres of the model
	from    []float64   // coordinates to start from, nil for 0
	passes  int         // by systems before sys
	notes   []string    // for the next iterate
	told    float64     // ε as reported to the user

	// near are the targets of the centres, in their order, if a loss needs them.
	needsNear bool
	near      []float64

	classes   bool  // targets must be ±1
	exclusive bool  // and +1 for one output of each row
	strange   error // the error if they are not
}

func newFit(ctx context.Context, p Params, train data.Source, o learners.Options) (*fit, error) {
	rows, err := learners.CountRows(algorithm, train, o)
	if err != nil {
		return nil, err
	}
	train = rows.Source
	kappaSq, err := bound(ctx, p.Kernel, train)
	if err != nil {
		return nil, err
	}
	if p, err = p.settled(rows.Copies.Len(), train.Len(), kappaSq); err != nil {
		return nil, err
	}
	return &fit{
		Params: p, Rows: rows, train: train, targets: targetsOf(train), workers: learners.Workers(o.Workers),
		kappaSq: kappaSq, epsilon: p.Epsilon, told: p.Epsilon,
	}, nil
}

// bound returns κ². For a kernel without bound it is the largest k(x, x) among the
// first rows.
func bound(ctx context.Context, k kernel.Kernel, src data.Source) (float64, error) {
	if b := k.Bound(); !math.IsInf(b, 0) {
		return b, nil
	}
	x, err := kernel.Select(ctx, src, upTo(min(src.Len(), 1000)))
	if err != nil {
		return 0, err
	}
	d, err := kernel.Diagonal(k, x)
	if err != nil {
		return 0, err
	}
	return cmp.Or(max(slices.Max(d), 0), 1), nil
}

// choose returns the centres.
func (f *fit) choose(ctx context.Context, seed uint64) (*learners.Centers, error) {
	s := f.sampling()
	s.Weights = f.Weights
	c, err := learners.ChooseCenters(ctx, f.Kernel, f.train, s, seed)
	if err == nil {
		f.notes = append(f.notes, c.Notes...)
	}
	return c, err
}

// open chooses the centres and makes their system.
func (f *fit) open(ctx context.Context, seed uint64) error {
	c, err := f.choose(ctx, seed)
	if err != nil {
		return err
	}
	return f.center(ctx, c)
}

// attempts is how many times ε is raised tenfold before FALKON gives up.
const attempts = 9

// center makes the system for the centres, with λ and the smallest sufficient ε.
func (f *fit) center(ctx context.Context, c *learners.Centers) error {
	given := c.Len()
	if f.Factorization == FactorCholesky {
		var err error
		if c, err = f.merged(c); err != nil {
			return err
		}
	}
	f.centers = c
	for range attempts {
		pre, ok, err := f.precondition()
		if err != nil {
			return err
		}
		if ok {
			if err := f.assemble(ctx, pre); err != nil {
				return err
			}
			if rank := pre.rank(); rank < given {
				f.note("of %d centres, %d are linearly dependent on the others and add nothing", given, given-rank)
			}
			return nil
		}
		f.epsilon *= 10
	}
	return f.unsolvable(0)
}

func (f *fit) unsolvable(iteration int) error {
	return &learners.DivergenceError{Algorithm: algorithm, Iteration: iteration, Remedy: "a larger λ, a larger epsilon, or a kernel that is positive semi-definite"}
}

// merged returns the different centres, with the weights of equal ones added.
func (f *fit) merged(c *learners.Centers) (*learners.Centers, error) {
	gram, err := kernel.LargeGramian(f.Kernel, c.Points)
	if err != nil {
		return nil, err
	}
	different, at := merge(gram, c.Len())
	if len(different) == c.Len() {
		return c, nil
	}
	out := &learners.Centers{Points: c.Points.Select(different), Weights: make([]float64, len(different)), Dictionary: c.Dictionary}
	for _, i := range different {
		out.Indices = append(out.Indices, c.Indices[i])
	}
	for i, k := range at {
		out.Weights[k] += c.Weights[i] * f.Weight(c.Indices[i])
	}
	for k, i := range out.Indices { // perRow multiplies again
		out.Weights[k] /= f.Weight(i)
	}
	return out, nil
}

// factorise factors K_MM with the present ε. ok is false if ε is too small.
func (f *fit) factorise() (factor factor, ok bool, err error) {
	gram, err := kernel.NewGram(f.Kernel, f.centers.Points)
	if err != nil {
		return nil, false, err
	}
	defer gram.Close()
	if slices.Max(gram.Diagonal()) <= 0 {
		return nil, false, &learners.DataError{Data: "training data", Reason: "the kernel is 0 at all centres, so only the function 0 can be learned"}
	}
	return factorGram(f.Factorization, f.workers, gram, f.epsilon)
}

// precondition makes the preconditioner with the present λ and ε. ok is false if
// ε is too small.
func (f *fit) precondition() (pre *preconditioner, ok bool, err error) {
	factor, ok, err := f.factorise()
	if !ok || err != nil {
		return nil, false, err
	}
	pre = newPreconditioner(factor, f.workers)
	if ok = pre.set(f.perRow(), f.Lambda); !ok {
		pre.close()
	}
	return pre, ok, nil
}

// perRow returns w_j s_j/n of the centres.
func (f *fit) perRow() []float64 {
	out := make([]float64, f.centers.Len())
	for j, w := range f.centers.Weights {
		out[j] = w * f.Weight(f.centers.Indices[j]) / float64(f.train.Len())
	}
	return out
}

// assemble opens the operator for the centres of the expansions and reads the data for
// the right-hand side.
func (f *fit) assemble(ctx context.Context, pre *preconditioner) error {
	f.close()
	f.points = f.centers.Points.Select(pre.used())
	op, err := kernel.NewOperator(f.Kernel, f.targets.source(), f.points, kernel.Options{Workers: f.workers, Precision: f.Precision, Distances: f.Distances})
	if err != nil {
		pre.close()
		return err
	}
	f.sys = &system{pre: pre, op: op, targets: f.targets, n: f.train.Len(), c: f.train.Outputs(), rows: f.Weights}
	switch {
	case f.classes:
		f.sys.check = f.checkClasses
	case f.needsNear:
		f.near = make([]float64, f.centers.Len()*f.train.Outputs())
		f.sys.check = f.gather
	}
	if err := f.sys.read(ctx); err != nil {
		return err
	}
	if f.strange != nil {
		return f.strange
	}
	f.sys.regularise(f.Lambda)
	return nil
}

// gather keeps the targets of the centres.
func (f *fit) gather(row int, y []float64) {
	c := f.train.Outputs()
	for j, i := range f.centers.Indices {
		if at := i - row; at >= 0 && at < len(y)/c {
			copy(f.near[j*c:][:c], y[at*c:])
		}
	}
}

func (f *fit) close() {
	if f.sys != nil {
		f.passes += f.sys.passes
		f.sys.op.Close()
		f.sys.pre.close()
		f.sys = nil
	}
}

// warm sets the initial coordinates to those of the function that has the values of a
// model at the centres.
func (f *fit) warm(ctx context.Context, m learners.Model) error {
	values := make([]float64, f.points.Len()*f.sys.c)
	if err := m.Predict(ctx, values, kernel.FromRows(f.points)); err != nil {
		return err
	}
	f.from = make([]float64, f.sys.rank()*f.sys.c)
	f.sys.pre.coordinates(f.from, values, f.sys.c)
	return nil
}

// iteration is a solver of Wβ = b.
type iteration interface {
	iterate(ctx context.Context) (ok bool, err error)
	residual() float64
	done() bool
	state() (x, r []float64)
}

func (g *conjugate) state() (x, r []float64) { return g.x, g.r }
func (d *descent) state() (x, r []float64)   { return d.x, d.r }

// These are the relative residuals above which one that does not match its definition is
// divergence, and below which it is the limit of rounding.
const roundingLimit, roundingLimit32 = 1e-6, 1e-3

// begin returns the solver, started at f.from.
func (f *fit) begin(ctx context.Context) (iteration, error) {
	s := f.sys
	x, r := make([]float64, len(s.b)), append([]float64(nil), s.b...)
	if f.from != nil {
		copy(x, f.from)
		s.pre.invert(x, s.c)
		wx := make([]float64, len(x))
		if err := s.apply(ctx, wx, x, s.c); err != nil {
			return nil, err
		}
		for i, v := range wx {
			r[i] -= v
		}
	}
	if f.Solver == Gradient {
		return newDescent(ctx, s.apply, s.b, x, r, s.c, f.Tolerance)
	}
	limit := roundingLimit
	if f.Precision == kernel.Float32 {
		limit = roundingLimit32
	}
	return newConjugate(s.apply, s.b, x, r, s.c, f.Tolerance, limit), nil
}

// run iterates until the tolerance, the number of iterations, the monitor or an error
// ends it.
func (f *fit) run(ctx context.Context, m *learners.Monitor) error {
	it, err := f.begin(ctx)
	if err != nil {
		return err
	}
	for t := 1; t <= f.Iterations; t++ {
		if !it.done() {
			ok, err := it.iterate(ctx)
			if err != nil {
				return err
			}
			if !ok {
				if it, err = f.restart(ctx, it, t); err != nil {
					return err
				}
			}
		}
		stop, err := m.Step(ctx, f.iterate(t, it))
		if stop || err != nil || it.done() {
			return err
		}
	}
	return nil
}

// iterate describes iteration t to the monitor.
func (f *fit) iterate(t int, it iteration) learners.Iterate {
	s := f.sys
	beta, r := it.state()
	x := append([]float64(nil), beta...)
	f.noteEnd(t, it)
	points, passes := f.points, f.passes+s.passes
	return learners.Iterate{
		Iteration: t, Passes: float64(passes), Rows: int64(passes) * int64(s.n),
		Objective: s.objective(x, r), Residual: it.residual(), Notes: f.takeNotes(),
		Model: func() (learners.Model, error) {
			return f.model(points, s.coefficients(x))
		},
	}
}

func (f *fit) model(points kernel.Rows, a []float64) (learners.Model, error) {
	e, err := learners.NewExpansion(f.Kernel, points, a, f.train.Outputs())
	if err != nil {
		return nil, err // not an *Expansion that is nil
	}
	return e, nil
}

// restart starts again from the best iterate with a tenfold ε. K_MM was too
// ill-conditioned for the rounding.
func (f *fit) restart(ctx context.Context, it iteration, t int) (iteration, error) {
	x, _ := it.state()
	if g, ok := it.(*conjugate); ok {
		x = g.best
	}
	from, err := f.model(f.points, f.sys.coefficients(x))
	if err != nil {
		return nil, f.unsolvable(t)
	}
	f.epsilon *= 10
	if !(f.epsilon < 1e-2) {
		return nil, f.unsolvable(t)
	}
	if err := f.center(ctx, f.centers); err != nil {
		return nil, err
	}
	if err := f.warm(ctx, from); err != nil {
		return nil, err
	}
	return f.begin(ctx)
}

// objective returns Σ_i s_i(f(x_i) − y_i)²/n + λ‖f‖², over all outputs. For the
// function β with the residual r it is βᵀWβ − 2βᵀb + Σ s_i y_i²/n.
func (s *system) objective(beta, r []float64) float64 {
	j := 0.0
	for _, v := range s.yy {
		j += v
	}
	for i, v := range beta {
		j -= v * (s.b[i] + r[i])
	}
	return j
}
