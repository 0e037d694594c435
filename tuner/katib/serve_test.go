package katib

import (
	"context"
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	pb "github.com/bkbtuner/bkb/proto/katib"
)

// TestServeBounded checks that idle connections and calls without end are bounded, and that
// Katib and its probes are answered beside them.
func TestServeBounded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	at, served := make(chan string, 1), make(chan error, 1)
	go func() {
		served <- Serve(ctx, open(t), Config{Suggestions: "127.0.0.1:0", OnListening: func(_ string, a net.Addr) { at <- a.String() }})
	}()
	defer func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	address := <-at
	const many, most = 700, 512
	var idle []net.Conn
	for range many {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		idle = append(idle, c)
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	suggest := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := pb.NewSuggestionClient(conn).GetSuggestions(ctx, &pb.GetSuggestionsRequest{Experiment: bowl(nil), CurrentRequestNumber: 1, TotalRequestNumber: 1}, grpc.WaitForReady(true))
		return err
	}
	if err := suggest(); err != nil {
		t.Errorf("beside %d idle connections: %v", many, err)
	}
	open := func() (n int) {
		for _, c := range idle { // whose ends have arrived
			c.SetReadDeadline(time.Now().Add(2 * time.Millisecond))
			for err = nil; err == nil; {
				_, err = c.Read(make([]byte, 64)) // the server's settings
			}
			if errors.Is(err, os.ErrDeadlineExceeded) {
				n++
			}
		}
		return n
	}
	for began := time.Now(); open() > most; {
		if time.Since(began) > time.Minute {
			t.Fatalf("%d idle connections of one address are open", open())
		}
	}

	// Calls whose request never comes.
	ended := make(chan error, maxCalls)
	hang, stop := context.WithCancel(t.Context())
	defer stop()
	for range maxCalls / 4 {
		s, err := conn.NewStream(hang, &grpc.StreamDesc{ClientStreams: true}, pb.Suggestion_GetSuggestions_FullMethodName)
		if err != nil {
			t.Fatal(err)
		}
		go func() { ended <- s.RecvMsg(new(pb.GetSuggestionsReply)) }()
	}
	for began := time.Now(); status.Code(suggest()) != codes.ResourceExhausted; {
		if time.Since(began) > time.Minute {
			t.Fatal("calls of one address have no limit")
		}
	}
	stop()
	for range maxCalls / 4 {
		<-ended
	}
	health := healthpb.NewHealthClient(conn)
	for began := time.Now(); ; {
		_, err := health.Check(t.Context(), &healthpb.HealthCheckRequest{Service: HealthService})
		if err == nil {
			break
		}
		if time.Since(began) > time.Minute {
			t.Fatal(err)
		}
	}
	w, err := health.Watch(t.Context(), &healthpb.HealthCheckRequest{})
	if err == nil {
		_, err = w.Recv()
	}
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("a health watch: %v", err)
	}
}
