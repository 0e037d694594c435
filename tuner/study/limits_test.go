package study

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// TestSpecLimits creates studies at the limits of a spec and beyond them.
func TestSpecLimits(t *testing.T) {
	name := func(n int) string { return strings.Repeat("x", n) }
	options := func(n int) string { return `{"a":"` + name(n-8) + `"}` }
	for what, change := range map[string]func(s *Spec, over int){
		"max trials":        func(s *Spec, over int) { s.MaxTrials = MaxTrials + over },
		"max retries":       func(s *Spec, over int) { s.MaxRetries = MaxRetriesLimit + over },
		"patience":          func(s *Spec, over int) { s.Patience = MaxTrials + over },
		"negative patience": func(s *Spec, over int) { s.Patience = -over },
		"patience of two": func(s *Spec, over int) {
			s.Patience = 1
			s.Objectives = append(s.Objectives, []Objective{{"size", Minimize}}[:over]...)
		},
		"target of two": func(s *Spec, over int) {
			s.Target = new(float64)
			s.Objectives = append(s.Objectives, []Objective{{"size", Minimize}}[:over]...)
		},
		"target": func(s *Spec, over int) {
			x := []float64{0, math.Inf(1)}[over]
			s.Target = &x
		},
		"lease":             func(s *Spec, over int) { s.Lease = MaxLease + time.Duration(over) },
		"short lease":       func(s *Spec, over int) { s.Lease = MinLease - time.Duration(over) },
		"name of objective": func(s *Spec, over int) { s.Objectives[0].Name = name(MaxNameBytes + over) },
		"proposer's name":   func(s *Spec, over int) { s.Proposer.Name = name(MaxNameBytes + over) },
		"proposer's options": func(s *Spec, over int) {
			s.Proposer = Component{Name: "p", Options: options(MaxOptionsBytes + over)}
		},
		"pruner's options": func(s *Spec, over int) { s.Pruner = Component{Name: "p", Options: options(MaxOptionsBytes + over)} },
		"attributes":       func(s *Spec, over int) { s.Attributes = Attributes{"key": name(MaxAttributesBytes - 3 + over)} },
		"attribute's name": func(s *Spec, over int) { s.Attributes = Attributes{name(MaxNameBytes + over): "x"} },
	} {
		for over, want := range []bool{true, false} {
			spec := Spec{Space: parseSpace(t), Objectives: []Objective{{"loss", Minimize}}}
			change(&spec, over)
			var s Study
			_, _, err := s.Decide(epoch0, Create{Spec: spec})
			if bad := (*InvalidError)(nil); (err == nil) != want || err != nil && (!errors.As(err, &bad) || bad.Field == "" || bad.Rule == "") {
				t.Errorf("%s, %d past its limit: %v", what, over, err)
			}
		}
	}
}

// TestReportBytes reports a batch at the limit and one beyond it.
func TestReportBytes(t *testing.T) {
	h := newHarness(t, nil)
	h.ask(Ask{Count: 1})
	// A report with 64 values with names of 128 bytes has 8,704 bytes. The limit is 481
	// of them and a smaller one.
	batch := func(bytes int) []Report {
		var reports []Report
		for step := int64(0); bytes > 0; step++ {
			r := Report{Step: step}
			for i := 0; i < MaxMetrics && bytes > 0; i++ {
				size := min(MaxNameBytes+8, bytes)
				if left := bytes - size; left > 0 && left < 12 {
					size -= 12
				}
				r.Values = append(r.Values, NamedValue{Name: fmt.Sprintf("%0*d", size-8, i), Value: 1})
				bytes -= size
			}
			reports = append(reports, r)
		}
		return reports
	}
	if _, _, err := h.s.Decide(h.now, ReportValues{Trial: 0, Reports: batch(MaxReportBytes)}); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	h.refuse(ReportValues{Trial: 0, Reports: batch(MaxReportBytes + 1)}, "4 MiB")
}

// TestOutcomeBytes tells an outcome at the limit and one beyond it.
func TestOutcomeBytes(t *testing.T) {
	h := newHarness(t, nil)
	h.ask(Ask{Count: 1})
	outcome := func(bytes int) Outcome {
		o := Outcome{State: Completed, Metrics: []Metric{{Name: "loss", Values: []float64{1}}}}
		bytes -= len("loss") + 8
		for i := 0; bytes > 0; i++ {
			m := Metric{Name: fmt.Sprintf("m%02d", i)}
			n := min(MaxReplicates, (bytes-len(m.Name))/8)
			if rest := bytes - len(m.Name) - 8*n; rest < 8 {
				m.Name += strings.Repeat("x", rest)
			}
			m.Values = make([]float64, n)
			o.Metrics, bytes = append(o.Metrics, m), bytes-len(m.Name)-8*n
		}
		return o
	}
	for _, c := range []Command{Tell{Trial: 0, Outcome: outcome(MaxOutcomeBytes)}, Add{Config: config(0), Outcome: outcome(MaxOutcomeBytes)}} {
		if _, _, err := h.s.Decide(h.now, c); err != nil {
			t.Errorf("%T at the limit: %v", c, err)
		}
	}
	h.refuse(Tell{Trial: 0, Outcome: outcome(MaxOutcomeBytes + 1)}, "900 KiB")
	h.refuse(Add{Config: config(0), Outcome: outcome(MaxOutcomeBytes + 1)}, "900 KiB")
}
