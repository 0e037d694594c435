package trials

import (
	"context"
	"fmt"
	"strings"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/cmd/tuner/record"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
)

func newEnqueue(g *cli.Globals) *cobra.Command {
	var c study.Enqueue
	var attributes []string
	cmd := &cobra.Command{
		Use:               "enqueue STUDY name=value… | JSON",
		Short:             "Queue a configuration of your own",
		ValidArgsFunction: cli.Args(g.Studies, g.Parameters),
		Long: `Enqueue queues a configuration and prints the number of its trial. Queued trials are
handed out before new suggestions.

Give a value for each active parameter. Constants can be left out.`,
		Example: `  tuner enqueue digits lr=0.01 batch=32 optimizer=adam
  tuner enqueue digits '{"lr": 0.01, "batch": 32, "optimizer": "adam"}'`,
		Args: cli.Between(2, -1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if c.Config, err = ParseConfig(args[1:]); err != nil {
				return err
			}
			if c.Attributes, err = cli.ParseAttributes(attributes); err != nil {
				return err
			}
			return g.WithStudy(cmd, args[:1], func(ctx context.Context, svc tuner.Service, name string) error {
				view, err := svc.Study(ctx, name)
				if err != nil {
					return err
				}
				if c.Config, err = record.Complete(view.Spec.Space, c.Config); err != nil {
					return err
				}
				t, err := svc.Enqueue(ctx, name, c)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintln(cmd.OutOrStdout(), t.Number)
				return err
			})
		},
	}
	cmd.Flags().StringArrayVar(&attributes, "attr", nil, "note on the trial, `key=value` (repeatable)")
	cmd.Flags().StringVar(&c.RequestID, "request-id", "", "`id` that makes it safe to repeat the request")
	return cmd
}

// ParseConfig reads name=value words, or one JSON object.
func ParseConfig(words []string) (c space.Config, err error) {
	if len(words) == 1 && strings.HasPrefix(strings.TrimSpace(words[0]), "{") {
		err = c.UnmarshalJSON([]byte(words[0]))
		return c, err
	}
	var entries []space.Assignment
	seen := make(map[string]bool)
	for _, word := range words {
		name, value, ok := strings.Cut(word, "=")
		if !ok {
			return c, cli.Usagef("%q is not name=value", word)
		}
		if seen[name] {
			return c, cli.Usagef("%s is given twice", name)
		}
		seen[name] = true
		entries = append(entries, space.Assignment{Name: name, Value: space.String(value)})
	}
	return space.NewConfig(entries...), nil
}
