package store_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/store/storetest/eventtest"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// typicalTrial returns the events of which logs mostly consist, a suggestion of ten
// parameters, a report and an outcome with three metrics.
func typicalTrial(number int) [3]study.Event {
	var entries []space.Assignment
	for i := range 7 {
		x := float64(number*7+i+1) / 1234567
		entries = append(entries, space.Assignment{Name: fmt.Sprintf("parameter_%02d", i), Value: space.Float(x)})
	}
	entries = append(entries,
		space.Assignment{Name: "layers", Value: space.Int(int64(number%64 + 1))},
		space.Assignment{Name: "optimizer", Value: space.String([]string{"adam", "adamw", "sgd"}[number%3])},
		space.Assignment{Name: "nesterov", Value: space.Bool(number%2 == 0)},
	)
	now := time.Date(2026, 3, 1, 0, 0, number, 0, time.UTC)
	request := func(kind string) study.Request {
		return study.Request{ID: fmt.Sprintf("%s-7f3a-4c1e-9b52-%012d", kind, number), Fingerprint: uint64(number) * 0x9e3779b97f4a7c15}
	}
	loss := 1 / float64(number+1)
	return [3]study.Event{
		{Time: now, Request: request("ask00000"), Body: study.Started{
			Trial: number, Epoch: 1, Worker: fmt.Sprint("worker-", number%16), Deadline: now.Add(time.Hour),
			Suggestion: &study.Suggestion{
				Config: space.NewConfig(entries...), Seed: uint64(number) * 0x9e3779b97f4a7c15, Seen: study.Position(3 * number),
				Phase: "model", Mean: []float64{loss}, StdDev: []float64{loss / 3},
			},
		}},
		{Time: now, Body: study.Reported{Trial: number, Epoch: 1, Reports: []study.Report{
			{Epoch: 1, Step: 10, Values: []study.NamedValue{{Name: "loss", Value: loss}}},
		}}},
		{Time: now, Request: request("tell0000"), Body: study.Told{Trial: number, Epoch: 1, Outcome: study.Outcome{
			State: study.Completed, Cost: 12.5,
			Metrics: []study.Metric{
				{Name: "accuracy", Values: []float64{1 - loss}},
				{Name: "loss", Values: []float64{loss}, StdErr: loss / 10, HasStdErr: true},
				{Name: "seconds", Values: []float64{61.7}},
			},
		}}},
	}
}

var eventNames = [3]string{"started", "reported", "told"}

func BenchmarkEncode(b *testing.B) {
	for i, e := range typicalTrial(7) {
		b.Run(eventNames[i], func(b *testing.B) {
			b.ReportAllocs()
			var buffer []byte
			for b.Loop() {
				buffer, _ = store.AppendRecord(buffer[:0], someStudy, somePosition, e)
			}
			b.ReportMetric(float64(len(buffer)), "B/record")
			reportRatio(b, func() { _, _ = json.Marshal(jsonEvent(e)) })
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for i, e := range typicalTrial(7) {
		b.Run(eventNames[i], func(b *testing.B) {
			r := record(b, e)
			decoder := store.NewDecoder(someStudy)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := decoder.Decode(somePosition, r); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(r)), "B/record")
			text, err := json.Marshal(jsonEvent(e))
			if err != nil {
				b.Fatal(err)
			}
			reportRatio(b, func() { var v jsonRecord; _ = json.Unmarshal(text, &v) })
		})
	}
}

// reportRatio reports how much longer f takes than one operation of b.
func reportRatio(b *testing.B, f func()) {
	own := float64(b.Elapsed()) / float64(b.N)
	const rounds = 5000
	start := time.Now()
	for range rounds {
		f()
	}
	b.ReportMetric(float64(time.Since(start))/rounds/own, "json/own")
}

// jsonRecord is the simple alternative for encoding/json.
type jsonRecord struct {
	Time    time.Time
	Request study.Request
	Kind    string
	Config  map[string]any `json:",omitempty"`
	Started *study.Started `json:",omitempty"`
	Report  *study.Reported
	Told    *study.Told
}

func jsonEvent(e study.Event) jsonRecord {
	r := jsonRecord{Time: e.Time, Request: e.Request, Kind: fmt.Sprintf("%T", e.Body)}
	switch body := e.Body.(type) {
	case study.Started:
		r.Config = make(map[string]any)
		for name, v := range body.Suggestion.Config.All() {
			if x, ok := v.Number(); ok {
				r.Config[name] = x
			} else {
				r.Config[name] = v.String()
			}
		}
		suggestion := *body.Suggestion
		suggestion.Config = space.Config{}
		body.Suggestion = &suggestion
		r.Started = &body
	case study.Reported:
		r.Report = &body
	case study.Told:
		r.Told = &body
	}
	return r
}

// BenchmarkReadLog loads a study of 100,000 trials and keeps all of its events.
func BenchmarkReadLog(b *testing.B) {
	const trials = 100_000
	s := memory.New()
	info, err := s.Create(b.Context(), "large", eventtest.Examples()[:1])
	if err != nil {
		b.Fatal(err)
	}
	head := info.Head
	for i := range trials {
		events := typicalTrial(i)
		if err := s.Commit(b.Context(), info.ID, head, events[:], nil); err != nil {
			b.Fatal(err)
		}
		head += 3
	}
	stored := heap()
	var log []study.Event
	for b.Loop() {
		log = make([]study.Event, 0, head)
		for r, err := range s.Read(b.Context(), info.ID, 1) {
			if err != nil {
				b.Fatal(err)
			}
			log = append(log, r.Event)
		}
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(head), "ns/event")
	b.ReportMetric(float64(heap()-stored)/1e6, "MB-live")
	runtime.KeepAlive(log)
	runtime.KeepAlive(s)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
