package server

import (
	"bufio"
	"context"
	"fmt"
	"iter"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/wire"
)

// Recogniser is a service that acts for a caller of its own, as a client of another server
// does. That server decides what the caller may do.
type Recogniser interface {
	GetCaller(ctx context.Context) (*pb.Caller, error)
}

// handlers decode requests, call the service and encode the answers. They return the
// errors of package tuner, and the chain turns them into statuses.
type handlers struct {
	pb.UnimplementedTunerServer
	service tuner.Service
	server  *Server
}

// desc describes the service. The methods of [wire.Methods] that have a Serve are answered
// by it, and the others by the methods of handlers.
func (h *handlers) desc() *grpc.ServiceDesc {
	desc := pb.Tuner_ServiceDesc
	desc.Methods = slices.Clone(desc.Methods)
	for i := range desc.Methods {
		d := &desc.Methods[i]
		if m := h.server.methods["/"+desc.ServiceName+"/"+d.MethodName]; m.Serve != nil {
			d.Handler = h.serve(m)
		}
	}
	return &desc
}

// serve returns the handler of a method, as protoc-gen-go-grpc writes it for the others.
func (h *handlers) serve(m wire.Method) grpc.MethodHandler {
	answer := func(ctx context.Context, request any) (any, error) {
		return m.Serve(ctx, h.service, request.(proto.Message))
	}
	return func(srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
		request := m.NewRequest()
		if err := decode(request); err != nil {
			return nil, err
		}
		if interceptor == nil {
			return answer(ctx, request)
		}
		return interceptor(ctx, request, &grpc.UnaryServerInfo{Server: srv, FullMethod: m.FullName()}, answer)
	}
}

// sent turns an answer that cannot be encoded into an internal error.
func sent[M any](m M, err error) (M, error) {
	if err != nil {
		err = fmt.Errorf("encoding the answer: %v", err)
	}
	return m, err
}

// answer decodes a request about a study, serves it and encodes the answer.
func answer[Q, C, R, A any](ctx context.Context, m Q, decode func(Q) (string, C, error), serve func(context.Context, string, C) (R, error), encode func(string, R) (A, error)) (out A, err error) {
	name, command, err := decode(m)
	if err != nil {
		return out, err
	}
	result, err := serve(ctx, name, command)
	if err != nil {
		return out, err
	}
	return encode(name, result)
}

func (h *handlers) CreateStudy(ctx context.Context, m *pb.CreateStudyRequest) (*pb.Study, error) {
	var remarks []space.Warning
	decode := func(m *pb.CreateStudyRequest) (name string, c study.Create, err error) {
		name, c, remarks, err = wire.DecodeCreate(m)
		return name, c, err
	}
	return answer(ctx, m, decode, h.service.CreateStudy, func(_ string, created tuner.Created) (*pb.Study, error) {
		created.Warnings = mergeWarnings(remarks, created.Warnings)
		return sent(wire.EncodeCreated(created))
	})
}

// mergeWarnings adds the service's warnings to those about the text, which have line numbers.
func mergeWarnings(onText, onSpace []space.Warning) []space.Warning {
	for _, w := range onSpace {
		if !slices.ContainsFunc(onText, func(t space.Warning) bool { return t.Parameter == w.Parameter && t.Message == w.Message }) {
			onText = append(onText, w)
		}
	}
	return onText
}

func (h *handlers) ListStudies(ctx context.Context, m *pb.ListStudiesRequest) (*pb.ListStudiesResponse, error) {
	studies, more, err := h.service.Studies(ctx, m.GetPageToken(), int(m.GetPageSize()))
	if err != nil {
		return nil, err
	}
	page := &pb.ListStudiesResponse{}
	if page.Studies, err = paged(h, studies, func(s tuner.Study) (*pb.Study, error) { return sent(wire.EncodeStudy(s)) }); err != nil {
		return nil, err
	}
	if n := len(page.Studies); n > 0 && (more || n < len(studies)) {
		page.NextPageToken = studies[n-1].Name
	}
	return page, nil
}

// paged encodes as many of a list as fit on a page, and at least one.
func paged[T any, M proto.Message](h *handlers, list []T, encode func(T) (M, error)) (page []M, err error) {
	fits := h.pageOf()
	for _, v := range list {
		m, err := encode(v)
		if err != nil {
			return nil, err
		}
		if !fits(m) {
			break
		}
		page = append(page, m)
	}
	return page, nil
}

func (h *handlers) DeleteStudy(ctx context.Context, m *pb.DeleteStudyRequest) (*pb.DeleteStudyResponse, error) {
	name, err := wire.ParseStudyName(m.GetName())
	if err != nil {
		return nil, err
	}
	if uid := m.GetUid(); uid != 0 {
		s, err := h.service.Study(ctx, name)
		if err != nil {
			return nil, err
		}
		if s.ID != store.StudyID(uid) {
			return nil, &store.NotFoundError{Study: store.StudyID(uid)}
		}
	}
	return &pb.DeleteStudyResponse{}, h.service.DeleteStudy(ctx, name)
}

func (h *handlers) Ask(ctx context.Context, m *pb.AskRequest) (*pb.AskResponse, error) {
	name, c, err := wire.Ask.Decode(m)
	if err == nil {
		err = h.asks(ctx, name, &c)
	}
	if err != nil {
		return nil, err
	}
	asked, err := h.service.Ask(ctx, name, c)
	if err != nil {
		return nil, err
	}
	return h.asked(name, asked)
}

// asks completes an ask, or refuses one whose answer would not fit.
func (h *handlers) asks(ctx context.Context, name string, c *study.Ask) error {
	asks(ctx, c)
	if c.Count <= 1 && c.Count != tuner.AutoCount {
		return nil
	}
	s, err := h.service.Study(ctx, name)
	if err != nil {
		return err
	}
	return checkCount(s.Spec, c.Count, h.room())
}

// asked encodes the answer to an ask.
func (h *handlers) asked(name string, asked tuner.Asked) (*pb.AskResponse, error) {
	trials := asked.Trials
	asked.Trials = nil
	answer, err := sent(wire.EncodeAsked(name, asked))
	if err != nil {
		return nil, err
	}
	answer.Trials, err = parts(name, trials, h.room())
	return answer, err
}

func (h *handlers) Tell(ctx context.Context, m *pb.TellRequest) (*pb.TellResponse, error) {
	tell := func(ctx context.Context, name string, c study.Tell) (tuner.Told, error) {
		if c.Next != nil {
			leave, err := h.server.enterMemory(ctx, memoryOfChange)
			if err == nil {
				defer leave()
				err = h.asks(ctx, name, c.Next)
			}
			if err != nil {
				c.Next = nil // an ask says why
			}
		}
		return h.service.Tell(ctx, name, c)
	}
	return answer(ctx, m, wire.Tell.Decode, tell, func(name string, told tuner.Told) (*pb.TellResponse, error) {
		trial, err := h.trial(name, told.Trial)
		answer := &pb.TellResponse{Trial: trial, Late: told.Late}
		if err == nil && told.Next != nil {
			answer.Next, err = h.asked(name, *told.Next)
		}
		return answer, err
	})
}

func (h *handlers) EnqueueTrial(ctx context.Context, m *pb.EnqueueTrialRequest) (*pb.Trial, error) {
	return answer(ctx, m, wire.EnqueueTrial.Decode, h.service.Enqueue, h.trial)
}

func (h *handlers) AddTrial(ctx context.Context, m *pb.AddTrialRequest) (*pb.Trial, error) {
	return answer(ctx, m, wire.AddTrial.Decode, h.service.Add, h.trial)
}

func (h *handlers) AddTrials(ctx context.Context, m *pb.AddTrialsRequest) (*pb.AddTrialsResponse, error) {
	return answer(ctx, m, wire.DecodeAddAll, h.service.AddAll, func(_ string, numbers []int) (*pb.AddTrialsResponse, error) {
		return wire.EncodeAdded(numbers), nil
	})
}

func (h *handlers) GetTrial(ctx context.Context, m *pb.GetTrialRequest) (*pb.Trial, error) {
	out, err := answer(ctx, m.GetName(), wire.ParseTrialName, h.service.Trial, h.trial)
	if err != nil || !wire.DecodeView(m.GetView()) {
		return out, err
	}
	name, number, _ := wire.ParseTrialName(m.GetName())
	reports, more, err := h.service.Reports(ctx, name, number, 0, 0)
	if err != nil {
		return nil, err
	}
	if more {
		out.Omitted = append(out.Omitted, wire.OmittedReports)
		return out, nil
	}
	return out, addReports(out, reports, h.room())
}

// trial encodes a trial without its reports.
func (h *handlers) trial(name string, t study.Trial) (*pb.Trial, error) {
	return part(name, t.WithoutReports(), h.room())
}

func (h *handlers) ListReports(ctx context.Context, m *pb.ListReportsRequest) (*pb.ListReportsResponse, error) {
	name, number, first, limit, err := wire.DecodeReportsPage(m)
	if err != nil {
		return nil, err
	}
	reports, more, err := h.service.Reports(ctx, name, number, first, limit)
	if err != nil {
		return nil, err
	}
	page := &pb.ListReportsResponse{}
	if page.Reports, err = fitting(slices.All(reports), h.room()); err != nil {
		return nil, err
	}
	if more || len(page.Reports) < len(reports) {
		page.NextPageToken = wire.PageToken(max(first, 0) + len(page.Reports))
	}
	return page, nil
}

func (h *handlers) ListTrials(ctx context.Context, m *pb.ListTrialsRequest) (*pb.ListTrialsResponse, error) {
	name, f, err := wire.DecodeFilter(m)
	if err != nil {
		return nil, err
	}
	trials, more, err := h.service.Trials(ctx, name, f)
	if err != nil {
		return nil, err
	}
	page := &pb.ListTrialsResponse{}
	page.Trials, err = paged(h, trials, func(t study.Trial) (*pb.Trial, error) { return part(name, t, h.room()) })
	if err != nil {
		return nil, err
	}
	if n := len(page.Trials); n > 0 && (more || n < len(trials)) {
		page.NextPageToken = wire.PageToken(trials[n-1].Number + 1)
	}
	return page, nil
}

func (h *handlers) GetBest(ctx context.Context, m *pb.GetBestRequest) (*pb.GetBestResponse, error) {
	name, first, err := wire.DecodeBestPage(m)
	if err != nil {
		return nil, err
	}
	best, err := h.service.Best(ctx, name)
	if err != nil {
		return nil, err
	}
	best = slices.DeleteFunc(slices.Clone(best), func(t study.Trial) bool { return t.Number < first })
	page := &pb.GetBestResponse{}
	page.Trials, err = paged(h, best, func(t study.Trial) (*pb.Trial, error) { return h.trial(name, t) })
	if err == nil && len(page.Trials) < len(best) {
		page.NextPageToken = wire.PageToken(best[len(page.Trials)].Number)
	}
	return page, err
}

func (h *handlers) GetColumns(m *pb.GetColumnsRequest, stream grpc.ServerStreamingServer[pb.GetColumnsResponse]) error {
	name, q, err := wire.DecodeColumnQuery(m)
	if err != nil {
		return err
	}
	ctx := stream.Context()
	room, err := h.server.enterMemory(ctx, memoryOfList)
	if err != nil {
		return err
	}
	defer room()
	columns, err := h.service.Columns(ctx, name, q)
	if err != nil {
		return h.server.endOfStream(ctx, err)
	}
	for message := range wire.EncodeColumns(columns, min(chunkBytes, h.server.options.Limits.MaxSendBytes/2)) {
		read := h.server.unread(ctx)
		err := stream.Send(message)
		read()
		if err != nil {
			return h.server.endOfStream(ctx, err)
		}
	}
	return h.server.endOfStream(ctx, nil)
}

// enterWatch counts a watch or refuses it.
func (s *Server) enterWatch(ctx context.Context, study string) (leave func(), err error) {
	var left []func()
	leave = func() {
		for _, f := range slices.Backward(left) {
			f()
		}
	}
	l := s.options.Limits
	id, _ := identityOf(ctx)
	one, limit := s.watches.enter(id.rate, l.MaxWatchesPerToken, id.scope.share(l.MaxWatches))
	if limit == "" {
		left = append(left, one)
		one, limit = s.watched.enter(study, l.MaxWatchesPerStudy, -1)
	}
	if limit != "" {
		leave()
		return nil, s.refuse(ctx, limit, retryBusy)
	}
	left = append(left, one)
	room, err := s.enterMemory(ctx, memoryOfWatch)
	if err != nil {
		leave()
		return nil, err
	}
	s.metrics.watches.Inc()
	left = append(left, room, s.metrics.watches.Dec)
	return leave, nil
}

func (h *handlers) Watch(m *pb.WatchRequest, stream grpc.ServerStreamingServer[pb.WatchResponse]) error {
	name, err := wire.ParseStudyName(m.GetParent())
	if err != nil {
		return err
	}
	events := h.service.Watch(stream.Context(), name, tuner.From{Study: store.StudyID(m.GetUid()), After: study.Position(m.GetAfter())})
	return watch(h, stream, name, events, func(event tuner.Event) error {
		out, err := happened(name, event, h.room())
		if err != nil {
			return err
		}
		defer h.server.unread(stream.Context())()
		return stream.Send(out)
	})
}

func (h *handlers) WatchStudies(_ *pb.WatchStudiesRequest, stream grpc.ServerStreamingServer[pb.WatchStudiesResponse]) error {
	news := h.service.WatchStudies(stream.Context())
	return watch(h, stream, "", news, func(news tuner.StudyNews) error { return h.tellNews(stream, news) })
}

// watch sends what a watch of a study, or of all if it has no name, yields.
func watch[T any](h *handlers, stream grpc.ServerStream, study string, events iter.Seq2[T, error], send func(T) error) error {
	s, ctx := h.server, stream.Context()
	leave, err := s.enterWatch(ctx, study)
	if err != nil {
		return err
	}
	defer leave()
	if err := stream.SendHeader(nil); err != nil { // tells the caller that the watch has begun
		return err
	}
	for event, err := range events {
		if err == nil {
			err = send(event)
		}
		if err != nil {
			return s.endOfStream(ctx, err)
		}
	}
	return s.endOfStream(ctx, nil)
}

// tellNews sends news of studies, in as many messages as they need.
func (h *handlers) tellNews(stream grpc.ServerStreamingServer[pb.WatchStudiesResponse], news tuner.StudyNews) error {
	send := func(m *pb.WatchStudiesResponse) error {
		defer h.server.unread(stream.Context())()
		return stream.Send(m)
	}
	m, fits := &pb.WatchStudiesResponse{}, h.pageOf()
	for _, s := range news.Studies {
		out, err := sent(wire.EncodeStudy(s))
		if err != nil {
			return err
		}
		if !fits(out) {
			if err := send(m); err != nil {
				return err
			}
			m, fits = &pb.WatchStudiesResponse{}, h.pageOf()
			fits(out)
		}
		m.Studies = append(m.Studies, out)
	}
	for _, id := range news.Deleted {
		m.DeletedUids = append(m.DeletedUids, uint64(id))
	}
	m.Listed = news.Listed
	return send(m)
}

func (h *handlers) GetCaller(ctx context.Context, _ *pb.GetCallerRequest) (*pb.Caller, error) {
	if far, ok := h.service.(Recogniser); ok {
		return far.GetCaller(ctx)
	}
	id, _ := identityOf(ctx)
	return &pb.Caller{Name: id.name, Role: string(id.scope.Role), Studies: id.scope.Studies}, nil
}

// endOfStream returns the error of a stream that the server ended. If the server is
// stopping, the error tells clients to resume elsewhere or later.
func (s *Server) endOfStream(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if cause == errStopping {
		return wire.NewStatus(codes.Unavailable, tuner.Unavailable, errStopping.Error()).Err()
	}
	if _, refused := status.FromError(cause); refused && cause != nil {
		return cause
	}
	return err
}

func (h *handlers) Backup(_ *pb.BackupRequest, stream grpc.ServerStreamingServer[pb.BackupResponse]) error {
	s := h.server
	leave, limit := s.backups.enter("", -1, s.options.Limits.MaxBackups)
	if limit != "" {
		return s.refuse(stream.Context(), limit, retryBusy)
	}
	defer leave()
	room, err := s.enterMemory(stream.Context(), memoryOfBackup)
	if err != nil {
		return err
	}
	defer room()
	out := bufio.NewWriterSize(chunks{stream}, min(chunkBytes, s.options.Limits.MaxSendBytes/2))
	if err := h.service.Backup(stream.Context(), out); err != nil {
		return s.endOfStream(stream.Context(), err)
	}
	return out.Flush()
}

// chunkBytes is the size of the messages of a backup.
const chunkBytes = 256 << 10

// chunks sends the data written to it.
type chunks struct {
	stream grpc.ServerStreamingServer[pb.BackupResponse]
}

func (c chunks) Write(p []byte) (int, error) {
	for piece := range slices.Chunk(p, chunkBytes) {
		if err := c.stream.Send(&pb.BackupResponse{Chunk: piece}); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}
