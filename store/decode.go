package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/bkbtuner/bkb/store/internal/recordpb"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"google.golang.org/protobuf/proto"
)

var (
	errUnknown   = errors.New("a field is not in the schema")
	errRedundant = errors.New("fields are repeated or not in their shortest form")
	errSparse    = errors.New("it has too many empty parts")
)

// payloadDecoder turns a message into its event. It keeps the first error in err.
type payloadDecoder struct {
	names   interner
	entries []space.Assignment // reused
	err     error
}

func (dec *payloadDecoder) event(m *recordpb.Event) (study.Event, error) {
	dec.err = nil
	dec.known(m)
	e := study.Event{
		Time:    dec.time(m.Time),
		Request: study.Request{ID: dec.text(m.RequestId), Fingerprint: m.RequestFingerprint, Answer: dec.int(m.RequestAnswer)},
		Caller:  dec.name(m.Caller),
		Body:    dec.body(m),
	}
	if dec.err != nil {
		return study.Event{}, dec.err
	}
	return e, nil
}

func (dec *payloadDecoder) fail(err error) {
	if dec.err == nil {
		dec.err = err
	}
}

// text returns a copy of s, which must be UTF-8.
func (dec *payloadDecoder) text(s string) string {
	if !utf8.ValidString(s) {
		dec.fail(errors.New("a text is not UTF-8"))
		return ""
	}
	return strings.Clone(s)
}

// name is [payloadDecoder.text] for what is likely to occur again.
func (dec *payloadDecoder) name(s string) string {
	if known, ok := dec.names[s]; ok {
		return known
	}
	return dec.names.intern(dec.text(s))
}

// known refuses a message with unknown fields.
func (dec *payloadDecoder) known(m proto.Message) {
	if len(m.ProtoReflect().GetUnknown()) != 0 {
		dec.fail(errUnknown)
	}
}

func (dec *payloadDecoder) body(m *recordpb.Event) study.Body {
	switch b := m.Body.(type) {
	case *recordpb.Event_Created:
		dec.known(b.Created)
		return study.Created{Spec: dec.spec(b.Created.Spec)}
	case *recordpb.Event_Paused:
		dec.known(b.Paused)
		return study.Paused{}
	case *recordpb.Event_Resumed:
		dec.known(b.Resumed)
		return study.Resumed{}
	case *recordpb.Event_Finished:
		dec.known(b.Finished)
		return study.Finished{Reason: enumFrom[study.FinishReason](dec, b.Finished.Reason, true), Detail: dec.text(b.Finished.Detail)}
	case *recordpb.Event_Raised:
		dec.known(b.Raised)
		return study.Raised{MaxTrials: dec.int(b.Raised.MaxTrials), Timeout: time.Duration(b.Raised.Timeout), MaxCost: canonical(b.Raised.MaxCost)}
	case *recordpb.Event_Enqueued:
		dec.known(b.Enqueued)
		return study.Enqueued{Trial: dec.int(b.Enqueued.Trial), Config: dec.config(b.Enqueued.Config), Attributes: dec.attributes(b.Enqueued.Attributes)}
	case *recordpb.Event_Started:
		return dec.started(b.Started)
	case *recordpb.Event_Extended:
		dec.known(b.Extended)
		return study.Extended{Trial: dec.int(b.Extended.Trial), Epoch: dec.int(b.Extended.Epoch), Deadline: dec.time(b.Extended.Deadline)}
	case *recordpb.Event_Reported:
		dec.known(b.Reported)
		return study.Reported{Trial: dec.int(b.Reported.Trial), Epoch: dec.int(b.Reported.Epoch), Reports: dec.reports(b.Reported.Reports)}
	case *recordpb.Event_Expired:
		dec.known(b.Expired)
		return study.Expired{Trial: dec.int(b.Expired.Trial), Epoch: dec.int(b.Expired.Epoch), Requeued: b.Expired.Requeued}
	case *recordpb.Event_Told:
		dec.known(b.Told)
		return study.Told{Trial: dec.int(b.Told.Trial), Epoch: dec.int(b.Told.Epoch), Outcome: dec.outcome(b.Told.Outcome)}
	case *recordpb.Event_ToldLate:
		dec.known(b.ToldLate)
		return study.ToldLate{Trial: dec.int(b.ToldLate.Trial), Epoch: dec.int(b.ToldLate.Epoch), Outcome: dec.outcome(b.ToldLate.Outcome)}
	case *recordpb.Event_Added:
		return dec.added(b.Added)
	case *recordpb.Event_Attributed:
		dec.known(b.Attributed)
		return study.Attributed{Trial: dec.int(b.Attributed.Trial), Attributes: dec.attributes(b.Attributed.Attributes)}
	case *recordpb.Event_Anchored:
		dec.known(b.Anchored)
		return study.Anchored{Seen: study.Position(b.Anchored.Seen), Effective: study.Position(b.Anchored.Effective), Model: copied(b.Anchored.Model)}
	default:
		dec.fail(errors.New("the event has no body"))
		return nil
	}
}

func (dec *payloadDecoder) started(m *recordpb.Started) study.Started {
	dec.known(m)
	return study.Started{
		Trial: dec.int(m.Trial), Epoch: dec.int(m.Epoch), Worker: dec.name(m.Worker),
		Deadline: dec.time(m.Deadline), Suggestion: dec.suggestion(m.Suggestion),
	}
}

func (dec *payloadDecoder) added(m *recordpb.Added) study.Added {
	dec.known(m)
	return study.Added{
		Trial: dec.int(m.Trial), Config: dec.config(m.Config), Reports: dec.reports(m.Reports),
		Outcome: dec.outcome(m.Outcome), Attributes: dec.attributes(m.Attributes),
	}
}

func (dec *payloadDecoder) spec(text string) study.Spec {
	s, err := readSpec(dec.text(text))
	if err != nil {
		dec.fail(fmt.Errorf("the study's specification: %w", err))
	}
	return s
}

// maxSpecBytes is more than the JSON of any study takes, with its space of up to 1 MiB.
const maxSpecBytes = 2 << 20

// readSpec reads the JSON of a spec, which must have a space and nothing unknown.
func readSpec(text string) (study.Spec, error) {
	var s study.Spec
	if len(text) > maxSpecBytes {
		return s, fmt.Errorf("it has %d bytes of JSON, and %d are the most", len(text), maxSpecBytes)
	}
	in := json.NewDecoder(strings.NewReader(text))
	in.DisallowUnknownFields()
	if err := in.Decode(&s); err != nil {
		return s, err
	}
	if in.InputOffset() != int64(len(text)) {
		return s, errRedundant
	}
	if s.Space == nil {
		return s, errors.New("there is no space")
	}
	return s, nil
}

func (dec *payloadDecoder) suggestion(m *recordpb.Suggestion) *study.Suggestion {
	if m == nil {
		return nil
	}
	dec.known(m)
	return &study.Suggestion{
		Config: dec.config(m.Config), Seed: m.Seed, Seen: study.Position(m.Seen), Phase: dec.name(m.Phase),
		Mean: canonicals(copied(m.Mean)), StdDev: canonicals(copied(m.StdDev)),
		Bound: canonicals(copied(m.Bound)), Beta: canonicals(copied(m.Beta)),
	}
}

// config reads a configuration, which must use up its columns.
func (dec *payloadDecoder) config(m *recordpb.Config) space.Config {
	if m == nil {
		return space.Config{}
	}
	dec.known(m)
	if len(m.Kinds) != len(m.Names) || !ascending(m.Names) {
		dec.fail(errors.New("the columns of a configuration do not match"))
		return space.Config{}
	}
	columns := configColumns{floats: m.Floats, ints: m.Ints, strings: m.Strings}
	entries := dec.entries[:0]
	for i, name := range m.Names {
		v, ok := columns.next(m.Kinds[i], dec)
		if !ok {
			dec.fail(fmt.Errorf("a configuration has no value for %q", name))
			return space.Config{}
		}
		entries = append(entries, space.Assignment{Name: dec.name(name), Value: v})
	}
	if !columns.empty() {
		dec.fail(errors.New("a configuration has more values than names"))
	}
	dec.entries = entries
	return space.NewConfig(entries...)
}

// configColumns are the unread values of a configuration.
type configColumns struct {
	floats  []float64
	ints    []int64
	strings []string
}

func (c *configColumns) next(kind byte, dec *payloadDecoder) (v space.Value, ok bool) {
	switch {
	case kind == kindFloat && len(c.floats) > 0:
		v, c.floats = space.Float(canonical(c.floats[0])), c.floats[1:]
	case kind == kindInt && len(c.ints) > 0:
		v, c.ints = space.Int(c.ints[0]), c.ints[1:]
	case kind == kindString && len(c.strings) > 0:
		v, c.strings = space.String(dec.name(c.strings[0])), c.strings[1:]
	case kind == kindFalse || kind == kindTrue:
		v = space.Bool(kind == kindTrue)
	default:
		return space.Value{}, false
	}
	return v, true
}

func (c *configColumns) empty() bool { return len(c.floats)+len(c.ints)+len(c.strings) == 0 }

func (dec *payloadDecoder) reports(ms []*recordpb.Report) []study.Report {
	if len(ms) == 0 {
		return nil
	}
	out := make([]study.Report, len(ms))
	for i, m := range ms {
		dec.known(m)
		out[i] = study.Report{Epoch: dec.int(m.Epoch), Step: m.Step, Values: dec.values(m.Names, m.Values)}
	}
	return out
}

func (dec *payloadDecoder) values(names []string, values []float64) []study.NamedValue {
	if len(names) != len(values) {
		dec.fail(errors.New("the columns of a report do not match"))
		return nil
	}
	if len(names) == 0 {
		return nil
	}
	out := make([]study.NamedValue, len(names))
	for i, name := range names {
		out[i] = study.NamedValue{Name: dec.name(name), Value: canonical(values[i])}
	}
	return out
}

func (dec *payloadDecoder) outcome(m *recordpb.Outcome) study.Outcome {
	if m == nil {
		dec.fail(errors.New("an outcome is missing"))
		return study.Outcome{}
	}
	dec.known(m)
	return study.Outcome{
		State:      enumFrom[study.TrialState](dec, m.State, true),
		Reason:     enumFrom[study.FailReason](dec, m.Reason, false),
		Message:    dec.text(m.Message),
		Metrics:    dec.metrics(m.Metrics),
		Cost:       canonical(m.Cost),
		Attributes: dec.attributes(m.Attributes),
	}
}

func (dec *payloadDecoder) metrics(ms []*recordpb.Metric) []study.Metric {
	if len(ms) == 0 {
		return nil
	}
	out := make([]study.Metric, len(ms))
	for i, m := range ms {
		dec.known(m)
		out[i] = study.Metric{
			Name: dec.name(m.Name), Values: canonicals(copied(m.Values)),
			StdErr: canonical(m.StdErr), HasStdErr: m.HasStdErr,
		}
	}
	return out
}

func (dec *payloadDecoder) attributes(m *recordpb.Attributes) study.Attributes {
	if m == nil {
		return nil
	}
	dec.known(m)
	if len(m.Keys) == 0 || len(m.Keys) != len(m.Values) || !ascending(m.Keys) {
		dec.fail(errors.New("the columns of attributes do not match"))
		return nil
	}
	out := make(study.Attributes, len(m.Keys))
	for i, k := range m.Keys {
		out[dec.name(k)] = dec.text(m.Values[i])
	}
	return out
}

// int refuses numbers beyond the range of int, which has 32 bits on some machines.
func (dec *payloadDecoder) int(n int64) int {
	if int64(int(n)) != n {
		dec.fail(fmt.Errorf("the number %d is too large for this machine", n))
	}
	return int(n)
}

func (dec *payloadDecoder) time(n int64) time.Time { return timeOf(n) }

func timeOf(n int64) time.Time {
	if n == noTime {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// enumFrom is the inverse of enumOf.
func enumFrom[To ~uint8, From enum](dec *payloadDecoder, v From, needed bool) To {
	if !defined(v) || v == 0 && needed {
		dec.fail(fmt.Errorf("%s has no value %d", v.Descriptor().Name(), v))
		return 0
	}
	return To(v)
}

// ascending tells whether names are in strictly ascending order.
func ascending(names []string) bool {
	for i := 1; i < len(names); i++ {
		if names[i-1] >= names[i] {
			return false
		}
	}
	return true
}

// copied returns nil for an empty slice.
func copied[T any](xs []T) []T {
	if len(xs) == 0 {
		return nil
	}
	return slices.Clip(slices.Clone(xs))
}
