package engine

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine/actor"
	"github.com/bkbtuner/bkb/tuner/engine/view"
	"github.com/bkbtuner/bkb/tuner/memlimit"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Watch implements [tuner.Service].
func (t *Engine) Watch(ctx context.Context, name string, from tuner.From) iter.Seq2[tuner.Event, error] {
	return func(yield func(tuner.Event, error) bool) {
		w := from
		for {
			more, err := t.watch(ctx, name, &w, yield)
			if err != nil {
				yield(tuner.Event{}, err)
			}
			if err != nil || !more {
				return
			}
		}
	}
}

// watch yields some events, or waits for the next. more is false when the caller wants no more.
func (t *Engine) watch(ctx context.Context, name string, w *tuner.From, yield func(tuner.Event, error) bool) (more bool, err error) {
	n, err := t.news(ctx, name, w)
	if err != nil {
		return false, err
	}
	if n.view == nil {
		select {
		case <-n.advanced:
			return true, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	batch, leave, err := t.batch(ctx, n, w.After)
	defer leave() // also after a panic of the caller
	for _, h := range batch {
		if !w.Yield(yield, h, nil) {
			return false, nil
		}
	}
	return true, err
}

const (
	// watchBatch is about the most bytes of events that a watch reads at once.
	watchBatch = 64 << 10
	// watchRoom is the room in memory for reading them.
	watchRoom = 1 << 20
	// watchInflation is about how many bytes of memory a byte of an event takes on its
	// way to a client.
	watchInflation = 16
)

// batch reads the next events for a watch once there is room for them in memory. Unless
// an error follows, it returns at least one event. leave frees the room. Many watches
// wake at once, so each waits for its turn to read.
func (t *Engine) batch(ctx context.Context, n news, after study.Position) (batch []tuner.Event, leave func(), err error) {
	if leave, err = t.options.Memory.Await(ctx, watchRoom); err != nil {
		return nil, func() {}, err
	}
	size := 0
	for r, err := range t.store.Read(ctx, n.id, after+1) {
		if err != nil {
			return batch, leave, err
		}
		if r.Position > n.view.Position() {
			break // the view is older than this event
		}
		h := view.Event(n.id, r, n.view)
		next := view.SizeOfEvent(h)
		if size > 0 && size+next > watchBatch {
			break
		}
		batch, size = append(batch, h), size+next
	}
	leave()
	if size <= watchBatch {
		return batch, func() {}, nil
	}
	if leave, ok := t.options.Memory.Enter(int64(size)*watchInflation, memlimit.ShareWatch); ok {
		return batch, leave, nil
	}
	batch = nil // read again when there is room to send it
	if leave, err = t.options.Memory.Await(ctx, int64(size)*watchInflation); err != nil {
		return nil, func() {}, err
	}
	for r, err := range t.store.Read(ctx, n.id, after+1) {
		if err != nil {
			return nil, leave, err
		}
		return []tuner.Event{view.Event(n.id, r, n.view)}, leave, nil
	}
	return nil, leave, nil
}

// news is the next step of a watcher. It is a view of the stored study if that is ahead
// of the watcher, or otherwise a channel to wait for.
type news struct {
	id       store.StudyID
	view     *study.View
	advanced <-chan struct{}
	end      study.Position // that the engine knows
}

func (t *Engine) news(ctx context.Context, name string, from *tuner.From) (n news, err error) {
	err = t.with(ctx, name, func(a *actor.Actor) (err error) {
		n.id = a.ID()
		n.view, n.advanced, n.end, err = a.Since(ctx, from.After)
		return err
	})
	if err == nil {
		err = from.Of(n.id)
	}
	if err != nil || n.end >= from.After {
		return n, err
	}
	info, err := t.store.Stat(ctx, n.id) // another writer of the store may be ahead
	if err == nil && info.Head < from.After {
		err = from.PastEnd(info.Head)
	}
	return n, err
}

// newsPause is the shortest time between two yields of changed studies.
const newsPause = 250 * time.Millisecond

// rescanPause is the time between two looks for changes by other servers.
const rescanPause = 2 * time.Second

// notices tells those who watch all studies which ones have changed.
type notices struct {
	mu       sync.Mutex
	watchers map[*studyWatch]struct{}
}

// studyWatch collects names of changed studies.
type studyWatch struct {
	wake  chan struct{} // holds a token if there are names
	names map[string]struct{}
}

// changed notes that a study has changed, appeared or gone.
func (n *notices) changed(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for w := range n.watchers {
		w.names[name] = struct{}{}
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

func (n *notices) enter() *studyWatch {
	n.mu.Lock()
	defer n.mu.Unlock()
	w := &studyWatch{wake: make(chan struct{}, 1), names: make(map[string]struct{})}
	if n.watchers == nil {
		n.watchers = make(map[*studyWatch]struct{})
	}
	n.watchers[w] = struct{}{}
	return w
}

func (n *notices) leave(w *studyWatch) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.watchers, w)
}

// take returns the names that a watch has collected, and forgets them.
func (n *notices) take(w *studyWatch) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	names := slices.Sorted(maps.Keys(w.names))
	clear(w.names)
	return names
}

// WatchStudies implements [tuner.Service]. It does not keep a study in memory.
func (t *Engine) WatchStudies(ctx context.Context) iter.Seq2[tuner.StudyNews, error] {
	return func(yield func(tuner.StudyNews, error) bool) {
		if err := t.watchStudies(ctx, func(news tuner.StudyNews) bool { return yield(news, nil) }); err != nil {
			yield(tuner.StudyNews{}, err)
		}
	}
}

// watchStudies yields news until the caller wants no more.
func (t *Engine) watchStudies(ctx context.Context, yield func(tuner.StudyNews) bool) error {
	w := t.notices.enter() // before the list, so that no change is missed
	defer t.notices.leave(w)
	known := make(map[string]store.Info)
	rescan, stop := t.rescan()
	defer stop()
	for after, more := "", true; more; {
		var news tuner.StudyNews
		var err error
		if news.Studies, more, err = t.Studies(ctx, after, 0); err != nil {
			return err
		}
		for _, s := range news.Studies {
			known[s.Name], after = store.Info{ID: s.ID, Name: s.Name, Head: s.Position}, s.Name
		}
		if news.Listed = !more; !yield(news) {
			return nil
		}
	}
	for {
		var names []string
		var err error
		select {
		case <-w.wake:
			names = t.notices.take(w)
		case <-rescan:
			names, err = t.moved(ctx, known)
		case <-ctx.Done():
			err = ctx.Err()
		case <-t.ctx.Done():
			err = store.ErrClosed
		}
		if err != nil {
			return err
		}
		news, err := t.changes(ctx, names, known)
		if err != nil {
			return err
		}
		if len(news.Studies)+len(news.Deleted) > 0 && !yield(news) {
			return nil
		}
		select {
		case <-time.After(newsPause): // changes in the meantime come together
		case <-ctx.Done():
		}
	}
}

// rescan returns a channel that ticks if other servers can change studies.
func (t *Engine) rescan() (tick <-chan time.Time, stop func()) {
	if _, ok := t.store.(store.Fencing); !ok {
		return nil, func() {}
	}
	ticker := time.NewTicker(rescanPause)
	return ticker.C, ticker.Stop
}

// moved returns the names of studies that differ from those known.
func (t *Engine) moved(ctx context.Context, known map[string]store.Info) (names []string, err error) {
	present := 0
	for info, err := range t.store.List(ctx, "") {
		if err != nil {
			return nil, err
		}
		was, had := known[info.Name]
		if had {
			present++
		}
		if was.ID != info.ID || was.Head < info.Head {
			names = append(names, info.Name)
		}
	}
	if present == len(known) {
		return names, nil
	}
	for name := range known {
		if _, err := t.store.Lookup(ctx, name); tuner.CodeOf(err) == tuner.NotFound {
			names = append(names, name)
		} else if err != nil {
			return nil, err
		}
	}
	return names, nil
}

// changes returns the studies with these names, and those known before that are gone.
func (t *Engine) changes(ctx context.Context, names []string, known map[string]store.Info) (news tuner.StudyNews, err error) {
	heads := make(map[string]study.Position)
	for part := range slices.Chunk(names, tuner.MaxPage) {
		var infos []store.Info
		for _, name := range part {
			info, err := t.store.Lookup(ctx, name)
			if err == nil {
				infos, heads[name] = append(infos, info), info.Head
			} else if tuner.CodeOf(err) != tuner.NotFound {
				return news, err
			}
		}
		studies, _, err := t.list(ctx, infos, time.Now().Add(time.Hour)) // each of them
		if err != nil {
			return news, err
		}
		news.Studies = append(news.Studies, studies...)
	}
	now := make(map[string]store.Info)
	for _, s := range news.Studies {
		now[s.Name] = store.Info{ID: s.ID, Name: s.Name, Head: max(heads[s.Name], s.Position)}
	}
	for _, name := range names {
		if before, had := known[name]; had && now[name].ID != before.ID {
			news.Deleted = append(news.Deleted, before.ID)
			delete(known, name)
		}
	}
	maps.Copy(known, now)
	return news, nil
}
