package store_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/storetest"
)

func TestSnapshotRoundTripAndDamage(t *testing.T) {
	want := store.Snapshot{Position: 5, Data: []byte("fold of five events")}
	b, err := store.EncodeSnapshot(someStudy, 9, want)
	if err != nil {
		t.Fatal(err)
	}
	got, ok := store.DecodeSnapshot(someStudy, 9, b)
	if !ok || got.Position != want.Position || !bytes.Equal(got.Data, want.Data) {
		t.Fatalf("got %+v, %v; want %+v", got, ok, want)
	}
	clear(b[9:])
	if !bytes.Equal(got.Data, want.Data) {
		t.Error("the snapshot shares memory with its encoding")
	}

	b, _ = store.EncodeSnapshot(someStudy, 9, want)
	absent := func(what string, id store.StudyID, b []byte) {
		if _, ok := store.DecodeSnapshot(id, 9, b); ok {
			t.Errorf("%s was accepted", what)
		}
	}
	for bit := range 8 * len(b) {
		b[bit/8] ^= 1 << (bit % 8)
		absent("a flipped bit", someStudy, b)
		b[bit/8] ^= 1 << (bit % 8)
	}
	for n := range b {
		absent("a truncation", someStudy, b[:n])
	}
	absent("another study's snapshot", someStudy+1, b)
	absent("a record", someStudy, record(t, storetest.Examples()[0]))
	if _, ok := store.DecodeSnapshot(someStudy, 4, b); ok {
		t.Error("a snapshot ahead of the log was accepted")
	}
	for what, forged := range map[string][]byte{"no head": {1}, "another format": {2, 5, 0, 0, 0, 0, 0, 0, 0}, "position 0": {1, 0, 0, 0, 0, 0, 0, 0, 0}} {
		absent(what, someStudy, store.Seal(forged, someStudy, 0))
	}
}

func TestSnapshotRefusals(t *testing.T) {
	for _, s := range []store.Snapshot{{Position: 0}, {Position: 10}} {
		if _, err := store.EncodeSnapshot(someStudy, 9, s); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("position %d: error is %v", s.Position, err)
		}
	}
	_, err := store.EncodeSnapshot(someStudy, 9, store.Snapshot{Position: 1, Data: make([]byte, store.MaxSnapshotBytes+1)})
	if _, ok := errors.AsType[*store.LimitError](err); !ok {
		t.Errorf("error is %v, want a LimitError", err)
	}
}
