// Package transfer copies studies from one store to another, of any kind, and compares
// them afterwards.
package transfer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/study"
)

// The most that one commit to the destination takes. A larger event is alone in its commit.
const (
	batchEvents = 2048
	batchBytes  = 8 << 20
)

// DifferentError refuses to copy a study to a store that has another one of its name.
type DifferentError struct {
	Name     string
	Position study.Position // of the first event that differs
}

func (e *DifferentError) Error() string {
	return fmt.Sprintf("the destination has another study %q, which differs from event %d on; delete or rename one of the two", e.Name, e.Position)
}

// Copied says what a copy did.
type Copied struct {
	Events  uint64 // of the study
	Already uint64 // part of Events that the destination had before
}

// Study copies one study with all events that it has now, and then compares the two logs. No
// other program may write to the copy meanwhile. If the destination has the beginning of the
// study, which an interrupted copy leaves, Study appends the rest. The copy has an id of its own.
func Study(ctx context.Context, from, to store.Store, info store.Info) (c Copied, err error) {
	target, err := to.Lookup(ctx, info.Name)
	if err != nil && !errors.As(err, new(*store.NotFoundError)) {
		return c, err
	}
	if target.Head > info.Head {
		return c, &DifferentError{info.Name, info.Head + 1}
	}
	if err := same(ctx, from, to, info, target); err != nil {
		return c, err
	}
	c.Already = uint64(target.Head)
	if err := appendRest(ctx, from, to, info, &target); err != nil {
		return c, err
	}
	c.Events = uint64(target.Head)
	return c, same(ctx, from, to, info, target)
}

// appendRest copies the events beyond the head of the target.
func appendRest(ctx context.Context, from, to store.Store, info store.Info, target *store.Info) error {
	var batch []study.Event
	var size int
	flush := func() (err error) {
		switch {
		case len(batch) == 0:
		case target.Head == 0:
			*target, err = to.Create(ctx, info.Name, batch)
		default:
			if err = to.Commit(ctx, target.ID, target.Head, batch, nil); err == nil {
				target.Head += study.Position(len(batch))
			}
		}
		batch, size = batch[:0], 0
		return err
	}
	if target.Head < info.Head {
		for r, err := range from.Read(ctx, info.ID, target.Head+1) {
			if err != nil {
				return err
			}
			if r.Position > info.Head {
				break
			}
			record, err := store.AppendRecord(nil, 0, r.Position, r.Event)
			if err != nil {
				return err
			}
			if len(batch) == batchEvents || len(batch) > 0 && size+len(record) > batchBytes {
				if err := flush(); err != nil {
					return err
				}
			}
			batch, size = append(batch, r.Event), size+len(record)
		}
	}
	return flush()
}

// same compares the log of a target with the beginning of the source's.
func same(ctx context.Context, from, to store.Store, info, target store.Info) error {
	if target.Head == 0 {
		return nil
	}
	next, stop := iter.Pull2(from.Read(ctx, info.ID, 1))
	defer stop()
	var position study.Position
	for r, err := range to.Read(ctx, target.ID, 1) {
		source, sourceErr, more := next()
		if err := cmp.Or(err, sourceErr); err != nil {
			return err
		}
		a, errA := store.AppendRecord(nil, 0, source.Position, source.Event)
		b, errB := store.AppendRecord(nil, 0, r.Position, r.Event)
		if err := cmp.Or(errB, errA); err != nil && more {
			return err
		}
		if !more || !bytes.Equal(a, b) { // equal events have equal records
			return &DifferentError{info.Name, r.Position}
		}
		position = r.Position
	}
	if position < target.Head {
		return &store.CorruptError{Study: target.ID, Position: position + 1, Reason: "the copy ends here"}
	}
	return nil
}
