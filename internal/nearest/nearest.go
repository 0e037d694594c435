// Package nearest finds the name that a misspelled name most likely stands for, so
// that errors can suggest it.
package nearest

// Name returns the name with the least [Distance] to s, the first of several, where two
// neighbours that are swapped count as 1. It returns "" if none is nearer than limit.
func Name(s string, names []string, limit int) string {
	best := ""
	for _, name := range names {
		d := Distance(s, name, limit)
		if swapped(s, name) {
			d = 1
		}
		if d < limit {
			best, limit = name, d
		}
	}
	return best
}

// swapped tells whether a is b with two different neighbours swapped.
func swapped(a, b string) bool {
	for i := range len(a) - 1 {
		if len(a) == len(b) && a[i] != b[i] {
			return a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
		}
	}
	return false
}

// Distance returns the least number of bytes to insert, delete or replace to turn a into b
// (Levenshtein's distance), or limit if it is not less. It takes O(len(a) len(b)) time and
// O(len(b)) memory, and almost none where the lengths differ by limit or more.
func Distance(a, b string, limit int) int {
	if d := len(a) - len(b); d >= limit || -d >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return min(row[len(b)], limit)
}
