//go:build linux

package torture

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/internal/freeport"
	"github.com/bkbtuner/bkb/internal/pgtest"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/postgres"
	"github.com/bkbtuner/bkb/store/verify"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/client"
	"github.com/bkbtuner/bkb/tuner/engine/view"
	"github.com/bkbtuner/bkb/tuner/study"
)

const (
	servers  = 3
	studies  = 4               // of a crowd
	takeover = 3 * time.Second // --takeover
	// The longest silences that the promises allow.
	silenceOfKill = takeover + 2*time.Second
	silenceOfTerm = time.Second
	afterOutage   = 5 * time.Second
	exitBuried    = 75
)

// TestServers runs three real servers on a real database. 16 clients send each call to a
// random server, and the same request to another one if it gets no answer. Meanwhile
// servers are killed, stopped and frozen for longer than their lease, and the database
// goes away, fails over to its standby, or has its clock set back. In the end the database holds all acknowledged
// data once, and an order of the calls explains all answers.
func TestServers(t *testing.T) {
	heavy(t)
	pgtest.Long(t)
	plan := map[string]int{
		"kill": often(t, "SERVER_KILLS", 2), "term": often(t, "SERVER_TERMS", 1), "freeze": often(t, "SERVER_FREEZES", 1),
		"outage": often(t, "SERVER_OUTAGES", 0), "failover": often(t, "SERVER_FAILOVERS", 0), "clock": often(t, "SERVER_CLOCKS", 1),
	}
	seed := seed(t)
	f := &fleet{folder: evidence(t, seed), random: rand.New(rand.NewPCG(seed, 7)), crowd: newCrowd(t), log: new(syncBuffer), silences: make(map[string][]time.Duration), answers: make(map[string][]time.Time)}
	f.start(t, plan["failover"] > 0)
	defer f.stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		f.crowd.run(ctx, seed, "s", func() tuner.Service { return f.roam(t, ctx) })
	}()
	begun := time.Now()
	f.disturb(t, plan)
	least := int64(often(t, "SERVER_TRIALS", 0))
	for f.crowd.tells.Load() < least && !t.Failed() {
		time.Sleep(100 * time.Millisecond)
	}
	lasted := time.Since(begun)
	cancel()
	<-worked
	f.judge(t)
	if t.Failed() {
		f.keep(t)
		return
	}
	figures(t, "%d kills, %d stops, %d freezes (%d ended with %d), %d outages of the database, %d failovers, %d clocks of the database set back by an hour in %s with %d servers and %d clients; %d acknowledged trials, %d acknowledged calls, 0 lost, 0 doubled; %d operations linearizable; %d summaries equal to their logs; longest silence of a study after a kill %v, a stop %v, a freeze %v, an outage %v, a failover %v, a clock %v",
		plan["kill"], plan["term"], plan["freeze"], f.buried, exitBuried, plan["outage"], plan["failover"], plan["clock"], lasted.Round(time.Second), servers, clients,
		f.crowd.tells.Load(), f.acked, f.ordered, f.summaries,
		f.silences["kill"], f.silences["term"], f.silences["freeze"], f.silences["outage"], f.silences["failover"], f.silences["clock"])
}

// fleet is the servers of a test with their database.
type fleet struct {
	folder    string
	random    *rand.Rand
	crowd     *crowd
	log       *syncBuffer
	pg        []*pgtest.Server // the primary and its standby, if there is one
	store     string           // address of the database
	look      *postgres.Store  // to find the owners of studies
	address   []string
	behind    time.Duration // of the database's clock
	silences  map[string][]time.Duration
	buried    int
	acked     int
	ordered   int
	summaries int

	mu      sync.Mutex
	servers []*serving
	answers map[string][]time.Time // that studies gave
}

// note records that a study gave an answer.
func (f *fleet) note(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers[name] = append(f.answers[name], time.Now())
}

func (f *fleet) start(t *testing.T, standby bool) {
	t.Helper()
	primary, err := pgtest.Start("max_connections = 100")
	if err != nil {
		pgtest.Skip(t, err)
	}
	f.pg = append(f.pg, primary)
	f.store = primary.Address()
	if standby {
		second, err := primary.Standby("follower")
		if err == nil {
			f.pg = append(f.pg, second)
			err = primary.Require("follower")
		}
		if err != nil {
			t.Fatal(err)
		}
		f.store = fmt.Sprintf("postgres://bkb@127.0.0.1:%d,127.0.0.1:%d/postgres", primary.Port, second.Port)
	}
	for _, pg := range f.pg {
		if err := ownClock(pg); err != nil {
			pgtest.Skip(t, err)
		}
	}
	if _, _, err := postgres.Init(t.Context(), primary.Address(), postgres.InitOptions{Program: "torture"}); err != nil {
		t.Fatal(err)
	}
	for range servers {
		f.address = append(f.address, freeport.Address(t))
	}
	f.servers = make([]*serving, servers)
	for i := range servers {
		f.run(t, i)
	}
	if f.look, err = postgres.Open(t.Context(), f.store, postgres.Options{}); err != nil {
		t.Fatal(err)
	}
}

// run starts a server at its address.
func (f *fleet) run(t *testing.T, i int) {
	t.Helper()
	s, err := begin(t, f.address[i], f.log, nil, "--store", f.store, "--advertise", f.address[i], "--takeover", takeover.String())
	if err != nil {
		t.Fatalf("server %d: %v\n%s", i, err, f.log.String())
	}
	f.mu.Lock()
	f.servers[i] = s
	f.mu.Unlock()
}

func (f *fleet) stop() {
	if f.look != nil {
		_ = f.look.Close()
	}
	for _, s := range f.servers {
		if s != nil {
			s.kill()
		}
	}
	for _, pg := range f.pg {
		pg.Stop()
	}
}

// owner returns the server that has a study, or -1.
func (f *fleet) owner(t *testing.T, name string) int {
	t.Helper()
	info, err := f.look.Lookup(t.Context(), name)
	if err != nil {
		return -1
	}
	owner, err := f.look.Owner(t.Context(), info.ID)
	if err != nil {
		return -1
	}
	return slices.Index(f.address, owner.Address)
}

// victim returns a server that has a study.
func (f *fleet) victim(t *testing.T) int {
	t.Helper()
	for begun := time.Now(); time.Since(begun) < time.Minute; time.Sleep(50 * time.Millisecond) {
		if i := f.owner(t, fmt.Sprint("s-", f.random.IntN(studies))); i >= 0 {
			return i
		}
	}
	t.Fatalf("no server has a study\n%s", f.log.String())
	return -1
}

// disturb does what the plan says, in a random order and with pauses.
func (f *fleet) disturb(t *testing.T, plan map[string]int) {
	var steps []string
	for _, what := range []string{"kill", "term", "freeze", "outage", "failover", "clock"} {
		for range plan[what] {
			steps = append(steps, what)
		}
	}
	f.random.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	f.settle(t)
	for _, what := range steps {
		begun := time.Now()
		_, _ = fmt.Fprintf(f.log, "torture: %s at %s\n", what, begun.Format(time.RFC3339Nano))
		switch what {
		case "kill", "term":
			f.end(t, what)
		case "freeze":
			f.freeze(t)
		case "outage":
			f.outage(t)
		case "failover":
			f.failover(t)
		case "clock":
			f.setBack(t)
		}
		if t.Failed() {
			return
		}
		f.settle(t)
		f.silence(t, what, begun)
	}
}

// setBack kills a server that has a study when the clock of the database goes back by an
// hour. The servers that live are not affected.
func (f *fleet) setBack(t *testing.T) {
	f.behind += time.Hour
	i := f.victim(t)
	f.servers[i].kill()
	for _, pg := range f.pg {
		if err := setClock(pg, -f.behind); err != nil {
			t.Fatal(err)
		}
	}
	f.run(t, i)
	f.alive(t, "the clock of the database was set back")
}

// settle waits until all servers have been alive for a whole lease and all studies get
// answers.
func (f *fleet) settle(t *testing.T) {
	t.Helper()
	time.Sleep(takeover + takeover/3)
	since := time.Now()
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		if f.answered(since) {
			return
		}
		if time.Since(begun) > time.Minute {
			t.Fatalf("a study gets no answers\n%s", f.log.String())
		}
	}
}

// answered tells whether all studies gave an answer since a moment.
func (f *fleet) answered(since time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, moments := range f.answers {
		if moments[len(moments)-1].After(since) {
			n++
		}
	}
	return n == studies
}

// end ends a server that has a study, and starts it again.
func (f *fleet) end(t *testing.T, how string) {
	i := f.victim(t)
	if how == "kill" {
		f.servers[i].kill()
	} else {
		_ = f.servers[i].cmd.Process.Signal(syscall.SIGTERM)
		if ended, err := f.servers[i].wait(time.Minute); !ended || err != nil {
			t.Errorf("a server that was told to stop: %t, %v", ended, err)
		}
	}
	f.run(t, i)
}

// freeze stops a server that has a study for longer than its lease. Others take the
// study over, and the server ends when it goes on.
func (f *fleet) freeze(t *testing.T) {
	i := f.victim(t)
	s := f.servers[i]
	pid := s.cmd.Process.Pid
	_ = syscall.Kill(pid, syscall.SIGSTOP)
	time.Sleep(2*takeover + time.Second)
	_ = syscall.Kill(pid, syscall.SIGCONT)
	ended, err := s.wait(time.Minute)
	exit := (*exec.ExitError)(nil)
	if !ended || !errors.As(err, &exit) || exit.ExitCode() != exitBuried {
		t.Errorf("a server that was frozen for longer than its lease ended: %t, %v, want status %d", ended, err, exitBuried)
	} else {
		f.buried++
	}
	f.run(t, i)
}

// outage takes the database away for longer than the leases. No server ends.
func (f *fleet) outage(t *testing.T) {
	f.pg[0].Shutdown()
	time.Sleep(time.Duration(often(t, "SERVER_OUTAGE_SECONDS", 6)) * time.Second)
	if err := f.pg[0].Run(); err != nil {
		t.Fatal(err)
	}
	back := time.Now()
	for !f.answered(back) {
		if time.Since(back) > 4*afterOutage {
			t.Fatalf("a study gets no answers after an outage\n%s", f.log.String())
		}
		time.Sleep(20 * time.Millisecond)
	}
	if waited := time.Since(back); waited > afterOutage {
		t.Errorf("the studies got answers %v after the outage, more than %v", waited, afterOutage)
	} else {
		_, _ = fmt.Fprintf(f.log, "torture: answers %v after the outage\n", waited)
	}
	f.alive(t, "an outage of the database")
}

// alive checks that no server has ended.
func (f *fleet) alive(t *testing.T, after string) {
	t.Helper()
	for i, s := range f.servers {
		select {
		case <-s.drained:
			t.Errorf("server %d ended after %s\n%s", i, after, f.log.String())
		default:
		}
	}
}

// failover kills the primary and promotes its standby. The old primary then follows the
// new one. Its clients wait for it before each commit.
func (f *fleet) failover(t *testing.T) {
	old, next := f.pg[0], f.pg[1]
	old.Kill()
	err := next.Configure("synchronous_standby_names = ''")
	if err == nil {
		err = next.Promote()
	}
	if err == nil {
		err = old.Follow(next, "follower")
	}
	if err == nil {
		err = next.Require("follower")
	}
	if err != nil {
		t.Fatal(err)
	}
	f.pg[0], f.pg[1] = next, old
	f.alive(t, "a failover")
}

// silence records the longest time without an answer of a study after a disturbance.
func (f *fleet) silence(t *testing.T, what string, begun time.Time) {
	longest := time.Duration(0)
	f.mu.Lock()
	for _, moments := range f.answers {
		for i := len(moments) - 1; i > 0 && moments[i].After(begun); i-- {
			longest = max(longest, moments[i].Sub(moments[i-1]))
		}
	}
	f.mu.Unlock()
	f.silences[what] = append(f.silences[what], longest.Round(10*time.Millisecond))
	most := map[string]time.Duration{"kill": silenceOfKill, "term": silenceOfTerm, "clock": silenceOfKill}[what]
	if most > 0 && longest > most {
		t.Errorf("the silence after a %s was %v, more than %v", what, longest, most)
	}
}

// judge compares the database with the answers that clients got.
func (f *fleet) judge(t *testing.T) {
	h, err := readAll(f.look)
	if err != nil {
		t.Error(err)
		return
	}
	calls := f.crowd.journal.Calls
	verdict := judge(h, calls)
	for _, fault := range verdict.faults {
		t.Error(fault)
	}
	f.acked = verdict.acked
	report, err := f.look.Check(t.Context(), &verify.Options{Summaries: view.CheckSummary})
	if err != nil || !report.OK() || report.Summaries == 0 {
		t.Errorf("the check of the database: %v, %+v", err, report)
		return
	}
	f.summaries = report.Summaries
	var faults []string
	f.ordered, faults = linearizable(f.folder, calls)
	for _, fault := range faults {
		t.Error(fault)
	}
}

func (f *fleet) keep(t *testing.T) {
	if err := writeJSON(filepath.Join(f.folder, "journal.json"), f.crowd.journal); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(f.folder, "servers.log"), []byte(f.log.String()), 0o644); err != nil {
		t.Error(err)
	}
}

// roamer is a client that sends each try of a call to a random server.
type roamer struct {
	tuner.Service // none, so that only the methods below are called
	fleet         *fleet
	ctx           context.Context
	clients       []*client.Client
	mu            sync.Mutex
	random        *rand.Rand
}

func (f *fleet) roam(t *testing.T, ctx context.Context) *roamer {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := &roamer{fleet: f, ctx: ctx, random: rand.New(rand.NewPCG(f.random.Uint64(), 1))}
	for _, address := range f.address {
		c, err := client.Dial(address, client.Options{Plaintext: true, RetryFor: -1})
		if err != nil {
			t.Error(err)
		}
		r.clients = append(r.clients, c)
	}
	return r
}

// tryFor is how long a client waits for one server.
const tryFor = 2 * time.Second

// anywhere sends a call to one server after another until it is answered.
func anywhere[R any](r *roamer, name string, f func(ctx context.Context, c *client.Client) (R, error)) (R, error) {
	var none R
	for {
		r.mu.Lock()
		c := r.clients[r.random.IntN(len(r.clients))]
		r.mu.Unlock()
		ctx, cancel := context.WithTimeout(r.ctx, tryFor)
		answer, err := f(ctx, c)
		cancel()
		if r.ctx.Err() != nil && err != nil {
			return none, fmt.Errorf("%w: the test ended", store.ErrUnknownOutcome)
		}
		switch tuner.CodeOf(err) {
		case tuner.Unavailable, tuner.Unknown, tuner.Deadline, tuner.Cancelled:
			time.Sleep(10 * time.Millisecond)
		case tuner.OK:
			r.fleet.note(name)
			return answer, nil
		default:
			return answer, err
		}
	}
}

func (r *roamer) CreateStudy(_ context.Context, name string, cmd study.Create) (tuner.Created, error) {
	return anywhere(r, name, func(ctx context.Context, c *client.Client) (tuner.Created, error) {
		return c.CreateStudy(ctx, name, cmd)
	})
}

func (r *roamer) Ask(_ context.Context, name string, cmd study.Ask) (tuner.Asked, error) {
	return anywhere(r, name, func(ctx context.Context, c *client.Client) (tuner.Asked, error) { return c.Ask(ctx, name, cmd) })
}

func (r *roamer) Tell(_ context.Context, name string, cmd study.Tell) (tuner.Told, error) {
	return anywhere(r, name, func(ctx context.Context, c *client.Client) (tuner.Told, error) { return c.Tell(ctx, name, cmd) })
}

func (r *roamer) Report(_ context.Context, name string, cmd study.ReportValues) (tuner.Verdict, error) {
	return anywhere(r, name, func(ctx context.Context, c *client.Client) (tuner.Verdict, error) { return c.Report(ctx, name, cmd) })
}

func (r *roamer) Enqueue(_ context.Context, name string, cmd study.Enqueue) (study.Trial, error) {
	return anywhere(r, name, func(ctx context.Context, c *client.Client) (study.Trial, error) { return c.Enqueue(ctx, name, cmd) })
}

// AddAll implements tuner.Service.
func (r *roamer) AddAll(_ context.Context, name string, cmds []study.Command) ([]int, error) {
	return anywhere(r, name, func(ctx context.Context, c *client.Client) ([]int, error) { return c.AddAll(ctx, name, cmds) })
}

func (r *roamer) Close() error {
	var errs []error
	for _, c := range r.clients {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
