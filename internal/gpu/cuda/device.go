//go:build cuda && cgo && linux

package cuda

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/bkbtuner/bkb/internal/gpu"
	"github.com/bkbtuner/bkb/internal/gpu/cuda/driver"
	"github.com/bkbtuner/bkb/internal/gpu/cuda/kernels"
)

func init() { gpu.Register(new(backend)) }

// DriverVariable is the environment variable with the path of the driver library, if it is
// not the libcuda.so.1 of the system.
const DriverVariable = "BKB_CUDA_DRIVER"

const (
	leastDriver     = 11000 // for PTX 7.0
	leastCapability = 75    // of the PTX
)

// symbols are the functions of the driver that this package uses.
var symbols = strings.Fields(`cuCtxSetCurrent cuCtxSynchronize cuDeviceGet cuDeviceGetAttribute cuDeviceGetCount
	cuDeviceGetName cuDevicePrimaryCtxRetain cuDriverGetVersion cuLaunchKernel cuMemAlloc_v2 cuMemFree_v2
	cuMemGetInfo_v2 cuMemcpyDtoH_v2 cuMemcpyHtoD_v2 cuMemsetD32_v2 cuModuleGetFunction cuModuleLoadData
	cuEventCreate cuEventRecord cuEventSynchronize cuEventElapsedTime cuEventDestroy_v2`)

// backend is the driver with its devices.
type backend struct {
	mu      sync.Mutex
	tried   bool
	err     error
	version int
	devices map[int]*device
}

// start opens the driver once.
func (b *backend) start() error {
	if b.tried {
		return b.err
	}
	b.tried = true
	library := os.Getenv(DriverVariable)
	named := library != ""
	if !named {
		library = "libcuda.so.1"
	}
	if err := driver.Open(library); err != nil {
		absent := errors.Is(err, driver.ErrNoDevice) || errors.Is(err, driver.ErrNoLibrary) && !named
		b.err = &gpu.DriverError{Reason: err.Error(), Absent: absent}
		return b.err
	}
	missing := driver.Lacks(symbols...)
	b.version = cu.Version()
	switch {
	case b.version >= 0 && b.version < leastDriver:
		b.err = &gpu.DriverError{Reason: fmt.Sprintf("the CUDA driver is of version %s, and %s or later is needed; install a driver from 450 on", versionText(b.version), versionText(leastDriver))}
	case missing != nil:
		b.err = &gpu.DriverError{Reason: fmt.Sprintf("the CUDA driver %s lacks the function %s; install a driver from 450 on", library, strings.Join(missing, ", "))}
	}
	return b.err
}

func versionText(v int) string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }

func (b *backend) Count() (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.start(); err != nil {
		return 0, err
	}
	n, err := cu.NumDevices()
	if err != nil {
		return 0, &gpu.DriverError{Reason: fmt.Sprintf("the CUDA driver cannot count devices: %v", err)}
	}
	return n, nil
}

func (b *backend) Open(number int) (gpu.Device, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.start(); err != nil {
		return nil, err
	}
	if d := b.devices[number]; d != nil {
		return d, nil
	}
	d, err := open(number, b.version)
	if err != nil {
		return nil, err
	}
	if b.devices == nil {
		b.devices = map[int]*device{}
	}
	b.devices[number] = d
	return d, nil
}

// device is a GPU with the goroutine on whose thread its context is current.
type device struct {
	info      gpu.Info
	calls     chan func()
	functions map[string]cu.Function
	// For the goroutine of the device:
	err  error // of the calls in the function that runs
	lost error
	held int64 // bytes of arenas
}

// modules are the PTX with the names of its kernels.
var modules = []struct{ ptx, kernels string }{
	{kernels.Product, "fused_float_1 fused_float_4 fused_double_1 fused_double_4 rows_float_1 rows_float_4 rows_double_1 rows_double_4 " +
		"columns_float_1 columns_float_4 columns_double_1 columns_double_4 fill_float fill_double collect"},
	{kernels.Algebra, "update diagonal factor_block solve_block pivot column invert solve"},
}

func open(number, version int) (*device, error) {
	d := &device{info: gpu.Info{Name: fmt.Sprintf("cuda:%d", number), Driver: versionText(version)}, calls: make(chan func()), functions: map[string]cu.Function{}}
	go func() {
		runtime.LockOSThread() // for ever, because contexts belong to threads
		for f := range d.calls {
			f()
		}
	}()
	err := d.do(func() { d.err = d.start(number) })
	if err != nil {
		close(d.calls)
		return nil, err
	}
	return d, nil
}

// start makes the context and loads the kernels.
func (d *device) start(number int) error {
	dev, err := cu.GetDevice(number)
	if err != nil {
		return d.failed("cuDeviceGet", err)
	}
	if d.info.Model, err = dev.Name(); err != nil {
		return d.failed("cuDeviceGetName", err)
	}
	d.info.Model = strings.TrimRight(d.info.Model, "\x00")
	major, minor, err := dev.ComputeCapability()
	if err != nil {
		return d.failed("cuDeviceGetAttribute", err)
	}
	d.info.Capability = fmt.Sprintf("%d.%d", major, minor)
	if d.info.SlowerFloat64, err = dev.Attribute(cu.SingleToDoublePrecisionPerfRatio); err != nil {
		return d.failed("cuDeviceGetAttribute", err)
	}
	if c := 10*major + minor; c < leastCapability {
		return fmt.Errorf("%s (%s) has compute capability %s, and %d.%d or later is needed", d.info.Name, d.info.Model, d.info.Capability, leastCapability/10, leastCapability%10)
	}
	context, err := dev.RetainPrimaryCtx()
	if err != nil {
		return d.failed("cuDevicePrimaryCtxRetain", err)
	}
	if err := cu.SetCurrentContext(context); err != nil {
		return d.failed("cuCtxSetCurrent", err)
	}
	for _, m := range modules {
		module, err := cu.LoadData(m.ptx)
		if err != nil {
			return d.failed("cuModuleLoadData", err)
		}
		for name := range strings.FieldsSeq(m.kernels) {
			if d.functions[name], err = module.Function(name); err != nil {
				return d.failed("cuModuleGetFunction "+name, err)
			}
		}
	}
	return nil
}

// do runs f on the thread of the device and returns the first error of its calls. After an error
// the calls that follow in f have no effect, except those that free memory.
func (d *device) do(f func()) error {
	done := make(chan error)
	d.calls <- func() {
		if d.err = d.lost; d.err == nil {
			f()
		}
		done <- d.err
	}
	return <-done
}

// check keeps the error of a call, if it is the first.
func (d *device) check(call string, err error) {
	if err != nil && d.err == nil {
		d.err = d.failed(call, err)
	}
}

// fatal are the results after which a context cannot be used any more.
var fatal = []error{
	cu.IllegalAddress, cu.LaunchFailed, cu.EccUncorrectable, cu.NvlinkUncorrectable, cu.IllegalInstruction, cu.MisalignedAddress,
	cu.InvalidAddressSpace, cu.InvalidPc, cu.Assert, cu.LaunchTimeout, cu.HardwareStackError, cu.Deinitialized, cu.Unknown,
}

// failed returns the error of a call. After some errors the device is lost.
func (d *device) failed(call string, err error) error {
	for _, f := range fatal {
		if errors.Is(err, f) {
			err = fmt.Errorf("%w (%w)", gpu.ErrLost, err)
			d.lost = &gpu.DeviceError{Device: d.info.Name, Call: call, Err: err}
			return d.lost
		}
	}
	return &gpu.DeviceError{Device: d.info.Name, Call: call, Err: err}
}

// Properties returns what is set when the device is opened.
func (d *device) Properties() gpu.Info { return d.info }

func (d *device) Info() (gpu.Info, error) {
	info := d.info
	err := d.do(func() {
		info.Free, info.Memory = d.memory()
		info.Held = d.held
	})
	return info, err
}

// limit is the free memory that the tests let a device have.
var limit int64 = math.MaxInt64

// memory returns the free bytes and all of them.
func (d *device) memory() (free, all int64) {
	free, all, err := cu.MemInfo()
	d.check("cuMemGetInfo", err)
	return min(free, limit), all
}

// arena is memory of a device that is freed together. Its methods run on the device's thread.
type arena struct {
	d      *device
	blocks []cu.DevicePtr
	bytes  int64
}

// alloc returns n bytes of unspecified content, or 0 after an error.
func (a *arena) alloc(n int64) cu.DevicePtr {
	if a.d.err != nil {
		return 0
	}
	n = max(n, 16)
	p, err := cu.MemAlloc(n)
	if err != nil {
		a.d.check(fmt.Sprintf("cuMemAlloc of %d bytes", n), err)
		return 0
	}
	a.blocks = append(a.blocks, p)
	a.bytes += n
	a.d.held += n
	return p
}

// move gives a block of a known size to another arena.
func (a *arena) move(p cu.DevicePtr, n int64, to *arena) {
	a.blocks = slices.DeleteFunc(a.blocks, func(q cu.DevicePtr) bool { return q == p })
	to.blocks = append(to.blocks, p)
	a.bytes -= n
	to.bytes += n
}

// free frees all. It tries each block, even after an error.
func (a *arena) free() {
	for _, p := range a.blocks {
		a.d.check("cuMemFree", cu.MemFree(p))
	}
	a.d.held -= a.bytes
	a.blocks, a.bytes = nil, 0
}

// number is an element of memory.
type number interface{ float32 | float64 | int64 }

// upload copies s to the device.
func upload[T number](d *device, to cu.DevicePtr, s []T) {
	if d.err == nil && len(s) > 0 {
		d.check("cuMemcpyHtoD", cu.MemcpyHtoD(to, unsafe.Pointer(&s[0]), bytes(s)))
	}
}

// download copies memory of the device to s.
func download[T number](d *device, s []T, from cu.DevicePtr) {
	if d.err == nil && len(s) > 0 {
		d.check("cuMemcpyDtoH", cu.MemcpyDtoH(unsafe.Pointer(&s[0]), from, bytes(s)))
	}
}

// set sets n words of 4 bytes.
func (d *device) set(to cu.DevicePtr, word uint32, n int64) {
	if d.err == nil && n > 0 {
		d.check("cuMemsetD32", cu.MemsetD32(to, word, n))
	}
}

func bytes[T number](s []T) int64 { return int64(len(s)) * int64(unsafe.Sizeof(s[0])) }

// launch starts a kernel with blocks of 256 threads. Each argument is an int64, a float64 or
// a cu.DevicePtr, because package cu copies 8 bytes of each.
func (d *device) launch(name string, x, y int64, args ...any) {
	if d.err != nil {
		return
	}
	values := make([]uint64, len(args))
	params := make([]unsafe.Pointer, len(args))
	for i, a := range args {
		switch a := a.(type) {
		case int64:
			values[i] = uint64(a)
		case float64:
			values[i] = math.Float64bits(a)
		case cu.DevicePtr:
			values[i] = uint64(a)
		default:
			panic(fmt.Sprintf("cuda: precondition: argument %d of %s is a %T", i, name, a))
		}
		params[i] = unsafe.Pointer(&values[i])
	}
	d.check("cuLaunchKernel "+name, d.functions[name].Launch(int(x), int(y), 1, 256, 1, 1, 0, cu.NoStream, params))
}

// release closes what has failed, without an error of a device that is lost already.
func release(c io.Closer) error {
	if err := c.Close(); !errors.Is(err, gpu.ErrLost) {
		return err
	}
	return nil
}
