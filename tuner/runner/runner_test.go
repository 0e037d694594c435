package runner_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/runner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

func TestMain(m *testing.M) {
	racetest.Waiting()
	m.Run()
}

// newStudy returns a service with a study "s" of x in [0, 1].
func newStudy(t *testing.T, change func(*study.Spec)) tuner.Service {
	t.Helper()
	return newStudyOf(t, engine.Options{}, change)
}

func newStudyOf(t *testing.T, o engine.Options, change func(*study.Spec)) tuner.Service {
	t.Helper()
	sp, err := space.New(space.NewFloat("x", 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	spec := study.Spec{
		Space: sp, Objectives: []study.Objective{{Name: "loss", Direction: study.Minimize}},
		MaxTrials: 12, MaxRetries: 2, Proposer: study.Component{Name: "random"},
	}
	if change != nil {
		change(&spec)
	}
	svc := engine.Open(memory.New(), o)
	t.Cleanup(func() { svc.Close() })
	if _, err := svc.CreateStudy(t.Context(), "s", study.Create{Spec: spec}); err != nil {
		t.Fatal(err)
	}
	return svc
}

// states counts the trials of "s" by how they stand, failures with their reason.
func states(t *testing.T, svc tuner.Service) map[string]int {
	t.Helper()
	trials, _, err := svc.Trials(t.Context(), "s", tuner.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]int)
	for _, trial := range trials {
		state := trial.State.String()
		if trial.State == study.Failed {
			state += " " + trial.Outcome.Reason.String()
		}
		out[state]++
	}
	return out
}

func expect(t *testing.T, svc tuner.Service, want map[string]int) {
	t.Helper()
	if got := states(t, svc); !maps.Equal(got, want) {
		t.Errorf("the trials are %v, want %v", got, want)
	}
}

func shell(script string) []string { return []string{"sh", "-c", script} }

func TestRunToTheEnd(t *testing.T) {
	svc := newStudy(t, nil)
	dir := t.TempDir()
	var ended atomic.Int32
	s, err := runner.Run(t.Context(), svc, runner.Options{
		Study: "s", Parallel: 3, Worker: "w", LogDir: dir,
		Command: shell(`echo "step=1 loss=1"; echo "loss=$TUNER_PARAM_X extra={x}"; echo fine >&2`),
		OnEvent: func(e runner.Event) {
			if e.Kind == runner.Ended {
				ended.Add(1)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, svc, map[string]int{"completed": 12})
	if s.Study.Status != study.StatusFinished || s.Counts[study.Completed] != 12 || len(s.Best) != 1 || ended.Load() != 12 || len(s.Left) != 0 {
		t.Errorf("summary %+v after %d events", s, ended.Load())
	}
	best := s.Best[0]
	x, _ := best.Config.Get("x")
	want, _ := x.AsFloat()
	loss, _ := best.Outcome.Metric("loss")
	extra, _ := best.Outcome.Metric("extra")
	reports, _, err := svc.Reports(t.Context(), "s", best.Number, 0, 0)
	if loss.Mean() != want || extra.Mean() != want || err != nil || len(reports) != 1 {
		t.Errorf("x = %v was told as %v with %d reports, %v", want, best.Outcome, len(reports), err)
	}
	log, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("trial-%d.log", best.Number)))
	if err != nil || !strings.Contains(string(log), "step=1 loss=1\n") || !strings.Contains(string(log), "fine\n") {
		t.Errorf("the log is %q, %v", log, err)
	}
}

// Nothing of a trial is written through a link, nor into a directory or device.
func TestLogIsNoLink(t *testing.T) {
	for _, name := range []string{"trial-0.log", "trial-0.lock", "worker"} {
		t.Run(name, func(t *testing.T) {
			if name == "trial-0.lock" && runtime.GOOS == "windows" {
				t.Skip("a job object replaces the lock on Windows")
			}
			dir, victim := t.TempDir(), filepath.Join(t.TempDir(), "victim")
			if err := os.WriteFile(victim, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(victim, filepath.Join(dir, name)); err != nil {
				t.Skip(err)
			}
			svc := newStudy(t, func(s *study.Spec) { s.MaxTrials = 1 })
			said := ""
			if claim, err := runner.ClaimDir(dir, "s", ""); err != nil {
				said = err.Error()
			} else {
				defer claim.Release()
				_, err := runner.Run(t.Context(), svc, runner.Options{
					Study: "s", Worker: claim.Worker, LogDir: dir, Command: shell("echo loss=1"),
				})
				trial, trialErr := svc.Trial(t.Context(), "s", 0)
				if trialErr != nil {
					t.Fatal(trialErr)
				}
				said = fmt.Sprint(err, trial.Outcome.Message)
			}
			if !strings.Contains(said, name+" is a link") {
				t.Errorf("the run says %q", said)
			}
			if text, err := os.ReadFile(victim); err != nil || len(text) > 0 {
				t.Errorf("behind the link there is %q, %v", text, err)
			}
		})
	}
}

// Each kind of end a command can have, by the number of its trial.
func TestHowCommandsEnd(t *testing.T) {
	t.Parallel() // it waits more than it computes
	svc := newStudy(t, func(s *study.Spec) { s.MaxTrials = 9 })
	run := func(trials int, timeout time.Duration) {
		t.Helper()
		_, err := runner.Run(t.Context(), svc, runner.Options{
			Study: "s", Worker: "w", Limit: trials, Timeout: timeout, Grace: 50 * time.Millisecond,
			Command: shell(`case {trial} in
				0) echo loss=1; echo 'boom: no such file' >&2; exit 3;;
				1) exit 66;;
				2) echo infeasible=too large;;
				3) echo step=1 loss=2; echo step=2 loss=1.5;;
				4) echo loss=nan;;
				5) echo loss=-inf;;
				6) trap '' TERM; while :; do sleep 0.05; done;;
				7) echo hello; echo loss: 0,5; echo lost=1 time=2;;
				8) kill -9 $$;;
			esac`),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	run(6, 0)
	run(1, 500*time.Millisecond)
	run(2, 0)
	trials, _, err := svc.Trials(t.Context(), "s", tuner.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		"failed(crash): boom: no such file (exit status 3)",
		"infeasible",
		"infeasible: too large",
		"completed loss=1.5",
		"failed(nan) loss=NaN",
		"failed(crash): metrics.loss = -Inf: the best possible value of an objective to minimize cannot be measured; tell that the trial failed",
		"failed(crash): ended because it ran longer than 500ms",
		"failed(crash): the command did not report loss: stdout needs a line loss=NUMBER, or JSON; it reported lost, time; \"loss: 0,5\" looks like a decimal comma, so write loss=0.5",
		"failed(crash): signal: killed",
	} {
		if got := trials[i].Outcome.String(); got != want {
			t.Errorf("trial %d: %s\nwant     %s", i, got, want)
		}
	}
}

// A trial that does not report a metric with a limit says so.
func TestLimitedMetric(t *testing.T) {
	svc := newStudy(t, func(s *study.Spec) {
		s.MaxTrials = 3
		s.Proposer = study.Component{Options: `{"constraints": {"delay": {"max": 2}}}`}
	})
	_, err := runner.Run(t.Context(), svc, runner.Options{
		Study: "s", Worker: "w", Limited: []string{"delay"},
		Command: shell(`case {trial} in
			0) echo loss=1 delay=1,5;;
			1) echo loss=1 delay=nan;;
			2) echo loss=1 delay=1;;
		esac`),
	})
	if err != nil {
		t.Fatal(err)
	}
	trials, _, err := svc.Trials(t.Context(), "s", tuner.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		"completed loss=1: the command did not report delay: stdout needs a line delay=NUMBER, or JSON; it reported loss; \"delay=1,5\" looks like a decimal comma, so write delay=1.5",
		"completed loss=1: delay is NaN, which is not stored, so the trial breaks the limit at most 2",
		"completed delay=1 loss=1",
	} {
		if got := trials[i].Outcome.String(); got != want {
			t.Errorf("trial %d: %s\nwant     %s", i, got, want)
		}
	}
}

func TestResultFile(t *testing.T) {
	svc := newStudy(t, func(s *study.Spec) { s.MaxTrials = 3; s.MaxCost = 100 })
	dir := t.TempDir()
	_, err := runner.Run(t.Context(), svc, runner.Options{
		Study: "s", Worker: "w", Result: dir + "/{trial}.json", CostMetric: "price",
		Command: shell(`echo loss=77; case {trial} in
			0) printf '{{\n "loss": 1,\n "price": 2.5\n}}\n' > ` + dir + `/0.json;;
			1) echo loss=2 > ` + dir + `/1.json;;
		esac`),
	})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, svc, map[string]int{"completed": 2, "failed crash": 1})
	first, err := svc.Trial(t.Context(), "s", 0)
	if err != nil || first.Outcome.Cost != 2.5 {
		t.Errorf("%v, %v", first.Outcome, err)
	}
}

// An interrupted run leaves its trials to the next one, for any number of trials.
func TestInterruptAndResume(t *testing.T) {
	t.Parallel() // it waits more than it computes
	svc := newStudy(t, nil)
	ctx, interrupt := context.WithCancel(t.Context())
	o := runner.Options{Study: "s", Parallel: 4, Worker: "w", Command: shell(`if test -e ` + t.TempDir() + `; then sleep 60; fi; echo loss=1`)}
	var begun atomic.Int32
	o.OnEvent = func(e runner.Event) {
		if e.Kind == runner.Started && begun.Add(1) == 4 {
			interrupt()
		}
	}
	s, err := runner.Run(ctx, svc, o)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("interrupted: %v", err)
	}
	if len(s.Left) != 4 {
		t.Fatalf("%d trials are left", len(s.Left))
	}
	expect(t, svc, map[string]int{"running": 4})

	var resumed []int
	var mu sync.Mutex
	o.Command = shell("echo loss=1")
	o.Parallel = 2 // fewer slots take over all the same
	o.OnEvent = func(e runner.Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.Kind == runner.Resumed {
			resumed = append(resumed, e.Trial.Number)
		}
	}
	if _, err = runner.Run(t.Context(), svc, o); err != nil {
		t.Fatal(err)
	}
	expect(t, svc, map[string]int{"completed": 12})
	slices.Sort(resumed)
	if !slices.Equal(resumed, s.Left) {
		t.Errorf("%v were resumed, %v were left", resumed, s.Left)
	}
}

// A scheduler ends a job with a signal to all of its processes. If the command gets it before the
// run does, the trial is interrupted all the same. Without a signal to the run it has crashed.
func TestSignalToAllProcesses(t *testing.T) {
	t.Parallel() // it waits more than it computes
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt) // so that commands do not ignore it if the test does, as in the background of a shell
	t.Cleanup(func() { signal.Stop(interrupts) })
	for script, interrupts := range map[string]bool{"kill -TERM $$": true, "exit 143": true, "kill -INT $$": true, "exit 1": false} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			for _, interrupted := range []bool{true, false} {
				svc := newStudy(t, func(s *study.Spec) { s.MaxTrials = 1 })
				ctx, interrupt := context.WithCancel(t.Context())
				defer interrupt()
				ends := filepath.Join(t.TempDir(), "ends")
				if interrupted {
					go func() { // after the command
						for ctx.Err() == nil {
							text, _ := os.ReadFile(ends)
							if pid, err := strconv.Atoi(string(text)); err == nil && gone(pid) {
								break
							}
							time.Sleep(time.Millisecond)
						}
						time.Sleep(100 * time.Millisecond) // until the run has noticed
						interrupt()
					}()
				}
				o := runner.Options{Study: "s", Worker: "w", Command: shell("printf $$ >'" + ends + "'; " + script)}
				if _, err := runner.Run(ctx, svc, o); err != nil && !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				want := map[string]int{"failed crash": 1}
				if interrupted && interrupts {
					want = map[string]int{"running": 1}
				}
				expect(t, svc, want)
			}
		})
	}
}

// gone tells whether a process has ended, and its parent knows.
func gone(pid int) bool {
	p, err := os.FindProcess(pid)
	return err != nil || p.Signal(syscall.Signal(0)) != nil
}

func TestFunction(t *testing.T) {
	svc := newStudy(t, nil)
	_, err := runner.Run(t.Context(), svc, runner.Options{
		Study: "s", Parallel: 4, Worker: "w",
		Func: func(_ context.Context, trial study.Trial, out io.Writer) error {
			if trial.Number == 5 {
				return errors.New("no luck")
			}
			_, err := fmt.Fprintf(out, "loss=%d", trial.Number)
			return err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, svc, map[string]int{"completed": 11, "failed crash": 1})
}

// A function that was told to stop says so.
func TestPrunedFunction(t *testing.T) {
	svc := newStudy(t, nil)
	_, err := runner.Run(t.Context(), svc, runner.Options{
		Study: "s", Worker: "w", MaxFailures: 1,
		Func: func(context.Context, study.Trial, io.Writer) error {
			return fmt.Errorf("%w: too slow", runner.ErrPruned)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, svc, map[string]int{"pruned": 12})
}

func TestLimitAndFailures(t *testing.T) {
	svc := newStudy(t, nil)
	if _, err := runner.Run(t.Context(), svc, runner.Options{Study: "s", Parallel: 3, Worker: "w", Limit: 5, Command: shell("echo loss=1")}); err != nil {
		t.Fatal(err)
	}
	expect(t, svc, map[string]int{"completed": 5})
	_, err := runner.Run(t.Context(), svc, runner.Options{Study: "s", Worker: "w", MaxFailures: 2, Command: shell("echo no >&2; exit 1")})
	if !errors.Is(err, runner.ErrFailures) {
		t.Fatal(err)
	}
	expect(t, svc, map[string]int{"completed": 5, "failed crash": 2})
}

// faulty disturbs a service.
type faulty struct {
	tuner.Service
	calls    atomic.Int32
	stop     bool  // say that every trial should stop
	lost     error // what heartbeats and reports fail with
	stopBeat int   // heartbeats say so, if not 0
	unsure   bool  // every other call has an effect and says that it does not know
}

func (f *faulty) unknown(err error) error {
	if err == nil && f.unsure && f.calls.Add(1)%2 == 1 {
		return store.ErrUnknownOutcome
	}
	return err
}

func (f *faulty) Ask(ctx context.Context, name string, c study.Ask) (tuner.Asked, error) {
	a, err := f.Service.Ask(ctx, name, c)
	return a, f.unknown(err)
}

func (f *faulty) Tell(ctx context.Context, name string, c study.Tell) (tuner.Told, error) {
	a, err := f.Service.Tell(ctx, name, c)
	return a, f.unknown(err)
}

func (f *faulty) Heartbeat(ctx context.Context, name string, c study.Heartbeat) (tuner.Verdict, error) {
	v, err := f.Service.Heartbeat(ctx, name, c)
	if f.stopBeat != 0 {
		v.Stop, v.Reason = true, "it is no good"
	}
	return v, err
}

func (f *faulty) Report(ctx context.Context, name string, c study.ReportValues) (tuner.Verdict, error) {
	if f.lost != nil {
		return tuner.Verdict{}, f.lost
	}
	v, err := f.Service.Report(ctx, name, c)
	v.Stop, v.Reason = v.Stop || f.stop, "it is no good"
	return v, f.unknown(err)
}

func TestStopVerdict(t *testing.T) {
	t.Parallel() // it waits more than it computes
	svc := newStudy(t, func(s *study.Spec) { s.MaxTrials = 2 })
	_, err := runner.Run(t.Context(), &faulty{Service: svc, stop: true}, runner.Options{Study: "s", Worker: "w", Command: shell("echo step=1 loss=1; sleep 60")})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, svc, map[string]int{"pruned": 2})
}

// A command that reports by itself, and ends when told to stop, is pruned.
func TestCommandStopsItself(t *testing.T) {
	svc := newStudy(t, func(s *study.Spec) { s.MaxTrials = 4 })
	f := &faulty{Service: svc, stopBeat: 1}
	_, err := runner.Run(t.Context(), f, runner.Options{
		Study: "s", Worker: "w", MaxFailures: 1, Limit: 3,
		Command: shell(`case {trial} in
			0) echo told to stop >&2; exit 14;;
			1) exit 0;;
			2) echo loss=1;;
		esac`),
	})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, svc, map[string]int{"pruned": 2, "completed": 1})

	// Without a verdict of the service, the exit code alone is enough. A missing result
	// is not.
	f.stopBeat = 0
	_, err = runner.Run(t.Context(), f, runner.Options{Study: "s", Worker: "w", Command: shell("exit 14")})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, svc, map[string]int{"pruned": 3, "completed": 1})
}

func TestLostLease(t *testing.T) {
	t.Parallel() // it waits more than it computes
	svc := newStudy(t, nil)
	f := &faulty{Service: svc, lost: &study.LeaseError{Trial: 0, Epoch: 1, Current: 2}}
	var lost atomic.Int32
	_, err := runner.Run(t.Context(), f, runner.Options{
		Study: "s", Worker: "w", Limit: 1, Command: shell("echo step=1 loss=1; sleep 60"),
		OnEvent: func(e runner.Event) {
			if e.Kind == runner.Lost {
				lost.Add(1)
			}
		},
	})
	if err != nil || lost.Load() != 1 {
		t.Fatalf("%v, lost %d", err, lost.Load())
	}
	expect(t, svc, map[string]int{"running": 1})
}

// Answers that get lost on the way double nothing.
func TestUnknownOutcomes(t *testing.T) {
	t.Parallel() // it waits more than it computes
	svc := newStudy(t, nil)
	var ran atomic.Int32
	_, err := runner.Run(t.Context(), &faulty{Service: svc, unsure: true}, runner.Options{
		Study: "s", Parallel: 3, Worker: "w",
		Func: func(_ context.Context, _ study.Trial, out io.Writer) error {
			ran.Add(1)
			_, err := io.WriteString(out, "step=1 loss=1\nloss=1\n")
			return err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, svc, map[string]int{"completed": 12})
	if ran.Load() != 12 {
		t.Errorf("%d runs of 12 trials", ran.Load())
	}
}

// away is a service that cannot be reached.
type away struct {
	tuner.Service
	calls int
	final bool
}

func (a *away) Study(context.Context, string) (tuner.Study, error) {
	a.calls++
	return tuner.Study{}, &tuner.RemoteError{Code: tuner.Unavailable, Message: "away", Final: a.final}
}

// What waiting does not heal is not tried again.
func TestFinalErrors(t *testing.T) {
	for _, final := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			a := &away{final: final}
			_, err := runner.Run(t.Context(), a, runner.Options{Study: "s", Worker: "w", Command: shell("true"), RetryFor: time.Second})
			if tuner.CodeOf(err) != tuner.Unavailable || (a.calls == 1) != final {
				t.Errorf("final %v: %d calls, %v", final, a.calls, err)
			}
		})
	}
}

func TestNothingStartsOnAMistake(t *testing.T) {
	svc := newStudy(t, nil)
	for _, command := range [][]string{{"sh", "{y}"}, {"no-such-program-here"}, nil} {
		if _, err := runner.Run(t.Context(), svc, runner.Options{Study: "s", Worker: "w", Command: command}); err == nil {
			t.Errorf("%q was run", command)
		}
	}
	expect(t, svc, map[string]int{})
}

func TestClaim(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	first, err := runner.ClaimDir(dir, "s", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := runner.ClaimDir(dir, "s", ""); !errors.Is(err, runner.ErrClaimed) {
		t.Errorf("claimed twice: %v", err)
	}
	name := first.Worker
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	again, err := runner.ClaimDir(dir, "s", "")
	if err != nil || again.Worker != name || name == "" {
		t.Errorf("the name was %q and is %q, %v", name, again.Worker, err)
	}
	again.Release()
}

// A command that ends well without a result, before any other has had one, ends the run and
// says which metrics it reported. Afterwards it is a failure like others.
func TestSilentCommandEndsTheRun(t *testing.T) {
	for name, c := range map[string]struct {
		script, says string
		before       bool // another trial has completed
		imported     bool // a trial was imported
		result       string
		trials       int
	}{
		"another name":   {script: "echo val_loss=1 seconds=2", says: "it reported val_loss, seconds", trials: 1},
		"nothing":        {script: "true", says: "the command did not report loss", trials: 1},
		"steps of other": {script: "echo step=1 acc=3", says: "it reported acc", trials: 1},
		"no result file": {script: "echo loss=1", result: "no/file", says: "the file of results: open no/file", trials: 1},
		"imported":       {script: "true", imported: true, says: "the command did not report loss", trials: 1},
		"one worked":     {script: "true", before: true, trials: 11},
		"crashes":        {script: "exit 1", trials: 12},
	} {
		svc := newStudy(t, nil)
		half := space.NewConfig(space.Assignment{Name: "x", Value: space.Float(0.5)})
		if c.imported {
			if _, err := svc.Add(t.Context(), "s", study.Add{Config: half, Outcome: study.Measured("loss", 1)}); err != nil {
				t.Fatal(err)
			}
		}
		if c.before {
			asked, err := svc.Ask(t.Context(), "s", study.Ask{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := svc.Tell(t.Context(), "s", study.Tell{Outcome: study.Measured("loss", 1), Trial: asked.Trials[0].Number}); err != nil {
				t.Fatal(err)
			}
		}
		s, err := runner.Run(t.Context(), svc, runner.Options{Study: "s", Worker: "w", Command: shell(c.script), Result: c.result})
		if n := s.Counts[study.Failed]; n != c.trials {
			t.Errorf("%s: %d trials ran, want %d", name, n, c.trials)
		}
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: the error is %v, want %q", name, err, c.says)
		}
	}
}

// What a run can refuse is refused before its first trial.
func TestCheck(t *testing.T) {
	sp, err := space.New(space.NewFloat("lr", 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		objective string
		options   runner.Options
		says      string
	}{
		"placeholder": {"loss", runner.Options{Command: []string{"echo", "{lrr}"}}, `there is no parameter "lrr"`},
		"program":     {"loss", runner.Options{Command: []string{"no-such-program-at-all"}}, "cannot be run"},
		"file":        {"loss", runner.Options{Command: []string{"echo"}, Result: "{lrr}.json"}, `there is no parameter "lrr"`},
		"step":        {"step", runner.Options{Command: []string{"echo"}}, `the metric "step" cannot be read`},
		"infeasible":  {"infeasible", runner.Options{Command: []string{"echo"}}, `the metric "infeasible" cannot be read`},
		"cost":        {"loss", runner.Options{Command: []string{"echo"}, CostMetric: "step"}, `the metric "step" cannot be read`},
		"fine":        {"F1 score", runner.Options{Command: []string{"echo", "{lr}"}}, ""},
	} {
		err := c.options.Check(study.Spec{Space: sp, Objectives: []study.Objective{{Name: c.objective}}})
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}
