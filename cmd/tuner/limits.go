package main

import (
	"fmt"

	"github.com/bkbtuner/bkb/store/bolt"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/spf13/pflag"
)

// limitFlags adds a flag for each limit of a server that an admin may want to set.
func limitFlags(fs *pflag.FlagSet, l *server.Limits) {
	for _, f := range []struct {
		to    *int
		name  string
		most  int
		usage string
	}{
		{&l.MaxConnections, "max-connections", 2000, "open connections"},
		{&l.MaxConnectionsPerAddress, "max-connections-per-address", 1000, "open connections from one IP address"},
		{&l.MaxStrangers, "max-strangers", 1024, "open connections on which no call has shown a token or certificate"},
		{&l.MaxStrangersPerAddress, "max-strangers-per-address", 512, "such connections from one IP address"},
		{&l.MaxHealthWatches, "max-health-watches", 256, "health watches at once"},
		{&l.MaxHealthWatchesPerAddress, "max-health-watches-per-address", 32, "health watches at once from one IP address"},
		{&l.MaxInFlight, "max-calls", 4096, "calls at once, of which the last tenth is for admins"},
		{&l.MaxInFlightPerToken, "max-calls-per-token", 1024, "calls at once with one token"},
		{&l.MaxInFlightPerStudy, "max-calls-per-study", 2048, "calls at once to one study"},
		{&l.MaxWatches, "max-watches", 1000, "watches at once, of which the last tenth is for admins"},
		{&l.MaxWatchesPerToken, "max-watches-per-token", 200, "watches at once with one token"},
		{&l.MaxWatchesPerStudy, "max-watches-per-study", 500, "watches at once of one study"},
	} {
		fs.IntVar(f.to, f.name, 0, fmt.Sprintf("most %s (0: %d; negative: no limit)", f.usage, f.most))
	}
	fs.Float64Var(&l.WriteRate, "write-rate", 0, "bytes a second of requests with one token that change something (0: 2097152; negative: no limit)")
}

// quotaFlags adds flags for how much a server stores, of one study and in its file.
func quotaFlags(fs *pflag.FlagSet, o *tuner.Options, maxFile *int64) {
	fs.Int64Var(&o.MaxStudyBytes, "max-study-bytes", 1<<30, "most bytes of events in one study (0: no limit)")
	fs.Int64Var(&o.MaxStudyReports, "max-study-reports", 10_000_000, "most reports of all trials of one study (0: no limit)")
	fs.Int64Var(maxFile, "max-file", bolt.DefaultMaxSize, "most bytes of the file; writes are refused 16 MiB before (negative: no limit)")
}
