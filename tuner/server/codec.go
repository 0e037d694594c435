package server

import (
	"sync"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"

	"github.com/bkbtuner/bkb/tuner/memlimit"
)

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
	// smallRequest is the largest request in bytes that is decoded even if memory is
	// short.
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
