package server

import (
	"context"
	"time"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner/memlimit"
	"github.com/bkbtuner/bkb/tuner/wire"
)

// retryMemory is how long a caller should wait that was refused for lack of memory.
const retryMemory = time.Second

// Room that calls reserve in memory while they run, in bytes.
const (
	memoryOfChange = 1 << 20            // with the stored data about it
	memoryOfList   = 3 * maxAnswerBytes // the page, its parts and its bytes
	memoryOfWatch  = 64 << 10           // of an idle one
	memoryOfBackup = 4 << 20
)

// memoryFor returns the room that a call reserves in memory.
func (s *Server) memoryFor(method string, request any) int64 {
	if r, ok := request.(*pb.GetTrialRequest); ok && r.GetView() == pb.TrialView_TRIAL_VIEW_FULL {
		return memoryOfList
	}
	switch s.methods[method].Room {
	case wire.RoomChange:
		return memoryOfChange + 4*int64(s.bytes.get(request).bytes)
	case wire.RoomList:
		return memoryOfList
	default:
		return 0
	}
}

// enterMemory reserves room in memory for a call or refuses it.
func (s *Server) enterMemory(ctx context.Context, bytes int64) (leave func(), err error) {
	if bytes == 0 {
		return func() {}, nil
	}
	id, _ := identityOf(ctx)
	share := memlimit.ShareWorker
	if id.scope.Role == RoleAdmin {
		share = memlimit.ShareAdmin
	}
	leave, ok := s.options.Memory.Enter(bytes, share)
	if !ok {
		return nil, s.refuse(ctx, "memory", retryMemory)
	}
	return leave, nil
}

// unreadTimeout is how long a client may leave a watch unread while memory is short.
const unreadTimeout = 10 * time.Second

// unread closes the connection of a watch whose client does not read while memory is
// short. It does so until read is called. Unread data take memory.
func (s *Server) unread(ctx context.Context) (read func()) {
	if s.options.Memory == nil {
		return func() {}
	}
	over := make(chan struct{})
	go func() {
		for wait := unreadTimeout; ; wait = time.Second {
			select {
			case <-over:
				return
			case <-time.After(wait):
			}
			if c := connectionOf(ctx); c != nil && s.options.Memory.Short() {
				id, _ := identityOf(ctx)
				s.notice("memory", hostOf(ctx), id.name)
				c.Close()
				return
			}
		}
	}()
	return func() { close(over) }
}
