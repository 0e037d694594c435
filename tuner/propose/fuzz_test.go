package propose

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/surrogate"
)

// hostileSpaces are the spaces of [FuzzSuggest].
var hostileSpaces = []string{
	labtest.Spaces["continuous"], labtest.Spaces["mixed"], labtest.Spaces["conditional"], labtest.Spaces["finite"], labtest.Spaces["tiny"], labtest.Spaces["constant"],
	`{"x": {"type": "float", "low": 1e-300, "high": 1e300, "scale": "log"}, "y": {"type": "float", "low": -1.7e308, "high": 1.7e308}}`,
	`{"n": {"type": "int", "low": -9007199254740993, "high": 9007199254740993}, "s": {"type": "float", "low": 0, "high": 1, "step": 2}}`,
	`{"x": {"type": "float", "low": 5e-324, "high": 1.7976931348623157e308, "scale": "log"}, "n": {"type": "int", "low": 1, "high": 9223372036854775807, "scale": "log"}}`,
	`{"k": {"type": "categorical", "values": ["only"]}, "x": {"type": "float", "low": 0, "high": 1, "scale": "linear"}}`,
	`{"a": {"type": "float", "low": 0, "high": 1}, "b": {"type": "float", "low": 0, "high": 1}, "c": {"type": "float", "low": 0, "high": 1}, "d": {"type": "int", "low": 0, "high": 9}, "e": {"type": "float", "low": 0, "high": 1}}`,
}

// hostileOptions are the options of its studies, with the number of objectives.
var hostileOptions = []struct {
	options    string
	objectives int
}{
	{`{"cap": 16}`, 1},
	{`{"cap": 16, "start": 2}`, 1},
	{`{"cap": 16, "cost": "told", "on_duplicate": "reuse"}`, 1},
	{`{"cap": 16, "beta": "theory", "stop_gap": 1e-3, "start": 1}`, 1},
	{`{"cap": 16, "constraints": {"loss": {"max": 1}}, "on_duplicate": "replicate"}`, 1},
	{`{"cap": 16, "constraints": {"b": {"min": 0, "max": 1}}}`, 2},
	{`{"cap": 16, "max_step": 9, "failures": "ignore"}`, 3},
	{`{"cap": 16, "far": "on", "start": 2}`, 1},
	{`{"cap": 16, "evolve_from": 9, "start": 2}`, 1},
	{`{"cap": 16, "far": "on", "start": 2, "stop_gap": 1, "reports": "ignore", "constraints": {"loss": {"max": 1e9}, "size": {"min": 0, "max": 2}}}`, 1},
	{`{"cap": 16, "far": "on", "start": 2, "reports": "ignore", "constraints": {"size": {"min": 1, "max": 1}}}`, 1},
}

// hostileNumbers are told and reported as values.
var hostileNumbers = []float64{
	0, 1, -1, 0.5, 2, 3, 1e-9, 5e-324, -5e-324, 1e-300, 1e300, -1e300, math.MaxFloat64, -math.MaxFloat64,
	math.Inf(1), math.Inf(-1), math.NaN(), 1e12, -1e12, 0.1, 0.2, 0.3,
}

// After any history, at any place in the space, the next suggestions are in the space,
// their predictions are finite, and they equal to the bit those of a proposer that was just
// started. BKB_HOSTILE multiplies the number of stories.
func FuzzSuggest(f *testing.F) {
	stories := 0 // in addition to the usual ones
	if n, err := strconv.Atoi(os.Getenv("BKB_HOSTILE")); err == nil {
		stories = n
	}
	for i := range len(hostileSpaces) + stories {
		rng := rand.New(rand.NewPCG(uint64(i), 77))
		text := []byte{byte(i), byte(i)}
		kinds := 256
		if i%2 == 1 {
			kinds = 1 + rng.IntN(256) // some events happen often and others never
		}
		for range 100 + 6*(i/len(hostileSpaces)%40) {
			text = append(text, byte(rng.IntN(kinds)))
		}
		f.Add(text)
	}
	f.Add([]byte{4, 8})                                                  // a space that cannot evolve
	f.Add(append([]byte{0, 3}, bytes.Repeat([]byte{7, 1, 0, 0}, 30)...)) // all equal
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 400 {
			text = text[:400]
		}
		s := &story{text: text}
		spec := labtest.SpecOf(labtest.Parse(t, hostileSpaces[s.upTo(len(hostileSpaces))]), 3)
		o := hostileOptions[s.upTo(len(hostileOptions))]
		for i := 1; i < o.objectives; i++ {
			spec.Objectives = append(spec.Objectives, study.Objective{Name: string(rune('a' + i)), Direction: study.Maximize})
		}
		s.c = study.Component{Name: BKB, Options: o.options}
		if _, err := New(s.c, spec); err != nil && strings.Contains(err.Error(), "evolve_from") {
			s.c.Options = `{"cap": 16, "start": 2}` // not every space can evolve, and the error says to leave it out
		}
		s.lab, s.p = newLab(t, spec), must(t, s.c, spec)
		if strings.Contains(o.options, "far") {
			s.fill(60)
		}
		for len(s.text) > 0 {
			s.happen()
		}
		s.suggest(2)
		if _, err := recommend(s.p, s.S); err != nil {
			t.Fatal(err)
		}
		d, err := s.p.(Modeler).Diagnose(context.Background(), s.S)
		if err != nil || !finite(d) {
			t.Fatalf("%+v, %v", d, err)
		}
	})
}

// finite reports whether all numbers of a diagnosis are finite.
func finite(d surrogate.Diagnosis) bool {
	return !slices.ContainsFunc([]float64{d.Gap, d.Noise, d.InformationGain, d.EffectiveDimension, d.Beta, d.TheoryBeta}, func(v float64) bool { return v-v != 0 })
}

// story is a study that is driven by bytes.
type story struct {
	*lab
	c    study.Component
	p    Proposer
	text []byte
}

// upTo reads a number below n.
func (s *story) upTo(n int) int {
	if len(s.text) == 0 {
		return 0
	}
	b := s.text[0]
	s.text = s.text[1:]
	return int(b) % n
}

func (s *story) number() float64 { return hostileNumbers[s.upTo(len(hostileNumbers))] }

// try sends a command if the study allows it.
func (s *story) try(c study.Command) {
	_, events, err := s.S.Decide(labtest.Began, c)
	if err != nil {
		return
	}
	for _, e := range events {
		if err := s.S.Apply(e); err != nil {
			s.T.Fatalf("%T: %v", c, err)
		}
		s.Log = append(s.Log, e)
	}
}

// one returns a trial in a state for which ok is true, or any trial if there is none.
func (s *story) one(ok func(study.Trial) bool) study.Trial {
	var all []study.Trial
	for t := range s.S.All(0) {
		if ok(t) {
			all = append(all, t)
		}
	}
	if len(all) == 0 {
		return study.Trial{}
	}
	return all[s.upTo(len(all))]
}

func running(t study.Trial) bool { return t.State == study.Running }

func (s *story) outcome() study.Outcome {
	spec := s.S.Spec()
	values := make([]float64, len(spec.Objectives))
	for i := range values {
		values[i] = s.number()
	}
	o := labtest.Completed(spec, values...)
	if strings.Contains(s.c.Options, "size") && s.upTo(4) > 0 {
		o.Metrics = append(o.Metrics, study.Metric{Name: "size", Values: []float64{s.number()}})
	}
	switch s.upTo(12) {
	case 0:
		o = study.Outcome{State: study.Infeasible}
	case 1:
		o = study.Outcome{State: study.Failed}
	case 2:
		o = study.Outcome{State: study.Failed, Reason: study.FailedCancelled}
	case 3:
		o.State = study.Pruned
	case 4:
		o.Metrics[0].HasStdErr, o.Metrics[0].StdErr = true, math.Abs(s.number())
	case 5:
		o.Metrics[0].Values = []float64{s.number(), s.number(), s.number()}
	case 6:
		o.Cost = math.Abs(s.number())
	}
	return o
}

// fill adds as many trials as a far model needs. Few of their values are hostile.
func (s *story) fill(n int) {
	rng := rand.New(rand.NewPCG(uint64(s.upTo(256)), 3))
	for range n {
		u := make([]float64, s.S.Spec().Space.Dim())
		for i := range u {
			u[i] = rng.Float64()
		}
		o := labtest.Completed(s.S.Spec(), u[:min(len(u), 1)]...)
		o.Metrics = append(o.Metrics, study.Metric{Name: "size", Values: []float64{3 * rng.Float64()}})
		if rng.IntN(8) == 0 {
			o.Metrics[rng.IntN(len(o.Metrics))].Values[0] = hostileNumbers[rng.IntN(len(hostileNumbers))]
		}
		s.try(study.Add{Config: s.Decode(u...), Outcome: o})
	}
}

// happen makes one event happen.
func (s *story) happen() {
	switch s.upTo(9) {
	case 0, 1:
		s.suggest(1 + s.upTo(3))
	case 2, 3:
		s.try(study.Tell{Trial: s.one(running).Number, Outcome: s.outcome()})
	case 4:
		values := []study.NamedValue{{Name: s.S.Spec().Objectives[0].Name, Value: s.number()}}
		step := []int64{0, 1, 2, 3, 5, 9, 100, math.MaxInt64}[s.upTo(8)]
		s.try(study.ReportValues{Trial: s.one(running).Number, Reports: []study.Report{{Step: step, Values: values}}})
	case 5: // The lease expires. The trial returns to the queue, or fails if it had expired before.
		t := s.one(running)
		s.try(study.Expire{Trial: t.Number, Epoch: t.Epoch})
	case 6: // a later result of this lease or of one that was taken over
		t := s.one(func(t study.Trial) bool { return t.Expiries > 0 })
		s.try(study.Tell{Trial: t.Number, Epoch: t.Epoch - s.upTo(2), Outcome: s.outcome()})
	case 7: // a trial from outside, in the corners of the space or in the middle
		u := make([]float64, s.S.Spec().Space.Dim())
		for i := range u {
			u[i] = []float64{0.5, 0, 1, 0.25}[s.upTo(4)]
		}
		c, err := s.S.Spec().Space.Decode(u)
		if err != nil {
			s.T.Fatalf("%v: %v", u, err)
		}
		s.try(study.Add{Config: c, Outcome: s.outcome()})
	case 8: // hand out the queued trials
		s.try(study.Ask{Count: 1})
	}
}

// suggest makes n suggestions, by the proposer and by a new one, and hands them out.
func (s *story) suggest(n int) {
	said := func(p Proposer) (Proposal, string) {
		proposal, err := p.Propose(context.Background(), s.S, n)
		if err != nil && !errors.Is(err, ErrExhausted) {
			s.T.Fatalf("propose: %v", err)
		}
		return proposal, fmt.Sprintf("%+v, %v", proposal, err)
	}
	s.anchor(s.p)
	proposal, warm := said(s.p)
	if _, cold := said(must(s.T, s.c, s.S.Spec())); warm != cold {
		s.T.Fatalf("suggested\n%s\nand after a restart\n%s", warm, cold)
	}
	for _, g := range proposal.Suggestions {
		if err := s.S.Spec().Space.Validate(g.Config); err != nil {
			s.T.Fatalf("a suggestion: %v", err)
		}
		for _, v := range slices.Concat(g.Mean, g.StdDev, g.Bound, g.Beta, []float64{proposal.Gap}) {
			if v-v != 0 {
				s.T.Fatalf("%+v, gap %v", g, proposal.Gap)
			}
		}
	}
	s.start(proposal)
}

// The sizes are 10,000 equal results of one configuration, 10,000 equal results all over
// the space, 10,000 pending trials, 1,000 dimensions and a category of 10,000 values.
// Unless BKB_HOSTILE is set, each is 25 times smaller.
func TestHostileSizes(t *testing.T) {
	racetest.Alone(t)
	many := 400
	if os.Getenv("BKB_HOSTILE") != "" {
		many = 10_000
	}
	draw := func(sp *space.Space, rng *rand.Rand) space.Config {
		u := make([]float64, sp.Dim())
		for i := range u {
			u[i] = rng.Float64()
		}
		c, err := sp.Decode(u)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	wide, values := strings.Builder{}, strings.Builder{}
	for i := range many / 10 {
		fmt.Fprintf(&wide, `, "x%d": {"type": "float", "low": 0, "high": 1}`, i)
	}
	for i := range many {
		fmt.Fprintf(&values, `, "v%d"`, i)
	}
	for _, c := range []struct {
		name, space string
		results     int
		pending     int
		one, equal  bool
	}{
		{name: "one configuration", space: labtest.Square, results: many, one: true, equal: true},
		{name: "equal", space: labtest.Square, results: many, equal: true},
		{name: "pending", space: labtest.Square, results: 300, pending: many},
		{name: "dimensions", space: "{" + wide.String()[2:] + "}", results: 40, pending: 3},
		{name: "categories", space: `{"k": {"type": "categorical", "values": [` + values.String()[2:] + `]}}`, results: 300, pending: 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			sp := labtest.Parse(t, c.space)
			spec, rng := labtest.SpecOf(sp, 3), rand.New(rand.NewPCG(1, 1))
			l, p := newLab(t, spec), must(t, study.Component{Name: BKB}, spec)
			same := draw(sp, rng)
			for i := range c.results {
				at, v := draw(sp, rng), rng.Float64()
				if c.one {
					at = same
				}
				if c.equal {
					v = 3
				}
				l.Do(study.Add{Config: at, Outcome: labtest.Completed(spec, v)})
				if i%(many/5) == many/5-1 {
					l.propose(p, 1)
				}
			}
			for range c.pending {
				l.Do(study.Enqueue{Config: draw(sp, rng)})
			}
			for n := 1; n <= 3; n++ {
				began := time.Now()
				l.start(l.propose(p, n))
				t.Logf("%d at once in %s", n, time.Since(began))
			}
			if _, err := p.(Modeler).Diagnose(context.Background(), l.S); err != nil {
				t.Error(err)
			}
			if best, err := recommend(p, l.S); err != nil || len(best) != 1 {
				t.Errorf("%v, %v", best, err)
			}
		})
	}
}
