// Package serve runs the server that the command tuner serve starts, in any Go program.
//
// [Run] opens the file or database of a [Config], puts the service over it, and serves it
// over gRPC and, if the Config says so, over HTTP with the page. It also makes backups, has
// metrics and forwards calls between several servers of a database. It puts packages
// together, and has no logic of a request. What is the process's own stays with the caller:
// signals, the memory limit and the settings of the garbage collector.
package serve

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"time"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/server"
)

// Run serves until ctx ends, and then gives calls in progress Server.StopTimeout to finish.
// It returns nil if the end of ctx stopped it.
//
// The error is a [ConfigError] or a [server.OptionError] for a wrong Config, one of the
// packages of the stores for a store that cannot be opened or that failed, and a
// [github.com/bkbtuner/bkb/store.BuriedError] if other servers took over its studies.
func Run(ctx context.Context, c Config) (err error) {
	c.setDefaults()
	if err := c.Validate(); err != nil {
		return err
	}
	listening, st, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer listening.Close() // a second time unless an error came before it served
	logger := c.Server.Logger
	if weakKey(c.Server.CertFile, c.Server.KeyFile) {
		logger.Warn("the server certificate has an Ed25519 key, so clients with gRPC for Python or C++ cannot connect; use an ECDSA or RSA key", "cert", c.Server.CertFile)
	}
	ctx, fatal := context.WithCancelCause(ctx)
	defer fatal(nil)
	metrics := server.NewServiceMetrics(c.MetricsStudies)
	o := c.Service
	o.Memory, o.LongLived, o.Logger, o.Observer = c.Server.Memory, true, logger, metrics.Observer
	o.Artifacts = st.files
	// What stopped the store says more than the error of a commit, whose outcome is unknown.
	o.OnFatal = func(err error) { fatal(cmp.Or(st.failure(), err)) }
	local := engine.Open(st.Store, o)
	service, forwarded := c.spread(local, st.member)
	defer func() { err = errors.Join(err, c.close(service)) }()
	go st.watch(ctx, fatal)

	face := &httpFace{config: &c, stop: fatal}
	so := c.Server
	so.OnServing = face.serve
	srv, err := server.New(service, so)
	if err != nil {
		return err
	}
	if err := metrics.Register(srv.Registry(), local.Loaded, st.bytes, c.Version); err != nil {
		return err
	}
	if err := registerCluster(srv.Registry(), st.member, forwarded); err != nil {
		return err
	}
	go st.tellReadiness(ctx, logger, srv.SetReady)
	defer func() { err = errors.Join(err, face.close()) }()
	if err := face.open(srv, listening); err != nil {
		return err
	}
	backingUp, stopBackups := context.WithCancel(ctx)
	backedUp, err := c.backUp(backingUp, st.file, srv.Registry())
	defer func() { stopBackups(); <-backedUp }()
	if err != nil {
		return err
	}
	if st.file != nil {
		defer c.serveBeside(ctx, service)()
	}
	if err := srv.ServeOn(ctx, listening); err != nil {
		return err
	}
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	if st.file != nil {
		return st.file.Moved() // which it may not have noticed yet
	}
	return nil
}

// open listens, before it creates the file, and opens the store.
func (c *Config) open(ctx context.Context) (listening *server.Opened, st *opened, err error) {
	var further []string
	if c.HTTP != "" {
		further = []string{c.HTTP}
	}
	listening, err = server.Listen(c.Server, further...)
	if _, missing := os.Stat(c.File); errors.Is(err, server.ErrAddressInUse) && c.Database == "" && missing == nil {
		// It may be in use by the server of this file that is about to stop.
		if st, err = c.openFile(ctx, true); err != nil {
			return nil, nil, err
		}
		if listening, err = server.Listen(c.Server, further...); err != nil {
			return nil, nil, errors.Join(err, st.Close())
		}
	}
	if err != nil || st != nil {
		return listening, st, err
	}
	if c.Database != "" {
		st, err = c.openDatabase(ctx)
	} else {
		st, err = c.openFile(ctx, false)
	}
	if err != nil {
		listening.Close()
		return nil, nil, err
	}
	return listening, st, nil
}

// close closes the service, or gives up after a time limit.
func (c *Config) close(svc tuner.Service) error {
	done := make(chan error, 1)
	go func() { done <- svc.Close() }()
	select {
	case err := <-done:
		return err
	case <-time.After(max(c.Server.StopTimeout, 10*time.Second)):
		return errors.New("closing the file took too long; all acknowledged changes are stored")
	}
}

// weakKey tells whether some clients cannot connect to a server because of its key.
func weakKey(certFile, keyFile string) bool {
	if certFile == "" {
		return false
	}
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	return err == nil && pair.Leaf != nil && pair.Leaf.PublicKeyAlgorithm == x509.Ed25519
}
