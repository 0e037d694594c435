package papers

import "strconv"

func itoa(i int) string { return strconv.Itoa(i) }

// short writes a number with few digits.
func short(x float64) string { return strconv.FormatFloat(x, 'g', 3, 64) }

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
