package store

import (
	"github.com/bkbtuner/bkb/store/internal/recordpb"
	"github.com/bkbtuner/bkb/tuner/study"
	"google.golang.org/protobuf/proto"
)

// DecodePayload decodes a record without its version and checksum.
func (d *Decoder) DecodePayload(b []byte) (study.Event, error) {
	return d.decodePayload(b)
}

// DecodeByReflection decodes a payload with protobuf's own decoder.
func (d *Decoder) DecodeByReflection(b []byte) (study.Event, error) {
	if sparse(b) {
		return study.Event{}, errSparse
	}
	var m recordpb.Event
	if err := proto.Unmarshal(b, &m); err != nil {
		return study.Event{}, err
	}
	if proto.Size(&m) != len(b) {
		return study.Event{}, errRedundant
	}
	return d.event(&m)
}

// Seal appends the checksum to a forged record or summary.
func Seal(b []byte, id StudyID, pos study.Position) []byte { return seal(b, 0, id, pos) }
