package torture

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
)

// act has an idle worker make a call.
func (s *simulation) act(w *simWorker) {
	if w.call != nil {
		return
	}
	switch {
	case len(w.again) > 0 && s.random.IntN(3) > 0:
		c := w.again[0]
		w.again = w.again[1:]
		s.counts.again++
		s.send(w, c)
	case len(w.past) > 0 && s.random.IntN(12) == 0: // a duplicate
		s.counts.again++
		s.send(w, w.past[s.random.IntN(len(w.past))])
	default:
		s.send(w, s.invent(w))
	}
}

// invent returns a new call.
func (s *simulation) invent(w *simWorker) *simCall {
	s.serial++
	c := &simCall{worker: w, id: fmt.Sprint("r", s.serial), study: "a"}
	if s.random.IntN(5) == 0 {
		c.study = "b"
	}
	if c.study == "b" && s.book.exists("b") && s.book.idleOn("b") && s.random.IntN(6) == 0 {
		c.kind = "delete"
		return c
	}
	if !s.book.exists(c.study) && s.random.IntN(4) == 0 {
		c.kind = "study"
		return c
	}
	if !s.book.exists(c.study) || s.random.IntN(60) == 0 {
		c.kind, c.command = "create", study.Create{RequestID: c.id, Spec: s.spec}
		return c
	}
	if len(w.held) > 0 {
		g := w.held[s.random.IntN(len(w.held))]
		c.study, c.trial, c.epoch = g.Config, g.Trial, g.Epoch // Config stands for the study of a held trial
		if s.random.IntN(6) == 0 {
			c.epoch = 0
		}
	} else {
		c.trial = s.random.IntN(8)
	}
	switch n := s.random.IntN(40); {
	case n < 14 && len(w.held) < 3 || n < 3:
		c.kind, c.command = "ask", study.Ask{RequestID: c.id, Count: 1 + s.random.IntN(2), Worker: w.name(), New: s.random.IntN(3) == 0}
	case n < 24:
		c.kind, c.command = "tell", study.Tell{RequestID: c.id, Trial: c.trial, Epoch: c.epoch, Outcome: s.outcome()}
	case n < 27:
		c.kind, c.command = "report", study.ReportValues{RequestID: c.id, Trial: c.trial, Epoch: c.epoch, Reports: []study.Report{
			{Step: int64(s.serial), Values: []study.NamedValue{{Name: "loss", Value: s.random.Float64()}}},
		}}
	case n < 31:
		c.kind, c.command = "heartbeat", study.Heartbeat{Trial: c.trial, Epoch: c.epoch}
	case n < 33:
		c.kind, c.command = "enqueue", study.Enqueue{RequestID: c.id, Config: config(s.random.Float64(), 9)}
	case n < 34 && s.random.IntN(2) == 0:
		c.kind, c.many = "many", s.many(c)
		c.command = c.many[0]
	case n < 34:
		c.kind, c.command = "add", study.Add{RequestID: c.id, Config: config(s.random.Float64(), 9), Outcome: s.outcome()}
	case n < 35:
		c.kind, c.command = "attributes", study.SetAttributes{RequestID: c.id, Trial: study.OfStudy, Attributes: study.Attributes{"k": c.id}}
	case n < 36:
		c.kind, c.command = "pause", study.Pause{RequestID: c.id}
	case n < 38:
		c.kind, c.command = "resume", study.Resume{RequestID: c.id}
	case n < 39 && s.random.IntN(6) == 0:
		c.kind, c.command = "finish", study.Finish{RequestID: c.id}
	case n == 38:
		c.kind, c.command = "extend", study.Extend{RequestID: c.id, MaxTrials: min(1, s.spec.MaxTrials), More: true}
	default:
		c.kind = []string{"study", "trial"}[s.random.IntN(2)]
	}
	return c
}

// many returns commands to add, each with its own id. Sometimes one of them is refused.
func (s *simulation) many(c *simCall) (commands []study.Command) {
	for i := range 2 + s.random.IntN(3) {
		id := fmt.Sprint(c.id, "/", i)
		if s.random.IntN(2) == 0 {
			commands = append(commands, study.Enqueue{RequestID: id, Config: config(s.random.Float64(), 9)})
			continue
		}
		add := study.Add{RequestID: id, Config: config(s.random.Float64(), 9), Outcome: s.outcome()}
		if s.random.IntN(8) == 0 {
			add.Outcome.Metrics = nil
		}
		commands = append(commands, add)
	}
	return commands
}

// ids returns the ids of a call's effects.
func (c *simCall) ids() (ids []string) {
	for _, m := range c.many {
		switch m := m.(type) {
		case study.Add:
			ids = append(ids, m.RequestID)
		case study.Enqueue:
			ids = append(ids, m.RequestID)
		}
	}
	if c.many == nil {
		ids = []string{c.id}
	}
	return ids
}

// outcome returns a unique outcome, and sometimes NaN.
func (s *simulation) outcome() study.Outcome {
	v := s.random.Float64()
	switch s.random.IntN(12) {
	case 0:
		v = math.NaN()
	case 1:
		v = math.Inf(1)
	}
	return study.Outcome{State: study.Completed, Cost: 1 + s.random.Float64(), Metrics: []study.Metric{{Name: "loss", Values: []float64{v}}}}
}

// send begins a call. Its answer is collected later.
func (s *simulation) send(w *simWorker, c *simCall) {
	s.counts.calls++
	ctx, cancel := context.WithCancel(context.Background())
	ctx, life, service := s.choose(ctx, c.to)
	c.life, c.cancel, c.sent, c.answer = life, cancel, time.Now(), simAnswer{}
	before := c.incarnation
	if c.incarnation, c.durable = s.book.position(c.study); before != 0 && before != c.incarnation {
		// For a study created anew it is a new request, unless it was still under way then.
		c.doubt, c.acked = c.ended == c.incarnation, false
	}
	w.call = c
	s.say("worker %d sends %s %s to %s: trial %d, epoch %d", w.index, c.kind, c.id, c.study, c.trial, c.epoch)
	go func() {
		defer cancel()
		a := invoke(ctx, service, c)
		s.mu.Lock()
		c.answer = a
		s.finished = append(s.finished, c)
		s.mu.Unlock()
	}()
}

// choose returns the service for a call. With several servers it is the given one, or
// any of them.
func (s *simulation) choose(ctx context.Context, v *simServer) (context.Context, *simLife, tuner.Service) {
	if s.fleet == nil {
		return ctx, s.life, s.service
	}
	if v == nil {
		v = s.fleet[s.random.IntN(len(s.fleet))]
	}
	return s.lossy(ctx), v.life, v
}

// invoke makes the call.
func invoke(ctx context.Context, t tuner.Service, c *simCall) (a simAnswer) {
	switch c.kind {
	case "create":
		_, a.err = t.CreateStudy(ctx, c.study, c.command.(study.Create))
	case "delete":
		a.err = t.DeleteStudy(ctx, c.study)
	case "ask":
		var asked tuner.Asked
		asked, a.err = t.Ask(ctx, c.study, c.command.(study.Ask))
		for _, trial := range asked.Trials {
			a.given = append(a.given, given{trial.Number, trial.Epoch, trial.Config.String()})
		}
	case "tell":
		var told tuner.Told
		told, a.err = t.Tell(ctx, c.study, c.command.(study.Tell))
		a.late = told.Late
	case "report":
		_, a.err = t.Report(ctx, c.study, c.command.(study.ReportValues))
	case "heartbeat":
		_, a.err = t.Heartbeat(ctx, c.study, c.command.(study.Heartbeat))
	case "enqueue":
		var trial study.Trial
		trial, a.err = t.Enqueue(ctx, c.study, c.command.(study.Enqueue))
		a.trial = &trial
	case "add":
		var trial study.Trial
		trial, a.err = t.Add(ctx, c.study, c.command.(study.Add))
		a.trial = &trial
	case "many":
		a.made, a.err = t.AddAll(ctx, c.study, c.many)
	case "attributes":
		a.err = t.SetAttributes(ctx, c.study, c.command.(study.SetAttributes))
	case "pause":
		_, a.err = t.Pause(ctx, c.study, c.command.(study.Pause))
	case "resume":
		_, a.err = t.Resume(ctx, c.study, c.command.(study.Resume))
	case "finish":
		_, a.err = t.Finish(ctx, c.study, c.command.(study.Finish))
	case "extend":
		var v tuner.Study
		v, a.err = t.Extend(ctx, c.study, c.command.(study.Extend))
		a.study = &v
	case "study":
		var v tuner.Study
		v, a.err = t.Study(ctx, c.study)
		a.study = &v
	default:
		var trial study.Trial
		trial, a.err = t.Trial(ctx, c.study, c.trial)
		a.trial = &trial
	}
	return a
}

// collect takes the answers that have arrived, in a fixed order.
func (s *simulation) collect() {
	s.mu.Lock()
	finished := s.finished
	s.finished = nil
	s.mu.Unlock()
	slices.SortFunc(finished, func(a, b *simCall) int { return a.worker.index - b.worker.index })
	for _, c := range finished {
		s.receive(c)
	}
}

// receive handles an answer as a worker does, or its loss.
func (s *simulation) receive(c *simCall) {
	w := c.worker
	w.call = nil
	c.ended, _ = s.book.position(c.study)
	code := tuner.CodeOf(c.answer.err)
	lost := c.life.dead.Load() || s.random.IntN(20) == 0
	s.say("worker %d: %s %s → %q, lost %t, %v%v", w.index, c.kind, c.id, code, lost, c.answer.given, c.answer.err)
	if !lost && (code == tuner.Internal || code == tuner.Damaged) {
		s.broken("%s %s ended with %s: %v", c.kind, c.id, code, c.answer.err)
	}
	switch {
	case lost, code == tuner.Unknown, code == tuner.Cancelled, code == tuner.Deadline:
		if code != tuner.Cancelled && code != tuner.Deadline || lost { // these mean that the call had no effect
			c.doubt = true
		}
		if c.kind != "delete" {
			w.again = append(w.again, c)
		}
	case code == tuner.OK:
		s.counts.acked++
		s.book.acknowledge(c)
		if c.command != nil && !c.acked {
			w.past = append(w.past, c)
		}
		c.acked = true
		w.take(c)
	default:
		s.book.refuse(c)
		if c.kind == "heartbeat" || c.kind == "tell" || c.kind == "report" {
			w.drop(c.study, c.trial)
		}
	}
}

// take keeps the trials of an ask and drops told ones.
func (w *simWorker) take(c *simCall) {
	switch c.kind {
	case "ask":
		for _, g := range c.answer.given {
			w.drop(c.study, g.Trial)
			w.held = append(w.held, given{g.Trial, g.Epoch, c.study})
		}
	case "tell":
		w.drop(c.study, c.trial)
	}
}

func (w *simWorker) drop(name string, trial int) {
	w.held = slices.DeleteFunc(w.held, func(g given) bool { return g.Trial == trial && g.Config == name })
}
