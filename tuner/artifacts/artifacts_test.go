package artifacts

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
)

var ctx = context.Background()

func always(context.Context, Study) (bool, error) { return true, nil }

func sumOf(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }

// part is a part of an upload of data.
func part(trial int, file, id string, data []byte, from, to int) tuner.WriteArtifact {
	c := tuner.WriteArtifact{Trial: trial, File: file, UploadID: id, Size: int64(len(data)), Offset: int64(from), Data: data[from:to]}
	if to == len(data) {
		c.SHA256 = sumOf(data)
	}
	return c
}

func whole(file, id string, data []byte) tuner.WriteArtifact {
	return part(0, file, id, data, 0, len(data))
}

// within returns all files in a folder.
func within(t *testing.T, dir string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			paths = append(paths, p)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return paths
}

// TestModel makes random calls, each twice, and compares the folder with a map. Uploads of the
// same names are under way together, and new processes continue them.
func TestModel(t *testing.T) {
	t.Parallel()
	const seed = 20261128
	r := rand.New(rand.NewPCG(seed, 1))
	dir := filepath.Join(t.TempDir(), "a")
	f := New(dir, 0)
	type key struct {
		study Study
		trial int
		file  string
	}
	type open struct {
		key
		id   string
		data []byte
		sent int
	}
	model := make(map[key][]byte)
	var opened []*open
	studies := []Study{{1, time.Unix(1, 5)}, {1, time.Unix(2, 0)}, {12, time.Unix(1, 5)}}
	files := []string{"model.pt", "a b", "ä"}
	for step := range 250 {
		k := key{studies[r.IntN(3)], r.IntN(2), files[r.IntN(3)]}
		switch n := r.IntN(20); {
		case n < 5:
			data := make([]byte, r.IntN(3)*r.IntN(1000))
			for i := range data {
				data[i] = byte(r.Uint32())
			}
			opened = append(opened, &open{k, fmt.Sprint("id", step), data, 0})
		case n < 14 && len(opened) > 0:
			i := r.IntN(len(opened))
			u := opened[i]
			to := u.sent + r.IntN(len(u.data)-u.sent+1)
			if to == u.sent {
				to = len(u.data)
			}
			c := part(u.trial, u.file, u.id, u.data, u.sent, to)
			first, err := f.Write(ctx, u.study, c, always)
			again, err2 := f.Write(ctx, u.study, c, always)
			first.Artifact.Modified, again.Artifact.Modified = time.Time{}, time.Time{}
			if err != nil || err2 != nil || first != again || first.Received != int64(to) {
				t.Fatalf("step %d: %v %v, then %v %v", step, first, err, again, err2)
			}
			if u.sent = to; to == len(u.data) {
				model[u.key] = u.data
				opened = slices.Delete(opened, i, i+1)
			}
		case n == 14 && len(opened) > 0: // given up
			i := r.IntN(len(opened))
			c := tuner.DeleteArtifact{Trial: opened[i].trial, File: opened[i].file, UploadID: opened[i].id}
			if err := errors.Join(f.Delete(opened[i].study, c), f.Delete(opened[i].study, c)); err != nil {
				t.Fatal(err)
			}
			opened = slices.Delete(opened, i, i+1)
		case n == 15:
			c := tuner.DeleteArtifact{Trial: k.trial, File: k.file}
			if err := errors.Join(f.Delete(k.study, c), f.Delete(k.study, c)); err != nil {
				t.Fatal(err)
			}
			delete(model, k)
		case n == 16 && step%3 == 0:
			if err := errors.Join(f.DeleteStudy(k.study), f.DeleteStudy(k.study)); err != nil {
				t.Fatal(err)
			}
			for other := range model {
				if other.study == k.study {
					delete(model, other)
				}
			}
			opened = slices.DeleteFunc(opened, func(u *open) bool { return u.study == k.study })
		case n == 17:
			f = New(dir, 0)
		}
		for _, s := range studies {
			for trial := range 2 {
				list, err := f.List(s, trial)
				if err != nil {
					t.Fatal(err)
				}
				left := 0
				for other := range model {
					if other.study == s && other.trial == trial {
						left++
					}
				}
				for _, a := range list {
					want := model[key{s, trial, a.File}]
					got, err := f.Read(s, tuner.ReadArtifact{Trial: trial, File: a.File, SHA256: a.SHA256})
					if err != nil || !bytes.Equal(got.Data, want) || a.Size != int64(len(want)) || a.SHA256 != sumOf(want) {
						t.Fatalf("step %d: %v has %d bytes, want %d: %v", step, a, len(got.Data), len(want), err)
					}
				}
				if len(list) != left {
					t.Fatalf("step %d: %v, want %d artifacts", step, list, left)
				}
			}
		}
		f.mu.Lock()
		kept, exact := f.used, !f.due.IsZero()
		f.due = time.Time{}
		f.mu.Unlock()
		if err := f.Sweep(ctx, always); err != nil || exact && f.used != kept {
			t.Fatalf("step %d: %d bytes are counted, and %d are there", step, kept, f.used)
		}
	}
	for _, s := range studies {
		if err := f.DeleteStudy(s); err != nil {
			t.Fatal(err)
		}
	}
	if left := within(t, dir); len(left) > 0 {
		t.Errorf("there are %v", left)
	}
}

// TestRefusals checks what is refused, with its reason.
func TestRefusals(t *testing.T) {
	t.Parallel()
	outer := t.TempDir()
	f, s := New(filepath.Join(outer, "a"), 0), Study{ID: 1}
	for _, file := range []string{
		"", ".", "..", ".x", "a/b", "/a", `a\b`, "../a", `..\a`, "a\x00", "a\n", "\xff", "c:", "a*", "a?", "a.", "a ", "nul", "Con.txt", "COM1", "lpt¹.x", "aux .x",
		strings.Repeat("ä", 128), "a\u0085",
	} {
		c := whole("x", "id", []byte("data"))
		c.File = file
		_, err := f.Write(ctx, s, c, always)
		_, errRead := f.Read(s, tuner.ReadArtifact{File: file})
		for _, err := range []error{err, errRead, f.Delete(s, tuner.DeleteArtifact{File: file})} {
			if tuner.CodeOf(err) != tuner.Invalid || !strings.HasPrefix(err.Error(), "file = ") {
				t.Errorf("%q: %v", file, err)
			}
		}
	}
	data := make([]byte, tuner.MaxArtifactPart+1)
	for reason, change := range map[string]func(*tuner.WriteArtifact){
		"upload_id": func(c *tuner.WriteArtifact) { c.UploadID = "" },
		"size":      func(c *tuner.WriteArtifact) { c.Size = -1 },
		"offset = ": func(c *tuner.WriteArtifact) { c.Offset = -1 },
		"offset":    func(c *tuner.WriteArtifact) { c.Offset = 1 }, // which no part has reached
		"data":      func(c *tuner.WriteArtifact) { c.Data = data },
		"data = ":   func(c *tuner.WriteArtifact) { c.Data = nil },
		"data = 5":  func(c *tuner.WriteArtifact) { c.Data = data[:5] },
		"sha256":    func(c *tuner.WriteArtifact) { c.SHA256 = "" },
		"sha256 = ": func(c *tuner.WriteArtifact) { c.SHA256 = sumOf([]byte("other")) },
	} {
		c := whole("x", "id", []byte("data"))
		if reason == "offset" {
			c.Data = c.Data[1:]
		}
		change(&c)
		if _, err := f.Write(ctx, s, c, always); tuner.CodeOf(err) != tuner.Invalid || !strings.HasPrefix(err.Error(), reason) {
			t.Errorf("%s: %v", reason, err)
		}
	}
	for _, q := range []tuner.ReadArtifact{{File: "x", Offset: -1}, {File: "x", Limit: -1}, {File: "x", Limit: tuner.MaxArtifactPart + 1}} {
		if _, err := f.Read(s, q); tuner.CodeOf(err) != tuner.Invalid {
			t.Errorf("%v: %v", q, err)
		}
	}
	if _, err := (*Folder)(nil).Write(ctx, s, whole("x", "id", nil), always); tuner.CodeOf(err) != tuner.Unsupported {
		t.Error(err)
	}
	if left := within(t, outer); len(left) > 0 {
		t.Errorf("there are %v", left)
	}
	for i := range MaxFiles { // made by hand, to be quick
		if err := os.MkdirAll(filepath.Join(f.dir, s.folder(), "0", fmt.Sprint(i)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.Write(ctx, s, whole("x", "id", nil), always); tuner.CodeOf(err) != tuner.Exhausted {
		t.Error(err)
	}
}

// TestQuota uploads from many goroutines. As many files fit as the quota allows, and nothing
// is left of the others.
func TestQuota(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a")
	const size, room = 10_000, 5
	f, s := New(dir, room*size+100), Study{ID: 1}
	var stored atomic.Int32
	var group sync.WaitGroup
	for i := range 4 * room {
		group.Go(func() {
			data := bytes.Repeat([]byte{byte(i)}, size)
			file, id := fmt.Sprint("f", i), fmt.Sprint(i)
			_, err := f.Write(ctx, s, part(0, file, id, data, 0, 100), always)
			if err == nil {
				_, err = f.Write(ctx, s, part(0, file, id, data, 100, size), always)
			}
			switch tuner.CodeOf(err) {
			case tuner.OK:
				stored.Add(1)
			case tuner.Exhausted:
				if want := fmt.Sprintf("%q of %d bytes exceeds the quota: artifacts take %d of %d bytes (tuner serve --artifact-quota)", file, size, room*size, room*size+100); !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want %s", err, want)
				}
			default:
				t.Error(err)
			}
		})
	}
	group.Wait()
	if files := within(t, dir); stored.Load() != room || len(files) != room {
		t.Errorf("%d uploads succeeded, and there are %v", stored.Load(), files)
	}
	// A small file counts 4 KiB.
	if _, err := f.Write(ctx, s, whole("small", "s", nil), always); tuner.CodeOf(err) != tuner.Exhausted {
		t.Error(err)
	}
	list, err := f.List(s, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Delete(s, tuner.DeleteArtifact{File: list[0].File}); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"small", "small2"} {
		if _, err := f.Write(ctx, s, whole(file, "s", nil), always); err != nil {
			t.Error(err)
		}
	}
	// What another process left counts as it is.
	left := bytes.Repeat([]byte{1}, size)
	if _, err := f.Write(ctx, s, part(0, "left", "s", left, 0, 1000), always); err == nil {
		t.Error("an upload exceeds the quota")
	}
	f = New(dir, room*size+100)
	if _, err := f.Write(ctx, s, whole("small3", "s", nil), always); tuner.CodeOf(err) != tuner.Exhausted {
		t.Error(err)
	}
	f.quota = 1 << 60
	f.free = func(string) (int64, bool) { return spare + size - 1, true }
	if _, err := f.Write(ctx, s, part(0, "left", "s", left, 0, 1000), always); tuner.CodeOf(err) != tuner.Exhausted || !strings.Contains(err.Error(), "stay free for studies") {
		t.Error(err)
	}
	f.free = func(string) (int64, bool) { return spare + size, true }
	if _, err := f.Write(ctx, s, part(0, "left", "s", left, 0, 1000), always); err != nil {
		t.Error(err)
	}
	f.free = func(string) (int64, bool) { return spare, true }
	if _, err := f.Write(ctx, s, part(0, "left", "s", left, 1000, 2000), always); tuner.CodeOf(err) != tuner.Exhausted {
		t.Error(err)
	}
	if files := within(t, dir); len(files) != room+1 {
		t.Errorf("there are %v", files)
	}
}

// TestIdleUpload begins an upload that no one continues. Its final size is kept for some minutes.
func TestIdleUpload(t *testing.T) {
	t.Parallel()
	f, s, data := New(filepath.Join(t.TempDir(), "a"), 20_000), Study{ID: 1}, make([]byte, 15_000)
	if _, err := f.Write(ctx, s, part(0, "x", "1", data, 0, 10), always); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(ctx, s, whole("x", "2", data), always); tuner.CodeOf(err) != tuner.Exhausted {
		t.Error(err)
	}
	for _, u := range f.uploads {
		u.seen = time.Now().Add(-idle - time.Second)
	}
	f.due = time.Time{}
	if _, err := f.Write(ctx, s, whole("x", "2", data), always); err != nil {
		t.Error(err)
	}
}

// TestDanglingLink writes through a link to a disk that is not there.
func TestDanglingLink(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a")
	if err := os.Symlink("nowhere", dir); err != nil {
		t.Skip(err)
	}
	if _, err := New(dir, 0).Write(ctx, Study{ID: 1}, whole("x", "1", nil), always); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestSweep removes what is of no study, and parts that are a day old.
func TestSweep(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a")
	f := New(dir, 0)
	kept, gone := Study{ID: 3, Created: time.Unix(5, 0)}, Study{ID: 3, Created: time.Unix(4, 0)}
	data := []byte("data")
	for _, s := range []Study{kept, gone} {
		for _, c := range []tuner.WriteArtifact{whole("x", "1", data), part(0, "x", "2", data, 0, 2), part(0, "y", "3", data, 0, 2)} {
			if _, err := f.Write(ctx, s, c, always); err != nil {
				t.Fatal(err)
			}
		}
	}
	old := time.Now().Add(-abandoned - time.Minute)
	if err := os.Chtimes(filepath.Join(dir, kept.folder(), "0", "y", filepath.Base(partOf("", "3"))), old, old); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "mine"), 0o700); err != nil {
		t.Fatal(err)
	}
	f = New(dir, 0)
	sweep := func(exists Exists) {
		t.Helper()
		if err := f.Sweep(ctx, exists); err != nil {
			t.Fatal(err)
		}
		f.due = time.Time{}
	}
	age := func() {
		t.Helper()
		if err := os.Chtimes(filepath.Join(dir, gone.folder(), "missing"), old, old); err != nil {
			t.Fatal(err)
		}
	}
	without := func(_ context.Context, s Study) (bool, error) {
		return s.ID == kept.ID && s.Created.Equal(kept.Created), nil
	}
	sweep(func(context.Context, Study) (bool, error) { return false, store.ErrUnavailable })
	sweep(without)
	age()
	sweep(always) // it came back
	sweep(without)
	sweep(without)
	if n := len(within(t, dir)); n != 6 {
		t.Errorf("after less than a day there are %d files", n)
	}
	age()
	sweep(without)
	left := within(t, dir)
	names, _ := os.ReadDir(dir)
	if len(left) != 2 || len(names) != 2 || filepath.Dir(left[0]) != filepath.Dir(left[1]) {
		t.Errorf("there are %v in %v", left, names)
	}
	if _, err := os.Stat(filepath.Join(dir, kept.folder(), "0", "y")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the empty place of a part is there")
	}
}

// TestDeletedStudy deletes the study between the parts of an upload, and before its first one.
func TestDeletedStudy(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a")
	f, s, data := New(dir, 8<<10), Study{ID: 1}, make([]byte, 8<<10)
	if _, err := f.Write(ctx, s, part(0, "x", "1", data, 0, 2), always); err != nil {
		t.Fatal(err)
	}
	if err := f.DeleteStudy(s); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := f.Write(ctx, s, part(0, "x", "1", data, 2, len(data)), always); tuner.CodeOf(err) != tuner.Invalid {
			t.Error(err)
		}
	}
	never := func(context.Context, Study) (bool, error) { return false, nil }
	if _, err := f.Write(ctx, s, whole("x", "2", data), never); tuner.CodeOf(err) != tuner.NotFound {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("there are %v", left)
	}
	if _, err := f.Write(ctx, Study{ID: 2}, whole("x", "2", data), always); err != nil {
		t.Error("the upload still counts: ", err)
	}
}

// TestReplaced replaces a file while it is read, and uploads the old one again.
func TestReplaced(t *testing.T) {
	t.Parallel()
	f, s := New(filepath.Join(t.TempDir(), "a"), 0), Study{ID: 1}
	one, two := bytes.Repeat([]byte("1"), 1000), bytes.Repeat([]byte("2"), 1000)
	put := func(id string, data []byte) {
		t.Helper()
		if _, err := f.Write(ctx, s, whole("x", id, data), always); err != nil {
			t.Fatal(err)
		}
	}
	put("1", one)
	got, err := f.Read(s, tuner.ReadArtifact{File: "x", Limit: 600})
	if err != nil || len(got.Data) != 600 {
		t.Fatal(got, err)
	}
	put("2", two)
	q := tuner.ReadArtifact{File: "x", SHA256: got.Artifact.SHA256, Offset: 600}
	if got, err := f.Read(s, q); tuner.CodeOf(err) != tuner.NotFound {
		t.Errorf("%d bytes, %v", len(got.Data), err)
	}
	put("3", one)
	for offset, want := range map[int64]int{600: 400, 1000: 0, 5000: 0} {
		q.Offset = offset
		if got, err := f.Read(s, q); err != nil || len(got.Data) != want {
			t.Errorf("offset %d: %d bytes, %v", offset, len(got.Data), err)
		}
	}
	if files := within(t, f.dir); len(files) != 1 {
		t.Errorf("there are %v", files)
	}
}

// TestTogether ends an upload by several calls at the same time, with the same answer.
func TestTogether(t *testing.T) {
	t.Parallel()
	f, s := New(filepath.Join(t.TempDir(), "a"), 0), Study{ID: 1}
	for i := range 20 {
		data := bytes.Repeat([]byte{byte(i)}, 2000)
		id := fmt.Sprint(i)
		if _, err := f.Write(ctx, s, part(0, "x", id, data, 0, 1000), always); err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				if out, err := f.Write(ctx, s, part(0, "x", id, data, 1000, 2000), always); err != nil || out.Artifact.SHA256 != sumOf(data) {
					t.Errorf("%v, %v", out, err)
				}
			})
		}
		group.Wait()
	}
}

// TestKill kills a process that replaces a file again and again. Afterwards there is the last
// content that was acknowledged or the next, and it is whole.
func TestKill(t *testing.T) {
	if dir := os.Getenv("ARTIFACTS_CHILD"); dir != "" {
		f := New(dir, 0)
		for i := byte(0); ; i++ {
			data := bytes.Repeat([]byte{i}, 3000)
			for from := 0; from < 3000; from += 1000 {
				if _, err := f.Write(ctx, Study{ID: 1}, part(0, "x", fmt.Sprint(os.Getpid(), i), data, from, from+1000), always); err != nil {
					t.Fatal(err)
				}
			}
			fmt.Println(i)
		}
	}
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a")
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	for range 15 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKill$")
		cmd.Env = append(os.Environ(), "ARTIFACTS_CHILD="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil || cmd.Start() != nil {
			t.Fatal(err, cmd.Err)
		}
		lines, acknowledged := bufio.NewScanner(out), -1
		for n := 1 + r.IntN(20); n > 0 && lines.Scan(); n-- {
			fmt.Sscan(lines.Text(), &acknowledged)
		}
		time.Sleep(time.Duration(r.IntN(3000)) * time.Microsecond)
		_ = cmd.Process.Kill()
		for lines.Scan() {
			fmt.Sscan(lines.Text(), &acknowledged)
		}
		_ = cmd.Wait()
		part, err := New(dir, 0).Read(Study{ID: 1}, tuner.ReadArtifact{File: "x"})
		if err != nil || acknowledged < 0 {
			t.Fatal(acknowledged, err)
		}
		if v := part.Data[0]; !bytes.Equal(part.Data, bytes.Repeat([]byte{v}, 3000)) || int(v) != acknowledged && int(v) != acknowledged+1 || part.Artifact.SHA256 != sumOf(part.Data) {
			t.Errorf("after %d there is %d: %v", acknowledged, v, part.Artifact)
		}
	}
}
