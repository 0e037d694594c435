package web

import (
	"net/http"
	"time"

	"google.golang.org/grpc/codes"
)

// Impatient shortens the time without a line in a stream, and that for a piece of an
// answer.
func Impatient(silence, writing time.Duration) func(*Face) {
	return func(f *Face) { f.silence, f.writeTimeout = silence, writing }
}

// Panicking answers all requests with a panic.
func Panicking(value any) func(*Face) {
	return func(f *Face) {
		f.http.Handler = f.recovered(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(value) }))
	}
}

// HTTPStatus is the table of statuses.
func HTTPStatus() map[codes.Code]int { return httpStatus }

// Methods are the names of the methods that the face knows.
func Methods() (names []string) {
	all, _ := tunerMethods()
	for name := range all {
		names = append(names, name)
	}
	return names
}
