package eventtest

import (
	"time"

	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Instant is the time of the examples.
var Instant = time.Date(2026, 3, 1, 12, 30, 0, 123456789, time.UTC)

// Examples returns one event of each kind, Created first, with a value in every field of its
// body. The last but one has a caller, too. Together they are not a valid log of one study.
func Examples() []study.Event {
	bodies := []study.Body{
		study.Created{Spec: exampleSpec()},
		study.Paused{},
		study.Resumed{},
		study.Finished{Reason: study.FinishedUser, Detail: "good enough"},
		study.Enqueued{Trial: 1, Config: exampleConfig(), Attributes: study.Attributes{"from": "paper", "table": "3"}},
		study.Started{Trial: 2, Epoch: 1, Worker: "gpu-7", Deadline: Instant.Add(time.Hour), Suggestion: exampleSuggestion()},
		study.Extended{Trial: 2, Epoch: 1, Deadline: Instant.Add(2 * time.Hour)},
		study.Reported{Trial: 2, Epoch: 1, Reports: exampleReports()},
		study.Expired{Trial: 2, Epoch: 1, Requeued: true},
		study.Told{Trial: 2, Epoch: 2, Outcome: exampleOutcome()},
		study.ToldLate{Trial: 2, Epoch: 1, Outcome: exampleOutcome()},
		study.Added{Trial: 3, Config: exampleConfig(), Reports: exampleReports(), Outcome: exampleOutcome(), Attributes: study.Attributes{"from": "elsewhere"}},
		study.Attributed{Trial: study.OfStudy, Attributes: study.Attributes{"owner": "räuber", "gone": ""}},
		study.Anchored{Seen: 600, Effective: 632, Model: []byte{0, 1, 2, 255}},
		study.Started{Trial: 4, Epoch: 1, Worker: "gpu-7", Deadline: Instant.Add(time.Hour), Suggestion: boundedSuggestion()},
		study.Started{Trial: 5, Epoch: 1, Worker: "gpu-7", Deadline: Instant.Add(time.Hour), Suggestion: boundedSuggestion()},
		study.Raised{MaxTrials: 600, Timeout: 37 * time.Hour, MaxCost: 13.5},
	}
	events := make([]study.Event, len(bodies))
	for i, b := range bodies {
		events[i] = study.Event{
			Time:    Instant.Add(time.Duration(i) * time.Second),
			Request: study.Request{ID: "3f6c2d9e-6f0c-4b7e-9a52-d1f4c1a4a9d7", Fingerprint: 0xfeedfacecafebeef, Answer: 3},
			Body:    b,
		}
	}
	events[15].Caller = "token 3f2a9c01"
	return events
}

func exampleSpec() study.Spec {
	return study.Spec{
		Space:      spaces()[0],
		Objectives: []study.Objective{{Name: "loss", Direction: study.Minimize}, {Name: "accuracy", Direction: study.Maximize}},
		MaxTrials:  500,
		Timeout:    36 * time.Hour,
		MaxCost:    12.5,
		Lease:      10 * time.Minute,
		MaxRetries: 3,
		Seed:       42,
		Proposer:   study.Component{Name: "bkb", Options: `{"noise":0.1}`},
		Pruner:     study.Component{Name: "median", Options: `{"warmup":5}`},
		Attributes: study.Attributes{"team": "vision"},
	}
}

func exampleConfig() space.Config {
	return space.NewConfig(
		space.Assignment{Name: "learning_rate", Value: space.Float(3e-4)},
		space.Assignment{Name: "layers", Value: space.Int(12)},
		space.Assignment{Name: "optimizer", Value: space.String("adamw")},
		space.Assignment{Name: "nesterov", Value: space.Bool(true)},
		space.Assignment{Name: "bias", Value: space.Bool(false)},
		space.Assignment{Name: "weight_decay", Value: space.Float(-0.5)},
	)
}

func exampleSuggestion() *study.Suggestion {
	return &study.Suggestion{
		Config: exampleConfig(), Seed: 0x9e3779b97f4a7c15, Seen: 600, Phase: "model",
		Mean: []float64{0.25, 0.9}, StdDev: []float64{0.0625, 0.01},
	}
}

// boundedSuggestion has all fields.
func boundedSuggestion() *study.Suggestion {
	s := exampleSuggestion()
	s.Bound, s.Beta = []float64{0.125, 0.92}, []float64{2, 2.5}
	return s
}

func exampleReports() []study.Report {
	return []study.Report{
		{Epoch: 1, Step: 100, Values: []study.NamedValue{{Name: "accuracy", Value: 0.5}, {Name: "loss", Value: 1.75}}},
		{Epoch: 1, Step: 200, Values: []study.NamedValue{{Name: "loss", Value: 1.5}}},
	}
}

func exampleOutcome() study.Outcome {
	return study.Outcome{
		State:   study.Failed,
		Reason:  study.FailedCancelled,
		Message: "stopped by hand",
		Metrics: []study.Metric{
			{Name: "accuracy", Values: []float64{0.91, 0.92, 0.93}},
			{Name: "loss", Values: []float64{0.25}, StdErr: 0.01, HasStdErr: true},
		},
		Cost:       0.125,
		Attributes: study.Attributes{"host": "node-12"},
	}
}

// spaces returns valid spaces of several shapes.
func spaces() []*space.Space {
	rate := space.NewFloat("learning_rate", 1e-6, 1)
	rate.Scale = space.Log
	return []*space.Space{
		must(space.New(
			rate,
			space.NewFloat("weight_decay", -0.5, 0.5),
			space.Parameter{Name: "layers", Type: space.TypeInt, Low: space.Int(1), High: space.Int(64)},
			space.Parameter{Name: "optimizer", Type: space.TypeCategorical, Values: []space.Value{space.String("adamw"), space.String("sgd")}},
			space.Parameter{
				Name: "nesterov", Type: space.TypeCategorical, Values: []space.Value{space.Bool(false), space.Bool(true)},
				When: []space.Condition{{Parent: "optimizer", Values: []space.Value{space.String("sgd")}}},
			},
		)),
		must(space.New(space.NewFloat("x", 0, 1))),
		must(space.New(space.Parameter{Name: "größe 🜚", Type: space.TypeInt, Low: space.Int(-1 << 62), High: space.Int(1 << 62)})),
	}
}

func must(s *space.Space, err error) *space.Space {
	if err != nil {
		panic(err)
	}
	return s
}
