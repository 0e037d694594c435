package postgres

import (
	"context"
	"errors"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/verify"
	"github.com/jackc/pgx/v5"
)

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
	return report, s.checkOrphans(ctx, report)
}

// checkOrphans reports logs that belong to no study.
func (s *Store) checkOrphans(ctx context.Context, report *Report) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	var ids []store.StudyID
	err := s.readLarge(ctx, checkBytes, func(ctx context.Context, conn *pgx.Conn) (err error) {
		rows, _ := conn.Query(ctx, s.sql.orphans, verify.MaxProblems)
		ids, err = pgx.CollectRows(rows, pgx.RowTo[store.StudyID])
		return err
	})
	for _, id := range ids {
		report.Add(verify.Problem{Study: id, Err: errOrphan})
	}
	return err
}

// checkBytes gives the search for such logs some minutes.
const checkBytes = 600 * bytesSecond

var errOrphan = errors.New("there are events, but no study")
