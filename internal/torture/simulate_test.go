package torture

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/study"
)

// TestSimulate runs the service of package tuner from many seeds, with clients, a disk
// and clocks that misbehave.
func TestSimulate(t *testing.T) {
	n := often(t, "SEEDS", 100)
	first := seed(t)
	var total counts
	begun := time.Now()
	for i := range n {
		s := simulate(t, first+uint64(i))
		if s.fault != "" {
			keepTrace(t, s)
			t.Fatalf("seed %d (BKB_TORTURE_SEED=%d BKB_TORTURE_SEEDS=1): %s\n%s", s.seed, s.seed, s.fault, tail(s.trace, 60))
		}
		total.add(s.counts)
	}
	figures(t, "%d seeds in %s: %d steps, %d calls, %d acknowledged, %d sent again, %d crashes, %d commits refused or of unknown outcome, %d leases expired, %d jumps of the wall clock, %d suggestions and %d models recomputed, %d messages of watches with %d cuts; every promise kept",
		n, time.Since(begun).Round(time.Second), total.steps, total.calls, total.acked, total.again, total.crashes, total.faults, total.expired, total.jumps, total.explained, total.models, total.watched, total.cuts)
	if n >= 100 && (total.crashes == 0 || total.again == 0 || total.expired == 0 || total.faults == 0 || total.explained == 0 || total.watched == 0 || total.cuts == 0 || n >= 2000 && total.models == 0) {
		t.Errorf("too little happened: %+v", total)
	}
}

// TestSeedsRepeat checks that a seed repeats a run. Commits of two studies at the same
// instant can change places, so a seed sometimes runs in two ways. With one processor
// that is rare, unless the machine is busy, so that there is a second try.
func TestSeedsRepeat(t *testing.T) {
	racetest.Alone(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const seeds, may = 8, 2
	differ := differing(t, seeds)
	if differ > may {
		differ = differing(t, seeds)
	}
	if differ > may {
		t.Errorf("%d of %d seeds ran in two ways, more than %d", differ, seeds, may)
	}
}

// differing counts the seeds that run in two ways.
func differing(t *testing.T, seeds int) (differ int) {
	first := seed(t)
	for i := range seeds {
		a, b := simulate(t, first+uint64(i)), simulate(t, first+uint64(i))
		if digest(a.trace) == digest(b.trace) {
			continue
		}
		differ++
		k := 0
		for k < min(len(a.trace), len(b.trace)) && a.trace[k] == b.trace[k] {
			k++
		}
		t.Logf("seed %d ran in two ways, from step %d on:\n%s\nand\n%s", a.seed, k, tail(a.trace[:min(k+1, len(a.trace))], 5), tail(b.trace[:min(k+1, len(b.trace))], 5))
	}
	return differ
}

func digest(lines []string) uint64 {
	h := fnv.New64a()
	for _, l := range lines {
		_, _ = h.Write([]byte(l))
	}
	return h.Sum64()
}

func tail(lines []string, n int) string { return strings.Join(lines[max(0, len(lines)-n):], "\n") }

func keepTrace(t *testing.T, s *simulation) {
	folder := evidence(t, s.seed)
	_ = os.WriteFile(filepath.Join(folder, "trace"), []byte(strings.Join(s.trace, "\n")), 0o644)
}

// counts counts events of a simulation.
type counts struct {
	steps, calls, acked, again, crashes, faults, expired, jumps, explained, models int
	watched, cuts                                                                  int // messages of watches, and cuts of them
}

func (c *counts) add(d counts) {
	c.steps, c.calls, c.acked, c.again = c.steps+d.steps, c.calls+d.calls, c.acked+d.acked, c.again+d.again
	c.crashes, c.faults, c.expired, c.jumps = c.crashes+d.crashes, c.faults+d.faults, c.expired+d.expired, c.jumps+d.jumps
	c.explained, c.models = c.explained+d.explained, c.models+d.models
	c.watched, c.cuts = c.watched+d.watched, c.cuts+d.cuts
}

// simulation is one run.
type simulation struct {
	seed    uint64
	random  *rand.Rand
	lease   time.Duration
	spec    study.Spec
	disk    *simDisk
	life    *simLife // of the current service
	service *engine.Engine
	fleet   []*simServer // several servers instead of one service
	late    []func()     // writes of unknown outcome that are still to be done
	boots   int          // of servers after the first ones
	buried  int          // servers
	wall    atomic.Int64 // offset of the wall clock in nanoseconds
	workers []*simWorker
	serial  int
	counts  counts
	trace   []string
	begun   time.Time

	mu       sync.Mutex
	finished []*simCall // since the last collection
	fault    string     // the first broken promise
	book     *book
	watches  *simWatches
}

const simSteps = 150

// modelled is the number of seeds for each one whose proposer has a model. Such a seed
// takes ten times as long.
const modelled = 64

// simulate runs one seed in a bubble.
func simulate(t *testing.T, seed uint64) *simulation { return simulateFleet(t, seed, 0) }

// simulateFleet is simulate with several servers, or with one service for 0 servers.
func simulateFleet(t *testing.T, seed uint64, servers int) *simulation {
	s := &simulation{seed: seed, random: rand.New(rand.NewPCG(seed, 3)), fleet: make([]*simServer, servers)}
	if servers == 0 {
		s.fleet = nil
	}
	synctest.Test(t, func(t *testing.T) { s.run(t) })
	return s
}

func (s *simulation) run(t *testing.T) {
	s.begun = time.Now()
	s.lease = []time.Duration{2 * time.Second, 10 * time.Second, 10 * time.Second, 50 * time.Second}[s.random.IntN(4)]
	s.spec = spec(t)
	s.spec.Lease, s.spec.MaxRetries = s.lease, s.random.IntN(3)
	s.spec.MaxTrials = []int{0, 0, 12, 25}[s.random.IntN(4)]
	if s.random.IntN(4) == 0 {
		s.spec.Proposer = study.Component{Name: propose.Sobol}
	}
	if s.seed%modelled == 0 {
		s.spec.Proposer = study.Component{Name: propose.BKB, Options: `{"start": 3, "cap": 16}`}
	}
	s.disk = newSimDisk(s)
	s.book = newBook(s)
	for i := range 4 {
		s.workers = append(s.workers, &simWorker{index: i, named: i%2 == 0})
	}
	if s.fleet == nil {
		s.boot()
	}
	for i := range s.fleet {
		s.bootServer(i)
	}
	s.watch()
	for s.counts.steps = 0; s.counts.steps < simSteps && s.fault == ""; s.counts.steps++ {
		s.step()
	}
	if s.fault == "" {
		s.settle()
	}
	if s.fault == "" {
		s.explain(t.Context())
	}
	s.late = nil
	s.watches.end()
	if s.fleet == nil {
		s.disk.end(s.life)
		s.service.Close()
	}
	for _, v := range s.fleet {
		v.thaw()
		s.disk.end(v.life)
		v.Close()
	}
	time.Sleep(time.Second) // calls that sleep before they try again meet the closed service
	synctest.Wait()
}

// boot starts a new life of the service on the disk.
func (s *simulation) boot() {
	s.life = &simLife{disk: s.disk}
	s.service = engine.Open(s.life, engine.Options{
		LongLived: true, IdleTimeout: 30 * time.Second, ProposeTimeout: time.Second,
		Now:     func() time.Time { return time.Now().Add(time.Duration(s.wall.Load())) },
		OnFatal: func(error) { s.life.fatal.Store(true) },
	})
	s.say("boot")
}

// crash ends the service as kill -9 does. A part of the waiting writes reaches the
// disk, and no client gets an answer.
func (s *simulation) crash() {
	s.counts.crashes++
	old := s.service
	s.life.dead.Store(true)
	for _, w := range s.disk.waiting() {
		w.release(decision{write: s.random.IntN(2) == 0, err: errDead})
	}
	synctest.Wait()
	s.collect()
	s.say("crash")
	go old.Close()
	synctest.Wait()
	s.boot()
}

// step takes one step and waits until all goroutines are blocked.
func (s *simulation) step() {
	waiting := s.disk.waiting()
	switch n := s.random.IntN(100); {
	case s.fleet != nil && s.stepFleet():
	case s.life != nil && s.life.fatal.Load():
		s.crash()
	case n < 45 && len(waiting) > 0:
		s.release(waiting[s.random.IntN(len(waiting))])
	case n < 80:
		s.act(s.workers[s.random.IntN(len(s.workers))])
	case n < 90:
		s.sleep()
	case n < 93:
		s.jump()
	case n < 95:
		s.giveUp()
	case n < 97 && s.fleet != nil:
		s.crashServer(s.random.IntN(len(s.fleet)))
	case n < 97:
		s.crash()
	default:
		s.act(s.workers[s.random.IntN(len(s.workers))])
	}
	synctest.Wait()
	s.collect()
	s.book.check()
	s.watches.step()
	synctest.Wait()
}

// release decides the fate of a commit.
func (s *simulation) release(w *simWrite) {
	d := decision{write: true}
	switch s.random.IntN(40) {
	case 0, 1:
		d = decision{err: errFull}
	case 2:
		d = decision{err: errUnknown}
	case 3:
		d = decision{write: true, err: errUnknown}
	}
	if s.fleet != nil && d.err == errUnknown {
		s.forget(w, &d)
	}
	if d.err != nil {
		s.counts.faults++
	}
	s.say("disk: %s %s → written %t, %v", w.what, w.name, d.write, d.err)
	w.release(d)
}

func (s *simulation) sleep() {
	d := []time.Duration{10 * time.Millisecond, time.Second, s.lease / 2, s.lease * 6 / 5, 3 * s.lease, 40 * time.Second}[s.random.IntN(6)]
	s.say("%s pass", d)
	// Sleep in pieces, so that the process is not stopped for longer and pending events
	// are written meanwhile.
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(min(time.Until(end), 500*time.Millisecond))
		synctest.Wait()
	}
}

// jump sets the wall clock, by less than the time for which requests are remembered.
func (s *simulation) jump() {
	s.counts.jumps++
	off := []time.Duration{-3 * time.Hour, -time.Hour, 0, time.Hour, 3 * time.Hour}[s.random.IntN(5)]
	s.wall.Store(int64(off))
	s.say("the wall clock is %s off", off)
}

// giveUp has a client give up a call.
func (s *simulation) giveUp() {
	for _, w := range s.workers {
		if w.call != nil && s.random.IntN(2) == 0 {
			s.say("worker %d gives up on %s", w.index, w.call.id)
			w.call.cancel()
			return
		}
	}
}

// settle lets the simulation come to rest. Every call is answered, every lease without
// heartbeats expires, and the service is healthy again.
func (s *simulation) settle() {
	if s.fleet != nil {
		s.settleFleet()
		return
	}
	s.book.quietSince = time.Now()
	touched := new(simLife)
	lookers := []*simWorker{{index: 8}, {index: 9}}
	s.workers = append(s.workers, lookers...)
	for range 800 {
		if touched != s.life { // a call must load the studies, so that their leases expire
			touched = s.life
			for i, name := range []string{"a", "b"} {
				if w := lookers[i]; w.call == nil && s.book.exists(name) {
					s.send(w, &simCall{worker: w, kind: "study", id: "settle", study: name})
					synctest.Wait()
				}
			}
			s.book.quietSince = time.Now()
		}
		if s.life.fatal.Load() {
			s.crash()
		}
		for _, w := range s.disk.waiting() {
			w.release(decision{write: true})
			synctest.Wait()
		}
		s.collect()
		s.book.check()
		if s.fault != "" {
			return
		}
		if s.book.idle() && time.Since(s.book.quietSince) > 3*s.lease+10*time.Second {
			break
		}
		s.watches.step()
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
	}
	s.book.atRest()
	s.watches.rest()
}

// explain checks that the log of each study explains its suggestions and models.
func (s *simulation) explain(ctx context.Context) {
	for _, name := range []string{"a", "b"} {
		if !s.book.exists(name) {
			continue
		}
		service := s.service
		if s.fleet != nil {
			service = engine.Open(&simLife{disk: s.disk}, engine.Options{})
			defer service.Close()
		}
		r, err := service.Replay(ctx, name, nil)
		if err != nil || len(r.Differences)+len(r.ModelDifferences) > 0 {
			s.broken("the log of study %s does not explain what was suggested: %+v, %v", name, r, err)
		}
		s.counts.explained, s.counts.models = s.counts.explained+r.Suggestions, s.counts.models+r.Models
	}
}

func (s *simulation) say(format string, args ...any) {
	s.trace = append(s.trace, fmt.Sprintf("%4d %8s ", s.counts.steps, time.Since(s.begun).Round(time.Millisecond))+fmt.Sprintf(format, args...))
}

// broken records a broken promise.
func (s *simulation) broken(format string, args ...any) {
	if s.fault == "" {
		s.fault = fmt.Sprintf(format, args...)
	}
}

// simWorker is a client with one call at a time.
type simWorker struct {
	index int
	named bool
	call  *simCall   // under way
	again []*simCall // to repeat, because the outcome is unknown
	past  []*simCall // acknowledged, but the network may deliver them again
	held  []given
}

func (w *simWorker) name() string {
	if !w.named {
		return ""
	}
	return fmt.Sprint("w", w.index)
}

// simCall is a call with all its attempts.
type simCall struct {
	worker  *simWorker
	id      string
	kind    string
	study   string
	command study.Command
	many    []study.Command // of many, and command is the first of them
	trial   int
	epoch   int

	life    *simLife
	to      *simServer // the server to send it to, or nil for any
	cancel  context.CancelFunc
	sent    time.Time
	durable study.Position // of the study when it was sent
	// incarnation is the id of the study when the call was sent, or 0 if there was
	// none.
	incarnation store.StudyID
	ended       store.StudyID // the same when the last attempt ended
	doubt       bool          // an earlier attempt may have had an effect
	acked       bool
	answer      simAnswer // of the running attempt
	accepted    simAnswer // the answer that the client took
}

// simAnswer is an answer to a call.
type simAnswer struct {
	err   error
	given []given
	late  bool
	study *tuner.Study
	trial *study.Trial
	made  []int // by many
}
