package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/study"
)

// manyCommands returns n commands. Every tenth is an enqueue, and the others are adds.
func manyCommands(t *testing.T, spec study.Spec, n int) []study.Command {
	t.Helper()
	rng := rand.New(rand.NewPCG(4, 4))
	var out []study.Command
	for i := range n {
		c, err := spec.Space.Decode([]float64{rng.Float64(), rng.Float64(), rng.Float64()})
		if err != nil {
			t.Fatal(err)
		}
		id := fmt.Sprint("add ", i)
		if i%10 == 9 {
			out = append(out, study.Enqueue{RequestID: id, Config: c})
		} else {
			out = append(out, study.Add{RequestID: id, Config: c, Outcome: loss(rng.Float64())})
		}
	}
	return out
}

func listed(t *testing.T, s tuner.Service) (out []string) {
	t.Helper()
	trials, _, err := s.Trials(t.Context(), "s", tuner.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, trial := range trials {
		out = append(out, fmt.Sprint(trial.Number, trial.State, trial.Config, trial.Outcome, trial.EndPosition()))
	}
	return out
}

// AddAll makes the trials that single calls make, with few commits. They are whole
// after a restart, and the search continues in the same way.
func TestAddAll(t *testing.T) {
	bkb := func(c *study.Spec) { c.Proposer = study.Component{Name: propose.BKB} }
	commands := manyCommands(t, testSpec(t, nil), 120)
	single, many := open(t, memory.New(), Options{}, bkb), newFaulty()
	for _, c := range commands {
		var err error
		switch c := c.(type) {
		case study.Add:
			_, err = single.Add(t.Context(), "s", c)
		case study.Enqueue:
			_, err = single.Enqueue(t.Context(), "s", c)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	tn := open(t, many, Options{}, bkb)
	commits := 0
	many.on(func(n int) error { commits = n + 1; return nil })
	for from := 0; from < len(commands); from += 50 {
		part := commands[from:min(from+50, len(commands))]
		numbers, err := tn.AddAll(t.Context(), "s", part)
		if err != nil || len(numbers) != len(part) || numbers[0] != from {
			t.Fatalf("from %d: %v, %v", from, numbers, err)
		}
	}
	if commits != 3 {
		t.Errorf("%d commits for three calls", commits)
	}
	tn.Close()
	again := Open(many, Options{})
	defer again.Close()
	if got, want := fmt.Sprint(listed(t, again)), fmt.Sprint(listed(t, single)); got != want {
		t.Errorf("at once:\n%s\none after another:\n%s", got, want)
	}
	for range 20 { // the queue first, then suggestions
		a, b := ask(t, single, study.Ask{})[0], ask(t, again, study.Ask{})[0]
		if a.Number != b.Number || !a.Config.Equal(b.Config) {
			t.Fatalf("asked: %v and %v", a, b)
		}
	}
	// A retry returns the trials that exist.
	numbers, err := again.AddAll(t.Context(), "s", commands[30:40])
	if err != nil || numbers[0] != 30 || numbers[9] != 39 {
		t.Errorf("once more: %v, %v", numbers, err)
	}
}

// The trials before the first refused command exist.
func TestAddAllRefused(t *testing.T) {
	tn := open(t, memory.New(), Options{}, nil)
	commands := manyCommands(t, testSpec(t, nil), 9)
	bad := commands[4].(study.Add)
	bad.Outcome = loss()
	commands[4] = bad
	numbers, err := tn.AddAll(t.Context(), "s", commands)
	wantCode(t, err, tuner.Invalid, "trials[4]: ", "loss")
	if refused := (*tuner.CommandError)(nil); !errors.As(err, &refused) || refused.Index != 4 || !refused.Refused() {
		t.Errorf("error %#v does not say which", err)
	}
	if got := listed(t, tn); len(numbers) != 0 || len(got) != 4 {
		t.Errorf("%d trials answered, %d there", len(numbers), len(got))
	}
	bad.RequestID = ""
	for what, c := range map[string][]study.Command{
		"trials[1].request_id": {commands[0], bad},
		"trials[0]":            {study.Pause{RequestID: "p"}},
		"at most 1000":         make([]study.Command, tuner.MaxPage+1),
	} {
		_, err := tn.AddAll(t.Context(), "s", c)
		wantCode(t, err, tuner.Invalid, what)
	}
	if got := listed(t, tn); len(got) != 4 {
		t.Errorf("%d trials after what was refused", len(got))
	}
}

// A commit that the store refuses adds no trial.
func TestAddAllOnAFullStore(t *testing.T) {
	st := newFaulty()
	tn := open(t, st, Options{}, nil)
	st.on(func(n int) error {
		if n == 0 {
			return fmt.Errorf("commit: %w", store.ErrFull)
		}
		return nil
	})
	commands := manyCommands(t, testSpec(t, nil), 30)
	trials, err := tn.AddAll(t.Context(), "s", commands)
	wantCode(t, err, tuner.Exhausted)
	if got := listed(t, tn); len(trials)+len(got) != 0 {
		t.Errorf("%d trials answered, %d there", len(trials), len(got))
	}
	if trials, err = tn.AddAll(t.Context(), "s", commands); err != nil || len(trials) != 30 || len(listed(t, tn)) != 30 {
		t.Errorf("then: %d trials, %v", len(trials), err)
	}
}

// A request too large for one commit takes two. If the second is refused, the caller
// learns that some trials may exist, and a retry adds the rest. Another writer between
// the two changes nothing, unless the caller has given up by then.
func TestAddAllInTwoCommits(t *testing.T) {
	racetest.Alone(t)
	full, conflict := fmt.Errorf("commit: %w", store.ErrFull), &store.ConflictError{Study: 1, Expected: 1, Actual: 2}
	commands := largeCommands(t)
	for what, test := range map[string]struct {
		second error
		cancel bool
		code   tuner.Code
	}{
		"full":                    {full, false, tuner.Unknown},
		"conflict":                {conflict, false, tuner.OK},
		"conflict, and cancelled": {conflict, true, tuner.Unknown},
	} {
		t.Run(what, func(t *testing.T) {
			st := newFaulty()
			tn := open(t, st, Options{}, nil)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			st.on(func(n int) error {
				if n != 1 {
					return nil
				}
				if test.cancel {
					cancel()
				}
				return test.second
			})
			trials, err := tn.AddAll(ctx, "s", commands)
			wantCode(t, err, test.code)
			there := len(listed(t, tn))
			if test.code == tuner.OK {
				if len(trials) != len(commands) || there != len(commands) {
					t.Errorf("%d trials answered, %d there", len(trials), there)
				}
				return
			}
			wantCode(t, err, test.code, "a part of the trials has been added")
			if len(trials) != 0 || there == 0 || there == len(commands) {
				t.Errorf("%d trials answered, %d there", len(trials), there)
			}
			if trials, err := tn.AddAll(t.Context(), "s", commands); err != nil || len(trials) != len(commands) || len(listed(t, tn)) != len(commands) {
				t.Errorf("then: %d trials, %v", len(trials), err)
			}
		})
	}
}

// largeCommands returns adds that fit into two commits but not into one.
func largeCommands(t *testing.T) []study.Command {
	t.Helper()
	commands := manyCommands(t, testSpec(t, nil), 320)
	for i, c := range commands {
		if add, ok := c.(study.Add); ok {
			add.Attributes = map[string]string{"log": strings.Repeat("x", 60_000)}
			commands[i] = add
		}
	}
	return commands
}

// Each call stays whole beside asks and tells. Its trials exist once and have
// consecutive numbers, and no other trial has one of these numbers.
func TestAddAllBesideAsks(t *testing.T) {
	st := newFaulty()
	tn := open(t, st, Options{}, nil)
	var adds []study.Command
	for _, c := range manyCommands(t, testSpec(t, nil), 80) {
		if _, ok := c.(study.Add); ok { // an ask would get enqueued trials
			adds = append(adds, c)
		}
	}
	const parts, workers, asks = 4, 3, 10
	made, asked := make([][]int, parts), make([][]int, workers)
	var all sync.WaitGroup
	for i := range parts {
		all.Go(func() {
			var err error
			if made[i], err = tn.AddAll(t.Context(), "s", adds[i*18:(i+1)*18]); err != nil {
				t.Error(err)
			}
		})
	}
	for i := range workers {
		all.Go(func() {
			for range asks {
				a, err := tn.Ask(t.Context(), "s", study.Ask{})
				if err == nil {
					_, err = tn.Tell(t.Context(), "s", study.Tell{Trial: a.Trials[0].Number, Outcome: loss(1)})
				}
				if err != nil {
					t.Error(err)
					return
				}
				asked[i] = append(asked[i], a.Trials[0].Number)
			}
		})
	}
	all.Wait()
	had := make(map[int]bool)
	for _, numbers := range made {
		for j, n := range numbers {
			if n != numbers[0]+j {
				t.Errorf("trial %d of a part that begins at %d has the number %d", j, numbers[0], n)
			}
			had[n] = true
		}
	}
	for _, numbers := range asked {
		for _, n := range numbers {
			had[n] = true
		}
	}
	const want = parts*18 + workers*asks
	if got := listed(t, tn); len(had) != want || len(got) != want {
		t.Errorf("%d numbers, %d trials there, want %d", len(had), len(got), want)
	}
	tn.Close()
	again := Open(st, Options{})
	defer again.Close()
	if got := listed(t, again); len(got) != want {
		t.Errorf("%d trials after a restart, want %d", len(got), want)
	}
}
