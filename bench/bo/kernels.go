package bo

import (
	"fmt"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/bench/experiment"
	"github.com/bkbtuner/bkb/tuner/space"
)

// kernelTable lists a GPU kernel whose configurations were all compiled and timed (Kernel
// Tuner). Values are timings in ms. Configurations that break a restriction of the kernel
// are not in the file. They fail, like those that did not compile or run.
func kernelTable(name string, tier Tier, file string, columns func() []*column) Listed {
	name = "table/gpu-" + name
	return Listed{name, tier, func(data string) (Problem, error) {
		t, err := newTable(name, columns()...)
		if err != nil {
			return nil, err
		}
		cache, err := (&experiment.Env{Data: data}).KernelCache(file)
		if err != nil {
			return nil, err
		}
		at := make([]int, len(t.columns))
		for i, c := range t.columns {
			if at[i] = slices.Index(cache.Parameters, c.parameter.Name); at[i] < 0 {
				return nil, fmt.Errorf("%s: the file has no parameter %q", name, c.parameter.Name)
			}
		}
		fields := make([]string, len(at))
		for _, run := range cache.Runs {
			for i, k := range at {
				fields[i] = run.Values[k]
			}
			if times := positive(run.Times); len(times) > 0 {
				if err := t.add(fields, times...); err != nil {
					return nil, err
				}
			}
		}
		return t.finish()
	}}
}

// positive returns the timings that are positive.
func positive(times []float64) []float64 {
	return slices.DeleteFunc(times, func(v float64) bool { return !(v > 0) || math.IsInf(v, 1) })
}

// stepped returns a range of whole numbers.
func stepped(name string, low, high, step int64) *column {
	return &column{parameter: space.NewInt(name, low, high).WithStep(space.Int(step))}
}

// flag returns a parameter with false and true.
func flag(name string) *column { return &column{parameter: space.NewBool(name)} }

// convolution is the kernel for a 4096×4096 image and a 15×15 filter.
func convolution() []*column {
	return []*column{
		stepped("block_size_x", 16, 256, 16), ordinal("block_size_y", ints(1, 2, 4, 8, 16)...),
		stepped("tile_size_x", 1, 4, 1), stepped("tile_size_y", 1, 4, 1),
		flag("read_only"), flag("use_padding"), flag("use_shmem"),
	}
}

// dedispersion is the kernel for 2,048 channels of a radio telescope.
func dedispersion() []*column {
	return []*column{
		ordinal("block_size_x", ints(1, 2, 4, 8, 16, 32)...), stepped("block_size_y", 32, 256, 8),
		stepped("tile_size_x", 1, 4, 1), stepped("tile_size_y", 1, 8, 1),
		flag("tile_stride_x"), flag("tile_stride_y"),
	}
}

// gemm is CLBlast's product of 4096×4096 matrices.
func gemm() []*column {
	groups, threads, widths := ints(16, 32, 64, 128), ints(8, 16, 32), ints(1, 2, 4, 8)
	return []*column{
		ordinal("MWG", groups...), ordinal("NWG", groups...),
		ordinal("MDIMC", threads...), ordinal("NDIMC", threads...),
		ordinal("MDIMA", threads...), ordinal("NDIMB", threads...),
		ordinal("VWM", widths...), ordinal("VWN", widths...), flag("SA"), flag("SB"),
	}
}

// pnpoly determines which of 20 million points are in a polygon.
func pnpoly() []*column {
	return []*column{
		categorical("between_method", ints(0, 1, 2, 3)...), stepped("block_size_x", 32, 992, 32),
		ordinal("tile_size", ints(1, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20)...),
		categorical("use_method", ints(0, 1, 2)...),
	}
}
