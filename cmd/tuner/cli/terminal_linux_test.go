package cli

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// A command that outlives its readers still knows the terminal on its stderr, with whatever else
// stands between.
func TestOutliveReadersOnTerminal(t *testing.T) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("there are no pseudo-terminals: ", err)
	}
	defer master.Close()
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	cmd := new(cobra.Command)
	cmd.SetErr(CleanOnTerminal(terminal))
	OutliveReaders(cmd)
	if TerminalOf(cmd.ErrOrStderr()) != terminal {
		t.Error("the terminal is lost, so that there is no progress on it")
	}
	cmd.SetErr(new(bytes.Buffer))
	OutliveReaders(cmd)
	if _, ok := cmd.ErrOrStderr().(*patient); !ok {
		t.Error("a command does not outlive a reader that is no terminal")
	}
}
