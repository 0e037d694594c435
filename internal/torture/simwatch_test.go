package torture

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing/synctest"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine/view"
	"github.com/bkbtuner/bkb/tuner/study"
)

// simWatches are clients that watch the studies of a simulation, and all studies. Their
// streams are cut and resumed, at any server. They are part of every second seed, because a
// watched study stays in memory.
type simWatches struct {
	s      *simulation
	random *rand.Rand // of their own, so that the other clients do the same without them
	all    []*simWatch
}

// simWatch is one client. What it was told is kept over its streams.
type simWatch struct {
	of     *simWatches
	name   string // empty for all studies
	cancel context.CancelFunc

	mu      sync.Mutex
	running bool
	id      store.StudyID  // of the study that is watched
	after   study.Position // of the last event
	reload  bool           // the last stream said that the study is another one
	events  int
	studies map[store.StudyID]tuner.Study // of all studies, as told last
	present map[store.StudyID]bool        // likewise, in the present stream
}

func (s *simulation) watch() {
	s.watches = &simWatches{s: s, random: rand.New(rand.NewPCG(s.seed, 4))}
	if s.seed%2 == 0 {
		return
	}
	for _, name := range []string{"a", "b", ""} {
		s.watches.all = append(s.watches.all, &simWatch{of: s.watches, name: name, studies: make(map[store.StudyID]tuner.Study)})
	}
}

// step cuts some streams and begins others.
func (ws *simWatches) step() {
	for _, w := range ws.all {
		w.mu.Lock()
		running := w.running
		w.mu.Unlock()
		switch {
		case !running && (w.name == "" || ws.s.book.exists(w.name)):
			w.begin()
		case running && ws.random.IntN(15) == 0:
			ws.s.counts.cuts++
			w.cancel()
		}
	}
}

// end cuts all streams.
func (ws *simWatches) end() {
	for _, w := range ws.all {
		if w.cancel != nil {
			w.cancel()
		}
	}
}

func (w *simWatch) begin() {
	s := w.of.s
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel, w.running, w.present = cancel, true, make(map[store.StudyID]bool)
	service, life := tuner.Service(s.service), s.life
	if s.fleet != nil {
		v := s.fleet[w.of.random.IntN(len(s.fleet))]
		service, life = v, v.life
	}
	go func() {
		defer func() {
			w.mu.Lock()
			w.running = false
			w.mu.Unlock()
		}()
		if w.name == "" {
			for news, err := range service.WatchStudies(ctx) {
				if err != nil || life.dead.Load() || !w.news(news) {
					return
				}
			}
			return
		}
		for h, err := range service.Watch(ctx, w.name, w.from()) {
			if life.dead.Load() || !w.event(h, err) {
				return
			}
		}
	}()
}

// from is where the client resumes. Told that the study is another one, it begins anew.
func (w *simWatch) from() tuner.From {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.reload {
		w.after, w.id, w.reload = 0, 0, false
	}
	return tuner.From{Study: w.id, After: w.after}
}

// event takes an event as a client does, and compares it with the disk.
func (w *simWatch) event(h tuner.Event, err error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		code := tuner.CodeOf(err)
		w.reload = code == tuner.NotFound || code == tuner.Invalid
		if code == tuner.Internal || code == tuner.Damaged {
			w.broken("the watch of %s ended: %v", w.name, err)
		}
		return false
	}
	if h.Position != w.after+1 || w.id != 0 && h.Study != w.id {
		w.broken("the watch of %s got position %d of study %d after %d of study %d", w.name, h.Position, h.Study, w.after, w.id)
	}
	w.id, w.after = h.Study, h.Position
	w.events++
	for r, err := range w.of.s.disk.disk.Read(context.Background(), h.Study, h.Position) {
		if err != nil {
			break // it was deleted since
		}
		n, of := r.Event.Trial()
		if view.Kind(r.Event.Body) != h.Kind || of != (h.Trial != nil) || of && h.Trial.Number != n || !r.Event.Time.Equal(h.Time) {
			w.broken("the watch of %s got %+v, and on disk is %+v", w.name, h, r)
		}
		return true
	}
	if _, err := w.of.s.disk.disk.Stat(context.Background(), h.Study); err == nil {
		w.broken("the watch of %s got position %d of study %d, which is not on disk", w.name, h.Position, h.Study)
	}
	return true
}

// news takes news of studies.
func (w *simWatch) news(news tuner.StudyNews) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events++
	for _, s := range news.Studies {
		if w.present[s.ID] && s.Position < w.studies[s.ID].Position {
			w.broken("study %d went back from position %d to %d", s.ID, w.studies[s.ID].Position, s.Position)
		}
		w.studies[s.ID], w.present[s.ID] = s, true
	}
	for _, id := range news.Deleted {
		if !w.present[id] {
			w.broken("no message told that study %d was deleted", id)
		}
		delete(w.studies, id)
		delete(w.present, id)
	}
	if news.Listed { // a stream begins with all studies
		for id := range w.studies {
			if !w.present[id] {
				delete(w.studies, id)
			}
		}
	}
	return true
}

// broken is called on the goroutine of a stream.
func (w *simWatch) broken(format string, args ...any) {
	w.of.s.mu.Lock()
	defer w.of.s.mu.Unlock()
	w.of.s.broken(format, args...)
}

// rest waits until the clients have what they miss, and checks that they know everything.
func (ws *simWatches) rest() {
	for range 20 { // changes by other servers are seen after some seconds
		for _, w := range ws.all {
			w.mu.Lock()
			running := w.running
			w.mu.Unlock()
			if !running {
				w.begin()
			}
		}
		ws.s.rest()
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
	}
	ws.atRest()
}

// atRest checks that the clients know everything, some seconds after the last change.
func (ws *simWatches) atRest() {
	for _, w := range ws.all {
		w.mu.Lock()
		ws.s.counts.watched += w.events
		for _, name := range []string{"a", "b"} {
			id, head := ws.s.book.position(name)
			switch {
			case w.name == name && id != 0 && (w.id != id || w.after != head):
				ws.s.broken("the watch of %s is at %d of study %d, and on disk are %d of study %d", name, w.after, w.id, head, id)
			case w.name == "" && id != 0 && w.studies[id].Position != head:
				ws.s.broken("the watch of all studies has %s at %d, and on disk are %d", name, w.studies[id].Position, head)
			}
		}
		if w.name == "" {
			for id, s := range w.studies {
				if now, _ := ws.s.book.position(s.Name); now != id {
					ws.s.broken("the watch of all studies still has study %d, %s", id, s.Name)
				}
			}
		}
		w.mu.Unlock()
	}
}
