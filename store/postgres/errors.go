package postgres

import (
	"errors"
	"fmt"
	"strings"

	"github.com/bkbtuner/bkb/store"
	"github.com/jackc/pgx/v5/pgconn"
)

// The reasons why a database is refused, each wrapped by an [Error]. A database that
// cannot be reached has the reason [store.ErrUnavailable].
var (
	ErrURL         = errors.New("the address of the database is wrong")
	ErrMissing     = errors.New("there is no store in the database")
	ErrForeign     = errors.New("the tables are not a store of this program")
	ErrNewerFormat = errors.New("the store has the format of a newer version of this program")
	ErrOlderFormat = errors.New("the store has the format of an older version of this program")
	ErrDenied      = errors.New("the database denies access")
	ErrUnsafe      = errors.New("the settings of the database would lose acknowledged data")
	ErrOtherStore  = errors.New("the address leads to another store than before")
	ErrReadOnly    = fmt.Errorf("%w: the database accepts no writes", store.ErrUnavailable)
	ErrPooler      = errors.New("the pooler in front of the database does not keep the state of a session")
)

// Error names the problem with a database and the remedy. It never has the password.
type Error struct {
	Database string // host, port and database, empty if the address cannot be read
	Reason   error  // one of this package's errors, or [store.ErrUnavailable]
	Detail   string // the finding, may be empty
	Remedy   string // what the user can do
}

func refuse(database string, reason error, detail, remedy string) *Error {
	return &Error{Database: database, Reason: reason, Detail: detail, Remedy: remedy}
}

func missing(database string) error {
	return refuse(database, ErrMissing, "", "create it with tuner store init, or correct the address")
}

func (e *Error) Error() string {
	text := e.Reason.Error()
	if e.Database != "" {
		text = e.Database + ": " + text
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return fmt.Sprintf("%s (%s)", text, e.Remedy)
}

func (e *Error) Unwrap() error { return e.Reason }

// answer is what an error says about the statement that got it.
type answer int

const (
	refused answer = iota // nothing was written, and the same statement cannot succeed
	undone                // nothing was written, and the same statement may succeed
	unsure                // the statement may have been done
)

// answerOf classifies an error of a statement that was sent.
func answerOf(err error) answer {
	if errors.As(err, new(*Error)) {
		if errors.Is(err, store.ErrUnavailable) && !errors.Is(err, ErrReadOnly) {
			return undone
		}
		return refused
	}
	c := code(err)
	if c == "" { // no answer came
		if pgconn.SafeToRetry(err) {
			return undone
		}
		return unsure
	}
	switch c {
	case "40003": // statement completion unknown
		return unsure
	case "53300", "57014", "57P03": // too many connections, cancelled, starting or stopping
		return undone
	}
	switch c[:2] {
	case "25", "40": // on a standby, serialization failure or deadlock
		return undone
	case "08", "57", "58", "XX":
		return unsure
	}
	return refused
}

// code is the SQLSTATE of an error of the server, or empty.
func code(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && len(e.Code) == 5 {
		return e.Code
	}
	return ""
}

// refusal turns an error of the server that refused a statement into one of package store.
func (s *Store) refusal(err error) error {
	if own := ownError(s.database, err); own != nil {
		return own
	}
	switch c := code(err); {
	case c == "53100" || c == "53200" || c == "54000": // disk, memory, a limit of the program
		return fmt.Errorf("%w: %s: %w", store.ErrFull, s.database, err)
	case c == "42501":
		return refuse(s.database, fmt.Errorf("%w: %w", store.ErrReadOnly, ErrDenied), err.Error(), "grant the role of the address its rights with tuner store init --grant ROLE")
	case c == "42P01" || c == "3F000": // no such table or schema
		return missing(s.database)
	default:
		return fmt.Errorf("%s refused a statement: %w", s.database, err)
	}
}

// connectError is the error of a connection that could not be made.
func connectError(database string, err error) error {
	if own := ownError(database, err); own != nil {
		return own
	}
	switch c := code(err); {
	case strings.HasPrefix(c, "28"):
		return refuse(database, ErrDenied, last(err), "check the user of the address, and the password in the file that PGPASSFILE names")
	case c == "3D000":
		return refuse(database, ErrMissing, last(err), "create the database with createdb, or correct the address")
	}
	return refuse(database, store.ErrUnavailable, last(err), "check that the database runs and that its address and TLS settings are right")
}

// ownError is err if it is an [Error], or the one for a pooler that needs another setting,
// or nil. Nothing was written.
func ownError(database string, err error) error {
	if own, ok := errors.AsType[*Error](err); ok {
		return own
	}
	switch c := code(err); {
	case c == "26000" || c == "42P05": // a prepared statement of another session is there, or ours is not
		return refuse(database, ErrPooler, last(err), "add default_query_exec_mode=exec to the address, or set max_prepared_statements in PgBouncer 1.21 or later")
	case c == "08P01" && strings.Contains(last(err), "statement pooling mode"):
		return refuse(database, ErrPooler, last(err), "set pool_mode to transaction or session in PgBouncer")
	}
	return nil
}

// last returns the text of the last of the attempts to connect.
func last(err error) string {
	text := strings.TrimSpace(err.Error())
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}
