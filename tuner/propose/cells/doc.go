// Package cells numbers the configurations of a grid on a space, conditional parameters included.
//
// [Of] compiles a grid once. A cell is then found from its number in O(parameters·log values),
// and only the values of single parameters are listed. Conditions on several parents can make
// compiling expensive. It then stops with an error after about a second.
package cells
