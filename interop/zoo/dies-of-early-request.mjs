// A legacy server that ends when anything but initialize comes first, which is what several SDKs' servers do.
import { answer, legacy, serve } from './server.mjs';

let initialized = false;
serve(message => {
    if (!initialized && message.method !== 'initialize') {
        process.stderr.write('fatal: expected initialize\n');
        process.exit(3);
    }
    initialized = true;
    answer(legacy(message));
});
