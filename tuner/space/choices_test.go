package space

import (
	"strings"
	"testing"
)

// Choices keep their types, and 1 and 1.0 may stand beside each other.
func TestChoicesKeepTheirTypes(t *testing.T) {
	s, _, err := Parse([]byte(`parameters: {x: {type: categorical, values: [1, 0.5, 1.0, sqrt, true]}, y: {type: ordinal, values: [1, 0.5]}}`))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []Value{Int(1), Float(0.5), Float(1), String("sqrt"), Bool(true)} {
		u := []float64{cellMiddle(uint64(i), 5), 0.1}
		c, err := s.Decode(u)
		if err != nil {
			t.Fatal(err)
		}
		if x, _ := c.Get("x"); x != want {
			t.Errorf("choice %d is %v (%v), want %v (%v)", i, x, x.Kind(), want, want.Kind())
		}
		text, err := c.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if again, err := s.ParseConfig(text); err != nil || !again.Equal(c) {
			t.Errorf("%s came back as %v, %v", text, again, err)
		}
		full, err := s.Complete(NewConfig(Assignment{"x", String(literal(want))}, Assignment{"y", String("1")}))
		x, _ := full.Get("x")
		y, _ := full.Get("y")
		if err != nil || x != want || y != Int(1) {
			t.Errorf("%s is read as %v, %v, %v", literal(want), x, y, err)
		}
	}
	// Where only one of them is a choice, the other means it.
	s, _, err = Parse([]byte(`parameters: {x: {type: categorical, values: [2, 0.5]}}`))
	if err != nil {
		t.Fatal(err)
	}
	if c, err := s.Complete(NewConfig(Assignment{"x", Float(2)})); err != nil || !c.Equal(NewConfig(Assignment{"x", Int(2)})) {
		t.Errorf("2.0 is read as %v, %v", c, err)
	}
	for text, want := range map[string]string{
		"[1, 0.5, 1]":     "the value is there twice",
		"[1.0, 0.5, 1e0]": "the value is there twice",
		`["1", 1]`:        "in the same list is written the same",
		`["1.0", 1.0]`:    "in the same list is written the same",
	} {
		if _, _, err := Parse([]byte("parameters: {x: {type: categorical, values: " + text + "}}")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
