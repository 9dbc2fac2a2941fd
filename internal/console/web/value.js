// @ts-check
// JSON values whose numbers keep their digits and whose objects keep the order of their members: Map, Array,
// string, boolean, null, and Num.

/** A number as it is written. */
export class Num {
  constructor(text) { this.text = text; }
}

const token = /[\s]*(?:([{}[\],:])|("(?:[^"\\\u0000-\u001f]|\\.)*")|(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)|(true|false|null))/y;

export const isNumber = (text) => /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(text);

/** Parses JSON. */
export function parse(text) {
  const at = new RegExp(token);
  const next = () => {
    const from = at.lastIndex, m = at.exec(text);
    if (!m) throw new Error(`not JSON at character ${from + 1}`);
    return m;
  };
  const value = (m, level) => {
    if (level > 128) throw new Error("more than 128 levels");
    if (m[2]) return JSON.parse(m[2]);
    if (m[3]) return new Num(m[3]);
    if (m[4]) return m[4] === "null" ? null : m[4] === "true";
    if (m[1] !== "{" && m[1] !== "[") throw new Error(`unexpected ${m[1]}`);
    const isMap = m[1] === "{", end = isMap ? "}" : "]", map = new Map(), list = [];
    for (let first = next(); first[1] !== end || map.size || list.length; first = next()) {
      let key = "";
      if (isMap) {
        if (!first[2] || next()[1] !== ":") throw new Error("want a name and a colon");
        key = JSON.parse(first[2]);
        if (map.has(key)) throw new Error(`${key} is there twice`);
        map.set(key, value(next(), level + 1));
      } else list.push(value(first, level + 1));
      const after = next()[1];
      if (after === end) break;
      if (after !== ",") throw new Error(`want , or ${end}`);
    }
    return isMap ? map : list;
  };
  const whole = value(next(), 0);
  if (text.slice(at.lastIndex).trim()) throw new Error(`more text at character ${at.lastIndex + 1}`);
  return whole;
}

/** Writes JSON. What is undefined is left out of objects. @returns {string} */
export function write(value, indent = "", now = "") {
  if (value instanceof Num) return value.text;
  if (value instanceof Map || Array.isArray(value)) {
    const isMap = value instanceof Map, inner = now + indent;
    const all = isMap ? [...value].filter(([, v]) => v !== undefined).map(([k, v]) => JSON.stringify(k) + (indent ? ": " : ":") + write(v, indent, inner)) : value.map((v) => write(v, indent, inner));
    const [open, close] = isMap ? "{}" : "[]";
    if (!all.length) return open + close;
    return indent ? `${open}\n${inner}${all.join(`,\n${inner}`)}\n${now}${close}` : open + all.join(",") + close;
  }
  return value === undefined ? "null" : JSON.stringify(value);
}
