package server

import (
	"fmt"

	"github.com/bkbtuner/bkb/store/bolt"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// limitFlags adds a flag for each limit of a server.
func limitFlags(fs *pflag.FlagSet, l *server.Limits) {
	for _, f := range []struct {
		to    *int
		name  string
		most  int
		usage string
	}{
		{&l.MaxConnections, "max-connections", 2000, "open connections"},
		{&l.MaxConnectionsPerAddress, "max-connections-per-address", 1000, "open connections from one IP address"},
		{&l.MaxStrangers, "max-strangers", 1024, "open connections without a valid token or certificate"},
		{&l.MaxStrangersPerAddress, "max-strangers-per-address", 512, "such connections from one IP address"},
		{&l.MaxHealthWatches, "max-health-watches", 256, "health watches at once"},
		{&l.MaxHealthWatchesPerAddress, "max-health-watches-per-address", 32, "health watches at once from one IP address"},
		{&l.MaxInFlight, "max-calls", 4096, "calls at once, the last tenth for admins"},
		{&l.MaxInFlightPerToken, "max-calls-per-token", 1024, "calls at once with one token"},
		{&l.MaxInFlightPerStudy, "max-calls-per-study", 2048, "calls at once to one study"},
		{&l.MaxWatches, "max-watches", 1000, "watches at once, the last tenth for admins"},
		{&l.MaxWatchesPerToken, "max-watches-per-token", 200, "watches at once with one token"},
		{&l.MaxWatchesPerStudy, "max-watches-per-study", 500, "watches at once of one study"},
	} {
		fs.IntVar(f.to, f.name, 0, fmt.Sprintf("%s (default %d)", f.usage, f.most))
	}
	fs.Float64Var(&l.WriteRate, "write-rate", 0, "bytes per second of changes with one token (default 2097152)")
}

// quotaFlags adds flags for the most that a server stores.
func quotaFlags(fs *pflag.FlagSet, o *tuner.Options, maxFile *int64) {
	fs.Int64Var(&o.MaxStudyBytes, "max-study-bytes", 1<<30, "bytes of events in one study, 0 for no limit")
	fs.Int64Var(&o.MaxStudyReports, "max-study-reports", 10_000_000, "reports of one study, 0 for no limit")
	fs.Int64Var(maxFile, "max-file", bolt.DefaultMaxSize, "bytes of the file (writes stop 16 MiB before)")
}

func NewLimitsTopic() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "limits",
		Short: "Limits of a server",
		Long: `A server refuses what exceeds its limits. These are flags of tuner serve. A negative
number means no limit.

The limits of calls, watches and rates protect the clients from each other. The
limits of stored bytes and reports protect the disk.`,
		Example: "  tuner serve --rate 500 --max-file 17179869184",
	}
	var s serving
	s.addLimits(cmd)
	return cmd
}
