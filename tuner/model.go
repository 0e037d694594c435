package tuner

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/surrogate"
)

// PredictQuery selects what [Service.Predict] predicts.
type PredictQuery struct {
	// Configs are configurations of the study's space.
	Configs []space.Config
	// Slices also predicts along parameters, through one configuration.
	Slices *SliceQuery
}

// SliceQuery selects slices of a model.
type SliceQuery struct {
	Parameters []string // none for all that vary
	Points     int      // of each slice, 0 for DefaultSlicePoints
	// Through is the configuration that all slices share. If it is nil, it is that of the
	// recommended trial, the first of several.
	Through *space.Config
}

// The limits of a [PredictQuery].
const (
	DefaultSlicePoints = 65
	MaxSlicePoints     = 1001
	MaxPredictions     = 20_000
)

// NoTrial is the number of no trial.
const NoTrial = -1

// Predictions is what a model predicts, without noise.
type Predictions struct {
	// State says whether there is a model, and Missing how many results it still needs.
	// Without a model there are no predictions.
	State    surrogate.State
	Missing  int
	Position study.Position // of the log that the model has read
	Results  int            // that the model has received
	Configs  []surrogate.Prediction
	Slices   []surrogate.Slice
	// Through is the configuration that the slices share, and Trial its trial, or NoTrial
	// if the query has it.
	Through space.Config
	Trial   int
}

// ImportanceMethod is a way to measure importance.
type ImportanceMethod uint8

// The methods. The zero method is both.
const (
	ImportanceBoth  ImportanceMethod = iota
	ImportanceModel                  // Sobol' indices of the model's mean
	ImportanceData                   // shift of the best trials against all
)

// ImportanceQuery selects importances.
type ImportanceQuery struct {
	Method    ImportanceMethod
	Objective string // empty for the first
}

// Importance says how much each parameter matters for an objective. Package
// tuner/propose/explain has the definitions.
type Importance struct {
	Objective  string
	Parameters []ParameterImportance // those that vary, in order of the space
	// State says whether there is a model, and Missing how many results it needs. Without
	// one, only the data have importances.
	State   surrogate.State
	Missing int
	// Position is that of the model event that the model's importances are of, and Results
	// the number of results that the model had received when they were computed.
	Position study.Position
	Results  int
	// Completed is the number of trials that the data's importances are of.
	Completed int
}

// ParameterImportance is the importance of one parameter. Numbers that are not known are NaN.
type ParameterImportance struct {
	Parameter string
	// First is the share of the variance of the model's mean that the parameter explains
	// alone, and Total the share with its interactions. The errors are standard errors.
	First, Total, FirstError, TotalError float64
	// Data is the parameter's part of the shift of the best tenth of the trials.
	Data float64
}

// Ranked returns the parameters, the one that matters most first.
func (i Importance) Ranked() []ParameterImportance {
	list := slices.Clone(i.Parameters)
	slices.SortStableFunc(list, func(a, b ParameterImportance) int { return cmp.Compare(b.Rank(), a.Rank()) })
	return list
}

// Rank is the importance by the model, or by the data without one.
func (p ParameterImportance) Rank() float64 {
	if math.IsNaN(p.Total) {
		return p.Data
	}
	return p.Total
}

// Row is the parameter with its shares alone, in total and by the data, as text.
func (p ParameterImportance) Row() [4]string {
	share := func(x, se float64) string {
		switch {
		case math.IsNaN(x):
			return ""
		case math.IsNaN(se):
			return fmt.Sprintf("%.1f %%", 100*x)
		default:
			return fmt.Sprintf("%.1f ± %.1f %%", 100*x, 100*se)
		}
	}
	return [4]string{p.Parameter, share(p.First, p.FirstError), share(p.Total, p.TotalError), share(p.Data, math.NaN())}
}
