// @ts-check
// A list of any number of rows with one height, of which only the visible ones are nodes. Each is one line of
// preformatted text in a few spans, which is the cheapest thing that a browser lays out.
import { el } from "./dom.js";

export const rowHeight = 22;

/**
 * @typedef {{parts: Array<[string, string]>, level: number, expanded?: boolean, className?: string, label: string}} Drawn
 * parts are pairs of class and text.
 */

export class List {
  rows = [];
  selected = null;
  follows = true; // new rows at the end

  #rowsNode = el("div", { class: "pool", role: "presentation" });
  #space = el("div", { class: "space", role: "presentation" }, this.#rowsNode);
  #pool = [];
  #pending = false;
  #columns = 0; // 0 until it is measured

  /**
   * @param {string} label
   * @param {(row: any, columns: number) => Drawn} draw
   * @param {{select: (row: any, isOpen: boolean) => void, toggle: (row: any, open: boolean) => void, moved: () => void}} on
   */
  constructor(label, draw, on) {
    this.draw = draw;
    this.on = on;
    this.node = el("div", { class: "list", role: "tree", tabindex: 0, "aria-label": label, keydown: (e) => this.#onKey(e), scroll: () => this.#onScroll() }, this.#space);
    this.node.addEventListener("click", (e) => this.#onClick(e));
    this.probe = el("span", { class: "probe", "aria-hidden": "true" }, "0".repeat(100));
    this.node.append(this.probe);
    this.resized = new ResizeObserver(() => { this.#columns = 0; this.refresh(); });
    this.resized.observe(this.node);
  }

  /** The characters in a line. Measured once for a size, since to measure is to lay out. */
  get columns() {
    if (!this.#columns) {
      const width = this.probe.getBoundingClientRect().width / 100 || 7.5;
      this.#columns = Math.max(20, Math.floor((this.node.clientWidth - 20) / width));
    }
    return this.#columns;
  }

  /** Draws the rows again, soon. */
  refresh() {
    if (this.#pending) return;
    this.#pending = true;
    requestAnimationFrame(() => {
      this.#pending = false;
      this.#render();
    });
  }

  #onScroll() {
    const { scrollTop, clientHeight, scrollHeight } = this.node;
    const follows = scrollTop + clientHeight >= scrollHeight - rowHeight;
    if (follows !== this.follows) {
      this.follows = follows;
      this.on.moved();
    }
    this.refresh();
  }

  #render() {
    const height = this.node.clientHeight;
    this.#space.style.height = this.rows.length * rowHeight + "px";
    if (this.follows) this.node.scrollTop = this.node.scrollHeight;
    const first = Math.max(0, Math.floor(this.node.scrollTop / rowHeight));
    const count = Math.min(this.rows.length - first, Math.ceil(height / rowHeight) + 1);
    while (this.#pool.length < count) {
      const node = el("div", { class: "row", role: "treeitem" });
      this.#pool.push(node);
      this.#rowsNode.append(node);
    }
    this.#rowsNode.style.transform = `translateY(${first * rowHeight}px)`;
    const columns = this.columns;
    let active = "";
    for (let i = 0; i < this.#pool.length; i++) {
      const node = this.#pool[i];
      node.hidden = i >= count;
      if (node.hidden) {
        node.removeAttribute("id");
        continue;
      }
      this.#drawRow(node, first + i, columns);
      if (this.rows[first + i] === this.selected) active = node.id;
    }
    if (active) this.node.setAttribute("aria-activedescendant", active);
    else this.node.removeAttribute("aria-activedescendant");
  }

  #drawRow(node, index, columns) {
    const row = this.rows[index];
    const drawn = this.draw(row, columns);
    const isSelected = row === this.selected;
    node.id = "row-" + index;
    node.className = "row" + (drawn.className ? " " + drawn.className : "");
    node.setAttribute("aria-level", String(drawn.level));
    node.setAttribute("aria-posinset", String(index + 1));
    node.setAttribute("aria-setsize", String(this.rows.length));
    node.setAttribute("aria-selected", String(isSelected));
    node.setAttribute("aria-description", drawn.label);
    if (drawn.expanded === undefined) node.removeAttribute("aria-expanded");
    else node.setAttribute("aria-expanded", String(drawn.expanded));
    while (node.childElementCount > drawn.parts.length) node.lastElementChild?.remove();
    while (node.childElementCount < drawn.parts.length) node.append(document.createElement("span"));
    drawn.parts.forEach(([name, text], i) => {
      const span = /** @type {HTMLElement} */ (node.children[i]);
      if (span.className !== name) span.className = name;
      if (span.textContent !== text) span.textContent = text;
    });
  }

  #onClick(e) {
    const index = Math.floor((e.clientY - this.#space.getBoundingClientRect().top) / rowHeight);
    const row = this.rows[index];
    if (!row) return;
    const isToggle = e.clientX - this.node.getBoundingClientRect().left < 26;
    if (isToggle) this.on.toggle(row, !this.draw(row, 80).expanded);
    this.#select(row, !isToggle);
  }

  #select(row, isOpen) {
    this.selected = row;
    this.on.select(row, isOpen);
    this.refresh();
  }

  /** Scrolls to the selected row. */
  reveal() {
    const index = this.rows.indexOf(this.selected);
    if (index < 0) return;
    const top = index * rowHeight, { scrollTop, clientHeight } = this.node;
    if (top < scrollTop) this.node.scrollTop = top;
    else if (top + rowHeight > scrollTop + clientHeight) this.node.scrollTop = top + rowHeight - clientHeight;
  }

  /** Selects the row that is some rows further. */
  move(by) {
    const index = this.rows.indexOf(this.selected);
    const last = this.rows.length - 1;
    const next = index < 0 ? (by > 0 ? Math.floor(this.node.scrollTop / rowHeight) : last) : Math.min(last, Math.max(0, index + by));
    if (!this.rows[next]) return;
    this.follows = next === last && this.follows;
    this.#select(this.rows[next], false);
    this.reveal();
  }

  /** Scrolls to the newest row and follows new ones. */
  toEnd() {
    this.follows = true;
    this.on.moved();
    this.refresh();
  }

  #onKey(e) {
    const page = Math.max(1, Math.floor(this.node.clientHeight / rowHeight) - 1);
    /** @type {Record<string, () => void>} */
    const keys = {
      ArrowDown: () => this.move(1), ArrowUp: () => this.move(-1), PageDown: () => this.move(page), PageUp: () => this.move(-page),
      Home: () => this.move(-this.rows.length), End: () => { this.move(this.rows.length); this.toEnd(); },
      Enter: () => this.selected && this.#select(this.selected, true),
      ArrowRight: () => this.selected && this.on.toggle(this.selected, true),
      ArrowLeft: () => this.selected && this.on.toggle(this.selected, false),
    };
    const run = keys[e.key];
    if (!run || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    e.stopPropagation();
    run();
  }
}
