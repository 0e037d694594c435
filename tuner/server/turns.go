package server

import (
	"context"
	"runtime"
	"sync"

	"google.golang.org/grpc/status"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
)

// turns lets few calls that read much run at once, since each keeps a processor busy for
// long: half as many as there are processors for one caller, and of all callers but admins as
// many as there are. The others wait, and asks and tells pass them.
type turns struct {
	all chan struct{}

	mu sync.Mutex
	of map[string]*turnsOf
}

// turnsOf are the turns of one caller.
type turnsOf struct {
	free  chan struct{}
	users int // that wait or run
}

func newTurns() *turns {
	return &turns{all: make(chan struct{}, runtime.GOMAXPROCS(0)), of: make(map[string]*turnsOf)}
}

func (t *turns) take(ctx context.Context, who string, admin bool) (leave func(), err error) {
	t.mu.Lock()
	own := t.of[who]
	if own == nil {
		own = &turnsOf{free: make(chan struct{}, max(1, cap(t.all)/2))}
		t.of[who] = own
	}
	own.users++
	t.mu.Unlock()
	left := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if own.users--; own.users == 0 {
			delete(t.of, who)
		}
	}
	select {
	case own.free <- struct{}{}:
	case <-ctx.Done():
		left()
		return nil, ctx.Err()
	}
	if admin {
		return func() { <-own.free; left() }, nil
	}
	select {
	case t.all <- struct{}{}:
	case <-ctx.Done():
		<-own.free
		left()
		return nil, ctx.Err()
	}
	return func() { <-t.all; <-own.free; left() }, nil
}

// turn waits until a call that reads much may run. A call that had a turn at the server that
// forwarded it waits for none. GetBest waits for the proposer instead.
func (s *Server) turn(ctx context.Context, method string, request any) (leave func(), err error) {
	id, _ := identityOf(ctx)
	if s.memoryFor(method, request) != memoryOfList || method == pb.Tuner_GetBest_FullMethodName || id.forwarded {
		return func() {}, nil
	}
	who := id.name
	if s.auth.open {
		who = hostOf(ctx)
	}
	leave, err = s.turns.take(ctx, who, id.scope.Role == RoleAdmin && !s.auth.open)
	if err != nil {
		return nil, status.FromContextError(err).Err()
	}
	return leave, nil
}
