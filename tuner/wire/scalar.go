package wire

import (
	"math"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// encodeTime leaves the zero time out.
func encodeTime(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// encodeDuration leaves 0 out.
func encodeDuration(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}

// int32Of saturates, so that a number that is too large stays too large.
func int32Of(n int) int32 { return int32(min(max(n, math.MinInt32), math.MaxInt32)) }

// decoder reads parts of messages and keeps the first fault that it finds.
type decoder struct{ err error }

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

func (d *decoder) time(field string, t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	if err := t.CheckValid(); err != nil {
		d.fail(invalid(field, t.GetSeconds(), "must be a time of the years 1 to 9999"))
		return time.Time{}
	}
	return t.AsTime()
}

func (d *decoder) duration(field string, t *durationpb.Duration) time.Duration {
	if t == nil {
		return 0
	}
	if err := t.CheckValid(); err != nil {
		d.fail(invalid(field, t.GetSeconds(), "must be a duration with its parts of one sign"))
		return 0
	}
	return t.AsDuration() // saturates
}

// enum reads an enum whose numbers are those of the type of package study.
func enum[To ~uint8, From ~int32](d *decoder, field string, v From, most To) To {
	if v < 0 || v > From(most) {
		d.fail(invalid(field, v, "is unknown to this version"))
		return 0
	}
	return To(v)
}

func number[To ~int, From ~int32 | ~int64](d *decoder, field string, v From) To {
	n := To(v)
	if From(n) != v {
		d.fail(invalid(field, v, "is too large"))
	}
	return n
}

// orNil maps both ways to have no entries to nil.
func orNil[M ~map[K]V, K comparable, V any](m M) M {
	if len(m) == 0 {
		return nil
	}
	return m
}
