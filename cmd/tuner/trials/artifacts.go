package trials

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/internal/atomicfile"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/spf13/cobra"
)

// artifact is an artifact in JSON.
type artifact struct {
	File     string    `json:"file"`
	Size     int64     `json:"size"`
	SHA256   string    `json:"sha256"`
	Modified time.Time `json:"modified"`
}

func newArtifacts(g *cli.Globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "artifacts",
		Short: "Keep files of trials, such as models",
		Long: `Artifacts keeps files that belong to trials, in the folder FILE.artifacts beside the file
of studies. With --server they are on the server's disk. They end with their study, and are
in no backup.`,
		Example: "  tuner artifacts put digits 3 model.pt\n  tuner artifacts list digits 3\n  tuner artifacts get digits 3 model.pt -o best.pt",
		Args:    cli.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var form *string
	list := artifactCommand(g, "list STUDY TRIAL", "List the artifacts of a trial",
		"List shows the size, the time and the name of each artifact of a trial. The formats json, jsonl\nand yaml also have the SHA-256 checksums.",
		"  tuner artifacts list digits 3 -f json", cli.Exactly(2),
		func(ctx context.Context, cmd *cobra.Command, a artifactCall) error {
			all, err := a.svc.Artifacts(ctx, a.study, tuner.ListArtifacts{Trial: a.trial})
			if err != nil {
				return err
			}
			files := make([]artifact, len(all))
			for i, f := range all {
				files[i] = artifact(f)
			}
			out := cmd.OutOrStdout()
			return cli.WriteList(out, *form, files, cli.NewTable(out, "SIZE", "MODIFIED", "FILE"), func(f artifact) []string {
				return []string{strconv.FormatInt(f.Size, 10), f.Modified.Local().Format(time.DateTime), f.File}
			})
		})
	form = cli.FormatFlag(list, "table", "json", "jsonl", "yaml")

	var name, output string
	put := artifactCommand(g, "put STUDY TRIAL FILE…", "Store files with a trial",
		"Put stores files with a trial in any state, under the last parts of their paths. A file is\nstored whole or not at all, and replaces an artifact of the same name.",
		"  tuner artifacts put digits 3 model.pt log.txt\n  tuner artifacts put digits 3 out/best.pt --name model.pt", cli.Between(3, -1),
		func(ctx context.Context, _ *cobra.Command, a artifactCall) error {
			for _, path := range a.files {
				if err := a.upload(ctx, path, name); err != nil {
					return err
				}
			}
			return nil
		})
	put.Flags().StringVar(&name, "name", "", "`name` of the artifact (default that of the file)")
	get := artifactCommand(g, "get STUDY TRIAL FILE…", "Copy artifacts to this machine",
		"Get copies artifacts of a trial into the current directory, or to the file or directory of -o. A file is\nwritten whole or not at all, and replaces one of the same name.",
		"  tuner artifacts get digits 3 model.pt\n  tuner artifacts get digits 3 log.txt -o -", cli.Between(3, -1),
		func(ctx context.Context, cmd *cobra.Command, a artifactCall) error {
			for _, file := range a.files {
				fetch := func(w io.Writer) error {
					_, err := tuner.Download(ctx, a.svc, a.study, a.trial, file, w)
					return err
				}
				path, err := output, error(nil)
				switch path {
				case "-":
					err = fetch(cmd.OutOrStdout())
				case "":
					path = file
					if filepath.Base(file) != file {
						return cli.Usagef("%q is not the name of an artifact; see tuner artifacts list %s %d", file, a.study, a.trial)
					}
					fallthrough
				default:
					if info, e := os.Stat(path); e == nil && info.IsDir() {
						path = filepath.Join(path, filepath.Base(file))
					}
					err = atomicfile.Write(path, 0o644, fetch)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	get.Flags().StringVarP(&output, "output", "o", "", "`file` to write, - for stdout (default the artifact's name)")
	for _, one := range []*cobra.Command{put, get} {
		run := one.RunE
		one.RunE = func(cmd *cobra.Command, args []string) error {
			if len(args) > 3 && name+output != "" {
				return cli.Usagef("--name and -o need one FILE, and %d are given; give one at a time", len(args)-2)
			}
			return run(cmd, args)
		}
	}
	remove := artifactCommand(g, "delete STUDY TRIAL FILE…", "Delete artifacts of a trial", "Delete deletes artifacts of a trial.",
		"  tuner artifacts delete digits 3 model.pt", cli.Between(3, -1),
		func(ctx context.Context, _ *cobra.Command, a artifactCall) error {
			all, err := a.svc.Artifacts(ctx, a.study, tuner.ListArtifacts{Trial: a.trial})
			if err != nil {
				return err
			}
			for _, file := range a.files {
				if !slices.ContainsFunc(all, func(f tuner.Artifact) bool { return f.File == file }) {
					return cli.Exit(cli.ExitNotFound, fmt.Errorf("trial %d has no artifact %q; see tuner artifacts list %s %[1]d", a.trial, file, a.study))
				}
				if err := a.svc.DeleteArtifact(ctx, a.study, tuner.DeleteArtifact{Trial: a.trial, File: file}); err != nil {
					return err
				}
			}
			return nil
		})
	cmd.AddCommand(cli.Connects(cli.ToService, put, list, get, remove)...)
	return cmd
}

// artifactCall is a command on artifacts of a trial.
type artifactCall struct {
	svc   tuner.Service
	study string
	trial int
	files []string
}

func artifactCommand(g *cli.Globals, use, short, long, example string, args cobra.PositionalArgs, run func(context.Context, *cobra.Command, artifactCall) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: long, Example: example, Args: args, ValidArgsFunction: cli.Args(g.Studies),
		RunE: func(cmd *cobra.Command, args []string) error {
			to, err := parseTarget(args, 0)
			if err != nil {
				return err
			}
			return g.WithStudy(cmd, args[:1], func(ctx context.Context, svc tuner.Service, study string) error {
				return run(ctx, cmd, artifactCall{svc, study, to.trial, to.rest})
			})
		},
	}
}

func (a artifactCall) upload(ctx context.Context, path, name string) error {
	info, err := os.Stat(path) // first, as opening a pipe waits for its writer
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return cli.Usagef("%s is no regular file; put a directory into an archive first", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return err
	}
	if name == "" {
		name = filepath.Base(path)
	}
	_, err = tuner.Upload(ctx, a.svc, a.study, a.trial, name, info.Size(), f)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return fmt.Errorf("%s became shorter while it was read: %w", path, err)
	}
	return err
}
