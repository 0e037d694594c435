package postgres

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// DefaultSchema is the schema of the tables if the address names none.
const DefaultSchema = "bkb"

// IsAddress tells whether text looks like the address of a database.
func IsAddress(text string) bool {
	return strings.HasPrefix(text, "postgres://") || strings.HasPrefix(text, "postgresql://")
}

// HasPassword tells whether an address has a password in it.
func HasPassword(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	_, has := u.User.Password()
	return has || u.Query().Has("password")
}

// target is an address that was understood.
type target struct {
	pool     *pgxpool.Config
	schema   string
	database string   // for messages
	warnings []string // about the connection
}

// quoted is the schema as an identifier of SQL.
func (t target) quoted() string { return pgx.Identifier{t.schema}.Sanitize() }

// nameWithoutQuotes is that of a schema, which has at most 63 bytes in PostgreSQL.
var nameWithoutQuotes = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// parse reads an address. Its errors name no part of the address that may be a password.
func parse(address string) (target, error) {
	wrong := func(format string, args ...any) error {
		return refuse("", ErrURL, fmt.Sprintf(format, args...), "write it as postgres://USER@HOST:PORT/DATABASE, with the password in the file that PGPASSFILE names")
	}
	if !IsAddress(address) {
		return target{}, wrong("it does not begin with postgres://")
	}
	u, err := url.Parse(address)
	if err != nil {
		if ue := (*url.Error)(nil); errors.As(err, &ue) {
			err = ue.Err
		}
		if _, isEscape := err.(url.EscapeError); isEscape {
			return target{}, wrong("a %% must be followed by two hexadecimal digits")
		}
		return target{}, wrong("it is not a URL, because of a space, a colon or another special character")
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil { // as of a;b, of which the library would drop both
		return target{}, wrong("its parameters cannot be read; separate them by &, and write %%3B for a semicolon")
	}
	t := target{schema: DefaultSchema}
	if q.Has("schema") {
		t.schema = q.Get("schema")
		q.Del("schema")
	}
	if !nameWithoutQuotes.MatchString(t.schema) {
		return target{}, wrong("the schema %q must have at most 63 lower-case letters, digits and '_', and no digit in front", t.schema)
	}
	u.RawQuery = q.Encode()
	config, err := pgxpool.ParseConfig(u.String())
	if err != nil {
		return target{}, wrong("%s", reason(err))
	}
	hosts := hostsOf(&config.ConnConfig.Config)
	named := func(parameter, variable string) bool { return q.Has(parameter) || os.Getenv(variable) != "" }
	if anyRemote(hosts) && !named("sslmode", "PGSSLMODE") && !named("service", "PGSERVICE") {
		q.Set("sslmode", "verify-full")
		u.RawQuery = q.Encode()
		if config, err = pgxpool.ParseConfig(u.String()); err != nil {
			return target{}, wrong("%s", reason(err))
		}
	}
	if len(hosts) > 1 && !named("target_session_attrs", "PGTARGETSESSIONATTRS") {
		config.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	if anyRemote(hosts) && !verified(&config.ConnConfig.Config) {
		t.warnings = append(t.warnings, "the connection to the database is not protected against interception; use sslmode=verify-full")
	}
	t.pool = config
	t.database = strings.Join(hosts, ",") + "/" + config.ConnConfig.Database
	if t.schema != DefaultSchema {
		t.database += " (schema " + t.schema + ")"
	}
	return t, nil
}

// reason is the part of an error about an address that does not repeat the address.
func reason(err error) string {
	text := err.Error()
	if _, after, found := strings.Cut(text, "`: "); found {
		text = after
	}
	// Numbers and durations are quoted in the error of the parser below.
	if inner := errors.Unwrap(err); inner != nil {
		if e := (*strconv.NumError)(nil); errors.As(inner, &e) {
			return "a parameter must be a number"
		}
		if strings.HasPrefix(text, "cannot parse") {
			return "it cannot be read"
		}
	}
	if before, _, found := strings.Cut(text, " ("); found {
		text = before
	}
	return text
}

// hostsOf lists the hosts with their ports, without repetition.
func hostsOf(c *pgconn.Config) []string {
	hosts := []string{hostPort(c.Host, c.Port)}
	for _, f := range c.Fallbacks {
		if h := hostPort(f.Host, f.Port); h != hosts[len(hosts)-1] {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

func hostPort(host string, port uint16) string {
	if strings.HasPrefix(host, "/") { // the directory of a socket
		return host + ":" + strconv.Itoa(int(port))
	}
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}

// anyRemote tells whether one of the hosts is another machine.
func anyRemote(hosts []string) bool {
	for _, h := range hosts {
		if strings.HasPrefix(h, "/") {
			continue
		}
		host, _, err := net.SplitHostPort(h)
		ip := net.ParseIP(host)
		if err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return true
		}
	}
	return false
}

// verified tells whether every connection checks the certificate and name of its host.
func verified(c *pgconn.Config) bool {
	ok := c.TLSConfig != nil && !c.TLSConfig.InsecureSkipVerify
	for _, f := range c.Fallbacks {
		ok = ok && f.TLSConfig != nil && !f.TLSConfig.InsecureSkipVerify
	}
	return ok
}
