package bandit

import (
	"errors"
	"math"
	"slices"
	"sync"
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
	value   float64 // at x
	size    float64
	budget  int  // evaluations that are left
	begun   bool // value is known
	stale   bool // slope is not that at x
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
	return &climb{
		search: s, x: slices.Clone(x), next: make([]float64, d), free: make([]bool, d), slope: make([]float64, d),
		size: firstStep, budget: s.Budget / s.Starts, stale: true,
	}
}

// ascend ends all climbs, up to a number of them at the same time. After each step a
// climber goes on with the climb that waits longest, so three climbs take two climbers as
// long as one and a half.
func ascend(climbs []*climb, climbers int) error {
	var mu sync.Mutex
	var errs []error
	waiting := slices.Clone(climbs)
	run := func() {
		mu.Lock()
		defer mu.Unlock()
		for len(waiting) > 0 && errs == nil {
			c := waiting[0]
			waiting = waiting[1:]
			mu.Unlock()
			more, err := c.step()
			mu.Lock()
			if err != nil {
				errs = append(errs, err)
			} else if more {
				waiting = append(waiting, c)
			}
		}
	}
	var work sync.WaitGroup
	for range min(climbers, len(climbs)) - 1 {
		work.Go(run)
	}
	run()
	work.Wait()
	return errors.Join(errs...)
}

// step evaluates the score at no more than one point. It reports whether there is more to
// climb.
func (c *climb) step() (more bool, err error) {
	c.budget--
	if !c.begun {
		c.value, err = c.probe.value(c.x)
		c.begun = true
		return c.budget > 0, err
	}
	if c.stale {
		if err := c.direction(); err != nil {
			return false, err
		}
		c.stale = false
	}
	if !c.move() {
		return false, nil
	}
	if keeper, keeps := c.search.Domain.(Keeper); keeps {
		keeper.Keep(c.next)
		if slices.Equal(c.next, c.x) { // the step was undone
			c.size /= 4
			return c.goesOn(), nil
		}
	}
	value, err := c.probe.value(c.next)
	if err != nil {
		return false, err
	}
	if value > c.value {
		copy(c.x, c.next)
		c.value, c.stale = value, true
		c.size = min(2*c.size, longestStep)
	} else {
		c.size /= 4
	}
	return c.goesOn(), nil
}

func (c *climb) goesOn() bool { return c.budget > 0 && c.size > leastStep }

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
func (c *climb) direction() error {
	mean, sd, err := c.probe.Slope.Gradient()
	if err != nil {
		return err
	}
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
	return nil
}
