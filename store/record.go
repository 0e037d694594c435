package store

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"reflect"

	"github.com/bkbtuner/bkb/store/internal/recordpb"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"google.golang.org/protobuf/proto"
)

// Format is the version of the records that this program reads and writes. A reader refuses
// newer ones.
const Format = 1

// The parts of a record besides its payload.
const (
	versionBytes  = 1
	checksumBytes = 4
	frameBytes    = versionBytes + checksumBytes
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum returns the CRC32C of a record's place followed by its bytes.
func checksum(id StudyID, pos study.Position, bytes []byte) uint32 {
	var place [16]byte
	binary.LittleEndian.PutUint64(place[:8], uint64(id))
	binary.LittleEndian.PutUint64(place[8:], uint64(pos))
	return crc32.Update(crc32.Checksum(place[:], castagnoli), castagnoli, bytes)
}

// seal appends the checksum to the record or summary that begins at from.
func seal(dst []byte, from int, id StudyID, pos study.Position) []byte {
	return binary.LittleEndian.AppendUint32(dst, checksum(id, pos, dst[from:]))
}

// unseal returns b without its checksum. ok is false if the checksum is wrong.
func unseal(b []byte, id StudyID, pos study.Position) (body []byte, ok bool) {
	if len(b) < checksumBytes {
		return nil, false
	}
	body, sum := b[:len(b)-checksumBytes], b[len(b)-checksumBytes:]
	return body, binary.LittleEndian.Uint32(sum) == checksum(id, pos, body)
}

// AppendRecord appends the record of one event to dst. Equal events have equal records.
//
// It returns a [LimitError], or [ErrInvalid] for an event that a record cannot hold. That is text
// that is not UTF-8, a time before 1678 or after 2262, an enumeration value that package study
// does not define, a zero [space.Value], an event without a body, or a study without a space.
func AppendRecord(dst []byte, id StudyID, pos study.Position, e study.Event) ([]byte, error) {
	m, err := encodeEvent(e)
	if err != nil {
		return dst, fmt.Errorf("%w: event %d of study %d: %w", ErrInvalid, pos, id, err)
	}
	size := frameBytes + proto.Size(m)
	if size > MaxRecordBytes {
		return dst, &LimitError{What: "record", Size: size, Limit: MaxRecordBytes}
	}
	from := len(dst)
	if dst == nil {
		dst = make([]byte, 0, size)
	}
	dst = append(dst, Format)
	dst, err = proto.MarshalOptions{Deterministic: true, UseCachedSize: true}.MarshalAppend(dst, m)
	if err != nil {
		return dst[:from], fmt.Errorf("%w: event %d of study %d: %w", ErrInvalid, pos, id, err)
	}
	if sparse(dst[from+versionBytes:]) {
		return dst[:from], fmt.Errorf("%w: event %d of study %d has too many empty parts", ErrInvalid, pos, id)
	}
	return seal(dst, from, id, pos), nil
}

// Decoder decodes the records of one study. It interns short strings, so that repeated names are
// in memory once. Use one Decoder for one pass over a log. It is not safe for concurrent use.
type Decoder struct {
	id      StudyID
	message recordpb.Event // reused
	names   interner
	entries []space.Assignment             // reused
	bodies  map[reflect.Type]reflect.Value // reused
}

// NewDecoder returns a Decoder for the records of the given study.
func NewDecoder(id StudyID) *Decoder {
	return &Decoder{id: id, names: make(interner), bodies: make(map[reflect.Type]reflect.Value)}
}

// Decode returns the event in the record at the given position. The event shares no
// memory with the record. The error is a [CorruptError] or a [NewerFormatError].
func (d *Decoder) Decode(pos study.Position, record []byte) (study.Event, error) {
	if len(record) > MaxRecordBytes {
		return study.Event{}, d.corrupt(pos, "the record is too long")
	}
	if len(record) < frameBytes {
		return study.Event{}, d.corrupt(pos, "the record is too short")
	}
	body, ok := unseal(record, d.id, pos)
	if !ok {
		return study.Event{}, d.corrupt(pos, "the checksum does not match")
	}
	switch format := int(body[0]); {
	case format == 0:
		return study.Event{}, d.corrupt(pos, "there is no format 0")
	case format > Format:
		return study.Event{}, &NewerFormatError{Study: d.id, Position: pos, Format: format}
	}
	e, err := d.decodePayload(body[versionBytes:])
	if err != nil {
		return study.Event{}, d.corrupt(pos, err.Error())
	}
	return e, nil
}

// decodePayload decodes a record without its version and checksum. Until it returns, the
// message shares memory with the payload.
func (d *Decoder) decodePayload(b []byte) (study.Event, error) {
	if sparse(b) {
		return study.Event{}, errSparse
	}
	defer d.message.ResetVT()
	if err := d.message.UnmarshalVTUnsafe(b); err != nil {
		return study.Event{}, err
	}
	if proto.Size(&d.message) != len(b) {
		return study.Event{}, errRedundant
	}
	return d.event(&d.message)
}

func (d *Decoder) corrupt(pos study.Position, reason string) error {
	return &CorruptError{Study: d.id, Position: pos, Reason: reason}
}
