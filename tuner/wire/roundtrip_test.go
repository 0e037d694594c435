package wire_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"pgregory.net/rapid"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/space/spacetest"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/wire"
)

var (
	texts = rapid.OneOf(rapid.Just(""), rapid.StringN(0, 20, -1), rapid.SampledFrom([]string{"\x00", "ß", "a/b", "\u202e"}))
	names = rapid.StringMatching(`[a-z0-9]([a-z0-9._-]{0,10}[a-z0-9])?`)
	ints  = rapid.OneOf(rapid.IntRange(0, 5), rapid.IntRange(0, 1<<40))
	reals = rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{
		math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1),
		math.MaxFloat64, math.SmallestNonzeroFloat64,
	}))
	durations = rapid.Custom(func(t *rapid.T) time.Duration { return time.Duration(rapid.Int64().Draw(t, "ns")) })
	times     = rapid.Custom(func(t *rapid.T) time.Time {
		if rapid.Bool().Draw(t, "none") {
			return time.Time{}
		}
		return time.Unix(rapid.Int64Range(-62135596800, 253402300799).Draw(t, "s"), rapid.Int64Range(0, 999999999).Draw(t, "ns")).UTC()
	})
	values = rapid.Custom(func(t *rapid.T) space.Value {
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			return space.Float(reals.Draw(t, "float"))
		case 1:
			return space.Int(rapid.Int64().Draw(t, "int"))
		case 2:
			return space.String(texts.Draw(t, "string"))
		default:
			return space.Bool(rapid.Bool().Draw(t, "bool"))
		}
	})
	configs = rapid.Custom(func(t *rapid.T) space.Config {
		var list []space.Assignment
		for range rapid.IntRange(0, 4).Draw(t, "parameters") {
			list = append(list, space.Assignment{Name: texts.Draw(t, "name"), Value: values.Draw(t, "value")})
		}
		return space.NewConfig(list...)
	})
	attributes = rapid.Custom(func(t *rapid.T) study.Attributes {
		m := rapid.MapOfN(texts, texts, 0, 3).Draw(t, "attributes")
		if len(m) == 0 {
			return nil
		}
		return m
	})
	outcomes = rapid.Custom(func(t *rapid.T) study.Outcome {
		if rapid.IntRange(0, 3).Draw(t, "zero") == 0 {
			return study.Outcome{}
		}
		return study.Outcome{
			State: states.Draw(t, "state"), Reason: study.FailReason(rapid.IntRange(0, int(study.FailedNaN)).Draw(t, "reason")),
			Message: texts.Draw(t, "message"), Metrics: metrics(t), Cost: reals.Draw(t, "cost"), Attributes: attributes.Draw(t, "attributes"),
		}
	})
	states = rapid.Custom(func(t *rapid.T) study.TrialState {
		return study.TrialState(rapid.IntRange(0, int(study.Pruned)).Draw(t, "state"))
	})
	suggestions = rapid.Custom(func(t *rapid.T) study.Suggestion {
		return study.Suggestion{
			Seed: rapid.Uint64().Draw(t, "seed"), Seen: study.Position(rapid.Uint64().Draw(t, "seen")), Phase: texts.Draw(t, "phase"),
			Mean: list(t, reals), StdDev: list(t, reals), Bound: list(t, reals), Beta: list(t, reals),
		}
	})
	trials = rapid.Custom(func(t *rapid.T) study.Trial {
		r := study.Trial{
			Number: ints.Draw(t, "number"), State: states.Draw(t, "state"), Config: configs.Draw(t, "config"),
			Origin: study.Origin(rapid.IntRange(0, int(study.OriginAdded)).Draw(t, "origin")), Epoch: ints.Draw(t, "epoch"),
			Expiries: rapid.IntRange(0, math.MaxInt32).Draw(t, "expiries"), Worker: texts.Draw(t, "worker"), Deadline: times.Draw(t, "deadline"),
			Reports: reports(t, true), Outcome: outcomes.Draw(t, "outcome"), ToldEpoch: ints.Draw(t, "told epoch"), Attributes: attributes.Draw(t, "attributes"),
			Created: times.Draw(t, "created"), Started: times.Draw(t, "started"), Ended: times.Draw(t, "ended"),
		}
		if r.Origin == study.OriginSuggested {
			r.Suggestion = suggestions.Draw(t, "suggestion")
			r.Suggestion.Config = r.Config
		}
		for range rapid.IntRange(0, 2).Draw(t, "late") {
			r.Late = append(r.Late, study.LateResult{Epoch: ints.Draw(t, "epoch"), Time: times.Draw(t, "time"), Outcome: outcomes.Draw(t, "outcome")})
		}
		return r
	})
	components = rapid.Custom(func(t *rapid.T) study.Component {
		return study.Component{Name: texts.Draw(t, "name"), Options: texts.Draw(t, "options")}
	})
	specs = rapid.Custom(func(t *rapid.T) study.Spec {
		var s study.Spec
		for name, at := range s.Settings() { // by type, so that no setting is forgotten
			switch at := at.(type) {
			case **space.Space:
				if rapid.Bool().Draw(t, name) {
					*at = spacetest.Spaces(4).Draw(t, name)
				}
			case *[]study.Objective:
				for range rapid.IntRange(0, 3).Draw(t, name) {
					*at = append(*at, study.Objective{Name: texts.Draw(t, "name"), Direction: study.Direction(rapid.IntRange(0, 2).Draw(t, "direction"))})
				}
			case *study.Component:
				*at = components.Draw(t, name)
			case *study.Attributes:
				*at = attributes.Draw(t, name)
			case *int:
				*at = ints.Draw(t, name)
			case *time.Duration:
				*at = durations.Draw(t, name)
			case *uint64:
				*at = rapid.Uint64().Draw(t, name)
			case *float64:
				*at = reals.Draw(t, name)
			case **float64:
				*at = rapid.Ptr(reals, true).Draw(t, name)
			case *string:
				*at = texts.Draw(t, name)
			case *bool:
				*at = rapid.Bool().Draw(t, name)
			default:
				t.Fatalf("setting %s: no values of type %T are drawn", name, at)
			}
		}
		s.MaxRetries = rapid.IntRange(math.MinInt32, math.MaxInt32).Draw(t, "max_retries") // its field has 32 bits
		return s
	})
	studies = rapid.Custom(func(t *rapid.T) tuner.Study {
		if rapid.IntRange(0, 9).Draw(t, "unread") == 0 {
			return tuner.Study{Name: names.Draw(t, "name"), ID: store.StudyID(rapid.Uint64().Draw(t, "id")), Unread: "why " + texts.Draw(t, "why")}
		}
		s := tuner.Study{
			Name: names.Draw(t, "name"), ID: store.StudyID(rapid.Uint64().Draw(t, "id")), Spec: specs.Draw(t, "spec"),
			Status:   study.Status(rapid.IntRange(0, 3).Draw(t, "status")),
			Finished: study.Finished{Reason: study.FinishReason(rapid.IntRange(0, 6).Draw(t, "reason")), Detail: texts.Draw(t, "detail")},
			Created:  times.Draw(t, "created"), Position: study.Position(rapid.Uint64().Draw(t, "position")), Cost: reals.Draw(t, "cost"),
			Attributes: attributes.Draw(t, "attributes"),
		}
		for state := study.Queued; state <= study.Pruned; state++ {
			if n := rapid.IntRange(0, 3).Draw(t, "count"); n > 0 {
				if s.Counts == nil {
					s.Counts = make(map[study.TrialState]int)
				}
				s.Counts[state] = n
				s.Trials += n
			}
		}
		s.Added = rapid.IntRange(0, s.Trials).Draw(t, "added")
		s.Counted = rapid.IntRange(0, s.Trials-s.Added).Draw(t, "counted")
		return s
	})
)

func list[V any](t *rapid.T, of *rapid.Generator[V]) []V {
	l := rapid.SliceOfN(of, 0, 3).Draw(t, "list")
	if len(l) == 0 {
		return nil
	}
	return l
}

// metrics returns metrics with different names, in order.
func metrics(t *rapid.T) (list []study.Metric) {
	for i := range rapid.IntRange(0, 3).Draw(t, "metrics") {
		m := study.Metric{Name: fmt.Sprint(i) + texts.Draw(t, "name"), Values: rapid.SliceOfN(reals, 1, 3).Draw(t, "values")}
		if m.HasStdErr = rapid.Bool().Draw(t, "has stderr"); m.HasStdErr {
			m.StdErr = reals.Draw(t, "stderr")
		}
		list = append(list, m)
	}
	return list
}

func reports(t *rapid.T, epochs bool) (list []study.Report) {
	for range rapid.IntRange(0, 3).Draw(t, "reports") {
		r := study.Report{Step: rapid.Int64().Draw(t, "step")}
		if epochs {
			r.Epoch = ints.Draw(t, "epoch")
		}
		for i := range rapid.IntRange(0, 3).Draw(t, "values") {
			r.Values = append(r.Values, study.NamedValue{Name: fmt.Sprint(i) + texts.Draw(t, "name"), Value: reals.Draw(t, "value")})
		}
		list = append(list, r)
	}
	return list
}

// roundTrip checks that a value survives its message, and the message the wire.
func roundTrip[V any, M proto.Message](encode func(V) (M, error), decode func(M) (V, error)) func(*rapid.T, V) {
	return func(t *rapid.T, v V) {
		m, err := encode(v)
		if err != nil {
			t.Fatalf("encoding: %v", err)
		}
		data, err := proto.Marshal(m)
		if err != nil {
			t.Fatalf("marshalling: %v", err)
		}
		read := m.ProtoReflect().New().Interface().(M)
		if err := proto.Unmarshal(data, read); err != nil {
			t.Fatalf("unmarshalling: %v", err)
		}
		got, err := decode(read)
		if err != nil {
			t.Fatalf("decoding: %v", err)
		}
		if diff := cmp.Diff(v, got, compare...); diff != "" {
			t.Fatalf("came back different (-sent +got):\n%s", diff)
		}
	}
}

var compare = cmp.Options{
	cmp.Comparer(sameFloat), cmpopts.IgnoreUnexported(study.Trial{}),
	cmp.Comparer(func(a, b *space.Space) bool { return a == b || a != nil && b != nil && a.Equal(b) }),
	cmp.Comparer(func(a, b space.Config) bool { return a.Equal(b) }),
}

// sameFloat compares bits, except that all NaN are equal.
func sameFloat(a, b float64) bool {
	return math.Float64bits(a) == math.Float64bits(b) || a != a && b != b
}

// named lets a round trip carry the study of a message.
type named[V any] struct {
	Name string
	V    V
}

func command[C any, M any](encode func(string, C) (M, error), decode func(M) (string, C, error)) (func(named[C]) (M, error), func(M) (named[C], error)) {
	return func(n named[C]) (M, error) { return encode(n.Name, n.V) },
		func(m M) (named[C], error) {
			name, c, err := decode(m)
			return named[C]{name, c}, err
		}
}

func checkCommand[C any, M proto.Message](t *testing.T, name string, draw func(*rapid.T) C, encode func(string, C) (M, error), decode func(M) (string, C, error)) {
	t.Run(name, func(t *testing.T) {
		check := roundTrip(command(encode, decode))
		rapid.Check(t, func(t *rapid.T) { check(t, named[C]{names.Draw(t, "study"), draw(t)}) })
	})
}

func checkAnswer[V any, M proto.Message](t *testing.T, name string, draw func(*rapid.T) V, encode func(V) (M, error), decode func(M) (V, error)) {
	t.Run(name, func(t *testing.T) {
		check := roundTrip(encode, decode)
		rapid.Check(t, func(t *rapid.T) { check(t, draw(t)) })
	})
}

func of[V, M any](encode func(string, V) (M, error)) func(V) (M, error) {
	return func(v V) (M, error) { return encode("s", v) }
}

func sure[V, M any](encode func(V) M) func(V) (M, error) {
	return func(v V) (M, error) { return encode(v), nil }
}

func TestRoundTrip(t *testing.T) {
	checkCommand(t, "pause", func(t *rapid.T) study.Pause { return study.Pause{RequestID: texts.Draw(t, "id")} }, wire.PauseStudy.Encode, wire.PauseStudy.Decode)
	checkCommand(t, "extend", func(t *rapid.T) study.Extend {
		return study.Extend{
			RequestID: texts.Draw(t, "id"), MaxTrials: rapid.Int().Draw(t, "trials"), Timeout: time.Duration(rapid.Int64().Draw(t, "timeout")),
			MaxCost: rapid.Float64().Draw(t, "cost"), More: rapid.Bool().Draw(t, "more"),
		}
	}, wire.ExtendStudy.Encode, wire.ExtendStudy.Decode)
	checkCommand(t, "resume", func(t *rapid.T) study.Resume { return study.Resume{RequestID: texts.Draw(t, "id")} }, wire.ResumeStudy.Encode, wire.ResumeStudy.Decode)
	checkCommand(t, "finish", func(t *rapid.T) study.Finish {
		return study.Finish{RequestID: texts.Draw(t, "id"), Detail: texts.Draw(t, "detail")}
	}, wire.FinishStudy.Encode, wire.FinishStudy.Decode)
	checkCommand(t, "attributes", func(t *rapid.T) study.SetAttributes {
		return study.SetAttributes{RequestID: texts.Draw(t, "id"), Trial: rapid.IntRange(study.OfStudy, 1<<40).Draw(t, "trial"), Attributes: attributes.Draw(t, "attributes")}
	}, wire.SetAttributes.Encode, wire.SetAttributes.Decode)
	ask := func(t *rapid.T) study.Ask {
		return study.Ask{
			RequestID: texts.Draw(t, "id"), Count: rapid.IntRange(tuner.AutoCount, math.MaxInt32).Draw(t, "count"), Worker: texts.Draw(t, "worker"),
			Lease: durations.Draw(t, "lease"), New: rapid.Bool().Draw(t, "new"),
		}
	}
	checkCommand(t, "ask", ask, wire.Ask.Encode, wire.Ask.Decode)
	checkCommand(t, "tell", func(t *rapid.T) study.Tell {
		return study.Tell{
			RequestID: texts.Draw(t, "id"), Trial: ints.Draw(t, "trial"), Epoch: rapid.Int().Draw(t, "epoch"), Outcome: outcomes.Draw(t, "outcome"),
			Next: rapid.Ptr(rapid.Custom(ask), true).Draw(t, "next"),
		}
	}, wire.Tell.Encode, wire.Tell.Decode)
	checkCommand(t, "report", func(t *rapid.T) study.ReportValues {
		return study.ReportValues{RequestID: texts.Draw(t, "id"), Trial: ints.Draw(t, "trial"), Epoch: rapid.Int().Draw(t, "epoch"), Reports: reports(t, false)}
	}, wire.Report.Encode, wire.Report.Decode)
	checkCommand(t, "heartbeat", func(t *rapid.T) study.Heartbeat {
		return study.Heartbeat{Trial: ints.Draw(t, "trial"), Epoch: rapid.Int().Draw(t, "epoch"), Lease: durations.Draw(t, "lease")}
	}, wire.Heartbeat.Encode, wire.Heartbeat.Decode)
	checkCommand(t, "enqueue", func(t *rapid.T) study.Enqueue {
		return study.Enqueue{RequestID: texts.Draw(t, "id"), Config: configs.Draw(t, "config"), Attributes: attributes.Draw(t, "attributes")}
	}, wire.EnqueueTrial.Encode, wire.EnqueueTrial.Decode)
	checkCommand(t, "add", func(t *rapid.T) study.Add {
		return study.Add{
			RequestID: texts.Draw(t, "id"), Config: configs.Draw(t, "config"), Reports: reports(t, false), Outcome: outcomes.Draw(t, "outcome"),
			Attributes: attributes.Draw(t, "attributes"),
		}
	}, wire.AddTrial.Encode, wire.AddTrial.Decode)
	checkCommand(t, "many", func(t *rapid.T) (many []study.Command) {
		for i := range rapid.IntRange(0, 5).Draw(t, "trials") {
			if rapid.Bool().Draw(t, "enqueue") {
				many = append(many, study.Enqueue{RequestID: fmt.Sprint(i), Config: configs.Draw(t, "config"), Attributes: attributes.Draw(t, "attributes")})
				continue
			}
			many = append(many, study.Add{
				RequestID: texts.Draw(t, "id"), Config: configs.Draw(t, "config"), Reports: reports(t, false), Outcome: outcomes.Draw(t, "outcome"),
				Attributes: attributes.Draw(t, "attributes"),
			})
		}
		return many
	}, func(name string, many []study.Command) (*pb.AddTrialsRequest, error) {
		parent, err := wire.StudyName(name)
		m := &pb.AddTrialsRequest{Parent: parent}
		for _, c := range many {
			t, newErr := wire.EncodeNew(c)
			m.Trials, err = append(m.Trials, t), errors.Join(err, newErr)
		}
		return m, err
	}, wire.DecodeAddAll)
	checkCommand(t, "filter", func(t *rapid.T) tuner.Filter {
		return tuner.Filter{First: rapid.Int().Draw(t, "first"), Limit: rapid.IntRange(math.MinInt32, math.MaxInt32).Draw(t, "limit"), States: list(t, states), Worker: texts.Draw(t, "worker"), Reports: rapid.Bool().Draw(t, "reports")}
	}, wire.EncodeFilter, wire.DecodeFilter)

	checkAnswer(t, "create", func(t *rapid.T) named[study.Create] {
		return named[study.Create]{texts.Draw(t, "name"), study.Create{RequestID: texts.Draw(t, "id"), Spec: specs.Draw(t, "spec")}}
	}, func(n named[study.Create]) (*pb.CreateStudyRequest, error) { return wire.EncodeCreate(n.Name, n.V) },
		func(m *pb.CreateStudyRequest) (named[study.Create], error) {
			name, c, _, err := wire.DecodeCreate(m)
			return named[study.Create]{name, c}, err
		})
	checkAnswer(t, "study", func(t *rapid.T) tuner.Study { return studies.Draw(t, "study") }, wire.EncodeStudy, wire.DecodeStudy)
	checkAnswer(t, "created", func(t *rapid.T) tuner.Created {
		c := tuner.Created{Study: studies.Draw(t, "study")}
		for range rapid.IntRange(0, 2).Draw(t, "warnings") {
			c.Warnings = append(c.Warnings, space.Warning{
				Line: rapid.IntRange(0, math.MaxInt32).Draw(t, "line"), Parameter: texts.Draw(t, "parameter"),
				Message: texts.Draw(t, "message"), Remedy: texts.Draw(t, "remedy"),
			})
		}
		return c
	}, wire.EncodeCreated, wire.DecodeCreated)
	checkAnswer(t, "trial", func(t *rapid.T) study.Trial { return trials.Draw(t, "trial") }, of(wire.EncodeTrial), wire.DecodeTrial)
	asked := func(t *rapid.T) tuner.Asked {
		return tuner.Asked{Trials: list(t, trials), UsefulWorkers: rapid.IntRange(0, math.MaxInt32).Draw(t, "workers"), Warnings: list(t, texts), Noise: list(t, reals)}
	}
	checkAnswer(t, "asked", asked, of(wire.EncodeAsked), wire.DecodeAsked)
	checkAnswer(t, "added", func(t *rapid.T) []int { return list(t, ints) }, sure(wire.EncodeAdded),
		func(m *pb.AddTrialsResponse) ([]int, error) { return wire.DecodeAdded(m, len(m.GetNumbers())) })
	checkAnswer(t, "told", func(t *rapid.T) tuner.Told {
		return tuner.Told{Trial: trials.Draw(t, "trial"), Late: rapid.Bool().Draw(t, "late"), Next: rapid.Ptr(rapid.Custom(asked), true).Draw(t, "next")}
	}, of(func(name string, told tuner.Told) (*pb.TellResponse, error) {
		trial, err := wire.EncodeTrial(name, told.Trial)
		m := &pb.TellResponse{Trial: trial, Late: told.Late}
		if err == nil && told.Next != nil {
			m.Next, err = wire.EncodeAsked(name, *told.Next)
		}
		return m, err
	}), wire.DecodeTold)
	checkAnswer(t, "reported", verdict, wire.Report.EncodeAnswer, wire.Report.DecodeAnswer)
	checkAnswer(t, "beaten", verdict, wire.Heartbeat.EncodeAnswer, wire.Heartbeat.DecodeAnswer)
	checkAnswer(t, "event", func(t *rapid.T) tuner.Event {
		h := tuner.Event{
			Position: study.Position(rapid.Uint64().Draw(t, "position")), Time: times.Draw(t, "time"), Kind: texts.Draw(t, "kind"),
			Caller: texts.Draw(t, "caller"),
			Status: study.Status(rapid.IntRange(0, 3).Draw(t, "status")),
		}
		if rapid.Bool().Draw(t, "of a trial") {
			trial := trials.Draw(t, "trial")
			h.Trial = &trial
		}
		return h
	}, of(wire.EncodeEvent), wire.DecodeEvent)
}

func verdict(t *rapid.T) tuner.Verdict {
	return tuner.Verdict{Stop: rapid.Bool().Draw(t, "stop"), Reason: texts.Draw(t, "reason"), Deadline: times.Draw(t, "deadline")}
}

// TestEnumNumbers fixes the numbers that wire and study share by their names.
func TestEnumNumbers(t *testing.T) {
	check := func(ours, theirs fmt.Stringer) {
		t.Helper()
		name := strings.ToLower(strings.ReplaceAll(theirs.String(), "_", " "))
		if !strings.HasSuffix(name, " "+strings.ReplaceAll(ours.String(), "_", " ")) {
			t.Errorf("%v is %v on the wire", ours, theirs)
		}
	}
	for n := 1; n <= int(study.Pruned); n++ {
		check(study.TrialState(n), pb.TrialState(n))
	}
	for n := 1; n <= int(study.FailedNaN); n++ {
		check(study.FailReason(n), pb.FailReason(n))
	}
	for n := 1; n <= int(study.OriginAdded); n++ {
		check(study.Origin(n), pb.Origin(n))
	}
	for n := 1; n <= int(study.StatusFinished); n++ {
		check(study.Status(n), pb.StudyState(n))
	}
	for n := 1; n <= int(study.FinishedPatience); n++ {
		check(study.FinishReason(n), pb.FinishReason(n))
	}
	for n := 1; n <= int(study.Maximize); n++ {
		check(study.Direction(n), pb.Direction(n))
	}
}

// TestHostileMessages reads messages that no client of ours writes. The result is an error
// or a value, never a panic.
func TestHostileMessages(t *testing.T) {
	for name, decode := range map[string]func() error{
		"nothing":        func() error { _, _, err := wire.Tell.Decode(nil); return err },
		"unknown state":  func() error { _, err := wire.DecodeOutcome(&pb.Outcome{State: 99}); return err },
		"negative state": func() error { _, err := wire.DecodeOutcome(&pb.Outcome{State: -1}); return err },
		"bad duration": func() error {
			_, _, err := wire.Ask.Decode(&pb.AskRequest{Parent: "studies/s", Lease: &durationpb.Duration{Seconds: 1, Nanos: -1}})
			return err
		},
		"count and auto count": func() error {
			_, _, err := wire.Ask.Decode(&pb.AskRequest{Parent: "studies/s", Count: 2, AutoCount: true})
			return err
		},
		"count of -1": func() error { _, _, err := wire.Ask.Decode(&pb.AskRequest{Parent: "studies/s", Count: -1}); return err },
		"page token": func() error {
			_, _, err := wire.DecodeFilter(&pb.ListTrialsRequest{Parent: "studies/s", PageToken: "x"})
			return err
		},
		"too many trials": func() error {
			_, _, err := wire.DecodeAddAll(&pb.AddTrialsRequest{Parent: "studies/s", Trials: make([]*pb.NewTrial, tuner.MaxPage+1)})
			return err
		},
		"trials of a trial": func() error {
			_, _, err := wire.DecodeAddAll(&pb.AddTrialsRequest{Parent: "studies/s/trials/1"})
			return err
		},
		"fewer numbers than trials": func() error {
			_, err := wire.DecodeAdded(&pb.AddTrialsResponse{Numbers: []int64{1}}, 2)
			return err
		},
		"no space": func() error {
			_, _, _, err := wire.DecodeCreate(&pb.CreateStudyRequest{Spec: &pb.StudySpec{Space: "{"}})
			return err
		},
		"leading zeros":  func() error { _, _, err := wire.ParseTrialName("studies/s/trials/01"); return err },
		"plus sign":      func() error { _, _, err := wire.ParseTrialName("studies/s/trials/+1"); return err },
		"negative trial": func() error { _, _, err := wire.ParseTrialName("studies/s/trials/-1"); return err },
		"trial as study": func() error { _, err := wire.ParseStudyName("studies/s/trials/1"); return err },
		"study as trial": func() error { _, _, err := wire.ParseTrialName("studies/s"); return err },
		"path":           func() error { _, err := wire.ParseStudyName("studies/../x"); return err },
		"attributes of -1": func() error {
			_, _, err := wire.SetAttributes.Decode(&pb.SetAttributesRequest{Name: "studies/s/trials/-1"})
			return err
		},
	} {
		if err := decode(); tuner.CodeOf(err) != tuner.Invalid {
			t.Errorf("%s: the code is %q of %v, want INVALID", name, tuner.CodeOf(err), err)
		}
	}
	for _, values := range []*pb.Metric{nil, {}} {
		o, err := wire.DecodeOutcome(&pb.Outcome{State: pb.TrialState_TRIAL_STATE_COMPLETED, Metrics: map[string]*pb.Metric{"m": values}})
		if err != nil || len(o.Metrics) != 1 || o.Metrics[0].HasStdErr {
			t.Errorf("a metric without anything: %v, %v", o, err)
		}
	}
	if v, ok := wire.DecodeConfig(map[string]*pb.Value{"x": nil}).Get("x"); !ok || v.Kind() != space.KindNone {
		t.Errorf("a value of no kind: %v, %t", v, ok)
	}
}

// Among many trials the error names the field of the wrong one, and the remedy.
func TestHostileTrials(t *testing.T) {
	for field, trial := range map[string]*pb.NewTrial{
		"trials[2].outcome.state": {RequestId: "x", Outcome: &pb.Outcome{State: 99}},
		"trials[2].enqueue":       {RequestId: "x", Enqueue: true, Outcome: &pb.Outcome{State: pb.TrialState_TRIAL_STATE_PRUNED}},
		"trials[2].enqueue = true: must not be set for a trial that has an outcome or reports; leave them out": {RequestId: "x", Enqueue: true, Reports: []*pb.IntermediateValues{{Step: 1}}},
	} {
		_, commands, err := wire.DecodeAddAll(&pb.AddTrialsRequest{Parent: "studies/s", Trials: []*pb.NewTrial{{}, nil, trial}})
		if tuner.CodeOf(err) != tuner.Invalid || !strings.Contains(err.Error(), field) || commands != nil {
			t.Errorf("error %v and %d trials, want one about %s", err, len(commands), field)
		}
	}
}

// Values that a map cannot hold are refused before they are sent.
func TestTwins(t *testing.T) {
	twice := []study.Metric{{Name: "m", Values: []float64{1}}, {Name: "m", Values: []float64{2}}}
	_, err := wire.Tell.Encode("s", study.Tell{Outcome: study.Outcome{State: study.Completed, Metrics: twice}})
	if tuner.CodeOf(err) != tuner.Invalid {
		t.Errorf("two metrics of one name: %v", err)
	}
	_, err = wire.Report.Encode("s", study.ReportValues{Reports: []study.Report{{Values: []study.NamedValue{{Name: "m", Value: 1}, {Name: "m", Value: 2}}}}})
	if tuner.CodeOf(err) != tuner.Invalid {
		t.Errorf("two values of one name: %v", err)
	}
	if _, err = wire.EncodeNew(study.Add{Outcome: study.Outcome{State: study.Completed, Metrics: twice}}); tuner.CodeOf(err) != tuner.Invalid {
		t.Errorf("two metrics of one name, of one of many: %v", err)
	}
}

// A number that is too large for the wire stays too large.
func TestSaturation(t *testing.T) {
	m, err := wire.Ask.Encode("s", study.Ask{Count: 1<<32 + 1})
	if err != nil || m.GetCount() != math.MaxInt32 {
		t.Errorf("asked for %d, %v", m.GetCount(), err)
	}
	s, err := wire.EncodeCreate("s", study.Create{Spec: study.Spec{MaxRetries: -1 << 40}})
	if n := s.GetSpec().GetMaxRetries(); err != nil || n != math.MinInt32 {
		t.Errorf("retries %d, %v", n, err)
	}
}
