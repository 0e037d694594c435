package bolt

import (
	"fmt"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

var instant = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// tenParameters is the space of the logs below.
func tenParameters() *space.Space {
	var parameters []space.Parameter
	for i := range 10 {
		parameters = append(parameters, space.NewFloat(fmt.Sprintf("parameter_%02d", i), 0, 1))
	}
	s, err := space.New(parameters...)
	if err != nil {
		panic(err)
	}
	return s
}

// opened returns the first event of a log.
func opened() study.Event {
	return study.Event{Time: instant, Body: study.Created{Spec: study.Spec{
		Space: tenParameters(), Objectives: []study.Objective{{Name: "loss", Direction: study.Minimize}}, Seed: 7,
	}}}
}

// asked, reported and told return the events of a trial of ten parameters.
func asked(trial int) study.Event {
	entries := make([]space.Assignment, 10)
	for i := range entries {
		x := float64(trial*10+i+1) / 12345677
		entries[i] = space.Assignment{Name: fmt.Sprintf("parameter_%02d", i), Value: space.Float(x - float64(int(x)))}
	}
	return study.Event{Time: instant, Request: request("ask", trial), Body: study.Started{
		Trial: trial, Epoch: 1, Worker: fmt.Sprint("worker-", trial%16), Deadline: instant.Add(time.Hour),
		Suggestion: &study.Suggestion{
			Config: space.NewConfig(entries...), Seed: uint64(trial) * 0x9e3779b97f4a7c15, Seen: study.Position(3*trial + 1),
			Phase: "model", Mean: []float64{0.5}, StdDev: []float64{0.1},
		},
	}}
}

func reported(trial int) study.Event {
	return study.Event{Time: instant, Body: study.Reported{Trial: trial, Epoch: 1, Reports: []study.Report{
		{Epoch: 1, Step: 10, Values: []study.NamedValue{{Name: "loss", Value: 1 / float64(trial+1)}}},
	}}}
}

func told(trial int) study.Event {
	loss := 1 / float64(trial+1)
	return study.Event{Time: instant, Request: request("tell", trial), Body: study.Told{Trial: trial, Epoch: 1, Outcome: study.Outcome{
		State: study.Completed, Cost: 12.5,
		Metrics: []study.Metric{
			{Name: "accuracy", Values: []float64{1 - loss}},
			{Name: "loss", Values: []float64{loss}, StdErr: loss / 10, HasStdErr: true},
			{Name: "seconds", Values: []float64{61.7}},
		},
	}}}
}

func request(kind string, trial int) study.Request {
	return study.Request{ID: fmt.Sprintf("%s-7f3a-4c1e-9b52-%012d", kind, trial), Fingerprint: uint64(trial) * 0x9e3779b97f4a7c15}
}

// trials returns the events of trials first, first+1, … .
func trials(first, n int) []study.Event {
	events := make([]study.Event, 0, 3*n)
	for i := range n {
		events = append(events, asked(first+i), reported(first+i), told(first+i))
	}
	return events
}

// commits returns the events of a study of n trials, in commits of a reasonable size.
func commits(n int) [][]study.Event {
	all := [][]study.Event{{opened()}}
	const atOnce = 500
	for first := 0; first < n; first += atOnce {
		all = append(all, trials(first, min(atOnce, n-first)))
	}
	return all
}

// headOf returns the head of a log of that many trials.
func headOf(trials int) study.Position { return study.Position(3*trials + 1) }

// fill makes a study of n trials.
func fill(t fataler, s *Store, name string, n int) store.Info {
	t.Helper()
	all := commits(n)
	info, err := s.Create(t.Context(), name, all[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, events := range all[1:] {
		if err := s.Commit(t.Context(), info.ID, info.Head, events, nil); err != nil {
			t.Fatal(err)
		}
		info.Head += study.Position(len(events))
	}
	return info
}
