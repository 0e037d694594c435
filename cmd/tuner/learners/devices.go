package learners

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/internal/gpu"
	"github.com/bkbtuner/bkb/internal/simd"
	"github.com/spf13/cobra"
)

// deviceFlag adds the flag with the devices for products with kernel matrices. They are
// opened before the command runs.
func deviceFlag(g *cli.Globals, cmd *cobra.Command) {
	var choice string
	cmd.Flags().StringVar(&choice, "device", "", "`device`, cpu, cuda or cuda:N (default auto)")
	cli.Register(cmd, "device", cli.Words("auto", "cpu", "cuda", "cuda:0"))
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		gpu.OnWarning(func(message string) { g.Note(cmd, "%s", message) })
		err := gpu.Use(choice)
		var wrong *gpu.ChoiceError
		var unavailable *gpu.UnavailableError
		switch {
		case errors.As(err, &wrong) && choice != "":
			return cli.Usagef("--device: %w", err)
		case errors.As(err, &wrong):
			return cli.Usage(err)
		case errors.As(err, &unavailable):
			return cli.Exit(cli.ExitUnsupported, err)
		}
		return err
	}
}

func NewDevices() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "devices",
		Short: "List the devices for kernel products",
		Long: `Devices lists the processor and the GPUs that this program can use. The flag --device of
train, predict, evaluate and auto takes the names of the first column.

If there is no GPU to use, stderr says why. docs/gpu.md has what a GPU needs.`,
		Example: "  tuner devices\n  tuner devices -f json",
		Args:    cli.Exactly(0),
	}
	form := cli.FormatFlag(cmd, "table", "json", "jsonl")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		list, why := listDevices()
		out := cmd.OutOrStdout()
		size := func(bytes int64) string {
			if bytes == 0 {
				return "" // of the processor
			}
			return gpu.Gigabytes(bytes)
		}
		table := cli.NewTable(out, "DEVICE", "MODEL", "MEMORY", "FREE", "CAPABILITY", "DRIVER")
		err := cli.WriteList(out, *form, list, table, func(d deviceRecord) []string {
			return []string{d.Device, d.Model, size(d.Memory), size(d.Free), d.Capability, d.Driver}
		})
		if err != nil {
			return err
		}
		if why != nil {
			fmt.Fprintln(cmd.ErrOrStderr(), "No GPU:", why)
		}
		return nil
	}
	return cmd
}

type deviceRecord struct {
	Device     string `json:"device"`
	Model      string `json:"model"`
	Memory     int64  `json:"memory,omitempty"` // bytes
	Free       int64  `json:"free,omitempty"`
	Capability string `json:"capability,omitempty"`
	Driver     string `json:"driver,omitempty"`
	// SlowerFloat64 is the speed in float32 over that in float64.
	SlowerFloat64 int    `json:"slower_float64,omitempty"`
	Error         string `json:"error,omitempty"` // why it cannot be used
}

// listDevices returns the processor and all GPUs, and why there are none.
func listDevices() ([]deviceRecord, error) {
	list := []deviceRecord{{Device: "cpu", Model: fmt.Sprintf("%d threads, simd=%s", runtime.GOMAXPROCS(0), simd.For[float64]().Path)}}
	backend := gpu.Registered()
	if backend == nil {
		return list, gpu.ErrNoBackend
	}
	n, err := backend.Count()
	if err != nil {
		return list, err
	}
	if n == 0 {
		return list, errors.New("the CUDA driver finds no device")
	}
	for i := range n {
		r := deviceRecord{Device: fmt.Sprintf("cuda:%d", i)}
		d, err := backend.Open(i)
		if err == nil {
			var info gpu.Info
			info, err = d.Info()
			r.Model, r.Memory, r.Free, r.Capability, r.Driver, r.SlowerFloat64 = info.Model, info.Memory, info.Free, info.Capability, info.Driver, info.SlowerFloat64
		}
		if err != nil {
			r.Model, r.Error = "cannot be used: "+err.Error(), err.Error()
		}
		list = append(list, r)
	}
	return list, nil
}
