package web_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// table is what a page reads.
type table struct {
	N, Rows  int
	Position uint64
	Columns  []struct {
		Name, Type string
		Offset     int
		Axis       *struct {
			Kind        string
			Conditional bool
			Levels      int
			Labels      []string
			Grid        []float64
			Ticks       []struct {
				U     float64
				Label string
			}
		}
	}
	data []byte
}

// column reads the numbers of a column.
func (m *table) column(t *testing.T, name string) (out []float64) {
	t.Helper()
	for _, c := range m.Columns {
		if c.Name != name {
			continue
		}
		if c.Offset%8 != 0 {
			t.Errorf("%s begins at %d, which is no multiple of 8", name, c.Offset)
		}
		for i := range m.Rows {
			switch c.Type {
			case "u8":
				out = append(out, float64(m.data[c.Offset+i]))
			case "u16":
				out = append(out, float64(binary.LittleEndian.Uint16(m.data[c.Offset+2*i:])))
			case "u32":
				out = append(out, float64(binary.LittleEndian.Uint32(m.data[c.Offset+4*i:])))
			case "i64":
				out = append(out, float64(int64(binary.LittleEndian.Uint64(m.data[c.Offset+8*i:]))))
			case "f64":
				out = append(out, math.Float64frombits(binary.LittleEndian.Uint64(m.data[c.Offset+8*i:])))
			default:
				t.Fatalf("%s has the type %q", name, c.Type)
			}
		}
	}
	return out
}

func readTable(t *testing.T, r *running, query string) *table {
	t.Helper()
	a := r.do(t, r.get(t, "/api/studies/s/columns"+query))
	if a.status != 200 || a.header.Get("Content-Type") != "application/octet-stream" {
		t.Fatalf("columns%s: %d %s", query, a.status, a.text)
	}
	m := new(table)
	length := int(binary.LittleEndian.Uint32([]byte(a.text)))
	if (4+length)%8 != 0 {
		t.Errorf("the columns begin at %d, which is no multiple of 8", 4+length)
	}
	if err := json.NewDecoder(bytes.NewReader([]byte(a.text)[4 : 4+length])).Decode(m); err != nil {
		t.Fatal(err)
	}
	m.data = []byte(a.text)[4+length:]
	return m
}

// TestColumns compares columns with the trials one by one, and then those that changed.
func TestColumns(t *testing.T) {
	s := engine.Open(memory.New(), engine.Options{})
	defer s.Close()
	imported(t, s, "s", 150)
	r := start(t, s, server.Options{}, loopback)
	defer r.stop()
	m := readTable(t, r, "?with=ended,nonsense,phase")
	trials, _, err := s.Trials(t.Context(), "s", tuner.Filter{})
	if err != nil || len(trials) != 150 || m.N != 150 || m.Rows != 150 {
		t.Fatal(len(trials), m.N, m.Rows, err)
	}
	sp := studySpace(t)
	state, feasible, value, lr, momentum := m.column(t, "state"), m.column(t, "feasible"), m.column(t, "value/loss"), m.column(t, "parameter/lr"), m.column(t, "parameter/momentum")
	if len(m.column(t, "ended")) != 150 || len(m.column(t, "phase")) != 150 || m.column(t, "nonsense") != nil || m.column(t, "started") != nil {
		t.Error("other columns came than those that were asked for")
	}
	u := make([]float64, sp.Dim())
	for i, trial := range trials {
		want := math.NaN()
		if trial.State == study.Completed {
			metric, _ := trial.Outcome.Metric("loss")
			want = metric.Mean()
		}
		if value[i] != want && !(math.IsNaN(value[i]) && math.IsNaN(want)) {
			t.Errorf("trial %d: the value is %g, want %g", i, value[i], want)
		}
		if (feasible[i] == 1) != (trial.State == study.Completed) {
			t.Errorf("trial %d: feasible is %g for %v", i, feasible[i], trial.State)
		}
		if (state[i] == 3) != (trial.State == study.Completed) {
			t.Errorf("trial %d: the state is %g for %v", i, state[i], trial.State)
		}
		if err := sp.Encode(trial.Config, u); err != nil {
			t.Fatal(err)
		}
		if math.Abs(lr[i]/65534-u[0]) > 1e-5 {
			t.Errorf("trial %d: lr is at %g, want %g", i, lr[i]/65534, u[0])
		}
		if _, active := trial.Config.Get("momentum"); (momentum[i] == 65535) == active {
			t.Errorf("trial %d: momentum is %g, active %v", i, momentum[i], active)
		}
	}

	asked, err := s.Ask(t.Context(), "s", study.Ask{Worker: "w"})
	if err != nil {
		t.Fatal(err)
	}
	later := readTable(t, r, "?after="+jsonNumber(m.Position))
	number := later.column(t, "number")
	if later.N != 151 || later.Rows != 1 || len(number) != 1 || int(number[0]) != asked.Trials[0].Number || later.column(t, "state")[0] != 2 {
		t.Errorf("after an ask: %d trials, rows %d, numbers %v", later.N, later.Rows, number)
	}
}

func jsonNumber(n uint64) string { text, _ := json.Marshal(n); return string(text) }

// TestAxes checks how coordinates read.
func TestAxes(t *testing.T) {
	s := engine.Open(memory.New(), engine.Options{})
	defer s.Close()
	imported(t, s, "s", 1)
	r := start(t, s, server.Options{}, loopback)
	defer r.stop()
	m := readTable(t, r, "")
	for _, c := range m.Columns {
		name, ok := strings.CutPrefix(c.Name, "parameter/")
		if !ok {
			if c.Axis != nil {
				t.Errorf("%s has an axis", c.Name)
			}
			continue
		}
		a := c.Axis
		if a == nil || len(a.Ticks) < 2 || (a.Labels == nil) == (a.Grid == nil) {
			t.Fatalf("%s: the axis is %+v", name, a)
		}
		switch name {
		case "lr":
			if len(a.Grid) != 129 || a.Grid[0] != 1e-5 || a.Grid[128] != 0.1 || math.Abs(a.Grid[64]-1e-3) > 1e-9 {
				t.Errorf("lr: the grid goes from %g over %g to %g", a.Grid[0], a.Grid[64], a.Grid[128])
			}
			for _, k := range a.Ticks {
				if k.Label == "0.001" && math.Abs(k.U-0.5) > 1e-9 {
					t.Errorf("lr: the mark 0.001 is at %g", k.U)
				}
			}
		case "optimizer":
			if strings.Join(a.Labels, " ") != "sgd adam rmsprop" || a.Levels != 3 || a.Kind != "categorical" {
				t.Errorf("optimizer: %+v", a)
			}
		case "momentum":
			if !a.Conditional || a.Grid[0] != 0.5 || a.Grid[128] != 0.99 {
				t.Errorf("momentum: %+v", a)
			}
		case "depth":
			if strings.Join(a.Labels, " ") != "2 3 4 5 6 7 8 9 10 11 12" {
				t.Errorf("depth: %v", a.Labels)
			}
		}
	}
}

// TestAxesTellApart checks that neighbouring values of an axis have different labels.
func TestAxesTellApart(t *testing.T) {
	s := engine.Open(memory.New(), engine.Options{})
	defer s.Close()
	sp, _, err := space.Parse([]byte(`
parameters:
  many: {type: int, low: 100000, high: 100009}
  near: {type: ordinal, values: [0.12341, 0.12342]}
  word: {type: categorical, values: ["1e-05", "1e-5"]}
`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreateStudy(t.Context(), "s", study.Create{Spec: study.Spec{Space: sp, Objectives: []study.Objective{{Name: "loss", Direction: study.Minimize}}}}); err != nil {
		t.Fatal(err)
	}
	r := start(t, s, server.Options{}, loopback)
	defer r.stop()
	want := map[string]string{
		"many": "100000 100001 100002 100003 100004 100005 100006 100007 100008 100009",
		"near": "0.12341 0.12342", "word": "1e-05 1e-5",
	}
	for _, c := range readTable(t, r, "").Columns {
		name, ok := strings.CutPrefix(c.Name, "parameter/")
		if !ok {
			continue
		}
		var ticks []string
		for _, k := range c.Axis.Ticks {
			ticks = append(ticks, k.Label)
		}
		if labels := strings.Join(c.Axis.Labels, " "); labels != want[name] || strings.Join(ticks, " ") != want[name] {
			t.Errorf("%s: the labels are %q and the ticks %q, want %q", name, labels, ticks, want[name])
		}
	}
}

// studySpace has parameters of all kinds.
func studySpace(t testing.TB) *space.Space {
	t.Helper()
	s, _, err := space.Parse([]byte(`
parameters:
  lr:        {type: float, low: 1e-5, high: 0.1, scale: log}
  wd:        {type: float, low: 1e-6, high: 0.01, scale: log}
  dropout:   {type: float, low: 0, high: 0.6}
  batch:     {type: int, low: 16, high: 512, scale: log}
  depth:     {type: int, low: 2, high: 12}
  width:     {type: int, low: 32, high: 512, step: 32}
  optimizer: {type: categorical, values: [sgd, adam, rmsprop]}
  momentum:  {type: float, low: 0.5, high: 0.99, when: {optimizer: sgd}}
`))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// loss is the objective of the studies of these tests, least near lr = 2.5e-3.
func loss(c space.Config, r *rand.Rand) float64 {
	lr := math.Log10(c.Number("lr")) + 2.6
	v := 0.03 + 0.12*lr*lr + 0.06*math.Pow(c.Number("dropout")-0.2, 2) + 0.01*math.Abs(math.Log2(c.Number("batch"))-6)
	if o, _ := c.Get("optimizer"); o.String() == "sgd" {
		v += 0.04 * (1.1 - c.Number("momentum"))
	}
	return v * math.Exp(0.08*r.NormFloat64())
}

// imported adds finished trials to a study that it makes.
func imported(t testing.TB, s tuner.Service, name string, n int) {
	t.Helper()
	sp := studySpace(t)
	spec := study.Spec{Space: sp, Objectives: []study.Objective{{Name: "loss", Direction: study.Minimize}}, Seed: 1}
	if _, err := s.CreateStudy(t.Context(), name, study.Create{Spec: spec}); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, uint64(n)))
	u := make([]float64, sp.Dim())
	var batch []study.Command
	for i := range n {
		for k := range u {
			u[k] = r.Float64()
		}
		if r.Float64() < 0.7*min(1, float64(i)/(0.2*float64(n))) {
			u[0] = min(1, max(0, 0.6+0.12*r.NormFloat64()))
		}
		c, err := sp.Decode(u)
		if err != nil {
			t.Fatal(err)
		}
		o := study.Outcome{State: study.Completed, Metrics: []study.Metric{{Name: "loss", Values: []float64{loss(c, r)}}}}
		if r.Float64() < 0.02 {
			o = study.Outcome{State: study.Failed}
		}
		batch = append(batch, study.Add{RequestID: fmt.Sprint(name, i), Config: c, Outcome: o})
		if len(batch) == 1000 || i == n-1 {
			if _, err := s.AddAll(t.Context(), name, batch); err != nil {
				t.Fatal(err)
			}
			batch = batch[:0]
		}
	}
}
