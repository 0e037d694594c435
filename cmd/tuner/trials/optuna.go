package trials

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/cmd/tuner/record"
	pb "github.com/bkbtuner/bkb/proto/optuna"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/optuna"
	"github.com/bkbtuner/bkb/tuner/shared"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	grpcstatus "google.golang.org/grpc/status"
)

// OptunaScheme begins the address of a server of Optuna's storage in place of a file.
const OptunaScheme = "optuna+grpc://"

// ReadStorage reads a study from a server of Optuna's storage. The empty name is that of
// the only study there.
func ReadStorage(ctx context.Context, where, name string) ([]byte, error) {
	address := strings.TrimPrefix(where, OptunaScheme)
	if !strings.HasPrefix(address, "unix:") {
		if !strings.Contains(address, ":") || strings.ContainsAny(address, "/?#@") {
			return nil, cli.Usagef("%s: the address must be host:port or unix:path, such as %s127.0.0.1:13000; name the study with --optuna-study", where, OptunaScheme)
		}
		address = "passthrough:///" + address
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)))
	if err != nil {
		return nil, cli.Usagef("%s: %w", where, err)
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
		return nil, cli.Exit(cli.ExitNotFound, fmt.Errorf("%s: %w (--optuna-study)", where, err))
	case grpcstatus.Code(err) == codes.Unavailable:
		return nil, cli.Exit(cli.ExitUnavailable, fmt.Errorf("%s: nothing answers there (%s); start tuner serve --optuna or optuna.storages.run_grpc_proxy_server", where, grpcstatus.Convert(err).Message()))
	case grpcstatus.Code(err) == codes.Unimplemented:
		return nil, cli.Exit(cli.ExitInvalid, fmt.Errorf("%s: the server there does not speak Optuna's storage protocol; use the address of --optuna", where))
	default:
		return nil, fmt.Errorf("%s: %w", where, err)
	}
}

// exportOptuna writes a study of Optuna that is in a file.
func exportOptuna(ctx context.Context, g *cli.Globals, cmd *cobra.Command, svc tuner.Service, name string) error {
	if err := OnlyOptunaForm(cmd, name); err != nil {
		return err
	}
	file, ok := svc.(*shared.Service)
	if !ok {
		return cli.Exit(cli.StatusOf(study.ErrForeign), fmt.Errorf("study %s belongs to Optuna, whose trials a server gives at the address of --optuna; run tuner export %sADDRESS, or export from the file with --db", name, OptunaScheme))
	}
	var data []byte
	err := file.Do(ctx, func(svc tuner.Service) (err error) {
		data, err = optuna.New(svc.(*tuner.Tuner), optuna.Options{}).ExportStudy(ctx, name)
		return err
	})
	if err != nil {
		return err
	}
	return WriteLine(cmd.OutOrStdout(), data)
}

// OnlyOptunaForm refuses flags that have no effect on a study of Optuna.
func OnlyOptunaForm(cmd *cobra.Command, name string) error {
	if f := cmd.Flag("format"); f.Changed && f.Value.String() != string(record.Optuna) {
		return cli.Usagef("-f %s: %s is a study of Optuna, which only has the format optuna; leave out -f, and import the file to have another format", f.Value, name)
	}
	for _, flag := range []string{"state", "worker", "first", "limit"} {
		if cmd.Flag(flag).Changed {
			return cli.Usagef("--%s: %s is a study of Optuna, which is exported whole; leave out --%s", flag, name, flag)
		}
	}
	return nil
}

func WriteLine(w io.Writer, data []byte) error {
	_, err := w.Write(append(data, '\n'))
	return err
}
