package optuna

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/bkbtuner/bkb/proto/optuna"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/study"
)

// lasting is a store that survives its service.
type lasting struct{ store.Store }

func (lasting) Close() error { return nil }

// open returns a face over a store.
func open(t *testing.T, st store.Store, o Options) *Face {
	t.Helper()
	svc := engine.Open(lasting{st}, engine.Options{LongLived: true, Foreign: NewState})
	t.Cleanup(func() { svc.Close() })
	return New(svc, o)
}

// must ends the test after an error.
func must[R any](t *testing.T) func(R, error) R {
	return func(r R, err error) R {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
}

func newStudy(t *testing.T, f *Face, name string) int64 {
	t.Helper()
	return must[*pb.CreateNewStudyReply](t)(f.CreateNewStudy(t.Context(), &pb.CreateNewStudyRequest{
		StudyName: name, Directions: []pb.StudyDirection{pb.StudyDirection_MINIMIZE},
	})).StudyId
}

func newTrial(t *testing.T, f *Face, study int64, template *pb.Trial) int64 {
	t.Helper()
	return must[*pb.CreateNewTrialReply](t)(f.CreateNewTrial(t.Context(), &pb.CreateNewTrialRequest{
		StudyId: study, TemplateTrial: template, TemplateTrialIsNone: template == nil,
	})).TrialId
}

// trialsOf returns trials as a client gets them over the wire.
func trialsOf(t *testing.T, f *Face, r *pb.GetTrialsRequest) []*pb.Trial {
	t.Helper()
	text, err := proto.Marshal(must[*pb.GetTrialsReply](t)(f.GetTrials(t.Context(), r)))
	if err != nil {
		t.Fatal(err)
	}
	var reply pb.GetTrialsReply
	if err := proto.Unmarshal(text, &reply); err != nil {
		t.Fatal(err)
	}
	return reply.Trials
}

func wantCode(t *testing.T, what string, err error, code codes.Code, words ...string) {
	t.Helper()
	if status.Code(err) != code {
		t.Errorf("%s: %v, want the code %s", what, err, code)
	}
	for _, w := range words {
		if !strings.Contains(status.Convert(err).Message(), w) {
			t.Errorf("%s: %q does not say %q", what, status.Convert(err).Message(), w)
		}
	}
}

const (
	uniform = `{"name": "FloatDistribution", "attributes": {"step": null, "low": 0.0, "high": 1.0, "log": false}}`
	wider   = `{"name": "FloatDistribution", "attributes": {"step": null, "low": 0.0, "high": 9.0, "log": false}}`
	logged  = `{"name": "FloatDistribution", "attributes": {"step": null, "low": 0.1, "high": 1.0, "log": true}}`
	whole   = `{"name": "IntDistribution", "attributes": {"log": false, "step": 1, "low": 0, "high": 7}}`
	either  = `{"name": "CategoricalDistribution", "attributes": {"choices": [NaN, "NaN, really", null]}}`
	other   = `{"name": "CategoricalDistribution", "attributes": {"choices": [NaN, "b", null]}}`
	unknown = `{"name": "BetaDistribution", "attributes": {}}`
)

// A call that breaks a rule names the field, its value, the rule and the remedy, with the
// code that Optuna's client expects, and changes nothing.
func TestRefusals(t *testing.T) {
	f := open(t, memory.New(), Options{})
	ctx := t.Context()
	id := newStudy(t, f, "digits")
	trial := newTrial(t, f, id, nil)
	done := newTrial(t, f, id, &pb.Trial{State: pb.TrialState_COMPLETE, Values: []float64{1}})
	set := func(name string, value float64, distribution string) error {
		_, err := f.SetTrialParameter(ctx, &pb.SetTrialParameterRequest{TrialId: trial, ParamName: name, ParamValueInternal: value, Distribution: distribution})
		return err
	}
	for name, d := range map[string]string{"x": uniform, "n": whole, "c": either} {
		if err := set(name, 0, d); err != nil {
			t.Fatal(err)
		}
	}
	before := trialsOf(t, f, &pb.GetTrialsRequest{StudyId: id, TrialIdGreaterThan: -1})
	template := func(change func(*pb.Trial)) error {
		p := &pb.Trial{State: pb.TrialState_WAITING, Params: map[string]float64{"x": 0.5}, Distributions: map[string]string{"x": uniform}}
		change(p)
		_, err := f.CreateNewTrial(ctx, &pb.CreateNewTrialRequest{StudyId: id, TemplateTrial: p})
		return err
	}
	create := func(name string, directions ...pb.StudyDirection) error {
		_, err := f.CreateNewStudy(ctx, &pb.CreateNewStudyRequest{StudyName: name, Directions: directions})
		return err
	}
	for what, c := range map[string]struct {
		err   error
		code  codes.Code
		words []string
	}{
		"duplicate":       {create("digits", 0), codes.AlreadyExists, []string{`study_name = "digits"`, "optuna.digits", "load_if_exists=True"}},
		"no directions":   {create("new"), codes.InvalidArgument, []string{"directions = []", "must have one", "send MINIMIZE"}},
		"wrong direction": {create("new", 0, 7), codes.InvalidArgument, []string{"directions[1] = 7", "0 (MINIMIZE) or 1 (MAXIMIZE)"}},
		"other kind":      {set("x", 1, whole), codes.InvalidArgument, []string{`distributions["x"]`, "must be a FloatDistribution as in earlier trials, not a IntDistribution", "another name"}},
		"other log":       {set("x", 1, logged), codes.InvalidArgument, []string{"must have log = false as in earlier trials"}},
		"other choices":   {set("c", 1, other), codes.InvalidArgument, []string{"must have the choices", "NaN, really"}},
		"other range":     {set("x", 8, wider), codes.OK, nil},
		"no choice":       {set("c", 3, either), codes.InvalidArgument, []string{`params["c"] = 3`, "one of 3 choices", "to_internal_repr"}},
		"NaN choice":      {set("c", math.NaN(), either), codes.InvalidArgument, []string{`params["c"] = NaN`}},
		"NaN integer":     {set("n", math.NaN(), whole), codes.InvalidArgument, []string{`params["n"] = NaN`, "must be an integer"}},
		"unknown class":   {set("y", 1, unknown), codes.InvalidArgument, []string{"distribution = ", "BetaDistribution", "distribution_to_json"}},
		"no JSON":         {set("y", 1, "{"), codes.InvalidArgument, []string{`distribution = "{"`, "must be a distribution in Optuna's JSON"}},
		"template state": {
			template(func(p *pb.Trial) { p.State = 9 }), codes.InvalidArgument,
			[]string{"template_trial.state = 9", "4 (WAITING)"},
		},
		"template without distribution": {
			template(func(p *pb.Trial) { p.Distributions = nil }), codes.InvalidArgument,
			[]string{`template_trial.distributions["x"] = none`, "send one for each parameter"},
		},
		"template distribution": {
			template(func(p *pb.Trial) { p.Distributions["x"] = unknown }), codes.InvalidArgument,
			[]string{`template_trial.distributions["x"]`, "BetaDistribution"},
		},
		"template value": {
			template(func(p *pb.Trial) { p.Distributions["x"], p.Params["x"] = whole, math.Inf(1) }), codes.InvalidArgument,
			[]string{`params["x"] = +Inf`, "must be an integer"},
		},
		"template time": {
			template(func(p *pb.Trial) { p.DatetimeStart = "yesterday" }), codes.InvalidArgument,
			[]string{`template_trial.datetime_start = "yesterday"`, "2026-03-01"},
		},
		"template attribute without JSON": {
			template(func(p *pb.Trial) { p.SystemAttributes = map[string]string{"k": "{oops"} }), codes.InvalidArgument,
			[]string{`template_trial.system_attributes["k"] = "{oops"`, "must be JSON", "json.dumps"},
		},
		"template values": {
			template(func(p *pb.Trial) { p.State, p.Values = pb.TrialState_COMPLETE, []float64{1, 2} }), codes.InvalidArgument,
			[]string{"len(template_trial.values) = 2", "must be 1", "one value for each direction"},
		},
		"values": {
			func() error {
				_, err := f.SetTrialStateValues(ctx, &pb.SetTrialStateValuesRequest{TrialId: trial, State: pb.TrialState_COMPLETE, Values: []float64{1, 2}})
				return err
			}(), codes.InvalidArgument, []string{"len(values) = 2", "must be 1", "one value for each direction"},
		},
		"no values": {
			func() error {
				_, err := f.SetTrialStateValues(ctx, &pb.SetTrialStateValuesRequest{TrialId: trial, State: pb.TrialState_COMPLETE})
				return err
			}(), codes.InvalidArgument, []string{"len(values) = 0", "a COMPLETE trial must have 1", "or the state FAIL"},
		},
		"template without values": {
			template(func(p *pb.Trial) { p.State, p.Values = pb.TrialState_COMPLETE, nil }), codes.InvalidArgument,
			[]string{"len(template_trial.values) = 0", "a COMPLETE trial must have 1"},
		},
		"attribute with the key NaN": {
			func() error {
				_, err := f.SetStudyUserAttribute(ctx, &pb.SetStudyUserAttributeRequest{StudyId: id, Key: "k", Value: `{NaN: 1}`})
				return err
			}(), codes.InvalidArgument, []string{`value = "{NaN: 1}"`, "must be JSON"},
		},
		"attribute without JSON": {
			func() error {
				_, err := f.SetStudyUserAttribute(ctx, &pb.SetStudyUserAttributeRequest{StudyId: id, Key: "k", Value: "not JSON"})
				return err
			}(), codes.InvalidArgument, []string{`value = "not JSON"`, "must be JSON", "json.dumps"},
		},
		"template attribute": {
			template(func(p *pb.Trial) { p.UserAttributes = map[string]string{"k": ""} }), codes.InvalidArgument,
			[]string{`template_trial.user_attributes["k"] = ""`, "must be JSON", "json.dumps"},
		},
	} {
		wantCode(t, what, c.err, c.code, c.words...)
	}
	before[0].Params["x"], before[0].Distributions["x"] = 8, wider // the one that was accepted
	after := trialsOf(t, f, &pb.GetTrialsRequest{StudyId: id, TrialIdGreaterThan: -1})
	if len(after) != len(before) || !proto.Equal(after[0], before[0]) || !proto.Equal(after[1], before[1]) {
		t.Errorf("refused calls changed %v to %v", before, after)
	}

	const gone = 77
	for what, call := range map[string]struct {
		do   func(study, trial int64) error
		kept bool // whether a finished trial refuses it
	}{
		"delete": {func(s, _ int64) error { _, err := f.DeleteStudy(ctx, &pb.DeleteStudyRequest{StudyId: s}); return err }, false},
		"study user": {func(s, _ int64) error {
			_, err := f.SetStudyUserAttribute(ctx, &pb.SetStudyUserAttributeRequest{StudyId: s, Value: "1"})
			return err
		}, false},
		"study system": {func(s, _ int64) error {
			_, err := f.SetStudySystemAttribute(ctx, &pb.SetStudySystemAttributeRequest{StudyId: s, Value: "1"})
			return err
		}, false},
		"name": {func(s, _ int64) error {
			_, err := f.GetStudyNameFromId(ctx, &pb.GetStudyNameFromIdRequest{StudyId: s})
			return err
		}, false},
		"directions": {func(s, _ int64) error {
			_, err := f.GetStudyDirections(ctx, &pb.GetStudyDirectionsRequest{StudyId: s})
			return err
		}, false},
		"get study user": {func(s, _ int64) error {
			_, err := f.GetStudyUserAttributes(ctx, &pb.GetStudyUserAttributesRequest{StudyId: s})
			return err
		}, false},
		"get study system": {func(s, _ int64) error {
			_, err := f.GetStudySystemAttributes(ctx, &pb.GetStudySystemAttributesRequest{StudyId: s})
			return err
		}, false},
		"new trial": {func(s, _ int64) error {
			_, err := f.CreateNewTrial(ctx, &pb.CreateNewTrialRequest{StudyId: s, TemplateTrialIsNone: true})
			return err
		}, false},
		"trial of number": {func(s, _ int64) error {
			_, err := f.GetTrialIdFromStudyIdTrialNumber(ctx, &pb.GetTrialIdFromStudyIdTrialNumberRequest{StudyId: s})
			return err
		}, false},
		"trials":    {func(s, _ int64) error { _, err := f.GetTrials(ctx, &pb.GetTrialsRequest{StudyId: s}); return err }, false},
		"get trial": {func(_, n int64) error { _, err := f.GetTrial(ctx, &pb.GetTrialRequest{TrialId: n}); return err }, false},
		"parameter": {func(_, n int64) error {
			_, err := f.SetTrialParameter(ctx, &pb.SetTrialParameterRequest{TrialId: n, Distribution: uniform})
			return err
		}, true},
		"state": {func(_, n int64) error {
			_, err := f.SetTrialStateValues(ctx, &pb.SetTrialStateValuesRequest{TrialId: n, State: pb.TrialState_FAIL})
			return err
		}, true},
		"intermediate": {func(_, n int64) error {
			_, err := f.SetTrialIntermediateValue(ctx, &pb.SetTrialIntermediateValueRequest{TrialId: n})
			return err
		}, true},
		"trial user": {func(_, n int64) error {
			_, err := f.SetTrialUserAttribute(ctx, &pb.SetTrialUserAttributeRequest{TrialId: n, Value: "1"})
			return err
		}, true},
		"trial system": {func(_, n int64) error {
			_, err := f.SetTrialSystemAttribute(ctx, &pb.SetTrialSystemAttributeRequest{TrialId: n, Value: "1"})
			return err
		}, true},
	} {
		for _, bad := range []int64{gone, 0, -1, math.MinInt64, math.MaxInt64} {
			err := call.do(bad, bad<<numberBits)
			wantCode(t, what, err, codes.NotFound)
		}
		if call.kept {
			wantCode(t, what, call.do(id, done), codes.FailedPrecondition, fmt.Sprintf("trial_id = %d", done), "is COMPLETE", "finished trials cannot change")
			wantCode(t, what, call.do(id, trial+50), codes.NotFound, fmt.Sprintf("trial_id = %d", trial+50))
		}
	}
	_, err := f.GetStudyIdFromName(ctx, &pb.GetStudyIdFromNameRequest{StudyName: "Digits"})
	wantCode(t, "name", err, codes.NotFound, `study_name = "Digits"`, "tuner studies")
	_, err = f.GetTrialIdFromStudyIdTrialNumber(ctx, &pb.GetTrialIdFromStudyIdTrialNumberRequest{StudyId: id, TrialNumber: 2})
	wantCode(t, "number", err, codes.NotFound, "trial_number = 2", "has 2")
	_, err = f.SetTrialStateValues(ctx, &pb.SetTrialStateValuesRequest{TrialId: trial, State: 5})
	wantCode(t, "state", err, codes.InvalidArgument, "state = 5", "4 (WAITING)")
}

// Studies of this service are apart from those of Optuna, also under similar names.
func TestApart(t *testing.T) {
	st := memory.New()
	f := open(t, st, Options{})
	create := study.Create{Spec: spec(t)}
	create.Spec.Proposer.Name = tuner.DefaultProposer
	invalid := (*study.InvalidError)(nil)
	if _, err := f.tuner.CreateStudy(t.Context(), "optuna.own", create); !errors.As(err, &invalid) || !strings.Contains(err.Error(), "only names of studies of Optuna begin with optuna.") {
		t.Fatal(err)
	}
	var s study.Study // as an older release made it
	_, events, err := s.Decide(time.Now(), create)
	if err != nil {
		t.Fatal(err)
	}
	own := must[store.Info](t)(st.Create(t.Context(), "optuna.own", events))
	_, err = f.GetStudyIdFromName(t.Context(), &pb.GetStudyIdFromNameRequest{StudyName: "own"})
	wantCode(t, "find", err, codes.NotFound)
	_, err = f.CreateNewStudy(t.Context(), &pb.CreateNewStudyRequest{StudyName: "own", Directions: make([]pb.StudyDirection, 1)})
	wantCode(t, "create", err, codes.AlreadyExists, "optuna.own")
	_, err = f.DeleteStudy(t.Context(), &pb.DeleteStudyRequest{StudyId: int64(own.ID)})
	wantCode(t, "delete", err, codes.NotFound)
	if all := must[*pb.GetAllStudiesReply](t)(f.GetAllStudies(t.Context(), nil)); len(all.Studies) != 0 {
		t.Error(all)
	}
	if _, err := f.tuner.Study(t.Context(), "optuna.own"); err != nil {
		t.Error(err)
	}
}

// Of the clients that start a waiting trial at once, one does, and the start stays its.
func TestWaitingOnce(t *testing.T) {
	f := open(t, memory.New(), Options{})
	id := newStudy(t, f, "s")
	for range 20 {
		trial := newTrial(t, f, id, &pb.Trial{State: pb.TrialState_WAITING})
		var won atomic.Int32
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				r, err := f.SetTrialStateValues(t.Context(), &pb.SetTrialStateValuesRequest{TrialId: trial, State: pb.TrialState_RUNNING})
				if err != nil {
					t.Error(err)
				} else if r.TrialUpdated {
					won.Add(1)
				}
			})
		}
		all.Wait()
		if won.Load() != 1 {
			t.Fatalf("%d clients started the trial", won.Load())
		}
	}
}

// random makes random calls on a study, as clients of Optuna do.
type random struct {
	*rand.Rand
	f     *Face
	study int64
	open  []int64
}

func (r *random) call(t *testing.T) {
	ctx := t.Context()
	key, value := fmt.Sprint("k", r.IntN(5)), fmt.Sprintf(`[NaN, "%d"]`, r.Int())
	if len(r.open) == 0 || r.IntN(6) == 0 {
		var template *pb.Trial
		if r.IntN(3) == 0 {
			template = &pb.Trial{
				State: pb.TrialState(r.IntN(5)), Values: []float64{[]float64{r.NormFloat64(), math.Inf(1)}[r.IntN(2)]}, DatetimeStart: "2026-03-01 12:30:00.123456",
				Params: map[string]float64{"x": r.Float64()}, Distributions: map[string]string{"x": uniform},
				SystemAttributes: map[string]string{key: value}, IntermediateValues: map[int64]float64{r.Int64N(9): math.NaN()},
			}
		}
		id := newTrial(t, r.f, r.study, template)
		if template == nil || !over(template.State) {
			r.open = append(r.open, id)
		}
		return
	}
	i := r.IntN(len(r.open))
	trial := r.open[i]
	var err error
	switch r.IntN(8) {
	case 0:
		_, err = r.f.SetStudyUserAttribute(ctx, &pb.SetStudyUserAttributeRequest{StudyId: r.study, Key: key, Value: value})
	case 1:
		_, err = r.f.SetStudySystemAttribute(ctx, &pb.SetStudySystemAttributeRequest{StudyId: r.study, Key: key, Value: value})
	case 2:
		_, err = r.f.SetTrialUserAttribute(ctx, &pb.SetTrialUserAttributeRequest{TrialId: trial, Key: key, Value: value})
	case 3:
		_, err = r.f.SetTrialSystemAttribute(ctx, &pb.SetTrialSystemAttributeRequest{TrialId: trial, Key: key, Value: value})
	case 4:
		_, err = r.f.SetTrialIntermediateValue(ctx, &pb.SetTrialIntermediateValueRequest{TrialId: trial, Step: r.Int64N(5) - 1, IntermediateValue: r.NormFloat64()})
	case 5, 6:
		_, err = r.f.SetTrialParameter(ctx, &pb.SetTrialParameterRequest{TrialId: trial, ParamName: "x", ParamValueInternal: r.Float64(), Distribution: uniform})
	case 7:
		state := pb.TrialState(r.IntN(5))
		_, err = r.f.SetTrialStateValues(ctx, &pb.SetTrialStateValuesRequest{TrialId: trial, State: state, Values: []float64{-math.MaxFloat64}})
		if over(state) {
			r.open = slices.Delete(r.open, i, i+1)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// seen is all that clients see of a face.
func seen(t *testing.T, f *Face) string {
	t.Helper()
	var b strings.Builder
	for _, s := range must[*pb.GetAllStudiesReply](t)(f.GetAllStudies(t.Context(), nil)).Studies {
		fmt.Fprintln(&b, s.StudyId, s.StudyName, s.Directions, s.UserAttributes, s.SystemAttributes)
		for _, trial := range trialsOf(t, f, &pb.GetTrialsRequest{StudyId: s.StudyId, TrialIdGreaterThan: -1}) {
			text, err := encoding.Marshal(trial)
			if err != nil {
				t.Fatal(err)
			}
			one := must[*pb.GetTrialReply](t)(f.GetTrial(t.Context(), &pb.GetTrialRequest{TrialId: trial.TrialId}))
			if again, _ := encoding.Marshal(one.Trial); string(again) != string(text) {
				t.Fatalf("GetTrial gives %v, GetTrials %v", one.Trial, trial)
			}
			fmt.Fprintf(&b, "%x\n", text)
		}
	}
	return b.String()
}

// After any calls, a service that reads the store anew gives the same answers, and a
// client that asks for news only has what a new client gets.
func TestReplay(t *testing.T) {
	st := memory.New()
	f := open(t, st, Options{})
	r := &random{Rand: rand.New(rand.NewPCG(1, 2)), f: f, study: newStudy(t, f, "Näme of a study")}
	cached := make(map[int64]*pb.Trial)
	for step := range 600 {
		r.call(t)
		if step%20 > 0 {
			continue
		}
		// This is what the cache of Optuna's client does.
		last, unfinished := int64(-1), []int64(nil)
		for id, trial := range cached {
			if over(trial.State) {
				last = max(last, id)
			} else {
				unfinished = append(unfinished, id)
			}
		}
		for _, trial := range trialsOf(t, f, &pb.GetTrialsRequest{StudyId: r.study, TrialIdGreaterThan: last, IncludedTrialIds: unfinished}) {
			cached[trial.TrialId] = trial
		}
		all := trialsOf(t, f, &pb.GetTrialsRequest{StudyId: r.study, TrialIdGreaterThan: -1})
		for i, trial := range all {
			if have, ok := cached[trial.TrialId]; !ok || fmt.Sprint(have) != fmt.Sprint(trial) || trial.Number != int64(i) {
				t.Fatalf("step %d: the client has %v, and the server %v", step, have, trial)
			}
		}
		if len(all) != len(cached) {
			t.Fatalf("the client has %d trials of %d", len(cached), len(all))
		}
		if again := open(t, st, Options{}); seen(t, again) != seen(t, f) {
			t.Fatalf("step %d: a service that reads the store gives\n%s\nnot\n%s", step, seen(t, again), seen(t, f))
		}
	}
	if len(cached) < 50 {
		t.Errorf("there were only %d trials", len(cached))
	}
}

// Ids of trials that are not of the study are not in the answer.
func TestForeignIDs(t *testing.T) {
	f := open(t, memory.New(), Options{})
	a, b := newStudy(t, f, "a"), newStudy(t, f, "b")
	first, second, elsewhere := newTrial(t, f, a, nil), newTrial(t, f, a, nil), newTrial(t, f, b, nil)
	for _, c := range []struct {
		after int64
		ids   []int64
		want  []int64
	}{
		{-1, nil, []int64{first, second}},
		{math.MinInt64, nil, []int64{first, second}},
		{0, []int64{first}, []int64{first, second}},
		{first, []int64{first, first}, []int64{first, second}},
		{first, nil, []int64{second}},
		{second, []int64{elsewhere, second, 0, -7, math.MaxInt64}, []int64{second}},
		{math.MaxInt64, []int64{first}, []int64{first}},
		{elsewhere, nil, nil},
	} {
		var got []int64
		for _, trial := range trialsOf(t, f, &pb.GetTrialsRequest{StudyId: a, TrialIdGreaterThan: c.after, IncludedTrialIds: c.ids}) {
			got = append(got, trial.TrialId)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("after %d with %v: %v, want %v", c.after, c.ids, got, c.want)
		}
	}
}

// Names in the store are valid, differ, and show Optuna's where it is valid.
func TestStoreName(t *testing.T) {
	want := map[string]string{"digits": "optuna.digits", "no-name-f6e0a7c1-5c1e-4c0e-b3d1-6c2a1d2b3c4d": "optuna.no-name-f6e0a7c1-5c1e-4c0e-b3d1-6c2a1d2b3c4d"}
	names := make(map[string]string)
	for _, name := range []string{
		"digits", "no-name-f6e0a7c1-5c1e-4c0e-b3d1-6c2a1d2b3c4d", "", " ", "Digits", "digits ", "日本語", "a/b", "-a", "a-", ".", strings.Repeat("x", 200), strings.Repeat("x", 201),
		"digits.0123456789abcdef", "0123456789abcdef", "\x00", "a\nb",
	} {
		got := StoreName(name)
		if w := want[name]; w != "" && got != w {
			t.Errorf("%q is %s, want %s", name, got, w)
		}
		if err := store.CheckName(got); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		if twin, taken := names[got]; taken {
			t.Errorf("%q and %q are both %s", name, twin, got)
		}
		names[got] = name
		if derived := StoreName(strings.TrimPrefix(got, Prefix)); got != Prefix+name && derived == got {
			t.Errorf("a study could be named like %q in the store", name)
		}
	}
	f := open(t, memory.New(), Options{})
	for _, name := range slices.Sorted(maps.Values(names)) {
		id := newStudy(t, f, name)
		found := must[*pb.GetStudyIdFromNameReply](t)(f.GetStudyIdFromName(t.Context(), &pb.GetStudyIdFromNameRequest{StudyName: name}))
		back := must[*pb.GetStudyNameFromIdReply](t)(f.GetStudyNameFromId(t.Context(), &pb.GetStudyNameFromIdRequest{StudyId: id}))
		if found.StudyId != id || back.StudyName != name {
			t.Errorf("%q has id %d and is found as %d, and named %q", name, id, found.StudyId, back.StudyName)
		}
	}
}

// Distributions of old files and in the short form are read.
func TestParseDistribution(t *testing.T) {
	for text, want := range map[string]Distribution{
		uniform: {Kind: floatingPoint},
		logged:  {Kind: floatingPoint, Log: true},
		whole:   {Kind: integer},
		`{"name": "LogUniformDistribution", "attributes": {"low": 1, "high": 2, "log": true}}`: {Kind: "LogUniformDistribution", Log: true},
		`{"type": "float", "low": 0, "high": 1, "log": true}`:                                  {Kind: floatingPoint, Log: true},
		`{"type": "int", "low": 0, "high": 1}`:                                                 {Kind: integer},
		`{"type": "categorical", "choices": [1, "a"]}`:                                         {Kind: categorical, Choices: []any{1.0, "a"}},
	} {
		if got, err := ParseDistribution(text); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{``, `[]`, `{}`, `null`, `{"type": "float`, unknown, `{"type": "beta"}`, `{"type": "categorical", "choices": []}`} {
		if d, err := ParseDistribution(text); err == nil {
			t.Errorf("%q is %v", text, d)
		}
	}
}

// A running trial without a change fails after its time, and no other.
func TestFailStale(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	st := memory.New()
	svc := engine.Open(lasting{st}, engine.Options{LongLived: true, Foreign: NewState, Now: func() time.Time { return now }})
	defer svc.Close()
	f := New(svc, Options{Now: func() time.Time { return now }, Logger: slog.New(slog.DiscardHandler)})
	id := newStudy(t, f, "s")
	quiet, busy := newTrial(t, f, id, nil), newTrial(t, f, id, nil)
	waiting := newTrial(t, f, id, &pb.Trial{State: pb.TrialState_WAITING})
	states := func() (out []pb.TrialState) {
		for _, trial := range []int64{quiet, busy, waiting} {
			out = append(out, must[*pb.GetTrialReply](t)(f.GetTrial(t.Context(), &pb.GetTrialRequest{TrialId: trial})).Trial.State)
		}
		return out
	}
	pass := func(d time.Duration) {
		now = now.Add(d)
		if err := f.failStale(t.Context(), now.Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	pass(50 * time.Minute)
	if _, err := f.SetTrialIntermediateValue(t.Context(), &pb.SetTrialIntermediateValueRequest{TrialId: busy}); err != nil {
		t.Fatal(err)
	}
	pass(20 * time.Minute)
	if got := states(); !slices.Equal(got, []pb.TrialState{pb.TrialState_FAIL, pb.TrialState_RUNNING, pb.TrialState_WAITING}) {
		t.Errorf("after 70 minutes: %v", got)
	}
	pass(24 * time.Hour)
	if got := states(); !slices.Equal(got, []pb.TrialState{pb.TrialState_FAIL, pb.TrialState_FAIL, pb.TrialState_WAITING}) {
		t.Errorf("after a day: %v", got)
	}
	// The study is idle now, until a trial runs again.
	if _, err := f.SetTrialStateValues(t.Context(), &pb.SetTrialStateValuesRequest{TrialId: waiting, State: pb.TrialState_RUNNING}); err != nil {
		t.Fatal(err)
	}
	pass(2 * time.Hour)
	if got := states(); got[2] != pb.TrialState_FAIL {
		t.Errorf("the trial that waited is %v", got[2])
	}
}
