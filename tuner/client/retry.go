package client

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/wire"
)

// firstBackoff is the longest first pause. Each further pause can be twice as long, up to
// maxBackoff.
const firstBackoff = 50 * time.Millisecond

// identified gives a command without a request id one.
func identified(id *string) {
	if *id == "" {
		*id = tuner.NewRequestID()
	}
}

// sentHandler notes, for calls whose context carries a flag, that the request
// was handed to a connection.
type sentHandler struct{}

type sentKey struct{}

// TagRPC implements [stats.Handler].
func (sentHandler) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC implements [stats.Handler].
func (sentHandler) HandleRPC(ctx context.Context, s stats.RPCStats) {
	if _, out := s.(*stats.OutPayload); !out {
		return
	}
	if flag, ok := ctx.Value(sentKey{}).(*atomic.Bool); ok {
		flag.Store(true)
	}
}

// TagConn implements [stats.Handler].
func (sentHandler) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements [stats.Handler].
func (sentHandler) HandleConn(context.Context, stats.ConnStats) {}

// kind of a call, as far as sending it again is concerned.
type kind uint8

const (
	reads  kind = iota // changes nothing
	writes             // has one effect, even if it is sent several times
)

// call sends a request until it is answered, and decodes the answer.
func call[Q, A, R any](ctx context.Context, c *Client, k kind, send func(context.Context, Q, ...grpc.CallOption) (A, error), request Q, decode func(A) (R, error)) (R, error) {
	var none R
	if err := c.ready(ctx); err != nil {
		return none, err
	}
	p := newRetrier(c)
	l := c.lookOut(p.until)
	defer l.end()
	sent := new(atomic.Bool)
	tagged := context.WithValue(ctx, sentKey{}, sent)
	uncertain := false
	for {
		sent.Store(false)
		answer, err := send(tagged, request)
		if err == nil {
			c.troubled.Store(false)
			result, err := decode(answer)
			if err != nil {
				return none, wire.BadAnswer(err)
			}
			return result, nil
		}
		l.failed(err)
		uncertain = uncertain || k == writes && mayHaveHappened(err, sent.Load())
		if err := p.wait(ctx, err); err != nil {
			return none, c.conclude(ctx, err, uncertain)
		}
	}
}

// retrier decides whether and when to try again.
type retrier struct {
	client  *Client
	until   time.Time
	longest time.Duration // of the next pause
}

func newRetrier(c *Client) *retrier {
	return &retrier{client: c, until: time.Now().Add(c.retryFor), longest: firstBackoff}
}

// wait returns nil when it is time to try again, and err if another try cannot help.
func (p *retrier) wait(ctx context.Context, err error) error {
	a, ok := wire.ReadError(err)
	if !ok || ctx.Err() != nil || !p.client.retryable(ctx, a) || time.Now().After(p.until) {
		return err
	}
	pause := time.Duration(rand.Int64N(int64(p.longest))) + p.longest/8
	p.longest = min(2*p.longest, maxBackoff)
	pause = max(pause, a.RetryAfter)
	if left := time.Until(p.until); pause > left {
		if a.RetryAfter > left {
			return err
		}
		pause = left // for a last try when the time is over
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return err
	case <-timer.C:
		return nil
	}
}

// retryable tells whether the same request may succeed if it is sent again.
func (c *Client) retryable(ctx context.Context, a wire.Answer) bool {
	switch a.Err.Code {
	case tuner.Unavailable:
		return !c.hopeless(ctx, a)
	case tuner.Unknown:
		return true
	case tuner.Exhausted:
		return a.RetryAfter > 0
	default:
		return false
	}
}

// mayHaveHappened tells whether a try that ended with an error may have had its effect.
func mayHaveHappened(err error, sent bool) bool {
	a, ok := wire.ReadError(err)
	if !ok {
		return sent
	}
	return a.Err.Code == tuner.Unknown && (a.ByService || sent) || !a.ByService && sent && !settles(a)
}

// settles tells whether an answer also means that earlier tries of the same request had
// no effect. This holds for errors about the content of the request, which the service
// would not have checked again.
func settles(a wire.Answer) bool {
	switch a.Err.Code {
	case tuner.Unknown, tuner.Unavailable, tuner.Cancelled, tuner.Deadline, tuner.Exhausted, tuner.Denied, tuner.Internal, tuner.Damaged:
		return false
	default:
		return true
	}
}

// conclude makes the error of a call that has finally failed. uncertain says that one of
// its tries may have had its effect.
func (c *Client) conclude(ctx context.Context, err error, uncertain bool) error {
	a, ok := wire.ReadError(err)
	if !ok {
		return err
	}
	ended := ctx.Err()
	switch {
	case uncertain && !settles(a) && ended != nil:
		return fmt.Errorf("%w: %w", &tuner.RemoteError{Code: tuner.Unknown, Message: "the call ended before its answer came; it may have happened"}, ended)
	case uncertain && !settles(a):
		return &tuner.RemoteError{Code: tuner.Unknown, Message: "it may have happened or not: " + c.explain(a)}
	case ended != nil && !a.ByService && !settles(a):
		return ended
	case c.closed.Load() && !a.ByService:
		return errClosed
	default:
		a.Err.Final = c.hopeless(ctx, a)
		a.Err.Message = c.explain(a)
		return a.Whole()
	}
}
