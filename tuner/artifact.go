package tuner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"time"
)

// Artifact is a file that belongs to a trial, such as a model.
type Artifact struct {
	File     string // its name
	Size     int64  // in bytes
	SHA256   string // of its content, in hexadecimal digits
	Modified time.Time
}

// MaxArtifactPart is the most bytes of a file that one call carries.
const MaxArtifactPart = 512 << 10

// WriteArtifact is a part of a file that becomes an artifact. The part that reaches Size ends
// the file, and needs SHA256.
type WriteArtifact struct {
	Trial    int
	File     string
	UploadID string // the same for all parts of an upload
	Size     int64  // of the whole file
	Offset   int64  // at most the bytes that arrived before
	Data     []byte // at most MaxArtifactPart, and empty only in a file of no bytes
	SHA256   string // of the whole file
}

// WrittenArtifact is the answer to a part. Artifact is zero until the file is there.
type WrittenArtifact struct {
	Received int64 // bytes of the file
	Artifact Artifact
}

// ReadArtifact asks for a part of an artifact. With SHA256, an artifact with another content
// is NotFound, so that all parts are of one file.
type ReadArtifact struct {
	Trial  int
	File   string
	SHA256 string
	Offset int64
	Limit  int // 0 means MaxArtifactPart
}

// ArtifactPart is a part of an artifact. Data is empty at its end.
type ArtifactPart struct {
	Artifact Artifact
	Data     []byte
}

// ListArtifacts asks for the artifacts of a trial.
type ListArtifacts struct{ Trial int }

// DeleteArtifact deletes an artifact or, with UploadID, gives an upload up.
type DeleteArtifact struct {
	Trial    int
	File     string
	UploadID string
}

// Upload makes size bytes of r an artifact of a trial. If it fails, nothing is left of them.
func Upload(ctx context.Context, s Service, study string, trial int, file string, size int64, r io.Reader) (Artifact, error) {
	c := WriteArtifact{Trial: trial, File: file, UploadID: NewRequestID(), Size: size}
	sum, buffer := sha256.New(), make([]byte, min(MaxArtifactPart, size))
	for {
		c.Data = buffer[:min(int64(len(buffer)), size-c.Offset)]
		_, err := io.ReadFull(r, c.Data)
		sum.Write(c.Data)
		if c.Offset+int64(len(c.Data)) == size {
			c.SHA256 = hex.EncodeToString(sum.Sum(nil))
		}
		var written WrittenArtifact
		if err != nil {
			err = fmt.Errorf("reading %s: %w", file, err)
		} else {
			written, err = s.WriteArtifact(ctx, study, c)
		}
		if err != nil {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			_ = s.DeleteArtifact(ctx, study, DeleteArtifact{Trial: trial, File: file, UploadID: c.UploadID}) // else it goes after a day
			return Artifact{}, err
		}
		if c.Offset += int64(len(c.Data)); c.Offset == size {
			return written.Artifact, nil
		}
	}
}

// Download writes an artifact to w, and checks that it is whole. If it fails, w may have a part.
func Download(ctx context.Context, s Service, study string, trial int, file string, w io.Writer) (Artifact, error) {
	q, sum := ReadArtifact{Trial: trial, File: file}, sha256.New()
	for {
		part, err := s.ReadArtifact(ctx, study, q)
		if err != nil {
			return Artifact{}, err
		}
		sum.Write(part.Data)
		if _, err := w.Write(part.Data); err != nil {
			return Artifact{}, err
		}
		q.SHA256, q.Offset = part.Artifact.SHA256, q.Offset+int64(len(part.Data))
		if q.Offset >= part.Artifact.Size || len(part.Data) == 0 {
			if got := hex.EncodeToString(sum.Sum(nil)); got != q.SHA256 {
				return Artifact{}, &RemoteError{Code: Damaged, Message: fmt.Sprintf("the artifact %q of trial %d is damaged: its checksum is %s, and that of its content is %s; upload it again", file, trial, q.SHA256, got)}
			}
			return part.Artifact, nil
		}
	}
}
