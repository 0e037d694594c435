package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/bkbtuner/bkb/internal/protostruct"
	"github.com/bkbtuner/bkb/store/internal/recordpb"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

var (
	errUnknown   = errors.New("a field is not in the schema")
	errRedundant = errors.New("fields are repeated or not in their shortest form")
	errSparse    = errors.New("it has too many empty parts")
	errTime      = errors.New("a time is before 1678 or after 2262")
	errUTF8      = errors.New("a text is not UTF-8")
)

// bodies are the kinds of events, each with the place of its message in recordpb.Event.
var bodies = []struct{ body, message any }{
	{study.Created{}, recordpb.Event_Created{}},
	{study.Paused{}, recordpb.Event_Paused{}},
	{study.Resumed{}, recordpb.Event_Resumed{}},
	{study.Finished{}, recordpb.Event_Finished{}},
	{study.Raised{}, recordpb.Event_Raised{}},
	{study.Enqueued{}, recordpb.Event_Enqueued{}},
	{study.Started{}, recordpb.Event_Started{}},
	{study.Extended{}, recordpb.Event_Extended{}},
	{study.Reported{}, recordpb.Event_Reported{}},
	{study.Expired{}, recordpb.Event_Expired{}},
	{study.Told{}, recordpb.Event_Told{}},
	{study.ToldLate{}, recordpb.Event_ToldLate{}},
	{study.Added{}, recordpb.Event_Added{}},
	{study.Attributed{}, recordpb.Event_Attributed{}},
	{study.Anchored{}, recordpb.Event_Anchored{}},
}

// messageOf and bodyOf have the same by the types.
var messageOf, bodyOf = func() (to, from map[reflect.Type]reflect.Type) {
	to, from = make(map[reflect.Type]reflect.Type), make(map[reflect.Type]reflect.Type)
	for _, b := range bodies {
		to[reflect.TypeOf(b.body)] = reflect.TypeOf(b.message)
		from[reflect.TypeOf(b.message)] = reflect.TypeOf(b.body)
	}
	return to, from
}()

// table copies between the bodies of events and their messages. Its state is a [Decoder].
// Messages may share memory with the payload, so everything is copied.
var table = func() *protostruct.Table {
	t := &protostruct.Table{Check: known, Needed: []reflect.Type{reflect.TypeFor[study.Outcome]()}}
	protostruct.Convert(t, encodeTime, func(_ any, n int64) (time.Time, error) { return timeOf(n), nil })
	protostruct.Convert(t, func(s string) (string, error) { return s, nil }, decodeText)
	protostruct.Convert(t, func(b []byte) ([]byte, error) { return b, nil }, func(_ any, b []byte) ([]byte, error) { return copied(b), nil })
	protostruct.Convert(t, func(x float64) (float64, error) { return canonical(x), nil }, func(_ any, x float64) (float64, error) { return canonical(x), nil })
	protostruct.Convert(t, func(xs []float64) ([]float64, error) { return canonicals(xs), nil }, func(_ any, xs []float64) ([]float64, error) { return canonicals(copied(xs)), nil })
	protostruct.Convert(t, enumTo[recordpb.TrialState, study.TrialState](1), enumFrom[study.TrialState, recordpb.TrialState](1))
	protostruct.Convert(t, enumTo[recordpb.FinishReason, study.FinishReason](1), enumFrom[study.FinishReason, recordpb.FinishReason](1))
	protostruct.Convert(t, enumTo[recordpb.FailReason, study.FailReason](0), enumFrom[study.FailReason, recordpb.FailReason](0))
	protostruct.Convert(t, encodeSpec, decodeSpec)
	protostruct.Convert(t, encodeConfig, decodeConfig)
	protostruct.Convert(t, encodeReport, decodeReport)
	protostruct.Convert(t, encodeAttributes, decodeAttributes)
	return t
}()

func encodeEvent(e study.Event) (*recordpb.Event, error) {
	at, err := encodeTime(e.Time)
	if err != nil {
		return nil, err
	}
	m := &recordpb.Event{
		Time: at, RequestId: e.Request.ID, RequestFingerprint: e.Request.Fingerprint, RequestAnswer: int64(e.Request.Answer), Caller: e.Caller,
	}
	of, ok := messageOf[reflect.TypeOf(e.Body)]
	if !ok {
		return nil, fmt.Errorf("an event with body %T has no stored form", e.Body)
	}
	place, body := reflect.New(of), reflect.New(reflect.TypeOf(e.Body))
	body.Elem().Set(reflect.ValueOf(e.Body))
	message := reflect.New(of.Field(0).Type.Elem())
	place.Elem().Field(0).Set(message)
	reflect.ValueOf(m).Elem().FieldByName("Body").Set(place)
	return m, table.Encode(message.Interface(), body.Interface())
}

func (d *Decoder) event(m *recordpb.Event) (e study.Event, err error) {
	if err := known(m); err != nil {
		return e, err
	}
	if m.Body == nil {
		return e, errors.New("the event has no body")
	}
	if !utf8.ValidString(m.RequestId) {
		return e, errUTF8
	}
	caller, err := decodeText(d, m.Caller)
	if err != nil {
		return e, err
	}
	place := reflect.ValueOf(m.Body).Elem()
	body, ok := d.bodies[place.Type()]
	if !ok {
		body = reflect.New(bodyOf[place.Type()])
		d.bodies[place.Type()] = body
	}
	defer body.Elem().SetZero()
	if err := table.Decode(d, body.Interface(), place.Field(0).Interface()); err != nil {
		return e, err
	}
	return study.Event{
		Time: timeOf(m.Time), Caller: caller, Body: body.Elem().Interface().(study.Body),
		Request: study.Request{ID: strings.Clone(m.RequestId), Fingerprint: m.RequestFingerprint, Answer: int(m.RequestAnswer)},
	}, nil
}

func known(m proto.Message) error {
	if len(m.ProtoReflect().GetUnknown()) != 0 {
		return errUnknown
	}
	return nil
}

// noTime represents the zero time.
const noTime = math.MinInt64

func encodeTime(t time.Time) (int64, error) {
	if t.IsZero() {
		return noTime, nil
	}
	n := t.UnixNano()
	if n == noTime || !time.Unix(0, n).Equal(t) {
		return 0, errTime
	}
	return n, nil
}

func timeOf(n int64) time.Time {
	if n == noTime {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// decodeText returns a copy of s, which equal texts share.
func decodeText(decoder any, s string) (string, error) {
	known := decoder.(*Decoder).names
	if one, ok := known[s]; ok {
		return one, nil
	}
	if !utf8.ValidString(s) {
		return "", errUTF8
	}
	return known.intern(strings.Clone(s)), nil
}

// enumTo converts an enumeration value of package study, which has the numbers of the
// schema. least is the first valid one.
func enumTo[To enum, From ~uint8](least From) func(From) (To, error) {
	return func(v From) (To, error) {
		if to := To(v); v >= least && to.Descriptor().Values().ByNumber(to.Number()) != nil {
			return to, nil
		}
		return 0, fmt.Errorf("%T has no value %d", v, v)
	}
}

func enumFrom[To ~uint8, From enum](least From) func(any, From) (To, error) {
	return func(_ any, v From) (To, error) {
		if v < least || v.Descriptor().Values().ByNumber(v.Number()) == nil {
			return 0, fmt.Errorf("%s has no value %d", v.Descriptor().Name(), v)
		}
		return To(v), nil
	}
}

type enum interface {
	~int32
	protoreflect.Enum
}

// encodeSpec returns the JSON of a spec. One that cannot be read again must not be written.
func encodeSpec(s study.Spec) (string, error) {
	text, err := specJSON(s)
	var again study.Spec
	if err == nil {
		again, err = readSpec(text)
	}
	if err != nil {
		return "", fmt.Errorf("the study's specification: %w", err)
	}
	if same, err := specJSON(again); err != nil || same != text || !again.Space.Equal(s.Space) {
		return "", errors.New("the study's specification changes when it is written and read again")
	}
	return text, nil
}

func specJSON(s study.Spec) (string, error) {
	var text strings.Builder
	out := json.NewEncoder(&text)
	out.SetEscapeHTML(false)
	err := out.Encode(s)
	return strings.TrimSuffix(text.String(), "\n"), err
}

func decodeSpec(_ any, text string) (study.Spec, error) {
	if !utf8.ValidString(text) {
		return study.Spec{}, errUTF8
	}
	s, err := readSpec(strings.Clone(text))
	if err != nil {
		return study.Spec{}, fmt.Errorf("the study's specification: %w", err)
	}
	return s, nil
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

// The kinds of the values in a stored configuration.
const (
	kindFloat  = 1
	kindInt    = 2
	kindString = 3
	kindFalse  = 4
	kindTrue   = 5
)

// encodeConfig puts each value into the column of its kind.
func encodeConfig(c space.Config) (*recordpb.Config, error) {
	if c.Len() == 0 {
		return nil, nil
	}
	m := &recordpb.Config{Names: make([]string, 0, c.Len()), Kinds: make([]byte, 0, c.Len())}
	for name, v := range c.All() {
		kind := byte(kindFalse)
		switch v.Kind() {
		case space.KindFloat:
			x, _ := v.AsFloat()
			kind, m.Floats = kindFloat, append(m.Floats, canonical(x))
		case space.KindInt:
			n, _ := v.AsInt()
			kind, m.Ints = kindInt, append(m.Ints, n)
		case space.KindString:
			s, _ := v.AsString()
			kind, m.Strings = kindString, append(m.Strings, s)
		case space.KindBool:
			if v == space.Bool(true) {
				kind = kindTrue
			}
		default:
			return nil, fmt.Errorf("parameter %q has no value", name)
		}
		m.Names, m.Kinds = append(m.Names, name), append(m.Kinds, kind)
	}
	return m, nil
}

// decodeConfig reads a configuration, which must use up its columns.
func decodeConfig(decoder any, m *recordpb.Config) (space.Config, error) {
	if m == nil {
		return space.Config{}, nil
	}
	if err := known(m); err != nil {
		return space.Config{}, err
	}
	if len(m.Kinds) != len(m.Names) || !ascending(m.Names) {
		return space.Config{}, errors.New("the columns of a configuration do not match")
	}
	floats, ints, texts := m.Floats, m.Ints, m.Strings
	d := decoder.(*Decoder)
	d.entries = d.entries[:0]
	for i, name := range m.Names {
		var v space.Value
		switch kind := m.Kinds[i]; {
		case kind == kindFloat && len(floats) > 0:
			v, floats = space.Float(canonical(floats[0])), floats[1:]
		case kind == kindInt && len(ints) > 0:
			v, ints = space.Int(ints[0]), ints[1:]
		case kind == kindString && len(texts) > 0:
			text, err := decodeText(decoder, texts[0])
			if err != nil {
				return space.Config{}, err
			}
			v, texts = space.String(text), texts[1:]
		case kind == kindFalse || kind == kindTrue:
			v = space.Bool(kind == kindTrue)
		default:
			return space.Config{}, fmt.Errorf("a configuration has no value for %q", name)
		}
		name, err := decodeText(decoder, name)
		if err != nil {
			return space.Config{}, err
		}
		d.entries = append(d.entries, space.Assignment{Name: name, Value: v})
	}
	if len(floats)+len(ints)+len(texts) > 0 {
		return space.Config{}, errors.New("a configuration has more values than names")
	}
	return space.NewConfig(d.entries...), nil
}

func encodeReport(r study.Report) (*recordpb.Report, error) {
	m := &recordpb.Report{Epoch: int64(r.Epoch), Step: r.Step, Names: make([]string, len(r.Values)), Values: make([]float64, len(r.Values))}
	for i, v := range r.Values {
		m.Names[i], m.Values[i] = v.Name, canonical(v.Value)
	}
	return m, nil
}

func decodeReport(decoder any, m *recordpb.Report) (r study.Report, err error) {
	if err := known(m); err != nil {
		return r, err
	}
	if len(m.Names) != len(m.Values) {
		return r, errors.New("the columns of a report do not match")
	}
	r = study.Report{Epoch: int(m.Epoch), Step: m.Step}
	if len(m.Names) > 0 {
		r.Values = make([]study.NamedValue, len(m.Names))
	}
	for i, name := range m.Names {
		r.Values[i].Value = canonical(m.Values[i])
		if r.Values[i].Name, err = decodeText(decoder, name); err != nil {
			return r, err
		}
	}
	return r, nil
}

func encodeAttributes(a study.Attributes) (*recordpb.Attributes, error) {
	if len(a) == 0 {
		return nil, nil
	}
	m := &recordpb.Attributes{Keys: slices.Sorted(maps.Keys(a)), Values: make([]string, len(a))}
	for i, k := range m.Keys {
		m.Values[i] = a[k]
	}
	return m, nil
}

func decodeAttributes(decoder any, m *recordpb.Attributes) (study.Attributes, error) {
	if m == nil {
		return nil, nil
	}
	if err := known(m); err != nil {
		return nil, err
	}
	if len(m.Keys) == 0 || len(m.Keys) != len(m.Values) || !ascending(m.Keys) {
		return nil, errors.New("the columns of attributes do not match")
	}
	out := make(study.Attributes, len(m.Keys))
	for i, key := range m.Keys {
		key, err := decodeText(decoder, key)
		if err != nil {
			return nil, err
		}
		if out[key], err = decodeText(decoder, m.Values[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

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

// canonical replaces any NaN by the canonical one.
func canonical(x float64) float64 {
	if math.IsNaN(x) {
		return math.NaN()
	}
	return x
}

// canonicals returns a canonical copy of xs, or xs itself if it is canonical.
func canonicals(xs []float64) []float64 {
	if !slices.ContainsFunc(xs, math.IsNaN) {
		return xs
	}
	xs = slices.Clone(xs)
	for i, x := range xs {
		xs[i] = canonical(x)
	}
	return xs
}
