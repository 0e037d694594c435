package bolt

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/study"
	"go.etcd.io/bbolt"
)

// Report is the result of a check.
type Report struct {
	Identity  Identity
	FileBytes int64
	Pages     int // read, of those in use
	Studies   int
	Events    uint64
	Trials    int
	Snapshots int       // without the damaged ones
	Problems  []Problem // at most [MaxProblems]
	More      int       // number of problems beyond MaxProblems
}

// MaxProblems is how many problems a [Report] lists.
const MaxProblems = 100

// OK tells whether the check found no problem.
func (r *Report) OK() bool { return len(r.Problems) == 0 }

// Problem is one defect of a file.
type Problem struct {
	Study    store.StudyID  // 0 if the problem is not in one study
	Name     string         // of the study, if known
	Position study.Position // in the study's log, 0 if the problem is not in one record
	Err      error
}

func (p Problem) String() string {
	switch {
	case p.Study == 0:
		return p.Err.Error()
	case p.Name == "":
		return fmt.Sprintf("study %d: %v", p.Study, p.Err)
	case p.Position == 0:
		return fmt.Sprintf("study %q (id %d): %v", p.Name, p.Study, p.Err)
	default:
		return fmt.Sprintf("study %q (id %d), event %d: %v", p.Name, p.Study, p.Position, p.Err)
	}
}

func (r *Report) add(p Problem) {
	if len(r.Problems) < MaxProblems {
		r.Problems = append(r.Problems, p)
		return
	}
	r.More++
}

// Progress receives the progress of a check or compaction, which is the number of
// studies done, the number of all studies and the name of the next one. It may be nil.
type Progress func(done, of int, next string)

func (p Progress) tell(done, of int, next string) {
	if p != nil {
		p(done, of, next)
	}
}

// Check reads the whole file at path. It checks the structure of the pages, the
// checksum and place of every record, and that names match studies. It also checks each
// log against the rules of package study. No file can make it crash. Damage is in the
// report. An error means that the file is refused ([FileError]) for another reason, or
// that ctx ended.
//
// It does not wait for other processes. While a server has the file open, use
// [Store.Check].
func Check(ctx context.Context, path string, progress Progress) (*Report, error) {
	s, err := Open(path, Options{ReadOnly: true, MustExist: true})
	if errors.Is(err, ErrDamaged) {
		return checkBroken(ctx, path, err)
	}
	if err != nil {
		return nil, err
	}
	report, err := s.Check(ctx, progress)
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
		report.add(Problem{Err: refusal})
	}
	return report, nil
}

func (r *Report) flawed(f flaw) bool {
	r.add(Problem{Study: f.study, Err: f})
	return true
}

// Check checks an open store. Reading and writing continue meanwhile.
func (s *Store) Check(ctx context.Context, progress Progress) (*Report, error) {
	report := &Report{Identity: *s.identity.Load()}
	if err := s.checkPages(ctx, report); err != nil || !report.OK() {
		return report, err
	}
	studies, err := s.checkNames(ctx, report)
	for i, info := range studies {
		if err != nil {
			break
		}
		progress.tell(i, len(studies), info.Name)
		err = s.checkStudy(ctx, report, info)
	}
	if err == nil {
		progress.tell(len(studies), len(studies), "")
	}
	return report, err
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
			report.add(Problem{Study: f.study, Err: err})
		}
		return tx.Bucket(bucketStudies).ForEach(func(key, row []byte) error {
			name, _ := nameOf(tx, keyID(key))
			studies = append(studies, store.Info{ID: keyID(key), Name: string(name)})
			return nil
		})
	})
	return studies, err
}

// checkStudy reads one log and replays it.
func (s *Store) checkStudy(ctx context.Context, report *Report, info store.Info) error {
	problem := func(pos study.Position, err error) {
		report.add(Problem{Study: info.ID, Name: info.Name, Position: pos, Err: err})
	}
	var position study.Position
	var readErr error
	replayed, err := study.Replay(s.events(ctx, info.ID, &position, &readErr))
	report.Events += uint64(position)
	switch gone := (*store.NotFoundError)(nil); {
	case errors.As(readErr, &gone): // deleted after it was listed
		return nil
	case readErr != nil:
		if err := fatal(ctx, readErr); err != nil {
			return err
		}
		problem(corruptAt(readErr, position), readErr)
	case err != nil:
		problem(position, fmt.Errorf("it cannot follow the events before it: %w", err))
	default:
		report.Trials += replayed.Trials()
		if err := replayed.Check(); err != nil {
			problem(0, err)
		}
	}
	report.Studies++
	return s.checkSnapshot(ctx, report, info)
}

// checkSnapshot counts the sound snapshots. A damaged one is not a problem, because it
// counts as missing.
func (s *Store) checkSnapshot(ctx context.Context, report *Report, info store.Info) error {
	_, ok, err := s.LoadSnapshot(ctx, info.ID)
	if err != nil {
		return fatal(ctx, err)
	}
	if ok {
		report.Snapshots++
	}
	return nil
}

// events yields the events of a log. It sets last to the last position, and err to the
// error that ended reading.
func (s *Store) events(ctx context.Context, id store.StudyID, last *study.Position, err *error) iter.Seq[study.Event] {
	return func(yield func(study.Event) bool) {
		for r, readErr := range s.Read(ctx, id, 1) {
			if readErr != nil {
				*err = readErr
				return
			}
			*last = r.Position
			if !yield(r.Event) {
				return
			}
		}
	}
}

// corruptAt returns the position in err, or the one after last.
func corruptAt(err error, last study.Position) study.Position {
	if e, ok := errors.AsType[*store.CorruptError](err); ok {
		return e.Position
	}
	return last + 1
}

// fatal returns errors that end a check because they are not about the data.
func fatal(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, store.ErrClosed) || errors.Is(err, store.ErrUnknownOutcome) {
		return err
	}
	return nil
}
