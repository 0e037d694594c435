package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/bolt"
	"github.com/bkbtuner/bkb/store/lease"
	"github.com/bkbtuner/bkb/store/postgres"
	"github.com/bkbtuner/bkb/tuner/server"
)

// opened is the store of a server, with what the server asks of it.
type opened struct {
	store.Store
	file   *bolt.Store   // nil for a database
	member *lease.Member // nil for a file
	base   *postgres.Store
	bytes  func() (server.StoreBytes, error)
}

// openFile opens the file once no other process uses it.
func (c *Config) openFile(ctx context.Context, mustExist bool) (*opened, error) {
	o := bolt.Options{MustExist: mustExist, MaxSize: c.MaxFile, LockTimeout: c.LockTimeout, Logger: c.Server.Logger}
	st, err := bolt.OpenWhenFree(ctx, c.File, o, c.waiting)
	if err != nil {
		return nil, err
	}
	return &opened{Store: st, file: st, bytes: func() (server.StoreBytes, error) {
		s, err := st.Status(context.Background())
		return server.StoreBytes{Used: s.UsedBytes, Free: s.FreeBytes, Limit: s.MaxSize}, err
	}}, nil
}

// openDatabase opens the database, and makes this process one of its servers.
func (c *Config) openDatabase(ctx context.Context) (*opened, error) {
	logger := c.Server.Logger
	st, err := postgres.OpenWithin(ctx, c.Database, postgres.Options{Logger: logger}, c.RetryFor, func(err error, until time.Time) {
		c.notice(fmt.Sprintf("%v. Trying until %s.", err, until.Format(time.TimeOnly)))
	})
	if err != nil {
		return nil, err
	}
	m, err := lease.Join(ctx, st, lease.Options{Address: c.Advertise, TTL: c.Takeover, Logger: logger})
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	if err := c.checkOthers(ctx, st, m.ID()); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return &opened{Store: m, member: m, base: st, bytes: func() (server.StoreBytes, error) {
		ctx, cancel := context.WithTimeout(context.Background(), bytesPatience)
		defer cancel()
		n, err := st.Bytes(ctx)
		return server.StoreBytes{Used: n, Free: -1, Limit: -1}, err // the database knows neither
	}}, nil
}

// bytesPatience is how long a scrape of the metrics waits for the database.
const bytesPatience = 200 * time.Millisecond

// tellReadiness keeps health checks right about the database until ctx ends.
func (o *opened) tellReadiness(ctx context.Context, logger *slog.Logger, set func(ready bool)) {
	if o.base == nil {
		return
	}
	was := true
	o.base.Probe(ctx, func(err error) {
		ready := err == nil && o.member.Alive()
		switch {
		case was && !ready:
			logger.Warn("the database does not answer or the lease of this server is over, so health checks answer NOT_SERVING", "error", err)
		case !was && ready:
			logger.Info("the database answers again, and so do health checks")
		}
		was = ready
		set(ready)
	})
}

// failure is why the file failed, or nil.
func (o *opened) failure() error {
	if o.file == nil {
		return nil
	}
	return o.file.Failure()
}

// watch calls fatal when the file has failed, or when other servers have taken over the
// studies of this one.
func (o *opened) watch(ctx context.Context, fatal context.CancelCauseFunc) {
	var failed, buried <-chan struct{}
	if o.file != nil {
		failed = o.file.Failed()
	}
	if o.member != nil {
		buried = o.member.Buried()
	}
	select {
	case <-failed:
		fatal(o.file.Failure())
	case <-buried:
		fatal(o.member.Err())
	case <-ctx.Done():
	}
}
