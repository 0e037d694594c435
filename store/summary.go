package store

import (
	"encoding/binary"
	"math"

	"github.com/bkbtuner/bkb/tuner/study"
)

// Summary is what its owner shows of a study in lists, so that a list need not read the log. It
// follows from the first event and from Data, which is in the owner's own encoding.
//
// A summary counts only while its position is the head of the log. A commit without one
// therefore makes it void.
type Summary struct {
	Study    StudyID
	Position study.Position
	Data     []byte
	Created  study.Event // the first event of the log, set by [Store.Summaries]
}

// summaryFormat is the version of the frame around a summary. A summary of another
// version counts as missing.
const summaryFormat = 1

// summaryPlace takes the place of a record's position in the checksum, so that a summary
// cannot pass for a record or the reverse.
const summaryPlace study.Position = math.MaxUint64

const summaryHeadBytes = 1 + 8

// EncodeSummary returns the stored form of a summary, see FORMAT.md, or nil if data is
// nil. It is for implementations of [Store]. It returns a [LimitError].
func EncodeSummary(id StudyID, position study.Position, data []byte) ([]byte, error) {
	if data == nil {
		return nil, nil
	}
	if len(data) > MaxSummaryBytes {
		return nil, &LimitError{What: "summary", Size: len(data), Limit: MaxSummaryBytes}
	}
	b := make([]byte, 0, summaryHeadBytes+len(data)+checksumBytes)
	b = append(b, summaryFormat)
	b = binary.LittleEndian.AppendUint64(b, uint64(position))
	b = append(b, data...)
	return seal(b, 0, id, summaryPlace), nil
}

// DecodeSummary returns the summary of a study whose log has a head and a first record.
// ok is false if there is none at the head, or if it or the record is damaged. It is for
// implementations of [Store].
func DecodeSummary(id StudyID, head study.Position, b, first []byte) (s Summary, ok bool) {
	body, ok := unseal(b, id, summaryPlace)
	if !ok || len(body) < summaryHeadBytes || body[0] != summaryFormat || study.Position(binary.LittleEndian.Uint64(body[1:])) != head {
		return Summary{}, false
	}
	created, err := NewDecoder(id).Decode(1, first)
	if err != nil {
		return Summary{}, false
	}
	return Summary{Study: id, Position: head, Data: append([]byte{}, body[summaryHeadBytes:]...), Created: created}, true
}
