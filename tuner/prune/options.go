package prune

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/bkbtuner/bkb/tuner/study"
)

// options reads a component's options: a JSON object, of which every key must be
// known and stand there once. The first fault is kept and returned by finish.
type options struct {
	field string
	raw   map[string]json.RawMessage
	known []string
	err   error
}

func readOptions(field, text string) *options {
	o := &options{field: field}
	if text != "" {
		o.raw = o.object(field, []byte(text))
	}
	return o
}

// object splits a JSON object into its members.
func (o *options) object(field string, text []byte) map[string]json.RawMessage {
	members := make(map[string]json.RawMessage)
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') || !json.Valid(text) {
		o.fail(field, string(text), "must be a JSON object", `write it as {"name": value}`)
		return nil
	}
	for d.More() {
		key, _ := d.Token() // valid JSON: a string
		name := key.(string)
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			o.fail(field, string(text), "must be a JSON object: "+err.Error(), "")
			return nil
		}
		if _, twice := members[name]; twice {
			o.fail(field+"."+name, string(value), "is there twice", "remove one")
		}
		members[name] = value
	}
	return members
}

// fail records the first fault.
func (o *options) fail(field, value, rule, remedy string) {
	if o.err != nil {
		return
	}
	if len(value) > 60 {
		value = strings.ToValidUTF8(value[:60], "") + "…"
	}
	o.err = &study.InvalidError{Field: field, Value: value, Rule: rule, Remedy: remedy}
}

// take marks an option as known and returns its value.
func (o *options) take(name string) (raw json.RawMessage, given bool) {
	o.known = append(o.known, name)
	raw, given = o.raw[name]
	return raw, given
}

// whole reads a number between low and high.
func (o *options) whole(name string, otherwise, low, high int64) int64 {
	raw, given := o.take(name)
	if !given {
		return otherwise
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || n < low || n > high {
		o.fail(o.field+"."+name, string(raw), fmt.Sprintf("must be a whole number from %d to %d", low, high), "")
		return otherwise
	}
	return n
}

// number reads a finite number.
func (o *options) number(name string, otherwise float64) float64 {
	raw, given := o.take(name)
	if !given {
		return otherwise
	}
	x, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		o.fail(o.field+"."+name, string(raw), "must be a finite number", "")
	}
	return x
}

// text reads a string.
func (o *options) text(name, otherwise string) string {
	raw, given := o.take(name)
	if !given {
		return otherwise
	}
	var s string
	if json.Unmarshal(raw, &s) != nil || string(raw) == "null" {
		o.fail(o.field+"."+name, string(raw), "must be a string", "")
	}
	return s
}

// choice reads one of the given words, of which the first is the default.
func (o *options) choice(name string, words ...string) string {
	raw, given := o.take(name)
	if !given {
		return words[0]
	}
	var word string
	if json.Unmarshal(raw, &word) != nil || word == "" || !slices.Contains(words, word) {
		o.fail(o.field+"."+name, string(raw), "must be "+strings.TrimPrefix(strings.Join(words, " or "), " or "), "")
	}
	return word
}

// finish returns the first fault; an option that nobody took is one.
func (o *options) finish(component string) error {
	for _, name := range slices.Sorted(maps.Keys(o.raw)) {
		if slices.Contains(o.known, name) {
			continue
		}
		remedy := component + " has no options"
		if len(o.known) > 0 {
			remedy = "the options of " + component + " are " + strings.Join(o.known, ", ")
		}
		o.fail(fmt.Sprintf("%s.%.60s", o.field, name), string(o.raw[name]), "there is no such option", remedy)
	}
	return o.err
}
