// A server that writes 1 MiB to stderr before each answer, and 32 MiB at its start; a full pipe stops it.
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
