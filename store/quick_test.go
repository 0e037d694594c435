package store_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/storetest"
	"github.com/bkbtuner/bkb/tuner/study"
	"pgregory.net/rapid"
)

// sameBothWays decodes a payload with and without a message and tells whether quick
// accepted it. In that case the decoder of messages must return the same event.
func sameBothWays(t rapid.TB, d *store.Decoder, payload []byte) bool {
	before := bytes.Clone(payload)
	got, ok := d.DecodeQuickly(payload)
	if !bytes.Equal(before, payload) {
		t.Fatal("decoding changed the payload")
	}
	if !ok {
		return false
	}
	want, err := d.DecodeMessage(payload)
	if err != nil {
		t.Fatalf("%x: accepted, but %v", payload, err)
	}
	if diff := storetest.Diff(want, got); diff != "" {
		t.Fatalf("%x: -message +quick:\n%s", payload, diff)
	}
	return true
}

func payloadOf(t testing.TB, e study.Event) []byte {
	b := record(t, e)
	return b[1 : len(b)-4]
}

// isQuick tells whether an event is of the common kinds that quick decodes.
func isQuick(e study.Event) bool {
	switch b := e.Body.(type) {
	case study.Started, study.Extended, study.Reported, study.Expired:
		return true
	case study.Told:
		return len(b.Outcome.Attributes) == 0
	case study.Added:
		return len(b.Attributes)+len(b.Outcome.Attributes) == 0
	default:
		return false
	}
}

func withoutAttributes(e study.Event) study.Event {
	switch b := e.Body.(type) {
	case study.Told:
		b.Outcome.Attributes = nil
		e.Body = b
	case study.Added:
		b.Attributes, b.Outcome.Attributes = nil, nil
		e.Body = b
	}
	return e
}

func TestQuickIsTheSame(t *testing.T) {
	d := store.NewDecoder(someStudy)
	kinds := make(map[string]int)
	check := func(tb rapid.TB, e study.Event) {
		quick := sameBothWays(tb, d, payloadOf(t, e))
		if quick != isQuick(e) {
			tb.Fatalf("%T: quick is %t", e.Body, quick)
		}
		if quick {
			kinds[fmt.Sprintf("%T", e.Body)]++
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		e := storetest.AnyEvent().Draw(rt, "event")
		if rapid.Bool().Draw(rt, "without attributes") {
			e = withoutAttributes(e)
		}
		check(rt, e)
	})
	for seed := 0; len(kinds) < 6 && seed < 2000; seed++ { // kinds that were not drawn
		check(t, withoutAttributes(storetest.AnyEvent().Example(seed)))
	}
	if len(kinds) != 6 {
		t.Errorf("quick were only %v", slices.Sorted(maps.Keys(kinds)))
	}
}

// TestQuickAcceptsNothingElse changes, inserts, removes, repeats and reorders parts of
// payloads. Whenever quick accepts the result, the decoder of messages must too.
func TestQuickAcceptsNothingElse(t *testing.T) {
	const seed = 3
	d, rng := store.NewDecoder(someStudy), rand.New(rand.NewPCG(seed, 0))
	var payloads [][]byte
	for _, e := range storetest.Examples() {
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
		if sameBothWays(t, d, b) {
			accepted++
		}
	}
	t.Logf("seed %d: %d accepted", seed, accepted)
	if accepted == 0 {
		t.Error("nothing was accepted: the test is blind")
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
