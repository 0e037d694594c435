package autotune

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
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
	// Folds is the number of folds of training and validation rows together, or 0 or 1 for the
	// validation rows alone. As many as rows leave out one row at a time. See [DefaultFolds].
	Folds int
	// ClassWeights are weights of classes in every fit, see [training.ClassWeights].
	ClassWeights string
	// Calibrate adds probabilities of classes to the final model, by Platt scaling of scores of
	// rows that a fit left out. Without Calibrate or Scores, the model has probabilities where
	// it can have them, unless there are ClassWeights.
	Calibrate, Scores bool
	// Seed is the seed of every fit.
	Seed uint64
	// Workers is the number of goroutines of each fit, 0 for one per processor.
	Workers int
	// Parallel is the number of trials at a time, 0 for one. Fits before the first trial and
	// after the last have the goroutines of all of them.
	Parallel int
}

// goroutines is the number for a fit beside which there are no trials.
func (o Options) goroutines() int { return o.Workers * max(1, o.Parallel) }

// OptionError reports an option that does not suit the data or the learner. Option is the name
// of its flag.
type OptionError struct {
	Option string
	Err    error
}

func (e *OptionError) Error() string { return fmt.Sprintf("autotune: %s: %v", e.Option, e.Err) }

func (e *OptionError) Unwrap() error { return e.Err }

// Tuning is a learner with the data to tune it on. It is safe for concurrent use.
type Tuning struct {
	algorithm training.Algorithm
	data      *training.Data
	problem   training.Problem
	options   Options
	name      string // of the measure
	scoring   learners.Scoring

	known   data.Source // training and validation rows
	weights []float64   // of known in a fit, nil if all rows count alike
	single  part        // training and validation rows apart
	folds   []part      // nil for one split
	alone   bool        // Rows are left out one at a time, in closed form.

	space  *space.Space
	starts []starting
	moved  bool     // The ranges exclude theory's settings, and the first start is near them.
	most   int64    // of the centres where all trials have these, 0 otherwise
	whole  bool     // trials have most centres, of which the first fit has a few
	limits []string // ranges beyond which the learner has nothing to search, by hyper-parameter
	// estimator has the starting settings.
	estimator learners.Estimator
	steps     int    // of an iterative learner, 0 if not known
	counted   string // the hyper-parameter that is their number
	print     string

	mu   sync.Mutex
	kept map[kind]kept
}

// New returns the tuning of an algorithm on data that have validation rows. Its errors are those
// of [training.Algorithm.Estimator] for Fixed, a *[RangeError] for Ranges, and an *[OptionError]
// for Calibrate and for weights.
func New(ctx context.Context, a training.Algorithm, d *training.Data, o Options) (*Tuning, error) {
	if d.Validation == nil || d.Validation.Len() == 0 {
		return nil, errors.New("autotune: there are no validation rows to compare configurations on")
	}
	if err := a.Check(o.Fixed); err != nil {
		return nil, err
	}
	t := &Tuning{algorithm: a, data: d, options: o, kept: map[kind]kept{}}
	var err error
	if t.known, err = d.Known(); err != nil {
		return nil, err
	}
	rows := *d
	if t.alone = o.Folds > 1 && o.Folds == t.known.Len() && closed(a, o.Fixed); t.alone {
		rows.Train, rows.Weights = t.known, d.KnownWeights()
	}
	if t.problem, err = training.NewProblem(ctx, &rows, o.Seed); err != nil {
		return nil, err
	}
	t.scoring = a.Scoring(o.Fixed, t.problem)
	if t.name, _, err = training.MeasureNamed(o.Measure, d.Encoding, t.scoring); err != nil {
		return nil, err
	}
	switch {
	case o.Calibrate && d.Encoding.Task != data.Classification:
		return nil, &OptionError{"calibrate", errors.New("the target is a number, and only classes have probabilities; leave it out")}
	case o.Calibrate && t.scoring.Link != learners.Expected:
		return nil, &OptionError{"calibrate", fmt.Errorf("%s has probabilities already; leave it out", a.Name)}
	}
	if err := t.weigh(ctx); err != nil {
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
	// A fault that would fail every trial is refused at once.
	if t.problem.Outputs == 0 {
		return nil, &learners.DataError{Data: "training data", Reason: "there is no target; name a column as target"}
	}
	if t.estimator, err = a.Estimator(Values(t.starts[0].config), t.problem); err != nil {
		return nil, err
	}
	switch {
	case t.alone:
	case o.Folds > 1:
		err = t.divide(ctx, o.Folds)
	default:
		err = t.positive("training rows", t.single.weights, "give one a weight above 0")
	}
	if err != nil {
		return nil, err
	}
	if (o.Calibrate || !o.Scores && o.ClassWeights == "") && d.Encoding.Task == data.Classification && t.scoring.Link == learners.Expected {
		err := t.calibratable(ctx)
		if err != nil && o.Calibrate {
			return nil, err
		}
		t.options.Calibrate = err == nil
	}
	t.print, err = t.fingerprint(ctx)
	return t, err
}

// weigh sets the parts of the data with the weights of their rows.
func (t *Tuning) weigh(ctx context.Context) (err error) {
	d, classes := t.data, t.options.ClassWeights
	if t.weights, err = training.ClassWeights(ctx, classes, d.Encoding, t.known, d.KnownWeights()); err != nil {
		return &OptionError{"class-weight", err}
	}
	t.single = part{train: d.Train, validation: d.Validation, judged: d.ValidationWeights}
	if t.single.weights, err = training.ClassWeights(ctx, classes, d.Encoding, d.Train, d.Weights); err != nil {
		return err
	}
	if slices.Contains([]string{"avgsgd", "doublyonline"}, t.algorithm.Name) {
		if _, err := learners.CopyRows(t.algorithm.Name, t.known, learners.Options{Weights: t.weights}); err != nil {
			return &OptionError{t.weighting(), err}
		}
	}
	return nil
}

// weighting is the option that gives rows their weights.
func (t *Tuning) weighting() string {
	if t.data.KnownWeights() == nil {
		return "class-weight"
	}
	return "weights"
}

// positive returns an *OptionError unless one of the rows has a weight above 0.
func (t *Tuning) positive(rows string, weights []float64, remedy string) error {
	if weights == nil || slices.ContainsFunc(weights, func(s float64) bool { return s > 0 }) {
		return nil
	}
	return &OptionError{t.weighting(), fmt.Errorf("all %s have the weight 0, so no trial could have an error; %s", rows, remedy)}
}

// calibratable returns an *OptionError if a class has no row to calibrate with. Without the
// check the last step of a tuning would fail.
func (t *Tuning) calibratable(ctx context.Context) error {
	rows, _ := t.judges()
	y, err := learners.Targets(ctx, rows)
	if err != nil {
		return err
	}
	classes := t.data.Encoding.Classes
	found := make([]bool, len(classes))
	for _, k := range data.Classes(y, rows.Outputs()) {
		found[k] = true
	}
	if k := slices.Index(found, false); k >= 0 {
		return &OptionError{"calibrate", fmt.Errorf("there is no validation row of the class %q, and probabilities need one of each class; hold out more validation rows, or leave it out", classes[k])}
	}
	return nil
}

// measure returns an error on rows with these weights, or NaN for a class error of numbers.
func (t *Tuning) measure(name string, weights []float64) learners.Measure {
	s := t.scoring
	s.Weights = weights
	_, m, err := training.MeasureNamed(name, t.data.Encoding, s)
	if err != nil { // New has checked the name of the objective
		return func([]float64, []float64, int) float64 { return math.NaN() }
	}
	return m
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
	return t.problem.LearnedFor(v["kernel"]).Idle(t.data.Encoding.InputNames())
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

// rules is the number of the rules by which length scales are learned and centres are drawn.
// Count it up if the same values give another model from then on.
const rules = 2

// fingerprint identifies data, split, measure and seed by the shapes, the targets of the
// validation rows, the median distance of the training rows, and the rules.
func (t *Tuning) fingerprint(ctx context.Context) (string, error) {
	y, err := learners.Targets(ctx, t.data.Validation)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "%d %s %s %d %d %d %d %d", rules, t.algorithm.Name, t.name, t.options.Seed,
		t.problem.Rows, t.problem.Dim, t.problem.Outputs, t.data.Validation.Len())
	switch {
	case t.alone:
		fmt.Fprint(h, " leave-one-out")
	case len(t.folds) > 0:
		fmt.Fprintf(h, " %d folds", len(t.folds))
	}
	var b [8]byte
	for _, v := range slices.Concat(y, []float64{t.problem.MedianDistance}, t.weights) {
		binary.LittleEndian.PutUint64(b[:], math.Float64bits(v))
		h.Write(b[:])
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}
