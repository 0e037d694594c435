package web

import (
	"net/http"

	"google.golang.org/protobuf/proto"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
)

// backup sends a backup as a file. If it fails on the way, the connection breaks, so that the
// browser does not keep a part of it.
func (f *Face) backup(w http.ResponseWriter, r *http.Request) {
	ctx, err := f.pipe.Admit(r.Context(), callerOf(r), pb.Tuner_Backup_FullMethodName)
	begun := false
	var gone error // of the caller
	if err == nil {
		err = f.pipe.Stream(ctx, pb.Tuner_Backup_FullMethodName, &pb.BackupRequest{}, func(m proto.Message) error {
			if m == nil {
				return nil
			}
			if !begun {
				w.Header().Set("Content-Type", "application/octet-stream")
				w.Header().Set("Content-Disposition", `attachment; filename="tuner-backup.db"`)
			}
			begun = true
			gone = inPieces(w, m.(*pb.BackupResponse).GetChunk(), f.writeTimeout)
			return gone
		})
	}
	switch {
	case err == nil || gone != nil:
	case begun:
		f.log.Warn("a backup for a browser broke off", "error", err)
		panic(http.ErrAbortHandler)
	default:
		f.fail(w, r, err)
	}
}
