package server

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// rates limits calls per second, by caller.
type rates struct {
	limit rate.Limit
	burst int
	most  int // callers that it keeps
	now   func() time.Time

	mu sync.Mutex
	of map[string]*rate.Limiter
}

func newRates(perSecond float64, burst, most int) *rates {
	if perSecond < 0 {
		return nil
	}
	return &rates{limit: rate.Limit(perSecond), burst: max(burst, 1), most: most, now: time.Now, of: make(map[string]*rate.Limiter)}
}

// take counts a call of a caller. If the call is over the limit, wait is above 0 and
// says how long to wait.
func (r *rates) take(who string) (wait time.Duration) { return r.takeN(who, 1) }

// takeN counts n calls.
func (r *rates) takeN(who string, n int) (wait time.Duration) {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	l, ok := r.of[who]
	if !ok {
		r.forget(now)
		l = rate.NewLimiter(r.limit, r.burst)
		r.of[who] = l
	}
	reservation := l.ReserveN(now, min(n, r.burst))
	if wait := reservation.DelayFrom(now); wait > 0 {
		reservation.CancelAt(now)
		return wait
	}
	return 0
}

// forget makes room for a caller. It removes the callers that could make a full burst,
// or all of them if there are none.
func (r *rates) forget(now time.Time) {
	if len(r.of) < r.most {
		return
	}
	for who, l := range r.of {
		if l.TokensAt(now) >= float64(r.burst) {
			delete(r.of, who)
		}
	}
	if len(r.of) >= r.most {
		clear(r.of)
	}
}
