package autotune

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"

	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/training"
	"github.com/bkbtuner/bkb/tuner/space"
)

// Options describe what to tune. The zero Options are ready to use.
type Options struct {
	// Measure is the error to minimize, "" for the usual one. See [training.MeasureNamed].
	Measure string
	// Fixed are hyper-parameters that are not searched.
	Fixed training.Values
	// Ranges replace theory's ranges, by name.
	Ranges map[string]Range
	// Folds is the number of folds of a cross-validation of training and validation rows
	// together, or 0 or 1 for the validation rows alone. See [DefaultFolds].
	Folds int
	// Seed is the seed of every fit.
	Seed uint64
	// Workers is the number of goroutines of each fit, 0 for one per processor.
	Workers int
}

// Tuning is a learner with the data to tune it on. It is safe for concurrent use.
type Tuning struct {
	algorithm training.Algorithm
	data      *training.Data
	problem   training.Problem
	options   Options
	name      string // of the measure
	measure   learners.Measure

	folds  []fold // nil for one split
	space  *space.Space
	starts []starting
	moved  bool     // The ranges exclude theory's settings, and the first start is near them.
	limits []string // limits that the learner sets for the searched hyper-parameters, as ranges
	// estimator has the starting settings.
	estimator learners.Estimator
	steps     int    // of an iterative learner, 0 if not known
	counted   string // the hyper-parameter that is their number
	print     string
}

// New returns the tuning of an algorithm on data that have validation rows. It returns the
// errors of [training.Algorithm.Estimator] for Fixed and for the kind of target, a
// *[RangeError] for Ranges, an error for an unknown measure, and errors of reading data.
func New(ctx context.Context, a training.Algorithm, d *training.Data, o Options) (*Tuning, error) {
	if d.Validation == nil || d.Validation.Len() == 0 {
		return nil, errors.New("autotune: there are no validation rows to compare configurations on")
	}
	if err := a.Check(o.Fixed); err != nil {
		return nil, err
	}
	t := &Tuning{algorithm: a, data: d, options: o}
	var err error
	if t.problem, err = training.NewProblem(ctx, d, o.Seed); err != nil {
		return nil, err
	}
	if t.name, t.measure, err = training.MeasureNamed(o.Measure, d.Encoding, a.Scoring(o.Fixed, t.problem)); err != nil {
		return nil, err
	}
	dims, err := t.dimensions(ctx)
	if err != nil {
		return nil, err
	}
	if err := checkRanges(a, dims, o.Fixed, o.Ranges); err != nil {
		return nil, err
	}
	if err := t.build(dims); err != nil {
		return nil, err
	}
	if o.Folds > 1 {
		if err := t.divide(ctx, o.Folds); err != nil {
			return nil, err
		}
	}
	// A fault that would fail every trial is refused at once.
	if t.problem.Outputs == 0 {
		return nil, &learners.DataError{Data: "training data", Reason: "there is no target; name a column as target"}
	}
	if t.estimator, err = a.Estimator(Values(t.starts[0].config), t.problem); err != nil {
		return nil, err
	}
	t.print, err = t.fingerprint(ctx)
	return t, err
}

// Space returns the search space.
func (t *Tuning) Space() *space.Space { return t.space }

// Starts returns the starting configurations, theory's settings first.
func (t *Tuning) Starts() []space.Config {
	configs := make([]space.Config, len(t.starts))
	for i, s := range t.starts {
		configs[i] = s.config
	}
	return configs
}

// starting is a starting configuration.
type starting struct {
	config space.Config
	name   string
}

// Idle returns the inputs that have little effect in a configuration with learned length
// scales.
func (t *Tuning) Idle(v training.Values) []string {
	if t.problem.Learned == nil || v["relevance"] != "learned" && v["length-scale"] != training.Auto {
		return nil
	}
	return t.problem.Learned.Idle(t.data.Encoding.InputNames())
}

// Objective returns the name of the objective, such as validation-rmse.
func (t *Tuning) Objective() string { return "validation-" + t.name }

// Measure returns the name of the error, such as rmse.
func (t *Tuning) Measure() string { return t.name }

// Searched returns the number of hyper-parameters that are searched.
func (t *Tuning) Searched() int { return t.space.Dim() }

// Values returns a configuration as hyper-parameters.
func Values(c space.Config) training.Values {
	v := make(training.Values, c.Len())
	for name, value := range c.All() {
		v[name] = value.String()
	}
	return v
}

// fingerprint identifies data, split, measure and seed. A worker with another fingerprint
// measures something else. It has the shapes, the targets of the validation rows and the
// median distance of the training rows.
func (t *Tuning) fingerprint(ctx context.Context) (string, error) {
	y, err := learners.Targets(ctx, t.data.Validation)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s %s %d %d %d %d %d", t.algorithm.Name, t.name, t.options.Seed,
		t.problem.Rows, t.problem.Dim, t.problem.Outputs, t.data.Validation.Len())
	if len(t.folds) > 0 {
		fmt.Fprintf(h, " %d folds", len(t.folds))
	}
	var b [8]byte
	for _, v := range append(y, t.problem.MedianDistance) {
		binary.LittleEndian.PutUint64(b[:], math.Float64bits(v))
		h.Write(b[:])
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}
