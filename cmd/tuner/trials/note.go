package trials

import (
	"context"
	"strconv"
	"strings"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
)

func newNote(g *cli.Globals) *cobra.Command {
	var requestID string
	cmd := &cobra.Command{
		Use:               "note STUDY [TRIAL] key=value…",
		Short:             "Write notes on a study or trial",
		ValidArgsFunction: cli.Args(g.Studies),
		Long: `Note writes notes on a study, or on one of its trials.

A note has a key and a text. A new text replaces the old one, and an empty text removes
the note. See tuner trials -f json for the notes on trials and tuner studies -f json for
those on studies.`,
		Example: `  tuner note digits owner=anna
  tuner note digits 12 seen=yes
  tuner note digits 12 seen=`,
		Args: cli.Between(2, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c := study.SetAttributes{RequestID: requestID, Trial: study.OfStudy}
			pairs := args[1:]
			if !strings.Contains(pairs[0], "=") {
				n, err := strconv.Atoi(pairs[0])
				if err != nil || n < 0 {
					return cli.Usagef("%q is neither key=value nor the number of a trial", pairs[0])
				}
				c.Trial, pairs = n, pairs[1:]
			}
			if len(pairs) == 0 {
				return cli.Usagef("there is no note; write one as key=value")
			}
			c.Attributes = make(study.Attributes)
			for _, pair := range pairs {
				key, text, ok := strings.Cut(pair, "=")
				if _, twice := c.Attributes[key]; twice {
					return cli.Usagef("the note %s is given twice; leave one out", key)
				}
				if !ok || key == "" {
					return cli.Usagef("%q is not key=value", pair)
				}
				c.Attributes[key] = text
			}
			return g.WithStudy(cmd, args[:1], func(ctx context.Context, svc tuner.Service, name string) error {
				return svc.SetAttributes(ctx, name, c)
			})
		},
	}
	cmd.Flags().StringVar(&requestID, "request-id", "", "`id` that makes it safe to repeat the request")
	return cmd
}
