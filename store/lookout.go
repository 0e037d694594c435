package store

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// Lookout finds out which servers of a [Shared] store let their leases end, by a monotonic
// clock of this process. The lease of a server is over when it was seen for the length of
// the lease without a renewal. The time between two looks counts only if it is at most half
// a lease, so that no lease ends because the store was away or this process did not run.
type Lookout struct {
	clock func() time.Duration

	mu   sync.Mutex
	seen map[ServerID]sighting
}

// sighting is a server that was read with the same beat from one time to another.
type sighting struct {
	Server
	since, last time.Duration
}

func (s sighting) over() bool { return s.last-s.since >= s.TTL }

// NewLookout returns a Lookout that has seen no server.
func NewLookout(clock func() time.Duration) *Lookout {
	return &Lookout{clock: clock, seen: make(map[ServerID]sighting)}
}

// See notes a server that was just read, and tells whether its lease is over.
func (l *Lookout) See(v Server) (over bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, s := l.clock(), l.seen[v.ID]
	if s.Server != v || now-s.last > v.TTL/2 {
		s = sighting{Server: v, since: now}
	}
	s.last = now
	l.seen[v.ID] = s
	return s.over()
}

// Look reads all servers, and returns them.
func (l *Lookout) Look(ctx context.Context, s Shared) ([]Server, error) {
	begun := l.clock()
	all, err := s.Servers(ctx)
	if err != nil {
		return nil, err
	}
	for _, v := range all {
		l.See(v)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.seen, func(_ ServerID, s sighting) bool { return s.last < begun })
	return all, nil
}

// Restart forgets how long servers have not renewed their leases. It is for a process that
// could not write to the store itself, so that the others could not either.
func (l *Lookout) Restart() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, s := range l.seen {
		s.since = l.clock()
		l.seen[id] = s
	}
}

// Gone tells whether a server was not among those of the last look, or its lease is over.
func (l *Lookout) Gone(id ServerID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, there := l.seen[id]
	return !there || s.over()
}

// outlivePause is the longest time between two looks of Outlive.
const outlivePause = 200 * time.Millisecond

// Outlive waits until a server that was read as v has renewed its lease or is gone. It
// buries the server when its lease is over.
func Outlive(ctx context.Context, s Shared, v Server) (gone bool, err error) {
	begun := time.Now()
	l := NewLookout(func() time.Duration { return time.Since(begun) })
	for {
		all, err := l.Look(ctx, s)
		if err != nil {
			return false, err
		}
		switch {
		case !slices.ContainsFunc(all, func(now Server) bool { return now.ID == v.ID }):
			return true, nil
		case !slices.Contains(all, v):
			return false, nil
		case l.Gone(v.ID):
			return s.Bury(ctx, v)
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(min(v.TTL/10, outlivePause)):
		}
	}
}
