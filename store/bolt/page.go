package bolt

import (
	"encoding/binary"
	"fmt"
	"io"
)

// pageReader reads pages of bbolt without bbolt. Bbolt maps the file and
// trusts it. If it finds nonsense, it ends the process, partly in goroutines of its own
// where the panic cannot be caught. This reader checks every number before it uses it.
type pageReader struct {
	r io.ReaderAt
	metaPage
}

const (
	flagBranch     = 0x01
	flagLeaf       = 0x02
	flagFreelist   = 0x10
	flagBucket     = 0x01 // flag of an element
	elementBytes   = 16
	bucketHead     = 16
	firstRead      = 64 << 10 // bytes to read of a large page at first, the rest only if a key lies there
	maxBucketBytes = 64 << 10 // limit of an inline bucket, which bbolt keeps below a quarter page
)

// page is a page with its overflow, or an inline bucket.
type page struct {
	id     uint64 // 0 for an inline bucket
	leaf   bool
	count  int
	extent uint64 // number of pages that it covers
	size   int64
	head   []byte                           // beginning of the page, with at least all elements
	rest   func(b []byte, from int64) error // reads a part that is not in head
}

// element is an entry of a page. In a branch, value is empty.
type element struct {
	key    []byte
	bucket bool
	child  uint64 // in a branch
	value  span   // in a leaf
}

// span is a range of bytes in a page.
type span struct{ from, size int64 }

// read reads the page with the given number into *buf, which it may replace.
func (r *pageReader) read(id uint64, buf *[]byte) (page, error) {
	if id < 2 || id >= r.pages {
		return page{}, fmt.Errorf("page %d does not exist", id)
	}
	start := int64(id) * int64(r.pageSize)
	b := grow(buf, r.pageSize)
	if _, err := r.r.ReadAt(b, start); err != nil {
		return page{}, fmt.Errorf("page %d: %w", id, err)
	}
	extent := uint64(binary.NativeEndian.Uint32(b[12:])) + 1
	if got := binary.NativeEndian.Uint64(b); got != id {
		return page{}, fmt.Errorf("page %d has the number %d", id, got)
	}
	if id+extent > r.pages {
		return page{}, fmt.Errorf("page %d extends beyond the last page", id)
	}
	p := page{id: id, extent: extent, size: int64(extent) * int64(r.pageSize), head: b}
	p.rest = func(b []byte, from int64) error {
		_, err := r.r.ReadAt(b, start+from)
		return err
	}
	return p, p.parse(buf)
}

// inline reads the page inside the value of a bucket.
func inline(value []byte) (page, error) {
	p := page{extent: 0, size: int64(len(value) - bucketHead), head: value[bucketHead:]}
	p.rest = func([]byte, int64) error { return io.ErrUnexpectedEOF }
	if p.size < pageHeadBytes {
		return p, fmt.Errorf("an inline bucket has %d bytes", len(value))
	}
	if err := p.parse(nil); err != nil {
		return p, err
	}
	if !p.leaf {
		return p, fmt.Errorf("an inline bucket has branches")
	}
	return p, nil
}

// parse reads kind and count, and makes head large enough for all elements.
func (p *page) parse(buf *[]byte) error {
	switch flags := binary.NativeEndian.Uint16(p.head[8:]); flags {
	case flagBranch, flagLeaf:
		p.leaf = flags == flagLeaf
	default:
		return fmt.Errorf("page %d has an unknown kind (%#x)", p.id, flags)
	}
	p.count = int(binary.NativeEndian.Uint16(p.head[10:]))
	table := int64(pageHeadBytes + p.count*elementBytes)
	if table > p.size {
		return fmt.Errorf("page %d is too small for its %d elements", p.id, p.count)
	}
	want := max(table, min(p.size, firstRead))
	if have := int64(len(p.head)); want > have {
		if buf == nil {
			return io.ErrUnexpectedEOF
		}
		p.head = grow(buf, int(want))
		return p.rest(p.head[have:], have)
	}
	return nil
}

// element returns the entry with the given index.
func (p *page) element(i int) (element, error) {
	at := int64(pageHeadBytes + i*elementBytes)
	b := p.head[at : at+elementBytes]
	order := binary.NativeEndian
	var e element
	var pos, keySize, valueSize int64
	if p.leaf {
		flags := order.Uint32(b)
		if flags&^flagBucket != 0 {
			return e, fmt.Errorf("page %d: element %d has an unknown kind (%#x)", p.id, i, flags)
		}
		e.bucket = flags == flagBucket
		pos, keySize, valueSize = int64(order.Uint32(b[4:])), int64(order.Uint32(b[8:])), int64(order.Uint32(b[12:]))
	} else {
		pos, keySize = int64(order.Uint32(b)), int64(order.Uint32(b[4:]))
		e.child = order.Uint64(b[8:])
	}
	from, table := at+pos, int64(pageHeadBytes+p.count*elementBytes)
	if from < table || from+keySize+valueSize > p.size || keySize == 0 || keySize > maxKeyBytes {
		return e, fmt.Errorf("page %d: element %d lies outside the page", p.id, i)
	}
	e.value = span{from + keySize, valueSize}
	var err error
	e.key, err = p.bytes(span{from, keySize})
	return e, err
}

// maxKeyBytes is larger than any key that this package writes.
const maxKeyBytes = 1 << 10

// bytes returns a range of the page, as part of head if possible.
func (p *page) bytes(s span) ([]byte, error) {
	if end := s.from + s.size; end <= int64(len(p.head)) {
		return p.head[s.from:end:end], nil
	}
	b := make([]byte, s.size)
	if err := p.rest(b, s.from); err != nil {
		return nil, fmt.Errorf("page %d: %w", p.id, err)
	}
	return b, nil
}

// grow returns *buf with length n and the same contents.
func grow(buf *[]byte, n int) []byte {
	if cap(*buf) < n {
		b := make([]byte, n)
		copy(b, *buf)
		*buf = b
	}
	*buf = (*buf)[:n]
	return *buf
}

// openBucket returns the value of a bucket and the number of its first page, which is 0
// if it is inline.
func (r *pageReader) openBucket(p *page, e element) (value []byte, root uint64, err error) {
	if e.value.size < bucketHead || e.value.size > maxBucketBytes {
		return nil, 0, fmt.Errorf("page %d: a bucket has %d bytes", p.id, e.value.size)
	}
	if value, err = p.bytes(e.value); err != nil {
		return nil, 0, err
	}
	return value, binary.NativeEndian.Uint64(value), nil
}

// find looks up a key below a page. ok is false if there is none.
func (r *pageReader) find(p page, key string, depth int) (page, element, bool, error) {
	if depth > maxDepth {
		return p, element{}, false, fmt.Errorf("page %d: the tree is too deep", p.id)
	}
	var last element
	for i := range p.count {
		e, err := p.element(i)
		if err != nil {
			return p, e, false, err
		}
		if p.leaf && string(e.key) == key {
			return p, e, true, nil
		}
		if string(e.key) > key {
			break
		}
		last = e
	}
	if p.leaf || last.key == nil {
		return p, element{}, false, nil
	}
	child, err := r.read(last.child, new([]byte))
	if err != nil {
		return p, element{}, false, err
	}
	return r.find(child, key, depth+1)
}

// findIdentity reads the identity row. ok is false if there is none.
func (r *pageReader) findIdentity() (row []byte, ok bool, err error) {
	root, err := r.read(r.root, new([]byte))
	if err != nil {
		return nil, false, err
	}
	p, e, ok, err := r.find(root, string(bucketMeta), 0)
	if err != nil || !ok || !e.bucket {
		return nil, false, err
	}
	value, id, err := r.openBucket(&p, e)
	if err != nil {
		return nil, false, err
	}
	if id == 0 {
		p, err = inline(value)
	} else {
		p, err = r.read(id, new([]byte))
	}
	if err != nil {
		return nil, false, err
	}
	p, e, ok, err = r.find(p, string(keyIdentity), 0)
	if err != nil || !ok || e.bucket || e.value.size > firstRead {
		return nil, false, err
	}
	row, err = p.bytes(e.value)
	return row, true, err
}
