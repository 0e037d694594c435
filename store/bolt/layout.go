package bolt

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Format is the version of the file that this program reads and writes. It grows with the
// layout and with [store.Format], the format of the records, so that an older program
// refuses a file that it would misread.
const Format = 1

// The buckets at the root of the file, see docs/store.md.
var (
	bucketMeta      = []byte("meta")
	bucketNames     = []byte("names")
	bucketStudies   = []byte("studies")
	bucketLogs      = []byte("logs")
	bucketSummaries = []byte("summaries")

	buckets = [][]byte{bucketMeta, bucketNames, bucketStudies, bucketLogs, bucketSummaries}
)

// The keys in bucketMeta.
var (
	keyIdentity = []byte("identity")
	keyLastID   = []byte("last id")
)

// MaxStudies is how many studies a file holds at once. Opening reads all their names.
const MaxStudies = 100_000

const (
	idBytes       = 8
	checksumBytes = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Keys are big endian, so that their bytes have the order of the numbers.
func idKey(id store.StudyID) []byte    { return binary.BigEndian.AppendUint64(nil, uint64(id)) }
func posKey(pos study.Position) []byte { return binary.BigEndian.AppendUint64(nil, uint64(pos)) }
func keyID(key []byte) store.StudyID   { return store.StudyID(binary.BigEndian.Uint64(key)) }
func isPos(key []byte, p study.Position) bool {
	return len(key) == 8 && binary.BigEndian.Uint64(key) == uint64(p)
}

// seal appends to a row the checksum of its place and contents.
func seal(bucket, key, body []byte) []byte {
	row := make([]byte, 0, len(body)+checksumBytes)
	row = append(row, body...)
	return binary.LittleEndian.AppendUint32(row, rowChecksum(bucket, key, body))
}

// unseal returns the contents of a row. ok is false if the checksum is wrong.
func unseal(bucket, key, row []byte) (body []byte, ok bool) {
	if len(row) < checksumBytes {
		return nil, false
	}
	body, sum := row[:len(row)-checksumBytes], row[len(row)-checksumBytes:]
	return body, binary.LittleEndian.Uint32(sum) == rowChecksum(bucket, key, body)
}

func rowChecksum(bucket, key, body []byte) uint32 {
	place := append([]byte(nil), bucket...)
	place = append(place, 0)
	place = binary.LittleEndian.AppendUint32(place, uint32(len(key)))
	place = append(place, key...)
	return crc32.Update(crc32.Checksum(place, castagnoli), castagnoli, body)
}

// sealID and unsealID are for rows that hold one study id.
func sealID(bucket, key []byte, id store.StudyID) []byte {
	return seal(bucket, key, idKey(id))
}

func unsealID(bucket, key, row []byte) (store.StudyID, bool) {
	body, ok := unseal(bucket, key, row)
	if !ok || len(body) != idBytes {
		return 0, false
	}
	return keyID(body), true
}
