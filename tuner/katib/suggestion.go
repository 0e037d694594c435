package katib

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/bkbtuner/bkb/proto/katib"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/wire"
)

// HealthService is the name under which Katib's probes ask for the health of a suggestion
// service. It is not the name of the gRPC service.
const HealthService = "manager.v1beta1.Suggestion"

// DefaultLease is the default of [Options].Lease, a week.
const DefaultLease = 7 * 24 * time.Hour

// Options are the settings of a [Suggestion].
type Options struct {
	// Prefix comes before the name of an experiment in the name of its study.
	Prefix string
	// Lease is the longest time of a trial. After it a trial whose metrics Katib could not
	// read has failed. 0 means [DefaultLease].
	Lease time.Duration
	// Logger receives trials whose results are not used, and internal errors. Nil discards them.
	Logger *slog.Logger
}

// Suggestion is Katib's suggestion service. It is safe for concurrent use.
type Suggestion struct {
	pb.UnimplementedSuggestionServer
	service tuner.Service
	options Options

	mu          sync.Mutex
	experiments map[string]*experiment
}

// experiment is what a Suggestion keeps of an experiment. All of it can be read again from
// the study.
type experiment struct {
	mu        sync.Mutex
	study     string
	spec      *pb.Experiment // that the study was made or checked with, nil before
	space     *space.Space
	objective string
	count     int             // of trials that the study has handed out
	told      map[string]bool // names of trials whose outcome the study has
}

// NewSuggestion returns the suggestion service on a service.
func NewSuggestion(svc tuner.Service, o Options) *Suggestion {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Lease == 0 {
		o.Lease = DefaultLease
	}
	return &Suggestion{service: svc, options: o, experiments: make(map[string]*experiment)}
}

// ValidateAlgorithmSettings creates the study of an experiment, so that all that can be
// wrong with it is found before a trial runs.
func (s *Suggestion) ValidateAlgorithmSettings(ctx context.Context, r *pb.ValidateAlgorithmSettingsRequest) (*pb.ValidateAlgorithmSettingsReply, error) {
	err := s.with(ctx, r.GetExperiment(), func(*experiment) error { return nil })
	if err != nil {
		return nil, s.status(err)
	}
	return &pb.ValidateAlgorithmSettingsReply{}, nil
}

// GetSuggestions tells the trials that have ended and asks for the next ones.
func (s *Suggestion) GetSuggestions(ctx context.Context, r *pb.GetSuggestionsRequest) (*pb.GetSuggestionsReply, error) {
	reply := &pb.GetSuggestionsReply{}
	current, total := int(r.GetCurrentRequestNumber()), int(r.GetTotalRequestNumber())
	first := total - current
	numbers := fmt.Sprintf("%d of total_request_number %d", current, total)
	if current < 0 || first < 0 || current > study.MaxCount {
		return nil, s.status(&FieldError{
			"current_request_number", numbers, fmt.Sprintf("must be 0 to %d and at most the total", study.MaxCount),
			"send both as Katib's controller does, and lower parallelTrialCount if it is more",
		})
	}
	err := s.with(ctx, r.GetExperiment(), func(e *experiment) error {
		if known := max(e.count, len(r.GetTrials())); first > known+study.MaxCount {
			return &FieldError{
				"current_request_number", numbers, fmt.Sprintf("the total must be at most %d more than the %d trials that the study has or the request lists", study.MaxCount, known),
				"list all trials of the experiment",
			}
		}
		if first == 0 && len(e.told) > 0 {
			return coded(codes.FailedPrecondition, "the study %s has %d trials that ended, but the experiment is new; delete the study (tuner delete-study %s), or rename the experiment",
				e.study, len(e.told), e.study)
		}
		listed := make(map[string]*pb.Trial, len(r.GetTrials()))
		for _, t := range r.GetTrials() {
			listed[t.GetName()] = t
		}
		if err := s.rebuild(ctx, e, first, listed); err != nil {
			return err
		}
		for _, t := range r.GetTrials() {
			if err := s.tell(ctx, e, t); err != nil {
				return fmt.Errorf("trial %s: %w", t.GetName(), err)
			}
		}
		for k := first; k < total; k++ {
			t, err := s.ask(ctx, e, k)
			if err != nil {
				return fmt.Errorf("suggestion %d: %w", k, err)
			}
			reply.ParameterAssignments = append(reply.ParameterAssignments, assignments(t.Config, e.name(k)))
		}
		return nil
	})
	if err != nil {
		return nil, s.status(err)
	}
	return reply, nil
}

// with calls do with an experiment whose study exists.
func (s *Suggestion) with(ctx context.Context, m *pb.Experiment, do func(*experiment) error) error {
	e := s.hold(m.GetName())
	defer e.mu.Unlock()
	if err := s.ensure(ctx, e, m); err != nil {
		if e.spec == nil { // so that wrong ones do not gather
			s.mu.Lock()
			delete(s.experiments, m.GetName())
			s.mu.Unlock()
		}
		return err
	}
	err := do(e)
	if tuner.CodeOf(err) == tuner.NotFound {
		// Someone deleted the study. Katib asks again, and then it is rebuilt.
		e.spec = nil
		return coded(codes.Unavailable, "the study %s was deleted", e.study)
	}
	return err
}

// hold returns the experiment of a name, locked. It begins anew if the experiment was refused
// while it waited.
func (s *Suggestion) hold(name string) *experiment {
	for {
		s.mu.Lock()
		e := s.experiments[name]
		if e == nil {
			e = &experiment{study: s.options.Prefix + name}
			s.experiments[name] = e
		}
		s.mu.Unlock()
		e.mu.Lock()
		s.mu.Lock()
		kept := s.experiments[name] == e
		s.mu.Unlock()
		if kept {
			return e
		}
		e.mu.Unlock()
	}
}

// ensure creates the study of an experiment, or checks the one that exists. It does so once,
// as long as the experiment is the same.
func (s *Suggestion) ensure(ctx context.Context, e *experiment, m *pb.Experiment) error {
	given := &pb.Experiment{Name: m.GetName(), Spec: &pb.ExperimentSpec{
		ParameterSpecs: m.GetSpec().GetParameterSpecs(), Algorithm: m.GetSpec().GetAlgorithm(), NasConfig: m.GetSpec().GetNasConfig(),
		Objective: &pb.ObjectiveSpec{Type: m.GetSpec().GetObjective().GetType(), ObjectiveMetricName: m.GetSpec().GetObjective().GetObjectiveMetricName()},
	}}
	if e.spec != nil && proto.Equal(e.spec, given) {
		return nil
	}
	spec, err := specOf(given, s.options.Lease)
	if err != nil {
		return err
	}
	_, err = s.service.CreateStudy(ctx, e.study, study.Create{RequestID: "katib", Spec: spec})
	if tuner.CodeOf(err) == tuner.AlreadyExists {
		return &FieldError{"the study " + e.study, "(exists)", "belongs to another experiment or has other settings", "delete it (tuner delete-study " + e.study + "), or rename the experiment"}
	} else if err != nil {
		return err
	}
	view, err := s.service.Study(ctx, e.study)
	if err != nil {
		return err
	}
	e.count, e.told = view.Trials-view.Counts[study.Queued], make(map[string]bool)
	for more, first := true, 0; more; {
		var trials []study.Trial
		if trials, more, err = s.service.Trials(ctx, e.study, tuner.Filter{First: first}); err != nil {
			return err
		}
		more = more && len(trials) > 0
		for _, t := range trials {
			first = t.Number + 1
			// A late result replaces the outcome of a trial whose lease expired.
			if t.State.Terminal() && t.Outcome.Reason != study.FailedExpired {
				e.told[m.GetName()+"-"+strconv.Itoa(t.Number)] = true
			}
		}
	}
	e.spec, e.space, e.objective = given, spec.Space, spec.Objectives[0].Name
	return nil
}

func (e *experiment) name(k int) string { return e.spec.GetName() + "-" + strconv.Itoa(k) }

func (e *experiment) number(name string) (int, error) {
	text, ok := strings.CutPrefix(name, e.spec.GetName()+"-")
	k, err := strconv.Atoi(text)
	if !ok || err != nil || k < 0 || e.name(k) != name {
		return 0, coded(codes.FailedPrecondition, "the name must be %s-NUMBER; use a version of Katib that takes the names of trials from its suggestion service", e.spec.GetName())
	}
	return k, nil
}

// rebuild hands out again what a lost study had handed out, up to suggestion first.
func (s *Suggestion) rebuild(ctx context.Context, e *experiment, first int, listed map[string]*pb.Trial) error {
	if e.count < first {
		s.options.Logger.Warn("the study has fewer trials than Katib, so it is rebuilt from Katib's list", "study", e.study, "trials", e.count, "suggestions", first)
	}
	for k := e.count; k < first; k++ {
		name := e.name(k)
		config, known := configOf(e.space, listed[name])
		known = known && listed[name] != nil
		if known {
			if _, err := s.service.Enqueue(ctx, e.study, study.Enqueue{RequestID: "rebuilt-" + strconv.Itoa(k), Config: config}); err != nil {
				return fmt.Errorf("rebuilding trial %s: %w", name, err)
			}
		}
		if _, err := s.ask(ctx, e, k); err != nil {
			return fmt.Errorf("rebuilding trial %s: %w", name, err)
		}
		if known {
			continue
		}
		outcome := study.Outcome{State: study.Failed, Reason: study.FailedCancelled, Message: "the study was lost, and Katib does not list this suggestion"}
		if err := s.conclude(ctx, e, name, k, outcome); err != nil {
			return fmt.Errorf("rebuilding trial %s: %w", name, err)
		}
		s.options.Logger.Warn("a suggestion is not in Katib's list, so its result will not be used", "trial", name)
	}
	return nil
}

// ask returns suggestion k, the same one each time.
func (s *Suggestion) ask(ctx context.Context, e *experiment, k int) (study.Trial, error) {
	asked, err := s.service.Ask(ctx, e.study, study.Ask{RequestID: "suggestion-" + strconv.Itoa(k), Count: 1, New: true})
	if err != nil {
		return study.Trial{}, err
	}
	if len(asked.Trials) != 1 || asked.Trials[0].Number != k {
		return study.Trial{}, coded(codes.FailedPrecondition, "the study %s handed out another trial, because trials were added or asked for by other means; delete it (tuner delete-study %s)", e.study, e.study)
	}
	e.count = max(e.count, k+1)
	return asked.Trials[0], nil
}

// tell tells the outcome of a trial that has ended, once.
func (s *Suggestion) tell(ctx context.Context, e *experiment, t *pb.Trial) error {
	outcome, ended := e.outcome(t)
	if !ended || e.told[t.GetName()] {
		return nil
	}
	k, err := e.number(t.GetName())
	if err != nil {
		return err
	}
	if k >= e.count {
		return coded(codes.FailedPrecondition, "only %d trials were suggested; delete the trial", e.count)
	}
	err = s.conclude(ctx, e, t.GetName(), k, outcome)
	if tuner.CodeOf(err) == tuner.Invalid {
		// Such as an infinity on the good side. It must not end all further calls.
		s.options.Logger.Warn("the study refuses the result of a trial, so the trial has failed", "trial", t.GetName(), "why", err)
		err = s.conclude(ctx, e, t.GetName(), k, study.Outcome{State: study.Failed, Reason: study.FailedCrash, Message: err.Error()})
	}
	return err
}

// conclude tells the outcome of trial k. An outcome that was told before stays.
func (s *Suggestion) conclude(ctx context.Context, e *experiment, name string, k int, o study.Outcome) error {
	_, err := s.service.Tell(ctx, e.study, study.Tell{RequestID: "told-" + name, Trial: k, Outcome: o})
	if err != nil && tuner.CodeOf(err) != tuner.AlreadyTold {
		return err
	}
	e.told[name] = true
	return nil
}

// outcome translates the condition of a trial. ended is false if the trial is not over.
func (e *experiment) outcome(t *pb.Trial) (o study.Outcome, ended bool) {
	switch t.GetStatus().GetCondition() {
	case pb.TrialStatus_SUCCEEDED:
		o.State = study.Completed
	case pb.TrialStatus_EARLYSTOPPED:
		o.State = study.Pruned
	case pb.TrialStatus_FAILED:
		return study.Outcome{State: study.Failed, Reason: study.FailedCrash, Message: "failed in Katib"}, true
	case pb.TrialStatus_KILLED:
		return study.Outcome{State: study.Failed, Reason: study.FailedCancelled, Message: "killed in Katib"}, true
	case pb.TrialStatus_METRICSUNAVAILABLE:
		return study.Outcome{State: study.Failed, Reason: study.FailedCrash, Message: "Katib found no metrics"}, true
	default: // not over yet
		return o, false
	}
	measured, text := false, "(absent)"
	for _, m := range t.GetStatus().GetObservation().GetMetrics() {
		x, err := strconv.ParseFloat(m.GetValue(), 64)
		objective := m.GetName() == e.objective
		if objective {
			measured, text = err == nil, strconv.Quote(m.GetValue())
		}
		// Only an objective may be NaN or infinite.
		if err != nil || !objective && (math.IsNaN(x) || math.IsInf(x, 0)) {
			continue
		}
		if _, twice := o.Metric(m.GetName()); !twice {
			o.Metrics = append(o.Metrics, study.Metric{Name: m.GetName(), Values: []float64{x}})
		}
	}
	if o.State == study.Completed && !measured {
		return study.Outcome{State: study.Failed, Reason: study.FailedCrash, Message: fmt.Sprintf("Katib's value of the metric %s is not a number: %s", e.objective, text)}, true
	}
	return o, true
}

func assignments(c space.Config, name string) *pb.GetSuggestionsReply_ParameterAssignments {
	out := &pb.GetSuggestionsReply_ParameterAssignments{TrialName: name}
	for parameter, v := range c.All() {
		out.Assignments = append(out.Assignments, &pb.ParameterAssignment{Name: parameter, Value: v.String()})
	}
	return out
}

// codeError is an error with its code in gRPC.
type codeError struct {
	code    codes.Code
	message string
}

func (e *codeError) Error() string { return e.message }

func coded(c codes.Code, format string, args ...any) error {
	return &codeError{c, fmt.Sprintf(format, args...)}
}

// status returns an error as Katib reads it. UNKNOWN would end the experiment, so a call
// whose outcome is not known is UNAVAILABLE, and Katib repeats it.
func (s *Suggestion) status(err error) error {
	if own := (*codeError)(nil); errors.As(err, &own) {
		return status.Error(own.code, err.Error())
	}
	if field := (*FieldError)(nil); errors.As(err, &field) {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	id := rand.Text()[:8]
	st, hidden := wire.Status(err, id)
	if hidden {
		s.options.Logger.Error("a call failed", "error", err, "id", id)
	}
	if st.Code() == codes.Unknown {
		return status.Error(codes.Unavailable, st.Message())
	}
	return st.Err()
}
