package store_test

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/internal/recordpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Decoding allocates in proportion to the payload, also for payloads made of the parts
// that take the most memory for their bytes.
func TestAllocationIsBounded(t *testing.T) {
	racetest.Alone(t)
	const (
		large     = 1 << 20
		perByte   = 48      // of all allocations, garbage included, so the peak is lower
		constants = 4 << 20 // memory that a small payload may take, and the runtime's own
	)
	message := func(num protowire.Number, body []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), body)
	}
	wellFormed := func(m proto.Message) []byte {
		b, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	report := wellFormed(&recordpb.Report{Names: []string{"a"}, Values: []float64{1}})
	metric := wellFormed(&recordpb.Metric{Name: "a", Values: []float64{1}})
	repeat := func(b []byte) []byte { return bytes.Repeat(b, large/len(b)) }
	for what, payload := range map[string][]byte{
		"empty reports":      message(6, repeat(message(3, nil))),
		"reports":            message(6, repeat(message(3, report))),
		"empty metrics":      message(8, message(3, repeat(message(4, nil)))),
		"metrics":            message(8, message(3, repeat(message(4, metric)))),
		"empty names":        message(9+1, message(2, repeat(message(1, nil)))),
		"empty objectives":   message(17, message(1, []byte(`{"objectives":[{}`+strings.Repeat(",{}", large/6-10)+"]}"))),
		"numbers of a byte":  message(10, message(2, message(4, make([]byte, large)))),
		"bodies":             repeat(message(14, nil)),
		"bodies with bodies": repeat(message(4, message(5, message(1, nil)))),
		"a long space":       message(17, message(1, []byte(`{"space":`+strings.Repeat("[", large)+strings.Repeat("]", large)+"}"))),
		"a model":            message(13, message(3, make([]byte, large))),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = store.NewDecoder(someStudy).DecodePayload(payload)
		runtime.ReadMemStats(&after)
		took := after.TotalAlloc - before.TotalAlloc
		if limit := uint64(perByte*len(payload) + constants); took > limit {
			t.Errorf("%s: %d bytes took %d bytes of memory, want at most %d", what, len(payload), took, limit)
		}
		t.Logf("%s: %.1f bytes of memory per byte", what, float64(took)/float64(len(payload)))
	}
}
