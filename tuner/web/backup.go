package web

import (
	"errors"
	"io"
	"net/http"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
)

// backup sends a backup as a file. If it fails on the way, the connection breaks, so that the
// browser does not keep a part of it.
func (f *Face) backup(w http.ResponseWriter, r *http.Request) {
	ctx, err := f.pipe.Admit(r.Context(), callerOf(r), pb.Tuner_Backup_FullMethodName)
	if err != nil {
		f.fail(w, r, err)
		return
	}
	stream, err := pb.NewTunerClient(f.pipe.Conn()).Backup(ctx, &pb.BackupRequest{})
	if err != nil {
		f.fail(w, r, err)
		return
	}
	for begun := false; ; begun = true {
		part, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return
		case err != nil && begun:
			f.log.Warn("a backup for a browser broke off", "error", err)
			panic(http.ErrAbortHandler)
		case err != nil:
			f.fail(w, r, err)
			return
		}
		if !begun {
			w.Header().Set("Content-Type", "application/octet-stream")
			w.Header().Set("Content-Disposition", `attachment; filename="tuner-backup.db"`)
		}
		if err := inPieces(w, part.GetChunk(), f.writeTimeout); err != nil {
			return // the caller is gone
		}
	}
}
