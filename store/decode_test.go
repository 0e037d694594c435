package store_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/storetest/eventtest"
	"github.com/bkbtuner/bkb/tuner/study"
	"pgregory.net/rapid"
)

// sameAsProtobuf decodes a payload with the generated decoder and with protobuf's own, and
// tells whether they accepted it. They must agree. The event must share no memory with the
// payload.
func sameAsProtobuf(t rapid.TB, d *store.Decoder, payload []byte) bool {
	shared := bytes.Clone(payload)
	got, err := d.DecodePayload(shared)
	for i := range shared {
		shared[i] = 0xff
	}
	want, wantErr := d.DecodeByReflection(payload)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%x: %v, but protobuf: %v", payload, err, wantErr)
	}
	if diff := eventtest.Diff(want, got); diff != "" {
		t.Fatalf("%x: -protobuf +own:\n%s", payload, diff)
	}
	return err == nil
}

func payloadOf(t testing.TB, e study.Event) []byte {
	b := record(t, e)
	return b[1 : len(b)-4]
}

func TestDecodesAsProtobuf(t *testing.T) {
	d := store.NewDecoder(someStudy)
	rapid.Check(t, func(rt *rapid.T) {
		e := eventtest.AnyEvent().Draw(rt, "event")
		if !sameAsProtobuf(rt, d, payloadOf(t, e)) {
			rt.Fatalf("%T: refused", e.Body)
		}
	})
}

// TestAcceptsWhatProtobufAccepts changes, inserts, removes, repeats and reorders parts of
// payloads.
func TestAcceptsWhatProtobufAccepts(t *testing.T) {
	const seed = 3
	d, rng := store.NewDecoder(someStudy), rand.New(rand.NewPCG(seed, 0))
	var payloads [][]byte
	for _, e := range eventtest.Examples() {
		payloads = append(payloads, payloadOf(t, e))
	}
	for i := range 3 {
		for _, e := range typicalTrial(i) {
			payloads = append(payloads, payloadOf(t, e))
		}
	}
	accepted := 0
	for range 20_000 {
		b := bytes.Clone(payloads[rng.IntN(len(payloads))])
		for range 1 + rng.IntN(3) {
			b = damage(rng, b)
		}
		if sameAsProtobuf(t, d, b) {
			accepted++
		}
	}
	t.Logf("seed %d: %d accepted", seed, accepted)
	if accepted == 0 || accepted == 20_000 {
		t.Error("all or nothing was accepted: the test is blind")
	}
}

func damage(rng *rand.Rand, b []byte) []byte {
	if len(b) == 0 {
		return []byte{byte(rng.IntN(256))}
	}
	i, j := rng.IntN(len(b)), rng.IntN(len(b))
	i, j = min(i, j), max(i, j)
	switch rng.IntN(7) {
	case 0:
		b[i] ^= 1 << rng.IntN(8)
	case 1:
		b[i] = byte(rng.IntN(256))
	case 2:
		b = slices.Insert(b, i, byte(rng.IntN(256)))
	case 3:
		b = slices.Delete(b, i, i+1)
	case 4:
		b = append(b, b[i:j]...)
	case 5:
		b[i] = 0
	default: // swap two halves
		b = append(bytes.Clone(b[i:]), b[:i]...)
	}
	return b
}
