//go:build unix

package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/internal/pgtest"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/storetest/eventtest"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/jackc/pgx/v5"
)

// ask runs a query on a server and returns the one value, with 0 for none.
func ask(t *testing.T, address, sql string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), sql).Scan(&n); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		t.Fatal(err)
	}
	return n
}

// TestFailover kills a primary whose standby lags and promotes the standby. It does so as
// often as BKB_PG_FAILOVERS says, because each takes seconds. With a synchronous standby nothing is lost. With an asynchronous
// one something is, or else the test tests nothing, and the store had warned.
func TestFailover(t *testing.T) {
	text := os.Getenv("BKB_PG_FAILOVERS")
	if text == "" {
		t.Skip("each failover starts two servers; make postgres runs it")
	}
	rounds, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, synchronous := range []bool{true, false} {
		t.Run(fmt.Sprint("synchronous=", synchronous), func(t *testing.T) {
			acknowledged, lost := 0, 0
			for range rounds {
				a, l := failover(t, synchronous)
				acknowledged, lost = acknowledged+a, lost+l
			}
			t.Logf("%d failovers: %d acknowledged, %d lost", rounds, acknowledged, lost)
			if acknowledged == 0 || synchronous != (lost == 0) {
				t.Errorf("%d of %d acknowledged were lost", lost, acknowledged)
			}
		})
	}
}

func failover(t *testing.T, synchronous bool) (acknowledged, lost int) {
	primary, err := pgtest.Start()
	if err != nil {
		pgtest.Skip(t, err)
	}
	defer primary.Stop()
	if _, _, err := Init(t.Context(), primary.Address(), InitOptions{}); err != nil {
		t.Fatal(err)
	}
	standby, err := primary.Standby("b")
	if err != nil {
		t.Fatal(err)
	}
	defer standby.Stop()
	if synchronous {
		exec(t, primary.Address(), "ALTER SYSTEM SET synchronous_standby_names = 'b'")
		exec(t, primary.Address(), "SELECT pg_reload_conf()")
	}
	wanted := map[bool]string{true: "sync", false: "async"}[synchronous]
	for begun := time.Now(); ask(t, primary.Address(), "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = '"+wanted+"'") == 0; time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatal("the standby does not follow")
		}
	}
	both := fmt.Sprintf("postgres://bkb@127.0.0.1:%d,127.0.0.1:%d/postgres", primary.Port, standby.Port)
	s, err := Open(t.Context(), both, Options{Settle: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	d, err := s.Durability(t.Context())
	if err != nil || d.synchronous() != synchronous || strings.Contains(strings.Join(d.warnings(), ""), "asynchronous") == synchronous {
		t.Errorf("Durability = %+v, %v", d, err)
	}
	var clients sync.WaitGroup
	var stop atomic.Bool
	var mu sync.Mutex
	for i := range 8 {
		info, err := s.Create(t.Context(), fmt.Sprint("c", i), eventtest.Examples()[:1])
		if err != nil {
			t.Fatal(err)
		}
		clients.Go(func() {
			a, l := commitThrough(t, s, info, &stop)
			mu.Lock()
			defer mu.Unlock()
			acknowledged, lost = acknowledged+a, lost+l
		})
	}
	time.Sleep(500 * time.Millisecond)
	receiver := ask(t, standby.Address(), "SELECT pid FROM pg_stat_wal_receiver")
	if receiver == 0 || syscall.Kill(receiver, syscall.SIGSTOP) != nil {
		t.Fatal("the receiver cannot be stopped: ", receiver)
	}
	time.Sleep(300 * time.Millisecond)
	primary.Kill()
	// What the receiver had not received is gone with the primary. The standby starts again
	// without it, as it must after a child was killed.
	_ = syscall.Kill(receiver, syscall.SIGKILL)
	standby.Kill()
	if err := standby.Run(); err != nil {
		t.Fatal(err)
	}
	if err := standby.Promote(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	stop.Store(true)
	clients.Wait()
	return acknowledged, lost
}

// commitThrough commits until stop, and counts the acknowledged events that the log does
// not have then.
func commitThrough(t *testing.T, s *Store, info store.Info, stop *atomic.Bool) (acknowledged, lost int) {
	var marks []string
	head := info.Head
	for n := 0; !stop.Load(); n++ {
		id := fmt.Sprint(info.Name, "/", n)
		err := s.Commit(t.Context(), info.ID, head, []study.Event{{Time: time.Now(), Request: study.Request{ID: id}, Body: study.Paused{}}}, nil)
		if err == nil {
			marks = append(marks, id)
			head++
			continue
		}
		now, err := s.Stat(t.Context(), info.ID)
		if errors.As(err, new(*store.NotFoundError)) { // the standby did not even have the study
			return len(marks), len(marks)
		}
		if err != nil {
			t.Error(err)
			return len(marks), 0
		}
		head = now.Head
	}
	there := make(map[string]bool)
	for r, err := range s.Read(t.Context(), info.ID, 2) {
		if err != nil {
			t.Error(err)
		}
		there[r.Event.Request.ID] = true
	}
	for _, id := range marks {
		if !there[id] {
			lost++
		}
	}
	return len(marks), lost
}

// TestInterruptedWait interrupts writes that wait for a synchronous standby, which the
// database then acknowledges with a warning, and ends their sessions. Neither is
// acknowledged to the caller until a standby has them.
func TestInterruptedWait(t *testing.T) {
	t.Parallel() // it waits more than it computes
	server, err := pgtest.Start()
	if err != nil {
		pgtest.Skip(t, err)
	}
	defer server.Stop()
	if _, _, err := Init(t.Context(), server.Address(), InitOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, how := range []string{"pg_cancel_backend", "pg_terminate_backend"} {
		for what, write := range map[string]func(s *Store, info store.Info) error{
			"commit": func(s *Store, info store.Info) error {
				return s.Commit(t.Context(), info.ID, 1, []study.Event{{Body: study.Paused{}}}, nil)
			},
			"create": func(s *Store, info store.Info) error {
				_, err := s.Create(t.Context(), info.Name+"-more", eventtest.Examples()[:1])
				return err
			},
			"delete": func(s *Store, info store.Info) error { return s.Delete(t.Context(), info.ID) },
		} {
			t.Run(what+" "+how, func(t *testing.T) { interrupt(t, server, how, what, write) })
		}
	}
}

func interrupt(t *testing.T, server *pgtest.Server, how, what string, write func(s *Store, info store.Info) error) {
	s, err := Open(t.Context(), server.Address(), Options{Settle: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var info store.Info
	var infos []store.Info // some may be written before the database has read its settings
	for i := range 20 {
		info, err := s.Create(t.Context(), fmt.Sprint(how, what, i), eventtest.Examples()[:1])
		if err != nil {
			t.Fatal(err)
		}
		infos = append(infos, info)
	}
	exec(t, server.Address(), "ALTER SYSTEM SET synchronous_standby_names = 'absent'")
	exec(t, server.Address(), "SELECT pg_reload_conf()")
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	interrupted := 0
	work.Go(func() {
		for ctx.Err() == nil {
			interrupted += ask(t, server.Address(), "SELECT count("+how+"(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
			time.Sleep(50 * time.Millisecond)
		}
	})
	for i := range infos {
		info = infos[i]
		if err = write(s, info); err != nil {
			break
		}
		time.Sleep(time.Duration(i) * 100 * time.Millisecond)
	}
	cancel()
	work.Wait()
	if !errors.As(err, new(*store.UnknownError)) || interrupted == 0 {
		t.Errorf("a write that no standby has, interrupted %d times: %v", interrupted, err)
	}
	exec(t, server.Address(), "ALTER SYSTEM RESET synchronous_standby_names")
	exec(t, server.Address(), "SELECT pg_reload_conf()")
	var there bool // the primary has done it
	switch what {
	case "commit":
		got, err := s.Stat(t.Context(), info.ID)
		there = err == nil && got.Head == 2
	case "create":
		_, err := s.Lookup(t.Context(), info.Name+"-more")
		there = err == nil
	case "delete":
		_, err := s.Stat(t.Context(), info.ID)
		there = errors.As(err, new(*store.NotFoundError))
	}
	if !there {
		t.Error("nothing was written, so that nothing was tested")
	}
}
