package study

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// Outcome is how a trial ended.
type Outcome struct {
	State   TrialState // Completed, Failed, Infeasible or Pruned
	Reason  FailReason // of a Failed trial
	Message string     // what failed, or why the trial is infeasible, for people
	Metrics []Metric   // sorted by name, with all objectives if Completed
	// Cost is the cost of the trial in the unit of Spec.MaxCost, 0 if not told.
	Cost float64
	// Attributes are set on the trial with the outcome.
	Attributes Attributes
}

// FailReason tells why a trial failed.
type FailReason uint8

// The reasons. FailedNone is for outcomes that are not failures.
const (
	FailedNone      FailReason = iota
	FailedCrash                // reported by the worker
	FailedExpired              // the lease expired with no retry left, and no outcome was told
	FailedCancelled            // cancelled by a user
	FailedNaN                  // an objective was NaN
)

// String returns the reason in lower case.
func (r FailReason) String() string {
	return named("FailReason", uint8(r), []string{FailedNone: "none", FailedCrash: "crash", FailedExpired: "expired", FailedCancelled: "cancelled", FailedNaN: "nan"})
}

// Metric is a measured quantity of a finished trial. It has one value, several
// replicates, or one value with its standard error.
type Metric struct {
	Name      string
	Values    []float64 // at least one
	StdErr    float64   // of the one value if HasStdErr, finite and ≥ 0
	HasStdErr bool
}

// Mean is the arithmetic mean of the values. It is NaN if one of them is, and does not
// overflow for finite values.
func (m Metric) Mean() float64 {
	n := float64(len(m.Values))
	var sum float64
	for _, v := range m.Values {
		sum += v
	}
	if !math.IsInf(sum, 0) {
		return sum / n
	}
	sum = 0 // if the sum overflowed or a value is infinite, divide first
	for _, v := range m.Values {
		sum += v / n
	}
	return sum
}

// StandardError is the standard error of the mean, as told or from replicates (s/√r, r
// ≥ 2). ok is false if there is neither.
func (m Metric) StandardError() (se float64, ok bool) {
	if m.HasStdErr {
		return m.StdErr, true
	}
	r := float64(len(m.Values))
	if r < 2 {
		return 0, false
	}
	mean := m.Mean()
	var norm float64 // ‖values − mean‖₂ without overflow
	for _, v := range m.Values {
		norm = math.Hypot(norm, v-mean)
	}
	se = norm / math.Sqrt(r*(r-1))
	return se, !math.IsNaN(se) && !math.IsInf(se, 0)
}

// Measured returns the outcome of a trial that completed with one metric. values is its
// value or several replicates of it.
func Measured(name string, values ...float64) Outcome {
	return Outcome{State: Completed, Metrics: []Metric{{Name: name, Values: values}}}
}

// Metric returns the named metric. ok is false if o has none.
func (o Outcome) Metric(name string) (m Metric, ok bool) {
	for _, m := range o.Metrics {
		if m.Name == name {
			return m, true
		}
	}
	return Metric{}, false
}

// Equal tells whether o and p are equal. NaN equals NaN.
func (o Outcome) Equal(p Outcome) bool {
	return o.State == p.State && o.Reason == p.Reason && o.Message == p.Message &&
		sameFloat(o.Cost, p.Cost) && maps.Equal(o.Attributes, p.Attributes) &&
		slices.EqualFunc(o.Metrics, p.Metrics, Metric.Equal)
}

// Equal tells whether m and q are equal. NaN equals NaN.
func (m Metric) Equal(q Metric) bool {
	return m.Name == q.Name && m.HasStdErr == q.HasStdErr && sameFloat(m.StdErr, q.StdErr) &&
		slices.EqualFunc(m.Values, q.Values, sameFloat)
}

func sameFloat(a, b float64) bool { return a == b || a != a && b != b }

// String describes the outcome in a few words, such as "completed value=0.3" or
// "failed(crash): out of memory".
func (o Outcome) String() string {
	s := o.State.String()
	if o.State == Failed {
		s += "(" + o.Reason.String() + ")"
	}
	for _, m := range o.Metrics {
		s += fmt.Sprintf(" %s=%g", m.Name, m.Mean())
		if se, ok := m.StandardError(); ok {
			s += fmt.Sprintf("±%.2g", se)
		}
	}
	if o.Cost != 0 {
		s += fmt.Sprintf(" cost=%g", o.Cost)
	}
	for _, k := range slices.Sorted(maps.Keys(o.Attributes)) {
		s += fmt.Sprintf(" [%s=%.40s]", k, o.Attributes[k])
	}
	if o.Message != "" {
		s += ": " + o.Message
	}
	return s
}
