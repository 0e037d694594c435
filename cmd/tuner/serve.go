package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/bkbtuner/bkb/store/bolt"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/spf13/cobra"
)

// tokensFile is the file of tokens: the flag's, or TUNER_TOKENS.
func tokensFile(flag string) string {
	if flag != "" {
		return flag
	}
	return os.Getenv("TUNER_TOKENS")
}

func newServe(g *globals) *cobra.Command {
	var s serving
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the file to other machines",
		Long: `Serve opens the file and serves it over gRPC until Ctrl-C or SIGTERM; calls under way
are finished then. All commands reach it with --server.

By default it listens on this machine only, without TLS and without tokens. Where
others can reach it, it wants a certificate (--cert, --key) and tokens (--tokens, see
tuner token) or client certificates (--client-ca).`,
		Example: `  tuner serve
  tuner serve --listen 0.0.0.0:7070 --cert server.pem --key server.key --tokens tokens.json`,
		Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := g.offline(cmd); err != nil {
				return err
			}
			if err := g.checkPropose(cmd, ""); err != nil {
				return err
			}
			return s.run(cmd.Context(), g, cmd)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&s.options.Address, "listen", server.DefaultAddress, "where to listen: `host:port` or unix:path")
	fs.StringVar(&s.tokens, "tokens", "", "the `file` of tokens that are valid; read again when it changes (default: $TUNER_TOKENS)")
	fs.StringVar(&s.options.ClientCAFile, "client-ca", "", "the `file` with who signs clients' certificates (PEM)")
	fs.StringArrayVar(&s.clientScopes, "client-scope", nil, "what the bearer of a certificate may do, `name=scope`; repeat for more")
	fs.BoolVar(&s.options.InsecureAllowRemote, "insecure-allow-remote", false, "let others reach it without TLS or without tokens")
	fs.BoolVar(&s.options.AllowTLS12, "allow-tls12", false, "take callers that cannot do TLS 1.3")
	fs.BoolVar(&s.options.Reflection, "reflection", false, "let callers list methods and messages")
	s.http.flags(fs)
	fs.StringVar(&s.options.MetricsAddress, "metrics", "", "where Prometheus can scrape, `host:port` (default: nowhere)")
	fs.BoolVar(&s.options.MetricsAllowRemote, "metrics-allow-remote", false, "let others reach the metrics")
	fs.Float64Var(&s.options.Limits.Rate, "rate", 0, "calls a second with one token (0: 200; negative: no limit)")
	limitFlags(fs, &s.options.Limits)
	quotaFlags(fs, &s.quota, &g.maxFile)
	fs.DurationVar(&s.options.StopTimeout, "stop-timeout", 10*time.Second, "how long calls under way have to finish")
	g.proposeFlag(cmd)
	s.backups.flags(cmd, "backup-")
	fs.StringVar(&s.options.AuditFile, "audit", "", "`file` to append a line in JSON to for each change: who, what, on what, from where (default: the log only)")
	fs.StringVar(&s.logFormat, "log-format", "text", "the form of the log on stderr: text or json")
	return cmd
}

// serving is a server with its flags as written.
type serving struct {
	options      server.Options
	quota        tuner.Options // only its limits
	tokens       string
	clientScopes []string
	logFormat    string
	backups      backupHabit
	http         httpFace
}

func (s *serving) run(ctx context.Context, g *globals, cmd *cobra.Command) (err error) {
	logger, err := s.logger(g, cmd)
	if err != nil {
		return err
	}
	if err := s.parse(g); err != nil {
		return err
	}
	if err := server.Check(s.options, s.http.addresses()...); err != nil { // before there is a file
		return err
	}
	st, err := g.openStore(ctx, g.file(), mayCreate, logger)
	if err != nil {
		return err
	}
	ctx, fatal := context.WithCancelCause(ctx)
	defer fatal(nil)
	o := g.service()
	o.MaxStudyBytes, o.MaxStudyReports = s.quota.MaxStudyBytes, s.quota.MaxStudyReports
	o.LongLived, o.Logger, o.OnFatal = true, logger, func(err error) { fatal(err) }
	// Most of what a server holds is trials, which never become garbage: waiting
	// for as much again before collecting would double its size.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(40)
	}
	svc := tuner.Open(backuper{st}, o)
	defer func() { err = errors.Join(err, s.close(svc)) }()
	go func() {
		select {
		case <-st.Failed():
			fatal(storeFailure(st.Failure()))
		case <-ctx.Done():
		}
	}()
	s.options.Logger, s.options.OnServing = logger, s.http.serve
	srv, err := server.New(svc, s.options)
	if err != nil {
		return err
	}
	listener, err := srv.Listen()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.http.close()) }()
	if err := s.http.open(cmd, srv, listener, fatal); err != nil {
		return errors.Join(err, listener.Close())
	}
	backupCtx, stopBackups := context.WithCancel(ctx)
	defer stopBackups()
	backedUp, err := s.backups.serve(backupCtx, st, g.file(), logger, srv.Registry())
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer func() { stopBackups(); <-backedUp }()
	g.note(cmd, "Listening on %s%s\nHit Ctrl-C to quit.", addressText(listener), s.http.note())
	if err := srv.Serve(ctx, listener); err != nil {
		return err
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	g.note(cmd, "Stopped.")
	return nil
}

// storeFailure gives the end of a store its exit status.
func storeFailure(err error) error {
	switch {
	case errors.Is(err, bolt.ErrDamaged):
		return &statusError{exitDamaged, err}
	case errors.Is(err, bolt.ErrMoved):
		return &statusError{exitFailure, err}
	default:
		return err
	}
}

// close closes the service. What does not end in time does not keep the process.
func (s *serving) close(svc tuner.Service) error {
	done := make(chan error, 1)
	go func() { done <- svc.Close() }()
	limit := time.NewTimer(max(s.options.StopTimeout, 10*time.Second))
	defer limit.Stop()
	select {
	case err := <-done:
		return err
	case <-limit.C:
		return errors.New("closing the file took too long; all that was acknowledged is stored")
	}
}

// parse reads the flags that need it.
func (s *serving) parse(g *globals) error {
	s.options.TokenFile, s.options.CertFile, s.options.KeyFile = tokensFile(s.tokens), g.cert, g.key
	for _, pair := range s.clientScopes {
		name, text, ok := strings.Cut(pair, "=")
		if !ok {
			return usagef("--client-scope: %q is not name=scope", pair)
		}
		scope, err := server.ParseScope(text)
		if err != nil {
			return usagef("--client-scope: %w", err)
		}
		if s.options.ClientScopes == nil {
			s.options.ClientScopes = make(map[string]server.Scope)
		}
		s.options.ClientScopes[name] = scope
	}
	if err := s.options.Validate(); err != nil {
		return usageError{err}
	}
	if s.backups.dir != "" && s.backups.every == 0 {
		return usagef("--backup-to needs --backup-every, as 5m")
	}
	return errors.Join(s.backups.check(), s.http.check())
}

func (s *serving) logger(g *globals, cmd *cobra.Command) (*slog.Logger, error) {
	switch s.logFormat {
	case "text":
		return g.logger(cmd, slog.LevelInfo), nil
	case "json":
		level := slog.LevelInfo
		if g.quiet {
			level = slog.LevelError
		} else if g.verbose > 0 {
			level = slog.LevelDebug
		}
		return slog.New(slog.NewJSONHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: level})), nil
	default:
		return nil, usagef("--log-format %s: must be text or json", s.logFormat)
	}
}

// backuper is a file that can be copied while it is used, as package tuner
// wants it.
type backuper struct{ *bolt.Store }

// Backup implements tuner.Backuper.
func (b backuper) Backup(ctx context.Context, w io.Writer) error {
	_, err := b.Store.Backup(ctx, w)
	return err
}
