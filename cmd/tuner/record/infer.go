package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bkbtuner/bkb/tuner/space"
)

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
	sp, err := parseDistributions(merged)
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

// ownSpace reads the search space that a file has beside its trials.
func (f optunaFile) ownSpace() (*space.Space, error) {
	var distributions map[string]json.RawMessage
	if json.Unmarshal(f.Space, &distributions) == nil && bytes.Contains(f.Space, []byte("null")) {
		return parseDistributions(distributions)
	}
	sp, _, err := space.ParseOptuna(f.Space) // its errors have the lines of the file
	return sp, err
}

func parseDistributions(distributions map[string]json.RawMessage) (*space.Space, error) {
	for name, d := range distributions {
		named, err := nameNull(name, d)
		if err != nil {
			return nil, err
		}
		distributions[name] = named
	}
	object, err := json.Marshal(distributions)
	if err != nil {
		return nil, err
	}
	sp, _, err := space.ParseOptuna(object)
	return sp, err
}

// nameNull returns a distribution whose choice null is none. Distributions without null
// stay as they are.
func nameNull(name string, distribution json.RawMessage) (json.RawMessage, error) {
	var fields, attributes map[string]json.RawMessage
	if json.Unmarshal(distribution, &fields) != nil {
		return distribution, nil // the parser of spaces reports the fault
	}
	in := fields
	if raw, ok := fields["attributes"]; ok {
		if json.Unmarshal(raw, &attributes) != nil {
			return distribution, nil
		}
		in = attributes
	}
	var choices []json.RawMessage
	if json.Unmarshal(in["choices"], &choices) != nil {
		return distribution, nil
	}
	i := slices.IndexFunc(choices, isNull)
	if i < 0 {
		return distribution, nil
	}
	if slices.ContainsFunc(choices, func(raw json.RawMessage) bool { return string(raw) == none }) {
		return nil, fmt.Errorf("parameter %q has the choices null and %s, and null is imported as %s; rename the other choice in the file", name, none, none)
	}
	choices[i] = json.RawMessage(none)
	var err error
	if in["choices"], err = json.Marshal(choices); err != nil {
		return nil, err
	}
	if attributes != nil {
		if fields["attributes"], err = json.Marshal(attributes); err != nil {
			return nil, err
		}
	}
	return json.Marshal(fields)
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

// parentOf returns the parameter that decides whether p is there, with its values for
// which it is. Of several it is the one that most trials have, and then the one with the
// fewest values.
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
