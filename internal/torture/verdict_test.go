package torture

import (
	"context"
	"fmt"
	"slices"
	"sort"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/study"
)

// holding is the contents of a store, as the logs of its studies by name.
type holding map[string][]study.Event

// readAll reads a store.
func readAll(s store.Store) (holding, error) {
	ctx := context.Background()
	h := make(holding)
	for info, err := range s.List(ctx, "") {
		if err != nil {
			return nil, err
		}
		for r, err := range s.Read(ctx, info.ID, 1) {
			if err != nil {
				return nil, fmt.Errorf("study %s: %w", info.Name, err)
			}
			h[info.Name] = append(h[info.Name], r.Event)
		}
	}
	return h, nil
}

// judgement is the comparison of a store with the answers to clients.
type judgement struct {
	holding  holding
	faults   []string
	events   map[string]map[string][]placed // by study and request id
	configs  map[string][]string            // by study and trial
	acked    int                            // calls
	doubtful int
}

type placed struct {
	position int
	body     study.Body
	id       string
}

func (j *judgement) fault(format string, args ...any) {
	if len(j.faults) < 20 {
		j.faults = append(j.faults, fmt.Sprintf(format, args...))
	}
}

// judge compares a store with the calls of its clients. Acknowledged calls are in it
// once and as told. Refused calls are not in it. Every other call is in it once as a
// whole, or not at all. The store has no events of other clients, and the order of the
// log agrees with the times of the calls.
func judge(h holding, calls []*call) *judgement {
	j := &judgement{holding: h, events: make(map[string]map[string][]placed), configs: make(map[string][]string)}
	known := make(map[string]map[string]*call)
	for _, c := range calls {
		if known[c.Study] == nil {
			known[c.Study] = make(map[string]*call)
		}
		for _, id := range c.requests() {
			known[c.Study][id] = c
		}
	}
	for name, log := range h {
		j.study(name, log, known[name])
	}
	byStudy := make(map[string][]*call)
	for _, c := range calls {
		j.call(c)
		byStudy[c.Study] = append(byStudy[c.Study], c)
	}
	for _, calls := range byStudy {
		j.order(calls)
	}
	j.handouts(calls)
	return j
}

// study checks one log by the rules of package study, and that each event was
// requested.
func (j *judgement) study(name string, log []study.Event, known map[string]*call) {
	s, err := study.Replay(slices.Values(log))
	if err == nil {
		err = s.Check()
	}
	if err != nil {
		j.fault("study %s: %v", name, err)
		return
	}
	for t := range s.All(0) {
		j.configs[name] = append(j.configs[name], t.Config.String())
	}
	j.events[name] = make(map[string][]placed)
	for i, e := range log {
		id := e.Request.ID
		if id == "" {
			switch e.Body.(type) {
			case study.Expired, study.Extended, study.Finished, study.Anchored:
				continue
			}
		}
		c := known[id]
		if c == nil {
			j.fault("study %s has an event %d (%T, request %q) that nobody asked for", name, i+1, e.Body, id)
			continue
		}
		j.events[name][c.Request] = append(j.events[name][c.Request], placed{i + 1, e.Body, id})
	}
}

func (j *judgement) call(c *call) {
	events := j.events[c.Study][c.Request]
	switch c.Ending {
	case acked:
		j.acked++
	case unknown:
		j.doubtful++
	case refused:
		if !c.Doubt && len(events) > 0 {
			j.fault("%s %s of client %d was refused (%s) and is in the store", c.Kind, c.Request, c.Client, c.Code)
		}
	}
	if c.Ending != acked && len(events) == 0 {
		return
	}
	switch c.Kind {
	case "create":
		if len(j.holding[c.Study]) == 0 {
			j.fault("study %s was acknowledged and is lost", c.Study)
		}
	case "ask":
		j.ask(c, events)
	case "tell":
		j.tell(c, events)
	case "report", "enqueue", "extend":
		j.once(c, events)
	case "many":
		j.many(c, events)
	}
}

// many checks a call of many. If it was acknowledged, all its trials are stored once,
// in order and with their numbers. Otherwise a prefix of them is stored.
func (j *judgement) many(c *call, events []placed) {
	if c.Ending == acked && len(events) != c.Count || len(events) > c.Count {
		j.fault("many %s has %d effects of %d (%s)", c.Request, len(events), c.Count, c.Ending)
		return
	}
	for i, e := range events {
		number := -1
		switch b := e.body.(type) {
		case study.Added:
			if number = b.Trial; queued(i) || !b.Outcome.Equal(c.outcome()) {
				j.fault("many %s has %+v in place %d", c.Request, b, i)
			}
		case study.Enqueued:
			if number = b.Trial; !queued(i) {
				j.fault("many %s has %+v in place %d", c.Request, b, i)
			}
		}
		if e.id != c.requests()[i] || c.Ending == acked && number != c.Given[i].Trial {
			j.fault("many %s was answered with %+v, in place %d is trial %d of request %s", c.Request, c.Given, i, number, e.id)
		}
	}
}

// ask checks that exactly the answer is in the log.
func (j *judgement) ask(c *call, events []placed) {
	var started []study.Started
	for _, e := range events {
		if b, ok := e.body.(study.Started); ok {
			started = append(started, b)
		}
	}
	if len(started) > c.Count || len(started) != len(events) {
		j.fault("ask %s for %d trials was given %d (%d events)", c.Request, c.Count, len(started), len(events))
	}
	if c.Ending != acked {
		return
	}
	if len(started) != len(c.Given) {
		j.fault("ask %s was answered with %d trials, the store has %d of them", c.Request, len(c.Given), len(started))
		return
	}
	for i, g := range c.Given {
		b := started[i]
		if b.Trial != g.Trial || b.Epoch != g.Epoch || j.config(c.Study, g.Trial) != g.Config {
			j.fault("ask %s was answered with %+v, the store has trial %d, epoch %d, %s", c.Request, g, b.Trial, b.Epoch, j.config(c.Study, b.Trial))
		}
	}
}

// config returns the stored configuration of a trial.
func (j *judgement) config(name string, trial int) string {
	if configs := j.configs[name]; trial < len(configs) {
		return configs[trial]
	}
	return ""
}

func (j *judgement) tell(c *call, events []placed) {
	if !j.once(c, events) {
		return
	}
	switch b := events[0].body.(type) {
	case study.Told:
		if c.Ending == acked && c.Late || b.Trial != c.Trial || !b.Outcome.Equal(c.outcome()) {
			j.fault("tell %s of trial %d (%g) is stored as %+v", c.Request, c.Trial, c.value(), b)
		}
	case study.ToldLate:
		if c.Ending == acked && !c.Late || b.Trial != c.Trial || !b.Outcome.Equal(c.outcome()) {
			j.fault("late tell %s of trial %d (%g) is stored as %+v", c.Request, c.Trial, c.value(), b)
		}
	default:
		j.fault("tell %s is stored as %T", c.Request, b)
	}
}

// once checks that a call has one effect.
func (j *judgement) once(c *call, events []placed) bool {
	effects := 0
	for _, e := range events {
		if _, ends := e.body.(study.Finished); !ends {
			effects++
		}
	}
	if effects != 1 {
		j.fault("%s %s of client %d on trial %d (%s) has %d effects", c.Kind, c.Request, c.Client, c.Trial, c.Ending, effects)
		return false
	}
	switch b := events[0].body.(type) {
	case study.Reported:
		if b.Trial != c.Trial || len(b.Reports) != 1 || b.Reports[0].Values[0].Value != c.value() {
			j.fault("report %s is stored as %+v", c.Request, b)
		}
	case study.Enqueued:
		if c.Ending == acked && b.Trial != c.Trial {
			j.fault("enqueue %s made trial %d, is stored as %d", c.Request, c.Trial, b.Trial)
		}
	}
	return true
}

// order checks the order of the log. A call acknowledged before another began comes
// before it.
func (j *judgement) order(calls []*call) {
	type moment struct {
		at    int64
		end   bool
		c     *call
		first int // position of its first event at its start, and of its last at its end
	}
	var moments []moment
	for _, c := range calls {
		events := j.events[c.Study][c.Request]
		if len(events) == 0 {
			continue
		}
		first, last := events[0].position, events[len(events)-1].position
		moments = append(moments, moment{c.Start, false, c, first})
		if c.Ending == acked && !c.Doubt { // a repeated call may have taken effect at its first attempt
			moments = append(moments, moment{c.End, true, c, last})
		}
	}
	sort.SliceStable(moments, func(a, b int) bool { return moments[a].at < moments[b].at })
	reached, by := 0, (*call)(nil)
	for _, m := range moments {
		switch {
		case m.end && m.first > reached:
			reached, by = m.first, m.c
		case !m.end && m.first < reached:
			j.fault("study %s: %s %s began after %s %s was acknowledged, but is before it in the log", m.c.Study, m.c.Kind, m.c.Request, by.Kind, by.Request)
		}
	}
}

// handouts checks that no lease was given to two clients.
func (j *judgement) handouts(calls []*call) {
	type lease struct {
		study        string
		trial, epoch int
	}
	holders := make(map[lease]string)
	for _, c := range calls {
		if c.Kind != "ask" {
			continue
		}
		for _, g := range c.Given {
			l := lease{c.Study, g.Trial, g.Epoch}
			if other, taken := holders[l]; taken && other != c.Request {
				j.fault("study %s: trial %d in epoch %d was given to %s and to %s", c.Study, g.Trial, g.Epoch, other, c.Request)
			}
			holders[l] = c.Request
		}
	}
}
