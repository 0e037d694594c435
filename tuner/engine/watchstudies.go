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
	"github.com/bkbtuner/bkb/tuner/study"
)

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
		w := t.notices.enter() // before the list, so that no change is missed
		defer t.notices.leave(w)
		known := make(map[string]store.Info)
		rescan, stop := t.rescan()
		defer stop()
		after, more := "", true
		for more {
			var news tuner.StudyNews
			var err error
			news.Studies, more, err = t.Studies(ctx, after, 0)
			if err != nil {
				yield(tuner.StudyNews{}, err)
				return
			}
			for _, s := range news.Studies {
				known[s.Name], after = store.Info{ID: s.ID, Name: s.Name, Head: s.Position}, s.Name
			}
			news.Listed = !more
			if !yield(news, nil) {
				return
			}
		}
		for {
			var names []string
			select {
			case <-w.wake:
				names = t.notices.take(w)
			case <-rescan:
				var err error
				if names, err = t.moved(ctx, known); err != nil {
					yield(tuner.StudyNews{}, err)
					return
				}
			case <-ctx.Done():
				yield(tuner.StudyNews{}, ctx.Err())
				return
			case <-t.ctx.Done():
				yield(tuner.StudyNews{}, store.ErrClosed)
				return
			}
			news, err := t.changes(ctx, names, known)
			if err != nil {
				yield(tuner.StudyNews{}, err)
				return
			}
			if len(news.Studies)+len(news.Deleted) > 0 && !yield(news, nil) {
				return
			}
			select {
			case <-time.After(newsPause): // changes in the meantime come together
			case <-ctx.Done():
			}
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
