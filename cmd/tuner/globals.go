package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/internal/shared"
	"github.com/bkbtuner/bkb/internal/nearest"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/bolt"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/client"
	"github.com/bkbtuner/bkb/tuner/wire"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// globals are the flags that all commands have.
type globals struct {
	db          string
	server      string
	store       string
	tokenFile   string
	ca          string
	cert, key   string
	insecure    bool
	lockTimeout time.Duration
	retryFor    time.Duration
	quiet       bool
	verbose     int
	color       string
	propose     time.Duration // of commands with the flag of proposeFlag
	maxFile     int64         // bytes, with 0 for the store's default
	waited      atomic.Bool   // the command said that it waits for a file

	foreign func(store.StudyID) tuner.Foreign // of a command that reads trials of Optuna
}

const (
	defaultDB          = "tuner.db"
	defaultLockTimeout = 30 * time.Second
	defaultRetryFor    = time.Minute
)

func (g *globals) flags(root *cobra.Command) {
	f := root.PersistentFlags()
	f.SortFlags = false
	f.StringVar(&g.db, "db", "", "`file` with the studies (default $TUNER_DB or "+defaultDB+")")
	f.StringVar(&g.server, "server", "", "server, `host:port` or unix:path (default $TUNER_SERVER)")
	f.StringVar(&g.store, "store", "", "`URL` of a PostgreSQL database (default $TUNER_STORE)")
	f.StringVar(&g.tokenFile, "token-file", "", "`file` with the token for the server, mode 0600 (default $TUNER_TOKEN)")
	f.StringVar(&g.ca, "ca", "", "PEM `file` with the CA certificate that signed the server's (default the system's CAs)")
	f.StringVar(&g.cert, "cert", "", "PEM `file` with the client certificate for the server")
	f.StringVar(&g.key, "key", "", "PEM `file` with the private key of --cert")
	f.BoolVar(&g.insecure, "insecure", false, "no TLS to a server on another machine")
	f.DurationVar(&g.lockTimeout, "lock-timeout", defaultLockTimeout, "longest wait for a file that another process uses")
	f.DurationVar(&g.retryFor, "retry-for", defaultRetryFor, "longest time of retries for an unreachable server or database, 0 for one try")
	f.BoolVarP(&g.quiet, "quiet", "q", false, "no messages on stderr except errors")
	f.CountVarP(&g.verbose, "verbose", "v", "more messages on stderr, all with -vv")
	f.StringVar(&g.color, "color", colorAuto, "`when` colours are used, auto, always or never")
	f.VisitAll(func(flag *pflag.Flag) {
		switch flag.Name {
		case "quiet", "verbose", "color":
			assign(flag, general)
		case "db", "server", "store":
			assign(flag, connection)
		default:
			assign(flag, remote)
		}
	})
}

// proposeFlag adds the flag with the time that asks wait for suggestions.
func (g *globals) proposeFlag(fs *pflag.FlagSet) {
	fs.DurationVar(&g.propose, "propose-timeout", tuner.DefaultProposeTimeout, "wait before a random suggestion")
}

// checkPropose refuses a wrong flag of proposeFlag.
func (g *globals) checkPropose(cmd *cobra.Command, address string) error {
	switch f := cmd.Flag("propose-timeout"); {
	case f == nil || !f.Changed:
		return nil
	case g.propose <= 0:
		return usagef("--propose-timeout %s: must be above 0, such as %s", g.propose, tuner.DefaultProposeTimeout)
	case address != "":
		return usagef("--propose-timeout %s: has no effect on the server at %s; leave it out, and set it in tuner serve", g.propose, address)
	}
	return nil
}

// service are the options of a service on a file.
func (g *globals) service() tuner.Options { return tuner.Options{ProposeTimeout: g.propose} }

// note writes a message to stderr, unless --quiet is given.
func (g *globals) note(cmd *cobra.Command, format string, args ...any) {
	if !g.quiet {
		fmt.Fprintln(cmd.ErrOrStderr(), strip(fmt.Sprintf(format, args...)))
	}
}

// logger is the logger of the parts of the program.
func (g *globals) logger(cmd *cobra.Command, level slog.Level) *slog.Logger {
	switch {
	case g.quiet:
		level = slog.LevelError
	case g.verbose == 1:
		level = min(level, slog.LevelInfo)
	case g.verbose > 1:
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: level}))
}

// file is the file to work on.
func (g *globals) file() string {
	switch {
	case g.db != "":
		return g.db
	case os.Getenv("TUNER_DB") != "":
		return os.Getenv("TUNER_DB")
	default:
		return defaultDB
	}
}

// address is the server to work on, empty for a file.
func (g *globals) address() string {
	switch {
	case g.server != "":
		return g.server
	case g.db != "" || g.store != "": // a flag is stronger than the environment
		return ""
	default:
		return os.Getenv("TUNER_SERVER")
	}
}

// offline refuses a server for commands that work on files.
func (g *globals) offline(cmd *cobra.Command) error {
	if g.server != "" {
		return usagef("%s works on a file; leave --server out", cmd.CommandPath())
	}
	return nil
}

// existing says whether a command may create the file.
type existing bool

const (
	mustExist existing = true
	mayCreate existing = false
)

// open returns the service that the command works on.
func (g *globals) open(cmd *cobra.Command, e existing) (tuner.Service, error) {
	if err := g.exclusive(); err != nil {
		return nil, err
	}
	address := g.address()
	if err := g.checkPropose(cmd, address); err != nil {
		return nil, err
	}
	if address != "" {
		return g.dial(cmd, address)
	}
	path, logger, o := g.file(), g.logger(cmd, slog.LevelWarn), g.service()
	o.Logger, o.Foreign = logger, g.foreign
	if place := g.database(); place != "" {
		return g.onDatabase(cmd, place, o), nil
	}
	s := shared.New(func(ctx context.Context) (tuner.Service, error) {
		st, err := g.openStore(ctx, cmd, path, e, logger)
		if err != nil {
			return nil, err
		}
		return tuner.Open(backuper{st}, o), nil
	})
	return s, nil
}

// openStore opens a file once no other process uses it.
func (g *globals) openStore(ctx context.Context, cmd *cobra.Command, path string, e existing, logger *slog.Logger) (*bolt.Store, error) {
	return g.openFile(ctx, cmd, path, bolt.Options{MustExist: bool(e), MaxSize: g.maxFile}, logger)
}

// openFile is openStore with options of the store.
func (g *globals) openFile(ctx context.Context, cmd *cobra.Command, path string, o bolt.Options, logger *slog.Logger) (*bolt.Store, error) {
	var st *bolt.Store
	err := g.awaitLock(ctx, cmd, func(turn time.Duration) (err error) {
		o.LockTimeout, o.Logger = turn, logger
		st, err = bolt.Open(path, o)
		return err
	})
	if o.MustExist && !o.ReadOnly && readOnly(err) {
		return openReadOnly(path, logger)
	}
	return st, fileError(err, path)
}

// quietWait is the wait for a file after which a command says that it waits.
const quietWait = time.Second

// awaitLock calls open until the file is not in use, for at most --lock-timeout. open
// waits for turn.
func (g *globals) awaitLock(ctx context.Context, cmd *cobra.Command, open func(turn time.Duration) error) error {
	start := time.Now()
	for {
		// The tries are short, so that Ctrl-C has an effect in between.
		turn := min(g.lockTimeout-time.Since(start), 250*time.Millisecond)
		if turn <= 0 {
			turn = -1
		}
		err := open(turn)
		used := (*bolt.FileError)(nil)
		switch {
		case !errors.Is(err, bolt.ErrInUse):
			return err
		case turn < 0 && g.lockTimeout > 0:
			return fmt.Errorf("%w; waited %v", err, g.lockTimeout)
		case turn < 0:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &used) && time.Since(start) >= quietWait && !g.waited.Swap(true):
			g.note(cmd, "Waiting up to %v for %s, which %s has open.", g.lockTimeout, used.Path, processText(used))
		}
	}
}

// processText names the process that has a file open.
func processText(e *bolt.FileError) string {
	if e.PID == 0 {
		return "another process"
	}
	return fmt.Sprintf("process %d (%s)", e.PID, e.Name)
}

// readOnly tells whether a file cannot be opened for writing, for its permissions or
// because of its disk.
func readOnly(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}

// openReadOnly opens a file for commands that read. Writes are refused.
func openReadOnly(path string, logger *slog.Logger) (*bolt.Store, error) {
	st, err := bolt.Open(path, bolt.Options{MustExist: true, ReadOnly: true, Logger: logger})
	if err != nil {
		return nil, fileError(err, path)
	}
	logger.Info("the file is not writable and is opened for reading", "path", path)
	return st, nil
}

// fileError gives errors of opening a file their exit code.
func fileError(err error, path string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, bolt.ErrMissing) && !isDir(filepath.Dir(path)):
		return &statusError{exitNotFound, fmt.Errorf("there is no directory %s for the file %s; create it first, or name another file with --db", filepath.Dir(path), filepath.Base(path))}
	case errors.Is(err, bolt.ErrMissing):
		return &statusError{exitNotFound, fmt.Errorf("there is no file %s; create a study first (tuner create-study), or name the file with --db", path)}
	case errors.Is(err, bolt.ErrInUse):
		// The code makes patient callers try again.
		return &tuner.RemoteError{Code: tuner.Unavailable, Message: err.Error() + "; if it is a server, use --server"}
	case errors.Is(err, bolt.ErrDamaged), errors.Is(err, bolt.ErrTruncated), errors.Is(err, bolt.ErrEmpty), errors.Is(err, bolt.ErrForeign):
		return &statusError{exitDamaged, err}
	default:
		return err
	}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// dial connects to a server. It uses TLS if the server is on another machine or a
// certificate is given.
func (g *globals) dial(cmd *cobra.Command, address string) (tuner.Service, error) {
	if _, port, err := net.SplitHostPort(address); !strings.HasPrefix(address, "unix:") && (err != nil || port == "") {
		return nil, usagef("--server %s: must be host:port or unix:path, such as localhost:7070", address)
	}
	for _, f := range []struct{ flag, path string }{{"ca", g.ca}, {"cert", g.cert}, {"key", g.key}, {"token-file", g.tokenFile}} {
		if _, err := os.Stat(f.path); f.path != "" && errors.Is(err, fs.ErrNotExist) {
			return nil, &statusError{exitNotFound, fmt.Errorf("--%s %s: there is no such file", f.flag, f.path)}
		}
	}
	o := client.Options{CAFile: g.ca, CertFile: g.cert, KeyFile: g.key, TraceParent: os.Getenv("TRACEPARENT")}
	if o.RetryFor = g.retryFor; o.RetryFor <= 0 {
		o.RetryFor = -1
	}
	o.OnTrouble = func(t client.Trouble) {
		g.note(cmd, "Cannot reach %s (%s). Trying until %s.", t.Address, t.Why, t.Until.Format(time.TimeOnly))
	}
	o.Plaintext = g.insecure || local(address) && g.ca == "" && g.cert == ""
	switch {
	case g.tokenFile != "":
		var err error
		if o.Token, err = wire.ReadToken(g.tokenFile); err != nil {
			return nil, err
		}
	case os.Getenv("TUNER_TOKEN") != "":
		o.Token = wire.NewToken(strings.TrimSpace(os.Getenv("TUNER_TOKEN"))) // a Secret may end with a line end
	}
	return client.Dial(address, o)
}

// environment has the variables by which a child process finds the file or server.
func (g *globals) environment() []string {
	if address := g.address(); address != "" {
		return []string{"TUNER_SERVER=" + address}
	}
	if address := g.database(); address != "" {
		return []string{"TUNER_STORE=" + address, "TUNER_SERVER="}
	}
	path := g.file()
	if whole, err := filepath.Abs(path); err == nil {
		path = whole
	}
	return []string{"TUNER_DB=" + path, "TUNER_SERVER=", "TUNER_STORE="}
}

// local tells whether an address is on this machine.
func local(address string) bool {
	if strings.HasPrefix(address, "unix:") {
		return true
	}
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// with calls f with the service that the command works on.
func (g *globals) with(cmd *cobra.Command, e existing, f func(ctx context.Context, svc tuner.Service) error) (err error) {
	svc, err := g.open(cmd, e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, svc.Close()) }()
	return f(cmd.Context(), svc)
}

// withStudy is with for commands on a study, which the first argument or TUNER_STUDY
// names. If there is no such study, the error lists the others.
func (g *globals) withStudy(cmd *cobra.Command, args []string, f func(ctx context.Context, svc tuner.Service, name string) error) error {
	name, err := studyName(args)
	if err != nil {
		return err
	}
	return g.with(cmd, mustExist, func(ctx context.Context, svc tuner.Service) error {
		err := f(ctx, svc, name)
		if tuner.CodeOf(err) == tuner.NotFound {
			return explain(ctx, svc, name, err)
		}
		return err
	})
}

func studyName(args []string) (string, error) {
	if len(args) > 0 {
		return args[0], nil
	}
	if name := os.Getenv("TUNER_STUDY"); name != "" {
		return name, nil
	}
	return "", usagef("there is no study; name it as an argument or in TUNER_STUDY")
}

// explain adds the names of the existing studies to the error of a missing one.
func explain(ctx context.Context, svc tuner.Service, name string, err error) error {
	missing := (*store.NotFoundError)(nil)
	remote := (*tuner.RemoteError)(nil)
	if !errors.As(err, &missing) && !errors.As(err, &remote) {
		return err
	}
	studies, more, listErr := svc.Studies(ctx, "", 0)
	if listErr != nil || slices.ContainsFunc(studies, func(s tuner.Study) bool { return s.Name == name }) {
		return err
	}
	names := make([]string, len(studies))
	for i, s := range studies {
		names[i] = s.Name
	}
	text := "there are no studies yet"
	switch near := similar(name, names); {
	case near != "":
		text = fmt.Sprintf("did you mean %s?", near)
	case len(names) > 0 && len(names) <= 8 && !more:
		text = "there is " + strings.Join(names, ", ")
	case len(names) > 0:
		text = "list them with tuner studies"
	}
	return &statusError{exitNotFound, fmt.Errorf("there is no study %q; %s", name, text)}
}

// similar returns the name that a misspelled name most likely stands for, or "".
func similar(name string, names []string) string {
	limit := max(2, len(name)/4) + 1
	if len(name) < 4 { // most short words are near to others
		limit = 2
	}
	return nearest.Name(name, names, limit)
}
