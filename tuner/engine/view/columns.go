package view

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// put writes the number of row i.
func put(c *tuner.Column, i int, v float64) {
	switch c.Type {
	case tuner.Uint8:
		c.Data[i] = uint8(min(v, math.MaxUint8))
	case tuner.Uint16:
		binary.LittleEndian.PutUint16(c.Data[2*i:], uint16(v))
	case tuner.Uint32:
		binary.LittleEndian.PutUint32(c.Data[4*i:], uint32(v))
	default:
		binary.LittleEndian.PutUint64(c.Data[8*i:], math.Float64bits(v))
	}
}

// row is a trial while its numbers are written.
type row struct {
	trial  *study.Trial
	u      []float64 // coordinates
	active []bool
}

// reader is a column with the function that reads its number from a trial.
type reader struct {
	tuner.Column
	read  func(r *row) float64
	whole func(r *row) int64          // of a column of integers, instead of read
	text  func(t *study.Trial) string // of a column of codes, instead of read

	codes map[string]int // of the Labels of such a column
}

// maxCodes is the largest number of names in a column of codes. Names are data of users.
const maxCodes = 1000

// code returns the code of a name.
func (r *reader) code(name string) float64 {
	if r.codes == nil {
		r.codes, r.Labels = map[string]int{"": 0}, []string{""}
	}
	if _, ok := r.codes[name]; !ok && len(r.Labels) > maxCodes {
		name = "others"
	}
	k, ok := r.codes[name]
	if !ok {
		k = len(r.Labels)
		r.codes[name], r.Labels = k, append(r.Labels, name)
	}
	return float64(k)
}

// labels are the names of states and the like, of which 0 has none.
func labels[T interface {
	~uint8
	String() string
}](last T,
) []string {
	out := []string{""}
	for v := T(1); v <= last; v++ {
		out = append(out, v.String())
	}
	return out
}

// phases are the phases of suggestions.
var phases = []string{"", study.PhaseStart, study.PhaseModel, study.PhaseExploit, study.PhaseExplore, study.PhaseFallback, study.PhaseRepeat, study.PhaseEvolve}

// seconds is a time as seconds since 1970, NaN for none.
func seconds(t time.Time) float64 {
	if t.IsZero() {
		return math.NaN()
	}
	return float64(t.UnixMilli()) / 1e3
}

// meanOf is the mean of a metric, NaN for none.
func meanOf(o study.Outcome, name string) float64 {
	m, ok := o.Metric(name)
	if !ok {
		return math.NaN()
	}
	return m.Mean()
}

// lastReported is the value of a metric that was reported last, NaN for none.
func lastReported(t *study.Trial, name string) float64 {
	for _, r := range slices.Backward(t.CurrentReports()) {
		for _, v := range r.Values {
			if v.Name == name {
				return v.Value
			}
		}
	}
	return math.NaN()
}

// readers returns all columns of a study, without data.
func readers(spec study.Spec) []reader {
	var out []reader
	add := func(name string, t tuner.ColumnType, labels []string, read func(r *row) float64) {
		out = append(out, reader{Column: tuner.Column{Name: name, Type: t, Labels: labels}, read: read})
	}
	add("state", tuner.Uint8, labels(study.Pruned), func(r *row) float64 { return float64(r.trial.State) })
	add("origin", tuner.Uint8, labels(study.OriginAdded), func(r *row) float64 { return float64(r.trial.Origin) })
	add("phase", tuner.Uint8, phases, func(r *row) float64 { return float64(max(slices.Index(phases, r.trial.Suggestion.Phase), 0)) })
	add("epoch", tuner.Uint8, nil, func(r *row) float64 { return float64(r.trial.Epoch) })
	keeps := propose.Keeps(spec.Proposer)
	add("feasible", tuner.Uint8, nil, func(r *row) float64 {
		if r.trial.State == study.Completed && keeps(r.trial.Outcome) {
			return 1
		}
		return 0
	})
	add("created", tuner.Float64, nil, func(r *row) float64 { return seconds(r.trial.Created) })
	add("started", tuner.Float64, nil, func(r *row) float64 { return seconds(r.trial.Started) })
	add("ended", tuner.Float64, nil, func(r *row) float64 { return seconds(r.trial.Ended) })
	add("seen", tuner.Float64, nil, func(r *row) float64 { return seconds(r.trial.Seen) })
	add("cost", tuner.Float64, nil, func(r *row) float64 {
		if r.trial.Outcome.Cost == 0 {
			return math.NaN()
		}
		return r.trial.Outcome.Cost
	})
	add("worker", tuner.Uint16, nil, nil)
	out[len(out)-1].text = func(t *study.Trial) string { return t.Worker }
	for j, o := range spec.Objectives {
		add("value/"+o.Name, tuner.Float64, nil, func(r *row) float64 { return meanOf(r.trial.Outcome, o.Name) })
		add("report/"+o.Name, tuner.Float64, nil, func(r *row) float64 { return lastReported(r.trial, o.Name) })
		of := func(list []float64) float64 {
			if j >= len(list) {
				return math.NaN()
			}
			return list[j]
		}
		add("mean/"+o.Name, tuner.Float64, nil, func(r *row) float64 { return of(r.trial.Suggestion.Mean) })
		add("sd/"+o.Name, tuner.Float64, nil, func(r *row) float64 { return of(r.trial.Suggestion.StdDev) })
		add("bound/"+o.Name, tuner.Float64, nil, func(r *row) float64 { return of(r.trial.Suggestion.Bound) })
	}
	for _, name := range propose.ConstrainedMetrics(spec.Proposer) {
		add("metric/"+name, tuner.Float64, nil, func(r *row) float64 { return meanOf(r.trial.Outcome, name) })
	}
	for i, a := range spec.Space.Axes() {
		add("parameter/"+a.Parameter, tuner.Uint16, nil, func(r *row) float64 {
			if !r.active[i] {
				return tuner.InactiveCoordinate
			}
			return math.Round(min(max(r.u[i], 0), 1) * tuner.LargestCoordinate)
		})
		out[len(out)-1].Ticks = spec.Space.Ticks(i, columnTicks)
	}
	for _, a := range spec.Space.Axes() {
		p, _ := spec.Space.Lookup(a.Parameter)
		out = append(out, valuesOf(p))
	}
	return out
}

// valuesOf returns the column of the values of a parameter.
func valuesOf(p space.Parameter) reader {
	r := reader{Column: tuner.Column{Name: "config/" + p.Name, Type: tuner.Uint16, Labels: []string{""}}}
	switch p.Type {
	case space.TypeFloat:
		r.Type, r.Labels = tuner.Float64, nil
		r.read = func(t *row) float64 {
			v, ok := t.trial.Config.Get(p.Name)
			if x, _ := v.AsFloat(); ok {
				return x
			}
			return math.NaN()
		}
	case space.TypeInt:
		r.Type, r.Labels = tuner.Int64, nil
		r.whole = func(t *row) int64 {
			v, _ := t.trial.Config.Get(p.Name)
			n, _ := v.AsInt()
			return n
		}
	default:
		codes := make(map[space.Value]float64, len(p.Values))
		for _, v := range p.Values {
			r.Labels, codes[v] = append(r.Labels, v.String()), float64(len(r.Labels))
		}
		r.read = func(t *row) float64 {
			v, _ := t.trial.Config.Get(p.Name)
			return codes[v] // 0 for an inactive one
		}
	}
	return r
}

// columnTicks is the largest number of ticks of a parameter.
const columnTicks = 12

// Choose returns the columns that a query names.
func Choose(all []reader, names []string) ([]reader, error) {
	if len(names) == 0 {
		return all, nil
	}
	var out []reader
	for _, name := range names {
		n := len(out)
		for _, c := range all {
			if c.Name == name || strings.HasSuffix(name, "/") && strings.HasPrefix(c.Name, name) {
				out = append(out, c)
			}
		}
		if len(out) == n && !strings.HasSuffix(name, "/") {
			var known []string
			for _, c := range all {
				known = append(known, c.Name)
			}
			return nil, &study.InvalidError{Field: "names", Value: fmt.Sprintf("%.60q", name), Rule: "there is no such column", Remedy: "use some of " + strings.Join(known, ", ")}
		}
	}
	return out, nil
}

// Columns are the columns of a study that were asked for before, as of one snapshot. They
// go when the study is dropped from memory.
type Columns struct {
	once sync.Once
	all  []reader // without data

	mu    sync.Mutex
	view  *study.View
	known map[string]*reader
}

// Readers returns all columns of the study, without data.
func (c *Columns) Readers(spec study.Spec) []reader {
	c.once.Do(func() { c.all = readers(spec) })
	return c.all
}

// maxColumnBytes is the size of the columns of a study from which on they are not kept.
const maxColumnBytes = 64 << 20

// At returns the chosen columns at a snapshot. pick, if not nil, returns the rows to
// leave in, if some are left out. at reads only the trials that have changed since the last call. If another
// call has read a newer snapshot, at returns that one and its position.
func (c *Columns) At(v *study.View, chosen []reader, pick func(*study.View) (rows []int, some bool)) (tuner.Columns, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.view != nil && c.view.Position() > v.Position() {
		v = c.view
	}
	if c.known == nil {
		c.known = make(map[string]*reader)
	}
	var fresh, old []*reader
	list := make([]*reader, len(chosen))
	bytes := 0
	for _, r := range c.known {
		old, bytes = append(old, r), bytes+r.Type.Size()*v.Trials()
	}
	for i, r := range chosen {
		if c.known[r.Name] == nil {
			c.known[r.Name] = &r
			fresh, bytes = append(fresh, &r), bytes+r.Type.Size()*v.Trials()
		}
		list[i] = c.known[r.Name]
	}
	err := errors.Join(update(v, c.view, old), update(v, nil, fresh))
	if c.view = v; err != nil || bytes > maxColumnBytes {
		c.view, c.known = nil, nil
	}
	if err != nil {
		return tuner.Columns{}, err
	}
	out := tuner.Columns{Position: v.Position(), Trials: v.Trials(), Rows: v.Trials()}
	var rows []int
	var some bool
	if pick != nil {
		rows, some = pick(v)
	}
	if some {
		numbers := tuner.Column{Name: tuner.ColumnNumber, Type: tuner.Uint32, Data: make([]byte, 4*len(rows))}
		for i, n := range rows {
			put(&numbers, i, float64(n))
		}
		out.Columns, out.Rows = append(out.Columns, numbers), len(rows)
	}
	for _, r := range list {
		own := r.Column
		if some {
			own.Data = rowsOf(&own, rows)
		} else {
			own.Data = slices.Clone(own.Data)
		}
		out.Columns = append(out.Columns, own)
	}
	return out, nil
}

// rowsOf returns the data of some rows.
func rowsOf(c *tuner.Column, rows []int) []byte {
	size := c.Type.Size()
	data := make([]byte, 0, size*len(rows))
	for _, n := range rows {
		data = append(data, c.Data[size*n:size*(n+1)]...)
	}
	return data
}

// update writes the trials of v that differ from those of the snapshot before into columns.
func update(v, before *study.View, columns []*reader) error {
	if len(columns) == 0 {
		return nil
	}
	sp := v.Spec().Space
	for _, c := range columns {
		c.Data = append(c.Data, make([]byte, c.Type.Size()*v.Trials()-len(c.Data))...)
	}
	r := row{u: make([]float64, sp.Dim()), active: make([]bool, sp.Dim())}
	for n := range v.Changed(before) {
		t, _ := v.Trial(n)
		r.trial = &t
		if err := sp.Encode(t.Config, r.u); err != nil {
			return fmt.Errorf("the configuration of trial %d: %w", n, err)
		}
		for i, a := range sp.Axes() {
			_, r.active[i] = t.Config.Get(a.Parameter)
		}
		for _, c := range columns {
			switch {
			case c.text != nil:
				put(&c.Column, n, c.code(c.text(&t)))
			case c.whole != nil:
				binary.LittleEndian.PutUint64(c.Data[8*n:], uint64(c.whole(&r)))
			default:
				put(&c.Column, n, c.read(&r))
			}
		}
	}
	return nil
}
