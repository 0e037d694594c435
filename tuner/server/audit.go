package server

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner/wire"
)

// mayHaveChanged reports whether a call with this code changed state, or may have.
func mayHaveChanged(code codes.Code) bool {
	switch code {
	case codes.OK, codes.Unknown, codes.Internal, codes.DataLoss, codes.DeadlineExceeded, codes.Canceled:
		return true
	default:
		return false
	}
}

// audit writes a call to the log at level INFO, and to the audit file.
func (s *Server) audit(ctx context.Context, method string, request, answer any, err error) {
	code := status.Code(err)
	if !s.methods[method].Audited || !mayHaveChanged(code) {
		return
	}
	if part, ok := answer.(*pb.WriteArtifactResponse); ok && part.GetReceived() > 0 && part.Artifact == nil { // the file comes later
		return
	}
	id, _ := identityOf(ctx)
	attrs := []slog.Attr{
		slog.String("who", id.name), slog.String("what", method[strings.LastIndexByte(method, '/')+1:]),
		slog.String("on", subjects(request, answer)), slog.String("from", hostOf(ctx)),
	}
	worker, file := "", ""
	switch r := request.(type) {
	case interface{ GetFile() string }:
		file = r.GetFile()
	case interface{ GetWorker() string }:
		worker = r.GetWorker()
	case *pb.TellRequest:
		worker = r.GetNext().GetWorker()
	}
	attrs = traced(ctx, filled(attrs, "file", file, "worker", worker, "request_id", requestID(request))...)
	attrs = append(attrs, slog.String("code", code.String()))
	s.log.LogAttrs(ctx, slog.LevelInfo, "audit", attrs...)
	if s.auditFile == nil {
		return
	}
	line := slog.NewRecord(time.Now(), slog.LevelInfo, "audit", 0)
	line.AddAttrs(attrs...)
	if err := s.auditFile.Handle(ctx, line); err != nil {
		s.metrics.auditFailures.Inc()
		s.log.Error("audit file not written, and the line is in the log only", "file", s.options.AuditFile, "error", err)
	}
}

// subjects names the study or trials of a call, including trials that the answer handed out.
func subjects(request, answer any) string {
	const most = 20
	var names []string
	switch a := answer.(type) {
	case *pb.AskResponse:
		for _, t := range a.GetTrials() {
			names = append(names, t.GetName())
		}
	case *pb.TellResponse:
		names = append(names, a.GetTrial().GetName())
		for _, t := range a.GetNext().GetTrials() {
			names = append(names, t.GetName())
		}
	case *pb.Trial:
		names = append(names, a.GetName())
	case *pb.Study:
		names = append(names, a.GetName())
	case *pb.AddTrialsResponse:
		return fmt.Sprintf("%s, %d trials", resourceOf(request), len(a.GetNumbers()))
	}
	switch r := request.(type) {
	case *pb.CreateStudyRequest:
		return "studies/" + r.GetStudyId()
	case nil:
		return "everything"
	}
	if len(names) == 0 {
		return resourceOf(request)
	}
	if more := len(names) - most; more > 0 {
		names = append(names[:most], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, " ")
}

// filled adds those of some pairs of a key and a text to attributes whose text is not empty.
func filled(attrs []slog.Attr, pairs ...string) []slog.Attr {
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			attrs = append(attrs, slog.String(pair[0], pair[1]))
		}
	}
	return attrs
}

// requestID returns the request id of a request, or "".
func requestID(request any) string {
	if r, ok := request.(interface{ GetRequestId() string }); ok {
		return r.GetRequestId()
	}
	return ""
}

// traced adds the trace id that a caller sent to the attributes of a line of the log.
func traced(ctx context.Context, attrs ...slog.Attr) []slog.Attr {
	for _, value := range metadata.ValueFromIncomingContext(ctx, wire.TraceHeader) {
		if id := wire.TraceID(value); id != "" {
			return append(attrs, slog.String("trace_id", id))
		}
	}
	return attrs
}
