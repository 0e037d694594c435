package store

import "github.com/bkbtuner/bkb/tuner/study"

// DecodePayload decodes a record without its version and checksum.
func (d *Decoder) DecodePayload(b []byte) (study.Event, error) {
	return d.decodePayload(b)
}

// DecodeQuickly decodes a payload without a protobuf message, and DecodeMessage with
// one.
func (d *Decoder) DecodeQuickly(b []byte) (e study.Event, ok bool) {
	return d.quick.event(b)
}

func (d *Decoder) DecodeMessage(b []byte) (study.Event, error) {
	return d.decodeMessage(b)
}

// Seal appends the checksum to a forged record or snapshot.
func Seal(b []byte, id StudyID, pos study.Position) []byte { return seal(b, 0, id, pos) }
