//go:build linux

package torture

import (
	"math/rand/v2"
	"path/filepath"
)

// disk is the disk that a machine could find after a loss of power. It has the synced
// data and any part of the rest.
type disk struct {
	names   map[string]*inode // as the running system sees them
	synced  map[string]*inode // as they are certainly found
	renamed []naming          // changes of names since their directory was synced
}

// inode is a file without a name.
type inode struct {
	stable  []byte
	pending []*operation // writes and truncations since the last sync
}

// naming is a change of a file's name.
type naming struct {
	path string
	node *inode // nil for a removal
}

func newDisk() *disk {
	return &disk{names: make(map[string]*inode), synced: make(map[string]*inode)}
}

// do applies the next operation.
func (d *disk) do(op *operation) {
	switch op.kind {
	case "create":
		d.name(filepath.Clean(op.path), &inode{})
	case "rename", "linkat":
		node := d.names[filepath.Clean(op.path)]
		if node == nil {
			return
		}
		d.name(filepath.Clean(op.to), node)
		if op.kind == "rename" {
			d.name(filepath.Clean(op.path), nil)
		}
	case "unlinkat":
		d.name(filepath.Clean(op.path), nil)
	case "pwrite64", "ftruncate":
		if node := d.names[op.path]; node != nil {
			node.pending = append(node.pending, op)
		}
	case "fsync", "fdatasync":
		if op.done == 0 {
			return
		}
		if node := d.names[op.path]; node != nil {
			node.sync()
			return
		}
		d.syncDirectory(op.path)
	}
}

func (d *disk) name(path string, node *inode) {
	d.renamed = append(d.renamed, naming{path, node})
	if d.names[path] = node; node == nil {
		delete(d.names, path)
	}
}

func (d *disk) syncDirectory(path string) {
	var rest []naming
	for _, n := range d.renamed {
		if filepath.Dir(n.path) == path {
			d.synced[n.path] = n.node
		} else {
			rest = append(rest, n)
		}
	}
	d.renamed = rest
}

func (n *inode) sync() {
	n.stable = apply(n.stable, n.pending, nil)
	n.pending = nil
}

// sectors are the sizes that a disk writes as a whole.
var sectors = []int{512, 4096, 1 << 30}

// after returns the file at path as it could be after a power cut now, and whether it
// exists.
func (d *disk) after(path string, random *rand.Rand) (content []byte, there bool) {
	node := d.synced[path]
	for _, n := range d.renamed {
		if n.path == path && random.IntN(2) == 0 {
			node = n.node
		}
	}
	if node == nil {
		return nil, false
	}
	sector := sectors[random.IntN(len(sectors))]
	chance := random.IntN(5) // out of 4, for none, some, half, most or all
	keep := func() bool { return random.IntN(4) < chance }
	return apply(append([]byte(nil), node.stable...), node.pending, func(op *operation) *operation {
		switch {
		case op.kind != "ftruncate":
			return tear(op, sector, keep)
		case keep():
			return op
		default:
			return nil
		}
	}), true
}

// tear returns the sectors of a write that reach the disk. Each one may or may not.
func tear(op *operation, sector int, keep func() bool) *operation {
	var parts []*operation
	for begin := 0; begin < len(op.data); {
		end := min(len(op.data), begin+sector-int((op.offset+int64(begin))%int64(sector)))
		if keep() {
			parts = append(parts, &operation{kind: op.kind, offset: op.offset + int64(begin), data: op.data[begin:end]})
		}
		begin = end
	}
	if len(parts) == 0 {
		return nil
	}
	return &operation{kind: op.kind, offset: op.offset, parts: parts}
}

// apply applies writes and truncations to a file, after choose has reduced each of
// them.
func apply(content []byte, ops []*operation, choose func(*operation) *operation) []byte {
	for _, op := range ops {
		if choose != nil {
			if op = choose(op); op == nil {
				continue
			}
		}
		switch {
		case op.kind == "ftruncate":
			content = resize(content, op.offset)
		case op.parts != nil:
			content = apply(content, op.parts, nil)
		default:
			if end := op.offset + int64(len(op.data)); end > int64(len(content)) {
				content = resize(content, end)
			}
			copy(content[op.offset:], op.data)
		}
	}
	return content
}

func resize(content []byte, size int64) []byte {
	if size <= int64(len(content)) {
		return content[:size]
	}
	return append(content, make([]byte, size-int64(len(content)))...)
}
