package prune

// heap is a binary heap of numbers with the least on top.
type heap []float64

func (h *heap) push(x float64) {
	s := append(*h, x)
	i := len(s) - 1
	for i > 0 && s[(i-1)/2] > x {
		s[i] = s[(i-1)/2]
		i = (i - 1) / 2
	}
	s[i] = x
	*h = s
}

// pop removes the least number. The heap must not be empty.
func (h *heap) pop() float64 {
	s := *h
	top, x := s[0], s[len(s)-1]
	s = s[:len(s)-1]
	i := 0
	for 2*i+1 < len(s) {
		child := 2*i + 1
		if child+1 < len(s) && s[child+1] < s[child] {
			child++
		}
		if s[child] >= x {
			break
		}
		s[i] = s[child]
		i = child
	}
	if len(s) > 0 {
		s[i] = x
	}
	*h = s
	return top
}
