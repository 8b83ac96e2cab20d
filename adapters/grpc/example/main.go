// Command example guards a gRPC server, sends itself five calls, and prints what happened to them.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"

	penstockgrpc "github.com/penstock-go/penstock/adapters/grpc"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
)

type service struct {
	pb.UnimplementedTestServiceServer
}

func (service) EmptyCall(context.Context, *pb.Empty) (*pb.Empty, error) { return &pb.Empty{}, nil }

func main() {
	limit := flow.Rule{Resource: "/grpc.testing.TestService/EmptyCall", Threshold: 3}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err := errors.Join(err, api.LoadRules(api.RuleSet{Flow: []flow.Rule{limit}})); err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer(penstockgrpc.ServerOptions()...) // the one line
	pb.RegisterTestServiceServer(server, service{})
	go func() { log.Fatal(server.Serve(listener)) }()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	for n := 1; n <= 5 && err == nil; n++ {
		_, refusal := pb.NewTestServiceClient(conn).EmptyCall(context.Background(), &pb.Empty{})
		fmt.Println("call", n, refusal)
	}
}
