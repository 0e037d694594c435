package gpu

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Variable is the environment variable with the choice of the devices, if Use is not called.
const Variable = "BKB_DEVICE"

// ChoiceError reports a name that is not a choice of devices.
type ChoiceError struct {
	Given string
	From  string // the flag or variable, may be empty
}

func (e *ChoiceError) Error() string {
	from := ""
	if e.From != "" {
		from = e.From + " "
	}
	return fmt.Sprintf("%s%q is no device, want auto, cpu, cuda or cuda:N such as cuda:0", from, e.Given)
}

// UnavailableError reports a chosen device that this program or machine does not have.
type UnavailableError struct {
	Choice string
	Err    error
}

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("device %s: %v; use auto or cpu to compute on the CPU", e.Choice, e.Err)
}

func (e *UnavailableError) Unwrap() error { return e.Err }

// ErrNoBackend is the reason of a program without a backend.
var ErrNoBackend = errors.New("this program was built without CUDA, which needs the build tag cuda")

// chosen is the state of the process. Devices are opened under opening, which can take
// seconds, and without the lock of the state.
var (
	opening sync.Mutex
	chosen  struct {
		sync.Mutex
		backend Backend
		auto    bool // Use chose auto, so that the environment has no effect
		made    bool // devices and explicit are set
		devices []Device
		// explicit says that the devices were named, so that every product that they can
		// compute runs on them.
		explicit bool
		warned   bool
		warn     func(message string)
	}
)

// Register sets the backend. It is for the init function of the backend.
func Register(b Backend) { chosen.backend = b }

// Registered returns the backend, or nil.
func Registered() Backend { return chosen.backend }

// OnWarning sets the function that receives the next warning, instead of the default logger.
func OnWarning(warn func(message string)) {
	chosen.Lock()
	defer chosen.Unlock()
	chosen.warn, chosen.warned = warn, false
}

// Use chooses the devices of the process. The choices are "auto" for all devices and large
// products, "cpu" for none, "cuda" for all devices, and "cuda:N" for one. An empty choice is
// that of the environment. The errors are [*ChoiceError] and, except for auto and cpu,
// [*UnavailableError].
func Use(choice string) error {
	from := ""
	if choice == "" {
		choice, from = os.Getenv(Variable), Variable
	}
	opening.Lock()
	defer opening.Unlock()
	devices, err := named(choice, from)
	set(choice == "auto", err == nil && choice != "auto" && choice != "", devices, len(devices) > 0)
	return err
}

// set sets the state.
func set(auto, made bool, devices []Device, explicit bool) {
	chosen.Lock()
	defer chosen.Unlock()
	chosen.auto, chosen.made, chosen.devices, chosen.explicit = auto, made, devices, explicit
}

// named opens the devices of a choice, none for auto and cpu.
func named(choice, from string) ([]Device, error) {
	number, one := strings.CutPrefix(choice, "cuda:")
	switch {
	case choice == "auto", choice == "", choice == "cpu":
		return nil, nil
	case choice == "cuda":
		number = ""
	case !one || !digits(number):
		return nil, &ChoiceError{Given: choice, From: from}
	}
	devices, err := open(number)
	if err != nil {
		return nil, &UnavailableError{choice, err}
	}
	return devices, nil
}

// digits reports whether s is a short number.
func digits(s string) bool {
	_, err := strconv.ParseUint(s, 10, 8)
	return err == nil
}

// open returns one device, or all for an empty number.
func open(number string) ([]Device, error) {
	if chosen.backend == nil {
		return nil, ErrNoBackend
	}
	n, err := chosen.backend.Count()
	if err != nil {
		return nil, err
	}
	from, to := 0, n
	if number != "" {
		from, _ = strconv.Atoi(number)
		to = from + 1
	}
	if to > n || n == 0 {
		return nil, &DriverError{Reason: fmt.Sprintf("this machine has %d CUDA devices, numbered from 0", n), Absent: n == 0}
	}
	var out []Device
	for i := from; i < to; i++ {
		d, err := chosen.backend.Open(i)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// leastWork is the number of operations of a product from which devices that were not
// named are used. It takes two cores about 0.1 s. The first use of a device takes longer.
const leastWork = 5e9

// leastBatch is the number of operations of a batch from which they are used. Copying and
// starting kernels take about as long as two cores for this.
const leastBatch = 1e8

// slowFloat64 is the ratio of speeds above which float64 stays on the CPU, unless a device
// was named.
const slowFloat64 = 4

// devices returns the devices for a number of operations, none for the CPU. It does not wait
// for a device, except to open it.
func devices(work float64, single bool) []Device {
	chosen.Lock()
	made, name := chosen.made, ""
	if !chosen.auto {
		name = os.Getenv(Variable)
	}
	chosen.Unlock()
	auto := name == "" || name == "auto"
	if !made {
		if auto && work < leastWork {
			return nil
		}
		openOnce(name, auto)
	}
	chosen.Lock()
	defer chosen.Unlock()
	if chosen.explicit {
		return slices.Clone(chosen.devices)
	}
	if work < leastWork {
		return nil
	}
	var out []Device
	for _, d := range chosen.devices {
		if single || d.Properties().SlowerFloat64 <= slowFloat64 {
			out = append(out, d)
		}
	}
	return out
}

// openOnce sets the state for the first product.
func openOnce(name string, auto bool) {
	opening.Lock()
	defer opening.Unlock()
	chosen.Lock()
	made, none, wasAuto := chosen.made, chosen.backend == nil, chosen.auto
	chosen.Unlock()
	if made {
		return
	}
	var devices []Device
	var err error
	switch {
	case !auto:
		devices, err = named(name, Variable)
	case !none:
		devices, err = open("")
	}
	set(wasAuto, true, devices, !auto && len(devices) > 0)
	absent := (*DriverError)(nil)
	if err != nil && !(auto && errors.As(err, &absent) && absent.Absent) {
		Warn(err)
	}
}

// Warn reports an error after which the CPU is used, the first of the process. Devices that
// the error says are lost get no more products.
func Warn(err error) {
	chosen.Lock()
	defer chosen.Unlock()
	gone := lost(err)
	chosen.devices = slices.DeleteFunc(slices.Clone(chosen.devices), func(d Device) bool {
		return slices.Contains(gone, d.Properties().Name)
	})
	if chosen.warned {
		return
	}
	chosen.warned = true
	message := fmt.Sprintf("%v; continuing on the CPU", err)
	if chosen.warn == nil {
		slog.Warn(message)
		return
	}
	chosen.warn(message)
}

// lost returns the names of the devices that err says are lost.
func lost(err error) []string {
	if d, ok := err.(*DeviceError); ok {
		if errors.Is(d, ErrLost) {
			return []string{d.Device}
		}
		return nil
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return lost(e.Unwrap())
	case interface{ Unwrap() []error }:
		var out []string
		for _, one := range e.Unwrap() {
			out = append(out, lost(one)...)
		}
		return out
	}
	return nil
}
