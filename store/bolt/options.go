package bolt

import (
	"cmp"
	"log/slog"
	"math/bits"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"
)

// Defaults of [Options].
const (
	DefaultLockTimeout = time.Second
	DefaultMaxSize     = 8 << 30
)

// fileMode is the mode of a new file.
const fileMode os.FileMode = 0o600

// Options holds the settings of [Open]. The zero Options open or create a store with
// the defaults named here.
type Options struct {
	// MustExist refuses a path without a file ([ErrMissing]). Otherwise Open creates
	// the store, in a directory that must exist.
	MustExist bool

	// ReadOnly opens an existing store for reading only. Several processes may have it
	// open in this way at once, but none while another process writes.
	ReadOnly bool

	// LockTimeout is how long to wait until another process releases the file. 0 means
	// [DefaultLockTimeout], and a negative value means not to wait.
	LockTimeout time.Duration

	// MaxSize is the quota in bytes. Writes beyond it return [store.ErrFull], up to 16
	// MiB early. 0 means [DefaultMaxSize], and a negative value means no quota. A file
	// that is already larger can be opened and read.
	MaxSize int64

	// Logger receives warnings and errors for the owner of the data. nil discards them.
	Logger *slog.Logger

	tuning tuning
}

// tuning holds settings for tests.
type tuning struct {
	batch  int                      // most requests in one transaction
	commit func(tx *bbolt.Tx) error // replaces Tx.Commit
	watch  time.Duration            // time between two checks of the file
	noSync bool                     // acknowledge writes that are not on disk
}

// withDefaults replaces zero values by their defaults.
func (o Options) withDefaults() Options {
	o.LockTimeout = cmp.Or(o.LockTimeout, DefaultLockTimeout)
	o.MaxSize = cmp.Or(o.MaxSize, DefaultMaxSize)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	t := &o.tuning
	t.batch, t.watch = cmp.Or(t.batch, maxBatch), cmp.Or(t.watch, watchInterval)
	if t.commit == nil {
		t.commit = (*bbolt.Tx).Commit
	}
	return o
}

// reserve is the address space to reserve for the file. A write that outgrows it waits for
// reads and backups in progress, so it is the quota, or 1 GiB without one. On 32-bit
// machines there is too little of it, and Windows would allocate it on disk.
func (o Options) reserve() int {
	switch {
	case bits.UintSize < 64 || runtime.GOOS == "windows" || o.ReadOnly:
		return 0
	case o.MaxSize > 0:
		return int(o.MaxSize)
	default:
		return 1 << 30
	}
}

// forBbolt returns the options of bbolt. The free list is rebuilt when the file is
// opened and never written, which keeps commits fast after a large deletion.
func (o Options) forBbolt(reserve int) *bbolt.Options {
	return &bbolt.Options{
		Timeout:         max(o.LockTimeout, time.Millisecond),
		ReadOnly:        o.ReadOnly,
		NoFreelistSync:  true,
		FreelistType:    bbolt.FreelistMapType,
		InitialMmapSize: reserve,
		MaxSize:         int(max(o.MaxSize, 0)),
		NoSync:          o.tuning.noSync,
	}
}

func programVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return info.Main.Path + " " + info.Main.Version
}
