package experiment

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// KernelCache is a space of GPU kernels of which every configuration was compiled and
// timed, in the format of Kernel Tuner.
type KernelCache struct {
	Parameters []string
	Runs       []KernelRun // in order of their configurations' texts
}

// KernelRun is one configuration.
type KernelRun struct {
	Values []string  // of Parameters, as written
	Times  []float64 // timings in ms, nil if it did not compile or run
}

// KernelCache reads a file of directory gpu_kernel_tuning. The errors are [*DataError] and
// those of reading and of JSON.
func (v *Env) KernelCache(name string) (*KernelCache, error) {
	path, err := v.File("gpu_kernel_tuning/" + name + ".json.gz")
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var file struct {
		Keys  []string               `json:"tune_params_keys"`
		Cache map[string]kernelEntry `json:"cache"`
	}
	if err := json.NewDecoder(unzipped).Decode(&file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	c := &KernelCache{Parameters: file.Keys}
	for _, config := range slices.Sorted(maps.Keys(file.Cache)) {
		run := KernelRun{Values: strings.Split(config, ","), Times: file.Cache[config].timings()}
		if len(run.Values) != len(file.Keys) {
			return nil, fmt.Errorf("%s: configuration %q has %d values, want %d", path, config, len(run.Values), len(file.Keys))
		}
		c.Runs = append(c.Runs, run)
	}
	return c, nil
}

// kernelEntry is a configuration in such a file. If it failed, its time is a word.
type kernelEntry struct {
	Time  json.RawMessage `json:"time"`
	Times []float64       `json:"times"`
}

// timings returns the timings in ms, nil where the configuration failed.
func (e kernelEntry) timings() []float64 {
	if len(e.Time) == 0 || e.Time[0] == '"' {
		return nil
	}
	return e.Times
}
