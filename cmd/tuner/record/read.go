package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"github.com/bkbtuner/bkb/tuner/runner/metric"
)

// Form is the form of a file of trials.
type Form string

// The forms.
const (
	CSV    Form = "csv"
	JSONL  Form = "jsonl"
	JSON   Form = "json"
	Optuna Form = "optuna"
)

// Detect guesses the form of a file of trials.
func Detect(data []byte) Form {
	text := bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\ufeff")))
	if len(text) == 0 || text[0] != '{' && text[0] != '[' {
		return CSV
	}
	if isOptuna(text) {
		return Optuna
	}
	if text[0] == '[' {
		return JSON
	}
	return JSONL
}

// Item is a trial of a file, with the place where it stands.
type Item struct {
	Where string
	Trial Trial
}

// Read yields the trials of a file. An error is yielded last.
func Read(data []byte, form Form) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		each := func(unit string) func(int, Trial, error) bool {
			return func(n int, r Trial, err error) bool {
				where := fmt.Sprintf("%s %d", unit, n)
				if err != nil {
					err = fmt.Errorf("%s: %w", where, err)
				}
				return yield(Item{where, r}, err)
			}
		}
		switch form {
		case CSV:
			readCSV(data, each("line"))
		case JSONL:
			readJSONL(data, each("line"))
		case JSON:
			readJSON(data, each("trial"))
		case Optuna:
			readOptuna(data, each("trial"))
		default:
			yield(Item{}, fmt.Errorf("there is no format %q; there are csv, jsonl, json, optuna", form))
		}
	}
}

func readJSONL(data []byte, yield func(int, Trial, error) bool) {
	n := 0
	for line := range bytes.Lines(metric.QuoteWords(data)) { // Python writes NaN as it is
		n++
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var r Trial
		err := strict(line, &r)
		r.imply()
		if !yield(n, r, err) || err != nil {
			return
		}
	}
}

func readJSON(data []byte, yield func(int, Trial, error) bool) {
	var list []json.RawMessage
	if err := json.Unmarshal(metric.QuoteWords(data), &list); err != nil {
		yield(0, Trial{}, err)
		return
	}
	for i, raw := range list {
		var r Trial
		err := strict(raw, &r)
		r.imply()
		if !yield(i, r, err) || err != nil {
			return
		}
	}
}

// isOptuna tells whether trials are those of Optuna, which have params, or params_NAME if
// they are flat, but no config.
func isOptuna(text []byte) bool {
	head := string(text[:min(len(text), 64<<10)])
	return (strings.Contains(head, `"params"`) || strings.Contains(head, `"params_`)) && !strings.Contains(head, `"config"`)
}
