package learners

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/dataset"
)

// Errors of data name flags with the values that they take.
func TestRemediesNameFlags(t *testing.T) {
	dir := t.TempDir()
	encoding := func(text string) *data.Encoding {
		path := filepath.Join(dir, "t.csv")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		table, err := dataset.Open(t.Context(), dataset.Options{}, path)
		if err != nil {
			t.Fatal(err)
		}
		e, err := table.FitEncoding(t.Context(), nil, data.EncodingOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	applied := func(e *data.Encoding, text string, o dataset.Options) error {
		path := filepath.Join(dir, "new.csv")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		o.Model = e
		_, err := dataset.Open(t.Context(), o, path)
		return err
	}
	path := filepath.Join(dir, "large.csv")
	if err := os.WriteFile(path, []byte("a,y\n1000000001,2\n1000000002,3\n1000000003,5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	large, err := dataset.Open(t.Context(), dataset.Options{Float32: true}, path)
	if err != nil {
		t.Fatal(err)
	}
	_, single := large.FitEncoding(t.Context(), nil, data.EncodingOptions{KeepInputs: true})
	_, few := data.Split(2, nil, 1, 0.1, 0.9)
	named, plain := encoding("a,y\n1,2\n2,3\n3,5\n"), encoding("1,2\n2,3\n3,5\n")
	for want, err := range map[string]error{
		"--validation 0": few,
		"leave out --keep-inputs, or --float32 and --chunk-file": single,
		"--header yes": applied(named, "1,2\n3,4\n", dataset.Options{}),
		"--header no":  applied(plain, "a,y\n1,2\n", dataset.Options{}),
		"--day-first contradicts; leave it out": applied(encoding("d,y\n01/13/2024,2\n01/14/2024,3\n02/02/2024,5\n"),
			"d\n01/02/2024\n", dataset.Options{DayFirst: true}),
	} {
		if err == nil || !strings.Contains(reworded(err).Error(), want) {
			t.Errorf("%v: want %s", err, want)
		}
	}
}
