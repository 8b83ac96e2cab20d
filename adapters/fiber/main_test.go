package penstockfiber_test

import (
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/penstock-go/penstock/internal/proof/books"
)

func TestMain(m *testing.M) {
	_ = new(fasthttp.ResponseHeader).Header() // starts fasthttp's clock, which never stops
	books.Main(m)
}
