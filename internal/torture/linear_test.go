package torture

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/bkbtuner/bkb/store/bolt"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/study"
)

// checkLimit is the time limit of the search for an order.
const checkLimit = 2 * time.Minute

// made is the state of commands that make trials. Numbers are given in order, and
// queued trials are handed out before new ones.
type made struct {
	next  int
	queue []int
}

// makes models asks, enqueues and many. The input is the call with its answer.
var makes = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		return split(history, func(c *call) string { return c.Study })
	},
	Init: func() any { return made{} },
	Step: func(state, input, _ any) (bool, any) {
		m, c := state.(made), input.(*call)
		if c.Kind == "enqueue" {
			ok := c.Ending != acked || c.Trial == m.next
			return ok, made{m.next + 1, append(slices.Clip(m.queue), m.next)}
		}
		if c.Kind == "many" {
			after := made{m.next + c.Count, slices.Clip(m.queue)}
			for i := range c.Count {
				if queued(i) {
					after.queue = append(after.queue, m.next+i)
				}
			}
			ok := c.Ending != acked || len(c.Given) == c.Count && c.Given[0].Trial == m.next && c.Given[c.Count-1].Trial == after.next-1
			return ok, after
		}
		var trials []int
		after := m
		for len(trials) < c.Count {
			if len(after.queue) > 0 {
				trials, after.queue = append(trials, after.queue[0]), after.queue[1:]
				continue
			}
			trials, after.next = append(trials, after.next), after.next+1
		}
		ok := c.Ending != acked || slices.EqualFunc(c.Given, trials, func(g given, n int) bool { return g.Trial == n })
		return ok, after
	},
	Equal: func(a, b any) bool {
		return a.(made).next == b.(made).next && slices.Equal(a.(made).queue, b.(made).queue)
	},
	DescribeOperation: func(input, _ any) string { return describe(input.(*call)) },
}

// owned is the state of one trial, which is its current epoch and its outcome.
type owned struct {
	epoch int
	told  bool
	bits  uint64
}

// owns models asks, tells and reads of single trials.
var owns = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		return split(history, func(c *call) string { return fmt.Sprint(c.Study, " ", c.Trial) })
	},
	Init: func() any { return owned{} },
	Step: func(state, input, _ any) (bool, any) {
		o, c := state.(owned), input.(*call)
		switch {
		case c.Kind == "ask":
			if c.Epoch != o.epoch+1 || o.told {
				return false, o
			}
			return true, owned{epoch: c.Epoch}
		case c.Kind == "tell" && c.Code == tuner.AlreadyTold:
			return o.told && o.bits != c.Bits, o
		case c.Kind == "tell" && c.Ending == acked:
			return o.epoch == c.Epoch && (!o.told || o.bits == c.Bits), owned{o.epoch, true, c.Bits}
		case c.Kind == "tell": // it may have had an effect
			if o.told || o.epoch != c.Epoch {
				return true, o
			}
			return true, owned{o.epoch, true, c.Bits}
		default: // a read
			return c.Late == o.told && (!o.told || c.Bits == o.bits), o
		}
	},
	DescribeOperation: func(input, _ any) string { return describe(input.(*call)) },
}

func describe(c *call) string {
	return fmt.Sprintf("%s %s trial %d epoch %d %g → %s %v", c.Kind, c.Request, c.Trial, c.Epoch, c.value(), c.Ending, c.Given)
}

// split groups a history by key.
func split(history []porcupine.Operation, key func(*call) string) [][]porcupine.Operation {
	groups := make(map[string][]porcupine.Operation)
	for _, op := range history {
		k := key(op.Input.(*call))
		groups[k] = append(groups[k], op)
	}
	var out [][]porcupine.Operation
	for _, g := range groups {
		out = append(out, g)
	}
	return out
}

// operations turns calls into a history. A call with an unknown outcome may take effect
// at any later time.
func operations(calls []*call, pick func(*call) []*call) []porcupine.Operation {
	var history []porcupine.Operation
	for _, c := range calls {
		undone := c.Ending == refused && c.Code != tuner.AlreadyTold
		if undone && !(c.Doubt && c.Count > 1) { // an earlier attempt may have stored a part of these
			continue
		}
		for _, part := range pick(c) {
			end := c.End
			if c.Ending == unknown || undone {
				end = math.MaxInt64
			}
			history = append(history, porcupine.Operation{ClientId: c.Client, Input: part, Call: c.Start, Output: part, Return: end})
		}
	}
	return history
}

// making splits a repeated ask for several trials, or a repeated many, into its steps.
// A kill can leave a prefix of the first attempt. Other calls may come before the rest
// is made.
func making(c *call) []*call {
	switch {
	case c.Kind != "ask" && c.Kind != "enqueue" && c.Kind != "many":
		return nil
	case !c.Doubt || c.Count < 2:
		return []*call{c}
	}
	var steps []*call
	for i := range c.Count {
		step := *c
		step.Count, step.Given = 1, nil
		if i < len(c.Given) {
			step.Given, step.Trial = c.Given[i:i+1], c.Given[i].Trial
		}
		if c.Kind == "many" && queued(i) {
			step.Kind = "enqueue"
		}
		steps = append(steps, &step)
	}
	return steps
}

// owning splits an ask into its trials.
func owning(c *call) []*call {
	switch c.Kind {
	case "tell", "read":
		return []*call{c}
	case "ask":
		var parts []*call
		for _, g := range c.Given {
			part := *c
			part.Trial, part.Epoch = g.Trial, g.Epoch
			parts = append(parts, &part)
		}
		return parts
	default:
		return nil
	}
}

// linearizable checks a history against both models. It returns the number of
// operations checked and the faults, and draws faulty histories in the folder.
func linearizable(folder string, calls []*call) (n int, faults []string) {
	for name, m := range map[string]struct {
		model porcupine.Model
		pick  func(*call) []*call
	}{"numbers and the queue": {makes, making}, "trials and their owners": {owns, owning}} {
		history := operations(calls, m.pick)
		n += len(history)
		result, info := porcupine.CheckOperationsVerbose(m.model, history, checkLimit)
		if result == porcupine.Ok {
			continue
		}
		path := filepath.Join(folder, "history.html")
		drawn := porcupine.VisualizePath(m.model, info, path)
		faults = append(faults, fmt.Sprintf("%s: %d operations are %s; see %s (%v)", name, len(history), result, path, drawn))
	}
	return n, faults
}

// TestLinearizable has many clients use a service that loses answers. It then finds an
// order in which all calls could have happened one at a time.
func TestLinearizable(t *testing.T) {
	n := often(t, "OPS", 4000)
	seed := seed(t)
	folder := evidence(t, seed)
	st, err := bolt.Open(filepath.Join(folder, "tuner.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	service := engine.Open(st, engine.Options{LongLived: true})
	defer service.Close()
	h := &historian{service: service, journal: new(journal), most: n}
	for i := range 4 {
		if _, err := service.CreateStudy(context.Background(), fmt.Sprint("s", i), study.Create{Spec: spec(t)}); err != nil {
			t.Fatal(err)
		}
	}
	var work sync.WaitGroup
	for i := range clients {
		work.Go(func() { h.work(i, rand.New(rand.NewPCG(seed, uint64(i)))) })
	}
	work.Wait()
	begun := time.Now()
	checked, faults := linearizable(folder, h.journal.Calls)
	took := time.Since(begun)
	for _, f := range faults {
		t.Error(f)
	}
	if t.Failed() {
		_ = writeJSON(filepath.Join(folder, "journal.json"), h.journal)
		return
	}
	unknowns := 0
	for _, c := range h.journal.Calls {
		if c.Ending == unknown {
			unknowns++
		}
	}
	figures(t, "%d calls of %d clients, %d of unknown outcome and %d answers lost and asked for again: %d operations checked in %s", len(h.journal.Calls), clients, unknowns, h.lost, checked, took.Round(time.Millisecond))
	if unknowns == 0 || h.lost == 0 {
		t.Error("no answer was lost: this was no test")
	}
	notLinearizable(t, h.journal.Calls)
}

// notLinearizable checks that a history with two exchanged numbers is refused.
func notLinearizable(t *testing.T, calls []*call) {
	t.Helper()
	var asks []int
	for i, c := range calls {
		if c.Kind == "ask" && c.Ending == acked && c.Study == "s0" && len(c.Given) == 1 {
			asks = append(asks, i)
		}
	}
	first, last := asks[0], asks[len(asks)-1]
	forged := slices.Clone(calls)
	a, b := *calls[first], *calls[last]
	a.Given, b.Given = b.Given, a.Given
	forged[first], forged[last] = &a, &b
	if result := porcupine.CheckOperationsTimeout(makes, operations(forged, making), checkLimit); result != porcupine.Illegal {
		t.Errorf("with two numbers exchanged the history is %s", result)
	}
}

// historian runs the clients of a service and loses some of their answers.
type historian struct {
	service tuner.Service
	journal *journal
	most    int

	mu   sync.Mutex
	made int
	lost int
}

// more reports whether to make another call.
func (h *historian) more() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.made++
	return h.made <= h.most
}

func (h *historian) work(i int, random *rand.Rand) {
	name := fmt.Sprint("s", i%4)
	ctx := context.Background()
	var held []given
	for serial := 0; h.more(); serial++ {
		c := &call{Client: i, Study: name, Request: fmt.Sprintf("%d-%d", i, serial), Start: time.Now().UnixNano()}
		switch n := random.IntN(10); {
		case len(held) == 0 || n == 0:
			c.Kind, c.Count = "ask", 1+random.IntN(2)
			h.ask(ctx, c, random)
			held = append(held, c.Given...)
		case n == 1:
			c.Kind, c.Bits = "enqueue", math.Float64bits(random.Float64())
			h.enqueue(ctx, c, random)
		case n == 2:
			c.Kind, c.Count, c.Bits = "many", 1+random.IntN(4), math.Float64bits(random.Float64())
			h.many(ctx, c, random)
		case n < 5:
			c.Kind, c.Trial = "read", held[0].Trial
			trial, err := h.service.Trial(ctx, name, c.Trial)
			c.end(err)
			if c.Late = trial.State.Terminal(); c.Late { // stands for a trial that has ended
				c.Bits = math.Float64bits(trial.Outcome.Metrics[0].Values[0])
			}
		default:
			c.Kind, c.Trial, c.Epoch, c.Bits = "tell", held[0].Trial, held[0].Epoch, math.Float64bits(random.Float64())
			_, err := h.service.Tell(ctx, name, study.Tell{RequestID: c.Request, Trial: c.Trial, Epoch: c.Epoch, Outcome: c.outcome()})
			c.end(err)
			if random.IntN(20) == 0 {
				c.Ending, c.Code = unknown, tuner.Unknown // the answer is lost, and the client does not repeat the call
			}
			if random.IntN(4) > 0 {
				held = held[1:]
			}
		}
		h.journal.add(c)
	}
}

// lose reports whether to lose an answer.
func (h *historian) lose(random *rand.Rand) bool {
	if random.IntN(20) > 0 {
		return false
	}
	h.mu.Lock()
	h.lost++
	h.mu.Unlock()
	return true
}

func (h *historian) ask(ctx context.Context, c *call, random *rand.Rand) {
	for {
		asked, err := h.service.Ask(ctx, c.Study, study.Ask{RequestID: c.Request, Count: c.Count})
		if h.lose(random) {
			continue
		}
		for _, trial := range asked.Trials {
			c.Given = append(c.Given, given{trial.Number, trial.Epoch, ""})
		}
		c.end(err)
		return
	}
}

func (h *historian) enqueue(ctx context.Context, c *call, random *rand.Rand) {
	for {
		trial, err := h.service.Enqueue(ctx, c.Study, study.Enqueue{RequestID: c.Request, Config: config(c.value(), 7)})
		if h.lose(random) {
			continue
		}
		c.Trial = trial.Number
		c.end(err)
		return
	}
}

func (h *historian) many(ctx context.Context, c *call, random *rand.Rand) {
	for {
		c.Given = nil
		err := c.addAll(ctx, h.service)
		if h.lose(random) {
			continue
		}
		c.end(err)
		return
	}
}

// TestHistoryOfParts checks that only repeated calls may take effect in parts.
func TestHistoryOfParts(t *testing.T) {
	at := int64(0)
	made := func(client int, kind string, count int, doubt bool, trials ...int) *call {
		c := &call{Client: client, Kind: kind, Study: "s", Count: count, Start: at, End: at + 10, Ending: acked, Doubt: doubt}
		for _, n := range trials {
			c.Given = append(c.Given, given{Trial: n, Epoch: 1})
		}
		if kind == "enqueue" {
			c.Trial = trials[0]
		}
		at++
		return c
	}
	for _, c := range []struct {
		name  string
		calls func(doubt bool) []*call
	}{
		{"ask", func(doubt bool) []*call { // the queued trial was handed out before the kill, the other one after it
			return []*call{made(0, "enqueue", 0, false, 0), made(1, "ask", 2, doubt, 0, 2), made(2, "ask", 1, false, 1)}
		}},
		{"many", func(doubt bool) []*call { // one is added before the kill, two after it
			return []*call{made(0, "many", 3, doubt, 0, 2, 3), made(1, "enqueue", 0, false, 1), made(2, "ask", 2, false, 1, 2)}
		}},
	} {
		for _, doubt := range []bool{false, true} {
			want := porcupine.Illegal
			if doubt {
				want = porcupine.Ok
			}
			if got := porcupine.CheckOperationsTimeout(makes, operations(c.calls(doubt), making), checkLimit); got != want {
				t.Errorf("%s, sent again %t: the history is %s, want %s", c.name, doubt, got, want)
			}
		}
		lost := c.calls(true)
		for _, c := range lost {
			if c.Doubt { // no client was given one of the numbers
				c.Given[len(c.Given)-1].Trial += 7
			}
		}
		if got := porcupine.CheckOperationsTimeout(makes, operations(lost, making), checkLimit); got != porcupine.Illegal {
			t.Errorf("%s with a number that was never made: the history is %s", c.name, got)
		}
		ended := c.calls(true)
		for _, c := range ended {
			if c.Doubt { // the first attempt left a part, and the second was refused
				c.Ending, c.Code, c.Given = refused, tuner.Exhausted, nil
			}
		}
		if got := porcupine.CheckOperationsTimeout(makes, operations(ended, making), checkLimit); got != porcupine.Ok {
			t.Errorf("%s that was refused at its second send: the history is %s", c.name, got)
		}
	}
}

// TestHistoryAgain checks the history of a failed run.
func TestHistoryAgain(t *testing.T) {
	folder := os.Getenv("BKB_TORTURE_HISTORY")
	if folder == "" {
		t.Skip("checks the history of a failed run, in the folder that BKB_TORTURE_HISTORY names")
	}
	var j journal
	if err := readJSON(filepath.Join(folder, "journal.json"), &j); err != nil {
		t.Fatal(err)
	}
	n, faults := linearizable(folder, j.Calls)
	for _, f := range faults {
		t.Error(f)
	}
	t.Logf("%d operations", n)
}
