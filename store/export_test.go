package store

import "github.com/bkbtuner/bkb/tuner/study"

// DecodePayload decodes what lies beneath version and checksum.
func (d *Decoder) DecodePayload(b []byte) (study.Event, error) { return d.decodePayload(b) }

// Seal ends a forged record or snapshot with its checksum.
func Seal(b []byte, id StudyID, pos study.Position) []byte { return seal(b, 0, id, pos) }
