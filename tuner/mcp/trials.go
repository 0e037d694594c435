package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/surrogate"
)

func (t *tools) trials() {
	about(t, adds, "ask", "Get trials to run: configurations that the tuner suggests. Run each and tell its result. Trials that you hold and have not told come first.", t.ask)
	about(t, repeats, "tell", "Record results of trials, several in one call. Tell also those that failed. Telling the same result again does no harm.", t.tell)
	about(t, repeats, "report", "Record a value of a trial that still runs, such as the loss after an epoch, and hear whether to stop it. It also renews the trial's lease, so call it without values in long runs.", t.report)
	about(t, adds, "enqueue", "Queue configurations of your own, such as known good settings. The next ask hands them out first.", t.enqueue)
	about(t, reads, "list_trials", "List trials with values and parameters, in order of number or the best first. Use it to look at what was tried.", t.listTrials)
	about(t, reads, "best", "Get the recommended configuration, or the Pareto front of several objectives. Use it at the end, or to see how good it is by now.", t.best)
	about(t, reads, "watch", "Wait for news of a study and get its events. Use it while other workers run trials.", t.watch)
}

type askInput struct {
	studyInput
	Count  int    `json:"count,omitempty" jsonschema:"number of trials, default 1, at most 50; give as many as you can run at a time"`
	Worker string `json:"worker,omitempty" jsonschema:"your name, by which you get the trials that you hold again; each agent needs its own"`
}

// handed is a trial to run.
type handed struct {
	Trial    int               `json:"trial"`
	Epoch    int               `json:"epoch"`
	Config   space.Config      `json:"config"`
	Expected map[string]string `json:"expected,omitempty"`
}

func (t *tools) ask(ctx context.Context, s tuner.Study, in askInput) (any, error) {
	count, err := within("count", in.Count, 1, fewer(50, s))
	if err != nil {
		return nil, err
	}
	asked, err := t.svc.Ask(ctx, in.Study, study.Ask{Count: count, Worker: cmp.Or(in.Worker, t.options.Worker)})
	if err != nil {
		return nil, err
	}
	out := struct {
		Trials   []handed `json:"trials"`
		Lease    string   `json:"lease"`
		Useful   int      `json:"useful_in_parallel,omitempty"`
		Warnings []string `json:"warnings,omitempty"`
	}{Lease: s.Spec.Lease.String(), Useful: asked.UsefulWorkers, Warnings: head(asked.Warnings, 5)}
	for _, trial := range asked.Trials {
		h, g := handed{trial.Number, trial.Epoch, trial.Config, make(map[string]string)}, trial.Suggestion
		for j := range min(len(g.Mean), len(g.StdDev), len(asked.Noise)) {
			h.Expected[s.Spec.Objectives[j].Name] = surrogate.OutcomeText(g.Mean[j], g.StdDev[j], asked.Noise[j])
		}
		out.Trials = append(out.Trials, h)
	}
	return out, nil
}

type result struct {
	Trial   int                `json:"trial" jsonschema:"number of the trial, from ask"`
	Epoch   int                `json:"epoch,omitempty" jsonschema:"epoch of the trial, from ask"`
	Value   *float64           `json:"value,omitempty" jsonschema:"measured value of the only objective"`
	Values  map[string]float64 `json:"values,omitempty" jsonschema:"values by name: objectives, metrics with limits and others"`
	State   string             `json:"state,omitempty" jsonschema:"completed (default), failed, infeasible or pruned"`
	Message string             `json:"message,omitempty" jsonschema:"why it failed"`
	Cost    float64            `json:"cost,omitempty" jsonschema:"what the trial cost, such as its seconds"`
}

// named are the values of a result, by name. A value without a name is the only objective's.
func named(spec study.Spec, value *float64, values map[string]float64) (list []study.NamedValue, err error) {
	o := spec.Objectives[0].Name
	if _, twice := values[o]; value != nil && (twice || len(spec.Objectives) > 1) {
		return nil, fmt.Errorf("value = %g: the study has %d objectives, and values has %d values; leave value out, and give values, such as {%q: %g}", *value, len(spec.Objectives), len(values), o, *value)
	}
	if value != nil {
		list = append(list, study.NamedValue{Name: o, Value: *value})
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		list = append(list, study.NamedValue{Name: name, Value: values[name]})
	}
	return list, nil
}

func (r result) outcome(spec study.Spec) (o study.Outcome, err error) {
	o.Message, o.Cost = r.Message, r.Cost
	if o.State, err = study.ParseState(cmp.Or(r.State, study.Completed.String())); err != nil {
		return o, err
	}
	if o.State == study.Failed {
		o.Reason = study.FailedCrash
	}
	values, err := named(spec, r.Value, r.Values)
	if o.State == study.Completed && len(values) == 0 && err == nil {
		err = errors.New("value: there is none; give one, or state failed")
	}
	for _, v := range values {
		o.Metrics = append(o.Metrics, study.Metric{Name: v.Name, Values: []float64{v.Value}})
	}
	return o, err
}

type tellInput struct {
	studyInput
	Results []result `json:"results" jsonschema:"at most 100 results"`
}

// tell tells each result, also after one was refused.
func (t *tools) tell(ctx context.Context, s tuner.Study, in tellInput) (any, error) {
	if n := len(in.Results); n < 1 || n > 100 {
		return nil, fmt.Errorf("results: there are %d; give 1 to 100", n)
	}
	out := struct {
		Told    int      `json:"told"`
		Late    []int    `json:"late,omitempty"`
		Refused []string `json:"refused,omitempty"`
		progress
	}{}
	for _, r := range in.Results {
		o, err := r.outcome(s.Spec)
		var told tuner.Told
		if err == nil {
			told, err = t.svc.Tell(ctx, in.Study, study.Tell{Trial: r.Trial, Epoch: r.Epoch, Outcome: o})
		}
		if err != nil {
			out.Refused = append(out.Refused, fmt.Sprintf("trial %d: %s", r.Trial, explained(err)))
			continue
		}
		out.Told++
		if told.Late {
			out.Late = append(out.Late, r.Trial)
		}
	}
	out.Refused = head(out.Refused, 5)
	if out.Told == 0 {
		return nil, errors.New(strings.Join(out.Refused, "\n"))
	}
	s, err := t.svc.Study(ctx, in.Study)
	if err != nil {
		return nil, err
	}
	out.progress = progressOf(s)
	return out, nil
}

type reportInput struct {
	studyInput
	Trial  int                `json:"trial" jsonschema:"number of the running trial"`
	Epoch  int                `json:"epoch,omitempty" jsonschema:"epoch of the trial, from ask"`
	Step   int64              `json:"step,omitempty" jsonschema:"step at which the value was measured, rising"`
	Value  *float64           `json:"value,omitempty" jsonschema:"value of the only objective at this step"`
	Values map[string]float64 `json:"values,omitempty" jsonschema:"values by name"`
}

func (t *tools) report(ctx context.Context, s tuner.Study, in reportInput) (any, error) {
	values, err := named(s.Spec, in.Value, in.Values)
	if err != nil {
		return nil, err
	}
	held, err := t.svc.Heartbeat(ctx, in.Study, study.Heartbeat{Trial: in.Trial, Epoch: in.Epoch})
	if err != nil {
		return nil, err
	}
	verdict := held
	if len(values) > 0 {
		report := study.ReportValues{Trial: in.Trial, Epoch: in.Epoch, Reports: []study.Report{{Step: in.Step, Values: values}}}
		if verdict, err = t.svc.Report(ctx, in.Study, report); err != nil {
			return nil, err
		}
	}
	return map[string]any{"stop": verdict.Stop, "reason": space.Head(verdict.Reason, 200), "held_until": seconds(held.Deadline)}, nil
}

// configs reads configurations of a space.
func configs(sp *space.Space, list []map[string]any, most int) ([]space.Config, error) {
	if n := len(list); n < 1 || n > most {
		return nil, fmt.Errorf("configs: there are %d; give 1 to %d", n, most)
	}
	out := make([]space.Config, len(list))
	for i, c := range list {
		err := out[i].UnmarshalJSON([]byte(asJSON(c)))
		if err == nil {
			out[i], err = sp.Complete(out[i])
		}
		if err != nil {
			return nil, fmt.Errorf("configs[%d]: %w", i, err)
		}
	}
	return out, nil
}

type enqueueInput struct {
	studyInput
	Configs []map[string]any `json:"configs" jsonschema:"at most 50 configurations, each with a value for every active parameter"`
	Request string           `json:"request_id,omitempty" jsonschema:"any text of yours; a call with the same one queues once"`
}

func (t *tools) enqueue(ctx context.Context, s tuner.Study, in enqueueInput) (any, error) {
	list, err := configs(s.Spec.Space, in.Configs, 50)
	if err != nil {
		return nil, err
	}
	commands := make([]study.Command, len(list))
	request := cmp.Or(in.Request, tuner.NewRequestID())
	for i, c := range list {
		commands[i] = study.Enqueue{Config: c, RequestID: fmt.Sprintf("%s-%d", request, i)}
	}
	numbers, err := t.svc.AddAll(ctx, in.Study, commands)
	if err != nil {
		return nil, err
	}
	return map[string]any{"queued_trials": numbers}, nil
}

type trialsInput struct {
	studyInput
	Order  string   `json:"order,omitempty" jsonschema:"number (default) or best, which lists completed trials by the first objective"`
	States []string `json:"states,omitempty" jsonschema:"only these states: queued, running, completed, failed, infeasible, pruned"`
	First  int      `json:"first,omitempty" jsonschema:"lowest number of a trial, or rank with order best"`
	Limit  int      `json:"limit,omitempty" jsonschema:"most trials, default 20, at most 100"`
}

func (t *tools) listTrials(ctx context.Context, s tuner.Study, in trialsInput) (any, error) {
	limit, err := within("limit", in.Limit, 20, 100)
	if err != nil {
		return nil, err
	}
	first := max(in.First, 0)
	f := tuner.Filter{First: first, Limit: limit}
	for _, word := range in.States {
		state, err := study.ParseState(word)
		if err != nil {
			return nil, fmt.Errorf("states: %w", err)
		}
		f.States = append(f.States, state)
	}
	var list []study.Trial
	var more bool
	switch {
	case in.Order == "best" && len(f.States) > 0:
		err = errors.New("states: order best lists completed trials; leave one of them out")
	case in.Order == "best":
		list, more, err = t.ranked(ctx, s, first, limit)
		first += limit
	case in.Order == "" || in.Order == "number":
		if list, more, err = t.svc.Trials(ctx, in.Study, f); more {
			first = list[len(list)-1].Number + 1
		}
	default:
		err = fmt.Errorf("order = %q: must be number or best", in.Order)
	}
	if err != nil {
		return nil, err
	}
	out := table{Columns: []string{"trial", "state"}, Rows: []any{}}
	for _, o := range s.Spec.Objectives {
		out.Columns = append(out.Columns, o.Name)
	}
	out.Columns = append(out.Columns, "config", "message")
	for _, trial := range list {
		row := []any{trial.Number, trial.State.String()}
		for _, o := range s.Spec.Objectives {
			row = append(row, mean(trial, o))
		}
		out.Rows = append(out.Rows, append(row, space.Head(trial.Config.Short(), 400), space.Head(trial.Outcome.Message, 80)))
	}
	if more {
		out.More = fmt.Sprintf("call list_trials with first %d", first)
	}
	return out, nil
}

// mean is the mean of an objective, or nil.
func mean(t study.Trial, o study.Objective) any {
	if m, ok := t.Outcome.Metric(o.Name); ok {
		return number(m.Mean())
	}
	return nil
}

// ranked returns completed trials from a rank on, and whether there are more.
func (t *tools) ranked(ctx context.Context, s tuner.Study, first, limit int) (list []study.Trial, more bool, err error) {
	all, err := t.completed(ctx, s)
	if err != nil {
		return nil, false, err
	}
	slices.SortStableFunc(all, inOrder(s.Spec.Objectives[0]))
	all = all[min(first, len(all)):]
	for _, m := range all[:min(limit, len(all))] {
		trial, err := t.svc.Trial(ctx, s.Name, m.trial)
		if err != nil {
			return nil, false, err
		}
		list = append(list, trial)
	}
	return list, len(all) > limit, nil
}

// mostBest is the most trials of a front that an answer has.
const mostBest = 20

func (t *tools) best(ctx context.Context, s tuner.Study, in studyInput) (any, error) {
	list, err := t.svc.Best(ctx, in.Study)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("study %s has no completed trial yet; ask for trials and tell their results", in.Study)
	}
	type recommended struct {
		Trial  int            `json:"trial"`
		Config space.Config   `json:"config"`
		Values map[string]any `json:"values"`
	}
	most := fewer(mostBest, s)
	out := struct {
		Best  []recommended `json:"best"`
		Notes []string      `json:"notes,omitempty"`
	}{}
	for _, trial := range list[:min(most, len(list))] {
		r := recommended{trial.Number, trial.Config, make(map[string]any)}
		for _, o := range s.Spec.Objectives {
			r.Values[o.Name] = mean(trial, o)
		}
		out.Best = append(out.Best, r)
	}
	if len(list) > most {
		out.Notes = append(out.Notes, fmt.Sprintf("the front has %d trials; plot with kind front shows all", len(list)))
	}
	if m := s.BestMeasured; len(m.Values) > 0 && m.Trial != list[0].Number {
		out.Notes = append(out.Notes, fmt.Sprintf("trial %d measured %.6g; the recommendation allows for luck in that", m.Trial, m.Values[0]))
	}
	for _, e := range s.Spec.Space.Edges(list[0].Config) {
		out.Notes = append(out.Notes, e.String()+"; the optimum may lie beyond, so a new study with a wider range may find better")
	}
	out.Notes = head(out.Notes, 5)
	return out, nil
}

type watchInput struct {
	studyInput
	After *uint64 `json:"after,omitempty" jsonschema:"position of the last event that you know, from watch or study_status; without it only new events"`
	Wait  int     `json:"wait_seconds,omitempty" jsonschema:"longest wait for the first event, default 20, at most 50"`
}

const (
	mostEvents = 30
	// settle is how long watch waits for more events after one.
	settle = 200 * time.Millisecond
)

func (t *tools) watch(ctx context.Context, s tuner.Study, in watchInput) (any, error) {
	wait, err := within("wait_seconds", in.Wait, 20, 50)
	if err != nil {
		return nil, err
	}
	from := tuner.From{Study: s.ID, After: s.Position}
	if in.After != nil {
		from.After = study.Position(*in.After)
	}
	out := struct {
		table
		Position study.Position `json:"position"`
		progress
	}{table: table{Columns: []string{"position", "event"}, Rows: []any{}}, Position: from.After}
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	timer := time.AfterFunc(time.Duration(wait)*time.Second, stop)
	defer timer.Stop()
	for h, err := range t.svc.Watch(waiting, in.Study, from) {
		if waiting.Err() != nil && ctx.Err() == nil {
			break
		}
		if err != nil {
			return nil, err
		}
		out.Position = h.Position
		out.Rows = append(out.Rows, []any{h.Position, space.Head(h.String(), 200)})
		if len(out.Rows) == mostEvents {
			out.More = fmt.Sprintf("call watch with after %d", h.Position)
			break
		}
		timer.Reset(settle)
	}
	if s, err = t.svc.Study(ctx, in.Study); err != nil {
		return nil, err
	}
	out.progress = progressOf(s)
	return out, nil
}
