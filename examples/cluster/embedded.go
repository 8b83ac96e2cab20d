package main

import (
	"context"
	"errors"
	"net"
	"net/rpc"
	"sync"
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/cluster/store"
	"github.com/penstock-go/penstock/core/clocks"
)

// keep keeps a store in this process's memory, serves it to other processes, and returns its address.
// It suits a laptop: the counts are lost when this process ends.
func keep() (store.Store, string, error) {
	store := cluster.NewMemory(clocks.NewSystem())
	server := rpc.NewServer()
	if err := server.RegisterName("Store", &remote{store}); err != nil {
		return nil, "", err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	go server.Accept(l)
	return store, l.Addr().String(), nil
}

// Request is a batch of commands for the store. Reply is the same batch with the store's replies.
type (
	Request struct{ Commands []Command }
	Reply   struct{ Commands []Command }
	Command struct {
		Take     *store.Take
		Turn     *store.Turn
		Tokens   *store.Tokens
		Permits  *store.Permits
		Presence *store.Presence
	}
)

func (c Command) of() store.Command {
	switch {
	case c.Take != nil:
		return c.Take
	case c.Turn != nil:
		return c.Turn
	case c.Tokens != nil:
		return c.Tokens
	case c.Permits != nil:
		return c.Permits
	default:
		return c.Presence
	}
}

// remote executes the commands of other processes.
type remote struct{ store store.Store }

// Do executes a batch.
func (r *remote) Do(in *Request, out *Reply) error {
	batch := make([]store.Command, len(in.Commands))
	for i, c := range in.Commands {
		batch[i] = c.of()
	}
	r.store.Do(context.Background(), batch)
	for _, c := range batch {
		if err := c.Result().Err; err != nil {
			return err
		}
	}
	out.Commands = in.Commands
	return nil
}

// dialed is a connection to a store in another process.
type dialed struct {
	address string
	mu      sync.Mutex
	client  *rpc.Client
}

func dial(address string) *dialed { return &dialed{address: address} }

// Shard returns 0, the only shard.
func (d *dialed) Shard(string) int { return 0 }

// Do sends the commands, once, and waits for the replies.
func (d *dialed) Do(ctx context.Context, batch []store.Command) {
	err := d.do(ctx, batch)
	for _, c := range batch {
		c.Result().Err = err
	}
}

func (d *dialed) do(ctx context.Context, batch []store.Command) error {
	client, err := d.connected()
	if err != nil {
		return errors.Join(err, store.ErrNotExecuted)
	}
	in, out := &Request{}, &Reply{}
	for _, c := range batch {
		switch c := c.(type) {
		case *store.Take:
			in.Commands = append(in.Commands, Command{Take: c})
		case *store.Turn:
			in.Commands = append(in.Commands, Command{Turn: c})
		case *store.Tokens:
			in.Commands = append(in.Commands, Command{Tokens: c})
		case *store.Permits:
			in.Commands = append(in.Commands, Command{Permits: c})
		case *store.Presence:
			in.Commands = append(in.Commands, Command{Presence: c})
		}
	}
	call := client.Go("Store.Do", in, out, make(chan *rpc.Call, 1))
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-call.Done:
	}
	if call.Error != nil {
		d.forget(client)
		return call.Error
	}
	for i, c := range batch {
		switch c := c.(type) {
		case *store.Take:
			c.Reply = out.Commands[i].Take.Reply
		case *store.Turn:
			c.Reply = out.Commands[i].Turn.Reply
		case *store.Tokens:
			c.Reply = out.Commands[i].Tokens.Reply
		case *store.Permits:
			c.Reply = out.Commands[i].Permits.Reply
		case *store.Presence:
			c.Reply = out.Commands[i].Presence.Reply
		}
	}
	return nil
}

func (d *dialed) connected() (*rpc.Client, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.client != nil {
		return d.client, nil
	}
	c, err := net.DialTimeout("tcp", d.address, time.Second)
	if err != nil {
		return nil, err
	}
	d.client = rpc.NewClient(c)
	return d.client, nil
}

// forget makes the next command connect again.
func (d *dialed) forget(client *rpc.Client) {
	_ = client.Close()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.client == client {
		d.client = nil
	}
}
