package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/internal/pgtest"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/storetest/eventtest"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/jackc/pgx/v5"
)

// exec runs a statement in the schema of an address.
func exec(t *testing.T, address, sql string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	schema := u.Query().Get("schema")
	u.RawQuery = ""
	conn, err := pgx.Connect(t.Context(), u.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), strings.ReplaceAll(sql, "@", schema)); err != nil {
		t.Fatal(err)
	}
}

// TestOpenRefuses opens databases that are no stores, or none of this program.
func TestOpenRefuses(t *testing.T) {
	for _, c := range []struct {
		name, sql string
		want      error
	}{
		{"no schema", "DROP SCHEMA @ CASCADE", ErrMissing},
		{"no tables", "DROP SCHEMA @ CASCADE; CREATE SCHEMA @", ErrMissing},
		{"foreign table", "DROP TABLE @.meta; CREATE TABLE @.meta (version int)", ErrForeign},
		{"no meta", "DROP TABLE @.meta", ErrForeign},
		{"no row", "DELETE FROM @.meta", ErrForeign},
		{"other magic", "UPDATE @.meta SET magic = 'other'", ErrForeign},
		{"newer", "UPDATE @.meta SET format = 9", ErrNewerFormat},
		{"older", "UPDATE @.meta SET format = 0", ErrOlderFormat},
	} {
		t.Run(c.name, func(t *testing.T) {
			address := newStore(t)
			exec(t, address, c.sql)
			s, err := Open(t.Context(), address, Options{UnsafeNoSync: true})
			if !errors.Is(err, c.want) {
				t.Errorf("Open = %v, %v; want %v", s, err, c.want)
			}
		})
	}
}

// TestInit creates a store from several programs at once. One makes it and all find the
// same one.
func TestInit(t *testing.T) {
	address := pgtest.Address(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	found, makers := make(map[string]bool), 0
	for range 8 {
		wg.Go(func() {
			id, made, err := Init(t.Context(), address, InitOptions{Program: "test 1"})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			if made {
				makers++
			}
			found[id.Store] = true
		})
	}
	wg.Wait()
	if makers != 1 || len(found) != 1 {
		t.Errorf("%d made %d stores, want 1 and 1", makers, len(found))
	}
	exec(t, address, "UPDATE @.meta SET magic = 'other'")
	if _, _, err := Init(t.Context(), address, InitOptions{}); !errors.Is(err, ErrForeign) {
		t.Errorf("Init beside foreign tables: %v", err)
	}
}

// TestUpgrade brings a store to a format with one more table, and lets a program of the
// earlier format refuse it.
func TestUpgrade(t *testing.T) {
	address := newStore(t)
	s := mustOpen(t, address, Options{})
	info, err := s.Create(t.Context(), "kept", eventtest.Examples()[:1])
	if err != nil {
		t.Fatal(err)
	}
	if _, from, err := Upgrade(t.Context(), address, InitOptions{}); err != nil || from != Format {
		t.Errorf("Upgrade to the same format: from %d, %v", from, err)
	}
	later := InitOptions{Program: "test 2", migrations: append(migrations[:len(migrations):len(migrations)], "CREATE TABLE @.later (n int)")}
	dry := later
	dry.DryRun, dry.Grant = true, "no such role"
	if id, from, err := Upgrade(t.Context(), address, dry); err != nil || from != Format || id.Format != Format+1 || id.Store != s.Identity().Store {
		t.Errorf("a dry run = %+v from %d, %v", id, from, err)
	}
	id, from, err := Upgrade(t.Context(), address, later)
	if err != nil || from != Format || id.Format != Format+1 || id.Store != s.Identity().Store || id.Writer != "test 2" {
		t.Errorf("Upgrade = %+v from %d, %v", id, from, err)
	}
	exec(t, address, "INSERT INTO @.later VALUES (1)")
	if _, err := Open(t.Context(), address, Options{UnsafeNoSync: true}); !errors.Is(err, ErrNewerFormat) {
		t.Errorf("the earlier program opened it: %v", err)
	}
	if _, _, err := Upgrade(t.Context(), address, InitOptions{}); !errors.Is(err, ErrNewerFormat) {
		t.Errorf("the earlier program upgraded it: %v", err)
	}
	if got, err := s.Stat(t.Context(), info.ID); err != nil || got != info {
		t.Errorf("the study is %+v, %v", got, err)
	}
	if _, _, err := Upgrade(t.Context(), pgtest.Address(t), InitOptions{}); !errors.Is(err, ErrMissing) {
		t.Errorf("Upgrade of nothing: %v", err)
	}
}

// TestGrant lets a role write studies that cannot change tables.
func TestGrant(t *testing.T) {
	address := newStore(t)
	u, _ := url.Parse(address)
	role := "dml_" + u.Query().Get("schema")
	exec(t, address, "CREATE ROLE "+role+" LOGIN")
	defer exec(t, address, "DROP OWNED BY "+role+"; DROP ROLE "+role)
	u.User = url.User(role)
	if _, err := Open(t.Context(), u.String(), Options{UnsafeNoSync: true}); !errors.Is(err, ErrDenied) {
		t.Errorf("Open without rights: %v", err)
	}
	if _, _, err := Init(t.Context(), address, InitOptions{Grant: role}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Init(t.Context(), address, InitOptions{Grant: "absent"}); !errors.Is(err, ErrDenied) {
		t.Errorf("Init for an absent role: %v", err)
	}
	s := mustOpen(t, u.String(), Options{})
	info, err := s.Create(t.Context(), "a", eventtest.Examples()[:1])
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(t.Context(), info.ID, 1, []study.Event{{Body: study.Paused{}}}, nil); err != nil {
		t.Error(err)
	}
	if err := s.Delete(t.Context(), info.ID); err != nil {
		t.Error(err)
	}
	if _, _, err := Upgrade(t.Context(), u.String(), InitOptions{migrations: append(migrations[:Format:Format], "CREATE TABLE @.later (n int)")}); !errors.Is(err, ErrDenied) {
		t.Errorf("Upgrade by that role: %v", err)
	}
	exec(t, address, "REVOKE ALL ON @.study, @.event FROM "+role)
	exec(t, address, "GRANT SELECT ON @.study TO "+role)
	if _, err := s.Create(t.Context(), "b", eventtest.Examples()[:1]); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("Create without the right: %v", err)
	}
}

// TestUnsafe refuses databases that acknowledge writes before they are on disk.
func TestUnsafe(t *testing.T) {
	t.Parallel() // it waits more than it computes
	server, err := pgtest.Start("fsync = off")
	if err != nil {
		pgtest.Skip(t, err)
	}
	defer server.Stop()
	address := server.Address()
	if _, _, err := Init(t.Context(), address, InitOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), address, Options{}); !errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), "fsync") {
		t.Errorf("Open with fsync off: %v", err)
	}
	mustOpen(t, address, Options{UnsafeNoSync: true})
	server.Shutdown()
	if err := server.Configure("fsync = on"); err != nil {
		t.Fatal(err)
	}
	if err := server.Run(); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), address, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if d, err := s.Durability(t.Context()); err != nil || !d.Fsync || d.synchronous() || len(d.warnings()) != 0 {
		t.Errorf("Durability = %+v, %v", d, err)
	}
	exec(t, address, "ALTER DATABASE postgres SET synchronous_commit = off")
	if _, err := Open(t.Context(), address, Options{}); !errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), "synchronous_commit") {
		t.Errorf("Open with synchronous_commit off: %v", err)
	}
}

// TestDurability says what each combination of settings survives.
func TestDurability(t *testing.T) {
	for _, c := range []struct {
		d        Durability
		survives string
		warns    string
	}{
		{Durability{Fsync: true, FullPageWrites: true, SynchronousCommit: "on"}, "crashes", ""},
		{Durability{Fsync: true, FullPageWrites: true, SynchronousCommit: "on", Standbys: 1}, "crashes", "asynchronous"},
		{Durability{Fsync: true, FullPageWrites: true, SynchronousCommit: "on", SynchronousStandbys: "b", Standbys: 1}, "loss of the primary", ""},
		{Durability{Fsync: true, FullPageWrites: true, SynchronousCommit: "local", SynchronousStandbys: "b", Standbys: 1}, "crashes", "asynchronous"},
		{Durability{Fsync: true, SynchronousCommit: "on"}, "crashes", "full_page_writes"},
		{Durability{SynchronousCommit: "on"}, "nothing", ""},
	} {
		warns := strings.Join(c.d.warnings(), " ")
		if !strings.Contains(c.d.Survives(), c.survives) || (c.warns == "") != (warns == "") || !strings.Contains(warns, c.warns) {
			t.Errorf("%+v survives %q with warnings %q", c.d, c.d.Survives(), warns)
		}
	}
}

// TestSecrets looks for the password in the errors and log lines of addresses that fail.
func TestSecrets(t *testing.T) {
	const secret = "geheim%21wort"
	base, err := url.Parse(pgtest.Base(t))
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	o := Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	for _, address := range []string{
		"postgres://u:" + secret + "@127.0.0.1:port/db",
		"postgres://u:" + secret + "@127.0.0.1:1/db",
		"postgres://u:" + secret + "%zz@127.0.0.1:1/db",
		"postgres://u:" + secret + " @127.0.0.1:1/db",
		"postgres://u:" + secret + "\x01@127.0.0.1:1/db",
		"postgres://u@127.0.0.1:1/db?password=" + secret + "&connect_timeout=soon",
		"postgres://u@127.0.0.1:1/db?schema=mine;password=" + secret,
		"postgres://u@127.0.0.1:1/db?password=" + secret + "&schema=%zz",
		"postgres://u@127.0.0.1:1/db?password=" + secret + "&sslmode=perhaps",
		"postgres://u:" + secret + "@127.0.0.1:1/db?pool_max_conns=many",
		"postgres://u:" + secret + "@127.0.0.1:1/db?schema=Üben",
		"postgresql:/u:" + secret + "@127.0.0.1:1/db",
		"mysql://u:" + secret + "@127.0.0.1:1/db",
		"postgres://" + pgtest.LockedUser + ":" + secret + "@" + base.Host + base.Path,
		"postgres://nobody:" + secret + "@" + base.Host + base.Path,
		"postgres://u:" + secret + "@" + base.Host + "/absent",
	} {
		for _, try := range []func() error{
			func() error { _, err := Open(t.Context(), address, o); return err },
			func() error { _, _, err := Init(t.Context(), address, InitOptions{}); return err },
			func() error { _, _, err := Upgrade(t.Context(), address, InitOptions{}); return err },
		} {
			err := try()
			text := fmt.Sprintf("%v %+v", err, err)
			if err == nil {
				t.Errorf("an address was accepted: %s", address)
			}
			if strings.Contains(text, "geheim") || strings.Contains(text, "wort!") {
				t.Errorf("the error has the password: %s", text)
			}
			if e, ok := errors.AsType[*Error](err); !ok || e.Remedy == "" {
				t.Errorf("the error names no remedy: %v", err)
			}
		}
	}
	if strings.Contains(log.String(), "geheim") {
		t.Errorf("the log has the password: %s", log.String())
	}
}

// Parameters that cannot be read are refused, and none is dropped.
func TestBrokenParameters(t *testing.T) {
	for _, query := range []string{"schema=mine;sslmode=disable", "a;b", "schema=%zz", "sslmode=disable&schema=mine;"} {
		if _, err := parse("postgres://u@localhost/db?" + query); !errors.Is(err, ErrURL) {
			t.Errorf("%s: error is %v", query, err)
		}
	}
	if got, err := parse("postgres://u@localhost/db?application_name=a%3Bb&schema=mine"); err != nil || got.schema != "mine" {
		t.Errorf("an escaped semicolon: %q, %v", got.schema, err)
	}
}

// TestAddress checks which hosts need TLS, and that a pair of hosts is one database.
func TestAddress(t *testing.T) {
	for _, name := range []string{"PGSSLMODE", "PGSERVICE", "PGHOST", "PGPORT", "PGTARGETSESSIONATTRS"} {
		t.Setenv(name, "")
	}
	for _, c := range []struct {
		address  string
		verified bool
		warnings int
		database string
	}{
		{"postgres://u@127.0.0.1:5432/db", false, 0, "127.0.0.1:5432/db"},
		{"postgres://u@localhost/db", false, 0, "localhost:5432/db"},
		{"postgres:///db?host=/run/postgresql&user=u", false, 0, "/run/postgresql:5432/db"},
		{"postgres://u@db.example.org/db", true, 0, "db.example.org:5432/db"},
		{"postgres://u@db.example.org/db?sslmode=disable", false, 1, "db.example.org:5432/db"},
		{"postgres://u@a.example.org:1,b.example.org:2/db", true, 0, "a.example.org:1,b.example.org:2/db"},
		{"postgres://u@localhost/db?schema=mine", false, 0, "localhost:5432/db (schema mine)"},
	} {
		got, err := parse(c.address)
		if err != nil {
			t.Errorf("%s: %v", c.address, err)
			continue
		}
		if v := verified(&got.pool.ConnConfig.Config); v != c.verified || len(got.warnings) != c.warnings || got.database != c.database {
			t.Errorf("%s: verified %v, warnings %v, database %s", c.address, v, got.warnings, got.database)
		}
		if many := strings.Contains(c.address, ","); many != (got.pool.ConnConfig.ValidateConnect != nil) {
			t.Errorf("%s: a standby would be taken", c.address)
		}
	}
}

// TestSchemaName checks which schemas an address may name.
func TestSchemaName(t *testing.T) {
	for _, c := range []struct {
		name string
		ok   bool
	}{
		{"s", true},
		{"_", true},
		{"team_2", true},
		{strings.Repeat("a", 63), true},
		{strings.Repeat("a", 64), false},
		{"", false},
		{"2teams", false},
		{"Team", false},
		{"team-2", false},
		{"täm", false},
		{"a\n", false},
	} {
		if _, err := parse("postgres://u@localhost/db?schema=" + url.QueryEscape(c.name)); (err == nil) != c.ok {
			t.Errorf("schema %q: %v, want it allowed: %v", c.name, err, c.ok)
		}
	}
}

// TestUnreachable closes the way to the database. Calls fail as unavailable within the
// time to settle, and go on when the way is open again.
func TestUnreachable(t *testing.T) {
	t.Parallel() // it waits more than it computes
	server, err := pgtest.Start("fsync = off")
	if err != nil {
		pgtest.Skip(t, err)
	}
	defer server.Stop()
	if _, _, err := Init(t.Context(), server.Address(), InitOptions{}); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, server.Address(), Options{Settle: 300 * time.Millisecond})
	info, err := s.Create(t.Context(), "a", eventtest.Examples()[:1])
	if err != nil {
		t.Fatal(err)
	}
	event := []study.Event{{Body: study.Paused{}}}
	server.Shutdown()
	for range 3 {
		if _, err := s.Stat(t.Context(), info.ID); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("Stat without a database: %v", err)
		}
	}
	// By now no connection is left, so that nothing can have been sent.
	if err := s.Commit(t.Context(), info.ID, 1, event, nil); !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknownOutcome) {
		t.Errorf("Commit without a database: %v", err)
	}
	if _, err := s.Create(t.Context(), "b", eventtest.Examples()[:1]); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Create without a database: %v", err)
	}
	if err := s.Delete(t.Context(), info.ID); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Delete without a database: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	if _, err := s.Stat(ctx, info.ID); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Stat with a deadline: %v", err)
	}
	if _, err := Open(t.Context(), server.Address(), Options{}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Open without a database: %v", err)
	}
	if err := server.Run(); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(t.Context(), info.ID, 1, event, nil); err != nil {
		t.Errorf("Commit after the database is back: %v", err)
	}
}

// TestSilence swallows the answer to a commit and refuses new connections. The outcome
// is unknown and concerns the one study.
func TestSilence(t *testing.T) {
	t.Parallel() // it waits more than it computes
	address := newStore(t)
	u, _ := url.Parse(address)
	var deaf silence
	deaf.start(t, u.Host)
	u.Host = deaf.listener.Addr().String()
	s := mustOpen(t, u.String(), Options{Settle: 300 * time.Millisecond})
	info, err := s.Create(t.Context(), "a", eventtest.Examples()[:1])
	if err != nil {
		t.Fatal(err)
	}
	// The first commit prepares the statement.
	if err := s.Commit(t.Context(), info.ID, 1, []study.Event{{Body: study.Paused{}}}, nil); err != nil {
		t.Fatal(err)
	}
	deaf.fall()
	err = s.Commit(t.Context(), info.ID, 2, []study.Event{{Body: study.Paused{}}}, nil)
	unknown, ok := errors.AsType[*store.UnknownError](err)
	if !ok || unknown.Study != info.ID || !errors.Is(err, store.ErrUnknownOutcome) {
		t.Errorf("Commit without an answer: %v", err)
	}
	direct := mustOpen(t, address, Options{})
	if got, err := direct.Stat(t.Context(), info.ID); err != nil || got.Head != 3 {
		t.Errorf("the commit that reached the database left %+v, %v", got, err)
	}
}

// silence is a proxy that passes requests and, once it fell silent, no answers.
type silence struct {
	listener net.Listener
	mu       sync.Mutex
	silent   bool
}

func (x *silence) start(t *testing.T, to string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	x.listener = l
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil || x.fallen() {
				_ = in.Close()
				continue
			}
			go func() { _, _ = out.(*net.TCPConn).ReadFrom(in); _ = out.Close() }()
			go func() {
				b := make([]byte, 1<<16)
				for {
					n, err := out.Read(b)
					if err != nil || x.fallen() {
						_ = in.Close()
						return
					}
					_, _ = in.Write(b[:n])
				}
			}()
		}
	}()
}

func (x *silence) fall() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.silent = true
}

func (x *silence) fallen() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.silent
}

// TestReadOnlyTransactions opens a database whose transactions are read-only, as an
// administrator or the service of a full database sets it. It can be read, and writes say
// what is wrong at once.
func TestReadOnlyTransactions(t *testing.T) {
	address := newStore(t)
	if _, err := mustOpen(t, address, Options{}).Create(t.Context(), "there", eventtest.Examples()[:1]); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, address+"&default_transaction_read_only=on", Options{Settle: time.Hour})
	info, err := s.Lookup(t.Context(), "there")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for name, call := range map[string]func() error{
		"Register": func() error { _, err := s.Register(ctx, "", time.Second); return err },
		"Renew":    func() error { return s.Renew(ctx, 1, 1) },
		"Claim":    func() error { _, err := s.Claim(ctx, info.ID, 1); return err },
		"Create":   func() error { _, err := s.Create(ctx, "new", eventtest.Examples()[:1]); return err },
		"Commit": func() error {
			return s.Commit(ctx, info.ID, info.Head, []study.Event{{Time: time.Now(), Body: study.Paused{}}}, nil)
		},
		"Delete": func() error { return s.Delete(ctx, info.ID) },
	} {
		err := call()
		if !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, ErrReadOnly) || !strings.Contains(err.Error(), "set default_transaction_read_only = off") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
