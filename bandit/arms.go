package bandit

import (
	"fmt"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// psdSample is the number of arms on which a kernel is tested.
const psdSample = 48

// checkArms verifies arms for a kernel.
func checkArms(k kernel.Kernel, arms kernel.Rows) error {
	if arms == nil || arms.Len() == 0 {
		return &EmptyError{What: "arms"}
	}
	if err := k.Check(arms); err != nil {
		return fmt.Errorf("bandit: arms: %w", err)
	}
	if err := kernel.CheckFinite("arms", arms); err != nil {
		return fmt.Errorf("bandit: %w", err)
	}
	if err := checkDistinct(arms); err != nil {
		return err
	}
	if err := kernel.CheckPSD(k, spread(arms, psdSample)); err != nil {
		return fmt.Errorf("bandit: kernel: %w", err)
	}
	return nil
}

func checkDistinct(arms kernel.Rows) error {
	if _, ok := kernel.RowKey(arms, 0); !ok {
		return nil
	}
	seen := make(map[string]int, arms.Len())
	for i := range arms.Len() {
		key, _ := kernel.RowKey(arms, i)
		if j, found := seen[key]; found {
			return &DuplicateArmError{First: j, Second: i}
		}
		seen[key] = i
	}
	return nil
}

// spread returns at most count rows, evenly spaced.
func spread(x kernel.Rows, count int) kernel.Rows {
	n := x.Len()
	if n <= count {
		return x
	}
	idx := make([]int, count)
	for i := range idx {
		idx[i] = i * n / count
	}
	return x.Select(idx)
}

// keyed reports whether rows can be compared by value, also by package gp.
func keyed(x kernel.Rows) bool {
	if x.Len() == 0 {
		return false
	}
	_, ok := kernel.RowKey(x, 0)
	return ok
}
