package server

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
)

// Fate is the way a [Proxy] treats a command.
type Fate int

const (
	// Pass forwards the command and its reply.
	Pass Fate = iota
	// Lose forwards the command and loses its reply, with the connection.
	Lose
	// Drop loses the command, with the connection.
	Drop
	// Repeat forwards the command twice in a row, like a proxy that retries, and returns the second
	// reply.
	Repeat
)

// Proxy forwards connections to a server, and may lose or repeat commands and replies.
type Proxy struct {
	Addr string

	fate     func(command []byte) Fate
	listener net.Listener
	all      sync.WaitGroup

	mu    sync.Mutex // guards the fields below it
	to    string
	conns map[net.Conn]bool
	shut  bool
}

// NewProxy returns a proxy to a server. It calls fate for each command as it is sent, concurrently.
func NewProxy(to string, fate func(command []byte) Fate) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{Addr: l.Addr().String(), fate: fate, listener: l, to: to, conns: map[net.Conn]bool{}}
	p.all.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			p.all.Go(func() { p.serve(from) })
		}
	})
	return p, nil
}

// Close ends all connections, and returns when they are no longer in use.
func (p *Proxy) Close() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.shut = true
	for c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.all.Wait()
}

func (p *Proxy) serve(from net.Conn) {
	defer from.Close()
	to, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer to.Close()
	p.mu.Lock()
	if p.shut {
		p.mu.Unlock()
		return
	}
	p.conns[from], p.conns[to] = true, true
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.conns, from)
		delete(p.conns, to)
	}()
	commands, replies := bufio.NewReader(from), bufio.NewReader(to)
	for {
		command, err := readValue(commands)
		if err != nil {
			return
		}
		fate := p.fate(command)
		if fate == Drop {
			return
		}
		times := 1
		if fate == Repeat {
			times = 2
		}
		var reply []byte
		for range times {
			if _, err := to.Write(command); err != nil {
				return
			}
			if reply, err = readValue(replies); err != nil {
				return
			}
		}
		if fate == Lose {
			return
		}
		if _, err := from.Write(reply); err != nil {
			return
		}
	}
}

// readValue reads a command or a reply of the protocol, raw.
func readValue(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	n, _ := strconv.Atoi(string(bytes.TrimSpace(line[1:])))
	switch line[0] {
	case '+', '-', ':', '_', '#', ',', '(':
		return line, nil
	case '$', '=':
		if n < 0 {
			return line, nil
		}
		body := make([]byte, n+2)
		if _, err := io.ReadFull(r, body); err != nil {
			return nil, err
		}
		return append(line, body...), nil
	case '*', '~', '>', '%':
		if line[0] == '%' {
			n *= 2
		}
		for range n {
			value, err := readValue(r)
			if err != nil {
				return nil, err
			}
			line = append(line, value...)
		}
		return line, nil
	}
	return nil, fmt.Errorf("%q is not part of the protocol", line)
}
