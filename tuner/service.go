package tuner

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/surrogate"
)

// Service is the interface of the service. [engine.Engine] implements it in the process, over a
// store, and tuner/client implements it over the network.
//
// A name identifies a study, and a number identifies a trial within it. All methods are safe for
// concurrent use. Trials in answers have no reports, because there can be many. Reports returns
// the reports of one trial page by page. Trials includes them if the filter asks for them.
//
// A call returns only stored data. A call that ends with an error changed nothing, unless the
// error's code is [Unknown]. In that case, send the same request with the same request id again.
type Service interface {
	// CreateStudy makes a study. A retry with the same request id and the same content
	// returns the study made before. Its codes include AlreadyExists and Invalid.
	CreateStudy(ctx context.Context, name string, c study.Create) (Created, error)
	// Study returns the current state of a study.
	Study(ctx context.Context, name string) (Study, error)
	// Studies returns up to limit studies whose names sort after the given one, in
	// order. A limit of 0 means [MaxPage]. more reports that there are others.
	Studies(ctx context.Context, after string, limit int) (studies []Study, more bool, err error)
	// DeleteStudy deletes a study with its trials. It cannot be undone.
	DeleteStudy(ctx context.Context, name string) error

	Pause(ctx context.Context, name string, c study.Pause) (Study, error)
	Resume(ctx context.Context, name string, c study.Resume) (Study, error)
	// Finish ends a study for the reason study.FinishedUser, so c.Reason has no effect.
	Finish(ctx context.Context, name string, c study.Finish) (Study, error)
	// Extend raises limits of a study and continues it if it has finished.
	Extend(ctx context.Context, name string, c study.Extend) (Study, error)
	// SetAttributes changes the notes on a study or trial. With study.StopAttribute it asks a
	// running trial to stop.
	SetAttributes(ctx context.Context, name string, c study.SetAttributes) error

	// Ask hands out trials. A Count of 0 means 1. With [AutoCount] it hands out as many
	// as are useful in parallel now, or one if the proposer cannot tell. Its codes
	// include Finished, Paused and NoneLeft.
	Ask(ctx context.Context, name string, c study.Ask) (Asked, error)
	// Tell gives a trial its outcome. Its codes include AlreadyTold and TrialState.
	Tell(ctx context.Context, name string, c study.Tell) (Told, error)
	// Report adds intermediate values and says whether to stop the trial.
	Report(ctx context.Context, name string, c study.ReportValues) (Verdict, error)
	// Heartbeat renews a lease and says whether to stop the trial.
	Heartbeat(ctx context.Context, name string, c study.Heartbeat) (Verdict, error)
	Enqueue(ctx context.Context, name string, c study.Enqueue) (study.Trial, error)
	Add(ctx context.Context, name string, c study.Add) (study.Trial, error)

	// AddAll adds and enqueues trials in order, with few commits. Each command is a study.Add or
	// study.Enqueue with its own request id, and there are at most [MaxPage]. AddAll returns the
	// trial number for each command. Once it has begun, it does not stop when ctx ends.
	//
	// If a command is refused, the error is a [CommandError]. Any other error means
	// that no trial was added, unless its code is [Unknown]. Then some may have been
	// added, and sending the same commands again returns them and adds the rest.
	AddAll(ctx context.Context, name string, commands []study.Command) (numbers []int, err error)

	Trial(ctx context.Context, name string, number int) (study.Trial, error)
	// Reports returns up to limit reports of a trial in order of arrival, starting at index
	// first. A limit of 0 means [MaxReportPage]. more reports that there are others.
	Reports(ctx context.Context, name string, number, first, limit int) (reports []study.Report, more bool, err error)
	// Trials returns the trials that match the filter, ordered by number.
	Trials(ctx context.Context, name string, f Filter) (trials []study.Trial, more bool, err error)
	// Columns returns numbers of trials, column by column. They take far less room than trials.
	Columns(ctx context.Context, name string, q ColumnQuery) (Columns, error)
	// Best recommends trials, and none if no trial has completed. Equal configurations count
	// once, with the mean of their measurements. Those that break the constraints least are
	// compared, by the proposer's model (see propose.Modeler) or without one by what was
	// measured. For one objective it returns one trial, the first of equal ones. For several
	// objectives it returns the Pareto front.
	Best(ctx context.Context, name string) ([]study.Trial, error)
	// Diagnose describes the model of a study's proposer. While there is no model, State
	// says why, and all other fields but Missing are 0. The error wraps ErrUnsupported if the proposer never has one.
	Diagnose(ctx context.Context, name string) (surrogate.Diagnosis, error)
	// Predict returns what the model of a study's proposer predicts. Without a model there
	// are no predictions, and State says why. The error wraps ErrUnsupported if the
	// proposer never has one.
	Predict(ctx context.Context, name string, q PredictQuery) (Predictions, error)
	// Importance says how much each parameter matters, by the model and by the data. For
	// the model alone, the error wraps ErrUnsupported if the proposer never has one.
	Importance(ctx context.Context, name string, q ImportanceQuery) (Importance, error)
	// WriteArtifact writes a part of a file of a trial, which may be in any state. Once the
	// part that ends the file is answered, the file is there as a whole and on disk, in the
	// place of an artifact of the same name. The same part may be sent again. Its codes
	// include Exhausted. Upload sends all parts.
	WriteArtifact(ctx context.Context, name string, c WriteArtifact) (WrittenArtifact, error)
	// ReadArtifact returns a part of an artifact. Download reads all parts.
	ReadArtifact(ctx context.Context, name string, q ReadArtifact) (ArtifactPart, error)
	// Artifacts returns the artifacts of a trial in order of name.
	Artifacts(ctx context.Context, name string, q ListArtifacts) ([]Artifact, error)
	// DeleteArtifact has no effect if there is no such artifact.
	DeleteArtifact(ctx context.Context, name string, c DeleteArtifact) error
	// Watch yields the events of a study after a position of its log, each once, in order
	// and without gaps, as soon as they are stored. It ends when ctx ends or the study is
	// deleted, and yields the error last. To resume, give the last position. If the log is
	// shorter, the error is Invalid. A study that was created under the name of a deleted
	// one begins another watch, see [From].
	Watch(ctx context.Context, name string, from From) iter.Seq2[Event, error]

	// WatchStudies yields all studies, and then those that change, not more often than a
	// few times a second. Several changes of a study come as one, as it stands after the
	// last, and its position never goes back. It ends when ctx ends, and yields the error last. Changes are
	// those made through this service. Changes through other servers of a shared store
	// follow within a few seconds.
	WatchStudies(ctx context.Context) iter.Seq2[StudyNews, error]

	// Backup writes a consistent copy of the whole store.
	Backup(ctx context.Context, w io.Writer) error
	// Close waits for calls under way and releases what the service holds.
	Close() error
}

// AutoCount, as the Count of an ask, lets the proposer choose.
const AutoCount = -1

// MaxPage is the most studies or trials that one call returns, and the default.
const MaxPage = 1000

// MaxReportPage is the most reports that one call returns, and the default.
const MaxReportPage = 10_000

// Study is the current state of a study.
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
	Added      int // of Trials
	Counted    int // of Trials, those that count towards MaxTrials, which added and cancelled ones do not
	Cost       float64
	Attributes study.Attributes
	// BestMeasured is the completed trial with the best mean, the first of equal ones. A
	// trial that violates the constraints counts only if no trial keeps them. It has no
	// values if no trial has completed, and in a study of several objectives.
	BestMeasured Measured
	LastTold     time.Time // when the last outcome was told or added, zero if none was
	ToldLastHour int       // outcomes told within the last 60 minutes, added trials not included
	// Unread is the reason why [Service.Studies] could not read the study. The other
	// fields but Name and ID are zero then.
	Unread string
}

// Created is a new study with warnings about its space.
type Created struct {
	Study
	Warnings []space.Warning
}

// Asked is the answer to an ask.
type Asked struct {
	Trials []study.Trial
	// UsefulWorkers is the number of parallel workers that are useful now, or 0 if the
	// proposer cannot tell.
	UsefulWorkers int
	// Warnings say which settings of the study have no effect and why, and whether the
	// cap limits the model. They come only with new suggestions.
	Warnings []string
	// Noise is the standard deviation of the noise of an outcome of the first new
	// suggestion, for each objective and in its unit. It is empty without a model.
	Noise []float64
}

// Told is the answer to a tell.
type Told struct {
	Trial study.Trial
	// Late reports that the outcome was kept as a late result, because another worker
	// has the trial. A proposer with a model still learns from it.
	Late bool
	// Next is the answer to the tell's Next. It is nil if no trial was handed out, and an ask
	// with the same request says why.
	Next *Asked
}

// Verdict says whether a running trial should stop.
type Verdict struct {
	Stop     bool
	Reason   string    // for people; without Stop why a trial runs on, or empty
	Deadline time.Time // of the trial's lease
}

// Filter selects trials.
type Filter struct {
	First  int                // the lowest number
	Limit  int                // 0 means [MaxPage]
	States []study.TrialState // empty for all
	Worker string             // that held the trial last, empty for all
	// Reports includes the reports of each trial.
	Reports bool
}

// Event is one event of a study. Status and Trial are current when it is delivered, which may be
// later than the event. The trial's Reports are those that the event added. If they do not fit
// into one message of the network, only the last of them are included.
type Event struct {
	Study    store.StudyID
	Position study.Position
	Time     time.Time
	// Kind names the event. It is created, paused, resumed, finished, raised, enqueued, started,
	// extended, reported, expired, told, told-late, added, attributed or anchored.
	Kind   string
	Caller string // that caused the event, empty if unknown
	Status study.Status
	Trial  *study.Trial // nil if the event concerns no trial
}

// String describes an event in a line.
func (e Event) String() string {
	if e.Trial == nil {
		return e.Kind
	}
	text := fmt.Sprintf("%s trial %d", e.Kind, e.Trial.Number)
	switch e.Kind {
	case "started", "enqueued":
		text += "  " + e.Trial.Config.Short()
	case "reported":
		if n := len(e.Trial.Reports); n > 0 {
			last := e.Trial.Reports[n-1]
			text += fmt.Sprintf("  step %d", last.Step)
			for _, v := range last.Values {
				text += fmt.Sprintf(" %s=%.6g", v.Name, v.Value)
			}
		}
	case "told", "added":
		text += "  " + e.Trial.Outcome.String()
	}
	return text
}

// Measured is a completed trial with the means of its objectives, in order. Without
// values there is none.
type Measured struct {
	Trial  int
	Values []float64
}

// MaxAuto is the most trials that an ask with [AutoCount] gets.
const MaxAuto = 64

// DefaultProposer is the proposer of studies created without one.
const DefaultProposer = "bkb"

// StudyNews is a part of what [Service.WatchStudies] yields.
type StudyNews struct {
	// Studies are studies as they stand, those that are new or have changed.
	Studies []Study
	// Deleted are studies that were yielded before and are gone.
	Deleted []store.StudyID
	// Listed reports that all studies have been yielded that existed at the beginning. It
	// is set once.
	Listed bool
}

// Components are what a new study can be made with.
type Components struct {
	Proposers []Component `json:"proposers"`
	Pruners   []Component `json:"pruners"`
}

// Component is a proposer or pruner of new studies, with the names of its options.
type Component struct {
	Name    string   `json:"name"`
	Options []string `json:"options,omitempty"`
}

// Relay is a [Service] that makes each call at another service. A type that
// embeds one implements what differs: Watch, WatchStudies, Backup and Close.
type Relay struct {
	// Pass calls f with the service for a call. It may do so again until the call succeeds.
	Pass func(ctx context.Context, c Passed, f func(context.Context, Service) error) error
	// Identify gives commands without a request id one, so that they can be sent again.
	Identify bool
}

// Passed is a call that a [Relay] makes.
type Passed struct {
	Study   string // empty for a call about no study
	Changes bool   // it has one effect, even if it is made several times
}

// NewRequestID returns a random request id.
func NewRequestID() string { return rand.Text() }

func (r Relay) identify(id *string) {
	if r.Identify && *id == "" {
		*id = NewRequestID()
	}
}

func pass[R any](ctx context.Context, r Relay, c Passed, call func(context.Context, Service) (R, error)) (R, error) {
	var none, out R
	err := r.Pass(ctx, c, func(ctx context.Context, s Service) (err error) {
		out, err = call(ctx, s)
		return err
	})
	if err != nil {
		return none, err
	}
	return out, nil
}

// read and change pass a call about one study with one argument.
func read[Q, R any](ctx context.Context, r Relay, call func(Service, context.Context, string, Q) (R, error), name string, q Q) (R, error) {
	return pass(ctx, r, Passed{Study: name}, func(ctx context.Context, s Service) (R, error) { return call(s, ctx, name, q) })
}

func change[C, R any](ctx context.Context, r Relay, call func(Service, context.Context, string, C) (R, error), name string, c C) (R, error) {
	return pass(ctx, r, Passed{name, true}, func(ctx context.Context, s Service) (R, error) { return call(s, ctx, name, c) })
}

// list passes a call that returns a part of a list.
func list[T any](ctx context.Context, r Relay, c Passed, call func(context.Context, Service) ([]T, bool, error)) (all []T, more bool, err error) {
	all, err = pass(ctx, r, c, func(ctx context.Context, s Service) (part []T, err error) {
		part, more, err = call(ctx, s)
		return part, err
	})
	return all, more && err == nil, err
}

// The methods of a Relay are those of [Service].

func (r Relay) CreateStudy(ctx context.Context, name string, c study.Create) (Created, error) {
	r.identify(&c.RequestID)
	return change(ctx, r, Service.CreateStudy, name, c)
}

func (r Relay) Study(ctx context.Context, name string) (Study, error) {
	return pass(ctx, r, Passed{Study: name}, func(ctx context.Context, s Service) (Study, error) { return s.Study(ctx, name) })
}

func (r Relay) Studies(ctx context.Context, after string, limit int) ([]Study, bool, error) {
	return list(ctx, r, Passed{}, func(ctx context.Context, s Service) ([]Study, bool, error) { return s.Studies(ctx, after, limit) })
}

func (r Relay) DeleteStudy(ctx context.Context, name string) error {
	return r.Pass(ctx, Passed{name, true}, func(ctx context.Context, s Service) error { return s.DeleteStudy(ctx, name) })
}

func (r Relay) Pause(ctx context.Context, name string, c study.Pause) (Study, error) {
	r.identify(&c.RequestID)
	return change(ctx, r, Service.Pause, name, c)
}

func (r Relay) Resume(ctx context.Context, name string, c study.Resume) (Study, error) {
	r.identify(&c.RequestID)
	return change(ctx, r, Service.Resume, name, c)
}

func (r Relay) Finish(ctx context.Context, name string, c study.Finish) (Study, error) {
	r.identify(&c.RequestID)
	return change(ctx, r, Service.Finish, name, c)
}

func (r Relay) Extend(ctx context.Context, name string, c study.Extend) (Study, error) {
	r.identify(&c.RequestID)
	return change(ctx, r, Service.Extend, name, c)
}

func (r Relay) SetAttributes(ctx context.Context, name string, c study.SetAttributes) error {
	r.identify(&c.RequestID)
	return r.Pass(ctx, Passed{name, true}, func(ctx context.Context, s Service) error { return s.SetAttributes(ctx, name, c) })
}

func (r Relay) Ask(ctx context.Context, name string, c study.Ask) (Asked, error) {
	r.identify(&c.RequestID)
	return change(ctx, r, Service.Ask, name, c)
}

func (r Relay) Tell(ctx context.Context, name string, c study.Tell) (Told, error) {
	r.identify(&c.RequestID)
	if c.Next != nil {
		next := *c.Next
		r.identify(&next.RequestID)
		c.Next = &next
	}
	return change(ctx, r, Service.Tell, name, c)
}

func (r Relay) Report(ctx context.Context, name string, c study.ReportValues) (Verdict, error) {
	r.identify(&c.RequestID)
	return change(ctx, r, Service.Report, name, c)
}

func (r Relay) Heartbeat(ctx context.Context, name string, c study.Heartbeat) (Verdict, error) {
	return change(ctx, r, Service.Heartbeat, name, c)
}

func (r Relay) Enqueue(ctx context.Context, name string, c study.Enqueue) (study.Trial, error) {
	r.identify(&c.RequestID)
	return change(ctx, r, Service.Enqueue, name, c)
}

func (r Relay) Add(ctx context.Context, name string, c study.Add) (study.Trial, error) {
	r.identify(&c.RequestID)
	return change(ctx, r, Service.Add, name, c)
}

func (r Relay) AddAll(ctx context.Context, name string, commands []study.Command) ([]int, error) {
	return pass(ctx, r, Passed{name, true}, func(ctx context.Context, s Service) ([]int, error) { return s.AddAll(ctx, name, commands) })
}

func (r Relay) Trial(ctx context.Context, name string, number int) (study.Trial, error) {
	return read(ctx, r, Service.Trial, name, number)
}

func (r Relay) Reports(ctx context.Context, name string, number, first, limit int) ([]study.Report, bool, error) {
	return list(ctx, r, Passed{Study: name}, func(ctx context.Context, s Service) ([]study.Report, bool, error) {
		return s.Reports(ctx, name, number, first, limit)
	})
}

func (r Relay) Trials(ctx context.Context, name string, f Filter) ([]study.Trial, bool, error) {
	return list(ctx, r, Passed{Study: name}, func(ctx context.Context, s Service) ([]study.Trial, bool, error) { return s.Trials(ctx, name, f) })
}

func (r Relay) Columns(ctx context.Context, name string, q ColumnQuery) (Columns, error) {
	return read(ctx, r, Service.Columns, name, q)
}

func (r Relay) Best(ctx context.Context, name string) ([]study.Trial, error) {
	return pass(ctx, r, Passed{Study: name}, func(ctx context.Context, s Service) ([]study.Trial, error) { return s.Best(ctx, name) })
}

func (r Relay) Diagnose(ctx context.Context, name string) (surrogate.Diagnosis, error) {
	return pass(ctx, r, Passed{Study: name}, func(ctx context.Context, s Service) (surrogate.Diagnosis, error) { return s.Diagnose(ctx, name) })
}

func (r Relay) Predict(ctx context.Context, name string, q PredictQuery) (Predictions, error) {
	return read(ctx, r, Service.Predict, name, q)
}

func (r Relay) Importance(ctx context.Context, name string, q ImportanceQuery) (Importance, error) {
	return read(ctx, r, Service.Importance, name, q)
}

func (r Relay) WriteArtifact(ctx context.Context, name string, c WriteArtifact) (WrittenArtifact, error) {
	return change(ctx, r, Service.WriteArtifact, name, c)
}

func (r Relay) ReadArtifact(ctx context.Context, name string, q ReadArtifact) (ArtifactPart, error) {
	return read(ctx, r, Service.ReadArtifact, name, q)
}

func (r Relay) Artifacts(ctx context.Context, name string, q ListArtifacts) ([]Artifact, error) {
	return read(ctx, r, Service.Artifacts, name, q)
}

func (r Relay) DeleteArtifact(ctx context.Context, name string, c DeleteArtifact) error {
	return r.Pass(ctx, Passed{name, true}, func(ctx context.Context, s Service) error { return s.DeleteArtifact(ctx, name, c) })
}
