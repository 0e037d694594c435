package tuner

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/bkbtuner/bkb/store"
)

// StudyNews is a part of what [Service.WatchStudies] yields.
type StudyNews struct {
	// Studies are studies as they stand, those that are new or have changed.
	Studies []Study
	// Deleted are studies that were yielded before and are gone.
	Deleted []store.StudyID
	// Listed reports that all studies have been yielded that existed at the beginning. It
	// is set once.
	Listed bool
}

// newsPause is the shortest time between two yields of changed studies.
const newsPause = 250 * time.Millisecond

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
	names := make([]string, 0, len(w.names))
	for name := range w.names {
		names = append(names, name)
	}
	clear(w.names)
	slices.Sort(names)
	return names
}

// WatchStudies implements [Service]. It does not keep a study in memory.
func (t *Tuner) WatchStudies(ctx context.Context) iter.Seq2[StudyNews, error] {
	return func(yield func(StudyNews, error) bool) {
		w := t.notices.enter() // before the list, so that no change is missed
		defer t.notices.leave(w)
		known := make(map[string]store.StudyID)
		after, more := "", true
		for more {
			var news StudyNews
			var err error
			news.Studies, more, err = t.Studies(ctx, after, 0)
			if err != nil {
				yield(StudyNews{}, err)
				return
			}
			for _, s := range news.Studies {
				known[s.Name], after = s.ID, s.Name
			}
			news.Listed = !more
			if !yield(news, nil) {
				return
			}
		}
		for {
			select {
			case <-w.wake:
			case <-ctx.Done():
				yield(StudyNews{}, ctx.Err())
				return
			case <-t.ctx.Done():
				yield(StudyNews{}, store.ErrClosed)
				return
			}
			news, err := t.changes(ctx, t.notices.take(w), known)
			if err != nil {
				yield(StudyNews{}, err)
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

// changes returns the studies with these names, and those known before that are gone.
func (t *Tuner) changes(ctx context.Context, names []string, known map[string]store.StudyID) (news StudyNews, err error) {
	for _, name := range names {
		before, had := known[name]
		info, err := t.store.Lookup(ctx, name)
		var s Study
		if err == nil {
			s, err = t.listed(ctx, info)
		}
		gone := CodeOf(err) == NotFound
		if err != nil && !gone {
			return news, err
		}
		if had && (gone || s.ID != before) {
			news.Deleted = append(news.Deleted, before)
			delete(known, name)
		}
		if !gone {
			known[name] = s.ID
			news.Studies = append(news.Studies, s)
		}
	}
	return news, nil
}
