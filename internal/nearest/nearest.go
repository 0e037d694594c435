// Package nearest finds the name that a misspelled name most likely stands for, so
// that errors can suggest it.
package nearest

// Name returns the name with the least [Distance] to s, the first of several. It
// returns "" if none is nearer than limit.
func Name(s string, names []string, limit int) string {
	best := ""
	for _, name := range names {
		if d := Distance(s, name, limit); d < limit {
			best, limit = name, d
		}
	}
	return best
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
