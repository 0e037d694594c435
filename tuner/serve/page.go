package serve

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/grpc/test/bufconn"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/web"
)

// Page serves the page of a service at an address of this machine until ctx ends. There is
// no other way into the service. opened is called with the URL, which has a key, because
// other users of the machine can reach the port too. connection has the flags with which
// commands reach the same studies.
func Page(ctx context.Context, svc tuner.Service, address, connection, version string, logger *slog.Logger, opened func(url string)) error {
	o := server.Options{Address: address, Logger: logger, DrainDelay: time.Millisecond, StopTimeout: 2 * time.Second}
	listening, err := server.Listen(o)
	if err != nil {
		return err
	}
	l := listening.Listener
	defer l.Close() // a second time unless an error came before it served
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	serving := make(chan struct{})
	o.OnServing = func() { close(serving) }
	srv, err := server.New(svc, o)
	if err != nil {
		return err
	}
	key := rand.Text()
	face, err := web.New(srv, web.Options{Version: version, Components: engine.Components(), Page: true, Key: key, Connection: connection})
	if err != nil {
		return err
	}
	served, ended := make(chan error, 1), make(chan struct{})
	go func() { served <- srv.Serve(ctx, bufconn.Listen(1)) }()
	go func() {
		defer close(ended)
		select {
		case <-serving:
		case <-ctx.Done():
			return
		}
		if err := face.Serve(l); err != nil {
			stop(err)
		}
	}()
	opened(fmt.Sprintf("http://%s/#key=%s", l.Addr(), key))
	err = errors.Join(<-served, face.Close())
	stop(nil)
	<-ended
	if cause := context.Cause(ctx); err == nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	return err
}
