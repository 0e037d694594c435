package study

import (
	"math"
	"testing"

	"github.com/bkbtuner/bkb/tuner/space"
)

// Commands with different contents have different fingerprints. The request id, the order
// of metrics and values, the epochs of reports, the kind of NaN, and empty lists have no
// effect.
func TestFingerprints(t *testing.T) {
	x := func(v space.Value) space.Config {
		return space.NewConfig(space.Assignment{Name: "x", Value: v})
	}
	sp, err := space.New(space.NewFloat("x", 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	a, b := Metric{Name: "a", Values: []float64{1}}, Metric{Name: "b", Values: []float64{2}}
	report := func(epoch int, values ...NamedValue) []Report {
		return []Report{{Epoch: epoch, Step: 1, Values: values}}
	}
	seen := make(map[uint64]int)
	otherNaN := math.Float64frombits(math.Float64bits(math.NaN()) ^ 2)
	for i, same := range [][]Command{
		{Pause{}, Pause{RequestID: "r"}},
		{Resume{}},
		{Finish{}},
		{Finish{Detail: "d"}},
		{Create{}},
		{Create{Spec: Spec{Space: sp}}},
		{Create{Spec: Spec{Objectives: []Objective{{"ab", Minimize}}}}},
		{Create{Spec: Spec{Objectives: []Objective{{"a", Minimize}, {"b", Minimize}}}}},
		{Create{Spec: Spec{Proposer: Component{Name: "p"}}}},
		{Create{Spec: Spec{Pruner: Component{Name: "p"}}}},
		{Ask{Count: 1}, Start{Ask: Ask{Count: 1, RequestID: "r"}, Trial: 7, Answer: 1}},
		{Ask{Count: 1, New: true}},
		{Ask{Count: 1, Lease: 1}},
		{Ask{Count: 1, Worker: "w"}},
		{Enqueue{Config: x(space.Int(1))}, Enqueue{Config: x(space.Int(1)), Attributes: Attributes{}}},
		{Enqueue{Config: x(space.Float(1))}},
		{Enqueue{Config: x(space.Int(1)), Attributes: Attributes{"a": "b"}}},
		{Add{Config: x(space.Int(1))}},
		{Tell{Trial: 1}, Tell{Trial: 1, Outcome: Outcome{Metrics: []Metric{}}}},
		{Tell{Epoch: 1}},
		{Tell{Outcome: Outcome{Metrics: []Metric{a, b}}}, Tell{Outcome: Outcome{Metrics: []Metric{b, a}}}},
		{Tell{Outcome: Outcome{Metrics: []Metric{a}}}},
		{Tell{Outcome: Outcome{Metrics: []Metric{{Name: "a", Values: []float64{1}, HasStdErr: true}}}}},
		{Tell{Outcome: Measured("a", math.NaN())}, Tell{Outcome: Measured("a", otherNaN)}},
		{Tell{Outcome: Outcome{Cost: 1}}},
		{ReportValues{Reports: report(0, NamedValue{"a", 1}, NamedValue{"b", 2})}, ReportValues{Reports: report(3, NamedValue{"b", 2}, NamedValue{"a", 1})}},
		{ReportValues{Reports: report(0, NamedValue{"a", 2}, NamedValue{"b", 1})}},
		{SetAttributes{Attributes: Attributes{"a": "b"}}},
		{SetAttributes{Trial: OfStudy, Attributes: Attributes{"a": "b"}}},
	} {
		for _, c := range same {
			print := fingerprint(c)
			if print != fingerprint(same[0]) {
				t.Errorf("%#v differs from %#v", c, same[0])
			}
			if other, twice := seen[print]; twice && other != i {
				t.Errorf("%#v has the fingerprint of number %d", c, other)
			}
			seen[print] = i
		}
	}
}
