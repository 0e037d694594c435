package store

import (
	"fmt"

	"github.com/bkbtuner/bkb/tuner/study"
)

// EncodeCommit encodes events for the positions after expected. It makes the checks
// that every store needs. There must be events, [study.Created] must be the first event
// of its log and only there, and the limits hold. It is for implementations of [Store].
//
// It returns a [LimitError] or [ErrInvalid].
func EncodeCommit(id StudyID, expected study.Position, events []study.Event) ([][]byte, error) {
	if len(events) == 0 {
		return nil, fmt.Errorf("%w: a commit has at least one event", ErrInvalid)
	}
	records := make([][]byte, len(events))
	var size int
	for i, e := range events {
		pos := expected + 1 + study.Position(i)
		if _, created := e.Body.(study.Created); created != (pos == 1) {
			return nil, fmt.Errorf("%w: event %d is %T, but Created is the first event and only that", ErrInvalid, pos, e.Body)
		}
		record, err := AppendRecord(nil, id, pos, e)
		if err != nil {
			return nil, err
		}
		if size += len(record); size > MaxCommitBytes {
			return nil, &LimitError{What: "commit", Size: size, Limit: MaxCommitBytes}
		}
		records[i] = record
	}
	return records, nil
}
