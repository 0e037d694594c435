package bandit

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// Deduplicate returns the different rows of arms in the order in which they
// come first, and for every row the index of its equal among them. Rows whose
// type has no equality known here (see [Policy] constructors) are taken as all
// different.
func Deduplicate(arms kernel.Rows) (unique kernel.Rows, at []int) {
	n := arms.Len()
	at = make([]int, n)
	seen, keep := map[string]int{}, make([]int, 0, n)
	for i := range n {
		key, ok := rowKey(arms, i)
		if j, found := seen[key]; ok && found {
			at[i] = j
			continue
		}
		if ok {
			seen[key] = len(keep)
		}
		at[i] = len(keep)
		keep = append(keep, i)
	}
	return arms.Select(keep), at
}

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
	if _, ok := rowKey(arms, 0); !ok {
		return nil
	}
	seen := make(map[string]int, arms.Len())
	for i := range arms.Len() {
		key, _ := rowKey(arms, i)
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

// keyed says that rows can be told from one another by value, also by gp.
func keyed(x kernel.Rows) bool {
	if x.Len() == 0 {
		return false
	}
	_, ok := rowKey(x, 0)
	return ok
}

// rowKey identifies row i by its value: dense and sparse numbers, strings and
// integers.
func rowKey(x kernel.Rows, i int) (string, bool) {
	switch p := x.(type) {
	case interface{ Row(int) []float64 }:
		return denseKey(p.Row(i)), true
	case interface{ Row(int) []float32 }:
		return denseKey(p.Row(i)), true
	case interface {
		Row(int) ([]int32, []float64)
	}:
		return sparseKey(p.Row(i)), true
	case interface {
		Row(int) ([]int32, []float32)
	}:
		return sparseKey(p.Row(i)), true
	case interface{ Row(int) string }:
		return p.Row(i), true
	case interface{ Row(int) int }:
		return fmt.Sprint(p.Row(i)), true
	}
	return "", false
}

func denseKey[T kernel.Float](row []T) string {
	b := make([]byte, 0, 8*len(row))
	for _, v := range row {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(v)+0)) // −0 + 0 is 0
	}
	return string(b)
}

func sparseKey[T kernel.Float](col []int32, val []T) string {
	b := make([]byte, 0, 12*len(col))
	for k, c := range col {
		if val[k] != 0 {
			b = binary.LittleEndian.AppendUint32(b, uint32(c))
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(val[k])))
		}
	}
	return string(b)
}
