package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
)

// An import that cannot make a study tells why, also without a file of studies. A study with
// a new parameter needs a new name.
func TestImportOptunaReasons(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "s.json")
	f := func(high int) string {
		return fmt.Sprintf(`{"name": "FloatDistribution", "attributes": {"low": 0, "high": %d, "log": false, "step": null}}`, high)
	}
	do := func(text, want string, code int) {
		t.Helper()
		if err := os.WriteFile(file, []byte(`{"study_name": "s", "import_id": "s", "directions": ["minimize"], "trials": [`+text+`]}`), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		if got := run(t.Context(), []string{"--db", filepath.Join(dir, "own.db"), "import", "s", file}, strings.NewReader(""), &out, &errs); got != code || !strings.Contains(errs.String(), want) {
			t.Errorf("%d: %s, want %d: %s", got, errs.String(), code, want)
		}
	}
	first := `{"number": 0, "state": "COMPLETE", "values": [1], "params": {"x": 0.5}, "distributions": {"x": ` + f(1) + `}}`
	do(first+`, {"number": 1, "state": "COMPLETE", "values": [1], "params": {"x": 0.5}, "distributions": {"x": `+f(2)+`}}`,
		`parameter "x" has the distribution`, cli.ExitInvalid)
	if _, err := os.Stat(filepath.Join(dir, "own.db")); !os.IsNotExist(err) {
		t.Errorf("the failed import left a file: %v", err)
	}
	do(first, "Imported 1 trial.", cli.ExitOK)
	do(first+`, {"number": 1, "state": "COMPLETE", "values": [1], "params": {"x": 0.5, "y": 1}, "distributions": {"x": `+f(1)+`, "y": `+f(1)+`}}`,
		"import it under a new name", cli.ExitInvalid)
}
