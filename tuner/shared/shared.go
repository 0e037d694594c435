// Package shared is a [tuner.Service] on a file that other processes use too.
//
// A file can be open in one process at a time. A Service opens it when a call needs it,
// and closes it soon after the last call. While calls continue it pauses now and then, so
// that other processes get a turn. So you can look at a study while it runs, and many
// loops can share one file. Servers that share a database are package tuner/cluster.
package shared

import (
	"context"
	"errors"
	"io"
	"iter"
	"sync"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
)

const (
	// idle is how long the file stays open without a call.
	idle = 20 * time.Millisecond
	// hold is the longest time that it stays open while calls continue. It is longer, 20
	// times the time of opening, if opening is slow.
	hold = 500 * time.Millisecond
	// pause is how long it stays closed then. Other processes try every 50 ms.
	pause = 120 * time.Millisecond
	// poll is how often a watcher looks.
	poll = 500 * time.Millisecond
)

// Service is a [tuner.Service] that has its file only while it needs it.
type Service struct {
	tuner.Relay

	// Closed, if not nil, is called at the end of Close.
	Closed func() error

	open func(ctx context.Context) (tuner.Service, error)

	mu     sync.Mutex
	svc    tuner.Service // nil while closed
	users  int           // calls under way
	until  time.Time     // no call begins after it before a pause
	again  time.Time     // not opened before
	uses   int           // calls so far
	free   chan struct{} // closed when a call ends
	closed bool
}

var _ tuner.Service = (*Service)(nil)

// New returns a Service that opens its file with open.
func New(open func(ctx context.Context) (tuner.Service, error)) *Service {
	s := &Service{open: open, free: make(chan struct{})}
	s.Pass = func(ctx context.Context, _ tuner.Passed, f func(context.Context, tuner.Service) error) error {
		return s.Do(ctx, func(svc tuner.Service) error { return f(ctx, svc) })
	}
	return s
}

// Do calls f with the open service.
func (s *Service) Do(ctx context.Context, f func(tuner.Service) error) error {
	svc, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer s.release()
	return f(svc)
}

// acquire opens the file if need be, and waits if it is time for a pause.
func (s *Service) acquire(ctx context.Context) (tuner.Service, error) {
	for {
		s.mu.Lock()
		wait, err := s.ready(ctx)
		if wait == 0 && err == nil {
			s.users++
			s.uses++
		}
		svc, free := s.svc, s.free
		s.mu.Unlock()
		if wait > 0 {
			err = sleep(ctx, wait, free)
		}
		if wait == 0 || err != nil {
			return svc, err
		}
	}
}

// sleep waits for a time, or until wake is closed.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) error {
	select {
	case <-time.After(d):
	case <-wake:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// ready opens the file, or returns how long to wait before the next try. s.mu is held.
func (s *Service) ready(ctx context.Context) (wait time.Duration, err error) {
	if s.closed {
		return 0, store.ErrClosed
	}
	now := time.Now()
	if s.svc != nil && now.After(s.until) {
		if s.users > 0 {
			return pause, nil
		}
		if err := s.shut(); err != nil {
			return 0, err
		}
		s.again = now.Add(pause)
	}
	if s.svc != nil {
		return 0, nil
	}
	if wait := s.again.Sub(now); wait > 0 {
		return wait, nil
	}
	svc, err := s.open(ctx)
	if err == nil {
		s.svc, s.until = svc, time.Now().Add(max(hold, 20*time.Since(now)))
	}
	return 0, err
}

func (s *Service) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users--
	close(s.free)
	s.free = make(chan struct{})
	if s.users > 0 {
		return
	}
	uses := s.uses
	time.AfterFunc(idle, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.uses == uses && s.svc != nil {
			_ = s.shut() // acknowledged changes are on disk
		}
	})
}

// shut closes the file. s.mu is held.
func (s *Service) shut() error {
	svc := s.svc
	s.svc = nil
	return svc.Close()
}

func (s *Service) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	var err error
	if s.svc != nil {
		err = s.shut()
	}
	if s.Closed != nil {
		err = errors.Join(err, s.Closed())
	}
	return err
}

func (s *Service) Backup(ctx context.Context, w io.Writer) error {
	return s.Do(ctx, func(svc tuner.Service) error { return svc.Backup(ctx, w) })
}

// Watch implements [tuner.Service]. It looks at the file now and then.
func (s *Service) Watch(ctx context.Context, name string, from tuner.From) iter.Seq2[tuner.Event, error] {
	return func(yield func(tuner.Event, error) bool) {
		w := from
		for {
			var news []tuner.Event
			err := s.Do(ctx, func(svc tuner.Service) (err error) {
				news, err = read(ctx, svc, name, &w)
				return err
			})
			for _, h := range news {
				if !w.Yield(yield, h, nil) {
					return
				}
			}
			if err == nil && len(news) == 0 {
				err = sleep(ctx, poll, nil)
			}
			if err != nil {
				yield(tuner.Event{}, err)
				return
			}
		}
	}
}

// WatchStudies implements [tuner.Service]. It looks at the file now and then.
func (s *Service) WatchStudies(ctx context.Context) iter.Seq2[tuner.StudyNews, error] {
	return func(yield func(tuner.StudyNews, error) bool) {
		known := make(map[store.StudyID]study.Position)
		for first := true; ; first = false {
			news, err := s.news(ctx, known)
			news.Listed = first
			if err == nil && (first || len(news.Studies)+len(news.Deleted) > 0) && !yield(news, nil) {
				return
			}
			if err == nil {
				err = sleep(ctx, poll, nil)
			}
			if err != nil {
				yield(tuner.StudyNews{}, err)
				return
			}
		}
	}
}

// news returns the studies that differ from the known ones, and updates these.
func (s *Service) news(ctx context.Context, known map[store.StudyID]study.Position) (news tuner.StudyNews, err error) {
	present := make(map[store.StudyID]bool)
	for after, more := "", true; more; {
		var page []tuner.Study
		if page, more, err = s.Studies(ctx, after, 0); err != nil {
			return news, err
		}
		for _, v := range page {
			after, present[v.ID] = v.Name, true
			if at, had := known[v.ID]; !had || at != v.Position {
				known[v.ID] = v.Position
				news.Studies = append(news.Studies, v)
			}
		}
	}
	for id := range known {
		if !present[id] {
			delete(known, id)
			news.Deleted = append(news.Deleted, id)
		}
	}
	return news, nil
}

// read returns some of what happened since, without waiting.
func read(ctx context.Context, svc tuner.Service, name string, w *tuner.From) (news []tuner.Event, err error) {
	view, err := svc.Study(ctx, name)
	if err == nil {
		err = w.Of(view.ID)
	}
	if err == nil && view.Position < w.After {
		err = w.PastEnd(view.Position)
	}
	if err != nil || view.Position <= w.After {
		return nil, err
	}
	for h, err := range svc.Watch(ctx, name, *w) {
		if err != nil {
			return news, err
		}
		news = append(news, h)
		if h.Position >= view.Position || len(news) == 1000 {
			break
		}
	}
	return news, nil
}
