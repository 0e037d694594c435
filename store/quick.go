package store

import (
	"encoding/binary"
	"math"
	"unicode/utf8"

	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// quick decodes the common kinds of events without a protobuf message. It accepts fewer
// payloads than the decoder of messages, which gets those that quick refuses. Where
// quick accepts a payload, both return the same event.
//
// In both decoders a payload must be in its shortest form. No field is repeated, no
// field that could be left out is zero, and no varint is longer than necessary. Fields
// may come in any order.
type quick struct {
	names   interner
	entries []space.Assignment // reused
	texts   []string           // reused, as are the fields below
	values  []string
	reports []study.Report
	metrics []study.Metric
}

// Types on the wire.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
)

// event decodes a payload.
func (q *quick) event(payload []byte) (e study.Event, ok bool) {
	p := parts{rest: payload}
	e.Time = timeOf(0)
	for p.next() {
		switch p.tag() {
		case 1<<3 | wireFixed64:
			e.Time = timeOf(int64(p.fixed()))
		case 2<<3 | wireBytes:
			e.Request.ID = p.text()
		case 3<<3 | wireFixed64:
			e.Request.Fingerprint = p.fixed()
		case 18<<3 | wireVarint:
			e.Request.Answer = p.int()
		case 19<<3 | wireBytes:
			e.Caller = q.name(&p, p.filled())
		case 4<<3 | wireBytes:
			q.body(&p, &e, q.started(&p))
		case 5<<3 | wireBytes:
			q.body(&p, &e, q.extended(&p))
		case 6<<3 | wireBytes:
			q.body(&p, &e, q.reported(&p))
		case 7<<3 | wireBytes:
			q.body(&p, &e, q.expired(&p))
		case 8<<3 | wireBytes:
			q.body(&p, &e, q.told(&p))
		case 11<<3 | wireBytes:
			q.body(&p, &e, q.added(&p))
		default:
			p.refuse()
		}
	}
	return e, !p.refused && e.Body != nil
}

func (q *quick) body(p *parts, e *study.Event, b study.Body) {
	if e.Body != nil {
		p.refuse()
	}
	e.Body = b
}

func (q *quick) started(p *parts) (s study.Started) {
	m := p.message()
	s.Deadline = timeOf(0)
	for m.next() {
		switch m.tag() {
		case 1<<3 | wireVarint:
			s.Trial = m.int()
		case 2<<3 | wireVarint:
			s.Epoch = m.int()
		case 3<<3 | wireBytes:
			s.Worker = q.name(&m, m.filled())
		case 4<<3 | wireFixed64:
			s.Deadline = timeOf(int64(m.fixed()))
		case 5<<3 | wireBytes:
			s.Suggestion = q.suggestion(&m)
		default:
			m.refuse()
		}
	}
	p.take(&m)
	return s
}

func (q *quick) suggestion(p *parts) *study.Suggestion {
	m, s := p.message(), new(study.Suggestion)
	var columns [4][]byte
	for m.next() {
		switch tag := m.tag(); tag {
		case 1<<3 | wireBytes:
			s.Config = q.config(&m)
		case 2<<3 | wireFixed64:
			s.Seed = m.fixed()
		case 3<<3 | wireVarint:
			s.Seen = study.Position(m.varint())
		case 4<<3 | wireBytes:
			s.Phase = q.name(&m, m.filled())
		case 5<<3 | wireBytes, 6<<3 | wireBytes, 7<<3 | wireBytes, 8<<3 | wireBytes:
			columns[tag>>3-5] = m.column()
		default:
			m.refuse()
		}
	}
	p.take(&m)
	room := 0
	for _, c := range columns {
		room += len(c) / 8
	}
	all := make([]float64, 0, room)
	for i, to := range [...]*[]float64{&s.Mean, &s.StdDev, &s.Bound, &s.Beta} {
		from := len(all)
		if all = appendFloats(all, columns[i]); len(all) > from {
			*to = all[from:len(all):len(all)]
		}
	}
	return s
}

func (q *quick) extended(p *parts) (x study.Extended) {
	m := p.message()
	x.Deadline = timeOf(0)
	for m.next() {
		switch m.tag() {
		case 1<<3 | wireVarint:
			x.Trial = m.int()
		case 2<<3 | wireVarint:
			x.Epoch = m.int()
		case 3<<3 | wireFixed64:
			x.Deadline = timeOf(int64(m.fixed()))
		default:
			m.refuse()
		}
	}
	p.take(&m)
	return x
}

func (q *quick) expired(p *parts) (x study.Expired) {
	m := p.message()
	for m.next() {
		switch m.tag() {
		case 1<<3 | wireVarint:
			x.Trial = m.int()
		case 2<<3 | wireVarint:
			x.Epoch = m.int()
		case 3<<3 | wireVarint:
			x.Requeued = m.true()
		default:
			m.refuse()
		}
	}
	p.take(&m)
	return x
}

func (q *quick) reported(p *parts) (r study.Reported) {
	m := p.message()
	q.reports = q.reports[:0]
	for m.next() {
		switch m.tag() {
		case 1<<3 | wireVarint:
			r.Trial = m.int()
		case 2<<3 | wireVarint:
			r.Epoch = m.int()
		case 3<<3 | wireBytes:
			m.again()
			q.reports = append(q.reports, q.report(&m))
		default:
			m.refuse()
		}
	}
	p.take(&m)
	r.Reports = copied(q.reports)
	return r
}

func (q *quick) report(p *parts) (r study.Report) {
	m := p.message()
	q.texts = q.texts[:0]
	var values []byte
	for m.next() {
		switch m.tag() {
		case 1<<3 | wireVarint:
			r.Epoch = m.int()
		case 2<<3 | wireVarint:
			r.Step = m.signed()
		case 3<<3 | wireBytes:
			m.again()
			q.texts = append(q.texts, q.name(&m, m.bytes()))
		case 4<<3 | wireBytes:
			values = m.column()
		default:
			m.refuse()
		}
	}
	if len(values) != 8*len(q.texts) {
		m.refuse()
	}
	p.take(&m)
	if p.refused || len(values) == 0 {
		return r
	}
	r.Values = make([]study.NamedValue, len(q.texts))
	for i, name := range q.texts {
		r.Values[i] = study.NamedValue{Name: name, Value: floatAt(values, i)}
	}
	return r
}

func (q *quick) told(p *parts) (t study.Told) {
	m, known := p.message(), false
	for m.next() {
		switch m.tag() {
		case 1<<3 | wireVarint:
			t.Trial = m.int()
		case 2<<3 | wireVarint:
			t.Epoch = m.int()
		case 3<<3 | wireBytes:
			t.Outcome, known = q.outcome(&m), true
		default:
			m.refuse()
		}
	}
	if !known {
		m.refuse()
	}
	p.take(&m)
	return t
}

func (q *quick) added(p *parts) (a study.Added) {
	m, known := p.message(), false
	q.reports = q.reports[:0]
	for m.next() {
		switch m.tag() {
		case 1<<3 | wireVarint:
			a.Trial = m.int()
		case 2<<3 | wireBytes:
			a.Config = q.config(&m)
		case 3<<3 | wireBytes:
			m.again()
			q.reports = append(q.reports, q.report(&m))
		case 4<<3 | wireBytes:
			a.Outcome, known = q.outcome(&m), true
		default: // also attributes
			m.refuse()
		}
	}
	if !known {
		m.refuse()
	}
	p.take(&m)
	a.Reports = copied(q.reports)
	return a
}

func (q *quick) outcome(p *parts) (o study.Outcome) {
	m := p.message()
	q.metrics = q.metrics[:0]
	for m.next() {
		switch m.tag() {
		case 1<<3 | wireVarint:
			o.State = study.TrialState(m.upTo(uint64(study.Pruned)))
		case 2<<3 | wireVarint:
			o.Reason = study.FailReason(m.upTo(uint64(study.FailedNaN)))
		case 3<<3 | wireBytes:
			o.Message = m.text()
		case 4<<3 | wireBytes:
			m.again()
			q.metrics = append(q.metrics, q.metric(&m))
		case 5<<3 | wireFixed64:
			o.Cost = canonical(math.Float64frombits(m.fixed()))
		default: // also attributes
			m.refuse()
		}
	}
	if o.State == 0 {
		m.refuse()
	}
	p.take(&m)
	o.Metrics = copied(q.metrics)
	return o
}

func (q *quick) metric(p *parts) (o study.Metric) {
	m := p.message()
	for m.next() {
		switch m.tag() {
		case 1<<3 | wireBytes:
			o.Name = q.name(&m, m.filled())
		case 2<<3 | wireBytes:
			column := m.column()
			o.Values = appendFloats(make([]float64, 0, len(column)/8), column)
		case 3<<3 | wireFixed64:
			o.StdErr = canonical(math.Float64frombits(m.fixed()))
		case 4<<3 | wireVarint:
			o.HasStdErr = m.true()
		default:
			m.refuse()
		}
	}
	p.take(&m)
	return o
}

// config reads a configuration. Its columns may come in any order.
func (q *quick) config(p *parts) space.Config {
	m := p.message()
	var kinds, floats, ints []byte
	q.texts, q.values = q.texts[:0], q.values[:0]
	for m.next() {
		switch m.tag() {
		case 1<<3 | wireBytes:
			m.again()
			q.texts = append(q.texts, q.name(&m, m.bytes()))
		case 2<<3 | wireBytes:
			kinds = m.filled()
		case 3<<3 | wireBytes:
			floats = m.column()
		case 4<<3 | wireBytes:
			ints = m.filled()
		case 5<<3 | wireBytes:
			m.again()
			q.values = append(q.values, q.name(&m, m.bytes()))
		default:
			m.refuse()
		}
	}
	if len(kinds) != len(q.texts) || !ascending(q.texts) {
		m.refuse()
	}
	q.entries = q.entries[:0]
	integers, values := parts{rest: ints}, q.values
	for i := 0; i < len(kinds) && !m.refused; i++ {
		var v space.Value
		switch kind := kinds[i]; {
		case kind == kindFloat && len(floats) > 0:
			v, floats = space.Float(floatAt(floats, 0)), floats[8:]
		case kind == kindInt && len(integers.rest) > 0:
			v = space.Int(zigzag(integers.uvarint()))
		case kind == kindString && len(values) > 0:
			v, values = space.String(values[0]), values[1:]
		case kind == kindFalse || kind == kindTrue:
			v = space.Bool(kind == kindTrue)
		default:
			m.refuse()
		}
		q.entries = append(q.entries, space.Assignment{Name: q.texts[i], Value: v})
	}
	if len(floats)+len(integers.rest)+len(values) > 0 || integers.refused {
		m.refuse()
	}
	p.take(&m)
	if m.refused {
		return space.Config{}
	}
	return space.NewConfig(q.entries...)
}

// name returns a text that is likely to occur again, and interns it.
func (q *quick) name(p *parts, b []byte) string {
	if s, ok := q.names[string(b)]; ok {
		return s
	}
	if !utf8.Valid(b) {
		p.refuse()
		return ""
	}
	return q.names.intern(string(b))
}

// parts are the unread fields of a message. After a refusal there are none.
type parts struct {
	rest    []byte
	field   uint64 // tag of the field being read
	seen    uint64 // bit n for field n
	twice   bool   // the field occurred before, and again was not called
	refused bool
}

func (p *parts) refuse() { p.refused, p.rest = true, nil }

// next moves to the next field. The caller must read its value before the next call.
func (p *parts) next() bool {
	if p.twice {
		p.refuse()
	}
	if p.refused || len(p.rest) == 0 {
		return false
	}
	p.field = p.uvarint()
	n := p.field >> 3
	if n == 0 || n >= 64 {
		p.refuse()
		return false
	}
	p.twice, p.seen = p.seen>>n&1 == 1, p.seen|1<<n
	return !p.refused
}

// tag returns the number of the field and its type.
func (p *parts) tag() uint64 { return p.field }

// again allows a field that occurred before.
func (p *parts) again() { p.twice = false }

// uvarint reads a number in its shortest form.
func (p *parts) uvarint() uint64 {
	v, n := binary.Uvarint(p.rest)
	if n <= 0 || n > 1 && p.rest[n-1] == 0 {
		p.refuse()
		return 0
	}
	p.rest = p.rest[n:]
	return v
}

// varint reads a number that is not 0.
func (p *parts) varint() uint64 {
	v := p.uvarint()
	if v == 0 {
		p.refuse()
	}
	return v
}

func zigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

func (p *parts) signed() int64 { return zigzag(p.varint()) }

func (p *parts) int() int {
	n := p.signed()
	if int64(int(n)) != n {
		p.refuse()
	}
	return int(n)
}

// upTo reads a number from 1 to most.
func (p *parts) upTo(most uint64) uint64 {
	v := p.varint()
	if v > most {
		p.refuse()
	}
	return min(v, most)
}

func (p *parts) true() bool { return p.upTo(1) == 1 }

// fixed reads eight bytes that are not all 0.
func (p *parts) fixed() uint64 {
	if len(p.rest) < 8 {
		p.refuse()
		return 0
	}
	v := binary.LittleEndian.Uint64(p.rest)
	p.rest = p.rest[8:]
	if v == 0 {
		p.refuse()
	}
	return v
}

// bytes reads a part of the payload.
func (p *parts) bytes() []byte {
	n := p.uvarint()
	if n > uint64(len(p.rest)) {
		p.refuse()
		return nil
	}
	b := p.rest[:n]
	p.rest = p.rest[n:]
	return b
}

// filled reads a part that is not empty.
func (p *parts) filled() []byte {
	b := p.bytes()
	if len(b) == 0 {
		p.refuse()
	}
	return b
}

// column reads a part that consists of whole floats.
func (p *parts) column() []byte {
	b := p.filled()
	if len(b)%8 != 0 {
		p.refuse()
		return nil
	}
	return b
}

// text reads a text that is not empty.
func (p *parts) text() string {
	b := p.filled()
	if !utf8.Valid(b) {
		p.refuse()
	}
	return string(b)
}

// message begins to read a part that is a message, and take ends it.
func (p *parts) message() parts { return parts{rest: p.bytes(), refused: p.refused} }

func (p *parts) take(m *parts) {
	if m.refused {
		p.refuse()
	}
}

func floatAt(column []byte, i int) float64 {
	return canonical(math.Float64frombits(binary.LittleEndian.Uint64(column[8*i:])))
}

func appendFloats(dst []float64, column []byte) []float64 {
	for i := range len(column) / 8 {
		dst = append(dst, floatAt(column, i))
	}
	return dst
}

// copied returns a copy without spare capacity, nil if xs is empty.
func copied[T any](xs []T) []T {
	if len(xs) == 0 {
		return nil
	}
	out := make([]T, len(xs))
	copy(out, xs)
	return out
}
