package rpc_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/adapters/internal/rpc"
)

// Exemptions are exact names: clients of a server that serves unknown methods may make up similar
// ones.
func TestUnguarded(t *testing.T) {
	for _, method := range []string{
		"/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/List", "/grpc.health.v1.Health/Watch",
		"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
	} {
		assert.True(t, rpc.Unguarded(method), method)
		for _, made := range []string{method + "/", method + "X", "/" + method, method[1:], " " + method, method[:len(method)-1]} {
			assert.False(t, rpc.Unguarded(made), made)
		}
	}
	for _, made := range []string{"", "/", "/grpc.health.v9.Made/Up", "/grpc.health.", "/grpc.reflection.v1.ServerReflection/Check", "/GRPC.health.v1.Health/Check"} {
		assert.False(t, rpc.Unguarded(made), made)
	}
}
