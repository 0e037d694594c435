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

const storeIDBytes = 16

// identityHead is an identity as it is stored, without the writer.
type identityHead struct {
	Magic   [len(magic)]byte
	Format  uint32
	Store   [storeIDBytes]byte
	Created int64
	Writer  uint8 // length of the text that follows
}

func newIdentity() Identity {
	var id [storeIDBytes]byte
	_, _ = rand.Read(id[:]) // never fails
	return Identity{Format: Format, Store: hex.EncodeToString(id[:]), Created: time.Now().UTC().Round(0), Writer: programVersion()}
}

func (id Identity) row() []byte {
	writer := id.Writer[:min(len(id.Writer), 255)]
	h := identityHead{Magic: [len(magic)]byte([]byte(magic)), Format: uint32(id.Format), Created: id.Created.UnixNano(), Writer: uint8(len(writer))}
	_, _ = hex.Decode(h.Store[:], []byte(id.Store))
	b, _ := binary.Append(nil, binary.LittleEndian, h)
	return seal(bucketMeta, keyIdentity, append(b, writer...))
}

// parseIdentity reads the row. ours tells whether it looks like one of this program,
// and sound whether its checksum is right.
func parseIdentity(row []byte) (id Identity, ours, sound bool) {
	body, sound := unseal(bucketMeta, keyIdentity, row)
	var h identityHead
	n, err := binary.Decode(body, binary.LittleEndian, &h)
	if ours = err == nil && string(h.Magic[:]) == magic; !ours {
		return Identity{}, false, sound
	}
	if int(h.Writer) > len(body)-n {
		return Identity{}, true, false
	}
	return Identity{
		Format: int(h.Format), Store: hex.EncodeToString(h.Store[:]), Created: time.Unix(0, h.Created).UTC(), Writer: string(body[n : n+int(h.Writer)]),
	}, true, sound
}
