package study

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/bkbtuner/bkb/tuner/space"
)

// Options reads a component's options from a JSON object. Every key must be known and
// occur once. Finish returns the first error, an [InvalidError]. After an error the
// other methods return valid placeholders.
type Options struct {
	field string
	raw   map[string]json.RawMessage
	known []string
	err   error
}

// ReadOptions begins to read the options in text, which is empty for none. Errors name
// them field.
func ReadOptions(field, text string) *Options {
	o := &Options{field: field}
	if text != "" {
		o.raw = o.Object(field, []byte(text))
	}
	return o
}

// TextOptions writes options as a JSON object. Each is a key and a text, which becomes a
// number or a boolean if it reads as one. twice is a key that occurs a second time, and
// empty if none does.
func TextOptions(options [][2]string) (object, twice string) {
	fields := make(map[string]any, len(options))
	for _, o := range options {
		key, text := o[0], o[1]
		if _, known := fields[key]; known {
			return "", key
		}
		var v any
		if json.Unmarshal([]byte(text), &v) != nil {
			v = text
		}
		switch v.(type) {
		case float64:
			fields[key] = json.Number(strings.TrimSpace(text))
		case bool:
			fields[key] = v
		default:
			fields[key] = text
		}
	}
	line, _ := json.Marshal(fields) // of texts, booleans and valid numbers
	return string(line), ""
}

// Object splits a JSON object into its members.
func (o *Options) Object(field string, text []byte) map[string]json.RawMessage {
	members := make(map[string]json.RawMessage)
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') || !json.Valid(text) {
		o.Fail(field, string(text), "must be a JSON object", `write it as {"name": value}`)
		return nil
	}
	for d.More() {
		key, _ := d.Token() // a string, because the JSON is valid
		name := key.(string)
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			o.Fail(field, string(text), "must be a JSON object: "+err.Error(), "")
			return nil
		}
		if _, twice := members[name]; twice {
			o.Fail(field+"."+name, string(value), "is there twice", "remove one")
		}
		members[name] = value
	}
	return members
}

// Fail records an error unless there is an earlier one.
func (o *Options) Fail(field, value, rule, remedy string) {
	if o.err == nil {
		o.err = &InvalidError{Field: field, Value: shortValue(value), Rule: rule, Remedy: remedy}
	}
}

func shortValue(text string) string {
	if len(text) > 60 {
		text = strings.ToValidUTF8(text[:60], "") + "…"
	}
	return text
}

// Take marks an option as known and returns its value.
func (o *Options) Take(name string) (raw json.RawMessage, given bool) {
	o.known = append(o.known, name)
	raw, given = o.raw[name]
	return raw, given
}

// Whole reads a whole number between low and high.
func (o *Options) Whole(name string, otherwise, low, high int64) int64 {
	raw, given := o.Take(name)
	if !given {
		return otherwise
	}
	return o.ParseWhole(o.field+"."+name, raw, low, high)
}

// ParseWhole reads a whole number between low and high from a part of an option.
func (o *Options) ParseWhole(field string, raw json.RawMessage, low, high int64) int64 {
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || n < low || n > high {
		o.Fail(field, string(raw), fmt.Sprintf("must be a whole number from %d to %d", low, high), "")
		return low
	}
	return n
}

// Number reads a finite number.
func (o *Options) Number(name string, otherwise float64) float64 {
	raw, given := o.Take(name)
	if !given {
		return otherwise
	}
	x, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		o.Fail(o.field+"."+name, string(raw), "must be a finite number", "")
	}
	return x
}

// Text reads a string.
func (o *Options) Text(name, otherwise string) string {
	raw, given := o.Take(name)
	if !given {
		return otherwise
	}
	var s string
	if json.Unmarshal(raw, &s) != nil || string(raw) == "null" {
		o.Fail(o.field+"."+name, string(raw), "must be a string", "")
	}
	return s
}

// Choice reads one of the given words. The first is the default.
func (o *Options) Choice(name string, words ...string) string {
	raw, given := o.Take(name)
	if !given {
		return words[0]
	}
	var word string
	if json.Unmarshal(raw, &word) != nil || word == "" || !slices.Contains(words, word) {
		o.Fail(o.field+"."+name, string(raw), "must be "+strings.TrimPrefix(strings.Join(words, " or "), " or "), "")
	}
	return word
}

// Finish returns the first error. An option that was not taken is an error that comes
// before the others, because a misspelled option is often a missing one too.
func (o *Options) Finish(component string) error {
	for _, name := range slices.Sorted(maps.Keys(o.raw)) {
		if slices.Contains(o.known, name) {
			continue
		}
		remedy := component + " has no options"
		if len(o.known) > 0 {
			remedy = "the options of " + component + " are " + strings.Join(o.known, ", ")
		}
		return &InvalidError{
			Field: fmt.Sprintf("%s.%.60s", o.field, name), Value: shortValue(string(o.raw[name])),
			Rule: "there is no such option", Remedy: remedy, Known: slices.Clone(o.known),
		}
	}
	return o.err
}

// KnownOptions lists the options of a component that make makes, by the error of an option
// that does not exist.
func KnownOptions(name string, make func(Component, Spec) error) []string {
	x, err := space.New(space.NewFloat("x", 0, 1))
	if err != nil {
		return nil
	}
	spec := Spec{Space: x, Objectives: []Objective{{Name: "loss", Direction: Minimize}}}
	unknown := (*InvalidError)(nil)
	if !errors.As(make(Component{Name: name, Options: `{"": 0}`}, spec), &unknown) {
		return nil
	}
	return unknown.Known
}
