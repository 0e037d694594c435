//go:build linux

package torture

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner/wire"
)

// TestMemoryLimit has workers report without pause to a study with 1,000 watches, half
// of which are not read. The server stays within its memory limit. It refuses calls
// that need memory, accepts outcomes, serves admins, and continues when there is room
// again.
func TestMemoryLimit(t *testing.T) {
	const limit = 256 << 20
	a := attack(t, false, "--max-memory", fmt.Sprint(limit), "--max-study-bytes", "0", "--max-study-reports", "0", "--write-rate", "-1",
		"--max-watches", "-1", "--max-watches-per-token", "-1", "--max-watches-per-study", "-1")
	a.create(t, "flooded")
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	a.watchAll(ctx, t, &group, "studies/flooded", 1000)
	peak := a.peakMemory(ctx, t, &group)
	before := peak()
	f := flood{attacked: a, refused: make(chan error, 1)}
	a.others(t, func() {
		for i := range 4 {
			c := a.dial(t)
			group.Go(func() { f.report(ctx, t, c, i) })
		}
		select {
		case err := <-f.refused:
			answer, _ := wire.ReadError(err)
			if !strings.Contains(err.Error(), "bytes of memory (tuner serve --max-memory)") || answer.RetryAfter != time.Second {
				t.Errorf("refused with %v, to try again after %s", err, answer.RetryAfter)
			}
		case <-time.After(time.Minute):
			t.Error("nothing was refused in a minute")
		}
	})
	a.bitten(t, "memory")
	time.Sleep(while(time.Second, 2*time.Second)) // the workers keep trying
	f.end(t)
	figures(t, "4 workers reported %.0f MB to 1,000 watches before memory was short and %d times were refused for it: memory went from %.0f to at most %.0f MB of %d",
		float64(f.bytes.Load())/(1<<20), f.refusals.Load(), before, peak(), limit>>20)
	if peak() > limit>>20 {
		t.Errorf("the server took %.0f MB", peak())
	}
	if _, err := a.dial(t).DeleteStudy(showing(t.Context(), a.admin), &pb.DeleteStudyRequest{Name: "studies/flooded"}); err != nil {
		t.Errorf("an admin deletes the study: %v", err)
	}
	cancel()
	worker := a.dial(t)
	var err error
	begun := time.Now()
	for ; time.Since(begun) < time.Minute; time.Sleep(50 * time.Millisecond) {
		if _, err = worker.Ask(showing(t.Context(), a.worker), &pb.AskRequest{Parent: "studies/s"}); err == nil {
			break
		}
	}
	if err != nil {
		t.Errorf("after the study was deleted: %v", err)
	}
	figures(t, "a worker could ask again %.1f s after the study was deleted", time.Since(begun).Seconds())
}

// watchAll opens n watches and reads every second one.
func (a *attacked) watchAll(ctx context.Context, t *testing.T, group *sync.WaitGroup, study string, n int) {
	t.Helper()
	var c pb.TunerClient
	for i := range n {
		if i%100 == 0 {
			c = a.dial(t)
		}
		stream, err := c.Watch(showing(ctx, a.worker), &pb.WatchRequest{Parent: study})
		if err == nil {
			_, err = stream.Header()
		}
		if err != nil {
			t.Fatalf("watch %d: %v", i, err)
		}
		if i%2 == 0 {
			group.Go(func() {
				for err := error(nil); err == nil; {
					_, err = stream.Recv()
				}
			})
		}
	}
}

// peakMemory returns a function that returns the most memory the server has had, in MB.
func (a *attacked) peakMemory(ctx context.Context, t *testing.T, group *sync.WaitGroup) func() float64 {
	var mu sync.Mutex
	most := 0.0
	look := func() {
		mu.Lock()
		defer mu.Unlock()
		most = max(most, memoryMB(t, a.cmd.Process.Pid))
	}
	look()
	group.Go(func() {
		for ctx.Err() == nil {
			look()
			time.Sleep(10 * time.Millisecond)
		}
	})
	return func() float64 {
		mu.Lock()
		defer mu.Unlock()
		return most
	}
}

// flood is a group of workers that report without pause.
type flood struct {
	*attacked
	bytes, refusals atomic.Int64
	refused         chan error // gets the first refusal for lack of memory

	mu     sync.Mutex
	trials []*pb.Trial // that run
}

// report runs one worker.
func (f *flood) report(ctx context.Context, t *testing.T, c pb.TunerClient, worker int) {
	ctx = showing(ctx, f.worker)
	const batch, metrics = 500, 16
	for ctx.Err() == nil {
		asked, err := c.Ask(ctx, &pb.AskRequest{Parent: "studies/flooded", Worker: fmt.Sprint("w", worker), New: true})
		if err != nil {
			f.note(ctx, t, err)
			continue
		}
		trial := asked.Trials[0]
		f.mu.Lock()
		f.trials = append(f.trials, trial)
		f.mu.Unlock()
		for step := 0; step < 100_000 && ctx.Err() == nil; {
			_, err := c.Report(ctx, &pb.ReportRequest{Name: trial.Name, Epoch: trial.Epoch, Reports: largeReports(step, batch, metrics)})
			if status.Code(err) == codes.FailedPrecondition { // told in the meantime
				break
			}
			if err != nil {
				f.note(ctx, t, err)
				continue
			}
			step += batch
			f.bytes.Add(batch * metrics * 22)
		}
	}
}

// note records an error of a worker.
func (f *flood) note(ctx context.Context, t *testing.T, err error) {
	switch {
	case ctx.Err() != nil || err == io.EOF:
	case status.Code(err) == codes.ResourceExhausted:
		f.refusals.Add(1)
		select {
		case f.refused <- err:
		default:
		}
		time.Sleep(20 * time.Millisecond)
	case status.Code(err) == codes.NotFound: // the study was deleted
		time.Sleep(20 * time.Millisecond)
	default:
		t.Errorf("a worker of the flood: %v", err)
		time.Sleep(time.Second)
	}
}

// end tells the outcomes of the trials while memory is short.
func (f *flood) end(t *testing.T) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.dial(t)
	for _, trial := range f.trials {
		if _, err := c.Tell(showing(t.Context(), f.worker), &pb.TellRequest{Name: trial.Name, Epoch: trial.Epoch, Outcome: &pb.Outcome{State: pb.TrialState_TRIAL_STATE_INFEASIBLE}}); err != nil {
			t.Errorf("telling while memory is short: %v", err)
		}
	}
}
