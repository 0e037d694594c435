package data

import (
	"bytes"
	"fmt"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/cmd/tuner/record"
)

// refuseStorage returns the error of a file that is a storage of Optuna, or nil. Only
// Optuna reads its files.
func refuseStorage(path string, data []byte) error {
	const head = 1 << 20 // the tables are described on the first pages
	var what string
	switch begin := data[:min(len(data), head)]; {
	case record.IsSQLite(begin) && bytes.Contains(begin, []byte("trial_intermediate_values")):
		what = "is an SQLite storage of Optuna, which only Optuna reads"
	case record.IsSQLite(begin):
		what = "is an SQLite database, which cannot be imported unless it is from Optuna"
	case bytes.HasPrefix(begin, []byte(`{"op_code":`)) && bytes.Contains(begin, []byte(`"worker_id":`)):
		what = "is a journal of Optuna, which only Optuna reads"
	default:
		return nil
	}
	return cli.Exit(cli.ExitInvalid, fmt.Errorf("%s %s; run python -m bkb import-optuna %s (pip install bkb-tuner[optuna]), or write the study as JSON with examples/python/optuna_export.py and import that file", path, what, path))
}
