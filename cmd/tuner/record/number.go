package record

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/bkbtuner/bkb/tuner/runner/metric"
)

// Number is a float64 for JSON, where NaN and the infinities are the strings "nan", "inf"
// and "-inf".
type Number float64

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) {
	text := metric.FormatNumber(float64(n))
	if x := float64(n); math.IsNaN(x) || math.IsInf(x, 0) {
		text = `"` + text + `"`
	}
	return []byte(text), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *Number) UnmarshalJSON(data []byte) error {
	x, err := metric.ParseNumber(strings.Trim(string(data), `"`))
	*n = Number(x)
	return err
}

// Numbers are written as one number if there is one, else as a list.
type Numbers []float64

// MarshalJSON implements json.Marshaler.
func (n Numbers) MarshalJSON() ([]byte, error) {
	if len(n) == 1 {
		return Number(n[0]).MarshalJSON()
	}
	list := make([]Number, len(n))
	for i, x := range n {
		list[i] = Number(x)
	}
	return json.Marshal(list)
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *Numbers) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '[' {
		var x Number
		err := x.UnmarshalJSON(data)
		*n = Numbers{float64(x)}
		return err
	}
	var list []Number
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	if len(list) == 0 {
		return fmt.Errorf("an empty list of values")
	}
	*n = make(Numbers, len(list))
	for i, x := range list {
		(*n)[i] = float64(x)
	}
	return nil
}
