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
	DefaultLockTimeout             = time.Second
	DefaultMaxSize                 = 8 << 30
	DefaultFileMode    os.FileMode = 0o600
)

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

	// MapSize is the address space to reserve for the file in bytes. A write that
	// outgrows it waits for reads and backups in progress. 0 means MaxSize, or 1 GiB
	// without a quota, so that this never happens. On 32-bit machines, and on Windows,
	// which would allocate it on disk, 0 means the size of the file.
	MapSize int64

	// FileMode is the mode of a new file. 0 means [DefaultFileMode].
	FileMode os.FileMode

	// Program names the program and version that writes, for the error message of an
	// older program that opens the file. If empty, it is the module version of the
	// build.
	Program string

	// UnsafeNoSync acknowledges writes that are not on disk. A crash of the process
	// still loses nothing, but a crash of the machine may lose all data and the ability
	// to open the file. It is for temporary data only. It is logged at each start and
	// shown in [Status].
	UnsafeNoSync bool

	// Logger receives warnings and errors for the owner of the data. nil discards them.
	Logger *slog.Logger

	tuning tuning
}

// tuning holds settings for tests.
type tuning struct {
	batch  int                      // most requests in one transaction
	commit func(tx *bbolt.Tx) error // replaces Tx.Commit
	watch  time.Duration            // time between two checks of the file
}

// withDefaults replaces zero values by their defaults.
func (o Options) withDefaults() Options {
	o.LockTimeout = cmp.Or(o.LockTimeout, DefaultLockTimeout)
	o.MaxSize = cmp.Or(o.MaxSize, DefaultMaxSize)
	o.FileMode = cmp.Or(o.FileMode, DefaultFileMode)
	o.Program = cmp.Or(o.Program, programVersion())
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.MapSize = mapSize(o)
	t := &o.tuning
	t.batch, t.watch = cmp.Or(t.batch, maxBatch), cmp.Or(t.watch, watchInterval)
	if t.commit == nil {
		t.commit = (*bbolt.Tx).Commit
	}
	return o
}

func mapSize(o Options) int64 {
	switch {
	case o.MapSize != 0:
		return o.MapSize
	case bits.UintSize < 64 || runtime.GOOS == "windows" || o.ReadOnly:
		return 0
	case o.MaxSize > 0:
		return o.MaxSize
	default:
		return 1 << 30
	}
}

// forBbolt returns the options of bbolt. The free list is rebuilt when the file is
// opened and never written, which keeps commits fast after a large deletion.
func (o Options) forBbolt() *bbolt.Options {
	return &bbolt.Options{
		Timeout:         max(o.LockTimeout, time.Millisecond),
		ReadOnly:        o.ReadOnly,
		NoFreelistSync:  true,
		FreelistType:    bbolt.FreelistMapType,
		InitialMmapSize: int(o.MapSize),
		MaxSize:         int(max(o.MaxSize, 0)),
		NoSync:          o.UnsafeNoSync,
	}
}

func programVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return info.Main.Path + " " + info.Main.Version
}
