package server

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/wire"
)

// bound describes a limit that refuses callers, for logs, errors and metrics.
type bound struct {
	flag   string // of tuner serve, empty for none
	field  string // of Limits
	rule   string // what the limit counts
	remedy string // for the caller
}

// bounds holds the limits by their names in the metric tuner_limited_total.
var bounds = map[string]bound{
	"connections":                {"--max-connections", "MaxConnections", "open connections, a tenth of which are kept for admins", ""},
	"connections-per-address":    {"--max-connections-per-address", "MaxConnectionsPerAddress", "open connections from one address, a tenth of which are kept for admins", ""},
	"strangers":                  {"--max-strangers", "MaxStrangers", "open connections without a call that shows a token", ""},
	"strangers-per-address":      {"--max-strangers-per-address", "MaxStrangersPerAddress", "open connections from one address without a call that shows a token", ""},
	"health-watches":             {"--max-health-watches", "MaxHealthWatches", "health watches at once", "use Health/Check, or try again later"},
	"health-watches-per-address": {"--max-health-watches-per-address", "MaxHealthWatchesPerAddress", "health watches at once from one address", "use Health/Check, or end other watches"},
	"rate":                       {"--rate", "Rate", "calls a second with one token", "send fewer, or several reports in one"},
	"write-rate":                 {"--write-rate", "WriteRate", "bytes a second of changes with one token", "report less often, or fewer metrics"},
	"calls":                      {"--max-calls", "MaxInFlight", "calls at once, a tenth of which are kept for admins", "try again later"},
	"calls-per-token":            {"--max-calls-per-token", "MaxInFlightPerToken", "calls at once with one token", "end other calls of this token first"},
	"calls-per-study":            {"--max-calls-per-study", "MaxInFlightPerStudy", "calls at once to one study", "try again later"},
	"watches":                    {"--max-watches", "MaxWatches", "watches at once, a tenth of which are kept for admins", "try again later"},
	"watches-per-token":          {"--max-watches-per-token", "MaxWatchesPerToken", "watches at once with one token", "end other watches of this token first"},
	"watches-per-study":          {"--max-watches-per-study", "MaxWatchesPerStudy", "watches at once of one study", "end other watches of this study first"},
	"backups":                    {"", "MaxBackups", "backups at once", "try again later"},
	"bytes":                      {"", "MaxInFlightBytes", "bytes of requests at once", "try again later"},
	"memory":                     {"--max-memory", "maxMemory", "bytes of memory", "try again later"},
	"authentication":             {"", "AuthFailureRate", "failed authentications a second from one address", "show a valid token"},
}

// most is the value of the limit.
func (b bound) most(l Limits) any {
	v := reflect.ValueOf(l).FieldByName(b.field)
	if v.CanInterface() {
		return v.Interface()
	}
	return v.Int()
}

// refused counts and logs a refusal by a limit, and returns the error for the caller.
func (s *Server) refused(limit, peer, caller string, after time.Duration) error {
	s.notice(limit, peer, caller)
	b := bounds[limit]
	text := fmt.Sprintf("limit reached: at most %v %s", b.most(s.options.Limits), b.rule)
	if b.flag != "" {
		text += fmt.Sprintf(" (tuner serve %s)", b.flag)
	}
	if b.remedy != "" {
		text += "; " + b.remedy
	}
	return wire.Exhausted(text, after).Err()
}

// refuse is refused for the caller of a call.
func (s *Server) refuse(ctx context.Context, limit string, after time.Duration) error {
	id, _ := identityOf(ctx)
	return s.refused(limit, hostOf(ctx), id.name, after)
}

// noticeInterval is the shortest time between two log lines about one limit.
const noticeInterval = 10 * time.Second

// notices holds when each limit was last logged, and the number of refusals since.
type notices struct {
	mu sync.Mutex
	of map[string]notice
}

type notice struct {
	logged time.Time
	since  int
}

// due counts a refusal. It returns whether to log it, and how many have not been logged.
func (n *notices) due(limit string) (missed int, due bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.of == nil {
		n.of = make(map[string]notice)
	}
	at, now := n.of[limit], time.Now()
	if now.Sub(at.logged) < noticeInterval {
		n.of[limit] = notice{at.logged, at.since + 1}
		return 0, false
	}
	n.of[limit] = notice{logged: now}
	return at.since, true
}

// notice counts a refusal by a limit, and logs it unless it was logged recently.
func (s *Server) notice(limit, peer, caller string) {
	b := bounds[limit]
	attrs := []slog.Attr{slog.Any("most", b.most(s.options.Limits)), slog.String("of", b.rule)}
	s.limitReached(limit, "caller refused", filled(attrs, "flag", b.flag, "peer", peer, "caller", caller))
}

// full counts and logs a full study, as notice does.
func (s *Server) full(q *tuner.QuotaError) {
	s.limitReached("study-"+q.What, "study full", []slog.Attr{slog.Int64("most", q.Most), slog.String("flag", q.Option)})
}

func (s *Server) limitReached(limit, what string, attrs []slog.Attr) {
	s.metrics.limited.WithLabelValues(limit).Inc()
	if missed, due := s.notices.due(limit); due {
		attrs = slices.Concat([]slog.Attr{slog.String("limit", limit)}, attrs, []slog.Attr{slog.Int("not_logged", missed)})
		s.log.LogAttrs(context.Background(), slog.LevelWarn, "limit reached, "+what, attrs...)
	}
}

// tally counts running work, in total and by key.
type tally struct {
	each, all string // names of the limits by key and in total

	mu    sync.Mutex
	total int
	of    map[string]int
}

// enter counts one more until leave is called. If it exceeds a limit, it returns the limit's name
// instead. A negative limit is none, and so is the limit of the empty key.
func (t *tally) enter(who string, each, most int) (leave func(), limit string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case who != "" && over(t.of[who], each):
		return nil, t.each
	case over(t.total, most):
		return nil, t.all
	}
	if t.of == nil {
		t.of = make(map[string]int)
	}
	t.total++
	t.of[who]++
	return sync.OnceFunc(func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.total--
		if t.of[who]--; t.of[who] == 0 {
			delete(t.of, who)
		}
	}), ""
}

// count returns the number for a key.
func (t *tally) count(who string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.of[who]
}

// share returns how much of a limit callers with a scope may use. Admins may use all of
// it and others nine tenths, so that an admin can always act.
func (s Scope) share(most int) int {
	if most < 0 || s.Role == RoleAdmin || most < 10 {
		return most
	}
	return most - most/10
}

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
