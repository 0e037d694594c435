package acquire

import (
	"testing"

	"github.com/bkbtuner/bkb/tuner/propose/labtest"
)

// Arms are the configurations without a parameter that has many values.
func TestArmsOfSpaces(t *testing.T) {
	for what, k := range map[string]struct {
		space       string
		constraints []string
		count       int
		whole       bool
	}{
		"six":         {`{"a": {"type": "categorical", "values": ["p", "q", "r", "s", "t", "u"]}}`, nil, 6, true},
		"grid":        {`{"a": {"type": "categorical", "values": ["p", "q"]}, "n": {"type": "int", "low": 1, "high": 50}, "c": {"type": "constant", "value": 3}}`, nil, 100, true},
		"constrained": {`{"m": {"type": "int", "low": 1, "high": 9}, "n": {"type": "int", "low": 1, "high": 9}}`, []string{"m < n"}, 36, true},
		"too many":    {`{"m": {"type": "int", "low": 1, "high": 20}, "n": {"type": "int", "low": 1, "high": 20}}`, nil, 0, false},
		"continuous":  {labtest.Square, nil, 0, false},
		"branch":      {`{"m": {"type": "categorical", "values": ["net", "none", "lin"]}, "x": {"type": "float", "low": 0, "high": 1, "when": {"m": "net"}}, "k": {"type": "ordinal", "values": [1, 2, 3], "when": {"m": "lin"}}}`, nil, 4, false},
		"common":      {`{"m": {"type": "categorical", "values": ["net", "none"]}, "n": {"type": "int", "low": 1, "high": 9, "when": {"m": "net"}}, "x": {"type": "float", "low": 0, "high": 1}}`, nil, 0, false},
		"large":       {`{"m": {"type": "categorical", "values": ["net", "none"]}, "n": {"type": "int", "low": 1, "high": 1000000, "when": {"m": "net"}}}`, nil, 1, false},
		"nested":      {`{"m": {"type": "categorical", "values": ["net", "none"]}, "d": {"type": "int", "low": 1, "high": 3, "when": {"m": "net"}}, "x": {"type": "float", "low": 0, "high": 1, "when": {"d": [2, 3]}}}`, nil, 2, false},
	} {
		sp := labtest.Parse(t, k.space)
		if k.constraints != nil {
			var err error
			if sp, err = sp.Constrain(k.constraints...); err != nil {
				t.Fatal(err)
			}
		}
		a := newArms(sp)
		if len(a.known) != k.count || a.points == nil != (k.count == 0) || k.count > 0 && (a.points.Len() != k.count || a.whole != k.whole) {
			t.Errorf("%s: %d arms, whole %t, want %d, %t", what, len(a.known), a.whole, k.count, k.whole)
		}
	}
}
