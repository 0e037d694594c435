package torture

import (
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
)

// book is the expected state in a simulation. It is derived from the disk and the
// answers to clients, and not from the state of the service.
type book struct {
	s          *simulation
	quietSince time.Time

	mu      sync.Mutex
	studies map[string]*simStudy
	effects map[asked][]effect // all so far
	refused map[string]bool    // requests that certainly have no effect
}

// simStudy is a study on the simulated disk.
type simStudy struct {
	id      store.StudyID
	twin    study.Study // folded from the disk
	holders map[simLease]string
	safe    map[simLease]time.Time // until when the holder has the lease
	trials  []study.Trial          // at the last check
}

type simLease struct{ trial, epoch int }

// asked is a request to a study. Ids are unique only within a study.
type asked struct {
	study store.StudyID
	id    string
}

// effect is one event on the disk that answers a request.
type effect struct{ body study.Body }

func newBook(s *simulation) *book {
	return &book{s: s, quietSince: time.Now(), studies: make(map[string]*simStudy), effects: make(map[asked][]effect), refused: make(map[string]bool)}
}

func (b *book) exists(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.studies[name] != nil
}

func (b *book) position(name string) (store.StudyID, study.Position) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if st := b.studies[name]; st != nil {
		return st.id, st.twin.Position()
	}
	return 0, 0
}

// idle reports whether no call is running. idleOn reports it for one study, and whether
// no call to it will be repeated.
func (b *book) idle() bool {
	return !slices.ContainsFunc(b.s.workers, func(w *simWorker) bool { return w.call != nil })
}

func (b *book) idleOn(name string) bool {
	return !slices.ContainsFunc(b.s.workers, func(w *simWorker) bool {
		on := func(c *simCall) bool { return c.study == name }
		return w.call != nil && on(w.call) || slices.ContainsFunc(w.again, on)
	})
}

// created, deleted and committed record changes of the disk.
func (b *book) created(id store.StudyID, name string, events []study.Event) {
	b.mu.Lock()
	b.studies[name] = &simStudy{id: id, holders: make(map[simLease]string), safe: make(map[simLease]time.Time)}
	b.mu.Unlock()
	b.committed(name, events)
}

func (b *book) deleted(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.studies, name)
	for _, w := range b.s.workers {
		w.held = slices.DeleteFunc(w.held, func(g given) bool { return g.Config == name })
		w.past = slices.DeleteFunc(w.past, func(c *simCall) bool { return c.study == name })
	}
}

func (b *book) committed(name string, events []study.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	st := b.studies[name]
	for _, e := range events {
		b.event(st, e)
	}
	b.whole(st)
}

// event records one event and checks it against the promises.
func (b *book) event(st *simStudy, e study.Event) {
	b.s.say("on disk: study %d: %T %q", st.id, e.Body, e.Request.ID)
	status, _ := st.twin.Status()
	switch body := e.Body.(type) {
	case study.Started:
		if status == study.StatusFinished || status == study.StatusPaused {
			b.s.broken("trial %d was handed out by a study that is %s", body.Trial, status)
		}
		if body.Epoch > b.s.spec.MaxRetries+1 {
			b.s.broken("trial %d was started %d times at %d retries", body.Trial, body.Epoch, b.s.spec.MaxRetries)
		}
	case study.Enqueued, study.Added:
		if status == study.StatusFinished {
			b.s.broken("a finished study took in %T", body)
		}
	case study.Expired:
		b.s.counts.expired++
		if left := time.Until(st.safe[simLease{body.Trial, body.Epoch}]); left > 0 {
			b.s.broken("the lease on trial %d, epoch %d, was ended %s too early", body.Trial, body.Epoch, left)
		}
	case study.Told:
		for _, m := range body.Outcome.Metrics {
			if body.Outcome.State == study.Completed && m.Name == "loss" && (math.IsNaN(m.Values[0]) || math.IsInf(m.Values[0], -1)) {
				b.s.broken("trial %d completed with %g", body.Trial, m.Values[0])
			}
		}
	}
	if err := st.twin.Apply(e); err != nil {
		b.s.broken("on disk is what no study can have done: %v", err)
		return
	}
	if id := e.Request.ID; id != "" {
		if b.refused[id] {
			b.s.broken("request %s was refused, and then %T", id, e.Body)
		}
		key := asked{st.id, id}
		b.effects[key] = append(b.effects[key], effect{e.Body})
		b.onlyOnce(key)
	}
}

// onlyOnce checks that a request has one effect, however often it is sent.
func (b *book) onlyOnce(key asked) {
	seen := make(map[int]int)
	kinds := 0
	for _, e := range b.effects[key] {
		switch body := e.body.(type) {
		case study.Started:
			if seen[body.Trial]++; seen[body.Trial] > 1 || len(seen) > 2 {
				b.s.broken("ask %s had its effect twice: %+v", key.id, b.effects[key])
			}
		case study.Extended, study.Finished:
		default:
			if kinds++; kinds > 1 {
				b.s.broken("request %s had its effect twice: %+v", key.id, b.effects[key])
			}
		}
	}
}

// whole checks that events that belong together are on the disk together.
func (b *book) whole(st *simStudy) {
	v := &st.twin
	spec := v.Spec()
	made := 0
	for t := range v.All(0) {
		if t.Origin != study.OriginAdded {
			made++
		}
	}
	status, _ := v.Status()
	if spec.MaxTrials > 0 && made > spec.MaxTrials {
		b.s.broken("%d trials were made, %d are allowed", made, spec.MaxTrials)
	}
	if spec.MaxTrials > 0 && made >= spec.MaxTrials && v.Count(study.Running)+v.Count(study.Queued) == 0 && status != study.StatusFinished {
		b.s.broken("the last trial is over on the disk, and the study's end is not")
	}
}

// check checks the state on the disk against the promises.
func (b *book) check() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, st := range b.studies {
		if err := st.twin.Check(); err != nil {
			b.s.broken("on disk: %v", err)
		}
		n := 0
		for t := range st.twin.All(0) {
			if n < len(st.trials) {
				b.change(st.trials[n], t)
				st.trials[n] = t
			} else {
				st.trials = append(st.trials, t)
			}
			n++
		}
	}
}

// change checks that a terminal state is final, except for failures that no worker
// told.
func (b *book) change(was, is study.Trial) {
	final := was.State.Terminal() && (was.State != study.Failed || was.Outcome.Reason != study.FailedExpired)
	if final && (is.State != was.State || !is.Outcome.Equal(was.Outcome) || is.Epoch != was.Epoch) {
		b.s.broken("trial %d was over as %v and is now %v", was.Number, was.Outcome, is.Outcome)
	}
	if is.Epoch < was.Epoch || len(is.Reports) < len(was.Reports) || len(is.Late) < len(was.Late) || !is.Config.Equal(was.Config) {
		b.s.broken("trial %d went back from %+v to %+v", was.Number, was, is)
	}
}

// refuse records that a call certainly had no effect.
func (b *book) refuse(c *simCall) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ids := c.ids()
	if at := (*tuner.CommandError)(nil); errors.As(c.answer.err, &at) {
		b.before(c, ids[:at.Index])
		ids = ids[at.Index:]
	}
	if c.doubt || c.acked || c.command == nil || c.kind == "heartbeat" {
		return
	}
	for _, id := range ids {
		b.refused[id] = true
		if len(b.effects[asked{c.incarnation, id}]) > 0 {
			b.s.broken("%s %s was refused (%v), but is on the disk", c.kind, id, c.answer.err)
		}
	}
}

// before checks that the commands of many before the refused one are on the disk.
func (b *book) before(c *simCall, ids []string) {
	if st := b.studies[c.study]; st == nil || st.id != c.incarnation {
		return // deleted in the meantime
	}
	for _, id := range ids {
		if len(b.effects[asked{c.incarnation, id}]) != 1 {
			b.s.broken("many %s ended at a later one (%v), and %s is lost", c.id, c.answer.err, id)
		}
	}
}

// added checks that the trials of many are on the disk, each once and with its number.
func (b *book) added(st *simStudy, c *simCall) {
	ids := c.ids()
	if len(c.answer.made) != len(ids) || c.acked && !slices.Equal(c.accepted.made, c.answer.made) {
		b.s.broken("many %s was answered with %v, before with %v", c.id, c.answer.made, c.accepted.made)
		return
	}
	for i, id := range ids {
		number := -1
		for _, e := range b.effects[asked{st.id, id}] {
			switch body := e.body.(type) {
			case study.Added:
				number = body.Trial
			case study.Enqueued:
				number = body.Trial
			}
		}
		if number != c.answer.made[i] {
			b.s.broken("many %s made trial %d of %s, on the disk is %d", c.id, c.answer.made[i], id, number)
		}
	}
}

// acknowledge checks an answer against the disk.
func (b *book) acknowledge(c *simCall) {
	b.mu.Lock()
	defer b.mu.Unlock()
	st := b.studies[c.study]
	if c.kind == "delete" {
		if st != nil {
			b.s.broken("study %s was deleted, and is there", c.study)
		}
		return
	}
	switch {
	case st == nil && c.incarnation == 0:
		b.s.broken("%s %s on study %s, which is not there, was acknowledged", c.kind, c.id, c.study)
		return
	case c.incarnation != 0 && (st == nil || st.id != c.incarnation): // deleted in the meantime
		return
	}
	c.incarnation = st.id
	switch c.kind {
	case "ask":
		b.answered(st, c)
	case "tell":
		b.told(st, c)
	case "heartbeat":
		if c.epoch > 0 {
			st.extend(simLease{c.trial, c.epoch}, c.sent.Add(b.s.lease))
		}
	case "enqueue", "add":
		t, ok := st.twin.Trial(c.answer.trial.Number)
		if !ok || t.Origin == study.OriginSuggested || len(b.effects[asked{st.id, c.id}]) != 1 {
			b.s.broken("%s %s made trial %d, which is lost", c.kind, c.id, c.answer.trial.Number)
		}
		if c.acked && c.accepted.trial.Number != c.answer.trial.Number {
			b.s.broken("%s %s was answered with trial %d and then %d", c.kind, c.id, c.accepted.trial.Number, c.answer.trial.Number)
		}
	case "many":
		b.added(st, c)
	case "report", "attributes":
		if len(b.effects[asked{st.id, c.id}]) != 1 {
			b.s.broken("%s %s was acknowledged and is lost", c.kind, c.id)
			return
		}
		if r, ok := b.effects[asked{st.id, c.id}][0].body.(study.Reported); ok && c.epoch > 0 && r.Epoch != c.epoch {
			b.s.broken("report %s under epoch %d of trial %d was stored under epoch %d", c.id, c.epoch, c.trial, r.Epoch)
		}
	case "extend":
		if got, want := st.twin.Spec().MaxTrials, c.answer.study.Spec.MaxTrials; got < want {
			b.s.broken("extend %s was acknowledged with %d trials and is lost: %d", c.id, want, got)
		}
	case "study":
		b.read(st, c, c.answer.study.Position)
	case "trial":
		t, ok := st.twin.Trial(c.trial)
		if !ok || t.State.Terminal() && !c.answer.trial.State.Terminal() && st.twin.Position() == c.durable {
			b.s.broken("trial %d was read as %s and is %s on the disk", c.trial, c.answer.trial.State, t.State)
		}
		if c.answer.trial.State.Terminal() && !t.State.Terminal() {
			b.s.broken("trial %d was read as %s, which is not on the disk", c.trial, c.answer.trial.State)
		}
	}
	c.accepted = c.answer
}

// read checks that a reader sees all earlier acknowledged data, and no data that could
// still be lost.
func (b *book) read(st *simStudy, c *simCall, position study.Position) {
	if st.id != c.answer.study.ID {
		b.s.broken("study %d was read, the name is that of %d", c.answer.study.ID, st.id)
	}
	if position < c.durable {
		b.s.broken("position %d was read after %d was on the disk", position, c.durable)
	}
	if position > st.twin.Position() {
		b.s.broken("position %d was read, on the disk is %d", position, st.twin.Position())
	}
}

func (st *simStudy) extend(l simLease, until time.Time) {
	if until.After(st.safe[l]) {
		st.safe[l] = until
	}
}

func (b *book) answered(st *simStudy, c *simCall) {
	if c.acked && !slices.Equal(c.accepted.given, c.answer.given) {
		b.s.broken("ask %s was answered with %v and then with %v", c.id, c.accepted.given, c.answer.given)
	}
	ask := c.command.(study.Ask)
	if len(c.answer.given) == 0 || len(c.answer.given) > ask.Count {
		b.s.broken("ask %s for %d trials was given %d", c.id, ask.Count, len(c.answer.given))
	}
	for _, g := range c.answer.given {
		t, ok := st.twin.Trial(g.Trial)
		if !ok || t.Config.String() != g.Config || g.Epoch > t.Epoch || g.Epoch < 1 {
			b.s.broken("ask %s was given %+v, on the disk is %+v", c.id, g, t)
			continue
		}
		b.handed(st, c, ask, simLease{g.Trial, g.Epoch})
	}
}

// handed checks that a lease has one holder, which may ask for it again by name.
func (b *book) handed(st *simStudy, c *simCall, ask study.Ask, l simLease) {
	holder := c.id
	if ask.Worker != "" {
		holder = ask.Worker
	}
	if other, held := st.holders[l]; held && other != holder {
		b.s.broken("trial %d, epoch %d, was given to %s and to %s", l.trial, l.epoch, other, holder)
	}
	st.holders[l] = holder
	if !slices.ContainsFunc(b.effects[asked{st.id, c.id}], func(e effect) bool {
		switch body := e.body.(type) {
		case study.Started:
			return body.Trial == l.trial && body.Epoch == l.epoch
		case study.Extended:
			return body.Trial == l.trial && body.Epoch == l.epoch
		default:
			return false
		}
	}) {
		b.s.broken("ask %s was given trial %d, epoch %d, and nothing of it is on the disk", c.id, l.trial, l.epoch)
	}
	if !c.acked && !c.doubt { // otherwise the lease began with an earlier attempt
		st.extend(l, c.sent.Add(b.s.lease))
	}
}

func (b *book) told(st *simStudy, c *simCall) {
	t, ok := st.twin.Trial(c.trial)
	if !ok {
		b.s.broken("tell %s is of trial %d, which is not there", c.id, c.trial)
		return
	}
	want := c.command.(study.Tell).Outcome
	same := func(o study.Outcome) bool {
		if math.IsNaN(want.Metrics[0].Values[0]) {
			return o.State == study.Failed && o.Reason == study.FailedNaN
		}
		return o.State == want.State && len(o.Metrics) == 1 && o.Metrics[0].Values[0] == want.Metrics[0].Values[0]
	}
	if !c.answer.late {
		if !same(t.Outcome) || len(b.effects[asked{st.id, c.id}]) == 0 {
			b.s.broken("tell %s of trial %d said %v, on the disk is %v", c.id, c.trial, want, t.Outcome)
		}
		if c.epoch > 0 && t.ToldEpoch != c.epoch {
			b.s.broken("tell %s spoke for epoch %d of trial %d and is stored for epoch %d", c.id, c.epoch, c.trial, t.ToldEpoch)
		}
		return
	}
	if !slices.ContainsFunc(t.Late, func(l study.LateResult) bool { return l.Epoch == c.epoch && same(l.Outcome) }) {
		b.s.broken("late tell %s of trial %d is lost", c.id, c.trial)
	}
	if c.epoch == t.Epoch {
		b.s.broken("tell %s under the current lease of trial %d was taken as late", c.id, c.trial)
	}
}

// atRest checks that no lease remains after a long time without heartbeats, and that
// the service answers.
func (b *book) atRest() {
	if !b.idle() {
		b.s.broken("a call was never answered: %+v", b.s.workers)
		return
	}
	b.mu.Lock()
	for name, st := range b.studies {
		if n := st.twin.Count(study.Running); n > 0 {
			b.s.broken("study %s still has %d running trials long after all leases were over", name, n)
		}
	}
	b.mu.Unlock()
}
