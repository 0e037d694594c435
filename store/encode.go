package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/bkbtuner/bkb/store/internal/recordpb"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// The kinds of the values in a stored configuration.
const (
	kindFloat  = 1
	kindInt    = 2
	kindString = 3
	kindFalse  = 4
	kindTrue   = 5
)

// noTime represents the zero time.
const noTime = math.MinInt64

// payloadEncoder turns an event into its message. It keeps the first error in err.
type payloadEncoder struct{ err error }

func encodeEvent(e study.Event) (*recordpb.Event, error) {
	var enc payloadEncoder
	m := &recordpb.Event{
		Time:               enc.time(e.Time),
		RequestId:          e.Request.ID,
		RequestFingerprint: e.Request.Fingerprint,
		RequestAnswer:      int64(e.Request.Answer),
		Caller:             e.Caller,
	}
	enc.body(m, e.Body)
	return m, enc.err
}

func (enc *payloadEncoder) fail(format string, args ...any) {
	if enc.err == nil {
		enc.err = fmt.Errorf(format, args...)
	}
}

func (enc *payloadEncoder) body(m *recordpb.Event, body study.Body) {
	switch b := body.(type) {
	case study.Created:
		m.Body = &recordpb.Event_Created{Created: &recordpb.Created{Spec: enc.spec(b.Spec)}}
	case study.Paused:
		m.Body = &recordpb.Event_Paused{Paused: &recordpb.Paused{}}
	case study.Resumed:
		m.Body = &recordpb.Event_Resumed{Resumed: &recordpb.Resumed{}}
	case study.Finished:
		m.Body = &recordpb.Event_Finished{Finished: &recordpb.Finished{
			Reason: enumOf[recordpb.FinishReason](enc, b.Reason, true), Detail: b.Detail,
		}}
	case study.Raised:
		m.Body = &recordpb.Event_Raised{Raised: &recordpb.Raised{MaxTrials: int64(b.MaxTrials), Timeout: int64(b.Timeout), MaxCost: canonical(b.MaxCost)}}
	case study.Enqueued:
		m.Body = &recordpb.Event_Enqueued{Enqueued: &recordpb.Enqueued{
			Trial: int64(b.Trial), Config: enc.config(b.Config), Attributes: attributesPB(b.Attributes),
		}}
	case study.Started:
		m.Body = &recordpb.Event_Started{Started: &recordpb.Started{
			Trial: int64(b.Trial), Epoch: int64(b.Epoch), Worker: b.Worker,
			Deadline: enc.time(b.Deadline), Suggestion: enc.suggestion(b.Suggestion),
		}}
	case study.Extended:
		m.Body = &recordpb.Event_Extended{Extended: &recordpb.Extended{
			Trial: int64(b.Trial), Epoch: int64(b.Epoch), Deadline: enc.time(b.Deadline),
		}}
	case study.Reported:
		m.Body = &recordpb.Event_Reported{Reported: &recordpb.Reported{
			Trial: int64(b.Trial), Epoch: int64(b.Epoch), Reports: reportsPB(b.Reports),
		}}
	case study.Expired:
		m.Body = &recordpb.Event_Expired{Expired: &recordpb.Expired{
			Trial: int64(b.Trial), Epoch: int64(b.Epoch), Requeued: b.Requeued,
		}}
	case study.Told:
		m.Body = &recordpb.Event_Told{Told: enc.told(b.Trial, b.Epoch, b.Outcome)}
	case study.ToldLate:
		m.Body = &recordpb.Event_ToldLate{ToldLate: enc.told(b.Trial, b.Epoch, b.Outcome)}
	case study.Added:
		m.Body = &recordpb.Event_Added{Added: &recordpb.Added{
			Trial: int64(b.Trial), Config: enc.config(b.Config), Reports: reportsPB(b.Reports),
			Outcome: enc.outcome(b.Outcome), Attributes: attributesPB(b.Attributes),
		}}
	case study.Attributed:
		m.Body = &recordpb.Event_Attributed{Attributed: &recordpb.Attributed{
			Trial: int64(b.Trial), Attributes: attributesPB(b.Attributes),
		}}
	case study.Anchored:
		m.Body = &recordpb.Event_Anchored{Anchored: &recordpb.Anchored{
			Seen: uint64(b.Seen), Effective: uint64(b.Effective), Model: b.Model,
		}}
	default:
		enc.fail("an event with body %T has no stored form", body)
	}
}

// spec returns the JSON of a spec. One that cannot be read again must not be written.
func (enc *payloadEncoder) spec(s study.Spec) string {
	text, err := specJSON(s)
	var again study.Spec
	if err == nil {
		again, err = readSpec(text)
	}
	if err != nil {
		enc.fail("the study's specification: %w", err)
		return ""
	}
	if same, err := specJSON(again); err != nil || same != text || !again.Space.Equal(s.Space) {
		enc.fail("the study's specification changes when it is written and read again")
	}
	return text
}

func specJSON(s study.Spec) (string, error) {
	var text strings.Builder
	out := json.NewEncoder(&text)
	out.SetEscapeHTML(false)
	err := out.Encode(s)
	return strings.TrimSuffix(text.String(), "\n"), err
}

func (enc *payloadEncoder) suggestion(s *study.Suggestion) *recordpb.Suggestion {
	if s == nil {
		return nil
	}
	return &recordpb.Suggestion{
		Config: enc.config(s.Config), Seed: s.Seed, Seen: uint64(s.Seen), Phase: s.Phase,
		Mean: canonicals(s.Mean), StdDev: canonicals(s.StdDev),
		Bound: canonicals(s.Bound), Beta: canonicals(s.Beta),
	}
}

func (enc *payloadEncoder) config(c space.Config) *recordpb.Config {
	if c.Len() == 0 {
		return nil
	}
	m := &recordpb.Config{Names: make([]string, 0, c.Len()), Kinds: make([]byte, 0, c.Len())}
	for name, v := range c.All() {
		m.Names = append(m.Names, name)
		m.Kinds = append(m.Kinds, enc.value(m, name, v))
	}
	return m
}

// value appends v to the column of its kind and returns the kind.
func (enc *payloadEncoder) value(m *recordpb.Config, name string, v space.Value) byte {
	if x, ok := v.AsFloat(); ok {
		m.Floats = append(m.Floats, canonical(x))
		return kindFloat
	}
	if n, ok := v.AsInt(); ok {
		m.Ints = append(m.Ints, n)
		return kindInt
	}
	if s, ok := v.AsString(); ok {
		m.Strings = append(m.Strings, s)
		return kindString
	}
	switch b, ok := v.AsBool(); {
	case ok && b:
		return kindTrue
	case ok:
		return kindFalse
	}
	enc.fail("parameter %q has no value", name)
	return 0
}

func reportsPB(reports []study.Report) []*recordpb.Report {
	out := make([]*recordpb.Report, len(reports))
	for i, r := range reports {
		m := &recordpb.Report{
			Epoch: int64(r.Epoch), Step: r.Step,
			Names: make([]string, len(r.Values)), Values: make([]float64, len(r.Values)),
		}
		for j, v := range r.Values {
			m.Names[j], m.Values[j] = v.Name, canonical(v.Value)
		}
		out[i] = m
	}
	return out
}

func (enc *payloadEncoder) told(trial, epoch int, o study.Outcome) *recordpb.Told {
	return &recordpb.Told{Trial: int64(trial), Epoch: int64(epoch), Outcome: enc.outcome(o)}
}

func (enc *payloadEncoder) outcome(o study.Outcome) *recordpb.Outcome {
	m := &recordpb.Outcome{
		State:      enumOf[recordpb.TrialState](enc, o.State, true),
		Reason:     enumOf[recordpb.FailReason](enc, o.Reason, false),
		Message:    o.Message,
		Metrics:    make([]*recordpb.Metric, len(o.Metrics)),
		Cost:       canonical(o.Cost),
		Attributes: attributesPB(o.Attributes),
	}
	for i, q := range o.Metrics {
		m.Metrics[i] = &recordpb.Metric{
			Name: q.Name, Values: canonicals(q.Values),
			StdErr: canonical(q.StdErr), HasStdErr: q.HasStdErr,
		}
	}
	return m
}

func attributesPB(a study.Attributes) *recordpb.Attributes {
	if len(a) == 0 {
		return nil
	}
	m := &recordpb.Attributes{Keys: slices.Sorted(maps.Keys(a)), Values: make([]string, len(a))}
	for i, k := range m.Keys {
		m.Values[i] = a[k]
	}
	return m
}

// enumOf converts an enumeration value of package study, which has the numbers of the
// schema. needed says that the zero value is invalid.
func enumOf[To enum, From ~uint8](enc *payloadEncoder, v From, needed bool) To {
	if to := To(v); defined(to) && (v != 0 || !needed) {
		return to
	}
	enc.fail("%T has no value %d", v, v)
	return 0
}

type enum interface {
	~int32
	protoreflect.Enum
}

func defined(e protoreflect.Enum) bool {
	return e.Descriptor().Values().ByNumber(e.Number()) != nil
}

var errTime = errors.New("a time is before 1678 or after 2262")

func (enc *payloadEncoder) time(t time.Time) int64 {
	if t.IsZero() {
		return noTime
	}
	n := t.UnixNano()
	if n == noTime || !time.Unix(0, n).Equal(t) {
		enc.fail("%w", errTime)
	}
	return n
}

// canonical replaces any NaN by the canonical one.
func canonical(x float64) float64 {
	if math.IsNaN(x) {
		return math.NaN()
	}
	return x
}

// canonicals returns a canonical copy of xs, or xs itself if it is canonical.
func canonicals(xs []float64) []float64 {
	for i, x := range xs {
		if math.IsNaN(x) {
			xs = slices.Clone(xs)
			for j := range xs[i:] {
				xs[i+j] = canonical(xs[i+j])
			}
			return xs
		}
	}
	return xs
}
