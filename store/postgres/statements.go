package postgres

import (
	"strings"

	"github.com/jackc/pgx/v5"
)

// statements are the texts of the statements for one schema. They are qualified with it,
// so that no session state is needed and a pooler can stand in between.
type statements struct {
	connected, barrier           string
	reserve, create, tombstone   string
	lookup, stat, list           string
	remove, graves, reap, reaped string
	commit, records, page        string
	sizes, orphans               string
	summaries, saveSummaries     string

	register, renew, unregister, servers string
	bury, gone, owner, claim, release    string
}

func newStatements(schema string) statements {
	in := func(text string) string { return strings.ReplaceAll(text, "@", pgx.Identifier{schema}.Sanitize()) }
	return statements{
		connected: in(`SELECT current_setting('fsync'), current_setting('synchronous_commit'), pg_is_in_recovery(), store FROM @.meta`),
		// A commit that waits for the synchronous standby. All earlier ones are then there
		// too.
		barrier: in(`UPDATE @.meta SET barrier = barrier + 1`),

		reserve: in(`SELECT nextval('@.study_id'), coalesce((SELECT id FROM @.study WHERE name = $1), 0)`),
		// A study that was created by an earlier try and deleted since is not created again.
		create: in(`
			WITH made AS (INSERT INTO @.study (id, name, head) SELECT $1, $2, $3 WHERE NOT EXISTS (SELECT FROM @.grave WHERE study = $1)
				ON CONFLICT (name) DO NOTHING RETURNING id),
			stored AS (INSERT INTO @.event (study, position, record) SELECT made.id, r.position, r.record
				FROM made, unnest($4::bytea[]) WITH ORDINALITY r(record, position))
			SELECT count(*) FROM made`),
		tombstone: in(`SELECT token FROM @.grave WHERE study = $1`),
		lookup:    in(`SELECT id, head FROM @.study WHERE name = $1`),
		stat:      in(`SELECT name, head FROM @.study WHERE id = $1`),
		list:      in(`SELECT id, name, head FROM @.study WHERE name > $1 ORDER BY name LIMIT $2`),

		remove: in(`
			WITH gone AS (DELETE FROM @.study WHERE id = $1 AND owner = $3 AND ($4 < 0 OR epoch = $4) RETURNING id),
			dug AS (INSERT INTO @.grave (study, token) SELECT id, $2 FROM gone)
			SELECT count(*) FROM gone`),
		graves: in(`SELECT study FROM @.grave WHERE NOT reaped ORDER BY study LIMIT 1`),
		reap: in(`DELETE FROM @.event WHERE study = $1 AND position IN
			(SELECT position FROM @.event WHERE study = $1 ORDER BY position LIMIT $2)`),
		reaped: in(`
			WITH old AS (DELETE FROM @.grave WHERE reaped AND study <> $1 AND deleted < now() - interval '1 day')
			UPDATE @.grave SET reaped = true WHERE study = $1`),

		// The rows are locked in the order of their ids, so that two batches never wait for
		// each other. Their heads are those after the wait.
		commit: in(`
			WITH wanted AS MATERIALIZED (SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $7::bigint[], $8::bigint[], $9::bytea[]) w(id, expected, n, owner, epoch, summary)),
			locked AS MATERIALIZED (SELECT s.id, s.head, s.owner, s.epoch FROM @.study s WHERE s.id = ANY($1) ORDER BY s.id FOR UPDATE),
			moved AS (UPDATE @.study s SET head = s.head + w.n, summary = w.summary FROM wanted w, locked l
				WHERE s.id = w.id AND l.id = s.id AND s.head = w.expected AND s.owner = w.owner AND (w.epoch < 0 OR s.epoch = w.epoch) RETURNING s.id),
			stored AS (INSERT INTO @.event (study, position, record) SELECT r.id, r.position, r.record
				FROM unnest($4::bigint[], $5::bigint[], $6::bytea[]) r(id, position, record) JOIN moved USING (id))
			SELECT l.id, l.head, l.owner, l.epoch, m.id IS NOT NULL FROM locked l LEFT JOIN moved m USING (id)`),
		records: in(`SELECT record FROM @.event WHERE study = $1 AND position > $2 ORDER BY position LIMIT $3`),
		page: in(`
			SELECT position, record FROM (
				SELECT position, record, sum(octet_length(record)) OVER (ORDER BY position) AS total FROM (
					SELECT position, record FROM @.event WHERE study = $1 AND position BETWEEN $2 AND $3 ORDER BY position LIMIT $4
				) first
			) counted WHERE total - octet_length(record) < $5 ORDER BY position`),

		sizes: in(`SELECT pg_total_relation_size('@.event') + pg_total_relation_size('@.study')
			+ pg_total_relation_size('@.grave')`),
		orphans: in(`SELECT DISTINCT study FROM @.event WHERE NOT EXISTS (SELECT FROM @.study WHERE id = event.study)
			AND NOT EXISTS (SELECT FROM @.grave g WHERE g.study = event.study) LIMIT $1`),

		summaries: in(`SELECT s.id, s.head, s.summary, e.record FROM @.study s JOIN @.event e ON e.study = s.id AND e.position = 1
			WHERE s.id = ANY($1) AND s.summary IS NOT NULL`),
		// The rows are locked in the order of their ids, as those of a commit are.
		saveSummaries: in(`
			WITH locked AS MATERIALIZED (SELECT id FROM @.study WHERE id = ANY($1) ORDER BY id FOR UPDATE)
			UPDATE @.study s SET summary = w.summary FROM unnest($1::bigint[], $2::bigint[], $3::bytea[]) w(id, head, summary), locked l
			WHERE s.id = w.id AND l.id = s.id AND s.head = w.head`),

		// Leases do not go by the clock of the database, which can be set.
		register:   in(`INSERT INTO @.server (id, address, lease) VALUES (nextval('@.server_id'), $1, $2) RETURNING id`),
		renew:      in(`UPDATE @.server SET beat = $2 WHERE id = $1`),
		unregister: in(`DELETE FROM @.server WHERE id = $1`),
		servers:    in(`SELECT id, address, lease, beat FROM @.server ORDER BY id`),
		bury:       in(`DELETE FROM @.server WHERE id = $1 AND beat = $2`),
		gone:       in(`SELECT NOT EXISTS (SELECT FROM @.server WHERE id = $1)`),
		owner: in(`SELECT s.owner, s.epoch, coalesce(v.id, 0), coalesce(v.address, ''), coalesce(v.lease, '0'), coalesce(v.beat, 0)
			FROM @.study s LEFT JOIN @.server v ON v.id = s.owner WHERE s.id = $1`),
		claim: in(`UPDATE @.study SET owner = $2, epoch = epoch + 1 WHERE id = $1 AND owner = $3 AND epoch = $4
			AND (owner = $2 OR NOT EXISTS (SELECT FROM @.server WHERE id = $3))`),
		release: in(`UPDATE @.study SET owner = 0 WHERE id = $1 AND owner = $2 AND epoch = $3`),
	}
}
