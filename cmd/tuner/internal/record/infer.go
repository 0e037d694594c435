package record

import (
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
