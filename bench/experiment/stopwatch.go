package experiment

import "time"

// Stopwatch measures times from its creation.
type Stopwatch struct {
	began time.Time
	cpu   time.Duration
}

// StartWatch starts a Stopwatch.
func StartWatch() Stopwatch { return Stopwatch{time.Now(), cpuTime()} }

// Wall returns the elapsed seconds.
func (s Stopwatch) Wall() float64 { return time.Since(s.began).Seconds() }

// CPU returns the CPU seconds of this process, all goroutines together. Where the system
// does not report them, it returns the elapsed seconds.
func (s Stopwatch) CPU() float64 {
	if s.cpu < 0 {
		return s.Wall()
	}
	return (cpuTime() - s.cpu).Seconds()
}
