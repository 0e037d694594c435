package postgres

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/storetest/eventtest"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/jackc/pgx/v5"
)

// cutter is a proxy that cuts connections at random: both ends at once, the way back
// alone, or the client's end while the request goes on.
type cutter struct {
	listener net.Listener
	to       string
	mean     time.Duration // life of a connection
	cuts     atomic.Int64
	work     sync.WaitGroup
}

func startCutter(t *testing.T, to string, mean time.Duration) *cutter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{listener: l, to: to, mean: mean}
	c.work.Go(c.serve)
	t.Cleanup(func() {
		_ = l.Close()
		c.work.Wait()
	})
	return c
}

func (c *cutter) serve() {
	for {
		in, err := c.listener.Accept()
		if err != nil {
			return
		}
		c.work.Go(func() { c.pass(in) })
	}
}

func (c *cutter) pass(in net.Conn) {
	defer in.Close()
	out, err := net.Dial("tcp", c.to)
	if err != nil {
		return
	}
	defer out.Close()
	var deaf atomic.Bool // answers are dropped
	over := make(chan struct{}, 2)
	c.work.Go(func() {
		_, _ = io.Copy(out, in)
		_ = out.(*net.TCPConn).CloseWrite()
		over <- struct{}{}
	})
	c.work.Go(func() {
		defer func() { over <- struct{}{} }()
		b := make([]byte, 1<<16)
		for {
			n, err := out.Read(b)
			if err != nil || deaf.Load() {
				_ = in.Close()
				return
			}
			if _, err := in.Write(b[:n]); err != nil {
				return
			}
		}
	})
	select {
	case <-over:
		return
	case <-time.After(time.Duration(rand.ExpFloat64() * float64(c.mean))):
	}
	c.cuts.Add(1)
	switch rand.IntN(3) {
	case 0: // both ends
	case 1: // the way back
		deaf.Store(true)
		select {
		case <-over:
		case <-time.After(time.Second):
		}
	case 2: // the client's end, and the request goes on
		deaf.Store(true)
		_ = in.Close()
		select {
		case <-over:
		case <-time.After(time.Second):
		}
	}
}

// verdict is the result of a test with broken connections.
type verdict struct {
	acknowledged, lost, doubled, refusedButThere, unknown int
}

// chaos lets 16 writers commit through a cutter while another session ends random
// backends, and compares their answers with the log.
func chaos(t *testing.T, d time.Duration) verdict {
	address := newStore(t)
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	c := startCutter(t, u.Host, 60*time.Millisecond)
	direct := mustOpen(t, address, Options{})
	u.Host = c.listener.Addr().String()
	var s *Store
	for s == nil { // the connection that opens may be cut too
		if s, err = Open(t.Context(), u.String(), Options{UnsafeNoSync: true}); err != nil && !errors.Is(err, store.ErrUnavailable) {
			t.Fatal(err)
		}
	}
	defer s.Close()
	stop := make(chan struct{})
	var ending, clients sync.WaitGroup
	var ended atomic.Int64
	ending.Go(func() { endBackends(t, address, u.Query().Get("schema"), stop, &ended) })
	var mu sync.Mutex
	var sum verdict
	var acknowledged atomic.Int64
	begun := time.Now()
	goOn := func() bool { // on a slow machine until something was tested
		took := time.Since(begun)
		return took < d || took < d+time.Minute && (c.cuts.Load() == 0 || ended.Load() == 0 || acknowledged.Load() == 0)
	}
	for i := range 16 {
		info, err := direct.Create(t.Context(), fmt.Sprint("c", i), eventtest.Examples()[:1])
		if err != nil {
			t.Fatal(err)
		}
		clients.Go(func() {
			v := commitWhile(t, s, direct, info, goOn, &acknowledged)
			mu.Lock()
			defer mu.Unlock()
			sum.acknowledged += v.acknowledged
			sum.lost += v.lost
			sum.doubled += v.doubled
			sum.refusedButThere += v.refusedButThere
			sum.unknown += v.unknown
		})
	}
	clients.Wait()
	close(stop)
	ending.Wait()
	t.Logf("%d connections cut, %d backends ended: %+v", c.cuts.Load(), ended.Load(), sum)
	if c.cuts.Load() == 0 || ended.Load() == 0 || sum.acknowledged == 0 {
		t.Error("nothing was tested")
	}
	return sum
}

// endBackends ends a random session of the store, again and again.
func endBackends(t *testing.T, address, schema string, stop <-chan struct{}, ended *atomic.Int64) {
	u, _ := url.Parse(address)
	u.RawQuery = ""
	for {
		select {
		case <-stop:
			return
		case <-time.After(30 * time.Millisecond):
		}
		conn, err := pgx.Connect(t.Context(), u.String())
		if err != nil {
			continue
		}
		var n int64
		err = conn.QueryRow(t.Context(), `SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity
			WHERE pid <> pg_backend_pid() AND query LIKE '%' || $1 || '%' ORDER BY random() LIMIT 1) one`, schema).Scan(&n)
		if err == nil {
			ended.Add(n)
		}
		_ = conn.Close(t.Context())
	}
}

// commitWhile commits events to one study and compares the log with the answers. It counts
// those that are acknowledged.
func commitWhile(t *testing.T, s, direct *Store, info store.Info, goOn func() bool, count *atomic.Int64) (v verdict) {
	acknowledged, refused := make(map[string]bool), make(map[string]bool)
	head := info.Head
	for n := 0; goOn(); n++ {
		id := fmt.Sprint(info.Name, "/", n)
		err := s.Commit(t.Context(), info.ID, head, []study.Event{{Time: time.Now(), Request: study.Request{ID: id}, Body: study.Paused{}}}, nil)
		switch {
		case err == nil:
			acknowledged[id] = true
			count.Add(1)
			head++
			continue
		case errors.Is(err, store.ErrUnknownOutcome):
			v.unknown++
		default:
			refused[id] = true
		}
		now, err := direct.Stat(t.Context(), info.ID)
		if err != nil {
			t.Error(err)
			return v
		}
		head = now.Head
	}
	time.Sleep(1500 * time.Millisecond) // for statements that are still on their way
	there := make(map[string]int)
	for r, err := range direct.Read(t.Context(), info.ID, 2) {
		if err != nil {
			t.Error(err)
			return v
		}
		there[r.Event.Request.ID]++
	}
	v.acknowledged = len(acknowledged)
	for id, n := range there {
		if n > 1 {
			v.doubled++
		}
		if refused[id] {
			v.refusedButThere++
		}
	}
	for id := range acknowledged {
		if there[id] == 0 {
			v.lost++
		}
	}
	return v
}

// TestChaos runs for BKB_PG_CHAOS, or else for 2 s.
func TestChaos(t *testing.T) {
	t.Parallel() // it waits more than it computes
	d := 2 * time.Second
	if text := os.Getenv("BKB_PG_CHAOS"); text != "" {
		var err error
		if d, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	if v := chaos(t, d); v.lost+v.doubled+v.refusedButThere > 0 {
		t.Errorf("promises were broken: %+v", v)
	}
}
