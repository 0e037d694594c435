package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/wire"
)

// servicePath is where the methods are.
var servicePath = "/" + pb.Tuner_ServiceDesc.ServiceName + "/"

// requests are the types of the requests by method.
var requests = sync.OnceValue(func() map[string]protoreflect.MessageType {
	types := make(map[string]protoreflect.MessageType)
	methods := pb.File_proto_tuner_v1_tuner_proto.Services().ByName("Tuner").Methods()
	for i := range methods.Len() {
		types[string(methods.Get(i).Name())], _ = protoregistry.GlobalTypes.FindMessageByName(methods.Get(i).Input().FullName())
	}
	return types
})

// calls answers calls of methods. Streams are not compressed.
func (f *Face) calls(compressed func(http.Handler) http.HandlerFunc) http.Handler {
	unary, stream := compressed(f.call(f.unary)), f.call(f.stream)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.pipe.Streams(servicePath + r.PathValue("method")) {
			stream.ServeHTTP(w, r)
		} else {
			unary.ServeHTTP(w, r)
		}
	})
}

// call passes a request through the gate and reads it before it is answered.
func (f *Face) call(answer func(http.ResponseWriter, *http.Request, string, proto.Message)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refusal := checkType(r.Header); refusal != nil {
			f.refuse(w, http.StatusUnsupportedMediaType, refusal)
			return
		}
		path := servicePath + r.PathValue("method")
		ctx, leave, err := f.admit(w, r, path)
		if err != nil {
			f.fail(w, r, err)
			return
		}
		defer leave()
		request := requests()[r.PathValue("method")].New().Interface()
		if err := f.read(w, r, request); err != nil {
			f.fail(w, r, err)
			return
		}
		answer(w, r.WithContext(ctx), path, request)
	})
}

// admit passes a request through the gate and reserves memory for its body until leave is called.
func (f *Face) admit(w http.ResponseWriter, r *http.Request, path string) (ctx context.Context, leave func(), err error) {
	if ctx, err = f.pipe.Admit(r.Context(), callerOf(r), path); err != nil {
		return nil, nil, err
	}
	w.Header().Set("Tuner-Version", f.version)
	size := r.ContentLength
	if size > int64(f.limits.MaxRecvBytes) {
		return nil, nil, tooLong(f.limits.MaxRecvBytes)
	}
	if size < 0 {
		size = int64(f.limits.MaxRecvBytes)
	}
	leave, err = f.pipe.Reserve(ctx, size)
	return ctx, leave, err
}

// agentsPath is where agents find their tools.
const agentsPath = "/mcp"

// ofAgents passes a request of an agent on. The caller must be known, and the calls that its
// tools make pass the gate as the caller's.
func (f *Face) ofAgents(w http.ResponseWriter, r *http.Request) {
	_, leave, err := f.admit(w, r, pb.Tuner_GetCaller_FullMethodName)
	if err != nil {
		f.fail(w, r, err)
		return
	}
	defer leave()
	body, err := f.body(w, r)
	if err != nil {
		f.fail(w, r, err)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	f.agents(f.pipe.Conn(callerOf(r)), w, r)
}

// checkType refuses a body that is not said to be plain JSON.
func checkType(h http.Header) *status.Status {
	kind, parameters, err := mime.ParseMediaType(h.Get("Content-Type"))
	charset := parameters["charset"]
	switch {
	case err != nil || kind != "application/json":
		return wire.NewStatus(codes.InvalidArgument, tuner.Invalid,
			fmt.Sprintf("the Content-Type must be application/json, not %.100q", h.Get("Content-Type")))
	case charset != "" && !strings.EqualFold(charset, "utf-8"):
		return wire.NewStatus(codes.InvalidArgument, tuner.Invalid, fmt.Sprintf("the charset must be utf-8, not %.100q", charset))
	case h.Get("Content-Encoding") != "" && !strings.EqualFold(h.Get("Content-Encoding"), "identity"):
		return wire.NewStatus(codes.InvalidArgument, tuner.Invalid,
			fmt.Sprintf("requests must not be compressed, but the Content-Encoding is %.100q", h.Get("Content-Encoding")))
	default:
		return nil
	}
}

// largeBody is the size in bytes from which on bodies are decoded a few at a time.
const largeBody = 64 << 10

// body reads the body in the time of a call.
func (f *Face) body(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	limits := f.limits
	deadline := http.NewResponseController(w)
	if err := deadline.SetReadDeadline(time.Now().Add(limits.CallTimeout)); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(limits.MaxRecvBytes)))
	long := (*http.MaxBytesError)(nil)
	switch {
	case errors.As(err, &long):
		return nil, tooLong(limits.MaxRecvBytes)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, wire.NewStatus(codes.DeadlineExceeded, tuner.Deadline,
			fmt.Sprintf("the body did not arrive within %s, and nothing was done", limits.CallTimeout)).Err()
	case err != nil:
		return nil, wire.NewStatus(codes.InvalidArgument, tuner.Invalid, "the body did not arrive in full").Err()
	}
	return body, deadline.SetReadDeadline(time.Time{})
}

// read decodes the body.
func (f *Face) read(w http.ResponseWriter, r *http.Request, into proto.Message) error {
	body, err := f.body(w, r)
	if err != nil {
		return err
	}
	if len(body) > largeBody { // decoding one can take a second
		select {
		case f.decoding <- struct{}{}:
			defer func() { <-f.decoding }()
		case <-r.Context().Done():
			return r.Context().Err()
		}
	}
	if err := protojson.Unmarshal(body, into); err != nil {
		name := string(into.ProtoReflect().Descriptor().Name())
		return wire.NewStatus(codes.InvalidArgument, tuner.Invalid, fmt.Sprintf("the body is not a %s in JSON: %s", name, plain(err))).Err()
	}
	return nil
}

// plain is an error of protojson as a part of a sentence.
func plain(err error) string {
	return strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\u00a0", " "), "proto: ")
}

// tooLarge is the error for a body beyond the limit.
type tooLarge struct{ status *status.Status }

func tooLong(most int) error {
	return &tooLarge{wire.Exhausted(fmt.Sprintf("the body has more than %d bytes, the largest size of a request, so send it in parts", most), 0)}
}

func (e *tooLarge) Error() string              { return e.status.Message() }
func (e *tooLarge) GRPCStatus() *status.Status { return e.status }

// unary answers a call with one message.
func (f *Face) unary(w http.ResponseWriter, r *http.Request, path string, request proto.Message) {
	var data []byte
	err := f.pipe.Call(r.Context(), path, request, func(answer proto.Message) (err error) {
		data, err = encode(answer)
		return err
	})
	if err != nil {
		f.fail(w, r, err)
		return
	}
	f.write(w, http.StatusOK, data)
}

// ask makes a call of the face's own as the caller.
func ask[A proto.Message](ctx context.Context, f *Face, c server.Caller, path string, request proto.Message) (answer A, err error) {
	ctx, cancel := context.WithTimeout(ctx, f.limits.CallTimeout)
	defer cancel()
	admitted, err := f.pipe.Admit(ctx, c, path)
	if err != nil {
		return answer, err
	}
	err = f.pipe.Call(admitted, path, request, func(m proto.Message) error {
		answer = m.(A)
		return nil
	})
	return answer, err
}

// encode is a message in JSON. protojson adds spaces at random, which would be different
// in the next build.
func encode(m proto.Message) ([]byte, error) {
	data, err := protojson.Marshal(m)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.Grow(len(data))
	err = json.Compact(&out, data)
	return out.Bytes(), err
}

// write sends a whole answer in JSON. Errors are the caller's, who is gone then.
func (f *Face) write(w http.ResponseWriter, code int, data []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(code)
	_ = inPieces(w, data, f.writeTimeout)
}

// inPieces writes data so that each piece has its time.
func inPieces(w http.ResponseWriter, data []byte, timeout time.Duration) error {
	deadline := http.NewResponseController(w)
	for len(data) > 0 {
		piece := data[:min(len(data), writePiece)]
		data = data[len(piece):]
		if err := deadline.SetWriteDeadline(time.Now().Add(timeout)); err != nil {
			return err
		}
		if _, err := w.Write(piece); err != nil {
			return err
		}
	}
	return nil
}

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
