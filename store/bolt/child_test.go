package bolt

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/study"
	"go.uber.org/goleak"
)

// The test binary runs itself with one of these roles, and then does only that.
const (
	roleVariable = "BKB_BOLT_TEST_ROLE"
	pathVariable = "BKB_BOLT_TEST_PATH"
	tagVariable  = "BKB_BOLT_TEST_TAG"
)

func TestMain(m *testing.M) {
	roles := map[string]func(path, tag string) error{"write": writeForEver, "hold": hold, "full": fillUp, "few": writeFew}
	if role := os.Getenv(roleVariable); role != "" {
		if err := roles[role](os.Getenv(pathVariable), os.Getenv(tagVariable)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// child prepares the test binary to run in a role, optionally as the child of another
// program.
func child(t *testing.T, role, path, tag string, under ...string) *exec.Cmd {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := append(under, binary)
	c := exec.CommandContext(t.Context(), args[0], args[1:]...)
	c.Env = append(os.Environ(), roleVariable+"="+role, pathVariable+"="+path, tagVariable+"="+tag)
	return c
}

const childWriters = 8

// writeForEver writes trials to its own studies and to a shared one, and creates and
// deletes others. It prints the acknowledged writes.
func writeForEver(path, tag string) error {
	s, err := Open(path, Options{LockTimeout: 10 * time.Second})
	if err != nil {
		return err
	}
	acks := newAcks(os.Stdout)
	var wg sync.WaitGroup
	failed := make(chan error, 2*childWriters)
	for w := range childWriters {
		wg.Go(func() { failed <- writeTrials(s, fmt.Sprintf("%s-w%d", tag, w), acks) })
		wg.Go(func() { failed <- churn(s, fmt.Sprintf("%s-c%d", tag, w), acks) })
	}
	return <-failed
}

// writeTrials commits one trial at a time.
func writeTrials(s *Store, name string, acks *acks) error {
	ctx := context.Background()
	info, err := s.Create(ctx, name, []study.Event{opened()})
	if err != nil {
		return err
	}
	acks.print("head", name, uint64(info.Head))
	for trial := 0; ; trial++ {
		if err := s.Commit(ctx, info.ID, info.Head, trials(trial, 1), nil); err != nil {
			return err
		}
		info.Head += 3
		acks.print("head", name, uint64(info.Head))
	}
}

// churn creates and deletes studies of 20 trials, which are too large to delete in one
// transaction.
func churn(s *Store, name string, acks *acks) error {
	ctx := context.Background()
	for i := 0; ; i++ {
		info, err := s.Create(ctx, fmt.Sprintf("%s-%d", name, i), append([]study.Event{opened()}, trials(0, 20)...))
		if err != nil {
			return err
		}
		if err := s.SaveSummaries(ctx, []store.Summary{{Study: info.ID, Position: info.Head, Data: make([]byte, 3000)}}); err != nil {
			return err
		}
		if err := s.Delete(ctx, info.ID); err != nil {
			return err
		}
		acks.print("gone", name, uint64(info.ID))
	}
}

// writeFew makes a few commits and prints the result of each.
func writeFew(path, tag string) error {
	n, err := strconv.Atoi(tag)
	if err != nil {
		return err
	}
	s, err := Open(path, Options{})
	if err != nil {
		return err
	}
	ctx := context.Background()
	info, err := s.Lookup(ctx, "few")
	if err != nil {
		return err
	}
	acks := newAcks(os.Stdout)
	for range n {
		err := s.Commit(ctx, info.ID, info.Head, trials(int(info.Head-1)/3, 1), nil)
		switch {
		case err == nil:
			info.Head += 3
			acks.print("head", "few", uint64(info.Head))
		case errors.Is(err, store.ErrUnknownOutcome):
			acks.print("unknown", "few", uint64(info.Head))
		default:
			return err
		}
	}
	return s.Close()
}

// hold opens the store and closes it when its input ends.
func hold(path, _ string) error {
	s, err := Open(path, Options{})
	if err != nil {
		return err
	}
	fmt.Println("open")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return s.Close()
}

// acks prints whole lines or nothing.
type acks struct {
	mu sync.Mutex
	w  io.Writer
}

func newAcks(w io.Writer) *acks { return &acks{w: w} }

func (a *acks) print(what, name string, n uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, _ = fmt.Fprintf(a.w, "%s %s %d\n", what, name, n)
}

// acked is the set of writes that a child reported as acknowledged.
type acked struct {
	heads   map[string]study.Position
	gone    []store.StudyID
	unknown int
}

// readAcks reads to the end and drops a line that was cut by the end of the process.
func readAcks(r io.Reader) acked {
	a := acked{heads: make(map[string]study.Position)}
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return a
		}
		fields := strings.Fields(line)
		n, _ := strconv.ParseUint(fields[2], 10, 64)
		switch fields[0] {
		case "head":
			a.heads[fields[1]] = study.Position(n)
		case "gone":
			a.gone = append(a.gone, store.StudyID(n))
		case "unknown":
			a.unknown++
		}
	}
}
