package bandit

import (
	"math"
	"slices"
)

// climb moves a point uphill within the box of a search. It makes projected gradient steps
// that grow while they help and shrink while they do not.
type climb struct {
	search  *Search
	probe   *Probe
	x, next []float64
	free    []bool
	slope   []float64 // the direction of the next step, of the given norm
	norm    float64
	size    float64
}

// These are the lengths of steps uphill, in units of the domain.
const (
	firstStep   = 0.1
	longestStep = 1.0
	leastStep   = 1e-7
)

// newClimb returns the climb from a point. It has no probe yet.
func (s *Search) newClimb(x []float64) *climb {
	d := len(x)
	return &climb{search: s, x: slices.Clone(x), next: make([]float64, d), free: make([]bool, d), slope: make([]float64, d), size: firstStep}
}

// run climbs from x, with a number of evaluations at most.
func (c *climb) run(budget int) error {
	best, err := c.probe.value(c.x)
	keeper, keeps := c.search.Domain.(Keeper)
	stale := true // slope is not that at x
	for ; budget > 1 && c.size > leastStep && err == nil; budget-- {
		if stale {
			c.direction()
			stale = false
		}
		if !c.move() {
			return nil
		}
		if keeps {
			keeper.Keep(c.next)
			if slices.Equal(c.next, c.x) { // the step was undone
				c.size /= 4
				continue
			}
		}
		var value float64
		if value, err = c.probe.value(c.next); value > best {
			copy(c.x, c.next)
			best, stale = value, true
			c.size = min(2*c.size, longestStep)
		} else {
			c.size /= 4
		}
	}
	return err
}

// move sets next to the end of the next step. It reports whether that is another point.
func (c *climb) move() bool {
	if c.norm == 0 {
		return false
	}
	low, high := c.search.Domain.Box()
	for i, x := range c.x {
		c.next[i] = min(max(x+c.size*c.slope[i]/c.norm, low[i]), high[i])
	}
	return !slices.Equal(c.next, c.x)
}

// direction sets slope to the gradient at x, the point of the probe's last value. It leaves
// out components that point out of the box. Slope and norm are in units of the domain.
func (c *climb) direction() {
	mean, sd := c.probe.Slope.Gradient()
	low, high := c.search.Domain.Box()
	unit := c.search.Domain.Unit()
	squares := 0.0
	for i, ok := range c.free {
		c.slope[i] = 0
		if !ok {
			continue
		}
		v := (mean[i] + c.probe.Width*sd[i]) * unit[i]
		if c.x[i] <= low[i] && v < 0 || c.x[i] >= high[i] && v > 0 {
			continue
		}
		squares += v * v
		c.slope[i] = v * unit[i]
	}
	c.norm = math.Sqrt(squares)
}
