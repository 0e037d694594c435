package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/bkbtuner/bkb/tuner/runner/metric"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// optunaFile is a study of Optuna in JSON. It is the list of trials that the command
// line of Optuna prints, or an object that may also have the search space.
type optunaFile struct {
	Space       json.RawMessage `json:"space"`
	Directions  []string        `json:"directions"`
	Direction   string          `json:"direction"`
	MetricNames []string        `json:"metric_names"`
	StudyName   string          `json:"study_name"`
	ImportID    string          `json:"import_id"`
	Trials      []optunaTrial   `json:"trials"`
}

// optunaTrial is a trial of Optuna. Its other fields do not matter here.
type optunaTrial struct {
	ImportID      string                     `json:"import_id"`
	Number        int                        `json:"number"`
	State         json.RawMessage            `json:"state"`
	Params        space.Config               `json:"-"` // from params and params_NAME
	Value         *Number                    `json:"value"`
	Values        []Number                   `json:"values"`
	UserAttrs     map[string]json.RawMessage `json:"user_attrs"`
	Intermediate  map[string]Number          `json:"intermediate_values"`
	Distributions map[string]json.RawMessage `json:"distributions"`
	nulls         []string                   // parameters whose choice is null
}

// none stands for the choice null (None in Python), as it does in the space.
var none = json.RawMessage(strconv.Quote(space.NoChoice))

func isNull(raw json.RawMessage) bool { return string(bytes.TrimSpace(raw)) == "null" }

// UnmarshalJSON implements json.Unmarshaler. It also reads the flat form of optuna trials
// --flatten, with fields such as params_lr, user_attrs_note and values_0.
func (t *optunaTrial) UnmarshalJSON(data []byte) error {
	type plain optunaTrial // without this method
	if err := json.Unmarshal(data, (*plain)(t)); err != nil {
		return err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return err
	}
	params := map[string]json.RawMessage{}
	if raw, ok := fields["params"]; ok {
		if err := json.Unmarshal(raw, &params); err != nil {
			return fmt.Errorf("params: %w", err)
		}
	}
	for key, raw := range fields {
		if name, ok := strings.CutPrefix(key, "params_"); ok {
			params[name] = raw
		} else if name, ok := strings.CutPrefix(key, "user_attrs_"); ok {
			if t.UserAttrs == nil {
				t.UserAttrs = map[string]json.RawMessage{}
			}
			t.UserAttrs[name] = raw
		}
	}
	for i := 0; ; i++ {
		raw, ok := fields["values_"+strconv.Itoa(i)]
		if !ok {
			break
		}
		var x Number
		if string(raw) == "null" {
			break // no values at all
		}
		if err := json.Unmarshal(raw, &x); err != nil {
			return fmt.Errorf("values_%d: %w", i, err)
		}
		t.Values = append(t.Values, x)
	}
	for name, raw := range params {
		if isNull(raw) {
			params[name] = none
			t.nulls = append(t.nulls, name)
		}
	}
	if len(params) == 0 {
		return nil
	}
	object, err := json.Marshal(params)
	if err != nil {
		return err
	}
	return t.Params.UnmarshalJSON(object)
}

func parseOptuna(data []byte) (f optunaFile, err error) {
	data = metric.QuoteWords(data) // Python writes NaN as it is
	if strings.HasPrefix(strings.TrimSpace(string(data)), "[") {
		err = json.Unmarshal(data, &f.Trials)
	} else {
		err = json.Unmarshal(data, &f)
	}
	return f, err
}

// objectives are those of the file, or else one called value to minimize.
func (f optunaFile) objectives() ([]study.Objective, error) {
	directions := f.Directions
	if len(directions) == 0 {
		directions = []string{f.Direction}
	}
	var out []study.Objective
	for i, d := range directions {
		o := study.Objective{Name: f.metricName(i, len(directions)), Direction: study.Minimize}
		if d != "" {
			if err := o.Direction.UnmarshalText([]byte(strings.ToLower(d))); err != nil {
				return nil, err
			}
		}
		out = append(out, o)
	}
	return out, nil
}

func (f optunaFile) metricName(i, n int) string {
	switch {
	case i < len(f.MetricNames):
		return f.MetricNames[i]
	case n <= 1:
		return "value"
	default:
		return fmt.Sprintf("value_%d", i)
	}
}

// OptunaStudy returns the space and objectives of a file of Optuna. The space is that of
// the file, or else comes from the distributions of its trials. Without both, ok is false.
func OptunaStudy(data []byte) (sp *space.Space, objectives []study.Objective, ok bool, err error) {
	f, err := parseOptuna(data)
	if err != nil {
		return nil, nil, false, err
	}
	switch {
	case len(f.Space) > 0:
		sp, _, err = space.ParseOptuna(f.Space) // its errors have the lines of the file
	case f.distributed():
		sp, err = f.inferSpace()
	default:
		return nil, nil, false, nil
	}
	if err != nil {
		return nil, nil, false, err
	}
	objectives, err = f.objectives()
	return sp, objectives, err == nil, err
}

// OptunaSource identifies the study of a file that was read from a storage, or is empty.
// A later file of the study has the same trials and perhaps more, so that importing it adds
// the new ones only. nulls are the parameters of trials whose choice null becomes none.
func OptunaSource(data []byte) (id string, nulls []string) {
	f, err := parseOptuna(data)
	if err != nil {
		return "", nil
	}
	for _, t := range f.Trials {
		nulls = append(nulls, t.nulls...)
	}
	slices.Sort(nulls)
	return f.ImportID, slices.Compact(nulls)
}

// readOptuna yields trials whose values have positions for names. Bind gives them the
// names of the study's objectives.
func readOptuna(data []byte, yield func(int, Trial, error) bool) {
	f, err := parseOptuna(data)
	if err != nil {
		yield(0, Trial{}, err)
		return
	}
	slices.SortStableFunc(f.Trials, func(a, b optunaTrial) int { return a.Number - b.Number })
	for _, t := range f.Trials {
		r, err := t.record()
		if !yield(t.Number, r, err) || err != nil {
			return
		}
	}
}

// optunaStates are the states of trials by the words and numbers of Optuna.
var optunaStates = map[string]string{
	"COMPLETE": "completed", "COMPLETED": "completed", "1": "completed", "PRUNED": "pruned", "2": "pruned",
	"FAIL": "failed", "FAILED": "failed", "3": "failed", "RUNNING": "running", "0": "running", "WAITING": "queued", "4": "queued",
}

func (t optunaTrial) record() (Trial, error) {
	r := Trial{Trial: t.Number, Source: t.ImportID, Config: t.Params, Values: make(map[string]Numbers)}
	state := strings.ToUpper(strings.TrimPrefix(strings.Trim(string(t.State), `"`), "TrialState."))
	if r.State = optunaStates[state]; r.State == "" {
		return r, fmt.Errorf("state %.40q: must be COMPLETE, PRUNED, FAIL, RUNNING or WAITING", state)
	}
	values := t.Values
	if len(values) == 0 && t.Value != nil {
		values = []Number{*t.Value}
	}
	for i, v := range values {
		r.Values[position(i)] = Numbers{float64(v)}
	}
	r.Attributes = make(map[string]string)
	for key, raw := range t.UserAttrs {
		text := string(raw)
		_ = json.Unmarshal(raw, &text) // other values stay JSON
		r.Attributes[key] = text
	}
	steps := make(map[int64]Number)
	for key, v := range t.Intermediate {
		step, err := strconv.ParseInt(key, 10, 64)
		if err != nil {
			return r, fmt.Errorf("intermediate_values: step %.40q is not an integer", key)
		}
		steps[step] = v
	}
	for _, step := range slices.Sorted(maps.Keys(steps)) {
		r.Reports = append(r.Reports, Report{Step: step, Values: map[string]Number{position(0): steps[step]}})
	}
	return r, nil
}

// position stands for the name of the i-th objective until Bind.
func position(i int) string { return "\x00" + strconv.Itoa(i) }

// Bind gives values that go by position the names of the objectives.
func (r Trial) Bind(objectives []study.Objective) Trial {
	names := make(map[string]string)
	for i, o := range objectives {
		names[position(i)] = o.Name
	}
	r.Values = rename(r.Values, names)
	for i := range r.Reports {
		r.Reports[i].Values = rename(r.Reports[i].Values, names)
	}
	return r
}

func rename[V any](values map[string]V, names map[string]string) map[string]V {
	out := make(map[string]V, len(values))
	for name, v := range values {
		if n, ok := names[name]; ok {
			name = n
		}
		out[name] = v
	}
	return out
}

// distributed tells whether trials have the distributions of their parameters.
func (f optunaFile) distributed() bool {
	return slices.ContainsFunc(f.Trials, func(t optunaTrial) bool { return len(t.Distributions) > 0 })
}

// inferSpace makes the search space of a study whose trials have distributions. A
// parameter that some completed trials lack becomes conditional. The parent is another
// parameter whose value decides in all of them whether it is there.
func (f optunaFile) inferSpace() (*space.Space, error) {
	merged, err := f.distributions()
	if err != nil {
		return nil, err
	}
	object, err := json.Marshal(merged)
	if err != nil {
		return nil, err
	}
	sp, _, err := space.ParseOptuna(object)
	if err != nil {
		return nil, err
	}
	done := slices.DeleteFunc(slices.Clone(f.Trials), func(t optunaTrial) bool {
		return !strings.Contains(strings.ToUpper(string(t.State)), "COMPLETE") && string(t.State) != "1"
	})
	parameters := slices.Clone(sp.Parameters())
	for i, p := range parameters {
		lacks := func(t optunaTrial) bool { _, ok := t.Params.Get(p.Name); return !ok }
		missing := slices.IndexFunc(done, lacks)
		if missing < 0 {
			continue
		}
		parent, values := parentOf(p, sp.Parameters(), done)
		if parent == "" {
			return nil, fmt.Errorf("trial %d has no parameter %q, and no other parameter decides whether it is there; write a search space with a condition (tuner space --help), create the study with it (tuner create-study), and import again",
				done[missing].Number, p.Name)
		}
		parameters[i] = p.Given(parent, values...)
	}
	return space.New(parameters...)
}

// distributions merges those of the trials. One name must have one distribution.
func (f optunaFile) distributions() (map[string]json.RawMessage, error) {
	merged, first := map[string]json.RawMessage{}, map[string]int{}
	for _, t := range f.Trials {
		for name, d := range t.Distributions {
			have, ok := merged[name]
			if !ok {
				merged[name], first[name] = d, t.Number
			} else if string(have) != string(d) {
				return nil, fmt.Errorf("parameter %q has the distribution %s in trial %d and %s in trial %d; write a search space that holds both (tuner space --help), create the study with it (tuner create-study), and import again",
					name, have, first[name], d, t.Number)
			}
		}
	}
	return merged, nil
}

// parentOf returns the parameter that decides whether p is there, with its values for which it
// is. Of several it is the one that most trials have, and then the one with the fewest values.
func parentOf(p space.Parameter, all []space.Parameter, trials []optunaTrial) (parent string, values []space.Value) {
	most, fewest := 0, 0
	for _, q := range all {
		if q.Name == p.Name || q.Type == space.TypeFloat {
			continue
		}
		with, without := map[space.Value]bool{}, map[space.Value]bool{}
		decides, present := true, 0
		for _, t := range trials {
			v, has := t.Params.Get(q.Name)
			_, there := t.Params.Get(p.Name)
			if has {
				present++
			}
			switch {
			case has && there:
				with[v] = true
			case has:
				without[v] = true
			case there:
				decides = false // it is there without q
			}
		}
		for v := range with {
			decides = decides && !without[v]
		}
		n := len(with) + len(without)
		if decides && len(with) > 0 && len(without) > 0 && (present > most || present == most && n < fewest) {
			parent, most, fewest = q.Name, present, n
			values = slices.SortedFunc(maps.Keys(with), func(a, b space.Value) int { return strings.Compare(a.String(), b.String()) })
		}
	}
	return parent, values
}

// IsSQLite tells whether a file is an SQLite database, as the storage of Optuna is.
func IsSQLite(data []byte) bool {
	return strings.HasPrefix(string(data[:min(len(data), 16)]), "SQLite format 3\x00")
}
