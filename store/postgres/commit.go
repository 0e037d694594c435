package postgres

import (
	"bytes"
	"context"
	"errors"
	"math"
	"runtime"
	"slices"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/jackc/pgx/v5"
)

const (
	// The most that one statement takes. A request larger than maxBatchBytes is alone in
	// its statement.
	maxBatch      = 256
	maxBatchBytes = 8 << 20
	// maxWriters is how many statements are on their way at once. With one alone the disk
	// of the database would rest during each journey.
	maxWriters = 4
	// lastPosition leaves room for the events of a commit below the largest bigint.
	lastPosition = math.MaxInt64 - 1<<32
)

// write is a request to append to a log.
type write struct {
	id       store.StudyID
	owner    int64 // that the study must have
	epoch    int64 // of the owner's claim, or anyEpoch
	expected study.Position
	records  [][]byte
	summary  []byte // encoded
	bytes    int

	found, moved bool           // whether there is such a study, and whether this write appended to it
	head         study.Position // of the log before the write
	void         bool           // the study has another owner or epoch
	sent         bool           // an earlier try may have been done
	err          error
	done         chan struct{} // closed when the fields above are set
}

func (s *Store) Commit(ctx context.Context, id store.StudyID, expected study.Position, events []study.Event, summary []byte) error {
	return s.CommitAs(ctx, store.Claim{Study: id}, expected, events, summary)
}

// CommitAs implements [store.Shared]. A claim without a server is none.
func (s *Store) CommitAs(ctx context.Context, c store.Claim, expected study.Position, events []study.Event, summary []byte) error {
	id := c.Study
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	if expected == 0 || expected > lastPosition || !possible(id) {
		info, err := s.stat(ctx, id)
		if err != nil {
			return err
		}
		return &store.ConflictError{Study: id, Expected: expected, Actual: info.Head}
	}
	records, err := store.EncodeCommit(id, expected, events)
	if err != nil {
		return err
	}
	shown, err := store.EncodeSummary(id, expected+study.Position(len(events)), summary)
	if err != nil {
		return err
	}
	for {
		owner, epoch := rights(c)
		w := &write{
			id: id, owner: owner, epoch: epoch, expected: expected, records: records, summary: shown,
			bytes: size(records) + len(shown), done: make(chan struct{}),
		}
		select {
		case s.queue <- w:
		case <-ctx.Done():
			return ctx.Err()
		}
		<-w.done
		err := s.outcome(context.WithoutCancel(ctx), w)
		if err != errVoid {
			return err
		}
		if free, err := s.fenced(ctx, c); !free {
			return err
		}
	}
}

// errVoid is the outcome of a write under a claim that is void.
var errVoid = errors.New("the claim is void")

// rights are the owner and epoch that a study must have for a write under a claim.
func rights(c store.Claim) (owner, epoch int64) {
	if c.Server == 0 {
		return 0, anyEpoch
	}
	return int64(c.Server), int64(c.Epoch)
}

// outcome is the result of a write that the database answered.
func (s *Store) outcome(ctx context.Context, w *write) error {
	switch {
	case w.err != nil:
		return w.err
	case w.moved:
		return nil
	case !w.found:
		return &store.NotFoundError{Study: w.id}
	}
	if w.sent && w.head >= w.expected+study.Position(len(w.records)) {
		same, err := s.stored(ctx, w)
		if err != nil {
			return s.unknown(w.id, err)
		}
		if same {
			return s.confirm(ctx, w.id)
		}
	}
	if w.void {
		return errVoid
	}
	return &store.ConflictError{Study: w.id, Expected: w.expected, Actual: w.head}
}

// stored tells whether the log has the records of a write at their positions. Then an
// earlier try was done.
func (s *Store) stored(ctx context.Context, w *write) (bool, error) {
	type row struct{ Record []byte }
	found, err := rows[row](ctx, s, 0, `SELECT record FROM @.event WHERE study = $1 AND position > $2 ORDER BY position LIMIT $3`,
		int64(w.id), int64(w.expected), len(w.records))
	return slices.EqualFunc(found, w.records, func(r row, own []byte) bool { return bytes.Equal(r.Record, own) }), err
}

// write takes the requests that wait, puts them into one statement, and answers all of
// them. Several run at once.
func (s *Store) write() {
	var held []*write // of studies that are in the batch already
	last := 0
	for {
		var batch []*write
		batch, held = s.collect(held, last)
		if len(batch) == 0 {
			return
		}
		last = len(batch)
		s.settle(batch)
		for _, w := range batch {
			close(w.done)
		}
	}
}

// yields is how often a writer yields to clients that were answered together and are
// likely to send their next requests together.
const yields = 4

// collect returns the requests of the next statement, of which no two are for one study,
// and those that must wait for it. It is empty when the store closes.
func (s *Store) collect(waiting []*write, last int) (batch, held []*write) {
	in := make(map[store.StudyID]bool)
	size := 0
	take := func(w *write) {
		if in[w.id] {
			held = append(held, w)
			return
		}
		in[w.id] = true
		batch, size = append(batch, w), size+w.bytes
	}
	for _, w := range waiting {
		take(w)
	}
	if len(batch) == 0 {
		w, open := <-s.queue
		if !open {
			return nil, nil
		}
		take(w)
	}
	for turns := yields; len(batch) < s.options.tuning.batch && size < maxBatchBytes; {
		select {
		case w, open := <-s.queue:
			if !open {
				return batch, held
			}
			take(w)
			continue
		default:
		}
		if turns == 0 || len(batch) >= last {
			break
		}
		turns--
		runtime.Gosched()
	}
	return batch, held
}

// settle gives every request of a batch its result. It sends the statement again until
// the database answers. If the database refuses it, each request goes alone, so that one
// that is to blame does not fail the others.
func (s *Store) settle(batch []*write) {
	a := attempt{store: s, sent: batch[0].sent}
	err := s.append(batch)
	for err != nil && a.again(err) {
		err = s.append(batch)
	}
	for _, w := range batch {
		w.sent = a.sent
		switch {
		case err == nil:
		case answerOf(err) == refused && len(batch) > 1:
			s.settle([]*write{w})
		default:
			w.err = a.verdict(w.id, err)
		}
	}
}

// appendBatch moves the heads of the studies that have the expected one, and appends their
// records. The rows are locked in the order of their ids, so that two batches never wait
// for each other. Their heads are those after the wait.
const appendBatch = `
	WITH wanted AS MATERIALIZED (SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $7::bigint[], $8::bigint[], $9::bytea[]) w(id, expected, n, owner, epoch, summary)),
	locked AS MATERIALIZED (SELECT s.id, s.head, s.owner, s.epoch FROM @.study s WHERE s.id = ANY($1) ORDER BY s.id FOR UPDATE),
	moved AS (UPDATE @.study s SET head = s.head + w.n, summary = w.summary FROM wanted w, locked l
		WHERE s.id = w.id AND l.id = s.id AND s.head = w.expected AND s.owner = w.owner AND (w.epoch < 0 OR s.epoch = w.epoch) RETURNING s.id),
	stored AS (INSERT INTO @.event (study, position, record) SELECT r.id, r.position, r.record
		FROM unnest($4::bigint[], $5::bigint[], $6::bytea[]) r(id, position, record) JOIN moved USING (id))
	SELECT l.id, l.head, l.owner, l.epoch, m.id IS NOT NULL FROM locked l LEFT JOIN moved m USING (id)`

// append sends one statement with all requests of a batch.
func (s *Store) append(batch []*write) error {
	var ids, expected, counts, owners, epochs, of, positions []int64
	var records, summaries [][]byte
	byID := make(map[store.StudyID]*write, len(batch))
	size := 0
	for _, w := range batch {
		id := int64(w.id)
		ids, expected, counts = append(ids, id), append(expected, int64(w.expected)), append(counts, int64(len(w.records)))
		owners, epochs, summaries = append(owners, w.owner), append(epochs, w.epoch), append(summaries, w.summary)
		for j, r := range w.records {
			of, positions, records = append(of, id), append(positions, int64(w.expected)+1+int64(j)), append(records, r)
		}
		byID[w.id] = w
		size += w.bytes
	}
	return s.try(context.Background(), size, func(ctx context.Context, conn session) error {
		type row struct {
			ID           store.StudyID
			Head         study.Position
			Owner, Epoch int64
			Moved        bool
		}
		rows, _ := conn.Query(ctx, appendBatch, ids, expected, counts, of, positions, records, owners, epochs, summaries)
		answer, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
		if err := conn.sure(err); err != nil {
			return err
		}
		for _, x := range answer {
			w := byID[x.ID]
			w.found, w.head, w.moved = true, x.Head, x.Moved
			w.void = x.Owner != w.owner || w.epoch != anyEpoch && x.Epoch != w.epoch
		}
		return nil
	})
}
