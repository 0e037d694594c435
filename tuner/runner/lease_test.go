package runner_test

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/runner"
	"github.com/bkbtuner/bkb/tuner/study"
)

// asleep is a machine that is suspended for some time. Its calls go through when it wakes
// up.
type asleep struct {
	tuner.Service
	from, until time.Time
}

func (a *asleep) sleep(ctx context.Context) error {
	if now := time.Now(); now.Before(a.from) || !now.Before(a.until) {
		return nil
	}
	select {
	case <-time.After(time.Until(a.until)):
		return nil
	case <-ctx.Done(): // switched off
		return ctx.Err()
	}
}

func (a *asleep) Ask(ctx context.Context, name string, c study.Ask) (tuner.Asked, error) {
	if err := a.sleep(ctx); err != nil {
		return tuner.Asked{}, err
	}
	return a.Service.Ask(ctx, name, c)
}

func (a *asleep) Heartbeat(ctx context.Context, name string, c study.Heartbeat) (tuner.Verdict, error) {
	if err := a.sleep(ctx); err != nil {
		return tuner.Verdict{}, err
	}
	return a.Service.Heartbeat(ctx, name, c)
}

func (a *asleep) Tell(ctx context.Context, name string, c study.Tell) (tuner.Told, error) {
	if err := a.sleep(ctx); err != nil {
		return tuner.Told{}, err
	}
	return a.Service.Tell(ctx, name, c)
}

// machine is a run of its own on a study "s", in a bubble of simulated time.
type machine struct {
	name string
	svc  tuner.Service
	off  context.CancelFunc
	done chan struct{}

	mu     sync.Mutex
	events []string
	began  time.Time // of its last trial
	epoch  int
}

// start starts a machine whose trials take so long, and measure the loss.
func start(t *testing.T, svc tuner.Service, name string, lease, takes time.Duration, loss string) *machine {
	ctx, off := context.WithCancel(t.Context())
	m := &machine{name: name, svc: svc, off: off, done: make(chan struct{})}
	go func() {
		defer close(m.done)
		_, err := runner.Run(ctx, svc, runner.Options{
			Study: "s", Worker: name, Lease: lease, OnEvent: m.event,
			Func: func(ctx context.Context, _ study.Trial, out io.Writer) error {
				select {
				case <-time.After(takes):
				case <-ctx.Done():
					return ctx.Err()
				}
				_, err := io.WriteString(out, "loss="+loss)
				return err
			},
		})
		if err != nil && ctx.Err() == nil {
			t.Errorf("machine %s: %v", name, err)
		}
	}()
	return m
}

func (m *machine) event(e runner.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch e.Kind {
	case runner.Started, runner.Resumed:
		m.began, m.epoch = time.Now(), e.Trial.Epoch
		m.events = append(m.events, "started")
	case runner.Ended:
		m.events = append(m.events, "ended")
	case runner.Lost:
		m.events = append(m.events, "lost")
	case runner.Remark:
		m.events = append(m.events, "remark: "+e.Err.Error())
	}
}

// saw says what happened to a machine.
func (m *machine) saw(t *testing.T, want ...string) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Equal(m.events, want) {
		t.Errorf("machine %s: %s; want %s", m.name, strings.Join(m.events, ", "), strings.Join(want, ", "))
	}
}

// oneTrial returns a service, of a file or of a server, with a study "s" of one trial
// that is held so long.
func oneTrial(t *testing.T, server bool, lease time.Duration) tuner.Service {
	t.Helper()
	return newStudyOf(t, engine.Options{LongLived: server}, func(s *study.Spec) { s.MaxTrials, s.Lease = 1, lease })
}

// outcome is the loss of trial 0, and how it came to it.
func outcome(t *testing.T, svc tuner.Service) (loss float64, trial study.Trial) {
	t.Helper()
	trial, err := svc.Trial(t.Context(), "s", 0)
	if err != nil {
		t.Fatal(err)
	}
	m, _ := trial.Outcome.Metric("loss")
	return m.Mean(), trial
}

// The trial of a machine that died is another's after the lease, which is five minutes
// unless the run or the study says otherwise.
func TestTrialOfADeadMachine(t *testing.T) {
	for i, c := range []struct{ studys, runs, want time.Duration }{
		{0, 0, 5 * time.Minute},
		{0, 0, 5 * time.Minute},
		{20 * time.Minute, 0, 20 * time.Minute},
		{time.Minute, 0, time.Minute},
		{20 * time.Minute, 90 * time.Second, 90 * time.Second},
		{0, time.Hour, time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			svc := oneTrial(t, i%2 == 0, c.studys)
			began := time.Now()
			dead := start(t, &asleep{svc, began.Add(time.Millisecond), began.Add(1000 * time.Hour)}, "dead", c.runs, 2000*time.Hour, "1")
			synctest.Wait()
			spare := start(t, svc, "spare", 0, time.Minute, "2")
			<-spare.done
			if waited := spare.began.Sub(began); waited < c.want || waited > c.want+4*time.Second || spare.epoch != 2 {
				t.Errorf("lease %v of the study, %v of the run: another had the trial after %v, epoch %d; want %v", c.studys, c.runs, waited, spare.epoch, c.want)
			}
			if loss, trial := outcome(t, svc); loss != 2 || trial.Expiries != 1 || len(trial.Late) > 0 {
				t.Errorf("the trial came to %+v", trial)
			}
			dead.off()
			<-dead.done
			dead.saw(t, "started")
		})
	}
}

// A trial much longer than the lease keeps it by heartbeats.
func TestLongTrialKeepsItsLease(t *testing.T) {
	for i, lease := range []time.Duration{0, 0, time.Second, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			svc := oneTrial(t, i%2 == 0, lease)
			long := start(t, svc, "long", 0, time.Hour, "1")
			synctest.Wait()
			spare := start(t, svc, "spare", 0, time.Minute, "2")
			<-long.done
			<-spare.done
			long.saw(t, "started", "ended")
			spare.saw(t)
			if loss, trial := outcome(t, svc); loss != 1 || trial.Epoch != 1 || trial.Expiries != 0 {
				t.Errorf("the trial came to %+v", trial)
			}
		})
	}
}

// A machine that sleeps from minute 1 to 20, longer than its lease, gives its trial up if
// another has it then, and what it measured meanwhile is kept beside the other's. If no
// other worker wanted the trial, its result counts. On a file that no other process
// opened, it continues as if the machine had been awake.
func TestSuspendedMachine(t *testing.T) {
	again := []string{"started", "lost", "started", "ended"}
	for _, c := range []struct {
		name           string
		takes          time.Duration
		others, server bool
		saw            []string
		loss           float64
		epoch, late    int
	}{
		{"at work", time.Hour, true, false, []string{"started", "lost"}, 2, 2, 0},
		{"at work", time.Hour, true, true, []string{"started", "lost"}, 2, 2, 0},
		{"done meanwhile", 10 * time.Minute, true, false, []string{"started", "lost"}, 2, 2, 1},
		{"done meanwhile", 10 * time.Minute, true, true, []string{"started", "lost"}, 2, 2, 1},
		{"done at waking", 20*time.Minute + time.Second/2, true, false, []string{"started", "lost"}, 2, 2, 1},
		{"done at waking", 20*time.Minute + time.Second/2, true, true, []string{"started", "lost"}, 2, 2, 1},
		{"at work, alone", time.Hour, false, false, []string{"started", "ended"}, 1, 1, 0},
		{"at work, alone", time.Hour, false, true, again, 1, 2, 0},
		{"done meanwhile, alone", 10 * time.Minute, false, false, []string{"started", "ended"}, 1, 1, 0},
		{"done meanwhile, alone", 10 * time.Minute, false, true, []string{"started", "ended"}, 1, 1, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			svc := oneTrial(t, c.server, 0)
			began := time.Now()
			sleeper := start(t, &asleep{svc, began.Add(time.Minute), began.Add(20 * time.Minute)}, "sleeper", 0, c.takes, "1")
			synctest.Wait()
			if c.others {
				spare := start(t, svc, "spare", 0, time.Hour, "2")
				<-spare.done
				spare.saw(t, "started", "ended")
			}
			<-sleeper.done
			sleeper.saw(t, c.saw...)
			if loss, trial := outcome(t, svc); loss != c.loss || trial.Epoch != c.epoch || len(trial.Late) != c.late {
				t.Errorf("%s, server %v: the trial came to %+v", c.name, c.server, trial)
			}
		})
	}
}
