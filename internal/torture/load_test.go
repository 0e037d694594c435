package torture

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

const clients = 16

// spec returns the settings of studies under load. Their proposer is simple, so that
// the load is on the log and the store.
func spec(t testing.TB) study.Spec {
	t.Helper()
	sp, err := space.New(space.NewFloat("x", 0, 1), space.NewInt("n", 1, 1000), space.NewCategorical("kind", space.String("a"), space.String("b")))
	if err != nil {
		t.Fatal(err)
	}
	return study.Spec{
		Space: sp, Objectives: []study.Objective{{Name: "loss", Direction: study.Minimize}}, Seed: 1, MaxRetries: 3, Lease: time.Hour,
		Proposer: study.Component{Name: propose.Random},
	}
}

func config(x float64, n int64) space.Config {
	return space.NewConfig(
		space.Assignment{Name: "x", Value: space.Float(x)}, space.Assignment{Name: "n", Value: space.Int(n)},
		space.Assignment{Name: "kind", Value: space.String("a")})
}

// crowd is a group of clients that work until they are stopped, and their journal.
type crowd struct {
	journal *journal
	spec    study.Spec
	tag     string
	studies []string
	mu      sync.Mutex
	pending map[int]*call // calls to repeat, by client
	serial  int
	tells   atomic.Int64 // acknowledged
}

func newCrowd(t testing.TB) *crowd {
	w := &crowd{journal: new(journal), spec: spec(t), pending: make(map[int]*call)}
	w.spec.MaxTrials = 1_000_000 // which some calls extend
	return w
}

// run runs the clients until ctx ends or the service fails them. Each has its own
// connection.
func (w *crowd) run(ctx context.Context, seed uint64, tag string, dial func() tuner.Service) {
	w.tag = tag
	w.studies = nil
	for i := range 4 {
		w.studies = append(w.studies, fmt.Sprint(tag, "-", i))
	}
	var work sync.WaitGroup
	for i := range clients {
		work.Go(func() {
			s := dial()
			defer s.Close()
			w.work(ctx, s, i, rand.New(rand.NewPCG(seed, uint64(i))))
		})
	}
	work.Wait()
}

// work runs one client.
func (w *crowd) work(ctx context.Context, s tuner.Service, i int, random *rand.Rand) {
	w.mu.Lock()
	again := w.pending[i]
	delete(w.pending, i)
	w.mu.Unlock()
	if again != nil && !w.do(ctx, s, again) {
		return
	}
	name := w.studies[i%len(w.studies)]
	for made := i >= len(w.studies); !made && ctx.Err() == nil; {
		c := w.newCall(i, "create", name)
		if !w.do(ctx, s, c) {
			return
		}
		made = c.Ending == acked
	}
	var held []given
	for ctx.Err() == nil {
		c := w.choose(i, name, held, random)
		if !w.do(ctx, s, c) {
			return
		}
		switch {
		case c.Code == tuner.NotFound: // the study is not created yet
			time.Sleep(time.Millisecond)
		case c.Ending != acked:
		case c.Kind == "ask":
			held = append(held, c.Given...)
		case c.Kind == "tell":
			w.tells.Add(1)
			held = held[1:]
		}
	}
}

// life is a context that ends after a time, on a slow machine not before enough has been done,
// but then after a minute.
func (w *crowd) life(d time.Duration, enough func() bool) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		begun := time.Now()
		for ctx.Err() == nil && (time.Since(begun) < d || !enough() && time.Since(begun) < time.Minute) {
			time.Sleep(10 * time.Millisecond)
		}
	}()
	return ctx, cancel
}

// choose chooses a client's next call.
func (w *crowd) choose(i int, name string, held []given, random *rand.Rand) *call {
	kind := "tell"
	switch n := random.IntN(20); {
	case len(held) == 0 || n == 0 && len(held) < 5:
		kind = "ask"
	case n <= 2:
		kind = "report"
	case n == 3:
		kind = "enqueue"
	case n == 4:
		kind = "many"
	case n == 5 && random.IntN(4) == 0:
		kind = "extend"
	}
	c := w.newCall(i, kind, name)
	switch kind {
	case "ask":
		c.Count = 1
		if random.IntN(8) == 0 {
			c.Count = 1 + random.IntN(4)
		}
	case "tell", "report":
		c.Trial, c.Epoch = held[0].Trial, held[0].Epoch
		c.Bits = math.Float64bits(random.Float64() + 1)
	case "enqueue":
		c.Bits = math.Float64bits(random.Float64())
	case "many":
		c.Count, c.Bits = 1+random.IntN(4), math.Float64bits(random.Float64())
	}
	return c
}

func (w *crowd) newCall(i int, kind, name string) *call {
	w.mu.Lock()
	w.serial++
	id := fmt.Sprintf("%s-%d-%d", w.tag, i, w.serial)
	w.mu.Unlock()
	c := &call{Client: i, Kind: kind, Study: name, Request: id}
	w.journal.add(c)
	return c
}

// do makes a call. It returns false if the client should stop. The client repeats a
// call with an unknown outcome later.
func (w *crowd) do(ctx context.Context, s tuner.Service, c *call) bool {
	if c.Start == 0 {
		c.Start = time.Now().UnixNano()
	}
	c.end(w.send(ctx, s, c))
	switch {
	case c.Code == tuner.Exhausted: // there may be space later
		time.Sleep(5 * time.Millisecond)
		return true
	case c.Ending == unknown, c.Code == tuner.Unavailable, c.Code == tuner.Internal:
		w.mu.Lock()
		w.pending[c.Client] = c
		w.mu.Unlock()
		return false
	default:
		return true
	}
}

func (w *crowd) send(ctx context.Context, s tuner.Service, c *call) error {
	switch c.Kind {
	case "create":
		_, err := s.CreateStudy(ctx, c.Study, study.Create{RequestID: c.Request, Spec: w.spec})
		return err
	case "ask":
		asked, err := s.Ask(ctx, c.Study, study.Ask{RequestID: c.Request, Count: c.Count, New: true})
		if err == nil {
			for _, trial := range asked.Trials {
				c.Given = append(c.Given, given{trial.Number, trial.Epoch, trial.Config.String()})
			}
		}
		return err
	case "tell":
		told, err := s.Tell(ctx, c.Study, study.Tell{RequestID: c.Request, Trial: c.Trial, Epoch: c.Epoch, Outcome: c.outcome()})
		c.Late = told.Late
		return err
	case "report":
		_, err := s.Report(ctx, c.Study, study.ReportValues{RequestID: c.Request, Trial: c.Trial, Epoch: c.Epoch, Reports: c.reports()})
		return err
	case "many":
		return c.addAll(ctx, s)
	case "extend":
		_, err := s.Extend(ctx, c.Study, study.Extend{RequestID: c.Request, MaxTrials: 1, More: true})
		return err
	default:
		trial, err := s.Enqueue(ctx, c.Study, study.Enqueue{RequestID: c.Request, Config: config(c.value(), 7)})
		if err == nil {
			c.Trial = trial.Number
		}
		return err
	}
}
