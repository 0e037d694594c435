package bolt

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"time"
)

// magic begins the identity of every store of this program in every format.
const magic = "BKBstore"

// Identity says which program and store a file belongs to. Its row has this beginning,
// and its checksum at the end, in all later formats too.
type Identity struct {
	Format  int       // version of the layout
	Store   string    // 32 random hexadecimal digits, which backups share
	Created time.Time // by the wall clock
	Writer  string    // the program that created or last converted the file
}

const (
	storeIDBytes  = 16
	maxWriter     = 255
	identityBytes = len(magic) + 4 + storeIDBytes + 8 + 1 // without the writer
)

func newIdentity() Identity {
	var id [storeIDBytes]byte
	_, _ = rand.Read(id[:]) // never fails
	return Identity{Format: Format, Store: hex.EncodeToString(id[:]), Created: time.Now().UTC().Round(0), Writer: programVersion()}
}

func (id Identity) row() []byte {
	store, _ := hex.DecodeString(id.Store)
	writer := id.Writer[:min(len(id.Writer), maxWriter)]
	b := append([]byte(nil), magic...)
	b = binary.LittleEndian.AppendUint32(b, uint32(id.Format))
	b = append(b, store...)
	b = binary.LittleEndian.AppendUint64(b, uint64(id.Created.UnixNano()))
	b = append(b, byte(len(writer)))
	b = append(b, writer...)
	return seal(bucketMeta, keyIdentity, b)
}

// parseIdentity reads the row. ours tells whether it looks like one of this program,
// and sound whether its checksum is right.
func parseIdentity(row []byte) (id Identity, ours, sound bool) {
	body, sound := unseal(bucketMeta, keyIdentity, row)
	if !sound {
		return Identity{}, len(row) >= len(magic) && string(row[:len(magic)]) == magic, false
	}
	if len(body) < identityBytes || string(body[:len(magic)]) != magic {
		return Identity{}, false, true
	}
	rest := body[len(magic):]
	id.Format = int(binary.LittleEndian.Uint32(rest))
	id.Store = hex.EncodeToString(rest[4 : 4+storeIDBytes])
	rest = rest[4+storeIDBytes:]
	id.Created = time.Unix(0, int64(binary.LittleEndian.Uint64(rest))).UTC()
	n := int(rest[8])
	if rest = rest[9:]; n > len(rest) {
		return Identity{}, true, false
	}
	id.Writer = string(rest[:n])
	return id, true, true
}
