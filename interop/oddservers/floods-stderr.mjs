// A server that writes 32 MiB to stderr at its start, and 1 MiB before each answer. It waits while the pipe is full.
import { writeSync } from 'node:fs';
import { answer, legacy, serve } from './server.mjs';

const line = Buffer.from(`${'warning '.repeat(127)}end\n`); // about 1 KiB

function flood(kibibytes) {
    for (let i = 0; i < kibibytes; i++) writeWhole(line);
}

function writeWhole(data) {
    while (data.length > 0) {
        try {
            data = data.subarray(writeSync(2, data));
        } catch (error) {
            if (error.code !== 'EAGAIN') throw error;
        }
    }
}

flood(32 << 10);
serve(message => {
    flood(1 << 10);
    answer(legacy(message));
});
