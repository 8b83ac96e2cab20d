// Package server starts and stops Redis servers for tests and measurements.
package server

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// ErrNotInstalled means that redis-server is not installed.
var ErrNotInstalled = errors.New("NOT TESTED AGAINST A REAL REDIS: " +
	"redis-server is not installed (Debian: apt-get install redis-server)")

// Server is a Redis on a free port of this machine. It keeps nothing on disk.
type Server struct {
	Addr    string
	dir     string
	file    string
	args    []string
	process *exec.Cmd
	ended   chan struct{}
}

// Start starts a server with further arguments, and returns when it responds. Its files are in dir.
func Start(dir string, args ...string) (*Server, error) { return StartWith(dir, "", args...) }

// StartWith is like [Start], but with a configuration file, to which a Sentinel also writes.
func StartWith(dir, file string, args ...string) (*Server, error) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		return nil, ErrNotInstalled
	}
	s := &Server{dir: dir, file: file, args: args}
	for {
		addr, err := freeAddr()
		if err != nil {
			return nil, err
		}
		s.Addr = addr
		switch err := s.Revive(); {
		case err == nil:
			return s, nil
		case !errors.Is(err, errTaken):
			return nil, err
		}
	}
}

var errTaken = errors.New("the port is in use")

// freeAddr returns an address that was free a moment ago. Its port leaves room for the port of a
// cluster's bus, which is 10,000 higher.
func freeAddr() (string, error) {
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		addr := l.Addr().(*net.TCPAddr)
		_ = l.Close()
		if addr.Port < 55000 {
			return addr.String(), nil
		}
	}
}

// Revive starts the server again on the same port.
func (s *Server) Revive() error {
	_, port, _ := net.SplitHostPort(s.Addr)
	log := filepath.Join(s.dir, "log"+port)
	args := []string{"--bind", "127.0.0.1", "--port", port, "--dir", s.dir, "--logfile", log}
	if s.file != "" {
		args = append([]string{s.file}, args...)
	} else {
		args = append(args, "--save", "", "--appendonly", "no", "--cluster-config-file", "nodes"+port+".conf")
	}
	p := exec.Command("redis-server", append(args, s.args...)...)
	_ = os.Remove(log)
	if err := p.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		_ = p.Wait()
		close(ended)
	}()
	s.process, s.ended = p, ended
	for !s.answers() {
		select {
		case <-ended:
			s.process = nil
			output, _ := os.ReadFile(log)
			if bytes.Contains(output, []byte("in use")) {
				return errTaken
			}
			return fmt.Errorf("redis-server has ended: %s", output)
		case <-time.After(5 * time.Millisecond):
		}
	}
	return nil
}

// answers reports whether this server, and no other, responds at the address.
func (s *Server) answers() bool {
	output, err := Ask(s.Addr, "INFO server")
	return err == nil && bytes.Contains(output, []byte("process_id:"+strconv.Itoa(s.process.Process.Pid)+"\r\n"))
}

// Ask sends a command and returns its first reply, raw, without a client. An error reply begins
// with a minus.
func Ask(addr, command string) ([]byte, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if _, err := fmt.Fprintf(c, "%s\r\n", command); err != nil {
		return nil, err
	}
	r := bufio.NewReader(c)
	line, err := r.ReadBytes('\n')
	if err != nil || line[0] != '$' {
		return line, err
	}
	n, err := strconv.Atoi(string(bytes.TrimSpace(line[1:])))
	if err != nil || n < 0 {
		return nil, err
	}
	said := make([]byte, n)
	for at := 0; at < n; {
		m, err := r.Read(said[at:])
		if err != nil {
			return nil, err
		}
		at += m
	}
	return said, nil
}

// Kill kills the server, and returns when it is gone.
func (s *Server) Kill() {
	if s.process == nil {
		return
	}
	_ = s.process.Process.Kill()
	<-s.ended
	s.process = nil
}

// Stop suspends the server until [Server.Continue], like a suspended machine.
func (s *Server) Stop() error { return s.process.Process.Signal(syscall.SIGSTOP) }

// Continue resumes the server.
func (s *Server) Continue() error { return s.process.Process.Signal(syscall.SIGCONT) }
