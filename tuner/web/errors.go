package web

import (
	"errors"
	"math"
	"net/http"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/bkbtuner/bkb/tuner/wire"
)

// httpStatus is the status for each code, as google/rpc/code.proto maps them.
var httpStatus = map[codes.Code]int{
	codes.OK:                 http.StatusOK,
	codes.Canceled:           499, // the caller closed the request
	codes.Unknown:            http.StatusInternalServerError,
	codes.InvalidArgument:    http.StatusBadRequest,
	codes.DeadlineExceeded:   http.StatusGatewayTimeout,
	codes.NotFound:           http.StatusNotFound,
	codes.AlreadyExists:      http.StatusConflict,
	codes.PermissionDenied:   http.StatusForbidden,
	codes.ResourceExhausted:  http.StatusTooManyRequests,
	codes.FailedPrecondition: http.StatusBadRequest,
	codes.Aborted:            http.StatusConflict,
	codes.OutOfRange:         http.StatusBadRequest,
	codes.Unimplemented:      http.StatusNotImplemented,
	codes.Internal:           http.StatusInternalServerError,
	codes.Unavailable:        http.StatusServiceUnavailable,
	codes.DataLoss:           http.StatusInternalServerError,
	codes.Unauthenticated:    http.StatusUnauthorized,
}

// fail answers with an error of the gate, the face or the pipe.
func (f *Face) fail(w http.ResponseWriter, r *http.Request, err error) {
	s := f.statusOf(r, err)
	code, ok := httpStatus[s.Code()]
	if !ok {
		code = http.StatusInternalServerError
	}
	if large := (*tooLarge)(nil); errors.As(err, &large) {
		code = http.StatusRequestEntityTooLarge
	}
	f.refuse(w, code, s)
}

// statusOf is the status of an error. An error of the pipe itself, which describes a connection
// within the process, becomes that the server is stopping.
func (f *Face) statusOf(r *http.Request, err error) *status.Status {
	s := status.Convert(err)
	ofPipe := len(s.Proto().GetDetails()) == 0
	if ofPipe && (s.Code() == codes.Unavailable || s.Code() == codes.Canceled && r.Context().Err() == nil) {
		return status.New(codes.Unavailable, "send the same request again, because the server is stopping")
	}
	return s
}

// refuse answers with a status in JSON.
func (f *Face) refuse(w http.ResponseWriter, code int, s *status.Status) {
	if s.Code() == codes.Unauthenticated {
		scheme := "Bearer"
		if f.key != "" { // the page then does not ask for a token, which would not help
			scheme = "Key"
		}
		w.Header().Set("WWW-Authenticate", scheme)
	}
	if a, ok := wire.ReadError(s.Err()); ok && a.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(a.RetryAfter.Seconds()))))
	}
	f.write(w, code, statusJSON(s))
}

// statusJSON is a google.rpc.Status in JSON. It leaves out details of unknown types.
func statusJSON(s *status.Status) []byte {
	m := s.Proto()
	data, err := encode(m)
	if err != nil {
		m.Details = nil
		data, _ = encode(m) // a number and valid UTF-8
	}
	return data
}
