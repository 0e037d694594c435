package bo

import (
	"fmt"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/internal/stream"
)

// UniformMedian returns a problem's Median, over 9,999 configurations.
func UniformMedian(p Problem) (float64, error) {
	rng := stream.New(stream.Derive(0, "median of "+p.Name(), 0))
	u := make([]float64, p.Space().Dim())
	var values []float64
	for range 9999 {
		for i := range u {
			u[i] = rng.Float64()
		}
		c, err := p.Space().Decode(u)
		if err != nil {
			return 0, err
		}
		if v := p.True(c); !math.IsInf(v, 1) {
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return 0, fmt.Errorf("%s: every uniform configuration fails", p.Name())
	}
	slices.Sort(values)
	return values[len(values)/2], nil
}
