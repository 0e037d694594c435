package view

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/verify"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
)

// summaryVersion begins the data of a summary. A summary of another version counts as
// missing.
const summaryVersion = 2

// Summarize returns the data of a [store.Summary], from which with the first event of the
// log a list shows the study. It is nil for a study whose attributes do not fit. The same
// log always gives the same data.
func Summarize(s *study.Study, d *Digest) []byte {
	status, how := s.Status()
	b := []byte{summaryVersion, byte(status), byte(how.Reason)}
	b = appendText(b, how.Detail)
	b = binary.AppendUvarint(b, uint64(s.Trials()))
	b = binary.AppendUvarint(b, uint64(s.Added()))
	b = binary.AppendUvarint(b, uint64(s.Counted()))
	for state := study.Queued; state <= study.Pruned; state++ {
		b = binary.AppendUvarint(b, uint64(s.Count(state)))
	}
	b = appendNumber(b, s.Cost())
	b = binary.AppendUvarint(b, uint64(s.Spec().MaxTrials))
	b = binary.AppendUvarint(b, uint64(s.Spec().Timeout))
	b = appendNumber(b, s.Spec().MaxCost)
	attributes := s.Attributes()
	b = binary.AppendUvarint(b, uint64(len(attributes)))
	for _, key := range slices.Sorted(maps.Keys(attributes)) {
		b = appendText(appendText(b, key), attributes[key])
		if len(b) > store.MaxSummaryBytes {
			return nil
		}
	}
	b = binary.AppendUvarint(b, uint64(len(d.best.Values)))
	b = binary.AppendUvarint(b, uint64(d.best.Trial))
	for _, v := range d.best.Values {
		b = appendNumber(b, v)
	}
	b = appendTime(b, d.told)
	b = binary.AppendVarint(b, d.recent.minute)
	for i, n := range d.recent.counts {
		if n > 0 {
			b = append(b, byte(i))
			b = binary.AppendUvarint(b, uint64(n))
		}
	}
	if len(b) > store.MaxSummaryBytes {
		return nil
	}
	return b
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

func appendNumber(b []byte, v float64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
}

// noTime marks the zero time, as in a record.
const noTime = math.MinInt64

func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return binary.AppendVarint(b, noTime)
	}
	return binary.AppendVarint(b, t.UnixNano())
}

// summaryReader reads the data of a summary from its beginning.
type summaryReader struct {
	rest []byte
	bad  bool // the data end too early
}

// take returns the next n bytes, or zeros if there are fewer.
func (r *summaryReader) take(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.bad, r.rest = true, nil
		return make([]byte, min(n, 8))
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *summaryReader) uint() uint64 {
	v, n := binary.Uvarint(r.rest)
	r.skip(n)
	return v
}

func (r *summaryReader) int() int64 {
	v, n := binary.Varint(r.rest)
	r.skip(n)
	return v
}

// skip passes over a number of n bytes. n is 0 or less if there is none.
func (r *summaryReader) skip(n int) {
	r.bad = r.bad || n <= 0
	r.rest = r.rest[max(n, 0):]
}

func (r *summaryReader) count() int { return int(min(r.uint(), math.MaxInt32)) }

func (r *summaryReader) text() string { return string(r.take(r.uint())) }

func (r *summaryReader) number() float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64(r.take(8)))
}

func (r *summaryReader) time() time.Time {
	if ns := r.int(); ns != noTime {
		return time.Unix(0, ns).UTC()
	}
	return time.Time{}
}

// FromSummary returns the study of a summary. ok is false if another version of this program
// made the summary.
func FromSummary(sum store.Summary) (g Listed, ok bool) {
	created, isCreated := sum.Created.Body.(study.Created)
	if !isCreated || len(sum.Data) < 3 || sum.Data[0] != summaryVersion {
		return Listed{}, false
	}
	var d Digest
	d.Observe(sum.Created)
	v := tuner.Study{
		ID: sum.Study, Spec: created.Spec, Status: study.Status(sum.Data[1]), Created: sum.Created.Time, Position: sum.Position,
		Counts: make(map[study.TrialState]int),
	}
	r := &summaryReader{rest: sum.Data[3:]}
	v.Finished = study.Finished{Reason: study.FinishReason(sum.Data[2]), Detail: r.text()}
	v.Trials, v.Added, v.Counted = r.count(), r.count(), r.count()
	for state := study.Queued; state <= study.Pruned; state++ {
		if n := r.count(); n > 0 {
			v.Counts[state] = n
		}
	}
	v.Cost = r.number()
	v.Spec.MaxTrials, v.Spec.Timeout, v.Spec.MaxCost = r.count(), time.Duration(r.uint()), r.number()
	for range r.count() {
		if r.bad {
			break
		}
		if v.Attributes == nil {
			v.Attributes = make(study.Attributes)
		}
		key := r.text()
		v.Attributes[key] = r.text()
	}
	n := r.count()
	d.best.Trial = r.count()
	for range n {
		if r.bad {
			break
		}
		d.best.Values = append(d.best.Values, r.number())
	}
	d.told, d.recent.minute = r.time(), r.int()
	for len(r.rest) > 0 {
		i := int(r.take(1)[0])
		r.bad = r.bad || i >= len(d.recent.counts)
		d.recent.counts[i%len(d.recent.counts)] = r.count()
	}
	return Listed{v, d}, !r.bad
}

// CheckSummary returns a new [verify.Summarizer], for the check of a store.
func CheckSummary() verify.Summarizer { return new(summaryCheck) }

// summaryCheck follows the log of a study.
type summaryCheck struct{ digest Digest }

// Observe implements [verify.Summarizer].
func (c *summaryCheck) Observe(e study.Event) { c.digest.Observe(e) }

// Compare implements [verify.Summarizer]. Data of another version of this program count as
// missing.
func (c *summaryCheck) Compare(s *study.Study, data []byte) error {
	if len(data) == 0 || data[0] != summaryVersion || bytes.Equal(data, Summarize(s, &c.digest)) {
		return nil
	}
	return errSummary
}

var errSummary = errors.New("its summary differs from its log, so lists show it wrong until its next change")
