package mcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

func (t *tools) studies() {
	add(t, repeats, "create_study", "Begin to tune something: define the parameters, their ranges and the objective. Call it once for each task, before ask.", t.create)
	add(t, reads, "list_studies", "List the studies with their state and best value. Use it to find a name or earlier work.", t.list)
	about(t, reads, "study_status", "Show the settings, counts, limits and best value of one study. Use it to take up earlier work or to see how far it is.", t.status)
	add(t, repeats, "control_study", "Pause, resume, finish or extend a study, or ask one of its running trials to stop. Use extend to go on after a study has finished.", t.control)
	add(t, reads, "compare_studies", "Compare the best values of studies, also at the same number of trials. Use it to choose between variants of a task.", t.compare)
}

// parameter is a parameter of a new study.
type parameter struct {
	Name string `json:"name" jsonschema:"name of the parameter"`
	described
}

// described has the fields of a parameter in the form of files.
type described struct {
	Type   string         `json:"type" jsonschema:"float, int, ordinal (values in order), categorical or constant"`
	Low    *float64       `json:"low,omitempty" jsonschema:"least value of a float or int"`
	High   *float64       `json:"high,omitempty" jsonschema:"greatest value of a float or int"`
	Step   *float64       `json:"step,omitempty" jsonschema:"step of a float or int"`
	Scale  string         `json:"scale,omitempty" jsonschema:"linear (default), log for ranges of several magnitudes such as learning rates, or reverse-log"`
	Values []any          `json:"values,omitempty" jsonschema:"values of an ordinal or categorical"`
	Value  any            `json:"value,omitempty" jsonschema:"value of a constant"`
	When   map[string]any `json:"when,omitempty" jsonschema:"condition: another parameter and its value or list of values for which this one exists"`
}

type createInput struct {
	Study           string         `json:"study" jsonschema:"name of the new study: letters, digits, dot, dash and underscore"`
	Parameters      []parameter    `json:"parameters,omitempty" jsonschema:"what to tune"`
	Space           string         `json:"space,omitempty" jsonschema:"instead of parameters: the text of a search space file of BKB Tuner, Optuna or Katib"`
	Constraints     []string       `json:"constraints,omitempty" jsonschema:"rules between parameters such as width <= 4 * batch"`
	Minimize        []string       `json:"minimize,omitempty" jsonschema:"names of metrics to minimize; without minimize and maximize it is value"`
	Maximize        []string       `json:"maximize,omitempty" jsonschema:"names of metrics to maximize"`
	Limits          []string       `json:"limits,omitempty" jsonschema:"limits of other metrics that you tell, such as latency <= 10"`
	MaxTrials       int            `json:"max_trials,omitempty" jsonschema:"number of trials after which the study finishes, 0 for no limit"`
	Target          *float64       `json:"target,omitempty" jsonschema:"value of the only objective that is good enough to finish"`
	Patience        int            `json:"patience,omitempty" jsonschema:"finish after so many trials without a better value"`
	LeaseSeconds    float64        `json:"lease_seconds,omitempty" jsonschema:"longest time of a trial without a report, default 3600; after it the trial is handed out again"`
	Proposer        string         `json:"proposer,omitempty" jsonschema:"bkb (default), sobol, random or grid"`
	ProposerOptions map[string]any `json:"proposer_options,omitempty" jsonschema:"options of the proposer"`
	Pruner          string         `json:"pruner,omitempty" jsonschema:"what stops bad trials that report: median, percentile, asha, hyperband, threshold, patience or model"`
	PrunerOptions   map[string]any `json:"pruner_options,omitempty" jsonschema:"options of the pruner"`
	Seed            uint64         `json:"seed,omitempty" jsonschema:"seed of random numbers, by default from name and settings"`
}

// file is the space as the text of a file.
func (in createInput) file() (string, error) {
	switch {
	case in.Space != "" && len(in.Parameters)+len(in.Constraints) > 0:
		return "", errors.New("space: it excludes parameters and constraints; leave one of them out")
	case in.Space != "":
		return in.Space, nil
	case len(in.Parameters) == 0:
		return "", errors.New("parameters: there are none; give at least one, such as {\"name\": \"lr\", \"type\": \"float\", \"low\": 1e-5, \"high\": 0.1, \"scale\": \"log\"}")
	}
	var list []string
	for _, p := range in.Parameters {
		list = append(list, asJSON(p.Name)+": "+asJSON(p.described))
	}
	rules := append([]string{}, in.Constraints...)
	return fmt.Sprintf(`{"parameters": {%s}, "constraints": %s}`, strings.Join(list, ", "), asJSON(rules)), nil
}

func (in createInput) spec() (s study.Spec, err error) {
	file, err := in.file()
	if err != nil {
		return s, err
	}
	if s.Space, _, err = space.Parse([]byte(file)); err != nil {
		for _, f := range space.Faults(err) {
			if in.Space == "" {
				f.Line = 0 // of a text that the caller does not know
			}
		}
		return s, err
	}
	for _, name := range in.Minimize {
		s.Objectives = append(s.Objectives, study.Objective{Name: name, Direction: study.Minimize})
	}
	for _, name := range in.Maximize {
		s.Objectives = append(s.Objectives, study.Objective{Name: name, Direction: study.Maximize})
	}
	if len(s.Objectives) == 0 {
		s.Objectives = []study.Objective{{Name: "value", Direction: study.Minimize}}
	}
	s.MaxTrials, s.Target, s.Patience, s.MaxRetries = in.MaxTrials, in.Target, in.Patience, study.DefaultMaxRetries
	s.Lease = time.Duration(in.LeaseSeconds * float64(time.Second))
	s.Proposer = component(in.Proposer, in.ProposerOptions)
	s.Pruner = component(in.Pruner, in.PrunerOptions)
	for _, limit := range in.Limits {
		if err := tuner.Constrain(&s.Proposer, limit); err != nil {
			return s, fmt.Errorf("limits: %w", err)
		}
	}
	return s, nil
}

func component(name string, options map[string]any) study.Component {
	if len(options) == 0 {
		return study.Component{Name: name}
	}
	return study.Component{Name: name, Options: asJSON(options)}
}

// create makes a study. Its seed and request id are those of its name and settings, so that the
// same call makes it once.
func (t *tools) create(ctx context.Context, in createInput) (any, error) {
	spec, err := in.spec()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(asJSON(in)))
	spec.Seed = cmp.Or(in.Seed, binary.LittleEndian.Uint64(sum[:])>>11) // so that readers of JSON keep all its digits
	made, err := t.svc.CreateStudy(ctx, in.Study, study.Create{RequestID: "agent-" + hex.EncodeToString(sum[8:24]), Spec: spec})
	if err != nil {
		return nil, err
	}
	var warnings []string
	for _, w := range made.Warnings {
		w.Line = 0
		warnings = append(warnings, w.String())
	}
	return struct {
		progress
		Warnings []string `json:"warnings,omitempty"`
	}{progressOf(made.Study), head(warnings, 5)}, nil
}

// progress says how far a study is.
type progress struct {
	Study   string `json:"study"`
	State   string `json:"state"`
	Trials  string `json:"trials"`
	Running int    `json:"running,omitempty"`
	Failed  int    `json:"failed,omitempty"`
	Best    string `json:"best_measured,omitempty"`
}

func progressOf(s tuner.Study) progress {
	p := progress{Study: s.Name, State: s.Status.String(), Trials: fmt.Sprint(s.Trials), Running: s.Counts[study.Running], Failed: s.Counts[study.Failed]}
	if s.Unread != "" {
		p.State = "unreadable: " + s.Unread
	}
	if s.Status == study.StatusFinished {
		p.State += " (" + s.Finished.Reason.String() + ")"
	}
	if s.Spec.MaxTrials > 0 {
		p.Trials = fmt.Sprintf("%d of %d", s.Counted, s.Spec.MaxTrials)
	}
	if len(s.BestMeasured.Values) > 0 {
		p.Best = fmt.Sprintf("%.6g in trial %d", s.BestMeasured.Values[0], s.BestMeasured.Trial)
	}
	return p
}

func objectives(spec study.Spec) (words []string) {
	for _, o := range spec.Objectives {
		words = append(words, o.Direction.String()+" "+o.Name)
	}
	return words
}

type listInput struct {
	After string `json:"after,omitempty" jsonschema:"only studies whose names sort after this one"`
	Limit int    `json:"limit,omitempty" jsonschema:"most studies, default 20, at most 100"`
}

func (t *tools) list(ctx context.Context, in listInput) (any, error) {
	limit, err := within("limit", in.Limit, 20, 100)
	if err != nil {
		return nil, err
	}
	list, more, err := t.svc.Studies(ctx, in.After, limit)
	if err != nil {
		return nil, err
	}
	out := table{Columns: []string{"study", "state", "trials", "best_measured", "objectives"}, Rows: []any{}}
	for _, s := range list {
		p := progressOf(s)
		out.Rows = append(out.Rows, []any{p.Study, p.State, p.Trials, p.Best, objectives(s.Spec)})
	}
	if more {
		out.More = fmt.Sprintf("call list_studies with after %q", list[len(list)-1].Name)
	}
	return out, nil
}

type studyInput struct {
	Study string `json:"study" jsonschema:"name of the study"`
}

func (in studyInput) name() string { return in.Study }

func (t *tools) status(_ context.Context, s tuner.Study, _ studyInput) (any, error) {
	lines := strings.Split(string(s.Spec.Space.YAML()), "\n")[1:] // without the version
	return struct {
		progress
		Detail     string         `json:"finished_because,omitempty"`
		Objectives []string       `json:"objectives"`
		Target     *float64       `json:"target,omitempty"`
		Patience   int            `json:"patience,omitempty"`
		Queued     int            `json:"queued,omitempty"`
		Created    time.Time      `json:"created"`
		LastTold   time.Time      `json:"last_told,omitzero"`
		Proposer   string         `json:"proposer"`
		Pruner     string         `json:"pruner,omitempty"`
		Lease      string         `json:"lease"`
		Position   study.Position `json:"position"`
		Space      string         `json:"space"`
	}{
		progressOf(s), space.Head(s.Finished.Detail, 200), objectives(s.Spec), s.Spec.Target, s.Spec.Patience,
		s.Counts[study.Queued], seconds(s.Created), seconds(s.LastTold),
		cmp.Or(s.Spec.Proposer.Name, tuner.DefaultProposer) + s.Spec.Proposer.Options, s.Spec.Pruner.Name + s.Spec.Pruner.Options,
		s.Spec.Lease.String(), s.Position, strings.Join(head(lines, 40), "\n"),
	}, nil
}

// seconds is a time that is short in JSON.
func seconds(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

type controlInput struct {
	studyInput
	Action string `json:"action" jsonschema:"pause, resume, finish, extend or stop_trial"`
	Max    int    `json:"max_trials,omitempty" jsonschema:"for extend: the new number of trials after which the study finishes"`
	Trial  *int   `json:"trial,omitempty" jsonschema:"for stop_trial: number of the running trial; its worker learns of it at its next report"`
	Reason string `json:"reason,omitempty" jsonschema:"for finish and stop_trial: why"`
}

func (t *tools) control(ctx context.Context, in controlInput) (any, error) {
	var s tuner.Study
	var err error
	switch in.Action {
	case "pause":
		s, err = t.svc.Pause(ctx, in.Study, study.Pause{})
	case "resume":
		s, err = t.svc.Resume(ctx, in.Study, study.Resume{})
	case "finish":
		s, err = t.svc.Finish(ctx, in.Study, study.Finish{Detail: in.Reason})
	case "extend":
		s, err = t.svc.Extend(ctx, in.Study, study.Extend{MaxTrials: in.Max})
	case "stop_trial":
		if in.Trial == nil {
			return nil, errors.New("trial: there is none; give the number of the trial to stop")
		}
		reason := study.Attributes{study.StopAttribute: cmp.Or(in.Reason, study.StopReason)}
		if err = t.svc.SetAttributes(ctx, in.Study, study.SetAttributes{Trial: *in.Trial, Attributes: reason}); err == nil {
			s, err = t.svc.Study(ctx, in.Study)
		}
	default:
		err = fmt.Errorf("action = %q: must be pause, resume, finish, extend or stop_trial", in.Action)
	}
	if err != nil {
		return nil, err
	}
	return progressOf(s), nil
}

type compareInput struct {
	Studies []string `json:"studies" jsonschema:"names of 2 to 10 studies with the same first objective"`
}

func (t *tools) compare(ctx context.Context, in compareInput) (any, error) {
	if n := len(in.Studies); n < 2 || n > 10 {
		return nil, fmt.Errorf("studies: %d names; give 2 to 10", n)
	}
	var first study.Objective
	states, all, fewest := make([]progress, len(in.Studies)), make([][]measured, len(in.Studies)), math.MaxInt
	for i, name := range in.Studies {
		s, err := t.svc.Study(ctx, name)
		if err != nil {
			return nil, err
		}
		o := s.Spec.Objectives[0]
		if first = cmp.Or(first, o); o != first {
			return nil, fmt.Errorf("studies: %s has the objective %s %s and %s has %s %s; compare studies of one objective", in.Studies[0], first.Direction, first.Name, name, o.Direction, o.Name)
		}
		if all[i], err = t.completed(ctx, s); err != nil {
			return nil, err
		}
		states[i], fewest = progressOf(s), min(fewest, len(all[i]))
	}
	out := table{Columns: []string{"study", "state", "trials", "completed", "best", fmt.Sprintf("best_of_first_%d", fewest)}}
	for i, p := range states {
		out.Rows = append(out.Rows, []any{p.Study, p.State, p.Trials, len(all[i]), best(first, all[i]), best(first, all[i][:fewest])})
	}
	out.Note = fmt.Sprintf("%s %s, as measured; noise can decide small differences", first.Direction, first.Name)
	return out, nil
}

// measured is a completed trial with its value of the first objective.
type measured struct {
	trial  int
	value  float64
	breaks float64 // 1 for a trial that breaks a constraint, else 0
}

// completed returns the completed trials by number.
func (t *tools) completed(ctx context.Context, s tuner.Study) (list []measured, err error) {
	column := "value/" + s.Spec.Objectives[0].Name
	c, err := t.svc.Columns(ctx, s.Name, tuner.ColumnQuery{Names: []string{"state", "feasible", column}})
	if err != nil {
		return nil, err
	}
	for i := range c.Rows {
		if study.TrialState(c.Find("state").At(i)) == study.Completed {
			list = append(list, measured{i, c.Find(column).At(i), 1 - c.Find("feasible").At(i)})
		}
	}
	return list, nil
}

// inOrder compares trials, those that keep the constraints first, then the best first.
func inOrder(o study.Objective) func(a, b measured) int {
	return func(a, b measured) int {
		return cmp.Or(cmp.Compare(a.breaks, b.breaks), o.Direction.Compare(a.value, b.value))
	}
}

// best is the best value of trials that keep the constraints, or nil.
func best(o study.Objective, list []measured) any {
	if len(list) > 0 {
		if m := slices.MinFunc(list, inOrder(o)); m.breaks == 0 {
			return number(m.value)
		}
	}
	return nil
}
