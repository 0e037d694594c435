package server_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/server"
)

// piped returns a running server's pipe, and a function that admits a call.
func piped(t *testing.T, service tuner.Service, o server.Options) (*running, *server.Pipe, func(method string) context.Context) {
	t.Helper()
	var p *server.Pipe
	r := start(t, service, o, func(s *server.Server) {
		var err error
		if p, err = s.Pipe(); err != nil {
			t.Fatal(err)
		}
	})
	return r, p, func(method string) context.Context {
		t.Helper()
		ctx, err := p.Admit(t.Context(), server.Caller{Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}}, method)
		if err != nil {
			t.Fatal(err)
		}
		return ctx
	}
}

// client makes calls through a pipe.
type client struct{ *server.Pipe }

func pipeCall[A proto.Message](ctx context.Context, c client, method string, request proto.Message) (answer A, err error) {
	err = c.Call(ctx, method, request, func(m proto.Message) error {
		answer = m.(A)
		return nil
	})
	return answer, err
}

func (c client) GetStudy(ctx context.Context, request *pb.GetStudyRequest) (*pb.Study, error) {
	return pipeCall[*pb.Study](ctx, c, pb.Tuner_GetStudy_FullMethodName, request)
}

func (c client) GetTrial(ctx context.Context, request *pb.GetTrialRequest) (*pb.Trial, error) {
	return pipeCall[*pb.Trial](ctx, c, pb.Tuner_GetTrial_FullMethodName, request)
}

func (c client) SetAttributes(ctx context.Context, request *pb.SetAttributesRequest) (*pb.SetAttributesResponse, error) {
	return pipeCall[*pb.SetAttributesResponse](ctx, c, pb.Tuner_SetAttributes_FullMethodName, request)
}

// TestPipeCalls checks what a gRPC server would do for a call with one answer.
func TestPipeCalls(t *testing.T) {
	r, p, admit := piped(t, withStudies(t), server.Options{Limits: server.Limits{MaxRecvBytes: 5000, MaxSendBytes: 5000}})
	client := client{p}
	request := &pb.GetStudyRequest{Name: "studies/mine"}
	answer, err := client.GetStudy(admit(pb.Tuner_GetStudy_FullMethodName), request)
	if err != nil || answer.GetName() != "studies/mine" {
		t.Fatalf("%v, %v", answer, err)
	}
	if _, err := client.GetStudy(t.Context(), request); status.Code(err) != codes.Unauthenticated {
		t.Errorf("a call that was not admitted: %v", err)
	}
	if err := p.Stream(t.Context(), pb.Tuner_Watch_FullMethodName, &pb.WatchRequest{Parent: "studies/mine"}, nil); status.Code(err) != codes.Unauthenticated {
		t.Errorf("a stream that was not admitted: %v", err)
	}
	if err := p.Call(t.Context(), "/x/Y", request, nil); status.Code(err) != codes.Unimplemented {
		t.Errorf("a method that does not exist: %v", err)
	}
	long := &pb.GetStudyRequest{Name: "studies/" + strings.Repeat("x", 6000)}
	if _, err := client.GetStudy(admit(pb.Tuner_GetStudy_FullMethodName), long); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "5000") {
		t.Errorf("a long request: %v", err)
	}
	text := strings.Repeat("x", 2500)
	for _, key := range []string{"a", "b", "c"} {
		_, err := client.SetAttributes(admit(pb.Tuner_SetAttributes_FullMethodName), &pb.SetAttributesRequest{Name: "studies/mine", Attributes: map[string]string{key: text}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.GetStudy(admit(pb.Tuner_GetStudy_FullMethodName), request); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "5000") {
		t.Errorf("a long answer: %v", err)
	}
	metrics := r.MetricsText()
	if !strings.Contains(metrics, "tuner_in_flight_requests 0") || !strings.Contains(metrics, "tuner_in_flight_bytes 0") {
		t.Errorf("calls or bytes are still counted")
	}
}

// TestPipeBytes refuses a request beyond the limit of bytes in flight.
func TestPipeBytes(t *testing.T) {
	_, p, admit := piped(t, withStudies(t), server.Options{Limits: server.Limits{MaxInFlightBytes: 10}})
	_, err := client{p}.GetStudy(admit(pb.Tuner_GetStudy_FullMethodName), &pb.GetStudyRequest{Name: "studies/mine"})
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("%v", err)
	}
}

// held is a service whose Study waits.
type held struct {
	tuner.Service
	entered chan struct{}
	leave   chan struct{}
}

func (h *held) Study(ctx context.Context, name string) (tuner.Study, error) {
	close(h.entered)
	select {
	case <-h.leave:
		return h.Service.Study(context.WithoutCancel(ctx), name)
	case <-ctx.Done():
		return tuner.Study{}, ctx.Err()
	}
}

// TestPipeStopsWithoutDeaf checks that a call that does not end with its context, as on a disk that
// does not answer, does not delay the stop.
func TestPipeStopsWithoutDeaf(t *testing.T) {
	h := &held{withStudies(t), make(chan struct{}), make(chan struct{})}
	r, p, admit := piped(t, deaf{h}, server.Options{StopTimeout: 10 * time.Millisecond})
	ctx, done := admit(pb.Tuner_GetStudy_FullMethodName), make(chan struct{})
	go func() {
		defer close(done)
		_, _ = client{p}.GetStudy(ctx, &pb.GetStudyRequest{Name: "studies/mine"})
	}()
	<-h.entered
	r.stop()
	select {
	case <-done:
		t.Error("the call has ended")
	default:
	}
	close(h.leave)
	<-done
}

// deaf is held without contexts.
type deaf struct{ *held }

func (d deaf) Study(ctx context.Context, name string) (tuner.Study, error) {
	return d.held.Study(context.WithoutCancel(ctx), name)
}

// TestPipeStops stops a server under a call. The call may finish in time, and later it is
// ended.
func TestPipeStops(t *testing.T) {
	for _, late := range []bool{false, true} {
		h := &held{withStudies(t), make(chan struct{}), make(chan struct{})}
		patience := time.Minute
		if late {
			patience = 50 * time.Millisecond
		}
		r, p, admit := piped(t, h, server.Options{StopTimeout: patience})
		client, request := client{p}, &pb.GetStudyRequest{Name: "studies/mine"}
		first, second := admit(pb.Tuner_GetStudy_FullMethodName), admit(pb.Tuner_GetStudy_FullMethodName)
		done, stopped := make(chan error, 1), make(chan struct{})
		go func() {
			_, err := client.GetStudy(first, request)
			done <- err
		}()
		<-h.entered
		go func() {
			r.stop()
			close(stopped)
		}()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			// A call of another kind, which does not wait.
			_, err := client.GetTrial(second, &pb.GetTrialRequest{Name: "studies/mine/trials/0"})
			if err != nil {
				if status.Code(err) != codes.Unavailable {
					t.Errorf("a call too late: %v", err)
				}
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("calls do not end")
			}
		}
		if !late {
			close(h.leave)
		}
		if err := <-done; (err != nil) != late {
			t.Errorf("late %v: the call under way: %v", late, err)
		} else if late && status.Code(err) != codes.Canceled && !errors.Is(err, context.Canceled) {
			t.Errorf("the call that was ended: %v", err)
		}
		<-stopped
	}
}
