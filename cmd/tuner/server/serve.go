package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/cmd/tuner/data"
	"github.com/bkbtuner/bkb/store/bolt"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// tokensFile is the file of tokens from the flag or else from TUNER_TOKENS.
func tokensFile(flag string) string {
	if flag != "" {
		return flag
	}
	return os.Getenv("TUNER_TOKENS")
}

func newServe(g *cli.Globals) *cobra.Command {
	var s serving
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the file or database to other machines",
		Long: `Serve opens the file or database and serves it over gRPC until Ctrl-C or SIGTERM. Calls
in progress still finish then. All other commands reach it with --server.

By default it listens on this machine only, without TLS and tokens. Other machines
need a certificate (--cert, --key), and tokens (--tokens, see tuner token) or client
certificates (--client-ca).`,
		Example: `  tuner serve
  tuner serve --listen 0.0.0.0:7070 --cert server.pem --key server.key \
    --tokens tokens.json`,
		Args: cli.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := g.Offline(cmd); err != nil {
				return err
			}
			if err := g.CheckPropose(cmd, ""); err != nil {
				return err
			}
			if err := s.checkDatabase(g, cmd); err != nil {
				return err
			}
			return s.run(cmd.Context(), g, cmd)
		},
	}
	s.addFlags(g, cmd)
	return cmd
}

// limitsPage is the page with the limits of a server.
var limitsPage = cli.Group{Title: "Limits", See: "tuner help limits"}

// addFlags adds the flags of serve.
func (s *serving) addFlags(g *cli.Globals, cmd *cobra.Command) {
	o := &s.options
	cli.FlagGroup(cmd, cli.Group{Title: "Address and TLS"}, func(fs *pflag.FlagSet) {
		fs.StringVar(&o.Address, "listen", server.DefaultAddress, "`host:port` or unix:path")
		fs.StringVar(&g.Cert, "cert", "", "PEM `file` with the server's certificate")
		fs.StringVar(&g.Key, "key", "", "PEM `file` with the private key of --cert")
		fs.BoolVar(&o.AllowTLS12, "allow-tls12", false, "TLS 1.2 for clients without TLS 1.3")
		fs.BoolVar(&o.InsecureAllowRemote, "insecure-allow-remote", false, "access from other machines without TLS or tokens")
	})
	cli.FlagGroup(cmd, cli.Group{Title: "HTTP and embedding"}, s.http.flags)
	cli.FlagGroup(cmd, optunaPage, s.optuna.flags)
	cli.FlagGroup(cmd, serversPage, s.cluster.flags)
	cli.FlagGroup(cmd, cli.Group{Title: "Access"}, func(fs *pflag.FlagSet) {
		fs.StringVar(&s.tokens, "tokens", "", "`file` of valid tokens, read again on change (default $TUNER_TOKENS)")
		fs.StringVar(&o.ClientCAFile, "client-ca", "", "PEM `file` with the CA certificate of the clients")
		fs.StringArrayVar(&s.clientScopes, "client-scope", nil, "scope of a client certificate, repeatable, `name=scope`")
		fs.BoolVar(&o.Reflection, "reflection", false, "gRPC reflection of methods and messages")
	})
	s.addLimits(cmd)
	cli.FlagGroup(cmd, cli.Group{Title: "Time limits"}, func(fs *pflag.FlagSet) {
		fs.DurationVar(&o.StopTimeout, "stop-timeout", 10*time.Second, "wait for calls in progress at the end")
		g.ProposeFlag(fs)
	})
	cli.FlagGroup(cmd, cli.Group{Title: "Backups"}, func(fs *pflag.FlagSet) { s.backups.Flags(fs, "backup-") })
	cli.FlagGroup(cmd, cli.Group{Title: "Metrics and logs"}, func(fs *pflag.FlagSet) {
		fs.StringVar(&o.MetricsAddress, "metrics", "", "`host:port` for Prometheus")
		fs.BoolVar(&o.MetricsAllowRemote, "metrics-allow-remote", false, "access to the metrics from other machines")
		fs.BoolVar(&s.metricsStudies, "metrics-studies", false, "metrics of single studies, with their names, for 100 of them")
		fs.StringVar(&o.AuditFile, "audit", "", "`file` of changes in JSON lines (default the log only)")
		fs.StringVar(&s.logFormat, "log-format", "text", "`format` of the log, text or json")
	})
	cli.Register(cmd, "log-format", cli.Words("text", "json"))
}

// addLimits adds the flags of the page on limits.
func (s *serving) addLimits(cmd *cobra.Command) {
	cli.FlagGroup(cmd, limitsPage, func(fs *pflag.FlagSet) {
		fs.Float64Var(&s.options.Limits.Rate, "rate", 0, "calls per second with one token (default 200)")
		limitFlags(fs, &s.options.Limits)
		quotaFlags(fs, &s.quota, &s.maxFile)
		fs.Int64Var(&s.maxMemory, "max-memory", 0, "bytes of memory of the process (default three quarters of the machine's or the container's)")
	})
}

// serving holds the flags of a server.
type serving struct {
	options      server.Options
	quota        tuner.Options // only its limits
	maxMemory    int64
	tokens       string
	clientScopes []string
	logFormat    string

	metricsStudies bool

	backups data.BackupHabit
	http    httpFace
	optuna  optunaFace
	cluster clusterFace
	maxFile int64 // bytes
}

func (s *serving) run(ctx context.Context, g *cli.Globals, cmd *cobra.Command) (err error) {
	logger, err := s.logger(g, cmd)
	if err != nil {
		return err
	}
	if err := s.parse(g); err != nil {
		return err
	}
	if err := s.cluster.check(cmd, g.Database() != "", s.options, s.optuna.address); err != nil {
		return err
	}
	memory, err := limitMemory(s.maxMemory)
	if err != nil {
		return err
	}
	s.options.Memory = memory
	g.MaxFile = s.maxFile
	listening, err := server.Listen(s.options, s.http.addresses()...) // before the file is created
	var st *opened
	if errors.Is(err, server.ErrAddressInUse) && g.Database() == "" && cli.Exists(g.File()) {
		// It may be in use by the server of this file that is about to stop.
		if st, err = s.openStore(ctx, g, cmd, cli.MustExist, logger); err != nil {
			return err
		}
		if listening, err = server.Listen(s.options, s.http.addresses()...); err != nil {
			return errors.Join(inFlags(err), st.Close())
		}
	}
	if err != nil {
		return inFlags(err)
	}
	defer listening.Close() // a second time unless an error came before it served
	if warning := keyWarning(s.options.CertFile, s.options.KeyFile); warning != "" {
		logger.Warn(warning, "cert", s.options.CertFile)
	}
	if st == nil {
		if st, err = s.openStore(ctx, g, cmd, cli.MayCreate, logger); err != nil {
			return err
		}
	}
	ctx, fatal := context.WithCancelCause(ctx)
	defer fatal(nil)
	o := g.Service()
	o.MaxStudyBytes, o.MaxStudyReports = s.quota.MaxStudyBytes, s.quota.MaxStudyReports
	o.Memory = memory
	s.optuna.options(&o)
	o.LongLived, o.Logger = true, logger
	o.OnFatal = func(err error) { fatal(storeFailure(cmp.Or(st.failure(), err))) }
	// Most of the memory of a server is trials, which never become garbage. Collecting
	// only after as much again is allocated would double its size.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(40)
	}
	metrics := server.NewServiceMetrics(s.metricsStudies)
	o.Observer = metrics.Observer()
	svc := tuner.Open(st.Store, o)
	service := s.cluster.service(svc, s.options, logger)
	defer func() { err = errors.Join(err, s.close(service)) }()
	s.cluster.watch(ctx, fatal)
	go func() {
		select {
		case <-st.failed:
			fatal(storeFailure(st.failure()))
		case <-ctx.Done():
		}
	}()
	calls, flush, err := tracing(ctx, logger)
	if err != nil {
		return err
	}
	defer flush()
	s.options.Logger, s.options.OnServing, s.options.Calls = logger, s.http.serve, calls
	srv, err := server.New(service, s.options)
	if err != nil {
		return err
	}
	if err := s.optuna.open(srv, svc, listening.Guest, logger); err != nil {
		return err
	}
	if err := metrics.Register(srv.Registry(), svc, st.bytes, cli.Version()); err != nil {
		return err
	}
	if err := s.cluster.register(srv.Registry()); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.http.close()) }()
	if err := s.http.open(cmd, srv, listening, s.optuna.where(), fatal); err != nil {
		return err
	}
	backupCtx, stopBackups := context.WithCancel(ctx)
	defer stopBackups()
	backedUp, err := s.backups.Serve(backupCtx, st.file, g.File(), logger, srv.Registry())
	if err != nil {
		return err
	}
	defer func() { stopBackups(); <-backedUp }()
	defer s.optuna.work.Wait()
	defer fatal(nil) // ends the work
	s.optuna.serve(ctx)
	g.Note(cmd, "Listening on %s%s%s\nHit Ctrl-C to quit.", addressText(listening.Listener), s.http.note(), s.optuna.note())
	if err := srv.ServeOn(ctx, listening); err != nil {
		return err
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	g.Note(cmd, "Stopped.")
	return nil
}

// openStore opens the file or the database.
func (s *serving) openStore(ctx context.Context, g *cli.Globals, cmd *cobra.Command, e cli.Existing, logger *slog.Logger) (*opened, error) {
	if address := g.Database(); address != "" {
		st, err := g.OpenDatabase(ctx, cmd, address, logger)
		if err != nil {
			return nil, err
		}
		opened, err := s.cluster.join(ctx, st, logger)
		if err != nil {
			return nil, errors.Join(err, st.Close())
		}
		return opened, nil
	}
	st, err := g.OpenStore(ctx, cmd, g.File(), e, logger)
	if err != nil {
		return nil, err
	}
	return openedFile(st), nil
}

// checkDatabase refuses flags for a file if the studies are in a database.
func (s *serving) checkDatabase(g *cli.Globals, cmd *cobra.Command) error {
	if err := g.Exclusive(); err != nil || g.Database() == "" {
		return err
	}
	switch {
	case s.backups.Dir != "":
		return cli.Usagef("--backup-to has no effect on a database; leave it out, and use the database's own backups, such as pg_basebackup")
	case cmd.Flags().Changed("max-file"):
		return cli.Usagef("--max-file has no effect on a database; leave it out")
	}
	return nil
}

// flagNames has the flags of the options of a server.
var flagNames = strings.NewReplacer(
	"Address:", "--listen:",
	"AllowTLS12", "--allow-tls12",
	"CertFile", "--cert",
	"ClientCAFile", "--client-ca",
	"ClientScopes", "--client-scope",
	"InsecureAllowRemote", "--insecure-allow-remote",
	"GuestAddress:", "--optuna:",
	"KeyFile", "--key",
	"MetricsAddress:", "--metrics:",
	"MetricsAllowRemote", "--metrics-allow-remote",
	"StopTimeout", "--stop-timeout",
	"TokenFile", "--tokens",
)

// inFlags names the flags in an error about the options of a server, and makes it one of
// the command line.
func inFlags(err error) error {
	if wrong := (*server.OptionError)(nil); errors.As(err, &wrong) {
		return cli.Usage(errors.New(flagNames.Replace(wrong.Error())))
	}
	return err
}

// keyWarning says which clients cannot connect to a server because of its key.
func keyWarning(certFile, keyFile string) string {
	if certFile == "" {
		return ""
	}
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil || pair.Leaf == nil || pair.Leaf.PublicKeyAlgorithm != x509.Ed25519 {
		return ""
	}
	return "the server certificate has an Ed25519 key, so clients with gRPC for Python or C++ cannot connect; use an ECDSA or RSA key"
}

// storeFailure returns the error of a store that failed, with its exit status. What
// stopped the store says more than the error of a commit, whose outcome is unknown.
func storeFailure(err error) error {
	switch {
	case errors.Is(err, bolt.ErrDamaged):
		return cli.Exit(cli.ExitDamaged, err)
	case errors.Is(err, bolt.ErrMoved):
		return cli.Exit(cli.ExitFailure, err)
	default:
		return err
	}
}

// close closes the service, or gives up after a time limit.
func (s *serving) close(svc tuner.Service) error {
	done := make(chan error, 1)
	go func() { done <- svc.Close() }()
	limit := time.NewTimer(max(s.options.StopTimeout, 10*time.Second))
	defer limit.Stop()
	select {
	case err := <-done:
		return err
	case <-limit.C:
		return errors.New("closing the file took too long; all acknowledged changes are stored")
	}
}

// parse checks the flags and converts them to options.
func (s *serving) parse(g *cli.Globals) error {
	s.options.GuestAddress = s.optuna.address
	s.options.TokenFile, s.options.CertFile, s.options.KeyFile = tokensFile(s.tokens), g.Cert, g.Key
	for _, pair := range s.clientScopes {
		name, text, ok := strings.Cut(pair, "=")
		if !ok {
			return cli.Usagef("--client-scope: %q is not name=scope", pair)
		}
		scope, err := server.ParseScope(text)
		if err != nil {
			return cli.Usagef("--client-scope: %w", err)
		}
		if s.options.ClientScopes == nil {
			s.options.ClientScopes = make(map[string]server.Scope)
		}
		s.options.ClientScopes[name] = scope
	}
	if err := s.options.Validate(); err != nil {
		return inFlags(err)
	}
	if s.backups.Dir != "" && s.backups.Every == 0 {
		return cli.Usagef("--backup-to needs --backup-every, such as 5m")
	}
	if s.metricsStudies && s.options.MetricsAddress == "" {
		return cli.Usagef("--metrics-studies: has no effect without --metrics; leave it out, or give an address such as --metrics 127.0.0.1:9090")
	}
	return errors.Join(s.backups.Check(), s.http.check(), s.optuna.check(), s.checkDistinct())
}

// checkDistinct refuses an address for two faces of the server. Port 0 is another port
// each time.
func (s *serving) checkDistinct() error {
	of := make(map[string]string)
	for _, f := range []struct{ flag, address string }{
		{"--listen", s.options.Address}, {"--http", s.http.address}, {"--optuna", s.optuna.address}, {"--metrics", s.options.MetricsAddress},
	} {
		if f.address == "" || strings.HasSuffix(f.address, ":0") {
			continue
		}
		if other := of[f.address]; other != "" {
			return cli.Usagef("%s and %s are both %s; give each an address of its own", other, f.flag, f.address)
		}
		of[f.address] = f.flag
	}
	return nil
}

func (s *serving) logger(g *cli.Globals, cmd *cobra.Command) (*slog.Logger, error) {
	switch s.logFormat {
	case "text":
		return g.Logger(cmd, slog.LevelInfo), nil
	case "json":
		level := slog.LevelInfo
		if g.Quiet {
			level = slog.LevelError
		} else if g.Verbose > 0 {
			level = slog.LevelDebug
		}
		return slog.New(slog.NewJSONHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: level})), nil
	default:
		return nil, cli.OneOf("--log-format", s.logFormat, "text", "json")
	}
}
