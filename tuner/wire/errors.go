package wire

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Domain is the domain of the google.rpc.ErrorInfo in every error of the service.
const Domain = "bkbtuner"

// A status travels in the headers of HTTP/2, and many clients accept at most 8 KiB. So its
// parts are kept short.
const (
	maxMessageBytes   = 1536
	maxDetailBytes    = 2048
	maxViolations     = 10
	maxViolationBytes = 150 // of one field or description
)

// canonical maps our codes to gRPC codes. Denied may also be UNAUTHENTICATED, see [Denied].
var canonical = map[tuner.Code]codes.Code{
	tuner.OK:            codes.OK,
	tuner.Invalid:       codes.InvalidArgument,
	tuner.NotFound:      codes.NotFound,
	tuner.AlreadyExists: codes.AlreadyExists,
	tuner.Finished:      codes.FailedPrecondition,
	tuner.Paused:        codes.FailedPrecondition,
	tuner.NoneLeft:      codes.FailedPrecondition,
	tuner.TrialState:    codes.FailedPrecondition,
	tuner.LeaseLost:     codes.FailedPrecondition,
	tuner.AlreadyTold:   codes.FailedPrecondition,
	tuner.Denied:        codes.PermissionDenied,
	tuner.Exhausted:     codes.ResourceExhausted,
	tuner.Unavailable:   codes.Unavailable,
	tuner.Unknown:       codes.Unknown,
	tuner.Cancelled:     codes.Canceled,
	tuner.Deadline:      codes.DeadlineExceeded,
	tuner.Damaged:       codes.DataLoss,
	tuner.Unsupported:   codes.Unimplemented,
	tuner.Internal:      codes.Internal,
}

// bare maps statuses without our ErrorInfo to our codes. gRPC itself or a program between
// client and server made them.
var bare = func() map[codes.Code]tuner.Code {
	out := make(map[codes.Code]tuner.Code)
	for ours, theirs := range canonical {
		out[theirs] = ours
	}
	out[codes.FailedPrecondition], out[codes.OutOfRange] = tuner.Invalid, tuner.Invalid
	out[codes.Unauthenticated] = tuner.Denied
	return out
}()

// Status returns the status of an error of a service. The message is sent unchanged (cut at
// 1.5 KiB) unless the error is the fault of the server, its disk or its store. Then hidden
// is true, and the caller reads what to do and id, under which the server has logged the
// error.
func Status(err error, id string) (s *status.Status, hidden bool) {
	code := tuner.CodeOf(err)
	if _, known := canonical[code]; !known {
		code = tuner.Internal
	}
	if code == tuner.OK {
		return status.New(codes.OK, ""), false
	}
	message, hidden := publicMessage(code, err)
	if hidden {
		message += " (error id " + id + ")"
	}
	info := &errdetails.ErrorInfo{Reason: string(code), Domain: Domain}
	if at := (*tuner.CommandError)(nil); errors.As(err, &at) && code != tuner.Unknown {
		info.Metadata = map[string]string{indexKey: strconv.Itoa(at.Index)}
	}
	return newStatus(canonical[code], info, message, details(code, err)...), hidden
}

// indexKey is the key of an ErrorInfo's metadata for the index of the refused trial among
// many.
const indexKey = "index"

// NewStatus returns a status with our ErrorInfo and further details, as long as they are
// not too large.
func NewStatus(c codes.Code, code tuner.Code, message string, details ...proto.Message) *status.Status {
	return newStatus(c, &errdetails.ErrorInfo{Reason: string(code), Domain: Domain}, message, details...)
}

func newStatus(c codes.Code, info *errdetails.ErrorInfo, message string, details ...proto.Message) *status.Status {
	s := status.New(c, cut(message, maxMessageBytes))
	room := maxDetailBytes
	add := []protoadapt.MessageV1{info}
	for _, d := range details {
		if room -= proto.Size(d); room >= 0 {
			add = append(add, protoadapt.MessageV1Of(d))
		}
	}
	full, err := s.WithDetails(add...)
	if err != nil {
		return s
	}
	return full
}

// Exhausted returns the status for a caller that has reached a limit. The duration after is
// the time until the next try, or 0 if it is not known.
func Exhausted(message string, after time.Duration) *status.Status {
	var details []proto.Message
	if after > 0 {
		details = append(details, retryInfo(after))
	}
	return NewStatus(codes.ResourceExhausted, tuner.Exhausted, message, details...)
}

// Denied returns the status for a caller that is not known, or not allowed to make the
// call.
func Denied(known bool, message string) *status.Status {
	code := codes.Unauthenticated
	if known {
		code = codes.PermissionDenied
	}
	return NewStatus(code, tuner.Denied, message)
}

func retryInfo(after time.Duration) proto.Message {
	return &errdetails.RetryInfo{RetryDelay: durationpb.New(after)}
}

// publicMessage returns the part of an error that a caller may read. If it is not all,
// hidden is true.
func publicMessage(code tuner.Code, err error) (message string, hidden bool) {
	var remote *tuner.RemoteError
	if code != tuner.Internal && errors.As(err, &remote) {
		return err.Error(), false // another server has removed the private parts
	}
	switch code {
	case tuner.Internal:
		return "internal error in the server, whose log has more", true
	case tuner.Unknown:
		return "the outcome is unknown: send the same request again", true
	case tuner.Unavailable:
		if errors.Is(err, store.ErrUnavailable) {
			return "the store cannot be reached now; retry later", false
		}
		return publicPart(err, "the service is closed", new(*store.FencedError)), false
	case tuner.Damaged:
		return publicPart(err, "stored data are not what was written", new(*store.CorruptError), new(*store.NewerFormatError)), true
	case tuner.Exhausted:
		if errors.Is(err, store.ErrFull) {
			return "the store is full: its file has reached the limit (tuner serve --max-file), or the disk is full; reading still works; delete studies, free disk space, or raise the limit", true
		}
		return publicPart(err, err.Error(), new(*store.LimitError), new(*tuner.QuotaError), new(*tuner.MemoryError)), false
	default:
		return err.Error(), false
	}
}

// publicPart returns the message of the first of some types in err.
func publicPart(err error, otherwise string, types ...any) string {
	for _, t := range types {
		if errors.As(err, t) {
			return reflect.ValueOf(t).Elem().Interface().(error).Error()
		}
	}
	return otherwise
}

// details returns the details for programs.
func details(code tuner.Code, err error) []proto.Message {
	var told *study.AlreadyToldError
	var remote *tuner.RemoteError
	var none *study.NoneLeftError
	var memory *tuner.MemoryError
	switch {
	case code == tuner.Exhausted && errors.As(err, &memory):
		return []proto.Message{retryInfo(memory.RetryAfter())}
	case code == tuner.AlreadyTold && errors.As(err, &told):
		return outcomeDetail(told.Stored)
	case code == tuner.AlreadyTold && errors.As(err, &remote) && remote.Stored != nil:
		return outcomeDetail(*remote.Stored)
	case code == tuner.NoneLeft && errors.As(err, &none) && !none.NextExpiry.IsZero():
		return []proto.Message{retryInfo(max(time.Until(none.NextExpiry), time.Second))}
	case errors.As(err, &remote) && remote.RetryAfter > 0:
		return []proto.Message{retryInfo(remote.RetryAfter)}
	case code == tuner.Invalid:
		return violations(err)
	default:
		return nil
	}
}

func outcomeDetail(o study.Outcome) []proto.Message {
	m, err := EncodeOutcome(o)
	if err != nil || m == nil {
		return nil
	}
	return []proto.Message{m}
}

// violations names the fields of an Invalid error.
func violations(err error) []proto.Message {
	bad, of := &errdetails.BadRequest{}, ""
	if at := (*tuner.CommandError)(nil); errors.As(err, &at) {
		of = at.Where() + "."
	}
	add := func(field, description string) {
		if len(bad.FieldViolations) < maxViolations {
			bad.FieldViolations = append(bad.FieldViolations, &errdetails.BadRequest_FieldViolation{
				Field: cut(of+field, maxViolationBytes), Description: cut(description, maxViolationBytes),
			})
		}
	}
	var remote *tuner.RemoteError
	if errors.As(err, &remote) {
		for _, f := range remote.Faults {
			add(f.Field, f.Rule)
		}
	}
	var one *study.InvalidError
	if errors.As(err, &one) {
		add(one.Field, sentence(one.Rule, one.Remedy))
	}
	if reused := (*study.RequestReusedError)(nil); errors.As(err, &reused) {
		add("request_id", reused.Rule())
	}
	for _, f := range space.Faults(err) {
		field := f.Parameter
		if f.Field != "" {
			field = strings.TrimPrefix(field+"."+f.Field, ".")
		}
		add(field, sentence(f.Rule, f.Remedy))
	}
	if len(bad.FieldViolations) == 0 {
		return nil
	}
	return []proto.Message{bad}
}

func sentence(rule, remedy string) string { return strings.TrimSuffix(rule+"; "+remedy, "; ") }

// cut shortens s to at most n bytes of valid UTF-8.
func cut(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n {
		return s
	}
	const more = "…"
	n -= len(more)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + more
}

// Answer is an error that came over the wire.
type Answer struct {
	Err *tuner.RemoteError
	// ByService reports that the service itself answered, and not gRPC or a program in
	// between.
	ByService bool
	// RetryAfter is the time until the next try, or 0 if it is not known.
	RetryAfter time.Duration
	// At reports that among many trials the one with Index was refused.
	At    bool
	Index int
}

// Whole returns the error with the index of the trial among many.
func (a Answer) Whole() error {
	if !a.At {
		return a.Err
	}
	at := &tuner.CommandError{Index: a.Index}
	a.Err.Message = strings.TrimPrefix(a.Err.Message, at.Where()+": ")
	for i, f := range a.Err.Faults {
		a.Err.Faults[i].Field = strings.TrimPrefix(f.Field, at.Where()+".")
	}
	at.Err = a.Err
	return at
}

// ReadError parses the error of a gRPC call. If it is none, ok is false.
func ReadError(err error) (a Answer, ok bool) {
	s, ok := status.FromError(err)
	if !ok || s.Code() == codes.OK {
		return Answer{}, false
	}
	a.Err = &tuner.RemoteError{Code: bareCode(s), Message: s.Message()}
	for _, d := range s.Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			a.ByService = d.GetDomain() == Domain
			if code := tuner.Code(d.GetReason()); a.ByService && canonical[code] != codes.OK {
				a.Err.Code = code
			}
			if n, err := strconv.Atoi(d.GetMetadata()[indexKey]); err == nil && n >= 0 && a.ByService {
				a.At, a.Index = true, n
			}
		case *errdetails.BadRequest:
			for _, v := range d.GetFieldViolations() {
				a.Err.Faults = append(a.Err.Faults, tuner.Fault{Field: v.GetField(), Rule: v.GetDescription()})
			}
		case *errdetails.RetryInfo:
			a.RetryAfter = d.GetRetryDelay().AsDuration()
			a.Err.RetryAfter = a.RetryAfter
		case *pb.Outcome:
			if o, err := DecodeOutcome(d); err == nil {
				a.Err.Stored = &o
			}
		}
	}
	return a, true
}

// bareCode returns our code for a status without our ErrorInfo.
func bareCode(s *status.Status) tuner.Code {
	if s.Code() == codes.Internal && strings.Contains(s.Message(), "error while marshaling") {
		return tuner.Invalid // the caller's own side could not encode it, because text is not UTF-8
	}
	return cmp.Or(bare[s.Code()], tuner.Internal)
}

// BadAnswer returns the error for an answer that cannot be read.
func BadAnswer(err error) error {
	return &tuner.RemoteError{Code: tuner.Internal, Message: fmt.Sprintf("the server's answer cannot be read: %v", err)}
}
