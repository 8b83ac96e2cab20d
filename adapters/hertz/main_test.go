package penstockhertz_test

import (
	"testing"

	"github.com/cloudwego/hertz/pkg/protocol"
	"github.com/cloudwego/netpoll"

	"github.com/penstock-go/penstock/internal/proof/books"
)

func TestMain(m *testing.M) {
	protocol.ServerDateOnce.Do(protocol.UpdateServerDate) // starts hertz' clock, which never stops
	netpoll.Initialize()                                  // starts its pollers, which never stop either
	books.Main(m)
}
