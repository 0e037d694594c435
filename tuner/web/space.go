package web

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"net/http"
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
