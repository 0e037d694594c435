// Package surrogate has the answers of a study's surrogate model, the model of its
// outcomes that suggestions rest on. Package tuner/propose makes them. They need no
// mathematics, so that clients and faces do not link it.
package surrogate

import (
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// State says whether a study has a model.
type State uint8

// The states. The zero State is that of a proposer that never has a model.
const (
	None      State = iota + 1 // the space has no parameter to model
	Waiting                    // more results are needed
	AtNextAsk                  // there are enough results, and the next ask makes the model
	Ready
)

// Diagnosis describes the state of a model. Without a model only State and Missing are set.
type Diagnosis struct {
	State   State `json:"-"`
	Missing int   `json:"-"` // results that a model still needs
	// Position is that of the event that made the model, from EventResults results.
	Position     study.Position `json:"-"`
	EventResults int            `json:"-"`

	Results            int      `json:"results"`             // that the model knows, late ones included
	InducingPoints     int      `json:"inducing_points"`     // m
	Capped             bool     `json:"capped"`              // the option cap prevents more inducing points
	EffectiveDimension float64  `json:"effective_dimension"` // d_eff, when inducing points were last chosen
	InformationGain    float64  `json:"information_gain"`    // log det V
	Noise              float64  `json:"noise"`               // standard deviation, in the objective's units
	Beta               float64  `json:"beta"`                // width of the confidence bounds used
	TheoryBeta         float64  `json:"theory_beta"`         // and by theory
	Gap                float64  `json:"gap"`                 // how much better than the best a configuration can be, 0 if not known
	Warnings           []string `json:"warnings,omitempty"`  // settings of the study that have no effect, and why
	// Covered of the last Predicted outcomes of the first objective are within the 95 %
	// interval that was predicted for them. Calibration is the factor of standard
	// deviations of outcomes that tracks 95 %.
	Covered     int     `json:"covered"`
	Predicted   int     `json:"predicted"`
	Calibration float64 `json:"calibration"`
	Outliers    int     `json:"outliers"` // results that the model leaves out
	// Failures is the number of results that failed. AvoidsFailures reports whether
	// suggestions avoid places like theirs.
	Failures       int  `json:"failures"`
	AvoidsFailures bool `json:"avoids_failures"`
	// Metrics are the models of the metrics with a limit.
	Metrics []LimitedMetric `json:"metrics,omitempty"`
	// Idle is the number of results since the last improvement. Stuck reports that the largest
	// bound gains next to nothing on the best, so that suggestions look for other basins.
	Idle  int  `json:"idle"`
	Stuck bool `json:"stuck"`
	// Draw describes how the present inducing points were drawn.
	Draw Draw `json:"-"`
	// LengthScales are those of the ordered parameters that are not constant, as parts of
	// their ranges.
	LengthScales map[string]float64 `json:"length_scales"`
	// PriorMean is the mean that the objective has far from all results, in its unit.
	PriorMean float64 `json:"prior_mean"`
}

// LimitedMetric describes the model of a metric with a limit.
type LimitedMetric struct {
	Metric  string  `json:"metric"`
	Results int     `json:"results"` // results that have the metric
	Broken  int     `json:"broken"`  // and those that break the limit
	Noise   float64 `json:"noise"`   // standard deviation in the metric's unit, 0 without a model
}

// Draw describes how the inducing points of a surface were drawn. It is part of model
// events, in JSON.
type Draw struct {
	Sampler string  `json:"sampler"`
	Lambda  float64 `json:"lambda,omitempty"` // per sample, at the end of the draw
	Coarse  float64 `json:"coarse,omitempty"` // ratio of that to the λ of the noise
	Rows    int     `json:"rows"`             // of the history, outcomes and reports
	Read    int     `json:"read"`             // rows that the sampler read
	Path    []Step  `json:"path,omitempty"`   // of BLESS, from coarse to fine
}

// Step is one λ of BLESS.
type Step struct {
	Lambda    float64 `json:"lambda"`
	Points    int     `json:"points"`
	Dimension float64 `json:"dimension"`
}

// Prediction is the prediction of every objective for one configuration. StdDev is the
// standard deviation of the mean, and Noise that of the rest of an outcome. For the first
// objective their squares add up to a calibrated variance, or Noise is 0 if that is less
// than the variance of the mean.
type Prediction struct {
	Mean, StdDev, Noise []float64
	Metrics             []MetricPrediction // of the modelled metrics with a limit
	// Feasible is the probability that an outcome succeeds and keeps all limits. It is 1 if
	// neither failures nor limits are modelled.
	Feasible float64
}

// MetricPrediction is the prediction of a metric with a limit, in its unit.
type MetricPrediction struct {
	Metric string  `json:"metric"`
	Mean   float64 `json:"mean"`
	StdDev float64 `json:"stddev"`
	Noise  float64 `json:"noise"`
}

// Slice is what a model predicts along one parameter, while all others stay as in one
// configuration. Parameters that only become active on the way have the middle of their range.
type Slice struct {
	Parameter   string
	At          []float64 // coordinates in [0, 1], ascending
	Values      []space.Value
	Predictions []Prediction
}
