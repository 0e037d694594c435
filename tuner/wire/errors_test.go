package wire_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/wire"
)

var disk = &fs.PathError{Op: "write", Path: "/var/lib/secret/tuner.db", Err: errors.New("no space left on device")}

// localErrors are errors of a service. The messages of private ones must not be sent.
var localErrors = []struct {
	err     error
	code    tuner.Code
	private bool
}{
	{&study.InvalidError{Field: "count", Value: "0", Rule: "must be 1 to 1000", Remedy: "ask for fewer"}, tuner.Invalid, false},
	{&space.Error{Parameter: "lr", Field: "low", Value: "0", Rule: "must be positive"}, tuner.Invalid, false},
	{errors.Join(&space.Error{Parameter: "a", Rule: "x"}, &space.Error{Parameter: "b", Rule: "y"}), tuner.Invalid, false},
	{&study.ReportConflictError{Trial: 1, Step: 2, Metric: "loss", Stored: math.NaN()}, tuner.Invalid, false},
	{&study.RequestReusedError{ID: "x"}, tuner.Invalid, false},
	{fmt.Errorf("%w: a name", store.ErrInvalid), tuner.Invalid, false},
	{&store.NotFoundError{Name: "s"}, tuner.NotFound, false},
	{&study.TrialNotFoundError{Trial: 7, Trials: 3}, tuner.NotFound, false},
	{&store.ExistsError{Name: "s", Study: 4}, tuner.AlreadyExists, false},
	{&study.FinishedError{Reason: study.FinishedUser, Detail: "ß\n"}, tuner.Finished, false},
	{study.ErrPaused, tuner.Paused, false},
	{&study.NoneLeftError{Trials: 3, Running: 1, NextExpiry: time.Now().Add(time.Hour)}, tuner.NoneLeft, false},
	{&study.TrialStateError{Trial: 1, State: study.Queued, Rule: "it is not running"}, tuner.TrialState, false},
	{&study.LeaseError{Trial: 1, Epoch: 1, Current: 2, Worker: "w"}, tuner.LeaseLost, false},
	{&study.AlreadyToldError{Trial: 1, Stored: study.Outcome{State: study.Failed, Reason: study.FailedCrash, Message: "out of memory"}}, tuner.AlreadyTold, false},
	{&store.LimitError{What: "record", Size: 2, Limit: 1}, tuner.Exhausted, false},
	{fmt.Errorf("commit: %w: %w", store.ErrFull, disk), tuner.Exhausted, true},
	{fmt.Errorf("commit: %w: %w", store.ErrUnknownOutcome, disk), tuner.Unknown, true},
	{fmt.Errorf("%w: %w", store.ErrClosed, disk), tuner.Unavailable, true},
	{fmt.Errorf("read: %w: %w", &store.CorruptError{Study: 1, Position: 2, Reason: "checksum"}, disk), tuner.Damaged, true},
	{&store.NewerFormatError{Study: 1, Position: 2, Format: 9}, tuner.Damaged, true},
	{context.Canceled, tuner.Cancelled, false},
	{context.DeadlineExceeded, tuner.Deadline, false},
	{fmt.Errorf("backup: %w", tuner.ErrUnsupported), tuner.Unsupported, false},
	{&tuner.RemoteError{Code: tuner.Denied, Message: "no"}, tuner.Denied, false},
	{&tuner.CommandError{Index: 7, Err: &study.InvalidError{Field: "x", Value: "2", Rule: "must be at most 1"}}, tuner.Invalid, false},
	{disk, tuner.Internal, true},
	{&tuner.RemoteError{Code: "SOMETHING_NEW", Message: disk.Error()}, tuner.Internal, true},
}

// read returns the error that a client makes from the error of a gRPC call.
func read(err error) error {
	if a, ok := wire.ReadError(err); ok {
		return a.Whole()
	}
	return err
}

// Code and message survive, private parts do not, and every code is tested.
func TestErrors(t *testing.T) {
	seen := make(map[tuner.Code]bool)
	for _, c := range localErrors {
		seen[c.code] = true
		st, hidden := wire.Status(c.err, "e1d")
		got := read(st.Err())
		if tuner.CodeOf(got) != c.code {
			t.Errorf("%v: the code came back as %q, want %q", c.err, tuner.CodeOf(got), c.code)
		}
		text := st.Proto().String() + got.Error()
		if c.private {
			if strings.Contains(text, "secret") || strings.Contains(text, "device") {
				t.Errorf("%v: the caller reads internals: %s", c.err, text)
			}
			if hidden != strings.Contains(got.Error(), "e1d") {
				t.Errorf("%v: hidden is %t in %q", c.err, hidden, got)
			}
		} else if hidden || got.Error() != c.err.Error() {
			t.Errorf("the message %q came back as %q", c.err, got)
		}
	}
	for _, code := range []tuner.Code{
		tuner.Invalid, tuner.NotFound, tuner.AlreadyExists, tuner.Finished, tuner.Paused, tuner.NoneLeft, tuner.TrialState,
		tuner.LeaseLost, tuner.AlreadyTold, tuner.Denied, tuner.Exhausted, tuner.Unavailable, tuner.Unknown, tuner.Cancelled, tuner.Deadline,
		tuner.Damaged, tuner.Unsupported, tuner.Internal,
	} {
		if !seen[code] {
			t.Errorf("no error of the code %s was tried", code)
		}
	}
	if st, _ := wire.Status(nil, ""); st.Code() != codes.OK || read(st.Err()) != nil {
		t.Errorf("no error became %v", st)
	}
}

func TestErrorDetails(t *testing.T) {
	detail := func(err error) (out []any) {
		st, _ := wire.Status(err, "")
		return st.Details()[1:]
	}
	stored := study.Outcome{State: study.Completed, Metrics: []study.Metric{{Name: "loss", Values: []float64{math.Inf(1)}}}}
	st, _ := wire.Status(&study.AlreadyToldError{Trial: 1, Stored: stored}, "")
	a, ok := wire.ReadError(st.Err())
	if !ok || !a.ByService || a.Err.Stored == nil || !a.Err.Stored.Equal(stored) {
		t.Errorf("the stored outcome came back as %+v", a.Err)
	}
	large := study.Outcome{State: study.Completed, Metrics: []study.Metric{{Name: "loss", Values: make([]float64, study.MaxReplicates)}}}
	if d := detail(&study.AlreadyToldError{Stored: large}); len(d) != 0 {
		t.Errorf("a large outcome travels in the headers: %v", d)
	}
	bad, ok := detail(errors.Join(&space.Error{Parameter: "a", Field: "low", Rule: "r", Remedy: "m"}, &space.Error{Parameter: "b", Rule: "s"}))[0].(*errdetails.BadRequest)
	if !ok || len(bad.FieldViolations) != 2 || bad.FieldViolations[0].Field != "a.low" || bad.FieldViolations[0].Description != "r; m" {
		t.Errorf("violations: %v", bad)
	}
	many := &tuner.CommandError{Index: 7, Err: &study.InvalidError{Field: "x", Value: "2", Rule: "must be at most 1"}}
	bad, ok = detail(many)[0].(*errdetails.BadRequest)
	if !ok || len(bad.FieldViolations) != 1 || bad.FieldViolations[0].Field != "trials[7].x" {
		t.Errorf("violations of one of many: %v", bad)
	}
	st, _ = wire.Status(many, "")
	at, ok := read(st.Err()).(*tuner.CommandError)
	if !ok || at.Index != 7 || at.Err.Error() != many.Err.Error() {
		t.Errorf("one of many came back as %#v", at)
	}
	// If the outcome is unknown, the status has no index.
	st, _ = wire.Status(&tuner.CommandError{Index: 7, Err: store.ErrUnknownOutcome}, "")
	if err := read(st.Err()); errors.As(err, &at) && tuner.CodeOf(err) == tuner.Unknown {
		t.Errorf("an unknown outcome of one of many came back as %#v", err)
	}
	// The same holds for ErrorInfos of other programs.
	foreign, _ := status.New(codes.InvalidArgument, "m").WithDetails(&errdetails.ErrorInfo{Domain: "example.org", Metadata: map[string]string{"index": "3"}})
	if _, ok := read(foreign.Err()).(*tuner.CommandError); ok {
		t.Error("somebody else's index was taken for ours")
	}
	retry, ok := detail(&study.NoneLeftError{Trials: 1, Running: 1, NextExpiry: time.Now().Add(time.Hour)})[0].(*errdetails.RetryInfo)
	if !ok || retry.RetryDelay.AsDuration() <= 0 {
		t.Errorf("retry: %v", retry)
	}
	if a, _ := wire.ReadError(wire.Exhausted("x", time.Second).Err()); a.RetryAfter != time.Second || a.Err.Code != tuner.Exhausted {
		t.Errorf("exhausted: %+v", a)
	}
}

// TestForwardedDetails checks that a server that forwards a call sends the details of the
// answer that it got.
func TestForwardedDetails(t *testing.T) {
	outcome := study.Outcome{State: study.Completed, Metrics: []study.Metric{{Name: "loss", Values: []float64{1}}}}
	for _, err := range []error{
		&study.InvalidError{Field: "x", Value: "2", Rule: "must be at most 1", Remedy: "use 1"},
		errors.Join(&space.Error{Parameter: "a", Field: "low", Rule: "r"}, &space.Error{Parameter: "b", Rule: "s"}),
		&tuner.CommandError{Index: 7, Err: &study.InvalidError{Field: "x", Value: "2", Rule: "must be at most 1"}},
		&study.AlreadyToldError{Trial: 1, Stored: outcome},
		&tuner.MemoryError{Limit: 5},
	} {
		first, _ := wire.Status(err, "")
		second, _ := wire.Status(read(first.Err()), "")
		if len(first.Details()) < 2 || !proto.Equal(first.Proto(), second.Proto()) {
			t.Errorf("%v was sent as %v, and then as %v", err, first.Proto(), second.Proto())
		}
	}
}

// Every error's status fits into headers of 8 KiB and is valid UTF-8.
func TestStatusSize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var errs []error
		for range rapid.IntRange(1, 60).Draw(t, "faults") {
			text := func(label string) string {
				return strings.Repeat(rapid.String().Draw(t, label), rapid.IntRange(0, 50).Draw(t, "times"))
			}
			errs = append(errs, &space.Error{Parameter: text("parameter"), Field: text("field"), Rule: text("rule") + "\xff", Remedy: text("remedy")})
		}
		st, _ := wire.Status(errors.Join(errs...), "")
		p := st.Proto()
		if !utf8.ValidString(p.GetMessage()) || len(p.GetDetails()) == 0 {
			t.Fatalf("a status that cannot be sent: %v", p)
		}
		if size := len(p.GetMessage()) + proto.Size(p)*4/3; size > 8<<10 {
			t.Fatalf("the status takes %d bytes of headers", size)
		}
	})
}

// TestForeignErrors tests errors that gRPC or a program in between makes.
func TestForeignErrors(t *testing.T) {
	for code, want := range map[codes.Code]tuner.Code{
		codes.Unavailable: tuner.Unavailable, codes.Unauthenticated: tuner.Denied, codes.ResourceExhausted: tuner.Exhausted,
		codes.Unimplemented: tuner.Unsupported, codes.Internal: tuner.Internal, codes.Aborted: tuner.Internal, codes.Canceled: tuner.Cancelled,
	} {
		a, ok := wire.ReadError(status.Error(code, "m"))
		if !ok || a.Err.Code != want || a.ByService {
			t.Errorf("%s became %+v", code, a)
		}
	}
	if err := read(context.Canceled); err != context.Canceled {
		t.Errorf("what is no status became %v", err)
	}
}
