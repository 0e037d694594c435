package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/web"
	"github.com/spf13/cobra"
	"google.golang.org/grpc/test/bufconn"
)

const defaultUI = "127.0.0.1:7071"

func newUI(g *cli.Globals) *cobra.Command {
	var address string
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Show the studies in a browser",
		Long: `Ui serves a page with the studies of the file, or of the server given with --server, to
browsers on this machine. It prints the address to open, and ends with Ctrl-C.

The address holds a key, because other users of the machine can reach the port too.
The page acts with the permissions of your token. It leaves the file to other commands
while it does not read it.

A server has the same page with tuner serve --http.`,
		Example: `  tuner ui
  tuner ui --server tuner.example.com:7070 --token-file token`,
		Args: cli.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runUI(cmd, g, address)
		},
	}
	cmd.Flags().StringVar(&address, "http", defaultUI, "`host:port` for the page, on this machine")
	return cmd
}

func runUI(cmd *cobra.Command, g *cli.Globals, address string) (err error) {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return cli.Usagef("--http %s: must be host:port on this machine, such as %s; for other machines use tuner serve --http", address, defaultUI)
	}
	svc, err := g.Open(cmd, cli.MustExist)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, svc.Close()) }()
	if err := tryService(cmd.Context(), svc); err != nil { // before a browser shows it
		return err
	}
	o := server.Options{Address: address, Logger: g.Logger(cmd, slog.LevelWarn), DrainDelay: time.Millisecond, StopTimeout: 2 * time.Second}
	opened, err := server.Listen(o)
	if err != nil {
		return inFlags(err)
	}
	return serveUI(cmd.Context(), cmd, svc, o, opened.Listener)
}

// tryService makes a cheap call. Not each token may list the studies.
func tryService(ctx context.Context, svc tuner.Service) error {
	if far, ok := svc.(server.Recogniser); ok {
		_, err := far.GetCaller(ctx)
		return err
	}
	_, _, err := svc.Studies(ctx, "", 1)
	return err
}

// serveUI serves the page on a listener until ctx ends. Its server has no other way in.
func serveUI(ctx context.Context, cmd *cobra.Command, svc tuner.Service, o server.Options, l net.Listener) error {
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
	face, err := web.New(srv, web.Options{Version: cli.ModuleVersion(), Page: true, Key: key})
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
	fmt.Fprintf(cmd.OutOrStdout(), "http://%s/#key=%s\n", l.Addr(), key)
	err = errors.Join(<-served, face.Close())
	stop(nil)
	<-ended
	if cause := context.Cause(ctx); err == nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	return err
}
