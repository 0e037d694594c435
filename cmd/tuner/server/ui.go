package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/serve"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/spf13/cobra"
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
	err = serve.Page(cmd.Context(), svc, address, cli.ModuleVersion(), g.Logger(cmd, slog.LevelWarn), func(url string) {
		fmt.Fprintln(cmd.OutOrStdout(), url)
	})
	return inFlags(err)
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
