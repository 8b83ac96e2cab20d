// Package server starts a PostgreSQL for tests, if one is installed.
package server

import (
	"database/sql"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
)

// Start starts a server that lives until the test ends, and returns its DSN. If none is installed,
// it skips the test.
func Start(t testing.TB) (dsn string) {
	bin := folder()
	if bin == "" {
		t.Skip("NOT TESTED AGAINST A REAL POSTGRESQL: it is not installed (Debian: apt-get install postgresql)")
	}
	dir, err := os.MkdirTemp("", "pg") //nolint:usetesting // the path of a socket must be short
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	var as *syscall.Credential
	if os.Getuid() == 0 { // no server starts as root
		u, err := user.Lookup("postgres")
		if err != nil {
			t.Skip("NOT TESTED AGAINST A REAL POSTGRESQL: root can't start one, and there is no user postgres")
		}
		as = &syscall.Credential{Uid: number(t, u.Uid), Gid: number(t, u.Gid)}
		require.NoError(t, os.Chown(dir, int(as.Uid), int(as.Gid)))
	}
	command := func(name string, args ...string) *exec.Cmd {
		c := exec.Command(filepath.Join(bin, name), args...)
		c.Dir, c.SysProcAttr = dir, &syscall.SysProcAttr{Credential: as}
		return c
	}
	data := filepath.Join(dir, "data")
	out, err := command("initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C").CombinedOutput()
	require.NoError(t, err, string(out))
	s := command("postgres", "-D", data, "-k", dir, "-c", "listen_addresses=", "-c", "fsync=off")
	require.NoError(t, s.Start())
	t.Cleanup(func() {
		_ = s.Process.Signal(syscall.SIGQUIT) // immediate shutdown
		_ = s.Wait()
	})
	dsn = "host=" + dir + " user=postgres dbname=postgres sslmode=disable"
	db, err := sql.Open("pgx", dsn)
	require.NoError(t, err)
	defer db.Close()
	require.Eventually(t, func() bool { return db.Ping() == nil }, time.Minute, 10*time.Millisecond)
	return dsn
}

// folder returns the folder of the server's programs, "" if there is none.
func folder() string {
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path)
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		return ""
	}
	return filepath.Dir(found[len(found)-1])
}

func number(t testing.TB, text string) uint32 {
	n, err := strconv.ParseUint(text, 10, 32)
	require.NoError(t, err)
	return uint32(n)
}
