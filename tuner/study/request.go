package study

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"maps"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/bkbtuner/bkb/tuner/space"
)

// Request identifies the command that caused an event.
type Request struct {
	ID string // chosen by the client, unique within the study, empty for none
	// Fingerprint is a hash of the command's content, to distinguish a retry from a reuse.
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
	answer      int32  // as in Request
	caller      uint32 // in Study.callers, 0 if unknown
	late        bool   // a tell was kept as a late result
	keep        bool   // kept as long as the study
	any         bool
	several     bool   // more trials than first, which the study has
	first       handed // valid if any is set
}

// handed is a trial that a request made, started or concerned, with its epoch at that time.
type handed struct{ trial, epoch int32 }

func (s *Study) handedOut(key requestKey, r requestRecord) int {
	n := 0
	if r.any {
		n = 1
	}
	if r.several {
		n += len(s.several[key])
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
	case Paused, Resumed, Finished, Raised, Reported, Attributed:
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

// CheckSender refuses a command whose request id another caller has used. Nothing is
// refused if either caller is unknown, which is empty.
func (s *Study) CheckSender(caller string, cmd Command) error {
	id := requestID(cmd)
	if r, _ := s.recall(id); caller != "" && r.caller != 0 && r.caller != s.callers[caller] {
		return &RequestReusedError{ID: id, Others: true}
	}
	return nil
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
	if !known && e.Caller != "" {
		if s.callers[e.Caller] == 0 {
			s.callers[e.Caller] = uint32(len(s.callers) + 1)
		}
		r.caller = s.callers[e.Caller]
	}
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

// fingerprint is a hash of a command's content, without its request id and the next command.
// Every field is written with its length or in fixed size, so that contents with other field
// boundaries do not collide. A Start is part of the answer to its Ask and has the same fingerprint.
func fingerprint(c Command) uint64 {
	if s, ok := c.(Start); ok {
		c = s.Ask
	}
	d := digest{sha256.New()}
	d.text(reflect.TypeOf(c).Name())
	d.value(reflect.ValueOf(c))
	return binary.LittleEndian.Uint64(d.Sum(nil))
}

type digest struct{ hash.Hash }

func (d digest) uint(x uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], x)
	d.Write(b[:])
}

func (d digest) text(s string) {
	d.uint(uint64(len(s)))
	d.Write([]byte(s))
}

// value writes a part of a command. The values of a report and the metrics of an outcome have
// no order, and the epoch of a report has no meaning.
func (d digest) value(v reflect.Value) {
	switch x := v.Interface().(type) {
	case *space.Space:
		d.text(spaceText(x))
		return
	case space.Config:
		d.uint(uint64(x.Len()))
		for name, v := range x.All() {
			d.text(name)
			d.uint(uint64(v.Kind()))
			d.text(v.String())
		}
		return
	case Report:
		x.Epoch = 0
		v = reflect.ValueOf(x)
	case []NamedValue:
		v = reflect.ValueOf(slices.SortedStableFunc(slices.Values(x), func(a, b NamedValue) int { return cmp.Compare(a.Name, b.Name) }))
	case []Metric:
		v = reflect.ValueOf(slices.SortedStableFunc(slices.Values(x), func(a, b Metric) int { return cmp.Compare(a.Name, b.Name) }))
	case Attributes:
		d.uint(uint64(len(x)))
		for _, k := range slices.Sorted(maps.Keys(x)) {
			d.text(k)
			d.text(x[k])
		}
		return
	}
	switch {
	case v.Kind() == reflect.Pointer && v.IsNil():
		d.uint(0)
	case v.Kind() == reflect.Pointer:
		d.uint(1)
		d.value(v.Elem())
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; name != "RequestID" && name != "Next" {
				d.value(v.Field(i))
			}
		}
	case v.Kind() == reflect.Slice:
		d.uint(uint64(v.Len()))
		for i := range v.Len() {
			d.value(v.Index(i))
		}
	case v.Kind() == reflect.String:
		d.text(v.String())
	case v.Kind() == reflect.Bool && v.Bool():
		d.uint(1)
	case v.Kind() == reflect.Bool:
		d.uint(0)
	case v.CanInt():
		d.uint(uint64(v.Int()))
	case v.CanUint():
		d.uint(v.Uint())
	case v.CanFloat() && math.IsNaN(v.Float()):
		d.uint(math.Float64bits(math.NaN())) // one for all
	case v.CanFloat():
		d.uint(math.Float64bits(v.Float()))
	default:
		panic("study: precondition: a command with a " + v.Type().String())
	}
}
