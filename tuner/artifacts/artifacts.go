// Package artifacts keeps files of trials in a folder.
//
// A [Folder] has the file model.pt of trial 3 in STUDY/3/model.pt/SHA256, where STUDY is the id
// of the study with the time of its creation and SHA256 the checksum of the content. So no study
// gets the files of another one, readers of an old content never get parts of a new one, and
// sha256sum finds damage. An upload grows beside the content. Each part is synced, and at the
// end a rename puts the whole file in place.
//
// All files together, with uploads that go on at their final size, stay within a quota. A file
// counts as at least 4 KiB.
package artifacts

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/bkbtuner/bkb/internal/atomicfile"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
)

const (
	// DefaultQuota is the default of [New], in bytes.
	DefaultQuota = 10 << 30
	// MaxFiles is the most artifacts of a trial.
	MaxFiles = 1000

	leastCount = 4 << 10         // bytes that any file counts
	spare      = 1 << 30         // bytes of the disk that stay free
	abandoned  = 24 * time.Hour  // after its last part, when an upload goes
	idle       = 5 * time.Minute // after its last part, when an upload counts only what is there
	maxUploads = 1000            // whose state is in memory
)

// Study identifies a study. IDs are not enough, because a restored file gives them to others.
type Study struct {
	ID      store.StudyID
	Created time.Time
}

func (s Study) folder() string { return fmt.Sprintf("%d-%d", s.ID, s.Created.UnixNano()) }

// Exists tells whether a study exists. Other calls of the folder wait meanwhile.
type Exists func(context.Context, Study) (bool, error)

// Folder has the artifacts of all studies of a store. The nil Folder refuses all calls.
// Several processes may use a folder, each for other studies.
type Folder struct {
	dir   string
	quota int64
	free  func(dir string) (bytes int64, ok bool)

	mu      sync.Mutex // guards the names in the folder too
	used    int64      // by all but the uploads
	due     time.Time  // of the next count
	uploads map[string]*upload
}

// upload is a file that grows. Only Write after begin changes what mu guards.
type upload struct {
	size int64     // in the end
	seen time.Time // guarded by Folder.mu

	mu   sync.Mutex
	have int64
	sum  hash.Hash // of them, nil until the part of an earlier process is read
}

// New returns the folder at dir, which is made when it is needed. A quota of 0 means
// [DefaultQuota].
func New(dir string, quota int64) *Folder {
	if quota == 0 {
		quota = DefaultQuota
	}
	return &Folder{dir: dir, quota: quota, free: atomicfile.Free, uploads: make(map[string]*upload)}
}

// Beside returns the folder for a file of studies.
func Beside(file string, quota int64) *Folder {
	if whole, err := filepath.EvalSymlinks(file); err == nil {
		file = whole
	}
	if whole, err := filepath.Abs(file); err == nil {
		file = whole
	}
	return New(file+".artifacts", quota)
}

var (
	errNone = fmt.Errorf("artifacts: %w by studies in memory or in a database without a folder; keep the studies in a file, or give all servers of the database one folder (tuner serve --artifacts)", tuner.ErrUnsupported)

	content = regexp.MustCompile(`^[0-9a-f]{64}$`)
	devices = regexp.MustCompile(`(?i)^(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³]) *(\.|$)`)
)

// open opens the folder. It is missing until the first upload.
func (f *Folder) open() (*os.Root, error) {
	if f == nil {
		return nil, errNone
	}
	return os.OpenRoot(f.dir)
}

// locked calls do with the folder, unless it is missing.
func (f *Folder) locked(do func(root *os.Root) error) error {
	root, err := f.open()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer root.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	return do(root)
}

func invalid(field string, value any, rule string) error {
	if text, ok := value.(string); ok {
		value = fmt.Sprintf("%.80q", text)
	}
	return &study.InvalidError{Field: field, Value: fmt.Sprint(value), Rule: rule}
}

// place returns where a file is in the folder.
func place(s Study, trial int, file string) (string, error) {
	rule := ""
	switch {
	case file == "" || len(file) > 255 || !utf8.ValidString(file):
		rule = "must be 1 to 255 bytes of UTF-8"
	case strings.ContainsAny(file, `/\<>:"|?*`) || strings.ContainsFunc(file, unicode.IsControl):
		rule = `must have no control characters and none of / \ < > : " | ? *`
	case file[0] == '.' || strings.HasSuffix(file, ".") || strings.HasSuffix(file, " "):
		rule = "must not begin with a dot, or end with a dot or a space"
	case devices.MatchString(file):
		rule = "is the name of a device on some systems"
	default:
		return path.Join(s.folder(), strconv.Itoa(trial), file), nil
	}
	return "", invalid("file", file, rule+"; give the file another name")
}

func missing(trial int, file string) error {
	return &tuner.RemoteError{Code: tuner.NotFound, Message: fmt.Sprintf("trial %d has no artifact %.60q with this content; list its artifacts, and read from the beginning if it was replaced", trial, file)}
}

// current returns the content at a place that was put there last. f.mu is held.
func current(root *os.Root, at string) (a tuner.Artifact, ok bool) {
	entries, _ := fs.ReadDir(root.FS(), at)
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && content.MatchString(e.Name()) && (!ok || info.ModTime().After(a.Modified)) {
			a, ok = tuner.Artifact{File: path.Base(at), Size: info.Size(), SHA256: e.Name(), Modified: info.ModTime().UTC()}, true
		}
	}
	return a, ok
}

// Read implements [tuner.Service] for a trial that exists.
func (f *Folder) Read(s Study, q tuner.ReadArtifact) (part tuner.ArtifactPart, err error) {
	at, err := place(s, q.Trial, q.File)
	if err != nil {
		return part, err
	}
	limit := cmp.Or(int64(q.Limit), tuner.MaxArtifactPart)
	switch {
	case q.Offset < 0:
		return part, invalid("offset", q.Offset, "must not be negative")
	case limit < 0 || limit > tuner.MaxArtifactPart:
		return part, invalid("limit", limit, fmt.Sprintf("must be 0 to %d", tuner.MaxArtifactPart))
	}
	err = f.locked(func(root *os.Root) error {
		a, ok := current(root, at)
		if !ok || q.SHA256 != "" && q.SHA256 != a.SHA256 {
			return nil
		}
		part = tuner.ArtifactPart{Artifact: a, Data: make([]byte, max(0, min(limit, a.Size-q.Offset)))}
		file, err := root.Open(path.Join(at, a.SHA256))
		if err != nil || len(part.Data) == 0 {
			return err
		}
		defer file.Close()
		_, err = file.ReadAt(part.Data, q.Offset)
		return err
	})
	if err == nil && part.Artifact == (tuner.Artifact{}) {
		err = missing(q.Trial, q.File)
	}
	return part, err
}

// List implements [tuner.Service] for a trial that exists.
func (f *Folder) List(s Study, trial int) (list []tuner.Artifact, err error) {
	err = f.locked(func(root *os.Root) error {
		at := path.Join(s.folder(), strconv.Itoa(trial))
		files, err := fs.ReadDir(root.FS(), at)
		for _, e := range files {
			if a, ok := current(root, path.Join(at, e.Name())); ok {
				list = append(list, a)
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return list, err
}

// Delete implements [tuner.Service] for a trial that exists.
func (f *Folder) Delete(s Study, c tuner.DeleteArtifact) error {
	at, err := place(s, c.Trial, c.File)
	if err != nil {
		return err
	}
	return f.locked(func(root *os.Root) error {
		if c.UploadID != "" {
			f.drop(root, partOf(at, c.UploadID))
		} else if err := f.clear(root, at, ""); err != nil {
			return err
		}
		_ = root.Remove(at) // fails if it is not empty
		return f.sync(at)
	})
}

// clear removes all contents at a place but one. f.mu is held.
func (f *Folder) clear(root *os.Root, at, but string) error {
	entries, err := fs.ReadDir(root.FS(), at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && content.MatchString(e.Name()) && e.Name() != but {
			if err := root.Remove(path.Join(at, e.Name())); err != nil {
				return err
			}
			f.used -= counted(info.Size())
		}
	}
	return err
}

// sync makes the names on the way to a place survive a loss of power.
func (f *Folder) sync(at string) error {
	var err error
	for p := filepath.Join(f.dir, at, "x"); len(p) >= len(f.dir); p = filepath.Dir(p) {
		if e := atomicfile.SyncDir(p); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// drop removes an upload and its place if it is empty. f.mu is held.
func (f *Folder) drop(root *os.Root, part string) {
	delete(f.uploads, part)
	f.due = time.Time{} // it may be one of an earlier process
	_ = root.Remove(part)
	_ = root.Remove(path.Dir(part))
}

// DeleteStudy removes the artifacts of a study that was deleted.
func (f *Folder) DeleteStudy(s Study) error {
	if f == nil {
		return nil
	}
	return f.locked(func(root *os.Root) error {
		f.due = time.Time{}
		return root.RemoveAll(s.folder())
	})
}

// Sweep removes the artifacts of studies that were missing for a day, and uploads that were given up.
func (f *Folder) Sweep(ctx context.Context, exists Exists) error {
	if f == nil {
		return nil
	}
	return f.locked(func(root *os.Root) error { return f.count(ctx, root, exists) })
}

func counted(size int64) int64 { return max(size, leastCount) }

// count counts the bytes in the folder, and sweeps. f.mu is held.
func (f *Folder) count(ctx context.Context, root *os.Root, exists Exists) error {
	begun := time.Now()
	if begun.Before(f.due) {
		return nil
	}
	studies, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range studies {
		var s Study
		var nanos int64
		if n, _ := fmt.Sscanf(e.Name(), "%d-%d", &s.ID, &nanos); n != 2 {
			continue
		}
		s.Created = time.Unix(0, nanos)
		there, err := exists(ctx, s)
		if err != nil || s.folder() != e.Name() {
			continue
		}
		// An older backup may be served by mistake, so that studies come back.
		mark := path.Join(e.Name(), "missing")
		info, err := root.Stat(mark)
		switch {
		case there && err == nil:
			err = root.Remove(mark)
		case there:
			err = nil
		case err == nil && begun.Sub(info.ModTime()) > abandoned:
			err = root.RemoveAll(e.Name())
		case errors.Is(err, fs.ErrNotExist):
			err = root.WriteFile(mark, nil, 0o600)
		}
		if err != nil {
			return err
		}
	}
	for part, u := range f.uploads {
		if _, err := root.Stat(part); err != nil || begun.Sub(u.seen) > idle {
			delete(f.uploads, part)
		}
	}
	used := int64(0)
	err = fs.WalkDir(root.FS(), ".", func(at string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return ctx.Err()
		}
		if err = errors.Join(err, ctx.Err()); err != nil || !e.Type().IsRegular() || f.uploads[at] != nil {
			return err
		}
		info, err := e.Info()
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed by another process
			return nil
		case err == nil && !content.MatchString(e.Name()) && begun.Sub(info.ModTime()) > abandoned:
			err = root.Remove(at)
			_ = root.Remove(path.Dir(at))
		case err == nil:
			used += counted(info.Size())
		}
		return err
	})
	if err != nil {
		return err
	}
	f.used, f.due = used, time.Now().Add(max(10*time.Second, 50*time.Since(begun)))
	return nil
}

// partOf returns where an upload grows.
func partOf(at, id string) string {
	return path.Join(at, fmt.Sprintf("part-%x", sha256.Sum256([]byte(id)))[:5+32])
}

func full(format string, args ...any) error {
	return &tuner.RemoteError{Code: tuner.Exhausted, Message: fmt.Sprintf(format, args...)}
}

// Write implements [tuner.Service] for a trial that exists.
func (f *Folder) Write(ctx context.Context, s Study, c tuner.WriteArtifact, exists Exists) (out tuner.WrittenArtifact, err error) {
	at, err := place(s, c.Trial, c.File)
	if err != nil {
		return out, err
	}
	end := c.Offset + int64(len(c.Data))
	if err := check(c, end); err != nil {
		return out, err
	}
	if f != nil && c.Offset == 0 {
		if err := os.Mkdir(f.dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return out, err
		}
	}
	root, err := f.open()
	if errors.Is(err, fs.ErrNotExist) && c.Offset > 0 {
		return out, beyond(c, 0)
	} else if err != nil {
		return out, err
	}
	defer root.Close()
	part := partOf(at, c.UploadID)
	if end == c.Size { // this may be a retry
		if out, err = f.finish(root, at, part, c, false); err != nil || out.Artifact.File != "" {
			return out, err
		}
	}
	u, err := f.begin(ctx, root, at, part, s, c, exists)
	if err != nil {
		return out, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	err = f.add(root, part, u, c)
	if end == c.Size {
		if out, e := f.finish(root, at, part, c, err == nil); e != nil || out.Artifact.File != "" {
			return out, e
		}
	}
	if err != nil && (u.sum == nil || c.Offset <= u.have) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.drop(root, part)
	}
	return tuner.WrittenArtifact{Received: u.have}, err
}

// check refuses a part that no upload has.
func check(c tuner.WriteArtifact, end int64) error {
	switch {
	case c.UploadID == "" || len(c.UploadID) > 128:
		return invalid("upload_id", c.UploadID, "must be 1 to 128 bytes, such as a random UUID")
	case c.Size < 0:
		return invalid("size", c.Size, "must not be negative")
	case c.Offset < 0 || c.Offset > c.Size:
		return invalid("offset", c.Offset, "must be 0 to the size of the file")
	case len(c.Data) > tuner.MaxArtifactPart:
		return invalid("data", len(c.Data), fmt.Sprintf("bytes are too many, the most is %d; send the rest in further parts", tuner.MaxArtifactPart))
	case end > c.Size:
		return invalid("data", len(c.Data), fmt.Sprintf("bytes go beyond the size of the file, %d", c.Size))
	case len(c.Data) == 0 && c.Size > 0:
		return invalid("data", 0, "bytes are too few, except for a file of no bytes")
	case (end == c.Size || c.SHA256 != "") && !content.MatchString(c.SHA256):
		return invalid("sha256", c.SHA256, "must be the checksum of the file in 64 hexadecimal digits, in the part that ends it")
	}
	return nil
}

func beyond(c tuner.WriteArtifact, have int64) error {
	return invalid("offset", c.Offset, fmt.Sprintf("is beyond the %d bytes that are there of this upload; upload the file again from offset 0", have))
}

// begin returns an upload, and begins it if the part is the first.
func (f *Folder) begin(ctx context.Context, root *os.Root, at, part string, s Study, c tuner.WriteArtifact, exists Exists) (*upload, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	u := f.uploads[part]
	if u != nil && u.size != c.Size {
		return nil, invalid("size", c.Size, fmt.Sprintf("was %d in an earlier part of this upload", u.size))
	}
	if u != nil {
		u.seen = time.Now()
		return u, nil
	}
	if err := f.count(ctx, root, exists); err != nil {
		return nil, err
	}
	info, err := root.Stat(part)
	known := int64(0) // counted already
	switch {
	case err == nil:
		known = counted(info.Size())
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	case c.Offset > 0:
		return nil, beyond(c, 0)
	}
	used := f.used - known
	for _, other := range f.uploads {
		used += counted(other.size)
	}
	if counted(c.Size) > f.quota-used {
		if known > 0 {
			f.drop(root, part)
		}
		return nil, full("the artifact %.60q of %d bytes exceeds the quota: artifacts take %d of %d bytes (tuner serve --artifact-quota); delete artifacts or studies, or raise the quota", c.File, c.Size, used, f.quota)
	}
	if err := f.fits(c, c.Size); err != nil {
		return nil, err
	}
	u = &upload{size: c.Size, seen: time.Now()}
	if known == 0 {
		u.sum = sha256.New()
		if err := f.place(ctx, root, at, part, s, c, exists); err != nil {
			return nil, err
		}
	}
	if len(f.uploads) >= maxUploads {
		oldest := ""
		for other, o := range f.uploads {
			if oldest == "" || o.seen.Before(f.uploads[oldest].seen) {
				oldest = other
			}
		}
		delete(f.uploads, oldest) // its next part reads it again
		f.due = time.Time{}
	}
	f.used -= known
	f.uploads[part] = u
	return u, nil
}

// place makes the empty part of an upload. f.mu is held.
func (f *Folder) place(ctx context.Context, root *os.Root, at, part string, s Study, c tuner.WriteArtifact, exists Exists) error {
	if there, err := exists(ctx, s); err != nil {
		return err
	} else if !there { // deleted since the trial was looked up
		return &store.NotFoundError{Study: s.ID}
	}
	if err := root.MkdirAll(path.Dir(at), 0o700); err != nil {
		return err
	}
	files, err := fs.ReadDir(root.FS(), path.Dir(at))
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(files, func(e fs.DirEntry) bool { return e.Name() == c.File }) {
		if len(files) >= MaxFiles {
			return full("trial %d has %d artifacts, the most that a trial may have; delete some, or put several files into one", c.Trial, len(files))
		}
		if err := root.Mkdir(at, 0o700); errors.Is(err, fs.ErrExist) { // on a disk that ignores case
			return invalid("file", c.File, "is too much like the name of another artifact for the disk; give the file another name")
		} else if err != nil {
			return err
		}
	}
	file, err := root.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return file.Close()
}

// fits refuses a file whose last bytes would fill the disk.
func (f *Folder) fits(c tuner.WriteArtifact, rest int64) error {
	if free, ok := f.free(f.dir); ok && free-spare < rest {
		return full("the artifact %.60q of %d bytes does not fit on the disk of %s: %d bytes are free, and %d of them stay free for studies; free space on the disk", c.File, c.Size, f.dir, free, int64(spare))
	}
	return nil
}

// add writes what is new of a part. u.mu is held.
func (f *Folder) add(root *os.Root, part string, u *upload, c tuner.WriteArtifact) error {
	file, err := root.OpenFile(part, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) { // the study was deleted, or another call ended the upload
		u.have, u.sum = 0, nil
		return beyond(c, 0)
	} else if err != nil {
		return err
	}
	defer file.Close()
	if u.sum == nil {
		sum := sha256.New()
		if u.have, err = io.Copy(sum, file); err != nil {
			return err
		}
		u.sum = sum
	}
	if c.Offset > u.have {
		return beyond(c, u.have)
	}
	fresh := c.Data[min(int64(len(c.Data)), u.have-c.Offset):]
	if err := f.fits(c, u.size-u.have); err != nil {
		return err
	}
	if len(fresh) > 0 {
		if _, err = file.WriteAt(fresh, u.have); err == nil {
			err = file.Sync()
		}
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return full("the artifact %.60q of %d bytes does not fit: the disk of %s is full; free space on the disk", c.File, c.Size, f.dir)
	} else if err != nil {
		return err
	}
	u.sum.Write(fresh)
	u.have += int64(len(fresh))
	if sum := hex.EncodeToString(u.sum.Sum(nil)); c.SHA256 != "" && u.have == u.size && sum != c.SHA256 {
		return invalid("sha256", c.SHA256, "is not the checksum of the bytes that arrived, "+sum+"; upload the file again")
	}
	return nil
}

// finish makes a whole part the content of its file. Without a rename it returns a content that
// is there already, or nothing.
func (f *Folder) finish(root *os.Root, at, part string, c tuner.WriteArtifact, rename bool) (out tuner.WrittenArtifact, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	whole := path.Join(at, c.SHA256)
	if info, err := root.Stat(whole); err == nil && info.Size() == c.Size {
		f.drop(root, part)
	} else if !rename {
		return out, nil
	} else if err := root.Rename(part, whole); errors.Is(err, fs.ErrNotExist) {
		return out, beyond(c, 0)
	} else if err != nil {
		return out, err
	} else {
		delete(f.uploads, part)
		f.used += counted(c.Size)
	}
	now := time.Now()
	if err := errors.Join(root.Chtimes(whole, now, now), f.clear(root, at, c.SHA256), f.sync(at)); err != nil {
		return out, err
	}
	out.Artifact, _ = current(root, at)
	out.Received = c.Size
	return out, nil
}
