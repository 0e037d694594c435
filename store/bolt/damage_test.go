package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/study"
	"go.etcd.io/bbolt"
)

// holding is the expected contents of a store.
type holding struct {
	infos     []store.Info
	events    map[store.StudyID][]study.Event
	summaries map[store.StudyID][]byte
	gone      store.StudyID
}

// collection writes a store with data of all kinds and returns its bytes.
func collection(t *testing.T) ([]byte, holding) {
	t.Helper()
	s := mustOpen(t, filepath.Join(t.TempDir(), "studies.db"), Options{})
	h := holding{events: make(map[store.StudyID][]study.Event), summaries: make(map[store.StudyID][]byte)}
	for i := range 12 {
		info := fill(t, s, fmt.Sprint("study-", i), 1+i*i/3)
		if i%3 == 0 {
			h.summaries[info.ID] = bytes.Repeat([]byte{byte(i + 1)}, 100+1000*i)
			if err := s.SaveSummaries(t.Context(), []store.Summary{{Study: info.ID, Position: info.Head, Data: h.summaries[info.ID]}}); err != nil {
				t.Fatal(err)
			}
		}
		h.infos = append(h.infos, info)
		h.events[info.ID] = append([]study.Event{opened()}, trials(0, 1+i*i/3)...)
	}
	gone := fill(t, s, "gone", 40)
	h.gone = gone.ID
	if err := s.Delete(t.Context(), gone.ID); err != nil {
		t.Fatal(err)
	}
	slicesSort(h.infos)
	var b bytes.Buffer
	if err := s.Backup(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), h
}

func slicesSort(infos []store.Info) {
	for i := range infos { // few
		for j := i; j > 0 && infos[j].Name < infos[j-1].Name; j-- {
			infos[j], infos[j-1] = infos[j-1], infos[j]
		}
	}
}

// compareAll reads everything and tells whether there was no error. Data returned
// without an error must be right.
func (h holding) compareAll(t *testing.T, s *Store) (clean bool) {
	t.Helper()
	clean = true
	var listed []store.Info
	for info, err := range s.List(t.Context(), "") {
		if err != nil {
			clean = allowed(t, err)
			break
		}
		listed = append(listed, info)
	}
	if clean && fmt.Sprint(listed) != fmt.Sprint(h.infos) {
		t.Errorf("listed %v, want %v", listed, h.infos)
	}
	for _, want := range h.infos {
		clean = h.compare(t, s, want) && clean
	}
	if info, err := s.Stat(t.Context(), h.gone); err == nil {
		t.Errorf("a deleted study is back: %+v", info)
	}
	return clean
}

func (h holding) compare(t *testing.T, s *Store, want store.Info) (clean bool) {
	t.Helper()
	clean = true
	if got, err := s.Lookup(t.Context(), want.Name); err != nil {
		clean = allowed(t, err)
	} else if got != want {
		t.Errorf("Lookup = %+v, want %+v", got, want)
	}
	n := 0
	for r, err := range s.Read(t.Context(), want.ID, 1) {
		if err != nil {
			return allowed(t, err)
		}
		if n++; int(r.Position) != n || !sameEvent(h.events[want.ID][n-1], r.Event) {
			t.Fatalf("study %d: event %d is wrong", want.ID, n)
		}
	}
	if n != int(want.Head) {
		t.Errorf("study %d has %d events, want %d", want.ID, n, want.Head)
	}
	list, err := s.Summaries(t.Context(), []store.StudyID{want.ID})
	if err != nil {
		return allowed(t, err)
	}
	if len(list) > 0 && !bytes.Equal(list[0].Data, h.summaries[want.ID]) {
		t.Errorf("study %d has a wrong summary", want.ID)
	}
	return clean && (len(list) > 0) == (h.summaries[want.ID] != nil)
}

// allowed checks that an error is about damage. It returns false.
func allowed(t *testing.T, err error) bool {
	t.Helper()
	corrupt, isCorrupt := errors.AsType[*store.CorruptError](err)
	newer, isNewer := errors.AsType[*store.NewerFormatError](err)
	if !isCorrupt && !isNewer && !errors.Is(err, ErrDamaged) {
		t.Errorf("error is %v (%v, %v), want one about damage", err, corrupt, newer)
	}
	return false
}

// A flip of any bit gives the right result or an error, and never a crash. Check finds
// every flip that changes a result.
func TestBitFlips(t *testing.T) {
	whole, held := collection(t)
	random := seeded(t)
	path := filepath.Join(t.TempDir(), "studies.db")
	var refused, erred, unnoticed int
	for range often(t, "BKB_BOLT_FLIPS", 60) {
		bit := random.IntN(8 * len(whole))
		b := bytes.Clone(whole)
		b[bit/8] ^= 1 << (bit % 8)
		writeFile(t, path, b)
		switch clean, opened := flipped(t, path, held); {
		case t.Failed():
			t.Fatalf("bit %d of byte %d", bit%8, bit/8)
		case !opened:
			refused++
		case !clean:
			erred++
		default:
			unnoticed++
		}
	}
	t.Logf("of all flips %d were refused at the start, %d where they mattered, %d made no difference", refused, erred, unnoticed)
}

// flipped reads and writes a file with a flipped bit.
func flipped(t *testing.T, path string, held holding) (clean, opened bool) {
	t.Helper()
	report, err := Check(t.Context(), path, nil)
	sound := err == nil && report.OK()
	s, err := Open(path, Options{MaxSize: 1 << 24, tuning: tuning{noSync: true}})
	if err != nil {
		if _, ok := errors.AsType[*FileError](err); !ok || sound {
			t.Errorf("opening: %v, although the check said %t", err, sound)
		}
		return false, false
	}
	clean = held.compareAll(t, s)
	if sound && !clean && report.Summaries == len(held.summaries) {
		t.Error("the check found nothing")
	}
	info := held.infos[len(held.infos)-1]
	err = s.Commit(t.Context(), info.ID, info.Head, trials(int(info.Head-1)/3, 1), nil)
	if err == nil {
		err = s.Delete(t.Context(), info.ID)
	}
	if err != nil && !errors.Is(err, store.ErrUnknownOutcome) {
		allowed(t, err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closing: %v", err)
	}
	return clean, true
}

// A file truncated at any place is refused.
func TestTruncation(t *testing.T) {
	whole, held := collection(t)
	random := seeded(t)
	path := filepath.Join(t.TempDir(), "studies.db")
	sizes := []int{0, 1, 16, 79, 80, 4095, 4096, 4097, 8191, 8192, len(whole) - 1}
	for range often(t, "BKB_BOLT_CUTS", 60) {
		sizes = append(sizes, random.IntN(len(whole)))
	}
	for _, size := range sizes {
		writeFile(t, path, whole[:size])
		for _, readOnly := range []bool{false, true} {
			s, err := Open(path, Options{ReadOnly: readOnly, MustExist: true})
			if err == nil {
				_ = s.Close()
				t.Fatalf("a file cut to %d of %d bytes was opened", size, len(whole))
			}
			if !errors.Is(err, ErrTruncated) && !errors.Is(err, ErrEmpty) && !(errors.Is(err, ErrForeign) && size < 80) {
				t.Errorf("cut to %d bytes: %v", size, err)
			}
		}
		if info, err := os.Stat(path); err != nil || info.Size() != int64(size) {
			t.Fatalf("the refused file has changed: %v, %v", info, err)
		}
	}
	writeFile(t, path, append(whole, make([]byte, 12345)...))
	if s := mustOpen(t, path, Options{}); !held.compareAll(t, s) {
		t.Error("a file that is longer than needed is not read")
	}
}

// A file that is truncated while it is open gives errors and no crash.
func TestTruncatedWhileOpen(t *testing.T) {
	whole, held := collection(t)
	path := filepath.Join(t.TempDir(), "studies.db")
	writeFile(t, path, whole)
	s := mustOpen(t, path, Options{ReadOnly: true})
	if err := os.Truncate(path, 8192); err != nil {
		t.Fatal(err)
	}
	if held.compareAll(t, s) {
		t.Error("the store did not notice")
	}
}

// Check names the study and event of a damaged record and reports no other.
func TestCheckNamesTheRecord(t *testing.T) {
	whole, held := collection(t)
	path := filepath.Join(t.TempDir(), "studies.db")
	writeFile(t, path, whole)
	hit := held.infos[5]
	update(t, path, func(tx *bbolt.Tx) error {
		log := tx.Bucket(bucketLogs).Bucket(idKey(hit.ID))
		record := bytes.Clone(log.Get(posKey(3)))
		record[9] ^= 4
		return log.Put(posKey(3), record)
	})
	report, err := Check(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Problems) != 1 || report.Problems[0].Study != hit.ID || report.Problems[0].Position != 3 || report.Problems[0].Name != hit.Name {
		t.Errorf("the problems are %v", report.Problems)
	}
	if report.Studies != len(held.infos) || report.Summaries != len(held.summaries)-1 { // the damaged log is not compared
		t.Errorf("the report is %+v", report)
	}
}

// Check reports a log that breaks the rules of package study, even if all its records
// are sound.
func TestCheckReplays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "studies.db")
	s := mustOpen(t, path, Options{})
	info := fill(t, s, "mnist", 4)
	if err := s.Commit(t.Context(), info.ID, info.Head, []study.Event{told(77)}, nil); err != nil {
		t.Fatal(err)
	}
	report, err := s.Check(t.Context(), nil)
	if err != nil || len(report.Problems) != 1 || report.Problems[0].Position != info.Head+1 {
		t.Errorf("the report is %+v, %v", report, err)
	}
}

// If one meta page is damaged, the store uses the other one and logs a warning.
func TestMetaPages(t *testing.T) {
	whole, held := collection(t)
	meta := readMeta(bytes.NewReader(whole))
	if !meta.sound || meta.lost {
		t.Fatalf("the sample's meta pages are %+v", meta)
	}
	path := filepath.Join(t.TempDir(), "studies.db")
	for slot := range 2 {
		b := bytes.Clone(whole)
		b[slot*meta.pageSize+pageHeadBytes+metaBytes-1] ^= 0x10
		writeFile(t, path, b)
		var log bytes.Buffer
		s := mustOpen(t, path, Options{Logger: textLogger(&log)})
		if !held.compareAll(t, s) { // in a copy both pages have the same state
			t.Error("the other page was not used")
		}
		if !bytes.Contains(log.Bytes(), []byte("damaged")) {
			t.Errorf("the log is %s", log.String())
		}
		fill(t, s, "healed", 1)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		log.Reset()
		s = mustOpen(t, path, Options{Logger: textLogger(&log)})
		if bytes.Contains(log.Bytes(), []byte("damaged")) {
			t.Errorf("the damaged page was not replaced: %s", log.String())
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A missing record is reported at its position. A log without its end is not read at
// all, because acknowledged events would seem never to have existed.
func TestMissingRecord(t *testing.T) {
	for gone, want := range map[study.Position]study.Position{1: 1, 77: 77, 301: 1} {
		path := filepath.Join(t.TempDir(), "studies.db")
		s := mustOpen(t, path, Options{})
		info := fill(t, s, "mnist", 100)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		update(t, path, func(tx *bbolt.Tx) error { return tx.Bucket(bucketLogs).Bucket(idKey(info.ID)).Delete(posKey(gone)) })
		s = mustOpen(t, path, Options{})
		next := study.Position(1)
		for r, err := range s.Read(t.Context(), info.ID, 1) {
			if err == nil {
				next = r.Position + 1
				continue
			}
			if corrupt, ok := errors.AsType[*store.CorruptError](err); !ok || corrupt.Study != info.ID || corrupt.Position != gone {
				t.Errorf("error is %v, want damage at %d", err, gone)
			}
		}
		if next != want {
			t.Errorf("without event %d, reading ended before %d, want %d", gone, next, want)
		}
	}
}

// The error about structural damage in a study's log names the study, at Open and in
// Check.
func TestStructuralDamageNamesTheStudy(t *testing.T) {
	whole, held := collection(t)
	path := filepath.Join(t.TempDir(), "studies.db")
	writeFile(t, path, whole)
	hit := held.infos[len(held.infos)-1]
	var root int
	update(t, path, func(tx *bbolt.Tx) error {
		root = int(tx.Bucket(bucketLogs).Bucket(idKey(hit.ID)).Root())
		return nil
	})
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[root*readMeta(bytes.NewReader(b)).pageSize+pageHeadBytes+3] ^= 0x40 // place of an element's key
	writeFile(t, path, b)
	_, err = Open(path, Options{})
	if corrupt, ok := errors.AsType[*store.CorruptError](err); !ok || corrupt.Study != hit.ID || !errors.Is(err, ErrDamaged) {
		t.Errorf("error is %v, want damage in study %d", err, hit.ID)
	}
	report, err := Check(t.Context(), path, nil)
	if err != nil || len(report.Problems) != 1 || report.Problems[0].Study != hit.ID {
		t.Errorf("the report is %+v, %v", report, err)
	}
}
