package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/bkbtuner/bkb/cmd/tuner/internal/record"
	"github.com/bkbtuner/bkb/cmd/tuner/internal/shared"
	pb "github.com/bkbtuner/bkb/proto/optuna"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/optuna"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
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
	data, err := optuna.Export(ctx, optuna.Remote{Client: pb.NewStorageServiceClient(conn)}, name)
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

// exportOptuna writes a study of Optuna that is in a file.
func (g *globals) exportOptuna(ctx context.Context, cmd *cobra.Command, svc tuner.Service, name string) error {
	if err := onlyOptunaForm(cmd, name); err != nil {
		return err
	}
	file, ok := svc.(*shared.Service)
	if !ok {
		return &statusError{statusOf(study.ErrForeign), fmt.Errorf("study %s belongs to Optuna, whose trials a server gives at the address of --optuna; run tuner export %sADDRESS, or export from the file with --db", name, optunaScheme)}
	}
	var data []byte
	err := file.Do(ctx, func(svc tuner.Service) (err error) {
		data, err = optuna.New(svc.(*tuner.Tuner), optuna.Options{}).ExportStudy(ctx, name)
		return err
	})
	if err != nil {
		return err
	}
	return writeLine(cmd.OutOrStdout(), data)
}

// onlyOptunaForm refuses flags that have no effect on a study of Optuna.
func onlyOptunaForm(cmd *cobra.Command, name string) error {
	if f := cmd.Flag("format"); f.Changed && f.Value.String() != string(record.Optuna) {
		return usagef("-f %s: %s is a study of Optuna, which only has the format optuna; leave out -f, and import the file to have another format", f.Value, name)
	}
	for _, flag := range []string{"state", "worker", "first", "limit"} {
		if cmd.Flag(flag).Changed {
			return usagef("--%s: %s is a study of Optuna, which is exported whole; leave out --%s", flag, name, flag)
		}
	}
	return nil
}

func writeLine(w io.Writer, data []byte) error {
	_, err := w.Write(append(data, '\n'))
	return err
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
