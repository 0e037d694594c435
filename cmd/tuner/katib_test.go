package main

import (
	"bytes"
	"context"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	pb "github.com/bkbtuner/bkb/proto/katib"
	"github.com/bkbtuner/bkb/tuner/katib"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	grpcstatus "google.golang.org/grpc/status"
)

// lockedBuffer is a buffer that one goroutine writes and another reads.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestKatib serves both services, and says that it cannot stop trials outside of a pod.
func TestKatib(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var out lockedBuffer
	done := make(chan int)
	go func() {
		done <- run(ctx, []string{
			"katib", "--db", filepath.Join(t.TempDir(), "tuner.db"), "--listen", "127.0.0.1:0", "--early-stopping", "127.0.0.1:0",
		}, strings.NewReader(""), &out, &out)
	}()
	addresses := regexp.MustCompile(`Katib on (\S+)\n[^$]*early stopping on (\S+)\n`)
	var found []string
	for end := time.Now().Add(time.Minute); found == nil; time.Sleep(10 * time.Millisecond) {
		if found = addresses.FindStringSubmatch(out.String()); found == nil && time.Now().After(end) {
			t.Fatalf("it does not serve:\n%s", out.String())
		}
	}
	dial := func(address string) *grpc.ClientConn {
		conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	suggestions, stopping := dial(found[1]), dial(found[2])
	for _, conn := range []*grpc.ClientConn{suggestions, stopping} {
		answer, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: katib.HealthService})
		if err != nil || answer.Status != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("the health is %v, %v", answer, err)
		}
	}
	_, err := pb.NewSuggestionClient(suggestions).ValidateAlgorithmSettings(ctx, &pb.ValidateAlgorithmSettingsRequest{})
	if grpcstatus.Code(err) != codes.InvalidArgument {
		t.Error(err)
	}
	_, err = pb.NewEarlyStoppingClient(stopping).SetTrialStatus(ctx, &pb.SetTrialStatusRequest{TrialName: "a-1"})
	if grpcstatus.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "not in a pod") {
		t.Error(err)
	}
	stop()
	if code := <-done; code != 0 {
		t.Errorf("status %d:\n%s", code, out.String())
	}
}
