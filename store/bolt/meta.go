package bolt

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
)

// The values that bbolt writes at the head of its two meta pages, in the byte
// order of the machine.
const (
	engineMagic    = 0xED0CDAED
	engineVersion  = 2
	noFreelist     = ^uint64(0)
	pageHeadBytes  = 16
	metaBytes      = 64
	minPageSize    = 1 << 10
	maxPageSizeLog = 24
)

// metaPage is one of the two pages that say where the current state begins.
type metaPage struct {
	pageSize int
	root     uint64 // number of the page of the root bucket
	freelist uint64 // number of the first page of the free list, or noFreelist
	pages    uint64 // number of pages, in use or free
	txid     uint64
}

// metaState is the result of reading both meta pages.
type metaState struct {
	metaPage
	ofBbolt bool   // the file was made by bbolt, sound or not
	sound   bool   // at least one page is sound, and metaPage is the newest sound one
	lost    bool   // the other page is damaged
	lostTx  uint64 // transaction that the damaged page names, which may be nonsense
	freshTx uint64 // transaction that would follow the one of the sound page
}

// readMeta reads both meta pages.
func readMeta(r io.ReaderAt) metaState {
	var s metaState
	first, firstState := readMetaPage(r, 0)
	s.ofBbolt = firstState != metaForeign
	second, secondState := readSecondMeta(r, first, firstState)
	s.ofBbolt = s.ofBbolt || secondState != metaForeign
	switch {
	case firstState == metaSound && secondState == metaSound:
		s.sound, s.metaPage = true, first
		if second.txid > first.txid {
			s.metaPage = second
		}
	case firstState == metaSound:
		s.sound, s.metaPage, s.lost, s.lostTx = true, first, true, second.txid
	case secondState == metaSound:
		s.sound, s.metaPage, s.lost, s.lostTx = true, second, true, first.txid
	}
	s.freshTx = s.txid + 1
	return s
}

// readSecondMeta finds the second page. Its place follows from the page size in the
// first one. Without the first one, all page sizes are tried.
func readSecondMeta(r io.ReaderAt, first metaPage, state metaPageState) (metaPage, metaPageState) {
	if state == metaSound {
		return readMetaPage(r, int64(first.pageSize))
	}
	best, found := metaPage{}, metaForeign
	for size := minPageSize; size <= 1<<maxPageSizeLog; size <<= 1 {
		m, state := readMetaPage(r, int64(size))
		if state == metaSound && m.pageSize == size {
			return m, state
		}
		if state == metaBroken {
			best, found = m, state
		}
	}
	return best, found
}

type metaPageState int

const (
	metaForeign metaPageState = iota // not of bbolt
	metaBroken
	metaSound
)

func readMetaPage(r io.ReaderAt, offset int64) (metaPage, metaPageState) {
	var b [pageHeadBytes + metaBytes]byte
	if _, err := r.ReadAt(b[:], offset); err != nil {
		return metaPage{}, metaForeign
	}
	order := binary.NativeEndian
	body := b[pageHeadBytes:]
	m := metaPage{
		pageSize: int(order.Uint32(body[8:])),
		root:     order.Uint64(body[16:]),
		freelist: order.Uint64(body[32:]),
		pages:    order.Uint64(body[40:]),
		txid:     order.Uint64(body[48:]),
	}
	sum := fnv.New64a()
	_, _ = sum.Write(body[:56])
	switch {
	case order.Uint64(body[56:]) == sum.Sum64() && order.Uint32(body) == engineMagic &&
		order.Uint32(body[4:]) == engineVersion && m.check() == nil:
		return m, metaSound
	case order.Uint32(body) == engineMagic:
		return m, metaBroken
	default:
		return m, metaForeign
	}
}

// check refuses values that bbolt never writes, so that later computations do not
// overflow.
func (m metaPage) check() error {
	switch {
	case m.pageSize < minPageSize || m.pageSize > 1<<maxPageSizeLog || m.pageSize&(m.pageSize-1) != 0:
		return fmt.Errorf("pages of %d bytes", m.pageSize)
	case m.pages < 4 || m.pages > 1<<47/uint64(m.pageSize):
		return fmt.Errorf("%d pages", m.pages)
	case m.root < 2 || m.root >= m.pages:
		return fmt.Errorf("the root at page %d of %d", m.root, m.pages)
	}
	return nil
}

// bytes is the least size of the file.
func (m metaPage) bytes() int64 { return int64(m.pages) * int64(m.pageSize) }
