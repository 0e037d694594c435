package web

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/wire"
)

// spaceSamples is how many configurations of a space the page shows.
const spaceSamples = 5

// remark is a fault of a space, or advice about it.
type remark struct {
	Line int    `json:"line,omitempty"` // of the text, from 1
	Text string `json:"text"`
}

// checkedSpace is what the page shows of a space while it is written.
type checkedSpace struct {
	Faults  []remark `json:"faults,omitempty"`
	Advice  []remark `json:"advice,omitempty"`
	Read    string   `json:"read,omitempty"`  // the format, if it is not our own
	Space   string   `json:"space,omitempty"` // as a study has it, without faults
	Size    *float64 `json:"size,omitempty"`  // number of configurations, none if there is no end to them
	Samples []any    `json:"samples,omitempty"`
}

// checkSpace reads a space that a visitor writes. It creates nothing, so each known caller
// may call it.
func (f *Face) checkSpace(w http.ResponseWriter, r *http.Request) {
	if refusal := checkType(r.Header); refusal != nil {
		f.refuse(w, http.StatusUnsupportedMediaType, refusal)
		return
	}
	if _, err := f.pipe.Admit(r.Context(), callerOf(r), pb.Tuner_GetCaller_FullMethodName); err != nil {
		f.fail(w, r, err)
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(f.limits.CallTimeout))
	var body struct {
		Space string `json:"space"`
	}
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 2*space.MaxFileBytes)).Decode(&body)
	if long := (*http.MaxBytesError)(nil); errors.As(err, &long) {
		f.fail(w, r, tooLong(2*space.MaxFileBytes))
		return
	}
	if err != nil {
		f.refuse(w, http.StatusBadRequest, wire.NewStatus(codes.InvalidArgument, tuner.Invalid, `the body must be {"space": "TEXT"}`))
		return
	}
	data, err := json.Marshal(checkedOf(body.Space))
	if err != nil {
		f.fail(w, r, err)
		return
	}
	f.write(w, http.StatusOK, data)
}

// checkedOf reads the text of a space.
func checkedOf(text string) (out checkedSpace) {
	sp, advice, err := space.Parse([]byte(text))
	if err != nil {
		for _, e := range space.Faults(err) {
			line := e.Line
			e.Line = 0 // the page shows it by itself
			out.Faults = append(out.Faults, remark{line, e.Error()})
		}
		if len(out.Faults) == 0 {
			out.Faults = []remark{{Text: err.Error()}}
		}
		return out
	}
	for _, a := range advice {
		line := a.Line
		a.Line = 0
		out.Advice = append(out.Advice, remark{line, a.String()})
	}
	if form, err := space.Detect([]byte(text)); err == nil && form != space.FormOwn {
		out.Read = form.String()
	}
	canonical, err := sp.MarshalJSON()
	if err != nil {
		return checkedSpace{Faults: []remark{{Text: err.Error()}}}
	}
	out.Space = string(canonical)
	if n := sp.Cardinality(); !math.IsInf(n, 0) {
		out.Size = &n
	}
	r := rand.New(rand.NewPCG(1, 1)) // the same while the visitor types
	u := make([]float64, sp.Dim())
	for range spaceSamples {
		for i := range u {
			u[i] = r.Float64()
		}
		c, err := sp.Decode(u)
		if err != nil {
			return checkedSpace{Faults: []remark{{Text: err.Error()}}}
		}
		sample := make(map[string]string)
		for name, v := range c.All() {
			if sample[name] = fullText(v); v.Kind() == space.KindFloat {
				x, _ := v.Number()
				sample[name] = shortNumber(x, 4)
			}
		}
		out.Samples = append(out.Samples, sample)
	}
	return out
}

const (
	// gridPoints is the number of values that describe a continuous axis. The page
	// interpolates between them, for numbers under the pointer and for typed ranges.
	gridPoints = 129
	// maxLabels is the number of values up to which an axis names each of them.
	maxLabels = 64
	// maxTicks is the number of marks of an axis.
	maxTicks = 7
)

// axis describes how the coordinate of a parameter reads. Scales, steps, categories and
// conditions are known here alone. The page draws numbers between 0 and 1.
type axis struct {
	Kind        string    `json:"kind"` // float, int, ordinal or categorical
	Conditional bool      `json:"conditional,omitempty"`
	Levels      uint64    `json:"levels,omitempty"` // number of values, 0 for a continuum
	Labels      []string  `json:"labels,omitempty"` // of each level, if there are few
	Grid        []float64 `json:"grid,omitempty"`   // values at equally spaced coordinates
	Ticks       []tick    `json:"ticks,omitempty"`
}

// tick is a mark of an axis.
type tick struct {
	U     float64 `json:"u"`
	Label string  `json:"label"`
}

// axes describes the coordinates of a space by their parameters.
func axes(sp *space.Space) (map[string]*axis, error) {
	all := make(map[string]*axis, sp.Dim())
	for i, a := range sp.Axes() {
		p, _ := sp.Lookup(a.Parameter)
		d := &axis{Kind: p.Type.String(), Conditional: a.Conditional, Levels: a.Levels}
		most := maxTicks
		if a.Levels > 0 && a.Levels <= 12 {
			most = 12
		}
		marks := sp.Ticks(i, most)
		labels := shortTexts(marks)
		for k, t := range marks {
			d.Ticks = append(d.Ticks, tick{t.At, labels[k]})
		}
		values, err := along(p, a.Levels)
		if err != nil {
			return nil, err
		}
		for _, v := range values {
			if a.Levels > 0 && a.Levels <= maxLabels {
				d.Labels = append(d.Labels, fullText(v))
			} else if x, ok := v.Number(); ok {
				d.Grid = append(d.Grid, x)
			}
		}
		if len(d.Grid) < len(values) { // an ordinal of many words
			d.Grid = nil
		}
		all[a.Parameter] = d
	}
	return all, nil
}

// along lists values of a parameter in order, each of them if there are few.
func along(p space.Parameter, levels uint64) ([]space.Value, error) {
	p.When = nil // in a space of its own it is active
	sp, err := space.New(p)
	if err != nil {
		return nil, err
	}
	n, few := gridPoints, levels > 0 && levels <= maxLabels
	if few {
		n = int(levels)
	}
	values := make([]space.Value, n)
	for k := range values {
		u := float64(k) / float64(gridPoints-1)
		if few {
			u = (float64(k) + 0.5) / float64(n)
		}
		c, err := sp.Decode([]float64{u})
		if err != nil {
			return nil, err
		}
		values[k], _ = c.Get(p.Name)
	}
	return values, nil
}

// shortTexts are the values of marks in few characters, but in enough to tell them apart.
func shortTexts(marks []space.Tick) []string {
	for digits := 3; ; digits++ {
		var texts []string
		seen := make(map[string]bool)
		for _, m := range marks {
			text := fullText(m.Value)
			if x, ok := m.Value.Number(); ok && digits < 17 {
				text = shortNumber(x, digits)
			}
			texts = append(texts, text)
			seen[text] = true
		}
		if len(seen) == len(marks) || digits == 17 {
			return texts
		}
	}
}

// fullText is a value with all its digits.
func fullText(v space.Value) string {
	if _, ok := v.Number(); ok {
		return exponentZero.Replace(v.String())
	}
	return v.String()
}

// shortNumber is a number in a few digits, or in all of them for small whole numbers.
func shortNumber(x float64, digits int) string {
	if x == math.Trunc(x) && math.Abs(x) < 1e5 {
		return strconv.FormatFloat(x+0, 'f', -1, 64)
	}
	return exponentZero.Replace(strconv.FormatFloat(x, 'g', digits, 64))
}

// exponentZero shortens exponents.
var exponentZero = strings.NewReplacer("e-0", "e-", "e+0", "e")
