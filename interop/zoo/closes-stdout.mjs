// A server that closes its stdout when it is called, and lives on.
import { closeSync } from 'node:fs';
import { answer, legacy, serve } from './server.mjs';

setInterval(() => {}, 1000);
serve(message => {
    if (message.method === 'tools/call') closeSync(1);
    else answer(legacy(message));
}, () => {});
