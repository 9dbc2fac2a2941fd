// A server that closes its stdout when its tool is called, but continues to run.
import { closeSync } from 'node:fs';
import { answer, legacy, serve } from './server.mjs';

setInterval(() => {}, 1000);
serve(message => {
    if (message.method === 'tools/call') closeSync(1);
    else answer(legacy(message));
}, () => {});
