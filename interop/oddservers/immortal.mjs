// A server that ends neither with its stdin nor on SIGTERM, SIGINT or SIGHUP.
import { answer, legacy, serve } from './server.mjs';

for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => {});
setInterval(() => {}, 1000);
serve(message => answer(legacy(message)), () => {});
