package learners_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
)

// constantSource has one input and the targets y.
func constantSource(tb testing.TB, y ...float64) *data.Memory {
	tb.Helper()
	m, err := data.NewMemory(kernel.NewPoints[float64](len(y), 1, ones(len(y))), y, 1)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

func ones(n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = 1
	}
	return v
}

// constantModel has the output v for the input 1.
func constantModel(v float64) func() (learners.Model, error) {
	return func() (learners.Model, error) { return learners.NewLinear(nil, 1, []float64{v}, 1) }
}

func value(tb testing.TB, m learners.Model) float64 {
	tb.Helper()
	return predict(tb, m, constantSource(tb, 0))[0]
}

// steps makes iterates with the given outputs until the monitor stops, and returns
// their number.
func steps(ctx context.Context, m *learners.Monitor, values ...float64) (int, learners.Model, error) {
	for t, v := range values {
		stop, err := m.Step(ctx, learners.Iterate{
			Iteration: t + 1, Objective: math.NaN(), Residual: math.NaN(), Model: constantModel(v),
		})
		if stop || err != nil {
			model, err := m.Finish(err)
			return t + 1, model, err
		}
	}
	model, err := m.Finish(nil)
	return len(values), model, err
}

func TestMonitor(t *testing.T) {
	ctx := context.Background()
	train, target := constantSource(t, 0), constantSource(t, 3, 3)
	values := []float64{5, 4, 4, 3.5, 1, 0, 0, 0, 3}
	for name, c := range map[string]struct {
		o          learners.Options
		steps      int
		model      float64
		best       int
		validation float64
	}{
		"no validation data": {learners.Options{}, 9, 3, 9, math.NaN()},
		"no patience":        {learners.Options{Validation: target}, 9, 3, 9, 0},
		"patience 1":         {learners.Options{Validation: target, Patience: 1}, 3, 4, 2, 1},
		"patience 2":         {learners.Options{Validation: target, Patience: 2}, 6, 3.5, 4, 0.5},
		"another measure": {learners.Options{Validation: target, Patience: 1, Measure: func(f, _ []float64, _ int) float64 {
			return math.Abs(f[0] - 4)
		}}, 3, 4, 2, 0},
		"a measure without an answer": {learners.Options{Validation: target, Patience: 3, Measure: func(_, _ []float64, _ int) float64 {
			return math.NaN()
		}}, 4, 5, 1, math.Inf(1)},
	} {
		m, err := learners.NewMonitor(ctx, "test", len(values), train, c.o)
		if err != nil {
			t.Fatal(err)
		}
		n, model, err := steps(ctx, m, values...)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if n != c.steps || value(t, model) != c.model {
			t.Errorf("%s: %d steps and %v, want %d and %v", name, n, value(t, model), c.steps, c.model)
		}
		if at, v := m.Best(); at != c.best || v != c.validation && v == v {
			t.Errorf("%s: best %d with %v, want %d with %v", name, at, v, c.best, c.validation)
		}
	}
}

func TestMonitorEnds(t *testing.T) {
	train, target := constantSource(t, 0), constantSource(t, 3)
	boom := errors.New("boom")
	var divergence *learners.DivergenceError
	for name, c := range map[string]struct {
		progress func(cancel func()) error
		values   []float64
		want     any // an error, nil, or a pointer for errors.As
		steps    int
		model    float64
	}{
		"to the end": {nil, []float64{9, 8}, nil, 2, 8},
		"stop":       {func(func()) error { return learners.ErrStop }, []float64{9, 8}, nil, 1, 9},
		"fail":       {func(func()) error { return boom }, []float64{9, 8}, boom, 1, 9},
		"cancel":     {func(cancel func()) error { cancel(); return nil }, []float64{9, 8}, context.Canceled, 1, 9},
		"diverge":    {nil, []float64{9, 8, math.Inf(1)}, &divergence, 3, 8},
	} {
		for _, validation := range []data.Source{nil, target} {
			ctx, cancel := context.WithCancel(context.Background())
			o := learners.Options{Validation: validation}
			if c.progress != nil {
				o.Progress = func(learners.Progress) error { return c.progress(cancel) }
			}
			m, err := learners.NewMonitor(ctx, "test", 9, train, o)
			if err != nil {
				t.Fatal(err)
			}
			n, model, err := steps(ctx, m, c.values...)
			cancel()
			if _, as := c.want.(**learners.DivergenceError); as {
				if validation == nil { // the model is not used before the end
					continue
				}
				if !errors.As(err, c.want) || divergence.Iteration != 3 || divergence.Algorithm != "test" {
					t.Errorf("%s: %v", name, err)
				}
			} else if want, _ := c.want.(error); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", name, err, want)
			}
			if n != c.steps || model == nil || value(t, model) != c.model {
				t.Errorf("%s: %d steps and %v, want %d and %v", name, n, model, c.steps, c.model)
			}
		}
	}
}

// TestMonitorDivergence checks that an unbounded objective ends the fit and that the
// iterate before it is the model.
func TestMonitorDivergence(t *testing.T) {
	ctx := context.Background()
	m, err := learners.NewMonitor(ctx, "test", 9, constantSource(t, 0), learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if model, err := m.Finish(nil); model != nil || err != nil {
		t.Errorf("before the first step: %v, %v", model, err)
	}
	if stop, err := m.Step(ctx, learners.Iterate{Iteration: 1, Objective: 4, Model: constantModel(7)}); stop || err != nil {
		t.Fatal(stop, err)
	}
	stop, err := m.Step(ctx, learners.Iterate{Iteration: 2, Objective: math.Inf(1), Model: constantModel(8)})
	model, err := m.Finish(err)
	var divergence *learners.DivergenceError
	if !stop || !errors.As(err, &divergence) || value(t, model) != 7 {
		t.Errorf("stop %v, model %v, %v", stop, model, err)
	}
}

func TestTargets(t *testing.T) {
	y, err := learners.Targets(context.Background(), constantSource(t, 1, 2))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "targets", y, []float64{1, 2})
}
