package bolt

import (
	"log/slog"
	"math/bits"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/bkbtuner/bkb/internal/planted"
	"go.etcd.io/bbolt"
)

// Defaults of [Options].
const (
	DefaultLockTimeout             = time.Second
	DefaultMaxSize                 = 8 << 30
	DefaultFileMode    os.FileMode = 0o600
)

// Options say how to open a store. The zero Options open or create one with
// the defaults named here.
type Options struct {
	// MustExist refuses a path at which there is nothing ([ErrMissing]).
	// Otherwise a store is created there; its directory must exist.
	MustExist bool

	// ReadOnly opens an existing store that nothing will be written to. Several
	// processes may hold it so at once, but none while another one writes.
	ReadOnly bool

	// LockTimeout is how long to wait for another process to let go of the
	// file; 0 means [DefaultLockTimeout], less than 0 not at all.
	LockTimeout time.Duration

	// MaxSize is the quota in bytes: beyond it writes are refused with
	// [store.ErrFull], up to 16 MiB early. 0 means [DefaultMaxSize], less than 0
	// no quota. A file that is larger already can be opened and read.
	MaxSize int64

	// MapSize is how much address space to reserve for the file. A write that
	// outgrows it waits for the reads and backups under way. 0 means MaxSize (1
	// GiB without quota), so that this never happens; on 32-bit machines and on
	// Windows, which would allocate it on disk, it means the size of the file.
	MapSize int64

	// FileMode is the mode of a file that is created; 0 means [DefaultFileMode].
	FileMode os.FileMode

	// Program names the program and version that writes, for the message of an
	// older program that finds the file; empty means the build's module version.
	Program string

	// UnsafeNoSync acknowledges writes that are not on disk. A crash of the
	// process still loses nothing, a crash of the machine may lose everything,
	// including the ability to open the file. It is for throw-away data only,
	// is logged at each start, and shows in [Status].
	UnsafeNoSync bool

	// Logger hears of what the owner of the data should know; nil means nobody.
	Logger *slog.Logger

	tuning tuning
}

// tuning is what tests turn.
type tuning struct {
	batch     int                      // requests in one transaction
	atOnce    uint64                   // records that a deletion removes in its own transaction
	slice     int                      // records that a slice of reaping removes
	noReaping bool                     // leave graves alone
	commit    func(tx *bbolt.Tx) error // in place of Tx.Commit
	watch     time.Duration            // between two looks at the file
	format    int                      // of what is written, in place of Format
}

// withDefaults fills in what was left at zero.
func (o Options) withDefaults() Options {
	if o.LockTimeout == 0 {
		o.LockTimeout = DefaultLockTimeout
	}
	if o.MaxSize == 0 {
		o.MaxSize = DefaultMaxSize
	}
	if o.FileMode == 0 {
		o.FileMode = DefaultFileMode
	}
	if o.Program == "" {
		o.Program = programVersion()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.MapSize = mapSize(o)
	return o.withTuning()
}

func (o Options) withTuning() Options {
	if o.tuning.batch == 0 {
		o.tuning.batch = maxBatch
	}
	if o.tuning.atOnce == 0 {
		o.tuning.atOnce = reapSlice
	}
	if o.tuning.slice == 0 {
		o.tuning.slice = reapSlice
	}
	if o.tuning.format == 0 {
		o.tuning.format = Format
	}
	if o.tuning.watch == 0 {
		o.tuning.watch = watchInterval
	}
	if o.tuning.commit == nil {
		o.tuning.commit = (*bbolt.Tx).Commit
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

// forBbolt are the engine's options. The free list is rebuilt when the file is
// opened and never written, which is what keeps commits fast after a large
// deletion.
func (o Options) forBbolt() *bbolt.Options {
	return &bbolt.Options{
		Timeout:         max(o.LockTimeout, time.Millisecond),
		ReadOnly:        o.ReadOnly,
		NoFreelistSync:  true,
		FreelistType:    bbolt.FreelistMapType,
		InitialMmapSize: int(o.MapSize),
		MaxSize:         int(max(o.MaxSize, 0)),
		NoSync:          o.UnsafeNoSync || planted.Is(planted.NoSync),
	}
}

func programVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return info.Main.Path + " " + info.Main.Version
}
