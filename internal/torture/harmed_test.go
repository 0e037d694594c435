//go:build linux

package torture

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/client"
	"github.com/bkbtuner/bkb/tuner/study"
)

// harm is a kind of damage to the file of a server.
type harm struct {
	name   string
	do     func(db string) error
	status int    // exit code of the process
	says   string // part of its log
	loss   bool   // whether calls are answered DATA_LOSS
}

func cutTo(size int64) func(string) error {
	return func(db string) error { return os.Truncate(db, size) }
}

// TestFileHarmed damages the file of a server under load. Calls end at once, health
// checks answer NOT_SERVING, and the process ends with a failure. A SIGTERM meanwhile
// has no effect on this.
func TestFileHarmed(t *testing.T) {
	t.Parallel() // it waits more than it computes
	heavy(t)
	folder := evidence(t, seed(t))
	for _, h := range []harm{
		{"cut to nothing", cutTo(0), 7, "damaged", true},
		{"cut to a page", cutTo(4096), 7, "damaged", true},
		{"cut to two pages", cutTo(8192), 7, "damaged", true},
		{"cut to five pages", cutTo(5 * 4096), 7, "damaged", true},
		{"removed", os.Remove, 1, "nothing at this path", false},
		{"renamed", func(db string) error { return os.Rename(db, db+".old") }, 1, "nothing at this path", false},
		{"replaced", func(db string) error {
			return errors.Join(os.Rename(db, db+".old"), os.WriteFile(db, nil, 0o600))
		}, 1, "another file", false},
	} {
		for _, signalled := range []bool{false, true} {
			name := h.name
			if signalled {
				name += ", and SIGTERM"
			}
			if signalled && h.name != "cut to a page" {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				db := filepath.Join(folder, name, "tuner.db")
				if err := os.MkdirAll(filepath.Dir(db), 0o755); err != nil {
					t.Fatal(err)
				}
				h.run(t, db, signalled)
			})
		}
	}
}

func (h harm) run(t *testing.T, db string, signalled bool) {
	var log syncBuffer
	server, err := serveAt(t, db, "127.0.0.1:0", &log, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer server.kill()
	server.address = listening(t, log.String())
	c := server.dial(t)
	defer c.Close()
	if _, err := c.CreateStudy(context.Background(), "s", study.Create{Spec: spec(t)}); err != nil {
		t.Fatal(err)
	}
	codes := make(map[tuner.Code]int)
	var mu sync.Mutex
	var calls sync.WaitGroup
	ended := make(chan struct{})
	var worst time.Duration
	for range 8 {
		calls.Go(func() {
			c, err := client.Dial(server.address, client.Options{Plaintext: true, RetryFor: -1})
			if err != nil {
				return
			}
			defer c.Close()
			for {
				select {
				case <-ended:
					return
				default:
				}
				begun := time.Now()
				_, err := c.Enqueue(context.Background(), "s", study.Enqueue{Config: config(0.5, 7)})
				mu.Lock()
				codes[tuner.CodeOf(err)]++
				worst = max(worst, time.Since(begun))
				mu.Unlock()
				time.Sleep(time.Millisecond) // calls that fail would leave the server no processor
			}
		})
	}
	notServing, serving := make(chan bool, 1), make(chan struct{})
	go func() { notServing <- seesNotServing(server.address, serving) }()
	<-serving
	for answered := 0; answered == 0; time.Sleep(10 * time.Millisecond) {
		mu.Lock()
		answered = len(codes)
		mu.Unlock()
	}
	if err := h.do(db); err != nil {
		t.Fatal(err)
	}
	if h.loss { // cut before the end of a commit, the file is made as long again by it, and nothing is seen
		calls.Go(func() {
			for {
				select {
				case <-ended:
					return
				case <-time.After(time.Second):
					_ = h.do(db)
				}
			}
		})
	}
	if signalled {
		time.Sleep(20 * time.Millisecond)
		_ = syscall.Kill(server.cmd.Process.Pid, syscall.SIGTERM)
	}
	inTime, err := server.wait(time.Minute)
	close(ended)
	calls.Wait()
	exit := (*exec.ExitError)(nil)
	if h.loss && errors.As(err, &exit) && exit.ExitCode() == 2 && strings.Contains(log.String(), "freepages") {
		t.Log("the file was cut in the middle of a commit, and the engine ended the process")
		return
	}
	switch {
	case !inTime:
		t.Errorf("the server went on")
	case h.status == 7 && !signalled && (!errors.As(err, &exit) || exit.ExitCode() != h.status):
		t.Errorf("the server ended with %v, want status %d", err, h.status)
	case !signalled && err == nil:
		t.Errorf("the server ended without a failure")
	}
	if !signalled && !strings.Contains(log.String(), h.says) {
		t.Errorf("the log does not say %q", h.says)
	}
	if !signalled && !<-notServing {
		t.Errorf("health did not say NOT_SERVING")
	}
	if h.loss && !signalled && codes[tuner.Damaged] == 0 {
		t.Errorf("no call was answered DATA_LOSS")
	}
	if codes[tuner.Internal] > 0 || worst > 45*time.Second {
		t.Errorf("calls ended as %v, the longest took %s", codes, worst)
	}
	if t.Failed() {
		t.Logf("codes %v\n%s", codes, log.String())
	}
}

// listening returns the address at which a server listens, from its log.
func listening(t *testing.T, log string) string {
	t.Helper()
	for line := range strings.Lines(log) {
		if address, ok := strings.CutPrefix(line, "Listening on "); ok {
			return strings.TrimSpace(address)
		}
	}
	t.Fatal("the log names no address")
	return ""
}

// seesNotServing watches the health of a server until it answers NOT_SERVING or ends. It
// closes watching after the first answer, or without one.
func seesNotServing(address string, watching chan<- struct{}) bool {
	seen := sync.OnceFunc(func() { close(watching) })
	defer seen()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return false
	}
	defer conn.Close()
	stream, err := healthpb.NewHealthClient(conn).Watch(context.Background(), &healthpb.HealthCheckRequest{})
	if err != nil {
		return false
	}
	for {
		m, err := stream.Recv()
		if err != nil {
			return false
		}
		seen()
		if m.GetStatus() == healthpb.HealthCheckResponse_NOT_SERVING {
			return true
		}
	}
}
