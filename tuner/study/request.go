package study

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/bkbtuner/bkb/tuner/space"
)

// Request identifies the command that caused an event.
type Request struct {
	ID string // chosen by the client, unique within the study, empty for none
	// Fingerprint is a hash of the command's content, to distinguish a retry from a
	// reuse.
	Fingerprint uint64
	// Answer is the number of trials in the whole answer to an ask, whose events may be
	// committed one by one. It is 0 for other requests.
	Answer int
}

// RequestRetention is the least time for which the ids of requests that neither made,
// handed out nor ended a trial are kept.
const RequestRetention = 24 * time.Hour

// requestKey represents a request id in memory by half of its SHA-256.
type requestKey [16]byte

func keyOf(id string) (k requestKey) {
	sum := sha256.Sum256([]byte(id))
	copy(k[:], sum[:])
	return k
}

// requestRecord holds the effect of a request. It has no pointers, because there are as
// many records as events and the garbage collector would visit them.
type requestRecord struct {
	fingerprint uint64
	answer      int32 // as in Request
	late        bool  // a tell was kept as a late result
	keep        bool  // kept as long as the study
	any         bool
	several     bool   // more trials than first, which the study has
	first       handed // valid if any is set
}

// handed is a trial that a request made, started or concerned, with its epoch at that
// time.
type handed struct{ trial, epoch int32 }

// handedOut returns the number of trials in an answer.
func (s *Study) handedOut(id string, r requestRecord) int {
	n := 0
	if r.any {
		n = 1
	}
	if r.several {
		n += len(s.several[keyOf(id)])
	}
	return n
}

// answered repeats the answer to the request with an id.
func (s *Study) answered(id string, r requestRecord) Reply {
	reply := Reply{Late: r.late}
	if r.any {
		reply.hand(int(r.first.trial), int(r.first.epoch))
	}
	if r.several {
		for _, h := range s.several[keyOf(id)] {
			reply.hand(int(h.trial), int(h.epoch))
		}
	}
	return reply
}

// hand adds a trial to a record before the record is stored.
func (s *Study) hand(key requestKey, r *requestRecord, trial, epoch int) {
	h := handed{int32(trial), int32(epoch)}
	switch more := s.several[key]; {
	case !r.any:
		r.any, r.first = true, h
	case r.first.trial != h.trial && !slices.ContainsFunc(more, func(m handed) bool { return m.trial == h.trial }):
		r.several = true
		s.several[key] = append(more, h)
	}
}

// requestAge is an entry in the list of requests that may be forgotten.
type requestAge struct {
	key requestKey
	at  time.Time
}

// forgettable tells whether a request's id may be dropped after RequestRetention. That
// is so if it neither made, handed out nor ended a trial.
func forgettable(b Body) bool {
	switch b.(type) {
	case Paused, Resumed, Finished, Reported, Attributed:
		return true
	default:
		return false
	}
}

// recall returns the record of the request with an id. known is false if there is none.
func (s *Study) recall(id string) (r requestRecord, known bool) {
	if id == "" {
		return requestRecord{}, false
	}
	return s.recallKey(keyOf(id))
}

func (s *Study) recallKey(key requestKey) (r requestRecord, known bool) {
	r, known = s.requests[key]
	return r, known
}

// remember records the request of an event that was just applied.
func (s *Study) remember(e Event) {
	for len(s.aging) > 0 && e.Time.Sub(s.aging[0].at) > RequestRetention {
		if key := s.aging[0].key; !s.requests[key].keep {
			delete(s.requests, key)
			delete(s.several, key)
		}
		s.aging = s.aging[1:]
	}
	if e.Request.ID == "" {
		return
	}
	key := keyOf(e.Request.ID)
	r, known := s.recallKey(key)
	r.fingerprint, r.answer = e.Request.Fingerprint, int32(e.Request.Answer)
	if late, ok := e.Body.(ToldLate); ok {
		r.late = true
		s.hand(key, &r, late.Trial, late.Epoch)
	} else if n, ok := e.Trial(); ok {
		s.hand(key, &r, n, s.trials.at(n).Epoch)
	}
	r.keep = r.keep || !forgettable(e.Body)
	s.requests[key] = r
	if !known && !r.keep {
		s.aging = append(s.aging, requestAge{key, e.Time})
	}
}

// digest computes a fingerprint of a command's content. Every field is written with its
// length or in fixed size, so that contents with other field boundaries do not collide.
type digest struct{ h hash.Hash }

func fingerprint(c identified) uint64 {
	d := &digest{sha256.New()}
	c.digest(d)
	return binary.LittleEndian.Uint64(d.h.Sum(nil))
}

func (d *digest) uint(x uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], x)
	d.h.Write(b[:])
}

func (d *digest) int(n int)                { d.uint(uint64(n)) }
func (d *digest) float(x float64)          { d.uint(canonicalBits(x)) }
func (d *digest) text(s string)            { d.int(len(s)); d.h.Write([]byte(s)) }
func (d *digest) duration(t time.Duration) { d.uint(uint64(t)) }

func (d *digest) bool(b bool) {
	if b {
		d.uint(1)
	} else {
		d.uint(0)
	}
}

func (d *digest) attributes(a Attributes) {
	d.int(len(a))
	for _, k := range slices.Sorted(maps.Keys(a)) {
		d.text(k)
		d.text(a[k])
	}
}

func (d *digest) config(c space.Config) {
	d.int(c.Len())
	for name, v := range c.All() {
		d.text(name)
		d.int(int(v.Kind()))
		d.text(v.String())
	}
}

// The values of a report and the metrics of an outcome have no order.
func (d *digest) reports(reports []Report) {
	d.int(len(reports))
	for _, r := range reports {
		d.uint(uint64(r.Step))
		d.int(len(r.Values))
		for _, v := range slices.SortedStableFunc(slices.Values(r.Values), func(a, b NamedValue) int { return cmp.Compare(a.Name, b.Name) }) {
			d.text(v.Name)
			d.float(v.Value)
		}
	}
}

func (d *digest) outcome(o Outcome) {
	d.int(int(o.State))
	d.int(int(o.Reason))
	d.text(o.Message)
	d.int(len(o.Metrics))
	for _, m := range slices.SortedStableFunc(slices.Values(o.Metrics), func(a, b Metric) int { return cmp.Compare(a.Name, b.Name) }) {
		d.text(m.Name)
		d.int(len(m.Values))
		for _, v := range m.Values {
			d.float(v)
		}
		d.bool(m.HasStdErr)
		d.float(m.StdErr)
	}
	d.float(o.Cost)
	d.attributes(o.Attributes)
}

// canonicalBits maps every NaN to one.
func canonicalBits(x float64) uint64 {
	if x != x {
		x = math.NaN()
	}
	return math.Float64bits(x)
}

func (c Create) digest(d *digest) {
	d.text("create")
	d.text(spaceText(c.Spec.Space))
	d.int(len(c.Spec.Objectives))
	for _, o := range c.Spec.Objectives {
		d.text(o.Name)
		d.int(int(o.Direction))
	}
	d.int(c.Spec.MaxTrials)
	d.duration(c.Spec.Timeout)
	d.float(c.Spec.MaxCost)
	d.duration(c.Spec.Lease)
	d.int(c.Spec.MaxRetries)
	d.uint(c.Spec.Seed)
	for _, p := range []Component{c.Spec.Proposer, c.Spec.Pruner} {
		d.text(p.Name)
		d.text(p.Options)
	}
	d.attributes(c.Spec.Attributes)
}

func (c Pause) digest(d *digest)  { d.text("pause") }
func (c Resume) digest(d *digest) { d.text("resume") }

func (c Finish) digest(d *digest) {
	d.text("finish")
	d.int(int(c.Reason))
	d.text(c.Detail)
}

func (c Enqueue) digest(d *digest) {
	d.text("enqueue")
	d.config(c.Config)
	d.attributes(c.Attributes)
}

func (c Add) digest(d *digest) {
	d.text("add")
	d.config(c.Config)
	d.reports(c.Reports)
	d.outcome(c.Outcome)
	d.attributes(c.Attributes)
}

func (c Ask) digest(d *digest) {
	d.text("ask")
	d.int(c.Count)
	d.text(c.Worker)
	d.duration(c.Lease)
	d.bool(c.New)
}

// A Start is part of the answer to its Ask and has the same fingerprint.
func (c Start) digest(d *digest) { c.Ask.digest(d) }

func (c ReportValues) digest(d *digest) {
	d.text("report")
	d.int(c.Trial)
	d.int(c.Epoch)
	d.reports(c.Reports)
}

func (c Tell) digest(d *digest) {
	d.text("tell")
	d.int(c.Trial)
	d.int(c.Epoch)
	d.outcome(c.Outcome)
}

func (c SetAttributes) digest(d *digest) {
	d.text("attributes")
	d.int(c.Trial)
	d.attributes(c.Attributes)
}
