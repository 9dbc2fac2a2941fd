// @ts-check
// All that the page knows, and the one stream that it comes from.
import { LoggedOut, get, lines, moment } from "./api.js";
import { reasonOf } from "./dom.js";

/** maxRows limits the rows that a page keeps; the oldest are dropped in steps. */
const maxRows = 100_000, dropStep = 5_000;

/** hiddenDelay is how long a hidden page stays connected. */
const hiddenDelay = 30_000;

class Store extends EventTarget {
  status = null;
  /** live, waiting, hidden, out */
  connection = "waiting";
  reason = "";
  /** Rows in the order of their first record. @type {any[]} */ rows = [];
  gaps = 0; // rows that stand for lost records
  operations = new Map();
  dropped = 0;
  filter = "";
  frames = false;
  filterError = "";
  complete = false; // the rows that dowel has kept have arrived
  rate = 0;
  paused = false;
  asks = 0; // open questions
  #now = { status: /** @type {any} */ (null), asks: 0 };
  held = [];

  boot = "";
  seq = 0;
  #abort = null;
  #runs = false;
  #arrivals = [];

  emit(name, detail) { this.dispatchEvent(new CustomEvent(name, { detail })); }

  /** Begins to follow dowel. */
  start() {
    document.addEventListener("visibilitychange", () => this.#onVisibility());
    setInterval(() => this.#measureRate(), 1000);
    this.#run();
  }

  #show({ status, asks }) {
    this.status = status ?? this.status;
    this.asks = asks;
    if (this.status) this.emit("status");
    this.emit("asks");
  }

  /** Shows the time of the address. */
  async travel() {
    if (!moment()) return this.#show(this.#now);
    const wanted = moment();
    let then;
    try {
      const [status, { asks }] = await Promise.all([get("/v1/status"), get("/v1/asks")]);
      then = { status, asks: asks.length };
    } catch (e) {
      then = { status: { ...this.#now.status, servers: [], problems: [reasonOf(e)] }, asks: 0 };
    }
    if (wanted === moment()) this.#show(then);
  }

  /** Chooses the rows. */
  choose(filter, frames) {
    if (filter === this.filter && frames === this.frames) return;
    this.filter = filter;
    this.frames = frames;
    this.#clear();
    this.#abort?.abort();
  }

  pause(paused) {
    this.paused = paused;
    if (!paused) {
      const held = this.held;
      this.held = [];
      this.#take(held);
    }
    this.emit("rows");
  }

  #clear() {
    this.rows = [];
    this.gaps = 0;
    this.operations.clear();
    this.held = [];
    this.seq = 0;
    this.dropped = 0;
    this.complete = false;
    this.filterError = "";
    this.emit("cleared");
  }

  async #run() {
    if (this.#runs) return;
    this.#runs = true;
    for (let pause = 250; this.#runs; pause = Math.min(pause * 2, 3000)) {
      this.#abort = new AbortController();
      const filter = this.filter, frames = this.frames;
      try {
        const query = new URLSearchParams({ boot: this.boot, after: String(this.#resumeAt()), filter, rows: frames ? "frames" : "ops" });
        await lines("/v1/stream?" + query, { signal: this.#abort.signal }, (batch) => {
          pause = 250;
          if (filter === this.filter && frames === this.frames) this.#receive(batch);
        });
        this.#setConnection("waiting", "dowel has ended or restarts");
      } catch (e) {
        const err = /** @type {Error} */ (e);
        if (err instanceof LoggedOut) {
          this.#runs = false;
          this.#setConnection("out", err.message);
          return;
        }
        if (filter !== this.filter || frames !== this.frames) pause = 1; // chosen anew
        else if (this.#runs) this.#setConnection("waiting", "dowel does not answer");
      }
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }

  /** The number behind which rows are asked for: rows that may still change come again. */
  #resumeAt() {
    let oldest = this.seq;
    for (const op of this.operations.values()) if ((op.status === "pending" || op.status === "asked") && op.op <= oldest) oldest = op.op - 1;
    return oldest;
  }

  #onVisibility() {
    if (!document.hidden) {
      if (this.connection === "hidden") this.#run();
      return;
    }
    setTimeout(() => {
      if (!document.hidden || !this.#runs) return;
      this.#runs = false;
      this.#abort?.abort();
      this.#setConnection("hidden", "");
    }, hiddenDelay);
  }

  #setConnection(connection, reason) {
    this.connection = connection;
    this.reason = reason;
    this.emit("connection");
  }

  #receive(batch) {
    if (this.connection !== "live") this.#setConnection("live", "");
    const rows = [];
    for (const line of batch) {
      if (line.k === "boot") {
        if (this.boot && this.boot !== line.boot) this.#clear();
        this.boot = line.boot;
      } else if (line.k === "status") {
        this.#now.status = line.status;
        if (!moment()) this.#show(this.#now);
      } else if (line.k === "filter") {
        this.filterError = line.error;
        this.complete = true;
        this.emit("rows");
      } else if (line.k === "asks") {
        this.#now.asks = line.asks;
        if (!moment()) this.#show(this.#now);
      } else if (["audit", "config", "chats"].includes(line.k)) this.emit(line.k);
      else if (line.k === "log") this.emit("log", line.server);
      else if (line.k !== "beat") rows.push(line);
    }
    if (rows.length === 0) return;
    this.#arrivals.push(...rows.filter((r) => r.k === "op" && r.frames <= 2 || r.k === "frame").map(() => Date.now()));
    if (this.paused) this.held = this.held.concat(rows).slice(-maxRows);
    else this.#take(rows);
    this.emit("rows");
  }

  #take(lines) {
    for (const line of lines) {
      if (line.gone) this.#removeOperation(line.op);
      else if (line.k === "seq") {
        this.seq = Math.max(this.seq, line.seq);
        this.complete = true;
      } else if (line.k === "op") this.#takeOperation(line);
      else if (line.k === "frame") {
        if (line.seq > this.seq) this.rows.push(line);
      } else if (line.k === "gap" && line.to > this.seq) {
        this.rows.push({ ...line, from: Math.max(line.from, this.seq + 1) });
        this.gaps++;
      }
    }
    if (this.rows.length > maxRows + dropStep) this.#dropOldest();
  }

  #takeOperation(line) {
    const known = this.operations.get(line.op);
    if (known) {
      const what = line.what || known.what;
      Object.assign(known, { error: undefined }, line, { what });
      return;
    }
    this.operations.set(line.op, line);
    this.rows.push(line);
  }

  /** Removes an operation that the filter no longer accepts. */
  #removeOperation(id) {
    const row = this.operations.get(id);
    if (!row) return;
    this.operations.delete(id);
    const index = this.rows.lastIndexOf(row);
    this.rows.splice(index, 1);
    this.emit("removed", { row, index });
  }

  #dropOldest() {
    for (const row of this.rows.slice(0, dropStep)) {
      if (row.k === "op") this.operations.delete(row.op);
      else if (row.k === "gap") this.gaps--;
    }
    this.rows = this.rows.slice(dropStep);
    this.dropped += dropStep;
    this.emit("dropped", dropStep);
  }

  #measureRate() {
    const since = Date.now() - 5000;
    this.#arrivals = this.#arrivals.filter((t) => t > since);
    const rate = Math.round(this.#arrivals.length / 5);
    if (rate !== this.rate) {
      this.rate = rate;
      this.emit("rate");
    }
  }
}

export const store = new Store();
