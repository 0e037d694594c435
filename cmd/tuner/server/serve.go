package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/cmd/tuner/data"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/bolt"
	"github.com/bkbtuner/bkb/store/lease"
	"github.com/bkbtuner/bkb/tuner/artifacts"
	"github.com/bkbtuner/bkb/tuner/memlimit"
	"github.com/bkbtuner/bkb/tuner/serve"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// tokensFile is the file of tokens from the flag or else from TUNER_TOKENS.
func tokensFile(flag string) string {
	return cmp.Or(flag, os.Getenv("TUNER_TOKENS"))
}

func newServe(g *cli.Globals) *cobra.Command {
	var s serving
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the file or database to other machines",
		Long: `Serve opens the file or database and serves it over gRPC until Ctrl-C or SIGTERM. All
other commands reach it with --server. For other machines it needs a certificate, and
tokens (see tuner token) or client certificates.`,
		Example: `  tuner serve
  tuner serve --listen 0.0.0.0:7070 --cert server.pem --key server.key \
    --tokens tokens.json`,
		Args: cli.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := g.CheckPropose(cmd, ""); err != nil {
				return err
			}
			return s.run(cmd.Context(), g, cmd)
		},
	}
	s.addFlags(g, cmd)
	return cmd
}

// Groups of flags.
var (
	addresses = cli.Group{Title: "Addresses and TLS"}
	watching  = cli.Group{Title: "Metrics and logs"}
)

func (s *serving) addFlags(g *cli.Globals, cmd *cobra.Command) {
	o := &s.Server
	cli.FlagGroup(cmd, addresses, func(fs *pflag.FlagSet) {
		fs.StringVar(&o.Address, "listen", server.DefaultAddress, "`host:port` or unix:path")
		fs.StringVar(&o.CertFile, "cert", "", "PEM `file` with the server's certificate")
		fs.StringVar(&o.KeyFile, "key", "", "PEM `file` with the private key of --cert")
		fs.BoolVar(&o.AllowTLS12, "allow-tls12", false, "TLS 1.2 for clients without TLS 1.3")
		fs.BoolVar(&o.InsecureAllowRemote, "insecure-allow-remote", false, "other machines without TLS or tokens")
	})
	cli.FlagGroup(cmd, addresses, func(fs *pflag.FlagSet) {
		fs.StringVar(&s.HTTP, "http", "", "`host:port` of the page and JSON over HTTP")
		fs.BoolVar(&s.NoPage, "no-ui", false, "JSON over HTTP without the page")
		fs.BoolVar(&s.untilEOF, "until-eof", false, "stop when stdin ends")
		fs.StringVar(&s.ReadyFile, "ready-file", "", "JSON `file` of addresses while the server runs")
	})
	s.addServers(cmd)
	cli.FlagGroup(cmd, cli.Group{Title: "Access"}, func(fs *pflag.FlagSet) {
		fs.StringVar(&o.TokenFile, "tokens", "", "`file` of valid tokens (default $TUNER_TOKENS)")
		fs.StringVar(&o.ClientCAFile, "client-ca", "", "PEM `file` of the clients' CA certificate")
		fs.StringArrayVar(&s.clientScopes, "client-scope", nil, "`name=scope` of a certificate (repeatable)")
		fs.BoolVar(&o.Reflection, "reflection", false, "gRPC reflection of methods and messages")
	})
	s.addLimits(cmd)
	cli.FlagGroup(cmd, cli.Group{Title: "Limits", See: "tuner help limits"}, g.ProposeFlag)
	cli.FlagGroup(cmd, cli.Group{Title: "Backups"}, func(fs *pflag.FlagSet) { data.BackupFlags(fs, &s.Backups, "backup-") })
	cli.FlagGroup(cmd, watching, func(fs *pflag.FlagSet) {
		fs.StringVar(&o.MetricsAddress, "metrics", "", "`host:port` for Prometheus")
		fs.BoolVar(&o.MetricsAllowRemote, "metrics-allow-remote", false, "access to the metrics from other machines")
		fs.BoolVar(&s.MetricsStudies, "metrics-studies", false, "metrics of up to 100 single studies")
		fs.StringVar(&o.AuditFile, "audit", "", "`file` of changes (default the log only)")
		cli.ChoiceVar(fs, &s.logFormat, "log-format", "", "log `format`", "text", "json")
	})
}

// addServers adds the flags of the page about several servers of one database.
func (s *serving) addServers(cmd *cobra.Command) {
	cli.FlagGroup(cmd, cli.Group{Title: "Several servers", See: "tuner help servers"}, func(fs *pflag.FlagSet) {
		fs.StringVar(&s.Advertise, "advertise", "", "`host:port` where other servers of the database reach this one")
		fs.DurationVar(&s.takeover, "takeover", lease.DefaultTTL, "time after which others take over the studies of a server that died")
		fs.StringVar(&s.Artifacts, "artifacts", "", "`folder` of the database's artifacts, shared by its servers")
	})
}

// addLimits adds the flags of the page on limits.
func (s *serving) addLimits(cmd *cobra.Command) {
	cli.FlagGroup(cmd, cli.Group{Title: "Limits", See: "tuner help limits"}, func(fs *pflag.FlagSet) {
		limitFlags(fs, &s.Server.Limits)
		fs.Int64Var(&s.Service.MaxStudyBytes, "max-study-bytes", 1<<30, "bytes of a study, 0 for no limit")
		fs.Int64Var(&s.Service.MaxStudyReports, "max-study-reports", 10_000_000, "reports of a study, 0 for no limit")
		fs.DurationVar(&s.Server.StopTimeout, "stop-timeout", 10*time.Second, "wait for calls at the end")
		fs.Int64Var(&s.maxFile, "max-file", bolt.DefaultMaxSize, "bytes of the file")
		fs.Int64Var(&s.quota, "artifact-quota", artifacts.DefaultQuota, "bytes of all artifacts")
		fs.Int64Var(&s.maxMemory, "max-memory", 0, "bytes of memory (default 3/4 of all)")
	})
}

type serving struct {
	serve.Config
	untilEOF     bool
	clientScopes []string
	takeover     time.Duration
	maxFile      int64 // bytes
	quota        int64
	maxMemory    int64
	logFormat    string
}

func (s *serving) run(ctx context.Context, g *cli.Globals, cmd *cobra.Command) error {
	cli.OutliveReaders(cmd)
	if err := s.complete(g, cmd); err != nil {
		return err
	}
	if err := s.Validate(); err != nil {
		return inFlags(err)
	}
	memory, err := limitMemory(s.maxMemory)
	if err != nil {
		return err
	}
	s.Server.Memory = memory
	memlimit.PaceCollector()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s.OnServing = func(at serve.Ready) {
		text := "Listening on " + at.GRPC
		if at.HTTP != "" {
			text += "\nListening for HTTP on " + at.HTTP
		}
		g.Note(cmd, "%s\nHit Ctrl-C to quit.", text)
		if s.untilEOF {
			go func() {
				_, _ = io.Copy(io.Discard, cmd.InOrStdin()) // a stdin that cannot be read has ended
				stop()
			}()
		}
	}
	s.Notice = func(text string) { g.Note(cmd, "%s", text) }
	if err := serve.Run(ctx, s.Config); err != nil {
		return s.exit(err)
	}
	g.Note(cmd, "Stopped.")
	return nil
}

// complete fills in what other flags and the environment say.
func (s *serving) complete(g *cli.Globals, cmd *cobra.Command) (err error) {
	s.Server.Logger = s.logger(g, cmd)
	s.Version, s.LockTimeout, s.RetryFor = cli.Version(), g.LockTimeout, g.RetryFor
	s.Service.ProposeTimeout = g.Service().ProposeTimeout
	s.Server.TokenFile = tokensFile(s.Server.TokenFile)
	if s.Database = g.Database(); s.Database == "" {
		s.File = g.File()
	} else {
		g.NotePassword(cmd, s.Database)
	}
	if cmd.Flags().Changed("takeover") || s.Database != "" {
		s.Takeover = s.takeover
	}
	if cmd.Flags().Changed("max-file") || s.Database == "" {
		s.MaxFile = s.maxFile
	}
	if cmd.Flags().Changed("artifact-quota") {
		if s.ArtifactQuota = s.quota; s.quota == 0 {
			return cli.Usagef("--artifact-quota 0: must be positive")
		}
	}
	for _, pair := range s.clientScopes {
		name, text, ok := strings.Cut(pair, "=")
		if !ok {
			return cli.Usagef("--client-scope: %q is not name=scope", pair)
		}
		scope, err := server.ParseScope(text)
		if err != nil {
			return cli.Usagef("--client-scope: %w", err)
		}
		if s.Server.ClientScopes == nil {
			s.Server.ClientScopes = make(map[string]server.Scope)
		}
		s.Server.ClientScopes[name] = scope
	}
	return nil
}

// exit gives the error of a server its exit status.
func (s *serving) exit(err error) error {
	buried := (*store.BuriedError)(nil)
	switch {
	case errors.As(err, &buried):
		return cli.Exit(cli.ExitBuried, err)
	case errors.Is(err, bolt.ErrMoved):
		return cli.Exit(cli.ExitFailure, err)
	case s.Database != "":
		return inFlags(cli.DatabaseError(err))
	default:
		return inFlags(cli.FileError(err, s.File))
	}
}

// flagNames has the flags of the fields of a server's configuration.
var flagNames = strings.NewReplacer(
	"AllowTLS12", "--allow-tls12",
	"CertFile", "--cert",
	"ClientCAFile", "--client-ca",
	"ClientScopes", "--client-scope",
	"InsecureAllowRemote", "--insecure-allow-remote",
	"KeyFile", "--key",
	"MetricsAddress:", "--metrics:",
	"MetricsAddress", "--metrics",
	"MetricsAllowRemote", "--metrics-allow-remote",
	"StopTimeout", "--stop-timeout",
	"TokenFile", "--tokens",
	"Address", "--listen",
	"HTTP", "--http",
	"NoPage", "--no-ui",
	"ReadyFile", "--ready-file",
	"MetricsStudies", "--metrics-studies",
	"MaxFile", "--max-file",
	"Advertise", "--advertise",
	"ArtifactQuota", "--artifact-quota",
	"Artifacts", "--artifacts",
	"Takeover", "--takeover",
	"give Database", "give --store postgres://…",
	"Backups: ", "", "Backups has", "--backup-to has", "Every", "--backup-every", "Keep", "--backup-keep", "Dir", "--backup-to",
)

// inFlags names the flags in an error about the configuration of a server, and makes it one
// of the command line.
func inFlags(err error) error {
	option, config := (*server.OptionError)(nil), (*serve.ConfigError)(nil)
	switch {
	case errors.As(err, &option):
		return cli.Usage(errors.New(flagNames.Replace(option.Error())))
	case errors.As(err, &config) && errors.Is(err, fs.ErrNotExist):
		return cli.Exit(cli.ExitNotFound, errors.New(flagNames.Replace(config.Error())))
	case errors.As(err, &config):
		return cli.Usage(errors.New(flagNames.Replace(config.Error())))
	}
	return err
}

func (s *serving) logger(g *cli.Globals, cmd *cobra.Command) *slog.Logger {
	if s.logFormat != "json" {
		return g.Logger(cmd, slog.LevelInfo)
	}
	level := slog.LevelInfo
	if g.Quiet {
		level = slog.LevelError
	} else if g.Verbose > 0 {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewJSONHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: level}))
}

// limitFlags adds a flag for each limit of a server.
func limitFlags(fs *pflag.FlagSet, l *server.Limits) {
	d := server.DefaultLimits
	fs.Float64Var(&l.Rate, "rate", 0, fmt.Sprintf("calls/s with one token (default %.0f)", d.Rate))
	for _, f := range []struct {
		to          *int
		most        int
		name, usage string
	}{
		{&l.MaxConnections, d.MaxConnections, "max-connections", "open connections"},
		{&l.MaxConnectionsPerAddress, d.MaxConnectionsPerAddress, "max-connections-per-address", "of one IP address"},
		{&l.MaxStrangers, d.MaxStrangers, "max-strangers", "of these without a token"},
		{&l.MaxStrangersPerAddress, d.MaxStrangersPerAddress, "max-strangers-per-address", "of one IP address"},
		{&l.MaxHealthWatches, d.MaxHealthWatches, "max-health-watches", "health watches"},
		{&l.MaxHealthWatchesPerAddress, d.MaxHealthWatchesPerAddress, "max-health-watches-per-address", "of one IP address"},
		{&l.MaxInFlight, d.MaxInFlight, "max-calls", "calls at once"},
		{&l.MaxInFlightPerToken, d.MaxInFlightPerToken, "max-calls-per-token", "with one token"},
		{&l.MaxInFlightPerStudy, d.MaxInFlightPerStudy, "max-calls-per-study", "to one study"},
		{&l.MaxWatches, d.MaxWatches, "max-watches", "watches at once"},
		{&l.MaxWatchesPerToken, d.MaxWatchesPerToken, "max-watches-per-token", "with one token"},
		{&l.MaxWatchesPerStudy, d.MaxWatchesPerStudy, "max-watches-per-study", "of one study"},
	} {
		fs.IntVar(f.to, f.name, 0, fmt.Sprintf("%s (default %d)", f.usage, f.most))
	}
	fs.Float64Var(&l.WriteRate, "write-rate", 0, fmt.Sprintf("bytes/s of changes with one token (default %.0f)", d.WriteRate))
}

// leastMemory is the least that --max-memory can be. A server needs 30 MB without studies.
const leastMemory = 64 << 20

// limitMemory holds the process to the flag --max-memory: 0 stands for $GOMEMLIMIT, else
// for three quarters of what the machine or the container has.
func limitMemory(flag int64) (*memlimit.Limit, error) {
	switch {
	case flag < 0:
		return nil, nil
	case flag > 0 && flag < leastMemory:
		return nil, cli.Usagef("--max-memory %d: must be at least %d bytes (64 MiB)", flag, leastMemory)
	case flag == 0:
		if flag = debug.SetMemoryLimit(-1); flag == math.MaxInt64 {
			flag = cli.MachineMemory("/") / 4 * 3
		}
	}
	m := memlimit.New(flag)
	if m != nil {
		debug.SetMemoryLimit(flag)
	}
	return m, nil
}
