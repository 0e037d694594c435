package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"

	"github.com/bkbtuner/bkb/store"
)

const (
	maxDepth  = 64   // of nested pages, in all buckets together
	walkCheck = 1024 // pages between two checks of the context
)

// flaw is a defect in the structure of the file.
type flaw struct {
	bucket string        // top-level bucket, empty at the root
	study  store.StudyID // study whose data it affects, 0 if it is not one study
	err    error
}

func (f flaw) Error() string {
	switch {
	case f.study != 0:
		return fmt.Sprintf("study %d: in bucket %s: %v", f.study, f.bucket, f.err)
	case f.bucket != "":
		return fmt.Sprintf("in bucket %s: %v", f.bucket, f.err)
	default:
		return f.err.Error()
	}
}

// walker visits every page that can be reached from the root and checks the properties
// that bbolt relies on. Each page says its own number, is of a known kind and is
// reached once. Its elements lie within it, in ascending order, between the keys of its
// parents. This is the check of bbolt itself, except that no file can make it
// crash.
type walker struct {
	pageReader
	ctx   context.Context
	found func(flaw) bool // returns false to end the walk
	seen  []uint64        // one bit for each page
	bufs  [maxDepth + 1][]byte
	where flaw // err is not set
	pages int
	stop  error
}

// place is the kind of entries of a tree.
type place int

const (
	atRoot  place = iota // buckets only
	rows                 // values only
	byStudy              // buckets of rows whose keys are study ids
)

// walk checks the structure. It returns the first flaw for which found returns false,
// or the error of the context.
func walk(ctx context.Context, r pageReader, found func(flaw) bool) (pages int, err error) {
	w := &walker{pageReader: r, ctx: ctx, found: found, seen: make([]uint64, r.pages/64+1)}
	w.tree(atRoot, r.root, nil, nil, 0)
	if r.freelist != noFreelist && w.stop == nil {
		w.where = flaw{}
		w.checkFreelist()
	}
	return w.pages, w.stop
}

func (w *walker) fault(err error) {
	f := w.where
	f.err = err
	if w.stop == nil && !w.found(f) {
		w.stop = f
	}
}

// tree checks a page and all below it. Keys must be at least low and, unless high is
// nil, below high.
func (w *walker) tree(in place, id uint64, low, high []byte, depth int) {
	if w.stop != nil || !w.visit(id, depth) {
		return
	}
	p, err := w.read(id, &w.bufs[depth])
	if err != nil {
		w.fault(err)
		return
	}
	if !w.claim(id, p.extent) {
		return
	}
	if p.count == 0 && (!p.leaf || low != nil) {
		w.fault(fmt.Errorf("page %d is empty", id))
		return
	}
	w.page(in, &p, low, high, depth)
}

// visit counts a page and refuses a depth that no sound file has.
func (w *walker) visit(id uint64, depth int) bool {
	if w.pages++; w.pages%walkCheck == 0 && w.ctx.Err() != nil {
		w.stop = w.ctx.Err()
		return false
	}
	if depth >= maxDepth {
		w.fault(fmt.Errorf("page %d: the tree is too deep", id))
		return false
	}
	return true
}

// claim marks pages as visited.
func (w *walker) claim(id, extent uint64) bool {
	for ; extent > 0; id, extent = id+1, extent-1 {
		if w.seen[id/64]&(1<<(id%64)) != 0 {
			w.fault(fmt.Errorf("page %d is used twice", id))
			return false
		}
		w.seen[id/64] |= 1 << (id % 64)
	}
	return true
}

// page checks the elements of one page.
func (w *walker) page(in place, p *page, low, high []byte, depth int) {
	var previous element
	for i := range p.count {
		e, err := p.element(i)
		if err == nil {
			err = w.ordered(p, i, previous.key, e.key, low, high)
		}
		if err != nil {
			w.fault(err)
			return
		}
		if !p.leaf && i > 0 {
			w.tree(in, previous.child, previous.key, e.key, depth+1)
		}
		if p.leaf {
			w.leaf(in, p, e, depth)
		}
		if w.stop != nil {
			return
		}
		previous = e
	}
	if !p.leaf {
		w.tree(in, previous.child, previous.key, high, depth+1)
	}
}

func (w *walker) ordered(p *page, i int, previous, key, low, high []byte) error {
	if i > 0 && bytes.Compare(previous, key) >= 0 || bytes.Compare(key, low) < 0 || high != nil && bytes.Compare(key, high) >= 0 {
		return fmt.Errorf("page %d: the key of element %d is out of order", p.id, i)
	}
	return nil
}

// leaf checks that an entry is of the kind that belongs here, and checks the contents
// of a bucket.
func (w *walker) leaf(in place, p *page, e element, depth int) {
	if e.bucket != (in != rows) {
		w.fault(fmt.Errorf("page %d: a bucket is in the place of a value, or the reverse", p.id))
		return
	}
	if !e.bucket {
		return
	}
	outer := w.where
	defer func() { w.where = outer }()
	inner := rows
	switch {
	case in == byStudy && len(e.key) != idBytes:
		w.fault(fmt.Errorf("page %d: a key of %d bytes is not a study id", p.id, len(e.key)))
		return
	case in == byStudy:
		w.where.study = keyID(e.key)
	default:
		w.where.bucket = string(e.key)
		if bytes.Equal(e.key, bucketLogs) {
			inner = byStudy
		}
	}
	w.bucket(inner, p, e, depth)
}

func (w *walker) bucket(in place, p *page, e element, depth int) {
	value, root, err := w.openBucket(p, e)
	if err != nil {
		w.fault(err)
		return
	}
	if root != 0 {
		w.tree(in, root, nil, nil, depth+1)
		return
	}
	inner, err := inline(value)
	if err != nil {
		w.fault(err)
		return
	}
	if in == byStudy && inner.count > 0 {
		w.fault(fmt.Errorf("page %d: an inline bucket contains buckets", p.id))
		return
	}
	w.page(in, &inner, nil, nil, depth+1)
}

// checkFreelist checks the list of free pages in a file that has one. This package
// writes none, but bbolt's own tools do.
func (w *walker) checkFreelist() {
	if w.freelist < 2 || w.freelist >= w.pageReader.pages {
		w.fault(fmt.Errorf("the free list is at page %d, which does not exist", w.freelist))
		return
	}
	var head [pageHeadBytes + 8]byte
	start := int64(w.freelist) * int64(w.pageSize)
	if _, err := w.r.ReadAt(head[:], start); err != nil {
		w.fault(fmt.Errorf("the free list: %w", err))
		return
	}
	order := binary.NativeEndian
	count, at := uint64(order.Uint16(head[10:])), int64(pageHeadBytes)
	if count == 0xFFFF {
		count, at = order.Uint64(head[pageHeadBytes:]), pageHeadBytes+8
	}
	extent := uint64(order.Uint32(head[12:])) + 1
	switch {
	case order.Uint64(head[:]) != w.freelist || order.Uint16(head[8:]) != flagFreelist:
		w.fault(fmt.Errorf("page %d is not the free list", w.freelist))
	case w.freelist+extent > w.pageReader.pages || count > (extent*uint64(w.pageSize)-uint64(at))/8:
		w.fault(fmt.Errorf("the free list is larger than its pages"))
	case w.claim(w.freelist, extent):
		w.checkFree(start+at, count)
	}
}

// checkFree checks that free pages exist and are not in use.
func (w *walker) checkFree(from int64, count uint64) {
	b := make([]byte, 8*count)
	if _, err := w.r.ReadAt(b, from); err != nil {
		w.fault(fmt.Errorf("the free list: %w", err))
		return
	}
	for ; len(b) > 0; b = b[8:] {
		id := binary.NativeEndian.Uint64(b)
		if id < 2 || id >= w.pageReader.pages {
			w.fault(fmt.Errorf("the free list names page %d, which does not exist", id))
			return
		}
		if !w.claim(id, 1) {
			return
		}
	}
}
