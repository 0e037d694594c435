package data

import (
	"errors"
	"fmt"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/store/bolt"
	"github.com/spf13/cobra"
)

func newRestore(g *cli.Globals) *cobra.Command {
	var o bolt.RestoreOptions
	cmd := &cobra.Command{
		Use:   "restore BACKUP",
		Short: "Restore a backup",
		Long: `Restore checks a backup, copies it, checks the copy, and puts it in the place of the
file (--db) in one step.

It refuses to replace an existing file, unless --force is given. With --force the old
file is kept under another name, which restore prints. Restore always refuses a file
that a server or another process has open. With --dry-run it checks everything, says
what it would do, and changes nothing.`,
		Example: "  tuner restore --dry-run backups/tuner-1a2b3c4d-20261122T052501.123Z.db",
		Args:    cli.Exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := g.OnFile(cmd, "restore it with the tools that made the backup, or use tuner copy"); err != nil {
				return err
			}
			path := g.File()
			o.LockTimeout = min(g.LockTimeout, bolt.DefaultLockTimeout)
			r, err := bolt.Restore(cmd.Context(), args[0], path, o)
			if err != nil {
				return restoreError(err, args[0])
			}
			return restored(cmd, g, args[0], path, o, r)
		},
	}
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "check only, without a change")
	cmd.Flags().BoolVar(&o.Force, "force", false, "replacement of an existing file, which is kept under another name")
	return cmd
}

// restored reports the result of a restore or of a dry run.
func restored(cmd *cobra.Command, g *cli.Globals, from, path string, o bolt.RestoreOptions, r bolt.Restored) error {
	verb := "Restored"
	if o.DryRun {
		verb = "Would restore"
	}
	out := cmd.OutOrStdout()
	if _, err := fmt.Fprintf(out, "%s %s from %s: %d studies, %d trials, %d events, %d bytes, store %s, written by %s\n", verb, path, from,
		r.Backup.Studies, r.Backup.Trials, r.Backup.Events, r.Backup.FileBytes, r.Backup.Identity.Store[:8], cli.Clean(r.Backup.Identity.Writer)); err != nil {
		return err
	}
	switch {
	case o.DryRun && r.Replaces && !o.Force:
		return fmt.Errorf("%s exists: without --dry-run this would be refused; --force replaces it and keeps it under another name", path)
	case o.DryRun && r.Replaces:
		g.Note(cmd, "%s exists and would be kept under another name.", path)
	case r.Kept != "":
		g.Note(cmd, "The old file is now %s.", r.Kept)
	}
	return nil
}

func restoreError(err error, path string) error {
	if errors.Is(err, bolt.ErrMissing) {
		return cli.Exit(cli.ExitNotFound, err)
	}
	return offlineError(err, path)
}
