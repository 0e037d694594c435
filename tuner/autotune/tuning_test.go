package autotune

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/dataset"
	"github.com/bkbtuner/bkb/learners/training"
)

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
