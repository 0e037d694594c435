package studies

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/spf13/cobra"
)

// spaceHelp describes the format of search spaces. A test reads its example.
const spaceHelp = `A file in YAML or JSON:
  parameters:
    lr:        {type: float, low: 1e-5, high: 0.1, scale: log}
    batch:     {type: int, low: 16, high: 512, scale: log}
    width:     {type: int, low: 32, high: 256, step: 32}
    size:      {type: ordinal, values: [s, m, l]}
    optimizer: {type: categorical, values: [sgd, adam]}
    momentum:  {type: float, low: 0, high: 0.99, when: {optimizer: sgd}}
    classes:   {type: constant, value: 10}
  constraints:
    - width <= 4 * batch
    - not (optimizer == "sgd" and lr > 0.05)

  float, int    numbers from low to high, both included, with an optional step;
                the scale is linear, log, or reverse-log (fine near high)
  ordinal       values in order, so that neighbours are similar
  categorical   values without an order
  constant      one value that every trial has
  when          the value, or list of values, that another parameter must have;
                a parameter whose condition does not hold is left out
  constraints   comparisons of sums and products by <=, <, ==, !=, > and >=,
                joined by and, or, not, with texts in quotes`

func newSpace(g *cli.Globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "space",
		Short: "Check and convert search spaces",
		Long: `Space checks and converts files that describe search spaces, in the format below, in
Optuna's or in Katib's.

` + spaceHelp,
		Example: "  tuner space check space.yaml",
		Args:    cli.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newSpaceCheck(g), newSpaceConvert(g))
	return cmd
}

func newSpaceCheck(g *cli.Globals) *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Check a search space",
		Long: `Check reads a search space, lists its parameters on stdout, and writes advice to stderr.

It fails and names every fault if the space is invalid. FILE is in the format of tuner
space, in Optuna's JSON or in Katib's, and - is stdin.`,
		Example: "  tuner space check sgd.yaml\n  kubectl get experiment tune -o yaml | tuner space check -",
		Args:    cli.Exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			sp, _, _, err := readSpace(g, cmd, args[0])
			if err != nil {
				return err
			}
			return printSpace(cmd.OutOrStdout(), sp)
		},
	}
}

func newSpaceConvert(g *cli.Globals) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "convert FILE",
		Short: "Convert a search space to another format",
		Long: `Convert reads a search space in any format that check reads, and writes it to stdout.

The formats are that of tuner space as yaml or json, and Optuna's short JSON.`,
		Example: "  tuner space convert --to optuna sgd.yaml > space.json\n  tuner space convert --to yaml katib.yaml > space.yaml",
		Args:    cli.Exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			sp, _, _, err := readSpace(g, cmd, args[0])
			if err != nil {
				return err
			}
			text, err := spaceWriters[to](sp)
			if err != nil {
				return err
			}
			if text[len(text)-1] != '\n' {
				text = append(text, '\n')
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
	cli.ChoiceVar(cmd.Flags(), &to, "to", "", "`format` to write", "yaml", "json", "optuna")
	return cmd
}

var spaceWriters = map[string]func(*space.Space) ([]byte, error){
	"yaml":   func(s *space.Space) ([]byte, error) { return s.YAML(), nil },
	"json":   (*space.Space).MarshalJSON,
	"optuna": (*space.Space).OptunaJSON,
}

// readSpace reads a space from a file, - for stdin, and notes its format and advice. It
// also returns the form and the text of the file.
func readSpace(g *cli.Globals, cmd *cobra.Command, path string) (*space.Space, space.Form, []byte, error) {
	text, err := cli.ReadFile(cmd, path, space.MaxFileBytes+1) // one byte more is enough for Parse to refuse it
	if err != nil {
		return nil, 0, nil, err
	}
	sp, warnings, err := space.Parse(text)
	if err != nil {
		return nil, 0, nil, fmt.Errorf("%s:\n%w", path, err)
	}
	form, err := space.Detect(text)
	if err != nil {
		return nil, 0, nil, err
	}
	if form != space.FormOwn {
		g.Note(cmd, "%s is read as %s.", path, form)
	}
	for _, w := range warnings {
		g.Note(cmd, "%s: %s", path, w)
	}
	return sp, form, text, nil
}

func printSpace(out io.Writer, sp *space.Space) error {
	table := cli.NewTable(out, "PARAMETER", "TYPE", "VALUES", "SCALE", "WHEN")
	for _, p := range sp.Parameters() {
		table.Row(p.Name, p.Type.String(), valuesText(p), scaleText(p), WhenText(p))
	}
	if err := table.End(); err != nil {
		return err
	}
	for _, c := range sp.Constraints() {
		if _, err := fmt.Fprintf(out, "constraint: %s\n", c); err != nil {
			return err
		}
	}
	many := "infinitely many"
	if n := sp.Cardinality(); !math.IsInf(n, 1) {
		many = strconv.FormatFloat(n, 'f', 0, 64)
	}
	kept := ""
	if len(sp.Constraints()) > 0 {
		kept = ", of which the constraints keep " + sp.ShareText()
	}
	_, err := fmt.Fprintf(out, "%d coordinates, %s configurations%s\n", sp.Dim(), many, kept)
	return err
}

func valuesText(p space.Parameter) string {
	switch {
	case p.Type != space.TypeFloat && p.Type != space.TypeInt:
		return join(p.Values)
	case p.Step.Kind() == space.KindNone || p.Step == space.Int(1):
		return fmt.Sprintf("%s to %s", p.Low, p.High)
	}
	return fmt.Sprintf("%s to %s by %s", p.Low, p.High, p.Step)
}

func scaleText(p space.Parameter) string {
	if p.Type == space.TypeFloat || p.Type == space.TypeInt {
		return p.Scale.String()
	}
	return "-"
}

func WhenText(p space.Parameter) string {
	var words []string
	for _, c := range p.When {
		words = append(words, c.Parent+" = "+join(c.Values))
	}
	return cmp.Or(strings.Join(words, ", "), "always")
}

// join lists the first few values.
func join(values []space.Value) string {
	const most = 8
	var words []string
	for _, v := range values[:min(most, len(values))] {
		words = append(words, v.String())
	}
	if len(values) > most {
		words = append(words, fmt.Sprintf("… (%d)", len(values)))
	}
	return strings.Join(words, "|")
}
