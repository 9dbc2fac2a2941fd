package daemon

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/audit"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/rawjson"
)

// openAudit opens the audit log: the file that the configuration names, or else the memory of this
// process.
func (d *Daemon) openAudit() (err error) {
	d.trail = control.NewAuditTrail(d.settings.Audit)
	d.auditLog = d.trail
	if d.settings.Audit != "" {
		if d.auditFile, err = audit.OpenFile(d.settings.Audit); err != nil {
			return err
		}
		d.auditLog = audit.WriteAll(d.auditFile, d.trail)
	}
	if d.cluster != nil {
		shared, err := d.shareAudit(d.auditLog)
		if err != nil {
			return err
		}
		d.auditLog = audit.WriteAll(d.auditLog, shared)
	}
	d.trail.Log = audit.NewLog(d.auditLog, audit.Options(d.auditOptions()))
	d.calls.Asks.Record = d.trail.Log.Write
	d.background.Go(d.recordDefinitions)
	return nil
}

// shareAudit writes the lines of other replicas to own, with the names of these, and returns the
// writer to the others.
func (d *Daemon) shareAudit(own io.Writer) (io.Writer, error) {
	return d.cluster.ShareAudit(d.ctx, func(replica string, line []byte) {
		named, err := json.Marshal(replica)
		if err != nil {
			return
		}
		line = append(rawjson.Set(bytes.TrimSpace(line), "replica", named), '\n')
		if _, err := own.Write(line); err != nil {
			d.options.Warn("the audit log: %v", err)
		}
	})
}

// auditOptions returns the options of the audit log.
func (d *Daemon) auditOptions() gateway.AuditOptions {
	return gateway.AuditOptions{Arguments: d.settings.AuditArguments, Mask: d.maskSecrets, OnError: func(err error) { d.options.Warn("the audit log: %v", err) }}
}

// maxRecordedLines limits the lines of a definition's differences in a record.
const maxRecordedLines = 100

// recordDefinitions records definitions that change while this process runs.
func (d *Daemon) recordDefinitions() {
	recorded := map[string]string{} // digest of the last change, by server, kind and name
	for e := range d.Hub.Events(d.ctx, hub.CatalogChanged, hub.StateChanged) {
		u := d.Hub.Upstream(e.Upstream)
		if u == nil {
			continue
		}
		for _, c := range u.ChangedDefinitions() {
			key := strings.Join([]string{u.Name(), c.Kind, c.Name}, "\x00")
			if recorded[key] == c.Digest || c.Time.Before(d.started) {
				continue
			}
			recorded[key] = c.Digest
			r := audit.Record{Time: time.Now(), Method: "definitions/change", Server: u.Name(), Name: strings.TrimSpace(c.Kind + " " + c.Name), Outcome: "noted"}
			if u.Definition().HoldChanged != "" {
				r.Outcome = "held"
			}
			r.Reason = strings.Join(c.Lines[:min(len(c.Lines), maxRecordedLines)], "\n")
			d.trail.Log.Write(r)
		}
	}
}

// recordConfig records that files of the configuration have changed the servers.
func (d *Daemon) recordConfig(old, now *config.Set) {
	before := map[string]*config.Server{}
	for _, s := range old.Servers {
		before[s.Name] = s
	}
	var lines []string
	for _, s := range now.Servers {
		switch was := before[s.Name]; {
		case was == nil:
			lines = append(lines, "+ "+s.Name+" in "+s.At.String())
		case !reflect.DeepEqual(was.Spec, s.Spec):
			lines = append(lines, "~ "+s.Name+" in "+s.At.String())
		}
		delete(before, s.Name)
	}
	for _, s := range before {
		lines = append(lines, "- "+s.Name+" from "+s.At.String())
	}
	if len(lines) == 0 {
		return
	}
	slices.SortFunc(lines, func(a, b string) int { return cmp.Compare(a[2:], b[2:]) })
	d.trail.Log.Write(audit.Record{Time: time.Now(), Method: "config/change", Outcome: "ok", Reason: strings.Join(lines, "\n")})
}
