package postgres

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/verify"
	"github.com/jackc/pgx/v5"
)

// Durability says what the settings of a database promise for an acknowledged write.
type Durability struct {
	Version             string // of the server
	Fsync               bool   // writes are on disk before they are acknowledged
	FullPageWrites      bool   // a power failure leaves no torn pages
	SynchronousCommit   string // setting
	SynchronousStandbys string // setting, empty if commits wait for no standby
	Standbys            int    // connected now
}

// Survives says what an acknowledged write survives.
func (d Durability) Survives() string {
	switch {
	case !d.Fsync || d.SynchronousCommit == "off":
		return "nothing, because writes are acknowledged before they are on disk"
	case d.synchronous():
		return "the loss of the primary (synchronous standby " + d.SynchronousStandbys + ")"
	default:
		return "crashes and power failures, but not the loss of the database's disk"
	}
}

// synchronous tells whether commits wait until a standby has them on disk.
func (d Durability) synchronous() bool {
	return d.SynchronousStandbys != "" && (d.SynchronousCommit == "on" || d.SynchronousCommit == "remote_apply")
}

// warnings lists the settings that an operator should know of.
func (d Durability) warnings() (list []string) {
	if d.Standbys > 0 && !d.synchronous() {
		list = append(list, "replication is asynchronous, so a failover can lose acknowledged trials; set synchronous_standby_names, with synchronous_commit = on")
	}
	if d.Fsync && !d.FullPageWrites {
		list = append(list, "full_page_writes is off, so a power failure can destroy pages; set it to on")
	}
	return list
}

// Durability asks the database for its settings.
func (s *Store) Durability(ctx context.Context) (d Durability, err error) {
	err = s.send(ctx, func(ctx context.Context, conn session) error {
		d, err = readDurability(ctx, conn)
		return err
	})
	return d, err
}

func readDurability(ctx context.Context, conn session) (d Durability, err error) {
	err = conn.QueryRow(ctx, `SELECT current_setting('server_version'), current_setting('fsync') = 'on', current_setting('full_page_writes') = 'on',
		current_setting('synchronous_commit'), current_setting('synchronous_standby_names'), (SELECT count(*) FROM pg_stat_replication)`).
		Scan(&d.Version, &d.Fsync, &d.FullPageWrites, &d.SynchronousCommit, &d.SynchronousStandbys, &d.Standbys)
	return d, err
}

// logDurability logs what the settings of the database promise.
func (s *Store) logDurability(ctx context.Context, conn session) error {
	d, err := readDurability(ctx, conn)
	if err != nil {
		return connectError(s.database, err)
	}
	log := s.options.Logger.With(slog.String("database", s.database))
	log.Info("opened the store", "server", "PostgreSQL "+d.Version, "survives", d.Survives(), "standbys", strconv.Itoa(d.Standbys))
	if s.options.UnsafeNoSync {
		log.Warn("writes may be acknowledged before they are on disk, as it was asked for")
	}
	for _, w := range d.warnings() {
		log.Warn(w)
	}
	return nil
}

// Probe finds out within a second when the database is away or accepts no writes.
const (
	probeEvery    = 200 * time.Millisecond
	probePatience = 700 * time.Millisecond
)

// Probe asks the database again and again whether it can be written to, on a connection of
// its own, and passes each answer to told until ctx ends.
func (s *Store) Probe(ctx context.Context, told func(error)) {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	var conn *pgx.Conn
	for ctx.Err() == nil {
		try, cancel := context.WithTimeout(ctx, probePatience)
		var err error
		if conn == nil {
			if conn, err = pgx.ConnectConfig(try, s.pool.Config().ConnConfig); err == nil {
				err = s.admit(try, conn)
			}
		}
		if err == nil {
			err = s.writable(try, conn)
		}
		if ctx.Err() == nil {
			told(err)
			<-tick.C
		}
		if conn != nil && (err != nil || ctx.Err() != nil) {
			_ = conn.Close(try)
			conn = nil
		}
		cancel()
	}
}

// Bytes returns the size of the tables with their indexes.
func (s *Store) Bytes(ctx context.Context) (int64, error) {
	return call(ctx, s, func() (n int64, err error) {
		err = s.row(ctx, nil, []any{&n}, `SELECT pg_total_relation_size('@.event') + pg_total_relation_size('@.study') + pg_total_relation_size('@.grave')`)
		return n, err
	})
}

// Report is the result of a check.
type Report struct {
	verify.Report
	Identity   Identity
	Durability Durability
	Bytes      int64 // of the tables with their indexes
}

// Check reads every log, checks the checksum and place of every record, and checks each
// log against the rules of package study. It also looks for records without a study.
// Reading and writing continue meanwhile.
func (s *Store) Check(ctx context.Context, o *verify.Options) (*Report, error) {
	report := &Report{Identity: s.identity}
	var err error
	if report.Durability, err = s.Durability(ctx); err != nil {
		return report, err
	}
	if report.Bytes, err = s.Bytes(ctx); err != nil {
		return report, err
	}
	var studies []store.Info
	for info, err := range s.List(ctx, "") {
		if err != nil {
			return report, err
		}
		studies = append(studies, info)
	}
	if err := report.Report.Check(ctx, s, studies, o); err != nil {
		return report, err
	}
	type row struct{ Study store.StudyID }
	orphans, err := call(ctx, s, func() ([]row, error) {
		const minutes = 600 * bytesSecond
		return rows[row](ctx, s, minutes, `SELECT DISTINCT study FROM @.event WHERE NOT EXISTS (SELECT FROM @.study WHERE id = event.study)
			AND NOT EXISTS (SELECT FROM @.grave g WHERE g.study = event.study) LIMIT $1`, verify.MaxProblems)
	})
	for _, o := range orphans {
		report.Add(verify.Problem{Study: o.Study, Err: errors.New("there are events, but no study")})
	}
	return report, err
}
