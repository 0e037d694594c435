package store_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/storetest/eventtest"
	"github.com/bkbtuner/bkb/tuner/study"
)

// FuzzDecodeRecord feeds whole records. An unsound record must give one of the two
// typed errors.
func FuzzDecodeRecord(f *testing.F) {
	for _, e := range eventtest.Examples() {
		f.Add(record(f, e))
	}
	f.Add([]byte{})
	f.Add(store.Seal([]byte{2, 1, 2, 3}, someStudy, somePosition))
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		e, err := decode(b)
		if !bytes.Equal(before, b) {
			t.Fatal("decoding changed the record")
		}
		_, corrupt := errors.AsType[*store.CorruptError](err)
		_, newer := errors.AsType[*store.NewerFormatError](err)
		if err != nil && !corrupt && !newer {
			t.Fatalf("untyped error %v", err)
		}
		if err == nil {
			wantStable(t, e)
		}
	})
}

// FuzzDecodePayload feeds payloads without checksum, because the checksum stops nearly
// all inputs of FuzzDecodeRecord.
func FuzzDecodePayload(f *testing.F) {
	for _, e := range eventtest.Examples() {
		b := record(f, e)
		f.Add(b[1 : len(b)-4])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		decoder := store.NewDecoder(someStudy)
		sameAsProtobuf(t, decoder, b)
		e, err := decoder.DecodePayload(b)
		if err != nil {
			return
		}
		wantStable(t, e)
		if size := len(record(t, e)); size > len(b)+5 && !isCreated(e) {
			t.Fatalf("%d bytes of payload became a record of %d", len(b), size)
		}
	})
}

// wantStable checks that a decoded event survives another round.
func wantStable(t *testing.T, e study.Event) {
	first := record(t, e)
	again, err := decode(first)
	if err != nil {
		t.Fatalf("a record of a decoded event is refused: %v", err)
	}
	if diff := eventtest.Diff(e, again); diff != "" {
		t.Fatalf("-first +second:\n%s", diff)
	}
	if !bytes.Equal(first, record(t, again)) {
		t.Fatal("encoding again gives another record")
	}
}

// isCreated tells whether the event holds a space, which may be encoded longer than it
// was written.
func isCreated(e study.Event) bool {
	_, ok := e.Body.(study.Created)
	return ok
}
