package wiretest_test

import (
	"bytes"
	stdcmp "cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/client"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/wire/wiretest"
)

// like compares the answers of two services without times.
var like = cmp.Options{
	cmpopts.IgnoreTypes(time.Time{}), cmpopts.IgnoreUnexported(study.Trial{}), cmpopts.EquateNaNs(), cmpopts.EquateEmpty(),
	cmp.Comparer(func(a, b *space.Space) bool { return a == b || a != nil && b != nil && a.Equal(b) }),
	cmp.Comparer(func(a, b space.Config) bool { return a.Equal(b) }),
	cmp.Comparer(func(a, b space.Value) bool { return a == b }),
}

// TestTwins makes the same calls to a service in the process and to one over the wire.
// Answers, codes and messages of errors are the same.
func TestTwins(t *testing.T) {
	t.Parallel() // it waits more than it computes
	for name, serve := range map[string]func(testing.TB, tuner.Service, server.Options) string{"gRPC": address, "HTTP": serveHTTP} {
		t.Run("small/"+name, func(t *testing.T) {
			local, far := wiretest.New(t), wiretest.New(t)
			local.BackupData = bytes.Repeat([]byte("0123456789abcdef"), 100_000)
			far.BackupData = local.BackupData
			twins(t, local, far, serve, tuner.OK, tuner.OK)
		})
		t.Run("whole/"+name, func(t *testing.T) {
			local, far := engine.Open(memory.New(), engine.Options{}), engine.Open(memory.New(), engine.Options{})
			t.Cleanup(func() { local.Close(); far.Close() })
			twins(t, local, far, serve, tuner.Unsupported, tuner.Unsupported)
		})
	}
	t.Run("whole/forwarded", func(t *testing.T) {
		local := engine.Open(memory.New(), engine.Options{})
		t.Cleanup(func() { local.Close() })
		twins(t, local, nil, serveForwarded, tuner.Unsupported, tuner.Unsupported)
	})
}

// twins runs the script on two services. The codes backup and diagnosis are the expected
// codes of these calls.
func twins(t *testing.T, local, far tuner.Service, serve func(testing.TB, tuner.Service, server.Options) string, backup, diagnosis tuner.Code) {
	remote := dial(t, serve(t, far, server.Options{Limits: free, DrainDelay: time.Millisecond}), client.Options{Plaintext: true, RetryFor: -1})
	for _, step := range script(t, backup, diagnosis) {
		want, wantErr := step.do(t.Context(), local)
		got, gotErr := step.do(t.Context(), remote)
		if tuner.CodeOf(gotErr) != step.code || tuner.CodeOf(wantErr) != step.code {
			t.Fatalf("%s: the codes are %q over the wire and %q in the process, want %q\n%v\n%v", step.name, tuner.CodeOf(gotErr), tuner.CodeOf(wantErr), step.code, gotErr, wantErr)
		}
		if wantErr != nil && gotErr.Error() != wantErr.Error() {
			t.Errorf("%s: over the wire the error reads %q, in the process %q", step.name, gotErr, wantErr)
		}
		if diff := cmp.Diff(want, got, like...); wantErr == nil && diff != "" {
			t.Errorf("%s: different over the wire (-local +remote):\n%s", step.name, diff)
		}
	}
}

type step struct {
	name string
	code tuner.Code
	do   func(context.Context, tuner.Service) (any, error)
}

type listed struct {
	List any
	More bool
}

func script(t *testing.T, backup, diagnosis tuner.Code) []step {
	of := func(v any, err error) (any, error) { return v, err }
	tell := func(id string, trial, epoch int, o study.Outcome) func(context.Context, tuner.Service) (any, error) {
		return func(ctx context.Context, s tuner.Service) (any, error) {
			return of(s.Tell(ctx, "s", study.Tell{RequestID: id, Trial: trial, Epoch: epoch, Outcome: o}))
		}
	}
	create := func(name, id string, spec study.Spec) func(context.Context, tuner.Service) (any, error) {
		return func(ctx context.Context, s tuner.Service) (any, error) {
			return of(s.CreateStudy(ctx, name, study.Create{RequestID: id, Spec: spec}))
		}
	}
	many := func(id string, xs ...float64) func(context.Context, tuner.Service) (any, error) {
		return func(ctx context.Context, s tuner.Service) (any, error) {
			var commands []study.Command
			for i, x := range xs {
				one := ""
				if id != "" {
					one = fmt.Sprint(id, " ", i)
				}
				if i%2 == 0 {
					commands = append(commands, study.Enqueue{RequestID: one, Config: config(x, 3)})
				} else {
					commands = append(commands, study.Add{RequestID: one, Config: config(x, 3), Outcome: completed(x)})
				}
			}
			return of(s.AddAll(ctx, "s", commands))
		}
	}
	ask := func(c study.Ask) func(context.Context, tuner.Service) (any, error) {
		return func(ctx context.Context, s tuner.Service) (any, error) { return of(s.Ask(ctx, "s", c)) }
	}
	stored := tuner.OK
	if backup != tuner.OK {
		stored = tuner.Unsupported // without a folder
	}
	other := spec(t)
	other.MaxTrials, other.Seed = 1, 0
	odd := spec(t)
	odd.Space, _, _ = space.Parse([]byte(`{"version":1,"parameters":{"lr":{"type":"float","low":1e-5,"high":1.0}}}`))
	data := bytes.Repeat([]byte("0123456789"), 60_000) // more than one part
	put := func(file string, n, from, to int) func(context.Context, tuner.Service) (any, error) {
		return func(ctx context.Context, s tuner.Service) (any, error) {
			c := tuner.WriteArtifact{Trial: 1, File: file, UploadID: "u", Size: int64(n), Offset: int64(from), Data: data[from:to]}
			if to == n {
				c.SHA256 = fmt.Sprintf("%x", sha256.Sum256(data[:n]))
			}
			return of(s.WriteArtifact(ctx, "s", c))
		}
	}
	get := func(q tuner.ReadArtifact) func(context.Context, tuner.Service) (any, error) {
		return func(ctx context.Context, s tuner.Service) (any, error) { return of(s.ReadArtifact(ctx, "s", q)) }
	}
	files := func(trial int) func(context.Context, tuner.Service) (any, error) {
		return func(ctx context.Context, s tuner.Service) (any, error) {
			return of(s.Artifacts(ctx, "s", tuner.ListArtifacts{Trial: trial}))
		}
	}
	remove := func(c tuner.DeleteArtifact) func(context.Context, tuner.Service) (any, error) {
		return func(ctx context.Context, s tuner.Service) (any, error) { return nil, s.DeleteArtifact(ctx, "s", c) }
	}
	steps := []step{
		{"create", "", create("s", "c1", spec(t))},
		{"create again", "", create("s", "c1", spec(t))},
		{"create another of the name", tuner.AlreadyExists, create("s", "c2", spec(t))},
		{"create without a space", tuner.Invalid, create("t", "", study.Spec{})},
		{"create with a bad name", tuner.Invalid, create("../x", "", spec(t))},
		{"create with too many retries", tuner.Invalid, create("t", "", func() study.Spec { s := spec(t); s.MaxRetries = math.MaxInt32; return s }())},
		{"create small", "", create("small", "c3", other)},
		{"create with warnings", "", create("z.odd", "", odd)},
		{"study", "", func(ctx context.Context, s tuner.Service) (any, error) { return of(s.Study(ctx, "s")) }},
		{"no study", tuner.NotFound, func(ctx context.Context, s tuner.Service) (any, error) { return of(s.Study(ctx, "none")) }},
		{"impossible study", tuner.NotFound, func(ctx context.Context, s tuner.Service) (any, error) { return of(s.Study(ctx, "a/b")) }},
		{"studies", "", func(ctx context.Context, s tuner.Service) (any, error) {
			list, more, err := s.Studies(ctx, "", 2)
			return listed{list, more}, err
		}},
		{"further studies", "", func(ctx context.Context, s tuner.Service) (any, error) {
			list, more, err := s.Studies(ctx, "small", 0)
			return listed{list, more}, err
		}},
		{"ask", "", ask(study.Ask{RequestID: "a1", Count: 3, Worker: "w"})},
		{"ask again", "", ask(study.Ask{RequestID: "a1", Count: 3, Worker: "w"})},
		{"ask with the id of another", tuner.Invalid, ask(study.Ask{RequestID: "a1", Count: 2})},
		{"ask for what is useful", "", ask(study.Ask{Count: tuner.AutoCount, New: true, Lease: time.Minute})},
		{"ask for too many", tuner.Invalid, ask(study.Ask{Count: math.MaxInt32})},
		{"ask with a lease that is too short", tuner.Invalid, ask(study.Ask{Lease: -1})},
		{"ask with a worker that has no name but a line end", tuner.Invalid, ask(study.Ask{Worker: "\n"})},
		{"heartbeat", "", func(ctx context.Context, s tuner.Service) (any, error) {
			return of(s.Heartbeat(ctx, "s", study.Heartbeat{Trial: 0, Epoch: 1}))
		}},
		{"heartbeat of no trial", tuner.NotFound, func(ctx context.Context, s tuner.Service) (any, error) {
			return of(s.Heartbeat(ctx, "s", study.Heartbeat{Trial: 99}))
		}},
		{"heartbeat of another epoch", tuner.Invalid, func(ctx context.Context, s tuner.Service) (any, error) {
			return of(s.Heartbeat(ctx, "s", study.Heartbeat{Trial: 0, Epoch: 2}))
		}},
		{"report", "", func(ctx context.Context, s tuner.Service) (any, error) {
			return of(s.Report(ctx, "s", study.ReportValues{Trial: 0, Reports: []study.Report{{Step: 1, Values: []study.NamedValue{{Name: "loss", Value: math.NaN()}, {Name: "acc", Value: 1}}}}}))
		}},
		{"report otherwise", tuner.Invalid, func(ctx context.Context, s tuner.Service) (any, error) {
			return of(s.Report(ctx, "s", study.ReportValues{Trial: 0, Reports: []study.Report{{Step: 1, Values: []study.NamedValue{{Name: "acc", Value: 2}}}}}))
		}},
		{"tell", "", tell("t1", 0, 1, completed(0.5))},
		{"tell again", "", tell("t1", 0, 1, completed(0.5))},
		{"tell otherwise", tuner.AlreadyTold, tell("", 0, 1, completed(0.6))},
		{"tell infinity", "", tell("", 1, 0, completed(math.Inf(1)))},
		{"tell NaN", "", tell("", 2, 0, completed(math.NaN()))},
		{"tell the impossible", tuner.Invalid, tell("", 3, 0, completed(math.Inf(-1)))},
		{"tell nothing", tuner.Invalid, tell("", 3, 0, study.Outcome{})},
		{"enqueue", "", func(ctx context.Context, s tuner.Service) (any, error) {
			return of(s.Enqueue(ctx, "s", study.Enqueue{Config: config(0.5, 3), Attributes: study.Attributes{"a": "b"}}))
		}},
		{"enqueue nonsense", tuner.Invalid, func(ctx context.Context, s tuner.Service) (any, error) {
			return of(s.Enqueue(ctx, "s", study.Enqueue{Config: config(math.NaN(), 30)}))
		}},
		{"tell what nobody runs", tuner.TrialState, tell("", 4, 0, completed(1))},
		{"add", "", func(ctx context.Context, s tuner.Service) (any, error) {
			return of(s.Add(ctx, "s", study.Add{Config: config(-0.5, 9), Outcome: completed(0.1), Reports: []study.Report{{Step: 0, Values: []study.NamedValue{{Name: "loss", Value: 7}}}}}))
		}},
		{"add many", "", many("many", 0.25, -0.25, 0.75)},
		{"add many again", "", many("many", 0.25, -0.25, 0.75)},
		{"add many and more", "", many("many", 0.25, -0.25, 0.75, -0.75)},
		{"add many with the id of another", tuner.Invalid, many("many", 0.25, -0.5)},
		{"add many up to nonsense", tuner.Invalid, many("upto", 0.1, 0.2, 7, 0.3)},
		{"add many without an id", tuner.Invalid, many("", 0.1)},
		{"add none", "", many("none")},
		{"add too many", tuner.Invalid, many("few", make([]float64, tuner.MaxPage+1)...)},
		{"trial", "", func(ctx context.Context, s tuner.Service) (any, error) { return of(s.Trial(ctx, "s", 0)) }},
		{"reports", "", func(ctx context.Context, s tuner.Service) (any, error) {
			list, more, err := s.Reports(ctx, "s", 0, 0, 1)
			return listed{list, more}, err
		}},
		{"reports past the last", "", func(ctx context.Context, s tuner.Service) (any, error) {
			list, more, err := s.Reports(ctx, "s", 0, 9, 0)
			return listed{list, more}, err
		}},
		{"reports of no trial", tuner.NotFound, func(ctx context.Context, s tuner.Service) (any, error) {
			list, more, err := s.Reports(ctx, "s", 99, 0, 0)
			return listed{list, more}, err
		}},
		{"trials with reports", "", func(ctx context.Context, s tuner.Service) (any, error) {
			list, more, err := s.Trials(ctx, "s", tuner.Filter{Reports: true})
			return listed{list, more}, err
		}},
		{"no trial", tuner.NotFound, func(ctx context.Context, s tuner.Service) (any, error) { return of(s.Trial(ctx, "s", 99)) }},
		{"trials", "", func(ctx context.Context, s tuner.Service) (any, error) {
			list, more, err := s.Trials(ctx, "s", tuner.Filter{First: 1, Limit: 2})
			return listed{list, more}, err
		}},
		{"trials in states", "", func(ctx context.Context, s tuner.Service) (any, error) {
			list, more, err := s.Trials(ctx, "s", tuner.Filter{States: []study.TrialState{study.Completed, study.Queued}})
			return listed{list, more}, err
		}},
		{"trials of a worker", "", func(ctx context.Context, s tuner.Service) (any, error) {
			list, more, err := s.Trials(ctx, "s", tuner.Filter{Worker: "w"})
			return listed{list, more}, err
		}},
		{"columns", "", func(ctx context.Context, s tuner.Service) (any, error) {
			names := []string{"value/", "state", "origin", "phase", "epoch", "cost", "mean/", "parameter/"} // no times, which differ
			return of(s.Columns(ctx, "s", tuner.ColumnQuery{Names: names}))
		}},
		{"columns since", "", func(ctx context.Context, s tuner.Service) (any, error) {
			return of(s.Columns(ctx, "s", tuner.ColumnQuery{Names: []string{"state", "parameter/"}, After: 5}))
		}},
		{"columns of no name", tuner.Invalid, func(ctx context.Context, s tuner.Service) (any, error) {
			return of(s.Columns(ctx, "s", tuner.ColumnQuery{Names: []string{"none"}}))
		}},
		{"columns of no study", tuner.NotFound, func(ctx context.Context, s tuner.Service) (any, error) {
			return of(s.Columns(ctx, "none", tuner.ColumnQuery{}))
		}},
		{"best", "", func(ctx context.Context, s tuner.Service) (any, error) { return of(s.Best(ctx, "s")) }},
		{"best of none", "", func(ctx context.Context, s tuner.Service) (any, error) { return of(s.Best(ctx, "small")) }},
		{"diagnosis", diagnosis, func(ctx context.Context, s tuner.Service) (any, error) { return of(s.Diagnose(ctx, "s")) }},
		{"diagnosis of no model", tuner.Unsupported, func(ctx context.Context, s tuner.Service) (any, error) { return of(s.Diagnose(ctx, "small")) }},
		{"predictions", diagnosis, func(ctx context.Context, s tuner.Service) (any, error) {
			return of(s.Predict(ctx, "s", tuner.PredictQuery{Configs: []space.Config{config(0.5, 3), config(0.25, 4)}, Slices: &tuner.SliceQuery{Points: 9}}))
		}},
		{"predictions through a configuration", diagnosis, func(ctx context.Context, s tuner.Service) (any, error) {
			c := config(0.5, 3)
			return of(s.Predict(ctx, "s", tuner.PredictQuery{Slices: &tuner.SliceQuery{Parameters: []string{"lr"}, Through: &c}}))
		}},
		{"predictions of no model", tuner.Unsupported, func(ctx context.Context, s tuner.Service) (any, error) {
			return of(s.Predict(ctx, "small", tuner.PredictQuery{}))
		}},
		{"importance", "", func(ctx context.Context, s tuner.Service) (any, error) {
			return of(s.Importance(ctx, "s", tuner.ImportanceQuery{}))
		}},
		{"importance by the data", "", func(ctx context.Context, s tuner.Service) (any, error) {
			return of(s.Importance(ctx, "s", tuner.ImportanceQuery{Method: tuner.ImportanceData, Objective: "loss"}))
		}},
		{"importance for no objective", tuner.Invalid, func(ctx context.Context, s tuner.Service) (any, error) {
			return of(s.Importance(ctx, "s", tuner.ImportanceQuery{Objective: "none"}))
		}},
		{"attributes of a study", "", func(ctx context.Context, s tuner.Service) (any, error) {
			return nil, s.SetAttributes(ctx, "s", study.SetAttributes{Trial: study.OfStudy, Attributes: study.Attributes{"k": "v"}})
		}},
		{"attributes of a trial", "", func(ctx context.Context, s tuner.Service) (any, error) {
			return nil, s.SetAttributes(ctx, "s", study.SetAttributes{Trial: 1, Attributes: study.Attributes{"k": "v"}})
		}},
		{"upload", stored, put("m.pt", len(data), 0, tuner.MaxArtifactPart)},
		{"upload again", stored, put("m.pt", len(data), 0, tuner.MaxArtifactPart)},
		{"upload the end", stored, put("m.pt", len(data), tuner.MaxArtifactPart, len(data))},
		{"upload the end again", stored, put("m.pt", len(data), tuner.MaxArtifactPart, len(data))},
		{"upload nothing", stored, put("ä ö", 0, 0, 0)},
		{"upload past the quota", stdcmp.Or(stored, tuner.Exhausted), put("n.pt", len(data), 0, 1)},
		{"upload elsewhere", tuner.Invalid, put("../x", 1, 0, 1)},
		{"upload from the middle", stdcmp.Or(stored, tuner.Invalid), put("z", 10, 5, 10)},
		{"artifacts", stored, files(1)},
		{"artifacts of a trial without", stored, files(0)},
		{"artifacts of no trial", tuner.NotFound, files(99)},
		{"download", stored, get(tuner.ReadArtifact{Trial: 1, File: "m.pt"})},
		{"download a part", stored, get(tuner.ReadArtifact{Trial: 1, File: "m.pt", Offset: tuner.MaxArtifactPart, Limit: 7})},
		{"download nothing", stored, get(tuner.ReadArtifact{Trial: 1, File: "ä ö"})},
		{"download what is not there", stdcmp.Or(stored, tuner.NotFound), get(tuner.ReadArtifact{Trial: 1, File: "m"})},
		{"download what is not there any more", stdcmp.Or(stored, tuner.NotFound), get(tuner.ReadArtifact{Trial: 1, File: "m.pt", SHA256: "0"})},
		{"delete an artifact", stored, remove(tuner.DeleteArtifact{Trial: 1, File: "m.pt"})},
		{"delete an artifact again", stored, remove(tuner.DeleteArtifact{Trial: 1, File: "m.pt"})},
		{"delete an upload", stored, remove(tuner.DeleteArtifact{Trial: 1, File: "m.pt", UploadID: "u"})},
		{"artifacts left", stored, files(1)},
		{"pause", "", func(ctx context.Context, s tuner.Service) (any, error) { return of(s.Pause(ctx, "s", study.Pause{})) }},
		{"ask a paused study", tuner.Paused, ask(study.Ask{})},
		{"resume", "", func(ctx context.Context, s tuner.Service) (any, error) { return of(s.Resume(ctx, "s", study.Resume{})) }},
		{"finish", "", func(ctx context.Context, s tuner.Service) (any, error) {
			return of(s.Finish(ctx, "s", study.Finish{Detail: "enough"}))
		}},
		{"ask a finished study", tuner.Finished, ask(study.Ask{})},
		{"extend without a limit", tuner.Invalid, func(ctx context.Context, s tuner.Service) (any, error) {
			return of(s.Extend(ctx, "s", study.Extend{MaxTrials: 7, More: true}))
		}},
		{"extend", "", func(ctx context.Context, s tuner.Service) (any, error) { return of(s.Extend(ctx, "s", study.Extend{})) }},
		{"ask for the last", "", func(ctx context.Context, s tuner.Service) (any, error) { return of(s.Ask(ctx, "small", study.Ask{})) }},
		{"watch", "", func(ctx context.Context, s tuner.Service) (any, error) {
			return watched(ctx, s, "s", 3, 5)
		}},
		{"watch nothing", tuner.NotFound, func(ctx context.Context, s tuner.Service) (any, error) { return watched(ctx, s, "none", 0, 1) }},
		{"watch studies", "", func(ctx context.Context, s tuner.Service) (any, error) {
			var all []tuner.Study
			for news, err := range s.WatchStudies(ctx) {
				all = append(all, news.Studies...)
				if err != nil || news.Listed {
					return all, err
				}
			}
			return all, nil
		}},
		{"backup", backup, func(ctx context.Context, s tuner.Service) (any, error) {
			var out bytes.Buffer
			err := s.Backup(ctx, &out)
			return out.Len(), err
		}},
		{"backup to a full disk", "", func(ctx context.Context, s tuner.Service) (any, error) {
			if err := s.Backup(ctx, full{}); backup == tuner.OK && !errors.Is(err, errFull) {
				t.Errorf("the writer's error came back as %v", err)
			}
			return nil, nil
		}},
		{"delete", "", func(ctx context.Context, s tuner.Service) (any, error) { return nil, s.DeleteStudy(ctx, "s") }},
		{"delete again", tuner.NotFound, func(ctx context.Context, s tuner.Service) (any, error) { return nil, s.DeleteStudy(ctx, "s") }},
	}
	if backup != tuner.OK {
		return steps // the service may still finish a call that its caller has abandoned
	}
	return append(steps,
		step{"cancelled", tuner.Cancelled, func(ctx context.Context, s tuner.Service) (any, error) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return of(s.Study(ctx, "small"))
		}},
		step{"out of time", tuner.Deadline, func(ctx context.Context, s tuner.Service) (any, error) {
			ctx, cancel := context.WithDeadline(ctx, time.Unix(0, 0))
			defer cancel()
			return of(s.Tell(ctx, "small", study.Tell{Outcome: completed(1)}))
		}})
}

var errFull = errors.New("the disk is full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

var _ io.Writer = full{}

// watched returns the first n events.
func watched(ctx context.Context, s tuner.Service, name string, after study.Position, n int) (list []tuner.Event, err error) {
	for h, err := range s.Watch(ctx, name, tuner.From{After: after}) {
		if err != nil {
			return list, err
		}
		if list = append(list, h); len(list) == n {
			return list, nil
		}
	}
	return list, nil
}

// A closed client and a closed service are both unavailable.
func TestClosed(t *testing.T) {
	service := wiretest.New(t)
	l := listen(t)
	serve(t, service, server.Options{Limits: free}, l)
	c := dial(t, l.Addr().String(), client.Options{Plaintext: true, RetryFor: -1})
	service.Close()
	if _, err := c.Study(t.Context(), "s"); tuner.CodeOf(err) != tuner.Unavailable {
		t.Errorf("of a closed service: %v", err)
	}
	c.Close()
	if _, err := c.Study(t.Context(), "s"); tuner.CodeOf(err) != tuner.Unavailable || !errors.Is(err, store.ErrClosed) {
		t.Errorf("of a closed client: %v", err)
	}
}
