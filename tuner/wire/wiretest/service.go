package wiretest

import (
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/surrogate"
)

// Service is a tuner.Service in memory. It has the state machine of package study, one
// lock, and random suggestions. Leases never expire.
type Service struct {
	tuner.Service // nil, for methods that no test of the wire calls

	// BackupData is what Backup writes.
	BackupData []byte

	mu      sync.Mutex
	studies map[string]*entry
	lastID  store.StudyID
	closed  bool
}

var _ tuner.Service = (*Service)(nil)

type entry struct {
	id      store.StudyID
	study   study.Study
	log     []study.Event
	changed chan struct{} // closed at the next event
}

// New returns a Service without studies.
func New() *Service { return &Service{studies: make(map[string]*entry)} }

// do decides and applies a command, and calls then with the study.
func (s *Service) do(ctx context.Context, name string, c study.Command, then func(*entry, study.Reply) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, err := s.find(ctx, name)
	if err != nil {
		return err
	}
	reply := study.Reply{}
	if c != nil {
		if reply, err = e.do(c); err != nil {
			return err
		}
	}
	return then(e, reply)
}

func (s *Service) find(ctx context.Context, name string) (*entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.closed {
		return nil, store.ErrClosed
	}
	e, ok := s.studies[name]
	if !ok {
		return nil, &store.NotFoundError{Name: name}
	}
	return e, nil
}

func (e *entry) do(c study.Command) (study.Reply, error) {
	reply, events, err := e.study.Decide(time.Now(), c)
	if err != nil {
		return reply, err
	}
	for _, event := range events {
		if err := e.study.Apply(event); err != nil {
			panic(err)
		}
		e.log = append(e.log, event)
	}
	if len(events) > 0 {
		close(e.changed)
		e.changed = make(chan struct{})
	}
	return reply, nil
}

func (e *entry) describe(name string) tuner.Study {
	status, how := e.study.Status()
	d := tuner.Study{
		Name: name, ID: e.id, Spec: e.study.Spec(), Status: status, Finished: how, Created: e.study.Created(),
		Position: e.study.Position(), Trials: e.study.Trials(), Added: e.study.Added(), Cost: e.study.Cost(), Attributes: e.study.Attributes(),
	}
	for state := study.Queued; state <= study.Pruned; state++ {
		if n := e.study.Count(state); n > 0 {
			if d.Counts == nil {
				d.Counts = make(map[study.TrialState]int)
			}
			d.Counts[state] = n
		}
	}
	return d
}

func (e *entry) trial(n int) study.Trial {
	t, _ := e.study.Trial(n)
	return t.WithoutReports()
}

// CreateStudy implements [tuner.Service].
func (s *Service) CreateStudy(ctx context.Context, name string, c study.Create) (tuner.Created, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := store.CheckName(name); err != nil {
		return tuner.Created{}, err
	}
	e, err := s.find(ctx, name)
	if err == nil {
		if reply, _, err := e.study.Decide(time.Now(), c); err != nil || !reply.Replayed {
			return tuner.Created{}, &store.ExistsError{Name: name, Study: e.id}
		}
		return tuner.Created{Study: e.describe(name), Warnings: space.Lint(c.Spec.Space)}, nil
	}
	if tuner.CodeOf(err) != tuner.NotFound {
		return tuner.Created{}, err
	}
	e = &entry{changed: make(chan struct{})}
	if _, err := e.do(c); err != nil {
		return tuner.Created{}, err
	}
	s.lastID++
	e.id = s.lastID
	s.studies[name] = e
	return tuner.Created{Study: e.describe(name), Warnings: space.Lint(c.Spec.Space)}, nil
}

// Study implements [tuner.Service].
func (s *Service) Study(ctx context.Context, name string) (d tuner.Study, err error) {
	err = s.do(ctx, name, nil, func(e *entry, _ study.Reply) error { d = e.describe(name); return nil })
	return d, err
}

// Studies implements [tuner.Service].
func (s *Service) Studies(_ context.Context, after string, limit int) (list []tuner.Study, more bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if limit <= 0 {
		limit = tuner.MaxPage
	}
	for _, name := range slices.Sorted(maps.Keys(s.studies)) {
		if name <= after {
			continue
		}
		if len(list) == limit {
			return list, true, nil
		}
		list = append(list, s.studies[name].describe(name))
	}
	return list, false, nil
}

// DeleteStudy implements [tuner.Service].
func (s *Service) DeleteStudy(ctx context.Context, name string) error {
	return s.do(ctx, name, nil, func(e *entry, _ study.Reply) error {
		delete(s.studies, name)
		close(e.changed)
		return nil
	})
}

func (s *Service) change(ctx context.Context, name string, c study.Command) (d tuner.Study, err error) {
	err = s.do(ctx, name, c, func(e *entry, _ study.Reply) error { d = e.describe(name); return nil })
	return d, err
}

// Pause implements [tuner.Service].
func (s *Service) Pause(ctx context.Context, name string, c study.Pause) (tuner.Study, error) {
	return s.change(ctx, name, c)
}

// Resume implements [tuner.Service].
func (s *Service) Resume(ctx context.Context, name string, c study.Resume) (tuner.Study, error) {
	return s.change(ctx, name, c)
}

// Finish implements [tuner.Service].
func (s *Service) Finish(ctx context.Context, name string, c study.Finish) (tuner.Study, error) {
	c.Reason = study.FinishedUser
	return s.change(ctx, name, c)
}

// SetAttributes implements [tuner.Service].
func (s *Service) SetAttributes(ctx context.Context, name string, c study.SetAttributes) error {
	_, err := s.change(ctx, name, c)
	return err
}

// Ask implements [tuner.Service].
func (s *Service) Ask(ctx context.Context, name string, c study.Ask) (asked tuner.Asked, err error) {
	if c.Count == 0 || c.Count == tuner.AutoCount {
		c.Count = 1
	}
	err = s.do(ctx, name, c, func(e *entry, r study.Reply) error {
		numbers := r.Trials
		for range r.Missing {
			start := study.Start{Ask: c, Trial: e.study.Trials(), Answer: len(r.Trials) + r.Missing, Suggestion: e.suggest()}
			started, err := e.do(start)
			if err != nil {
				return err
			}
			numbers = append(numbers, started.Trials...)
		}
		for _, n := range numbers {
			asked.Trials = append(asked.Trials, e.trial(n))
		}
		asked.UsefulWorkers, asked.Warnings, asked.Noise = 4, []string{"no cost"}, []float64{0.25}
		return nil
	})
	return asked, err
}

func (e *entry) suggest() study.Suggestion {
	spec := e.study.Spec()
	stream := rand.New(rand.NewPCG(spec.Seed, uint64(e.study.Trials())))
	u := make([]float64, spec.Space.Dim())
	for i := range u {
		u[i] = stream.Float64()
	}
	c, err := spec.Space.Decode(u)
	if err != nil {
		panic(err)
	}
	return study.Suggestion{Config: c, Seed: spec.Seed, Seen: e.study.Position(), Phase: "start"}
}

// Tell implements [tuner.Service].
func (s *Service) Tell(ctx context.Context, name string, c study.Tell) (told tuner.Told, err error) {
	err = s.do(ctx, name, c, func(e *entry, r study.Reply) error {
		told = tuner.Told{Trial: e.trial(c.Trial), Late: r.Late}
		return nil
	})
	return told, err
}

// Report implements [tuner.Service].
func (s *Service) Report(ctx context.Context, name string, c study.ReportValues) (v tuner.Verdict, err error) {
	err = s.do(ctx, name, c, func(e *entry, _ study.Reply) error {
		v.Deadline = e.trial(c.Trial).Deadline
		return nil
	})
	return v, err
}

// Heartbeat implements [tuner.Service].
func (s *Service) Heartbeat(ctx context.Context, name string, c study.Heartbeat) (v tuner.Verdict, err error) {
	err = s.do(ctx, name, c, func(e *entry, _ study.Reply) error {
		v.Deadline = e.trial(c.Trial).Deadline
		return nil
	})
	return v, err
}

// Enqueue implements [tuner.Service].
func (s *Service) Enqueue(ctx context.Context, name string, c study.Enqueue) (study.Trial, error) {
	return s.made(ctx, name, c)
}

// Add implements [tuner.Service].
func (s *Service) Add(ctx context.Context, name string, c study.Add) (study.Trial, error) {
	return s.made(ctx, name, c)
}

// AddAll implements [tuner.Service].
func (s *Service) AddAll(ctx context.Context, name string, commands []study.Command) (numbers []int, err error) {
	if err := tuner.CheckAddAll(commands); err != nil {
		return nil, err
	}
	for i, c := range commands {
		t, err := s.made(ctx, name, c)
		if err != nil {
			return nil, &tuner.CommandError{Index: i, Err: err}
		}
		numbers = append(numbers, t.Number)
	}
	return numbers, nil
}

func (s *Service) made(ctx context.Context, name string, c study.Command) (t study.Trial, err error) {
	err = s.do(ctx, name, c, func(e *entry, r study.Reply) error { t = e.trial(r.Trials[0]); return nil })
	return t, err
}

// whole returns a trial with its reports.
func (s *Service) whole(ctx context.Context, name string, number int) (t study.Trial, err error) {
	err = s.do(ctx, name, nil, func(e *entry, _ study.Reply) error {
		var ok bool
		if t, ok = e.study.Trial(number); !ok {
			return &study.TrialNotFoundError{Trial: number, Trials: e.study.Trials()}
		}
		return nil
	})
	return t, err
}

// Trial implements [tuner.Service].
func (s *Service) Trial(ctx context.Context, name string, number int) (study.Trial, error) {
	t, err := s.whole(ctx, name, number)
	return t.WithoutReports(), err
}

// Reports implements [tuner.Service].
func (s *Service) Reports(ctx context.Context, name string, number, first, limit int) (page []study.Report, more bool, err error) {
	t, err := s.whole(ctx, name, number)
	if err != nil {
		return nil, false, err
	}
	if limit <= 0 || limit > tuner.MaxReportPage {
		limit = tuner.MaxReportPage
	}
	rest := t.Reports[min(max(first, 0), len(t.Reports)):]
	return rest[:min(limit, len(rest))], len(rest) > limit, nil
}

// Trials implements [tuner.Service].
func (s *Service) Trials(ctx context.Context, name string, f tuner.Filter) (list []study.Trial, more bool, err error) {
	if f.Limit <= 0 || f.Limit > tuner.MaxPage {
		f.Limit = tuner.MaxPage
	}
	err = s.do(ctx, name, nil, func(e *entry, _ study.Reply) error {
		for t := range e.study.All(f.First) {
			if len(f.States) > 0 && !slices.Contains(f.States, t.State) || f.Worker != "" && t.Worker != f.Worker {
				continue
			}
			if len(list) == f.Limit {
				more = true
				return nil
			}
			if !f.Reports {
				t = t.WithoutReports()
			}
			list = append(list, t)
		}
		return nil
	})
	return list, more, err
}

// Diagnose implements [tuner.Service]. The twin's proposer has no model, except in studies
// with a seed, where the diagnosis is made up from it.
func (s *Service) Diagnose(ctx context.Context, name string) (out surrogate.Diagnosis, err error) {
	err = s.do(ctx, name, nil, func(e *entry, _ study.Reply) error {
		seed := e.study.Spec().Seed
		if seed == 0 {
			return fmt.Errorf("a model: %w", tuner.ErrUnsupported)
		}
		x := float64(seed)
		out = surrogate.Diagnosis{
			State: surrogate.Ready, Missing: 4, Position: study.Position(seed), EventResults: 3, LengthScales: map[string]float64{"lr": x},
			Results: int(seed), InducingPoints: 2, Capped: true, EffectiveDimension: x + 0.25,
			InformationGain: x + 0.5, Noise: x + 0.75, Beta: x + 1, TheoryBeta: x + 2, Gap: x + 3,
			Warnings: []string{"no cost", fmt.Sprint("seed ", seed)}, Covered: 7, Predicted: int(seed) + 8, Calibration: x + 4,
			Outliers: int(seed) + 2, Idle: int(seed) + 6, Stuck: true, Failures: int(seed) + 5, AvoidsFailures: true,
			Metrics: []surrogate.LimitedMetric{{Metric: "latency", Results: int(seed), Broken: 2, Noise: x + 5}, {Metric: "size"}},
			Draw: surrogate.Draw{
				Sampler: "bless", Lambda: x * 1e-6, Rows: int(seed) + 9, Read: int(seed) + 4,
				Path: []surrogate.Step{{Lambda: 0.5, Points: 3, Dimension: x}, {Lambda: x * 1e-6, Points: 5, Dimension: x + 1}},
			},
		}
		return nil
	})
	return out, err
}

// Columns implements [tuner.Service]. It has the state of every trial and no other column.
func (s *Service) Columns(ctx context.Context, name string, q tuner.ColumnQuery) (out tuner.Columns, err error) {
	err = s.do(ctx, name, nil, func(e *entry, _ study.Reply) error {
		if slices.Contains(q.Names, "none") {
			return &study.InvalidError{Field: "names", Value: "none", Rule: "there is no such column"}
		}
		n := e.study.Trials()
		column := tuner.Column{Name: "state", Type: tuner.Uint8, Labels: []string{"", "a"}, Ticks: []space.Tick{{At: 0.5, Value: space.Int(7)}}, Data: make([]byte, n)}
		for t := range e.study.All(0) {
			column.Data[t.Number] = byte(t.State)
		}
		out = tuner.Columns{ID: e.id, Position: e.study.Position(), Trials: n, Rows: n, Columns: []tuner.Column{column}}
		return nil
	})
	return out, err
}

// Predict implements [tuner.Service]. It makes up a prediction for every configuration, and
// a slice.
func (s *Service) Predict(ctx context.Context, name string, q tuner.PredictQuery) (out tuner.Predictions, err error) {
	err = s.do(ctx, name, nil, func(e *entry, _ study.Reply) error {
		seed := e.study.Spec().Seed
		if seed == 0 {
			return fmt.Errorf("a model: %w", tuner.ErrUnsupported)
		}
		out = tuner.Predictions{State: surrogate.Ready, Missing: 1, Position: study.Position(seed), Results: 2, Trial: tuner.NoTrial}
		for i := range q.Configs {
			p := surrogate.Prediction{Mean: []float64{float64(i)}, StdDev: []float64{1}, Noise: []float64{2}, Feasible: float64(i) / 2}
			if i > 0 {
				p.Metrics = []surrogate.MetricPrediction{{Metric: "latency", Mean: 3, StdDev: 4, Noise: 5}}
			}
			out.Configs = append(out.Configs, p)
		}
		if q.Slices != nil && q.Slices.Through != nil {
			out.Through = *q.Slices.Through
			out.Slices = append(out.Slices, surrogate.Slice{Parameter: "x", At: []float64{0.5}, Values: []space.Value{space.Int(3)}, Predictions: out.Configs})
		} else if q.Slices != nil {
			out.Trial = q.Slices.Points
		}
		return nil
	})
	return out, err
}

// Importance implements [tuner.Service]. It is made up.
func (s *Service) Importance(ctx context.Context, name string, q tuner.ImportanceQuery) (out tuner.Importance, err error) {
	err = s.do(ctx, name, nil, func(e *entry, _ study.Reply) error {
		if q.Objective == "none" {
			return &study.InvalidError{Field: "objective", Value: "none", Rule: "there is no such objective"}
		}
		out = tuner.Importance{
			Objective: "loss", State: surrogate.Ready, Missing: 1, Position: 2, Results: 3, Completed: 4,
			Parameters: []tuner.ParameterImportance{
				{Parameter: "lr", First: 0.5, Total: 0.75, FirstError: 0.01, TotalError: 0.02, Data: math.NaN()},
				{Parameter: "n", First: math.NaN(), Total: math.NaN(), FirstError: math.NaN(), TotalError: math.NaN(), Data: float64(q.Method)},
			},
		}
		return nil
	})
	return out, err
}

// Best implements [tuner.Service]. It compares the first objective only.
func (s *Service) Best(ctx context.Context, name string) (best []study.Trial, err error) {
	err = s.do(ctx, name, nil, func(e *entry, _ study.Reply) error {
		o := e.study.Spec().Objectives[0]
		value := func(t study.Trial) float64 { m, _ := t.Outcome.Metric(o.Name); return m.Mean() }
		for t := range e.study.All(0) {
			if t.State == study.Completed && (best == nil || o.Direction.Compare(value(t), value(best[0])) < 0) {
				best = []study.Trial{t.WithoutReports()}
			}
		}
		return nil
	})
	return best, err
}

// Watch implements [tuner.Service].
func (s *Service) Watch(ctx context.Context, name string, after study.Position) iter.Seq2[tuner.Event, error] {
	return func(yield func(tuner.Event, error) bool) {
		for {
			var next []tuner.Event
			var changed chan struct{}
			err := s.do(ctx, name, nil, func(e *entry, _ study.Reply) error {
				status, _ := e.study.Status()
				for p := after; p < study.Position(len(e.log)); p++ {
					next = append(next, tuner.Event{Position: p + 1, Time: e.log[p].Time, Kind: fmt.Sprintf("%T", e.log[p].Body), Status: status})
				}
				changed = e.changed
				return nil
			})
			if err != nil {
				yield(tuner.Event{}, err)
				return
			}
			for _, h := range next {
				if !yield(h, nil) {
					return
				}
				after = h.Position
			}
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
	}
}

// WatchStudies implements [tuner.Service]. It yields each study alone, and a deletion that
// is made up.
func (s *Service) WatchStudies(ctx context.Context) iter.Seq2[tuner.StudyNews, error] {
	return func(yield func(tuner.StudyNews, error) bool) {
		list, _, err := s.Studies(ctx, "", 0)
		if err != nil {
			yield(tuner.StudyNews{}, err)
			return
		}
		for i, v := range list {
			if !yield(tuner.StudyNews{Studies: []tuner.Study{v}, Listed: i == len(list)-1}, nil) {
				return
			}
		}
		if yield(tuner.StudyNews{Deleted: []store.StudyID{list[0].ID}}, nil) {
			<-ctx.Done()
		}
	}
}

// Backup implements [tuner.Service].
func (s *Service) Backup(_ context.Context, w io.Writer) error {
	_, err := w.Write(s.BackupData)
	return err
}

// Close implements [tuner.Service].
func (s *Service) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}
