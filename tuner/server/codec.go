package server

import (
	"sync"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// bytesInFlight counts the bytes of the requests that are being served, as they
// came over the wire: what is beyond the limit is not even decoded.
type bytesInFlight struct {
	limit int // negative: none
	gauge func(bytes float64)

	mu    sync.Mutex
	total int
	of    map[any]int // by message; −1 for one that was left undecoded
	bad   map[any]error
}

func newBytesInFlight(limit int, gauge func(float64)) *bytesInFlight {
	return &bytesInFlight{limit: limit, gauge: gauge, of: make(map[any]int), bad: make(map[any]error)}
}

// take counts a message in, or marks it as refused.
func (b *bytesInFlight) take(message any, bytes int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.limit >= 0 && b.total+bytes > b.limit {
		b.of[message] = -1
		return false
	}
	b.total += bytes
	b.of[message] = bytes
	b.gauge(float64(b.total))
	return true
}

// size is how many bytes a message took; 0 for one that is not counted.
func (b *bytesInFlight) size(message any) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(b.of[message], 0)
}

// refused tells whether a message was left undecoded.
func (b *bytesInFlight) refused(message any) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.of[message] < 0
}

// spoil marks a message that could not be decoded.
func (b *bytesInFlight) spoil(message any, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bad[message] = err
}

// spoiled returns why a message could not be decoded, nil if it was.
func (b *bytesInFlight) spoiled(message any) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bad[message]
}

// release counts a message out. Once more does no harm.
func (b *bytesInFlight) release(message any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.total -= max(b.of[message], 0)
	delete(b.of, message)
	delete(b.bad, message)
	b.gauge(float64(b.total))
}

// codec is that of protobuf, counting what it decodes.
type codec struct {
	encoding.CodecV2
	bytes *bytesInFlight
}

func newCodec(bytes *bytesInFlight) codec {
	return codec{encoding.GetCodecV2(proto.Name), bytes}
}

// Unmarshal leaves a message that the chain then refuses: gRPC would call one that
// cannot be decoded INTERNAL.
func (c codec) Unmarshal(data mem.BufferSlice, message any) error {
	if !c.bytes.take(message, data.Len()) {
		return nil
	}
	if err := c.CodecV2.Unmarshal(data, message); err != nil {
		c.bytes.spoil(message, err)
	}
	return nil
}
