package torture

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bkbtuner/bkb/internal/torture/planted"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/lease"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/cluster"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/study"
)

const (
	simServers = 3
	simTTL     = 5 * time.Second
)

// TestSimulateServers is [TestSimulate] with three servers on one store. Calls go to any
// of them, and messages between them get lost. Servers crash, freeze, are suspended with
// their machines, and do not reach the store. Writes of unknown outcome are done late.
func TestSimulateServers(t *testing.T) {
	n := often(t, "SERVER_SEEDS", 50)
	first := seed(t)
	var total counts
	begun := time.Now()
	buried := 0
	for i := range n {
		s := simulateFleet(t, first+uint64(i), simServers)
		if s.fault != "" {
			keepTrace(t, s)
			t.Fatalf("seed %d (BKB_TORTURE_SEED=%d BKB_TORTURE_SERVER_SEEDS=1): %s\n%s", s.seed, s.seed, s.fault, tail(s.trace, 60))
		}
		total.add(s.counts)
		buried += s.buried
	}
	figures(t, "%d seeds of %d servers in %s: %d steps, %d calls, %d acknowledged, %d sent again, %d crashes, %d servers buried, %d commits refused, late or of unknown outcome, %d leases expired, %d suggestions recomputed; every promise kept",
		n, simServers, time.Since(begun).Round(time.Second), total.steps, total.calls, total.acked, total.again, total.crashes, buried, total.faults, total.expired, total.explained)
	if n >= 50 && (total.crashes == 0 || total.again == 0 || buried == 0 || total.faults == 0 || total.explained == 0) {
		t.Errorf("too little happened: %+v, %d buried", total, buried)
	}
}

// simServer is one of several servers.
type simServer struct {
	tuner.Service // the service for its callers
	s             *simulation
	address       string
	life          *simLife
	member        *lease.Member

	mu      sync.Mutex
	frozen  chan struct{} // closed when it goes on, nil while it works
	since   time.Time     // when it was frozen
	slept   time.Duration // that its monotonic clock does not show
	suspend bool          // it is frozen because its machine is
}

// simShared is the shared store during one life of a server. Writes wait until the
// simulation decides their fate.
type simShared struct {
	*simLife
	server *simServer
}

var _ store.Shared = (*simShared)(nil)

func (l *simShared) Register(ctx context.Context, address string, ttl time.Duration) (store.ServerID, error) {
	return l.disk.disk.Register(ctx, address, ttl)
}

// Renew implements store.Shared. A frozen server renews nothing.
func (l *simShared) Renew(ctx context.Context, id store.ServerID, beat uint64) error {
	if err := l.server.working(ctx); err != nil {
		return err
	}
	if err := l.reach(); err != nil {
		return err
	}
	return l.disk.disk.Renew(ctx, id, beat)
}

// Unregister implements store.Shared. A killed server does not get to it.
func (l *simShared) Unregister(ctx context.Context, id store.ServerID) error {
	if err := l.reach(); err != nil {
		return err
	}
	return l.disk.disk.Unregister(ctx, id)
}

// Servers implements store.Shared. A frozen server reads nothing.
func (l *simShared) Servers(ctx context.Context) ([]store.Server, error) {
	if err := l.server.working(ctx); err != nil {
		return nil, err
	}
	if err := l.reach(); err != nil {
		return nil, err
	}
	return l.disk.disk.Servers(ctx)
}

func (l *simShared) Owner(ctx context.Context, id store.StudyID) (store.Server, error) {
	if err := l.reach(); err != nil {
		return store.Server{}, err
	}
	return l.disk.disk.Owner(ctx, id)
}

func (l *simShared) Bury(ctx context.Context, v store.Server) (bool, error) {
	if err := l.reach(); err != nil {
		return false, err
	}
	return l.disk.disk.Bury(ctx, v)
}

func (l *simShared) Claim(ctx context.Context, id store.StudyID, by store.ServerID) (store.Claim, error) {
	if err := l.reach(); err != nil {
		return store.Claim{}, err
	}
	return l.disk.disk.Claim(ctx, id, by)
}

func (l *simShared) Release(ctx context.Context, c store.Claim) error {
	if err := l.reach(); err != nil {
		return err
	}
	return l.disk.disk.Release(ctx, c)
}

// Create implements store.Store.
func (l *simShared) Create(ctx context.Context, name string, events []study.Event) (store.Info, error) {
	info, err := l.simLife.Create(ctx, name, events)
	return info, l.one(info.ID, err)
}

// CommitAs implements store.Shared.
func (l *simShared) CommitAs(ctx context.Context, c store.Claim, expected study.Position, events []study.Event, summary []byte) error {
	info, err := l.disk.disk.Stat(ctx, c.Study)
	if err != nil {
		return err
	}
	return l.one(c.Study, l.write("commit", info.Name, func() error {
		err := l.disk.disk.CommitAs(context.WithoutCancel(ctx), c, expected, events, summary)
		if err == nil {
			l.disk.s.book.committed(info.Name, events)
		}
		return err
	}))
}

// DeleteAs implements store.Shared.
func (l *simShared) DeleteAs(ctx context.Context, c store.Claim) error {
	info, err := l.disk.disk.Stat(ctx, c.Study)
	if err != nil {
		return err
	}
	return l.one(c.Study, l.write("delete", info.Name, func() error {
		err := l.disk.disk.DeleteAs(context.WithoutCancel(ctx), c)
		if err == nil {
			l.disk.s.book.deleted(info.Name)
		}
		return err
	}))
}

// one limits an unknown outcome to one study, as a database does.
func (l *simShared) one(id store.StudyID, err error) error {
	if err == errUnknown {
		return &store.UnknownError{Study: id, Err: err}
	}
	return err
}

// bootServer starts a new life of a server.
func (s *simulation) bootServer(i int) {
	v := &simServer{s: s, address: fmt.Sprint("server-", i), life: &simLife{disk: s.disk}}
	begun := time.Now()
	planted.Sleep.Store(v.address, v.asleep)
	var err error
	v.member, err = lease.Join(context.Background(), &simShared{v.life, v}, lease.Options{
		Address: v.address, TTL: simTTL,
		Clock: func() time.Duration { return time.Since(begun) },
	})
	if err != nil {
		s.broken("server %d does not start: %v", i, err)
		return
	}
	local := engine.Open(v.member, engine.Options{
		LongLived: true, IdleTimeout: 30 * time.Second, ProposeTimeout: time.Second,
		Now:     func() time.Time { return time.Now().Add(time.Duration(s.wall.Load())) },
		OnFatal: func(error) { v.life.fatal.Store(true) },
	})
	v.Service = cluster.New(local, v.member, cluster.Options{
		Dial:      func(address string) (tuner.Service, error) { return &simPeer{s: s, address: address}, nil },
		Forwarded: func(ctx context.Context) bool { return ctx.Value(simForwarded{}) != nil },
		PassOn: func(ctx context.Context, name string) (context.Context, error) {
			return context.WithValue(ctx, simForwarded{}, name), nil
		},
	})
	s.mu.Lock()
	s.fleet[i] = v
	s.mu.Unlock()
	s.say("boot of server %d", i)
}

// crashServer ends a server as kill -9 does, and starts it again.
func (s *simulation) crashServer(i int) {
	s.counts.crashes++
	s.boots++
	old := s.fleet[i]
	old.life.dead.Store(true)
	for _, w := range s.disk.waiting() {
		if w.life == old.life {
			w.release(decision{write: s.random.IntN(2) == 0, err: errDead})
		}
	}
	old.thaw()
	synctest.Wait()
	s.collect()
	s.say("crash of server %d", i)
	go old.Close()
	synctest.Wait()
	s.bootServer(i)
}

// stepFleet takes a step that concerns a server, if there is one to take.
func (s *simulation) stepFleet() bool {
	for i, v := range s.fleet {
		select {
		case <-v.member.Buried():
			s.buried++
			s.say("server %d was buried", i)
			s.crashServer(i)
			return true
		default:
		}
		if v.life.fatal.Load() {
			s.broken("server %d ended because of one write", i)
			return true
		}
	}
	if len(s.late) > 0 && s.random.IntN(8) == 0 {
		s.say("a late write arrives")
		s.late[0]()
		s.late = s.late[1:]
		return true
	}
	if s.random.IntN(16) > 0 {
		return false
	}
	i := s.random.IntN(len(s.fleet))
	v := s.fleet[i]
	switch n := s.random.IntN(4); {
	case v.isFrozen():
		s.say("server %d goes on", i)
		v.thaw()
	case v.life.away.Load():
		s.say("server %d reaches the store again", i)
		v.life.away.Store(false)
	case n < 3:
		s.say("server %d is frozen, with its machine: %t", i, n > 0)
		v.freeze(n > 0)
	default:
		s.say("server %d does not reach the store", i)
		v.life.away.Store(true)
	}
	return true
}

// forget answers a write with an unknown outcome, which may be done later.
func (s *simulation) forget(w *simWrite, d *decision) {
	if !d.write && s.random.IntN(4) > 0 {
		s.late = append(s.late, func() { _ = w.do() })
	}
}

func (v *simServer) isFrozen() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.frozen != nil
}

func (v *simServer) freeze(suspend bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.frozen, v.since, v.suspend = make(chan struct{}), time.Now(), suspend
}

func (v *simServer) thaw() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.frozen == nil {
		return
	}
	if v.suspend {
		v.slept += time.Since(v.since)
	}
	close(v.frozen)
	v.frozen = nil
}

// asleep is the time for which the machine was suspended.
func (v *simServer) asleep() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.frozen != nil && v.suspend {
		return v.slept + time.Since(v.since)
	}
	return v.slept
}

// working waits while the server is frozen.
func (v *simServer) working(ctx context.Context) error {
	v.mu.Lock()
	frozen := v.frozen
	v.mu.Unlock()
	if frozen == nil {
		return nil
	}
	select {
	case <-frozen:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

type (
	simForwarded struct{}
	simLossKey   struct{}
)

// simLoss says what the network between servers loses of a call.
type simLoss struct {
	request, answer bool
	done            atomic.Bool // only the first message is lost
}

// lossy returns the context of a call that the network may lose.
func (s *simulation) lossy(ctx context.Context) context.Context {
	loss := &simLoss{request: s.random.IntN(30) == 0, answer: s.random.IntN(15) == 0}
	return context.WithValue(ctx, simLossKey{}, loss)
}

// simPeer is the way from one server to another.
type simPeer struct {
	tuner.Service // none, so that only the methods below are called
	s             *simulation
	address       string
}

// over makes a call at the other end.
func over[R any](ctx context.Context, p *simPeer, f func(tuner.Service) (R, error)) (R, error) {
	var none R
	p.s.mu.Lock()
	var v *simServer
	for _, o := range p.s.fleet {
		if o.address == p.address {
			v = o
		}
	}
	p.s.mu.Unlock()
	loss, _ := ctx.Value(simLossKey{}).(*simLoss)
	lossy := loss != nil && !loss.done.Swap(true)
	if lossy && loss.request {
		return none, &tuner.RemoteError{Code: tuner.Unknown, Message: "the request was lost"}
	}
	if err := v.working(ctx); err != nil {
		return none, &tuner.RemoteError{Code: tuner.Unknown, Message: "the call ended before its answer came"}
	}
	answer, err := f(v.Service)
	if v.life.dead.Load() || lossy && loss.answer {
		return none, &tuner.RemoteError{Code: tuner.Unknown, Message: "the answer was lost"}
	}
	return answer, err
}

func (p *simPeer) CreateStudy(ctx context.Context, name string, c study.Create) (tuner.Created, error) {
	return over(ctx, p, func(n tuner.Service) (tuner.Created, error) { return n.CreateStudy(ctx, name, c) })
}

func (p *simPeer) DeleteStudy(ctx context.Context, name string) error {
	_, err := over(ctx, p, func(n tuner.Service) (struct{}, error) { return struct{}{}, n.DeleteStudy(ctx, name) })
	return err
}

func (p *simPeer) Study(ctx context.Context, name string) (tuner.Study, error) {
	return over(ctx, p, func(n tuner.Service) (tuner.Study, error) { return n.Study(ctx, name) })
}

func (p *simPeer) Trial(ctx context.Context, name string, number int) (study.Trial, error) {
	return over(ctx, p, func(n tuner.Service) (study.Trial, error) { return n.Trial(ctx, name, number) })
}

func (p *simPeer) Ask(ctx context.Context, name string, c study.Ask) (tuner.Asked, error) {
	return over(ctx, p, func(n tuner.Service) (tuner.Asked, error) { return n.Ask(ctx, name, c) })
}

func (p *simPeer) Tell(ctx context.Context, name string, c study.Tell) (tuner.Told, error) {
	return over(ctx, p, func(n tuner.Service) (tuner.Told, error) { return n.Tell(ctx, name, c) })
}

func (p *simPeer) Report(ctx context.Context, name string, c study.ReportValues) (tuner.Verdict, error) {
	return over(ctx, p, func(n tuner.Service) (tuner.Verdict, error) { return n.Report(ctx, name, c) })
}

func (p *simPeer) Heartbeat(ctx context.Context, name string, c study.Heartbeat) (tuner.Verdict, error) {
	return over(ctx, p, func(n tuner.Service) (tuner.Verdict, error) { return n.Heartbeat(ctx, name, c) })
}

func (p *simPeer) Enqueue(ctx context.Context, name string, c study.Enqueue) (study.Trial, error) {
	return over(ctx, p, func(n tuner.Service) (study.Trial, error) { return n.Enqueue(ctx, name, c) })
}

func (p *simPeer) Add(ctx context.Context, name string, c study.Add) (study.Trial, error) {
	return over(ctx, p, func(n tuner.Service) (study.Trial, error) { return n.Add(ctx, name, c) })
}

func (p *simPeer) AddAll(ctx context.Context, name string, commands []study.Command) ([]int, error) {
	return over(ctx, p, func(n tuner.Service) ([]int, error) { return n.AddAll(ctx, name, commands) })
}

func (p *simPeer) SetAttributes(ctx context.Context, name string, c study.SetAttributes) error {
	_, err := over(ctx, p, func(n tuner.Service) (struct{}, error) { return struct{}{}, n.SetAttributes(ctx, name, c) })
	return err
}

func (p *simPeer) Pause(ctx context.Context, name string, c study.Pause) (tuner.Study, error) {
	return over(ctx, p, func(n tuner.Service) (tuner.Study, error) { return n.Pause(ctx, name, c) })
}

func (p *simPeer) Resume(ctx context.Context, name string, c study.Resume) (tuner.Study, error) {
	return over(ctx, p, func(n tuner.Service) (tuner.Study, error) { return n.Resume(ctx, name, c) })
}

func (p *simPeer) Extend(ctx context.Context, name string, c study.Extend) (tuner.Study, error) {
	return over(ctx, p, func(n tuner.Service) (tuner.Study, error) { return n.Extend(ctx, name, c) })
}

func (p *simPeer) Finish(ctx context.Context, name string, c study.Finish) (tuner.Study, error) {
	return over(ctx, p, func(n tuner.Service) (tuner.Study, error) { return n.Finish(ctx, name, c) })
}

func (p *simPeer) Watch(ctx context.Context, name string, from tuner.From) iter.Seq2[tuner.Event, error] {
	return func(yield func(tuner.Event, error) bool) {
		more := true
		_, err := over(ctx, p, func(n tuner.Service) (struct{}, error) {
			for h, err := range n.Watch(ctx, name, from) {
				if err != nil {
					return struct{}{}, err
				}
				if more = yield(h, nil); !more {
					break
				}
			}
			return struct{}{}, nil
		})
		if more {
			yield(tuner.Event{}, err)
		}
	}
}

func (*simPeer) Close() error { return nil }

// settleFleet lets the simulation come to rest. All servers work again. In the end each
// of them answers for each study.
func (s *simulation) settleFleet() {
	for _, v := range s.fleet {
		v.thaw()
		v.life.away.Store(false)
	}
	for _, late := range s.late {
		late()
	}
	s.late = nil
	looker := &simWorker{index: 8}
	s.workers = append(s.workers, looker)
	boots, quiet := -1, time.Now()
	for range 2000 {
		for i, v := range s.fleet {
			select {
			case <-v.member.Buried():
				s.buried++
				s.crashServer(i)
			default:
			}
		}
		if boots != s.boots { // a call must load the studies, so that their leases expire
			boots, quiet = s.boots, time.Now()
			for i := range s.fleet {
				for _, name := range []string{"a", "b"} {
					if s.fault == "" && s.book.exists(name) && !s.reaches(looker, i, name) && boots == s.boots {
						s.broken("server %d does not reach study %s", i, name)
					}
				}
			}
			continue
		}
		s.rest()
		if s.fault != "" {
			return
		}
		if s.book.idle() && time.Since(quiet) > 3*s.lease+10*time.Second {
			break
		}
		s.watches.step()
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
	}
	s.book.atRest()
	s.watches.rest()
}

// rest does all waiting writes and collects the answers.
func (s *simulation) rest() {
	for _, w := range s.disk.waiting() {
		w.release(decision{write: true})
		synctest.Wait()
	}
	s.collect()
	s.book.check()
}

// reaches tells whether a server answers for a study within a minute.
func (s *simulation) reaches(w *simWorker, i int, name string) bool {
	boots := s.boots
	for range 120 {
		if s.boots != boots || !s.book.exists(name) {
			return true // the caller begins again
		}
		if w.call == nil {
			c := &simCall{worker: w, kind: "study", id: "settle", study: name}
			c.to = s.fleet[i]
			s.send(w, c)
			synctest.Wait()
			for range 20 {
				if s.rest(); w.call == nil {
					break
				}
				time.Sleep(100 * time.Millisecond)
				synctest.Wait()
			}
			if c.acked {
				return true
			}
		} else {
			s.rest()
		}
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		select {
		case <-s.fleet[i].member.Buried():
			return true
		default:
		}
	}
	return false
}
