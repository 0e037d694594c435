package store_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/internal/recordpb"
	"github.com/bkbtuner/bkb/store/storetest/eventtest"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"pgregory.net/rapid"
)

const (
	someStudy    store.StudyID  = 7
	somePosition study.Position = 300
)

func record(t testing.TB, e study.Event) []byte {
	t.Helper()
	b, err := store.AppendRecord(nil, someStudy, somePosition, e)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func decode(b []byte) (study.Event, error) {
	return store.NewDecoder(someStudy).Decode(somePosition, b)
}

// wantCorrupt checks that a record is refused as damaged.
func wantCorrupt(t testing.TB, what string, b []byte) {
	t.Helper()
	_, err := decode(b)
	if e, ok := errors.AsType[*store.CorruptError](err); !ok || e.Study != someStudy || e.Position != somePosition {
		t.Errorf("%s: error is %v, want damage at position %d of study %d", what, err, somePosition, someStudy)
	}
}

func TestRoundTrip(t *testing.T) {
	decoder := store.NewDecoder(someStudy) // one for all, to show that it keeps nothing of an event
	rapid.Check(t, func(t *rapid.T) {
		want := eventtest.AnyEvent().Draw(t, "event")
		b, err := store.AppendRecord([]byte("before"), someStudy, somePosition, want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decoder.Decode(somePosition, b[len("before"):])
		if err != nil {
			t.Fatal(err)
		}
		if diff := eventtest.Diff(want, got); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
		again, err := store.AppendRecord([]byte("before"), someStudy, somePosition, got)
		if err != nil || !bytes.Equal(b, again) {
			t.Fatalf("encoding again gives another record (%v)", err)
		}
	})
}

func TestNormalisation(t *testing.T) {
	local := time.Now() // with a monotonic part
	b := record(t, study.Event{Time: local, Body: study.Told{Outcome: study.Outcome{
		State: study.Completed, Metrics: []study.Metric{}, Attributes: study.Attributes{},
		Cost: math.Float64frombits(0x7ff8dead00000001),
	}}})
	e, err := decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if e.Time != local.Round(0).UTC() {
		t.Errorf("time %v came back as %v", local, e.Time)
	}
	o := e.Body.(study.Told).Outcome
	if o.Metrics != nil || o.Attributes != nil {
		t.Errorf("empty came back as %#v and %#v, want nil", o.Metrics, o.Attributes)
	}
	if got, want := math.Float64bits(o.Cost), math.Float64bits(math.NaN()); got != want {
		t.Errorf("NaN came back as %x, want %x", got, want)
	}
}

// A record with any one bit flipped is refused.
func TestEverySingleBitFlipIsRefused(t *testing.T) {
	flipAll := func(t testing.TB, b []byte) {
		for bit := range 8 * len(b) {
			b[bit/8] ^= 1 << (bit % 8)
			wantCorrupt(t, "flip of one bit", b)
			b[bit/8] ^= 1 << (bit % 8)
		}
		if _, err := decode(b); err != nil {
			t.Error(err)
		}
	}
	for _, e := range eventtest.Examples() {
		flipAll(t, record(t, e))
	}
	rapid.Check(t, func(rt *rapid.T) { flipAll(t, record(t, eventtest.AnyEvent().Draw(rt, "event"))) })
}

func TestEveryTruncationIsRefused(t *testing.T) {
	for _, e := range eventtest.Examples() {
		b := record(t, e)
		for n := range b {
			wantCorrupt(t, "truncation", b[:n:n])
		}
		wantCorrupt(t, "a byte more", append(slices.Clip(b), 0))
		wantCorrupt(t, "zeros", make([]byte, len(b)))
	}
	wantCorrupt(t, "a record too long", make([]byte, store.MaxRecordBytes+1))
}

func TestRecordBelongsToItsPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id, other := store.StudyID(rapid.Uint64().Draw(t, "study")), store.StudyID(rapid.Uint64().Draw(t, "other study"))
		pos, elsewhere := study.Position(rapid.Uint64().Draw(t, "position")), study.Position(rapid.Uint64().Draw(t, "other position"))
		b, err := store.AppendRecord(nil, id, pos, eventtest.AnyEvent().Draw(t, "event"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.NewDecoder(id).Decode(pos, b); err != nil {
			t.Fatal(err)
		}
		if _, err := store.NewDecoder(other).Decode(pos, b); err == nil && other != id {
			t.Fatal("accepted in another study")
		}
		if _, err := store.NewDecoder(id).Decode(elsewhere, b); err == nil && elsewhere != pos {
			t.Fatal("accepted at another position")
		}
	})
}

func TestFormatVersions(t *testing.T) {
	body := record(t, eventtest.Examples()[1])
	body = body[:len(body)-4]
	body[0] = 0
	wantCorrupt(t, "format 0", store.Seal(slices.Clip(body), someStudy, somePosition))
	for _, format := range []byte{store.Format + 1, 255} {
		body[0] = format
		_, err := decode(store.Seal(slices.Clip(body), someStudy, somePosition))
		if e, ok := errors.AsType[*store.NewerFormatError](err); !ok || e.Format != int(format) {
			t.Errorf("format %d: error is %v", format, err)
		}
		wantCorrupt(t, "a newer format with a wrong checksum", append(slices.Clip(body), 1, 2, 3, 4))
	}
}

func TestUnencodableEventsAreRefused(t *testing.T) {
	finished := study.Finished{Reason: study.FinishedUser}
	for what, e := range map[string]study.Event{
		"no body":           {},
		"a pointer body":    {Body: (*study.Paused)(nil)},
		"bad UTF-8":         {Request: study.Request{ID: "\xc0"}, Body: finished},
		"too early":         {Time: time.Date(1677, 1, 1, 0, 0, 0, 0, time.UTC), Body: finished},
		"too late":          {Time: time.Date(2263, 1, 1, 0, 0, 0, 0, time.UTC), Body: finished},
		"the stand-in":      {Time: time.Unix(0, math.MinInt64), Body: finished},
		"no reason":         {Body: study.Finished{}},
		"unknown reason":    {Body: study.Finished{Reason: 200}},
		"no state":          {Body: study.Told{}},
		"unknown state":     {Body: study.Told{Outcome: study.Outcome{State: 7}}},
		"unknown failure":   {Body: study.Told{Outcome: study.Outcome{State: study.Failed, Reason: 77}}},
		"no space":          {Body: study.Created{}},
		"unknown direction": {Body: study.Created{Spec: study.Spec{Space: new(space.Space), Objectives: []study.Objective{{Direction: 9}}}}},
		"no direction":      {Body: study.Created{Spec: study.Spec{Space: new(space.Space), Objectives: []study.Objective{{Name: "loss"}}}}},
		"bad UTF-8 in spec": {Body: study.Created{Spec: study.Spec{Space: new(space.Space), Pruner: study.Component{Name: "\xc0"}}}},
		"NaN in a spec":     {Body: study.Created{Spec: study.Spec{Space: new(space.Space), MaxCost: math.NaN()}}},
		"no value":          {Body: study.Enqueued{Config: space.NewConfig(space.Assignment{Name: "x"})}},
		"empty reports":     {Body: study.Added{Reports: make([]study.Report, 1<<16), Outcome: study.Outcome{State: study.Completed}}},
	} {
		b, err := store.AppendRecord([]byte("before"), someStudy, somePosition, e)
		if !errors.Is(err, store.ErrInvalid) || string(b) != "before" {
			t.Errorf("%s: %d bytes, error %v", what, len(b), err)
		}
	}
}

// Payloads that only a faulty program could write are refused even with a correct
// checksum.
func TestImpossiblePayloadsAreRefused(t *testing.T) {
	marshal := func(m proto.Message) []byte {
		b, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	paused := &recordpb.Event{Body: &recordpb.Event_Paused{Paused: &recordpb.Paused{}}}
	config := func(c *recordpb.Config) []byte {
		return marshal(&recordpb.Event{Body: &recordpb.Event_Enqueued{Enqueued: &recordpb.Enqueued{Config: c}}})
	}
	attributes := func(a *recordpb.Attributes) []byte {
		return marshal(&recordpb.Event{Body: &recordpb.Event_Attributed{Attributed: &recordpb.Attributed{Attributes: a}}})
	}
	spec := func(text string) []byte {
		return marshal(&recordpb.Event{Body: &recordpb.Event_Created{Created: &recordpb.Created{Spec: text}}})
	}
	var written string
	for _, e := range eventtest.Examples() {
		if c, ok := e.Body.(study.Created); ok {
			text, err := json.Marshal(c.Spec)
			if err != nil {
				t.Fatal(err)
			}
			written = string(text)
		}
	}
	if _, err := store.NewDecoder(someStudy).DecodePayload(append(protowire.AppendFixed64(protowire.AppendTag(nil, 1, protowire.Fixed64Type), 9), spec(written)...)); err != nil {
		t.Fatalf("the spec that the others are made of: %v", err)
	}
	for what, payload := range map[string][]byte{
		"nothing":          {},
		"garbage":          {0xff, 0xff, 0xff},
		"two bodies":       append(marshal(paused), marshal(&recordpb.Event{Body: &recordpb.Event_Resumed{Resumed: &recordpb.Resumed{}}})...),
		"the same twice":   append(marshal(paused), marshal(paused)...),
		"explicit zero":    append(protowire.AppendFixed64(protowire.AppendTag(nil, 3, protowire.Fixed64Type), 0), marshal(paused)...),
		"long varint":      {0x72, 0x80, 0x00},
		"unknown field":    protowire.AppendVarint(protowire.AppendTag(marshal(paused), 99, protowire.VarintType), 1),
		"unknown inside":   {0x72, 0x02, 0x08, 0x01},
		"no spec":          marshal(&recordpb.Event{Body: &recordpb.Event_Created{Created: &recordpb.Created{}}}),
		"no space":         spec(`{"seed":3}`),
		"null for a space": spec(`{"space":null}`),
		"two specs":        spec(written + written),
		"unknown setting":  spec(written[:len(written)-1] + `,"depth":1}`),
		"no direction":     spec(strings.Replace(written, `"minimize"`, `""`, 1)),
		"wrong direction":  spec(strings.Replace(written, `"minimize"`, `"upwards"`, 1)),
		"half a retry":     spec(strings.Replace(written, `"max_retries":3`, `"max_retries":0.5`, 1)),
		"no outcome":       marshal(&recordpb.Event{Body: &recordpb.Event_Told{Told: &recordpb.Told{}}}),
		"unknown state":    marshal(&recordpb.Event{Body: &recordpb.Event_Told{Told: &recordpb.Told{Outcome: &recordpb.Outcome{State: 256 + 3}}}}),
		"no state":         marshal(&recordpb.Event{Body: &recordpb.Event_Told{Told: &recordpb.Told{Outcome: &recordpb.Outcome{Cost: 1}}}}),
		"negative state":   marshal(&recordpb.Event{Body: &recordpb.Event_Told{Told: &recordpb.Told{Outcome: &recordpb.Outcome{State: -1}}}}),
		"no reason":        marshal(&recordpb.Event{Body: &recordpb.Event_Finished{Finished: &recordpb.Finished{}}}),
		"bad UTF-8":        {0x12, 0x01, 0xff, 0x72, 0x00},
		"no kinds":         config(&recordpb.Config{Names: []string{"a"}}),
		"no value":         config(&recordpb.Config{Names: []string{"a"}, Kinds: []byte{1}}),
		"value of another": config(&recordpb.Config{Names: []string{"a"}, Kinds: []byte{1}, Ints: []int64{1}}),
		"value to spare":   config(&recordpb.Config{Names: []string{"a"}, Kinds: []byte{4}, Ints: []int64{1}}),
		"unknown kind":     config(&recordpb.Config{Names: []string{"a"}, Kinds: []byte{6}}),
		"names unordered":  config(&recordpb.Config{Names: []string{"b", "a"}, Kinds: []byte{4, 4}}),
		"name twice":       config(&recordpb.Config{Names: []string{"a", "a"}, Kinds: []byte{4, 4}}),
		"key twice":        attributes(&recordpb.Attributes{Keys: []string{"a", "a"}, Values: []string{"", ""}}),
		"no keys":          attributes(&recordpb.Attributes{}),
		"key to spare":     attributes(&recordpb.Attributes{Keys: []string{"a"}}),
		"report to spare":  marshal(&recordpb.Event{Body: &recordpb.Event_Reported{Reported: &recordpb.Reported{Reports: []*recordpb.Report{{Names: []string{"a"}}}}}}),
		"empty reports":    marshal(&recordpb.Event{Body: &recordpb.Event_Reported{Reported: &recordpb.Reported{Reports: slices.Repeat([]*recordpb.Report{{}}, 1<<16)}}}),
	} {
		wantCorrupt(t, what, store.Seal(append([]byte{1}, payload...), someStudy, somePosition))
	}
}

// The numbers of the enumerations are stored and must not change.
func TestEnumerationsMatchTheSchema(t *testing.T) {
	match := func(to protoreflect.Enum, prefix string, name func(uint8) string) {
		values := to.Descriptor().Values()
		for i := range values.Len() {
			v := values.Get(i)
			want := strings.ToLower(strings.TrimPrefix(string(v.Name()), prefix))
			if got := strings.ReplaceAll(name(uint8(v.Number())), " ", "_"); got != want && want != "unspecified" {
				t.Errorf("%s is %s in package study", v.Name(), got)
			}
		}
		if last := uint8(values.Len()); !strings.Contains(name(last), "(") {
			t.Errorf("the schema does not know %s", name(last))
		}
	}
	match(recordpb.TrialState(0), "TRIAL_STATE_", func(n uint8) string { return study.TrialState(n).String() })
	match(recordpb.FailReason(0), "FAIL_REASON_", func(n uint8) string { return study.FailReason(n).String() })
	match(recordpb.FinishReason(0), "FINISH_REASON_", func(n uint8) string { return study.FinishReason(n).String() })
}

// The examples cover every kind of event and, with the round trip, every field of each but
// the settings of a study, which AnyEvent draws by their types.
// The test notices a field that is added to package study and forgotten here.
func TestExamplesAreComplete(t *testing.T) {
	kinds := make(map[reflect.Type]study.Event) // the last event of each kind, which is the fullest
	called := false
	for _, e := range eventtest.Examples() {
		called = called || e.Caller != ""
		got, err := decode(record(t, e))
		if err != nil {
			t.Fatal(err)
		}
		if diff := eventtest.Diff(e, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		e.Caller = "one of them has it"
		kinds[reflect.TypeOf(e.Body)] = e
	}
	if !called {
		t.Error("no example has a caller")
	}
	for kind, e := range kinds {
		wantNoZeroField(t, kind.Name(), reflect.ValueOf(e))
	}
	bodies := (&recordpb.Event{}).ProtoReflect().Descriptor().Oneofs().ByName("body").Fields().Len()
	if len(kinds) != bodies {
		t.Errorf("there are examples of %d kinds, the schema has %d", len(kinds), bodies)
	}
}

func wantNoZeroField(t *testing.T, path string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if _, opaque := v.Interface().(*space.Space); v.IsNil() {
			t.Errorf("%s is nil", path)
		} else if !opaque {
			wantNoZeroField(t, path, v.Elem())
		}
	case reflect.Struct:
		for i := 0; i < v.NumField() && v.Type() != reflect.TypeFor[study.Spec](); i++ {
			field := v.Type().Field(i)
			if !field.IsExported() {
				continue
			}
			if v.Field(i).IsZero() {
				t.Errorf("%s.%s is zero", path, field.Name)
			}
			wantNoZeroField(t, path+"."+field.Name, v.Field(i))
		}
	case reflect.Slice:
		if v.Len() == 0 {
			t.Errorf("%s is empty", path)
		} else if v.Type().Elem().Kind() == reflect.Struct {
			wantNoZeroField(t, path, v.Index(v.Len()-1)) // the last is the fullest
		}
	}
}

// TestLargestEventsFit encodes events of the largest size that package study allows.
func TestLargestEventsFit(t *testing.T) {
	racetest.Alone(t)
	text := func(n int) string { return strings.Repeat("x", n) }
	var entries []space.Assignment
	for i := range space.MaxParameters {
		entries = append(entries, space.Assignment{Name: fmt.Sprintf("%0*d", space.MaxNameBytes, i), Value: space.String(text(space.MaxTextBytes))})
	}
	outcome := study.Outcome{State: study.Completed, Message: text(study.MaxTextBytes), Attributes: study.Attributes{"k": text(study.MaxAttributesBytes - 1)}}
	for i := range study.MaxMetrics {
		outcome.Metrics = append(outcome.Metrics, study.Metric{Name: fmt.Sprintf("%0*d", study.MaxNameBytes, i), Values: make([]float64, study.MaxReplicates)})
	}
	var reports []study.Report
	for i := range study.MaxReports {
		reports = append(reports, study.Report{Step: math.MaxInt64 - int64(i), Values: []study.NamedValue{{Name: text(study.MaxReportBytes/study.MaxReports - 8), Value: 1}}})
	}
	for _, b := range []study.Body{
		study.Added{Config: space.NewConfig(entries...), Reports: reports, Outcome: outcome},
		study.Anchored{Seen: math.MaxInt64, Effective: math.MaxInt64, Model: make([]byte, study.MaxModelBytes)},
	} {
		record, err := store.AppendRecord(nil, 1, 1, study.Event{Body: b})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.NewDecoder(1).Decode(1, record); err != nil {
			t.Errorf("%T of %d bytes: %v", b, len(record), err)
		}
	}
}
