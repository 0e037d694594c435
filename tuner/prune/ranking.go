package prune

import (
	"slices"
	"sort"
)

// ranking is a multiset of numbers without NaN that returns ranks. It keeps them in order
// in blocks.
type ranking struct {
	n      int
	blocks [][]float64 // none empty
}

// maxBlock is the size at which a block is split. An insertion moves up to maxBlock
// numbers. A rank adds up n/maxBlock to twice as many lengths.
const maxBlock = 1024

func (r *ranking) len() int { return r.n }

// blockOf returns the first block that ends at x or above.
func (r *ranking) blockOf(x float64) int {
	return sort.Search(len(r.blocks), func(i int) bool { return r.blocks[i][len(r.blocks[i])-1] >= x })
}

func (r *ranking) add(x float64) {
	r.n++
	if len(r.blocks) == 0 {
		r.blocks = [][]float64{{x}}
		return
	}
	i := min(r.blockOf(x), len(r.blocks)-1)
	at, _ := slices.BinarySearch(r.blocks[i], x)
	r.blocks[i] = slices.Insert(r.blocks[i], at, x)
	if b := r.blocks[i]; len(b) > maxBlock {
		half := slices.Clone(b[len(b)/2:])
		r.blocks[i] = b[: len(b)/2 : len(b)/2]
		r.blocks = slices.Insert(r.blocks, i+1, half)
	}
}

// remove takes out one x that was added.
func (r *ranking) remove(x float64) {
	i := r.blockOf(x)
	if i == len(r.blocks) {
		return
	}
	at, found := slices.BinarySearch(r.blocks[i], x)
	if !found {
		return
	}
	r.n--
	if r.blocks[i] = slices.Delete(r.blocks[i], at, at+1); len(r.blocks[i]) == 0 {
		r.blocks = slices.Delete(r.blocks, i, i+1)
	}
}

// at returns the k-th number in order.
func (r *ranking) at(k int) float64 {
	for _, b := range r.blocks {
		if k < len(b) {
			return b[k]
		}
		k -= len(b)
	}
	panic("prune: precondition: fewer numbers")
}

// below returns how many numbers are less than x.
func (r *ranking) below(x float64) int {
	last := r.blockOf(x)
	n := 0
	for _, b := range r.blocks[:last] {
		n += len(b)
	}
	if last < len(r.blocks) {
		at, _ := slices.BinarySearch(r.blocks[last], x)
		n += at
	}
	return n
}
