package tuner

import (
	"context"
	"io"
	"iter"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Service is the interface of the service. [Tuner] implements it in the process, over a
// store, and tuner/client over the wire.
//
// Studies go by name, trials by number. All methods may be called concurrently.
// Trials in answers carry no reports, which can be many: Reports returns those of one
// trial page by page, and Trials those of each trial if the filter asks for them.
// A call returns only what is on disk. A call that ends with an error changed nothing,
// unless the error's code is [Unknown]: then the caller sends the same request, with the
// same id, again.
type Service interface {
	// CreateStudy makes a study. Codes: AlreadyExists, Invalid. The same
	// request id with the same content returns the study made before.
	CreateStudy(ctx context.Context, name string, c study.Create) (Created, error)
	// Study returns a study as it stands.
	Study(ctx context.Context, name string) (Study, error)
	// Studies returns up to limit studies (0: a default) whose names sort after
	// the given one, in order; fewer than there are if more is true.
	Studies(ctx context.Context, after string, limit int) (studies []Study, more bool, err error)
	// DeleteStudy deletes a study with its trials, for good.
	DeleteStudy(ctx context.Context, name string) error

	Pause(ctx context.Context, name string, c study.Pause) (Study, error)
	Resume(ctx context.Context, name string, c study.Resume) (Study, error)
	// Finish ends a study for the reason study.FinishedUser; c.Reason has no effect.
	Finish(ctx context.Context, name string, c study.Finish) (Study, error)
	SetAttributes(ctx context.Context, name string, c study.SetAttributes) error

	// Ask hands out trials. A Count of 0 means 1; [AutoCount] means as many as
	// the proposer thinks useful in parallel now, one if it cannot say. Codes:
	// Finished, Paused, NoneLeft besides the usual.
	Ask(ctx context.Context, name string, c study.Ask) (Asked, error)
	// Tell gives a trial its outcome. Codes: AlreadyTold, TrialState.
	Tell(ctx context.Context, name string, c study.Tell) (Told, error)
	// Report adds intermediate values and says whether to stop the trial.
	Report(ctx context.Context, name string, c study.ReportValues) (Verdict, error)
	// Heartbeat renews a lease and says whether to stop the trial.
	Heartbeat(ctx context.Context, name string, c study.Heartbeat) (Verdict, error)
	Enqueue(ctx context.Context, name string, c study.Enqueue) (study.Trial, error)
	Add(ctx context.Context, name string, c study.Add) (study.Trial, error)

	Trial(ctx context.Context, name string, number int) (study.Trial, error)
	// Reports returns up to limit reports of a trial (0: a default) in order of
	// arrival, from the one with index first on; fewer than there are if more is true.
	Reports(ctx context.Context, name string, number, first, limit int) (reports []study.Report, more bool, err error)
	// Trials returns the trials that match the filter, in order of number.
	Trials(ctx context.Context, name string, f Filter) (trials []study.Trial, more bool, err error)
	// Best recommends: of one objective the completed trial that the proposer's
	// model takes for the best (see propose.Recommender), or without a model the one
	// with the best mean of its replicates (of equal ones the first); of several the
	// Pareto front of the means, in order of number. Empty if no trial completed.
	Best(ctx context.Context, name string) ([]study.Trial, error)
	// Diagnose says how the model of a study's proposer stands; without one all is
	// 0. The error wraps ErrUnsupported for proposers that never have one.
	Diagnose(ctx context.Context, name string) (propose.Diagnosis, error)
	// Watch yields what happens in a study after a position of its log, without
	// end while ctx lives and the study exists. An error is yielded last.
	Watch(ctx context.Context, name string, after study.Position) iter.Seq2[Happening, error]

	// Backup writes a consistent copy of the whole store.
	Backup(ctx context.Context, w io.Writer) error
	// Close waits for calls under way and releases what the service holds.
	Close() error
}

// AutoCount, as the Count of an ask, leaves the choice to the proposer.
const AutoCount = -1

// MaxPage is the most studies or trials that one call returns; also the default.
const MaxPage = 1000

// MaxReportPage is the most reports that one call returns; also the default.
const MaxReportPage = 10_000

// Study is a study as it stands.
type Study struct {
	Name       string
	ID         store.StudyID
	Spec       study.Spec
	Status     study.Status
	Finished   study.Finished // of a finished study
	Created    time.Time
	Position   study.Position
	Counts     map[study.TrialState]int // only states that have trials
	Trials     int
	Added      int // of the Trials; they do not count towards MaxTrials
	Cost       float64
	Attributes study.Attributes
}

// Created is a study that was just made, with remarks on its space.
type Created struct {
	Study
	Warnings []space.Warning
}

// Asked answers an ask.
type Asked struct {
	Trials []study.Trial
	// UsefulWorkers is how many parallel workers the proposer has use for now;
	// 0 if it cannot say.
	UsefulWorkers int
	// Warnings say which settings of the study have no effect and why, and whether
	// the cap limits the model; only with new suggestions.
	Warnings []string
	// Noise is the standard deviation of the noise of an outcome of the first new
	// suggestion, for each objective and in its unit. It is empty without a model.
	Noise []float64
}

// Told answers a tell.
type Told struct {
	Trial study.Trial
	// Late says that the outcome was kept as a late result: another worker has
	// the trial. A proposer with a model learns from it all the same.
	Late bool
}

// Verdict says whether a running trial should stop.
type Verdict struct {
	Stop     bool
	Reason   string    // for people
	Deadline time.Time // of the trial's lease
}

// Filter chooses trials.
type Filter struct {
	First  int                // the lowest number
	Limit  int                // at most so many; 0 means [MaxPage]
	States []study.TrialState // in one of these; empty for all
	Worker string             // last held by this worker; empty for all
	// Reports has the trials carry their reports.
	Reports bool
}

// Happening is one event of a study. Status and Trial are as they stand when it
// is delivered, which may be later than the event. The trial's Reports are those that
// the event added; over the wire the last of them if they are too many for a message.
type Happening struct {
	Position study.Position
	Time     time.Time
	// Kind names the event in a word: created, paused, resumed, finished,
	// enqueued, started, extended, reported, expired, told, told-late, added,
	// attributed, anchored.
	Kind   string
	Caller string // that caused the event, empty if it is not known
	Status study.Status
	Trial  *study.Trial // nil if the event was about none
}
