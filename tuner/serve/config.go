package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/bkbtuner/bkb/store/bolt"
	"github.com/bkbtuner/bkb/store/bolt/backups"
	"github.com/bkbtuner/bkb/store/lease"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/server"
)

// Config says what a server serves, and where. Only File or Database must be given.
type Config struct {
	// File has the studies, and is created if it is missing. Database is the URL of a
	// PostgreSQL database that has them instead.
	File, Database string
	MaxFile        int64         // bytes, 0 for [bolt.DefaultMaxSize]
	LockTimeout    time.Duration // longest wait for a file that another process uses
	RetryFor       time.Duration // longest time of retries for an unreachable database

	// Server are the options of the gRPC face: address, TLS, tokens, limits, metrics and
	// the logger of the whole server.
	Server server.Options
	// Service are the options of the service. Only its limits and ProposeTimeout are used.
	Service engine.Options

	// HTTP is the host:port or unix:path of the page and of calls in JSON, empty for none.
	HTTP   string
	NoPage bool // calls alone
	// ReadyFile is a file in JSON (see [Ready]) that exists while the server serves.
	ReadyFile string

	Backups backups.Plan // of the file

	// Artifacts is the folder for files of trials, which all servers of a database share. Without
	// it a database has none. A file has them in the folder FILE.artifacts beside it.
	Artifacts     string
	ArtifactQuota int64 // bytes, 0 for [artifacts.DefaultQuota]

	// Advertise is the host:port where other servers of the database reach this one.
	Advertise string
	Takeover  time.Duration // after which others take over the studies of a dead server, 0 for [lease.DefaultTTL]

	MetricsStudies bool   // metrics of single studies, with their names
	Version        string // of the program, for metrics, the page and the ready file

	// OnServing, if not nil, is called once the server serves.
	OnServing func(Ready)
	// Notice, if not nil, receives why the server waits before it serves.
	Notice func(text string)
}

// ConfigError refuses a [Config]. It names the fields, so that a command can name its
// flags instead.
type ConfigError struct {
	text  string
	cause error
}

func (e *ConfigError) Error() string { return e.text }

func (e *ConfigError) Unwrap() error { return e.cause }

func wrong(format string, args ...any) error {
	return &ConfigError{text: fmt.Sprintf(format, args...)}
}

// Validate reports an error of the Config that it finds without listening or opening the store.
func (c *Config) Validate() error {
	if err := c.Server.Validate(); err != nil {
		return err
	}
	if err := c.Backups.Check(); err != nil {
		return wrong("Backups: %v", err)
	}
	if c.HTTP != "" {
		if err := server.CheckAddress(c.HTTP); err != nil {
			return wrong("HTTP: %v", err)
		}
	}
	folder := filepath.Dir(c.ReadyFile)
	switch {
	case (c.File == "") == (c.Database == ""):
		return wrong("File %q, Database %q: one of them must be given", c.File, c.Database)
	case c.Database != "" && c.Backups.Dir != "":
		return wrong("Backups has no effect on a database; leave it out, and use the database's own backups, such as pg_basebackup")
	case c.Database != "" && c.MaxFile != 0:
		return wrong("MaxFile has no effect on a database; leave it out")
	case c.Database == "" && c.Artifacts != "":
		return wrong("Artifacts has no effect on a file, whose artifacts are in the folder %s.artifacts; leave it out, and make that folder a link to another one if need be", c.File)
	case c.ArtifactQuota < 0:
		return wrong("ArtifactQuota %d: must be positive", c.ArtifactQuota)
	case c.Database != "" && c.Artifacts == "" && c.ArtifactQuota != 0:
		return wrong("ArtifactQuota has no effect on a database without Artifacts; leave it out, or give the folder that all servers of the database share")
	case c.Artifacts != "" && !isDir(c.Artifacts):
		return &ConfigError{fmt.Sprintf("Artifacts %s: there is no such directory; make it first, on a disk that all servers of the database share", c.Artifacts), fs.ErrNotExist}
	case c.Backups.Dir != "" && c.Backups.Every == 0:
		return wrong("Backups: Dir needs Every, such as 5m")
	case c.MetricsStudies && c.Server.MetricsAddress == "":
		return wrong("MetricsStudies: has no effect without MetricsAddress; leave it out, or give an address such as MetricsAddress 127.0.0.1:9090")
	case c.NoPage && c.HTTP == "":
		return wrong("NoPage: has no effect without HTTP; leave it out")
	case c.ReadyFile != "" && !isDir(folder):
		return &ConfigError{fmt.Sprintf("ReadyFile %s: there is no directory %s; make it first", c.ReadyFile, folder), fs.ErrNotExist}
	}
	return errors.Join(c.checkDistinct(), c.checkCluster())
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// checkDistinct refuses an address for two faces. Port 0 is another port each time.
func (c *Config) checkDistinct() error {
	of := make(map[string]string)
	for _, f := range []struct{ field, address string }{
		{"Address", c.Server.Address}, {"HTTP", c.HTTP}, {"MetricsAddress", c.Server.MetricsAddress},
	} {
		if f.address == "" || strings.HasSuffix(f.address, ":0") {
			continue
		}
		if other := of[f.address]; other != "" {
			return wrong("%s and %s are both %s; give each an address of its own", other, f.field, f.address)
		}
		of[f.address] = f.field
	}
	return nil
}

// checkCluster refuses fields that have no effect, and servers that could not trust each other.
func (c *Config) checkCluster() error {
	switch {
	case c.Database == "" && c.Advertise != "":
		return wrong("Advertise needs a database that servers share; give Database")
	case c.Database == "" && c.Takeover != 0:
		return wrong("Takeover has no effect on a file; leave it out, or give Database")
	case c.Takeover != 0 && (c.Takeover < lease.MinTTL || c.Takeover > lease.MaxTTL):
		return wrong("Takeover %v: must be %v to %v", c.Takeover, lease.MinTTL, lease.MaxTTL)
	case c.Advertise == "":
		return nil
	}
	host, port, err := net.SplitHostPort(c.Advertise)
	if ip := net.ParseIP(host); err != nil || host == "" || port == "" || port == "0" || ip != nil && ip.IsUnspecified() {
		return wrong("Advertise %q: must be host:port by which other servers reach this one, such as tuner-1.example.org:7070", c.Advertise)
	}
	const remedy = "add CertFile, KeyFile, ClientCAFile, and ClientScopes NAME=peer for the names in the certificates of the servers"
	if o := c.Server; o.CertFile == "" {
		if o.TokenFile != "" || o.ClientCAFile != "" {
			return wrong("Advertise needs TLS to forward the calls of known callers; %s", remedy)
		}
		return nil // every caller is an admin
	}
	for _, scope := range c.Server.ClientScopes {
		if scope.Role == server.RolePeer && c.Server.ClientCAFile != "" {
			return nil
		}
	}
	return wrong("Advertise needs the other servers' certificates to have the scope peer; %s", remedy)
}

func (c *Config) notice(text string) {
	if c.Notice != nil {
		c.Notice(text)
	} else {
		c.Server.Logger.Info(text)
	}
}

func (c *Config) setDefaults() {
	if c.Server.Logger == nil {
		c.Server.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Version == "" {
		c.Version = "(unknown)"
	}
}

// waiting is the notice of a file that another process has open.
func (c *Config) waiting(used *bolt.FileError) {
	c.notice(fmt.Sprintf("Waiting up to %v for %s, which %s has open.", c.LockTimeout, used.Path, used.Process()))
}
