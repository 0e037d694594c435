//go:build linux

package torture

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/store/bolt"
	"github.com/bkbtuner/bkb/store/verify"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine/view"
	"github.com/bkbtuner/bkb/tuner/study"
)

// cutsPerRun is the number of power cuts in one recorded run.
const cutsPerRun = 50

// TestPower records the writes of a server under load and cuts the power at random
// moments. The disk then has the synced data and a random part of the rest.
func TestPower(t *testing.T) {
	heavy(t)
	n := often(t, "CUTS", 12)
	seed := seed(t)
	p := &power{random: rand.New(rand.NewPCG(seed, 2)), folder: evidence(t, seed)}
	begun := time.Now()
	for p.cuts < n && len(p.faults) == 0 {
		p.run(t, min(cutsPerRun, n-p.cuts))
	}
	for _, f := range p.faults {
		t.Error(f)
	}
	if t.Failed() {
		return
	}
	figures(t, "%d power cuts in %s of %d recorded writes and syncs, with %d writes not yet synced, %d of them in the creation of the file; %d acknowledged calls looked for, 0 lost, 0 doubled",
		p.cuts, time.Since(begun).Round(time.Second), p.operations, p.unsynced, p.early, p.acked)
	if p.unsynced == 0 {
		t.Error("nothing was ever waiting to be synced: this was no test")
	}
}

// power is a series of cuts.
type power struct {
	random                                   *rand.Rand
	folder                                   string
	faults                                   []string
	cuts, early, operations, unsynced, acked int
	first                                    int // early moments of a file's life that were tried
}

func (p *power) fail(format string, args ...any) {
	p.faults = append(p.faults, fmt.Sprintf(format, args...))
}

// run records one run of a server and cuts its power n times.
func (p *power) run(t *testing.T, n int) {
	db := filepath.Join(p.folder, fmt.Sprintf("tuner-%d.db", p.cuts))
	crowd := newCrowd(t)
	ops := record(t, p.folder, db, crowd, p.random, time.Duration(100+10*n)*time.Millisecond)
	p.operations += len(ops)
	moments := make([]int, n)
	for i := range moments {
		moments[i] = 1 + p.random.IntN(len(ops)-1)
		if i%5 == 0 { // the first moments of a file's life, one after another
			moments[i] = 1 + p.first%min(len(ops)-1, 14)
			p.first++
		}
	}
	slices.Sort(moments)
	d, next := newDisk(), 0
	for _, moment := range moments {
		for ; next < moment; next++ {
			d.do(completed(ops[next], ops[moment]))
		}
		p.cut(t, d, db, crowd, ops[moment].at)
		if len(p.faults) > 0 {
			return
		}
	}
}

// completed returns an operation as it stands when another begins. A sync whose end has
// not been recorded counts as not done.
func completed(op, now *operation) *operation {
	if op.done == 0 || now.line <= op.done {
		unfinished := *op
		unfinished.done = 0
		return &unfinished
	}
	return op
}

// record lets a crowd work for a while on a server whose writes are recorded.
func record(t testing.TB, folder, db string, crowd *crowd, random *rand.Rand, life time.Duration) []*operation {
	t.Helper()
	trace := db + ".trace"
	s, err := serve(t, db, io.Discard, tracing(t, trace))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := crowd.life(life, func() bool { return crowd.tells.Load() >= 20 })
	defer cancel()
	// Cancelled calls would have unknown outcomes. The crowd therefore stops between
	// calls, so that only the power cut interrupts any.
	crowd.run(ctx, random.Uint64(), "p", func() tuner.Service { return patient{s.dial(t)} })
	s.kill()
	ops, err := readTrace(trace)
	if err != nil {
		t.Fatal(err)
	}
	_ = os.Remove(trace)
	if len(ops) < 30 {
		t.Fatalf("only %d operations were recorded", len(ops))
	}
	return ops
}

// cut checks the disk after a loss of power at a moment.
func (p *power) cut(t *testing.T, d *disk, db string, crowd *crowd, at int64) {
	p.cuts++
	node := d.names[db]
	if node == nil {
		p.early++
	} else {
		p.unsynced += len(node.pending)
	}
	known := asOf(crowd.journal.Calls, at)
	image := filepath.Join(p.folder, "found.db")
	_ = os.Remove(image)
	content, there := d.after(db, p.random)
	if there {
		if err := os.WriteFile(image, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	verdict, err := p.judge(image, there, known)
	if err != nil {
		p.fail("cut %d: %v", p.cuts, err)
	} else {
		p.acked += verdict.acked
		for _, f := range verdict.faults {
			p.fail("cut %d: %s", p.cuts, f)
		}
	}
	if len(p.faults) > 0 {
		_ = writeJSON(filepath.Join(p.folder, "journal.json"), &journal{Calls: known})
		_ = os.WriteFile(filepath.Join(p.folder, "failed.db"), content, 0o600)
	}
}

// judge opens the file, checks it, judges it, and writes to it.
func (p *power) judge(image string, there bool, known []*call) (*judgement, error) {
	if !there {
		return judge(nil, known), nil
	}
	report, err := bolt.Check(context.Background(), image, &verify.Options{Summaries: view.CheckSummary})
	if err != nil {
		return nil, err
	}
	for _, problem := range report.Problems {
		return nil, fmt.Errorf("check: %v", problem)
	}
	s, err := bolt.Open(image, bolt.Options{MustExist: true, Logger: quiet})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	h, err := readAll(s)
	if err != nil {
		return nil, err
	}
	v := judge(h, known)
	for name, log := range h { // writing continues
		info, err := s.Lookup(context.Background(), name)
		if err == nil {
			err = s.Commit(context.Background(), info.ID, info.Head, []study.Event{{Time: log[0].Time, Body: study.Attributed{Trial: study.OfStudy, Attributes: study.Attributes{"power": "back"}}}}, nil)
		}
		if err != nil {
			return nil, fmt.Errorf("writing after the cut: %w", err)
		}
		break
	}
	return v, nil
}

// asOf returns the calls as the clients knew them at a moment.
func asOf(calls []*call, at int64) []*call {
	var known []*call
	for _, c := range calls {
		if c.Start >= at {
			continue
		}
		then := *c
		if c.End >= at {
			then.End, then.Ending, then.Code, then.Doubt, then.Given = 0, unknown, "", true, nil
		}
		known = append(known, &then)
	}
	return known
}

// patient is a service whose calls continue when the caller's context ends.
type patient struct{ tuner.Service }

func (p patient) CreateStudy(ctx context.Context, name string, c study.Create) (tuner.Created, error) {
	return p.Service.CreateStudy(context.WithoutCancel(ctx), name, c)
}

func (p patient) Ask(ctx context.Context, name string, c study.Ask) (tuner.Asked, error) {
	return p.Service.Ask(context.WithoutCancel(ctx), name, c)
}

func (p patient) Tell(ctx context.Context, name string, c study.Tell) (tuner.Told, error) {
	return p.Service.Tell(context.WithoutCancel(ctx), name, c)
}

func (p patient) Report(ctx context.Context, name string, c study.ReportValues) (tuner.Verdict, error) {
	return p.Service.Report(context.WithoutCancel(ctx), name, c)
}

func (p patient) Enqueue(ctx context.Context, name string, c study.Enqueue) (study.Trial, error) {
	return p.Service.Enqueue(context.WithoutCancel(ctx), name, c)
}

func (p patient) AddAll(ctx context.Context, name string, c []study.Command) ([]int, error) {
	return p.Service.AddAll(context.WithoutCancel(ctx), name, c)
}
