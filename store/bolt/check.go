package bolt

import (
	"context"
	"errors"
	"os"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/verify"
	"go.etcd.io/bbolt"
)

// Report is the result of a check.
type Report struct {
	verify.Report
	Identity  Identity
	FileBytes int64
	Pages     int // read, of those in use
}

// Check reads the whole file at path. It checks the structure of the pages, the checksum and
// place of every record, and that names match studies. It also checks each log against the rules
// of package study. No file can make it crash. Damage is in the report. An error means that the
// file is refused ([FileError]) for another reason, or that ctx ended.
//
// It does not wait for other processes. While a server has the file open, use [Store.Check].
func Check(ctx context.Context, path string, o *verify.Options) (*Report, error) {
	s, err := Open(path, Options{ReadOnly: true, MustExist: true})
	if errors.Is(err, ErrDamaged) {
		return checkBroken(ctx, path, err)
	}
	if err != nil {
		return nil, err
	}
	report, err := s.Check(ctx, o)
	return report, errors.Join(err, s.Close())
}

// checkBroken lists the flaws of a file that cannot be opened.
func checkBroken(ctx context.Context, path string, refusal error) (*Report, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	report := &Report{FileBytes: info.Size()}
	seen, err := inspect(ctx, path, f, report.flawed)
	if ctx.Err() != nil {
		return nil, err
	}
	report.Identity, report.Pages = seen.identity, seen.pages
	if report.OK() {
		report.Add(verify.Problem{Err: refusal})
	}
	return report, nil
}

func (r *Report) flawed(f flaw) { r.Add(verify.Problem{Study: f.study, Err: f}) }

// Check checks an open store. Reading and writing continue meanwhile.
func (s *Store) Check(ctx context.Context, o *verify.Options) (*Report, error) {
	report := &Report{Identity: s.identity}
	err := s.view(ctx, func(tx *bbolt.Tx) (err error) {
		size := s.db.Info().PageSize
		report.FileBytes = tx.Size()
		report.Pages, _, err = walk(ctx, s.file, metaPage{
			pageSize: size, root: uint64(tx.Cursor().Bucket().Root()), freelist: noFreelist, pages: uint64(tx.Size()) / uint64(size),
		}, report.flawed)
		return err
	})
	if err != nil || !report.OK() {
		return report, err
	}
	var studies []store.Info // also damaged ones
	err = s.view(ctx, func(tx *bbolt.Tx) error {
		if _, _, err := loadIndex(tx); err != nil {
			f, _ := err.(flaw)
			report.flawed(f)
		}
		return tx.Bucket(bucketStudies).ForEach(func(key, row []byte) error {
			name, _ := nameOf(tx, keyID(key))
			studies = append(studies, store.Info{ID: keyID(key), Name: string(name)})
			return nil
		})
	})
	if err != nil {
		return report, err
	}
	return report, report.Report.Check(ctx, s, studies, o)
}
