package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
)

// ExitInfeasible is the exit status of a command whose configuration cannot work.
const ExitInfeasible = 66

// ExitStop is the exit status of a command that was told to stop. The command
// tuner report --exit-code exits with it.
const ExitStop = 14

// Options configure a run.
type Options struct {
	Study string
	// Command is run for each trial (see [ParseCommand]).
	Command []string
	// Env is added to the command's environment.
	Env []string
	// Func, if not nil, is called in place of the command. What it writes is
	// read as the command's stdout is. An error is a failure, except ErrPruned.
	Func func(ctx context.Context, t study.Trial, stdout io.Writer) error
	// Parallel is the number of trials at a time. 0 means 1.
	Parallel int
	// Limit is the number of trials of the run. 0 means no limit.
	Limit int
	// Worker names the run. Its workers are Worker/0, Worker/1, and so on. Only one run
	// at a time may use a name (see [Claim]).
	Worker string
	// LogDir is the directory for the output of each trial, trial-N.log. Empty means no logs.
	LogDir string
	// MaxLog is the number of bytes in the log of a trial, after which its output is read
	// but not kept. 0 means no limit.
	MaxLog int64
	// Result, if not empty, names the file with the result of the command, which is read
	// in place of stdout. It may have placeholders, as the command.
	Result string
	// Lease is the longest time of a trial without a heartbeat. 0 means the study's
	// lease, or [DefaultLease] if the study has [study.DefaultLease], which is also the
	// lease of a study created without one.
	Lease time.Duration
	// Timeout is the longest time of a trial, which then fails. 0 means no limit.
	Timeout time.Duration
	// Grace is the time between SIGTERM and SIGKILL. 0 means [DefaultGrace].
	Grace time.Duration
	// RetryFor is the longest time of retries if the service cannot be reached. 0 means
	// [DefaultRetryFor].
	RetryFor time.Duration
	// MaxFailures is the number of crashes in a row that end the run. 0 means no limit.
	MaxFailures int
	// CostMetric names the metric with the cost of a trial. CostSeconds means the seconds
	// that it ran. Empty means no cost.
	CostMetric string
	// Limited are the metrics with limits, which may be infinite.
	Limited []string
	// KillNow, when closed, cuts short the grace of commands being ended.
	KillNow <-chan struct{}
	// OnEvent, if not nil, receives events, one at a time.
	OnEvent func(Event)
}

// The defaults of [Options]. The lease is shorter than that of a study, because a run
// sends heartbeats. Other workers wait this long for the trials of a dead machine.
const (
	DefaultGrace    = 10 * time.Second
	DefaultRetryFor = 5 * time.Minute
	DefaultLease    = 5 * time.Minute
)

// CostSeconds, as a CostMetric, is the time that a trial ran.
const CostSeconds = "seconds"

// EventKind is the kind of an event.
type EventKind int

// The kinds of events.
const (
	Started  EventKind = iota // a trial's command
	Resumed                   // a trial that an earlier run left
	Ended                     // the outcome of a trial was told
	Lost                      // another worker has the trial, or it has ended, so its command was ended
	Waiting                   // no trial can be handed out now, with the reason in Err
	Retrying                  // a call will be sent again, with the reason in Err
	Remark                    // Err is an oddity
	Warning                   // Err names settings of the study that have no effect or limit the model, each once
)

// Event is an event of a run.
type Event struct {
	Kind  EventKind
	Trial study.Trial
	Err   error
	// Noise is that of [tuner.Asked] in Started and Ended, if this run got the trial as a
	// new suggestion of a model.
	Noise []float64
	// Study is the study after Ended, and zero for other events.
	Study tuner.Study
	// Running is how many trials of this run run now.
	Running int
}

// Summary is the result of a run.
type Summary struct {
	Study tuner.Study
	Best  []study.Trial
	// Counts are of the trials whose outcome this run told.
	Counts map[study.TrialState]int
	// Left are the trials that still run under this run's names. The next run
	// continues with them.
	Left []int
}

// ErrFailures is wrapped by the error of a run that ended because of MaxFailures.
var ErrFailures = errors.New("too many trials failed in a row")

// ErrPruned makes the trial pruned. An [Options.Func] returns it, perhaps wrapped, if
// it reports to the service itself and was told to stop.
var ErrPruned = errors.New("pruned")

// run is a run under way.
type run struct {
	svc     tuner.Service
	options Options
	command *Command
	result  *Command // whose one argument is the file of results
	spec    study.Spec
	began   time.Time
	warned  sync.Map // the warnings that were passed on, without their numbers

	events sync.Mutex // one event at a time

	mu       sync.Mutex
	names    []string // of workers that hold no trial now
	running  map[int]string
	counts   map[study.TrialState]int
	started  int
	failures int           // in a row
	wake     chan struct{} // closed when a trial ends
	stopped  error         // why the run asks for no more trials, or nil while it asks
}

// Run runs trials until the study has no more, the limit is reached, or ctx
// ends. It returns once every command has ended and every outcome was told. Beside
// an error it returns as much of the summary as it could read.
func Run(ctx context.Context, svc tuner.Service, o Options) (Summary, error) {
	r, err := prepare(ctx, svc, o)
	if err != nil {
		return Summary{}, err
	}
	work, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var slots sync.WaitGroup
	for range r.options.Parallel {
		slots.Go(func() {
			if err := r.slot(work); err != nil {
				cancel(err)
			}
		})
	}
	slots.Wait()
	if err = context.Cause(work); err == nil {
		err = r.stopped
	}
	// The summary is read even if ctx has ended.
	last, stop := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer stop()
	summary, sumErr := r.summary(last)
	return summary, errors.Join(err, sumErr)
}

// prepare checks everything that can be checked before the start.
func prepare(ctx context.Context, svc tuner.Service, o Options) (*run, error) {
	o.Parallel = max(o.Parallel, 1)
	o.Grace, o.RetryFor = cmp.Or(o.Grace, DefaultGrace), cmp.Or(o.RetryFor, DefaultRetryFor)
	if o.Worker == "" {
		return nil, errors.New("runner: Options.Worker is empty")
	}
	r := &run{
		svc: svc, options: o, began: time.Now(), running: make(map[int]string),
		counts: make(map[study.TrialState]int), wake: make(chan struct{}),
	}
	var view tuner.Study
	err := r.retry(ctx, func() (err error) {
		view, err = svc.Study(ctx, o.Study)
		return err
	})
	if err != nil {
		return nil, err
	}
	if r.spec = view.Spec; o.Lease == 0 {
		r.options.Lease = leaseOf(r.spec)
	}
	if r.command, r.result, err = o.parse(r.spec); err != nil {
		return nil, err
	}
	return r, r.findNames(ctx)
}

// leaseOf returns the lease of a study's trials if the options have none.
func leaseOf(s study.Spec) time.Duration {
	if s.Lease == study.DefaultLease {
		return DefaultLease
	}
	return s.Lease
}

// Check returns the error with which [Run] would refuse the options before its first trial.
// A command can call it before it creates the study.
func (o Options) Check(spec study.Spec) error {
	_, _, err := o.parse(spec)
	return err
}

// parse reads the command and looks for its program.
func (o Options) parse(spec study.Spec) (command, result *Command, err error) {
	names := append([]string{o.CostMetric}, o.Limited...)
	for _, objective := range spec.Objectives {
		names = append(names, objective.Name)
	}
	for _, name := range names {
		if name == wordStep || name == wordInfeasible {
			return nil, nil, fmt.Errorf("the metric %q cannot be read, because this word means something else in the output of a command; use another name", name)
		}
	}
	if result, err = ParseCommand(o.Study, spec.Space, []string{o.Result}); err != nil {
		return nil, nil, fmt.Errorf("the file of results: %w", err)
	}
	if err = result.checkFileNames(spec.Space); err != nil {
		return nil, nil, fmt.Errorf("the file of results: %w", err)
	}
	if command, err = ParseCommand(o.Study, spec.Space, o.Command); err != nil || o.Func != nil {
		return command, result, err
	}
	if len(o.Command) == 0 {
		return nil, nil, errors.New("there is no command to run")
	}
	if program := o.Command[0]; !strings.ContainsAny(program, "{}") { // else known only when it runs
		if _, err = exec.LookPath(program); err != nil {
			err = fmt.Errorf("the command cannot be run: %w", err)
		}
	}
	return command, result, err
}

// findNames lists the names of the run's workers, first those that hold trials of an earlier run.
func (r *run) findNames(ctx context.Context) error {
	err := r.own(ctx, func(t study.Trial) { r.names = append(r.names, t.Worker) })
	for i := range r.options.Parallel {
		r.names = append(r.names, fmt.Sprintf("%s/%d", r.options.Worker, i))
	}
	seen := make(map[string]bool)
	r.names = slices.DeleteFunc(r.names, func(name string) bool {
		again := seen[name]
		seen[name] = true
		return again
	})
	return err
}

// own calls f with the running trials of this run's names.
func (r *run) own(ctx context.Context, f func(study.Trial)) error {
	return r.each(ctx, study.Running, func(t study.Trial) {
		if strings.HasPrefix(t.Worker, r.options.Worker+"/") {
			f(t)
		}
	})
}

// each calls f with the trials in a state.
func (r *run) each(ctx context.Context, state study.TrialState, f func(study.Trial)) error {
	filter := tuner.Filter{States: []study.TrialState{state}}
	for {
		var trials []study.Trial
		var more bool
		err := r.retry(ctx, func() (err error) {
			trials, more, err = r.svc.Trials(ctx, r.options.Study, filter)
			return err
		})
		if err != nil {
			return err
		}
		for _, t := range trials {
			f(t)
			filter.First = t.Number + 1
		}
		if !more {
			return nil
		}
	}
}

// summary returns the summary of the run.
func (r *run) summary(ctx context.Context) (Summary, error) {
	s := Summary{Counts: r.counts}
	var err error
	if s.Study, err = r.svc.Study(ctx, r.options.Study); err != nil {
		return s, err
	}
	if s.Best, err = r.svc.Best(ctx, r.options.Study); err != nil {
		return s, err
	}
	err = r.own(ctx, func(t study.Trial) { s.Left = append(s.Left, t.Number) })
	return s, err
}

// event passes an event on.
func (r *run) event(e Event) {
	if r.options.OnEvent == nil {
		return
	}
	r.mu.Lock()
	e.Running = len(r.running)
	r.mu.Unlock()
	r.events.Lock()
	defer r.events.Unlock()
	r.options.OnEvent(e)
}
