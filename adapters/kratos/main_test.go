package penstockkratos_test

import (
	"io"
	"testing"

	"github.com/go-kratos/kratos/v2/log"

	"github.com/penstock-go/penstock/internal/proof/books"
)

func TestMain(m *testing.M) {
	log.SetLogger(log.NewStdLogger(io.Discard))
	books.Main(m)
}
