package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/storetest/eventtest"
	"github.com/bkbtuner/bkb/store/storetest/longstudy"
	"github.com/bkbtuner/bkb/tuner/study"
)

// TestCheck finds each kind of damage that a database can have and still answer.
func TestCheck(t *testing.T) {
	for _, c := range []struct{ name, sql, want string }{
		{"none", "SELECT 1", ""},
		{"flipped bit", "UPDATE @.event SET record = set_bit(record, 77, 1 - get_bit(record, 77)) WHERE position = 7", "event 7"},
		{"missing record", "DELETE FROM @.event WHERE position = 5", "the record is missing"},
		{"missing end", "DELETE FROM @.event WHERE position > 5", "event 6: study 1 is damaged"},
		{"exchanged records", "UPDATE @.event SET record = (SELECT record FROM @.event WHERE position = 3) WHERE position = 4", "event 4"},
		{"another study's records", "UPDATE @.study SET id = 99; UPDATE @.event SET study = 99", "checksum"},
		{"orphans", "INSERT INTO @.event SELECT 77, position, record FROM @.event", "there are events, but no study"},
	} {
		t.Run(c.name, func(t *testing.T) {
			address := newStore(t)
			s := mustOpen(t, address, Options{})
			longstudy.Fill(t, s, "a", "random", 10, 2)
			exec(t, address, c.sql)
			report, err := s.Check(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if c.want == "" {
				if !report.OK() || report.Studies != 1 || report.Events != 21 || report.Trials != 10 || report.Bytes == 0 {
					t.Errorf("a sound store gave %+v", report)
				}
				return
			}
			if report.OK() || !strings.Contains(fmt.Sprint(report.Problems), c.want) {
				t.Errorf("the problems are %v, want %q", report.Problems, c.want)
			}
		})
	}
}

// count returns the number that a query of the schema gives.
func count(t *testing.T, s *Store, sql string) (n int) {
	t.Helper()
	err := s.read(t.Context(), 0, func(ctx context.Context, conn session) error {
		return conn.QueryRow(ctx, sql).Scan(&n)
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestReap deletes studies whose logs take several slices, one of them while the store
// closes, and waits until the records are gone.
func TestReap(t *testing.T) {
	address := newStore(t)
	s := mustOpen(t, address, Options{tuning: tuning{slice: 7}})
	for _, name := range []string{"a", "b"} {
		longstudy.Fill(t, s, name, "random", 20, 1)
	}
	kept, err := s.Create(t.Context(), "kept", eventtest.Examples()[:1])
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		info, err := s.Lookup(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Delete(t.Context(), info.ID); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, address, Options{tuning: tuning{slice: 7}})
	for begun := time.Now(); count(t, s, "SELECT count(*) FROM @.event") > 1; time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatal("the logs of deleted studies are still there")
		}
	}
	if report, err := s.Check(t.Context(), nil); err != nil || report.Studies != 1 {
		t.Errorf("afterwards: %+v, %v", report, err)
	}
	if _, err := s.Stat(t.Context(), kept.ID); err != nil {
		t.Error(err)
	}
}

// TestNotCreatedTwice sends the statement of a creation again after the study was
// deleted, as a retry or a late packet would.
func TestNotCreatedTwice(t *testing.T) {
	s := mustOpen(t, newStore(t), Options{})
	info, err := s.Create(t.Context(), "a", eventtest.Examples()[:1])
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), info.ID); err != nil {
		t.Fatal(err)
	}
	records, err := store.EncodeCommit(info.ID, 0, eventtest.Examples()[:1])
	if err != nil {
		t.Fatal(err)
	}
	made := -1
	err = s.try(t.Context(), 0, func(ctx context.Context, conn session) error {
		return conn.QueryRow(ctx, createStudy, int64(info.ID), "a", len(records), records).Scan(&made)
	})
	if err != nil || made != 0 {
		t.Errorf("the statement made %d studies, %v", made, err)
	}
	if done, err := s.created(t.Context(), info.ID); !done || err != nil {
		t.Errorf("the deleted study was never there: %v, %v", done, err)
	}
}

// TestAnotherStore replaces the tables under an open store, as a changed address of the
// database would. New connections are refused.
func TestAnotherStore(t *testing.T) {
	address := newStore(t)
	s := mustOpen(t, address, Options{Settle: time.Second})
	exec(t, address, "UPDATE @.meta SET store = '00112233445566778899aabbccddeeff'")
	s.pool.Reset()
	if _, err := s.Stat(t.Context(), 1); !errors.Is(err, ErrOtherStore) {
		t.Errorf("Stat: %v", err)
	}
	err := s.Commit(t.Context(), 1, 1, []study.Event{{Body: study.Paused{}}}, nil)
	if !errors.Is(err, ErrOtherStore) || errors.Is(err, store.ErrUnknownOutcome) {
		t.Errorf("Commit: %v", err)
	}
}
