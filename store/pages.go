package store

import (
	"context"
	"iter"

	"github.com/bkbtuner/bkb/tuner/study"
)

// ReadPages decodes the records of a study from a position on. page returns those that
// follow a position, or none at the end of the log. A page is used up before the next one
// is read. It is for implementations of [Store].
func ReadPages(ctx context.Context, id StudyID, from study.Position, page func(from study.Position) ([][]byte, error)) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		decoder := NewDecoder(id)
		r := Record{Position: max(from, 1)}
		records, err := page(r.Position)
		for err == nil && len(records) > 0 {
			for _, record := range records {
				if err = ctx.Err(); err == nil {
					r.Event, err = decoder.Decode(r.Position, record)
				}
				if err != nil {
					break
				}
				if !yield(r, nil) {
					return
				}
				r.Position++
			}
			if err == nil {
				records, err = page(r.Position)
			}
		}
		if err != nil {
			yield(Record{}, err)
		}
	}
}

// ListPages lists studies by pages of up to size, which page returns in the order of
// their names. A page that is not full is the last. It is for implementations of [Store].
func ListPages(after string, size int, page func(after string) ([]Info, error)) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		for after := after; ; {
			infos, err := page(after)
			for _, info := range infos {
				if !yield(info, nil) {
					return
				}
				after = info.Name
			}
			if err != nil {
				yield(Info{}, err)
				return
			}
			if len(infos) < size {
				return
			}
		}
	}
}
