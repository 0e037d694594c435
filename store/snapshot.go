package store

import (
	"encoding/binary"
	"fmt"

	"github.com/bkbtuner/bkb/tuner/study"
)

// snapshotFormat is the version of the frame around a snapshot. A snapshot of another
// version counts as missing.
const snapshotFormat = 1

// snapshotPlace takes the place of a record's position in the checksum, so that a
// snapshot cannot pass for a record or the reverse.
const snapshotPlace study.Position = 0

const snapshotHeadBytes = 1 + 8

// EncodeSnapshot returns the stored form of a snapshot, see FORMAT.md. It is for
// implementations of [Store].
//
// It returns a [LimitError], or [ErrInvalid] if the position is 0 or beyond the head.
func EncodeSnapshot(id StudyID, head study.Position, s Snapshot) ([]byte, error) {
	if s.Position == 0 || s.Position > head {
		return nil, fmt.Errorf("%w: a snapshot at position %d of a log of %d events", ErrInvalid, s.Position, head)
	}
	if len(s.Data) > MaxSnapshotBytes {
		return nil, &LimitError{What: "snapshot", Size: len(s.Data), Limit: MaxSnapshotBytes}
	}
	b := make([]byte, 0, snapshotHeadBytes+len(s.Data)+checksumBytes)
	b = append(b, snapshotFormat)
	b = binary.LittleEndian.AppendUint64(b, uint64(s.Position))
	b = append(b, s.Data...)
	return seal(b, 0, id, snapshotPlace), nil
}

// DecodeSnapshot is the inverse of [EncodeSnapshot]. Data is a copy. ok is false for a
// snapshot that is damaged, in another format, of another study, or ahead of the head.
// It is for implementations of [Store].
func DecodeSnapshot(id StudyID, head study.Position, b []byte) (s Snapshot, ok bool) {
	body, ok := unseal(b, id, snapshotPlace)
	if !ok || len(body) < snapshotHeadBytes || body[0] != snapshotFormat {
		return Snapshot{}, false
	}
	pos := study.Position(binary.LittleEndian.Uint64(body[1:]))
	if pos == 0 || pos > head {
		return Snapshot{}, false
	}
	return Snapshot{Position: pos, Data: append([]byte(nil), body[snapshotHeadBytes:]...)}, true
}
