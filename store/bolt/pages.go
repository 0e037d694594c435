package bolt

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"

	"github.com/bkbtuner/bkb/store"
)

// The layout of bbolt's pages. Numbers are in the byte order of the machine.
const (
	engineMagic    = 0xED0CDAED
	engineVersion  = 2
	noFreelist     = ^uint64(0)
	pageHeadBytes  = 16
	metaBytes      = 64
	minPageSize    = 1 << 10
	maxPageSize    = 1 << 24
	flagBranch     = 0x01
	flagLeaf       = 0x02
	flagFreelist   = 0x10
	flagBucket     = 0x01 // of an element
	elementBytes   = 16
	bucketHead     = 16
	maxBucketBytes = 64 << 10 // of an inline bucket, which bbolt keeps below a quarter page
	maxKeyBytes    = 1 << 10  // more than any key that this package writes
	maxPageBytes   = 8 * store.MaxRecordBytes
)

var order = binary.NativeEndian

// metaPage is one of the two pages that say where the current state begins.
type metaPage struct {
	ofBbolt  bool // it was made by bbolt, sound or not
	sound    bool
	pageSize int
	root     uint64 // number of the page of the root bucket
	freelist uint64 // number of the first page of the free list, or noFreelist
	pages    uint64 // number of pages, in use or free
	txid     uint64
}

// metaState is the newest sound meta page, and the state of the other one.
type metaState struct {
	metaPage
	lost   bool   // the other page is damaged
	lostTx uint64 // transaction that the damaged page names, which may be nonsense
}

// readMeta reads both meta pages. The place of the second one follows from the page size
// in the first one. Without the first one, all page sizes are tried.
func readMeta(r io.ReaderAt) metaState {
	a := readMetaPage(r, 0)
	b := readMetaPage(r, int64(a.pageSize))
	for size := minPageSize; !a.sound && !b.sound && size <= maxPageSize; size *= 2 {
		m := readMetaPage(r, int64(size))
		m.sound = m.sound && m.pageSize == size
		if m.ofBbolt {
			b = m
		}
	}
	if b.sound && (!a.sound || b.txid > a.txid) {
		a, b = b, a
	}
	a.ofBbolt = a.ofBbolt || b.ofBbolt
	return metaState{metaPage: a, lost: !b.sound, lostTx: b.txid}
}

// readMetaPage refuses values that bbolt never writes, so that later computations do not
// overflow.
func readMetaPage(r io.ReaderAt, offset int64) (m metaPage) {
	var b [pageHeadBytes + metaBytes]byte
	if _, err := r.ReadAt(b[:], offset); err != nil {
		return m
	}
	body := b[pageHeadBytes:]
	sum := fnv.New64a()
	_, _ = sum.Write(body[:56])
	m = metaPage{
		ofBbolt:  order.Uint32(body) == engineMagic,
		pageSize: int(order.Uint32(body[8:])),
		root:     order.Uint64(body[16:]),
		freelist: order.Uint64(body[32:]),
		pages:    order.Uint64(body[40:]),
		txid:     order.Uint64(body[48:]),
	}
	m.sound = m.ofBbolt && order.Uint32(body[4:]) == engineVersion && order.Uint64(body[56:]) == sum.Sum64() &&
		m.pageSize >= minPageSize && m.pageSize <= maxPageSize && m.pageSize&(m.pageSize-1) == 0 &&
		m.pages >= 4 && m.pages <= 1<<47/uint64(m.pageSize) && m.root >= 2 && m.root < m.pages
	return m
}

// bytes is the least size of the file.
func (m metaPage) bytes() int64 { return int64(m.pages) * int64(m.pageSize) }

// page is a page with its overflow, or an inline bucket.
type page struct {
	id    uint64 // 0 for an inline bucket
	leaf  bool
	count int
	b     []byte
}

// element is an entry of a page.
type element struct {
	key, value []byte // the value is empty in a branch
	bucket     bool
	child      uint64 // in a branch
}

// parse reads the kind and the number of elements.
func parse(id uint64, b []byte) (page, error) {
	if len(b) < pageHeadBytes {
		return page{}, fmt.Errorf("an inline bucket has %d bytes", bucketHead+len(b))
	}
	flags := order.Uint16(b[8:])
	p := page{id: id, leaf: flags == flagLeaf, count: int(order.Uint16(b[10:])), b: b}
	switch {
	case flags != flagLeaf && flags != flagBranch:
		return p, fmt.Errorf("page %d has an unknown kind (%#x)", id, flags)
	case pageHeadBytes+p.count*elementBytes > len(b):
		return p, fmt.Errorf("page %d is too small for its %d elements", id, p.count)
	}
	return p, nil
}

// element returns the entry with the given index.
func (p page) element(i int) (e element, err error) {
	at := pageHeadBytes + i*elementBytes
	b := p.b[at : at+elementBytes]
	var pos, keySize, valueSize uint64
	if p.leaf {
		flags := order.Uint32(b)
		if flags&^flagBucket != 0 {
			return e, fmt.Errorf("page %d: element %d has an unknown kind (%#x)", p.id, i, flags)
		}
		e.bucket = flags == flagBucket
		pos, keySize, valueSize = uint64(order.Uint32(b[4:])), uint64(order.Uint32(b[8:])), uint64(order.Uint32(b[12:]))
	} else {
		pos, keySize, e.child = uint64(order.Uint32(b)), uint64(order.Uint32(b[4:])), order.Uint64(b[8:])
	}
	from, table := uint64(at)+pos, uint64(pageHeadBytes+p.count*elementBytes)
	if from < table || from+keySize+valueSize > uint64(len(p.b)) || keySize == 0 || keySize > maxKeyBytes {
		return e, fmt.Errorf("page %d: element %d lies outside the page", p.id, i)
	}
	e.key, e.value = p.b[from:from+keySize], p.b[from+keySize:from+keySize+valueSize]
	return e, nil
}

// readPage reads the page with a number into *buf, which it may replace, and returns how
// many pages it covers.
func (w *walker) readPage(id uint64, buf *[]byte) (p page, extent uint64, err error) {
	if id < 2 || id >= w.pages {
		return p, 0, fmt.Errorf("page %d does not exist", id)
	}
	var head [pageHeadBytes]byte
	start := int64(id) * int64(w.pageSize)
	if _, err := w.r.ReadAt(head[:], start); err != nil {
		return p, 0, fmt.Errorf("page %d: %w", id, err)
	}
	extent = uint64(order.Uint32(head[12:])) + 1
	size := extent * uint64(w.pageSize)
	switch got := order.Uint64(head[:]); {
	case got != id:
		return p, 0, fmt.Errorf("page %d has the number %d", id, got)
	case id+extent > w.pages:
		return p, 0, fmt.Errorf("page %d extends beyond the last page", id)
	case size > maxPageBytes && order.Uint16(head[8:]) != flagFreelist:
		return p, 0, fmt.Errorf("page %d has %d bytes, more than any page of a store", id, size)
	}
	if uint64(cap(*buf)) < size {
		*buf = make([]byte, size)
	}
	*buf = (*buf)[:size]
	if _, err := w.r.ReadAt(*buf, start); err != nil {
		return p, 0, fmt.Errorf("page %d: %w", id, err)
	}
	if order.Uint16(head[8:]) == flagFreelist {
		return page{id: id, b: *buf}, extent, nil
	}
	p, err = parse(id, *buf)
	return p, extent, err
}
