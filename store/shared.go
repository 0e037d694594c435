package store

import (
	"context"
	"fmt"
	"time"

	"github.com/bkbtuner/bkb/tuner/study"
)

// ServerID identifies the life of a server that shares a store. Ids begin at 1 and are
// never used again.
type ServerID uint64

// Server is a server that shares a store, as it was read.
type Server struct {
	ID      ServerID
	Address string        // where the other servers reach it, empty if they do not
	TTL     time.Duration // length of its lease
	Beat    uint64        // differs after each renewal of the lease
}

// Claim is the right of a server to write to a study. Each claim on a study has a higher
// epoch than all earlier ones and makes them void.
type Claim struct {
	Study  StudyID
	Server ServerID
	Epoch  uint64
}

// Shared is a [Store] that several servers use at once (not the file of package tuner/shared). Each study belongs to at most
// one of them. Package store/lease has the life of one server.
//
// A server has a lease, which it renews. The store has no clock. The others find out by
// their own whether the lease is over, see [Lookout]. A server whose lease is over still
// owns its studies until another server buries it. Burying and renewing exclude each
// other, so one of them fails for certain.
//
// [Store.Commit] and [Store.Delete] are for a process that is not one of the servers.
// They return a [FencedError] if the study belongs to a server. A store may wait until the
// server has renewed its lease, and otherwise bury it, see [Outlive].
type Shared interface {
	Store

	// Register adds a server with a lease that begins now.
	Register(ctx context.Context, address string, ttl time.Duration) (ServerID, error)
	// Renew begins the lease of a server anew, under a beat that the server has not used
	// before and that is above 0. It returns a [BuriedError] if there is no such server.
	Renew(ctx context.Context, id ServerID, beat uint64) error
	// Unregister removes a server, so that others can claim its studies. It has no effect
	// if there is no such server.
	Unregister(ctx context.Context, id ServerID) error
	// Servers returns all servers in the order of their ids.
	Servers(ctx context.Context) ([]Server, error)
	// Bury removes a server if it has not renewed its lease since it was read as v, and
	// reports whether the server is gone.
	Bury(ctx context.Context, v Server) (gone bool, err error)

	// Owner returns the server that has a study, or the zero Server if none has. It returns
	// a [NotFoundError].
	Owner(ctx context.Context, id StudyID) (Server, error)
	// Claim makes a server the owner of a study under a new epoch. The server can claim a
	// study again that it owns. Read the log after the claim. It returns a
	// [NotFoundError], or a [FencedError] if another server owns the study.
	Claim(ctx context.Context, id StudyID, by ServerID) (Claim, error)
	// Release gives a study back. It has no effect if the claim is void.
	Release(ctx context.Context, c Claim) error
	// CommitAs is [Store.Commit] under a claim. It returns a [FencedError] if the claim is void.
	CommitAs(ctx context.Context, c Claim, expected study.Position, events []study.Event, summary []byte) error
	// DeleteAs is [Store.Delete] under a claim. It returns a [FencedError] if the claim is void.
	DeleteAs(ctx context.Context, c Claim) error
}

// Fencing is a [Store] that a process may write to only while it owns the study. Package
// store/lease makes one from a [Shared] store. Commit and Delete return a [FencedError]
// if the process does not own the study any more.
type Fencing interface {
	Store

	// Acquire makes this process the owner of a study. No write that began earlier takes
	// effect later. It returns the errors of [Shared.Claim].
	Acquire(ctx context.Context, id StudyID) error
	// Yield gives a study back, so that other processes can acquire it.
	Yield(ctx context.Context, id StudyID) error
}

// FencedError refuses a write to a study, or a claim on it, because it belongs to another
// server or was claimed anew. Nothing was written.
type FencedError struct {
	Study  StudyID
	Server Server // the owner, with the id 0 if it is not known
}

func (e *FencedError) Error() string {
	if e.Server.ID == 0 {
		return fmt.Sprintf("study %d was claimed anew, and the earlier claim is void", e.Study)
	}
	where := "a server without an address for others (tuner serve --advertise)"
	if e.Server.Address != "" {
		where = "the server at " + e.Server.Address
	}
	return fmt.Sprintf("study %d belongs to %s. Use that server, or retry after it has stopped", e.Study, where)
}

// BuriedError tells a server that others have taken over its studies, because it did not
// renew its lease in time. It must end, and can begin again as a new server.
type BuriedError struct{ Server ServerID }

func (e *BuriedError) Error() string {
	return fmt.Sprintf("server %d did not renew its lease in time, and other servers took over its studies. Start it again", e.Server)
}
