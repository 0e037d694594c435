// Package cli is what all commands share: the flags of the connection, and opening the file,
// database or server that they name, the formats of output, errors with their exit codes,
// the pages of help, and completion in shells.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/bolt"
	"github.com/bkbtuner/bkb/store/postgres"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/artifacts"
	"github.com/bkbtuner/bkb/tuner/client"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/serve"
	"github.com/bkbtuner/bkb/tuner/shared"
	"github.com/bkbtuner/bkb/tuner/wire"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Globals are the flags that all commands have.
type Globals struct {
	Db          string
	Server      string
	Store       string
	TokenFile   string
	Ca          string
	Cert, Key   string
	Insecure    bool
	LockTimeout time.Duration
	RetryFor    time.Duration
	Quiet       bool
	Verbose     int
	color       string
	propose     time.Duration // of commands with the flag of proposeFlag
	waited      atomic.Bool   // the command said that it waits for a file
}

const (
	defaultDB          = "tuner.db"
	defaultLockTimeout = 30 * time.Second
	defaultRetryFor    = time.Minute
)

func (g *Globals) Flags(root *cobra.Command) {
	f := root.PersistentFlags()
	f.SortFlags = false
	f.StringVar(&g.Db, "db", "", "`file` of studies (default $TUNER_DB or "+defaultDB+")")
	f.StringVar(&g.Server, "server", "", "`host:port` or unix:path (default $TUNER_SERVER)")
	f.StringVar(&g.Store, "store", "", "`URL` of a database (default $TUNER_STORE)")
	f.StringVar(&g.TokenFile, "token-file", "", "`file` with the token for the server, mode 0600 (default $TUNER_TOKEN)")
	f.StringVar(&g.Ca, "ca", "", "PEM `file` with the CA certificate that signed the server's (default the system's CAs)")
	f.StringVar(&g.Cert, "cert", "", "PEM `file` with the client certificate for the server")
	f.StringVar(&g.Key, "key", "", "PEM `file` with the private key of --cert")
	f.BoolVar(&g.Insecure, "insecure", false, "no TLS to a server on another machine")
	f.DurationVar(&g.LockTimeout, "lock-timeout", defaultLockTimeout, "longest wait for a file that another process uses")
	f.DurationVar(&g.RetryFor, "retry-for", defaultRetryFor, "longest time of retries for an unreachable server or database, 0 for one try")
	f.BoolVarP(&g.Quiet, "quiet", "q", false, "no messages on stderr except errors")
	f.CountVarP(&g.Verbose, "verbose", "v", "more messages, all with -vv")
	ChoiceVar(f, &g.color, "color", "", "colours `when`", colorAuto, colorAlways, colorNever)
	f.VisitAll(func(flag *pflag.Flag) {
		switch flag.Name {
		case "quiet", "verbose", "color":
			Assign(flag, Group{"General", generalPage})
		default:
			Assign(flag, Group{"Connection", "tuner help connection"})
		}
	})
}

// ProposeFlag adds the flag with the time that asks wait for suggestions.
func (g *Globals) ProposeFlag(fs *pflag.FlagSet) {
	fs.DurationVar(&g.propose, "propose-timeout", engine.DefaultProposeTimeout, "wait before a random suggestion")
}

// CheckPropose refuses a wrong flag of proposeFlag.
func (g *Globals) CheckPropose(cmd *cobra.Command, address string) error {
	switch f := cmd.Flag("propose-timeout"); {
	case f == nil || !f.Changed:
		return nil
	case g.propose <= 0:
		return Usagef("--propose-timeout %s: must be above 0, such as %s", g.propose, engine.DefaultProposeTimeout)
	case address != "":
		return Usagef("--propose-timeout %s: has no effect on the server at %s; leave it out, and set it in tuner serve", g.propose, address)
	}
	return nil
}

// Service are the options of a service on a file.
func (g *Globals) Service() engine.Options { return engine.Options{ProposeTimeout: g.propose} }

// Note writes a message to stderr, unless --quiet is given.
func (g *Globals) Note(cmd *cobra.Command, format string, args ...any) {
	if !g.Quiet {
		fmt.Fprintln(cmd.ErrOrStderr(), strip(fmt.Sprintf(format, args...)))
	}
}

// Logger is the logger of the parts of the program.
func (g *Globals) Logger(cmd *cobra.Command, level slog.Level) *slog.Logger {
	switch {
	case g.Quiet:
		level = slog.LevelError
	case g.Verbose == 1:
		level = min(level, slog.LevelInfo)
	case g.Verbose > 1:
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: level}))
}

// File is the file to work on.
func (g *Globals) File() string {
	return cmp.Or(g.Db, os.Getenv("TUNER_DB"), defaultDB)
}

// Address is the server to work on, empty for a file.
func (g *Globals) Address() string {
	if g.Db != "" || g.Store != "" { // a flag is stronger than the environment
		return g.Server
	}
	return cmp.Or(g.Server, os.Getenv("TUNER_SERVER"))
}

// Existing says whether a command may create the file.
type Existing bool

const (
	MustExist Existing = true
	MayCreate Existing = false
)

// Open returns the service that the command works on.
func (g *Globals) Open(cmd *cobra.Command, e Existing) (tuner.Service, error) {
	address := g.Address()
	if err := g.CheckPropose(cmd, address); err != nil {
		return nil, err
	}
	if address != "" {
		return g.Dial(cmd, address)
	}
	path, logger, o := g.File(), g.Logger(cmd, slog.LevelWarn), g.Service()
	o.Logger = logger
	if place := g.Database(); place != "" {
		return g.onDatabase(cmd, place, o), nil
	}
	o.Artifacts = artifacts.Beside(path, 0)
	return shared.New(func(ctx context.Context) (tuner.Service, error) { return g.onFile(ctx, cmd, path, e, o) }), nil
}

// onFile opens a file once no other process uses it, or reaches the server that has it open.
func (g *Globals) onFile(ctx context.Context, cmd *cobra.Command, path string, e Existing, o engine.Options) (svc tuner.Service, err error) {
	err = g.WhenFree(ctx, cmd, func(turn time.Duration) error {
		if svc = g.serverOf(path); svc != nil {
			return nil
		}
		st, err := openFile(path, bolt.Options{MustExist: bool(e), LockTimeout: turn, Logger: o.Logger})
		if err == nil {
			svc = engine.Open(st, o)
		}
		return err
	})
	return svc, FileError(err, path)
}

// serverOf returns a client of the server that has the file open, or nil if there is none.
// It gives up soon when that server stops, because the file is free then.
func (g *Globals) serverOf(path string) tuner.Service {
	socket, err := filepath.EvalSymlinks(serve.Socket(path))
	if err != nil {
		return nil
	}
	conn, err := net.DialTimeout("unix", socket, time.Second)
	if err != nil {
		return nil
	}
	conn.Close()
	svc, err := client.Dial("unix:"+socket, client.Options{Plaintext: true, RetryFor: 2 * time.Second, TraceParent: os.Getenv("TRACEPARENT")})
	if err != nil {
		return nil
	}
	return svc
}

// OpenFile opens a file for a command that needs the file itself.
func (g *Globals) OpenFile(ctx context.Context, cmd *cobra.Command, path string, o bolt.Options) (st *bolt.Store, err error) {
	err = g.WhenFree(ctx, cmd, func(turn time.Duration) error {
		o.LockTimeout = turn
		st, err = openFile(path, o)
		return err
	})
	return st, FileError(err, path)
}

// waiting notes once that the command waits for a file.
func (g *Globals) waiting(cmd *cobra.Command) func(*bolt.FileError) {
	return func(used *bolt.FileError) {
		if !g.waited.Swap(true) {
			g.Note(cmd, "Waiting up to %v for %s, which %s has open.", g.LockTimeout, used.Path, used.Process())
		}
	}
}

// WhenFree calls open until the file is not in use, for at most --lock-timeout. open
// waits for turn.
func (g *Globals) WhenFree(ctx context.Context, cmd *cobra.Command, open func(turn time.Duration) error) error {
	return bolt.WhenFree(ctx, g.LockTimeout, g.waiting(cmd), open)
}

// openFile opens a file. One that must exist and is not writable, for its permissions or
// because of its disk, is opened for commands that read.
func openFile(path string, o bolt.Options) (*bolt.Store, error) {
	st, err := bolt.Open(path, o)
	if o.MustExist && !o.ReadOnly && (errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)) {
		o.ReadOnly = true
		if st, err = bolt.Open(path, o); err == nil {
			o.Logger.Info("the file is not writable and is opened for reading", "path", path)
		}
	}
	return st, err
}

// FileError gives errors of opening a file their exit code.
func FileError(err error, path string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, bolt.ErrMissing) && !IsDir(filepath.Dir(path)):
		return Exit(ExitNotFound, fmt.Errorf("there is no directory %s for the file %s; create it first, or name another file with --db", filepath.Dir(path), filepath.Base(path)))
	case errors.Is(err, bolt.ErrMissing):
		return Exit(ExitNotFound, fmt.Errorf("there is no file %s; create a study first (tuner create-study), or name the file with --db", path))
	case errors.Is(err, bolt.ErrInUse):
		// The code makes patient callers try again.
		return &tuner.RemoteError{Code: tuner.Unavailable, Message: err.Error() + "; if it is a server, use --server"}
	case errors.Is(err, bolt.ErrDamaged), errors.Is(err, bolt.ErrTruncated), errors.Is(err, bolt.ErrEmpty), errors.Is(err, bolt.ErrForeign):
		return Exit(ExitDamaged, err)
	default:
		return err
	}
}

// Credentials yields the flags that name files for a connection and were given, with the files.
func (g *Globals) Credentials() iter.Seq2[string, string] {
	return func(yield func(flag, path string) bool) {
		for _, f := range [][2]string{{"token-file", g.TokenFile}, {"ca", g.Ca}, {"cert", g.Cert}, {"key", g.Key}} {
			if f[1] != "" && !yield(f[0], f[1]) {
				return
			}
		}
	}
}

// Dial connects to a server. It uses TLS if the server is on another machine or a
// certificate is given.
func (g *Globals) Dial(cmd *cobra.Command, address string) (*client.Client, error) {
	for _, one := range client.Addresses(address) {
		if _, port, err := net.SplitHostPort(one); !strings.HasPrefix(one, "unix:") && (err != nil || port == "") {
			return nil, Usagef("--server %s: must be host:port or unix:path, such as localhost:7070, or host:port,host:port of several servers", address)
		}
	}
	for flag, path := range g.Credentials() {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, Exit(ExitNotFound, fmt.Errorf("--%s %s: there is no such file", flag, path))
		}
		if g.Insecure && flag != "token-file" {
			return nil, Usagef("--insecure and --%s exclude each other, because a certificate needs TLS; leave one of them out", flag)
		}
	}
	o := client.Options{CAFile: g.Ca, CertFile: g.Cert, KeyFile: g.Key, TraceParent: os.Getenv("TRACEPARENT")}
	if o.RetryFor = g.RetryFor; o.RetryFor <= 0 {
		o.RetryFor = -1
	}
	o.OnTrouble = func(t client.Trouble) {
		g.Note(cmd, "Cannot reach %s (%s). Trying until %s.", t.Address, t.Why, t.Until.Format(time.TimeOnly))
	}
	o.Plaintext = g.Insecure || client.Local(address) && g.Ca == "" && g.Cert == ""
	switch {
	case g.TokenFile != "":
		var err error
		if o.Token, err = wire.ReadToken(g.TokenFile); err != nil {
			return nil, err
		}
	case os.Getenv("TUNER_TOKEN") != "":
		o.Token = wire.NewToken(strings.TrimSpace(os.Getenv("TUNER_TOKEN"))) // a Secret may end with a line end
	}
	return client.Dial(address, o)
}

// Environment has the variables by which a child process finds the file or server.
func (g *Globals) Environment() []string {
	if address := g.Address(); address != "" {
		return []string{"TUNER_SERVER=" + address}
	}
	if address := g.Database(); address != "" {
		return []string{"TUNER_STORE=" + address, "TUNER_SERVER="}
	}
	return []string{"TUNER_DB=" + whole(g.File()), "TUNER_SERVER=", "TUNER_STORE="}
}

// whole is the path from the root, so that it means the same in each folder.
func whole(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// Connection has the flags that reach the same studies from each folder, as a shell takes
// them. The password of a database is not among them.
func (g *Globals) Connection() string {
	words := []string{"--db", whole(g.File())}
	if address := g.Address(); address != "" {
		words = []string{"--server", address}
		for flag, path := range g.Credentials() {
			words = append(words, "--"+flag, whole(path))
		}
		if g.Insecure {
			words = append(words, "--insecure")
		}
	} else if address := g.Database(); address != "" {
		if u, err := url.Parse(address); err != nil || u.User != nil {
			return `--store "$TUNER_STORE"`
		}
		words = []string{"--store", address}
	}
	for i := range words {
		words[i] = ShellQuote(words[i])
	}
	return strings.Join(words, " ")
}

// With calls f with the service that the command works on.
func (g *Globals) With(cmd *cobra.Command, e Existing, f func(ctx context.Context, svc tuner.Service) error) (err error) {
	svc, err := g.Open(cmd, e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, svc.Close()) }()
	return f(cmd.Context(), svc)
}

// WithStudy is with for commands on a study, which the first argument or TUNER_STUDY
// names. If there is no such study, the error lists the others.
func (g *Globals) WithStudy(cmd *cobra.Command, args []string, f func(ctx context.Context, svc tuner.Service, name string) error) error {
	name, unnamed := StudyName(args)
	err := g.With(cmd, MustExist, func(ctx context.Context, svc tuner.Service) error {
		if unnamed != nil {
			if studies, more, err := svc.Studies(ctx, "", 0); err == nil {
				unnamed = Usagef("%w; %s", unnamed, theStudies(studies, more))
			}
			return nil
		}
		err := f(ctx, svc, name)
		if tuner.CodeOf(err) == tuner.NotFound {
			return Explain(ctx, svc, name, err)
		}
		return err
	})
	return cmp.Or(unnamed, err)
}

// WithView is WithStudy for commands that begin by reading the study.
func (g *Globals) WithView(cmd *cobra.Command, args []string, f func(ctx context.Context, svc tuner.Service, view tuner.Study) error) error {
	return g.WithStudy(cmd, args, func(ctx context.Context, svc tuner.Service, name string) error {
		view, err := svc.Study(ctx, name)
		if err != nil {
			return err
		}
		return f(ctx, svc, view)
	})
}

// Explain adds the names of the existing studies to the error of a missing one.
func Explain(ctx context.Context, svc tuner.Service, name string, err error) error {
	missing := (*store.NotFoundError)(nil)
	remote := (*tuner.RemoteError)(nil)
	if !errors.As(err, &missing) && !errors.As(err, &remote) {
		return err
	}
	studies, more, listErr := svc.Studies(ctx, "", 0)
	if listErr != nil || slices.ContainsFunc(studies, func(s tuner.Study) bool { return s.Name == name }) {
		return err
	}
	text := theStudies(studies, more)
	if near := Similar(name, namesOf(studies)); near != "" {
		text = fmt.Sprintf("did you mean %s?", near)
	}
	return Exit(ExitNotFound, fmt.Errorf("there is no study %q; %s", name, text))
}

func namesOf(studies []tuner.Study) []string {
	names := make([]string, len(studies))
	for i, s := range studies {
		names[i] = s.Name
	}
	return names
}

// theStudies says which studies there are.
func theStudies(studies []tuner.Study, more bool) string {
	switch {
	case len(studies) == 0:
		return "there are no studies yet"
	case len(studies) <= 8 && !more:
		return "there is " + strings.Join(namesOf(studies), ", ")
	}
	return "list them with tuner studies"
}

// Database is the address of the database to work on, empty for a file or a server.
func (g *Globals) Database() string {
	if g.Db != "" || g.Address() != "" { // a flag is stronger than the environment
		return g.Store
	}
	return cmp.Or(g.Store, os.Getenv("TUNER_STORE"))
}

// Check refuses two places for the studies, and one that the command cannot use.
func (g *Globals) Check(cmd *cobra.Command) error {
	var flags []string
	for _, f := range []struct{ name, value string }{{"--db", g.Db}, {"--server", g.Server}, {"--store", g.Store}} {
		if f.value != "" {
			flags = append(flags, f.name)
		}
	}
	to := Place(cmd.Annotations[connectKey])
	switch {
	case len(flags) > 1:
		return Usagef("%s and %s exclude each other", flags[0], flags[1])
	case g.Server != "" && (to == ToFile || to == ToPlace):
		return Usagef("%s works on a file; leave --server out", cmd.CommandPath())
	}
	return nil
}

// OnFile refuses a database for commands that work on files. instead says what to do.
func (g *Globals) OnFile(cmd *cobra.Command, instead string) error {
	if g.Database() != "" {
		return Usagef("%s works on a file, not on a database; %s", cmd.CommandPath(), instead)
	}
	return nil
}

// NotePassword warns of an address with a password on the command line.
func (g *Globals) NotePassword(cmd *cobra.Command, address string) {
	if postgres.HasPassword(address) && address != os.Getenv("TUNER_STORE") {
		g.Note(cmd, "Other users of this machine can see the password on the command line. Put it into a file for PGPASSFILE, or the address into TUNER_STORE.")
	}
}

// OpenDatabase opens the store in a database. While it cannot be reached it tries again
// for --retry-for.
func (g *Globals) OpenDatabase(ctx context.Context, cmd *cobra.Command, address string, logger *slog.Logger) (*postgres.Store, error) {
	g.NotePassword(cmd, address)
	st, err := postgres.OpenWithin(ctx, address, postgres.Options{Logger: logger}, g.RetryFor, func(err error, until time.Time) {
		g.Note(cmd, "%v. Trying until %s.", err, until.Format(time.TimeOnly))
	})
	return st, DatabaseError(err)
}

// DatabaseError gives errors of opening a database their exit code.
func DatabaseError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, postgres.ErrURL):
		return Usage(err)
	case errors.Is(err, postgres.ErrMissing):
		return Exit(ExitNotFound, err)
	case errors.Is(err, postgres.ErrForeign):
		return Exit(ExitDamaged, err)
	case errors.Is(err, postgres.ErrNewerFormat), errors.Is(err, postgres.ErrOlderFormat), errors.Is(err, postgres.ErrUnsafe):
		return Exit(ExitUnsupported, err)
	case errors.Is(err, postgres.ErrDenied):
		return &tuner.RemoteError{Code: tuner.Denied, Message: err.Error()}
	default:
		return err
	}
}

// lent is a store that stays open when its borrower closes it.
type lent struct{ *postgres.Store }

func (lent) Close() error { return nil }

// onDatabase returns the service over a database. The connections stay open while the
// command runs. A study is read again after a pause, because other processes write too.
func (g *Globals) onDatabase(cmd *cobra.Command, address string, o engine.Options) *shared.Service {
	var st *postgres.Store
	s := shared.New(func(ctx context.Context) (_ tuner.Service, err error) {
		if st == nil {
			if st, err = g.OpenDatabase(ctx, cmd, address, o.Logger); err != nil {
				st = nil
				return nil, err
			}
		}
		return engine.Open(lent{st}, o), nil
	})
	s.Closed = func() error {
		if st == nil {
			return nil
		}
		return st.Close()
	}
	return s
}
