package bench

import "time"

// Stopwatch takes times from when it was made.
type Stopwatch struct {
	began time.Time
	cpu   time.Duration
}

// StartWatch starts one.
func StartWatch() Stopwatch { return Stopwatch{time.Now(), cpuTime()} }

// Wall returns the seconds that have passed.
func (s Stopwatch) Wall() float64 { return time.Since(s.began).Seconds() }

// CPU returns the seconds that processors have worked for this process, all
// goroutines together; where the system does not tell, those that have passed.
func (s Stopwatch) CPU() float64 {
	if s.cpu < 0 {
		return s.Wall()
	}
	return (cpuTime() - s.cpu).Seconds()
}
