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

// Check reads the whole file at path. It checks the structure of the pages, the
// checksum and place of every record, and that names match studies. It also checks each
// log against the rules of package study. No file can make it crash. Damage is in the
// report. An error means that the file is refused ([FileError]) for another reason, or
// that ctx ended.
//
// It does not wait for other processes. While a server has the file open, use
// [Store.Check].
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
	report := &Report{}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	report.FileBytes = info.Size()
	seen, err := inspect(path, f, info.Size())
	if err == nil {
		report.Identity = seen.identity
		reader := pageReader{r: f, metaPage: seen.meta.metaPage}
		if report.Pages, err = walk(ctx, reader, report.flawed); err != nil {
			return report, err
		}
	}
	if report.OK() {
		report.Add(verify.Problem{Err: refusal})
	}
	return report, nil
}

func (r *Report) flawed(f flaw) bool {
	r.Add(verify.Problem{Study: f.study, Err: f})
	return true
}

// Check checks an open store. Reading and writing continue meanwhile.
func (s *Store) Check(ctx context.Context, o *verify.Options) (*Report, error) {
	report := &Report{Identity: *s.identity.Load()}
	if err := s.checkPages(ctx, report); err != nil || !report.OK() {
		return report, err
	}
	studies, err := s.checkNames(ctx, report)
	if err != nil {
		return report, err
	}
	return report, report.Report.Check(ctx, s, studies, o)
}

// checkPages checks the structure as one transaction sees it.
func (s *Store) checkPages(ctx context.Context, report *Report) error {
	return s.view(ctx, func(tx *bbolt.Tx) (err error) {
		size := s.db.Info().PageSize
		report.FileBytes = tx.Size()
		m := metaPage{
			pageSize: size, root: uint64(tx.Cursor().Bucket().Root()), freelist: noFreelist,
			pages: uint64(tx.Size()) / uint64(size),
		}
		report.Pages, err = walk(ctx, pageReader{r: s.file, metaPage: m}, report.flawed)
		return err
	})
}

// checkNames compares the buckets and lists all studies, also damaged ones.
func (s *Store) checkNames(ctx context.Context, report *Report) (studies []store.Info, err error) {
	err = s.view(ctx, func(tx *bbolt.Tx) error {
		if _, err := loadIndex(tx); err != nil {
			f, _ := err.(flaw)
			report.Add(verify.Problem{Study: f.study, Err: err})
		}
		return tx.Bucket(bucketStudies).ForEach(func(key, row []byte) error {
			name, _ := nameOf(tx, keyID(key))
			studies = append(studies, store.Info{ID: keyID(key), Name: string(name)})
			return nil
		})
	})
	return studies, err
}
