package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/bkbtuner/bkb/cmd/tuner/internal/record"
	pb "github.com/bkbtuner/bkb/proto/optuna"
	"github.com/bkbtuner/bkb/tuner/optuna"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	grpcstatus "google.golang.org/grpc/status"
)

// optunaScheme begins the address of a server of Optuna's storage in place of a file.
const optunaScheme = "optuna+grpc://"

// readStorage reads a study from a server of Optuna's storage. The empty name is that of
// the only study there.
func readStorage(ctx context.Context, where, name string) ([]byte, error) {
	address := strings.TrimPrefix(where, optunaScheme)
	if !strings.HasPrefix(address, "unix:") {
		if !strings.Contains(address, ":") || strings.ContainsAny(address, "/?#@") {
			return nil, usagef("%s: the address must be host:port or unix:path, such as %s127.0.0.1:13000; name the study with --optuna-study", where, optunaScheme)
		}
		address = "passthrough:///" + address
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)))
	if err != nil {
		return nil, usagef("%s: %w", where, err)
	}
	defer conn.Close()
	data, err := optuna.Export(ctx, pb.NewStorageServiceClient(conn), name)
	none := (*optuna.NoStudyError)(nil)
	switch {
	case err == nil:
		return data, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &none):
		return nil, &statusError{exitNotFound, fmt.Errorf("%s: %w (--optuna-study)", where, err)}
	case grpcstatus.Code(err) == codes.Unavailable:
		return nil, &statusError{exitUnavailable, fmt.Errorf("%s: nothing answers there (%s); start tuner serve --optuna or optuna.storages.run_grpc_proxy_server", where, grpcstatus.Convert(err).Message())}
	case grpcstatus.Code(err) == codes.Unimplemented:
		return nil, &statusError{exitInvalid, fmt.Errorf("%s: the server there does not speak Optuna's storage protocol; use the address of --optuna", where)}
	default:
		return nil, fmt.Errorf("%s: %w", where, err)
	}
}

// refuseStorage returns the error of a file that is a storage of Optuna, or nil. Only
// Optuna reads its files.
func refuseStorage(path string, data []byte) error {
	const head = 1 << 20 // the tables are described on the first pages
	var what string
	switch begin := data[:min(len(data), head)]; {
	case record.IsSQLite(begin) && bytes.Contains(begin, []byte("trial_intermediate_values")):
		what = "is an SQLite storage of Optuna, which only Optuna reads"
	case record.IsSQLite(begin):
		what = "is an SQLite database, which cannot be imported unless it is from Optuna"
	case bytes.HasPrefix(begin, []byte(`{"op_code":`)) && bytes.Contains(begin, []byte(`"worker_id":`)):
		what = "is a journal of Optuna, which only Optuna reads"
	default:
		return nil
	}
	return &statusError{exitInvalid, fmt.Errorf("%s %s; run python -m bkb import-optuna %s (pip install bkb-tuner[optuna]), or write the study as JSON with examples/python/optuna_export.py and import that file", path, what, path)}
}
