package learnerstest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
)

// Case is an estimator under test.
type Case struct {
	// New returns an estimator that suits Data, which has 80 rows of 3 coordinates with
	// values of about ±2.
	New func() learners.Estimator
	// Invalid holds estimators with one hyper-parameter out of range each.
	Invalid []learners.Estimator
	// Signs says that the targets must be ±1.
	Signs bool
	// AloneTolerance is the largest difference between the outputs of a fit with
	// several and those of each alone, relative to the largest. If 0, it is 1e-8.
	AloneTolerance float64
	// Robust says that the function is not proportional to the targets.
	Robust bool
	// Once says that there is only one iteration.
	Once bool
}

// Run tests that an estimator keeps the contract of package learners.
func Run(t *testing.T, c Case) {
	t.Helper()
	for name, test := range map[string]func(*testing.T){
		"workers": c.workers, "streamed": c.streamed, "repeats": c.repeats, "progress": c.progress,
		"stop": c.stop, "cancel": c.cancel, "failing progress": c.failingProgress, "validation": c.validation,
	} {
		t.Run(name, test)
	}
	for name, test := range map[string]func(*testing.T){
		"validate": c.validate, "outputs": c.outputs, "learns": c.learns, "save and load": c.saveAndLoad,
		"predict shapes": c.predictShapes, "not finite": c.notFinite, "odd data": c.odd, "wrong data": c.wrong,
		"other rows": c.otherRows, "scaled targets": c.scaled,
	} {
		t.Run(name, func(t *testing.T) {
			racetest.Alone(t)
			test(t)
		})
	}
}

// trainSeed and testSeed make the data, so that every failure can be repeated.
const (
	trainSeed = 11
	testSeed  = 12
	rows      = 80
)

func (c Case) data(t *testing.T) (train, test *data.Memory) {
	t.Helper()
	return Data(t, rows, 1, trainSeed, c.Signs), Data(t, 50, 1, testSeed, c.Signs)
}

func fit(t *testing.T, e learners.Estimator, train data.Source, o learners.Options) learners.Model {
	t.Helper()
	m, err := e.Fit(context.Background(), train, o)
	if err != nil {
		t.Fatalf("Fit: %v", err)
	}
	if m == nil {
		t.Fatal("Fit returned neither model nor error")
	}
	if m.Dim() != train.Dim() || m.Outputs() != train.Outputs() {
		t.Fatalf("the model has %d inputs and %d outputs, the data %d and %d", m.Dim(), m.Outputs(), train.Dim(), train.Outputs())
	}
	return m
}

func predict(t *testing.T, m learners.Model, x kernel.Source) []float64 {
	t.Helper()
	out := make([]float64, x.Len()*m.Outputs())
	if err := m.Predict(context.Background(), out, x); err != nil {
		t.Fatalf("Predict: %v", err)
	}
	for i, v := range out {
		if v-v != 0 {
			t.Fatalf("output %d is %v", i, v)
		}
	}
	return out
}

func same(t *testing.T, what string, a, b []float64) {
	t.Helper()
	if len(a) != len(b) {
		t.Fatalf("%s: %d and %d outputs", what, len(a), len(b))
	}
	for i := range a {
		if math.Float64bits(a[i]) != math.Float64bits(b[i]) {
			t.Fatalf("%s: output %d differs: %v and %v", what, i, a[i], b[i])
		}
	}
}

func (c Case) validate(t *testing.T) {
	if err := c.New().Validate(); err != nil {
		t.Fatalf("the estimator under test is invalid: %v", err)
	}
	train, _ := c.data(t)
	for _, e := range c.Invalid {
		var bad *learners.ParameterError
		err := e.Validate()
		if !errors.As(err, &bad) {
			t.Errorf("%+v: Validate = %v, want a *ParameterError", e, err)
			continue
		}
		if bad.In == "" || bad.Parameter == "" || bad.Want == "" {
			t.Errorf("%#v has an empty field", bad)
		}
		m, fitErr := e.Fit(context.Background(), untouchable{train, t}, learners.Options{})
		if m != nil || fitErr == nil || fitErr.Error() != err.Error() {
			t.Errorf("Fit = %v, %v, want the error of Validate, %v", m, fitErr, err)
		}
	}
}

func (c Case) workers(t *testing.T) {
	train, test := c.data(t)
	want := predict(t, fit(t, c.New(), train, learners.Options{Seed: 5, Workers: 1}), test)
	for _, workers := range []int{0, 2, 5} {
		same(t, "workers", predict(t, fit(t, c.New(), train, learners.Options{Seed: 5, Workers: workers}), test), want)
	}
}

func (c Case) streamed(t *testing.T) {
	train, test := c.data(t)
	o := learners.Options{Seed: 5, Workers: 2, Validation: test}
	m := fit(t, c.New(), train, o)
	o.Validation = Streamed(test)
	s := fit(t, c.New(), Streamed(train), o)
	want := predict(t, m, test)
	same(t, "fit", predict(t, s, test), want)
	same(t, "predict", predict(t, m, Streamed(test)), want)
}

// repeats fits the same estimator twice at once.
func (c Case) repeats(t *testing.T) {
	train, test := c.data(t)
	e := c.New()
	want := predict(t, fit(t, e, train, learners.Options{Seed: 5}), test)
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			m, err := e.Fit(context.Background(), train, learners.Options{Seed: 5})
			if err != nil {
				t.Errorf("Fit: %v", err)
				return
			}
			out := make([]float64, test.Len())
			if err := m.Predict(context.Background(), out, test); err != nil {
				t.Errorf("Predict: %v", err)
				return
			}
			for i := range out {
				if out[i] != want[i] {
					t.Errorf("output %d differs: %v and %v", i, out[i], want[i])
					return
				}
			}
		})
	}
	group.Wait()
}

func (c Case) outputs(t *testing.T) {
	const k = 3
	train, test := Data(t, rows, k, trainSeed, c.Signs), Data(t, 50, k, testSeed, c.Signs)
	all := predict(t, fit(t, c.New(), train, learners.Options{Seed: 5}), test)
	largest := 0.0
	for _, v := range all {
		largest = max(largest, math.Abs(v))
	}
	tolerance := c.AloneTolerance
	tolerance = cmp.Or(tolerance, 1e-8)
	for j := range k {
		y := make([]float64, rows)
		for i := range y {
			y[i] = train.Targets()[i*k+j]
		}
		alone := predict(t, fit(t, c.New(), Memory(t, train.Rows(), y, 1), learners.Options{Seed: 5}), test)
		for i, v := range alone {
			if d := math.Abs(all[i*k+j] - v); !(d <= tolerance*largest) {
				t.Fatalf("output %d of row %d: %v among others, %v alone (difference %g)", j, i, all[i*k+j], v, d)
			}
		}
	}
}

// learns requires an error on other rows that is clearly below that of the best constant.
func (c Case) learns(t *testing.T) {
	train, test := c.data(t)
	m := fit(t, c.New(), train, learners.Options{Seed: 5})
	f := predict(t, m, test)
	if c.Signs {
		if e := learners.ClassError(f, test.Targets(), 1); !(e < 0.3) {
			t.Errorf("class error %v on other rows", e)
		}
		return
	}
	if e := (learners.Scoring{}).Measure("normalised-error")(f, test.Targets(), 1); !(e < 0.8) {
		t.Errorf("‖f − y‖/‖y − ȳ‖ = %v on other rows", e)
	}
}

func (c Case) saveAndLoad(t *testing.T) {
	train, test := c.data(t)
	m := fit(t, c.New(), train, learners.Options{Seed: 5})
	var buf bytes.Buffer
	if err := (&learners.File{Algorithm: "test", Model: m}).Write(&buf); err != nil {
		t.Fatal(err)
	}
	f, err := learners.Read(&buf, nil)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "loaded", predict(t, f.Model, test), predict(t, m, test))
}

func (c Case) predictShapes(t *testing.T) {
	train, test := c.data(t)
	m := fit(t, c.New(), train, learners.Options{Seed: 5})
	wide := kernel.FromRows(kernel.NewPoints[float64](4, Dim+1, nil))
	var dim *kernel.DimensionError
	if err := m.Predict(context.Background(), make([]float64, 4), wide); !errors.As(err, &dim) {
		t.Errorf("Predict of %d coordinates: %v, want a *DimensionError", Dim+1, err)
	}
	var shape *kernel.ShapeError
	if err := m.Predict(context.Background(), make([]float64, 3), test); !errors.As(err, &shape) {
		t.Errorf("Predict into 3 numbers: %v, want a *ShapeError", err)
	}
	bad := kernel.NewPoints[float64](3, Dim, nil)
	bad.Row(2)[1] = math.NaN()
	var nan *kernel.NonFiniteError
	if err := m.Predict(context.Background(), make([]float64, 3), kernel.FromRows(bad)); !errors.As(err, &nan) || nan.Row != 2 {
		t.Errorf("Predict of a NaN in row 2: %v", err)
	}
	if err := m.Predict(context.Background(), nil, kernel.FromRows(kernel.NewPoints[float64](0, Dim, nil))); err != nil {
		t.Errorf("Predict of no row: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := m.Predict(ctx, make([]float64, test.Len()), test); !errors.Is(err, context.Canceled) {
		t.Errorf("Predict under a cancelled context: %v", err)
	}
}

func (c Case) notFinite(t *testing.T) {
	train, _ := c.data(t)
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		x := train.Rows().Slice(0, rows).Select(First(rows)).(*kernel.Points[float64])
		x.Row(rows - 2)[1] = v
		c.refuses(t, "x", Memory(t, x, train.Targets(), 1))
		c.refuses(t, "streamed x", Streamed(Memory(t, x, train.Targets(), 1)))

		y := slices.Clone(train.Targets())
		bad := Memory(t, train.Rows(), y, 1)
		y[rows-2] = v // which data.NewMemory would refuse
		c.refuses(t, "y", bad)
	}
}

func (c Case) refuses(t *testing.T, what string, src data.Source) {
	t.Helper()
	_, err := c.New().Fit(context.Background(), src, learners.Options{Seed: 5})
	var cell *data.CellError
	var value *kernel.NonFiniteError
	switch {
	case errors.As(err, &cell):
		if cell.Row != rows-1 {
			t.Errorf("%s: %v, want row %d", what, err, rows-1)
		}
	case errors.As(err, &value):
		if value.Row != rows-2 {
			t.Errorf("%s: %v, want row %d", what, err, rows-2)
		}
	default:
		t.Errorf("%s that is not finite: error %v, want a *CellError or *NonFiniteError", what, err)
	}
}

// odd takes data that are unusual but valid.
func (c Case) odd(t *testing.T) {
	train, test := c.data(t)
	constant := slices.Repeat([]float64{1}, rows)
	idx := make([]int, rows)
	for i := range idx {
		idx[i] = i % 7
	}
	y := data.Pick(train.Targets(), idx)
	zero := kernel.NewPoints[float64](rows, Dim, nil)
	for name, src := range map[string]*data.Memory{
		"one row":          Memory(t, train.Rows().Slice(0, 1), train.Targets()[:1], 1),
		"two rows":         Memory(t, train.Rows().Slice(0, 2), train.Targets()[:2], 1),
		"constant targets": Memory(t, train.Rows(), constant, 1),
		"repeated rows":    Memory(t, train.Rows().Select(idx), y, 1),
		"equal rows":       Memory(t, zero, train.Targets(), 1),
	} {
		m := fit(t, c.New(), src, learners.Options{Seed: 5})
		predict(t, m, test)
		f := predict(t, m, src)
		norm := 0.0
		for _, v := range src.Targets() {
			norm += v * v
		}
		most := 1.01 * norm
		if name == "equal rows" { // only noise, around which a constant step of SGD moves
			most = 2 * norm
		}
		if got := learners.MSE(f, src.Targets(), 1) * float64(src.Len()); !c.Signs && !(got <= most) {
			t.Errorf("%s: ‖f − y‖² = %v on the training rows, more than ‖y‖² = %v", name, got, norm)
		}
	}
}

func (c Case) wrong(t *testing.T) {
	train, _ := c.data(t)
	ctx := context.Background()
	var data *learners.DataError
	if _, err := c.New().Fit(ctx, Memory(t, train.Rows().Slice(0, 0), nil, 1), learners.Options{}); !errors.As(err, &data) {
		t.Errorf("no row: %v, want a *DataError", err)
	}
	if _, err := c.New().Fit(ctx, Memory(t, train.Rows(), nil, 0), learners.Options{}); !errors.As(err, &data) {
		t.Errorf("no target: %v, want a *DataError", err)
	}
	if _, err := c.New().Fit(ctx, train, learners.Options{Validation: Data(t, 5, 2, 3, c.Signs)}); !errors.As(err, &data) {
		t.Errorf("validation data with 2 targets: %v, want a *DataError", err)
	}
	var dim *kernel.DimensionError
	wide := Memory(t, kernel.NewPoints[float64](4, Dim+1, nil), make([]float64, 4), 1)
	if _, err := c.New().Fit(ctx, train, learners.Options{Validation: wide}); !errors.As(err, &dim) {
		t.Errorf("validation data of %d coordinates: %v, want a *DimensionError", Dim+1, err)
	}
}

func (c Case) progress(t *testing.T) {
	train, test := c.data(t)
	var calls []learners.Progress
	fit(t, c.New(), train, learners.Options{Seed: 5, Validation: test, Progress: func(p learners.Progress) error {
		if len(calls) < 3 {
			m, err := p.Snapshot()
			if err != nil {
				t.Fatalf("Snapshot: %v", err)
			}
			f := predict(t, m, test)
			if e := learners.RMSE(f, test.Targets(), 1); math.Abs(e-p.ValidationError) > 1e-7*(1+e) {
				t.Errorf("iteration %d: validation error %v, of the snapshot %v", p.Iteration, p.ValidationError, e)
			}
		}
		p.Snapshot = nil
		calls = append(calls, p)
		return nil
	}})
	if len(calls) == 0 || c.Once && len(calls) != 1 || !c.Once && len(calls) < 2 {
		t.Fatalf("Progress was called %d times", len(calls))
	}
	for i, p := range calls {
		if p.Iterations != calls[0].Iterations || p.Iteration < 1 || p.Iteration > p.Iterations {
			t.Fatalf("iteration %d of %d", p.Iteration, p.Iterations)
		}
		if i > 0 && (p.Iteration <= calls[i-1].Iteration || p.Rows < calls[i-1].Rows || p.Passes < calls[i-1].Passes) {
			t.Fatalf("after iteration %d, %d rows, %v passes came %d, %d, %v",
				calls[i-1].Iteration, calls[i-1].Rows, calls[i-1].Passes, p.Iteration, p.Rows, p.Passes)
		}
		if p.Rows <= 0 || p.Passes <= 0 {
			t.Errorf("iteration %d: %d rows, %v passes", p.Iteration, p.Rows, p.Passes)
		}
	}
}

// stop ends the fit by ErrStop in the first iteration.
func (c Case) stop(t *testing.T) {
	train, test := c.data(t)
	var snapshot learners.Model
	calls := 0
	m := fit(t, c.New(), train, learners.Options{Seed: 5, Progress: func(p learners.Progress) error {
		var err error
		calls++
		if snapshot, err = p.Snapshot(); err != nil {
			t.Fatalf("Snapshot: %v", err)
		}
		return learners.ErrStop
	}})
	if calls != 1 {
		t.Errorf("Progress was called %d times", calls)
	}
	same(t, "model and snapshot", predict(t, m, test), predict(t, snapshot, test))
}

// cancel ends the fit by its context, before it and in the second iteration.
func (c Case) cancel(t *testing.T) {
	train, test := c.data(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := c.New().Fit(ctx, train, learners.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("under a cancelled context: %v", err)
	}
	ctx, cancel = context.WithCancel(context.Background())
	defer cancel()
	last := 2
	if c.Once {
		last = 1
	}
	var snapshot learners.Model
	m, err := c.New().Fit(ctx, train, learners.Options{Seed: 5, Progress: func(p learners.Progress) error {
		if p.Iteration >= last {
			if snapshot == nil {
				var err error
				if snapshot, err = p.Snapshot(); err != nil {
					t.Fatalf("Snapshot: %v", err)
				}
			} else {
				t.Errorf("iteration %d after the end of the context", p.Iteration)
			}
			cancel()
		}
		return nil
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("Fit = %v, want context.Canceled", err)
	}
	if m == nil {
		t.Fatal("no model so far")
	}
	same(t, "model and snapshot", predict(t, m, test), predict(t, snapshot, test))
}

func (c Case) failingProgress(t *testing.T) {
	train, _ := c.data(t)
	boom := errors.New("boom")
	if _, err := c.New().Fit(context.Background(), train, learners.Options{Progress: func(learners.Progress) error { return boom }}); !errors.Is(err, boom) {
		t.Errorf("Fit = %v, want the error of Progress", err)
	}
}

// validation checks that the best iterate is kept, by another measure.
func (c Case) validation(t *testing.T) {
	train, test := c.data(t)
	least, best := math.Inf(1), 0
	m := fit(t, c.New(), train, learners.Options{Seed: 5, Validation: test, Measure: (learners.Scoring{}).Measure("mae"), Progress: func(p learners.Progress) error {
		if p.Best != (p.ValidationError < least) {
			t.Errorf("iteration %d: error %v, least %v, Best is %v", p.Iteration, p.ValidationError, least, p.Best)
		}
		if p.ValidationError < least {
			least, best = p.ValidationError, p.Iteration
		}
		return nil
	}})
	if got := (learners.Scoring{}).Measure("mae")(predict(t, m, test), test.Targets(), 1); math.Abs(got-least) > 1e-7*(1+least) {
		t.Errorf("the model has validation error %v, the least was %v in iteration %d", got, least, best)
	}
}

// otherRows fits float32 and sparse rows to nearly the same function.
func (c Case) otherRows(t *testing.T) {
	train, test := c.data(t)
	x := train.Rows().(*kernel.Points[float64])
	single := kernel.ConvertPoints[float32](x)
	double := kernel.ConvertPoints[float64](single) // equal numbers
	want := predict(t, fit(t, c.New(), Memory(t, double, train.Targets(), 1), learners.Options{Seed: 5}), test)
	testX := test.Rows().(*kernel.Points[float64])
	for name, rows := range map[string][2]kernel.Rows{
		"float32": {single, kernel.ConvertPoints[float32](testX)},
		"sparse":  {kernel.Sparse(double), kernel.Sparse(testX)},
	} {
		m := fit(t, c.New(), Memory(t, rows[0], train.Targets(), 1), learners.Options{Seed: 5})
		got := predict(t, m, kernel.FromRows(rows[1]))
		for i, v := range got {
			if d := math.Abs(v - want[i]); !(d <= 1e-3*(1+math.Abs(want[i]))) {
				t.Errorf("%s: output %d is %v, of dense float64 rows %v", name, i, v, want[i])
				break
			}
		}
	}
}

// scaled fits 4y, which makes the function of least squares 4 times as large. It is so
// to the bit, as nothing is rounded.
func (c Case) scaled(t *testing.T) {
	if c.Signs || c.Robust {
		t.Skip("the loss has a scale of its own")
	}
	train, test := c.data(t)
	y := append([]float64(nil), train.Targets()...)
	for i := range y {
		y[i] *= 4
	}
	want := predict(t, fit(t, c.New(), train, learners.Options{Seed: 5}), test)
	got := predict(t, fit(t, c.New(), Memory(t, train.Rows(), y, 1), learners.Options{Seed: 5}), test)
	for i := range want {
		want[i] *= 4
	}
	same(t, "4y", got, want)
}
