package autotune

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/dataset"
	"github.com/bkbtuner/bkb/learners/training"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
)

// A study of an earlier build is refused where it learned length scales or chose centres by
// other rules, and only there.
func TestStudiesOfEarlierRules(t *testing.T) {
	for _, c := range []struct {
		algorithm string
		inputs    int
		fixed     training.Values
		refused   bool
	}{
		{"krr", 1, nil, false},
		{"krr", 2, nil, true},
		{"krr", 2, training.Values{"relevance": "equal"}, false},
		{"krr", 2, training.Values{"relevance": "learned"}, true},
		{"krr", 2, training.Values{"length-scale": "auto"}, true},
		{"krr", 2, training.Values{"length-scale": "1"}, false},
		{"falkon", 1, nil, false},
		{"falkon", 1, training.Values{"sampler": "uniform"}, false},
		{"falkon", 1, training.Values{"sampler": "bless"}, true},
	} {
		a, err := training.Find(c.algorithm)
		if err != nil {
			t.Fatal(err)
		}
		d := numbers(t, 80, c.inputs)
		tn, err := New(t.Context(), a, d, Options{Fixed: c.fixed, Seed: 4, Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		spec := tn.Complete(study.Spec{})
		if err := tn.Check(tuner.Study{Name: "s", Spec: spec}); err != nil {
			t.Errorf("%s, %v: its own study is refused: %v", c.algorithm, c.fixed, err)
		}
		spec.Attributes[attributeData] = earlierPrint(t, tn)
		err = tn.Check(tuner.Study{Name: "s", Spec: spec})
		if mismatch := (*MismatchError)(nil); errors.As(err, &mismatch) != c.refused {
			t.Errorf("%s with %d inputs, %v: %v", c.algorithm, c.inputs, c.fixed, err)
		}
		if err != nil && !strings.Contains(err.Error(), "of an earlier version") {
			t.Error(err)
		}
	}

	a, err := training.Find("falkon")
	if err != nil {
		t.Fatal(err)
	}
	many, err := New(t.Context(), a, numbers(t, 8000, 1), Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, searched := many.space.Lookup("sampler"); !searched || many.print == earlierPrint(t, many) {
		t.Errorf("the sampler is searched: %v; the fingerprint is %s", searched, many.print)
	}
}

// earlierPrint is the fingerprint of the first builds.
func earlierPrint(t *testing.T, tn *Tuning) string {
	y, err := learners.Targets(t.Context(), tn.data.Validation)
	if err != nil {
		t.Fatal(err)
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s %s %d %d %d %d %d", tn.algorithm.Name, tn.name, tn.options.Seed,
		tn.problem.Rows, tn.problem.Dim, tn.problem.Outputs, tn.data.Validation.Len())
	for _, v := range append(y, tn.problem.MedianDistance) {
		h.Write(binary.LittleEndian.AppendUint64(nil, math.Float64bits(v)))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// numbers are n rows of a smooth function with validation rows.
func numbers(t *testing.T, n, inputs int) *training.Data {
	t.Helper()
	var b strings.Builder
	for j := range inputs {
		fmt.Fprintf(&b, "x%d,", j)
	}
	b.WriteString("y\n")
	rng := stream.New(7)
	for range n {
		y := 0.1 * rng.NormFloat64()
		for range inputs {
			x := rng.NormFloat64()
			y += math.Sin(x)
			fmt.Fprintf(&b, "%v,", x)
		}
		fmt.Fprintf(&b, "%v\n", y)
	}
	path := filepath.Join(t.TempDir(), "data.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	table, err := dataset.Open(t.Context(), dataset.Options{Target: []string{"y"}}, path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { table.Close() })
	d, err := training.Prepare(t.Context(), table, training.Split{Validation: 0.25, Seed: 1}, data.EncodingOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}
