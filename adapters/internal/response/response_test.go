package response_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/adapters/internal/response"
	"github.com/penstock-go/penstock/internal/proof/books"
)

func TestMain(m *testing.M) { books.Main(m) }

func TestTimeToWrite(t *testing.T) {
	of := func(d time.Duration) context.Context {
		return context.WithValue(t.Context(), http.ServerContextKey, &http.Server{WriteTimeout: d})
	}
	for timeout, want := range map[time.Duration]time.Duration{
		time.Minute: 59 * time.Second, 10 * time.Second: 9 * time.Second, 2 * time.Second: 1800 * time.Millisecond,
		200 * time.Millisecond: 150 * time.Millisecond, 100 * time.Millisecond: 50 * time.Millisecond, 10 * time.Millisecond: 5 * time.Millisecond,
	} {
		left, known := response.TimeToWrite(of(timeout))
		assert.True(t, known)
		assert.Equal(t, want, left, timeout)
	}
	for _, ctx := range []context.Context{t.Context(), of(0), of(-1), context.WithValue(t.Context(), http.ServerContextKey, "server")} {
		_, known := response.TimeToWrite(ctx)
		assert.False(t, known)
	}
}

func TestMethod(t *testing.T) {
	for m, want := range map[string]string{"": "GET", "GET": "GET", "CONNECT": "CONNECT", "get": "_OTHER", "X7": "_OTHER", "GET ": "_OTHER"} {
		assert.Equal(t, want, response.Method(m), m)
	}
}
