package bolt

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/bkbtuner/bkb/store"
)

const maxDepth = 64 // of nested pages, in all buckets together

// flaw is a defect in the structure of the file.
type flaw struct {
	bucket string        // top-level bucket, empty at the root
	study  store.StudyID // study whose data it affects, 0 if it is not one study
	err    error
	place  bool // a bucket is in the place of a value, or the reverse, as in files of other programs
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
// parents. Bbolt's own check is the same, but it maps the file and trusts it, and a
// damaged one ends the process, partly in goroutines where a panic cannot be caught.
type walker struct {
	metaPage
	ctx      context.Context
	r        io.ReaderAt
	found    func(flaw)
	seen     []uint64 // one bit for each page
	bufs     [maxDepth][]byte
	where    flaw   // err is not set
	visited  int    // pages in use
	identity []byte // row of the identity
}

// level is the kind of entries of a tree.
type level int

const (
	atRoot  level = iota // buckets only
	rows                 // values only
	byStudy              // buckets of rows whose keys are study ids
)

// walk checks the structure, and returns the number of pages in use and the row of the
// identity, which is nil if there is none. The error is that of the context.
func walk(ctx context.Context, r io.ReaderAt, m metaPage, found func(flaw)) (pages int, identity []byte, err error) {
	w := &walker{metaPage: m, ctx: ctx, r: r, found: found, seen: make([]uint64, m.pages/64+1)}
	w.tree(atRoot, m.root, nil, nil, 0)
	if m.freelist != noFreelist {
		w.checkFreelist()
	}
	return w.visited, w.identity, ctx.Err()
}

func (w *walker) fault(format string, args ...any) {
	f := w.where
	f.err = fmt.Errorf(format, args...)
	w.found(f)
}

// claim marks pages as visited.
func (w *walker) claim(id, extent uint64) bool {
	for ; extent > 0; id, extent = id+1, extent-1 {
		if w.seen[id/64]&(1<<(id%64)) != 0 {
			w.fault("page %d is used twice", id)
			return false
		}
		w.seen[id/64] |= 1 << (id % 64)
	}
	return true
}

// tree checks a page and all below it. Keys must be at least low and, unless high is
// nil, below high.
func (w *walker) tree(in level, id uint64, low, high []byte, depth int) {
	if w.ctx.Err() != nil {
		return
	}
	if depth >= maxDepth {
		w.fault("page %d: the tree is too deep", id)
		return
	}
	w.visited++
	p, extent, err := w.readPage(id, &w.bufs[depth])
	switch {
	case err != nil:
		w.fault("%w", err)
	case !w.claim(id, extent):
	case p.count == 0 && (!p.leaf || low != nil):
		w.fault("page %d is empty", id)
	default:
		w.page(in, p, low, high, depth)
	}
}

// page checks the elements of one page.
func (w *walker) page(in level, p page, low, high []byte, depth int) {
	for i := range p.count {
		e, err := p.element(i)
		if err != nil {
			w.fault("%w", err)
			return
		}
		end := high // of the keys below this one
		if i+1 < p.count {
			next, err := p.element(i + 1)
			if err != nil {
				w.fault("%w", err)
				return
			}
			end = next.key
		}
		if bytes.Compare(e.key, low) < 0 || end != nil && bytes.Compare(e.key, end) >= 0 {
			w.fault("page %d: the key of element %d is out of order", p.id, i)
			return
		}
		if p.leaf {
			w.leaf(in, p, e, depth)
		} else {
			w.tree(in, e.child, e.key, end, depth+1)
		}
	}
}

// leaf checks that an entry is of the kind that belongs here, and checks the contents
// of a bucket.
func (w *walker) leaf(in level, p page, e element, depth int) {
	outer := w.where
	defer func() { w.where = outer }()
	if e.bucket != (in != rows) {
		w.where.place = true
		w.fault("page %d: a bucket is in the place of a value, or the reverse", p.id)
		return
	}
	inner := rows
	switch {
	case !e.bucket:
		if w.where.bucket == string(bucketMeta) && string(e.key) == string(keyIdentity) {
			w.identity = bytes.Clone(e.value)
		}
		return
	case in == byStudy && len(e.key) != idBytes:
		w.where.place = true
		w.fault("page %d: a key of %d bytes is not a study id", p.id, len(e.key))
		return
	case in == byStudy:
		w.where.study = keyID(e.key)
	default:
		w.where.bucket = string(e.key)
		if bytes.Equal(e.key, bucketLogs) {
			inner = byStudy
		}
	}
	if len(e.value) < bucketHead || len(e.value) > maxBucketBytes {
		w.fault("page %d: a bucket has %d bytes", p.id, len(e.value))
		return
	}
	if root := order.Uint64(e.value); root != 0 {
		w.tree(inner, root, nil, nil, depth+1)
		return
	}
	switch q, err := parse(0, e.value[bucketHead:]); {
	case err != nil:
		w.fault("%w", err)
	case !q.leaf:
		w.fault("an inline bucket has branches")
	case inner == byStudy && q.count > 0:
		w.where.place = true
		w.fault("page %d: an inline bucket contains buckets", p.id)
	default:
		w.page(inner, q, nil, nil, depth+1)
	}
}

// checkFreelist checks that the free pages exist and are not in use, in a file that lists
// them. This package writes no list, but bbolt's own tools do.
func (w *walker) checkFreelist() {
	w.where = flaw{}
	p, extent, err := w.readPage(w.freelist, new([]byte))
	if err != nil {
		w.fault("the free list: %w", err)
		return
	}
	if order.Uint16(p.b[8:]) != flagFreelist {
		w.fault("page %d is not the free list", p.id)
		return
	}
	count, list := uint64(order.Uint16(p.b[10:])), p.b[pageHeadBytes:]
	if count == 0xFFFF {
		count, list = order.Uint64(list), list[8:]
	}
	if count > uint64(len(list)/8) {
		w.fault("the free list is larger than its pages")
		return
	}
	if !w.claim(p.id, extent) {
		return
	}
	for list = list[:8*count]; len(list) > 0; list = list[8:] {
		id := order.Uint64(list)
		if id < 2 || id >= w.pages {
			w.fault("the free list names page %d, which does not exist", id)
			return
		}
		if !w.claim(id, 1) {
			return
		}
	}
}
