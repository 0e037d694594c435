package store

import (
	"github.com/bkbtuner/bkb/store/internal/recordpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// A message in memory takes up to 112 bytes even if it took two in the payload. Payloads of up to
// freePayloadBytes may consist of small messages alone. Larger ones must have at least
// bytesPerMessage bytes for each message. A report or metric with one value always has that many.
const (
	freePayloadBytes = 64 << 10
	bytesPerMessage  = 12
)

// sparse tells whether decoding the payload would take too much memory for its length.
// A malformed payload is not sparse.
func sparse(payload []byte) bool {
	if len(payload) <= freePayloadBytes {
		return false
	}
	event := (&recordpb.Event{}).ProtoReflect().Descriptor()
	return countMessages(event, payload) > len(payload)/bytesPerMessage
}

// countMessages counts the messages nested in a message, at any depth.
func countMessages(md protoreflect.MessageDescriptor, b []byte) int {
	var count int
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			break
		}
		b = b[n:]
		if n = protowire.ConsumeFieldValue(num, typ, b); n < 0 {
			break
		}
		if fd := md.Fields().ByNumber(num); typ == protowire.BytesType && fd != nil && fd.Message() != nil {
			inner, _ := protowire.ConsumeBytes(b)
			count += 1 + countMessages(fd.Message(), inner)
		}
		b = b[n:]
	}
	return count
}
