package server

import (
	"context"
	"runtime"
	"sync"
	"time"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/memlimit"
	"github.com/bkbtuner/bkb/tuner/wire"
)

// retryMemory is how long a caller should wait that was refused for lack of memory.
const retryMemory = time.Second

// Room that calls reserve in memory while they run, in bytes.
const (
	memoryOfChange = 1 << 20            // with the stored data about it
	memoryOfList   = 3 * maxAnswerBytes // the page, its parts and its bytes
	memoryOfFile   = 4 * tuner.MaxArtifactPart
	memoryOfWatch  = 64 << 10 // of an idle one
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
	case wire.RoomFile:
		return memoryOfFile
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

// bytesInFlight counts the bytes of running requests as received. A request over the
// limit is not decoded.
type bytesInFlight struct {
	limit  int // negative for none
	memory *memlimit.Limit
	gauge  func(bytes float64)

	mu    sync.Mutex
	total int
	of    map[any]taken // by message
}

// taken is what is known of one message.
type taken struct {
	bytes  int
	limit  string // why it was not decoded, or empty
	bad    error  // why it could not be decoded, or nil
	forget func() // frees its room in memory, or nil
}

const (
	// inflation is about how many bytes in memory a byte of a request can take.
	inflation = 64
	// smallRequest is the largest request in bytes that is decoded even if memory is short.
	smallRequest = 4 << 10
)

func newBytesInFlight(limit int, memory *memlimit.Limit, gauge func(float64)) *bytesInFlight {
	return &bytesInFlight{limit: limit, memory: memory, gauge: gauge, of: make(map[any]taken)}
}

// inflated is the memory that a request of so many bytes reserves. It is at most an
// eighth of the limit, so that every legal request fits while the server is idle.
func inflated(bytes int64, memory *memlimit.Limit) int64 {
	return min(inflation*bytes, memory.Bytes()/8)
}

// take counts a message, or marks it as refused.
func (b *bytesInFlight) take(message any, bytes int) bool {
	forget, room := func() {}, true
	if bytes > smallRequest {
		forget, room = b.memory.Enter(inflated(int64(bytes), b.memory), memlimit.ShareAdmin) // may take a while
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !room {
		b.of[message] = taken{limit: "memory"}
		return false
	}
	if b.limit >= 0 && b.total+bytes > b.limit {
		forget()
		b.of[message] = taken{limit: "bytes"}
		return false
	}
	b.total += bytes
	b.of[message] = taken{bytes: bytes, forget: forget}
	b.gauge(float64(b.total))
	return true
}

// get returns what is known of a message, which is nothing if it is not counted.
func (b *bytesInFlight) get(message any) taken {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.of[message]
}

// release removes a message from the count. Calling it again has no effect.
func (b *bytesInFlight) release(message any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.of[message]
	b.total -= m.bytes
	if m.forget != nil {
		m.forget()
	}
	delete(b.of, message)
	b.gauge(float64(b.total))
}

// codec is the protobuf codec, and counts the bytes that it decodes.
type codec struct {
	encoding.CodecV2
	bytes *bytesInFlight
}

func newCodec(bytes *bytesInFlight) codec { return codec{encoding.GetCodecV2(proto.Name), bytes} }

// Unmarshal returns nil even if it does not decode a message, and the chain refuses the
// message. For an error here, gRPC would answer INTERNAL.
func (c codec) Unmarshal(data mem.BufferSlice, message any) error {
	if !c.bytes.take(message, data.Len()) {
		return nil
	}
	if err := c.CodecV2.Unmarshal(data, message); err != nil {
		c.bytes.mu.Lock()
		defer c.bytes.mu.Unlock()
		m := c.bytes.of[message]
		m.bad = err
		c.bytes.of[message] = m
	}
	return nil
}

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
