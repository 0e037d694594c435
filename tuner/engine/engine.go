package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/artifacts"
	"github.com/bkbtuner/bkb/tuner/engine/actor"
	"github.com/bkbtuner/bkb/tuner/engine/view"
	"github.com/bkbtuner/bkb/tuner/memlimit"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/prune"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Options are the settings of a [Engine]. The zero Options suit a short-lived command on
// a local file.
type Options struct {
	// LongLived measures leases by this process's monotonic clock. When a study is
	// loaded, the leases of running trials begin anew. Leases end in the background.
	// Otherwise leases use the stored deadlines and the wall clock, and end at the next
	// ask.
	LongLived bool
	// ProposeTimeout is how long an ask waits for the proposer before it returns a
	// fallback. 0 means [DefaultProposeTimeout].
	ProposeTimeout time.Duration
	// IdleTimeout is the time without calls after which a study is dropped from memory.
	// The next call reads it again. 0 means [DefaultIdleTimeout]. It applies if
	// LongLived.
	IdleTimeout time.Duration
	// MaxStudyBytes is the most bytes of events in one study, approximately, and
	// MaxStudyReports is the most reports. 0 means no limit. A full study accepts no
	// new trials, reports or attributes, and the error is a [tuner.QuotaError]. You can still
	// tell its running trials.
	MaxStudyBytes, MaxStudyReports int64
	// Memory, if not nil, limits the memory for studies. If there is no room to read a
	// study, the error is a [tuner.MemoryError]. Idle studies are then dropped soon.
	Memory *memlimit.Limit
	// Artifacts, if not nil, has the files of trials.
	Artifacts *artifacts.Folder
	// Now is the wall clock. If nil, it is time.Now.
	Now func() time.Time
	// Logger receives background errors. Nil discards them.
	Logger *slog.Logger
	// Observer receives what happens, for metrics.
	Observer tuner.Observer
	// OnFatal is called once when the store does not know whether it wrote. End the
	// process and start it again, because every later call fails.
	OnFatal func(error)
}

// shortIdle is the IdleTimeout while memory is short.
const shortIdle = 3 * time.Second

// The defaults of [Options].
const (
	DefaultProposeTimeout = 5 * time.Second
	DefaultIdleTimeout    = 10 * time.Minute
)

// Engine is the [tuner.Service] in the process, over a store. Its Relay finds the actor of a
// call's study and passes the call on.
type Engine struct {
	tuner.Relay

	store   store.Store
	options Options
	ctx     context.Context // for all background work
	stop    context.CancelFunc
	work    sync.WaitGroup
	env     actor.Environment
	notices notices

	mu       sync.Mutex
	inUse    map[string]*held
	leaving  map[string]*held // dropped, possibly with events still to store
	recalled map[store.StudyID]view.Listed
	closed   bool
	fatal    error

	unreadNoted time.Time
}

var _ tuner.Service = (*Engine)(nil)

// Open returns an Engine over a store. Close closes the store too.
func Open(s store.Store, o Options) *Engine {
	o.ProposeTimeout = cmp.Or(o.ProposeTimeout, DefaultProposeTimeout)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, DefaultIdleTimeout)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	t := &Engine{store: s, options: o, inUse: make(map[string]*held), leaving: make(map[string]*held), recalled: make(map[store.StudyID]view.Listed)}
	t.Pass = func(ctx context.Context, c tuner.Passed, f func(context.Context, tuner.Service) error) error {
		return t.with(ctx, c.Study, func(a *actor.Actor) error { return f(ctx, a) })
	}
	t.ctx, t.stop = context.WithCancel(context.Background())
	t.env = actor.Environment{
		Store: s, Processors: actor.NewProcessors(t.ctx), Memory: o.Memory, Propose: propose.New, Work: &t.work, Changed: t.notices.changed, Lost: t.lost,
		LongLived: o.LongLived, ProposeTimeout: o.ProposeTimeout, MaxStudyBytes: o.MaxStudyBytes, MaxStudyReports: o.MaxStudyReports,
		Now: o.Now, Logger: o.Logger, Observer: o.Observer,
		Artifacts: o.Artifacts, Exists: t.exists,
	}
	if o.LongLived {
		t.work.Go(t.keepTime)
		t.work.Go(func() {
			if err := o.Artifacts.Sweep(t.ctx, t.exists); err != nil && t.ctx.Err() == nil {
				o.Logger.Warn("artifacts of deleted studies were not removed", "error", err)
			}
		})
	}
	return t
}

// Close waits for running calls and commits and closes the store.
func (t *Engine) Close() error {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return nil
	}
	t.closed = true
	t.inUse = nil
	t.mu.Unlock()
	t.stop() // ends all actors too
	t.work.Wait()
	return t.store.Close()
}

// fail ends the engine because the contents of the store are unknown.
func (t *Engine) fail(err error) {
	t.mu.Lock()
	first := t.fatal == nil
	if first {
		t.fatal = err
	}
	t.mu.Unlock()
	if !first {
		return
	}
	t.options.Logger.Error("the outcome of a write is unknown; no further calls are served", "error", err)
	if t.options.OnFatal != nil {
		t.options.OnFatal(err)
	}
}

// held is the [actor.Actor] of a study in use.
type held struct {
	*actor.Actor
	users   int           // calls that hold it, guarded by Engine.mu
	lastUse time.Time     // likewise
	stored  chan struct{} // closed when it has retired and everything is stored
}

// actor returns a study's actor and loads the study if needed. The caller must call
// release afterwards.
func (t *Engine) actor(ctx context.Context, name string) (a *actor.Actor, release func(), err error) {
	for {
		t.mu.Lock()
		if err := t.refusal(); err != nil {
			t.mu.Unlock()
			return nil, nil, err
		}
		a, ok := t.inUse[name]
		if !ok {
			a = &held{Actor: actor.NewActor(t.ctx, &t.env, name), lastUse: time.Now(), stored: make(chan struct{})}
			t.inUse[name] = a
			var before chan struct{}
			if predecessor := t.leaving[name]; predecessor != nil {
				before = predecessor.stored
			}
			t.work.Go(func() { t.run(a, before) })
		}
		a.users++
		t.mu.Unlock()
		release = func() {
			t.mu.Lock()
			a.users--
			a.lastUse = time.Now()
			t.mu.Unlock()
		}
		select {
		case <-a.Loaded():
		case <-ctx.Done():
			release()
			return nil, nil, ctx.Err()
		}
		if a.Err() == nil {
			return a.Actor, release, nil
		}
		release()
		t.forget(a.Actor)
		if !errors.Is(a.Err(), context.Canceled) {
			return nil, nil, a.Err()
		}
	}
}

// run runs an actor once its predecessor, if any, has stored all of its events and closed
// before. Lists show the study as the actor leaves it.
func (t *Engine) run(a *held, before <-chan struct{}) {
	if before != nil {
		<-before
	}
	a.Run()
	if g, ok := a.Left(); ok {
		t.keep(g)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	close(a.stored)
	if t.leaving[a.Name()] == a {
		delete(t.leaving, a.Name())
	}
}

// lost is called when an actor's log has ended. The engine ends if the store does not know
// what it holds. Otherwise the actor retires, also if the store does not know what this one
// study holds, because the next actor reads it again.
func (t *Engine) lost(a *actor.Actor, err error) {
	if actor.Fatal(err) {
		t.fail(err)
	} else {
		t.forget(a)
	}
}

// serving returns an error if the engine serves no more calls.
func (t *Engine) serving() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.refusal()
}

// refusal returns an error if the engine serves no more calls. t.mu is held.
func (t *Engine) refusal() error {
	if errors.Is(t.fatal, store.ErrDamaged) { // calls from now on have no effect
		return fmt.Errorf("%w: %v", store.ErrDamaged, t.fatal)
	}
	if t.fatal != nil {
		return fmt.Errorf("the outcome of an earlier write is unknown; restart to continue: %w", t.fatal)
	}
	if t.closed {
		return store.ErrClosed
	}
	return nil
}

// forget drops an actor, so that the next call loads the study anew.
func (t *Engine) forget(a *actor.Actor) {
	t.mu.Lock()
	if held := t.inUse[a.Name()]; held != nil && held.Actor == a {
		t.drop(held)
	}
	t.mu.Unlock()
	a.Retire()
}

// drop retires an actor in use. t.mu is held.
func (t *Engine) drop(a *held) {
	delete(t.inUse, a.Name())
	select {
	case <-a.stored:
	default:
		t.leaving[a.Name()] = a
	}
	a.Retire()
}

// keepTime ends overdue leases, finishes studies at their timeout, and drops idle
// studies.
func (t *Engine) keepTime() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-t.ctx.Done():
			return
		case <-tick.C:
		}
		idle := t.options.IdleTimeout
		if t.options.Memory.Short() {
			idle = min(idle, shortIdle)
		}
		t.mu.Lock()
		var live []*held
		for _, a := range t.inUse {
			if a.users == 0 && time.Since(a.lastUse) > idle && !a.Waits() {
				t.drop(a)
			} else {
				live = append(live, a)
			}
		}
		t.mu.Unlock()
		for _, a := range live {
			a.Tick()
		}
	}
}

// CreateStudy implements [tuner.Service].
func (t *Engine) CreateStudy(ctx context.Context, name string, c study.Create) (tuner.Created, error) {
	if err := store.CheckName(name); err != nil {
		return tuner.Created{}, err
	}
	if c.Spec.Proposer.Name == "" {
		c.Spec.Proposer.Name = tuner.DefaultProposer // in a log, "" means a study from before there was a model
	}
	if c.Spec.Space != nil {
		if err := checkComponents(c.Spec); err != nil {
			return tuner.Created{}, err
		}
	}
	var s study.Study
	_, events, err := s.Decide(t.options.Now(), c)
	if err != nil {
		return tuner.Created{}, err
	}
	actor.Sign(tuner.CallerOf(ctx), events)
	if err := t.serving(); err != nil {
		return tuner.Created{}, err
	}
	begun := time.Now()
	_, err = t.store.Create(ctx, name, events)
	if taken := (*store.ExistsError)(nil); errors.As(err, &taken) {
		// This may be a retry of the same request.
		other := (*study.RequestReusedError)(nil)
		switch again := t.with(ctx, name, func(a *actor.Actor) error { return a.Do(ctx, c) }); {
		case errors.Is(again, study.ErrExists) || errors.As(again, &other) || tuner.CodeOf(again) == tuner.NotFound:
			return tuner.Created{}, err
		case again != nil: // the study could not be asked
			return tuner.Created{}, again
		}
	} else if err != nil {
		t.checkFatal(err)
		return tuner.Created{}, err
	} else {
		actor.ObserveCommit(&t.options.Observer, events, time.Since(begun))
		t.forgetName(name) // a call may have looked for the name earlier
		t.notices.changed(name)
	}
	// From here on the study exists, even if this call fails.
	view, err := t.Study(context.WithoutCancel(ctx), name)
	if err != nil {
		return tuner.Created{}, fmt.Errorf("%w: the study was created, but: %w", store.ErrUnknownOutcome, err)
	}
	return tuner.Created{Study: view, Warnings: space.Lint(c.Spec.Space)}, nil
}

// checkComponents checks the proposer and pruner of a spec, alone and together.
func checkComponents(spec study.Spec) error {
	proposer, err := propose.New(spec.Proposer, spec)
	if err != nil {
		return err
	}
	pruner, err := prune.New(spec.Pruner, spec)
	if err != nil {
		return err
	}
	_, guided := pruner.(prune.Guided)
	model, can := proposer.(propose.Modeler)
	switch {
	case guided && !can:
		return &study.InvalidError{
			Field: "pruner.name", Value: spec.Pruner.Name,
			Rule:   fmt.Sprintf("asks the proposer's model, and %s has none", spec.Proposer.Name),
			Remedy: "use the proposer bkb, or another pruner",
		}
	case guided && !model.Listens():
		return &study.InvalidError{
			Field: "pruner.name", Value: spec.Pruner.Name,
			Rule:   "asks what the proposer's model learned from reports, which it is told to ignore",
			Remedy: "leave out the proposer's option reports, or use another pruner",
		}
	}
	return nil
}

// checkFatal ends the engine if err leaves the contents of the store unknown.
func (t *Engine) checkFatal(err error) {
	if actor.Fatal(err) {
		t.fail(err)
	}
}

// DeleteStudy implements [tuner.Service].
func (t *Engine) DeleteStudy(ctx context.Context, name string) error {
	if err := t.serving(); err != nil {
		return err
	}
	info, err := t.store.Lookup(ctx, name)
	if err != nil {
		return err
	}
	created, _ := t.created(ctx, info.ID) // else a start a day later removes its artifacts
	if err := t.store.Delete(ctx, info.ID); err != nil {
		t.checkFatal(err)
		if errors.Is(err, store.ErrUnknownOutcome) {
			t.forgetName(name) // it may be gone
		}
		return err
	}
	t.mu.Lock()
	delete(t.recalled, info.ID)
	t.mu.Unlock()
	t.forgetName(name)
	t.notices.changed(name)
	if err := t.options.Artifacts.DeleteStudy(artifacts.Study{ID: info.ID, Created: created}); err != nil {
		t.options.Logger.Warn("artifacts of a deleted study were not removed, and a start a day later will try again", "study", name, "error", err)
	}
	return nil
}

// created returns when a study was created. One that does not exist has the zero time.
func (t *Engine) created(ctx context.Context, id store.StudyID) (at time.Time, err error) {
	for r, err := range t.store.Read(ctx, id, 1) {
		return r.Event.Time, err
	}
	return at, nil
}

// exists implements [artifacts.Exists].
func (t *Engine) exists(ctx context.Context, s artifacts.Study) (bool, error) {
	at, err := t.created(ctx, s.ID)
	if tuner.CodeOf(err) == tuner.NotFound {
		err = nil
	}
	return at.Equal(s.Created), err
}

// forgetName drops the actor of a name that now means another study or none. The actor
// may still be loading.
func (t *Engine) forgetName(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a := t.inUse[name]; a != nil {
		t.drop(a)
	}
}

// Studies implements [tuner.Service].
func (t *Engine) Studies(ctx context.Context, after string, limit int) (studies []tuner.Study, more bool, err error) {
	if limit <= 0 || limit > tuner.MaxPage {
		limit = tuner.MaxPage
	}
	for until := time.Now().Add(patience); ; {
		infos, more, err := t.page(ctx, after, limit)
		if err != nil || len(infos) == 0 {
			return nil, false, err
		}
		studies, late, err := t.list(ctx, infos, until)
		if err != nil || len(studies) > 0 || !more {
			return studies, more || late, err
		}
		after = infos[len(infos)-1].Name // all of the page were deleted in the meantime
	}
}

// patience is how long a page of studies may wait for room in memory.
const patience = 5 * time.Second

// list returns the studies among infos that still exist. Those that cannot be read say so. late
// says that time was short, so that the last ones are missing.
func (t *Engine) list(ctx context.Context, infos []store.Info, until time.Time) (studies []tuner.Study, late bool, err error) {
	known, err := t.recall(ctx, infos)
	if err != nil {
		return nil, false, err
	}
	var missing []store.Summary // of studies whose logs had to be read, for the next list
	defer func() {
		if len(missing) == 0 {
			return
		}
		if err := t.store.SaveSummaries(ctx, missing); err != nil {
			t.checkFatal(err)
			t.options.Logger.Debug("summaries of studies were not stored, so the next list reads the studies again", "error", err)
		}
	}()
	for _, info := range infos {
		s, sum, err := t.lookAt(ctx, info, known)
		if sum.Data != nil {
			missing = append(missing, sum)
		}
		tooLarge := errors.As(err, new(*tuner.MemoryError))
		switch {
		case tooLarge, errors.As(err, new(*store.CorruptError)), errors.As(err, new(*store.NewerFormatError)):
			s = t.unread(info, err)
		case tuner.CodeOf(err) == tuner.NotFound:
			continue // deleted in the meantime
		case err != nil:
			return nil, false, err
		}
		studies = append(studies, s)
		if tooLarge && time.Now().After(until) {
			return studies, true, nil
		}
		if tooLarge {
			if err := t.options.Memory.Settle(ctx); err != nil {
				return nil, false, err
			}
		}
	}
	return studies, false, nil
}

// page returns up to limit studies after a name.
func (t *Engine) page(ctx context.Context, after string, limit int) (infos []store.Info, more bool, err error) {
	for info, err := range t.store.List(ctx, after) {
		if err != nil {
			return nil, false, err
		}
		if len(infos) == limit {
			return infos, true, nil
		}
		infos = append(infos, info)
	}
	return infos, false, nil
}

// unread is a study that cannot be read. The log has one line about such studies every
// ten seconds.
func (t *Engine) unread(info store.Info, why error) tuner.Study {
	t.mu.Lock()
	due := time.Since(t.unreadNoted) > 10*time.Second
	if due {
		t.unreadNoted = time.Now()
	}
	t.mu.Unlock()
	if due {
		t.options.Logger.Warn("a study in a list could not be read", "study", info.Name, "error", why)
	}
	return tuner.Study{Name: info.Name, ID: info.ID, Unread: why.Error()}
}

// lookAt returns the current state of a study and does not keep the study in memory. known
// has the studies whose state is known. If the log had to be read, missing is the summary.
func (t *Engine) lookAt(ctx context.Context, info store.Info, known map[store.StudyID]view.Listed) (s tuner.Study, missing store.Summary, err error) {
	t.mu.Lock()
	busy := t.inUse[info.Name] != nil || t.leaving[info.Name] != nil
	t.mu.Unlock()
	if busy {
		s, err := t.Study(ctx, info.Name)
		if !errors.As(err, new(*tuner.MemoryError)) && !errors.As(err, new(*store.FencedError)) {
			return s, missing, err
		}
		// It has left memory since, and there is no room for it or another server has it.
	}
	g, ok := known[info.ID]
	if !ok {
		if g, missing, err = t.read(ctx, info); err != nil {
			return tuner.Study{}, missing, err
		}
		t.keep(g)
	}
	return g.Show(info.Name, t.options.Now()), missing, nil
}

// read reads a study from its first event. sum is its summary, without data if there is
// none.
func (t *Engine) read(ctx context.Context, info store.Info) (g view.Listed, sum store.Summary, err error) {
	var d view.Digest
	fits := actor.Reading(t.options.Memory, false)
	s, err := actor.Fold(ctx, t.store, info.ID, func(_ *study.Study, e study.Event) error {
		d.Observe(e)
		return fits(e)
	})
	if err != nil {
		return view.Listed{}, sum, err
	}
	if s.Position() == 0 {
		return view.Listed{}, sum, &store.NotFoundError{Study: info.ID} // deleted in the meantime
	}
	sum = store.Summary{Study: info.ID, Position: s.Position(), Data: view.Summarize(s, &d)}
	return view.List(info.Name, info.ID, s, d), sum, nil
}

// maxRecalled is the largest number of studies whose state is kept for lists.
const maxRecalled = 10_000

// keep keeps the state of a study for later lists.
func (t *Engine) keep(g view.Listed) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id := range t.recalled {
		if len(t.recalled) < maxRecalled {
			break
		}
		delete(t.recalled, id)
	}
	t.recalled[g.Study.ID] = g
}

// Backuper is a store that can copy itself while in use.
type Backuper interface {
	// Backup writes a consistent copy that can be opened as a store.
	Backup(ctx context.Context, w io.Writer) error
}

// Backup implements [tuner.Service].
func (t *Engine) Backup(ctx context.Context, w io.Writer) error {
	b, ok := t.store.(Backuper)
	if !ok {
		return fmt.Errorf("backup: %w; use pg_dump or the database's own tools, or tuner copy to a file", tuner.ErrUnsupported)
	}
	return b.Backup(ctx, w)
}

// recall returns the studies among infos that their summaries describe, by id. It leaves
// out those whose logs must be read.
func (t *Engine) recall(ctx context.Context, infos []store.Info) (map[store.StudyID]view.Listed, error) {
	var ids []store.StudyID
	known := make(map[store.StudyID]view.Listed)
	t.mu.Lock()
	for _, info := range infos {
		if g, ok := t.recalled[info.ID]; ok && g.Study.Position == info.Head {
			known[info.ID] = g
		} else if t.inUse[info.Name] == nil && t.leaving[info.Name] == nil {
			ids = append(ids, info.ID)
		}
	}
	t.mu.Unlock()
	if len(ids) == 0 {
		return known, nil
	}
	list, err := t.store.Summaries(ctx, ids)
	if err != nil {
		return nil, err
	}
	for _, sum := range list {
		if g, ok := view.FromSummary(sum); ok {
			known[sum.Study] = g
			t.keep(g)
		}
	}
	return known, nil
}

// Loaded returns the studies in memory in no order. Studies with running trials are in memory
// once a worker has called since the start.
func (t *Engine) Loaded() []tuner.Study {
	t.mu.Lock()
	held := slices.Collect(maps.Values(t.inUse))
	t.mu.Unlock()
	out := make([]tuner.Study, 0, len(held))
	for _, a := range held {
		if s, ok := a.Peek(t.options.Now()); ok {
			out = append(out, s)
		}
	}
	return out
}

// with calls f with the actor of a study. It calls f again if the study was dropped from
// memory before f had an effect, if another writer of the store committed first, or if
// another server claimed the study. In that case the next actor learns who has it.
func (t *Engine) with(ctx context.Context, name string, f func(a *actor.Actor) error) error {
	for try := 1; ; try++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		a, release, err := t.actor(ctx, name)
		if err != nil {
			return err
		}
		err = f(a)
		release()
		switch conflict := (*store.ConflictError)(nil); {
		case errors.Is(err, actor.ErrRetired):
			t.forget(a)
		case errors.Is(err, actor.ErrDiscarded):
		case errors.As(err, new(*store.FencedError)) && try < maxConflicts:
			t.forget(a)
		case errors.As(err, &conflict) && try < maxConflicts:
			time.Sleep(rand.N(time.Duration(try) * time.Millisecond))
		default:
			return err
		}
	}
}

// maxConflicts is the number of times in a row that a call may lose to another writer.
const maxConflicts = 20

// AddAll implements [tuner.Service].
func (t *Engine) AddAll(ctx context.Context, name string, commands []study.Command) ([]int, error) {
	if err := tuner.CheckAddAll(commands); err != nil {
		return nil, err
	}
	var made []int
	part := false // whether some trials were stored before the store refused the rest
	err := t.with(ctx, name, func(a *actor.Actor) error {
		numbers, some, err := a.MakeAll(context.WithoutCancel(ctx), commands)
		made, part = numbers, part || some
		return err
	})
	if err != nil && part && !errors.As(err, new(*tuner.CommandError)) { // also if the call was retried since
		return nil, fmt.Errorf("%w: %w: %w", store.ErrUnknownOutcome, errPartAdded, err)
	}
	return made, err
}

// errPartAdded explains why some trials may exist although the store refused others. A
// request too large for one commit takes several.
var errPartAdded = errors.New("a part of the trials has been added")
