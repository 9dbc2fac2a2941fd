// @ts-check
// What the screens have in common. A screen is made when it is chosen, and ends when another one is.
import { el } from "./dom.js";
import { store } from "./store.js";

export class Screen extends HTMLElement {
  #end = new AbortController();

  /** Is aborted when the screen ends. */
  get signal() { return this.#end.signal; }

  disconnectedCallback() { this.#end.abort(); }

  /** Adds the parts of the screen, below its title. */
  build(title, ...parts) { this.append(el("h1", { class: "sr" }, title), ...parts); }

  /** Listens to the store. */
  on(name, listen) { store.addEventListener(name, listen, { signal: this.signal }); }

  /** Does something every 5 seconds. */
  tick(action) {
    const timer = setInterval(action, 5000);
    this.signal.addEventListener("abort", () => clearInterval(timer));
  }

  /** Shows what the address names. */
  show(path, query) {}

  /** Moves along the list. */
  move(by) {}

  /** Takes a key. @returns {boolean} whether it was used */
  key(key) { return false; }
}
