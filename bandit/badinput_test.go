package bandit_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/gp/kernel"
)

// constructors make a policy of each kind from common settings. change may make these
// invalid. Policies that do not use the settings of sparse ignore them.
func constructors() map[string]func(c bandit.BKBConfig, arms kernel.Rows) (bandit.Policy, error) {
	type maker = func(c bandit.BKBConfig, arms kernel.Rows) (bandit.Policy, error)
	wrap := func(p bandit.Policy, err error) (bandit.Policy, error) { return p, err }
	return map[string]maker{
		"GP-UCB": func(c bandit.BKBConfig, arms kernel.Rows) (bandit.Policy, error) {
			p, err := bandit.NewGPUCB(c.Config, arms)
			return wrap(p, err)
		},
		"BKB": func(c bandit.BKBConfig, arms kernel.Rows) (bandit.Policy, error) {
			p, err := bandit.NewBKB(c, arms)
			return wrap(p, err)
		},
		"BBKB": func(c bandit.BKBConfig, arms kernel.Rows) (bandit.Policy, error) {
			p, err := bandit.NewBBKB(c, arms)
			return wrap(p, err)
		},
	}
}

// is reports whether the error, or one joined in it, is of type E.
func is[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// Every constructor refuses invalid arguments. The type of the error names the fault,
// and its text the place.
func TestConstructorsRefuse(t *testing.T) {
	arms := uniform(70, 20, 2)
	nan := func(row, col int) kernel.Rows {
		x := uniform(71, 20, 2)
		x.Row(row)[col] = math.NaN()
		return x
	}
	type badKernel = kernel.Pairwise[[]float64]
	for name, c := range map[string]struct {
		change func(c *bandit.BKBConfig)
		arms   kernel.Rows
		is     func(error) bool
		text   string
		sparse bool // only for policies that draw inducing points
		finite bool // only for policies with arms
	}{
		"no kernel":       {change: func(c *bandit.BKBConfig) { c.Kernel = nil }, is: is[*bandit.EmptyError], text: "no kernel"},
		"λ = 0":           {change: func(c *bandit.BKBConfig) { c.NoiseVariance = 0 }, is: is[*bandit.ValueError], text: "NoiseVariance is 0"},
		"λ < 0":           {change: func(c *bandit.BKBConfig) { c.NoiseVariance = -1 }, is: is[*bandit.ValueError], text: "NoiseVariance is -1"},
		"λ = NaN":         {change: func(c *bandit.BKBConfig) { c.NoiseVariance = math.NaN() }, is: is[*bandit.ValueError], text: "NoiseVariance is NaN"},
		"λ = ∞":           {change: func(c *bandit.BKBConfig) { c.NoiseVariance = math.Inf(1) }, is: is[*bandit.ValueError], text: "NoiseVariance is +Inf"},
		"q̄ < 1":          {change: func(c *bandit.BKBConfig) { c.Oversampling = 0.9 }, is: is[*bandit.ValueError], text: "Oversampling is 0.9", sparse: true},
		"q̄ = NaN":        {change: func(c *bandit.BKBConfig) { c.Oversampling = math.NaN() }, is: is[*bandit.ValueError], text: "Oversampling is NaN", sparse: true},
		"C < 0":           {change: func(c *bandit.BKBConfig) { c.Threshold = -1 }, is: is[*bandit.ValueError], text: "Threshold is -1", sparse: true},
		"C̃ < 1":          {change: func(c *bandit.BKBConfig) { c.Ratio = 0.5 }, is: is[*bandit.ValueError], text: "Ratio is 0.5"},
		"workers":         {change: func(c *bandit.BKBConfig) { c.Workers = -1 }, is: is[*bandit.ValueError], text: "Workers is -1"},
		"β":               {change: func(c *bandit.BKBConfig) { c.Beta = bandit.Practical{C: math.NaN()} }, is: is[*bandit.ValueError], text: "Practical.C is NaN"},
		"δ":               {change: func(c *bandit.BKBConfig) { c.Beta = bandit.Theory{Norm: 1, Delta: 1} }, is: is[*bandit.ValueError], text: "Theory.Delta is 1"},
		"nil arms":        {arms: nil, is: is[*bandit.EmptyError], text: "no arms", finite: true},
		"no arms":         {arms: arms.Slice(0, 0), is: is[*bandit.EmptyError], text: "no arms", finite: true},
		"NaN arm":         {arms: nan(3, 1), is: is[*kernel.NonFiniteError], text: "row 3, column 1", finite: true},
		"duplicate arms":  {arms: arms.Select([]int{0, 1, 2, 1}), is: is[*bandit.DuplicateArmError], text: "arm 3 is the same input as arm 1", finite: true},
		"kernel and arms": {arms: kernel.List[string]{"a", "b"}, is: is[*kernel.TypeError], text: "cannot read", finite: true},
		"kernel not PSD": {change: func(c *bandit.BKBConfig) {
			c.Kernel = &badKernel{Name: "minus", Func: func(x, y []float64) float64 { return -x[0] * y[0] }}
		}, is: is[*kernel.NotPSDError], text: "not positive semi-definite"},
		"kernel not symmetric": {change: func(c *bandit.BKBConfig) {
			c.Kernel = &badKernel{Name: "crooked", Func: func(x, y []float64) float64 { return 1 + 0.1*(x[0]-y[1]) }}
		}, is: is[*kernel.AsymmetryError], text: "symmetric"},
		"kernel of NaN": {change: func(c *bandit.BKBConfig) {
			c.Kernel = &badKernel{Name: "nan", Func: func(x, y []float64) float64 { return math.NaN() }}
		}, is: is[*kernel.NonFiniteError], text: "NaN"},
	} {
		for kind, make := range constructors() {
			box := strings.Contains(kind, "box")
			if c.finite && box || c.sparse && kind == "GP-UCB" {
				continue
			}
			config, x := bkbConfig(basic(must(kernel.NewGaussian(0.3)), 0.01)), kernel.Rows(arms)
			if c.change != nil {
				c.change(&config)
			} else {
				x = c.arms
			}
			_, err := make(config, x)
			if err == nil || !c.is(err) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%s, %s: %v (%T)", kind, name, err, err)
			}
		}
	}
}

// If a kernel proves not positive semi-definite in the middle of a run, Next or the
// call in question returns an error. No call panics.
func TestKernelFoundOutLater(t *testing.T) {
	arms := make(kernel.List[int], 200)
	for i := range arms {
		arms[i] = i
	}
	// The kernel is valid on the arms that a constructor checks. Of 3, 5 and 7 any two
	// are valid.
	sly := &kernel.Pairwise[int]{Name: "sly", Sup: 1, Func: func(x, y int) float64 {
		odd := func(i int) bool { return i == 3 || i == 5 || i == 7 }
		switch {
		case x == y:
			return 1
		case odd(x) && odd(y):
			return -0.9
		}
		return 0
	}}
	config := bkbConfig(basic(sly, 0.01))
	for kind, make := range constructors() {
		if strings.Contains(kind, "box") {
			continue
		}
		p := must(make(config, arms))
		var met error
		for i := range 30 {
			_, err := p.Next()
			met = errors.Join(met, err)
			_, err = p.Best()
			met = errors.Join(met, err, p.Pull([]int{3, 5, 7}[i%3]))
			met = errors.Join(met, p.Observe([]int{3, 5, 7}[i%3], 1))
			if f, ok := p.(flusher); ok {
				met = errors.Join(met, f.Flush())
			}
		}
		if !is[*gp.NotPSDError](met) {
			t.Errorf("%s: %v", kind, met)
		}
	}
}
