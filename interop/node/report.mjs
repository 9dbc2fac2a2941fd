// One JSON line per check on stdout: {"name", "ok", "detail"}. The process fails if a check failed or none ran.

const checkLimit = 20_000; // milliseconds

export class Report {
    #without;
    #names = new Set();
    #ran = 0;
    #failed = 0;

    /** @param {string[]} without names of the checks that this server is known not to offer */
    constructor(without = []) {
        this.#without = new Set(without);
    }

    /** Runs one check. Its return value becomes the detail of the line. */
    async check(name, run) {
        if (this.#names.has(name)) throw new Error(`two checks are called ${name}`);
        this.#names.add(name);
        if (this.#without.has(name)) return;
        this.#ran++;
        let timer;
        const late = new Promise((_, reject) => {
            timer = setTimeout(() => reject(new Error(`the check did not end within ${checkLimit} ms`)), checkLimit);
        });
        try {
            const detail = await Promise.race([run(), late]);
            this.#print(name, true, detail);
        } catch (error) {
            this.#failed++;
            this.#print(name, false, describe(error));
        } finally {
            clearTimeout(timer);
        }
    }

    /** Ends the report and returns the exit code. After a complete run, an excluded name that no check has is a failure. */
    finish(complete) {
        for (const name of this.#without) {
            if (!complete || this.#names.has(name)) continue;
            this.#failed++;
            this.#print(name, false, 'excluded in servers.mjs, but no check has this name: remove it there');
        }
        if (this.#ran === 0) this.#print('checks', false, 'none ran');
        return this.#failed > 0 || this.#ran === 0 ? 1 : 0;
    }

    #print(name, ok, detail) {
        process.stdout.write(JSON.stringify({ name, ok, detail: detail === undefined ? '' : String(detail) }) + '\n');
    }
}

function describe(error) {
    if (!(error instanceof Error)) return JSON.stringify(error);
    const code = error.code === undefined ? '' : ` (code ${error.code})`;
    return `${error.message}${code}`;
}

/** Fails with message unless condition holds. */
export function must(condition, message) {
    if (!condition) throw new Error(message);
}

/** Fails unless got and want are the same JSON, in any order of keys. */
export function same(got, want, what) {
    must(canonical(got) === canonical(want), `${what}: got ${canonical(got)}, want ${canonical(want)}`);
}

function canonical(value) {
    return JSON.stringify(value, (_, v) =>
        v && typeof v === 'object' && !Array.isArray(v)
            ? Object.fromEntries(Object.entries(v).sort(([a], [b]) => (a < b ? -1 : 1)))
            : v
    );
}

/** Fails unless the promise rejects with one of these JSON-RPC codes; returns the error. */
export async function refused(promise, codes, what) {
    let result;
    try {
        result = await promise;
    } catch (error) {
        must(codes.includes(error.code), `${what}: code ${error.code} (${error.message}), want ${codes.join(' or ')}`);
        return error;
    }
    throw new Error(`${what}: answered ${JSON.stringify(result).slice(0, 200)}, want error ${codes.join(' or ')}`);
}

/** Waits until probe returns a value that is true, and returns it. Fails after limit milliseconds. */
export async function until(probe, limit, what) {
    const end = Date.now() + limit;
    for (;;) {
        const value = await probe();
        if (value) return value;
        if (Date.now() > end) throw new Error(`${what}: did not arrive within ${limit} ms`);
        await pause(10);
    }
}

export function pause(milliseconds) {
    return new Promise(resolve => setTimeout(resolve, milliseconds));
}

/** Returns the texts of a tool result or of prompt messages, joined. */
export function textOf(result) {
    const blocks = result.content ?? result.messages?.map(message => message.content) ?? [];
    return blocks.filter(block => block.type === 'text').map(block => block.text).join('\n');
}
