package penstockredis_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/internal/proof/books"
)

func TestMain(m *testing.M) {
	redis.SetLogger(silent{})
	books.Main(m)
}

// silent discards the log of go-redis.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}
