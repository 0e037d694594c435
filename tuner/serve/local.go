package serve

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"google.golang.org/grpc/test/bufconn"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/web"
)

// longestSocket is the most bytes in the path of a socket on any system.
const longestSocket = 100

// Socket is the path of the socket beside a file of studies. The process that serves the
// file listens there, so that other processes of its owner reach the studies by the file's
// name. It may be a link to a socket with a shorter path.
func Socket(file string) string {
	if whole, err := filepath.EvalSymlinks(file); err == nil {
		file = whole
	}
	if whole, err := filepath.Abs(file); err == nil {
		file = whole
	}
	return file + ".sock"
}

// serveBeside serves on the socket beside the file until stop is called. Only the owner of
// the file can connect, who may do anything with it, so the calls need no token. Without
// such a socket, as on some file systems, the server works all the same.
func (c *Config) serveBeside(ctx context.Context, service tuner.Service) (stop func()) {
	logger := c.Server.Logger
	socket, remove, err := c.makeBeside()
	if err != nil {
		logger.Info("other processes cannot reach the server by the name of its file", "file", c.File, "error", err)
		return func() {}
	}
	o := server.Options{
		Address: "unix:" + socket, AuditFile: c.Server.AuditFile, Limits: c.Server.Limits, Memory: c.Server.Memory,
		StopTimeout: c.Server.StopTimeout, Logger: logger,
	}
	var srv *server.Server
	listening, err := server.Listen(o)
	if err == nil {
		srv, err = server.New(service, o)
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err == nil {
			err = srv.ServeOn(ctx, listening)
		}
		if err != nil {
			logger.Info("other processes cannot reach the server by the name of its file", "file", c.File, "error", err)
		}
		remove()
	}()
	return func() { cancel(); <-done }
}

// makeBeside returns the path on which to listen, and what removes it. The caller holds the
// lock of the file, so a socket or link of another server is a stale one.
func (c *Config) makeBeside() (socket string, remove func(), err error) {
	if runtime.GOOS == "windows" {
		return "", nil, errors.ErrUnsupported // sockets have no owner there
	}
	link := Socket(c.File)
	if info, err := os.Lstat(link); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		if err := os.Remove(link); err != nil {
			return "", nil, err
		}
	}
	if len(link) <= longestSocket {
		return link, func() {}, nil
	}
	folder, err := os.MkdirTemp("", "bkb-")
	if err != nil {
		return "", nil, err
	}
	socket = filepath.Join(folder, "sock")
	if err := os.Symlink(socket, link); err != nil {
		return "", nil, errors.Join(err, os.Remove(folder))
	}
	return socket, func() { os.Remove(link); os.Remove(folder) }, nil
}

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
