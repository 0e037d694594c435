// Package bolt keeps studies in one file. Placeholder.
package bolt
